// interp_elem: elementwise kernels, one tight loop for each op and dtype, and the table that picks them.
//
// A kernel computes r[i] = f(a[i], b[i], c[i]) for n elements; an operand whose stride bit is clear has one element.
// Results never overlap operands. f16, bf16 and fp8 have no kernels: the caller widens to f32 and rounds once.
#include "ir/interp_impl.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") // the loops below are to be vectorised whatever the build's level
#endif

#define ARGS void *r_, const void *a_, const void *b_, const void *c_, unsigned s, size_t n

#define DEF1(NAME, T, R, EXPR) \
  static void NAME(ARGS) { \
    R *restrict r = r_; \
    const T *pa = a_; \
    (void)b_, (void)c_; \
    if (s & STRIDE_A) { \
      for (size_t i = 0; i < n; i++) { \
        const T a = pa[i]; \
        r[i] = (R)(EXPR); \
      } \
    } else { \
      const T a = *pa; \
      const R x = (R)(EXPR); \
      for (size_t i = 0; i < n; i++) r[i] = x; \
    } \
  }

#define DEF2(NAME, T, R, EXPR) \
  static void NAME(ARGS) { \
    R *restrict r = r_; \
    const T *pa = a_, *pb = b_; \
    (void)c_; \
    switch (s & (STRIDE_A | STRIDE_B)) { \
    case STRIDE_A | STRIDE_B: \
      for (size_t i = 0; i < n; i++) { \
        const T a = pa[i], b = pb[i]; \
        r[i] = (R)(EXPR); \
      } \
      break; \
    case STRIDE_A: { \
      const T b = *pb; \
      for (size_t i = 0; i < n; i++) { \
        const T a = pa[i]; \
        r[i] = (R)(EXPR); \
      } \
      break; \
    } \
    case STRIDE_B: { \
      const T a = *pa; \
      for (size_t i = 0; i < n; i++) { \
        const T b = pb[i]; \
        r[i] = (R)(EXPR); \
      } \
      break; \
    } \
    default: { \
      const T a = *pa, b = *pb; \
      const R x = (R)(EXPR); \
      for (size_t i = 0; i < n; i++) r[i] = x; \
    } \
    } \
  }

// ---- integers --------------------------------------------------------------------------------------------------------
// OP(name, class, expression): class S reads signed operands, U unsigned ones. W is the width, UT the unsigned type,
// WT a type that holds the double-width product.
#define INT_OPS(OP) \
  OP(add, U, 1u * a + b) \
  OP(sub, U, 1u * a - b) \
  OP(mul, U, 1u * a * b) \
  OP(div_s, S, b == 0 ? 0 : b == -1 ? (UT)0 - (UT)a : (UT)(a / b)) \
  OP(div_u, U, b == 0 ? 0 : a / b) \
  OP(rem_s, S, b == 0 || b == -1 ? 0 : a % b) \
  OP(rem_u, U, b == 0 ? 0 : a % b) \
  OP(mulhi_s, S, ((WT)a * b) >> W) \
  OP(mulhi_u, U, ((UWT)a * b) >> W) \
  OP(and, U, a &b) \
  OP(or, U, a | b) \
  OP(xor, U, a ^ b) \
  OP(shl, U, b >= W ? 0 : (UT)(1u * a << b)) \
  OP(shr_s, S, a >> ((UT)b >= W ? W - 1 : b)) \
  OP(shr_u, U, b >= W ? 0 : a >> b) \
  OP(min_s, S, a < b ? a : b) \
  OP(max_s, S, a > b ? a : b) \
  OP(min_u, U, a < b ? a : b) \
  OP(max_u, U, a > b ? a : b)
// clang-format off
#define CMP_OPS(OP) \
  OP(eq, U, a == b) \
  OP(ne, U, a != b) \
  OP(slt, S, a < b) \
  OP(sle, S, a <= b) \
  OP(sgt, S, a > b) \
  OP(sge, S, a >= b) \
  OP(ult, U, a < b) \
  OP(ule, U, a <= b) \
  OP(ugt, U, a > b) \
  OP(uge, U, a >= b)
