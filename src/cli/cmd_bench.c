// ditron bench: an operator beside its peer in one run. The result is checked first; then rounds of peer, ours, limits in turn,
// each a series back to back; reported are medians over the rounds of times and of per-round ratios.
#include "cli/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 101, SLOTS = 4 };
enum { OURS, PEER, LIMIT_A, LIMIT_B }; // what is timed in a round

typedef struct Bench {
  dt_context *context;
  BenchCase c;
  int64_t rounds, threads;
  const char *pack_path;
  CliList traces;
  bool json, explain;
  dt_pack *pack;
  // results, written by rank 0
  char variant[32], peer_name[128];
  double error, ms[SLOTS][MOST_ROUNDS];
  bool has[SLOTS];
  char explain_text[512];
  CliProgress preparing; // until rank 0 begins to time
} Bench;

typedef struct Contestant { // something that runs on all ranks together
  dt_plan *plan;
  BenchTensors tensors;
} Contestant;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}
static double median(const double *v, int n) {
  double sorted[MOST_ROUNDS];
  memcpy(sorted, v, (size_t)n * sizeof *v);
  qsort(sorted, (size_t)n, sizeof *sorted, by_value);
  return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// ---- on each rank -----------------------------------------------------------------------------------------------------------
static dt_status enter(Bench *b, dt_rank *rank, const BenchCase *c, Contestant *x) {
  dt_plan_options o = {.size = sizeof o,
                       .op = c->op,
                       .variant = c->variant,
                       .dtype = c->dtype,
                       .m = c->m,
                       .n = c->n,
                       .k = c->k,
                       .pack = b->pack,
                       .explain = b->explain};
  bench_sizes(c, &x->tensors);
  dt_status st = DT_OK;
  for (int i = 0; i < x->tensors.n && st == DT_OK; i++)
    st = dt_alloc(rank, x->tensors.count[i] * dt_dtype_bytes(c->dtype) + 64, &x->tensors.memory[i]);
  dt_status agreed = dt_agree(rank, st);
  if (st == DT_OK) st = agreed;
  if (st == DT_OK) bench_fill(c, &x->tensors, dt_rank_index(rank));
  return st == DT_OK ? dt_plan_create(rank, &o, &x->plan) : st;
}

static void leave(dt_rank *rank, Contestant *x) {
  dt_plan_destroy(x->plan);
  for (int i = 0; i < x->tensors.n; i++) dt_free(rank, x->tensors.memory[i]);
}

// Mean time of `times` calls back to back, all ranks starting together.
static dt_status time_plan(dt_rank *rank, Contestant *x, dt_stream *s, int times, double *ms) {
  dt_status st = dt_barrier(rank);
  uint64_t start = cli_now_ns();
  for (int i = 0; i < times && st == DT_OK; i++)
    st = dt_plan_run(x->plan, s, x->tensors.memory, (size_t)x->tensors.n);
  if (st == DT_OK) st = dt_stream_sync(s);
  if (st == DT_OK) st = dt_barrier(rank);
  *ms = (double)(cli_now_ns() - start) / 1e6 / times;
  return st;
}

// Every rank takes part; the worst error decides.
static dt_status check(Bench *b, dt_rank *rank, const BenchCase *c, Contestant *x, dt_stream *s,
                       double *error) {
  double ignored;
  dt_status st = DT_OK;
  for (int i = 0; i < 2 && st == DT_OK; i++)
    st = time_plan(rank, x, s, 1, &ignored); // twice: the second reuses every buffer
  if (st != DT_OK) return st;
  *error = bench_error(c, &x->tensors, dt_rank_index(rank));
  if (*error <= bench_tolerance(c)) return DT_OK;
  char text[256];
  snprintf(text, sizeof text, "%s on rank %d is wrong: relative error %.3g, allowed %.3g; not timed", c->op,
           dt_rank_index(rank), *error, bench_tolerance(c));
  return dt_context_fail(b->context, DT_ASSERT, text);
}

static bool is_overlap(const BenchCase *c) { return strstr(c->op, "gemm") != NULL; }

static bool is_short_matmul(const Bench *b, const BenchCase *c) {
  return !b->pack && c->world == 1 && strcmp(c->op, "matmul") == 0 && dt_dtype_bytes(c->dtype) < 4;
}

// Which others run beside ours; those without an operator's name do not. Of an overlap: the plain path, and what it cannot
// beat, the product alone and the collective alone. Of a product of short floats: the same product in f32
// (a pack need not hold that one).
static void opponents(const Bench *b, BenchCase out[SLOTS]) {
  const BenchCase *c = &b->c;
  if (is_short_matmul(b, c)) {
    out[LIMIT_A] = *c;
    out[LIMIT_A].dtype = DT_F32;
  }
  if (!is_overlap(c) || c->world == 1) return;
  out[PEER] = *c;
  out[PEER].variant = "plain";
  bool ag = strcmp(c->op, "ag_gemm") == 0, rs = strcmp(c->op, "gemm_rs") == 0;
  int p = c->world;
  out[LIMIT_A] = (BenchCase){.op = "matmul",
                             .dtype = c->dtype,
                             .m = c->m,
                             .n = ag ? c->n / p : c->n,
                             .k = ag ? c->k : c->k / p,
                             .world = p};
  out[LIMIT_B] = (BenchCase){.op = ag   ? "all_gather"
                                   : rs ? "reduce_scatter"
                                        : "all_reduce",
                             .dtype = c->dtype,
                             .world = p,
                             .m = ag   ? c->m / p * c->k
                                  : rs ? c->m / p * c->n
                                       : c->m * c->n};
}

static int repeats(double ms) { // so that a series lasts about 20 ms
  int n = (int)(20.0 / (ms > 1e-3 ? ms : 1e-3));
  return n < 1 ? 1 : n > 1000 ? 1000 : n;
}

static dt_status time_rounds(Bench *b, dt_rank *rank, Contestant x[SLOTS], dt_stream *s, BenchPeer *peer,
                             CliProgress *bar) {
  int index = dt_rank_index(rank);
  int times[SLOTS] = {1, 1, 1, 1};
  dt_status st = DT_OK;
  for (int round = -1; round < b->rounds && st == DT_OK; round++) { // round -1 warms up and sizes the series
    for (int k = 0; k < SLOTS && st == DT_OK; k++) {
      double ms = 0;
      if (x[k].plan)
        st = time_plan(rank, &x[k], s, times[k], &ms);
      else if (k == PEER && peer)
        ms = bench_peer_ms(peer, times[k]);
      if (round >= 0 && index == 0) b->ms[k][round] = ms;
      // All ranks must run the same number of calls: rank 0's time decides, carried by a word of the status exchange.
      if (round < 0 && st == DT_OK && (x[k].plan || (k == PEER && peer))) {
        int n = repeats(ms);
        st = dt_share(rank, 0, &n, sizeof n);
        times[k] = n;
      }
    }
    if (index == 0) cli_progress(bar, (round + 1.0) / (double)b->rounds);
  }
  return st;
}

// The timeline shows one call in turn and one of ours, after everything is warm.
static dt_status record(dt_rank *rank, Contestant x[SLOTS], dt_stream *s) {
  dt_status st = dt_barrier(rank);
  if (dt_rank_index(rank) == 0) dt_team_trace(dt_rank_team(rank), true);
  if (st == DT_OK) st = dt_barrier(rank);
  for (int k = PEER; k >= OURS && st == DT_OK; k--) {
    double ignored;
    if (!x[k].plan) continue;
    dt_trace_mark(rank, k == OURS ? "overlapped" : "in turn");
    st = time_plan(rank, &x[k], s, 1, &ignored);
  }
  if (dt_rank_index(rank) == 0) dt_team_trace(dt_rank_team(rank), false);
  return st;
}

static dt_status bench_rank(dt_rank *rank, void *user) {
  Bench *b = user;
  BenchCase cases[SLOTS] = {[OURS] = b->c};
  Contestant x[SLOTS] = {0};
  opponents(b, cases);
  const int index = dt_rank_index(rank);
  dt_stream *s = NULL;
  double error = 0, ignored;
  dt_status st = dt_stream_create(rank, "bench", &s);
  for (int k = 0; k < SLOTS && st == DT_OK; k++) {
    if (!cases[k].op) continue;
    st = enter(b, rank, &cases[k], &x[k]);
    if (st == DT_OK) st = check(b, rank, &cases[k], &x[k], s, k == OURS ? &error : &ignored);
    dt_status agreed = dt_agree(rank, st);
    if (st == DT_OK) st = agreed;
  }
  BenchPeer *peer = NULL;
  const char *peer_name = cases[PEER].op ? "in turn" : "none";
  if (st == DT_OK && !cases[PEER].op && b->c.world == 1)
    peer = bench_peer_open(&b->c, (int)b->threads, &peer_name);
  if (st == DT_OK && index == 0) {
    b->error = error;
    snprintf(b->variant, sizeof b->variant, "%s", dt_plan_variant(x[OURS].plan));
    snprintf(b->peer_name, sizeof b->peer_name, "%s", peer_name);
    snprintf(b->explain_text, sizeof b->explain_text, "%s", dt_plan_explain(x[OURS].plan));
    for (int k = 0; k < SLOTS; k++) b->has[k] = x[k].plan || (k == PEER && peer);
  }
  CliProgress bar = {.what = b->c.op};
  if (index == 0) cli_progress_end(&b->preparing);
  if (st == DT_OK) st = time_rounds(b, rank, x, s, peer, &bar);
  if (index == 0) cli_progress_end(&bar);
  if (st == DT_OK && b->traces.n) st = record(rank, x, s);
  bench_peer_close(peer);
  for (int k = 0; k < SLOTS; k++) leave(rank, &x[k]);
  dt_stream_destroy(s);
  return st;
}

// ---- printing ------------------------------------------------------------------------------------------------------------------
static const char *commit_text(void) {
#ifdef DITRON_COMMIT
  return DITRON_COMMIT;
#else
  return "unknown";
#endif
}

static void print_case(const Bench *b, bool header) {
  int n = (int)b->rounds;
  double ms = median(b->ms[OURS], n), peer = b->has[PEER] ? median(b->ms[PEER], n) : 0, ratios[MOST_ROUNDS],
         limit = 0;
  for (int i = 0; i < n; i++) ratios[i] = b->has[PEER] ? b->ms[PEER][i] / b->ms[OURS][i] : 0;
  double ratio = median(ratios, n), lo = ratios[0], hi = ratios[0];
  for (int i = 1; i < n; i++) lo = fmin(lo, ratios[i]), hi = fmax(hi, ratios[i]);
  if (b->has[LIMIT_A])
    limit = fmax(median(b->ms[LIMIT_A], n), b->has[LIMIT_B] ? median(b->ms[LIMIT_B], n) : 0);
  else if (b->has[PEER])
    limit = peer;
  const BenchCase *c = &b->c;
  if (b->json) {
    printf(
        "{\"name\": \"%s\", \"variant\": \"%s\", \"target\": \"cpu\", \"shape\": [%lld, %lld, %lld], \"dtype\": \"%s\", \"ranks\": %d, "
        "\"threads\": %d, \"ms\": %.6g, \"peer\": \"%s\", \"peer_ms\": %.6g, \"ratio\": %.4g, \"ratio_min\": %.4g, \"ratio_max\": %.4g, "
        "\"limit_ms\": %.6g, \"of_limit\": %.4g, \"rel_err\": %.3g, \"commit\": \"%s\"}\n",
        c->op, b->variant, (long long)c->m, (long long)c->n, (long long)c->k, dt_dtype_name(c->dtype),
        c->world, (int)b->threads, ms, b->peer_name, peer, ratio, lo, hi, limit, limit / ms, b->error,
        commit_text());
    return;
  }
  if (header)
    printf("%-15s %-12s %20s %6s %5s %9s %10s %-28s %9s %7s %13s %8s\n", "operator", "variant", "m x n x k",
           "dtype", "ranks", "error", "ms", "peer", "peer ms", "ratio", "min-max", "of limit");
  char shape[64], spread[32];
  snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)c->m, (long long)c->n, (long long)c->k);
  snprintf(spread, sizeof spread, "%.2f-%.2f", lo, hi);
  printf("%-15s %-12s %20s %6s %5d %9.2g %10.3f %-28s %9.3f %7.2f %13s %8.2f\n", c->op, b->variant, shape,
         dt_dtype_name(c->dtype), c->world, b->error, ms, b->peer_name, peer, ratio,
         b->has[PEER] ? spread : "-", ms > 0 ? limit / ms : 0);
  if (b->explain) printf("%s", b->explain_text);
}

