// interp_tile: shape ops, reductions, scans, products and the like on whole tiles.
//
// Reductions view the tile as k steps of `lanes` independent pairs and halve k: all pairs of a step lie side by side, so that a
// body of one op is a single kernel call and any other body runs on 64 pairs at a time.
#include "ir/interp_impl.h"

#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

// ---- strided copies ----------------------------------------------------------------------------------------------------
NdCopy *interp_nd(World *w, int rank, const int64_t *shape, const int64_t *rs, const int64_t *as) {
  NdCopy *nd = arena_new(&w->arena, NdCopy);
  int n = 0;
  for (int d = 0; d < rank; d++) {
    if (shape[d] == 1) continue;
    if (n && nd->rs[n - 1] == rs[d] * shape[d] &&
        nd->as[n - 1] == as[d] * shape[d]) { // one axis with the one before
      nd->shape[n - 1] *= shape[d];
      nd->rs[n - 1] = rs[d];
      nd->as[n - 1] = as[d];
      continue;
    }
    nd->shape[n] = shape[d], nd->rs[n] = rs[d], nd->as[n] = as[d];
    n++;
  }
  nd->rank = n;
  return nd;
}

#define ROW(T) \
  static void row_##T(T *restrict r, const T *a, int64_t n, int64_t rs, int64_t as) { \
    if (rs == 1 && as == 1) { \
      memcpy(r, a, (size_t)n * sizeof(T)); \
    } else if (rs == 1 && as == 0) { \
      const T x = *a; \
      for (int64_t i = 0; i < n; i++) r[i] = x; \
    } else { \
      for (int64_t i = 0; i < n; i++) r[i * rs] = a[i * as]; \
    } \
  } \
  static void nd_##T(const NdCopy *nd, int d, T *r, const T *a) { \
    if (d == nd->rank - 1) { \
      row_##T(r, a, nd->shape[d], nd->rs[d], nd->as[d]); \
      return; \
    } \
    for (int64_t i = 0; i < nd->shape[d]; i++) nd_##T(nd, d + 1, r + i * nd->rs[d], a + i * nd->as[d]); \
  }
ROW(uint8_t)
ROW(uint16_t)
ROW(uint32_t)
ROW(uint64_t)

void interp_nd_copy(const NdCopy *nd, char *r, const char *a, int esize) {
  if (!nd->rank) {
    memcpy(r, a, (size_t)esize);
    return;
  }
  switch (esize) {
  case 1: nd_uint8_t(nd, 0, (uint8_t *)r, (const uint8_t *)a); break;
  case 2: nd_uint16_t(nd, 0, (uint16_t *)r, (const uint16_t *)a); break;
  case 4: nd_uint32_t(nd, 0, (uint32_t *)r, (const uint32_t *)a); break;
  default: nd_uint64_t(nd, 0, (uint64_t *)r, (const uint64_t *)a);
  }
}

void interp_fill(void *r, const void *elem, int esize, size_t n) {
  switch (esize) {
  case 1: memset(r, *(const uint8_t *)elem, n); break;
  case 2: row_uint16_t(r, elem, (int64_t)n, 1, 0); break;
  case 4: row_uint32_t(r, elem, (int64_t)n, 1, 0); break;
  case 8: row_uint64_t(r, elem, (int64_t)n, 1, 0); break;
  default:
    for (size_t i = 0; i < n; i++) memcpy((char *)r + i * (size_t)esize, elem, (size_t)esize);
  }
}

static void spread(char *r, const char *a, Ref ref, size_t n) { // an operand as n elements
  if (ref.stride)
    memcpy(r, a, n * ref.esize);
  else
    interp_fill(r, a, ref.esize, n);
}

// An operand as an array; one that is the same everywhere is spread out in `buf`.
static const char *full(const Agent *a, Ref r, char *buf, size_t n) {
  const char *p = interp_at(a, r);
  if (r.stride || n == 1) return p;
  interp_fill(buf, p, r.esize, n);
  return buf;
}

Step x_nd_copy(World *w, Agent *a, const Ins *i) {
  (void)w;
  interp_nd_copy(i->extra, interp_at(a, i->r), interp_at(a, i->a), i->r.esize);
  return GO;
}

static void strided(char *r, const char *a, int esize, size_t n, int64_t rs, int64_t as) {
  const NdCopy nd = {.rank = 1, .shape = {(int64_t)n}, .rs = {rs}, .as = {as}};
  interp_nd_copy(&nd, r, a, esize);
}

