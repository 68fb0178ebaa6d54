// A generator of random tile-stage kernels for the tests of the placement. All floats are small whole numbers, so that sums
// are exact in any order. See pass_place_fuzz.c and api_place_fuzz.c.
#ifndef PASS_PLACE_GEN_H
#define PASS_PLACE_GEN_H

#include "pass_place.h"

typedef struct Gen {
  Arena *a;
  IrModule *m;
  IrCtx *c;
  IrFunc *f;
  IrBuilder b;
  Rng r;
  Vec(IrValue *) tiles, scalars; // in reach
  int budget, depth, nptr;
  IrValue *ptr[8];
  bool stored;
} Gen;

static uint32_t pick(Gen *g, uint32_t n) { return (uint32_t)(rng_next(&g->r) % n); }
static const IrType *scalar(Gen *g, IrDtype d) { return ir_type_scalar(g->c, d, LEVEL_program); }
static IrValue *ci(Gen *g, const IrType *t, int64_t v) { return ir_const_i(&g->b, t, v); }

static const int32_t shapes[][4] = { // rank, then axes
    {1, 64},    {1, 256},   {1, 8},        {2, 16, 32},  {2, 32, 16}, {2, 64, 4},
    {2, 1, 64}, {2, 64, 1}, {3, 4, 8, 16}, {3, 8, 2, 4}, {2, 128, 8}};

static IrValue *squash(Gen *g, IrValue *v) { // floats stay small
  const IrType *t = v->type;
  if (!ir_type_is_float(t)) return v;
  const double lim = t->dtype == IR_f16 || t->dtype == IR_bf16 ? 8 : 32;
  IrValue *lo = ir_const_f(&g->b, t, -lim), *hi = ir_const_f(&g->b, t, lim);
  return ir_binary(&g->b, OP_fmax, ir_binary(&g->b, OP_fmin, v, hi), lo);
}

static void keep(Gen *g, IrValue *v) {
  if (v->type->kind == IR_TILE)
    vec_push(g->a, &g->tiles, v);
  else
    vec_push(g->a, &g->scalars, v);
}

static IrValue *any_tile(Gen *g) { return g->tiles.len ? g->tiles.data[pick(g, g->tiles.len)] : NULL; }
static IrValue *tile_like(Gen *g, const IrType *t) { // of this type
  for (int i = 0; i < 12 && g->tiles.len; i++) {
    IrValue *v = any_tile(g);
    if (v->type == t) return v;
  }
  return NULL;
}
static IrValue *int_scalar(Gen *g) {
  for (int i = 0; i < 8 && g->scalars.len; i++) {
    IrValue *v = g->scalars.data[pick(g, g->scalars.len)];
    if (v->type == scalar(g, IR_i32)) return v;
  }
  return ci(g, scalar(g, IR_i32), pick(g, 40));
}
// A scalar in 0..n-1.
static IrValue *small_scalar(Gen *g, int64_t n) {
  IrValue *v = int_scalar(g);
  const IrType *t = v->type;
  return ir_binary(&g->b, OP_rem_u, ir_binary(&g->b, OP_and, v, ci(g, t, 0x7fff)), ci(g, t, n));
}

static IrValue *axis_index(Gen *g, int axis, int rank, const int32_t *shape) {
  const IrType *t = ir_type_tile(g->c, IR_i32, 1, &shape[axis]);
  IrOp *ar = ir_build(&g->b, OP_arange, 0, NULL, 1, &t, 0);
  ir_set_attr_i(ar, ATTR_start, 0);
  ir_set_attr_i(ar, ATTR_end, shape[axis]);
  IrValue *v = ir_result(ar, 0);
  for (int i = 0; i < rank; i++) {
    if (i != axis) v = ir_expand_dims(&g->b, v, i < axis ? i : v->type->rank);
  }
  return rank > 1 ? ir_broadcast(&g->b, v, rank, shape) : v;
}

// Offsets that reach each element of a dense block once, in an order of axes, from a scalar base.
static IrValue *offsets(Gen *g, const IrType *t, bool permute) {
  IrValue *sum = NULL;
  int64_t stride = 1;
  const bool flip = permute && pick(g, 4) == 0;
  for (int k = 0; k < t->rank; k++) {
    const int axis = flip ? k : t->rank - 1 - k;
    IrValue *x = axis_index(g, axis, t->rank, t->shape);
    x = ir_binary(&g->b, OP_mul, x, ir_const_i(&g->b, x->type, stride));
    sum = sum ? ir_binary(&g->b, OP_add, sum, x) : x;
    stride *= t->shape[axis];
  }
  IrValue *base = pick(g, 3) ? small_scalar(g, 64) : ci(g, scalar(g, IR_i32), 16 * pick(g, 8));
  return ir_binary(&g->b, OP_add, sum, ir_splat(&g->b, base, t->rank, t->shape));
}

