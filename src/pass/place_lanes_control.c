// place_lanes_control: control by threads. Lanes that go different ways run one after another under masks; a region runs
// where some lane takes it, a loop while any lane goes on.
#include "pass/place_lanes.h"

// ---- control ----------------------------------------------------------------------------------------------------------------------------
typedef struct Arm {
  PlaceNest n;
  PlaceElem *out;
} Arm;

// Emits a region's ops into block; out: what it yields (from operand `skip` on). The nest stays usable for conversions.
static Arm emit_arm(Lanes *l, IrBlock *from, IrBlock *to, PlaceElem active) {
  const PlaceElem keep = l->active;
  const LanesSaved s = lanes_enter(l, to);
  l->active = active;
  lanes_ops(l, from);
  const IrOp *end = ir_terminator(from);
  Arm a = {.out = arena_array(l->p->arena, PlaceElem, end->noperands + 1)};
  for (uint32_t i = 0; i < end->noperands; i++) {
    if (ir_operand(end, i)->type->kind != IR_TOKEN) a.out[i] = lanes_get(l, ir_operand(end, i));
  }
  a.n = l->n;
  lanes_leave(l, &s);
  l->active = keep;
  return a;
}

static void yield_in(PlaceNest *n, uint32_t count, const PlaceElem *es, const bool *vec) {
  IrValue **vs = arena_array(n->p->arena, IrValue *, count + 1);
  for (uint32_t i = 0; i < count; i++) vs[i] = vec[i] ? place_vec(n, es[i]) : es[i].v;
  ir_yield(&n->at[0], count, vs);
}

// A scalar `if` between two regions of the same active lanes (or one and nothing).
static void scalar_if(Lanes *l, IrOp *op, IrValue *c, PlaceElem active) {
  Place *p = l->p;
  const uint32_t count = op->nresults;
  IrOp *made = ir_build(lanes_at(l), OP_if, 1, &c, 0, NULL, 2);
  Arm arm[2];
  for (int i = 0; i < 2; i++) arm[i] = emit_arm(l, op->regions[i], made->regions[i], active);
  bool *vec = arena_array(p->arena, bool, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    vec[i] = arm[0].out[i].kind != ELEM_UNI || arm[1].out[i].kind != ELEM_UNI;
    const IrType *t = lanes_scalar(l, ir_result(op, i)->type);
    ir_op_add_result(made, vec[i] ? place_vec_type(&l->n, t) : t);
  }
  for (int i = 0; i < 2; i++) yield_in(&arm[i].n, count, arm[i].out, vec);
  for (uint32_t i = 0; i < count; i++)
    lanes_set(l, ir_result(op, i), (PlaceElem){vec[i] ? ELEM_VEC : ELEM_UNI, ir_result(made, i), 0});
}

// Region under `active`, if any lane is; its values as vectors, zeros where it did not run.
static void masked_region(Lanes *l, IrBlock *from, PlaceElem active, uint32_t count, PlaceElem *out) {
  Place *p = l->p;
  if (lanes_empty(from)) {
    const IrOp *end = from->last;
    for (uint32_t i = 0; i < count; i++) out[i] = lanes_get(l, ir_operand(end, i));
    return;
  }
  IrValue *c = lanes_any(l, active);
  IrOp *made = ir_build(lanes_at(l), OP_if, 1, &c, 0, NULL, 2);
  Arm a = emit_arm(l, from, made->regions[0], active);
  bool *vec = arena_array(p->arena, bool, count + 1);
  PlaceElem *none = arena_array(p->arena, PlaceElem, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    vec[i] = a.out[i].kind != ELEM_UNI;
    const IrType *t = a.out[i].kind == ELEM_VEC ? a.out[i].v->type
                      : vec[i]                  ? place_vec_type(&l->n, a.out[i].v->type)
                                                : a.out[i].v->type;
    ir_op_add_result(made, t);
    none[i] = place_uni(place_pconst(p, t, 0));
  }
  yield_in(&a.n, count, a.out, vec);
  IrBuilder e = ir_builder_at_end(made->regions[1]);
  IrValue **zs = arena_array(p->arena, IrValue *, count + 1);
  for (uint32_t i = 0; i < count; i++) zs[i] = none[i].v;
  ir_yield(&e, count, zs);
  for (uint32_t i = 0; i < count; i++)
    out[i] = (PlaceElem){vec[i] ? ELEM_VEC : ELEM_UNI, ir_result(made, i), 0};
}

