// pass_gen: random tile-stage kernels and a way to run them, for the tests of the passes. Included by them, not compiled alone.
//
// A kernel computes on scalars and small tiles of several dtypes, in nested loops, conditions and switches, reads and
// writes in bounds, and in the end writes what it computed to a dump. Everything is a function of the seed.
#ifndef DITRON_PASS_GEN_H
#define DITRON_PASS_GEN_H

#include "harness/test.h"
#include "pass/pass.h"

#include <string.h>

enum { GEN_CELLS = 64, GEN_DUMP = 4096, GEN_GRID = 2, GEN_SHAPES = 8 };
typedef enum GenShape { S_0, S_4, S_8, S_4x1, S_1x8, S_4x8, S_32, S_8x4 } GenShape;

typedef struct GenDump { // where a value went: elements at offset of the integer or the float dump
  IrValue *v;
  int offset;
} GenDump;

typedef struct Gen {
  Arena *a;
  IrModule *m;
  IrFunc *f;
  IrBuilder b;
  Rng rng;
  Vec(IrValue *) pool; // visible values
  Vec(IrValue *) ptrs; // visible addresses in the outputs
  Vec(GenDump) dumps;
  IrValue *in_i, *in_f, *out_i, *out_f, *dump_i, *dump_f;
  IrOp *top; // stores of in-loop values need no more than this many
  int depth, budget, ndump_i, ndump_f;
  bool floats_exact; // only small whole numbers, so that contraction changes nothing
} Gen;

static const int8_t gen_dims[GEN_SHAPES][3] = {{0, 0, 0}, {1, 4, 0}, {1, 8, 0},  {2, 4, 1},
                                               {2, 1, 8}, {2, 4, 8}, {1, 32, 0}, {2, 8, 4}};

static uint32_t gen_below(Gen *g, uint32_t n) { return (uint32_t)(rng_next(&g->rng) % n); }
static bool gen_chance(Gen *g, uint32_t percent) { return gen_below(g, 100) < percent; }

static const IrType *gen_type(Gen *g, IrDtype d, GenShape s) {
  const int32_t shape[2] = {gen_dims[s][1], gen_dims[s][2]};
  return s == S_0 ? ir_type_scalar(g->m->ctx, d, LEVEL_program)
                  : ir_type_tile(g->m->ctx, d, gen_dims[s][0], shape);
}
static GenShape gen_shape_of(const IrType *t) {
  for (int s = 0; s < GEN_SHAPES; s++) {
    if (t->rank == gen_dims[s][0] && (t->rank < 1 || t->shape[0] == gen_dims[s][1]) &&
        (t->rank < 2 || t->shape[1] == gen_dims[s][2]))
      return (GenShape)s;
  }
  return S_0;
}
static IrValue *gen_keep(Gen *g, IrValue *v) {
  vec_push(g->a, &g->pool, v);
  return v;
}

static IrValue *gen_const(Gen *g, IrDtype d, GenShape s) {
  static const int64_t ints[] = {0, 1, -1, 2, 3, 4, 5, 7, 8, 16, -3, 31, 127, -128, 100, 255};
  static const double floats[] = {0, 1, -1, 2, 0.5, -3, 10, 0.1, 1e10, -0.0};
  const IrType *t = gen_type(g, d, s);
  if (ir_dtypes[d].cls == IR_FLOAT)
    return ir_const_f(&g->b, t, floats[gen_below(g, g->floats_exact ? 4 : DT_COUNTOF(floats))]);
  return ir_const_i(&g->b, t, ints[gen_below(g, d == IR_i1 ? 2 : DT_COUNTOF(ints))]);
}

static IrValue *gen_get(Gen *g, IrDtype d, GenShape s);

static IrValue *gen_fresh(Gen *g, IrDtype d, GenShape s) {
  const int32_t shape[2] = {gen_dims[s][1], gen_dims[s][2]};
  if (s == S_0 || gen_chance(g, 30)) return gen_const(g, d, s);
  if (d == IR_i32 && gen_dims[s][0] == 1 && gen_chance(g, 75)) {
    const IrType *t = gen_type(g, d, s);
    static const int64_t starts[] = {0, 0, 0, 8, 16, -8, -16, -32, 5, -3};
    const int64_t start = starts[gen_below(g, DT_COUNTOF(starts))];
    IrOp *op = ir_build(&g->b, OP_arange, 0, NULL, 1, &t, 0);
    ir_set_attr_i(op, ATTR_start, start);
    ir_set_attr_i(op, ATTR_end, start + shape[0]);
    return ir_result(op, 0);
  }
  IrValue *x = gen_get(g, d, S_0);
  return ir_splat(&g->b, x, gen_dims[s][0], shape);
}

