// Expressions. What is known at compile time is computed here and now; the rest becomes IR.
#include "front/front_impl.h"

#include <stdio.h>
#include <string.h>

// ---- names -----------------------------------------------------------------------------------------
static Value *undefined_name(Lower *L, const Node *n) {
  Front *f = L->f;
  if (!front_err_fresh(f, n->loc)) return f->poison;
  Vec(const char *) names = {0};
  for (const Env *e = L->env; e; e = e->outer)
    for (uint32_t i = 0; i < e->map.entries.len; i++)
      if (e->map.entries.data[i].key != MAP_GONE)
        vec_push(f->a, &names, ((const Str *)(uintptr_t)e->map.entries.data[i].key)->s);
  for (uint32_t i = 0; i < L->file->order.len; i++) vec_push(f->a, &names, L->file->order.data[i]->s);
  const char *near = front_nearest_name(f, n->name->s, names.data, names.len);
  diag(f->d, DIAG_ERROR, n->loc, "'%s' is not defined", n->name->s);
  if (near) diag_hint(f->d, "did you mean '%s'?", near);
  front_note_calls(f);
  return f->poison;
}

static Value *eval_name(Lower *L, const Node *n) {
  Front *f = L->f;
  for (const Env *e = L->env; e; e = e->outer) {
    const Binding *b = env_find(e, n->name);
    if (!b) continue;
    if (b->value) return b->value;
    return front_err_hint(L, n->loc, "give it a value before, of one type and shape on every path", "'%s' %s",
                          n->name->s, b->gone);
  }
  Value *v = modfile_lookup(L, L->file, n->name);
  if (v) return v;
  const Builtin *b = builtin_find(f, "py", n->name->s);
  if (!b) return undefined_name(L, n);
  v = val_new(f, VAL_BUILTIN);
  v->builtin = b;
  return v;
}

// ---- attributes ------------------------------------------------------------------------------------
static Value *no_attr(Lower *L, Value *of, const Str *name, const char *key, Loc loc) {
  Front *f = L->f;
  const char *hint, *why = of->kind == VAL_LIB ? lib_refusal(of->s->s, name->s, &hint) : NULL;
  if (why) return front_err_hint(L, loc, hint, "'%s.%s' %s", of->s->s, name->s, why);
  if (!front_err_fresh(f, loc)) return f->poison;
  int n;
  const Builtin *rows = builtin_rows(&n);
  Vec(const char *) names = {0};
  for (int i = 0; i < n; i++)
    if (!strcmp(rows[i].module, key) || (!strcmp(key, "tensor") && (rows[i].flags & BF_METHOD)))
      vec_push(f->a, &names, rows[i].name);
  const char *near = front_nearest_name(f, name->s, names.data, names.len);
  if (of->kind == VAL_LIB)
    diag(f->d, DIAG_ERROR, loc, "'%s.%s' is not supported", of->s->s, name->s);
  else
    diag(f->d, DIAG_ERROR, loc, "%s has no attribute '%s'", val_kind_text(f, of), name->s);
  if (near)
    diag_hint(f->d, "did you mean '%s'?", near);
  else if (of->kind == VAL_TUPLE)
    diag_hint(f->d, "tuples and lists of a kernel never change; write rows = rows + [row]");
  front_note_calls(f);
  return f->poison;
}

// Which rows of builtins.def list the attributes of a value.
static const char *attr_key(const Value *v) {
  switch (v->kind) {
  case VAL_DTYPE: return "dtype";
  case VAL_RT:
  case VAL_MEM: return "tensor";
  case VAL_TUPLE: return "tuple";
  case VAL_VECTOR: return "vector";
  case VAL_SMEM: return "smem";
  case VAL_BLOCKPTR: return "blockptr";
  case VAL_DESC: return "desc";
  case VAL_STR: return "str";
  case VAL_INT:
  case VAL_FLOAT:
  case VAL_BOOL:
  case VAL_NONE: return "number";
  default: return "";
  }
}

