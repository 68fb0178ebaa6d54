// Library: reductions and scans, with built-in and with user combine functions.
#include "front/builtins.h"

#include <string.h>

typedef bool Combine(Lower *L, Value *const *x, Value *const *y, int n, Value **out, const void *user,
                     Loc loc);

// Runs `combine` on fresh scalars inside the region of op and yields its results.
static bool fill_region(Lower *L, IrOp *op, Value *const *in, int n, Combine *combine, const void *user,
                        Loc loc) {
  Front *f = L->f;
  const IrBuilder saved = L->b;
  IrBlock *b = op->regions[0];
  Value *x[16], *y[16], *out[16];
  IrValue *ys[16];
  for (int half = 0; half < 2; half++)
    for (int i = 0; i < n; i++) {
      const Type *t = type_scalar(f, in[i]->rt.type->elem, false);
      (half ? y : x)[i] = val_rt(f, ir_block_arg(b, front_ir_of(f, t), NULL), t, NULL);
    }
  L->b = ir_builder_at_end(b);
  const bool inline_all = L->inline_all;
  L->inline_all = true;
  bool ok = combine(L, x, y, n, out, user, loc);
  L->inline_all = inline_all;
  for (int i = 0; ok && i < n; i++) {
    out[i] = front_cast_to(L, out[i], in[i]->rt.type->elem, false, loc);
    ok = out[i]->kind == VAL_RT && !out[i]->rt.type->rank;
    if (ok) ys[i] = out[i]->rt.ir;
  }
  for (int i = 0; !ok && i < n; i++) ys[i] = x[i]->rt.ir;
  ir_yield(front_at(L, loc), (uint32_t)n, ys);
  for (const IrOp *o = b->first; ok && o != b->last; o = o->next) {
    if (ir_op_is_pure(o)) continue;
    // how often and in what order it would happen is open, so an effect has no meaning that every target could keep
    front_err_hint(L, o->loc, "do it before or after, on the operands or the result",
                   "%s inside of a combine function: it may run in any order and any number of times",
                   ir_ops[o->kind].name);
    ok = false;
  }
  L->b = saved;
  return ok;
}

static bool prepare(Lower *L, Value **in, int n, Loc loc) {
  for (int i = 0; i < n; i++) {
    if (in[i]->kind == VAL_POISON) return false;
    if (in[i]->kind != VAL_RT || !in[i]->rt.type->rank) {
      front_err(L, loc, "only a tile can be reduced or scanned, not %s", val_kind_text(L->f, in[i]));
      return false;
    }
    if (i && !front_broadcast_pair(L, &in[0], &in[i], loc)) return false;
  }
  for (int i = 1; i < n; i++)
    if (!front_broadcast_pair(L, &in[0], &in[i], loc)) return false;
  return front_tiles_allowed(L, loc, "a reduction");
}

// Reduces n tiles together along axis (-1: along all). out[i] keeps the axes with size 1 if keep.
static bool reduce_tiles(Lower *L, Value **in, int n, int axis, bool keep, Combine *combine, const void *user,
                         Value **out, Loc loc) {
  Front *f = L->f;
  if (!prepare(L, in, n, loc)) return false;
  const Type *whole = in[0]->rt.type;
  int32_t all = 1;
  for (int i = 0; i < whole->rank; i++) all *= whole->shape[i];
  if (axis < 0)
    for (int i = 0; i < n; i++) in[i] = front_reshape_to(L, in[i], 1, &all, false, loc);
  const int a = axis < 0 ? 0 : axis;
  const Type *t = in[0]->rt.type;
  int32_t shape[IR_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < t->rank; i++)
    if (i != a) shape[rank++] = t->shape[i];
  const Type *to[16];
  const IrType *it[16];
  IrValue *ops[16];
  for (int i = 0; i < n; i++) {
    to[i] = type_tile(f, in[i]->rt.type->elem, rank, shape);
    it[i] = front_ir_of(f, to[i]);
    ops[i] = in[i]->rt.ir;
  }
  IrOp *op = ir_build(front_at(L, loc), OP_reduce, (uint32_t)n, ops, (uint32_t)n, it, 1);
  ir_set_attr_i(op, ATTR_axis, a);
  const bool ok = fill_region(L, op, in, n, combine, user, loc);
  for (int i = 0; i < n; i++) {
    out[i] = val_rt(f, ir_result(op, (uint32_t)i), to[i], NULL);
    if (!keep) continue;
    int32_t kept[IR_MAX_RANK];
    for (int k = 0; k < whole->rank; k++) kept[k] = axis < 0 || k == axis ? 1 : whole->shape[k];
    if (rank)
      out[i] = val_rt(f, ir_expand_dims(front_at(L, loc), out[i]->rt.ir, a),
                      type_tile(f, to[i]->elem, whole->rank, kept), NULL);
    else
      out[i] = front_broadcast_to(L, out[i], whole->rank, kept, loc);
  }
  return ok;
}

