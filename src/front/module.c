// Files and their names: which functions a file defines, and what a module-level name means.
//
// Nothing at module level is executed. A name is looked up when a kernel uses it: constants are folded, library
// imports resolve through libs.def, other imports are looked for beside the file and on the search path, and all else
// is opaque: an error only where a kernel uses it.
#include "front/front_impl.h"

#include <string.h>

static const struct {
  const char *dotted, *key;
} libs[] = {
#define LIB(dotted, key) {dotted, key},
#include "front/libs.def"
#undef LIB
};

const char *lib_key(const char *dotted) {
  for (size_t i = 0; i < DT_COUNTOF(libs); i++)
    if (!strcmp(libs[i].dotted, dotted)) return libs[i].key;
  // every vendor has a libdevice of its own
  static const char extra[] = "triton.language.extra.", end[] = ".libdevice";
  const size_t n = strlen(dotted);
  if (!strncmp(dotted, extra, sizeof extra - 1) && n > sizeof end &&
      !strcmp(dotted + n - (sizeof end - 1), end))
    return "libdevice";
  return NULL;
}

const char *lib_refusal(const char *dotted, const char *name, const char **hint) {
  static const struct {
    const char *key, *name, *reason, *hint;
  } rows[] = {
#define REFUSED(key, name, reason, hint) {key, name, reason, hint},
#include "front/refused.def"
#undef REFUSED
  };
  const char *key = lib_key(dotted);
  for (size_t i = 0; key && i < DT_COUNTOF(rows); i++) {
    if (strcmp(rows[i].key, key) || (strcmp(rows[i].name, "*") && strcmp(rows[i].name, name))) continue;
    *hint = rows[i].hint;
    return rows[i].reason;
  }
  return NULL;
}

Value *lib_module(Front *f, const char *dotted) {
  if (!lib_key(dotted)) return NULL;
  const Str *s = str_cstr(f->strings, dotted);
  Value *v = map_getp(&f->libs, s);
  if (!v) {
    v = val_new(f, VAL_LIB);
    v->s = s;
    map_setp(&f->libs, s, v);
  }
  return v;
}

// What `lib.name` is: a dtype, a library function, a module below; NULL if nothing.
Value *lib_attr(Front *f, const Str *lib, const char *name) {
  const char *key = lib_key(lib->s);
  if (!strcmp(key, "tl") || !strcmp(key, "dl") || !strcmp(key, "torch")) {
    for (int d = 0; d < FDT_COUNT; d++)
      if (!strcmp(front_dtypes[d].name, name)) return val_dtype(f, elem_number(f, (FrontDtype)d));
  }
  const Builtin *b = builtin_find(f, key, name);
  if (!b && !strcmp(key, "dl") && !strncmp(lib->s, "ditron.", 7)) b = builtin_find(f, key = "tl", name);
  if (!b && !strcmp(key, "tl")) b = builtin_find(f, "libdevice", name); // tl.math.* of older versions
  if (b) {
    Lower L = {.f = f, .env = env_new(f, NULL)};
    if (b->flags & BF_VALUE) return builtin_value(&L, b, NULL, LOC_NONE);
    Value *v = val_new(f, VAL_BUILTIN);
    v->builtin = b;
    return v;
  }
  const char *below = arena_printf(f->a, "%s.%s", lib->s, name);
  return strcmp(key, "torch") ? lib_module(f, below) : val_opaque(f, below);
}

// ---- collecting names ------------------------------------------------------------------------------
static Global *global_add(Front *f, ModFile *m, const Guard *guard, const Str *name, int kind,
                          const Node *node, const Node *stmt) {
  Global *g = arena_new(f->a, Global);
  g->guard = guard;
  g->kind = kind;
  g->node = node;
  g->stmt = stmt;
  g->item = -1;
  g->earlier = map_getp(&m->names, name);
  if (!g->earlier) vec_push(f->a, &m->order, name);
  map_setp(&m->names, name, g);
  return g;
}

