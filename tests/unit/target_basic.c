// target: entry, arguments, loops and control flow of the x86 target.
#include "unit/target_run.h"

static void test_vector_add(void **state) {
  (void)state;
  Code c;
  code_make(&c, NULL,
            "module stage=placed warps=4 stages=1 lanes=32\n"
            "kernel @add(%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32>, %n: i32) {\n"
            "  %p = program_id {axis=0} : i32\n"
            "  %c0 = const {value=0} : i32\n"
            "  %c8 = const {value=8} : i32\n"
            "  %c1 = const {value=1} : i32\n"
            "  %b = const {value=1024} : i32\n"
            "  %s = mul %p, %b : i32\n"
            "  for %c0, %b, %c8 { (%i: i32)\n"
            "    %at = add %s, %i : i32\n"
            "    %idx = ramp %at, %c1 : tile<8xi32>\n"
            "    %nn = splat %n : tile<8xi32>\n"
            "    %m = cmp %idx, %nn {cmp=slt} : tile<8xi1>\n"
            "    %px = ptr_add %x, %at : ptr<f32>\n"
            "    %py = ptr_add %y, %at : ptr<f32>\n"
            "    %po = ptr_add %o, %at : ptr<f32>\n"
            "    %vx = load_vec %px, %m, _ : tile<8xf32>\n"
            "    %vy = load_vec %py, %m, _ : tile<8xf32>\n"
            "    %vo = fadd %vx, %vy : tile<8xf32>\n"
            "    store_vec %po, %vo, %m\n"
            "    yield\n"
            "  }\n"
            "  return\n"
            "}\n");
  enum { N = 1500 };
  float x[2048], y[2048], o[2048];
  for (int i = 0; i < 2048; i++) {
    x[i] = (float)i;
    y[i] = (float)(2 * i);
    o[i] = -1;
  }
  const struct {
    float *x, *y, *o;
    int32_t n;
  } args = {x, y, o, N};
  assert_int_equal(c.image->kernels[0].variants[0].nargs, 4);
  assert_int_equal(c.image->kernels[0].variants[0].args[3].offset, 24);
  for (uint32_t p = 0; p < 2; p++) {
    c.inst.pid[0] = p;
    code_run(&c, "add", &args);
  }
  for (int i = 0; i < 2048; i++) assert_true(o[i] == (i < N ? (float)(3 * i) : -1));
  code_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_vector_add)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
