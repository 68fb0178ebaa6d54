// lower_math64: the functions of math.def on f64, and the parts that f32 borrows: powers and the reduction of huge angles.
//
// Logarithms as s = f / (2 + f), log(1 + f) = 2 s + s^3 R(s^2), the form of Tang, "Table-driven implementation of the
// logarithm function" (1990), without its table. Huge angles: Payne and Hanek, "Radian reduction for trigonometric
// functions" (1983).
#include "target/math_tables.h"
#include "target/target_impl.h"

#define POLY(l, x, c) lower_poly(l, x, c, DT_COUNTOF(c))

static V cf(V like, double v) { return lower_cf(LLVMTypeOf(like), v); }
static V ci(V like, int64_t v) { return lower_ci(LLVMTypeOf(like), v); }
static V ints(Lower *l, V x) { return lower_bitcast(l, x, l->i64); }
static V floats(Lower *l, V x) { return lower_bitcast(l, x, l->f64); }
static V neg(Lower *l, V x) { return LLVMBuildFNeg(l->b, x, ""); }
static V neg_fma(Lower *l, V a, V b, V c) { return lower_fma(l, neg(l, a), b, c); }
static V fabs_of(Lower *l, V x) { return lower_un(l, "llvm.fabs", x); }
static V at_least(Lower *l, V x, double lo) {
  return lower_sel(l, lower_fcmp(l, LLVMRealOGT, cf(x, lo), x), cf(x, lo), x);
}
static V at_most(Lower *l, V x, double hi) {
  return lower_sel(l, lower_fcmp(l, LLVMRealOLT, cf(x, hi), x), cf(x, hi), x);
}

static V scale(Lower *l, V p,
               V i) { // p * 2^i in two steps; the machine shifts i64 right by signed amounts slowly
  const V biased = lower_add(l, i, ci(i, 4096)), half = lower_sub(l, lower_lshr(l, biased, 1), ci(i, 2048));
  const V rest = lower_sub(l, i, half);
  const V a = floats(l, lower_shl(l, lower_add(l, half, ci(i, 1023)), 52));
  const V b = floats(l, lower_shl(l, lower_add(l, rest, ci(i, 1023)), 52));
  return lower_fmul(l, lower_fmul(l, p, a), b);
}
static V round_magic(Lower *l, V x, double times, V *as_int) {
  const double magic = 0x1.8p52;
  const V t = lower_fma(l, x, cf(x, times), cf(x, magic));
  *as_int = lower_sub(l, ints(l, t), ints(l, cf(x, magic)));
  return lower_fsub(l, t, cf(x, magic));
}

static V exp_f64(Lower *l, V x) {
  V i;
  x = at_most(l, at_least(l, x, -746), 710);
  const V n = round_magic(l, x, 0x1.71547652b82fep+0, &i);
  V r = neg_fma(l, n, cf(x, 0x1.62e42fefa39efp-1), x);
  r = neg_fma(l, n, cf(x, 0x1.abc9e3b39803fp-56), r);
  const V p = lower_fma(l, lower_fmul(l, r, r), POLY(l, r, math_exp_f64), r);
  return scale(l, lower_fadd(l, p, cf(x, 1)), i);
}
// 2^(x + lo), lo small beside x.
static V exp2_sum(Lower *l, V x, V lo) {
  V i;
  const V n = round_magic(l, x, 1, &i);
  V r = lower_fsub(l, x, n);
  if (lo) r = lower_fadd(l, r, lo);
  return scale(l, lower_fma(l, r, POLY(l, r, math_exp2_f64), cf(x, 1)), i);
}
static V exp2_f64(Lower *l, V x) { return exp2_sum(l, at_most(l, at_least(l, x, -1080), 1025), NULL); }

