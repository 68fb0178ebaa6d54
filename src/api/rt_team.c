// Teams, ranks, memory, streams, events and signals: thin over the runtime. Each failure's text is kept for the calling thread.
#include "api/api_impl.h"

#include <stdlib.h>
#include <string.h>

// ---- teams ------------------------------------------------------------------------------------------------------------
dt_status dt_team_create(dt_context *c, const dt_team_options *o, dt_team **out) {
  RtTeamConfig config = {0};
  if (o && o->size != sizeof *o)
    return api_fail(c, ST_INVALID, "dt_team_options.size is %zu, not sizeof(dt_team_options)", o->size);
  if (o)
    config =
        (RtTeamConfig){.local_ranks = o->local_ranks,
                       .from_environment = o->from_environment,
                       .device = o->device,
                       .threads_per_rank = o->threads_per_rank ? o->threads_per_rank : (int)c->knobs.threads,
                       .symmetric_bytes = o->symmetric_bytes,
                       .trace = o->trace};
  RtError e;
  RtTeam *rt;
  Status s = rt_team_create(c->rt, &config, &rt, &e);
  if (s != ST_OK) return api_rt(c, s, &e);
  int n = rt_team_local(rt);
  dt_team *t = calloc(1, sizeof *t + (size_t)n * sizeof(dt_rank));
  if (!t) {
    rt_team_destroy(rt);
    return api_fail(c, ST_NO_MEMORY, "out of memory");
  }
  t->context = c;
  t->rt = rt;
  t->nranks = n;
  for (int i = 0; i < n; i++) t->ranks[i] = (dt_rank){rt_team_rank(rt, i), t};
  *out = t;
  return DT_OK;
}

void dt_team_destroy(dt_team *t) {
  if (!t) return;
  rt_team_destroy(t->rt);
  free(t->report);
  free(t);
}

int dt_team_size(const dt_team *t) { return rt_team_world(t->rt); }
int dt_team_local_size(const dt_team *t) { return t->nranks; }
dt_rank *dt_team_local(dt_team *t, int i) { return i >= 0 && i < t->nranks ? &t->ranks[i] : NULL; }
int dt_rank_index(const dt_rank *r) { return rt_rank_index(r->rt); }
dt_team *dt_rank_team(const dt_rank *r) { return r->team; }
dt_context *dt_rank_context(const dt_rank *r) { return r->team->context; }

dt_status dt_barrier(dt_rank *r) {
  RtError e;
  return api_rt(api_rank_context(r), rt_barrier(r->rt, &e), &e);
}

const char *dt_team_report(const dt_team *t) {
  RtError e;
  if (rt_team_failure(t->rt, &e) == ST_OK) return "";
  const char *kept = api_keep_text(t->context, e.text);
  return kept ? kept : "";
}

int dt_team_speaks(dt_team *t) { return rt_team_speaks(t->rt); }

dt_status dt_team_recover(dt_rank *r) {
  RtError e;
  return api_rt(api_rank_context(r), rt_recover(r->rt, &e), &e);
}

uint64_t dt_rank_recoveries(const dt_rank *r) { return rt_rank_recoveries(r->rt); }

typedef struct RunOnRanks {
  dt_team *team;
  dt_status (*fn)(dt_rank *r, void *user);
  void *user;
  char **remarks; // [nranks]: what each rank's thread leaves behind
} RunOnRanks;

static Status run_one(RtRank *rt, void *user, RtError *e) {
  RunOnRanks *run = user;
  for (int i = 0; i < run->team->nranks; i++) {
    if (run->team->ranks[i].rt != rt) continue;
    dt_status st = run->fn(&run->team->ranks[i], run->user);
    if (st != DT_OK) { // hand this thread's text to the caller's
      e->status = (Status)st;
      const char *text = dt_error(run->team->context);
      size_t n = strlen(text);
      if (n >= sizeof e->text) n = sizeof e->text - 1;
      memcpy(e->text, text, n);
      e->text[n] = 0;
    }
    const char *remarks = dt_remarks(run->team->context);
    run->remarks[i] = *remarks ? strdup(remarks) : NULL;
    return (Status)st;
  }
  return ST_INTERNAL;
}

