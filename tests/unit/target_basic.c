// target: entry, arguments, loops and control flow of the x86 target.
#include "unit/target_run.h"

static void test_vector_add(void **state) {
  (void)state;
  Code c;
  code_make(&c, NULL,
            "module stage=placed warps=4 stages=1 lanes=32\n"
            "kernel @add(%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32>, %n: i32) {\n"
            "  %p = program_id {axis=0} : i32\n"
            "  %c0 = const {value=0} : i32\n"
            "  %c8 = const {value=8} : i32\n"
            "  %c1 = const {value=1} : i32\n"
            "  %b = const {value=1024} : i32\n"
            "  %s = mul %p, %b : i32\n"
            "  for %c0, %b, %c8 { (%i: i32)\n"
            "    %at = add %s, %i : i32\n"
            "    %idx = ramp %at, %c1 : tile<8xi32>\n"
            "    %nn = splat %n : tile<8xi32>\n"
            "    %m = cmp %idx, %nn {cmp=slt} : tile<8xi1>\n"
            "    %px = ptr_add %x, %at : ptr<f32>\n"
            "    %py = ptr_add %y, %at : ptr<f32>\n"
            "    %po = ptr_add %o, %at : ptr<f32>\n"
            "    %vx = load_vec %px, %m, _ : tile<8xf32>\n"
            "    %vy = load_vec %py, %m, _ : tile<8xf32>\n"
            "    %vo = fadd %vx, %vy : tile<8xf32>\n"
            "    store_vec %po, %vo, %m\n"
            "    yield\n"
            "  }\n"
            "  return\n"
            "}\n");
  enum { N = 1500 };
  float x[2048], y[2048], o[2048];
  for (int i = 0; i < 2048; i++) {
    x[i] = (float)i;
    y[i] = (float)(2 * i);
    o[i] = -1;
  }
  const struct {
    float *x, *y, *o;
    int32_t n;
  } args = {x, y, o, N};
  assert_int_equal(c.image->kernels[0].variants[0].nargs, 4);
  assert_int_equal(c.image->kernels[0].variants[0].args[3].offset, 24);
  for (uint32_t p = 0; p < 2; p++) {
    c.inst.pid[0] = p;
    code_run(&c, "add", &args);
  }
  for (int i = 0; i < 2048; i++) assert_true(o[i] == (i < N ? (float)(3 * i) : -1));
  code_free(&c);
}

// o[i] gets the i-th index that the loop takes; n becomes their number.
static void test_for(void **state) {
  (void)state;
  static const struct {
    int64_t lo, hi, step;
    bool uns;
    int n;
    int64_t first, last;
  } cases[] = {
      {0, 10, 1, false, 10, 0, 9},
      {0, 10, 3, false, 4, 0, 9},
      {5, 5, 1, false, 0, 0, 0},
      {6, 5, 1, false, 0, 0, 0},
      {-3, 3, 2, false, 3, -3, 1},
      {10, 0, -1, false, 10, 10, 1},
      {10, 0, -4, false, 3, 10, 2},
      {INT32_MAX - 3, INT32_MAX, 2, false, 2, INT32_MAX - 3, INT32_MAX - 1}, // the next index would wrap
      {INT32_MIN + 3, INT32_MIN, -2, false, 2, INT32_MIN + 3, INT32_MIN + 1},
      {INT32_MIN, INT32_MAX, INT32_MAX, false, 3, INT32_MIN, INT32_MAX - 1},
      {-4, -1, 1, true, 3, -4, -2}, // as unsigned numbers near the top
      {3, -1, 0x7fffffff, true, 2, 3, INT32_MIN + 2},
  };
  Arena a;
  TEST_ARENA(a);
  for (size_t k = 0; k < DT_COUNTOF(cases); k++)
    for (int dynamic = 0; dynamic < 2; dynamic++) {
      if (dynamic && cases[k].step < 0) continue; // a step that runs down is a constant
      Code c;
      code_make(
          &c, NULL,
          arena_printf(
              &a,
              "module stage=placed warps=4 stages=1 lanes=32\n"
              "kernel @k(%%o: ptr<i32>, %%n: ptr<i32>, %%lo: i32, %%hi: i32, %%s: i32) {\n"
              "  %%c0 = const {value=0} : i32\n"
              "  %%c1 = const {value=1} : i32\n"
              "  %%step = const {value=%lld} : i32\n"
              "  %%count, %%again = for %%lo, %%hi, %s, %%c0, %%c1%s : i32, i32 { (%%i: i32, %%j: i32, %%twice: i32)\n"
              "    %%p = ptr_add %%o, %%j : ptr<i32>\n"
              "    store %%p, %%i, _\n"
              "    %%j1 = add %%j, %%c1 : i32\n"
              "    yield %%j1, %%j\n"
              "  }\n"
              "  store %%n, %%count, _\n"
              "  %%n1 = ptr_add %%n, %%c1 : ptr<i32>\n"
              "  store %%n1, %%again, _\n"
              "  return\n"
              "}\n",
              (long long)cases[k].step, dynamic ? "%s" : "%step", cases[k].uns ? " {uns_iv=true}" : ""));
      int32_t o[16] = {0}, n[2];
      const struct {
        int32_t *o, *n;
        int32_t lo, hi, step;
      } args = {o, n, (int32_t)cases[k].lo, (int32_t)cases[k].hi, (int32_t)cases[k].step};
      code_run(&c, "k", &args);
      assert_int_equal(n[0], cases[k].n);
      assert_int_equal(n[1], cases[k].n ? cases[k].n - 1 : 1);
      if (cases[k].n) {
        assert_int_equal(o[0], cases[k].first);
        assert_int_equal(o[cases[k].n - 1], cases[k].last);
      }
      code_free(&c);
    }
  arena_free(&a);
}

