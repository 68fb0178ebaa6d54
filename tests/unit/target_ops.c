// target: arithmetic, comparisons and conversions of every type, as vectors and as scalars, bit for bit against C (but for
// which zero is the smaller, and NaNs' payloads).
#include "unit/target_run.h"

// ---- values as raw bits of their type ----------------------------------------------------------------
static uint64_t mask_of(IrDtype d) {
  return ir_dtypes[d].bits == 64 ? UINT64_MAX : (1ull << ir_dtypes[d].bits) - 1;
}
static int64_t sx(IrDtype d, uint64_t b) {
  const int n = 64 - ir_dtypes[d].bits;
  return (int64_t)(b << n) >> n;
}
static bool is_nan(IrDtype d, uint64_t b) {
  const double x = ir_bits_float(d, b);
  return x != x;
}
static uint64_t narrow(IrDtype d, double x) { return ir_float_bits(d, x); } // one rounding

static const uint64_t int_edges[] = {0,
                                     1,
                                     2,
                                     3,
                                     5,
                                     7,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     127,
                                     128,
                                     129,
                                     255,
                                     256,
                                     0x7ffe,
                                     0x7fff,
                                     0x8000,
                                     0x8001,
                                     0xffff,
                                     0x12345678,
                                     0x7fffffff,
                                     0x80000000,
                                     0x80000001,
                                     0xfffffffe,
                                     0xffffffff,
                                     0x100000000,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     (uint64_t)-1,
                                     (uint64_t)-2,
                                     (uint64_t)-3,
                                     (uint64_t)-7,
                                     (uint64_t)-100,
                                     0xdeadbeefcafebabe};
static const double float_edges[] = {0.0,
                                     -0.0,
                                     1,
                                     -1,
                                     0.5,
                                     -0.5,
                                     1.5,
                                     -1.5,
                                     2.5,
                                     3,
                                     -3,
                                     7,
                                     10,
                                     0.1,
                                     -0.1,
                                     100,
                                     1e-3,
                                     126.5,
                                     127,
                                     127.5,
                                     128,
                                     -128,
                                     -128.5,
                                     -129,
                                     240,
                                     447,
                                     448,
                                     464,
                                     465,
                                     500,
                                     57344,
                                     61440,
                                     65504,
                                     65519,
                                     65520,
                                     1e5,
                                     32767.5,
                                     -32768.9,
                                     2147483647.0,
                                     2147483648.0,
                                     -2147483648.0,
                                     -2147483649.0,
                                     4294967295.0,
                                     4294967296.0,
                                     1e10,
                                     -1e10,
                                     9.2233720368547758e18,
                                     -9.2233720368547758e18,
                                     1.8446744073709552e19,
                                     1e30,
                                     -1e30,
                                     3.4028234663852886e38,
                                     3.4e38,
                                     3.4028235677973366e38,
                                     1e39,
                                     1e300,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     0x1p-6,
                                     0x1.1p-6,
                                     0x1.ap-7,
                                     0x1p-9,
                                     0x1p-10,
                                     0x1.8p-10,
                                     0x1p-14,
                                     0x1.8p-14,
                                     0x1p-16,
                                     0x1p-17,
                                     0x1.8p-17,
                                     0x1p-24,
                                     0x1p-25,
                                     0x1.8p-25,
                                     0x1p-126,
                                     0x1p-130,
                                     0x1p-133,
                                     0x1p-149,
                                     0x1.8p-150,
                                     0x1p-1022,
                                     0x1p-1074,
                                     1.00390625,
                                     1.01171875,
                                     1.0009765625,
                                     1.00048828125,
                                     1.000488281250001,
                                     0x1.004p+0,
                                     0x1.0040000000001p+0,
                                     0x1.01p+0,
                                     0x1.0100000000001p+0};

