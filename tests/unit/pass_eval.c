// Folding computes what the interpreter computes: every elementwise op on every dtype, on odd numbers and random bits.
#include "harness/test.h"

#include "pass/pass_impl.h"

#include <string.h>

enum { N = 256 };

typedef struct Case {
  Arena *a;
  IrCtx *ctx;
  IrModule *m;
  IrBuilder b;
  int nparams;
} Case;

static const IrType *tile_of(Case *c, IrDtype d) {
  const int32_t n = N;
  return ir_type_tile(c->ctx, d, 1, &n);
}

// param + 0..N-1
static IrValue *addresses(Case *c, IrDtype d) {
  const int32_t n = N;
  IrFunc *f = c->m->funcs;
  IrValue *p = ir_func_param(f, ir_type_ptr(c->ctx, d, SPACE_global, LEVEL_program),
                             str_printf(ir_strings(c->ctx), "p%d", c->nparams++));
  const IrType *t = tile_of(c, IR_i32);
  IrOp *range = ir_build(&c->b, OP_arange, 0, NULL, 1, &t, 0);
  ir_set_attr_i(range, ATTR_start, 0);
  ir_set_attr_i(range, ATTR_end, N);
  return ir_ptr_add(&c->b, ir_splat(&c->b, p, 1, &n), ir_result(range, 0));
}

static uint64_t interesting(Rng *r, IrDtype d) {
  static const double floats[] = {0.0,     -0.0,  1.0,          -1.0,  0.5,       1.5,   2.5,
                                  3.7,     -3.7,  65504.0,      1e10,  -1e10,     1e-10, 448.0,
                                  57344.0, 1e300, 2147483648.0, 255.0, 16777217.0};
  static const int64_t ints[] = {0,   1,   -1,        2,         3,         7,         8,
                                 31,  32,  63,        64,        127,       128,       -128,
                                 255, 256, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1000003};
  const uint64_t mask = pass_mask(ir_dtypes[d].bits);
  if (rng_next(r) % 3 == 0) return rng_next(r) & mask;
  if (ir_dtypes[d].cls == IR_INT) return (uint64_t)ints[rng_next(r) % DT_COUNTOF(ints)] & mask;
  return ir_float_bits(d, floats[rng_next(r) % DT_COUNTOF(floats)]);
}

static uint64_t get(const void *base, IrDtype d, int i) {
  uint64_t v = 0;
  const int n = ir_dtypes[d].bytes;
  memcpy(&v, (const char *)base + i * n, (size_t)n);
  return v;
}
static void put(void *base, IrDtype d, int i, uint64_t v) {
  const int n = ir_dtypes[d].bytes;
  memcpy((char *)base + i * n, &v, (size_t)n);
}

static bool is_nan(IrDtype d, uint64_t bits) {
  const double x = ir_bits_float(d, bits);
  return ir_dtypes[d].cls == IR_FLOAT && x != x;
}

// One op: operand dtypes, result dtype; set adds attributes. Returns how many elements pass_eval knew.
static int check(Arena *a, IrOpKind k, uint32_t nops, const IrDtype *from, IrDtype to, IrAttrName attr,
                 int64_t value, uint64_t seed) {
  IrCtx *ctx = ir_ctx_new(a);
  Case c = {.a = a, .ctx = ctx, .m = ir_module_new(a, ctx, NULL)};
  c.m->stage = STAGE_tile;
  c.m->num_warps = 1;
  c.m->lanes = 32;
  IrFunc *f = ir_func_new(c.m, str_cstr(ir_strings(ctx), "k"), true);
  c.b = ir_builder_at_end(f->body);
  c.b.m = c.m;
  uint64_t data[4][N] = {{0}};
  InterpMemory memory[4];
  InterpArg args[4];
  IrValue *vs[3], *p;
  Rng r = {seed};
  for (uint32_t i = 0; i < nops; i++) {
    p = addresses(&c, from[i]);
    vs[i] = ir_load(&c.b, p, NULL, NULL);
    for (int e = 0; e < N; e++) put(data[i], from[i], e, interesting(&r, from[i]));
  }
  const IrType *t = tile_of(&c, to);
  IrOp *op = ir_build(&c.b, k, nops, vs, 1, &t, 0);
  if (attr != ATTR_COUNT) ir_set_attr_i(op, attr, value);
  p = addresses(&c, to);
  ir_store(&c.b, p, ir_result(op, 0), NULL);
  ir_return(&c.b, 0, NULL);
  Diags d;
  diags_init(&d, a);
  if (ir_verify(c.m, &d) != ST_OK) fail_msg("%s", diags_render(&d, a));
  for (uint32_t i = 0; i <= nops; i++) {
    memory[i] = (InterpMemory){data[i], sizeof data[i], "data", 0, -1, true, false};
    args[i].p = data[i];
  }
  const InterpCmd cmd = {.kind = INTERP_LAUNCH, .func = f, .grid = {1, 1, 1}, .args = args};
  const InterpConfig config = {.arena = a,
                               .module = c.m,
                               .ranks = 1,
                               .memory = memory,
                               .nmemory = (int)nops + 1,
                               .cmds = &cmd,
                               .ncmds = 1};
  InterpResult res;
  assert_int_equal(interp_run(&config, &res), ST_OK);
  assert_int_equal(res.status, ST_OK);
  int known = 0;
  for (int e = 0; e < N; e++) {
    uint64_t in[3] = {0}, out;
    for (uint32_t i = 0; i < nops; i++) in[i] = get(data[i], from[i], e);
    if (!pass_eval(op, in, &out)) continue;
    known++;
    const uint64_t want = get(data[nops], to, e);
    if (out != want && !(is_nan(to, out) && is_nan(to, want)))
      fail_msg("%s of %s to %s (%d): %llx %llx %llx gives %llx, but %llx when folded", ir_ops[k].name,
               ir_dtypes[from[0]].name, ir_dtypes[to].name, (int)value, (unsigned long long)in[0],
               (unsigned long long)in[1], (unsigned long long)in[2], (unsigned long long)want,
               (unsigned long long)out);
  }
  return known;
}

