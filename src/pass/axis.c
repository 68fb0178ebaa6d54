// axis: contiguity, divisibility, constancy and range of every integer and pointer (an analysis; pass.h says what the
// facts mean).
//
// Sources: parameters' divisibility, hint ops and attributes, arange, constants, ids that are never negative, counted
// loops' bounds, `assume` at the function's top level. Loops reach a fixed point on weakening facts; ranges that keep
// growing there are given up after a few rounds.
#include "pass/axis_impl.h"

enum { WIDEN_AFTER = 4 };

typedef struct Bound { // an assumption: lo <= value <= hi
  int64_t lo, hi;
} Bound;

struct PassAxes {
  IrFunc *f;
  PassAxis *facts; // by value id
  uint8_t *state;  // 0: none yet; else 1 + how often the range grew
  uint32_t n;
  bool of_indices; // what PassAxis.index assumes is used
  Map bounds;      // IrValue * -> Bound *
  Arena *arena;
  PassAxis nothing;
};

int32_t axis_pow2_of(int64_t v) {
  if (v == 0) return AXIS_MAX_DIV;
  const uint64_t low = (uint64_t)v & (0 - (uint64_t)v);
  return low > AXIS_MAX_DIV ? AXIS_MAX_DIV : (int32_t)low;
}

void axis_type_range(const IrType *t, int64_t *lo, int64_t *hi) {
  const int bits = ir_type_is_int(t) ? ir_dtypes[t->dtype].bits : 64;
  *lo = bits == 1 ? 0 : bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
  *hi = bits == 1 ? 1 : bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
}

void axis_range(PassAxis *out, const IrType *t, __int128 lo, __int128 hi) {
  int64_t tlo, thi;
  axis_type_range(t, &tlo, &thi);
  const bool fits = lo >= tlo && hi <= thi;
  out->lo = fits ? (int64_t)lo : tlo;
  out->hi = fits ? (int64_t)hi : thi;
}

void axis_bottom(PassAxis *out, const IrType *t) {
  *out = (PassAxis){.rank = t->kind == IR_TILE ? t->rank : 0, .all_div = 1};
  for (int d = 0; d < axis_dims(out); d++) out->contig[d] = out->constancy[d] = out->div[d] = 1;
  axis_type_range(t, &out->lo, &out->hi);
}

// What follows from the rest, and no run longer than its axis.
static void normalise(PassAxis *a, const IrType *t) {
  const int bits = ir_type_is_int(t) ? ir_dtypes[t->dtype].bits : 64;
  for (int d = 0; bits <= 16 && d < axis_dims(a);
       d++) { // small types do wrap, at multiples of a power of two
    const int32_t c = axis_min(axis_min(a->contig[d], a->div[d]), 1 << (bits - 1));
    if (c == a->contig[d]) continue;
    a->div[d] = axis_div_at(a, d, c, 1);
    a->contig[d] = c;
  }
  if (bits == 1) a->all_div = 1;
  for (int d = 0; d < axis_dims(a); d++) { // neighbours differ by one, whatever a hint says of all
    const int32_t step = ir_type_is_ptr(t) ? axis_pow2_of(ir_dtypes[t->dtype].bytes) : 1;
    if (a->contig[d] > 1 && a->all_div > step) a->all_div = step;
  }
  for (int d = 0; bits == 1 && d < axis_dims(a); d++) a->div[d] = 1;
  for (int d = 0; d < axis_dims(a); d++) {
    const int32_t extent = a->rank ? axis_pow2_of(t->shape[d]) : 1;
    a->constancy[d] = axis_min(a->constancy[d], extent);
    if (a->contig[d] > extent) a->contig[d] = extent;
    if (a->contig[d] == 1) a->all_div = axis_max(a->all_div, a->div[d]);
  }
  if (a->lo == a->hi && ir_type_is_int(t)) {
    a->all_div = axis_max(a->all_div, axis_pow2_of(a->lo));
    for (int d = 0; d < axis_dims(a); d++) a->constancy[d] = a->rank ? axis_pow2_of(t->shape[d]) : 1;
  }
  for (int d = 0; d < axis_dims(a); d++) a->div[d] = axis_max(a->div[d], a->all_div);
}

static bool same(const PassAxis *a, const PassAxis *b) {
  if (a->all_div != b->all_div || a->lo != b->lo || a->hi != b->hi || a->index != b->index) return false;
  for (int d = 0; d < axis_dims(a); d++) {
    if (a->contig[d] != b->contig[d] || a->constancy[d] != b->constancy[d] || a->div[d] != b->div[d])
      return false;
  }
  return true;
}

