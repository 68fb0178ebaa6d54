// --check: known idioms are clean in every schedule, and each fault that is planted in one of them is found with both lines.
#include "unit/ir_interp.h"

#define HEAD "module stage=tile warps=4 stages=2 lanes=32\n"

// Rank 0 gives a tile to rank 1, which reads it, in one exchange of `rounds`. A case fills in how the tile is published, how it is
// waited for, and how rank 1 says that it is done.
//   store    how rank 0 writes the tile to rank 1's d      publish  after it, on rank 0
//   wait     on rank 1, before its tile load               ack      after it; ackwait: on rank 0, before its store
typedef struct Case {
  const char *name;
  const char *store, *publish, *wait, *ackwait, *ack;
  InterpFault fault; // FAULT_NONE: clean
  const char *words;
} Case;

#define TILE_STORE \
  "%there = symm_at %d, %one : ptr<f32>\n %ts = splat %there : tile<64xptr<f32>>\n %tp = ptr_add %ts, %r : tile<64xptr<f32>>\n" \
  " store %tp, %v, _\n"
#define PUT(attrs) "put %d, %x, %bytes, %one {" attrs "}\n"
#define BARRIER "barrier\n"
// By thread 0, inside of an if.
#define THREAD0(body) "%is0@ = cmp %t, %t0 {cmp=eq} : thread i1\n if %is0@ { " body " yield } { yield }\n"
#define T_STORE(attrs) \
  "%fp@ = symm_at %f, %one : ptr<i64>\n %ft@ = to_thread %fp@ : thread ptr<i64>\n store %ft@, %et, _ {" attrs \
  "}\n"
#define T_WAIT(attrs) \
  "%fw@ = to_thread %f : thread ptr<i64>\n %tok@ = wait %fw@, _, %et {cmp=sge, " attrs "} : token\n"
#define T_POLL \
  "%fq@ = to_thread %f : thread ptr<i64>\n while { %pv@ = load %fq@, _, _ {order=relaxed, scope=sys} : thread i64\n" \
  " %go@ = cmp %pv@, %et {cmp=slt} : thread i1\n cond_yield %go@ } { yield }\n"
#define FENCE(order, scope) "fence {order=" order ", scope=" scope "}\n"
#define RELEASE(attrs) "release %f, %e, %one {sigop=set, " attrs "}\n"
#define ACQUIRE(attrs) "%tok = acquire %f, %e {cmp=sge, " attrs "} : token\n"
#define SIGNAL(attrs) "signal %f, %e, %one {sigop=set, " attrs "}\n"
#define ACK "release %a, %e, %z {sigop=set, scope=sys}\n"
#define ACKWAIT "%tk = acquire %a, %i64_ {cmp=sge, scope=sys} : token\n"

