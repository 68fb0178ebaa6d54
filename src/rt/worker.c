// worker: the threads of a CPU rank, and how instances of launches share them.
//
// A worker runs one loop, on a fiber. Instances run on top of that same stack, so one that never blocks costs no switch.
// When one blocks, it stays where it is, and the loop goes on at the bottom of another fiber:
//
//     fiber A: loop > instance 7 > wait     fiber B: loop > instance 8 > wait     fiber C: loop, polling for A and B
//
// The loop prefers what can go on (polled each turn), then starts new instances, and only then idles: polling, then
// yielding the core, then asleep until a launch, a signal or, while something waits, a few microseconds have come.
// Fibers never change their worker, so a list of waiting fibers needs no lock. After an abort, what waits is resumed
// once, to unwind to its loop, and what has not begun is skipped.
#include "rt/rt_impl.h"

#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

// ---- lists -----------------------------------------------------------------------------------------
static void push(FiberList *l, Fiber *f) {
  f->next = NULL;
  if (l->tail)
    l->tail->next = f;
  else
    l->head = f;
  l->tail = f;
}

static Fiber *pop(FiberList *l) {
  Fiber *f = l->head;
  if (!f) return NULL;
  l->head = f->next;
  if (!l->head) l->tail = NULL;
  return f;
}

// ---- budget and pool -------------------------------------------------------------------------------
static bool budget_take(RtRank *r, uint64_t bytes) {
  const uint64_t budget = r->team->context->config.budget_bytes;
  const uint64_t before = atomic_fetch_add(&r->budget_used, bytes);
  if (bytes <= budget && before <= budget - bytes) return true;
  atomic_fetch_sub(&r->budget_used, bytes);
  return false;
}

static void drop_arena(RtRank *r, Fiber *f) {
  atomic_fetch_sub(&r->budget_used, f->arena_bytes);
  free(f->arena);
  f->arena = NULL;
  f->arena_bytes = 0;
}

static void loop_main(Fiber *f);

static bool pool_add(Worker *w) {
  if (!budget_take(w->rank, rt_fiber_stack_bytes())) return false;
  if (w->nfibers == w->cap) {
    const uint32_t cap = w->cap ? w->cap * 2 : 16;
    Fiber **all = realloc(w->all, cap * sizeof *all);
    if (all) w->all = all;
    Fiber **waiting = all ? realloc(w->waiting, cap * sizeof *waiting) : NULL;
    if (waiting) w->waiting = waiting;
    if (!waiting) goto failed;
    w->cap = cap;
  }
  Fiber *f = rt_fiber_new(w->rank, loop_main, w);
  if (!f) goto failed;
  w->all[w->nfibers++] = f;
  push(&w->pool, f);
  return true;
failed:
  atomic_fetch_sub(&w->rank->budget_used, rt_fiber_stack_bytes());
  return false;
}

static void fault_budget(Fiber *f, const Cmd *c) {
  RtRank *r = f->rank;
  const Worker *w = f->worker;
  rt_fault(
      r, ST_LIMIT,
      "kernel '%s': %u of its instances and warps are live on one worker, each with %llu bytes of stack and %llu of "
      "arena; the rank has %.1f MiB in use and its budget is %.1f MiB",
      c->launch.kernel->info->name, w ? w->live : 1, (unsigned long long)rt_fiber_stack_bytes(),
      (unsigned long long)c->launch.variant->arena_bytes, (double)atomic_load(&r->budget_used) / (1 << 20),
      (double)r->team->context->config.budget_bytes / (1 << 20));
}

void rt_reserve(Fiber *f, uint32_t n) {
  Worker *w = f->worker;
  uint32_t spare = 0;
  for (const Fiber *p = w->pool.head; p && spare < n; p = p->next) spare++;
  for (; spare < n; spare++) {
    if (pool_add(w)) continue;
    fault_budget(f, f->launch);
    rt_escape(f);
  }
}

Fiber *rt_pool_take(Worker *w) { return pop(&w->pool); }

