// Fuzzes what reads foreign bytes: images, packs and object code. FUZZ_SECONDS says how long each runs (default 2),
// FUZZ_SEED where to begin; a failure is found again with the seed that was printed. Damage is done below the checksum,
// which is put right again, so that the readers themselves are tested and not only their gate.
// TIMEOUT: 4000
#include "harness/test.h"
#include "image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t seconds(void) {
  return getenv("FUZZ_SECONDS") ? strtoull(getenv("FUZZ_SECONDS"), NULL, 10) : 2;
}
static uint64_t first_seed(void) { return getenv("FUZZ_SEED") ? strtoull(getenv("FUZZ_SEED"), NULL, 10) : 1; }

static uint64_t odd_value(Rng *r) {
  static const uint64_t odd[] = {0,          1,          2,          7,          8,
                                 0x7f,       0xff,       0xffff,     0x7fffffff, 0x80000000,
                                 0xfffffffe, 0xffffffff, 1ull << 40, INT64_MAX,  UINT64_MAX};
  const uint64_t k = rng_next(r);
  return k % 3 ? odd[k / 3 % DT_COUNTOF(odd)] : rng_next(r);
}

// A damaged copy in memory of its exact size, so that sanitizers see each access past its end.
static unsigned char *damage(Rng *r, const unsigned char *p, size_t *n, size_t from) {
  size_t len = *n;
  const uint64_t kind = rng_next(r) % 8;
  if (kind == 0)
    len = from + rng_next(r) % (len - from + 1); // cut off
  else if (kind == 1)
    len += rng_next(r) % 64; // grown
  unsigned char *q = calloc(1, len ? len : 1);
  memcpy(q, p, len < *n ? len : *n);
  if (kind == 2 && len > from + 16) { // a piece moved elsewhere
    const size_t size = 1 + rng_next(r) % ((len - from) / 2);
    memmove(q + from + rng_next(r) % (len - from - size + 1),
            q + from + rng_next(r) % (len - from - size + 1), size);
  }
  for (uint64_t i = rng_next(r) % 6; i-- && len > from + 8;) {
    const uint64_t x = odd_value(r);
    memcpy(q + from + rng_next(r) % (len - from - 8), &x, (size_t)1 << (rng_next(r) % 4));
  }
  *n = len;
  return q;
}

static void reseal(unsigned char *p, size_t n) {
  if (n < 32) return;
  const uint64_t payload = n - 32;
  memcpy(p + 16, &payload, 8);
  const uint64_t hash = hash_bytes(p + 32, payload, hash_bytes(p, 24, 0));
  memcpy(p + 24, &hash, 8);
}

static char text_bytes[16][8];
static const char *random_name(Rng *r) {
  char *s = text_bytes[rng_next(r) % 16];
  snprintf(s, 8, "%c%u", (char)('a' + rng_next(r) % 26), (unsigned)(rng_next(r) % 1000));
  return s;
}

static Image *random_image(Arena *a, Rng *r) {
  Image *im = arena_new(a, Image);
  im->cpu_features = rng_next(r) % 2 ? "avx2" : NULL;
  im->nkernels = (uint32_t)(rng_next(r) % 3);
  im->kernels = arena_array(a, ImageKernel, im->nkernels);
  for (uint32_t k = 0; k < im->nkernels; k++) {
    ImageKernel *kernel = &im->kernels[k];
    kernel->name = arena_strdup(a, random_name(r));
    kernel->nvariants = 1 + (uint32_t)(rng_next(r) % 2);
    kernel->variants = arena_array(a, ImageVariant, kernel->nvariants);
    const uint32_t nargs = (uint32_t)(rng_next(r) % 4);
    for (uint32_t v = 0; v < kernel->nvariants; v++) {
      ImageVariant *variant = &kernel->variants[v];
      variant->entry = arena_strdup(a, random_name(r));
      variant->nargs = nargs;
      variant->args_bytes = 400;
      variant->args = arena_array(a, ImageArg, nargs);
      for (uint32_t i = 0; i < nargs; i++)
        variant->args[i] = (ImageArg){.name = arena_printf(a, "a%u", i),
                                      .kind = (ImageArgKind)(rng_next(r) % 4),
                                      .bits = 32,
                                      .divisible = 1,
                                      .offset = i * 96};
    }
  }
  im->nsites = (uint32_t)(rng_next(r) % 3);
  im->sites = arena_array(a, ImageSite, im->nsites);
  im->code_bytes = rng_next(r) % 50;
  im->code = arena_alloc(a, im->code_bytes + 1, 1);
  return im;
}

