// place_eval: the element of a tile value at an index, emitted where the index is known.
//
// An element stands for the lanes of the nest's vector: one scalar for all (UNI), a scalar and a constant step from lane
// to lane (AFF), or a vector (VEC). Indices are elements too, so reshapes and gathers are arithmetic like any other.
// Code goes to the outermost level at which its operands exist: what does not change along a row is computed once a row.
// Equal pure expressions are emitted once a nest.
#include "pass/place.h"

#include <string.h>

// ---- emitting ---------------------------------------------------------------------------------------------------------------
PlaceElem place_uni(IrValue *v) { return (PlaceElem){ELEM_UNI, v, 0}; }
static PlaceElem vec_elem(PlaceNest *n, IrValue *v) {
  return (PlaceElem){n->lanes == 1 ? ELEM_UNI : ELEM_VEC, v, 0};
}

int place_level(const PlaceNest *n, const IrValue *v) {
  for (int d = n->depth; d > 0; d--) {
    if (n->at[d].block == v->block) return d;
  }
  return 0;
}

IrValue *place_pconst(Place *p, const IrType *t, uint64_t bits) {
  const uint64_t key = hash_bytes(&t, sizeof t, bits * 0x9e3779b97f4a7c15u + 1) | 1;
  IrValue *v = key == MAP_GONE ? NULL : map_getp(&p->consts, (void *)(uintptr_t)key);
  if (v && v->type == t && (uint64_t)ir_attr_i(v->def, ATTR_value) == bits) return v;
  IrBuilder b = ir_builder_before(p->anchor);
  v = pass_const_bits(&b, t, bits);
  if ((uint64_t)ir_attr_i(v->def, ATTR_value) == bits && key != MAP_GONE)
    map_setp(&p->consts, (void *)(uintptr_t)key, v);
  return v;
}
IrValue *place_i32(Place *p, int64_t c) {
  return place_pconst(p, ir_type_scalar(p->ctx, IR_i32, LEVEL_program), (uint64_t)c & 0xffffffffu);
}
IrValue *place_i1(Place *p, bool c) {
  return place_pconst(p, ir_type_scalar(p->ctx, IR_i1, LEVEL_program), c);
}
PlaceElem place_const(PlaceNest *n, int64_t c) { return place_uni(place_i32(n->p, c)); }

bool place_is_const(const IrValue *v, int64_t *c) {
  return v->def && v->def->kind == OP_const && !ir_type_is_ptr(v->type) && ir_const_int(v, c);
}

const IrType *place_vec_type(PlaceNest *n, const IrType *elem) {
  if (n->lanes == 1) return elem;
  const int32_t lanes = n->lanes;
  return ir_type_with_shape(n->p->ctx, elem, 1, &lanes);
}

static uint64_t mix(uint64_t h, uint64_t x) { return (h ^ x) * 0x9e3779b97f4a7c15u ^ (h >> 29); }

typedef struct Made { // one pure op of the nest
  IrOp *op;
  const IrOp *like;
  IrAttrName attr;
  int64_t value;
  struct Made *next;
} Made;

static bool same_pure(const Made *m, IrOpKind k, uint32_t nops, IrValue *const *ops, const IrType *t,
                      const IrOp *like, IrAttrName attr, int64_t value) {
  const IrOp *op = m->op;
  if (op->kind != k || op->noperands != nops || op->results[0].type != t || m->attr != attr ||
      m->value != value)
    return false;
  if ((m->like != NULL) != (like != NULL)) return false;
  if (like && like != m->like) { // attributes of the two patterns must agree
    if (like->nattrs != m->like->nattrs) return false;
    for (uint32_t i = 0; i < like->nattrs; i++) {
      const IrAttr *a = &like->attrs[i], *b = ir_attr(m->like, a->name);
      if (!b || a->i != b->i) return false;
    }
  }
  for (uint32_t i = 0; i < nops; i++) {
    if (ir_operand(op, i) != ops[i]) return false;
  }
  return true;
}

static IrValue *pure(PlaceNest *n, IrOpKind k, uint32_t nops, IrValue *const *ops, const IrType *t,
                     const IrOp *like, IrAttrName attr, int64_t value) {
  uint64_t h = mix(k, (uint64_t)(uintptr_t)t);
  int level = 0;
  for (uint32_t i = 0; i < nops; i++) {
    h = mix(h, (uint64_t)(uintptr_t)ops[i]);
    const int d = ops[i] ? place_level(n, ops[i]) : 0;
    if (d > level) level = d;
  }
  h = mix(h, (uint64_t)value) >> 1;
  Made *first = map_getp(&n->cse, (void *)(uintptr_t)h);
  for (Made *m = first; m; m = m->next) {
    if (same_pure(m, k, nops, ops, t, like, attr, value)) return ir_result(m->op, 0);
  }
  IrBuilder *b = &n->at[level];
  IrValue *r;
  if (like) {
    r = pass_like(b, like, nops, ops, t);
  } else {
    r = ir_result(ir_build(b, k, nops, ops, 1, &t, 0), 0);
    if (attr != ATTR_COUNT) ir_set_attr_i(r->def, attr, value);
  }
  Made *m = arena_new(n->p->arena, Made);
  *m = (Made){r->def, like, attr, value, first};
  map_setp(&n->cse, (void *)(uintptr_t)h, m);
  return r;
}

