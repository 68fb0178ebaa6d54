// pipe: software pipelines in the laid-out stage: what a loop's products read is copied to shared memory some iterations ahead.
//
//   before          copies of iterations 0 .. L-1 into stages 0 .. L-1
//   for i           wait until iteration i's copies are there; all threads meet
//                   copies of iteration i + L into the stage that iteration i + L - S has read
//                   the product reads stage i mod S
//
// L is S - 1; S - 2 where the product of an iteration is still in flight in the next (its result is but the next one's c).
//
// A load takes part where it orders nothing, meets no write in the loop, feeds only one product, and its addresses can be computed
// ahead (turns.h). What keeps a loop from it is a remark.
#include "pass/turns.h"

#include <string.h>

typedef struct Pipe {
  Pass *pass;
  IrCtx *ctx;
  Arena *arena;
  PassAxes *axes;
  PassRoots *roots;
  IrFunc *f;
} Pipe;

typedef struct
    Feed { // a load and what takes it to its product: a relayout to registers, or a mem_store into a buffer of one stage
  IrOp *load, *user;
  IrValue *buffer; // the ring
} Feed;

typedef struct Loop {
  Pipe *p;
  IrOp *op;
  IrBlock *body;
  Vec(Feed) feeds;
  int stages, lead; // copies are that many iterations ahead
} Loop;

// ---- what can be copied ahead -------------------------------------------------------------------------------------------------
typedef struct Writes {
  const Pipe *p;
  uint64_t roots;
  bool found;
} Writes;
static bool find_write(IrOp *op, void *user) {
  Writes *w = user;
  const IrEffects e = ir_op_effects(op);
  if (op->nregions) return true;
  if (pass_orders(op) || e.barrier) w->found = true;
  w->roots |= pass_roots_written(w->p->roots, op);
  return true;
}

// How many bytes of neighbours one copy can take; 0: too few.
static int copy_bytes(const Pipe *p, const IrOp *load) {
  const IrValue *ptr = ir_operand(load, 0);
  const IrType *t = ptr->type;
  const int d = t->rank - 1; // shared memory is row-major
  const uint32_t cols = t->shape[d] > 1 ? (uint32_t)bits_log2((uint64_t)t->shape[d]) : 0;
  const int32_t run = lay_neighbours(p->axes, ptr, ir_operand(load, 1), d);
  uint8_t reg[8];
  const int bytes = ir_dtypes[t->dtype].bytes
                    << layout_run(t->layout, 0, cols, (uint32_t)bits_log2((uint64_t)run), reg);
  return bytes >= 4 ? bytes : 0;
}

// Is op the store of a buffer of this loop that only products of this loop read?
static bool feeds_products(const Loop *lp, const IrOp *op) {
  const IrOp *alloc = op->kind == OP_mem_store ? ir_operand(op, 0)->def : NULL;
  if (!alloc || alloc->kind != OP_mem_alloc || alloc->parent != lp->body) return false;
  for (const IrUse *u = alloc->results[0].uses; u; u = u->next) {
    if (u->user != op && (u->user->kind != OP_dot_async || u->user->parent != lp->body)) return false;
  }
  return true;
}

static const char *why_not(Loop *lp, IrOp *load, IrOp *user, uint64_t written) {
  uint64_t bits;
  if (user->parent != lp->body ||
      !(feeds_products(lp, user) || (user->kind == OP_relayout && lay_product_of(user))))
    return "it does not feed one product on the matrix unit";
  if (!pass_is_plain_load(load)) return "it is volatile or orders others";
  if (load->results[0].type->rank != 2) return "it is not a matrix";
  if (ir_operand(load, 2) && !(pass_const(ir_operand(load, 2), &bits) && bits == 0))
    return "masked-off elements are not 0";
  const uint64_t own = pass_roots(lp->p->roots, ir_operand(load, 0));
  if (pass_roots_meet(own & ~PASS_ROOT_PEER,
                      written)) // a peer's copy of what is not written here may be read
    return "the loop writes memory that it may read";
  if (!copy_bytes(lp->p, load)) return "its rows have no aligned neighbours of 4 bytes or more";
  for (uint32_t i = 0; i < 2; i++) {
    if (!turns_known(lp->op, ir_operand(load, i), true))
      return "its addresses depend on what the iteration computes";
    if (pass_roots_meet(turns_reads(lp->op, ir_operand(load, i), lp->p->roots), written))
      return "the loop writes memory that its addresses come from";
  }
  return NULL;
}

