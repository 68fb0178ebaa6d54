// stream: streams and events of every device, and below them the queues of CPU streams: commands in order.
//
// A CPU stream's queue is moved on by whoever finished its last command, or by the host's thread if it was idle:
//
//   host: enqueue -> (idle?) advance -> begin --- done at once: signals, small copies, events -> next
//                                             \-- a launch: workers take its instances; the last one -> advance
//                                             \-- a copy, a wait, a host call: the copy engine; when done -> advance
//
// After an abort, what is queued is skipped, but for event records and host calls, on which others may count.
#include "rt/rt_impl.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  SLAB = 16,
  SMALL = 8192
}; // commands allocated at once; bytes that the finishing thread copies by itself

// ---- commands ----------------------------------------------------------------------------------------
typedef struct CmdSlab {
  struct CmdSlab *next;
  Cmd cmds[SLAB];
} CmdSlab;

static bool grow(RtRank *r) { // lock held
  void *p;
  if (posix_memalign(&p, 64, sizeof(CmdSlab)) != 0) return false;
  CmdSlab *slab = p;
  slab->next = r->slabs;
  r->slabs = slab;
  for (int i = 0; i < SLAB; i++) {
    slab->cmds[i].next = r->free_cmds;
    r->free_cmds = &slab->cmds[i];
  }
  return true;
}

Cmd *rt_cmd_new(RtStream *s, CmdKind k, RtError *e) {
  RtRank *r = s->rank;
  pthread_mutex_lock(&r->lock);
  Cmd *c = r->free_cmds || grow(r) ? r->free_cmds : NULL;
  if (c) r->free_cmds = c->next;
  pthread_mutex_unlock(&r->lock);
  if (!c) {
    rt_no_memory(e);
    return NULL;
  }
  memset(c, 0, offsetof(Cmd, args));
  c->kind = k;
  c->stream = s;
  return c;
}

static void recycle(RtRank *r, Cmd *c) { // lock held
  if (c->kind == CMD_LAUNCH) free(c->launch.big_args);
  c->next = r->free_cmds;
  r->free_cmds = c;
}

void rt_cmd_drop(Cmd *c) {
  RtRank *r = c->stream->rank;
  pthread_mutex_lock(&r->lock);
  recycle(r, c);
  pthread_mutex_unlock(&r->lock);
}

void rt_cmds_free(RtRank *r) {
  while (r->slabs) {
    CmdSlab *slab = r->slabs;
    r->slabs = slab->next;
    free(slab);
  }
  r->free_cmds = NULL;
}

// ---- launches ------------------------------------------------------------------------------------------
static void activate(RtRank *r, Cmd *c) {
  const uint64_t n = c->launch.n;
  pthread_mutex_lock(&r->lock);
  const uint32_t at = atomic_load_explicit(&r->nactive, memory_order_relaxed);
  r->active[at] = c; // one a stream, so there is room
  c->launch.listed = true;
  atomic_store(&r->nactive, at + 1);
  pthread_mutex_unlock(&r->lock);
  rt_wake_workers(r->team, r->index, n < UINT32_MAX ? (uint32_t)n : UINT32_MAX);
}

static void unlist(RtRank *r, Cmd *c) { // lock held
  if (!c->launch.listed) return;
  c->launch.listed = false;
  const uint32_t n = atomic_load_explicit(&r->nactive, memory_order_relaxed) - 1;
  for (uint32_t i = 0; i <= n; i++) {
    if (r->active[i] != c) continue;
    r->active[i] = r->active[n];
    break;
  }
  atomic_store(&r->nactive, n);
}

void rt_launch_release(RtRank *r, Cmd *c) {
  pthread_mutex_lock(&r->lock);
  // whoever finds nothing left to take keeps others from looking
  if (atomic_load_explicit(&c->launch.next, memory_order_relaxed) >= c->launch.n) unlist(r, c);
  if (--c->launch.refs == 0 && c->launch.complete) recycle(r, c);
  pthread_mutex_unlock(&r->lock);
}

void rt_launch_done(Cmd *c) {
  RtStream *s = c->stream;
  RtRank *r = s->rank;
  if (c->begin_ns && rt_tracing(r))
    rt_trace(r, TRACE_LAUNCH, s->index, c->launch.grid, c->begin_ns, os_now_ns(), 0,
             c->launch.kernel->info->name);
  pthread_mutex_lock(&r->lock);
  unlist(r, c);
  c->launch.complete = true;
  s->running = NULL;
  if (c->launch.refs == 0) recycle(r, c);
  pthread_mutex_unlock(&r->lock);
  rt_advance(s);
}