// v == one lane only: the element that is compared with tid's like, or false.
static bool one_lane(Lanes *l, const IrValue *c, PlaceElem *which, IrValue **same) {
  if (!c->def) return false;
  const IrOp *op = c->def;
  if (op->kind == OP_and)
    return one_lane(l, ir_operand(op, 0), which, same) || one_lane(l, ir_operand(op, 1), which, same);
  if (op->kind != OP_cmp || ir_attr_i(op, ATTR_cmp) != CMP_eq || !ir_type_is_int(ir_operand(op, 0)->type))
    return false;
  const PlaceElem a = lanes_get(l, ir_operand(op, 0)), b = lanes_get(l, ir_operand(op, 1));
  if (a.kind == ELEM_AFF && a.step == 1 && b.kind == ELEM_UNI) {
    *which = a;
    *same = b.v;
    return true;
  }
  if (b.kind == ELEM_AFF && b.step == 1 && a.kind == ELEM_UNI) {
    *which = b;
    *same = a.v;
    return true;
  }
  return false;
}

// if (lane == k && ...) without else and results: scalar code of that lane.
static bool lone_lane(Lanes *l, IrOp *op, PlaceElem cond) {
  Place *p = l->p;
  PlaceElem which;
  IrValue *k;
  if (op->nresults || !lanes_empty(op->regions[1]) || !one_lane(l, ir_operand(op, 0), &which, &k))
    return false;
  PlaceNest *n = &l->n;
  const PlaceElem m = lanes_both(l, l->active, cond);
  IrValue *lane = place_bin(n, OP_sub, k, which.v);
  IrValue *in = place_cmp(n, CMP_ult, lane, place_pconst(p, lane->type, (uint64_t)l->lanes));
  if (lane->type->dtype != IR_i32) {
    const IrOpKind cast = ir_dtypes[lane->type->dtype].bits > 32 ? OP_trunc : OP_ext_u;
    lane = place_pure(n, cast, 1, &lane, lanes_i32(l), NULL);
  }
  IrOp *made = ir_build(lanes_at(l), OP_if, 1, &in, 0, NULL, 2);
  IrBuilder e = ir_builder_at_end(made->regions[1]);
  ir_yield(&e, 0, NULL);
  const LanesSaved s = lanes_enter(l, made->regions[0]);
  IrValue *on = lanes_one(&l->n, m, lane);
  IrOp *also = ir_build(lanes_at(l), OP_if, 1, &on, 0, NULL, 2);
  e = ir_builder_at_end(also->regions[1]);
  ir_yield(&e, 0, NULL);
  Lanes one = {.p = p, .outer = l, .lane = lane, .lanes = 1};
  map_init(&one.vals, p->arena);
  const PlaceNest back = l->n;
  lanes_nest(&one, also->regions[0], lanes_at(l)->loc);
  l->n = one.n; // outer's lanes are taken in the inner block
  l->n.lanes = back.lanes;
  one.tid = place_uni(lanes_one(&one.n, l->tid, lane));
  l->n = back;
  lanes_ops(&one, op->regions[0]);
  ir_yield(lanes_at(&one), 0, NULL);
  ir_yield(lanes_at(l), 0, NULL);
  lanes_leave(l, &s);
  return true;
}

static void emit_if(Lanes *l, IrOp *op) {
  Place *p = l->p;
  const PlaceElem c = lanes_get(l, ir_operand(op, 0));
  int64_t k;
  lanes_at(l)->loc = op->loc;
  if (c.kind == ELEM_UNI && place_is_const(c.v, &k)) {
    IrBlock *b = op->regions[k ? 0 : 1];
    lanes_ops(l, b);
    for (uint32_t i = 0; i < op->nresults; i++)
      lanes_set(l, ir_result(op, i), lanes_get(l, ir_operand(ir_terminator(b), i)));
    return;
  }
  if (c.kind == ELEM_UNI) {
    scalar_if(l, op, c.v, l->active);
    return;
  }
  if (lone_lane(l, op, c)) return;
  PlaceElem *x = arena_array(p->arena, PlaceElem, op->nresults + 1),
            *y = arena_array(p->arena, PlaceElem, op->nresults + 1);
  masked_region(l, op->regions[0], lanes_both(l, l->active, c), op->nresults, x);
  masked_region(l, op->regions[1], lanes_both(l, l->active, lanes_not(l, c)), op->nresults, y);
  for (uint32_t i = 0; i < op->nresults; i++) lanes_set(l, ir_result(op, i), lanes_merge(l, c, x[i], y[i]));
}

