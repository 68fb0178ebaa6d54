// How processes become ranks: the launcher, and what launchers' variables say.
#include "harness/test.h"
#include "rt/rt.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static RtError error;
static char lines[16][200];
static int nlines;

static void keep(void *user, int rank, bool err, const char *line) {
  (void)user;
  if (nlines < 16) snprintf(lines[nlines++], sizeof lines[0], "%d%c%.150s", rank, err ? '!' : ':', line);
}

static bool heard(const char *line) {
  for (int i = 0; i < nlines; i++) {
    if (strcmp(lines[i], line) == 0) return true;
  }
  return false;
}

static Status launch(int n, const char *script, uint64_t grace_ms, int *code) {
  const char *argv[] = {"sh", "-c", script, NULL};
  const RtLaunchConfig c = {.argv = argv, .n = n, .grace_ms = grace_ms, .output = keep};
  nlines = 0;
  *code = -1;
  return rt_launch_processes(&c, code, &error);
}

static void test_places(void **state) {
  (void)state;
  int code;
  assert_int_equal(launch(3, "echo $DITRON_RANK of $DITRON_WORLD; echo oops >&2; printf 'no end'", 0, &code),
                   ST_OK);
  assert_int_equal(code, 0);
  assert_int_equal(nlines, 9);
  for (int r = 0; r < 3; r++) {
    char line[50];
    snprintf(line, sizeof line, "%d:%d of 3", r, r);
    assert_true(heard(line));
    snprintf(line, sizeof line, "%d!oops", r);
    assert_true(heard(line));
    snprintf(line, sizeof line, "%d:no end", r);
    assert_true(heard(line));
  }
}

static void test_same_job(void **state) {
  (void)state;
  int code;
  assert_int_equal(launch(2, "echo $DITRON_JOB", 0, &code), ST_OK);
  assert_int_equal(nlines, 2);
  assert_string_equal(lines[0] + 2, lines[1] + 2);
  assert_true(strlen(lines[0]) > 10);
}

// One fails, the others would go on for a minute: they are asked, then made to stop.
static void test_failure_ends_all(void **state) {
  (void)state;
  int code;
  uint64_t begin = os_now_ns();
  assert_int_equal(launch(4, "if [ $DITRON_RANK = 2 ]; then exit 7; fi; exec sleep 60", 200, &code), ST_OK);
  assert_int_equal(code, 7);
  assert_string_equal(error.text, "rank 2 ended with exit code 7");
  assert_true(os_now_ns() - begin < 10000000000ull);
  begin = os_now_ns();
  assert_int_equal(
      launch(3, "trap '' TERM; if [ $DITRON_RANK = 1 ]; then kill -9 $$; fi; while :; do sleep 0.1; done",
             200, &code),
      ST_OK);
  assert_int_equal(code, 128 + SIGKILL);
  assert_string_equal(error.text, "rank 1 was ended by signal 9");
  assert_true(os_now_ns() - begin < 20000000000ull);
}

static void test_grace(void **state) {
  (void)state;
  int code;
  assert_int_equal(
      launch(2, "if [ $DITRON_RANK = 0 ]; then exit 3; fi; sleep 0.3; echo finished", 60000, &code), ST_OK);
  assert_int_equal(code, 3);
  assert_true(heard("1:finished"));
}

static void *send_term(void *arg) {
  os_sleep_ns(300000000);
  kill(getpid(), SIGTERM);
  return arg;
}

static void test_signals_go_to_all(void **state) {
  (void)state;
  int code;
  pthread_t t;
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, NULL); // so that the helper's thread does not take it
  assert_int_equal(pthread_create(&t, NULL, send_term, NULL), 0);
  assert_int_equal(launch(2, "trap 'echo got it; exit 5' TERM; while :; do sleep 0.05; done", 0, &code),
                   ST_OK);
  pthread_join(t, NULL);
  assert_int_equal(code, 5);
  assert_true(heard("0:got it") && heard("1:got it"));
}

