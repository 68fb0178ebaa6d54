// target: masked and scattered accesses of every element size, buffers, atomics, reductions, scans and lane operations.
#include "unit/target_run.h"

#define HEAD "module stage=placed warps=4 stages=1 lanes=32\n"
static const char *const types[] = {"i1", "i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64"};
static int bytes_of(const char *t) {
  for (int d = 0; d < IR_NDTYPES; d++)
    if (!strcmp(ir_dtypes[d].name, t)) return ir_dtypes[d].bytes;
  return 0;
}

typedef struct Args {
  const void *x;
  const uint8_t *m;
  const int32_t *i;
  void *o;
  int32_t n;
} Args;

// Every mask of a 16-lane vector that a shifting pattern makes; nothing outside the mask may be touched.
static void test_masked(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  for (size_t t = 0; t < DT_COUNTOF(types); t++) {
    const char *ty = types[t];
    const int bytes = bytes_of(ty);
    char *text = arena_strdup(&a, HEAD);
    for (int nt = 0; nt < 2; nt++)
      text = arena_printf(
          &a,
          "%skernel @vec%d(%%x: ptr<%s>, %%m: ptr<i1>, %%i: ptr<i32>, %%o: ptr<%s>, %%n: i32) {\n"
          "  %%mask = load_vec %%m, _, _ : tile<16xi1>\n"
          "  %%other = load_vec %%o, _, _ : tile<16x%s>\n"
          "  %%o2 = ptr_add %%o, %%n : ptr<%s>\n"
          "  %%v = load_vec %%x, %%mask, %%other : tile<16x%s>\n"
          "  store_vec %%o, %%v, _%s\n"
          "  %%z = load_vec %%x, %%mask, _ : tile<16x%s>\n"
          "  store_vec %%o2, %%z, %%mask%s\n"
          "  return\n"
          "}\n",
          text, nt, ty, ty, ty, ty, ty, nt ? " {nt=true}" : "", ty, nt ? " {nt=true}" : "");
    text =
        arena_printf(&a,
                     "%skernel @lanes(%%x: ptr<%s>, %%m: ptr<i1>, %%i: ptr<i32>, %%o: ptr<%s>, %%n: i32) {\n"
                     "  %%mask = load_vec %%m, _, _ : tile<16xi1>\n"
                     "  %%idx = load_vec %%i, _, _ : tile<16xi32>\n"
                     "  %%other = load_vec %%o, _, _ : tile<16x%s>\n"
                     "  %%o2 = ptr_add %%o, %%n : ptr<%s>\n"
                     "  %%xs = splat %%x : tile<16xptr<%s>>\n"
                     "  %%os = splat %%o2 : tile<16xptr<%s>>\n"
                     "  %%px = ptr_add %%xs, %%idx : tile<16xptr<%s>>\n"
                     "  %%po = ptr_add %%os, %%idx : tile<16xptr<%s>>\n"
                     "  %%v = load %%px, %%mask, %%other : tile<16x%s>\n"
                     "  store_vec %%o, %%v, _\n"
                     "  %%z = load %%px, %%mask, _ : tile<16x%s>\n"
                     "  store %%po, %%z, %%mask\n"
                     "  return\n"
                     "}\n"
                     "kernel @ordered(%%x: ptr<%s>, %%m: ptr<i1>, %%i: ptr<i32>, %%o: ptr<%s>, %%n: i32) {\n"
                     "  %%mask = load_vec %%m, _, _ : tile<16xi1>\n"
                     "  %%idx = load_vec %%i, _, _ : tile<16xi32>\n"
                     "  %%other = load_vec %%o, _, _ : tile<16x%s>\n"
                     "  %%o2 = ptr_add %%o, %%n : ptr<%s>\n"
                     "  %%xs = splat %%x : tile<16xptr<%s>>\n"
                     "  %%os = splat %%o2 : tile<16xptr<%s>>\n"
                     "  %%px = ptr_add %%xs, %%idx : tile<16xptr<%s>>\n"
                     "  %%po = ptr_add %%os, %%idx : tile<16xptr<%s>>\n"
                     "  %%v = load %%px, %%mask, %%other {order=acquire, scope=sys} : tile<16x%s>\n"
                     "  store_vec %%o, %%v, _\n"
                     "  %%z = load %%px, %%mask, _ {volatile=true} : tile<16x%s>\n"
                     "  store %%po, %%z, %%mask {order=release, scope=sys}\n"
                     "  return\n"
                     "}\n"
                     "kernel @one(%%x: ptr<%s>, %%m: ptr<i1>, %%i: ptr<i32>, %%o: ptr<%s>, %%n: i32) {\n"
                     "  %%lo = const {value=0} : i32\n"
                     "  %%hi = const {value=16} : i32\n"
                     "  %%st = const {value=1} : i32\n"
                     "  for %%lo, %%hi, %%st { (%%k: i32)\n"
                     "    %%pm = ptr_add %%m, %%k : ptr<i1>\n"
                     "    %%pi = ptr_add %%i, %%k : ptr<i32>\n"
                     "    %%mask = load %%pm, _, _ : i1\n"
                     "    %%at = load %%pi, _, _ : i32\n"
                     "    %%px = ptr_add %%x, %%at : ptr<%s>\n"
                     "    %%o1 = ptr_add %%o, %%k : ptr<%s>\n"
                     "    %%om = ptr_add %%o, %%at : ptr<%s>\n"
                     "    %%o2 = ptr_add %%om, %%n : ptr<%s>\n"
                     "    %%other = load %%o1, _, _ : %s\n"
                     "    %%v = load %%px, %%mask, %%other : %s\n"
                     "    store %%o1, %%v, _\n"
                     "    %%z = load %%px, %%mask, _ : %s\n"
                     "    store %%o2, %%z, %%mask\n"
                     "    yield\n"
                     "  }\n"
                     "  return\n"
                     "}\n",
                     text, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty, ty,
                     ty, ty, ty, ty, ty, ty, ty, ty);
    Code c;
    code_make(&c, NULL, text);
    static const char *const kernels[] = {"vec0", "vec1", "lanes", "ordered", "one"};
    for (size_t k = 0; k < DT_COUNTOF(kernels); k++)
      for (uint32_t pattern = 0; pattern < 24; pattern++) {
        uint8_t mask[16], x[16 * 8], o[64 + 32 * 8], want[sizeof o];
        int32_t idx[16];
        const uint32_t bits = pattern < 17 ? (1u << pattern) - 1 : 0x9249u * pattern;
        for (int i = 0; i < 16; i++) {
          mask[i] = bits >> i & 1;
          idx[i] = k < 2 ? i : (i * 7 + 3) % 16;
        }
        for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)(t ? i * 37 + 11 : i % 3 == 0);
        for (size_t i = 0; i < sizeof o; i++) o[i] = (uint8_t)(t ? 255 - i : i % 2);
        uint8_t *out = o + (64 - ((uintptr_t)o & 63)) % 64; // aligned for the non-temporal forms
        memcpy(want, o, sizeof o);
        uint8_t *w = want + (out - o);
        for (int i = 0; i < 16; i++)
          if (mask[i]) {
            memcpy(w + i * bytes, x + idx[i] * bytes, (size_t)bytes);
            memcpy(w + (16 + idx[i]) * bytes, x + idx[i] * bytes, (size_t)bytes);
          }
        const Args args = {x, mask, idx, out, 16};
        code_run(&c, kernels[k], &args);
        if (memcmp(o, want, sizeof o)) fail_msg("%s on %s with mask %x", kernels[k], ty, bits);
      }
    code_free(&c);
  }
  arena_free(&a);
}

