// Running passes: names, order, needs, checks, dumps, memory that ends; specialising; large functions.
#include "harness/test.h"

#include "pass/pass.h"

#include <stdio.h>
#include <string.h>

static IrModule *parse(Arena *a, Diags *d, const char *text) {
  IrModule *m;
  diags_init(d, a);
  if (ir_parse(a, ir_ctx_new(a), d, "test", text, strlen(text), &m) != ST_OK)
    fail_msg("%s", diags_render(d, a));
  return m;
}

static const char simple[] = "module stage=tile warps=4 stages=2 lanes=32\n"
                             "func @twice(%x: i32) -> i32 { %t = add %x, %x : i32 return %t }\n"
                             "kernel @k(%p: ptr<i32>, %n: i32 {divisible=2}, %s: i32) {\n"
                             "  %a = call %n {callee=@twice} : i32\n"
                             "  %b = mul %a, %s : i32\n"
                             "  store %p, %b, _\n"
                             "  return\n"
                             "}\n";

typedef struct Seen {
  char names[400];
} Seen;
static void dump(void *user, const char *pass, const IrModule *m) {
  Seen *s = user;
  assert_non_null(m->funcs);
  strcat(s->names, pass);
  strcat(s->names, ",");
}

static void test_names(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  Seen seen = {""};
  IrModule *m = parse(&a, &d, simple);
  const PassConfig c = {.diags = &d, .verify = true, .dump = dump, .user = &seen};
  assert_int_equal(pass_run_named(m, "inline, fold cse", &c), ST_OK);
  assert_string_equal(seen.names, "inline,fold,cse,");
  seen.names[0] = 0;
  assert_int_equal(pass_run(m, PASS_INTERP, &c), ST_OK);
  seen.names[strlen(seen.names) - 1] = 0;
  assert_string_equal(seen.names, pass_order(PASS_INTERP));
  assert_int_equal(pass_run_named(m, "", NULL), ST_OK);
  assert_int_equal(pass_run_named(m, "fold,nonsense", &c), ST_INVALID);
  assert_non_null(strstr(diags_render(&d, &a), "there is no pass 'nonsense'"));
  assert_non_null(strstr(diags_render(&d, &a), "inline, fold"));
  arena_free(&a);
}

static void test_order_names_passes(void **state) {
  (void)state;
  for (PassTarget t = PASS_INTERP; t <= PASS_CPU; t++) {
    const char *at = pass_order(t);
    while (*at) {
      const size_t n = strcspn(at, ",");
      bool known = false;
      for (int i = 0; i < pass_count; i++)
        known |= strlen(pass_infos[i].name) == n && strncmp(pass_infos[i].name, at, n) == 0;
      if (!known) fail_msg("'%s' has no row", at);
      at += n + (at[n] == ',');
    }
  }
}

static void test_needs(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  IrModule *m = parse(&a, &d, simple);
  const PassConfig c = {.diags = &d};
  assert_int_equal(pass_run_named(m, "licm", &c), ST_INVALID);
  assert_non_null(strstr(diags_render(&d, &a), "run 'inline' before it"));
  m->stage = STAGE_placed;
  diags_init(&d, &a);
  assert_int_equal(pass_run_named(m, "waits", &c), ST_INVALID);
  assert_non_null(strstr(diags_render(&d, &a), "placed stage"));
  arena_free(&a);
}

// The check before the first pass finds what was wrong from the start.
static void test_verify(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  IrModule *m = parse(&a, &d, simple);
  ir_erase(m->last_func->body->last);
  const PassConfig c = {.diags = &d, .verify = true};
  assert_int_equal(pass_run_named(m, "fold", &c), ST_INTERNAL);
  assert_non_null(strstr(diags_render(&d, &a), "before the first pass"));
  arena_free(&a);
}

static void test_remarks_only_when_asked(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  IrModule *m = parse(&a, &d, simple);
  PassConfig c = {.diags = &d};
  assert_int_equal(pass_run(m, PASS_INTERP, &c), ST_OK);
  assert_int_equal(d.list.len, 0);
  c.explain = true;
  assert_int_equal(pass_run(m, PASS_INTERP, &c), ST_OK);
  assert_true(d.list.len > 0);
  for (uint32_t i = 0; i < d.list.len; i++) assert_int_equal(d.list.data[i].level, DIAG_REMARK);
  arena_free(&a);
}

