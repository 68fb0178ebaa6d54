// Library: shapes, products, and moving elements about.
#include "front/builtins.h"

#include <string.h>

// ---- shapes ----------------------------------------------------------------------------------------------
Value *front_reshape_to(Lower *L, Value *v, int rank, const int32_t *shape, bool reorder, Loc loc) {
  Front *f = L->f;
  if (v->kind == VAL_POISON) return v;
  const Type *t = v->rt.type;
  if (!front_tiles_allowed(L, loc, "a tile operation")) return f->poison;
  int64_t n = 1, m = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  for (int i = 0; i < t->rank; i++) m *= t->shape[i];
  if (n != m)
    return front_err_hint(
        L, loc, "a reshape keeps the number of elements", "a tile of shape %s has %lld elements, %s has %lld",
        front_shape_text(f, t->rank, t->shape), (long long)m, front_shape_text(f, rank, shape), (long long)n);
  if (t->rank == rank && !memcmp(t->shape, shape, sizeof(int32_t) * (size_t)rank)) return v;
  if (!t->rank) return front_broadcast_to(L, v, rank, shape, loc);
  const Type *to = type_tile(f, t->elem, rank, shape);
  const IrType *it = front_ir_of(f, to);
  IrOp *op = ir_build(front_at(L, loc), rank ? OP_reshape : OP_unsplat, 1, &v->rt.ir, 1, &it, 0);
  if (reorder && rank) ir_set_attr_i(op, ATTR_reorder, 1);
  return val_rt(f, ir_result(op, 0), to, NULL);
}

// Sizes given as one sequence or as separate arguments.
static bool dims_arg(Lower *L, Call *c, int i, int64_t *dims, int *n) {
  if (!arg_ints(L, c, i, IR_MAX_RANK, dims, n)) return false;
  for (uint32_t k = 0; k < c->rest.len; k++) {
    if (*n >= IR_MAX_RANK || c->rest.data[k]->kind != VAL_INT) {
      front_err(L, c->loc, "%s takes at most %d constant sizes", c->row->name, IR_MAX_RANK);
      return false;
    }
    dims[(*n)++] = (int64_t)c->rest.data[k]->i;
  }
  return true;
}

Value *bi_reshape(Lower *L, Call *c) { // input shape? *dims can_reorder?
  Front *f = L->f;
  Value *v = arg_tile(L, c, 0);
  int64_t dims[IR_MAX_RANK];
  int32_t shape[IR_MAX_RANK];
  int n;
  bool reorder;
  if (v->kind == VAL_POISON || !dims_arg(L, c, 1, dims, &n) || !arg_bool(L, c, 2, false, &reorder))
    return f->poison;
  return front_check_shape(L, n, dims, shape, c->loc) ? front_reshape_to(L, v, n, shape, reorder, c->loc)
                                                      : f->poison;
}

Value *bi_ravel(Lower *L, Call *c) { // input
  Value *v = arg_tile(L, c, 0);
  if (v->kind == VAL_POISON) return v;
  int32_t n = 1;
  for (int i = 0; i < v->rt.type->rank; i++) n *= v->rt.type->shape[i];
  return front_reshape_to(L, v, 1, &n, c->row->data, c->loc);
}

Value *bi_broadcast_to(Lower *L, Call *c) { // input shape? *dims
  Front *f = L->f;
  Value *v = arg_tile(L, c, 0);
  int64_t dims[IR_MAX_RANK];
  int32_t shape[IR_MAX_RANK];
  int n;
  if (v->kind == VAL_POISON || !dims_arg(L, c, 1, dims, &n) || !front_check_shape(L, n, dims, shape, c->loc))
    return f->poison;
  if (v->rt.type->rank && v->rt.type->rank != n)
    return front_err_hint(L, c->loc, "add axes with x[:, None] first",
                          "broadcast_to keeps the number of axes: %d, not %d", v->rt.type->rank, n);
  return front_broadcast_to(L, v, n, shape, c->loc);
}

Value *bi_broadcast(Lower *L, Call *c) { // a b
  Front *f = L->f;
  Value *v[2] = {arg_tile(L, c, 0), arg_tile(L, c, 1)};
  if (v[0]->kind == VAL_POISON || v[1]->kind == VAL_POISON || !front_broadcast_pair(L, &v[0], &v[1], c->loc))
    return f->poison;
  return val_tuple(f, v, 2, false);
}

