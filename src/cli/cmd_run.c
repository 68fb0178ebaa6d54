// ditron run: compiles a kernel and runs it on the ranks of this process, as one rank of a job, or on the interpreter.
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGS = 96 };

typedef struct Run {
  dt_context *context;
  const char *file, *kernel;
  uint32_t grid[3];
  int64_t ranks, seed, warps, stages, threads;
  double deadline;
  const char *target;
  bool interp, check, explain, quiet;
  CliList values, outs, traces;
  dt_compile_options compile;
  uint64_t compile_ns, run_ns; // of rank 0
} Run;

typedef struct RankArgs { // one rank's values, with memory
  CliValue v[MOST_ARGS];
  void *memory[MOST_ARGS];
  dt_desc desc[MOST_ARGS];
  dt_named named[MOST_ARGS];
  int n;
} RankArgs;

static size_t bytes_of(const CliValue *v) { return v->tensor.count * dt_dtype_bytes(v->dtype); }
static bool is_tensor(const CliValue *v) { return v->kind == DT_VALUE_PTR || v->kind == DT_VALUE_DESC; }

static bool parse_values(const Run *r, RankArgs *a, int rank) {
  a->n = r->values.n;
  for (int i = 0; i < a->n; i++)
    if (!cli_value(r->values.v[i], rank, &a->v[i])) return false;
  return true;
}

// named[] from values and their memory.
static void name_values(RankArgs *a) {
  for (int i = 0; i < a->n; i++) {
    CliValue *v = &a->v[i];
    a->named[i].name = v->name;
    if (v->kind == DT_VALUE_PTR) {
      a->named[i].value = dt_ptr(v->dtype, a->memory[i]);
    } else if (v->kind == DT_VALUE_DESC) {
      dt_desc *d = &a->desc[i];
      d->base = a->memory[i];
      d->dtype = v->dtype;
      d->rank = v->tensor.rank;
      int64_t stride = 1;
      for (int k = d->rank - 1; k >= 0; k--) {
        d->shape[k] = v->tensor.shape[k];
        d->strides[k] = stride;
        d->block[k] = v->block[k];
        stride *= v->tensor.shape[k];
      }
      a->named[i].value = dt_tensor(d);
    } else {
      a->named[i].value = cli_plain_value(v);
    }
  }
}

// ---- outputs ------------------------------------------------------------------------------------------------------------
static int find(const RankArgs *a, const char *name, size_t len) {
  for (int i = 0; i < a->n; i++)
    if (strlen(a->v[i].name) == len && memcmp(a->v[i].name, name, len) == 0) return i;
  return -1;
}

static bool check_outs(const Run *r, const RankArgs *a) {
  for (int i = 0; i < r->outs.n; i++) {
    const char *equals = strchr(r->outs.v[i], '=');
    if (!equals) return cli_usage("run", "--out takes NAME=FILE.npy, not '%s'", r->outs.v[i]), false;
    int at = find(a, r->outs.v[i], (size_t)(equals - r->outs.v[i]));
    if (at < 0 || !is_tensor(&a->v[at]))
      return cli_usage("run", "--out %s: no tensor argument of that name", r->outs.v[i]), false;
  }
  return true;
}

static bool write_outs(const Run *r, const RankArgs *a, int rank) {
  for (int i = 0; i < r->outs.n; i++) {
    const char *equals = strchr(r->outs.v[i], '=');
    if (rank > 0 && !strstr(equals, "{rank}")) continue;
    int at = find(a, r->outs.v[i], (size_t)(equals - r->outs.v[i]));
    char *path = cli_with_rank(equals + 1, rank);
    bool ok = npy_write(path, &a->v[at].tensor, a->memory[at]);
    free(path);
    if (!ok) return false;
  }
  return true;
}

static void show_tensor(const CliValue *v, const void *memory) {
  enum { SHOWN = 6 };
  printf("  %s %s[", v->name, dt_dtype_name(v->dtype));
  for (int i = 0; i < v->tensor.rank; i++) printf("%s%lld", i ? "," : "", (long long)v->tensor.shape[i]);
  printf("] =");
  for (size_t i = 0; i < v->tensor.count && i < SHOWN; i++) {
    double x;
    dt_convert(&x, DT_F64, (const char *)memory + i * dt_dtype_bytes(v->dtype), v->dtype, 1);
    printf(" %.6g", x);
  }
  printf("%s\n", v->tensor.count > SHOWN ? " ..." : "");
}

