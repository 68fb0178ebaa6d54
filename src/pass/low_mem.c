// low_mem: memory in the lowered stage.
//
// Tiles: neighbours that a thread holds go in one pack where the axis analysis knows that their addresses are neighbours, aligned
// and under one mask. Of places that hold the same element one acts on memory; all get the result.
// Scalars: what happens once a program is done by thread 0, its result handed round. A load that meets no write of this kernel
// may be done by everyone.
#include "pass/low.h"

#include <string.h>

// ---- scratch in shared memory --------------------------------------------------------------------------------------------------
LowBuf low_scratch(Low *l, const IrType *elem, int64_t n) {
  const bool is_ptr = ir_type_is_ptr(elem), as_int = is_ptr || elem->dtype == IR_i1;
  const IrDtype d = is_ptr ? IR_i64 : elem->dtype == IR_i1 ? IR_i8 : elem->dtype;
  const int32_t count = (int32_t)n;
  const IrType *t = ir_type_memdesc(l->ctx, d, SPACE_shared, 1, &count, 0),
               *pt = ir_type_ptr(l->ctx, d, SPACE_shared, LEVEL_thread);
  IrValue *mem = ir_result(ir_build(&l->b, OP_mem_alloc, 0, NULL, 1, &t, 0), 0);
  return (LowBuf){ir_result(ir_build(&l->b, OP_mem_ptr, 1, &mem, 1, &pt, 0), 0), elem, as_int, NULL};
}

static const IrType *stored(Low *l, const LowBuf *b) {
  return ir_type_scalar(l->ctx, b->ptr->type->dtype, LEVEL_thread);
}
static IrValue *pack_in(Low *l, const LowBuf *b, IrValue *v) {
  return !b->as_int ? v : ir_cast(&l->b, ir_type_is_ptr(b->elem) ? OP_ptr2int : OP_ext_u, v, stored(l, b));
}
static IrValue *pack_out(Low *l, const LowBuf *b, IrValue *v) {
  return !b->as_int ? v : ir_cast(&l->b, ir_type_is_ptr(b->elem) ? OP_int2ptr : OP_trunc, v, b->elem);
}

static void put_pack(Low *l, const LowBuf *b, IrValue *index, IrValue *const *v, uint32_t n, IrValue *mask) {
  IrValue *ops[18] = {ir_ptr_add(&l->b, b->ptr, index), mask};
  for (uint32_t i = 0; i < n; i++) ops[2 + i] = pack_in(l, b, v[i]);
  ir_build(&l->b, OP_store_pack, 2 + n, ops, 0, NULL, 0);
}
static void get_pack(Low *l, const LowBuf *b, IrValue *index, IrValue **out, uint32_t n) {
  IrValue *ops[3] = {ir_ptr_add(&l->b, b->ptr, index), NULL, NULL};
  const IrType *types[16];
  for (uint32_t i = 0; i < n; i++) types[i] = stored(l, b);
  IrOp *op = ir_build(&l->b, OP_load_pack, 3, ops, n, types, 0);
  for (uint32_t i = 0; i < n; i++) out[i] = pack_out(l, b, ir_result(op, i));
}

void low_put(Low *l, const LowBuf *b, IrValue *index, IrValue *v, IrValue *mask) {
  put_pack(l, b, index, &v, 1, mask);
}
IrValue *low_get(Low *l, const LowBuf *b, IrValue *index) {
  IrValue *v;
  get_pack(l, b, index, &v, 1);
  return v;
}

// Register bits of a run: those of consecutive flat indices.
typedef struct Run {
  uint8_t bit[4];
  uint32_t log, mask;
} Run;
static Run run_of(const IrLayout *layout, uint32_t low, uint32_t bits, uint32_t most) {
  Run r = {.log = layout_run(layout, low, bits, most, r.bit)};
  for (uint32_t i = 0; i < r.log; i++) r.mask |= 1u << r.bit[i];
  return r;
}
static uint32_t run_reg(const Run *r, uint32_t first, uint32_t k) {
  for (uint32_t i = 0; i < r->log; i++) first |= (k >> i & 1) << r->bit[i];
  return first;
}

// ---- swizzles and ldmatrix
// A tile's layout with offsets in the buffer in place of indices.
static const IrType *placed_in(Low *l, const LowBuf *b, const IrType *tile) {
  if (!b->layout) return tile;
  const IrLayout at = layout_in_memory(b->layout, tile->layout);
  return ir_type_with_layout(l->ctx, tile, &at);
}