// ---- commands that are done at once ------------------------------------------------------------------
static void signal_now(RtRank *r, const Cmd *c) {
  uint64_t v = c->signal.src ? __atomic_load_n(c->signal.src, __ATOMIC_ACQUIRE) : c->signal.value;
  if (c->signal.add)
    v = __atomic_add_fetch(c->signal.word, v, __ATOMIC_RELEASE);
  else
    __atomic_store_n(c->signal.word, v, __ATOMIC_RELEASE);
  char where[RT_LABEL] = "";
  snprintf(where, sizeof where, "stream '%.20s'", c->stream->label);
  rt_writer_note(r->team, c->signal.peer, c->signal.word, v, r->index, where);
  rt_kick(r->team, c->signal.peer);
  for (int i = 0; i < r->team->nlocal; i++) {
    if (r->team->ranks[i].index == c->signal.peer) rt_engine_kick(&r->team->ranks[i]);
  }
}

static void record_now(const Cmd *c) {
  RtEvent *ev = c->event.event;
  Cmd *released = NULL;
  pthread_mutex_lock(&ev->lock);
  if (c->event.ticket > ev->completed) {
    ev->time_ns = os_now_ns();
    for (Cmd **at = &ev->waiters; *at;) {
      Cmd *w = *at;
      if (w->event.ticket > c->event.ticket) {
        at = &w->next;
        continue;
      }
      *at = w->next;
      w->next = released;
      released = w;
    }
    atomic_store(&ev->completed, c->event.ticket);
  }
  pthread_mutex_unlock(&ev->lock);
  while (released) {
    Cmd *w = released;
    released = w->next;
    rt_cmd_finish(w);
  }
}

static bool join_event(Cmd *c) { // true: it has happened
  RtEvent *ev = c->event.event;
  pthread_mutex_lock(&ev->lock);
  const bool done = ev->completed >= c->event.ticket;
  if (!done) {
    c->next = ev->waiters;
    ev->waiters = c;
  }
  pthread_mutex_unlock(&ev->lock);
  return done;
}

// ---- the queue -----------------------------------------------------------------------------------------
// True: done already. False: whoever works on it will call rt_cmd_finish or rt_launch_done.
static bool begin(Cmd *c) {
  RtRank *r = c->stream->rank;
  if (rt_aborted(r->team) && c->kind != CMD_RECORD && c->kind != CMD_HOST) return true;
  switch (c->kind) {
  case CMD_LAUNCH: activate(r, c); return false;
  case CMD_SIGNAL: signal_now(r, c); return true;
  case CMD_RECORD: record_now(c); return true;
  case CMD_WAIT_EVENT: return join_event(c);
  case CMD_COPY:
    if (c->copy.width * c->copy.rows <= SMALL) return rt_engine_try(r, c, SMALL);
    break;
  case CMD_FILL:
    if (c->fill.bytes <= SMALL) return rt_engine_try(r, c, SMALL);
    break;
  case CMD_WAIT:
    if (rt_engine_try(r, c, 0)) return true;
    break;
  case CMD_HOST: break;
  }
  rt_engine_give(r, c);
  return false;
}

void rt_advance(RtStream *s) {
  RtRank *r = s->rank;
  for (;;) {
    pthread_mutex_lock(&r->lock);
    Cmd *c = s->head;
    if (!c) {
      atomic_store(&s->busy, 0); // the stream may be gone from here on
      pthread_mutex_unlock(&r->lock);
      atomic_fetch_add(&r->done_seq, 1);
      if (atomic_load(&r->syncing)) rt_futex_wake(&r->done_seq, UINT32_MAX);
      return;
    }
    s->head = c->next;
    if (!s->head) s->tail = NULL;
    s->running = c;
    pthread_mutex_unlock(&r->lock);
    if (!begin(c)) return;
    pthread_mutex_lock(&r->lock);
    s->running = NULL;
    recycle(r, c);
    pthread_mutex_unlock(&r->lock);
  }
}

void rt_cmd_finish(Cmd *c) {
  RtStream *s = c->stream;
  pthread_mutex_lock(&s->rank->lock);
  s->running = NULL;
  recycle(s->rank, c);
  pthread_mutex_unlock(&s->rank->lock);
  rt_advance(s);
}

