// What goes wrong while kernels run, as the caller of the public API sees it: statuses, reports, and a context that lives on.
#include "api_ops.h"

static const char SOURCE[] = // line numbers count: see the reports below
    "import triton\n"
    "import triton.language as tl\n"
    "import ditron\n"
    "import ditron.language as dl\n"
    "\n"
    "@ditron.jit\n"
    "def hand_over(flags_ptr, out_ptr, value, SEND: tl.constexpr):\n"
    "    if dl.rank() == 0:\n"
    "        if SEND:\n"
    "            dl.release(flags_ptr + 3, value, rank=1, scope='sys')\n"
    "    else:\n"
    "        dl.acquire(flags_ptr + 3, at_least=7, scope='sys')\n" // line 12
    "        tl.store(out_ptr, 1)\n"
    "\n"
    "@ditron.jit\n"
    "def positive(x_ptr):\n"
    "    x = tl.load(x_ptr + tl.program_id(0))\n"
    "    tl.device_assert(x > 0, 'not positive')\n" // line 18
    "\n"
    "@ditron.jit\n"
    "def doubled(x_ptr, BY_CALL: tl.constexpr):\n"
    "    x = tl.load(x_ptr + tl.program_id(0))\n"
    "    if BY_CALL:\n"
    "        tl.device_assert(x > 0, 'not positive')\n"
    "    else:\n"
    "        assert x > 0, 'not positive'\n"
    "    tl.store(x_ptr + tl.program_id(0), 2 * x)\n";

typedef struct Team {
  dt_context *context;
  dt_team *team;
} Team;

static Team team_of(int world, double deadline) {
  Team t = {0};
  const dt_context_options co = {.size = sizeof co, .deadline_seconds = deadline};
  assert_int_equal(dt_context_create(&co, &t.context), DT_OK);
  const dt_team_options o = {
      .size = sizeof o, .local_ranks = world, .symmetric_bytes = 8 << 20, .threads_per_rank = 1};
  assert_int_equal(dt_team_create(t.context, &o, &t.team), DT_OK);
  return t;
}
static void team_end(Team *t) {
  dt_team_destroy(t->team);
  dt_context_destroy(t->context);
}

static void expect(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("not there: '%s'\nin: %s", part, text);
}

// ---- a signal that does not come ---------------------------------------------------------------------------------------
typedef struct HandOver {
  int64_t value; // sent by rank 0
  bool send;
  dt_status status[2];
  char report[2][4096];
  dt_status after;
} HandOver;

static dt_status launch_hand_over(dt_rank *r, const dt_image *im, dt_stream *s, int64_t *flags, int32_t *out,
                                  int64_t value) {
  dt_kernel *k = NULL;
  dt_status st = dt_kernel_load(r, im, "hand_over", &k);
  if (st != DT_OK) return st;
  const uint32_t grid[3] = {1, 1, 1};
  const dt_value args[] = {dt_ptr(DT_I64, flags), dt_ptr(DT_I32, out), dt_int(value)};
  st = dt_launch(k, s, grid, args, 3);
  if (st == DT_OK) st = dt_stream_sync(s);
  dt_kernel_destroy(k);
  return st;
}

static dt_status hand_over(dt_rank *r, void *user) {
  HandOver *h = user;
  dt_context *c = dt_rank_context(r);
  const int me = dt_rank_index(r);
  void *flags = NULL, *out = NULL;
  dt_stream *s = NULL;
  dt_image *im = NULL;
  dt_status st = dt_symm_alloc(r, 64, "ready", &flags);
  if (st == DT_OK) st = dt_alloc(r, 64, &out);
  if (st == DT_OK) st = dt_stream_create(r, "main", &s);
  const dt_named args[] = {{"flags_ptr", dt_ptr(DT_I64, flags)},
                           {"out_ptr", dt_ptr(DT_I32, out)},
                           {"value", dt_int(5)},
                           {"SEND", dt_bool(h->send)}};
  if (st == DT_OK)
    st = dt_compile_text(c, "faults.py", SOURCE, sizeof SOURCE - 1, "hand_over", args, 4, NULL, &im);
  if (st == DT_OK) st = dt_barrier(r);
  if (st != DT_OK) return st;
  h->status[me] = launch_hand_over(r, im, s, flags, out, h->value);
  snprintf(h->report[me], sizeof h->report[me], "%s", dt_error(c));
  // Rank 0 has nothing to wait for and may be done before the deadline; it hears of the failure at the next meeting.
  if (h->status[me] == DT_OK)
    usleep(450000); // and comes to that late, so that it is not the first to lose patience
  if (h->status[me] == DT_OK) h->status[me] = dt_barrier(r);
  st = dt_team_recover(r);
  if (st == DT_OK) { // the same kernels again, with what was missing
    dt_image_destroy(im);
    im = NULL;
    const dt_named good[] = {args[0], args[1], args[2], {"SEND", dt_bool(true)}};
    st = dt_compile_text(c, "faults.py", SOURCE, sizeof SOURCE - 1, "hand_over", good, 4, NULL, &im);
    if (st == DT_OK) st = launch_hand_over(r, im, s, flags, out, 7);
    if (st == DT_OK) st = dt_barrier(r);
  }
  dt_image_destroy(im);
  dt_stream_destroy(s);
  dt_free(r, out);
  dt_status freed = dt_symm_free(r, flags);
  return st == DT_OK ? freed : st;
}

