// The front end's public face: sessions, listing, argument specialisation, and compiling one kernel.
#include "front/front_impl.h"

#include <stdio.h>
#include <string.h>

// ---- sessions ------------------------------------------------------------------------------------------
Front *front_open(Arena *a, Diags *d, IrCtx *ctx, const FrontOptions *o) {
  Front *f = arena_new(a, Front);
  f->a = a;
  f->d = d;
  f->ctx = ctx;
  f->strings = ir_strings(ctx);
  if (o) f->o = *o;
  if (!f->o.num_warps) f->o.num_warps = 4;
  if (!f->o.num_stages) f->o.num_stages = 2;
  if (!f->o.lanes) f->o.lanes = 32;
  map_init(&f->builtins, a);
  map_init(&f->libs, a);
  map_init(&f->funcs, a);
  map_init(&f->classes, a);
  f->none = val_new(f, VAL_NONE);
  f->poison = val_new(f, VAL_POISON);
  f->vtrue = val_new(f, VAL_BOOL);
  f->vtrue->b = true;
  f->vfalse = val_new(f, VAL_BOOL);
  f->s_ret = str_cstr(f->strings, "$ret");
  f->s_brk = str_cstr(f->strings, "$brk");
  f->s_out = str_cstr(f->strings, "$out");
  f->module = ir_module_new(a, ctx, d);
  f->module->num_warps = f->o.num_warps;
  f->module->num_stages = f->o.num_stages;
  f->module->max_registers = f->o.max_registers;
  f->module->lanes = f->o.lanes;
  return f;
}

bool front_err_fresh(Front *f, Loc loc) {
  if (f->quiet) return false;
  f->refused++;
  for (uint32_t i = 0; i < f->reported.len; i++) {
    const Loc r = f->reported.data[i];
    if (r.file == loc.file && r.line == loc.line && r.col == loc.col) return false;
  }
  vec_push(f->a, &f->reported, loc);
  return true;
}

void front_note_calls(Front *f) {
  int n = 0;
  for (const CallSite *s = f->site; s && n < 8; s = s->outer, n++)
    if (s->loc.line) diag(f->d, DIAG_NOTE, s->loc, "in '%s', called here", s->func->name->s);
}

Value *front_err(Lower *L, Loc loc, const char *fmt, ...) {
  if (front_err_fresh(L->f, loc)) {
    va_list ap;
    va_start(ap, fmt);
    diag(L->f->d, DIAG_ERROR, loc, "%s", arena_vprintf(L->f->a, fmt, ap));
    va_end(ap);
    front_note_calls(L->f);
  }
  return L->f->poison;
}

Value *front_err_hint(Lower *L, Loc loc, const char *hint, const char *fmt, ...) {
  if (front_err_fresh(L->f, loc)) {
    va_list ap;
    va_start(ap, fmt);
    diag(L->f->d, DIAG_ERROR, loc, "%s", arena_vprintf(L->f->a, fmt, ap));
    va_end(ap);
    if (hint) diag_hint(L->f->d, "%s", hint);
    front_note_calls(L->f);
  }
  return L->f->poison;
}

bool front_step(Lower *L, Loc loc) {
  static const char hint[] = "use tl.range in place of tl.static_range";
  Front *f = L->f;
  if (f->steps > FRONT_MAX_STEPS) return false; // reported
  if (++f->steps > FRONT_MAX_STEPS) {
    front_err_hint(L, loc, hint, "the program unrolls to more than %d statements", FRONT_MAX_STEPS);
    return false;
  }
  if (!L->b.block || L->b.block->func->next_id <= FRONT_MAX_VALUES) return true;
  f->steps = FRONT_MAX_STEPS + 1;
  front_err_hint(L, loc, hint, "the program unrolls to more than %d operations", FRONT_MAX_VALUES);
  return false;
}

// ---- listing -------------------------------------------------------------------------------------------
// An annotation as written, for people: names, attributes and strings.
static const char *annotation_text(Front *f, const Node *n) {
  if (!n) return NULL;
  switch (n->kind) {
  case AST_Name:
  case AST_Str: return n->name->s;
  case AST_Attr: return arena_printf(f->a, "%s.%s", annotation_text(f, n->a), n->name->s);
  case AST_None: return "None";
  default: return "...";
  }
}

static bool last_name_is(const char *dotted, const char *name) {
  const char *dot = dotted ? strrchr(dotted, '.') : NULL;
  return dotted && !strcmp(dot ? dot + 1 : dotted, name);
}

