// From a source file to an image: front end, passes, target, disk cache.
#include "api/compile_impl.h"

#include <stdlib.h>
#include <string.h>

Status compile_front(Compile *c) {
  return front_compile(&c->call->arena, &c->call->diags, c->ctx, &c->source, c->chosen->name, c->specs, c->nspecs, &c->front,
                       &c->module);
}

Status compile_machine(Compile *c, PassMachine *out) {
  TargetFacts facts;
  Status s = target_facts(&c->target, &c->call->arena, &c->call->diags, &facts);
  if (s != ST_OK) return s;
  *out = (PassMachine){.vector_bits = (int)facts.vector_bits};
  return ST_OK;
}

// The image's arguments are the launch's: parameters that the code has folded (an integer that is 1, None) appear as fixed ones.
static void add_fixed_args(Compile *c, ImageVariant *v) {
  ImageArg *all = arena_array(&c->call->arena, ImageArg, c->chosen->nparams + (int)v->nargs);
  uint32_t n = 0, passed = 0;
  for (int i = 0; i < c->chosen->nparams; i++) {
    const FrontParam *p = &c->chosen->params[i];
    const FrontSpec *spec = compile_spec_of(c, p->name);
    if (p->is_constexpr || !spec) continue;
    if (spec->kind == FRONT_CONST) {
      bool is_int = spec->value.kind == FCONST_INT || spec->value.kind == FCONST_BOOL;
      all[n++] = (ImageArg){.name = p->name, .kind = IMAGE_ARG_FIXED, .bits = is_int ? 64 : 0, .dtype = IMAGE_I64, .divisible = 1,
                            .value = is_int ? spec->value.i : 0};
    } else if (passed < v->nargs) {
      all[n++] = v->args[passed++];
    }
  }
  v->args = all;
  v->nargs = n;
}

Status compile_back(Compile *c, Image **out) {
  Arena *a = &c->call->arena;
  Diags *d = &c->call->diags;
  PassMachine machine;
  Status s = compile_machine(c, &machine);
  if (s != ST_OK) return s;
  PassConfig config = {.machine = &machine, .diags = d, .explain = c->o.explain, .verify = c->call->context->knobs.verify_each};
  if ((s = pass_run(c->module, PASS_CPU, &config)) != ST_OK) return s;
  if ((s = target_compile(c->module, &c->target, a, d, out)) != ST_OK) return s;
  for (uint32_t k = 0; k < (*out)->nkernels; k++)
    for (uint32_t v = 0; v < (*out)->kernels[k].nvariants; v++) add_fixed_args(c, &(*out)->kernels[k].variants[v]);
  (*out)->source_name = c->source.path;
  return ST_OK;
}

// ---- disk cache ---------------------------------------------------------------------------------------------------------
// An entry is: number of files, then for each its path and hash, then the image. It is valid while all files hash the same: imported
// modules are not known before the front end has run, so they cannot be part of the key.
static void hash_of(Arena *a, const void *p, size_t n, char out[33]) {
  Hash128 *h = hash128_new(a);
  hash128_add(h, p, n);
  hash128_hex(h, out);
}

static void add_text(Hash128 *h, const char *s) { hash128_add(h, s ? s : "\1", s ? strlen(s) + 1 : 2); }
static void add_const(Hash128 *h, const FrontConst *v) {
  hash128_add(h, &v->kind, sizeof v->kind);
  hash128_add(h, &v->i, sizeof v->i);
  hash128_add(h, &v->f, sizeof v->f);
  hash128_add(h, &v->dtype, sizeof v->dtype);
  add_text(h, v->s);
}

static Status cache_key(Compile *c, char key[33]) {
  Hash128 *h = hash128_new(&c->call->arena);
  TargetFacts facts;
  Status s = target_facts(&c->target, &c->call->arena, &c->call->diags, &facts);
  if (s != ST_OK) return s;
  add_text(h, dt_version());
  add_text(h, __DATE__ __TIME__); // of this build of the compiler
  add_text(h, facts.target);
  add_text(h, facts.cpu);
  add_text(h, facts.features);
  add_text(h, c->source.path);
  add_text(h, c->chosen->name);
  int numbers[] = {c->o.num_warps, c->o.num_stages, c->o.no_specialise};
  hash128_add(h, numbers, sizeof numbers);
  for (int i = 0; i < c->front.nsearch; i++) add_text(h, c->front.search[i]);
  for (int i = 0; i < c->front.nglobals; i++) {
    add_text(h, c->front.globals[i].name);
    add_const(h, &c->front.globals[i].value);
  }
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
  return ST_OK;
}

typedef struct Cursor {
  const char *p, *end;
} Cursor;
static bool take(Cursor *c, void *out, size_t n) {
  if ((size_t)(c->end - c->p) < n) return false;
  memcpy(out, c->p, n);
  c->p += n;
  return true;
}

