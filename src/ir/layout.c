// layout: the algebra of linear layouts. Every function is plain work on at most 32 columns of bits.
#include "ir/ir_impl.h"

#include <string.h>

static uint32_t log2_of(int64_t n) { return n > 1 ? (uint32_t)bits_log2((uint64_t)n) : 0; }

bool layout_same(const IrLayout *a, const IrLayout *b) {
  return !memcmp(a->n, b->n, sizeof a->n) && !memcmp(a->at, b->at, layout_bits(a) * sizeof a->at[0]);
}

uint32_t layout_index(const IrLayout *l, uint32_t place) {
  uint32_t index = 0;
  for (uint32_t i = 0; place; i++, place >>= 1) {
    if (place & 1) index ^= l->at[i];
  }
  return index;
}

// ---- elimination -----------------------------------------------------------------------------------------------------------
typedef struct Echelon { // rows by their highest index bit
  uint32_t index[LAYOUT_MAX_BITS], place[LAYOUT_MAX_BITS];
  uint32_t has, free;
} Echelon;

static void reduce(const Echelon *e, uint32_t *index, uint32_t *place) {
  for (int b = 31; b >= 0 && *index; b--) {
    if (!(*index >> b & 1) || !(e->has >> b & 1)) continue;
    *index ^= e->index[b];
    *place ^= e->place[b];
  }
}

static void echelon(const IrLayout *l, Echelon *e) {
  *e = (Echelon){0};
  // A bit is free where those below it reach its index already.
  for (uint32_t i = 0; i < layout_bits(l); i++) {
    uint32_t index = l->at[i], place = 1u << i;
    reduce(e, &index, &place);
    if (!index) {
      e->free |= 1u << i;
      continue;
    }
    const int b = bits_log2(index);
    e->index[b] = index;
    e->place[b] = place;
    e->has |= 1u << b;
  }
}

uint32_t layout_free(const IrLayout *l) {
  Echelon e;
  echelon(l, &e);
  return e.free;
}

bool layout_find(const IrLayout *l, uint32_t index, uint32_t *place) {
  Echelon e;
  echelon(l, &e);
  uint32_t p = 0;
  reduce(&e, &index, &p);
  *place = p;
  return index == 0;
}

bool layout_covers(const IrLayout *l, uint32_t bits) {
  Echelon e;
  echelon(l, &e);
  return e.has == (bits == 32 ? UINT32_MAX : (1u << bits) - 1);
}

// ---- constructors ------------------------------------------------------------------------------------------------------------
typedef struct Maker {
  IrLayout l;
  uint32_t low[IR_MAX_RANK], size[IR_MAX_RANK]; // of the axis' field: first bit, bits
  uint32_t used[IR_MAX_RANK];                   // bits of the field that have been given out
} Maker;

static Maker maker(int rank, const int32_t *shape) {
  Maker m = {0};
  uint32_t at = 0;
  for (int i = rank - 1; i >= 0; i--) {
    m.low[i] = at;
    at += m.size[i] = log2_of(shape[i]);
  }
  return m;
}

static void push(Maker *m, IrPlace d, uint32_t index) {
  const uint32_t at = layout_first(&m->l, d) + m->l.n[d], total = layout_bits(&m->l);
  memmove(&m->l.at[at + 1], &m->l.at[at], (total - at) * sizeof m->l.at[0]);
  m->l.at[at] = index;
  m->l.n[d]++;
}

// The next `bits` bits of an axis; those past its end are free (for registers: left out).
static void give(Maker *m, IrPlace d, int axis, uint32_t bits) {
  for (uint32_t k = 0; k < bits; k++) {
    if (m->used[axis] < m->size[axis])
      push(m, d, 1u << (m->low[axis] + m->used[axis]++));
    else if (d != PLACE_REG)
      push(m, d, 0);
  }
}

// What is left of an axis, by registers.
static void rest(Maker *m, int axis) { give(m, PLACE_REG, axis, m->size[axis] - m->used[axis]); }

IrLayout layout_blocked(int rank, const int32_t *shape, const int32_t *per_thread, const int32_t *lanes,
                        const int32_t *warps, const int32_t *order) {
  Maker m = maker(rank, shape);
  for (int k = 0; k < rank; k++) give(&m, PLACE_REG, order[k], log2_of(per_thread[order[k]]));
  for (int k = 0; k < rank; k++) give(&m, PLACE_LANE, order[k], log2_of(lanes[order[k]]));
  for (int k = 0; k < rank; k++) give(&m, PLACE_WARP, order[k], log2_of(warps[order[k]]));
  for (int k = 0; k < rank; k++) rest(&m, order[k]);
  return m.l;
}

