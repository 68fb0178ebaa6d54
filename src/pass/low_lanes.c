// low_lanes: a tile's way from one layout to another within warps, by shuffles.
//
// All is algebra over GF(2). `to` says which index register r of thread (lane t, warp w) wants; `from`, solved for it, says
// where in the same warp that lies: register and lane are linear in r, t and w. One shuffle moves one word to each lane, from any lane,
// but each lane offers one register only. So round k fills register k ^ C t of lane t, where C makes the offers agree:
//
//     offer    X[k](u)      = register G u ^ ... of lane u        selects between registers, by bits of the lane: a stage a rank of G
//     shuffle  Y[k](t)      = X[k](M t ^ L k)                     by xor where M is the identity, else by lane number
//     place    out[r](t)    = Y[r ^ C t](t)                       selects, a stage a rank of C
//
// 8- and 16-bit elements travel in words of 32 bits where register bits of both layouts stand for the same index.
// Source: Zhou et al., arXiv:2505.23819, the section on warp shuffles; the choice of C is a common complement of two subspaces.
#include "pass/low.h"

#include <string.h>

enum { MOST_REG_BITS = 10 };

typedef struct Map2 { // a linear map from up to 16 bits, by its columns
  uint32_t col[16];
} Map2;

typedef struct Stages { // out = in[i ^ sum of q[j] where parity(thread & bits[j])]
  uint32_t n, q[16], bits[16];
} Stages;

typedef struct Plan {
  const IrLayout *from, *to;
  uint32_t pack;                       // log2 of the elements of a word
  uint32_t in_word[2], out_word[2];    // the register bits that choose within it
  uint32_t nin, nout, in[16], out[16]; // the other register bits
  Map2 reg_of_reg, lane_of_reg;        // where register bit out[j] comes from (registers: bits of `in`)
  Map2 reg_of_thread, lane_of_thread;  // and thread bit i: lanes, then warps
  uint32_t lanes, threads;             // their bits
  uint32_t c[8];                       // C's columns
  Stages offer, place;
  uint32_t offered[16]; // register that round 1 << j offers
  bool by_xor;          // M is the identity, and warps do not matter
} Plan;

static uint32_t apply(const uint32_t *col, uint32_t x) {
  uint32_t y = 0;
  for (uint32_t i = 0; x; i++, x >>= 1) {
    if (x & 1) y ^= col[i];
  }
  return y;
}

// ---- where things come from ---------------------------------------------------------------------------------------------------
static uint32_t compressed(const uint32_t *bits, uint32_t n, uint32_t x) {
  uint32_t y = 0;
  for (uint32_t i = 0; i < n; i++) y |= (x >> bits[i] & 1) << i;
  return y;
}

static bool find_sources(Plan *p) {
  const IrLayout *f = p->from, *t = p->to;
  IrLayout own = *f; // what a warp holds
  own.n[PLACE_WARP] = 0;
  const uint32_t fr = f->n[PLACE_REG], tr = t->n[PLACE_REG], reg_mask = (1u << fr) - 1;
  uint32_t place, copies = low_copies(t);
  for (uint32_t i = 0; i < tr; i++) {
    if (copies >> i & 1) continue;
    if (!layout_find(&own, t->at[i], &place)) return false;
    p->reg_of_reg.col[p->nout] = place & reg_mask;
    p->lane_of_reg.col[p->nout] = place >> fr;
    p->out[p->nout++] = i;
  }
  for (uint32_t i = 0; i < p->threads; i++) { // rather from the own lane
    if (!layout_find(&own, t->at[tr + i] ^ f->at[fr + i], &place)) return false;
    if (i < p->lanes) place ^= 1u << (fr + i);
    p->reg_of_thread.col[i] = place & reg_mask;
    p->lane_of_thread.col[i] = place >> fr;
  }
  return true;
}

