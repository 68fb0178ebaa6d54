// interp: the world of a run. Ranks, streams, launches, instances, and who steps next.
//
// One thread, no recursion: every agent that can step is in `ready`, every one that waits for memory in `waiting`. Waits are
// looked at again only after something was written. When nothing is ready and no wait has come true, the run is deadlocked.
// Seed 0 gives long turns in a fixed rotation; any other seed gives short turns in an order of its own.
#include "ir/interp_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MAX_MEMORY = (size_t)12 << 30, COMFORT = (size_t)512 << 20;
enum { LONG_TURN = 20000, COPY_STEP = 4096 };

// ---- memory of the run ---------------------------------------------------------------------------------------------------
static int pool_class(size_t bytes) { return bytes <= 64 ? 6 : bits_log2(bytes - 1) + 1; }

void *interp_pool_get(World *w, size_t bytes) {
  const int k = pool_class(bytes);
  void *p = w->pool[k];
  if (!p) return arena_alloc(&w->arena, (size_t)1 << k, 64);
  memcpy(&w->pool[k], p, sizeof(void *));
  return p;
}

void interp_pool_put(World *w, void *p, size_t bytes) {
  const int k = pool_class(bytes);
  memcpy(p, &w->pool[k], sizeof(void *));
  w->pool[k] = p;
}

char *interp_scratch(World *w, size_t bytes) {
  if (bytes > w->scratch_cap) {
    if (w->scratch) interp_pool_put(w, w->scratch, w->scratch_cap);
    w->scratch_cap = bits_next_pow2(bytes < 4096 ? 4096 : bytes);
    w->scratch = interp_pool_get(w, w->scratch_cap);
  }
  return w->scratch;
}

// ---- lists of agents -----------------------------------------------------------------------------------------------------
static Launch *launch_of(const Agent *a) { return a->inst && a->kind != AGENT_JOB ? a->inst->launch : NULL; }

Agent *interp_agent_new(World *w, AgentKind k, int rank) {
  Agent *a = w->free_agents;
  Agent old = {0}; // whose memory is kept
  if (a) {
    w->free_agents = a->next;
    old = *a;
  } else {
    a = arena_new(&w->arena, Agent);
  }
  memset(a, 0, sizeof *a);
  a->polled = old.polled;
  a->flights = old.flights;
  a->flights.len = 0;
  a->kind = k;
  a->rank = rank;
  a->state = AGENT_OVER;
  a->warp = -1;
  a->begin = w->steps;
  return a;
}

void interp_agent_free(World *w, Agent *a) {
  a->next = w->free_agents;
  w->free_agents = a;
}

static void take_off(World *w, AgentList *list, Agent *a) {
  (void)w;
  Agent *last = vec_pop(list);
  if (last == a) return;
  list->data[a->slot] = last;
  last->slot = a->slot;
}

static bool listed(const AgentList *l, const Agent *a) { return a->slot < l->len && l->data[a->slot] == a; }

void interp_forget(World *w, Agent *a) {
  if (listed(&w->ready, a)) {
    take_off(w, &w->ready, a);
    if (launch_of(a)) launch_of(a)->ready--;
  } else if (listed(&w->waiting, a)) {
    take_off(w, &w->waiting, a);
  }
}

void interp_make_ready(World *w, Agent *a) {
  interp_forget(w, a);
  a->state = AGENT_READY;
  a->slot = w->ready.len;
  vec_push(&w->arena, &w->ready, a);
  if (launch_of(a)) launch_of(a)->ready++;
}

void interp_make_waiting(World *w, Agent *a) {
  interp_forget(w, a);
  a->state = AGENT_WAITING;
  a->slot = w->waiting.len;
  vec_push(&w->arena, &w->waiting, a);
}

void interp_wait_event(World *w, const Agent *a) {
  if (!w->c->event || !a->inst) return;
  const char *label = a->wait_ins ? ir_attr_s(a->wait_ins->op, ATTR_label) : NULL;
  InterpEvent e = {.kind = EVENT_WAIT,
                   .rank = a->rank,
                   .stream = a->inst->launch->cmd->stream,
                   .begin = a->begin,
                   .end = w->steps,
                   .name = label ? label : "wait",
                   .loc = a->wait_ins ? a->wait_ins->op->loc : LOC_NONE};
  memcpy(e.pid, a->inst->pid, sizeof e.pid);
  w->c->event(w->c->user, &e);
}

