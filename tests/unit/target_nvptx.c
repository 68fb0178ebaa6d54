// target_nvptx: each family of ops from lowered IR text to PTX for three GPUs, assembled where ptxas is present: the expected
// instructions are there, nothing spills, and ptxas complains of nothing.
#include "unit/target_nvptx.h"

static const char *const machines[] = {"sm_80", "sm_89", "sm_90a"};
#define EACH_MACHINE(cpu) \
  for (size_t m_ = 0; m_ < DT_COUNTOF(machines); m_++) \
    for (const char *cpu = machines[m_]; cpu; cpu = NULL)
#define HEAD "module stage=lowered warps=4 stages=1 lanes=32\n"

static const char vector_add[] = //
    HEAD "kernel @add(%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32>, %n: i32) {\n"
         "  %pid = program_id {axis=0} : i32\n"
         "  %t = tid : thread i32\n"
         "  %b = const {value=128} : i32\n"
         "  %s = mul %pid, %b : i32\n"
         "  %st = to_thread %s : thread i32\n"
         "  %i = add %st, %t : thread i32\n"
         "  %nt = to_thread %n : thread i32\n"
         "  %m = cmp %i, %nt {cmp=slt} : thread i1\n"
         "  %xt = to_thread %x : thread ptr<f32>\n"
         "  %yt = to_thread %y : thread ptr<f32>\n"
         "  %ot = to_thread %o : thread ptr<f32>\n"
         "  %xp = ptr_add %xt, %i : thread ptr<f32>\n"
         "  %yp = ptr_add %yt, %i : thread ptr<f32>\n"
         "  %op = ptr_add %ot, %i : thread ptr<f32>\n"
         "  %a = load %xp, %m, _ : thread f32\n"
         "  %c = load %yp, %m, _ : thread f32\n"
         "  %r = fadd %a, %c : thread f32\n"
         "  store %op, %r, %m\n"
         "  return\n"
         "}\n";

static void test_vector_add(void **state) {
  (void)state;
  EACH_MACHINE(cpu) {
    Gpu g;
    gpu_make(&g, cpu, vector_add);
    const Image *im = g.image;
    const ImageVariant *v = im->kernels[0].variants;
    assert_int_equal(im->target, IMAGE_NVPTX);
    assert_string_equal(im->cpu_features, cpu);
    assert_int_equal(im->sm, strtol(cpu + 3, NULL, 10));
    assert_int_equal(im->sm_exact, !strcmp(cpu, "sm_90a"));
    assert_int_equal(v->args_bytes, 32);
    assert_int_equal(v->nargs, 4);
    assert_int_equal(v->num_warps, 4);
    assert_int_equal(v->shared_bytes, 0);
    if (!im->is_text) assert_in_range(v->registers, 4, 32);
    gpu_has(&g, ".entry add(");
    gpu_has(&g, ".reqntid 128");
    gpu_has(&g, ".version 8.4");
    gpu_has(&g, "ld.global.b32");
    gpu_has(&g, "add.f32");
    gpu_lacks(&g, ".local");
    const char *dir = getenv("KEEP_IMAGES"); // for people who try them on a GPU
    if (dir) {
      void *bytes;
      size_t n;
      char path[256];
      assert_int_equal(image_write(im, &g.arena, &bytes, &n, &g.diags), ST_OK);
      snprintf(path, sizeof path, "%s/add.%s.image", dir, cpu);
      assert_int_equal(os_write_file(path, bytes, n), ST_OK);
    }
    gpu_free(&g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vector_add),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
