// place_nest: the loop nest of a group.
//
//   for each row (all axes but the vectorised one)
//     limits of the masks along the row, as scalars                    computed once a row
//     for j in 0 .. full    step lanes   { all masks are known to hold }
//     for j in full .. end  step lanes   { masks as vectors }
//     reductions along the row: lanes to one value
//
// The two inner loops exist only where a mask ends a row early (cols < n); a nest that only stores ends where its masks do.
#include "pass/place.h"

#include <string.h>

typedef struct Term { // holds for the lanes before `limit` (i64), or for all lanes where `cond`
  const IrValue *v;
  IrValue *limit, *cond;
  PlaceElem idx[IR_MAX_RANK];
  bool valid;
  bool from_start; // where it fails at the row's start it may hold later
} Term;

typedef struct Acc { // a reduction
  IrOp *op;
  bool by_lanes; // along the vectorised axis: carried by the inner loops; else in buffers
  bool known;    // neutral values are known
  uint64_t *neutral;
  uint32_t n;
  IrValue **carried;
} Acc;

typedef struct Work {
  PlaceNest n;
  Place *p;
  PlaceGroup *g;
  Vec(Acc) accs;
  Vec(Term *) terms;
  Map term_of, seen;
  int rows; // levels of the loops around a row
} Work;

// ---- loops --------------------------------------------------------------------------------------------------------------------
static IrOp *open_loop(PlaceNest *n, IrBuilder *at, IrValue *lo, IrValue *hi, IrValue *step,
                       uint32_t ncarried, IrValue *const *init) {
  Place *p = n->p;
  IrValue **ops = arena_array(p->arena, IrValue *, 3 + ncarried);
  const IrType **types = arena_array(p->arena, const IrType *, ncarried + 1);
  ops[0] = lo;
  ops[1] = hi;
  ops[2] = step;
  for (uint32_t i = 0; i < ncarried; i++) {
    ops[3 + i] = init[i];
    types[i] = init[i]->type;
  }
  IrOp *loop = ir_build(at, OP_for, 3 + ncarried, ops, ncarried, types, 1);
  IrBlock *body = loop->regions[0];
  ir_block_arg(body, lo->type, NULL);
  for (uint32_t i = 0; i < ncarried; i++) ir_block_arg(body, types[i], NULL);
  if (!n->at[n->depth].before) n->at[n->depth].before = loop;
  n->depth++;
  n->at[n->depth] = ir_builder_at_end(body);
  n->at[n->depth].loc = at->loc;
  n->out = n->at[n->depth];
  return loop;
}

static void close_loop(PlaceNest *n, uint32_t ncarried, IrValue *const *next) {
  IrBuilder end = ir_builder_at_end(n->at[n->depth].block);
  end.loc = n->at[n->depth].loc;
  ir_yield(&end, ncarried, next);
  n->depth--;
  n->out = ir_builder_at_end(n->at[n->depth].block);
  n->out.loc = end.loc;
}

void place_nest_scalar(Place *p, PlaceNest *n) {
  *n = (PlaceNest){.p = p, .va = -1, .lanes = 1};
  n->at[0] = p->b;
  n->out = p->b;
  map_init(&n->memo, p->arena);
  map_init(&n->cse, p->arena);
  map_init(&n->divs, p->arena);
  map_init(&n->terms, p->arena);
}

static void set_shape(PlaceNest *n, int rank, const int32_t *shape) {
  n->rank = rank;
  memcpy(n->shape, shape, sizeof *shape * (size_t)rank);
  n->va = place_last_wide(rank, shape);
  for (int i = 0; i < rank; i++) n->idx[i] = place_const(n, 0);
}

static void open_axis(PlaceNest *n, int i, int step) {
  Place *p = n->p;
  IrBuilder at = ir_builder_at_end(n->at[n->depth].block);
  at.loc = n->at[n->depth].loc;
  IrOp *loop = open_loop(n, &at, place_i32(p, 0), place_i32(p, n->shape[i]), place_i32(p, step), 0, NULL);
  IrValue *iv = loop->regions[0]->args.data[0];
  n->idx[i] = step > 1 ? (PlaceElem){ELEM_AFF, iv, 1} : place_uni(iv);
  map_set(&n->divs, (uint64_t)(uintptr_t)iv, (uint64_t)step);
}

