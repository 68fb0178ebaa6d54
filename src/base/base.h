// base: what every other room stands on, and nothing of the field.
//
//   arena   memory that dies with its phase          map    hash map from bytes or words to words
//   vec     typed growable arrays in an arena        bits   small bit tricks
//   str     interned strings                         diag   sources, locations, diagnostics
//   status  one list of status codes                 knobs  the environment, read once
//   os      files, time, threads, processes
//
// Memory ends one way: an arena that cannot grow, or passes its limit, jumps to the Escape that its
// phase installed; nobody else checks for NULL. Only plain C frames may lie between (never LLVM's).
#ifndef DITRON_BASE_H
#define DITRON_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define DT_NORETURN __attribute__((noreturn))
#else
#define DT_PRINTF(f, a)
#define DT_NORETURN
#endif
// What libditron takes from libditron-rt beyond the public header: visible across the two, private to them.
#if defined(__GNUC__)
#define DT_SHARED __attribute__((visibility("default")))
#else
#define DT_SHARED
#endif
#define DT_COUNTOF(a) (sizeof(a) / sizeof((a)[0]))

// ---- status ------------------------------------------------------------------------------------
typedef enum Status {
#define STATUS(name, code, text) ST_##name = code,
#include "status.def"
#undef STATUS
} Status;
const char *status_name(Status s); // "DEADLINE"
const char *status_text(Status s); // one sentence part, no full stop

// ---- arena -------------------------------------------------------------------------------------
// A phase that allocates sets up an Escape with ESCAPE_TRY; arenas made under it jump there.
//     Escape esc;
//     if (ESCAPE_TRY(&esc)) { ... cleanup; return esc.status; }   // second return: memory or a limit ended
typedef struct Escape {
  jmp_buf jb;
  Status status;     // ST_NO_MEMORY or ST_LIMIT, or what escape_now was given
  char message[256]; // what ended, with the numbers
} Escape;
#define ESCAPE_TRY(e) (setjmp((e)->jb) != 0)
void escape_now(Escape *e, Status s, const char *fmt, ...) DT_PRINTF(3, 4) DT_NORETURN;

typedef struct ArenaChunk ArenaChunk;
typedef struct Arena {
  ArenaChunk *head;
  char *cur, *end;
  size_t used, limit; // bytes handed out by chunks; limit 0 = none
  Escape *escape;     // where to go when memory ends; must be set before the first allocation
} Arena;
typedef struct ArenaMark {
  ArenaChunk *chunk;
  char *cur;
} ArenaMark;
void arena_init(Arena *a, size_t limit, Escape *escape);
void arena_free(Arena *a);                               // frees everything; the arena may be used again
void *arena_alloc(Arena *a, size_t bytes, size_t align); // zeroed, never NULL
void *arena_copy(Arena *a, const void *p, size_t bytes); // 16-byte aligned copy
char *arena_strdup(Arena *a, const char *s);
char *arena_printf(Arena *a, const char *fmt, ...) DT_PRINTF(2, 3);
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);
ArenaMark arena_mark(const Arena *a);
void arena_reset(Arena *a, ArenaMark m); // frees what came after the mark
#define arena_new(a, T) ((T *)arena_alloc((a), sizeof(T), _Alignof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc_array((a), (size_t)(n), sizeof(T), _Alignof(T)))
void *arena_alloc_array(Arena *a, size_t n, size_t elem, size_t align); // an overflowing product escapes too

// For tests, on the calling thread only: the Nth chunk allocation from now fails (0 = never).
void arena_test_fail_after(long n);

// ---- vec: growable array in an arena ---------------------------------------------------------------
//     Vec(Value *) vs = {0};  vec_push(&arena, &vs, v);  vs.data[i], vs.len
#define Vec(T) \
  struct { \
    T *data; \
    uint32_t len, cap; \
  }
#define vec_push(a, v, x) (vec_reserve((a), (v), (size_t)(v)->len + 1), (v)->data[(v)->len++] = (x))
#define vec_pop(v) ((v)->data[--(v)->len])
#define vec_last(v) ((v)->data[(v)->len - 1])
#define vec_reserve(a, v, n) \
  ((v)->data = vec_grow((a), (v)->data, (v)->len, &(v)->cap, (size_t)(n), sizeof(*(v)->data)))
