// Library: counter-based random numbers (Philox 4x32 and 4x64, 10 rounds) and inline assembly.
#include "front/builtins.h"

#include <string.h>

static Value *op2(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  return front_binary_op(L, op, x, y, loc);
}

static Value *mul_hi(Lower *L, uint64_t k, Value *x, Loc loc) {
  Value *c = front_const_of(L, x->rt.type->elem, val_int(L->f, (AstInt)k), loc);
  if (!front_broadcast_pair(L, &c, &x, loc)) return L->f->poison;
  return front_emit_result(L, ir_binary(front_at(L, loc), OP_mulhi_u, c->rt.ir, x->rt.ir), x->rt.type,
                           x->rt.why);
}

// Four counters and a key to four random words.
static bool philox(Lower *L, Value *c[4], Value *k0, Value *k1, int64_t rounds, Loc loc) {
  Front *f = L->f;
  const bool wide = elem_bits(c[0]->rt.type->elem) == 64;
  const uint64_t key_a = wide ? 0x9E3779B97F4A7C15ull : 0x9E3779B9u,
                 key_b = wide ? 0xBB67AE8584CAA73Bull : 0xBB67AE85u;
  const uint64_t mul_a = wide ? 0xD2E7470EE14C6C93ull : 0xD2511F53u,
                 mul_b = wide ? 0xCA5A826395121157ull : 0xCD9E8D57u;
  for (int64_t i = 0; i < rounds; i++) {
    Value *c0 = c[0], *c2 = c[2];
    c[0] = op2(L, AOP_BitXor, op2(L, AOP_BitXor, mul_hi(L, mul_b, c2, loc), c[1], loc), k0, loc);
    c[2] = op2(L, AOP_BitXor, op2(L, AOP_BitXor, mul_hi(L, mul_a, c0, loc), c[3], loc), k1, loc);
    c[1] = op2(L, AOP_Mul, c2, val_int(f, (AstInt)mul_b), loc);
    c[3] = op2(L, AOP_Mul, c0, val_int(f, (AstInt)mul_a), loc);
    k0 = op2(L, AOP_Add, k0, val_int(f, (AstInt)key_a), loc);
    k1 = op2(L, AOP_Add, k1, val_int(f, (AstInt)key_b), loc);
    for (int j = 0; j < 4; j++)
      if (c[j]->kind != VAL_RT) return false;
    if (k0->kind != VAL_RT || k1->kind != VAL_RT) return false;
  }
  return true;
}

// The 64-bit seed as the key; the counters as unsigned words of their width.
static bool philox_seeded(Lower *L, Value *seed, Value *c[4], int64_t rounds, Loc loc) {
  Front *f = L->f;
  if (rounds < 1 || rounds > 64) {
    front_err(L, loc, "n_rounds must be 1 to 64");
    return false;
  }
  seed = front_cast_to(L, seed, elem_number(f, FDT_uint64), false, loc);
  if (seed->kind != VAL_RT) return false;
  const bool wide = elem_bits(c[0]->rt.type->elem) == 64;
  const Elem *u = elem_number(f, wide ? FDT_uint64 : FDT_uint32);
  for (int j = 0; j < 4; j++) {
    c[j] = front_cast_to(L, c[j], u, false, loc);
    if (c[j]->kind != VAL_RT) return false;
  }
  Value *lo = seed, *hi = front_const_of(L, u, val_int(f, 0), loc);
  if (!wide) {
    lo = front_cast_to(L, seed, u, false, loc);
    hi = front_cast_to(L, op2(L, AOP_Shr, seed, val_int(f, 32), loc), u, false, loc);
  }
  return philox(L, c, lo, hi, rounds, loc);
}

Value *bi_philox(Lower *L, Call *c) { // seed c0 c1 c2 c3 n_rounds?
  Front *f = L->f;
  int64_t rounds;
  Value *w[4];
  if (!arg_int(L, c, 5, 10, &rounds)) return f->poison;
  for (int i = 0; i < 4; i++) {
    w[i] = arg_tile(L, c, 1 + i);
    if (w[i]->kind == VAL_POISON) return f->poison;
    if (!elem_is_int(w[i]->rt.type->elem)) return front_err(L, c->at[1 + i], "the counters are integers");
  }
  return philox_seeded(L, c->v[0], w, rounds, c->loc) ? val_tuple(f, w, 4, false) : f->poison;
}

static bool words_at(Lower *L, Call *c, Value *w[4]) { // seed offset n_rounds?
  Front *f = L->f;
  const Loc loc = c->loc;
  int64_t rounds;
  Value *off = arg_tile(L, c, 1);
  if (off->kind == VAL_POISON || !arg_int(L, c, 2, 10, &rounds)) return false;
  const Elem *u32 = elem_number(f, FDT_uint32), *e = off->rt.type->elem;
  if (!elem_is_int(e)) {
    front_err(L, c->at[1], "the offsets of random numbers are integers, not %s", elem_text(f, e));
    return false;
  }
  w[0] = front_cast_to(L, off, u32, false, loc);
  Value *zero = front_splat_number(L, u32, 0, off->rt.type, loc);
  w[1] =
      elem_bits(e) > 32 ? front_cast_to(L, op2(L, AOP_Shr, off, val_int(f, 32), loc), u32, false, loc) : zero;
  w[2] = w[3] = zero;
  return philox_seeded(L, c->v[0], w, rounds, loc);
}

