// Library: short vectors of one thread (dl.vector, ld_vector, st_vector, pack, unpack). A vector is so many thread
// scalars; that neighbours in memory become one wide access is the target's business.
#include "front/builtins.h"

#include <string.h>

enum { VECTOR_MAX = 64 };

static Value *vector_of(Front *f, Value *const *items, uint32_t n) {
  Value *v = val_tuple(f, items, n, false);
  v->kind = VAL_VECTOR;
  return v;
}

static const Elem *vector_elem(const Value *v) { return v->seq.items[0]->rt.type->elem; }

static bool vector_size(Lower *L, int64_t n, Loc loc) {
  if (n >= 1 && n <= VECTOR_MAX && bits_pow2((uint64_t)n)) return true;
  front_err(L, loc, "the size of a vector is a power of two up to %d, not %lld", VECTOR_MAX, (long long)n);
  return false;
}

static Value *thread_scalar(Lower *L, Value *v, const Elem *e, Loc loc) {
  v = e ? front_cast_to(L, v, e, false, loc) : front_to_rt(L, v, loc);
  if (v->kind == VAL_RT && v->rt.type->rank)
    return front_err(L, loc, "an item of a vector is a scalar, not %s", val_kind_text(L->f, v));
  return v->kind == VAL_RT ? front_raise_level(L, v, loc) : v;
}

Value *bi_make_vector(Lower *L, Call *c) { // items of one type, as a sequence or one by one
  Front *f = L->f;
  Value *items[VECTOR_MAX];
  int n = 0;
  if (c->rest.len == 1 && c->rest.data[0]->kind == VAL_TUPLE) {
    Value *seq = c->rest.data[0];
    for (uint32_t i = 0; i < seq->seq.n && n < VECTOR_MAX; i++) items[n++] = seq->seq.items[i];
  } else {
    for (uint32_t i = 0; i < c->rest.len && n < VECTOR_MAX; i++) items[n++] = c->rest.data[i];
  }
  if (!vector_size(L, n, c->loc)) return f->poison;
  const Elem *e = NULL;
  for (int i = 0; i < n; i++) {
    items[i] = thread_scalar(L, items[i], e, c->loc);
    if (items[i]->kind != VAL_RT) return f->poison;
    e = items[i]->rt.type->elem;
  }
  return vector_of(f, items, (uint32_t)n);
}

Value *bi_zeros_vector(Lower *L, Call *c) { // n dtype
  Front *f = L->f;
  int64_t n;
  const Elem *e = arg_dtype(L, c, 1);
  Value *items[VECTOR_MAX];
  if (!e || !arg_int(L, c, 0, 0, &n) || !vector_size(L, n, c->at[0])) return f->poison;
  for (int64_t i = 0; i < n; i++) items[i] = thread_scalar(L, val_int(f, 0), e, c->loc);
  return items[0]->kind == VAL_RT ? vector_of(f, items, (uint32_t)n) : f->poison;
}

// ---- memory --------------------------------------------------------------------------------------------
static Value *moved(Lower *L, Value *p, int64_t i, Loc loc) {
  return i ? front_binary_op(L, AOP_Add, p, val_int(L->f, i), loc) : p;
}

// Calls the scalar row of language_extra for item i.
static Value *item_access(Lower *L, Call *c, const char *name, Value *p, Value *v, Loc loc) {
  Call one = {.row = builtin_find(L->f, "extra", name), .loc = loc, .args = c->args};
  one.v[0] = p;
  one.v[1] = v ? v : c->v[2];
  one.v[2] = v ? c->v[2] : c->v[3];
  one.v[3] = v ? c->v[3] : NULL;
  for (int i = 0; i < 4; i++) one.at[i] = loc;
  return one.row->fn(L, &one);
}

Value *bi_ld_vector(Lower *L, Call *c) { // ptr n scope? semantic?
  Front *f = L->f;
  int64_t n;
  Value *items[VECTOR_MAX];
  if (!arg_int(L, c, 1, 0, &n) || !vector_size(L, n, c->at[1])) return f->poison;
  for (int64_t i = 0; i < n; i++) {
    items[i] = item_access(L, c, "ld", moved(L, c->v[0], i, c->loc), NULL, c->loc);
    if (items[i]->kind != VAL_RT) return f->poison;
  }
  return vector_of(f, items, (uint32_t)n);
}

Value *bi_st_vector(Lower *L, Call *c) { // ptr vec scope? semantic?
  Front *f = L->f;
  const Value *v = c->v[1];
  if (v->kind != VAL_VECTOR)
    return front_err(L, c->at[1], "st_vector stores a vector, not %s", val_kind_text(f, v));
  for (uint32_t i = 0; i < v->seq.n; i++)
    if (item_access(L, c, "st", moved(L, c->v[0], i, c->loc), v->seq.items[i], c->loc)->kind == VAL_POISON)
      return f->poison;
  return f->none;
}

