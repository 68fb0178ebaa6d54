// raise: loads and stores through pointers become blocks of tensor descriptors, where the pointers and masks say which tensor it is.
//
//   load(p + i * stride + j, (i < M) & (j < N), 0)   ->   desc_load(make_desc(p, [M, N], [stride, 1]), [i0, j0])
//
// The pointers must be a sum (affine.h) in which one index moves by 1 and the other by a stride that the host knows, and a mask must cut
// each axis once, at a size that the host knows; masked-off elements are 0. What else moves the pointers (the batch, the head) becomes a
// leading axis of its own. An axis that no mask cuts ends nowhere. Rows that an index wraps around for (i % M) are taken as the tensor's
// end, where nothing that is computed of them is stored.
//
// What only a launch tells (bases and strides that are multiples of 16 bytes) is looked at there: a variant without descriptors
// stands behind this one. Indices along an axis are taken to be below 2^31.
#include "pass/affine.h"

#include <string.h>

enum { MOST_AXES = 5, MOST_CONDITIONS = 8, NO_END = INT32_MAX - 15 }; // NO_END: a multiple of 16

typedef struct Raise {
  Pass *pass;
  IrCtx *ctx;
  Arena *arena;
  IrFunc *f;
  Affines affines;
  PassAxes *axes;
  PassRoots *roots;
  Producer *producer; // that could fetch
  uint32_t nvalues;
  Map launch;      // IrValue* -> 1: the host knows it, 2: not
  Map copies;      // IrValue* -> what the host knows, at the function's start
  IrOp *start;     // before which those stand
  const char *why; // not
} Raise;

typedef struct Axis {
  const Affine *stride, *size, *at; // size NULL: without end
} Axis;

typedef struct Block { // of a tensor, that an access reads or writes
  IrValue *base;
  const Affine *offset; // of the tensor, from base
  int rank, first;      // first: of those that are the tile's, one or two; those before are leading ones
  Axis axes[MOST_AXES];
  bool turned; // the tile's first index is the contiguous one
} Block;

static bool no(Raise *r, const char *why) {
  r->why = why;
  return false;
}

// ---- what the host knows ------------------------------------------------------------------------------------------------------------
static bool at_launch(Raise *r, const IrValue *v) {
  uint64_t known;
  IrLaunchExpr e = {0};
  const char *why;
  if (!map_get(&r->launch, (uint64_t)(uintptr_t)v, &known)) {
    known = ir_value_at_launch(r->arena, v, &e, &why) ? 1 : 2;
    map_set(&r->launch, (uint64_t)(uintptr_t)v, known);
  }
  return known == 1;
}

static bool is_launch_term(Raise *r, const AffineTerm *t) {
  for (uint32_t i = 0; i < t->n; i++) {
    if (!at_launch(r, t->f[i])) return false;
  }
  return true;
}

// The terms of x that the host knows, or the others.
static const Affine *part(Raise *r, const Affine *x, bool known) {
  const Affine *s = affine_zero(&r->affines);
  for (uint32_t i = 0; i < x->n; i++) {
    Affine *one = affine_zero(&r->affines);
    one->t[one->n++] = x->t[i];
    if (is_launch_term(r, &x->t[i]) == known) s = affine_plus(&r->affines, s, 1, one);
  }
  return s;
}

static bool not_negative(Raise *r, const Affine *x) {
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->t[i].k < 0) return false;
    for (uint32_t k = 0; k < x->t[i].n; k++) {
      const IrValue *v = x->t[i].f[k];
      if (v->id >= r->nvalues || !pass_axis(r->axes, v)->index) return false;
    }
  }
  return true;
}

// ---- rows that do not matter --------------------------------------------------------------------------------------------------------
typedef struct
    Rows { // of a tile along an axis, where the sum is not negative: is nothing that is computed of them stored?
  Raise *r;
  const Affine *beyond;
  Map seen;
} Rows;
static bool are_dropped(Rows *w, IrValue *v, int axis, int depth);

