// place_info: facts of tile values, each from its operands' in program order, and which accesses may meet in memory.
#include "pass/place.h"

#include <string.h>

static uint32_t wide_axes(const IrType *t) {
  uint32_t m = 0;
  for (int i = 0; i < t->rank; i++) {
    if (t->shape[i] > 1) m |= 1u << i;
  }
  return m;
}

bool place_op_is_elementwise(const IrOp *op) {
  if (op->kind == OP_consume || op->kind == OP_hint) return true;
  return (ir_ops[op->kind].traits & TRAIT_ELEMENTWISE) && (ir_ops[op->kind].traits & TRAIT_PURE);
}

bool place_op_is_virtual(const IrOp *op) {
  if (!op->nresults || !place_is_tile(ir_result(op, 0))) return false;
  switch (op->kind) {
  case OP_const:
  case OP_splat:
  case OP_arange:
  case OP_expand_dims:
  case OP_broadcast:
  case OP_reshape:
  case OP_trans:
  case OP_join:
  case OP_split:
  case OP_gather:
  case OP_mem_load: return true;
  case OP_load: return ir_op_effects(op).order == ORDER_weak;
  default: return place_op_is_elementwise(op);
  }
}

bool place_uniform_tile(const Place *p, const IrValue *v) { return place_is_tile(v) && !p->info[v->id].deps; }

// ---- steps: how integers and pointers change along each axis -------------------------------------------------------
typedef PlaceInfo Info;

static void steps_unknown(Info *in, const IrType *t) {
  for (int i = 0; i < t->rank; i++) in->step[i] = in->deps >> i & 1 ? PLACE_STEP_ANY : 0;
}

static int32_t step_add(int32_t a, int32_t b, int sign) {
  if (a == PLACE_STEP_ANY || b == PLACE_STEP_ANY) return PLACE_STEP_ANY;
  const int64_t s = (int64_t)a + sign * (int64_t)b;
  return s > INT32_MIN && s <= INT32_MAX ? (int32_t)s : PLACE_STEP_ANY;
}
static int32_t step_mul(int32_t a, int64_t c) {
  if (a == 0) return 0;
  int64_t s;
  if (a == PLACE_STEP_ANY || bits_mul_overflow(a, c, &s) || s <= INT32_MIN || s > INT32_MAX)
    return PLACE_STEP_ANY;
  return (int32_t)s;
}

static void elementwise_steps(Place *p, const IrOp *op, Info *in) {
  const IrValue *r = ir_result(op, 0), *a = ir_operand(op, 0), *b = ir_operand(op, 1);
  steps_unknown(in, r->type);
  if (!place_is_tile(a) || ir_type_is_float(r->type)) return;
  const Info *x = place_info(p, a), *y = place_is_tile(b) ? place_info(p, b) : NULL;
  int64_t c;
  for (int i = 0; i < r->type->rank; i++) {
    if (!(in->deps >> i & 1)) continue;
    switch (op->kind) {
    case OP_add: in->step[i] = step_add(x->step[i], y->step[i], 1); break;
    case OP_sub: in->step[i] = step_add(x->step[i], y->step[i], -1); break;
    case OP_ptr_add: in->step[i] = step_add(x->step[i], y->step[i], 1); break;
    case OP_mul:
      if (ir_const_int(b, &c))
        in->step[i] = step_mul(x->step[i], c);
      else if (ir_const_int(a, &c))
        in->step[i] = step_mul(y->step[i], c);
      break;
    case OP_shl:
      if (ir_const_int(b, &c) && c >= 0 && c < 31) in->step[i] = step_mul(x->step[i], (int64_t)1 << c);
      break;
    case OP_ext_s:
    case OP_hint:
    case OP_consume: in->step[i] = x->step[i]; break;
    case OP_bitcast:
      if (ir_type_is_ptr(a->type) && ir_type_is_ptr(r->type) &&
          ir_dtypes[a->type->dtype].bytes == ir_dtypes[r->type->dtype].bytes)
        in->step[i] = x->step[i];
      break;
    default: break;
    }
  }
}

