// Kernels on the interpreter: one launch on each rank, the checker where asked.
#include "api/compile_impl.h"

#include <string.h>

typedef struct InterpArgs {
  const char *path, *kernel;
  const uint32_t *grid;
  const dt_named *const *args_of_rank;
  size_t nargs;
  const dt_compile_options *o;
  const dt_interp_options *interp;
} InterpArgs;

static const dt_value *value_of(const dt_named *args, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(args[i].name, name) == 0) return &args[i].value;
  return NULL;
}

static InterpArg to_arg(Arena *a, const dt_value *v) {
  InterpArg x = {.i = 0};
  switch (v->kind) {
  case DT_VALUE_PTR: x.p = v->u.ptr; break;
  case DT_VALUE_FLOAT: x.f = v->u.f; break;
  case DT_VALUE_DESC: {
    InterpDesc *d = arena_new(a, InterpDesc);
    d->base = v->u.desc->base;
    d->rank = v->u.desc->rank;
    memcpy(d->shape, v->u.desc->shape, sizeof d->shape);
    memcpy(d->strides, v->u.desc->strides, sizeof d->strides);
    x.desc = d;
    break;
  }
  default: x.i = v->u.i; break;
  }
  return x;
}

// The interpreter's arguments of one rank, in the order of the kernel's run-time parameters.
static Status rank_args(Compile *c, const IrFunc *f, const dt_named *args, size_t n, int rank,
                        InterpArg **out) {
  *out = arena_array(&c->call->arena, InterpArg, f->params.len + 1);
  for (uint32_t i = 0; i < f->params.len; i++) {
    const char *name = f->params.data[i].name->s;
    const dt_value *v = value_of(args, n, name), *first = value_of(c->args, c->nargs, name);
    if (!v || !first || v->kind != first->kind || v->dtype != first->dtype) {
      diag(&c->call->diags, DIAG_ERROR, LOC_NONE, "rank %d: '%s' is of another kind or type than on rank 0",
           rank, name);
      return ST_INVALID;
    }
    (*out)[i] = to_arg(&c->call->arena, v);
  }
  // What the compiler built in must be the same on every rank.
  for (int i = 0; i < c->nspecs; i++) {
    const FrontSpec *s = &c->specs[i];
    const dt_value *v = value_of(args, n, s->name);
    if (s->kind != FRONT_CONST || s->value.kind != FCONST_INT || !v || v->u.i == s->value.i) continue;
    diag(&c->call->diags, DIAG_ERROR, LOC_NONE, "'%s' is %lld on rank 0 and %lld on rank %d", s->name,
         (long long)s->value.i, (long long)v->u.i, rank);
    diag_hint(&c->call->diags,
              "values that differ between ranks must be run-time arguments, and none of them 1");
    return ST_INVALID;
  }
  return ST_OK;
}

static void report(Compile *c, const InterpResult *r) {
  Diags *d = &c->call->diags;
  for (int i = 0; i < r->nfindings; i++) {
    const InterpFinding *f = &r->findings[i];
    diag(d, DIAG_ERROR, f->here, "%s: %s", interp_fault_names[f->fault], f->text);
    if (f->other.line) diag(d, DIAG_NOTE, f->other, "the other access");
  }
}

// The passes from the tile stage to the stage asked for; NULL: no such stage.
static const char *passes_to(const char *stage) {
  static const struct {
    const char *stage;
    PassTarget target;
  } stages[] = {{"tile", PASS_INTERP}, {"placed", PASS_CPU}, {"laid", PASS_LAID}, {"lowered", PASS_GPU}};
  for (size_t i = 0; i < DT_COUNTOF(stages); i++)
    if (strcmp(stage ? stage : "tile", stages[i].stage) == 0) return pass_order(stages[i].target);
  return NULL;
}

static Status interp(ApiCall *call, void *user) {
  InterpArgs *in = user;
  const dt_interp_options *o = in->interp;
  Arena *a = &call->arena;
  Compile c;
  Status s;
  if (o->size != sizeof *o || o->ranks < 1) {
    diag(&call->diags, DIAG_ERROR, LOC_NONE, "dt_interp_options: size and ranks must be set");
    return ST_INVALID;
  }
  const char *passes = passes_to(o->stage);
  if (!passes) {
    diag(&call->diags, DIAG_ERROR, LOC_NONE, "the IR has no stage '%s'", o->stage);
    diag_hint(&call->diags, "stages: tile, placed, laid, lowered");
    return ST_INVALID;
  }
  if ((s = compile_begin(&c, call, in->path, NULL, 0, in->kernel, in->args_of_rank[0], in->nargs, in->o)) !=
          ST_OK ||
      (s = compile_specs(&c)) != ST_OK || (s = compile_front(&c)) != ST_OK)
    return s;
  // The stages of a GPU: of the one that the options name, else of a Hopper.
  PassMachine machine = {.vector_bits = 256, .wgmma = true, .tma = true};
  if (compile_passes(&c) == PASS_GPU && (s = compile_machine(&c, &machine)) != ST_OK) return s;
  PassConfig config = {.machine = &machine, .diags = &call->diags, .verify = true, .explain = c.o.explain};
  if ((s = pass_run_named(c.module, passes, &config)) != ST_OK) return s;
  IrFunc *kernel = c.module->funcs;
  while (kernel && !kernel->is_kernel) kernel = kernel->next;
  InterpMemory *memory = arena_array(a, InterpMemory, o->nmemory + 1);
  for (size_t i = 0; i < o->nmemory; i++)
    memory[i] = (InterpMemory){.base = o->memory[i].base,
                               .bytes = o->memory[i].bytes,
                               .name = o->memory[i].name,
                               .rank = o->memory[i].rank,
                               .segment = o->memory[i].segment,
                               .initialised = o->memory[i].initialised};
  InterpCmd *cmds = arena_array(a, InterpCmd, o->ranks);
  for (int r = 0; r < o->ranks; r++) {
    InterpArg *args;
    if ((s = rank_args(&c, kernel, in->args_of_rank[r], in->nargs, r, &args)) != ST_OK) return s;
    cmds[r] = (InterpCmd){.kind = INTERP_LAUNCH, .rank = r, .func = kernel, .args = args};
    memcpy(cmds[r].grid, in->grid, sizeof cmds[r].grid);
  }
  InterpConfig config2 = {.arena = a,
                          .module = c.module,
                          .ranks = o->ranks,
                          .memory = memory,
                          .nmemory = (int)o->nmemory,
                          .cmds = cmds,
                          .ncmds = o->ranks,
                          .seed = o->seed,
                          .max_steps = o->max_steps,
                          .check = o->check,
                          .print = o->print,
                          .user = o->user};
  InterpResult result = {0};
  s = interp_run(&config2, &result);
  report(&c, &result);
  return s != ST_OK ? s : result.status;
}

dt_status dt_interp_file(dt_context *c, const char *path, const char *kernel, const uint32_t grid[3],
                         const dt_named *const *args_of_rank, size_t nargs, const dt_compile_options *options,
                         const dt_interp_options *interp_options) {
  dt_status st = api_need(c, "dt_interp_file", "path", path);
  if (st == DT_OK) st = api_need(c, "dt_interp_file", "grid", grid);
  if (st == DT_OK) st = api_need(c, "dt_interp_file", "args_of_rank", args_of_rank);
  if (st == DT_OK) st = api_need(c, "dt_interp_file", "interp_options", interp_options);
  if (st != DT_OK) return st;
  InterpArgs in = {path, kernel, grid, args_of_rank, nargs, options, interp_options};
  return api_call(c, interp, &in);
}
