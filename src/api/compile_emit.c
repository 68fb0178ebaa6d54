// Texts of the compiler for people: stages of one compile, lists of kernels, passes over IR text.
#include "api/compile_impl.h"

#include <stdio.h>
#include <string.h>

typedef struct EmitArgs {
  const char *path, *kernel, *stage;
  const dt_named *args;
  size_t nargs;
  const dt_compile_options *o;
  const char **out;
} EmitArgs;

typedef struct DumpTo { // the IR after one pass, or after each
  Arena *arena;
  const char *pass; // NULL: all
  char *text;
} DumpTo;

static void dump(void *user, const char *pass, const IrModule *m) {
  DumpTo *to = user;
  if (to->pass && strcmp(to->pass, pass) != 0) return;
  char *ir = ir_print(m, to->arena);
  to->text =
      to->pass ? ir : arena_printf(to->arena, "%s// ---- after %s\n%s\n", to->text ? to->text : "", pass, ir);
}

static Status keep(ApiCall *call, const char *text, const char **out) {
  *out = api_keep_text(call->context, text);
  return *out ? ST_OK : ST_NO_MEMORY;
}

static bool known_pass(const char *name) {
  for (int i = 0; i < pass_count; i++)
    if (strcmp(pass_infos[i].name, name) == 0) return true;
  return false;
}

// The passes of a target in their order, each once.
static const char *pass_names(Arena *a, PassTarget t) {
  const char *order = pass_order(t), *names = "";
  for (size_t at = 0, n; order[at]; at += n + (order[at + n] == ',')) {
    n = strcspn(order + at, ",");
    bool again = false;
    for (size_t p = 0, m; p < at && !again; p += m + 1) {
      m = strcspn(order + p, ",");
      again = m == n && memcmp(order + p, order + at, n) == 0;
    }
    if (!again) names = arena_printf(a, "%s%s%.*s", names, *names ? ", " : "", (int)n, order + at);
  }
  return names;
}

static Status emit(ApiCall *call, void *user) {
  EmitArgs *e = user;
  Arena *a = &call->arena;
  Diags *d = &call->diags;
  Compile c;
  Status s = compile_begin(&c, call, e->path, NULL, 0, e->kernel, e->args, e->nargs, e->o);
  if (s != ST_OK) return s;
  char *text = NULL;
  if (strcmp(e->stage, "ast") == 0) {
    s = front_dump_ast(a, d, c.ctx, &c.source, &text);
    return s == ST_OK ? keep(call, text, e->out) : s;
  }
  bool tile = strcmp(e->stage, "tile") == 0,
       placed = strcmp(e->stage, compile_passes(&c) == PASS_GPU ? "lowered" : "placed") == 0,
       all = strcmp(e->stage, "all") == 0;
  bool llvm = strcmp(e->stage, "llvm") == 0, assembly = strcmp(e->stage, "asm") == 0;
  if (!tile && !placed && !all && !llvm && !assembly && !known_pass(e->stage)) {
    diag(d, DIAG_ERROR, LOC_NONE, "no stage or pass '%s'", e->stage);
    diag_hint(d, "stages: ast, tile, placed (CPU) or lowered (GPU), llvm, asm; passes: %s; or all",
              pass_names(a, compile_passes(&c)));
    return ST_INVALID;
  }
  if ((s = compile_specs(&c)) != ST_OK || (s = compile_front(&c)) != ST_OK) return s;
  if (tile) return keep(call, ir_print(c.module, a), e->out);
  PassMachine machine;
  if ((s = compile_machine(&c, &machine)) != ST_OK) return s;
  DumpTo to = {.arena = a, .pass = all ? NULL : e->stage};
  PassConfig config = {
      .machine = &machine, .diags = d, .verify = true, .explain = c.o.explain, .dump = dump, .user = &to};
  if (all) to.text = arena_printf(a, "// ---- after the front end\n%s\n", ir_print(c.module, a));
  if ((s = pass_run(c.module, compile_passes(&c), &config)) != ST_OK) return s;
  if (placed) return keep(call, ir_print(c.module, a), e->out);
  if (llvm || assembly) {
    s = target_text(c.module, &c.target, llvm ? TARGET_TEXT_LLVM : TARGET_TEXT_ASM, a, d, &to.text);
    if (s != ST_OK) return s;
  }
  if (to.text) return keep(call, to.text, e->out);
  diag(d, DIAG_ERROR, LOC_NONE, "pass '%s' does not run for this target", e->stage);
  diag_hint(d, "it runs: %s", pass_names(a, compile_passes(&c)));
  return ST_INVALID;
}

dt_status dt_emit_file(dt_context *c, const char *path, const char *kernel, const dt_named *args,
                       size_t nargs, const dt_compile_options *options, const char *stage,
                       const char **text) {
  dt_status st = api_need(c, "dt_emit_file", "path", path);
  if (st == DT_OK) st = api_need(c, "dt_emit_file", "stage", stage);
  if (st != DT_OK) return st;
  EmitArgs e = {path, kernel, stage, args, nargs, options, text};
  return api_call(c, emit, &e);
}