static void open_rows(PlaceNest *n) {
  for (int i = 0; i < n->rank; i++) {
    if (i != n->va && n->shape[i] > 1) open_axis(n, i, 1);
  }
}

void place_loops_open(Place *p, PlaceNest *n, int rank, const int32_t *shape, int lanes) {
  const Loc loc = p->b.loc;
  place_nest_scalar(p, n);
  n->at[0].loc = n->out.loc = loc;
  n->lanes = lanes;
  set_shape(n, rank, shape);
  open_rows(n);
  if (n->va < 0) return;
  if (n->shape[n->va] == lanes && lanes > 1)
    n->idx[n->va] = (PlaceElem){ELEM_AFF, place_i32(p, 0), 1};
  else
    open_axis(n, n->va, lanes);
}

void place_loops_close(PlaceNest *n) {
  while (n->depth) close_loop(n, 0, NULL);
}

// ---- terms: parts of masks that are known along a row ----------------------------------------------------------------------------
static bool moves(const PlaceNest *n, PlaceElem e) { return e.kind != ELEM_UNI || place_turns(n, e); }

// How v changes along the row, at idx. False: not by a constant step, or not known.
static bool row_step(const PlaceNest *n, Place *p, const IrValue *v, const PlaceElem *idx, int64_t *step) {
  *step = 0;
  if (!place_is_tile(v)) return true;
  const PlaceInfo *in = place_info(p, v);
  bool one = false;
  for (int i = 0; i < v->type->rank; i++) {
    if (!(in->deps >> i & 1) || !moves(n, idx[i])) continue;
    if (one || idx[i].kind != ELEM_AFF || in->step[i] == PLACE_STEP_ANY || ir_type_is_float(v->type))
      return false;
    one = true;
    *step = idx[i].step * in->step[i];
  }
  return true;
}

static IrValue *at_start(Work *w, IrValue *v, const PlaceElem *idx) {
  PlaceElem at[IR_MAX_RANK];
  if (!place_is_tile(v)) return place_value(w->p, v);
  for (int i = 0; i < v->type->rank; i++) at[i] = moves(&w->n, idx[i]) ? place_uni(idx[i].v) : idx[i];
  const PlaceElem e = place_eval(&w->n, v, at);
  return e.kind == ELEM_UNI ? e.v : NULL;
}

static Term *new_term(Work *w, const IrValue *v, const PlaceElem *idx) {
  Term *t = arena_new(w->p->arena, Term);
  t->v = v;
  t->valid = true;
  memcpy(t->idx, idx, sizeof *idx * (size_t)v->type->rank);
  map_setp(&w->term_of, v, t);
  vec_push(w->p->arena, &w->terms, t);
  return t;
}

static IrValue *difference(Work *w, IrValue *b, IrValue *a, int64_t more) {
  PlaceNest *n = &w->n;
  IrValue *d = place_bin(n, OP_sub, place_to_i64(n, b), place_to_i64(n, a));
  if (!more) return d;
  return place_bin(n, OP_add, d, place_pconst(w->p, d->type, (uint64_t)more));
}

