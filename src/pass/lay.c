// lay: tile stage to laid-out stage: which thread holds which elements of each tile.
//
// Every op has a say in the layout that it works in:
//   loads, stores, atomics   neighbours in memory beside each other in a thread, then across lanes (axis analysis)
//   dot                      fragments of the matrix unit where it knows the types, else blocks
//   reduce, shape ops        follow from their operand's; scan, gather, ...: blocks
//   elementwise              that of the first operand that is dear to move
// Operands come in the layout that their user asks for. What is cheap to compute (indices, splats, comparisons of them) is computed
// again in it; all else passes a `relayout`, placed right behind the definition, so that each value moves once a layout.
#include "pass/place.h"

#include <string.h>

typedef struct Variant { // a value in another layout
  const IrType *type;
  IrValue *v;
  struct Variant *next;
} Variant;

typedef struct Lay {
  Pass *pass;
  IrCtx *ctx;
  Arena *arena;
  IrFunc *f;
  PassAxes *axes;
  uint32_t lane_bits, warp_bits, nvalues;
  bool wgmma;      // the machine has the matrix unit of four warps
  Map stored;      // IrValue* -> IrValue*: the buffer that holds it for such products
  bool rows_first; // products feed products or reductions of rows: warps divide rows
  Map variants;    // IrValue* -> Variant*
  Map cheap;       // IrValue* -> 1 cheap, 2 dear
} Lay;

static void lay_block(Lay *l, IrBlock *b);

// ---- layouts --------------------------------------------------------------------------------------------------------------------
static const IrType *with(Lay *l, const IrType *t, const IrLayout *layout) {
  return ir_type_with_layout(l->ctx, t, layout);
}

// `vec` neighbours along order[0] in a thread; lanes, then warps, fill the axes in that order.
static IrLayout spread(const Lay *l, int rank, const int32_t *shape, const int32_t *order, int32_t vec) {
  int32_t per[IR_MAX_RANK], lanes[IR_MAX_RANK], warps[IR_MAX_RANK];
  int32_t left_lanes = 1 << l->lane_bits, left_warps = 1 << l->warp_bits;
  for (int k = 0; k < rank; k++) {
    const int i = order[k];
    per[i] = k == 0 ? vec : 1;
    const int32_t room = shape[i] / per[i];
    lanes[i] = room < left_lanes ? room : left_lanes;
    left_lanes /= lanes[i];
  }
  for (int k = rank - 1; k >= 0; k--) { // warps from the slowest axis on: each reads whole rows
    const int i = order[k];
    const int32_t room = shape[i] / per[i] / lanes[i];
    warps[i] = room < left_warps ? room : left_warps;
    left_warps /= warps[i];
  }
  lanes[order[rank - 1]] *= left_lanes; // what is left holds copies
  warps[order[rank - 1]] *= left_warps;
  return layout_blocked(rank, shape, per, lanes, warps, order);
}

static void rows_order(int rank, int32_t *order) {
  for (int i = 0; i < rank; i++) order[i] = rank - 1 - i;
}

static int32_t most_vec(const Lay *l, const IrType *t, int axis, int32_t vec) {
  const int64_t share = ir_type_elems(t) >> (l->lane_bits + l->warp_bits);
  while (vec > 1 && (vec > share || vec > t->shape[axis])) vec /= 2;
  return vec;
}

static IrLayout default_layout(const Lay *l, const IrType *t) {
  int32_t order[IR_MAX_RANK];
  rows_order(t->rank, order);
  const int bytes = ir_type_is_ptr(t) ? 8 : ir_dtypes[t->dtype].bytes;
  return spread(l, t->rank, t->shape, order, most_vec(l, t, t->rank - 1, 16 / bytes > 4 ? 4 : 16 / bytes));
}

int32_t lay_neighbours(const PassAxes *axes, const IrValue *p, const IrValue *mask, int d) {
  const PassAxis *x = pass_axis(axes, p), *m = mask ? pass_axis(axes, mask) : NULL;
  const int32_t bytes = ir_dtypes[p->type->dtype].bytes;
  int32_t n = x->contig[d];
  if (n > x->div[d] / bytes) n = x->div[d] / bytes;
  if (n > 16 / bytes) n = 16 / bytes;
  if (m && n > m->constancy[d]) n = m->constancy[d];
  return n < 1 ? 1 : n;
}

// For an access through the pointers p: along the axis with the longest runs of neighbours, as many in a thread as one
// instruction moves.
static IrLayout memory_layout(Lay *l, const IrValue *p) {
  const IrType *t = p->type;
  const PassAxis *x = p->id < l->nvalues ? pass_axis(l->axes, p) : NULL;
  int32_t order[IR_MAX_RANK];
  rows_order(t->rank, order);
  if (!x || x->rank != t->rank) return spread(l, t->rank, t->shape, order, 1);
  int best = 0;
  for (int k = 1; k < t->rank; k++) {
    if (x->contig[order[k]] > x->contig[order[best]]) best = k;
  }
  const int32_t fast = order[best];
  memmove(&order[1], &order[0], sizeof *order * (size_t)best);
  order[0] = fast;
  return spread(l, t->rank, t->shape, order, most_vec(l, t, fast, lay_neighbours(l->axes, p, NULL, fast)));
}

// ---- what is cheap to compute again -------------------------------------------------------------------------------------------
static bool is_arithmetic(const IrOp *op) { // of elements, a few instructions each
  return (ir_ops[op->kind].traits & TRAIT_ELEMENTWISE) && op->kind != OP_math && op->kind != OP_inline_asm &&
         op->nresults == 1;
}

static bool is_cheap(Lay *l, IrValue *v) {
  if (v->type->kind != IR_TILE) return true;
  if (!v->def) return false;
  uint64_t known;
  if (map_get(&l->cheap, (uint64_t)(uintptr_t)v, &known)) return known == 1;
  map_set(&l->cheap, (uint64_t)(uintptr_t)v, 2);
  const IrOp *op = v->def;
  bool cheap = false;
  switch (op->kind) {
  case OP_const:
  case OP_splat:
  case OP_arange: cheap = true; break;
  case OP_expand_dims:
  case OP_broadcast:
  case OP_trans: cheap = is_cheap(l, ir_operand(op, 0)); break;
  default:
    cheap = is_arithmetic(op);
    for (uint32_t i = 0; cheap && i < op->noperands; i++)
      cheap = !ir_operand(op, i) || is_cheap(l, ir_operand(op, i));
  }
  map_set(&l->cheap, (uint64_t)(uintptr_t)v, cheap ? 1 : 2);
  return cheap;
}

// ---- a value in a layout ------------------------------------------------------------------------------------------------------
static IrBuilder behind(const IrValue *v) {
  if (v->def) return ir_builder_after(v->def);
  IrBuilder b = v->block->first ? ir_builder_before(v->block->first) : ir_builder_at_end(v->block);
  return b;
}

// The layout that op's operand needs so that its result has `layout`; op moves elements about.
static IrLayout operand_layout(const IrOp *op, const IrLayout *layout) {
  const IrType *from = ir_operand(op, 0)->type, *to = op->results[0].type;
  if (op->kind == OP_broadcast) return layout_slice(layout, to->rank, from->shape, to->shape);
  if (op->kind == OP_trans)
    return layout_trans_back(layout, from->rank, from->shape, ir_attr(op, ATTR_perm)->ints.v);
  return *layout; // expand_dims, reshape, elementwise: the index stays
}

