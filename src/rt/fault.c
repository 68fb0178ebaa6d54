// fault: the abort word, and reports that say what was waited for, where, and who should have come.
//
// The first fault of a rank fills the rank's report, then raises the team's abort word if nobody has; the word names the
// first witness. Whoever sees the word later adds what its own rank was waiting for, if it was, and drops it.
#include "rt/rt_impl.h"

#include <stdio.h>

bool rt_report_begin(RtRank *r, Status s, RtText *text) {
  uint32_t none = 0;
  if (!atomic_compare_exchange_strong(&r->control->report_state, &none, 1)) return false;
  r->control->report_status = s;
  *text = (RtText){r->control->report, 0, sizeof r->control->report};
  rt_say(text, "rank %d: ", r->index);
  return true;
}

void rt_report_end(RtRank *r) { atomic_store_explicit(&r->control->report_state, 2, memory_order_release); }

void rt_raise(RtTeam *t, Status s, int rank) {
  uint64_t none = 0;
  const uint64_t word = (uint64_t)s << 32 | (uint32_t)(rank + 1);
  atomic_compare_exchange_strong(&t->control->abort, &none, word);
  for (int i = 0; i < t->world; i++) rt_wake_workers(t, i, UINT32_MAX);
  for (int i = 0; i < t->nlocal; i++) t->driver->raise(&t->ranks[i]);
}

void rt_fault(RtRank *r, Status s, const char *fmt, ...) {
  RtText text;
  if (rt_report_begin(r, s, &text)) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text.s + text.n, text.cap - text.n, fmt, ap);
    va_end(ap);
    rt_report_end(r);
  }
  rt_raise(r->team, s, r->index);
}

void rt_team_abort(RtRank *r, Status s, const char *why) { rt_fault(r, s, "%s", why); }

void rt_lost(RtTeam *t, int rank) {
  uint32_t here = PEER_HERE;
  if (atomic_compare_exchange_strong(&rt_control_rank(t, rank)->state, &here, PEER_DEAD))
    rt_raise(t, ST_PEER_LOST, rank);
}

// ---- places ----------------------------------------------------------------------------------------
static const ImageSite *site_of(const RtKernel *k, AbiSite site) {
  return k && site < k->image->nsites ? &k->image->sites[site] : NULL;
}

static void say_place(RtText *t, const RtKernel *k, AbiSite site) {
  const ImageSite *s = site_of(k, site);
  if (s && s->file && s->col)
    rt_say(t, " at %s:%u:%u", s->file, s->line, s->col);
  else if (s && s->file)
    rt_say(t, " at %s:%u", s->file, s->line);
}

static void say_instance(RtText *t, const Fiber *f) {
  const AbiInstance *i = &f->inst;
  const RtKernel *k = i->kernel;
  rt_say(t, "kernel '%s', program (%u, %u, %u)", k ? k->info->name : "?", i->pid[0], i->pid[1], i->pid[2]);
  if (f->group) rt_say(t, ", warp %u", i->warp);
}

void rt_describe_word(RtText *t, RtRank *r, const void *p) {
  const uint64_t at = (uint64_t)(uintptr_t)p;
  for (uint32_t i = 0; i < r->abi.nsegments; i++) {
    const AbiSegment *s = &r->segments.abi[i];
    if (at - s->base >= s->bytes) continue;
    const char *label = r->segments.labels[i];
    uint64_t from = 0;
    if (i == 0) {
      pthread_mutex_lock(&r->heap_lock);
      for (uint32_t b = 0; b < r->nblocks; b++) {
        if (at - s->base - r->blocks[b].offset >= r->blocks[b].bytes) continue;
        label = r->blocks[b].label;
        from = r->blocks[b].offset;
      }
      pthread_mutex_unlock(&r->heap_lock);
    }
    rt_say(t, "'%s' + %llu", label, (unsigned long long)(at - s->base - from));
    return;
  }
  rt_say(t, "the word at %p", p);
}

// ---- who wrote it last -------------------------------------------------------------------------------
// Processes map the common block at different addresses, so what lies in it goes by its offset.
static uint64_t word_key(const RtTeam *t, const void *p) {
  const uint64_t at = (uint64_t)(uintptr_t)p, off = at - (uint64_t)(uintptr_t)t->map;
  return (off < t->map_bytes ? off : at) + 1;
}

static Writer *writer_slot(RtTeam *t, int owner, uint64_t key) {
  _Static_assert(RT_WRITERS == 1 << 10, "the shift below");
  return &rt_control_rank(t, owner)->writers[(key / 4 * 0x9e3779b97f4a7c15u) >> 54];
}

