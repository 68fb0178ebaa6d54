// affine: see affine.h. Values are taken apart through arithmetic, shape changes and loops that move a value by the same amount each
// turn; a scalar that is nothing of this is a factor.
#include "pass/affine.h"

#include <string.h>

void affine_init(Affines *a, Arena *arena) {
  *a = (Affines){.arena = arena};
  map_init(&a->known, arena);
}

// ---- sums -------------------------------------------------------------------------------------------------------------------------
Affine *affine_zero(Affines *a) {
  Affine *x = arena_new(a->arena, Affine);
  *x = (Affine){0};
  return x;
}

Affine *affine_const(Affines *a, int64_t k) {
  Affine *x = affine_zero(a);
  if (k) x->t[x->n++] = (AffineTerm){.k = k, .axis = -1};
  return x;
}

static int order(const AffineTerm *x, const AffineTerm *y) {
  if (x->axis != y->axis) return x->axis < y->axis ? -1 : 1;
  if (x->n != y->n) return x->n < y->n ? -1 : 1;
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->f[i] != y->f[i]) return x->f[i]->id < y->f[i]->id ? -1 : 1;
  }
  return 0;
}

static bool add_term(Affine *x, const AffineTerm *t) {
  uint32_t i = 0;
  while (i < x->n && order(&x->t[i], t) < 0) i++;
  if (i < x->n && order(&x->t[i], t) == 0) {
    if (__builtin_add_overflow(x->t[i].k, t->k, &x->t[i].k)) return false;
    if (!x->t[i].k) memmove(&x->t[i], &x->t[i + 1], (--x->n - i) * sizeof *t);
    return true;
  }
  if (!t->k) return true;
  if (x->n == AFFINE_TERMS) return false;
  memmove(&x->t[i + 1], &x->t[i], (x->n++ - i) * sizeof *t);
  x->t[i] = *t;
  return true;
}

static bool add_wraps(Affine *x, const Affine *from) {
  for (uint32_t i = 0; i < from->nwraps; i++) {
    bool there = false;
    for (uint32_t k = 0; k < x->nwraps; k++) there |= affine_same(x->wraps[k], from->wraps[i]);
    if (there) continue;
    if (x->nwraps == AFFINE_WRAPS) return false;
    x->wraps[x->nwraps++] = from->wraps[i];
  }
  return true;
}

const Affine *affine_plus(Affines *a, const Affine *x, int64_t k, const Affine *y) {
  if (!x || !y || (x->base && y->base)) return NULL;
  Affine *s = affine_zero(a);
  *s = *x;
  if (y->base) s->base = k == 1 ? y->base : NULL;
  for (uint32_t i = 0; i < y->n; i++) {
    AffineTerm t = y->t[i];
    if (__builtin_mul_overflow(t.k, k, &t.k) || !add_term(s, &t)) return NULL;
  }
  return add_wraps(s, y) ? s : NULL;
}

static bool multiply(const AffineTerm *x, const AffineTerm *y, AffineTerm *out) {
  *out = (AffineTerm){.axis = x->axis < 0 ? y->axis : x->axis};
  if ((x->axis >= 0 && y->axis >= 0) || x->n + y->n > AFFINE_FACTORS) return false;
  if (__builtin_mul_overflow(x->k, y->k, &out->k)) return false;
  for (uint32_t i = 0, k = 0; i < x->n || k < y->n;) // both are in order
    out->f[out->n++] = k == y->n || (i < x->n && x->f[i]->id <= y->f[k]->id) ? x->f[i++] : y->f[k++];
  return true;
}

const Affine *affine_times(Affines *a, const Affine *x, const Affine *y) {
  if (!x || !y || x->base || y->base) return NULL;
  Affine *s = affine_zero(a);
  for (uint32_t i = 0; i < x->n; i++) {
    for (uint32_t k = 0; k < y->n; k++) {
      AffineTerm t;
      if (!multiply(&x->t[i], &y->t[k], &t) || !add_term(s, &t)) return NULL;
    }
  }
  return add_wraps(s, x) && add_wraps(s, y) ? s : NULL;
}

const Affine *affine_along(Affines *a, const Affine *x, int axis) {
  Affine *s = affine_zero(a);
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->t[i].axis != axis) continue;
    AffineTerm t = x->t[i];
    t.axis = -1;
    add_term(s, &t);
  }
  return s;
}

bool affine_same(const Affine *x, const Affine *y) {
  if (x->n != y->n) return false;
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->t[i].k != y->t[i].k || order(&x->t[i], &y->t[i]) != 0) return false;
  }
  return true;
}

bool affine_is_const(const Affine *x, int64_t k) {
  return k ? x->n == 1 && x->t[0].k == k && x->t[0].axis < 0 && !x->t[0].n : !x->n;
}

