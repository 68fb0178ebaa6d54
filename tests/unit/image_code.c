// The object loader: small C files, compiled by the system's compiler in each code model, run in this process.
#include "harness/test.h"
#include "image/image.h"

#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char SOURCE[] =
    "extern long imported(long);\n"
    "extern long imported_data;\n"
    "extern long maybe(void) __attribute__((weak));\n"
    "static const long table[4] = {1, 10, 100, 1000};\n"
    "const char *const names[2] = {\"zero\", \"one\"};\n"
    "long counter = 40;\n"
    "static long zeros[100000];\n"
    "__attribute__((noinline)) static long square(long x) { return x * x; }\n"
    "long (*choose[2])(long) = {square, imported};\n"
    "long sum(int n) { long s = 0; for (int i = 0; i < n; i++) s += table[i & 3]; return s; }\n"
    "long count(void) { return ++counter; }\n"
    "long call(int which, long x) { return choose[which](x); }\n"
    "long direct(long x) { return imported(x) + square(x); }\n"
    "const char *name(int i) { return names[i]; }\n"
    "long zero_sum(void) { long s = 0; for (int i = 0; i < 100000; i++) s += zeros[i]++; return s; }\n"
    "long has_maybe(void) { return maybe ? maybe() : -1; }\n"
    "double lookup(int i) { switch (i) { case 0: return 1.5; case 1: return 2.5; case 2: return 9; case 3: return 0.125;"
    " case 4: return 77; case 5: return 3; default: return -1; } }\n";
static const char DATA_SOURCE[] = "extern long imported_data;\nlong data(void) { return imported_data; }\n"
                                  "long *where(void) { return &imported_data; }\n";

static long imported(long x) { return x + 1000; }
static long imported_data = 4242;
static const ImageSymbol symbols[] = {{"imported", (const void *)imported},
                                      {"imported_data", &imported_data}};

// Compiles text with the options; its bytes in the arena.
static char *compile(Arena *a, const char *text, const char *options, size_t *n) {
  char c[64], o[64], cmd[512];
  snprintf(c, sizeof c, "image_code_%d.c", (int)getpid());
  snprintf(o, sizeof o, "image_code_%d.o", (int)getpid());
  assert_int_equal(os_write_file(c, text, strlen(text)), ST_OK);
  snprintf(cmd, sizeof cmd, "gcc -c -O2 -w %s -o %s %s", options, o, c);
  assert_int_equal(system(cmd), 0);
  char *data;
  assert_int_equal(os_read_file(a, o, 0, &data, n), ST_OK);
  unlink(c);
  unlink(o);
  return data;
}

#define CALL(code, name, type) ((type)(uintptr_t)image_code_symbol((code), (name)))

static void run_all(const char *options) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  const char *object = compile(&a, SOURCE, options, &n);
  ImageCode *c;
  if (image_code_load(object, n, symbols, DT_COUNTOF(symbols), &c, &d) != ST_OK)
    fail_msg("%s: %s", options, diags_render(&d, &a));
  assert_int_equal(CALL(c, "sum", long (*)(int))(8), 2222);
  assert_int_equal(CALL(c, "count", long (*)(void))(), 41);
  assert_int_equal(CALL(c, "count", long (*)(void))(), 42);
  assert_int_equal(*(const long *)image_code_symbol(c, "counter"), 42);
  assert_int_equal(CALL(c, "call", long (*)(int, long))(0, 7), 49);
  assert_int_equal(CALL(c, "call", long (*)(int, long))(1, 7), 1007);
  assert_int_equal(CALL(c, "direct", long (*)(long))(3), 1012);
  assert_string_equal(CALL(c, "name", const char *(*)(int))(1), "one");
  assert_int_equal(CALL(c, "zero_sum", long (*)(void))(), 0);
  assert_int_equal(CALL(c, "zero_sum", long (*)(void))(), 100000);
  assert_int_equal(CALL(c, "has_maybe", long (*)(void))(), -1);
  assert_true(CALL(c, "lookup", double (*)(int))(3) == 0.125);
  assert_true(CALL(c, "lookup", double (*)(int))(9) == -1);
  assert_null(image_code_symbol(c, "square")); // local
  assert_null(image_code_symbol(c, "imported"));
  assert_null(image_code_symbol(c, ""));
  image_code_free(c);
  arena_free(&a);
}