IrLayout layout_replicated(uint32_t elem_bits, uint32_t lane_bits, uint32_t warp_bits) {
  Maker m = {0};
  for (uint32_t i = 0; i < elem_bits; i++) push(&m, PLACE_REG, 1u << i);
  for (uint32_t i = 0; i < lane_bits; i++) push(&m, PLACE_LANE, 0);
  for (uint32_t i = 0; i < warp_bits; i++) push(&m, PLACE_WARP, 0);
  return m.l;
}

// A fragment repeated over its tile: along `first`, then `second`, then over the batches.
static IrLayout repeated(Maker *m, int rank, int first, int second) {
  rest(m, first);
  rest(m, second);
  for (int i = rank - 3; i >= 0; i--) rest(m, i);
  return m->l;
}

// A warp's fragment of packed columns: lane bits 0-1 columns, bits 2-4 rows, then a register bit of rows (8).
static void give_fragment(Maker *m, int r, int c, uint32_t pack_bits) {
  give(m, PLACE_REG, c, pack_bits);
  give(m, PLACE_LANE, c, 2);
  give(m, PLACE_LANE, r, 3);
  give(m, PLACE_REG, r, 1);
}

// c: a fragment of two columns; then warps; then registers.
IrLayout layout_mma_c(int rank, const int32_t *shape, const int32_t *warps) {
  Maker m = maker(rank, shape);
  const int r = rank - 2, c = rank - 1;
  give_fragment(&m, r, c, 1);
  give(&m, PLACE_WARP, c, log2_of(warps[1]));
  give(&m, PLACE_WARP, r, log2_of(warps[0]));
  return repeated(&m, rank, c, r);
}

// a: a fragment of packed columns, then a register bit of columns (the other half of k).
IrLayout layout_mma_a(int rank, const int32_t *shape, const int32_t *warps, uint32_t elem_pack) {
  Maker m = maker(rank, shape);
  const int r = rank - 2, c = rank - 1;
  give_fragment(&m, r, c, elem_pack);
  give(&m, PLACE_REG, c, 1);
  for (uint32_t i = 0; i < log2_of(warps[1]); i++) push(&m, PLACE_WARP, 0); // along n: the same rows
  give(&m, PLACE_WARP, r, log2_of(warps[0]));
  return repeated(&m, rank, c, r);
}

// b: packed rows, lane bits 0-1 rows, bits 2-4 columns, then a register bit: rows (the other half of k).
IrLayout layout_mma_b(int rank, const int32_t *shape, const int32_t *warps, uint32_t elem_pack) {
  Maker m = maker(rank, shape);
  const int r = rank - 2, c = rank - 1;
  give(&m, PLACE_REG, r, elem_pack);
  give(&m, PLACE_LANE, r, 2);
  give(&m, PLACE_LANE, c, 3);
  give(&m, PLACE_REG, r, 1);
  give(&m, PLACE_WARP, c, log2_of(warps[1]));
  for (uint32_t i = 0; i < log2_of(warps[0]); i++) push(&m, PLACE_WARP, 0); // along m: the same columns
  return repeated(&m, rank, r, c);
}

// Warp bits 0 and 1 are rows of a group; the rest divides rows, then columns.
static void give_groups(Maker *m, int r, int c, const int32_t *warps, bool columns) {
  give(m, PLACE_WARP, r, log2_of(warps[0]));
  for (uint32_t i = 0; i < log2_of(warps[1]); i++) {
    if (columns)
      give(m, PLACE_WARP, c, 1);
    else
      push(m, PLACE_WARP, 0);
  }
}

IrLayout layout_wgmma_c(int rank, const int32_t *shape, const int32_t *warps) {
  Maker m = maker(rank, shape);
  const int r = rank - 2, c = rank - 1;
  const uint32_t across = log2_of(warps[1]);
  give_fragment(&m, r, c, 1);
  // columns of one group first, so that its registers are neighbours
  give(&m, PLACE_REG, c, m.size[c] - m.used[c] - across);
  give_groups(&m, r, c, warps, true);
  return repeated(&m, rank, c, r);
}

IrLayout layout_wgmma_a(int rank, const int32_t *shape, const int32_t *warps, uint32_t elem_pack) {
  Maker m = maker(rank, shape);
  const int r = rank - 2, c = rank - 1;
  give_fragment(&m, r, c, elem_pack);
  give(&m, PLACE_REG, c, 1);
  give_groups(&m, r, c, warps, false);
  return repeated(&m, rank, c, r);
}

