// Arguments to specialisations: what of a launch's values the compiler may build in.
#include "api/compile_impl.h"

#include <string.h>

static const struct {
  const char *name, *target, *cpu;
} targets[] = {
    {"x86", "x86", NULL},
    {"host", "x86", NULL},
    {"x86-64", "x86", "x86-64-v3"},
    {"x86-64-v3", "x86", "x86-64-v3"},
    {"x86-64-v4", "x86", "x86-64-v4"},
    {"sm_80", "nvptx", "sm_80"},
    {"sm_89", "nvptx", "sm_89"},
    {"sm_90a", "nvptx", "sm_90a"},
    {"sm_90", "nvptx", "sm_90a"},
};

static Status choose_target(Compile *c) {
  Diags *d = &c->call->diags;
  if (!c->o.target || !*c->o.target) c->o.target = "host";
  for (size_t i = 0; i < DT_COUNTOF(targets); i++) {
    if (strcmp(c->o.target, targets[i].name) != 0) continue;
    const char *ptxas = c->call->context->knobs.ptxas;
    c->target = (TargetOptions){.target = targets[i].target,
                                .cpu = targets[i].cpu,
                                .ptxas = *ptxas ? ptxas : NULL,
                                .opt = 1,
                                .debug_lines = true};
    return ST_OK;
  }
  diag(d, DIAG_ERROR, LOC_NONE, "unknown target '%s'", c->o.target);
  diag_hint(d,
            "targets of this build: host, x86-64 (AVX2 and FMA), x86-64-v4 (AVX-512), sm_80, sm_89, sm_90a");
  return ST_UNSUPPORTED;
}

static bool constant_of(const dt_value *v, FrontConst *out) {
  *out = (FrontConst){0};
  switch (v->kind) {
  case DT_VALUE_NONE: out->kind = FCONST_NONE; return true;
  case DT_VALUE_INT:
    out->kind = FCONST_INT;
    out->i = v->u.i;
    out->is_unsigned = v->dtype == DT_U64;
    return true;
  case DT_VALUE_FLOAT:
    out->kind = FCONST_FLOAT;
    out->f = v->u.f;
    return true;
  case DT_VALUE_BOOL:
    out->kind = FCONST_BOOL;
    out->i = v->u.i != 0;
    return true;
  case DT_VALUE_STR:
    out->kind = FCONST_STR;
    out->s = v->u.str;
    return true;
  case DT_VALUE_FUNC:
    out->kind = FCONST_FUNC;
    out->s = v->u.str;
    return true;
  case DT_VALUE_DTYPE: {
    const char *name = dt_dtype_name(v->dtype);
    out->kind = FCONST_DTYPE;
    out->dtype = (FrontDtype)front_dtype_parse(name, strlen(name));
    return true;
  }
  default: return false;
  }
}

static FrontDtype front_dtype(dt_dtype d) {
  const char *name = dt_dtype_name(d);
  return (FrontDtype)front_dtype_parse(name, strlen(name));
}

