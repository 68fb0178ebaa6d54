// The public functions on a GPU, over the driver made of host memory: devices, a team, memory, streams of the caller's, images
// for another kind of device.
#include "fake/cuda.h"
#include "harness/test.h"

#define DT_UNSTABLE
#include "ditron/ditron.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int use_fake(void **state) {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
  (void)state;
  if (n < 0) return -1;
  path[n] = 0;
  strcpy(strrchr(path, '/') + 1, "libcuda_fake.so");
  return setenv("DITRON_LIBCUDA", path, 1);
}

typedef struct Both { // a GPU's team and a CPU's
  dt_context *c;
  dt_team *gpu, *cpu;
  dt_rank *g, *h;
} Both;

#define OK(call) \
  do { \
    if ((call) != DT_OK) fail_msg("%s: %s", #call, dt_error(b.c)); \
  } while (0)
#define NOT(status, call, said) \
  do { \
    assert_int_equal(call, status); \
    if (!strstr(dt_error(b.c), said)) fail_msg("'%s' is not in: %s", said, dt_error(b.c)); \
  } while (0)

static Both up(void) {
  Both b = {0};
  dt_team_options o = {.size = sizeof o, .device = "cuda:0"};
  assert_int_equal(dt_context_create(NULL, &b.c), DT_OK);
  OK(dt_team_create(b.c, &o, &b.gpu));
  OK(dt_team_create(b.c, NULL, &b.cpu));
  b.g = dt_team_local(b.gpu, 0);
  b.h = dt_team_local(b.cpu, 0);
  return b;
}

static void down(Both *b) {
  dt_team_destroy(b->gpu);
  dt_team_destroy(b->cpu);
  dt_context_destroy(b->c);
}

static void test_devices(void **state) {
  (void)state;
  dt_device d;
  Both b = up();
  assert_true(dt_device_info(b.c, 0, &d));
  assert_string_equal(d.name, "cpu");
  assert_string_equal(d.target, "host");
  assert_true(dt_device_info(b.c, 1, &d));
  assert_string_equal(d.name, "cuda:0");
  assert_string_equal(d.target, "sm_90a");
  assert_true(d.usable);
  assert_false(dt_device_info(b.c, 2, &d));
  assert_int_equal(dt_team_size(b.gpu), 1);
  dt_team *t;
  dt_team_options o = {.size = sizeof o, .device = "cuda:7"};
  NOT(DT_NOT_FOUND, dt_team_create(b.c, &o, &t),
      "there is no device 'cuda:7'; this machine has 1 NVIDIA GPU");
  down(&b);
}

static void test_memory_and_streams(void **state) {
  (void)state;
  Both b = up();
  char host[256], back[256];
  void *p, *q;
  dt_stream *ours, *theirs, *cpu;
  for (int i = 0; i < 256; i++) host[i] = (char)(i * 7);
  OK(dt_alloc(b.g, 256, &p));
  OK(dt_symm_alloc(b.g, 256, "s", &q));
  OK(dt_stream_create(b.g, "ours", &ours));
  assert_non_null(dt_stream_native(ours));
  OK(dt_stream_wrap(b.g, dt_stream_native(ours), "theirs", &theirs));
  assert_ptr_equal(dt_stream_native(theirs), dt_stream_native(ours));
  OK(dt_copy(theirs, p, host, 256));
  OK(dt_copy(theirs, q, p, 256));
  OK(dt_copy(ours, back, q, 256));
  OK(dt_stream_sync(ours));
  assert_memory_equal(host, back, 256);
  NOT(DT_NO_MEMORY, dt_alloc(b.g, (size_t)1 << 40, &q),
      "cuda:0 (Fake GPU) has no room for 1024.000 GiB more");
  NOT(DT_UNSUPPORTED, dt_stream_wrap(b.h, NULL, "x", &cpu), "the processor has no streams but ours");
  OK(dt_stream_create(b.h, "cpu", &cpu));
  assert_null(dt_stream_native(cpu));
  dt_stream_destroy(cpu);
  dt_stream_destroy(theirs);
  dt_stream_destroy(ours);
  dt_free(b.g, p);
  down(&b);
}

static const char text[] = "import triton\nimport triton.language as tl\n@triton.jit\n"
                           "def k(o_ptr, n):\n    tl.store(o_ptr, n)\n";

static void test_image_of_another_device(void **state) {
  (void)state;
  Both b = up();
  dt_image *im;
  dt_kernel *k;
  void *p;
  OK(dt_alloc(b.h, 64, &p));
  const dt_named args[] = {{"o_ptr", dt_ptr(DT_I32, p)}, {"n", dt_int(3)}};
  OK(dt_compile_text(b.c, "k.py", text, strlen(text), NULL, args, 2, NULL, &im));
  NOT(DT_UNSUPPORTED, dt_kernel_load(b.g, im, NULL, &k),
      "kernel 'k' was compiled for a processor, but the rank runs on an NVIDIA GPU");
  dt_image_destroy(im);
  const dt_compile_options o = {.size = sizeof o, .target = "sm_80"};
  OK(dt_compile_text(b.c, "k.py", text, strlen(text), NULL, args, 2, &o, &im));
  NOT(DT_UNSUPPORTED, dt_kernel_load(b.h, im, NULL, &k),
      "was compiled for an NVIDIA GPU, but the rank runs on a processor");
  dt_image_destroy(im);
  dt_free(b.h, p);
  down(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_devices),
      cmocka_unit_test(test_memory_and_streams),
      cmocka_unit_test(test_image_of_another_device),
  };
  return cmocka_run_group_tests(tests, use_fake, NULL);
}