static IrValue *place_of(Low *l, const LowBuf *b, const IrType *tile, uint32_t reg) {
  return low_index(l, placed_in(l, b, tile), reg);
}

void low_swizzle(Low *l, LowBuf *b, const IrType *tile) {
  const uint32_t bytes = (uint32_t)ir_dtypes[tile->dtype].bytes;
  if (tile->rank != 2 || tile->shape[1] * (int32_t)bytes < 32) return;
  const IrLayout at = layout_swizzled(2, tile->shape, bytes);
  b->layout = ir_type_with_layout(l->ctx, tile, &at)->layout;
}

bool low_is_matrix(const IrType *tile, bool *transposed) {
  const IrLayout *y = tile->layout;
  if (tile->rank != 2 || tile->ptr_elem || ir_dtypes[tile->dtype].bits != 16 || y->n[PLACE_LANE] != 5 ||
      !y->n[PLACE_REG])
    return false;
  const uint32_t cols = (uint32_t)tile->shape[1], *lane = &y->at[y->n[PLACE_REG]];
  if (cols < 8 || tile->shape[0] < 8) return false;
  const bool rows = y->at[0] == 1 && lane[0] == 2 && lane[1] == 4 && lane[2] == cols && lane[3] == 2 * cols &&
                    lane[4] == 4 * cols;
  *transposed = y->at[0] == cols && lane[0] == 2 * cols && lane[1] == 4 * cols && lane[2] == 1 &&
                lane[3] == 2 && lane[4] == 4;
  return rows || *transposed;
}

// Lanes 8 i + j address row j of matrix i; register bits 1 and 2, where there are, choose the matrix.
void low_fetch_matrix(Low *l, const LowBuf *b, const IrType *tile, bool transposed, IrValue **regs) {
  const IrLayout *y = tile->layout;
  const uint32_t copies = low_copies(y), cols = (uint32_t)tile->shape[1];
  const IrType *i32 = ir_type_scalar(l->ctx, IR_i32, LEVEL_thread),
               *i16 = ir_type_scalar(l->ctx, IR_i16, LEVEL_thread);
  const IrType *types[] = {i32, i32, i32, i32}, *elem = low_elem(l, tile);
  uint32_t more = 0; // matrices: log2
  while (more < 2 && 1 + more < y->n[PLACE_REG] && !(copies >> (1 + more) & 1)) more++;
  IrLayout rows = *y; // where a lane reads: as the layout, but lane bits are the row's and the matrix'
  for (uint32_t i = 0; i < 3; i++) rows.at[y->n[PLACE_REG] + i] = cols << i;
  for (uint32_t i = 0; i < 2; i++) rows.at[y->n[PLACE_REG] + 3 + i] = i < more ? y->at[1 + i] : 0;
  const IrType *where = ir_type_with_layout(l->ctx, tile, &rows);
  for (uint32_t r = 0; r < layout_regs(y); r++) {
    if (r & (copies | ((2u << more) - 1))) continue;
    IrValue *p = ir_ptr_add(&l->b, b->ptr, place_of(l, b, where, r));
    IrOp *op = ir_build(&l->b, OP_ldmatrix, 1, &p, 1u << more, types, 0);
    if (transposed) ir_set_attr_i(op, ATTR_transposed, 1);
    for (uint32_t m = 0; m < 1u << more; m++) {
      IrValue *pair = ir_result(op, m);
      IrValue *low = ir_cast(&l->b, OP_trunc, pair, i16),
              *high = ir_cast(&l->b, OP_trunc, low_bin(l, OP_shr_u, pair, low_i32(l, 16)), i16);
      const uint32_t at = r | m << 1;
      regs[at] = elem->dtype == IR_i16 ? low : ir_cast(&l->b, OP_bitcast, low, elem);
      regs[at | 1] = elem->dtype == IR_i16 ? high : ir_cast(&l->b, OP_bitcast, high, elem);
    }
  }
  low_fill_copies(y, regs);
}

void low_spill(Low *l, const LowBuf *b, const IrType *tile, IrValue **regs) {
  const IrLayout *layout = tile->layout;
  const uint32_t copies = low_copies(layout), elems = (uint32_t)bits_log2((uint64_t)ir_type_elems(tile));
  const Run run = run_of(layout, 0, elems, (uint32_t)bits_log2(16u / ir_dtypes[b->ptr->type->dtype].bytes));
  IrValue *holder = low_holder(l, layout), *v[16];
  for (uint32_t r = 0; r < layout_regs(layout); r++) {
    if (r & (copies | run.mask)) continue;
    for (uint32_t k = 0; k < 1u << run.log; k++) v[k] = regs[run_reg(&run, r, k)];
    put_pack(l, b, place_of(l, b, tile, r), v, 1u << run.log, holder);
  }
}

