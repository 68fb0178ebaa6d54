// Passes one by one and in a row, on random kernels: the same results bit for bit, and a module that verifies.
#include "pass_gen.h"

#include <stdlib.h>

// SEED=n in the environment repeats one kernel, SEEDS=n tries n of them however long it takes.
enum { KERNELS = 1000 };
#define TIME_LIMIT_NS 2500000000ull // of each test

static bool same_floats(const float *a, const float *b, int n) {
  for (int i = 0; i < n; i++) {
    if (memcmp(&a[i], &b[i], sizeof *a) != 0 && (a[i] == a[i] || b[i] == b[i]))
      return false; // any NaN is a NaN
  }
  return true;
}

static bool same_memory(const GenMemory *a, const GenMemory *b) {
  return memcmp(a->out_i, b->out_i, sizeof a->out_i) == 0 &&
         memcmp(a->dump_i, b->dump_i, sizeof a->dump_i) == 0 &&
         same_floats(a->out_f, b->out_f, (int)DT_COUNTOF(a->out_f)) &&
         same_floats(a->dump_f, b->dump_f, (int)DT_COUNTOF(a->dump_f));
}

static void run_seed(uint64_t seed, const char *passes, bool exact) {
  Arena a;
  TEST_ARENA(a);
  Gen g;
  GenMemory *want = arena_new(&a, GenMemory), *got = arena_new(&a, GenMemory);
  Diags d;
  diags_init(&d, &a);
  gen_kernel(&g, &a, seed, exact);
  if (ir_verify(g.m, &d) != ST_OK)
    fail_msg("seed %llu: the generator is wrong\n%s", (unsigned long long)seed, diags_render(&d, &a));
  const char *before = ir_print(g.m, &a);
  gen_fill(want, seed, exact);
  *got = *want;
  const char *trouble = gen_run(&a, g.m, want, seed);
  if (trouble) {
    gen_show(before);
    fail_msg("seed %llu: %s", (unsigned long long)seed, trouble);
  }
  const PassConfig c = {.diags = &d, .verify = true};
  const Status s = passes ? pass_run_named(g.m, passes, &c) : pass_run(g.m, PASS_INTERP, &c);
  if (s != ST_OK) {
    gen_show(before);
    fail_msg("seed %llu, %s: %s", (unsigned long long)seed, passes ? passes : "all", diags_render(&d, &a));
  }
  trouble = gen_run(&a, g.m, got, seed);
  if (trouble || !same_memory(want, got)) {
    gen_show(before);
    gen_show(ir_print(g.m, &a));
    fail_msg("seed %llu, %s: %s", (unsigned long long)seed, passes ? passes : "all",
             trouble ? trouble : "results differ");
  }
  arena_free(&a);
}

static void run(const char *passes, bool exact) {
  const char *one = getenv("SEED"), *many = getenv("SEEDS");
  const uint64_t end = many ? UINT64_MAX : os_now_ns() + TIME_LIMIT_NS;
  const uint64_t n = one    ? 1
                     : many ? strtoull(many, NULL, 10)
                            : KERNELS,
                 first = one ? strtoull(one, NULL, 10) : 1;
  for (uint64_t i = 0; i < n && os_now_ns() < end; i++) run_seed(first + i, passes, exact);
}

static void test_fold(void **state) {
  (void)state;
  run("fold", false);
}
static void test_cse(void **state) {
  (void)state;
  run("cse", false);
}
static void test_licm(void **state) {
  (void)state;
  run("fold,licm", false); // fold tells which loops surely run
}
static void test_dce(void **state) {
  (void)state;
  run("dce", false);
}
static void test_strength(void **state) {
  (void)state;
  run("strength", false);
}
static void test_contract(void **state) {
  (void)state;
  run("contract", true);
}
static void test_mixed(void **state) {
  (void)state;
  run("licm,cse,fold,strength,fold,licm,dce,cse,dce", false);
}
static void test_all(void **state) {
  (void)state;
  run(NULL, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fold),     cmocka_unit_test(test_cse),
                                     cmocka_unit_test(test_licm),     cmocka_unit_test(test_dce),
                                     cmocka_unit_test(test_strength), cmocka_unit_test(test_contract),
                                     cmocka_unit_test(test_mixed),    cmocka_unit_test(test_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
