// engine: the copy engine of a CPU rank, a thread that works on copies, fills, waits and host calls of all streams in turn.
//
// Large copies go in pieces, so that streams share it and waits stay responsive. While only waits are left it polls, then
// sleeps in growing steps.
#include "rt/rt_impl.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 1 << 20 };

// ---- steps ---------------------------------------------------------------------------------------------
static bool copy_step(RtRank *r, Cmd *c, uint64_t most) {
  if (!c->begin_ns && rt_tracing(r)) c->begin_ns = os_now_ns();
  while (most && c->copy.row < c->copy.rows) {
    const uint64_t left = c->copy.width - c->copy.at, n = left < most ? left : most;
    memcpy(c->copy.dst + c->copy.row * c->copy.dst_pitch + c->copy.at,
           c->copy.src + c->copy.row * c->copy.src_pitch + c->copy.at, n);
    most -= n;
    c->copy.at += n;
    if (c->copy.at < c->copy.width) continue;
    c->copy.at = 0;
    c->copy.row++;
  }
  if (c->copy.row < c->copy.rows) return false;
  if (c->begin_ns)
    rt_trace(r, TRACE_COPY, c->stream->index, NULL, c->begin_ns, os_now_ns(), c->copy.width * c->copy.rows,
             "copy");
  return true;
}

static bool fill_step(RtRank *r, Cmd *c, uint64_t most) {
  if (!c->begin_ns && rt_tracing(r)) c->begin_ns = os_now_ns();
  const uint64_t left = c->fill.bytes - c->fill.at, n = left < most ? left : most;
  memset(c->fill.dst + c->fill.at, c->fill.byte, n);
  c->fill.at += n;
  if (c->fill.at < c->fill.bytes) return false;
  if (c->begin_ns)
    rt_trace(r, TRACE_COPY, c->stream->index, NULL, c->begin_ns, os_now_ns(), c->fill.bytes, "fill");
  return true;
}

static void fault_hold(RtRank *r, const Cmd *c, uint64_t seen, uint64_t wanted) {
  RtText t;
  if (rt_report_begin(r, ST_DEADLINE, &t)) {
    rt_say(&t, "stream '%s' waited longer than its deadline of %.3g s: ", c->stream->label,
           (double)r->abi.deadline_ns * 1e-9);
    rt_describe_word(&t, r, c->wait.word);
    rt_say(&t, " should be >= %llu, but is %llu", (unsigned long long)wanted, (unsigned long long)seen);
    rt_writer_say(&t, r, c->wait.word);
    rt_report_end(r);
  }
  rt_raise(r->team, ST_DEADLINE, r->index);
}

static bool wait_step(RtRank *r, Cmd *c) {
  if (!c->wait.since) c->wait.since = os_now_ns();
  const uint64_t bound = c->wait.bound ? __atomic_load_n(c->wait.bound, __ATOMIC_ACQUIRE) : 0;
  const uint64_t wanted = bound + c->wait.value, seen = __atomic_load_n(c->wait.word, __ATOMIC_ACQUIRE);
  if (seen >= wanted) {
    if (rt_tracing(r)) rt_trace(r, TRACE_HOLD, c->stream->index, NULL, c->wait.since, os_now_ns(), 0, "hold");
    return true;
  }
  if (rt_aborted(r->team)) return true;
  if (os_now_ns() - c->wait.since <= r->abi.deadline_ns) return false;
  fault_hold(r, c, seen, wanted);
  return true;
}

bool rt_engine_try(RtRank *r, Cmd *c, uint64_t most) {
  switch (c->kind) {
  case CMD_COPY: return copy_step(r, c, most);
  case CMD_FILL: return fill_step(r, c, most);
  case CMD_WAIT: return wait_step(r, c);
  default: c->host.fn(c->host.user); return true;
  }
}

// ---- the thread ------------------------------------------------------------------------------------------
void rt_engine_kick(RtRank *r) {
  atomic_fetch_add(&r->engine.seq, 1);
  if (atomic_load(&r->engine.asleep)) rt_futex_wake(&r->engine.seq, 1);
}

void rt_engine_give(RtRank *r, Cmd *c) {
  Engine *g = &r->engine;
  c->next = NULL;
  pthread_mutex_lock(&g->lock);
  if (g->tail)
    g->tail->next = c;
  else
    g->head = c;
  g->tail = c;
  pthread_mutex_unlock(&g->lock);
  rt_engine_kick(r);
}