IrValue *place_pure(PlaceNest *n, IrOpKind k, uint32_t nops, IrValue *const *ops, const IrType *t,
                    const IrOp *like) {
  return pure(n, k, nops, ops, t, like, ATTR_COUNT, 0);
}

static int64_t wrap(int64_t v, IrDtype d) { return pass_sext((uint64_t)v, ir_dtypes[d].bits); }
static IrValue *int_const(PlaceNest *n, const IrType *t, int64_t v) {
  return place_pconst(n->p, t, (uint64_t)v & pass_mask(ir_dtypes[t->dtype].bits));
}

// Integers of one type, scalars or vectors; folds the common cases.
IrValue *place_bin(PlaceNest *n, IrOpKind k, IrValue *x, IrValue *y) {
  int64_t a = 0, b = 0;
  const bool ca = place_is_const(x, &a), cb = place_is_const(y, &b);
  const IrType *t = x->type;
  if (ca && cb && t->kind == IR_SCALAR) {
    switch (k) {
    case OP_add: return int_const(n, t, wrap((int64_t)((uint64_t)a + (uint64_t)b), t->dtype));
    case OP_sub: return int_const(n, t, wrap((int64_t)((uint64_t)a - (uint64_t)b), t->dtype));
    case OP_mul: return int_const(n, t, wrap((int64_t)((uint64_t)a * (uint64_t)b), t->dtype));
    case OP_and: return int_const(n, t, a & b);
    case OP_or: return int_const(n, t, a | b);
    case OP_min_s: return int_const(n, t, a < b ? a : b);
    case OP_max_s: return int_const(n, t, a > b ? a : b);
    default: break;
    }
  }
  if (k == OP_add && ca && a == 0) return y;
  if ((k == OP_add || k == OP_sub || k == OP_shl || k == OP_shr_u) && cb && b == 0) return x;
  if (k == OP_mul && ((ca && a == 1) || (cb && b == 0))) return y;
  if (k == OP_mul && ((cb && b == 1) || (ca && a == 0))) return x;
  if (k == OP_and && t->dtype == IR_i1) {
    if (ca) return a ? y : x;
    if (cb) return b ? x : y;
  }
  if ((k == OP_and || k == OP_or || k == OP_min_s || k == OP_max_s) && x == y) return x;
  return place_pure(n, k, 2, (IrValue *[]){x, y}, t, NULL);
}

IrValue *place_cmp(PlaceNest *n, IrCmp c, IrValue *x, IrValue *y) {
  return pure(n, OP_cmp, 2, (IrValue *[]){x, y}, ir_type_with_dtype(n->p->ctx, x->type, IR_i1), NULL,
              ATTR_cmp, c);
}
IrValue *place_fcmp(PlaceNest *n, IrFcmp c, IrValue *x, IrValue *y) {
  const IrType *t = ir_type_with_dtype(n->p->ctx, x->type, IR_i1);
  return pure(n, OP_fcmp, 2, (IrValue *[]){x, y}, t, NULL, ATTR_fcmp, c);
}
IrValue *place_sel(PlaceNest *n, IrValue *c, IrValue *x, IrValue *y) {
  int64_t k;
  if (x == y) return x;
  if (place_is_const(c, &k)) return k ? x : y;
  return place_pure(n, OP_select, 3, (IrValue *[]){c, x, y}, x->type, NULL);
}
IrValue *place_to_i64(PlaceNest *n, IrValue *x) {
  if (x->type->dtype == IR_i64) return x;
  const IrType *t = ir_type_with_dtype(n->p->ctx, x->type, IR_i64);
  int64_t c;
  if (place_is_const(x, &c) && t->kind == IR_SCALAR) return int_const(n, t, c);
  return place_pure(n, OP_ext_s, 1, &x, t, NULL);
}

IrValue *place_vec(PlaceNest *n, PlaceElem e) {
  if (n->lanes == 1 || e.kind == ELEM_VEC) return e.v;
  const IrType *t = place_vec_type(n, e.v->type);
  if (e.kind == ELEM_UNI) {
    if (e.v->def && e.v->def->kind == OP_const)
      return place_pconst(n->p, t, (uint64_t)ir_attr_i(e.v->def, ATTR_value));
    return place_pure(n, OP_splat, 1, &e.v, t, NULL);
  }
  if (!ir_type_is_ptr(e.v->type))
    return place_pure(n, OP_ramp, 2, (IrValue *[]){e.v, int_const(n, e.v->type, e.step)}, t, NULL);
  const IrDtype d = e.step > -(1 << 24) && e.step < 1 << 24 ? IR_i32 : IR_i64;
  const IrType *it = ir_type_scalar(n->p->ctx, d, LEVEL_program);
  IrValue *lanes = place_pure(n, OP_ramp, 2, (IrValue *[]){int_const(n, it, 0), int_const(n, it, e.step)},
                              place_vec_type(n, it), NULL);
  return place_pure(n, OP_ptr_add, 2, (IrValue *[]){place_vec(n, place_uni(e.v)), lanes}, t, NULL);
}

