// place_thread: code at thread level.
#include "pass/place.h"

bool place_is_thread_op(const IrOp *op) {
  if (ir_ops[op->kind].traits & TRAIT_TERMINATOR) return false;
  return ir_op_executor(op) == EXEC_THREAD || ir_op_executor(op) == EXEC_WARP;
}

void place_emit_threads(Place *p, PlaceStep *s) { place_fail(p, s->op->loc, "code at thread level"); }
