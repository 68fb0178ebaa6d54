// interp_convert: kernels of the conversion ops, and the small floats to and from f32 in bulk.
//
// Casts into a small float go through one rounding: from f64 and integers by way of f32 rounded to odd, whose second
// rounding to fewer bits comes out as if there had been one.
#include "ir/interp_impl.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

float interp_f32_odd(long double x) {
  union {
    float f;
    uint32_t u;
  } v = {(float)x};
  if (x != x || (long double)v.f == x) return v.f;
  if (fabsl((long double)v.f) > fabsl(x)) v.u--; // towards zero
  v.u |= 1;
  return v.f;
}

void interp_widen(IrDtype d, float *r, const void *a, size_t n) {
  switch (d) {
  case IR_f16:
    for (size_t i = 0; i < n; i++) r[i] = f16_to_f32(((const uint16_t *)a)[i]);
    break;
  case IR_bf16:
    for (size_t i = 0; i < n; i++) r[i] = bf16_to_f32(((const uint16_t *)a)[i]);
    break;
  case IR_f8e4m3:
    for (size_t i = 0; i < n; i++) r[i] = f8e4m3_to_f32(((const uint8_t *)a)[i]);
    break;
  case IR_f8e5m2:
    for (size_t i = 0; i < n; i++) r[i] = f8e5m2_to_f32(((const uint8_t *)a)[i]);
    break;
  case IR_f64:
    for (size_t i = 0; i < n; i++) r[i] = (float)((const double *)a)[i];
    break;
  default: memcpy(r, a, n * sizeof *r);
  }
}

void interp_narrow(IrDtype d, void *r, const float *a, size_t n) {
  switch (d) {
  case IR_f16:
    for (size_t i = 0; i < n; i++) ((uint16_t *)r)[i] = f16_from_f32(a[i]);
    break;
  case IR_bf16:
    for (size_t i = 0; i < n; i++) ((uint16_t *)r)[i] = bf16_from_f32(a[i]);
    break;
  case IR_f8e4m3:
    for (size_t i = 0; i < n; i++) ((uint8_t *)r)[i] = f8e4m3_from_f32(a[i]);
    break;
  case IR_f8e5m2:
    for (size_t i = 0; i < n; i++) ((uint8_t *)r)[i] = f8e5m2_from_f32(a[i]);
    break;
  case IR_f64:
    for (size_t i = 0; i < n; i++) ((double *)r)[i] = a[i];
    break;
  default: memcpy(r, a, n * sizeof *a);
  }
}

// ---- kernels -----------------------------------------------------------------------------------------------------------
#define ARGS void *r_, const void *a_, const void *b_, const void *c_, unsigned s, size_t n
#define CONV(NAME, T, R, EXPR) \
  static void NAME(ARGS) { \
    R *restrict r = r_; \
    const T *p = a_; \
    (void)b_, (void)c_; \
    if (s & STRIDE_A) { \
      for (size_t i = 0; i < n; i++) { \
        const T a = p[i]; \
        r[i] = (R)(EXPR); \
      } \
    } else { \
      const T a = *p; \
      const R x = (R)(EXPR); \
      for (size_t i = 0; i < n; i++) r[i] = x; \
    } \
  }

// Integers: FROM and TO are storage types; u1 and s1 are the one-bit integer read unsigned and signed.
// clang-format off
#define INT_FROM(X) \
  X(u1, uint8_t, a) \
  X(s1, uint8_t, -(int)a) \
  X(u8, uint8_t, a) \
  X(s8, int8_t, a) \
  X(u16, uint16_t, a) \
  X(s16, int16_t, a) \
  X(u32, uint32_t, a) \
  X(s32, int32_t, a) \
  X(u64, uint64_t, a) \
  X(s64, int64_t, a)
