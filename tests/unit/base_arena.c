// Arenas, escapes, planted failures and growable arrays.
#include "harness/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static bool all_zero(const void *p, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (((const char *)p)[i]) return false;
  }
  return true;
}

static void test_zeroed_and_aligned(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Rng r = {7};
  for (int i = 0; i < 20000; i++) {
    const size_t align = (size_t)1 << rng_next(&r) % 8, n = rng_next(&r) % 300;
    char *p = arena_alloc(&a, n, align);
    assert_int_equal((uintptr_t)p % align, 0);
    assert_true(all_zero(p, n));
    memset(p, 0xff, n);
  }
  char *big = arena_alloc(&a, 5 << 20, 4096);
  assert_int_equal((uintptr_t)big % 4096, 0);
  assert_true(all_zero(big, 5 << 20));
  assert_non_null(arena_alloc(&a, 0, 1));
  arena_free(&a);
  assert_int_equal(a.used, 0);
  assert_true(all_zero(arena_alloc(&a, 64, 8), 64)); // usable again
  arena_free(&a);
}

// Fills an arena with allocations that know their contents, resets to a mark, and looks at what is left.
static void test_reset(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Rng r = {3};
  for (int round = 0; round < 200; round++) {
    unsigned char *kept[16];
    const int nkept = (int)(rng_next(&r) % 16);
    for (int i = 0; i < nkept; i++) memset(kept[i] = arena_alloc(&a, 500, 8), i + 1, 500);
    const ArenaMark m = arena_mark(&a);
    const size_t used = a.used;
    for (uint64_t i = rng_next(&r) % 100; i > 0; i--) {
      const size_t n = rng_next(&r) % 9000;
      memset(arena_alloc(&a, n, 16), 0xee, n);
    }
    arena_reset(&a, m);
    assert_int_equal(a.used, used);
    for (int i = 0; i < nkept; i++) {
      for (int k = 0; k < 500; k++) assert_int_equal(kept[i][k], i + 1);
    }
    for (int i = 0; i < 30; i++) assert_true(all_zero(arena_alloc(&a, 1000, 1), 1000));
    if (round % 20 == 19) arena_free(&a);
  }
  arena_reset(&a, (ArenaMark){0});
  assert_int_equal(a.used, 0);
}

static void test_text(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  assert_string_equal(arena_printf(&a, "%d-%s", 42, "x"), "42-x");
  char *const s = arena_printf(&a, "%1000d", 1);
  assert_int_equal(strlen(s), 1000);
  assert_string_equal(arena_strdup(&a, ""), "");
  char *const copy = arena_copy(&a, "abc", 4);
  assert_string_equal(copy, "abc");
  assert_int_equal((uintptr_t)copy % 16, 0);
  arena_free(&a);
}

static void test_limit(void **state) {
  (void)state;
  Escape esc;
  Arena a;
  arena_init(&a, 100000, &esc);
  volatile size_t got = 0;
  if (!ESCAPE_TRY(&esc)) {
    for (;;) {
      arena_alloc(&a, 1000, 8);
      got += 1000;
      assert_true(a.used <= 100000);
    }
  }
  assert_int_equal(esc.status, ST_LIMIT);
  assert_non_null(strstr(esc.message, "100000"));
  assert_true(got >= 90000); // the limit is used up, not stopped short at the last doubling
  arena_free(&a);
}

static Status status_of_array(size_t count, size_t limit) {
  Escape esc;
  Arena a;
  arena_init(&a, limit, &esc);
  if (ESCAPE_TRY(&esc)) {
    arena_free(&a);
    return esc.status;
  }
  arena_alloc(&a, 10, 1);
  arena_array(&a, uint64_t, count);
  arena_free(&a);
  return ST_OK;
}