// ---- costs ------------------------------------------------------------------------------------------------------------
static float op_cost(const IrOp *op, const Info *in, const IrType *t) {
  if (!in->deps) return 0;
  const bool flt = ir_type_is_float(t);
  bool affine = !flt;
  for (int i = 0; i < t->rank && affine; i++) affine = in->step[i] != PLACE_STEP_ANY;
  switch (op->kind) {
  case OP_div_s:
  case OP_div_u:
  case OP_rem_s:
  case OP_rem_u: {
    int64_t c;
    return ir_const_int(ir_operand(op, 1), &c) && c > 0 && bits_pow2((uint64_t)c) ? 0.5f : 6;
  }
  case OP_mulhi_s:
  case OP_mulhi_u: return 2;
  case OP_fdiv:
  case OP_frem: return 4;
  case OP_math:
    switch ((IrMath)ir_attr_i(op, ATTR_fn)) {
    case MATH_FN_floor:
    case MATH_FN_ceil:
    case MATH_FN_rint:
    case MATH_FN_trunc: return 1;
    case MATH_FN_sqrt:
    case MATH_FN_rsqrt: return 4;
    default: return 8;
    }
  case OP_fcast: {
    const int small = ir_dtypes[t->dtype].bits < ir_dtypes[ir_operand(op, 0)->type->dtype].bits
                          ? ir_dtypes[t->dtype].bits
                          : ir_dtypes[ir_operand(op, 0)->type->dtype].bits;
    return small == 8 ? 6 : 1;
  }
  case OP_f2si:
  case OP_f2ui:
  case OP_ui2f: return 2;
  case OP_select: return 0.5f;
  default: return affine ? 0 : flt ? 0.7f : 0.4f;
  }
}

static bool contiguous(const Place *p, const IrValue *ptr) {
  const Info *in = &p->info[ptr->id];
  for (int i = ptr->type->rank - 1; i >= 0; i--) {
    if (ptr->type->shape[i] > 1) return in->step[i] == 1 || in->step[i] == 0;
  }
  return true;
}

