// Diagnostics: what is kept, and how it looks.
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

static Loc at(uint32_t line, uint32_t col, uint32_t end_col) { return (Loc){0, line, col, end_col}; }

// Renders one error in a one-file context.
static char *rendered(Arena *a, const char *text, size_t len, Loc loc) {
  Diags d;
  diags_init(&d, a);
  diags_source(&d, "k.py", text, len);
  diag(&d, DIAG_ERROR, loc, "wrong");
  return diags_render(&d, a);
}

static void expect(Arena *a, const char *source, Loc loc, const char *want) {
  assert_string_equal(rendered(a, source, strlen(source), loc), want);
}

static void test_plain(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  const char *src = "first\n  y = x + foo(2)\nlast";
  expect(&a, src, at(2, 11, 14), "k.py:2:11: error: wrong\n    y = x + foo(2)\n            ^~~\n");
  expect(&a, src, at(2, 11, 0), "k.py:2:11: error: wrong\n    y = x + foo(2)\n            ^\n");
  expect(&a, src, at(1, 1, 6), "k.py:1:1: error: wrong\n  first\n  ^~~~~\n");
  expect(&a, src, at(3, 5, 5), "k.py:3:5: error: wrong\n  last\n      ^\n"); // just past the end
  expect(&a, src, at(3, 3, 99), "k.py:3:3: error: wrong\n  last\n    ^~\n");
  expect(&a, src, at(2, 0, 0), "k.py:2: error: wrong\n    y = x + foo(2)\n");
  expect(&a, src, LOC_NONE, "error: wrong\n");
  expect(&a, "a\r\nb\r\n", at(2, 1, 2), "k.py:2:1: error: wrong\n  b\n  ^\n");
  arena_free(&a);
}

static void test_places_that_do_not_exist(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  expect(&a, "one\n", at(9, 4, 7), "k.py:9:4: error: wrong\n");
  expect(&a, "one\n", at(1, 40, 41), "k.py:1:40: error: wrong\n  one\n");
  expect(&a, "", at(1, 1, 2), "k.py:1:1: error: wrong\n");
  expect(&a, "x", (Loc){7, 1, 1, 2}, "error: wrong\n");
  expect(&a, "x", at(UINT32_MAX, UINT32_MAX, UINT32_MAX), "k.py:4294967295:4294967295: error: wrong\n");
  arena_free(&a);
}

static void test_tabs(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  expect(&a, "\tx = 1", at(1, 2, 3), "k.py:1:2: error: wrong\n          x = 1\n          ^\n");
  expect(&a, "ab\tx", at(1, 4, 5), "k.py:1:4: error: wrong\n  ab      x\n          ^\n");
  expect(&a, "a\tb", at(1, 1, 4), "k.py:1:1: error: wrong\n  a       b\n  ^~~~~~~~~\n");
  arena_free(&a);
}

static void test_utf8(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  // two bytes, one column: the column printed counts characters
  expect(&a, "é = x", at(1, 6, 7), "k.py:1:5: error: wrong\n  é = x\n      ^\n");
  // three bytes, two columns
  expect(&a, "語語 x", at(1, 8, 9), "k.py:1:4: error: wrong\n  語語 x\n       ^\n");
  expect(&a, "語語 x", at(1, 4, 7), "k.py:1:2: error: wrong\n  語語 x\n    ^~\n");
  // e + combining acute: no column of its own
  expect(&a, "e\xcc\x81 x", at(1, 5, 6), "k.py:1:4: error: wrong\n  e\xcc\x81 x\n    ^\n");
  // a column in the middle of a character points at that character
  expect(&a, "語x", at(1, 2, 3), "k.py:1:1: error: wrong\n  語x\n  ^~\n");
  arena_free(&a);
}

#define BAD "\xef\xbf\xbd"

static void test_unprintable(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  expect(&a, "a\x1b[31mb", at(1, 7, 8), "k.py:1:7: error: wrong\n  a" BAD "[31mb\n        ^\n");
  expect(&a, "\xff\xfe x", at(1, 4, 5), "k.py:1:4: error: wrong\n  " BAD BAD " x\n     ^\n");
  expect(&a, "\xc3", at(1, 1, 2), "k.py:1:1: error: wrong\n  " BAD "\n  ^\n"); // cut short
  expect(&a, "\xe2\x80\xae x", at(1, 5, 6),
         "k.py:1:3: error: wrong\n  " BAD " x\n    ^\n"); // right-to-left override
  expect(&a, "\xc0\x80", at(1, 1, 2), "k.py:1:1: error: wrong\n  " BAD BAD "\n  ^\n");         // overlong
  expect(&a, "\xe0\x9f\xbf", at(1, 1, 2), "k.py:1:1: error: wrong\n  " BAD BAD BAD "\n  ^\n"); // overlong
  expect(&a, "\xbf\x80", at(1, 1, 2), "k.py:1:1: error: wrong\n  " BAD BAD "\n  ^\n"); // no first byte
  expect(&a, "\x7f", at(1, 1, 2), "k.py:1:1: error: wrong\n  " BAD "\n  ^\n");
  assert_string_equal(rendered(&a, "a\0b", 3, at(1, 3, 4)), "k.py:1:3: error: wrong\n  a" BAD "b\n    ^\n");
  arena_free(&a);
}