static void emit_switch(Lanes *l, IrOp *op) {
  Place *p = l->p;
  const PlaceElem i = lanes_get(l, ir_operand(op, 0));
  const IrAttr *cases = ir_attr(op, ATTR_cases);
  const uint32_t count = op->nresults;
  PlaceElem *out = arena_array(p->arena, PlaceElem, count + 1),
            *x = arena_array(p->arena, PlaceElem, count + 1);
  PlaceElem rest = {ELEM_UNI, NULL, 0}; // lanes that no case has taken
  for (uint32_t r = 0; r < op->nregions; r++) {
    PlaceElem here = rest;
    PlaceElem eq = {ELEM_UNI, NULL, 0};
    if (r + 1 < op->nregions) {
      const PlaceElem c = place_uni(place_pconst(p, lanes_i32(l), (uint32_t)cases->ints.v[r]));
      const bool uni = i.kind == ELEM_UNI;
      eq = (PlaceElem){
          uni ? ELEM_UNI : ELEM_VEC,
          place_cmp(&l->n, CMP_eq, uni ? i.v : place_vec(&l->n, i), uni ? c.v : place_vec(&l->n, c)), 0};
      here = lanes_both(l, rest, eq);
    }
    const PlaceElem m = lanes_both(l, l->active, here);
    if (m.v && here.v) {
      masked_region(l, op->regions[r], here.kind == ELEM_UNI && !l->active.v ? here : m, count, x);
    } else {
      masked_region(l, op->regions[r], place_uni(place_i1(p, true)), count, x);
    }
    for (uint32_t k = 0; k < count; k++) out[k] = r ? lanes_merge(l, here, x[k], out[k]) : x[k];
    if (eq.v) rest = lanes_both(l, rest, lanes_not(l, eq));
  }
  for (uint32_t k = 0; k < count; k++) lanes_set(l, ir_result(op, k), out[k]);
}

// All lanes run the same turns.
static void uniform_for(Lanes *l, IrOp *op, const PlaceElem *head) {
  Place *p = l->p;
  const uint32_t count = op->nresults;
  IrValue **ops = arena_array(p->arena, IrValue *, 3 + count);
  const IrType **types = arena_array(p->arena, const IrType *, count + 1);
  bool *vec = arena_array(p->arena, bool, count + 1);
  for (int i = 0; i < 3; i++) ops[i] = head[i].v;
  for (uint32_t i = 0; i < count; i++) {
    ops[3 + i] = place_vec(&l->n, lanes_get(l, ir_operand(op, 3 + i)));
    types[i] = ops[3 + i]->type;
    vec[i] = true;
  }
  IrOp *made = ir_build(lanes_at(l), OP_for, 3 + count, ops, count, types, 1);
  place_copy_attrs(made, op);
  IrBlock *b = made->regions[0];
  const uint32_t log = l->log.len;
  lanes_set(l, op->regions[0]->args.data[0], place_uni(ir_block_arg(b, ops[0]->type, NULL)));
  if (!ir_type_is_thread(op->regions[0]->args.data[0]->type))
    map_setp(&p->values, op->regions[0]->args.data[0], b->args.data[0]);
  for (uint32_t i = 0; i < count; i++) {
    const PlaceElem e = {l->lanes == 1 ? ELEM_UNI : ELEM_VEC, ir_block_arg(b, types[i], NULL), 0};
    lanes_set(l, op->regions[0]->args.data[1 + i], e);
  }
  Arm a = emit_arm(l, op->regions[0], b, l->active);
  while (l->log.len > log) map_del(&l->vals, (uint64_t)(uintptr_t)vec_pop(&l->log));
  yield_in(&a.n, count, a.out, vec);
  for (uint32_t i = 0; i < count; i++)
    lanes_set(l, ir_result(op, i), (PlaceElem){l->lanes == 1 ? ELEM_UNI : ELEM_VEC, ir_result(made, i), 0});
}

