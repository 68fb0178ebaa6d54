// Inputs and float64 references of every operator that `ditron bench` knows.
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash(uint64_t z) { // splitmix64's finaliser (Steele, Lea, Flood 2014)
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Element `index` of tensor `t` on `rank`, as the dtype holds it.
static double input(const BenchCase *c, int t, int rank, int64_t index) {
  uint64_t h = hash((uint64_t)index + ((uint64_t)t << 56) + ((uint64_t)rank << 44));
  double x = (double)(h >> 11) * 0x1p-52 - 1;
  unsigned char as[8];
  dt_convert(as, c->dtype, &x, DT_F64, 1);
  dt_convert(&x, DT_F64, as, c->dtype, 1);
  return x;
}

// ---- references: element i of the output on a rank --------------------------------------------------------------------------
static double ref_add(const BenchCase *c, int rank, int64_t i) {
  return input(c, 0, rank, i) + input(c, 1, rank, i);
}

static double ref_softmax(const BenchCase *c, int rank, int64_t i) {
  int64_t row = i / c->n * c->n;
  double max = -INFINITY, sum = 0;
  for (int64_t j = 0; j < c->n; j++) max = fmax(max, input(c, 0, rank, row + j));
  for (int64_t j = 0; j < c->n; j++) sum += exp(input(c, 0, rank, row + j) - max);
  return exp(input(c, 0, rank, i) - max) / sum;
}

static double ref_layer_norm(const BenchCase *c, int rank, int64_t i) {
  int64_t row = i / c->n * c->n, col = i % c->n;
  double sum = 0, square = 0;
  for (int64_t j = 0; j < c->n; j++) sum += input(c, 0, rank, row + j);
  double mean = sum / (double)c->n;
  for (int64_t j = 0; j < c->n; j++) square += pow(input(c, 0, rank, row + j) - mean, 2);
  return (input(c, 0, rank, i) - mean) / sqrt(square / (double)c->n + 1e-5) * input(c, 1, rank, col) +
         input(c, 2, rank, col);
}

static double ref_rms_norm(const BenchCase *c, int rank, int64_t i) {
  int64_t row = i / c->n * c->n;
  double square = 0;
  for (int64_t j = 0; j < c->n; j++) square += pow(input(c, 0, rank, row + j), 2);
  return input(c, 0, rank, i) / sqrt(square / (double)c->n + 1e-6) * input(c, 1, rank, i % c->n);
}

// sum over j of a[row, j] b[j, col], a on rank ra with kk columns, b on rank rb with nn columns
static double product(const BenchCase *c, int ra, int64_t row, int rb, int64_t col, int64_t kk, int64_t nn) {
  double sum = 0;
  for (int64_t j = 0; j < kk; j++) sum += input(c, 0, ra, row * kk + j) * input(c, 1, rb, j * nn + col);
  return sum;
}
static double ref_matmul(const BenchCase *c, int rank, int64_t i) {
  return product(c, rank, i / c->n, rank, i % c->n, c->k, c->n);
}
static double ref_ag_gemm(const BenchCase *c, int rank, int64_t i) {
  int64_t n = c->n / c->world, rows = c->m / c->world, row = i / n;
  return product(c, (int)(row / rows), row % rows, rank, i % n, c->k, n);
}
static double over_ranks(const BenchCase *c, int64_t row, int64_t col) {
  double sum = 0;
  for (int r = 0; r < c->world; r++) sum += product(c, r, row, r, col, c->k / c->world, c->n);
  return sum;
}
static double ref_gemm_rs(const BenchCase *c, int rank, int64_t i) {
  return over_ranks(c, i / c->n + rank * (c->m / c->world), i % c->n);
}
static double ref_gemm_ar(const BenchCase *c, int rank, int64_t i) {
  (void)rank;
  return over_ranks(c, i / c->n, i % c->n);
}

static double ref_all_gather(const BenchCase *c, int rank, int64_t i) {
  (void)rank;
  return input(c, 0, (int)(i / c->m), i % c->m);
}
static double ref_reduce_scatter(const BenchCase *c, int rank, int64_t i) {
  double sum = 0;
  for (int r = 0; r < c->world; r++) sum += input(c, 0, r, rank * c->m + i);
  return sum;
}
static double ref_all_reduce(const BenchCase *c, int rank, int64_t i) {
  (void)rank;
  double sum = 0;
  for (int r = 0; r < c->world; r++) sum += input(c, 0, r, i);
  return sum;
}
static double ref_all_to_all(const BenchCase *c, int rank, int64_t i) {
  return input(c, 0, (int)(i / c->m), rank * c->m + i % c->m);
}

// ---- one row an operator: sizes of inputs and output, reference, work ------------------------------------------------------------
typedef struct Row {
  const char *op;
  double (*reference)(const BenchCase *c, int rank, int64_t i);
  char sizes[BENCH_TENSORS][4]; // "mn" m*n, "pm" P*m; a capital is divided by P
} Row;
static const Row rows[] = {
    {"add", ref_add, {"n", "n", "n"}},
    {"softmax", ref_softmax, {"mn", "mn"}},
    {"layer_norm", ref_layer_norm, {"mn", "n", "n", "mn"}},
    {"rms_norm", ref_rms_norm, {"mn", "n", "mn"}},
    {"matmul", ref_matmul, {"mk", "kn", "mn"}},
    {"all_gather", ref_all_gather, {"m", "pm"}},
    {"reduce_scatter", ref_reduce_scatter, {"pm", "m"}},
    {"all_reduce", ref_all_reduce, {"m", "m"}},
    {"all_to_all", ref_all_to_all, {"pm", "pm"}},
    {"ag_gemm", ref_ag_gemm, {"Mk", "kN", "mN"}},
    {"gemm_rs", ref_gemm_rs, {"mK", "Kn", "Mn"}},
    {"gemm_ar", ref_gemm_ar, {"mK", "Kn", "mn"}},
};

static const Row *row_of(const BenchCase *c) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].op, c->op) == 0) return &rows[i];
  return NULL;
}

