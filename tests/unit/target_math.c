// target: every function of math.def against libm in double precision (f32) and long double precision (f64), over the
// whole range of arguments, edges included.
#include "unit/target_run.h"

#include <float.h>

// kernel @FN_f32(x, y, out, n): n a multiple of 8
static char *kernels(Arena *a) {
  static const struct {
    const char *name;
    int arity;
  } fns[] = {
#define MATH(name, arity, text) {#name, arity},
#include "ir/math.def"
#undef MATH
  };
  char *s = arena_strdup(a, "module stage=placed warps=4 stages=1 lanes=32\n");
  for (size_t i = 0; i < DT_COUNTOF(fns); i++)
    for (int wide = 0; wide < 2; wide++) {
      const char *t = wide ? "f64" : "f32", *n = fns[i].name;
      const int v = wide ? 4 : 8;
      s = arena_printf(a,
                       "%skernel @%s_%s(%%x: ptr<%s>, %%y: ptr<%s>, %%o: ptr<%s>, %%n: i32) {\n"
                       "  %%c0 = const {value=0} : i32\n"
                       "  %%cv = const {value=%d} : i32\n"
                       "  for %%c0, %%n, %%cv { (%%i: i32)\n"
                       "    %%px = ptr_add %%x, %%i : ptr<%s>\n"
                       "    %%py = ptr_add %%y, %%i : ptr<%s>\n"
                       "    %%po = ptr_add %%o, %%i : ptr<%s>\n"
                       "    %%vx = load_vec %%px, _, _ : tile<%dx%s>\n"
                       "    %%vy = load_vec %%py, _, _ : tile<%dx%s>\n"
                       "    %%vo = math %%vx, %s {fn=%s} : tile<%dx%s>\n"
                       "    store_vec %%po, %%vo, _\n"
                       "    yield\n"
                       "  }\n"
                       "  return\n"
                       "}\n",
                       s, n, t, t, t, t, v, t, t, t, v, t, v, t, fns[i].arity == 2 ? "%vy" : "_", n, v, t);
    }
  return s;
}

static Code code;
static int setup(void **state) {
  (void)state;
  Arena a;
  Escape e;
  arena_init(&a, 0, &e);
  if (ESCAPE_TRY(&e)) return 1;
  code_make(&code, NULL, kernels(&a));
  arena_free(&a);
  return 0;
}
static int teardown(void **state) {
  (void)state;
  code_free(&code);
  return 0;
}

static double rsqrt(double x) { return 1 / sqrt(x); }
static long double rsqrtl_(long double x) { return 1 / sqrtl(x); }
typedef struct Fn {
  const char *name;
  double (*f)(double);
  long double (*fl)(long double);
  double ulps;  // f32
  double rel64; // f64
} Fn;
static const Fn fns[] = {
    {"exp", exp, expl, 1.1, 1e-15},       {"exp2", exp2, exp2l, 1.1, 1e-15},
    {"log", log, logl, 1.1, 1e-15},       {"log2", log2, log2l, 1.1, 1e-15},
    {"sin", sin, sinl, 1.5, 1e-15},       {"cos", cos, cosl, 1.5, 1e-15},
    {"tanh", tanh, tanhl, 2, 2e-15},      {"erf", erf, erfl, 2, 2e-15},
    {"sqrt", sqrt, sqrtl, 0.5001, 2e-16}, {"rsqrt", rsqrt, rsqrtl_, 1.5, 4e-16},
    {"floor", floor, floorl, 0, 0},       {"ceil", ceil, ceill, 0, 0},
    {"rint", rint, rintl, 0, 0},          {"trunc", trunc, truncl, 0, 0},
};

static double ulp_f32(double ref) {
  const float f = fabsf((float)ref);
  if (f < FLT_MIN) return (double)FLT_TRUE_MIN;
  int e;
  frexp((double)f, &e);
  return ldexp(1, e - 24);
}
// Distance of got from ref in units in the last place of f32; infinite where kinds differ.
static double error_f32(float got, double ref) {
  const float near = (float)ref;
  if (ref != ref) return got != got ? 0 : INFINITY;
  if (got != got) return INFINITY;
  if (isinf(near) || isinf(got)) {
    if (got == near) return 0;
    return isinf(got) != isinf(near) && fabs(ref) > FLT_MAX * (1 - 1e-6) && (got < 0) == (ref < 0) ? 1
                                                                                                   : INFINITY;
  }
  if (ref == 0 && got == 0) return signbit(got) == signbit((float)ref) ? 0 : INFINITY;
  return fabs((double)got - ref) / ulp_f32(ref);
}

static void run(const char *name, const char *type, const void *x, const void *y, void *o, int n) {
  char full[32];
  snprintf(full, sizeof full, "%s_%s", name, type);
  const struct {
    const void *x, *y;
    void *o;
    int32_t n;
  } args = {x, y, o, n};
  code_run(&code, full, &args);
}

