// One rank of the CPU device: launches, fibers, streams, events, copies, prints, assertions, budgets.
#include "rt_test.h"

#include <math.h>
#include <time.h>

static const char KERNELS[] = RT_TEST_SOURCE(
    KERNEL(add) {
      ARG(float *, x, 0);
      ARG(float *, y, 1);
      ARG(float *, out, 2);
      ARG(long, n, 3);
      for (long k = i->pid[0] * 128l; k < i->pid[0] * 128l + 128 && k < n; k++) out[k] = x[k] + y[k];
    } KERNEL(count) {
      ARG(long *, total, 0);
      ARG(long *, where, 1);
      __atomic_fetch_add(total, 1, __ATOMIC_RELAXED);
      if (where) where[(i->pid[2] * i->grid[1] + i->pid[1]) * i->grid[0] + i->pid[0]]++;
      i->arena[0] = 1;
      i->arena[1023] = 2;
    } KERNEL(chain) { // instance p waits for p - 1, the first one for the last word of the host
      ARG(int *, flags, 0);
      ARG(long *, order, 1);
      unsigned p = i->pid[0];
      CALL->wait(i, &flags[p], 1, 4, 7, ABI_GE, 3);
      order[p] = __atomic_fetch_add(&order[i->grid[0]], 1, __ATOMIC_RELAXED);
      __atomic_store_n(&flags[p + 1], 7, __ATOMIC_RELEASE);
    } KERNEL(backwards) { // instance p waits for p + 1: all of them live at once
      ARG(int *, flags, 0);
      unsigned p = i->pid[0];
      i->arena[5] = (char)p;
      if (p + 1 < i->grid[0]) CALL->wait(i, &flags[p + 1], 1, 4, 1, ABI_EQ, 4);
      if (i->arena[5] != (char)p) __builtin_trap();
      __atomic_store_n(&flags[p], 1, __ATOMIC_RELEASE);
    } static void warp_body(AbiInstance *i, void *ctx, uint32_t w) {
      long *x = ctx; // [0..3]: steps, [4]: sum, [5]: turn
      for (int step = 0; step < 10; step++) {
        x[w] = step;
        CALL->block_barrier(i, 4, 5);
        for (int k = 0; k < 4; k++)
          if (x[k] != step) __atomic_fetch_add(&x[6], 1, __ATOMIC_RELAXED);
        CALL->block_barrier(i, 4, 6);
      }
      for (unsigned turn = 0; __atomic_load_n(&x[5], __ATOMIC_ACQUIRE) != 3 - w; turn++)
        CALL->yield(i, 6, turn); // in an order that no loop would have
      x[4] = x[4] * 10 + w;
      __atomic_store_n(&x[5], 3 - w + 1, __ATOMIC_RELEASE);
      if (i->warp != w) x[6]++;
    } KERNEL(poll) {
      ARG(int *, flags, 0);
      for (unsigned turn = 0; !__atomic_load_n(flags, __ATOMIC_ACQUIRE); turn++) CALL->yield(i, 13, turn);
    } KERNEL(warps) {
      ARG(long *, x, 0);
      CALL->warps(i, 4, warp_body, x + i->pid[0] * 8);
    } static void early_body(AbiInstance *i, void *ctx, uint32_t w) {
      long *x = ctx;
      if (w == 2) return; // never comes to the barrier
      CALL->block_barrier(i, 4, 5);
      __atomic_fetch_add(x, 1, __ATOMIC_RELAXED);
    } KERNEL(early) {
      ARG(long *, x, 0);
      CALL->warps(i, 4, early_body, x);
    } KERNEL(lost) {
      ARG(int *, flags, 0);
      CALL->wait(i, flags + 2, 3, 4, 1, ABI_EQ, 8);
    } KERNEL(check) {
      ARG(long, bad, 0);
      if ((long)i->pid[0] == bad) CALL->assert_fail(i, 9);
    } KERNEL(say) {
      float f = 1.5f;
      uint32_t bits;
      __builtin_memcpy(&bits, &f, 4);
      uint64_t v[2] = {(uint32_t)-3, bits};
      CALL->print(i, 11, 6, v, 2);
    } KERNEL(peer) {
      ARG(long, pe, 0);
      ARG(char *, p, 1);
      CALL->copy(i, p, p, 4, pe, 0, 12);
    } KERNEL(slow) {
      ARG(volatile long *, x, 0);
      for (long k = 0; k < 20000000; k++) *x = k;
    });
