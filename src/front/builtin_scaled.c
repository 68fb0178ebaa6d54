// Library: products of block-scaled operands (tl.dot_scaled), decomposed to products of bf16.
//
// An operand is fp8, fp16 or bf16, or e2m1: 4-bit floats, two to a byte along K, the lower half first. Its scales are
// e8m0: one exponent byte for every 32 elements along K, 255 = NaN.
#include "front/builtins.h"

#include <string.h>

static Value *op2(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  return front_binary_op(L, op, x, y, loc);
}
static Value *num(Lower *L, int i) { return val_int(L->f, i); }

// 4-bit floats (sign, two exponent bits, one mantissa bit) in bytes of [rows, K / 2] to bf16 of [rows, K].
static Value *unpack_e2m1(Lower *L, Value *v, Loc loc) {
  Front *f = L->f;
  const Elem *u16 = elem_number(f, FDT_uint16);
  v = front_cast_to(L, front_bitcast_to(L, v, elem_number(f, FDT_uint8), loc), u16, false, loc);
  Value *half[2] = {op2(L, AOP_BitAnd, v, num(L, 15), loc), op2(L, AOP_Shr, v, num(L, 4), loc)};
  Call join = {
      .row = builtin_find(f, "tl", "interleave"), .loc = loc, .v = {half[0], half[1]}, .at = {loc, loc}};
  v = bi_join(L, &join);
  if (v->kind != VAL_RT) return v;
  Value *m = op2(L, AOP_BitAnd, v, num(L, 1), loc);
  Value *e = op2(L, AOP_BitAnd, op2(L, AOP_Shr, v, num(L, 1), loc), num(L, 3), loc);
  Value *sign = op2(L, AOP_Shl, op2(L, AOP_Shr, v, num(L, 3), loc), num(L, 15), loc);
  // exponent 0: 0 or 0.5; else (1 + m / 2) 2^(e - 1)
  Value *sub = op2(L, AOP_Mul, m, num(L, 126 << 7), loc);
  Value *norm = op2(L, AOP_BitOr, op2(L, AOP_Shl, op2(L, AOP_Add, e, num(L, 126), loc), num(L, 7), loc),
                    op2(L, AOP_Shl, m, num(L, 6), loc), loc);
  Value *bits = front_select_op(L, op2(L, AOP_Eq, e, num(L, 0), loc), sub, norm, loc);
  return front_bitcast_to(L, op2(L, AOP_BitOr, bits, sign, loc), elem_number(f, FDT_bfloat16), loc);
}

// Scales of [rows, K / 32] as bf16 factors of [rows, K].
static Value *spread_scales(Lower *L, Value *s, int rows, int k, Loc loc) {
  Front *f = L->f;
  const int groups = k / 32;
  if (s->rt.type->rank != 2 || s->rt.type->shape[0] != rows || s->rt.type->shape[1] != groups ||
      !elem_is_int(s->rt.type->elem) || elem_bits(s->rt.type->elem) != 8)
    return front_err(L, loc, "the scales must be bytes of shape [%d, %d], not %s", rows, groups,
                     val_kind_text(f, s));
  const int32_t one[3] = {rows, groups, 1}, all[3] = {rows, groups, 32}, flat[2] = {rows, k};
  s = front_cast_to(L, front_bitcast_to(L, s, elem_number(f, FDT_uint8), loc), elem_number(f, FDT_uint16),
                    false, loc);
  // 2^(s - 127): the exponent field of a bf16. 0 is the subnormal 2^-127, 255 NaN
  Value *bits = op2(L, AOP_Shl, s, num(L, 7), loc);
  bits = front_select_op(L, op2(L, AOP_Eq, s, num(L, 0), loc), num(L, 0x40), bits, loc);
  bits = front_select_op(L, op2(L, AOP_Eq, s, num(L, 255), loc), num(L, 0x7FC0), bits, loc);
  bits = front_cast_to(L, bits, elem_number(f, FDT_uint16), false, loc);
  Value *v = front_bitcast_to(L, bits, elem_number(f, FDT_bfloat16), loc);
  v = front_reshape_to(L, v, 3, one, false, loc);
  return front_reshape_to(L, front_broadcast_to(L, v, 3, all, loc), 2, flat, false, loc);
}

