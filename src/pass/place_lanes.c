// place_lanes: one op of thread-level code on the lanes of a warp: values, masks, memory, what goes lane by lane.
#include "pass/place_lanes.h"

// Computed again where it is wanted.
bool lanes_computed(const IrOp *op) {
  switch (op->kind) {
  case OP_const:
  case OP_tid:
  case OP_to_thread:
  case OP_symm_at: return true;
  default: return place_op_is_elementwise(op);
  }
}
bool lanes_again(const Place *p, const IrOp *op) {
  return lanes_computed(op) && p->info[ir_result(op, 0)->id].depth % AGAIN_DEPTH != AGAIN_DEPTH - 1;
}

// ---- blocks and values -----------------------------------------------------------------------------------------------------------
IrBuilder *lanes_at(Lanes *l) { return &l->n.at[0]; }

void lanes_nest(Lanes *l, IrBlock *b, Loc loc) {
  PlaceNest *n = &l->n;
  *n = (PlaceNest){.p = l->p, .va = -1, .lanes = l->lanes};
  n->at[0] = n->out = ir_builder_at_end(b);
  n->at[0].loc = n->out.loc = loc;
  Arena *a = l->p->arena;
  map_init(&n->memo, a);
  map_init(&n->cse, a);
  map_init(&n->divs, a);
  map_init(&n->terms, a);
  if (l->tid.kind == ELEM_AFF) map_set(&n->divs, (uint64_t)(uintptr_t)l->tid.v, (uint64_t)l->lanes);
}

void lanes_set(Lanes *l, const IrValue *v, PlaceElem e) {
  PlaceElem *x = arena_new(l->p->arena, PlaceElem);
  *x = e;
  if (!map_getp(&l->vals, v)) vec_push(l->p->arena, &l->log, v);
  map_setp(&l->vals, v, x);
}

LanesSaved lanes_enter(Lanes *l, IrBlock *b) {
  const LanesSaved s = {l->n, l->log.len};
  lanes_nest(l, b, l->n.at[0].loc);
  return s;
}
void lanes_leave(Lanes *l, const LanesSaved *s) {
  while (l->log.len > s->log) map_del(&l->vals, (uint64_t)(uintptr_t)vec_pop(&l->log));
  const Loc loc = l->n.at[0].loc;
  l->n = s->n;
  l->n.at[0].loc = loc;
}

const IrType *lanes_scalar(Lanes *l, const IrType *t) {
  return ir_type_with_level(l->p->ctx, t, LEVEL_program);
}
const IrType *lanes_i32(Lanes *l) { return ir_type_scalar(l->p->ctx, IR_i32, LEVEL_program); }

// One lane of e, which belongs to the lanes of n.
IrValue *lanes_one(PlaceNest *n, PlaceElem e, IrValue *lane) {
  if (e.kind == ELEM_UNI) return e.v;
  if (e.kind == ELEM_VEC) {
    const IrType *t = ir_type_elem(n->p->ctx, e.v->type);
    return place_pure(n, OP_vec_get, 2, (IrValue *[]){e.v, lane}, t, NULL);
  }
  IrValue *by = place_bin(n, OP_mul, lane, place_i32(n->p, e.step));
  if (ir_type_is_ptr(e.v->type)) return place_pure(n, OP_ptr_add, 2, (IrValue *[]){e.v, by}, e.v->type, NULL);
  if (e.v->type->dtype != IR_i32) {
    const IrOpKind cast = ir_dtypes[e.v->type->dtype].bits > 32 ? OP_ext_s : OP_trunc;
    by = place_pure(n, cast, 1, &by, e.v->type, NULL);
  }
  return place_bin(n, OP_add, e.v, by);
}

