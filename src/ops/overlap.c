// GEMMs overlapped with communication. Each operator keeps the plain path (communicate, then multiply, or the other way
// round) beside the overlapped ones.
#include "ops/ops_impl.h"

void ops_gemm_blocks(dt_plan *p, int64_t rows) {
  p->block_m = rows >= 128 ? 128 : rows >= 64 ? 64 : 32;
  p->block_n = 128;
  p->block_k = 64;
}

void ops_gemm_args(dt_plan *p, OpsKernel *k, int64_t m, int64_t n, int64_t kk) {
  ops_arg(k, "M", dt_int(m));
  ops_arg(k, "N", dt_int(n));
  ops_arg(k, "K", dt_int(kk));
  ops_gemm_constexprs(p, k);
}

void ops_gemm_constexprs(dt_plan *p, OpsKernel *k) {
  ops_arg(k, "BLOCK_M", dt_int(p->block_m));
  ops_arg(k, "BLOCK_N", dt_int(p->block_n));
  ops_arg(k, "BLOCK_K", dt_int(p->block_k));
  ops_arg(k, "GROUP_M", dt_int(8));
}

// Never slower: on a CPU copies and waits take turns with the products on the same cores, so there is nothing to hide behind
// and going in turn wins (docs/performance.md has the figures). Overlap is for devices with copy engines, or when asked for.
static const char *best_variant(dt_plan *p) {
  if (!p->o.variant) ops_explain(p, "%s: plain, since a CPU copies with the cores that multiply", p->o.op);
  return "plain";
}

static dt_status divisible(dt_plan *p, const char *what, int64_t size) {
  if (size % p->world == 0) return DT_OK;
  return ops_fail(p, DT_INVALID, "%s: %s = %lld is not a multiple of the %d ranks", p->row->name, what,
                  (long long)size, p->world);
}

// ---- all-gather + GEMM -----------------------------------------------------------------------------------------------------
enum { AG_GEMM = OPS_CHANNEL_KERNELS, AG_PUSH };

dt_status ops_ag_gemm_setup(dt_plan *p) {
  static const char *const variants[] = {"plain", "overlap", "overlap_push", "overlap_raw", NULL};
  dt_status st;
  if ((st = ops_choose(p, variants, best_variant(p))) != DT_OK || (st = divisible(p, "m", p->o.m)) != DT_OK ||
      (st = divisible(p, "n", p->o.n)) != DT_OK)
    return st;
  int64_t rows = p->o.m / p->world;
  bool raw = ops_is(p, "overlap_raw");
  ops_gemm_blocks(p, rows);
  p->parts = ops_is(p, "overlap_push") ? 4 : 1;
  p->block = 4096;
  p->uses_side = true;
  ops_channel_kernels(p);
  ops_buffer(p, "ag_gemm.a", (size_t)(p->o.m * p->o.k) * p->elem);
  OpsKernel *k = raw ? ops_kernel(p, "overlap_raw.py", "ag_gemm_wait_kernel")
                     : ops_kernel(p, "overlap.py", "ag_gemm_kernel");
  ops_arg(k, "a_ptr", ops_own(p->o.dtype));
  ops_arg(k, "b_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "c_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "flags_ptr", ops_words());
  ops_arg(k, "epoch_ptr", ops_words());
  ops_arg(k, "M", dt_int(p->o.m));
  ops_arg(k, "N", dt_int(p->o.n / p->world));
  ops_arg(k, "K", dt_int(p->o.k));
  if (!raw) ops_arg(k, "per_epoch", dt_int(2));
  ops_gemm_constexprs(p, k);
  if (ops_is(p, "overlap_push")) {
    k = ops_kernel(p, "collectives.py", "all_gather_push_kernel");
    ops_arg(k, "x_ptr", ops_tensor(p->o.dtype));
    ops_arg(k, "gathered_ptr", ops_own(p->o.dtype));
    ops_arg(k, "flags_ptr", ops_words());
    ops_arg(k, "acks_ptr", ops_words());
    ops_arg(k, "epoch_ptr", ops_words());
    ops_arg(k, "n", dt_int(rows * p->o.k));
    ops_arg(k, "BLOCK", dt_int(p->block));
  } else if (raw) {
    k = ops_kernel(p, "overlap_raw.py", "all_gather_put_kernel");
    ops_arg(k, "x_ptr", ops_tensor(p->o.dtype));
    ops_arg(k, "gathered_ptr", ops_own(p->o.dtype));
    ops_arg(k, "flags_ptr", ops_words());
    ops_arg(k, "acks_ptr", ops_words());
    ops_arg(k, "epoch_ptr", ops_words());
    ops_arg(k, "bytes_per_rank", dt_int((int64_t)((size_t)(rows * p->o.k) * p->elem)));
  }
  ops_explain(p, "ag_gemm: %s, tiles %dx%dx%d, %lld rows a rank", p->variant, p->block_m, p->block_n,
              p->block_k, (long long)rows);
  return DT_OK;
}