// A register bit of `from` that one of `to` asks for, and nothing else does.
static void find_words(Plan *p, uint32_t most) {
  for (uint32_t j = 0; j < p->nout && p->pack < most;) {
    const uint32_t bit = p->reg_of_reg.col[j];
    bool alone = bits_pow2(bit) && !p->lane_of_reg.col[j];
    for (uint32_t k = 0; k < p->nout; k++) alone &= k == j || !(p->reg_of_reg.col[k] & bit);
    for (uint32_t i = 0; i < p->threads; i++) alone &= !(p->reg_of_thread.col[i] & bit);
    if (!alone) {
      j++;
      continue;
    }
    p->in_word[p->pack] = (uint32_t)bits_log2(bit);
    p->out_word[p->pack++] = p->out[j];
    p->nout--;
    for (uint32_t k = j; k < p->nout; k++) {
      p->out[k] = p->out[k + 1];
      p->reg_of_reg.col[k] = p->reg_of_reg.col[k + 1];
      p->lane_of_reg.col[k] = p->lane_of_reg.col[k + 1];
    }
  }
  for (uint32_t i = 0; i < p->from->n[PLACE_REG]; i++) {
    bool chosen = false;
    for (uint32_t k = 0; k < p->pack; k++) chosen |= p->in_word[k] == i;
    if (!chosen) p->in[p->nin++] = i;
  }
  for (uint32_t j = 0; j < p->nout; j++)
    p->reg_of_reg.col[j] = compressed(p->in, p->nin, p->reg_of_reg.col[j]);
  for (uint32_t i = 0; i < p->threads; i++)
    p->reg_of_thread.col[i] = compressed(p->in, p->nin, p->reg_of_thread.col[i]);
}

// ---- who offers what --------------------------------------------------------------------------------------------------------------
typedef struct Rows { // an echelon: by highest bit, each with what it is made of
  uint32_t has, value[32], of[32];
} Rows;
static uint32_t rest_of(const Rows *e, uint32_t v, uint32_t *of) {
  for (int b = 31; b >= 0 && v; b--) {
    if (!(v >> b & 1) || !(e->has >> b & 1)) continue;
    v ^= e->value[b];
    *of ^= e->of[b];
  }
  return v;
}
static void add_row(Rows *e, uint32_t v, uint32_t of) {
  const int b = bits_log2(v);
  e->has |= 1u << b;
  e->value[b] = v;
  e->of[b] = of;
}

// Lanes that read the same lane must want the same register of it. Where lanes t do not, C adds a register bit that is held by other
// lanes: the rank of M rises each time.
static bool agree(Plan *p, Map2 *m, Map2 *b, Rows *e) {
  for (;;) {
    *e = (Rows){0};
    uint32_t clash = 0;
    for (uint32_t i = 0; i < p->lanes; i++) {
      m->col[i] = p->lane_of_thread.col[i] ^ apply(p->lane_of_reg.col, p->c[i]);
      b->col[i] = p->reg_of_thread.col[i] ^ apply(p->reg_of_reg.col, p->c[i]);
    }
    for (uint32_t i = 0; i < p->lanes; i++) {
      uint32_t of = 1u << i;
      const uint32_t v = rest_of(e, m->col[i], &of);
      if (v)
        add_row(e, v, of);
      else if (!clash && apply(b->col, of))
        clash = of;
    }
    if (!clash) return true;
    uint32_t j = 0, unused = 0;
    while (j < p->nout && !rest_of(e, p->lane_of_reg.col[j], &unused)) j++;
    if (j == p->nout) return false;
    p->c[bits_log2(clash)] ^= 1u << j;
  }
}

// Columns as a sum over a basis, each with the thread bits that bring it in.
static Stages stages_of(const uint32_t *col, uint32_t n) {
  Stages s = {0};
  Rows e = {0};
  for (uint32_t i = 0; i < n; i++) {
    uint32_t of = 0;
    const uint32_t v = rest_of(&e, col[i], &of);
    if (v) {
      add_row(&e, v, of ^ 1u << s.n); // v is col[i] and the basis vectors in `of`
      s.q[s.n] = col[i];
      of = 1u << s.n++;
    }
    for (uint32_t j = 0; j < s.n; j++) {
      if (of >> j & 1) s.bits[j] |= 1u << i;
    }
  }
  return s;
}

