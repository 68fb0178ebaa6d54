// Library: functions of libdevice that are made of others: inverse trigonometric and hyperbolic ones, roots, norms, the error
// functions' family, gamma. Elements of fp32 are computed in fp64 and rounded once, so their results are right to the last bit
// but for rare ties; those of fp64 are good to a few units in the last place, the error family to about 1e-12.
#include "front/libdevice.h"

#include <math.h>

#define ADD(x, y) ld_op(m, AOP_Add, x, y)
#define SUB(x, y) ld_op(m, AOP_Sub, x, y)
#define MUL(x, y) ld_op(m, AOP_Mul, x, y)
#define DIV(x, y) ld_op(m, AOP_Div, x, y)
#define MOD(x, y) ld_op(m, AOP_Mod, x, y)
#define LT(x, y) ld_op(m, AOP_Lt, x, y)
#define GT(x, y) ld_op(m, AOP_Gt, x, y)
#define GE(x, y) ld_op(m, AOP_Ge, x, y)
#define EQ(x, y) ld_op(m, AOP_Eq, x, y)
#define NE(x, y) ld_op(m, AOP_Ne, x, y)
#define OR(x, y) ld_op(m, AOP_BitOr, x, y)
#define K(d) val_float(m->L->f, d)
#define SQRT(x) ld_fn(m, MATH_FN_sqrt, x)
#define EXP(x) ld_fn(m, MATH_FN_exp, x)
#define LOG(x) ld_fn(m, MATH_FN_log, x)
#define PI 3.14159265358979323846
#define LN2 0.69314718055994530942
#define INF ((double)INFINITY)

static Value *log_1p(Ld *m, Value *x) { // log(u) x / (u - 1), u = 1 + x
  Value *u = ADD(x, K(1)), *d = SUB(u, K(1));
  Value *r = DIV(MUL(LOG(u), x), d);
  return ld_sel(m, EQ(d, K(0)), x, ld_sel(m, EQ(u, K(INF)), u, r));
}

// Three halvings of the angle, then the series: atan t = 2 atan(t / (1 + sqrt(1 + t t))).
static Value *arc_tangent(Ld *m, Value *x) {
  Value *a = ld_abs(m, x), *big = GT(a, K(1));
  Value *t = ld_sel(m, big, DIV(K(1), a), a);
  for (int i = 0; i < 3; i++) t = DIV(t, ADD(SQRT(ADD(MUL(t, t), K(1))), K(1)));
  Value *t2 = MUL(t, t), *p = NULL;
  for (int n = 17; n >= 1; n -= 2) p = p ? SUB(K(1.0 / n), MUL(t2, p)) : ld_splat(m, x, 1.0 / n);
  Value *r = MUL(MUL(t, p), K(8));
  r = ld_sign(m, ld_sel(m, big, SUB(K(PI / 2), r), r), x);
  return ld_sel(m, LT(a, K(0x1p-28)), x, r);
}

Value *ld_atan(Ld *m, Value **x) { return arc_tangent(m, x[0]); }

Value *ld_atan2(Ld *m, Value **x) { // of y, x
  Value *y = x[0], *a = ld_abs(m, x[0]), *b = ld_abs(m, x[1]);
  Value *q = ld_sel(m, EQ(a, b), ld_sel(m, EQ(a, K(0)), K(0), K(1)), DIV(a, b));
  Value *r = arc_tangent(m, q);
  Value *left = LT(ld_sign(m, ld_splat(m, y, 1), x[1]), K(0)); // -0 counts
  r = ld_sign(m, ld_sel(m, left, SUB(K(PI), r), r), y);
  return ld_sel(m, OR(NE(y, y), NE(x[1], x[1])), ADD(y, x[1]), r);
}

Value *ld_asin(Ld *m, Value **x) {
  return arc_tangent(m, DIV(x[0], SQRT(MUL(SUB(K(1), x[0]), ADD(K(1), x[0])))));
}
Value *ld_acos(Ld *m, Value **x) {
  return MUL(K(2), arc_tangent(m, SQRT(DIV(SUB(K(1), x[0]), ADD(K(1), x[0])))));
}