static const char *const NAMES[] = {"add",   "count", "chain", "backwards", "warps", "early", "lost",
                                    "check", "say",   "peer",  "slow",      "poll",  NULL};
static const char WAITING[] = "chain backwards warps early lost poll";

typedef struct World {
  Arena arena;
  Escape escape;
  Image *image;
} World;
static World world;

static char printed[4][128];
static _Atomic int nprinted;
static void keep_line(void *user, int rank, const char *line) {
  (void)user;
  const int at = nprinted++;
  if (at < 4) snprintf(printed[at], sizeof printed[at], "%d|%s", rank, line);
}

typedef struct Rig {
  RtContext *context;
  RtTeam *team;
  RtRank *rank;
  RtStream *stream;
} Rig;
static RtError error;

static Rig rig_up(int threads, uint64_t deadline_ms, uint64_t budget) {
  Rig g;
  const RtConfig c = {.deadline_ns = deadline_ms * 1000000, .budget_bytes = budget, .print = keep_line};
  OK(rt_context_create(&c, &g.context, &error));
  const RtTeamConfig t = {.threads_per_rank = threads, .symmetric_bytes = 4 << 20};
  OK(rt_team_create(g.context, &t, &g.team, &error));
  g.rank = rt_team_rank(g.team, 0);
  OK(rt_stream_create(g.rank, "main", &g.stream, &error));
  return g;
}

static void rig_down(Rig *g) {
  rt_stream_destroy(g->stream);
  rt_team_destroy(g->team);
  rt_context_destroy(g->context);
}

static RtKernel *load(const Rig *g, const char *name) {
  RtKernel *k;
  OK(rt_kernel_load(g->rank, world.image, name, &k, &error));
  return k;
}

static void test_add(void **state) {
  (void)state;
  enum { N = 100000 };
  Rig g = rig_up(2, 0, 0);
  RtKernel *k = load(&g, "add");
  float *x, *y, *out;
  OK(rt_alloc(g.rank, N * 4, (void **)&x, &error));
  OK(rt_alloc(g.rank, N * 4, (void **)&y, &error));
  OK(rt_alloc(g.rank, N * 4, (void **)&out, &error));
  for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 2 * (float)i, out[i] = 0;
  OK(RT_TEST_LAUNCH(k, g.stream, (N + 127) / 128, &error, rt_test_ptr(x), rt_test_ptr(y), rt_test_ptr(out),
                    rt_test_int(N)));
  OK(rt_stream_sync(g.stream, &error));
  for (int i = 0; i < N; i++) assert_true(out[i] == 3 * (float)i);
  rt_free(g.rank, x);
  rt_free(g.rank, y);
  rt_free(g.rank, out);
  rt_kernel_destroy(k);
  rig_down(&g);
}

static void test_every_instance_once(void **state) {
  (void)state;
  Rig g = rig_up(3, 0, 0);
  RtKernel *k = load(&g, "count");
  const uint32_t grids[][3] = {{1, 1, 1}, {7, 5, 3}, {1000, 1, 1}, {1, 1, 1000}, {64, 64, 4}, {0, 5, 5}};
  for (size_t i = 0; i < DT_COUNTOF(grids); i++) {
    const long n = (long)grids[i][0] * grids[i][1] * grids[i][2];
    long total = 0, *where = calloc((size_t)n + 1, sizeof *where);
    OK(rt_launch(k, g.stream, grids[i], (RtArg[16]){rt_test_ptr(&total), rt_test_ptr(where)}, 16, &error));
    OK(rt_stream_sync(g.stream, &error));
    assert_int_equal(total, n);
    for (long j = 0; j < n; j++) assert_int_equal(where[j], 1);
    free(where);
  }
  rt_kernel_destroy(k);
  rig_down(&g);
}

