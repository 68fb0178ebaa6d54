// fold_control: regions whose outcome is known, loops that run once or never, carried values that never change, masks
// that hold everywhere or nowhere.
#include "pass/fold_impl.h"

// Puts region r of op, run exactly once with args, in op's place. The values it hands over, from `skip` on, become the results.
static void take_region(Fold *f, IrOp *op, uint32_t r, IrValue *const *args, uint32_t skip) {
  IrBlock *b = op->regions[r];
  for (uint32_t i = 0; i < b->args.len; i++) fold_replace(f, b->args.data[i], args[i]);
  const IrOp *end = ir_terminator(b);
  PASS_EACH_OP(b, o) fold_push(f, o);
  pass_splice(b, op, NULL, 0);
  for (uint32_t i = 0; i < op->nresults; i++) fold_replace(f, ir_result(op, i), ir_operand(end, i + skip));
  fold_erase(f, op);
}

static IrValue *region_yield(const IrOp *op, uint32_t r, uint32_t i) {
  return ir_operand(ir_terminator(op->regions[r]), i);
}

static bool is_used(const IrValue *v) { return v->uses != NULL; }

// Results that every region hands over alike.
static void fold_equal_results(Fold *f, IrOp *op) {
  for (uint32_t i = 0; i < op->nresults; i++) {
    IrValue *first = region_yield(op, 0, i);
    uint64_t a, b;
    bool same = true, known = pass_const(first, &a);
    for (uint32_t r = 1; r < op->nregions; r++) {
      IrValue *v = region_yield(op, r, i);
      same &= v == first;
      known = known && pass_const(v, &b) && a == b;
    }
    if (!is_used(ir_result(op, i)) || (!same && !known)) continue;
    fold_replace(f, ir_result(op, i), known ? pass_const_bits(&f->b, first->type, a) : first);
  }
}

// No ops but constants, which move before the op around b.
static bool is_empty(IrBlock *b) {
  PASS_EACH_OP(b, op) {
    if (op != b->last && op->kind != OP_const) return false;
  }
  pass_splice(b, b->owner, NULL, 0);
  return true;
}

// An `if` that only chooses between scalars is a select.
static bool fold_to_select(Fold *f, IrOp *op) {
  IrValue *c = ir_operand(op, 0);
  if (!is_empty(op->regions[0]) || !is_empty(op->regions[1])) return false;
  for (uint32_t i = 0; i < op->nresults; i++) {
    const IrType *t = op->results[i].type;
    if ((t->kind != IR_SCALAR && t->kind != IR_PTR) || t->level != c->type->level) return false;
  }
  for (uint32_t i = 0; i < op->nresults; i++) {
    IrValue *v = ir_select(&f->b, c, region_yield(op, 0, i), region_yield(op, 1, i));
    fold_push(f, v->def);
    fold_replace(f, ir_result(op, i), v);
  }
  fold_erase(f, op);
  return true;
}

static bool fold_if(Fold *f, IrOp *op) {
  uint64_t c, k;
  if (pass_const(ir_operand(op, 0), &c)) {
    take_region(f, op, c ? 0 : 1, NULL, 0);
    return true;
  }
  const IrOp *x = ir_operand(op, 0)->def;
  if (x && x->kind == OP_xor && pass_const(ir_operand(x, 1), &k) && k) { // if not c: the arms change places
    IrBlock *first = op->regions[0];
    op->regions[0] = op->regions[1];
    op->regions[1] = first;
    ir_set_operand(op, 0, ir_operand(x, 0));
  }
  fold_equal_results(f, op);
  return fold_to_select(f, op);
}

static bool fold_switch(Fold *f, IrOp *op) {
  int64_t i;
  const IrAttr *cases = ir_attr(op, ATTR_cases);
  if (op->nregions == 0 || !ir_const_int(ir_operand(op, 0), &i)) {
    if (op->nregions) fold_equal_results(f, op);
    return false;
  }
  uint32_t r = 0;
  while (r + 1 < op->nregions && !(cases && r < cases->ints.n && cases->ints.v[r] == i)) r++;
  take_region(f, op, r, NULL, 0);
  return true;
}

static bool fold_for(Fold *f, IrOp *op) {
  IrBlock *body = op->regions[0];
  const int64_t trips = pass_trip_count(op);
  if (trips == 0) {
    for (uint32_t i = 0; i < op->nresults; i++) fold_replace(f, ir_result(op, i), ir_operand(op, i + 3));
    fold_erase(f, op);
    return true;
  }
  if (trips == 1) {
    IrValue **args = arena_array(f->scratch, IrValue *, body->args.len);
    args[0] = ir_operand(op, 0);
    for (uint32_t i = 1; i < body->args.len; i++) args[i] = ir_operand(op, i + 2);
    take_region(f, op, 0, args, 0);
    return true;
  }
  if (trips > ir_attr_i(op, ATTR_min_trip)) ir_set_attr_i(op, ATTR_min_trip, trips);
  for (uint32_t i = 0; i < op->nresults; i++) {
    IrValue *arg = body->args.data[i + 1], *init = ir_operand(op, i + 3), *next = region_yield(op, 0, i);
    if (next != arg && next != init) continue;
    if (is_used(arg)) fold_replace(f, arg, init);
    if (is_used(ir_result(op, i))) fold_replace(f, ir_result(op, i), init);
  }
  return false;
}

static bool fold_while(Fold *f, IrOp *op) {
  IrBlock *before = op->regions[0], *body = op->regions[1];
  uint64_t c;
  if (pass_const(ir_operand(ir_terminator(before), 0), &c) && !c) {
    IrValue **args = arena_array(f->scratch, IrValue *, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++) args[i] = ir_operand(op, i);
    take_region(f, op, 0, args, 1);
    return true;
  }
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *arg = before->args.data[i], *init = ir_operand(op, i);
    if (region_yield(op, 1, i) == init && is_used(arg)) fold_replace(f, arg, init);
  }
  for (uint32_t i = 0; i < op->nresults; i++) {
    IrValue *v = region_yield(op, 0, i + 1), *arg = body->args.data[i];
    if (pass_defined_in(v, before)) {
      // what the body hands back unchanged, and the condition hands on unchanged, never changes
      if (v->def || v->block != before || region_yield(op, 1, v->index) != arg) continue;
      IrValue *inner = v;
      v = ir_operand(op, inner->index);
      fold_replace(f, inner, v);
    }
    if (is_used(arg)) fold_replace(f, arg, v);
    if (is_used(ir_result(op, i))) fold_replace(f, ir_result(op, i), v);
  }
  return false;
}

bool fold_control(Fold *f, IrOp *op) {
  switch (op->kind) {
  case OP_if: return fold_if(f, op);
  case OP_switch: return fold_switch(f, op);
  case OP_for: return fold_for(f, op);
  case OP_while: return fold_while(f, op);
  default: return false;
  }
}

bool fold_memory(Fold *f, IrOp *op) {
  uint64_t k;
  switch (op->kind) {
  case OP_store: {
    IrValue *mask = ir_operand(op, 2);
    if (!mask || !pass_const(mask, &k)) return false;
    if (k) {
      ir_set_operand(op, 2, NULL);
      return false;
    }
    break;
  }
  case OP_assume:
  case OP_assert:
    if (!pass_const(ir_operand(op, 0), &k) || !k) return false;
    break;
  default: return false;
  }
  fold_erase(f, op);
  return true;
}