static Value *method_of(Front *f, Value *self, Value *fn) {
  Value *v = val_new(f, VAL_METHOD);
  v->method.self = self;
  v->method.fn = fn;
  return v;
}

static Value *builtin_as_value(Front *f, const Builtin *b) {
  Value *v = val_new(f, VAL_BUILTIN);
  v->builtin = b;
  return v;
}

// A name in a class body: a constant, or a function.
static Value *class_member(Lower *L, Value *cls, const Str *name) {
  Front *f = L->f;
  const Class *c = cls->cls;
  for (uint32_t i = c->def->list2.len; i-- > 0;) {
    const Node *s = c->def->list2.data[i];
    if (s->kind == AST_FuncDef && s->name == name) {
      Func *fn = arena_copy(f->a, front_func_of_def(f, c->file, s), sizeof *fn);
      fn->self_class = cls;
      Value *v = val_new(f, VAL_FUNC);
      v->func = fn;
      return v;
    }
    const Node *value =
        s->kind == AST_Assign && s->list.data[0]->kind == AST_Name && s->list.data[0]->name == name ? s->a
        : s->kind == AST_AnnAssign && s->a->kind == AST_Name && s->a->name == name                  ? s->c
                                                                                                    : NULL;
    if (!value) continue;
    Lower M = {.f = f, .file = c->file, .env = env_new(f, NULL), .keep_const = true};
    Value *v = front_eval(&M, value);
    return v;
  }
  return NULL;
}

Value *front_eval_attr(Lower *L, Value *of, const Str *name, Loc loc) {
  Front *f = L->f;
  Value *v = NULL;
  switch (of->kind) {
  case VAL_POISON: return of;
  case VAL_LIB: v = lib_attr(f, of->s, name->s); return v ? v : no_attr(L, of, name, lib_key(of->s->s), loc);
  case VAL_FILE:
    v = modfile_lookup(L, of->file, name);
    return v ? v : front_err(L, loc, "%s does not define '%s'", of->file->path->s, name->s);
  case VAL_OPAQUE: return val_opaque(f, arena_printf(f->a, "%s.%s", of->s->s, name->s));
  case VAL_CLASS:
    v = class_member(L, of, name);
    return v ? v : front_err(L, loc, "the class '%s' has no '%s'", of->cls->name->s, name->s);
  case VAL_OBJECT: {
    const Class *c = of->seq.cls->cls;
    for (uint32_t i = 0; i < c->fields.len; i++)
      if (c->fields.data[i] == name) return of->seq.items[i];
    v = class_member(L, of->seq.cls, name);
    if (!v) return front_err(L, loc, "'%s' has no '%s'", c->name->s, name->s);
    return v->kind == VAL_FUNC ? method_of(f, of, v) : v;
  }
  case VAL_FUNC:
    if (!strcmp(name->s, "__name__")) return val_str(f, of->func->name->s);
    if (!strcmp(name->s, "fn")) return of;
    break;
  case VAL_TUPLE:
    for (uint32_t i = 0; of->seq.fields && i < of->seq.n; i++)
      if (of->seq.fields[i] == name) return of->seq.items[i];
    if (of->seq.cls && (v = class_member(L, of->seq.cls, name)))
      return v->kind == VAL_FUNC ? method_of(f, of, v) : v;
    break;
  default: break;
  }
  const char *key = attr_key(of);
  const Builtin *b = builtin_find(f, key, name->s);
  if (b && b->flags & BF_VALUE) return builtin_value(L, b, of, loc);
  if (!b && (of->kind == VAL_RT || of->kind == VAL_MEM || val_is_number(of))) b = builtin_method(f, name->s);
  if (b) return method_of(f, of, builtin_as_value(f, b));
  return no_attr(L, of, name, key, loc);
}

