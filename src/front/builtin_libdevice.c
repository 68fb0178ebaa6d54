// Library: the rest of libdevice by name: conversions with a rounding, integer and bit functions, and the table of what
// builtin_ldmath.c computes. What rounds in a direction that a CPU's arithmetic has to be switched to is refused.
#include "front/libdevice.h"

#include <math.h>
#include <string.h>

// ---- operations ----------------------------------------------------------------------------------------------
Value *ld_op(Ld *m, AstOp op, Value *x, Value *y) { return front_binary_op(m->L, op, x, y, m->loc); }
Value *ld_fn(Ld *m, IrMath fn, Value *x) { return front_math_call(m->L, fn, x, m->loc); }
Value *ld_sel(Ld *m, Value *c, Value *x, Value *y) { return front_select_op(m->L, c, x, y, m->loc); }
Value *ld_neg(Ld *m, Value *x) { return front_unary_op(m->L, AOP_Neg, x, m->loc); }

Value *ld_abs(Ld *m, Value *x) {
  if (x->kind != VAL_RT) return x;
  return front_emit_result(m->L, ir_unary(front_at(m->L, m->loc), OP_fabs, x->rt.ir), x->rt.type, x->rt.why);
}

Value *ld_splat(Ld *m, const Value *like, double d) {
  if (like->kind != VAL_RT) return (Value *)(uintptr_t)like;
  Value *v = front_const_of(m->L, like->rt.type->elem, val_float(m->L->f, d), m->loc);
  return like->rt.type->rank ? front_broadcast_to(m->L, v, like->rt.type->rank, like->rt.type->shape, m->loc)
                             : v;
}

Value *ld_power(Ld *m, Value *x, Value *y) {
  if (x->kind != VAL_RT || y->kind != VAL_RT) return m->L->f->poison;
  return front_emit_result(m->L, ir_math(front_at(m->L, m->loc), MATH_FN_pow, x->rt.ir, y->rt.ir), x->rt.type,
                           front_why_of(x, y));
}

static const Elem *number(Ld *m, FrontDtype d) { return elem_number(m->L->f, d); }
static Value *to(Ld *m, Value *x, FrontDtype d) {
  return front_cast_to(m->L, x, number(m, d), false, m->loc);
}
static Value *as(Ld *m, Value *x, FrontDtype d) { return front_bitcast_to(m->L, x, number(m, d), m->loc); }
static Value *num(Ld *m, AstInt i) { return val_int(m->L->f, i); }
static int bits_of(const Value *x) { return elem_bits(x->rt.type->elem); }
static bool is_signed(const Value *x) { return !elem_is_unsigned(x->rt.type->elem); }

Value *ld_sign(Ld *m, Value *x, Value *s) {
  if (x->kind != VAL_RT || s->kind != VAL_RT) return m->L->f->poison;
  const int w = bits_of(x);
  const FrontDtype u = w == 64 ? FDT_uint64 : FDT_uint32;
  const AstInt top = (AstInt)1 << (w - 1);
  const FrontDtype d = x->rt.type->elem->dt;
  Value *r = ld_op(m, AOP_BitOr, ld_op(m, AOP_BitAnd, as(m, x, u), num(m, top - 1)),
                   ld_op(m, AOP_BitAnd, as(m, s, u), num(m, top)));
  return as(m, r, d);
}

// ---- integers and bits -----------------------------------------------------------------------------------------
static Value *mul_hi(Ld *m, Value **x) {
  const bool s = is_signed(x[0]);
  if (bits_of(x[0]) == 32) {
    const FrontDtype wide = s ? FDT_int64 : FDT_uint64;
    Value *p = ld_op(m, AOP_Mul, to(m, x[0], wide), to(m, x[1], wide));
    return to(m, ld_op(m, AOP_Shr, p, num(m, 32)), s ? FDT_int32 : FDT_uint32);
  }
  Value *a = to(m, x[0], FDT_uint64), *b = to(m, x[1], FDT_uint64);
  if (!front_broadcast_pair(m->L, &a, &b, m->loc)) return m->L->f->poison;
  Value *h = front_emit_result(m->L, ir_binary(front_at(m->L, m->loc), OP_mulhi_u, a->rt.ir, b->rt.ir),
                               a->rt.type, front_why_of(a, b));
  if (!s) return h;
  h = to(m, h, FDT_int64); // a negative factor was read as 2^64 more
  h = ld_op(m, AOP_Sub, h, ld_sel(m, ld_op(m, AOP_Lt, x[0], num(m, 0)), x[1], num(m, 0)));
  return ld_op(m, AOP_Sub, h, ld_sel(m, ld_op(m, AOP_Lt, x[1], num(m, 0)), x[0], num(m, 0)));
}

