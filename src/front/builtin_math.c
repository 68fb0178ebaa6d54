// Library: elementwise functions, of tl and of libdevice.
#include "front/builtins.h"

#include <math.h>
#include <string.h>

// A float tile or scalar of 32 or 64 bits, as the functions of math.def need it.
static Value *float_arg(Lower *L, Call *c, int i) {
  Front *f = L->f;
  Value *v = arg_tile(L, c, i);
  if (v->kind == VAL_POISON) return v;
  const Elem *e = v->rt.type->elem;
  if (e->dt != FDT_float32 && e->dt != FDT_float64)
    return front_err_hint(L, c->at[i], "cast it first: x.to(tl.float32)",
                          "%s works on fp32 and fp64, not on %s", c->row->name, elem_text(f, e));
  if (v->rt.type->rank && !front_tiles_allowed(L, c->loc, "a tile operation")) return f->poison;
  return v;
}

Value *front_math_call(Lower *L, IrMath fn, Value *x, Loc loc) {
  if (x->kind == VAL_POISON) return x;
  return front_emit_result(L, ir_math(front_at(L, loc), fn, x->rt.ir, NULL), x->rt.type, x->rt.why);
}

Value *bi_math1(Lower *L, Call *c) { // x; data: IrMath
  return front_math_call(L, (IrMath)c->row->data, float_arg(L, c, 0), c->loc);
}

static Value *num(Lower *L, double d) { return val_float(L->f, d); }
static Value *op2(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  return front_binary_op(L, op, x, y, loc);
}

Value *bi_abs(Lower *L, Call *c) {
  Front *f = L->f;
  Value *v = arg_tile(L, c, 0);
  if (v->kind == VAL_POISON) return v;
  const Elem *e = v->rt.type->elem;
  if (elem_is_ptr(e)) return front_err(L, c->at[0], "the absolute value of a pointer");
  if (v->rt.type->rank && !front_tiles_allowed(L, c->loc, "a tile operation")) return f->poison;
  if (elem_kind(e) == DTK_FP8)
    v = front_cast_to(L, v, elem_number(f, FDT_float16), false, c->loc), e = v->rt.type->elem;
  if (elem_is_unsigned(e)) return v;
  return front_emit_result(L, ir_unary(front_at(L, c->loc), elem_is_float(e) ? OP_fabs : OP_abs_s, v->rt.ir),
                           v->rt.type, v->rt.why);
}

Value *bi_minmax(Lower *L, Call *c) { // x y propagate_nan?; data: 1 = max
  bool nan;
  return arg_bool(L, c, 2, false, &nan)
             ? front_minimum_maximum(L, c->row->data, c->v[0], c->v[1], nan, c->loc)
             : L->f->poison;
}

Value *bi_clamp(Lower *L, Call *c) { // x min max propagate_nan?
  bool nan;
  if (!arg_bool(L, c, 3, false, &nan)) return L->f->poison;
  return front_minimum_maximum(L, false, front_minimum_maximum(L, true, c->v[0], c->v[1], nan, c->loc),
                               c->v[2], nan, c->loc);
}

Value *bi_logical(Lower *L, Call *c) { // input other; data: AOP_BitAnd, AOP_BitOr
  for (int i = 0; i < 2; i++) {
    const Value *v = c->v[i];
    if (v->kind == VAL_POISON) return L->f->poison;
    if (v->kind == VAL_BOOL || (v->kind == VAL_RT && elem_is_bool(v->rt.type->elem))) continue;
    return front_err_hint(L, c->at[i], "compare it: x != 0", "'%s' needs truth values, not %s", c->row->name,
                          val_kind_text(L->f, v));
  }
  return front_binary_op(L, (AstOp)c->row->data, c->v[0], c->v[1], c->loc);
}

Value *bi_where(Lower *L, Call *c) { return front_select_op(L, c->v[0], c->v[1], c->v[2], c->loc); }

Value *bi_binary(Lower *L, Call *c) { // x y; data: AstOp
  return op2(L, (AstOp)c->row->data, c->v[0], c->v[1], c->loc);
}