// An arena for the instance that f is about to run; those of idle fibers make room where the budget is tight.
static bool prepare_arena(Fiber *f, const Cmd *c) {
  const uint64_t bytes = bits_round_up(c->launch.variant->arena_bytes, 4096);
  if (f->arena_bytes >= bytes) return true;
  drop_arena(f->rank, f);
  bool ok = budget_take(f->rank, bytes);
  if (!ok && f->worker) {
    for (Fiber *p = f->worker->pool.head; p; p = p->next) drop_arena(f->rank, p);
    ok = budget_take(f->rank, bytes);
  }
  if (ok && rt_fiber_arena(f, bytes)) return true;
  if (ok) atomic_fetch_sub(&f->rank->budget_used, bytes);
  fault_budget(f, c);
  return false;
}

// ---- instances -------------------------------------------------------------------------------------
void rt_escape(Fiber *f) { longjmp(f->escape, 1); }

static void set_pid(AbiInstance *i, uint64_t at) {
  i->pid[0] = (uint32_t)(at % i->grid[0]);
  i->pid[1] = (uint32_t)(at / i->grid[0] % i->grid[1]);
  i->pid[2] = (uint32_t)(at / i->grid[0] / i->grid[1]);
}

// Runs f->count instances from `first`, or fewer where one escapes or the team gives up.
static __attribute__((noinline)) void run_instances(Fiber *f, const Cmd *c, uint64_t first) {
  if (_setjmp(f->escape)) return;
  for (uint64_t k = 0; k < f->count; k++) {
    if (rt_aborted(f->rank->team)) return;
    set_pid(&f->inst, first + k);
    c->launch.entry(c->launch.args, &f->inst);
  }
}

static void finish_instances(Cmd *c, uint64_t count) {
  const uint64_t n = c->launch.n;
  if (atomic_fetch_add_explicit(&c->launch.done, count, memory_order_acq_rel) + count == n) rt_launch_done(c);
}

// Instances taken at a time: fewer towards the end, so that workers finish together, and one where they may wait.
static uint64_t take_chunk(const RtRank *r, Cmd *c, uint64_t *first) {
  const uint64_t n = c->launch.n;
  uint64_t at = atomic_load_explicit(&c->launch.next, memory_order_relaxed), count;
  do {
    if (at >= n) return 0;
    const uint64_t share = (n - at) / (8ull * r->nworkers);
    count = share < 1 ? 1 : share < c->launch.chunk ? share : c->launch.chunk;
  } while (!atomic_compare_exchange_weak_explicit(&c->launch.next, &at, at + count, memory_order_relaxed,
                                                  memory_order_relaxed));
  *first = at;
  return count;
}

// Takes a chunk of instances and runs it. False: none are left to take.
static bool run_chunk(Fiber *f, Cmd *c) {
  RtRank *r = f->rank;
  const uint64_t n = c->launch.n;
  uint64_t first, count = take_chunk(r, c, &first);
  if (!count) return false;
  if (first == 0 && rt_tracing(r)) c->begin_ns = os_now_ns();
  if (rt_aborted(r->team) || !prepare_arena(f, c)) { // skip all that nobody has taken
    const uint64_t old = atomic_exchange_explicit(&c->launch.next, n, memory_order_relaxed);
    if (old < n) count += n - old;
    finish_instances(c, count);
    return true;
  }
  f->launch = c;
  f->count = count;
  f->inst = (AbiInstance){.arena = f->arena,
                          .rank = &r->abi,
                          .worker = f->worker ? f->worker->index : r->nworkers,
                          .kernel = c->launch.kernel,
                          .fiber = f};
  memcpy(f->inst.grid, c->launch.grid, sizeof f->inst.grid);
  if (f->worker) f->worker->live++;
  run_instances(f, c, first);
  if (f->worker) f->worker->live--;
  f->launch = NULL;
  finish_instances(c, count);
  return true;
}

// Only what is listed: before that, whoever moves the stream on has yet to hand it out.
bool rt_run_inline(RtStream *s) {
  RtRank *r = s->rank;
  pthread_mutex_lock(&r->lock);
  Cmd *c = s->running;
  const bool may =
      c && c->kind == CMD_LAUNCH && c->launch.listed && c->launch.n == 1 && !c->launch.variant->has_waits;
  if (may) c->launch.refs++;
  pthread_mutex_unlock(&r->lock);
  if (!may) return false;
  const bool ran = run_chunk(&s->inline_fiber, c);
  rt_launch_release(r, c);
  return ran;
}