Step x_join_tiles(World *w, Agent *a, const Ins *i) {
  (void)w;
  char *r = interp_at(a, i->r);
  strided(r, interp_at(a, i->a), i->r.esize, i->n, 2, i->a.stride);
  strided(r + i->r.esize, interp_at(a, i->b), i->r.esize, i->n, 2, i->b.stride);
  return GO;
}

Step x_split_tiles(World *w, Agent *a, const Ins *i) { // results r and b
  (void)w;
  const char *p = interp_at(a, i->a);
  strided(interp_at(a, i->r), p, i->r.esize, i->n, 1, 2);
  strided(interp_at(a, i->b), p + i->r.esize, i->r.esize, i->n, 1, 2);
  return GO;
}

Step x_cat(World *w, Agent *a, const Ins *i) {
  (void)w;
  char *r = interp_at(a, i->r);
  const size_t n = i->n, m = (size_t)ir_type_elems(i->op->results[0].type) - n;
  spread(r, interp_at(a, i->a), i->a, n);
  spread(r + n * i->r.esize, interp_at(a, i->b), i->b, m);
  return GO;
}

Step x_gather(World *w, Agent *a, const Ins *i) {
  const AxisExtra *x = i->extra;
  const int es = i->r.esize;
  const size_t n = (size_t)(x->outer * x->src_k * x->inner);
  char *r = interp_at(a, i->r);
  const char *src = full(a, i->a, interp_scratch(w, n * (size_t)es), n);
  for (int64_t o = 0; o < x->outer; o++) {
    for (int64_t k = 0; k < x->k; k++) {
      for (int64_t in = 0; in < x->inner; in++) {
        const int64_t at = (o * x->k + k) * x->inner + in;
        const int64_t j = interp_ref_int(a, i->b, (uint32_t)at);
        if (j < 0 || j >= x->src_k)
          memset(r + at * es, 0, (size_t)es);
        else
          memcpy(r + at * es, src + ((o * x->src_k + j) * x->inner + in) * es, (size_t)es);
      }
    }
  }
  return GO;
}

Step x_histogram(World *w, Agent *a, const Ins *i) {
  (void)w;
  char *r = interp_at(a, i->r);
  const uint8_t *mask = i->b.space ? (const uint8_t *)interp_at(a, i->b) : NULL;
  const uint32_t bins = (uint32_t)ir_type_elems(i->op->results[0].type);
  memset(r, 0, (size_t)bins * i->r.esize);
  for (uint32_t k = 0; k < i->target; k++) {
    if (mask && !mask[(size_t)k * i->b.stride]) continue;
    const int64_t v = interp_ref_int(a, i->a, k);
    if (v < 0 || v >= (int64_t)bins) continue;
    char *p = r + (size_t)v * i->r.esize;
    interp_put_int(p, i->r.esize, interp_int(p, i->r.esize) + 1);
  }
  return GO;
}

Step x_ramp(World *w, Agent *a, const Ins *i) {
  (void)w;
  char *r = interp_at(a, i->r);
  const uint64_t from = (uint64_t)interp_ref_int(a, i->a, 0), by = (uint64_t)interp_ref_int(a, i->b, 0);
  const uint32_t n = interp_count(a, i);
  for (uint32_t k = 0; k < n; k++)
    interp_put_int(r + (size_t)k * i->r.esize, i->r.esize, (int64_t)(from + k * by));
  return GO;
}

Step x_vec_get(World *w, Agent *a, const Ins *i) {
  (void)w;
  const int64_t n = ir_type_elems(ir_operand(i->op, 0)->type), k = interp_ref_int(a, i->b, 0);
  if (k < 0 || k >= n)
    memset(interp_at(a, i->r), 0, i->r.esize);
  else
    memcpy(interp_at(a, i->r), interp_at(a, i->a) + (size_t)k * i->a.stride * i->a.esize, i->r.esize);
  return GO;
}

Step x_vec_set(World *w, Agent *a, const Ins *i) {
  (void)w;
  const int64_t n = ir_type_elems(i->op->results[0].type), k = interp_ref_int(a, i->b, 0);
  char *r = interp_at(a, i->r);
  spread(r, interp_at(a, i->a), i->a, (size_t)n);
  if (k >= 0 && k < n) memcpy(r + (size_t)k * i->r.esize, interp_at(a, i->c), i->r.esize);
  return GO;
}