Value *bi_expand_dims(Lower *L, Call *c) { // input axis
  Front *f = L->f;
  Value *v = arg_tile(L, c, 0);
  int64_t axes[IR_MAX_RANK];
  int n;
  if (v->kind == VAL_POISON || !arg_ints(L, c, 1, IR_MAX_RANK, axes, &n)) return f->poison;
  const int rank = v->rt.type->rank + n;
  if (rank > IR_MAX_RANK) return front_err(L, c->loc, "a tile has at most %d axes", IR_MAX_RANK);
  bool fresh[IR_MAX_RANK] = {0};
  for (int i = 0; i < n; i++) {
    const int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (a < 0 || a >= rank || fresh[a])
      return front_err(L, c->at[1], "axis %lld of a result of %d axes", (long long)axes[i], rank);
    fresh[a] = true;
  }
  int32_t shape[IR_MAX_RANK];
  for (int i = 0, k = 0; i < rank; i++) shape[i] = fresh[i] ? 1 : v->rt.type->shape[k++];
  if (!v->rt.type->rank) return front_broadcast_to(L, v, rank, shape, c->loc);
  if (!front_tiles_allowed(L, c->loc, "a tile operation")) return f->poison;
  IrValue *ir = v->rt.ir;
  for (int i = 0; i < rank; i++)
    if (fresh[i]) ir = ir_expand_dims(front_at(L, c->loc), ir, i);
  return val_rt(f, ir, type_tile(f, v->rt.type->elem, rank, shape), NULL);
}

static Value *permute(Lower *L, Value *v, const int64_t *perm, Loc loc) {
  Front *f = L->f;
  const Type *t = v->rt.type;
  if (!front_tiles_allowed(L, loc, "a tile operation")) return f->poison;
  int32_t shape[IR_MAX_RANK];
  for (int i = 0; i < t->rank; i++) shape[i] = t->shape[perm[i]];
  const Type *to = type_tile(f, t->elem, t->rank, shape);
  const IrType *it = front_ir_of(f, to);
  IrOp *op = ir_build(front_at(L, loc), OP_trans, 1, &v->rt.ir, 1, &it, 0);
  ir_set_attr_ints(op, ATTR_perm, perm, (uint32_t)t->rank);
  return val_rt(f, ir_result(op, 0), to, NULL);
}

Value *bi_trans(Lower *L, Call *c) { // input dims? *rest
  Front *f = L->f;
  Value *v = arg_tile(L, c, 0);
  int64_t dims[IR_MAX_RANK];
  int n;
  if (v->kind == VAL_POISON || !dims_arg(L, c, 1, dims, &n)) return f->poison;
  const int rank = v->rt.type->rank;
  if (!n) {
    if (rank < 2) return front_err(L, c->loc, "a transpose needs 2 axes, not %d", rank);
    for (; n < rank; n++) dims[n] = n;
    dims[rank - 1] = rank - 2, dims[rank - 2] = rank - 1;
  }
  if (n != rank) return front_err(L, c->loc, "%d axes named for a tile of %d", n, rank);
  unsigned seen = 0;
  for (int i = 0; i < n; i++) {
    if (dims[i] < 0) dims[i] += rank;
    if (dims[i] < 0 || dims[i] >= rank || seen & 1u << dims[i])
      return front_err(L, c->loc, "the axes are no permutation of 0..%d", rank - 1);
    seen |= 1u << dims[i];
  }
  return permute(L, v, dims, c->loc);
}