static void find_feeds(Loop *lp) {
  Writes w = {lp->p, 0, false};
  ir_walk(lp->body, find_write, &w);
  PASS_EACH_OP(lp->body, op) {
    if (op->kind != OP_load || op->results[0].type->kind != IR_TILE) continue;
    const IrUse *u = op->results[0].uses;
    if (!u || u->next || (u->user->kind != OP_relayout && u->user->kind != OP_mem_store)) continue;
    const char *why = w.found ? "the loop waits or orders memory" : why_not(lp, op, u->user, w.roots);
    if (why)
      pass_remark(lp->p->pass, op->loc, "this load is not copied ahead: %s", why);
    else
      vec_push(lp->p->arena, &lp->feeds, ((Feed){op, u->user, NULL}));
  }
}

// ---- copies ahead ---------------------------------------------------------------------------------------------------------------
// The copies of the iteration `turns` after the loop's start (outside) or after the current one, into a stage; nothing where the loop
// ends before it.
static void copies(Loop *lp, IrBuilder b, int64_t turns, bool outside, IrValue *stage) {
  Pipe *p = lp->p;
  Turn a = turn_of(lp->op, p->arena, b, turns, outside);
  for (uint32_t i = 0; i < lp->feeds.len; i++) {
    const Feed *f = &lp->feeds.data[i];
    IrValue *ptr = ir_operand(f->load, 0), *mask = ir_operand(f->load, 1);
    a.b.loc = f->load->loc;
    IrValue *on = turn_mask(&a, ptr->type, mask);
    IrValue *address = turn_value(&a, ptr), *view = pass_ring_stage(&a.b, f->buffer, stage);
    IrValue *ops[4] = {view, address, on, NULL};
    const IrType *token = ir_type_token(p->ctx);
    ir_build(&a.b, OP_copy_async, 4, ops, 1, &token, 0);
  }
}

// The loop with one more carried value: the stage that the current iteration reads.
static IrValue *carry_stage(Loop *lp) {
  IrOp *old = lp->op;
  IrBuilder b = ir_builder_before(old);
  b.loc = old->loc;
  const IrType *i32 = ir_type_scalar(lp->p->ctx, IR_i32, LEVEL_program);
  const uint32_t n = old->nresults;
  IrValue **ops = arena_array(lp->p->arena, IrValue *, n + 4);
  const IrType **types = arena_array(lp->p->arena, const IrType *, n + 1);
  for (uint32_t i = 0; i < n + 3; i++) ops[i] = ir_operand(old, i);
  for (uint32_t i = 0; i < n; i++) types[i] = old->results[i].type;
  ops[n + 3] = ir_const_i(&b, i32, 0);
  types[n] = i32;
  IrOp *op = ir_build(&b, OP_for, n + 4, ops, n + 1, types, 1);
  pass_copy_attrs(op, old);
  IrBlock *from = old->regions[0], *to = op->regions[0];
  for (uint32_t i = 0; i < from->args.len; i++) {
    IrValue *arg = from->args.data[i];
    ir_replace_uses(arg, ir_block_arg(to, arg->type, arg->name));
  }
  IrValue *stage = ir_block_arg(to, i32, NULL);
  while (from->first) ir_move_to_end(from->first, to);
  IrOp *end = ir_terminator(to);
  b = ir_builder_before(end);
  IrValue *one = ir_const_i(&b, i32, 1), *next = ir_binary(&b, OP_add, stage, one);
  IrValue *wraps = ir_cmp(&b, CMP_eq, next, ir_const_i(&b, i32, lp->stages));
  ir_op_add_operand(end, ir_select(&b, wraps, ir_const_i(&b, i32, 0), next));
  for (uint32_t i = 0; i < n; i++) ir_replace_uses(ir_result(old, i), ir_result(op, i));
  ir_erase(old);
  lp->op = op;
  lp->body = to;
  return stage;
}

