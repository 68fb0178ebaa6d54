// verify: what the files of the verifier share. verify.c walks and checks what the table of ops says; verify_ops.c knows
// the rules of single ops, verify_lanes.c those of registers; verify_control.c those of regions, calls and asynchronous copies.
#ifndef DITRON_IR_VERIFY_H
#define DITRON_IR_VERIFY_H

#include "ir/ir_impl.h"

typedef struct IrSeen { // a value that has been defined in the function at work, by id
  const IrValue *value;
  uint32_t part; // serial of the partition region that it was defined in; 0 = none
  bool visible;
} IrSeen;

typedef struct IrVerifier {
  const IrModule *m;
  Diags *d;
  const IrFunc *func;
  uint32_t found, most; // errors
  IrSeen *seen;
  uint32_t nseen, nparts, part;
  const IrOp *thread_control; // innermost op with a thread-level condition around the op at work
  int depth;
  Map funcs; // Str * -> IrFunc *
} IrVerifier;

// Reports against op (NULL: the function at work); always false.
bool ir_bad(IrVerifier *v, const IrOp *op, const char *fmt, ...) DT_PRINTF(3, 4);
const char *ir_type_msg(IrVerifier *v, const IrType *t); // text of a type for a message

bool ir_same_shape(const IrType *a, const IrType *b); // both scalar, or the same axes
bool ir_same_elem(const IrType *a, const IrType *b);  // dtype, pointer or not, space
bool ir_has_level(const IrType *t);                   // scalar or pointer

void ir_verify_op_rules(IrVerifier *v, const IrOp *op);
void ir_verify_region_rules(IrVerifier *v, const IrOp *op);
void ir_verify_terminator(IrVerifier *v, const IrOp *op);
void ir_verify_async(IrVerifier *v, const IrFunc *f);
void ir_verify_call_graph(IrVerifier *v);

void ir_lane_rules(IrVerifier *v, const IrOp *op); // verify_lanes.c

#endif