static void collect(Front *f, ModFile *m, const Guard *guard, const NodeVec *stmts) {
  for (uint32_t i = 0; i < stmts->len; i++) {
    const Node *s = stmts->data[i];
    switch (s->kind) {
    case AST_FuncDef: global_add(f, m, guard, s->name, GLOBAL_FUNC, s, s); break;
    case AST_ClassDef: global_add(f, m, guard, s->name, GLOBAL_CLASS, s, s); break;
    case AST_Assign:
      for (uint32_t t = 0; t < s->list.len; t++) {
        const Node *target = s->list.data[t];
        if (target->kind == AST_Name) global_add(f, m, guard, target->name, GLOBAL_EXPR, s->a, s);
        if (target->kind != AST_Tuple && target->kind != AST_List) continue;
        for (uint32_t k = 0; k < target->list.len; k++)
          if (target->list.data[k]->kind == AST_Name)
            global_add(f, m, guard, target->list.data[k]->name, GLOBAL_EXPR, s->a, s)->item = (int)k;
      }
      break;
    case AST_AnnAssign:
      if (s->a && s->a->kind == AST_Name && s->c) global_add(f, m, guard, s->a->name, GLOBAL_EXPR, s->c, s);
      break;
    case AST_Import:
      for (uint32_t k = 0; k < s->list.len; k++) {
        const Node *al = s->list.data[k];
        const char *dot = strchr(al->name->s, '.');
        const Str *bound = al->name2 ? al->name2
                           : dot     ? str_intern(f->strings, al->name->s, (size_t)(dot - al->name->s))
                                     : al->name;
        global_add(f, m, guard, bound, GLOBAL_IMPORT, al, s);
      }
      break;
    case AST_ImportFrom:
      for (uint32_t k = 0; k < s->list.len; k++) {
        const Node *al = s->list.data[k];
        if (!strcmp(al->name->s, "*"))
          vec_push(f->a, &m->stars, s);
        else
          global_add(f, m, guard, al->name2 ? al->name2 : al->name, GLOBAL_FROM, al, s);
      }
      break;
    case AST_If: { // where the condition says nothing, the first arm's binding wins if it means something: it comes last
      Guard *g = arena_array(f->a, Guard, 2);
      g[0] = (Guard){s->a, false, guard};
      g[1] = (Guard){s->a, true, guard};
      collect(f, m, &g[0], &s->list2);
      collect(f, m, &g[1], &s->list);
      break;
    }
    case AST_Try: {
      Guard *g = arena_new(f->a, Guard);
      *g = (Guard){NULL, true, guard};
      collect(f, m, g, &s->list2);
      collect(f, m, g, &s->list);
      break;
    }
    case AST_With: collect(f, m, guard, &s->list2); break;
    default: break;
    }
  }
}

static const Str *dir_of(Front *f, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return str_cstr(f->strings, ".");
  return slash == path ? str_cstr(f->strings, "/") : str_intern(f->strings, path, (size_t)(slash - path));
}

static Status read_tree(Front *f, const FrontSource *src, const char *path, FrontTree *out) {
  const char *text = src->text;
  size_t len = src->len;
  if (!text) {
    char *data = NULL;
    const Status st = os_read_file(f->a, path, PARSE_MAX_BYTES, &data, &len);
    if (st == ST_LIMIT) {
      diag(f->d, DIAG_ERROR, LOC_NONE, "%s is larger than %d MiB, the most that a source may hold", path,
           PARSE_MAX_BYTES >> 20);
      return ST_COMPILE;
    }
    if (st != ST_OK) {
      diag(f->d, DIAG_ERROR, LOC_NONE, "%s cannot be read: %s", path, os_error());
      return st;
    }
    text = data;
  }
  Node *module = NULL;
  const Status st = parse_python(f->a, f->d, f->strings, diags_source(f->d, path, text, len), &module);
  out->module = module;
  return st;
}

Status modfile_load(Front *f, const FrontSource *src, ModFile **out) {
  const char *path = src->path ? src->path : "<text>";
  ModFile *m = arena_new(f->a, ModFile);
  m->path = str_cstr(f->strings, path);
  m->dir = dir_of(f, path);
  map_init(&m->names, f->a);
  if (src->tree) {
    m->tree = *src->tree;
  } else {
    const Status st = read_tree(f, src, path, &m->tree);
    if (st != ST_OK) return st;
  }
  collect(f, m, NULL, &m->tree.module->list);
  m->next = f->files;
  f->files = m;
  f->nfiles++;
  *out = m;
  return ST_OK;
}