void low_fetch(Low *l, const LowBuf *b, const IrType *tile, IrValue **regs) {
  const IrLayout *layout = tile->layout;
  const uint32_t copies = low_copies(layout), elems = (uint32_t)bits_log2((uint64_t)ir_type_elems(tile));
  const Run run = run_of(layout, 0, elems, (uint32_t)bits_log2(16u / ir_dtypes[b->ptr->type->dtype].bytes));
  IrValue *v[16];
  for (uint32_t r = 0; r < layout_regs(layout); r++) {
    if (r & (copies | run.mask)) continue;
    get_pack(l, b, place_of(l, b, tile, r), v, 1u << run.log);
    for (uint32_t k = 0; k < 1u << run.log; k++) regs[run_reg(&run, r, k)] = v[k];
  }
  low_fill_copies(layout, regs);
}

// Lanes and warps stand for the same indices in both, and each register of `to` is one of `from`.
static bool only_registers(const IrLayout *from, const IrLayout *to, uint32_t *of) {
  const uint32_t f = from->n[PLACE_REG], t = to->n[PLACE_REG], rest = layout_bits(to) - t;
  if (layout_bits(from) - f != rest || memcmp(&from->at[f], &to->at[t], rest * sizeof from->at[0]) != 0)
    return false;
  IrLayout own = *from;
  own.n[PLACE_LANE] = own.n[PLACE_WARP] = 0;
  for (uint32_t r = 0; r < layout_regs(to); r++) {
    if (!layout_find(&own, layout_index(to, r), &of[r])) return false;
  }
  return true;
}

// Scratch for a tile on its way from one layout to another, in the order that the second is fetched best from.
static LowBuf scratch_between(Low *l, const IrType *from, const IrType *to, bool within) {
  LowBuf b = low_scratch(l, low_elem(l, from), ir_type_elems(from));
  const uint32_t bytes = ir_dtypes[b.ptr->type->dtype].bytes;
  pass_remark(l->pass, l->b.loc,
              "this value goes from one layout to another through %lld bytes of shared memory%s",
              (long long)ir_type_elems(from) * bytes, within ? ", each warp for itself" : "");
  bool transposed;
  LowBuf swizzled = b;
  low_swizzle(l, &swizzled, from);
  if (low_is_matrix(to, &transposed)) return swizzled;
  const uint32_t plain =
                     low_access_cost(NULL, from->layout, bytes) + low_access_cost(NULL, to->layout, bytes),
                 other = low_access_cost(swizzled.layout, from->layout, bytes) +
                         low_access_cost(swizzled.layout, to->layout, bytes);
  return other < plain ? swizzled : b;
}
static void fetch(Low *l, const LowBuf *b, const IrType *to, IrValue **out) {
  bool transposed;
  if (low_is_matrix(to, &transposed))
    low_fetch_matrix(l, b, to, transposed, out);
  else
    low_fetch(l, b, to, out);
}

static void meet(Low *l, bool warp_only) {
  if (warp_only)
    ir_build(&l->b, OP_warp_barrier, 0, NULL, 0, NULL, 0);
  else
    low_barrier(l);
}

void low_move(Low *l, const IrType *from, IrValue **regs, const IrType *to, IrValue **out) {
  uint32_t *of = arena_array(l->arena, uint32_t, layout_regs(to->layout));
  if (only_registers(from->layout, to->layout, of)) {
    for (uint32_t r = 0; r < layout_regs(to->layout); r++) out[r] = regs[of[r]];
    return;
  }
  if (low_move_lanes(l, from, regs, to, out)) return;
  const bool alone = low_within_warps(from->layout, to->layout);
  const LowBuf b = scratch_between(l, from, to, alone);
  meet(l, alone);
  low_spill(l, &b, from, regs);
  meet(l, alone);
  fetch(l, &b, to, out);
}

bool low_is_renumbering(Low *l, const IrOp *relayout) {
  const IrType *to = relayout->results[0].type;
  return only_registers(ir_operand(relayout, 0)->type->layout, to->layout,
                        arena_array(l->arena, uint32_t, layout_regs(to->layout)));
}