// ---- on a device ----------------------------------------------------------------------------------------------------------
static dt_status make_memory(Run *r, RankArgs *a, dt_rank *rank) {
  int index = dt_rank_index(rank);
  for (int i = 0; i < a->n; i++) {
    CliValue *v = &a->v[i];
    if (!is_tensor(v)) continue;
    size_t bytes = bytes_of(v) ? bytes_of(v) : 1;
    dt_status st = v->symmetric ? dt_symm_alloc(rank, bytes, v->name, &a->memory[i])
                                : dt_alloc(rank, bytes, &a->memory[i]);
    if (st != DT_OK) return st;
    if (!cli_fill(v, index, (uint64_t)r->seed, a->memory[i]))
      return dt_context_fail(r->context, DT_IO, "a tensor could not be filled");
  }
  return DT_OK;
}

static dt_status launch(Run *r, RankArgs *a, dt_rank *rank, const dt_image *image) {
  dt_kernel *k = NULL;
  dt_stream *s = NULL;
  dt_status st = dt_kernel_load(rank, image, NULL, &k);
  if (st == DT_OK) st = dt_stream_create(rank, "run", &s);
  dt_status agreed = dt_agree(rank, st);
  if (st == DT_OK) st = agreed;
  if (st == DT_OK) {
    dt_value values[MOST_ARGS];
    dt_kernel_info info;
    dt_kernel_query(k, &info);
    for (size_t i = 0; i < info.nargs; i++) {
      const char *name = dt_kernel_arg_name(k, i);
      values[i] = a->named[find(a, name, strlen(name))].value;
    }
    uint64_t start = cli_now_ns();
    st = dt_launch(k, s, r->grid, values, info.nargs);
    if (st == DT_OK) st = dt_stream_sync(s);
    if (dt_rank_index(rank) == 0) r->run_ns = cli_now_ns() - start;
  }
  dt_stream_destroy(s);
  dt_kernel_destroy(k);
  return st;
}

static dt_status run_rank(dt_rank *rank, void *user) {
  Run *r = user;
  int index = dt_rank_index(rank);
  RankArgs *a = calloc(1, sizeof *a);
  dt_image *image = NULL;
  dt_status st = a && parse_values(r, a, index)
                     ? DT_OK
                     : dt_context_fail(r->context, DT_INVALID, "an argument is malformed");
  dt_status agreed = dt_agree(rank, st);
  if (st == DT_OK) st = agreed;
  if (st == DT_OK) st = make_memory(r, a, rank);
  if (st == DT_OK) {
    name_values(a);
    uint64_t start = cli_now_ns();
    st = dt_compile_file(r->context, r->file, r->kernel, a->named, (size_t)a->n, &r->compile, &image);
    if (index == 0) r->compile_ns = cli_now_ns() - start;
  }
  agreed = dt_agree(rank, st);
  if (st == DT_OK) st = agreed;
  if (st == DT_OK) {
    st = launch(r, a, rank, image);
    agreed = dt_agree(rank, st); // peers may still be writing to this rank
    if (st == DT_OK) st = agreed;
  }
  if (st == DT_OK && !write_outs(r, a, index))
    st = dt_context_fail(r->context, DT_IO, "an output could not be written");
  if (st == DT_OK && index == 0 && !r->quiet) {
    printf("%s: grid %ux%ux%u on %d rank%s: compiled in %.1f ms, ran in %.3f ms\n",
           dt_image_kernel_name(image, 0), r->grid[0], r->grid[1], r->grid[2],
           dt_team_size(dt_rank_team(rank)), dt_team_size(dt_rank_team(rank)) > 1 ? "s" : "",
           r->compile_ns / 1e6, r->run_ns / 1e6);
    for (int i = 0; i < a->n && r->outs.n == 0; i++)
      if (is_tensor(&a->v[i])) show_tensor(&a->v[i], a->memory[i]);
  }
  dt_image_destroy(image);
  free(a); // tensors go with the team
  return st;
}