// Points *image at the entry's image if every file it was made of is unchanged.
static bool entry_valid(Compile *c, const void *entry, size_t n, const void **image, size_t *nimage) {
  Cursor cur = {entry, (const char *)entry + n};
  uint32_t files;
  if (!take(&cur, &files, sizeof files) || files > 1024) return false;
  for (uint32_t i = 0; i < files; i++) {
    char path[4096], want[33], have[33], *data;
    uint32_t len;
    size_t size;
    if (!take(&cur, &len, sizeof len) || len >= sizeof path || !take(&cur, path, len) || !take(&cur, want, 33)) return false;
    path[len] = 0;
    if (i == 0 && c->source.text) { // given as text: not on disk
      hash_of(&c->call->arena, c->source.text, c->source.len, have);
    } else {
      if (os_read_file(&c->call->arena, path, 0, &data, &size) != ST_OK) return false;
      hash_of(&c->call->arena, data, size, have);
    }
    if (memcmp(want, have, 33) != 0) return false;
  }
  *image = cur.p;
  *nimage = (size_t)(cur.end - cur.p);
  return true;
}

static void *make_entry(Compile *c, const void *image, size_t nimage, size_t *n) {
  Arena *a = &c->call->arena;
  const Diags *d = &c->call->diags;
  Vec(char) out = {0};
#define PUT(p, size) \
  do { \
    vec_reserve(a, &out, out.len + (size)); \
    memcpy(out.data + out.len, (p), (size)); \
    out.len += (uint32_t)(size); \
  } while (0)
  PUT(&d->sources.len, sizeof(uint32_t));
  for (uint32_t i = 0; i < d->sources.len; i++) {
    const Source *s = &d->sources.data[i];
    char hash[33];
    hash_of(a, s->text, s->len, hash);
    uint32_t len = (uint32_t)strlen(s->name);
    PUT(&len, sizeof len);
    PUT(s->name, len);
    PUT(hash, 33);
  }
  PUT(image, nimage);
#undef PUT
  *n = out.len;
  return out.data;
}

// ---- dt_compile_* ------------------------------------------------------------------------------------------------------------
typedef struct CompileArgs {
  const char *path, *text;
  size_t len;
  const char *kernel;
  const dt_named *args;
  size_t nargs;
  const dt_compile_options *o;
  void **bytes; // the image, malloc'ed: it outlives the call's arena
  size_t *nbytes;
} CompileArgs;

static Status hand_over(CompileArgs *a, const void *bytes, size_t n) {
  *a->bytes = malloc(n ? n : 1);
  if (!*a->bytes) return ST_NO_MEMORY;
  memcpy(*a->bytes, bytes, n);
  *a->nbytes = n;
  return ST_OK;
}

static Status compile_call(ApiCall *call, void *user) {
  CompileArgs *a = user;
  dt_context *ctx = call->context;
  Compile c;
  char key[33];
  Status s;
  if ((s = compile_begin(&c, call, a->path, a->text, a->len, a->kernel, a->args, a->nargs, a->o)) != ST_OK ||
      (s = compile_specs(&c)) != ST_OK || (s = cache_key(&c, key)) != ST_OK)
    return s;
  bool cached = !c.o.explain; // remarks are not cached
  const void *image;
  void *entry;
  size_t n, nimage;
  if (cached && rt_cache_get(ctx->cache, key, &call->arena, &entry, &n) && entry_valid(&c, entry, n, &image, &nimage))
    return hand_over(a, image, nimage);
  Image *im;
  void *bytes;
  if ((s = compile_front(&c)) != ST_OK || (s = compile_back(&c, &im)) != ST_OK ||
      (s = image_write(im, &call->arena, &bytes, &nimage, &call->diags)) != ST_OK)
    return s;
  if (cached) {
    entry = make_entry(&c, bytes, nimage, &n);
    rt_cache_put(ctx->cache, key, entry, n);
  }
  char trouble[512];
  if (rt_cache_problem(ctx->cache, trouble, sizeof trouble)) diag(&call->diags, DIAG_WARNING, LOC_NONE, "%s", trouble);
  return hand_over(a, bytes, nimage);
}

static dt_status compile_to_image(dt_context *c, CompileArgs *a, dt_image **out) {
  void *bytes = NULL;
  size_t n = 0;
  a->bytes = &bytes;
  a->nbytes = &n;
  dt_status st = api_call(c, compile_call, a);
  if (st == DT_OK) st = api_image_from_bytes(c, bytes, n, out);
  free(bytes);
  return st;
}

dt_status dt_compile_file(dt_context *c, const char *path, const char *kernel, const dt_named *args, size_t nargs,
                          const dt_compile_options *options, dt_image **out) {
  CompileArgs a = {.path = path, .kernel = kernel, .args = args, .nargs = nargs, .o = options};
  return compile_to_image(c, &a, out);
}

dt_status dt_compile_text(dt_context *c, const char *name, const char *text, size_t len, const char *kernel, const dt_named *args,
                          size_t nargs, const dt_compile_options *options, dt_image **out) {
  CompileArgs a = {.path = name, .text = text, .len = len, .kernel = kernel, .args = args, .nargs = nargs, .o = options};
  return compile_to_image(c, &a, out);
}
