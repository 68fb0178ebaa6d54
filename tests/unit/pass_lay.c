// Layouts and lowering for GPUs: kernels run on the interpreter as written, laid out and lowered; each stage must leave
// the same memory. First written kernels, then random ones (pass_place_gen.h). Arguments: see harness/seeds.h.
#include "pass_place_gen.h"
#include "pass_place_seeds.h"

#include "pass_place_cases.h"

static const char *const stages[] = {"lay",
                                     "lay,pipe,cse,dce",
                                     "lay,low",
                                     "lay,pipe,low",
                                     "fold,cse,licm,strength,fold,dce,lay,cse,dce,low,cse,licm,dce",
                                     "lay,cse,dce,pipe,cse,dce,low,cse,licm,dce,alloc,sync"};

static void check_case(const Case *c, int warps) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *tile = NULL;
  if (ir_parse(&a, ir_ctx_new(&a), &d, c->name, c->text, strlen(c->text), &tile) != ST_OK)
    fail_msg("%s", diags_render(&d, &a));
  tile->num_warps = warps;
  const Memory x = memory_new(&a, tile->funcs, 1);
  run(&a, tile, c, &x, "as written");
  for (size_t i = 0; i < DT_COUNTOF(stages); i++) {
    IrModule *m = ir_module_clone(tile, &a);
    const PassConfig cfg = {.diags = &d, .verify = true};
    if (pass_run_named(m, stages[i], &cfg) != ST_OK)
      fail_msg("%s, %s: %s\n%s", c->name, stages[i], diags_render(&d, &a), ir_print(m, &a));
    const Memory y = memory_new(&a, m->funcs, 1);
    run(&a, m, c, &y, stages[i]);
    compare(c, &x, &y, arena_printf(&a, "%d warps, %s", warps, stages[i]));
  }
  arena_free(&a);
}

static void test_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) {
    for (int warps = 1; warps <= 8; warps *= 2) check_case(&cases[i], warps);
  }
}

static void one(uint64_t seed, bool show) {
  Arena a;
  TEST_ARENA(a);
  IrModule *tile = generate(&a, seed * 7919 + 13);
  tile->num_warps = 1 << seed % 4;
  const Case c = seed_case(&a, seed, (int64_t)seed % 23, 100 + (int64_t)seed % 7);
  Memory x = memory_new(&a, tile->funcs, 1);
  fill_whole(&x, seed);
  run(&a, tile, &c, &x, "as written");
  const char *names = stages[seed / 4 % DT_COUNTOF(stages)];
  IrModule *m = seed_placed(&a, tile, seed, NULL, names, show);
  Memory y = memory_new(&a, tile->funcs, 1);
  fill_whole(&y, seed);
  run(&a, m, &c, &y, names);
  compare(&c, &x, &y, names);
  arena_free(&a);
}

static void test_random_kernels(void **state) {
  (void)state;
  seeds_run(one, 400, 15);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_random_kernels)};
  return seeds_asked(argc, argv, one) ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
