// place_plan: what is computed where. Each block becomes a list of steps in program order: ops, runs of thread-level ops,
// and groups of roots.
//
//   x = load p        virtual: no step                  steps:  group { reduce m, fill x? }
//   m = reduce x      root, opens group A                       c = ... scalar that waits for m
//   c = m * 2         scalar that waits for A: deferred         group { store }
//   store q, x - c    root that waits for A: closes it
//
// A group stays open while further roots of its shape may join; what does not touch it is emitted before it. Loop-carried
// tiles and results of control get buffers here, updated in place where the old value is dead by then.
#include "pass/place.h"

#include <string.h>

typedef struct Planner {
  Place *p;
  PlacePlan *plan;
  PlaceGroup *cur; // open
  Vec(IrOp *) deferred;
} Planner;

static void plan_block(Place *p, IrBlock *b, PlaceStep *owner, PlacePlan *up, PlaceBuf *const *targets);

int place_order(const Place *p, const IrOp *op) {
  uint64_t n = 0;
  map_get(&p->order, (uint64_t)(uintptr_t)op, &n);
  return (int)n;
}

// ---- steps, groups, buffers -------------------------------------------------------------------------------------------
static PlaceStep *step_link(Place *p, PlacePlan *plan, PlaceStep *after, PlaceStep *s) {
  (void)p;
  s->plan = plan;
  s->prev = after;
  s->next = after ? after->next : plan->first;
  if (s->prev)
    s->prev->next = s;
  else
    plan->first = s;
  if (s->next)
    s->next->prev = s;
  else
    plan->last = s;
  return s;
}

static PlaceStep *step_op(Planner *w, IrOp *op) {
  PlaceStep *s = arena_new(w->p->arena, PlaceStep);
  s->op = op;
  s->effects = ir_op_effects_deep(op);
  PlaceStep *after = w->plan->last;
  if (after && after->last_op && ir_op_is_pure(op))
    after = after->prev; // keeps a run of thread-level ops whole
  return step_link(w->p, w->plan, after, s);
}

PlaceGroup *place_group_new(Place *p, int rank, const int32_t *shape) {
  PlaceGroup *g = arena_new(p->arena, PlaceGroup);
  g->rank = rank;
  memcpy(g->shape, shape, sizeof *shape * (size_t)rank);
  g->seq = ++p->seq;
  return g;
}

PlaceStep *place_step_insert(Place *p, PlacePlan *plan, PlaceStep *after, PlaceGroup *g) {
  PlaceStep *s = arena_new(p->arena, PlaceStep);
  s->group = g;
  g->step = s;
  step_link(p, plan, after, s);
  const double lo = s->prev ? s->prev->end : plan->owner ? plan->owner->pos : 0;
  const double hi = s->next ? s->next->pos : plan->owner ? plan->owner->end : lo + 2;
  s->pos = lo + (hi - lo) / 3;
  s->end = lo + (hi - lo) / 1.5;
  return s;
}

static void close_group(Planner *w) {
  if (w->cur) {
    place_step_insert(w->p, w->plan, w->plan->last, w->cur);
    w->cur = NULL;
  }
  for (uint32_t i = 0; i < w->deferred.len; i++) step_op(w, w->deferred.data[i]);
  w->deferred.len = 0;
}

PlaceBuf *place_buf_new(Place *p, const IrType *tile, bool flat, Loc loc, const char *why) {
  PlaceBuf *b = arena_new(p->arena, PlaceBuf);
  b->id = (int)p->bufs.len;
  b->elem = ir_type_elem(p->ctx, tile);
  b->rank = tile->rank;
  memcpy(b->shape, tile->shape, sizeof b->shape);
  b->flat = flat || tile->rank < 2;
  const IrDtype d = ir_type_is_ptr(tile) ? IR_i64 : tile->dtype;
  const int32_t n = (int32_t)ir_type_elems(tile);
  b->type = b->flat ? ir_type_memdesc(p->ctx, d, SPACE_scratch, 1, &n, 0)
                    : ir_type_memdesc(p->ctx, d, SPACE_scratch, tile->rank, tile->shape, 0);
  b->bytes = (int64_t)n * ir_dtypes[d].bytes;
  b->first = -1;
  b->loc = loc;
  b->why = why;
  vec_push(p->arena, &p->bufs, b);
  return b;
}