enum { MAX = 16384 };
static uint64_t values_a[MAX], values_b[MAX];
static int count;
// All pairs of edges, then random bits.
static void fill(IrDtype d) {
  Rng r = {(uint64_t)d + 1};
  const bool flt = ir_dtypes[d].cls == IR_FLOAT;
  const int n = flt ? (int)DT_COUNTOF(float_edges) : (int)DT_COUNTOF(int_edges);
  count = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++, count++) {
      values_a[count] = flt ? narrow(d, float_edges[i]) : int_edges[i] & mask_of(d);
      values_b[count] = flt ? narrow(d, float_edges[j]) : int_edges[j] & mask_of(d);
    }
  while (count < MAX) {
    values_a[count] = rng_next(&r) & mask_of(d);
    values_b[count++] = rng_next(&r) & mask_of(d);
  }
}
static void pack(void *to, IrDtype d, const uint64_t *v) {
  for (int i = 0; i < count; i++) memcpy((char *)to + i * ir_dtypes[d].bytes, &v[i], ir_dtypes[d].bytes);
}
static uint64_t unpack(const void *from, IrDtype d, int i) {
  uint64_t b = 0;
  memcpy(&b, (const char *)from + i * ir_dtypes[d].bytes, ir_dtypes[d].bytes);
  return b;
}

// ---- one kernel: o[i] = LINE(a[i], b[i]) in steps of v elements (0: scalars) --------------------------------
static char *kernel(Arena *a, const char *name, const char *in, const char *out, int v, const char *line) {
  char ti[32], to[32];
  snprintf(ti, sizeof ti, v ? "tile<%dx%s>" : "%.0d%s", v, in);
  snprintf(to, sizeof to, v ? "tile<%dx%s>" : "%.0d%s", v, out);
  return arena_printf(a,
                      "kernel @%s(%%x: ptr<%s>, %%y: ptr<%s>, %%o: ptr<%s>, %%n: i32) {\n"
                      "  %%zero = const {value=0} : i32\n"
                      "  %%step = const {value=%d} : i32\n"
                      "  for %%zero, %%n, %%step { (%%i: i32)\n"
                      "    %%px = ptr_add %%x, %%i : ptr<%s>\n"
                      "    %%py = ptr_add %%y, %%i : ptr<%s>\n"
                      "    %%po = ptr_add %%o, %%i : ptr<%s>\n"
                      "    %%a = %s %%px, _, _ : %s\n"
                      "    %%b = %s %%py, _, _ : %s\n"
                      "    %%r = %s : %s\n"
                      "    %s %%po, %%r, _\n"
                      "    yield\n"
                      "  }\n"
                      "  return\n"
                      "}\n",
                      name, in, in, out, v ? v : 1, in, in, out, v ? "load_vec" : "load", ti,
                      v ? "load_vec" : "load", ti, line, to, v ? "store_vec" : "store");
}

typedef uint64_t (*Ref)(IrDtype d, IrDtype to, uint64_t a, uint64_t b);
typedef struct Row {
  const char *line;
  Ref ref;
  const char *out; // NULL: the operands' type
} Row;

static void compare(const char *line, IrDtype in, IrDtype out, int v, const void *got, Ref ref) {
  for (int i = 0; i < count; i++) {
    const uint64_t want = ref(in, out, values_a[i], values_b[i]), have = unpack(got, out, i);
    if (want == have) continue;
    if ((!strncmp(line, "fmin", 4) || !strncmp(line, "fmax", 4)) &&
        want << (64 - ir_dtypes[out].bits) << 1 == 0 && have << (64 - ir_dtypes[out].bits) << 1 == 0)
      continue; // either zero
    if (ir_dtypes[out].cls == IR_FLOAT && is_nan(out, want) && is_nan(out, have)) continue;
    fail_msg("%s on %s, %d lanes: a=%llx b=%llx gives %llx, not %llx", line, ir_dtypes[in].name, v,
             (unsigned long long)values_a[i], (unsigned long long)values_b[i], (unsigned long long)have,
             (unsigned long long)want);
  }
}

