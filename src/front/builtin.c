// The library: looking rows up, binding arguments to a row's parameters, and arguments that must be constants.
#include "front/builtins.h"

#include <string.h>

static const Builtin rows[] = {
#define BUILTIN(module, name, params, flags, fn, data, text) {module, name, params, text, fn, data, flags},
#include "front/builtins.def"
#undef BUILTIN
};

const Builtin *builtin_rows(int *n) {
  *n = (int)DT_COUNTOF(rows);
  return rows;
}

int front_builtins(const FrontBuiltin **out) {
  static const FrontBuiltin view[] = {
#define BUILTIN(module, name, params, flags, fn, data, text) \
  {module, name, params, text, ((flags)&BF_METHOD) != 0},
#include "front/builtins.def"
#undef BUILTIN
  };
  *out = view;
  return (int)DT_COUNTOF(view);
}

static const Str *row_key(Front *f, const char *module, const char *name) {
  return str_printf(f->strings, "%s.%s", module, name);
}

const Builtin *builtin_find(Front *f, const char *module, const char *name) {
  if (!f->builtins.entries.len)
    for (size_t i = 0; i < DT_COUNTOF(rows); i++) {
      map_setp(&f->builtins, row_key(f, rows[i].module, rows[i].name), &rows[i]);
      if (rows[i].flags & BF_METHOD) map_setp(&f->builtins, row_key(f, "*", rows[i].name), &rows[i]);
    }
  return map_getp(&f->builtins, row_key(f, module, name));
}

const Builtin *builtin_method(Front *f, const char *name) { return builtin_find(f, "*", name); }

Value *builtin_value(Lower *L, const Builtin *row, Value *self, Loc loc) {
  Call c = {.row = row, .loc = loc};
  c.v[0] = self;
  c.at[0] = loc;
  return row->fn(L, &c);
}

// ---- suggestions -----------------------------------------------------------------------------------------
// Edits (insert, delete, replace, swap of neighbours) between two names, at most `most` + 1.
static int distance(const char *a, const char *b, int most) {
  enum { N = 40 };
  const int n = (int)strlen(a), m = (int)strlen(b);
  if (n > N - 1 || m > N - 1 || n - m > most || m - n > most) return most + 1;
  int d[N][N];
  for (int i = 0; i <= n; i++) d[i][0] = i;
  for (int j = 0; j <= m; j++) d[0][j] = j;
  for (int i = 1; i <= n; i++)
    for (int j = 1; j <= m; j++) {
      int v = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      if (d[i - 1][j] + 1 < v) v = d[i - 1][j] + 1;
      if (d[i][j - 1] + 1 < v) v = d[i][j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < v)
        v = d[i - 2][j - 2] + 1;
      d[i][j] = v;
    }
  return d[n][m];
}

const char *front_nearest_name(Front *f, const char *name, const char *const *names, uint32_t n) {
  (void)f;
  const int len = (int)strlen(name);
  int best = len <= 2 ? 0 : len <= 3 ? 1 : len <= 6 ? 2 : 3; // two letters are like everything
  const char *found = NULL;
  for (uint32_t i = 0; i < n; i++) {
    const int d = distance(name, names[i], best);
    if (d > 0 && d <= best) best = d - 1, found = names[i];
  }
  if (found) return found;
  size_t most = 2; // exponential: exp; otherwise the longest name that it begins with
  for (uint32_t i = 0; i < n; i++) {
    const size_t k = strlen(names[i]);
    if (k > most && k < (size_t)len && !memcmp(names[i], name, k)) most = k, found = names[i];
  }
  return found;
}

// ---- binding -----------------------------------------------------------------------------------------------
// Parameters: "a b? *rest **": words; ? may be left out; *rest takes what is left, ** any keyword.
static bool next_word(const char **p, const char **word, size_t *len) {
  while (**p == ' ') (*p)++;
  if (!**p) return false;
  *word = *p;
  while (**p && **p != ' ') (*p)++;
  *len = (size_t)(*p - *word);
  return true;
}

static const char *signature_text(Front *f, const Builtin *row) {
  const char *s = "", *p = row->params, *w;
  size_t n;
  while (next_word(&p, &w, &n)) {
    const bool opt = w[n - 1] == '?';
    s = arena_printf(f->a, "%s%s%.*s%s", s, *s ? ", " : "", (int)(n - opt), w, opt ? "=..." : "");
  }
  return arena_printf(f->a, "%s(%s)", row->name, s);
}

static const char *nearest_param(Front *f, const Builtin *row, const char *name) {
  Vec(const char *) names = {0};
  const char *p = row->params, *w;
  for (size_t n; next_word(&p, &w, &n);)
    vec_push(f->a, &names, arena_printf(f->a, "%.*s", (int)(n - (w[n - 1] == '?')), w));
  return front_nearest_name(f, name, names.data, names.len);
}