// ---- indexing --------------------------------------------------------------------------------------
static bool const_index(Lower *L, const Value *v, uint32_t n, uint32_t *out, Loc loc) {
  if (v->kind == VAL_POISON) return false;
  if (v->kind != VAL_INT && v->kind != VAL_BOOL) {
    front_err(L, loc, "the index must be a compile-time integer, not %s", val_kind_text(L->f, v));
    return false;
  }
  AstInt i = v->kind == VAL_BOOL ? v->b : v->i;
  if (i < 0) i += n;
  if (i < 0 || i >= n) {
    front_err(L, loc, "index %s is out of range for %u items", val_repr(L->f, v, false), n);
    return false;
  }
  *out = (uint32_t)i;
  return true;
}

static bool slice_bound(Lower *L, const Value *v, AstInt dflt, AstInt n, AstInt *out, Loc loc) {
  *out = dflt;
  if (!v || v->kind == VAL_NONE) return true;
  if (v->kind != VAL_INT) {
    front_err(L, loc, "a slice of a tuple needs compile-time integers");
    return false;
  }
  *out = v->i < 0 ? v->i + n : v->i;
  if (*out < 0) *out = 0;
  if (*out > n) *out = n;
  return true;
}

static Value *index_tuple(Lower *L, Value *of, Value *ix, Loc loc) {
  Front *f = L->f;
  if (ix->kind != VAL_SLICE) {
    uint32_t i;
    return const_index(L, ix, of->seq.n, &i, loc) ? of->seq.items[i] : f->poison;
  }
  AstInt lo, hi, step = 1;
  const AstInt n = of->seq.n;
  if (ix->slice.step && ix->slice.step->kind == VAL_INT) step = ix->slice.step->i;
  if (step == 0) return front_err(L, loc, "a slice with step 0");
  if (!slice_bound(L, ix->slice.lo, step > 0 ? 0 : n - 1, n, &lo, loc) ||
      !slice_bound(L, ix->slice.hi, step > 0 ? n : -1, n, &hi, loc))
    return f->poison;
  ValueVec v = {0};
  for (AstInt i = lo; step > 0 ? i < hi : i > hi; i += step)
    if (i >= 0 && i < n) vec_push(f->a, &v, of->seq.items[(uint32_t)i]);
  Value *part = val_tuple(f, v.data, v.len, of->seq.list);
  if (of->kind == VAL_VECTOR && v.len) part->kind = VAL_VECTOR;
  return part;
}

static bool is_full_slice(const Value *v) {
  return v->kind == VAL_SLICE && !v->slice.lo && !v->slice.hi && !v->slice.step;
}

// x[:, None]: `:` keeps an axis, None makes one of size 1.
static Value *index_tile(Lower *L, Value *of, const ValueVec *ix, Loc loc) {
  Front *f = L->f;
  of = front_to_rt(L, of, loc);
  if (of->kind == VAL_POISON) return of;
  const Type *t = of->rt.type;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < ix->len; i++) {
    const Value *v = ix->data[i];
    if (v->kind == VAL_POISON) return f->poison;
    if (is_full_slice(v))
      kept++;
    else if (v->kind != VAL_NONE && v->kind != VAL_ELLIPSIS)
      return front_err_hint(
          L, loc,
          t->rank ? "single elements of a tile are reached by tl.gather, by tl.sum(tl.where(...)), or in "
                    "dl.simt_exec_region"
          : elem_is_ptr(t->elem) ? "elements in memory are loaded and stored: tl.load(pointer + index)"
                                 : NULL,
          "%s is indexed by `:` and None only", val_kind_text(f, of));
  }
  if (kept > (uint32_t)t->rank)
    return front_err_hint(L, loc, t->rank ? "None adds an axis, `:` keeps one" : "only tiles have axes",
                          "%u axes are indexed, but %s has %d", kept, val_kind_text(f, of), t->rank);
  int32_t shape[IR_MAX_RANK];
  int rank = 0, axis = 0, fresh[IR_MAX_RANK], nfresh = 0;
  const int rest = t->rank - (int)kept;
  bool spread = false;
  for (uint32_t i = 0; i <= ix->len; i++) {
    const bool end = i == ix->len;
    if (end && spread) break;
    int take = end ? rest : 0;
    if (!end && ix->data[i]->kind == VAL_ELLIPSIS && !spread) take = rest, spread = true;
    if (!end && is_full_slice(ix->data[i])) take = 1;
    const bool none = !end && ix->data[i]->kind == VAL_NONE;
    if (rank + take + none > IR_MAX_RANK) return front_err(L, loc, "a tile has at most %d axes", IR_MAX_RANK);
    for (int k = 0; k < take; k++) shape[rank++] = t->shape[axis++];
    if (none) fresh[nfresh++] = rank, shape[rank++] = 1;
  }
  if (!t->rank) return front_broadcast_to(L, of, rank, shape, loc);
  if (!nfresh) return of;
  if (!front_tiles_allowed(L, loc, "a tile operation")) return f->poison;
  IrValue *ir = of->rt.ir;
  for (int i = 0; i < nfresh; i++) ir = ir_expand_dims(front_at(L, loc), ir, fresh[i]);
  return val_rt(f, ir, type_tile(f, t->elem, rank, shape), NULL);
}

