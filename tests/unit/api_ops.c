// Every operator and variant on 1, 2, 3, 4 and 8 ranks, ragged and tiny shapes, all kinds of element types, several calls on one
// plan, tensors at odd addresses. TIMEOUT: 600
#include "api_ops.h"

enum { MOST_CASES = 256 };
typedef struct Cases {
  OpsCase list[MOST_CASES];
  size_t n;
} Cases;

static void add(Cases *c, const char *op, const char *variant, dt_dtype d, int64_t m, int64_t n, int64_t k) {
  if (c->n < MOST_CASES) c->list[c->n] = (OpsCase){op, variant, d, m, n, k};
  c->n++;
}

static void collectives(Cases *c) {
  static const char *const all[][2] = {
      {"all_gather", "ce_push"},  {"all_gather", "ce_pull"},  {"all_gather", "push"},
      {"all_gather", "pull"},     {"all_gather", "ring"},     {"reduce_scatter", "pull"},
      {"all_reduce", "one_shot"}, {"all_reduce", "two_shot"}, {"all_to_all", "push"}};
  static const struct {
    dt_dtype d;
    int64_t m;
  } shapes[] = {{DT_F32, 1},     {DT_BF16, 7},  {DT_F16, 4096}, {DT_F32, 4099},
                {DT_F32, 40001}, {DT_I32, 100}, {DT_F64, 33},   {DT_F8E4M3, 19}};
  for (size_t i = 0; i < DT_COUNTOF(all); i++)
    for (size_t j = 0; j < DT_COUNTOF(shapes); j++)
      add(c, all[i][0], all[i][1], shapes[j].d, shapes[j].m, 0, 0);
  for (size_t i = 0; i < DT_COUNTOF(all); i++) add(c, all[i][0], all[i][1], DT_F32, 0, 0, 0);
  static const dt_dtype copied[] = {DT_I1, DT_U8, DT_I64, DT_U16, DT_F8E5M2};
  for (size_t j = 0; j < DT_COUNTOF(copied); j++) {
    add(c, "all_gather", "push", copied[j], 45, 0, 0);
    add(c, "all_to_all", "push", copied[j], 45, 0, 0);
    if (copied[j] != DT_I1) add(c, "all_reduce", "one_shot", copied[j], 45, 0, 0);
  }
}

static void gemms(Cases *c, int p) {
  static const char *const ag[] = {"plain", "overlap", "overlap_push", "overlap_raw"};
  static const char *const rest[] = {"plain", "overlap", "overlap_raw"};
  static const struct { // a rank's share of what is divided, the other sizes whole
    dt_dtype d;
    int64_t m, n, k;
  } shapes[] = {{DT_F32, 1, 1, 1},     {DT_F32, 5, 3, 17},   {DT_F16, 33, 20, 9},
                {DT_BF16, 40, 131, 5}, {DT_F32, 65, 16, 64}, {DT_F32, 3, 7, 0}};
  for (size_t j = 0; j < DT_COUNTOF(shapes); j++) {
    dt_dtype d = shapes[j].d;
    int64_t m = shapes[j].m, n = shapes[j].n, k = shapes[j].k;
    for (size_t v = 0; v < DT_COUNTOF(ag); v++) add(c, "ag_gemm", ag[v], d, m * p, n * p, k);
    for (size_t v = 0; v < DT_COUNTOF(rest); v++) add(c, "gemm_rs", rest[v], d, m * p, n, k * p);
    for (size_t v = 0; v < DT_COUNTOF(rest); v++) add(c, "gemm_ar", rest[v], d, m, n, k * p);
  }
}