static bool only_renames(IrOpKind k) {
  return k == OP_trans || k == OP_broadcast || k == OP_expand_dims || k == OP_reshape;
}

// A sign changed, a number widened: done again in another layout it moves no more than its operand, which may be a row or less.
static bool follows_operand(const IrOp *op) {
  if (op->noperands != 1 || op->nregions || !is_arithmetic(op)) return false;
  return pass_elem_bits(ir_operand(op, 0)->type) <= pass_elem_bits(op->results[0].type);
}

// A row of numbers (sums, scales) that comes from memory, as it is or after a step of arithmetic, is loaded again where others want it: it
// would go through shared memory for as many loads, and two barriers.
static bool is_small_row(Lay *l, IrValue *v, int depth) {
  const IrOp *op = v->def;
  if (!op || v->type->kind != IR_TILE || v->type->rank != 1 || v->type->shape[0] > 256 || depth > 2)
    return false;
  if (op->kind == OP_load) return pass_is_plain_load(op);
  if (op->kind == OP_mem_load) return true;
  if (!is_arithmetic(op)) return false;
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *o = ir_operand(op, i);
    if (o && !is_cheap(l, o) && !is_small_row(l, o, depth + 1)) return false;
  }
  return true;
}

// A matrix made of rows and columns (addresses from a table's entries): made again it moves those alone.
static bool is_outer(Lay *l, IrValue *v, int depth) {
  enum { LEAST_GAIN = 8, MOST_OPS = 6 };
  if (is_cheap(l, v)) return true;
  const IrOp *op = v->def;
  if (!op || depth > MOST_OPS) return false;
  if (op->kind == OP_broadcast)
    return ir_type_elems(v->type) >= LEAST_GAIN * ir_type_elems(ir_operand(op, 0)->type);
  if (!is_arithmetic(op)) return false;
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *o = ir_operand(op, i);
    if (o && !is_outer(l, o, depth + 1)) return false;
  }
  return true;
}

static IrValue *in_layout(Lay *l, IrValue *v, const IrLayout *layout) {
  if (!v || v->type->kind != IR_TILE) return v;
  const IrType *t = with(l, v->type, layout);
  if (v->type == t) return v;
  if (v->def && v->def->kind == OP_relayout)
    return in_layout(l, ir_operand(v->def, 0), layout); // one move, not two
  for (const Variant *x = map_getp(&l->variants, v); x; x = x->next) {
    if (x->type == t) return x->v;
  }
  IrBuilder b = behind(v);
  IrOp *made;
  const bool cheap = is_cheap(l, v);
  if (cheap || (v->def && v->def->kind != OP_broadcast && is_outer(l, v, 0))) {
    const IrOp *op = v->def;
    IrValue **ops = arena_array(l->arena, IrValue *, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++) {
      const IrLayout inner = operand_layout(op, layout);
      ops[i] = in_layout(l, ir_operand(op, i), &inner);
    }
    b = behind(v); // operands may have come behind it
    b.loc = op->loc;
    made = pass_like(&b, op, op->noperands, ops, t)->def;
    if (cheap) map_set(&l->cheap, (uint64_t)(uintptr_t)ir_result(made, 0), 1);
  } else if (layout_regs(layout) <= (l->wgmma ? 32u : 4u) && is_small_row(l, v, 0)) {
    IrValue *ops[8];
    for (uint32_t i = 0; i < v->def->noperands; i++) ops[i] = in_layout(l, ir_operand(v->def, i), layout);
    b = behind(v);
    b.loc = v->def->loc;
    made = pass_like(&b, v->def, v->def->noperands, ops, t)->def;
  } else if (v->def &&
             (only_renames(v->def->kind) || follows_operand(v->def))) { // what it turns or repeats moves
    const IrLayout inner = operand_layout(v->def, layout);
    IrValue *turned = in_layout(l, ir_operand(v->def, 0), &inner);
    b.loc = v->def->loc;
    made = pass_like(&b, v->def, 1, &turned, t)->def;
  } else {
    if (v->def) b.loc = v->def->loc;
    made = ir_build(&b, OP_relayout, 1, &v, 1, &t, 0);
  }
  Variant *x = arena_new(l->arena, Variant);
  *x = (Variant){t, ir_result(made, 0), map_getp(&l->variants, v)};
  map_setp(&l->variants, v, x);
  return x->v;
}

static void ask(Lay *l, IrOp *op, uint32_t i, const IrLayout *layout) {
  IrValue *v = ir_operand(op, i);
  if (v && v->type->kind == IR_TILE) ir_set_operand(op, i, in_layout(l, v, layout));
}
static void ask_all(Lay *l, IrOp *op, const IrLayout *layout) {
  for (uint32_t i = 0; i < op->noperands; i++) ask(l, op, i, layout);
}
static void give(Lay *l, IrOp *op, uint32_t i, const IrLayout *layout) {
  IrValue *r = ir_result(op, i);
  if (r->type->kind == IR_TILE) r->type = with(l, r->type, layout);
}
static const IrLayout *layout_of(Lay *l, IrValue *v) {
  if (!v->type->layout) { // a value that nothing has decided about: blocks
    const IrLayout d = default_layout(l, v->type);
    v->type = with(l, v->type, &d);
  }
  return v->type->layout;
}

// ---- products -------------------------------------------------------------------------------------------------------------------
int lay_mma_shape(const IrOp *dot) {
  const IrType *a = ir_operand(dot, 0)->type, *b = ir_operand(dot, 1)->type, *c = dot->results[0].type;
  if (c->rank != 2) return -1;
  for (int i = 0; i < MMA_COUNT; i++) {
    if (ir_mma[i].a != a->dtype || ir_mma[i].b != b->dtype || ir_mma[i].c != c->dtype) continue;
    if (i == MMA_m16n8k8_tf32 && ir_attr_i(dot, ATTR_prec) != PREC_tf32) continue;
    if (c->shape[0] >= ir_mma[i].m && c->shape[1] >= ir_mma[i].n && a->shape[1] >= ir_mma[i].k) return i;
  }
  return -1;
}

const IrOp *lay_product_of(const IrOp *relayout) {
  const IrUse *u = relayout->results[0].uses;
  if (u && !u->next && u->user->kind == OP_trans && u->user->parent == relayout->parent)
    u = u->user->results[0].uses;
  return u && !u->next && u->user->kind == OP_dot && u->user->parent == relayout->parent &&
                 lay_mma_shape(u->user) >= 0 && u != &u->user->operands[2]
             ? u->user
             : NULL;
}

// The product that v is made of by a few ops that keep its elements in place; NULL: none.
static const IrOp *product_of(const IrValue *v, int depth) {
  if (!v || !v->def || v->type->kind != IR_TILE || depth > 12) return NULL;
  if (v->def->kind == OP_dot || v->def->kind == OP_dot_wait) return v->def;
  if (v->def->kind == OP_for || v->def->kind == OP_if)
    return product_of(ir_operand(ir_terminator(v->def->regions[0]), v->index), depth + 1);
  if (!(ir_ops[v->def->kind].traits & TRAIT_ELEMENTWISE)) return NULL;
  const IrOp *dot = NULL;
  for (uint32_t i = 0; i < v->def->noperands && !dot; i++) dot = product_of(ir_operand(v->def, i), depth + 1);
  return dot;
}
static bool from_product(const IrValue *v, int depth) { return product_of(v, depth) != NULL; }
// Is v made of sums, or the like, of a product's rows?
static bool from_rows(const IrValue *v, int depth) {
  if (!v || !v->def || v->type->kind != IR_TILE || depth > 12) return false;
  const IrOp *op = v->def;
  if (op->kind == OP_reduce || op->kind == OP_reshape)
    return from_product(ir_operand(op, 0), 0) || from_rows(ir_operand(op, 0), depth + 1);
  if (op->kind == OP_for) return from_rows(ir_operand(ir_terminator(op->regions[0]), v->index), depth + 1);
  if (!(ir_ops[op->kind].traits & TRAIT_ELEMENTWISE)) return false;
  for (uint32_t i = 0; i < op->noperands; i++)
    if (from_rows(ir_operand(op, i), depth + 1)) return true;
  return false;
}