// One element of a tile that simt_exec_region holds in shared memory.
static Value *index_mem(Lower *L, Value *of, const ValueVec *ix, Loc loc) {
  Front *f = L->f;
  const Type *t = of->mem.type;
  if (ix->len != (uint32_t)t->rank)
    return front_err(L, loc, "%u indices for %s", ix->len, front_shape_text(f, t->rank, t->shape));
  IrValue *ops[1 + IR_MAX_RANK] = {of->mem.ir};
  const Why *why = NULL;
  for (uint32_t i = 0; i < ix->len; i++) {
    Value *v = front_raise_level(L, front_int_scalar(L, ix->data[i], FDT_int32, "an index", loc), loc);
    if (v->kind != VAL_RT) return f->poison;
    ops[1 + i] = v->rt.ir;
    why = v->rt.why ? v->rt.why : why;
  }
  const Type *et = type_scalar(f, t->elem, true);
  const IrType *rt = front_ir_of(f, et);
  IrOp *op = ir_build(front_at(L, loc), OP_mem_get, 1 + ix->len, ops, 1, &rt, 0);
  return val_rt(f, ir_result(op, 0), et, why);
}

Value *front_eval_subscript(Lower *L, Value *of, const NodeVec *items, bool tuple, Loc loc) {
  Front *f = L->f;
  ValueVec ix = {0};
  for (uint32_t i = 0; i < items->len; i++) vec_push(f->a, &ix, front_eval(L, items->data[i]));
  if (ix.len == 1 && ix.data[0]->kind == VAL_TUPLE && of->kind != VAL_DICT) { // x[(a, b)]
    const Value *t = ix.data[0];
    ix.len = 0;
    for (uint32_t i = 0; i < t->seq.n; i++) vec_push(f->a, &ix, t->seq.items[i]);
    tuple = true;
  }
  for (uint32_t i = 0; i < ix.len; i++)
    if (ix.data[i]->kind == VAL_POISON) return f->poison;
  switch (of->kind) {
  case VAL_POISON: return of;
  case VAL_OPAQUE: return val_opaque(f, arena_printf(f->a, "%s[...]", of->s->s));
  case VAL_VECTOR:
  case VAL_TUPLE:
    if (ix.len == 1 && !tuple) return index_tuple(L, of, ix.data[0], loc);
    return front_err(L, loc, "a tuple takes one index");
  case VAL_DICT:
    for (uint32_t i = 0; ix.len == 1 && i < of->seq.n; i++)
      if (ix.data[0]->kind == VAL_STR && of->seq.fields[i] == ix.data[0]->s) return of->seq.items[i];
    return front_err(L, loc, "the dictionary has no such key");
  case VAL_STR: {
    uint32_t i;
    if (ix.len != 1 || ix.data[0]->kind == VAL_SLICE || !const_index(L, ix.data[0], of->s->len, &i, loc))
      return f->poison;
    return val_str(f, arena_printf(f->a, "%c", of->s->s[i]));
  }
  case VAL_MEM: {
    bool element = true;
    for (uint32_t i = 0; i < ix.len; i++)
      element &= ix.data[i]->kind == VAL_RT || ix.data[i]->kind == VAL_INT;
    if (element) return index_mem(L, of, &ix, loc);
    return index_tile(L, of, &ix, loc);
  }
  case VAL_RT:
  case VAL_INT:
  case VAL_FLOAT: return index_tile(L, of, &ix, loc);
  case VAL_FUNC:
    return front_err_hint(L, loc, "call a helper directly: helper(x, y)",
                          "a kernel cannot launch another kernel");
  default: return front_err(L, loc, "%s cannot be indexed", val_kind_text(f, of));
  }
}