// ---- what divides a scalar --------------------------------------------------------------------------------------------------
static int64_t divisor(PlaceNest *n, const IrValue *v, int depth) {
  int64_t c;
  uint64_t known;
  if (place_is_const(v, &c)) return c ? c & -c : 1 << 30;
  if (map_get(&n->divs, (uint64_t)(uintptr_t)v, &known)) return (int64_t)known;
  if (!v->def || depth > 10) return 1;
  const IrOp *op = v->def;
  const IrValue *a = ir_operand(op, 0), *b = ir_operand(op, 1);
  switch (op->kind) {
  case OP_ext_s:
  case OP_ext_u: return divisor(n, a, depth + 1);
  case OP_add:
  case OP_sub: {
    const int64_t x = divisor(n, a, depth + 1), y = divisor(n, b, depth + 1);
    return x < y ? x : y;
  }
  case OP_and: {
    const int64_t x = divisor(n, a, depth + 1), y = divisor(n, b, depth + 1);
    return x > y ? x : y;
  }
  case OP_mul: {
    const int64_t x = divisor(n, a, depth + 1), y = divisor(n, b, depth + 1);
    return x > (1 << 15) || y > (1 << 15) ? (x > y ? x : y) : x * y;
  }
  case OP_shl:
    if (place_is_const(b, &c) && c >= 0 && c < 30) {
      const int64_t x = divisor(n, a, depth + 1);
      return x > (1 << 30 >> c) ? 1 << 30 : x << c;
    }
    return 1;
  case OP_shr_u:
    if (place_is_const(b, &c) && c >= 0 && c < 30) {
      const int64_t x = divisor(n, a, depth + 1);
      return x >> c > 0 ? x >> c : 1;
    }
    return 1;
  default: return 1;
  }
}

// All lanes of e lie in one aligned run of m (a power of two), by the step of 1.
static bool in_one_run(PlaceNest *n, PlaceElem e, int64_t m) {
  return e.kind == ELEM_AFF && e.step == 1 && m >= n->lanes && m % n->lanes == 0 &&
         divisor(n, e.v, 0) % n->lanes == 0;
}

// ---- elementwise ----------------------------------------------------------------------------------------------------------
static PlaceElem affine(IrValue *base, int64_t step) {
  return (PlaceElem){step ? ELEM_AFF : ELEM_UNI, base, step};
}

static IrValue *scalar_ptr_add(PlaceNest *n, IrValue *ptr, IrValue *off, const IrType *t) {
  int64_t c;
  if (place_is_const(off, &c) && c == 0) return ptr;
  return place_pure(n, OP_ptr_add, 2, (IrValue *[]){ptr, off}, t, NULL);
}

static bool uniform_or_affine(PlaceElem e) { return e.kind != ELEM_VEC; }

static bool affine_result(PlaceNest *n, const IrOp *op, const PlaceElem *in, const IrType *t,
                          PlaceElem *out) {
  int64_t c;
  const PlaceElem a = in[0], b = op->noperands > 1 ? in[1] : in[0];
  if (!uniform_or_affine(a) || !uniform_or_affine(b)) return false;
  switch (op->kind) {
  case OP_add: *out = affine(place_bin(n, OP_add, a.v, b.v), a.step + b.step); return true;
  case OP_sub: *out = affine(place_bin(n, OP_sub, a.v, b.v), a.step - b.step); return true;
  case OP_ptr_add: *out = affine(scalar_ptr_add(n, a.v, b.v, t), a.step + b.step); return true;
  case OP_mul:
    if (b.kind == ELEM_UNI && place_is_const(b.v, &c) && c > INT32_MIN && c < INT32_MAX) {
      *out = affine(place_bin(n, OP_mul, a.v, b.v), a.step * c);
      return true;
    }
    if (a.kind == ELEM_UNI && place_is_const(a.v, &c) && c > INT32_MIN && c < INT32_MAX) {
      *out = affine(place_bin(n, OP_mul, a.v, b.v), b.step * c);
      return true;
    }
    return false;
  case OP_shl:
    if (b.kind != ELEM_UNI || !place_is_const(b.v, &c) || c < 0 || c > 30) return false;
    *out = affine(place_bin(n, OP_shl, a.v, b.v), a.step << c);
    return true;
  case OP_ext_s: *out = affine(place_pure(n, OP_ext_s, 1, &a.v, t, NULL), a.step); return true;
  case OP_trunc: *out = affine(place_pure(n, OP_trunc, 1, &a.v, t, NULL), a.step); return true;
  case OP_bitcast:
    if (!ir_type_is_ptr(t) || !ir_type_is_ptr(a.v->type) ||
        ir_dtypes[t->dtype].bytes != ir_dtypes[a.v->type->dtype].bytes)
      return false;
    *out = affine(place_pure(n, OP_bitcast, 1, &a.v, t, NULL), a.step);
    return true;
  case OP_rem_u:
  case OP_rem_s:
  case OP_div_u:
  case OP_div_s: // indices that may be negative are left alone: only aligned runs from known multiples
    if (b.kind != ELEM_UNI || !place_is_const(b.v, &c) || c <= 0 || !bits_pow2((uint64_t)c) ||
        !in_one_run(n, a, c))
      return false;
    if (op->kind == OP_rem_s || op->kind == OP_div_s) return false;
    *out = op->kind == OP_rem_u ? affine(place_pure(n, OP_rem_u, 2, (IrValue *[]){a.v, b.v}, t, NULL), 1)
                                : place_uni(place_pure(n, OP_div_u, 2, (IrValue *[]){a.v, b.v}, t, NULL));
    return true;
  case OP_and:
    if (b.kind != ELEM_UNI || !place_is_const(b.v, &c) || c <= 0 || !bits_pow2((uint64_t)c + 1) ||
        !in_one_run(n, a, c + 1))
      return false;
    *out = affine(place_bin(n, OP_and, a.v, b.v), 1);
    return true;
  case OP_shr_u:
  case OP_shr_s:
    if (b.kind != ELEM_UNI || !place_is_const(b.v, &c) || c < 0 || c > 30 ||
        !in_one_run(n, a, (int64_t)1 << c))
      return false;
    *out = place_uni(place_pure(n, op->kind, 2, (IrValue *[]){a.v, b.v}, t, NULL));
    return true;
  default: return false;
  }
}