// ---- instances -------------------------------------------------------------------------------------------------------------
static void set_params(Instance *in, Agent *a, const Code *code) {
  const IrFunc *f = code->func;
  const InterpArg *args = in->launch->cmd->args;
  for (uint32_t k = 0; k < f->body->args.len; k++) {
    const IrType *t = f->body->args.data[k]->type;
    char *p = interp_at(a, code->params[k]);
    if (t->kind == IR_DESC) {
      memcpy(p, args[k].desc, sizeof(InterpDesc));
    } else if (t->kind == IR_SCALAR && ir_dtypes[t->dtype].cls == IR_FLOAT) {
      const uint64_t bits = ir_float_bits(t->dtype, args[k].f);
      memcpy(p, &bits, ir_dtypes[t->dtype].bytes);
    } else if (t->kind == IR_SCALAR) {
      interp_put_int(p, ir_dtypes[t->dtype].bytes, t->dtype == IR_i1 ? args[k].i != 0 : args[k].i);
    } else {
      memcpy(p, &args[k].i, 8);
    }
  }
}

static void start_instance(World *w, Launch *l) {
  const Code *code = l->code;
  Instance *in = l->free;
  if (in) {
    l->free = in->next;
    memset(in->mbars, 0, code->mbarriers * sizeof *in->mbars);
  } else {
    in = arena_new(&w->arena, Instance);
    in->mbars = arena_array(&w->arena, MBar, code->mbarriers + 1);
    in->warps = w->check ? arena_array(&w->arena, Actor, code->nwarps) : NULL;
  }
  in->launch = l;
  in->rank = l->stream->rank;
  in->number = l->started++;
  in->pid[0] = (uint32_t)(in->number % l->cmd->grid[0]);
  in->pid[1] = (uint32_t)(in->number / l->cmd->grid[0] % l->cmd->grid[1]);
  in->pid[2] = (uint32_t)(in->number / l->cmd->grid[0] / l->cmd->grid[1]);
  in->begin = w->steps;
  in->agents = 1;
  in->area = interp_pool_get(w, code->ar_bytes);
  in->root = (Group){.inst = in, .nwarps = code->nwarps};
  in->parts = NULL;
  in->first_job = NULL;
  in->last_job = NULL;
  in->job_count = 0;
  in->delays = w->delay && rng_next(&w->rng) & 1;
  w->live_bytes += code->ar_bytes + code->sc_bytes;
  Agent *a = interp_agent_new(w, AGENT_BLOCK, in->rank);
  a->code = code;
  a->inst = in;
  a->group = &in->root;
  a->nthr = code->nwarps * code->lanes;
  a->mask = ~0ull;
  a->base[SP_CO] = code->consts;
  a->base[SP_SC] = interp_pool_get(w, code->sc_bytes);
  a->base[SP_NONE] = a->base[SP_SC];
  a->base[SP_AR] = a->base[SP_TH] = in->area;
  set_params(in, a, code);
  l->alive++;
  w->alive[in->rank]++;
  check_instance(w, in);
  interp_make_ready(w, a);
}

void interp_instance_done(World *w, Agent *root) {
  Instance *in = root->inst;
  Launch *l = in->launch;
  const Code *code = l->code;
  interp_flush(w, in);
  interp_jobs_finish(w, in, -1);
  check_instance_done(w, in);
  if (w->c->event) {
    InterpEvent e = {.kind = EVENT_INSTANCE,
                     .rank = in->rank,
                     .stream = l->cmd->stream,
                     .begin = in->begin,
                     .end = w->steps,
                     .name = code->func->name->s,
                     .loc = code->func->loc};
    memcpy(e.pid, in->pid, sizeof e.pid);
    w->c->event(w->c->user, &e);
  }
  interp_pool_put(w, in->area, code->ar_bytes);
  interp_pool_put(w, root->base[SP_SC], code->sc_bytes);
  w->live_bytes -= code->ar_bytes + code->sc_bytes;
  interp_agent_free(w, root);
  in->next = l->free;
  l->free = in;
  l->alive--;
  l->done++;
  w->alive[in->rank]--;
  w->instances++;
  if (w->c->progress && w->instances * 256 / w->total_instances != w->next_report) {
    w->next_report = w->instances * 256 / w->total_instances;
    w->c->progress(w->c->user, (double)w->instances / (double)w->total_instances);
  }
  if (l->done == l->total) interp_make_ready(w, l->stream->agent);
}

