// lower_math: the functions of math.def on f32, emitted in line for scalars and vectors alike; no calls, no branches but
// one for sines of huge arguments. Errors stay below 2 units in the last place (pow: below 1).
//
// Reduction as in Cody and Waite, "Software Manual for the Elementary Functions" (1980), with fused multiply-adds;
// polynomials of our own (math_tables.h). Rounding to an integer adds 1.5 * 2^23, whose low bits then hold the integer.
#include "target/math_tables.h"
#include "target/target_impl.h"

V lower_poly(Lower *l, V x, const double *c, uint32_t n) {
  const T t = LLVMTypeOf(x);
  V y = lower_cf(t, c[n - 1]);
  for (uint32_t i = n - 1; i-- > 0;) y = lower_fma(l, y, x, lower_cf(t, c[i]));
  return y;
}
#define POLY(l, x, c) lower_poly(l, x, c, DT_COUNTOF(c))
#define MAGIC 0x1.8p23
enum { MAGIC_BITS = 0x4b400000 }; // of MAGIC

static V cf(V like, double v) { return lower_cf(LLVMTypeOf(like), v); }
static V ints(Lower *l, V x) { return lower_bitcast(l, x, l->i32); }
static V floats(Lower *l, V x) { return lower_bitcast(l, x, l->f32); }
static V ci(V like, int64_t v) { return lower_ci(LLVMTypeOf(like), v); }
static V neg_fma(Lower *l, V a, V b, V c) { return lower_fma(l, LLVMBuildFNeg(l->b, a, ""), b, c); }
static V fabs_of(Lower *l, V x) { return lower_un(l, "llvm.fabs", x); }
// A NaN x stays.
static V at_least(Lower *l, V x, double lo) {
  return lower_sel(l, lower_fcmp(l, LLVMRealOGT, cf(x, lo), x), cf(x, lo), x);
}
static V at_most(Lower *l, V x, double hi) {
  return lower_sel(l, lower_fcmp(l, LLVMRealOLT, cf(x, hi), x), cf(x, hi), x);
}

// p 2^n for p between 1/2 and 2, from the sum that round_magic made (its low bits hold n): p times the part of 2^n that
// keeps it normal, then times the rest, so that results may be subnormal or overflow. A NaN p stays.
static V scale(Lower *l, V p, V sum) {
  const V m = lower_bin(l, "llvm.smax", sum, ci(sum, MAGIC_BITS - 124));
  const V most = lower_add(l, lower_shl(l, m, 23), ci(sum, (127 - 1) << 23)); // MAGIC_BITS << 23 is 0
  const V rest = lower_add(l, lower_shl(l, lower_sub(l, sum, m), 23), ci(sum, (127 + 1) << 23));
  return lower_fmul(l, lower_fmul(l, p, floats(l, most)), floats(l, rest));
}
// rint(x * times); *sum gets bits whose low end is the integer: MAGIC_BITS plus it.
static V round_magic(Lower *l, V x, double times, V *sum) {
  const V t = lower_fma(l, x, cf(x, times), cf(x, MAGIC));
  *sum = ints(l, t);
  return lower_fsub(l, t, cf(x, MAGIC));
}

static V exp_f32(Lower *l, V x) {
  V sum;
  x = at_most(l, at_least(l, x, -104), 89);
  const V n = round_magic(l, x, 0x1.71547652b82fep+0, &sum);
  V r = neg_fma(l, n, cf(x, 0x1.62e43p-1), x);
  r = neg_fma(l, n, cf(x, -0x1.05c61p-29), r);
  const V p = lower_fma(l, lower_fmul(l, r, r), POLY(l, r, math_exp_f32), r);
  return scale(l, lower_fadd(l, p, cf(x, 1)), sum);
}
static V exp2_f32(Lower *l, V x) {
  V sum;
  x = at_most(l, at_least(l, x, -151), 129);
  const V n = round_magic(l, x, 1, &sum);
  const V r = lower_fsub(l, x, n);
  return scale(l, lower_fma(l, r, POLY(l, r, math_exp2_f32), cf(x, 1)), sum);
}

