// place_expand: the tile stage in fewer forms, before anything is placed.
//   - accesses through tensor descriptors become loads, stores and atomics on pointers with masks
//   - a loop-carried tile that only moves by the same amount in every element (a_ptrs += BLOCK_K * stride) becomes its
//     first value plus a carried scalar, so that no tile of pointers lives in memory
#include "pass/place.h"

// ---- descriptors -----------------------------------------------------------------------------------------------------
typedef struct Desc {
  IrValue *base, *dims[IR_MAX_RANK], *strides[IR_MAX_RANK]; // i64
  int rank;
  bool nan;
} Desc;

static const IrType *i64_type(Place *p) { return ir_type_scalar(p->ctx, IR_i64, LEVEL_program); }

static IrValue *to_i64(IrBuilder *b, Place *p, IrValue *v) {
  if (v->type->dtype == IR_i64) return v;
  int64_t c;
  if (ir_const_int(v, &c)) return ir_const_i(b, i64_type(p), c);
  return ir_cast(b, OP_ext_s, v, i64_type(p));
}

static IrValue *desc_part(IrBuilder *b, IrOpKind k, IrValue *d, int axis, const IrType *t) {
  IrOp *op = ir_build(b, k, 1, &d, 1, &t, 0);
  if (k != OP_desc_base) ir_set_attr_i(op, ATTR_axis, axis);
  return ir_result(op, 0);
}

static Desc desc_of(Place *p, IrBuilder *b, IrValue *d, Loc loc) {
  d = ir_desc_source(d);
  Desc r = {.rank = d->type->rank};
  if (d->def && d->def->kind == OP_make_desc) {
    r.base = ir_operand(d->def, 0);
    r.nan = ir_attr_i(d->def, ATTR_pad) == PAD_nan;
    for (int i = 0; i < r.rank; i++) {
      r.dims[i] = to_i64(b, p, ir_operand(d->def, 1 + (uint32_t)i));
      r.strides[i] = to_i64(b, p, ir_operand(d->def, 1 + (uint32_t)(r.rank + i)));
    }
    return r;
  }
  if (d->def || d->block != p->old->body)
    place_fail(p, loc,
               "a tensor descriptor chosen by control flow cannot be placed on a CPU; make it in each arm");
  r.base = desc_part(b, OP_desc_base, d, 0, ir_type_ptr(p->ctx, d->type->dtype, SPACE_global, LEVEL_program));
  for (int i = 0; i < r.rank; i++) {
    r.dims[i] = desc_part(b, OP_desc_dim, d, i, i64_type(p));
    r.strides[i] = desc_part(b, OP_desc_stride, d, i, i64_type(p));
  }
  return r;
}

// v, a tile along one axis, repeated over the others of shape.
static IrValue *spread(IrBuilder *b, IrValue *v, int axis, int rank, const int32_t *shape) {
  for (int i = 0; i < rank; i++) {
    if (i != axis) v = ir_expand_dims(b, v, i < axis ? i : v->type->rank);
  }
  return rank == 1 ? v : ir_broadcast(b, v, rank, shape);
}

