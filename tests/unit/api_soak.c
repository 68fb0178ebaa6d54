// 1,000 calls of every collective and every overlapped operator on 2, 3, 4 and 8 ranks, as threads and as processes, with random
// pauses and with other work in between, inputs changed for every call and each result checked. TIMEOUT: 900
#include "api_ops.h"

enum { CALLS = OPS_SANITIZED ? 40 : 1000 };

static size_t cases_of(int p, OpsCase *c) {
  size_t n = 0;
  static const char *const all[][2] = {
      {"all_gather", "ce_push"},  {"all_gather", "ce_pull"},  {"all_gather", "push"},
      {"all_gather", "pull"},     {"all_gather", "ring"},     {"reduce_scatter", "pull"},
      {"all_reduce", "one_shot"}, {"all_reduce", "two_shot"}, {"all_to_all", "push"}};
  for (size_t i = 0; i < DT_COUNTOF(all); i++) c[n++] = (OpsCase){all[i][0], all[i][1], DT_F32, 37, 0, 0};
  static const char *const ag[] = {"overlap", "overlap_push", "overlap_raw"};
  for (size_t i = 0; i < DT_COUNTOF(ag); i++) c[n++] = (OpsCase){"ag_gemm", ag[i], DT_F32, 3 * p, 2 * p, 5};
  static const char *const rest[] = {"overlap", "overlap_raw"};
  for (size_t i = 0; i < DT_COUNTOF(rest); i++)
    c[n++] = (OpsCase){"gemm_rs", rest[i], DT_F32, 3 * p, 5, 2 * p};
  for (size_t i = 0; i < DT_COUNTOF(rest); i++) c[n++] = (OpsCase){"gemm_ar", rest[i], DT_F32, 3, 5, 2 * p};
  return n;
}

static void soak(int world) {
  OpsCase c[32];
  const OpsJob job = {
      .cases = c, .ncases = cases_of(world, c), .calls = CALLS, .delays = 40 + (uint64_t)world};
  ops_threads(&job, world, 0);
  ops_processes("soak", world);
}

static void test_two_ranks(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  soak(2);
}
static void test_three_ranks(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  soak(3);
}
static void test_four_ranks(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  soak(4);
}
static void test_eight_ranks(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  soak(8);
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "rank") == 0) {
    OpsCase c[32];
    const OpsJob job = {.cases = c, .ncases = cases_of(atoi(argv[3]), c), .calls = CALLS, .delays = 90};
    return ops_rank_main(&job, 0);
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_ranks), cmocka_unit_test(test_three_ranks),
                                     cmocka_unit_test(test_four_ranks), cmocka_unit_test(test_eight_ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
