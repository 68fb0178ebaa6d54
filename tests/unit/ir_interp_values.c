// The interpreter's values: every elementwise op on every dtype against plain C, conversions, shapes, reductions, scans, products.
#include "unit/ir_interp.h"

#include <math.h>

#define HEAD "module stage=tile warps=4 stages=2 lanes=32\n"
enum { N = 256 };

static int bytes_of(const char *dtype) {
  for (int d = 0; d < IR_NDTYPES; d++)
    if (!strcmp(ir_dtypes[d].name, dtype)) return ir_dtypes[d].bytes;
  fail_msg("%s", dtype);
  return 0;
}

// Loads a tile a0, a1, a2 of each of three buffers, runs `body`, which defines %r, and stores it.
static void run_body(Run *r, const char *in, const char *out, const char *body, void *a, void *b, void *c,
                     void *res) {
  char text[4096];
  const char *const names[] = {"a", "b", "c"};
  int n = snprintf(text, sizeof text,
                   HEAD "kernel @k(%%pa: ptr<%s>, %%pb: ptr<%s>, %%pc: ptr<%s>, %%pr: ptr<%s>) {\n"
                        "  %%i = arange {start=0, end=256} : tile<256xi32>\n",
                   in, in, in, out);
  for (int k = 0; k < 3; k++)
    n += snprintf(
        text + n, sizeof text - (size_t)n,
        "  %%s%s = splat %%p%s : tile<256xptr<%s>>\n  %%q%s = ptr_add %%s%s, %%i : tile<256xptr<%s>>\n"
        "  %%%s = load %%q%s, _, _ : tile<256x%s>\n",
        names[k], names[k], in, names[k], names[k], in, names[k], names[k], in);
  snprintf(
      text + n, sizeof text - (size_t)n,
      "%s\n  %%sr = splat %%pr : tile<256xptr<%s>>\n  %%qr = ptr_add %%sr, %%i : tile<256xptr<%s>>\n  store %%qr, %%r, _\n"
      "  return\n}\n",
      body, out, out);
  run_open(r, text, 1);
  void *const p[] = {a, b, c, res};
  InterpArg args[4];
  for (int k = 0; k < 4; k++) {
    const int bytes = k == 3 ? bytes_of(out) : bytes_of(in);
    bool known = false;
    for (int q = 0; q < k; q++) known |= p[q] == p[k];
    if (!known)
      run_memory(r, p[k], (size_t)N * (size_t)bytes, (const char *[]){"a", "b", "c", "r"}[k], 0, -1);
    args[k].p = p[k];
  }
  run_launch(r, 0, "k", 1, args);
  run_ok(r);
}

// ---- integers ----------------------------------------------------------------------------------------------------------
static int64_t sx(uint64_t v, int bits) {
  return bits == 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}
static uint64_t zx(uint64_t v, int bits) { return bits == 64 ? v : v & ((1ull << bits) - 1); }

static uint64_t int_op(const char *op, uint64_t a, uint64_t b, int w) { // a, b: zero-extended
  const int64_t x = sx(a, w), y = sx(b, w);
  if (!strcmp(op, "add")) return a + b;
  if (!strcmp(op, "sub")) return a - b;
  if (!strcmp(op, "mul")) return a * b;
  if (!strcmp(op, "div_s")) return y == 0 ? 0 : y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y);
  if (!strcmp(op, "div_u")) return b ? a / b : 0;
  if (!strcmp(op, "rem_s")) return y == 0 || y == -1 ? 0 : (uint64_t)(x % y);
  if (!strcmp(op, "rem_u")) return b ? a % b : 0;
  if (!strcmp(op, "mulhi_s")) return (uint64_t)((__int128)x * y >> w);
  if (!strcmp(op, "mulhi_u")) return (uint64_t)((unsigned __int128)a * b >> w);
  if (!strcmp(op, "and")) return a & b;
  if (!strcmp(op, "or")) return a | b;
  if (!strcmp(op, "xor")) return a ^ b;
  if (!strcmp(op, "shl")) return b >= (uint64_t)w ? 0 : a << b;
  if (!strcmp(op, "shr_s")) return (uint64_t)(x >> (b >= (uint64_t)w ? (w == 64 ? 63 : w) : (int)b));
  if (!strcmp(op, "shr_u")) return b >= (uint64_t)w ? 0 : a >> b;
  if (!strcmp(op, "min_s")) return x < y ? a : b;
  if (!strcmp(op, "max_s")) return x > y ? a : b;
  if (!strcmp(op, "min_u")) return a < b ? a : b;
  if (!strcmp(op, "max_u")) return a > b ? a : b;
  if (!strcmp(op, "abs_s")) return x < 0 ? 0 - a : a;
  fail_msg("%s", op);
  return 0;
}

static uint64_t get(const void *p, int bytes, int k) {
  uint64_t v = 0;
  memcpy(&v, (const char *)p + (size_t)k * (size_t)bytes, (size_t)bytes);
  return v;
}
static void put(void *p, int bytes, int k, uint64_t v) {
  memcpy((char *)p + (size_t)k * (size_t)bytes, &v, (size_t)bytes);
}