static int on_devices(Run *r) {
  dt_team *team = NULL;
  dt_team_options o = {.size = sizeof o,
                       .local_ranks = (int)r->ranks,
                       .from_environment = r->ranks == 0,
                       .threads_per_rank = (int)r->threads,
                       .trace = r->traces.n > 0};
  dt_status st = dt_team_create(r->context, &o, &team);
  if (st != DT_OK) return cli_failed(r->context, "team", st);
  st = dt_team_run(team, run_rank, r);
  int code = st == DT_OK ? 0 : cli_failed(r->context, r->file, st);
  if (!cli_write_traces(r->context, team, &r->traces)) code = 1;
  dt_team_destroy(team);
  return code;
}

// ---- on the interpreter -----------------------------------------------------------------------------------------------------
static void print_line(void *user, int rank, const char *line) {
  (void)user;
  printf("[%d] %s\n", rank, line);
}

static int on_interpreter(Run *r) {
  int ranks = r->ranks ? (int)r->ranks : 1, nmemory = 0, code = 1;
  RankArgs *all = calloc((size_t)ranks, sizeof *all);
  dt_interp_memory *memory = calloc((size_t)ranks * MOST_ARGS, sizeof *memory);
  const dt_named **named = calloc((size_t)ranks, sizeof *named);
  if (!all || !memory || !named) return cli_fail("out of memory");
  for (int k = 0; k < ranks; k++) {
    RankArgs *a = &all[k];
    if (!parse_values(r, a, k)) goto done;
    int segment = 0;
    for (int i = 0; i < a->n; i++) {
      CliValue *v = &a->v[i];
      if (!is_tensor(v)) continue;
      size_t bytes = (bytes_of(v) + 63) / 64 * 64 + 64;
      if (!(a->memory[i] = aligned_alloc(64, bytes))) {
        cli_fail("%s: out of memory", v->name);
        goto done;
      }
      memset(a->memory[i], 0, bytes);
      if (!cli_fill(v, k, (uint64_t)r->seed, a->memory[i])) goto done;
      memory[nmemory++] = (dt_interp_memory){.base = a->memory[i],
                                             .bytes = bytes_of(v),
                                             .name = v->name,
                                             .rank = k,
                                             .segment = v->symmetric ? segment++ : -1,
                                             .initialised = !v->fill || strcmp(v->fill, "empty") != 0};
    }
    name_values(a);
    named[k] = a->named;
  }
  dt_interp_options o = {.size = sizeof o,
                         .ranks = ranks,
                         .seed = (uint64_t)r->seed,
                         .check = r->check,
                         .memory = memory,
                         .nmemory = (size_t)nmemory,
                         .print = print_line};
  uint64_t start = cli_now_ns();
  dt_status st =
      dt_interp_file(r->context, r->file, r->kernel, r->grid, named, (size_t)all[0].n, &r->compile, &o);
  if (st != DT_OK) {
    fputs(dt_error(r->context), stderr);
    goto done;
  }
  code = 0;
  for (int k = 0; k < ranks && code == 0; k++) code = write_outs(r, &all[k], k) ? 0 : 1;
  if (code == 0 && !r->quiet) {
    printf("%s: grid %ux%ux%u on %d rank%s, interpreted%s in %.1f ms\n", r->kernel ? r->kernel : r->file,
           r->grid[0], r->grid[1], r->grid[2], ranks, ranks > 1 ? "s" : "",
           r->check ? " and checked: nothing found," : "", (cli_now_ns() - start) / 1e6);
    for (int i = 0; i < all[0].n && r->outs.n == 0; i++)
      if (is_tensor(&all[0].v[i])) show_tensor(&all[0].v[i], all[0].memory[i]);
  }
done:
  for (int k = 0; k < ranks; k++)
    for (int i = 0; i < all[k].n; i++) free(all[k].memory[i]);
  free(all);
  free(memory);
  free(named);
  return code;
}