static Value *low24(Ld *m, Value *x) { return ld_op(m, AOP_Shr, ld_op(m, AOP_Shl, x, num(m, 8)), num(m, 8)); }
static Value *mul_24(Ld *m, Value **x) { return ld_op(m, AOP_Mul, low24(m, x[0]), low24(m, x[1])); }

static Value *reverse_bits(Ld *m, Value **x) {
  const int w = bits_of(x[0]);
  const FrontDtype from = x[0]->rt.type->elem->dt, u = w == 64 ? FDT_uint64 : FDT_uint32;
  const uint64_t all = w == 64 ? UINT64_MAX : UINT32_MAX;
  Value *v = to(m, x[0], u);
  for (int s = 1; s < w; s *= 2) { // neighbours of 1, 2, 4 ... bits change places
    uint64_t low = 0;
    for (int b = 0; b < w; b++)
      if (!(b & s)) low |= 1ull << b;
    Value *k = num(m, (AstInt)(low & all));
    v = ld_op(m, AOP_BitOr, ld_op(m, AOP_Shl, ld_op(m, AOP_BitAnd, v, k), num(m, s)),
              ld_op(m, AOP_BitAnd, ld_op(m, AOP_Shr, v, num(m, s)), k));
  }
  return to(m, v, from);
}

static Value *sum_of_difference(Ld *m, Value **x) { // |x - y| + z
  Value *d =
      ld_sel(m, ld_op(m, AOP_Gt, x[0], x[1]), ld_op(m, AOP_Sub, x[0], x[1]), ld_op(m, AOP_Sub, x[1], x[0]));
  return ld_op(m, AOP_Add, d, x[2]);
}

static Value *half_sum(Ld *m, Value **x) { // rounded down, without overflow
  return ld_op(m, AOP_Add, ld_op(m, AOP_BitAnd, x[0], x[1]),
               ld_op(m, AOP_Shr, ld_op(m, AOP_BitXor, x[0], x[1]), num(m, 1)));
}
static Value *half_sum_up(Ld *m, Value **x) {
  return ld_op(m, AOP_Sub, ld_op(m, AOP_BitOr, x[0], x[1]),
               ld_op(m, AOP_Shr, ld_op(m, AOP_BitXor, x[0], x[1]), num(m, 1)));
}

static Value *permute_bytes(Ld *m,
                            Value **x) { // byte i of the result: byte s[4 i .. 4 i + 2] of the eight of y:x
  const FrontDtype from = x[0]->rt.type->elem->dt;
  Value *s = to(m, x[2], FDT_uint32), *r = NULL;
  Value *all = ld_op(m, AOP_BitOr, to(m, to(m, x[0], FDT_uint32), FDT_uint64),
                     ld_op(m, AOP_Shl, to(m, to(m, x[1], FDT_uint32), FDT_uint64), num(m, 32)));
  for (int i = 0; i < 4; i++) {
    Value *k =
        ld_op(m, AOP_Mul, ld_op(m, AOP_BitAnd, ld_op(m, AOP_Shr, s, num(m, 4 * i)), num(m, 7)), num(m, 8));
    Value *b =
        ld_op(m, AOP_Shl, ld_op(m, AOP_BitAnd, ld_op(m, AOP_Shr, all, to(m, k, FDT_uint64)), num(m, 255)),
              num(m, 8 * i));
    r = r ? ld_op(m, AOP_BitOr, r, b) : b;
  }
  return to(m, to(m, r, FDT_uint32), from);
}

