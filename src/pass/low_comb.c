// low_comb: reductions and scans in the lowered stage.
//
//   reduce   each thread combines what its registers hold along the axis; lanes that hold other parts of it exchange by xor
//            shuffles, after which all of them have the result; warps by shared memory, likewise
//   scan     the axis lies in registers and lanes (lay gives it so): a thread scans its run, the runs' totals are scanned over the lanes,
//            and each lane combines what came before it onto its own
#include "pass/low.h"

#include <string.h>

typedef struct Comb {
  Low *l;
  const IrOp *op;
  const IrType *t; // of the operands
  const IrLayout *layout;
  uint32_t n;          // operands
  IrValue ***in;       // [n] registers
  uint32_t low, field; // the axis' bits of the flat index
  uint32_t axis_mask;
} Comb;

static Comb comb_of(Low *l, const IrOp *op) {
  Comb c = {.l = l, .op = op, .t = ir_operand(op, 0)->type, .n = op->noperands};
  c.layout = c.t->layout;
  c.in = arena_array(l->arena, IrValue **, c.n);
  for (uint32_t i = 0; i < c.n; i++) c.in[i] = low_regs(l, ir_operand(op, i));
  const int axis = (int)ir_attr_i(op, ATTR_axis);
  for (int d = axis + 1; d < c.t->rank; d++) c.low += (uint32_t)bits_log2((uint64_t)c.t->shape[d]);
  c.field = (uint32_t)bits_log2((uint64_t)c.t->shape[axis]);
  c.axis_mask = ((1u << c.field) - 1) << c.low;
  return c;
}

static void shuffle(Comb *c, IrShfl how, IrValue *by, IrValue *const *v, IrValue **out) {
  for (uint32_t i = 0; i < c->n; i++) {
    IrValue *x = v[i], *ops[2];
    const IrType *own = x->type;
    Low *l = c->l;
    if (own->kind == IR_SCALAR && own->dtype == IR_i1) // lanes exchange whole words
      x = ir_cast(&l->b, OP_ext_u, x, ir_type_scalar(l->ctx, IR_i32, LEVEL_thread));
    ops[0] = x, ops[1] = by;
    IrOp *op = ir_build(&l->b, OP_shfl, 2, ops, 1, &x->type, 0);
    ir_set_attr_i(op, ATTR_shfl, how);
    out[i] = ir_result(op, 0);
    if (x->type != own) out[i] = ir_cast(&l->b, OP_trunc, out[i], own);
  }
}

// ---- reduce ------------------------------------------------------------------------------------------------------------------
// Warps that hold other parts of the axis meet in shared memory: each warp's holders put their partial results at (part, element).
static void across_warps(Comb *c, const IrType *rt, IrValue ***acc, uint32_t regs) {
  Low *l = c->l;
  const IrLayout *layout = c->layout;
  const uint32_t first = layout_first(layout, PLACE_WARP);
  uint32_t parts = 0, bits[LAYOUT_MAX_BITS];
  for (uint32_t i = 0; i < layout->n[PLACE_WARP]; i++) {
    if (layout->at[first + i] & c->axis_mask) bits[parts++] = i;
  }
  if (!parts) return;
  const int64_t elems = rt->kind == IR_TILE ? ir_type_elems(rt) : 1;
  IrValue *part = low_i32(l, 0); // which of the axis' parts this warp has
  for (uint32_t i = 0; i < parts; i++) {
    IrValue *bit = low_bin(l, OP_and, low_bin(l, OP_shr_u, l->warp, low_i32(l, bits[i])), low_i32(l, 1));
    part = low_bin(l, OP_or, part, low_bin(l, OP_shl, bit, low_i32(l, i)));
  }
  IrLayout slim; // of the results with one element: everyone holds it
  const IrType *tile = rt;
  if (rt->kind != IR_TILE) {
    const int32_t one = 1;
    slim = layout_replicated(0, layout->n[PLACE_LANE], layout->n[PLACE_WARP]);
    tile = ir_type_with_layout(l->ctx,
                               ir_type_is_ptr(rt) ? ir_type_ptr_tile(l->ctx, rt->dtype, rt->space, 1, &one)
                                                  : ir_type_tile(l->ctx, rt->dtype, 1, &one),
                               &slim);
  }
  // Of lanes and warps with the same element and part, one writes.
  uint32_t free = layout_free(tile->layout) >> tile->layout->n[PLACE_REG];
  for (uint32_t i = 0; i < parts; i++) free &= ~(1u << (layout->n[PLACE_LANE] + bits[i]));
  IrValue *writes =
      free ? ir_cmp(&l->b, CMP_eq, low_bin(l, OP_and, l->tid, low_i32(l, free)), low_i32(l, 0)) : NULL;
  const uint32_t copies = low_copies(tile->layout);
  LowBuf *bufs = arena_array(l->arena, LowBuf, c->n);
  for (uint32_t i = 0; i < c->n; i++) bufs[i] = low_scratch(l, acc[i][0]->type, elems << parts);
  low_barrier(l);
  for (uint32_t r = 0; r < regs; r++) {
    if (r & copies) continue;
    IrValue *at = low_bin(l, OP_add, low_bin(l, OP_mul, part, low_i32(l, elems)), low_index(l, tile, r));
    for (uint32_t i = 0; i < c->n; i++) low_put(l, &bufs[i], at, acc[i][r], writes);
  }
  low_barrier(l);
  IrValue **x = arena_array(l->arena, IrValue *, c->n), **y = arena_array(l->arena, IrValue *, c->n);
  for (uint32_t r = 0; r < regs; r++) {
    if (r & copies) continue;
    IrValue *own = low_index(l, tile, r);
    for (uint32_t k = 0; k < 1u << parts; k++) {
      IrValue *at = k ? low_bin(l, OP_add, own, low_i32(l, elems * k)) : own;
      for (uint32_t i = 0; i < c->n; i++) y[i] = low_get(l, &bufs[i], at);
      if (k)
        low_combine(l, c->op->regions[0], c->n, x, y, x);
      else
        memcpy(x, y, sizeof *x * c->n);
    }
    for (uint32_t i = 0; i < c->n; i++) acc[i][r] = x[i];
  }
  for (uint32_t i = 0; i < c->n; i++) low_fill_copies(tile->layout, acc[i]);
}