static const Affine *moved(Raise *r, const Affine *x, int from, int to) { // the only index is another one's
  Affine *s = affine_zero(&r->affines);
  *s = *x;
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->t[i].axis == from) s->t[i].axis = to;
  }
  return s;
}

static bool is_masked(Rows *w, const IrOp *store, int axis) {
  const Affine *c[MOST_CONDITIONS], *beyond = moved(w->r, w->beyond, 0, axis);
  IrValue *mask = ir_operand(store, 2);
  const int n = mask ? affine_conditions(&w->r->affines, mask, c, MOST_CONDITIONS) : 0;
  for (int i = 0; i < n; i++) {
    if (affine_same(c[i], beyond)) return true;
  }
  return false;
}

// Is the sum about a number of this region? Then what leaves it meets others' numbers of the same name.
static bool is_of(const Affine *x, const IrBlock *b) {
  for (uint32_t i = 0; i < x->n; i++) {
    for (uint32_t k = 0; k < x->t[i].n; k++) {
      if (pass_defined_in(x->t[i].f[k], b)) return true;
    }
  }
  return false;
}

static bool use_drops(Rows *w, const IrUse *u, int axis, int depth) {
  IrOp *op = u->user;
  const uint32_t i = (uint32_t)(u - op->operands);
  switch (op->kind) {
  case OP_dot:
    if (i < 2 && axis != (int)i) return false; // along k
    return are_dropped(w, ir_result(op, 0), axis, depth);
  case OP_trans: {
    const IrAttr *perm = ir_attr(op, ATTR_perm);
    for (int d = 0; perm && d < op->results[0].type->rank; d++) {
      if (perm->ints.v[d] == axis) return are_dropped(w, ir_result(op, 0), d, depth);
    }
    return false;
  }
  case OP_for:
    return i >= 3 && are_dropped(w, ir_result(op, i - 3), axis, depth) &&
           are_dropped(w, op->regions[0]->args.data[i - 2], axis, depth);
  case OP_yield: {
    IrOp *owner = op->parent->owner;
    if (!owner || (owner->kind != OP_for && owner->kind != OP_if) || is_of(w->beyond, op->parent))
      return false;
    return are_dropped(w, ir_result(owner, i), axis, depth) &&
           (owner->kind == OP_if || are_dropped(w, owner->regions[0]->args.data[i + 1], axis, depth));
  }
  case OP_store: return i == 1 && is_masked(w, op, axis);
  default:
    return (ir_ops[op->kind].traits & TRAIT_ELEMENTWISE) && ir_op_is_pure(op) && op->nresults == 1 &&
           are_dropped(w, ir_result(op, 0), axis, depth);
  }
}

static bool are_dropped(Rows *w, IrValue *v, int axis, int depth) {
  uint64_t known;
  if (map_get(&w->seen, (uint64_t)(uintptr_t)v, &known)) return known == (uint64_t)axis + 1;
  if (depth > 60) return false;
  map_set(&w->seen, (uint64_t)(uintptr_t)v, (uint64_t)axis + 1);
  for (const IrUse *u = v->uses; u; u = u->next) {
    if (!use_drops(w, u, axis, depth + 1)) return false;
  }
  return true;
}

// ---- an access as a block -----------------------------------------------------------------------------------------------------------
static int only_axis(const Affine *x) { // of a condition that is about one index, times 1 or -1; else -1
  int axis = -1;
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->t[i].axis < 0) continue;
    if (axis >= 0 || x->t[i].n || (x->t[i].k != 1 && x->t[i].k != -1)) return -1;
    axis = x->t[i].axis;
  }
  return axis;
}
static bool is_lower(const Affine *x, int axis) {
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->t[i].axis == axis) return x->t[i].k < 0;
  }
  return false;
}