// ---- kernels of a file -----------------------------------------------------------------------------------------------------
typedef struct ListArgs {
  const char *path;
  char *text;
  size_t capacity;
} ListArgs;

static const char *default_text(Arena *a, const FrontParam *p) {
  if (!p->default_known) return "...";
  switch (p->dflt.kind) {
  case FCONST_NONE: return "None";
  case FCONST_BOOL: return p->dflt.i ? "True" : "False";
  case FCONST_INT: return arena_printf(a, "%lld", (long long)p->dflt.i);
  case FCONST_FLOAT: return arena_printf(a, "%g", p->dflt.f);
  case FCONST_STR: return arena_printf(a, "\"%s\"", p->dflt.s);
  case FCONST_DTYPE: return arena_printf(a, "tl.%s", front_dtype_name(p->dflt.dtype));
  case FCONST_FUNC: return p->dflt.s;
  default: return "(...)";
  }
}

static Status list(ApiCall *call, void *user) {
  ListArgs *l = user;
  Arena *a = &call->arena;
  FrontSource source = {.path = l->path};
  FrontOptions o = {0};
  FrontKernels kernels;
  Status s = front_list(a, &call->diags, ir_ctx_new(a), &source, &o, &kernels);
  if (s != ST_OK) return s;
  char *text = arena_strdup(a, "");
  for (int i = 0; i < kernels.n; i++) {
    const FrontKernel *k = &kernels.list[i];
    if (k->called) continue;
    text = arena_printf(a, "%s%s(", text, k->name);
    for (int j = 0; j < k->nparams; j++) {
      const FrontParam *p = &k->params[j];
      text =
          arena_printf(a, "%s%s%s%s%s%s", text, j ? ", " : "", p->name, p->is_constexpr ? ": constexpr" : "",
                       p->has_default ? " = " : "", p->has_default ? default_text(a, p) : "");
    }
    text = arena_printf(a, "%s)\n", text);
  }
  if (strlen(text) >= l->capacity) {
    diag(&call->diags, DIAG_ERROR, LOC_NONE, "the list takes %zu bytes, the buffer has %zu", strlen(text) + 1,
         l->capacity);
    return ST_LIMIT;
  }
  memcpy(l->text, text, strlen(text) + 1);
  return ST_OK;
}

dt_status dt_list_kernels(dt_context *c, const char *path, char *text, size_t capacity) {
  ListArgs l = {path, text, capacity};
  dt_status st = api_need(c, "dt_list_kernels", "path", path);
  return st != DT_OK ? st : api_call(c, list, &l);
}

// ---- passes over IR text ------------------------------------------------------------------------------------------------------
typedef struct OptArgs {
  const char *name, *text, *passes;
  size_t len;
  const char **out;
} OptArgs;

static Status opt(ApiCall *call, void *user) {
  OptArgs *o = user;
  Arena *a = &call->arena;
  Diags *d = &call->diags;
  IrModule *m;
  Status s;
  PassConfig config = {.diags = d, .verify = true, .explain = true};
  if ((s = ir_parse(a, ir_ctx_new(a), d, o->name, o->text, o->len, &m)) != ST_OK) return s;
  if (ir_verify(m, d) != ST_OK) return ST_COMPILE; // the text is the user's, so its faults are too
  if (*o->passes && (s = pass_run_named(m, o->passes, &config)) != ST_OK) return s;
  return keep(call, ir_print(m, a), o->out);
}

dt_status dt_opt_text(dt_context *c, const char *name, const char *text, size_t len, const char *passes,
                      const char **out_text) {
  OptArgs o = {name, text, passes, len, out_text};
  dt_status st = api_need(c, "dt_opt_text", "name", name);
  if (st == DT_OK) st = api_need(c, "dt_opt_text", "text", text);
  if (st == DT_OK) st = api_need(c, "dt_opt_text", "passes", passes);
  return st != DT_OK ? st : api_call(c, opt, &o);
}

// ---- what this build compiles for -----------------------------------------------------------------------------------------------
static Status describe(ApiCall *call, void *user) {
  const char **out = user;
  TargetOptions o = {.target = "x86", .opt = 1};
  TargetFacts f;
  Status s = target_facts(&o, &call->arena, &call->diags, &f);
  if (s != ST_OK) return s;
  char *text = arena_printf(&call->arena, "%s: %s (%s), %u-bit vectors, L1 %u KiB, L2 %u KiB", f.target,
                            f.cpu, f.needs, f.vector_bits, f.l1_bytes >> 10, f.l2_bytes >> 10);
  *out = api_keep_text(call->context, text);
  return *out ? ST_OK : ST_NO_MEMORY;
}

const char *api_compiler_info(dt_context *c) {
  const char *text = "";
  return api_call(c, describe, &text) == DT_OK ? text : dt_error(c);
}