static void take_jobs(Engine *g) {
  pthread_mutex_lock(&g->lock);
  Cmd *more = g->head;
  g->head = g->tail = NULL;
  pthread_mutex_unlock(&g->lock);
  Cmd **end = &g->jobs;
  while (*end) end = &(*end)->next;
  *end = more;
}

// One step of every job. True: something moved.
static bool turn_over(RtRank *r) {
  bool moved = false;
  for (Cmd **at = &r->engine.jobs; *at;) {
    Cmd *c = *at;
    const bool done = rt_engine_try(r, c, PIECE);
    moved |= done || c->kind != CMD_WAIT;
    if (!done) {
      at = &c->next;
      continue;
    }
    *at = c->next;
    rt_cmd_finish(c);
  }
  return moved;
}

static void engine_idle(RtRank *r, uint32_t turn, uint32_t seen) {
  enum { POLLS = 64, YIELDS = 128 };
  Engine *g = &r->engine;
  if (turn < POLLS) {
    for (int i = 0; i < 8; i++) rt_relax();
  } else if (turn < YIELDS) {
    sched_yield();
  } else {
    const uint32_t step = turn - YIELDS < 5 ? turn - YIELDS : 5;
    atomic_store(&g->asleep, 1);
    rt_futex_wait(&g->seq, seen, g->jobs ? 4000ull << step : 0);
    atomic_store(&g->asleep, 0);
  }
}

static void *engine_main(void *arg) {
  RtRank *r = arg;
  Engine *g = &r->engine;
  for (uint32_t turn = 0;;) {
    const uint32_t seen = atomic_load(&g->seq);
    take_jobs(g);
    if (!g->jobs && atomic_load(&r->quit)) return NULL;
    if (turn_over(r))
      turn = 0;
    else
      engine_idle(r, turn++, seen);
  }
}

Status rt_engine_start(RtRank *r, RtError *e) {
  char name[32];
  snprintf(name, sizeof name, "rank%d/copy", r->index);
  pthread_mutex_init(&r->engine.lock, NULL);
  const Status s = rt_thread_start(&r->engine.thread, engine_main, r, name, e);
  r->engine.started = s == ST_OK;
  return s;
}

void rt_engine_stop(RtRank *r) {
  if (!r->engine.started) return;
  atomic_store(&r->quit, 1);
  rt_engine_kick(r);
  pthread_join(r->engine.thread, NULL);
  pthread_mutex_destroy(&r->engine.lock);
}

// ---- what the host enqueues -----------------------------------------------------------------------------
static Status enqueue(Cmd *c) {
  rt_cmd_enqueue(c);
  return ST_OK;
}

Status rt_copy_2d(RtStream *s, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                  uint64_t width, uint64_t rows, RtError *e) {
  uint64_t bytes, span;
  if (__builtin_mul_overflow(width, rows, &bytes) || __builtin_mul_overflow(dst_pitch, rows, &span) ||
      __builtin_mul_overflow(src_pitch, rows, &span))
    return rt_fail(e, ST_INVALID, "a copy of %llu rows of %llu bytes is larger than memory",
                   (unsigned long long)rows, (unsigned long long)width);
  if (rows > 1 && (dst_pitch < width || src_pitch < width))
    return rt_fail(e, ST_INVALID, "rows of %llu bytes do not fit pitches of %llu and %llu bytes",
                   (unsigned long long)width, (unsigned long long)dst_pitch, (unsigned long long)src_pitch);
  if (!bytes) return ST_OK;
  if (!dst || !src) return rt_fail(e, ST_INVALID, "a copy from or to NULL");
  if (dst_pitch == width && src_pitch == width) {
    width = dst_pitch = src_pitch = bytes;
    rows = 1;
  }
  return s->rank->team->driver->copy(s, dst, dst_pitch, src, src_pitch, width, rows, e);
}

Status rt_cpu_copy(RtStream *s, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                   uint64_t width, uint64_t rows, RtError *e) {
  Cmd *c = rt_cmd_new(s, CMD_COPY, e);
  if (!c) return ST_NO_MEMORY;
  c->copy.dst = dst;
  c->copy.src = src;
  c->copy.dst_pitch = dst_pitch;
  c->copy.src_pitch = src_pitch;
  c->copy.width = width;
  c->copy.rows = rows;
  return enqueue(c);
}