static void test_wrong_calls(void **state) {
  (void)state;
  int code = 0;
  const char *argv[] = {"/does/not/exist", NULL};
  const RtLaunchConfig c = {.argv = argv, .n = 2, .grace_ms = 100, .output = keep};
  nlines = 0;
  assert_int_equal(rt_launch_processes(&c, &code, &error), ST_OK);
  assert_int_equal(code, 127);
  assert_true(heard("0!/does/not/exist: No such file or directory"));
  const RtLaunchConfig none = {.argv = argv, .n = 0};
  assert_int_equal(rt_launch_processes(&none, &code, &error), ST_LIMIT);
}

// ---- what launchers say ------------------------------------------------------------------------------------
static const char *const all_names[] = {"DITRON_RANK",
                                        "DITRON_WORLD",
                                        "DITRON_JOB",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID"};

static Status read_with(RtJob *j, const char *const *pairs) {
  for (size_t i = 0; i < DT_COUNTOF(all_names); i++) unsetenv(all_names[i]);
  for (; *pairs; pairs += 2) setenv(pairs[0], pairs[1], 1);
  return rt_job_read(j, &error);
}
#define READ(j, ...) read_with((j), (const char *const[]){__VA_ARGS__, NULL})

static void test_environment(void **state) {
  (void)state;
  RtJob j;
  assert_int_equal(read_with(&j, (const char *const[]){NULL}), ST_OK);
  assert_true(j.rank == 0 && j.world == 1);
  assert_string_equal(j.launcher, "none");
  assert_int_equal(READ(&j, "RANK", "3", "WORLD_SIZE", "4", "LOCAL_WORLD_SIZE", "4"), ST_OK);
  assert_true(j.rank == 3 && j.world == 4);
  assert_string_equal(j.launcher, "torchrun");
  assert_int_equal(
      READ(&j, "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
      ST_OK);
  assert_string_equal(j.launcher, "openmpi");
  assert_int_equal(READ(&j, "PMI_RANK", "0", "PMI_SIZE", "2"), ST_OK);
  assert_string_equal(j.launcher, "mpich");
  assert_int_equal(
      READ(&j, "SLURM_PROCID", "5", "SLURM_NTASKS", "8", "SLURM_JOB_ID", "1/2 x", "SLURM_STEP_ID", "0"),
      ST_OK);
  assert_true(j.rank == 5 && j.world == 8);
  assert_non_null(strstr(j.id, "slurm.1-2-x.0"));
  // ours goes first
  assert_int_equal(READ(&j, "RANK", "3", "WORLD_SIZE", "4", "DITRON_RANK", "0", "DITRON_WORLD", "2"), ST_OK);
  assert_true(j.rank == 0 && j.world == 2);
}

static void test_bad_environment(void **state) {
  (void)state;
  RtJob j;
  assert_int_equal(READ(&j, "RANK", "x", "WORLD_SIZE", "4"), ST_INVALID);
  assert_string_equal(error.text, "RANK is 'x', but must be a whole number from 0");
  assert_int_equal(READ(&j, "RANK", "1"), ST_INVALID);
  assert_string_equal(error.text, "WORLD_SIZE is not set, though other variables of its launcher are");
  assert_int_equal(READ(&j, "RANK", "4", "WORLD_SIZE", "4"), ST_INVALID);
  assert_int_equal(READ(&j, "RANK", "-1", "WORLD_SIZE", "4"), ST_INVALID);
  assert_int_equal(READ(&j, "RANK", "0", "WORLD_SIZE", "16", "LOCAL_WORLD_SIZE", "8"), ST_UNSUPPORTED);
  assert_non_null(strstr(error.text, "16 ranks, but only 8 on this host"));
  read_with(&j, (const char *const[]){NULL});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_same_job),
      cmocka_unit_test(test_failure_ends_all),
      cmocka_unit_test(test_grace),
      cmocka_unit_test(test_signals_go_to_all),
      cmocka_unit_test(test_wrong_calls),
      cmocka_unit_test(test_environment),
      cmocka_unit_test(test_bad_environment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