// for with bounds of each lane: while any lane has a turn left.
static void lane_for(Lanes *l, IrOp *op, const PlaceElem *head) {
  Place *p = l->p;
  const uint32_t count = op->nresults;
  const IrType *it = lanes_scalar(l, ir_operand(op, 0)->type);
  const bool thin = head[0].kind != ELEM_VEC && head[2].kind == ELEM_UNI; // the index moves as a whole
  int64_t step;
  const bool down = head[2].kind == ELEM_UNI && place_is_const(head[2].v, &step) && step < 0;
  IrValue **ops = arena_array(p->arena, IrValue *, 2 + count);
  const IrType **types = arena_array(p->arena, const IrType *, 2 + count);
  ops[0] = thin ? head[0].v : place_vec(&l->n, head[0]);
  for (uint32_t i = 0; i < count; i++) ops[1 + i] = place_vec(&l->n, lanes_get(l, ir_operand(op, 3 + i)));
  for (uint32_t i = 0; i <= count; i++) types[i] = ops[i]->type;
  IrOp *made = ir_build(lanes_at(l), OP_while, 1 + count, ops, 1 + count, types, 2);
  IrBlock *test = made->regions[0], *body = made->regions[1];
  for (uint32_t i = 0; i <= count; i++) {
    ir_block_arg(test, types[i], NULL);
    ir_block_arg(body, types[i], NULL);
  }
  const IrCmp cmp = ir_attr_i(op, ATTR_uns_iv) ? (down ? CMP_ugt : CMP_ult) : down ? CMP_sgt : CMP_slt;
  // a negative step of unknown sign is not in the language: constant only
  PlaceElem iv = {thin ? head[0].kind : ELEM_VEC, test->args.data[0], thin ? head[0].step : 0};
  LanesSaved s = lanes_enter(l, test);
  IrValue *left = place_cmp(&l->n, cmp, place_vec(&l->n, iv), place_vec(&l->n, head[1]));
  PlaceElem m = lanes_both(l, l->active, (PlaceElem){ELEM_VEC, left, 0});
  IrValue **pass = arena_array(p->arena, IrValue *, 2 + count);
  pass[0] = lanes_any(l, m);
  for (uint32_t i = 0; i <= count; i++) pass[1 + i] = test->args.data[i];
  ir_build(lanes_at(l), OP_cond_yield, 2 + count, pass, 0, NULL, 0);
  lanes_leave(l, &s);
  // the body's mask is made again there: it may not cross from the test
  s = lanes_enter(l, body);
  iv.v = body->args.data[0];
  left = place_cmp(&l->n, cmp, place_vec(&l->n, iv), place_vec(&l->n, head[1]));
  m = lanes_both(l, l->active, (PlaceElem){ELEM_VEC, left, 0});
  const PlaceElem keep = l->active;
  l->active = m;
  IrBlock *old = op->regions[0];
  if (thin) map_set(&l->n.divs, (uint64_t)(uintptr_t)iv.v, 1);
  lanes_set(l, old->args.data[0], iv);
  for (uint32_t i = 0; i < count; i++)
    lanes_set(l, old->args.data[1 + i], (PlaceElem){ELEM_VEC, body->args.data[1 + i], 0});
  lanes_ops(l, old);
  IrValue **next = arena_array(p->arena, IrValue *, 1 + count);
  const IrOp *end = ir_terminator(old);
  if (thin) {
    next[0] = place_bin(&l->n, OP_add, iv.v, head[2].v);
  } else {
    next[0] = place_bin(&l->n, OP_add, iv.v, place_vec(&l->n, head[2]));
  }
  for (uint32_t i = 0; i < count; i++)
    next[1 + i] = place_vec(&l->n, lanes_merge(l, m, lanes_get(l, ir_operand(end, i)),
                                               (PlaceElem){ELEM_VEC, body->args.data[1 + i], 0}));
  ir_yield(lanes_at(l), 1 + count, next);
  l->active = keep;
  lanes_leave(l, &s);
  (void)it;
  for (uint32_t i = 0; i < count; i++)
    lanes_set(l, ir_result(op, i), (PlaceElem){ELEM_VEC, ir_result(made, 1 + i), 0});
}

static void emit_for(Lanes *l, IrOp *op) {
  PlaceElem head[3];
  bool uni = true;
  for (uint32_t i = 0; i < 3; i++) {
    head[i] = lanes_get(l, ir_operand(op, i));
    uni &= head[i].kind == ELEM_UNI;
  }
  lanes_at(l)->loc = op->loc;
  if (uni)
    uniform_for(l, op, head);
  else
    lane_for(l, op, head);
}

