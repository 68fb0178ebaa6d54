// Maps and interned strings against plain models.
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

// Random sets and removals over few keys, against an array; then the order of what is left.
static void test_against_model(void **state) {
  (void)state;
  enum { KEYS = 500, STEPS = 200000 };
  static uint64_t value[KEYS], stamp[KEYS]; // stamp: when the key was inserted, 0 = absent
  Arena a;
  TEST_ARENA(a);
  Map m;
  map_init(&m, &a);
  Rng r = {11};
  uint32_t live = 0;
  for (uint64_t step = 1; step <= STEPS; step++) {
    const uint64_t k = rng_next(&r) % KEYS, key = k * 0x100000001ull;
    if (rng_next(&r) % 3) {
      live += !stamp[k];
      if (!stamp[k]) stamp[k] = step;
      map_set(&m, key, value[k] = step);
    } else {
      assert_int_equal(map_del(&m, key), stamp[k] != 0);
      live -= stamp[k] != 0;
      stamp[k] = 0;
    }
    assert_int_equal(m.live, live);
    const uint64_t q = rng_next(&r) % KEYS;
    uint64_t got = 0;
    assert_int_equal(map_get(&m, q * 0x100000001ull, &got), stamp[q] != 0);
    if (stamp[q]) assert_int_equal(got, value[q]);
  }
  uint64_t before = 0;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < m.entries.len; i++) {
    const MapEntry e = m.entries.data[i];
    if (e.key == MAP_GONE) continue;
    const uint64_t k = e.key / 0x100000001ull;
    assert_int_equal(e.value, value[k]);
    assert_true(stamp[k] > before); // in the order of insertion
    before = stamp[k];
    seen++;
  }
  assert_int_equal(seen, live);
  assert_true(m.nslots <= 4096); // churn alone does not make it grow
  arena_free(&a);
}

static void test_many(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Map m;
  map_init(&m, &a);
  for (uint64_t i = 0; i < 300000; i++) map_set(&m, i << 12, i);
  for (uint64_t i = 0; i < 300000; i++) {
    uint64_t v;
    assert_true(map_get(&m, i << 12, &v));
    assert_int_equal(v, i);
    assert_int_equal(m.entries.data[i].value, i);
  }
  assert_false(map_get(&m, 1, NULL));
  arena_free(&a);
}

static void test_pointers_and_empty(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Map m;
  map_init(&m, &a);
  int x, y;
  assert_null(map_getp(&m, &x));
  assert_false(map_del(&m, 5));
  map_setp(&m, &x, &y);
  map_set(&m, 0, 9); // zero is a key like any other
  assert_ptr_equal(map_getp(&m, &x), &y);
  assert_null(map_getp(&m, &y));
  uint64_t v;
  assert_true(map_get(&m, 0, &v) && v == 9);
  assert_true(map_get(&m, 0, NULL));
  assert_true(map_del(&m, 0));
  assert_false(map_get(&m, 0, NULL));
  assert_false(map_get(&m, MAP_GONE, NULL));
  assert_false(map_del(&m, MAP_GONE));
  arena_free(&a);
}

static void test_reserved_key(void **state) {
  (void)state;
  Escape esc;
  Arena a;
  arena_init(&a, 0, &esc);
  Map m;
  map_init(&m, &a);
  if (!ESCAPE_TRY(&esc)) {
    map_set(&m, MAP_GONE, 1);
    fail_msg("the reserved key was taken");
  }
  assert_int_equal(esc.status, ST_INTERNAL);
  arena_free(&a);
}

static void test_strings(void **state) {
  (void)state;
  enum { N = 50000 };
  static const Str *made[N];
  Arena a;
  TEST_ARENA(a);
  Strings *t = strings_new(&a);
  for (int i = 0; i < N; i++) made[i] = str_printf(t, "name_%d", i);
  for (int i = 0; i < N; i++) {
    char name[32];
    const int n = snprintf(name, sizeof name, "name_%d", i);
    assert_ptr_equal(str_intern(t, name, (size_t)n), made[i]);
    assert_ptr_equal(str_cstr(t, name), made[i]);
    assert_int_equal(made[i]->len, n);
    assert_string_equal(made[i]->s, name);
  }
  assert_ptr_equal(str_intern(t, "", 0), str_intern(t, NULL, 0));
  assert_int_equal(str_cstr(t, "")->len, 0);
  assert_ptr_not_equal(str_intern(t, "a\0b", 3), str_cstr(t, "a"));
  assert_memory_equal(str_intern(t, "a\0b", 3)->s, "a\0b", 4);
  assert_ptr_not_equal(str_cstr(strings_new(&a), "a"), str_cstr(t, "a"));

  const Str *longer = str_printf(t, "%0*d", 5000, 1); // beyond the buffer on the stack
  assert_int_equal(longer->len, 5000);
  assert_ptr_equal(longer, str_intern(t, longer->s, 5000));
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_model),
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_pointers_and_empty),
      cmocka_unit_test(test_reserved_key),
      cmocka_unit_test(test_strings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
