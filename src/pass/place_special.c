// place_special: ops on tiles that need loops of their own: scans, histograms, concatenation, atomics, ordered or
// volatile accesses (element by element, in order), printing.
#include "pass/place.h"

#include <string.h>

static IrBlock *open_if(PlaceNest *n, IrValue *cond, const IrType *result, IrOp **out) {
  IrOp *op = ir_build(&n->out, OP_if, 1, &cond, result ? 1 : 0, &result, 2);
  *out = op;
  return op->regions[0];
}

static void scalar_loops(Place *p, PlaceNest *n, const IrType *t) {
  place_loops_open(p, n, t->rank, t->shape, 1);
}

static IrValue *elem(PlaceNest *n, IrValue *v) {
  if (!v) return NULL;
  return place_eval(n, v, n->idx).v;
}

static const IrType *tile_type(const IrOp *op) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (place_is_tile(v)) return v->type;
  }
  return NULL;
}

// ---- scans ------------------------------------------------------------------------------------------------------------------
static int32_t wide_lanes(Place *p, const IrType *t, int axis) {
  int32_t lanes =
      p->vector_bits / (ir_type_is_ptr(t) || ir_dtypes[t->dtype].bits < 8 ? 32 : ir_dtypes[t->dtype].bits);
  if (lanes > PLACE_MAX_LANES) lanes = PLACE_MAX_LANES;
  return lanes > t->shape[axis] ? t->shape[axis] : lanes;
}

static void clone_region(Place *p, IrBlock *to, const IrBlock *from) {
  for (uint32_t i = 0; i < from->args.len; i++)
    map_setp(&p->values, from->args.data[i], ir_block_arg(to, from->args.data[i]->type, NULL));
  IrBuilder b = ir_builder_at_end(to);
  for (const IrOp *op = from->first; op; op = op->next) ir_clone_op(&b, op, &p->values);
}

static PlaceElem pick(PlaceNest *n, IrValue *first, PlaceElem x, PlaceElem y) {
  if (n->lanes == 1) return place_uni(place_sel(n, first, x.v, y.v));
  IrValue *v = place_sel(n, place_vec(n, place_uni(first)), place_vec(n, x), place_vec(n, y));
  return (PlaceElem){ELEM_VEC, v, 0};
}

