// Values: making them, telling them apart, showing them to people, and taking them apart into IR values.
#include "front/front_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- making --------------------------------------------------------------------------------------
Value *val_new(Front *f, ValueKind k) {
  Value *v = arena_new(f->a, Value);
  v->kind = k;
  return v;
}
Value *val_int(Front *f, AstInt i) {
  Value *v = val_new(f, VAL_INT);
  v->i = i;
  return v;
}
Value *val_float(Front *f, double d) {
  Value *v = val_new(f, VAL_FLOAT);
  v->f = d;
  return v;
}
Value *val_bool(Front *f, bool b) { return b ? f->vtrue : f->vfalse; }
Value *val_str(Front *f, const char *s) {
  Value *v = val_new(f, VAL_STR);
  v->s = str_cstr(f->strings, s);
  return v;
}
Value *val_dtype(Front *f, const Elem *e) {
  Value *v = val_new(f, VAL_DTYPE);
  v->dt.elem = e;
  v->dt.rank = -1;
  return v;
}
Value *val_tuple(Front *f, Value *const *items, uint32_t n, bool list) {
  Value *v = val_new(f, VAL_TUPLE);
  v->seq.items = n ? arena_copy(f->a, items, sizeof *items * n) : NULL;
  v->seq.n = n;
  v->seq.list = list;
  return v;
}
Value *val_rt(Front *f, IrValue *ir, const Type *t, const Why *why) {
  Value *v = val_new(f, VAL_RT);
  v->rt.ir = ir;
  v->rt.type = t;
  v->rt.why = t->thread ? why : NULL;
  return v;
}
Value *val_opaque(Front *f, const char *name) {
  Value *v = val_new(f, VAL_OPAQUE);
  v->s = str_cstr(f->strings, name);
  return v;
}

Value *val_of_const(Front *f, ModFile *m, const FrontConst *c) {
  switch (c->kind) {
  case FCONST_NONE: return f->none;
  case FCONST_BOOL: return val_bool(f, c->i != 0);
  case FCONST_INT: return val_int(f, c->is_unsigned ? (AstInt)(uint64_t)c->i : (AstInt)c->i);
  case FCONST_FLOAT: return val_float(f, c->f);
  case FCONST_STR: return val_str(f, c->s ? c->s : "");
  case FCONST_DTYPE: return val_dtype(f, elem_number(f, c->dtype));
  case FCONST_FUNC: {
    Lower L = {.f = f, .file = m, .env = env_new(f, NULL)};
    if (c->s && strchr(c->s, '.')) return modfile_dotted(&L, m, c->s);
    return modfile_own(&L, m, str_cstr(f->strings, c->s ? c->s : "")); // a bound name must not find itself
  }
  case FCONST_TUPLE: {
    Value **items = arena_array(f->a, Value *, c->nitems + 1);
    for (int i = 0; i < c->nitems; i++)
      if (!(items[i] = val_of_const(f, m, &c->items[i]))) return NULL;
    return val_tuple(f, items, (uint32_t)c->nitems, false);
  }
  }
  return NULL;
}

// ---- comparing -----------------------------------------------------------------------------------
bool val_equal(const Value *a, const Value *b) {
  if (a == b) return true;
  if (val_is_number(a) && val_is_number(b)) {
    if (a->kind == VAL_FLOAT || b->kind == VAL_FLOAT) {
      const double x = a->kind == VAL_FLOAT ? a->f : a->kind == VAL_INT ? (double)a->i : a->b;
      const double y = b->kind == VAL_FLOAT ? b->f : b->kind == VAL_INT ? (double)b->i : b->b;
      return x == y;
    }
    return (a->kind == VAL_INT ? a->i : a->b) == (b->kind == VAL_INT ? b->i : b->b);
  }
  if (a->kind != b->kind) return false;
  switch (a->kind) {
  case VAL_NONE:
  case VAL_ELLIPSIS: return true;
  case VAL_STR:
  case VAL_LIB:
  case VAL_OPAQUE: return a->s == b->s;
  case VAL_DTYPE:
    return a->dt.elem == b->dt.elem && a->dt.rank == b->dt.rank &&
           (a->dt.rank <= 0 || !memcmp(a->dt.shape, b->dt.shape, sizeof(int32_t) * (size_t)a->dt.rank));
  case VAL_FUNC: return a->func == b->func;
  case VAL_BUILTIN: return a->builtin == b->builtin;
  case VAL_METHOD: return val_equal(a->method.self, b->method.self) && val_equal(a->method.fn, b->method.fn);
  case VAL_FILE: return a->file == b->file;
  case VAL_CLASS: return a->cls == b->cls;
  case VAL_TUPLE:
  case VAL_OBJECT:
    if (a->seq.n != b->seq.n || a->seq.cls != b->seq.cls) return false;
    for (uint32_t i = 0; i < a->seq.n; i++)
      if (!val_equal(a->seq.items[i], b->seq.items[i])) return false;
    return true;
  case VAL_RT: return a->rt.ir == b->rt.ir;
  case VAL_TOKEN: return a->token == b->token;
  default: return false;
  }
}