static void fill_ints(void *p, int bytes, int bits, uint64_t seed) {
  Rng g = {seed};
  const uint64_t edges[] = {
      0, 1, UINT64_MAX, 1ull << (bits - 1), (1ull << (bits - 1)) - 1, (uint64_t)bits, (uint64_t)bits - 1,
      2, 3};
  for (int k = 0; k < N; k++) {
    const uint64_t x = rng_next(&g);
    put(p, bytes, k, zx(x % 3 == 0 ? edges[x / 3 % 9] : x % 3 == 1 ? x >> 32 & 15 : x >> 16, bits));
  }
}

static void test_integers(void **state) {
  (void)state;
  static const char *const types[] = {"i1", "i8", "i16", "i32", "i64"};
  static const int bits[] = {1, 8, 16, 32, 64}, bytes[] = {1, 1, 2, 4, 8};
  static const char *const ops[] = {"add",     "sub",     "mul",   "div_s", "div_u", "rem_s", "rem_u",
                                    "mulhi_s", "mulhi_u", "and",   "or",    "xor",   "shl",   "shr_s",
                                    "shr_u",   "min_s",   "max_s", "min_u", "max_u", "abs_s"};
  static uint64_t a[N], b[N], r[N];
  for (int t = 0; t < 5; t++) {
    fill_ints(a, bytes[t], bits[t], 1);
    fill_ints(b, bytes[t], bits[t], 2);
    for (size_t o = 0; o < DT_COUNTOF(ops); o++) {
      char body[200];
      snprintf(body, sizeof body,
               o + 1 == DT_COUNTOF(ops) ? "  %%r = %s %%a : tile<256x%s>"
                                        : "  %%r = %s %%a, %%b : tile<256x%s>",
               ops[o], types[t]);
      Run run;
      run_body(&run, types[t], types[t], body, a, b, b, r);
      for (int k = 0; k < N; k++) {
        const uint64_t x = get(a, bytes[t], k), y = get(b, bytes[t], k), got = get(r, bytes[t], k);
        const uint64_t want = zx(int_op(ops[o], x, y, bits[t]), bits[t]);
        if (got != want)
          fail_msg("%s %s: %llx, %llx gives %llx, not %llx", ops[o], types[t], (unsigned long long)x,
                   (unsigned long long)y, (unsigned long long)got, (unsigned long long)want);
      }
      run_close(&run);
    }
  }
}

static void test_integer_comparisons(void **state) {
  (void)state;
  static const char *const types[] = {"i1", "i8", "i16", "i32", "i64"};
  static const int bits[] = {1, 8, 16, 32, 64}, bytes[] = {1, 1, 2, 4, 8};
  static const char *const cmps[] = {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};
  static uint64_t a[N], b[N], r[N];
  for (int t = 0; t < 5; t++) {
    fill_ints(a, bytes[t], bits[t], 3);
    fill_ints(b, bytes[t], bits[t], 4);
    for (int o = 0; o < 10; o++) {
      char body[200];
      snprintf(body, sizeof body, "  %%r = cmp %%a, %%b {cmp=%s} : tile<256xi1>", cmps[o]);
      Run run;
      run_body(&run, types[t], "i1", body, a, b, b, r);
      for (int k = 0; k < N; k++) {
        const uint64_t x = get(a, bytes[t], k), y = get(b, bytes[t], k);
        const int64_t p = sx(x, bits[t]), q = sx(y, bits[t]);
        const bool want[] = {x == y, x != y, p<q, p <= q, p> q, p >= q, x<y, x <= y, x> y, x >= y};
        if (get(r, 1, k) != want[o])
          fail_msg("cmp %s %s: %llx, %llx", cmps[o], types[t], (unsigned long long)x, (unsigned long long)y);
      }
      run_close(&run);
    }
  }
}

// ---- floats ------------------------------------------------------------------------------------------------------------
static const IrDtype floats[] = {IR_f8e4m3, IR_f8e5m2, IR_f16, IR_bf16, IR_f32, IR_f64};

static void fill_floats(IrDtype d, void *p, uint64_t seed, bool specials) {
  Rng g = {seed};
  const double edges[] = {0.0, -0.0, 1.0, -1.0, 0.5, 1e-3, NAN, INFINITY, -INFINITY, 3.0};
  for (int k = 0; k < N; k++) {
    const uint64_t x = rng_next(&g);
    const double v =
        x % 4 == 0 && specials ? edges[x / 4 % 10] : ldexp(rng_unit(&g) * 2 - 1, (int)(x >> 20) % 6);
    put(p, ir_dtypes[d].bytes, k, ir_float_bits(d, v));
  }
}

