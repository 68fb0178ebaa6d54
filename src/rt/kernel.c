// kernel: loading a kernel of an image on a rank, choosing a variant by its guards, and launching. What code and a launch are
// on a device is its driver's.
#include "rt/rt_impl.h"

#include <stdio.h>
#include <stdlib.h>

// ---- loading -------------------------------------------------------------------------------------------
Status rt_fail_diags(RtError *e, Status s, const Diags *d, const char *before) {
  Arena *a = d->arena;
  return rt_fail(e, s, "%s%s", before, diags_render(d, a));
}

static const ImageKernel *find_kernel(const Image *im, const char *name) {
  if (!name) return im->nkernels == 1 ? &im->kernels[0] : NULL;
  for (uint32_t i = 0; i < im->nkernels; i++) {
    if (strcmp(im->kernels[i].name, name) == 0) return &im->kernels[i];
  }
  return NULL;
}

static Status fail_no_kernel(const Image *im, const char *name, RtError *e) {
  char list[512];
  RtText t = {list, 0, sizeof list};
  list[0] = 0;
  for (uint32_t i = 0; i < im->nkernels; i++) rt_say(&t, "%s%s", i ? ", " : "", im->kernels[i].name);
  if (!name) return rt_fail(e, ST_NOT_FOUND, "the image has %u kernels (%s); say which", im->nkernels, list);
  return rt_fail(e, ST_NOT_FOUND, "the image has no kernel '%.100s'; it has %s", name,
                 im->nkernels ? list : "none");
}

// "file.py:12", its end where it is long.
static void label_site(char out[RT_LABEL], const ImageSite *s, const char *kernel) {
  const char *file = s->file ? strrchr(s->file, '/') : NULL;
  file = file ? file + 1 : s->file ? s->file : kernel;
  const size_t n = strlen(file), most = RT_LABEL - 12;
  snprintf(out, RT_LABEL, "%s:%u", n > most ? file + n - most : file, s->line);
}

// The image is copied through its own bytes: one way to copy it, and it is checked on the way.
static Status load(RtKernel *k, const Image *im, const char *name, RtError *e) {
  static const char *const kinds[] = {
      [IMAGE_X86_64] = "a processor", [IMAGE_NVPTX] = "an NVIDIA GPU", [IMAGE_AMDGPU] = "an AMD GPU"};
  Escape esc;
  arena_init(&k->arena, 0, &esc);
  if (ESCAPE_TRY(&esc)) return rt_fail(e, esc.status, "%s", esc.message);
  Diags d;
  diags_init(&d, &k->arena);
  void *bytes;
  size_t n;
  Image *copy;
  Status s = image_write(im, &k->arena, &bytes, &n, &d);
  if (s == ST_OK) s = image_read(&k->arena, bytes, n, &copy, &d);
  if (s != ST_OK) return rt_fail_diags(e, s, &d, "");
  k->image = copy;
  k->info = find_kernel(copy, name);
  if (!k->info) return fail_no_kernel(copy, name, e);
  if (copy->target != k->rank->team->driver->target)
    return rt_fail(e, ST_UNSUPPORTED, "kernel '%s' was compiled for %s, but the rank runs on %s",
                   k->info->name, kinds[copy->target], kinds[k->rank->team->driver->target]);
  k->site_labels = arena_alloc_array(&k->arena, copy->nsites, RT_LABEL, 8);
  for (uint32_t i = 0; i < copy->nsites; i++) label_site(k->site_labels[i], &copy->sites[i], k->info->name);
  s = k->rank->team->driver->kernel_load(k, &d, e);
  k->arena.escape = NULL; // nothing is allocated from here on
  return s;
}

Status rt_kernel_load(RtRank *r, const Image *im, const char *name, RtKernel **out, RtError *e) {
  RtKernel *k = calloc(1, sizeof *k);
  if (!k) return rt_no_memory(e);
  k->rank = r;
  const Status s = load(k, im, name, e);
  if (s != ST_OK) {
    rt_kernel_destroy(k);
    return s;
  }
  *out = k;
  return ST_OK;
}

void rt_kernel_destroy(RtKernel *k) {
  if (!k) return;
  k->rank->team->driver->kernel_unload(k);
  arena_free(&k->arena);
  free(k);
}

const ImageKernel *rt_kernel_info(const RtKernel *k) { return k->info; }

// ---- choosing a variant ------------------------------------------------------------------------------
static uint64_t guarded_value(const ImageArg *a, RtArg v) {
  return a->kind == IMAGE_ARG_DESC ? v.desc->base : v.bits;
}

static bool divides(uint32_t d, uint64_t x) { return bits_pow2(d) ? !(x & (d - 1)) : x % d == 0; }

// The first argument that a guard refuses, or NULL.
static const ImageArg *refused(const ImageVariant *v, const RtArg *args) {
  for (uint32_t i = 0; i < v->nargs; i++) {
    const ImageArg *a = &v->args[i];
    if (a->kind == IMAGE_ARG_FIXED && (int64_t)args[i].bits != a->value) return a;
    if (a->divisible > 1 && a->kind != IMAGE_ARG_FLOAT && !divides(a->divisible, guarded_value(a, args[i])))
      return a;
  }
  return NULL;
}

