// The compiler's side of the disk cache. Two kinds of entries, both valid while all files they were made of hash the same:
//
//   signature   of a file's kernel: names of the parameters and what about them decides specialisation. With it a hit needs
//               no parsing at all.
//   image       of a kernel for given specs, options and machine
//
// Either is: number of files, then for each its path and hash, then the contents. Imported modules are not known before the front end
// has run, so they cannot be part of the key.
#include "api/compile_impl.h"

#include <string.h>

// ---- keys ------------------------------------------------------------------------------------------------------------
static void add_text(Hash128 *h, const char *s) { hash128_add(h, s ? s : "\1", s ? strlen(s) + 1 : 2); }
static void add_const(Hash128 *h, const FrontConst *v) {
  hash128_add(h, &v->kind, sizeof v->kind);
  hash128_add(h, &v->i, sizeof v->i);
  hash128_add(h, &v->is_unsigned, sizeof v->is_unsigned);
  hash128_add(h, &v->f, sizeof v->f);
  hash128_add(h, &v->dtype, sizeof v->dtype);
  add_text(h, v->s);
}

// What both kinds share: this compiler, the source's name, what the caller binds.
static Hash128 *begin_key(Compile *c, const char *kind, const char *kernel) {
  Hash128 *h = hash128_new(&c->call->arena);
  add_text(h, kind);
  add_text(h, dt_version());
  const uint64_t build = os_code_stamp();
  hash128_add(h, &build, sizeof build);
  add_text(h, c->source.path);
  hash128_add(h, &(char){c->source.text != NULL}, 1);
  if (c->source.text) hash128_add(h, c->source.text, c->source.len); // many texts may have one name
  add_text(h, kernel);
  for (int i = 0; i < c->front.nsearch; i++) add_text(h, c->front.search[i]);
  add_text(h, NULL);
  for (int i = 0; i < c->front.nglobals; i++) {
    add_text(h, c->front.globals[i].name);
    add_const(h, &c->front.globals[i].value);
  }
  return h;
}

static void signature_key(Compile *c, char key[33]) {
  hash128_hex(begin_key(c, "signature", c->kernel), key);
}

static void image_key(Compile *c, bool first_only, char key[33]) {
  Hash128 *h = begin_key(c, "image", c->chosen->name);
  add_text(h, c->target.target);
  add_text(h, c->target.cpu);
  const uint64_t machine = c->target.cpu ? 0 : image_cpu_identity(); // asking LLVM instead would start it up
  hash128_add(h, &machine, sizeof machine);
  int numbers[] = {c->o.num_warps,  c->o.num_stages, c->o.max_registers,    c->o.no_specialise,
                   c->o.no_asserts, c->target.opt,   c->target.debug_lines, first_only};
  hash128_add(h, numbers, sizeof numbers);
  for (int i = 0; i < c->nspecs; i++) {
    const FrontSpec *f = &c->specs[i];
    add_text(h, f->name);
    hash128_add(h, &f->kind, sizeof f->kind);
    hash128_add(h, &f->dtype, sizeof f->dtype);
    hash128_add(h, &f->divisible, sizeof f->divisible);
    hash128_add(h, &f->rank, sizeof f->rank);
    hash128_add(h, f->block, sizeof f->block);
    add_const(h, &f->value);
  }
  hash128_hex(h, key);
}

// ---- reading and writing entries ------------------------------------------------------------------------------------------
typedef struct Cursor {
  const char *p, *end;
} Cursor;
static bool take(Cursor *c, void *out, size_t n) {
  if ((size_t)(c->end - c->p) < n) return false;
  memcpy(out, c->p, n);
  c->p += n;
  return true;
}
// A copy with its end, or NULL.
static const char *take_text(Cursor *c, Arena *a) {
  uint32_t n;
  if (!take(c, &n, sizeof n) || (size_t)(c->end - c->p) < n) return NULL;
  char *s = arena_array(a, char, (size_t)n + 1);
  memcpy(s, c->p, n);
  c->p += n;
  return s;
}

typedef struct Bytes {
  Arena *arena;
  Vec(char) v;
} Bytes;
static void put(Bytes *b, const void *p, size_t n) {
  if (!n) return;
  vec_reserve(b->arena, &b->v, b->v.len + n);
  memcpy(b->v.data + b->v.len, p, n);
  b->v.len += (uint32_t)n;
}
static void put_text(Bytes *b, const char *s) {
  uint32_t n = (uint32_t)strlen(s);
  put(b, &n, sizeof n);
  put(b, s, n);
}

static void hash_of(Arena *a, const void *p, size_t n, char out[33]) {
  Hash128 *h = hash128_new(a);
  hash128_add(h, p, n);
  hash128_hex(h, out);
}

