// Calls: of library functions, of helpers (one IR function per argument types and constants), of plain Python
// functions (evaluated in place), and of classes.
#include "front/front_impl.h"

#include <string.h>

// ---- arguments as written ----------------------------------------------------------------------------
static void args_push(Front *f, Args *a, Value *v, Loc loc) {
  vec_push(f->a, &a->pos, v);
  vec_push(f->a, &a->pos_loc, loc);
  a->poison |= v->kind == VAL_POISON;
}

static void args_push_kw(Front *f, Args *a, const Str *name, Value *v, Loc loc) {
  vec_push(f->a, &a->kw, v);
  vec_push(f->a, &a->kw_name, name);
  vec_push(f->a, &a->kw_loc, loc);
  a->poison |= v->kind == VAL_POISON;
}

static void eval_args(Lower *L, const Node *call, Args *a) {
  Front *f = L->f;
  for (uint32_t i = 0; i < call->list.len; i++) {
    const Node *n = call->list.data[i];
    if (n->kind != AST_Star) {
      args_push(f, a, front_eval(L, n), n->loc);
      continue;
    }
    const Value *t = front_eval(L, n->a);
    if (t->kind == VAL_TUPLE || t->kind == VAL_VECTOR) {
      for (uint32_t k = 0; k < t->seq.n; k++) args_push(f, a, t->seq.items[k], n->loc);
    } else {
      if (t->kind != VAL_POISON)
        front_err(L, n->loc, "only a tuple can be unpacked with *, not %s", val_kind_text(f, t));
      a->poison = true;
    }
  }
  for (uint32_t i = 0; i < call->list2.len; i++) {
    const Node *k = call->list2.data[i];
    Value *v = front_eval(L, k->a);
    if (k->name) {
      args_push_kw(f, a, k->name, v, k->loc);
    } else if (v->kind == VAL_DICT) {
      for (uint32_t j = 0; j < v->seq.n; j++) args_push_kw(f, a, v->seq.fields[j], v->seq.items[j], k->loc);
    } else {
      if (v->kind != VAL_POISON)
        front_err(L, k->loc, "only a dictionary can be unpacked with **, not %s", val_kind_text(f, v));
      a->poison = true;
    }
  }
}

// ---- binding to a function's parameters ------------------------------------------------------------------
static Value *default_value(Lower *L, const Func *fn, const Node *p) {
  Front *f = L->f;
  Lower M = {.f = f, .file = fn->file, .env = env_new(f, fn->closure), .keep_const = true};
  return front_eval(&M, p->b);
}

static bool is_constexpr_param(const Node *p) {
  const Node *ann = p->a;
  if (!ann) return false;
  if (ann->kind == AST_Str) return strstr(ann->name->s, "constexpr") != NULL;
  return (ann->kind == AST_Attr || ann->kind == AST_Name) && !strcmp(ann->name->s, "constexpr");
}