// A dtype annotation: tl.int64, "i64", "*fp32" (the pointee is no type of the argument itself).
static int annotation_dtype(Lower *L, const Node *n) {
  Front *f = L->f;
  if (!n) return -1;
  if (n->kind == AST_Str) return front_dtype_parse(n->name->s, n->name->len);
  if (n->kind != AST_Name && n->kind != AST_Attr) return -1;
  f->quiet++;
  const Value *v = front_eval(L, n);
  f->quiet--;
  return v->kind == VAL_DTYPE && !elem_is_ptr(v->dt.elem) && v->dt.rank < 0 &&
                 elem_kind(v->dt.elem) != DTK_NAMED
             ? (int)v->dt.elem->dt
             : -1;
}

static bool const_of_value(Front *f, const Value *v, FrontConst *out) {
  memset(out, 0, sizeof *out);
  switch (v->kind) {
  case VAL_NONE: out->kind = FCONST_NONE; return true;
  case VAL_BOOL:
    out->kind = FCONST_BOOL;
    out->i = v->b;
    return true;
  case VAL_INT:
    out->kind = FCONST_INT;
    out->i = (int64_t)v->i;
    out->is_unsigned = v->i > INT64_MAX;
    return v->i >= INT64_MIN && v->i <= (AstInt)UINT64_MAX;
  case VAL_FLOAT:
    out->kind = FCONST_FLOAT;
    out->f = v->f;
    return true;
  case VAL_STR:
    out->kind = FCONST_STR;
    out->s = v->s->s;
    return true;
  case VAL_DTYPE:
    out->kind = FCONST_DTYPE;
    out->dtype = v->dt.elem->dt;
    return !elem_is_ptr(v->dt.elem) && v->dt.rank < 0;
  case VAL_FUNC:
    out->kind = FCONST_FUNC;
    out->s = v->func->name->s;
    return true;
  case VAL_TUPLE: {
    FrontConst *items = arena_array(f->a, FrontConst, v->seq.n + 1);
    for (uint32_t i = 0; i < v->seq.n; i++)
      if (!const_of_value(f, v->seq.items[i], &items[i])) return false;
    out->kind = FCONST_TUPLE;
    out->items = items;
    out->nitems = (int)v->seq.n;
    return true;
  }
  default: return false;
  }
}

// jit(do_not_specialize=[names or positions])
static bool not_specialized(const Node *def, uint32_t index, const Str *name) {
  for (uint32_t d = 0; d < def->list3.len; d++) {
    const Node *call = def->list3.data[d];
    if (call->kind != AST_Call) continue;
    for (uint32_t k = 0; k < call->list2.len; k++) {
      const Node *kw = call->list2.data[k];
      if (!kw->name || strcmp(kw->name->s, "do_not_specialize") ||
          (kw->a->kind != AST_List && kw->a->kind != AST_Tuple))
        continue;
      for (uint32_t i = 0; i < kw->a->list.len; i++) {
        const Node *x = kw->a->list.data[i];
        if ((x->kind == AST_Str && x->name == name) || (x->kind == AST_Int && x->ival == index)) return true;
      }
    }
  }
  return false;
}

static FrontParam list_param(Lower *L, const Node *def, uint32_t i) {
  Front *f = L->f;
  const Node *p = def->list.data[i];
  FrontParam out = {.name = p->name->s, .annotation = annotation_text(f, p->a), .loc = p->loc};
  out.is_constexpr = last_name_is(out.annotation, "constexpr");
  out.dtype = out.is_constexpr ? -1 : annotation_dtype(L, p->a);
  out.no_specialize = out.dtype >= 0 || not_specialized(def, i, p->name);
  out.has_default = p->b != NULL;
  if (p->b) {
    f->quiet++;
    const Value *v = front_eval(L, p->b);
    f->quiet--;
    out.default_known = const_of_value(f, v, &out.dflt);
  }
  return out;
}

static bool mentions(const Node *n, const Str *name) {
  if (!n) return false;
  if (n->kind == AST_Name && n->name == name) return true;
  if (mentions(n->a, name) || mentions(n->b, name) || mentions(n->c, name)) return true;
  const NodeVec *const lists[2] = {&n->list, &n->list2};
  for (int l = 0; l < 2; l++)
    for (uint32_t i = 0; i < lists[l]->len; i++)
      if (mentions(lists[l]->data[i], name)) return true;
  return false;
}

