// Polling loops and the waits they become, on the interpreter: the same results in any order of steps, and what would
// have hung ends with a report that names the word.
#include "harness/test.h"

#include "pass/pass.h"

#include <string.h>

enum { INSTANCES = 6 };

typedef struct World {
  int32_t flag[64], out[64], lock[16];
  int64_t wide[16];
} World;

#define HEAD "module stage=tile warps=1 stages=1 lanes=32\n"

// Instance 0 writes out[63] and sets the flag to 7; the others wait for it and copy what they find.
#define EXCHANGE(poll) \
  HEAD \
      "kernel @k(%flag: ptr<i32>, %out: ptr<i32>, %lock: ptr<i32>, %wide: ptr<i64>) {\n" \
      "  %pid = program_id {axis=0} : i32\n" \
      "  %zero = const {value=0} : i32 %one = const {value=1} : i32 %v = const {value=7} : i32 %t = const {value=1} : i1\n" \
      "  %at = const {value=63} : i32\n" \
      "  %cell = ptr_add %out, %at : ptr<i32>\n" \
      "  %mine = ptr_add %out, %pid : ptr<i32>\n" \
      "  %first = cmp %pid, %zero {cmp=eq} : i1\n" \
      "  if %first {\n" \
      "    store %cell, %v, _\n" \
      "    store %flag, %v, _ {order=release, scope=gpu}\n" \
      "    yield\n" \
      "  } {\n" poll "    %x = load %cell, _, _ : i32\n" \
      "    store %mine, %x, _\n" \
      "    yield\n" \
      "  }\n" \
      "  return\n" \
      "}\n"

static const char *const exchanges[] = {
    EXCHANGE(
        "while { %a = load %flag, _, _ {order=acquire, scope=gpu} : i32 %c = cmp %a, %v {cmp=ne} : i1 cond_yield %c } { yield }\n"),
    EXCHANGE(
        "while { %a = load %flag, _, _ {order=acquire, scope=gpu} : i32 %c = cmp %v, %a {cmp=sgt} : i1 cond_yield %c } { yield }\n"),
    EXCHANGE(
        "%s = while : i32 { %a = load %flag, _, _ {order=acquire, scope=gpu} : i32 %c = cmp %a, %v {cmp=slt} : i1 cond_yield %c, %a }"
        " { (%u: i32) yield } store %mine, %s, _\n"),
    EXCHANGE(
        "while { %a = atomic_cas %flag, %v, %v {order=acquire, scope=gpu} : i32 %c = cmp %a, %v {cmp=ne} : i1 cond_yield %c } { yield }\n"),
    EXCHANGE(
        "while { %a = atomic_rmw %flag, %zero, _ {rmw=add, order=acq_rel, scope=gpu} : i32 %c = cmp %a, %v {cmp=ne} : i1 cond_yield %c }"
        " { yield }\n"),
    EXCHANGE(
        "while %t { (%g: i1) cond_yield %g } { %a = load %flag, _, _ {order=acquire, scope=gpu} : i32 %d = cmp %a, %v {cmp=eq} : i1"
        " %on = xor %d, %t : i1 yield %on }\n"),
    EXCHANGE(
        "%s = while %zero : i32 { (%a: i32) %c = cmp %a, %v {cmp=ne} : i1 cond_yield %c, %a }"
        " { (%u: i32) %b = load %flag, _, _ {order=acquire, scope=gpu} : i32 yield %b } store %mine, %s, _\n"),
};

// Everyone adds one, under a lock.
static const char locked[] = HEAD
    "kernel @k(%flag: ptr<i32>, %out: ptr<i32>, %lock: ptr<i32>, %wide: ptr<i64>) {\n"
    "  %zero = const {value=0} : i32 %one = const {value=1} : i32\n"
    "  while { %a = atomic_cas %lock, %zero, %one {order=acquire, scope=gpu} : i32 %c = cmp %a, %zero {cmp=ne} : i1 cond_yield %c } { yield }\n"
    "  %x = load %out, _, _ : i32\n"
    "  %y = add %x, %one : i32\n"
    "  store %out, %y, _\n"
    "  %old = atomic_rmw %lock, %zero, _ {rmw=xchg, order=release, scope=gpu} : i32\n"
    "  return\n"
    "}\n";