// index + x < 0: where the axis ends, and where the block stands along it.
static bool cut(Raise *r, Axis *a, const Affine *x) {
  const Affine *t = affine_along(&r->affines, x, -1), *at = part(r, t, false),
               *size = affine_plus(&r->affines, affine_zero(&r->affines), -1, part(r, t, true));
  if (a->size && !(affine_same(a->size, size) && affine_same(a->at, at)))
    return no(r, "its mask cuts an axis twice");
  if (affine_is_const(size, 0))
    return no(r, "the size that its mask cuts an axis at is not known to the host");
  a->size = size;
  a->at = at;
  return true;
}

static bool cut_all(Raise *r, const IrOp *op, IrValue *mask, const Affine *p, Axis *axes) {
  const Affine *c[MOST_CONDITIONS];
  const int n = mask ? affine_conditions(&r->affines, mask, c, MOST_CONDITIONS) : 0;
  if (n < 0) return no(r, "its mask is not made of comparisons of indices with sizes");
  for (int i = 0; i < n; i++) {
    const int d = only_axis(c[i]);
    if (d < 0) return no(r, "its mask compares more than one index");
    if (!is_lower(c[i], d) && !cut(r, &axes[d], c[i])) return false;
  }
  for (uint32_t i = 0; i < p->nwraps; i++) {
    const int d = only_axis(p->wraps[i]);
    if (d < 0 || is_lower(p->wraps[i], d))
      return no(r, "its indices wrap around in another way than i % size");
    Rows w = {.r = r, .beyond = moved(r, p->wraps[i], d, 0)};
    map_init(&w.seen, r->arena);
    if (op->kind != OP_load || !are_dropped(&w, ir_result(op, 0), d, 0))
      return no(r, "its indices wrap around, and what is computed of those rows may be stored");
    if (!cut(r, &axes[d], p->wraps[i])) return false;
  }
  for (int i = 0; i < n; i++) { // -index - at - 1 < 0
    const int d = only_axis(c[i]);
    if (!is_lower(c[i], d)) continue;
    const Affine *t = affine_along(&r->affines, c[i], -1);
    if (!axes[d].size ||
        !affine_same(t, affine_plus(&r->affines, affine_const(&r->affines, -1), -1, axes[d].at)))
      return no(r, "its mask begins an axis elsewhere than at 0");
  }
  return true;
}

// x = q * y for a single y: y's factors are among x's.
static bool quotient(const AffineTerm *x, const AffineTerm *y, AffineTerm *q) {
  *q = (AffineTerm){.axis = -1};
  if (!y->k || x->k % y->k) return false;
  q->k = x->k / y->k;
  uint32_t k = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    if (k < y->n && x->f[i] == y->f[k])
      k++;
    else
      q->f[q->n++] = x->f[i];
  }
  return k == y->n;
}

static const Affine *one_term(Raise *r, const AffineTerm *t) {
  Affine *x = affine_zero(&r->affines);
  x->t[x->n++] = *t;
  return x;
}

static bool add_to(Raise *r, Axis *a, const AffineTerm *t) {
  a->at = affine_plus(&r->affines, a->at ? a->at : affine_zero(&r->affines), 1, one_term(r, t));
  return a->at || no(r, "its place is a sum of too many terms");
}

// A term of the pointers that the tile's masked axes do not explain: along an axis that nothing cuts, or along a leading one.
static bool place_term(Raise *r, Block *b, Axis *tile, int contiguous, const AffineTerm *t) {
  AffineTerm known = {.k = t->k, .axis = -1}, varying = {.k = 1, .axis = -1}, q;
  for (uint32_t i = 0; i < t->n; i++) {
    AffineTerm *to = at_launch(r, t->f[i]) ? &known : &varying;
    to->f[to->n++] = t->f[i];
  }
  Axis *rows = b->rank == 2 ? &tile[1 - contiguous] : NULL, *row = &tile[contiguous];
  if (rows && !rows->size && rows->stride->n == 1 && quotient(t, &rows->stride->t[0], &q))
    return add_to(r, rows, &q);
  if (!row->size && !known.n) return add_to(r, row, t);
  for (int i = 0; i < b->first; i++) { // one whose stride divides this one's by a number
    if (quotient(&known, &b->axes[i].stride->t[0], &q) && !q.n) {
      varying.k = q.k;
      return add_to(r, &b->axes[i], &varying);
    }
  }
  if (known.k < 0) return no(r, "something moves its pointers back");
  if (b->first == MOST_AXES - 2)
    return no(r, "its place depends on more than three numbers beside the matrix");
  b->axes[b->first] = (Axis){.stride = one_term(r, &known)};
  return add_to(r, &b->axes[b->first++], &varying);
}

