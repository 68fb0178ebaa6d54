// producer: what products read is fetched by a warp of its own (Hopper's tensor memory accelerator and mbarriers).
//
//   all warps         shared memory: rings of S stages, each with two barriers, `full` and `empty`
//   consumers         the program; in a loop whose products read tensor blocks, each turn:
//                       wait for full[stage]; the product reads the ring; the stage before is handed back to empty
//   producer          the program's control and addresses alone; each turn:
//                       wait for empty[stage]; announce the bytes to full[stage]; start the copies into the ring
//
// The producer runs ahead by up to S stages, across the turns of outer loops too: the next tile's first blocks arrive during the
// epilogue of this one. A stage's number and the parity of its phase are carried by all loops around.
// A loop takes part where its blocks come through descriptors that the host can make, feed products of four warps, and where nothing
// that the program computes or writes decides about addresses or control. What keeps a loop from it is a remark.
// Source of the structure: warp-specialised pipelines as CUTLASS documents them for Hopper.
#include "pass/pass_impl.h"

#include <string.h>

enum {
  // Registers are given up by four warps at once. Where nobody needs them one warp does, and two blocks may share a multiprocessor.
  PRODUCER_WARPS = 4,
  GIVES_FROM = 8, // warps of the program: else a thread has enough registers without taking the producer's
  MOST_RINGS = 6,
  MOST_READERS = 16,
  MOST_FEEDS = 4
};

typedef struct Ring { // of products that read blocks of the same kinds; not all of them have all its vectors
  uint32_t nfeeds;
  const IrType *block[MOST_FEEDS];
  IrValue *mem[MOST_FEEDS], *full, *empty;
  int64_t bytes; // of a stage
  int stages;
} Ring;

typedef struct Reader { // a product that reads from a ring, in the program as it was
  IrOp *dot, *loop;     // loop: around it, or NULL
  IrOp *last; // of a block that products of inner loops read (dot: one): its stage goes back behind this
  uint32_t ring, nfeeds;
  IrOp *feed[MOST_FEEDS];     // in the order of the text
  uint32_t place[MOST_FEEDS]; // of each among the ring's blocks
  int64_t bytes;              // of them
  bool ends_with_feed;        // the last one comes behind the product
  bool late; // the product of a turn runs on in the next one: its stage is handed back a turn later
} Reader;

typedef struct Back { // a stage that goes back when a turn ends
  uint32_t ring;
  IrValue *stage;
  Loc loc;
} Back;

typedef struct Side {
  Producer *p;
  bool consumer;
  Back back[MOST_READERS];
  uint32_t nback;
} Side;

typedef struct State { // of all rings: the stage that comes next, the parity of its phase
  IrValue *stage[MOST_RINGS], *phase[MOST_RINGS];
} State;

struct Producer {
  Pass *pass;
  IrCtx *ctx;
  Arena *arena;
  IrFunc *f;
  PassAxes *axes;
  PassRoots *roots;
  uint64_t written; // roots that the function writes
  Ring rings[MOST_RINGS];
  Reader readers[MOST_READERS]; // in the order of the text
  uint32_t nrings, nreaders;
  const IrType *i32;
  const char *why; // not
};

// ---- what can be fetched so -----------------------------------------------------------------------------------------------------
static const IrUse *only_use(const IrValue *v, const IrBlock *in) {
  return v->uses && !v->uses->next && v->uses->user->parent == in ? v->uses : NULL;
}

// The op between a block and its product that drops the leading axes; NULL: none.
static IrOp *dropping(const IrOp *load) {
  const IrUse *u = only_use(&load->results[0], load->parent);
  const int rank = load->results[0].type->rank;
  return u && u->user->kind == OP_reshape && (rank > 2 || u->user->results[0].type->rank < rank) ? u->user
                                                                                                 : NULL;
}

IrOp *pass_last_product(const IrValue *v) {
  IrOp *last = NULL;
  for (const IrUse *u = v->uses; u; u = u->next) {
    IrOp *dot = u->user;
    if (dot->parent != v->def->parent) return NULL;
    if (dot->kind == OP_trans)
      dot = pass_last_product(&dot->results[0]);
    else if (dot->kind != OP_dot || u == &dot->operands[2])
      dot = NULL;
    if (!dot) return NULL;
    if (!last || pass_is_before(last, dot)) last = dot;
  }
  return last;
}

static const IrValue *as_read(const IrOp *load) { // by products
  const IrOp *drops = dropping(load);
  return drops ? &drops->results[0] : &load->results[0];
}
static IrOp *fed_product(const IrOp *load) { return pass_last_product(as_read(load)); }

static IrOp *in_block(IrOp *op, const IrBlock *b) { // that op is, or is in
  while (op && op->parent != b) op = op->parent->owner;
  return op;
}

