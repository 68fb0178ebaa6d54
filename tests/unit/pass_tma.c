// Kernels that copy blocks through tensor descriptors in the background, on the interpreter at every stage, with row-major and with
// swizzled buffers, checked for races: the same result, edges and padding included.
#include "unit/ir_interp.h"

#include "pass/pass.h"

#include <math.h>
#include <stdlib.h>

static const char *const stages[] = {"", "lay", "lay,low", "fold,cse,licm,dce,lay,cse,dce,low,cse,licm,dce"};

static bool swizzle(IrOp *op, void *user) {
  const IrType *t = op->nresults ? op->results[0].type : NULL;
  IrCtx *c = user;
  if (!t || t->kind != IR_MEMDESC) return true;
  const IrLayout l = layout_swizzled(t->rank, t->shape, (uint32_t)ir_type_bytes(t));
  op->results[0].type = ir_type_with_layout(c, t, &l);
  return true;
}

static void at_stage(Run *r, const char *text, const char *names, bool swizzled) {
  run_open(r, text, 1);
  const PassConfig cfg = {.diags = &r->diags, .verify = true};
  const bool laid = strstr(names, "lay") != NULL;
  const char *low = strstr(names, "low");
  const char *before = laid && low ? arena_printf(&r->arena, "%.*s", (int)(low - names), names) : names;
  if (*before && pass_run_named(r->module, before, &cfg) != ST_OK)
    fail_msg("%s: %s", before, diags_render(&r->diags, &r->arena));
  if (swizzled) ir_walk(r->module->funcs->body, swizzle, r->module->ctx);
  if (laid && low && pass_run_named(r->module, low, &cfg) != ST_OK)
    fail_msg("%s: %s", low, diags_render(&r->diags, &r->arena));
  if (getenv("SHOW_IR")) printf("%s\n", ir_print(r->module, &r->arena));
}

// y[rows, 32] = the sum over blocks of columns of x[rows, cols], whose rows are ld apart; each program has 16 rows.
static const char sums[] = //
    "module stage=tile warps=4 stages=2 lanes=32\n"
    "kernel @k(%x: ptr<f16>, %y: ptr<f32>, %rows: i32, %cols: i32, %ld: i64, %n: i32) {\n"
    "  %z = const {value=0} : i32\n  %one = const {value=1} : i32\n  %c1 = const {value=1} : i64\n"
    "  %c16 = const {value=16} : i32\n  %c32 = const {value=32} : i32\n  %l32 = const {value=32} : i64\n"
    "  %bytes = const {value=1024} : i32\n"
    "  %pid = program_id {axis=0} : i32\n  %row = mul %pid, %c16 : i32\n"
    "  %d = make_desc %x, %rows, %cols, %ld, %c1 {pad=PAD} : desc<16x32xf16>\n"
    "  %e = make_desc %y, %rows, %c32, %l32, %c1 : desc<16x32xf32>\n"
    "  %m = mem_alloc : memdesc<2*16x32xf16, shared>\n  %out = mem_alloc : memdesc<16x32xf32, shared>\n"
    "  %full = mbarrier_alloc {count=1} : mbarrier<2>\n"
    "  %zeros = const {value=0} : tile<16x32xf32>\n"
    "  %sum = for %z, %n, %one, %zeros : tile<16x32xf32> { (%i: i32, %acc: tile<16x32xf32>)\n"
    "    %st = and %i, %one : i32\n    %h = shr_u %i, %one : i32\n    %ph = and %h, %one : i32\n"
    "    %col = mul %i, %c32 : i32\n"
    "    barrier\n"
    "    mbarrier_expect %full, %st, %bytes\n"
    "    %v = mem_view %m, %st : memdesc<16x32xf16, shared>\n"
    "    desc_load_async %d, %v, %full, %st, %row, %col\n"
    "    %t = mbarrier_wait %full, %st, %ph : token\n"
    "    %a = mem_load %v : tile<16x32xf16>\n    %f = fcast %a : tile<16x32xf32>\n"
    "    %next = fadd %acc, %f : tile<16x32xf32>\n    yield %next }\n"
    "  mem_store %out, %sum\n"
    "  %k = desc_store_async %e, %out, %row, %z STORE: token\n"
    "  %w = async_wait %k : token\n"
    "  return\n}\n";