// ---- reductions and scans ------------------------------------------------------------------------------------------------
// A body agent sees the instance's slots and its scalars.
static Agent body_agent(const Agent *a) {
  Agent b = *a;
  b.kind = AGENT_VEC;
  b.lane0 = 0;
  return b;
}

// out = body(x, y) on n independent pairs; each of x, y, out: an array an operand.
static void combine(World *w, Agent *body, const ReduceExtra *e, char *const *x, char *const *y,
                    char *const *out, size_t n) {
  if (e->fast) {
    e->fast(out[0], e->fast_swapped ? y[0] : x[0], e->fast_swapped ? x[0] : y[0], NULL, STRIDE_A | STRIDE_B,
            n);
    return;
  }
  for (size_t k = 0; k < n; k += 64) {
    const size_t m = n - k < 64 ? n - k : 64;
    body->nthr = (uint32_t)m;
    body->mask = m == 64 ? ~0ull : (1ull << m) - 1;
    for (uint32_t q = 0; q < e->count; q++) {
      const size_t es = e->in[q].esize;
      memcpy(interp_at(body, e->x[q]), x[q] + k * es, m * es);
      memcpy(interp_at(body, e->y[q]), y[q] + k * es, m * es);
    }
    interp_body_run(w, body, e->body);
    for (uint32_t q = 0; q < e->count; q++)
      spread(out[q] + k * e->in[q].esize, interp_at(body, e->yielded[q]), e->yielded[q], m);
  }
}

enum { MAX_OPERANDS = 64 };

// The operand as [k][outer][inner], in buf unless it lies so already.
static char *by_step(const Agent *a, const ReduceExtra *e, uint32_t q, char *buf) {
  const Ref r = e->in[q];
  const int64_t lanes = e->outer * e->inner;
  char *p = interp_at(a, r);
  if (!r.stride) {
    interp_fill(buf, p, r.esize, (size_t)(e->k * lanes));
    return buf;
  }
  if (e->outer == 1) return p;
  NdCopy nd = {.rank = 3,
               .shape = {e->k, e->outer, e->inner},
               .rs = {lanes, e->inner, 1},
               .as = {e->inner, e->k * e->inner, 1}};
  if (e->inner == 1) nd.rank = 2;
  interp_nd_copy(&nd, buf, p, r.esize);
  return buf;
}

Step x_reduce(World *w, Agent *a, const Ins *i) {
  const ReduceExtra *e = i->extra;
  const size_t lanes = (size_t)(e->outer * e->inner);
  char *cur[MAX_OPERANDS], *in[MAX_OPERANDS], *right[MAX_OPERANDS], *spare[MAX_OPERANDS];
  if (e->count > MAX_OPERANDS) {
    interp_fault(w, FAULT_UNSUPPORTED, i->op->loc, LOC_NONE, "a reduction of more than %d tiles",
                 MAX_OPERANDS);
    w->stop = true;
    return SWITCH;
  }
  size_t bytes = 0;
  const size_t all = (size_t)e->k * lanes;
  for (uint32_t q = 0; q < e->count; q++) bytes += 2 * bits_round_up(all * e->in[q].esize, 64);
  char *buf = interp_scratch(w, bytes);
  for (uint32_t q = 0; q < e->count; q++) {
    const size_t size = bits_round_up(all * e->in[q].esize, 64);
    cur[q] = by_step(a, e, q, buf);
    spare[q] = buf + size; // cur may also be the operand itself: never written
    in[q] = buf;
    buf += 2 * size;
  }
  Agent body = body_agent(a);
  int64_t k = e->k;
  while (k > 1) {
    const int64_t half = k / 2, rest = k & 1;
    char *out[MAX_OPERANDS];
    for (uint32_t q = 0; q < e->count; q++) {
      right[q] = cur[q] + (size_t)half * lanes * e->in[q].esize;
      out[q] = cur[q] == spare[q] ? in[q] : spare[q];
    }
    combine(w, &body, e, cur, right, out, (size_t)half * lanes);
    for (uint32_t q = 0; q < e->count; q++) {
      const size_t es = e->in[q].esize;
      if (rest) memcpy(out[q] + (size_t)half * lanes * es, cur[q] + (size_t)(k - 1) * lanes * es, lanes * es);
      cur[q] = out[q];
    }
    k = half + rest;
  }
  for (uint32_t q = 0; q < e->count; q++) memcpy(interp_at(a, e->out[q]), cur[q], lanes * e->in[q].esize);
  a->pc = i->target; // past the region
  return GO;
}