// What a sum in parts (parts.c) is of.
static const IrValue *whole_rows(const IrValue *v) {
  while (v->def && (v->def->kind == OP_reshape || v->def->kind == OP_reduce)) v = ir_operand(v->def, 0);
  return v;
}

static bool find_chain(IrOp *op, void *user) {
  Lay *l = user;
  if (op->kind == OP_dot)
    l->rows_first |= from_product(ir_operand(op, 0), 0) || from_product(ir_operand(op, 1), 0);
  if (op->kind == OP_reduce) l->rows_first |= from_product(whole_rows(ir_operand(op, 0)), 0);
  return !l->rows_first;
}

// Products that feed others keep their rows in a warp. Else each warp's part of c is near a square, so that it reads least.
static void mma_warps(const Lay *l, const IrType *c, int32_t *warps) {
  warps[0] = warps[1] = 1;
  for (uint32_t i = 0; i < l->warp_bits; i++) {
    const int32_t m = c->shape[0] / warps[0], n = c->shape[1] / warps[1];
    const bool rows = m > 16, cols = n > 8;
    warps[cols && (!rows || (!l->rows_first && n > m))] *= 2;
  }
}

// Groups of four warps, 64 rows each: along rows as far as there are rows, then along columns.
static bool group_warps(const Lay *l, const IrType *c, int32_t *warps) {
  if (!l->wgmma || l->warp_bits < 2 || c->rank != 2 || c->shape[0] < 64) return false;
  warps[0] = 4, warps[1] = 1;
  for (uint32_t i = 2; i < l->warp_bits; i++) warps[c->shape[0] / warps[0] <= 16] *= 2;
  const int32_t width = c->shape[1] / warps[1];
  return width >= 8 && width <= 256 && (warps[1] == 1 || width >= 64);
}

// The row of wgmma.def that computes a product, or -1. Types that know one order only are turned on their way to shared memory.
static int wgmma_shape(const Lay *l, const IrOp *dot) {
  const IrType *a = ir_operand(dot, 0)->type, *b = ir_operand(dot, 1)->type, *c = dot->results[0].type;
  int32_t warps[2];
  if (!group_warps(l, c, warps)) return -1;
  for (int i = 0; i < WGMMA_COUNT; i++) {
    const IrWgmmaInfo *s = &ir_wgmma[i];
    if (s->a != a->dtype || s->b != b->dtype || s->c != c->dtype) continue;
    if (i == WGMMA_tf32_tf32 && ir_attr_i(dot, ATTR_prec) != PREC_tf32) continue;
    const int bytes = ir_dtypes[s->a].bytes; // rows in shared memory are 32 bytes or more
    if (a->shape[1] >= s->k && a->shape[1] * bytes >= 32 && b->shape[1] * bytes >= 32) return i;
  }
  return -1;
}

bool lay_takes_groups(const IrModule *m, const IrOp *dot) {
  const Lay l = {.wgmma = true, .warp_bits = (uint32_t)bits_log2((uint64_t)m->num_warps)};
  return bits_pow2((uint64_t)m->num_warps) && wgmma_shape(&l, dot) >= 0;
}

static IrLayout dot_layout(const Lay *l, const IrOp *dot) { // of its result
  const IrType *c = dot->results[0].type;
  int32_t warps[2];
  if (wgmma_shape(l, dot) >= 0) {
    group_warps(l, c, warps);
    return layout_wgmma_c(2, c->shape, warps);
  }
  mma_warps(l, c, warps);
  return layout_mma_c(2, c->shape, warps);
}

int lay_row_threads(const Pass *pass, const IrFunc *f, const IrValue *v) {
  const IrOp *dot = product_of(v, 0);
  if (!dot || dot->kind != OP_dot || v->type->rank != 2 || !bits_pow2((uint64_t)pass->m->num_warps)) return 0;
  Lay l = {.wgmma = pass->config->machine && pass->config->machine->wgmma,
           .warp_bits = (uint32_t)bits_log2((uint64_t)pass->m->num_warps)};
  int32_t warps[2];
  if (wgmma_shape(&l, dot) >= 0) {
    group_warps(&l, v->type, warps);
    return warps[1] == 1 ? 4 : 0;
  }
  if (lay_mma_shape(dot) < 0) return 0;
  ir_walk(f->body, find_chain, &l);
  mma_warps(&l, v->type, warps);
  return 4 * warps[1];
}

// ---- products from shared memory ---------------------------------------------------------------------------------------------------
static const IrValue *buffer_root(const IrValue *m) {
  while (m->def && m->def->kind == OP_mem_view) m = ir_operand(m->def, 0);
  return m;
}

typedef struct Keeps { // is a buffer left as it is?
  const IrValue *mem;
  bool yes;
} Keeps;
static bool find_keeps(IrOp *op, void *user) {
  Keeps *k = user;
  // Products only read. A producer's barriers: a stage goes back behind its last product.
  if (op->nregions || op->kind == OP_dot_async || op->kind == OP_dot_wait || op->kind == OP_mbarrier_wait ||
      (op->kind == OP_mbarrier_arrive && ir_attr_i(op, ATTR_each_warp)))
    return true;
  const IrEffects e = ir_op_effects(op);
  const bool elsewhere = op->kind == OP_mem_store && buffer_root(ir_operand(op, 0)) != k->mem;
  if (((e.writes & RES_MEMDESC) && !elsewhere) || pass_orders(op) || e.barrier) k->yes = false;
  return k->yes;
}

// The buffer that v has just been read from, in the user's block or around it, where nothing may write there before `user` reads it
// itself; else NULL.
static IrValue *read_buffer(const IrValue *v, const IrOp *user) {
  IrOp *load = v->def;
  if (!load || load->kind != OP_mem_load) return NULL;
  Keeps k = {buffer_root(ir_operand(load, 0)), true};
  const IrOp *until = user; // or the op around it, of which all turns count
  while (until && until->parent != load->parent) until = until->parent->owner;
  for (IrOp *op = load->next; op != until && k.yes; op = op->next) {
    if (!op || !until) return NULL;
    find_keeps(op, &k);
    for (uint32_t r = 0; r < op->nregions; r++) ir_walk(op->regions[r], find_keeps, &k);
  }
  for (uint32_t r = 0; until != user && r < until->nregions; r++) ir_walk(until->regions[r], find_keeps, &k);
  return k.yes && ir_operand(load, 0)->type->layout ? ir_operand(load, 0) : NULL;
}

static bool is_turned(const IrValue *v) { return v->def && v->def->kind == OP_trans && v->type->rank == 2; }

// Does v come from memory as it is, so that it may get to shared memory without passing through registers?
static bool is_loaded(const IrValue *v, const IrOp *user) {
  if (is_turned(v)) v = ir_operand(v->def, 0);
  while (v->def && v->def->kind == OP_reshape) v = ir_operand(v->def, 0);
  return v->def && (v->def->kind == OP_load || v->def->kind == OP_desc_load || read_buffer(v, user));
}