Status compile_begin(Compile *c, ApiCall *call, const char *path, const char *text, size_t len,
                     const char *kernel, const dt_named *args, size_t nargs, const dt_compile_options *o) {
  Diags *d = &call->diags;
  *c = (Compile){.call = call,
                 .source = {.path = path, .text = text, .len = len},
                 .kernel = kernel,
                 .args = args,
                 .nargs = nargs};
  if (o && o->size != sizeof *o) {
    diag(d, DIAG_ERROR, LOC_NONE, "dt_compile_options.size is %zu, not sizeof(dt_compile_options)", o->size);
    return ST_INVALID;
  }
  if (o) c->o = *o;
  if (!c->o.num_warps) c->o.num_warps = 4;
  if (!c->o.num_stages) c->o.num_stages = 2;
  if (!bits_pow2((uint64_t)c->o.num_warps) || c->o.num_warps < 1 || c->o.num_warps > 32) {
    diag(d, DIAG_ERROR, LOC_NONE, "num_warps is %d; it must be a power of two from 1 to 32", c->o.num_warps);
    return ST_INVALID;
  }
  if (c->o.num_stages < 1 || c->o.num_stages > 16) {
    diag(d, DIAG_ERROR, LOC_NONE, "num_stages is %d; it must be from 1 to 16", c->o.num_stages);
    return ST_INVALID;
  }
  if (c->o.max_registers && (c->o.max_registers < 24 || c->o.max_registers > 255)) {
    diag(d, DIAG_ERROR, LOC_NONE, "max_registers is %d; a thread has from 24 to 255, or 0 for no limit",
         c->o.max_registers);
    return ST_INVALID;
  }
  if (nargs && !args) {
    diag(d, DIAG_ERROR, LOC_NONE, "there are %zu arguments, but args is NULL", nargs);
    return ST_INVALID;
  }
  for (size_t i = 0; i < nargs; i++) {
    const dt_value *v = &args[i].value;
    if (!args[i].name) {
      diag(d, DIAG_ERROR, LOC_NONE, "argument %zu has no name", i);
      return ST_INVALID;
    }
    if ((v->kind == DT_VALUE_STR || v->kind == DT_VALUE_FUNC) && !v->u.str) {
      diag(d, DIAG_ERROR, LOC_NONE, "argument '%s' is a text that is NULL", args[i].name);
      return ST_INVALID;
    }
    if (args[i].value.kind <= DT_VALUE_DESC && (unsigned)args[i].value.dtype < DT_NDTYPES) continue;
    diag(d, DIAG_ERROR, LOC_NONE, "argument '%s' has an unknown kind or dtype", args[i].name);
    return ST_INVALID;
  }
  Arena *a = &call->arena;
  c->ctx = ir_ctx_new(a);
  int n = 0;
  for (; c->o.search_path && c->o.search_path[n];) n++;
  const char **search = arena_array(a, const char *, n + 1);
  for (int i = 0; i < n; i++) search[i] = c->o.search_path[i];
  if (*call->context->kernels_dir) search[n++] = call->context->kernels_dir;
  FrontGlobal *globals = arena_array(a, FrontGlobal, c->o.nglobals);
  for (size_t i = 0; i < c->o.nglobals; i++) {
    globals[i].name = c->o.globals[i].name ? c->o.globals[i].name : "";
    const dt_value *v = &c->o.globals[i].value;
    const bool is_text = v->kind == DT_VALUE_STR || v->kind == DT_VALUE_FUNC;
    if (*globals[i].name && (!is_text || v->u.str) && (unsigned)v->dtype < DT_NDTYPES &&
        constant_of(&c->o.globals[i].value, &globals[i].value))
      continue;
    diag(d, DIAG_ERROR, LOC_NONE, "global '%s' must be a constant, not a pointer or descriptor",
         globals[i].name);
    return ST_INVALID;
  }
  c->front = (FrontOptions){.num_warps = c->o.num_warps,
                            .num_stages = c->o.num_stages,
                            .max_registers = c->o.max_registers,
                            .no_asserts = c->o.no_asserts,
                            .globals = globals,
                            .nglobals = (int)c->o.nglobals,
                            .search = search,
                            .nsearch = n};
  return choose_target(c);
}

// ---- one argument -----------------------------------------------------------------------------------------------------
static Status constexpr_spec(Compile *c, const FrontParam *p, const dt_value *v, FrontSpec *out) {
  *out = (FrontSpec){.name = p->name, .kind = FRONT_CONST};
  if (constant_of(v, &out->value)) return ST_OK;
  diag(&c->call->diags, DIAG_ERROR, p->loc,
       "'%s' is a constexpr: it takes a constant, not a pointer or descriptor", p->name);
  return ST_INVALID;
}

static Status desc_spec(Compile *c, const FrontParam *p, const dt_desc *desc, FrontSpec *out) {
  Diags *d = &c->call->diags;
  if (!desc || desc->rank < 1 || desc->rank > DT_MAX_RANK) {
    diag(d, DIAG_ERROR, p->loc, "descriptor '%s' must have 1 to %d axes", p->name, DT_MAX_RANK);
    return ST_INVALID;
  }
  if (desc->strides[desc->rank - 1] != 1) {
    diag(d, DIAG_ERROR, p->loc, "descriptor '%s': the last axis must be contiguous (stride 1), not %lld",
         p->name, (long long)desc->strides[desc->rank - 1]);
    return ST_INVALID;
  }
  *out =
      (FrontSpec){.name = p->name, .kind = FRONT_DESC, .dtype = front_dtype(desc->dtype), .rank = desc->rank};
  for (int i = 0; i < desc->rank; i++) out->block[i] = desc->block[i];
  return ST_OK;
}

