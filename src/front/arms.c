// Module-level names under conditions that are not known here: which arm they come from, and saying so.
//
//     if platform.is_rocm():                     # a call of the host program: not known
//         @triton.jit
//         def round_int8(x): ...                 # calls core.extern_elementwise: no code comes of it
//     else:
//         @triton.jit
//         def round_int8(x): ...                 # taken, with a warning
//
// Python sees one arm and we cannot tell which. The first is taken, unless only the other can be compiled everywhere.
#include "front/front_impl.h"

#include <string.h>

enum { ARMS_NODES = 20000, ARMS_DEPTH = 24 }; // how far a function is searched, how deep into what it calls

typedef struct Search {
  Front *f;
  int nodes;
  Vec(const Node *) seen; // functions
  const Node *found;      // what no target, or only one target, has
  const char *text;       // as written
} Search;

static bool has_name(const AstNames *names, const Str *name) {
  for (uint32_t i = 0; i < names->len; i++)
    if (names->data[i] == name) return true;
  return false;
}

static bool is_for_one_target(const char *name) {
  return !strcmp(name, "inline_asm_elementwise") || !strcmp(name, "extern_elementwise") ||
         !strcmp(name, "extern_call");
}

static bool found(Search *s, const Node *n, const char *text) {
  s->found = n;
  s->text = text;
  return true;
}

static bool search_func(Search *s, const Func *fn, int depth);

// The module-level value of a name or dotted name, NULL where it is a local's or unknown.
static Value *search_value(Search *s, ModFile *m, const AstNames *locals, const Node *n) {
  Front *f = s->f;
  Lower L = {.f = f, .file = m, .env = env_new(f, NULL), .keep_const = true};
  if (n->kind == AST_Name) return has_name(locals, n->name) ? NULL : modfile_lookup(&L, m, n->name);
  if (n->kind != AST_Attr) return NULL;
  const Value *of = search_value(s, m, locals, n->a);
  if (of && of->kind == VAL_LIB) return lib_attr(f, of->s, n->name->s);
  return of && of->kind == VAL_FILE ? modfile_lookup(&L, of->file, n->name) : NULL;
}

static bool search_node(Search *s, ModFile *m, const AstNames *locals, const Node *n, int depth) {
  if (!n || ++s->nodes > ARMS_NODES) return false;
  if (n->kind == AST_Attr) {
    if (is_for_one_target(n->name->s)) return found(s, n, n->name->s);
    const Value *of = search_value(s, m, locals, n->a);
    if (of && of->kind == VAL_LIB) {
      const Value *v = lib_attr(s->f, of->s, n->name->s);
      return !v && found(s, n, arena_printf(s->f->a, "%s.%s", of->s->s, n->name->s));
    }
  } else if (n->kind == AST_Name) {
    if (is_for_one_target(n->name->s)) return found(s, n, n->name->s);
    const Value *v = search_value(s, m, locals, n);
    return v && v->kind == VAL_FUNC && search_func(s, v->func, depth + 1);
  }
  if (search_node(s, m, locals, n->a, depth) || search_node(s, m, locals, n->b, depth) ||
      search_node(s, m, locals, n->c, depth))
    return true;
  const NodeVec *const lists[3] = {&n->list, &n->list2, n->kind == AST_FuncDef ? NULL : &n->list3};
  for (int l = 0; l < 3; l++)
    for (uint32_t i = 0; lists[l] && i < lists[l]->len; i++)
      if (search_node(s, m, locals, lists[l]->data[i], depth)) return true;
  return false;
}

// What in a function, or in what it calls, only one target has, or none.
static bool search_func(Search *s, const Func *fn, int depth) {
  for (uint32_t i = 0; i < s->seen.len; i++)
    if (s->seen.data[i] == fn->def) return false;
  if (depth > ARMS_DEPTH) return false;
  vec_push(s->f->a, &s->seen, fn->def);
  AstNames locals = {0};
  for (uint32_t i = 0; i < fn->def->list.len; i++) vec_push(s->f->a, &locals, fn->def->list.data[i]->name);
  if (fn->def->kind == AST_Lambda) return search_node(s, fn->file, &locals, fn->def->a, depth);
  ast_bound_names(s->f->a, &fn->def->list2, &locals);
  for (uint32_t i = 0; i < fn->def->list2.len; i++)
    if (search_node(s, fn->file, &locals, fn->def->list2.data[i], depth)) return true;
  return false;
}