enum { BATCH = 4096 };
static void sweep_f32(void **state) {
  (void)state;
  const char *all = getenv("DITRON_TEST_SWEEP"); // 1: every f32 there is
  const uint64_t step = all ? 1 : 4099;
  for (size_t k = 0; k < DT_COUNTOF(fns); k++) {
    double worst = 0;
    float at = 0;
    float x[BATCH], o[BATCH];
    for (uint64_t u = 0; u < 1ull << 32; u += step * BATCH) {
      for (int i = 0; i < BATCH; i++) {
        const uint32_t bits = (uint32_t)(u + step * (uint64_t)i);
        memcpy(&x[i], &bits, 4);
      }
      run(fns[k].name, "f32", x, x, o, BATCH);
      for (int i = 0; i < BATCH; i++) {
        const double e = error_f32(o[i], fns[k].f((double)x[i]));
        if (e > worst) {
          worst = e;
          at = x[i];
        }
      }
    }
    print_message("%-6s f32: %.3f ulp at %a\n", fns[k].name, worst, (double)at);
    if (!(worst <= fns[k].ulps))
      fail_msg("%s(%a): %g ulp, allowed %g", fns[k].name, (double)at, worst, fns[k].ulps);
  }
}

static double rel_f64(double got, long double ref) {
  const double near = (double)ref;
  if (ref != ref) return got != got ? 0 : INFINITY;
  if (got == near) return ref == 0 && signbit(got) != signbit(near) ? INFINITY : 0;
  if (got != got || isinf(got) || isinf(near))
    return fabsl(ref) > DBL_MAX * (1 - 1e-12L) && got > 0 ? 0 : INFINITY;
  if (fabsl(ref) < DBL_MIN) return (double)fabsl(got - ref) <= 2 * DBL_TRUE_MIN ? 0 : INFINITY;
  return (double)(fabsl((long double)got - ref) / fabsl(ref));
}
static double random_f64(Rng *r, int spread) { // exponents within spread of 0, both signs
  const double m = 1 + rng_unit(r);
  const int e = (int)(rng_next(r) % (uint64_t)(2 * spread + 1)) - spread;
  return ldexp(rng_next(r) & 1 ? -m : m, e);
}
static const double edges[] = {0.0,
                               -0.0,
                               1,
                               -1,
                               INFINITY,
                               -INFINITY,
                               NAN,
                               DBL_MIN,
                               -DBL_MIN,
                               DBL_TRUE_MIN,
                               DBL_MAX,
                               -DBL_MAX,
                               0.5,
                               -0.5,
                               2,
                               -2,
                               1.5,
                               2.5,
                               -2.5,
                               3,
                               -3,
                               709.78,
                               -745.1,
                               -708.4,
                               1024,
                               -1074,
                               -1075,
                               0.625,
                               0x1.921fb54442d18p+0,
                               0x1.921fb54442d18p+1,
                               1e22,
                               0x1p52,
                               0x1p53 - 1};

static void sweep_f64(void **state) {
  (void)state;
  Rng r = {7};
  for (size_t k = 0; k < DT_COUNTOF(fns); k++) {
    double worst = 0, at = 0;
    for (int round = 0; round < 60; round++) {
      double x[BATCH], o[BATCH];
      for (int i = 0; i < BATCH; i++) {
        if (!round && i < (int)DT_COUNTOF(edges))
          x[i] = edges[i];
        else
          x[i] = random_f64(&r, round % 3 == 0 ? 1020 : round % 3 == 1 ? 9 : 30);
      }
      run(fns[k].name, "f64", x, x, o, BATCH);
      for (int i = 0; i < BATCH; i++) {
        const double e = rel_f64(o[i], fns[k].fl((long double)x[i]));
        if (e > worst) {
          worst = e;
          at = x[i];
        }
      }
    }
    print_message("%-6s f64: %.3g at %a\n", fns[k].name, worst, at);
    if (!(worst <= fns[k].rel64)) fail_msg("%s(%a): %g, allowed %g", fns[k].name, at, worst, fns[k].rel64);
  }
}

static void sweep_pow(void **state) {
  (void)state;
  Rng r = {11};
  double worst32 = 0, worst64 = 0;
  const int nedges = (int)DT_COUNTOF(edges);
  for (int round = 0; round < 80; round++) {
    double x[BATCH], y[BATCH], o[BATCH];
    float xf[BATCH], yf[BATCH], of[BATCH];
    for (int i = 0; i < BATCH; i++) {
      x[i] = random_f64(&r, round % 2 ? 100 : 4);
      if (rng_next(&r) & 1) x[i] = fabs(x[i]);
      y[i] =
          rng_next(&r) % 3 ? random_f64(&r, round % 2 ? 3 : 8) : (double)(int64_t)(rng_next(&r) % 200) - 100;
      if (!round && i < nedges * nedges) {
        x[i] = edges[i / nedges];
        y[i] = edges[i % nedges];
      }
      xf[i] = (float)x[i];
      yf[i] = (float)y[i];
    }
    run("pow", "f64", x, y, o, BATCH);
    run("pow", "f32", xf, yf, of, BATCH);
    for (int i = 0; i < BATCH; i++) {
      const double e = rel_f64(o[i], powl((long double)x[i], (long double)y[i]));
      const double ef = error_f32(of[i], pow((double)xf[i], (double)yf[i]));
      if (!(e <= 1e-14)) fail_msg("pow(%a, %a) is %a: %g", x[i], y[i], o[i], e);
      if (!(ef <= 1)) fail_msg("powf(%a, %a) is %a: %g ulp", (double)xf[i], (double)yf[i], (double)of[i], ef);
      if (e > worst64) worst64 = e;
      if (ef > worst32) worst32 = ef;
    }
  }
  print_message("pow    f32: %.3f ulp, f64: %.3g\n", worst32, worst64);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sweep_f32), cmocka_unit_test(sweep_f64),
                                     cmocka_unit_test(sweep_pow)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