// x = 2^e (1 + f) for positive finite x. e as f64, made without the slow conversion from i64.
static V split_f64(Lower *l, V x, V *f) {
  const V tiny = lower_fcmp(l, LLVMRealOLT, x, cf(x, 0x1p-1022));
  const V u = ints(l, lower_sel(l, tiny, lower_fmul(l, x, cf(x, 0x1p54)), x));
  const V biased =
      lower_lshr(l, lower_add(l, u, ci(u, (1023ll << 52) - 0x3fe6a09e667f3bcdll)), 52); // e + 1023
  const V m = floats(l, lower_sub(l, u, lower_shl(l, lower_sub(l, biased, ci(u, 1023)), 52)));
  *f = lower_fsub(l, m, cf(x, 1));
  const V e = floats(l, lower_add(l, biased, ints(l, cf(x, 0x1p52))));
  const V bias = lower_sel(l, tiny, cf(x, 0x1p52 + 1023 + 54), cf(x, 0x1p52 + 1023));
  return lower_fsub(l, e, bias);
}
static V log_edges(Lower *l, V x, V y) {
  y = lower_sel(l, lower_fcmp(l, LLVMRealOEQ, x, cf(x, __builtin_inf())), x, y);
  y = lower_sel(l, lower_fcmp(l, LLVMRealOEQ, x, cf(x, 0)), cf(x, -__builtin_inf()), y);
  return lower_sel(l, lower_fcmp(l, LLVMRealULT, x, cf(x, 0)), cf(x, __builtin_nan("")), y);
}
// s = f / (2 + f); what the quotient loses, in *lo.
static V quotient(Lower *l, V f, V *lo) {
  const V m = lower_fadd(l, f, cf(f, 1)), t = lower_fadd(l, f, cf(f, 2)), s = lower_fdiv(l, f, t);
  if (lo) { // 1 + f is exact, 2 + f may not be
    const V t_lo = lower_fsub(l, m, lower_fsub(l, t, cf(f, 1)));
    *lo = lower_fdiv(l, neg_fma(l, s, t_lo, neg_fma(l, s, t, f)), t);
  }
  return s;
}
static V log_f64(Lower *l, V x) {
  V f;
  const V e = split_f64(l, x, &f), s = quotient(l, f, NULL), z = lower_fmul(l, s, s);
  const V r = lower_fmul(l, z, POLY(l, z, math_log_f64)); // log(1+f) = f - (h - s (h + r)), h = f^2 / 2
  const V h = lower_fmul(l, lower_fmul(l, f, f), cf(x, 0.5));
  V lo = lower_fma(l, e, cf(x, 0x1.a39ef35793c76p-33), lower_fmul(l, s, lower_fadd(l, h, r)));
  lo = lower_fsub(l, lo, h);
  return log_edges(l, x, lower_fma(l, e, cf(x, 0x1.62e42feep-1), lower_fadd(l, f, lo)));
}
// log2 of a positive finite x as a sum of two numbers, good to about 2^-60 of it.
static V log2_sum(Lower *l, V x, V *lo) {
  V f, s_lo;
  const V e = split_f64(l, x, &f), s = quotient(l, f, &s_lo), z = lower_fmul(l, s, s);
  const V c = cf(x, 0x1.71547652b82fep+0), s2 = lower_fadd(l, s, s);
  V r = lower_fmul(l, lower_fmul(l, s, z), POLY(l, z, math_log_f64));
  r = lower_fma(l, s_lo, cf(x, 2), r);
  const V hi = lower_fmul(l, s2, c);
  V low = lower_fma(l, s2, c, neg(l, hi));
  low = lower_fma(l, s2, cf(x, 0x1.777d0ffda0d24p-56), low);
  low = lower_fma(l, r, c, low);
  const V sum = lower_fadd(l, e, hi), lost = lower_fsub(l, hi, lower_fsub(l, sum, e));
  low = lower_fadd(l, lost, low);
  const V total = lower_fadd(l, sum, low);
  *lo = lower_fsub(l, low, lower_fsub(l, total, sum));
  return total;
}
static V log2_f64(Lower *l, V x) {
  V lo;
  const V hi = log2_sum(l, x, &lo);
  return log_edges(l, x, lower_fadd(l, hi, lo));
}