// What an op gives in the wider type it computes in.
static double flt_op(const char *op, double a, double b, double c, bool f64) {
#define F(e32, e64) (f64 ? (double)(e64) : (double)(e32))
  const float x = (float)a, y = (float)b, z = (float)c;
  if (!strcmp(op, "fadd")) return F(x + y, a + b);
  if (!strcmp(op, "fsub")) return F(x - y, a - b);
  if (!strcmp(op, "fmul")) return F(x * y, a * b);
  if (!strcmp(op, "fdiv")) return F(x / y, a / b);
  if (!strcmp(op, "frem")) return F(fmodf(x, y), fmod(a, b));
  if (!strcmp(op, "fneg")) return -a;
  if (!strcmp(op, "fabs")) return fabs(a);
  if (!strcmp(op, "fma")) return F(fmaf(x, y, z), fma(a, b, c));
  if (!strcmp(op, "fmin")) return isnan(a) ? b : isnan(b) ? a : a < b ? a : b;
  if (!strcmp(op, "fmax")) return isnan(a) ? b : isnan(b) ? a : a > b ? a : b;
  if (!strcmp(op, "fmin {nan=true}")) return isnan(a) ? a : isnan(b) ? b : a < b ? a : b;
  if (!strcmp(op, "fmax {nan=true}")) return isnan(a) ? a : isnan(b) ? b : a > b ? a : b;
  fail_msg("%s", op);
  return 0;
}

static void test_floats(void **state) {
  (void)state;
  static const char *const ops[] = {
      "fadd", "fsub", "fmul", "fdiv", "frem", "fmin", "fmax", "fmin {nan=true}", "fmax {nan=true}",
      "fneg", "fabs", "fma"};
  static uint64_t a[N], b[N], c[N], r[N];
  for (size_t t = 0; t < DT_COUNTOF(floats); t++) {
    const IrDtype d = floats[t];
    const int bytes = ir_dtypes[d].bytes;
    fill_floats(d, a, 5, true);
    fill_floats(d, b, 6, true);
    fill_floats(d, c, 7, true);
    for (size_t o = 0; o < DT_COUNTOF(ops); o++) {
      char body[200], op[32];
      snprintf(op, sizeof op, "%s", ops[o]);
      char *attr = strchr(op, ' ');
      if (attr) *attr++ = 0;
      const int n = !strcmp(op, "fma") ? 3 : !strcmp(op, "fneg") || !strcmp(op, "fabs") ? 1 : 2;
      snprintf(body, sizeof body, "  %%r = %s %s %s : tile<256x%s>", op,
               n == 3   ? "%a, %b, %c"
               : n == 2 ? "%a, %b"
                        : "%a",
               attr ? attr : "", ir_dtypes[d].name);
      Run run;
      run_body(&run, ir_dtypes[d].name, ir_dtypes[d].name, body, a, b, c, r);
      for (int k = 0; k < N; k++) {
        const double x = ir_bits_float(d, get(a, bytes, k)), y = ir_bits_float(d, get(b, bytes, k)),
                     z = ir_bits_float(d, get(c, bytes, k));
        const double want = ir_bits_float(d, ir_float_bits(d, flt_op(ops[o], x, y, z, d == IR_f64)));
        const double got = ir_bits_float(d, get(r, bytes, k));
        if (!(isnan(want) && isnan(got)) && (got != want || signbit(got) != signbit(want)))
          fail_msg("%s %s: %g, %g, %g gives %g, not %g", ops[o], ir_dtypes[d].name, x, y, z, got, want);
      }
      run_close(&run);
    }
  }
}

static void test_float_comparisons(void **state) {
  (void)state;
  static const char *const cmps[] = {"oeq", "une", "olt", "ole", "ogt", "oge"};
  static uint64_t a[N], b[N], r[N];
  for (size_t t = 0; t < DT_COUNTOF(floats); t++) {
    const IrDtype d = floats[t];
    fill_floats(d, a, 8, true);
    fill_floats(d, b, 9, true);
    for (int o = 0; o < 6; o++) {
      char body[200];
      snprintf(body, sizeof body, "  %%r = fcmp %%a, %%b {fcmp=%s} : tile<256xi1>", cmps[o]);
      Run run;
      run_body(&run, ir_dtypes[d].name, "i1", body, a, b, b, r);
      for (int k = 0; k < N; k++) {
        const double x = ir_bits_float(d, get(a, ir_dtypes[d].bytes, k)),
                     y = ir_bits_float(d, get(b, ir_dtypes[d].bytes, k));
        const bool want[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
        assert_int_equal(get(r, 1, k), want[o]);
      }
      run_close(&run);
    }
  }
}

static void test_math(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double (*f)(double);
  } fns[] = {{"exp", exp},   {"exp2", exp2}, {"log", log},    {"log2", log2}, {"sin", sin},
             {"cos", cos},   {"tanh", tanh}, {"erf", erf},    {"sqrt", sqrt}, {"floor", floor},
             {"ceil", ceil}, {"rint", rint}, {"trunc", trunc}};
  static uint64_t a[N], b[N], r[N];
  for (int t = 0; t < 2; t++) {
    const IrDtype d = t ? IR_f64 : IR_f32;
    fill_floats(d, a, 10, false);
    fill_floats(d, b, 11, false);
    for (size_t o = 0; o < DT_COUNTOF(fns) + 2; o++) {
      const bool pow_ = o == DT_COUNTOF(fns), rs = o == DT_COUNTOF(fns) + 1;
      const char *name = pow_ ? "pow" : rs ? "rsqrt" : fns[o].name;
      char body[200];
      snprintf(body, sizeof body, "  %%r = math %%a, %s {fn=%s} : tile<256x%s>", pow_ ? "%b" : "_", name,
               ir_dtypes[d].name);
      Run run;
      run_body(&run, ir_dtypes[d].name, ir_dtypes[d].name, body, a, b, b, r);
      for (int k = 0; k < N; k++) {
        const double x = ir_bits_float(d, get(a, ir_dtypes[d].bytes, k)),
                     y = ir_bits_float(d, get(b, ir_dtypes[d].bytes, k));
        const double exact = pow_ ? pow(x, y)
                             : rs ? 1 / sqrt(x)
                                  : fns[o].f(x),
                     want = t ? exact : (double)(float)exact,
                     got = ir_bits_float(d, get(r, ir_dtypes[d].bytes, k));
        if (!(isnan(want) && isnan(got)) && got != want &&
            !(fabs(got - want) <= fabs(want) * (t ? 1e-13 : 3e-7) + (t ? 1e-14 : 3e-7)))
          fail_msg("%s(%g, %g) is %g, not %g", name, x, y, got, want);
      }
      run_close(&run);
    }
  }
}

