// heap: symmetric memory. Every rank keeps the same list of blocks, because all of them make the same calls in the same
// order; only the words they say when they meet are exchanged, and compared.
#include "rt/rt_impl.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALIGN = 256 };

// ---- plain memory --------------------------------------------------------------------------------------
Status rt_alloc(RtRank *r, uint64_t bytes, void **out, RtError *e) {
  return r->team->driver->alloc(r, bytes, out, e);
}

void rt_free(RtRank *r, void *p) {
  if (p) r->team->driver->free(r, p);
}

// ---- segments ------------------------------------------------------------------------------------------
static char *heap_of(const RtTeam *t, int rank) {
  return t->map + t->control_bytes + (uint64_t)rank * t->heap_bytes;
}

void *rt_peer_address(const RtRank *r, const void *p, uint64_t bytes, int peer) {
  const uint64_t at = (uint64_t)(uintptr_t)p;
  if (peer < 0 || peer >= r->team->world) return NULL;
  const uint32_t n = r->abi.nsegments;
  for (uint32_t i = 0; i < n; i++) {
    const AbiSegment *s = &r->abi.segments[i];
    const uint64_t off = at - s->base;
    if (off < s->bytes && bytes <= s->bytes - off) return (void *)(uintptr_t)(s->peer_base[peer] + off);
  }
  return NULL;
}

Status rt_symm_peer(const RtRank *r, const void *p, int peer, void **out, RtError *e) {
  if (peer < 0 || peer >= r->team->world)
    return rt_fail(e, ST_INVALID, "rank %d does not exist; the team has ranks 0 to %d", peer,
                   r->team->world - 1);
  void *q = rt_peer_address(r, p, 1, peer);
  if (!q) return rt_fail(e, ST_INVALID, "%p is not symmetric memory of rank %d", p, r->index);
  *out = q;
  return ST_OK;
}

static bool add_segment(RtRank *r, uint32_t i, uint64_t bytes, const char *label) {
  uint64_t *bases = r->segments.bases[i];
  if (!bases) bases = r->segments.bases[i] = calloc((size_t)r->team->world, sizeof *bases);
  if (!bases) return false;
  r->segments.abi[i] = (AbiSegment){.bytes = bytes, .peer_base = bases};
  snprintf(r->segments.labels[i], RT_LABEL, "%s", label);
  return true;
}

static Status show_segments(RtRank *r, RtError *e) {
  uint32_t n = RT_MAX_SEGMENTS;
  while (n > 1 && !r->segments.abi[n - 1].bytes) n--;
  __atomic_store_n(&r->abi.nsegments, n, __ATOMIC_RELEASE);
  return r->team->driver->show_segments(r, e);
}

// The device's own memory, once somebody asks for some; such teams have one rank.
static Status own_heap(RtRank *r, RtError *e) {
  void *p;
  AbiSegment *s = &r->segments.abi[0];
  const Status st = r->team->driver->alloc(r, r->team->heap_bytes, &p, e);
  if (st != ST_OK) return st;
  s->base = r->segments.bases[0][r->index] = (uint64_t)(uintptr_t)p;
  s->bytes = r->team->heap_bytes;
  r->dirty = s->bytes; // whatever it holds
  return show_segments(r, e);
}

Status rt_heap_init(RtRank *r, RtError *e) {
  pthread_mutex_init(&r->heap_lock, NULL);
  r->blocks_cap = 16;
  r->blocks = calloc(r->blocks_cap, sizeof *r->blocks);
  if (!r->blocks || !add_segment(r, 0, r->team->heap_bytes, "symmetric heap")) return rt_no_memory(e);
  r->blocks[0] = (HeapBlock){.bytes = r->team->heap_bytes};
  r->nblocks = 1;
  r->abi.segments = r->segments.abi;
  r->abi.nsegments = 1;
  if (r->team->driver->own_heap) {
    r->segments.abi[0].bytes = 0;
    return ST_OK;
  }
  for (int i = 0; i < r->team->world; i++) r->segments.bases[0][i] = (uint64_t)(uintptr_t)heap_of(r->team, i);
  r->segments.abi[0].base = r->segments.bases[0][r->index];
  return ST_OK;
}

void rt_heap_free(RtRank *r) {
  free(r->blocks);
  for (uint32_t i = 0; i < RT_MAX_SEGMENTS; i++) free(r->segments.bases[i]);
  pthread_mutex_destroy(&r->heap_lock);
}

// ---- the heap's blocks -----------------------------------------------------------------------------------
static uint32_t first_fit(const RtRank *r, uint64_t bytes) {
  uint32_t i = 0;
  while (i < r->nblocks && (r->blocks[i].used || r->blocks[i].bytes < bytes)) i++;
  return i;
}

static bool blocks_reserve(RtRank *r) {
  if (r->nblocks < r->blocks_cap) return true;
  HeapBlock *more = realloc(r->blocks, sizeof *more * r->blocks_cap * 2);
  if (!more) return false;
  r->blocks = more;
  r->blocks_cap *= 2;
  return true;
}