// This rank's rows of A to everybody, on stream s.
static dt_status gather_a(dt_plan *p, dt_stream *s, const void *a) {
  dt_dtype d = p->o.dtype;
  int64_t n = p->o.m / p->world * p->o.k;
  size_t bytes = (size_t)n * p->elem;
  if (ops_is(p, "overlap_push"))
    return OPS_LAUNCH(&p->kernels[AG_PUSH], s, p->parts, p->world, dt_ptr(d, (void *)a),
                      dt_ptr(d, p->buffers[0].own), dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.acks),
                      dt_ptr(DT_I64, p->ch.epoch), dt_int(n));
  if (ops_is(p, "overlap_raw"))
    return OPS_LAUNCH(&p->kernels[AG_PUSH], s, p->world, 1, dt_ptr(d, (void *)a),
                      dt_ptr(d, p->buffers[0].own), dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.acks),
                      dt_ptr(DT_I64, p->ch.epoch), dt_int((int64_t)bytes));
  return ops_push_all(p, s, 0, (size_t)p->index * bytes, a, bytes);
}

dt_status ops_ag_gemm_run(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  int64_t n = p->o.n / p->world;
  int64_t tiles = ops_cdiv(p->o.m, p->block_m) * ops_cdiv(n, p->block_n);
  bool plain = ops_is(p, "plain");
  dt_stream *copies = plain ? s : p->side;
  dt_status st = ops_advance(p, s);
  if (st == DT_OK && !plain) st = ops_order(p, 0, s, copies);
  if (st == DT_OK) st = gather_a(p, copies, t[0]);
  if (st == DT_OK && plain) st = ops_wait_all(p, s, p->ch.flags, 1, 0);
  if (st != DT_OK) return st;
  dt_value args[9] = {dt_ptr(d, p->buffers[0].own),
                      dt_ptr(d, t[1]),
                      dt_ptr(d, t[2]),
                      dt_ptr(DT_I64, p->ch.flags),
                      dt_ptr(DT_I64, p->ch.epoch),
                      dt_int(p->o.m),
                      dt_int(n),
                      dt_int(p->o.k),
                      dt_int(p->parts)};
  st = ops_launch(&p->kernels[AG_GEMM], s, (uint32_t)tiles, 1, args, ops_is(p, "overlap_raw") ? 8 : 9);
  if (st == DT_OK) st = ops_announce(p, s, p->ch.acks, 1);
  return st == DT_OK && !plain ? ops_order(p, 1, copies, s) : st;
}

// ---- GEMM + reduce-scatter, GEMM + all-reduce ---------------------------------------------------------------------------------
// Overlapped: each tile of the f32 product goes straight into the memory of the rank that sums it (all of them for all-reduce),
// which adds the ranks' parts in rank order. Plain: the whole product into this rank's memory first, then the collective.
enum { PARTIAL_GEMM = OPS_CHANNEL_KERNELS, PARTIAL_SUM };

