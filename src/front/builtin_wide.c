// Library: several words in one access (load_v4_u32, st_v2_u32, ...) and accesses to all ranks at once (multimem_*).
//
// A wide access moves 64 bits at a time, each of them relaxed and whole: what low-latency protocols count on is that a value
// and the flag beside it arrive together. It must be aligned to 8 bytes. A multicast address (remote_mc_ptr) is the local
// one: multimem_st writes to its place on every rank, multimem_ld_reduce adds up all ranks' in rank order.
#include "front/builtins.h"

#include <string.h>

static Value *word_pointer(Lower *L, Value *p, const Elem *e, int64_t i, Loc loc) {
  p = front_bitcast_to(L, p, elem_pointer(L->f, e), loc);
  return i && p->kind == VAL_RT ? front_binary_op(L, AOP_Add, p, val_int(L->f, i), loc) : p;
}

static const Elem *word_elem(Front *f, int data) { // data: W_* of the row
  static const FrontDtype of[] = {FDT_uint32, FDT_int32, FDT_uint64, FDT_int64};
  return elem_number(f, of[data & 3]);
}

static void set_order(IrOp *op, IrOrder o) {
  ir_set_attr_i(op, ATTR_order, o);
  if (o != ORDER_weak) ir_set_attr_i(op, ATTR_scope, SCOPE_sys);
}

static Value *load_word(Lower *L, Value *p, IrOrder o, const char *what, Loc loc) {
  Front *f = L->f;
  if (p->kind != VAL_RT) return f->poison;
  IrValue *r = ir_load(front_at(L, loc), p->rt.ir, NULL, NULL);
  set_order(r->def, o);
  return val_rt(f, r, type_scalar(f, p->rt.type->elem->to, true), front_why_new(f, loc, what));
}

static void store_word(Lower *L, Value *p, const Value *v, IrOrder o, Loc loc) {
  if (p->kind == VAL_RT && v->kind == VAL_RT)
    set_order(ir_store(front_at(L, loc), p->rt.ir, v->rt.ir, NULL), o);
}

// A scalar of the given width: bits of a value of that width, or the value converted.
static Value *bits_arg(Lower *L, Call *c, int i, const Elem *e) {
  Front *f = L->f;
  Value *v = c->v[i];
  if (v->kind != VAL_RT && !val_is_number(v))
    return v->kind == VAL_POISON
               ? v
               : front_err(L, c->at[i], "%s stores scalars, not %s", c->row->name, val_kind_text(f, v));
  if (v->kind == VAL_RT && v->rt.type->rank)
    return front_err(L, c->at[i], "%s stores one scalar a thread, not %s", c->row->name, val_kind_text(f, v));
  v = v->kind == VAL_RT && elem_is_float(v->rt.type->elem) && elem_bits(v->rt.type->elem) == elem_bits(e)
          ? front_bitcast_to(L, v, e, c->at[i])
          : front_cast_to(L, v, e, false, c->at[i]);
  return front_raise_level(L, v, c->at[i]);
}

static Value *two_halves(Lower *L, Value *lo, Value *hi, Loc loc) {
  Front *f = L->f;
  const Elem *u32 = elem_number(f, FDT_uint32), *u64 = elem_number(f, FDT_uint64);
  lo = front_cast_to(L, front_cast_to(L, lo, u32, false, loc), u64, false, loc);
  hi = front_cast_to(L, front_cast_to(L, hi, u32, false, loc), u64, false, loc);
  if (lo->kind != VAL_RT || hi->kind != VAL_RT) return f->poison;
  return front_binary_op(L, AOP_BitOr, lo, front_binary_op(L, AOP_Shl, hi, val_int(f, 32), loc), loc);
}

static Value *half(Lower *L, Value *v, int k, const Elem *e, Loc loc) {
  if (k) v = front_binary_op(L, AOP_Shr, v, val_int(L->f, 32), loc);
  return front_cast_to(L, v, e, false, loc);
}