static void test_many_small_launches(void **state) {
  (void)state;
  Rig g = rig_up(2, 0, 0);
  RtKernel *k = load(&g, "count");
  long total = 0, want = 0;
  for (int i = 0; i < 3000; i++) {
    const int n = 1 + i % 3;
    want += n;
    OK(RT_TEST_LAUNCH(k, g.stream, n, &error, rt_test_ptr(&total)));
    if (i % 7 == 0) OK(rt_stream_sync(g.stream, &error));
  }
  OK(rt_stream_sync(g.stream, &error));
  assert_int_equal(total, want);
  rt_kernel_destroy(k);
  rig_down(&g);
}

static void test_waits_in_order(void **state) {
  (void)state;
  enum { N = 200 };
  for (int threads = 1; threads <= 3; threads++) {
    Rig g = rig_up(threads, 20000, 0);
    RtKernel *k = load(&g, "chain");
    int flags[N + 1] = {0};
    long order[N + 1] = {0};
    OK(RT_TEST_LAUNCH(k, g.stream, N, &error, rt_test_ptr(flags), rt_test_ptr(order)));
    os_sleep_ns(2000000);
    assert_false(rt_stream_idle(g.stream));
    __atomic_store_n(&flags[0], 7, __ATOMIC_RELEASE);
    OK(rt_stream_sync(g.stream, &error));
    for (int i = 0; i < N; i++) assert_int_equal(order[i], i);
    rt_kernel_destroy(k);
    rig_down(&g);
  }
}

static void test_all_live_at_once(void **state) {
  (void)state;
  enum { N = 300 };
  for (int threads = 1; threads <= 2; threads++) {
    Rig g = rig_up(threads, 20000, 0);
    RtKernel *k = load(&g, "backwards");
    for (int round = 0; round < 5; round++) {
      int flags[N] = {0};
      OK(RT_TEST_LAUNCH(k, g.stream, N, &error, rt_test_ptr(flags)));
      OK(rt_stream_sync(g.stream, &error));
      for (int i = 0; i < N; i++) assert_int_equal(flags[i], 1);
    }
    rt_kernel_destroy(k);
    rig_down(&g);
  }
}

static void test_warps(void **state) {
  (void)state;
  enum { N = 20 };
  Rig g = rig_up(2, 20000, 0);
  RtKernel *k = load(&g, "warps"), *early = load(&g, "early");
  long x[N * 8] = {0}, came = 0;
  OK(RT_TEST_LAUNCH(k, g.stream, N, &error, rt_test_ptr(x)));
  OK(RT_TEST_LAUNCH(early, g.stream, 1, &error, rt_test_ptr(&came)));
  OK(rt_stream_sync(g.stream, &error));
  for (int i = 0; i < N; i++) {
    assert_int_equal(x[i * 8 + 4], 3210);
    assert_int_equal(x[i * 8 + 6], 0);
  }
  assert_int_equal(came, 3);
  rt_kernel_destroy(k);
  rt_kernel_destroy(early);
  rig_down(&g);
}

static void expect_text(const char *text, const char *words) {
  if (!strstr(text, words)) fail_msg("'%s' is not in: %s", words, text);
}

