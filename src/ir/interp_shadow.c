// interp_shadow: what is remembered of memory, and the rule that two accesses break when nothing orders them.
//
// Every 8 bytes have a state: a list of last writes and a list of reads since, each entry with the bytes it touched. States and
// lists are interned, so a state is one number, neighbouring memory with one history has one state, and an access computes
// the step from state to state once for each distinct state that it meets.
#include "ir/interp_check.h"

#include <string.h>

enum { LOOK_BACK = 16 }; // reads looked at for replacement; more are only added to

static uint32_t node(World *w, Entry e, uint32_t next) {
  Check *k = w->chk;
  const Node n = {.e = e, .next = next};
  const uint64_t h = hash_bytes(&n, sizeof n, 1) >> 1;
  uint64_t id;
  if (map_get(&k->node_ids, h, &id) && memcmp(&k->nodes.data[id], &n, sizeof n) == 0) return (uint32_t)id;
  id = k->nodes.len;
  vec_push(&w->arena, &k->nodes, n);
  map_set(&k->node_ids, h, id);
  return (uint32_t)id;
}

static uint32_t state(World *w, ShadowState s) {
  Check *k = w->chk;
  const uint64_t h = hash_bytes(&s, sizeof s, 2) >> 1;
  uint64_t id;
  if (map_get(&k->state_ids, h, &id) && memcmp(&k->states.data[id], &s, sizeof s) == 0) return (uint32_t)id;
  id = k->states.len;
  vec_push(&w->arena, &k->states, s);
  map_set(&k->state_ids, h, id);
  return (uint32_t)id;
}

void shadow_open(World *w) { // state 0: never written; state 1: contents from outside
  Check *k = w->chk;
  map_init(&k->node_ids, &w->arena);
  map_init(&k->state_ids, &w->arena);
  vec_push(&w->arena, &k->nodes, ((Node){.next = 0}));
  state(w, (ShadowState){0});
  state(w, (ShadowState){.written = 0xff});
}

// ---- the rule ------------------------------------------------------------------------------------------------------------
static IrScope scope_between(const World *w, uint32_t a, uint32_t b) {
  const Check *k = w->chk;
  const uint32_t x = k->comps.data[a].origin, y = k->comps.data[b].origin;
  if (x == y) return SCOPE_block;
  return k->origins.data[x].rank == k->origins.data[y].rank ? SCOPE_gpu : SCOPE_sys;
}

static Loc loc_of(const Entry *e) { return e->ins ? e->ins->op->loc : LOC_NONE; }
static const char *verb(const Entry *e) {
  return e->write ? (e->flags & ACC_ATOMIC ? "updates" : "writes") : "reads";
}

static void say_unordered(World *w, const Touch *t, const Entry *old, uint64_t addr, bool scopes) {
  Check *k = w->chk;
  const Entry *now = &t->e;
  const int old_rank = k->origins.data[k->comps.data[old->comp].origin].rank;
  Loc here = loc_of(now), other = loc_of(old);
  const char *what = t->block_name ? t->block_name : interp_where(w, addr, t->esize);
  static const char *const names[] = {"block", "gpu", "sys"};
  InterpFault f = FAULT_RACE;
  const char *why = "nothing orders the two";
  if (scopes) {
    f = FAULT_SCOPE;
    why = arena_printf(&w->arena, "the scopes %s and %s do not hold both", names[now->scope],
                       names[old->scope]);
  } else if ((now->flags | old->flags) & ACC_ASYNC) {
    f = FAULT_PROXY;
    why = "nothing waits for the asynchronous copy";
  } else {
    for (uint32_t i = 0; i < k->weak.len; i++) {
      const WeakEdge *e = &k->weak.data[i];
      if (e->rank != t->rank || !clock_covers(w, e->clock, old->comp, old->epoch)) continue;
      f = FAULT_SCOPE;
      here = e->acquire, other = e->release;
      why = arena_printf(
          &w->arena,
          "the release of %s and the acquire of %s would order them, but their scope %s does not hold both",
          interp_line(w, e->release), interp_line(w, e->acquire), names[e->scope]);
      break;
    }
    if (f == FAULT_RACE && now->write && !old->write && old_rank != t->rank) {
      f = FAULT_SLOT_REUSE;
      why = "the writer has not heard that the reader is done";
    }
  }
  interp_fault(w, f, here.line ? here : other, here.line ? other : here,
               "%s %s %s at %s, which %s %s at %s: %s", check_actor_name(w, now->comp), verb(now), what,
               interp_line(w, loc_of(now)), check_actor_name(w, old->comp), verb(old),
               interp_line(w, loc_of(old)), why);
}