// clang-format on
// clang-format off
#define X(f, T, e) \
  CONV(k_##f##_to_i8, T, uint8_t, e) \
  CONV(k_##f##_to_i16, T, uint16_t, e) \
  CONV(k_##f##_to_i32, T, uint32_t, e) \
  CONV(k_##f##_to_i64, T, uint64_t, e) \
  CONV(k_##f##_to_i1, T, uint8_t, (e) & 1) \
  CONV(k_##f##_to_f32, T, float, e) \
  CONV(k_##f##_to_f64, T, double, e) \
  CONV(k_##f##_to_f16, T, uint16_t, f16_from_f32(interp_f32_odd((long double)(e)))) \
  CONV(k_##f##_to_bf16, T, uint16_t, bf16_from_f32(interp_f32_odd((long double)(e)))) \
  CONV(k_##f##_to_f8e4m3, T, uint8_t, f8e4m3_from_f32(interp_f32_odd((long double)(e)))) \
  CONV(k_##f##_to_f8e5m2, T, uint8_t, f8e5m2_from_f32(interp_f32_odd((long double)(e))))
// clang-format on
INT_FROM(X)
#undef X

// Floats to integers: saturating, NaN to 0. Limits are exact in f64; 2^63 and 2^64 are the first beyond.
static int64_t to_s(double x, double lo, double hi, int64_t top) {
  return x != x ? 0 : x <= lo ? (int64_t)lo : x >= hi ? top : (int64_t)x;
}
static uint64_t to_u(double x, double hi, uint64_t top) {
  return x != x || x <= 0 ? 0 : x >= hi ? top : (uint64_t)x;
}
// clang-format off
#define FLT_FROM(X) \
  X(f16, uint16_t, (double)f16_to_f32(a)) \
  X(bf16, uint16_t, (double)bf16_to_f32(a)) \
  X(f8e4m3, uint8_t, (double)f8e4m3_to_f32(a)) \
  X(f8e5m2, uint8_t, (double)f8e5m2_to_f32(a)) \
  X(f32, float, (double)a) \
  X(f64, double, a)
// clang-format on
// clang-format off
#define X(f, T, e) \
  CONV(k_##f##_to_s1, T, uint8_t, to_s(e, -1, 0, 0) & 1) \
  CONV(k_##f##_to_s8, T, int8_t, to_s(e, -128, 127, 127)) \
  CONV(k_##f##_to_s16, T, int16_t, to_s(e, -32768, 32767, 32767)) \
  CONV(k_##f##_to_s32, T, int32_t, to_s(e, -2147483648.0, 2147483647.0, 2147483647)) \
  CONV(k_##f##_to_s64, T, int64_t, to_s(e, -0x1p63, 0x1p63, INT64_MAX)) \
  CONV(k_##f##_to_u1, T, uint8_t, to_u(e, 1, 1)) \
  CONV(k_##f##_to_u8, T, uint8_t, to_u(e, 255, 255)) \
  CONV(k_##f##_to_u16, T, uint16_t, to_u(e, 65535, 65535)) \
  CONV(k_##f##_to_u32, T, uint32_t, to_u(e, 4294967295.0, 4294967295u)) \
  CONV(k_##f##_to_u64, T, uint64_t, to_u(e, 0x1p64, UINT64_MAX)) \
  CONV(k_##f##_to_f32, T, float, e) \
  CONV(k_##f##_to_f64, T, double, e) \
  CONV(k_##f##_to_f16, T, uint16_t, f16_from_f32(interp_f32_odd(e))) \
  CONV(k_##f##_to_bf16, T, uint16_t, bf16_from_f32(interp_f32_odd(e))) \
  CONV(k_##f##_to_f8e4m3, T, uint8_t, f8e4m3_from_f32(interp_f32_odd(e))) \
  CONV(k_##f##_to_f8e5m2, T, uint8_t, f8e5m2_from_f32(interp_f32_odd(e)))
// clang-format on
FLT_FROM(X)
#undef X

// The common ones again, without the detour.
CONV(k_f32_to_f16_plain, float, uint16_t, f16_from_f32(a))
CONV(k_f32_to_bf16_plain, float, uint16_t, bf16_from_f32(a))
CONV(k_f32_to_f8e4m3_plain, float, uint8_t, f8e4m3_from_f32(a))
CONV(k_f32_to_f8e5m2_plain, float, uint8_t, f8e5m2_from_f32(a))

static Kern from_int(IrDtype from, bool sign, IrDtype to) {
  switch (to) {
#define TO(t) \
  case IR_##t: { \
    static const Kern k[2][5] = {{k_u1_to_##t, k_u8_to_##t, k_u16_to_##t, k_u32_to_##t, k_u64_to_##t}, \
                                 {k_s1_to_##t, k_s8_to_##t, k_s16_to_##t, k_s32_to_##t, k_s64_to_##t}}; \
    return k[sign][from == IR_i1 ? 0 : from == IR_i8 ? 1 : from == IR_i16 ? 2 : from == IR_i32 ? 3 : 4]; \
  }
    TO(i1)
    TO(i8)
    TO(i16)
    TO(i32)
    TO(i64)
    TO(f16)
    TO(bf16)
    TO(f8e4m3)
    TO(f8e5m2)
    TO(f32)
    TO(f64)
#undef TO
  default: return NULL;
  }
}

static int float_index(IrDtype d) {
  switch (d) {
  case IR_f16: return 0;
  case IR_bf16: return 1;
  case IR_f8e4m3: return 2;
  case IR_f8e5m2: return 3;
  case IR_f32: return 4;
  default: return 5;
  }
}
#define FLOATS(to) \
  { k_f16_to_##to, k_bf16_to_##to, k_f8e4m3_to_##to, k_f8e5m2_to_##to, k_f32_to_##to, k_f64_to_##to }

static Kern float_to_int(IrDtype from, IrDtype to, bool sign) {
  static const Kern s[5][6] = {FLOATS(s1), FLOATS(s8), FLOATS(s16), FLOATS(s32), FLOATS(s64)};
  static const Kern u[5][6] = {FLOATS(u1), FLOATS(u8), FLOATS(u16), FLOATS(u32), FLOATS(u64)};
  const int w = to == IR_i1 ? 0 : to == IR_i8 ? 1 : to == IR_i16 ? 2 : to == IR_i32 ? 3 : 4;
  return sign ? s[w][float_index(from)] : u[w][float_index(from)];
}

static Kern float_to_float(IrDtype from, IrDtype to) {
  static const Kern k[6][6] = {FLOATS(f16),    FLOATS(bf16), FLOATS(f8e4m3),
                               FLOATS(f8e5m2), FLOATS(f32),  FLOATS(f64)};
  static const Kern plain[4] = {k_f32_to_f16_plain, k_f32_to_bf16_plain, k_f32_to_f8e4m3_plain,
                                k_f32_to_f8e5m2_plain};
  const int t = float_index(to);
  return from == IR_f32 && t < 4 ? plain[t] : k[t][float_index(from)];
}

Kern interp_pick_cast(const IrOp *op, IrDtype from, IrDtype to) {
  switch (op->kind) {
  case OP_ext_s:
  case OP_si2f: return from_int(from, true, to);
  case OP_ext_u:
  case OP_trunc:
  case OP_ui2f: return from_int(from, false, to);
  case OP_f2si: return float_to_int(from, to, true);
  case OP_f2ui: return float_to_int(from, to, false);
  case OP_fcast: return float_to_float(from, to);
  default: return NULL;
  }
}

// ---- rounding toward zero --------------------------------------------------------------------------------------------------
// The nearest value, one step nearer to zero where it lies beyond. Codes of all float types are sign and magnitude.
static double widen_one(IrDtype d, const void *p) {
  float f;
  if (d == IR_f64) return *(const double *)p;
  interp_widen(d, &f, p, 1);
  return f;
}

Step x_fcast_rtz(World *w, Agent *a, const Ins *i) {
  (void)w;
  const uint32_t n = interp_count(a, i);
  char *r = interp_at(a, i->r);
  const char *p = interp_at(a, i->a);
  for (uint32_t k = 0; k < n; k++, r += i->r.esize) {
    const void *src = p + (size_t)k * i->a.stride * i->a.esize;
    i->fn(r, src, NULL, NULL, 0, 1);
    const double x = widen_one((IrDtype)i->dt, src), y = widen_one((IrDtype)i->rdt, r);
    if (!(fabs(y) > fabs(x)) || x != x) continue;
    switch (i->r.esize) {
    case 1: (*(uint8_t *)r)--; break;
    case 2: (*(uint16_t *)r)--; break;
    default: (*(uint32_t *)r)--; break;
    }
  }
  return GO;
}