static bool fold(PlaceNest *n, const IrOp *op, const PlaceElem *in, uint32_t count, const IrType *t,
                 PlaceElem *out) {
  uint64_t bits[4], r;
  if (count > 4 || ir_type_is_ptr(t)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (in[i].kind != ELEM_UNI || !in[i].v || !in[i].v->def || in[i].v->def->kind != OP_const) return false;
    bits[i] = (uint64_t)ir_attr_i(in[i].v->def, ATTR_value) & pass_mask(pass_elem_bits(in[i].v->type));
  }
  if (!count || !pass_eval(op, bits, &r)) return false;
  *out = place_uni(place_pconst(n->p, t, r & pass_mask(pass_elem_bits(t))));
  return true;
}

PlaceElem place_elementwise(PlaceNest *n, const IrOp *op, const PlaceElem *in, uint32_t count) {
  const IrType *rt = ir_result(op, 0)->type;
  const IrType *t =
      rt->kind == IR_TILE ? ir_type_elem(n->p->ctx, rt) : ir_type_with_level(n->p->ctx, rt, LEVEL_program);
  PlaceElem out;
  if (op->kind == OP_hint || op->kind == OP_consume) return in[0];
  bool uni = true, aff = false;
  for (uint32_t i = 0; i < count; i++) {
    uni &= !in[i].v || in[i].kind == ELEM_UNI;
    aff |= in[i].v && in[i].kind == ELEM_AFF;
  }
  if (uni && fold(n, op, in, count, t, &out)) return out;
  if ((aff || uni) && !ir_type_is_float(t) && affine_result(n, op, in, t, &out)) return out;
  if (op->kind == OP_select && in[0].kind == ELEM_UNI && uni)
    return place_uni(place_sel(n, in[0].v, in[1].v, in[2].v));
  IrValue *ops[4];
  for (uint32_t i = 0; i < count && i < 4; i++)
    ops[i] = !in[i].v ? NULL : uni ? in[i].v : place_vec(n, in[i]);
  const IrType *type = uni ? t : place_vec_type(n, t);
  if (op->kind == OP_and && t->dtype == IR_i1)
    return (PlaceElem){uni ? ELEM_UNI : ELEM_VEC, place_bin(n, OP_and, ops[0], ops[1]), 0};
  IrValue *r = place_pure(n, op->kind, count, ops, type, op->kind == OP_ptr_add ? NULL : op);
  return (PlaceElem){uni ? ELEM_UNI : ELEM_VEC, r, 0};
}

// ---- indices ----------------------------------------------------------------------------------------------------------------
static PlaceElem index_op(PlaceNest *n, IrOpKind k, PlaceElem a, int64_t c) {
  const IrType *i32 = ir_type_scalar(n->p->ctx, IR_i32, LEVEL_program);
  const PlaceElem b = place_const(n, c);
  if (k == OP_div_u && c == 1) return a;
  if (k == OP_rem_u && c == 1) return place_const(n, 0);
  if (a.kind != ELEM_VEC) {
    if (k == OP_add) return affine(place_bin(n, OP_add, a.v, b.v), a.step);
    if (k == OP_mul) return affine(place_bin(n, OP_mul, a.v, b.v), a.step * c);
    const int log = bits_log2((uint64_t)c);
    int64_t x;
    const bool div = k == OP_div_u;
    if (a.kind == ELEM_UNI || in_one_run(n, a, c)) {
      if (place_is_const(a.v, &x)) {
        const PlaceElem q = place_const(n, div ? x >> log : x & (c - 1));
        return div ? q : affine(q.v, a.step);
      }
      IrValue *v = place_pure(n, div ? OP_shr_u : OP_and, 2,
                              (IrValue *[]){a.v, place_i32(n->p, div ? log : c - 1)}, i32, NULL);
      return div ? place_uni(v) : affine(v, a.step);
    }
  }
  IrOpKind kind = k;
  int64_t operand = c;
  if (k == OP_div_u) {
    kind = OP_shr_u;
    operand = bits_log2((uint64_t)c);
  } else if (k == OP_rem_u) {
    kind = OP_and;
    operand = c - 1;
  }
  return vec_elem(n, place_bin(n, kind, place_vec(n, a), place_vec(n, place_const(n, operand))));
}