bool front_bind_params(Lower *L, const Func *fn, Args *args, Env *env, Loc loc) {
  Front *f = L->f;
  const NodeVec *ps = &fn->def->list;
  uint32_t at_pos = 0;
  bool *used = arena_array(f->a, bool, args->kw.len + 1);
  for (uint32_t i = 0; i < ps->len; i++) {
    const Node *p = ps->data[i];
    Value *v = NULL;
    if (p->op == PARAM_STAR) {
      const uint32_t n = args->pos.len - at_pos;
      if (strcmp(p->name->s, "_") || n)
        env_set(f, env, p->name, val_tuple(f, args->pos.data + at_pos, n, false), false);
      at_pos = args->pos.len;
      continue;
    }
    if (p->op == PARAM_STARSTAR) {
      ValueVec vs = {0};
      Vec(const Str *) names = {0};
      for (uint32_t k = 0; k < args->kw.len; k++) {
        if (used[k]) continue;
        used[k] = true;
        vec_push(f->a, &vs, args->kw.data[k]);
        vec_push(f->a, &names, args->kw_name.data[k]);
      }
      Value *d = val_tuple(f, vs.data, vs.len, false);
      d->kind = VAL_DICT;
      d->seq.fields = names.data;
      env_set(f, env, p->name, d, false);
      continue;
    }
    if (p->op == PARAM_PLAIN && at_pos < args->pos.len) {
      v = args->pos.data[at_pos++];
    }
    for (uint32_t k = 0; k < args->kw.len; k++) {
      if (args->kw_name.data[k] != p->name) continue;
      if (v) {
        front_err(L, args->kw_loc.data[k], "'%s' gets two values for '%s'", fn->name->s, p->name->s);
        return false;
      }
      used[k] = true;
      v = args->kw.data[k];
    }
    if (!v && p->b) v = default_value(L, fn, p);
    if (!v) {
      const char *call = "";
      for (uint32_t q = 0; q < ps->len; q++)
        call = arena_printf(f->a, "%s%s%s%s", call, q ? ", " : "", ps->data[q]->name->s,
                            ps->data[q]->b ? "=..." : "");
      front_err_hint(L, loc, arena_printf(f->a, "it is called as %s(%s)", fn->name->s, call),
                     "'%s' needs a value for its parameter '%s'", fn->name->s, p->name->s);
      return false;
    }
    if (is_constexpr_param(p) && v->kind == VAL_RT) {
      int64_t c;
      // another value of run time stays what it is, as in Triton; what needs a constant refuses it there
      if (!v->rt.type->rank && elem_is_int(v->rt.type->elem) && ir_const_int(v->rt.ir, &c))
        v = elem_is_bool(v->rt.type->elem) ? val_bool(f, c != 0) : val_int(f, c);
    }
    env_set(f, env, p->name, v, false);
  }
  if (at_pos < args->pos.len) {
    front_err(L, args->pos_loc.data[at_pos], "'%s' takes %u positional arguments, not %u", fn->name->s,
              at_pos, args->pos.len);
    return false;
  }
  for (uint32_t k = 0; k < args->kw.len; k++) {
    if (used[k]) continue;
    if (!front_err_fresh(f, args->kw_loc.data[k])) return false;
    Vec(const char *) names = {0};
    for (uint32_t i = 0; i < ps->len; i++) vec_push(f->a, &names, ps->data[i]->name->s);
    const char *near = front_nearest_name(f, args->kw_name.data[k]->s, names.data, names.len);
    diag(f->d, DIAG_ERROR, args->kw_loc.data[k], "'%s' has no parameter '%s'", fn->name->s,
         args->kw_name.data[k]->s);
    if (near) diag_hint(f->d, "did you mean '%s'?", near);
    return false;
  }
  return true;
}

// ---- helpers -----------------------------------------------------------------------------------------
static bool too_deep(Lower *L, const Func *fn, Loc loc) {
  if (L->f->calls < FRONT_MAX_CALLS) return false;
  front_err(L, loc, "calls nest more than %d deep at '%s'", FRONT_MAX_CALLS, fn->name->s);
  return true;
}

Value *front_call_inline(Lower *L, const Func *fn, Args *args, Loc loc) {
  Front *f = L->f;
  if (too_deep(L, fn, loc)) return f->poison;
  Env *env = env_new(f, fn->closure);
  if (!front_bind_params(L, fn, args, env, loc)) return f->poison;
  Env *outer = L->env;
  ModFile *file = L->file;
  const Func *func = L->func;
  const bool keep = L->keep_const;
  L->env = env;
  L->file = fn->file;
  L->func = fn;
  L->keep_const = fn->kind != FUNC_JIT || !L->b.block;
  const CallSite site = {fn, loc, f->site};
  f->site = &site;
  f->calls++;
  Value *v = front_lower_body(L, fn, loc);
  f->calls--;
  f->site = site.outer;
  L->env = outer;
  L->file = file;
  L->func = func;
  L->keep_const = keep;
  return v;
}

Value *front_call_inline_values(Lower *L, Value *fn, Value *const *v, uint32_t n, Loc loc) {
  Args a = {0};
  for (uint32_t i = 0; i < n; i++) args_push(L->f, &a, v[i], loc);
  if (a.poison) return L->f->poison;
  if (fn->kind == VAL_FUNC) return front_call_inline(L, fn->func, &a, loc);
  return front_call_value(L, fn, &a, loc);
}