static void leaf(Work *w, IrValue *m, const PlaceElem *idx, bool guards) {
  Place *p = w->p;
  Term *old = map_getp(&w->term_of, m);
  if (old) {
    for (int i = 0; i < m->type->rank; i++)
      old->valid &= old->idx[i].v == idx[i].v && old->idx[i].kind == idx[i].kind;
    return;
  }
  if (w->terms.len >= 24) return;
  int64_t c, sa, sb;
  if (ir_const_int(m, &c)) return;
  const PlaceInfo *in = place_info(p, m);
  bool moving = false;
  for (int i = 0; i < m->type->rank; i++) moving |= (in->deps >> i & 1) && moves(&w->n, idx[i]);
  if (!moving) {
    if (!guards) return;
    Term *t = new_term(w, m, idx);
    t->cond = at_start(w, m, idx);
    if (!t->cond) t->valid = false;
    return;
  }
  if (!in->is_virtual || in->ready || m->def->kind != OP_cmp || ir_type_is_ptr(ir_operand(m->def, 0)->type))
    return;
  IrValue *a = ir_operand(m->def, 0), *b = ir_operand(m->def, 1);
  IrCmp cmp = (IrCmp)ir_attr_i(m->def, ATTR_cmp);
  if (!row_step(&w->n, p, a, idx, &sa) || !row_step(&w->n, p, b, idx, &sb)) return;
  if (sa == 0 && sb == 1) { // b > a is a < b
    IrValue *x = a;
    a = b;
    b = x;
    sa = 1;
    sb = 0;
    cmp = cmp == CMP_slt   ? CMP_sgt
          : cmp == CMP_sle ? CMP_sge
          : cmp == CMP_sgt ? CMP_slt
          : cmp == CMP_sge ? CMP_sle
                           : CMP_eq;
  }
  if (sa != 1 || sb != 0) return;
  if (cmp != CMP_slt && cmp != CMP_sle && cmp != CMP_sge && cmp != CMP_sgt) return;
  IrValue *a0 = at_start(w, a, idx), *b0 = at_start(w, b, idx);
  if (!a0 || !b0) return;
  Term *t = new_term(w, m, idx);
  if (cmp == CMP_slt || cmp == CMP_sle) {
    t->limit = difference(w, b0, a0, cmp == CMP_sle);
  } else {
    t->cond = place_cmp(&w->n, cmp, a0, b0);
    t->from_start = true;
  }
}

static void split_mask(Work *w, IrValue *m, const PlaceElem *idx, bool guards) {
  if (!place_is_tile(m)) return;
  const PlaceInfo *in = place_info(w->p, m);
  if (in->is_virtual && !in->ready) {
    const IrOp *op = m->def;
    if (op->kind == OP_and) {
      split_mask(w, ir_operand(op, 0), idx, guards);
      split_mask(w, ir_operand(op, 1), idx, guards);
      return;
    }
    if (place_map_is_shape(op) && op->kind != OP_split) {
      PlaceElem at[IR_MAX_RANK];
      place_map_index(&w->n, op, 0, idx, at);
      split_mask(w, ir_operand(op, 0), at, guards);
      return;
    }
  }
  leaf(w, m, idx, guards);
}

static void remainder_term(Work *w, IrValue *v, const PlaceElem *idx) {
  Place *p = w->p;
  IrValue *a = ir_operand(v->def, 0), *b = ir_operand(v->def, 1);
  int64_t sa, sb;
  if (map_getp(&w->term_of, v) || !row_step(&w->n, p, a, idx, &sa) || !row_step(&w->n, p, b, idx, &sb) ||
      sa != 1 || sb != 0)
    return;
  IrValue *a0 = at_start(w, a, idx), *b0 = at_start(w, b, idx);
  if (!a0 || !b0) return;
  Term *t = new_term(w, v, idx);
  t->limit = difference(w, b0, a0, 0);
  t->cond = place_cmp(&w->n, CMP_sge, a0, place_pconst(p, a0->type, 0));
}

// A row divided by one number: times its reciprocal, where that is an ordinary number.
static void divisor_term(Work *w, IrValue *v, const PlaceElem *idx) {
  Place *p = w->p;
  PlaceNest *n = &w->n;
  IrValue *b = ir_operand(v->def, 1);
  if (v->type->dtype != IR_f32 || ir_attr_i(v->def, ATTR_exact) || map_getp(&w->term_of, v)) return;
  const PlaceInfo *in = place_info(p, b);
  for (int i = 0; i < b->type->rank; i++) {
    if ((in->deps >> i & 1) && moves(&w->n, idx[i])) return;
  }
  IrValue *b0 = at_start(w, b, idx);
  if (!b0) return;
  IrValue *size = place_pure(n, OP_fabs, 1, &b0, b0->type, NULL);
  IrValue *least_ = place_pconst(p, b0->type, ir_float_bits(IR_f32, 0x1p-120)),
          *most = place_pconst(p, b0->type, ir_float_bits(IR_f32, 0x1p120));
  Term *t = new_term(w, v, idx);
  t->cond = place_bin(n, OP_and, place_fcmp(n, FCMP_oge, size, least_), place_fcmp(n, FCMP_ole, size, most));
}