static IrValue *mask_of(Gen *g, const IrType *t) {
  const int axis = (int)pick(g, (uint32_t)t->rank);
  const IrCmp cmps[] = {CMP_slt, CMP_slt, CMP_sle, CMP_sge, CMP_ne, CMP_sgt};
  IrValue *x = axis_index(g, axis, t->rank, t->shape);
  IrValue *lim = ir_splat(&g->b, small_scalar(g, t->shape[axis] + 3), t->rank, t->shape);
  IrValue *m = pick(g, 5) ? ir_cmp(&g->b, cmps[pick(g, 6)], x, lim) : ir_cmp(&g->b, cmps[pick(g, 6)], lim, x);
  if (pick(g, 3) == 0) m = ir_binary(&g->b, pick(g, 4) ? OP_and : OP_or, m, mask_of(g, t));
  return m;
}

static const IrType *random_shape(Gen *g, IrDtype d) {
  const int32_t *s = shapes[pick(g, DT_COUNTOF(shapes))];
  return ir_type_tile(g->c, d, s[0], s + 1);
}

static IrValue *pointers(Gen *g, IrValue *p, IrValue *off) {
  IrValue *s = ir_splat(&g->b, p, off->type->rank, off->type->shape);
  return ir_ptr_add(&g->b, s, off);
}

static void gen_load(Gen *g) {
  IrValue *p = g->ptr[pick(g, (uint32_t)g->nptr)];
  const IrType *t = random_shape(g, p->type->dtype);
  IrValue *off = offsets(g, t, true);
  if (pick(g, 6) == 0) {
    IrValue *n = ir_splat(&g->b, ir_binary(&g->b, OP_add, small_scalar(g, 200), ci(g, scalar(g, IR_i32), 1)),
                          t->rank, t->shape);
    off = ir_binary(&g->b, OP_rem_s, off, n);
  }
  IrValue *mask = pick(g, 3) ? mask_of(g, t) : NULL;
  IrValue *other =
      mask && pick(g, 2) ? (ir_type_is_float(t) ? ir_const_f(&g->b, t, 3) : ir_const_i(&g->b, t, 1)) : NULL;
  IrValue *v = ir_load(&g->b, pointers(g, p, off), mask, other);
  if (v->type->dtype == IR_f16 || v->type->dtype == IR_bf16) keep(g, v);
  keep(g, v);
}

static void gen_store(Gen *g) {
  IrValue *v = any_tile(g);
  if (!v) return;
  for (int i = 0; i < g->nptr; i++) {
    IrValue *p = g->ptr[(i + (int)pick(g, 8)) % g->nptr];
    if (p->type->dtype != v->type->dtype) continue;
    IrValue *off = offsets(g, v->type, true);
    ir_store(&g->b, pointers(g, p, off), v, pick(g, 2) ? mask_of(g, v->type) : NULL);
    g->stored = true;
    return;
  }
}

// In place: the same address is read and written.
static void gen_update(Gen *g) {
  IrValue *p = g->ptr[pick(g, (uint32_t)g->nptr)], *q = g->ptr[pick(g, (uint32_t)g->nptr)];
  if (q->type != p->type) q = p;
  const IrType *t = random_shape(g, p->type->dtype);
  IrValue *off = offsets(g, t, true), *mask = pick(g, 2) ? mask_of(g, t) : NULL;
  IrValue *v = ir_load(&g->b, pointers(g, p, off), mask, NULL);
  IrValue *w = ir_type_is_float(t) ? squash(g, ir_binary(&g->b, OP_fadd, v, ir_const_f(&g->b, t, 1)))
                                   : ir_binary(&g->b, OP_add, v, ir_const_i(&g->b, t, 1));
  ir_store(&g->b, pointers(g, q, pick(g, 3) ? off : offsets(g, t, true)), w, mask);
}

