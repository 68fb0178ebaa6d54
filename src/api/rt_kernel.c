// Kernels and launches: from typed values to the image's arguments.
#include "api/api_impl.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ARGS = 128 };

struct dt_kernel {
  RtKernel *rt;
  dt_rank *rank;
  const ImageKernel *info;
};

dt_status dt_kernel_load(dt_rank *r, const dt_image *im, const char *name, dt_kernel **out) {
  dt_context *c = api_rank_context(r);
  RtError e;
  dt_status st = api_need(c, "dt_kernel_load", "image", im);
  if (st != DT_OK) return st;
  dt_kernel *k = calloc(1, sizeof *k);
  if (!k) return api_fail(c, ST_NO_MEMORY, "out of memory");
  k->rank = r;
  Status s = rt_kernel_load(r->rt, im->image, name, &k->rt, &e);
  if (s != ST_OK) {
    free(k);
    return api_rt(c, s, &e);
  }
  k->info = rt_kernel_info(k->rt);
  *out = k;
  return DT_OK;
}

void dt_kernel_destroy(dt_kernel *k) {
  if (!k) return;
  rt_kernel_destroy(k->rt);
  free(k);
}

dt_status dt_kernel_query(const dt_kernel *k, dt_kernel_info *out) {
  static const char *const wait_names[] = {"none", "external", "ordered", "mutual"};
  const ImageVariant *v = &k->info->variants[0];
  *out = (dt_kernel_info){.name = k->info->name,
                          .nargs = v->nargs,
                          .nvariants = k->info->nvariants,
                          .arena_bytes = v->arena_bytes,
                          .wait_class = wait_names[v->wait],
                          .num_warps = (int)v->num_warps};
  return DT_OK;
}

const char *dt_kernel_arg_name(const dt_kernel *k, size_t i) {
  const ImageVariant *v = &k->info->variants[0];
  return i < v->nargs ? v->args[i].name : NULL;
}

const char *dt_kernel_passed_over(const dt_kernel *k) { return rt_kernel_passed_over(k->rt); }

bool dt_kernel_arg_written(const dt_kernel *k, size_t i) {
  const ImageVariant *v = &k->info->variants[0];
  return i < v->nargs && v->args[i].written;
}

// ---- values to arguments -----------------------------------------------------------------------------------------------
static const char *value_text(const dt_value *v) {
  static const char *const texts[] = {"None",     "a pointer", "an integer", "a float",     "a bool",
                                      "a string", "a dtype",   "a function", "a descriptor"};
  return (unsigned)v->kind < DT_COUNTOF(texts) ? texts[v->kind] : "a value of unknown kind";
}

static const char *arg_text(const ImageArg *a) {
  static const char *const texts[] = {"a pointer", "an integer", "a float", "a descriptor", "a fixed value"};
  return texts[a->kind];
}

static dt_status mismatch(dt_kernel *k, const ImageArg *a, const dt_value *v) {
  dt_context *c = api_rank_context(k->rank);
  if (a->kind == IMAGE_ARG_FIXED)
    return api_fail(c, ST_INVALID, "%s: '%s' was compiled as %s; the launch gives %s: compile for this value",
                    k->info->name, a->name, a->bits ? "a fixed integer" : "None", value_text(v));
  return api_fail(c, ST_INVALID, "%s: '%s' takes %s%s%s, the launch gives %s%s%s", k->info->name, a->name,
                  arg_text(a), a->kind == IMAGE_ARG_PTR || a->kind == IMAGE_ARG_DESC ? " of " : " ",
                  image_dtypes[a->dtype].name, value_text(v),
                  v->kind == DT_VALUE_PTR || v->kind == DT_VALUE_DESC ? " of " : "",
                  v->kind == DT_VALUE_PTR || v->kind == DT_VALUE_DESC ? dt_dtype_name(v->dtype) : "");
}

static bool same_storage(uint32_t a, dt_dtype b) {
  if (a == (uint32_t)b) return true;
  return (a == IMAGE_I8 && b == DT_U8) || (a == IMAGE_U8 && b == DT_I8) || (a == IMAGE_I16 && b == DT_U16) ||
         (a == IMAGE_U16 && b == DT_I16) || (a == IMAGE_I32 && b == DT_U32) ||
         (a == IMAGE_U32 && b == DT_I32) || (a == IMAGE_I64 && b == DT_U64) ||
         (a == IMAGE_U64 && b == DT_I64);
}

static uint64_t float_bits(const ImageArg *a, double f) {
  union {
    float f;
    uint32_t u;
  } narrow = {.f = (float)f};
  union {
    double f;
    uint64_t u;
  } wide = {.f = f};
  switch (a->dtype) {
  case IMAGE_F64: return wide.u;
  case IMAGE_F16: return f16_from_f64(f);
  case IMAGE_BF16: return bf16_from_f32((float)f);
  case IMAGE_F8E4M3: return f8e4m3_from_f32((float)f);
  case IMAGE_F8E5M2: return f8e5m2_from_f32((float)f);
  default: return narrow.u;
  }
}

