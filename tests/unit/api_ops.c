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
  static const char *const all[][2] = {{"all_gather", "ce_push"}, {"all_gather", "ce_pull"},   {"all_gather", "push"},
                                       {"all_gather", "pull"},    {"all_gather", "ring"},      {"reduce_scatter", "pull"},
                                       {"all_reduce", "one_shot"}, {"all_reduce", "two_shot"}, {"all_to_all", "push"}};
  static const struct {
    dt_dtype d;
    int64_t m;
  } shapes[] = {{DT_F32, 1}, {DT_BF16, 7}, {DT_F16, 4096}, {DT_F32, 4099}, {DT_F32, 40001}, {DT_I32, 100}, {DT_F64, 33}, {DT_F8E4M3, 19}};
  for (size_t i = 0; i < DT_COUNTOF(all); i++)
    for (size_t j = 0; j < DT_COUNTOF(shapes); j++) add(c, all[i][0], all[i][1], shapes[j].d, shapes[j].m, 0, 0);
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
  } shapes[] = {{DT_F32, 1, 1, 1}, {DT_F32, 5, 3, 17}, {DT_F16, 33, 20, 9}, {DT_BF16, 40, 131, 5}, {DT_F32, 65, 16, 64}, {DT_F32, 3, 7, 0}};
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
  if (strcmp(set, "gemm") == 0) gemms(c, world);
  else collectives(c);
  return (OpsJob){.cases = c->list, .ncases = c->n, .calls = 5, .offset = world % 2};
}

static const int worlds[] = {1, 2, 3, 4, 8};

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
  threads("collective");
}
static void test_collectives_on_processes(void **state) {
  (void)state;
  processes("collective");
}
static void test_gemms_on_threads(void **state) {
  (void)state;
  threads("gemm");
}
static void test_gemms_on_processes(void **state) {
  (void)state;
  processes("gemm");
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "rank") == 0) {
    Cases c;
    const OpsJob job = job_of(&c, argv[2], atoi(argv[3]));
    return ops_rank_main(&job, 0);
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_collectives_on_threads),
      cmocka_unit_test(test_collectives_on_processes),
      cmocka_unit_test(test_gemms_on_threads),
      cmocka_unit_test(test_gemms_on_processes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
