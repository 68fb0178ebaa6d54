// Random thread-level kernels compiled for this CPU: the same memory as on the interpreter, which runs them as written.
// Arguments: see harness/seeds.h.
#include "pass_thread_gen.h"
#include "pass_place_seeds.h"
#include "api_place_run.h"

static void one(uint64_t seed, bool show) {
  Arena a;
  TEST_ARENA(a);
  IrModule *tile = generate(&a, seed * 7919 + 17);
  const PassMachine machine = {.vector_bits = 256};
  IrModule *placed = seed_placed(&a, tile, seed, &machine, NULL, show);
  const Case c = seed_case(&a, seed, (int64_t)seed % 9, (int64_t)seed % 31);
  Memory x = memory_new(&a, tile->funcs, seed), y = memory_new(&a, tile->funcs, seed);
  fill_threads(&x);
  fill_threads(&y);
  run(&a, tile, &c, &x, "as written");
  run_code(placed, &c, &y, &a, NULL);
  compare(&c, &x, &y, "compiled");
  arena_free(&a);
}

static void test_random_kernels(void **state) {
  (void)state;
  seeds_run(one, 120, 20);
}

int main(int argc, char **argv) { return SEEDS_MAIN(argc, argv, one, test_random_kernels); }