static bool has_mem(const Value *v) {
  if (v->kind == VAL_MEM || v->kind == VAL_SMEM) return true;
  bool found = v->kind == VAL_METHOD && has_mem(v->method.self);
  if (v->kind == VAL_TUPLE || v->kind == VAL_OBJECT || v->kind == VAL_DICT)
    for (uint32_t i = 0; i < v->seq.n; i++) found |= has_mem(v->seq.items[i]);
  return found;
}

// A function whose code depends on where it is called: it captures names, or is plain Python.
static bool must_inline(const Env *env, const Func *fn) {
  if (fn->kind != FUNC_JIT || fn->closure) return true;
  for (uint32_t i = 0; i < env->map.entries.len; i++) {
    const Binding *b = (const Binding *)(uintptr_t)env->map.entries.data[i].value;
    if (env->map.entries.data[i].key == MAP_GONE || !b->value) continue;
    if (has_mem(b->value) || (b->value->kind == VAL_FUNC && b->value->func->closure)) return true;
  }
  return false;
}

static Instance *find_instance(Front *f, const Func *fn, const char *key) {
  for (Instance *i = f->instances; i; i = i->next)
    if (i->func == fn && !strcmp(i->key, key)) return i;
  return NULL;
}

// Lowers fn for the values in env, whose run-time parts become parameters of a new IR function.
static Instance *instantiate(Lower *L, const Func *fn, Env *env, const char *key, Loc loc) {
  Front *f = L->f;
  Instance *in = arena_new(f->a, Instance);
  in->func = fn;
  in->key = key;
  in->busy = true;
  in->next = f->instances;
  f->instances = in;
  in->ir = ir_func_new(f->module, str_printf(f->strings, "%s.%d", fn->name->s, f->serial++), false);
  in->ir->loc = fn->def->loc;
  Lower M = {
      .f = f, .file = fn->file, .func = fn, .env = env_new(f, NULL), .thread = L->thread, .ir = in->ir};
  M.b = ir_builder_at_end(in->ir->body);
  M.b.loc = fn->def->loc;
  for (uint32_t i = 0; i < env->map.entries.len; i++) {
    if (env->map.entries.data[i].key == MAP_GONE) continue;
    const Str *name = (const Str *)(uintptr_t)env->map.entries.data[i].key;
    const Binding *b = (const Binding *)(uintptr_t)env->map.entries.data[i].value;
    LeafVec leaves = {0};
    val_leaves(f, b->value, &leaves);
    for (uint32_t k = 0; k < leaves.len; k++)
      leaves.data[k].ir = ir_func_param(in->ir, leaves.data[k].ir->type, name);
    uint32_t at_leaf = 0;
    env_set(f, M.env, name, val_rebuild(f, b->value, leaves.data, &at_leaf), false);
  }
  const CallSite site = {fn, loc, f->site};
  f->site = &site;
  f->calls++;
  in->result = front_lower_body(&M, fn, fn->def->loc);
  f->calls--;
  f->site = site.outer;
  if (has_mem(in->result))
    in->result = front_err_hint(L, fn->def->loc, "allocate it in the kernel and pass it to the helper",
                                "'%s' returns shared memory, which ends with it", fn->name->s);
  LeafVec leaves = {0};
  val_leaves(f, in->result, &leaves);
  Vec(IrValue *) rets = {0};
  for (uint32_t k = 0; k < leaves.len; k++) {
    vec_push(f->a, &rets, leaves.data[k].ir);
    vec_push(f->a, &in->ir->results, leaves.data[k].ir->type);
  }
  ir_return(front_at(&M, fn->def->loc), rets.len, rets.data);
  in->busy = false;
  return in;
}