static IrValue *gen_get(Gen *g, IrDtype d, GenShape s) {
  const IrType *t = gen_type(g, d, s);
  uint32_t n = 0;
  if (gen_chance(g, 85)) {
    for (uint32_t i = 0; i < g->pool.len; i++) n += g->pool.data[i]->type == t;
  }
  if (!n) return gen_keep(g, gen_fresh(g, d, s));
  uint32_t k = gen_below(g, n);
  for (uint32_t i = 0;; i++) {
    if (g->pool.data[i]->type == t && k-- == 0) return g->pool.data[i];
  }
}

static IrDtype gen_int(Gen *g) {
  static const IrDtype ds[] = {IR_i32, IR_i32, IR_i32, IR_i64, IR_i8};
  return ds[gen_below(g, DT_COUNTOF(ds))];
}
static IrDtype gen_float(Gen *g) { return gen_chance(g, 75) || g->floats_exact ? IR_f32 : IR_f16; }
static IrDtype gen_dtype(Gen *g) {
  return gen_chance(g, 55) ? gen_int(g) : gen_chance(g, 40) ? IR_i1 : gen_float(g);
}
static GenShape gen_shape(Gen *g) { return gen_chance(g, 45) ? S_0 : (GenShape)gen_below(g, GEN_SHAPES); }

// ---- memory: cell index & 63 of a buffer; the outputs have cells of their own for each instance -------------------------

static IrValue *gen_address(Gen *g, IrValue *base, GenShape s) {
  const bool out = base == g->out_i || base == g->out_f;
  const IrDtype d = base->type->dtype;
  for (uint32_t tries = 0; out && g->ptrs.len && tries < 6; tries++) { // often one that was used before
    IrValue *p = g->ptrs.data[gen_below(g, g->ptrs.len)];
    if (p->type->dtype == d && (p->type->kind == IR_TILE) == (s != S_0) && gen_shape_of(p->type) == s &&
        gen_chance(g, 70))
      return p;
  }
  const IrType *t = gen_type(g, IR_i32, s);
  const int32_t shape[2] = {gen_dims[s][1], gen_dims[s][2]};
  IrValue *i = ir_binary(&g->b, OP_and, gen_get(g, IR_i32, s), ir_const_i(&g->b, t, GEN_CELLS - 1));
  IrValue *p = ir_ptr_add(&g->b, s == S_0 ? base : ir_splat(&g->b, base, gen_dims[s][0], shape), i);
  if (out) vec_push(g->a, &g->ptrs, p);
  return p;
}

static void gen_load(Gen *g) {
  const GenShape s = gen_chance(g, 50) ? S_0 : gen_shape(g);
  const bool f = gen_chance(g, 30), in = gen_chance(g, 30);
  IrValue *p = gen_address(g, f ? (in ? g->in_f : g->out_f) : (in ? g->in_i : g->out_i), s);
  IrValue *mask = gen_chance(g, 40) ? gen_get(g, IR_i1, s) : NULL;
  IrValue *other = mask && gen_chance(g, 50) ? gen_get(g, f ? IR_f32 : IR_i32, s) : NULL;
  gen_keep(g, ir_load(&g->b, p, mask, other));
}

static void gen_store(Gen *g) {
  const GenShape s = gen_chance(g, 50) ? S_0 : gen_shape(g);
  const bool f = gen_chance(g, 30);
  IrValue *v = gen_get(g, f ? IR_f32 : IR_i32, s), *mask = gen_chance(g, 40) ? gen_get(g, IR_i1, s) : NULL;
  ir_store(&g->b, gen_address(g, f ? g->out_f : g->out_i, s), v, mask);
}

// ---- one op --------------------------------------------------------------------------------------------------------------