Value *bi_join(Lower *L, Call *c) { // a b; data: 1 = interleave
  Front *f = L->f;
  Value *a = arg_tile(L, c, 0), *b = arg_tile(L, c, 1);
  if (a->kind == VAL_POISON || b->kind == VAL_POISON) return f->poison;
  if (!front_broadcast_pair(L, &a, &b, c->loc)) return f->poison;
  if (a->rt.type->elem != b->rt.type->elem)
    return front_err(L, c->loc, "%s needs two tiles of one type, not %s and %s", c->row->name,
                     type_text(f, a->rt.type), type_text(f, b->rt.type));
  const int32_t one = 1;
  const bool scalars = !a->rt.type->rank;
  if (scalars) {
    a = front_broadcast_to(L, a, 1, &one, c->loc);
    b = front_broadcast_to(L, b, 1, &one, c->loc);
    if (a->kind == VAL_POISON || b->kind == VAL_POISON) return f->poison;
  }
  const Type *t = a->rt.type;
  if (t->rank == IR_MAX_RANK) return front_err(L, c->loc, "a tile has at most %d axes", IR_MAX_RANK);
  int32_t shape[IR_MAX_RANK];
  memcpy(shape, t->shape, sizeof shape);
  shape[t->rank] = 2;
  const Type *to = type_tile(f, t->elem, t->rank + 1, shape);
  const IrType *it = front_ir_of(f, to);
  IrOp *op = ir_build(front_at(L, c->loc), OP_join, 2, (IrValue *[]){a->rt.ir, b->rt.ir}, 1, &it, 0);
  Value *r = val_rt(f, ir_result(op, 0), to, NULL);
  if (scalars) return front_reshape_to(L, r, 1, (const int32_t[]){2}, false, c->loc);
  if (!c->row->data) return r;
  memcpy(shape, t->shape, sizeof shape);
  shape[t->rank - 1] *= 2;
  return front_reshape_to(L, r, t->rank, shape, false, c->loc);
}

Value *bi_split(Lower *L, Call *c) { // a
  Front *f = L->f;
  Value *a = arg_tile(L, c, 0);
  if (a->kind == VAL_POISON) return a;
  const Type *t = a->rt.type;
  if (!t->rank || t->shape[t->rank - 1] != 2)
    return front_err_hint(L, c->at[0], "reshape it so that the last axis is 2",
                          "split halves a last axis of size 2, but the shape is %s",
                          front_shape_text(f, t->rank, t->shape));
  const bool scalars = t->rank == 1;
  if (scalars) {
    a = front_reshape_to(L, a, 2, (const int32_t[]){1, 2}, false, c->loc);
    t = a->rt.type;
  }
  const Type *to = type_tile(f, t->elem, t->rank - 1, t->shape);
  const IrType *it[2] = {front_ir_of(f, to), front_ir_of(f, to)};
  IrOp *op = ir_build(front_at(L, c->loc), OP_split, 1, &a->rt.ir, 2, it, 0);
  Value *r[2];
  for (int i = 0; i < 2; i++) {
    r[i] = val_rt(f, ir_result(op, (uint32_t)i), to, NULL);
    if (scalars) r[i] = front_reshape_to(L, r[i], 0, NULL, false, c->loc);
  }
  return val_tuple(f, r, 2, false);
}

Value *bi_cat(Lower *L, Call *c) { // a b can_reorder? dim?
  Front *f = L->f;
  Value *a = arg_tile(L, c, 0), *b = arg_tile(L, c, 1);
  int64_t dim;
  if (a->kind == VAL_POISON || b->kind == VAL_POISON || !arg_int(L, c, 3, 0, &dim)) return f->poison;
  const Type *t = a->rt.type, *u = b->rt.type;
  if (t->elem != u->elem || !t->rank || !type_same_shape(t, u))
    return front_err(L, c->loc, "cat needs two tiles of one type and shape, not %s and %s", type_text(f, t),
                     type_text(f, u));
  if (dim < 0) dim += t->rank;
  if (dim < 0 || dim >= t->rank)
    return front_err(L, c->at[3], "axis %lld of a tile of %d axes", (long long)dim, t->rank);
  // along another axis: bring it to the front and back
  int64_t perm[IR_MAX_RANK];
  for (int i = 0; i < t->rank; i++) perm[i] = i;
  perm[0] = dim, perm[dim] = 0;
  if (dim) a = permute(L, a, perm, c->loc), b = permute(L, b, perm, c->loc);
  int32_t shape[IR_MAX_RANK];
  memcpy(shape, a->rt.type->shape, sizeof shape);
  shape[0] *= 2;
  const Type *to = type_tile(f, t->elem, t->rank, shape);
  const IrType *it = front_ir_of(f, to);
  IrOp *op = ir_build(front_at(L, c->loc), OP_cat, 2, (IrValue *[]){a->rt.ir, b->rt.ir}, 1, &it, 0);
  Value *r = val_rt(f, ir_result(op, 0), to, NULL);
  return dim ? permute(L, r, perm, c->loc) : r;
}