// clang-format on

#define TYPE_S(n) int##n##_t
#define TYPE_U(n) uint##n##_t
#define W 8
#define UT uint8_t
#define WT int32_t
#define UWT uint32_t
#define OP(name, cls, expr) DEF2(k_##name##_8, TYPE_##cls(8), TYPE_##cls(8), expr)
INT_OPS(OP)
#undef OP
#undef W
#undef UT
#undef WT
#undef UWT
#define W 16
#define UT uint16_t
#define WT int32_t
#define UWT uint32_t
#define OP(name, cls, expr) DEF2(k_##name##_16, TYPE_##cls(16), TYPE_##cls(16), expr)
INT_OPS(OP)
#undef OP
#undef W
#undef UT
#undef WT
#undef UWT
#define W 32
#define UT uint32_t
#define WT int64_t
#define UWT uint64_t
#define OP(name, cls, expr) DEF2(k_##name##_32, TYPE_##cls(32), TYPE_##cls(32), expr)
INT_OPS(OP)
#undef OP
#undef W
#undef UT
#undef WT
#undef UWT
#define W 64
#define UT uint64_t
#define WT __int128
#define UWT unsigned __int128
#define OP(name, cls, expr) DEF2(k_##name##_64, TYPE_##cls(64), TYPE_##cls(64), expr)
INT_OPS(OP)
#undef OP
#undef W
#undef UT
#undef WT
#undef UWT

DEF1(k_abs_s_8, int8_t, int8_t, a < 0 ? (uint8_t)0 - (uint8_t)a : a)
DEF1(k_abs_s_16, int16_t, int16_t, a < 0 ? (uint16_t)0 - (uint16_t)a : a)
DEF1(k_abs_s_32, int32_t, int32_t, a < 0 ? 0u - (uint32_t)a : (uint32_t)a)
DEF1(k_abs_s_64, int64_t, int64_t, a < 0 ? (uint64_t)0 - (uint64_t)a : (uint64_t)a)

// i1 holds 0 or 1; read as signed, 1 is -1.
// clang-format off
#define BIT_OPS(OP) \
  OP(add, a ^ b) \
  OP(sub, a ^ b) \
  OP(mul, a & b) \
  OP(div_s, a & b) \
  OP(div_u, a & b) \
  OP(rem_s, 0 & a & b) \
  OP(rem_u, 0 & a & b) \
  OP(mulhi_s, 0 & a & b) \
  OP(mulhi_u, 0 & a & b) \
  OP(and, a & b) \
  OP(or, a | b) \
  OP(xor, a ^ b) \
  OP(shl, a & ~b & 1) \
  OP(shr_s, (b & 0) | a) \
  OP(shr_u, a & ~b & 1) \
  OP(min_s, a | b) \
  OP(max_s, a & b) \
  OP(min_u, a & b) \
  OP(max_u, a | b)
// clang-format on
#define OP(name, expr) DEF2(k_##name##_1, uint8_t, uint8_t, expr)
BIT_OPS(OP)
#undef OP
DEF1(k_abs_s_1, uint8_t, uint8_t, a)