// x = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), for positive finite x; subnormals are scaled first.
static V split_f32(Lower *l, V x, V *f) {
  const V tiny = lower_fcmp(l, LLVMRealOLT, x, cf(x, 0x1p-126));
  const V u = ints(l, lower_sel(l, tiny, lower_fmul(l, x, cf(x, 0x1p25)), x));
  const V off = lower_sub(l, u, ci(u, 0x3f3504f3)); // bits of sqrt(1/2)
  V e = lower_ashr(l, off, 23);
  const V m = floats(l, lower_sub(l, u, lower_shl(l, e, 23)));
  *f = lower_fsub(l, m, cf(x, 1));
  e = lower_sub(l, e, lower_sel(l, tiny, ci(u, 25), ci(u, 0)));
  return LLVMBuildSIToFP(l->b, e, LLVMTypeOf(x), "");
}
// What logarithms give outside the positive finite numbers.
static V log_edges(Lower *l, V x, V y) {
  const double inf = (double)__builtin_inff();
  y = lower_sel(l, lower_fcmp(l, LLVMRealOEQ, x, cf(x, inf)), x, y);
  y = lower_sel(l, lower_fcmp(l, LLVMRealOEQ, x, cf(x, 0)), cf(x, -inf), y);
  const V bad = lower_fcmp(l, LLVMRealULT, x, cf(x, 0)); // negative, or a NaN
  return lower_sel(l, bad, cf(x, (double)__builtin_nanf("")), y);
}
static V log_f32(Lower *l, V x) {
  V f;
  const V e = split_f32(l, x, &f), z = lower_fmul(l, f, f);
  V p = lower_fmul(l, lower_fmul(l, z, f), POLY(l, f, math_log_f32));
  p = lower_fma(l, e, cf(x, -0x1.05c61p-29), p);
  p = neg_fma(l, z, cf(x, 0.5), p);
  return log_edges(l, x, lower_fma(l, e, cf(x, 0x1.62e43p-1), lower_fadd(l, f, p)));
}
static V log2_f32(Lower *l,
                  V x) { // log(1+f) is f + p; f's product with log2(e) is kept to twice the precision
  V f;
  const V e = split_f32(l, x, &f), z = lower_fmul(l, f, f), c = cf(x, 0x1.715476p+0);
  V p = lower_fmul(l, lower_fmul(l, z, f), POLY(l, f, math_log_f32));
  p = neg_fma(l, z, cf(x, 0.5), p);
  const V hi = lower_fmul(l, f, c);
  V lo = lower_fma(l, f, c, LLVMBuildFNeg(l->b, hi, ""));
  lo = lower_fma(l, f, cf(x, 0x1.4ae0cp-26), lo);
  lo = lower_fma(l, p, c, lo);
  const V sum = lower_fadd(l, e, hi); // |e| >= 1 or 0, so what the sum loses is known
  const V lost = lower_fsub(l, hi, lower_fsub(l, sum, e));
  return log_edges(l, x, lower_fadd(l, sum, lower_fadd(l, lost, lo)));
}

// sin(r + q pi/2) from r in [-pi/4, pi/4].
static V quadrant_f32(Lower *l, V r, V q) {
  const V z = lower_fmul(l, r, r);
  const V s = lower_fma(l, lower_fmul(l, r, z), POLY(l, z, math_sin_f32), r);
  const V c =
      lower_fma(l, lower_fmul(l, z, z), POLY(l, z, math_cos_f32), lower_fma(l, z, cf(r, -0.5), cf(r, 1)));
  const V odd = lower_icmp(l, LLVMIntNE, lower_and(l, q, ci(q, 1)), ci(q, 0));
  const V y = ints(l, lower_sel(l, odd, c, s));
  return floats(l, lower_xor(l, y, lower_shl(l, lower_and(l, q, ci(q, 2)), 30)));
}
static V sincos_f32(Lower *l, V x, int64_t quarter) {
  V q;
  const V n = round_magic(l, x, 0x1.45f306dc9c883p-1, &q);
  V r = neg_fma(l, n, cf(x, 0x1.921fb6p+0), x);
  r = neg_fma(l, n, cf(x, -0x1.777a5cp-25), r);
  r = neg_fma(l, n, cf(x, -0x1.ee59dap-50), r);
  q = lower_add(l, q, ci(q, quarter)); // only its last bits count, and those of MAGIC_BITS are 0
  V y = quadrant_f32(l, r, q);
  if (!quarter) y = lower_sel(l, lower_fcmp(l, LLVMRealOEQ, x, cf(x, 0)), x, y); // -0
  return lower_big_angle(l, x, y, 0x1p16, quarter);
}

