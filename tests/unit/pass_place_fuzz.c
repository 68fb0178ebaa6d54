// Random kernels through the placement: as written and placed, they must leave the same memory (see pass_place_gen.h).
// Arguments: see harness/seeds.h.
#include "pass_place_gen.h"
#include "pass_place_seeds.h"

static void one(uint64_t seed, bool show) {
  Arena a;
  TEST_ARENA(a);
  IrModule *tile = generate(&a, seed * 7919 + 13);
  const int bits[] = {128, 256, 512};
  const PassMachine machine = {.vector_bits = bits[seed % 3]};
  IrModule *placed = seed_placed(&a, tile, seed, &machine,
                                 seed % 2 ? "place" : "fold,cse,licm,strength,fold,dce,place", show);
  const Case c = seed_case(&a, seed, (int64_t)seed % 23, 100 + (int64_t)seed % 7);
  Memory x = memory_new(&a, tile->funcs, 1), y = memory_new(&a, tile->funcs, 1);
  fill_whole(&x, seed);
  fill_whole(&y, seed);
  run(&a, tile, &c, &x, "as written");
  run(&a, placed, &c, &y, "placed");
  compare(&c, &x, &y, "placed");
  arena_free(&a);
}

static void test_random_kernels(void **state) {
  (void)state;
  seeds_run(one, 400, 15);
}

int main(int argc, char **argv) { return SEEDS_MAIN(argc, argv, one, test_random_kernels); }
