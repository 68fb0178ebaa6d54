// The room's public face: listing kernels, turning run-time arguments into specialisations, imports, names bound by
// the caller, and what is said when arguments do not fit.
#include "harness/test.h"

#include "front/front.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "import triton\nimport triton.language as tl\n"

typedef struct Run {
  Arena *a;
  Diags d;
  FrontOptions o;
} Run;

static Run run_new(Arena *a) {
  Run r = {.a = a};
  diags_init(&r.d, a);
  return r;
}

static FrontSource text(const char *s) { return (FrontSource){.path = "k.py", .text = s, .len = strlen(s)}; }

// The IR of a program, which must compile and verify.
static const char *compiled(Run *r, FrontSource src, const char *kernel, const FrontSpec *specs, int n) {
  IrModule *m = NULL;
  const Status st = front_compile(r->a, &r->d, ir_ctx_new(r->a), &src, kernel, specs, n, &r->o, &m);
  if (st != ST_OK || ir_verify(m, &r->d) != ST_OK) fail_msg("%s", diags_render(&r->d, r->a));
  return ir_print(m, r->a);
}

static void refused(Run *r, const char *src, const char *kernel, const FrontSpec *specs, int n,
                    const char *want) {
  IrModule *m = NULL;
  const FrontSource s = text(src);
  assert_int_equal(front_compile(r->a, &r->d, ir_ctx_new(r->a), &s, kernel, specs, n, &r->o, &m), ST_COMPILE);
  const char *got = diags_render(&r->d, r->a);
  if (!strstr(got, want)) fail_msg("got:\n%s\nwant: %s", got, want);
}

static void has(const char *ir, const char *want) {
  if (!strstr(ir, want)) fail_msg("%s\nlacks: %s", ir, want);
}

static const FrontSpec x_f32 = {.name = "x", .kind = FRONT_POINTER, .dtype = FDT_float32, .divisible = 16};

static void test_listing(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Run r = run_new(&a);
  const FrontSource src =
      text(HEAD "from triton import jit as J\n"
                "import triton_dist\n"
                "N = 8\n"
                "def host(x): pass\n"
                "@triton.autotune(configs=[], key=['n'])\n"
                "@triton.jit(do_not_specialize=['n', 0])\n"
                "def k(x, n, w: tl.int64, B: tl.constexpr, C: 'tl.constexpr' = N * 2, d=None):\n"
                "    helper(x)\n"
                "@J\n"
                "def helper(x): pass\n"
                "@triton_dist.jit\n"
                "def other(): pass\n"
                "late = triton.jit(host)\n");
  FrontKernels ks;
  assert_int_equal(front_list(&a, &r.d, ir_ctx_new(&a), &src, NULL, &ks), ST_OK);
  assert_int_equal(ks.n, 4);
  assert_string_equal(ks.list[0].name, "k");
  assert_false(ks.list[0].called);
  assert_true(ks.list[1].called);
  assert_string_equal(ks.list[3].name, "host");
  const FrontParam *p = ks.list[0].params;
  assert_int_equal(ks.list[0].nparams, 6);
  assert_true(p[0].no_specialize && p[1].no_specialize && !p[3].no_specialize);
  assert_int_equal(p[2].dtype, FDT_int64);
  assert_true(p[3].is_constexpr && !p[3].has_default);
  assert_true(p[4].is_constexpr && p[4].default_known && p[4].dflt.kind == FCONST_INT && p[4].dflt.i == 16);
  assert_true(p[5].default_known && p[5].dflt.kind == FCONST_NONE);
  assert_non_null(front_pick(&ks, "helper", &src, &r.d));
  assert_null(front_pick(&ks, NULL, &src, &r.d));
  has(diags_render(&r.d, &a), "more than one kernel");
  assert_null(front_pick(&ks, "kk", &src, &r.d));
  arena_free(&a);
}