static const Case cases[] = {
    // ---- clean
    {"release and acquire", TILE_STORE, RELEASE("scope=sys"), ACQUIRE("scope=sys"), ACKWAIT, ACK, FAULT_NONE,
     ""},
    {"barrier and thread 0", TILE_STORE, BARRIER THREAD0(T_STORE("order=release, scope=sys")),
     THREAD0(T_WAIT("order=acquire, scope=sys")) BARRIER, ACKWAIT, ACK, FAULT_NONE, ""},
    {"fence and relaxed words", TILE_STORE,
     BARRIER THREAD0(FENCE("release", "sys") T_STORE("order=relaxed, scope=sys")),
     THREAD0(T_POLL FENCE("acquire", "sys")) BARRIER, ACKWAIT, ACK, FAULT_NONE, ""},
    {"fence of every thread, then the barrier", TILE_STORE,
     BARRIER FENCE("acq_rel", "sys") BARRIER THREAD0(T_STORE("order=relaxed, scope=sys")),
     THREAD0(T_POLL) BARRIER FENCE("acq_rel", "sys") BARRIER THREAD0(T_POLL FENCE("acquire", "sys")) BARRIER,
     ACKWAIT, ACK, FAULT_NONE, ""},
    {"scalar atomics of the program", TILE_STORE,
     BARRIER
     "%fp = symm_at %f, %one : ptr<i64>\n %old = atomic_rmw %fp, %e, _ {rmw=xchg, order=release, scope=sys} : i64\n",
     "%tok = wait %f, _, %e {cmp=sge, order=acquire, scope=sys} : token\n", ACKWAIT, ACK, FAULT_NONE, ""},
    {"counting add", TILE_STORE,
     BARRIER
     "%fp = symm_at %f, %one : ptr<i64>\n %o1 = const {value=1} : i64\n %old = atomic_rmw %fp, %o1, _ {rmw=add, order=acq_rel, scope=sys} : i64\n",
     "%tok = wait %f, _, %e {cmp=sge, order=acquire, scope=sys} : token\n", ACKWAIT, ACK, FAULT_NONE, ""},
    {"signal by one thread", TILE_STORE,
     BARRIER THREAD0("%ft9 = to_thread %f : thread ptr<i64>\n %onet = to_thread %one : thread i32\n"
                     " signal %ft9, %et, %onet {sigop=set, order=release, scope=sys}\n"),
     THREAD0(T_WAIT("order=acquire, scope=sys")) BARRIER, ACKWAIT, ACK, FAULT_NONE, ""},
    {"team barrier", TILE_STORE, "team_barrier _ {group=block, scope=sys}\n",
     "team_barrier _ {group=block, scope=sys}\n", ACKWAIT, ACK, FAULT_NONE, ""},
    {"put, quiet, signal", PUT("group=block, nbi=true"), "put_quiet\n" SIGNAL("order=release, scope=sys"),
     ACQUIRE("scope=sys"), ACKWAIT, ACK, FAULT_NONE, ""},
    {"put, fence, signal", PUT("group=block"), "put_fence\n" SIGNAL("order=relaxed, scope=sys"),
     ACQUIRE("scope=sys"), ACKWAIT, ACK, FAULT_NONE, ""},
    {"put with signal", "put_signal %d, %x, %bytes, %f, %e, %one {group=block, nbi=true, sigop=set}\n", "",
     ACQUIRE("scope=sys"), ACKWAIT, ACK, FAULT_NONE, ""},
    // ---- an edge taken away
    {"no wait", TILE_STORE, RELEASE("scope=sys"), "", ACKWAIT, ACK, FAULT_RACE,
     "d[0] of rank 1|nothing orders"},
    {"relaxed wait", TILE_STORE, RELEASE("scope=sys"),
     "%tok = wait %f, _, %e {cmp=sge, order=relaxed, scope=sys} : token\n", ACKWAIT, ACK, FAULT_RACE,
     "reads d["},
    {"relaxed store", TILE_STORE, BARRIER THREAD0(T_STORE("order=relaxed, scope=sys")),
     THREAD0(T_WAIT("order=acquire, scope=sys")) BARRIER, ACKWAIT, ACK, FAULT_RACE, "d["},
    {"relaxed signal", TILE_STORE, BARRIER SIGNAL("order=relaxed, scope=sys"), ACQUIRE("scope=sys"), ACKWAIT,
     ACK, FAULT_RACE, "d["},
    {"no barrier before thread 0", TILE_STORE, THREAD0(T_STORE("order=release, scope=sys")),
     THREAD0(T_WAIT("order=acquire, scope=sys")) BARRIER, ACKWAIT, ACK, FAULT_RACE, "d["},
    {"no barrier after thread 0", TILE_STORE, BARRIER THREAD0(T_STORE("order=release, scope=sys")),
     THREAD0(T_WAIT("order=acquire, scope=sys")), ACKWAIT, ACK, FAULT_RACE, "d["},
    {"no fence before the relaxed store", TILE_STORE, BARRIER THREAD0(T_STORE("order=relaxed, scope=sys")),
     THREAD0(T_POLL FENCE("acquire", "sys")) BARRIER, ACKWAIT, ACK, FAULT_RACE, "d["},
    {"no fence after the poll", TILE_STORE,
     BARRIER THREAD0(FENCE("release", "sys") T_STORE("order=relaxed, scope=sys")), THREAD0(T_POLL) BARRIER,
     ACKWAIT, ACK, FAULT_RACE, "d["},
    {"no barrier before the program's atomic", TILE_STORE,
     "%fp = symm_at %f, %one : ptr<i64>\n %old = atomic_rmw %fp, %e, _ {rmw=xchg, order=release, scope=sys} : i64\n",
     "%tok = wait %f, _, %e {cmp=sge, order=acquire, scope=sys} : token\n", ACKWAIT, ACK, FAULT_RACE, "d["},
    {"only one team barrier's side", TILE_STORE, "", "", ACKWAIT, ACK, FAULT_RACE, "d["},
    {"put without fence", PUT("group=block"), SIGNAL("order=release, scope=sys"), ACQUIRE("scope=sys"),
     ACKWAIT, ACK, FAULT_RACE, "a copy started by rank 0|d["},
    {"no acknowledgement", TILE_STORE, RELEASE("scope=sys"), ACQUIRE("scope=sys"), "", ACK, FAULT_SLOT_REUSE,
     "writes d[|which rank 1|not heard"},
    {"no wait for the acknowledgement of a put",
     "put_signal %d, %x, %bytes, %f, %e, %one {group=block, sigop=set}\n", "", ACQUIRE("scope=sys"), "", ACK,
     FAULT_RACE, "a copy started by rank 0|d["},
    {"relaxed acknowledgement", TILE_STORE, RELEASE("scope=sys"), ACQUIRE("scope=sys"), ACKWAIT,
     "signal %a, %e, %z {sigop=set, order=relaxed, scope=sys}\n", FAULT_SLOT_REUSE, "d["},
    // ---- scopes
    {"release at gpu scope", TILE_STORE, RELEASE("scope=gpu"), ACQUIRE("scope=sys"), ACKWAIT, ACK,
     FAULT_SCOPE, "gpu"},
    {"acquire at gpu scope", TILE_STORE, RELEASE("scope=sys"), ACQUIRE("scope=gpu"), ACKWAIT, ACK,
     FAULT_SCOPE, "gpu"},
    {"store at gpu scope", TILE_STORE, BARRIER THREAD0(T_STORE("order=release, scope=gpu")),
     THREAD0(T_WAIT("order=acquire, scope=sys")) BARRIER, ACKWAIT, ACK, FAULT_SCOPE, "gpu"},
    {"fence at gpu scope", TILE_STORE,
     BARRIER THREAD0(FENCE("release", "gpu") T_STORE("order=relaxed, scope=sys")),
     THREAD0(T_POLL FENCE("acquire", "sys")) BARRIER, ACKWAIT, ACK, FAULT_SCOPE, "gpu"},
    // ---- hangs
    {"no signal", TILE_STORE, "", ACQUIRE("scope=sys"), ACKWAIT, ACK, FAULT_DEADLOCK,
     "f[0] of rank 1 >= 1, sees 0, never written"},
};

