// interp_clock: vector clocks of the checker.
//
// A clock says, for each actor that it has heard of, up to which of its epochs all is known to have happened. Actors are many
// (every warp of every instance), so a clock lists only those it knows; what was run by commands of a stream that are known
// to be over needs no entry: done[stream] says how many of its commands are.
//
//   covers(c, actor, epoch) = c.entry[actor] >= epoch, or the actor's command < c.done[its stream]
//
// Clocks are immutable once shared: counted references, and a join makes a new one unless nothing changes.
#include "ir/interp_check.h"

#include <string.h>

static size_t clock_bytes(const Check *k, uint32_t cap) {
  return sizeof(Clock) + k->nstreams * sizeof(uint32_t) + cap * sizeof(ClockEntry);
}

static Clock *clock_new(World *w, uint32_t cap) {
  Check *k = w->chk;
  Clock *c = interp_pool_get(w, clock_bytes(k, cap));
  c->refs = 1;
  c->n = 0;
  c->cap = cap;
  c->done = (uint32_t *)(c + 1);
  c->e = (ClockEntry *)(c->done + k->nstreams);
  memset(c->done, 0, k->nstreams * sizeof(uint32_t));
  return c;
}

Clock *clock_keep(Clock *c) {
  if (c) c->refs++;
  return c;
}

void clock_drop(World *w, Clock *c) {
  if (!c || --c->refs) return;
  interp_pool_put(w, c, clock_bytes(w->chk, c->cap));
}

static bool is_done(const Check *k, const uint32_t *done, uint32_t comp) {
  const Origin *o = &k->origins.data[k->comps.data[comp].origin];
  return o->stream >= 0 && done[o->stream] > o->at;
}

bool clock_covers(const World *w, const Clock *c, uint32_t comp, uint32_t epoch) {
  if (!c) return false;
  uint32_t lo = 0, hi = c->n;
  while (lo < hi) {
    const uint32_t mid = (lo + hi) / 2;
    if (c->e[mid].comp < comp)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo < c->n && c->e[lo].comp == comp && c->e[lo].epoch >= epoch) return true;
  return is_done(w->chk, c->done, comp);
}

// All that `c` knows is known to `into`.
static bool contains(const World *w, const Clock *into, const Clock *c) {
  const Check *k = w->chk;
  for (uint32_t s = 0; s < k->nstreams; s++)
    if (into->done[s] < c->done[s]) return false;
  uint32_t i = 0;
  for (uint32_t j = 0; j < c->n; j++) {
    while (i < into->n && into->e[i].comp < c->e[j].comp) i++;
    if (i < into->n && into->e[i].comp == c->e[j].comp && into->e[i].epoch >= c->e[j].epoch) continue;
    if (!is_done(k, into->done, c->e[j].comp)) return false;
  }
  return true;
}

static void push(const Check *k, Clock *c, ClockEntry e) {
  if (!is_done(k, c->done, e.comp)) c->e[c->n++] = e;
}

void clock_join(World *w, Clock **into, const Clock *c) {
  const Check *k = w->chk;
  Clock *a = *into;
  if (!c || a == c) return;
  if (!a) {
    *into = clock_keep((Clock *)c);
    return;
  }
  if (contains(w, a, c)) return;
  if (contains(w, c, a)) {
    clock_drop(w, a);
    *into = clock_keep((Clock *)c);
    return;
  }
  Clock *r = clock_new(w, a->n + c->n);
  for (uint32_t s = 0; s < k->nstreams; s++) r->done[s] = a->done[s] > c->done[s] ? a->done[s] : c->done[s];
  uint32_t i = 0, j = 0;
  while (i < a->n || j < c->n) {
    if (j >= c->n || (i < a->n && a->e[i].comp < c->e[j].comp)) {
      push(k, r, a->e[i++]);
    } else if (i >= a->n || c->e[j].comp < a->e[i].comp) {
      push(k, r, c->e[j++]);
    } else {
      push(k, r, a->e[i].epoch > c->e[j].epoch ? a->e[i] : c->e[j]);
      i++, j++;
    }
  }
  clock_drop(w, a);
  *into = r;
}

void clock_add(World *w, Clock **into, const ClockEntry *e, uint32_t n) {
  Clock *t = clock_new(w, n);
  for (uint32_t i = 0; i < n; i++) { // sorted; they are few
    uint32_t at = t->n++;
    while (at && t->e[at - 1].comp > e[i].comp) {
      t->e[at] = t->e[at - 1];
      at--;
    }
    t->e[at] = e[i];
  }
  clock_join(w, into, t);
  clock_drop(w, t);
}

void clock_set_done(World *w, Clock **into, uint32_t stream, uint32_t commands) {
  const Clock *old = *into;
  Clock *t = clock_new(w, old ? old->n : 0);
  if (old) memcpy(t->done, old->done, w->chk->nstreams * sizeof(uint32_t));
  if (t->done[stream] < commands) t->done[stream] = commands;
  for (uint32_t i = 0; old && i < old->n; i++) push(w->chk, t, old->e[i]);
  clock_drop(w, *into);
  *into = t;
}