IrOp *pass_held_until(const IrValue *v, IrOp **product) {
  IrOp *last = NULL;
  for (const IrUse *u = v->uses; u; u = u->next) {
    IrOp *op = u->user, *until = NULL;
    if (op->kind == OP_trans)
      until = pass_held_until(&op->results[0], product);
    else if (op->kind == OP_dot && u != &op->operands[2])
      until = *product = op;
    if (until) until = in_block(until, v->def->parent);
    if (!until) return NULL;
    if (!last || pass_is_before(last, until)) last = until;
  }
  return last;
}

static const char *not_made_by_host(Producer *p, IrValue *d) {
  IrLaunchDesc at;
  const char *why = NULL;
  if (!ir_desc_at_launch(p->arena, d, &at, &why))
    return arena_printf(p->arena, "the host cannot make its descriptor: %s", why);
  return lay_desc_aligned(p->axes, d)
             ? NULL
             : "its base, strides or last size are not known to be multiples of 16 bytes";
}

static bool may_be_written(const Producer *p, const IrOp *load) {
  return pass_roots_meet(pass_roots(p->roots, ir_operand(load, 0)), p->written);
}

// A vector that comes with the blocks of a product before it; its leading axes are dropped.
static const IrType *as_vector(const IrOp *load) {
  const IrOp *drops = dropping(load);
  const IrType *t = (drops ? drops : load)->results[0].type, *block = load->results[0].type;
  return t->rank == 1 && t->shape[0] == block->shape[block->rank - 1] ? t : NULL;
}
bool pass_travels(const IrType *t) {
  return t->kind == IR_TILE && !ir_type_is_ptr(t) && t->rank == 1 && t->shape[0] <= 256 &&
         t->shape[0] * ir_dtypes[t->dtype].bytes % 128 == 0;
}
static bool is_vector(Producer *p, const IrOp *load) {
  const IrType *t = load->kind == OP_desc_load ? as_vector(load) : NULL;
  return t && pass_travels(t) && !may_be_written(p, load) &&
         !not_made_by_host(p, ir_desc_source(ir_operand(load, 0)));
}

static bool is_feed(Producer *p, IrOp *load, IrOp *dot) {
  if (load->kind != OP_desc_load) return false;
  const IrType *t = pass_as_matrix(p->ctx, load->results[0].type);
  IrOp *drops = dropping(load);
  const char *why = NULL;
  if (!dot || !lay_takes_groups(p->pass->m, dot))
    why = "it does not feed products of four warps";
  else if (!t || (load->results[0].type->rank > 2 && (!drops || drops->results[0].type != t)))
    why = "it is not a matrix";
  else if (t->shape[1] * ir_dtypes[t->dtype].bytes < 32 || t->shape[0] < 8)
    why = "its rows are shorter than 32 bytes";
  else if (may_be_written(p, load))
    why = "the kernel may write the memory that it reads";
  else
    why = not_made_by_host(p, ir_desc_source(ir_operand(load, 0)));
  if (why) pass_remark(p->pass, load->loc, "this block is not fetched by a producer warp: %s", why);
  return !why;
}

// A number from memory that the function does not write: both sides may read it.
static bool is_constant_load(const Producer *p, const IrOp *op) {
  if (op->kind != OP_load || !pass_is_plain_load(op)) return false;
  return !pass_roots_meet(pass_roots(p->roots, ir_operand(op, 0)), p->written);
}

// May a warp that sees none of the program's tiles compute v? `seen` is one question's, which ends at the first no: what is in it counts
// as a yes.
static bool is_scalar_work(Producer *p, const IrValue *v, Map *seen) {
  uint64_t known;
  if (!v || map_get(seen, (uint64_t)(uintptr_t)v, &known)) return true;
  map_set(seen, (uint64_t)(uintptr_t)v, 1);
  if (v->type->kind == IR_TILE || ir_type_is_thread(v->type)) return false;
  if (!v->def) {
    const IrOp *owner = v->block->owner;
    if (!owner) return true; // a parameter
    if (owner->kind != OP_for) return false;
    for (uint32_t i = 0; i < 3; i++) {
      if (v->index == 0 && !is_scalar_work(p, ir_operand(owner, i), seen)) return false;
    }
    return v->index == 0 || (is_scalar_work(p, ir_operand(owner, 2 + v->index), seen) &&
                             is_scalar_work(p, ir_operand(ir_terminator(v->block), v->index - 1), seen));
  }
  const IrOp *op = v->def;
  if (op->kind == OP_if)
    return is_scalar_work(p, ir_operand(op, 0), seen) &&
           is_scalar_work(p, ir_operand(ir_terminator(op->regions[0]), v->index), seen) &&
           is_scalar_work(p, ir_operand(ir_terminator(op->regions[1]), v->index), seen);
  if (op->kind == OP_for)
    return is_scalar_work(p, ir_operand(op, 3 + v->index), seen) &&
           is_scalar_work(p, ir_operand(ir_terminator(op->regions[0]), v->index), seen) &&
           is_scalar_work(p, ir_operand(op, 0), seen) && is_scalar_work(p, ir_operand(op, 1), seen) &&
           is_scalar_work(p, ir_operand(op, 2), seen);
  if (op->nregions || !((ir_ops[op->kind].traits & TRAIT_PURE) || is_constant_load(p, op))) return false;
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (!is_scalar_work(p, ir_operand(op, i), seen)) return false;
  }
  return true;
}