static void test_deadline(void **state) {
  (void)state;
  Rig g = rig_up(1, 100, 0);
  RtKernel *lost = load(&g, "lost"), *count = load(&g, "count");
  int *flags;
  OK(rt_symm_alloc(g.rank, 64, "flags", (void **)&flags, &error));
  flags[2] = 1;
  flags[3] = 5;
  const uint64_t begin = os_now_ns();
  OK(RT_TEST_LAUNCH(lost, g.stream, 6, &error, rt_test_ptr(flags)));
  assert_int_equal(rt_stream_sync(g.stream, &error), ST_DEADLINE);
  assert_true(os_now_ns() - begin < 5000000000ull);
  expect_text(error.text, "rank 0: a wait passed its deadline of 0.1 s");
  expect_text(error.text, "kernel 'lost', program (");
  expect_text(error.text, "at kernels/demo.py:108:5 for label8");
  expect_text(error.text, "'flags' + 12 should be == 1, but is 5");
  expect_text(error.text, "no signal call has written it");
  expect_text(error.text, "(and 5 more instances)");
  long total = 0;
  assert_int_equal(RT_TEST_LAUNCH(count, g.stream, 1, &error, rt_test_ptr(&total)), ST_DEADLINE);
  OK(rt_recover(g.rank, &error));
  OK(RT_TEST_LAUNCH(count, g.stream, 100, &error, rt_test_ptr(&total)));
  OK(rt_stream_sync(g.stream, &error));
  assert_int_equal(total, 100);
  rt_kernel_destroy(lost);
  rt_kernel_destroy(count);
  rig_down(&g);
}

// A loop that polls by hand has the deadline too, and leaves the worker to others meanwhile.
static void test_polling_loop(void **state) {
  (void)state;
  Rig g = rig_up(1, 100, 0);
  RtKernel *poll = load(&g, "poll"), *count = load(&g, "count");
  RtStream *other;
  OK(rt_stream_create(g.rank, "other", &other, &error));
  int flag = 0;
  long total = 0;
  OK(RT_TEST_LAUNCH(poll, g.stream, 3, &error, rt_test_ptr(&flag)));
  OK(RT_TEST_LAUNCH(count, other, 50, &error, rt_test_ptr(&total)));
  OK(rt_stream_sync(other, &error));
  assert_int_equal(total, 50);
  __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
  OK(rt_stream_sync(g.stream, &error));
  __atomic_store_n(&flag, 0, __ATOMIC_RELEASE);
  OK(RT_TEST_LAUNCH(poll, g.stream, 3, &error, rt_test_ptr(&flag)));
  assert_int_equal(rt_stream_sync(g.stream, &error), ST_DEADLINE);
  expect_text(error.text,
              "at kernels/demo.py:113:5: a polling loop went on for longer than the deadline of 0.1 s");
  OK(rt_recover(g.rank, &error));
  rt_stream_destroy(other);
  rt_kernel_destroy(poll);
  rt_kernel_destroy(count);
  rig_down(&g);
}

static void test_assert(void **state) {
  (void)state;
  Rig g = rig_up(2, 0, 0);
  RtKernel *k = load(&g, "check");
  OK(RT_TEST_LAUNCH(k, g.stream, 50, &error, rt_test_int(-1)));
  OK(rt_stream_sync(g.stream, &error));
  for (int n = 1; n < 40; n += 38) { // a single instance runs on this thread
    OK(RT_TEST_LAUNCH(k, g.stream, n, &error, rt_test_int(0)));
    assert_int_equal(rt_stream_sync(g.stream, &error), ST_ASSERT);
    expect_text(error.text,
                "kernel 'check', program (0, 0, 0) at kernels/demo.py:109:5: assertion failed: label9");
    OK(rt_recover(g.rank, &error));
  }
  rt_kernel_destroy(k);
  rig_down(&g);
}

static void test_print(void **state) {
  (void)state;
  Rig g = rig_up(1, 0, 0);
  RtKernel *k = load(&g, "say");
  nprinted = 0;
  OK(RT_TEST_LAUNCH(k, g.stream, 2, &error, rt_test_int(0)));
  OK(rt_stream_sync(g.stream, &error));
  assert_int_equal(nprinted, 4);
  assert_string_equal(printed[2], "0|pid (1, 0, 0) idx (6) label11(operand 0) -3");
  assert_string_equal(printed[3], "0|pid (1, 0, 0) idx (6) label11(operand 1) 1.500000");
  rt_kernel_destroy(k);
  rig_down(&g);
}

