// What there is, and jobs of many processes; conversion of elements on the host.
#include "api/api_impl.h"

#include <math.h>
#include <string.h>

bool dt_device_info(dt_context *c, size_t i, dt_device *out) {
  RtDeviceInfo d;
  if (!rt_device(c->rt, (uint32_t)i, &d)) return false;
  _Static_assert(sizeof out->name == sizeof d.name && sizeof out->text == sizeof d.text, "copied whole");
  memcpy(out->name, d.name, sizeof d.name);
  memcpy(out->target, d.target, sizeof d.target);
  memcpy(out->text, d.text, sizeof d.text);
  out->usable = d.usable;
  return true;
}

const char *dt_cache_dir(const dt_context *c) { return rt_cache_dir(c->cache); }

// libditron has the answer; without it there is no compiler.
#pragma weak api_compiler_info
const char *dt_compiler_info(dt_context *c) { return api_compiler_info ? api_compiler_info(c) : ""; }

dt_status dt_launch_job(dt_context *c, const char *const *argv, int n, int *code) {
  RtLaunchConfig config = {.argv = argv, .n = n};
  RtError e = {.status = ST_OK};
  Status s = rt_launch_processes(&config, code, &e);
  if (s == ST_OK && *code && e.text[0]) api_remark(c, e.text);
  return api_rt(c, s, &e);
}

dt_status dt_job(dt_context *c, int *rank, int *world, const char **launcher) {
  RtJob job;
  RtError e;
  Status s = rt_job_read(&job, &e);
  if (s == ST_OK) {
    *rank = job.rank;
    *world = job.world;
    *launcher = job.launcher;
  }
  return api_rt(c, s, &e);
}

// ---- conversion ---------------------------------------------------------------------------------------------------------
typedef struct Number { // exact for every dtype: integers in i (u64 as its bits), floats in f
  bool is_float, is_unsigned;
  int64_t i;
  double f;
} Number;

static Number get(const unsigned char *p, dt_dtype d) {
  Number n = {0};
  union {
    uint16_t h;
    uint32_t w;
    uint64_t q;
    float f;
    double d;
    int16_t sh;
    int32_t sw;
    int64_t sq;
  } x = {0};
  memcpy(&x, p, image_dtypes[d].bytes);
  n.is_unsigned = d >= DT_U8 && d <= DT_U64;
  n.is_float = d >= DT_F16;
  switch (d) {
  case DT_I1: n.i = *p != 0; break;
  case DT_I8: n.i = (int8_t)*p; break;
  case DT_U8: n.i = *p; break;
  case DT_I16: n.i = x.sh; break;
  case DT_U16: n.i = x.h; break;
  case DT_I32: n.i = x.sw; break;
  case DT_U32: n.i = x.w; break;
  case DT_I64:
  case DT_U64: n.i = x.sq; break;
  case DT_F16: n.f = f16_to_f32(x.h); break;
  case DT_BF16: n.f = bf16_to_f32(x.h); break;
  case DT_F32: n.f = x.f; break;
  case DT_F64: n.f = x.d; break;
  case DT_F8E4M3: n.f = f8e4m3_to_f32(*p); break;
  case DT_F8E5M2: n.f = f8e5m2_to_f32(*p); break;
  default: break;
  }
  return n;
}

static int64_t to_int(const Number *n, dt_dtype d) {
  uint32_t bits = image_dtypes[d].bits;
  bool uns = d >= DT_U8 && d <= DT_U64;
  if (!n->is_float) return n->i;
  if (isnan(n->f)) return 0;
  double lo = uns ? 0 : -ldexp(1, (int)bits - 1), hi = ldexp(1, (int)(uns ? bits : bits - 1));
  if (n->f < lo) return uns ? 0 : bits == 64 ? INT64_MIN : (int64_t)lo;
  if (n->f >= hi)
    return uns ? (bits == 64 ? -1 : (int64_t)(hi - 1)) : bits == 64 ? INT64_MAX : (int64_t)(hi - 1);
  return uns ? (int64_t)(uint64_t)n->f : (int64_t)n->f;
}

static double to_float(const Number *n) {
  return n->is_float ? n->f : n->is_unsigned ? (double)(uint64_t)n->i : (double)n->i;
}

static void set(unsigned char *p, dt_dtype d, const Number *n) {
  union {
    uint16_t h;
    uint8_t b;
    float f;
    double d;
    int64_t q;
  } x = {0};
  switch (d) {
  case DT_I1: x.b = n->is_float ? n->f != 0 : n->i != 0; break;
  case DT_F16: x.h = f16_from_f64(to_float(n)); break;
  case DT_BF16: x.h = bf16_from_f32((float)to_float(n)); break;
  case DT_F32: x.f = (float)to_float(n); break;
  case DT_F64: x.d = to_float(n); break;
  case DT_F8E4M3: x.b = f8e4m3_from_f32((float)to_float(n)); break;
  case DT_F8E5M2: x.b = f8e5m2_from_f32((float)to_float(n)); break;
  default: x.q = to_int(n, d); break; // little-endian: the low bytes
  }
  memcpy(p, &x, image_dtypes[d].bytes);
}

dt_status dt_convert(void *dst, dt_dtype to, const void *src, dt_dtype from, size_t n) {
  if ((unsigned)to >= DT_NDTYPES || (unsigned)from >= DT_NDTYPES) return DT_INVALID;
  unsigned char *out = dst;
  const unsigned char *in = src;
  if (to == from) {
    memmove(dst, src, n * image_dtypes[to].bytes);
    return DT_OK;
  }
  for (size_t i = 0; i < n; i++) {
    Number x = get(in + i * image_dtypes[from].bytes, from);
    set(out + i * image_dtypes[to].bytes, to, &x);
  }
  return DT_OK;
}
