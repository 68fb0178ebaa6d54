// map: words to words by open addressing, and interned strings on the same scheme.
//
//   slots   [ 0 | 3 | 0 | 1 | GONE | 2 ]     0 = free, otherwise 1 + index into entries
//   entries [ (k,v) (k,v) (k,v) ]            in the order of insertion
//
// At most half of the slots are in use (removed ones count until the next rebuild), probing is linear.
// A map belongs to one thread at a time.
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define SLOT_GONE UINT32_MAX

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

void map_init(Map *m, Arena *a) { *m = (Map){.arena = a}; }

// The slot that holds key, or the free slot that ends its probe sequence.
static uint32_t *find_slot(const Map *m, uint64_t key) {
  const uint32_t mask = m->nslots - 1;
  for (uint32_t i = (uint32_t)mix(key) & mask;; i = (i + 1) & mask) {
    uint32_t *s = &m->slots[i];
    if (*s == 0 || (*s != SLOT_GONE && m->entries.data[*s - 1].key == key)) return s;
  }
}

bool map_get(const Map *m, uint64_t key, uint64_t *value) {
  if (!m->live || key == MAP_GONE) return false;
  const uint32_t s = *find_slot(m, key);
  if (s == 0) return false;
  if (value) *value = m->entries.data[s - 1].value;
  return true;
}

void *map_getp_(const Map *m, uint64_t key) {
  uint64_t v;
  return map_get(m, key, &v) ? (void *)(uintptr_t)v : NULL;
}

// Drops removed entries, keeps the order, and gives every entry a slot again.
static void rebuild(Map *m, uint32_t nslots) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < m->entries.len; i++) {
    if (m->entries.data[i].key != MAP_GONE) m->entries.data[kept++] = m->entries.data[i];
  }
  m->entries.len = kept;
  if (nslots == m->nslots) {
    memset(m->slots, 0, nslots * sizeof *m->slots);
  } else {
    m->slots = arena_array(m->arena, uint32_t, nslots);
    m->nslots = nslots;
  }
  for (uint32_t i = 0; i < kept; i++) *find_slot(m, m->entries.data[i].key) = i + 1;
}

void map_set(Map *m, uint64_t key, uint64_t value) {
  if (key == MAP_GONE)
    escape_now(m->arena->escape, ST_INTERNAL, "map key %llx is reserved", (unsigned long long)key);
  if (m->nslots) {
    const uint32_t s = *find_slot(m, key);
    if (s) {
      m->entries.data[s - 1].value = value;
      return;
    }
  }
  // entries.len counts removed ones too, as their slots still lengthen the probes
  if ((uint64_t)(m->entries.len + 1) * 2 > m->nslots) {
    if (m->nslots >= 1u << 31) escape_now(m->arena->escape, ST_LIMIT, "a map of %u entries is full", m->live);
    const bool crowded = (uint64_t)(m->live + 1) * 3 > m->nslots;
    rebuild(m, m->nslots == 0 ? 16 : crowded ? m->nslots * 2 : m->nslots);
  }
  vec_push(m->arena, &m->entries, ((MapEntry){key, value}));
  *find_slot(m, key) = m->entries.len;
  m->live++;
}

bool map_del(Map *m, uint64_t key) {
  if (!m->live || key == MAP_GONE) return false;
  uint32_t *s = find_slot(m, key);
  if (*s == 0) return false;
  m->entries.data[*s - 1].key = MAP_GONE;
  *s = SLOT_GONE;
  m->live--;
  return true;
}

// ---- interned strings --------------------------------------------------------------------------

struct Strings {
  Arena *arena;
  const Str **slots; // NULL = free
  uint32_t nslots, live;
};

Strings *strings_new(Arena *a) {
  Strings *t = arena_new(a, Strings);
  t->arena = a;
  t->nslots = 64;
  t->slots = arena_array(a, const Str *, t->nslots);
  return t;
}

static const Str **string_slot(const Strings *t, const char *s, size_t len, uint32_t hash) {
  const uint32_t mask = t->nslots - 1;
  for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
    const Str *x = t->slots[i];
    if (!x || (x->hash == hash && x->len == len && memcmp(x->s, s, len) == 0)) return &t->slots[i];
  }
}

static void strings_double(Strings *t) {
  const Str **old = t->slots;
  const uint32_t n = t->nslots;
  t->slots = arena_array(t->arena, const Str *, (size_t)n * 2);
  t->nslots = n * 2;
  for (uint32_t i = 0; i < n; i++) {
    if (old[i]) *string_slot(t, old[i]->s, old[i]->len, old[i]->hash) = old[i];
  }
}

const Str *str_intern(Strings *t, const char *s, size_t len) {
  if (len >= UINT32_MAX) escape_now(t->arena->escape, ST_LIMIT, "a string of %zu bytes is too long", len);
  if (!len) s = "";
  const uint32_t hash = (uint32_t)hash_bytes(s, len, 0);
  const Str **slot = string_slot(t, s, len, hash);
  if (*slot) return *slot;
  Str *x = arena_alloc(t->arena, sizeof(Str) + len + 1, _Alignof(Str));
  x->len = (uint32_t)len;
  x->hash = hash;
  memcpy(x->s, s, len);
  if ((t->live + 1) * 2 > t->nslots) {
    strings_double(t);
    slot = string_slot(t, s, len, hash);
  }
  *slot = x;
  t->live++;
  return x;
}

const Str *str_cstr(Strings *t, const char *s) { return str_intern(t, s, strlen(s)); }

const Str *str_printf(Strings *t, const char *fmt, ...) {
  char small[256];
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  const int n = vsnprintf(small, sizeof small, fmt, ap);
  va_end(ap);
  const Str *x;
  if (n < (int)sizeof small) {
    x = str_intern(t, small, n < 0 ? 0 : (size_t)n);
  } else {
    x = str_cstr(t, arena_vprintf(t->arena, fmt, again));
  }
  va_end(again);
  return x;
}