// The first variant from `at` on that the arguments' own guards let pass; nvariants: none.
static uint32_t next_variant(const ImageKernel *info, uint32_t at, const RtArg *args) {
  while (at < info->nvariants && refused(&info->variants[at], args)) at++;
  return at;
}

// The first time counts: launches of one kernel may come from several threads, and people need one reason.
static void note_passed_over(RtKernel *k, const char *why) {
  if (atomic_flag_test_and_set(&k->passed_over)) return;
  snprintf(k->passed_over_text, sizeof k->passed_over_text, "%.500s", why);
  atomic_store(&k->passed_over_said, true);
}

static void note_guard(RtKernel *k, const RtArg *args) {
  const ImageArg *a = refused(&k->info->variants[0], args);
  char why[128];
  if (a->kind == IMAGE_ARG_FIXED)
    snprintf(why, sizeof why, "'%.60s' is not %lld", a->name, (long long)a->value);
  else
    snprintf(why, sizeof why, "'%.60s' is no multiple of %u", a->name, a->divisible);
  note_passed_over(k, why);
}

const char *rt_kernel_passed_over(const RtKernel *k) {
  return atomic_load(&k->passed_over_said) ? k->passed_over_text : "";
}

static Status fail_guards(const RtKernel *k, const RtArg *args, RtError *e) {
  char list[1024];
  RtText t = {list, 0, sizeof list};
  for (uint32_t v = 0; v < k->info->nvariants; v++) {
    const ImageArg *a = refused(&k->info->variants[v], args);
    if (a && a->kind == IMAGE_ARG_FIXED)
      rt_say(&t, "%s%s = %lld", v ? ", or " : "", a->name, (long long)a->value);
    else if (a)
      rt_say(&t, "%s%s to be a multiple of %u", v ? ", or " : "", a->name, a->divisible);
  }
  return rt_fail(e, ST_INVALID, "kernel '%s' was compiled for other arguments: it needs %s", k->info->name,
                 list);
}

// The last variant's maps do not tell the tensors: e says why, and now why none stands behind it, if the compiler knew.
static Status no_other(const ImageVariant *v, Status st, RtError *e) {
  char said[sizeof e->text];
  if (!v->guard_text || !*v->guard_text || !v->nmaps) return st;
  snprintf(said, sizeof said, "%s", e->text);
  return rt_fail(e, st, "%s; %s", said, v->guard_text);
}

// Arguments as the variant's code expects them. Values are little-endian, so the low bytes are the narrow value.
void rt_pack_args(const ImageVariant *v, const RtArg *args, char *out) {
  for (uint32_t i = 0; i < v->nargs; i++) {
    const ImageArg *a = &v->args[i];
    if (a->kind == IMAGE_ARG_FIXED) continue;
    if (a->kind == IMAGE_ARG_DESC)
      memcpy(out + a->offset, args[i].desc, sizeof(ImageDesc));
    else
      memcpy(out + a->offset, &args[i].bits, a->kind == IMAGE_ARG_PTR ? 8 : (a->bits + 7) / 8);
  }
}

// ---- launching -------------------------------------------------------------------------------------------
Status rt_launch(RtKernel *k, RtStream *s, const uint32_t grid[3], const RtArg *args, uint32_t nargs,
                 RtError *e) {
  RtRank *r = k->rank;
  const ImageKernel *info = k->info;
  if (s->rank != r)
    return rt_fail(e, ST_INVALID, "kernel '%s' and stream '%s' belong to different ranks", info->name,
                   s->label);
  if (nargs != info->variants[0].nargs)
    return rt_fail(e, ST_INVALID, "kernel '%s' takes %u arguments, but %u were given", info->name,
                   info->variants[0].nargs, nargs);
  uint64_t n = (uint64_t)grid[0] * grid[1];
  if (__builtin_mul_overflow(n, grid[2], &n) || n > UINT64_MAX / 2)
    return rt_fail(e, ST_INVALID, "a grid of %u x %u x %u instances is too large", grid[0], grid[1], grid[2]);
  for (uint32_t i = 0; i < nargs; i++) {
    if (info->variants[0].args[i].kind == IMAGE_ARG_DESC && !args[i].desc)
      return rt_fail(e, ST_INVALID, "argument '%s' of kernel '%s' is NULL, but must be a tensor descriptor",
                     info->variants[0].args[i].name, info->name);
  }
  uint32_t at = next_variant(info, 0, args);
  if (at == info->nvariants) return fail_guards(k, args, e);
  if (!n) return ST_OK;
  if (at) note_guard(k, args);
  if (rt_aborted(r->team)) return rt_team_failure(r->team, e);
  for (;;) {
    const Status st = r->team->driver->launch(k, s, at, grid, args, e);
    if (st != ST_INVALID || !info->variants[at].nmaps) return st;
    const uint32_t next = next_variant(info, at + 1, args); // whose maps may be told what these may not
    if (next == info->nvariants) return no_other(&info->variants[at], st, e);
    note_passed_over(k, e->text);
    at = next;
  }
}