static void one(IrOpKind k, uint32_t nops, const IrDtype *from, IrDtype to, IrAttrName attr, int64_t value,
                bool all) {
  Arena a;
  TEST_ARENA(a);
  const int known = check(&a, k, nops, from, to, attr, value, k * 1000u + from[0] * 20u + to);
  if (all && known != N)
    fail_msg("%s on %s: only %d of %d are folded", ir_ops[k].name, ir_dtypes[from[0]].name, known, N);
  arena_free(&a);
}

static void test_integers(void **state) {
  (void)state;
  static const IrOpKind ks[] = {OP_add,     OP_sub,     OP_mul,   OP_div_s, OP_div_u, OP_rem_s, OP_rem_u,
                                OP_mulhi_s, OP_mulhi_u, OP_and,   OP_or,    OP_xor,   OP_shl,   OP_shr_s,
                                OP_shr_u,   OP_min_s,   OP_max_s, OP_min_u, OP_max_u};
  for (IrDtype d = IR_i1; d <= IR_i64; d++) {
    for (size_t i = 0; i < DT_COUNTOF(ks); i++) one(ks[i], 2, (IrDtype[]){d, d}, d, ATTR_COUNT, 0, true);
    one(OP_abs_s, 1, &d, d, ATTR_COUNT, 0, true);
    for (int p = 0; p < CMP_COUNT; p++) one(OP_cmp, 2, (IrDtype[]){d, d}, IR_i1, ATTR_cmp, p, true);
    one(OP_select, 3, (IrDtype[]){IR_i1, d, d}, d, ATTR_COUNT, 0, true);
  }
}

static void test_floats(void **state) {
  (void)state;
  static const IrOpKind ks[] = {OP_fadd, OP_fsub, OP_fmul, OP_fdiv, OP_frem, OP_fmin, OP_fmax};
  static const IrDtype ds[] = {IR_f16, IR_bf16, IR_f32, IR_f64};
  for (size_t j = 0; j < DT_COUNTOF(ds); j++) {
    const IrDtype d = ds[j];
    for (size_t i = 0; i < DT_COUNTOF(ks); i++) one(ks[i], 2, (IrDtype[]){d, d}, d, ATTR_COUNT, 0, false);
    one(OP_fmin, 2, (IrDtype[]){d, d}, d, ATTR_nan, 1, false);
    one(OP_fneg, 1, &d, d, ATTR_COUNT, 0, true);
    one(OP_fabs, 1, &d, d, ATTR_COUNT, 0, true);
    one(OP_fma, 3, (IrDtype[]){d, d, d}, d, ATTR_COUNT, 0, false);
    for (int p = 0; p < FCMP_COUNT; p++) one(OP_fcmp, 2, (IrDtype[]){d, d}, IR_i1, ATTR_fcmp, p, true);
  }
  for (IrDtype d = IR_f32; d <= IR_f64; d++) {
    for (int fn = 0; fn < MATH_FN_COUNT; fn++)
      one(OP_math, fn == MATH_FN_pow ? 2 : 1, (IrDtype[]){d, d}, d, ATTR_fn, fn, false);
  }
}

static void test_conversions(void **state) {
  (void)state;
  for (IrDtype from = IR_i1; from < IR_NDTYPES; from++) {
    for (IrDtype to = IR_i1; to < IR_NDTYPES; to++) {
      const bool fi = ir_dtypes[from].cls == IR_INT, ti = ir_dtypes[to].cls == IR_INT;
      const int fb = ir_dtypes[from].bits, tb = ir_dtypes[to].bits;
      if (fi && ti && tb > fb) one(OP_ext_s, 1, &from, to, ATTR_COUNT, 0, true);
      if (fi && ti && tb > fb) one(OP_ext_u, 1, &from, to, ATTR_COUNT, 0, true);
      if (fi && ti && tb < fb) one(OP_trunc, 1, &from, to, ATTR_COUNT, 0, true);
      if (fi && !ti) one(OP_si2f, 1, &from, to, ATTR_COUNT, 0, false);
      if (fi && !ti) one(OP_ui2f, 1, &from, to, ATTR_COUNT, 0, false);
      if (!fi && ti && tb > 1) one(OP_f2si, 1, &from, to, ATTR_COUNT, 0, true);
      if (!fi && ti && tb > 1) one(OP_f2ui, 1, &from, to, ATTR_COUNT, 0, true);
      if (!fi && !ti && from != to) one(OP_fcast, 1, &from, to, ATTR_COUNT, 0, false);
      if (!fi && !ti && from != to && tb < fb) one(OP_fcast, 1, &from, to, ATTR_round, ROUND_rtz, false);
      if (fb == tb && from != to && fb > 1) one(OP_bitcast, 1, &from, to, ATTR_COUNT, 0, true);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers), cmocka_unit_test(test_floats),
                                     cmocka_unit_test(test_conversions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