Step x_scan(World *w, Agent *a, const Ins *i) {
  const ReduceExtra *e = i->extra;
  const size_t lanes = (size_t)(e->outer * e->inner), all = (size_t)e->k * lanes;
  char *in[MAX_OPERANDS], *out[MAX_OPERANDS], *x[MAX_OPERANDS], *y[MAX_OPERANDS], *r[MAX_OPERANDS];
  if (e->count > MAX_OPERANDS) {
    interp_fault(w, FAULT_UNSUPPORTED, i->op->loc, LOC_NONE, "a scan of more than %d tiles", MAX_OPERANDS);
    w->stop = true;
    return SWITCH;
  }
  size_t bytes = 0;
  for (uint32_t q = 0; q < e->count; q++) bytes += 2 * bits_round_up(all * e->in[q].esize, 64);
  char *buf = interp_scratch(w, bytes);
  for (uint32_t q = 0; q < e->count; q++) {
    const size_t size = bits_round_up(all * e->in[q].esize, 64);
    in[q] = by_step(a, e, q, buf);
    out[q] = e->outer == 1 ? interp_at(a, e->out[q]) : buf + size;
    buf += 2 * size;
  }
  Agent body = body_agent(a);
  for (int64_t s = 0; s < e->k; s++) {
    const size_t at = (size_t)(e->reverse ? e->k - 1 - s : s) * lanes;
    const size_t before = e->reverse ? at + lanes : at - lanes;
    for (uint32_t q = 0; q < e->count; q++) {
      const size_t es = e->in[q].esize;
      y[q] = in[q] + at * es;
      r[q] = out[q] + at * es;
      if (s)
        x[q] = out[q] + before * es;
      else
        memcpy(r[q], y[q], lanes * es);
    }
    if (s) combine(w, &body, e, x, y, r, lanes);
  }
  for (uint32_t q = 0; q < e->count && e->outer != 1; q++) {
    NdCopy nd = {.rank = 3,
                 .shape = {e->outer, e->k, e->inner},
                 .rs = {e->k * e->inner, e->inner, 1},
                 .as = {e->inner, (int64_t)lanes, 1}};
    interp_nd_copy(&nd, interp_at(a, e->out[q]), out[q], e->in[q].esize);
  }
  a->pc = i->target; // past the region
  return GO;
}

// ---- products --------------------------------------------------------------------------------------------------------------
// c[m n] += a[m k] b[k n], four rows at a time.
#define MATMUL(NAME, T, A) \
  static void NAME(T *restrict c, const A *restrict a, const A *restrict b, int64_t m, int64_t n, \
                   int64_t k) { \
    int64_t i = 0; \
    for (; i + 4 <= m; i += 4) { \
      T *c0 = c + i * n, *c1 = c0 + n, *c2 = c1 + n, *c3 = c2 + n; \
      for (int64_t p = 0; p < k; p++) { \
        const T a0 = (T)a[i * k + p], a1 = (T)a[(i + 1) * k + p], a2 = (T)a[(i + 2) * k + p], \
                a3 = (T)a[(i + 3) * k + p]; \
        const A *row = b + p * n; \
        for (int64_t j = 0; j < n; j++) { \
          const T x = (T)row[j]; \
          c0[j] += a0 * x; \
          c1[j] += a1 * x; \
          c2[j] += a2 * x; \
          c3[j] += a3 * x; \
        } \
      } \
    } \
    for (; i < m; i++) { \
      for (int64_t p = 0; p < k; p++) { \
        const T a0 = (T)a[i * k + p]; \
        for (int64_t j = 0; j < n; j++) c[i * n + j] += a0 * (T)b[p * n + j]; \
      } \
    } \
  }
MATMUL(matmul_f32, float, float)
MATMUL(matmul_f64, double, double)
MATMUL(matmul_i32, uint32_t, int32_t)
MATMUL(matmul_i64, uint64_t, int64_t)