// '@' becomes a number of its own in each macro use.
static void expand(char *out, size_t cap, const char *s, int *number) {
  size_t n = strlen(out);
  const char *line_start = s;
  for (; *s && n + 8 < cap; s++) {
    if (*s == '%' && s[1] == 'i' && s[2] == 's' && s[3] == '0' && s[4] == '@' &&
        (s == line_start || s[-1] != ' ' || s[-2] != 'f'))
      ++*number;
    if (*s != '@') {
      out[n++] = *s;
      continue;
    }
    n += (size_t)snprintf(out + n, cap - n, "_%d", *number);
  }
  out[n] = 0;
}

static void build(char *text, size_t cap, const Case *c) {
  int number = 0;
  *text = 0;
  snprintf(
      text, cap,
      HEAD
      "kernel @k(%%x: ptr<f32>, %%d: ptr<f32>, %%f: ptr<i64>, %%a: ptr<i64>, %%out: ptr<f32>, %%rounds: i32) {\n"
      "  %%me = rank : i32\n  %%z = const {value=0} : i32\n  %%one = const {value=1} : i32\n  %%bytes = const {value=256} : i64\n"
      "  %%t = tid : thread i32\n  %%t0 = const {value=0} : thread i32\n  %%r = arange {start=0, end=64} : tile<64xi32>\n"
      "  %%is_zero = cmp %%me, %%z {cmp=eq} : i1\n"
      "  %%xs = splat %%x : tile<64xptr<f32>>\n  %%xp = ptr_add %%xs, %%r : tile<64xptr<f32>>\n  %%v = load %%xp, _, _ : tile<64xf32>\n"
      "  for %%z, %%rounds, %%one { (%%i: i32) %%i1 = add %%i, %%one : i32\n %%e = ext_s %%i1 : i64\n %%i64_ = ext_s %%i : i64\n"
      "    %%et = to_thread %%e : thread i64\n"
      "    if %%is_zero {\n");
  expand(text, cap, c->ackwait, &number);
  expand(text, cap, c->store, &number);
  expand(text, cap, c->publish, &number);
  expand(text, cap, " yield } {\n", &number);
  expand(text, cap, c->wait, &number);
  expand(
      text, cap,
      " %ds = splat %d : tile<64xptr<f32>>\n %dp = ptr_add %ds, %r : tile<64xptr<f32>>\n %w = load %dp, _, _ : tile<64xf32>\n"
      " %os = splat %out : tile<64xptr<f32>>\n %op = ptr_add %os, %r : tile<64xptr<f32>>\n store %op, %w, _\n",
      &number);
  expand(text, cap, c->ack, &number);
  expand(text, cap, " yield }\n yield }\n return\n}\n", &number);
}