static bool find_strides(Raise *r, const Affine *p, int rank, Axis *tile, int *contiguous) {
  *contiguous = -1;
  for (int d = 0; d < rank; d++) {
    tile[d].stride = affine_along(&r->affines, p, d);
    if (!tile[d].stride->n) return no(r, "one of its indices does not move its pointers");
    if (affine_is_const(tile[d].stride, 1)) *contiguous = d;
    if (part(r, tile[d].stride, false)->n) return no(r, "its strides are not known to the host");
    for (uint32_t i = 0; i < tile[d].stride->n; i++) {
      if (tile[d].stride->t[i].k < 0) return no(r, "one of its indices moves its pointers back");
    }
  }
  return *contiguous >= 0 || no(r, "neither of its strides is known to be 1");
}

// rank: of the tile, 1 or 2.
static bool find_block(Raise *r, const IrOp *op, int rank, IrValue *ptr, IrValue *mask, Block *b) {
  Axis tile[2] = {0};
  int contiguous;
  Affines *a = &r->affines;
  const Affine *p = affine_of(a, ptr);
  *b = (Block){.rank = rank};
  if (!p || !p->base) return no(r, "its pointers are not a sum of a base, strides times indices and numbers");
  if (!at_launch(r, p->base)) return no(r, "its base is not known to the host");
  if (!find_strides(r, p, rank, tile, &contiguous) || !cut_all(r, op, mask, p, tile)) return false;
  const Affine *rest = affine_along(a, p, -1);
  for (int d = 0; d < rank && rest; d++) {
    if (tile[d].at) rest = affine_plus(a, rest, -1, affine_times(a, tile[d].at, tile[d].stride));
  }
  if (!rest) return no(r, "its place is a sum of too many terms");
  const Affine *varying = part(r, rest, false);
  for (uint32_t i = 0; i < varying->n; i++) {
    if (!place_term(r, b, tile, contiguous, &varying->t[i])) return false;
  }
  b->base = p->base;
  b->offset = part(r, rest, true);
  b->turned = rank == 2 && contiguous == 0;
  b->rank = b->first + rank;
  if (rank == 2) b->axes[b->first] = tile[1 - contiguous];
  b->axes[b->rank - 1] = tile[contiguous];
  for (int i = 0; i < b->rank; i++) {
    if (!b->axes[i].at) b->axes[i].at = affine_zero(a);
    if (!not_negative(r, b->axes[i].at)) return no(r, "its indices are not known not to be negative");
  }
  return true;
}

// ---- as ops ---------------------------------------------------------------------------------------------------------------------------
// What the host knows, computed again at the function's start.
static IrValue *at_start(Raise *r, IrBuilder *b, IrValue *v) {
  if (!v->def) return v;
  IrValue *known = map_getp(&r->copies, v);
  if (known) return known;
  IrValue **ops = arena_array(r->arena, IrValue *, v->def->noperands + 1);
  for (uint32_t i = 0; i < v->def->noperands; i++) ops[i] = at_start(r, b, ir_operand(v->def, i));
  known = pass_like(b, v->def, v->def->noperands, ops, v->type);
  map_setp(&r->copies, v, known);
  return known;
}

