// Diagnostics under fuzzed sources and places; and the fuzzer itself finds what is planted. TIMEOUT: 200
#include "harness/fuzz.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The first bytes say where the error lies, the rest is the source.
static void render(const void *data, size_t len, void *user) {
  (void)user;
  Arena a;
  Escape esc;
  arena_init(&a, 64 << 20, &esc);
  if (ESCAPE_TRY(&esc)) abort();
  uint16_t place[3] = {0};
  const size_t head = len < sizeof place ? len : sizeof place;
  memcpy(place, data, head);
  Diags d;
  diags_init(&d, &a);
  const uint32_t file = diags_source(&d, "f.py", (const char *)data + head, len - head);
  const Loc loc = {file, place[0] % 5, place[1] % (len + 3), place[2] % (len + 3)};
  diag(&d, DIAG_ERROR, loc, "%s", "wrong");
  const char *text = diags_render(&d, &a);
  if (strlen(text) > 2000) abort();
  for (; *text; text++) {
    if ((unsigned char)*text < 32 && *text != '\n') abort(); // no escapes reach the terminal
  }
  arena_free(&a);
}

static void test_diagnostics(void **state) {
  (void)state;
  static const char *const tokens[] = {
      "\t", "\n", "\r\n", "\xe8\xaa\x9e", "\xcc\x81", "\xe2\x80\xae", "\xf0\x9f\x98\x80", "\x1b[2J", NULL};
  static const char sample[] = "\x01\x00\x05\x00\x09\x00"
                               "def k(x):\n\ty = tl.load(x + 1)  # \xc3\xa9\n    return y\n";
  Fuzz f = {.run = render, .tokens = tokens, .max_len = 4096, .seconds = 5};
  fuzz_add(&f, sample, sizeof sample - 1);
  fuzz_add(&f, "\x01\x00\x02\x00\x03\x00\n", 7);
  fuzz_or_fail(&f);
}

static void dies_of_a_mark(const void *data, size_t len, void *user) {
  (void)user;
  if (memchr(data, '!', len)) _exit(9);
}

static void sleeps_on_a_mark(const void *data, size_t len, void *user) {
  (void)user;
  if (memchr(data, '!', len)) os_sleep_ns(20000000000);
}

static void never(const void *data, size_t len, void *user) { (void)data, (void)len, (void)user; }

static void test_finds(void **state) {
  (void)state;
  char report[4096];
  Fuzz f = {.run = dies_of_a_mark, .seconds = 20, .hang_seconds = 0.3};
  fuzz_add(&f, "abc", 3);
  assert_true(fuzz_find(&f, report, sizeof report));
  assert_non_null(strstr(report, "exit status 9 in case FUZZ_SEED="));
  assert_non_null(strchr(strchr(report, '\n'), '!')); // the very case is shown
  f.run = sleeps_on_a_mark;
  assert_true(fuzz_find(&f, report, sizeof report));
  assert_non_null(strstr(report, "no end after 0.3 s"));
  f.run = never;
  f.seconds = 0.2;
  f.hang_seconds = 10; // a busy machine is no hang
  assert_false(fuzz_find(&f, report, sizeof report));
  assert_non_null(strstr(report, " cases from seed "));
  fuzz_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_diagnostics), cmocka_unit_test(test_finds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