// ---- products in flight ---------------------------------------------------------------------------------------------------------
static bool count_products(IrOp *op, void *user) {
  *(int *)user += op->kind == OP_dot_async;
  return true;
}

static bool in_a_ring(const Loop *lp, const IrValue *v) { // or written before the loop
  if (v->type->kind != IR_MEMDESC || !pass_defined_in(v, lp->body)) return true;
  if (v->def && v->def->kind == OP_mem_view) return true; // handed back in time: `late`
  for (uint32_t i = 0; i < lp->feeds.len; i++) {
    if (lp->feeds.data[i].user->kind == OP_mem_store && ir_operand(lp->feeds.data[i].user, 0) == v)
      return true;
  }
  return false;
}

// The wait for the loop's only product, where its result is nothing but the c of the next iteration's; else NULL.
static IrOp *waits_for_sum(const Loop *lp) {
  int n = 0;
  ir_walk(lp->body, count_products, &n);
  if (n != 1) return NULL;
  PASS_EACH_OP(lp->body, op) {
    if (op->kind != OP_dot_wait || op->noperands != 1 || !ir_operand(op, 0)->def) continue;
    IrOp *dot = ir_operand(op, 0)->def;
    const IrUse *u = op->results[0].uses;
    if (dot->kind != OP_dot_async || dot->parent != lp->body || !u || u->next ||
        u->user != ir_terminator(lp->body))
      return NULL;
    const uint32_t i = (uint32_t)(u - u->user->operands);
    IrValue *sum = lp->body->args.data[1 + i];
    const IrUse *c = sum->uses;
    const bool chain =
        c && !c->next && c->user == dot && ir_operand(dot, 2) == sum && ir_operand(dot, 0) != sum;
    return chain && in_a_ring(lp, ir_operand(dot, 0)) && in_a_ring(lp, ir_operand(dot, 1)) ? op : NULL;
  }
  return NULL;
}

// The product of an iteration may still run in the next one; behind the loop it is waited for.
static void keep_in_flight(Loop *lp, IrOp *wait) {
  const uint32_t i = (uint32_t)(wait->results[0].uses - ir_terminator(lp->body)->operands);
  ir_set_attr_i(wait, ATTR_pending, 1);
  IrBuilder b = ir_builder_after(lp->op);
  b.loc = wait->loc;
  IrValue *sum = ir_result(lp->op, i);
  const IrType *t = sum->type;
  IrOp *last = ir_build(&b, OP_dot_wait, 1, &sum, 1, &t, 0);
  ir_replace_uses(sum, ir_result(last, 0));
  ir_set_operand(last, 0, sum);
}

static const IrType *ring_type(const Loop *lp, const Feed *f) {
  const IrType *t = f->load->results[0].type;
  IrLayout swizzled = layout_swizzled(t->rank, t->shape, (uint32_t)ir_dtypes[t->dtype].bytes);
  const bool plain = t->shape[1] * ir_dtypes[t->dtype].bytes < 32; // too narrow to have neighbours to swap
  return ir_type_with_layout(
      lp->p->ctx, ir_type_memdesc(lp->p->ctx, t->dtype, SPACE_shared, t->rank, t->shape, lp->stages),
      plain ? NULL : &swizzled);
}

// What read the operand from the load reads it from the ring.
static void read_from_ring(Feed *f, IrValue *stage) {
  IrBuilder b = ir_builder_before(f->user);
  b.loc = f->load->loc;
  IrValue *view = pass_ring_stage(&b, f->buffer, stage);
  if (f->user->kind == OP_mem_store) {
    IrOp *alloc = ir_operand(f->user, 0)->def;
    ir_erase(f->user);
    ir_replace_uses(ir_result(alloc, 0), view);
    ir_erase(alloc);
  } else {
    const IrType *t = f->user->results[0].type;
    IrOp *load = ir_build(&b, OP_mem_load, 1, &view, 1, &t, 0);
    ir_replace_uses(ir_result(f->user, 0), ir_result(load, 0));
    ir_erase(f->user);
  }
  ir_erase(f->load);
}

