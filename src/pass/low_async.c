// low_async: copies of whole blocks through tensor descriptors in the lowered stage. They stay what they are, one thread's work; what is
// added is the order that program code takes for granted:
//
//   desc_store_async   all threads' writes to the buffer, made visible to the accelerator and over, before it reads
//   desc_load_async    all threads' accesses to a buffer of its own over, before it writes (a ring's stages have barriers in the program)
//   async_wait         of stores stays; that of copy_async becomes copy_wait
#include "pass/low.h"

static bool is_between(const IrOp *op) { return op->kind == OP_desc_store_async || ir_op_is_pure(op); }

// Does a barrier with a fence before it stand right before op?
static bool is_ordered(const IrOp *op) {
  const IrOp *p = op->prev;
  while (p && is_between(p)) p = p->prev;
  if (!p || p->kind != OP_barrier) return false;
  for (p = p->prev; p && is_between(p);) p = p->prev;
  return p && p->kind == OP_fence && ir_attr_i(p, ATTR_proxy) == PROXY_async;
}

static bool in_ring(const IrValue *mem) { return mem->def && mem->def->kind == OP_mem_view; }

static void order_before(Low *l, IrOp *op) {
  l->b = ir_builder_before(op);
  l->b.loc = op->loc;
  pass_async_fence(&l->b);
  low_barrier(l);
}

typedef struct Kinds {
  bool stores, loads;
} Kinds;
static bool find_kind(IrOp *op, void *user) {
  Kinds *k = user;
  k->stores |= op->kind == OP_desc_store_async;
  k->loads |= op->kind == OP_copy_async || op->kind == OP_copy_pack;
  return true;
}
// What a wait is for: the named tokens, or all of the function where none is named.
static Kinds kinds_of(Low *l, const IrOp *wait) {
  Kinds k = {0};
  for (uint32_t i = 0; i < wait->noperands; i++) {
    const IrOp *def = ir_operand(wait, i)->def;
    if (!def ||
        (def->kind != OP_desc_store_async && def->kind != OP_copy_async)) { // handed on: may be either
      ir_walk(l->f->body, find_kind, &k);
      return k;
    }
    find_kind((IrOp *)def, &k);
  }
  if (!wait->noperands) ir_walk(l->f->body, find_kind, &k);
  return k;
}

static void low_wait(Low *l, IrOp *op) {
  const Kinds k = kinds_of(l, op);
  const int64_t pending = ir_attr_i(op, ATTR_pending);
  if (k.stores && k.loads && pending && !op->noperands)
    low_fail(l, op->loc, "a wait for all but %lld of loads and stores together: name the tokens to wait for",
             (long long)pending);
  if (k.loads || !k.stores) {
    IrOp *wait = ir_build(&l->b, OP_copy_wait, 0, NULL, 0, NULL, 0);
    ir_set_attr_i(wait, ATTR_pending, op->noperands ? 0 : pending);
  }
  if (k.stores && !k.loads) return; // as it is
  if (k.stores) {                   // for all of them: tokens of loads are gone
    const IrType *t = op->results[0].type;
    IrOp *wait = ir_build(&l->b, OP_async_wait, 0, NULL, 1, &t, 0);
    if (ir_attr_i(op, ATTR_reads)) ir_set_attr_i(wait, ATTR_reads, 1);
    ir_replace_uses(ir_result(op, 0), ir_result(wait, 0));
  }
  vec_push(l->arena, &l->dead, op);
}

bool low_async(Low *l, IrOp *op) {
  switch (op->kind) {
  case OP_desc_load_async:
    if (!in_ring(ir_operand(op, 1))) order_before(l, op);
    return true;
  case OP_desc_store_async:
    if (!is_ordered(op)) order_before(l, op);
    return true;
  case OP_async_wait: low_wait(l, op); return true;
  default: return false;
  }
}
