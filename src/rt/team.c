// team: bringing ranks up and down, and the collectives by which their host threads agree.
//
// A collective has a number, counted by each rank. A rank writes what it says into its slot of that number's parity, then
// raises its `arrived` word to the number, and waits until everybody's is as high; then it reads and compares all slots.
// Two slots suffice: nobody reaches number n + 2 before all have read those of n.
#include "rt/rt_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

// Ranks come to recovery when their own waits have ended, so they are waited for longer.
#define RECOVERY_NS(t) (2 * (t)->deadline_ns + 5000000000u)

// ---- collectives ---------------------------------------------------------------------------------------
typedef struct Meeting {
  RtRank *rank;
  const char *what;
  uint64_t number;
  bool recovering; // goes on in spite of an abort, over the counters of recovery
} Meeting;

static uint64_t arrived(const Meeting *m, int i) {
  const ControlRank *c = rt_control_rank(m->rank->team, i);
  return atomic_load_explicit(m->recovering ? &c->recovered : &c->arrived, memory_order_acquire);
}

static uint64_t patience(const Meeting *m) {
  const RtTeam *t = m->rank->team;
  return m->recovering ? RECOVERY_NS(t) : t->deadline_ns;
}

static Status fail_late(const Meeting *m, RtError *e) {
  RtTeam *t = m->rank->team;
  const double seconds = (double)patience(m) * 1e-9;
  char who[256];
  RtText text = {who, 0, sizeof who};
  who[0] = 0;
  for (int i = 0; i < t->world; i++) {
    if (arrived(m, i) < m->number) rt_say(&text, "%s%d", text.n ? ", " : "", i);
  }
  if (m->recovering)
    return rt_fail(e, ST_DEADLINE, "rank %d came to '%s', but these ranks did not within %.3g s: %s",
                   m->rank->index, m->what, seconds, who);
  rt_fault(m->rank, ST_DEADLINE, "it came to '%s', but these ranks did not within %.3g s: %s", m->what,
           seconds, who);
  return rt_team_failure(t, e);
}

static Status wait_for(const Meeting *m, int i, uint64_t since, RtError *e) {
  RtTeam *t = m->rank->team;
  ControlRank *c = rt_control_rank(t, i);
  for (uint32_t turn = 0; arrived(m, i) < m->number; rt_backoff(&turn, 200000)) {
    const uint32_t state = atomic_load(&c->state);
    if (state == PEER_DEAD && m->recovering) return rt_fail(e, ST_PEER_LOST, "rank %d has ended", i);
    if (state == PEER_LEFT && arrived(m, i) < m->number)
      rt_fault(m->rank, ST_PEER_LOST, "it came to '%s', but rank %d has left the team", m->what, i);
    if (!m->recovering && rt_aborted(t)) return rt_team_failure(t, e);
    if (m->recovering && state == PEER_LEFT) return rt_fail(e, ST_PEER_LOST, "rank %d has left the team", i);
    if (os_now_ns() - since > patience(m)) return fail_late(m, e);
  }
  return ST_OK;
}

static Status meet(const Meeting *m, RtError *e) {
  RtRank *r = m->rank;
  const uint64_t since = os_now_ns();
  atomic_store_explicit(m->recovering ? &r->control->recovered : &r->control->arrived, m->number,
                        memory_order_release);
  for (int i = 0; i < r->team->world; i++) {
    const Status s = wait_for(m, i, since, e);
    if (s != ST_OK) return s;
  }
  return ST_OK;
}

static bool same(const Said *a, const Said *b) {
  return strcmp(a->what, b->what) == 0 && a->amount == b->amount && a->extra == b->extra;
}

static Status fail_mismatch(const RtRank *r, uint64_t parity, RtError *e) {
  char list[1024];
  RtText t = {list, 0, sizeof list};
  for (int i = 0; i < r->team->world; i++) {
    const Said *s = (const Said *)rt_control_rank(r->team, i)->slot[parity];
    rt_say(&t, "%srank %d: %s", i ? "; " : "", i, s->what);
    if (s->amount == UINT64_MAX)
      rt_say(&t, " of something unknown");
    else if (s->amount)
      rt_say(&t, " of %llu", (unsigned long long)s->amount);
  }
  return rt_fail(e, ST_MISMATCH, "the ranks disagree: %s", list);
}