static void find_terms(Work *w, IrValue *v, const PlaceElem *idx) {
  Place *p = w->p;
  if (!place_is_tile(v)) return;
  PlaceInfo *in = place_info(p, v);
  if (!in->is_virtual || in->ready) return;
  uint64_t h = (uint64_t)(uintptr_t)v;
  for (int i = 0; i < v->type->rank; i++)
    h = hash_bytes(&idx[i].v, sizeof idx[i].v, h + (uint64_t)idx[i].kind);
  if (map_get(&w->seen, h >> 1, NULL) || w->seen.live > 4000) return;
  map_set(&w->seen, h >> 1, 1);
  const IrOp *op = v->def;
  PlaceElem at[IR_MAX_RANK + 1];
  switch (op->kind) {
  case OP_const:
  case OP_splat:
  case OP_arange:
  case OP_mem_load:
  case OP_join: return;
  case OP_gather: find_terms(w, ir_operand(op, 1), idx); return;
  case OP_expand_dims:
  case OP_broadcast:
  case OP_trans:
  case OP_reshape:
    place_map_index(&w->n, op, 0, idx, at);
    find_terms(w, ir_operand(op, 0), at);
    return;
  case OP_split: return;
  case OP_load:
    if (ir_operand(op, 1)) split_mask(w, ir_operand(op, 1), idx, true);
    break;
  case OP_select: split_mask(w, ir_operand(op, 0), idx, false); break;
  case OP_rem_s:
  case OP_rem_u: remainder_term(w, v, idx); break;
  case OP_fdiv: divisor_term(w, v, idx); break;
  default: break;
  }
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (ir_operand(op, i)) find_terms(w, ir_operand(op, i), idx);
  }
}

// Lanes of the row for which all terms hold, as an i32 in 0..size: the least of the limits, or 0.
static IrValue *least(Work *w, Term *const *terms, uint32_t count) {
  PlaceNest *n = &w->n;
  Place *p = w->p;
  const IrType *i64 = ir_type_scalar(p->ctx, IR_i64, LEVEL_program);
  IrValue *size = place_pconst(p, i64, (uint64_t)n->shape[n->va]), *lim = size;
  for (uint32_t i = 0; i < count; i++) {
    if (terms[i]->limit) lim = place_bin(n, OP_min_s, lim, terms[i]->limit);
  }
  lim = place_bin(n, OP_max_s, lim, place_pconst(p, i64, 0));
  const IrType *i32 = ir_type_scalar(p->ctx, IR_i32, LEVEL_program);
  int64_t c;
  IrValue *r = place_is_const(lim, &c) ? place_i32(p, c) : place_pure(n, OP_trunc, 1, &lim, i32, NULL);
  for (uint32_t i = 0; i < count; i++) {
    if (terms[i]->cond) r = place_sel(n, terms[i]->cond, r, place_i32(p, 0));
  }
  return r;
}

static void mask_terms(Work *w, IrValue *m, Term **out, uint32_t *count) {
  if (!place_is_tile(m)) return;
  Term *t = map_getp(&w->term_of, m);
  if (t && t->valid && *count < 24) {
    if (!t->from_start) out[(*count)++] = t;
    return;
  }
  const PlaceInfo *in = place_info(w->p, m);
  if (!in->is_virtual || in->ready) return;
  if (m->def->kind == OP_and) {
    mask_terms(w, ir_operand(m->def, 0), out, count);
    mask_terms(w, ir_operand(m->def, 1), out, count);
  } else if (place_map_is_shape(m->def) && m->def->kind != OP_split) {
    mask_terms(w, ir_operand(m->def, 0), out, count);
  }
}

// Where the nest may stop along a row: all it does is store under masks that end by then. NULL: nowhere early.
static IrValue *row_end(Work *w) {
  PlaceNest *n = &w->n;
  IrValue *end = NULL;
  for (uint32_t i = 0; i < w->g->roots.len; i++) {
    const PlaceRoot *r = w->g->roots.data[i];
    if (r->kind != ROOT_STORE || r->op->kind != OP_store || !ir_operand(r->op, 2)) return NULL;
    Term *terms[24];
    uint32_t count = 0;
    mask_terms(w, ir_operand(r->op, 2), terms, &count);
    if (!count) return NULL;
    IrValue *e = least(w, terms, count);
    end = end ? place_bin(n, OP_max_s, end, e) : e;
  }
  return end;
}