// Was the fault found? One schedule may happen to order what the program leaves open.
static int run_case(const Case *c, uint64_t seed) {
  int found = 1;
  static float x[2][64], d[2][64], out[2][64];
  static int64_t f[2][1], a[2][1];
  static InterpArg args[2][6];
  char text[8000];
  build(text, sizeof text, c);
  memset(d, 0, sizeof d);
  memset(f, 0, sizeof f);
  memset(a, 0, sizeof a);
  Run r;
  run_open(&r, text, 2);
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < 64; i++) x[k][i] = (float)(i + k);
    run_memory(&r, x[k], sizeof x[k], "x", k, -1);
    run_memory(&r, d[k], sizeof d[k], "d", k, 0);
    run_memory(&r, f[k], sizeof f[k], "f", k, 1);
    run_memory(&r, a[k], sizeof a[k], "a", k, 2);
    run_memory(&r, out[k], sizeof out[k], "out", k, -1);
    args[k][0].p = x[k], args[k][1].p = d[k], args[k][2].p = f[k], args[k][3].p = a[k], args[k][4].p = out[k],
    args[k][5].i = 2;
    run_launch(&r, k, "k", 1, args[k]);
  }
  r.config.seed = seed;
  r.config.check = true;
  interp_run(&r.config, &r.result);
  if (c->fault == FAULT_NONE) {
    if (r.result.status != ST_OK)
      fail_msg("'%s', seed %llu: %s", c->name, (unsigned long long)seed, run_findings(&r));
    for (int i = 0; i < 64; i++)
      if (out[1][i] != x[0][i])
        fail_msg("'%s', seed %llu: %g at %d", c->name, (unsigned long long)seed, (double)out[1][i], i);
  } else {
    const InterpFinding *hit = NULL;
    for (int k = 0; k < r.result.nfindings && !hit; k++)
      if (r.result.findings[k].fault == c->fault) hit = &r.result.findings[k];
    // Which of the two accesses came first, and so how the fault is called, is the schedule's choice.
    const InterpFault other = c->fault == FAULT_RACE ? FAULT_SLOT_REUSE : FAULT_RACE;
    const bool other_way = (c->fault == FAULT_RACE || c->fault == FAULT_SLOT_REUSE) && r.result.nfindings &&
                           r.result.findings[0].fault == other;
    if (!hit && r.result.nfindings && !other_way)
      fail_msg("'%s', seed %llu: no %s: %s", c->name, (unsigned long long)seed, interp_fault_names[c->fault],
               run_findings(&r));
    found = hit ? 1 : other_way ? 2 : 0;
    char *words = arena_strdup(&r.arena, c->words), *save = NULL;
    for (char *word = strtok_r(words, "|", &save); word && hit; word = strtok_r(NULL, "|", &save))
      if (!strstr(hit->text, word)) fail_msg("'%s': no '%s' in: %s", c->name, word, run_findings(&r));
    if (hit && (!hit->here.line || (c->fault != FAULT_DEADLOCK && !hit->other.line)))
      fail_msg("'%s': a line is missing: %s", c->name, run_findings(&r));
  }
  run_close(&r);
  return found;
}