typedef Vec(const Func *) FuncVec;
static void jit_functions(Front *f, ModFile *m, FuncVec *out) {
  Lower L = {.f = f, .file = m, .env = env_new(f, NULL), .keep_const = true};
  for (uint32_t i = 0; i < m->order.len; i++) {
    const Global *g = map_getp(&m->names, m->order.data[i]);
    const Func *fn = NULL;
    if (g->kind == GLOBAL_FUNC) {
      const Value *v = modfile_own(&L, m, m->order.data[i]);
      if (v && v->kind == VAL_FUNC) fn = v->func;
    } else if (g->kind == GLOBAL_EXPR && g->node->kind == AST_Call) { // kernel = triton.jit(function)
      const Value *v = modfile_lookup(&L, m, m->order.data[i]);
      if (v && v->kind == VAL_FUNC && v->func->def->kind == AST_FuncDef) fn = v->func;
    }
    if (fn && fn->kind == FUNC_JIT) vec_push(f->a, out, fn);
  }
}

static bool is_called(const FuncVec *all, const Func *fn) {
  for (uint32_t k = 0; k < all->len; k++) {
    if (all->data[k]->def == fn->def) continue;
    const NodeVec *body = &all->data[k]->def->list2;
    for (uint32_t i = 0; i < body->len; i++)
      if (mentions(body->data[i], fn->def->name)) return true;
  }
  return false;
}

Status front_list(Arena *a, Diags *d, IrCtx *ctx, const FrontSource *src, const FrontOptions *o,
                  FrontKernels *out) {
  Front *f = front_open(a, d, ctx, o);
  ModFile *m = NULL;
  memset(out, 0, sizeof *out);
  const Status st = modfile_load(f, src, &m);
  if (st != ST_OK) return st;
  f->main = m;
  out->tree = &m->tree;
  FuncVec fns = {0};
  jit_functions(f, m, &fns);
  out->list = arena_array(a, FrontKernel, fns.len + 1);
  Lower L = {.f = f, .file = m, .env = env_new(f, NULL), .keep_const = true};
  for (uint32_t i = 0; i < fns.len; i++) {
    const Node *def = fns.data[i]->def;
    FrontKernel *k = &out->list[out->n++];
    k->name = fns.data[i]->name->s;
    k->loc = def->loc;
    k->called = is_called(&fns, fns.data[i]);
    k->params = arena_array(a, FrontParam, def->list.len + 1);
    for (uint32_t p = 0; p < def->list.len; p++) k->params[k->nparams++] = list_param(&L, def, p);
  }
  return ST_OK;
}

const FrontKernel *front_pick(const FrontKernels *k, const char *name, const FrontSource *src, Diags *d) {
  const FrontKernel *found = NULL;
  int n = 0;
  char names[512] = "";
  size_t len = 0;
  for (int i = 0; i < k->n; i++) {
    if (name ? !strcmp(k->list[i].name, name) : !k->list[i].called) found = &k->list[i], n++;
    if (name || !k->list[i].called) {
      const int w = snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", k->list[i].name);
      if (w > 0 && len + (size_t)w < sizeof names) len += (size_t)w;
    }
  }
  if (name && found) return found;
  if (!name && n == 1) return found;
  const char *path = src->path ? src->path : "the text";
  if (name)
    diag(d, DIAG_ERROR, LOC_NONE, "%s has no jit function '%s'", path, name);
  else
    diag(d, DIAG_ERROR, LOC_NONE,
         n ? "%s has more than one kernel" : "%s has no kernel: no function decorated with @triton.jit",
         path);
  if (k->n) diag_hint(d, "it has: %s", names);
  return NULL;
}

// ---- specialisation ------------------------------------------------------------------------------------
FrontSpec front_spec_int(const FrontParam *p, int64_t value, bool is_unsigned) {
  FrontSpec s = {.name = p->name, .kind = FRONT_SCALAR};
  if (p->is_constexpr || (value == 1 && !p->no_specialize)) {
    s.kind = FRONT_CONST;
    s.value = (FrontConst){.kind = FCONST_INT, .i = value, .is_unsigned = is_unsigned};
    return s;
  }
  if (p->dtype >= 0)
    s.dtype = (FrontDtype)p->dtype;
  else if (is_unsigned && value < 0)
    s.dtype = FDT_uint64;
  else
    s.dtype = value >= INT32_MIN && value <= INT32_MAX ? FDT_int32 : FDT_int64;
  const bool integer = front_dtypes[s.dtype].kind != DTK_FLOAT;
  s.divisible = 1;
  if (integer && (!p->no_specialize || p->dtype >= 0))
    s.divisible = value % 16 == 0 ? 16 : value % 8 == 0 ? 8 : 1;
  return s;
}