// ---- small forms -----------------------------------------------------------------------------------
static Value *eval_items(Lower *L, const NodeVec *items, bool list) {
  Front *f = L->f;
  ValueVec v = {0};
  bool poison = false;
  for (uint32_t i = 0; i < items->len; i++) {
    const Node *n = items->data[i];
    if (n->kind != AST_Star) {
      vec_push(f->a, &v, front_eval(L, n));
      continue;
    }
    Value *t = front_eval(L, n->a);
    if (t->kind == VAL_TUPLE)
      for (uint32_t k = 0; k < t->seq.n; k++) vec_push(f->a, &v, t->seq.items[k]);
    else if (t->kind != VAL_POISON)
      front_err(L, n->loc, "only a tuple can be unpacked with *, not %s", val_kind_text(f, t)), poison = true;
  }
  return poison ? f->poison : val_tuple(f, v.data, v.len, list);
}

static Value *eval_dict(Lower *L, const Node *n) {
  Front *f = L->f;
  ValueVec v = {0};
  Vec(const Str *) keys = {0};
  for (uint32_t i = 0; i < n->list.len; i++) {
    Value *item = front_eval(L, n->list2.data[i]);
    if (n->list.data[i]->kind == AST_Star) {
      if (item->kind != VAL_DICT) return front_err(L, n->loc, "only a dictionary can be unpacked with **");
      for (uint32_t k = 0; k < item->seq.n; k++) {
        vec_push(f->a, &v, item->seq.items[k]);
        vec_push(f->a, &keys, item->seq.fields[k]);
      }
      continue;
    }
    const Value *key = front_eval(L, n->list.data[i]);
    if (key->kind == VAL_POISON) return f->poison;
    vec_push(f->a, &v, item);
    vec_push(f->a, &keys, key->kind == VAL_STR ? key->s : str_cstr(f->strings, val_repr(f, key, true)));
  }
  Value *d = val_tuple(f, v.data, v.len, false);
  d->kind = VAL_DICT;
  d->seq.fields = keys.data;
  return d;
}

// A number in the format of an f-string: [0][width][.precision][type].
static const char *format_number(Front *f, const Value *v, const char *spec) {
  char flags[8] = "", type = 0;
  int width = 0, prec = -1, nf = 0;
  const char *c = spec;
  while (nf < 4 && (*c == '0' || *c == '<' || *c == '>' || *c == '+' || *c == ' ')) {
    if (*c == '0' || *c == '+') flags[nf++] = *c;
    if (*c == '<') flags[nf++] = '-';
    c++;
  }
  for (; *c >= '0' && *c <= '9'; c++) width = width < 100 ? width * 10 + (*c - '0') : width;
  if (*c == '.')
    for (prec = 0, c++; *c >= '0' && *c <= '9'; c++) prec = prec < 100 ? prec * 10 + (*c - '0') : prec;
  type = *c;
  char fmt[32];
  if (v->kind == VAL_FLOAT || (type && strchr("eEfFgG", type))) {
    const double d = v->kind == VAL_FLOAT ? v->f : v->kind == VAL_INT ? (double)v->i : v->b;
    snprintf(fmt, sizeof fmt, "%%%s*.*%c", flags, type && strchr("eEfFgG", type) ? type : 'g');
    return arena_printf(f->a, fmt, width, prec < 0 ? 6 : prec, d);
  }
  const long long i = (long long)(v->kind == VAL_INT ? v->i : v->b);
  if (type == 'x' || type == 'X' || type == 'o') {
    snprintf(fmt, sizeof fmt, "%%%s*ll%c", flags, type);
    return arena_printf(f->a, fmt, width, i);
  }
  snprintf(fmt, sizeof fmt, "%%%s*s", flags[0] == '-' ? "-" : "");
  if (flags[0] == '0') return arena_printf(f->a, "%0*lld", width, i);
  return arena_printf(f->a, fmt, width, val_repr(f, v, false));
}