static void check_report(const HandOver *h, Team *t, const char *writer) {
  dt_status st = dt_team_run(t->team, hand_over, (void *)h);
  if (st != DT_OK) fail_msg("after recovery: %s %s", dt_status_name(st), dt_error(t->context));
  assert_int_equal(h->status[0], DT_DEADLINE);
  assert_int_equal(h->status[1], DT_DEADLINE);
  const char *r = h->report[1];
  expect(r, "rank 1: a wait passed its deadline of 0.5 s");
  expect(r, "kernel 'hand_over', program (0, 0, 0)");
  expect(r, "at faults.py:12");
  expect(r, "'ready' + 24");
  expect(r, "should be >= 7, but is");
  expect(r, writer);
}

static void test_signal_too_low(void **state) {
  (void)state;
  Team t = team_of(2, 0.5);
  const HandOver h = {.value = 5, .send = true};
  check_report(&h, &t, "last written by rank 0 at faults.py:10 (value 5)");
  expect(h.report[1], "but is 5");
  team_end(&t);
}
static void test_signal_dropped(void **state) {
  (void)state;
  Team t = team_of(2, 0.5);
  const HandOver h = {.value = 7, .send = false};
  check_report(&h, &t, "no signal call has written it");
  expect(h.report[1], "but is 0");
  team_end(&t);
}

// ---- assertions -----------------------------------------------------------------------------------------------------------
static void test_device_assert(void **state) {
  (void)state;
  Team t = team_of(1, 10);
  dt_rank *r = dt_team_local(t.team, 0);
  int32_t x[4] = {1, 2, -3, 4};
  dt_image *im = NULL;
  dt_kernel *k = NULL;
  dt_stream *s = NULL;
  const dt_named args[] = {{"x_ptr", dt_ptr(DT_I32, x)}};
  assert_int_equal(
      dt_compile_text(t.context, "faults.py", SOURCE, sizeof SOURCE - 1, "positive", args, 1, NULL, &im),
      DT_OK);
  assert_int_equal(dt_kernel_load(r, im, NULL, &k), DT_OK);
  assert_int_equal(dt_stream_create(r, "main", &s), DT_OK);
  const uint32_t grid[3] = {4, 1, 1};
  const dt_value v[] = {dt_ptr(DT_I32, x)};
  for (int round = 0; round < 3; round++) {
    x[2] = -3;
    assert_int_equal(dt_launch(k, s, grid, v, 1), DT_OK);
    assert_int_equal(dt_stream_sync(s), DT_ASSERT);
    expect(dt_error(t.context), "not positive");
    expect(dt_error(t.context), "kernel 'positive', program (2, 0, 0)");
    expect(dt_error(t.context), "faults.py:18");
    expect(dt_team_report(t.team), "not positive");
    assert_true(dt_team_speaks(t.team));                      // one process
    assert_int_equal(dt_launch(k, s, grid, v, 1), DT_ASSERT); // until the team recovers
    assert_int_equal(dt_team_recover(r), DT_OK);
    assert_string_equal(dt_team_report(t.team), "");
    x[2] = 3;
    assert_int_equal(dt_launch(k, s, grid, v, 1), DT_OK);
    assert_int_equal(dt_stream_sync(s), DT_OK);
  }
  dt_stream_destroy(s);
  dt_kernel_destroy(k);
  dt_image_destroy(im);
  team_end(&t);
}