// The edges are C's: 1 to any power and any number to the power 0 are 1, and so on.
V lower_f64_pow(Lower *l, V x, V y, bool exact) {
  const double inf = __builtin_inf();
  const V a = fabs_of(l, x);
  V lo;
  V hi = log2_sum(l, a, &lo);
  const V edge =
      lower_or(l, lower_fcmp(l, LLVMRealOEQ, a, cf(x, 0)), lower_fcmp(l, LLVMRealOEQ, a, cf(x, inf)));
  hi = lower_sel(l, edge, lower_sel(l, lower_fcmp(l, LLVMRealOEQ, a, cf(x, 0)), cf(x, -inf), cf(x, inf)), hi);
  V p, p_lo = NULL;
  if (exact) {
    p = lower_fmul(l, y, hi);
    p_lo = lower_fma(l, y, lo, lower_fma(l, y, hi, neg(l, p)));
    const V tame = lower_fcmp(l, LLVMRealOLT, fabs_of(l, p), cf(x, 1100));
    p_lo = lower_sel(l, tame, p_lo, cf(x, 0));
  } else {
    p = lower_fmul(l, y, lower_sel(l, edge, hi, lower_fadd(l, hi, lo)));
  }
  V r = exp2_sum(l, at_most(l, at_least(l, p, -1080), 1025), p_lo);
  const V one = lower_or(l, lower_fcmp(l, LLVMRealOEQ, a, cf(x, 1)), lower_fcmp(l, LLVMRealOEQ, y, cf(x, 0)));
  r = lower_sel(l, one, cf(x, 1), r);
  const V half = lower_fmul(l, y, cf(x, 0.5));
  const V whole = lower_fcmp(l, LLVMRealOEQ, y, lower_un(l, "llvm.trunc", y));
  const V odd = lower_and(l, whole, lower_fcmp(l, LLVMRealUNE, half, lower_un(l, "llvm.trunc", half)));
  const V minus = lower_icmp(l, LLVMIntSLT, ints(l, x), ci(ints(l, x), 0));
  r = lower_sel(l, lower_and(l, minus, odd), neg(l, r), r);
  const V finite_minus =
      lower_and(l, lower_fcmp(l, LLVMRealOLT, x, cf(x, 0)), lower_fcmp(l, LLVMRealOGT, x, cf(x, -inf)));
  const V root = lower_and(l, finite_minus, lower_fcmp(l, LLVMRealUNE, y, lower_un(l, "llvm.trunc", y)));
  const V nans = lower_fcmp(l, LLVMRealUNO, x, y);
  r = lower_sel(l, lower_or(l, root, nans), cf(x, __builtin_nan("")), r);
  const V always =
      lower_or(l, lower_fcmp(l, LLVMRealOEQ, x, cf(x, 1)), lower_fcmp(l, LLVMRealOEQ, y, cf(x, 0)));
  return lower_sel(l, always, cf(x, 1), r);
}

// ---- angles ------------------------------------------------------------------------------------
static V quadrant(Lower *l, V r, V q) {
  const V z = lower_fmul(l, r, r);
  const V s = lower_fma(l, lower_fmul(l, r, z), POLY(l, z, math_sin_f64), r);
  const V c =
      lower_fma(l, lower_fmul(l, z, z), POLY(l, z, math_cos_f64), lower_fma(l, z, cf(r, -0.5), cf(r, 1)));
  const V odd = lower_icmp(l, LLVMIntNE, lower_and(l, q, ci(q, 1)), ci(q, 0));
  const V y = ints(l, lower_sel(l, odd, c, s));
  return floats(l, lower_xor(l, y, lower_shl(l, lower_and(l, q, ci(q, 2)), 62)));
}