// [0, 1) from a random word.
static Value *uniform(Lower *L, Value *x, Loc loc) {
  Front *f = L->f;
  const bool wide = elem_bits(x->rt.type->elem) == 64;
  x = front_cast_to(L, x, elem_number(f, wide ? FDT_int64 : FDT_int32), false, loc);
  Value *neg = op2(L, AOP_Sub, front_unary_op(L, AOP_Neg, x, loc), val_int(f, 1), loc);
  x = front_select_op(L, op2(L, AOP_Lt, x, val_int(f, 0), loc), neg, x, loc);
  return op2(L, AOP_Mul, x, val_float(f, wide ? 1.0842020432385337e-19 : 4.6566127342e-10), loc);
}

static void normal_pair(Lower *L, Value *u1, Value *u2, Value **a, Value **b, Loc loc) {
  Front *f = L->f;
  u1 = front_minimum_maximum(L, true, val_float(f, 1.0e-7), u1, false, loc);
  Value *th = op2(L, AOP_Mul, val_float(f, 6.283185307179586), u2, loc);
  Value *r = front_math_call(
      L, MATH_FN_sqrt, op2(L, AOP_Mul, val_float(f, -2), front_math_call(L, MATH_FN_log, u1, loc), loc), loc);
  *a = op2(L, AOP_Mul, r, front_math_call(L, MATH_FN_cos, th, loc), loc);
  *b = op2(L, AOP_Mul, r, front_math_call(L, MATH_FN_sin, th, loc), loc);
}

Value *bi_rand(Lower *L, Call *c) { // seed offset n_rounds?; data: RAND_*
  Front *f = L->f;
  Value *w[4];
  if (!words_at(L, c, w)) return f->poison;
  const int what = c->row->data;
  if (what == RAND_int) return w[0];
  if (what == RAND_int4x) return val_tuple(f, w, 4, false);
  if (what == RAND_uniform) return uniform(L, w[0], c->loc);
  for (int i = 0; i < 4; i++) w[i] = uniform(L, w[i], c->loc);
  if (what == RAND_uniform4x) return val_tuple(f, w, 4, false);
  Value *n[4];
  normal_pair(L, w[0], w[1], &n[0], &n[1], c->loc);
  if (what == RAND_normal) return n[0];
  normal_pair(L, w[2], w[3], &n[2], &n[3], c->loc);
  return val_tuple(f, n, 4, false);
}

Value *bi_uniform(Lower *L, Call *c) { // x
  Value *x = arg_tile(L, c, 0);
  return x->kind == VAL_RT ? uniform(L, x, c->loc) : x;
}

Value *bi_normal_pair(Lower *L, Call *c) { // u1 u2
  Value *u1 = arg_tile(L, c, 0), *u2 = arg_tile(L, c, 1), *n[2];
  if (u1->kind != VAL_RT || u2->kind != VAL_RT) return L->f->poison;
  normal_pair(L, u1, u2, &n[0], &n[1], c->loc);
  return val_tuple(L->f, n, 2, false);
}

Value *bi_inline_asm(Lower *L, Call *c) { // asm constraints args dtype is_pure pack
  Front *f = L->f;
  const char *text = arg_str(L, c, 0, ""), *constraints = arg_str(L, c, 1, "");
  Value *in[16], *out[8];
  int n;
  bool pure;
  int64_t pack;
  if (!text || !constraints || !front_seq_items(L, c, 2, 16, in, &n) || !arg_bool(L, c, 4, false, &pure) ||
      !arg_int(L, c, 5, 1, &pack))
    return f->poison;
  const Value *dt = c->v[3];
  const uint32_t nout = dt->kind == VAL_TUPLE ? dt->seq.n : 1;
  if (!nout || nout > 8 || pack < 1 || pack > 64)
    return front_err(L, c->loc, "inline assembly with 1 to 8 results and packs of 1 to 64");
  Value *shape = NULL;
  for (int i = 0; i < n; i++) {
    in[i] = front_to_rt(L, in[i], c->at[2]);
    if (in[i]->kind != VAL_RT) return f->poison;
    if (shape && !front_broadcast_pair(L, &shape, &in[i], c->loc)) return f->poison;
    shape = in[i];
  }
  for (int i = 0; i < n; i++)
    if (!front_broadcast_pair(L, &in[i], &shape, c->loc)) return f->poison;
  IrValue *ops[16];
  const Type *to[8];
  const IrType *it[8];
  for (int i = 0; i < n; i++) ops[i] = in[i]->rt.ir;
  for (uint32_t i = 0; i < nout; i++) {
    const Value *d = dt->kind == VAL_TUPLE ? dt->seq.items[i] : dt;
    if (d->kind != VAL_DTYPE || elem_is_ptr(d->dt.elem) || elem_kind(d->dt.elem) == DTK_NAMED)
      return front_err(L, c->at[3], "the results of inline assembly have number types");
    to[i] =
        shape ? type_with_elem(f, shape->rt.type, d->dt.elem) : type_scalar(f, d->dt.elem, L->thread != NULL);
    it[i] = front_ir_of(f, to[i]);
  }
  IrOp *op = ir_build(front_at(L, c->loc), OP_inline_asm, (uint32_t)n, ops, nout, it, 0);
  ir_set_attr_s(op, ATTR_asm, str_cstr(f->strings, text));
  ir_set_attr_s(op, ATTR_constraints, str_cstr(f->strings, constraints));
  ir_set_attr_i(op, ATTR_pack, pack);
  if (pure) ir_set_attr_i(op, ATTR_pure, 1);
  for (uint32_t i = 0; i < nout; i++)
    out[i] = front_emit_result(L, ir_result(op, i), to[i], shape ? shape->rt.why : NULL);
  return dt->kind == VAL_TUPLE ? val_tuple(f, out, nout, false) : out[0];
}