void low_move_together(Low *l, IrOp *const *all, uint32_t nall) {
  LowBuf *bufs = arena_array(l->arena, LowBuf, nall);
  IrOp **relayouts = arena_array(l->arena, IrOp *, nall);
  uint32_t n = 0;
  for (uint32_t i = 0; i < nall; i++) {
    IrValue *from = ir_operand(all[i], 0), *to = ir_result(all[i], 0),
            **out = low_new_regs(l, low_layout(to));
    if (low_move_lanes(l, from->type, low_regs(l, from), to->type, out))
      low_set_regs(l, to, out);
    else
      relayouts[n++] = all[i];
  }
  if (!n) return;
  for (uint32_t i = 0; i < n; i++)
    bufs[i] = scratch_between(l, ir_operand(relayouts[i], 0)->type, relayouts[i]->results[0].type, false);
  low_barrier(l);
  for (uint32_t i = 0; i < n; i++) {
    IrValue *from = ir_operand(relayouts[i], 0);
    low_spill(l, &bufs[i], from->type, low_regs(l, from));
  }
  low_barrier(l);
  for (uint32_t i = 0; i < n; i++) {
    IrValue *to = ir_result(relayouts[i], 0), **out = low_new_regs(l, low_layout(to));
    fetch(l, &bufs[i], to->type, out);
    low_set_regs(l, to, out);
  }
}

// ---- tiles of pointers ----------------------------------------------------------------------------------------------------------
static void copy_access(IrOp *to, const IrOp *from) {
  static const IrAttrName names[] = {ATTR_order, ATTR_scope, ATTR_cache, ATTR_evict, ATTR_volatile, ATTR_rmw};
  for (size_t i = 0; i < DT_COUNTOF(names); i++) {
    if (ir_attr(from, names[i])) ir_set_attr_i(to, names[i], ir_attr_i(from, names[i]));
  }
  if (ir_attr(from, ATTR_label)) ir_set_attr_s(to, ATTR_label, ir_attr(from, ATTR_label)->s);
}

// Addresses of the registers. Where the axis analysis knows a run of neighbours, those of one run are the first one's and a constant:
// one address a row instead of one an element.
static IrValue **addresses(Low *l, IrValue *p) {
  IrValue **ps = low_regs(l, p), **out;
  const IrLayout *layout = low_layout(p);
  const uint32_t regs = layout_regs(layout), nregs = layout->n[PLACE_REG];
  if (p->id >= l->nvalues || regs == 1) return ps;
  const PassAxis *x = pass_axis(l->axes, p);
  uint32_t mask = 0, low = 0;
  int64_t delta[32] = {0};
  for (int d = p->type->rank - 1; d >= 0; d--) {
    const uint32_t size = p->type->shape[d] > 1 ? (uint32_t)bits_log2((uint64_t)p->type->shape[d]) : 0,
                   run = (uint32_t)bits_log2((uint64_t)x->contig[d]);
    for (uint32_t i = 0; i < nregs; i++) {
      if (!bits_pow2(layout->at[i])) continue;
      const uint32_t bit = (uint32_t)bits_log2(layout->at[i]);
      if (bit < low || bit >= low + size || bit >= low + run) continue;
      bool alone = true; // no other place moves along that bit
      for (uint32_t k = 0; k < layout_bits(layout); k++) alone &= k == i || !(layout->at[k] & layout->at[i]);
      if (!alone) continue;
      mask |= 1u << i;
      delta[i] = (int64_t)1 << (bit - low);
    }
    low += size;
  }
  if (!mask) return ps;
  out = arena_array(l->arena, IrValue *, regs);
  for (uint32_t r = 0; r < regs; r++) {
    int64_t at = 0;
    for (uint32_t i = 0; i < nregs; i++) at += (r & mask) >> i & 1 ? delta[i] : 0;
    out[r] = at ? ir_ptr_add(&l->b, ps[r & ~mask], low_i32(l, at)) : ps[r];
  }
  return out;
}