static void gen_int_binary(Gen *g) {
  static const IrOpKind ks[] = {OP_add,   OP_add,   OP_sub,   OP_mul,   OP_mul,   OP_div_s,   OP_div_u,
                                OP_rem_s, OP_rem_u, OP_and,   OP_or,    OP_xor,   OP_shl,     OP_shr_s,
                                OP_shr_u, OP_min_s, OP_max_s, OP_min_u, OP_max_u, OP_mulhi_s, OP_mulhi_u};
  const IrDtype d = gen_int(g);
  const GenShape s = gen_shape(g);
  IrValue *a = gen_get(g, d, s), *b = gen_chance(g, 35) ? gen_const(g, d, s) : gen_get(g, d, s);
  const IrOpKind k = ks[gen_below(g, DT_COUNTOF(ks))];
  gen_keep(g, gen_chance(g, 15) ? ir_binary(&g->b, k, b, a) : ir_binary(&g->b, k, a, b));
}

static IrValue *gen_small(Gen *g, GenShape s) {
  return gen_chance(g, 30) ? gen_const(g, IR_f32, s) : ir_load(&g->b, gen_address(g, g->in_f, s), NULL, NULL);
}

// What kernels do with indices.
static void gen_index(Gen *g) {
  static const IrOpKind ks[] = {OP_add,   OP_sub, OP_mul, OP_div_s, OP_div_u, OP_rem_s,
                                OP_rem_u, OP_and, OP_shl, OP_shr_s, OP_shr_u};
  static const int64_t cs[] = {2, 4, 8, 16, 3, 1, -8, 7};
  const GenShape s = gen_chance(g, 60) ? S_32 : gen_chance(g, 50) ? S_8 : S_4x8;
  const IrType *t = gen_type(g, IR_i32, s);
  IrValue *a = gen_chance(g, 50) ? gen_fresh(g, IR_i32, s) : gen_get(g, IR_i32, s);
  IrValue *c = ir_const_i(&g->b, t, cs[gen_below(g, DT_COUNTOF(cs))]);
  if (gen_chance(g, 15))
    gen_keep(g, ir_select(&g->b, gen_get(g, IR_i1, s), a, gen_get(g, IR_i32, s)));
  else if (gen_chance(g, 15))
    gen_keep(g, ir_cmp(&g->b, (IrCmp)gen_below(g, CMP_COUNT), a, c));
  else
    gen_keep(g, ir_binary(&g->b, ks[gen_below(g, DT_COUNTOF(ks))], a, c));
}

static void gen_float_binary(Gen *g) {
  static const IrOpKind ks[] = {OP_fadd, OP_fmul, OP_fsub, OP_fadd, OP_fmin, OP_fmax, OP_fdiv, OP_frem};
  const IrDtype d = gen_float(g);
  const GenShape s = gen_shape(g);
  if (g->floats_exact) { // small numbers stay small: a product of constants and loads, plus or minus one more
    IrValue *m = ir_binary(&g->b, OP_fmul, gen_small(g, s), gen_small(g, s)), *c = gen_small(g, s);
    const IrOpKind k = ks[1 + gen_below(g, 3)];
    IrValue *r = gen_chance(g, 50) ? ir_binary(&g->b, k, m, c) : ir_binary(&g->b, k, c, m);
    if (gen_chance(g, 30)) gen_keep(g, m);
    gen_keep(g, r);
    return;
  }
  IrValue *a = gen_get(g, d, s), *b = gen_get(g, d, s);
  gen_keep(g, ir_binary(&g->b, ks[gen_below(g, DT_COUNTOF(ks))], a, b));
}

static void gen_compare(Gen *g) {
  const GenShape s = gen_shape(g);
  if (gen_chance(g, 25)) {
    const IrDtype d = gen_float(g);
    IrValue *a = gen_get(g, d, s), *b = gen_get(g, d, s);
    gen_keep(g, ir_fcmp(&g->b, (IrFcmp)gen_below(g, FCMP_COUNT), a, b));
    return;
  }
  const IrDtype d = gen_chance(g, 10) ? IR_i1 : gen_int(g);
  IrValue *a = gen_get(g, d, s), *b = gen_chance(g, 40) ? gen_const(g, d, s) : gen_get(g, d, s);
  gen_keep(g, ir_cmp(&g->b, (IrCmp)gen_below(g, CMP_COUNT), a, b));
}

static void gen_logic(Gen *g) {
  static const IrOpKind ks[] = {OP_and, OP_or, OP_xor};
  const GenShape s = gen_shape(g);
  IrValue *a = gen_get(g, IR_i1, s), *b = gen_chance(g, 30) ? gen_const(g, IR_i1, s) : gen_get(g, IR_i1, s);
  gen_keep(g, ir_binary(&g->b, ks[gen_below(g, 3)], a, b));
}

