// interp_check: who has heard of what. The events of a run as steps of vector clocks.
//
// An instance has an actor for each warp, one for its tile code (done by all or unknown threads) and one for the single thread
// that does scalar accesses of program code. Tile and scalar code of one instance are in program order. Between tile code and
// warps, and between warps, only a barrier orders: what the tile actor did since the last barrier is in no clock, so a
// release by one thread does not cover it, though the interpreter ran it long ago. dl.release and dl.acquire hold a barrier.
// A word is released by joining the releaser's clock into the word's, and acquired the other way; fences keep the clock for
// later relaxed accesses. Both scopes must hold both sides, or the edge is only remembered as a weak one, for the report.
#include "ir/interp_check.h"

#include <string.h>

void check_open(World *w) {
  w->chk = arena_new(&w->arena, Check);
  map_init(&w->chk->sync, &w->arena);
  shadow_open(w);
}

void check_range_open(World *w, Range *r) {
  const size_t n = (size_t)((r->end + 7) / 8 - r->base / 8) + 1;
  r->shadow = arena_array(&w->arena, uint32_t, n);
  for (size_t k = 0; r->mem->initialised && k < n; k++) r->shadow[k] = 1;
}

// ---- actors ----------------------------------------------------------------------------------------------------------------
static uint32_t comp_new(World *w, uint32_t origin, CompKind kind, int warp) {
  Check *k = w->chk;
  vec_push(&w->arena, &k->comps, ((CompInfo){origin, (uint16_t)warp, (uint8_t)kind}));
  return k->comps.len - 1;
}

static Actor actor(World *w, uint32_t origin, CompKind kind, int warp, const Clock *seen) {
  return (Actor){.comp = comp_new(w, origin, kind, warp), .epoch = 1, .seen = clock_keep((Clock *)seen)};
}

static void actor_drop(World *w, Actor *a) {
  clock_drop(w, a->seen);
  clock_drop(w, a->released);
  clock_drop(w, a->pending);
  memset(a, 0, sizeof *a);
}

const char *check_actor_name(World *w, uint32_t comp) {
  const CompInfo *c = &w->chk->comps.data[comp];
  const Origin *o = &w->chk->origins.data[c->origin];
  if (c->kind == COMP_STREAM) return arena_printf(&w->arena, "a copy of rank %d, stream %d", o->rank, o->id);
  const char *at = arena_printf(&w->arena, "rank %d, %s (%u, %u, %u)", o->rank, o->func->name->s, o->pid[0],
                                o->pid[1], o->pid[2]);
  switch (c->kind) {
  case COMP_WARP: return arena_printf(&w->arena, "%s, warp %u", at, c->warp);
  case COMP_COPY: return arena_printf(&w->arena, "a copy started by %s", at);
  default: return at;
  }
}

void check_stream_open(World *w, Stream *s) {
  if (!w->check) return;
  Check *k = w->chk;
  k->nstreams = (uint32_t)w->nstreams;
  vec_push(&w->arena, &k->origins, ((Origin){.stream = -1, .rank = s->rank, .id = s->id}));
  s->actor = actor(w, k->origins.len - 1, COMP_STREAM, 0, NULL);
}

// Everything the actor did or heard of, as a new reference; later accesses are not in it.
static Clock *snapshot(World *w, Actor *a, const Clock *seen) {
  Clock *c = clock_keep((Clock *)seen);
  clock_add(w, &c, &(ClockEntry){a->comp, a->epoch}, 1);
  a->epoch++;
  return c;
}

void check_launch(World *w, Launch *l) {
  if (w->check) l->start = snapshot(w, &l->stream->actor, l->stream->actor.seen);
}

void check_launch_done(World *w, Launch *l) {
  if (!w->check) return;
  Stream *s = l->stream;
  clock_join(w, &s->actor.seen, s->work);
  clock_drop(w, s->work);
  s->work = NULL;
  clock_set_done(w, &s->actor.seen, (uint32_t)s->index, s->at + 1);
  clock_drop(w, l->start);
}