// The registers of neighbours that one instruction may move.
static Run access_run(Low *l, const IrOp *op, const IrValue *mask, const IrValue *other) {
  const IrValue *p = ir_operand(op, 0);
  const IrType *t = p->type;
  const IrOrder most_order = op->kind == OP_atomic_rmw ? ORDER_relaxed : ORDER_weak;
  uint64_t bits;
  if (p->id >= l->nvalues || ir_attr_i(op, ATTR_order) > (int64_t)most_order ||
      ir_attr_i(op, ATTR_volatile) || t->dtype == IR_i1)
    return (Run){0};
  if (other && !pass_const(other, &bits) && !(other->def && other->def->kind == OP_splat)) return (Run){0};
  uint32_t low = 0;
  for (int d = t->rank - 1; d >= 0; d--) {
    const uint32_t size = t->shape[d] > 1 ? (uint32_t)bits_log2((uint64_t)t->shape[d]) : 0;
    const int32_t most = lay_neighbours(l->axes, p, mask, d);
    if (most > 1 && size) {
      const Run r = run_of(t->layout, low, size, (uint32_t)bits_log2((uint64_t)most));
      if (r.log) return r;
    }
    low += size;
  }
  return (Run){0};
}

static void low_tile_load(Low *l, IrOp *op) {
  IrValue *p = ir_operand(op, 0), *mask = ir_operand(op, 1), *other = ir_operand(op, 2);
  const IrType *t = op->results[0].type, *elem = low_elem(l, t);
  IrValue **ps = addresses(l, p), **ms = mask ? low_regs(l, mask) : NULL,
          **os = other ? low_regs(l, other) : NULL;
  IrValue **out = low_new_regs(l, t->layout);
  const uint32_t copies = low_copies(t->layout);
  const Run run = access_run(l, op, mask, other);
  for (uint32_t r = 0; r < layout_regs(t->layout); r++) {
    if (r & (copies | run.mask)) continue;
    IrValue *ops[3] = {ps[r], ms ? ms[r] : NULL, os ? os[r] : NULL};
    const IrType *types[16];
    const uint32_t n = 1u << run.log;
    for (uint32_t k = 0; k < n; k++) types[k] = elem;
    IrOp *made = ir_build(&l->b, n > 1 ? OP_load_pack : OP_load, 3, ops, n, types, 0);
    copy_access(made, op);
    for (uint32_t k = 0; k < n; k++) out[run_reg(&run, r, k)] = ir_result(made, k);
  }
  low_fill_copies(t->layout, out);
  low_set_regs(l, ir_result(op, 0), out);
}

static void low_tile_store(Low *l, IrOp *op) {
  IrValue *p = ir_operand(op, 0), *v = ir_operand(op, 1), *mask = ir_operand(op, 2);
  const IrLayout *layout = low_layout(p);
  IrValue **ps = addresses(l, p), **vs = low_regs(l, v), **ms = mask ? low_regs(l, mask) : NULL;
  const uint32_t copies = low_copies(layout);
  const Run run = access_run(l, op, mask, NULL);
  IrValue *holder = low_holder(l, layout);
  for (uint32_t r = 0; r < layout_regs(layout); r++) {
    if (r & (copies | run.mask)) continue;
    const uint32_t n = 1u << run.log;
    IrValue *m = low_and(l, ms ? ms[r] : NULL, holder), *ops[18];
    IrOp *made;
    if (n > 1) {
      ops[0] = ps[r], ops[1] = m;
      for (uint32_t k = 0; k < n; k++) ops[2 + k] = vs[run_reg(&run, r, k)];
      made = ir_build(&l->b, OP_store_pack, 2 + n, ops, 0, NULL, 0);
    } else {
      ops[0] = ps[r], ops[1] = vs[r], ops[2] = m;
      made = ir_build(&l->b, OP_store, 3, ops, 0, NULL, 0);
    }
    copy_access(made, op);
  }
}