static void find_all_terms(Work *w) {
  PlaceNest *n = &w->n;
  PlaceElem keep = n->idx[n->va];
  n->idx[n->va] = (PlaceElem){ELEM_AFF, place_i32(w->p, 0), 1};
  for (uint32_t i = 0; i < w->g->roots.len; i++) {
    const PlaceRoot *r = w->g->roots.data[i];
    if (r->kind == ROOT_FILL) {
      if (!r->src) find_terms(w, r->value, n->idx);
      continue;
    }
    if (r->op->kind == OP_store && ir_operand(r->op, 2)) split_mask(w, ir_operand(r->op, 2), n->idx, true);
    for (uint32_t k = 0; k < r->op->noperands; k++) {
      if (ir_operand(r->op, k)) find_terms(w, ir_operand(r->op, k), n->idx);
    }
  }
  n->idx[n->va] = keep;
}

// ---- reductions -----------------------------------------------------------------------------------------------------------------
static bool neutral_of(IrOpKind k, const IrOp *op, const IrType *t, uint64_t *bits) {
  const int n = ir_dtypes[t->dtype].bits;
  const uint64_t all = pass_mask(n), top = 1ull << (n - 1);
  switch (k) {
  case OP_add:
  case OP_or:
  case OP_xor:
  case OP_max_u: *bits = 0; return true;
  case OP_mul: *bits = 1; return true;
  case OP_and:
  case OP_min_u: *bits = all; return true;
  case OP_max_s: *bits = top; return true;
  case OP_min_s: *bits = all >> 1; return true;
  case OP_fadd: *bits = ir_float_bits(t->dtype, -0.0); return true;
  case OP_fmul: *bits = ir_float_bits(t->dtype, 1); return true;
  case OP_fmax:
  case OP_fmin: // without nan, a NaN loses against everything
    if (t->dtype == IR_f8e4m3) return false;
    if (!ir_attr_i(op, ATTR_nan))
      *bits = ir_float_bits(t->dtype, __builtin_nan(""));
    else
      *bits = ir_float_bits(t->dtype, k == OP_fmax ? -__builtin_inf() : __builtin_inf());
    return true;
  default: return false;
  }
}

bool place_identity(const IrBlock *region, const IrType *elem, uint64_t *bits) {
  const IrOp *op = region->first;
  if (region->args.len != 2 || !op || op->noperands != 2 || op->nresults != 1 || op->next != region->last)
    return false;
  const IrValue *x = ir_operand(op, 0), *y = ir_operand(op, 1), *a = region->args.data[0],
                *b = region->args.data[1];
  if (!((x == a && y == b) || (x == b && y == a)) || ir_operand(region->last, 0) != ir_result(op, 0))
    return false;
  return neutral_of(op->kind, op, elem, bits);
}

static void start_acc(Work *w, Acc *a) {
  PlaceNest *n = &w->n;
  a->carried = arena_array(w->p->arena, IrValue *, a->n);
  a->neutral = arena_array(w->p->arena, uint64_t, a->n);
  const IrType *t = ir_type_elem(w->p->ctx, ir_operand(a->op, 0)->type);
  a->known = a->n == 1 && place_identity(a->op->regions[0], t, a->neutral);
  for (uint32_t i = 0; i < a->n; i++) {
    t = ir_type_elem(w->p->ctx, ir_operand(a->op, i)->type);
    a->carried[i] = place_pconst(w->p, place_vec_type(n, t), a->neutral[i]);
  }
}

static PlaceElem as_lanes(PlaceNest *n, IrValue *v) {
  return (PlaceElem){n->lanes == 1 ? ELEM_UNI : ELEM_VEC, v, 0};
}

// old combined with x; x alone where `first` (NULL: never).
static void combine(Work *w, Acc *a, const PlaceElem *old, const PlaceElem *x, IrValue *first,
                    PlaceElem *out) {
  PlaceNest *n = &w->n;
  PlaceElem *args = arena_array(w->p->arena, PlaceElem, 2 * a->n);
  for (uint32_t i = 0; i < a->n; i++) {
    args[i] = old[i];
    args[a->n + i] = x[i];
  }
  place_region(n, a->op->regions[0], args, 2 * a->n, out);
  if (!first) return;
  for (uint32_t i = 0; i < a->n; i++) {
    const bool uni = out[i].kind == ELEM_UNI && x[i].kind == ELEM_UNI;
    IrValue *c = uni ? first : place_vec(n, place_uni(first));
    IrValue *v = place_sel(n, c, uni ? x[i].v : place_vec(n, x[i]), uni ? out[i].v : place_vec(n, out[i]));
    out[i] = uni ? place_uni(v) : as_lanes(n, v);
  }
}