Value *bi_fdiv(Lower *L, Call *c) { // x y ieee_rounding?; data: 1 = always exact
  Front *f = L->f;
  bool exact;
  if (!arg_bool(L, c, 2, c->row->data, &exact)) return f->poison;
  Value *x = arg_tile(L, c, 0), *y = arg_tile(L, c, 1);
  if (x->kind == VAL_POISON || y->kind == VAL_POISON) return f->poison;
  if (!elem_is_float(x->rt.type->elem) && !elem_is_float(y->rt.type->elem))
    return front_err(L, c->loc, "%s needs floats", c->row->name);
  Value *r = op2(L, AOP_Div, x, y, c->loc);
  if (r->kind == VAL_RT && exact && r->rt.ir->def && r->rt.ir->def->kind == OP_fdiv)
    ir_set_attr_i(r->rt.ir->def, ATTR_exact, 1);
  return r;
}

Value *bi_fma(Lower *L, Call *c) { // x y z
  Front *f = L->f;
  Value *v[3];
  const Elem *e = NULL;
  for (int i = 0; i < 3; i++) {
    v[i] = arg_tile(L, c, i);
    if (v[i]->kind == VAL_POISON) return v[i];
    const Elem *ei = v[i]->rt.type->elem;
    const bool number = val_is_number(c->v[i]);
    if (number && e && elem_is_float(e)) continue;
    const Elem *p = ei;
    if (e && front_promote(f, e, false, ei, false, false, &p) != PROMOTE_OK)
      return front_err(L, c->loc, "the operands have no common type");
    e = p;
  }
  for (int i = 0; i < 3; i++) v[i] = front_cast_to(L, v[i], e, false, c->loc);
  if (!elem_is_float(e)) return op2(L, AOP_Add, op2(L, AOP_Mul, v[0], v[1], c->loc), v[2], c->loc);
  if (!front_broadcast_pair(L, &v[0], &v[1], c->loc) || !front_broadcast_pair(L, &v[0], &v[2], c->loc) ||
      !front_broadcast_pair(L, &v[1], &v[2], c->loc))
    return f->poison;
  const IrType *it = v[0]->rt.ir->type;
  IrOp *op = ir_build(front_at(L, c->loc), OP_fma, 3, (IrValue *[]){v[0]->rt.ir, v[1]->rt.ir, v[2]->rt.ir}, 1,
                      &it, 0);
  return front_emit_result(L, ir_result(op, 0), v[0]->rt.type, front_why_of(v[0], v[2]));
}

Value *bi_umulhi(Lower *L, Call *c) {
  Front *f = L->f;
  Value *x = arg_tile(L, c, 0), *y = arg_tile(L, c, 1);
  if (x->kind == VAL_POISON || y->kind == VAL_POISON) return f->poison;
  const Elem *ex = x->rt.type->elem, *ey = y->rt.type->elem;
  if (!elem_is_int(ex) || !elem_is_int(ey) || elem_bits(ex) < 32)
    return front_err(L, c->loc, "%s works on 32-bit and 64-bit integers", c->row->name);
  if (ex != ey) {
    const Elem *e = front_promote_ints(f, ex, ey);
    x = front_cast_to(L, x, e, false, c->loc);
    y = front_cast_to(L, y, e, false, c->loc);
  }
  if (!front_broadcast_pair(L, &x, &y, c->loc)) return f->poison;
  return front_emit_result(L, ir_binary(front_at(L, c->loc), OP_mulhi_u, x->rt.ir, y->rt.ir), x->rt.type,
                           front_why_of(x, y));
}

Value *bi_sigmoid(Lower *L, Call *c) {
  Value *x = float_arg(L, c, 0);
  if (x->kind == VAL_POISON) return x;
  Value *e = front_math_call(L, MATH_FN_exp, front_unary_op(L, AOP_Neg, x, c->loc), c->loc);
  return op2(L, AOP_Div, num(L, 1), op2(L, AOP_Add, num(L, 1), e, c->loc), c->loc);
}

// ---- libdevice: what is made of other functions ------------------------------------------------------------
static Value *exp_m1(Lower *L, Value *x, Loc loc) { // accurate near 0: (e^x - 1) x / log(e^x)
  Value *u = front_math_call(L, MATH_FN_exp, x, loc), *m = op2(L, AOP_Sub, u, num(L, 1), loc);
  Value *r = op2(L, AOP_Div, op2(L, AOP_Mul, m, x, loc), front_math_call(L, MATH_FN_log, u, loc), loc);
  // where e^x is 1 that is 0/0, where it is 0 or infinite the plain difference is exact
  Value *plain = op2(L, AOP_BitOr, op2(L, AOP_Eq, m, num(L, -1), loc),
                     op2(L, AOP_Eq, u, num(L, (double)INFINITY), loc), loc);
  r = front_select_op(L, plain, m, r, loc);
  return front_select_op(L, op2(L, AOP_Eq, u, num(L, 1), loc), x, r, loc);
}