static void gen_elementwise(Gen *g) {
  IrValue *x = any_tile(g);
  if (!x) return;
  const IrType *t = x->type;
  IrValue *y = tile_like(g, t), *r = NULL;
  if (!y) y = x;
  if (t->dtype == IR_i1) {
    const IrOpKind ops[] = {OP_and, OP_or, OP_xor};
    r = ir_binary(&g->b, ops[pick(g, 3)], x, y);
  } else if (ir_type_is_float(t)) {
    const IrOpKind ops[] = {OP_fadd, OP_fsub, OP_fmul, OP_fmax, OP_fmin};
    switch (pick(g, 4)) {
    case 0: r = ir_select(&g->b, ir_fcmp(&g->b, (IrFcmp)pick(g, FCMP_COUNT), x, y), x, y); break;
    case 1: r = ir_select(&g->b, mask_of(g, t), x, y); break;
    default: r = squash(g, ir_binary(&g->b, ops[pick(g, 5)], x, y));
    }
  } else {
    const IrOpKind ops[] = {OP_add,   OP_sub,   OP_mul,   OP_and,   OP_xor,
                            OP_max_s, OP_min_u, OP_rem_s, OP_div_u, OP_shr_u};
    if (pick(g, 4) == 0)
      r = ir_select(&g->b, ir_cmp(&g->b, (IrCmp)pick(g, CMP_COUNT), x, y), x, y);
    else
      r = ir_binary(&g->b, ops[pick(g, 10)], x, y);
  }
  keep(g, r);
}

static void gen_cast(Gen *g) {
  IrValue *x = any_tile(g);
  if (!x) return;
  const IrDtype d = x->type->dtype;
  const IrDtype to[] = {IR_i32, IR_f32, IR_i8, IR_i64, IR_f16, IR_bf16, IR_f64};
  const IrDtype e = to[pick(g, 7)];
  if (e == d) return;
  const IrType *t = ir_type_with_dtype(g->c, x->type, e);
  const bool ff = ir_dtypes[d].cls == IR_FLOAT, tf = ir_dtypes[e].cls == IR_FLOAT;
  IrValue *r;
  if (ff && tf) {
    r = ir_cast(&g->b, OP_fcast, x, t);
  } else if (ff) {
    r = ir_cast(&g->b, OP_f2si, x, t);
  } else if (tf) {
    if (d != IR_i1) x = ir_binary(&g->b, OP_and, x, ir_const_i(&g->b, x->type, 7));
    r = ir_cast(&g->b, d == IR_i1 ? OP_ui2f : OP_si2f, x, t);
  } else {
    r = ir_cast(&g->b,
                ir_dtypes[e].bits < ir_dtypes[d].bits ? OP_trunc
                : pick(g, 2) && d != IR_i1            ? OP_ext_s
                                                      : OP_ext_u,
                x, t);
  }
  keep(g, squash(g, r));
}

static void gen_shape(Gen *g) {
  IrValue *x = any_tile(g);
  if (!x) return;
  const IrType *t = x->type;
  const int64_t n = ir_type_elems(t);
  switch (pick(g, 7)) {
  case 0: {
    if (t->rank < 2) return;
    int64_t perm[3] = {1, 0, 2};
    if (t->rank == 3 && pick(g, 2)) perm[0] = 2, perm[1] = 0, perm[2] = 1;
    int32_t shape[3];
    for (int i = 0; i < t->rank; i++) shape[i] = t->shape[perm[i]];
    IrValue *r = ir_cast(&g->b, OP_trans, x, ir_type_with_shape(g->c, t, t->rank, shape));
    ir_set_attr_ints(r->def, ATTR_perm, perm, (uint32_t)t->rank);
    keep(g, r);
    return;
  }
  case 1: {
    for (int i = 0; i < 10; i++) {
      const int32_t *s = shapes[pick(g, DT_COUNTOF(shapes))];
      const IrType *to = ir_type_with_shape(g->c, t, s[0], s + 1);
      if (ir_type_elems(to) != n) continue;
      keep(g, ir_cast(&g->b, OP_reshape, x, to));
      return;
    }
    const int32_t line = (int32_t)n;
    keep(g, ir_cast(&g->b, OP_reshape, x, ir_type_with_shape(g->c, t, 1, &line)));
    return;
  }
  case 2: {
    if (t->rank > 2) return;
    const int axis = (int)pick(g, (uint32_t)t->rank + 1);
    IrValue *r = ir_expand_dims(&g->b, x, axis);
    int32_t shape[3];
    for (int i = 0; i < r->type->rank; i++) shape[i] = r->type->shape[i];
    shape[axis] = n > 512 ? 2 : 8;
    keep(g, ir_broadcast(&g->b, r, r->type->rank, shape));
    return;
  }
  case 3: {
    IrValue *y = tile_like(g, t);
    if (!y || t->rank > 2 || n > 1024) return;
    int32_t shape[3];
    for (int i = 0; i < t->rank; i++) shape[i] = t->shape[i];
    shape[t->rank] = 2;
    IrValue *ops[2] = {x, y};
    const IrType *jt = ir_type_with_shape(g->c, t, t->rank + 1, shape);
    keep(g, ir_result(ir_build(&g->b, OP_join, 2, ops, 1, &jt, 0), 0));
    return;
  }
  case 4: {
    if (t->rank < 2 || t->shape[t->rank - 1] != 2) return;
    const IrType *h = ir_type_with_shape(g->c, t, t->rank - 1, t->shape), *both[2] = {h, h};
    IrOp *s = ir_build(&g->b, OP_split, 1, &x, 2, both, 0);
    keep(g, ir_result(s, 0));
    keep(g, ir_result(s, 1));
    return;
  }
  case 5: {
    IrValue *y = tile_like(g, t);
    if (!y || n > 1024) return;
    int32_t shape[3];
    for (int i = 0; i < t->rank; i++) shape[i] = t->shape[i];
    shape[0] *= 2;
    IrValue *ops[2] = {x, y};
    const IrType *ct = ir_type_with_shape(g->c, t, t->rank, shape);
    keep(g, ir_result(ir_build(&g->b, OP_cat, 2, ops, 1, &ct, 0), 0));
    return;
  }
  default: {
    const int axis = (int)pick(g, (uint32_t)t->rank);
    IrValue *i = axis_index(g, (int)pick(g, (uint32_t)t->rank), t->rank, t->shape);
    i = ir_binary(&g->b, OP_xor, i, ir_splat(&g->b, small_scalar(g, 8), t->rank, t->shape));
    i = ir_binary(&g->b, OP_and, i, ir_const_i(&g->b, i->type, t->shape[axis] - 1));
    IrValue *ops[2] = {x, i};
    IrOp *s = ir_build(&g->b, OP_gather, 2, ops, 1, &t, 0);
    ir_set_attr_i(s, ATTR_axis, axis);
    keep(g, ir_result(s, 0));
  }
  }
}