static OpsJob job_of(Cases *c, const char *set, int world) {
  c->n = 0;
  if (strcmp(set, "gemm") == 0)
    gemms(c, world);
  else
    collectives(c);
  return (OpsJob){.cases = c->list, .ncases = c->n, .calls = 5, .offset = world % 2};
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const int worlds[] = {1, 3}; // every path is taken; the counts are for the plain build
#else
static const int worlds[] = {1, 2, 3, 4, 8};
#endif

static void threads(const char *set) {
  for (size_t i = 0; i < DT_COUNTOF(worlds); i++) {
    Cases c;
    const OpsJob job = job_of(&c, set, worlds[i]);
    assert_true(job.ncases <= MOST_CASES);
    ops_threads(&job, worlds[i], worlds[i] == 3 ? 2 : 0);
  }
}
static void processes(const char *set) {
  for (size_t i = 0; i < DT_COUNTOF(worlds); i++) ops_processes(set, worlds[i]);
}

static void test_collectives_on_threads(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  threads("collective");
}
static void test_collectives_on_processes(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  processes("collective");
}
static void test_gemms_on_threads(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  threads("gemm");
}
static void test_gemms_on_processes(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  processes("gemm");
}

// ---- bits ------------------------------------------------------------------------------------------------------------------
// Sums of floats of very different sizes depend on the order; the operators' order is that of the ranks, whatever the timing.
typedef struct Bits {
  const char *op, *variant;
  float first[3][64]; // by rank, of the first call
} Bits;

static dt_status same_bits(dt_rank *r, void *user) {
  Bits *b = user;
  const int me = dt_rank_index(r), world = 3;
  const OpsCase c = {b->op, b->variant, DT_F32, 6, 7, 6};
  char kernels[PATH_MAX];
  ops_root(kernels);
  strcat(kernels, "/kernels");
  const dt_plan_options o = {.size = sizeof o,
                             .op = c.op,
                             .variant = c.variant,
                             .dtype = c.dtype,
                             .m = c.m,
                             .n = c.n,
                             .k = c.k,
                             .kernels_dir = kernels};
  size_t sizes[OPS_TENSORS];
  const int n = ops_sizes(&c, world, sizes);
  float t[OPS_TENSORS][64];
  void *tensors[OPS_TENSORS] = {t[0], t[1], t[2], t[3]};
  for (int i = 0; i < n; i++)
    for (size_t j = 0; j < sizes[i]; j++)
      t[i][j] = (float)(ops_hash((uint64_t)(me * 1000 + i * 100) + j) % 2000001) * (j % 3 ? 1e-6f : 1e3f) -
                (float)j;
  dt_plan *plan = NULL;
  dt_stream *s = NULL;
  dt_status st = dt_stream_create(r, "main", &s);
  if (st == DT_OK) st = dt_plan_create(r, &o, &plan);
  for (int call = 0; call < 60 && st == DT_OK; call++) {
    if (ops_hash((uint64_t)(call * 8 + me)) % 3 == 0) usleep(200);
    st = dt_plan_run(plan, s, tensors, (size_t)n);
    if (st == DT_OK) st = dt_stream_sync(s);
    if (call == 0) memcpy(b->first[me], t[n - 1], sizes[n - 1] * sizeof(float));
    if (st == DT_OK && memcmp(b->first[me], t[n - 1], sizes[n - 1] * sizeof(float)) != 0)
      st = dt_context_fail(dt_rank_context(r), DT_INTERNAL, "two calls gave different bits");
  }
  dt_status agreed = dt_agree(r, st);
  dt_plan_destroy(plan);
  dt_stream_destroy(s);
  return st == DT_OK ? agreed : st;
}

static void test_same_bits_in_every_run(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  static const char *const all[][2] = {
      {"all_reduce", "one_shot"}, {"all_reduce", "two_shot"}, {"reduce_scatter", "pull"},
      {"gemm_rs", "plain"},       {"gemm_rs", "overlap"},     {"gemm_rs", "overlap_raw"},
      {"gemm_ar", "plain"},       {"gemm_ar", "overlap"},     {"gemm_ar", "overlap_raw"}};
  dt_context *c = ops_context();
  for (size_t i = 0; i < DT_COUNTOF(all); i++) {
    Bits runs[2] = {0};
    for (int run = 0; run < 2; run++) {
      dt_team *team = NULL;
      const dt_team_options o = {
          .size = sizeof o, .local_ranks = 3, .threads_per_rank = 1 + run, .symmetric_bytes = 8 << 20};
      runs[run].op = all[i][0];
      runs[run].variant = all[i][1];
      dt_status st = dt_team_create(c, &o, &team);
      if (st == DT_OK) st = dt_team_run(team, same_bits, &runs[run]);
      if (st != DT_OK) fail_msg("%s %s: %s", all[i][0], all[i][1], dt_error(c));
      dt_team_destroy(team);
    }
    assert_memory_equal(runs[0].first, runs[1].first, sizeof runs[0].first);
    const bool same_on_ranks = strcmp(all[i][0], "all_reduce") == 0 || strcmp(all[i][0], "gemm_ar") == 0;
    for (int r = 1; r < 3 && same_on_ranks; r++)
      assert_memory_equal(runs[0].first[0], runs[0].first[r], sizeof runs[0].first[0]);
  }
  dt_context_destroy(c);
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "rank") == 0) {
    Cases c;
    const OpsJob job = job_of(&c, argv[2], atoi(argv[3]));
    return ops_rank_main(&job, 0);
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_bits_in_every_run),   cmocka_unit_test(test_collectives_on_threads),
      cmocka_unit_test(test_collectives_on_processes), cmocka_unit_test(test_gemms_on_threads),
      cmocka_unit_test(test_gemms_on_processes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