static Value *join_double(Ld *m, Value **x) { // of the upper and the lower word
  Value *hi = to(m, to(m, x[0], FDT_uint32), FDT_uint64), *lo = to(m, to(m, x[1], FDT_uint32), FDT_uint64);
  return as(m, ld_op(m, AOP_BitOr, ld_op(m, AOP_Shl, hi, num(m, 32)), lo), FDT_float64);
}
static Value *low_word(Ld *m, Value **x) { return to(m, as(m, x[0], FDT_int64), FDT_int32); }
static Value *high_word(Ld *m, Value **x) {
  return to(m, ld_op(m, AOP_Shr, as(m, x[0], FDT_int64), num(m, 32)), FDT_int32);
}

// ---- floats by their bits --------------------------------------------------------------------------------------
static Value *next_after(Ld *m, Value **x) {
  const FrontDtype d = x[0]->rt.type->elem->dt, i = bits_of(x[0]) == 64 ? FDT_int64 : FDT_int32;
  Value *zero = val_float(m->L->f, 0), *b = as(m, x[0], i);
  Value *out = ld_op(m, AOP_Eq, ld_op(m, AOP_Gt, x[1], x[0]), ld_op(m, AOP_Gt, x[0], zero)); // away from 0
  Value *step = as(m, ld_sel(m, out, ld_op(m, AOP_Add, b, num(m, 1)), ld_op(m, AOP_Sub, b, num(m, 1))), d);
  Value *one = ld_op(m, AOP_Add, ld_op(m, AOP_BitAnd, b, num(m, 0)), num(m, 1));
  step = ld_sel(m, ld_op(m, AOP_Eq, x[0], zero), ld_sign(m, as(m, one, d), x[1]), step);
  Value *nan = ld_op(m, AOP_BitOr, ld_op(m, AOP_Ne, x[0], x[0]), ld_op(m, AOP_Ne, x[1], x[1]));
  return ld_sel(m, nan, ld_op(m, AOP_Add, x[0], x[1]), ld_sel(m, ld_op(m, AOP_Eq, x[0], x[1]), x[1], step));
}

static Value *power_of_two(Ld *m, Value *n) { // n in the range of normal exponents
  Value *e = ld_op(m, AOP_Add, to(m, n, FDT_int64), num(m, 1023));
  return as(m, ld_op(m, AOP_Shl, e, num(m, 52)), FDT_float64);
}
static Value *scale(Ld *m, Value **x) { // x 2^n, in two factors
  Value *n = to(m, x[1], FDT_int32);
  n = ld_sel(m, ld_op(m, AOP_Gt, n, num(m, 2040)), num(m, 2040), n);
  n = ld_sel(m, ld_op(m, AOP_Lt, n, num(m, -2040)), num(m, -2040), n);
  Value *half = ld_op(m, AOP_Shr, n, num(m, 1));
  return ld_op(m, AOP_Mul, ld_op(m, AOP_Mul, x[0], power_of_two(m, half)),
               power_of_two(m, ld_op(m, AOP_Sub, n, half)));
}

static Value *exponent(Ld *m, Value *x) { // of a finite x other than 0
  Value *a = ld_abs(m, x), *tiny = ld_op(m, AOP_Lt, a, val_float(m->L->f, 0x1p-1022));
  a = ld_sel(m, tiny, ld_op(m, AOP_Mul, a, val_float(m->L->f, 0x1p54)), a);
  Value *e = to(m, ld_op(m, AOP_Shr, as(m, a, FDT_int64), num(m, 52)), FDT_int32);
  return ld_op(m, AOP_Sub, e, ld_sel(m, tiny, num(m, 1023 + 54), num(m, 1023)));
}
static Value *exponent_int(Ld *m, Value **x) {
  Value *inf = ld_op(m, AOP_Eq, ld_abs(m, x[0]), val_float(m->L->f, (double)INFINITY));
  Value *odd =
      ld_op(m, AOP_BitOr, ld_op(m, AOP_Ne, x[0], x[0]), ld_op(m, AOP_Eq, x[0], val_float(m->L->f, 0)));
  return ld_sel(m, inf, num(m, INT32_MAX), ld_sel(m, odd, num(m, INT32_MIN), exponent(m, x[0])));
}
static Value *exponent_float(Ld *m, Value **x) {
  Value *inf = val_float(m->L->f, (double)INFINITY), *a = ld_abs(m, x[0]);
  Value *r = ld_sel(m, ld_op(m, AOP_Ne, x[0], x[0]), x[0], to(m, exponent(m, x[0]), FDT_float64));
  r = ld_sel(m, ld_op(m, AOP_Eq, a, inf), a, r);
  return ld_sel(m, ld_op(m, AOP_Eq, a, val_float(m->L->f, 0)), val_float(m->L->f, -(double)INFINITY), r);
}