// Facts of v: the first ones as they are, later ones joined to what is there.
static bool set(PassAxes *x, const IrValue *v, const PassAxis *facts) {
  PassAxis *old = &x->facts[v->id], n = *facts;
  const Bound *bound = map_getp(&x->bounds, v);
  normalise(&n, v->type);
  n.index |= x->of_indices && n.lo >= 0;
  if (!x->state[v->id]) {
    if (bound && bound->lo <= bound->hi) {
      n.lo = n.lo > bound->lo ? n.lo : bound->lo;
      n.hi = n.hi < bound->hi ? n.hi : bound->hi;
      if (n.lo > n.hi) n.lo = n.hi; // contradictory assumptions: undefined, any range will do
      normalise(&n, v->type);
      n.index |= x->of_indices && n.lo >= 0;
    }
    *old = n;
    x->state[v->id] = 1;
    return true;
  }
  for (int d = 0; d < axis_dims(&n); d++) {
    const int32_t c = axis_min(n.contig[d], old->contig[d]);
    const int size = ir_type_is_ptr(v->type) ? ir_dtypes[v->type->dtype].bytes : 1;
    n.div[d] = axis_min(axis_div_at(&n, d, c, size), axis_div_at(old, d, c, size));
    n.constancy[d] = axis_min(n.constancy[d], old->constancy[d]);
  }
  for (int d = 0; d < axis_dims(&n); d++) n.contig[d] = axis_min(n.contig[d], old->contig[d]);
  n.all_div = axis_min(n.all_div, old->all_div);
  n.index &= old->index;
  int64_t lo, hi;
  axis_type_range(v->type, &lo, &hi);
  if (bound && bound->lo <= bound->hi)
    lo = lo > bound->lo ? lo : bound->lo, hi = hi < bound->hi ? hi : bound->hi;
  n.lo = n.lo < old->lo ? n.lo : old->lo;
  n.hi = n.hi > old->hi ? n.hi : old->hi;
  if (n.lo < lo) n.lo = lo < old->lo ? lo : old->lo;
  if (n.hi > hi) n.hi = hi > old->hi ? hi : old->hi;
  if (n.lo != old->lo || n.hi != old->hi) {
    const bool give_up = x->state[v->id] > WIDEN_AFTER;
    if (give_up && n.lo != old->lo) n.lo = lo < n.lo ? lo : n.lo;
    if (give_up && n.hi != old->hi) n.hi = hi > n.hi ? hi : n.hi;
    if (!give_up) x->state[v->id]++;
  }
  normalise(&n, v->type);
  if (same(&n, old)) return false;
  *old = n;
  return true;
}

// ---- shape ops ------------------------------------------------------------------------------------------------------

// Everything that holds of all elements.
static void of_all(PassAxis *out, const PassAxis *a) {
  out->all_div = a->all_div;
  out->lo = a->lo;
  out->hi = a->hi;
}

static void copy_dim(PassAxis *out, int d, const PassAxis *a, int from) {
  out->contig[d] = a->contig[from];
  out->constancy[d] = a->constancy[from];
  out->div[d] = a->div[from];
}

static void broadcast(PassAxis *out, const IrType *t, const PassAxis *a, const IrType *from) {
  of_all(out, a);
  for (int d = 0; d < t->rank; d++) {
    if (d < from->rank && from->shape[d] == t->shape[d])
      copy_dim(out, d, a, d);
    else
      out->constancy[d] = axis_pow2_of(t->shape[d]);
  }
}

static int real_dims(const IrType *t, int *dims) { // axes longer than 1
  int n = 0;
  for (int d = 0; d < t->rank; d++) {
    if (t->shape[d] > 1) dims[n++] = d;
  }
  return n;
}