// Neighbours are added to by one instruction, where nobody asks what was there.
static bool low_tile_add(Low *l, IrOp *op) {
  IrValue *p = ir_operand(op, 0), *mask = ir_operand(op, 2);
  const IrLayout *layout = low_layout(p);
  if (op->kind != OP_atomic_rmw || op->results[0].uses || ir_attr_i(op, ATTR_rmw) != RMW_fadd ||
      p->type->dtype != IR_f32)
    return false;
  const Run run = access_run(l, op, mask, NULL);
  if (!run.log) return false;
  IrValue **ps = addresses(l, p), **vs = low_regs(l, ir_operand(op, 1)),
          **ms = mask ? low_regs(l, mask) : NULL;
  IrValue *holder = low_holder(l, layout);
  const uint32_t regs = layout_regs(layout), n = 1u << run.log;
  bool *done = arena_array(l->arena, bool, regs);
  for (uint32_t first = 0; first < regs; first++) { // those under one mask under one branch
    if ((first & (low_copies(layout) | run.mask)) || done[first]) continue;
    IrValue *m = low_and(l, ms ? ms[first] : NULL, holder);
    const IrBuilder keep = l->b;
    if (m) low_if(l, m, &l->b);
    for (uint32_t r = first; r < regs; r++) {
      if ((r & (low_copies(layout) | run.mask)) || (ms && ms[r] != ms[first])) continue;
      IrValue *ops[18] = {ps[r], NULL};
      for (uint32_t k = 0; k < n; k++) ops[2 + k] = vs[run_reg(&run, r, k)];
      IrOp *made = ir_build(&l->b, OP_add_pack, 2 + n, ops, 0, NULL, 0);
      copy_access(made, op);
      ir_del_attr(made, ATTR_rmw);
      done[r] = true;
    }
    l->b = keep;
  }
  IrValue **none = low_new_regs(l, layout); // unread
  for (uint32_t r = 0; r < layout_regs(layout); r++) none[r] = vs[r];
  low_set_regs(l, ir_result(op, 0), none);
  return true;
}

static void low_tile_atomic(Low *l, IrOp *op) {
  if (low_tile_add(l, op)) return;
  IrValue *p = ir_operand(op, 0);
  const IrType *t = op->results[0].type, *elem = low_elem(l, t);
  const bool cas = op->kind == OP_atomic_cas;
  IrValue **ps = addresses(l, p), **a = low_regs(l, ir_operand(op, 1));
  IrValue **c = ir_operand(op, 2) ? low_regs(l, ir_operand(op, 2)) : NULL, **out = low_new_regs(l, t->layout);
  const uint32_t copies = low_copies(t->layout);
  IrValue *holder = low_holder(l, t->layout);
  if (cas && holder) { // without a mask of its own: under an if, the result through shared memory
    const bool used = op->results[0].uses != NULL;
    const LowBuf b = low_scratch(l, elem, ir_type_elems(t));
    low_barrier(l);
    const IrBuilder keep = l->b;
    low_if(l, holder, &l->b);
    for (uint32_t r = 0; r < layout_regs(t->layout); r++) {
      if (r & copies) continue;
      IrValue *ops[3] = {ps[r], a[r], c[r]};
      IrOp *made = ir_build(&l->b, OP_atomic_cas, 3, ops, 1, &elem, 0);
      copy_access(made, op);
      if (used) low_put(l, &b, low_index(l, t, r), ir_result(made, 0), NULL);
    }
    l->b = keep;
    low_barrier(l);
    low_fetch(l, &b, t, out);
    low_set_regs(l, ir_result(op, 0), out);
    return;
  }
  for (uint32_t r = 0; r < layout_regs(t->layout); r++) {
    if (r & copies) continue;
    IrValue *ops[3] = {ps[r], a[r], cas ? c[r] : low_and(l, c ? c[r] : NULL, holder)};
    IrOp *made = ir_build(&l->b, op->kind, 3, ops, 1, &elem, 0);
    copy_access(made, op);
    out[r] = ir_result(made, 0);
  }
  low_fill_copies(t->layout, out);
  if (holder && op->results[0].uses) { // those that did not act get the old values too
    const LowBuf b = low_scratch(l, elem, ir_type_elems(t));
    low_barrier(l);
    low_spill(l, &b, t, out);
    low_barrier(l);
    low_fetch(l, &b, t, out);
  }
  low_set_regs(l, ir_result(op, 0), out);
}

// ---- scalars of the program ---------------------------------------------------------------------------------------------------------
#define ROOTS_ANY (PASS_ROOT_UNKNOWN | PASS_ROOT_PEER)

static bool note_access(IrOp *op, void *user) {
  Low *l = user;
  const IrEffects e = ir_op_effects(op);
  if (op->nregions || !((e.reads | e.writes) & (RES_GLOBAL | RES_SYMM))) return true;
  const IrValue *p = ir_operand(op, 0);
  const bool known =
      p && (p->type->kind == IR_DESC || (ir_type_is_ptr(p->type) && !(e.async_writes | e.async_reads)));
  const uint64_t roots = known ? pass_roots(l->roots, p) : PASS_ROOT_UNKNOWN;
  vec_push(l->arena, &l->accesses, ((LowAccess){op, roots, (e.writes & (RES_GLOBAL | RES_SYMM)) != 0}));
  return true;
}
void low_note_accesses(Low *l) {
  l->accesses.len = 0;
  ir_walk(l->f->body, note_access, l);
}