static Value *log_1p(Lower *L, Value *x, Loc loc) { // accurate near 0: log(u) x / (u - 1), u = 1 + x
  Value *u = op2(L, AOP_Add, x, num(L, 1), loc), *d = op2(L, AOP_Sub, u, num(L, 1), loc);
  Value *l = front_math_call(L, MATH_FN_log, u, loc);
  Value *r = op2(L, AOP_Div, op2(L, AOP_Mul, l, x, loc), d, loc);
  r = front_select_op(L, op2(L, AOP_Eq, u, num(L, (double)INFINITY), loc), u, r, loc);
  return front_select_op(L, op2(L, AOP_Eq, d, num(L, 0), loc), x, r, loc);
}

static Value *abs_value(Lower *L, Value *x, Loc loc) {
  return front_emit_result(L, ir_unary(front_at(L, loc), OP_fabs, x->rt.ir), x->rt.type, x->rt.why);
}

// |x| with the sign of s.
static Value *copy_sign(Lower *L, Value *x, Value *s, Loc loc) {
  Front *f = L->f;
  const Elem *e = x->rt.type->elem, *u = elem_number(f, elem_bits(e) == 64 ? FDT_uint64 : FDT_uint32);
  const AstInt top = (AstInt)1 << (elem_bits(e) - 1);
  if (!front_broadcast_pair(L, &x, &s, loc)) return f->poison;
  Value *bx = front_bitcast_to(L, x, u, loc), *bs = front_bitcast_to(L, s, u, loc);
  Value *r = op2(L, AOP_BitOr, op2(L, AOP_BitAnd, bx, val_int(f, top - 1), loc),
                 op2(L, AOP_BitAnd, bs, val_int(f, top), loc), loc);
  return front_bitcast_to(L, r, e, loc);
}

static Value *popcount(Lower *L, Value *x, Loc loc) { // sums of bits, pairs, nibbles, bytes
  Front *f = L->f;
  const int w = elem_bits(x->rt.type->elem);
  const Elem *u = elem_number(f, w == 64 ? FDT_uint64 : FDT_uint32);
  const uint64_t all = w == 64 ? UINT64_MAX : UINT32_MAX;
  x = front_cast_to(L, x, u, false, loc);
#define K(c) val_int(f, (AstInt)((c)&all))
#define SHR(v, n) op2(L, AOP_Shr, v, val_int(f, n), loc)
#define AND(v, c) op2(L, AOP_BitAnd, v, K(c), loc)
  x = op2(L, AOP_Sub, x, AND(SHR(x, 1), 0x5555555555555555ull), loc);
  x = op2(L, AOP_Add, AND(x, 0x3333333333333333ull), AND(SHR(x, 2), 0x3333333333333333ull), loc);
  x = AND(op2(L, AOP_Add, x, SHR(x, 4), loc), 0x0f0f0f0f0f0f0f0full);
  x = SHR(op2(L, AOP_Mul, x, K(0x0101010101010101ull), loc), w - 8);
#undef K
#undef SHR
#undef AND
  return front_cast_to(L, x, elem_number(f, FDT_int32), false, loc);
}

static Value *bit_function(Lower *L, Call *c) {
  Front *f = L->f;
  Value *x = arg_tile(L, c, 0);
  if (x->kind == VAL_POISON) return x;
  const Elem *e = x->rt.type->elem;
  const int w = elem_bits(e);
  if (!elem_is_int(e) || w < 32)
    return front_err(L, c->at[0], "%s works on 32-bit and 64-bit integers", c->row->name);
  const Loc loc = c->loc;
  const Elem *u = elem_number(f, w == 64 ? FDT_uint64 : FDT_uint32);
  x = front_cast_to(L, x, u, false, loc);
  if (c->row->data == LD_popc) return popcount(L, x, loc);
  if (c->row->data == LD_clz) { // smear the top bit down
    for (int s = 1; s < w; s *= 2) x = op2(L, AOP_BitOr, x, op2(L, AOP_Shr, x, val_int(f, s), loc), loc);
    return op2(L, AOP_Sub, val_int(f, w), popcount(L, x, loc), loc);
  }
  // ffs: bits below the lowest one, plus 1; 0 for 0
  Value *below = op2(
      L, AOP_Sub,
      op2(L, AOP_BitAnd, x, op2(L, AOP_Add, front_unary_op(L, AOP_Invert, x, loc), val_int(f, 1), loc), loc),
      val_int(f, 1), loc);
  Value *r = op2(L, AOP_Add, popcount(L, below, loc), val_int(f, 1), loc);
  return front_select_op(L, op2(L, AOP_Eq, x, val_int(f, 0), loc), val_int(f, 0), r, loc);
}