// The buffer that holds v: the one that it was read from, or one written right behind its definition.
static IrValue *in_buffer(Lay *l, IrValue *v, const IrOp *user) {
  IrValue *known = read_buffer(v, user);
  if (!known) known = map_getp(&l->stored, v);
  if (known) return known;
  IrBuilder b = behind(v);
  if (v->def) b.loc = v->def->loc;
  const IrLayout swizzled = layout_swizzled(2, v->type->shape, (uint32_t)ir_dtypes[v->type->dtype].bytes);
  const IrType *t = ir_type_with_layout(
      l->ctx, ir_type_memdesc(l->ctx, v->type->dtype, SPACE_shared, 2, v->type->shape, 0), &swizzled);
  IrValue *ops[2] = {ir_result(ir_build(&b, OP_mem_alloc, 0, NULL, 1, &t, 0), 0), v};
  IrOp *store = ir_build(&b, OP_mem_store, 2, ops, 0, NULL, 0);
  const IrLayout layout = *layout_of(l, v);
  ask(l, store, 1, &layout);
  map_setp(&l->stored, v, ops[0]);
  return ops[0];
}

// An operand in shared memory, in the order that it has there or, where the type wants one (`turned`), in that.
static IrValue *memory_operand(Lay *l, IrOp *dot, IrValue *v, bool any_order, bool turned, bool *is_trans) {
  while (is_turned(v) && is_turned(ir_operand(v->def, 0))) v = ir_operand(ir_operand(v->def, 0)->def, 0);
  if (is_turned(v) && (any_order || turned)) {
    *is_trans = true;
    return in_buffer(l, ir_operand(v->def, 0), dot);
  }
  *is_trans = !any_order && turned;
  if (!*is_trans) return in_buffer(l, v, dot);
  IrBuilder b = ir_builder_before(dot);
  b.loc = dot->loc;
  const int32_t shape[2] = {v->type->shape[1], v->type->shape[0]};
  const int64_t perm[2] = {1, 0};
  const IrType *t = ir_type_with_shape(l->ctx, ir_type_with_layout(l->ctx, v->type, NULL), 2, shape);
  const IrLayout from = *layout_of(l, v), to = layout_trans(&from, 2, v->type->shape, perm);
  t = with(l, t, &to);
  IrOp *trans = ir_build(&b, OP_trans, 1, &v, 1, &t, 0);
  ir_set_attr_ints(trans, ATTR_perm, perm, 2);
  pass_remark(l->pass, dot->loc,
              "an operand of this product is transposed on its way to shared memory, element by element: "
              "the matrix unit takes %s in one order only",
              ir_dtypes[v->type->dtype].name);
  return in_buffer(l, ir_result(trans, 0), dot);
}

// Vectors from shared memory and what is made of them: fetched behind a wait for what they meet, they take no registers during it.
static bool is_light(const IrOp *op) {
  if (op->nresults != 1 || op->nregions) return false;
  const IrType *t = op->results[0].type;
  if (op->kind == OP_mem_view) return true;
  if (op->kind == OP_mem_load) return t->rank == 1;
  if (t->kind != IR_TILE || !ir_op_is_pure(op)) return false;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (v && v->type->kind == IR_TILE && v->def && v->def->parent == op->parent &&
        v->def->kind == OP_dot_wait)
      return false;
  }
  return op->kind == OP_const || op->kind == OP_splat || op->kind == OP_expand_dims ||
         op->kind == OP_broadcast || op->kind == OP_fneg || t->rank == 1;
}

// Where a product that stays in flight until its result is used is waited for, and how many later ones may still be in flight then.
static IrBuilder before_use(const Lay *l, IrOp *dot, int64_t *pending) {
  IrOp *user = pass_first_user(ir_result(dot, 0));
  if (!user) user = ir_terminator(dot->parent);
  while (user == ir_terminator(dot->parent) ||
         user->kind == OP_mbarrier_arrive) { // what it reads is handed back behind it
    if (!user->prev || user->prev->kind != OP_mbarrier_arrive) break;
    user = user->prev;
  }
  while (user->prev != dot && is_light(user->prev)) user = user->prev;
  for (const IrOp *op = dot->next; op != user; op = op->next) {
    *pending += op->kind == OP_dot_async || (op->kind == OP_dot && wgmma_shape(l, op) >= 0);
  }
  IrBuilder b = ir_builder_before(user);
  b.loc = dot->loc;
  return b;
}

static void lay_wgmma(Lay *l, IrOp *op, int which) {
  const IrWgmmaInfo *s = &ir_wgmma[which];
  IrValue *a = ir_operand(op, 0), *b = ir_operand(op, 1), *c = ir_operand(op, 2);
  const IrType *ct = op->results[0].type;
  int32_t warps[2];
  group_warps(l, ct, warps);
  bool a_trans = false, b_trans = false;
  const IrLayout al =
      layout_wgmma_a(2, a->type->shape, warps, (uint32_t)bits_log2(4u / ir_dtypes[s->a].bytes));
  // what must pass through shared memory is read there, which takes no registers
  const bool in_memory =
      (s->any_major || !is_turned(a)) &&
      (is_loaded(a, op) || (!is_cheap(l, a) && layout_move(layout_of(l, a), &al) == MOVE_SHARED));
  pass_remark(
      l->pass, op->loc,
      "groups of four warps compute this product (wgmma, 64 x %d x %d a time), its first operand in %s",
      ct->shape[1] / warps[1], s->k, in_memory ? "shared memory" : "registers");
  if (in_memory)
    a = memory_operand(l, op, a, s->any_major, false, &a_trans);
  else
    a = in_layout(l, a, &al);
  b = memory_operand(l, op, b, s->any_major, true, &b_trans);
  const IrLayout cl = layout_wgmma_c(2, ct->shape, warps);
  uint64_t zero;
  c = pass_const(c, &zero) && zero == 0 ? NULL : in_layout(l, c, &cl);
  IrBuilder at = ir_builder_before(op);
  at.loc = op->loc;
  IrValue *ops[3] = {a, b, c};
  const IrType *rt = with(l, ct, &cl);
  IrOp *dot = ir_build(&at, OP_dot_async, 3, ops, 1, &rt, 0);
  pass_copy_attrs(dot, op);
  if (a_trans) ir_set_attr_i(dot, ATTR_a_trans, 1);
  if (b_trans) ir_set_attr_i(dot, ATTR_b_trans, 1);
  IrValue *flying = ir_result(dot, 0);
  int64_t pending = 0;
  if (ir_attr_i(op, ATTR_until_use)) at = before_use(l, op, &pending);
  IrOp *wait = ir_build(&at, OP_dot_wait, 1, &flying, 1, &rt, 0);
  if (pending) ir_set_attr_i(wait, ATTR_pending, pending);
  ir_replace_uses(ir_result(op, 0), ir_result(wait, 0));
  ir_erase(op);
}