void rt_cmd_enqueue(Cmd *c) {
  RtStream *s = c->stream;
  RtRank *r = s->rank;
  c->next = NULL;
  pthread_mutex_lock(&r->lock);
  if (s->tail)
    s->tail->next = c;
  else
    s->head = c;
  s->tail = c;
  const bool idle = !atomic_load_explicit(&s->busy, memory_order_relaxed);
  if (idle) atomic_store(&s->busy, 1);
  pthread_mutex_unlock(&r->lock);
  if (idle) rt_advance(s);
}

// ---- streams -------------------------------------------------------------------------------------------
static Status open_stream(RtRank *r, bool wrap, void *native, const char *label, RtStream **out, RtError *e) {
  RtStream *s = calloc(1, sizeof *s);
  if (!s) return rt_no_memory(e);
  s->rank = r;
  uint32_t i = 0;
  pthread_mutex_lock(&r->lock);
  while (i < RT_MAX_STREAMS && r->streams[i]) i++;
  if (i < RT_MAX_STREAMS) r->streams[i] = s;
  pthread_mutex_unlock(&r->lock);
  if (i == RT_MAX_STREAMS) {
    free(s);
    return rt_fail(e, ST_LIMIT, "rank %d has %d streams already, which is the most", r->index,
                   RT_MAX_STREAMS);
  }
  s->index = i;
  if (label)
    snprintf(s->label, sizeof s->label, "%s", label);
  else
    snprintf(s->label, sizeof s->label, "stream %u", i);
  memcpy(r->control->stream_label[i], s->label, RT_LABEL);
  const Status st = r->team->driver->stream_open(s, wrap, native, e);
  if (st == ST_OK) {
    *out = s;
    return ST_OK;
  }
  pthread_mutex_lock(&r->lock);
  r->streams[i] = NULL;
  pthread_mutex_unlock(&r->lock);
  free(s);
  return st;
}

Status rt_stream_create(RtRank *r, const char *label, RtStream **out, RtError *e) {
  return open_stream(r, false, NULL, label, out, e);
}

Status rt_stream_wrap(RtRank *r, void *native, const char *label, RtStream **out, RtError *e) {
  return open_stream(r, true, native, label, out, e);
}

void *rt_stream_native(const RtStream *s) { return s->rank->team->driver->stream_native(s); }

void rt_stream_destroy(RtStream *s) {
  if (!s) return;
  RtRank *r = s->rank;
  rt_stream_sync(s, NULL);
  pthread_mutex_lock(&r->lock);
  r->streams[s->index] = NULL;
  pthread_mutex_unlock(&r->lock);
  r->team->driver->stream_close(s);
  free(s);
}

RtRank *rt_stream_rank(const RtStream *s) { return s->rank; }
bool rt_stream_idle(const RtStream *s) { return s->rank->team->driver->stream_idle(s); }
Status rt_stream_sync(RtStream *s, RtError *e) { return s->rank->team->driver->stream_sync(s, e); }

// ---- streams of a CPU ------------------------------------------------------------------------------------
Status rt_cpu_stream_open(RtStream *s, bool wrap, void *native, RtError *e) {
  RtRank *r = s->rank;
  (void)native;
  if (wrap) return rt_fail(e, ST_UNSUPPORTED, "the processor has no streams but ours; create one");
  s->inline_fiber.rank = r;
  pthread_mutex_lock(&r->lock);
  const bool memory = r->free_cmds || grow(r);
  pthread_mutex_unlock(&r->lock);
  return memory ? ST_OK : rt_no_memory(e);
}

void rt_cpu_stream_close(RtStream *s) {
  atomic_fetch_sub(&s->rank->budget_used, s->inline_fiber.arena_bytes);
  free(s->inline_fiber.arena);
}

bool rt_cpu_stream_idle(const RtStream *s) { return !atomic_load(&s->busy); }

Status rt_cpu_stream_sync(RtStream *s, RtError *e) {
  enum { POLLS = 256, YIELDS = 288 };
  RtRank *r = s->rank;
  for (uint32_t turn = 0; atomic_load_explicit(&s->busy, memory_order_acquire); turn++) {
    if (turn < POLLS && turn % 64 == 0 && rt_run_inline(s)) continue;
    if (turn < POLLS) {
      rt_relax();
    } else if (turn < YIELDS) {
      sched_yield();
    } else {
      const uint32_t seen = atomic_load(&r->done_seq);
      atomic_fetch_add(&r->syncing, 1);
      if (atomic_load(&s->busy)) rt_futex_wait(&r->done_seq, seen, 0);
      atomic_fetch_sub(&r->syncing, 1);
    }
  }
  if (e && rt_aborted(r->team)) rt_await_reports(r->team);
  return rt_team_failure(r->team, e);
}

