// Fuzzes what reads foreign bytes: images, packs and object code. Damage is done below the checksum, which is put right
// again, so that the readers themselves are tested and not only their gate. What an image reader accepts must be an image
// like any other: written again, it gives the same bytes.
// TIMEOUT: 4000
#include "harness/fuzz.h"
#include "harness/test.h"
#include "image/image.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A copy of its exact size, so that sanitizers see each access past its end; sealed as the writer would.
static unsigned char *sealed(const void *data, size_t n) {
  unsigned char *p = malloc(n ? n : 1);
  if (n) memcpy(p, data, n);
  if (n < 32) return p;
  const uint64_t payload = n - 32;
  memcpy(p + 16, &payload, 8);
  const uint64_t hash = hash_bytes(p + 32, payload, hash_bytes(p, 24, 0));
  memcpy(p + 24, &hash, 8);
  return p;
}

static void must(bool ok) {
  if (!ok) abort();
}

static void one_image(const void *data, size_t n, void *user) {
  (void)user;
  unsigned char *p = sealed(data, n);
  Arena a;
  Escape esc;
  arena_init(&a, 0, &esc);
  if (ESCAPE_TRY(&esc)) abort();
  Diags d;
  diags_init(&d, &a);
  Image *im;
  void *again;
  size_t len;
  const Status s = image_read(&a, p, n, &im, &d);
  must(s == ST_OK || s == ST_CORRUPT || s == ST_VERSION);
  must((s == ST_OK) == (d.errors == 0) && (s == ST_OK) == (im != NULL));
  if (s == ST_OK)
    must(image_write(im, &a, &again, &len, &d) == ST_OK && len == n && memcmp(p, again, n) == 0);
  arena_free(&a);
  free(p);
}

static void one_pack(const void *data, size_t n, void *user) {
  (void)user;
  unsigned char *p = sealed(data, n);
  Arena a;
  Escape esc;
  arena_init(&a, 0, &esc);
  if (ESCAPE_TRY(&esc)) abort();
  Diags d;
  diags_init(&d, &a);
  PackEntry *list;
  uint32_t count;
  const Status s = pack_read(&a, p, n, &list, &count, &d);
  must(s == ST_OK || s == ST_CORRUPT || s == ST_VERSION);
  for (uint32_t i = 0; s == ST_OK && i < count; i++) must(list[i].key && (list[i].bytes || !list[i].n));
  arena_free(&a);
  free(p);
}

static void one_object(const void *data, size_t n, void *user) {
  (void)user;
  unsigned char *p = malloc(n ? n : 1);
  if (n) memcpy(p, data, n);
  Arena a;
  Escape esc;
  arena_init(&a, 0, &esc);
  if (ESCAPE_TRY(&esc)) abort();
  Diags d;
  diags_init(&d, &a);
  ImageCode *c;
  const Status s = image_code_load(p, n, image_cpu_symbols, image_ncpu_symbols, &c, &d);
  must((s == ST_OK) == (d.errors == 0) && (s == ST_OK) == (c != NULL));
  image_code_free(c); // what it holds is never run
  arena_free(&a);
  free(p);
}

static void test_image(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  Fuzz f = {.run = one_image};
  for (uint32_t size = 0; size < 4; size++) {
    ImageArg args[4];
    for (uint32_t i = 0; i < 4; i++)
      args[i] = (ImageArg){.name = arena_printf(&a, "a%u", i),
                           .kind = (ImageArgKind)i,
                           .bits = 32,
                           .divisible = 1 << i,
                           .offset = i * 16};
    static ImageStep steps[] = {{IMAGE_STEP_ARG, 0, 0}, {IMAGE_STEP_CONST, 0, 3}, {IMAGE_STEP_MUL, 0, 0}};
    ImageMap map = {.name = "m", .dtype = IMAGE_F32, .rank = 2, .box = {8, 4}, .base = {steps, 3}};
    for (uint32_t i = 0; i < 2; i++) map.sizes[i] = map.strides[i] = (ImageRecipe){steps, i ? 3 : 1};
    ImageVariant v[2];
    for (uint32_t i = 0; i < 2; i++)
      v[i] = (ImageVariant){.entry = "entry",
                            .args = args,
                            .nargs = size,
                            .args_bytes = 200,
                            .num_warps = 4,
                            .has_waits = i,
                            .maps = &map,
                            .nmaps = size > 1};
    ImageKernel k[2] = {{"one", v, 1}, {"two", v, 2}};
    ImageSite sites[2] = {{"k.py", 3, 4, "label", NULL}, {NULL, 0, 0, "text", "i32"}};
    ImageBlob more = {"more", 5};
    v[1].code = size > 2;
    const Image im = {.more = &more,
                      .nmore = size > 2,
                      .cpu_features = "avx2",
                      .code = "code",
                      .code_bytes = size,
                      .kernels = k,
                      .nkernels = size % 3,
                      .sites = sites,
                      .nsites = size / 2};
    void *bytes;
    size_t n;
    assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
    fuzz_add(&f, bytes, n);
  }
  fuzz_or_fail(&f);
  arena_free(&a);
}

static void test_pack(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  Fuzz f = {.run = one_pack};
  const PackEntry e[4] = {
      {"first", "contents", 8}, {"second|*f32", NULL, 0}, {"third", "x", 1}, {"", "y", 1}};
  for (uint32_t n = 0; n <= 4; n++) {
    void *bytes;
    size_t len;
    assert_int_equal(pack_write(e, n, &a, &bytes, &len, &d), ST_OK);
    fuzz_add(&f, bytes, len);
  }
  fuzz_or_fail(&f);
  arena_free(&a);
}

static void test_object(void **state) {
  (void)state;
  static const char text[] =
      "extern double sin(double);\nstatic const double table[3] = {1, 2, 3};\ndouble sum;\n"
      "const double *const where = table;\n"
      "double f(int i) { return sin(table[i]) + sum; }\nint g(int i) { static int n[9]; return n[i]++; }\n";
  Arena a;
  TEST_ARENA(a);
  Fuzz f = {.run = one_object};
  assert_int_equal(os_write_file("fuzz_object.c", text, sizeof text - 1), ST_OK);
  static const char *const options[] = {"-fPIC -g", "-fno-pic -mcmodel=large", "-fno-pic -fcommon"};
  for (size_t i = 0; i < DT_COUNTOF(options); i++) {
    char *object;
    size_t n;
    assert_int_equal(system(arena_printf(&a, "gcc -c -O1 %s -o fuzz_object.o fuzz_object.c", options[i])), 0);
    assert_int_equal(os_read_file(&a, "fuzz_object.o", 0, &object, &n), ST_OK);
    fuzz_add(&f, object, n);
  }
  unlink("fuzz_object.c");
  unlink("fuzz_object.o");
  fuzz_or_fail(&f);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_image), cmocka_unit_test(test_pack),
                                     cmocka_unit_test(test_object)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