// Why the matrix unit of one warp, or of four, does not take a product. NULL: its types.
static const char *why_not_unit(const Lay *l, const IrOp *dot, bool groups) {
  const IrType *a = ir_operand(dot, 0)->type, *b = ir_operand(dot, 1)->type, *c = dot->results[0].type;
  int32_t warps[2];
  if (c->rank != 2) return "it has a batch";
  if (a->dtype == IR_f32 && ir_attr_i(dot, ATTR_prec) != PREC_tf32)
    return "32-bit floats are not to be rounded to tf32";
  if (groups && l->warp_bits < 2) return "there are fewer than four warps";
  if (groups && c->shape[0] < 64) return "it has fewer than 64 rows";
  if (groups && !group_warps(l, c, warps)) return "the columns of a group of warps are not 8 to 256";
  bool known = false;
  for (int i = 0; i < WGMMA_COUNT; i++)
    known |= groups && ir_wgmma[i].a == a->dtype && ir_wgmma[i].b == b->dtype && ir_wgmma[i].c == c->dtype;
  for (int i = 0; i < MMA_COUNT; i++)
    known |= !groups && ir_mma[i].a == a->dtype && ir_mma[i].b == b->dtype && ir_mma[i].c == c->dtype;
  return known ? "it is too small" : NULL;
}

static void explain_dot(Lay *l, const IrOp *op) { // that four warps do not take
  const IrType *a = ir_operand(op, 0)->type, *b = ir_operand(op, 1)->type, *c = op->results[0].type;
  if (!l->pass->config->explain) return;
  const int one = lay_mma_shape(op);
  const char *types = arena_printf(l->arena, "there is none of %s and %s to %s", ir_dtypes[a->dtype].name,
                                   ir_dtypes[b->dtype].name, ir_dtypes[c->dtype].name);
  const char *why = why_not_unit(l, op, one >= 0);
  if (!why) why = types;
  if (one < 0)
    pass_remark(l->pass, op->loc, "this product is computed without the matrix unit: %s", why);
  else if (l->wgmma)
    pass_remark(l->pass, op->loc,
                "single warps compute this product (mma, %d x %d x %d a time), not groups of four: %s",
                ir_mma[one].m, ir_mma[one].n, ir_mma[one].k, why);
  else
    pass_remark(l->pass, op->loc, "single warps compute this product (mma, %d x %d x %d a time)",
                ir_mma[one].m, ir_mma[one].n, ir_mma[one].k);
}

static void lay_dot(Lay *l, IrOp *op) {
  const IrType *a = ir_operand(op, 0)->type, *b = ir_operand(op, 1)->type, *c = op->results[0].type;
  const int group = wgmma_shape(l, op);
  if (group >= 0) {
    lay_wgmma(l, op, group);
    return;
  }
  explain_dot(l, op);
  if (lay_mma_shape(op) >= 0) {
    int32_t warps[2];
    mma_warps(l, c, warps);
    const uint32_t pack = (uint32_t)bits_log2(4u / ir_dtypes[a->dtype].bytes);
    const IrLayout al = layout_mma_a(2, a->shape, warps, pack), bl = layout_mma_b(2, b->shape, warps, pack),
                   cl = layout_mma_c(2, c->shape, warps);
    ask(l, op, 0, &al);
    ask(l, op, 1, &bl);
    ask(l, op, 2, &cl);
    give(l, op, 0, &cl);
    return;
  }
  const IrLayout al = default_layout(l, a), bl = default_layout(l, b), cl = default_layout(l, c);
  ask(l, op, 0, &al); // they pass through shared memory, whatever their layout
  ask(l, op, 1, &bl);
  ask(l, op, 2, &cl);
  give(l, op, 0, &cl);
}

// ---- tiles of products to tensors -----------------------------------------------------------------------------------------------------
typedef struct Meets { // does anything else in the function touch the tensor, or order memory?
  const PassRoots *roots;
  IrOpKind kind; // of the op that asks: its like are in order, each warp's
  uint64_t own;
  bool yes;
} Meets;
static bool find_meeting(IrOp *op, void *user) {
  Meets *m = user;
  const IrEffects e = ir_op_effects(op);
  if (op->nregions || op->kind == m->kind || op->kind == OP_desc_load_async || op->kind == OP_mbarrier_wait ||
      op->kind == OP_mbarrier_arrive || op->kind == OP_mbarrier_expect)
    return true;
  if (op->kind == OP_desc_store || op->kind == OP_desc_rmw) { // a sum does not wait for what is stored
    m->yes |= pass_roots_meet(m->own, pass_roots_written(m->roots, op));
    return !m->yes;
  }
  m->yes |= e.order != 0 || ((e.reads | e.writes) & (unsigned)(RES_SYMM | RES_SIGNAL)) != 0;
  if (!((e.reads | e.writes) & RES_GLOBAL)) return !m->yes;
  const IrValue *p = ir_operand(op, 0);
  const uint64_t roots = p && ir_type_is_ptr(p->type) ? pass_roots(m->roots, p) : PASS_ROOT_UNKNOWN;
  m->yes |= (roots & (m->own | PASS_ROOT_UNKNOWN | PASS_ROOT_PEER)) != 0;
  return !m->yes;
}

// A tile of a product that each warp takes to a tensor in strips of its own rows, in the background (OP_strip_store): its descriptor is
// the host's to make, and no other access of the function meets it.
static bool stored_in_strips(void *user, IrOp *op) {
  Lay *l = user;
  if ((op->kind != OP_desc_store && op->kind != OP_desc_rmw) || !l->wgmma || !l->pass->config->machine->tma)
    return false;
  const IrValue *v = ir_operand(op, 1), *d = ir_desc_source(ir_operand(op, 0));
  int32_t warps[2];
  IrLaunchDesc at;
  const char *why = NULL;
  const int rank = v->type->rank;
  const IrType *t = pass_as_matrix(l->ctx, v->type);
  while (v->def && v->def->kind == OP_reshape) v = ir_operand(v->def, 0);
  if (!t || rank > 5 || d->type->rank != rank || !from_product(v, 0) || !group_warps(l, t, warps))
    return false;
  const int bytes = ir_dtypes[t->dtype].bytes;
  const bool sum = op->kind == OP_desc_rmw && ir_attr_i(op, ATTR_rmw) == RMW_fadd && bytes <= 4;
  if (op->kind == OP_desc_rmw ? !sum : bytes != 2) return false;
  if (t->shape[1] / warps[1] * bytes < 128) return false;
  PassRoots *roots = pass_roots_run(l->f, l->arena);
  Meets m = {roots, op->kind, pass_roots(roots, d->def ? ir_operand(d->def, 0) : d), false};
  ir_walk(l->f->body, find_meeting, &m);
  if (m.yes)
    why = "the kernel accesses or orders memory that it may meet";
  else if (!ir_desc_at_launch(l->arena, d, &at, &why))
    why = arena_printf(l->arena, "the host cannot make its descriptor: %s", why);
  else if (!lay_desc_aligned(pass_axis_of_indices(l->f, l->arena), d))
    why = "its base, strides or last size are not known to be multiples of 16 bytes";
  if (why)
    pass_remark(l->pass, op->loc, "this tile is %s by all threads: %s", sum ? "added" : "stored", why);
  else
    pass_remark(l->pass, op->loc,
                "each warp %s its rows of this tile in strips of %d columns, in the background",
                sum ? "adds" : "stores", 128 / bytes);
  return !why;
}