PlaceBuf *place_spill(Place *p, const IrValue *v) {
  PlaceBuf *b = map_getp(&p->spills, v);
  if (b) return b;
  const int32_t n = p->m->num_warps * p->m->lanes;
  const IrType *t = ir_type_with_shape(p->ctx, ir_type_with_level(p->ctx, v->type, LEVEL_program), 1, &n);
  b = place_buf_new(p, t, true, v->def ? v->def->loc : LOC_NONE, "thread-level value");
  map_setp(&p->spills, v, b);
  return b;
}

static PlaceElem compute(Lanes *l, const IrOp *op) {
  Place *p = l->p;
  switch (op->kind) {
  case OP_const:
    return place_uni(
        place_pconst(p, lanes_scalar(l, ir_result(op, 0)->type), (uint64_t)ir_attr_i(op, ATTR_value)));
  case OP_tid: return l->tid;
  case OP_to_thread: return place_uni(place_value(p, ir_operand(op, 0)));
  default: break;
  }
  PlaceElem in[4] = {{0}};
  const uint32_t count = op->noperands < 4 ? op->noperands : 4;
  for (uint32_t i = 0; i < count; i++) {
    IrValue *v = ir_operand(op, i);
    if (v && v->type->kind != IR_TOKEN) in[i] = lanes_get(l, v);
  }
  lanes_at(l)->loc = op->loc;
  if (op->kind == OP_symm_at) {
    const IrType *t = lanes_scalar(l, ir_result(op, 0)->type);
    if (in[0].kind != ELEM_VEC && in[1].kind == ELEM_UNI) // peers' segments lie alike
      return (PlaceElem){in[0].kind, place_pure(&l->n, OP_symm_at, 2, (IrValue *[]){in[0].v, in[1].v}, t, op),
                         in[0].step};
    IrValue *ops[2] = {place_vec(&l->n, in[0]), place_vec(&l->n, in[1])};
    if (l->active.v) { // lanes that are not here may hold any rank and pointer
      const IrType *i64 = ir_type_scalar(p->m->ctx, IR_i64, LEVEL_program);
      if (in[1].v->type->dtype != IR_i64)
        ops[1] = place_pure(&l->n, OP_ext_s, 1, &ops[1], place_vec_type(&l->n, i64), NULL);
      const PlaceElem none = place_uni(place_pconst(p, i64, (uint64_t)IR_NO_RANK));
      ops[1] = place_vec(&l->n, lanes_merge(l, l->active, (PlaceElem){ELEM_VEC, ops[1], 0}, none));
    }
    return (PlaceElem){ELEM_VEC, place_pure(&l->n, OP_symm_at, 2, ops, place_vec_type(&l->n, t), op), 0};
  }
  return place_elementwise(&l->n, op, in, count);
}

static PlaceElem *known(Lanes *l, const IrValue *v) {
  PlaceElem *e = map_getp(&l->vals, v);
  if (e || !l->outer) return e;
  e = known(l->outer, v);
  if (!e) return NULL;
  lanes_set(l, v, place_uni(lanes_one(&l->n, *e, l->lane)));
  return map_getp(&l->vals, v);
}

PlaceElem lanes_get(Lanes *l, IrValue *v) {
  Place *p = l->p;
  if (!ir_type_is_thread(v->type)) return place_uni(place_value(p, v));
  const PlaceElem *e = known(l, v);
  if (e) return *e;
  PlaceElem r;
  if (v->def && lanes_again(l->p, v->def)) {
    r = compute(l, v->def);
  } else {
    PlaceBuf *b = map_getp(&p->spills, v);
    if (!b)
      place_fail(p, v->def ? v->def->loc : LOC_NONE, "a thread-level value is used before it is placed");
    r = place_read(&l->n, b, &l->tid, 0);
  }
  lanes_set(l, v, r);
  return r;
}