// ---- events --------------------------------------------------------------------------------------------
Status rt_event_create(RtRank *r, RtEvent **out, RtError *e) {
  RtEvent *ev = calloc(1, sizeof *ev);
  if (!ev) return rt_no_memory(e);
  pthread_mutex_init(&ev->lock, NULL);
  ev->rank = r;
  const Status s = r->team->driver->event_open ? r->team->driver->event_open(ev, e) : ST_OK;
  if (s == ST_OK) {
    *out = ev;
    return ST_OK;
  }
  pthread_mutex_destroy(&ev->lock);
  free(ev);
  return s;
}

void rt_event_destroy(RtEvent *ev) {
  if (!ev) return;
  ev->rank->team->driver->event_close(ev);
  pthread_mutex_destroy(&ev->lock);
  free(ev);
}

Status rt_event_record(RtEvent *ev, RtStream *s, RtError *e) {
  return ev->rank->team->driver->event_record(ev, s, e);
}

Status rt_stream_wait_event(RtStream *s, RtEvent *ev, RtError *e) {
  return ev->rank->team->driver->stream_wait_event(s, ev, e);
}

Status rt_event_sync(RtEvent *ev, RtError *e) { return ev->rank->team->driver->event_sync(ev, e); }

Status rt_event_elapsed(const RtEvent *from, const RtEvent *to, double *ms, RtError *e) {
  return from->rank->team->driver->event_elapsed(from, to, ms, e);
}

// ---- events of a CPU -------------------------------------------------------------------------------------
void rt_cpu_event_close(RtEvent *ev) {
  rt_cpu_event_sync(ev, NULL);
  pthread_mutex_lock(&ev->lock); // whoever completed it may be about to unlock
  pthread_mutex_unlock(&ev->lock);
}

Status rt_cpu_event_record(RtEvent *ev, RtStream *s, RtError *e) {
  Cmd *c = rt_cmd_new(s, CMD_RECORD, e);
  if (!c) return ST_NO_MEMORY;
  c->event.event = ev;
  pthread_mutex_lock(&ev->lock);
  c->event.ticket = ++ev->recorded;
  pthread_mutex_unlock(&ev->lock);
  rt_cmd_enqueue(c);
  return ST_OK;
}

Status rt_cpu_stream_wait_event(RtStream *s, RtEvent *ev, RtError *e) {
  pthread_mutex_lock(&ev->lock);
  const uint64_t ticket = ev->recorded;
  pthread_mutex_unlock(&ev->lock);
  if (ev->completed >= ticket) return ST_OK;
  Cmd *c = rt_cmd_new(s, CMD_WAIT_EVENT, e);
  if (!c) return ST_NO_MEMORY;
  c->event.event = ev;
  c->event.ticket = ticket;
  rt_cmd_enqueue(c);
  return ST_OK;
}

Status rt_cpu_event_sync(RtEvent *ev, RtError *e) {
  pthread_mutex_lock(&ev->lock);
  const uint64_t ticket = ev->recorded;
  pthread_mutex_unlock(&ev->lock);
  for (uint32_t turn = 0; atomic_load(&ev->completed) < ticket;) rt_backoff(&turn, 200000);
  return rt_team_failure(ev->rank->team, e);
}

Status rt_cpu_event_elapsed(const RtEvent *from, const RtEvent *to, double *ms, RtError *e) {
  RtEvent *ev[2] = {(RtEvent *)(uintptr_t)from, (RtEvent *)(uintptr_t)to};
  uint64_t time[2];
  for (int i = 0; i < 2; i++) {
    pthread_mutex_lock(&ev[i]->lock);
    const bool none = !ev[i]->recorded, done = ev[i]->completed == ev[i]->recorded;
    time[i] = ev[i]->time_ns;
    pthread_mutex_unlock(&ev[i]->lock);
    if (none) return rt_fail(e, ST_INVALID, "the %s event was never recorded", i ? "second" : "first");
    if (!done) return rt_fail(e, ST_BUSY, "the %s event has not happened yet", i ? "second" : "first");
  }
  *ms = ((double)time[1] - (double)time[0]) * 1e-6;
  return ST_OK;
}