// Starts instances in order while the launch has too few agents that can step.
static void start_instances(World *w) {
  for (Launch *l = w->launches; l; l = l->next) {
    while (l->started < l->total && l->ready < l->window &&
           (!w->c->resident || w->alive[l->stream->rank] < w->c->resident) &&
           (!l->ready || w->live_bytes < COMFORT))
      start_instance(w, l);
  }
}

// ---- launches ----------------------------------------------------------------------------------------------------------------
static Code *code_of(World *w, const IrFunc *f) {
  for (uint32_t k = 0; k < w->codes.len; k++)
    if (w->codes.data[k]->func == f) return w->codes.data[k];
  Code *c = NULL;
  Loc where = LOC_NONE;
  const char *why = interp_compile(w, f, &c, &where);
  if (why) {
    interp_fault(w, FAULT_UNSUPPORTED, where, LOC_NONE, "%s: %s", interp_line(w, where), why);
    return NULL;
  }
  vec_push(&w->arena, &w->codes, c);
  return c;
}

static void start_launch(World *w, Stream *s, const InterpCmd *cmd) {
  Launch *l = arena_new(&w->arena, Launch);
  *l = (Launch){.cmd = cmd, .stream = s, .next = w->launches, .begin = w->steps};
  l->code = code_of(w, cmd->func);
  if (!l->code) {
    w->stop = true;
    return;
  }
  l->total = cmd->grid[0] * cmd->grid[1] * cmd->grid[2];
  l->window = w->c->seed ? 1 + (uint32_t)(rng_next(&w->rng) % 8) : 1;
  w->launches = l;
  s->launch = l;
  check_launch(w, l);
}

static void end_launch(World *w, Stream *s) {
  Launch *l = s->launch;
  check_launch_done(w, l);
  for (Launch **p = &w->launches; *p; p = &(*p)->next) {
    if (*p != l) continue;
    *p = l->next;
    break;
  }
  s->launch = NULL;
}

// ---- streams -------------------------------------------------------------------------------------------------------------------
static Stream *find_stream(World *w, int rank, int id) {
  for (int k = 0; k < w->nstreams; k++)
    if (w->streams[k].rank == rank && w->streams[k].id == id) return &w->streams[k];
  return NULL;
}

// Are all commands of `other` that were issued before `cmd` over?
static bool stream_reached(const Stream *other, int cmd) {
  return !other || other->at >= other->ncmds || other->cmds[other->at] > cmd;
}

static bool stream_access(World *w, Stream *s, uint64_t addr, uint64_t bytes, unsigned kind, uint64_t value) {
  const Access x = {.value = value,
                    .addr = addr,
                    .bytes = bytes,
                    .kind = kind,
                    .warp = -1,
                    .scope = SCOPE_sys,
                    .esize = bytes <= 8 ? (int)bytes : 1,
                    .actor = &s->actor};
  return interp_access(w, s->agent, &x);
}

// A part of a copy or fill. A word is written as a release at system scope: that is how copies raise flags.
static bool stream_copy(World *w, Stream *s, const InterpCmd *c) {
  const uint64_t left = c->bytes - s->copied, n = left < COPY_STEP ? left : COPY_STEP;
  char *dst = (char *)c->dst + s->copied;
  const char *src = (const char *)c->src + s->copied;
  const unsigned word = c->bytes <= 8 ? ACC_ATOMIC | ACC_RELEASE : 0;
  if (!n) return true;
  const bool copy = c->kind == INTERP_COPY;
  // The engine may read a word that kernels raise with release: then what it publishes comes after that.
  if (copy && !stream_access(w, s, (uint64_t)(uintptr_t)src, n, ACC_READ | (word ? ACC_ACQUIRE : 0), 0))
    return true;
  uint64_t value = 0;
  if (word && copy)
    memcpy(&value, src, n);
  else if (word)
    memset(&value, c->value, n);
  if (!stream_access(w, s, (uint64_t)(uintptr_t)dst, n, ACC_WRITE | word, value)) return true;
  if (copy)
    memmove(dst, src, n);
  else
    memset(dst, c->value, n);
  if (word) interp_wrote(w, s->agent, (uint64_t)(uintptr_t)dst, NULL);
  s->copied += n;
  return s->copied == c->bytes;
}