static void take_block(RtRank *r, uint32_t i, uint64_t bytes, const char *label) {
  HeapBlock *b = &r->blocks[i];
  if (b->bytes > bytes) {
    memmove(b + 2, b + 1, (r->nblocks - i - 1) * sizeof *b);
    b[1] = (HeapBlock){.offset = b->offset + bytes, .bytes = b->bytes - bytes};
    r->nblocks++;
    b->bytes = bytes;
  }
  b->used = true;
  snprintf(b->label, sizeof b->label, "%s", label ? label : "symmetric");
  if (r->dirty < b->offset + bytes) r->dirty = b->offset + bytes;
}

static void merge_with_next(RtRank *r, uint32_t i) {
  HeapBlock *b = &r->blocks[i];
  if (i + 1 >= r->nblocks || b[0].used || b[1].used) return;
  b->bytes += b[1].bytes;
  memmove(b + 1, b + 2, (r->nblocks - i - 2) * sizeof *b);
  r->nblocks--;
}

Status rt_symm_alloc(RtRank *r, uint64_t bytes, const char *label, void **out, RtError *e) {
  const uint64_t size = bytes > UINT64_MAX / 2 ? bytes : bits_round_up(bytes ? bytes : 1, ALIGN);
  const uint32_t i = first_fit(r, size);
  const bool fits = i < r->nblocks;
  Status s = ST_OK;
  if (fits && !r->segments.abi[0].bytes) s = own_heap(r, e);
  if (s != ST_OK) return s;
  char *p = fits ? (char *)(uintptr_t)r->segments.abi[0].base + r->blocks[i].offset : NULL;
  // zeroed before the others may write to it
  if (fits && r->blocks[i].offset < r->dirty) {
    const uint64_t old = r->dirty - r->blocks[i].offset;
    s = r->team->driver->zero(r, p, old < size ? old : size, e);
    if (s != ST_OK) return s;
  }
  s = rt_collective(r, "symm_alloc", bytes, NULL, 0, NULL, e);
  if (s != ST_OK) return s;
  if (!fits)
    return rt_fail(e, ST_NO_MEMORY, "the symmetric heap of %llu bytes a rank has no room for %llu more",
                   (unsigned long long)r->team->heap_bytes, (unsigned long long)bytes);
  pthread_mutex_lock(&r->heap_lock);
  const bool ok = blocks_reserve(r);
  if (ok) take_block(r, i, size, label);
  pthread_mutex_unlock(&r->heap_lock);
  if (!ok) return rt_no_memory(e);
  *out = p;
  return ST_OK;
}

Status rt_symm_free(RtRank *r, void *p, RtError *e) {
  const uint64_t at = (uint64_t)(uintptr_t)p - r->segments.abi[0].base;
  uint32_t i = 0;
  while (i < r->nblocks && (r->blocks[i].offset != at || !r->blocks[i].used)) i++;
  const bool found = i < r->nblocks;
  const Status s = rt_collective(r, "symm_free", found ? at : UINT64_MAX, NULL, 0, NULL, e);
  // After a failure of the team each rank frees by itself: some may have met before it and others not, and the lists of
  // blocks must stay alike.
  if (s != ST_OK && (!found || !rt_aborted(r->team))) return s;
  if (!found) return rt_fail(e, ST_INVALID, "%p is not what symm_alloc gave", p);
  pthread_mutex_lock(&r->heap_lock);
  r->blocks[i].used = false;
  merge_with_next(r, i);
  if (i) merge_with_next(r, i - 1);
  pthread_mutex_unlock(&r->heap_lock);
  return s;
}

// ---- registered buffers ----------------------------------------------------------------------------------
Status rt_symm_register(RtRank *r, void *p, uint64_t bytes, const char *label, RtError *e) {
  if (r->team->transport->processes)
    return rt_fail(e, ST_UNSUPPORTED,
                   "other processes cannot reach memory of this one; take it from symm_alloc");
  uint32_t i = 1;
  while (i < RT_MAX_SEGMENTS && r->segments.abi[i].bytes) i++;
  const uint64_t mine = (uint64_t)(uintptr_t)p;
  uint64_t all[RT_MAX_RANKS];
  const Status s = rt_collective(r, "symm_register", bytes, &mine, sizeof mine, all, e);
  if (s != ST_OK) return s;
  if (!p || !bytes) return rt_fail(e, ST_INVALID, "an empty buffer cannot be registered");
  if (i == RT_MAX_SEGMENTS)
    return rt_fail(e, ST_LIMIT, "%d buffers are registered already, which is the most", RT_MAX_SEGMENTS - 1);
  if (!add_segment(r, i, bytes, label ? label : "registered")) return rt_no_memory(e);
  for (int k = 0; k < r->team->world; k++) r->segments.bases[i][k] = all[k];
  r->segments.abi[i].base = mine;
  return show_segments(r, e);
}

Status rt_symm_unregister(RtRank *r, void *p, RtError *e) {
  uint32_t i = 1;
  while (i < RT_MAX_SEGMENTS &&
         (!r->segments.abi[i].bytes || r->segments.abi[i].base != (uint64_t)(uintptr_t)p))
    i++;
  const Status s = rt_collective(r, "symm_unregister", i, NULL, 0, NULL, e);
  if (s != ST_OK) return s;
  if (i == RT_MAX_SEGMENTS) return rt_fail(e, ST_INVALID, "%p is not a registered buffer", p);
  r->segments.abi[i].bytes = 0;
  return show_segments(r, e);
}
