#include "unit/ir_interp.h"
static void test_add(void **state) {
  (void)state;
  Run r;
  run_open(&r, "module stage=tile warps=4 stages=2 lanes=32\n"
  "kernel @k(%x: ptr<f32>, %y: ptr<f32>, %n: i32) {\n"
  "  %pid = program_id {axis=0} : i32\n"
  "  %c = const {value=1024} : i32\n"
  "  %o = mul %pid, %c : i32\n"
  "  %r = arange {start=0, end=1024} : tile<1024xi32>\n"
  "  %os = splat %o : tile<1024xi32>\n"
  "  %i = add %os, %r : tile<1024xi32>\n"
  "  %ns = splat %n : tile<1024xi32>\n"
  "  %m = cmp %i, %ns {cmp=slt} : tile<1024xi1>\n"
  "  %xs = splat %x : tile<1024xptr<f32>>\n"
  "  %xp = ptr_add %xs, %i : tile<1024xptr<f32>>\n"
  "  %a = load %xp, %m, _ : tile<1024xf32>\n"
  "  %b = fadd %a, %a : tile<1024xf32>\n"
  "  %ys = splat %y : tile<1024xptr<f32>>\n"
  "  %yp = ptr_add %ys, %i : tile<1024xptr<f32>>\n"
  "  store %yp, %b, %m\n"
  "  return\n}\n", 1);
  static float x[5000], y[5000];
  for (int i = 0; i < 5000; i++) x[i] = (float)i, y[i] = -1;
  run_memory(&r, x, sizeof x, "x", 0, -1);
  run_memory(&r, y, sizeof y, "y", 0, -1);
  run_launch(&r, 0, "k", 5, (InterpArg[]){{.p = x}, {.p = y}, {.i = 4999}});
  run_ok(&r);
  for (int i = 0; i < 4999; i++) assert_true(y[i] == 2 * x[i]);
  assert_true(y[4999] == -1);
  printf("steps %llu elems %llu\n", (unsigned long long)r.result.steps, (unsigned long long)r.result.elems);
  run_close(&r);
}
int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_add)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