static void to_f64(IrDtype d, double *r, const void *p, size_t n) {
  if (d == IR_f64) {
    memcpy(r, p, n * sizeof *r);
    return;
  }
  float f[64];
  for (size_t i = 0; i < n; i += 64) {
    const size_t m = n - i < 64 ? n - i : 64;
    interp_widen(d, f, (const char *)p + i * ir_dtypes[d].bytes, m);
    for (size_t j = 0; j < m; j++) r[i + j] = f[j];
  }
}
static void to_i32(IrDtype d, int32_t *r, const char *p, size_t n) {
  const int es = ir_dtypes[d].bytes;
  for (size_t i = 0; i < n; i++) r[i] = (int32_t)interp_int(p + i * (size_t)es, es);
}
static void to_i64(IrDtype d, int64_t *r, const char *p, size_t n) {
  const int es = ir_dtypes[d].bytes;
  for (size_t i = 0; i < n; i++) r[i] = interp_int(p + i * (size_t)es, es);
}

static void product(World *w, const DotExtra *x, char *r, const char *c, const char *a, const char *b) {
  const size_t na = (size_t)(x->m * x->k), nb = (size_t)(x->k * x->n), nc = (size_t)(x->m * x->n);
  const size_t wide = 8;
  char *buf = interp_scratch(w, (na + nb + nc) * wide + 192);
  char *wa = buf, *wb = wa + bits_round_up(na * wide, 64), *wc = wb + bits_round_up(nb * wide, 64);
  if (x->c == IR_f64) {
    to_f64(x->a, (double *)wa, a, na);
    to_f64(x->b, (double *)wb, b, nb);
    memmove(r, c, nc * sizeof(double));
    matmul_f64((double *)r, (double *)wa, (double *)wb, x->m, x->n, x->k);
  } else if (ir_dtypes[x->c].cls == IR_FLOAT) {
    const float *fa = (const float *)a, *fb = (const float *)b;
    if (x->a != IR_f32) interp_widen(x->a, (float *)wa, a, na), fa = (const float *)wa;
    if (x->b != IR_f32) interp_widen(x->b, (float *)wb, b, nb), fb = (const float *)wb;
    float *fc = (float *)r;
    if (x->c == IR_f32)
      memmove(r, c, nc * sizeof(float));
    else
      interp_widen(x->c, fc = (float *)wc, c, nc);
    matmul_f32(fc, fa, fb, x->m, x->n, x->k);
    if (x->c != IR_f32) interp_narrow(x->c, r, fc, nc);
  } else if (x->c == IR_i64) {
    to_i64(x->a, (int64_t *)wa, a, na);
    to_i64(x->b, (int64_t *)wb, b, nb);
    memmove(r, c, nc * 8);
    matmul_i64((uint64_t *)r, (int64_t *)wa, (int64_t *)wb, x->m, x->n, x->k);
  } else {
    const int es = ir_dtypes[x->c].bytes;
    to_i32(x->a, (int32_t *)wa, a, na);
    to_i32(x->b, (int32_t *)wb, b, nb);
    to_i32(x->c, (int32_t *)wc, c, nc);
    matmul_i32((uint32_t *)wc, (int32_t *)wa, (int32_t *)wb, x->m, x->n, x->k);
    for (size_t k = 0; k < nc; k++) interp_put_int(r + k * (size_t)es, es, ((int32_t *)wc)[k]);
  }
}

Step x_dot(World *w, Agent *a, const Ins *i) {
  const DotExtra *x = i->extra;
  const size_t na = (size_t)(x->m * x->k) * ir_dtypes[x->a].bytes,
               nb = (size_t)(x->k * x->n) * ir_dtypes[x->b].bytes,
               nc = (size_t)(x->m * x->n) * ir_dtypes[x->c].bytes;
  // Operands that are the same everywhere are spread out behind the product's own scratch.
  const size_t bt = (size_t)x->batch;
  char *spread_buf = interp_pool_get(w, bt * (na + nb + nc) + 192);
  char *sb = spread_buf + bits_round_up(bt * na, 64), *sc = sb + bits_round_up(bt * nb, 64);
  const char *pa = full(a, i->a, spread_buf, bt * (size_t)(x->m * x->k));
  const char *pb = full(a, i->b, sb, bt * (size_t)(x->k * x->n));
  const char *pc = full(a, i->c, sc, bt * (size_t)(x->m * x->n));
  char *r = interp_at(a, i->r);
  for (size_t k = 0; k < bt; k++) product(w, x, r + k * nc, pc + k * nc, pa + k * na, pb + k * nb);
  interp_pool_put(w, spread_buf, bt * (na + nb + nc) + 192);
  return GO;
}

