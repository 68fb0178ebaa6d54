// change: moves, replaces, erases and copies ops; walks and renumbers.
//
// An erased op keeps its memory until the module dies; its parent is NULL from then on, by which a walk knows it.
#include "ir/ir_impl.h"

#include <assert.h>
#include <string.h>

static void drop_use(IrUse *u) {
  if (u->value) {
    *u->pprev = u->next;
    if (u->next) u->next->pprev = u->pprev;
  }
  u->value = NULL;
  u->next = NULL;
  u->pprev = NULL;
}

void ir_set_operand(IrOp *op, uint32_t i, IrValue *v) {
  IrUse *u = &op->operands[i];
  drop_use(u);
  if (!v) return;
  u->value = v;
  u->next = v->uses;
  u->pprev = &v->uses;
  if (v->uses) v->uses->pprev = &u->next;
  v->uses = u;
}

void ir_replace_uses(IrValue *old, IrValue *with) {
  if (old == with || !old->uses) return;
  IrUse *last = old->uses;
  for (IrUse *u = old->uses; u; u = u->next) {
    u->value = with;
    last = u;
  }
  last->next = with->uses;
  if (with->uses) with->uses->pprev = &last->next;
  with->uses = old->uses;
  with->uses->pprev = &with->uses;
  old->uses = NULL;
}

static void unlink_op(IrOp *op) {
  if (op->prev)
    op->prev->next = op->next;
  else
    op->parent->first = op->next;
  if (op->next)
    op->next->prev = op->prev;
  else
    op->parent->last = op->prev;
  op->prev = op->next = NULL;
}

static void drop_all(IrOp *op) {
  for (uint32_t i = 0; i < op->noperands; i++) drop_use(&op->operands[i]);
  for (uint32_t i = 0; i < op->nregions; i++) {
    for (IrOp *o = op->regions[i]->first; o; o = o->next) drop_all(o);
  }
}

static bool has_uses(const IrOp *op) {
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (op->results[i].uses) return true;
  }
  return false;
}

// An op whose results are still used stays where it is (a bug of the caller: debug builds stop there).
void ir_erase(IrOp *op) {
  assert(!has_uses(op) && "ir_erase: results are still used");
  if (has_uses(op)) return;
  drop_all(op);
  unlink_op(op);
  op->parent = NULL;
}

// Regions of an op that comes from another function get that function and fresh ids.
static void enter_func(IrBlock *r, IrFunc *f) {
  r->func = f;
  for (uint32_t i = 0; i < r->args.len; i++) r->args.data[i]->id = f->next_id++;
  for (IrOp *op = r->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->nresults; i++) op->results[i].id = f->next_id++;
    for (uint32_t i = 0; i < op->nregions; i++) enter_func(op->regions[i], f);
  }
}

static void adopt(IrOp *op, IrBlock *b) {
  const bool other_func = op->parent->func != b->func;
  op->parent = b;
  for (uint32_t i = 0; i < op->nresults; i++) {
    op->results[i].block = b;
    if (other_func) op->results[i].id = b->func->next_id++;
  }
  for (uint32_t i = 0; other_func && i < op->nregions; i++) enter_func(op->regions[i], b->func);
}

void ir_move_before(IrOp *op, IrOp *before) {
  if (op == before) return;
  unlink_op(op);
  adopt(op, before->parent);
  op->next = before;
  op->prev = before->prev;
  if (op->prev)
    op->prev->next = op;
  else
    before->parent->first = op;
  before->prev = op;
}

void ir_move_to_end(IrOp *op, IrBlock *b) {
  unlink_op(op);
  adopt(op, b);
  op->prev = b->last;
  if (b->last)
    b->last->next = op;
  else
    b->first = op;
  b->last = op;
}

// ---- copies -------------------------------------------------------------------------------------------------------

static IrValue *mapped(const Map *values, IrValue *v) {
  IrValue *n = v ? map_getp(values, v) : NULL;
  return n ? n : v;
}

static void clone_attrs(IrOp *to, const IrOp *from, Arena *a) {
  if (!from->nattrs) return;
  to->attrs = arena_array(a, IrAttr, bits_next_pow2(from->nattrs));
  to->nattrs = from->nattrs;
  memcpy(to->attrs, from->attrs, from->nattrs * sizeof *to->attrs);
  for (uint32_t i = 0; i < to->nattrs; i++) {
    IrAttr *x = &to->attrs[i];
    if (ir_attrs[x->name].kind != AK_INTS || !x->ints.n) continue;
    x->ints.v = arena_copy(a, x->ints.v, x->ints.n * sizeof x->ints.v[0]);
  }
}