FrontSpec front_spec_float(const FrontParam *p, double value) {
  FrontSpec s = {.name = p->name, .kind = FRONT_SCALAR, .dtype = FDT_float32};
  if (p->is_constexpr) {
    s.kind = FRONT_CONST;
    s.value = (FrontConst){.kind = FCONST_FLOAT, .f = value};
  } else if (p->dtype >= 0) {
    s.dtype = (FrontDtype)p->dtype;
  }
  return s;
}

FrontSpec front_spec_pointer(const FrontParam *p, FrontDtype elem, uint64_t address) {
  return (FrontSpec){
      .name = p->name, .kind = FRONT_POINTER, .dtype = elem, .divisible = address % 16 == 0 ? 16 : 1};
}

// ---- compiling -----------------------------------------------------------------------------------------
static Value *param_value(Lower *L, const FrontSpec *s, const Str *name, Loc loc);

static Value *desc_param(Lower *L, const FrontSpec *s, const Str *name, Loc loc) {
  Front *f = L->f;
  Desc *d = arena_new(f->a, Desc);
  int64_t dims[IR_MAX_RANK];
  d->elem = elem_number(f, s->dtype);
  d->rank = s->rank;
  for (int i = 0; i < s->rank && i < IR_MAX_RANK; i++) dims[i] = s->block[i];
  if (s->rank < 1 || s->rank > 5)
    return front_err(L, loc, "the descriptor for '%s' has %d axes; 1 to 5 are supported", name->s, s->rank);
  if (!front_check_shape(L, s->rank, dims, d->block, loc)) return f->poison;
  d->ir = ir_func_param(L->ir, ir_type_desc(f->ctx, front_dtypes[s->dtype].ir, d->rank, d->block), name);
  Value *v = val_new(f, VAL_DESC);
  v->desc = d;
  return v;
}

// val_of_const gave nothing: the name in c that the file does not know.
static const char *unknown_function(Lower *L, const FrontConst *c) {
  const char *lost = NULL;
  if (c->kind == FCONST_FUNC && !val_of_const(L->f, L->file, c)) return c->s ? c->s : "";
  for (int i = 0; c->kind == FCONST_TUPLE && i < c->nitems && !lost; i++)
    lost = unknown_function(L, &c->items[i]);
  return lost;
}

static Value *const_param(Lower *L, const FrontConst *c, const Str *name, Loc loc) {
  Front *f = L->f;
  Value *v = val_of_const(f, L->file, c);
  if (v || !front_err_fresh(f, loc)) return v ? v : f->poison;
  const char *lost = unknown_function(L, c);
  Vec(const char *) names = {0};
  for (uint32_t i = 0; i < L->file->order.len; i++) vec_push(f->a, &names, L->file->order.data[i]->s);
  const char *near = lost ? front_nearest_name(f, lost, names.data, names.len) : NULL;
  diag(f->d, DIAG_ERROR, loc, "the constant for '%s' names '%s', which is no function of the file", name->s,
       lost ? lost : "?");
  if (near) diag_hint(f->d, "did you mean '%s'?", near);
  return f->poison;
}

static Value *param_value(Lower *L, const FrontSpec *s, const Str *name, Loc loc) {
  Front *f = L->f;
  if (s->kind != FRONT_CONST && s->kind != FRONT_TUPLE && elem_kind(elem_number(f, s->dtype)) == DTK_NAMED &&
      !(s->kind == FRONT_POINTER && s->dtype == FDT_void))
    return front_err(L, loc, "'%s' has the type %s, which no value has here", name->s,
                     front_dtype_name(s->dtype));
  switch (s->kind) {
  case FRONT_CONST: return const_param(L, &s->value, name, loc);
  case FRONT_TUPLE: {
    Value **items = arena_array(f->a, Value *, s->nitems + 1);
    for (int i = 0; i < s->nitems; i++)
      items[i] = param_value(L, &s->items[i], str_printf(f->strings, "%s.%d", name->s, i), loc);
    return val_tuple(f, items, (uint32_t)s->nitems, false);
  }
  case FRONT_DESC: return desc_param(L, s, name, loc);
  case FRONT_POINTER:
  case FRONT_SCALAR: break;
  }
  const Elem *e = elem_number(f, s->dtype);
  const Type *t = type_scalar(f, s->kind == FRONT_POINTER ? elem_pointer(f, e) : e, false);
  IrValue *ir = ir_func_param(L->ir, front_ir_of(f, t), name);
  IrParam *p = &vec_last(&L->ir->params);
  p->divisible = s->divisible > 1 ? s->divisible : 1;
  p->is_unsigned = s->kind == FRONT_SCALAR && front_dtype_is_unsigned(s->dtype);
  return val_rt(f, ir, t, NULL);
}