// ---- waiting ---------------------------------------------------------------------------------------
#define COMPARE(T, U) \
  static bool compare_##T(const T *p, uint32_t n, uint64_t value, AbiCmp cmp) { \
    const T v = (T)(U)value; \
    for (uint32_t i = 0; i < n; i++) { \
      const T x = __atomic_load_n(p + i, __ATOMIC_ACQUIRE); \
      const bool ok = cmp == ABI_EQ   ? x == v \
                      : cmp == ABI_NE ? x != v \
                      : cmp == ABI_GT ? x > v \
                      : cmp == ABI_GE ? x >= v \
                      : cmp == ABI_LT ? x < v \
                                      : x <= v; \
      if (!ok) return false; \
    } \
    return true; \
  }
COMPARE(int32_t, uint32_t)
COMPARE(int64_t, uint64_t)

bool rt_wait_holds(const WaitFor *w) {
  if (w->meets) {
    const char *at = (const char *)w->meets;
    for (uint32_t i = 0; i < w->n; i++, at += sizeof(ControlRank)) {
      if (atomic_load_explicit((const _Atomic uint64_t *)at, memory_order_acquire) < w->value) return false;
    }
    return true;
  }
  return w->bytes == 4 ? compare_int32_t(w->flag, w->n, w->value, w->cmp)
                       : compare_int64_t(w->flag, w->n, w->value, w->cmp);
}

void rt_make_ready(Fiber *f) { push(&f->worker->ready, f); }

void rt_block(Fiber *f) {
  Worker *w = f->worker;
  Fiber *next = pop(&w->ready);
  if (!next) next = pop(&w->pool); // rt_reserve has seen to it
  rt_fiber_switch(f, next);
}

// The host's thread has no other fiber to go on with.
static void wait_in_place(Fiber *f, const WaitFor *wait) {
  f->wait = *wait;
  f->wait.since = os_now_ns();
  Worker alone = {.rank = f->rank};
  for (uint32_t turn = 0; !rt_wait_holds(wait); rt_backoff(&turn, 100000)) {
    if (!rt_aborted(f->rank->team) && os_now_ns() - f->wait.since > f->rank->abi.deadline_ns)
      rt_fault_wait(&alone, f);
    if (rt_aborted(f->rank->team)) rt_escape(f);
  }
}

// What an instance waits for may come from another launch.
static void let_others(Worker *w) {
  if (!w->cmd || atomic_load_explicit(&w->rank->nactive, memory_order_relaxed) < 2) return;
  rt_launch_release(w->rank, w->cmd);
  w->cmd = NULL;
}

void rt_fiber_wait(Fiber *f, const WaitFor *wait) {
  Worker *w = f->worker;
  if (rt_wait_holds(wait)) return;
  if (!w) {
    wait_in_place(f, wait);
    return;
  }
  rt_reserve(f, 1);
  f->wait = *wait;
  f->wait.since = os_now_ns();
  w->waiting[w->nwaiting++] = f;
  w->idle = 0;
  let_others(w);
  rt_block(f);
  if (f->wait.until) {
    const RtKernel *k = f->launch->launch.kernel;
    const bool known = wait->site < k->image->nsites;
    rt_trace(f->rank, TRACE_WAIT, f->launch->stream->index, f->inst.pid, f->wait.since, f->wait.until, 0,
             known ? k->site_labels[wait->site] : "wait");
  }
  if (f->dropped) {
    f->dropped = false;
    rt_escape(f);
  }
}

static void poll_waiting(Worker *w) {
  const bool aborted = rt_aborted(w->rank->team);
  if (aborted) rt_report_waits(w);
  const uint64_t now = (w->polls++ & 15) == 0 ? os_now_ns() : 0;
  for (uint32_t i = 0; i < w->nwaiting;) {
    Fiber *f = w->waiting[i];
    if (!aborted && !rt_wait_holds(&f->wait)) {
      if (now > f->wait.since && now - f->wait.since > w->rank->abi.deadline_ns) {
        rt_fault_wait(w, f);
        return; // the next turn drops them all
      }
      i++;
      continue;
    }
    f->dropped = aborted;
    f->wait.until = rt_tracing(w->rank) ? os_now_ns() : 0;
    w->waiting[i] = w->waiting[--w->nwaiting];
    push(&w->ready, f);
  }
}

// ---- warps: bodies of one instance at the same time ---------------------------------------------------
static void release_barrier(WarpGroup *g) {
  g->arrived = 0;
  while (g->parked) {
    Fiber *f = g->parked;
    g->parked = f->next;
    rt_make_ready(f);
  }
}