// 0: beyond what a machine can have.
static size_t size_of(const BenchCase *c, const char *s) {
  const int64_t p = c->world;
  int64_t n = 1;
  for (; *s; s++) {
    int64_t factor = *s == 'm'   ? c->m
                     : *s == 'n' ? c->n
                     : *s == 'k' ? c->k
                     : *s == 'p' ? p
                     : *s == 'M' ? c->m / p
                     : *s == 'N' ? c->n / p
                                 : c->k / p;
    if (__builtin_mul_overflow(n, factor, &n) || n > INT64_MAX >> 8) return 0;
  }
  return (size_t)n;
}

bool bench_sizes(const BenchCase *c, BenchTensors *t) {
  const Row *r = row_of(c);
  bool ok = true;
  memset(t, 0, sizeof *t);
  for (int i = 0; r && i < BENCH_TENSORS && r->sizes[i][0]; i++)
    ok &= (t->count[t->n++] = size_of(c, r->sizes[i])) > 0;
  return ok;
}

void bench_fill(const BenchCase *c, const BenchTensors *t, int rank) {
  size_t bytes = dt_dtype_bytes(c->dtype);
  for (int i = 0; i < t->n; i++) {
    bool output = i == t->n - 1;
    for (size_t j = 0; j < t->count[i]; j++) {
      double x = output ? NAN : input(c, i, rank, (int64_t)j); // an element that nobody writes stays wrong
      dt_convert((char *)t->memory[i] + j * bytes, c->dtype, &x, DT_F64, 1);
    }
  }
}

double bench_error(const BenchCase *c, const BenchTensors *t, int rank) {
  enum { SAMPLES = 4096 };
  const Row *r = row_of(c);
  const size_t count = t->count[t->n - 1], bytes = dt_dtype_bytes(c->dtype);
  const char *out = t->memory[t->n - 1];
  const int64_t last_row = c->n > 0 && (size_t)c->n < count ? c->n : (int64_t)count;
  double wrong = 0, norm = 0;
  size_t samples = count < SAMPLES ? count : SAMPLES;
  for (size_t s = 0; s < samples; s++) {
    uint64_t h = hash(s * 2654435761u + (uint64_t)rank);
    size_t i = count <= SAMPLES ? s
               : s == 0         ? 0
               : s == 1         ? count - 1
               : s % 4 == 0     ? count - 1 - h % (uint64_t)last_row
                                : h % count;
    double x, want = r->reference(c, rank, (int64_t)i);
    dt_convert(&x, DT_F64, out + i * bytes, c->dtype, 1);
    wrong += (x - want) * (x - want);
    norm += want * want;
  }
  double error = norm > 0 ? sqrt(wrong / norm) : sqrt(wrong);
  return error == error ? error : INFINITY;
}

double bench_tolerance(const BenchCase *c) {
  switch (c->dtype) {
  case DT_F64: return 1e-6; // the kernels accumulate in f32
  case DT_F32: return 1e-5;
  case DT_F16: return 2e-3;
  case DT_BF16: return 1e-2;
  default: return 0.1;
  }
}

double bench_flops(const BenchCase *c) {
  double whole = 2.0 * (double)c->m * (double)c->n * (double)c->k;
  if (strcmp(c->op, "matmul") == 0) return whole;
  return strstr(c->op, "gemm") ? whole / c->world : 0;
}

double bench_bytes(const BenchCase *c) {
  BenchTensors t;
  bench_sizes(c, &t);
  double n = 0;
  for (int i = 0; i < t.n; i++) n += (double)t.count[i];
  return n * (double)dt_dtype_bytes(c->dtype);
}