static Value *eval_fstr(Lower *L, const Node *n) {
  Front *f = L->f;
  const char *s = "";
  for (uint32_t i = 0; i < n->list.len; i++) {
    const Node *p = n->list.data[i];
    if (p->kind == AST_Str) {
      s = arena_printf(f->a, "%s%s", s, p->name->s);
      continue;
    }
    if (p->kind != AST_FValue) return front_err(L, p->loc, "%s is not supported", p->name->s);
    const Value *v = front_eval(L, p->a);
    if (v->kind == VAL_POISON) return f->poison;
    const char *text =
        p->name && val_is_number(v) ? format_number(f, v, p->name->s) : val_repr(f, v, p->op == 'r');
    s = arena_printf(f->a, "%s%s", s, text);
    if (strlen(s) > FRONT_MAX_TEXT)
      return front_err(L, n->loc, "a string of more than %d bytes", FRONT_MAX_TEXT);
  }
  return val_str(f, s);
}

static Value *eval_compare(Lower *L, const Node *n) {
  Front *f = L->f;
  Value *x = front_eval(L, n->a), *y = front_eval(L, n->b);
  if (x->kind == VAL_POISON || y->kind == VAL_POISON) return f->poison;
  Value *r;
  if (n->op == AOP_Is || n->op == AOP_IsNot) {
    // identity is asked of compile-time values; a run-time value is none of them
    const bool same = x->kind != VAL_RT && y->kind != VAL_RT && val_equal(x, y) &&
                      (x->kind == y->kind || !val_is_number(x));
    return val_bool(f, same == (n->op == AOP_Is));
  }
  r = front_binary_op(L, (AstOp)n->op, x, y, n->loc);
  for (uint32_t i = 0; i < n->list.len; i++) {
    const Node *m = n->list.data[i];
    if (r->kind == VAL_POISON) return r;
    Value *z = front_eval(L, m->b);
    Value *next = m->op == AOP_Is || m->op == AOP_IsNot
                      ? front_err(L, m->loc, "`is` in a chain of comparisons")
                      : front_binary_op(L, (AstOp)m->op, y, z, n->loc);
    if (next->kind == VAL_POISON) return next;
    if (r->kind != VAL_BOOL || next->kind != VAL_BOOL)
      return front_err_hint(L, n->loc, "write (a < b) & (b < c)",
                            "a chain of comparisons on run-time values is not supported");
    r = val_bool(f, r->b && next->b);
    y = z;
  }
  return r;
}

// One side of `and`/`or` as an i1.
static Value *logical_operand(Lower *L, Value *v, Loc loc) {
  Front *f = L->f;
  if (v->kind != VAL_RT) {
    Value *c = front_condition(L, v, loc);
    return c->kind == VAL_BOOL ? front_to_rt(L, c, loc) : c;
  }
  if (elem_is_bool(v->rt.type->elem)) return front_to_rt(L, v, loc);
  return front_err_hint(L, loc, "compare with 0: (x != 0), and combine with & and |",
                        "`and` and `or` need conditions, not %s", type_text(f, v->rt.type));
}