static void combine_region(Gen *g, IrOp *op, const IrType *e, uint32_t n) {
  IrBlock *r = op->regions[0];
  IrValue *in[4];
  for (uint32_t i = 0; i < 2 * n; i++) in[i] = ir_block_arg(r, i % n == 0 ? e : scalar(g, IR_i32), NULL);
  IrBuilder b = ir_builder_at_end(r);
  if (n == 1) {
    const IrOpKind fl[] = {OP_fadd, OP_fmax, OP_fmin}, in_[] = {OP_add, OP_max_s, OP_min_u, OP_xor, OP_and};
    IrValue *v = e->dtype == IR_i1
                     ? ir_binary(&b, pick(g, 2) ? OP_or : OP_and, in[0], in[1])
                     : ir_binary(&b, ir_type_is_float(e) ? fl[pick(g, 3)] : in_[pick(g, 5)], in[0], in[1]);
    ir_yield(&b, 1, &v);
    return;
  }
  // the larger value, the smaller index among equals
  IrValue *more =
      ir_type_is_float(e) ? ir_fcmp(&b, FCMP_ogt, in[0], in[2]) : ir_cmp(&b, CMP_sgt, in[0], in[2]);
  IrValue *same =
      ir_type_is_float(e) ? ir_fcmp(&b, FCMP_oeq, in[0], in[2]) : ir_cmp(&b, CMP_eq, in[0], in[2]);
  IrValue *left = ir_binary(&b, OP_or, more, ir_binary(&b, OP_and, same, ir_cmp(&b, CMP_slt, in[1], in[3])));
  IrValue *vs[2] = {ir_select(&b, left, in[0], in[2]), ir_select(&b, left, in[1], in[3])};
  ir_yield(&b, 2, vs);
}

static void gen_reduce(Gen *g, bool scan) {
  IrValue *x = any_tile(g);
  if (!x) return;
  const IrType *t = x->type;
  const int axis = (int)pick(g, (uint32_t)t->rank);
  if ((t->dtype == IR_f16 || t->dtype == IR_bf16) && t->shape[axis] > 16) return;
  const uint32_t n = pick(g, 4) || t->dtype == IR_i1 ? 1 : 2;
  int32_t shape[IR_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < t->rank; i++) {
    if (i != axis || scan) shape[rank++] = t->shape[i];
  }
  IrValue *ops[2] = {x, n == 2 ? axis_index(g, axis, t->rank, t->shape) : NULL};
  const IrType *rt[2] = {ir_type_with_shape(g->c, t, rank, shape), NULL};
  if (n == 2) rt[1] = ir_type_with_shape(g->c, ops[1]->type, rank, shape);
  IrOp *op = ir_build(&g->b, scan ? OP_scan : OP_reduce, n, ops, n, rt, 1);
  ir_set_attr_i(op, ATTR_axis, axis);
  if (scan && pick(g, 3) == 0) ir_set_attr_i(op, ATTR_reverse, 1);
  combine_region(g, op, scalar(g, t->dtype), n);
  for (uint32_t i = 0; i < n; i++) keep(g, squash(g, ir_result(op, i)));
}