static void stream_over(World *w, Stream *s, const InterpCmd *c) {
  if (w->c->event && (c->kind == INTERP_COPY || c->kind == INTERP_FILL)) {
    const InterpEvent e = {.kind = EVENT_COPY,
                           .rank = s->rank,
                           .stream = s->id,
                           .begin = s->agent->begin,
                           .end = w->steps,
                           .name = c->kind == INTERP_COPY ? "copy" : "fill"};
    w->c->event(w->c->user, &e);
  }
  s->copied = 0;
  s->running = false;
  s->at++;
}

static void stream_step(World *w, Stream *s) {
  Agent *a = s->agent;
  w->steps++;
  if (s->at == s->ncmds) {
    interp_forget(w, a);
    a->state = AGENT_OVER;
    return;
  }
  const int at = s->cmds[s->at];
  const InterpCmd *c = &w->c->cmds[at];
  if (!s->running) a->begin = w->steps;
  switch (c->kind) {
  case INTERP_LAUNCH:
    if (!s->running) {
      s->running = true;
      start_launch(w, s, c);
      if (w->stop) return;
    }
    if (s->launch->done < s->launch->total) {
      a->wait = WAIT_LAUNCH;
      interp_make_waiting(w, a);
      return;
    }
    end_launch(w, s);
    stream_over(w, s, c);
    return;
  case INTERP_COPY:
  case INTERP_FILL:
    s->running = true;
    if (stream_copy(w, s, c)) stream_over(w, s, c);
    return;
  case INTERP_WAIT_STREAM: {
    Stream *other = find_stream(w, s->rank, c->wait_stream);
    if (!stream_reached(other, at)) {
      a->wait = WAIT_STREAM;
      interp_make_waiting(w, a);
      return;
    }
    if (other) check_stream_wait(w, s, other);
    stream_over(w, s, c);
    return;
  }
  }
}

// ---- stepping ----------------------------------------------------------------------------------------------------------------------
bool interp_condition(World *w, Agent *a) {
  switch (a->wait) {
  case WAIT_WORD: {
    uint64_t v = 0;
    memcpy(&v, (const void *)(uintptr_t)a->addr, a->size);
    return interp_cmp_words(a->cmp, v, a->value, a->size);
  }
  case WAIT_POLL:
    if (a->coarse) return w->writes != a->epoch0;
    for (uint32_t k = 0; k < a->npolled; k++) {
      uint64_t v = 0;
      memcpy(&v, (const void *)(uintptr_t)a->polled[k].addr, a->polled[k].size);
      if (v != a->polled[k].seen) return true;
    }
    return false;
  case WAIT_TEAM: return w->teams[a->addr].gens.data[a->value].arrived >= (uint32_t)w->c->ranks;
  case WAIT_MBAR: return (a->inst->mbars[a->addr].phase & 1) != a->value;
  case WAIT_LAUNCH: return a->stream->launch->done == a->stream->launch->total;
  case WAIT_STREAM: {
    const int at = a->stream->cmds[a->stream->at];
    return stream_reached(find_stream(w, a->rank, w->c->cmds[at].wait_stream), at);
  }
  default: return true;
  }
}

static void look_at_waits(World *w) {
  w->polled_at = w->writes;
  for (uint32_t k = 0; k < w->waiting.len;) {
    Agent *a = w->waiting.data[k];
    if (!interp_condition(w, a)) {
      k++;
      continue;
    }
    if (a->wait == WAIT_POLL) interp_wait_event(w, a);
    interp_make_ready(w, a);
  }
}