static void test_bad_peer(void **state) {
  (void)state;
  Rig g = rig_up(1, 0, 0);
  RtKernel *k = load(&g, "peer");
  char *p, mine[8];
  OK(rt_symm_alloc(g.rank, 64, NULL, (void **)&p, &error));
  OK(RT_TEST_LAUNCH(k, g.stream, 1, &error, rt_test_int(0), rt_test_ptr(p)));
  OK(rt_stream_sync(g.stream, &error));
  OK(RT_TEST_LAUNCH(k, g.stream, 1, &error, rt_test_int(3), rt_test_ptr(p)));
  assert_int_equal(rt_stream_sync(g.stream, &error), ST_INVALID);
  expect_text(error.text, "demo.py:112:5: rank 3 does not exist; the team has ranks 0 to 0");
  OK(rt_recover(g.rank, &error));
  OK(RT_TEST_LAUNCH(k, g.stream, 1, &error, rt_test_int(0), rt_test_ptr(mine)));
  assert_int_equal(rt_stream_sync(g.stream, &error), ST_INVALID);
  expect_text(error.text, "is not symmetric memory of rank 0");
  rt_kernel_destroy(k);
  rig_down(&g);
}

static void test_budget(void **state) {
  (void)state;
  Rig g = rig_up(1, 20000, 6 << 20);
  RtKernel *k = load(&g, "backwards");
  int *flags = calloc(3000, sizeof *flags);
  OK(RT_TEST_LAUNCH(k, g.stream, 3000, &error, rt_test_ptr(flags)));
  assert_int_equal(rt_stream_sync(g.stream, &error), ST_LIMIT);
  expect_text(error.text, "its budget is 6.0 MiB");
  OK(rt_recover(g.rank, &error));
  OK(RT_TEST_LAUNCH(k, g.stream, 5, &error, rt_test_ptr(flags)));
  OK(rt_stream_sync(g.stream, &error));
  free(flags);
  rt_kernel_destroy(k);
  rig_down(&g);
}