void check_stream_wait(World *w, Stream *s, Stream *other) {
  if (!w->check) return;
  Clock *c = snapshot(w, &other->actor, other->actor.seen);
  clock_join(w, &s->actor.seen, c);
  clock_drop(w, c);
}

void check_instance(World *w, Instance *in) {
  if (!w->check) return;
  Check *k = w->chk;
  const Launch *l = in->launch;
  Origin o = {.stream = l->stream->index, .at = l->stream->at, .rank = in->rank, .func = l->code->func};
  memcpy(o.pid, in->pid, sizeof o.pid);
  vec_push(&w->arena, &k->origins, o);
  const uint32_t origin = k->origins.len - 1;
  in->root.tiles = actor(w, origin, COMP_TILES, 0, l->start);
  in->root.scalar = actor(w, origin, COMP_SCALAR, 0, NULL); // its clock is that of the tiles
  for (uint32_t q = 0; q < l->code->nwarps; q++) in->warps[q] = actor(w, origin, COMP_WARP, (int)q, l->start);
  if (l->code->bufs.len) {
    const size_t n = l->code->ar_bytes / 8 + 1;
    if (!in->shadow) in->shadow = arena_array(&w->arena, uint32_t, n);
    memset(in->shadow, 0, n * sizeof *in->shadow);
  }
}

static void hand_to_stream(World *w, Launch *l, const Clock *c) {
  if (c != l->start) clock_join(w, &l->stream->work, c);
}

void check_instance_done(World *w, Instance *in) {
  if (!w->check) return;
  hand_to_stream(w, in->launch, in->root.tiles.seen);
  actor_drop(w, &in->root.tiles);
  actor_drop(w, &in->root.scalar);
  for (uint32_t q = 0; q < in->launch->code->nwarps; q++) {
    hand_to_stream(w, in->launch, in->warps[q].seen);
    actor_drop(w, &in->warps[q]);
  }
}

// ---- barriers ------------------------------------------------------------------------------------------------------------------
static void set_clock(World *w, Clock **at, Clock *c) {
  if (*at == c) return;
  clock_drop(w, *at);
  *at = clock_keep(c);
}

void check_barrier(World *w, Group *g) {
  if (!w->check) return;
  Actor *warps = &g->inst->warps[g->first];
  enum { MOST = 66 };
  ClockEntry e[MOST];
  uint32_t n = 0;
  Clock *all = clock_keep(g->tiles.seen), *released = clock_keep(g->tiles.released);
  clock_join(w, &released, g->scalar.released);
  e[n++] = (ClockEntry){g->tiles.comp, g->tiles.epoch++};
  e[n++] = (ClockEntry){g->scalar.comp, g->scalar.epoch++};
  IrScope scope = SCOPE_sys;
  if (g->scalar.released) scope = g->scalar.released_scope;
  for (uint32_t q = 0; q < g->nwarps; q++) {
    clock_join(w, &all, warps[q].seen);
    clock_join(w, &released, warps[q].released);
    if (warps[q].released && warps[q].released_scope < scope) scope = warps[q].released_scope;
    e[n++] = (ClockEntry){warps[q].comp, warps[q].epoch++};
    if (n < MOST) continue;
    clock_add(w, &all, e, n);
    n = 0;
  }
  clock_add(w, &all, e, n);
  set_clock(w, &g->tiles.seen, all);
  for (uint32_t q = 0; q < g->nwarps; q++) set_clock(w, &warps[q].seen, all);
  // What each thread fenced before is out once all have met: one thread's relaxed store then publishes for all.
  if (released) {
    set_clock(w, &g->scalar.released, released);
    g->scalar.released_scope = (uint8_t)scope;
    for (uint32_t q = 0; q < g->nwarps; q++) {
      set_clock(w, &warps[q].released, released);
      warps[q].released_scope = (uint8_t)scope;
    }
  }
  clock_drop(w, released);
  clock_drop(w, all);
}