// Row-major order stays: runs along the last axis survive as far as they fit, and long runs of equal values cover
// whole rows.
static void reshape(PassAxis *out, const IrType *t, const PassAxis *a, const IrType *from, bool reorder) {
  int fd[IR_MAX_RANK], td[IR_MAX_RANK];
  const int fn = real_dims(from, fd), tn = real_dims(t, td);
  const int size = ir_type_is_ptr(t) ? ir_dtypes[t->dtype].bytes : 1;
  of_all(out, a);
  bool same_shape = fn == tn;
  for (int i = 0; same_shape && i < fn; i++) same_shape = from->shape[fd[i]] == t->shape[td[i]];
  if (reorder || fn == 0 || tn == 0) return;
  if (same_shape) {
    for (int i = 0; i < fn; i++) copy_dim(out, td[i], a, fd[i]);
    return;
  }
  const int last = td[tn - 1], flast = fd[fn - 1];
  const int32_t c = axis_min(a->contig[flast], axis_pow2_of(t->shape[last]));
  out->contig[last] = c;
  out->div[last] = axis_div_at(a, flast, c, size);
  int64_t stride = 1;
  for (int i = tn - 1; i >= 0; i--) {
    const int32_t runs = (int32_t)(a->constancy[flast] / stride);
    out->constancy[td[i]] = axis_max(1, axis_min(runs, axis_pow2_of(t->shape[td[i]])));
    stride *= t->shape[td[i]];
  }
}

static void load(PassAxis *out, const IrOp *op, const PassAxis *const *in) {
  if (ir_attr_i(op, ATTR_order) != ORDER_weak || ir_attr_i(op, ATTR_volatile)) return;
  for (int d = 0; d < axis_dims(out); d++) {
    int32_t c = AXIS_MAX_DIV;
    for (uint32_t i = 0; i < op->noperands; i++) {
      if (in[i]) c = axis_min(c, in[i]->constancy[d]);
    }
    out->constancy[d] = c;
  }
}

static void ids(const PassAxes *x, const IrOp *op, PassAxis *out) {
  const IrModule *m = x->f->module;
  const int64_t threads = m->num_warps > 0 && m->lanes > 0 ? (int64_t)m->num_warps * m->lanes : 1024;
  switch (op->kind) {
  case OP_num_programs:
  case OP_num_ranks: out->lo = 1; break;
  case OP_num_threads:
    out->lo = 1;
    out->hi = threads;
    break;
  case OP_warp_size: out->lo = out->hi = m->lanes > 0 ? m->lanes : 32; break;
  case OP_tid:
    out->lo = 0;
    out->hi = threads - 1;
    break;
  default: // program_id, rank
    out->lo = 0;
    out->hi = INT32_MAX - 1;
  }
}

static bool is_index(const IrOp *op, const PassAxis *const *in) {
  switch (op->kind) {
  case OP_add:
  case OP_mul:
  case OP_min_s: return in[0]->index && in[1]->index;
  case OP_max_s: return in[0]->index || in[1]->index;
  case OP_select: return in[1]->index && in[2]->index;
  case OP_div_s:
  case OP_rem_s:
  case OP_shr_s:
  case OP_ext_s:
  case OP_hint:
  case OP_splat:
  case OP_unsplat:
  case OP_expand_dims:
  case OP_broadcast:
  case OP_reshape:
  case OP_trans:
  case OP_relayout:
  case OP_to_thread:
  case OP_from_thread: return in[0]->index;
  default: return false;
  }
}

