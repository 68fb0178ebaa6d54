// launch: what of a kernel a host can compute before it launches it: expressions over the kernel's parameters, as postfix programs on
// 64-bit integers. Every value stands sign-extended from its type's width.
#ifndef DITRON_IR_LAUNCH_H
#define DITRON_IR_LAUNCH_H

#include "ir/ir.h"

typedef enum IrLaunchKind {
  IR_LAUNCH_CONST,  // pushes value
  IR_LAUNCH_PARAM,  // pushes the parameter: an integer or an address
  IR_LAUNCH_BASE,   // pushes of the descriptor parameter its address,
  IR_LAUNCH_DIM,    // its size along axis value,
  IR_LAUNCH_STRIDE, // its stride along axis value
  IR_LAUNCH_SEXT,   // the top, from its `value` low bits
  IR_LAUNCH_ZEXT,
  IR_LAUNCH_OP // op on the two from the top, in 64 bits: add sub mul div rem min max and or xor shl shr
} IrLaunchKind;
typedef struct IrLaunchStep {
  IrLaunchKind kind;
  IrOpKind op;
  uint32_t param;
  int64_t value;
} IrLaunchStep;
typedef Vec(IrLaunchStep) IrLaunchExpr;
enum { IR_LAUNCH_STEPS = 128, IR_LAUNCH_DEPTH = 16 }; // most steps of one, most values on its stack

typedef struct IrLaunchDesc {
  const IrValue *desc; // the parameter or the make_desc's result
  int rank;
  IrPad pad;
  IrLaunchExpr base, dims[5], strides[5]; // elements
} IrLaunchDesc;

// The tensor descriptor behind an operand of a descriptor's: a parameter or a make_desc's result, past the waits that it was passed
// through (OP_consume).
IrValue *ir_desc_source(IrValue *desc);

// Can a host make this tensor descriptor before the launch? It can where it is a parameter, or made of a pointer parameter (moved by
// what a host can compute) and of sizes and strides of constants and integer parameters. Else *why names what it depends on.
// `desc` is a source, as ir_desc_source gives it.
bool ir_desc_at_launch(Arena *a, const IrValue *desc, IrLaunchDesc *out, const char **why);
// The same of one integer or pointer.
bool ir_value_at_launch(Arena *a, const IrValue *v, IrLaunchExpr *out, const char **why);

#endif
