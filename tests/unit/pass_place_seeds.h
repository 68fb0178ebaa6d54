// What the random kernels through the placement share: the placed copy of a generated kernel, and its launch.
#ifndef PASS_PLACE_SEEDS_H
#define PASS_PLACE_SEEDS_H

#include "harness/seeds.h"
#include "pass_place.h"

// A copy of tile after these passes, or after the CPU's pipeline where passes is NULL. Fails the test where the
// generated kernel is not valid, or the passes refuse it. machine may be NULL.
static IrModule *seed_placed(Arena *a, IrModule *tile, uint64_t seed, const PassMachine *machine,
                             const char *passes, bool show) {
  Diags d;
  diags_init(&d, a);
  IrModule *placed = ir_module_clone(tile, a);
  if (show) printf("%s\n", ir_print(tile, a));
  if (ir_verify(tile, &d) != ST_OK)
    fail_msg("seed %llu: the generator is wrong: %s", (unsigned long long)seed, diags_render(&d, a));
  const PassConfig cfg = {.machine = machine, .diags = &d, .verify = true, .explain = show};
  const Status s = passes ? pass_run_named(placed, passes, &cfg) : pass_run(placed, PASS_CPU, &cfg);
  if (show) printf("%s\n%s\n", diags_render(&d, a), ir_print(placed, a));
  if (s != ST_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, diags_render(&d, a));
  return placed;
}

static Case seed_case(Arena *a, uint64_t seed, int64_t first, int64_t second) {
  return (Case){
      .name = arena_printf(a, "seed %llu", (unsigned long long)seed), .grid = {1}, .args = {first, second}};
}

#endif