static void transfer(PassAxes *x, const IrOp *op, uint32_t r, const PassAxis *const *in, PassAxis *out) {
  const IrType *t = op->results[r].type,
               *from = op->noperands && ir_operand(op, 0) ? ir_operand(op, 0)->type : NULL;
  const PassAxis *a = op->noperands ? in[0] : NULL;
  uint64_t bits;
  switch (op->kind) {
  case OP_const:
    if (ir_type_is_int(t) && pass_const(&op->results[r], &bits))
      out->lo = out->hi = ir_dtypes[t->dtype].bits == 1 ? (int64_t)bits : pass_sext(bits, pass_elem_bits(t));
    for (int d = 0; d < axis_dims(out); d++) out->constancy[d] = AXIS_MAX_DIV;
    if (ir_type_is_ptr(t) && pass_const(&op->results[r], &bits)) out->all_div = axis_pow2_of((int64_t)bits);
    break;
  case OP_program_id:
  case OP_num_programs:
  case OP_rank:
  case OP_num_ranks:
  case OP_tid:
  case OP_num_threads:
  case OP_warp_size: ids(x, op, out); break;
  case OP_arange: {
    const int64_t start = ir_attr_i(op, ATTR_start);
    out->contig[0] = axis_pow2_of(t->shape[0]);
    out->div[0] = axis_pow2_of(start);
    out->lo = start;
    out->hi = start + t->shape[0] - 1;
    break;
  }
  case OP_ramp:
    if (in[1]->lo == in[1]->hi && in[1]->lo == 1) {
      out->contig[0] = AXIS_MAX_DIV;
      out->div[0] = a->all_div;
    }
    out->all_div = axis_min(a->all_div, in[1]->all_div);
    axis_range(out, t, (__int128)a->lo + (in[1]->lo < 0 ? (__int128)in[1]->lo * (t->shape[0] - 1) : 0),
               (__int128)a->hi + (in[1]->hi > 0 ? (__int128)in[1]->hi * (t->shape[0] - 1) : 0));
    break;
  case OP_splat:
    of_all(out, a);
    for (int d = 0; d < axis_dims(out); d++) out->constancy[d] = AXIS_MAX_DIV;
    break;
  case OP_unsplat:
  case OP_split:
  case OP_shfl:
  case OP_vec_get: of_all(out, a); break;
  case OP_relayout: *out = *a; break;
  case OP_to_thread:
  case OP_from_thread:
  case OP_consume:
    if (t == from || t->kind != IR_TILE) *out = *a;
    break;
  case OP_symm_at: // peers' buffers: aligned to 16 bytes at least, as every heap and allocation is
    of_all(out, a);
    for (int d = 0; d < axis_dims(out); d++) copy_dim(out, d, a, d), out->div[d] = axis_min(out->div[d], 16);
    out->all_div = axis_min(out->all_div, 16);
    break;
  case OP_expand_dims: {
    const int axis = (int)ir_attr_i(op, ATTR_axis);
    of_all(out, a);
    for (int d = 0, s = 0; d < t->rank; d++) {
      if (d != axis) copy_dim(out, d, a, s++);
    }
    break;
  }
  case OP_broadcast: broadcast(out, t, a, from); break;
  case OP_reshape: reshape(out, t, a, from, ir_attr_i(op, ATTR_reorder) != 0); break;
  case OP_trans: {
    const IrAttr *perm = ir_attr(op, ATTR_perm);
    of_all(out, a);
    for (int d = 0; perm && d < t->rank; d++) copy_dim(out, d, a, (int)perm->ints.v[d]);
    break;
  }
  case OP_join:
  case OP_cat:
    of_all(out, a);
    out->all_div = axis_min(a->all_div, in[1]->all_div);
    out->lo = a->lo < in[1]->lo ? a->lo : in[1]->lo;
    out->hi = a->hi > in[1]->hi ? a->hi : in[1]->hi;
    break;
  case OP_load: load(out, op, in); break;
  default:
    if (op->noperands && op->nresults == 1 && (ir_ops[op->kind].traits & TRAIT_ELEMENTWISE) &&
        op->kind != OP_inline_asm)
      axis_elementwise(op, in, out);
  }
}

static bool is_known(void *user, const IrValue *v) { return ((PassAxes *)user)->state[v->id] != 0; }
static bool join(void *user, const IrValue *to, const IrValue *from) {
  PassAxes *x = user;
  return set(x, to, &x->facts[from->id]);
}

static bool from_op(void *user, const IrOp *op, uint32_t r) {
  PassAxes *x = user;
  const PassAxis *few[8], **in = few;
  PassAxis out;
  if (op->noperands > DT_COUNTOF(few)) in = arena_array(x->arena, const PassAxis *, op->noperands);
  for (uint32_t i = 0; i < op->noperands; i++)
    in[i] = ir_operand(op, i) ? &x->facts[ir_operand(op, i)->id] : NULL;
  axis_bottom(&out, op->results[r].type);
  transfer(x, op, r, in, &out);
  out.index = x->of_indices && is_index(op, in);
  out.rank = op->results[r].type->kind == IR_TILE ? op->results[r].type->rank : 0;
  return set(x, &op->results[r], &out);
}

static bool iv(void *user, const IrOp *loop, const IrValue *v) {
  PassAxes *x = user;
  const PassAxis *lo = &x->facts[ir_operand(loop, 0)->id], *hi = &x->facts[ir_operand(loop, 1)->id],
                 *step = &x->facts[ir_operand(loop, 2)->id];
  PassAxis out;
  axis_bottom(&out, v->type);
  out.all_div = axis_min(lo->all_div, step->all_div);
  const bool uns = ir_attr_i(loop, ATTR_uns_iv) != 0;
  if (uns && (lo->lo < 0 || hi->lo < 0)) return set(x, v, &out);
  out.index = x->of_indices && lo->index && step->lo > 0;
  if (step->lo > 0) {
    out.lo = lo->lo;
    out.hi =
        hi->hi > lo->hi ? hi->hi - 1 : lo->hi; // where it never runs, there is no value to be wrong about
  } else if (step->hi < 0 && !uns) {
    out.hi = lo->hi;
    out.lo = hi->lo < lo->lo ? hi->lo + 1 : lo->lo;
  }
  return set(x, v, &out);
}

