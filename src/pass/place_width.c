// place_width: how many lanes the vectors of a nest have. Several machine vectors at once hide latencies and share the
// loop's overhead, where that is all there is to a nest. Not more than one where lanes are fetched one by one anyway, or
// where an element takes so many operations that they fill the machine: more would only be more code, and spills.
#include "pass/place.h"

enum {
  UNIFORM = -1,   // the vectorised axis is not one of the value's: a scalar
  SCATTERED = -2, // lanes are elements without order
  CODE_FOUR =
      24, // operations an element, up to which four machine vectors are made at once; two up to twice that
  CODE_MATH = 15, // of one that is a polynomial
};

typedef struct Width {
  Place *p;
  int bits;     // of the widest element
  float cost;   // of the float operations: long ones keep the machine busy without several vectors at once
  uint32_t ops; // an element
  int32_t run;  // lanes of a read that are neighbours in memory
  Map seen;
} Width;

int place_last_wide(int rank, const int32_t *shape) {
  for (int i = rank - 1; i >= 0; i--) {
    if (shape[i] > 1) return i;
  }
  return -1;
}

// The axis of the operand of a reshape along which the axis of its result runs, and how far before it starts anew.
static int through_reshape(const IrType *from, const IrType *to, int axis, int32_t *run) {
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
    if (axis < j0 || axis >= j) continue;
    if (i - i0 == 1 && j - j0 == 1) return i0;
    for (int k = j - 1; k > axis; k--) {
      if (to->shape[k] > 1) return SCATTERED;
    }
    for (int k = i - 1; k >= i0; k--) {
      if (from->shape[k] == 1) continue;
      if (from->shape[k] < *run) *run = from->shape[k];
      return k;
    }
    return UNIFORM;
  }
  return UNIFORM;
}

// Where the vectorised axis of op's result is in its operand.
static int operand_axis(const IrOp *op, int axis, int32_t *run) {
  const IrType *rt = ir_result(op, 0)->type, *at = ir_operand(op, 0)->type;
  switch (op->kind) {
  case OP_expand_dims: {
    const int made = (int)ir_attr_i(op, ATTR_axis);
    return axis == made ? UNIFORM : axis > made ? axis - 1 : axis;
  }
  case OP_broadcast: return at->shape[axis] == 1 ? UNIFORM : axis;
  case OP_trans: return (int)ir_attr(op, ATTR_perm)->ints.v[axis];
  case OP_reshape: return through_reshape(at, rt, axis, run);
  case OP_join: return axis == rt->rank - 1 ? SCATTERED : axis;
  default: return axis;
  }
}

// Do pointers along the axis go from element to element? A remainder that wraps nowhere in a row (place_nest.c finds
// out) passes its dividend on.
static bool by_step(Place *p, const IrValue *v, int axis, int depth, int64_t *step) {
  *step = 0;
  if (!place_is_tile(v) || axis == UNIFORM) return true;
  const PlaceInfo *in = place_info(p, v);
  if (axis == SCATTERED || depth > 24 || ir_type_is_float(v->type)) return false;
  if (!(in->deps >> axis & 1)) return true;
  *step = in->step[axis];
  if (*step != PLACE_STEP_ANY) return true;
  if (!in->is_virtual || in->ready) return false;
  const IrOp *op = v->def;
  IrValue *a = ir_operand(op, 0), *b = ir_operand(op, 1);
  int64_t c;
  switch (op->kind) {
  case OP_rem_s:
  case OP_rem_u: return by_step(p, a, axis, depth + 1, step) && by_step(p, b, axis, depth + 1, &c) && c == 0;
  case OP_add:
  case OP_ptr_add:
    if (!by_step(p, a, axis, depth + 1, step) || !by_step(p, b, axis, depth + 1, &c)) return false;
    *step += c;
    return true;
  case OP_ext_s:
  case OP_hint:
  case OP_consume: return by_step(p, a, axis, depth + 1, step);
  case OP_expand_dims:
  case OP_broadcast:
  case OP_trans:
  case OP_reshape: {
    int32_t run = PLACE_MAX_LANES;
    return by_step(p, a, operand_axis(op, axis, &run), depth + 1, step);
  }
  default: return false;
  }
}

static void scattered(Width *w) { w->run = 1; }

