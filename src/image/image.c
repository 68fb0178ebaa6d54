// image: kernel images as bytes. The order of the fields below is the file format; a change is a new FORMAT.
#include "image/image_impl.h"

static const char MAGIC[8] = "DTKIMAGE";
static const char WHAT[] = "kernel image";
static const char TOO_MANY_MAPS[] = "a kernel has too many tensor maps";
enum { FORMAT = 5 };

const struct ImageDtypeInfo image_dtypes[IMAGE_NDTYPES] = {
    [IMAGE_I1] = {"i1", 1, 1},    [IMAGE_I8] = {"i8", 8, 1},         [IMAGE_I16] = {"i16", 16, 2},
    [IMAGE_I32] = {"i32", 32, 4}, [IMAGE_I64] = {"i64", 64, 8},      [IMAGE_U8] = {"u8", 8, 1},
    [IMAGE_U16] = {"u16", 16, 2}, [IMAGE_U32] = {"u32", 32, 4},      [IMAGE_U64] = {"u64", 64, 8},
    [IMAGE_F16] = {"f16", 16, 2}, [IMAGE_BF16] = {"bf16", 16, 2},    [IMAGE_F32] = {"f32", 32, 4},
    [IMAGE_F64] = {"f64", 64, 8}, [IMAGE_F8E4M3] = {"f8e4m3", 8, 1}, [IMAGE_F8E5M2] = {"f8e5m2", 8, 1},
};

int image_dtype_by_name(const char *name) {
  for (int i = 0; i < IMAGE_NDTYPES; i++) {
    if (strcmp(image_dtypes[i].name, name) == 0) return i;
  }
  return -1;
}

// ---- arguments ---------------------------------------------------------------------------------
static uint64_t arg_bytes(const ImageArg *a) {
  switch (a->kind) {
  case IMAGE_ARG_PTR: return 8;
  case IMAGE_ARG_DESC: return sizeof(ImageDesc);
  case IMAGE_ARG_FIXED: return 0;
  default: return bits_div_up(a->bits, 8);
  }
}

// NULL, or what is wrong with an argument's place among the packed bytes.
static const char *arg_fault(const ImageArg *a, uint32_t args_bytes) {
  if (a->rank > 5) return "a tensor descriptor has more than 5 axes";
  if (a->bits > 64) return "an argument is wider than 64 bits";
  if (a->divisible == 0) return "an argument is divisible by 0";
  if (a->offset > args_bytes || arg_bytes(a) > args_bytes - a->offset)
    return "an argument lies outside the arguments";
  return NULL;
}

enum { ARG_MIN = 4 + 7 * 4 + 2 + 5 * 4 + 8 };
static void put_arg(ImageWriter *w, const ImageArg *a) {
  image_put_str(w, a->name);
  image_put_u32(w, a->kind);
  image_put_u32(w, a->bits);
  image_put_u32(w, a->dtype);
  image_put_u8(w, a->is_unsigned);
  image_put_u32(w, a->divisible);
  image_put_u32(w, a->rank);
  for (int i = 0; i < 5; i++) image_put_u32(w, (uint32_t)a->block[i]);
  image_put_u32(w, a->offset);
  image_put_u8(w, a->written);
  image_put_u64(w, (uint64_t)a->value);
}

bool image_get_bool(ImageReader *r) {
  const uint32_t x = image_get_u8(r);
  if (x > 1) image_bad(r, "a yes or no is neither");
  return x == 1;
}

static void get_arg(ImageReader *r, ImageArg *a, uint32_t args_bytes) {
  a->name = image_get_name(r);
  a->kind = (ImageArgKind)image_get_below(r, IMAGE_ARG_FIXED + 1, "an argument is of an unknown kind");
  a->bits = image_get_u32(r);
  a->dtype = image_get_below(r, IMAGE_NDTYPES, "an argument is of an unknown type");
  a->is_unsigned = image_get_bool(r);
  a->divisible = image_get_u32(r);
  a->rank = image_get_u32(r);
  for (int i = 0; i < 5; i++) a->block[i] = (int32_t)image_get_u32(r);
  a->offset = image_get_u32(r);
  a->written = image_get_bool(r);
  a->value = (int64_t)image_get_u64(r);
  const char *fault = r->bad ? NULL : arg_fault(a, args_bytes);
  if (fault) image_bad(r, fault);
}