static uint32_t drop_axis(const PlaceElem *idx, int rank, int axis, PlaceElem *out) {
  uint32_t n = 0;
  for (int i = 0; i < rank; i++) {
    if (i != axis) out[n++] = idx[i];
  }
  return n;
}

typedef struct Write {
  PlaceBuf *buf;
  PlaceElem idx[IR_MAX_RANK], e;
} Write;
typedef Vec(Write) Writes;

static void buffer_acc(Work *w, Acc *a, const PlaceElem *x, Writes *writes) {
  PlaceNest *n = &w->n;
  Place *p = w->p;
  const int axis = (int)ir_attr_i(a->op, ATTR_axis);
  PlaceElem idx[IR_MAX_RANK];
  drop_axis(n->idx, n->rank, axis, idx);
  PlaceElem *old = arena_array(p->arena, PlaceElem, a->n), *out = arena_array(p->arena, PlaceElem, a->n);
  if (n->shape[axis] > 1) {
    for (uint32_t i = 0; i < a->n; i++)
      old[i] = place_read(n, place_info(p, ir_result(a->op, i))->buf, idx, n->depth);
    combine(w, a, old, x, place_cmp(n, CMP_eq, n->idx[axis].v, place_i32(p, 0)), out);
  } else {
    memcpy(out, x, sizeof *x * a->n);
  }
  for (uint32_t i = 0; i < a->n; i++) {
    Write wr = {.buf = place_info(p, ir_result(a->op, i))->buf, .e = out[i]};
    memcpy(wr.idx, idx, sizeof idx);
    vec_push(p->arena, writes, wr);
  }
}

static void clone_region(Place *p, IrBlock *to, const IrBlock *from) {
  for (uint32_t i = 0; i < from->args.len; i++) {
    const IrType *t = from->args.data[i]->type;
    map_setp(&p->values, from->args.data[i], ir_block_arg(to, t, NULL));
  }
  IrBuilder b = ir_builder_at_end(to);
  for (const IrOp *op = from->first; op; op = op->next) ir_clone_op(&b, op, &p->values);
}

static void finish_acc(Work *w, Acc *a) {
  PlaceNest *n = &w->n;
  Place *p = w->p;
  const int axis = (int)ir_attr_i(a->op, ATTR_axis);
  IrValue **r = a->carried;
  n->out.loc = a->op->loc;
  if (n->lanes > 1) {
    const IrType **types = arena_array(p->arena, const IrType *, a->n);
    for (uint32_t i = 0; i < a->n; i++) types[i] = ir_type_elem(p->ctx, ir_operand(a->op, i)->type);
    IrOp *red = ir_build(&n->out, OP_reduce, a->n, r, a->n, types, 1);
    ir_set_attr_i(red, ATTR_axis, 0);
    clone_region(p, red->regions[0], a->op->regions[0]);
    r = arena_array(p->arena, IrValue *, a->n);
    for (uint32_t i = 0; i < a->n; i++) r[i] = ir_result(red, i);
  }
  PlaceElem idx[IR_MAX_RANK];
  drop_axis(n->idx, n->rank, axis, idx);
  for (uint32_t i = 0; i < a->n; i++) {
    IrValue *res = ir_result(a->op, i);
    if (place_is_tile(res))
      place_write(n, place_info(p, res)->buf, idx, place_uni(r[i]));
    else
      map_setp(&p->values, res, r[i]);
  }
}

// ---- one pass over the elements ---------------------------------------------------------------------------------------------------
static void emit_store(PlaceNest *n, const IrOp *op, PlaceElem ptr, PlaceElem v, PlaceElem mask) {
  const bool uni = ptr.kind == ELEM_UNI && v.kind == ELEM_UNI && mask.kind == ELEM_UNI;
  const bool line = ptr.kind == ELEM_AFF && ptr.step == 1;
  IrValue *ops[3] = {uni || line ? ptr.v : place_vec(n, ptr), uni ? v.v : place_vec(n, v), NULL};
  if (mask.v) ops[2] = uni ? mask.v : place_vec(n, mask);
  n->out.loc = op->loc;
  IrOp *s = ir_build(&n->out, !uni && line ? OP_store_vec : OP_store, 3, ops, 0, NULL, 0);
  if (ir_attr_i(op, ATTR_nt)) ir_set_attr_i(s, ATTR_nt, 1);
}

