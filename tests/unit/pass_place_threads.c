// Random thread-level kernels through the placement: as written and placed, they must leave the same memory (see
// pass_thread_gen.h). Argument: a seed to show, alone; or two: the seeds between.
#include "pass_thread_gen.h"

#include <stdlib.h>

static void one(uint64_t seed, bool show) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *tile = generate(&a, seed * 7919 + 17), *placed = ir_module_clone(tile, &a);
  if (show) printf("%s\n", ir_print(tile, &a));
  if (ir_verify(tile, &d) != ST_OK)
    fail_msg("seed %llu: the generator is wrong: %s", (unsigned long long)seed, diags_render(&d, &a));
  const PassConfig cfg = {.diags = &d, .verify = true};
  const Status s = pass_run_named(
      placed, seed % 2 ? "place" : "fold,cse,licm,strength,fold,dce,place,fold,cse,licm,dce", &cfg);
  if (show) printf("%s\n%s\n", diags_render(&d, &a), ir_print(placed, &a));
  if (s != ST_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, diags_render(&d, &a));
  const Case c = {.name = arena_printf(&a, "seed %llu", (unsigned long long)seed),
                  .grid = {1},
                  .args = {(int64_t)seed % 9, (int64_t)seed % 31}};
  Memory x = memory_new(&a, tile->funcs, seed), y = memory_new(&a, tile->funcs, seed);
  fill_threads(&x);
  fill_threads(&y);
  run(&a, tile, &c, &x, "as written");
  run(&a, placed, &c, &y, "placed");
  compare(&c, &x, &y, "placed");
  arena_free(&a);
}

static void test_random_threads(void **state) {
  (void)state;
  const uint64_t end = os_now_ns() + 15000000000ull;
  for (uint64_t seed = 1; seed <= 400 && os_now_ns() < end; seed++) one(seed, false);
}

int main(int argc, char **argv) {
  if (argc == 2) {
    one(strtoull(argv[1], NULL, 10), true);
    return 0;
  }
  if (argc == 3) {
    for (uint64_t s = strtoull(argv[1], NULL, 10); s < strtoull(argv[2], NULL, 10); s++) one(s, false);
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
