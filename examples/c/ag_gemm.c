/* All-gather + GEMM through the operator API, on 4 ranks, in turn and overlapped. With a pack the process needs no compiler:
 *   ditron pack -o ag_gemm.dtp --op ag_gemm --variant plain --variant overlap --ranks 4 --m 512 --n 1024 --k 256
 *   cc ag_gemm.c $(pkg-config --cflags --libs ditron-rt) -lm && ./a.out ag_gemm.dtp
 * Without one it compiles: it links ditron instead of ditron-rt, and names it even where nothing of it is called (pkg-config does). */
#include <ditron/ditron.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { M = 512, N = 1024, K = 256, RANKS = 4 };

static float a_at(int row, int col) { return (float)((row * 7 + col * 3) % 11 - 5); }
static float b_at(int row, int col) { return (float)((row * 5 + col * 2) % 13 - 6); }

static dt_status multiply(dt_rank *r, dt_pack *pack, const char *variant, double *worst) {
  const int rank = dt_rank_index(r), rows = M / RANKS, cols = N / RANKS;
  void *t[3];
  dt_plan *plan = NULL;
  dt_stream *stream = NULL;
  dt_plan_options o = {0};
  dt_status st;
  o.size = sizeof o;
  o.op = "ag_gemm";
  o.variant = variant;
  o.dtype = DT_F32;
  o.m = M;
  o.n = N;
  o.k = K;
  o.pack = pack;
  if ((st = dt_alloc(r, sizeof(float) * rows * K, &t[0])) != DT_OK ||
      (st = dt_alloc(r, sizeof(float) * K * cols, &t[1])) != DT_OK ||
      (st = dt_alloc(r, sizeof(float) * M * cols, &t[2])) != DT_OK)
    return st;
  float *a = t[0], *b = t[1], *c = t[2];
  for (int i = 0; i < rows; i++)
    for (int k = 0; k < K; k++) a[i * K + k] = a_at(rank * rows + i, k);
  for (int k = 0; k < K; k++)
    for (int j = 0; j < cols; j++) b[k * cols + j] = b_at(k, rank * cols + j);
  if ((st = dt_plan_create(r, &o, &plan)) == DT_OK && (st = dt_stream_create(r, "main", &stream)) == DT_OK)
    for (int i = 0; i < 3 && st == DT_OK; i++)
      st = dt_plan_run(plan, stream, t, 3); /* any number of calls, nothing is reset */
  if (st == DT_OK) st = dt_stream_sync(stream);
  *worst = 0;
  for (int i = 0; i < M && st == DT_OK; i++)
    for (int j = 0; j < cols; j++) {
      double want = 0;
      for (int k = 0; k < K; k++) want += (double)a_at(i, k) * b_at(k, rank * cols + j);
      *worst = fmax(*worst, fabs(want - c[i * cols + j]));
    }
  dt_stream_destroy(stream);
  dt_plan_destroy(plan);
  for (int i = 0; i < 3; i++) dt_free(r, t[i]);
  return st;
}

static dt_status run(dt_rank *r, void *pack) {
  static const char *const variants[] = {"plain", "overlap"};
  dt_status st = DT_OK;
  for (int v = 0; v < 2 && st == DT_OK; v++) {
    double worst;
    st = multiply(r, pack, variants[v], &worst);
    if (st == DT_OK) printf("rank %d: %-8s largest error %g\n", dt_rank_index(r), variants[v], worst);
    if (st == DT_OK && worst > 0) st = DT_INTERNAL; /* small integers: exact */
  }
  return st;
}

int main(int argc, char **argv) {
  dt_context *c = NULL;
  dt_team *team = NULL;
  dt_pack *pack = NULL;
  dt_team_options o = {0};
  o.size = sizeof o;
  o.local_ranks = RANKS;
  dt_status st = dt_context_create(NULL, &c);
  if (st == DT_OK && argc > 1) st = dt_pack_open(c, argv[1], &pack);
  if (st == DT_OK) st = dt_team_create(c, &o, &team);
  if (st == DT_OK) st = dt_team_run(team, run, pack);
  if (st != DT_OK) fprintf(stderr, "%s: %s\n", dt_status_name(st), dt_error(c));
  dt_team_destroy(team);
  dt_pack_destroy(pack);
  dt_context_destroy(c);
  return st != DT_OK;
}