// ---- conversions ---------------------------------------------------------------------------------------------------------
static const IrDtype ints[] = {IR_i1, IR_i8, IR_i16, IR_i32, IR_i64};

static void convert(const char *op, IrDtype from, IrDtype to, void *a, void *r) {
  char body[200];
  snprintf(body, sizeof body, "  %%r = %s %%a : tile<256x%s>", op, ir_dtypes[to].name);
  Run run;
  run_body(&run, ir_dtypes[from].name, ir_dtypes[to].name, body, a, a, a, r);
  run_close(&run);
}

static void test_integer_conversions(void **state) {
  (void)state;
  static uint64_t a[N], r[N];
  for (int f = 0; f < 5; f++) {
    const int fb = ir_dtypes[ints[f]].bits, fs = ir_dtypes[ints[f]].bytes;
    fill_ints(a, fs, fb, 12);
    for (int t = 0; t < 5; t++) {
      const int tb = ir_dtypes[ints[t]].bits, ts = ir_dtypes[ints[t]].bytes;
      if (f == t) continue;
      for (int sign = 0; sign < 2; sign++) {
        convert(t < f ? "trunc" : sign ? "ext_s" : "ext_u", ints[f], ints[t], a, r);
        for (int k = 0; k < N; k++) {
          const uint64_t x = get(a, fs, k), want = zx(t > f && sign ? (uint64_t)sx(x, fb) : x, tb);
          assert_true(get(r, ts, k) == want);
        }
      }
    }
    for (size_t t = 0; t < DT_COUNTOF(floats); t++) {
      const IrDtype d = floats[t];
      for (int sign = 0; sign < 2; sign++) {
        convert(sign ? "si2f" : "ui2f", ints[f], d, a, r);
        for (int k = 0; k < N; k++) {
          const uint64_t x = get(a, fs, k);
          // Exact in long double; one rounding to the type, checked by its neighbours.
          const long double exact = sign ? (long double)sx(x, fb) : (long double)x;
          const double got = ir_bits_float(d, get(r, ir_dtypes[d].bytes, k));
          if (d == IR_f64)
            assert_true(got == (double)exact);
          else if (d == IR_f32)
            assert_true(got == (double)(float)exact);
          else if (fabsl(exact) <= 1ull << 53)
            assert_true(got == ir_bits_float(d, ir_float_bits(d, (double)exact)));
        }
      }
    }
  }
}

static void test_float_to_integer(void **state) {
  (void)state;
  static uint64_t a[N], r[N];
  for (size_t f = 0; f < DT_COUNTOF(floats); f++) {
    const IrDtype d = floats[f];
    fill_floats(d, a, 13, true);
    for (int k = 0; k < 40; k++) { // around the ends of each integer type
      const double edge[] = {127,        128,        -128,          -129,         255,
                             256,        32767.5,    65535,         65536,        -32769,
                             2147483647, 2147483648, -2147483649.0, 4294967295.0, 4294967296.0,
                             0x1p63,     -0x1p63,    0x1p64,        1e30,         -1e30};
      put(a, ir_dtypes[d].bytes, k, ir_float_bits(d, edge[k % 20]));
    }
    for (int t = 0; t < 5; t++) {
      const int bits = ir_dtypes[ints[t]].bits, bytes = ir_dtypes[ints[t]].bytes;
      for (int sign = 0; sign < 2; sign++) {
        convert(sign ? "f2si" : "f2ui", d, ints[t], a, r);
        for (int k = 0; k < N; k++) {
          const double x = ir_bits_float(d, get(a, ir_dtypes[d].bytes, k));
          const long double lo = sign ? -ldexpl(1, bits - 1) : 0,
                            hi = sign ? ldexpl(1, bits - 1) - 1 : ldexpl(1, bits) - 1;
          const long double tr = truncl(x), v = isnan(x) ? 0 : tr < lo ? lo : tr > hi ? hi : tr;
          const uint64_t want = zx(v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v, bits);
          if (get(r, bytes, k) != want)
            fail_msg("%s %s to %s: %g gives %llx, not %llx", sign ? "f2si" : "f2ui", ir_dtypes[d].name,
                     ir_dtypes[ints[t]].name, x, (unsigned long long)get(r, bytes, k),
                     (unsigned long long)want);
        }
      }
    }
  }
}

