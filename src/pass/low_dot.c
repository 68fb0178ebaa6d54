// low_dot: products in the lowered stage.
//
// On the matrix unit, where it knows the types: a's and b's fragments lie in registers (lay asked for them so); one `mma` for each
// block of c and step of k; dot_async becomes wgmma. Otherwise both operands go to shared memory and each thread adds up its own elements of c.
#include "pass/low.h"

#include <string.h>

void low_words(Low *l, IrValue *const *regs, uint32_t first, uint32_t count, IrDtype d, IrValue **out) {
  const IrType *i32 = ir_type_scalar(l->ctx, IR_i32, LEVEL_thread);
  const uint32_t e = 4u / ir_dtypes[d].bytes;
  const IrType *bits = ir_type_scalar(l->ctx, e == 2 ? IR_i16 : IR_i8, LEVEL_thread);
  for (uint32_t i = 0; i < count; i++) {
    if (e == 1) {
      out[i] = ir_cast(&l->b, OP_bitcast, regs[first + i], i32);
      continue;
    }
    out[i] = NULL;
    for (uint32_t j = 0; j < e; j++) {
      IrValue *x = regs[first + i * e + j];
      if (d != IR_i8) x = ir_cast(&l->b, OP_bitcast, x, bits);
      x = ir_cast(&l->b, OP_ext_u, x, i32);
      if (j) x = low_bin(l, OP_shl, x, low_i32(l, j * 32 / e));
      out[i] = out[i] ? low_bin(l, OP_or, out[i], x) : x;
    }
  }
}

// The register of a layout that starts the fragment with element (row, col).
static uint32_t find(Low *l, const IrOp *op, const IrValue *v, int64_t row, int64_t col) {
  IrLayout own = *low_layout(v);
  own.n[PLACE_LANE] = own.n[PLACE_WARP] = 0;
  uint32_t place;
  if (!layout_find(&own, (uint32_t)(row * v->type->shape[1] + col), &place))
    low_fail(l, op->loc, "a product's operand does not lie in the matrix unit's order");
  return place;
}

static void on_matrix_unit(Low *l, IrOp *op, int which) {
  const IrMmaInfo *s = &ir_mma[which];
  IrOp *moves[2];
  uint32_t nmoves = 0;
  for (uint32_t i = 0; i < 2; i++) {
    IrValue *v = ir_operand(op, i);
    if (map_getp(&l->regs, v) || !v->def) continue;
    const IrOp *def = v->def->kind == OP_trans ? ir_operand(v->def, 0)->def : v->def;
    if (def && def->kind == OP_relayout) moves[nmoves++] = (IrOp *)def;
  }
  if (nmoves) low_move_together(l, moves, nmoves);
  for (uint32_t i = 0; i < 2; i++) { // transposed: the same registers
    IrValue *v = ir_operand(op, i);
    if (!map_getp(&l->regs, v) && v->def && v->def->kind == OP_trans)
      low_set_regs(l, v, low_regs(l, ir_operand(v->def, 0)));
  }
  IrValue *av = ir_operand(op, 0), *bv = ir_operand(op, 1), *result = ir_result(op, 0);
  IrValue **a = low_regs(l, av), **b = low_regs(l, bv), **c = low_regs(l, ir_operand(op, 2));
  const IrLayout *layout = low_layout(result);
  const uint32_t regs = layout_regs(layout);
  IrValue **out = low_new_regs(l, layout);
  const IrType *ct = low_elem(l, result->type), *types[] = {ct, ct, ct, ct};
  const int64_t k = av->type->shape[1];
  Map packs; // fragments are packed once
  map_init(&packs, l->arena);
  for (uint32_t r = 0; r < regs; r += s->cs) {
    const uint32_t index = layout_index(layout, r), cols = (uint32_t)result->type->shape[1];
    const int64_t row = index / cols, col = index % cols;
    IrValue *acc[4];
    memcpy(acc, &c[r], sizeof acc);
    for (int64_t step = 0; step < k; step += s->k) {
      const uint32_t at = find(l, op, av, row, step), bt = find(l, op, bv, step, col);
      IrValue **af = map_getp(&packs, &a[at]), **bf = map_getp(&packs, &b[bt]);
      if (!af) {
        af = arena_array(l->arena, IrValue *, s->as);
        low_words(l, a, at, s->as, s->a, af);
        map_setp(&packs, &a[at], af);
      }
      if (!bf) {
        bf = arena_array(l->arena, IrValue *, s->bs);
        low_words(l, b, bt, s->bs, s->b, bf);
        map_setp(&packs, &b[bt], bf);
      }
      IrValue *ops[16];
      memcpy(ops, af, sizeof *ops * s->as);
      memcpy(ops + s->as, bf, sizeof *ops * s->bs);
      memcpy(ops + s->as + s->bs, acc, sizeof *ops * s->cs);
      IrOp *made = ir_build(&l->b, OP_mma, s->as + s->bs + s->cs, ops, s->cs, types, 0);
      ir_set_attr_i(made, ATTR_mma, which);
      for (uint32_t i = 0; i < s->cs; i++) acc[i] = ir_result(made, i);
    }
    memcpy(&out[r], acc, sizeof acc);
  }
  low_set_regs(l, result, out);
}