static void visit(Width *w, IrValue *v, int axis, int32_t run) {
  Place *p = w->p;
  if (!place_is_tile(v)) return;
  const PlaceInfo *in = place_info(p, v);
  if (axis >= 0 && !(in->deps >> axis & 1)) axis = UNIFORM;
  if (!in->deps || (axis == UNIFORM && run == PLACE_MAX_LANES)) return; // else the same for a run of lanes
  const uint64_t key = ((uint64_t)v->id << 32 | (uint64_t)run << 4 | (uint64_t)(axis + 2)) + 1;
  if (map_get(&w->seen, key, NULL)) return;
  map_set(&w->seen, key, 1);
  const IrType *t = v->type;
  const bool fresh = in->is_virtual && !in->ready;
  bool affine = !ir_type_is_float(t) && fresh && v->def->kind != OP_load;
  for (int i = 0; i < t->rank; i++) affine &= in->step[i] != PLACE_STEP_ANY;
  if (!ir_type_is_ptr(t) && t->dtype != IR_i1 && !affine) {
    const int bits = ir_dtypes[t->dtype].bits;
    if (bits > w->bits) w->bits = bits;
  }
  if (!fresh) {
    w->ops++;
    const PlaceBuf *b = in->buf;
    const int last = place_last_wide(t->rank, t->shape);
    if (axis == SCATTERED || (axis != last && axis != UNIFORM) ||
        (b && !b->flat && last != t->rank - 1 && t->shape[last] > 1))
      scattered(w);
    else if (run < w->run)
      w->run = run;
    return;
  }
  const IrOp *op = v->def;
  const bool moves = place_map_is_shape(op);
  if (!affine && !moves && op->kind != OP_const) {
    w->ops += op->kind == OP_math ? CODE_MATH : 1;
    if (ir_type_is_float(t)) w->cost += op->kind == OP_math ? 8 : op->kind == OP_fdiv ? 4 : 0.7f;
  }
  if (op->kind == OP_gather) {
    scattered(w);
    visit(w, ir_operand(op, 1), axis, run);
    return;
  }
  if (op->kind == OP_load) {
    int64_t step;
    if (!by_step(p, ir_operand(op, 0), axis, 0, &step) || (step != 1 && axis != UNIFORM))
      scattered(w);
    else if (run < w->run)
      w->run = run;
  } else if (op->kind == OP_mem_load) {
    if (axis != t->rank - 1 && axis != UNIFORM) scattered(w);
    if (run < w->run) w->run = run;
  }
  if (moves && axis >= 0) axis = operand_axis(op, axis, &run);
  for (uint32_t i = 0; i < op->noperands; i++) visit(w, ir_operand(op, i), axis, run);
}

// Do the lanes of a store go to neighbours?
static bool line(Place *p, const IrOp *store, int va) {
  if (store->kind != OP_store) return va == ir_operand(store, 1)->type->rank - 1;
  int64_t step;
  return by_step(p, ir_operand(store, 0), va, 0, &step) && step == 1;
}

int place_lanes(Place *p, const PlaceGroup *g) {
  const int va = place_last_wide(g->rank, g->shape);
  if (va < 0) return 1;
  Width w = {.p = p, .run = PLACE_MAX_LANES};
  map_init(&w.seen, p->arena);
  for (uint32_t i = 0; i < g->roots.len; i++) {
    const PlaceRoot *r = g->roots.data[i];
    if (r->kind == ROOT_FILL) {
      if (!r->buf->flat && va != g->rank - 1) scattered(&w);
      if (!r->src) visit(&w, r->value, va, PLACE_MAX_LANES);
      continue;
    }
    if (r->kind == ROOT_STORE && !line(p, r->op, va)) scattered(&w);
    if (r->kind == ROOT_REDUCE && !place_region_is_plain(r->op->regions[0])) return 1;
    for (uint32_t k = 0; k < r->op->noperands; k++) visit(&w, ir_operand(r->op, k), va, PLACE_MAX_LANES);
  }
  if (!w.bits) w.bits = 32;
  const int native = p->vector_bits / w.bits;
  int lanes = native * (w.ops > 2 * CODE_FOUR ? 1 : w.cost > 20 || w.ops > CODE_FOUR ? 2 : 4);
  if (lanes > w.run) lanes = w.run > native ? w.run : native;
  if (lanes > PLACE_MAX_LANES) lanes = PLACE_MAX_LANES;
  if (lanes > g->shape[va]) lanes = g->shape[va];
  return lanes < 1 ? 1 : lanes;
}