static Value *call_helper(Lower *L, const Func *fn, Args *args, Loc loc) {
  Front *f = L->f;
  Env *env = env_new(f, NULL);
  if (!L->b.block || L->inline_all || fn->kind != FUNC_JIT || fn->closure)
    return front_call_inline(L, fn, args, loc);
  if (!front_bind_params(L, fn, args, env, loc)) return f->poison;
  if (must_inline(env, fn)) return front_call_inline(L, fn, args, loc);
  // under thread control everything in the helper is per thread too
  Vec(char *) parts = {0};
  const char *key = L->thread ? "T" : "P";
  for (uint32_t i = 0; i < env->map.entries.len; i++) {
    if (env->map.entries.data[i].key == MAP_GONE) continue;
    const Str *name = (const Str *)(uintptr_t)env->map.entries.data[i].key;
    const Binding *b = (const Binding *)(uintptr_t)env->map.entries.data[i].value;
    Value *v = b->value;
    if (L->thread && v->kind == VAL_RT) v = front_raise_level(L, v, loc);
    if (v != b->value) env_set(f, env, name, v, false);
    key = arena_printf(f->a, "%s;%s", key, val_signature(f, v));
  }
  (void)parts;
  Instance *in = find_instance(f, fn, key);
  if (in && in->busy)
    return front_err_hint(L, loc, "write it as a loop",
                          "'%s' calls itself, directly or through others; recursion is not supported",
                          fn->name->s);
  if (!in) {
    if (too_deep(L, fn, loc)) return f->poison;
    in = instantiate(L, fn, env, key, loc);
  }
  Vec(IrValue *) ops = {0};
  for (uint32_t i = 0; i < env->map.entries.len; i++) {
    if (env->map.entries.data[i].key == MAP_GONE) continue;
    const Binding *b = (const Binding *)(uintptr_t)env->map.entries.data[i].value;
    LeafVec leaves = {0};
    val_leaves(f, b->value, &leaves);
    for (uint32_t k = 0; k < leaves.len; k++) vec_push(f->a, &ops, leaves.data[k].ir);
  }
  IrOp *op =
      ir_build(front_at(L, loc), OP_call, ops.len, ops.data, in->ir->results.len, in->ir->results.data, 0);
  ir_set_attr_s(op, ATTR_callee, in->ir->name);
  LeafVec leaves = {0};
  val_leaves(f, in->result, &leaves);
  for (uint32_t k = 0; k < leaves.len; k++) {
    leaves.data[k].ir = ir_result(op, k);
    if (leaves.data[k].type && leaves.data[k].type->thread && leaves.data[k].why)
      leaves.data[k].why =
          front_why_new(f, loc, arena_printf(f->a, "%s in '%s'", leaves.data[k].why->text, fn->name->s));
  }
  uint32_t at_leaf = 0;
  return val_rebuild(f, in->result, leaves.data, &at_leaf);
}

// ---- classes -----------------------------------------------------------------------------------------
static const Func *class_init(Front *f, Value *cls) {
  const Class *c = cls->cls;
  for (uint32_t i = 0; i < c->def->list2.len; i++) {
    const Node *s = c->def->list2.data[i];
    if (s->kind == AST_FuncDef && !strcmp(s->name->s, "__init__")) return front_func_of_def(f, c->file, s);
  }
  return NULL;
}

static Value *construct(Lower *L, Value *cls, Args *args, Loc loc) {
  Front *f = L->f;
  const Class *c = cls->cls;
  Value *o = val_tuple(f, NULL, 0, false);
  o->kind = c->named_tuple ? VAL_TUPLE : VAL_OBJECT;
  o->seq.cls = cls;
  o->seq.n = c->fields.len;
  o->seq.items = arena_array(f->a, Value *, c->fields.len + 1);
  if (c->named_tuple) o->seq.fields = c->fields.data;
  for (uint32_t i = 0; i < c->fields.len; i++) o->seq.items[i] = f->none;
  const Func *init = class_init(f, cls);
  if (init && init->def->list.len) { // runs on an object whose fields it sets
    Func *plain = arena_copy(f->a, init, sizeof *init);
    plain->kind = FUNC_PLAIN;
    Args with_self = {0};
    args_push(f, &with_self, o, loc);
    for (uint32_t i = 0; i < args->pos.len; i++)
      args_push(f, &with_self, args->pos.data[i], args->pos_loc.data[i]);
    for (uint32_t i = 0; i < args->kw.len; i++)
      args_push_kw(f, &with_self, args->kw_name.data[i], args->kw.data[i], args->kw_loc.data[i]);
    if (too_deep(L, init, loc)) return f->poison;
    Env *env = env_new(f, NULL), *outer = L->env;
    if (!front_bind_params(L, plain, &with_self, env, loc)) return f->poison;
    ModFile *file = L->file;
    const bool keep = L->keep_const;
    L->env = env;
    L->file = init->file;
    L->keep_const = true;
    f->calls++;
    front_lower_body(L, plain, loc);
    f->calls--;
    const Binding *self = env_find(L->env, init->def->list.data[0]->name);
    L->env = outer;
    L->file = file;
    L->keep_const = keep;
    return self && self->value ? self->value : f->poison;
  }
  if (args->pos.len > c->fields.len)
    return front_err(L, loc, "'%s' has %u fields, not %u", c->name->s, c->fields.len, args->pos.len);
  for (uint32_t i = 0; i < c->fields.len; i++) {
    Value *v = i < args->pos.len ? args->pos.data[i] : NULL;
    for (uint32_t k = 0; k < args->kw.len && !v; k++)
      if (args->kw_name.data[k] == c->fields.data[i]) v = args->kw.data[k];
    if (!v && c->defaults.data[i]) {
      Lower M = {.f = f, .file = c->file, .env = env_new(f, NULL), .keep_const = true};
      v = front_eval(&M, c->defaults.data[i]);
    }
    if (!v)
      return front_err(L, loc, "'%s' needs a value for its field '%s'", c->name->s, c->fields.data[i]->s);
    o->seq.items[i] = v;
  }
  return o;
}