static void test_branches(void **state) {
  (void)state;
  Code c;
  code_make(&c, NULL,
            "module stage=placed warps=4 stages=1 lanes=32\n"
            "kernel @k(%o: ptr<i32>, %x: i32, %flag: i1) {\n"
            "  %c0 = const {value=0} : i32\n"
            "  %c1 = const {value=1} : i32\n"
            "  %c10 = const {value=10} : i32\n"
            "  %c20 = const {value=20} : i32\n"
            "  %v1 = const {value=7} : tile<8xi32>\n"
            "  %v2 = const {value=9} : tile<8xi32>\n"
            "  %a, %v = if %flag : i32, tile<8xi32> {\n"
            "    yield %c10, %v1\n"
            "  } {\n"
            "    %odd = cmp %x, %c10 {cmp=sgt} : i1\n"
            "    %b = if %odd : i32 { yield %c1 } { yield %c20 }\n"
            "    yield %b, %v2\n"
            "  }\n"
            "  %s = switch %x {cases=[3, -1]} : i32 {\n"
            "    yield %c10\n"
            "  } {\n"
            "    yield %c20\n"
            "  } {\n"
            "    yield %x\n"
            "  }\n"
            "  %e, %steps = while %x, %c0 : i32, i32 { (%n: i32, %k: i32)\n" // Collatz
            "    %go = cmp %n, %c1 {cmp=sgt} : i1\n"
            "    cond_yield %go, %n, %k\n"
            "  } { (%n: i32, %k: i32)\n"
            "    %low = and %n, %c1 : i32\n"
            "    %is_odd = cmp %low, %c1 {cmp=eq} : i1\n"
            "    %m = if %is_odd : i32 {\n"
            "      %c3 = const {value=3} : i32\n"
            "      %t = mul %n, %c3 : i32\n"
            "      %u = add %t, %c1 : i32\n"
            "      yield %u\n"
            "    } {\n"
            "      %h = shr_u %n, %c1 : i32\n"
            "      yield %h\n"
            "    }\n"
            "    %k1 = add %k, %c1 : i32\n"
            "    yield %m, %k1\n"
            "  }\n"
            "  %w0 = vec_get %v, %c1 : i32\n"
            "  store %o, %a, _\n"
            "  %o1 = ptr_add %o, %c1 : ptr<i32>\n"
            "  store %o1, %w0, _\n"
            "  %o2 = ptr_add %o1, %c1 : ptr<i32>\n"
            "  store %o2, %s, _\n"
            "  %o3 = ptr_add %o2, %c1 : ptr<i32>\n"
            "  store %o3, %steps, _\n"
            "  return\n"
            "}\n");
  static const struct {
    int32_t x;
    bool flag;
    int32_t want[4];
  } cases[] = {{27, false, {1, 9, 27, 111}},
               {3, true, {10, 7, 10, 7}},
               {-1, false, {20, 9, 20, 0}},
               {6, false, {20, 9, 6, 8}}};
  for (size_t k = 0; k < DT_COUNTOF(cases); k++) {
    int32_t o[4];
    const struct {
      int32_t *o, x;
      bool flag;
    } args = {o, cases[k].x, cases[k].flag};
    code_run(&c, "k", &args);
    assert_memory_equal(o, cases[k].want, sizeof o);
  }
  code_free(&c);
}

