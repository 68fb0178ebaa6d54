// build: modules, functions, blocks and ops are made here. All memory comes from the module's arena.
//
// Arrays of an op (operands, results, regions) always have room for the next power of two of their length, so that
// appending is amortised without a capacity field.
#include "ir/ir_impl.h"

#include <string.h>

static uint32_t room_for(uint32_t n) { return n ? (uint32_t)bits_next_pow2(n) : 0; }
static bool is_full(uint32_t n) { return n == room_for(n); }

// ---- modules and functions ----------------------------------------------------------------------------------------

IrModule *ir_module_new(Arena *a, IrCtx *ctx, Diags *diags) {
  IrModule *m = arena_new(a, IrModule);
  *m = (IrModule){.arena = a, .ctx = ctx, .diags = diags, .num_warps = 4, .num_stages = 2, .lanes = 32};
  return m;
}

static IrBlock *block_new(IrFunc *f, IrOp *owner) {
  IrBlock *b = arena_new(f->module->arena, IrBlock);
  b->func = f;
  b->owner = owner;
  return b;
}

IrFunc *ir_func_new(IrModule *m, const Str *name, bool is_kernel) {
  IrFunc *f = arena_new(m->arena, IrFunc);
  f->module = m;
  f->name = name;
  f->is_kernel = is_kernel;
  f->body = block_new(f, NULL);
  if (m->last_func)
    m->last_func->next = f;
  else
    m->funcs = f;
  m->last_func = f;
  return f;
}

IrValue *ir_func_param(IrFunc *f, const IrType *t, const Str *name) {
  vec_push(f->module->arena, &f->params, ((IrParam){.name = name, .divisible = 1}));
  return ir_block_arg(f->body, t, name);
}

IrFunc *ir_func_find(const IrModule *m, const Str *name) {
  for (IrFunc *f = m->funcs; f; f = f->next) {
    if (f->name == name) return f;
  }
  return NULL;
}

void ir_func_remove(IrModule *m, IrFunc *f) {
  IrFunc *prev = NULL;
  for (IrFunc *g = m->funcs; g; prev = g, g = g->next) {
    if (g != f) continue;
    if (prev)
      prev->next = f->next;
    else
      m->funcs = f->next;
    if (m->last_func == f) m->last_func = prev;
    f->next = NULL;
    return;
  }
}

IrValue *ir_block_arg(IrBlock *b, const IrType *t, const Str *name) {
  Arena *a = b->func->module->arena;
  IrValue *v = arena_new(a, IrValue);
  *v = (IrValue){.type = t, .block = b, .index = b->args.len, .id = b->func->next_id++, .name = name};
  vec_push(a, &b->args, v);
  return v;
}

// ---- ops ----------------------------------------------------------------------------------------------------------

IrBuilder ir_builder_at_end(IrBlock *b) { return (IrBuilder){.m = b->func->module, .block = b}; }
IrBuilder ir_builder_before(IrOp *op) {
  return (IrBuilder){.m = op->parent->func->module, .block = op->parent, .before = op, .loc = op->loc};
}
IrBuilder ir_builder_after(IrOp *op) {
  return (IrBuilder){.m = op->parent->func->module, .block = op->parent, .before = op->next, .loc = op->loc};
}

static void add_use(IrUse *u, IrOp *user, IrValue *v) {
  *u = (IrUse){.value = v, .user = user};
  if (!v) return;
  u->next = v->uses;
  u->pprev = &v->uses;
  if (v->uses) v->uses->pprev = &u->next;
  v->uses = u;
}

static void init_result(IrOp *op, uint32_t i, const IrType *t) {
  op->results[i] =
      (IrValue){.type = t, .def = op, .block = op->parent, .index = i, .id = op->parent->func->next_id++};
}

static void link_op(IrBlock *b, IrOp *op, IrOp *before) {
  op->parent = b;
  op->next = before;
  op->prev = before ? before->prev : b->last;
  if (op->prev)
    op->prev->next = op;
  else
    b->first = op;
  if (before)
    before->prev = op;
  else
    b->last = op;
}