// ---- conversions -----------------------------------------------------------------------------------------------
// fp64 to fp32, rounded in a direction: to nearest, and back a step where that went too far.
static Value *narrowed(Ld *m, Value *x, char mode) {
  Value *y = to(m, x, FDT_float32), *back = to(m, y, FDT_float64);
  if (mode == 'n') return y;
  Value *zero = val_float(m->L->f, 0), *up = ld_op(m, AOP_Gt, back, x), *down = ld_op(m, AOP_Lt, back, x);
  Value *plus = ld_op(m, AOP_Gt, x, zero);
  Value *less = mode == 'd'   ? up
                : mode == 'u' ? ld_op(m, AOP_BitAnd, down, num(m, 0))
                              : ld_op(m, AOP_BitAnd, up, plus);
  Value *more = mode == 'u'   ? down
                : mode == 'd' ? ld_op(m, AOP_BitAnd, down, num(m, 0))
                              : ld_op(m, AOP_BitAnd, down, ld_op(m, AOP_Lt, x, zero));
  less = to(m, less, FDT_int1), more = to(m, more, FDT_int1);
  Value *low[2] = {y, ld_splat(m, y, -(double)INFINITY)}, *high[2] = {y, ld_splat(m, y, (double)INFINITY)};
  return ld_sel(m, less, next_after(m, low), ld_sel(m, more, next_after(m, high), y));
}

// Rounded to an integer of a type, saturating; a NaN gives 0 (2^63 in signed 64 bits).
static Value *rounded(Ld *m, Value *x, char mode, FrontDtype d) {
  static const IrMath fns[] = {
      ['n'] = MATH_FN_rint, ['z'] = MATH_FN_trunc, ['d'] = MATH_FN_floor, ['u'] = MATH_FN_ceil};
  const Elem *e = number(m, d);
  const int w = elem_bits(e);
  const AstInt one = 1, hi = elem_is_unsigned(e) ? (one << w) - 1 : (one << (w - 1)) - 1,
               lo = elem_is_unsigned(e) ? 0 : -(one << (w - 1));
  Value *r = ld_fn(m, fns[(int)mode], to(m, x, FDT_float64));
  Value *nan = ld_op(m, AOP_Ne, r, r),
        *above = ld_op(m, AOP_Ge, r, val_float(m->L->f, ldexp(1, w - !elem_is_unsigned(e))));
  Value *below = ld_op(m, AOP_Le, r, val_float(m->L->f, (double)lo)); // the ends are powers of two: exact
  Value *odd = ld_op(m, AOP_BitOr, nan, ld_op(m, AOP_BitOr, above, below));
  Value *v = to(m, ld_sel(m, odd, val_float(m->L->f, 0), r), d);
  v = ld_sel(m, above, front_const_of(m->L, e, num(m, hi), m->loc), v);
  v = ld_sel(m, below, front_const_of(m->L, e, num(m, lo), m->loc), v);
  return w == 64 && !elem_is_unsigned(e) ? ld_sel(m, nan, front_const_of(m->L, e, num(m, lo), m->loc), v) : v;
}