static Status runtime_spec(Compile *c, const FrontParam *p, const dt_value *v, FrontSpec *out) {
  bool plain = c->o.no_specialise;
  switch (v->kind) {
  case DT_VALUE_PTR:
    *out = front_spec_pointer(p, front_dtype(v->dtype), (uint64_t)(uintptr_t)v->u.ptr);
    if (plain) out->divisible = 1;
    return ST_OK;
  case DT_VALUE_INT:
    if (v->dtype != DT_I32 && v->dtype != DT_I64 && v->dtype != DT_U64) {
      *out =
          (FrontSpec){.name = p->name, .kind = FRONT_SCALAR, .dtype = front_dtype(v->dtype), .divisible = 1};
      return ST_OK;
    }
    *out = front_spec_int(p, plain ? (v->dtype == DT_I64 ? INT64_MAX : 3) : v->u.i, v->dtype == DT_U64);
    if (plain) out->divisible = 1;
    return ST_OK;
  case DT_VALUE_FLOAT:
    if (v->dtype == DT_F32 || v->dtype == DT_I1)
      *out = front_spec_float(p, v->u.f);
    else
      *out =
          (FrontSpec){.name = p->name, .kind = FRONT_SCALAR, .dtype = front_dtype(v->dtype), .divisible = 1};
    return ST_OK;
  case DT_VALUE_BOOL:
    *out = (FrontSpec){.name = p->name, .kind = FRONT_SCALAR, .dtype = front_dtype(DT_I1), .divisible = 1};
    return ST_OK;
  case DT_VALUE_DESC: return desc_spec(c, p, v->u.desc, out);
  default:
    return constexpr_spec(c, p, v,
                          out); // None, strings, dtypes and functions are constants wherever they stand
  }
}

// ---- all arguments ------------------------------------------------------------------------------------------------------
static const dt_value *given(const Compile *c, const char *name) {
  for (size_t i = 0; i < c->nargs; i++)
    if (strcmp(c->args[i].name, name) == 0) return &c->args[i].value;
  return NULL;
}

static const char *param_list(Compile *c) {
  const FrontKernel *k = c->chosen;
  const char *list = "";
  for (int i = 0; i < k->nparams; i++)
    list = arena_printf(&c->call->arena, "%s%s%s", list, i ? ", " : "", k->params[i].name);
  return list;
}

static Status check_names(Compile *c) {
  Diags *d = &c->call->diags;
  for (size_t i = 0; i < c->nargs; i++) {
    bool known = false;
    for (int j = 0; j < c->chosen->nparams && !known; j++)
      known = strcmp(c->args[i].name, c->chosen->params[j].name) == 0;
    for (size_t j = 0; j < i; j++) {
      if (strcmp(c->args[i].name, c->args[j].name) != 0) continue;
      diag(d, DIAG_ERROR, LOC_NONE, "argument '%s' is given twice", c->args[i].name);
      return ST_INVALID;
    }
    if (known) continue;
    diag(d, DIAG_ERROR, c->chosen->loc, "kernel '%s' has no parameter '%s'", c->chosen->name,
         c->args[i].name);
    diag_hint(d, "its parameters are: %s", param_list(c));
    return ST_INVALID;
  }
  return ST_OK;
}

Status compile_choose_specs(Compile *c) {
  Diags *d = &c->call->diags;
  Status s = check_names(c);
  if (s != ST_OK) return s;
  c->nspecs = 0;
  c->specs = arena_array(&c->call->arena, FrontSpec, c->chosen->nparams + 1);
  for (int i = 0; i < c->chosen->nparams; i++) {
    const FrontParam *p = &c->chosen->params[i];
    const dt_value *v = given(c, p->name);
    if (!v && p->has_default) continue;
    if (!v) {
      diag(d, DIAG_ERROR, p->loc, "kernel '%s' needs a value for '%s'", c->chosen->name, p->name);
      diag_hint(d, "its parameters are: %s", param_list(c));
      return ST_INVALID;
    }
    FrontSpec *spec = &c->specs[c->nspecs++];
    s = p->is_constexpr ? constexpr_spec(c, p, v, spec) : runtime_spec(c, p, v, spec);
    if (s != ST_OK) return s;
  }
  return ST_OK;
}

Status compile_specs(Compile *c) {
  FrontKernels kernels;
  Status s = front_list(&c->call->arena, &c->call->diags, c->ctx, &c->source, &c->front, &kernels);
  if (s != ST_OK) return s;
  c->source.tree = kernels.tree;
  c->chosen = front_pick(&kernels, c->kernel, &c->source, &c->call->diags);
  return c->chosen ? compile_choose_specs(c) : ST_NOT_FOUND;
}

const FrontSpec *compile_spec_of(const Compile *c, const char *param) {
  for (int i = 0; i < c->nspecs; i++)
    if (strcmp(c->specs[i].name, param) == 0) return &c->specs[i];
  return NULL;
}