static bool all_over(const World *w) {
  for (int k = 0; k < w->nstreams; k++)
    if (w->streams[k].agent->state != AGENT_OVER) return false;
  return true;
}

static void turn(World *w, uint32_t k) {
  Agent *a = w->ready.data[k];
  switch (a->kind) {
  case AGENT_STREAM: stream_step(w, a->stream); break;
  case AGENT_JOB:
    w->steps++;
    interp_job_run(w, a->job);
    break;
  default: {
    const bool random = w->c->seed != 0;
    const uint64_t x = random ? rng_next(&w->rng) : 0;
    const uint32_t budget = !random ? LONG_TURN : x % 8 ? 1 + (uint32_t)(x >> 8) % 24 : 500;
    Launch *l = launch_of(a);
    // An agent that goes on and on may be waiting for an instance that has not started.
    if (interp_agent_run(w, a, budget) == SWITCH && (!random || (x >> 40) % 64 == 0)) l->window++;
  }
  }
}

static void run(World *w) {
  uint32_t next = 0;
  while (!w->stop) {
    start_instances(w);
    if (w->writes != w->polled_at || !w->ready.len) look_at_waits(w);
    if (!w->ready.len) {
      if (all_over(w)) return;
      start_instances(w);
      while (w->delaying) interp_flush(w, w->delaying); // stores are seen in the end
      look_at_waits(w);
      if (!w->ready.len) {
        interp_deadlock(w);
        return;
      }
    }
    if (next >= w->ready.len) next = 0;
    if (w->c->seed) {
      uint32_t k = (uint32_t)(rng_next(&w->rng) % w->ready.len);
      if (w->ready.data[k]->rank == w->slow && rng_next(&w->rng) % 16)
        k = (uint32_t)(rng_next(&w->rng) % w->ready.len);
      turn(w, k);
      continue;
    }
    const Agent *a = w->ready.data[next];
    turn(w, next);
    if (next < w->ready.len && w->ready.data[next] == a) next++;
    if (w->steps >= w->max_steps && !w->stop) {
      interp_fault(w, FAULT_LIMIT, LOC_NONE, LOC_NONE, "the run was stopped after %llu steps",
                   (unsigned long long)w->steps);
    }
  }
}

// ---- opening -------------------------------------------------------------------------------------------------------------------------
static int by_base(const void *x, const void *y) {
  const Range *a = x, *b = y;
  return a->base < b->base ? -1 : a->base > b->base;
}

static const char *open_memory(World *w) {
  const InterpConfig *c = w->c;
  w->ranges = arena_array(&w->arena, Range, c->nmemory + 1);
  for (int k = 0; k < c->nmemory; k++) {
    const InterpMemory *m = &c->memory[k];
    if (!m->bytes) continue;
    if (!m->base || m->rank >= c->ranks)
      return arena_printf(&w->arena, "memory %s is not a rank's", m->name ? m->name : "?");
    w->ranges[w->nranges++] =
        (Range){(uint64_t)(uintptr_t)m->base, (uint64_t)(uintptr_t)m->base + m->bytes, m, NULL};
  }
  qsort(w->ranges, (size_t)w->nranges, sizeof *w->ranges, by_base);
  for (int k = 0; k < w->nranges; k++) {
    if (k && w->ranges[k].base < w->ranges[k - 1].end)
      return arena_printf(&w->arena, "memory %s overlaps %s",
                          w->ranges[k].mem->name ? w->ranges[k].mem->name : "?",
                          w->ranges[k - 1].mem->name ? w->ranges[k - 1].mem->name : "?");
  }
  for (int k = 0; w->check && k < w->nranges; k++) check_range_open(w, &w->ranges[k]);
  return NULL;
}

