// The front end on damaged programs: no crash, no hang, a diagnostic for each refusal, and IR that verifies for each
// program that compiles. TIMEOUT: 200
#include "harness/fuzz.h"
#include "harness/test.h"
#include "front/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// An argument by the look of the parameter: enough for many programs to get past their first line.
static FrontSpec guess(const FrontParam *p) {
  FrontSpec s = {.name = p->name};
  const size_t n = strlen(p->name);
  if (p->is_constexpr) {
    s.kind = FRONT_CONST;
    s.value = (FrontConst){.kind = FCONST_INT, .i = n % 2 ? 16 : 32};
  } else if (strstr(p->name, "ptr") || n == 1) {
    s.kind = FRONT_POINTER;
    s.dtype = strstr(p->name, "flag") || strstr(p->name, "epoch") ? FDT_int64 : FDT_float32;
    s.divisible = 16;
  } else if (strstr(p->name, "desc")) {
    s.kind = FRONT_DESC;
    s.dtype = FDT_float16;
    s.rank = 2;
    s.block[0] = s.block[1] = 32;
  } else {
    s.kind = FRONT_SCALAR;
    s.dtype = FDT_int32;
  }
  return s;
}

static void compile_one(const FrontSource *src, const FrontKernel *k) {
  Arena a;
  Escape esc;
  arena_init(&a, (size_t)1 << 30, &esc);
  if (ESCAPE_TRY(&esc)) { // unrolled to the limit of memory: an error that the caller sees, not a crash
    arena_free(&a);
    return;
  }
  Diags d;
  diags_init(&d, &a);
  FrontSpec specs[32];
  int n = 0;
  for (int i = 0; i < k->nparams && n < 32; i++)
    if (!k->params[i].has_default) specs[n++] = guess(&k->params[i]);
  IrModule *m = NULL;
  const Status st = front_compile(&a, &d, ir_ctx_new(&a), src, k->name, specs, n, NULL, &m);
  if ((st == ST_OK) != (m != NULL) || (st != ST_OK) != (d.errors > 0)) abort();
  if (m && ir_verify(m, &d) != ST_OK) {
    fprintf(stderr, "%s\n%s\n", diags_render(&d, &a), ir_print(m, &a));
    abort();
  }
  diags_render(&d, &a);
  arena_free(&a);
}

static void front_one(const void *data, size_t len, void *user) {
  (void)user;
  Arena a;
  Escape esc;
  arena_init(&a, (size_t)512 << 20, &esc);
  if (ESCAPE_TRY(&esc)) abort(); // the input is small
  Diags d;
  diags_init(&d, &a);
  const FrontSource src = {.path = "fuzzed.py", .text = data, .len = len};
  FrontKernels ks;
  const Status st = front_list(&a, &d, ir_ctx_new(&a), &src, NULL, &ks);
  if ((st != ST_OK) != (d.errors > 0)) abort();
  for (int i = 0; st == ST_OK && i < ks.n && i < 8; i++) compile_one(&src, &ks.list[i]);
  diags_render(&d, &a);
  arena_free(&a);
}

static const char *const words[] = {"tl.",
                                    "dl.",
                                    "if ",
                                    "else:\n",
                                    "for i in range(",
                                    "while ",
                                    "return ",
                                    "break\n",
                                    "continue\n",
                                    "tl.load(",
                                    "tl.store(",
                                    "tl.dot(",
                                    "tl.sum(",
                                    "tl.constexpr",
                                    "None",
                                    "[:, None]",
                                    "[None, :]",
                                    "lambda a:",
                                    "tl.arange(0, 32)",
                                    "tl.zeros((16, 16), tl.float32)",
                                    ".to(tl.float16)",
                                    "tid(0)",
                                    "tl.static_range(1000000)",
                                    "(",
                                    ")",
                                    "[",
                                    "]",
                                    ",",
                                    ":",
                                    "=",
                                    "+=",
                                    "//",
                                    "**",
                                    "not ",
                                    " and ",
                                    " is ",
                                    "float('inf')",
                                    "f\"{x}\"",
                                    "0",
                                    "-1",
                                    "1 << 100",
                                    "1e400",
                                    "@triton.jit\n",
                                    "def ",
                                    "x",
                                    "    ",
                                    "\n",
                                    "with dl.simt_exec_region() as (t, n):\n",
                                    "__syncthreads()",
                                    "tl.make_block_ptr(",
                                    "*args",
                                    "**kw",
                                    "tl.reduce(",
                                    "tl.associative_scan(",
                                    "dl.symm_at(",
                                    "tl.max(",
                                    NULL};

static void test_fuzz(void **state) {
  (void)state;
  Fuzz f = {.run = front_one, .tokens = words, .max_len = 16 << 10};
  fuzz_add_files(&f, "kernels/*.py");
  fuzz_add_files(&f, "tests/golden/front_*.py");
  fuzz_or_fail(&f);
}

static const char sample[] = "import triton\nimport triton.language as tl\n"
                             "@triton.jit\ndef h(a, b):\n    if a > b:\n        return a\n    return b\n"
                             "@triton.jit\ndef k(x_ptr, n, B: tl.constexpr):\n"
                             "    r = tl.arange(0, B)\n    s = tl.zeros((B,), tl.float32)\n"
                             "    for i in range(h(n, 3)):\n        s += tl.load(x_ptr + r + i, mask=r < n)\n"
                             "    tl.store(x_ptr + r, tl.cumsum(s, 0))\n";

// Compiles the sample while the nth chunk of memory from now fails. True: it did.
static bool ends_at(long n) {
  Arena a;
  Escape esc;
  arena_init(&a, 0, &esc);
  if (ESCAPE_TRY(&esc)) {
    arena_test_fail_after(0);
    assert_int_equal(esc.status, ST_NO_MEMORY);
    arena_free(&a);
    return true;
  }
  arena_test_fail_after(n);
  Diags d;
  diags_init(&d, &a);
  const FrontSource src = {.path = "k.py", .text = sample, .len = sizeof sample - 1};
  const FrontSpec specs[] = {{.name = "x_ptr", .kind = FRONT_POINTER, .dtype = FDT_float32},
                             {.name = "n", .kind = FRONT_SCALAR, .dtype = FDT_int32},
                             {.name = "B", .kind = FRONT_CONST, .value = {.kind = FCONST_INT, .i = 64}}};
  IrModule *m;
  assert_int_equal(front_compile(&a, &d, ir_ctx_new(&a), &src, "k", specs, 3, NULL, &m), ST_OK);
  arena_test_fail_after(0);
  arena_free(&a);
  return false;
}

// Memory that ends at any point of a compile comes back through the escape.
static void test_memory_ends(void **state) {
  (void)state;
  long n = 1;
  while (ends_at(n)) n++;
  assert_true(n > 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_ends), cmocka_unit_test(test_fuzz)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