// Along the vectorised axis: scan within a vector, then combine with what the vectors before gave.
static void scan_lanes(Place *p, IrOp *op, int axis) {
  const IrType *t = ir_operand(op, 0)->type;
  const uint32_t count = op->noperands;
  const bool reverse = ir_attr_i(op, ATTR_reverse) != 0, plain = place_region_is_plain(op->regions[0]);
  const int32_t lanes = plain ? wide_lanes(p, t, axis) : 1, size = t->shape[axis];
  int32_t rows[IR_MAX_RANK];
  memcpy(rows, t->shape, sizeof rows);
  rows[axis] = 1;
  PlaceNest nest, *n = &nest;
  place_loops_open(p, n, t->rank, rows, 1);
  n->lanes = lanes;
  const IrType *i32 = ir_type_scalar(p->ctx, IR_i32, LEVEL_program);
  IrValue **ops = arena_array(p->arena, IrValue *, 3 + count);
  const IrType **types = arena_array(p->arena, const IrType *, count);
  ops[0] = place_i32(p, 0);
  ops[1] = place_i32(p, size);
  ops[2] = place_i32(p, lanes);
  for (uint32_t i = 0; i < count; i++) {
    types[i] = ir_type_elem(p->ctx, ir_operand(op, i)->type);
    ops[3 + i] = place_pconst(p, types[i], 0);
  }
  IrBuilder at = ir_builder_at_end(n->at[n->depth].block);
  at.loc = op->loc;
  IrOp *loop = ir_build(&at, OP_for, 3 + count, ops, count, types, 1);
  IrBlock *b = loop->regions[0];
  IrValue *iv = ir_block_arg(b, i32, NULL);
  if (!n->at[n->depth].before) n->at[n->depth].before = loop;
  n->depth++;
  n->at[n->depth] = n->out = ir_builder_at_end(b);
  n->at[n->depth].loc = n->out.loc = op->loc;
  PlaceElem *x = arena_array(p->arena, PlaceElem, count), *args = arena_array(p->arena, PlaceElem, 2 * count),
            *y = arena_array(p->arena, PlaceElem, count);
  IrValue *base = reverse ? place_bin(n, OP_sub, place_i32(p, size - lanes), iv) : iv;
  n->idx[axis] = lanes > 1 ? (PlaceElem){ELEM_AFF, base, 1} : place_uni(base);
  map_set(&n->divs, (uint64_t)(uintptr_t)base, (uint64_t)lanes);
  for (uint32_t i = 0; i < count; i++) args[i] = place_uni(ir_block_arg(b, types[i], NULL));
  for (uint32_t i = 0; i < count; i++) x[i] = place_eval(n, ir_operand(op, i), n->idx);
  if (lanes > 1) {
    IrValue **vs = arena_array(p->arena, IrValue *, count);
    const IrType **vt = arena_array(p->arena, const IrType *, count);
    for (uint32_t i = 0; i < count; i++) {
      vs[i] = place_vec(n, x[i]);
      vt[i] = vs[i]->type;
    }
    IrOp *s = ir_build(&n->out, OP_scan, count, vs, count, vt, 1);
    ir_set_attr_i(s, ATTR_axis, 0);
    if (reverse) ir_set_attr_i(s, ATTR_reverse, 1);
    clone_region(p, s->regions[0], op->regions[0]);
    for (uint32_t i = 0; i < count; i++) x[i] = (PlaceElem){ELEM_VEC, ir_result(s, i), 0};
  }
  for (uint32_t i = 0; i < count; i++) args[count + i] = x[i];
  place_region(n, op->regions[0], args, 2 * count, y);
  IrValue *first = place_cmp(n, CMP_eq, iv, place_i32(p, 0));
  for (uint32_t i = 0; i < count; i++) y[i] = pick(n, first, x[i], y[i]);
  IrValue **next = arena_array(p->arena, IrValue *, count);
  for (uint32_t i = 0; i < count; i++) {
    next[i] = y[i].v;
    if (lanes > 1)
      next[i] = place_pure(n, OP_vec_get, 2, (IrValue *[]){y[i].v, place_i32(p, reverse ? 0 : lanes - 1)},
                           types[i], NULL);
    place_write(n, place_info(p, ir_result(op, i))->buf, n->idx, y[i]);
  }
  ir_yield(&n->out, count, next);
  n->depth--;
  place_loops_close(n);
}

// Along another axis: from the row before.
static void scan_rows(Place *p, IrOp *op, int axis, int va) {
  const IrType *t = ir_operand(op, 0)->type;
  const uint32_t count = op->noperands;
  const bool reverse = ir_attr_i(op, ATTR_reverse) != 0, plain = place_region_is_plain(op->regions[0]);
  PlaceNest nest, *n = &nest;
  place_loops_open(p, n, t->rank, t->shape, plain ? wide_lanes(p, t, va) : 1);
  PlaceElem idx[IR_MAX_RANK], before[IR_MAX_RANK];
  memcpy(idx, n->idx, sizeof idx);
  IrValue *k = n->idx[axis].v, *last = place_i32(p, t->shape[axis] - 1);
  IrValue *first = place_cmp(n, CMP_eq, k, place_i32(p, 0));
  if (reverse) idx[axis] = place_uni(place_bin(n, OP_sub, last, k));
  memcpy(before, idx, sizeof idx);
  IrValue *prev = reverse ? place_bin(n, OP_min_s, place_bin(n, OP_add, idx[axis].v, place_i32(p, 1)), last)
                          : place_bin(n, OP_max_s, place_bin(n, OP_sub, k, place_i32(p, 1)), place_i32(p, 0));
  before[axis] = place_uni(prev);
  PlaceElem *args = arena_array(p->arena, PlaceElem, 2 * count), *y = arena_array(p->arena, PlaceElem, count);
  for (uint32_t i = 0; i < count; i++) args[count + i] = place_eval(n, ir_operand(op, i), idx);
  for (uint32_t i = 0; i < count; i++)
    args[i] = place_read(n, place_info(p, ir_result(op, i))->buf, before, n->depth);
  place_region(n, op->regions[0], args, 2 * count, y);
  for (uint32_t i = 0; i < count; i++)
    place_write(n, place_info(p, ir_result(op, i))->buf, idx, pick(n, first, args[count + i], y[i]));
  place_loops_close(n);
}

