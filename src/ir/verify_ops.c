// verify_ops: the rules of single ops that the columns of ops.def cannot say: shapes, element types, attribute values.
// Classes, counts, traits and levels hold already when an op comes here.
#include "ir/verify.h"

#include <string.h>

typedef IrVerifier V;

static const IrType *type_in(const IrOp *op, uint32_t i) {
  const IrValue *v = ir_operand(op, i);
  return v ? v->type : NULL;
}
static const IrType *type_out(const IrOp *op, uint32_t i) { return op->results[i].type; }
static int bits_of(const IrType *t) { return ir_type_is_ptr(t) ? 64 : ir_dtypes[t->dtype].bits; }
static bool is_num(const IrType *t) { return ir_type_is_int(t) || ir_type_is_float(t); }

// ---- relations between types; each reports and returns false where it does not hold -----------------------------------

static bool want(V *v, const IrOp *op, bool holds, const char *text) {
  return holds || ir_bad(v, op, "%s", text);
}

static bool equal(V *v, const IrOp *op, const char *a, const IrType *x, const char *b, const IrType *y) {
  if (x == y) return true;
  return ir_bad(v, op, "%s is %s and %s %s, but they must be equal", a, ir_type_msg(v, x), b,
                ir_type_msg(v, y));
}

static bool equal_shape(V *v, const IrOp *op, const char *a, const IrType *x, const char *b,
                        const IrType *y) {
  if ((x->kind == IR_TILE) == (y->kind == IR_TILE) && ir_same_shape(x, y)) return true;
  return ir_bad(v, op, "%s is %s and %s %s, but their shapes must be equal", a, ir_type_msg(v, x), b,
                ir_type_msg(v, y));
}

static bool equal_elem(V *v, const IrOp *op, const char *a, const IrType *x, const char *b, const IrType *y) {
  if (ir_same_elem(x, y)) return true;
  return ir_bad(v, op, "%s is %s and %s %s, but their elements must be equal", a, ir_type_msg(v, x), b,
                ir_type_msg(v, y));
}

// t is a number type of the dtype that p points at.
static bool points_at(V *v, const IrOp *op, const IrType *p, const char *what, const IrType *t) {
  if (is_num(t) && t->dtype == p->dtype) return true;
  return ir_bad(v, op, "%s is %s, but the pointer %s", what, ir_type_msg(v, t), ir_type_msg(v, p));
}

static bool scalar_int(V *v, const IrOp *op, const char *what, const IrType *t) {
  return !t || t->kind == IR_SCALAR ||
         ir_bad(v, op, "%s is %s, but must be a scalar", what, ir_type_msg(v, t));
}

static bool axis_within(V *v, const IrOp *op, int rank) {
  const int64_t axis = ir_attr_i(op, ATTR_axis);
  return (axis >= 0 && axis < rank) || ir_bad(v, op, "axis %lld is not one of %d", (long long)axis, rank);
}

static bool mask_fits(V *v, const IrOp *op, const IrType *mask, const char *what, const IrType *t) {
  return !mask || equal_shape(v, op, "the mask", mask, what, t);
}