Value *bi_libdevice(Lower *L, Call *c) { // x y?
  Front *f = L->f;
  const Loc loc = c->loc;
  const int what = c->row->data;
  if (what == LD_popc || what == LD_clz || what == LD_ffs) return bit_function(L, c);
  Value *x = float_arg(L, c, 0), *y = NULL;
  if (x->kind == VAL_POISON) return x;
  if (c->v[1]) {
    y = arg_tile(L, c, 1);
    if (y->kind == VAL_POISON) return y;
    if (elem_is_int(y->rt.type->elem) || val_is_number(c->v[1]))
      y = front_cast_to(L, c->v[1], x->rt.type->elem, false, loc);
    if (y->kind != VAL_RT || y->rt.type->elem != x->rt.type->elem)
      return front_err(L, loc, "%s needs two values of one float type", c->row->name);
    if (!front_broadcast_pair(L, &x, &y, loc)) return f->poison;
  }
  switch (what) {
  case LD_log1p: return log_1p(L, x, loc);
  case LD_expm1: return exp_m1(L, x, loc);
  case LD_tan:
    return op2(L, AOP_Div, front_math_call(L, MATH_FN_sin, x, loc), front_math_call(L, MATH_FN_cos, x, loc),
               loc);
  case LD_sinh: {
    Value *m = exp_m1(L, abs_value(L, x, loc), loc);
    Value *r = op2(L, AOP_Add, m, op2(L, AOP_Div, m, op2(L, AOP_Add, m, num(L, 1), loc), loc), loc);
    r = front_select_op(L, op2(L, AOP_Eq, m, num(L, (double)INFINITY), loc), m, r, loc);
    return copy_sign(L, op2(L, AOP_Mul, r, num(L, 0.5), loc), x, loc);
  }
  case LD_cosh: {
    Value *e = front_math_call(L, MATH_FN_exp, abs_value(L, x, loc), loc);
    return op2(L, AOP_Mul, op2(L, AOP_Add, e, op2(L, AOP_Div, num(L, 1), e, loc), loc), num(L, 0.5), loc);
  }
  case LD_log10:
    return op2(L, AOP_Mul, front_math_call(L, MATH_FN_log2, x, loc), num(L, 0.30102999566398119521), loc);
  case LD_exp10:
    return front_math_call(L, MATH_FN_exp2, op2(L, AOP_Mul, x, num(L, 3.32192809488736234787), loc), loc);
  case LD_isnan: return op2(L, AOP_Ne, x, x, loc);
  case LD_isinf: return op2(L, AOP_Eq, abs_value(L, x, loc), num(L, (double)INFINITY), loc);
  case LD_finite: return op2(L, AOP_Lt, abs_value(L, x, loc), num(L, (double)INFINITY), loc);
  case LD_signbit: {
    const Elem *i = elem_number(f, elem_bits(x->rt.type->elem) == 64 ? FDT_int64 : FDT_int32);
    return op2(L, AOP_Lt, front_bitcast_to(L, x, i, loc), val_int(f, 0), loc);
  }
  case LD_round: { // halves away from zero; x - trunc(x) is exact
    Value *t = front_math_call(L, MATH_FN_trunc, x, loc);
    Value *half = op2(L, AOP_Ge, abs_value(L, op2(L, AOP_Sub, x, t, loc), loc), num(L, 0.5), loc);
    Value *one = copy_sign(L, front_splat_number(L, x->rt.type->elem, 1, x->rt.type, loc), x, loc);
    return front_select_op(L, half, op2(L, AOP_Add, t, one, loc), t, loc);
  }
  case LD_copysign: return copy_sign(L, x, y, loc);
  case LD_pow:
    return front_emit_result(L, ir_math(front_at(L, loc), MATH_FN_pow, x->rt.ir, y->rt.ir), x->rt.type,
                             front_why_of(x, y));
  case LD_fmod: return op2(L, AOP_Mod, x, y, loc);
  case LD_rcp: return op2(L, AOP_Div, num(L, 1), x, loc);
  case LD_hypot:
    return front_math_call(L, MATH_FN_sqrt,
                           op2(L, AOP_Add, op2(L, AOP_Mul, x, x, loc), op2(L, AOP_Mul, y, y, loc), loc), loc);
  default: return f->poison;
  }
}