// ---- masks -------------------------------------------------------------------------------------------------------------------------
IrValue *lanes_any(Lanes *l, PlaceElem m) { // of lanes; m is not "all"
  if (m.kind == ELEM_UNI) return m.v;
  const IrType *t = ir_type_scalar(l->p->ctx, l->p->m->lanes == 64 ? IR_i64 : IR_i32, LEVEL_program);
  IrValue *bits = ir_result(ir_build(lanes_at(l), OP_ballot, 1, &m.v, 1, &t, 0), 0);
  return place_cmp(&l->n, CMP_ne, bits, place_pconst(l->p, t, 0));
}
PlaceElem lanes_both(Lanes *l, PlaceElem a, PlaceElem b) {
  if (!a.v) return b;
  if (!b.v) return a;
  if (a.kind == ELEM_UNI && b.kind == ELEM_UNI) return place_uni(place_bin(&l->n, OP_and, a.v, b.v));
  return (PlaceElem){ELEM_VEC, place_bin(&l->n, OP_and, place_vec(&l->n, a), place_vec(&l->n, b)), 0};
}
PlaceElem lanes_not(Lanes *l, PlaceElem a) {
  IrValue *one = place_pconst(l->p, a.v->type, 1);
  return (PlaceElem){a.kind, place_pure(&l->n, OP_xor, 2, (IrValue *[]){a.v, one}, a.v->type, NULL), 0};
}
PlaceElem lanes_merge(Lanes *l, PlaceElem c, PlaceElem x, PlaceElem y) { // x where c (all: x)
  if (!c.v) return x;
  PlaceNest *n = &l->n;
  if (c.kind == ELEM_UNI && x.kind == ELEM_UNI && y.kind == ELEM_UNI)
    return place_uni(place_sel(n, c.v, x.v, y.v));
  return (PlaceElem){l->lanes == 1 ? ELEM_UNI : ELEM_VEC,
                     place_sel(n, place_vec(n, c), place_vec(n, x), place_vec(n, y)), 0};
}

PlaceElem lanes_zero(Lanes *l, const IrType *t) {
  return place_uni(place_pconst(l->p, lanes_scalar(l, t), 0));
}

// ---- lane by lane --------------------------------------------------------------------------------------------------------------------
static void yield_here(Lanes *l, uint32_t n, IrValue *const *vs) { ir_yield(lanes_at(l), n, vs); }