static void gen_select(Gen *g) {
  const GenShape s = gen_shape(g);
  const IrDtype d = gen_dtype(g);
  IrValue *c = gen_get(g, IR_i1, s), *a = gen_get(g, d, s), *b = gen_get(g, d, s);
  gen_keep(g, ir_select(&g->b, c, a, b));
}

static void gen_cast(Gen *g) {
  const GenShape s = gen_shape(g);
  const IrDtype from = gen_dtype(g), to = gen_dtype(g);
  IrValue *a = gen_get(g, from, s);
  const IrType *t = gen_type(g, to, s);
  const bool fi = ir_dtypes[from].cls == IR_INT, ti = ir_dtypes[to].cls == IR_INT;
  IrOpKind k;
  if (from == to) return;
  if (fi && ti)
    k = ir_dtypes[to].bits < ir_dtypes[from].bits ? OP_trunc : gen_chance(g, 50) ? OP_ext_s : OP_ext_u;
  else if (fi)
    k = gen_chance(g, 50) ? OP_si2f : OP_ui2f;
  else if (ti)
    k = to == IR_i1 ? OP_COUNT : gen_chance(g, 50) ? OP_f2si : OP_f2ui;
  else
    k = OP_fcast;
  if (k == OP_COUNT || (g->floats_exact && fi != ti)) return;
  gen_keep(g, ir_cast(&g->b, k, a, t));
}

static void gen_unary(Gen *g) {
  const GenShape s = gen_shape(g);
  if (gen_chance(g, 40)) {
    gen_keep(g, ir_unary(&g->b, OP_abs_s, gen_get(g, gen_int(g), s)));
    return;
  }
  IrValue *a = gen_get(g, gen_float(g), s);
  if (a->type->dtype == IR_f32 && !g->floats_exact && gen_chance(g, 50)) {
    static const IrMath fs[] = {MATH_FN_sqrt, MATH_FN_floor, MATH_FN_ceil, MATH_FN_rint, MATH_FN_exp2};
    gen_keep(g, ir_math(&g->b, fs[gen_below(g, DT_COUNTOF(fs))], a, NULL));
    return;
  }
  gen_keep(g, ir_unary(&g->b, gen_chance(g, 50) ? OP_fneg : OP_fabs, a));
}

static IrValue *gen_shaped(Gen *g, IrOpKind k, IrValue *a, GenShape to) {
  const IrType *t = gen_type(g, a->type->dtype, to);
  return ir_result(ir_build(&g->b, k, 1, &a, 1, &t, 0), 0);
}

static void gen_shape_op(Gen *g) {
  const IrDtype d = gen_dtype(g);
  const int32_t full[2] = {4, 8};
  IrValue *v;
  switch (gen_below(g, 8)) {
  case 0: v = ir_expand_dims(&g->b, gen_get(g, d, S_4), 1); break;
  case 1: v = ir_expand_dims(&g->b, gen_get(g, d, S_8), 0); break;
  case 2: v = ir_broadcast(&g->b, gen_get(g, d, S_4x1), 2, full); break;
  case 3: v = ir_broadcast(&g->b, gen_get(g, d, S_1x8), 2, full); break;
  case 4: v = gen_shaped(g, OP_reshape, gen_get(g, d, S_4x8), S_32); break;
  case 5: v = gen_shaped(g, OP_reshape, gen_get(g, d, S_32), gen_chance(g, 50) ? S_4x8 : S_8x4); break;
  case 6: v = gen_fresh(g, d, gen_shape(g)); break;
  default: {
    const bool t = gen_chance(g, 50);
    const int64_t perm[2] = {1, 0};
    v = gen_shaped(g, OP_trans, gen_get(g, d, t ? S_8x4 : S_4x8), t ? S_4x8 : S_8x4);
    ir_set_attr_ints(v->def, ATTR_perm, perm, 2);
  }
  }
  gen_keep(g, v);
}