static void test_pic(void **state) { (void)state, run_all("-fPIC"); }
static void test_small(void **state) { (void)state, run_all("-fno-pic -mcmodel=small"); }
static void test_large(void **state) { (void)state, run_all("-fno-pic -mcmodel=large"); }
static void test_large_pic(void **state) { (void)state, run_all("-fPIC -mcmodel=large"); }
static void test_medium(void **state) { (void)state, run_all("-fPIC -mcmodel=medium"); }
static void test_sections(void **state) {
  (void)state, run_all("-fPIC -g -ffunction-sections -fdata-sections -fno-plt");
}
static void test_common(void **state) { (void)state, run_all("-fno-pic -fcommon -mcmodel=large -O0 -g3"); }

static void test_imported_data(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  const char *const options[] = {"-fPIC", "-fno-pic -mcmodel=large"};
  for (size_t i = 0; i < DT_COUNTOF(options); i++) {
    size_t n;
    const char *object = compile(&a, DATA_SOURCE, options[i], &n);
    ImageCode *c;
    assert_int_equal(image_code_load(object, n, symbols, DT_COUNTOF(symbols), &c, &d), ST_OK);
    assert_int_equal(CALL(c, "data", long (*)(void))(), 4242);
    assert_ptr_equal(CALL(c, "where", long *(*)(void))(), &imported_data);
    image_code_free(c);
  }
  arena_free(&a);
}

// What the compiler may leave to the C library and to compiler support functions is there.
static void test_imports(void **state) {
  (void)state;
  static const char text[] = "#include <math.h>\n#include <string.h>\n"
                             "double f(double x, int n) { return pow(sin(x), n) + expf((float)x); }\n"
                             "void copy(char *d, const char *s, unsigned long n) { memmove(d, s, n); }\n"
                             "__int128 divide(__int128 a, __int128 b) { return a / b; }\n"
                             "_Float16 narrow(float x) { return (_Float16)x; }\n"
                             "float widen(_Float16 x) { return x; }\n";
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  const char *object = compile(&a, text, "-fPIC -mno-f16c", &n);
  ImageCode *c;
  if (image_code_load(object, n, image_cpu_symbols, image_ncpu_symbols, &c, &d) != ST_OK)
    fail_msg("%s", diags_render(&d, &a));
  assert_true(fabs(CALL(c, "f", double (*)(double, int))(0.5, 3) - (pow(sin(0.5), 3) + expf(0.5f))) < 1e-12);
  char to[8] = "";
  CALL(c, "copy", void (*)(char *, const char *, unsigned long))(to, "tile", 5);
  assert_string_equal(to, "tile");
  const __int128 big = (__int128)1 << 100;
  assert_true(CALL(c, "divide", __int128 (*)(__int128, __int128))(big, 1024) == (__int128)1 << 90);
  const _Float16 h = CALL(c, "narrow", _Float16 (*)(float))(1.5f + 1.0f / 2048);
  assert_true(CALL(c, "widen", float (*)(_Float16))(h) == 1.5f); // a tie goes to even
  image_code_free(c);
  arena_free(&a);
}

static void expect_refused(const char *text, const char *options, Status want, const char *words) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  const char *object = compile(&a, text, options, &n);
  ImageCode *c;
  assert_int_equal(image_code_load(object, n, symbols, DT_COUNTOF(symbols), &c, &d), want);
  assert_null(c);
  assert_int_equal(d.errors, 1);
  const char *said = diags_render(&d, &a);
  if (!strstr(said, words)) fail_msg("'%s' is not in: %s", words, said);
  arena_free(&a);
}