static const FrontSpec *spec_of(const FrontSpec *specs, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (specs[i].name && !strcmp(specs[i].name, name)) return &specs[i];
  return NULL;
}

static const Func *find_kernel(Front *f, ModFile *m, const char *name, const FrontSource *src) {
  FuncVec fns = {0};
  jit_functions(f, m, &fns);
  FrontKernels k = {.list = arena_array(f->a, FrontKernel, fns.len + 1)};
  for (uint32_t i = 0; i < fns.len; i++)
    k.list[k.n++] = (FrontKernel){.name = fns.data[i]->name->s, .called = is_called(&fns, fns.data[i])};
  const FrontKernel *pick = front_pick(&k, name, src, f->d);
  return pick ? fns.data[pick - k.list] : NULL;
}

static void bind_kernel(Lower *L, const Func *fn, const FrontSpec *specs, int n) {
  Front *f = L->f;
  const NodeVec *ps = &fn->def->list;
  for (uint32_t i = 0; i < ps->len; i++) {
    const Node *p = ps->data[i];
    if (p->op == PARAM_STAR || p->op == PARAM_STARSTAR) {
      front_err(L, p->loc, "a kernel takes named parameters only, not *%s", p->name->s);
      continue;
    }
    const FrontSpec *s = spec_of(specs, n, p->name->s);
    Value *v = NULL;
    if (s) {
      if (s->kind != FRONT_CONST && p->a && last_name_is(annotation_text(f, p->a), "constexpr"))
        v = front_err(L, p->loc, "'%s' is a tl.constexpr and needs a constant", p->name->s);
      else
        v = param_value(L, s, p->name, p->loc);
    } else if (p->b) {
      Lower M = {.f = f, .file = fn->file, .env = env_new(f, NULL), .keep_const = true};
      v = front_eval(&M, p->b);
    } else {
      v = front_err(L, p->loc, "no argument for the parameter '%s'", p->name->s);
    }
    env_set(f, L->env, p->name, v, false);
  }
  for (int i = 0; i < n; i++) {
    bool known = false;
    for (uint32_t k = 0; k < ps->len; k++)
      known |= specs[i].name && !strcmp(ps->data[k]->name->s, specs[i].name);
    if (known) continue;
    Vec(const char *) names = {0};
    for (uint32_t k = 0; k < ps->len; k++) vec_push(f->a, &names, ps->data[k]->name->s);
    const char *near = specs[i].name ? front_nearest_name(f, specs[i].name, names.data, names.len) : NULL;
    diag(f->d, DIAG_ERROR, fn->def->loc, "'%s' has no parameter '%s'", fn->name->s,
         specs[i].name ? specs[i].name : "?");
    if (near) diag_hint(f->d, "did you mean '%s'?", near);
  }
}

Status front_compile(Arena *a, Diags *d, IrCtx *ctx, const FrontSource *src, const char *kernel,
                     const FrontSpec *specs, int nspecs, const FrontOptions *o, IrModule **out) {
  *out = NULL;
  const uint32_t before = d->errors;
  Front *f = front_open(a, d, ctx, o);
  ModFile *m = NULL;
  const Status st = modfile_load(f, src, &m);
  if (st != ST_OK) return st;
  f->main = m;
  f->compiling = true;
  const Func *fn = find_kernel(f, m, kernel, src);
  if (!fn) return ST_COMPILE;
  Lower L = {.f = f, .file = fn->file, .func = fn, .env = env_new(f, NULL)};
  L.ir = ir_func_new(f->module, fn->name, true);
  L.ir->loc = fn->def->loc;
  L.b = ir_builder_at_end(L.ir->body);
  bind_kernel(&L, fn, specs, nspecs);
  if (d->errors != before) return ST_COMPILE;
  const Value *r = front_lower_body(&L, fn, fn->def->loc);
  if (r->kind != VAL_NONE && r->kind != VAL_POISON)
    front_err(&L, fn->def->loc, "a kernel returns nothing, but this one returns %s", val_kind_text(f, r));
  ir_return(front_at(&L, fn->def->loc), 0, NULL);
  if (d->errors != before) return ST_COMPILE;
  *out = f->module;
  return ST_OK;
}

Status front_dump_ast(Arena *a, Diags *d, IrCtx *ctx, const FrontSource *src, char **out) {
  Front *f = front_open(a, d, ctx, NULL);
  ModFile *m = NULL;
  *out = NULL;
  const Status st = modfile_load(f, src, &m);
  if (st == ST_OK) *out = ast_dump(m->tree.module, a);
  return st;
}