dt_status dt_team_run(dt_team *t, dt_status (*fn)(dt_rank *r, void *user), void *user) {
  RtError e;
  RunOnRanks run = {t, fn, user, calloc((size_t)t->nranks, sizeof(char *))};
  if (!run.remarks) return api_fail(t->context, ST_NO_MEMORY, "out of memory");
  const Status s = rt_team_run(t->rt, run_one, &run, &e);
  for (int i = 0; i < t->nranks; i++) {
    if (run.remarks[i]) api_remark(t->context, run.remarks[i]);
    free(run.remarks[i]);
  }
  free(run.remarks);
  return api_rt(t->context, s, &e);
}

void dt_team_trace(dt_team *t, bool on) { rt_trace_enable(t->rt, on); }
void dt_trace_mark(dt_rank *r, const char *text) { rt_trace_mark(r->rt, text); }

dt_status dt_team_write_trace(dt_team *t, const char *path) {
  RtError e;
  return api_rt(t->context, rt_trace_write(t->rt, path, &e), &e);
}

// Every rank's status and the start of its text; the lowest rank that failed speaks for all.
dt_status dt_agree(dt_rank *r, dt_status mine) {
  typedef struct Vote {
    int status;
    char text[RT_EXCHANGE_MAX - sizeof(int)];
  } Vote;
  dt_context *c = api_rank_context(r);
  int world = dt_team_size(r->team);
  Vote vote = {.status = (int)mine}, *all = calloc((size_t)world, sizeof *all);
  if (!all) return api_fail(c, ST_NO_MEMORY, "out of memory");
  if (mine != DT_OK) strncpy(vote.text, dt_error(c), sizeof vote.text - 1);
  RtError e;
  Status s = rt_exchange(r->rt, &vote, sizeof vote, all, &e);
  dt_status st = api_rt(c, s, &e);
  for (int i = 0; i < world && s == ST_OK && st == DT_OK; i++) {
    if (all[i].status == DT_OK) continue;
    st = (dt_status)all[i].status;
    if (mine == DT_OK)
      api_fail(c, (Status)st, "rank %d: %s", i, all[i].text); // else this rank's own text stays
  }
  free(all);
  return st;
}

dt_status dt_share(dt_rank *r, int from, void *bytes, size_t n) {
  dt_context *c = api_rank_context(r);
  int world = dt_team_size(r->team);
  if (n > RT_EXCHANGE_MAX || from < 0 || from >= world)
    return api_fail(c, ST_INVALID, "dt_share: %zu bytes from rank %d", n, from);
  char *all = malloc((size_t)world * n + 1);
  if (!all) return api_fail(c, ST_NO_MEMORY, "out of memory");
  RtError e;
  Status s = rt_exchange(r->rt, bytes, n, all, &e);
  if (s == ST_OK) memcpy(bytes, all + (size_t)from * n, n);
  free(all);
  return api_rt(c, s, &e);
}

int dt_host_cores(void) { return os_cores(); }

// ---- memory -------------------------------------------------------------------------------------------------------------
dt_status dt_alloc(dt_rank *r, size_t bytes, void **out) {
  RtError e;
  return api_rt(api_rank_context(r), rt_alloc(r->rt, bytes, out, &e), &e);
}
void dt_free(dt_rank *r, void *p) {
  if (p) rt_free(r->rt, p);
}
dt_status dt_symm_alloc(dt_rank *r, size_t bytes, const char *label, void **out) {
  RtError e;
  return api_rt(api_rank_context(r), rt_symm_alloc(r->rt, bytes, label, out, &e), &e);
}
dt_status dt_symm_free(dt_rank *r, void *p) {
  RtError e;
  return api_rt(api_rank_context(r), rt_symm_free(r->rt, p, &e), &e);
}
dt_status dt_symm_register(dt_rank *r, void *p, size_t bytes, const char *label) {
  RtError e;
  return api_rt(api_rank_context(r), rt_symm_register(r->rt, p, bytes, label, &e), &e);
}
dt_status dt_symm_unregister(dt_rank *r, void *p) {
  RtError e;
  return api_rt(api_rank_context(r), rt_symm_unregister(r->rt, p, &e), &e);
}
dt_status dt_symm_peer(dt_rank *r, const void *p, int peer, void **out) {
  RtError e;
  return api_rt(api_rank_context(r), rt_symm_peer(r->rt, p, peer, out, &e), &e);
}