// ---- gathering -------------------------------------------------------------------------------------------
static Value *gather(Lower *L, Value *src, Value *index, int axis, Loc loc) {
  Front *f = L->f;
  const Type *to = type_tile(f, src->rt.type->elem, index->rt.type->rank, index->rt.type->shape);
  const IrType *it = front_ir_of(f, to);
  IrOp *op = ir_build(front_at(L, loc), OP_gather, 2, (IrValue *[]){src->rt.ir, index->rt.ir}, 1, &it, 0);
  ir_set_attr_i(op, ATTR_axis, axis);
  return val_rt(f, ir_result(op, 0), to, NULL);
}

Value *bi_gather(Lower *L, Call *c) { // src index axis
  Front *f = L->f;
  Value *s = arg_tile(L, c, 0), *i = arg_tile(L, c, 1);
  int axis;
  if (s->kind == VAL_POISON || i->kind == VAL_POISON || !arg_axis(L, c, 2, s->rt.type->rank, &axis))
    return f->poison;
  if (i->rt.type->rank != s->rt.type->rank || !elem_is_int(i->rt.type->elem))
    return front_err(L, c->at[1], "the indices must be integers with %d axes, not %s", s->rt.type->rank,
                     val_kind_text(f, i));
  for (int k = 0; k < s->rt.type->rank; k++)
    if (k != axis && s->rt.type->shape[k] != i->rt.type->shape[k])
      return front_err(L, c->at[1], "shapes %s and %s differ outside axis %d",
                       front_shape_text(f, s->rt.type->rank, s->rt.type->shape),
                       front_shape_text(f, i->rt.type->rank, i->rt.type->shape), axis);
  if (elem_bits(i->rt.type->elem) < 32) i = front_cast_to(L, i, elem_number(f, FDT_int32), false, c->loc);
  return gather(L, s, i, axis, c->loc);
}

// 0..n-1 along axis of a tile shaped like t, with size n there.
static Value *index_along(Lower *L, const Type *t, int axis, int32_t n, Value *r, Loc loc) {
  Front *f = L->f;
  int32_t shape[IR_MAX_RANK];
  memcpy(shape, t->shape, sizeof shape);
  shape[axis] = n;
  IrValue *ir = r->rt.ir;
  int32_t ones[IR_MAX_RANK];
  for (int k = 0; k < t->rank; k++) {
    ones[k] = k == axis ? n : 1;
    if (k != axis) ir = ir_expand_dims(front_at(L, loc), ir, k);
  }
  return front_broadcast_to(L, val_rt(f, ir, type_tile(f, r->rt.type->elem, t->rank, ones), NULL), t->rank,
                            shape, loc);
}

Value *bi_flip(Lower *L, Call *c) { // x dim?
  Front *f = L->f;
  Value *x = arg_tile(L, c, 0);
  if (x->kind == VAL_POISON) return x;
  int axis = x->rt.type->rank - 1;
  if (axis < 0) return x;
  if (c->v[1] && c->v[1]->kind != VAL_NONE && !arg_axis(L, c, 1, x->rt.type->rank, &axis)) return f->poison;
  const int32_t n = x->rt.type->shape[axis];
  Value *r = front_binary_op(L, AOP_Sub, val_int(f, n - 1), front_tile_arange(L, 0, n, c->loc), c->loc);
  return gather(L, x, index_along(L, x->rt.type, axis, n, r, c->loc), axis, c->loc);
}

// One stage of a bitonic network along the last axis: of two elements `step` apart the smaller one goes to the lower
// index, the other way round in every second run of `run` elements.
static Value *bitonic_stage(Lower *L, Value *x, int32_t run, int32_t step, bool descending, Loc loc) {
  Front *f = L->f;
  const int axis = x->rt.type->rank - 1;
  const int32_t n = x->rt.type->shape[axis];
  Value *ids = front_tile_arange(L, 0, n, loc), *zero = val_int(f, 0);
  Value *partner = front_binary_op(L, AOP_BitXor, ids, val_int(f, step), loc);
  Value *y = gather(L, x, index_along(L, x->rt.type, axis, n, partner, loc), axis, loc);
  Value *upper =
      front_binary_op(L, AOP_Ne, front_binary_op(L, AOP_BitAnd, ids, val_int(f, step), loc), zero, loc);
  Value *turned =
      front_binary_op(L, AOP_Ne, front_binary_op(L, AOP_BitAnd, ids, val_int(f, run), loc), zero, loc);
  Value *take_max = front_binary_op(L, AOP_BitXor, upper, turned, loc);
  if (descending) take_max = front_unary_op(L, AOP_Invert, take_max, loc);
  take_max = index_along(L, type_with_elem(f, x->rt.type, take_max->rt.type->elem), axis, n, take_max, loc);
  return front_select_op(L, take_max, front_minimum_maximum(L, true, x, y, false, loc),
                         front_minimum_maximum(L, false, x, y, false, loc), loc);
}