static void gen_reduce(Gen *g) {
  static const IrOpKind ks[] = {OP_add, OP_xor, OP_max_s, OP_min_u};
  const GenShape from[3] = {S_4x8, S_4x8, S_32}, to[3] = {S_8, S_4, S_0};
  const uint32_t k = gen_below(g, 3);
  const IrDtype d = gen_int(g);
  IrValue *a = gen_get(g, d, from[k]);
  const IrType *t = gen_type(g, d, to[k]), *e = gen_type(g, d, S_0);
  IrOp *op = ir_build(&g->b, OP_reduce, 1, &a, 1, &t, 1);
  ir_set_attr_i(op, ATTR_axis, k == 1);
  IrValue *x = ir_block_arg(op->regions[0], e, NULL), *y = ir_block_arg(op->regions[0], e, NULL);
  IrBuilder in = ir_builder_at_end(op->regions[0]);
  in.m = g->m;
  IrValue *r = ir_binary(&in, ks[gen_below(g, DT_COUNTOF(ks))], x, y);
  ir_yield(&in, 1, &r);
  gen_keep(g, ir_result(op, 0));
}

static void gen_ids(Gen *g) {
  const IrType *t = gen_type(g, IR_i32, S_0);
  static const IrOpKind ks[] = {OP_program_id, OP_num_programs, OP_rank,
                                OP_num_ranks,  OP_num_threads,  OP_warp_size};
  const IrOpKind k = ks[gen_below(g, DT_COUNTOF(ks))];
  IrOp *op = ir_build(&g->b, k, 0, NULL, 1, &t, 0);
  if (k == OP_program_id || k == OP_num_programs) ir_set_attr_i(op, ATTR_axis, gen_below(g, 3));
  gen_keep(g, ir_result(op, 0));
}

// ---- control ------------------------------------------------------------------------------------------------------------------

static void gen_ops(Gen *g, int n);

typedef struct GenScope {
  IrBuilder b;
  uint32_t visible, ptrs;
} GenScope;
static GenScope gen_enter(Gen *g, IrBlock *r) {
  const GenScope s = {g->b, g->pool.len, g->ptrs.len};
  g->b = ir_builder_at_end(r);
  g->b.m = g->m;
  g->depth++;
  return s;
}
static void gen_leave(Gen *g, GenScope s) {
  g->b = s.b;
  g->pool.len = s.visible;
  g->ptrs.len = s.ptrs;
  g->depth--;
}

enum { GEN_CARRIED = 3 };
static uint32_t gen_carried(Gen *g, const IrType **types, IrValue **init) {
  const uint32_t n = gen_below(g, GEN_CARRIED + 1);
  for (uint32_t i = 0; i < n; i++) {
    init[i] = gen_get(g, gen_dtype(g), gen_shape(g));
    types[i] = init[i]->type;
  }
  return n;
}
static void gen_yield_like(Gen *g, const IrType *const *types, uint32_t n, IrValue **out) {
  for (uint32_t i = 0; i < n; i++) out[i] = gen_get(g, types[i]->dtype, gen_shape_of(types[i]));
}

static void gen_for(Gen *g) {
  const IrType *types[GEN_CARRIED];
  IrValue *vs[3 + GEN_CARRIED], *out[GEN_CARRIED];
  const IrType *t = gen_type(g, IR_i32, S_0);
  const uint32_t n = gen_carried(g, types, vs + 3);
  const int64_t step = (int64_t)gen_below(g, 3) + 1, lo = (int64_t)gen_below(g, 5) - 2;
  const bool down = gen_chance(g, 15);
  vs[0] = ir_const_i(&g->b, t, down ? lo + 3 : lo);
  vs[1] = ir_const_i(&g->b, t, down ? lo : lo + (int64_t)gen_below(g, 6));
  if (gen_chance(g, 40)) // known at run time only: 0..7
    vs[1] = ir_binary(&g->b, OP_and, gen_get(g, IR_i32, S_0), ir_const_i(&g->b, t, 7));
  vs[2] = ir_const_i(&g->b, t, down ? -step : step);
  IrOp *op = ir_build(&g->b, OP_for, 3 + n, vs, n, types, 1);
  const GenScope s = gen_enter(g, op->regions[0]);
  gen_keep(g, ir_block_arg(op->regions[0], t, NULL));
  for (uint32_t i = 0; i < n; i++) gen_keep(g, ir_block_arg(op->regions[0], types[i], NULL));
  gen_ops(g, 1 + (int)gen_below(g, 6));
  gen_yield_like(g, types, n, out);
  if (n && gen_chance(g, 30)) out[0] = op->regions[0]->args.data[1]; // never changes
  ir_yield(&g->b, n, out);
  gen_leave(g, s);
  for (uint32_t i = 0; i < n; i++) gen_keep(g, ir_result(op, i));
}