static void test_float_conversions(void **state) {
  (void)state;
  static uint64_t a[N], r[N], z[N];
  for (size_t f = 0; f < DT_COUNTOF(floats); f++) {
    fill_floats(floats[f], a, 14, true);
    for (size_t t = 0; t < DT_COUNTOF(floats); t++) {
      if (f == t) continue;
      const IrDtype from = floats[f], to = floats[t];
      convert("fcast", from, to, a, r);
      if (ir_dtypes[to].bits < ir_dtypes[from].bits) convert("fcast", from, to, a, z);
      for (int k = 0; k < N; k++) {
        const double x = ir_bits_float(from, get(a, ir_dtypes[from].bytes, k)),
                     got = ir_bits_float(to, get(r, ir_dtypes[to].bytes, k));
        const double want = ir_bits_float(to, ir_float_bits(to, x));
        if (!(isnan(want) && isnan(got)) && (want != got || signbit(want) != signbit(got)))
          fail_msg("%s to %s: %.17g gives %g, not %g", ir_dtypes[from].name, ir_dtypes[to].name, x, got,
                   want);
      }
    }
  }
}

static void test_rounding_toward_zero(void **state) {
  (void)state;
  static uint64_t a[N], r[N];
  const IrDtype to[] = {IR_f16, IR_bf16, IR_f8e4m3, IR_f8e5m2};
  fill_floats(IR_f32, a, 15, true);
  for (int t = 0; t < 4; t++) {
    char body[200];
    snprintf(body, sizeof body, "  %%r = fcast %%a {round=rtz} : tile<256x%s>", ir_dtypes[to[t]].name);
    Run run;
    run_body(&run, "f32", ir_dtypes[to[t]].name, body, a, a, a, r);
    const int bytes = ir_dtypes[to[t]].bytes;
    for (int k = 0; k < N; k++) {
      const double x = ir_bits_float(IR_f32, get(a, 4, k)), y = ir_bits_float(to[t], get(r, bytes, k));
      if (isnan(x)) continue;
      const double next = ir_bits_float(to[t], get(r, bytes, k) + 1); // one code further from zero
      assert_true(fabs(y) <= fabs(x));
      if (isfinite(x) && isfinite(next) && fabs(next) > fabs(y))
        assert_true(fabs(next) > fabs(x) || fabs(y) == fabs(x));
    }
    run_close(&run);
  }
}

// ---- choice, addresses, what is the same everywhere ---------------------------------------------------------------------------
static void test_select_and_uniform(void **state) {
  (void)state;
  static uint64_t a[N], b[N], r[N];
  static const char *const types[] = {"i8", "f16", "f32", "i64"};
  static const int bytes[] = {1, 2, 4, 8};
  for (int t = 0; t < 4; t++) {
    fill_ints(a, bytes[t], bytes[t] * 8, 16);
    fill_ints(b, bytes[t], bytes[t] * 8, 17);
    char body[600];
    snprintf(body, sizeof body,
             "  %%one = const {value=100} : tile<256xi32>\n  %%lo = cmp %%i, %%one {cmp=slt} : tile<256xi1>\n"
             "  %%x = select %%lo, %%a, %%b : tile<256x%s>\n  %%z = const {value=0} : tile<256x%s>\n"
             "  %%two = const {value=200} : tile<256xi32>\n  %%d = cmp %%i, %%two {cmp=slt} : tile<256xi1>\n"
             "  %%r = select %%d, %%x, %%z : tile<256x%s>",
             types[t], types[t], types[t]);
    Run run;
    run_body(&run, types[t], types[t], body, a, b, b, r);
    for (int k = 0; k < N; k++)
      assert_true(get(r, bytes[t], k) == (k < 100 ? get(a, bytes[t], k) : k < 200 ? get(b, bytes[t], k) : 0));
    run_close(&run);
  }
}