// Of a long line a window is shown, and the caret still stands under its character.
static void test_long_line(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  enum { N = 100000 };
  char *const src = arena_alloc(&a, N, 1);
  memset(src, '.', N);
  for (uint32_t where = 0; where < N; where += 997) {
    src[where] = 'X';
    char *const text = rendered(&a, src, N, at(1, where + 1, where + 2));
    const char *line = strchr(text, '\n') + 1, *caret = strchr(line, '\n') + 1;
    assert_true(strlen(text) < 400);
    assert_int_equal(line[strchr(caret, '^') - caret], 'X');
    src[where] = '.';
  }
  char *const text = rendered(&a, src, N, at(1, 90, N));
  assert_true(strlen(text) < 400); // a span longer than the window
  arena_free(&a);
}

static void test_notes_hints_and_count(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  d.max_errors = 2;
  diag_hint(&d, "nothing to attach to");
  diag(&d, DIAG_WARNING, LOC_NONE, "w");
  for (int i = 0; i < 4; i++) {
    diag(&d, DIAG_ERROR, LOC_NONE, "e%d", i);
    diag_hint(&d, "h%d", i);
    diag(&d, DIAG_NOTE, LOC_NONE, "n%d", i);
  }
  diag(&d, DIAG_WARNING, LOC_NONE, "last");
  assert_int_equal(d.errors, 4);
  assert_string_equal(diags_render(&d, &a), "warning: w\n"
                                            "error: e0\n  hint: h0\nnote: n0\n"
                                            "error: e1\n  hint: h1\nnote: n1\n"
                                            "warning: last\n2 more errors\n");
  assert_string_equal(diag_render(&d, &d.list.data[1], &a), "error: e0\n  hint: h0\n");
  arena_free(&a);
}

static void test_several_sources(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  char name[] = "one.py", text[] = "abc";
  assert_int_equal(diags_source(&d, name, text, 3), 0);
  assert_int_equal(diags_source(&d, "two.py", "xyz", 3), 1);
  memset(name, '?', 3); // both were copied
  memset(text, '?', 3);
  diag(&d, DIAG_REMARK, (Loc){0, 1, 2, 3}, "r");
  diag(&d, DIAG_NOTE, (Loc){1, 1, 3, 4}, "n");
  assert_string_equal(diags_render(&d, &a),
                      "one.py:1:2: remark: r\n  abc\n   ^\ntwo.py:1:3: note: n\n  xyz\n    ^\n");
  arena_free(&a);
}

// Any bytes and any place render to something finite and terminated.
static void render_random(Rng *r) {
  Arena a;
  TEST_ARENA(a);
  static const char seeds[] = "\n\t\xe8\xaa\x9e\xf0";
  char src[300];
  const size_t n = rng_next(r) % sizeof src;
  for (size_t k = 0; k < n; k++) src[k] = rng_next(r) % 4 ? (char)rng_next(r) : seeds[rng_next(r) % 6];
  const uint32_t line = rng_next(r) % 4, col = rng_next(r) % 320, end_col = rng_next(r) % 320;
  assert_true(strlen(rendered(&a, src, n, at(line, col, end_col))) < 3000);
  arena_free(&a);
}

static void test_random(void **state) {
  (void)state;
  Rng r = {9};
  for (int i = 0; i < 20000; i++) render_random(&r);
}

static void test_knobs(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  Knobs k;
#define KNOB(name, env, type, def, text) unsetenv(env);
#include "base/knobs.def"
#undef KNOB
  assert_int_equal(knobs_read(&k, &a, &d), ST_OK);
  assert_string_equal(k.cache_dir, "");
  assert_false(k.cache_off);
  assert_int_equal(k.deadline_s, 0);
  assert_int_equal(k.mem_limit_mb, 2048);

  setenv("DITRON_CACHE_DIR", "/tmp/c", 1);
  setenv("DITRON_CACHE_OFF", "YES", 1);
  setenv("DITRON_DEADLINE", "17", 1);
  setenv("DITRON_COMPILE_MB", "", 1);
  assert_int_equal(knobs_read(&k, &a, &d), ST_OK);
  assert_string_equal(k.cache_dir, "/tmp/c");
  assert_true(k.cache_off);
  assert_int_equal(k.deadline_s, 17);
  assert_int_equal(k.mem_limit_mb, 2048);

  setenv("DITRON_CACHE_OFF", "maybe", 1);
  setenv("DITRON_DEADLINE", "3s", 1);
  setenv("DITRON_THREADS", "-1", 1);
  setenv("DITRON_COMPILE_MB", "99999999999999999999", 1);
  assert_int_equal(knobs_read(&k, &a, &d), ST_INVALID);
  assert_int_equal(d.errors, 4);
  assert_int_equal(k.mem_limit_mb, 2048); // the default stands
  assert_non_null(strstr(diags_render(&d, &a), "DITRON_THREADS is '-1'"));
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain),
      cmocka_unit_test(test_places_that_do_not_exist),
      cmocka_unit_test(test_tabs),
      cmocka_unit_test(test_utf8),
      cmocka_unit_test(test_unprintable),
      cmocka_unit_test(test_long_line),
      cmocka_unit_test(test_notes_hints_and_count),
      cmocka_unit_test(test_several_sources),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_knobs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
