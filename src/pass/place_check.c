// place_check: choices that need the whole plan.
//   1. From the last value to the first: which groups evaluate it. One that is costly and evaluated by several groups (or
//      inside a deeper loop) gets a buffer: filled along the way by the first group that computes it, or in a nest of its own.
//   2. A load that something may overwrite before all its users ran is copied to a buffer where it stands.
//   3. A carried value's buffer is overwritten only after the last group that reads the old value; otherwise the new value
//      waits in a buffer of its own until the end of the iteration.
#include "pass/place.h"

#include <string.h>

// ---- positions ------------------------------------------------------------------------------------------------------------
static double number_plan(Place *p, PlacePlan *plan, double at) {
  for (PlaceStep *s = plan->first; s; s = s->next) {
    s->pos = ++at;
    if (s->op && !s->last_op && s->op->kind != OP_reduce && s->op->kind != OP_scan) {
      for (uint32_t i = 0; i < s->op->nregions; i++) {
        PlacePlan *in = map_getp(&p->plans, s->op->regions[i]);
        if (in) at = number_plan(p, in, at);
      }
    }
    s->end = ++at;
  }
  return at;
}
static void number_all(Place *p) { number_plan(p, map_getp(&p->plans, p->old->body), 0); }

static PlaceStep *insert(Place *p, PlacePlan *plan, PlaceStep *after, PlaceGroup *g) {
  PlaceStep *s = place_step_insert(p, plan, after, g);
  if (!(s->end - s->pos > 1e-5)) number_all(p);
  return s;
}

// ---- what a group evaluates ---------------------------------------------------------------------------------------------------
typedef struct Visit {
  Place *p;
  PlaceGroup *g;
  void (*fn)(Place *p, IrValue *v, bool same, void *user);
  void *user;
} Visit;

static void visit(const Visit *w, IrValue *v, bool same) {
  if (!place_is_tile(v)) return;
  PlaceInfo *in = place_info(w->p, v);
  uint32_t *mark = same ? &in->mark_same : &in->mark;
  if (*mark == w->p->mark) return;
  *mark = w->p->mark;
  w->fn(w->p, v, same, w->user);
  if (!in->is_virtual) return;
  if (in->buf && in->made && in->made != w->g && in->made->step->pos < w->g->step->pos)
    return; // read from there
  const bool keep =
      same && (place_op_is_elementwise(v->def) || v->def->kind == OP_load || v->def->kind == OP_mem_load);
  for (uint32_t i = 0; i < v->def->noperands; i++) visit(w, ir_operand(v->def, i), keep);
}

void place_group_values(Place *p, PlaceGroup *g, void (*fn)(Place *p, IrValue *v, bool same, void *user),
                        void *user) {
  const Visit w = {p, g, fn, user};
  p->mark++;
  if (g->special) {
    for (uint32_t i = 0; i < g->special->noperands; i++) visit(&w, ir_operand(g->special, i), false);
    return;
  }
  for (uint32_t r = 0; r < g->roots.len; r++) {
    const PlaceRoot *root = g->roots.data[r];
    if (root->kind == ROOT_FILL) {
      if (!root->src) visit(&w, root->value, true);
      continue;
    }
    for (uint32_t i = 0; i < root->op->noperands; i++) visit(&w, ir_operand(root->op, i), true);
  }
}

typedef struct Seek {
  const IrValue *v;
  bool same, other;
} Seek;
static void seek(Place *p, IrValue *v, bool same, void *user) {
  Seek *s = user;
  (void)p;
  if (v != s->v) return;
  if (same)
    s->same = true;
  else
    s->other = true;
}
static Seek reads(Place *p, PlaceGroup *g, const IrValue *v) {
  Seek s = {.v = v};
  place_group_values(p, g, seek, &s);
  return s;
}

// ---- 1 and 2: values that get buffers ---------------------------------------------------------------------------------------
static void add_user(PlaceInfo *in, PlaceGroup *g) {
  if (in->nusers > 4) return;
  for (int i = 0; i < in->nusers; i++) {
    if (in->users[i] == g) return;
  }
  if (in->nusers < 4) in->users[in->nusers] = g;
  in->nusers++;
}