static void info_of(Place *p, const IrOp *op, uint32_t k) {
  const IrValue *r = ir_result(op, k);
  const IrType *t = r->type;
  Info *in = place_info(p, r);
  const IrValue *a = ir_operand(op, 0);
  const Info *x = place_is_tile(a) ? place_info(p, a) : NULL;
  in->is_virtual = place_op_is_virtual(op);
  in->deps = 0;
  in->cost = 0;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *o = ir_operand(op, i);
    if (!place_is_tile(o)) continue;
    const Info *oi = place_info(p, o);
    if (oi->depth >= in->depth) in->depth = oi->depth + 1;
    in->cost += oi->cost;
    in->deps |= oi->deps;
  }
  if (in->depth > PLACE_LONGEST)
    place_fail(p, op->loc, "a tile computed by a chain of more than %d operations; store it on the way",
               PLACE_LONGEST);
  const int axis = (int)ir_attr_i(op, ATTR_axis);
  switch (op->kind) {
  case OP_const:
  case OP_splat:
    in->deps = 0;
    steps_unknown(in, t);
    return;
  case OP_arange:
    in->deps = t->shape[0] > 1;
    in->step[0] = t->shape[0] > 1;
    return;
  case OP_expand_dims:
    for (int i = 0, j = 0; i < t->rank; i++) in->step[i] = i == axis ? 0 : x->step[j++];
    in->deps = (x->deps & ((1u << axis) - 1)) | (x->deps >> axis << (axis + 1));
    return;
  case OP_broadcast:
    for (int i = 0; i < t->rank; i++) in->step[i] = a->type->shape[i] == 1 ? 0 : x->step[i];
    in->deps = x->deps & wide_axes(a->type);
    if (wide_axes(t) != wide_axes(a->type)) in->cost *= 0.1f;
    return;
  case OP_trans: {
    const IrAttr *perm = ir_attr(op, ATTR_perm);
    in->deps = 0;
    for (int i = 0; i < t->rank; i++) {
      const int from = (int)perm->ints.v[i];
      in->step[i] = x->step[from];
      in->deps |= (x->deps >> from & 1) << i;
    }
    return;
  }
  case OP_split:
    in->deps = x->deps & ((1u << t->rank) - 1);
    for (int i = 0; i < t->rank; i++) in->step[i] = x->step[i];
    return;
  case OP_reshape:
    in->deps = x->deps ? wide_axes(t) : 0;
    steps_unknown(in, t);
    if (x->deps && a->type->rank == 1 && x->step[0] != PLACE_STEP_ANY) { // rows of a line
      int64_t s = x->step[0];
      for (int i = t->rank - 1; i >= 0; s *= t->shape[i--])
        in->step[i] = t->shape[i] == 1 ? 0 : step_mul((int32_t)s, 1);
    }
    return;
  case OP_join:
    in->deps |= 1u << (t->rank - 1);
    steps_unknown(in, t);
    in->cost += 1;
    return;
  case OP_gather:
    in->deps = wide_axes(t);
    steps_unknown(in, t);
    in->cost += 6;
    return;
  case OP_load:
    steps_unknown(in, t);
    in->cost += !in->deps ? 0 : contiguous(p, a) ? 2 : 8;
    return;
  case OP_mem_load:
    in->deps = wide_axes(t);
    steps_unknown(in, t);
    in->cost = 1;
    return;
  default: break;
  }
  if (!in->is_virtual) { // has a buffer
    in->deps = wide_axes(t);
    steps_unknown(in, t);
    in->cost = 1;
    in->depth = 0;
    return;
  }
  elementwise_steps(p, op, in);
  in->cost += op_cost(op, in, t);
}

static void scalar_depth(Place *p, const IrOp *op, uint32_t k) {
  Info *in = place_info(p, ir_result(op, k));
  if (op->nregions || op->kind == OP_to_thread) return;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *o = ir_operand(op, i);
    if (o && p->info[o->id].depth >= in->depth) in->depth = p->info[o->id].depth + 1;
  }
}

static void info_block(Place *p, IrBlock *b) {
  for (uint32_t i = 0; i < b->args.len; i++) {
    const IrValue *v = b->args.data[i];
    if (v->type->kind != IR_TILE) continue;
    Info *in = place_info(p, v);
    in->deps = wide_axes(v->type);
    steps_unknown(in, v->type);
    in->cost = 1;
  }
  for (IrOp *op = b->first; op; op = op->next) {
    for (uint32_t k = 0; k < op->nresults; k++) {
      if (place_is_tile(ir_result(op, k)))
        info_of(p, op, k);
      else
        scalar_depth(p, op, k);
    }
    if (op->kind == OP_reduce || op->kind == OP_scan) continue; // scalars inside
    for (uint32_t k = 0; k < op->nregions; k++) info_block(p, op->regions[k]);
  }
}

void place_info_run(Place *p) {
  p->info = arena_array(p->arena, PlaceInfo, p->old->next_id);
  info_block(p, p->old->body);
}

// ---- which accesses may meet -----------------------------------------------------------------------------------------
static const IrValue *pointer_root(const IrValue *v) {
  while (v->def) {
    switch (v->def->kind) {
    case OP_ptr_add:
    case OP_splat:
    case OP_broadcast:
    case OP_expand_dims:
    case OP_reshape:
    case OP_trans:
    case OP_bitcast:
    case OP_hint:
    case OP_to_thread:
    case OP_consume: v = ir_operand(v->def, 0); break;
    default: return v;
    }
  }
  return v;
}

static const IrParam *param_of(const Place *p, const IrValue *v) {
  return !v->def && v->block == p->old->body ? &p->old->params.data[v->index] : NULL;
}