// ---- the command -----------------------------------------------------------------------------------------------------------------
static int run_case(Bench *b, bool header) {
  dt_team *team = NULL;
  dt_team_options o = {.size = sizeof o,
                       .local_ranks = b->c.world,
                       .threads_per_rank = (int)b->threads,
                       .symmetric_bytes = (size_t)4 << 30};
  BenchTensors t;
  const bool fit = bench_sizes(&b->c, &t);
  if (!t.n) return cli_usage("bench", "no operator '%s'; `ditron info` lists them", b->c.op);
  if (!fit)
    return cli_fail("%s: %lld x %lld x %lld over %d ranks is too large, or leaves a rank nothing", b->c.op,
                    (long long)b->c.m, (long long)b->c.n, (long long)b->c.k, b->c.world);
  const double most = (double)cli_free_bytes(),
               need = 2 * bench_bytes(&b->c) * b->c.world; // the peer has its own
  if (need > most)
    return cli_fail("%s: the tensors of both need %.4g GiB; this machine has %.4g GiB free", b->c.op,
                    need / 0x1p30, most / 0x1p30);
  memset(b->has, 0, sizeof b->has);
  dt_status st = dt_team_create(b->context, &o, &team);
  if (st != DT_OK) return cli_failed(b->context, "team", st);
  b->preparing = (CliProgress){0};
  cli_working(&b->preparing, "preparing");
  st = dt_team_run(team, bench_rank, b);
  cli_progress_end(&b->preparing);
  int code = st == DT_OK ? 0 : cli_failed(b->context, b->c.op, st);
  if (code == 0) print_case(b, header);
  fflush(stdout);
  if (code == 0 && !cli_write_traces(b->context, team, &b->traces)) code = 1;
  dt_team_destroy(team);
  return code;
}