// Compiled with no_asserts, what an assertion forbids passes, and the rest of the kernel runs. Images of both kinds come
// out of one context with a cache.
static void test_no_asserts(void **state) {
  (void)state;
  Team t = team_of(1, 10);
  dt_rank *r = dt_team_local(t.team, 0);
  dt_stream *s = NULL;
  assert_int_equal(dt_stream_create(r, "main", &s), DT_OK);
  for (int round = 0; round < 8; round++) {
    const bool without = round & 1, by_call = round & 2;
    int32_t x[4] = {1, 2, -3, 4};
    dt_image *im = NULL;
    dt_kernel *k = NULL;
    const dt_named args[] = {{"x_ptr", dt_ptr(DT_I32, x)}, {"BY_CALL", dt_bool(by_call)}};
    const dt_compile_options o = {.size = sizeof o, .no_asserts = without};
    assert_int_equal(
        dt_compile_text(t.context, "faults.py", SOURCE, sizeof SOURCE - 1, "doubled", args, 2, &o, &im),
        DT_OK);
    assert_int_equal(dt_kernel_load(r, im, NULL, &k), DT_OK);
    const uint32_t grid[3] = {4, 1, 1};
    const dt_value v[] = {dt_ptr(DT_I32, x)};
    assert_int_equal(dt_launch(k, s, grid, v, 1), DT_OK);
    assert_int_equal(dt_stream_sync(s), without ? DT_OK : DT_ASSERT);
    assert_int_equal(x[2], without ? -6 : -3);
    if (without)
      assert_int_equal(x[3], 8);
    else
      assert_int_equal(dt_team_recover(r), DT_OK);
    dt_kernel_destroy(k);
    dt_image_destroy(im);
  }
  dt_stream_destroy(s);
  team_end(&t);
}

// ---- ranks that disagree --------------------------------------------------------------------------------------------------
typedef struct Texts {
  dt_status status[4];
  char text[4][1024];
} Texts;

static dt_status disagree(dt_rank *r, void *user) {
  Texts *t = user;
  const int me = dt_rank_index(r);
  void *p = NULL;
  t->status[me] = dt_symm_alloc(r, me == 2 ? 4096 : 1024, "x", &p);
  snprintf(t->text[me], sizeof t->text[me], "%s", dt_error(dt_rank_context(r)));
  dt_status st = dt_symm_alloc(r, 256, "y", &p); // the team stays usable
  if (st == DT_OK) memset(p, me, 256);
  if (st == DT_OK) st = dt_barrier(r);
  void *peer = NULL;
  if (st == DT_OK) st = dt_symm_peer(r, p, (me + 1) % 3, &peer);
  if (st == DT_OK && *(char *)peer != (me + 1) % 3) st = DT_INTERNAL;
  if (st == DT_OK) st = dt_barrier(r);
  return st == DT_OK ? dt_symm_free(r, p) : st;
}

static void test_allocations_that_differ(void **state) {
  (void)state;
  Team t = team_of(3, 20);
  Texts texts = {0};
  dt_status st = dt_team_run(t.team, disagree, &texts);
  if (st != DT_OK) fail_msg("%s %s", dt_status_name(st), dt_error(t.context));
  for (int i = 0; i < 3; i++) {
    assert_int_equal(texts.status[i], DT_MISMATCH);
    expect(texts.text[i],
           "rank 0: symm_alloc of 1024; rank 1: symm_alloc of 1024; rank 2: symm_alloc of 4096");
  }
  team_end(&t);
}

// ---- plans ------------------------------------------------------------------------------------------------------------------
typedef struct PlanTrouble {
  Texts texts;
  int what;
} PlanTrouble;

static dt_plan_options plan_options(char kernels[PATH_MAX]) {
  ops_root(kernels);
  strcat(kernels, "/kernels");
  return (dt_plan_options){.size = sizeof(dt_plan_options),
                           .op = "all_gather",
                           .variant = "push",
                           .dtype = DT_F32,
                           .m = 10,
                           .kernels_dir = kernels};
}

enum { BAD_SIZE, BAD_VARIANT, OTHER_SHAPE, BAD_FOLDER, OTHER_OP, TROUBLES };

