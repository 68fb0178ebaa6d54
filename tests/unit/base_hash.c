// Hashes, the generator, bit tricks and the status table.
#include "harness/test.h"

#include <string.h>

// The published values of XXH3 for empty input; cache files depend on them never changing.
static void test_known_values(void **state) {
  (void)state;
  assert_int_equal(hash_bytes("", 0, 0), 0x2d06800538d394c2ull);
  Arena a;
  TEST_ARENA(a);
  char hex[33];
  hash128_hex(hash128_new(&a), hex);
  assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
  arena_free(&a);
}

static void test_hash128_in_parts(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  char text[2000], whole[33], parts[33], changed[33];
  Rng r = {5};
  for (size_t i = 0; i < sizeof text; i++) text[i] = (char)rng_next(&r);
  Hash128 *h = hash128_new(&a);
  hash128_add(h, text, sizeof text);
  hash128_hex(h, whole);
  h = hash128_new(&a);
  for (size_t at = 0, n; at < sizeof text; at += n) {
    n = rng_next(&r) % 300;
    if (n > sizeof text - at) n = sizeof text - at;
    hash128_add(h, text + at, n);
  }
  hash128_hex(h, parts);
  assert_string_equal(whole, parts);
  assert_int_equal(strlen(whole), 32);
  text[1234] ^= 1;
  h = hash128_new(&a);
  hash128_add(h, text, sizeof text);
  hash128_hex(h, changed);
  assert_string_not_equal(whole, changed);
  assert_int_not_equal(hash_bytes(text, 10, 0), hash_bytes(text, 10, 1));
  arena_free(&a);
}

static void test_rng(void **state) {
  (void)state;
  Rng r = {0};
  assert_int_equal(rng_next(&r), 0xe220a8397b1dcdafull); // splitmix64's first values from seed 0
  assert_int_equal(rng_next(&r), 0x6e789e6aa1b965f4ull);
  double sum = 0, low = 1, high = 0;
  for (int i = 0; i < 100000; i++) {
    const double x = rng_unit(&r);
    assert_true(x >= 0 && x < 1);
    sum += x;
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  assert_true(sum / 100000 > 0.495 && sum / 100000 < 0.505);
  assert_true(low < 0.001 && high > 0.999);
}

static void test_bits(void **state) {
  (void)state;
  assert_false(bits_pow2(0));
  for (int i = 0; i < 64; i++) {
    const uint64_t p = 1ull << i;
    assert_true(bits_pow2(p));
    assert_int_equal(bits_log2(p), i);
    assert_int_equal(bits_next_pow2(p), p);
    if (i < 2) continue;
    assert_false(bits_pow2(p + 1));
    assert_int_equal(bits_log2(p - 1), i - 1);
    assert_int_equal(bits_next_pow2(p - 1), p);
    assert_int_equal(bits_next_pow2(p + 1), i < 63 ? p * 2 : 0);
  }
  assert_int_equal(bits_next_pow2(0), 1);
  assert_int_equal(bits_round_up(13, 8), 16);
  assert_int_equal(bits_round_up(16, 8), 16);
  assert_int_equal(bits_div_up(13, 4), 4);
  int64_t v;
  assert_false(bits_mul_overflow(1 << 20, 1 << 20, &v));
  assert_int_equal(v, 1ll << 40);
  assert_true(bits_mul_overflow(INT64_MAX, 2, &v));
}

static void test_status(void **state) {
  (void)state;
  assert_string_equal(status_name(ST_DEADLINE), "DEADLINE");
  assert_string_equal(status_text(ST_OK), "ok");
  assert_string_equal(status_name((Status)999), "UNKNOWN");
  for (int s = ST_OK; s <= ST_INTERNAL; s++) {
    const char *text = status_text((Status)s);
    assert_true(strlen(text) > 1 && text[strlen(text) - 1] != '.');
    for (int t = ST_OK; t < s; t++) assert_string_not_equal(text, status_text((Status)t));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_values), cmocka_unit_test(test_hash128_in_parts),
      cmocka_unit_test(test_rng),          cmocka_unit_test(test_bits),
      cmocka_unit_test(test_status),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