// ---- dispatch ----------------------------------------------------------------------------------------
Value *front_call_value(Lower *L, Value *fn, Args *args, Loc loc) {
  Front *f = L->f;
  if (fn->kind == VAL_POISON || args->poison) return f->poison;
  switch (fn->kind) {
  case VAL_BUILTIN: return front_call_builtin(L, fn->builtin, NULL, args, loc);
  case VAL_METHOD: {
    if (fn->method.fn->kind == VAL_BUILTIN)
      return front_call_builtin(L, fn->method.fn->builtin, fn->method.self, args, loc);
    Args with_self = {0};
    args_push(f, &with_self, fn->method.self, loc);
    for (uint32_t i = 0; i < args->pos.len; i++)
      args_push(f, &with_self, args->pos.data[i], args->pos_loc.data[i]);
    for (uint32_t i = 0; i < args->kw.len; i++)
      args_push_kw(f, &with_self, args->kw_name.data[i], args->kw.data[i], args->kw_loc.data[i]);
    return front_call_value(L, fn->method.fn, &with_self, loc);
  }
  case VAL_FUNC: return call_helper(L, fn->func, args, loc);
  case VAL_CLASS: return construct(L, fn, args, loc);
  case VAL_DTYPE: // tl.float32(x)
    if (args->pos.len == 1 && fn->dt.rank < 0 && L->b.block)
      return front_cast_to(L, args->pos.data[0], fn->dt.elem, false, loc);
    break;
  case VAL_OPAQUE:
    if (!L->b.block) return val_opaque(f, arena_printf(f->a, "%s(...)", fn->s->s));
    if (strrchr(fn->s->s, '.')) { // imported by name
      const char *dot = strrchr(fn->s->s, '.'), *hint, *why;
      why = lib_refusal(arena_printf(f->a, "%.*s", (int)(dot - fn->s->s), fn->s->s), dot + 1, &hint);
      if (why) return front_err_hint(L, loc, hint, "'%s' %s", fn->s->s, why);
    }
    const char *last = strrchr(fn->s->s, '.');
    const bool ours = last && builtin_find(f, lib_key("triton.language"), last + 1);
    return front_err_hint(
        L, loc,
        ours ? arena_printf(f->a, "kernels have tl%s", last)
             : "kernels call the library, @triton.jit functions, and plain Python functions of this file",
        "%s cannot be called in a kernel", val_kind_text(f, fn));
  default: break;
  }
  return front_err(L, loc, "%s cannot be called", val_kind_text(f, fn));
}

Value *front_eval_call(Lower *L, const Node *n) {
  Front *f = L->f;
  Value *fn = front_eval(L, n->a);
  if (fn->kind == VAL_POISON) return fn;
  Args args = {0};
  eval_args(L, n, &args);
  if (args.poison) return f->poison;
  return front_call_value(L, fn, &args, n->loc);
}