// Past the mapped page nothing may be read or written, whatever the mask's form.
static void test_buffers(void **state) {
  (void)state;
  Code c;
  code_make(&c, NULL,
            HEAD "kernel @k(%o: ptr<i32>) {\n"
                 "  %m = mem_alloc {offset=128} : memdesc<4x8xi32, scratch>\n"
                 "  %f = mem_alloc {offset=0} : memdesc<2*16xi1, scratch>\n"
                 "  %i0 = const {value=0} : i32\n"
                 "  %i1 = const {value=1} : i32\n"
                 "  %i4 = const {value=4} : i32\n"
                 "  %i8 = const {value=8} : i32\n"
                 "  for %i0, %i4, %i1 { (%r: i32)\n"
                 "    %base = mul %r, %i8 : i32\n"
                 "    %v = ramp %base, %i1 : tile<8xi32>\n"
                 "    mem_set %m, %v, %r, %i0\n"
                 "    yield\n"
                 "  }\n"
                 "  %lane = ramp %i0, %i1 : tile<8xi32>\n"
                 "  %three = const {value=3} : tile<8xi32>\n"
                 "  %row = and %lane, %three : tile<8xi32>\n"
                 "  %diag = mem_gather %m, %row, %lane : tile<8xi32>\n"
                 "  store_vec %o, %diag, _\n"
                 "  mem_scatter %m, %lane, %i1, %row\n"
                 "  %back = mem_get %m, %i1, %i0 : tile<8xi32>\n"
                 "  %o8 = ptr_add %o, %i8 : ptr<i32>\n"
                 "  store_vec %o8, %back, _\n"
                 "  %x = mem_get %m, %i4, %i0 : i32\n"
                 "  %f1 = mem_view %f, %i1 : memdesc<16xi1, scratch>\n"
                 "  %odd = const {value=1} : tile<8xi32>\n"
                 "  %b = and %lane, %odd : tile<8xi32>\n"
                 "  %z = const {value=0} : tile<8xi32>\n"
                 "  %flags = cmp %b, %z {cmp=ne} : tile<8xi1>\n"
                 "  mem_set %f1, %flags, %i8\n"
                 "  %one = mem_get %f1, %i8 : i1\n"
                 "  %fl = mem_get %f1, %i8 : tile<8xi1>\n"
                 "  %w = ext_s %fl : tile<8xi32>\n"
                 "  %w1 = ext_u %one : i32\n"
                 "  %w2 = vec_set %w, %i0, %w1 : tile<8xi32>\n"
                 "  %i16 = const {value=16} : i32\n"
                 "  %o16 = ptr_add %o, %i16 : ptr<i32>\n"
                 "  store_vec %o16, %w2, _\n"
                 "  return\n"
                 "}\n");
  int32_t out[24];
  const struct { int32_t *o; } args = {out};
  code_run(&c, "k", &args);
  static const int32_t want[24] = {0,  9,  18, 27, 4, 13, 22, 31, 4, 5,  6, 7,
                                   12, 13, 14, 15, 0, -1, 0,  -1, 0, -1, 0, -1};
  assert_memory_equal(out, want, sizeof want);
  assert_memory_equal(c.scratch + 24, ((uint8_t[]){0, 1, 0, 1, 0, 1, 0, 1}), 8);
  assert_int_equal(c.image->kernels[0].variants[0].arena_bytes, 256);
  code_free(&c);
}