// op once for each active lane under mask too (v NULL: none), as a scalar op without its operand `mask_at`.
static void each_lane(Lanes *l, IrOp *op, PlaceElem mask, int mask_at) {
  Place *p = l->p;
  const uint32_t nops = op->noperands;
  PlaceElem *in = arena_array(p->arena, PlaceElem, nops + 1);
  IrValue **ops = arena_array(p->arena, IrValue *, nops + 1);
  for (uint32_t i = 0; i < nops; i++) {
    if (ir_operand(op, i) && (int)i != mask_at) in[i] = lanes_get(l, ir_operand(op, i));
  }
  IrValue *r = op->nresults ? ir_result(op, 0) : NULL;
  const bool value = r && r->type->kind != IR_TOKEN;
  const IrType *rt = r ? (value ? lanes_scalar(l, r->type) : r->type) : NULL;
  const PlaceElem m = lanes_both(l, l->active, mask);
  PlaceElem none = value ? lanes_zero(l, r->type) : (PlaceElem){0};
  lanes_at(l)->loc = op->loc;
  IrOp *loop = NULL;
  IrValue *lane = NULL, *so_far = NULL;
  LanesSaved s = {0};
  if (l->lanes > 1) {
    IrValue *head[4] = {place_i32(p, 0), place_i32(p, l->lanes), place_i32(p, 1), NULL};
    const IrType *vt = NULL;
    if (value) {
      head[3] = place_vec(&l->n, none);
      vt = head[3]->type;
    }
    loop = ir_build(lanes_at(l), OP_for, value ? 4 : 3, head, value, &vt, 1);
    lane = ir_block_arg(loop->regions[0], lanes_i32(l), NULL);
    if (value) so_far = ir_block_arg(loop->regions[0], vt, NULL);
    s = lanes_enter(l, loop->regions[0]);
  }
  IrOp *cond = NULL;
  LanesSaved si = {0};
  IrValue *got = NULL;
  if (m.v) {
    IrValue *c = lane ? lanes_one(&l->n, m, lane) : m.v;
    const IrType *ct = value ? (lane ? so_far->type : rt) : NULL;
    cond = ir_build(lanes_at(l), OP_if, 1, &c, value, &ct, 2);
    si = lanes_enter(l, cond->regions[0]);
  }
  const uint32_t marks = op->kind == OP_print; // the thread goes in front
  if (marks) ops[0] = lane ? lanes_one(&l->n, l->tid, lane) : l->tid.v;
  for (uint32_t i = 0; i < nops; i++)
    ops[marks + i] = !in[i].v ? NULL : lane ? lanes_one(&l->n, in[i], lane) : in[i].v;
  lanes_at(l)->loc = op->loc;
  IrOp *made = ir_build(lanes_at(l), op->kind, marks + nops, ops, op->nresults, &rt, 0);
  place_copy_attrs(made, op);
  if (marks) place_print_where(p, made, op, -1, 1);
  if (value) {
    got = ir_result(made, 0);
    if (lane)
      got = ir_result(
          ir_build(lanes_at(l), OP_vec_set, 3, (IrValue *[]){so_far, lane, got}, 1, &so_far->type, 0), 0);
  }
  if (cond) {
    yield_here(l, value, &got);
    lanes_leave(l, &si);
    IrBuilder e = ir_builder_at_end(cond->regions[1]);
    IrValue *keep = lane ? so_far : none.v;
    ir_yield(&e, value, &keep);
    if (value) got = ir_result(cond, 0);
  }
  if (loop) {
    yield_here(l, value, &got);
    lanes_leave(l, &s);
    if (value) got = ir_result(loop, 0);
  }
  if (value) lanes_set(l, r, (PlaceElem){l->lanes == 1 ? ELEM_UNI : ELEM_VEC, got, 0});
}

// Once for all active lanes, which agree on the operands; under mask as well.
static void once(Lanes *l, IrOp *op, PlaceElem mask, int mask_at) {
  Place *p = l->p;
  IrValue **ops = arena_array(p->arena, IrValue *, op->noperands + 1);
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (ir_operand(op, i) && (int)i != mask_at) ops[i] = lanes_get(l, ir_operand(op, i)).v;
  }
  IrValue *r = op->nresults ? ir_result(op, 0) : NULL;
  const bool value = r && r->type->kind != IR_TOKEN;
  const IrType *rt = r ? (value ? lanes_scalar(l, r->type) : r->type) : NULL;
  lanes_at(l)->loc = op->loc;
  IrOp *cond = NULL;
  LanesSaved s = {0};
  if (mask.v) {
    IrValue *c = lanes_any(l, lanes_both(l, l->active, mask));
    const IrType *ct = value ? rt : NULL;
    cond = ir_build(lanes_at(l), OP_if, 1, &c, value, &ct, 2);
    s = lanes_enter(l, cond->regions[0]);
  }
  IrOp *made = ir_build(lanes_at(l), op->kind, op->noperands, ops, op->nresults, &rt, 0);
  place_copy_attrs(made, op);
  IrValue *got = value ? ir_result(made, 0) : NULL;
  if (cond) {
    yield_here(l, value, &got);
    lanes_leave(l, &s);
    IrBuilder e = ir_builder_at_end(cond->regions[1]);
    IrValue *none = value ? lanes_zero(l, r->type).v : NULL;
    ir_yield(&e, value, &none);
    if (value) got = ir_result(cond, 0);
  }
  if (value) lanes_set(l, r, place_uni(got));
}

static bool agree(Lanes *l, const IrOp *op, int mask_at) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *v = ir_operand(op, i);
    if (v && v->type->kind != IR_TOKEN && (int)i != mask_at && lanes_get(l, v).kind != ELEM_UNI) return false;
  }
  return true;
}

