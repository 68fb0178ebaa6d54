// api_ops: operators over many ranks, called again and again with changing inputs, each result checked exactly. Inputs are small
// integers, so that sums and products are exact in f32 and what is left is one rounding to the dtype, the same in the reference.
//
// The same cases run on ranks that are threads (ops_threads) and on processes: ops_processes starts this very program as the
// ranks of a job, with the arguments `rank SET`.
#ifndef DITRON_API_OPS_H
#define DITRON_API_OPS_H

#define DT_UNSTABLE
#include "ditron/ditron.h"
#include "harness/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OPS_SANITIZED = 1 };
#else
enum { OPS_SANITIZED = 0 };
#endif

// The thread sanitizer does not see the acquires and releases of compiled kernels, and takes copies that they order for races.
#if defined(__SANITIZE_THREAD__)
#define OPS_SKIP_UNSEEN() skip()
#else
#define OPS_SKIP_UNSEEN() ((void)0)
#endif

enum { OPS_TENSORS = 4, OPS_SETS = 4 };

typedef struct OpsCase {
  const char *op, *variant;
  dt_dtype dtype;
  int64_t m, n, k; // as for dt_plan_options
} OpsCase;

typedef struct OpsJob { // what every rank does
  const OpsCase *cases;
  size_t ncases;
  int calls;
  uint64_t
      delays; // 0: none; else the seed of random pauses on the host and of work that keeps the workers busy
  int offset; // elements by which tensors are moved from where the allocator put them
} OpsJob;

static inline uint64_t ops_hash(uint64_t z) { // splitmix64's finaliser (Steele, Lea, Flood 2014)
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static inline void ops_root(char out[PATH_MAX]) { // the repository: ROOT, or found above the program
  const char *root = getenv("ROOT");
  if (root) {
    snprintf(out, PATH_MAX, "%s", root);
    return;
  }
  ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 64);
  out[n > 0 ? n : 0] = 0;
  for (char *slash; (slash = strrchr(out, '/'));) {
    *slash = 0;
    size_t len = strlen(out);
    strcat(out, "/kernels/overlap.py");
    bool found = access(out, R_OK) == 0;
    out[len] = 0;
    if (found) return;
  }
}

// ---- inputs and references ------------------------------------------------------------------------------------------------
static inline int64_t ops_input(const OpsCase *c, int tensor, int rank, int call, int64_t i) {
  uint64_t h =
      ops_hash((uint64_t)i + ((uint64_t)tensor << 58) + ((uint64_t)rank << 50) + ((uint64_t)call << 32));
  bool is_unsigned = c->dtype == DT_I1 || (c->dtype >= DT_U8 && c->dtype <= DT_U64);
  return is_unsigned ? (int64_t)(h >> 8) % 2 : (int64_t)((h >> 8) % 7) - 3;
}

static inline bool ops_is_op(const OpsCase *c, const char *op) { return strcmp(c->op, op) == 0; }

// Elements of the tensors, the output last; returns how many tensors.
static inline int ops_sizes(const OpsCase *c, int world, size_t out[OPS_TENSORS]) {
  size_t m = (size_t)c->m, n = (size_t)c->n, k = (size_t)c->k, p = (size_t)world;
  if (ops_is_op(c, "all_gather")) return out[0] = m, out[1] = p * m, 2;
  if (ops_is_op(c, "reduce_scatter")) return out[0] = p * m, out[1] = m, 2;
  if (ops_is_op(c, "all_reduce")) return out[0] = m, out[1] = m, 2;
  if (ops_is_op(c, "all_to_all")) return out[0] = p * m, out[1] = p * m, 2;
  if (ops_is_op(c, "ag_gemm")) return out[0] = m / p * k, out[1] = k * (n / p), out[2] = m * (n / p), 3;
  if (ops_is_op(c, "gemm_rs")) return out[0] = m * (k / p), out[1] = k / p * n, out[2] = m / p * n, 3;
  if (ops_is_op(c, "gemm_ar")) return out[0] = m * (k / p), out[1] = k / p * n, out[2] = m * n, 3;
  return 0;
}