static void test_wrong_launches(void **state) {
  (void)state;
  Rig g = rig_up(1, 0, 0);
  RtKernel *k;
  assert_int_equal(rt_kernel_load(g.rank, world.image, "nothing", &k, &error), ST_NOT_FOUND);
  expect_text(error.text, "no kernel 'nothing'; it has add, count");
  assert_int_equal(rt_kernel_load(g.rank, world.image, NULL, &k, &error), ST_NOT_FOUND);
  Image other = *world.image;
  other.cpu_features = "sse2,warp9";
  assert_int_equal(rt_kernel_load(g.rank, &other, "add", &k, &error), ST_UNSUPPORTED);
  expect_text(error.text, "warp9");
  ImageKernel kernel = {
      "k", (ImageVariant[2]){world.image->kernels[1].variants[0], world.image->kernels[1].variants[0]}, 2};
  ImageArg args[2][16];
  for (int v = 0; v < 2; v++) {
    memcpy(args[v], world.image->kernels[1].variants[0].args, sizeof args[v]);
    kernel.variants[v].args = args[v];
  }
  args[0][2].divisible = 16;
  args[1][2].divisible = 6;
  other = *world.image;
  other.kernels = &kernel;
  other.nkernels = 1;
  OK(rt_kernel_load(g.rank, &other, NULL, &k, &error));
  long total = 0;
  for (int x = 0; x <= 32; x++) {
    const Status s = RT_TEST_LAUNCH(k, g.stream, 1, &error, rt_test_ptr(&total), {0}, rt_test_int(x));
    assert_int_equal(s, x % 16 == 0 || x % 6 == 0 ? ST_OK : ST_INVALID);
  }
  expect_text(error.text, "it needs a2 to be a multiple of 16, or a2 to be a multiple of 6");
  OK(rt_stream_sync(g.stream, &error));
  assert_int_equal(total, 8);
  assert_int_equal(rt_launch(k, g.stream, (const uint32_t[3]){1, 1, 1}, NULL, 3, &error), ST_INVALID);
  expect_text(error.text, "takes 16 arguments, but 3 were given");
  const uint32_t huge[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
  assert_int_equal(rt_launch(k, g.stream, huge, (RtArg[16]){{0}}, 16, &error), ST_INVALID);
  rt_kernel_destroy(k);
  rig_down(&g);
}

static void set_long(void *p) { *(volatile long *)p = 99; }

static void test_streams_and_events(void **state) {
  (void)state;
  enum { N = 3 << 20 };
  Rig g = rig_up(2, 20000, 0);
  RtStream *other;
  RtEvent *a, *b, *never;
  OK(rt_stream_create(g.rank, "copies", &other, &error));
  OK(rt_event_create(g.rank, &a, &error));
  OK(rt_event_create(g.rank, &b, &error));
  OK(rt_event_create(g.rank, &never, &error));
  RtKernel *slow = load(&g, "slow");
  char *x = malloc(N), *y = malloc(N), *z = malloc(N);
  memset(x, 0, N);
  memset(y, 1, N);
  long out = -1, host = 0;
  OK(rt_event_record(a, g.stream, &error));
  OK(RT_TEST_LAUNCH(slow, g.stream, 1, &error, rt_test_ptr(&out)));
  OK(rt_fill(g.stream, x, 42, N, &error));
  OK(rt_event_record(b, g.stream, &error));
  OK(rt_stream_wait_event(other, b, &error));
  OK(rt_stream_wait_event(other, never, &error));
  OK(rt_copy(other, y, x, N, &error));
  OK(rt_copy_2d(other, z, 1000, y, 2000, 500, 1000, &error));
  OK(rt_host_call(other, set_long, &host, &error));
  OK(rt_stream_sync(other, &error));
  assert_int_equal(out, 19999999);
  assert_int_equal(host, 99);
  for (int i = 0; i < N; i++) assert_int_equal(y[i], 42);
  for (int i = 0; i < 1000; i++) assert_true(z[i * 1000] == 42 && z[i * 1000 + 499] == 42);
  double ms = -1;
  OK(rt_event_sync(b, &error));
  OK(rt_event_elapsed(a, b, &ms, &error));
  assert_true(ms > 0.5);
  assert_int_equal(rt_event_elapsed(a, never, &ms, &error), ST_INVALID);
  rt_kernel_destroy(slow);
  rt_event_destroy(a);
  rt_event_destroy(b);
  rt_event_destroy(never);
  rt_stream_destroy(other);
  free(x);
  free(y);
  free(z);
  rig_down(&g);
}

static void test_stream_waits(void **state) {
  (void)state;
  Rig g = rig_up(1, 300, 0);
  RtStream *other;
  OK(rt_stream_create(g.rank, "producer", &other, &error));
  uint64_t *w;
  OK(rt_symm_alloc(g.rank, 64, "words", (void **)&w, &error));
  long value = 0;
  OK(rt_signal_wait(g.stream, &w[0], 5, &error));
  OK(rt_host_call(g.stream, set_long, &value, &error));
  OK(rt_signal_set(other, &w[0], 4, 0, &error));
  OK(rt_stream_sync(other, &error));
  os_sleep_ns(5000000);
  assert_int_equal(value, 0);
  OK(rt_signal_add(other, &w[0], 1, 0, &error));
  OK(rt_stream_sync(g.stream, &error));
  assert_int_equal(value, 99);
  OK(rt_signal_copy(other, &w[1], &w[0], 0, &error));
  OK(rt_signal_wait_word(g.stream, &w[1], &w[0], 0, &error));
  OK(rt_stream_sync(g.stream, &error));
  OK(rt_signal_wait_word(g.stream, &w[1], &w[0], 1, &error));
  OK(rt_fill(g.stream, w, 0, 64, &error)); // never reached
  assert_int_equal(rt_stream_sync(g.stream, &error), ST_DEADLINE);
  expect_text(error.text,
              "stream 'main' waited longer than its deadline of 0.3 s: 'words' + 8 should be >= 6, but is 5");
  expect_text(error.text, "last written by rank 0 at stream 'producer' (value 5)");
  assert_int_equal(w[0], 5);
  assert_int_equal(rt_signal_set(g.stream, &w[0], 1, 7, &error), ST_INVALID);
  assert_int_equal(rt_signal_set(g.stream, (uint64_t *)&value, 1, 0, &error), ST_INVALID);
  rt_stream_destroy(other);
  rig_down(&g);
}

static void test_heap(void **state) {
  (void)state;
  Rig g = rig_up(1, 0, 0);
  char *p[8], *big;
  for (int i = 0; i < 8; i++) {
    OK(rt_symm_alloc(g.rank, 1000, "block", (void **)&p[i], &error));
    assert_int_equal((uintptr_t)p[i] % 256, 0);
    memset(p[i], 0x55, 1000);
  }
  for (int i = 1; i < 7; i += 2) OK(rt_symm_free(g.rank, p[i], &error));
  for (int i = 2; i < 7; i += 2) OK(rt_symm_free(g.rank, p[i], &error));
  assert_int_equal(rt_symm_free(g.rank, p[2], &error), ST_INVALID);
  OK(rt_symm_alloc(g.rank, 6000, "merged", (void **)&big, &error));
  assert_ptr_equal(big, p[1]);
  for (int i = 0; i < 6000; i++) assert_int_equal(big[i], 0);
  assert_int_equal(rt_symm_alloc(g.rank, 1ull << 40, "huge", (void **)&big, &error), ST_NO_MEMORY);
  assert_int_equal(rt_symm_alloc(g.rank, UINT64_MAX, "huge", (void **)&big, &error), ST_NO_MEMORY);
  rig_down(&g);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
// A 1-instance kernel, launched and waited for: what the host's thread spends of its own time, whatever else the machine
// does. The bound is in the contract; it holds ten times over.
static double cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void test_launch_cost(void **state) {
  (void)state;
  enum { N = 20000, ROUNDS = 7 };
  Rig g = rig_up(1, 0, 0);
  RtKernel *k = load(&g, "count");
  long total = 0;
  double best_sync = 1e9, best_launch = 1e9;
  for (int round = 0; round < ROUNDS; round++) {
    double begin = cpu_ns();
    for (int i = 0; i < N; i++) {
      OK(RT_TEST_LAUNCH(k, g.stream, 1, &error, rt_test_ptr(&total)));
      OK(rt_stream_sync(g.stream, &error));
    }
    best_sync = fmin(best_sync, (cpu_ns() - begin) / N);
    begin = cpu_ns();
    for (int i = 0; i < N; i++) OK(RT_TEST_LAUNCH(k, g.stream, 1, &error, rt_test_ptr(&total)));
    best_launch = fmin(best_launch, (cpu_ns() - begin) / N);
    OK(rt_stream_sync(g.stream, &error));
  }
  print_message("launch and sync %.0f ns, launch alone %.0f ns\n", best_sync, best_launch);
  assert_true(best_sync < 5000 && best_launch < 5000);
  rt_kernel_destroy(k);
  rig_down(&g);
}
#else
static void test_launch_cost(void **state) { (void)state; }
#endif

static int set_up(void **state) {
  (void)state;
  arena_init(&world.arena, 0, &world.escape);
  if (ESCAPE_TRY(&world.escape)) return -1;
  world.image = rt_test_image(&world.arena, KERNELS, NAMES, WAITING);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  arena_free(&world.arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_add),
      cmocka_unit_test(test_every_instance_once),
      cmocka_unit_test(test_many_small_launches),
      cmocka_unit_test(test_waits_in_order),
      cmocka_unit_test(test_all_live_at_once),
      cmocka_unit_test(test_warps),
      cmocka_unit_test(test_deadline),
      cmocka_unit_test(test_assert),
      cmocka_unit_test(test_polling_loop),
      cmocka_unit_test(test_print),
      cmocka_unit_test(test_bad_peer),
      cmocka_unit_test(test_budget),
      cmocka_unit_test(test_wrong_launches),
      cmocka_unit_test(test_streams_and_events),
      cmocka_unit_test(test_stream_waits),
      cmocka_unit_test(test_heap),
      cmocka_unit_test(test_launch_cost),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