// ---- variants and kernels ----------------------------------------------------------------------
enum { VARIANT_MIN = 4 + 4 + 4 + 4 + 2 * 4 + 8 + 4 * 4 + 3 * 4 + 8 + 4 + 1 + 4 + 4 };
static void put_variant(ImageWriter *w, const ImageVariant *v) {
  image_put_str(w, v->entry);
  image_put_str(w, v->guard_text);
  image_put_u32(w, v->args_bytes);
  image_put_u32(w, v->nargs);
  for (uint32_t i = 0; i < v->nargs; i++) put_arg(w, &v->args[i]);
  image_put_u32(w, v->num_warps);
  image_put_u32(w, v->lanes);
  image_put_u64(w, v->arena_bytes);
  image_put_u32(w, v->shared_bytes);
  image_put_u32(w, v->registers);
  image_put_u32(w, v->local_bytes);
  image_put_u32(w, v->spill_bytes);
  for (int i = 0; i < 3; i++) image_put_u32(w, v->cluster[i]);
  image_put_u64(w, v->workspace_bytes);
  image_put_u32(w, v->wait);
  image_put_u8(w, v->has_waits);
  image_put_u8(w, v->early);
  image_put_u32(w, v->code);
  image_put_u32(w, v->nmaps);
  for (uint32_t i = 0; i < v->nmaps; i++) image_put_map(w, &v->maps[i]);
}

static void get_variant(ImageReader *r, ImageVariant *v) {
  v->entry = image_get_name(r);
  v->guard_text = image_get_str(r);
  v->args_bytes = image_get_u32(r);
  v->nargs = image_get_count(r, ARG_MIN);
  v->args = arena_array(r->arena, ImageArg, v->nargs);
  for (uint32_t i = 0; i < v->nargs; i++) get_arg(r, &v->args[i], v->args_bytes);
  v->num_warps = image_get_u32(r);
  v->lanes = image_get_u32(r);
  v->arena_bytes = image_get_u64(r);
  v->shared_bytes = image_get_u32(r);
  v->registers = image_get_u32(r);
  v->local_bytes = image_get_u32(r);
  v->spill_bytes = image_get_u32(r);
  for (int i = 0; i < 3; i++) v->cluster[i] = image_get_u32(r);
  v->workspace_bytes = image_get_u64(r);
  v->wait = (ImageWait)image_get_below(r, IMAGE_WAIT_MUTUAL + 1, "a kernel is of an unknown wait class");
  v->has_waits = image_get_bool(r);
  v->early = image_get_bool(r);
  v->code = image_get_u32(r);
  v->nmaps = image_get_count(r, IMAGE_MAP_MIN);
  if (v->nmaps > IMAGE_MAPS_MAX) image_bad(r, TOO_MANY_MAPS);
  if (r->bad) return;
  v->maps = arena_array(r->arena, ImageMap, v->nmaps);
  for (uint32_t i = 0; i < v->nmaps; i++) image_get_map(r, v, &v->maps[i]);
}

static bool same_args(const ImageVariant *a, const ImageVariant *b) {
  if (a->nargs != b->nargs) return false;
  for (uint32_t i = 0; i < a->nargs; i++) {
    if (strcmp(a->args[i].name, b->args[i].name) != 0) return false;
  }
  return true;
}

static const char *kernel_fault(const ImageKernel *k) {
  if (!k->nvariants) return "a kernel has no variant";
  for (uint32_t i = 1; i < k->nvariants; i++) {
    if (!same_args(&k->variants[0], &k->variants[i])) return "variants of a kernel have different arguments";
  }
  return NULL;
}

static void get_kernel(ImageReader *r, ImageKernel *k) {
  k->name = image_get_name(r);
  k->nvariants = image_get_count(r, VARIANT_MIN);
  k->variants = arena_array(r->arena, ImageVariant, k->nvariants);
  for (uint32_t i = 0; i < k->nvariants; i++) get_variant(r, &k->variants[i]);
  const char *fault = r->bad ? NULL : kernel_fault(k);
  if (fault) image_bad(r, fault);
}

// ---- whole images ------------------------------------------------------------------------------
enum { SITE_MIN = 5 * 4 };
static void put_site(ImageWriter *w, const ImageSite *s) {
  image_put_str(w, s->file);
  image_put_u32(w, s->line);
  image_put_u32(w, s->col);
  image_put_str(w, s->what);
  image_put_str(w, s->fmt);
}

static void get_site(ImageReader *r, ImageSite *s) {
  s->file = image_get_str(r);
  s->line = image_get_u32(r);
  s->col = image_get_u32(r);
  s->what = image_get_str(r);
  s->fmt = image_get_str(r);
}

static const char *code_fault(const Image *im) {
  static const char no_end[] = "its code should be a text but has no end";
  if (im->is_text && (!im->code_bytes || ((const char *)im->code)[im->code_bytes - 1])) return no_end;
  for (uint32_t i = 0; i < im->nmore; i++) {
    const ImageBlob *b = &im->more[i];
    if (!b->bytes) return "a part of its code is empty";
    if (im->is_text && ((const char *)b->code)[b->bytes - 1]) return no_end;
  }
  for (uint32_t k = 0; k < im->nkernels; k++) {
    for (uint32_t v = 0; v < im->kernels[k].nvariants; v++) {
      if (im->kernels[k].variants[v].code > im->nmore)
        return "a variant is in a part of the code that there is not";
    }
  }
  return NULL;
}