Value *ld_asinh(Ld *m, Value **x) {
  Value *a = ld_abs(m, x[0]), *s = MUL(a, a);
  Value *r = log_1p(m, ADD(a, DIV(s, ADD(SQRT(ADD(s, K(1))), K(1)))));
  return ld_sign(m, ld_sel(m, GT(a, K(0x1p28)), ADD(LOG(a), K(LN2)), r), x[0]);
}
Value *ld_acosh(Ld *m, Value **x) {
  Value *t = SUB(x[0], K(1));
  Value *r = log_1p(m, ADD(t, SQRT(ADD(MUL(t, K(2)), MUL(t, t)))));
  r = ld_sel(m, GT(x[0], K(0x1p28)), ADD(LOG(x[0]), K(LN2)), r);
  return ld_sel(m, LT(x[0], K(1)), K((double)NAN), r);
}
Value *ld_atanh(Ld *m, Value **x) {
  Value *a = ld_abs(m, x[0]);
  return ld_sign(m, MUL(K(0.5), log_1p(m, DIV(MUL(a, K(2)), SUB(K(1), a)))), x[0]);
}

static Value *cube_root(Ld *m, Value *x) { // a power, and one Newton step
  Value *a = ld_abs(m, x), *third = ld_splat(m, x, 1.0 / 3);
  Value *y = ld_power(m, a, third);
  Value *r = SUB(y, DIV(SUB(MUL(MUL(y, y), y), a), MUL(MUL(y, y), K(3))));
  return ld_sign(m, ld_sel(m, OR(EQ(a, K(0)), EQ(a, K(INF))), a, r), x);
}
Value *ld_cbrt(Ld *m, Value **x) { return cube_root(m, x[0]); }
Value *ld_rcbrt(Ld *m, Value **x) { return DIV(K(1), cube_root(m, x[0])); }

static Value *wrapped(Ld *m, Value *a) { // a - 2 floor(a / 2)
  return SUB(a, MUL(K(2), ld_fn(m, MATH_FN_floor, MUL(a, K(0.5)))));
}
Value *ld_sinpi(Ld *m, Value **x) {
  Value *a = ld_abs(m, x[0]), *r = wrapped(m, a), *flip = GT(r, K(1));
  r = ld_sel(m, flip, SUB(r, K(1)), r);
  Value *s = ld_fn(m, MATH_FN_sin, MUL(ld_sel(m, GT(r, K(0.5)), SUB(K(1), r), r), K(PI)));
  s = ld_sel(m, flip, ld_neg(m, s), s);
  return ld_sel(m, EQ(x[0], K(0)), x[0], ld_sel(m, LT(x[0], K(0)), ld_neg(m, s), s));
}
Value *ld_cospi(Ld *m, Value **x) {
  Value *r = wrapped(m, ld_abs(m, x[0]));
  r = ld_sel(m, GT(r, K(1)), SUB(K(2), r), r);
  return ld_fn(m, MATH_FN_sin, MUL(SUB(K(0.5), r), K(PI)));
}
Value *ld_tan(Ld *m, Value **x) { return DIV(ld_fn(m, MATH_FN_sin, x[0]), ld_fn(m, MATH_FN_cos, x[0])); }
Value *ld_exp10(Ld *m, Value **x) { return ld_fn(m, MATH_FN_exp2, MUL(x[0], K(3.32192809488736234787))); }
Value *ld_log10(Ld *m, Value **x) { return MUL(ld_fn(m, MATH_FN_log2, x[0]), K(0.30102999566398119521)); }

// ---- norms -------------------------------------------------------------------------------------------------
static Value *norm(Ld *m, Value **x, int n) {
  Value *s = MUL(x[0], x[0]);
  for (int i = 1; i < n; i++) s = ADD(s, MUL(x[i], x[i]));
  return SQRT(s);
}
Value *ld_rhypot(Ld *m, Value **x) { return DIV(K(1), norm(m, x, 2)); }
Value *ld_norm3d(Ld *m, Value **x) { return norm(m, x, 3); }
Value *ld_rnorm3d(Ld *m, Value **x) { return DIV(K(1), norm(m, x, 3)); }
Value *ld_norm4d(Ld *m, Value **x) { return norm(m, x, 4); }
Value *ld_rnorm4d(Ld *m, Value **x) { return DIV(K(1), norm(m, x, 4)); }