static const Affine *factor(Affines *a, IrValue *v) {
  Affine *x = affine_zero(a);
  if (ir_type_is_ptr(v->type))
    x->base = v;
  else
    x->t[x->n++] = (AffineTerm){.k = 1, .axis = -1, .n = 1, .f = {v}};
  return x;
}

// ---- shapes -----------------------------------------------------------------------------------------------------------------------
// x with its indices renamed: to[axis], -1: that index is always 0.
static const Affine *renamed(Affines *a, const Affine *x, const int *to) {
  Affine *s = affine_zero(a);
  s->base = x->base;
  for (uint32_t i = 0; i < x->n; i++) {
    AffineTerm t = x->t[i];
    if (t.axis >= 0 && (t.axis = to[t.axis]) < 0) continue;
    if (!add_term(s, &t)) return NULL;
  }
  for (uint32_t i = 0; i < x->nwraps; i++) {
    const Affine *w = renamed(a, x->wraps[i], to);
    if (!w) return NULL;
    s->wraps[s->nwraps++] = w;
  }
  return s;
}

// What a shape op makes of the indices of its operand; false: it is none that renames them.
static bool renaming(const IrOp *op, int *to) {
  const IrType *t = op->results[0].type, *from = ir_operand(op, 0)->type;
  switch (op->kind) {
  case OP_expand_dims:
    for (int d = 0; d < from->rank; d++) to[d] = d + (d >= ir_attr_i(op, ATTR_axis));
    return true;
  case OP_broadcast:
    for (int d = 0; d < from->rank; d++) to[d] = from->shape[d] == t->shape[d] ? d : -1;
    return from->rank == t->rank;
  case OP_trans: {
    const IrAttr *perm = ir_attr(op, ATTR_perm);
    for (int d = 0; perm && d < t->rank; d++) to[perm->ints.v[d]] = d;
    return perm != NULL;
  }
  case OP_reshape: { // that adds or drops axes of size 1
    int d = 0;
    if (ir_attr_i(op, ATTR_reorder)) return false;
    for (int s = 0; s < from->rank; s++) {
      to[s] = -1;
      if (from->shape[s] == 1) continue;
      while (d < t->rank && t->shape[d] == 1) d++;
      if (d == t->rank || t->shape[d] != from->shape[s]) return false;
      to[s] = d++;
    }
    return true;
  }
  default: return false;
  }
}

// ---- loops ------------------------------------------------------------------------------------------------------------------------
// init + by * (counter - lo) / step, where each turn adds `by`.
static const Affine *carried(Affines *a, IrValue *v) {
  const IrOp *loop = v->block->owner;
  IrOp *yield = loop ? ir_terminator(v->block) : NULL;
  int64_t step;
  if (!loop || loop->kind != OP_for || v->index == 0 || !ir_const_int(ir_operand(loop, 2), &step))
    return NULL;
  const IrOp *add = ir_operand(yield, v->index - 1)->def;
  if (!step || !add || (add->kind != OP_add && add->kind != OP_ptr_add)) return NULL;
  const uint32_t other = ir_operand(add, 0) == v ? 1 : 0;
  if (ir_operand(add, 1 - other) != v || (add->kind == OP_ptr_add && !other)) return NULL;
  const Affine *by = affine_of(a, ir_operand(add, other)),
               *init = affine_of(a, ir_operand(loop, 2 + v->index));
  if (!by || !init || by->nwraps) return NULL;
  Affine *each = affine_zero(a);
  for (uint32_t i = 0; i < by->n; i++) {
    AffineTerm t = by->t[i];
    if (t.axis >= 0 || t.k % step) return NULL;
    for (uint32_t k = 0; k < t.n; k++) {
      if (pass_defined_in(t.f[k], v->block)) return NULL;
    }
    t.k /= step;
    each->t[each->n++] = t;
  }
  const Affine *turns =
      affine_plus(a, factor(a, v->block->args.data[0]), -1, affine_of(a, ir_operand(loop, 0)));
  return affine_plus(a, init, 1, affine_times(a, turns, each));
}

// ---- values -----------------------------------------------------------------------------------------------------------------------
static const Affine *with_wrap(Affines *a, const Affine *x,
                               const Affine *bound) { // x is another where bound >= 0
  if (!x || !bound || bound->nwraps || x->nwraps == AFFINE_WRAPS) return NULL;
  Affine *s = affine_zero(a);
  *s = *x;
  s->wraps[s->nwraps++] = bound;
  return s;
}

static const Affine *chosen(Affines *a, const IrOp *op) { // x where all of cond hold, else another
  const Affine *c[AFFINE_WRAPS], *x = affine_of(a, ir_operand(op, 1));
  const int n = affine_conditions(a, ir_operand(op, 0), c, AFFINE_WRAPS);
  if (n < 1) return NULL;
  for (int i = 0; i < n; i++) x = with_wrap(a, x, c[i]);
  return x;
}