// ---- multiply-adds ---------------------------------------------------------------------------------------------------------------
static IrValue *widened(Low *l, IrValue *v, const IrType *to) {
  const IrDtypeInfo *from = &ir_dtypes[v->type->dtype];
  if (v->type->dtype == to->dtype) return v;
  if (from->cls == IR_FLOAT) return ir_cast(&l->b, OP_fcast, v, to);
  return ir_cast(&l->b, from->bits > ir_dtypes[to->dtype].bits ? OP_trunc : OP_ext_s, v, to);
}

static void on_threads(Low *l, IrOp *op) {
  IrValue *av = ir_operand(op, 0), *bv = ir_operand(op, 1), *result = ir_result(op, 0);
  const IrType *at = av->type, *bt = bv->type, *t = result->type, *elem = low_elem(l, t);
  const int rank = t->rank;
  const int64_t m = t->shape[rank - 2], n = t->shape[rank - 1], k = at->shape[rank - 1];
  // small floats add up in f32 and round once
  const bool is_float = ir_dtypes[elem->dtype].cls == IR_FLOAT,
             narrow = is_float && ir_dtypes[elem->dtype].bits < 32;
  const IrType *acc = narrow ? ir_type_scalar(l->ctx, IR_f32, LEVEL_thread) : elem;
  const LowBuf a = low_scratch(l, low_elem(l, at), ir_type_elems(at)),
               b = low_scratch(l, low_elem(l, bt), ir_type_elems(bt));
  low_barrier(l);
  low_spill(l, &a, at, low_regs(l, av));
  low_spill(l, &b, bt, low_regs(l, bv));
  low_barrier(l);
  const uint32_t regs = layout_regs(t->layout), copies = low_copies(t->layout);
  IrValue **c = low_regs(l, ir_operand(op, 2)), **ops = arena_array(l->arena, IrValue *, 3 + regs);
  IrValue **rows = arena_array(l->arena, IrValue *, regs), **cols = arena_array(l->arena, IrValue *, regs);
  const IrType **types = arena_array(l->arena, const IrType *, regs);
  uint32_t *slot = arena_array(l->arena, uint32_t, regs), live = 0;
  for (uint32_t r = 0; r < regs; r++) {
    if (r & copies) continue;
    IrValue *index = low_index(l, t, r), *row = low_coord(l, t, index, rank - 2),
            *col = low_coord(l, t, index, rank - 1);
    rows[r] = low_bin(l, OP_mul, row, low_i32(l, k));
    cols[r] = col;
    if (rank > 2) { // the matrix of the batch
      IrValue *batch = low_bin(l, OP_shr_u, index, low_i32(l, bits_log2((uint64_t)(m * n))));
      rows[r] = low_bin(l, OP_add, rows[r], low_bin(l, OP_mul, batch, low_i32(l, m * k)));
      cols[r] = low_bin(l, OP_add, cols[r], low_bin(l, OP_mul, batch, low_i32(l, k * n)));
    }
    ops[3 + live] = widened(l, low_thread(l, c[r]), acc);
    types[live] = acc;
    slot[r] = live++;
  }
  const IrType *pi = ir_type_scalar(l->ctx, IR_i32, LEVEL_program);
  ops[0] = ir_const_i(&l->b, pi, 0), ops[1] = ir_const_i(&l->b, pi, k), ops[2] = ir_const_i(&l->b, pi, 1);
  IrOp *loop = ir_build(&l->b, OP_for, 3 + live, ops, live, types, 1);
  IrBlock *body = loop->regions[0];
  IrValue *iv = ir_block_arg(body, pi, NULL), **sum = arena_array(l->arena, IrValue *, live);
  for (uint32_t i = 0; i < live; i++) sum[i] = ir_block_arg(body, acc, NULL);
  const IrBuilder keep = l->b;
  l->b = ir_builder_at_end(body);
  l->b.loc = keep.loc;
  IrValue *step = low_thread(l, iv), *across = low_bin(l, OP_mul, step, low_i32(l, n));
  for (uint32_t r = 0; r < regs; r++) {
    if (r & copies) continue;
    IrValue *x = widened(l, low_get(l, &a, low_bin(l, OP_add, rows[r], step)), acc);
    IrValue *y = widened(l, low_get(l, &b, low_bin(l, OP_add, cols[r], across)), acc);
    IrValue **s = &sum[slot[r]];
    if (is_float) {
      IrValue *f[3] = {x, y, *s};
      *s = ir_result(ir_build(&l->b, OP_fma, 3, f, 1, &acc, 0), 0);
    } else {
      *s = low_bin(l, OP_add, *s, low_bin(l, OP_mul, x, y));
    }
  }
  ir_yield(&l->b, live, sum);
  l->b = keep;
  IrValue **out = low_new_regs(l, t->layout);
  for (uint32_t r = 0; r < regs; r++) {
    if (!(r & copies)) out[r] = widened(l, ir_result(loop, slot[r]), elem);
  }
  low_fill_copies(t->layout, out);
  low_set_regs(l, result, out);
}