// ---- imports of files --------------------------------------------------------------------------------
static ModFile *load_path(Lower *L, const char *path) {
  Front *f = L->f;
  for (ModFile *m = f->files; m; m = m->next)
    if (!strcmp(m->path->s, path)) return m;
  if (f->nfiles >= FRONT_MAX_FILES || !os_exists(path)) return NULL;
  ModFile *m = NULL;
  const int quiet = f->quiet;
  f->quiet = 0; // a syntax error in a module that a kernel needs must show
  const Status st = modfile_load(f, &(FrontSource){.path = path}, &m);
  f->quiet = quiet;
  return st == ST_OK ? m : NULL;
}

static ModFile *load_below(Lower *L, const char *dir, const char *rel) {
  Front *f = L->f;
  if (!*rel) return load_path(L, arena_printf(f->a, "%s/__init__.py", dir));
  ModFile *m = load_path(L, arena_printf(f->a, "%s/%s.py", dir, rel));
  return m ? m : load_path(L, arena_printf(f->a, "%s/%s/__init__.py", dir, rel));
}

static ModFile *find_file(Lower *L, const ModFile *from, const char *dotted, int dots) {
  Front *f = L->f;
  if (f->browsing) return NULL;
  char *rel = arena_strdup(f->a, dotted);
  for (char *c = rel; *c; c++)
    if (*c == '.') *c = '/';
  const char *dir = from->dir->s;
  if (dots) {
    for (int i = 1; i < dots; i++) dir = arena_printf(f->a, "%s/..", dir);
    return load_below(L, dir, rel);
  }
  ModFile *m = load_below(L, dir, rel);
  for (int i = 0; !m && i < f->o.nsearch; i++) m = load_below(L, f->o.search[i], rel);
  // absolute imports inside a package: the folders above the file that hold the package
  const char *dot = strchr(dotted, '.');
  const int first = dot ? (int)(dot - dotted) : (int)strlen(dotted);
  for (int i = 0; !m && i < 10; i++) {
    dir = arena_printf(f->a, "%s/..", dir);
    if (os_exists(arena_printf(f->a, "%s/%.*s/__init__.py", dir, first, dotted))) m = load_below(L, dir, rel);
  }
  return m;
}

// Kernels often get `triton` and `tl` through a module of their own project, which may not be at hand.
static Value *well_known(Front *f, const char *name) {
  static const char *const known[][2] = {
      {"triton", "triton"},
      {"tl", "triton.language"},
      {"language", "triton.language"},
      {"libdevice", "triton.language.extra.libdevice"},
      {"tldevice", "triton.language.extra.libdevice"},
      {"tl_extra_shim", "triton.language.extra.libdevice"},
      {"dl", "triton_dist.language"},
      {"libshmem_device", "triton_dist.language.extra.libshmem_device"},
      {"language_extra", "triton_dist.language.extra.language_extra"},
  };
  for (size_t i = 0; i < DT_COUNTOF(known); i++)
    if (!strcmp(known[i][0], name)) return lib_module(f, known[i][1]);
  return NULL;
}

static Value *file_value(Front *f, ModFile *m) {
  Value *v = val_new(f, VAL_FILE);
  v->file = m;
  return v;
}

static Value *import_module(Lower *L, ModFile *m, const Node *alias) {
  Front *f = L->f;
  const char *name = alias->name->s;
  const char *dot = strchr(name, '.');
  // `import a.b` binds a; `import a.b as c` binds a.b
  const char *bound = alias->name2 || !dot ? name : arena_printf(f->a, "%.*s", (int)(dot - name), name);
  Value *v = lib_module(f, bound);
  if (v) return v;
  ModFile *file = find_file(L, m, bound, 0);
  if (file) return file_value(f, file);
  v = well_known(f, alias->name2 ? alias->name2->s : bound);
  return v ? v : val_opaque(f, bound);
}

