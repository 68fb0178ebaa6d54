// number: the small float formats. Every narrowing goes through float and rounds once, to nearest, ties to even.
//
//            sign exponent mantissa   largest   beyond it               NaN
//   f16       1      5       10       65504     infinity                quiet, keeps its high payload bits
//   bf16      1      8        7       3.39e38   infinity                quiet, keeps its high payload bits
//   f8e4m3    1      4        3       448       448 (no infinities)     0x7f, 0xff
//   f8e5m2    1      5        2       57344     57344, infinities too   0x7f, 0xff
#include "base/base.h"

static inline uint32_t bits_of(float f) {
  union {
    float f;
    uint32_t u;
  } x = {f};
  return x.u;
}

static inline float float_of(uint32_t u) {
  union {
    uint32_t u;
    float f;
  } x = {u};
  return x.f;
}

// Rounds the float with bits u (sign clear, not NaN) to ebits of exponent and mbits of mantissa. Values beyond
// the largest come out as larger codes; the caller clamps them.
static inline uint32_t narrow(uint32_t u, int ebits, int mbits) {
  const int bias = (1 << (ebits - 1)) - 1, drop = 23 - mbits;
  const int e = (int)(u >> 23) - 127 + bias; // biased exponent of the result, before rounding
  if (e >= 1) {
    const uint32_t r = u - ((uint32_t)(127 - bias) << 23);
    return (r + (1u << (drop - 1)) - 1 + ((r >> drop) & 1)) >>
           drop; // a carry runs into the exponent, as it should
  }
  const int shift = drop + 1 - e; // a subnormal: the whole significand moves right
  if (shift > 24) return 0;       // below half of the smallest
  const uint32_t m = (u & 0x7fffff) | 0x800000;
  return (m + (1u << (shift - 1)) - 1 + ((m >> shift) & 1)) >> shift;
}

// The float whose format has ebits and mbits, for a code with the sign clear that is not infinity or NaN.
static inline float widen(uint32_t code, int ebits, int mbits) {
  const int bias = (1 << (ebits - 1)) - 1;
  if (code >> mbits) return float_of((code << (23 - mbits)) + ((uint32_t)(127 - bias) << 23));
  return (float)code *
         float_of((uint32_t)(127 + 1 - bias - mbits) << 23); // subnormal: code times the smallest
}

static inline float with_sign(float f, uint32_t negative) { return float_of(bits_of(f) | negative << 31); }

float f16_to_f32(uint16_t h) {
  const uint32_t code = h & 0x7fff, sign = h >> 15;
  if (code >= 0x7c00) return float_of(sign << 31 | 0x7f800000 | (code & 0x3ff) << 13);
  return with_sign(widen(code, 5, 10), sign);
}

uint16_t f16_from_f32(float f) {
  const uint32_t sign = bits_of(f) >> 16 & 0x8000, u = bits_of(f) & 0x7fffffff;
  if (u > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x3ff));
  if (u >= 0x47800000) return (uint16_t)(sign | 0x7c00); // 65536 and up
  return (uint16_t)(sign | narrow(u, 5, 10));            // 65520 .. 65536 carries into infinity
}

// Rounding to float to odd first keeps the second rounding from seeing a false tie.
uint16_t f16_from_f64(double d) {
  const float f = (float)d;
  uint32_t u = bits_of(f);
  if (d != d || (double)f == d) return f16_from_f32(f);
  if ((f > 0 ? (double)f : -(double)f) > (d > 0 ? d : -d)) u--; // towards zero
  return f16_from_f32(float_of(u | 1));
}

uint16_t bf16_from_f32(float f) {
  const uint32_t u = bits_of(f);
  if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float f8e4m3_to_f32(uint8_t b) {
  const uint32_t code = b & 0x7f, sign = b >> 7;
  return with_sign(code == 0x7f ? float_of(0x7fc00000) : widen(code, 4, 3), sign);
}

uint8_t f8e4m3_from_f32(float f) {
  const uint32_t sign = bits_of(f) >> 24 & 0x80, u = bits_of(f) & 0x7fffffff;
  if (u > 0x7f800000) return (uint8_t)(sign | 0x7f);
  const uint32_t code = narrow(u, 4, 3);
  return (uint8_t)(sign | (code > 0x7e ? 0x7e : code));
}

float f8e5m2_to_f32(uint8_t b) {
  const uint32_t code = b & 0x7f, sign = b >> 7;
  if (code >= 0x7c) return float_of(sign << 31 | (code == 0x7c ? 0x7f800000 : 0x7fc00000));
  return with_sign(widen(code, 5, 2), sign);
}

uint8_t f8e5m2_from_f32(float f) {
  const uint32_t sign = bits_of(f) >> 24 & 0x80, u = bits_of(f) & 0x7fffffff;
  if (u > 0x7f800000) return (uint8_t)(sign | 0x7f);
  const uint32_t code = narrow(u, 5, 2);
  return (uint8_t)(sign | (code > 0x7b ? 0x7b : code));
}