static void test_specialisation(void **state) {
  (void)state;
  const FrontParam plain = {.name = "n", .dtype = -1},
                   fixed = {.name = "n", .dtype = FDT_int64, .no_specialize = true},
                   never = {.name = "n", .dtype = -1, .no_specialize = true},
                   known = {.name = "n", .dtype = -1, .is_constexpr = true};
  assert_int_equal(front_spec_int(&plain, 1, false).kind, FRONT_CONST);
  assert_int_equal(front_spec_int(&never, 1, false).kind, FRONT_SCALAR);
  assert_int_equal(front_spec_int(&fixed, 1, false).dtype, FDT_int64);
  assert_int_equal(front_spec_int(&known, 7, false).value.i, 7);
  assert_int_equal(front_spec_int(&plain, 48, false).divisible, 16);
  assert_int_equal(front_spec_int(&plain, 40, false).divisible, 8);
  assert_int_equal(front_spec_int(&plain, 50, false).divisible, 1);
  assert_int_equal(front_spec_int(&never, 48, false).divisible, 1);
  assert_int_equal(front_spec_int(&plain, INT32_MAX, false).dtype, FDT_int32);
  assert_int_equal(front_spec_int(&plain, (int64_t)INT32_MAX + 1, false).dtype, FDT_int64);
  assert_int_equal(front_spec_int(&plain, -1, true).dtype, FDT_uint64);
  assert_int_equal(front_spec_float(&plain, 1.0).dtype, FDT_float32);
  assert_int_equal(front_spec_pointer(&plain, FDT_float16, 0x1000).divisible, 16);
  assert_int_equal(front_spec_pointer(&plain, FDT_float16, 0x1008).divisible, 1);
  assert_int_equal(front_dtype_parse("fp8e5", 5), FDT_float8e5);
  assert_int_equal(front_dtype_parse("bf16", 4), FDT_bfloat16);
  assert_int_equal(front_dtype_parse("uint8", 5), FDT_uint8);
  assert_int_equal(front_dtype_parse("f33", 3), -1);
}

static void test_arguments(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Run r = run_new(&a);
  const char *src = HEAD
      "@triton.jit\ndef twice(a): return a * 2\n"
      "@triton.jit\ndef k(x, t, d, F: tl.constexpr, DT: tl.constexpr, S: tl.constexpr, K: tl.constexpr = twice):\n"
      "    tl.static_assert(S == 'max' and DT == tl.float16 and t[1] == 3 and d.block_shape[0] == 16)\n"
      "    v = d.load([t[0], 0])\n"
      "    tl.store(x + tl.arange(0, 16), tl.sum(F(v).to(tl.float32), 1) + K(t[0]))\n";
  const FrontSpec items[] = {{.kind = FRONT_SCALAR, .dtype = FDT_int32},
                             {.kind = FRONT_CONST, .value = {.kind = FCONST_INT, .i = 3}}};
  const FrontSpec specs[] = {
      x_f32,
      {.name = "t", .kind = FRONT_TUPLE, .items = items, .nitems = 2},
      {.name = "d", .kind = FRONT_DESC, .dtype = FDT_float16, .rank = 2, .block = {16, 32}},
      {.name = "F", .kind = FRONT_CONST, .value = {.kind = FCONST_FUNC, .s = "twice"}},
      {.name = "DT", .kind = FRONT_CONST, .value = {.kind = FCONST_DTYPE, .dtype = FDT_float16}},
      {.name = "S", .kind = FRONT_CONST, .value = {.kind = FCONST_STR, .s = "max"}},
  };
  const char *ir = compiled(&r, text(src), "k", specs, 6);
  has(ir, "kernel @k(%x: ptr<f32> {divisible=16}, %t.0: i32, %d: desc<16x32xf16>)");
  has(ir, "func @twice.0");
  has(ir, "func @twice.1");
  refused(&r, src, "k", specs, 5, "no argument for the parameter 'S'");
  arena_free(&a);
}