static bool fits(Search *s, const Value *v) {
  Front *f = s->f;
  if (v->kind == VAL_BUILTIN && is_for_one_target(v->builtin->name)) return !found(s, NULL, v->builtin->name);
  if (v->kind != VAL_FUNC) return true;
  f->browsing++;
  const bool bad = search_func(s, v->func, 0);
  f->browsing--;
  return !bad;
}

static bool means_something(const Value *v) {
  return v->kind != VAL_OPAQUE && v->kind != VAL_NONE && v->kind != VAL_POISON;
}

static uint32_t line_of(const Value *v, const Global *g) {
  return v->kind == VAL_FUNC    ? v->func->def->loc.line
         : v->kind == VAL_CLASS ? v->cls->def->loc.line
                                : g->stmt->loc.line;
}

Value *front_choose_arm(Front *f, const Node *condition, const Str *name, const Global *g, Value *v,
                        const Global *other, Value *w) {
  if (!means_something(v) || !means_something(w) || val_equal(v, w)) return v;
  if (v->kind == VAL_LIB || w->kind == VAL_LIB)
    return v->kind == VAL_LIB ? v : w; // the other stands in for it
  Search sv = {.f = f}, sw = {.f = f};
  const bool swap = !fits(&sv, v) && fits(&sw, w);
  if (!f->compiling) return swap ? w : v; // who lists a file compiles it later
  const uint32_t here = line_of(v, g), there = line_of(w, other);
  diag(f->d, DIAG_WARNING, condition->loc,
       "it is not known here whether this holds: '%s' is that of line %u, not that of line %u%s", name->s,
       swap ? there : here, swap ? here : there, swap ? arena_printf(f->a, ", which uses %s", sv.text) : "");
  if (condition->kind == AST_Name)
    diag_hint(f->d, "bind '%s' to say it (globals of dt_compile_options)", condition->name->s);
  return swap ? w : v;
}

// ---- decorators ----------------------------------------------------------------------------------------
static const char *decorator_text(Front *f, const Node *d) {
  if (d->kind == AST_Call) return arena_printf(f->a, "%s(...)", decorator_text(f, d->a));
  if (d->kind == AST_Attr) return arena_printf(f->a, "%s.%s", decorator_text(f, d->a), d->name->s);
  return d->kind == AST_Name ? d->name->s : "...";
}

// Is nothing lost where it is left out? Triton's own: which options a launch takes, which the caller decides here.
static bool is_known_decorator(Front *f, const Func *fn, const Node *d) {
  Search s = {.f = f};
  const AstNames none = {0};
  const Node *what = d->kind == AST_Call ? d->a : d;
  if (what->kind == AST_Name &&
      (!strcmp(what->name->s, "staticmethod") || !strcmp(what->name->s, "property")))
    return true;
  if (what->kind != AST_Name && what->kind != AST_Attr) return false;
  const Value *v = search_value(&s, fn->file, &none, what);
  if (v && v->kind == VAL_BUILTIN) return lib_key("triton") && !strcmp(v->builtin->module, lib_key("triton"));
  if (strcmp(what->name->s, "autotune") && strcmp(what->name->s, "heuristics") &&
      strcmp(what->name->s, "jit"))
    return false;
  if (v && v->kind == VAL_OPAQUE) return !strncmp(v->s->s, "triton.", 7);
  // @triton.autotune, where triton is the library or a name of the host for it
  const Value *of = what->kind == AST_Attr ? search_value(&s, fn->file, &none, what->a) : NULL;
  return of && (of->kind == VAL_LIB ? lib_key(of->s->s) && !strcmp(lib_key(of->s->s), "triton")
                                    : what->a->kind == AST_Name && !strcmp(what->a->name->s, "triton"));
}

void front_warn_decorators(Front *f, const Func *fn) {
  if (!f->compiling || f->quiet || fn->def->kind != AST_FuncDef) return;
  for (uint32_t i = 0; i < fn->def->list3.len; i++) {
    const Node *d = fn->def->list3.data[i];
    if (is_known_decorator(f, fn, d) || !front_err_fresh(f, d->loc)) continue;
    diag(f->d, DIAG_WARNING, d->loc, "the decorator '%s' is not run: '%s' is compiled as it is written",
         decorator_text(f, d), fn->name->s);
  }
}