// Does it give the same bits whichever side comes first?
static bool commutes(const IrBlock *region, uint32_t n) {
  const IrOp *end = ir_terminator(region);
  for (uint32_t i = 0; i < n; i++) {
    const IrOp *op = ir_operand(end, i)->def;
    const IrValue *a = region->args.data[i], *b = region->args.data[n + i];
    if (!op || op->parent != region || op->noperands != 2 || !(ir_ops[op->kind].traits & TRAIT_COMMUTATIVE))
      return false;
    const IrValue *x = ir_operand(op, 0), *y = ir_operand(op, 1);
    if (!(x == a && y == b) && !(x == b && y == a)) return false;
  }
  return true;
}

// Of two lanes that exchange, both put the lower's part first, so that both get the same bits.
static void in_order(Comb *c, uint32_t lane_bit, IrValue **x, IrValue **y) {
  Low *l = c->l;
  IrValue *upper =
      ir_cmp(&l->b, CMP_ne, low_bin(l, OP_and, l->lane, low_i32(l, 1 << lane_bit)), low_i32(l, 0));
  for (uint32_t i = 0; i < c->n; i++) {
    IrValue *own = x[i], *other = y[i];
    x[i] = ir_select(&l->b, upper, other, own);
    y[i] = ir_select(&l->b, upper, own, other);
  }
}

// The registers `from` with all subsets of the bits `along`, combined in order.
static void chain(Comb *c, uint32_t from, uint32_t along, IrValue **x) {
  IrValue **y = arena_array(c->l->arena, IrValue *, c->n);
  for (uint32_t i = 0; i < c->n; i++) x[i] = c->in[i][from];
  for (uint32_t s = 0; s != along;) {
    s = (s - along) & along;
    for (uint32_t i = 0; i < c->n; i++) y[i] = c->in[i][from | s];
    low_combine(c->l, c->op->regions[0], c->n, x, y, x);
  }
}

void low_reduce(Low *l, IrOp *op) {
  Comb c = comb_of(l, op);
  const bool alike = commutes(op->regions[0], c.n);
  const IrType *rt = op->results[0].type;
  // Registers of the result: those of the operand without the axis' (lay made the result's layout so).
  uint32_t along = 0, kept[LAYOUT_MAX_BITS], nkept = 0;
  const uint32_t copies = low_copies(c.layout);
  for (uint32_t i = 0; i < c.layout->n[PLACE_REG]; i++) {
    if (copies >> i & 1) continue;
    if (c.layout->at[i] & c.axis_mask)
      along |= 1u << i;
    else
      kept[nkept++] = i;
  }
  const uint32_t regs = 1u << nkept;
  IrValue ***acc = arena_array(l->arena, IrValue **, c.n);
  for (uint32_t i = 0; i < c.n; i++) acc[i] = arena_array(l->arena, IrValue *, regs);
  IrValue **x = arena_array(l->arena, IrValue *, c.n), **y = arena_array(l->arena, IrValue *, c.n);
  // The two halves of many apart: neither waits for the other's results.
  const uint32_t top = __builtin_popcount(along) < 3 ? 0 : 1u << (31 - __builtin_clz(along));
  for (uint32_t r = 0; r < regs; r++) {
    uint32_t from = 0;
    for (uint32_t i = 0; i < nkept; i++) from |= (r >> i & 1) << kept[i];
    chain(&c, from, along & ~top, x);
    if (top) {
      chain(&c, from | top, along & ~top, y);
      low_combine(l, op->regions[0], c.n, x, y, x);
    }
    for (uint32_t i = 0; i < c.layout->n[PLACE_LANE]; i++) {
      if (!(c.layout->at[c.layout->n[PLACE_REG] + i] & c.axis_mask)) continue;
      shuffle(&c, SHFL_xor, low_i32(l, 1 << i), x, y);
      if (!alike) in_order(&c, i, x, y);
      low_combine(l, op->regions[0], c.n, x, y, x);
    }
    for (uint32_t i = 0; i < c.n; i++) acc[i][r] = x[i];
  }
  across_warps(&c, rt, acc, regs);
  for (uint32_t i = 0; i < c.n; i++) {
    IrValue *result = ir_result(op, i);
    if (result->type->kind == IR_TILE) {
      low_set_regs(l, result, acc[i]);
      continue;
    }
    ir_replace_uses(result, low_from_all(l, acc[i][0], result->type));
  }
}