static int64_t partial_rows(const dt_plan *p, bool scatter) { return scatter ? p->o.m / p->world : p->o.m; }
static int64_t partial_tiles(const dt_plan *p, bool scatter) {
  int64_t of_rank = ops_cdiv(partial_rows(p, scatter), p->block_m) * ops_cdiv(p->o.n, p->block_n);
  return scatter ? p->world * of_rank : of_rank;
}

static void sum_kernel(dt_plan *p, const char *file, const char *name, const char *in, int64_t n,
                       const char *last) {
  OpsKernel *k = ops_kernel(p, file, name);
  ops_arg(k, in, ops_own(DT_F32));
  ops_arg(k, "out_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "flags_ptr", ops_words());
  ops_arg(k, "epoch_ptr", ops_words());
  ops_arg(k, "n", dt_int(n));
  if (last) ops_arg(k, last, dt_int(2));
  ops_arg(k, "BLOCK", dt_int(p->block));
}

static void plain_setup(dt_plan *p, bool scatter, int64_t n) {
  ops_buffer(p, scatter ? "gemm_rs.product" : "gemm_ar.product", (size_t)(p->o.m * p->o.n) * sizeof(float));
  OpsKernel *k = ops_kernel(p, "matmul.py", "matmul_persistent_kernel");
  ops_arg(k, "a_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "b_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "c_ptr", ops_own(DT_F32));
  ops_gemm_args(p, k, p->o.m, p->o.n, p->o.k / p->world);
  sum_kernel(p, "collectives.py", scatter ? "reduce_scatter_kernel" : "all_reduce_one_shot_kernel", "x_ptr",
             n, NULL);
}

static void overlap_setup(dt_plan *p, bool scatter, int64_t n, const char *kernel, const char *raw_kernel) {
  bool raw = ops_is(p, "overlap_raw");
  p->uses_side = true;
  ops_buffer(p, scatter ? "gemm_rs.partial" : "gemm_ar.partial", (size_t)(p->world * n) * sizeof(float));
  OpsKernel *k = raw ? ops_kernel(p, "overlap_raw.py", raw_kernel) : ops_kernel(p, "overlap.py", kernel);
  ops_arg(k, "a_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "b_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "partial_ptr", ops_own(DT_F32));
  ops_arg(k, "flags_ptr", ops_words());
  ops_arg(k, "acks_ptr", ops_words());
  ops_arg(k, "epoch_ptr", ops_words());
  ops_gemm_args(p, k, p->o.m, p->o.n, p->o.k / p->world);
  // GEMM + all-reduce with raw primitives has one word a rank and tile; every other variant counts tiles in one word a rank.
  bool words = raw && !scatter;
  if (words) p->ch.flag_words = (size_t)(partial_tiles(p, scatter) * p->world);
  if (words)
    sum_kernel(p, "overlap_raw.py", "sum_partials_wait_kernel", "partial_ptr", n, "n_flags");
  else
    sum_kernel(p, "overlap.py", "sum_partials_kernel", "partial_ptr", n, "per_epoch");
}

static dt_status partial_setup(dt_plan *p, bool scatter, const char *kernel, const char *raw_kernel) {
  static const char *const variants[] = {"plain", "overlap", "overlap_raw", NULL};
  dt_status st;
  if ((st = ops_choose(p, variants, best_variant(p))) != DT_OK || (st = divisible(p, "k", p->o.k)) != DT_OK ||
      (scatter && (st = divisible(p, "m", p->o.m)) != DT_OK))
    return st;
  int64_t rows = partial_rows(p, scatter);
  p->block = 4096;
  ops_channel_kernels(p);
  if (ops_is(p, "plain")) {
    ops_gemm_blocks(p, p->o.m);
    plain_setup(p, scatter, rows * p->o.n);
  } else {
    ops_gemm_blocks(p, rows);
    overlap_setup(p, scatter, rows * p->o.n, kernel, raw_kernel);
  }
  ops_explain(p, "%s: %s, tiles %dx%dx%d", p->row->name, p->variant, p->block_m, p->block_n, p->block_k);
  return DT_OK;
}

static dt_status plain_run(dt_plan *p, dt_stream *s, void *const *t, int64_t n, uint32_t parts) {
  dt_dtype d = p->o.dtype;
  int64_t tiles = ops_cdiv(p->o.m, p->block_m) * ops_cdiv(p->o.n, p->block_n);
  dt_status st;
  if ((st = ops_wait_all(p, s, p->ch.acks, 1, 1)) != DT_OK ||
      (st = OPS_LAUNCH(&p->kernels[PARTIAL_GEMM], s, tiles, 1, dt_ptr(d, t[0]), dt_ptr(d, t[1]),
                       dt_ptr(DT_F32, p->buffers[0].own), dt_int(p->o.m), dt_int(p->o.n),
                       dt_int(p->o.k / p->world))) != DT_OK ||
      (st = ops_announce(p, s, p->ch.flags, 1)) != DT_OK)
    return st;
  return OPS_LAUNCH(&p->kernels[PARTIAL_SUM], s, parts, 1, dt_ptr(DT_F32, p->buffers[0].own), dt_ptr(d, t[2]),
                    dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.epoch), dt_int(n));
}