static bool is_reachable(Producer *p,
                         const IrOp *loop) { // through loops and choices whose control is scalar work
  Map seen;
  map_init(&seen, p->arena);
  for (const IrOp *op = loop; op; op = op->parent->owner) {
    if (op->kind == OP_if && is_scalar_work(p, ir_operand(op, 0), &seen)) continue;
    if (op->kind != OP_for || ir_type_is_thread(ir_operand(op, 0)->type)) return false;
    for (uint32_t i = 0; i < 3; i++) {
      if (!is_scalar_work(p, ir_operand(op, i), &seen)) return false;
    }
  }
  return true;
}

static int64_t block_bytes(const IrType *t) { return ir_type_elems(t) * ir_dtypes[t->dtype].bytes; }

// Does op, or what it is in, stand between the reader's blocks and its product?
static bool is_within(const Reader *x, IrOp *op) {
  const IrOp *end = x->ends_with_feed ? x->feed[x->nfeeds - 1] : x->dot;
  IrOp *at = in_block(op, x->dot->parent);
  return at && pass_is_before(x->feed[0], at) && pass_is_before(at, end);
}

// Do both read blocks of the same tensors, one after the other?
static bool same_tensors(const Reader *x, const Reader *y) {
  if (x->nfeeds != y->nfeeds) return false;
  for (uint32_t k = 0; k < x->nfeeds; k++) {
    if (ir_desc_source(ir_operand(x->feed[k], 0)) != ir_desc_source(ir_operand(y->feed[k], 0))) return false;
  }
  return true;
}

// Does the product that runs until its result is used keep its stage until after x, which comes behind it, waits for its blocks?
static bool is_kept_for(const Reader *y, const Reader *x) {
  const IrOp *user = ir_attr_i(y->dot, ATTR_until_use) ? pass_first_user(ir_result(y->dot, 0)) : y->dot;
  return !user || !pass_is_before(user, x->feed[0]);
}

// Does a product of this block, or of a loop between, read from the ring already? Each has one of its own, or it would wait for the
// others' blocks; but for turns of a loop that are written out, of which those that keep their stages leave one.
static bool is_taken(const Producer *p, uint32_t ring, const Reader *x) {
  int behind = 0; // readers of this block, from y on
  for (uint32_t i = p->nreaders; i-- > 0;) {
    const Reader *y = &p->readers[i];
    if (y->ring != ring) continue;
    if (y->last || is_within(x, y->dot) || is_within(y, x->dot)) return true;
    if (y->dot->parent != x->dot->parent) continue;
    if (!same_tensors(x, y) || (++behind >= p->rings[ring].stages && is_kept_for(y, x))) return true;
  }
  return false;
}

// Gives each block of the reader's a place in the ring; false: it has others.
static bool take_places(Reader *x, const Ring *own, Ring *r) {
  bool used[MOST_FEEDS] = {false};
  for (uint32_t k = 0; k < x->nfeeds; k++) {
    uint32_t i = 0;
    while (i < r->nfeeds && (used[i] || r->block[i] != own->block[k])) i++;
    if (i == r->nfeeds) {
      if (own->block[k]->rank != 1 || i == MOST_FEEDS) return false;
      r->block[r->nfeeds++] = own->block[k];
      r->bytes += block_bytes(own->block[k]);
    }
    used[i] = true;
    x->place[k] = i;
  }
  for (uint32_t i = 0; i < r->nfeeds; i++) {
    if (!used[i] && r->block[i]->rank != 1) return false;
  }
  return true;
}
static uint32_t ring_of(Producer *p, Reader *x, const Ring *own) { // one that there is, if it fits
  for (uint32_t i = 0; i < p->nrings; i++) {
    Ring r = p->rings[i];
    if (r.stages != own->stages || is_taken(p, i, x) || !take_places(x, own, &r)) continue;
    p->rings[i] = r;
    return i;
  }
  for (uint32_t k = 0; k < x->nfeeds; k++) x->place[k] = k;
  p->rings[p->nrings] = *own;
  return p->nrings++;
}

// How many blocks ahead what a loop's products read is fetched. What a loop around others asks for is for the blocks that are held during
// those.
static int stages_of(const Producer *p, const IrOp *loop) {
  int64_t asked = loop ? ir_attr_i(loop, ATTR_stages) : 0;
  if (asked) {
    PASS_EACH_OP(loop->regions[0], op)
    if (op->kind == OP_for) asked = 0;
  }
  return (int)(asked ? asked : p->pass->m->num_stages);
}