static void put_files(Compile *c, Bytes *b) {
  const Diags *d = &c->call->diags;
  put(b, &d->sources.len, sizeof(uint32_t));
  for (uint32_t i = 0; i < d->sources.len; i++) {
    const Source *s = &d->sources.data[i];
    char hash[33];
    hash_of(b->arena, s->text, s->len, hash);
    put_text(b, s->name);
    put(b, hash, sizeof hash);
  }
}

// Moves the cursor behind the files if all of them are as they were.
static bool files_unchanged(Compile *c, Cursor *cur) {
  Arena *a = &c->call->arena;
  uint32_t files;
  if (!take(cur, &files, sizeof files) || files > 1024) return false;
  for (uint32_t i = 0; i < files; i++) {
    char want[33], have[33], *data;
    size_t size;
    const char *path = take_text(cur, a);
    if (!path || !take(cur, want, sizeof want)) return false;
    if (i == 0 && c->source.text) { // given as text: not on disk
      hash_of(a, c->source.text, c->source.len, have);
    } else {
      if (os_read_file(a, path, 0, &data, &size) != ST_OK) return false;
      hash_of(a, data, size, have);
    }
    if (memcmp(want, have, sizeof want) != 0) return false;
  }
  return true;
}

static bool find(Compile *c, const char key[33], Cursor *cur) {
  void *entry;
  size_t n;
  if (!rt_cache_get(c->call->context->cache, key, &c->call->arena, &entry, &n)) return false;
  *cur = (Cursor){entry, (const char *)entry + n};
  return files_unchanged(c, cur);
}

// ---- signatures --------------------------------------------------------------------------------------------------------------
enum { CONSTEXPR = 1, NO_SPECIALIZE = 2, HAS_DEFAULT = 4, MOST_PARAMS = 4096 };

static void put_signature(Bytes *b, const FrontKernel *k) {
  put_text(b, k->name);
  put(b, &k->nparams, sizeof k->nparams);
  for (int i = 0; i < k->nparams; i++) {
    const FrontParam *p = &k->params[i];
    const char flags = (char)((p->is_constexpr ? CONSTEXPR : 0) | (p->no_specialize ? NO_SPECIALIZE : 0) |
                              (p->has_default ? HAS_DEFAULT : 0));
    put(b, &flags, 1);
    put(b, &p->dtype, sizeof p->dtype);
    put_text(b, p->name);
  }
}

static bool take_signature(Cursor *cur, Arena *a, FrontKernel *k) {
  *k = (FrontKernel){.name = take_text(cur, a)};
  if (!k->name || !take(cur, &k->nparams, sizeof k->nparams) || k->nparams < 0 || k->nparams > MOST_PARAMS)
    return false;
  k->params = arena_array(a, FrontParam, k->nparams + 1);
  for (int i = 0; i < k->nparams; i++) {
    FrontParam *p = &k->params[i];
    char flags;
    if (!take(cur, &flags, 1) || !take(cur, &p->dtype, sizeof p->dtype) || !(p->name = take_text(cur, a)))
      return false;
    p->is_constexpr = flags & CONSTEXPR;
    p->no_specialize = flags & NO_SPECIALIZE;
    p->has_default = flags & HAS_DEFAULT;
  }
  return true;
}

// ---- the calls -----------------------------------------------------------------------------------------------------------------
bool compile_cached_as(Compile *c, const void **image, size_t *n) {
  char key[33];
  Cursor cur;
  image_key(c, false, key);
  if (!find(c, key, &cur)) { // one with all variants does as well
    if (!c->o.first_only) return false;
    image_key(c, true, key);
    if (!find(c, key, &cur)) return false;
  }
  *image = cur.p;
  *n = (size_t)(cur.end - cur.p);
  return true;
}

bool compile_cached(Compile *c, const void **image, size_t *n) {
  char key[33];
  Cursor cur;
  FrontKernel k;
  signature_key(c, key);
  if (!find(c, key, &cur) || !take_signature(&cur, &c->call->arena, &k)) return false;
  Diags *d = &c->call->diags, silent;
  const Diags before = *d;
  diags_init(&silent, &c->call->arena);
  *d = silent; // what is wrong with the arguments is said by the slow way, which knows the places
  c->chosen = &k;
  const bool hit = compile_choose_specs(c) == ST_OK && compile_cached_as(c, image, n);
  *d = before;
  c->chosen = NULL;
  c->nspecs = 0;
  return hit;
}

static void keep(Compile *c, const char key[33], const Bytes *b) {
  rt_cache_put(c->call->context->cache, key, b->v.data, b->v.len);
}

void compile_keep_signature(Compile *c) {
  char key[33];
  Bytes b = {.arena = &c->call->arena};
  put_files(c, &b);
  put_signature(&b, c->chosen);
  signature_key(c, key);
  keep(c, key, &b);
}

void compile_keep(Compile *c, const void *image, size_t n) {
  char key[33];
  Bytes b = {.arena = &c->call->arena};
  put_files(c, &b);
  put(&b, image, n);
  image_key(c, c->o.first_only, key);
  keep(c, key, &b);
}