static void gen_dot(Gen *g) {
  const IrDtype ds[] = {IR_f32, IR_f16, IR_bf16, IR_f32};
  const IrDtype d = ds[pick(g, 4)];
  const int32_t sa[2] = {16, 32}, sb[2] = {32, 16}, sc[2] = {16, 16};
  IrValue *a = tile_like(g, ir_type_tile(g->c, d, 2, sa)), *b = tile_like(g, ir_type_tile(g->c, d, 2, sb));
  IrValue *c = tile_like(g, ir_type_tile(g->c, IR_f32, 2, sc));
  if (!a) a = ir_const_f(&g->b, ir_type_tile(g->c, d, 2, sa), 1);
  if (!b) {
    if (pick(g, 2)) return;
    const int64_t perm[2] = {1, 0};
    b = ir_cast(&g->b, OP_trans, a, ir_type_tile(g->c, d, 2, sb));
    ir_set_attr_ints(b->def, ATTR_perm, perm, 2);
  }
  if (!c) c = ir_const_f(&g->b, ir_type_tile(g->c, IR_f32, 2, sc), 0);
  IrValue *ops[3] = {a, b, c};
  IrOp *op = ir_build(&g->b, OP_dot, 3, ops, 1, &c->type, 0);
  keep(g, squash(g, ir_result(op, 0)));
}

static void gen_scalar(Gen *g) {
  const IrType *t = scalar(g, IR_i32);
  IrValue *x = int_scalar(g), *y = int_scalar(g);
  if (pick(g, 3) == 0) {
    IrValue *p = NULL;
    for (int i = 0; i < g->nptr; i++) {
      if (g->ptr[i]->type->dtype == IR_i32) p = g->ptr[i];
    }
    keep(g, ir_load(&g->b, ir_ptr_add(&g->b, p, small_scalar(g, 100)), NULL, NULL));
    return;
  }
  const IrOpKind ops[] = {OP_add, OP_sub, OP_mul, OP_max_s};
  keep(g, ir_binary(&g->b, ops[pick(g, 4)], x, y));
  (void)t;
}

static void gen_atomic(Gen *g) {
  IrValue *p = NULL;
  for (int i = 0; i < g->nptr; i++) {
    if (g->ptr[i]->type->dtype == IR_i32) p = g->ptr[i];
  }
  const int32_t n = 64;
  const IrType *t = ir_type_tile(g->c, IR_i32, 1, &n);
  IrValue *x = tile_like(g, t);
  if (!x) return;
  IrValue *off = ir_binary(&g->b, OP_and, offsets(g, t, false), ir_const_i(&g->b, t, 31));
  IrValue *ops[3] = {pointers(g, p, off), x, pick(g, 2) ? mask_of(g, t) : NULL};
  IrOp *op = ir_build(&g->b, OP_atomic_rmw, 3, ops, 1, &t, 0);
  ir_set_attr_i(op, ATTR_rmw, pick(g, 2) ? RMW_add : RMW_max_s);
  ir_set_attr_i(op, ATTR_order, ORDER_relaxed);
  if (pick(g, 2)) keep(g, ir_result(op, 0));
}

static void gen_histogram(Gen *g) {
  const int32_t n = 64, bins = 32;
  IrValue *x = tile_like(g, ir_type_tile(g->c, IR_i32, 1, &n));
  if (!x) return;
  const IrType *t = ir_type_tile(g->c, IR_i32, 1, &bins);
  IrValue *ops[2] = {x, pick(g, 2) ? mask_of(g, x->type) : NULL};
  keep(g, ir_result(ir_build(&g->b, OP_histogram, 2, ops, 1, &t, 0), 0));
}

static void gen_ops(Gen *g);

typedef struct Mark {
  uint32_t tiles, scalars;
  IrBuilder b;
} Mark;
static Mark enter(Gen *g, IrBlock *b) {
  const Mark m = {g->tiles.len, g->scalars.len, g->b};
  g->b = ir_builder_at_end(b);
  g->depth++;
  return m;
}
static void leave(Gen *g, const Mark *m) {
  g->tiles.len = m->tiles;
  g->scalars.len = m->scalars;
  g->b = m->b;
  g->depth--;
}