// double ditron.angle(double x, i64 q): sin(x + q pi/2) for finite |x| >= 2^16. x = m 2^e; of 2/pi times 2^e only the bits
// from weight 2 down to 2^-190 matter, since m is an integer and the sine has a period of 4 quarters.
static V angle_fn(Lower *l) {
  const char name[] = "ditron.angle";
  V fn = LLVMGetNamedFunction(l->mod, name);
  if (fn) return fn;
  T params[] = {l->f64, l->i64};
  fn = LLVMAddFunction(l->mod, name, LLVMFunctionType(l->f64, params, 2, false));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  lower_fn_attrs(l, fn);
  V words[DT_COUNTOF(math_two_over_pi)];
  for (size_t i = 0; i < DT_COUNTOF(words); i++) words[i] = LLVMConstInt(l->i64, math_two_over_pi[i], false);
  const T table_type = LLVMArrayType2(l->i64, DT_COUNTOF(words));
  const V table = LLVMAddGlobal(l->mod, table_type, "ditron.two_over_pi");
  LLVMSetInitializer(table, LLVMConstArray2(l->i64, words, DT_COUNTOF(words)));
  LLVMSetLinkage(table, LLVMInternalLinkage);
  LLVMSetGlobalConstant(table, true);
  const LLVMBasicBlockRef here = lower_here(l);
  const LLVMMetadataRef loc = l->di ? LLVMGetCurrentDebugLocation2(l->b) : NULL;
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, NULL);
  lower_at(l, LLVMAppendBasicBlockInContext(l->cx, fn, ""));
  const V x = LLVMGetParam(fn, 0), u = ints(l, x);
  const V exponent = lower_and(l, lower_lshr(l, u, 52), ci(u, 0x7ff)); // e = exponent - 1075
  const V m = lower_or(l, lower_and(l, u, ci(u, (1ll << 52) - 1)), ci(u, 1ll << 52));
  const V low = lower_sub(l, ci(u, 1168 + 1075 - 190), exponent); // lowest bit wanted
  const T wide = LLVMIntTypeInContext(l->cx, 256), window = LLVMIntTypeInContext(l->cx, 192);
  V w = LLVMBuildLoad2(l->b, wide, lower_gep(l, l->i8, table, lower_lshr(l, low, 3)), "");
  lower_align(w, 1);
  w = LLVMBuildLShr(l->b, w, LLVMBuildZExt(l->b, lower_and(l, low, ci(u, 7)), wide, ""), "");
  const V product = lower_mul(l, LLVMBuildTrunc(l->b, w, window, ""), LLVMBuildZExt(l->b, m, window, ""));
  const V top = LLVMBuildTrunc(l->b, lower_lshr(l, product, 128), l->i64, "");
  const V next = LLVMBuildTrunc(l->b, lower_lshr(l, product, 64), l->i64, "");
  // top: 2 bits of quarters, then the fraction; rounded to the nearest quarter.
  const V q = lower_lshr(l, lower_add(l, top, ci(u, 1ll << 61)), 62);
  const V frac = lower_sub(l, top, lower_shl(l, q, 62));
  const V hi = lower_fmul(l, LLVMBuildSIToFP(l->b, frac, l->f64, ""), lower_cf(l->f64, 0x1p-62));
  const V lo = lower_fmul(l, LLVMBuildUIToFP(l->b, next, l->f64, ""), lower_cf(l->f64, 0x1p-126));
  const V turn = lower_fadd(l, hi, lo);
  const V lost = lower_fadd(l, lower_fsub(l, hi, turn), lo);
  const V half_pi = lower_cf(l->f64, 0x1.921fb54442d18p+0);
  V r = lower_fma(l, turn, lower_cf(l->f64, 0x1.1a62633145c07p-54), lower_fmul(l, lost, half_pi));
  r = lower_fma(l, turn, half_pi, r);
  // Of -x all signs change: sin(-x + q pi/2) = -sin(x - q pi/2).
  const V minus = lower_icmp(l, LLVMIntSLT, u, ci(u, 0)), quarter = LLVMGetParam(fn, 1);
  const V turned = lower_add(l, q, lower_sel(l, minus, lower_sub(l, ci(u, 0), quarter), quarter));
  const V y = quadrant(l, r, turned);
  LLVMBuildRet(l->b, lower_sel(l, minus, neg(l, y), y));
  lower_at(l, here);
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, loc);
  return fn;
}