// Runs of `size` elements along the last axis sorted, every second one the other way round.
static Value *sorted_runs(Lower *L, Value *x, int32_t size, bool descending, Loc loc) {
  for (int32_t run = 2; run <= size && x->kind == VAL_RT; run *= 2)
    for (int32_t step = run / 2; step && x->kind == VAL_RT; step /= 2)
      x = bitonic_stage(L, x, run, step, descending, loc);
  return x;
}

// The k largest of the last axis, the largest first. Of two neighbouring runs of k, one sorted down and one up, the larger
// one of each two elements belongs to the k largest of both, and these make a bitonic run again: half as many are left.
static Value *largest(Lower *L, Value *x, int32_t k, Loc loc) {
  Front *f = L->f;
  const int axis = x->rt.type->rank - 1;
  x = sorted_runs(L, x, k, true, loc);
  while (x->kind == VAL_RT && x->rt.type->shape[axis] > k) {
    const int32_t half = x->rt.type->shape[axis] / 2;
    Value *i = front_tile_arange(L, 0, half, loc);
    Value *down = front_binary_op(L, AOP_Add, i, front_binary_op(L, AOP_BitAnd, i, val_int(f, -k), loc), loc);
    Value *up = front_binary_op(L, AOP_Add, down, val_int(f, k), loc);
    Value *a = gather(L, x, index_along(L, x->rt.type, axis, half, down, loc), axis, loc);
    Value *b = gather(L, x, index_along(L, x->rt.type, axis, half, up, loc), axis, loc);
    x = front_minimum_maximum(L, true, a, b, false, loc);
    for (int32_t step = k / 2; step && x->kind == VAL_RT; step /= 2)
      x = bitonic_stage(L, x, k, step, true, loc);
  }
  return x;
}

Value *bi_sort(Lower *L, Call *c) { // x dim? descending?
  Front *f = L->f;
  Value *x = arg_tile(L, c, 0);
  bool desc;
  int axis;
  if (x->kind == VAL_POISON || !arg_bool(L, c, 2, false, &desc)) return f->poison;
  axis = x->rt.type->rank - 1;
  if (c->v[1] && c->v[1]->kind != VAL_NONE && !arg_axis(L, c, 1, x->rt.type->rank, &axis)) return f->poison;
  if (axis < 0 || axis != x->rt.type->rank - 1)
    return front_err(L, c->loc, "tl.sort sorts along the last axis only");
  return sorted_runs(L, x, x->rt.type->shape[axis], desc, c->loc);
}

Value *bi_topk(Lower *L, Call *c) { // x k dim?
  Front *f = L->f;
  Value *x = arg_tile(L, c, 0);
  int64_t k;
  if (x->kind == VAL_POISON || !arg_int(L, c, 1, 0, &k)) return f->poison;
  const int axis = x->rt.type->rank - 1;
  if (axis < 0 || k < 1 || !bits_pow2((uint64_t)k) || k > x->rt.type->shape[axis])
    return front_err(L, c->at[1], "tl.topk takes a power of two up to the size of the last axis, not %lld",
                     (long long)k);
  return largest(L, x, (int32_t)k, c->loc);
}

