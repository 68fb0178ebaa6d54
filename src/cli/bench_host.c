// ditron bench launch, ditron bench compile: what the host pays. Times of one launch of a kernel of one instance, and of bringing
// a kernel from its source to code that can be launched, cold and from the disk cache. Medians over the rounds.
#include "cli/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAUNCHES = 1000 };

typedef struct HostCase { // one line of the table
  const char *name;
  double limit_ms; // what it should stay below
  double ms;
} HostCase;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}
static double median(double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, by_value);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void print_cases(const HostCase *c, int n, bool json) {
  if (!json) printf("%-36s %12s %12s %8s\n", "name", "ms", "limit ms", "of limit");
  for (int i = 0; i < n; i++) {
    const char *form =
        json
            ? "{\"name\": \"%s\", \"target\": \"cpu\", \"ms\": %.6g, \"limit_ms\": %.6g, \"of_limit\": %.4g}\n"
            : "%-36s %12.6f %12.6f %8.2f\n";
    printf(form, c[i].name, c[i].ms, c[i].limit_ms, c[i].limit_ms / c[i].ms);
  }
}

static double ms_since(uint64_t start) { return (double)(cli_now_ns() - start) / 1e6; }

// ---- launching --------------------------------------------------------------------------------------------------------------
static const char SMALL[] =
    "import triton\nimport triton.language as tl\n@triton.jit\ndef small(x_ptr, n, f):\n"
    "    tl.store(x_ptr + n, f)\n";

// The host's time to launch, without waiting; and with waiting for each.
static dt_status time_launches(dt_rank *r, int rounds, HostCase out[2]) {
  dt_context *c = dt_rank_context(r);
  dt_image *image = NULL;
  dt_kernel *kernel = NULL;
  dt_stream *s = NULL;
  static float x[64];
  const dt_named args[] = {{"x_ptr", dt_ptr(DT_F32, x)}, {"n", dt_int(3)}, {"f", dt_float(2)}};
  const dt_value values[] = {dt_ptr(DT_F32, x), dt_int(3), dt_float(2)};
  const uint32_t grid[3] = {1, 1, 1};
  double *alone = calloc((size_t)rounds, sizeof *alone), *waited = calloc((size_t)rounds, sizeof *waited);
  dt_status st = alone && waited ? DT_OK : dt_context_fail(c, DT_NO_MEMORY, "out of memory");
  if (st == DT_OK) st = dt_compile_text(c, "small.py", SMALL, sizeof SMALL - 1, NULL, args, 3, NULL, &image);
  if (st == DT_OK) st = dt_kernel_load(r, image, NULL, &kernel);
  if (st == DT_OK) st = dt_stream_create(r, "bench", &s);
  for (int round = -1; round < rounds && st == DT_OK; round++) { // round -1 warms up
    uint64_t start = cli_now_ns();
    for (int i = 0; i < LAUNCHES && st == DT_OK; i++) st = dt_launch(kernel, s, grid, values, 3);
    if (round >= 0) alone[round] = ms_since(start) / LAUNCHES;
    if (st == DT_OK) st = dt_stream_sync(s);
    start = cli_now_ns();
    for (int i = 0; i < LAUNCHES && st == DT_OK; i++) {
      st = dt_launch(kernel, s, grid, values, 3);
      if (st == DT_OK) st = dt_stream_sync(s);
    }
    if (round >= 0) waited[round] = ms_since(start) / LAUNCHES;
  }
  if (st == DT_OK) {
    out[0] = (HostCase){"launch, host time", 0.005, median(alone, rounds)};
    out[1] = (HostCase){"launch and wait", 0.02, median(waited, rounds)};
  }
  dt_stream_destroy(s);
  dt_kernel_destroy(kernel);
  dt_image_destroy(image);
  free(alone);
  free(waited);
  return st;
}