// `from ..a.b` in a file of a package, as an absolute name: the folders above that have an __init__.py belong to it.
static const char *absolute_name(Front *f, const ModFile *m, const Node *from) {
  if (!from->op) return from->name->s;
  const char *path = m->dir->s, *dotted = "";
  size_t len = strlen(path);
  for (int up = 1; len && os_exists(arena_printf(f->a, "%.*s/__init__.py", (int)len, path)); up++) {
    size_t start = len;
    while (start && path[start - 1] != '/') start--;
    if (up >= from->op)
      dotted = arena_printf(f->a, "%.*s%s%s", (int)(len - start), path + start, *dotted ? "." : "", dotted);
    len = start ? start - 1 : 0;
  }
  return arena_printf(f->a, "%s%s%s", dotted, *dotted && from->name->len ? "." : "", from->name->s);
}

static Value *import_from(Lower *L, ModFile *m, const Node *stmt, const Str *name) {
  Front *f = L->f;
  const char *absolute = absolute_name(f, m, stmt);
  if (lib_key(absolute)) { // also inside an installed library itself
    Value *v = lib_attr(f, str_cstr(f->strings, absolute), name->s);
    return v ? v : val_opaque(f, arena_printf(f->a, "%s.%s", absolute, name->s));
  }
  ModFile *file = find_file(L, m, stmt->name->s, stmt->op);
  Value *v = NULL;
  if (file && file != m) v = modfile_lookup(L, file, name);
  if (!v || v->kind == VAL_OPAQUE) { // a file inside a package
    ModFile *sub = find_file(
        L, m, stmt->name->len ? arena_printf(f->a, "%s.%s", stmt->name->s, name->s) : name->s, stmt->op);
    if (sub) v = file_value(f, sub);
  }
  if (!v || v->kind == VAL_OPAQUE || v->kind == VAL_NONE) {
    Value *known = well_known(f, name->s);
    if (known) v = known;
  }
  return v ? v : val_opaque(f, arena_printf(f->a, "%s.%s", stmt->name->s, name->s));
}

// ---- evaluating names ------------------------------------------------------------------------------------
// Module-level code, evaluated in silence: what cannot be known is opaque.
static Value *eval_quiet(Front *f, ModFile *m, const Node *n, const char *name) {
  Lower L = {.f = f, .file = m, .env = env_new(f, NULL), .keep_const = true};
  // with a budget of its own: host code must not use up the kernel's
  const int64_t steps = f->steps, budget = FRONT_MAX_STEPS / 10;
  f->steps = FRONT_MAX_STEPS - budget;
  f->quiet++;
  Value *v = front_eval(&L, n);
  f->quiet--;
  f->steps = steps;
  return v->kind == VAL_POISON ? val_opaque(f, name) : v;
}

static bool is_builtin(const Value *v, const char *module, const char *name) {
  return v && v->kind == VAL_BUILTIN && !strcmp(v->builtin->module, module) &&
         !strcmp(v->builtin->name, name);
}

static int func_kind(Front *f, ModFile *m, const Node *def) {
  for (uint32_t i = 0; i < def->list3.len; i++) {
    const Node *d = def->list3.data[i];
    if (d->kind == AST_Call) d = d->a;
    // an attribute of something unknown still counts by its last name: @mypkg.triton.jit
    Value *v = eval_quiet(f, m, d, "decorator");
    if (is_builtin(v, "triton", "jit")) return FUNC_JIT;
    if (is_builtin(v, "triton", "constexpr_function")) return FUNC_CONSTEXPR;
    if (v->kind == VAL_OPAQUE && (d->kind == AST_Attr || d->kind == AST_Name) && !strcmp(d->name->s, "jit") &&
        d->kind == AST_Attr && d->a->kind == AST_Name && !strcmp(d->a->name->s, "triton"))
      return FUNC_JIT;
  }
  return FUNC_PLAIN;
}

const Func *front_func_of_def(Front *f, ModFile *m, const Node *def) {
  Func *fn = map_getp(&f->funcs, def);
  if (fn) return fn;
  fn = arena_new(f->a, Func);
  fn->file = m;
  fn->def = def;
  fn->name = def->name ? def->name : str_cstr(f->strings, "<lambda>");
  map_setp(&f->funcs, def, fn);
  fn->kind = func_kind(f, m, def);
  return fn;
}