static const Affine *from_op(Affines *a, IrValue *v) {
  const IrOp *op = v->def;
  IrValue *x = op->noperands ? ir_operand(op, 0) : NULL, *y = op->noperands > 1 ? ir_operand(op, 1) : NULL;
  int to[IR_MAX_RANK];
  uint64_t bits;
  switch (op->kind) {
  case OP_const:
    return ir_type_is_int(v->type) && pass_const(v, &bits)
               ? affine_const(a, pass_sext(bits, pass_elem_bits(v->type)))
               : NULL;
  case OP_arange: {
    Affine *r = affine_const(a, ir_attr_i(op, ATTR_start));
    const AffineTerm i = {.k = 1, .axis = 0};
    return add_term(r, &i) ? r : NULL;
  }
  case OP_splat:
  case OP_hint:
  case OP_ext_s: return affine_of(a, x);
  case OP_trunc: return pass_elem_bits(v->type) >= 32 ? affine_of(a, x) : NULL;
  case OP_add:
  case OP_ptr_add: return affine_plus(a, affine_of(a, x), 1, affine_of(a, y));
  case OP_sub: return affine_plus(a, affine_of(a, x), -1, affine_of(a, y));
  case OP_mul: return affine_times(a, affine_of(a, x), affine_of(a, y));
  case OP_shl:
    return pass_const(y, &bits) && bits < 31
               ? affine_times(a, affine_of(a, x), affine_const(a, (int64_t)1 << bits))
               : NULL;
  case OP_rem_s:
  case OP_rem_u:
    if (v->type->kind != IR_TILE) return NULL;
    return with_wrap(a, affine_of(a, x), affine_plus(a, affine_of(a, x), -1, affine_of(a, y)));
  case OP_select: return v->type->kind == IR_TILE ? chosen(a, op) : NULL;
  default:
    return v->type->kind == IR_TILE && renaming(op, to) && affine_of(a, x) ? renamed(a, affine_of(a, x), to)
                                                                           : NULL;
  }
}

const Affine *affine_of(Affines *a, IrValue *v) {
  static const Affine none;
  if (!(ir_type_is_int(v->type) || ir_type_is_ptr(v->type)) || ir_type_is_thread(v->type) ||
      (v->type->kind != IR_TILE && v->type->kind != IR_SCALAR && v->type->kind != IR_PTR))
    return NULL;
  const Affine *known = map_getp(&a->known, v);
  if (known) return known == &none ? NULL : known;
  map_setp(&a->known, v, (void *)(uintptr_t)&none); // while it is being asked for
  const Affine *x = v->def ? from_op(a, v) : carried(a, v);
  if (!x && v->type->kind != IR_TILE) x = factor(a, v);
  map_setp(&a->known, v, (void *)(uintptr_t)(x ? x : &none));
  return x;
}

// ---- masks ------------------------------------------------------------------------------------------------------------------------
static const Affine *negative_where(Affines *a, const IrOp *cmp) { // it holds
  const Affine *x = affine_of(a, ir_operand(cmp, 0)), *y = affine_of(a, ir_operand(cmp, 1));
  if (!x || !y || x->nwraps || y->nwraps) return NULL;
  switch ((IrCmp)ir_attr_i(cmp, ATTR_cmp)) {
  case CMP_slt: return affine_plus(a, x, -1, y);
  case CMP_sle: return affine_plus(a, affine_plus(a, x, -1, y), -1, affine_const(a, 1));
  case CMP_sgt: return affine_plus(a, y, -1, x);
  case CMP_sge: return affine_plus(a, affine_plus(a, y, -1, x), -1, affine_const(a, 1));
  default: return NULL;
  }
}

int affine_conditions(Affines *a, IrValue *mask, const Affine **out, int cap) {
  const IrOp *op = mask->def;
  uint64_t bits;
  int to[IR_MAX_RANK];
  if (pass_const(mask, &bits)) return bits & 1 ? 0 : -1;
  if (!op) return -1;
  if (op->kind == OP_and) {
    const int n = affine_conditions(a, ir_operand(op, 0), out, cap);
    const int m = n < 0 ? -1 : affine_conditions(a, ir_operand(op, 1), out + n, cap - n);
    return m < 0 ? -1 : n + m;
  }
  if (op->kind == OP_cmp) {
    if (cap < 1 || !(out[0] = negative_where(a, op))) return -1;
    return 1;
  }
  if (op->kind == OP_splat) return affine_conditions(a, ir_operand(op, 0), out, cap);
  if (mask->type->kind != IR_TILE || op->noperands != 1 || !renaming(op, to)) return -1;
  const int n = affine_conditions(a, ir_operand(op, 0), out, cap);
  for (int i = 0; i < n; i++) {
    if (!(out[i] = renamed(a, out[i], to))) return -1;
  }
  return n;
}