Value *bi_load_wide(Lower *L, Call *c) { // ptr; data: W_* | words << 2
  Front *f = L->f;
  const int n = c->row->data >> 2;
  const Elem *e = word_elem(f, c->row->data), *u64 = elem_number(f, FDT_uint64);
  Value *p = front_pointer_arg(L, c, 0, true), *items[4], *pair = NULL;
  if (p->kind != VAL_RT) return f->poison;
  const char *what = arena_printf(f->a, "the per-thread load %s()", c->row->name);
  for (int i = 0; i < n; i++) {
    if (elem_bits(e) == 64) {
      items[i] = load_word(L, word_pointer(L, p, e, i, c->loc), ORDER_relaxed, what, c->loc);
    } else {
      if (i % 2 == 0)
        pair = load_word(L, word_pointer(L, p, u64, i / 2, c->loc), ORDER_relaxed, what, c->loc);
      items[i] = pair->kind == VAL_RT ? half(L, pair, i % 2, e, c->loc) : pair;
    }
    if (items[i]->kind != VAL_RT) return f->poison;
  }
  return val_tuple(f, items, (uint32_t)n, false);
}

Value *bi_store_wide(Lower *L, Call *c) { // ptr val0 val1 ...; data: W_* | words << 2
  Front *f = L->f;
  const int n = c->row->data >> 2;
  const Elem *e = word_elem(f, c->row->data), *u64 = elem_number(f, FDT_uint64);
  Value *p = front_pointer_arg(L, c, 0, true), *v[4];
  if (p->kind != VAL_RT) return f->poison;
  for (int i = 0; i < n; i++)
    if ((v[i] = bits_arg(L, c, 1 + i, e))->kind != VAL_RT) return f->poison;
  for (int i = 0; i < n; i += 2)
    store_word(L, word_pointer(L, p, u64, i / 2, c->loc), two_halves(L, v[i], v[i + 1], c->loc),
               ORDER_relaxed, c->loc);
  return f->none;
}

Value *bi_word(Lower *L, Call *c) { // ptr value?; data: 0 = ld_b32, 1 = st_b32
  Front *f = L->f;
  const Elem *e = elem_number(f, FDT_int32);
  Value *p = front_pointer_arg(L, c, 0, true);
  if (p->kind != VAL_RT) return f->poison;
  if (elem_bits(p->rt.type->elem->to) != 32)
    return front_err_hint(L, c->at[0], "use ld and st, or cast the pointer",
                          "%s takes a pointer to 32-bit words, not to %s", c->row->name,
                          elem_text(f, p->rt.type->elem->to));
  IrOp *op;
  if (c->row->data) {
    Value *v = bits_arg(L, c, 1, e);
    if (v->kind != VAL_RT) return f->poison;
    op = ir_store(front_at(L, c->loc), word_pointer(L, p, e, 0, c->loc)->rt.ir, v->rt.ir, NULL);
  } else {
    op = ir_load(front_at(L, c->loc), word_pointer(L, p, e, 0, c->loc)->rt.ir, NULL, NULL)->def;
  }
  ir_set_attr_i(op, ATTR_order, ORDER_relaxed);
  ir_set_attr_i(op, ATTR_scope, SCOPE_gpu);
  return c->row->data
             ? f->none
             : val_rt(f, ir_result(op, 0), type_scalar(f, e, true), front_why_new(f, c->loc, "ld_b32()"));
}

Value *bi_pack_b32_v2(Lower *L, Call *c) { // val0 val1: the first lowest
  const Elem *e = elem_number(L->f, FDT_uint32);
  Value *v[2] = {bits_arg(L, c, 0, e), bits_arg(L, c, 1, e)};
  return two_halves(L, v[0], v[1], c->loc);
}