static void test_exchange(void **state) {
  (void)state;
  for (size_t k = 0; k < DT_COUNTOF(cases); k++) {
    int found[3] = {0};
    for (uint64_t seed = 0; seed < 8; seed++) found[run_case(&cases[k], seed)]++;
    if (found[0] > 2 || !found[1])
      fail_msg("'%s' was found in %d + %d of 8 schedules", cases[k].name, found[1], found[2]);
  }
}

// ---- within one instance ---------------------------------------------------------------------------------------------------
static void check_one(const char *body, bool initialised, Status status, InterpFault fault,
                      const char *words) {
  static int32_t p[256];
  char text[4000];
  snprintf(
      text, sizeof text,
      HEAD
      "kernel @k(%%p: ptr<i32>) {\n  %%t = tid : thread i32\n  %%pt = to_thread %%p : thread ptr<i32>\n  %%z = const {value=0} : i32\n"
      "  %%one = const {value=1} : i32\n  %%t0 = const {value=0} : thread i32\n  %%t1 = const {value=1} : thread i32\n"
      "  %%t33 = const {value=33} : thread i32\n  %%m127 = const {value=127} : thread i32\n  %%r = arange {start=0, end=128} : tile<128xi32>\n"
      "  %%ps = splat %%p : tile<128xptr<i32>>\n  %%pp = ptr_add %%ps, %%r : tile<128xptr<i32>>\n%s\n  return\n}\n",
      body);
  for (uint64_t seed = 0; seed < 4; seed++) {
    Run r;
    run_open(&r, text, 1);
    memset(p, 0, sizeof p);
    run_memory(&r, p, sizeof p, "p", 0, -1)->initialised = initialised;
    run_launch(&r, 0, "k", 1, (InterpArg[]){{.p = p}});
    r.config.seed = seed;
    r.config.check = true;
    if (status == ST_OK)
      run_ok(&r);
    else
      run_fails(&r, status, fault, words);
    run_close(&r);
  }
}

static void test_instance(void **state) {
  (void)state;
  // Tile store, then a thread's load: ordered by a barrier only.
  const char *body =
      "  store %%pp, %%r, _\n  %s\n  %%x = xor %%t, %%m127 : thread i32\n  %%q = ptr_add %%pt, %%x : thread ptr<i32>\n"
      "  %%v = load %%q, _, _ : thread i32\n  %s\n  %%own = ptr_add %%pt, %%t : thread ptr<i32>\n  store %%own, %%v, _";
  char text[1000];
  snprintf(text, sizeof text, body, "barrier", "barrier");
  check_one(text, false, ST_OK, FAULT_NONE, "");
  snprintf(text, sizeof text, body, "", "barrier");
  check_one(text, false, ST_RACE, FAULT_RACE, "reads p[|which rank 0|warp");
  snprintf(text, sizeof text, body, "barrier", "");
  check_one(text, false, ST_RACE, FAULT_RACE, "writes p[");
  // Program code keeps its order by itself.
  check_one(
      "  store %pp, %r, _\n  %v = load %p, _, _ : i32\n  %w = load %pp, _, _ : tile<128xi32>\n  store %pp, %w, _",
      false, ST_OK, FAULT_NONE, "");
  // Never written; only partly.
  check_one("  %w = load %pp, _, _ : tile<128xi32>\n  store %pp, %w, _", false, ST_RACE, FAULT_UNINIT,
            "reads p[0] of rank 0|nothing has written");
  check_one("  store %p, %one, _\n  %w = load %pp, _, _ : tile<128xi32>\n  store %pp, %w, _", false, ST_RACE,
            FAULT_UNINIT, "reads p[1]");
  // Shared memory between warps.
  body =
      "  %%m = mem_alloc {label=\"stage\"} : memdesc<128xi32, shared>\n  mem_set %%m, %%t, %%t\n  %s\n  %%x = xor %%t, %%m127 : thread i32\n"
      "  %%v = mem_get %%m, %%x : thread i32\n  %%own = ptr_add %%pt, %%t : thread ptr<i32>\n  store %%own, %%v, _";
  snprintf(text, sizeof text, body, "barrier");
  check_one(text, false, ST_OK, FAULT_NONE, "");
  snprintf(text, sizeof text, body, "");
  check_one(text, false, ST_RACE, FAULT_RACE, "stage");
}