static void compare(World *w, const Touch *t, uint32_t list, uint64_t addr) {
  const Check *k = w->chk;
  for (uint32_t i = list; i; i = k->nodes.data[i].next) {
    const Entry old = k->nodes.data[i].e;
    if (!(old.bytes & t->e.bytes) || old.comp == t->e.comp || old.comp == t->twin) continue;
    if (clock_covers(w, t->seen, old.comp, old.epoch)) continue;
    const bool both = old.flags & t->e.flags & ACC_ATOMIC;
    const bool data = (old.flags & t->e.flags & ACC_DATA) && old.write != t->e.write;
    const bool atomic = both && !data;
    if (atomic) {
      const IrScope need = scope_between(w, old.comp, t->e.comp);
      if (old.scope >= need && t->e.scope >= need) continue;
    }
    say_unordered(w, t, &old, addr + (uint64_t)__builtin_ctz((unsigned)(old.bytes & t->e.bytes)), atomic);
  }
}

// ---- steps from state to state ---------------------------------------------------------------------------------------------
// The list without the bytes of `mask`.
static uint32_t without(World *w, uint32_t list, uint8_t mask, int depth) {
  if (!list || depth > 4096) return 0;
  const Node n = w->chk->nodes.data[list];
  const uint32_t rest = without(w, n.next, mask, depth + 1);
  const uint8_t left = n.e.bytes & (uint8_t)~mask;
  if (!left) return rest;
  if (rest == n.next && left == n.e.bytes) return list;
  Entry e = n.e;
  e.bytes = left;
  return node(w, e, rest);
}

static bool covers_all(World *w, uint32_t list, uint8_t mask) { // every entry lies within the mask
  for (; list; list = w->chk->nodes.data[list].next)
    if (w->chk->nodes.data[list].e.bytes & ~mask) return false;
  return true;
}

// The reads with this one: what it follows in order of happening need not be remembered.
static uint32_t with_read(World *w, const Touch *t, uint32_t list) {
  const Check *k = w->chk;
  Entry kept[LOOK_BACK];
  int n = 0;
  uint32_t i = list;
  for (; i && n < LOOK_BACK; i = k->nodes.data[i].next) {
    const Entry e = k->nodes.data[i].e;
    if (e.comp == t->e.comp && e.epoch == t->e.epoch && e.bytes == t->e.bytes && e.flags == t->e.flags)
      return list;
    const bool inside = !(e.bytes & ~t->e.bytes);
    if (inside && (e.comp == t->e.comp || clock_covers(w, t->seen, e.comp, e.epoch))) continue;
    kept[n++] = e;
  }
  uint32_t r = i;
  while (n) r = node(w, kept[--n], r);
  return node(w, t->e, r);
}

static uint32_t step(World *w, const Touch *t, uint32_t from, uint64_t addr) {
  const ShadowState old = w->chk->states.data[from];
  ShadowState s = old;
  const uint8_t m = t->e.bytes;
  if ((t->kind & ACC_READ) && (old.written & m) != m) {
    const uint64_t at = addr + (uint64_t)__builtin_ctz((unsigned)(m & ~old.written));
    interp_fault(w, FAULT_UNINIT, loc_of(&t->e), LOC_NONE, "%s reads %s at %s, which nothing has written",
                 check_actor_name(w, t->e.comp),
                 t->block_name ? t->block_name : interp_where(w, at, t->esize),
                 interp_line(w, loc_of(&t->e)));
    s.written |= m;
  }
  compare(w, t, old.writes, addr);
  if (!(t->kind & ACC_WRITE)) {
    s.reads = with_read(w, t, old.reads);
    return state(w, s);
  }
  compare(w, t, old.reads, addr);
  s.written |= m;
  s.writes = node(w, t->e, covers_all(w, old.writes, m) ? 0 : without(w, old.writes, m, 0));
  s.reads = covers_all(w, old.reads, m) ? 0 : without(w, old.reads, m, 0);
  return state(w, s);
}

void shadow_touch(World *w, uint32_t *shadow, const Touch *touch, uint64_t addr, uint64_t bytes) {
  Check *k = w->chk;
  Touch t = *touch;
  t.e.bytes = 0xff;
  if (memcmp(&t.e, &k->last, sizeof t.e) != 0 || t.seen != k->last_seen) {
    k->last = t.e;
    k->last_seen = t.seen;
    k->gen++;
  }
  const uint64_t base = t.base & ~7ull, end = addr + bytes;
  uint32_t *s = shadow + (addr - base) / 8;
  for (uint64_t at = addr & ~7ull; at < end; at += 8, s++) {
    uint8_t mask = 0xff;
    if (at < addr) mask &= (uint8_t)(0xff << (addr - at));
    if (end - at < 8) mask &= (uint8_t)(0xff >> (8 - (end - at)));
    if (mask != 0xff) {
      t.e.bytes = mask;
      *s = step(w, &t, *s, at);
      continue;
    }
    Memo *m = &k->memo[*s % MEMOS];
    if (m->gen != k->gen || m->old != *s) {
      const uint32_t old = *s;
      t.e.bytes = 0xff;
      *m = (Memo){k->gen, old, step(w, &t, old, at)};
    }
    *s = m->fresh;
  }
}