void *vec_grow(Arena *a, void *data, uint32_t len, uint32_t *cap, size_t need, size_t elem);

// ---- interned strings ------------------------------------------------------------------------------
// Equal strings of one Strings table are the same pointer. NUL-terminated; may also hold NULs inside.
typedef struct Str {
  uint32_t len, hash;
  char s[];
} Str;
typedef struct Strings Strings;
Strings *strings_new(Arena *a);
const Str *str_intern(Strings *t, const char *s, size_t len);
const Str *str_cstr(Strings *t, const char *s);
const Str *str_printf(Strings *t, const char *fmt, ...) DT_PRINTF(2, 3);

// ---- map: pointer-or-word keys to words, insertion order kept -------------------------------------------
typedef struct MapEntry {
  uint64_t key, value;
} MapEntry;
typedef struct Map {
  Arena *arena;
  Vec(MapEntry) entries; // in the order of insertion; a removed one has key MAP_GONE
  uint32_t *slots, nslots, live;
} Map;
#define MAP_GONE UINT64_MAX // not usable as a key. map_set may move entries; map_del does not
void map_init(Map *m, Arena *a);
bool map_get(const Map *m, uint64_t key, uint64_t *value); // value may be NULL
void map_set(Map *m, uint64_t key, uint64_t value);
bool map_del(Map *m, uint64_t key);
#define map_getp(m, key) map_getp_((m), (uint64_t)(uintptr_t)(key)) // pointer value or NULL
#define map_setp(m, key, value) map_set((m), (uint64_t)(uintptr_t)(key), (uint64_t)(uintptr_t)(value))
void *map_getp_(const Map *m, uint64_t key);
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);

// ---- bits ----------------------------------------------------------------------------------------------
static inline bool bits_pow2(uint64_t x) { return x && !(x & (x - 1)); }
static inline int bits_log2(uint64_t x) { return 63 - __builtin_clzll(x); } // x > 0; floor
static inline uint64_t bits_round_up(uint64_t x, uint64_t to) { return (x + to - 1) / to * to; }
static inline uint64_t bits_div_up(uint64_t x, uint64_t by) { return (x + by - 1) / by; }
static inline uint64_t bits_next_pow2(uint64_t x) { // 0 where it does not fit
  return x <= 1 ? 1 : x > 1ull << 63 ? 0 : 1ull << (64 - __builtin_clzll(x - 1));
}
static inline bool bits_mul_overflow(int64_t a, int64_t b, int64_t *r) {
  return __builtin_mul_overflow(a, b, r);
}

// ---- diagnostics -----------------------------------------------------------------------------------------
// A Loc is a span in a registered source. line and col count from 1, col in bytes; line 0 = no location.
// What is printed counts characters, as editors do.
typedef struct Loc {
  uint32_t file;               // index into Diags' sources
  uint32_t line, col, end_col; // end_col: one past the last column on the same line (0 = unknown)
} Loc;
#define LOC_NONE ((Loc){0, 0, 0, 0})

typedef enum DiagLevel { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE, DIAG_REMARK } DiagLevel;
typedef struct Diag {
  DiagLevel level;
  Loc loc;
  const char *text; // what is wrong; one sentence, no full stop
  const char *hint; // what to write instead; NULL if nothing
} Diag;
typedef struct Source {
  const char *name;
  const char *text; // not owned beyond the Diags' arena
  size_t len;
} Source;
typedef struct Diags {
  Arena *arena;
  Vec(Source) sources;
  Vec(Diag) list;
  uint32_t errors, max_errors; // further errors past max_errors (default 20) are counted, not kept
  bool dropping;               // the latest error was not kept, so neither are its notes and hints
} Diags;
void diags_init(Diags *d, Arena *a);
uint32_t diags_source(Diags *d, const char *name, const char *text, size_t len); // copies both
// A note or hint belongs to the error before it.
void diag(Diags *d, DiagLevel level, Loc loc, const char *fmt, ...) DT_PRINTF(4, 5);
void diag_hint(Diags *d, const char *fmt, ...) DT_PRINTF(2, 3);
// `file.py:3:7: error: text`, the source line, a caret line under the span, `  hint: ...`. No colours.
char *diag_render(const Diags *d, const Diag *g, Arena *a);
char *diags_render(const Diags *d, Arena *a); // all, and "N more errors" where some were dropped