static void test_atomics(void **state) {
  (void)state;
  static const struct {
    const char *type, *op;
    double start, arg, end;
  } cases[] = {
      {"i32", "add", 5, -7, -2},        {"i64", "add", 5, 7, 12},     {"i8", "add", 100, 27, 127},
      {"i16", "xchg", 3, 9, 9},         {"i32", "max_s", -5, 3, 3},   {"i32", "max_u", -5, 3, -5},
      {"i32", "min_s", -5, 3, -5},      {"i64", "min_u", -5, 3, 3},   {"i32", "and", 12, 10, 8},
      {"i32", "or", 12, 10, 14},        {"i32", "xor", 12, 10, 6},    {"f32", "fadd", 1.5, 2.25, 3.75},
      {"f64", "fadd", 1e300, 1, 1e300}, {"f16", "fadd", 1.5, 2, 3.5}, {"bf16", "fadd", 256, 1, 256},
      {"f32", "fmax", -1, -2, -1},      {"f32", "fmin", -1, -2, -2},  {"bf16", "fmax", -1, 2, 2},
      {"f32", "xchg", 1, 2, 2},         {"f32", "fmax", 1, NAN, NAN}, {"f32", "fmin", 1, NAN, 1},
      {"f32", "fmax", NAN, 5, NAN},     {"f64", "fmin", NAN, 5, 5},   {"f32", "fmin", 0.0, -0.0, -0.0},
  };
  Arena a;
  TEST_ARENA(a);
  for (size_t k = 0; k < DT_COUNTOF(cases); k++) {
    const char *t = cases[k].type;
    Code c;
    code_make(
        &c, NULL,
        arena_printf(&a,
                     HEAD
                     "kernel @one(%%p: ptr<%s>, %%v: %s, %%m: i1, %%o: ptr<%s>) {\n"
                     "  %%old = atomic_rmw %%p, %%v, %%m {rmw=%s, order=acq_rel, scope=sys} : %s\n"
                     "  store %%o, %%old, _\n"
                     "  return\n"
                     "}\n"
                     "kernel @same(%%p: ptr<%s>, %%v: %s, %%m: i1, %%o: ptr<%s>) {\n"
                     "  %%ps = splat %%p : tile<4xptr<%s>>\n"
                     "  %%vs = splat %%v : tile<4x%s>\n"
                     "  %%ms = splat %%m : tile<4xi1>\n"
                     "  %%c2 = const {value=2} : i32\n"
                     "  %%off = const {value=0} : i1\n"
                     "  %%mm = vec_set %%ms, %%c2, %%off : tile<4xi1>\n"
                     "  %%old = atomic_rmw %%ps, %%vs, %%mm {rmw=%s, order=relaxed, scope=gpu} : tile<4x%s>\n"
                     "  store_vec %%o, %%old, _\n"
                     "  return\n"
                     "}\n",
                     t, t, t, cases[k].op, t, t, t, t, t, t, cases[k].op, t));
    IrDtype d = IR_i8;
    for (int i = 0; i < IR_NDTYPES; i++)
      if (!strcmp(ir_dtypes[i].name, t)) d = (IrDtype)i;
    const bool flt = ir_dtypes[d].cls == IR_FLOAT;
    const int n = ir_dtypes[d].bytes;
    const uint64_t top = n == 8 ? UINT64_MAX : (1ull << (8 * n)) - 1;
#define BITS(x) ((flt ? ir_float_bits(d, (x)) : (uint64_t)(int64_t)(x)) & top)
    uint64_t word = BITS(cases[k].start), old[4] = {0};
    uint8_t args[32] = {0};
    const void *p = &word, *o = old;
    const uint64_t v = BITS(cases[k].arg);
    const ImageArg *spec = c.image->kernels[0].variants[0].args;
    memcpy(args + spec[0].offset, &p, 8);
    memcpy(args + spec[1].offset, &v, (size_t)n);
    memcpy(args + spec[3].offset, &o, 8);
    code_run(&c, "one", args); // masked off
    assert_true(word == BITS(cases[k].start) && old[0] == 0);
    args[spec[2].offset] = 1;
    code_run(&c, "one", args);
    if (word != BITS(cases[k].end)) fail_msg("%s %s leaves %llx", t, cases[k].op, (unsigned long long)word);
    assert_true(old[0] == BITS(cases[k].start));
    word = BITS(cases[k].start);
    code_run(&c, "same", args);
    uint64_t lane[4] = {0};
    for (int i = 0; i < 4; i++) memcpy(&lane[i], (char *)old + i * n, (size_t)n);
    assert_true(lane[0] == BITS(cases[k].start) && lane[1] == BITS(cases[k].end) && lane[2] == 0);
    code_free(&c);
  }
  Code c;
  code_make(&c, NULL,
            HEAD "kernel @cas(%p: ptr<i32>, %a: i32, %b: i32, %o: ptr<i32>) {\n"
                 "  %old = atomic_cas %p, %a, %b {order=acq_rel, scope=sys} : i32\n"
                 "  fence {order=seq_cst, scope=sys}\n"
                 "  store %o, %old, _ {order=release, scope=sys}\n"
                 "  return\n"
                 "}\n");
  int32_t word = 5, old = 0;
  struct {
    int32_t *p, a, b, *o;
  } args = {&word, 4, 9, &old};
  code_run(&c, "cas", &args);
  assert_true(word == 5 && old == 5);
  args.a = 5;
  code_run(&c, "cas", &args);
  assert_true(word == 9 && old == 5);
  code_free(&c);
  arena_free(&a);
}