// One operand with K as its last axis, in bf16.
static Value *scaled_operand(Lower *L, Call *c, int i, Value *v, Loc loc) {
  Front *f = L->f;
  const char *format = arg_str(L, c, i + 2, "");
  if (!format) return f->poison;
  const FrontDtype d = v->rt.type->elem->dt;
  if (!strcmp(format, "e2m1")) {
    if (!elem_is_int(v->rt.type->elem) || elem_bits(v->rt.type->elem) != 8)
      return front_err(L, c->at[i], "e2m1 operands are bytes, not %s", val_kind_text(f, v));
    v = unpack_e2m1(L, v, loc);
  } else if ((!strcmp(format, "e4m3") || !strcmp(format, "e5m2")) && elem_bits(v->rt.type->elem) == 8) {
    const Elem *e = elem_number(f, strcmp(format, "e4m3") ? FDT_float8e5 : FDT_float8e4nv);
    v = front_cast_to(L, front_bitcast_to(L, v, e, loc), elem_number(f, FDT_bfloat16), false, loc);
  } else if ((!strcmp(format, "bf16") && d == FDT_bfloat16) ||
             (!strcmp(format, "fp16") && d == FDT_float16)) {
    v = front_cast_to(L, v, elem_number(f, FDT_bfloat16), false, loc);
  } else {
    return front_err(L, c->at[i + 2],
                     "format \"%s\" of %s; formats are \"e2m1\", \"e4m3\", \"e5m2\", \"bf16\" and \"fp16\"",
                     format, val_kind_text(f, v));
  }
  if (v->kind != VAL_RT || !c->v[i + 1] || c->v[i + 1]->kind == VAL_NONE) return v;
  Value *s = arg_tile(L, c, i + 1);
  if (s->kind != VAL_RT) return s;
  s = spread_scales(L, s, v->rt.type->shape[0], v->rt.type->shape[1], c->at[i + 1]);
  return op2(L, AOP_Mul, v, s, loc);
}

static Value *transposed(Lower *L, Value *v, Loc loc) {
  Call t = {.row = builtin_find(L->f, "tl", "trans"), .loc = loc, .v = {v}, .at = {loc}};
  return v->kind == VAL_RT ? bi_trans(L, &t) : v;
}

// lhs lhs_scale lhs_format rhs rhs_scale rhs_format acc? fast_math? lhs_k_pack? rhs_k_pack? out_dtype?
Value *bi_dot_scaled(Lower *L, Call *c) {
  Front *f = L->f;
  const Loc loc = c->loc;
  bool kl, kr;
  if (!arg_bool(L, c, 8, true, &kl) || !arg_bool(L, c, 9, true, &kr)) return f->poison;
  if (!kl || !kr)
    return front_err_hint(L, loc, "pack the operands along K",
                          "dot_scaled of operands that are packed along M or N");
  Value *a = arg_tile(L, c, 0), *b = arg_tile(L, c, 3);
  if (a->kind != VAL_RT || b->kind != VAL_RT) return f->poison;
  if (a->rt.type->rank != 2 || b->rt.type->rank != 2)
    return front_err(L, loc, "dot_scaled multiplies two tiles of 2 axes, not %s and %s", val_kind_text(f, a),
                     val_kind_text(f, b));
  a = scaled_operand(L, c, 0, a, loc);
  b = transposed(L, scaled_operand(L, c, 3, transposed(L, b, loc), loc), loc);
  if (a->kind != VAL_RT || b->kind != VAL_RT) return f->poison;
  Call dot = {
      .row = builtin_find(f, "tl", "dot"), .loc = loc, .v = {a, b, c->v[6]}, .at = {loc, loc, c->at[6]}};
  dot.v[6] = c->v[10];
  dot.at[6] = c->at[10];
  return bi_dot(L, &dot);
}