static V with_sign_f32(Lower *l, V mag, V of) { return lower_bin(l, "llvm.copysign", mag, of); }
static V tanh_f32(Lower *l, V x) {
  const V a = fabs_of(l, x), z = lower_fmul(l, x, x);
  const V small = lower_fma(l, lower_fmul(l, x, z), POLY(l, z, math_tanh_f32), x);
  const V e = lower_math_call(l, MATH_FN_exp, lower_fmul(l, at_most(l, a, 10), cf(x, 2)), NULL);
  const V big = lower_fsub(l, cf(x, 1), lower_fdiv(l, cf(x, 2), lower_fadd(l, e, cf(x, 1))));
  return with_sign_f32(l, lower_sel(l, lower_fcmp(l, LLVMRealOLT, a, cf(x, 0.625)), small, big), x); // -0 too
}
static V erf_f32(Lower *l, V x) {
  const V a = fabs_of(l, x), z = lower_fmul(l, x, x);
  const V small = lower_fma(l, x, POLY(l, z, math_erf_f32), x);
  const V c = lower_math_call(l, MATH_FN_exp,
                              POLY(l, lower_fsub(l, at_most(l, a, 4), cf(x, 2.5)), math_erfc_f32), NULL);
  const V big = with_sign_f32(l, lower_fsub(l, cf(x, 1), c), x);
  return lower_sel(l, lower_fcmp(l, LLVMRealOLT, a, cf(x, 1)), small, big);
}

V lower_math_call(Lower *l, IrMath fn, V x, V y) {
  const V own = l->target->math ? l->target->math(l, fn, x, y) : NULL;
  if (own) return own;
  switch (fn) { // of either width, and exact
  case MATH_FN_sqrt: return lower_un(l, "llvm.sqrt", x);
  case MATH_FN_rsqrt: return lower_fdiv(l, cf(x, 1), lower_un(l, "llvm.sqrt", x));
  case MATH_FN_floor: return lower_un(l, "llvm.floor", x);
  case MATH_FN_ceil: return lower_un(l, "llvm.ceil", x);
  case MATH_FN_rint: return lower_un(l, "llvm.rint", x);
  case MATH_FN_trunc: return lower_un(l, "llvm.trunc", x);
  default: break;
  }
  if (lower_elem_type(LLVMTypeOf(x)) == l->f64) return lower_f64_math(l, fn, x, y);
  switch (fn) {
  case MATH_FN_exp: return exp_f32(l, x);
  case MATH_FN_exp2: return exp2_f32(l, x);
  case MATH_FN_log: return log_f32(l, x);
  case MATH_FN_log2: return log2_f32(l, x);
  case MATH_FN_sin: return sincos_f32(l, x, 0);
  case MATH_FN_cos: return sincos_f32(l, x, 1);
  case MATH_FN_tanh: return tanh_f32(l, x);
  case MATH_FN_erf: return erf_f32(l, x);
  case MATH_FN_pow: { // in f64, where plain logarithms are exact enough
    const T d = lower_shape(l->f64, x);
    const V r = lower_f64_pow(l, LLVMBuildFPExt(l->b, x, d, ""), LLVMBuildFPExt(l->b, y, d, ""), false);
    return LLVMBuildFPTrunc(l->b, r, LLVMTypeOf(x), "");
  }
  default: return NULL;
  }
}

// The small floats compute in f32.
void lower_math(Lower *l, const IrOp *op) {
  const IrDtype d = ir_operand(op, 0)->type->dtype;
  const V x = lower_operand(l, op, 0), y = lower_operand(l, op, 1);
  const V r = lower_math_call(l, (IrMath)ir_attr_i(op, ATTR_fn), lower_widen(l, x, d),
                              y ? lower_widen(l, y, d) : NULL);
  if (!r) lower_fail(l, op, ST_UNSUPPORTED, "no such function here");
  lower_result(l, op, lower_narrow(l, r, d, ROUND_rtne));
}