// ---- vectors ------------------------------------------------------------------------------------
static void test_reduce(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  for (int n = 1; n <= 64; n *= 2) {
    Code c;
    code_make(
        &c, NULL,
        arena_printf(
            &a,
            HEAD
            "kernel @k(%%x: ptr<i32>, %%o: ptr<i32>) {\n"
            "  %%v = load_vec %%x, _, _ : tile<%dxi32>\n"
            "  %%c0 = const {value=0} : i32\n"
            "  %%c1 = const {value=1} : i32\n"
            "  %%i = ramp %%c0, %%c1 : tile<%dxi32>\n"
            "  %%k = const {value=3} : i32\n"
            "  %%s = reduce %%v {axis=0} : i32 { (%%p: i32, %%q: i32) %%r = add %%p, %%q : i32 yield %%r }\n"
            "  %%best, %%at = reduce %%v, %%i {axis=0} : i32, i32 { (%%p: i32, %%pi: i32, %%q: i32, %%qi: i32)\n"
            "    %%gt = cmp %%p, %%q {cmp=sgt} : i1\n"
            "    %%eq = cmp %%p, %%q {cmp=eq} : i1\n"
            "    %%lt = cmp %%pi, %%qi {cmp=slt} : i1\n"
            "    %%tie = and %%eq, %%lt : i1\n"
            "    %%first = or %%gt, %%tie : i1\n"
            "    %%m = select %%first, %%p, %%q : i32\n"
            "    %%mi = select %%first, %%pi, %%qi : i32\n"
            "    yield %%m, %%mi\n"
            "  }\n"
            "  %%odd = reduce %%v {axis=0} : i32 { (%%p: i32, %%q: i32)\n" // not elementwise, uses %%k from outside
            "    %%c = cmp %%p, %%q {cmp=slt} : i1\n"
            "    %%r = if %%c : i32 {\n"
            "      %%t = or %%p, %%q : i32\n"
            "      %%u = or %%t, %%k : i32\n"
            "      yield %%u\n"
            "    } {\n"
            "      %%t = or %%q, %%p : i32\n"
            "      %%u = or %%t, %%k : i32\n"
            "      yield %%u\n"
            "    }\n"
            "    yield %%r\n"
            "  }\n"
            "  %%w = reduce %%v {axis=0} : i32 { (%%p: i32, %%q: i32) %%h = and %%p, %%q : i32 %%r = or %%h, %%k : i32 "
            "yield %%r }\n"
            "  store %%o, %%s, _\n"
            "  %%o1 = ptr_add %%o, %%c1 : ptr<i32>\n"
            "  store %%o1, %%best, _\n"
            "  %%o2 = ptr_add %%o1, %%c1 : ptr<i32>\n"
            "  store %%o2, %%at, _\n"
            "  %%o3 = ptr_add %%o2, %%c1 : ptr<i32>\n"
            "  store %%o3, %%odd, _\n"
            "  %%o4 = ptr_add %%o3, %%c1 : ptr<i32>\n"
            "  store %%o4, %%w, _\n"
            "  return\n"
            "}\n",
            n, n));
    int32_t x[64], out[5];
    for (int i = 0; i < 64; i++) x[i] = (i * 37 + 5) % 50 - 20;
    const struct { int32_t *x, *o; } args = {x, out};
    code_run(&c, "k", &args);
    int32_t sum = 0, best = 0, bits = 0, all = -1;
    for (int i = 0; i < n; i++) {
      sum += x[i];
      bits |= x[i];
      all &= x[i];
      if (x[i] > x[best]) best = i;
    }
    assert_int_equal(out[0], sum);
    assert_int_equal(out[1], x[best]);
    assert_int_equal(out[2], best);
    assert_int_equal(out[3], n > 1 ? bits | 3 : x[0]);
    assert_int_equal(out[4], n > 1 ? all | 3 : x[0]);
    code_free(&c);
  }
  arena_free(&a);
}

