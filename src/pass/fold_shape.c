// fold_shape: tiles of equal elements, chains of shape ops, elementwise ops before the shape op that only repeats.
#include "pass/fold_impl.h"

static bool is_splat(const IrValue *v) { return v->def && v->def->kind == OP_splat; }
static bool is_const(const IrValue *v) { return v->def && v->def->kind == OP_const; }
static bool is_even(const IrValue *v) { return v->type->kind == IR_TILE && (is_splat(v) || is_const(v)); }

// v's one element as a tile (or, for rank 0, scalar) of another shape.
static IrValue *even_like(Fold *f, IrValue *v, int rank, const int32_t *shape) {
  IrCtx *ctx = f->pass->m->ctx;
  uint64_t bits;
  const IrType *elem = v->type->kind == IR_TILE ? ir_type_elem(ctx, v->type) : v->type;
  if (!is_splat(v) && pass_const(v, &bits))
    return pass_const_bits(&f->b, rank ? ir_type_with_shape(ctx, v->type, rank, shape) : elem, bits);
  return rank ? ir_splat(&f->b, ir_operand(v->def, 0), rank, shape) : ir_operand(v->def, 0);
}

static bool same_shape(const IrType *a, const IrType *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++) {
    if (a->shape[i] != b->shape[i]) return false;
  }
  return true;
}

// The shape op that all uneven operands of op share: `broadcast` or `expand_dims` from one shape (and axis).
static IrOp *shared_shape_op(const IrOp *op) {
  IrOp *first = NULL;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (!v || is_even(v)) continue;
    if (!v->def || (v->def->kind != OP_broadcast && v->def->kind != OP_expand_dims)) return NULL;
    if (!first) {
      first = v->def;
      continue;
    }
    if (v->def->kind != first->kind || ir_attr_i(v->def, ATTR_axis) != ir_attr_i(first, ATTR_axis))
      return NULL;
    if (!same_shape(ir_operand(v->def, 0)->type, ir_operand(first, 0)->type)) return NULL;
  }
  return first;
}

// op(splat a, splat b) is splat(op(a, b)); op(broadcast a, splat b) is broadcast(op(a, splat b)).
static IrValue *fold_elementwise(Fold *f, IrOp *op) {
  const IrType *t = ir_result(op, 0)->type;
  const uint32_t traits = ir_ops[op->kind].traits;
  if (!(traits & TRAIT_ELEMENTWISE) || !(traits & TRAIT_PURE) || t->kind != IR_TILE || t->layout ||
      !op->noperands || op->noperands > 3 || op->kind == OP_hint || ir_attr(op, ATTR_divisible) ||
      ir_attr(op, ATTR_contiguous) || ir_attr(op, ATTR_constancy))
    return NULL;
  bool even = true, splat = false;
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (!ir_operand(op, i)) continue;
    even &= is_even(ir_operand(op, i));
    splat |= is_splat(ir_operand(op, i));
  }
  if (even && !splat) return NULL; // all known, and yet not to be evaluated
  IrOp *shape = even ? NULL : shared_shape_op(op);
  if (!even && !shape) return NULL;
  const IrType *small = shape ? ir_operand(shape, 0)->type : NULL;
  IrValue *vs[3] = {0};
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *v = ir_operand(op, i);
    if (!v) continue;
    vs[i] = is_even(v) ? even_like(f, v, small ? small->rank : 0, small ? small->shape : NULL)
                       : ir_operand(v->def, 0);
  }
  IrCtx *ctx = f->pass->m->ctx;
  const IrType *made = small ? ir_type_with_shape(ctx, t, small->rank, small->shape) : ir_type_elem(ctx, t);
  IrValue *v = pass_like(&f->b, op, op->noperands, vs, made);
  if (!shape) return ir_splat(&f->b, v, t->rank, t->shape);
  return shape->kind == OP_broadcast ? ir_broadcast(&f->b, v, t->rank, t->shape)
                                     : ir_expand_dims(&f->b, v, (int)ir_attr_i(shape, ATTR_axis));
}