static bool bind_row(Lower *L, const Builtin *row, Value *self, Args *args, Call *c) {
  Front *f = L->f;
  const char *p = row->params, *w;
  size_t n;
  int i = 0;
  uint32_t at_pos = 0;
  bool *used = arena_array(f->a, bool, args->kw.len + 1);
  for (; next_word(&p, &w, &n); i++) {
    const bool opt = w[n - 1] == '?';
    if (opt) n--;
    if (n == 2 && w[0] == '*' && w[1] == '*') { // the function looks at the keywords itself
      memset(used, 1, args->kw.len * sizeof *used);
      continue;
    }
    if (w[0] == '*') {
      for (; at_pos < args->pos.len; at_pos++) vec_push(f->a, &c->rest, args->pos.data[at_pos]);
      i--;
      continue;
    }
    c->at[i] = c->loc;
    if (self) {
      c->v[i] = self;
      self = NULL;
    } else if (at_pos < args->pos.len) {
      c->v[i] = args->pos.data[at_pos];
      c->at[i] = args->pos_loc.data[at_pos++];
    }
    for (uint32_t k = 0; k < args->kw.len; k++) {
      if (strlen(args->kw_name.data[k]->s) != n || memcmp(args->kw_name.data[k]->s, w, n)) continue;
      used[k] = true;
      if (c->v[i]) {
        front_err(L, args->kw_loc.data[k], "'%s' gets two values for '%.*s'", row->name, (int)n, w);
        return false;
      }
      c->v[i] = args->kw.data[k];
      c->at[i] = args->kw_loc.data[k];
    }
    if (!c->v[i] && !opt) {
      front_err_hint(L, c->loc, arena_printf(f->a, "it is called as %s", signature_text(f, row)),
                     "'%s' needs a value for '%.*s'", row->name, (int)n, w);
      return false;
    }
  }
  if (at_pos < args->pos.len) {
    front_err_hint(L, args->pos_loc.data[at_pos],
                   arena_printf(f->a, "it is called as %s", signature_text(f, row)),
                   "'%s' takes fewer positional arguments: %u are too many", row->name, args->pos.len);
    return false;
  }
  for (uint32_t k = 0; k < args->kw.len; k++) {
    const char *name = args->kw_name.data[k]->s;
    if (used[k] || name[0] == '_') continue; // _semantic, _builder: the reference implementation's plumbing
    const char *near = nearest_param(f, row, name), *call = signature_text(f, row);
    front_err_hint(L, args->kw_loc.data[k],
                   near ? arena_printf(f->a, "did you mean '%s'? It is called as %s", near, call)
                        : arena_printf(f->a, "it is called as %s", call),
                   "'%s' has no parameter '%s' here", row->name, name);
    return false;
  }
  return true;
}

Value *front_call_builtin(Lower *L, const Builtin *row, Value *self, Args *args, Loc loc) {
  Front *f = L->f;
  if (!L->b.block && !(row->flags & BF_CONST)) {
    front_no_code(L, loc);
    return f->poison;
  }
  Call c = {.row = row, .loc = loc, .args = args};
  if (!bind_row(L, row, self, args, &c)) return f->poison;
  if (row->flags & BF_TILE && !front_tiles_allowed(L, loc, arena_printf(f->a, "'%s'", row->name)))
    return f->poison;
  for (int i = 0; i < FRONT_MAX_ARGS; i++)
    if (c.v[i] && c.v[i]->kind == VAL_MEM) c.v[i] = front_to_rt(L, c.v[i], loc);
  return row->fn(L, &c);
}

// ---- constant arguments ------------------------------------------------------------------------------------
// A run-time scalar whose value is known all the same (it went through a plain assignment).
static bool known_int(const Value *v, int64_t *out) {
  if (v->kind == VAL_INT || v->kind == VAL_BOOL) {
    *out = v->kind == VAL_INT ? (int64_t)v->i : v->b;
    return v->kind != VAL_INT || (v->i >= INT64_MIN && v->i <= INT64_MAX);
  }
  if (v->kind == VAL_FLOAT && v->f == (double)(int64_t)v->f) {
    *out = (int64_t)v->f;
    return true;
  }
  return false;
}

static const char *param_name(Front *f, const Builtin *row, int i) {
  const char *p = row->params, *w = "";
  size_t n = 0;
  for (int k = 0; k <= i && next_word(&p, &w, &n); k++) {}
  if (n && w[n - 1] == '?') n--;
  return arena_printf(f->a, "%.*s", (int)n, w);
}

static bool not_known(Lower *L, Call *c, int i, const char *what) {
  if (c->v[i]->kind != VAL_POISON)
    front_err_hint(
        L, c->at[i],
        c->v[i]->kind == VAL_RT
            ? "make it a tl.constexpr parameter, or declare the variable as `name: tl.constexpr = ...`"
            : NULL,
        "'%s' of %s must be %s known at compile time, not %s", param_name(L->f, c->row, i), c->row->name,
        what, val_kind_text(L->f, c->v[i]));
  return false;
}

bool arg_int(Lower *L, Call *c, int i, int64_t dflt, int64_t *out) {
  *out = dflt;
  if (!c->v[i] || (c->v[i]->kind == VAL_NONE)) return true;
  return known_int(c->v[i], out) || not_known(L, c, i, "an integer");
}