static const char *with(Arena *a, const char *text, const char *what, const char *by) {
  const char *at = strstr(text, what);
  return at ? arena_printf(a, "%.*s%s%s", (int)(at - text), text, by, at + strlen(what)) : text;
}

static double f16(uint16_t bits) { return ir_bits_float(IR_f16, bits); }

static void check_sums(const char *names, bool swizzled, bool nan, bool update, uint64_t seed) {
  enum { ROWS = 37, COLS = 75, LD = 80 }; // not whole blocks
  static uint16_t x[ROWS * LD];
  static float y[48 * 32];
  Arena a;
  TEST_ARENA(a);
  for (int i = 0; i < ROWS * LD; i++) x[i] = (uint16_t)ir_float_bits(IR_f16, (double)(i * 7 % 31) - 15);
  for (int i = 0; i < 48 * 32; i++) y[i] = 100;
  const char *text = with(&a, sums, "PAD", nan ? "nan" : "zero");
  text = with(&a, text, "STORE", update ? "{rmw=fadd} " : "");
  Run r;
  at_stage(&r, text, names, swizzled);
  run_memory(&r, x, sizeof x, "x", 0, -1);
  run_memory(&r, y, sizeof y, "y", 0, -1);
  run_launch(&r, 0, "k", 3, (InterpArg[]){{.p = x}, {.p = y}, {.i = ROWS}, {.i = COLS}, {.i = LD}, {.i = 3}});
  r.config.seed = seed;
  r.config.check = seed & 1;
  run_ok(&r);
  for (int i = 0; i < 48; i++) {
    for (int j = 0; j < 32; j++) {
      double want = update || i >= ROWS ? 100 : 0;
      for (int k = j; i < ROWS && k < 96; k += 32) want += k < COLS ? f16(x[i * LD + k]) : nan ? NAN : 0;
      const float got = y[i * 32 + j];
      if (want != want ? got == got : got != (float)want)
        fail_msg("%s%s, seed %d: y[%d, %d] is %g, not %g", names, swizzled ? ", swizzled" : "", (int)seed, i,
                 j, got, want);
    }
  }
  run_close(&r);
  arena_free(&a);
}

static void test_sums(void **state) {
  (void)state;
  for (size_t s = 0; s < DT_COUNTOF(stages); s++) {
    for (int how = 0; how < 4; how++) {
      for (uint64_t seed = 0; seed < 4; seed++) {
        check_sums(stages[s], false, how & 1, how & 2, seed);
        if (*stages[s]) check_sums(stages[s], true, how & 1, how & 2, seed);
      }
    }
  }
}

// A producer warp and three warps that double rows: both directions of barriers, one arrival for a whole partition.
static const char ring[] = //
    "module stage=tile warps=4 stages=2 lanes=32\n"
    "kernel @k(%x: ptr<f32>, %y: ptr<f32>) {\n"
    "  %m = mem_alloc : memdesc<2*4x32xf32, shared>\n"
    "  %full = mbarrier_alloc {count=1} : mbarrier<2>\n  %empty = mbarrier_alloc {count=1} : mbarrier<2>\n"
    "  %z = const {value=0} : i32\n  %o = const {value=1} : i32\n  %eight = const {value=8} : i32\n"
    "  %four = const {value=4} : i32\n  %c32 = const {value=32} : i32\n  %c128 = const {value=128} : i32\n"
    "  %bytes = const {value=512} : i32\n  %n32 = const {value=32} : i64\n  %s1 = const {value=1} : i64\n"
    "  %d = make_desc %x, %c32, %c32, %n32, %s1 : desc<4x32xf32>\n"
    "  warp_partitions {first=[0, 1], warps=[1, 3]} {\n"
    "    for %z, %eight, %o { (%i: i32)\n"
    "      %st = and %i, %o : i32\n      %h = shr_u %i, %o : i32\n      %ph0 = and %h, %o : i32\n      %ph = xor %ph0, %o : i32\n"
    "      %t0 = mbarrier_wait %empty, %st, %ph : token\n"
    "      mbarrier_expect %full, %st, %bytes\n      %v = mem_view %m, %st : memdesc<4x32xf32, shared>\n"
    "      %row = mul %i, %four : i32\n"
    "      desc_load_async %d, %v, %full, %st, %row, %z\n      yield }\n"
    "    yield\n  } {\n"
    "    %t = tid : thread i32\n    %tc = to_thread %c128 : thread i32\n    %c96 = const {value=96} : thread i32\n"
    "    %t32 = to_thread %c32 : thread i32\n    %yt = to_thread %y : thread ptr<f32>\n"
    "    for %z, %eight, %o { (%j: i32)\n"
    "      %st2 = and %j, %o : i32\n      %h2 = shr_u %j, %o : i32\n      %ph2 = and %h2, %o : i32\n"
    "      %t1 = mbarrier_wait %full, %st2, %ph2 : token\n"
    "      %v2 = mem_view %m, %st2 : memdesc<4x32xf32, shared>\n"
    "      %base = mul %j, %c128 : i32\n      %bt = to_thread %base : thread i32\n"
    "      for %t, %tc, %c96 { (%e: thread i32)\n"
    "        %er = div_s %e, %t32 : thread i32\n        %ec = rem_s %e, %t32 : thread i32\n"
    "        %a = mem_get %v2, %er, %ec : thread f32\n        %two = fadd %a, %a : thread f32\n"
    "        %at = add %bt, %e : thread i32\n        %yp = ptr_add %yt, %at : thread ptr<f32>\n        store %yp, %two, _\n"
    "        yield }\n"
    "      mbarrier_arrive %empty, %st2\n"
    "      yield }\n"
    "    yield\n  }\n"
    "  return\n}\n";