// Lane number of the first active lane.
static IrValue *first_active(Lanes *l) {
  Place *p = l->p;
  if (l->lanes == 1 || !l->active.v || l->active.kind == ELEM_UNI) return place_i32(p, 0);
  PlaceNest *n = &l->n;
  const PlaceElem own = {ELEM_AFF, place_i32(p, 0), 1};
  IrValue *v = place_sel(n, l->active.v, place_vec(n, own), place_vec(n, place_const(n, l->lanes - 1)));
  const IrType *t = lanes_i32(l);
  IrOp *red = ir_build(lanes_at(l), OP_reduce, 1, &v, 1, &t, 1);
  ir_set_attr_i(red, ATTR_axis, 0);
  IrBlock *b = red->regions[0];
  IrValue *xy[2] = {ir_block_arg(b, t, NULL), ir_block_arg(b, t, NULL)};
  IrBuilder e = ir_builder_at_end(b);
  IrValue *m = ir_binary(&e, OP_min_s, xy[0], xy[1]);
  ir_yield(&e, 1, &m);
  return ir_result(red, 0);
}

// By the lanes of a warp together: the first active lane's operands.
static void by_warp(Lanes *l, IrOp *op) {
  Place *p = l->p;
  IrValue **ops = arena_array(p->arena, IrValue *, op->noperands + 1), *first = first_active(l);
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *v = ir_operand(op, i);
    if (v) ops[i] = lanes_one(&l->n, lanes_get(l, v), first);
  }
  place_copy_attrs(ir_build(lanes_at(l), op->kind, op->noperands, ops, 0, NULL, 0), op);
}

// ---- memory ---------------------------------------------------------------------------------------------------------------------------
static PlaceElem mask_operand(Lanes *l, const IrOp *op, uint32_t i) {
  PlaceElem m = {ELEM_UNI, NULL, 0};
  if (i < op->noperands && ir_operand(op, i)) m = lanes_get(l, ir_operand(op, i));
  int64_t c;
  if (m.v && m.kind == ELEM_UNI && place_is_const(m.v, &c) && c) m.v = NULL;
  return m;
}

static void emit_load(Lanes *l, IrOp *op) {
  PlaceNest *n = &l->n;
  IrValue *r = ir_result(op, 0);
  const PlaceElem ptr = lanes_get(l, ir_operand(op, 0)), mask = mask_operand(l, op, 1);
  PlaceElem other = {ELEM_UNI, NULL, 0};
  if (mask.v && ir_operand(op, 2)) other = lanes_get(l, ir_operand(op, 2));
  const bool ordered = ir_op_effects(op).order != ORDER_weak;
  lanes_at(l)->loc = op->loc;
  PlaceElem got;
  if (ptr.kind == ELEM_UNI && !mask.v) {
    once(l, op, mask, 1);
    return;
  }
  if (ordered) {
    if (l->lanes > 1 && ptr.kind == ELEM_UNI && mask.kind == ELEM_UNI)
      once(l, op, mask, 1);
    else
      each_lane(l, op, mask, 1);
    if (other.v) lanes_set(l, r, lanes_merge(l, mask, lanes_get(l, r), other));
    return;
  }
  const IrType *t = lanes_scalar(l, r->type);
  const PlaceElem m = lanes_both(l, l->active, mask);
  if (l->lanes == 1) {
    IrValue *ops[3] = {ptr.v, m.v, other.v};
    got = place_uni(ir_result(ir_build(lanes_at(l), OP_load, 3, ops, 1, &t, 0), 0));
  } else {
    const bool line = ptr.kind == ELEM_AFF && ptr.step == 1;
    IrValue *ops[3] = {line ? ptr.v : place_vec(n, ptr), m.v ? place_vec(n, m) : NULL,
                       other.v ? place_vec(n, other) : NULL};
    const IrType *vt = place_vec_type(n, t);
    got = (PlaceElem){
        ELEM_VEC, ir_result(ir_build(lanes_at(l), line ? OP_load_vec : OP_load, 3, ops, 1, &vt, 0), 0), 0};
  }
  lanes_set(l, r, got);
}