static void test_refused(void **state) {
  (void)state;
  expect_refused("int f(void); int g(void) { return f(); }", "-fPIC", ST_NOT_FOUND, "needs 'f'");
  expect_refused("_Thread_local int x; int g(void) { return x++; }", "-fPIC", ST_UNSUPPORTED, "thread-local");
  expect_refused("int x; __attribute__((constructor)) void g(void) { x = 1; }", "-fPIC", ST_UNSUPPORTED,
                 "constructors");
  expect_refused("int g(void) { return 1; }", "-m32 -fno-pic", ST_UNSUPPORTED, "x86-64");
  expect_refused("", "-fPIC", ST_CORRUPT, "neither code nor data");
}

static void test_protection(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n, len;
  const char *object = compile(&a, SOURCE, "-fPIC", &n);
  ImageCode *c;
  assert_int_equal(image_code_load(object, n, symbols, DT_COUNTOF(symbols), &c, &d), ST_OK);
  const uintptr_t code = (uintptr_t)image_code_symbol(c, "sum"),
                  data = (uintptr_t)image_code_symbol(c, "counter");
  char *maps;
  assert_int_equal(os_read_file(&a, "/proc/self/maps", 0, &maps, &len), ST_OK);
  int seen = 0;
  for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n")) {
    unsigned long lo, hi;
    char access[8];
    assert_int_equal(sscanf(line, "%lx-%lx %7s", &lo, &hi, access), 3);
    if (lo <= code && code < hi) assert_string_equal(access, "r-xp"), seen++;
    if (lo <= data && data < hi) assert_string_equal(access, "rw-p"), seen++;
  }
  assert_int_equal(seen, 2);
  image_code_free(c);
  arena_free(&a);
}

// Every shorter object, and many with one word changed, end in an answer; nothing of what loads is run.
static void test_damaged(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  const char *object = compile(&a, SOURCE, "-fPIC", &n);
  ImageCode *c;
  for (size_t k = 0; k < n; k += 7) {
    char *part = malloc(k ? k : 1);
    memcpy(part, object, k);
    const Status s = image_code_load(part, k, symbols, DT_COUNTOF(symbols), &c, &d);
    if (s == ST_OK) image_code_free(c);
    assert_true(s != ST_OK || k >= n - sizeof(Elf64_Shdr));
    free(part);
  }
  Rng r = {7};
  for (int round = 0; round < 4000; round++) {
    char *bad = malloc(n);
    memcpy(bad, object, n);
    const int changes = 1 + (int)(rng_next(&r) % 4);
    for (int i = 0; i < changes; i++) {
      static const uint64_t odd[] = {0,          1,          7,          0xff,       0xffff,
                                     0x7fffffff, 0xffffffff, 1ull << 40, UINT64_MAX, INT64_MAX};
      const uint64_t x = rng_next(&r) % 2 ? odd[rng_next(&r) % DT_COUNTOF(odd)] : rng_next(&r);
      const size_t width = (size_t)1 << (rng_next(&r) % 4), at = rng_next(&r) % (n - 8);
      memcpy(bad + (at & ~(width - 1)), &x, width);
    }
    if (image_code_load(bad, n, symbols, DT_COUNTOF(symbols), &c, &d) == ST_OK) image_code_free(c);
    free(bad);
  }
  arena_free(&a);
}

static void test_memory_ends(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  diag(&d, DIAG_NOTE, LOC_NONE, "so that the list has its memory");
  size_t n;
  const char *object = compile(&a, SOURCE, "-fPIC", &n);
  ImageCode *c;
  arena_test_fail_after(1);
  assert_int_equal(image_code_load(object, n, symbols, DT_COUNTOF(symbols), &c, &d), ST_NO_MEMORY);
  arena_test_fail_after(0);
  assert_null(c);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pic),         cmocka_unit_test(test_small),
      cmocka_unit_test(test_large),       cmocka_unit_test(test_large_pic),
      cmocka_unit_test(test_medium),      cmocka_unit_test(test_sections),
      cmocka_unit_test(test_common),      cmocka_unit_test(test_imported_data),
      cmocka_unit_test(test_imports),     cmocka_unit_test(test_refused),
      cmocka_unit_test(test_protection),  cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_memory_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