// Threads wait for words of their own; 64-bit, unsigned comparison.
static const char threads[] = HEAD
    "kernel @k(%flag: ptr<i32>, %out: ptr<i32>, %lock: ptr<i32>, %wide: ptr<i64>) {\n"
    "  %pid = program_id {axis=0} : i32 %zero = const {value=0} : i32 %first = cmp %pid, %zero {cmp=eq} : i1\n"
    "  %tid = tid : thread i32 %eight = const {value=8} : thread i32 %few = cmp %tid, %eight {cmp=slt} : thread i1\n"
    "  %tw = to_thread %wide : thread ptr<i64> %word = ptr_add %tw, %tid : thread ptr<i64> %big = const {value=5} : thread i64\n"
    "  %to = to_thread %out : thread ptr<i32> %mine = ptr_add %to, %tid : thread ptr<i32>\n"
    "  if %first {\n"
    "    if %few { store %word, %big, _ {order=release, scope=gpu} yield } { yield }\n"
    "    yield\n"
    "  } {\n"
    "    if %few {\n"
    "      while { %a = load %word, _, _ {order=acquire, scope=gpu} : thread i64 %c = cmp %a, %big {cmp=ult} : thread i1 cond_yield %c } { yield }\n"
    "      %n = const {value=1} : thread i32\n"
    "      %o = atomic_rmw %mine, %n, _ {rmw=add, order=relaxed, scope=gpu} : thread i32\n"
    "      yield\n"
    "    } { yield }\n"
    "    yield\n"
    "  }\n"
    "  return\n"
    "}\n";

static IrModule *parse(Arena *a, Diags *d, const char *text) {
  IrModule *m;
  diags_init(d, a);
  if (ir_parse(a, ir_ctx_new(a), d, "test", text, strlen(text), &m) != ST_OK)
    fail_msg("%s", diags_render(d, a));
  return m;
}

static Status run(Arena *a, const IrModule *m, World *w, uint64_t seed, uint32_t instances,
                  const char **finding) {
  const InterpMemory memory[] = {{w->flag, sizeof w->flag, "flag", 0, -1, true, false},
                                 {w->out, sizeof w->out, "out", 0, -1, true, false},
                                 {w->lock, sizeof w->lock, "lock", 0, -1, true, false},
                                 {w->wide, sizeof w->wide, "wide", 0, -1, true, false}};
  const InterpArg args[] = {{.p = w->flag}, {.p = w->out}, {.p = w->lock}, {.p = w->wide}};
  const InterpCmd cmd = {.kind = INTERP_LAUNCH, .func = m->funcs, .grid = {instances, 1, 1}, .args = args};
  const InterpConfig c = {.arena = a,
                          .module = m,
                          .ranks = 1,
                          .memory = memory,
                          .nmemory = 4,
                          .cmds = &cmd,
                          .ncmds = 1,
                          .seed = seed,
                          .max_steps = 1000000};
  InterpResult r;
  const Status s = interp_run(&c, &r);
  *finding = r.nfindings ? r.findings[0].text : "";
  return s == ST_OK ? r.status : s;
}

static void same_results(const char *text, uint64_t seed) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  World *x = arena_new(&a, World), *y = arena_new(&a, World);
  const char *finding;
  IrModule *m = parse(&a, &d, text);
  if (run(&a, m, x, seed, INSTANCES, &finding) != ST_OK) fail_msg("seed %d: %s", (int)seed, finding);
  const PassConfig c = {.diags = &d, .verify = true};
  if (pass_run(m, PASS_INTERP, &c) != ST_OK) fail_msg("%s", diags_render(&d, &a));
  if (run(&a, m, y, seed, INSTANCES, &finding) != ST_OK)
    fail_msg("seed %d: %s\n%s", (int)seed, finding, ir_print(m, &a));
  assert_memory_equal(x, y, sizeof *x);
  assert_non_null(strstr(ir_print(m, &a), "wait %"));
  arena_free(&a);
}

static void test_same_results(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 30; seed++) {
    for (size_t i = 0; i < DT_COUNTOF(exchanges); i++) same_results(exchanges[i], seed);
    same_results(locked, seed);
    same_results(threads, seed);
  }
}

// The signal goes to another word: whoever waits says for which.
static void hang_is_reported(const char *exchange) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  World *w = arena_new(&a, World);
  const char *finding;
  char *text = arena_strdup(&a, exchange);
  memcpy(strstr(text, "store %flag, %v"), "store %lock, %v", 15); // the signal goes astray
  IrModule *m = parse(&a, &d, text);
  assert_int_not_equal(run(&a, m, w, 1, INSTANCES, &finding), ST_OK);
  const PassConfig c = {.diags = &d, .verify = true};
  assert_int_equal(pass_run(m, PASS_INTERP, &c), ST_OK);
  *w = (World){0};
  assert_int_equal(run(&a, m, w, 1, INSTANCES, &finding), ST_DEADLINE);
  if (!strstr(finding, "flag")) fail_msg("no name in: %s", finding);
  arena_free(&a);
}

static void test_hangs_are_reported(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(exchanges); i++) hang_is_reported(exchanges[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_results),
                                     cmocka_unit_test(test_hangs_are_reported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