static void run_rows(IrDtype in, const Row *rows, int n, const char *cpu) {
  static uint64_t x[MAX], y[MAX], o[MAX];
  const int lanes[] = {0, in == IR_i1 ? 32 : ir_dtypes[in].bits == 8 ? 32 : 256 / ir_dtypes[in].bits};
  Arena a;
  TEST_ARENA(a);
  char *text = arena_strdup(&a, "module stage=placed warps=4 stages=1 lanes=32\n");
  for (int i = 0; i < n; i++)
    for (size_t v = 0; v < DT_COUNTOF(lanes); v++)
      text = arena_printf(&a, "%s%s", text,
                          kernel(&a, arena_printf(&a, "k%d_%d", i, lanes[v]), ir_dtypes[in].name,
                                 rows[i].out ? rows[i].out : ir_dtypes[in].name, lanes[v], rows[i].line));
  Code c;
  code_make(&c, cpu, text);
  if (c.code) {
    fill(in);
    pack(x, in, values_a);
    pack(y, in, values_b);
    for (int i = 0; i < n; i++) {
      IrDtype out = in;
      for (int d = 0; rows[i].out && d < IR_NDTYPES; d++)
        if (!strcmp(ir_dtypes[d].name, rows[i].out)) out = (IrDtype)d;
      for (size_t v = 0; v < DT_COUNTOF(lanes); v++) {
        const struct {
          void *x, *y, *o;
          int32_t n;
        } args = {x, y, o, count};
        memset(o, 0xee, sizeof o);
        code_run(&c, arena_printf(&a, "k%d_%d", i, lanes[v]), &args);
        compare(rows[i].line, in, out, lanes[v], o, rows[i].ref);
      }
    }
  }
  code_free(&c);
  arena_free(&a);
}

// ---- integers -------------------------------------------------------------------------------------
#define INT(name, expr) \
  static uint64_t name(IrDtype d, IrDtype to, uint64_t a, uint64_t b) { \
    const int64_t s = sx(d, a), t = sx(d, b); \
    const uint64_t w = ir_dtypes[d].bits; \
    (void)to, (void)s, (void)t, (void)w; \
    return (uint64_t)(expr)&mask_of(to); \
  }
INT(r_add, a + b)
INT(r_sub, a - b)
INT(r_mul, a *b)
INT(r_div_s, t == 0 ? 0 : t == -1 ? 0 - (uint64_t)s : (uint64_t)(s / t))
INT(r_div_u, b ? a / b : 0)
INT(r_rem_s, t == 0 || t == -1 ? 0 : (uint64_t)(s % t))
INT(r_rem_u, b ? a % b : 0)
INT(r_mulhi_s, (uint64_t)(((__int128)s * t) >> w))
INT(r_mulhi_u, (uint64_t)(((unsigned __int128)a * b) >> w))
INT(r_and, a &b)
INT(r_or, a | b)
INT(r_xor, a ^ b)
INT(r_shl, b >= w ? 0 : a << b)
INT(r_shr_s, (uint64_t)(s >> (b >= w ? w - 1 : b)))
INT(r_shr_u, b >= w ? 0 : a >> b)
INT(r_min_s, s < t ? a : b)
INT(r_max_s, s > t ? a : b)
INT(r_min_u, a < b ? a : b)
INT(r_max_u, a > b ? a : b)
INT(r_abs_s, s < 0 ? 0 - a : a)
INT(r_slt, s < t)
INT(r_sge, s >= t)
INT(r_ugt, a > b)
INT(r_ule, a <= b)
INT(r_eq, a == b)
INT(r_ne, a != b)
INT(r_sle, s <= t)
INT(r_sgt, s > t)
INT(r_ult, a < b)
INT(r_uge, a >= b)
INT(r_ext_s, (uint64_t)s)
INT(r_ext_u, a)