Status rt_collective(RtRank *r, const char *what, uint64_t amount, const void *mine, uint32_t extra,
                     void *all, RtError *e) {
  _Static_assert(sizeof(Said) + RT_EXCHANGE_MAX <= RT_SLOT_BYTES, "a slot holds what a rank says");
  RtTeam *t = r->team;
  if (rt_aborted(t)) return rt_team_failure(t, e);
  const uint64_t number = ++r->epoch, parity = number & 1;
  char *slot = r->control->slot[parity];
  Said said = {.amount = amount, .extra = extra};
  snprintf(said.what, sizeof said.what, "%s", what);
  memcpy(slot, &said, sizeof said);
  if (extra) memcpy(slot + sizeof said, mine, extra);
  const Status s = meet(&(Meeting){r, what, number, false}, e);
  if (s != ST_OK) return s;
  for (int i = 0; i < t->world; i++) {
    const char *theirs = rt_control_rank(t, i)->slot[parity];
    if (!same((const Said *)theirs, &said)) return fail_mismatch(r, parity, e);
  }
  for (int i = 0; i < t->world && all; i++)
    memcpy((char *)all + (size_t)i * extra, rt_control_rank(t, i)->slot[parity] + sizeof said, extra);
  return ST_OK;
}

Status rt_barrier(RtRank *r, RtError *e) { return rt_collective(r, "barrier", 0, NULL, 0, NULL, e); }

Status rt_exchange(RtRank *r, const void *mine, size_t bytes, void *all, RtError *e) {
  if (bytes > RT_EXCHANGE_MAX)
    return rt_fail(e, ST_INVALID, "at most %d bytes can be exchanged, not %zu", RT_EXCHANGE_MAX, bytes);
  return rt_collective(r, "exchange", bytes, mine, (uint32_t)bytes, all, e);
}

// ---- recovery --------------------------------------------------------------------------------------------
static void forget_failure(RtRank *r) {
  ControlRank *c = r->control;
  r->epoch = 0;
  atomic_store(&c->arrived, 0);
  for (int i = 0; i < RT_MAX_STREAMS; i++) atomic_store(&c->meets[i], 0);
  for (int i = 0; i < RT_WRITERS; i++) atomic_store_explicit(&c->writers[i].w[0], 0, memory_order_relaxed);
  atomic_store(&c->report_state, 0);
}

Status rt_recover(RtRank *r, RtError *e) {
  RtTeam *t = r->team;
  for (int i = 0; i < RT_MAX_STREAMS; i++) {
    if (r->streams[i]) rt_stream_sync(r->streams[i], NULL);
  }
  for (int i = 0; i < t->world; i++) {
    if (atomic_load(&rt_control_rank(t, i)->state) == PEER_DEAD) return rt_team_failure(t, e);
  }
  const Status good = t->driver->recover(r, e);
  if (good != ST_OK) return good;
  // all have stopped; then all have forgotten; then nobody is left who could still read what was
  for (int step = 0; step < 2; step++) {
    const Status s = meet(&(Meeting){r, "recover", ++r->recoveries, true}, e);
    if (s != ST_OK) return s;
    if (step == 1) break;
    forget_failure(r);
    if (r->index != 0) continue;
    atomic_store(&t->control->speaker, 0);
    atomic_store(&t->control->abort, 0);
  }
  return ST_OK;
}

// ---- up ----------------------------------------------------------------------------------------------------
static Status start_rank(RtTeam *t, int local, int index, uint32_t ordinal, uint32_t workers, RtError *e) {
  RtRank *r = &t->ranks[local];
  r->team = t;
  r->local = local;
  r->index = index;
  r->control = rt_control_rank(t, index);
  r->abi = (AbiRank){.abi = IMAGE_ABI,
                     .rank = index,
                     .world = t->world,
                     .abort_word = (const uint64_t *)&t->control->abort,
                     .deadline_ns = t->deadline_ns,
                     .runtime = r};
  pthread_mutex_init(&r->lock, NULL);
  const Status s = rt_heap_init(r, e);
  return s == ST_OK ? t->driver->start(r, ordinal, workers, e) : s;
}