static bool waits(const Planner *w, const IrValue *v) {
  return v && w->cur && place_info(w->p, v)->pend == w->cur->seq;
}
static bool op_waits(const Planner *w, const IrOp *op) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (waits(w, ir_operand(op, i))) return true;
  }
  for (uint32_t r = 0; r < op->nregions && w->cur; r++) { // captured values
    for (const IrOp *o = op->regions[r]->first; o; o = o->next) {
      if (op_waits(w, o)) return true;
    }
  }
  return false;
}

// ---- roots ---------------------------------------------------------------------------------------------------------------
static bool same_shape(const PlaceGroup *g, const IrType *t) {
  return g->rank == t->rank && !memcmp(g->shape, t->shape, sizeof *t->shape * (size_t)t->rank);
}

static PlaceGroup *open_group(Planner *w, const IrType *t) {
  close_group(w);
  return w->cur = place_group_new(w->p, t->rank, t->shape);
}

static PlaceRoot *add_root(Place *p, PlaceGroup *g, PlaceRootKind kind, IrOp *op) {
  PlaceRoot *r = arena_new(p->arena, PlaceRoot);
  r->kind = kind;
  r->op = op;
  r->group = g;
  vec_push(p->arena, &g->roots, r);
  if (op) map_setp(&p->op_group, op, g);
  return r;
}

PlaceRoot *place_add_fill(Place *p, PlaceGroup *g, IrValue *v, PlaceBuf *b, bool defines) {
  PlaceRoot *r = add_root(p, g, ROOT_FILL, NULL);
  PlaceInfo *in = place_info(p, v);
  r->value = v;
  r->buf = b;
  r->over = b->holds;
  r->defines = defines;
  r->next_fill = in->fills;
  in->fills = r;
  if (defines) {
    in->buf = b;
    in->made = g;
  }
  return r;
}

static bool store_joins(Planner *w, IrOp *op, const IrType *shape) {
  if (!w->cur || !same_shape(w->cur, shape) || op_waits(w, op)) return false;
  for (uint32_t i = 0; i < w->cur->roots.len; i++) {
    const PlaceRoot *r = w->cur->roots.data[i];
    if (r->kind == ROOT_STORE && place_conflict(w->p, r->op, op, true)) return false;
  }
  return true;
}

static void plan_store(Planner *w, IrOp *op) {
  const IrType *t = op->kind == OP_store ? ir_operand(op, 0)->type : ir_operand(op, 1)->type;
  if (!store_joins(w, op, t)) open_group(w, t);
  add_root(w->p, w->cur, ROOT_STORE, op);
  w->cur->writes = true;
}

static void plan_reduce(Planner *w, IrOp *op) {
  const IrType *t = ir_operand(op, 0)->type;
  if (!w->cur || w->cur->writes || !same_shape(w->cur, t) || op_waits(w, op)) open_group(w, t);
  add_root(w->p, w->cur, ROOT_REDUCE, op);
  for (uint32_t i = 0; i < op->nresults; i++) {
    IrValue *r = ir_result(op, i);
    PlaceInfo *in = place_info(w->p, r);
    in->pend = w->cur->seq;
    if (place_is_tile(r)) in->buf = place_buf_new(w->p, r->type, true, op->loc, "result of a reduction");
  }
}

// A fill here, joining the open group where that only reads.
static PlaceRoot *plan_fill(Planner *w, IrValue *v, PlaceBuf *b, bool defines) {
  if (!w->cur || w->cur->writes || !same_shape(w->cur, v->type) || waits(w, v)) open_group(w, v->type);
  PlaceRoot *r = place_add_fill(w->p, w->cur, v, b, defines);
  if (defines) place_info(w->p, v)->pend = w->cur->seq;
  return r;
}

static bool is_loop(const IrOp *op) { return op->kind == OP_for || op->kind == OP_while; }

// Where a value of an outer block is filled for a use here: before the outermost loop that lies between.
static PlaceStep *before_loops(const PlacePlan *plan, const IrBlock *home, PlacePlan **where) {
  PlaceStep *s = NULL;
  for (; plan->block != home && plan->owner; plan = plan->up) {
    if (is_loop(plan->owner->op)) {
      s = plan->owner;
      *where = plan->up;
    }
  }
  return s;
}

// ---- is the old value of a buffer dead by then? ---------------------------------------------------------------------------
static const IrOp *ancestor_in(const IrOp *op, const IrBlock *b) {
  while (op && op->parent != b) op = op->parent->owner;
  return op;
}