// x as a number of type t; start: of what the host knows.
static IrValue *build(Raise *r, IrBuilder *b, const Affine *x, const IrType *t, bool start) {
  IrValue *sum = NULL;
  for (uint32_t i = 0; i < x->n; i++) {
    IrValue *v = NULL;
    for (uint32_t k = 0; k < x->t[i].n; k++) {
      IrValue *f = pass_int_as(b, start ? at_start(r, b, x->t[i].f[k]) : x->t[i].f[k], t);
      v = v ? ir_binary(b, OP_mul, v, f) : f;
    }
    IrValue *k = ir_const_i(b, t, x->t[i].k);
    v = !v ? k : x->t[i].k == 1 ? v : ir_binary(b, OP_mul, v, k);
    sum = sum ? ir_binary(b, OP_add, sum, v) : v;
  }
  return sum ? sum : ir_const_i(b, t, 0);
}

static const IrType *block_type(Raise *r, const Block *b, const IrType *tile) {
  int32_t shape[MOST_AXES];
  for (int i = 0; i < b->first; i++) shape[i] = 1;
  for (int i = 0; i < tile->rank; i++) shape[b->first + i] = tile->shape[b->turned ? 1 - i : i];
  return ir_type_desc(r->ctx, tile->dtype, b->rank, shape);
}

static IrValue *make_descriptor(Raise *r, const Block *b, const IrType *t, Loc loc) {
  const IrType *i64 = ir_type_scalar(r->ctx, IR_i64, LEVEL_program);
  IrBuilder s = ir_builder_before(r->start);
  s.loc = loc;
  IrValue *ops[1 + 2 * MOST_AXES];
  ops[0] = at_start(r, &s, b->base);
  if (b->offset->n) ops[0] = ir_ptr_add(&s, ops[0], build(r, &s, b->offset, i64, true));
  for (int i = 0; i < b->rank; i++) {
    const Axis *a = &b->axes[i];
    ops[1 + i] = a->size ? build(r, &s, a->size, i64, true) : ir_const_i(&s, i64, NO_END);
    ops[1 + b->rank + i] = build(r, &s, a->stride, i64, true);
  }
  return ir_result(ir_build(&s, OP_make_desc, (uint32_t)(1 + 2 * b->rank), ops, 1, &t, 0), 0);
}

static IrValue *turn(IrBuilder *b, IrValue *v, const IrType *t) {
  static const int64_t perm[2] = {1, 0};
  IrOp *op = ir_build(b, OP_trans, 1, &v, 1, &t, 0);
  ir_set_attr_ints(op, ATTR_perm, perm, 2);
  return ir_result(op, 0);
}

static void build_places(Raise *r, IrBuilder *b, const Block *at, IrValue **out) {
  const IrType *i32 = ir_type_scalar(r->ctx, IR_i32, LEVEL_program);
  for (int i = 0; i < at->rank; i++) out[i] = build(r, b, at->axes[i].at, i32, false);
}

static IrValue *reshaped(IrBuilder *b, IrValue *v, const IrType *t) {
  return v->type == t ? v : ir_result(ir_build(b, OP_reshape, 1, &v, 1, &t, 0), 0);
}

static bool is_zero(const IrValue *v) {
  uint64_t bits;
  return pass_const(v, &bits) && !bits;
}

static void raise_load(Raise *r, IrOp *op, const Block *at, IrValue *desc) {
  const IrType *t = op->results[0].type, *d = desc->type,
               *block = ir_type_tile(r->ctx, d->dtype, d->rank, d->shape),
               *matrix = ir_type_tile(r->ctx, d->dtype, t->rank, &d->shape[at->first]);
  IrValue *mask = ir_operand(op, 1), *other = ir_operand(op, 2);
  IrBuilder b = ir_builder_before(op);
  b.loc = op->loc;
  IrValue *ops[1 + MOST_AXES] = {desc};
  build_places(r, &b, at, &ops[1]);
  IrOp *load = ir_build(&b, OP_desc_load, (uint32_t)(1 + at->rank), ops, 1, &block, 0);
  if (ir_attr(op, ATTR_evict)) ir_set_attr_i(load, ATTR_evict, ir_attr_i(op, ATTR_evict));
  IrValue *v = reshaped(&b, ir_result(load, 0), matrix);
  if (t->rank == 1 && mask && other && !is_zero(other)) v = ir_select(&b, mask, v, other);
  ir_replace_uses(ir_result(op, 0), at->turned ? turn(&b, v, t) : v);
  ir_erase(op);
}