Value *bi_histogram(Lower *L, Call *c) { // input num_bins mask?
  Front *f = L->f;
  Value *x = arg_tile(L, c, 0);
  int64_t n;
  int32_t bins;
  if (x->kind == VAL_POISON || !arg_int(L, c, 1, 0, &n) || !front_check_shape(L, 1, &n, &bins, c->at[1]))
    return f->poison;
  if (x->rt.type->rank != 1 || !elem_is_int(x->rt.type->elem))
    return front_err(L, c->at[0], "a histogram counts a tile of integers with one axis");
  IrValue *ops[2] = {front_cast_to(L, x, elem_number(f, FDT_int32), false, c->loc)->rt.ir, NULL};
  if (c->v[2] && c->v[2]->kind != VAL_NONE) {
    Value *m = front_broadcast_to(L, front_cast_to(L, c->v[2], elem_number(f, FDT_int1), false, c->at[2]), 1,
                                  x->rt.type->shape, c->at[2]);
    if (m->kind != VAL_RT) return f->poison;
    ops[1] = m->rt.ir;
  }
  const Type *to = type_tile(f, elem_number(f, FDT_int32), 1, &bins);
  const IrType *it = front_ir_of(f, to);
  return val_rt(f, ir_result(ir_build(front_at(L, c->loc), OP_histogram, 2, ops, 1, &it, 0), 0), to, NULL);
}

Value *bi_swizzle2d(Lower *L, Call *c) { // i j size_i size_j size_g
  const Loc loc = c->loc;
  Value *i = c->v[0], *j = c->v[1], *si = c->v[2], *sj = c->v[3], *g = c->v[4];
  Value *ij = front_binary_op(L, AOP_Add, front_binary_op(L, AOP_Mul, i, sj, loc), j, loc);
  Value *gj = front_binary_op(L, AOP_Mul, g, sj, loc);
  Value *group = front_binary_op(L, AOP_FloorDiv, ij, gj, loc);
  Value *off = front_binary_op(L, AOP_Mul, group, g, loc);
  Value *size = front_minimum_maximum(L, false, front_binary_op(L, AOP_Sub, si, off, loc), g, false, loc);
  ij = front_binary_op(L, AOP_Mod, ij, gj, loc);
  Value *r[2] = {front_binary_op(L, AOP_Add, off, front_binary_op(L, AOP_Mod, ij, size, loc), loc),
                 front_binary_op(L, AOP_FloorDiv, ij, size, loc)};
  return val_tuple(L->f, r, 2, false);
}

// ---- products ----------------------------------------------------------------------------------------------
static bool precision(Lower *L, Call *c, int iprec, int itf32, IrPrec dflt, IrPrec *out) {
  static const char *const words[] = {"ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"};
  *out = dflt;
  if (c->v[itf32] && c->v[itf32]->kind != VAL_NONE) {
    bool tf32;
    if (!arg_bool(L, c, itf32, true, &tf32)) return false;
    *out = tf32 ? PREC_tf32 : PREC_ieee;
  }
  const char *s = arg_str(L, c, iprec, NULL);
  if (!s) return !c->v[iprec] || c->v[iprec]->kind == VAL_NONE;
  for (size_t i = 0; i < DT_COUNTOF(words); i++)
    if (!strcmp(words[i], s)) {
      *out = (IrPrec)i;
      return true;
    }
  front_err(L, c->at[iprec],
            "input_precision is \"tf32\", \"tf32x3\", \"ieee\", \"bf16x3\" or \"bf16x6\", not \"%s\"", s);
  return false;
}

// What a product of two such types accumulates in.
static const Elem *dot_result(Front *f, const Elem *e, const Elem *wanted) {
  if (elem_is_int(e)) return elem_number(f, FDT_int32);
  if (e->dt == FDT_float64) return e;
  const bool half = (e->dt == FDT_float16 || elem_kind(e) == DTK_FP8) && wanted && wanted->dt == FDT_float16;
  return elem_number(f, half ? FDT_float16 : FDT_float32);
}