// ---- streams and events ---------------------------------------------------------------------------------------------------
static dt_status open_stream(dt_rank *r, bool wrap, void *native, const char *label, dt_stream **out) {
  dt_context *c = api_rank_context(r);
  RtError e;
  dt_stream *s = calloc(1, sizeof *s);
  if (!s) return api_fail(c, ST_NO_MEMORY, "out of memory");
  s->rank = r;
  Status st =
      wrap ? rt_stream_wrap(r->rt, native, label, &s->rt, &e) : rt_stream_create(r->rt, label, &s->rt, &e);
  if (st == ST_OK)
    *out = s;
  else
    free(s);
  return api_rt(c, st, &e);
}
dt_status dt_stream_create(dt_rank *r, const char *label, dt_stream **out) {
  return open_stream(r, false, NULL, label, out);
}
dt_status dt_stream_wrap(dt_rank *r, void *native, const char *label, dt_stream **out) {
  return open_stream(r, true, native, label, out);
}
void *dt_stream_native(const dt_stream *s) { return rt_stream_native(s->rt); }
void dt_stream_destroy(dt_stream *s) {
  if (!s) return;
  rt_stream_destroy(s->rt);
  free(s);
}
static inline dt_context *stream_context(const dt_stream *s) { return s->rank->team->context; }
dt_status dt_stream_sync(dt_stream *s) {
  RtError e;
  return api_rt(stream_context(s), rt_stream_sync(s->rt, &e), &e);
}

struct dt_event {
  RtEvent *rt;
  dt_rank *rank;
};
dt_status dt_event_create(dt_rank *r, dt_event **out) {
  dt_context *c = api_rank_context(r);
  RtError e;
  dt_event *ev = calloc(1, sizeof *ev);
  if (!ev) return api_fail(c, ST_NO_MEMORY, "out of memory");
  ev->rank = r;
  Status st = rt_event_create(r->rt, &ev->rt, &e);
  if (st == ST_OK)
    *out = ev;
  else
    free(ev);
  return api_rt(c, st, &e);
}
void dt_event_destroy(dt_event *ev) {
  if (!ev) return;
  rt_event_destroy(ev->rt);
  free(ev);
}
dt_status dt_event_record(dt_event *ev, dt_stream *s) {
  RtError e;
  return api_rt(stream_context(s), rt_event_record(ev->rt, s->rt, &e), &e);
}
dt_status dt_stream_wait_event(dt_stream *s, dt_event *ev) {
  RtError e;
  return api_rt(stream_context(s), rt_stream_wait_event(s->rt, ev->rt, &e), &e);
}
dt_status dt_event_elapsed(const dt_event *from, const dt_event *to, double *ms) {
  RtError e;
  return api_rt(api_rank_context(from->rank), rt_event_elapsed(from->rt, to->rt, ms, &e), &e);
}

// ---- copies and signals -------------------------------------------------------------------------------------------------------
dt_status dt_copy(dt_stream *s, void *dst, const void *src, size_t bytes) {
  RtError e;
  return api_rt(stream_context(s), rt_copy(s->rt, dst, src, bytes, &e), &e);
}
dt_status dt_copy_2d(dt_stream *s, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                     size_t width_bytes, size_t rows) {
  RtError e;
  return api_rt(stream_context(s), rt_copy_2d(s->rt, dst, dst_pitch, src, src_pitch, width_bytes, rows, &e),
                &e);
}
dt_status dt_fill(dt_stream *s, void *dst, int byte, size_t bytes) {
  RtError e;
  return api_rt(stream_context(s), rt_fill(s->rt, dst, byte, bytes, &e), &e);
}
dt_status dt_signal_set(dt_stream *s, uint64_t *word, uint64_t value, int peer) {
  RtError e;
  return api_rt(stream_context(s), rt_signal_set(s->rt, word, value, peer, &e), &e);
}
dt_status dt_signal_add(dt_stream *s, uint64_t *word, uint64_t value, int peer) {
  RtError e;
  return api_rt(stream_context(s), rt_signal_add(s->rt, word, value, peer, &e), &e);
}
dt_status dt_signal_copy(dt_stream *s, uint64_t *word, const uint64_t *src, int peer) {
  RtError e;
  return api_rt(stream_context(s), rt_signal_copy(s->rt, word, src, peer, &e), &e);
}
dt_status dt_signal_wait(dt_stream *s, const uint64_t *word, uint64_t at_least) {
  RtError e;
  return api_rt(stream_context(s), rt_signal_wait(s->rt, word, at_least, &e), &e);
}
dt_status dt_signal_wait_word(dt_stream *s, const uint64_t *word, const uint64_t *at_least_word) {
  RtError e;
  return api_rt(stream_context(s), rt_signal_wait_word(s->rt, word, at_least_word, 0, &e), &e);
}