static uint32_t workers_of(const RtTeamConfig *c, int ranks_here) {
  if (c->threads_per_rank > 0) return (uint32_t)c->threads_per_rank;
  const int n = os_cores() / ranks_here;
  return n > 1 ? (uint32_t)n : 1;
}

static Status check_config(const RtTeamConfig *c, const RtJob *job, RtError *e) {
  if (c->local_ranks < 0 || c->local_ranks > RT_MAX_RANKS || job->world > RT_MAX_RANKS)
    return rt_fail(e, ST_LIMIT, "a team has 1 to %d ranks", RT_MAX_RANKS);
  if (c->threads_per_rank < 0 || c->threads_per_rank > 1024)
    return rt_fail(e, ST_LIMIT, "a rank has 1 to 1024 threads");
  if (c->from_environment && c->local_ranks > 1)
    return rt_fail(e, ST_INVALID, "a process that is one rank of a job cannot have %d ranks of its own",
                   c->local_ranks);
  if (c->symmetric_bytes > 1ull << 44) return rt_fail(e, ST_LIMIT, "a symmetric heap has at most 16 TiB");
  return ST_OK;
}

static Status bring_up(RtTeam *t, const RtTeamConfig *c, const RtJob *job, uint32_t ordinal, RtError *e) {
  t->control_bytes = bits_round_up(sizeof(Control) + sizeof(ControlRank) * (uint64_t)t->world, HUGE_PAGE);
  t->heap_bytes = bits_round_up(c->symmetric_bytes ? c->symmetric_bytes : 256ull << 20, HUGE_PAGE);
  t->ranks = calloc((size_t)t->nlocal, sizeof *t->ranks);
  if (!t->ranks) return rt_no_memory(e);
  const uint64_t heaps = t->driver->own_heap ? 0 : t->heap_bytes * (uint64_t)t->world;
  Status s = t->transport->open(t, job, t->control_bytes + heaps, e);
  if (s != ST_OK) return s;
  uint64_t none = 0;
  atomic_compare_exchange_strong(&t->control->epoch_ns, &none, os_now_ns());
  const int ranks_here = t->world; // all transports so far are of one host
  for (int i = 0; i < t->nlocal && s == ST_OK; i++)
    s = start_rank(t, i, t->transport->processes ? job->rank : i, ordinal, workers_of(c, ranks_here), e);
  if (s == ST_OK && t->transport->processes)
    s = rt_collective(&t->ranks[0], "team_create", t->heap_bytes, NULL, 0, NULL, e);
  return s;
}

Status rt_team_create(RtContext *context, const RtTeamConfig *config, RtTeam **out, RtError *e) {
  const RtTeamConfig c = config ? *config : (RtTeamConfig){0};
  RtJob job = {.world = 1};
  Status s = c.from_environment ? rt_job_read(&job, e) : ST_OK;
  if (s == ST_OK) s = check_config(&c, &job, e);
  if (s != ST_OK) return s;
  uint32_t ordinal;
  const RtDriver *driver = rt_driver_find(c.device, &ordinal, e);
  if (!driver) return ST_NOT_FOUND;
  if (driver->own_heap && (c.local_ranks > 1 || job.world > 1))
    return rt_fail(e, ST_UNSUPPORTED,
                   "a team on '%s' has one rank, not %d: several GPUs cannot be joined yet", c.device,
                   c.local_ranks > 1 ? c.local_ranks : job.world);
  RtTeam *t = calloc(1, sizeof *t);
  if (!t) return rt_no_memory(e);
  t->context = context;
  t->driver = driver;
  t->deadline_ns = c.deadline_ns ? c.deadline_ns : context->config.deadline_ns;
  t->nlocal = c.local_ranks > 1 ? c.local_ranks : 1;
  t->world = c.from_environment ? job.world : t->nlocal;
  t->transport = t->world > t->nlocal ? &rt_transport_shm : &rt_transport_threads;
  atomic_store(&t->tracing, c.trace);
  if (t->transport->processes) { // teams of one job have names of their own
    const size_t n = strlen(job.id);
    snprintf(job.id + n, sizeof job.id - n, ".%u", atomic_fetch_add(&context->jobs, 1));
  }
  s = bring_up(t, &c, &job, ordinal, e);
  if (s != ST_OK) {
    rt_team_destroy(t);
    return s;
  }
  *out = t;
  return ST_OK;
}