static IrOp *loop_around(const IrOp *op) {
  IrOp *owner = op->parent->owner;
  return owner && owner->kind == OP_for ? owner : NULL;
}

static bool place_is_scalar(Producer *p, const IrOp *load) {
  Map seen;
  map_init(&seen, p->arena);
  for (uint32_t i = 1; i < load->noperands; i++) {
    if (is_scalar_work(p, ir_operand(load, i), &seen)) continue;
    pass_remark(p->pass, load->loc,
                "this block is not fetched by a producer warp: its place depends on tiles or memory");
    return false;
  }
  return true;
}

static void add_feed(Producer *p, Reader *x, Ring *r, IrOp *load) {
  const IrType *vector = as_vector(load),
               *t = vector ? vector : pass_as_matrix(p->ctx, load->results[0].type);
  x->feed[x->nfeeds++] = load;
  x->bytes += block_bytes(t);
  r->block[r->nfeeds++] = t;
  r->bytes += block_bytes(t);
}

// A block that is loaded once for the products of loops behind it: one at a time, or as many ahead as the loop around asks for.
static void note_held(Producer *p, IrOp *load) {
  Reader x = {0};
  const IrOp *around = loop_around(load);
  const int64_t asked = around ? ir_attr_i(around, ATTR_stages) : 0;
  Ring r = {.stages = asked > 1 ? (int)asked : 1};
  if (fed_product(load) || p->nrings == MOST_RINGS || p->nreaders == MOST_READERS) return;
  x.last = pass_held_until(as_read(load), &x.dot);
  if (!x.last || !is_feed(p, load, x.dot) || !place_is_scalar(p, load) ||
      (load->parent->owner && !is_reachable(p, load->parent->owner)))
    return;
  add_feed(p, &x, &r, load);
  x.ring = p->nrings;
  p->rings[p->nrings++] = r;
  p->readers[p->nreaders++] = x;
}

static bool count_products(IrOp *op, void *user) {
  *(int *)user += op->kind == OP_dot;
  return true;
}

// A product whose blocks a producer may fetch. Behind the same loop's others: its ring is its own, so that it need not wait for theirs.
static void note_product(Producer *p, IrOp *dot) {
  Reader x = {.dot = dot, .loop = loop_around(dot)};
  Ring r = {0};
  const IrOp *owner = NULL; // of vectors: the product that the block before is for
  PASS_EACH_OP(dot->parent, op) {
    IrOp *own = op->kind == OP_desc_load ? fed_product(op) : NULL;
    if (own) owner = own;
    const bool block = own == dot && is_feed(p, op, dot),
               vector = !own && x.nfeeds && owner == dot && is_vector(p, op);
    if ((block || vector) && x.nfeeds < MOST_FEEDS && place_is_scalar(p, op)) add_feed(p, &x, &r, op);
  }
  x.ends_with_feed = x.nfeeds && pass_is_before(dot, x.feed[x.nfeeds - 1]);
  if (!x.nfeeds) return;
  const bool in_loop = x.loop != NULL;
  r.stages = stages_of(p, x.loop);
  if (r.stages < 2 || !is_reachable(p, dot->parent->owner) || p->nrings == MOST_RINGS ||
      p->nreaders == MOST_READERS) {
    pass_remark(
        p->pass, dot->loc, "no producer warp fetches for this product: %s",
        r.stages < 2
            ? "it asks for one stage"
            : "its control, or that around it, is not of plain loops and choices, or there are too many such products");
    return;
  }
  const IrUse *u = dot->results[0].uses;
  int products = 0; // inner loops' too: their blocks may be of the same ring
  ir_walk(dot->parent, count_products, &products);
  x.late = in_loop && products == 1 && u && !u->next && u->user == ir_terminator(dot->parent);
  x.ring = ring_of(p, &x, &r);
  p->readers[p->nreaders++] = x;
}

static bool find_products(IrOp *op, void *user) {
  if (op->kind == OP_dot) note_product(user, op);
  if (op->kind == OP_desc_load) note_held(user, op);
  return true;
}

static bool reads_in_loops(const Producer *p) { // else nothing is fetched ahead
  for (uint32_t i = 0; i < p->nreaders; i++) {
    if (p->readers[i].loop) return true;
  }
  return false;
}

// Ops whose results others use and that must happen once, or that partitions cannot hold.
static bool stays_whole(IrOp *op, void *user) {
  Producer *p = user;
  const IrEffects e = ir_op_effects(op);
  const bool own = op->kind == OP_warp_partitions || op->kind == OP_mem_alloc ||
                   op->kind == OP_mbarrier_alloc || op->kind == OP_tid || op->kind == OP_while;
  if (own || pass_orders(op) || ((e.writes & ~(unsigned)(RES_GLOBAL | RES_SYMM)) && op->nresults))
    p->why = ir_ops[op->kind].name;
  if (op->kind == OP_atomic_rmw || op->kind == OP_atomic_cas) {
    if (op->results[0].uses) p->why = ir_ops[op->kind].name;
  }
  return !p->why;
}