static bool unknown(void *user, const IrValue *v) {
  PassAxes *x = user;
  PassAxis out;
  axis_bottom(&out, v->type);
  return set(x, v, &out);
}

// ---- assumptions ------------------------------------------------------------------------------------------------------

static Bound *bound_of(PassAxes *x, const IrValue *v) {
  Bound *b = map_getp(&x->bounds, v);
  if (!b) {
    b = arena_new(x->arena, Bound);
    *b = (Bound){INT64_MIN, INT64_MAX};
    map_setp(&x->bounds, v, b);
  }
  return b;
}

static void at_least(PassAxes *x, const IrValue *v, int64_t k) {
  Bound *b = bound_of(x, v);
  if (k > b->lo) b->lo = k;
}
static void at_most(PassAxes *x, const IrValue *v, int64_t k) {
  Bound *b = bound_of(x, v);
  if (k < b->hi) b->hi = k;
}

static void assume(PassAxes *x, const IrValue *c, int depth) {
  int64_t k;
  if (!c->def || depth > 32) return;
  if (c->def->kind == OP_and) {
    assume(x, ir_operand(c->def, 0), depth + 1);
    assume(x, ir_operand(c->def, 1), depth + 1);
  }
  if (c->def->kind != OP_cmp) return;
  const IrValue *v = ir_operand(c->def, 0);
  IrCmp p = (IrCmp)ir_attr_i(c->def, ATTR_cmp);
  if (!ir_type_is_int(v->type)) return;
  if (!ir_const_int(ir_operand(c->def, 1), &k)) {
    if (!ir_const_int(v, &k)) return;
    v = ir_operand(c->def, 1);
    p = pass_swapped(p);
  }
  switch (p) {
  case CMP_eq:
    at_least(x, v, k);
    at_most(x, v, k);
    break;
  case CMP_sge: at_least(x, v, k); break;
  case CMP_sgt:
    if (k < INT64_MAX) at_least(x, v, k + 1);
    break;
  case CMP_sle: at_most(x, v, k); break;
  case CMP_slt:
    if (k > INT64_MIN) at_most(x, v, k - 1);
    break;
  default: break;
  }
}

// ---- all ----------------------------------------------------------------------------------------------------------------

static PassAxes *analyse(IrFunc *f, Arena *a, bool of_indices) {
  ir_renumber(f);
  PassAxes *x = arena_new(a, PassAxes);
  x->f = f;
  x->of_indices = of_indices;
  x->arena = a;
  x->n = f->next_id;
  x->facts = arena_array(a, PassAxis, f->next_id + 1);
  x->state = arena_array(a, uint8_t, f->next_id + 1);
  map_init(&x->bounds, a);
  axis_bottom(&x->nothing, &(IrType){.kind = IR_SCALAR, .dtype = IR_i64});
  for (int d = 0; d < IR_MAX_RANK; d++)
    x->nothing.contig[d] = x->nothing.constancy[d] = x->nothing.div[d] = 1;
  PASS_EACH_OP(f->body, op) {
    if (op->kind == OP_assume) assume(x, ir_operand(op, 0), 0);
  }
  for (uint32_t i = 0; i < f->body->args.len; i++) {
    const IrValue *v = f->body->args.data[i];
    PassAxis facts;
    axis_bottom(&facts, v->type);
    if (i < f->params.len && f->params.data[i].divisible > 1)
      facts.all_div = axis_pow2_of(f->params.data[i].divisible);
    set(x, v, &facts);
  }
  const PassFlow flow = {x, is_known, join, from_op, iv, unknown, NULL};
  pass_flow_run(f, &flow, a);
  return x;
}

const PassAxis *pass_axis(const PassAxes *x, const IrValue *v) {
  return v && v->id < x->n && x->state[v->id] ? &x->facts[v->id] : &x->nothing;
}

bool pass_axis_value(const PassAxes *x, const IrValue *v, int64_t *out) {
  const PassAxis *a = pass_axis(x, v);
  if (!ir_type_is_int(v->type) || a->lo != a->hi) return false;
  *out = a->lo;
  return true;
}

PassAxes *pass_axis_run(IrFunc *f, Arena *a) { return analyse(f, a, false); }
PassAxes *pass_axis_of_indices(IrFunc *f, Arena *a) { return analyse(f, a, true); }