bool arg_bool(Lower *L, Call *c, int i, bool dflt, bool *out) {
  *out = dflt;
  if (!c->v[i] || c->v[i]->kind == VAL_NONE) return true;
  if (val_is_number(c->v[i])) {
    *out = front_condition(L, c->v[i], c->loc)->b;
    return true;
  }
  return not_known(L, c, i, "a bool");
}

const char *arg_str(Lower *L, Call *c, int i, const char *dflt) {
  if (!c->v[i] || c->v[i]->kind == VAL_NONE) return dflt;
  if (c->v[i]->kind == VAL_STR) return c->v[i]->s->s;
  not_known(L, c, i, "a string");
  return NULL;
}

const Elem *arg_dtype(Lower *L, Call *c, int i) {
  const Value *v = c->v[i];
  if (v->kind == VAL_DTYPE) return v->dt.elem;
  if (v->kind == VAL_STR) {
    const int d = front_dtype_parse(v->s->s, v->s->len);
    if (d >= 0) return elem_number(L->f, (FrontDtype)d);
  }
  if (v->kind == VAL_BUILTIN) { // int, float, bool
    const char *n = v->builtin->name;
    if (!strcmp(n, "int")) return elem_number(L->f, FDT_int32);
    if (!strcmp(n, "float")) return elem_number(L->f, FDT_float32);
    if (!strcmp(n, "bool")) return elem_number(L->f, FDT_int1);
  }
  not_known(L, c, i, "a type such as tl.float32");
  return NULL;
}

bool front_seq_items(Lower *L, Call *c, int i, int max, Value **out, int *n) {
  Front *f = L->f;
  *n = 0;
  const Value *v = c->v[i];
  if (!v || v->kind == VAL_NONE) return true;
  if (v->kind == VAL_POISON) return false;
  if (v->kind != VAL_TUPLE) {
    out[(*n)++] = c->v[i];
    return true;
  }
  if (v->seq.n > (uint32_t)max) {
    front_err(L, c->at[i], "'%s' of %s has at most %d items, not %u", param_name(f, c->row, i), c->row->name,
              max, v->seq.n);
    return false;
  }
  for (uint32_t k = 0; k < v->seq.n; k++) {
    if (v->seq.items[k]->kind == VAL_POISON) return false;
    out[(*n)++] = v->seq.items[k];
  }
  return true;
}

bool arg_ints(Lower *L, Call *c, int i, int max, int64_t *out, int *n) {
  Value *items[64];
  if (!front_seq_items(L, c, i, max < 64 ? max : 64, items, n)) return false;
  for (int k = 0; k < *n; k++)
    if (!known_int(items[k], &out[k])) {
      front_err_hint(L, c->at[i], "make it a tl.constexpr",
                     "'%s' of %s must hold integers known at compile time, not %s",
                     param_name(L->f, c->row, i), c->row->name, val_kind_text(L->f, items[k]));
      return false;
    }
  return true;
}

bool front_check_shape(Lower *L, int rank, const int64_t *dims, int32_t *shape, Loc loc) {
  int64_t all = 1;
  for (int k = 0; k < rank; k++) {
    if (dims[k] <= 0 || !bits_pow2((uint64_t)dims[k])) {
      front_err_hint(L, loc,
                     dims[k] > 0 ? arena_printf(L->f->a, "use %lld and mask what is too much",
                                                (long long)bits_next_pow2((uint64_t)dims[k]))
                                 : NULL,
                     "the sizes of a tile are powers of two, but axis %d has %lld", k, (long long)dims[k]);
      return false;
    }
    if (bits_mul_overflow(all, dims[k], &all) || all > IR_MAX_ELEMS) {
      front_err_hint(L, loc, "take a smaller block and a loop", "a tile has at most %d elements",
                     IR_MAX_ELEMS);
      return false;
    }
    shape[k] = (int32_t)dims[k];
  }
  return true;
}

bool arg_shape(Lower *L, Call *c, int i, int *rank, int32_t *shape) {
  int64_t dims[IR_MAX_RANK];
  return arg_ints(L, c, i, IR_MAX_RANK, dims, rank) && front_check_shape(L, *rank, dims, shape, c->at[i]);
}

Value *arg_tile(Lower *L, Call *c, int i) {
  Value *v = c->v[i];
  if (v->kind == VAL_POISON) return v;
  if (val_is_number(v)) return front_to_rt(L, v, c->at[i]);
  if (v->kind != VAL_RT)
    return front_err(L, c->at[i], "'%s' of %s must be a tile or scalar, not %s", param_name(L->f, c->row, i),
                     c->row->name, val_kind_text(L->f, v));
  return L->thread ? front_raise_level(L, v, c->at[i]) : v;
}

bool arg_axis(Lower *L, Call *c, int i, int rank, int *out) {
  int64_t axis;
  if (!arg_int(L, c, i, 0, &axis)) return false;
  if (axis < -rank || axis >= rank) {
    front_err_hint(L, c->at[i], "axes count from 0; -1 is the last",
                   "axis %lld is out of range for a tile of %d ax%cs", (long long)axis, rank,
                   rank == 1 ? 'i' : 'e');
    return false;
  }
  *out = (int)(axis < 0 ? axis + rank : axis);
  return true;
}