typedef struct Stored {
  const PlaceRoot *root;
  PlaceElem ptr, v, mask;
} Stored;

static void body(Work *w, bool loop) {
  PlaceNest *n = &w->n;
  Place *p = w->p;
  Vec(Stored) stores = {0};
  Writes writes = {0};
  uint32_t acc = 0;
  for (uint32_t i = 0; i < w->g->roots.len; i++) {
    const PlaceRoot *r = w->g->roots.data[i];
    if (r->kind == ROOT_FILL) {
      Write wr = {.buf = r->buf,
                  .e = r->src ? place_read(n, r->src, n->idx, 0) : place_eval(n, r->value, n->idx)};
      memcpy(wr.idx, n->idx, sizeof n->idx);
      vec_push(p->arena, &writes, wr);
    } else if (r->kind == ROOT_STORE && r->op->kind == OP_mem_store) {
      Write wr = {.buf = place_mem(p, ir_operand(r->op, 0)),
                  .e = place_eval(n, ir_operand(r->op, 1), n->idx)};
      memcpy(wr.idx, n->idx, sizeof n->idx);
      vec_push(p->arena, &writes, wr);
    } else if (r->kind == ROOT_STORE) {
      Stored s = {.root = r};
      s.ptr = place_eval(n, ir_operand(r->op, 0), n->idx);
      s.v = place_eval(n, ir_operand(r->op, 1), n->idx);
      if (ir_operand(r->op, 2)) s.mask = place_eval_mask(n, ir_operand(r->op, 2), n->idx, n->assume);
      vec_push(p->arena, &stores, s);
    } else {
      Acc *a = &w->accs.data[acc++];
      PlaceElem *x = arena_array(p->arena, PlaceElem, a->n), *old = arena_array(p->arena, PlaceElem, a->n);
      for (uint32_t k = 0; k < a->n; k++) x[k] = place_eval(n, ir_operand(a->op, k), n->idx);
      if (!a->by_lanes) {
        buffer_acc(w, a, x, &writes);
        continue;
      }
      if (!loop) {
        for (uint32_t k = 0; k < a->n; k++) a->carried[k] = place_vec(n, x[k]);
        continue;
      }
      for (uint32_t k = 0; k < a->n; k++) old[k] = as_lanes(n, a->carried[k]);
      PlaceElem *out = arena_array(p->arena, PlaceElem, a->n);
      combine(w, a, old, x, a->known ? NULL : place_cmp(n, CMP_eq, n->idx[n->va].v, place_i32(p, 0)), out);
      for (uint32_t k = 0; k < a->n; k++) a->carried[k] = place_vec(n, out[k]);
    }
  }
  for (uint32_t i = 0; i < stores.len; i++) {
    const Stored *s = &stores.data[i];
    emit_store(n, s->root->op, s->ptr, s->v, s->mask);
  }
  for (uint32_t i = 0; i < writes.len; i++)
    place_write(n, writes.data[i].buf, writes.data[i].idx, writes.data[i].e);
}

static void segment(Work *w, IrValue *lo, IrValue *hi, bool assume) {
  PlaceNest *n = &w->n;
  Place *p = w->p;
  Vec(IrValue *) init = {0};
  for (uint32_t i = 0; i < w->accs.len; i++) {
    const Acc *a = &w->accs.data[i];
    for (uint32_t k = 0; a->by_lanes && k < a->n; k++) vec_push(p->arena, &init, a->carried[k]);
  }
  IrBuilder at = ir_builder_at_end(n->at[n->depth].block);
  at.loc = n->at[n->depth].loc;
  IrOp *loop = open_loop(n, &at, lo, hi, place_i32(p, n->lanes), init.len, init.data);
  IrBlock *b = loop->regions[0];
  IrValue *iv = b->args.data[0];
  n->idx[n->va] = n->lanes > 1 ? (PlaceElem){ELEM_AFF, iv, 1} : place_uni(iv);
  map_set(&n->divs, (uint64_t)(uintptr_t)iv, (uint64_t)n->lanes);
  n->assume = assume;
  uint32_t c = 1;
  for (uint32_t i = 0; i < w->accs.len; i++) {
    Acc *a = &w->accs.data[i];
    for (uint32_t k = 0; a->by_lanes && k < a->n; k++) a->carried[k] = b->args.data[c++];
  }
  body(w, true);
  n->assume = false;
  Vec(IrValue *) next = {0};
  c = 0;
  for (uint32_t i = 0; i < w->accs.len; i++) {
    Acc *a = &w->accs.data[i];
    for (uint32_t k = 0; a->by_lanes && k < a->n; k++) {
      vec_push(p->arena, &next, a->carried[k]);
      a->carried[k] = ir_result(loop, c++);
    }
  }
  close_loop(n, next.len, next.data);
}