// NULL, or why the image cannot be written: what the reader would refuse is never written.
static const char *image_fault(const Image *im) {
  const char *code = code_fault(im);
  if (code) return code;
  for (uint32_t k = 0; k < im->nkernels; k++) {
    const ImageKernel *kernel = &im->kernels[k];
    if (!kernel->name) return "a kernel has no name";
    for (uint32_t v = 0; v < kernel->nvariants; v++) {
      const ImageVariant *variant = &kernel->variants[v];
      if (!variant->entry) return "a variant has no entry";
      for (uint32_t i = 0; i < variant->nargs; i++) {
        if (!variant->args[i].name) return "an argument has no name";
        const char *fault = arg_fault(&variant->args[i], variant->args_bytes);
        if (fault) return fault;
      }
      if (variant->nmaps > IMAGE_MAPS_MAX) return TOO_MANY_MAPS;
      for (uint32_t i = 0; i < variant->nmaps; i++) {
        const char *fault = image_map_fault(variant, &variant->maps[i]);
        if (fault) return fault;
      }
    }
    const char *fault = kernel_fault(kernel);
    if (fault) return fault;
  }
  return NULL;
}

Status image_write(const Image *im, Arena *a, void **bytes, size_t *n, Diags *d) {
  const char *fault = image_fault(im);
  if (fault) {
    diag(d, DIAG_ERROR, LOC_NONE, "this %s cannot be written: %s", WHAT, fault);
    return ST_INVALID;
  }
  ImageWriter w = {.arena = a};
  image_seal_begin(&w, MAGIC, FORMAT);
  image_put_u32(&w, im->target);
  image_put_str(&w, im->cpu_features);
  image_put_str(&w, im->producer);
  image_put_str(&w, im->source_name);
  image_put_u32(&w, im->nkernels);
  for (uint32_t k = 0; k < im->nkernels; k++) {
    image_put_str(&w, im->kernels[k].name);
    image_put_u32(&w, im->kernels[k].nvariants);
    for (uint32_t v = 0; v < im->kernels[k].nvariants; v++) put_variant(&w, &im->kernels[k].variants[v]);
  }
  image_put_u32(&w, im->nsites);
  for (uint32_t i = 0; i < im->nsites; i++) put_site(&w, &im->sites[i]);
  image_put_u8(&w, im->is_text);
  image_put_u32(&w, im->sm);
  image_put_u8(&w, im->sm_exact);
  image_put_u64(&w, im->code_bytes);
  image_put(&w, im->code, im->code_bytes);
  image_put_u32(&w, im->nmore);
  for (uint32_t i = 0; i < im->nmore; i++) {
    image_put_u64(&w, im->more[i].bytes);
    image_put(&w, im->more[i].code, im->more[i].bytes);
  }
  image_seal_end(&w);
  *bytes = w.out.data;
  *n = w.out.len;
  return ST_OK;
}

Status image_read(Arena *a, const void *bytes, size_t n, Image **out, Diags *d) {
  ImageReader r;
  *out = NULL;
  const Status s = image_unseal(&r, a, bytes, n, MAGIC, FORMAT, WHAT, d);
  if (s != ST_OK) return s;
  Image *im = arena_new(a, Image);
  im->target = (ImageTarget)image_get_below(&r, IMAGE_AMDGPU + 1, "it is for an unknown target");
  im->cpu_features = image_get_str(&r);
  im->producer = image_get_str(&r);
  im->source_name = image_get_str(&r);
  im->nkernels = image_get_count(&r, 4 + 4);
  im->kernels = arena_array(a, ImageKernel, im->nkernels);
  for (uint32_t k = 0; k < im->nkernels; k++) get_kernel(&r, &im->kernels[k]);
  im->nsites = image_get_count(&r, SITE_MIN);
  im->sites = arena_array(a, ImageSite, im->nsites);
  for (uint32_t i = 0; i < im->nsites; i++) get_site(&r, &im->sites[i]);
  im->is_text = image_get_bool(&r);
  im->sm = image_get_u32(&r);
  im->sm_exact = image_get_bool(&r);
  im->code = image_get_blob(&r, &im->code_bytes);
  im->nmore = image_get_count(&r, 8);
  im->more = arena_array(a, ImageBlob, im->nmore);
  for (uint32_t i = 0; i < im->nmore; i++) im->more[i].code = image_get_blob(&r, &im->more[i].bytes);
  const char *fault = r.bad ? NULL : code_fault(im);
  if (fault) image_bad(&r, fault);
  const Status done = image_finish(&r, WHAT, d);
  if (done == ST_OK) *out = im;
  return done;
}