// t is done before op begins, or never in the same run of their common block.
static bool before(const Place *p, const IrOp *t, const IrOp *op) {
  for (const IrBlock *b = t->parent; b; b = b->owner ? b->owner->parent : NULL) {
    const IrOp *x = ancestor_in(op, b);
    if (!x) continue;
    const IrOp *y = ancestor_in(t, b);
    if (x != y) return place_order(p, y) < place_order(p, x);
    return (x->kind == OP_if || x->kind == OP_switch) && x != t && x != op; // in different arms
  }
  return false;
}

// All that needs v's elements is before op, or op itself.
static bool dead_after(Place *p, const IrValue *v, const IrOp *op, int *budget) {
  for (const IrUse *u = v->uses; u; u = u->next) {
    if (--*budget < 0) return false;
    const IrOp *t = u->user;
    if (t == op) continue;
    if (place_op_is_virtual(t)) {
      for (uint32_t i = 0; i < t->nresults; i++) {
        if (!dead_after(p, ir_result(t, i), op, budget)) return false;
      }
    } else if (!before(p, t, op)) {
      return false;
    }
  }
  return true;
}

static bool free_at(Place *p, const PlaceBuf *b, const IrOp *op) {
  int budget = 300;
  return !b->holds || dead_after(p, b->holds, op, &budget);
}

// x's elements are read at the index of v's only.
static bool reads_in_place(Place *p, const IrValue *v, const IrValue *x, bool same, int *budget) {
  if (v == x) return same;
  if (--*budget < 0) return false;
  if (!v->def || !place_is_tile(v) || !place_op_is_virtual(v->def) || place_info(p, v)->buf) return true;
  const bool keep = same && place_op_is_elementwise(v->def);
  for (uint32_t i = 0; i < v->def->noperands; i++) {
    const IrValue *o = ir_operand(v->def, i);
    if (o && !reads_in_place(p, o, x, keep, budget)) return false;
  }
  return true;
}

// The buffer where v will be wanted, if v may be made there at op. NULL: none.
static PlaceBuf *wanted_in(Place *p, const IrValue *v, const IrOp *op, int depth) {
  const IrUse *u = v->uses;
  if (!u || u->next || depth > 6) return NULL;
  const IrOp *t = u->user;
  const uint32_t i = (uint32_t)(u - t->operands);
  PlaceBuf *b = NULL;
  if (t->kind == OP_yield && t->parent->owner) {
    const IrOp *o = t->parent->owner;
    if (o->kind == OP_for) {
      b = place_info(p, o->regions[0]->args.data[1 + i])->buf;
    } else if (o->kind == OP_if || o->kind == OP_switch) {
      b = place_info(p, ir_result(o, i))->buf;
    } else if (o->kind == OP_while) {
      b = place_info(p, o->regions[0]->args.data[i])->buf;
    }
  } else if (t->kind == OP_dot && i == 2) {
    b = wanted_in(p, ir_result(t, 0), op, depth + 1);
  } else if (t->kind == OP_for && i >= 3) {
    b = wanted_in(p, ir_result(t, i - 3), op, depth + 1);
  }
  // a use in a deeper loop would find it spoilt in the second turn
  for (const IrBlock *x = t->parent; b && x != op->parent; x = x->owner->parent) {
    if (!x->owner || is_loop(x->owner)) return NULL;
  }
  return b && free_at(p, b, op) ? b : NULL;
}

// ---- products --------------------------------------------------------------------------------------------------------------
static PlaceBuf *plan_factor(Planner *w, IrValue *v) {
  Place *p = w->p;
  PlaceInfo *in = place_info(p, v);
  if (in->buf && !in->buf->flat) return in->buf;
  PlaceBuf *b =
      place_buf_new(p, v->type, false, w->plan->block->owner ? w->plan->block->owner->loc : LOC_NONE,
                    "operand of a product");
  if (v->def) b->loc = v->def->loc;
  PlacePlan *outer = w->plan;
  PlaceStep *s = before_loops(w->plan, v->block, &outer);
  // made in one arm of a choice, it is there for that arm alone
  const bool defines = !in->buf && outer->block == v->block;
  if (s) {
    PlaceGroup *g = place_group_new(p, v->type->rank, v->type->shape);
    place_step_insert(p, outer, s->prev, g);
    place_add_fill(p, g, v, b, defines);
  } else {
    plan_fill(w, v, b, defines);
  }
  return b;
}

static bool same_block_only_use(const IrValue *v, const IrOp *user) {
  return v->uses && !v->uses->next && v->block == user->parent;
}