static PlaceElem index_add(PlaceNest *n, PlaceElem a, PlaceElem b) {
  if (a.kind != ELEM_VEC && b.kind != ELEM_VEC)
    return affine(place_bin(n, OP_add, a.v, b.v), a.step + b.step);
  int64_t c;
  if (b.kind == ELEM_UNI && place_is_const(b.v, &c) && c == 0) return a;
  if (a.kind == ELEM_UNI && place_is_const(a.v, &c) && c == 0) return b;
  return vec_elem(n, place_bin(n, OP_add, place_vec(n, a), place_vec(n, b)));
}

static PlaceElem linear(PlaceNest *n, int rank, const int32_t *shape, const PlaceElem *idx) {
  PlaceElem lin = place_const(n, 0);
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; i--) {
    if (shape[i] > 1) lin = index_add(n, index_op(n, OP_mul, idx[i], stride), lin);
    stride *= shape[i];
  }
  return lin;
}

// Axes that cut the elements at the same places correspond; only what lies between is split anew.
bool place_turns(const PlaceNest *n, PlaceElem e) {
  for (uint32_t i = 0; i < n->nturning; i++) {
    if (n->turning[i] == e.v) return true;
  }
  return n->nturning == DT_COUNTOF(n->turning);
}

static void map_reshape(PlaceNest *n, const IrType *from, const IrType *to, const PlaceElem *idx,
                        PlaceElem *out) {
  int i = 0, j = 0;
  while (i < from->rank || j < to->rank) {
    const int i0 = i, j0 = j;
    int64_t a = i < from->rank ? from->shape[i++] : 1, b = j < to->rank ? to->shape[j++] : 1;
    while (a != b) {
      if (a < b)
        a *= from->shape[i++];
      else
        b *= to->shape[j++];
    }
    if (i - i0 == 1 && j - j0 == 1) {
      out[i0] = idx[j0];
      continue;
    }
    const PlaceElem lin = linear(n, j - j0, to->shape + j0, idx + j0);
    int64_t stride = 1;
    for (int k = i - 1; k >= i0; k--) {
      out[k] = from->shape[k] == 1
                   ? place_const(n, 0)
                   : index_op(n, OP_rem_u, index_op(n, OP_div_u, lin, stride), from->shape[k]);
      if (from->shape[k] > 1 && (lin.kind != ELEM_UNI || place_turns(n, lin)) && out[k].kind == ELEM_UNI &&
          n->nturning < DT_COUNTOF(n->turning))
        n->turning[n->nturning++] = out[k].v;
      stride *= from->shape[k];
    }
  }
}

bool place_map_is_shape(const IrOp *op) {
  return op->kind == OP_expand_dims || op->kind == OP_broadcast || op->kind == OP_trans ||
         op->kind == OP_reshape || op->kind == OP_split;
}

void place_map_index(PlaceNest *n, const IrOp *op, uint32_t k, const PlaceElem *idx, PlaceElem *out) {
  const IrType *rt = op->nresults ? ir_result(op, 0)->type : NULL, *at = ir_operand(op, 0)->type;
  (void)k;
  switch (op->kind) {
  case OP_expand_dims: {
    const int axis = (int)ir_attr_i(op, ATTR_axis);
    for (int i = 0, j = 0; i < rt->rank; i++) {
      if (i != axis) out[j++] = idx[i];
    }
    return;
  }
  case OP_broadcast:
    for (int i = 0; i < at->rank; i++) out[i] = at->shape[i] == 1 ? place_const(n, 0) : idx[i];
    return;
  case OP_trans: {
    const IrAttr *perm = ir_attr(op, ATTR_perm);
    for (int i = 0; i < rt->rank; i++) out[perm->ints.v[i]] = idx[i];
    return;
  }
  case OP_reshape: map_reshape(n, at, rt, idx, out); return;
  case OP_split: // the caller appends which half
    for (int i = 0; i < rt->rank; i++) out[i] = idx[i];
    return;
  default: {
    const int rank = at->kind == IR_TILE ? at->rank : 0;
    for (int i = 0; i < rank; i++) out[i] = idx[i];
  }
  }
}

// ---- buffers -----------------------------------------------------------------------------------------------------------------
// Operands of an access to b at idx. Returns 0: one element, 1: consecutive lanes along the last axis, 2: any lanes.
static int buffer_index(PlaceNest *n, PlaceBuf *b, const PlaceElem *idx, IrValue **ops, uint32_t *nops,
                        int *level) {
  PlaceElem at[IR_MAX_RANK];
  int rank = b->rank, how = 0;
  if (b->flat) {
    at[0] = linear(n, b->rank, b->shape, idx);
    rank = 1;
  } else {
    for (int i = 0; i < rank; i++) at[i] = b->shape[i] == 1 ? place_const(n, 0) : idx[i];
  }
  for (int i = 0; i < rank; i++) {
    if (at[i].kind == ELEM_UNI) continue;
    if (i == rank - 1 && at[i].kind == ELEM_AFF && at[i].step == 1 && how == 0)
      how = 1;
    else
      how = 2;
  }
  for (int i = 0; i < rank; i++) {
    IrValue *v = how == 2 && at[i].kind != ELEM_UNI ? place_vec(n, at[i]) : at[i].v;
    ops[(*nops)++] = v;
    const int d = place_level(n, v);
    if (d > *level) *level = d;
  }
  return how;
}