// ---- showing -------------------------------------------------------------------------------------
static const char *int_text(Front *f, AstInt v) {
  char buf[48];
  int i = (int)sizeof buf;
  buf[--i] = 0;
  unsigned __int128 u = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
  do buf[--i] = (char)('0' + (int)(u % 10));
  while (u /= 10);
  if (v < 0) buf[--i] = '-';
  return arena_strdup(f->a, buf + i);
}

// The shortest text that reads back as the same float, in Python's manner.
static const char *float_text(Front *f, double d) {
  if (isnan(d)) return "nan";
  if (isinf(d)) return d < 0 ? "-inf" : "inf";
  char *s = NULL;
  for (int p = 1; p <= 17; p++) {
    s = arena_printf(f->a, "%.*g", p, d);
    for (char *c = s; *c; c++)
      if (*c == ',') *c = '.'; // whatever the process's locale says
    double back = 0;
    if (sscanf(s, "%lf", &back) == 1 && back == d) break;
  }
  return strpbrk(s, ".en") ? s : arena_printf(f->a, "%s.0", s);
}

static const char *repr_seq(Front *f, const Value *v) {
  const char *s = v->seq.list ? "[" : "(";
  for (uint32_t i = 0; i < v->seq.n; i++)
    s = arena_printf(f->a, "%s%s%s", s, i ? ", " : "", val_repr(f, v->seq.items[i], true));
  return arena_printf(f->a, "%s%s%s", s, v->seq.n == 1 && !v->seq.list ? "," : "", v->seq.list ? "]" : ")");
}

const char *val_repr(Front *f, const Value *v, bool quote) {
  switch (v->kind) {
  case VAL_NONE: return "None";
  case VAL_BOOL: return v->b ? "True" : "False";
  case VAL_INT: return int_text(f, v->i);
  case VAL_FLOAT: return float_text(f, v->f);
  case VAL_STR: return quote ? arena_printf(f->a, "'%s'", v->s->s) : v->s->s;
  case VAL_DTYPE:
    return v->dt.rank > 0 ? arena_printf(f->a, "<%s, %s>", front_shape_text(f, v->dt.rank, v->dt.shape),
                                         elem_text(f, v->dt.elem))
                          : elem_text(f, v->dt.elem);
  case VAL_TUPLE: return repr_seq(f, v);
  case VAL_FUNC: return arena_printf(f->a, "<function %s>", v->func->name->s);
  case VAL_CLASS: return arena_printf(f->a, "<class %s>", v->cls->name->s);
  default: return arena_printf(f->a, "<%s>", val_kind_text(f, v));
  }
}

// "a tuple (fp32[16], int32)": the types tell tuples apart.
static const char *tuple_text(Front *f, const Value *v) {
  const char *s = "";
  for (uint32_t i = 0; i < v->seq.n && i < 6; i++) {
    const Value *item = v->seq.items[i];
    const char *t = item->kind == VAL_RT      ? type_text(f, item->rt.type)
                    : item->kind <= VAL_FLOAT ? val_repr(f, item, true)
                    : item->kind == VAL_TUPLE ? tuple_text(f, item)
                                              : val_kind_text(f, item);
    s = arena_printf(f->a, "%s%s%s", s, i ? ", " : "", t);
  }
  return arena_printf(f->a, "%s %c%s%s%c", v->seq.list ? "a list" : "a tuple", v->seq.list ? '[' : '(', s,
                      v->seq.n > 6 ? ", ..." : "", v->seq.list ? ']' : ')');
}