void rt_writer_note(RtTeam *t, int owner, const void *there, uint64_t value, int writer, const char *where) {
  const uint64_t key = word_key(t, there);
  Writer *w = writer_slot(t, owner, key);
  uint64_t text[4];
  memcpy(text, where, sizeof text);
  atomic_store_explicit(&w->w[0], 0, memory_order_relaxed);
  atomic_store_explicit(&w->w[1], value, memory_order_relaxed);
  atomic_store_explicit(&w->w[2], (uint64_t)writer, memory_order_relaxed);
  for (int i = 0; i < 4; i++) atomic_store_explicit(&w->w[4 + i], text[i], memory_order_relaxed);
  atomic_store_explicit(&w->w[0], key, memory_order_release);
}

void rt_writer_say(RtText *t, RtRank *r, const void *word) {
  const uint64_t key = word_key(r->team, word);
  Writer *w = writer_slot(r->team, r->index, key);
  if (atomic_load_explicit(&w->w[0], memory_order_acquire) != key) {
    rt_say(t, "; no signal call has written it");
    return;
  }
  uint64_t text[5] = {0};
  for (int i = 0; i < 4; i++) text[i] = atomic_load_explicit(&w->w[4 + i], memory_order_relaxed);
  rt_say(t, "; last written by rank %d%s%s (value %lld)",
         (int)atomic_load_explicit(&w->w[2], memory_order_relaxed), text[0] ? " at " : "", (const char *)text,
         (long long)atomic_load_explicit(&w->w[1], memory_order_relaxed));
}

// ---- reports -----------------------------------------------------------------------------------------
void rt_fault_instance(Fiber *f, Status s, AbiSite site, const char *fmt, ...) {
  RtText t;
  if (rt_report_begin(f->rank, s, &t)) {
    say_instance(&t, f);
    say_place(&t, f->inst.kernel, site);
    rt_say(&t, ": ");
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t.s + t.n, t.cap - t.n, fmt, ap);
    va_end(ap);
    rt_report_end(f->rank);
  }
  rt_raise(f->rank->team, s, f->rank->index);
}

static int64_t word_at(const WaitFor *w, uint32_t i) {
  if (w->bytes == 4) return __atomic_load_n((const int32_t *)w->flag + i, __ATOMIC_ACQUIRE);
  return __atomic_load_n((const int64_t *)w->flag + i, __ATOMIC_ACQUIRE);
}

static void say_meeting(RtText *t, const Fiber *f) {
  RtRank *r = f->rank;
  rt_say(t, " waits at a barrier of all ranks; missing:");
  const uint64_t channel = (uint64_t)(f->wait.meets - r->team->control->rank[0].meets);
  for (int i = 0; i < r->team->world; i++) {
    const uint64_t seen =
        atomic_load_explicit(&rt_control_rank(r->team, i)->meets[channel], memory_order_acquire);
    if (seen < f->wait.value)
      rt_say(t, " rank %d (%llu of %llu)", i, (unsigned long long)seen, (unsigned long long)f->wait.value);
  }
}

static void say_wait(RtText *t, const Fiber *f) {
  static const char *const cmp[] = {"==", "!=", ">", ">=", "<", "<="};
  const WaitFor *w = &f->wait;
  say_instance(t, f);
  const ImageSite *site = site_of(f->inst.kernel, w->site);
  if (w->meets) {
    say_meeting(t, f);
    say_place(t, f->inst.kernel, w->site);
    return;
  }
  if (!w->flag) {
    rt_say(t, " waits at a barrier of its warps (%u of %u came)", f->group ? f->group->arrived : 0,
           f->group ? f->group->n : 0);
    say_place(t, f->inst.kernel, w->site);
    return;
  }
  rt_say(t, " waits");
  say_place(t, f->inst.kernel, w->site);
  if (site && site->what && *site->what) rt_say(t, " for %s", site->what);
  WaitFor one = *w;
  one.n = 1;
  uint32_t i = 0;
  for (; i + 1 < w->n; i++) {
    one.flag = (const char *)w->flag + (size_t)i * w->bytes;
    if (!rt_wait_holds(&one)) break;
  }
  const char *word = (const char *)w->flag + (size_t)i * w->bytes;
  rt_say(t, ": ");
  rt_describe_word(t, f->rank, word);
  rt_say(t, " should be %s %lld, but is %lld", cmp[w->cmp], (long long)w->value, (long long)word_at(w, i));
  rt_writer_say(t, f->rank, word);
}

static bool same_wait(const WaitFor *a, const WaitFor *b) {
  return a->site == b->site && a->flag == b->flag && a->n == b->n && a->cmp == b->cmp &&
         a->value == b->value && a->meets == b->meets;
}