IrOp *ir_build(IrBuilder *b, IrOpKind k, uint32_t nops, IrValue *const *ops, uint32_t nres,
               const IrType *const *res, uint32_t nregions) {
  Arena *a = b->block->func->module->arena;
  IrOp *op = arena_new(a, IrOp);
  op->kind = k;
  op->loc = b->loc;
  op->parent = b->block;
  op->noperands = nops;
  op->nresults = nres;
  op->nregions = nregions;
  if (nops) op->operands = arena_array(a, IrUse, room_for(nops));
  if (nres) op->results = arena_array(a, IrValue, room_for(nres));
  if (nregions) op->regions = arena_array(a, IrBlock *, room_for(nregions));
  for (uint32_t i = 0; i < nops; i++) add_use(&op->operands[i], op, ops[i]);
  for (uint32_t i = 0; i < nres; i++) init_result(op, i, res[i]);
  for (uint32_t i = 0; i < nregions; i++) op->regions[i] = block_new(b->block->func, op);
  link_op(b->block, op, b->before);
  return op;
}

IrBlock *ir_op_add_region(IrOp *op) {
  Arena *a = op->parent->func->module->arena;
  if (is_full(op->nregions)) {
    IrBlock **more = arena_array(a, IrBlock *, room_for(op->nregions + 1));
    if (op->nregions) memcpy(more, op->regions, op->nregions * sizeof(IrBlock *));
    op->regions = more;
  }
  return op->regions[op->nregions++] = block_new(op->parent->func, op);
}

void ir_op_add_operand(IrOp *op, IrValue *v) {
  Arena *a = op->parent->func->module->arena;
  if (is_full(op->noperands)) {
    IrUse *more = arena_array(a, IrUse, room_for(op->noperands + 1));
    for (uint32_t i = 0; i < op->noperands; i++) { // the lists of uses run through the array that moves
      more[i] = op->operands[i];
      if (more[i].pprev) *more[i].pprev = &more[i];
      if (more[i].next) more[i].next->pprev = &more[i].next;
    }
    op->operands = more;
  }
  add_use(&op->operands[op->noperands++], op, v);
}

IrValue *ir_op_add_result(IrOp *op, const IrType *t) {
  Arena *a = op->parent->func->module->arena;
  if (is_full(op->nresults)) {
    IrValue *more = arena_array(a, IrValue, room_for(op->nresults + 1));
    for (uint32_t i = 0; i < op->nresults; i++) {
      more[i] = op->results[i];
      if (more[i].uses) more[i].uses->pprev = &more[i].uses;
      for (IrUse *u = more[i].uses; u; u = u->next) u->value = &more[i];
    }
    op->results = more;
  }
  init_result(op, op->nresults, t);
  return &op->results[op->nresults++];
}

// ---- short forms --------------------------------------------------------------------------------------------------

static IrOp *build_n(IrBuilder *b, IrOpKind k, uint32_t nops, IrValue *const *ops, const IrType *res) {
  return ir_build(b, k, nops, ops, 1, &res, 0);
}

static IrValue *const_bits(IrBuilder *b, const IrType *t, uint64_t bits) {
  IrOp *op = build_n(b, OP_const, 0, NULL, t);
  ir_set_attr_i(op, ATTR_value, (int64_t)bits);
  return &op->results[0];
}

IrValue *ir_const_i(IrBuilder *b, const IrType *t, int64_t v) {
  if (ir_type_is_float(t)) return ir_const_f(b, t, (double)v);
  return const_bits(b, t, (uint64_t)v & (ir_type_is_ptr(t) ? UINT64_MAX : ir_dtype_mask(t->dtype)));
}

IrValue *ir_const_f(IrBuilder *b, const IrType *t, double v) {
  return const_bits(b, t, ir_float_bits(t->dtype, v));
}

IrValue *ir_unary(IrBuilder *b, IrOpKind k, IrValue *a) { return &build_n(b, k, 1, &a, a->type)->results[0]; }