// ---- the error function's family -----------------------------------------------------------------------------
// exp(x x) erfc(x) for x >= 2.5 by its continued fraction x + (1/2)/(x + (2/2)/(x + ...)), from behind.
static Value *scaled_tail(Ld *m, Value *x) {
  Value *t = x;
  for (int n = 28; n >= 1; n--) t = ADD(x, DIV(K(n * 0.5), t));
  return DIV(K(0.56418958354775628695), t);
}

static Value *complement(Ld *m, Value *x) { // erfc
  Value *a = ld_abs(m, x), *safe = ld_sel(m, LT(a, K(2.5)), K(2.5), a);
  Value *tail = MUL(scaled_tail(m, safe), EXP(ld_neg(m, MUL(safe, safe))));
  tail = ld_sel(m, LT(x, K(0)), SUB(K(2), tail), tail);
  return ld_sel(m, LT(a, K(2.5)), SUB(K(1), ld_fn(m, MATH_FN_erf, x)), ld_sel(m, NE(x, x), x, tail));
}
Value *ld_erfc(Ld *m, Value **x) { return complement(m, x[0]); }
Value *ld_erfcx(Ld *m, Value **x) {
  Value *a = x[0], *safe = ld_sel(m, LT(a, K(2.5)), K(2.5), a);
  Value *near = MUL(EXP(MUL(a, a)), SUB(K(1), ld_fn(m, MATH_FN_erf, a)));
  return ld_sel(m, LT(a, K(2.5)), near,
                ld_sel(m, EQ(a, K(INF)), K(0), ld_sel(m, NE(a, a), a, scaled_tail(m, safe))));
}
Value *ld_normcdf(Ld *m, Value **x) {
  return MUL(K(0.5), complement(m, MUL(x[0], K(-0.70710678118654752440))));
}

// The x >= 0 with erf(x) = a, erfc(x) = c (both given, a + c = 1): a closed first guess, then steps of third order on
// whichever of the two is not near 1.
static Value *inverse(Ld *m, Value *a, Value *c) {
  const double g = 0.147;
  Value *l = LOG(MUL(c, ADD(a, K(1)))), *h = ADD(K(2 / (PI * g)), MUL(l, K(0.5)));
  Value *x = SQRT(ld_abs(m, SUB(SQRT(ld_abs(m, SUB(MUL(h, h), DIV(l, K(g))))), h)));
  Value *near = LT(a, K(0.75));
  for (int i = 0; i < 2; i++) {
    Value *f = ld_sel(m, near, SUB(ld_fn(m, MATH_FN_erf, x), a), SUB(c, complement(m, x)));
    Value *d = DIV(f, MUL(K(1.12837916709551257390), EXP(ld_neg(m, MUL(x, x)))));
    x = SUB(x, DIV(d, ADD(MUL(x, d), K(1))));
  }
  x = ld_sel(m, EQ(a, K(0)), a, ld_sel(m, EQ(c, K(0)), K(INF), x));
  return ld_sel(m, GE(c, K(0)), x, K((double)NAN)); // outside of the domain
}
Value *ld_erfinv(Ld *m, Value **x) {
  Value *a = ld_abs(m, x[0]);
  return ld_sign(m, inverse(m, a, SUB(K(1), a)), x[0]);
}
static Value *complement_inverse(Ld *m, Value *y) {
  Value *upper = GT(y, K(1)), *c = ld_sel(m, upper, SUB(K(2), y), y);
  Value *x = inverse(m, SUB(K(1), c), c);
  return ld_sel(m, upper, ld_neg(m, x), x);
}
Value *ld_erfcinv(Ld *m, Value **x) { return complement_inverse(m, x[0]); }
Value *ld_normcdfinv(Ld *m, Value **x) {
  return MUL(K(-1.41421356237309504880), complement_inverse(m, MUL(x[0], K(2))));
}