static dt_status plan_trouble(dt_rank *r, void *user) {
  PlanTrouble *t = user;
  const int me = dt_rank_index(r);
  char kernels[PATH_MAX];
  dt_plan_options o = plan_options(kernels);
  const dt_plan_options good = o;
  if (me == 1) {
    if (t->what == BAD_SIZE) o.size = 3;
    if (t->what == BAD_VARIANT) o.variant = "teleport";
    if (t->what == OTHER_SHAPE) o.m = 11;
    if (t->what == BAD_FOLDER) o.kernels_dir = "/nowhere";
    if (t->what == OTHER_OP) o.op = "all_reduce", o.variant = "two_shot";
  }
  dt_plan *plan = NULL;
  t->texts.status[me] = dt_plan_create(r, &o, &plan);
  snprintf(t->texts.text[me], sizeof t->texts.text[me], "%s", dt_error(dt_rank_context(r)));
  dt_plan_destroy(plan);
  plan = NULL;
  dt_status st = dt_plan_create(r, &good, &plan);
  dt_plan_destroy(plan);
  return st;
}

static void test_plans_that_one_rank_cannot_make(void **state) {
  (void)state;
  Team t = team_of(3, 20);
  static const char *const why[TROUBLES] = {"dt_plan_options.size", "no variant 'teleport'; it has: ce_push",
                                            "rank 0 for all_gather push f32 m 10", "/nowhere/collectives.py",
                                            "rank 1 for all_reduce two_shot"};
  for (int i = 0; i < TROUBLES; i++) {
    PlanTrouble trouble = {.what = i};
    dt_status st = dt_team_run(t.team, plan_trouble, &trouble);
    if (st != DT_OK) fail_msg("%s %s", dt_status_name(st), dt_error(t.context));
    for (int r = 0; r < 3; r++) {
      if (trouble.texts.status[r] == DT_OK) fail_msg("trouble %d: rank %d saw none", i, r);
      expect(trouble.texts.text[r], why[i]);
    }
  }
  team_end(&t);
}

// A plan whose call was cut short, on some ranks before it began, goes on after the team has recovered.
typedef struct Reuse {
  const char *op, *variant;
} Reuse;

static dt_plan_options reuse_options(const Reuse *u, char kernels[PATH_MAX]) {
  dt_plan_options o = plan_options(kernels);
  o.op = u->op;
  o.variant = u->variant;
  o.m = o.n = o.k = 6;
  return o;
}

// Makes the plan and drops it: what it compiles is in the cache before a short deadline runs.
static dt_status reuse_warm(dt_rank *r, void *user) {
  char kernels[PATH_MAX];
  const dt_plan_options o = reuse_options(user, kernels);
  dt_plan *plan = NULL;
  const dt_status st = dt_plan_create(r, &o, &plan);
  dt_plan_destroy(plan);
  return st;
}

static dt_status reuse(dt_rank *r, void *user) {
  const Reuse *u = user;
  const int me = dt_rank_index(r), world = 3;
  OpsCase c = {u->op, u->variant, DT_F32, 6, 6, 6};
  char kernels[PATH_MAX];
  const dt_plan_options o = reuse_options(u, kernels);
  size_t sizes[OPS_TENSORS];
  const int n = ops_sizes(&c, world, sizes);
  OpsSet set = {0};
  dt_plan *plan = NULL;
  dt_stream *s = NULL, *other = NULL;
  dt_status st = DT_OK;
  for (int i = 0; i < n && st == DT_OK; i++) st = dt_alloc(r, sizes[i] * 4 + 64, &set.t[i]);
  if (st == DT_OK) st = dt_stream_create(r, "main", &s);
  if (st == DT_OK) st = dt_stream_create(r, "other", &other);
  if (st == DT_OK) st = dt_plan_create(r, &o, &plan);
  for (int call = 0; call < 8 && st == DT_OK; call++) {
    ops_fill(&c, &set, sizes, n, me, call);
    const bool cut = call == 3;
    if (cut && me == 1) {
      st = dt_barrier(r); // does not come to the call; the others' deadline ends this wait as well
    } else {
      st = dt_plan_run(plan, call % 2 ? s : other, set.t, (size_t)n);
      if (st == DT_OK) st = dt_stream_sync(call % 2 ? s : other);
      if (cut && st == DT_OK) st = dt_barrier(r); // it had nothing to wait for
    }
    if (cut && st != DT_DEADLINE) return st == DT_OK ? DT_INTERNAL : st;
    if (cut)
      st = dt_team_recover(r);
    else if (st == DT_OK)
      st = ops_check(&c, &set, sizes, n, r, call);
    if (st == DT_OK) st = dt_barrier(r);
  }
  dt_plan_destroy(plan);
  dt_stream_destroy(s);
  dt_stream_destroy(other);
  for (int i = 0; i < n; i++) dt_free(r, set.t[i]);
  return st;
}