static void test_scan(void **state) {
  (void)state;
  // Composition of affine maps: associative, not commutative. (a, b) then (c, d) is (a c, b c + d).
  Arena a;
  TEST_ARENA(a);
  for (int reverse = 0; reverse < 2; reverse++)
    for (int branch = 0; branch < 2; branch++)
      for (int n = 1; n <= 32; n *= 2) {
        Code c;
        code_make(
            &c, NULL,
            arena_printf(
                &a,
                HEAD "kernel @k(%%x: ptr<i32>, %%y: ptr<i32>) {\n"
                     "  %%v = load_vec %%x, _, _ : tile<%dxi32>\n"
                     "  %%w = load_vec %%y, _, _ : tile<%dxi32>\n"
                     "  %%yes = const {value=1} : i1\n"
                     "  %%s, %%t = scan %%v, %%w {axis=0, reverse=%s} : tile<%dxi32>, tile<%dxi32> {\n"
                     "    (%%a: i32, %%b: i32, %%c: i32, %%d: i32)\n"
                     "    %%p = mul %%a, %%c : i32\n"
                     "    %%q = mul %%b, %%c : i32\n"
                     "    %%r = add %%q, %%d : i32\n"
                     "    %s\n"
                     "    yield %%p, %%z\n"
                     "  }\n"
                     "  store_vec %%x, %%s, _\n"
                     "  store_vec %%y, %%t, _\n"
                     "  return\n"
                     "}\n",
                n, n, reverse ? "true" : "false", n, n,
                branch ? "%z = if %yes : i32 { yield %r } { yield %d }" : "%z = select %yes, %r, %d : i32"));
        int32_t x[32], y[32], p[32], q[32];
        for (int i = 0; i < 32; i++) {
          p[i] = x[i] = i % 5 - 2;
          q[i] = y[i] = i * 3 - 7;
        }
        const struct { int32_t *x, *y; } args = {x, y};
        code_run(&c, "k", &args);
        for (int k = 1; k < n; k++) {
          const int i = reverse ? n - 1 - k : k, j = reverse ? i + 1 : i - 1;
          const int32_t mul = (int32_t)((uint32_t)p[j] * (uint32_t)p[i]);
          q[i] = (int32_t)((uint32_t)q[j] * (uint32_t)p[i] + (uint32_t)q[i]);
          p[i] = mul;
        }
        assert_memory_equal(x, p, sizeof p);
        assert_memory_equal(y, q, sizeof q);
        code_free(&c);
      }
  arena_free(&a);
}