static bool same_attrs(const IrOp *a, const IrOp *b) {
  if (a->nattrs != b->nattrs) return false;
  for (uint32_t i = 0; i < a->nattrs; i++) {
    const IrAttr *x = &a->attrs[i], *y = ir_attr(b, x->name);
    if (!y) return false;
    if (x->name == ATTR_perm || x->name == ATTR_divisible || x->name == ATTR_contiguous ||
        x->name == ATTR_constancy) {
      if (x->ints.n != y->ints.n || memcmp(x->ints.v, y->ints.v, x->ints.n * sizeof *x->ints.v)) return false;
    } else if (x->i != y->i) {
      return false;
    }
  }
  return true;
}

// The same expression, but for the parameter that it starts from: two tensors are one and the same or disjoint where
// their elements meet at equal indices.
static bool same_index(const Place *p, const IrValue *a, const IrValue *b, int *budget) {
  if (a == b) return true;
  if (--*budget < 0 || a->type != b->type) return false;
  if (param_of(p, a) && param_of(p, b)) return ir_type_is_ptr(a->type);
  if (!a->def || !b->def || a->index != b->index) return false;
  const IrOp *x = a->def, *y = b->def;
  if (x->kind != y->kind || x->noperands != y->noperands || x->nregions ||
      !(ir_ops[x->kind].traits & TRAIT_PURE) || !same_attrs(x, y))
    return false;
  for (uint32_t i = 0; i < x->noperands; i++) {
    const IrValue *u = ir_operand(x, i), *v = ir_operand(y, i);
    if (!u != !v || (u && !same_index(p, u, v, budget))) return false;
  }
  return true;
}

// Every element at its own address, as far as an author who strides by non-zero strides means it.
static bool plain_index(const IrValue *v, int depth) {
  if (v->type->kind != IR_TILE) return true;
  if (!v->def || depth > 24) return false;
  switch (v->def->kind) {
  case OP_const:
  case OP_splat:
  case OP_arange: return true;
  case OP_add:
  case OP_sub:
  case OP_mul:
  case OP_ptr_add:
  case OP_ext_s:
  case OP_ext_u:
  case OP_expand_dims:
  case OP_broadcast:
  case OP_reshape:
  case OP_trans:
  case OP_bitcast:
  case OP_hint:
  case OP_consume: break;
  default: return false;
  }
  for (uint32_t i = 0; i < v->def->noperands; i++) {
    const IrValue *o = ir_operand(v->def, i);
    if (o && place_is_tile(o) && !plain_index(o, depth + 1)) return false;
  }
  return true;
}

static const IrValue *memdesc_root(const IrValue *m) {
  while (m->def && m->def->kind == OP_mem_view) m = ir_operand(m->def, 0);
  return m;
}

bool place_conflict(Place *p, const IrOp *load, const IrOp *store, bool same_nest) {
  const bool lm = load->kind == OP_mem_load || load->kind == OP_mem_store;
  const bool sm = store->kind == OP_mem_store;
  if (lm != sm) return false;
  const IrValue *a = ir_operand(load, 0), *b = ir_operand(store, 0);
  if (lm) {
    if (memdesc_root(a) != memdesc_root(b)) return false;
    return !(same_nest && a == b);
  }
  if (ir_type_is_ptr(a->type) && ir_type_is_ptr(b->type) && a->type->space != b->type->space) return false;
  const IrValue *x = pointer_root(a), *y = pointer_root(b);
  const IrParam *px = param_of(p, x), *py = param_of(p, y);
  if (px && py && px != py && (px->noalias || py->noalias)) return false;
  if (!same_nest) return true;
  if (!place_is_tile(a) || !place_is_tile(b)) return true;
  int budget = 400;
  if (!same_index(p, a, b, &budget) || !plain_index(b, 0)) return true;
  return place_info(p, b)->deps != wide_axes(b->type);
}