IrValue *ir_binary(IrBuilder *b, IrOpKind k, IrValue *x, IrValue *y) {
  return &build_n(b, k, 2, (IrValue *[]){x, y}, x->type)->results[0];
}

static IrValue *compare(IrBuilder *b, IrOpKind k, IrAttrName attr, int64_t p, IrValue *x, IrValue *y) {
  IrOp *op = build_n(b, k, 2, (IrValue *[]){x, y}, ir_type_with_dtype(b->m->ctx, x->type, IR_i1));
  ir_set_attr_i(op, attr, p);
  return &op->results[0];
}

IrValue *ir_cmp(IrBuilder *b, IrCmp p, IrValue *x, IrValue *y) {
  return compare(b, OP_cmp, ATTR_cmp, p, x, y);
}
IrValue *ir_fcmp(IrBuilder *b, IrFcmp p, IrValue *x, IrValue *y) {
  return compare(b, OP_fcmp, ATTR_fcmp, p, x, y);
}

IrValue *ir_select(IrBuilder *b, IrValue *c, IrValue *x, IrValue *y) {
  return &build_n(b, OP_select, 3, (IrValue *[]){c, x, y}, x->type)->results[0];
}

IrValue *ir_cast(IrBuilder *b, IrOpKind k, IrValue *a, const IrType *to) {
  return &build_n(b, k, 1, &a, to)->results[0];
}

IrValue *ir_math(IrBuilder *b, IrMath fn, IrValue *a, IrValue *b2) {
  IrOp *op = build_n(b, OP_math, b2 ? 2 : 1, (IrValue *[]){a, b2}, a->type);
  ir_set_attr_i(op, ATTR_fn, fn);
  return &op->results[0];
}

IrValue *ir_ptr_add(IrBuilder *b, IrValue *p, IrValue *n) { return ir_binary(b, OP_ptr_add, p, n); }

IrValue *ir_splat(IrBuilder *b, IrValue *a, int rank, const int32_t *shape) {
  return ir_cast(b, OP_splat, a, ir_type_with_shape(b->m->ctx, a->type, rank, shape));
}

IrValue *ir_expand_dims(IrBuilder *b, IrValue *a, int axis) {
  const IrType *t = a->type;
  int32_t shape[IR_MAX_RANK + 1];
  for (int i = 0, j = 0; i <= t->rank; i++) shape[i] = i == axis ? 1 : t->shape[j++];
  IrValue *r = ir_cast(b, OP_expand_dims, a, ir_type_with_shape(b->m->ctx, t, t->rank + 1, shape));
  ir_set_attr_i(r->def, ATTR_axis, axis);
  return r;
}

IrValue *ir_broadcast(IrBuilder *b, IrValue *a, int rank, const int32_t *shape) {
  return ir_cast(b, OP_broadcast, a, ir_type_with_shape(b->m->ctx, a->type, rank, shape));
}

IrValue *ir_to_thread(IrBuilder *b, IrValue *a) {
  if (ir_type_is_thread(a->type)) return a;
  return ir_cast(b, OP_to_thread, a, ir_type_with_level(b->m->ctx, a->type, LEVEL_thread));
}

IrValue *ir_load(IrBuilder *b, IrValue *p, IrValue *mask, IrValue *other) {
  const IrType *t = ir_type_with_dtype(b->m->ctx, p->type, p->type->dtype);
  return &build_n(b, OP_load, 3, (IrValue *[]){p, mask, other}, t)->results[0];
}

IrOp *ir_store(IrBuilder *b, IrValue *p, IrValue *v, IrValue *mask) {
  return ir_build(b, OP_store, 3, (IrValue *[]){p, v, mask}, 0, NULL, 0);
}

IrOp *ir_yield(IrBuilder *b, uint32_t n, IrValue *const *vs) {
  return ir_build(b, OP_yield, n, vs, 0, NULL, 0);
}
IrOp *ir_return(IrBuilder *b, uint32_t n, IrValue *const *vs) {
  return ir_build(b, OP_return, n, vs, 0, NULL, 0);
}