const char *lay_desc_odd(const PassAxes *axes, const IrValue *d, const IrValue **which) {
  if (!d->def) return NULL;
  const int bytes = ir_dtypes[d->type->dtype].bytes;
  const uint32_t rank = (uint32_t)d->type->rank;
  *which = ir_operand(d->def, 0);
  if (pass_axis(axes, *which)->all_div % 16) return "its base is";
  *which = ir_operand(d->def, rank);
  // an edge inside of 16 bytes is refused at launch (image_map_fits)
  if ((int64_t)pass_axis(axes, *which)->all_div * bytes % 16) return "the size of its rows is";
  for (uint32_t i = 0; i + 1 < rank; i++) {
    *which = ir_operand(d->def, 1 + rank + i);
    if ((int64_t)pass_axis(axes, *which)->all_div * bytes % 16) return "a stride is";
  }
  return NULL;
}
bool lay_desc_aligned(const PassAxes *axes, const IrValue *d) {
  const IrValue *which;
  return !lay_desc_odd(axes, d, &which);
}

static IrLayout drop_axis(const IrLayout *from, const IrType *t, int axis) { // of a reduction
  int32_t slim[IR_MAX_RANK];
  memcpy(slim, t->shape, sizeof *slim * (size_t)t->rank);
  slim[axis] = 1;
  const IrLayout s = layout_slice(from, t->rank, slim, t->shape);
  return layout_compact(&s);
}

// ---- control --------------------------------------------------------------------------------------------------------------------
// What a carried value will be: the layout of the product or load that makes it, a few ops up.
static IrLayout foresee(Lay *l, IrValue *v, const IrType *t, int depth) {
  while (v && v->def && depth-- > 0) {
    const IrOp *op = v->def;
    if (op->kind == OP_dot)
      return wgmma_shape(l, op) >= 0 || lay_mma_shape(op) >= 0 ? dot_layout(l, op) : default_layout(l, t);
    if (op->kind == OP_dot_wait) return *v->type->layout;
    if (op->kind == OP_for || op->kind == OP_if) { // what a turn or an arm ends with
      v = ir_operand(ir_terminator(op->regions[0]), v->index);
      continue;
    }
    if (op->kind == OP_load) return memory_layout(l, ir_operand(op, 0));
    if (op->kind == OP_reshape) { // the flat index stays
      return foresee(l, ir_operand(op, 0), ir_operand(op, 0)->type, depth);
    }
    if (op->kind == OP_reduce) {
      const IrType *from = ir_operand(op, 0)->type;
      const IrLayout whole = foresee(l, ir_operand(op, 0), from, depth);
      return drop_axis(&whole, from, (int)ir_attr_i(op, ATTR_axis));
    }
    if (!(ir_ops[op->kind].traits & TRAIT_ELEMENTWISE)) break;
    IrValue *next = NULL; // not what is repeated to meet the others
    for (uint32_t i = 0; i < op->noperands; i++) {
      IrValue *o = ir_operand(op, i);
      if (!o || o->type->kind != IR_TILE) continue;
      if (!next && !o->def && o->type->layout) return *o->type->layout;
      if (o->def && !is_cheap(l, o) && (!next || next->def->kind == OP_broadcast)) next = o;
    }
    v = next;
  }
  return default_layout(l, t);
}

static void lay_for(Lay *l, IrOp *op) {
  IrBlock *body = op->regions[0];
  const IrOp *end = ir_terminator(body);
  for (int known = 1; known >= 0; known--) { // those that come in a layout first: others follow from them
    for (uint32_t i = 0; i < op->nresults; i++) {
      IrValue *init = ir_operand(op, 3 + i), *arg = body->args.data[1 + i];
      if (arg->type->kind != IR_TILE) continue;
      const bool comes = init->type->layout && !is_cheap(l, init) && !from_rows(ir_operand(end, i), 0);
      if (comes != known) continue;
      const IrLayout layout = known ? *init->type->layout : foresee(l, ir_operand(end, i), arg->type, 16);
      ask(l, op, 3 + i, &layout);
      arg->type = with(l, arg->type, &layout);
      give(l, op, i, &layout);
    }
  }
  lay_block(l, body);
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (body->args.data[1 + i]->type->kind == IR_TILE)
      ask(l, ir_terminator(body), i, body->args.data[1 + i]->type->layout);
  }
}

static void lay_if(Lay *l, IrOp *op) { // switch too
  for (uint32_t r = 0; r < op->nregions; r++) lay_block(l, op->regions[r]);
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (op->results[i].type->kind != IR_TILE) continue;
    const IrLayout layout = *layout_of(l, ir_operand(ir_terminator(op->regions[0]), i));
    for (uint32_t r = 0; r < op->nregions; r++) ask(l, ir_terminator(op->regions[r]), i, &layout);
    give(l, op, i, &layout);
  }
}

static void lay_while(Lay *l, IrOp *op) {
  IrBlock *before = op->regions[0], *after = op->regions[1];
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *arg = before->args.data[i];
    if (arg->type->kind != IR_TILE) continue;
    const IrLayout layout = *layout_of(l, ir_operand(op, i));
    ask(l, op, i, &layout);
    arg->type = with(l, arg->type, &layout);
  }
  lay_block(l, before);
  IrOp *test = ir_terminator(before);
  for (uint32_t i = 0; i < op->nresults; i++) { // operand 0 of cond_yield is the condition
    IrValue *v = ir_operand(test, 1 + i);
    if (v->type->kind != IR_TILE) continue;
    const IrLayout layout = *layout_of(l, v);
    give(l, op, i, &layout);
    after->args.data[i]->type = with(l, after->args.data[i]->type, &layout);
  }
  lay_block(l, after);
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (before->args.data[i]->type->kind == IR_TILE)
      ask(l, ir_terminator(after), i, before->args.data[i]->type->layout);
  }
}

// ---- the other ops ----------------------------------------------------------------------------------------------------------------
static void lay_reduce(Lay *l, IrOp *op) {
  const IrType *t = ir_operand(op, 0)->type;
  const IrLayout from = *layout_of(l, ir_operand(op, 0));
  ask_all(l, op, &from);
  const IrLayout to = drop_axis(&from, t, (int)ir_attr_i(op, ATTR_axis));
  for (uint32_t i = 0; i < op->nresults; i++) give(l, op, i, &to);
}

// A scan's axis lies in one thread's registers or along lanes, never across warps.
static void lay_scan(Lay *l, IrOp *op) {
  const IrType *t = ir_operand(op, 0)->type;
  const int axis = (int)ir_attr_i(op, ATTR_axis);
  int32_t per[IR_MAX_RANK], lanes[IR_MAX_RANK], warps[IR_MAX_RANK], order[IR_MAX_RANK];
  rows_order(t->rank, order);
  int32_t left_lanes = 1 << l->lane_bits, left_warps = 1 << l->warp_bits;
  for (int i = 0; i < t->rank; i++) per[i] = lanes[i] = warps[i] = 1;
  lanes[axis] = t->shape[axis] < left_lanes ? t->shape[axis] : left_lanes;
  per[axis] = t->shape[axis] / lanes[axis]; // the whole axis: each lane holds a run of it
  left_lanes /= lanes[axis];
  int other = axis;
  for (int k = t->rank - 1; k >= 0; k--) {
    if (k == axis) continue;
    lanes[k] = t->shape[k] < left_lanes ? t->shape[k] : left_lanes;
    left_lanes /= lanes[k];
    const int32_t room = t->shape[k] / lanes[k];
    warps[k] = room < left_warps ? room : left_warps;
    left_warps /= warps[k];
    other = k;
  }
  lanes[other] *= left_lanes;
  warps[other] *= left_warps;
  const IrLayout layout = layout_blocked(t->rank, t->shape, per, lanes, warps, order);
  ask_all(l, op, &layout);
  for (uint32_t i = 0; i < op->nresults; i++) give(l, op, i, &layout);
}