// ---- the command ----------------------------------------------------------------------------------------------------------------
static bool parse_grid(const char *text, uint32_t grid[3]) {
  grid[0] = grid[1] = grid[2] = 1;
  for (int i = 0; i < 3; i++) {
    char *end;
    long long v = strtoll(text, &end, 10);
    if (end == text || v < 0 || v > UINT32_MAX) return false;
    grid[i] = (uint32_t)v;
    if (!*end) return true;
    if (*end != ',') return false;
    text = end + 1;
  }
  return false;
}

int cmd_run(int argc, char **argv) {
  Run r = {.seed = 0};
  const char *grid = NULL;
  CliList rest = {0};
  const CliOption options[] = {
      {"--grid", "X[,Y[,Z]]", CLI_TEXT, &grid, 0, 0, "instances along each axis"},
      {"--ranks", "N", CLI_INT, &r.ranks, 1, 256,
       "ranks, as threads of this process (default: those of the job, else 1)"},
      {"--target", "T", CLI_TEXT, &r.target, 0, 0, "host (default), x86-64, x86-64-v4, or interp"},
      {"--warps", "W", CLI_INT, &r.warps, 1, 32, "warps of an instance (4)"},
      {"--stages", "S", CLI_INT, &r.stages, 1, 16, "pipeline stages of loops (2)"},
      {"--threads", "T", CLI_INT, &r.threads, 1, 1024, "worker threads of a rank (cores / ranks)"},
      {"--interp", NULL, CLI_FLAG, &r.interp, 0, 0, "run on the interpreter"},
      {"--check", NULL, CLI_FLAG, &r.check, 0, 0,
       "run on the interpreter and report races, hangs and bad accesses"},
      {"--seed", "S", CLI_INT, &r.seed, 0, INT64_MAX,
       "of random values and of the interpreter's schedule (0)"},
      {"--deadline", "SECONDS", CLI_NUMBER, &r.deadline, 0, 0, "longest time of a wait (30)"},
      {"--trace", "FILE", CLI_LIST, &r.traces, 0, 0,
       "write a timeline: .json (Perfetto) or .svg (again for both)"},
      {"--explain", NULL, CLI_FLAG, &r.explain, 0, 0, "say what the compiler did, and why not more"},
      {"--quiet", NULL, CLI_FLAG, &r.quiet, 0, 0, "print results only to --out files"},
      {"--out", "NAME=FILE.npy", CLI_LIST, &r.outs, 0, 0,
       "write a tensor after the run; {rank} in the name: every rank"},
  };
  int over = cli_parse("run", options, sizeof options / sizeof options[0], argc, argv, &rest);
  if (over) return over - 1;
  if (rest.n < 1) return cli_usage("run", "which file?");
  if (!grid || !parse_grid(grid, r.grid))
    return cli_usage("run", "--grid X[,Y[,Z]] says how many instances to run");
  if (rest.n - 1 > MOST_ARGS) return cli_usage("run", "more than %d arguments", MOST_ARGS);
  char *file = strdup(rest.v[0]), *colon = strrchr(file, ':');
  if (colon && !strchr(colon, '/')) {
    *colon = 0;
    r.kernel = colon + 1;
  }
  r.file = file;
  r.values = (CliList){rest.v + 1, rest.n - 1};
  if (r.target && strcmp(r.target, "interp") == 0) {
    r.interp = true;
    r.target = NULL;
  }
  r.compile = (dt_compile_options){.size = sizeof r.compile,
                                   .target = r.target,
                                   .num_warps = (int)r.warps,
                                   .num_stages = (int)r.stages,
                                   .explain = r.explain};
  RankArgs *probe = calloc(1, sizeof *probe);
  if (!probe) return cli_fail("out of memory");
  bool ok = parse_values(&r, probe, 0) && check_outs(&r, probe);
  free(probe);
  if (!ok) return 2;
  dt_context_options co = {
      .size = sizeof co, .deadline_seconds = r.deadline > 0 ? r.deadline : 30, .print = print_line};
  dt_status st = dt_context_create(&co, &r.context);
  if (st != DT_OK) return cli_failed(NULL, "start", st);
  int code = r.interp || r.check ? on_interpreter(&r) : on_devices(&r);
  cli_remarks(r.context);
  dt_context_destroy(r.context);
  free(file);
  return code;
}