// What cannot be compiled is a diagnostic, and nothing is written.
static void is_refused(const char *text, const char *cpu, const char *says) {
  Code c = {0};
  if (ESCAPE_TRY(&c.escape)) fail_msg("%s", c.escape.message);
  code_parse(&c, text);
  const TargetOptions o = {.cpu = cpu, .opt = 1};
  assert_int_not_equal(target_compile(c.module, &o, &c.arena, &c.diags, &c.image), ST_OK);
  assert_null(c.image);
  assert_int_equal(c.diags.errors, 1);
  const char *said = diags_render(&c.diags, &c.arena);
  if (!strstr(said, says)) fail_msg("said: %s", said);
  code_free(&c);
}

static void test_refused(void **state) {
  (void)state;
  is_refused("module stage=tile warps=4 stages=1 lanes=32\nkernel @k() {\n  return\n}\n", NULL,
             "another stage");
  is_refused("module stage=placed warps=4 stages=1 lanes=32\n", NULL, "no kernel");
  is_refused("module stage=placed warps=4 stages=1 lanes=32\nkernel @k() {\n  return\n}\n", "pentium",
             "unknown CPU 'pentium'");
  is_refused("module stage=placed warps=4 stages=1 lanes=32\nkernel @k() {\n"
             "  %m = mem_alloc {offset=4} : memdesc<4xi32, scratch>\n  return\n}\n",
             NULL, "not aligned");
}

static void test_texts(void **state) {
  (void)state;
  Code c = {0};
  if (ESCAPE_TRY(&c.escape)) fail_msg("%s", c.escape.message);
  code_parse(&c, "module stage=placed warps=4 stages=1 lanes=32\nkernel @named(%x: ptr<f32>) {\n"
                 "  %v = load_vec %x, _, _ : tile<8xf32>\n  %w = fadd %v, %v : tile<8xf32>\n"
                 "  store_vec %x, %w, _\n  return\n}\n");
  const TargetOptions o = {.cpu = "x86-64-v3", .opt = 1, .debug_lines = true};
  char *text;
  assert_int_equal(target_text(c.module, &o, TARGET_TEXT_LLVM, &c.arena, &c.diags, &text), ST_OK);
  assert_non_null(strstr(text, "define void @named"));
  assert_int_equal(target_text(c.module, &o, TARGET_TEXT_ASM, &c.arena, &c.diags, &text), ST_OK);
  assert_non_null(strstr(text, "vaddps"));
  assert_non_null(strstr(text, ".loc")); // the line of the text it was read from
  assert_int_equal(target_compile(c.module, &o, &c.arena, &c.diags, &c.image), ST_OK);
  assert_non_null(strstr(c.image->cpu_features, "avx2"));
  assert_int_equal(image_code_load(c.image->code, c.image->code_bytes, NULL, 0, &c.code, &c.diags), ST_OK);
  code_free(&c);
}

// Memory may end anywhere: everything is given back and the message names the limit.
static void test_no_memory(void **state) {
  (void)state;
  static const char text[] = "module stage=placed warps=4 stages=1 lanes=32\nkernel @k(%x: ptr<f32>) {\n"
                             "  %v = load_vec %x, _, _ : tile<8xf32>\n  store_vec %x, %v, _\n  return\n}\n";
  Code c = {0};
  volatile int failures = 0, done = 0;
  for (volatile long n = 1; n < 40 && !done; n++) {
    memset(&c, 0, sizeof c);
    arena_init(&c.arena, 0, &c.escape);
    if (ESCAPE_TRY(&c.escape)) {
      failures++;
      arena_test_fail_after(0);
      code_free(&c);
      continue;
    }
    code_parse(&c, text);
    arena_test_fail_after(n);
    const TargetOptions o = {.opt = 1};
    const Status s = target_compile(c.module, &o, &c.arena, &c.diags, &c.image);
    arena_test_fail_after(0);
    assert_int_equal(s, ST_OK);
    done = 1;
    code_free(&c);
  }
  assert_true(done);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_vector_add), cmocka_unit_test(test_for),
                                     cmocka_unit_test(test_branches),   cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_texts),      cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