static bool int_fits(const ImageArg *a, int64_t i) {
  if (a->bits >= 64) return true;
  int64_t one = 1;
  if (a->bits == 1) return i == 0 || i == 1;
  return a->is_unsigned ? i >= 0 && i < (one << a->bits)
                        : i >= -(one << (a->bits - 1)) && i < (one << (a->bits - 1));
}

// Returns DT_OK with *out filled; desc is storage for one descriptor.
static dt_status convert(dt_kernel *k, const ImageArg *a, const dt_value *v, RtArg *out, ImageDesc *desc) {
  switch (a->kind) {
  case IMAGE_ARG_PTR:
    if (v->kind != DT_VALUE_PTR || !same_storage(a->dtype, v->dtype)) return mismatch(k, a, v);
    out->bits = (uint64_t)(uintptr_t)v->u.ptr;
    return DT_OK;
  case IMAGE_ARG_INT:
    if (v->kind != DT_VALUE_INT && v->kind != DT_VALUE_BOOL) return mismatch(k, a, v);
    if (!int_fits(a, v->u.i))
      return api_fail(api_rank_context(k->rank), ST_INVALID, "%s: '%s' = %lld does not fit %s", k->info->name,
                      a->name, (long long)v->u.i, image_dtypes[a->dtype].name);
    out->bits = (uint64_t)v->u.i;
    return DT_OK;
  case IMAGE_ARG_FLOAT:
    if (v->kind != DT_VALUE_FLOAT && v->kind != DT_VALUE_INT) return mismatch(k, a, v);
    out->bits = float_bits(a, v->kind == DT_VALUE_FLOAT ? v->u.f : (double)v->u.i);
    return DT_OK;
  case IMAGE_ARG_FIXED:
    if (a->bits ? v->kind != DT_VALUE_INT && v->kind != DT_VALUE_BOOL : v->kind != DT_VALUE_NONE)
      return mismatch(k, a, v);
    if (a->bits && v->u.i != a->value)
      return api_fail(api_rank_context(k->rank), ST_INVALID,
                      "%s: '%s' was compiled as the constant %lld; the launch gives %lld", k->info->name,
                      a->name, (long long)a->value, (long long)v->u.i);
    out->bits = a->bits ? (uint64_t)v->u.i : 0;
    return DT_OK;
  default: break;
  }
  const dt_desc *d = v->u.desc;
  if (v->kind != DT_VALUE_DESC || !d || !same_storage(a->dtype, d->dtype) || (uint32_t)d->rank != a->rank)
    return mismatch(k, a, v);
  desc->base = (uint64_t)(uintptr_t)d->base;
  for (int i = 0; i < d->rank; i++) {
    if (d->block[i] != a->block[i] || d->shape[i] < 0 || d->shape[i] > INT32_MAX)
      return api_fail(api_rank_context(k->rank), ST_INVALID,
                      "%s: descriptor '%s', axis %d: block %d and size %lld; compiled for block %d",
                      k->info->name, a->name, i, d->block[i], (long long)d->shape[i], a->block[i]);
    desc->shape[i] = d->shape[i];
    desc->strides[i] = d->strides[i];
  }
  out->desc = desc;
  return DT_OK;
}

dt_status dt_launch(dt_kernel *k, dt_stream *s, const uint32_t grid[3], const dt_value *args, size_t nargs) {
  const ImageVariant *v = &k->info->variants[0];
  dt_context *c = api_rank_context(k->rank);
  if (!s || !grid || (nargs && !args))
    return api_fail(c, ST_INVALID, "%s: %s is NULL", k->info->name, !s ? "stream" : !grid ? "grid" : "args");
  if (v->nargs > MOST_ARGS)
    return api_fail(c, ST_LIMIT, "%s takes %u launch arguments, more than %d", k->info->name, v->nargs,
                    MOST_ARGS);
  if (nargs != v->nargs)
    return api_fail(c, ST_INVALID, "%s takes %u launch arguments, got %zu", k->info->name, v->nargs, nargs);
  RtArg converted[MOST_ARGS];
  ImageDesc descs[8];
  unsigned ndescs = 0;
  for (size_t i = 0; i < nargs; i++) {
    if (v->args[i].kind == IMAGE_ARG_DESC && ndescs == DT_COUNTOF(descs))
      return api_fail(c, ST_LIMIT, "%s: more than %zu descriptor arguments", k->info->name,
                      DT_COUNTOF(descs));
    dt_status st = convert(k, &v->args[i], &args[i], &converted[i], &descs[ndescs]);
    if (st != DT_OK) return st;
    ndescs += v->args[i].kind == IMAGE_ARG_DESC;
  }
  RtError e;
  return api_rt(c, rt_launch(k->rt, s->rt, grid, converted, (uint32_t)nargs, &e), &e);
}
