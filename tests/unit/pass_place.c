// Placement for the CPU: each kernel below runs on the interpreter as written and again in the placed stage, on the same
// random inputs; all memory must come out equal (floats up to the freedom that reductions have).
#include "pass_place.h"
#include "pass_place_cases.h"

static IrModule *read_module(Arena *a, const Case *c, Diags *d) {
  diags_init(d, a);
  IrModule *m = NULL;
  IrCtx *ctx = ir_ctx_new(a);
  if (ir_parse(a, ctx, d, c->name, c->text, strlen(c->text), &m) != ST_OK || ir_verify(m, d) != ST_OK)
    fail_msg("%s", diags_render(d, a));
  return m;
}

static void check_with(const Case *c, int vector_bits, const char *before, bool show) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  IrModule *tile = read_module(&a, c, &d), *placed = ir_module_clone(tile, &a);
  const PassMachine machine = {.vector_bits = vector_bits};
  const PassConfig cfg = {.machine = &machine, .diags = &d, .verify = true, .explain = show};
  const char *names = arena_printf(&a, "%splace", before);
  const Status s = pass_run_named(placed, names, &cfg);
  if (show) printf("%s\n%s\n", diags_render(&d, &a), ir_print(placed, &a));
  if (s != ST_OK) fail_msg("%s: %s", c->name, diags_render(&d, &a));
  for (uint64_t seed = 1; seed <= 2; seed++) {
    const Memory x = memory_new(&a, tile->funcs, seed), y = memory_new(&a, placed->funcs, seed);
    run(&a, tile, c, &x, "as written");
    run(&a, placed, c, &y, "placed");
    compare(c, &x, &y, arena_printf(&a, "%d bits, %s", vector_bits, names));
  }
  arena_free(&a);
}

static void test_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) {
    check_with(&cases[i], 256, "", false);
    check_with(&cases[i], 512, "fold,cse,strength,fold,dce,contract,", false);
    check_with(&cases[i], 128, "", false);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) { // one case, shown
    for (size_t i = 0; i < DT_COUNTOF(cases); i++) {
      if (strcmp(cases[i].name, argv[1]) == 0) check_with(&cases[i], 256, argc > 2 ? argv[2] : "", true);
    }
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