void low_dot(Low *l, IrOp *op) {
  const int which = lay_mma_shape(op);
  if (which >= 0)
    on_matrix_unit(l, op, which);
  else
    on_threads(l, op);
}

// ---- groups of four warps -----------------------------------------------------------------------------------------------------------
// The registers of a tile in the order of wgmma's a: by block of 64 rows, step of k.
static uint32_t group_fragments(Low *l, const IrOp *op, IrValue *v, int k, int groups_m, IrValue **out) {
  const IrType *t = v->type;
  IrValue **regs = low_regs(l, v);
  uint32_t n = 0;
  for (int64_t row = 0; row < t->shape[0]; row += 64 * groups_m) {
    for (int64_t col = 0; col < t->shape[1]; col += k, n += 4)
      low_words(l, regs, find(l, op, v, row, col), 4, t->dtype, out + n);
  }
  return n;
}

// Groups of four warps along the rows of a product's tile: warp bits from the third on that are row bits.
static int64_t row_groups(const IrType *t) {
  int64_t n = 1;
  for (uint32_t i = layout_first(t->layout, PLACE_WARP) + 2; i < layout_bits(t->layout); i++)
    n *= t->layout->at[i] >= (uint32_t)t->shape[1] ? 2 : 1;
  return n;
}

static IrValue *buffer_start(Low *l, IrValue *mem) {
  return low_program_buffer(l, mem, ir_type_scalar(l->ctx, mem->type->dtype, LEVEL_thread)).ptr;
}