// May another access of this kernel, one of the two a write, touch what op does?
static bool conflicts(Low *l, const IrOp *op) {
  const uint64_t own = pass_roots(l->roots, ir_operand(op, 0));
  const bool write = op->kind != OP_load;
  for (uint32_t i = 0; i < l->accesses.len; i++) {
    const LowAccess *a = &l->accesses.data[i];
    if (a->op == op || !(write || a->writes)) continue;
    if ((a->roots & own) || ((a->roots | own) & ROOTS_ANY)) return true;
  }
  return false;
}

// Thread 0 does it; the result, if anyone wants it, goes round: through shared memory, in a single warp by a shuffle.
static void once(Low *l, IrOp *op) {
  const bool result = op->nresults && op->results[0].uses;
  const IrType *t = op->nresults ? ir_type_with_level(l->ctx, op->results[0].type, LEVEL_thread) : NULL;
  IrValue *ops[3] = {0};
  for (uint32_t i = 0; i < op->noperands; i++) ops[i] = low_thread(l, ir_operand(op, i));
  IrValue *first = ir_cmp(&l->b, CMP_eq, l->tid, low_i32(l, 0));
  if (l->m->num_warps > 1) {
    const LowBuf buf = result ? low_scratch(l, t, 1) : (LowBuf){0};
    const IrBuilder keep = l->b;
    IrValue *zero = low_i32(l, 0);
    if (result) low_barrier(l);
    low_if(l, first, &l->b);
    IrOp *made = ir_build(&l->b, op->kind, op->noperands, ops, op->nresults, &t, 0);
    copy_access(made, op);
    if (result) low_put(l, &buf, zero, ir_result(made, 0), NULL);
    l->b = keep;
    if (result) {
      low_barrier(l);
      IrValue *v = low_get(l, &buf, zero);
      IrOp *all = ir_build(&l->b, OP_from_thread, 1, &v, 1, &op->results[0].type, 0);
      ir_set_attr_i(all, ATTR_uniform, 1);
      ir_replace_uses(ir_result(op, 0), ir_result(all, 0));
    }
    ir_erase(op);
    return;
  }
  IrOp *cond = ir_build(&l->b, OP_if, 1, &first, result, &t, 2);
  IrBuilder then = ir_builder_at_end(cond->regions[0]), other = ir_builder_at_end(cond->regions[1]);
  then.loc = other.loc = op->loc;
  IrOp *made = ir_build(&then, op->kind, op->noperands, ops, op->nresults, &t, 0);
  copy_access(made, op);
  IrValue *yes = result ? ir_result(made, 0) : NULL, *no = result ? pass_const_bits(&other, t, 0) : NULL;
  ir_yield(&then, result, &yes);
  ir_yield(&other, result, &no);
  if (result) {
    const IrType *pt = op->results[0].type;
    IrValue *v = ir_result(cond, 0);
    ir_replace_uses(ir_result(op, 0), ir_result(ir_build(&l->b, OP_from_thread, 1, &v, 1, &pt, 0), 0));
  }
  ir_erase(op);
}

// ---- shared memory of the program ------------------------------------------------------------------------------------------------------
// Barriers of a ring's stages stand in the program.
static bool in_ring(const IrValue *mem) { return mem->def && mem->def->kind == OP_mem_view; }

LowBuf low_program_buffer(Low *l, IrValue *mem, const IrType *elem) {
  const IrType *pt = ir_type_ptr(l->ctx, mem->type->dtype, SPACE_shared, LEVEL_thread);
  IrValue *whole = in_ring(mem) ? ir_operand(mem->def, 0) : mem;
  LowBuf b = {ir_result(ir_build(&l->b, OP_mem_ptr, 1, &whole, 1, &pt, 0), 0), elem, false,
              mem->type->layout};
  if (whole != mem) {
    IrValue *stage = low_thread(l, ir_operand(mem->def, 1));
    b.ptr = ir_ptr_add(&l->b, b.ptr, low_bin(l, OP_mul, stage, low_i32(l, ir_type_elems(mem->type))));
  }
  return b;
}