void check_part_begin(World *w, Group *g) {
  if (!w->check) return;
  const Group *root = &g->inst->root;
  const uint32_t origin = w->chk->comps.data[root->tiles.comp].origin;
  g->tiles = actor(w, origin, COMP_TILES, 0, root->tiles.seen);
  g->scalar = actor(w, origin, COMP_SCALAR, 0, NULL);
}

void check_part_end(World *w, Group *g) {
  if (!w->check) return;
  check_barrier(w, g);
  clock_join(w, &g->inst->root.tiles.seen, g->tiles.seen);
  actor_drop(w, &g->tiles);
  actor_drop(w, &g->scalar);
}

// ---- releases and acquires --------------------------------------------------------------------------------------------------
// The actor of an agent's access, and where its clock lies.
static Actor *actor_of(Agent *a, int warp, bool tiles, Actor *given, Clock ***seen) {
  Actor *x = given;
  if (!x && a->kind == AGENT_JOB) x = &a->job->actor;
  if (!x && a->kind == AGENT_STREAM) x = &a->stream->actor;
  if (!x && warp >= 0) x = &a->inst->warps[warp];
  if (x) {
    *seen = &x->seen;
    return x;
  }
  *seen = &a->group->tiles.seen;
  return tiles ? &a->group->tiles : &a->group->scalar;
}

// Program code hears for all its threads: a broadcast follows.
static void hear(World *w, Agent *a, int warp, Actor *given, const Clock *c) {
  Clock **seen;
  actor_of(a, warp, false, given, &seen);
  clock_join(w, seen, c);
  if (warp >= 0 || given || !a->group) return;
  for (uint32_t q = 0; q < a->group->nwarps; q++) clock_join(w, &a->inst->warps[a->group->first + q].seen, c);
}

void check_receive(World *w, Agent *a, int warp, const Clock *c) {
  if (w->check && c) hear(w, a, warp, NULL, c);
}

void check_publish(World *w, Agent *a, int warp, Clock **into) {
  if (!w->check) return;
  Clock **seen, *c;
  Actor *x = actor_of(a, warp, false, NULL, &seen);
  c = snapshot(w, x, *seen);
  clock_join(w, into, c);
  clock_drop(w, c);
}

static void fence(World *w, Actor *x, Clock **seen, IrOrder o, IrScope s) {
  if (o != ORDER_acquire) {
    clock_drop(w, x->released);
    x->released = snapshot(w, x, *seen);
    x->released_scope = (uint8_t)s;
  }
  if (o != ORDER_release && x->pending) {
    clock_join(w, seen, x->pending);
    clock_drop(w, x->pending);
    x->pending = NULL;
  }
}

void check_fence(World *w, Agent *a, const Ins *i, IrOrder o, IrScope s) {
  (void)i;
  if (!w->check || o == ORDER_weak || o == ORDER_relaxed) return;
  if (a->warp >= 0) {
    Actor *x = &a->inst->warps[a->warp];
    fence(w, x, &x->seen, o, s);
    return;
  }
  // Program code: all threads fence.
  Group *g = a->group;
  Clock *heard = g->scalar.pending ? clock_keep(g->scalar.pending) : NULL;
  fence(w, &g->scalar, &g->tiles.seen, o, s);
  for (uint32_t q = 0; q < g->nwarps; q++) {
    Actor *x = &a->inst->warps[g->first + q];
    if (o != ORDER_release) clock_join(w, &x->seen, heard);
    fence(w, x, &x->seen, o, s);
  }
  clock_drop(w, heard);
}

static SyncVar *sync_of(World *w, uint64_t addr, bool make) {
  SyncVar *v = map_getp(&w->chk->sync, addr);
  if (v || !make) return v;
  v = arena_new(&w->arena, SyncVar);
  map_setp(&w->chk->sync, addr, v);
  return v;
}

static IrScope scope_needed(const Released *v, const Agent *a) {
  if (v->rank != a->rank) return SCOPE_sys;
  return v->inst && v->inst == a->inst && v->inst_number == a->inst->number ? SCOPE_block : SCOPE_gpu;
}

