// licm: what does not change in a loop is computed before it.
//
// needs:  no calls.
// keeps:  every effect. Only pure ops run more often than before (in a loop that never runs), which is harmless by their
//         definition: even a division by zero yields 0.
// breaks: nothing.
//
// A plain load moves out of a `for` only where the loop surely runs (min_trip), nothing in it writes memory or orders
// others, and it would run in every iteration. Loads never leave a `while`: it may be waiting for what they read.
// Inner loops go first, so that a value climbs as far as it can in one pass.
#include "pass/pass_impl.h"

static bool is_invariant(const IrOp *op, const IrOp *loop) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (!v) continue;
    for (const IrBlock *b = v->block; b; b = b->owner ? b->owner->parent : NULL) {
      if (b->owner == loop) return false;
    }
  }
  return true;
}

// The op and everything that its regions (of reduce and scan) take from outside.
static bool is_invariant_deep(const IrOp *op, const IrOp *loop, const IrOp *top) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (!v) continue;
    for (const IrBlock *b = v->block; b; b = b->owner ? b->owner->parent : NULL) {
      if (b->owner == top) break;
      if (b->owner == loop) return false;
    }
  }
  for (uint32_t r = 0; r < op->nregions; r++) {
    PASS_EACH_OP(op->regions[r], o) {
      if (!is_invariant_deep(o, loop, top)) return false;
    }
  }
  return true;
}

static bool may_hoist_loads(const IrOp *loop) {
  return loop->kind == OP_for && ir_attr_i(loop, ATTR_min_trip) >= 1 && !loop->aux;
}

static void hoist(IrOp *loop, IrBlock *b, bool loads) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    if (ir_ops[op->kind].traits & TRAIT_TERMINATOR) continue;
    if (op->nregions) {
      if (op->kind != OP_reduce && op->kind != OP_scan) continue;
      if (is_invariant_deep(op, loop, op) && ir_op_is_pure(op)) ir_move_before(op, loop);
      continue;
    }
    const bool movable =
        pass_is_plain_load(op) ? loads : (ir_ops[op->kind].traits & TRAIT_PURE) && ir_op_is_pure(op);
    if (movable && is_invariant(op, loop)) ir_move_before(op, loop);
  }
}

static void block(IrBlock *b) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->nregions; r++) block(op->regions[r]);
    if (!pass_is_loop(op->kind)) continue;
    const bool loads = may_hoist_loads(op);
    for (uint32_t r = 0; r < op->nregions; r++) hoist(op, op->regions[r], loads);
  }
}

Status pass_licm(Pass *p) {
  PASS_EACH_FUNC(p, f) {
    pass_mark_memory(f->body);
    block(f->body);
    pass_clear_marks(f->body);
  }
  return ST_OK;
}
