// target: products on buffers, for all element types and awkward shapes, against f64 sums. `target_dot bench` times them.
#include "unit/target_run.h"

#include <time.h>

typedef struct Case {
  int m, n, k;
  const char *c, *a, *b;
} Case;

static int bytes_of(const char *t) {
  for (int d = 0; d < IR_NDTYPES; d++)
    if (!strcmp(ir_dtypes[d].name, t)) return ir_dtypes[d].bytes;
  return 0;
}
static IrDtype dtype_of(const char *t) {
  for (int d = 0; d < IR_NDTYPES; d++)
    if (!strcmp(ir_dtypes[d].name, t)) return (IrDtype)d;
  return IR_NDTYPES;
}
static uint64_t at_b(const Case *s) { return bits_round_up((uint64_t)(s->m * s->n * bytes_of(s->c)), 64); }
static uint64_t at_a(const Case *s) {
  return at_b(s) + bits_round_up((uint64_t)(s->k * s->n * bytes_of(s->b)), 64);
}

static void make(Code *code, const Case *s, const char *cpu) {
  char text[1024];
  snprintf(text, sizeof text,
           "module stage=placed warps=4 stages=1 lanes=32\n"
           "kernel @dot() {\n"
           "  %%c = mem_alloc {offset=0} : memdesc<%dx%dx%s, scratch>\n"
           "  %%b = mem_alloc {offset=%d} : memdesc<%dx%dx%s, scratch>\n"
           "  %%a = mem_alloc {offset=%d} : memdesc<%dx%dx%s, scratch>\n"
           "  dot_mem %%c, %%a, %%b\n"
           "  return\n"
           "}\n",
           s->m, s->n, s->c, (int)at_b(s), s->k, s->n, s->b, (int)at_a(s), s->m, s->k, s->a);
  code_make(code, cpu, text);
}

static void put(char *p, IrDtype d, int64_t i, double x) {
  const int n = ir_dtypes[d].bytes;
  const uint64_t bits = ir_dtypes[d].cls == IR_FLOAT ? ir_float_bits(d, x) : (uint64_t)(int64_t)x;
  memcpy(p + i * n, &bits, (size_t)n);
}
static double get(const char *p, IrDtype d, int64_t i) {
  const int n = ir_dtypes[d].bytes;
  uint64_t bits = 0;
  memcpy(&bits, p + i * n, (size_t)n);
  if (ir_dtypes[d].cls == IR_FLOAT) return ir_bits_float(d, bits);
  return (double)((int64_t)(bits << (64 - 8 * n)) >> (64 - 8 * n));
}

static void check(const Case *s, const char *cpu) {
  Code code;
  make(&code, s, cpu);
  if (!code.code) { // made for a machine that this one is not
    code_free(&code);
    return;
  }
  const IrDtype cd = dtype_of(s->c), ad = dtype_of(s->a), bd = dtype_of(s->b);
  char *c = code.scratch, *b = c + at_b(s), *a = c + at_a(s);
  const bool ints = ir_dtypes[cd].cls == IR_INT;
  Rng r = {3};
  double *want = calloc((size_t)(s->m * s->n), sizeof *want),
         *size = calloc((size_t)(s->m * s->n), sizeof *size);
#define FILL(p, d, count) \
  for (int i = 0; i < (count); i++) \
  put(p, d, i, ints ? (double)((int64_t)(rng_next(&r) % 256) - 128) : 2 * rng_unit(&r) - 1)
  FILL(c, cd, s->m * s->n);
  FILL(a, ad, s->m * s->k);
  FILL(b, bd, s->k * s->n);
  for (int i = 0; i < s->m; i++)
    for (int j = 0; j < s->n; j++) {
      double sum = get(c, cd, i * s->n + j), mag = fabs(sum);
      for (int k = 0; k < s->k; k++) {
        const double x = get(a, ad, i * s->k + k) * get(b, bd, k * s->n + j);
        sum += x;
        mag += fabs(x);
      }
      want[i * s->n + j] = sum;
      size[i * s->n + j] = mag;
    }
  for (uint64_t i = at_a(s) + (uint64_t)(s->m * s->k * bytes_of(s->a));
       i < code.image->kernels[0].variants[0].arena_bytes; i++)
    c[i] = (char)0xff; // scratch holds NaNs
  code_run(&code, "dot", NULL);
  const double eps = ints           ? 0
                     : cd == IR_f64 ? 0x1p-49
                     : cd == IR_f32 ? 0x1p-22
                     : cd == IR_f16 ? 0x1p-10
                                    : 0x1p-7;
  for (int i = 0; i < s->m * s->n; i++) {
    const double got = get(c, cd, i);
    if (!(fabs(got - want[i]) <= eps * size[i]))
      fail_msg("%dx%dx%d %s += %s * %s: element %d is %g, not %g", s->m, s->n, s->k, s->c, s->a, s->b, i, got,
               want[i]);
  }
  free(want);
  free(size);
  code_free(&code);
}