// ---- rings ------------------------------------------------------------------------------------------------------------------------
static IrValue *k32(Producer *p, IrBuilder *b, int64_t v) { return ir_const_i(b, p->i32, v); }

static void make_ring(Producer *p, IrBuilder *b, Ring *r) {
  for (uint32_t i = 0; i < r->nfeeds; i++) {
    const IrType *t = ir_type_memdesc(p->ctx, r->block[i]->dtype, SPACE_shared, r->block[i]->rank,
                                      r->block[i]->shape, r->stages);
    r->mem[i] = ir_result(ir_build(b, OP_mem_alloc, 0, NULL, 1, &t, 0), 0);
  }
  const IrType *bt = ir_type_mbarrier(p->ctx, r->stages);
  for (int k = 0; k < 2; k++) {
    IrOp *op = ir_build(b, OP_mbarrier_alloc, 0, NULL, 1, &bt, 0);
    ir_set_attr_i(op, ATTR_count, k ? p->pass->m->num_warps : 1);
    *(k ? &r->empty : &r->full) = ir_result(op, 0);
  }
}

static void wait_for(Producer *p, IrBuilder *b, IrValue *bar, IrValue *stage, IrValue *parity) {
  const IrType *token = ir_type_token(p->ctx);
  IrValue *ops[3] = {bar, stage, parity};
  ir_build(b, OP_mbarrier_wait, 3, ops, 1, &token, 0);
}

static void hand_back(IrBuilder *b, const Ring *r, IrValue *stage) { // by each warp
  IrValue *ops[2] = {r->empty, stage};
  ir_set_attr_i(ir_build(b, OP_mbarrier_arrive, 2, ops, 0, NULL, 0), ATTR_each_warp, 1);
}

static void hand_back_if(Producer *p, IrBuilder *b, const Ring *r,
                         IrValue *stage) { // not before the first turn
  IrValue *is_one = ir_cmp(b, CMP_sge, stage, k32(p, b, 0));
  IrOp *cond = ir_build(b, OP_if, 1, &is_one, 0, NULL, 2);
  for (int i = 0; i < 2; i++) {
    IrBuilder in = ir_builder_at_end(cond->regions[i]);
    in.loc = b->loc;
    if (i == 0) hand_back(&in, r, stage);
    ir_yield(&in, 0, NULL);
  }
}

// One more carried value of a loop: its argument, and what comes out. The body's yield is to be given its next.
static IrValue *carry(IrOp *loop, IrValue *init) {
  ir_op_add_operand(loop, init);
  ir_op_add_result(loop, init->type);
  return ir_block_arg(loop->regions[0], init->type, NULL);
}

static void advance(Producer *p, IrBuilder *b, const Ring *r, IrValue **stage, IrValue **phase) {
  IrValue *next = ir_binary(b, OP_add, *stage, k32(p, b, 1)),
          *wraps = ir_cmp(b, CMP_eq, next, k32(p, b, r->stages));
  *stage = ir_select(b, wraps, k32(p, b, 0), next);
  *phase = ir_binary(b, OP_xor, *phase, ir_cast(b, OP_ext_u, wraps, p->i32));
}

// Marks: of a feed its reader and which of its feeds it is; of a product its reader; of a loop around some the bits of their rings.
static void *mark_of(uint32_t reader, uint32_t feed) {
  return (void *)(uintptr_t)((reader + 1) * MOST_FEEDS + feed);
}
static const Reader *reader_of(const Producer *p, const IrOp *op) {
  return &p->readers[(uint32_t)(uintptr_t)op->aux / MOST_FEEDS - 1];
}
static uint32_t feed_of(const IrOp *op) { return (uint32_t)(uintptr_t)op->aux % MOST_FEEDS; }

static void consume(Producer *p, IrOp *op, State *st) {
  const Reader *x = reader_of(p, op);
  const Ring *r = &p->rings[x->ring];
  const uint32_t k = feed_of(op);
  IrBuilder b = ir_builder_before(op);
  b.loc = op->loc;
  if (k == 0) wait_for(p, &b, r->full, st->stage[x->ring], st->phase[x->ring]);
  const IrType *t = r->block[x->place[k]];
  IrValue *v = pass_ring_stage(&b, r->mem[x->place[k]], st->stage[x->ring]);
  IrOp *drops = dropping(op), *whole = drops ? drops : op;
  ir_replace_uses(ir_result(whole, 0), ir_result(ir_build(&b, OP_mem_load, 1, &v, 1, &t, 0), 0));
  if (x->last) {
    IrBuilder behind = ir_builder_after(x->last);
    behind.loc = op->loc;
    hand_back(&behind, r, st->stage[x->ring]);
    advance(p, &b, r, &st->stage[x->ring], &st->phase[x->ring]);
  }
  ir_erase(whole);
  if (drops) ir_erase(op);
}

