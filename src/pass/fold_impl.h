// fold_impl: what the files of the folder share. fold.c drives a worklist; the rules lie in fold_arith.c (one value from
// others), fold_shape.c (tiles of equal elements), fold_control.c (regions with a known outcome).
#ifndef DITRON_FOLD_IMPL_H
#define DITRON_FOLD_IMPL_H

#include "pass/pass_impl.h"

typedef struct Fold {
  Pass *pass;
  Arena *scratch;
  IrBuilder b; // before the op at work; whatever is built there is looked at too
  Vec(IrOp *) work;
  uint32_t head;
} Fold;

// Rules return what stands for op's only result, or NULL. A rule that changes op in place calls fold_again.
IrValue *fold_arith(Fold *f, IrOp *op);
IrValue *fold_shape(Fold *f, IrOp *op);
// True where op is gone or was replaced by another op.
bool fold_control(Fold *f, IrOp *op);
bool fold_memory(Fold *f, IrOp *op);

void fold_push(Fold *f, IrOp *op);
void fold_again(Fold *f, IrOp *op);                      // op and who uses it
void fold_replace(Fold *f, IrValue *old, IrValue *with); // of one type
void fold_erase(Fold *f, IrOp *op);                      // its results are unused; operands may be dead now

#endif