static __attribute__((noinline)) void run_body(Fiber *f) {
  if (_setjmp(f->escape)) return;
  if (!rt_aborted(f->rank->team)) f->body(&f->inst, f->body_ctx, f->inst.warp);
}

static void run_warp(Fiber *f) {
  run_body(f);
  WarpGroup *g = f->group;
  f->body = NULL;
  f->group = NULL;
  f->launch = NULL;
  f->worker->live--;
  if (--g->left == 0)
    rt_make_ready(g->parent);
  else if (g->arrived == g->left)
    release_barrier(g); // a warp that ended counts as come
}

void rt_call_warps(AbiInstance *i, uint32_t n, void (*body)(AbiInstance *, void *, uint32_t), void *ctx) {
  Fiber *f = i->fiber;
  Worker *w = f->worker;
  if (n == 1 || !w) { // the host's thread runs only kernels that never wait
    const uint32_t before = i->warp;
    for (uint32_t k = 0; k < n; k++) {
      i->warp = k;
      body(i, ctx, k);
    }
    i->warp = before;
    return;
  }
  rt_reserve(f, n + 1);
  WarpGroup g = {.parent = f, .n = n, .left = n};
  for (uint32_t k = 0; k < n; k++) {
    Fiber *warp = pop(&w->pool);
    warp->inst = *i;
    warp->inst.warp = k;
    warp->inst.fiber = warp;
    warp->launch = f->launch;
    warp->group = &g;
    warp->body = body;
    warp->body_ctx = ctx;
    w->live++;
    push(&w->ready, warp);
  }
  rt_block(f);
  if (rt_aborted(f->rank->team)) rt_escape(f);
}

void rt_call_block_barrier(AbiInstance *i, uint32_t warps, AbiSite site) {
  Fiber *f = i->fiber;
  WarpGroup *g = f->group;
  (void)warps;
  if (!g || g->n == 1) return;
  if (++g->arrived == g->left) {
    release_barrier(g);
    return;
  }
  f->wait = (WaitFor){.site = site};
  rt_reserve(f, 1);
  f->next = g->parked;
  g->parked = f;
  rt_block(f);
  if (rt_aborted(f->rank->team)) rt_escape(f);
}

void rt_call_yield(AbiInstance *i, AbiSite site, uint32_t turn) {
  Fiber *f = i->fiber;
  const uint64_t now = os_now_ns(), longest = f->rank->abi.deadline_ns;
  if (turn == 0) f->polls_since = now;
  if (now - f->polls_since > longest && !rt_aborted(f->rank->team))
    rt_fault_instance(f, ST_DEADLINE, site, "a polling loop went on for longer than the deadline of %.3g s",
                      (double)longest * 1e-9);
  if (rt_aborted(f->rank->team)) rt_escape(f);
  if (!f->worker) {
    sched_yield();
    return;
  }
  Worker *w = f->worker;
  rt_reserve(f, 1);
  let_others(w);
  w->fresh = true; // what it polls for may come from one that has not begun
  if ((++w->yields & 31) == 0) sched_yield();
  Fiber *next = pop(&w->pool); // its loop polls, and comes back through the ready list
  push(&w->ready, f);
  rt_fiber_switch(f, next);
}

// ---- the loop ----------------------------------------------------------------------------------------
// Lock-free look, then a turn under the lock: launches share the workers by turns.
static Cmd *take_launch(Worker *w) {
  RtRank *r = w->rank;
  if (!atomic_load_explicit(&r->nactive, memory_order_acquire)) return NULL;
  Cmd *c = NULL;
  pthread_mutex_lock(&r->lock);
  const uint32_t n = atomic_load_explicit(&r->nactive, memory_order_relaxed);
  if (n) {
    c = r->active[w->turn++ % n];
    c->launch.refs++;
  }
  pthread_mutex_unlock(&r->lock);
  return c;
}