static void test_absurd_sizes(void **state) {
  (void)state;
  const size_t counts[] = {SIZE_MAX,        SIZE_MAX / 8 + 1, SIZE_MAX / 8,
                           (size_t)1 << 61, (size_t)-3,       (size_t)1 << 46};
  for (size_t i = 0; i < DT_COUNTOF(counts); i++) {
    assert_int_equal(status_of_array(counts[i], 0), ST_NO_MEMORY);
    const Status s = status_of_array(counts[i], 1 << 20);
    assert_true(s == ST_NO_MEMORY || s == ST_LIMIT);
  }
}

// How many chunks open before the nth one is made to fail; -1 if something else goes wrong.
static long chunks_before_failure(long n) {
  Escape esc;
  Arena a;
  arena_init(&a, 0, &esc);
  volatile long opened = 0;
  arena_test_fail_after(n);
  if (ESCAPE_TRY(&esc)) {
    const bool again = arena_alloc(&a, 3 << 20, 8) != NULL; // one failure a plant
    arena_free(&a);
    return esc.status == ST_NO_MEMORY && again ? opened : -1;
  }
  while (opened < 100) {
    arena_alloc(&a, 3 << 20, 8); // too large for the chunk before
    opened++;
  }
  arena_free(&a);
  return -1;
}

static void test_planted_failure(void **state) {
  (void)state;
  for (long n = 1; n <= 5; n++) assert_int_equal(chunks_before_failure(n), n - 1);
}

static void *allocates(void *p) {
  Escape esc;
  Arena a;
  arena_init(&a, 0, &esc);
  *(bool *)p = !ESCAPE_TRY(&esc) && arena_alloc(&a, 1, 1);
  arena_free(&a);
  return NULL;
}

static void test_planted_failure_is_the_threads_own(void **state) {
  (void)state;
  bool ok = false;
  pthread_t t;
  arena_test_fail_after(1);
  assert_int_equal(pthread_create(&t, NULL, allocates, &ok), 0);
  pthread_join(t, NULL);
  arena_test_fail_after(0);
  assert_true(ok);
}

static void test_escape_message(void **state) {
  (void)state;
  Escape esc;
  if (ESCAPE_TRY(&esc)) {
    assert_int_equal(esc.status, ST_CORRUPT);
    assert_string_equal(esc.message, "row 7 is bad");
    return;
  }
  escape_now(&esc, ST_CORRUPT, "row %d is bad", 7);
}

static void test_vec(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Vec(uint64_t) v = {0};
  Vec(char) w = {0};
  for (uint32_t i = 0; i < 100000; i++) {
    vec_push(&a, &v, (uint64_t)i * i);
    if (i % 3 == 0)
      vec_push(&a, &w, (char)i); // interleaved, so that growth in place is only sometimes possible
  }
  assert_int_equal(v.len, 100000);
  for (uint32_t i = 0; i < v.len; i++) assert_int_equal(v.data[i], (uint64_t)i * i);
  for (uint32_t i = 0; i < w.len; i++) assert_int_equal(w.data[i], (char)(i * 3));
  assert_int_equal(vec_last(&v), 99999ull * 99999);
  assert_int_equal(vec_pop(&v), 99999ull * 99999);
  assert_int_equal(v.len, 99999);
  vec_reserve(&a, &v, 500000);
  assert_true(v.cap >= 500000);
  assert_int_equal(v.data[99998], 99998ull * 99998);
  arena_free(&a);
}

static void test_vec_too_long(void **state) {
  (void)state;
  Escape esc;
  Arena a;
  arena_init(&a, 0, &esc);
  if (!ESCAPE_TRY(&esc)) {
    Vec(char) v = {0};
    vec_reserve(&a, &v, (size_t)UINT32_MAX + 1);
    fail_msg("a length that does not fit was taken");
  }
  assert_int_equal(esc.status, ST_LIMIT);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_zeroed_and_aligned),
      cmocka_unit_test(test_reset),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_limit),
      cmocka_unit_test(test_absurd_sizes),
      cmocka_unit_test(test_planted_failure),
      cmocka_unit_test(test_planted_failure_is_the_threads_own),
      cmocka_unit_test(test_escape_message),
      cmocka_unit_test(test_vec),
      cmocka_unit_test(test_vec_too_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
