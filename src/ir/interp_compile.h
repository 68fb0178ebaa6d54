// interp_compile: the state of one compile, for the files that share it.
//   interp_slots.c    places of values, and instructions as they are emitted
//   interp_control.c  blocks, spans of warps, structured control
//   interp_compile.c  every other op, and interp_compile itself
#ifndef DITRON_INTERP_COMPILE_H
#define DITRON_INTERP_COMPILE_H

#include "ir/interp_impl.h"

enum { MAX_INS = 4 << 20, MAX_INLINE = 64, ALIGN = 64 };
#define COMP_MAX_AREA ((size_t)1 << 30)

typedef enum Mode { MODE_BLOCK, MODE_WARP, MODE_FIBER, MODE_VEC } Mode;
typedef struct Slot {
  size_t off, size;
  uint32_t refs, threads; // threads: of a SP_TH slot
  uint8_t space, esize;
} Slot;
typedef struct Val {
  Ref ref;
  int slot; // -1: owns none
} Val;
typedef struct Frame {
  const struct Frame *up;
  const IrFunc *func;
  Val *vals;
} Frame;
typedef struct Hole {
  size_t off, size;
} Hole;
typedef struct Heap { // first fit over [0, top)
  Vec(Hole) holes;
  size_t top;
} Heap;
typedef struct Class { // thread arrays of one shape
  uint32_t esize, threads;
  Vec(size_t) free;
} Class;
typedef Vec(int) Dead; // slots to release

struct Comp {
  World *w;
  Arena *arena;
  Code *code;
  const IrModule *m;
  Frame *frame;
  Mode mode;
  bool thread_control;
  uint32_t threads, holding;
  Space tiles;
  Heap ar, lo;
  Vec(Class) classes;
  Vec(size_t) scalars; // free 8-byte slots
  Vec(Slot) slots;
  Dead held;
  Map order;    // IrOp * -> its number in its block
  Map numbered; // IrFunc *
  Vec(char) consts;
  jmp_buf fail;
  const char *error;
  Loc where;
};
typedef struct Comp Comp;

static inline bool comp_is_tile(const IrValue *v) { return v && v->type->kind == IR_TILE; }
static inline bool comp_is_thread(const IrValue *v) { return v && ir_type_is_thread(v->type); }
static inline bool comp_per_thread(Ref r) { return r.space == SP_TH; }
static inline Val *comp_val_of(Comp *c, const IrValue *v) { return &c->frame->vals[v->id]; }
static inline uint32_t comp_here(const Comp *c) { return c->code->ins.len; }
static inline Ins *comp_at(Comp *c, uint32_t pc) { return &c->code->ins.data[pc]; }
static inline bool comp_same_place(Ref a, Ref b) { return a.space == b.space && a.off == b.off; }
static inline bool comp_same_ref(Ref a, Ref b) { return comp_same_place(a, b) && a.stride == b.stride; }
static inline const IrOp *comp_terminator(const IrBlock *b) { return b->last; }

// ---- interp_slots.c
void comp_refuse(Comp *c, const IrOp *op, const char *text) DT_NORETURN;
size_t comp_heap_get(Comp *c, Heap *h, size_t size);
int comp_slot_new(Comp *c, Space space, size_t size, uint32_t esize);
void comp_slot_release(Comp *c, int slot);
int comp_value_bytes(const IrType *t);
Ref comp_use(Comp *c, const IrOp *op, uint32_t i);
// A place for a new value; uniform: the same in all elements, so one will do.
Val comp_place(Comp *c, const IrType *t, bool uniform);
Ref comp_define(Comp *c, const IrValue *v, bool uniform);
void comp_alias(Comp *c, const IrValue *v, Val of);
uint32_t comp_elems_of(const IrValue *v, Ref r); // for Ins.n
Ref comp_constant(Comp *c, const void *bytes, size_t n, uint32_t esize, bool strided);
void comp_define_const(Comp *c, const IrValue *v, int64_t bits);
Ins *comp_emit(Comp *c, const IrOp *op, Exec exec);
bool comp_op_is_thread(const IrOp *op);
// An op that is executed once, or once for each active lane.
void comp_level(const Comp *c, Ins *i, const IrOp *op);
Ins *comp_emit3(Comp *c, const IrOp *op, Exec exec); // first operands in a, b, c
// All operands, then the results; for Ins.extra.
const Operands *comp_operands(Comp *c, const IrOp *op);
void comp_copy(Comp *c, const IrOp *op, const IrType *t, Ref to, Ref from, int flags);
// ---- interp_control.c
bool comp_number_op(IrOp *op, void *user);
// All but the terminator; what dies at it is released by comp_bury, after its operands were handed over.
Dead comp_block(Comp *c, const IrBlock *b);
void comp_bury(Comp *c, Dead dead);
void comp_if(Comp *c, const IrOp *op);
void comp_switch(Comp *c, const IrOp *op);
void comp_for(Comp *c, const IrOp *op);
void comp_while(Comp *c, const IrOp *op);
void comp_partitions(Comp *c, const IrOp *op);
void comp_warp_for(Comp *c, const IrOp *op);
void comp_call(Comp *c, const IrOp *op);
// ---- interp_compile.c
void comp_op(Comp *c, const IrOp *op);

#endif