static void gen_if(Gen *g) {
  const IrType *types[GEN_CARRIED];
  IrValue *out[GEN_CARRIED], *c = gen_get(g, IR_i1, S_0);
  const uint32_t n = gen_carried(g, types, out);
  IrOp *op = ir_build(&g->b, OP_if, 1, &c, n, types, 2);
  for (int r = 0; r < 2; r++) {
    const GenScope s = gen_enter(g, op->regions[r]);
    gen_ops(g, (int)gen_below(g, 4));
    gen_yield_like(g, types, n, out);
    ir_yield(&g->b, n, out);
    gen_leave(g, s);
  }
  for (uint32_t i = 0; i < n; i++) gen_keep(g, ir_result(op, i));
}

static void gen_switch(Gen *g) {
  const IrType *types[GEN_CARRIED];
  IrValue *out[GEN_CARRIED], *i = gen_get(g, IR_i32, S_0);
  const uint32_t n = gen_carried(g, types, out);
  const int64_t cases[2] = {0, 3};
  IrOp *op = ir_build(&g->b, OP_switch, 1, &i, n, types, 3);
  ir_set_attr_ints(op, ATTR_cases, cases, 2);
  for (int r = 0; r < 3; r++) {
    const GenScope s = gen_enter(g, op->regions[r]);
    gen_ops(g, (int)gen_below(g, 3));
    gen_yield_like(g, types, n, out);
    ir_yield(&g->b, n, out);
    gen_leave(g, s);
  }
  for (uint32_t k = 0; k < n; k++) gen_keep(g, ir_result(op, k));
}

// while counter < limit: the counter comes first among what is carried, so it always ends.
static void gen_while(Gen *g) {
  const IrType *types[GEN_CARRIED + 1];
  IrValue *init[GEN_CARRIED + 1], *out[GEN_CARRIED + 2];
  const IrType *t = gen_type(g, IR_i32, S_0);
  const uint32_t n = 1 + gen_carried(g, types + 1, init + 1);
  types[0] = t;
  init[0] = ir_const_i(&g->b, t, 0);
  IrOp *op = ir_build(&g->b, OP_while, n, init, n, types, 2);
  IrBlock *before = op->regions[0], *body = op->regions[1];
  GenScope s = gen_enter(g, before);
  for (uint32_t i = 0; i < n; i++) gen_keep(g, ir_block_arg(before, types[i], NULL));
  gen_ops(g, (int)gen_below(g, 3));
  out[0] = ir_cmp(&g->b, CMP_slt, before->args.data[0], ir_const_i(&g->b, t, gen_below(g, 5)));
  if (gen_chance(g, 30)) out[0] = ir_binary(&g->b, OP_and, out[0], gen_get(g, IR_i1, S_0));
  out[1] = before->args.data[0];
  gen_yield_like(g, types + 1, n - 1, out + 2);
  if (n > 1 && gen_chance(g, 40)) out[2] = before->args.data[1];
  ir_build(&g->b, OP_cond_yield, n + 1, out, 0, NULL, 0);
  gen_leave(g, s);
  s = gen_enter(g, body);
  for (uint32_t i = 0; i < n; i++) gen_keep(g, ir_block_arg(body, types[i], NULL));
  gen_ops(g, 1 + (int)gen_below(g, 4));
  out[0] = ir_binary(&g->b, OP_add, body->args.data[0], ir_const_i(&g->b, t, 1));
  gen_yield_like(g, types + 1, n - 1, out + 1);
  if (n > 1 && gen_chance(g, 40)) out[1] = body->args.data[1];
  ir_yield(&g->b, n, out);
  gen_leave(g, s);
  for (uint32_t i = 0; i < n; i++) gen_keep(g, ir_result(op, i));
}

static void gen_op(Gen *g) {
  const uint32_t k = gen_below(g, 100);
  if (--g->budget < 0) return;
  if (k < 14)
    gen_int_binary(g);
  else if (k < 26)
    gen_index(g);
  else if (k < 34)
    gen_float_binary(g);
  else if (k < 42)
    gen_compare(g);
  else if (k < 46)
    gen_logic(g);
  else if (k < 50)
    gen_select(g);
  else if (k < 55)
    gen_cast(g);
  else if (k < 58)
    gen_unary(g);
  else if (k < 65)
    gen_shape_op(g);
  else if (k < 68)
    gen_reduce(g);
  else if (k < 71)
    gen_ids(g);
  else if (k < 79)
    gen_load(g);
  else if (k < 87)
    gen_store(g);
  else if (g->depth >= 3)
    gen_int_binary(g);
  else if (k < 92)
    gen_for(g);
  else if (k < 95)
    gen_if(g);
  else if (k < 98)
    gen_while(g);
  else
    gen_switch(g);
}