static void test_wrong_arguments(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  const char *src = HEAD "@triton.jit\ndef k(x, B: tl.constexpr): pass\n";
  Run r = run_new(&a);
  refused(&r, src, NULL, (const FrontSpec[]){x_f32, {.name = "B", .kind = FRONT_SCALAR, .dtype = FDT_int32}},
          2, "'B' is a tl.constexpr and needs a constant");
  r = run_new(&a);
  refused(&r, src, NULL,
          (const FrontSpec[]){x_f32, {.name = "B", .kind = FRONT_CONST}, {.name = "y", .kind = FRONT_CONST}},
          3, "'k' has no parameter 'y'");
  r = run_new(&a);
  refused(&r, src, "q", NULL, 0, "has no jit function 'q'");
  r = run_new(&a);
  refused(&r, HEAD "def k(x): pass\n", NULL, NULL, 0, "no function decorated with @triton.jit");
  r = run_new(&a);
  refused(&r, src, NULL,
          (const FrontSpec[]){
              {.name = "x", .kind = FRONT_DESC, .dtype = FDT_float32, .rank = 2, .block = {16, 24}},
              {.name = "B", .kind = FRONT_CONST}},
          2, "powers of two, but axis 1 has 24");
  r = run_new(&a);
  refused(&r, src, NULL,
          (const FrontSpec[]){{.name = "x", .kind = FRONT_POINTER, .dtype = FDT_float8e4b15},
                              {.name = "B", .kind = FRONT_CONST}},
          2, "has the type float8e4b15, which no value has here");
  arena_free(&a);
}

static void test_globals(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Run r = run_new(&a);
  const FrontGlobal g[] = {{"SIZE", {.kind = FCONST_INT, .i = 64}},
                           {"NEW", {.kind = FCONST_FLOAT, .f = 0.5}}};
  r.o.globals = g;
  r.o.nglobals = 2;
  const char *ir = compiled(
      &r, text(HEAD "SIZE = 32\n@triton.jit\ndef k(x):\n    tl.store(x + tl.arange(0, SIZE), NEW)\n"), "k",
      &x_f32, 1);
  has(ir, "end=64");
  // a function bound by name is the file's own, whatever else is bound to that name
  const FrontGlobal fn[] = {{"f", {.kind = FCONST_FUNC, .s = "g"}}, {"g", {.kind = FCONST_FUNC, .s = "f"}}};
  r.o.globals = fn;
  ir = compiled(&r,
                text(HEAD "@triton.jit\ndef f():\n    return 1.5\n@triton.jit\ndef g():\n    return 2.5\n"
                          "@triton.jit\ndef k(x):\n    tl.store(x, f())\n"),
                "k", &x_f32, 1);
  has(ir, "func @g.0() -> f32 {\n  %0 = const {value=2.5}");
  arena_free(&a);
}

// Functions made kernels by a call after them, under their own names.
static void test_jit_by_call(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Run r = run_new(&a);
  const FrontSource src = text(HEAD "def k(x):\n    tl.store(x, inc(1.5))\ndef inc(v):\n    return v + 1\n"
                                    "k = triton.jit(k)\nk = triton.heuristics({'F': lambda args: 1})(k)\n"
                                    "inc = triton.jit(inc, do_not_specialize=('v',))\n");
  FrontKernels list;
  assert_int_equal(front_list(&a, &r.d, ir_ctx_new(&a), &src, &r.o, &list), ST_OK);
  assert_int_equal(list.n, 2);
  has(compiled(&r, src, NULL, &x_f32, 1), "func @inc");
  arena_free(&a);
}

static void put(const char *dir, const char *name, const char *content) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  char *slash = strrchr(path, '/');
  *slash = 0;
  assert_int_equal(os_mkdirs(path), ST_OK);
  *slash = '/';
  assert_int_equal(os_write_file(path, content, strlen(content)), ST_OK);
}