// ---- compiling -----------------------------------------------------------------------------------------------------------------
// From the source of the matrix product to a loaded kernel.
static dt_status compile_once(dt_context *c, dt_rank *r, double *ms) {
  char path[4096];
  snprintf(path, sizeof path, "%s/matmul.py", dt_kernels_dir(c));
  const dt_named args[] = {{"a_ptr", dt_ptr(DT_F32, NULL)},
                           {"b_ptr", dt_ptr(DT_F32, NULL)},
                           {"c_ptr", dt_ptr(DT_F32, NULL)},
                           {"M", dt_int(1024)},
                           {"N", dt_int(1024)},
                           {"K", dt_int(1024)},
                           {"BLOCK_M", dt_int(128)},
                           {"BLOCK_N", dt_int(128)},
                           {"BLOCK_K", dt_int(64)},
                           {"GROUP_M", dt_int(8)}};
  dt_image *image = NULL;
  dt_kernel *kernel = NULL;
  uint64_t start = cli_now_ns();
  dt_status st =
      dt_compile_file(c, path, "matmul_persistent_kernel", args, sizeof args / sizeof *args, NULL, &image);
  if (st == DT_OK) st = dt_kernel_load(r, image, NULL, &kernel);
  *ms = ms_since(start);
  dt_kernel_destroy(kernel);
  dt_image_destroy(image);
  return st;
}

// In a context of its own with this cache; *first is the first compile, *rest the median of the others.
static dt_status compile_rounds(const char *cache, int rounds, double *first, double *rest, char *why,
                                size_t cap) {
  const dt_context_options o = {.size = sizeof o, .cache_dir = cache};
  dt_context *c = NULL;
  dt_team *team = NULL;
  double *ms = calloc((size_t)rounds + 1, sizeof *ms);
  dt_status st = ms ? dt_context_create(&o, &c) : DT_NO_MEMORY;
  if (st == DT_OK) st = dt_team_create(c, NULL, &team);
  for (int i = 0; i <= rounds && st == DT_OK; i++) st = compile_once(c, dt_team_local(team, 0), &ms[i]);
  if (st != DT_OK) snprintf(why, cap, "%s", dt_error(c));
  *first = ms ? ms[0] : 0;
  *rest = ms ? median(ms + 1, rounds) : 0;
  free(ms);
  dt_team_destroy(team);
  dt_context_destroy(c);
  return st;
}

static int remove_cache(const char *dir) { // the two levels that a cache has, through the system's own tool
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", dir);
  return system(command);
}

static dt_status time_compiles(int rounds, HostCase out[3], char *why, size_t cap) {
  char dir[] = "/tmp/ditron-bench-XXXXXX";
  double ignored;
  if (!mkdtemp(dir)) return snprintf(why, cap, "/tmp: no folder for a cache can be made"), DT_IO;
  out[0] = (HostCase){.name = "compile matmul, first of a process", .limit_ms = 100};
  out[1] = (HostCase){.name = "compile matmul, cold", .limit_ms = 100};
  out[2] = (HostCase){.name = "compile matmul, from the disk cache", .limit_ms = 5};
  dt_status st = compile_rounds("", rounds, &out[0].ms, &out[1].ms, why, cap);
  if (st == DT_OK) st = compile_rounds(dir, rounds, &ignored, &out[2].ms, why, cap);
  if (remove_cache(dir) != 0 && st == DT_OK) return snprintf(why, cap, "%s: cannot be removed", dir), DT_IO;
  return st;
}

// ---- the two commands --------------------------------------------------------------------------------------------------------------
bool bench_is_host(const char *name) { return strcmp(name, "launch") == 0 || strcmp(name, "compile") == 0; }

int bench_host(dt_context *c, const char *name, int rounds, bool json) {
  HostCase cases[3];
  char why[4096] = "";
  bool launch = strcmp(name, "launch") == 0;
  dt_team *team = NULL;
  dt_status st = launch ? dt_team_create(c, NULL, &team) : time_compiles(rounds, cases, why, sizeof why);
  if (launch && st == DT_OK) st = time_launches(dt_team_local(team, 0), rounds, cases);
  if (launch && st != DT_OK) snprintf(why, sizeof why, "%s", dt_error(c));
  dt_team_destroy(team);
  if (st != DT_OK) return cli_fail("%s: %s", name, why);
  print_cases(cases, launch ? 2 : 3, json);
  return 0;
}