// One shape a line: M N K; '#' begins a comment.
static int run_shapes(Bench *b, const char *path) {
  FILE *f = fopen(path, "r");
  if (!f) return cli_fail("%s: %s", path, strerror(errno));
  char line[256];
  int code = 0, cases = 0;
  while (code == 0 && fgets(line, sizeof line, f)) {
    long long m = 1, n = 1, k = 1;
    char *hash = strchr(line, '#');
    if (hash) *hash = 0;
    if (strspn(line, " \t\r\n") == strlen(line)) continue;
    int end[3] = {0};
    int got = sscanf(line, "%lld %n%lld %n%lld %n", &m, &end[0], &n, &end[1], &k, &end[2]);
    if (got < 1 || line[end[got - 1]] || m < 1 || n < 1 || k < 1) {
      code = cli_fail("%s: '%s' is not a shape (M N K, each at least 1)", path, strtok(line, "\r\n"));
      break;
    }
    b->c.m = m;
    b->c.n = n;
    b->c.k = k;
    code = run_case(b, cases++ == 0);
  }
  fclose(f);
  return code || cases ? code : cli_fail("%s: no shapes in it", path);
}

int cmd_bench(int argc, char **argv) {
  Bench *b = calloc(1, sizeof *b);
  if (!b) return cli_fail("out of memory");
  b->rounds = 7;
  const char *dtype = "f32", *shapes = NULL, *variant = NULL, *target = NULL;
  int64_t m = 1024, n = 1024, k = 1024, ranks = 1;
  CliList rest = {0};
  const CliOption options[] = {
      {"--m", "M", CLI_INT, &m, 1, INT64_MAX >> 20, "rows, or elements a rank of a collective (1024)"},
      {"--n", "N", CLI_INT, &n, 1, INT64_MAX >> 20, "columns, or elements of add (1024)"},
      {"--k", "K", CLI_INT, &k, 1, INT64_MAX >> 20, "inner size (1024)"},
      {"--shapes", "FILE", CLI_TEXT, &shapes, 0, 0, "a shape a line: M N K"},
      {"--dtype", "D", CLI_TEXT, &dtype, 0, 0, "f32 (default), f64, f16, bf16"},
      {"--ranks", "N", CLI_INT, &ranks, 1, 64, "ranks as threads (1)"},
      {"--threads", "T", CLI_INT, &b->threads, 1, 1024,
       "worker threads of a rank, and of the peer (cores / ranks)"},
      {"--variant", "V", CLI_TEXT, &variant, 0, 0, "of the operator (its own choice)"},
      {"--target", "T", CLI_TEXT, &target, 0, 0, "cpu"},
      {"--rounds", "R", CLI_INT, &b->rounds, 1, MOST_ROUNDS, "rounds; ratios are medians over them (7)"},
      {"--pack", "FILE", CLI_TEXT, &b->pack_path, 0, 0, "take the kernels from a pack instead of compiling"},
      {"--json", NULL, CLI_FLAG, &b->json, 0, 0, "one JSON object a case, one a line"},
      {"--trace", "FILE", CLI_LIST, &b->traces, 0, 0,
       "draw one call of the peer and one of ours: .json (Perfetto) or .svg (again for both)"},
      {"--explain", NULL, CLI_FLAG, &b->explain, 0, 0, "which path the operator takes, and why"},
  };
  int over = cli_parse("bench", options, sizeof options / sizeof options[0], argc, argv, &rest);
  if (over) return over - 1;
  if (rest.n != 1)
    return cli_usage("bench", "%s operator? `ditron info` lists them; or launch, compile",
                     rest.n ? "one" : "which");
  if (!cli_traces_named("bench", &b->traces)) return 2;
  if (target && strcmp(target, "cpu") != 0 && strcmp(target, "x86") != 0 && strcmp(target, "host") != 0)
    return cli_usage("bench", "no device '%s' here; `ditron info` lists them", target);
  int d = cli_dtype(dtype, strlen(dtype));
  if (d < 0) return cli_usage("bench", "no dtype '%s'", dtype);
  b->c = (BenchCase){
      .op = rest.v[0], .variant = variant, .dtype = (dt_dtype)d, .m = m, .n = n, .k = k, .world = (int)ranks};
  if (!b->threads) b->threads = dt_host_cores() / (int)ranks > 1 ? dt_host_cores() / (int)ranks : 1;
  if (!(b->context = cli_start(0, NULL))) return 1;
  dt_status st;
  if (b->pack_path && (st = dt_pack_open(b->context, b->pack_path, &b->pack)) != DT_OK)
    return cli_failed(b->context, b->pack_path, st);
  int code = bench_is_host(b->c.op) ? bench_host(b->context, b->c.op, (int)b->rounds, b->json)
             : shapes               ? run_shapes(b, shapes)
                                    : run_case(b, true);
  cli_remarks(b->context);
  dt_pack_destroy(b->pack);
  dt_context_destroy(b->context);
  free(rest.v);
  free(b->traces.v);
  free(b);
  return code;
}