static Value *eval_boolop(Lower *L, const Node *n) {
  Front *f = L->f;
  Value *x = front_eval(L, n->a);
  if (x->kind == VAL_POISON) return x;
  if (x->kind == VAL_OPAQUE)
    return !L->b.block ? x : front_err(L, n->loc, "%s cannot be used in a kernel", val_kind_text(f, x));
  if (x->kind != VAL_RT && x->kind != VAL_MEM) {
    const Value *c = front_condition(L, x, n->a->loc);
    if (c->kind != VAL_BOOL) return f->poison;
    return c->b == (n->op == AOP_And) ? front_eval(L, n->b) : x;
  }
  Value *y = front_eval(L, n->b);
  if (y->kind == VAL_POISON) return y;
  if (y->kind != VAL_RT && y->kind != VAL_MEM) { // a constant decides, or has no effect
    const Value *c = front_condition(L, y, n->b->loc);
    if (c->kind != VAL_BOOL) return f->poison;
    return c->b == (n->op == AOP_And) ? x : y;
  }
  x = logical_operand(L, x, n->a->loc);
  y = logical_operand(L, y, n->b->loc);
  return front_binary_op(L, n->op == AOP_And ? AOP_BitAnd : AOP_BitOr, x, y, n->loc);
}

static Value *eval_ifexp(Lower *L, const Node *n) {
  Value *c = front_eval(L, n->a);
  if (c->kind == VAL_OPAQUE && !L->b.block) return c;
  if (!front_branches_on(L, c, n->a->loc)) return L->f->poison;
  c = front_condition(L, c, n->a->loc);
  if (c->kind == VAL_POISON) return c;
  if (c->kind == VAL_BOOL) return front_eval(L, c->b ? n->b : n->c);
  if (c->rt.type->rank)
    return front_err_hint(L, n->a->loc, "tl.where(cond, a, b) chooses element by element",
                          "a tile cannot be a condition");
  return front_lower_if_value(L, c, n->b, n->c, n->loc);
}

// ---- comprehensions --------------------------------------------------------------------------------
static bool comp_items(Lower *L, Value *it, ValueVec *out, Loc loc) {
  Front *f = L->f;
  if (it->kind == VAL_TUPLE) {
    for (uint32_t i = 0; i < it->seq.n; i++) vec_push(f->a, out, it->seq.items[i]);
    return true;
  }
  if (it->kind == VAL_RANGE && it->range->lo->kind == VAL_INT && it->range->hi->kind == VAL_INT &&
      it->range->step->kind == VAL_INT && it->range->step->i) {
    const AstInt lo = it->range->lo->i, hi = it->range->hi->i, st = it->range->step->i;
    for (AstInt i = lo; st > 0 ? i < hi : i > hi; i += st) {
      if (out->len >= FRONT_MAX_UNROLL) {
        front_err(L, loc, "more than %d trips", FRONT_MAX_UNROLL);
        return false;
      }
      vec_push(f->a, out, val_int(f, i));
    }
    return true;
  }
  if (it->kind != VAL_POISON)
    front_err(L, loc, "a comprehension runs over tuples and compile-time ranges, not %s",
              val_kind_text(f, it));
  return false;
}

static bool comp_run(Lower *L, const Node *n, uint32_t clause, ValueVec *out) {
  Front *f = L->f;
  if (!front_step(L, n->loc)) return false;
  if (clause == n->list.len) {
    vec_push(f->a, out, front_eval(L, n->a));
    return vec_last(out)->kind != VAL_POISON;
  }
  const Node *c = n->list.data[clause];
  if (c->kind == AST_CompIf) {
    const Value *k = front_condition(L, front_eval(L, c->a), c->loc);
    if (k->kind == VAL_RT)
      front_err(L, c->loc, "the condition of a comprehension must be known at compile time");
    return k->kind == VAL_BOOL && (!k->b || comp_run(L, n, clause + 1, out));
  }
  ValueVec items = {0};
  if (!comp_items(L, front_eval(L, c->b), &items, c->loc)) return false;
  for (uint32_t i = 0; i < items.len; i++) {
    front_assign(L, c->a, items.data[i], false);
    if (!comp_run(L, n, clause + 1, out)) return false;
  }
  return true;
}

static Value *eval_listcomp(Lower *L, const Node *n) {
  Front *f = L->f;
  Env *outer = L->env;
  L->env = env_new(f, outer);
  ValueVec out = {0};
  const bool ok = comp_run(L, n, 0, &out);
  L->env = outer;
  return ok ? val_tuple(f, out.data, out.len, true) : f->poison;
}