// ---- down ----------------------------------------------------------------------------------------------------
static void stop_rank(RtRank *r) {
  if (!r->team) return;
  for (int i = 0; i < RT_MAX_STREAMS; i++) {
    if (r->streams[i]) rt_stream_destroy(r->streams[i]);
  }
  r->team->driver->stop(r);
  rt_heap_free(r);
  pthread_mutex_destroy(&r->lock);
}

void rt_team_destroy(RtTeam *t) {
  if (!t) return;
  for (int i = 0; i < t->nlocal && t->ranks; i++) stop_rank(&t->ranks[i]);
  if (t->map) {
    for (int i = 0; i < t->nlocal; i++) {
      if (t->ranks[i].control) atomic_store(&t->ranks[i].control->state, PEER_LEFT);
    }
  }
  t->transport->watch_end(t);
  if (t->map) t->transport->close(t);
  free(t->ranks);
  free(t);
}

// ---- facts ----------------------------------------------------------------------------------------------------
int rt_team_world(const RtTeam *t) { return t->world; }
int rt_team_local(const RtTeam *t) { return t->nlocal; }
RtRank *rt_team_rank(RtTeam *t, int i) { return i >= 0 && i < t->nlocal ? &t->ranks[i] : NULL; }
RtContext *rt_team_context(const RtTeam *t) { return t->context; }
const char *rt_team_transport(const RtTeam *t) { return t->transport->info.name; }
int rt_rank_index(const RtRank *r) { return r->index; }
RtTeam *rt_rank_team(const RtRank *r) { return r->team; }
uint64_t rt_rank_recoveries(const RtRank *r) { return r->recoveries; }
int rt_rank_workers(const RtRank *r) { return (int)r->nworkers; }
const AbiRank *rt_rank_abi(const RtRank *r) { return &r->abi; }

// ---- a thread for each local rank ----------------------------------------------------------------------------
typedef struct Runner {
  pthread_t thread;
  bool started;
  RtRank *rank;
  Status (*fn)(RtRank *, void *, RtError *);
  void *user;
  Status status;
  RtError error;
} Runner;

static void *run_rank(void *arg) {
  Runner *q = arg;
  q->status = q->fn(q->rank, q->user, &q->error);
  return NULL;
}

Status rt_team_run(RtTeam *t, Status (*fn)(RtRank *r, void *user, RtError *e), void *user, RtError *e) {
  Runner *q = calloc((size_t)t->nlocal, sizeof *q);
  if (!q) return rt_no_memory(e);
  Status first = ST_OK;
  for (int i = 0; i < t->nlocal; i++) {
    q[i].rank = &t->ranks[i];
    q[i].fn = fn;
    q[i].user = user;
    const Status s = rt_thread_start(&q[i].thread, run_rank, &q[i], "rank", &q[i].error);
    q[i].started = s == ST_OK;
    if (s == ST_OK) continue; // from here on the status is the thread's
    q[i].status = s;
    rt_fault(q[i].rank, s, "%s", q[i].error.text); // the others would wait for it
  }
  for (int i = 0; i < t->nlocal; i++) {
    if (q[i].started) pthread_join(q[i].thread, NULL);
    if (first == ST_OK && q[i].status != ST_OK) {
      first = q[i].status;
      if (e) *e = q[i].error;
    }
  }
  free(q);
  return first;
}