static void collect_users(Place *p, const IrValue *v) {
  PlaceInfo *in = place_info(p, v);
  for (const PlaceRoot *f = in->fills; f; f = f->next_fill) add_user(in, f->group);
  for (const IrUse *u = v->uses; u; u = u->next) {
    const IrOp *t = u->user;
    PlaceGroup *g = map_getp(&p->op_group, t);
    if (g) {
      add_user(in, g);
    } else if (place_op_is_virtual(t)) {
      for (uint32_t i = 0; i < t->nresults; i++) {
        const PlaceInfo *r = place_info(p, ir_result(t, i));
        for (int k = 0; k < r->nusers && k < 4; k++) add_user(in, r->users[k]);
        if (r->nusers > 4) in->nusers = 5;
      }
    }
  }
  if (!in->made) return; // filled by plan: later groups read the buffer
  int n = 0;
  for (int i = 0; i < in->nusers && i < 4; i++) {
    if (in->users[i]->step->pos <= in->made->step->pos) in->users[n++] = in->users[i];
  }
  in->nusers = n;
}

static PlaceGroup *first_user(const PlaceInfo *in) {
  PlaceGroup *g = NULL;
  for (int i = 0; i < in->nusers && i < 4; i++) {
    if (!g || in->users[i]->step->pos < g->step->pos) g = in->users[i];
  }
  return g;
}

static PlaceStep *step_in(PlaceStep *s, const PlacePlan *plan) {
  while (s && s->plan != plan) s = s->plan->owner;
  return s;
}
static PlaceStep *outer_loop(PlaceStep *s, const PlacePlan *plan) { // the outermost loop around s inside plan
  PlaceStep *loop = NULL;
  for (PlaceStep *x = s->plan->owner; x && s->plan != plan; x = x->plan->owner) {
    if (x->op->kind == OP_for || x->op->kind == OP_while) loop = x;
    if (x->plan == plan) break;
  }
  return loop;
}

static void set_made(Place *p, IrValue *v, PlaceGroup *g, const char *why) {
  PlaceInfo *in = place_info(p, v);
  if (!in->buf) in->buf = place_buf_new(p, v->type, true, v->def->loc, why);
  place_add_fill(p, g, v, in->buf, true);
  in->users[0] = g;
  in->nusers = 1;
}

static void own_group(Place *p, IrValue *v, PlacePlan *plan, PlaceStep *after, const char *why) {
  PlaceGroup *g = place_group_new(p, v->type->rank, v->type->shape);
  insert(p, plan, after, g);
  set_made(p, v, g, why);
}

static void give_buffer(Place *p, IrValue *v, const char *why) {
  PlaceInfo *in = place_info(p, v);
  PlaceGroup *f = first_user(in);
  PlaceStep *s = step_in(f->step, in->plan);
  const IrType *t = v->type;
  const Seek once = reads(p, f, v); // elements wanted at several indices are all made before
  if (s == f->step && !f->special && f->rank == t->rank &&
      !memcmp(f->shape, t->shape, sizeof *t->shape * (size_t)t->rank) && once.same && !once.other) {
    set_made(p, v, f, why);
  } else {
    own_group(p, v, in->plan, s->prev, why);
  }
}

static bool step_may_write(Place *p, const PlaceStep *s, const IrOp *load) {
  if (s->group && !s->group->special) {
    for (uint32_t i = 0; i < s->group->roots.len && s->group->writes; i++) {
      const PlaceRoot *r = s->group->roots.data[i];
      if (r->kind == ROOT_STORE && place_conflict(p, load, r->op, false)) return true;
    }
    return false;
  }
  const IrEffects *e = &s->effects;
  if (load->kind == OP_mem_load) return (e->writes & RES_MEMDESC) || e->barrier;
  return (e->writes & (RES_GLOBAL | RES_SYMM | RES_SIGNAL)) || e->barrier || e->order;
}