// "float2int_rz" and its like: from, to, and the last letter. NULL: no such form.
static Value *convert(Ld *m, const char *name, Value *x) {
  static const struct {
    const char *text;
    FrontDtype d;
  } kinds[] = {{"float", FDT_float32}, {"double", FDT_float64}, {"int", FDT_int32},
               {"uint", FDT_uint32},   {"ll", FDT_int64},       {"ull", FDT_uint64}};
  const char *two = strchr(name, '2'), *bar = strrchr(name, '_');
  int from = -1, into = -1;
  if (!two || !bar || strlen(bar) != 3) return NULL;
  for (int i = 0; i < (int)DT_COUNTOF(kinds); i++) {
    const size_t n = strlen(kinds[i].text);
    if (n == (size_t)(two - name) && !memcmp(name, kinds[i].text, n)) from = i;
    if (n == (size_t)(bar - two - 1) && !memcmp(two + 1, kinds[i].text, n)) into = i;
  }
  if (from < 0 || into < 0) return NULL;
  const char mode = bar[2];
  const FrontDtype d = kinds[into].d;
  x = to(m, x, kinds[from].d);
  if (x->kind != VAL_RT) return x;
  if (into > 1) return rounded(m, x, mode, d);
  if (mode == 'n' || (d == FDT_float64 && from < 4)) return to(m, x, d);
  if (d == FDT_float32 && from < 4) return narrowed(m, to(m, x, FDT_float64), mode); // fp64 holds it exactly
  return front_err_hint(m->L, m->loc,
                        arena_printf(m->L->f->a, "%.*s_rn rounds to nearest", (int)(bar - name), name),
                        "libdevice.%s rounds 64-bit integers in a direction, which is not supported", name);
}

// ---- rows ------------------------------------------------------------------------------------------------------
// Products and sums that nothing may contract with their neighbours.
static Value *fused(Ld *m, Value *x, Value *y, Value *z) {
  Value *v[3] = {x, y, z};
  if (!front_broadcast_pair(m->L, &v[0], &v[1], m->loc) ||
      !front_broadcast_pair(m->L, &v[0], &v[2], m->loc) || !front_broadcast_pair(m->L, &v[1], &v[2], m->loc))
    return m->L->f->poison;
  const IrType *it = v[0]->rt.ir->type;
  IrOp *op = ir_build(front_at(m->L, m->loc), OP_fma, 3, (IrValue *[]){v[0]->rt.ir, v[1]->rt.ir, v[2]->rt.ir},
                      1, &it, 0);
  return front_emit_result(m->L, ir_result(op, 0), v[0]->rt.type, front_why_of(v[0], v[2]));
}
static Value *add_rn(Ld *m, Value **x) { return fused(m, x[0], ld_splat(m, x[0], 1), x[1]); }
static Value *sub_rn(Ld *m, Value **x) { return fused(m, x[0], ld_splat(m, x[0], 1), ld_neg(m, x[1])); }
static Value *mul_rn(Ld *m, Value **x) { return fused(m, x[0], x[1], ld_splat(m, x[0], -0.0)); }
static Value *fma_rn(Ld *m, Value **x) { return fused(m, x[0], x[1], x[2]); }
static Value *rsqrt_rn(Ld *m, Value **x) {
  return ld_op(m, AOP_Div, val_float(m->L->f, 1), ld_fn(m, MATH_FN_sqrt, x[0]));
}
static Value *ll_rint(Ld *m, Value **x) { return rounded(m, x[0], 'n', FDT_int64); }
static Value *ll_round(Ld *m, Value **x) { // halves away from 0
  Value *t = ld_fn(m, MATH_FN_trunc, x[0]);
  Value *half = ld_op(m, AOP_Ge, ld_abs(m, ld_op(m, AOP_Sub, x[0], t)), val_float(m->L->f, 0.5));
  return rounded(m, ld_sel(m, half, ld_op(m, AOP_Add, t, ld_sign(m, ld_splat(m, x[0], 1), x[0])), t), 'n',
                 FDT_int64);
}
static Value *bits_f32(Ld *m, Value **x) { return as(m, x[0], FDT_float32); }
static Value *bits_f64(Ld *m, Value **x) { return as(m, x[0], FDT_float64); }
static Value *bits_i32(Ld *m, Value **x) { return as(m, x[0], FDT_int32); }
static Value *bits_u32(Ld *m, Value **x) { return as(m, x[0], FDT_uint32); }
static Value *bits_i64(Ld *m, Value **x) { return as(m, x[0], FDT_int64); }