static const char *open_streams(World *w) {
  const InterpConfig *c = w->c;
  w->streams = arena_array(&w->arena, Stream, c->ncmds + 1);
  for (int k = 0; k < c->ncmds; k++) {
    const InterpCmd *m = &c->cmds[k];
    if (m->rank < 0 || m->rank >= c->ranks)
      return arena_printf(&w->arena, "a command for rank %d of %d", m->rank, c->ranks);
    Stream *s = find_stream(w, m->rank, m->stream);
    if (!s) {
      s = &w->streams[w->nstreams];
      *s = (Stream){.rank = m->rank,
                    .id = m->stream,
                    .index = w->nstreams++,
                    .cmds = arena_array(&w->arena, int, c->ncmds)};
      s->agent = interp_agent_new(w, AGENT_STREAM, m->rank);
      s->agent->stream = s;
    }
    s->cmds[s->ncmds++] = k;
    if (m->kind != INTERP_LAUNCH) continue;
    uint64_t n = (uint64_t)m->grid[0] * m->grid[1];
    if (!m->func || (n && m->grid[2] > INT32_MAX / n) || n > INT32_MAX)
      return "a launch without function, or of more than 2^31 instances";
    if (m->func->body && m->func->body->args.len && !m->args) return "a launch without arguments";
    w->total_instances += n * m->grid[2];
  }
  return NULL;
}

static Status status_of(InterpFault f) {
  switch (f) {
  case FAULT_NONE: return ST_OK;
  case FAULT_BOUNDS:
  case FAULT_READONLY: return ST_INVALID;
  case FAULT_DEADLOCK: return ST_DEADLINE;
  case FAULT_ASSERT: return ST_ASSERT;
  case FAULT_LIMIT: return ST_LIMIT;
  case FAULT_UNSUPPORTED: return ST_UNSUPPORTED;
  default: return ST_RACE;
  }
}

static void hand_back(World *w, InterpResult *r) {
  Arena *to = w->c->arena;
  r->findings = arena_array(to, InterpFinding, w->findings.len + 1);
  for (uint32_t k = 0; k < w->findings.len; k++) {
    r->findings[k] = w->findings.data[k];
    r->findings[k].text = arena_strdup(to, w->findings.data[k].text);
  }
  r->nfindings = (int)w->findings.len;
  r->steps = w->steps;
  r->elems = w->elems;
  r->status = w->findings.len ? status_of(w->findings.data[0].fault) : ST_OK;
}

static void run_all(World *w) {
  const InterpConfig *c = w->c;
  w->rng.s = c->seed * 0x9e3779b97f4a7c15u + 1;
  w->slow = c->ranks > 1 ? (int)(rng_next(&w->rng) % (uint64_t)(c->ranks + 1)) - 1 : -1;
  w->max_steps = c->max_steps ? c->max_steps : 1ull << 62;
  w->max_findings = c->max_findings > 0 ? c->max_findings : 20;
  w->check = c->check;
  map_init(&w->seen_findings, &w->arena);
  map_init(&w->last_writes, &w->arena);
  w->alive = arena_array(&w->arena, int, c->ranks + 1);
  w->delay = c->check && c->seed && rng_next(&w->rng) & 1;
  if (w->check) check_open(w);
  const char *why = c->ranks < 1 ? "no ranks" : open_memory(w);
  if (!why) why = open_streams(w);
  if (why) {
    interp_fault(w, FAULT_UNSUPPORTED, LOC_NONE, LOC_NONE, "%s", why);
    return;
  }
  if (!w->total_instances) w->total_instances = 1;
  for (int k = 0; k < w->nstreams; k++) {
    check_stream_open(w, &w->streams[k]);
    interp_make_ready(w, w->streams[k].agent);
  }
  run(w);
}

Status interp_run(const InterpConfig *c, InterpResult *r) {
  memset(r, 0, sizeof *r);
  World *w = calloc(1, sizeof *w);
  if (!w) return r->status = ST_NO_MEMORY;
  w->c = c;
  arena_init(&w->arena, MAX_MEMORY, &w->escape);
  if (ESCAPE_TRY(&w->escape)) {
    // What was found is in the arena still; the reason why the run ends here is added behind it.
    const Status s = w->escape.status;
    r->findings = arena_array(c->arena, InterpFinding, 1);
    r->findings[0] =
        (InterpFinding){FAULT_LIMIT, LOC_NONE, LOC_NONE, arena_strdup(c->arena, w->escape.message)};
    r->nfindings = 1;
    r->steps = w->steps;
    r->elems = w->elems;
    r->status = s;
  } else {
    run_all(w);
    hand_back(w, r);
  }
  arena_free(&w->arena);
  free(w);
  return r->status;
}