Value *bi_dot(Lower *L,
              Call *c) { // input other acc? input_precision? allow_tf32? max_num_imprecise_acc? out_dtype?
  Front *f = L->f;
  Value *a = arg_tile(L, c, 0), *b = arg_tile(L, c, 1);
  if (a->kind == VAL_POISON || b->kind == VAL_POISON) return f->poison;
  const Type *ta = a->rt.type, *tb = b->rt.type;
  const Elem *ea = ta->elem, *eb = tb->elem;
  if (ta->rank < 2 || ta->rank != tb->rank || ta->rank > 4)
    return front_err(L, c->loc,
                     "tl.dot multiplies two tiles of 2 axes (or of 3, the first a batch), not %s and %s",
                     type_text(f, ta), type_text(f, tb));
  const int r = ta->rank;
  bool fits = ta->shape[r - 1] == tb->shape[r - 2];
  for (int i = 0; i < r - 2; i++) fits &= ta->shape[i] == tb->shape[i];
  if (!fits)
    return front_err_hint(
        L, c->loc,
        "the last axis of the first must be as long as the second-last axis of the second; tl.trans(b) may help",
        "tl.dot cannot multiply shapes %s and %s", front_shape_text(f, r, ta->shape),
        front_shape_text(f, r, tb->shape));
  if (elem_is_ptr(ea) || elem_is_ptr(eb) || elem_is_bool(ea))
    return front_err(L, c->loc, "tl.dot of %s and %s", elem_text(f, ea), elem_text(f, eb));
  if (ea != eb) {
    if (elem_kind(ea) != DTK_FP8 || elem_kind(eb) != DTK_FP8)
      return front_err_hint(L, c->loc, "cast one of them",
                            "the operands of tl.dot have different types, %s and %s", elem_text(f, ea),
                            elem_text(f, eb));
    a = front_cast_to(L, a, elem_number(f, FDT_float16), false, c->loc); // exact
    b = front_cast_to(L, b, elem_number(f, FDT_float16), false, c->loc);
    ea = eb = a->rt.type->elem;
  }
  if (elem_is_int(ea) && ea->dt != FDT_int8)
    return front_err_hint(L, c->loc, "cast to tl.int8 or to a float type", "tl.dot of %s", elem_text(f, ea));
  const Elem *wanted = NULL;
  if (c->v[6] && c->v[6]->kind != VAL_NONE && !(wanted = arg_dtype(L, c, 6))) return f->poison;
  if (wanted && wanted->dt == FDT_bfloat16)
    return front_err_hint(L, c->at[6], "accumulate in tl.float32 and cast the result",
                          "tl.dot cannot accumulate in bf16");
  Value *acc = c->v[2] && c->v[2]->kind != VAL_NONE ? arg_tile(L, c, 2) : NULL;
  if (acc && acc->kind == VAL_POISON) return acc;
  const Elem *er = dot_result(f, ea, acc && !wanted ? acc->rt.type->elem : wanted);
  int32_t shape[IR_MAX_RANK];
  memcpy(shape, ta->shape, sizeof shape);
  shape[r - 1] = tb->shape[r - 1];
  const Type *to = type_tile(f, er, r, shape);
  if (acc && (acc->rt.type->elem != er || !type_same_shape(acc->rt.type, to)))
    return front_err(L, c->at[2], "the accumulator is %s, but this product gives %s",
                     type_text(f, acc->rt.type), type_text(f, to));
  IrPrec prec;
  int64_t imprecise;
  const bool single = ea->dt == FDT_float32;
  if (!precision(L, c, 3, 4, single ? PREC_tf32 : PREC_ieee, &prec) || !arg_int(L, c, 5, 0, &imprecise))
    return f->poison;
  if (!acc) acc = front_splat_number(L, er, 0, to, c->loc);
  Value *v[3] = {a, b, acc};
  if (r == 4) // batches of two axes: as one
    for (int i = 0; i < 3; i++) {
      const int32_t *s = v[i]->rt.type->shape;
      const int32_t flat[3] = {s[0] * s[1], s[2], s[3]};
      v[i] = front_reshape_to(L, v[i], 3, flat, false, c->loc);
    }
  const Type *rt = v[2]->rt.type;
  const IrType *it = front_ir_of(f, rt);
  IrOp *op = ir_build(front_at(L, c->loc), OP_dot, 3, (IrValue *[]){v[0]->rt.ir, v[1]->rt.ir, v[2]->rt.ir}, 1,
                      &it, 0);
  if (single && prec != PREC_ieee) ir_set_attr_i(op, ATTR_prec, prec);
  if (elem_kind(ea) == DTK_FP8 && imprecise > 0) ir_set_attr_i(op, ATTR_imprecise, imprecise);
  Value *res = val_rt(f, ir_result(op, 0), rt, NULL);
  return r == 4 ? front_reshape_to(L, res, 4, shape, false, c->loc) : res;
}