static void produce(Producer *p, IrOp *op, State *st) {
  const Reader *x = reader_of(p, op);
  const Ring *r = &p->rings[x->ring];
  const uint32_t k = feed_of(op), rank = op->noperands - 1;
  IrValue *stage = st->stage[x->ring];
  IrBuilder b = ir_builder_before(op);
  b.loc = op->loc;
  if (k == 0) {
    wait_for(p, &b, r->empty, stage, ir_binary(&b, OP_xor, st->phase[x->ring], k32(p, &b, 1)));
    IrValue *ops[3] = {r->full, stage, k32(p, &b, x->bytes)};
    ir_build(&b, OP_mbarrier_expect, 3, ops, 0, NULL, 0);
  }
  IrValue *ops[4 + IR_MAX_RANK] = {ir_operand(op, 0), pass_ring_stage(&b, r->mem[x->place[k]], stage),
                                   r->full, stage};
  for (uint32_t i = 0; i < rank; i++) ops[4 + i] = ir_operand(op, 1 + i);
  IrOp *copy = ir_build(&b, OP_desc_load_async, 4 + rank, ops, 0, NULL, 0);
  if (ir_attr(op, ATTR_evict)) ir_set_attr_i(copy, ATTR_evict, ir_attr_i(op, ATTR_evict));
  ir_replace_uses(ir_result(op, 0), pass_const_bits(&b, op->results[0].type, 0));
  if (x->last) advance(p, &b, r, &st->stage[x->ring], &st->phase[x->ring]);
  ir_erase(op);
}

// Behind a product and all its feeds, at b, its stage goes back: at once, when the turn ends (its sum is wanted then), or a turn later.
static void after_product(Side *s, const Reader *x, IrBuilder b, State *st, IrValue *before) {
  Producer *p = s->p;
  IrOp *dot = x->dot;
  const Ring *r = &p->rings[x->ring];
  b.loc = dot->loc;
  if (s->consumer && x->late) {
    ir_set_attr_i(dot, ATTR_late, 1);
    hand_back_if(p, &b, r, before);
  } else if (s->consumer && ir_attr_i(dot, ATTR_until_use)) {
    IrOp *user = pass_first_user(ir_result(dot, 0));
    if (!user || user == ir_terminator(dot->parent)) {
      s->back[s->nback++] = (Back){x->ring, st->stage[x->ring], dot->loc};
    } else { // behind a vector that comes later, too
      IrBuilder used = x->ends_with_feed && user != b.before && pass_is_before(user, b.before)
                           ? b
                           : ir_builder_after(user);
      used.loc = dot->loc;
      hand_back(&used, r, st->stage[x->ring]);
    }
  } else if (s->consumer) {
    hand_back(&b, r, st->stage[x->ring]);
  }
  advance(p, &b, r, &st->stage[x->ring], &st->phase[x->ring]);
}

static void side_block(Side *s, IrBlock *b, State *st, IrValue *before);

// A loop around readers carries the state of their rings.
static void side_loop(Side *s, IrOp *op, State *st) {
  Producer *p = s->p;
  const uint32_t rings = (uint32_t)(uintptr_t)op->aux;
  IrBlock *body = op->regions[0];
  State in = *st;
  const Reader *late = NULL;
  PASS_EACH_OP(body, dot) {
    if (dot->kind == OP_dot && dot->aux && reader_of(p, dot)->late) late = reader_of(p, dot);
  }
  uint32_t n = op->nresults;
  for (uint32_t i = 0; i < p->nrings; i++) {
    if (!(rings >> i & 1)) continue;
    in.stage[i] = carry(op, st->stage[i]);
    in.phase[i] = carry(op, st->phase[i]);
  }
  IrBuilder outside = ir_builder_before(op);
  IrValue *before = s->consumer && late ? carry(op, k32(p, &outside, -1)) : NULL;
  State out = in;
  side_block(s, body, &out, before);
  IrOp *yield = ir_terminator(body);
  for (uint32_t i = 0; i < p->nrings; i++) {
    if (!(rings >> i & 1)) continue;
    ir_op_add_operand(yield, out.stage[i]);
    ir_op_add_operand(yield, out.phase[i]);
    st->stage[i] = ir_result(op, n++);
    st->phase[i] = ir_result(op, n++);
  }
  if (!before) return;
  ir_op_add_operand(yield, in.stage[late->ring]);
  IrBuilder after = ir_builder_after(op);
  after.loc = op->loc;
  hand_back_if(p, &after, &p->rings[late->ring], ir_result(op, n));
}