static void plan_dot(Planner *w, IrOp *op) {
  Place *p = w->p;
  IrValue *a = ir_operand(op, 0), *b = ir_operand(op, 1), *c = ir_operand(op, 2), *r = ir_result(op, 0);
  // operands of the open group's shape first
  const bool b_first = w->cur && same_shape(w->cur, b->type) && !same_shape(w->cur, a->type);
  PlaceBuf **bufs = arena_array(p->arena, PlaceBuf *, 3);
  bufs[b_first] = plan_factor(w, b_first ? b : a);
  bufs[!b_first] = plan_factor(w, b_first ? a : b);
  PlaceInfo *ci = place_info(p, c), *ri = place_info(p, r);
  int budget = 300;
  PlaceBuf *to = wanted_in(p, r, op, 0);
  if (to && (to->flat || (to->holds && !reads_in_place(p, c, to->holds, true, &budget)))) to = NULL;
  if (!to && ci->buf && !ci->buf->flat && !ci->is_virtual && same_block_only_use(c, op) && !ci->buf->holds)
    to = ci->buf;
  if (!to) to = place_buf_new(p, r->type, false, op->loc, "result of a product");
  if (ci->buf != to || ci->is_virtual) {
    if (to->holds) close_group(w);
    plan_fill(w, c, to, false);
  }
  close_group(w);
  ri->buf = bufs[2] = to;
  map_setp(&p->dots, op, bufs);
  step_op(w, op);
}

// ---- control ---------------------------------------------------------------------------------------------------------------
static bool dropped(Place *p, const IrValue *arg, const IrValue *result) {
  (void)p;
  if (result->uses) return false;
  for (const IrUse *u = arg->uses; u; u = u->next) {
    if (u->user->kind != OP_yield || u->user->parent != arg->block ||
        ir_operand(u->user, arg->index - 1) != arg)
      return false;
  }
  return true;
}

static bool wants_shape(const IrType *t) { return t->rank >= 2 && t->rank <= 3 && !ir_type_is_ptr(t); }

// The buffer of a carried value whose first contents are init; filled there.
static PlaceBuf *plan_carried(Planner *w, IrValue *init, PlaceBuf *to, IrOp *op) {
  Place *p = w->p;
  PlaceInfo *in = place_info(p, init);
  int budget = 300;
  if (to && to->holds && in->buf != to && !reads_in_place(p, init, to->holds, true, &budget)) to = NULL;
  if (!to && in->buf && !in->is_virtual && init->def && same_block_only_use(init, op) && !in->buf->holds)
    to = in->buf;
  if (!to) to = place_buf_new(p, init->type, !wants_shape(init->type), op->loc, "carried by a loop");
  if (in->buf != to || in->is_virtual) plan_fill(w, init, to, false);
  return to;
}

typedef Vec(PlaceBuf *) Bufs;

static PlaceBuf **plan_for(Planner *w, IrOp *op, Bufs *saved) {
  Place *p = w->p;
  PlaceBuf **t = arena_array(p->arena, PlaceBuf *, op->nresults + 1);
  for (uint32_t k = 0; k < op->nresults; k++) {
    IrValue *r = ir_result(op, k), *arg = op->regions[0]->args.data[1 + k], *init = ir_operand(op, 3 + k);
    if (!place_is_tile(r) || dropped(p, arg, r)) continue;
    t[k] = plan_carried(w, init, wanted_in(p, r, op, 0), op);
    place_info(p, arg)->buf = t[k];
    place_info(p, r)->buf = t[k];
  }
  for (uint32_t k = 0; k < op->nresults; k++) {
    if (!t[k]) continue;
    vec_push(p->arena, saved, t[k]);
    vec_push(p->arena, saved, (PlaceBuf *)t[k]->holds);
    t[k]->holds = op->regions[0]->args.data[1 + k];
  }
  return t;
}