// ---- shared memory ------------------------------------------------------------------------------------------------------------
IrLayout layout_swizzled(int rank, const int32_t *shape, uint32_t elem_bytes) {
  Maker m = maker(rank, shape);
  const int c = rank - 1;
  const uint32_t elem = log2_of(elem_bytes), line = 7 - elem, width = m.size[c] < line ? m.size[c] : line;
  give(&m, PLACE_REG, c, width);
  for (int i = c - 1; i >= 0; i--) rest(&m, i);
  rest(&m, c);
  const uint32_t chunk = 4 - elem; // the first bit of a chunk's number
  for (uint32_t j = 0; chunk + j < width && line + j < layout_bits(&m.l); j++)
    m.l.at[line + j] ^= m.l.at[chunk + j];
  return m.l;
}

IrLayout layout_in_memory(const IrLayout *buffer, const IrLayout *tile) {
  Echelon e;
  echelon(buffer, &e);
  IrLayout r = *tile;
  for (uint32_t i = 0; i < layout_bits(tile); i++) {
    uint32_t index = tile->at[i], offset = 0;
    reduce(&e, &index, &offset);
    r.at[i] = offset;
  }
  return r;
}

// ---- shape ops -------------------------------------------------------------------------------------------------------------------
typedef struct Fields {
  uint32_t low[IR_MAX_RANK], bits[IR_MAX_RANK];
} Fields;

static Fields fields(int rank, const int32_t *shape) {
  Fields f = {0};
  uint32_t at = 0;
  for (int i = rank - 1; i >= 0; i--) {
    f.low[i] = at;
    at += f.bits[i] = log2_of(shape[i]);
  }
  return f;
}

static uint32_t field(uint32_t index, const Fields *f, int axis) {
  return index >> f->low[axis] & ((1u << f->bits[axis]) - 1);
}

static void trans_shape(int rank, const int32_t *shape, const int64_t *perm, int32_t *out) {
  for (int i = 0; i < rank; i++) out[i] = shape[perm[i]];
}

IrLayout layout_trans(const IrLayout *a, int rank, const int32_t *shape, const int64_t *perm) {
  int32_t to[IR_MAX_RANK];
  trans_shape(rank, shape, perm, to);
  const Fields f = fields(rank, shape), t = fields(rank, to);
  IrLayout r = *a;
  for (uint32_t b = 0; b < layout_bits(a); b++) {
    r.at[b] = 0;
    for (int i = 0; i < rank; i++) r.at[b] |= field(a->at[b], &f, (int)perm[i]) << t.low[i];
  }
  return r;
}

IrLayout layout_trans_back(const IrLayout *r, int rank, const int32_t *shape, const int64_t *perm) {
  int32_t to[IR_MAX_RANK];
  trans_shape(rank, shape, perm, to);
  const Fields f = fields(rank, shape), t = fields(rank, to);
  IrLayout a = *r;
  for (uint32_t b = 0; b < layout_bits(r); b++) {
    a.at[b] = 0;
    for (int i = 0; i < rank; i++) a.at[b] |= field(r->at[b], &t, i) << f.low[perm[i]];
  }
  return a;
}

IrLayout layout_slice(const IrLayout *r, int rank, const int32_t *from, const int32_t *to) {
  const Fields f = fields(rank, from), t = fields(rank, to);
  IrLayout a = *r;
  for (uint32_t b = 0; b < layout_bits(r); b++) {
    a.at[b] = 0;
    for (int i = 0; i < rank; i++) {
      if (from[i] == to[i]) a.at[b] |= field(r->at[b], &t, i) << f.low[i];
    }
  }
  return a;
}

IrLayout layout_join(const IrLayout *a) {
  Maker m = {0};
  push(&m, PLACE_REG, 1);
  for (int d = 0; d < PLACE_DIMS; d++) {
    const uint32_t first = layout_first(a, (IrPlace)d);
    for (uint32_t i = 0; i < a->n[d]; i++) push(&m, (IrPlace)d, a->at[first + i] << 1);
  }
  return m.l;
}

bool layout_split(const IrLayout *r, IrLayout *out) {
  Maker m = {0};
  bool found = false;
  for (int d = 0; d < PLACE_DIMS; d++) {
    const uint32_t first = layout_first(r, (IrPlace)d);
    for (uint32_t i = 0; i < r->n[d]; i++) {
      const uint32_t at = r->at[first + i];
      if (d == PLACE_REG && at == 1 && !found) {
        found = true;
        continue;
      }
      if (at & 1) return false;
      push(&m, (IrPlace)d, at >> 1);
    }
  }
  *out = m.l;
  return found;
}