static void test_shapes(void **state) {
  (void)state;
  static const int dims[][3] = {{16, 16, 16},   {1, 1, 1},    {1, 8, 2},   {2, 2, 64},   {4, 64, 1},
                                {16, 32, 16},   {32, 16, 64}, {64, 64, 8}, {128, 16, 4}, {16, 128, 32},
                                {128, 128, 32}, {8, 512, 16}, {64, 4, 128}};
  for (size_t i = 0; i < DT_COUNTOF(dims); i++) {
    const Case s = {dims[i][0], dims[i][1], dims[i][2], "f32", "f32", "f32"};
    check(&s, NULL);
    check(&s, "x86-64-v3");
    check(&s, "x86-64-v4");
  }
}
static void test_types(void **state) {
  (void)state;
  static const char *const types[][3] = {
      {"f64", "f64", "f64"},       {"f32", "bf16", "bf16"},     {"f32", "f16", "f16"}, {"f16", "f16", "f16"},
      {"bf16", "bf16", "bf16"},    {"f32", "f8e4m3", "f8e5m2"}, {"i32", "i8", "i8"},   {"i32", "i16", "i16"},
      {"i32", "i32", "i32"},       {"i64", "i64", "i64"},       {"i64", "i8", "i8"},   {"f64", "f32", "f32"},
      {"f32", "f8e5m2", "f8e5m2"}, {"f32", "bf16", "f32"},
  };
  for (size_t i = 0; i < DT_COUNTOF(types); i++) {
    const Case s = {32, 32, 16, types[i][0], types[i][1], types[i][2]},
               t = {16, 2, 8, types[i][0], types[i][1], types[i][2]},
               u = {5, 24, 3, types[i][0], types[i][1], types[i][2]};
    check(&s, NULL);
    check(&t, NULL);
    check(&u, NULL);
    check(&s, "x86-64-v4");
    check(&s, "x86-64-v4-bf16");
    check(&t, "x86-64-v4-bf16");
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static int bench(void) {
  static const Case cases[] = {
      {128, 128, 32, "f32", "f32", "f32"},   {128, 128, 64, "f32", "f32", "f32"},
      {64, 64, 32, "f32", "f32", "f32"},     {128, 256, 32, "f32", "f32", "f32"},
      {128, 256, 64, "f32", "f32", "f32"},   {256, 128, 64, "f32", "f32", "f32"},
      {64, 256, 32, "f32", "f32", "f32"},    {16, 16, 16, "f32", "f32", "f32"},
      {32, 32, 32, "f32", "f32", "f32"},     {128, 128, 32, "f32", "bf16", "bf16"},
      {128, 128, 64, "f32", "bf16", "bf16"}, {128, 128, 32, "f32", "f16", "f16"},
      {128, 128, 32, "i32", "i8", "i8"},     {128, 128, 32, "f64", "f64", "f64"},
  };
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) {
    const Case *s = &cases[i];
    Code code;
    const double t0 = now();
    make(&code, s, NULL);
    const double t1 = now();
    const AbiCpuEntry f = (AbiCpuEntry)(uintptr_t)image_code_symbol(code.code, "dot");
    memset(code.scratch, 0, code.image->kernels[0].variants[0].arena_bytes);
    const double flops = 2.0 * s->m * s->n * s->k;
    const int reps = (int)(2e8 / flops) + 1;
    double best = 0;
    for (int round = 0; round < 7; round++) {
      const double start = now();
      for (int k = 0; k < reps; k++) f(NULL, &code.inst);
      const double rate = flops * reps / (now() - start) * 1e-9;
      if (rate > best) best = rate;
    }
    printf("%3dx%3dx%3d %s %-5s %7.1f Gop/s, compiled in %.1f ms\n", s->m, s->n, s->k, s->c, s->a, best,
           1e3 * (t1 - t0));
    code_free(&code);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "bench")) return bench();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_types)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