Value *bi_timer_half(Lower *L, Call *c) { // data: 0 low, 1 high
  Front *f = L->f;
  const Type *i64 = type_scalar(f, elem_number(f, FDT_int64), true);
  const IrType *it = front_ir_of(f, i64);
  IrValue *ir = ir_result(ir_build(front_at(L, c->loc), OP_timer, 0, NULL, 1, &it, 0), 0);
  Value *t = val_rt(f, ir, i64, front_why_new(f, c->loc, "the time"));
  return t->kind == VAL_RT ? half(L, t, c->row->data, elem_number(f, FDT_uint32), c->loc) : t;
}

// ---- all ranks at once -------------------------------------------------------------------------------------
typedef struct Ranks { // the loop over them under construction
  IrOp *op;
  IrBuilder saved;
  Value *rank;
  Value *args[8];
} Ranks;

static Value *i32_at(Lower *L, Value *v, Loc loc) {
  return front_raise_level(L, front_cast_to(L, v, elem_number(L->f, FDT_int32), false, loc), loc);
}

// n values carried round the loop, all thread scalars.
static void ranks_begin(Lower *L, Ranks *r, Value *const *init, int n, Loc loc) {
  Front *f = L->f;
  IrValue *ops[3 + 8] = {i32_at(L, val_int(f, 0), loc)->rt.ir,
                         front_raise_level(L, front_thread_id(L, OP_num_ranks, 0, "", loc), loc)->rt.ir,
                         i32_at(L, val_int(f, 1), loc)->rt.ir};
  const IrType *types[8];
  for (int i = 0; i < n; i++) ops[3 + i] = init[i]->rt.ir, types[i] = init[i]->rt.ir->type;
  r->op = ir_build(front_at(L, loc), OP_for, 3 + (uint32_t)n, ops, (uint32_t)n, types, 1);
  r->saved = L->b;
  const Type *t = type_scalar(f, elem_number(f, FDT_int32), true);
  r->rank =
      val_rt(f, ir_block_arg(r->op->regions[0], ops[0]->type, NULL), t, front_why_new(f, loc, "the rank"));
  for (int i = 0; i < n; i++)
    r->args[i] =
        val_rt(f, ir_block_arg(r->op->regions[0], types[i], NULL), init[i]->rt.type, init[i]->rt.why);
  L->b = ir_builder_at_end(r->op->regions[0]);
}

static void ranks_end(Lower *L, Ranks *r, Value **v, int n, Loc loc) { // v: the next values, then the last
  IrValue *ops[8];
  for (int i = 0; i < n; i++) ops[i] = v[i]->rt.ir;
  ir_yield(front_at(L, loc), (uint32_t)n, ops);
  L->b = r->saved;
  for (int i = 0; i < n; i++) v[i] = val_rt(L->f, ir_result(r->op, (uint32_t)i), v[i]->rt.type, v[i]->rt.why);
}

static Value *at_rank(Lower *L, Value *p, const Value *rank, Loc loc) {
  const IrType *it = p->rt.ir->type;
  IrOp *op = ir_build(front_at(L, loc), OP_symm_at, 2, (IrValue *[]){p->rt.ir, rank->rt.ir}, 1, &it, 0);
  return val_rt(L->f, ir_result(op, 0), p->rt.type, front_why_new(L->f, loc, "the rank"));
}

Value *bi_remote_mc_ptr(Lower *L, Call *c) { // team ptr
  return front_pointer_arg(L, c, 1, false);
}