static bool scan_tiles(Lower *L, Value **in, int n, int axis, bool reverse, Combine *combine,
                       const void *user, Value **out, Loc loc) {
  Front *f = L->f;
  if (!prepare(L, in, n, loc)) return false;
  const IrType *it[16];
  IrValue *ops[16];
  for (int i = 0; i < n; i++) {
    it[i] = in[i]->rt.ir->type;
    ops[i] = in[i]->rt.ir;
  }
  IrOp *op = ir_build(front_at(L, loc), OP_scan, (uint32_t)n, ops, (uint32_t)n, it, 1);
  ir_set_attr_i(op, ATTR_axis, axis);
  if (reverse) ir_set_attr_i(op, ATTR_reverse, 1);
  const bool ok = fill_region(L, op, in, n, combine, user, loc);
  for (int i = 0; i < n; i++) out[i] = val_rt(f, ir_result(op, (uint32_t)i), in[i]->rt.type, NULL);
  return ok;
}

// ---- combine functions -------------------------------------------------------------------------------------
static bool by_operator(Lower *L, Value *const *x, Value *const *y, int n, Value **out, const void *user,
                        Loc loc) {
  (void)n;
  out[0] = front_binary_op(L, *(const AstOp *)user, x[0], y[0], loc);
  return out[0]->kind == VAL_RT;
}

static bool by_extreme(Lower *L, Value *const *x, Value *const *y, int n, Value **out, const void *user,
                       Loc loc) {
  (void)n;
  out[0] = front_minimum_maximum(L, *(const bool *)user, x[0], y[0], false, loc);
  return out[0]->kind == VAL_RT;
}

typedef struct Extreme {
  bool max, left;
} Extreme;

// (value, index) pairs: the greater (smaller) value; of equal ones the left, if asked.
static bool by_indexed(Lower *L, Value *const *x, Value *const *y, int n, Value **out, const void *user,
                       Loc loc) {
  const Extreme *e = user;
  (void)n;
  Value *first = front_binary_op(L, e->max ? AOP_Gt : AOP_Lt, x[0], y[0], loc);
  if (e->left) {
    Value *tie = front_binary_op(L, AOP_BitAnd, front_binary_op(L, AOP_Eq, x[0], y[0], loc),
                                 front_binary_op(L, AOP_Lt, x[1], y[1], loc), loc);
    first = front_binary_op(L, AOP_BitOr, first, tie, loc);
  }
  out[0] = front_select_op(L, first, x[0], y[0], loc);
  out[1] = front_select_op(L, first, x[1], y[1], loc);
  return out[0]->kind == VAL_RT && out[1]->kind == VAL_RT;
}

static bool by_function(Lower *L, Value *const *x, Value *const *y, int n, Value **out, const void *user,
                        Loc loc) {
  Front *f = L->f;
  Value *args[32];
  for (int i = 0; i < n; i++) args[i] = x[i], args[n + i] = y[i];
  Value *r = front_call_inline_values(L, (Value *)(uintptr_t)user, args, (uint32_t)(2 * n), loc);
  if (r->kind == VAL_POISON) return false;
  if (n == 1 && r->kind != VAL_TUPLE) {
    out[0] = r;
    return r->kind == VAL_RT || val_is_number(r);
  }
  if (r->kind != VAL_TUPLE || r->seq.n != (uint32_t)n) {
    front_err(L, loc, "the combine function returns %s, not %d values", val_kind_text(f, r), n);
    return false;
  }
  for (int i = 0; i < n; i++) out[i] = r->seq.items[i];
  return true;
}

// ---- rows ----------------------------------------------------------------------------------------------------
// axis: -1 where it is None or left out.
static bool reduce_axis(Lower *L, Call *c, int i, const Value *v, int *axis) {
  *axis = -1;
  if (!c->v[i] || c->v[i]->kind == VAL_NONE) return true;
  return arg_axis(L, c, i, v->rt.type->rank, axis);
}