// ---- scan ----------------------------------------------------------------------------------------------------------------------
void low_scan(Low *l, IrOp *op) {
  Comb c = comb_of(l, op);
  const bool reverse = ir_attr_i(op, ATTR_reverse);
  const IrLayout *layout = c.layout;
  const uint32_t copies = low_copies(layout), regs = layout_regs(layout);
  // The axis' bits: first registers (a run in the thread), then lanes, neighbours in both.
  uint32_t run[LAYOUT_MAX_BITS], nrun = 0, lane_low = 0, nlanes = 0;
  while (nrun < c.field) {
    uint32_t i = 0;
    while (i < layout->n[PLACE_REG] && layout->at[i] != 1u << (c.low + nrun)) i++;
    if (i == layout->n[PLACE_REG]) break;
    run[nrun++] = i;
  }
  for (uint32_t i = 0; i < layout->n[PLACE_LANE] && nrun + nlanes < c.field; i++) {
    if (layout->at[layout->n[PLACE_REG] + i] != 1u << (c.low + nrun + nlanes)) continue;
    if (!nlanes) lane_low = i;
    if (i != lane_low + nlanes) low_fail(l, op->loc, "this scan's layout is not supported");
    nlanes++;
  }
  if (nrun + nlanes != c.field) low_fail(l, op->loc, "this scan's layout is not supported");
  uint32_t along = 0;
  for (uint32_t i = 0; i < nrun; i++) along |= 1u << run[i];
  IrValue ***out = arena_array(l->arena, IrValue **, c.n);
  for (uint32_t i = 0; i < c.n; i++) out[i] = arena_array(l->arena, IrValue *, regs);
  IrValue **x = arena_array(l->arena, IrValue *, c.n), **y = arena_array(l->arena, IrValue *, c.n),
          **z = arena_array(l->arena, IrValue *, c.n);
  IrValue *place =
      low_bin(l, OP_and, low_bin(l, OP_shr_u, l->lane, low_i32(l, lane_low)), low_i32(l, (1 << nlanes) - 1));
  if (reverse) place = low_bin(l, OP_sub, low_i32(l, (1 << nlanes) - 1), place);
  const IrShfl before = reverse ? SHFL_down : SHFL_up;
  for (uint32_t r = 0; r < regs; r++) {
    if (r & (copies | along)) continue;
    for (uint32_t k = 0; k < 1u << nrun; k++) { // the thread's own run
      const uint32_t step = reverse ? (1u << nrun) - 1 - k : k;
      uint32_t at = r;
      for (uint32_t i = 0; i < nrun; i++) at |= (step >> i & 1) << run[i];
      for (uint32_t i = 0; i < c.n; i++) y[i] = c.in[i][at];
      if (k)
        low_combine(l, op->regions[0], c.n, x, y, x);
      else
        memcpy(x, y, sizeof *x * c.n);
      for (uint32_t i = 0; i < c.n; i++) out[i][at] = x[i];
    }
    if (!nlanes) continue;
    for (uint32_t d = 1; d < 1u << nlanes; d *= 2) { // x: totals, inclusive over the lanes
      shuffle(&c, before, low_i32(l, (int64_t)d << lane_low), x, y);
      low_combine(l, op->regions[0], c.n, y, x, z);
      IrValue *has = ir_cmp(&l->b, CMP_sge, place, low_i32(l, d));
      for (uint32_t i = 0; i < c.n; i++) x[i] = ir_select(&l->b, has, z[i], x[i]);
    }
    shuffle(&c, before, low_i32(l, 1 << lane_low), x, y); // what came before this lane
    IrValue *has = ir_cmp(&l->b, CMP_sgt, place, low_i32(l, 0));
    for (uint32_t k = 0; k < 1u << nrun; k++) {
      uint32_t at = r;
      for (uint32_t i = 0; i < nrun; i++) at |= (k >> i & 1) << run[i];
      for (uint32_t i = 0; i < c.n; i++) x[i] = out[i][at];
      low_combine(l, op->regions[0], c.n, y, x, z);
      for (uint32_t i = 0; i < c.n; i++) out[i][at] = ir_select(&l->b, has, z[i], x[i]);
    }
  }
  for (uint32_t i = 0; i < c.n; i++) {
    low_fill_copies(layout, out[i]);
    low_set_regs(l, ir_result(op, i), out[i]);
  }
}
