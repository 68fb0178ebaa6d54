// A request to compile as bytes: what one process asks another to compile, so that a crash of the compiler ends only that other.
// All numbers are little-endian; a text is its length in 4 bytes and then its bytes.
//
//   request  u8 version | text path | u8 has a source | text source | text kernel | text target | i32 warps | i32 stages
//            i32 registers | u8 flags: 1 explain, 2 no specialisation, 4 no assertions, 8 only the first variant
//            u32 n, text...                       folders of imported modules
//            u32 n, (text name | value)...        globals
//            u32 n, (text name | value)...        arguments
//   value    u8 kind | u8 dtype | what the kind has: 8 bytes of a pointer, integer or bool; f64; text; a descriptor:
//            u8 axes, then for each i64 size | i64 stride | i32 block
//
// Empty texts of kernel and target stand for none. Bytes that are no request give DT_CORRUPT.
#include "api/compile_impl.h"

#include <string.h>

enum { VERSION = 2, EXPLAIN = 1, NO_SPECIALISE = 2, NO_ASSERTS = 4, FIRST_ONLY = 8, MOST_ITEMS = 4096 };

typedef struct Cursor {
  const char *p, *end;
  Arena *arena;
  bool bad;
} Cursor;

typedef struct Request {
  const char *path, *source, *kernel;
  size_t nsource;
  dt_compile_options o;
  const dt_named *args;
  size_t nargs;
} Request;

static void take(Cursor *c, void *out, size_t n) {
  if (c->bad || (size_t)(c->end - c->p) < n) {
    c->bad = true;
    memset(out, 0, n);
    return;
  }
  memcpy(out, c->p, n);
  c->p += n;
}

static uint8_t take_byte(Cursor *c) {
  uint8_t x;
  take(c, &x, sizeof x);
  return x;
}

static uint32_t take_count(Cursor *c) {
  uint32_t n;
  take(c, &n, sizeof n);
  if (n <= MOST_ITEMS) return n;
  c->bad = true;
  return 0;
}

// A copy with its end; NULL where it is empty.
static const char *take_text(Cursor *c, size_t *len) {
  uint32_t n;
  take(c, &n, sizeof n);
  if (c->bad || (size_t)(c->end - c->p) < n) {
    c->bad = true;
    n = 0;
  }
  if (len) *len = n;
  if (!n) return NULL;
  char *s = arena_array(c->arena, char, (size_t)n + 1);
  take(c, s, n);
  return s;
}

static const dt_desc *take_desc(Cursor *c, dt_dtype dtype) {
  dt_desc *d = arena_new(c->arena, dt_desc);
  d->dtype = dtype;
  d->rank = take_byte(c);
  if (d->rank > DT_MAX_RANK) c->bad = true;
  for (int i = 0; i < d->rank && !c->bad; i++) {
    take(c, &d->shape[i], sizeof d->shape[i]);
    take(c, &d->strides[i], sizeof d->strides[i]);
    take(c, &d->block[i], sizeof d->block[i]);
  }
  return d;
}

static dt_value take_value(Cursor *c) {
  dt_value v = dt_none();
  v.kind = (dt_value_kind)take_byte(c);
  v.dtype = (dt_dtype)take_byte(c);
  if ((unsigned)v.dtype >= DT_NDTYPES) c->bad = true;
  switch (v.kind) {
  case DT_VALUE_NONE:
  case DT_VALUE_DTYPE: break;
  case DT_VALUE_PTR:
  case DT_VALUE_INT:
  case DT_VALUE_BOOL: take(c, &v.u.i, sizeof v.u.i); break;
  case DT_VALUE_FLOAT: take(c, &v.u.f, sizeof v.u.f); break;
  case DT_VALUE_STR:
  case DT_VALUE_FUNC:
    v.u.str = take_text(c, NULL);
    if (!v.u.str) v.u.str = "";
    break;
  case DT_VALUE_DESC: v.u.desc = take_desc(c, v.dtype); break;
  default: c->bad = true;
  }
  return v;
}

static const dt_named *take_named(Cursor *c, size_t *n) {
  *n = take_count(c);
  dt_named *list = arena_array(c->arena, dt_named, *n + 1);
  for (size_t i = 0; i < *n && !c->bad; i++) {
    list[i].name = take_text(c, NULL);
    list[i].value = take_value(c);
    if (!list[i].name) c->bad = true;
  }
  return list;
}

static bool read_request(Cursor *c, Request *r) {
  if (take_byte(c) != VERSION) return false;
  r->path = take_text(c, NULL);
  const bool has_source = take_byte(c);
  r->source = take_text(c, &r->nsource);
  if (has_source && !r->source) r->source = "";
  if (!has_source) r->source = NULL;
  r->kernel = take_text(c, NULL);
  r->o = (dt_compile_options){.size = sizeof r->o, .target = take_text(c, NULL)};
  int32_t warps, stages, registers;
  take(c, &warps, sizeof warps);
  take(c, &stages, sizeof stages);
  take(c, &registers, sizeof registers);
  r->o.num_warps = warps;
  r->o.num_stages = stages;
  r->o.max_registers = registers;
  const uint8_t flags = take_byte(c);
  r->o.explain = flags & EXPLAIN;
  r->o.no_specialise = flags & NO_SPECIALISE;
  r->o.no_asserts = flags & NO_ASSERTS;
  r->o.first_only = flags & FIRST_ONLY;
  const size_t nsearch = take_count(c);
  const char **search = arena_array(c->arena, const char *, nsearch + 1);
  for (size_t i = 0; i < nsearch && !c->bad; i++) {
    if (!(search[i] = take_text(c, NULL))) c->bad = true;
  }
  r->o.search_path = search;
  r->o.globals = take_named(c, &r->o.nglobals);
  r->args = take_named(c, &r->nargs);
  return !c->bad && c->p == c->end && r->path;
}

dt_status dt_compile_request(dt_context *c, const void *bytes, size_t n, bool cached_only, dt_image **out) {
  dt_status st = api_need(c, "dt_compile_request", "bytes", bytes);
  if (st != DT_OK) return st;
  Escape escape;
  Arena arena;
  Request r = {0};
  arena_init(&arena, 0, &escape);
  if (ESCAPE_TRY(&escape)) {
    arena_free(&arena);
    return dt_context_fail(c, DT_NO_MEMORY, "out of memory");
  }
  Cursor cur = {bytes, (const char *)bytes + n, &arena, false};
  if (!read_request(&cur, &r)) {
    st = dt_context_fail(c, DT_CORRUPT, "the bytes are no request to compile of this version");
  } else {
    r.o.cached_only = cached_only;
    st = r.source ? dt_compile_text(c, r.path, r.source, r.nsource, r.kernel, r.args, r.nargs, &r.o, out)
                  : dt_compile_file(c, r.path, r.kernel, r.args, r.nargs, &r.o, out);
  }
  arena_free(&arena);
  return st;
}