// An operand of dot_async, row-major: the tile, or what its buffer holds, turned where asked.
static const char *async_operand(World *w, Agent *a, const Ins *i, Ref r, uint32_t index, bool trans,
                                 char *buf) {
  const IrType *t = ir_operand(i->op, index)->type;
  const size_t n = (size_t)ir_type_elems(t), es = ir_dtypes[t->dtype].bytes;
  if (t->kind == IR_TILE) return full(a, r, buf, n);
  const char *m = *(char **)interp_at(a, r);
  if (!interp_product_reads(w, a, i, m, n * es, 0)) return memset(buf, 0, n * es);
  if (!trans) return m;
  const size_t rows = (size_t)t->shape[0], cols = (size_t)t->shape[1];
  for (size_t y = 0; y < rows; y++)
    for (size_t x = 0; x < cols; x++) memcpy(buf + (x * rows + y) * es, m + (y * cols + x) * es, es);
  return buf;
}

// Done when issued: reads too early or too late show in the stages where copies run in the background, and in --check.
Step x_dot_async(World *w, Agent *a, const Ins *i) {
  const DotExtra *x = i->extra;
  const size_t na = (size_t)(x->m * x->k) * ir_dtypes[x->a].bytes,
               nb = (size_t)(x->k * x->n) * ir_dtypes[x->b].bytes,
               nc = (size_t)(x->m * x->n) * ir_dtypes[x->c].bytes, all = na + nb + nc + 192;
  char *buf = interp_pool_get(w, all), *sb = buf + bits_round_up(na, 64), *sc = sb + bits_round_up(nb, 64);
  const char *pa = async_operand(w, a, i, i->a, 0, ir_attr_i(i->op, ATTR_a_trans), buf);
  const char *pb = async_operand(w, a, i, i->b, 1, ir_attr_i(i->op, ATTR_b_trans), sb);
  const char *pc = i->c.space ? full(a, i->c, sc, (size_t)(x->m * x->n)) : memset(sc, 0, nc);
  product(w, x, interp_at(a, i->r), pc, pa, pb);
  interp_pool_put(w, buf, all);
  a->products++;
  return SWITCH;
}

Step x_dot_wait(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra; // values, then results
  const uint32_t n = i->op->nresults;
  interp_product_wait(w, a, ir_attr_i(i->op, ATTR_pending));
  for (uint32_t k = 0; k < n; k++) {
    const IrType *t = i->op->results[k].type;
    const size_t elems = (size_t)ir_type_elems(t);
    char *r = interp_at(a, o->at[n + k]);
    if (o->at[k].stride)
      memcpy(r, interp_at(a, o->at[k]), elems * o->at[k].esize);
    else
      interp_fill(r, interp_at(a, o->at[k]), o->at[k].esize, elems);
  }
  return GO;
}

Step x_dot_mem(World *w, Agent *a, const Ins *i) {
  const IrType *tc = ir_operand(i->op, 0)->type, *ta = ir_operand(i->op, 1)->type,
               *tb = ir_operand(i->op, 2)->type;
  char *c = *(char **)interp_at(a, i->a), *pa = *(char **)interp_at(a, i->b),
       *pb = *(char **)interp_at(a, i->c);
  const int r = tc->rank;
  DotExtra x = {1,         tc->shape[r - 2], tc->shape[r - 1], ta->shape[ta->rank - 1],
                ta->dtype, tb->dtype,        tc->dtype};
  for (int d = 0; d < r - 2; d++) x.batch *= tc->shape[d];
  const size_t na = (size_t)(x.m * x.k) * ir_dtypes[x.a].bytes,
               nb = (size_t)(x.k * x.n) * ir_dtypes[x.b].bytes,
               nc = (size_t)(x.m * x.n) * ir_dtypes[x.c].bytes, bt = (size_t)x.batch;
  interp_mem_range(w, a, i, pa, bt * na, ACC_READ, 0);
  interp_mem_range(w, a, i, pb, bt * nb, ACC_READ, 0);
  interp_mem_range(w, a, i, c, bt * nc, ACC_READ | ACC_WRITE, 0);
  for (size_t k = 0; k < bt; k++) product(w, &x, c + k * nc, c + k * nc, pa + k * na, pb + k * nb);
  w->elems += bt * (size_t)(x.m * x.n);
  return SWITCH;
}