static void test_barriers(void **state) {
  (void)state;
  check_one(
      "  %c = cmp %t, %t33 {cmp=slt} : thread i1\n  if %c { store %pt, %t1, _ {order=relaxed, scope=gpu}\n yield } { yield }\n  barrier",
      true, ST_OK, FAULT_NONE, "");
  // Under a condition of threads the verifier refuses a barrier, but text that was not verified must not hang either.
  const char *const conds[] = {"%t33", "%t32"};
  for (int k = 0; k < 2; k++) {
    char text[1000];
    snprintf(text, sizeof text,
             HEAD
             "kernel @k(%%p: ptr<i32>) {\n  %%t = tid : thread i32\n  %%t33 = const {value=33} : thread i32\n"
             "  %%t32 = const {value=32} : thread i32\n  %%c = cmp %%t, %s {cmp=slt} : thread i1\n"
             "  if %%c {\n    barrier\n yield } { yield }\n  return\n}\n",
             conds[k]);
    Run r;
    memset(&r, 0, sizeof r);
    arena_init(&r.arena, 0, &r.escape);
    if (ESCAPE_TRY(&r.escape)) fail_msg("%s", r.escape.message);
    diags_init(&r.diags, &r.arena);
    assert_int_equal(ir_parse(&r.arena, ir_ctx_new(&r.arena), &r.diags, "k", text, strlen(text), &r.module),
                     ST_OK);
    r.config = (InterpConfig){
        .arena = &r.arena, .module = r.module, .ranks = 1, .memory = r.memory, .cmds = r.cmds, .check = true};
    int32_t p[1] = {0};
    run_memory(&r, p, sizeof p, "p", 0, -1);
    run_launch(&r, 0, "k", 1, (InterpArg[]){{.p = p}});
    run_fails(&r, ST_RACE, FAULT_BARRIER, k ? "1 of 4 warps|k:8" : "with 1 of its 32 threads");
    assert_int_equal(r.result.findings[0].here.line, 8);
    run_close(&r);
  }
}

static void test_async(void **state) {
  (void)state;
  // The verifier sees plain reads before the wait; what it cannot see is a write over the buffer, or over the source.
  const char *body =
      "  %%m = mem_alloc : memdesc<128xi32, shared>\n  store %%pp, %%r, _\n  %%tok = copy_async %%m, %%pp, _, _ : token\n  %s\n"
      "  store %%pp, %%r, _\n  %s";
  char text[1000];
  snprintf(text, sizeof text, body, "%w = async_wait %tok : token", "%v = mem_load %m : tile<128xi32>");
  check_one(text, true, ST_OK, FAULT_NONE, "");
  snprintf(text, sizeof text, body, "", "%w = async_wait %tok : token");
  check_one(text, true, ST_RACE, FAULT_PROXY, "nothing waits for the asynchronous copy");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exchange), cmocka_unit_test(test_instance),
                                     cmocka_unit_test(test_barriers), cmocka_unit_test(test_async)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