static bool same_dims(const int32_t *a, const int32_t *b, int n) {
  return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

// ---- families -----------------------------------------------------------------------------------------------------

static void cast_rules(V *v, const IrOp *op) {
  const IrType *a = type_in(op, 0), *r = type_out(op, 0);
  switch (op->kind) {
  case OP_ext_s:
  case OP_ext_u: want(v, op, bits_of(r) > bits_of(a), "the result is not wider"); break;
  case OP_trunc: want(v, op, bits_of(r) < bits_of(a), "the result is not narrower"); break;
  case OP_fcast: want(v, op, a->dtype != r->dtype, "converts a type to itself"); break;
  case OP_ptr2int: want(v, op, r->dtype == IR_i64, "an address is an i64"); break;
  case OP_int2ptr: want(v, op, a->dtype == IR_i64, "an address is an i64"); break;
  default: // bitcast
    if (ir_type_is_ptr(a) != ir_type_is_ptr(r))
      ir_bad(v, op, "changes between pointer and number; use ptr2int or int2ptr");
    else if (ir_type_is_ptr(a))
      want(v, op, a->space == r->space, "changes the space of a pointer");
    else
      want(v, op, bits_of(a) == bits_of(r), "changes the width");
  }
}

// Hints hold one positive number for each axis (one for a scalar).
static void hint_rules(V *v, const IrOp *op) {
  const IrAttrName names[] = {ATTR_divisible, ATTR_contiguous, ATTR_constancy};
  const int rank = type_out(op, 0)->rank;
  for (int i = 0; i < 3; i++) {
    const IrAttr *a = ir_attr(op, names[i]);
    if (!a) continue;
    if (a->ints.n != (uint32_t)(rank ? rank : 1))
      ir_bad(v, op, "%s needs a number for each axis", ir_attrs[a->name].name);
    for (uint32_t j = 0; j < a->ints.n; j++) {
      if (a->ints.v[j] < 1) ir_bad(v, op, "%s must be positive", ir_attrs[a->name].name);
    }
  }
}

static void level_rules(V *v, const IrOp *op) {
  const IrType *a = type_in(op, 0), *r = type_out(op, 0);
  const bool to = op->kind == OP_to_thread;
  if (v->m->stage == STAGE_placed && !to) return; // a vector of lanes to a scalar
  if (!ir_has_level(a) || !ir_has_level(r) || a->kind != r->kind || !ir_same_elem(a, r)) {
    ir_bad(v, op, "makes %s of %s; only the level may change", ir_type_msg(v, r), ir_type_msg(v, a));
  } else if (ir_type_is_thread(a) == to || ir_type_is_thread(r) != to) {
    ir_bad(v, op, "goes from %s to the %s level", to ? "the program" : "the thread",
           to ? "thread" : "program");
  }
}

static void shape_rules(V *v, const IrOp *op) {
  const IrType *a = type_in(op, 0), *r = op->nresults ? type_out(op, 0) : NULL;
  switch (op->kind) {
  case OP_splat:
    if (want(v, op, ir_has_level(a), "repeats a scalar or pointer")) equal_elem(v, op, "a", a, "r", r);
    break;
  case OP_unsplat:
    want(v, op, ir_type_elems(a) == 1, "needs a tile of one element");
    if (want(v, op, ir_has_level(r), "gives a scalar or pointer")) equal_elem(v, op, "a", a, "r", r);
    break;
  case OP_arange: {
    const int64_t lo = ir_attr_i(op, ATTR_start), hi = ir_attr_i(op, ATTR_end);
    want(v, op, ir_type_is_int(r) && r->dtype == IR_i32 && r->rank == 1, "gives a tile of i32 with one axis");
    want(v, op, lo >= INT32_MIN && hi <= INT32_MAX && lo < hi, "start and end are no range of i32");
    want(v, op, hi - lo == r->shape[0], "end - start is not the size of the result");
    break;
  }
  case OP_ramp:
    equal(v, op, "a", a, "b", type_in(op, 1));
    want(v, op, a->kind == IR_SCALAR && r->rank == 1, "makes a vector of a scalar");
    equal_elem(v, op, "a", a, "r", r);
    break;
  case OP_expand_dims: {
    if (!axis_within(v, op, r->rank) || !equal_elem(v, op, "a", a, "r", r)) break;
    const int axis = (int)ir_attr_i(op, ATTR_axis);
    want(v, op,
         r->rank == a->rank + 1 && r->shape[axis] == 1 && same_dims(r->shape, a->shape, axis) &&
             same_dims(r->shape + axis + 1, a->shape + axis, a->rank - axis),
         "the result is not the operand with one more axis of size 1");
    break;
  }
  case OP_broadcast: {
    bool fits = r->rank == a->rank;
    for (int i = 0; fits && i < a->rank; i++) fits = a->shape[i] == r->shape[i] || a->shape[i] == 1;
    equal_elem(v, op, "a", a, "r", r);
    if (!fits)
      ir_bad(v, op, "%s cannot become %s: only axes of size 1 grow", ir_type_msg(v, a), ir_type_msg(v, r));
    break;
  }
  case OP_reshape:
    equal_elem(v, op, "a", a, "r", r);
    want(v, op, ir_type_elems(a) == ir_type_elems(r), "changes the number of elements");
    break;
  case OP_trans: {
    const IrAttr *p = ir_attr(op, ATTR_perm);
    unsigned seen = 0;
    bool fits = p->ints.n == (uint32_t)a->rank && r->rank == a->rank;
    for (int i = 0; fits && i < a->rank; i++) {
      const int64_t x = p->ints.v[i];
      fits = x >= 0 && x < a->rank && !(seen >> x & 1) && r->shape[i] == a->shape[x];
      if (fits) seen |= 1u << x;
    }
    equal_elem(v, op, "a", a, "r", r);
    want(v, op, fits, "perm is not the permutation that gives the result's shape");
    break;
  }
  case OP_join:
    equal(v, op, "a", a, "b", type_in(op, 1));
    equal_elem(v, op, "a", a, "r", r);
    want(v, op, r->rank == a->rank + 1 && r->shape[a->rank] == 2 && same_dims(r->shape, a->shape, a->rank),
         "the result is not the operands' shape with a last axis of size 2");
    break;
  case OP_split:
    equal(v, op, "x", r, "y", type_out(op, 1));
    equal_elem(v, op, "a", a, "x", r);
    want(v, op, a->rank == r->rank + 1 && a->shape[r->rank] == 2 && same_dims(r->shape, a->shape, r->rank),
         "the operand is not the results' shape with a last axis of size 2");
    break;
  case OP_cat: {
    const IrType *b = type_in(op, 1);
    equal_elem(v, op, "a", a, "b", b);
    equal_elem(v, op, "a", a, "r", r);
    want(v, op,
         a->rank == b->rank && a->rank == r->rank && r->shape[0] == a->shape[0] + b->shape[0] &&
             same_dims(a->shape + 1, b->shape + 1, a->rank - 1) &&
             same_dims(a->shape + 1, r->shape + 1, a->rank - 1),
         "the result is not the operands one after the other along axis 0");
    break;
  }
  case OP_gather: {
    const IrType *i = type_in(op, 1);
    if (!axis_within(v, op, a->rank)) break;
    const int axis = (int)ir_attr_i(op, ATTR_axis);
    equal_elem(v, op, "a", a, "r", r);
    want(v, op, ir_type_is_int(i), "the indices are not integers");
    equal_shape(v, op, "i", i, "r", r);
    bool fits = i->rank == a->rank;
    for (int k = 0; fits && k < a->rank; k++) fits = k == axis || a->shape[k] == i->shape[k];
    want(v, op, fits, "the operands differ outside of the axis");
    break;
  }
  default: // histogram
    want(v, op, ir_type_is_int(a) && a->rank == 1, "counts a tile of integers with one axis");
    want(v, op, ir_type_is_int(r) && r->dtype == IR_i32 && r->rank == 1, "gives a tile of i32 with one axis");
    if (type_in(op, 1)) {
      want(v, op, ir_class_holds(CLASS_i1, type_in(op, 1)), "the mask is not of i1");
      mask_fits(v, op, type_in(op, 1), "a", a);
    }
  }
}

// c[M N] += a[M K] b[K N], with any number of equal leading axes up to one.
static void product_rules(V *v, const IrOp *op, const IrType *a, const IrType *b, const IrType *c) {
  const int n = c->rank;
  bool fits = (n == 2 || n == 3) && a->rank == n && b->rank == n;
  fits = fits && a->shape[n - 2] == c->shape[n - 2] && a->shape[n - 1] == b->shape[n - 2] &&
         b->shape[n - 1] == c->shape[n - 1];
  if (fits && n == 3) fits = a->shape[0] == b->shape[0] && a->shape[0] == c->shape[0];
  if (!fits) {
    ir_bad(v, op, "%s times %s does not give %s", ir_type_msg(v, a), ir_type_msg(v, b), ir_type_msg(v, c));
    return;
  }
  const IrDclass cls = ir_dtypes[a->dtype].cls;
  want(v, op, !a->ptr_elem && !b->ptr_elem && !c->ptr_elem, "multiplies pointers");
  want(v, op, cls == ir_dtypes[b->dtype].cls && cls == ir_dtypes[c->dtype].cls, "mixes integers and floats");
  want(v, op, a->dtype == b->dtype || (ir_dtypes[a->dtype].bits == 8 && ir_dtypes[b->dtype].bits == 8),
       "the operands have different element types");
  want(v, op, ir_dtypes[c->dtype].bits >= ir_dtypes[a->dtype].bits,
       "accumulates in a type narrower than the operands");
}

static void rmw_rules(V *v, const IrOp *op, IrDtype d) {
  const int64_t rmw = ir_attr_i(op, ATTR_rmw);
  const bool is_float = ir_dtypes[d].cls == IR_FLOAT,
             wants_float = rmw == RMW_fadd || rmw == RMW_fmax || rmw == RMW_fmin;
  if (rmw != RMW_xchg && is_float != wants_float) {
    ir_bad(v, op, "%s does not work on %s", ir_enum_text(ATTR_rmw, rmw), ir_dtypes[d].name);
  }
}

static void memory_rules(V *v, const IrOp *op) {
  const IrType *p = type_in(op, 0), *x = type_in(op, 1), *y = type_in(op, 2);
  const IrType *r = op->nresults ? type_out(op, 0) : NULL;
  const int64_t order = ir_attr_i(op, ATTR_order);
  switch (op->kind) {
  case OP_load:
    if (!points_at(v, op, p, "the result", r) || !equal_shape(v, op, "p", p, "the result", r)) break;
    mask_fits(v, op, x, "p", p);
    if (y) equal(v, op, "other", y, "the result", r);
    want(v, op, order != ORDER_release && order != ORDER_acq_rel, "a load cannot release");
    break;
  case OP_store:
    if (!points_at(v, op, p, "the value", x) || !equal_shape(v, op, "p", p, "the value", x)) break;
    mask_fits(v, op, y, "p", p);
    want(v, op, order != ORDER_acquire && order != ORDER_acq_rel, "a store cannot acquire");
    break;
  case OP_atomic_rmw:
    if (!points_at(v, op, p, "the value", x) || !equal_shape(v, op, "p", p, "the value", x)) break;
    mask_fits(v, op, y, "p", p);
    equal(v, op, "the value", x, "the result", r);
    rmw_rules(v, op, x->dtype);
    break;
  case OP_atomic_cas:
    if (!points_at(v, op, p, "the value", x) || !equal_shape(v, op, "p", p, "the value", x)) break;
    equal(v, op, "c", x, "v", y);
    equal(v, op, "v", y, "the result", r);
    break;
  case OP_load_vec:
    if (!points_at(v, op, p, "the result", r)) break;
    mask_fits(v, op, x, "the result", r);
    if (x) want(v, op, ir_class_holds(CLASS_i1, x), "the mask is not of i1");
    if (y) equal(v, op, "other", y, "the result", r);
    break;
  default: // store_vec
    if (!points_at(v, op, p, "the value", x)) break;
    if (y) want(v, op, ir_class_holds(CLASS_i1, y), "the mask is not of i1");
    mask_fits(v, op, y, "the value", x);
  }
}

// n index operands from the at-th on.
static bool index_count(V *v, const IrOp *op, uint32_t at, int n) {
  const uint32_t have = op->noperands > at ? op->noperands - at : 0;
  return have == (uint32_t)n || ir_bad(v, op, "has %u indices, must have %d", have, n);
}

// Block and tile, or block and memdesc: the same elements in the same shape.
static void same_block(V *v, const IrOp *op, const char *a, const IrType *x, const char *b, const IrType *y) {
  if (!y->ptr_elem && x->dtype == y->dtype && ir_same_shape(x, y)) return;
  ir_bad(v, op, "%s is %s and %s %s, but shape and dtype must be equal", a, ir_type_msg(v, x), b,
         ir_type_msg(v, y));
}

// The same of a block of a tensor and a buffer, which may leave out leading axes of size 1.
static void same_buffer(V *v, const IrOp *op, const IrType *block, const IrType *m) {
  const int more = block->rank - m->rank;
  bool same = more >= 0 && block->dtype == m->dtype;
  for (int i = 0; same && i < block->rank; i++) same = block->shape[i] == (i < more ? 1 : m->shape[i - more]);
  if (!same)
    ir_bad(
        v, op,
        "the block is %s and the buffer %s, but shape and dtype must be equal, but for leading axes of size 1",
        ir_type_msg(v, block), ir_type_msg(v, m));
}

static void desc_rules(V *v, const IrOp *op) {
  const IrType *d = type_in(op, 0), *x = type_in(op, 1);
  switch (op->kind) {
  case OP_make_desc: {
    const IrType *r = type_out(op, 0);
    const uint32_t n = (uint32_t)r->rank;
    want(v, op, d->dtype == r->dtype, "the pointer does not point at the descriptor's dtype");
    if (op->noperands != 1 + 2 * n) {
      ir_bad(v, op, "needs %u sizes and %u strides behind the pointer", n, n);
      break;
    }
    for (uint32_t i = 0; i < n; i++) {
      want(v, op, type_in(op, 1 + n + i)->dtype == IR_i64, "a stride is an i64");
    }
    break;
  }
  case OP_desc_base: {
    const IrType *r = type_out(op, 0);
    want(v, op, r->dtype == d->dtype && r->space == SPACE_global,
         "the pointer does not point at the descriptor's dtype");
    break;
  }
  case OP_desc_dim:
  case OP_desc_stride:
    axis_within(v, op, d->rank);
    want(v, op, type_out(op, 0)->kind == IR_SCALAR && type_out(op, 0)->dtype == IR_i64, "gives an i64");
    break;
  case OP_desc_load:
    same_block(v, op, "the block", d, "the result", type_out(op, 0));
    index_count(v, op, 1, d->rank);
    break;
  case OP_desc_load_async:
    same_buffer(v, op, d, x);
    want(v, op, !x->stages, "needs one stage of the buffer; use mem_view");
    index_count(v, op, 4, d->rank);
    break;
  case OP_desc_store_async:
    same_buffer(v, op, d, x);
    want(v, op, !x->stages, "needs one stage of the buffer; use mem_view");
    index_count(v, op, 2, d->rank);
    if (ir_attr(op, ATTR_rmw)) rmw_rules(v, op, d->dtype);
    break;
  default: // desc_store, desc_rmw
    same_block(v, op, "the block", d, "the value", x);
    index_count(v, op, 2, d->rank);
    if (op->kind == OP_desc_rmw) rmw_rules(v, op, x->dtype);
  }
}

static void same_elements(V *v, const IrOp *op, const IrType *m, const IrType *t) {
  if (is_num(t) && t->dtype == m->dtype) return;
  ir_bad(v, op, "%s is no element of %s", ir_type_msg(v, t), ir_type_msg(v, m));
}

// One element of a buffer, or in the placed stage a vector along the last axis.
static void element_rules(V *v, const IrOp *op, const IrType *m, const IrType *t) {
  const bool vector = t->kind == IR_TILE && t->rank == 1 && v->m->stage == STAGE_placed;
  if (t->kind == IR_SCALAR || vector)
    same_elements(v, op, m, t);
  else
    ir_bad(v, op, "takes one element, not %s", ir_type_msg(v, t));
}

// Vectors along a buffer: one index for each axis, a scalar or a vector of i32 as long as t.
static void lanes_rules(V *v, const IrOp *op, const IrType *m, const IrType *t, uint32_t at) {
  same_elements(v, op, m, t);
  index_count(v, op, at, m->rank);
  for (uint32_t i = at; i < op->noperands; i++) {
    const IrType *x = type_in(op, i);
    const bool fits = x->kind == IR_SCALAR ? x->dtype == IR_i32 || x->dtype == IR_i64
                                           : x->dtype == IR_i32 && ir_same_shape(x, t);
    if (!fits)
      ir_bad(v, op, "index %u is %s, but must be a scalar or a vector of i32", i - at, ir_type_msg(v, x));
  }
}

static void buffer_rules(V *v, const IrOp *op) {
  const IrType *m = type_in(op, 0), *x = type_in(op, 1);
  if (op->kind == OP_mem_alloc) {
    const int64_t offset = ir_attr_i(op, ATTR_offset);
    want(v, op, offset >= 0, "the offset is negative");
    want(v, op, offset % ir_type_bytes(type_out(op, 0)) == 0,
         "the offset is not a multiple of an element's size");
    return;
  }
  if (op->kind == OP_mem_view) {
    const IrType *r = type_out(op, 0);
    want(v, op, m->stages > 0 && !r->stages, "gives one stage of a buffer with stages");
    want(v, op, m->space == r->space, "changes the space of the buffer");
    same_block(v, op, "the buffer", m, "the result", r);
    want(v, op, m->layout == r->layout || (m->layout && r->layout && layout_same(m->layout, r->layout)),
         "changes the layout of the buffer");
    return;
  }
  if (!want(v, op, !m->stages, "needs one stage of the buffer; use mem_view")) return;
  switch (op->kind) {
  case OP_mem_load: same_block(v, op, "the buffer", m, "the result", type_out(op, 0)); break;
  case OP_mem_store: same_block(v, op, "the buffer", m, "the value", x); break;
  case OP_mem_get:
    element_rules(v, op, m, type_out(op, 0));
    index_count(v, op, 1, m->rank);
    break;
  case OP_mem_set:
    element_rules(v, op, m, x);
    index_count(v, op, 2, m->rank);
    break;
  case OP_mem_gather: lanes_rules(v, op, m, type_out(op, 0), 1); break;
  case OP_mem_scatter: lanes_rules(v, op, m, x, 2); break;
  case OP_copy_async: {
    const IrType *mask = type_in(op, 2), *other = type_in(op, 3);
    want(v, op, x->kind == IR_TILE && x->dtype == m->dtype && ir_same_shape(x, m),
         "the pointers do not fit the buffer");
    mask_fits(v, op, mask, "p", x);
    if (other)
      want(v, op, is_num(other) && other->dtype == m->dtype && ir_same_shape(other, x),
           "other does not fit the buffer");
    break;
  }
  default: // dot_mem
    want(v, op, !x->stages && !type_in(op, 2)->stages, "needs one stage of each buffer; use mem_view");
    product_rules(v, op, x, type_in(op, 2), m);
  }
}

static void device_rules(V *v, const IrOp *op) {
  const IrType *p = type_in(op, 0), *x = type_in(op, 1), *y = type_in(op, 2);
  switch (op->kind) {
  case OP_symm_at:
    equal(v, op, "p", p, "the result", type_out(op, 0));
    want(v, op, ir_type_is_int(x), "the rank is not an integer");
    if (x->kind == IR_TILE) equal_shape(v, op, "p", p, "the rank", x);
    break;
  case OP_wait:
    if (scalar_int(v, op, "the value", y)) points_at(v, op, p, "the value", y);
    break;
  case OP_signal:
  case OP_release:
  case OP_acquire:
    if (scalar_int(v, op, "the value", x)) points_at(v, op, p, "the value", x);
    break;
  case OP_put_signal:
    scalar_int(v, op, "bytes", y);
    if (scalar_int(v, op, "the value", type_in(op, 4)))
      points_at(v, op, type_in(op, 3), "the value", type_in(op, 4));
    break;
  case OP_put:
  case OP_get: scalar_int(v, op, "bytes", y); break;
  default: // consume
    equal(v, op, "v", p, "the result", type_out(op, 0));
  }
}

static void lane_rules(V *v, const IrOp *op) {
  const IrType *a = type_in(op, 0), *r = type_out(op, 0);
  if (op->kind == OP_shfl) {
    const IrType *lane = type_in(op, 1);
    equal(v, op, "v", a, "the result", r);
    want(v, op, ir_type_is_int(lane), "the lane is not an integer");
    equal_shape(v, op, "v", a, "the lane", lane);
    return;
  }
  want(v, op, r->dtype == IR_i32 || r->dtype == IR_i64, "gives an i32 or i64");
  want(v, op, v->m->lanes == 32 || r->dtype == IR_i64, "64 lanes need an i64");
}

static void fence_rules(V *v, const IrOp *op) {
  const int64_t order = ir_attr_i(op, ATTR_order);
  want(v, op, ir_attr_i(op, ATTR_proxy) == PROXY_async || order > ORDER_relaxed,
       "a fence needs an order or a proxy");
}

static void const_rules(V *v, const IrOp *op) {
  const IrType *r = type_out(op, 0);
  const uint64_t mask = ir_type_is_ptr(r) ? UINT64_MAX : ir_dtype_mask(r->dtype);
  want(v, op, !((uint64_t)ir_attr_i(op, ATTR_value) & ~mask), "the value has bits above its type's width");
}

void ir_verify_op_rules(IrVerifier *v, const IrOp *op) {
  const IrType *a = type_in(op, 0), *r = op->nresults ? type_out(op, 0) : NULL;
  switch (op->kind) {
  case OP_const: const_rules(v, op); break;
  case OP_program_id:
  case OP_num_programs: axis_within(v, op, 3); break;
  case OP_timer: want(v, op, r->kind == IR_SCALAR && r->dtype == IR_i64, "gives an i64"); break;
  case OP_tid:
    want(v, op, v->m->stage == STAGE_placed || ir_type_is_thread(r), "gives a thread-level value");
    break;
  case OP_math:
    want(v, op, r->dtype == IR_f32 || r->dtype == IR_f64, "works on f32 and f64");
    want(v, op, !type_in(op, 1) == (ir_attr_i(op, ATTR_fn) != MATH_FN_pow),
         "has the wrong number of operands");
    break;
  case OP_cmp:
    equal(v, op, "a", a, "b", type_in(op, 1));
    want(v, op, ir_type_is_int(a) || ir_type_is_ptr(a), "compares integers and pointers; use fcmp");
    break;
  case OP_fcmp: equal(v, op, "a", a, "b", type_in(op, 1)); break;
  case OP_select:
    equal(v, op, "a", type_in(op, 1), "b", type_in(op, 2));
    equal(v, op, "a", type_in(op, 1), "the result", r);
    break;
  case OP_ext_s:
  case OP_ext_u:
  case OP_trunc:
  case OP_fcast:
  case OP_bitcast:
  case OP_ptr2int:
  case OP_int2ptr: cast_rules(v, op); break;
  case OP_ptr_add:
    equal(v, op, "p", a, "the result", r);
    want(v, op, type_in(op, 1)->dtype == IR_i32 || type_in(op, 1)->dtype == IR_i64, "moves by an i32 or i64");
    hint_rules(v, op);
    break;
  case OP_hint: hint_rules(v, op); break;
  case OP_to_thread:
  case OP_from_thread: level_rules(v, op); break;
  case OP_splat:
  case OP_unsplat:
  case OP_arange:
  case OP_ramp:
  case OP_expand_dims:
  case OP_broadcast:
  case OP_reshape:
  case OP_trans:
  case OP_join:
  case OP_split:
  case OP_cat:
  case OP_gather:
  case OP_histogram: shape_rules(v, op); break;
  case OP_dot:
    equal(v, op, "c", type_in(op, 2), "the result", r);
    product_rules(v, op, a, type_in(op, 1), r);
    break;
  case OP_load:
  case OP_store:
  case OP_atomic_rmw:
  case OP_atomic_cas:
  case OP_load_vec:
  case OP_store_vec: memory_rules(v, op); break;
  case OP_make_desc:
  case OP_desc_base:
  case OP_desc_dim:
  case OP_desc_stride:
  case OP_desc_load:
  case OP_desc_store:
  case OP_desc_rmw:
  case OP_desc_load_async:
  case OP_desc_store_async: desc_rules(v, op); break;
  case OP_relayout:
  case OP_mem_ptr:
  case OP_load_pack:
  case OP_store_pack:
  case OP_add_pack:
  case OP_ldmatrix:
  case OP_stmatrix:
  case OP_mma:
  case OP_dot_async:
  case OP_dot_wait:
  case OP_wgmma:
  case OP_wgmma_wait:
  case OP_strip_store:
  case OP_copy_pack:
  case OP_copy_wait: ir_lane_rules(v, op); break;
  case OP_mem_alloc:
  case OP_mem_view:
  case OP_mem_load:
  case OP_mem_store:
  case OP_mem_get:
  case OP_mem_set:
  case OP_mem_gather:
  case OP_mem_scatter:
  case OP_copy_async:
  case OP_dot_mem: buffer_rules(v, op); break;
  case OP_async_wait: want(v, op, ir_attr_i(op, ATTR_pending) >= 0, "pending is negative"); break;
  case OP_mbarrier_alloc: want(v, op, ir_attr_i(op, ATTR_count) >= 1, "count is at least 1"); break;
  case OP_vec_get:
  case OP_vec_set: {
    const IrType *x = op->kind == OP_vec_get ? r : type_in(op, 2);
    want(v, op, a->rank == 1 && ir_has_level(x), "works on a vector and a scalar");
    equal_elem(v, op, "the vector", a, "the element", x);
    if (op->kind == OP_vec_set) equal(v, op, "v", a, "the result", r);
    break;
  }
  case OP_fence: fence_rules(v, op); break;
  case OP_symm_at:
  case OP_wait:
  case OP_consume:
  case OP_signal:
  case OP_release:
  case OP_acquire:
  case OP_put:
  case OP_get:
  case OP_put_signal: device_rules(v, op); break;
  case OP_shfl:
  case OP_ballot:
  case OP_active_mask: lane_rules(v, op); break;
  case OP_print: {
    const IrAttr *uns = ir_attr(op, ATTR_uns);
    want(v, op, !uns || uns->ints.n == op->noperands, "uns needs a number for each argument");
    break;
  }
  case OP_assert: want(v, op, ir_class_holds(CLASS_i1, a), "asserts an i1 or a tile of i1"); break;
  case OP_inline_asm:
    want(v, op, !ir_attr(op, ATTR_pack) || ir_attr_i(op, ATTR_pack) >= 1, "pack is at least 1");
    break;
  default: break; // the columns of ops.def say all
  }
}