// The write that an acquire may count on. A wait is content with the first write that ends it and that it does not know to be
// overwritten: in another schedule it would have seen that one. Anything else sees the last. NULL: what was there before.
static const Released *seen_write(const World *w, const Access *x, const SyncVar *v, const Clock *seen) {
  if (!x->waits) return &v->h[v->n - 1];
  uint32_t from = v->n;
  while (from && !clock_covers(w, seen, v->h[from - 1].comp, v->h[from - 1].epoch)) from--;
  if (!from && !v->forgot && interp_cmp_words(x->cmp, v->first, x->value, (int)x->bytes)) return NULL;
  for (uint32_t k = from ? from - 1 : 0; k < v->n; k++)
    if (interp_cmp_words(x->cmp, v->h[k].value, x->value, (int)x->bytes)) return &v->h[k];
  return &v->h[v->n - 1];
}

static void acquire(World *w, Agent *a, const Access *x, const SyncVar *var) {
  Clock **seen;
  Actor *me = actor_of(a, x->warp, false, x->actor, &seen);
  const Released *v = seen_write(w, x, var, *seen);
  if (!v || !v->clock) return;
  const IrScope need = scope_needed(v, a);
  if (v->scope < need || x->scope < need) {
    if (w->chk->weak.len < 1000) {
      const WeakEdge e = {clock_keep(v->clock), a->rank, v->loc, x->ins ? x->ins->op->loc : LOC_NONE,
                          v->scope < x->scope ? v->scope : x->scope};
      vec_push(&w->arena, &w->chk->weak, e);
    }
    return;
  }
  if (x->kind & ACC_ACQUIRE)
    hear(w, a, x->warp, x->actor, v->clock);
  else
    clock_join(w, &me->pending, v->clock);
}

// A write of the word at x: what it publishes, after what an update found there.
static void release(World *w, Agent *a, const Access *x, Actor *me, Clock *const *seen) {
  SyncVar *v = sync_of(w, x->addr, true);
  const Released *last = v->n ? &v->h[v->n - 1] : NULL;
  Released r = {.scope = x->scope,
                .rank = a->rank,
                .inst = a->inst,
                .inst_number = a->inst ? a->inst->number : 0,
                .loc = x->ins ? x->ins->op->loc : LOC_NONE,
                .comp = me->comp,
                .epoch = me->epoch,
                .value = x->value};
  if (x->kind & ACC_RELEASE) {
    r.clock = snapshot(w, me, *seen);
  } else if (me->released && (x->kind & ACC_ATOMIC)) { // a relaxed store behind a fence
    r.clock = clock_keep(me->released);
    if (me->released_scope < r.scope) r.scope = (IrScope)me->released_scope;
  }
  if ((x->kind & ACC_READ) && last && last->clock) { // an update hands on what was released before
    if (!r.clock) {
      r.scope = last->scope;
      r.loc = last->loc;
      r.rank = last->rank;
      r.inst = last->inst;
      r.inst_number = last->inst_number;
    }
    clock_join(w, &r.clock, last->clock);
    if (last->scope < r.scope) r.scope = last->scope;
    if (last->rank != r.rank) r.rank = -2;
    if (last->inst != r.inst || last->inst_number != r.inst_number) r.inst = NULL;
  }
  if (!v->n && !v->forgot) memcpy(&v->first, (const void *)(uintptr_t)x->addr, x->bytes <= 8 ? x->bytes : 8);
  if (v->n == HISTORY) {
    clock_drop(w, v->h[0].clock);
    memmove(v->h, v->h + 1, (HISTORY - 1) * sizeof v->h[0]);
    v->n--;
    v->forgot = true;
  }
  v->h[v->n++] = r;
}