static IrOp *clone_one(IrBuilder *b, const IrOp *op, Map *values) {
  IrValue *few[8];
  const IrType *few_types[8];
  Arena *a = b->block->func->module->arena;
  IrValue **ops = op->noperands <= 8 ? few : arena_array(a, IrValue *, op->noperands);
  const IrType **types = op->nresults <= 8 ? few_types : arena_array(a, const IrType *, op->nresults);
  for (uint32_t i = 0; i < op->noperands; i++) ops[i] = mapped(values, op->operands[i].value);
  for (uint32_t i = 0; i < op->nresults; i++) types[i] = op->results[i].type;
  IrOp *copy = ir_build(b, op->kind, op->noperands, ops, op->nresults, types, op->nregions);
  copy->loc = op->loc;
  clone_attrs(copy, op, a);
  for (uint32_t i = 0; i < op->nresults; i++) {
    copy->results[i].name = op->results[i].name;
    map_setp(values, &op->results[i], &copy->results[i]);
  }
  for (uint32_t i = 0; i < op->nregions; i++) {
    const IrBlock *from = op->regions[i];
    IrBuilder in = ir_builder_at_end(copy->regions[i]);
    for (uint32_t j = 0; j < from->args.len; j++) {
      IrValue *arg = from->args.data[j];
      map_setp(values, arg, ir_block_arg(copy->regions[i], arg->type, arg->name));
    }
    for (const IrOp *o = from->first; o; o = o->next) clone_one(&in, o, values);
  }
  return copy;
}

IrOp *ir_clone_op(IrBuilder *b, const IrOp *op, Map *values) {
  Map own;
  if (!values) {
    map_init(&own, b->block->func->module->arena);
    values = &own;
  }
  return clone_one(b, op, values);
}

IrModule *ir_module_clone(const IrModule *m, Arena *a) {
  IrModule *n = ir_module_new(a, m->ctx, m->diags);
  n->stage = m->stage;
  n->num_warps = m->num_warps;
  n->extra_warps = m->extra_warps;
  n->num_stages = m->num_stages;
  n->max_registers = m->max_registers;
  n->lanes = m->lanes;
  for (const IrFunc *f = m->funcs; f; f = f->next) {
    IrFunc *g = ir_func_new(n, f->name, f->is_kernel);
    g->wait_class = f->wait_class;
    g->loc = f->loc;
    Map values;
    map_init(&values, a);
    for (uint32_t i = 0; i < f->body->args.len; i++) {
      IrValue *arg = f->body->args.data[i];
      map_setp(&values, arg, ir_block_arg(g->body, arg->type, arg->name));
    }
    for (uint32_t i = 0; i < f->params.len; i++) vec_push(a, &g->params, f->params.data[i]);
    for (uint32_t i = 0; i < f->results.len; i++) vec_push(a, &g->results, f->results.data[i]);
    IrBuilder b = ir_builder_at_end(g->body);
    for (const IrOp *o = f->body->first; o; o = o->next) clone_one(&b, o, &values);
  }
  return n;
}

// ---- walks --------------------------------------------------------------------------------------------------------

bool ir_encloses(const IrBlock *b, const IrOp *op) {
  for (const IrBlock *x = op->parent; x; x = x->owner ? x->owner->parent : NULL) {
    if (x == b) return true;
  }
  return false;
}

static void renumber_block(IrFunc *f, IrBlock *b) {
  for (uint32_t i = 0; i < b->args.len; i++) b->args.data[i]->id = f->next_id++;
  for (IrOp *op = b->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->nresults; i++) op->results[i].id = f->next_id++;
    for (uint32_t i = 0; i < op->nregions; i++) renumber_block(f, op->regions[i]);
  }
}

void ir_renumber(IrFunc *f) {
  f->next_id = 0;
  renumber_block(f, f->body);
}

bool ir_walk(IrBlock *b, bool (*fn)(IrOp *op, void *user), void *user) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    if (!fn(op, user)) return false;
    if (!op->parent) continue; // erased
    for (uint32_t i = 0; i < op->nregions; i++) {
      if (!ir_walk(op->regions[i], fn, user)) return false;
    }
  }
  return true;
}