static void desc_access(Place *p, IrOp *op) {
  IrBuilder b = ir_builder_before(op);
  IrValue *d = ir_operand(op, 0);
  const Desc t = desc_of(p, &b, d, op->loc);
  const uint32_t first = op->kind == OP_desc_load ? 1 : 2;
  const IrType *block = d->type;
  IrValue *origin = NULL, *ptr = NULL, *mask = NULL, *reach[IR_MAX_RANK];
  for (int i = 0; i < t.rank; i++) {
    IrValue *off = to_i64(&b, p, ir_operand(op, first + (uint32_t)i));
    const bool last = i == t.rank - 1;
    IrValue *by = last ? off : ir_binary(&b, OP_mul, off, t.strides[i]);
    origin = origin ? ir_binary(&b, OP_add, origin, by) : by;
    const int32_t n = block->shape[i];
    const IrType *line = ir_type_tile(p->ctx, IR_i32, 1, &n);
    IrOp *ar = ir_build(&b, OP_arange, 0, NULL, 1, &line, 0);
    ir_set_attr_i(ar, ATTR_start, 0);
    ir_set_attr_i(ar, ATTR_end, n);
    IrValue *x = ir_cast(&b, OP_ext_s, ir_result(ar, 0), ir_type_tile(p->ctx, IR_i64, 1, &n));
    reach[i] = last ? x : ir_binary(&b, OP_mul, x, ir_splat(&b, t.strides[i], 1, &n));
    IrValue *at = ir_binary(&b, OP_add, x, ir_splat(&b, off, 1, &n));
    const IrType *t64 = i64_type(p);
    IrValue *in = ir_binary(&b, OP_and, ir_cmp(&b, CMP_slt, at, ir_splat(&b, t.dims[i], 1, &n)),
                            ir_cmp(&b, CMP_sge, at, ir_splat(&b, ir_const_i(&b, t64, 0), 1, &n)));
    in = spread(&b, in, i, t.rank, block->shape);
    mask = mask ? ir_binary(&b, OP_and, mask, in) : in;
  }
  ptr = ir_splat(&b, ir_ptr_add(&b, t.base, origin), t.rank, block->shape);
  for (int i = 0; i < t.rank; i++) ptr = ir_ptr_add(&b, ptr, spread(&b, reach[i], i, t.rank, block->shape));
  if (op->kind == OP_desc_load) {
    const IrType *rt = ir_result(op, 0)->type;
    IrValue *other =
        t.nan && ir_type_is_float(rt)
            ? ir_const_f(&b, ir_type_tile(p->ctx, rt->dtype, t.rank, block->shape), __builtin_nan(""))
            : NULL;
    IrValue *r = ir_load(&b, ptr, mask, other);
    if (r->type != rt) r = ir_cast(&b, OP_reshape, r, rt);
    ir_replace_uses(ir_result(op, 0), r);
  } else {
    IrValue *v = ir_operand(op, 1);
    const IrType *vt = ir_type_with_shape(p->ctx, v->type, t.rank, block->shape);
    if (v->type != vt) v = ir_cast(&b, OP_reshape, v, vt);
    if (op->kind == OP_desc_store) {
      ir_store(&b, ptr, v, mask);
    } else {
      IrValue *ops[3] = {ptr, v, mask};
      IrOp *a = ir_build(&b, OP_atomic_rmw, 3, ops, 1, &v->type, 0);
      ir_set_attr_i(a, ATTR_rmw, ir_attr_i(op, ATTR_rmw));
      ir_set_attr_i(a, ATTR_order, ORDER_relaxed);
      ir_set_attr_i(a, ATTR_scope, SCOPE_gpu);
    }
  }
  ir_erase(op);
}

// ---- carried tiles that move as a whole ------------------------------------------------------------------------------
// The scalar that all elements of v equal, built at b; NULL where they may differ.
static IrValue *scalar_of(Place *p, IrBuilder *b, IrValue *v, int depth) {
  if (v->type->kind != IR_TILE) return v;
  if (!v->def || depth > 16) return NULL;
  const IrOp *op = v->def;
  const IrType *t = ir_type_elem(p->ctx, v->type);
  switch (op->kind) {
  case OP_const: return pass_const_bits(b, t, (uint64_t)ir_attr_i(op, ATTR_value));
  case OP_splat: return ir_operand(op, 0);
  case OP_expand_dims:
  case OP_broadcast:
  case OP_reshape:
  case OP_trans:
  case OP_hint: return scalar_of(p, b, ir_operand(op, 0), depth + 1);
  default: break;
  }
  if (!place_op_is_elementwise(op) || op->noperands > 3 || op->kind == OP_consume) return NULL;
  IrValue *in[3];
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *o = ir_operand(op, i);
    in[i] = o ? scalar_of(p, b, o, depth + 1) : NULL;
    if (o && !in[i]) return NULL;
  }
  return pass_like(b, op, op->noperands, in, t);
}