// ---- the same bits as other items -------------------------------------------------------------------------
static const Elem *bits_elem(Front *f, int w) {
  return elem_number(f, w == 8 ? FDT_uint8 : w == 16 ? FDT_uint16 : w == 32 ? FDT_uint32 : FDT_uint64);
}

static Value *recast(Lower *L, Value *const *items, uint32_t n, const Elem *to, Loc loc) {
  Front *f = L->f;
  const int wf = elem_bits(items[0]->rt.type->elem), wt = elem_bits(to);
  if (wf < 8 || wt < 8 || elem_is_ptr(to)) return front_err(L, loc, "a vector of %s", elem_text(f, to));
  const uint32_t total = n * (uint32_t)wf / (uint32_t)wt;
  Value *out[VECTOR_MAX];
  if (!total || total > VECTOR_MAX || total * (uint32_t)wt != n * (uint32_t)wf)
    return front_err(L, loc, "%u items of %d bits are no vector of %s", n, wf, elem_text(f, to));
  const Elem *uf = bits_elem(f, wf), *ut = bits_elem(f, wt);
  for (uint32_t i = 0; i < total; i++) {
    Value *bits = NULL;
    if (wt <= wf) { // a part of one item
      const uint32_t per = (uint32_t)(wf / wt);
      bits = front_bitcast_to(L, items[i / per], uf, loc);
      if (i % per) bits = front_binary_op(L, AOP_Shr, bits, val_int(f, (AstInt)(i % per) * wt), loc);
      bits = front_cast_to(L, bits, ut, false, loc);
    } else { // several items side by side, the first lowest
      const uint32_t per = (uint32_t)(wt / wf);
      for (uint32_t k = 0; k < per; k++) {
        Value *b = front_cast_to(L, front_bitcast_to(L, items[i * per + k], uf, loc), ut, false, loc);
        if (k) b = front_binary_op(L, AOP_Shl, b, val_int(f, (AstInt)k * wf), loc);
        bits = bits ? front_binary_op(L, AOP_BitOr, bits, b, loc) : b;
      }
    }
    out[i] = front_bitcast_to(L, bits, to, loc);
    if (out[i]->kind != VAL_RT) return f->poison;
  }
  return vector_of(f, out, total);
}

Value *bi_recast(Lower *L, Call *c) { // vec dtype; data: 1 = pack to one scalar, 2 = unpack one scalar
  Front *f = L->f;
  const Elem *to = arg_dtype(L, c, 1);
  if (!to) return f->poison;
  Value *v = c->v[0];
  if (c->row->data == 2) {
    v = thread_scalar(L, v, NULL, c->at[0]);
    return v->kind == VAL_RT ? recast(L, &v, 1, to, c->loc) : v;
  }
  if (v->kind != VAL_VECTOR)
    return front_err(L, c->at[0], "%s takes a vector, not %s", c->row->name, val_kind_text(f, v));
  Value *r = recast(L, v->seq.items, v->seq.n, to, c->loc);
  if (!c->row->data || r->kind != VAL_VECTOR) return r;
  return r->seq.n == 1 ? r->seq.items[0]
                       : front_err(L, c->loc, "%u items do not fit one %s", v->seq.n, elem_text(f, to));
}

Value *bi_vector_to(Lower *L, Call *c) { // vec dtype: converts each item
  Front *f = L->f;
  const Elem *to = arg_dtype(L, c, 1);
  if (!to) return f->poison;
  Value *items[VECTOR_MAX];
  for (uint32_t i = 0; i < c->v[0]->seq.n; i++)
    items[i] = front_cast_to(L, c->v[0]->seq.items[i], to, false, c->loc);
  return items[0]->kind == VAL_RT ? vector_of(f, items, c->v[0]->seq.n) : f->poison;
}

Value *bi_vector_dtype(Lower *L, Call *c) { return val_dtype(L->f, vector_elem(c->v[0])); }

// + - * on vectors of one size, or a vector and a scalar.
Value *front_vector_op(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  Front *f = L->f;
  const uint32_t n = x->kind == VAL_VECTOR ? x->seq.n : y->seq.n;
  if (op != AOP_Add && op != AOP_Sub && op != AOP_Mul)
    return front_err(L, loc, "'%s' is not defined on vectors", ast_op_text(op));
  if (x->kind == VAL_VECTOR && y->kind == VAL_VECTOR && x->seq.n != y->seq.n)
    return front_err(L, loc, "vectors of %u and %u items", x->seq.n, y->seq.n);
  Value *items[VECTOR_MAX];
  for (uint32_t i = 0; i < n; i++) {
    items[i] = front_binary_op(L, op, x->kind == VAL_VECTOR ? x->seq.items[i] : x,
                               y->kind == VAL_VECTOR ? y->seq.items[i] : y, loc);
    if (items[i]->kind != VAL_RT) return f->poison;
  }
  return vector_of(f, items, n);
}