const char *val_kind_text(Front *f, const Value *v) {
  switch (v->kind) {
  case VAL_POISON: return "an invalid value";
  case VAL_NONE: return "None";
  case VAL_BOOL: return "a compile-time bool";
  case VAL_INT: return arena_printf(f->a, "the constant %s", int_text(f, v->i));
  case VAL_FLOAT: return arena_printf(f->a, "the constant %s", float_text(f, v->f));
  case VAL_STR: return "a string";
  case VAL_ELLIPSIS: return "...";
  case VAL_DTYPE: return arena_printf(f->a, "the type %s", val_repr(f, v, false));
  case VAL_FUNC: return arena_printf(f->a, "the function '%s'", v->func->name->s);
  case VAL_BUILTIN: return arena_printf(f->a, "the library function '%s'", v->builtin->name);
  case VAL_METHOD: return "a method";
  case VAL_LIB: return arena_printf(f->a, "the module '%s'", v->s->s);
  case VAL_FILE: return arena_printf(f->a, "the module in %s", v->file->path->s);
  case VAL_OPAQUE: return arena_printf(f->a, "'%s' of the host program", v->s->s);
  case VAL_TUPLE: return tuple_text(f, v);
  case VAL_DICT: return "a dictionary";
  case VAL_RANGE: return "a range";
  case VAL_SLICE: return "a slice";
  case VAL_CLASS: return arena_printf(f->a, "the class '%s'", v->cls->name->s);
  case VAL_OBJECT: return arena_printf(f->a, "a '%s' object", v->seq.cls->cls->name->s);
  case VAL_RT: {
    const char *t = type_text(f, v->rt.type);
    const char *what = v->rt.type->rank ? "tile" : elem_is_ptr(v->rt.type->elem) ? "pointer" : "scalar";
    return arena_printf(f->a, "%s %s %s", *t == 'i' || *t == 'f' ? "an" : "a", t, what);
  }
  case VAL_TOKEN: return "a wait token";
  case VAL_BLOCKPTR:
    return arena_printf(f->a, "a block pointer of shape %s", front_shape_text(f, v->bp->rank, v->bp->block));
  case VAL_DESC:
    return arena_printf(f->a, "a tensor descriptor of block %s",
                        front_shape_text(f, v->desc->rank, v->desc->block));
  case VAL_VECTOR:
    return arena_printf(f->a, "a vector of %u %s", v->seq.n, elem_text(f, v->seq.items[0]->rt.type->elem));
  case VAL_MEM: return "a tile in shared memory";
  case VAL_SMEM:
    if (!v->smem->rank) return "a pointer into shared memory";
    return arena_printf(f->a, "a shared-memory buffer of shape %s",
                        front_shape_text(f, v->smem->rank, v->smem->shape));
  }
  return "?";
}