static void test_ints(void **state) {
  (void)state;
  static const Row rows[] = {{"add %a, %b", r_add, NULL},
                             {"sub %a, %b", r_sub, NULL},
                             {"mul %a, %b", r_mul, NULL},
                             {"div_s %a, %b", r_div_s, NULL},
                             {"div_u %a, %b", r_div_u, NULL},
                             {"rem_s %a, %b", r_rem_s, NULL},
                             {"rem_u %a, %b", r_rem_u, NULL},
                             {"mulhi_s %a, %b", r_mulhi_s, NULL},
                             {"mulhi_u %a, %b", r_mulhi_u, NULL},
                             {"and %a, %b", r_and, NULL},
                             {"or %a, %b", r_or, NULL},
                             {"xor %a, %b", r_xor, NULL},
                             {"shl %a, %b", r_shl, NULL},
                             {"shr_s %a, %b", r_shr_s, NULL},
                             {"shr_u %a, %b", r_shr_u, NULL},
                             {"min_s %a, %b", r_min_s, NULL},
                             {"max_s %a, %b", r_max_s, NULL},
                             {"min_u %a, %b", r_min_u, NULL},
                             {"max_u %a, %b", r_max_u, NULL},
                             {"abs_s %a", r_abs_s, NULL},
                             {"cmp %a, %b {cmp=slt}", r_slt, "i1"},
                             {"cmp %a, %b {cmp=sle}", r_sle, "i1"},
                             {"cmp %a, %b {cmp=sgt}", r_sgt, "i1"},
                             {"cmp %a, %b {cmp=sge}", r_sge, "i1"},
                             {"cmp %a, %b {cmp=ult}", r_ult, "i1"},
                             {"cmp %a, %b {cmp=ule}", r_ule, "i1"},
                             {"cmp %a, %b {cmp=ugt}", r_ugt, "i1"},
                             {"cmp %a, %b {cmp=uge}", r_uge, "i1"},
                             {"cmp %a, %b {cmp=eq}", r_eq, "i1"},
                             {"cmp %a, %b {cmp=ne}", r_ne, "i1"}};
  static const IrDtype types[] = {IR_i8, IR_i16, IR_i32, IR_i64};
  for (size_t i = 0; i < DT_COUNTOF(types); i++) run_rows(types[i], rows, DT_COUNTOF(rows), NULL);
  static const Row flags[] = {{"and %a, %b", r_and, NULL},  {"or %a, %b", r_or, NULL},
                              {"xor %a, %b", r_xor, NULL},  {"ext_s %a", r_ext_s, "i32"},
                              {"ext_u %a", r_ext_u, "i64"}, {"cmp %a, %b {cmp=eq}", r_eq, "i1"}};
  run_rows(IR_i1, flags, DT_COUNTOF(flags), NULL);
}

static void test_int_casts(void **state) {
  (void)state;
  static const Row from8[] = {{"ext_s %a", r_ext_s, "i16"},
                              {"ext_u %a", r_ext_u, "i16"},
                              {"ext_s %a", r_ext_s, "i64"},
                              {"ext_u %a", r_ext_u, "i32"},
                              {"trunc %a", r_ext_u, "i1"}};
  static const Row from32[] = {{"ext_s %a", r_ext_s, "i64"},
                               {"ext_u %a", r_ext_u, "i64"},
                               {"trunc %a", r_ext_u, "i16"},
                               {"trunc %a", r_ext_u, "i8"},
                               {"trunc %a", r_ext_u, "i1"}};
  static const Row from64[] = {{"trunc %a", r_ext_u, "i32"}, {"trunc %a", r_ext_u, "i8"}};
  run_rows(IR_i8, from8, DT_COUNTOF(from8), NULL);
  run_rows(IR_i32, from32, DT_COUNTOF(from32), NULL);
  run_rows(IR_i64, from64, DT_COUNTOF(from64), NULL);
}

