// ditron run: compiles a kernel and runs it on the ranks of this process, as one rank of a job, or on the interpreter.
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARGS = 96 };

typedef struct Run {
  dt_context *context;
  const char *file, *kernel;
  uint32_t grid[3];
  int64_t ranks, seed, warps, stages, registers, threads;
  double deadline;
  const char *target, *device, *stage;
  bool interp, check, explain, quiet, gpu;
  CliList values, outs, traces;
  dt_compile_options compile;
  struct RankArgs *args;       // of the ranks in this process
  int first, local, world;     // their numbers: first ... first + local - 1 of world
  uint64_t compile_ns, run_ns; // of rank 0
  CliProgress bar;
} Run;

typedef struct RankArgs { // one rank's values, with memory
  CliValue v[MOST_ARGS];
  void *memory[MOST_ARGS]; // on the rank's device
  void *host[MOST_ARGS];   // the same values where this program reads them: the same memory, but on a GPU
  dt_desc desc[MOST_ARGS];
  dt_named named[MOST_ARGS];
  int n;
} RankArgs;

static size_t bytes_of(const CliValue *v) { return v->tensor.count * dt_dtype_bytes(v->dtype); }

// The values of all ranks of this process, without memory.
static dt_status parse_values(Run *r) {
  for (int k = 0; k < r->local; k++) {
    RankArgs *a = &r->args[k];
    for (a->n = 0; a->n < r->values.n;) {
      dt_status st = cli_value(r->context, r->values.v[a->n], r->first + k, &a->v[a->n]);
      a->n++;
      if (st != DT_OK) return st;
    }
  }
  return DT_OK;
}

