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

// What cannot be placed is one error that says why; the module keeps its stage.
static void refused(const char *text, int64_t limit, const char *want) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  const Case c = {.name = "refused", .text = text};
  IrModule *m = read_module(&a, &c, &d);
  const PassMachine machine = {.vector_bits = 256, .arena_limit = limit};
  const PassConfig cfg = {.machine = &machine, .diags = &d, .verify = true};
  assert_int_equal(pass_run_named(m, "place", &cfg), ST_COMPILE);
  assert_int_equal(d.errors, 1);
  if (!strstr(d.list.data[0].text, want)) fail_msg("'%s' does not say '%s'", d.list.data[0].text, want);
  arena_free(&a);
}

static void test_refusals(void **state) {
  (void)state;
  refused("module stage=tile warps=4 stages=2 lanes=32\n"
          "kernel @scan(%x: ptr<f32>) {\n"
          "  %r = arange {start=0, end=1024} : tile<1024xi32>\n"
          "  %s = scan %r {axis=0} : tile<1024xi32> { (%a: i32, %b: i32) %c = add %a, %b : i32 yield %c }\n"
          "  %f = si2f %s : tile<1024xf32>\n"
          "  %xs = splat %x : tile<1024xptr<f32>>\n"
          "  %xp = ptr_add %xs, %r : tile<1024xptr<f32>>\n"
          "  store %xp, %f, _\n"
          "  return\n"
          "}\n",
          4095, "kernel scan needs 4096 bytes of buffers for one instance and 4095 are allowed");
  refused("module stage=tile warps=4 stages=2 lanes=32\n"
          "kernel @choice(%x: ptr<f32>, %c: i1, %n: i64) {\n"
          "  %one = const {value=1} : i64\n"
          "  %d = if %c : desc<16xf32> {\n"
          "    %a = make_desc %x, %n, %one {pad=zero} : desc<16xf32>\n"
          "    yield %a\n"
          "  } {\n"
          "    %b = make_desc %x, %one, %one {pad=zero} : desc<16xf32>\n"
          "    yield %b\n"
          "  }\n"
          "  %v = desc_load %d, %n : tile<16xf32>\n"
          "  desc_store %d, %v, %n\n"
          "  return\n"
          "}\n",
          0, "chosen by control flow");
}

int main(int argc, char **argv) {
  if (argc > 1) { // one case, shown
    for (size_t i = 0; i < DT_COUNTOF(cases); i++) {
      if (strcmp(cases[i].name, argv[1]) == 0) check_with(&cases[i], 256, argc > 2 ? argv[2] : "", true);
    }
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
