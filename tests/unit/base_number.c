// The small float formats against an independent reference in double arithmetic: every code of every format is
// decoded and encoded again; encoding is tried at every midpoint between neighbours and one step beside it, and on
// random bit patterns. TIMEOUT: 300
#include "harness/test.h"

#include <math.h>
#include <string.h>

typedef struct Format {
  const char *name;
  int bits, ebits, mbits;
  bool infinities; // the top exponent holds infinity and NaNs only; otherwise all ones is the only NaN
  bool saturates;
  uint32_t (*encode)(float);
  float (*decode)(uint32_t);
} Format;

static uint32_t enc_f16(float f) { return f16_from_f32(f); }
static uint32_t enc_bf16(float f) { return bf16_from_f32(f); }
static uint32_t enc_e4m3(float f) { return f8e4m3_from_f32(f); }
static uint32_t enc_e5m2(float f) { return f8e5m2_from_f32(f); }
static float dec_f16(uint32_t c) { return f16_to_f32((uint16_t)c); }
static float dec_bf16(uint32_t c) { return bf16_to_f32((uint16_t)c); }
static float dec_e4m3(uint32_t c) { return f8e4m3_to_f32((uint8_t)c); }
static float dec_e5m2(uint32_t c) { return f8e5m2_to_f32((uint8_t)c); }

static const Format formats[] = {
    {"f16", 16, 5, 10, true, false, enc_f16, dec_f16},
    {"bf16", 16, 8, 7, true, false, enc_bf16, dec_bf16},
    {"f8e4m3", 8, 4, 3, false, true, enc_e4m3, dec_e4m3},
    {"f8e5m2", 8, 5, 2, true, true, enc_e5m2, dec_e5m2},
};

static uint32_t sign_bit(const Format *f) { return 1u << (f->bits - 1); }
static uint32_t top_code(const Format *f) { // code of the largest finite value
  return f->infinities ? ((1u << f->ebits) - 1) << f->mbits : sign_bit(f) - 1;
}

// The value of a code with the sign clear, from the definition.
static double ref_decode(const Format *f, uint32_t code) {
  const int e = (int)(code >> f->mbits), bias = (1 << (f->ebits - 1)) - 1;
  const uint32_t m = code & ((1u << f->mbits) - 1);
  if (f->infinities && e == (1 << f->ebits) - 1) return m ? NAN : INFINITY;
  if (!f->infinities && code == sign_bit(f) - 1) return NAN;
  return e ? ldexp(1.0 + ldexp(m, -f->mbits), e - bias) : ldexp(m, 1 - bias - f->mbits);
}

// The value that |x| rounds to: the nearest multiple of the quantum at x, by the current rounding mode (ties to even).
static double ref_round(const Format *f, double x) {
  if (isnan(x)) return NAN;
  const int bias = (1 << (f->ebits - 1)) - 1, least = 1 - bias;
  const double largest = ref_decode(f, top_code(f) - 1);
  x = fabs(x);
  if (isinf(x)) return f->saturates ? largest : INFINITY;
  int e = x > 0 ? ilogb(x) : least;
  if (e < least) e = least;
  const double quantum = ldexp(1, e - f->mbits), r = nearbyint(x / quantum) * quantum;
  return r <= largest ? r : f->saturates ? largest : INFINITY;
}

static void check_encode(const Format *f, float x) {
  const uint32_t code = f->encode(x);
  const double want = ref_round(f, x), got = ref_decode(f, code & ~sign_bit(f));
  const bool negative = code & sign_bit(f);
  if ((isnan(want) ? !isnan(got) : want != got) || negative != !!signbit(x)) {
    fail_msg("%s of %a: code %#x is %s%a, not %a", f->name, x, code, negative ? "-" : "", got, want);
  }
}

static float float_of(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

static void test_every_code(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(formats); i++) {
    const Format *f = &formats[i];
    for (uint32_t code = 0; code < 1u << f->bits; code++) {
      const double want = ref_decode(f, code & ~sign_bit(f));
      const float got = f->decode(code);
      const bool negative = code & sign_bit(f);
      if (isnan(want) ? !isnan(got) : got != (negative ? -want : want) || !!signbit(got) != negative) {
        fail_msg("%s code %#x decodes to %a, not %a", f->name, code, got, want);
      }
      if (isnan(want))
        assert_true(isnan(f->decode(f->encode(got))));
      else if (!(f->saturates && isinf(want)) && f->encode(got) != code) {
        fail_msg("%s code %#x comes back as %#x", f->name, code, f->encode(got));
      }
    }
  }
}