static void one_image(uint64_t seed) {
  Rng r = {seed};
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  void *bytes, *again;
  size_t n, n2;
  Image *back;
  assert_int_equal(image_write(random_image(&a, &r), &a, &bytes, &n, &d), ST_OK);
  assert_int_equal(image_read(&a, bytes, n, &back, &d), ST_OK);
  assert_int_equal(image_write(back, &a, &again, &n2, &d), ST_OK);
  assert_true(n == n2 && memcmp(bytes, again, n) == 0);
  for (int i = 0; i < 20; i++) {
    size_t len = n;
    unsigned char *bad = damage(&r, bytes, &len, 32);
    reseal(bad, len);
    d.errors = 0;
    const Status s = image_read(&a, bad, len, &back, &d);
    if (s == ST_OK) { // then it is an image like any other
      assert_int_equal(image_write(back, &a, &again, &n2, &d), ST_OK);
      assert_true(n2 == len && memcmp(bad, again, len) == 0);
    } else {
      assert_true(s == ST_CORRUPT && d.errors == 1 && !back);
    }
    free(bad);
  }
  arena_free(&a);
}

static void one_pack(uint64_t seed) {
  Rng r = {seed};
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  PackEntry e[4];
  const uint32_t count = (uint32_t)(rng_next(&r) % 5);
  for (uint32_t i = 0; i < count; i++)
    e[i] = (PackEntry){arena_printf(&a, "key%u", i), "contents", rng_next(&r) % 9};
  void *bytes;
  size_t n;
  assert_int_equal(pack_write(e, count, &a, &bytes, &n, &d), ST_OK);
  for (int i = 0; i < 20; i++) {
    size_t len = n;
    unsigned char *bad = damage(&r, bytes, &len, 32);
    reseal(bad, len);
    PackEntry *list;
    uint32_t have;
    const Status s = pack_read(&a, bad, len, &list, &have, &d);
    assert_true(s == ST_OK || s == ST_CORRUPT);
    for (uint32_t k = 0; s == ST_OK && k < have; k++) assert_non_null(list[k].key);
    free(bad);
  }
  arena_free(&a);
}

static unsigned char *object;
static size_t object_bytes;
static Arena object_arena;

static void one_object(uint64_t seed) {
  Rng r = {seed};
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  for (int i = 0; i < 20; i++) {
    size_t n = object_bytes;
    unsigned char *bad = damage(&r, object, &n, rng_next(&r) % 4 ? 0 : 64);
    ImageCode *c;
    d.errors = 0;
    const Status s = image_code_load(bad, n, image_cpu_symbols, image_ncpu_symbols, &c, &d);
    if (s == ST_OK)
      image_code_free(c); // what it holds is never run
    else
      assert_true(d.errors == 1 && !c);
    free(bad);
  }
  arena_free(&a);
}

static void run(void (*one)(uint64_t seed), const char *what) {
  const uint64_t until = os_now_ns() + seconds() * 1000000000u, first = first_seed();
  uint64_t seed = first;
  for (; seed == first || os_now_ns() < until; seed++) {
    char path[64]; // named before each run, so that a crash leaves it behind
    snprintf(path, sizeof path, "fuzz_%s.seed", what);
    if ((seed - first) % 64 == 0) {
      FILE *f = fopen(path, "w");
      if (f) fprintf(f, "%llu\n", (unsigned long long)seed), fclose(f);
    }
    one(seed);
  }
  print_message("%s: seeds %llu to %llu\n", what, (unsigned long long)first, (unsigned long long)seed - 1);
}

static void test_image(void **state) { (void)state, run(one_image, "image"); }
static void test_pack(void **state) { (void)state, run(one_pack, "pack"); }
static void test_object(void **state) { (void)state, run(one_object, "object"); }

static int compile(void **state) {
  (void)state;
  static const char text[] =
      "extern double sin(double);\nstatic const double table[3] = {1, 2, 3};\ndouble sum;\n"
      "const double *const where = table;\n"
      "double f(int i) { return sin(table[i]) + sum; }\nint g(int i) { static int n[9]; return n[i]++; }\n";
  static Escape esc;
  arena_init(&object_arena, 0, &esc);
  if (ESCAPE_TRY(&esc)) return 1;
  if (os_write_file("fuzz_object.c", text, sizeof text - 1) != ST_OK) return 1;
  if (system("gcc -c -O1 -fPIC -g -o fuzz_object.o fuzz_object.c") != 0) return 1;
  const Status s = os_read_file(&object_arena, "fuzz_object.o", 0, (char **)&object, &object_bytes);
  unlink("fuzz_object.c");
  unlink("fuzz_object.o");
  return s != ST_OK;
}

static int discard(void **state) {
  (void)state;
  arena_free(&object_arena);
  unlink("fuzz_image.seed");
  unlink("fuzz_pack.seed");
  unlink("fuzz_object.seed");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_image), cmocka_unit_test(test_pack),
                                     cmocka_unit_test(test_object)};
  return cmocka_run_group_tests(tests, compile, discard);
}
