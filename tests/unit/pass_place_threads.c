// Random thread-level kernels through the placement: as written and placed, they must leave the same memory (see
// pass_thread_gen.h).
// Arguments: see harness/seeds.h.
#include "pass_thread_gen.h"
#include "pass_place_seeds.h"

static void one(uint64_t seed, bool show) {
  Arena a;
  TEST_ARENA(a);
  IrModule *tile = generate(&a, seed * 7919 + 17);
  IrModule *placed =
      seed_placed(&a, tile, seed, NULL,
                  seed % 2 ? "place" : "fold,cse,licm,strength,fold,dce,place,fold,cse,licm,dce", show);
  const Case c = seed_case(&a, seed, (int64_t)seed % 9, (int64_t)seed % 31);
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
  seeds_run(one, 400, 15);
}

int main(int argc, char **argv) { return SEEDS_MAIN(argc, argv, one, test_random_threads); }