static void gen_loop(Gen *g) {
  const uint32_t n = pick(g, 4);
  IrValue *ops[8];
  const IrType *types[8];
  ops[0] = ci(g, scalar(g, IR_i32), 0);
  ops[1] = pick(g, 2) ? small_scalar(g, 4) : ci(g, scalar(g, IR_i32), 3);
  ops[2] = ci(g, scalar(g, IR_i32), 1);
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) {
    IrValue *v = pick(g, 4) ? any_tile(g) : int_scalar(g);
    if (!v) continue;
    ops[3 + k] = v;
    types[k++] = v->type;
  }
  IrOp *op = ir_build(&g->b, OP_for, 3 + k, ops, k, types, 1);
  IrBlock *body = op->regions[0];
  const Mark m = enter(g, body);
  keep(g, ir_block_arg(body, ops[0]->type, NULL));
  for (uint32_t i = 0; i < k; i++) {
    IrValue *v = ir_block_arg(body, types[i], NULL);
    keep(g, v);
    keep(g, v);
  }
  gen_ops(g);
  IrValue *out[8];
  for (uint32_t i = 0; i < k; i++) {
    IrValue *v = types[i]->kind == IR_TILE ? tile_like(g, types[i]) : int_scalar(g);
    out[i] = v ? v : body->args.data[1 + i];
    if (types[i]->kind == IR_TILE && ir_type_is_int(types[i]) && types[i]->dtype == IR_i32 && pick(g, 3) == 0)
      out[i] = ir_binary(&g->b, OP_add, body->args.data[1 + i],
                         ir_splat(&g->b, small_scalar(g, 5), types[i]->rank, types[i]->shape));
  }
  ir_yield(&g->b, k, out);
  leave(g, &m);
  for (uint32_t i = 0; i < k; i++) keep(g, ir_result(op, i));
}

static void gen_if(Gen *g) {
  const uint32_t n = pick(g, 3);
  const IrType *types[4];
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) {
    IrValue *v = any_tile(g);
    if (v) types[k++] = v->type;
  }
  IrValue *c = ir_cmp(&g->b, CMP_slt, small_scalar(g, 10), ci(g, scalar(g, IR_i32), 5));
  IrOp *op = ir_build(&g->b, OP_if, 1, &c, k, types, 2);
  for (int r = 0; r < 2; r++) {
    const Mark m = enter(g, op->regions[r]);
    if (r == 0 || pick(g, 2)) gen_ops(g);
    IrValue *out[4];
    for (uint32_t i = 0; i < k; i++) {
      out[i] = tile_like(g, types[i]);
      if (!out[i])
        out[i] = ir_type_is_float(types[i]) ? ir_const_f(&g->b, types[i], 2) : ir_const_i(&g->b, types[i], 1);
    }
    ir_yield(&g->b, k, out);
    leave(g, &m);
  }
  for (uint32_t i = 0; i < k; i++) keep(g, ir_result(op, i));
}

static void gen_while(Gen *g) { // counts down, with tiles
  IrValue *ops[4];
  const IrType *types[4];
  uint32_t k = 1;
  ops[0] = small_scalar(g, 4);
  for (uint32_t i = pick(g, 3); i > 0; i--) {
    IrValue *v = any_tile(g);
    if (v) ops[k++] = v;
  }
  for (uint32_t i = 0; i < k; i++) types[i] = ops[i]->type;
  IrOp *op = ir_build(&g->b, OP_while, k, ops, k, types, 2);
  Mark m = enter(g, op->regions[0]);
  IrValue *pass[5];
  for (uint32_t i = 0; i < k; i++) pass[1 + i] = ir_block_arg(op->regions[0], types[i], NULL);
  pass[0] = ir_cmp(&g->b, CMP_sgt, pass[1], ci(g, scalar(g, IR_i32), 0));
  for (uint32_t i = 1; i < k; i++) {
    keep(g, pass[1 + i]);
    if (pick(g, 3) == 0) gen_elementwise(g);
    IrValue *v = tile_like(g, types[i]);
    if (v && pick(g, 2)) pass[1 + i] = v;
  }
  ir_build(&g->b, OP_cond_yield, 1 + k, pass, 0, NULL, 0);
  leave(g, &m);
  m = enter(g, op->regions[1]);
  IrValue *out[4];
  for (uint32_t i = 0; i < k; i++) {
    out[i] = ir_block_arg(op->regions[1], types[i], NULL);
    if (i) keep(g, out[i]);
  }
  gen_ops(g);
  out[0] = ir_binary(&g->b, OP_sub, out[0], ci(g, types[0], 1));
  for (uint32_t i = 1; i < k; i++) {
    IrValue *v = tile_like(g, types[i]);
    if (v) out[i] = v;
  }
  ir_yield(&g->b, k, out);
  leave(g, &m);
  for (uint32_t i = 0; i < k; i++) keep(g, ir_result(op, i));
}