static void test_lanes(void **state) {
  (void)state;
  static const char *const modes[] = {"idx", "up", "down", "xor"};
  Arena a;
  TEST_ARENA(a);
  for (int mode = 0; mode < 4; mode++)
    for (int lane = 0; lane < 40; lane += 5) {
      Code c;
      code_make(&c, NULL,
                arena_printf(&a,
                             HEAD "kernel @k(%%x: ptr<f32>, %%o: ptr<f32>, %%n: i32, %%b: ptr<i32>) {\n"
                                  "  %%v = load_vec %%x, _, _ : tile<32xf32>\n"
                                  "  %%c = const {value=%d} : i32\n"
                                  "  %%c32 = const {value=32} : i32\n"
                                  "  %%i0 = const {value=0} : i32\n"
                                  "  %%s = shfl %%v, %%c {shfl=%s} : tile<32xf32>\n"
                                  "  %%t = shfl %%v, %%n {shfl=%s} : tile<32xf32>\n"
                                  "  store_vec %%o, %%s, _\n"
                                  "  %%o2 = ptr_add %%o, %%c32 : ptr<f32>\n"
                                  "  store_vec %%o2, %%t, _\n"
                                  "  %%i = ramp %%n, %%n : tile<32xi32>\n"
                                  "  %%g = gather %%v, %%i {axis=0} : tile<32xf32>\n"
                                  "  %%o3 = ptr_add %%o2, %%c32 : ptr<f32>\n"
                                  "  store_vec %%o3, %%g, _\n"
                                  "  %%lim = const {value=3.0} : tile<32xf32>\n"
                                  "  %%m = fcmp %%v, %%lim {fcmp=olt} : tile<32xi1>\n"
                                  "  %%bal = ballot %%m : i32\n"
                                  "  %%act = active_mask : tile<32xi32>\n"
                                  "  %%act0 = vec_get %%act, %%n : i32\n"
                                  "  %%both = xor %%bal, %%act0 : i32\n"
                                  "  store %%b, %%both, _\n"
                                  "  return\n"
                                  "}\n",
                             lane, modes[mode], modes[mode]));
      float x[32], out[96];
      for (int i = 0; i < 32; i++) x[i] = (float)((i * 11) % 32) / 2;
      int32_t bits = 0;
      const struct {
        float *x, *o;
        int64_t n;
        int32_t *b;
      } args = {x, out, lane, &bits};
      code_run(&c, "k", &args);
      uint32_t want = 0;
      for (int i = 0; i < 32; i++) {
        const int from = mode == 0 ? lane : mode == 1 ? i - lane : mode == 2 ? i + lane : i ^ lane;
        const float v = x[from >= 0 && from < 32 ? from : i];
        assert_true(out[i] == v);
        assert_true(out[32 + i] == v);
        const int at = lane + i * lane;
        if (at < 32) assert_true(out[64 + i] == x[at]);
        want |= (uint32_t)(x[i] < 3) << i;
      }
      assert_int_equal((uint32_t)bits, ~want);
      code_free(&c);
    }
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_masked),  cmocka_unit_test(test_buffers),
                                     cmocka_unit_test(test_atomics), cmocka_unit_test(test_reduce),
                                     cmocka_unit_test(test_scan),    cmocka_unit_test(test_lanes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