// Sums of small integers are taken in 32 bits.
static const Elem *sum_elem(Lower *L, Call *c, int i, const Elem *e) {
  if (c->v[i] && c->v[i]->kind != VAL_NONE) return arg_dtype(L, c, i);
  if (elem_is_int(e) && elem_bits(e) < 32)
    return elem_number(L->f, elem_is_unsigned(e) ? FDT_uint32 : FDT_int32);
  return e;
}

static Value *tile_arg(Lower *L, Call *c, int i) {
  Value *v = arg_tile(L, c, i);
  if (v->kind == VAL_POISON) return v;
  if (!v->rt.type->rank)
    return front_err(L, c->at[i], "%s needs a tile, not %s", c->row->name, val_kind_text(L->f, v));
  return v;
}

Value *bi_sum(Lower *L, Call *c) { // input axis? keep_dims? dtype?; data: AstOp
  Front *f = L->f;
  Value *v = tile_arg(L, c, 0), *out;
  int axis;
  bool keep;
  if (v->kind == VAL_POISON || !reduce_axis(L, c, 1, v, &axis) || !arg_bool(L, c, 2, false, &keep))
    return f->poison;
  const AstOp op = (AstOp)c->row->data;
  const Elem *e = op == AOP_Add ? sum_elem(L, c, 3, v->rt.type->elem) : v->rt.type->elem;
  if (!e) return f->poison;
  if (op != AOP_Add && op != AOP_Mul && !elem_is_int(e))
    return front_err(L, c->at[0], "%s works on integers", c->row->name);
  v = front_cast_to(L, v, e, false, c->loc);
  if (v->kind == VAL_POISON) return v;
  return reduce_tiles(L, &v, 1, axis, keep, by_operator, &op, &out, c->loc) ? out : f->poison;
}

// max and min of narrow types are taken in 32 bits, and stay there.
static Value *widened(Lower *L, Value *v, Loc loc) {
  Front *f = L->f;
  const Elem *e = v->rt.type->elem;
  if (elem_bits(e) >= 32) return v;
  return front_cast_to(L, v, elem_number(f, elem_is_float(e) ? FDT_float32 : FDT_int32), false, loc);
}

// With indices only bf16 is widened.
static Value *comparable(Lower *L, Value *v, Loc loc) {
  if (v->rt.type->elem->dt != FDT_bfloat16) return v;
  return front_cast_to(L, v, elem_number(L->f, FDT_float32), false, loc);
}

static Value *indices_along(Lower *L, const Type *t, int axis, Loc loc) {
  Front *f = L->f;
  Value *r = front_tile_arange(L, 0, t->shape[axis], loc);
  IrValue *ir = r->rt.ir;
  int32_t shape[IR_MAX_RANK];
  for (int k = 0; k < t->rank; k++) {
    shape[k] = k == axis ? t->shape[k] : 1;
    if (k != axis) ir = ir_expand_dims(front_at(L, loc), ir, k);
  }
  r = val_rt(f, ir, type_tile(f, r->rt.type->elem, t->rank, shape), NULL);
  return front_broadcast_to(L, r, t->rank, t->shape, loc);
}

static Value *extreme_with_index(Lower *L, Value *v, int axis, bool keep, Extreme e, bool only_index,
                                 Loc loc) {
  Front *f = L->f;
  if (axis < 0) {
    int32_t n = 1;
    for (int i = 0; i < v->rt.type->rank; i++) n *= v->rt.type->shape[i];
    v = front_reshape_to(L, v, 1, &n, false, loc);
    axis = 0;
  }
  Value *in[2] = {v, indices_along(L, v->rt.type, axis, loc)}, *out[2];
  if (!reduce_tiles(L, in, 2, axis, keep, by_indexed, &e, out, loc)) return f->poison;
  return only_index ? out[1] : val_tuple(f, out, 2, false);
}

Value *
bi_extreme(Lower *L,
           Call *c) { // input axis? return_indices? return_indices_tie_break_left? keep_dims?; data: 1 = max
  Front *f = L->f;
  Value *v = tile_arg(L, c, 0), *out;
  int axis;
  bool indices, left, keep;
  const bool max = c->row->data;
  if (v->kind == VAL_POISON || !reduce_axis(L, c, 1, v, &axis) || !arg_bool(L, c, 2, false, &indices) ||
      !arg_bool(L, c, 3, true, &left) || !arg_bool(L, c, 4, false, &keep))
    return f->poison;
  if (indices)
    return extreme_with_index(L, comparable(L, v, c->loc), axis, keep, (Extreme){max, left}, false, c->loc);
  v = widened(L, v, c->loc);
  return reduce_tiles(L, &v, 1, axis, keep, by_extreme, &max, &out, c->loc) ? out : f->poison;
}