static void gen_switch(Gen *g) {
  const IrType *types[2];
  uint32_t k = 0;
  IrValue *t = pick(g, 2) ? any_tile(g) : NULL;
  if (t) types[k++] = t->type;
  IrValue *x = small_scalar(g, 4);
  IrOp *op = ir_build(&g->b, OP_switch, 1, &x, k, types, 3);
  const int64_t cases[2] = {0, 2};
  ir_set_attr_ints(op, ATTR_cases, cases, 2);
  for (int r = 0; r < 3; r++) {
    const Mark m = enter(g, op->regions[r]);
    gen_ops(g);
    IrValue *v = k ? tile_like(g, types[0]) : NULL;
    if (k && !v) v = t;
    ir_yield(&g->b, k, &v);
    leave(g, &m);
  }
  for (uint32_t i = 0; i < k; i++) keep(g, ir_result(op, i));
}

// Shared memory: a tile goes in and comes back, through stages.
static void gen_memory(Gen *g) {
  IrValue *v = any_tile(g), *w = v ? tile_like(g, v->type) : NULL;
  if (!v || v->type->rank > 2) return;
  const IrType *t = v->type;
  IrValue *m = ir_result(
      ir_build(&g->b, OP_mem_alloc, 0, NULL, 1,
               (const IrType *[]){ir_type_memdesc(g->c, t->dtype, SPACE_shared, t->rank, t->shape, 2)}, 0),
      0);
  const IrType *one = ir_type_memdesc(g->c, t->dtype, SPACE_shared, t->rank, t->shape, 0);
  IrValue *view[2];
  for (int i = 0; i < 2; i++) {
    IrValue *ops[2] = {m, ci(g, scalar(g, IR_i32), i)};
    view[i] = ir_result(ir_build(&g->b, OP_mem_view, 2, ops, 1, &one, 0), 0);
    IrValue *set[2] = {view[i], i && w ? w : v};
    ir_build(&g->b, OP_mem_store, 2, set, 0, NULL, 0);
  }
  for (int i = 0; i < 2; i++) keep(g, ir_result(ir_build(&g->b, OP_mem_load, 1, &view[i], 1, &t, 0), 0));
  if (pick(g, 2)) {
    IrValue *set[2] = {view[0], v};
    ir_build(&g->b, OP_mem_store, 2, set, 0, NULL, 0);
  }
}

static void gen_desc(Gen *g) {
  IrValue *p = g->ptr[pick(g, 2)], *dims[5];
  const int32_t shape[2] = {8 << pick(g, 2), 16 << pick(g, 2)};
  const IrType *i64 = scalar(g, IR_i64), *dt = ir_type_desc(g->c, IR_f32, 2, shape);
  dims[0] = p;
  dims[1] = ir_binary(&g->b, OP_add, small_scalar(g, 30), ci(g, scalar(g, IR_i32), 1));
  dims[2] = ir_binary(&g->b, OP_add, small_scalar(g, 60), ci(g, scalar(g, IR_i32), 1));
  dims[3] = ci(g, i64, 61);
  dims[4] = ci(g, i64, 1);
  IrValue *d = ir_result(ir_build(&g->b, OP_make_desc, 5, dims, 1, &dt, 0), 0);
  ir_set_attr_i(d->def, ATTR_pad, PAD_zero);
  const IrType *t = ir_type_tile(g->c, IR_f32, 2, shape);
  IrValue *at[2];
  for (int i = 0; i < 2; i++)
    at[i] = ir_binary(&g->b, OP_sub, small_scalar(g, 40), ci(g, scalar(g, IR_i32), 9));
  if (pick(g, 3)) {
    IrValue *ops[3] = {d, at[0], at[1]};
    keep(g, ir_result(ir_build(&g->b, OP_desc_load, 3, ops, 1, &t, 0), 0));
    return;
  }
  IrValue *v = tile_like(g, t);
  if (!v) v = ir_const_f(&g->b, t, 5);
  IrValue *ops[4] = {d, v, at[0], at[1]};
  IrOp *op = ir_build(&g->b, pick(g, 4) ? OP_desc_store : OP_desc_rmw, 4, ops, 0, NULL, 0);
  if (op->kind == OP_desc_rmw) ir_set_attr_i(op, ATTR_rmw, RMW_fmax);
}