bool front_func_is_jit(Front *f, ModFile *m, const Node *def) {
  return front_func_of_def(f, m, def)->kind == FUNC_JIT;
}

static Value *func_value(Front *f, const Func *fn) {
  Value *v = val_new(f, VAL_FUNC);
  v->func = fn;
  return v;
}

static Value *class_value(Front *f, ModFile *m, const Node *def) {
  Value *v = map_getp(&f->classes, def);
  if (v) return v;
  Class *c = arena_new(f->a, Class);
  c->file = m;
  c->def = def;
  c->name = def->name;
  for (uint32_t i = 0; i < def->list.len; i++) {
    const Node *b = def->list.data[i];
    c->named_tuple |= (b->kind == AST_Name || b->kind == AST_Attr) && !strcmp(b->name->s, "NamedTuple");
  }
  for (uint32_t i = 0; i < def->list2.len; i++) {
    const Node *s = def->list2.data[i];
    if (s->kind != AST_AnnAssign || s->a->kind != AST_Name) continue;
    vec_push(f->a, &c->fields, s->a->name);
    vec_push(f->a, &c->defaults, s->c);
  }
  v = val_new(f, VAL_CLASS);
  v->cls = c;
  map_setp(&f->classes, def, v);
  return v;
}

// Does Python get to a statement under this condition? 1: yes, 0: no, -1: not known.
static int holds(Front *f, ModFile *m, const Guard *g) {
  if (!g->condition) return -1; // a try: either part may have been left
  f->deciding++;
  const Value *c = eval_quiet(f, m, g->condition, "condition");
  f->deciding--;
  if (c->kind != VAL_BOOL && c->kind != VAL_INT && c->kind != VAL_NONE) return -1;
  return (c->kind == VAL_BOOL ? c->b : c->kind == VAL_INT && c->i != 0) == g->holds;
}

static int reached(Front *f, ModFile *m, const Guard *g) {
  int all = 1;
  for (; g && all; g = g->outer) {
    const int h = holds(f, m, g);
    if (h <= 0) all = h;
  }
  return all;
}

static bool is_under(const Guard *inner, const Guard *g) {
  while (inner && inner != g) inner = inner->outer;
  return inner != NULL;
}

// The unknown `if` that decides between g and an earlier binding, or NULL. The outermost: its arms are what is chosen.
static const Guard *undecided(Front *f, ModFile *m, const Global *g, const Global *earlier) {
  const Guard *found = NULL;
  for (const Guard *p = g->guard; p; p = p->outer)
    if (p->condition && !is_under(earlier->guard, p) && holds(f, m, p) < 0) found = p;
  return found;
}

static Value *global_value(Lower *L, ModFile *m, Global *g, const Str *name) {
  Front *f = L->f;
  Value *none = NULL, **slot = f->browsing ? &none : f->deciding ? &g->certain : &g->value;
  if (*slot) return *slot;
  if (f->browsing && g->value) return g->value;
  if (g->busy) // name = triton.jit(name)
    return g->earlier ? global_value(L, m, g->earlier, name) : val_opaque(f, name->s);
  g->busy = true;
  const int here = g->guard ? reached(f, m, g->guard) : 1;
  if (!here || (here < 0 && f->deciding && g->kind == GLOBAL_EXPR)) {
    *slot = !here && g->earlier ? global_value(L, m, g->earlier, name) : val_opaque(f, name->s);
    g->busy = false;
    return *slot;
  }
  Value *v = NULL;
  switch (g->kind) {
  case GLOBAL_FUNC: v = func_value(f, front_func_of_def(f, m, g->node)); break;
  case GLOBAL_CLASS: v = class_value(f, m, g->node); break;
  case GLOBAL_IMPORT: v = import_module(L, m, g->node); break;
  case GLOBAL_FROM: v = import_from(L, m, g->stmt, g->node->name); break;
  case GLOBAL_EXPR:
    v = eval_quiet(f, m, g->node, name->s);
    if (g->item >= 0)
      v = v->kind == VAL_TUPLE && (uint32_t)g->item < v->seq.n ? v->seq.items[g->item]
                                                               : val_opaque(f, name->s);
    break;
  }
  g->busy = false;
  // a host value over a usable one (try: import a; except: a = None) does not hide it
  if (v->kind == VAL_OPAQUE && g->earlier) {
    Value *older = global_value(L, m, g->earlier, name);
    if (older->kind != VAL_OPAQUE && older->kind != VAL_NONE) v = older;
  }
  for (Global *e = here < 0 && !f->deciding && !f->browsing ? g->earlier : NULL; e; e = e->earlier) {
    const Guard *open = undecided(f, m, g, e);
    if (!open) continue;
    v = front_choose_arm(f, open->condition, name, g, v, e, global_value(L, m, e, name));
    break;
  }
  *slot = v;
  return v;
}