static void emit_store(Lanes *l, IrOp *op) {
  PlaceNest *n = &l->n;
  const PlaceElem ptr = lanes_get(l, ir_operand(op, 0)), v = lanes_get(l, ir_operand(op, 1)),
                  mask = mask_operand(l, op, 2);
  lanes_at(l)->loc = op->loc;
  if (l->lanes == 1 || (ptr.kind == ELEM_UNI && v.kind == ELEM_UNI)) {
    once(l, op, mask, 2);
    return;
  }
  if (ir_op_effects(op).order != ORDER_weak) {
    each_lane(l, op, mask, 2);
    return;
  }
  const PlaceElem m = lanes_both(l, l->active, mask);
  const bool line = ptr.kind == ELEM_AFF && ptr.step == 1;
  IrValue *ops[3] = {line ? ptr.v : place_vec(n, ptr), place_vec(n, v), m.v ? place_vec(n, m) : NULL};
  ir_build(lanes_at(l), line ? OP_store_vec : OP_store, 3, ops, 0, NULL, 0);
}

static PlaceElem index_elem(Lanes *l, IrValue *v) {
  PlaceElem e = lanes_get(l, v);
  if (e.v->type->dtype == IR_i32 || (e.kind == ELEM_VEC && e.v->type->dtype == IR_i32)) return e;
  const IrType *t = ir_type_with_dtype(l->p->ctx, e.v->type, IR_i32);
  const IrOpKind cast = ir_dtypes[e.v->type->dtype].bits > 32 ? OP_trunc : OP_ext_s;
  return (PlaceElem){e.kind, place_pure(&l->n, cast, 1, &e.v, t, NULL), e.step};
}

static void emit_mem(Lanes *l, IrOp *op) {
  PlaceBuf *b = place_mem(l->p, ir_operand(op, 0));
  const uint32_t first = op->kind == OP_mem_get ? 1 : 2;
  PlaceElem idx[IR_MAX_RANK];
  bool uni = true;
  for (uint32_t i = first; i < op->noperands; i++) {
    idx[i - first] = index_elem(l, ir_operand(op, i));
    uni &= idx[i - first].kind == ELEM_UNI;
    if (op->kind == OP_mem_get && l->active.v &&
        idx[i - first].kind != ELEM_UNI) // lanes that are off read element 0
      idx[i - first] = lanes_merge(l, l->active, idx[i - first], place_const(&l->n, 0));
  }
  lanes_at(l)->loc = op->loc;
  l->n.out = l->n.at[0];
  if (op->kind == OP_mem_get) {
    lanes_set(l, ir_result(op, 0), place_read(&l->n, b, idx, 0));
    return;
  }
  const PlaceElem v = lanes_get(l, ir_operand(op, 1));
  if ((uni && v.kind == ELEM_UNI) || (!uni && !l->active.v)) {
    place_write(&l->n, b, idx, v);
    return;
  }
  each_lane(l, op, (PlaceElem){ELEM_UNI, NULL, 0}, -1);
}