Value *bi_argextreme(Lower *L, Call *c) { // input axis tie_break_left? keep_dims?; data: 1 = max
  Value *v = tile_arg(L, c, 0);
  int axis;
  bool left, keep;
  if (v->kind == VAL_POISON || !reduce_axis(L, c, 1, v, &axis) || !arg_bool(L, c, 2, true, &left) ||
      !arg_bool(L, c, 3, false, &keep))
    return L->f->poison;
  return extreme_with_index(L, comparable(L, v, c->loc), axis, keep, (Extreme){c->row->data, left}, true,
                            c->loc);
}

Value *bi_reduce(Lower *L, Call *c) { // input axis combine_fn keep_dims?
  Front *f = L->f;
  Value *in[16], *out[16];
  int n, axis;
  bool keep;
  if (!front_seq_items(L, c, 0, 16, in, &n) || !n || !arg_bool(L, c, 3, false, &keep)) return f->poison;
  if (in[0]->kind != VAL_RT)
    return front_err(L, c->at[0], "tl.reduce needs a tile, not %s", val_kind_text(f, in[0]));
  if (!reduce_axis(L, c, 1, in[0], &axis) ||
      !reduce_tiles(L, in, n, axis, keep, by_function, c->v[2], out, c->loc))
    return f->poison;
  return c->v[0]->kind == VAL_TUPLE ? val_tuple(f, out, (uint32_t)n, false) : out[0];
}

Value *bi_scan(Lower *L, Call *c) { // input axis combine_fn reverse?
  Front *f = L->f;
  Value *in[16], *out[16];
  int n, axis;
  bool reverse;
  if (!front_seq_items(L, c, 0, 16, in, &n) || !n || !arg_bool(L, c, 3, false, &reverse)) return f->poison;
  if (in[0]->kind != VAL_RT)
    return front_err(L, c->at[0], "tl.associative_scan needs a tile, not %s", val_kind_text(f, in[0]));
  if (!arg_axis(L, c, 1, in[0]->rt.type->rank, &axis) ||
      !scan_tiles(L, in, n, axis, reverse, by_function, c->v[2], out, c->loc))
    return f->poison;
  return c->v[0]->kind == VAL_TUPLE ? val_tuple(f, out, (uint32_t)n, false) : out[0];
}

Value *bi_cumulate(Lower *L, Call *c) { // input axis? reverse? dtype?; data: AstOp
  Front *f = L->f;
  Value *v = tile_arg(L, c, 0), *out;
  int axis;
  bool reverse;
  if (v->kind == VAL_POISON || !arg_axis(L, c, 1, v->rt.type->rank, &axis) ||
      !arg_bool(L, c, 2, false, &reverse))
    return f->poison;
  const AstOp op = (AstOp)c->row->data;
  if (v->rt.type->elem->dt == FDT_bfloat16)
    v = front_cast_to(L, v, elem_number(f, FDT_float32), false, c->loc);
  const Elem *e = op == AOP_Add ? sum_elem(L, c, 3, v->rt.type->elem) : v->rt.type->elem;
  if (!e) return f->poison;
  v = front_cast_to(L, v, e, false, c->loc);
  return scan_tiles(L, &v, 1, axis, reverse, by_operator, &op, &out, c->loc) ? out : f->poison;
}

Value *bi_softmax(Lower *L, Call *c) { // x dim? keep_dims? ieee_rounding?
  Front *f = L->f;
  Value *v = tile_arg(L, c, 0), *m, *s;
  int axis;
  if (v->kind == VAL_POISON || !arg_axis(L, c, 1, v->rt.type->rank, &axis)) return f->poison;
  const bool max = true;
  const AstOp add = AOP_Add;
  Value *x = v;
  if (!elem_is_float(v->rt.type->elem) || elem_bits(v->rt.type->elem) < 32)
    return front_err_hint(L, c->at[0], "cast it first: x.to(tl.float32)",
                          "softmax works on fp32 and fp64, not on %s", elem_text(f, v->rt.type->elem));
  if (!reduce_tiles(L, &v, 1, axis, true, by_extreme, &max, &m, c->loc)) return f->poison;
  Value *e = front_math_call(L, MATH_FN_exp, front_binary_op(L, AOP_Sub, x, m, c->loc), c->loc), *num = e;
  if (!reduce_tiles(L, &e, 1, axis, true, by_operator, &add, &s, c->loc)) return f->poison;
  return front_binary_op(L, AOP_Div, num, s, c->loc);
}