static bool make_plan(Plan *p, const IrLayout *from, const IrLayout *to, uint32_t most_pack) {
  *p = (Plan){.from = from, .to = to, .lanes = from->n[PLACE_LANE]};
  p->threads = p->lanes + from->n[PLACE_WARP];
  if (layout_move(from, to) == MOVE_SHARED || from->n[PLACE_REG] > MOST_REG_BITS ||
      to->n[PLACE_REG] > MOST_REG_BITS || p->lanes > 6 || p->threads > 16 || !find_sources(p))
    return false;
  find_words(p, most_pack);
  Map2 m, b;
  Rows e;
  if (!agree(p, &m, &b, &e)) return false;
  // G: the register that is wanted of a lane; zero for lanes that nobody reads.
  uint32_t g[16] = {0}, c[16] = {0};
  Rows all = e; // completed to a basis of the lanes, the added vectors made of no lane
  for (uint32_t i = 0; i < p->lanes; i++) {
    uint32_t of = 0;
    const uint32_t v = rest_of(&all, 1u << i, &of);
    if (v) add_row(&all, v, of);
  }
  for (uint32_t i = 0; i < p->lanes; i++) {
    uint32_t of = 0;
    rest_of(&all, 1u << i, &of);
    g[i] = apply(b.col, of);
  }
  p->by_xor = true;
  for (uint32_t i = 0; i < p->threads; i++) {
    if (i >= p->lanes) g[i] = p->reg_of_thread.col[i] ^ apply(g, p->lane_of_thread.col[i]);
    p->by_xor &= (i < p->lanes ? m.col[i] : p->lane_of_thread.col[i]) == (i < p->lanes ? 1u << i : 0);
    if (i < p->lanes) {
      c[i] = p->c[i];
      p->lane_of_thread.col[i] = m.col[i];
    }
  }
  for (uint32_t j = 0; j < p->nout; j++)
    p->offered[j] = p->reg_of_reg.col[j] ^ apply(g, p->lane_of_reg.col[j]);
  p->offer = stages_of(g, p->threads);
  p->place = stages_of(c, p->lanes);
  return true;
}

// ---- what it costs -----------------------------------------------------------------------------------------------------------------
// In halves of a cycle of a warp: a shuffle, like a word to or from shared memory, takes one cycle of its unit; a select, or two
// elements packed or unpacked, takes half of one. A meeting costs more than its instruction: a warp waits for its stores, and, in a block, for
// the other warps.
enum { COST_WORD = 2, COST_SELECT = 1, COST_WARP_BARRIER = 10, COST_BARRIER = 20 };

static uint32_t cost_of_shuffles(const Plan *p, uint32_t words) {
  uint32_t cost = 0;
  for (uint32_t k = 0; k < 1u << p->nout; k++) {
    if (!p->by_xor || apply(p->lane_of_reg.col, k)) cost += COST_WORD * words;
    cost += (p->offer.n + p->place.n) * COST_SELECT * words + (p->pack ? 2 : 0);
  }
  return cost;
}

static uint32_t rank_of(const uint32_t *v, uint32_t n, uint32_t shift, uint32_t mask) {
  Rows e = {0};
  uint32_t rank = 0, unused = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t x = rest_of(&e, v[i] >> shift & mask, &unused);
    if (!x) continue;
    add_row(&e, x, 0);
    rank++;
  }
  return rank;
}

// Lanes go together as long as they move at most 128 bytes; those at different addresses of one bank go one after the other, and that their
// number is a power of two follows from the algebra.
uint32_t low_access_cost(const IrLayout *buffer, const IrLayout *tile, uint32_t bytes) {
  const uint32_t n = layout_regs(tile) >> __builtin_popcount(low_copies(tile));
  uint8_t reg[8];
  const uint32_t run = layout_run(tile, 0, 20, bytes < 16 ? (uint32_t)bits_log2(16 / bytes) : 0, reg);
  const IrLayout at = buffer ? layout_in_memory(buffer, tile) : *tile;
  const uint32_t wide = bytes << run, words = wide < 4 ? 1 : wide / 4,
                 together = 5 - (uint32_t)bits_log2(words);
  uint32_t place[8];
  for (uint32_t i = 0; i < together && i < at.n[PLACE_LANE]; i++)
    place[i] = at.at[at.n[PLACE_REG] + i] * bytes;
  const uint32_t lanes = together < at.n[PLACE_LANE] ? together : at.n[PLACE_LANE],
                 shift = wide < 4 ? 2 : (uint32_t)bits_log2(wide);
  const uint32_t apart =
      rank_of(place, lanes, shift, UINT32_MAX) - rank_of(place, lanes, shift, 127 >> shift);
  return (n >> run) * words * COST_WORD << apart;
}

