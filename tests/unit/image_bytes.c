// Images and packs as bytes: what is written is read back equal, and everything damaged is refused with one diagnostic.
#include "harness/test.h"
#include "image/image.h"

#include <string.h>

static ImageArg args_a[] = {
    {.name = "x", .kind = IMAGE_ARG_PTR, .bits = 16, .dtype = IMAGE_BF16, .divisible = 16, .offset = 0},
    {.name = "n", .kind = IMAGE_ARG_INT, .bits = 32, .dtype = IMAGE_I32, .divisible = 1, .offset = 8},
    {.name = "d",
     .kind = IMAGE_ARG_DESC,
     .bits = 32,
     .dtype = IMAGE_F32,
     .divisible = 1,
     .rank = 2,
     .block = {64, -1},
     .offset = 16},
};
static ImageVariant variants[] = {
    {.entry = "k_v0",
     .guard_text = "x % 16 == 0",
     .args = args_a,
     .nargs = 3,
     .args_bytes = 16 + sizeof(ImageDesc),
     .num_warps = 4,
     .lanes = 32,
     .arena_bytes = 1 << 20,
     .wait = IMAGE_WAIT_EXTERNAL,
     .has_waits = true,
     .cluster = {1, 2, 3}},
    {.entry = "k_v1",
     .args = args_a,
     .nargs = 3,
     .args_bytes = 16 + sizeof(ImageDesc),
     .num_warps = 1,
     .shared_bytes = 232448,
     .registers = 168,
     .local_bytes = 48,
     .spill_bytes = 40,
     .workspace_bytes = 7},
};
static ImageKernel kernels[] = {{"k", variants, 2}};
static ImageSite sites[] = {{"k.py", 3, 7, "flag", NULL}, {NULL, 0, 0, NULL, "i32f32"}};
static const Image example = {.target = IMAGE_X86_64,
                              .cpu_features = "avx2,fma",
                              .producer = "0.1.0",
                              .code = "\x7f"
                                      "code",
                              .code_bytes = 5,
                              .kernels = kernels,
                              .nkernels = 1,
                              .sites = sites,
                              .nsites = 2,
                              .source_name = "k.py"};

static void *write_example(Arena *a, Diags *d, size_t *n) {
  void *bytes;
  assert_int_equal(image_write(&example, a, &bytes, n, d), ST_OK);
  return bytes;
}

static void test_round_trip(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n, n2;
  void *bytes = write_example(&a, &d, &n), *again;
  Image *im;
  assert_int_equal(image_read(&a, bytes, n, &im, &d), ST_OK);
  assert_int_equal(d.errors, 0);
  assert_int_equal(image_write(im, &a, &again, &n2, &d), ST_OK);
  assert_int_equal(n, n2);
  assert_memory_equal(bytes, again, n);
  const ImageVariant *v = &im->kernels[0].variants[0];
  assert_string_equal(im->kernels[0].name, "k");
  assert_string_equal(v->entry, "k_v0");
  assert_string_equal(v->guard_text, "x % 16 == 0");
  assert_null(im->kernels[0].variants[1].guard_text);
  assert_true(v->has_waits);
  assert_int_equal(v->wait, IMAGE_WAIT_EXTERNAL);
  assert_int_equal(v->args[2].block[1], -1);
  assert_int_equal(v->args[0].divisible, 16);
  assert_int_equal(v->cluster[2], 3);
  assert_int_equal(im->kernels[0].variants[1].workspace_bytes, 7);
  assert_int_equal(im->kernels[0].variants[1].shared_bytes, 232448);
  assert_int_equal(im->kernels[0].variants[1].registers, 168);
  assert_int_equal(im->kernels[0].variants[1].local_bytes, 48);
  assert_int_equal(im->kernels[0].variants[1].spill_bytes, 40);
  assert_string_equal(im->sites[0].what, "flag");
  assert_null(im->sites[1].file);
  assert_string_equal(im->sites[1].fmt, "i32f32");
  assert_memory_equal(im->code,
                      "\x7f"
                      "code",
                      5);
  assert_int_equal((uintptr_t)im->code % 64, 0);
  arena_free(&a);
}

static void test_truncated(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  const char *bytes = write_example(&a, &d, &n);
  for (size_t k = 0; k < n; k++) {
    char *part =
        arena_alloc(&a, k + 1, 1); // its end is the allocation's end, so that sanitizers see a read past it
    memcpy(part, bytes, k);
    Image *im;
    d.errors = 0;
    assert_int_equal(image_read(&a, part, k, &im, &d), ST_CORRUPT);
    assert_int_equal(d.errors, 1);
    assert_null(im);
  }
  arena_free(&a);
}