// Equal signatures: the same compile-time values and types, so the same code.
char *val_signature(Front *f, const Value *v) {
  switch (v->kind) {
  case VAL_FLOAT: return arena_printf(f->a, "f%a", v->f);
  case VAL_INT: return arena_printf(f->a, "c%s", int_text(f, v->i));
  case VAL_STR: return arena_printf(f->a, "'%u:%s'", v->s->len, v->s->s);
  case VAL_LIB:
  case VAL_OPAQUE: return arena_printf(f->a, "m'%u:%s'", v->s->len, v->s->s);
  case VAL_FUNC: return arena_printf(f->a, "fn%p", (const void *)v->func);
  case VAL_BUILTIN: return arena_printf(f->a, "bi%p", (const void *)v->builtin);
  case VAL_METHOD:
    return arena_printf(f->a, "me(%s,%s)", val_signature(f, v->method.self), val_signature(f, v->method.fn));
  case VAL_FILE: return arena_printf(f->a, "fi%p", (const void *)v->file);
  case VAL_CLASS: return arena_printf(f->a, "cl%p", (const void *)v->cls);
  case VAL_DICT:
  case VAL_TUPLE:
  case VAL_VECTOR:
  case VAL_OBJECT: {
    char *s = arena_printf(f->a, "%c%d%p(",
                           v->kind == VAL_TUPLE    ? 't'
                           : v->kind == VAL_DICT   ? 'd'
                           : v->kind == VAL_VECTOR ? 'v'
                                                   : 'o',
                           v->seq.list, (const void *)v->seq.cls);
    for (uint32_t i = 0; i < v->seq.n; i++)
      s = arena_printf(f->a, "%s%s=%s,", s, v->seq.fields ? v->seq.fields[i]->s : "",
                       val_signature(f, v->seq.items[i]));
    return arena_printf(f->a, "%s)", s);
  }
  case VAL_RT: return arena_printf(f->a, "r%s", type_text(f, v->rt.type));
  case VAL_TOKEN: return arena_strdup(f->a, "token");
  case VAL_BLOCKPTR: {
    char *s = arena_printf(f->a, "b%s%s(", type_text(f, v->bp->base->rt.type),
                           front_shape_text(f, v->bp->rank, v->bp->block));
    for (int i = 0; i < v->bp->rank; i++)
      s = arena_printf(f->a, "%s%s,%s,%s,%d;", s, val_signature(f, v->bp->shape[i]),
                       val_signature(f, v->bp->strides[i]), val_signature(f, v->bp->offsets[i]),
                       v->bp->order[i]);
    return arena_printf(f->a, "%s)", s);
  }
  case VAL_DESC: {
    char *s = arena_printf(f->a, "D%c%s%s(", v->desc->base ? v->desc->nan ? 'n' : 'z' : 'h',
                           elem_text(f, v->desc->elem), front_shape_text(f, v->desc->rank, v->desc->block));
    for (int i = 0; i < v->desc->rank; i++)
      s = arena_printf(f->a, "%s%s,%s;", s, v->desc->shape[i] ? val_signature(f, v->desc->shape[i]) : "?",
                       v->desc->strides[i] ? val_signature(f, v->desc->strides[i]) : "?");
    return arena_printf(f->a, "%s)", s);
  }
  case VAL_SMEM:
    return arena_printf(f->a, "s%p%s", (const void *)v->smem->ir,
                        front_shape_text(f, v->smem->rank, v->smem->shape));
  default: return arena_printf(f->a, "k%d%s", (int)v->kind, val_repr(f, v, true));
  }
}

// ---- taking apart ----------------------------------------------------------------------------------
static void leaf_push(Front *f, LeafVec *out, IrValue *ir, const Type *t, const Why *why) {
  vec_push(f->a, out, ((Leaf){ir, t, why}));
}

void val_leaves(Front *f, const Value *v, LeafVec *out) {
  switch (v->kind) {
  case VAL_RT: leaf_push(f, out, v->rt.ir, v->rt.type, v->rt.why); break;
  case VAL_TOKEN: leaf_push(f, out, v->token, NULL, NULL); break;
  case VAL_TUPLE:
  case VAL_OBJECT:
  case VAL_VECTOR:
  case VAL_DICT:
    for (uint32_t i = 0; i < v->seq.n; i++) val_leaves(f, v->seq.items[i], out);
    break;
  case VAL_METHOD: val_leaves(f, v->method.self, out); break;
  case VAL_BLOCKPTR:
    val_leaves(f, v->bp->base, out);
    for (int i = 0; i < v->bp->rank; i++) val_leaves(f, v->bp->shape[i], out);
    for (int i = 0; i < v->bp->rank; i++) val_leaves(f, v->bp->strides[i], out);
    for (int i = 0; i < v->bp->rank; i++) val_leaves(f, v->bp->offsets[i], out);
    break;
  case VAL_DESC:
    if (v->desc->base)
      val_leaves(f, v->desc->base, out);
    else
      leaf_push(f, out, v->desc->ir, NULL, NULL);
    for (int i = 0; i < v->desc->rank; i++)
      if (v->desc->shape[i]) val_leaves(f, v->desc->shape[i], out);
    for (int i = 0; i < v->desc->rank; i++)
      if (v->desc->strides[i]) val_leaves(f, v->desc->strides[i], out);
    break;
  case VAL_SMEM: val_leaves(f, v->smem->offset, out); break;
  default: break;
  }
}