// ---- shapes ----------------------------------------------------------------------------------------------------------------
static void test_shapes(void **state) {
  (void)state;
  static int32_t a[N], r[N];
  for (int k = 0; k < N; k++) a[k] = k * 7 + 1;
  Run run;
  // [16 16] transposed; [4 8 8] permuted; join, split; cat; broadcast along either axis.
  run_body(
      &run, "i32", "i32",
      "  %m = reshape %a : tile<16x16xi32>\n  %t = trans %m {perm=[1, 0]} : tile<16x16xi32>\n  %r = reshape %t : tile<256xi32>",
      a, a, a, r);
  for (int k = 0; k < N; k++) assert_int_equal(r[k], a[k % 16 * 16 + k / 16]);
  run_close(&run);
  run_body(
      &run, "i32", "i32",
      "  %m = reshape %a : tile<4x8x8xi32>\n  %t = trans %m {perm=[2, 0, 1]} : tile<8x4x8xi32>\n  %r = reshape %t : tile<256xi32>",
      a, a, a, r);
  for (int k = 0; k < N; k++) assert_int_equal(r[k], a[(k / 8 % 4) * 64 + (k % 8) * 8 + k / 32]);
  run_close(&run);
  run_body(
      &run, "i32", "i32",
      "  %m = reshape %a : tile<128x2xi32>\n  %x, %y = split %m : tile<128xi32>, tile<128xi32>\n  %j = join %y, %x : tile<128x2xi32>\n"
      "  %r = reshape %j : tile<256xi32>",
      a, a, a, r);
  for (int k = 0; k < N; k++) assert_int_equal(r[k], a[k ^ 1]);
  run_close(&run);
  run_body(
      &run, "i32", "i32",
      "  %m = reshape %a : tile<128x2xi32>\n  %x, %y = split %m : tile<128xi32>, tile<128xi32>\n  %r = cat %x, %y : tile<256xi32>",
      a, a, a, r);
  for (int k = 0; k < N; k++) assert_int_equal(r[k], a[k % 128 * 2 + k / 128]);
  run_close(&run);
  run_body(
      &run, "i32", "i32",
      "  %s = arange {start=3, end=19} : tile<16xi32>\n  %u = expand_dims %s {axis=0} : tile<1x16xi32>\n"
      "  %v = expand_dims %s {axis=1} : tile<16x1xi32>\n  %ub = broadcast %u : tile<16x16xi32>\n  %vb = broadcast %v : tile<16x16xi32>\n"
      "  %q = mul %ub, %vb : tile<16x16xi32>\n  %s2 = sub %q, %ub : tile<16x16xi32>\n  %r = reshape %s2 : tile<256xi32>",
      a, a, a, r);
  for (int k = 0; k < N; k++) assert_int_equal(r[k], (k % 16 + 3) * (k / 16 + 3) - (k % 16 + 3));
  run_close(&run);
  run_body(
      &run, "i32", "i32",
      "  %k = const {value=255} : tile<256xi32>\n  %j = sub %k, %i : tile<256xi32>\n  %r = gather %a, %j {axis=0} : tile<256xi32>",
      a, a, a, r);
  for (int k = 0; k < N; k++) assert_int_equal(r[k], a[255 - k]);
  run_close(&run);
  run_body(
      &run, "i32", "i32",
      "  %m = reshape %a : tile<16x16xi32>\n  %s = arange {start=1, end=17} : tile<16xi32>\n  %u = expand_dims %s {axis=0} : tile<1x16xi32>\n"
      "  %ub = broadcast %u : tile<16x16xi32>\n  %f = const {value=15} : tile<16x16xi32>\n  %ix = and %ub, %f : tile<16x16xi32>\n"
      "  %g = gather %m, %ix {axis=1} : tile<16x16xi32>\n  %r = reshape %g : tile<256xi32>",
      a, a, a, r);
  for (int k = 0; k < N; k++) assert_int_equal(r[k], a[k / 16 * 16 + (k % 16 + 1) % 16]);
  run_close(&run);
  for (int k = 0; k < N; k++) a[k] = k * k % 300 - 20;
  run_body(&run, "i32", "i32", "  %r = histogram %a, _ : tile<256xi32>", a, a, a, r);
  int32_t want[N] = {0};
  for (int k = 0; k < N; k++)
    if (a[k] >= 0 && a[k] < N) want[a[k]]++;
  for (int k = 0; k < N; k++) assert_int_equal(r[k], want[k]);
  run_close(&run);
}