PlaceElem place_read(PlaceNest *n, PlaceBuf *b, const PlaceElem *idx, int level) {
  Place *p = n->p;
  IrValue *ops[IR_MAX_RANK + 2];
  uint32_t nops = 0;
  ops[nops++] = place_buf_mem(p, b);
  const int how = buffer_index(n, b, idx, ops, &nops, &level);
  const IrType *word = ir_type_scalar(p->ctx, b->type->dtype, LEVEL_program);
  const IrType *t = how == 0 ? word : place_vec_type(n, word);
  IrOp *op = ir_build(&n->at[level], how == 2 ? OP_mem_gather : OP_mem_get, nops, ops, 1, &t, 0);
  PlaceElem r = {how == 0 ? ELEM_UNI : ELEM_VEC, ir_result(op, 0), 0};
  if (ir_type_is_ptr(b->elem)) {
    const IrType *pt = how == 0 ? b->elem : place_vec_type(n, b->elem);
    r.v = place_pure(n, OP_int2ptr, 1, &r.v, pt, NULL);
  }
  return r;
}

void place_write(PlaceNest *n, PlaceBuf *b, const PlaceElem *idx, PlaceElem e) {
  Place *p = n->p;
  IrValue *ops[IR_MAX_RANK + 2];
  uint32_t nops = 2;
  int level = 0;
  ops[0] = place_buf_mem(p, b);
  const int how = buffer_index(n, b, idx, ops, &nops, &level);
  IrValue *v = how == 0 ? e.v : place_vec(n, e);
  if (ir_type_is_ptr(b->elem)) {
    const IrType *t = ir_type_scalar(p->ctx, IR_i64, LEVEL_program);
    v = place_pure(n, OP_ptr2int, 1, &v, how == 0 ? t : place_vec_type(n, t), NULL);
  }
  ops[1] = v;
  ir_build(&n->out, how == 2 ? OP_mem_scatter : OP_mem_set, nops, ops, 0, NULL, 0);
}

// ---- combination regions -------------------------------------------------------------------------------------------------------
bool place_region_is_plain(const IrBlock *r) {
  for (const IrOp *op = r->first; op; op = op->next) {
    if (op->kind != OP_yield && op->kind != OP_const && !place_op_is_elementwise(op)) return false;
  }
  return true;
}

void place_region(PlaceNest *n, const IrBlock *r, const PlaceElem *args, uint32_t nargs, PlaceElem *out) {
  Place *p = n->p;
  if (!place_region_is_plain(r)) { // one lane only
    for (uint32_t i = 0; i < nargs; i++) map_setp(&p->values, r->args.data[i], args[i].v);
    for (const IrOp *op = r->first; op; op = op->next) {
      if (op->kind == OP_yield) {
        for (uint32_t i = 0; i < op->noperands; i++) out[i] = place_uni(place_value(p, ir_operand(op, i)));
      } else {
        ir_clone_op(&n->at[n->depth], op, &p->values);
      }
    }
    return;
  }
  typedef struct Bound {
    const IrValue *v;
    PlaceElem e;
  } Bound;
  Vec(Bound) known = {0};
  for (uint32_t i = 0; i < nargs; i++) vec_push(p->arena, &known, ((Bound){r->args.data[i], args[i]}));
  for (const IrOp *op = r->first; op; op = op->next) {
    PlaceElem in[4] = {{0}};
    const uint32_t count = op->noperands < 4 || op->kind == OP_yield ? op->noperands : 4;
    for (uint32_t i = 0; i < count; i++) {
      const IrValue *v = ir_operand(op, i);
      if (!v) continue;
      PlaceElem e = {0};
      for (uint32_t j = 0; j < known.len && !e.v; j++) {
        if (known.data[j].v == v) e = known.data[j].e;
      }
      if (!e.v) e = place_uni(place_value(p, (IrValue *)(uintptr_t)v));
      if (op->kind == OP_yield)
        out[i] = e;
      else
        in[i] = e;
    }
    if (op->kind == OP_yield) return;
    const PlaceElem e =
        op->kind == OP_const
            ? place_uni(place_pconst(p, ir_result(op, 0)->type, (uint64_t)ir_attr_i(op, ATTR_value)))
            : place_elementwise(n, op, in, count);
    vec_push(p->arena, &known, ((Bound){ir_result(op, 0), e}));
  }
}

// ---- values -------------------------------------------------------------------------------------------------------------------
typedef struct Memo {
  const IrValue *v;
  int rank;
  PlaceElem idx[IR_MAX_RANK], result;
  struct Memo *next;
} Memo;

static bool same_elem(PlaceElem a, PlaceElem b) { return a.kind == b.kind && a.v == b.v && a.step == b.step; }

static uint64_t memo_key(const IrValue *v, int rank, const PlaceElem *idx) {
  uint64_t h = mix(0x51, (uint64_t)(uintptr_t)v);
  for (int i = 0; i < rank; i++) h = mix(mix(h, (uint64_t)(uintptr_t)idx[i].v), (uint64_t)idx[i].step);
  return h >> 1;
}