static void test_imports(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Run r = run_new(&a);
  char dir[] = "/tmp/front-api-XXXXXX";
  assert_non_null(mkdtemp(dir));
  put(dir, "beside.py",
      HEAD "BLOCK: tl.constexpr = tl.constexpr(32)\n@triton.jit\ndef inc(v): return v + 1\n");
  put(dir, "pkg/__init__.py", "");
  put(dir, "pkg/util.py", HEAD "from .deep.more import half\nLIMIT = 7\n");
  put(dir, "pkg/deep/__init__.py", "");
  put(dir, "pkg/deep/more.py", HEAD "@triton.jit\ndef half(v): return v * 0.5\n");
  put(dir, "pkg/k.py",
      HEAD
      "from ..beside import *\nfrom . import util\nfrom pkg.util import LIMIT as TOP\nimport far\nimport numpy as np\n"
      "from .util import half\n"
      "@triton.jit\ndef k(x):\n    r = tl.arange(0, BLOCK)\n"
      "    tl.store(x + r, half(inc(tl.load(x + r))) + util.LIMIT + TOP + far.VALUE)\n");
  put(dir, "elsewhere/far.py", "VALUE = 3\nimport k\n");
  const char *search = arena_printf(&a, "%s/elsewhere", dir);
  r.o.search = &search;
  r.o.nsearch = 1;
  const FrontSource src = {.path = arena_printf(&a, "%s/pkg/k.py", dir)};
  const char *ir = compiled(&r, src, NULL, &x_f32, 1);
  has(ir, "func @half");
  has(ir, "func @inc");
  has(ir, "end=32");
  // an `if` of a module is decided where its condition is known; a caller may say what it is
  put(dir, "pkg/flags.py",
      "import torch\nON = torch.cuda.is_available()\nif 3 < 2:\n    STEP = 100\nelse:\n    STEP = 20\n"
      "if ON:\n    BIAS = 1000\nelif not STEP:\n    BIAS = 1500\nelse:\n    BIAS = 2000\n");
  put(dir, "pkg/g.py",
      HEAD "from . import flags\n@triton.jit\ndef k(x):\n    tl.store(x, float(flags.STEP + flags.BIAS))\n");
  put(dir, "pkg/unsure.py", // whether the second binding is seen is not known, so neither is the condition
      "from importlib.util import find_spec\nHAVE = find_spec('x') is not None\nif HAVE:\n    try:\n"
      "        import x\n    except ImportError:\n        HAVE = False\nif HAVE:\n    STEP = 300\nelse:\n    STEP = 400\n");
  put(dir, "pkg/u.py",
      HEAD "from . import unsure\n@triton.jit\ndef k(x):\n    tl.store(x, float(unsure.STEP))\n");
  const FrontSource unsure = {.path = arena_printf(&a, "%s/pkg/u.py", dir)};
  has(compiled(&r, unsure, NULL, &x_f32, 1), "value=300.0");
  const FrontSource flags = {.path = arena_printf(&a, "%s/pkg/g.py", dir)};
  has(compiled(&r, flags, NULL, &x_f32, 1), "value=1020.0");
  const FrontGlobal off = {"pkg.flags.ON", {.kind = FCONST_BOOL}};
  r.o.globals = &off;
  r.o.nglobals = 1;
  has(compiled(&r, flags, NULL, &x_f32, 1), "value=2020.0");
  // a function of another module by its dotted name, the library's too
  const FrontGlobal named[] = {{"f", {.kind = FCONST_FUNC, .s = "pkg.deep.more.half"}},
                               {"g", {.kind = FCONST_FUNC, .s = "triton.language.extra.libdevice.tanh"}}};
  r.o.globals = named;
  r.o.nglobals = 2;
  put(dir, "pkg/h.py", HEAD "@triton.jit\ndef k(x):\n    tl.store(x, f(g(tl.load(x))))\n");
  const FrontSource bound = {.path = arena_printf(&a, "%s/pkg/h.py", dir)};
  ir = compiled(&r, bound, NULL, &x_f32, 1);
  has(ir, "func @half");
  has(ir, "tanh");
  r.o.nglobals = 0;
  put(dir, "beside.py", "def broken(:\n");
  IrModule *m;
  assert_int_equal(front_compile(&a, &r.d, ir_ctx_new(&a), &src, NULL, &x_f32, 1, &r.o, &m), ST_COMPILE);
  has(diags_render(&r.d, &a), "beside.py:1:");
  const char *rm[] = {"rm", "-rf", dir, NULL};
  int code;
  assert_int_equal(os_run(rm, &code, NULL, 0), ST_OK);
  arena_free(&a);
}

static void test_missing_file(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Run r = run_new(&a);
  const FrontSource src = {.path = "/nowhere/k.py"};
  IrModule *m;
  assert_int_not_equal(front_compile(&a, &r.d, ir_ctx_new(&a), &src, NULL, NULL, 0, NULL, &m), ST_OK);
  has(diags_render(&r.d, &a), "/nowhere/k.py cannot be read");
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_listing),   cmocka_unit_test(test_specialisation),
      cmocka_unit_test(test_arguments), cmocka_unit_test(test_wrong_arguments),
      cmocka_unit_test(test_globals),   cmocka_unit_test(test_jit_by_call),
      cmocka_unit_test(test_imports),   cmocka_unit_test(test_missing_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