// form: W fp32 or fp64, computed in fp64; F as they are; I integers of one type of 32 or 64 bits; S a float and an
// integer, computed in fp64; 4 fp32, 8 fp64, i int32, u uint32, l int64 of that very type.
static const struct {
  const char *name, *form;
  LdFn *fn;
} table[] = {{"atan", "W", ld_atan},
             {"asin", "W", ld_asin},
             {"acos", "W", ld_acos},
             {"atan2", "WW", ld_atan2},
             {"asinh", "W", ld_asinh},
             {"acosh", "W", ld_acosh},
             {"atanh", "W", ld_atanh},
             {"cbrt", "W", ld_cbrt},
             {"rcbrt", "W", ld_rcbrt},
             {"sinpi", "W", ld_sinpi},
             {"cospi", "W", ld_cospi},
             {"fast_tanf", "W", ld_tan},
             {"fast_exp10f", "W", ld_exp10},
             {"fast_log10f", "W", ld_log10},
             {"rhypot", "WW", ld_rhypot},
             {"norm3d", "WWW", ld_norm3d},
             {"rnorm3d", "WWW", ld_rnorm3d},
             {"norm4d", "WWWW", ld_norm4d},
             {"rnorm4d", "WWWW", ld_rnorm4d},
             {"erfc", "W", ld_erfc},
             {"erfcx", "W", ld_erfcx},
             {"erfinv", "W", ld_erfinv},
             {"erfcinv", "W", ld_erfcinv},
             {"normcdf", "W", ld_normcdf},
             {"normcdfinv", "W", ld_normcdfinv},
             {"tgamma", "W", ld_tgamma},
             {"lgamma", "W", ld_lgamma},
             {"fdim", "FF", ld_fdim},
             {"saturatef", "F", ld_saturate},
             {"remainder", "WW", ld_remainder},
             {"nextafter", "FF", next_after},
             {"ldexp", "Wi", scale},
             {"scalbn", "Wi", scale},
             {"ilogb", "w", exponent_int},
             {"logb", "W", exponent_float},
             {"llrint", "F", ll_rint},
             {"llround", "F", ll_round},
             {"add_rn", "FF", add_rn},
             {"sub_rn", "FF", sub_rn},
             {"mul_rn", "FF", mul_rn},
             {"fma_rn", "FFF", fma_rn},
             {"rsqrt_rn", "F", rsqrt_rn},
             {"mulhi", "II", mul_hi},
             {"mul24", "II", mul_24},
             {"brev", "I", reverse_bits},
             {"sad", "III", sum_of_difference},
             {"byte_perm", "iii", permute_bytes},
             {"hadd", "II", half_sum},
             {"rhadd", "II", half_sum_up},
             {"hiloint2double", "ii", join_double},
             {"double2loint", "8", low_word},
             {"double2hiint", "8", high_word},
             {"int_as_float", "i", bits_f32},
             {"uint_as_float", "u", bits_f32},
             {"float_as_int", "4", bits_i32},
             {"float_as_uint", "4", bits_u32},
             {"longlong_as_double", "l", bits_f64},
             {"double_as_longlong", "8", bits_i64}};

static Value *bad_operand(Lower *L, Call *c, int i, const char *want) {
  return front_err_hint(
      L, c->at[i], "cast it first: x.to(...)", "libdevice.%s takes %s here, not %s", c->row->name, want,
      elem_text(L->f, c->v[i]->kind == VAL_RT ? c->v[i]->rt.type->elem : arg_tile(L, c, i)->rt.type->elem));
}