// The element changes in the innermost loop.
static bool inner(PlaceNest *n, const IrValue *v, const PlaceElem *idx) {
  const uint32_t deps = place_info(n->p, v)->deps;
  for (int i = 0; i < v->type->rank; i++) {
    if ((deps >> i & 1) && place_level(n, idx[i].v) == n->depth) return true;
  }
  return false;
}

PlaceElem place_eval_mask(PlaceNest *n, IrValue *m, const PlaceElem *idx, bool assume) {
  const PlaceElem all = {ELEM_UNI, NULL, 0};
  if (assume && map_getp(&n->terms, m)) return all;
  const PlaceInfo *in = place_is_tile(m) ? place_info(n->p, m) : NULL;
  if (in && in->is_virtual && !in->ready) {
    const IrOp *op = m->def;
    if (op->kind == OP_and) {
      const PlaceElem a = place_eval_mask(n, ir_operand(op, 0), idx, assume),
                      b = place_eval_mask(n, ir_operand(op, 1), idx, assume);
      if (!a.v) return b;
      if (!b.v) return a;
      const PlaceElem both[2] = {a, b};
      return place_elementwise(n, op, both, 2);
    }
    if (place_map_is_shape(op) && op->kind != OP_split) {
      PlaceElem at[IR_MAX_RANK];
      place_map_index(n, op, 0, idx, at);
      return place_eval_mask(n, ir_operand(op, 0), at, assume);
    }
    if (op->kind == OP_splat) return place_eval_mask(n, ir_operand(op, 0), idx, assume);
  }
  const PlaceElem e = place_eval(n, m, idx);
  int64_t c;
  return e.kind == ELEM_UNI && place_is_const(e.v, &c) && c ? all : e;
}

static PlaceElem eval_load(PlaceNest *n, IrValue *v, const PlaceElem *idx) {
  Place *p = n->p;
  const IrOp *op = v->def;
  const bool assume = n->assume && inner(n, v, idx);
  const PlaceElem ptr = place_eval(n, ir_operand(op, 0), idx);
  PlaceElem mask = {ELEM_UNI, NULL, 0}, other = {ELEM_UNI, NULL, 0};
  if (ir_operand(op, 1)) mask = place_eval_mask(n, ir_operand(op, 1), idx, assume);
  if (mask.v && ir_operand(op, 2)) other = place_eval(n, ir_operand(op, 2), idx);
  const IrType *t = ir_type_elem(p->ctx, v->type);
  const bool uni = ptr.kind == ELEM_UNI && mask.kind == ELEM_UNI && other.kind == ELEM_UNI;
  const bool line = ptr.kind == ELEM_AFF && ptr.step == 1;
  IrValue *ops[3] = {uni || line ? ptr.v : place_vec(n, ptr), NULL, NULL};
  if (mask.v) ops[1] = uni ? mask.v : place_vec(n, mask);
  if (other.v) ops[2] = uni ? other.v : place_vec(n, other);
  int level = 0;
  for (int i = 0; i < 3; i++) {
    const int d = ops[i] ? place_level(n, ops[i]) : 0;
    if (d > level) level = d;
  }
  const IrType *type = uni ? t : place_vec_type(n, t);
  n->at[level].loc = op->loc;
  IrOp *l = ir_build(&n->at[level], !uni && line ? OP_load_vec : OP_load, 3, ops, 1, &type, 0);
  if (uni || !line) {
    if (ir_attr_i(op, ATTR_volatile)) ir_set_attr_i(l, ATTR_volatile, 1);
  }
  return (PlaceElem){uni ? ELEM_UNI : ELEM_VEC, ir_result(l, 0), 0};
}

static PlaceElem eval_gather(PlaceNest *n, IrValue *v, const PlaceElem *idx) {
  const IrOp *op = v->def;
  IrValue *a = ir_operand(op, 0);
  const int axis = (int)ir_attr_i(op, ATTR_axis);
  const PlaceElem i = place_eval(n, ir_operand(op, 1), idx);
  PlaceElem at[IR_MAX_RANK];
  for (int k = 0; k < a->type->rank; k++) at[k] = idx[k];
  // kept inside by taking it modulo the (power of two) length
  IrValue *x = i.kind == ELEM_UNI ? i.v : place_vec(n, i);
  if (x->type->dtype != IR_i32) {
    const IrOpKind cast = ir_dtypes[x->type->dtype].bits > 32 ? OP_trunc : OP_ext_u;
    x = place_pure(n, cast, 1, &x, ir_type_with_dtype(n->p->ctx, x->type, IR_i32), NULL);
  }
  const PlaceElem lim = place_const(n, a->type->shape[axis] - 1);
  x = place_bin(n, OP_and, x, i.kind == ELEM_UNI ? lim.v : place_vec(n, lim));
  at[axis] = (PlaceElem){i.kind == ELEM_UNI ? ELEM_UNI : ELEM_VEC, x, 0};
  return place_eval(n, a, at);
}