static void test_each_bit_counts(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  unsigned char *bytes = write_example(&a, &d, &n);
  for (size_t bit = 0; bit < n * 8; bit++) {
    bytes[bit / 8] ^= 1u << (bit % 8);
    Image *im;
    const Status s = image_read(&a, bytes, n, &im, &d);
    assert_true(s == ST_CORRUPT || (s == ST_VERSION && bit / 8 >= 8 && bit / 8 < 16));
    bytes[bit / 8] ^= 1u << (bit % 8);
  }
  arena_free(&a);
}

static void test_version_text(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  unsigned char *bytes = write_example(&a, &d, &n);
  bytes[8] = 99;
  Image *im;
  assert_int_equal(image_read(&a, bytes, n, &im, &d), ST_VERSION);
  assert_non_null(strstr(diags_render(&d, &a), "format 99"));
  arena_free(&a);
}

static void test_not_written(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  void *bytes;
  size_t n;
  ImageArg outside = args_a[0];
  outside.offset = 1;
  ImageVariant v = {.entry = "e", .args = &outside, .nargs = 1, .args_bytes = 8};
  ImageKernel k = {"k", &v, 1};
  const Image im = {.kernels = &k, .nkernels = 1};
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  assert_non_null(strstr(diags_render(&d, &a), "outside the arguments"));
  outside.offset = 0;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
  k.nvariants = 0;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  arena_free(&a);
}

// Code as text is for the driver's own compiler, which reads it to its NUL.
static void test_gpu_text(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  void *bytes;
  size_t n;
  static const char ptx[] = ".version 8.0";
  Image im = {.target = IMAGE_NVPTX,
              .cpu_features = "sm_90a",
              .code = ptx,
              .code_bytes = sizeof ptx,
              .is_text = true,
              .sm = 90,
              .sm_exact = true},
        *back;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
  assert_int_equal(image_read(&a, bytes, n, &back, &d), ST_OK);
  assert_true(back->is_text && back->sm_exact);
  assert_int_equal(back->sm, 90);
  assert_string_equal(back->code, ptx);
  im.code_bytes--;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  im.is_text = false;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
  arena_free(&a);
}

static void test_pack(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  const PackEntry in[] = {{"gemm|*bf16|W=4", "one", 3}, {"empty", NULL, 0}, {"third", "333", 4}};
  void *bytes;
  size_t len;
  assert_int_equal(pack_write(in, 3, &a, &bytes, &len, &d), ST_OK);
  PackEntry *out;
  uint32_t count;
  assert_int_equal(pack_read(&a, bytes, len, &out, &count, &d), ST_OK);
  assert_int_equal(count, 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_string_equal(out[i].key, in[i].key);
    assert_int_equal(out[i].n, in[i].n);
    if (in[i].n) assert_memory_equal(out[i].bytes, in[i].bytes, in[i].n);
  }
  for (size_t k = 0; k < len; k++) assert_int_equal(pack_read(&a, bytes, k, &out, &count, &d), ST_CORRUPT);
  const PackEntry twice[] = {{"k", "1", 1}, {"k", "2", 1}};
  assert_int_equal(pack_write(twice, 2, &a, &bytes, &len, &d), ST_INVALID);
  Image *im;
  assert_int_equal(image_read(&a, bytes, len, &im, &d), ST_CORRUPT); // a pack is no image
  arena_free(&a);
}

static void test_dtypes(void **state) {
  (void)state;
  for (int i = 0; i < IMAGE_NDTYPES; i++) {
    assert_int_equal(image_dtype_by_name(image_dtypes[i].name), i);
    assert_int_equal(image_dtypes[i].bytes, (image_dtypes[i].bits + 7) / 8);
  }
  assert_int_equal(image_dtype_by_name("f31"), -1);
}

static void test_cpu_features(void **state) {
  (void)state;
  char missing[64];
  assert_true(image_cpu_has("", missing, sizeof missing));
  assert_true(image_cpu_has(NULL, missing, sizeof missing));
  assert_true(image_cpu_has("sse2", missing, sizeof missing)); // part of x86-64
  assert_int_equal(image_cpu_has("avx2", missing, sizeof missing), __builtin_cpu_supports("avx2") != 0);
  assert_int_equal(image_cpu_has("avx512f,avx512bw", missing, sizeof missing),
                   __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"));
  assert_false(image_cpu_has("sse2,warp9,+sse3,flux", missing, sizeof missing));
  assert_string_equal(missing, "warp9,flux");
  assert_false(image_cpu_has("warp9", missing, 4));
  assert_string_equal(missing, "war");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_each_bit_counts), cmocka_unit_test(test_version_text),
      cmocka_unit_test(test_not_written),     cmocka_unit_test(test_pack),
      cmocka_unit_test(test_dtypes),          cmocka_unit_test(test_cpu_features),
      cmocka_unit_test(test_gpu_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
