// fold: constants, identities, canonical forms, shape ops on tiles of equal elements, control with a known outcome.
//
// needs:  nothing.
// keeps:  every effect, and every value bit for bit (NaN payloads aside).
// breaks: IrParam's reads and writes, which may become fewer.
//
// Canonical forms: the constant of a commutative op or comparison stands on the right, x - c is x + (-c), a tile of one
// known value is `const`, a splat comes after the scalar op, a broadcast after the op on the smaller tile.
// Each op is looked at once and again when an operand changed: time grows with the number of changes.
#include "pass/fold_impl.h"

#define QUEUED ((void *)1)

void fold_push(Fold *f, IrOp *op) {
  if (!op || op->aux == QUEUED) return;
  op->aux = QUEUED;
  vec_push(f->scratch, &f->work, op);
}

static void push_users(Fold *f, const IrValue *v) {
  for (const IrUse *u = v->uses; u; u = u->next) fold_push(f, u->user);
}

void fold_again(Fold *f, IrOp *op) {
  fold_push(f, op);
  for (uint32_t i = 0; i < op->nresults; i++) push_users(f, ir_result(op, i));
}

void fold_replace(Fold *f, IrValue *old, IrValue *with) {
  if (old == with) return;
  push_users(f, old);
  // what a terminator hands over matters to the op around it
  for (const IrUse *u = old->uses; u; u = u->next) {
    if (ir_ops[u->user->kind].traits & TRAIT_TERMINATOR) fold_push(f, u->user->parent->owner);
  }
  if (!with->name) with->name = old->name;
  ir_replace_uses(old, with);
}

static void push_operands(Fold *f, const IrOp *op) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (ir_operand(op, i)) fold_push(f, ir_operand(op, i)->def);
  }
  for (uint32_t r = 0; r < op->nregions; r++) {
    PASS_EACH_OP(op->regions[r], o) push_operands(f, o);
  }
}

void fold_erase(Fold *f, IrOp *op) {
  push_operands(f, op);
  ir_erase(op);
}

static bool is_dead(const IrOp *op) {
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (op->results[i].uses) return false;
  }
  return !(ir_ops[op->kind].traits & TRAIT_TERMINATOR) && ir_op_is_pure(op);
}

// Erased, or inside an erased one.
static bool is_gone(const IrOp *op) {
  for (; op; op = op->parent->owner) {
    if (!op->parent) return true;
  }
  return false;
}

static IrValue *evaluate(Fold *f, IrOp *op) {
  uint64_t in[3], out;
  if (!(ir_ops[op->kind].traits & TRAIT_ELEMENTWISE) || op->noperands == 0 || op->noperands > 3) return NULL;
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (ir_operand(op, i) && !pass_const(ir_operand(op, i), &in[i])) return NULL;
  }
  return pass_eval(op, in, &out) ? pass_const_bits(&f->b, ir_result(op, 0)->type, out) : NULL;
}

static IrValue *fold_value(Fold *f, IrOp *op) {
  IrValue *v = evaluate(f, op);
  if (!v) v = fold_arith(f, op);
  if (!v) v = fold_shape(f, op);
  return v;
}

static void fold_op(Fold *f, IrOp *op) {
  if (is_dead(op)) {
    fold_erase(f, op);
    return;
  }
  IrOp *before = op->prev;
  IrBlock *block = op->parent;
  f->b = ir_builder_before(op);
  f->b.m = f->pass->m;
  if (op->nregions && fold_control(f, op)) return;
  if (fold_memory(f, op)) return;
  if (op->nresults != 1) return;
  IrValue *v = fold_value(f, op);
  for (IrOp *o = before ? before->next : block->first; o && o != op; o = o->next) fold_push(f, o);
  if (!v || v->type != ir_result(op, 0)->type) return;
  fold_replace(f, ir_result(op, 0), v);
  fold_erase(f, op);
}

static void push_all(Fold *f, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    op->aux = NULL;
    fold_push(f, op);
    for (uint32_t r = 0; r < op->nregions; r++) push_all(f, op->regions[r]);
  }
}

Status pass_fold(Pass *p) {
  PASS_EACH_FUNC(p, func) {
    Fold f = {.pass = p, .scratch = p->scratch};
    push_all(&f, func->body);
    while (f.head < f.work.len) {
      IrOp *op = f.work.data[f.head++];
      op->aux = NULL;
      if (!is_gone(op)) fold_op(&f, op);
    }
  }
  return ST_OK;
}