// A choice with readers hands on the state that its arm has left.
static void side_if(Side *s, IrOp *op, State *st) {
  Producer *p = s->p;
  const uint32_t rings = (uint32_t)(uintptr_t)op->aux;
  State out[2] = {*st, *st};
  uint32_t n = op->nresults;
  for (int r = 0; r < 2; r++) side_block(s, op->regions[r], &out[r], NULL);
  for (uint32_t i = 0; i < p->nrings; i++) {
    if (!(rings >> i & 1)) continue;
    for (int r = 0; r < 2; r++) {
      ir_op_add_operand(ir_terminator(op->regions[r]), out[r].stage[i]);
      ir_op_add_operand(ir_terminator(op->regions[r]), out[r].phase[i]);
    }
    ir_op_add_result(op, p->i32);
    ir_op_add_result(op, p->i32);
  }
  for (uint32_t i = 0; i < p->nrings; i++) {
    if (!(rings >> i & 1)) continue;
    st->stage[i] = ir_result(op, n++);
    st->phase[i] = ir_result(op, n++);
  }
}

static void side_block(Side *s, IrBlock *b, State *st, IrValue *before) {
  const uint32_t nback = s->nback;
  for (IrOp *op = b->first, *next; op; op = next) {
    IrOp *prev = op->prev; // what follows may go with op
    next = op->next;
    if (!op->aux) continue;
    if (op->kind == OP_for) {
      side_loop(s, op, st);
    } else if (op->kind == OP_if) {
      side_if(s, op, st);
    } else if (op->kind == OP_dot) {
      const Reader *x = reader_of(s->p, op);
      if (!x->ends_with_feed) after_product(s, x, ir_builder_after(op), st, before);
    } else {
      const Reader *x = reader_of(s->p, op);
      const bool is_end = x->ends_with_feed && feed_of(op) == x->nfeeds - 1;
      IrOp *drops = dropping(op), *behind = (drops ? drops : op)->next;
      (s->consumer ? consume : produce)(s->p, op, st);
      if (is_end) after_product(s, x, ir_builder_before(behind), st, before);
      next = prev ? prev->next : b->first;
    }
  }
  // Last of all, beside each other: products that run until the turn ends are waited for before the first (lay).
  for (uint32_t i = nback; i < s->nback; i++) {
    IrBuilder end = ir_builder_before(ir_terminator(b));
    end.loc = s->back[i].loc;
    hand_back(&end, &s->p->rings[s->back[i].ring], s->back[i].stage);
  }
  s->nback = nback;
}

static bool clear_mark(IrOp *op, void *user) {
  (void)user;
  op->aux = NULL;
  return true;
}
static void mark(Producer *p, IrBlock *b) {
  ir_walk(b, clear_mark, NULL);
  for (uint32_t i = 0; i < p->nreaders; i++) {
    const Reader *x = &p->readers[i];
    if (!x->last) x->dot->aux = mark_of(i, 0);
    for (uint32_t k = 0; k < x->nfeeds; k++) x->feed[k]->aux = mark_of(i, k);
    for (IrOp *loop = x->feed[0]->parent->owner; loop; loop = loop->parent->owner)
      loop->aux = (void *)((uintptr_t)loop->aux | (uintptr_t)1 << x->ring);
  }
}
static void copy_marks(IrBlock *to, const IrBlock *from) { // of a clone
  IrOp *t = to->first;
  for (const IrOp *op = from->first; op && t; op = op->next, t = t->next) {
    t->aux = op->aux;
    for (uint32_t r = 0; r < op->nregions; r++) copy_marks(t->regions[r], op->regions[r]);
  }
}

// The producer's clone does nothing but its copies.
static bool drop_effects(IrOp *op, void *user) {
  (void)user;
  if (op->nregions || op->kind == OP_desc_load_async || op->kind == OP_mbarrier_expect ||
      op->kind == OP_mbarrier_wait || (ir_ops[op->kind].traits & TRAIT_TERMINATOR))
    return true;
  const IrEffects e = ir_op_effects(op);
  if (!e.writes && !e.barrier && op->nresults) return true;
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (op->results[i].uses) return true;
  }
  ir_erase(op);
  return true;
}

