// rt_test: kernels written in C for tests of the runtime. A file of C functions with the signature of AbiCpuEntry is
// compiled by the system's compiler into a relocatable object and wrapped into an image, as our compiler would.
//
//     static const char KERNELS[] = RT_TEST_SOURCE(
//       KERNEL(add) { ARG(float *, x, 0); ARG(int, n, 8); ... });
#ifndef DITRON_RT_TEST_H
#define DITRON_RT_TEST_H

#include "harness/test.h"
#include "rt/rt.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RT_TEST_SOURCE(...) #__VA_ARGS__

static const char rt_test_prefix[] = "#include \"image/image.h\"\n"
                                     "#define KERNEL(name) void name(const void *args, AbiInstance *i)\n"
                                     "#define ARG(T, name, at) T name = *(T *)((char *)args + (at) * 8)\n"
                                     "#define CALL i->rank->cpu\n";

// The folder of the repository: ROOT, or found above the test program.
static void rt_test_root(char *out) {
  const char *root = getenv("ROOT");
  if (root) {
    snprintf(out, PATH_MAX, "%s", root);
    return;
  }
  const ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 64);
  assert_true(n > 0);
  out[n] = 0;
  for (char *slash; (slash = strrchr(out, '/'));) {
    *slash = 0;
    const size_t len = strlen(out);
    strcat(out, "/src/image/image.h");
    const bool found = access(out, R_OK) == 0;
    out[len] = 0;
    if (found) return;
  }
  fail_msg("the repository is not above this program");
}

// An image of the kernels named, each with up to 16 arguments of 8 bytes; those in `waiting` have waits.
static Image *rt_test_image(Arena *a, const char *text, const char *const *names, const char *waiting) {
  char root[PATH_MAX], c[64], o[64], cmd[PATH_MAX + 256];
  rt_test_root(root);
  snprintf(c, sizeof c, "rt_test_%d.c", (int)getpid());
  snprintf(o, sizeof o, "rt_test_%d.o", (int)getpid());
  const char *whole = arena_printf(a, "%s%s", rt_test_prefix, text);
  assert_int_equal(os_write_file(c, whole, strlen(whole)), ST_OK);
  snprintf(cmd, sizeof cmd, "gcc -std=gnu11 -D_GNU_SOURCE -c -O2 -fPIC -I'%s/src' -o %s %s", root, o, c);
  assert_int_equal(system(cmd), 0);
  Image *im = arena_new(a, Image);
  char *code;
  assert_int_equal(os_read_file(a, o, 0, &code, &im->code_bytes), ST_OK);
  im->code = code;
  im->cpu_features = "sse2";
  im->producer = "test";
  unlink(c);
  unlink(o);
  while (names[im->nkernels]) im->nkernels++;
  im->kernels = arena_array(a, ImageKernel, im->nkernels);
  ImageArg *args = arena_array(a, ImageArg, 16);
  for (uint32_t k = 0; k < 16; k++)
    args[k] = (ImageArg){.name = arena_printf(a, "a%u", k),
                         .kind = IMAGE_ARG_INT,
                         .bits = 64,
                         .dtype = IMAGE_I64,
                         .divisible = 1,
                         .offset = k * 8};
  for (uint32_t k = 0; k < im->nkernels; k++) {
    ImageVariant *v = arena_new(a, ImageVariant);
    *v = (ImageVariant){.entry = names[k],
                        .args = args,
                        .nargs = 16,
                        .args_bytes = 128,
                        .num_warps = 4,
                        .lanes = 32,
                        .arena_bytes = 1024};
    v->has_waits = strstr(waiting, names[k]) != NULL;
    v->wait = v->has_waits ? IMAGE_WAIT_MUTUAL : IMAGE_WAIT_NONE;
    im->kernels[k] = (ImageKernel){names[k], v, 1};
  }
  im->nsites = 32;
  im->sites = arena_array(a, ImageSite, im->nsites);
  for (uint32_t k = 0; k < im->nsites; k++)
    im->sites[k] = (ImageSite){"kernels/demo.py", 100 + k, 5, arena_printf(a, "label%u", k), "i32f32"};
  return im;
}

static inline RtArg rt_test_ptr(const void *p) { return (RtArg){.bits = (uint64_t)(uintptr_t)p}; }
static inline RtArg rt_test_int(int64_t x) { return (RtArg){.bits = (uint64_t)x}; }

// Every launch passes all 16 arguments.
#define RT_TEST_LAUNCH(k, s, n, e, ...) \
  rt_launch((k), (s), (const uint32_t[3]){(uint32_t)(n), 1, 1}, (RtArg[16]){__VA_ARGS__}, 16, (e))
#define OK(call) \
  do { \
    if ((call) != ST_OK) fail_msg("%s: %s", #call, error.text); \
  } while (0)

#endif