// What the worker's instances wait for, each wait once, with how many share it; `first` leads where there is one.
static void say_waits(Worker *w, RtText *t, const Fiber *first) {
  enum { MOST = 4 };
  const Fiber *of[MOST] = {first};
  uint32_t more[MOST] = {0}, n = first != NULL, beyond = 0;
  for (uint32_t i = 0; i < w->nwaiting; i++) {
    const Fiber *f = w->waiting[i];
    uint32_t k = 0;
    while (k < n && !same_wait(&of[k]->wait, &f->wait)) k++;
    if (k < n)
      more[k] += f != of[k];
    else if (n < MOST)
      of[n++] = f;
    else
      beyond++;
  }
  for (uint32_t k = 0; k < n; k++) {
    rt_say(t, k ? "\n  also " : "\n  ");
    say_wait(t, of[k]);
    if (more[k]) rt_say(t, " (and %u more instance%s)", more[k], more[k] > 1 ? "s" : "");
  }
  if (beyond) rt_say(t, "\n  and %u more wait for other things", beyond);
}

void rt_fault_wait(Worker *w, const Fiber *first) {
  RtRank *r = w->rank;
  RtText t;
  if (rt_report_begin(r, ST_DEADLINE, &t)) {
    rt_say(&t, "a wait passed its deadline of %.3g s", (double)r->abi.deadline_ns * 1e-9);
    say_waits(w, &t, first);
    rt_report_end(r);
  }
  rt_raise(r->team, ST_DEADLINE, r->index);
}

void rt_report_waits(Worker *w) {
  RtText t;
  if (!w->nwaiting || !rt_report_begin(w->rank, ST_OK, &t)) return;
  rt_say(&t, "stopped while it waited");
  say_waits(w, &t, NULL);
  rt_report_end(w->rank);
}

// ---- what the host hears -------------------------------------------------------------------------------
static void say_rank(RtText *t, const RtTeam *team, int i) {
  const ControlRank *c = rt_control_rank(team, i);
  if (atomic_load_explicit(&c->report_state, memory_order_acquire) != 2) return;
  rt_say(t, "%s%.*s", t->n ? "\n" : "", RT_REPORT_BYTES, c->report);
}

void rt_await_reports(const RtTeam *t) {
  const uint64_t until = os_now_ns() + 200000000;
  uint32_t turn = 0;
  for (int i = 0; i < t->world && os_now_ns() < until;) {
    const ControlRank *c = rt_control_rank(t, i);
    if (atomic_load(&c->report_state) == 2 || atomic_load(&c->state) != PEER_HERE)
      i++;
    else
      rt_backoff(&turn, 1000000);
  }
}

Status rt_team_failure(const RtTeam *t, RtError *e) {
  const uint64_t word = atomic_load_explicit(&t->control->abort, memory_order_acquire);
  if (!word) return ST_OK;
  const Status s = (Status)(word >> 32);
  const int first = (int)(uint32_t)word - 1;
  if (!e) return s;
  RtText text = {e->text, 0, sizeof e->text};
  e->status = s;
  e->text[0] = 0;
  for (int i = 0; i < t->world; i++) {
    const ControlRank *c = rt_control_rank(t, i);
    if (atomic_load(&c->state) == PEER_DEAD)
      rt_say(&text, "%srank %d (process %u) has ended", text.n ? "\n" : "", i, atomic_load(&c->pid));
  }
  say_rank(&text, t, first);
  for (int i = 0; i < t->world; i++) {
    if (i != first) say_rank(&text, t, i);
  }
  return s;
}

bool rt_team_speaks(RtTeam *t) {
  enum { LOWER_MAY_CLAIM = 500, SPEAKER_MAY_TAKE = 2000 }; // milliseconds
  const int me = t->ranks[0].index;
  const uint64_t start = os_now_ns();
  if (t->nlocal == t->world) return true;
  for (uint32_t turn = 0;; rt_backoff(&turn, 1000000)) {
    const uint64_t ms = (os_now_ns() - start) / 1000000;
    uint32_t speaker = atomic_load(&t->control->speaker);
    if (speaker == (uint32_t)me + 1) return true;
    bool mine = true;
    if (speaker) {
      const uint32_t state = atomic_load(&rt_control_rank(t, (int)speaker - 1)->state);
      if (state == PEER_LEFT || ms > SPEAKER_MAY_TAKE) return false;
      mine = state == PEER_DEAD;
    } else if (ms < LOWER_MAY_CLAIM) {
      for (int i = 0; i < me; i++) mine &= atomic_load(&rt_control_rank(t, i)->state) != PEER_HERE;
    }
    if (mine && atomic_compare_exchange_strong(&t->control->speaker, &speaker, (uint32_t)me + 1)) return true;
  }
}