// ---- the function -------------------------------------------------------------------------------------------------------------------
static void divide(Producer *p) {
  IrModule *m = p->pass->m;
  IrFunc *f = p->f;
  IrOp *end = ir_terminator(f->body);
  mark(p, f->body);
  IrBuilder b = ir_builder_before(end);
  b.loc = p->readers[0].dot->loc;
  IrOp *parts = ir_build(&b, OP_warp_partitions, 0, NULL, 0, NULL, 2);
  const bool gives = m->num_warps >= GIVES_FROM && !m->max_registers;
  const int64_t first[2] = {0, m->num_warps}, warps[2] = {m->num_warps, gives ? PRODUCER_WARPS : 1},
                alone[2] = {0, 1};
  ir_set_attr_ints(parts, ATTR_first, first, 2);
  ir_set_attr_ints(parts, ATTR_warps, warps, 2);
  ir_set_attr_ints(parts, ATTR_alone, alone, 2);
  if (gives) {
    const int64_t threads = m->num_warps * m->lanes, spare = 24 * PRODUCER_WARPS * m->lanes;
    const int64_t regs[2] = {
        (65536 - spare) / threads / 8 * 8 > 240 ? 240 : (65536 - spare) / threads / 8 * 8, 24};
    ir_set_attr_ints(parts, ATTR_regs, regs, 2);
  }
  m->extra_warps = (int)warps[1];
  IrBlock *all = parts->regions[0], *fetch = parts->regions[1];
  while (f->body->first != parts) ir_move_to_end(f->body->first, all);
  Map values;
  map_init(&values, p->arena);
  IrBuilder copy = ir_builder_at_end(fetch);
  PASS_EACH_OP(all, op) ir_clone_op(&copy, op, &values);
  copy_marks(fetch, all);
  b = ir_builder_before(parts);
  b.loc = parts->loc;
  for (uint32_t i = 0; i < p->nrings; i++) make_ring(p, &b, &p->rings[i]);
  for (int k = 0; k < 2; k++) {
    Side s = {.p = p, .consumer = k == 0};
    State st;
    IrBlock *body = parts->regions[k];
    IrBuilder start = ir_builder_before(body->first);
    start.loc = parts->loc;
    for (uint32_t i = 0; i < p->nrings; i++) st.stage[i] = st.phase[i] = k32(p, &start, 0);
    side_block(&s, body, &st, NULL);
    ir_walk(body, clear_mark, NULL);
    if (k) ir_walk(body, drop_effects, NULL);
    IrBuilder last = ir_builder_at_end(body);
    last.loc = parts->loc;
    ir_yield(&last, 0, NULL);
  }
  for (uint32_t i = 0; i < p->nreaders; i++) {
    const Reader *x = &p->readers[i];
    const Ring *r = &p->rings[x->ring];
    if (x->last) {
      pass_remark(p->pass, x->feed[0]->loc,
                  "a producer warp fetches this block%s (%lld bytes of shared memory)",
                  r->stages > 1 ? " ahead" : "", (long long)r->bytes * r->stages);
      continue;
    }
    bool own = true;
    for (uint32_t k = 0; k < i; k++) own &= p->readers[k].ring != x->ring;
    pass_remark(
        p->pass, x->dot->loc,
        "a producer warp fetches %u operand%s of this product, up to %d ahead (%lld bytes of shared memory%s)%s",
        r->nfeeds, r->nfeeds > 1 ? "s" : "", r->stages, (long long)r->bytes * r->stages,
        own ? "" : ", those of a product before", x->late ? "; it runs on beside the next turn" : "");
  }
}

// Ops of the function that keep a producer warp away; NULL: none.
static const char *kept_whole_by(Producer *p) {
  p->why = NULL;
  ir_walk(p->f->body, stays_whole, p);
  return p->why;
}

static bool find_written(IrOp *op, void *user) {
  Producer *p = user;
  p->written |= pass_roots_written(p->roots, op);
  return true;
}

static Producer *producer_new(Pass *pass, IrFunc *f) {
  Producer *p = arena_new(pass->scratch, Producer);
  *p = (Producer){.pass = pass, .ctx = pass->m->ctx, .arena = pass->scratch, .f = f};
  p->roots = pass_roots_run(f, p->arena);
  ir_walk(f->body, find_written, p);
  p->i32 = ir_type_scalar(p->ctx, IR_i32, LEVEL_program);
  return p;
}

static bool takes_module(const Pass *pass) {
  const IrModule *m = pass->m;
  const PassMachine *machine = pass->config->machine;
  return machine && machine->tma && machine->wgmma && m->lanes == 32 && m->num_warps % 4 == 0 &&
         m->num_warps <= 12 && m->funcs && !m->funcs->next;
}

Producer *pass_producer_for(Pass *pass, IrFunc *f) {
  Producer *p = takes_module(pass) ? producer_new(pass, f) : NULL;
  return p && !kept_whole_by(p) ? p : NULL;
}

bool pass_producer_reaches(Producer *p, const IrOp *dot) {
  const IrOp *loop = dot->parent->owner;
  return stages_of(p, loop) >= 2 && is_reachable(p, loop);
}

Status pass_producer(Pass *pass) {
  if (!takes_module(pass)) return ST_OK;
  PASS_EACH_FUNC(pass, f) {
    Producer *p = producer_new(pass, f);
    p->axes = pass_axis_run(f, pass->scratch);
    ir_walk(f->body, find_products, p);
    if (!reads_in_loops(p)) continue;
    const char *why = kept_whole_by(p);
    if (why) {
      pass_remark(pass, p->readers[0].dot->loc, "this loop has no producer warp: the kernel has '%s'", why);
      continue;
    }
    divide(p);
    ir_renumber(f);
  }
  return ST_OK;
}