static void gen_ordered(Gen *g) { // element by element
  IrValue *p = g->ptr[pick(g, 4)];
  const int32_t n = 64;
  const IrType *t = ir_type_tile(g->c, p->type->dtype, 1, &n);
  IrValue *at = pointers(g, p, offsets(g, t, false)), *mask = pick(g, 2) ? mask_of(g, t) : NULL;
  IrOp *op;
  if (pick(g, 2)) {
    IrValue *v = ir_load(&g->b, at, mask, NULL);
    op = v->def;
    keep(g, v);
  } else {
    IrValue *v = tile_like(g, t);
    if (!v) return;
    op = ir_store(&g->b, at, v, mask);
  }
  if (pick(g, 2)) {
    ir_set_attr_i(op, ATTR_volatile, 1);
  } else {
    ir_set_attr_i(op, ATTR_order, ORDER_relaxed);
    ir_set_attr_i(op, ATTR_scope, SCOPE_gpu);
  }
}

static void gen_unsplat(Gen *g) {
  const int32_t n = 1;
  const IrType *t = ir_type_tile(g->c, IR_i32, 1, &n);
  IrValue *v = ir_load(&g->b, pointers(g, g->ptr[2], offsets(g, t, false)), NULL, NULL);
  const IrType *s = scalar(g, IR_i32);
  keep(g, ir_result(ir_build(&g->b, OP_unsplat, 1, &v, 1, &s, 0), 0));
}

static void gen_ops(Gen *g) {
  const int most = 3 + (int)pick(g, 10);
  for (int i = 0; i < most && g->budget > 0; i++) {
    g->budget--;
    switch (pick(g, 28)) {
    case 0:
    case 1:
    case 2: gen_load(g); break;
    case 3:
    case 4: gen_store(g); break;
    case 5: gen_update(g); break;
    case 6: gen_cast(g); break;
    case 7:
    case 8: gen_shape(g); break;
    case 9:
    case 10: gen_reduce(g, false); break;
    case 11: gen_reduce(g, true); break;
    case 12: gen_dot(g); break;
    case 13: gen_scalar(g); break;
    case 14: gen_atomic(g); break;
    case 15:
      if (g->depth < 3) gen_loop(g);
      break;
    case 16:
      if (g->depth < 3) gen_if(g);
      break;
    case 17: gen_histogram(g); break;
    case 18:
      if (g->depth < 3) gen_while(g);
      break;
    case 19:
      if (g->depth < 3) gen_switch(g);
      break;
    case 20: gen_memory(g); break;
    case 21: gen_desc(g); break;
    case 22: gen_ordered(g); break;
    case 23: gen_unsplat(g); break;
    default: gen_elementwise(g);
    }
  }
}

static IrModule *generate(Arena *a, uint64_t seed) {
  Gen g = {.a = a, .c = ir_ctx_new(a), .r = {seed}, .budget = 2 + (int)(seed / 7919 % 40)};
  g.m = ir_module_new(a, g.c, NULL);
  g.f = ir_func_new(g.m, str_cstr(ir_strings(g.c), "fuzz"), true);
  const IrDtype ds[] = {IR_f32, IR_f32, IR_i32, IR_i32, IR_f16, IR_i8, IR_bf16};
  for (size_t i = 0; i < DT_COUNTOF(ds); i++) {
    g.ptr[g.nptr++] = ir_func_param(g.f, ir_type_ptr(g.c, ds[i], SPACE_global, LEVEL_program), NULL);
    if (i == 0) g.f->params.data[0].noalias = true;
  }
  for (int i = 0; i < 2; i++) vec_push(a, &g.scalars, ir_func_param(g.f, scalar(&g, IR_i32), NULL));
  g.b = ir_builder_at_end(g.f->body);
  for (int i = 0; i < 3; i++) gen_load(&g);
  while (g.budget > 0) gen_ops(&g);
  for (uint32_t i = 0; i < 3; i++) gen_store(&g);
  ir_return(&g.b, 0, NULL);
  return g.m;
}

static void fill_whole(Memory *m, uint64_t seed) {
  for (int i = 0; i < m->n; i++) {
    Rng r = {seed + (uint64_t)i};
    const IrDtype d = m->dtype[i];
    const size_t w = ir_dtypes[d].bytes;
    for (size_t k = 0; k < m->bytes[i] / w; k++) {
      const int64_t x = (int64_t)(rng_next(&r) % 17) - 8;
      const uint64_t bits = ir_dtypes[d].cls == IR_FLOAT ? ir_float_bits(d, (double)x) : (uint64_t)(x + 8);
      memcpy((char *)m->base[i] + k * w, &bits, w);
    }
  }
}

#endif