static inline int64_t ops_dot(const OpsCase *c, int call, int ra, int64_t row, int rb, int64_t col,
                              int64_t kk, int64_t nn) {
  int64_t sum = 0;
  for (int64_t j = 0; j < kk; j++)
    sum += ops_input(c, 0, ra, call, row * kk + j) * ops_input(c, 1, rb, call, j * nn + col);
  return sum;
}

static inline int64_t ops_want(const OpsCase *c, int world, int rank, int call, int64_t i) {
  int64_t sum = 0;
  if (ops_is_op(c, "all_gather")) return ops_input(c, 0, (int)(i / c->m), call, i % c->m);
  if (ops_is_op(c, "all_to_all")) return ops_input(c, 0, (int)(i / c->m), call, rank * c->m + i % c->m);
  if (ops_is_op(c, "ag_gemm")) {
    int64_t rows = c->m / world, n = c->n / world, row = i / n;
    return ops_dot(c, call, (int)(row / rows), row % rows, rank, i % n, c->k, n);
  }
  for (int r = 0; r < world; r++) {
    if (ops_is_op(c, "reduce_scatter"))
      sum += ops_input(c, 0, r, call, rank * c->m + i);
    else if (ops_is_op(c, "all_reduce"))
      sum += ops_input(c, 0, r, call, i);
    else
      sum += ops_dot(c, call, r, i / c->n + (ops_is_op(c, "gemm_rs") ? rank * (c->m / world) : 0), r,
                     i % c->n, c->k / world, c->n);
  }
  return sum;
}

// ---- one rank, one case -----------------------------------------------------------------------------------------------------
typedef struct OpsSet { // tensors of one call
  void *memory[OPS_TENSORS], *t[OPS_TENSORS];
} OpsSet;

typedef struct OpsNoise { // launches beside the operator, which come between its own
  dt_image *image;
  dt_kernel *kernel;
  dt_stream *stream;
  int32_t *word;
} OpsNoise;

static inline dt_status ops_noise_open(dt_rank *rank, OpsNoise *z) {
  static const char text[] =
      "import triton\nimport triton.language as tl\n@triton.jit\ndef busy(p, n):\n"
      "    x = tl.load(p + tl.program_id(0))\n    for i in range(0, n):\n        x = x * 1103515245 + 12345\n"
      "    tl.store(p + tl.program_id(0), x)\n";
  void *p = NULL;
  dt_status st = dt_alloc(rank, 64, &p);
  z->word = p;
  if (st != DT_OK) return st;
  memset(p, 0, 64);
  const dt_named args[] = {{"p", dt_ptr(DT_I32, p)}, {"n", dt_int(3)}};
  if ((st = dt_compile_text(dt_rank_context(rank), "noise.py", text, sizeof text - 1, "busy", args, 2, NULL,
                            &z->image)) != DT_OK ||
      (st = dt_kernel_load(rank, z->image, "busy", &z->kernel)) != DT_OK)
    return st;
  return dt_stream_create(rank, "noise", &z->stream);
}
static inline void ops_noise_close(dt_rank *rank, OpsNoise *z) {
  dt_stream_destroy(z->stream);
  dt_kernel_destroy(z->kernel);
  dt_image_destroy(z->image);
  dt_free(rank, z->word);
}

static inline dt_status ops_pause(const OpsJob *job, OpsNoise *z, int rank, int call) {
  if (!job->delays) return DT_OK;
  uint64_t h = ops_hash(job->delays * 1000003 + (uint64_t)rank * 7919 + (uint64_t)call);
  if (h % 4 == 0) usleep((useconds_t)(h >> 8) % 150);
  if ((h >> 32) % 4 != 0) return DT_OK;
  const dt_value args[] = {dt_ptr(DT_I32, z->word), dt_int(2 + (int64_t)(h >> 40) % 30000 * 16 / 16)};
  const uint32_t grid[3] = {1 + (h >> 34) % 2, 1, 1};
  return dt_launch(z->kernel, z->stream, grid, args, 2);
}