// ---- reductions, scans --------------------------------------------------------------------------------------------------------
static void test_reductions(void **state) {
  (void)state;
  static float a[N], r[N];
  Rng g = {18};
  for (int k = 0; k < N; k++) a[k] = (float)(rng_unit(&g) - 0.5);
  Run run;
  for (int axis = 0; axis < 2; axis++) {
    char body[900];
    // The sum (one op), and a maximum written with comparison and choice (any body).
    snprintf(
        body, sizeof body,
        "  %%m = reshape %%a : tile<8x32xf32>\n"
        "  %%s = reduce %%m {axis=%d} : tile<%dxf32> { (%%x: f32, %%y: f32) %%z = fadd %%x, %%y : f32\n yield %%z }\n"
        "  %%e = expand_dims %%s {axis=%d} : tile<%sxf32>\n  %%b1 = broadcast %%e : tile<8x32xf32>\n"
        "  %%h = reduce %%m {axis=%d} : tile<%dxf32> { (%%x2: f32, %%y2: f32) %%c2 = fcmp %%x2, %%y2 {fcmp=ogt} : i1\n"
        "    %%z2 = select %%c2, %%x2, %%y2 : f32\n yield %%z2 }\n"
        "  %%e2 = expand_dims %%h {axis=%d} : tile<%sxf32>\n  %%b2 = broadcast %%e2 : tile<8x32xf32>\n"
        "  %%t = fmul %%b1, %%b2 : tile<8x32xf32>\n  %%r = reshape %%t : tile<256xf32>",
        axis, axis ? 8 : 32, axis, axis ? "8x1" : "1x32", axis, axis ? 8 : 32, axis, axis ? "8x1" : "1x32");
    run_body(&run, "f32", "f32", body, a, a, a, r);
    for (int k = 0; k < N; k++) {
      double sum = 0, most = -1;
      for (int q = 0; q < (axis ? 32 : 8); q++) {
        const float v = axis ? a[k / 32 * 32 + q] : a[q * 32 + k % 32];
        sum += v;
        if (v > most) most = v;
      }
      assert_true(fabs(r[k] - sum * most) < 1e-5);
    }
    run_close(&run);
  }
  // Largest element and its place, by branches; a program scalar captured from outside the region.
  run_body(
      &run, "f32", "f32",
      "  %one = const {value=1} : i32\n"
      "  %m, %at = reduce %a, %i {axis=0} : f32, i32 { (%x: f32, %xi: i32, %y: f32, %yi: i32)\n"
      "    %gt = fcmp %x, %y {fcmp=ogt} : i1\n"
      "    %v, %w = if %gt : f32, i32 { yield %x, %xi } { %n = add %yi, %one : i32\n %p = sub %n, %one : i32\n yield %y, %p }\n"
      "    yield %v, %w }\n"
      "  %ms = splat %m : tile<256xf32>\n  %as = splat %at : tile<256xi32>\n  %eq = cmp %i, %as {cmp=eq} : tile<256xi1>\n"
      "  %zero = const {value=0.0} : tile<256xf32>\n  %r = select %eq, %ms, %zero : tile<256xf32>",
      a, a, a, r);
  int best = 0;
  for (int k = 1; k < N; k++)
    if (a[k] > a[best]) best = k;
  for (int k = 0; k < N; k++) assert_true(r[k] == (k == best ? a[best] : 0));
  run_close(&run);
}

static void test_odd_reductions(void **state) {
  (void)state;
  static uint16_t a[N], r[N];
  for (int k = 0; k < N; k++) a[k] = f16_from_f32((float)(k % 5));
  Run run; // f16 sums round at each step; small whole numbers stay exact
  run_body(
      &run, "f16", "f16",
      "  %s = reduce %a {axis=0} : f16 { (%x: f16, %y: f16) %z = fadd %x, %y : f16\n yield %z }\n  %r = splat %s : tile<256xf16>",
      a, a, a, r);
  int want = 0;
  for (int k = 0; k < N; k++) want += k % 5;
  assert_true(f16_to_f32(r[77]) == (float)want);
  run_close(&run);
}

static void test_scans(void **state) {
  (void)state;
  static int32_t a[N], r[N];
  for (int k = 0; k < N; k++) a[k] = k * 37 % 101 - 50;
  Run run;
  for (int rev = 0; rev < 2; rev++) {
    for (int form = 0; form < 3; form++) { // flat; along axis 0; along axis 1 with a body that is not one op
      char body[700];
      const char *add = "{ (%x: i32, %y: i32) %z = add %x, %y : i32\n yield %z }";
      const char *odd =
          "{ (%x: i32, %y: i32) %two = const {value=2} : i32\n %t = mul %x, %two : i32\n %z = add %t, %y : i32\n"
          " %d = sub %z, %x : i32\n yield %d }";
      snprintf(
          body, sizeof body,
          form
              ? "  %%m = reshape %%a : tile<16x16xi32>\n  %%s = scan %%m {axis=%d, reverse=%s} : tile<16x16xi32> %s\n"
                "  %%r = reshape %%s : tile<256xi32>"
              : "  %%m = reshape %%a : tile<256xi32>\n  %%r = scan %%m {axis=%d, reverse=%s} : tile<256xi32> %s",
          form == 2, rev ? "true" : "false", form == 2 ? odd : add);
      run_body(&run, "i32", "i32", body, a, a, a, r);
      for (int k = 0; k < N; k++) {
        int32_t want = 0;
        const int step = form == 1 ? 16 : 1, n = form ? 16 : 256,
                  at = form == 1   ? k / 16
                       : form == 2 ? k % 16
                                   : k,
                  base = k - at * step;
        for (int q = rev ? at : 0; q <= (rev ? n - 1 : at); q++) want += a[base + q * step];
        assert_int_equal(r[k], want);
      }
      run_close(&run);
    }
  }
}