static void raise_store(Raise *r, IrOp *op, const Block *at, IrValue *desc) { // or a sum
  const IrType *d = desc->type, *block = ir_type_tile(r->ctx, d->dtype, d->rank, d->shape);
  IrBuilder b = ir_builder_before(op);
  b.loc = op->loc;
  IrValue *ops[2 + MOST_AXES] = {desc, reshaped(&b, ir_operand(op, 1), block)};
  build_places(r, &b, at, &ops[2]);
  const bool sum = op->kind == OP_atomic_rmw;
  IrOp *made = ir_build(&b, sum ? OP_desc_rmw : OP_desc_store, (uint32_t)(2 + at->rank), ops, 0, NULL, 0);
  if (sum) ir_set_attr_i(made, ATTR_rmw, ir_attr_i(op, ATTR_rmw));
  ir_erase(op);
}

// ---- which ----------------------------------------------------------------------------------------------------------------------------
typedef struct Wanted { // an access that can be raised
  IrOp *op;
  Block block;
  IrValue *desc;
  int group; // those of one loop stand or fall together
} Wanted;
typedef struct Find {
  Raise *r;
  Vec(Wanted) found;
  uint64_t written; // roots
  bool ordered;     // something orders memory or waits
  int groups;
} Find;

static bool find_writes(IrOp *op, void *user) {
  Find *s = user;
  const IrEffects e = ir_op_effects(op);
  if (op->nregions) return true;
  if (pass_orders(op) || e.barrier || ((e.reads | e.writes) & (unsigned)(RES_SYMM | RES_SIGNAL)))
    s->ordered = true;
  s->written |= pass_roots_written(s->r->roots, op);
  return true;
}

static bool is_matrix(const IrType *t) { // with rows and columns that a copy can have
  const int bytes = ir_dtypes[t->dtype].bytes;
  return t->kind == IR_TILE && !ir_type_is_ptr(t) && t->rank == 2 && t->shape[0] >= 8 && t->shape[1] >= 8 &&
         t->shape[0] * bytes >= 32 && t->shape[1] * bytes >= 32;
}

static bool reads_what_is_written(const Find *s, const IrOp *load) {
  const uint64_t own = pass_roots(s->r->roots, ir_operand(load, 0));
  return (own & (PASS_ROOT_UNKNOWN | PASS_ROOT_PEER)) || pass_roots_meet(own, s->written);
}

// An update that the accelerator can make: nobody asks for the old values, and it orders nothing.
static bool is_sum(const IrOp *op) {
  return op->kind == OP_atomic_rmw && !op->results[0].uses && ir_attr_i(op, ATTR_rmw) == RMW_fadd &&
         ir_attr_i(op, ATTR_order) == ORDER_relaxed && ir_attr_i(op, ATTR_scope) <= SCOPE_gpu;
}

static bool can_raise(Find *s, IrOp *op, Block *b) {
  Raise *r = s->r;
  const bool load = op->kind == OP_load;
  IrValue *mask = ir_operand(op, load ? 1 : 2);
  const IrType *t = load ? op->results[0].type : ir_operand(op, 1)->type;
  if (!is_sum(op) && (ir_attr_i(op, ATTR_order) != ORDER_weak || ir_attr_i(op, ATTR_volatile)))
    return no(r, "it is volatile or orders others");
  if (!is_matrix(t) && !(load && pass_travels(t)))
    return no(r, "it is not a matrix with rows of 32 bytes or more");
  if (t->rank == 2 && load && mask && ir_operand(op, 2) && !is_zero(ir_operand(op, 2)))
    return no(r, "masked-off elements are not 0");
  if (load && reads_what_is_written(s, op)) return no(r, "the kernel may write the memory that it reads");
  return find_block(r, op, t->rank, ir_operand(op, 0), mask, b);
}