static inline void ops_fill(const OpsCase *c, const OpsSet *s, const size_t *sizes, int n, int rank,
                            int call) {
  size_t bytes = dt_dtype_bytes(c->dtype);
  for (int t = 0; t < n; t++) {
    int64_t x;
    for (size_t i = 0; i < sizes[t]; i++) {
      x = t == n - 1 ? (c->dtype == DT_I1 ? 0 : 77)
                     : ops_input(c, t, rank, call, (int64_t)i); // what nobody writes stays wrong
      dt_convert((char *)s->t[t] + i * bytes, c->dtype, &x, DT_I64, 1);
    }
  }
}

static inline dt_status ops_check(const OpsCase *c, const OpsSet *s, const size_t *sizes, int n,
                                  dt_rank *rank, int call) {
  size_t bytes = dt_dtype_bytes(c->dtype);
  int world = dt_team_size(dt_rank_team(rank)), index = dt_rank_index(rank);
  for (size_t i = 0; i < sizes[n - 1]; i++) {
    int64_t exact = ops_want(c, world, index, call, (int64_t)i);
    double got, want;
    char rounded[8];
    dt_convert(rounded, c->dtype, &exact, DT_I64, 1);
    dt_convert(&want, DT_F64, rounded, c->dtype, 1);
    dt_convert(&got, DT_F64, (char *)s->t[n - 1] + i * bytes, c->dtype, 1);
    if (got == want) continue;
    char text[256];
    snprintf(text, sizeof text, "call %d, rank %d of %d: element %zu is %g, not %g", call, index, world, i,
             got, want);
    return dt_context_fail(dt_rank_context(rank), DT_INTERNAL, text);
  }
  return DT_OK;
}

// OPS_SETS calls are under way at a time, each with tensors of its own.
static inline dt_status ops_calls(const OpsJob *job, const OpsCase *c, dt_rank *rank, dt_plan *plan,
                                  dt_stream *stream, OpsSet *set, OpsNoise *z) {
  size_t sizes[OPS_TENSORS];
  int n = ops_sizes(c, dt_team_size(dt_rank_team(rank)), sizes), index = dt_rank_index(rank);
  dt_status st = DT_OK;
  for (int call = 0; call < job->calls && st == DT_OK; call += OPS_SETS) {
    int count = job->calls - call < OPS_SETS ? job->calls - call : OPS_SETS;
    for (int i = 0; i < count; i++) ops_fill(c, &set[i], sizes, n, index, call + i);
    for (int i = 0; i < count && st == DT_OK; i++) {
      st = ops_pause(job, z, index, call + i);
      if (st == DT_OK) st = dt_plan_run(plan, stream, set[i].t, (size_t)n);
    }
    if (st == DT_OK) st = dt_stream_sync(stream);
    for (int i = 0; i < count && st == DT_OK; i++) st = ops_check(c, &set[i], sizes, n, rank, call + i);
  }
  return st;
}