static dt_status overlap_run(dt_plan *p, dt_stream *s, void *const *t, bool scatter, int64_t n,
                             uint32_t parts) {
  dt_dtype d = p->o.dtype;
  int64_t tiles = partial_tiles(p, scatter);
  bool words = ops_is(p, "overlap_raw") && !scatter;
  int64_t expected = words ? tiles * p->world : scatter ? tiles / p->world : tiles;
  dt_status st;
  if ((st = ops_order(p, 0, s, p->side)) != DT_OK ||
      (st = OPS_LAUNCH(&p->kernels[PARTIAL_GEMM], s, tiles, 1, dt_ptr(d, t[0]), dt_ptr(d, t[1]),
                       dt_ptr(DT_F32, p->buffers[0].own), dt_ptr(DT_I64, p->ch.flags),
                       dt_ptr(DT_I64, p->ch.acks), dt_ptr(DT_I64, p->ch.epoch), dt_int(p->o.m),
                       dt_int(p->o.n), dt_int(p->o.k / p->world))) != DT_OK)
    return st;
  return OPS_LAUNCH(&p->kernels[PARTIAL_SUM], p->side, parts, 1, dt_ptr(DT_F32, p->buffers[0].own),
                    dt_ptr(d, t[2]), dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.epoch), dt_int(n),
                    dt_int(expected));
}

static dt_status partial_run(dt_plan *p, dt_stream *s, void *const *t, bool scatter) {
  int64_t n = partial_rows(p, scatter) * p->o.n;
  uint32_t parts = (uint32_t)ops_cdiv(n, 8 * p->block);
  bool plain = ops_is(p, "plain");
  dt_status st = ops_advance(p, s);
  if (st == DT_OK) st = plain ? plain_run(p, s, t, n, parts) : overlap_run(p, s, t, scatter, n, parts);
  if (st == DT_OK) st = ops_announce(p, plain ? s : p->side, p->ch.acks, 1);
  return st == DT_OK && !plain ? ops_order(p, 1, p->side, s) : st;
}

dt_status ops_gemm_rs_setup(dt_plan *p) {
  return partial_setup(p, true, "gemm_rs_kernel", "gemm_rs_notify_kernel");
}
dt_status ops_gemm_rs_run(dt_plan *p, dt_stream *s, void *const *t) { return partial_run(p, s, t, true); }
dt_status ops_gemm_ar_setup(dt_plan *p) {
  return partial_setup(p, false, "gemm_ar_kernel", "gemm_ar_notify_kernel");
}
dt_status ops_gemm_ar_run(dt_plan *p, dt_stream *s, void *const *t) { return partial_run(p, s, t, false); }