static IrOp *load_behind(IrValue *v, const IrBlock *in) { // an operand of a product, as it is or turned
  if (v->def && v->def->kind == OP_trans && v->def->parent == in) v = ir_operand(v->def, 0);
  return v->def && v->def->kind == OP_load && v->def->parent == in ? v->def : NULL;
}
static bool is_found(const Find *s, const IrOp *op) {
  for (uint32_t i = 0; i < s->found.len; i++) {
    if (s->found.data[i].op == op) return true;
  }
  return false;
}

// A block that is loaded before the loop, for its products alone: by itself.
static void find_held(Find *s, IrValue *v, const IrOp *dot) {
  if (v->def && v->def->kind == OP_trans) v = ir_operand(v->def, 0);
  IrOp *load = v->def, *product;
  Wanted w = {.op = load, .group = -1 - (int)s->found.len};
  if (!load || load->kind != OP_load || load->parent == dot->parent || is_found(s, load)) return;
  if (pass_held_until(v, &product) && can_raise(s, load, &w.block)) vec_push(s->r->arena, &s->found, w);
}

static bool find_loads(Find *s, IrOp *dot) {
  Raise *r = s->r;
  for (uint32_t i = 0; i < 2; i++) {
    IrOp *load = load_behind(ir_operand(dot, i), dot->parent);
    Wanted w = {.op = load, .group = s->groups};
    if (!load) find_held(s, ir_operand(dot, i), dot);
    if (!load || is_found(s, load)) continue;
    if (!lay_takes_groups(r->pass->m, dot))
      r->why = "no groups of four warps compute its product";
    else if (!pass_last_product(ir_result(load, 0)))
      r->why = "not only products of its loop read it";
    else if (can_raise(s, load, &w.block)) {
      vec_push(r->arena, &s->found, w);
      continue;
    }
    pass_remark(r->pass, load->loc, "this load is not raised to a tensor descriptor: %s", r->why);
    return false;
  }
  return true;
}

// Vectors that a loop with such products loads beside their blocks: scales, logarithms of sums.
static void find_vectors(Find *s, IrOp *loop) {
  PASS_EACH_OP(loop->regions[0], op) {
    Wanted w = {.op = op, .group = -1 - (int)s->found.len};
    if (op->kind != OP_load || !pass_defined_in(ir_operand(op, 0), loop->regions[0]) ||
        !pass_travels(op->results[0].type) || !can_raise(s, op, &w.block))
      continue;
    vec_push(s->r->arena, &s->found, w);
  }
}

// All loads of a loop's products, or none: what is left would be loaded without being copied ahead, beside a producer warp.
static bool find_loops(IrOp *loop, void *user) {
  Find *s = user;
  const uint32_t before = s->found.len;
  if (loop->kind != OP_for) return true;
  PASS_EACH_OP(loop->regions[0], op) {
    if (op->kind != OP_dot || (pass_producer_reaches(s->r->producer, op) && find_loads(s, op))) continue;
    s->found.len = before;
    return true;
  }
  if (s->found.len > before) {
    s->groups++;
    find_vectors(s, loop);
  }
  return true;
}

static const char *name_of(const IrOp *op) {
  return op->kind == OP_load ? "load" : op->kind == OP_store ? "store" : "sum";
}

static bool find_stores(IrOp *op, void *user) {
  Find *s = user;
  Wanted w = {.op = op, .group = s->groups};
  if ((op->kind != OP_store && !is_sum(op)) || ir_operand(op, 1)->type->kind != IR_TILE ||
      ir_operand(op, 1)->type->rank != 2)
    return true;
  if (!can_raise(s, op, &w.block) || (w.block.turned && !no(s->r, "its columns are the contiguous ones"))) {
    pass_remark(s->r->pass, op->loc, "this %s is not raised to a tensor descriptor: %s", name_of(op),
                s->r->why);
    return true;
  }
  s->groups++;
  vec_push(s->r->arena, &s->found, w);
  return true;
}