static inline dt_status ops_case(const OpsJob *job, const OpsCase *c, dt_rank *rank, dt_stream *stream,
                                 OpsNoise *z) {
  char kernels[PATH_MAX];
  ops_root(kernels);
  strcat(kernels, "/kernels");
  size_t sizes[OPS_TENSORS];
  int n = ops_sizes(c, dt_team_size(dt_rank_team(rank)), sizes);
  OpsSet set[OPS_SETS] = {0};
  dt_status st = DT_OK;
  for (int i = 0; i < OPS_SETS; i++)
    for (int t = 0; t < n && st == DT_OK; t++) {
      st = dt_alloc(rank, (sizes[t] + 16) * dt_dtype_bytes(c->dtype), &set[i].memory[t]);
      set[i].t[t] = (char *)set[i].memory[t] + (size_t)job->offset * dt_dtype_bytes(c->dtype);
    }
  dt_plan *plan = NULL;
  const dt_plan_options o = {.size = sizeof o,
                             .op = c->op,
                             .variant = c->variant,
                             .dtype = c->dtype,
                             .m = c->m,
                             .n = c->n,
                             .k = c->k,
                             .kernels_dir = kernels};
  if (st == DT_OK) st = dt_plan_create(rank, &o, &plan);
  if (st == DT_OK) st = ops_calls(job, c, rank, plan, stream, set, z);
  dt_status agreed = dt_agree(rank, st);
  if (st == DT_OK) st = agreed;
  char *text = st == DT_OK ? NULL : strdup(dt_error(dt_rank_context(rank)));
  dt_plan_destroy(plan);
  for (int i = 0; i < OPS_SETS; i++)
    for (int t = 0; t < n; t++) dt_free(rank, set[i].memory[t]);
  if (st != DT_OK) {
    char whole[2048];
    snprintf(whole, sizeof whole, "%s %s %s m %lld n %lld k %lld: %s", c->op, c->variant,
             dt_dtype_name(c->dtype), (long long)c->m, (long long)c->n, (long long)c->k, text ? text : "?");
    dt_context_fail(dt_rank_context(rank), st, whole);
  }
  free(text);
  return st;
}

static inline dt_status ops_rank(dt_rank *rank, void *user) {
  const OpsJob *job = user;
  dt_stream *stream = NULL;
  OpsNoise z = {0};
  dt_status st = dt_stream_create(rank, "main", &stream);
  if (st == DT_OK && job->delays) st = ops_noise_open(rank, &z);
  for (size_t i = 0; i < job->ncases && st == DT_OK; i++)
    st = ops_case(job, &job->cases[i], rank, stream, &z);
  ops_noise_close(rank, &z);
  dt_stream_destroy(stream);
  return st;
}

// ---- ranks -------------------------------------------------------------------------------------------------------------------
static inline dt_context *ops_context(void) {
  dt_context *c = NULL;
  const dt_context_options o = {.size = sizeof o, .deadline_seconds = 60};
  if (dt_context_create(&o, &c) != DT_OK) {
    fprintf(stderr, "no context\n");
    exit(1);
  }
  return c;
}

static inline void ops_threads(const OpsJob *job, int world, int threads) {
  dt_context *c = ops_context();
  dt_team *team = NULL;
  const dt_team_options o = {
      .size = sizeof o, .local_ranks = world, .threads_per_rank = threads, .symmetric_bytes = 64 << 20};
  dt_status st = dt_team_create(c, &o, &team);
  if (st == DT_OK) st = dt_team_run(team, ops_rank, (void *)job);
  if (st != DT_OK) fail_msg("%d ranks as threads: %s: %s", world, dt_status_name(st), dt_error(c));
  dt_team_destroy(team);
  dt_context_destroy(c);
}

// In a process that is one rank: the exit code.
static inline int ops_rank_main(const OpsJob *job, int threads) {
  dt_context *c = ops_context();
  dt_team *team = NULL;
  const dt_team_options o = {
      .size = sizeof o, .from_environment = true, .threads_per_rank = threads, .symmetric_bytes = 64 << 20};
  dt_status st = dt_team_create(c, &o, &team);
  if (st == DT_OK) st = dt_team_run(team, ops_rank, (void *)job);
  if (st != DT_OK) fprintf(stderr, "a rank: %s: %s\n", dt_status_name(st), dt_error(c));
  dt_team_destroy(team);
  dt_context_destroy(c);
  return st != DT_OK;
}

static inline void ops_processes(const char *set, int world) {
  dt_context *c = ops_context();
  char self[PATH_MAX], ranks[16];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = 0;
  snprintf(ranks, sizeof ranks, "%d", world);
  const char *const argv[] = {self, "rank", set, ranks, NULL};
  int code = -1;
  dt_status st = dt_launch_job(c, argv, world, &code);
  if (st != DT_OK || code != 0)
    fail_msg("%d ranks as processes: exit code %d, %s %s %s", world, code, dt_status_name(st), dt_error(c),
             dt_remarks(c));
  dt_context_destroy(c);
}

#endif