bool low_within_warps(const IrLayout *from, const IrLayout *to) {
  return layout_move(from, to) != MOVE_SHARED && !(layout_free(from) >> layout_first(from, PLACE_WARP));
}

// ---- code ---------------------------------------------------------------------------------------------------------------------------
typedef struct Emit {
  Low *l;
  const Plan *p;
  const IrType *elem, *word; // of the travelling values
  IrValue **in;
  IrValue **offer[17], **place[17]; // after so many stages; NULL: not made yet
  IrValue *offer_bit[16], *place_bit[16], *lane;
} Emit;

static IrValue *thread_bits(Low *l, uint32_t bits,
                            const uint32_t *col) { // sum of columns, by bits of the thread
  IrValue *sum = NULL;
  for (uint32_t i = 0, run; bits >> i; i += run) {
    run = 1;
    if (!(bits >> i & 1) || !col[i]) continue;
    while (bits_pow2(col[i]) && bits >> (i + run) & 1 && col[i + run] == col[i] << run)
      run++; // neighbours stay so
    IrValue *x = i ? low_bin(l, OP_shr_u, l->tid, low_i32(l, i)) : l->tid;
    x = low_bin(l, OP_and, x, low_i32(l, (1 << run) - 1));
    if (col[i] > 1) x = low_bin(l, OP_mul, x, low_i32(l, col[i]));
    sum = sum ? low_bin(l, OP_xor, sum, x) : x;
  }
  return sum ? sum : low_i32(l, 0);
}
static IrValue *stage_bit(Low *l, uint32_t bits) { // parity
  if (bits_pow2(bits))
    return ir_cmp(&l->b, CMP_ne, low_bin(l, OP_and, l->tid, low_i32(l, bits)), low_i32(l, 0));
  const uint32_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  return ir_cmp(&l->b, CMP_ne, thread_bits(l, bits, ones), low_i32(l, 0));
}

static uint32_t spread(const uint32_t *bits, uint32_t n, uint32_t x) {
  uint32_t y = 0;
  for (uint32_t i = 0; i < n; i++) y |= (x >> i & 1) << bits[i];
  return y;
}

static const IrType *bits_type(Low *l, const IrType *elem) {
  return ir_type_scalar(l->ctx, ir_dtypes[elem->dtype].bits == 16 ? IR_i16 : IR_i8, LEVEL_thread);
}

static IrValue *word_in(Emit *e, uint32_t s) {
  Low *l = e->l;
  const Plan *p = e->p;
  const uint32_t r = spread(p->in, p->nin, s);
  if (!p->pack) {
    IrValue *x = e->in[r];
    return x->type == e->word ? x : ir_cast(&l->b, OP_ext_u, x, e->word); // i1
  }
  const IrType *bits = bits_type(l, e->elem);
  IrValue *sum = NULL;
  for (uint32_t h = 0; h < 1u << p->pack; h++) {
    IrValue *x = e->in[r | spread(p->in_word, p->pack, h)];
    if (x->type->dtype == IR_i1)
      x = ir_cast(&l->b, OP_ext_u, x, bits);
    else if (x->type != bits)
      x = ir_cast(&l->b, OP_bitcast, x, bits);
    x = ir_cast(&l->b, OP_ext_u, x, e->word);
    if (h) x = low_bin(l, OP_shl, x, low_i32(l, h * ir_dtypes[bits->dtype].bits));
    sum = sum ? low_bin(l, OP_or, sum, x) : x;
  }
  return sum;
}

static IrValue *offered(Emit *e, uint32_t stage, uint32_t s) {
  IrValue **at = &e->offer[stage][s];
  if (*at) return *at;
  if (!stage) return *at = word_in(e, s);
  IrValue *there = offered(e, stage - 1, s ^ e->p->offer.q[stage - 1]), *here = offered(e, stage - 1, s);
  return *at = ir_select(&e->l->b, e->offer_bit[stage - 1], there, here);
}