// ---- floats ---------------------------------------------------------------------------------------
// f64 in double, all others in float and rounded once more.
#define FLT(name, expr) \
  static uint64_t name(IrDtype d, IrDtype to, uint64_t ba, uint64_t bb) { \
    (void)to; \
    if (d == IR_f64) { \
      const double a = ir_bits_float(d, ba), b = ir_bits_float(d, bb); \
      (void)b; \
      return ir_float_bits(d, (expr)); \
    } \
    const float a = (float)ir_bits_float(d, ba), b = (float)ir_bits_float(d, bb); \
    (void)b; \
    return ir_float_bits(d, (double)(float)(expr)); \
  }
#define FCMP(name, expr) \
  static uint64_t name(IrDtype d, IrDtype to, uint64_t ba, uint64_t bb) { \
    const double a = ir_bits_float(d, ba), b = ir_bits_float(d, bb); \
    (void)to; \
    return (expr); \
  }
FLT(r_fadd, a + b)
FLT(r_fsub, a - b)
FLT(r_fmul, a *b)
FLT(r_fdiv, a / b)
FLT(r_frem, fmod(a, b))
FLT(r_fmin, a != a ? b : b != b ? a : a < b ? a : b)
FLT(r_fmax, a != a ? b : b != b ? a : a > b ? a : b)
FLT(r_fmin_nan, a != a ? a : b != b ? b : a < b ? a : b)
FLT(r_fmax_nan, a != a ? a : b != b ? b : a > b ? a : b)
FLT(r_fma, d == IR_f64 ? fma(a, b, a) : (double)fmaf((float)a, (float)b, (float)a))
FCMP(r_oeq, a == b)
FCMP(r_une, a != b)
FCMP(r_olt, a < b)
FCMP(r_ole, a <= b)
FCMP(r_ogt, a > b)
FCMP(r_oge, a >= b)
static uint64_t r_fneg(IrDtype d, IrDtype to, uint64_t a, uint64_t b) {
  (void)to, (void)b;
  return a ^ (1ull << (ir_dtypes[d].bits - 1));
}
static uint64_t r_fabs(IrDtype d, IrDtype to, uint64_t a, uint64_t b) {
  (void)to, (void)b;
  return a & ~(1ull << (ir_dtypes[d].bits - 1));
}
static void test_floats(void **state) {
  (void)state;
  static const Row rows[] = {{"fadd %a, %b", r_fadd, NULL},
                             {"fsub %a, %b", r_fsub, NULL},
                             {"fmul %a, %b", r_fmul, NULL},
                             {"fdiv %a, %b", r_fdiv, NULL},
                             {"fdiv %a, %b {exact=true}", r_fdiv, NULL},
                             {"frem %a, %b", r_frem, NULL},
                             {"fmin %a, %b", r_fmin, NULL},
                             {"fmax %a, %b", r_fmax, NULL},
                             {"fmin %a, %b {nan=true}", r_fmin_nan, NULL},
                             {"fmax %a, %b {nan=true}", r_fmax_nan, NULL},
                             {"fma %a, %b, %a", r_fma, NULL},
                             {"fneg %a", r_fneg, NULL},
                             {"fabs %a", r_fabs, NULL},
                             {"fcmp %a, %b {fcmp=oeq}", r_oeq, "i1"},
                             {"fcmp %a, %b {fcmp=une}", r_une, "i1"},
                             {"fcmp %a, %b {fcmp=olt}", r_olt, "i1"},
                             {"fcmp %a, %b {fcmp=ole}", r_ole, "i1"},
                             {"fcmp %a, %b {fcmp=ogt}", r_ogt, "i1"},
                             {"fcmp %a, %b {fcmp=oge}", r_oge, "i1"}};
  static const IrDtype types[] = {IR_f64, IR_f32, IR_f16, IR_bf16, IR_f8e4m3, IR_f8e5m2};
  for (size_t i = 0; i < DT_COUNTOF(types); i++) run_rows(types[i], rows, DT_COUNTOF(rows), NULL);
}