// y where |x| < limit; elsewhere the sine (quarter 0) or cosine (1) of x, element by element; NaN for what is not finite.
V lower_big_angle(Lower *l, V x, V y, double limit, int64_t quarter) {
  const V a = fabs_of(l, x);
  const V big = lower_fcmp(l, LLVMRealOGE, a, cf(x, limit));
  LLVMBasicBlockRef pre = lower_here(l), far = lower_new_block(l, "far"), join = lower_new_block(l, "near");
  LLVMBuildCondBr(l->b, lower_any(l, big), far, join);
  lower_at(l, far);
  const T d = lower_shape(l->f64, x);
  const bool single = lower_elem_type(LLVMTypeOf(x)) == l->f32;
  const V safe =
      lower_sel(l, lower_and(l, big, lower_fcmp(l, LLVMRealOLT, a, cf(x, __builtin_inf()))), x, cf(x, limit));
  const V wide = single ? LLVMBuildFPExt(l->b, safe, d, "") : safe;
  V z = lower_each_lane(l, angle_fn(l), wide, lower_ci(lower_shape(l->i64, x), quarter));
  if (single) z = LLVMBuildFPTrunc(l->b, z, LLVMTypeOf(x), "");
  z = lower_sel(l, lower_fcmp(l, LLVMRealOEQ, a, cf(x, __builtin_inf())), cf(x, __builtin_nan("")), z);
  z = lower_sel(l, big, z, y);
  LLVMBasicBlockRef end = lower_here(l);
  LLVMBuildBr(l->b, join);
  lower_at(l, join);
  const V phi = LLVMBuildPhi(l->b, LLVMTypeOf(x), "");
  LLVMAddIncoming(phi, (V *)&y, &pre, 1);
  LLVMAddIncoming(phi, &z, &end, 1);
  return phi;
}
static V sincos_f64(Lower *l, V x, int64_t quarter) {
  V q;
  const V n = round_magic(l, x, 0x1.45f306dc9c883p-1, &q);
  V r = neg_fma(l, n, cf(x, 0x1.921fb54442d18p+0), x);
  r = neg_fma(l, n, cf(x, 0x1.1a62633145c07p-54), r);
  r = neg_fma(l, n, cf(x, -0x1.f1976b7ed8fbcp-110), r);
  V y = quadrant(l, r, lower_add(l, q, ci(q, quarter)));
  if (!quarter) y = lower_sel(l, lower_fcmp(l, LLVMRealOEQ, x, cf(x, 0)), x, y); // -0
  return lower_big_angle(l, x, y, 0x1p20, quarter);
}

static V tanh_f64(Lower *l, V x) {
  const V a = fabs_of(l, x), z = lower_fmul(l, x, x);
  const V small = lower_fma(l, lower_fmul(l, x, z), POLY(l, z, math_tanh_f64), x);
  const V e = exp_f64(l, lower_fmul(l, at_most(l, a, 20), cf(x, 2)));
  const V big = lower_fsub(l, cf(x, 1), lower_fdiv(l, cf(x, 2), lower_fadd(l, e, cf(x, 1))));
  const V y = lower_sel(l, lower_fcmp(l, LLVMRealOLT, a, cf(x, 0.625)), small, big);
  return lower_bin(l, "llvm.copysign", y, x); // -0 too
}
static V erf_f64(Lower *l, V x) {
  const V a = fabs_of(l, x), z = lower_fmul(l, x, x);
  const V small = lower_fma(l, x, POLY(l, z, math_erf_f64), x);
  const V t = lower_fmul(l, lower_fsub(l, at_most(l, a, 6), cf(x, 3.5)), cf(x, 0.4));
  const V c = exp_f64(l, POLY(l, t, math_erfc_f64));
  const V big = lower_bin(l, "llvm.copysign", lower_fsub(l, cf(x, 1), c), x);
  return lower_sel(l, lower_fcmp(l, LLVMRealOLT, a, cf(x, 1)), small, big);
}

V lower_f64_math(Lower *l, IrMath fn, V x, V y) {
  switch (fn) {
  case MATH_FN_exp: return exp_f64(l, x);
  case MATH_FN_exp2: return exp2_f64(l, x);
  case MATH_FN_log: return log_f64(l, x);
  case MATH_FN_log2: return log2_f64(l, x);
  case MATH_FN_sin: return sincos_f64(l, x, 0);
  case MATH_FN_cos: return sincos_f64(l, x, 1);
  case MATH_FN_tanh: return tanh_f64(l, x);
  case MATH_FN_erf: return erf_f64(l, x);
  case MATH_FN_pow: return lower_f64_pow(l, x, y, true);
  default: return NULL;
  }
}