static void idle(Worker *w) {
  enum { POLLS = 128, YIELDS = 192 };
  ControlRank *c = w->rank->control;
  if (w->idle++ < POLLS) {
    for (int i = 0; i < 8; i++) rt_relax();
    return;
  }
  if (w->idle < YIELDS) {
    sched_yield();
    return;
  }
  // The order matters: whoever brings work looks for sleepers after it has brought it.
  const uint32_t seen = atomic_load(&c->work_seq);
  atomic_fetch_add(&c->sleepers, 1);
  poll_waiting(w);
  if (!w->ready.head && !atomic_load(&w->rank->nactive) && !atomic_load(&w->rank->quit)) {
    const uint32_t step = w->idle - YIELDS < 5 ? w->idle - YIELDS : 5;
    rt_futex_wait(&c->work_seq, seen, w->nwaiting ? 4000ull << step : 0);
  }
  atomic_fetch_sub(&c->sleepers, 1);
  if (!w->nwaiting) w->idle = 0;
}

// Runs some instances of a launch on f, if there are any to begin.
static bool begin_some(Worker *w, Fiber *f) {
  if (!w->cmd) w->cmd = take_launch(w);
  Cmd *c = w->cmd;
  if (!c) return false;
  w->idle = 0;
  if (!run_chunk(f, c) && w->cmd == c) {
    rt_launch_release(w->rank, c);
    w->cmd = NULL;
  }
  return true;
}

static void loop_main(Fiber *f) {
  Worker *w = f->worker;
  rt_fiber_entered(f);
  for (;;) {
    if (f->body) {
      run_warp(f);
      w->idle = 0;
    }
    if (w->nwaiting) poll_waiting(w);
    const bool fresh = w->fresh;
    w->fresh = false;
    if (fresh && begin_some(w, f)) continue;
    Fiber *next = pop(&w->ready);
    if (next) {
      w->idle = 0;
      push(&w->pool, f);
      rt_fiber_switch(f, next);
      continue;
    }
    if (begin_some(w, f)) continue;
    if (atomic_load_explicit(&w->rank->quit, memory_order_acquire) && !w->live) rt_fiber_switch(f, &w->root);
    idle(w);
  }
}

static void *worker_main(void *arg) {
  Worker *w = arg;
  prctl(PR_SET_TIMERSLACK, 2000ul, 0, 0, 0); // short sleeps are meant to be short
  rt_fiber_adopt(&w->root);
  rt_fiber_switch(&w->root, pop(&w->pool));
  return NULL;
}

void rt_wake_workers(RtTeam *t, int rank, uint32_t n) {
  ControlRank *c = rt_control_rank(t, rank);
  atomic_fetch_add(&c->work_seq, 1);
  if (atomic_load(&c->sleepers)) rt_futex_wake(&c->work_seq, n);
}

void rt_kick(RtTeam *t, int rank) {
  ControlRank *c = rt_control_rank(t, rank);
  atomic_thread_fence(memory_order_seq_cst);
  if (!atomic_load(&c->sleepers)) return;
  atomic_fetch_add(&c->work_seq, 1);
  rt_futex_wake(&c->work_seq, UINT32_MAX);
}

Status rt_workers_start(RtRank *r, uint32_t n, RtError *e) {
  r->workers = calloc(n, sizeof *r->workers);
  if (!r->workers) return rt_no_memory(e);
  r->nworkers = n;
  for (uint32_t i = 0; i < n; i++) {
    Worker *w = &r->workers[i];
    w->rank = r;
    w->index = i;
    w->root.worker = w;
    w->root.rank = r;
    if (!pool_add(w))
      return rt_fail(e, ST_LIMIT, "the stack of a worker takes %llu bytes, but the budget is %llu",
                     (unsigned long long)rt_fiber_stack_bytes(),
                     (unsigned long long)r->team->context->config.budget_bytes);
    char name[32];
    snprintf(name, sizeof name, "rank%d/%u", r->index, i);
    const Status s = rt_thread_start(&w->thread, worker_main, w, name, e);
    if (s != ST_OK) return s;
    w->started = true;
  }
  return ST_OK;
}

void rt_workers_stop(RtRank *r) {
  atomic_store(&r->quit, 1);
  if (r->control) rt_wake_workers(r->team, r->index, UINT32_MAX);
  for (uint32_t i = 0; i < r->nworkers; i++) {
    Worker *w = &r->workers[i];
    if (w->started) pthread_join(w->thread, NULL);
    for (uint32_t k = 0; k < w->nfibers; k++) rt_fiber_free(w->all[k]);
    free(w->all);
    free(w->waiting);
  }
  free(r->workers);
  r->workers = NULL;
  r->nworkers = 0;
}