// How many bytes that lie beside each other in memory a thread has side by side in `layout`; plain: that of accesses in order.
static int64_t bytes_together(const IrType *t, const IrLayout *plain, const IrLayout *layout) {
  const int d = t->rank - 1;
  const uint32_t cols = (uint32_t)bits_log2((uint64_t)t->shape[d]);
  uint8_t reg[32];
  const uint32_t most = layout_run(plain, 0, cols, cols, reg);
  return (int64_t)ir_dtypes[t->dtype].bytes << layout_run(layout, 0, cols, most, reg);
}

// A matrix from memory that only meets a product's result (a residual, a bias of both axes) is loaded as that lies, by 4 bytes or more a
// thread, and moves nowhere.
static void load_as(Lay *l, IrValue *v, const IrLayout *layout) {
  IrValue *at = v;
  while (at->def && at->type->kind == IR_TILE && at->uses && !at->uses->next && at->def->noperands == 1 &&
         (ir_ops[at->def->kind].traits & TRAIT_ELEMENTWISE))
    at = ir_operand(at->def, 0);
  IrOp *load = at->def;
  if (!load || load->kind != OP_load || at->type->kind != IR_TILE || at->type->rank != 2 || !at->uses ||
      at->uses->next || !pass_is_plain_load(load) || !at->type->layout ||
      bytes_together(at->type, at->type->layout, layout) < 4)
    return;
  ask_all(l, load, layout);
  give(l, load, 0, layout);
  for (; at != v; at = ir_result(at->uses->user, 0)) give(l, at->uses->user, 0, layout);
}

static void lay_elementwise(Lay *l, IrOp *op) {
  const IrType *t = op->results[0].type;
  if (t->kind != IR_TILE) return;
  const IrLayout *chosen = NULL;
  bool product = false;
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *v = ir_operand(op, i);
    if (!v || v->type->kind != IR_TILE || is_cheap(l, v) || product) continue;
    product = from_product(v, 0); // what its matrix unit gave it is dearest to move
    if (product || !chosen) chosen = layout_of(l, v);
  }
  const IrLayout layout = chosen ? *chosen : default_layout(l, t);
  for (uint32_t i = 0; product && i < op->noperands; i++) {
    IrValue *v = ir_operand(op, i);
    if (v && v->type->kind == IR_TILE && v->type->layout && !is_cheap(l, v) &&
        v->type != with(l, v->type, &layout))
      load_as(l, v, &layout);
  }
  ask_all(l, op, &layout);
  for (uint32_t i = 0; i < op->nresults; i++) give(l, op, i, &layout);
}

// A tile that comes from elsewhere is stored, or added to memory, by the warps that hold it, where each of them still writes at least 64 bytes of a line: then it
// changes places within warps only.
static IrLayout store_layout(Lay *l, const IrOp *op) {
  IrValue *p = ir_operand(op, 0), *v = ir_operand(op, 1);
  const IrLayout plain = memory_layout(l, p);
  if (!v->type->layout || is_cheap(l, v) || layout_move(v->type->layout, &plain) != MOVE_SHARED) return plain;
  // so do eight lanes with a row's sum each
  if (v->type->rank == 1 && layout_regs(v->type->layout) <= 4 && from_rows(v, 0)) return *v->type->layout;
  // four lanes with 8 bytes each fill a sector of memory as they are
  if (v->type->rank == 2 && from_product(v, 0) && bytes_together(v->type, &plain, v->type->layout) >= 8)
    return *v->type->layout;
  const uint32_t bytes = (uint32_t)ir_dtypes[p->type->dtype].bytes;
  const uint32_t regs = plain.n[PLACE_REG], line = (uint32_t)bits_log2(64u / bytes);
  uint32_t run = 0; // neighbours in a thread: lanes go on where they end
  while (run < regs && plain.at[run] < plain.at[regs] && (!run || plain.at[run] == plain.at[run - 1] << 1))
    run++;
  IrLayout kept;
  return layout_with_warps(&plain, v->type->layout, run, line, &kept) ? kept : plain;
}

static void lay_op(Lay *l, IrOp *op) {
  IrLayout layout;
  IrValue *a = ir_operand(op, 0);
  switch (op->kind) {
  case OP_load:
  case OP_store:
  case OP_atomic_rmw:
  case OP_atomic_cas:
    if (a->type->kind != IR_TILE) return;
    layout = op->kind == OP_store || op->kind == OP_atomic_rmw ? store_layout(l, op) : memory_layout(l, a);
    ask_all(l, op, &layout);
    if (op->nresults) give(l, op, 0, &layout);
    return;
  case OP_dot: lay_dot(l, op); return;
  case OP_desc_store:
  case OP_desc_rmw: { // in strips
    const IrType *t = pass_as_matrix(l->ctx, ir_operand(op, 1)->type);
    int32_t warps[2];
    group_warps(l, t, warps);
    layout = layout_wgmma_c(2, t->shape, warps);
    ask(l, op, 1, &layout);
    return;
  }
  case OP_reduce: lay_reduce(l, op); return;
  case OP_scan: lay_scan(l, op); return;
  case OP_for: lay_for(l, op); return;
  case OP_while: lay_while(l, op); return;
  case OP_if:
  case OP_switch: lay_if(l, op); return;
  case OP_expand_dims:
  case OP_reshape: // the flat index stays
    layout = *layout_of(l, a);
    ask(l, op, 0, &layout);
    give(l, op, 0, &layout);
    return;
  case OP_trans:
    layout = layout_trans(layout_of(l, a), a->type->rank, a->type->shape, ir_attr(op, ATTR_perm)->ints.v);
    give(l, op, 0, &layout);
    return;
  case OP_broadcast: {
    layout = default_layout(l, op->results[0].type);
    const IrLayout inner = operand_layout(op, &layout);
    ask(l, op, 0, &inner);
    give(l, op, 0, &layout);
    return;
  }
  case OP_join:
    layout = *layout_of(l, a);
    ask_all(l, op, &layout);
    layout = layout_join(&layout);
    give(l, op, 0, &layout);
    return;
  case OP_split: {
    IrLayout halves;
    layout = *layout_of(l, a);
    if (!layout_split(&layout, &halves)) {
      halves = default_layout(l, op->results[0].type);
      layout = layout_join(&halves);
      ask(l, op, 0, &layout);
    }
    give(l, op, 0, &halves);
    give(l, op, 1, &halves);
    return;
  }
  case OP_gather:
  case OP_cat:
  case OP_histogram: // through shared memory: each side in blocks of its own
    for (uint32_t i = 0; i < op->noperands; i++) {
      if (!ir_operand(op, i)) continue;
      // Beside each other: an index and what it fetches, a mask and its values.
      const bool fetched = op->kind == OP_gather && i == 1, masked = op->kind == OP_histogram && i == 1;
      layout = default_layout(l, fetched ? op->results[0].type : ir_operand(op, masked ? 0 : i)->type);
      ask(l, op, i, &layout);
    }
    layout = default_layout(l, op->results[0].type);
    give(l, op, 0, &layout);
    return;
  case OP_unsplat:
    layout = *layout_of(l, a);
    ask(l, op, 0, &layout);
    return;
  default: break;
  }
  if (op->nresults && op->results[0].type->kind == IR_TILE && ir_ops[op->kind].traits & TRAIT_ELEMENTWISE) {
    lay_elementwise(l, op);
    return;
  }
  for (uint32_t r = 0; r < op->nregions; r++) lay_block(l, op->regions[r]);
  for (uint32_t i = 0; i < op->noperands; i++) { // print, assert, mem_store, ...: as the value is
    IrValue *v = ir_operand(op, i);
    if (!v || v->type->kind != IR_TILE) continue;
    layout = *layout_of(l, v);
    ask(l, op, i, &layout);
  }
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (op->results[i].type->kind == IR_TILE) layout_of(l, ir_result(op, i));
  }
}