static void inner_loops(Work *w) {
  PlaceNest *n = &w->n;
  Place *p = w->p;
  const int32_t size = n->va < 0 ? 1 : n->shape[n->va];
  // A row that is less than a machine's vector is done once, with its masks.
  const bool one_step = n->lanes == size && size * 32 < p->vector_bits;
  if (n->lanes > 1 && !one_step) find_all_terms(w);
  uint32_t live = 0;
  for (uint32_t i = 0; i < w->terms.len; i++) {
    if (!w->terms.data[i]->valid) continue;
    w->terms.data[live++] = w->terms.data[i];
    map_setp(&n->terms, w->terms.data[i]->v, w->terms.data[i]);
  }
  w->terms.len = live;
  if (n->va < 0) {
    body(w, false);
    return;
  }
  if (!live && n->lanes == size) {
    n->idx[n->va] = n->lanes > 1 ? (PlaceElem){ELEM_AFF, place_i32(p, 0), 1} : place_const(n, 0);
    body(w, false);
    return;
  }
  IrValue *zero = place_i32(p, 0), *end = place_i32(p, size);
  if (!live) {
    segment(w, zero, end, false);
    return;
  }
  IrValue *cut = row_end(w);
  IrValue *full = place_bin(n, OP_and, least(w, w->terms.data, w->terms.len), place_i32(p, -n->lanes));
  map_set(&n->divs, (uint64_t)(uintptr_t)full, (uint64_t)n->lanes);
  segment(w, zero, full, true);
  segment(w, full, cut ? cut : end, false);
}

void place_emit_group(Place *p, PlaceGroup *g) {
  Work w = {.p = p, .g = g};
  PlaceNest *n = &w.n;
  p->evals = 0;
  p->clock++;
  map_init(&w.term_of, p->arena);
  map_init(&w.seen, p->arena);
  const PlaceRoot *r0 = g->roots.data[0];
  p->b.loc = r0->op ? r0->op->loc : r0->value->def ? r0->value->def->loc : p->b.loc;
  place_nest_scalar(p, n);
  n->lanes = place_lanes(p, g);
  set_shape(n, g->rank, g->shape);
  for (uint32_t i = 0; i < g->roots.len; i++) {
    const PlaceRoot *r = g->roots.data[i];
    if (r->kind != ROOT_REDUCE) continue;
    Acc a = {.op = r->op, .n = r->op->noperands};
    const int axis = (int)ir_attr_i(r->op, ATTR_axis);
    a.by_lanes = axis == n->va || r->op->results[0].type->kind != IR_TILE;
    vec_push(p->arena, &w.accs, a);
  }
  open_rows(n);
  for (uint32_t i = 0; i < w.accs.len; i++) {
    if (w.accs.data[i].by_lanes) start_acc(&w, &w.accs.data[i]);
  }
  inner_loops(&w);
  for (uint32_t i = 0; i < w.accs.len; i++) {
    if (w.accs.data[i].by_lanes) finish_acc(&w, &w.accs.data[i]);
  }
  place_loops_close(n);
  for (uint32_t i = 0; i < g->roots.len; i++) {
    const PlaceRoot *r = g->roots.data[i];
    if (r->kind == ROOT_FILL && r->defines) place_info(p, r->value)->ready = true;
    for (uint32_t k = 0; r->kind == ROOT_REDUCE && k < r->op->nresults; k++)
      place_info(p, ir_result(r->op, k))->ready = true;
  }
}