static void emit_scan(Place *p, IrOp *op) {
  const IrType *t = ir_operand(op, 0)->type;
  const int axis = (int)ir_attr_i(op, ATTR_axis);
  int va = -1;
  for (int i = 0; i < t->rank; i++) {
    if (t->shape[i] > 1) va = i;
  }
  if (axis == va || t->shape[axis] == 1)
    scan_lanes(p, op, axis);
  else
    scan_rows(p, op, axis, va);
}

// ---- others -------------------------------------------------------------------------------------------------------------------
static void emit_histogram(Place *p, IrOp *op) {
  const IrType *t = ir_operand(op, 0)->type, *rt = ir_result(op, 0)->type;
  PlaceBuf *bins = place_info(p, ir_result(op, 0))->buf;
  const IrType *rs = ir_type_elem(p->ctx, rt);
  PlaceNest nest, *n = &nest;
  place_loops_open(p, n, 1, rt->shape, wide_lanes(p, rt, 0));
  place_write(n, bins, n->idx, place_uni(place_pconst(p, rs, 0)));
  place_loops_close(n);
  scalar_loops(p, n, t);
  IrValue *x = elem(n, ir_operand(op, 0)), *mask = elem(n, ir_operand(op, 1));
  IrValue *in = place_cmp(n, CMP_ult, x, place_pconst(p, x->type, (uint64_t)rt->shape[0]));
  if (mask) in = place_bin(n, OP_and, in, mask);
  if (x->type->dtype != IR_i32) {
    const IrOpKind cast = ir_dtypes[x->type->dtype].bits > 32 ? OP_trunc : OP_ext_u;
    x = place_pure(n, cast, 1, &x, ir_type_scalar(p->ctx, IR_i32, LEVEL_program), NULL);
  }
  IrOp *cond;
  IrBuilder b = ir_builder_at_end(open_if(n, in, NULL, &cond));
  b.loc = op->loc;
  IrValue *mem = place_buf_mem(p, bins);
  IrOp *get = ir_build(&b, OP_mem_get, 2, (IrValue *[]){mem, x}, 1, &rs, 0);
  IrValue *sum = ir_binary(&b, OP_add, ir_result(get, 0), place_pconst(p, rs, 1));
  ir_build(&b, OP_mem_set, 3, (IrValue *[]){mem, sum, x}, 0, NULL, 0);
  ir_yield(&b, 0, NULL);
  b = ir_builder_at_end(cond->regions[1]);
  ir_yield(&b, 0, NULL);
  place_loops_close(n);
}

static void emit_cat(Place *p, IrOp *op) {
  PlaceBuf *to = place_info(p, ir_result(op, 0))->buf;
  int32_t done = 0;
  for (uint32_t i = 0; i < 2; i++) {
    IrValue *v = ir_operand(op, i);
    const IrType *t = v->type;
    int va = 0;
    for (int k = 0; k < t->rank; k++) {
      if (t->shape[k] > 1) va = k;
    }
    PlaceNest nest, *n = &nest;
    place_loops_open(p, n, t->rank, t->shape, wide_lanes(p, t, va));
    PlaceElem idx[IR_MAX_RANK];
    memcpy(idx, n->idx, sizeof idx);
    const PlaceElem e = place_eval(n, v, n->idx);
    idx[0].v = place_bin(n, OP_add, idx[0].v, place_i32(p, done));
    place_write(n, to, idx, e);
    place_loops_close(n);
    done += t->shape[0];
  }
}