// ---- products --------------------------------------------------------------------------------------------------------------------
static void test_dot(void **state) {
  (void)state;
  static const struct {
    IrDtype ab, c;
    const char *an, *cn;
  } kinds[] = {{IR_f32, IR_f32, "f32", "f32"},       {IR_f16, IR_f32, "f16", "f32"},
               {IR_bf16, IR_f32, "bf16", "f32"},     {IR_f16, IR_f16, "f16", "f16"},
               {IR_f8e4m3, IR_f32, "f8e4m3", "f32"}, {IR_f64, IR_f64, "f64", "f64"},
               {IR_i8, IR_i32, "i8", "i32"}};
  static uint64_t a[N], b[N], c[N];
  for (size_t t = 0; t < DT_COUNTOF(kinds); t++) {
    const IrDtype ab = kinds[t].ab, cd = kinds[t].c;
    const int es = ir_dtypes[ab].bytes, cs = ir_dtypes[cd].bytes;
    double fa[N], fb[N];
    Rng g = {19 + t};
    for (int k = 0; k < N; k++) {
      for (int q = 0; q < 2; q++) {
        const double v = ab == IR_i8 ? (double)(int64_t)(rng_next(&g) % 255) - 127 : rng_unit(&g) - 0.5;
        const uint64_t bits = ab == IR_i8 ? (uint64_t)(int64_t)v : ir_float_bits(ab, v);
        put(q ? b : a, es, k, bits);
        (q ? fb : fa)[k] = ab == IR_i8 ? v : ir_bits_float(ab, bits);
      }
    }
    char text[3000];
    snprintf(
        text, sizeof text,
        HEAD
        "kernel @k(%%pa: ptr<%s>, %%pb: ptr<%s>, %%pc: ptr<%s>) {\n  %%i = arange {start=0, end=256} : tile<256xi32>\n"
        "  %%sa = splat %%pa : tile<256xptr<%s>>\n  %%qa = ptr_add %%sa, %%i : tile<256xptr<%s>>\n  %%la = load %%qa, _, _ : tile<256x%s>\n"
        "  %%sb = splat %%pb : tile<256xptr<%s>>\n  %%qb = ptr_add %%sb, %%i : tile<256xptr<%s>>\n  %%lb = load %%qb, _, _ : tile<256x%s>\n"
        "  %%ma = reshape %%la : tile<8x32x%s>\n  %%mb = reshape %%lb : tile<32x8x%s>\n  %%z = const {value=%s} : tile<8x8x%s>\n"
        "  %%d = dot %%ma, %%mb, %%z : tile<8x8x%s>\n  %%i64_ = arange {start=0, end=64} : tile<64xi32>\n"
        "  %%r = reshape %%d : tile<64x%s>\n  %%sc = splat %%pc : tile<64xptr<%s>>\n  %%qc = ptr_add %%sc, %%i64_ : tile<64xptr<%s>>\n"
        "  store %%qc, %%r, _\n  return\n}\n",
        kinds[t].an, kinds[t].an, kinds[t].cn, kinds[t].an, kinds[t].an, kinds[t].an, kinds[t].an,
        kinds[t].an, kinds[t].an, kinds[t].an, kinds[t].an, cd == IR_i32 ? "3" : "3.0", kinds[t].cn,
        kinds[t].cn, kinds[t].cn, kinds[t].cn, kinds[t].cn);
    Run run;
    run_open(&run, text, 1);
    run_memory(&run, a, sizeof a, "a", 0, -1);
    run_memory(&run, b, sizeof b, "b", 0, -1);
    run_memory(&run, c, sizeof c, "c", 0, -1);
    run_launch(&run, 0, "k", 1, (InterpArg[]){{.p = a}, {.p = b}, {.p = c}});
    run_ok(&run);
    for (int m = 0; m < 8; m++) {
      for (int n = 0; n < 8; n++) {
        double want = 3;
        for (int k = 0; k < 32; k++) want += fa[m * 32 + k] * fb[k * 8 + n];
        const uint64_t bits = get(c, cs, m * 8 + n);
        const double got = cd == IR_i32 ? (double)(int32_t)bits : ir_bits_float(cd, bits);
        const double eps = cd == IR_i32 ? 0 : cd == IR_f64 ? 1e-13 : cd == IR_f16 ? 4e-3 : 1e-5;
        if (!(fabs(got - want) <= eps)) fail_msg("dot %s: %g, not %g", kinds[t].an, got, want);
      }
    }
    run_close(&run);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers),
                                     cmocka_unit_test(test_integer_comparisons),
                                     cmocka_unit_test(test_floats),
                                     cmocka_unit_test(test_float_comparisons),
                                     cmocka_unit_test(test_math),
                                     cmocka_unit_test(test_integer_conversions),
                                     cmocka_unit_test(test_float_to_integer),
                                     cmocka_unit_test(test_float_conversions),
                                     cmocka_unit_test(test_rounding_toward_zero),
                                     cmocka_unit_test(test_select_and_uniform),
                                     cmocka_unit_test(test_shapes),
                                     cmocka_unit_test(test_reductions),
                                     cmocka_unit_test(test_odd_reductions),
                                     cmocka_unit_test(test_scans),
                                     cmocka_unit_test(test_dot)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
