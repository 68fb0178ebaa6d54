// arena: memory that dies with its phase, and the typed arrays that live in it.
//
//   head -> [chunk n: used | cur ... end] -> [chunk n-1: used | top] -> ... -> NULL
//
// Chunks come zeroed from calloc and double in size. A reset clears what it takes back, so that whatever
// lies between cur and end is always zero and arena_alloc never has to clear. Under the address sanitizer
// that same space is poisoned and allocations are spaced apart, so that overruns are caught as with malloc.
//
// An arena belongs to one thread at a time; different arenas are independent.
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
enum { ARENA_GAP = 16 };
#define arena_hide(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define arena_show(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
enum { ARENA_GAP = 0 };
#define arena_hide(p, n) ((void)(p), (void)(n))
#define arena_show(p, n) ((void)(p), (void)(n))
#endif

struct ArenaChunk {
  ArenaChunk *prev;
  size_t size; // whole chunk, header included; what `used` counts
  char *top;   // cur at the time when the next chunk was opened
  char *end;
};

enum { CHUNK_MIN = 4 << 10, CHUNK_MAX = 1 << 20 };

// Per thread, so that a planted failure hits the test's own thread only. 0 = none planted.
static _Thread_local long fail_countdown;

void arena_test_fail_after(long n) { fail_countdown = n; }

static bool planted_failure(void) { return fail_countdown > 0 && --fail_countdown == 0; }

void escape_now(Escape *e, Status s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(e->message, sizeof e->message, fmt, ap);
  va_end(ap);
  e->status = s;
  longjmp(e->jb, 1);
}

void arena_init(Arena *a, size_t limit, Escape *escape) { *a = (Arena){.limit = limit, .escape = escape}; }

static void drop_head(Arena *a) {
  ArenaChunk *c = a->head;
  a->head = c->prev;
  a->used -= c->size;
  arena_show(c, c->size);
  free(c);
}

void arena_free(Arena *a) {
  while (a->head) drop_head(a);
  a->cur = a->end = NULL;
}

// Opens a chunk that holds at least `bytes` at any alignment up to `align`.
static void open_chunk(Arena *a, size_t bytes, size_t align) {
  const size_t room = SIZE_MAX - sizeof(ArenaChunk) - align - ARENA_GAP;
  if (bytes > room) escape_now(a->escape, ST_NO_MEMORY, "out of memory: %zu bytes asked at once", bytes);
  const size_t need = sizeof(ArenaChunk) + bytes + align + ARENA_GAP;
  size_t size = a->head ? a->head->size * 2 : CHUNK_MIN;
  if (size > CHUNK_MAX) size = CHUNK_MAX;
  if (size < need) size = need;
  if (a->limit) {
    const size_t left = a->limit > a->used ? a->limit - a->used : 0;
    if (need > left) {
      escape_now(a->escape, ST_LIMIT, "memory limit of %zu bytes reached: %zu in use, %zu more asked",
                 a->limit, a->used, bytes);
    }
    if (size > left) size = left;
  }
  ArenaChunk *c = planted_failure() ? NULL : calloc(1, size);
  if (!c)
    escape_now(a->escape, ST_NO_MEMORY, "out of memory: %zu bytes in use, %zu more asked", a->used, size);
  if (a->head) a->head->top = a->cur;
  c->prev = a->head;
  c->size = size;
  a->head = c;
  a->used += size;
  a->cur = (char *)(c + 1);
  a->end = c->end = (char *)c + size;
  arena_hide(a->cur, (size_t)(a->end - a->cur));
}

static char *align_up(char *p, size_t align) { return p + (-(uintptr_t)p & (align - 1)); }

void *arena_alloc(Arena *a, size_t bytes, size_t align) {
  char *p = align_up(a->cur, align);
  if (!a->cur || p > a->end || (size_t)(a->end - p) < bytes + ARENA_GAP || bytes > SIZE_MAX - ARENA_GAP) {
    open_chunk(a, bytes, align);
    p = align_up(a->cur, align);
  }
  a->cur = p + bytes + ARENA_GAP;
  arena_show(p, bytes);
  return p;
}

void *arena_alloc_array(Arena *a, size_t n, size_t elem, size_t align) {
  size_t bytes;
  if (__builtin_mul_overflow(n, elem, &bytes)) {
    escape_now(a->escape, ST_NO_MEMORY, "out of memory: an array of %zu elements of %zu bytes", n, elem);
  }
  return arena_alloc(a, bytes, align);
}

void *arena_copy(Arena *a, const void *p, size_t bytes) {
  void *q = arena_alloc(a, bytes, 16);
  if (bytes) memcpy(q, p, bytes);
  return q;
}

char *arena_strdup(Arena *a, const char *s) {
  const size_t n = strlen(s);
  char *q = arena_alloc(a, n + 1, 1);
  memcpy(q, s, n);
  return q;
}

char *arena_vprintf(Arena *a, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  const int n = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  if (n < 0) return arena_strdup(a, "(unprintable)");
  char *q = arena_alloc(a, (size_t)n + 1, 1);
  vsnprintf(q, (size_t)n + 1, fmt, ap);
  return q;
}

char *arena_printf(Arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *q = arena_vprintf(a, fmt, ap);
  va_end(ap);
  return q;
}

ArenaMark arena_mark(const Arena *a) { return (ArenaMark){a->head, a->cur}; }

void arena_reset(Arena *a, ArenaMark m) {
  if (!m.chunk) {
    arena_free(a);
    return;
  }
  char *top = a->cur;
  while (a->head != m.chunk) {
    drop_head(a);
    top = a->head->top;
  }
  const size_t back = (size_t)(top - m.cur);
  arena_show(m.cur, back);
  memset(m.cur, 0, back);
  arena_hide(m.cur, back);
  a->cur = m.cur;
  a->end = m.chunk->end;
}

// Doubles, and grows in place where the array is the arena's latest allocation.
void *vec_grow(Arena *a, void *data, uint32_t len, uint32_t *cap, size_t need, size_t elem) {
  if (need <= *cap) return data;
  if (need > UINT32_MAX) escape_now(a->escape, ST_LIMIT, "an array of %zu elements is too long", need);
  uint64_t want = *cap ? (uint64_t)*cap * 2 : 8;
  if (want < need) want = need;
  if (want > UINT32_MAX) want = UINT32_MAX;
  const size_t old_bytes = (size_t)*cap * elem;
  if (data && !ARENA_GAP && (char *)data + old_bytes == a->cur &&
      (size_t)want - *cap <= (size_t)(a->end - a->cur) / elem) {
    a->cur += ((size_t)want - *cap) * elem;
    *cap = (uint32_t)want;
    return data;
  }
  void *fresh = arena_alloc_array(a, (size_t)want, elem, 16);
  if (len) memcpy(fresh, data, (size_t)len * elem);
  *cap = (uint32_t)want;
  return fresh;
}