// Does `bound` name `name` of this file: plainly in the main file, as package.module.name in any?
static bool binds(const Front *f, const ModFile *m, const char *bound, const char *name) {
  const char *dot = strrchr(bound, '.');
  if (strcmp(dot ? dot + 1 : bound, name)) return false;
  if (!dot) return m == f->main;
  size_t n = (size_t)(dot - bound), len = strlen(m->path->s);
  const char *ends[] = {".py", "/__init__.py"};
  for (size_t e = 0; e < DT_COUNTOF(ends); e++) {
    const size_t tail = strlen(ends[e]);
    if (len < n + tail || strcmp(m->path->s + len - tail, ends[e])) continue;
    const char *at = m->path->s + len - tail - n;
    bool same = at == m->path->s || at[-1] == '/';
    for (size_t i = 0; i < n && same; i++) same = at[i] == (bound[i] == '.' ? '/' : bound[i]);
    if (same) return true;
  }
  return false;
}

Value *modfile_lookup(Lower *L, ModFile *m, const Str *name) {
  Front *f = L->f;
  for (int i = 0; i < f->o.nglobals; i++)
    if (binds(f, m, f->o.globals[i].name, name->s)) return val_of_const(f, m, &f->o.globals[i].value);
  return modfile_own(L, m, name);
}

Value *modfile_dotted(Lower *L, ModFile *m, const char *dotted) {
  Front *f = L->f;
  const char *dot = strrchr(dotted, '.');
  const Str *module = str_intern(f->strings, dotted, (size_t)(dot - dotted));
  if (lib_key(module->s)) return lib_attr(f, module, dot + 1);
  ModFile *file = find_file(L, m, module->s, 0);
  return file ? modfile_lookup(L, file, str_cstr(f->strings, dot + 1)) : NULL;
}

Value *modfile_own(Lower *L, ModFile *m, const Str *name) {
  Front *f = L->f;
  Global *g = map_getp(&m->names, name);
  if (g) return global_value(L, m, g, name);
  for (uint32_t i = m->stars.len; i-- > 0;) {
    const Node *s = m->stars.data[i];
    Value *v = NULL;
    if (!s->op && lib_key(s->name->s)) {
      v = lib_attr(f, str_cstr(f->strings, s->name->s), name->s);
    } else if (f->star_depth < 16) {
      ModFile *file = find_file(L, m, s->name->s, s->op);
      f->star_depth++;
      if (file && file != m) v = modfile_lookup(L, file, name);
      f->star_depth--;
    }
    if (v) return v;
  }
  return NULL;
}

void front_import_stmt(Lower *L, const Node *s) {
  Front *f = L->f;
  for (uint32_t i = 0; i < s->list.len; i++) {
    const Node *al = s->list.data[i];
    if (s->kind == AST_ImportFrom && !strcmp(al->name->s, "*")) {
      front_err_hint(L, al->loc, "move the import to the top of the file", "`import *` inside a function");
      continue;
    }
    const char *dot = strchr(al->name->s, '.');
    const Str *bound = al->name2 ? al->name2
                       : dot && s->kind == AST_Import
                           ? str_intern(f->strings, al->name->s, (size_t)(dot - al->name->s))
                           : al->name;
    Value *v = s->kind == AST_Import ? import_module(L, L->file, al) : import_from(L, L->file, s, al->name);
    env_set(f, L->env, bound, v, false);
  }
}