static PlaceBuf **plan_while(Planner *w, IrOp *op, Bufs *saved, PlaceBuf ***out_before) {
  Place *p = w->p;
  IrBlock *test = op->regions[0], *body = op->regions[1];
  IrOp *go = ir_terminator(test);
  PlaceBuf **carried = arena_array(p->arena, PlaceBuf *, op->noperands + 1);
  PlaceBuf **passed = arena_array(p->arena, PlaceBuf *, op->nresults + 1);
  for (uint32_t k = 0; k < op->noperands; k++) {
    IrValue *arg = test->args.data[k];
    if (!place_is_tile(arg)) continue;
    carried[k] = plan_carried(w, ir_operand(op, k), NULL, op);
    place_info(p, arg)->buf = carried[k];
  }
  for (uint32_t k = 0; k < op->nresults; k++) {
    IrValue *v = ir_operand(go, 1 + k);
    if (!place_is_tile(v)) continue;
    PlaceBuf *b = !v->def && v->block == test ? place_info(p, v)->buf : NULL;
    for (uint32_t j = 0; j < k && b; j++) {
      if (passed[j] == b) b = NULL;
    }
    if (!b) b = place_buf_new(p, v->type, !wants_shape(v->type), op->loc, "carried by a loop");
    passed[k] = b;
    place_info(p, body->args.data[k])->buf = b;
    place_info(p, ir_result(op, k))->buf = b;
  }
  for (uint32_t k = 0; k < op->noperands; k++) {
    if (!carried[k]) continue;
    vec_push(p->arena, saved, carried[k]);
    vec_push(p->arena, saved, (PlaceBuf *)carried[k]->holds);
    carried[k]->holds = test->args.data[k];
  }
  *out_before = passed;
  return carried;
}

static void plan_control(Planner *w, IrOp *op) {
  Place *p = w->p;
  Bufs saved = {0};
  PlaceBuf **targets = NULL, **before_targets = NULL;
  if (op_waits(w, op)) close_group(w);
  if (op->kind == OP_for) {
    targets = plan_for(w, op, &saved);
  } else if (op->kind == OP_while) {
    targets = plan_while(w, op, &saved, &before_targets);
  } else {
    targets = arena_array(p->arena, PlaceBuf *, op->nresults + 1);
    for (uint32_t k = 0; k < op->nresults; k++) {
      IrValue *r = ir_result(op, k);
      if (!place_is_tile(r)) continue;
      targets[k] = wanted_in(p, r, op, 0);
      if (!targets[k])
        targets[k] = place_buf_new(p, r->type, !wants_shape(r->type), op->loc, "result of control");
      place_info(p, r)->buf = targets[k];
    }
  }
  close_group(w);
  PlaceStep *s = step_op(w, op);
  for (uint32_t i = 0; i < op->nregions; i++) {
    const bool test = op->kind == OP_while && i == 0;
    if (op->kind == OP_while && i == 1) {
      for (uint32_t k = 0; k < op->nresults; k++) {
        if (before_targets[k]) before_targets[k]->holds = op->regions[1]->args.data[k];
      }
    }
    plan_block(p, op->regions[i], s, w->plan, test ? before_targets : targets);
  }
  if (before_targets) {
    for (uint32_t k = 0; k < op->nresults; k++) {
      if (before_targets[k]) before_targets[k]->holds = NULL;
    }
  }
  for (uint32_t i = 0; i + 1 < saved.len; i += 2) saved.data[i]->holds = (IrValue *)(void *)saved.data[i + 1];
}

// The terminator hands over tiles through targets.
static void plan_yield(Planner *w, IrOp *op, PlaceBuf *const *targets) {
  const uint32_t skip = op->kind == OP_cond_yield;
  const uint32_t n = op->noperands;
  bool *done = arena_array(w->p->arena, bool, n + 1);
  for (uint32_t i = skip; i < n; i++) {
    for (uint32_t j = i; j < n; j++) { // those of one shape together
      IrValue *v = ir_operand(op, j);
      PlaceBuf *to = targets ? targets[j - skip] : NULL;
      if (done[j] || !place_is_tile(v) || !to) continue;
      const IrType *first = ir_operand(op, i)->type;
      if (j != i &&
          (v->type->rank != first->rank || memcmp(v->type->shape, first->shape, sizeof first->shape)))
        continue;
      done[j] = true;
      const PlaceInfo *in = place_info(w->p, v);
      if (in->buf == to && !in->is_virtual) continue;
      plan_fill(w, v, to, false);
    }
  }
}

// ---- ops -------------------------------------------------------------------------------------------------------------------
static bool has_tiles(const IrOp *op) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (place_is_tile(ir_operand(op, i))) return true;
  }
  return false;
}