static void pipeline(Loop *lp) {
  Pipe *p = lp->p;
  const IrType *i32 = ir_type_scalar(p->ctx, IR_i32, LEVEL_program), *token = ir_type_token(p->ctx);
  IrOp *flying = lp->stages > 2 ? waits_for_sum(lp) : NULL;
  lp->lead = lp->stages - (flying ? 2 : 1);
  bool by_groups = false; // products read the rings through the async proxy
  for (uint32_t i = 0; i < lp->feeds.len; i++) by_groups |= lp->feeds.data[i].user->kind == OP_mem_store;
  IrValue *stage = carry_stage(lp);
  if (flying) keep_in_flight(lp, flying);
  IrBuilder b = ir_builder_before(lp->op);
  b.loc = lp->op->loc;
  for (uint32_t i = 0; i < lp->feeds.len; i++) {
    const IrType *mt = ring_type(lp, &lp->feeds.data[i]);
    lp->feeds.data[i].buffer = ir_result(ir_build(&b, OP_mem_alloc, 0, NULL, 1, &mt, 0), 0);
  }
  ir_set_attr_i(ir_build(&b, OP_barrier, 0, NULL, 0, NULL, 0), ATTR_made,
                1); // of what the buffers held before
  for (int k = 0; k < lp->lead; k++) copies(lp, b, k, true, ir_const_i(&b, i32, k));
  b = lp->body->first ? ir_builder_before(lp->body->first) : ir_builder_at_end(lp->body);
  b.loc = lp->op->loc;
  IrOp *wait = ir_build(&b, OP_async_wait, 0, NULL, 1, &token, 0);
  ir_set_attr_i(wait, ATTR_pending, (lp->lead - 1) * (int64_t)lp->feeds.len);
  if (by_groups) pass_async_fence(&b);
  ir_build(&b, OP_barrier, 0, NULL, 0, NULL, 0);
  const int back = lp->stages - lp->lead;
  IrValue *first = ir_cmp(&b, CMP_slt, stage, ir_const_i(&b, i32, back));
  IrValue *before = ir_binary(&b, OP_add, stage, ir_const_i(&b, i32, -back));
  IrValue *wrapped = ir_binary(&b, OP_add, stage, ir_const_i(&b, i32, lp->lead));
  copies(lp, b, lp->lead, false, ir_select(&b, first, wrapped, before));
  for (uint32_t i = 0; i < lp->feeds.len; i++) read_from_ring(&lp->feeds.data[i], stage);
  b = ir_builder_after(lp->op); // copies past the end are in flight still; their stages may be used again
  b.loc = lp->op->loc;
  ir_build(&b, OP_async_wait, 0, NULL, 1, &token, 0);
  pass_remark(p->pass, lp->op->loc,
              "this loop copies %u operand%s of its products %d iterations ahead, in %d stages%s",
              lp->feeds.len, lp->feeds.len > 1 ? "s" : "", lp->lead, lp->stages,
              flying ? "; a product runs on beside the next iteration" : "");
}

static void visit(Pipe *p, IrBlock *b) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->nregions; r++) visit(p, op->regions[r]);
    if (op->kind != OP_for || ir_type_is_thread(ir_operand(op, 0)->type)) continue;
    Loop lp = {.p = p, .op = op, .body = op->regions[0]};
    IrOp *late = waits_for_sum(&lp);
    if (late && ir_attr_i(ir_operand(late, 0)->def, ATTR_late)) {
      keep_in_flight(&lp, late);
      continue;
    }
    lp.stages = (int)(ir_attr_i(op, ATTR_stages) ? ir_attr_i(op, ATTR_stages) : p->pass->m->num_stages);
    if (lp.stages < 2) continue;
    if (lp.stages > 8) lp.stages = 8;
    find_feeds(&lp);
    if (lp.feeds.len) pipeline(&lp);
  }
}

Status pass_pipe(Pass *pass) {
  PASS_EACH_FUNC(pass, f) {
    Pipe p = {.pass = pass, .ctx = pass->m->ctx, .arena = pass->scratch, .f = f};
    p.axes = pass_axis_of_indices(f, pass->scratch);
    p.roots = pass_roots_run(f, pass->scratch);
    visit(&p, f->body);
    ir_renumber(f);
  }
  return ST_OK;
}