static void gen_ops(Gen *g, int n) {
  for (int i = 0; i < n; i++) gen_op(g);
}

// ---- the kernel -----------------------------------------------------------------------------------------------------------------

static IrValue *gen_param(Gen *g, IrDtype d, bool ptr, const char *name) {
  const IrType *t = ptr ? ir_type_ptr(g->m->ctx, d, SPACE_global, LEVEL_program) : gen_type(g, d, S_0);
  IrValue *v = ir_func_param(g->f, t, str_cstr(ir_strings(g->m->ctx), name));
  g->f->params.data[g->f->params.len - 1].divisible = 1;
  return v;
}

static void gen_dump(Gen *g, IrValue *v) {
  const GenShape s = gen_shape_of(v->type);
  const int n = (int)ir_type_elems(v->type);
  const bool f = ir_type_is_float(v->type);
  int *at = f ? &g->ndump_f : &g->ndump_i;
  if (*at + n > GEN_DUMP) return;
  vec_push(g->a, &g->dumps, ((GenDump){v, *at}));
  IrBuilder *b = &g->b;
  const IrType *want = gen_type(g, f ? IR_f32 : IR_i64, s), *index = gen_type(g, IR_i32, S_0);
  if (v->type != want) v = ir_cast(b, f ? OP_fcast : v->type->dtype == IR_i1 ? OP_ext_u : OP_ext_s, v, want);
  IrValue *p = ir_ptr_add(b, f ? g->dump_f : g->dump_i, ir_const_i(b, index, *at));
  *at += n;
  if (s != S_0) {
    const int32_t flat = n;
    const IrType *ft = ir_type_tile(g->m->ctx, v->type->dtype, 1, &flat),
                 *it = ir_type_tile(g->m->ctx, IR_i32, 1, &flat);
    if (v->type != ft) v = ir_result(ir_build(b, OP_reshape, 1, &v, 1, &ft, 0), 0);
    IrOp *range = ir_build(b, OP_arange, 0, NULL, 1, &it, 0);
    ir_set_attr_i(range, ATTR_start, 0);
    ir_set_attr_i(range, ATTR_end, n);
    p = ir_ptr_add(b, ir_splat(b, p, 1, &flat), ir_result(range, 0));
  }
  ir_store(b, p, v, NULL);
}

static void gen_kernel(Gen *g, Arena *a, uint64_t seed, bool floats_exact) {
  *g = (Gen){.a = a, .rng = {seed}, .budget = 90, .floats_exact = floats_exact};
  IrCtx *ctx = ir_ctx_new(a);
  g->m = ir_module_new(a, ctx, NULL);
  g->m->stage = STAGE_tile;
  g->m->num_warps = 2;
  g->m->num_stages = 1;
  g->m->lanes = 32;
  g->f = ir_func_new(g->m, str_cstr(ir_strings(ctx), "k"), true);
  IrValue *in_i = gen_param(g, IR_i32, true, "in_i"), *in_f = gen_param(g, IR_f32, true, "in_f");
  IrValue *out_i = gen_param(g, IR_i32, true, "out_i"), *out_f = gen_param(g, IR_f32, true, "out_f");
  IrValue *dump_i = gen_param(g, IR_i64, true, "dump_i"), *dump_f = gen_param(g, IR_f32, true, "dump_f");
  gen_keep(g, gen_param(g, IR_i32, false, "n"));
  gen_keep(g, gen_param(g, IR_i32, false, "x"));
  g->f->params.data[g->f->params.len - 1].divisible = 16;
  gen_keep(g, gen_param(g, IR_i1, false, "c"));
  gen_keep(g, gen_param(g, IR_f32, false, "y"));
  g->b = ir_builder_at_end(g->f->body);
  g->b.m = g->m;
  const IrType *t = gen_type(g, IR_i32, S_0);
  IrOp *pid = ir_build(&g->b, OP_program_id, 0, NULL, 1, &t, 0);
  ir_set_attr_i(pid, ATTR_axis, 0);
  IrValue *cells = ir_binary(&g->b, OP_mul, ir_result(pid, 0), ir_const_i(&g->b, t, GEN_CELLS));
  IrValue *words = ir_binary(&g->b, OP_mul, ir_result(pid, 0), ir_const_i(&g->b, t, GEN_DUMP));
  gen_keep(g, ir_result(pid, 0));
  g->in_i = in_i;
  g->in_f = in_f;
  g->out_i = ir_ptr_add(&g->b, out_i, cells);
  g->out_f = ir_ptr_add(&g->b, out_f, cells);
  g->dump_i = ir_ptr_add(&g->b, dump_i, words);
  g->dump_f = ir_ptr_add(&g->b, dump_f, words);
  while (g->budget > 0) gen_op(g);
  const uint32_t n = g->pool.len;
  for (uint32_t i = 0; i < n; i++) gen_dump(g, g->pool.data[i]);
  ir_return(&g->b, 0, NULL);
}