static IrValue *shuffled(Emit *e, uint32_t k) {
  Low *l = e->l;
  const Plan *p = e->p;
  IrValue *v = offered(e, p->offer.n, apply(p->offered, k));
  const uint32_t by = apply(p->lane_of_reg.col, k);
  if (p->by_xor && !by) return v;
  IrValue *ops[2] = {v, low_i32(l, by)};
  if (!p->by_xor && by) ops[1] = low_bin(l, OP_xor, e->lane, ops[1]);
  if (!p->by_xor && !by) ops[1] = e->lane;
  IrOp *op = ir_build(&l->b, OP_shfl, 2, ops, 1, &v->type, 0);
  ir_set_attr_i(op, ATTR_shfl, p->by_xor ? SHFL_xor : SHFL_idx);
  return ir_result(op, 0);
}

static IrValue *placed(Emit *e, uint32_t stage, uint32_t r) {
  IrValue **at = &e->place[stage][r];
  if (*at) return *at;
  if (!stage) return *at = shuffled(e, r);
  IrValue *there = placed(e, stage - 1, r ^ e->p->place.q[stage - 1]), *here = placed(e, stage - 1, r);
  return *at = ir_select(&e->l->b, e->place_bit[stage - 1], there, here);
}

static void word_out(Emit *e, uint32_t k, IrValue *v, IrValue **out) {
  Low *l = e->l;
  const Plan *p = e->p;
  const uint32_t r = spread(p->out, p->nout, k);
  if (!p->pack) {
    out[r] = v->type == e->elem ? v : ir_cast(&l->b, OP_trunc, v, e->elem);
    return;
  }
  const IrType *bits = bits_type(l, e->elem);
  for (uint32_t h = 0; h < 1u << p->pack; h++) {
    IrValue *x = h ? low_bin(l, OP_shr_u, v, low_i32(l, h * ir_dtypes[bits->dtype].bits)) : v;
    x = ir_cast(&l->b, OP_trunc, x, e->elem->dtype == IR_i1 ? e->elem : bits);
    out[r | spread(p->out_word, p->pack, h)] =
        x->type == e->elem ? x : ir_cast(&l->b, OP_bitcast, x, e->elem);
  }
}

bool low_move_lanes(Low *l, const IrType *from, IrValue **regs, const IrType *to, IrValue **out) {
  const IrType *elem = low_elem(l, from);
  const bool is_ptr = ir_type_is_ptr(elem);
  const uint32_t bits = is_ptr ? 64 : ir_dtypes[elem->dtype].bits,
                 bytes = is_ptr ? 8 : ir_dtypes[elem->dtype].bytes;
  Plan *p = arena_new(l->arena, Plan);
  if (!make_plan(p, from->layout, to->layout, bytes < 4 ? (uint32_t)bits_log2(4 / bytes) : 0)) return false;
  LowBuf swizzled = {0};
  low_swizzle(l, &swizzled, from);
  const uint32_t plain =
                     low_access_cost(NULL, from->layout, bytes) + low_access_cost(NULL, to->layout, bytes),
                 other = low_access_cost(swizzled.layout, from->layout, bytes) +
                         low_access_cost(swizzled.layout, to->layout, bytes);
  const bool alone = l->m->num_warps == 1 || low_within_warps(from->layout, to->layout);
  const uint32_t memory = (plain < other ? plain : other) + 2 * (alone ? COST_WARP_BARRIER : COST_BARRIER);
  if (cost_of_shuffles(p, bytes > 4 ? bytes / 4 : 1) > memory) return false;
  Emit e = {.l = l, .p = p, .elem = elem, .in = regs};
  e.word = p->pack || bits == 1 ? ir_type_scalar(l->ctx, IR_i32, LEVEL_thread) : elem;
  for (uint32_t i = 0; i <= p->offer.n; i++) e.offer[i] = arena_array(l->arena, IrValue *, 1u << p->nin);
  for (uint32_t i = 0; i <= p->place.n; i++) e.place[i] = arena_array(l->arena, IrValue *, 1u << p->nout);
  for (uint32_t i = 0; i < p->offer.n; i++) e.offer_bit[i] = stage_bit(l, p->offer.bits[i]);
  for (uint32_t i = 0; i < p->place.n; i++) e.place_bit[i] = stage_bit(l, p->place.bits[i]);
  if (!p->by_xor) e.lane = thread_bits(l, (1u << p->threads) - 1, p->lane_of_thread.col);
  for (uint32_t k = 0; k < 1u << p->nout; k++) word_out(&e, k, placed(&e, p->place.n, k), out);
  low_fill_copies(to->layout, out);
  return true;
}