static void test_ring(void **state) {
  (void)state;
  static float x[1024], y[1024];
  for (int k = 0; k < 1024; k++) x[k] = (float)k;
  for (size_t s = 0; s < DT_COUNTOF(stages); s++) {
    for (uint64_t seed = 0; seed < 6; seed++) {
      Run r;
      at_stage(&r, ring, stages[s], false);
      memset(y, 0, sizeof y);
      run_memory(&r, x, sizeof x, "x", 0, -1);
      run_memory(&r, y, sizeof y, "y", 0, -1);
      run_launch(&r, 0, "k", 1, (InterpArg[]){{.p = x}, {.p = y}});
      r.config.seed = seed;
      r.config.check = seed & 1;
      run_ok(&r);
      for (int k = 0; k < 1024; k++) assert_true(y[k] == 2 * x[k]);
      run_close(&r);
    }
  }
}

// What a kernel gets wrong is found at each stage: bytes that never come, a wait for another phase.
static void check_mistakes(const char *names) {
  static uint16_t x[32 * 32];
  static float y[32 * 32];
  Arena a;
  TEST_ARENA(a);
  const char *text = with(&a, with(&a, sums, "PAD", "zero"), "STORE", "");
  const InterpArg args[] = {{.p = x}, {.p = y}, {.i = 32}, {.i = 32}, {.i = 32}, {.i = 1}};
  Run r;
  at_stage(&r, with(&a, text, "%bytes = const {value=1024}", "%bytes = const {value=1040}"), names, false);
  run_memory(&r, x, sizeof x, "x", 0, -1);
  run_memory(&r, y, sizeof y, "y", 0, -1);
  run_launch(&r, 0, "k", 1, args);
  interp_run(&r.config, &r.result);
  if (r.result.status != ST_DEADLINE) fail_msg("%s: too many bytes: %s", names, run_findings(&r));
  run_close(&r);
  // waits for the phase before, which is over
  at_stage(&r, with(&a, text, "mbarrier_wait %full, %st, %ph", "mbarrier_wait %full, %st, %one"), names,
           false);
  run_memory(&r, x, sizeof x, "x", 0, -1);
  run_memory(&r, y, sizeof y, "y", 0, -1);
  run_launch(&r, 0, "k", 1, args);
  r.config.check = true;
  interp_run(&r.config, &r.result);
  if (r.result.status != ST_RACE) fail_msg("%s: another phase: %s", names, run_findings(&r));
  run_close(&r);
  arena_free(&a);
}
static void test_mistakes(void **state) {
  (void)state;
  for (size_t s = 0; s < DT_COUNTOF(stages); s++) check_mistakes(stages[s]);
}