// Does anything between lo and hi, in the plan and below it, write what load reads? except: a group looked at otherwise.
static bool written_between(Place *p, const PlacePlan *plan, double lo, double hi, const IrOp *load,
                            const PlaceGroup *except) {
  for (const PlaceStep *s = plan->first; s && s->pos < hi; s = s->next) {
    if (s->end <= lo) continue;
    if (s->op && !s->last_op && s->op->nregions && s->op->kind != OP_reduce) {
      for (uint32_t i = 0; i < s->op->nregions; i++) {
        const PlacePlan *in = map_getp(&p->plans, s->op->regions[i]);
        if (in && written_between(p, in, lo, hi, load, except)) return true;
      }
    } else if (s->pos > lo && !(s->group && s->group == except) && step_may_write(p, s, load)) {
      return true;
    }
  }
  return false;
}

// May group g evaluate the load, which stands at v's home?
static bool spoilt(Place *p, IrValue *v, PlaceGroup *g) {
  PlaceInfo *in = place_info(p, v);
  const IrOp *load = v->def;
  const double lo = in->home ? in->home->end : in->plan->owner ? in->plan->owner->pos : 0;
  const PlaceStep *loop = outer_loop(g->step, in->plan);
  const double hi = loop ? loop->end : g->step->pos;
  if (written_between(p, in->plan, lo, hi, load, loop ? NULL : g)) return true;
  if (!g->writes) return false;
  if (g->special) return true;
  const Seek s = reads(p, g, v);
  for (uint32_t i = 0; i < g->roots.len; i++) {
    const PlaceRoot *r = g->roots.data[i];
    if (r->kind == ROOT_STORE && place_conflict(p, load, r->op, s.same && !s.other)) return true;
  }
  return false;
}

static bool gathered(const IrValue *v) {
  for (const IrUse *u = v->uses; u; u = u->next) {
    if (u->user->kind == OP_gather && u == &u->user->operands[0]) return true;
  }
  return false;
}

// Cuts long expressions into pieces of a bounded depth: where the deepest operand's piece ends.
static bool too_deep(Place *p, const IrValue *v) {
  const int level = place_info(p, v)->depth / PLACE_MAX_DEPTH;
  for (uint32_t i = 0; i < v->def->noperands && level; i++) {
    const IrValue *o = ir_operand(v->def, i);
    if (place_is_tile(o) && place_info(p, o)->depth / PLACE_MAX_DEPTH == level) return false;
  }
  return level > 0;
}

static void decide(Place *p, IrValue *v) {
  PlaceInfo *in = place_info(p, v);
  const bool load = v->def->kind == OP_load || v->def->kind == OP_mem_load;
  collect_users(p, v);
  if (!in->nusers) return;
  if (!in->made && too_deep(p, v)) give_buffer(p, v, "a long expression");
  if (!in->made && in->deps) {
    bool deeper = false;
    for (int i = 0; i < in->nusers && i < 4; i++) deeper |= outer_loop(in->users[i]->step, in->plan) != NULL;
    const bool index = !ir_type_is_float(v->type) && v->type->dtype != IR_i8;
    const float limit = index && !load ? 3 * PLACE_COSTLY : PLACE_COSTLY;
    if (deeper && (load || in->cost >= limit)) {
      give_buffer(p, v, "used inside a loop");
    } else if (in->nusers > 1 && in->cost >= limit) {
      give_buffer(p, v, "costly and used by several loops");
    } else if (gathered(v) && in->cost > 2.5f) {
      give_buffer(p, v, "gathered from");
    } else if (in->nusers > 4 &&
               (load || in->cost >= (index ? PLACE_COSTLY : 1.5f))) { // masks, indices: never worth it
      give_buffer(p, v, "used by many loops");
    }
  }
  if (!load) return;
  for (int i = 0; i < in->nusers; i++) {
    if (!spoilt(p, v, in->users[i])) continue;
    if (in->made) { // the fill that later groups rely on comes too late: make it at home as well
      PlaceBuf *b = in->buf;
      PlaceGroup *g = place_group_new(p, v->type->rank, v->type->shape);
      insert(p, in->plan, in->home, g);
      PlaceBuf *early = place_buf_new(p, v->type, true, v->def->loc, "overwritten before its use");
      PlaceRoot *old = NULL;
      for (PlaceRoot *f = in->fills; f; f = f->next_fill) {
        if (f->buf == b && f->defines) old = f;
      }
      if (old) old->defines = false;
      in->buf = NULL;
      in->buf = early;
      place_add_fill(p, g, v, early, true);
      in->users[0] = g;
      in->nusers = 1;
    } else {
      own_group(p, v, in->plan, in->home, "overwritten before its use");
    }
    return;
  }
}