// ---- conversions ------------------------------------------------------------------------------------
static uint64_t r_fcast(IrDtype d, IrDtype to, uint64_t a, uint64_t b) {
  (void)b;
  return ir_float_bits(to, ir_bits_float(d, a));
}
// Toward zero: the nearest, or its neighbour where that lies beyond.
static uint64_t r_fcast_rtz(IrDtype d, IrDtype to, uint64_t a, uint64_t b) {
  (void)b;
  const double x = ir_bits_float(d, a);
  const uint64_t r = ir_float_bits(to, x);
  const double y = ir_bits_float(to, r);
  return fabs(y) > fabs(x) ? r - 1 : r;
}
static uint64_t r_f2si(IrDtype d, IrDtype to, uint64_t a, uint64_t b) {
  (void)b;
  const double x = ir_bits_float(d, a), top = ldexp(1, ir_dtypes[to].bits - 1);
  if (x != x) return 0;
  if (x >= top) return mask_of(to) >> 1;
  if (x < -top) return (mask_of(to) >> 1) + 1;
  return (uint64_t)(int64_t)x & mask_of(to);
}
static uint64_t r_f2ui(IrDtype d, IrDtype to, uint64_t a, uint64_t b) {
  (void)b;
  const double x = ir_bits_float(d, a), top = ldexp(1, ir_dtypes[to].bits);
  if (!(x > 0)) return 0;
  return x >= top ? mask_of(to) : (uint64_t)x;
}
static double int_in(IrDtype d, IrDtype to, uint64_t a, bool is_signed) {
  if (to == IR_f32) return is_signed ? (double)(float)sx(d, a) : (double)(float)a; // one rounding
  return is_signed ? (double)sx(d, a) : (double)a;
}
static uint64_t r_si2f(IrDtype d, IrDtype to, uint64_t a, uint64_t b) {
  (void)b;
  return ir_float_bits(to, int_in(d, to, a, true));
}
static uint64_t r_ui2f(IrDtype d, IrDtype to, uint64_t a, uint64_t b) {
  (void)b;
  return ir_float_bits(to, int_in(d, to, a, false));
}

static void test_float_casts(void **state) {
  (void)state;
  static const char *const names[] = {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2"};
  static const IrDtype types[] = {IR_f64, IR_f32, IR_f16, IR_bf16, IR_f8e4m3, IR_f8e5m2};
  static const char *const ints[] = {"i8", "i16", "i32", "i64"};
  for (int i = 0; i < 6; i++) {
    Row rows[24];
    int n = 0;
    for (int j = 0; j < 6; j++) {
      if (i == j) continue;
      rows[n++] = (Row){"fcast %a", r_fcast, names[j]};
      if (ir_dtypes[types[j]].bits < ir_dtypes[types[i]].bits)
        rows[n++] = (Row){"fcast %a {round=rtz}", r_fcast_rtz, names[j]};
    }
    for (int j = 0; j < 4; j++) {
      rows[n++] = (Row){"f2si %a", r_f2si, ints[j]};
      rows[n++] = (Row){"f2ui %a", r_f2ui, ints[j]};
    }
    run_rows(types[i], rows, n, NULL);
    run_rows(types[i], rows, n, "x86-64-v4");
  }
  static const IrDtype itypes[] = {IR_i8, IR_i16, IR_i32, IR_i64};
  for (int i = 0; i < 4; i++) {
    Row rows[16];
    int n = 0;
    for (int j = 0; j < 6; j++) {
      rows[n++] = (Row){"si2f %a", r_si2f, names[j]};
      rows[n++] = (Row){"ui2f %a", r_ui2f, names[j]};
    }
    run_rows(itypes[i], rows, n, NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ints), cmocka_unit_test(test_int_casts),
                                     cmocka_unit_test(test_floats), cmocka_unit_test(test_float_casts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