// One scalar access an element, in order, where the mask holds.
static void emit_each(Place *p, IrOp *op) {
  IrValue *r = op->nresults ? ir_result(op, 0) : NULL;
  const IrType *t = tile_type(op);
  const bool masked =
      op->kind == OP_load ? op->noperands > 1 : op->kind != OP_atomic_cas && op->noperands > 2;
  const uint32_t mask_at = op->kind == OP_load ? 1 : 2;
  PlaceNest nest, *n = &nest;
  scalar_loops(p, n, t);
  n->out.loc = op->loc;
  IrValue *ops[4] = {0}, *mask = masked ? elem(n, ir_operand(op, mask_at)) : NULL;
  for (uint32_t i = 0; i < op->noperands && i < 4; i++) {
    if (!(masked && i == mask_at)) ops[i] = elem(n, ir_operand(op, i));
  }
  const IrType *rt = r ? ir_type_elem(p->ctx, r->type) : NULL;
  PlaceBuf *to = r ? place_info(p, r)->buf : NULL;
  IrValue *got;
  if (mask) {
    IrValue *none = rt ? (op->kind == OP_load && ops[2] ? ops[2] : place_pconst(p, rt, 0)) : NULL;
    ops[mask_at] = NULL;
    if (op->kind == OP_load) ops[2] = NULL;
    IrOp *cond;
    IrBuilder b = ir_builder_at_end(open_if(n, mask, rt, &cond));
    b.loc = op->loc;
    IrOp *a = ir_build(&b, op->kind, op->noperands, ops, op->nresults, &rt, 0);
    place_copy_attrs(a, op);
    IrValue *v = rt ? ir_result(a, 0) : NULL;
    ir_yield(&b, rt ? 1 : 0, &v);
    b = ir_builder_at_end(cond->regions[1]);
    ir_yield(&b, rt ? 1 : 0, &none);
    got = rt ? ir_result(cond, 0) : NULL;
  } else {
    IrOp *a = ir_build(&n->out, op->kind, op->noperands, ops, op->nresults, &rt, 0);
    place_copy_attrs(a, op);
    got = rt ? ir_result(a, 0) : NULL;
  }
  if (to) place_write(n, to, n->idx, place_uni(got));
  place_loops_close(n);
}

// A print of one element: `at` operands in front say where it is.
void place_print_where(Place *p, IrOp *made, const IrOp *op, int where, uint32_t at) {
  const IrAttr *uns = ir_attr(op, ATTR_uns);
  ir_set_attr_i(made, ATTR_where, where);
  if (!uns) return;
  int64_t *v = arena_array(p->arena, int64_t, at + uns->ints.n);
  for (uint32_t i = 0; i < uns->ints.n; i++) v[at + i] = uns->ints.v[i];
  ir_set_attr_ints(made, ATTR_uns, v, at + uns->ints.n);
}

static void emit_people(Place *p, IrOp *op) {
  const IrType *t = tile_type(op);
  PlaceNest nest, *n = &nest;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrType *x = ir_operand(op, i)->type;
    if (x->kind == IR_TILE &&
        (x->rank != t->rank || memcmp(x->shape, t->shape, sizeof *t->shape * (size_t)t->rank)))
      place_fail(p, op->loc, "print takes tiles of one shape at a time on a CPU");
  }
  scalar_loops(p, n, t);
  n->out.loc = op->loc;
  IrValue **ops = arena_array(p->arena, IrValue *, op->noperands + IR_MAX_RANK);
  uint32_t at = 0;
  for (int i = 0; i < t->rank && op->kind == OP_print; i++) ops[at++] = n->idx[i].v;
  for (uint32_t i = 0; i < op->noperands; i++) ops[at + i] = elem(n, ir_operand(op, i));
  IrOp *made = ir_build(&n->out, op->kind, at + op->noperands, ops, 0, NULL, 0);
  place_copy_attrs(made, op);
  if (op->kind == OP_print) place_print_where(p, made, op, t->rank, at);
  place_loops_close(n);
}

static void emit_unsplat(Place *p, IrOp *op) {
  PlaceNest nest, *n = &nest;
  PlaceElem idx[IR_MAX_RANK];
  place_nest_scalar(p, n);
  for (int i = 0; i < ir_operand(op, 0)->type->rank; i++) idx[i] = place_const(n, 0);
  map_setp(&p->values, ir_result(op, 0), place_eval(n, ir_operand(op, 0), idx).v);
}

void place_emit_special(Place *p, IrOp *op) {
  p->b.loc = op->loc;
  p->evals = 0;
  switch (op->kind) {
  case OP_scan: emit_scan(p, op); break;
  case OP_histogram: emit_histogram(p, op); break;
  case OP_cat: emit_cat(p, op); break;
  case OP_load:
  case OP_store:
  case OP_atomic_rmw:
  case OP_atomic_cas: emit_each(p, op); break;
  case OP_print:
  case OP_assert: emit_people(p, op); break;
  case OP_unsplat: emit_unsplat(p, op); break;
  case OP_inline_asm: place_fail(p, op->loc, "inline assembly has no meaning on a CPU target"); break;
  default: place_fail(p, op->loc, "%s on a tile cannot be placed on a CPU", ir_ops[op->kind].name);
  }
  for (uint32_t i = 0; i < op->nresults; i++) place_info(p, ir_result(op, i))->ready = true;
}