void low_dot_async(Low *l, IrOp *op) {
  IrValue *a = ir_operand(op, 0), *b = ir_operand(op, 1), *c = ir_operand(op, 2), *result = ir_result(op, 0);
  const IrType *t = result->type, *ct = low_elem(l, t);
  const IrLayout *layout = t->layout;
  int which = 0;
  while (which < WGMMA_COUNT && !(ir_wgmma[which].a == a->type->dtype &&
                                  ir_wgmma[which].b == b->type->dtype && ir_wgmma[which].c == t->dtype))
    which++;
  if (which == WGMMA_COUNT) low_fail(l, op->loc, "there is no product of these types on the matrix unit");
  const bool at = ir_attr_i(op, ATTR_a_trans);
  const int64_t k = a->type->shape[at ? 0 : 1], warps = (int64_t)1 << layout->n[PLACE_WARP];
  const int64_t groups_m = row_groups(t);
  const uint32_t regs = layout_regs(layout);
  IrValue **ops = arena_array(l->arena, IrValue *, 2 + regs + (uint32_t)(ir_type_elems(a->type) / 64));
  const IrType **types = arena_array(l->arena, const IrType *, regs);
  uint32_t n = 0;
  if (a->type->kind == IR_TILE)
    n = group_fragments(l, op, a, ir_wgmma[which].k, (int)groups_m, ops);
  else
    ops[n++] = buffer_start(l, a);
  ops[n++] = buffer_start(l, b);
  if (c) {
    memcpy(ops + n, low_regs(l, c), regs * sizeof *ops);
    n += regs;
  }
  for (uint32_t r = 0; r < regs; r++) types[r] = ct;
  IrOp *made = ir_build(&l->b, OP_wgmma, n, ops, regs, types, 0);
  const int64_t product[5] = {t->shape[0], t->shape[1], k, groups_m, warps / 4 / groups_m};
  ir_set_attr_i(made, ATTR_wgmma, which);
  ir_set_attr_ints(made, ATTR_product, product, 5);
  if (at) ir_set_attr_i(made, ATTR_a_trans, 1);
  if (ir_attr_i(op, ATTR_b_trans)) ir_set_attr_i(made, ATTR_b_trans, 1);
  IrValue **out = low_new_regs(l, layout);
  for (uint32_t r = 0; r < regs; r++) out[r] = ir_result(made, r);
  low_set_regs(l, result, out);
}

void low_dot_wait(Low *l, IrOp *op) {
  uint32_t n = 0, at = 0;
  for (uint32_t i = 0; i < op->noperands; i++) n += layout_regs(low_layout(ir_operand(op, i)));
  IrValue **ops = arena_array(l->arena, IrValue *, n);
  const IrType **types = arena_array(l->arena, const IrType *, n);
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *v = ir_operand(op, i);
    for (uint32_t r = 0; r < layout_regs(low_layout(v)); r++) {
      ops[at] = low_thread(l, low_regs(l, v)[r]);
      types[at++] = low_elem(l, v->type);
    }
  }
  IrOp *made = ir_build(&l->b, OP_wgmma_wait, n, ops, n, types, 0);
  ir_set_attr_i(made, ATTR_pending, ir_attr_i(op, ATTR_pending));
  at = 0;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrLayout *layout = low_layout(ir_result(op, i));
    IrValue **out = low_new_regs(l, layout);
    for (uint32_t r = 0; r < layout_regs(layout); r++) out[r] = ir_result(made, at++);
    low_set_regs(l, ir_result(op, i), out);
  }
}