#define OP(name, cls, expr) \
  DEF2(k_cmp_##name##_8, TYPE_##cls(8), uint8_t, expr) \
  DEF2(k_cmp_##name##_16, TYPE_##cls(16), uint8_t, expr) \
  DEF2(k_cmp_##name##_32, TYPE_##cls(32), uint8_t, expr) \
  DEF2(k_cmp_##name##_64, TYPE_##cls(64), uint8_t, expr)
CMP_OPS(OP)
#undef OP
// Signed comparison of bits: 1 is the smaller.
DEF2(k_cmp_slt_1, uint8_t, uint8_t, a > b)
DEF2(k_cmp_sle_1, uint8_t, uint8_t, a >= b)
DEF2(k_cmp_sgt_1, uint8_t, uint8_t, a < b)
DEF2(k_cmp_sge_1, uint8_t, uint8_t, a <= b)

// ---- floats --------------------------------------------------------------------------------------------------------
// clang-format off
#define FLT_OPS(OP) \
  OP(fadd, a + b) \
  OP(fsub, a - b) \
  OP(fmul, a * b) \
  OP(fdiv, a / b) \
  OP(fmin, a != a ? b : b != b ? a : a < b ? a : b) \
  OP(fmax, a != a ? b : b != b ? a : a > b ? a : b) \
  OP(fmin_nan, a != a ? a : b != b ? b : a < b ? a : b) \
  OP(fmax_nan, a != a ? a : b != b ? b : a > b ? a : b)
// clang-format on
#define OP(name, expr) DEF2(k_##name##_f32, float, float, expr) DEF2(k_##name##_f64, double, double, expr)
FLT_OPS(OP)
#undef OP
DEF2(k_frem_f32, float, float, fmodf(a, b))
DEF2(k_frem_f64, double, double, fmod(a, b))
DEF1(k_fneg_f32, float, float, -a)
DEF1(k_fneg_f64, double, double, -a)
DEF1(k_fabs_f32, float, float, fabsf(a))
DEF1(k_fabs_f64, double, double, fabs(a))

// clang-format off
#define FCMP_OPS(OP) \
  OP(oeq, a == b) \
  OP(une, a != b) \
  OP(olt, a < b) \
  OP(ole, a <= b) \
  OP(ogt, a > b) \
  OP(oge, a >= b)
// clang-format on
#define OP(name, expr) \
  DEF2(k_fcmp_##name##_f32, float, uint8_t, expr) DEF2(k_fcmp_##name##_f64, double, uint8_t, expr)
FCMP_OPS(OP)
#undef OP

// clang-format off
#define MATH1(OP) \
  OP(exp, expf(a), exp(a)) \
  OP(exp2, exp2f(a), exp2(a)) \
  OP(log, logf(a), log(a)) \
  OP(log2, log2f(a), log2(a)) \
  OP(sin, sinf(a), sin(a)) \
  OP(cos, cosf(a), cos(a)) \
  OP(tanh, tanhf(a), tanh(a)) \
  OP(erf, erff(a), erf(a)) \
  OP(sqrt, sqrtf(a), sqrt(a)) \
  OP(rsqrt, (float)(1.0 / sqrt((double)a)), 1.0 / sqrt(a)) \
  OP(floor, floorf(a), floor(a)) \
  OP(ceil, ceilf(a), ceil(a)) \
  OP(rint, rintf(a), rint(a)) \
  OP(trunc, truncf(a), trunc(a))
// clang-format on
#define OP(name, e32, e64) \
  DEF1(k_math_##name##_f32, float, float, e32) DEF1(k_math_##name##_f64, double, double, e64)
MATH1(OP)
#undef OP
DEF2(k_math_pow_f32, float, float, powf(a, b))
DEF2(k_math_pow_f64, double, double, pow(a, b))

static void k_fma_f32(ARGS) {
  float *restrict r = r_;
  const float *a = a_, *b = b_, *c = c_;
  const size_t sa = s & 1, sb = s >> 1 & 1, sc = s >> 2 & 1;
  for (size_t i = 0; i < n; i++) r[i] = fmaf(a[i * sa], b[i * sb], c[i * sc]);
}
static void k_fma_f64(ARGS) {
  double *restrict r = r_;
  const double *a = a_, *b = b_, *c = c_;
  const size_t sa = s & 1, sb = s >> 1 & 1, sc = s >> 2 & 1;
  for (size_t i = 0; i < n; i++) r[i] = fma(a[i * sa], b[i * sb], c[i * sc]);
}

// ---- choice and addresses ------------------------------------------------------------------------------------------
#define SELECT(T) \
  static void k_select_##T(ARGS) { \
    T *restrict r = r_; \
    const uint8_t *c = a_; \
    const T *x = b_, *y = c_; \
    const size_t sc = s & 1, sx = s >> 1 & 1, sy = s >> 2 & 1; \
    if (s == 7) { \
      for (size_t i = 0; i < n; i++) { \
        const T p = x[i], q = y[i]; \
        r[i] = c[i] ? p : q; \
      } \
    } else { \
      for (size_t i = 0; i < n; i++) r[i] = c[i * sc] ? x[i * sx] : y[i * sy]; \
    } \
  }
SELECT(uint8_t)
SELECT(uint16_t)
SELECT(uint32_t)
SELECT(uint64_t)

#define PTR_ADD(SIZE, BITS) \
  static void k_ptr_add_##SIZE##_##BITS(ARGS) { \
    uint64_t *restrict r = r_; \
    const uint64_t *p = a_; \
    const int##BITS##_t *d = b_; \
    (void)c_; \
    if ((s & 3) == STRIDE_B) { \
      const uint64_t q = *p; \
      for (size_t i = 0; i < n; i++) r[i] = q + (uint64_t)(int64_t)d[i] * SIZE; \
    } else if ((s & 3) == 3) { \
      for (size_t i = 0; i < n; i++) r[i] = p[i] + (uint64_t)(int64_t)d[i] * SIZE; \
    } else { \
      const uint64_t q = (uint64_t)(int64_t)*d * SIZE; \
      const size_t sp = s & 1; \
      for (size_t i = 0; i < n; i++) r[i] = p[i * sp] + q; \
    } \
  }
PTR_ADD(1, 32)
PTR_ADD(2, 32)
PTR_ADD(4, 32)
PTR_ADD(8, 32)
PTR_ADD(1, 64)
PTR_ADD(2, 64)
PTR_ADD(4, 64)
PTR_ADD(8, 64)

// ---- picking -----------------------------------------------------------------------------------------------------------
static int width_index(IrDtype d) { // of an integer
  switch (d) {
  case IR_i1: return 0;
  case IR_i8: return 1;
  case IR_i16: return 2;
  case IR_i32: return 3;
  default: return 4;
  }
}

Kern interp_pick_binary(IrOpKind k, IrDtype d) {
  switch (k) {
#define OP(name, cls, expr) \
  case OP_##name: { \
    static const Kern t[] = {k_##name##_1, k_##name##_8, k_##name##_16, k_##name##_32, k_##name##_64}; \
    return t[width_index(d)]; \
  }
    INT_OPS(OP)
#undef OP
  case OP_abs_s: {
    static const Kern t[] = {k_abs_s_1, k_abs_s_8, k_abs_s_16, k_abs_s_32, k_abs_s_64};
    return t[width_index(d)];
  }
  case OP_fadd: return d == IR_f64 ? k_fadd_f64 : k_fadd_f32;
  case OP_fsub: return d == IR_f64 ? k_fsub_f64 : k_fsub_f32;
  case OP_fmul: return d == IR_f64 ? k_fmul_f64 : k_fmul_f32;
  case OP_fdiv: return d == IR_f64 ? k_fdiv_f64 : k_fdiv_f32;
  case OP_frem: return d == IR_f64 ? k_frem_f64 : k_frem_f32;
  case OP_fmin: return d == IR_f64 ? k_fmin_f64 : k_fmin_f32;
  case OP_fmax: return d == IR_f64 ? k_fmax_f64 : k_fmax_f32;
  case OP_fneg: return d == IR_f64 ? k_fneg_f64 : k_fneg_f32;
  case OP_fabs: return d == IR_f64 ? k_fabs_f64 : k_fabs_f32;
  case OP_fma: return d == IR_f64 ? k_fma_f64 : k_fma_f32;
  default: return NULL;
  }
}

static Kern pick_cmp(IrCmp p, IrDtype d) {
  const int w = width_index(d);
  if (w == 0) {
    switch (p) {
    case CMP_slt: return k_cmp_slt_1;
    case CMP_sle: return k_cmp_sle_1;
    case CMP_sgt: return k_cmp_sgt_1;
    case CMP_sge: return k_cmp_sge_1;
    default: break;
    }
  }
  switch (p) {
#define OP(name, cls, expr) \
  case CMP_##name: { \
    static const Kern t[] = {k_cmp_##name##_8, k_cmp_##name##_8, k_cmp_##name##_16, k_cmp_##name##_32, \
                             k_cmp_##name##_64}; \
    return t[w]; \
  }
    CMP_OPS(OP)
#undef OP
  default: return NULL;
  }
}

static Kern pick_fcmp(IrFcmp p, bool f64) {
  switch (p) {
#define OP(name, expr) \
  case FCMP_##name: return f64 ? k_fcmp_##name##_f64 : k_fcmp_##name##_f32;
    FCMP_OPS(OP)
#undef OP
  default: return NULL;
  }
}

static Kern pick_math(IrMath fn, bool f64) {
  switch (fn) {
#define OP(name, e32, e64) \
  case MATH_FN_##name: return f64 ? k_math_##name##_f64 : k_math_##name##_f32;
    MATH1(OP)
#undef OP
  case MATH_FN_pow: return f64 ? k_math_pow_f64 : k_math_pow_f32;
  default: return NULL;
  }
}

static Kern pick_select(int esize) {
  switch (esize) {
  case 1: return k_select_uint8_t;
  case 2: return k_select_uint16_t;
  case 4: return k_select_uint32_t;
  default: return k_select_uint64_t;
  }
}

static Kern pick_ptr_add(int size, bool wide) {
  switch (size) {
  case 1: return wide ? k_ptr_add_1_64 : k_ptr_add_1_32;
  case 2: return wide ? k_ptr_add_2_64 : k_ptr_add_2_32;
  case 4: return wide ? k_ptr_add_4_64 : k_ptr_add_4_32;
  default: return wide ? k_ptr_add_8_64 : k_ptr_add_8_32;
  }
}

bool interp_pick(const IrOp *op, Picked *out) {
  const IrValue *a = ir_operand(op, 0);
  if (!a || !op->nresults) return false;
  const bool ptr = ir_type_is_ptr(a->type);
  const IrDtype d = ptr ? IR_i64 : a->type->dtype;
  const bool flt = ir_dtypes[d].cls == IR_FLOAT, f64 = d == IR_f64;
  *out = (Picked){.dt = (uint8_t)d, .rdt = (uint8_t)op->results[0].type->dtype};
  out->narrow = flt && d != IR_f32 && d != IR_f64;
  switch (op->kind) {
  case OP_cmp: out->fn = pick_cmp((IrCmp)ir_attr_i(op, ATTR_cmp), d); break;
  case OP_fcmp: out->fn = pick_fcmp((IrFcmp)ir_attr_i(op, ATTR_fcmp), f64); break;
  case OP_math: out->fn = pick_math((IrMath)ir_attr_i(op, ATTR_fn), f64); break;
  case OP_select:
    out->fn = pick_select(ir_type_bytes(op->results[0].type));
    out->narrow = false;
    break;
  case OP_ptr_add: {
    const IrValue *n = ir_operand(op, 1);
    out->fn = pick_ptr_add(ir_dtypes[a->type->dtype].bytes, n && n->type->dtype == IR_i64);
    break;
  }
  case OP_fmin:
  case OP_fmax:
    if (ir_attr_i(op, ATTR_nan)) {
      out->fn = op->kind == OP_fmin ? (f64 ? k_fmin_nan_f64 : k_fmin_nan_f32)
                                    : (f64 ? k_fmax_nan_f64 : k_fmax_nan_f32);
      break;
    }
    out->fn = interp_pick_binary(op->kind, d);
    break;
  case OP_ext_s:
  case OP_ext_u:
  case OP_trunc:
  case OP_fcast:
  case OP_si2f:
  case OP_ui2f:
  case OP_f2si:
  case OP_f2ui:
    out->fn = interp_pick_cast(op, d, op->results[0].type->dtype);
    out->narrow = false;
    break;
  default: out->fn = interp_pick_binary(op->kind, d);
  }
  return out->fn != NULL;
}