// Memory that cannot be there is refused before its pages are touched.
static dt_status check_sizes(Run *r, size_t *symmetric) {
  uint64_t all = 0, shared = 0, most = cli_free_bytes();
  for (int k = 0; k < r->local; k++) {
    uint64_t sym = 0;
    for (int i = 0; i < r->args[k].n; i++) {
      const CliValue *v = &r->args[k].v[i];
      if (!cli_is_tensor(v)) continue;
      all += bytes_of(v);
      if (v->symmetric) sym += bytes_of(v) + 4096;
      if (bytes_of(v) > most)
        return cli_no(r->context, DT_NO_MEMORY, "%.60s=%.200s needs %.4g GiB; this machine has %.4g GiB free",
                      v->name, v->text, (double)bytes_of(v) / 0x1p30, (double)most / 0x1p30);
    }
    if (sym > shared) shared = sym;
  }
  if (all > most)
    return cli_no(r->context, DT_NO_MEMORY,
                  "the tensors of %d rank%s need %.4g GiB; this machine has %.4g GiB free", r->local,
                  r->local > 1 ? "s" : "", (double)all / 0x1p30, (double)most / 0x1p30);
  const uint64_t usual = 256 << 20, own = 1 << 20; // some is for the team itself
  *symmetric = shared + own > usual ? (size_t)(shared + own) : 0;
  return DT_OK;
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

static bool check_outs(const Run *r) {
  for (int i = 0; i < r->outs.n; i++) {
    const char *equals = strchr(r->outs.v[i], '=');
    if (!equals || !equals[1])
      return cli_usage("run", "--out takes NAME=FILE.npy, not '%s'", r->outs.v[i]), false;
    int at = find(r->args, r->outs.v[i], (size_t)(equals - r->outs.v[i]));
    if (at < 0 || !cli_is_tensor(&r->args->v[at]))
      return cli_usage("run", "--out %s: no tensor argument of that name", r->outs.v[i]), false;
  }
  return true;
}

static dt_status write_outs(Run *r, const RankArgs *a, int rank) {
  for (int i = 0; i < r->outs.n; i++) {
    const char *equals = strchr(r->outs.v[i], '=');
    if (rank > 0 && !strstr(equals, "{rank}")) continue;
    int at = find(a, r->outs.v[i], (size_t)(equals - r->outs.v[i]));
    char *path = cli_with_rank(equals + 1, rank);
    dt_status st = npy_write(r->context, path, &a->v[at].tensor, a->host[at]);
    free(path);
    if (st != DT_OK) return st;
  }
  return DT_OK;
}

static void show_tensors(const Run *r, const RankArgs *a) { // rank 0's
  if (r->outs.n) return;
  if (r->world > 1) printf("  on rank 0:\n");
  for (int i = 0; i < a->n; i++)
    if (cli_is_tensor(&a->v[i])) cli_show_tensor(&a->v[i], a->host[i]);
}

// ---- on a device ----------------------------------------------------------------------------------------------------------
static dt_status make_memory(Run *r, RankArgs *a, dt_rank *rank) {
  dt_status st = DT_OK;
  for (int symmetric = 1; symmetric >= 0;
       symmetric--) { // what is collective comes first: no rank may leave before it
    for (int i = 0; i < a->n && st == DT_OK; i++) {
      const CliValue *v = &a->v[i];
      if (!cli_is_tensor(v) || v->symmetric != symmetric) continue;
      size_t bytes = bytes_of(v) ? bytes_of(v) : 1;
      st = symmetric ? dt_symm_alloc(rank, bytes, v->name, &a->memory[i])
                     : dt_alloc(rank, bytes, &a->memory[i]);
      if (st != DT_OK) break;
      a->host[i] = r->gpu ? malloc(bytes) : a->memory[i];
      if (!a->host[i]) st = cli_no(r->context, DT_NO_MEMORY, "%s: out of memory", v->name);
    }
  }
  for (int i = 0; i < a->n && st == DT_OK; i++)
    if (cli_is_tensor(&a->v[i]))
      st = cli_fill(r->context, &a->v[i], dt_rank_index(rank), (uint64_t)r->seed, a->host[i]);
  return st;
}

static void free_memory(const Run *r, RankArgs *a, dt_rank *rank) {
  for (int i = 0; i < a->n; i++) {
    if (!cli_is_tensor(&a->v[i])) continue;
    if (r->gpu) free(a->host[i]);
    if (!a->v[i].symmetric) dt_free(rank, a->memory[i]); // what is symmetric goes with the team
  }
}

// All tensors to the device, or back.
static dt_status move(const Run *r, RankArgs *a, dt_stream *s, bool back) {
  dt_status st = DT_OK;
  for (int i = 0; i < a->n && r->gpu && st == DT_OK; i++) {
    if (!cli_is_tensor(&a->v[i])) continue;
    st = dt_copy(s, back ? a->host[i] : a->memory[i], back ? a->memory[i] : a->host[i], bytes_of(&a->v[i]));
  }
  return st == DT_OK && r->gpu ? dt_stream_sync(s) : st;
}

static dt_status launch(Run *r, RankArgs *a, dt_rank *rank, const dt_image *image) {
  dt_kernel *k = NULL;
  dt_stream *s = NULL;
  dt_status st = dt_kernel_load(rank, image, NULL, &k);
  if (st == DT_OK) st = dt_stream_create(rank, "run", &s);
  if (st == DT_OK) st = move(r, a, s, false);
  dt_status agreed = dt_agree(rank, st);
  if (st == DT_OK) st = agreed;
  if (st == DT_OK) {
    dt_value values[MOST_ARGS];
    dt_kernel_info info;
    dt_kernel_query(k, &info);
    for (size_t i = 0; i < info.nargs && i < MOST_ARGS; i++) {
      const char *name = dt_kernel_arg_name(k, i);
      int at = find(a, name, strlen(name));
      values[i] = at < 0 ? dt_none() : a->named[at].value;
    }
    cli_working(&r->bar, "running");
    uint64_t start = cli_now_ns();
    st = dt_launch(k, s, r->grid, values, info.nargs);
    if (st == DT_OK) st = dt_stream_sync(s);
    if (dt_rank_index(rank) == 0) r->run_ns = cli_now_ns() - start;
    if (r->explain && *dt_kernel_passed_over(k))
      fprintf(stderr, "remark: rank %d launched a variant behind the first: %s\n", dt_rank_index(rank),
              dt_kernel_passed_over(k));
    if (st == DT_OK) st = move(r, a, s, true);
  }
  dt_stream_destroy(s);
  dt_kernel_destroy(k);
  return st;
}

static dt_status run_rank(dt_rank *rank, void *user) {
  Run *r = user;
  int index = dt_rank_index(rank);
  RankArgs *a = &r->args[index - r->first];
  dt_image *image = NULL;
  dt_status st = make_memory(r, a, rank);
  if (st == DT_OK) {
    name_values(a);
    uint64_t start = cli_now_ns();
    st = dt_compile_file(r->context, r->file, r->kernel, a->named, (size_t)a->n, &r->compile, &image);
    if (index == 0) r->compile_ns = cli_now_ns() - start;
  }
  dt_status agreed = dt_agree(rank, st);
  if (st == DT_OK) st = agreed;
  if (st == DT_OK) {
    st = launch(r, a, rank, image);
    agreed = dt_agree(rank, st); // peers may still be writing to this rank
    if (st == DT_OK) st = agreed;
  }
  if (st == DT_OK) st = write_outs(r, a, index);
  if (st == DT_OK && index == 0) {
    cli_progress_end(&r->bar);
    if (!r->quiet) {
      printf("%s: grid %ux%ux%u on %d rank%s: compiled in %.1f ms, ran in %.3f ms\n",
             dt_image_kernel_name(image, 0), r->grid[0], r->grid[1], r->grid[2], r->world,
             r->world > 1 ? "s" : "", (double)r->compile_ns / 1e6, (double)r->run_ns / 1e6);
      show_tensors(r, a);
    }
  }
  dt_image_destroy(image);
  free_memory(r, a, rank);
  return st;
}

// A kernel whose index is out of bounds may end here. The process cannot go on, but it can say what to do.
static void on_fault(int signal) {
  static const char text[] =
      "ditron: the kernel used memory that is not its own; `ditron run --check` says where\n";
  (void)signal;
  (void)!write(2, text, sizeof text - 1);
  _exit(1);
}

static void catch_faults(void) {
#ifndef __SANITIZE_ADDRESS__ // which has more to say
  struct sigaction act = {.sa_handler = on_fault, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGSEGV, &act, NULL);
  sigaction(SIGBUS, &act, NULL);
  sigaction(SIGABRT, &act, NULL); // the C library finds its heap overwritten
#endif
}

static int on_devices(Run *r, size_t symmetric) {
  dt_team *team = NULL;
  dt_team_options o = {.size = sizeof o,
                       .local_ranks = (int)r->ranks,
                       .from_environment = r->ranks == 0,
                       .device = r->device,
                       .threads_per_rank = (int)r->threads,
                       .symmetric_bytes = symmetric,
                       .trace = r->traces.n > 0};
  dt_status st = dt_team_create(r->context, &o, &team);
  if (st != DT_OK) return cli_failed(r->context, NULL, st);
  catch_faults();
  cli_working(&r->bar, "compiling");
  st = dt_team_run(team, run_rank, r);
  cli_progress_end(&r->bar);
  const bool shared =
      st == DT_DEADLINE || st == DT_ASSERT || st == DT_PEER_LOST; // all ranks have the same report
  int code = 0;
  if (shared && !dt_team_speaks(team))
    code = cli_fail("rank %d stopped too (%s); see the report of all ranks", r->first, dt_status_name(st));
  else if (st != DT_OK)
    code = cli_failed(r->context, NULL, st);
  if (code == 0 && !cli_write_traces(r->context, team, &r->traces)) code = 1;
  dt_team_destroy(team);
  return code;
}

// ---- on the interpreter -----------------------------------------------------------------------------------------------------
// The name of the kernel that runs: the only one of its file where none was given.
static const char *kernel_name(Run *r, char *text, size_t cap) {
  if (r->kernel) return r->kernel;
  if (dt_list_kernels(r->context, r->file, text, cap) != DT_OK) return r->file;
  text[strcspn(text, "(\n")] = 0;
  return text;
}

static dt_status interp_memory(Run *r, dt_interp_memory *memory, size_t *n) {
  for (int k = 0; k < r->local; k++) {
    RankArgs *a = &r->args[k];
    int segment = 0;
    for (int i = 0; i < a->n; i++) {
      const CliValue *v = &a->v[i];
      if (!cli_is_tensor(v)) continue;
      size_t bytes = (bytes_of(v) + 63) / 64 * 64 + 64;
      if (!(a->memory[i] = aligned_alloc(64, bytes)))
        return cli_no(r->context, DT_NO_MEMORY, "%s: out of memory", v->name);
      memset(a->memory[i], 0, bytes);
      a->host[i] = a->memory[i];
      dt_status st = cli_fill(r->context, v, k, (uint64_t)r->seed, a->memory[i]);
      if (st != DT_OK) return st;
      memory[(*n)++] = (dt_interp_memory){.base = a->memory[i],
                                          .bytes = bytes_of(v),
                                          .name = v->name,
                                          .rank = k,
                                          .segment = v->symmetric ? segment++ : -1,
                                          .initialised = !v->fill || strcmp(v->fill, "empty") != 0};
    }
    name_values(a);
  }
  return DT_OK;
}

static int on_interpreter(Run *r) {
  dt_interp_memory *memory = calloc((size_t)r->local * MOST_ARGS, sizeof *memory);
  const dt_named **named = calloc((size_t)r->local, sizeof *named);
  if (!memory || !named) abort();
  for (int k = 0; k < r->local; k++) named[k] = r->args[k].named;
  dt_interp_options o = {.size = sizeof o,
                         .ranks = r->local,
                         .seed = (uint64_t)r->seed,
                         .check = r->check,
                         .memory = memory,
                         .print = cli_print_line,
                         .stage = r->stage};
  dt_status st = interp_memory(r, memory, &o.nmemory);
  uint64_t start = cli_now_ns();
  cli_working(&r->bar, r->check ? "checking" : "interpreting");
  if (st == DT_OK)
    st = dt_interp_file(r->context, r->file, r->kernel, r->grid, named, (size_t)r->args->n, &r->compile, &o);
  double ms = (double)(cli_now_ns() - start) / 1e6;
  cli_progress_end(&r->bar);
  for (int k = 0; k < r->local && st == DT_OK; k++) st = write_outs(r, &r->args[k], k);
  int code = st == DT_OK ? 0 : cli_failed(r->context, NULL, st);
  if (code == 0 && !r->quiet) {
    char text[4096];
    printf("%s: grid %ux%ux%u on %d rank%s, interpreted%s in %.1f ms\n", kernel_name(r, text, sizeof text),
           r->grid[0], r->grid[1], r->grid[2], r->local, r->local > 1 ? "s" : "",
           r->check ? " and checked: nothing found," : "", ms);
    show_tensors(r, r->args);
  }
  for (int k = 0; k < r->local; k++)
    for (int i = 0; i < r->args[k].n; i++) free(r->args[k].memory[i]);
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

// What the device is compiled for where the caller does not say; a device that is not there is refused later, with the reason.
static void choose_target(Run *r, dt_device *d) {
  r->gpu = r->device && strncmp(r->device, "cuda", 4) == 0;
  for (size_t i = 0; r->gpu && !r->target && dt_device_info(r->context, i, d); i++) {
    if (d->usable && (strcmp(d->name, r->device) == 0 ||
                      (strcmp(r->device, "cuda") == 0 && strcmp(d->name, "cuda:0") == 0)))
      r->compile.target = d->target;
  }
}

static int run(Run *r) {
  dt_device device;
  if (!r->interp) choose_target(r, &device);
  r->local = r->world = r->ranks ? (int)r->ranks : 1;
  const char *launcher;
  size_t symmetric = 0;
  dt_status st = DT_OK;
  if (!r->ranks && !r->interp) st = dt_job(r->context, &r->first, &r->world, &launcher);
  if (st != DT_OK) return cli_failed(r->context, NULL, st);
  r->args = calloc((size_t)r->local, sizeof *r->args);
  if (!r->args) abort();
  int code = 0;
  if ((st = parse_values(r)) == DT_OK) {
    if (!check_outs(r))
      code = 2;
    else
      st = check_sizes(r, &symmetric);
  }
  if (st != DT_OK) {
    cli_failed(r->context, NULL, st);
    code = st == DT_INVALID ? 2 : 1;
  }
  if (code == 0) code = r->interp ? on_interpreter(r) : on_devices(r, symmetric);
  for (int k = 0; k < r->local; k++)
    for (int i = 0; i < r->args[k].n; i++) cli_value_free(&r->args[k].v[i]);
  free(r->args);
  return code;
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
      {"--device", "D", CLI_TEXT, &r.device, 0, 0, "cpu (default), cuda, or cuda:1 and so on"},
      {"--warps", "W", CLI_INT, &r.warps, 1, 32, "warps of an instance (4)"},
      {"--stages", "S", CLI_INT, &r.stages, 1, 16, "pipeline stages of loops (2)"},
      {"--maxnreg", "R", CLI_INT, &r.registers, 24, 255, "registers of a thread of a GPU at most"},
      {"--threads", "T", CLI_INT, &r.threads, 1, 1024, "worker threads of a rank (cores / ranks)"},
      {"--interp", NULL, CLI_FLAG, &r.interp, 0, 0, "run on the interpreter"},
      {"--stage", "S", CLI_TEXT, &r.stage, 0, 0,
       "of the IR, for the interpreter: tile (default), placed (CPU), laid or lowered (GPU)"},
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
  if (!grid) return cli_usage("run", "--grid X[,Y[,Z]] says how many instances to run");
  if (!parse_grid(grid, r.grid))
    return cli_usage("run", "--grid takes X[,Y[,Z]], each from 0 to %u, not '%s'", UINT32_MAX, grid);
  if (rest.n - 1 > MOST_ARGS) return cli_usage("run", "more than %d arguments", MOST_ARGS);
  if (r.target && strcmp(r.target, "interp") == 0) {
    r.interp = true;
    r.target = NULL;
  }
  r.interp |= r.check || r.stage;
  if (!cli_traces_named("run", &r.traces)) return 2;
  if (r.interp && r.traces.n)
    return cli_usage("run", "--trace needs a run without --interp and --check: they keep no time");
  char *file;
  cli_split_kernel(rest.v[0], &file, &r.kernel);
  r.file = file;
  r.values = (CliList){rest.v + 1, rest.n - 1};
  r.compile = (dt_compile_options){.size = sizeof r.compile,
                                   .target = r.target,
                                   .num_warps = (int)r.warps,
                                   .num_stages = (int)r.stages,
                                   .max_registers = (int)r.registers,
                                   .explain = r.explain};
  if (!(r.context = cli_start(r.deadline, NULL))) return 1;
  int code = run(&r);
  cli_remarks(r.context);
  dt_context_destroy(r.context);
  free(file);
  free(rest.v);
  free(r.outs.v);
  free(r.traces.v);
  return code;
}