static void test_every_midpoint(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(formats); i++) {
    const Format *f = &formats[i];
    for (uint32_t code = 0; code + 1 < top_code(f); code++) {
      const float mid = (float)((ref_decode(f, code) + ref_decode(f, code + 1)) / 2);
      for (int sign = -1; sign <= 1; sign += 2) {
        check_encode(f, sign * mid);
        check_encode(f, sign * nextafterf(mid, INFINITY));
        check_encode(f, sign * nextafterf(mid, 0));
      }
    }
  }
}

static void test_edges(void **state) {
  (void)state;
  const float xs[] = {
      0.0f,     -0.0f,    INFINITY,   -INFINITY, NAN,     0x1p-149f, 0x1p-126f, 0x1.fffffep127f,
      65504,    65519,    65519.9f,   65520,     65536,   448,       463.9f,    464,
      465,      480,      57344,      61439,     61440,   61441.f,   65535,     1e9f,
      0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1p-17f,  0x1p-9f, 0x1p-10f};
  for (size_t i = 0; i < DT_COUNTOF(formats); i++) {
    for (size_t k = 0; k < DT_COUNTOF(xs); k++) {
      check_encode(&formats[i], xs[k]);
      check_encode(&formats[i], -xs[k]);
    }
  }
  const uint32_t nans[] = {0x7f800001, 0x7fbfffff, 0xffffffff,
                           0xff800001}; // signalling, and payloads that are cut off
  for (size_t i = 0; i < DT_COUNTOF(formats) * DT_COUNTOF(nans); i++) {
    check_encode(&formats[i / DT_COUNTOF(nans)], float_of(nans[i % DT_COUNTOF(nans)]));
  }
  assert_int_equal(f8e4m3_from_f32(1e9f), 0x7e);
  assert_int_equal(f8e5m2_from_f32(-1e9f), 0xfb);
  assert_int_equal(f16_from_f32(1e9f), 0x7c00);
}

static void test_random(void **state) {
  (void)state;
  Rng r = {1};
  for (int n = 0; n < 2000000; n++) {
    const uint32_t u = (uint32_t)rng_next(&r);
    check_encode(&formats[n & 3], float_of(u));
    // half of all patterns lie beyond the small formats: try the middle of the range as often
    check_encode(&formats[n & 3], float_of((u & 0x87ffffff) | 0x38000000));
  }
}

// A double just beside a midpoint of f16 must not first round to that midpoint on its way through float.
static void test_f16_from_f64(void **state) {
  (void)state;
  const Format *f = &formats[0];
  for (uint32_t code = 0; code + 1 < top_code(f); code++) {
    const double mid = (ref_decode(f, code) + ref_decode(f, code + 1)) / 2;
    assert_int_equal(f16_from_f64(mid), code + (code & 1));
    assert_int_equal(f16_from_f64(nextafter(mid, INFINITY)), code + 1);
    assert_int_equal(f16_from_f64(nextafter(mid, 0)), code);
    assert_int_equal(f16_from_f64(-nextafter(mid, INFINITY)), 0x8000 | (code + 1));
    assert_int_equal(f16_from_f64(-nextafter(mid, 0)), 0x8000 | code);
    assert_int_equal(f16_from_f64(ref_decode(f, code)), code);
  }
  assert_int_equal(f16_from_f64(nextafter(65520, 0)), 0x7bff);
  assert_int_equal(f16_from_f64(65520), 0x7c00);
  assert_int_equal(f16_from_f64(1e300), 0x7c00);
  assert_int_equal(f16_from_f64(-1e300), 0xfc00);
  assert_int_equal(f16_from_f64(-INFINITY), 0xfc00);
  assert_int_equal(f16_from_f64(1e-300), 0);
  assert_int_equal(f16_from_f64(-1e-300), 0x8000);
  assert_true(isnan(f16_to_f32(f16_from_f64(NAN))));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_code), cmocka_unit_test(test_every_midpoint), cmocka_unit_test(test_edges),
      cmocka_unit_test(test_random),     cmocka_unit_test(test_f16_from_f64),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
