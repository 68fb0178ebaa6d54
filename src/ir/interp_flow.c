// interp_flow: which relaxed loads fetch data.
//
// Two relaxed accesses never race, and protocols are made of that: flags that are polled, words that carry their flag beside
// the data. But where nothing that is done depends on what a relaxed load found (its value is only moved and computed with),
// the program cannot tell an old value from a new one, so something else must have ordered the load and the store. For such
// loads the checker asks for that order, as for plain ones.
//
//   v = ld(x); st(y, v)                     data
//   while ld(flag) != 1: pass               a look: the value decides
//   a, f = load(words); while f != 1: ...   a look too, and so is every load that a `while` repeats
#include "ir/interp_impl.h"

typedef struct Flow {
  const IrModule *m;
  Map seen; // values
} Flow;

static bool moved(Flow *f, const IrValue *v);

static bool results_moved(Flow *f, const IrOp *op) {
  for (uint32_t k = 0; k < op->nresults; k++)
    if (!moved(f, &op->results[k])) return false;
  return true;
}

typedef struct Callers {
  Flow *f;
  const IrFunc *of;
  uint32_t result;
  bool moved;
} Callers;
static bool caller(IrOp *op, void *user) {
  Callers *c = user;
  const char *callee = op->kind == OP_call ? ir_attr_s(op, ATTR_callee) : NULL;
  if (callee && callee == c->of->name->s && c->result < op->nresults)
    c->moved &= moved(c->f, &op->results[c->result]);
  return c->moved;
}

static bool handed_on(Flow *f, const IrOp *end, uint32_t k) { // operand k of a terminator
  const IrBlock *b = end->parent;
  if (end->kind == OP_return) {
    Callers c = {f, b->func, k, true};
    for (IrFunc *g = f->m->funcs; g && c.moved; g = g->next) ir_walk(g->body, caller, &c);
    return c.moved;
  }
  const IrOp *owner = b->owner;
  if (end->kind != OP_yield || !owner) return false;
  if (owner->kind == OP_if || owner->kind == OP_switch) return moved(f, &owner->results[k]);
  return owner->kind == OP_for && moved(f, b->args.data[1 + k]) && moved(f, &owner->results[k]);
}

static bool use_moves(Flow *f, const IrUse *u) {
  const IrOp *op = u->user;
  const uint32_t k = (uint32_t)(u - op->operands);
  switch (op->kind) {
  case OP_store:
  case OP_atomic_rmw:
  case OP_mem_set: return k == 1; // the value, not the address
  case OP_cmp:
  case OP_fcmp:
  case OP_ptr_add:
  case OP_int2ptr:
  case OP_symm_at: return false;
  case OP_select: return k > 0 && results_moved(f, op);
  case OP_shfl: return k == 0 && results_moved(f, op);
  case OP_from_thread: return results_moved(f, op);
  case OP_for: return k >= 3 && moved(f, op->regions[0]->args.data[k - 2]) && moved(f, &op->results[k - 3]);
  case OP_yield:
  case OP_return: return handed_on(f, op, k);
  case OP_call: {
    const char *name = ir_attr_s(op, ATTR_callee);
    for (const IrFunc *g = f->m->funcs; g; g = g->next)
      if (g->name->s == name && k < g->body->args.len) return moved(f, g->body->args.data[k]);
    return false;
  }
  default: return !op->nregions && ir_op_is_pure(op) && results_moved(f, op);
  }
}

static bool moved(Flow *f, const IrValue *v) {
  if (map_get(&f->seen, (uintptr_t)v, NULL)) return true;
  map_set(&f->seen, (uintptr_t)v, 1);
  for (const IrUse *u = v->uses; u; u = u->next)
    if (!use_moves(f, u)) return false;
  return true;
}

bool interp_is_data(World *w, const IrModule *m, const IrOp *op) {
  if (ir_attr_i(op, ATTR_order) != ORDER_relaxed) return false;
  if (op->kind == OP_store) return true;
  if (op->kind != OP_load || (op->parent->owner && op->parent->owner->kind == OP_while)) return false;
  Flow f = {.m = m};
  map_init(&f.seen, &w->arena);
  return moved(&f, &op->results[0]);
}