IrLayout layout_compact(const IrLayout *l) {
  const uint32_t free = layout_free(l);
  Maker m = {0};
  for (int d = 0; d < PLACE_DIMS; d++) {
    const uint32_t first = layout_first(l, (IrPlace)d);
    for (uint32_t i = 0; i < l->n[d]; i++) {
      if (d == PLACE_REG && (free >> i & 1)) continue;
      push(&m, (IrPlace)d, l->at[first + i]);
    }
  }
  return m.l;
}

bool layout_with_warps(const IrLayout *access, const IrLayout *value, uint32_t neighbours, uint32_t whole,
                       IrLayout *out) {
  const uint32_t warps = access->n[PLACE_WARP], lanes = access->n[PLACE_LANE], regs = access->n[PLACE_REG],
                 first = layout_first(value, PLACE_WARP);
  uint32_t taken = 0, order[LAYOUT_MAX_BITS], n = 0;
  if (value->n[PLACE_WARP] != warps || value->n[PLACE_LANE] != lanes || neighbours > regs) return false;
  for (uint32_t i = 0; i < warps; i++) {
    const uint32_t at = value->at[first + i];
    if (!bits_pow2(at) || (taken & at)) return false;
    taken |= at;
  }
  // In the order in which access goes along memory: neighbours, lanes, warps, what registers repeat.
  for (uint32_t i = 0; i < layout_bits(access); i++) {
    const uint32_t k = i < neighbours                   ? i
                       : i < neighbours + lanes + warps ? regs + i - neighbours
                                                        : i - lanes - warps;
    const uint32_t at = access->at[k];
    if (!bits_pow2(at)) return false;
    if (i < whole && (taken & at)) return false;
    if (!(taken & at)) order[n++] = at;
  }
  if (n != regs + lanes) return false; // a bit of value's warps is none of access'
  IrLayout r = {.n = {access->n[0], access->n[1], access->n[2]}};
  for (uint32_t i = 0; i < regs; i++) r.at[i] = i < neighbours ? order[i] : order[lanes + i];
  for (uint32_t i = 0; i < lanes; i++) r.at[regs + i] = order[neighbours + i];
  for (uint32_t i = 0; i < warps; i++) r.at[regs + lanes + i] = value->at[first + i];
  *out = r;
  return true;
}

// ---- conversion ------------------------------------------------------------------------------------------------------------------
// Is every index that some register of a thread holds in `to` held by the same thread in `from`? By linearity: what a thread
// holds is a coset of the registers' span, and the shift between the two is linear in lane and warp.
static bool within(const IrLayout *from, const IrLayout *to, bool whole_warp) {
  IrLayout own = *from; // what a thread (or a warp) of `from` may reach
  if (!whole_warp) own.n[PLACE_LANE] = 0;
  own.n[PLACE_WARP] = 0;
  Echelon e;
  echelon(&own, &e);
  for (uint32_t i = 0; i < layout_bits(to); i++) {
    uint32_t index = to->at[i], place = 0;
    const bool lane = i >= to->n[0] && i < (uint32_t)to->n[0] + to->n[1],
               warp = i >= (uint32_t)to->n[0] + to->n[1];
    if (lane && !whole_warp) index ^= from->at[from->n[0] + i - to->n[0]];
    if (warp) index ^= from->at[layout_first(from, PLACE_WARP) + i - to->n[0] - to->n[1]];
    reduce(&e, &index, &place);
    if (index) return false;
  }
  return true;
}

LayoutMove layout_move(const IrLayout *from, const IrLayout *to) {
  if (from->n[PLACE_LANE] != to->n[PLACE_LANE] || from->n[PLACE_WARP] != to->n[PLACE_WARP])
    return MOVE_SHARED;
  return within(from, to, false) ? MOVE_NONE : within(from, to, true) ? MOVE_LANES : MOVE_SHARED;
}

uint32_t layout_run(const IrLayout *l, uint32_t low, uint32_t bits, uint32_t most, uint8_t *reg) {
  uint32_t run = 0;
  while (run < bits && run < most) {
    uint32_t i = 0;
    while (i < l->n[PLACE_REG] && l->at[i] != 1u << (low + run)) i++;
    if (i == l->n[PLACE_REG]) break;
    reg[run++] = (uint8_t)i;
  }
  // Others must not touch the run's bits, or it would not start at an aligned index.
  const uint32_t touched = ((1u << run) - 1) << low;
  for (uint32_t i = 0; i < layout_bits(l); i++) {
    const uint32_t clash = (l->at[i] & touched) >> low;
    if (!clash || bits_pow2(l->at[i])) continue;
    const uint32_t first = (uint32_t)__builtin_ctz(clash);
    if (first < run) run = first;
  }
  return run;
}