// The same value with leaves[*at], leaves[*at + 1] ... in the places of its own.
Value *val_rebuild(Front *f, const Value *like, const Leaf *leaves, uint32_t *at) {
  switch (like->kind) {
  case VAL_RT: {
    const Leaf l = leaves[(*at)++];
    return val_rt(f, l.ir, l.type, l.why);
  }
  case VAL_TOKEN: {
    Value *v = val_new(f, VAL_TOKEN);
    v->token = leaves[(*at)++].ir;
    return v;
  }
  case VAL_TUPLE:
  case VAL_OBJECT:
  case VAL_VECTOR:
  case VAL_DICT: {
    Value *v = arena_copy(f->a, like, sizeof *like);
    v->seq.items = like->seq.n ? arena_array(f->a, Value *, like->seq.n) : NULL;
    for (uint32_t i = 0; i < like->seq.n; i++)
      v->seq.items[i] = val_rebuild(f, like->seq.items[i], leaves, at);
    return v;
  }
  case VAL_METHOD: {
    Value *v = arena_copy(f->a, like, sizeof *like);
    v->method.self = val_rebuild(f, like->method.self, leaves, at);
    return v;
  }
  case VAL_BLOCKPTR: {
    BlockPtr *bp = arena_copy(f->a, like->bp, sizeof *bp);
    bp->base = val_rebuild(f, like->bp->base, leaves, at);
    for (int i = 0; i < bp->rank; i++) bp->shape[i] = val_rebuild(f, like->bp->shape[i], leaves, at);
    for (int i = 0; i < bp->rank; i++) bp->strides[i] = val_rebuild(f, like->bp->strides[i], leaves, at);
    for (int i = 0; i < bp->rank; i++) bp->offsets[i] = val_rebuild(f, like->bp->offsets[i], leaves, at);
    Value *v = val_new(f, VAL_BLOCKPTR);
    v->bp = bp;
    return v;
  }
  case VAL_DESC: {
    Desc *d = arena_copy(f->a, like->desc, sizeof *d);
    if (!d->base) {
      d->ir = leaves[(*at)++].ir;
    } else {
      bool same = leaves[*at].ir == d->base->rt.ir;
      d->base = val_rebuild(f, d->base, leaves, at);
      for (int i = 0; i < 2 * d->rank; i++) {
        Value **part = i < d->rank ? &d->shape[i] : &d->strides[i - d->rank];
        same &= leaves[*at].ir == (*part)->rt.ir;
        *part = val_rebuild(f, *part, leaves, at);
      }
      if (!same) d->ir = NULL;
    }
    Value *v = val_new(f, VAL_DESC);
    v->desc = d;
    return v;
  }
  case VAL_SMEM: {
    Smem *s = arena_copy(f->a, like->smem, sizeof *s);
    s->offset = val_rebuild(f, s->offset, leaves, at);
    Value *v = val_new(f, VAL_SMEM);
    v->smem = s;
    return v;
  }
  default: return (Value *)(uintptr_t)like;
  }
}

// ---- environments ----------------------------------------------------------------------------------
Env *env_new(Front *f, Env *outer) {
  Env *e = arena_new(f->a, Env);
  map_init(&e->map, f->a);
  e->outer = outer;
  return e;
}

Binding *env_find(const Env *e, const Str *name) { return map_getp(&e->map, name); }

void env_set(Front *f, Env *e, const Str *name, Value *v, bool is_const) {
  Binding *b = arena_new(f->a, Binding);
  b->value = v;
  b->is_const = is_const;
  map_setp(&e->map, name, b);
}

void env_set_gone(Front *f, Env *e, const Str *name, const char *why) {
  Binding *b = arena_new(f->a, Binding);
  b->gone = why;
  map_setp(&e->map, name, b);
}

// Bindings are never changed in place, so a copy of the map is a copy of the environment.
Env *env_copy(Front *f, const Env *e) {
  Env *n = env_new(f, e->outer);
  for (uint32_t i = 0; i < e->map.entries.len; i++)
    if (e->map.entries.data[i].key != MAP_GONE)
      map_set(&n->map, e->map.entries.data[i].key, e->map.entries.data[i].value);
  return n;
}