// ---- dispatch --------------------------------------------------------------------------------------
static Value *eval_attr_node(Lower *L, const Node *n) {
  Value *of = front_eval(L, n->a), *v = front_eval_attr(L, of, n->name, n->loc);
  // after rows.append(...) nobody knows what rows holds
  if (of->kind == VAL_TUPLE && v->kind == VAL_POISON && n->a->kind == AST_Name &&
      env_find(L->env, n->a->name))
    env_set(L->f, L->env, n->a->name, v, false);
  return v;
}

static Value *eval_subscript_node(Lower *L, const Node *n) {
  Value *of = front_eval(L, n->a);
  if (of->kind == VAL_TUPLE && !of->seq.n && n->a->kind == AST_Attr && !strcmp(n->a->name->s, "shape"))
    return front_err_hint(L, n->loc, "pass the sizes as arguments of the kernel",
                          "a kernel sees a tensor argument as a pointer, which has no shape");
  return front_eval_subscript(L, of, &n->list, n->op, n->loc);
}

static Value *eval_inner(Lower *L, const Node *n) {
  Front *f = L->f;
  switch (n->kind) {
  case AST_Name: return eval_name(L, n);
  case AST_Int: return val_int(f, n->ival);
  case AST_Float: return val_float(f, n->fval);
  case AST_Str: {
    Value *v = val_new(f, VAL_STR);
    v->s = n->name;
    return v;
  }
  case AST_FStr: return eval_fstr(L, n);
  case AST_Bool: return val_bool(f, n->op);
  case AST_None: return f->none;
  case AST_Ellipsis: return val_new(f, VAL_ELLIPSIS);
  case AST_Tuple: return eval_items(L, &n->list, false);
  case AST_List: return eval_items(L, &n->list, true);
  case AST_Dict: return eval_dict(L, n);
  case AST_Attr: return eval_attr_node(L, n);
  case AST_Subscript: return eval_subscript_node(L, n);
  case AST_Slice: {
    Value *v = val_new(f, VAL_SLICE);
    v->slice.lo = n->a ? front_eval(L, n->a) : NULL;
    v->slice.hi = n->b ? front_eval(L, n->b) : NULL;
    v->slice.step = n->c ? front_eval(L, n->c) : NULL;
    return v;
  }
  case AST_Call: return front_eval_call(L, n);
  case AST_Unary: return front_unary_op(L, (AstOp)n->op, front_eval(L, n->a), n->loc);
  case AST_Binary: {
    Value *x = front_eval(L, n->a);
    return front_binary_op(L, (AstOp)n->op, x, front_eval(L, n->b), n->loc);
  }
  case AST_BoolOp: return eval_boolop(L, n);
  case AST_Compare: return eval_compare(L, n);
  case AST_IfExp: return eval_ifexp(L, n);
  case AST_Named: {
    Value *v = front_decay(L, front_eval(L, n->a), n->loc);
    env_set(f, L->env, n->name, v, false);
    return v;
  }
  case AST_Lambda: {
    Func *fn = arena_new(f->a, Func);
    fn->file = L->file;
    fn->def = n;
    fn->name = str_cstr(f->strings, "<lambda>");
    fn->kind = FUNC_PLAIN;
    fn->closure = L->env;
    Value *v = val_new(f, VAL_FUNC);
    v->func = fn;
    return v;
  }
  case AST_ListComp: return eval_listcomp(L, n);
  case AST_Other: return front_err(L, n->loc, "%s is not supported in kernels", n->name->s);
  case AST_Star: return front_err(L, n->loc, "a star among indices is not supported");
  default: return front_err(L, n->loc, "%s is not supported here", ast_kind_name(n->kind));
  }
}

Value *front_eval(Lower *L, const Node *n) {
  Front *f = L->f;
  if (!n) return f->none;
  if (f->depth >= FRONT_MAX_EVAL)
    return front_err(L, n->loc, "the program nests or recurses more than %d levels deep", FRONT_MAX_EVAL);
  f->depth++;
  Value *v = eval_inner(L, n);
  f->depth--;
  return v;
}