static PlaceElem eval_join(PlaceNest *n, IrValue *v, const PlaceElem *idx) {
  const IrOp *op = v->def;
  const PlaceElem which = idx[v->type->rank - 1];
  int64_t c;
  if (which.kind == ELEM_UNI && place_is_const(which.v, &c))
    return place_eval(n, ir_operand(op, c ? 1 : 0), idx);
  PlaceElem a = place_eval(n, ir_operand(op, 0), idx), b = place_eval(n, ir_operand(op, 1), idx);
  const PlaceElem zero = place_const(n, 0);
  if (which.kind == ELEM_UNI && a.kind == ELEM_UNI && b.kind == ELEM_UNI)
    return place_uni(place_sel(n, place_cmp(n, CMP_eq, which.v, zero.v), a.v, b.v));
  IrValue *first = place_cmp(n, CMP_eq, place_vec(n, which), place_vec(n, zero));
  return vec_elem(n, place_sel(n, first, place_vec(n, a), place_vec(n, b)));
}

static PlaceElem eval_fresh(PlaceNest *n, IrValue *v, const PlaceElem *idx) {
  Place *p = n->p;
  IrOp *op = v->def;
  PlaceElem at[IR_MAX_RANK + 1];
  switch (op->kind) {
  case OP_const:
    return place_uni(place_pconst(p, ir_type_elem(p->ctx, v->type), (uint64_t)ir_attr_i(op, ATTR_value)));
  case OP_splat: return place_uni(place_value(p, ir_operand(op, 0)));
  case OP_arange: return index_op(n, OP_add, idx[0], ir_attr_i(op, ATTR_start));
  case OP_expand_dims:
  case OP_broadcast:
  case OP_trans:
  case OP_reshape: place_map_index(n, op, 0, idx, at); return place_eval(n, ir_operand(op, 0), at);
  case OP_split:
    place_map_index(n, op, 0, idx, at);
    at[v->type->rank] = place_const(n, v->index);
    return place_eval(n, ir_operand(op, 0), at);
  case OP_join: return eval_join(n, v, idx);
  case OP_gather: return eval_gather(n, v, idx);
  case OP_load: return eval_load(n, v, idx);
  case OP_mem_load: return place_read(n, place_mem(p, ir_operand(op, 0)), idx, 0);
  default: break;
  }
  const bool assume = n->assume && inner(n, v, idx);
  if (assume && op->kind == OP_fdiv && map_getp(&n->terms, v)) {
    const PlaceElem x = place_eval(n, ir_operand(op, 0), idx), b = place_eval(n, ir_operand(op, 1), idx);
    IrValue *one = place_pconst(p, b.v->type, ir_float_bits(b.v->type->dtype, 1));
    const PlaceElem by = place_uni(place_pure(n, OP_fdiv, 2, (IrValue *[]){one, b.v}, b.v->type, NULL));
    if (x.kind == ELEM_UNI)
      return place_uni(place_pure(n, OP_fmul, 2, (IrValue *[]){x.v, by.v}, by.v->type, NULL));
    IrValue *vx = place_vec(n, x), *vb = place_vec(n, by);
    return vec_elem(n, place_pure(n, OP_fmul, 2, (IrValue *[]){vx, vb}, vx->type, NULL));
  }
  if (assume && (op->kind == OP_rem_s || op->kind == OP_rem_u) && map_getp(&n->terms, v))
    return place_eval(n, ir_operand(op, 0), idx);
  PlaceElem in[4] = {{0}};
  const uint32_t count = op->noperands < 4 ? op->noperands : 4;
  uint32_t i = 0;
  if (op->kind == OP_select) {
    in[0] = place_eval_mask(n, ir_operand(op, 0), idx, assume);
    if (!in[0].v) return place_eval(n, ir_operand(op, 1), idx);
    i = 1;
  }
  for (; i < count; i++) {
    IrValue *o = ir_operand(op, i);
    if (o && o->type->kind != IR_TOKEN) in[i] = place_eval(n, o, idx);
  }
  for (int d = 0; d <= n->depth; d++) n->at[d].loc = op->loc;
  return place_elementwise(n, op, in, count);
}

PlaceElem place_eval(PlaceNest *n, IrValue *v, const PlaceElem *idx) {
  Place *p = n->p;
  if (!place_is_tile(v)) return place_uni(place_value(p, v));
  PlaceInfo *in = place_info(p, v);
  if (!in->is_virtual && !in->ready)
    place_fail(p, v->def ? v->def->loc : LOC_NONE, "a tile of the kernel is read before it is placed");
  const int rank = v->type->rank;
  const uint64_t key = memo_key(v, rank, idx);
  Memo *first = map_getp(&n->memo, (void *)(uintptr_t)key);
  for (Memo *m = first; m; m = m->next) {
    bool same = m->v == v;
    for (int i = 0; i < rank && same; i++) same = same_elem(m->idx[i], idx[i]);
    if (same) return m->result;
  }
  if (++p->evals > PLACE_MAX_EVALS)
    place_fail(p, v->def ? v->def->loc : LOC_NONE,
               "a loop over one tile needs more than %d expressions; split the computation", PLACE_MAX_EVALS);
  Memo *m = arena_new(p->arena, Memo);
  m->v = v;
  m->rank = rank;
  memcpy(m->idx, idx, sizeof *idx * (size_t)rank);
  m->result = in->ready ? place_read(n, in->buf, idx, 0) : eval_fresh(n, v, idx);
  m->next = map_getp(&n->memo, (void *)(uintptr_t)key);
  map_setp(&n->memo, (void *)(uintptr_t)key, m);
  return m->result;
}