static void test_plans_after_recovery(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  static const Reuse all[] = {
      {"all_gather", "push"},     {"all_gather", "ring"},     {"all_gather", "ce_push"},
      {"all_reduce", "two_shot"}, {"ag_gemm", "overlap"},     {"ag_gemm", "overlap_raw"},
      {"gemm_rs", "overlap"},     {"gemm_ar", "overlap_raw"}, {"all_to_all", "push"}};
  Team t = team_of(3, 100);
  for (size_t i = 0; i < DT_COUNTOF(all); i++) {
    dt_status st = dt_team_run(t.team, reuse_warm, (void *)&all[i]);
    if (st != DT_OK) fail_msg("%s %s: %s", all[i].op, all[i].variant, dt_error(t.context));
  }
  team_end(&t);
  t = team_of(3, OPS_SANITIZED ? 6 : 2);
  for (size_t i = 0; i < DT_COUNTOF(all); i++) {
    dt_status st = dt_team_run(t.team, reuse, (void *)&all[i]);
    if (st != DT_OK)
      fail_msg("%s %s: %s %s", all[i].op, all[i].variant, dt_status_name(st), dt_error(t.context));
  }
  team_end(&t);
}

// ---- two plans ------------------------------------------------------------------------------------------------------------------
typedef struct Pair {
  bool two_streams;
} Pair;

static dt_status two_plans(dt_rank *r, void *user) {
  const Pair *pair = user;
  const int me = dt_rank_index(r), world = 3;
  static const OpsCase cases[2] = {{"ag_gemm", "overlap", DT_F32, 6, 6, 9},
                                   {"gemm_rs", "overlap", DT_BF16, 6, 7, 6}};
  dt_plan *plan[2] = {0};
  dt_stream *s[2] = {0};
  OpsSet set[2] = {0};
  size_t sizes[2][OPS_TENSORS];
  dt_status st = DT_OK;
  for (int k = 0; k < 2 && st == DT_OK; k++) {
    char kernels[PATH_MAX];
    dt_plan_options o = plan_options(kernels);
    o.op = cases[k].op;
    o.variant = cases[k].variant;
    o.dtype = cases[k].dtype;
    o.m = cases[k].m;
    o.n = cases[k].n;
    o.k = cases[k].k;
    const int n = ops_sizes(&cases[k], world, sizes[k]);
    for (int i = 0; i < n && st == DT_OK; i++) st = dt_alloc(r, sizes[k][i] * 4 + 64, &set[k].t[i]);
    if (st == DT_OK) st = dt_stream_create(r, "one of two", &s[k]);
    if (st == DT_OK) st = dt_plan_create(r, &o, &plan[k]);
  }
  for (int call = 0; call < 60 && st == DT_OK; call++) {
    for (int k = 0; k < 2; k++) ops_fill(&cases[k], &set[k], sizes[k], 3, me, call);
    for (int k = 0; k < 2 && st == DT_OK; k++)
      st = dt_plan_run(plan[k], s[pair->two_streams ? k : 0], set[k].t, 3);
    for (int k = 0; k < 2 && st == DT_OK; k++) st = dt_stream_sync(s[k]);
    for (int k = 0; k < 2 && st == DT_OK; k++) st = ops_check(&cases[k], &set[k], sizes[k], 3, r, call);
  }
  dt_status agreed = dt_agree(r, st);
  for (int k = 0; k < 2; k++) {
    dt_plan_destroy(plan[k]);
    dt_stream_destroy(s[k]);
    for (int i = 0; i < 3; i++) dt_free(r, set[k].t[i]);
  }
  return st == DT_OK ? agreed : st;
}

static void test_two_plans(void **state) {
  (void)state;
  OPS_SKIP_UNSEEN();
  Team t = team_of(3, 30);
  for (int i = 0; i < 2; i++) {
    const Pair pair = {.two_streams = i};
    dt_status st = dt_team_run(t.team, two_plans, (void *)&pair);
    if (st != DT_OK) fail_msg("%s %s", dt_status_name(st), dt_error(t.context));
  }
  team_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_signal_too_low),          cmocka_unit_test(test_signal_dropped),
      cmocka_unit_test(test_device_assert),           cmocka_unit_test(test_no_asserts),
      cmocka_unit_test(test_allocations_that_differ), cmocka_unit_test(test_plans_that_one_rank_cannot_make),
      cmocka_unit_test(test_plans_after_recovery),    cmocka_unit_test(test_two_plans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