// ---- running ---------------------------------------------------------------------------------------------------------------------

typedef struct GenMemory {
  int32_t in_i[GEN_CELLS];
  float in_f[GEN_CELLS];
  int32_t out_i[GEN_CELLS * GEN_GRID];
  float out_f[GEN_CELLS * GEN_GRID];
  int64_t dump_i[GEN_DUMP * GEN_GRID];
  float dump_f[GEN_DUMP * GEN_GRID];
} GenMemory;

static void gen_fill(GenMemory *mem, uint64_t seed, bool exact) {
  Rng r = {seed};
  memset(mem, 0, sizeof *mem);
  for (int i = 0; i < GEN_CELLS; i++) {
    mem->in_i[i] = rng_next(&r) % 3 ? (int32_t)(rng_next(&r) % 200) - 100 : (int32_t)rng_next(&r);
    mem->in_f[i] = exact ? (float)(rng_next(&r) % 5) - 2 : (float)(rng_unit(&r) * 20 - 10);
  }
}

// Runs the module's only kernel. The first finding's text where it does not end well, else NULL.
static const char *gen_run(Arena *a, const IrModule *m, GenMemory *mem, uint64_t seed) {
  const InterpMemory memory[] = {{mem->in_i, sizeof mem->in_i, "in_i", 0, -1, true, true},
                                 {mem->in_f, sizeof mem->in_f, "in_f", 0, -1, true, true},
                                 {mem->out_i, sizeof mem->out_i, "out_i", 0, -1, true, false},
                                 {mem->out_f, sizeof mem->out_f, "out_f", 0, -1, true, false},
                                 {mem->dump_i, sizeof mem->dump_i, "dump_i", 0, -1, true, false},
                                 {mem->dump_f, sizeof mem->dump_f, "dump_f", 0, -1, true, false}};
  Rng r = {seed * 77 + 1};
  const InterpArg args[] = {{.p = mem->in_i},
                            {.p = mem->in_f},
                            {.p = mem->out_i},
                            {.p = mem->out_f},
                            {.p = mem->dump_i},
                            {.p = mem->dump_f},
                            {.i = (int64_t)(rng_next(&r) % 20) - 4},
                            {.i = ((int64_t)(rng_next(&r) % 64) - 32) * 16},
                            {.i = (int64_t)(rng_next(&r) % 2)},
                            {.f = (double)(rng_next(&r) % 7) - 3}};
  const InterpCmd cmd = {.kind = INTERP_LAUNCH, .func = m->funcs, .grid = {GEN_GRID, 1, 1}, .args = args};
  const InterpConfig c = {.arena = a,
                          .module = m,
                          .ranks = 1,
                          .memory = memory,
                          .nmemory = (int)DT_COUNTOF(memory),
                          .cmds = &cmd,
                          .ncmds = 1,
                          .max_steps = 1u << 24};
  InterpResult res;
  if (interp_run(&c, &res) == ST_OK && res.status == ST_OK) return NULL;
  return res.nfindings ? res.findings[0].text : status_name(res.status);
}

// Line by line: messages of the test library are short.
__attribute__((unused)) static void gen_show(const char *text) {
  while (*text) {
    const size_t n = strcspn(text, "\n");
    print_error("%.*s\n", (int)n, text);
    text += n + (text[n] != 0);
  }
}

#endif