static void lay_block(Lay *l, IrBlock *b) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    if (!(ir_ops[op->kind].traits & TRAIT_TERMINATOR)) lay_op(l, op);
  }
}

// Matrices in shared memory that are only copied, read and written as a whole lie as the matrix unit and tensor maps want them.
static bool only_whole(const IrValue *m) {
  for (const IrUse *u = m->uses; u; u = u->next) {
    switch (u->user->kind) {
    case OP_mem_load:
    case OP_mem_store:
    case OP_desc_load_async:
    case OP_desc_store_async: break;
    case OP_mem_view:
      if (!only_whole(ir_result(u->user, 0))) return false;
      break;
    default: return false;
    }
  }
  return true;
}
static void swizzle(Lay *l, IrValue *m, const IrLayout *at) {
  m->type = ir_type_with_layout(l->ctx, m->type, at);
  for (const IrUse *u = m->uses; u; u = u->next) {
    if (u->user->kind == OP_mem_view) swizzle(l, ir_result(u->user, 0), at);
  }
}
static bool lay_memory(IrOp *op, void *user) {
  if (op->kind != OP_mem_alloc) return true;
  const IrType *t = op->results[0].type;
  const int bytes = ir_dtypes[t->dtype].bytes;
  if (t->space != SPACE_shared || t->rank != 2 || t->shape[1] * bytes < 32 || t->shape[0] < 8 ||
      t->dtype == IR_i1 || !only_whole(ir_result(op, 0)))
    return true;
  const IrLayout at = layout_swizzled(2, t->shape, (uint32_t)bytes);
  swizzle(user, ir_result(op, 0), &at);
  return true;
}

// ---- loads across their rows --------------------------------------------------------------------------------------------------------
// A matrix that a product reads and whose neighbours in memory lie along its first axis is loaded turned, and turned back: its rows are then
// copied to shared memory as they are, and the matrix unit, or ldmatrix, takes either order.
static IrValue *turned(IrBuilder *b, Lay *l, IrValue *v) {
  if (!v) return NULL;
  const int64_t perm[2] = {1, 0};
  const int32_t shape[2] = {v->type->shape[1], v->type->shape[0]};
  const IrType *t = ir_type_with_shape(l->ctx, v->type, 2, shape);
  IrOp *op = ir_build(b, OP_trans, 1, &v, 1, &t, 0);
  ir_set_attr_ints(op, ATTR_perm, perm, 2);
  return ir_result(op, 0);
}

static void turn_load(Lay *l, IrOp *load) {
  IrBuilder b = ir_builder_before(load);
  b.loc = load->loc;
  IrValue *ops[3];
  for (uint32_t i = 0; i < 3; i++) ops[i] = turned(&b, l, ir_operand(load, i));
  const int32_t shape[2] = {load->results[0].type->shape[1], load->results[0].type->shape[0]};
  const IrType *t = ir_type_with_shape(l->ctx, load->results[0].type, 2, shape);
  IrOp *made = ir_build(&b, OP_load, 3, ops, 1, &t, 0);
  pass_copy_attrs(made, load);
  ir_replace_uses(ir_result(load, 0), turned(&b, l, ir_result(made, 0)));
  ir_erase(load);
}

static bool turn_operands(IrOp *op, void *user) {
  Lay *l = user;
  if (op->kind != OP_dot) return true;
  const int which = wgmma_shape(l, op);
  const bool either = which >= 0
                          ? ir_wgmma[which].any_major // in shared memory; ldmatrix turns elements of 16 bits
                          : lay_mma_shape(op) >= 0 && pass_elem_bits(ir_operand(op, 0)->type) == 16;
  if (!either) return true;
  for (uint32_t i = 0; i < 2; i++) {
    IrValue *v = ir_operand(op, i);
    if (is_turned(v)) v = ir_operand(v->def, 0);
    if (!v->def || v->def->kind != OP_load || v->type->rank != 2 || v->uses->next || v->id >= l->nvalues)
      continue;
    const PassAxis *x = pass_axis(l->axes, ir_operand(v->def, 0));
    if (x->contig[0] > x->contig[1]) turn_load(l, v->def);
  }
  return true;
}

// Layouts are decided in place; those of values without users are given at the end, so that every tile has one.
static bool finish(IrOp *op, void *user) {
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (op->results[i].type->kind == IR_TILE) layout_of(user, ir_result(op, i));
  }
  return true;
}

// A thread has 255 registers. Beyond some hundreds of elements the assembler takes minutes, and the kernel lives in spills.
static bool fits_threads(IrOp *op, void *user) {
  enum { MOST_ELEMS = 512 };
  const Lay *l = user;
  for (uint32_t i = 0; i < op->nresults; i++) {
    const IrType *t = op->results[i].type;
    const int64_t each = t->kind == IR_TILE ? ir_type_elems(t) >> (l->lane_bits + l->warp_bits) : 0;
    if (each <= MOST_ELEMS) continue;
    pass_error(
        l->pass, op->loc,
        "a tile of %lld elements is %lld for each of %d threads, of which each has 255 registers; the most is %d: "
        "take smaller blocks or more warps",
        (long long)ir_type_elems(t), (long long)each, 1 << (l->lane_bits + l->warp_bits), MOST_ELEMS);
    return false;
  }
  return true;
}

Status pass_lay(Pass *pass) {
  IrModule *m = pass->m;
  Place *p = arena_new(pass->scratch, Place);
  *p = (Place){.pass = pass, .m = m, .ctx = m->ctx, .arena = pass->scratch};
  if (ESCAPE_TRY(&p->fail)) return p->fail.status;
  PASS_EACH_FUNC(pass, f) {
    p->old = f;
    Lay *l = arena_new(pass->scratch, Lay);
    *l = (Lay){.pass = pass, .ctx = m->ctx, .arena = pass->scratch, .f = f};
    l->lane_bits = (uint32_t)bits_log2((uint64_t)m->lanes);
    l->warp_bits = (uint32_t)bits_log2((uint64_t)m->num_warps);
    l->wgmma = pass->config->machine && pass->config->machine->wgmma;
    p->keep = stored_in_strips;
    p->keep_user = l;
    if (!ir_walk(f->body, fits_threads, l)) return ST_UNSUPPORTED;
    place_expand(p, f); // descriptors to pointers and masks, carried pointers to scalars
    l->axes = pass_axis_of_indices(f, pass->scratch);
    l->nvalues = f->next_id;
    if (l->wgmma) {
      ir_walk(f->body, turn_operands, l);
      if (f->next_id > l->nvalues) l->axes = pass_axis_of_indices(f, pass->scratch);
    }
    l->nvalues = f->next_id;
    map_init(&l->stored, pass->scratch);
    map_init(&l->variants, pass->scratch);
    map_init(&l->cheap, pass->scratch);
    ir_walk(f->body, find_chain, l);
    if (l->wgmma) ir_walk(f->body, lay_memory, l);
    lay_block(l, f->body);
    ir_walk(f->body, finish, l);
    ir_renumber(f);
  }
  m->stage = STAGE_laid;
  return ST_OK;
}