typedef Vec(IrOp *) Ops;
typedef struct Listing {
  Place *p;
  Ops ops;
} Listing;
static void list_block(Listing *l, IrBlock *b) {
  for (IrOp *op = b->first; op; op = op->next) {
    vec_push(l->p->arena, &l->ops, op);
    if (op->kind == OP_reduce || op->kind == OP_scan || place_is_thread_op(op)) continue;
    for (uint32_t i = 0; i < op->nregions; i++) list_block(l, op->regions[i]);
  }
}

// ---- 3: updates in place ---------------------------------------------------------------------------------------------------
typedef struct Late {
  Place *p;
  const IrValue *old;
  double after, until;
  bool found;
} Late;

static void late_reads(Late *l, PlacePlan *plan) {
  for (PlaceStep *s = plan->first; s && !l->found; s = s->next) {
    if (s->end <= l->after || s->pos >= l->until) continue;
    if (s->group) {
      if (s->pos > l->after) {
        const Seek k = reads(l->p, s->group, l->old);
        l->found |= k.same || k.other;
      }
    } else if (s->op && !s->last_op) {
      if (s->op->kind == OP_dot && s->pos > l->after) {
        for (uint32_t i = 0; i < 2; i++) l->found |= ir_operand(s->op, i) == l->old;
      }
      for (uint32_t i = 0; i < s->op->nregions; i++) {
        PlacePlan *in = map_getp(&l->p->plans, s->op->regions[i]);
        if (in) late_reads(l, in);
      }
    }
  }
}

static bool too_early(Place *p, const PlaceRoot *r) {
  const Seek here = reads(p, r->group, r->over);
  if (here.other) return true;
  PlacePlan *body = map_getp(&p->plans, r->over->block);
  PlaceStep *owner = body ? body->owner : NULL;
  if (!owner) return true;
  Late l = {p, r->over, r->group->step->pos, owner->end, false};
  late_reads(&l, body);
  return l.found;
}

static void mend_fill(Place *p, PlaceRoot *r) {
  PlaceBuf *to = r->buf;
  PlaceBuf *temp =
      place_buf_new(p, r->value->type, to->flat, to->loc, "new value, while the old one is still read");
  PlacePlan *plan = r->group->step->plan;
  r->buf = temp;
  r->over = NULL;
  PlaceGroup *g = place_group_new(p, r->value->type->rank, r->value->type->shape);
  insert(p, plan, plan->last, g);
  PlaceRoot *copy = arena_new(p->arena, PlaceRoot);
  *copy = (PlaceRoot){.kind = ROOT_FILL, .value = r->value, .buf = to, .src = temp, .group = g};
  vec_push(p->arena, &g->roots, copy);
}

static void mend_plan(Place *p, PlacePlan *plan) {
  for (PlaceStep *s = plan->first; s; s = s->next) {
    if (s->group) {
      for (uint32_t i = 0; i < s->group->roots.len; i++) {
        PlaceRoot *r = s->group->roots.data[i];
        if (r->kind == ROOT_FILL && r->over && !r->src && too_early(p, r)) mend_fill(p, r);
      }
    } else if (!s->last_op) {
      for (uint32_t i = 0; i < s->op->nregions; i++) {
        PlacePlan *in = map_getp(&p->plans, s->op->regions[i]);
        if (in) mend_plan(p, in);
      }
    }
  }
}

void place_check_run(Place *p) {
  number_all(p);
  Listing l = {.p = p};
  list_block(&l, p->old->body);
  for (uint32_t i = l.ops.len; i-- > 0;) {
    IrOp *op = l.ops.data[i];
    if (!place_op_is_virtual(op)) continue;
    for (uint32_t k = op->nresults; k-- > 0;) decide(p, ir_result(op, k));
  }
  mend_plan(p, map_getp(&p->plans, p->old->body));
}