// ---- accesses ------------------------------------------------------------------------------------------------------------------
static bool by_one_thread(const Ins *i) {
  if (!i) return true;
  switch (i->op->kind) {
  case OP_load:
  case OP_store:
  case OP_atomic_rmw:
  case OP_atomic_cas: return ir_operand(i->op, 0)->type->kind != IR_TILE;
  case OP_wait:
  case OP_signal:
  case OP_mem_get:
  case OP_mem_set: return true;
  case OP_put:
  case OP_get:
  case OP_put_signal: return ir_attr_i(i->op, ATTR_group) == GROUP_thread;
  default: return false;
  }
}

static Touch touch_of(World *w, Agent *a, const Ins *i, unsigned kind, int warp, Actor *given, IrScope scope,
                      Actor **me, Clock ***seen) {
  (void)w;
  const bool tiles = !by_one_thread(i);
  Actor *x = actor_of(a, warp, tiles, given, seen);
  Touch t = {.e = {0}};
  t.e.comp = x->comp;
  t.e.epoch = x->epoch;
  t.e.ins = i;
  t.e.flags = (uint8_t)(kind & (ACC_ATOMIC | ACC_ASYNC | ACC_DATA));
  t.e.scope = (uint8_t)scope;
  t.e.write = (kind & ACC_WRITE) != 0;
  t.kind = kind;
  t.seen = **seen;
  t.twin = UINT32_MAX;
  if (a->group && x == &a->group->tiles) t.twin = a->group->scalar.comp;
  if (a->group && x == &a->group->scalar) t.twin = a->group->tiles.comp;
  t.rank = a->rank;
  t.agent = a;
  *me = x;
  return t;
}

bool check_access(World *w, Agent *a, const Access *x, Range *r) {
  Actor *me;
  Clock **seen;
  Touch t = touch_of(w, a, x->ins, x->kind, x->warp, x->actor, x->scope, &me, &seen);
  t.base = r->base;
  t.esize = x->esize;
  shadow_touch(w, r->shadow, &t, x->addr, x->bytes);
  const bool plain = !(x->kind & (ACC_ATOMIC | ACC_ACQUIRE));
  if (plain && (x->bytes > 8 || !(x->kind & ACC_WRITE) || !sync_of(w, x->addr, false))) return true;
  const SyncVar *v = x->kind & ACC_READ ? sync_of(w, x->addr, false) : NULL;
  if (v && v->n) acquire(w, a, x, v);
  if ((x->kind & ACC_WRITE) && (plain || (x->kind & ACC_ATOMIC))) release(w, a, x, me, seen);
  return true;
}

void check_block_memory(World *w, Agent *a, const Ins *i, const char *p, size_t bytes, unsigned kind,
                        int warp, Actor *given) {
  if (!w->check || !a->inst->shadow) return;
  Actor *me;
  Clock **seen;
  Touch t = touch_of(w, a, i, kind, warp, given, SCOPE_block, &me, &seen);
  t.base = (uint64_t)(uintptr_t)a->inst->area;
  t.block_name = interp_buffer_name(a, p);
  t.esize = 1;
  shadow_touch(w, a->inst->shadow, &t, (uint64_t)(uintptr_t)p, bytes);
}

// ---- copies ----------------------------------------------------------------------------------------------------------------------
void check_job(World *w, Agent *a, Job *j) {
  if (!w->check) return;
  Clock **seen;
  Actor *x = actor_of(a, j->issuer, false, NULL, &seen);
  const uint32_t origin = w->chk->comps.data[x->comp].origin;
  Clock *c = snapshot(w, x, *seen);
  if (j->issuer < 0) { // tile code before it in program order counts too
    clock_add(w, &c, &(ClockEntry){a->group->tiles.comp, a->group->tiles.epoch}, 1);
    a->group->tiles.epoch++;
  }
  j->actor = actor(w, origin, COMP_COPY, 0, c);
  clock_drop(w, c);
}

void check_job_complete(World *w, Agent *a, int warp, Job *j) {
  if (!w->check) return;
  Clock *c = NULL;
  clock_add(w, &c, &(ClockEntry){j->actor.comp, j->actor.epoch}, 1);
  hear(w, a, warp, NULL, c);
  clock_drop(w, c);
}