// Is y = x moved by scalars? Adds their sum to *sum (built at b).
static bool moved_by(Place *p, IrBuilder *b, const IrValue *x, IrValue *y, IrValue **sum, int depth) {
  if (y == x) return true;
  if (!y->def || depth > 8) return false;
  const IrOp *op = y->def;
  if (op->kind == OP_hint) return moved_by(p, b, x, ir_operand(op, 0), sum, depth + 1);
  if (op->kind != OP_add && op->kind != OP_ptr_add && op->kind != OP_sub) return false;
  IrValue *l = ir_operand(op, 0), *r = ir_operand(op, 1);
  if (op->kind == OP_add && r == x) {
    IrValue *t = l;
    l = r;
    r = t;
  }
  if (!moved_by(p, b, x, l, sum, depth + 1)) return false;
  IrValue *s = scalar_of(p, b, r, 0);
  if (!s) return false;
  if (op->kind == OP_ptr_add) s = to_i64(b, p, s);
  if (*sum) {
    s = ir_binary(b, op->kind == OP_sub ? OP_sub : OP_add, *sum, s);
  } else if (op->kind == OP_sub) {
    s = ir_binary(b, OP_sub, ir_const_i(b, s->type, 0), s);
  }
  *sum = s;
  return true;
}

static void thin_loop(Place *p, IrOp *loop) {
  IrBlock *body = loop->regions[0];
  IrOp *yield = ir_terminator(body);
  const uint32_t n = loop->nresults;
  for (uint32_t k = 0; k < n; k++) {
    IrValue *arg = body->args.data[1 + k], *init = ir_operand(loop, 3 + k), *next = ir_operand(yield, k);
    if (arg->type->kind != IR_TILE) continue;
    if (next == arg) {
      ir_replace_uses(arg, init);
      ir_replace_uses(ir_result(loop, k), init);
      ir_set_operand(yield, k, arg);
      continue;
    }
    if (ir_type_is_float(arg->type)) continue;
    IrBuilder at_end = ir_builder_before(yield);
    IrValue *sum = NULL;
    if (!moved_by(p, &at_end, arg, next, &sum, 0) || !sum) continue;
    IrBuilder before = ir_builder_before(loop);
    IrValue *zero = ir_const_i(&before, sum->type, 0);
    ir_op_add_operand(loop, zero);
    IrValue *moved = ir_block_arg(body, sum->type, NULL);
    at_end = ir_builder_before(yield);
    ir_op_add_operand(yield, ir_binary(&at_end, OP_add, moved, sum));
    ir_op_add_result(loop, sum->type);
    IrValue *total = ir_result(loop, loop->nresults - 1);
    const IrOpKind add = ir_type_is_ptr(arg->type) ? OP_ptr_add : OP_add;
    const IrType *t = arg->type;
    IrBuilder start = body->first ? ir_builder_before(body->first) : ir_builder_at_end(body);
    IrValue *here = ir_binary(&start, add, init, ir_splat(&start, moved, t->rank, t->shape));
    ir_replace_uses(arg, here);
    IrBuilder after = ir_builder_after(loop);
    if (ir_result(loop, k)->uses)
      ir_replace_uses(ir_result(loop, k),
                      ir_binary(&after, add, init, ir_splat(&after, total, t->rank, t->shape)));
    ir_set_operand(yield, k, arg);
  }
}

static void expand_block(Place *p, IrBlock *b) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t i = 0; i < op->nregions; i++) expand_block(p, op->regions[i]);
    if (p->keep && p->keep(p->keep_user, op)) continue;
    switch (op->kind) {
    case OP_desc_load:
    case OP_desc_store:
    case OP_desc_rmw: desc_access(p, op); break;
    case OP_for:
      if (!ir_type_is_thread(ir_operand(op, 0)->type)) thin_loop(p, op);
      break;
    default: break;
    }
  }
}

void place_expand(Place *p, IrFunc *f) { expand_block(p, f->body); }