// ---- what lowering adds ---------------------------------------------------------------------------------------------------------
static const char *lowered(Arena *a, const char *text) {
  Diags d;
  diags_init(&d, a);
  IrModule *m = NULL;
  const PassConfig cfg = {.diags = &d, .verify = true};
  if (ir_parse(a, ir_ctx_new(a), &d, "k", text, strlen(text), &m) != ST_OK ||
      pass_run_named(m, "lay,low,cse,dce", &cfg) != ST_OK)
    return diags_render(&d, a);
  return ir_print(m, a);
}
static void in_order(const char *text, const char *const *parts, size_t n) {
  const char *at = text;
  for (size_t i = 0; i < n; i++) {
    at = strstr(at, parts[i]);
    if (!at) fail_msg("no '%s' in its place in\n%s", parts[i], text);
    at += strlen(parts[i]);
  }
}
#define IN_ORDER(text, ...) \
  in_order(text, (const char *const[]){__VA_ARGS__}, DT_COUNTOF(((const char *const[]){__VA_ARGS__})))

static void test_lowering(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  static const char head[] =
      "module stage=tile warps=4 stages=2 lanes=32\n"
      "kernel @k(%d: desc<16x32xf32>, %p: ptr<f32>) {\n  %z = const {value=0} : i32\n"
      "  %m = mem_alloc : memdesc<16x32xf32, shared>\n  %b = mem_alloc : memdesc<32xf32, shared>\n"
      "  %r = arange {start=0, end=32} : tile<32xi32>\n  %ps = splat %p : tile<32xptr<f32>>\n"
      "  %pp = ptr_add %ps, %r : tile<32xptr<f32>>\n";
  // writes of all threads come before the accelerator's reads; a second store behind the first needs no more
  const char *t =
      lowered(&a, arena_printf(&a,
                               "%s  %%one = const {value=1.0} : tile<16x32xf32>\n  mem_store %%m, %%one\n"
                               "  %%k = desc_store_async %%d, %%m, %%z, %%z : token\n"
                               "  %%k2 = desc_store_async %%d, %%m, %%z, %%z : token\n"
                               "  %%w = async_wait %%k, %%k2 {reads=true} : token\n  return\n}\n",
                               head));
  IN_ORDER(t, "store_pack", "fence {", "proxy=async", "barrier", "desc_store_async", "desc_store_async",
           "async_wait", "reads=true");
  assert_null(strstr(strstr(t, "desc_store_async"), "fence"));
  assert_null(strstr(t, "copy_wait"));
  // a program that has ordered them itself
  t = lowered(
      &a,
      arena_printf(&a,
                   "%s  fence {proxy=async}\n  barrier\n  %%k = desc_store_async %%d, %%m, %%z, %%z : token\n"
                   "  %%w = async_wait %%k : token\n  return\n}\n",
                   head));
  assert_null(strstr(strstr(t, "fence") + 1, "fence"));
  // tokens of loads and of stores
  t = lowered(&a,
              arena_printf(&a,
                           "%s  %%l = copy_async %%b, %%pp, _, _ : token\n"
                           "  %%k = desc_store_async %%d, %%m, %%z, %%z : token\n"
                           "  %%w = async_wait %%l : token\n  %%w2 = async_wait %%k : token\n  return\n}\n",
                           head));
  IN_ORDER(t, "copy_commit", "desc_store_async", "copy_wait", "async_wait %k");
  t = lowered(&a, arena_printf(&a,
                               "%s  %%l = copy_async %%b, %%pp, _, _ : token\n"
                               "  %%k = desc_store_async %%d, %%m, %%z, %%z : token\n"
                               "  %%w = async_wait %%l, %%k : token\n  return\n}\n",
                               head));
  IN_ORDER(t, "copy_commit", "desc_store_async", "copy_wait", "async_wait");
  t = lowered(&a, arena_printf(&a,
                               "%s  %%l = copy_async %%b, %%pp, _, _ : token\n"
                               "  %%k = desc_store_async %%d, %%m, %%z, %%z : token\n"
                               "  %%w = async_wait {pending=1} : token\n  return\n}\n",
                               head));
  assert_non_null(strstr(t, "name the tokens to wait for"));
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_ring),
                                     cmocka_unit_test(test_mistakes), cmocka_unit_test(test_lowering)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