// ---- tiles of products to tensors -----------------------------------------------------------------------------------------------------
// Each warp takes its rows to the tensor, 128 bytes of each at a time, through two small buffers of its own (one, if that is all): no
// warp waits for another.
void low_strips(Low *l, IrOp *op) {
  IrValue *d = ir_operand(op, 0), *v = ir_operand(op, 1);
  const uint32_t rank = (uint32_t)d->type->rank;
  const IrType *t = ir_type_with_layout( // as a matrix: leading axes have size 1
      l->ctx,
      ir_type_with_shape(l->ctx, ir_type_with_layout(l->ctx, v->type, NULL), 2, &v->type->shape[rank - 2]),
      v->type->layout);
  const int64_t groups_m = row_groups(t), groups_n = l->m->num_warps / 4 / groups_m,
                width = t->shape[1] / groups_n;
  const int bytes = ir_dtypes[t->dtype].bytes;
  const int32_t strip[2] = {16, 128 / bytes};
  const IrLayout at = layout_swizzled(2, strip, (uint32_t)bytes);
  const int32_t strips = (int32_t)(t->shape[0] / 64 / groups_m * width / strip[1]), // of a warp
      buffers = strips > 1 ? 2 : 1;
  const IrType *mt = ir_type_with_layout(
      l->ctx, ir_type_memdesc(l->ctx, t->dtype, SPACE_shared, 2, strip, buffers * l->m->num_warps), &at);
  IrValue *mem = map_getp(&l->strip_mem, mt); // all tiles of a type pass through the same
  if (!mem) {
    IrBuilder top = ir_builder_before(l->f->body->first); // of the block: partitions may lie in between
    top.loc = op->loc;
    mem = ir_result(ir_build(&top, OP_mem_alloc, 0, NULL, 1, &mt, 0), 0);
    map_setp(&l->strip_mem, mt, mem);
  }
  // the warp's first row and column
  IrValue *group = low_bin(l, OP_shr_u, l->warp, low_i32(l, 2));
  IrValue *row = low_bin(l, OP_mul, low_bin(l, OP_and, l->warp, low_i32(l, 3)), low_i32(l, 16));
  IrValue *gm = low_bin(l, OP_and, group, low_i32(l, groups_m - 1)),
          *gn = low_bin(l, OP_shr_u, group, low_i32(l, bits_log2((uint64_t)groups_m)));
  row = low_bin(l, OP_add, row, low_bin(l, OP_mul, gm, low_i32(l, 64)));
  IrValue *col = low_bin(l, OP_mul, gn, low_i32(l, width)), *from[IR_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    IrValue *x = low_thread(l, ir_operand(op, 2 + i));
    if (x->type->dtype == IR_i64)
      x = ir_cast(&l->b, OP_trunc, x, ir_type_scalar(l->ctx, IR_i32, LEVEL_thread));
    from[i] = i + 2 < rank ? x : low_bin(l, OP_add, x, i + 1 == rank ? col : row);
  }
  IrValue **regs = low_regs(l, v);
  int64_t n = 0;
  for (int64_t block = 0; block < t->shape[0] / 64 / groups_m; block++) {
    for (int64_t c = 0; c < width; c += strip[1], n++) {
      IrValue *ops[2 + IR_MAX_RANK + 16] = {d, mem};
      memcpy(ops + 2, from, rank * sizeof *ops);
      ops[rank] = low_bin(l, OP_add, from[rank - 2], low_i32(l, block * 64 * groups_m));
      ops[rank + 1] = low_bin(l, OP_add, from[rank - 1], low_i32(l, c));
      low_words(l, regs, (uint32_t)(block * width / 2 + c / 2), 16, t->dtype, ops + 2 + rank);
      IrOp *put = ir_build(&l->b, OP_strip_store, 2 + rank + 16, ops, 0, NULL, 0);
      ir_set_attr_i(put, ATTR_strip, n);
      if (op->kind == OP_desc_rmw) ir_set_attr_i(put, ATTR_rmw, ir_attr_i(op, ATTR_rmw));
    }
  }
  l->strips = true;
}