static void test_specialise(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  IrModule *m = parse(&a, &d, simple);
  const PassConfig c = {.diags = &d, .verify = true};
  assert_int_equal(pass_run_named(m, "inline", &c), ST_OK);
  IrFunc *k = ir_func_find(m, str_cstr(ir_strings(m->ctx), "k"));
  const PassFact facts[] = {
      {.param = 0, .divisible = 16}, {.param = 2, .known = true, .value = 1}, {.param = 9, .known = true}};
  IrFunc *g = pass_specialise(k, str_cstr(ir_strings(m->ctx), "k1"), facts, DT_COUNTOF(facts));
  assert_int_equal(pass_run_named(m, "fold,dce", &c), ST_OK);
  assert_int_equal(g->params.len, 3);
  assert_int_equal(g->params.data[0].divisible, 16);
  assert_int_equal(g->params.data[1].divisible, 2);
  assert_null(g->body->args.data[2]->uses); // s is 1: the product is gone
  for (const IrOp *op = g->body->first; op; op = op->next) assert_int_not_equal(op->kind, OP_mul);
  assert_non_null(k->body->args.data[2]->uses); // the original stays
  arena_free(&a);
}

// Memory that ends in the middle of a pass leaves through the module's escape, and nothing behind.
static void test_no_memory(void **state) {
  (void)state;
  for (volatile long n = 1; n < 40; n++) {
    Escape esc;
    Arena a;
    arena_init(&a, 0, &esc);
    if (ESCAPE_TRY(&esc)) {
      assert_int_equal(esc.status, ST_NO_MEMORY);
      arena_test_fail_after(0);
      arena_free(&a);
      continue;
    }
    Diags d;
    IrModule *m = parse(&a, &d, simple);
    arena_test_fail_after(n);
    const Status s = pass_run(m, PASS_INTERP, &(PassConfig){.diags = &d, .verify = true});
    arena_test_fail_after(0);
    assert_int_equal(s, ST_OK);
    arena_free(&a);
  }
}

// ---- large functions: what is quadratic somewhere takes minutes here ----------------------------------------------------

typedef struct Text {
  char *s;
  size_t len, cap;
} Text;
static void put(Text *t, const char *fmt, ...) DT_PRINTF(2, 3);
static void put(Text *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  t->len += (size_t)vsnprintf(t->s + t->len, t->cap - t->len, fmt, ap);
  va_end(ap);
  assert_true(t->len < t->cap);
}

static void run_large(void (*body)(Text *t, int n), int n) {
  Arena a;
  TEST_ARENA(a);
  Text t = {arena_alloc(&a, (size_t)n * 200 + 4096, 1), 0, (size_t)n * 200 + 4096};
  put(&t, "module stage=tile warps=4 stages=2 lanes=32\nkernel @k(%%p: ptr<i32>, %%x: i32, %%n: i32) {\n"
          "%%c0 = const {value=0} : i32 %%c1 = const {value=1} : i32\n");
  body(&t, n);
  put(&t, "return }\n");
  Diags d;
  IrModule *m = parse(&a, &d, t.s);
  const uint64_t begin = os_now_ns();
  assert_int_equal(pass_run(m, PASS_INTERP, &(PassConfig){.diags = &d}), ST_OK);
  assert_true(os_now_ns() - begin < 20000000000ull);
  arena_free(&a);
}

static void chain(Text *t, int n) {
  for (int i = 0; i < n; i++) put(t, "%%v%d = add %%%s%d, %%c1 : i32\n", i + 1, i ? "v" : "c", i);
  put(t, "store %%p, %%v%d, _\n", n);
}
static void wide(Text *t, int n) { // one value with very many users, all of them to be replaced
  for (int i = 0; i < n; i++) put(t, "%%v%d = add %%x, %%c0 : i32 store %%p, %%v%d, _\n", i, i);
}
static void loops(Text *t, int n) {
  for (int i = 0; i < n / 4; i++)
    put(t,
        "%%r%d = for %%c0, %%n, %%c1, %%x : i32 { (%%i: i32, %%a: i32) %%s = mul %%a, %%x : i32 %%d = add %%x, %%n : i32 yield %%s }\n",
        i);
}
static void nest(Text *t, int n) {
  const int depth = 60;
  for (int i = 0; i < depth; i++) {
    put(t, "for %%c0, %%n, %%c1 { (%%i%d: i32)\n", i);
    for (int j = 0; j < n / depth / 2; j++)
      put(t, "%%w%d_%d = add %%i%d, %%x : i32 store %%p, %%w%d_%d, _\n", i, j, i, i, j);
  }
  for (int i = 0; i < depth; i++) put(t, "yield }\n");
}

static void test_chain(void **state) {
  (void)state;
  run_large(chain, 100000);
}
static void test_wide(void **state) {
  (void)state;
  run_large(wide, 100000);
}
static void test_loops(void **state) {
  (void)state;
  run_large(loops, 100000);
}
static void test_nest(void **state) {
  (void)state;
  run_large(nest, 100000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                     cmocka_unit_test(test_order_names_passes),
                                     cmocka_unit_test(test_needs),
                                     cmocka_unit_test(test_verify),
                                     cmocka_unit_test(test_remarks_only_when_asked),
                                     cmocka_unit_test(test_specialise),
                                     cmocka_unit_test(test_no_memory),
                                     cmocka_unit_test(test_chain),
                                     cmocka_unit_test(test_wide),
                                     cmocka_unit_test(test_loops),
                                     cmocka_unit_test(test_nest)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
