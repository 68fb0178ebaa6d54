// Peers on a CPU: OpenBLAS (opened at run time, the one door to it) and memcpy on as many threads.
#include "cli/bench.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Blas {
  void *library;
  bool wide; // 64-bit integers in the interface
  void (*sgemm32)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                  int);
  void (*sgemm64)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                  int64_t, float, float *, int64_t);
  void (*set_threads)(int);
  char *(*core)(void);
} Blas;

struct BenchPeer {
  BenchCase c;
  int threads;
  Blas blas;
  char name[128];
  size_t bytes; // of one memcpy buffer
  double scale; // memcpy time to the time of the bytes that the operator moves
  void *a, *b, *out;
};

// ---- OpenBLAS -------------------------------------------------------------------------------------------------------------
static bool bind(Blas *b, const char *prefix, const char *suffix) {
  char name[64];
#define GET(field, format) \
  snprintf(name, sizeof name, format, prefix, suffix); \
  *(void **)&b->field = dlsym(b->library, name);
  GET(set_threads, "%sopenblas_set_num_threads%s")
  GET(core, "%sopenblas_get_corename%s")
  b->wide = strcmp(suffix, "64_") == 0;
  if (b->wide) {
    GET(sgemm64, "%scblas_sgemm%s")
  } else {
    GET(sgemm32, "%scblas_sgemm%s")
  }
#undef GET
  return b->set_threads && (b->wide ? b->sgemm64 != NULL : b->sgemm32 != NULL);
}

// Debian's library by name, else the one in PyPI's NumPy below a python's site-packages. Never the reference BLAS: it lacks
// openblas_set_num_threads.
static bool open_blas(Blas *b) {
  static const char *const patterns[] = {
      "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
      "/usr/lib/x86_64-linux-gnu/openblas-*/libopenblas.so.0",
      "build/venv/lib/python3*/site-packages/numpy.libs/libscipy_openblas64_*.so",
      "/usr/lib/python3*/site-packages/numpy.libs/libscipy_openblas64_*.so",
      "/usr/local/lib/python3*/site-packages/numpy.libs/libscipy_openblas64_*.so",
  };
  unsetenv("OPENBLAS_CORETYPE"); // a forced core type would make the peer slower than it is
  unsetenv("OPENBLAS_L2_SIZE");
  for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
    glob_t g;
    bool ok = false;
    if (glob(patterns[i], 0, NULL, &g) == 0) {
      b->library = dlopen(g.gl_pathv[0], RTLD_NOW | RTLD_LOCAL);
      ok = b->library && (bind(b, "", "") || bind(b, "scipy_", "64_"));
      if (!ok && b->library) dlclose(b->library);
    }
    globfree(&g);
    if (ok) return true;
  }
  return false;
}

static void sgemm(BenchPeer *p) {
  enum { ROW_MAJOR = 101, NO_TRANS = 111 };
  int64_t m = p->c.m, n = p->c.n, k = p->c.k;
  if (p->blas.wide)
    p->blas.sgemm64(ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k, 1, p->a, k, p->b, n, 0, p->out, n);
  else
    p->blas.sgemm32(ROW_MAJOR, NO_TRANS, NO_TRANS, (int)m, (int)n, (int)k, 1, p->a, (int)k, p->b, (int)n, 0,
                    p->out, (int)n);
}

// ---- memcpy on threads --------------------------------------------------------------------------------------------------------
typedef struct Part {
  char *dst;
  const char *src;
  size_t bytes;
} Part;
static void *copy_part(void *user) {
  const Part *part = user;
  memcpy(part->dst, part->src, part->bytes);
  return NULL;
}

static void copy_all(BenchPeer *p) {
  enum { MOST = 256 };
  pthread_t threads[MOST];
  Part parts[MOST];
  int n = p->threads < 1 ? 1 : p->threads > MOST ? MOST : p->threads, started = 0;
  size_t each = (p->bytes / (size_t)n + 63) / 64 * 64;
  for (int i = 0; i < n; i++) {
    size_t at = (size_t)i * each < p->bytes ? (size_t)i * each : p->bytes;
    parts[i] = (Part){(char *)p->out + at, (char *)p->a + at, at + each < p->bytes ? each : p->bytes - at};
  }
  for (int i = 1; i < n; i++) {
    if (pthread_create(&threads[started], NULL, copy_part, &parts[i]) == 0)
      started++;
    else
      copy_part(&parts[i]);
  }
  copy_part(&parts[0]);
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

// ---- the peer of a case ---------------------------------------------------------------------------------------------------------
static void *buffer(size_t bytes) {
  void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  if (p) memset(p, 1, bytes);
  return p;
}

BenchPeer *bench_peer_open(const BenchCase *c, int threads, const char **name) {
  BenchPeer *p = calloc(1, sizeof *p);
  *name = "none";
  if (!p) return NULL;
  p->c = *c;
  p->threads = threads;
  if (strcmp(c->op, "matmul") == 0) {
    if (!open_blas(&p->blas)) {
      *name = "none (no OpenBLAS found)";
      free(p);
      return NULL;
    }
    p->blas.set_threads(threads);
    snprintf(p->name, sizeof p->name, "OpenBLAS sgemm %s, %d thread%s", p->blas.core ? p->blas.core() : "",
             threads, threads > 1 ? "s" : "");
    p->a = buffer((size_t)(c->m * c->k) * 4);
    p->b = buffer((size_t)(c->k * c->n) * 4);
    p->out = buffer((size_t)(c->m * c->n) * 4);
  } else {
    BenchTensors t;
    bench_sizes(c, &t);
    p->bytes = t.count[t.n - 1] * dt_dtype_bytes(c->dtype);
    p->scale = bench_bytes(c) / (2.0 * (double)p->bytes);
    snprintf(p->name, sizeof p->name, "memcpy, %d thread%s", threads, threads > 1 ? "s" : "");
    p->a = buffer(p->bytes);
    p->out = buffer(p->bytes);
  }
  *name = p->name;
  return p;
}

double bench_peer_ms(BenchPeer *p, int times) {
  uint64_t start = cli_now_ns();
  for (int i = 0; i < times; i++) {
    if (p->blas.library)
      sgemm(p);
    else
      copy_all(p);
  }
  double ms = (double)(cli_now_ns() - start) / 1e6 / times;
  return p->blas.library ? ms : ms * p->scale;
}

void bench_peer_close(BenchPeer *p) {
  if (!p) return;
  free(p->a);
  free(p->b);
  free(p->out);
  if (p->blas.library) dlclose(p->blas.library);
  free(p);
}