static IrValue *fold_trans(Fold *f, IrOp *op) {
  const IrAttr *perm = ir_attr(op, ATTR_perm);
  IrValue *a = ir_operand(op, 0);
  bool identity = perm != NULL;
  for (uint32_t i = 0; perm && i < perm->ints.n; i++) identity &= perm->ints.v[i] == i;
  if (identity) return a;
  if (!perm || !a->def || a->def->kind != OP_trans) return NULL;
  const IrAttr *inner = ir_attr(a->def, ATTR_perm);
  int64_t both[IR_MAX_RANK];
  if (!inner || inner->ints.n != perm->ints.n || perm->ints.n > IR_MAX_RANK) return NULL;
  for (uint32_t i = 0; i < perm->ints.n; i++) both[i] = inner->ints.v[perm->ints.v[i]];
  IrValue *x = ir_operand(a->def, 0);
  IrValue *v = pass_like(&f->b, op, 1, &x, ir_result(op, 0)->type);
  ir_set_attr_ints(v->def, ATTR_perm, both, perm->ints.n);
  return v;
}

static IrValue *fold_reshape(Fold *f, IrOp *op) {
  IrValue *a = ir_operand(op, 0);
  if (a->type == ir_result(op, 0)->type) return a;
  if (!a->def || (a->def->kind != OP_reshape && a->def->kind != OP_expand_dims)) return NULL;
  if (ir_attr_i(a->def, ATTR_reorder) && !ir_attr_i(op, ATTR_reorder)) return NULL;
  IrValue *x = ir_operand(a->def, 0);
  return x->type == ir_result(op, 0)->type ? x : pass_like(&f->b, op, 1, &x, ir_result(op, 0)->type);
}

static IrValue *fold_load(Fold *f, IrOp *op) {
  IrValue *mask = ir_operand(op, 1), *other = ir_operand(op, 2);
  uint64_t k;
  if (mask && pass_const(mask, &k)) {
    if (!k) return other ? other : pass_const_bits(&f->b, ir_result(op, 0)->type, 0);
    ir_set_operand(op, 1, NULL);
    if (other) ir_set_operand(op, 2, NULL);
  } else if (other && pass_const(other, &k) && k == 0) {
    ir_set_operand(op, 2, NULL); // what a masked load gives anyway
  }
  return NULL;
}

IrValue *fold_shape(Fold *f, IrOp *op) {
  const IrType *t = ir_result(op, 0)->type;
  IrValue *a = ir_operand(op, 0);
  uint64_t bits;
  switch (op->kind) {
  case OP_splat: return pass_const(a, &bits) ? pass_const_bits(&f->b, t, bits) : NULL;
  case OP_to_thread:
  case OP_from_thread:
    if (pass_const(a, &bits)) return pass_const_bits(&f->b, t, bits);
    return op->kind == OP_from_thread && a->def && a->def->kind == OP_to_thread ? ir_operand(a->def, 0)
                                                                                : NULL;
  case OP_hint: return op->nattrs == 0 || is_const(a) ? a : NULL;
  case OP_arange:
    if (t->rank != 1 || t->shape[0] != 1) return NULL;
    return pass_const_bits(&f->b, t, (uint64_t)ir_attr_i(op, ATTR_start));
  case OP_unsplat:
    if (is_even(a)) return even_like(f, a, 0, NULL);
    if (!a->def || (a->def->kind != OP_reshape && a->def->kind != OP_expand_dims)) return NULL;
    return pass_like(&f->b, op, 1, &(IrValue *){ir_operand(a->def, 0)}, t);
  case OP_expand_dims:
  case OP_broadcast:
  case OP_reshape:
  case OP_trans:
    if (t->layout) return NULL;
    if (is_even(a)) return even_like(f, a, t->rank, t->shape);
    if (op->kind == OP_trans) return fold_trans(f, op);
    if (op->kind == OP_reshape) return fold_reshape(f, op);
    if (op->kind == OP_expand_dims) return NULL;
    if (a->type == t) return a;
    return a->def && a->def->kind == OP_broadcast
               ? ir_broadcast(&f->b, ir_operand(a->def, 0), t->rank, t->shape)
               : NULL;
  case OP_load: return fold_load(f, op);
  case OP_atomic_rmw: {
    IrValue *mask = ir_operand(op, 2);
    if (!mask || !pass_const(mask, &bits)) return NULL;
    if (!bits) return pass_const_bits(&f->b, t, 0);
    ir_set_operand(op, 2, NULL);
    return NULL;
  }
  case OP_symm_at: // the own rank's copy is where the pointer points
    return ir_operand(op, 1)->def && ir_operand(op, 1)->def->kind == OP_rank ? a : NULL;
  default: return fold_elementwise(f, op);
  }
}