// ---- gamma (Lanczos' approximation with g = 7 and nine terms) ----------------------------------------------------
static const double lanczos[9] = {0.99999999999980993227684700473478,
                                  676.520368121885098567009190444019,
                                  -1259.13921672240287047156078755283,
                                  771.3234287776530788486528258894,
                                  -176.61502916214059906584551354,
                                  12.507343278686904814458936853,
                                  -0.13857109526572011689554707,
                                  9.984369578019570859563e-6,
                                  1.50563273514931155834e-7};

static Value *lanczos_sum(Ld *m,
                          Value *z) { // gamma(z + 1) = sqrt(2 pi) t^(z + 1/2) e^-t times this, t = z + 7.5
  Value *s = ld_splat(m, z, lanczos[0]);
  for (int i = 1; i < 9; i++) s = ADD(s, DIV(K(lanczos[i]), ADD(z, K(i))));
  return s;
}

static Value *sin_pi(Ld *m, Value *x) {
  Value *in[1] = {x};
  return ld_sinpi(m, in);
}

Value *ld_tgamma(Ld *m, Value **x) {
  Value *low = LT(x[0], K(0.5)), *z = SUB(ld_sel(m, low, SUB(K(1), x[0]), x[0]), K(1)), *t = ADD(z, K(7.5));
  Value *half = ld_power(m, t, MUL(ADD(z, K(0.5)), K(0.5))); // in two parts, against overflow
  Value *g = MUL(MUL(MUL(half, EXP(ld_neg(m, t))), half), MUL(lanczos_sum(m, z), K(2.50662827463100050242)));
  g = ld_sel(m, GT(z, K(180)), K(INF), g);
  Value *r = ld_sel(m, low, DIV(K(PI), MUL(sin_pi(m, x[0]), g)), g);
  Value *whole = EQ(ld_fn(m, MATH_FN_floor, x[0]), x[0]);
  r = ld_sel(m, ld_op(m, AOP_BitAnd, whole, LT(x[0], K(0))), K((double)NAN), r);
  return ld_sel(m, EQ(x[0], K(0)), DIV(K(1), x[0]), ld_sel(m, EQ(x[0], K(INF)), x[0], r));
}

Value *ld_lgamma(Ld *m, Value **x) {
  Value *low = LT(x[0], K(0.5)), *z = SUB(ld_sel(m, low, SUB(K(1), x[0]), x[0]), K(1)), *t = ADD(z, K(7.5));
  Value *g = ADD(SUB(MUL(ADD(z, K(0.5)), LOG(t)), t), LOG(MUL(lanczos_sum(m, z), K(2.50662827463100050242))));
  Value *r = ld_sel(m, low, SUB(LOG(DIV(K(PI), ld_abs(m, sin_pi(m, x[0])))), g), g);
  // near its zeros at 1 and 2 the parts cancel: there by gamma itself
  Value *gamma = LOG(ld_abs(m, ld_tgamma(m, x)));
  r = ld_sel(m, ld_op(m, AOP_BitAnd, GT(x[0], K(0.5)), LT(x[0], K(3))), gamma, r);
  return ld_sel(m, OR(EQ(ld_abs(m, x[0]), K(INF)), EQ(x[0], K(0))), K(INF), r);
}

// ---- parts of numbers ----------------------------------------------------------------------------------------
Value *ld_fdim(Ld *m, Value **x) {
  return ld_sel(m, GT(x[0], x[1]), SUB(x[0], x[1]),
                ld_sel(m, ld_op(m, AOP_Le, x[0], x[1]), K(0), ADD(x[0], x[1])));
}
Value *ld_saturate(Ld *m, Value **x) { // a NaN gives 0
  return ld_sel(m, GT(x[0], K(0)), ld_sel(m, LT(x[0], K(1)), x[0], K(1)), K(0));
}
Value *ld_remainder(Ld *m, Value **x) { // of the nearest quotient, ties to even
  Value *b = ld_abs(m, x[1]), *r = MOD(ld_abs(m, x[0]), ADD(b, b));
  Value *once = SUB(r, b), *twice = SUB(once, b);
  r = ld_sel(m, GT(ADD(r, r), b), ld_sel(m, GE(ADD(once, once), b), twice, once), r);
  return ld_sel(m, LT(x[0], K(0)), ld_neg(m, r), r);
}