// ---- knobs -----------------------------------------------------------------------------------------------
typedef struct Knobs {
#define KNOB_STR const char *
#define KNOB_INT int64_t
#define KNOB_BOOL bool
#define KNOB(name, env, type, def, text) KNOB_##type name;
#include "knobs.def"
#undef KNOB
} Knobs;
// Reads the environment. A malformed value is an error naming the variable.
Status knobs_read(Knobs *k, Arena *a, Diags *d);

// ---- os ----------------------------------------------------------------------------------------------------
uint64_t os_now_ns(void); // monotonic
void os_sleep_ns(uint64_t ns);
int os_cores(void); // that this process may run on
// Whole file into the arena, NUL-terminated behind len. Refuses files over `limit` bytes (0 = none) with ST_LIMIT.
Status os_read_file(Arena *a, const char *path, size_t limit, char **data, size_t *len);
// Writes beside the target and renames: a reader sees the old file or the new one, never a part.
Status os_write_file(const char *path, const void *data, size_t len);
Status os_mkdirs(const char *path); // like mkdir -p, mode 0700 for what it makes
bool os_exists(const char *path);
bool os_is_dir(const char *path);
const char *
os_code_dir(Arena *a); // the real folder of the library or program that this code is in; NULL if unknown
uint64_t os_code_stamp(void); // changes when the library or program that this code is in is built anew
const char *os_error(void);   // text of errno, thread-local buffer
// Runs a program (argv NULL-terminated, found on PATH), waits, returns its exit code in *code and up to `cap`
// bytes of its stdout+stderr in out. ST_NOT_FOUND where the program does not exist.
Status os_run(const char *const *argv, int *code, char *out, size_t cap);

// The same in steps: a program that starts up while its input is being made.
typedef struct OsChild {
  int64_t pid;    // 0: none
  int to, to_far; // its standard input, and our hold of the end that it reads; -1: it has none
  int from;       // what it says
} OsChild;
// input: it reads what os_child_give brings, else it has no input. set: "NAME=VALUE" for its environment where that
// has no such name, or NULL.
Status os_child_start(OsChild *c, const char *const *argv, bool input, const char *set);
// All of its input. One that ends early misses the rest; what it says meanwhile must fit into a pipe.
void os_child_give(OsChild *c, const void *p, size_t n);
Status os_child_wait(OsChild *c, int *code, char *out, size_t cap); // as os_run; *c is none afterwards
void os_child_end(OsChild *c);                                      // kills it where it still runs

// ---- hash128: names cache entries and kernels (XXH3 of libxxhash; not cryptographic) -------------------------
typedef struct Hash128 Hash128;
Hash128 *hash128_new(Arena *a);
void hash128_add(Hash128 *h, const void *p, size_t n);
void hash128_hex(Hash128 *h, char out[33]); // 32 hex digits and NUL

// ---- numbers: the small float formats, in one place ---------------------------------------------------------
// All conversions to narrow types round to nearest, ties to even. f8e4m3 saturates (fn: no infinity);
// f8e5m2 has infinities, but narrowing to it saturates to the largest finite value too, as NVIDIA's cvt.satfinite does.
float f16_to_f32(uint16_t h);
uint16_t f16_from_f32(float f);
uint16_t f16_from_f64(double d);
static inline float bf16_to_f32(uint16_t h) {
  union {
    uint32_t u;
    float f;
  } x = {(uint32_t)h << 16};
  return x.f;
}
uint16_t bf16_from_f32(float f);
float f8e4m3_to_f32(uint8_t b);
uint8_t f8e4m3_from_f32(float f);
float f8e5m2_to_f32(uint8_t b);
uint8_t f8e5m2_from_f32(float f);

// A small deterministic generator (splitmix64) for schedules, fuzzers and random fills.
typedef struct Rng {
  uint64_t s;
} Rng;
uint64_t rng_next(Rng *r);
double rng_unit(Rng *r); // [0, 1)

#endif