// One operand in the type that its letter asks for; first: the operand before it, whose type numbers follow.
static Value *operand(Ld *m, Call *c, int i, char form, const Value *first) {
  Lower *L = m->L;
  Value *v = c->v[i];
  if (v->kind == VAL_POISON) return v;
  const bool number_ = val_is_number(v);
  if (number_ && first && (form == 'F' || form == 'W' || form == 'I'))
    v = front_cast_to(L, v, first->rt.type->elem, false, c->at[i]);
  else
    v = arg_tile(L, c, i);
  if (v->kind != VAL_RT) return L->f->poison;
  if (v->rt.type->rank && !front_tiles_allowed(L, c->loc, "a tile operation")) return L->f->poison;
  const Elem *e = v->rt.type->elem;
  const bool real = e->dt == FDT_float32 || e->dt == FDT_float64;
  const bool whole = elem_is_int(e) && elem_bits(e) >= 32;
  switch (form) {
  case 'F':
  case 'W':
  case 'w':
    if (!real) return bad_operand(L, c, i, "fp32 or fp64");
    if (first && v->rt.type->elem != first->rt.type->elem)
      return bad_operand(L, c, i, elem_text(L->f, first->rt.type->elem));
    return v;
  case 'I':
    if (!whole) return bad_operand(L, c, i, "integers of 32 or 64 bits");
    if (first && e != first->rt.type->elem)
      return bad_operand(L, c, i, elem_text(L->f, first->rt.type->elem));
    return v;
  case '4': return e->dt == FDT_float32 ? v : bad_operand(L, c, i, "fp32");
  case '8': return e->dt == FDT_float64 || number_ ? to(m, v, FDT_float64) : bad_operand(L, c, i, "fp64");
  case 'i': return elem_is_int(e) && elem_bits(e) == 32 ? v : bad_operand(L, c, i, "int32");
  case 'u':
    return elem_is_int(e) && elem_bits(e) == 32 ? to(m, v, FDT_uint32) : bad_operand(L, c, i, "uint32");
  default: return elem_is_int(e) && elem_bits(e) == 64 ? v : bad_operand(L, c, i, "int64");
  }
}

Value *bi_ld_table(Lower *L, Call *c) { // up to four operands
  Ld m = {L, c->loc};
  for (size_t t = 0; t < DT_COUNTOF(table); t++) {
    if (strcmp(table[t].name, c->row->name) != 0) continue;
    const char *form = table[t].form;
    Value *x[4] = {0};
    for (int i = 0; form[i]; i++) {
      x[i] = operand(&m, c, i, form[i], i ? c->v[0]->kind == VAL_RT ? c->v[0] : x[0] : NULL);
      if (x[i]->kind != VAL_RT) return L->f->poison;
    }
    for (int i = 1; form[i]; i++)
      if (!front_broadcast_pair(L, &x[0], &x[i], c->loc)) return L->f->poison;
    for (int i = 1; form[i]; i++)
      if (!front_broadcast_pair(L, &x[0], &x[i], c->loc)) return L->f->poison;
    const FrontDtype d = x[0]->rt.type->elem->dt;
    for (int i = 0; form[i]; i++)
      if (form[i] == 'W' || form[i] == 'w') x[i] = to(&m, x[i], FDT_float64);
    Value *r = table[t].fn(&m, x);
    return form[0] == 'W' && r->kind == VAL_RT ? to(&m, r, d) : r;
  }
  return front_err(L, c->loc, "libdevice.%s is not supported", c->row->name);
}

Value *bi_ld_convert(Lower *L, Call *c) { // x; from, to and rounding are in the name
  Ld m = {L, c->loc};
  Value *x = arg_tile(L, c, 0);
  if (x->kind != VAL_RT) return L->f->poison;
  if (x->rt.type->rank && !front_tiles_allowed(L, c->loc, "a tile operation")) return L->f->poison;
  Value *r = convert(&m, c->row->name, x);
  return r ? r : front_err(L, c->loc, "libdevice.%s is not supported", c->row->name);
}

Value *bi_ld_refused(Lower *L, Call *c) { // data: 0 a rounding, 1 a function without a form here
  return front_err_hint(L, c->loc,
                        c->row->data ? NULL : "the _rn forms and the plain operators round to nearest",
                        c->row->data ? "libdevice.%s has no form outside of NVIDIA's device library"
                                     : "libdevice.%s rounds in a direction, which is not supported",
                        c->row->name);
}