// Copies of neighbours in the background; of the threads that hold the same only one copies.
static void low_copy(Low *l, IrOp *op) {
  IrValue *mem = ir_operand(op, 0), *p = ir_operand(op, 1), *mask = ir_operand(op, 2);
  const IrType *t = p->type;
  const LowBuf b = low_program_buffer(l, mem, low_elem(l, ir_type_with_shape(l->ctx, mem->type, 0, NULL)));
  IrValue **ps = low_regs(l, p), **ms = mask ? low_regs(l, mask) : NULL;
  const uint32_t copies = low_copies(t->layout), bytes = ir_dtypes[t->dtype].bytes;
  const int d = t->rank - 1;
  const uint32_t cols = t->shape[d] > 1 ? (uint32_t)bits_log2((uint64_t)t->shape[d]) : 0;
  const Run run =
      run_of(t->layout, 0, cols, (uint32_t)bits_log2((uint64_t)lay_neighbours(l->axes, p, mask, d)));
  if (bytes << run.log < 4)
    low_fail(l, op->loc, "a copy to shared memory moves at least 4 neighbouring bytes");
  IrValue *holder = low_holder(l, t->layout);
  const IrBuilder keep = l->b;
  if (holder) low_if(l, holder, &l->b);
  for (uint32_t r = 0; r < layout_regs(t->layout); r++) {
    if (r & (copies | run.mask)) continue;
    IrValue *ops[3] = {ir_ptr_add(&l->b, b.ptr, place_of(l, &b, t, r)), ps[r], ms ? ms[r] : NULL};
    IrOp *made = ir_build(&l->b, OP_copy_pack, 3, ops, 0, NULL, 0);
    ir_set_attr_i(made, ATTR_bytes, bytes << run.log);
    if (bytes << run.log == 16) ir_set_attr_i(made, ATTR_cache, CACHE_cg);
  }
  l->b = keep;
  ir_build(&l->b, OP_copy_commit, 0, NULL, 0, NULL, 0);
  vec_push(l->arena, &l->dead, op);
}

bool low_memory(Low *l, IrOp *op) {
  const IrValue *p = ir_operand(op, 0);
  switch (op->kind) {
  case OP_load:
  case OP_store:
  case OP_atomic_rmw:
  case OP_atomic_cas: break;
  case OP_mem_load: {
    const IrType *t = op->results[0].type;
    IrValue **out = low_new_regs(l, t->layout);
    const LowBuf b = low_program_buffer(l, ir_operand(op, 0), low_elem(l, t));
    if (!in_ring(ir_operand(op, 0))) low_barrier(l);
    if (b.layout) // swizzled: ldmatrix may read it
      fetch(l, &b, t, out);
    else
      low_fetch(l, &b, t, out);
    low_set_regs(l, ir_result(op, 0), out);
    vec_push(l->arena, &l->dead, op);
    return true;
  }
  case OP_copy_async: low_copy(l, op); return true;
  case OP_mem_view: return true; // users of it in this stage, or none: others address the ring themselves
  case OP_mem_store: {
    IrValue *v = ir_operand(op, 1);
    const LowBuf b = low_program_buffer(l, ir_operand(op, 0), low_elem(l, v->type));
    low_barrier(l);
    low_spill(l, &b, v->type, low_regs(l, v));
    if (b.layout) pass_async_fence(&l->b); // products of groups of warps read it
    low_barrier(l);
    vec_push(l->arena, &l->dead, op);
    return true;
  }
  default: return low_async(l, op);
  }
  // A release covers what all threads did before, an acquire holds for all of them.
  const IrOrder order = (IrOrder)ir_attr_i(op, ATTR_order);
  const bool release = order >= ORDER_release, acquire = order == ORDER_acquire || order > ORDER_release;
  if (p->type->kind == IR_TILE) {
    // Program order holds through memory: what other threads of the block wrote before is seen, and not overtaken.
    if (conflicts(l, op) || release) low_barrier(l);
    if (op->kind == OP_load)
      low_tile_load(l, op);
    else if (op->kind == OP_store)
      low_tile_store(l, op);
    else
      low_tile_atomic(l, op);
    if (acquire) low_barrier(l);
    vec_push(l->arena, &l->dead, op);
    return true;
  }
  if (ir_type_is_thread(p->type)) return true; // the author's own thread code
  const bool meets = conflicts(l, op);
  if (op->kind == OP_load && !meets && !ir_attr_i(op, ATTR_order) && !ir_attr_i(op, ATTR_volatile))
    return true; // everyone may do it
  if (meets || release) low_barrier(l);
  once(l, op);
  if (acquire) low_barrier(l);
  return true;
}