// while any lane goes on. A lane's results are what it passed when it stopped.
//   carried: go (mask), the loop's own carried values, results so far
static void emit_while(Lanes *l, IrOp *op) {
  Place *p = l->p;
  const uint32_t nc = op->noperands, nr = op->nresults, n = 1 + nc + nr;
  PlaceNest *nest = &l->n;
  lanes_at(l)->loc = op->loc;
  const IrType *i1 = ir_type_scalar(p->ctx, IR_i1, LEVEL_program);
  IrValue **ops = arena_array(p->arena, IrValue *, n);
  const IrType **types = arena_array(p->arena, const IrType *, n);
  ops[0] = place_vec(nest, l->active.v ? l->active : place_uni(place_i1(p, true)));
  (void)i1;
  for (uint32_t i = 0; i < nc; i++) ops[1 + i] = place_vec(nest, lanes_get(l, ir_operand(op, i)));
  for (uint32_t i = 0; i < nr; i++) ops[1 + nc + i] = place_vec(nest, lanes_zero(l, ir_result(op, i)->type));
  for (uint32_t i = 0; i < n; i++) types[i] = ops[i]->type;
  IrOp *made = ir_build(lanes_at(l), OP_while, n, ops, n, types, 2);
  if (ir_attr(op, ATTR_label)) ir_set_attr_s(made, ATTR_label, ir_attr(op, ATTR_label)->s);
  if (ir_attr_i(op, ATTR_poll)) ir_set_attr_i(made, ATTR_poll, 1);
  IrBlock *test = made->regions[0], *body = made->regions[1];
  for (uint32_t i = 0; i < n; i++) {
    ir_block_arg(test, types[i], NULL);
    ir_block_arg(body, types[i], NULL);
  }
  const PlaceElemKind k = l->lanes == 1 ? ELEM_UNI : ELEM_VEC;
  const PlaceElem keep = l->active;
  const bool scalar = l->lanes == 1;
  LanesSaved s = lanes_enter(l, test);
  const PlaceElem go = {k, test->args.data[0], 0};
  l->active = scalar ? (PlaceElem){ELEM_UNI, NULL, 0} : go;
  for (uint32_t i = 0; i < nc; i++)
    lanes_set(l, op->regions[0]->args.data[i], (PlaceElem){k, test->args.data[1 + i], 0});
  lanes_ops(l, op->regions[0]);
  const IrOp *end = ir_terminator(op->regions[0]);
  const PlaceElem c = lanes_get(l, ir_operand(end, 0));
  IrValue **pass = arena_array(p->arena, IrValue *, n + 1);
  const PlaceElem on = lanes_both(l, scalar ? (PlaceElem){ELEM_UNI, NULL, 0} : go, c);
  pass[1] = place_vec(&l->n, on);
  for (uint32_t i = 0; i < nc; i++) pass[2 + i] = test->args.data[1 + i];
  for (uint32_t i = 0; i < nr; i++) {
    const PlaceElem v = lanes_get(l, ir_operand(end, 1 + i));
    pass[2 + nc + i] = place_vec(&l->n, lanes_merge(l, scalar ? (PlaceElem){ELEM_UNI, NULL, 0} : go, v,
                                                    (PlaceElem){k, test->args.data[1 + nc + i], 0}));
  }
  pass[0] = scalar ? on.v : lanes_any(l, (PlaceElem){ELEM_VEC, pass[1], 0});
  ir_build(lanes_at(l), OP_cond_yield, n + 1, pass, 0, NULL, 0);
  lanes_leave(l, &s);

  s = lanes_enter(l, body);
  const PlaceElem in = {k, body->args.data[0], 0};
  l->active = scalar ? (PlaceElem){ELEM_UNI, NULL, 0} : in;
  for (uint32_t i = 0; i < nr; i++)
    lanes_set(l, op->regions[1]->args.data[i], (PlaceElem){k, body->args.data[1 + nc + i], 0});
  lanes_ops(l, op->regions[1]);
  end = ir_terminator(op->regions[1]);
  IrValue **next = arena_array(p->arena, IrValue *, n);
  next[0] = body->args.data[0];
  for (uint32_t i = 0; i < nc; i++)
    next[1 + i] = place_vec(&l->n, lanes_merge(l, l->active, lanes_get(l, ir_operand(end, i)),
                                               (PlaceElem){k, body->args.data[1 + i], 0}));
  for (uint32_t i = 0; i < nr; i++) next[1 + nc + i] = body->args.data[1 + nc + i];
  ir_yield(lanes_at(l), n, next);
  l->active = keep;
  lanes_leave(l, &s);
  for (uint32_t i = 0; i < nr; i++)
    lanes_set(l, ir_result(op, i), (PlaceElem){k, ir_result(made, 1 + nc + i), 0});
}

void lanes_control(Lanes *l, IrOp *op) {
  switch (op->kind) {
  case OP_if: emit_if(l, op); break;
  case OP_for: emit_for(l, op); break;
  case OP_while: emit_while(l, op); break;
  default: emit_switch(l, op);
  }
}