Value *bi_multimem_st(Lower *L,
                      Call *c) { // ptr val0 ... (mask for _p); data: W_* | words << 2 | 64 for a mask
  Front *f = L->f;
  const int n = c->row->data >> 2 & 7;
  const bool masked = c->row->data & 64;
  const Elem *e = word_elem(f, c->row->data);
  Value *p = front_pointer_arg(L, c, 0, true), *v[4];
  if (p->kind != VAL_RT) return f->poison;
  for (int i = 0; i < n; i++)
    if ((v[i] = bits_arg(L, c, 1 + i, e))->kind != VAL_RT) return f->poison;
  Value *mask = NULL;
  if (masked) {
    mask = front_raise_level(L, front_condition(L, front_to_rt(L, c->v[2], c->at[2]), c->at[2]), c->loc);
    if (mask->kind != VAL_RT || mask->rt.type->rank)
      return front_err(L, c->at[2], "the mask is a scalar condition");
  }
  p = word_pointer(L, p, e, 0, c->loc);
  if (p->kind != VAL_RT) return f->poison;
  Ranks r;
  ranks_begin(L, &r, NULL, 0, c->loc);
  Value *q = at_rank(L, p, r.rank, c->loc);
  for (int i = 0; i < n; i++)
    ir_store(front_at(L, c->loc), word_pointer(L, q, e, i, c->loc)->rt.ir, v[i]->rt.ir,
             mask ? mask->rt.ir : NULL);
  ranks_end(L, &r, NULL, 0, c->loc);
  return f->none;
}

// 16 bytes of every rank, added up in float32: four float32, or four words of two halves each.
Value *bi_multimem_ld_reduce(Lower *L, Call *c) { // ptr acc_dtype?; data 1: ptr mask
  Front *f = L->f;
  const Elem *f32 = elem_number(f, FDT_float32);
  Value *p = front_pointer_arg(L, c, 0, true);
  if (p->kind != VAL_RT) return f->poison;
  const Elem *e = p->rt.type->elem->to;
  const bool halves = e == elem_number(f, FDT_float16) || e == elem_number(f, FDT_bfloat16);
  if (!halves && e != f32)
    return front_err(L, c->at[0], "%s adds up float32, float16 or bfloat16, not %s", c->row->name,
                     elem_text(f, e));
  IrValue *mask = NULL;
  if (c->row->data) {
    const Value *m =
        front_raise_level(L, front_condition(L, front_to_rt(L, c->v[1], c->at[1]), c->at[1]), c->loc);
    if (m->kind != VAL_RT || m->rt.type->rank)
      return front_err(L, c->at[1], "the mask is a scalar condition");
    mask = m->rt.ir;
  } else if (c->v[1] && c->v[1]->kind != VAL_NONE && arg_dtype(L, c, 1) != f32) {
    return front_err_hint(L, c->at[1], "leave acc_dtype out, or pass tl.float32",
                          "the sum is made in float32");
  }
  const int n = halves ? 8 : 4;
  Value *sum[8];
  for (int i = 0; i < n; i++)
    sum[i] = front_raise_level(L, front_const_of(L, f32, val_float(f, 0), c->loc), c->loc);
  Ranks r;
  ranks_begin(L, &r, sum, n, c->loc);
  Value *q = at_rank(L, p, r.rank, c->loc);
  for (int i = 0; i < n; i++) {
    IrValue *x = ir_load(front_at(L, c->loc), word_pointer(L, q, e, i, c->loc)->rt.ir, mask, NULL);
    Value *v = front_cast_to(L, val_rt(f, x, type_scalar(f, e, true), r.rank->rt.why), f32, false, c->loc);
    sum[i] = front_binary_op(L, AOP_Add, r.args[i], v, c->loc);
  }
  ranks_end(L, &r, sum, n, c->loc);
  if (!halves) return val_tuple(f, sum, 4, false);
  Value *words[4];
  for (int i = 0; i < 4; i++) {
    const Elem *u16 = elem_number(f, FDT_uint16), *u32 = elem_number(f, FDT_uint32);
    Value *h[2];
    for (int k = 0; k < 2; k++)
      h[k] = front_cast_to(
          L, front_bitcast_to(L, front_cast_to(L, sum[2 * i + k], e, false, c->loc), u16, c->loc), u32, false,
          c->loc);
    Value *w = front_binary_op(L, AOP_BitOr, h[0], front_binary_op(L, AOP_Shl, h[1], val_int(f, 16), c->loc),
                               c->loc);
    words[i] = front_cast_to(L, w, elem_number(f, FDT_int32), false, c->loc);
  }
  return val_tuple(f, words, 4, false);
}