static void plan_special(Planner *w, IrOp *op) {
  Place *p = w->p;
  close_group(w);
  const IrType *t = NULL;
  for (uint32_t i = 0; i < op->noperands && !t; i++) {
    if (place_is_tile(ir_operand(op, i))) t = ir_operand(op, i)->type;
  }
  PlaceGroup *g = place_group_new(p, t->rank, t->shape);
  g->special = op;
  g->writes = ir_op_effects(op).writes != 0;
  map_setp(&p->op_group, op, g);
  for (uint32_t i = 0; i < op->nresults; i++) {
    IrValue *r = ir_result(op, i);
    if (place_is_tile(r) && (r->uses || op->kind != OP_atomic_rmw))
      place_info(p, r)->buf = place_buf_new(p, r->type, true, op->loc, ir_ops[op->kind].name);
  }
  PlaceStep *s = place_step_insert(p, w->plan, w->plan->last, g);
  s->effects = ir_op_effects(op);
}

static bool conflicts_with_open(const Planner *w, const IrOp *load) {
  if (!w->cur || !w->cur->writes) return false;
  for (uint32_t i = 0; i < w->cur->roots.len; i++) {
    const PlaceRoot *r = w->cur->roots.data[i];
    if (r->kind == ROOT_STORE && place_conflict(w->p, load, r->op, false)) return true;
  }
  return false;
}

static void plan_op(Planner *w, IrOp *op) {
  Place *p = w->p;
  if (place_is_thread_op(op)) {
    close_group(w);
    PlaceStep *last = w->plan->last;
    const IrEffects e = ir_op_effects_deep(op);
    if (last && last->last_op) {
      last->last_op = op;
      last->effects.reads |= e.reads;
      last->effects.writes |= e.writes;
      last->effects.barrier |= e.barrier;
      if (e.order) last->effects.order = ORDER_acq_rel;
      return;
    }
    step_op(w, op)->last_op = op;
    return;
  }
  const bool late = op_waits(w, op);
  if (place_op_is_virtual(op)) {
    const bool load = op->kind == OP_load || op->kind == OP_mem_load;
    if (load && (late || conflicts_with_open(w, op))) close_group(w);
    for (uint32_t i = 0; i < op->nresults; i++) {
      PlaceInfo *in = place_info(p, ir_result(op, i));
      in->home = w->plan->last;
      in->plan = w->plan;
      if (late && w->cur) in->pend = w->cur->seq;
    }
    return;
  }
  switch (op->kind) {
  case OP_store:
  case OP_mem_store:
    if (!has_tiles(op)) break;
    if (ir_op_effects(op).order != ORDER_weak) {
      plan_special(w, op);
    } else {
      plan_store(w, op);
    }
    return;
  case OP_reduce: plan_reduce(w, op); return;
  case OP_dot: plan_dot(w, op); return;
  case OP_if:
  case OP_for:
  case OP_while:
  case OP_switch: plan_control(w, op); return;
  case OP_assume: return;
  default:
    if (has_tiles(op)) {
      plan_special(w, op);
      return;
    }
  }
  const IrEffects e = ir_op_effects_deep(op);
  if (ir_op_is_pure(op)) {
    if (!late) {
      step_op(w, op);
      return;
    }
    vec_push(p->arena, &w->deferred, op);
    for (uint32_t i = 0; i < op->nresults; i++) place_info(p, ir_result(op, i))->pend = w->cur->seq;
    return;
  }
  const bool reads = op->kind == OP_load && e.order == ORDER_weak;
  if (!reads || late || conflicts_with_open(w, op)) close_group(w);
  step_op(w, op);
}

static void plan_block(Place *p, IrBlock *b, PlaceStep *owner, PlacePlan *up, PlaceBuf *const *targets) {
  PlacePlan *plan = arena_new(p->arena, PlacePlan);
  plan->block = b;
  plan->owner = owner;
  plan->up = up;
  map_setp(&p->plans, b, plan);
  Planner w = {.p = p, .plan = plan};
  for (IrOp *op = b->first; op; op = op->next) {
    if (ir_ops[op->kind].traits & TRAIT_TERMINATOR) {
      plan_yield(&w, op, targets);
      break;
    }
    plan_op(&w, op);
  }
  close_group(&w);
}

typedef struct Numbering {
  Place *p;
  uint64_t n;
} Numbering;
static bool number(IrOp *op, void *user) {
  Numbering *x = user;
  map_set(&x->p->order, (uint64_t)(uintptr_t)op, ++x->n);
  return true;
}

void place_plan_run(Place *p) {
  map_init(&p->plans, p->arena);
  map_init(&p->op_group, p->arena);
  map_init(&p->order, p->arena);
  map_init(&p->dots, p->arena);
  Numbering x = {p, 0};
  ir_walk(p->old->body, number, &x);
  plan_block(p, p->old->body, NULL, NULL, NULL);
}