// ---- ops ---------------------------------------------------------------------------------------------------------------------------------
static void emit_lanes_op(Lanes *l, IrOp *op) { // shfl, ballot, active_mask
  Place *p = l->p;
  PlaceNest *n = &l->n;
  IrValue *r = ir_result(op, 0);
  const IrType *t = lanes_scalar(l, r->type);
  if (op->kind == OP_shfl) {
    const PlaceElem v = lanes_get(l, ir_operand(op, 0)), lane = lanes_get(l, ir_operand(op, 1));
    if (v.kind == ELEM_UNI) {
      lanes_set(l, r, v);
      return;
    }
    IrValue *ops[2] = {place_vec(n, v), place_vec(n, lane)};
    IrOp *s = ir_build(lanes_at(l), OP_shfl, 2, ops, 1, &ops[0]->type, 0);
    place_copy_attrs(s, op);
    lanes_set(l, r, (PlaceElem){ELEM_VEC, ir_result(s, 0), 0});
    return;
  }
  PlaceElem m = l->active.v ? l->active : place_uni(place_i1(p, true));
  if (op->kind == OP_ballot) m = lanes_both(l, l->active, lanes_get(l, ir_operand(op, 0)));
  if (l->lanes == 1) { // one thread alone: its own bit
    const PlaceElem own = place_uni(place_bin(n, OP_and, l->tid.v, place_i32(p, p->m->lanes - 1)));
    IrValue *sh = own.v;
    if (t->dtype == IR_i64) sh = place_to_i64(n, sh);
    IrValue *bit = place_pure(n, OP_shl, 2, (IrValue *[]){place_pconst(p, t, 1), sh}, t, NULL);
    lanes_set(l, r, place_uni(place_sel(n, m.v, bit, place_pconst(p, t, 0))));
    return;
  }
  IrValue *v = place_vec(n, m);
  lanes_set(l, r, place_uni(ir_result(ir_build(lanes_at(l), OP_ballot, 1, &v, 1, &t, 0), 0)));
}

void lanes_op(Lanes *l, IrOp *op) {
  Place *p = l->p;
  const PlaceElem none = {ELEM_UNI, NULL, 0};
  lanes_at(l)->loc = op->loc;
  if (lanes_computed(op) && ir_type_is_thread(ir_result(op, 0)->type)) { // where it is wanted
    if (!lanes_again(p, op)) lanes_set(l, ir_result(op, 0), compute(l, op));
    return;
  }
  switch (op->kind) {
  case OP_if:
  case OP_for:
  case OP_while:
  case OP_switch: lanes_control(l, op); return;
  case OP_load: emit_load(l, op); return;
  case OP_store: emit_store(l, op); return;
  case OP_mem_get:
  case OP_mem_set: emit_mem(l, op); return;
  case OP_shfl:
  case OP_ballot:
  case OP_active_mask: emit_lanes_op(l, op); return;
  case OP_warp_barrier:
  case OP_assume: return;
  case OP_atomic_rmw: each_lane(l, op, mask_operand(l, op, 2), 2); return;
  case OP_atomic_cas:
  case OP_print:
  case OP_assert: each_lane(l, op, none, -1); return;
  case OP_fence:
  case OP_put_fence:
  case OP_put_quiet:
  case OP_timer:
  case OP_smid: once(l, op, none, -1); return;
  case OP_wait:
    if (agree(l, op, -1))
      once(l, op, none, -1);
    else
      each_lane(l, op, none, -1);
    return;
  case OP_signal:
  case OP_put:
  case OP_get:
  case OP_put_signal:
  case OP_team_barrier:
    if (ir_attr_i(op, ATTR_group) == GROUP_warp)
      by_warp(l, op);
    else
      each_lane(l, op, none, -1);
    return;
  case OP_inline_asm: place_fail(p, op->loc, "inline assembly has no meaning on a CPU target");
  default: break;
  }
  if (ir_op_executor(op) == EXEC_PROGRAM && ir_op_is_pure(op)) { // a program scalar computed in thread code
    for (uint32_t i = 0; i < op->noperands; i++) {
      if (ir_operand(op, i)) place_value(p, ir_operand(op, i));
    }
    ir_clone_op(lanes_at(l), op, &p->values);
    return;
  }
  place_fail(p, op->loc, "%s at thread level cannot be placed on a CPU", ir_ops[op->kind].name);
}

void lanes_ops(Lanes *l, IrBlock *b) {
  for (IrOp *op = b->first; op; op = op->next) {
    if (ir_ops[op->kind].traits & TRAIT_TERMINATOR) return;
    lanes_op(l, op);
  }
}