// ---- the function ---------------------------------------------------------------------------------------------------------------------
// The first of the group that is not known to lie on multiples of 16 bytes; NULL: all are.
static const Wanted *unaligned(const Find *s, const PassAxes *axes, int group) {
  for (uint32_t i = 0; i < s->found.len; i++) {
    const Wanted *w = &s->found.data[i];
    if (w->group == group && !lay_desc_aligned(axes, w->desc)) return w;
  }
  return NULL;
}

// A parameter that v is made of, whose value decides; NULL: none.
static const IrValue *parameter_of(const Raise *r, const PassAxes *axes, const IrValue *v, int depth) {
  if (!v->def) return v->block == r->f->body && pass_axis(axes, v)->all_div % 16 ? v : NULL;
  for (uint32_t i = 0; i < v->def->noperands && depth < 8; i++) {
    const IrValue *p = ir_operand(v->def, i) ? parameter_of(r, axes, ir_operand(v->def, i), depth + 1) : NULL;
    if (p) return p;
  }
  return NULL;
}

static void say_unaligned(const Raise *r, const PassAxes *axes, const Wanted *w, const Wanted *other) {
  const IrValue *which, *p;
  const char *what = name_of(w->op), *odd = lay_desc_odd(axes, w->desc, &which);
  if (!odd) {
    pass_remark(r->pass, w->op->loc,
                "this %s is not raised to a tensor descriptor, since that in line %u is not", what,
                other->op->loc.line);
    return;
  }
  p = parameter_of(r, axes, which, 0);
  const uint32_t i = p ? p->index : 0;
  pass_remark(r->pass, w->op->loc,
              "this %s is not raised to a tensor descriptor: %s not known to be a multiple of 16 bytes%s%s%s",
              what, odd, p ? " (parameter '" : "", p ? r->f->params.data[i].name->s : "", p ? "')" : "");
}

static void raise_all(Find *s) {
  Raise *r = s->r;
  for (uint32_t i = 0; i < s->found.len; i++) {
    Wanted *w = &s->found.data[i];
    const bool load = w->op->kind == OP_load;
    const IrType *t = block_type(r, &w->block, load ? w->op->results[0].type : ir_operand(w->op, 1)->type);
    w->desc = make_descriptor(r, &w->block, t, w->op->loc);
  }
  const PassAxes *axes = pass_axis_of_indices(r->f, r->arena);
  for (uint32_t i = 0; i < s->found.len; i++) {
    Wanted *w = &s->found.data[i];
    const char *what = name_of(w->op);
    const Wanted *odd = unaligned(s, axes, w->group);
    if (odd) {
      say_unaligned(r, axes, w, odd);
      continue;
    }
    pass_remark(
        r->pass, w->op->loc,
        "this %s is raised to a tensor descriptor of %d axes%s, where a launch's base and strides allow it",
        what, w->block.rank, w->block.turned ? ", turned" : "");
    (w->op->kind == OP_load ? raise_load : raise_store)(r, w->op, &w->block, w->desc);
    if (r->pass->config->raised) *r->pass->config->raised = true;
  }
}

Status pass_raise(Pass *pass) {
  PASS_EACH_FUNC(pass, f) {
    Producer *producer = pass->config->keep_pointers ? NULL : pass_producer_for(pass, f);
    if (!producer) continue;
    Raise r = {.pass = pass,
               .ctx = pass->m->ctx,
               .arena = pass->scratch,
               .f = f,
               .start = f->body->first,
               .producer = producer};
    r.roots = pass_roots_run(f, pass->scratch);
    r.axes = pass_axis_of_indices(f, pass->scratch);
    r.nvalues = f->next_id;
    affine_init(&r.affines, pass->scratch);
    map_init(&r.launch, pass->scratch);
    map_init(&r.copies, pass->scratch);
    Find s = {.r = &r};
    ir_walk(f->body, find_writes, &s);
    if (s.ordered) continue;
    ir_walk(f->body, find_loops, &s);
    if (!s.found.len) continue;
    ir_walk(f->body, find_stores, &s);
    raise_all(&s);
    ir_renumber(f);
  }
  return ST_OK;
}