Status rt_copy(RtStream *s, void *dst, const void *src, uint64_t bytes, RtError *e) {
  return rt_copy_2d(s, dst, bytes, src, bytes, bytes, 1, e);
}

Status rt_fill(RtStream *s, void *dst, int byte, uint64_t bytes, RtError *e) {
  if (!bytes) return ST_OK;
  if (!dst) return rt_fail(e, ST_INVALID, "a fill of NULL");
  return s->rank->team->driver->fill(s, dst, byte, bytes, e);
}

Status rt_cpu_fill(RtStream *s, void *dst, int byte, uint64_t bytes, RtError *e) {
  Cmd *c = rt_cmd_new(s, CMD_FILL, e);
  if (!c) return ST_NO_MEMORY;
  c->fill.dst = dst;
  c->fill.byte = byte;
  c->fill.bytes = bytes;
  return enqueue(c);
}

Status rt_host_call(RtStream *s, void (*fn)(void *user), void *user, RtError *e) {
  return s->rank->team->driver->host_call(s, fn, user, e);
}

Status rt_cpu_host_call(RtStream *s, void (*fn)(void *user), void *user, RtError *e) {
  Cmd *c = rt_cmd_new(s, CMD_HOST, e);
  if (!c) return ST_NO_MEMORY;
  c->host.fn = fn;
  c->host.user = user;
  return enqueue(c);
}

static Status signal(RtStream *s, uint64_t *word, const uint64_t *src, uint64_t value, bool add, int peer,
                     RtError *e) {
  void *there;
  if ((uintptr_t)word % 8) return rt_fail(e, ST_INVALID, "signal words are aligned to 8 bytes");
  const Status st = rt_symm_peer(s->rank, word, peer, &there, e);
  if (st != ST_OK) return st;
  return s->rank->team->driver->signal(s, word, there, src, value, add, peer, e);
}

Status rt_cpu_signal(RtStream *s, uint64_t *word, uint64_t *there, const uint64_t *src, uint64_t value,
                     bool add, int peer, RtError *e) {
  Cmd *c = rt_cmd_new(s, CMD_SIGNAL, e);
  if (!c) return ST_NO_MEMORY;
  c->signal.word = there;
  c->signal.own = word;
  c->signal.src = src;
  c->signal.value = value;
  c->signal.add = add;
  c->signal.peer = peer;
  return enqueue(c);
}

Status rt_signal_set(RtStream *s, uint64_t *word, uint64_t value, int peer, RtError *e) {
  return signal(s, word, NULL, value, false, peer, e);
}

Status rt_signal_add(RtStream *s, uint64_t *word, uint64_t value, int peer, RtError *e) {
  return signal(s, word, NULL, value, true, peer, e);
}

Status rt_signal_copy(RtStream *s, uint64_t *word, const uint64_t *src, int peer, RtError *e) {
  if (!src) return rt_fail(e, ST_INVALID, "a signal copied from NULL");
  return signal(s, word, src, 0, false, peer, e);
}

static Status wait(RtStream *s, const uint64_t *word, const uint64_t *bound, uint64_t value, RtError *e) {
  if (!word || (uintptr_t)word % 8) return rt_fail(e, ST_INVALID, "signal words are aligned to 8 bytes");
  return s->rank->team->driver->wait(s, word, bound, value, e);
}

Status rt_cpu_wait(RtStream *s, const uint64_t *word, const uint64_t *bound, uint64_t value, RtError *e) {
  Cmd *c = rt_cmd_new(s, CMD_WAIT, e);
  if (!c) return ST_NO_MEMORY;
  c->wait.word = word;
  c->wait.bound = bound;
  c->wait.value = value;
  return enqueue(c);
}

Status rt_signal_wait(RtStream *s, const uint64_t *word, uint64_t at_least, RtError *e) {
  return wait(s, word, NULL, at_least, e);
}

Status rt_signal_wait_word(RtStream *s, const uint64_t *word, const uint64_t *at_least, int64_t plus,
                           RtError *e) {
  if (!at_least) return rt_fail(e, ST_INVALID, "a wait for the value at NULL");
  return wait(s, word, at_least, (uint64_t)plus, e);
}
