// place_thread: code at thread level, a run of ops between what the program does.
//
//   warp_for {count=W} { (%w)   tid = w * 32 + lane        UNI: one value a warp, AFF: base + lane, VEC: 32 lanes
//     if any(mask) { ... }      control by threads is masks; every region runs with some lane active
//     for lane { if mask[lane] ordered access }            what is ordered goes lane by lane
//   }
//
// Where one thread alone may act (if tid == 0) its code is scalar; a run that does nothing else needs no warp_for.
// Pure values are computed again in each run that wants them; others that outlive their run live in buffers [W * 32].
#include "pass/place.h"

#include <string.h>

enum {
  AGAIN_DEPTH = 48, // longer expressions are kept, piece by piece, rather than computed again
};

typedef struct Lanes Lanes;
struct Lanes {
  Place *p;
  Lanes *outer;  // scalar code of one of outer's lanes, or NULL
  IrValue *lane; // which
  int lanes;     // 1: scalar code
  PlaceElem tid;
  PlaceElem active; // mask; v NULL: all
  PlaceNest n;      // of the current block
  Map vals;         // thread-level values -> PlaceElem*
  Vec(const IrValue *) log;
};

static PlaceElem get(Lanes *l, IrValue *v);
static void emit_ops(Lanes *l, IrBlock *b);
static void emit_op(Lanes *l, IrOp *op);

// ---- what belongs in a run -----------------------------------------------------------------------------------------------------
static bool is_control(const IrOp *op) {
  return op->kind == OP_if || op->kind == OP_for || op->kind == OP_while || op->kind == OP_switch;
}

static bool only_threads(const IrBlock *b, bool *some, int depth) {
  for (const IrOp *op = b->first; op; op = op->next) {
    if (ir_ops[op->kind].traits & TRAIT_TERMINATOR) continue;
    const IrExecutor e = ir_op_executor(op);
    if (e == EXEC_BLOCK) return false;
    if (is_control(op)) {
      if (depth > 60) return false;
      for (uint32_t i = 0; i < op->nregions; i++) {
        if (!only_threads(op->regions[i], some, depth + 1)) return false;
      }
      continue;
    }
    if (e == EXEC_THREAD || e == EXEC_WARP) {
      *some = true;
      continue;
    }
    if (!ir_op_is_pure(op) || (op->nresults && ir_result(op, 0)->type->kind >= IR_TILE)) return false;
  }
  return true;
}

bool place_is_thread_op(const IrOp *op) {
  if (ir_ops[op->kind].traits & TRAIT_TERMINATOR) return false;
  const IrExecutor e = ir_op_executor(op);
  if (e == EXEC_THREAD || e == EXEC_WARP) return true;
  if (e != EXEC_PROGRAM || !is_control(op)) return false;
  for (uint32_t i = 0; i < op->nresults; i++) { // program-level results are for the program
    if (!ir_type_is_thread(ir_result(op, i)->type)) return false;
  }
  if (op->kind == OP_while) {
    for (uint32_t i = 0; i < op->noperands; i++) {
      if (!ir_type_is_thread(ir_operand(op, i)->type)) return false;
    }
  }
  bool some = op->nresults > 0;
  for (uint32_t i = 0; i < op->nregions; i++) {
    if (!only_threads(op->regions[i], &some, 0)) return false;
  }
  return some;
}

// Computed again where it is wanted.
static bool computed(const IrOp *op) {
  switch (op->kind) {
  case OP_const:
  case OP_tid:
  case OP_to_thread:
  case OP_symm_at: return true;
  default: return place_op_is_elementwise(op);
  }
}
static bool again(const Place *p, const IrOp *op) {
  return computed(op) && p->info[ir_result(op, 0)->id].depth % AGAIN_DEPTH != AGAIN_DEPTH - 1;
}

// ---- blocks and values -----------------------------------------------------------------------------------------------------------
static IrBuilder *at(Lanes *l) { return &l->n.at[0]; }

static void nest_at(Lanes *l, IrBlock *b, Loc loc) {
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

static void set(Lanes *l, const IrValue *v, PlaceElem e) {
  PlaceElem *x = arena_new(l->p->arena, PlaceElem);
  *x = e;
  if (!map_getp(&l->vals, v)) vec_push(l->p->arena, &l->log, v);
  map_setp(&l->vals, v, x);
}

typedef struct Saved {
  PlaceNest n;
  uint32_t log;
} Saved;
static Saved enter(Lanes *l, IrBlock *b) {
  const Saved s = {l->n, l->log.len};
  nest_at(l, b, l->n.at[0].loc);
  return s;
}
static void leave(Lanes *l, const Saved *s) {
  while (l->log.len > s->log) map_del(&l->vals, (uint64_t)(uintptr_t)vec_pop(&l->log));
  const Loc loc = l->n.at[0].loc;
  l->n = s->n;
  l->n.at[0].loc = loc;
}

static const IrType *scalar_type(Lanes *l, const IrType *t) {
  return ir_type_with_level(l->p->ctx, t, LEVEL_program);
}
static const IrType *i32_type(Lanes *l) { return ir_type_scalar(l->p->ctx, IR_i32, LEVEL_program); }

// One lane of e, which belongs to the lanes of n.
static IrValue *lane_of(PlaceNest *n, PlaceElem e, IrValue *lane) {
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
        place_pconst(p, scalar_type(l, ir_result(op, 0)->type), (uint64_t)ir_attr_i(op, ATTR_value)));
  case OP_tid: return l->tid;
  case OP_to_thread: return place_uni(place_value(p, ir_operand(op, 0)));
  default: break;
  }
  PlaceElem in[4] = {{0}};
  const uint32_t count = op->noperands < 4 ? op->noperands : 4;
  for (uint32_t i = 0; i < count; i++) {
    IrValue *v = ir_operand(op, i);
    if (v && v->type->kind != IR_TOKEN) in[i] = get(l, v);
  }
  at(l)->loc = op->loc;
  if (op->kind == OP_symm_at) {
    const IrType *t = scalar_type(l, ir_result(op, 0)->type);
    if (in[0].kind != ELEM_VEC && in[1].kind == ELEM_UNI) // peers' segments lie alike
      return (PlaceElem){in[0].kind, place_pure(&l->n, OP_symm_at, 2, (IrValue *[]){in[0].v, in[1].v}, t, op),
                         in[0].step};
    IrValue *ops[2] = {place_vec(&l->n, in[0]), place_vec(&l->n, in[1])};
    return (PlaceElem){ELEM_VEC, place_pure(&l->n, OP_symm_at, 2, ops, place_vec_type(&l->n, t), op), 0};
  }
  return place_elementwise(&l->n, op, in, count);
}

static PlaceElem *known(Lanes *l, const IrValue *v) {
  PlaceElem *e = map_getp(&l->vals, v);
  if (e || !l->outer) return e;
  e = known(l->outer, v);
  if (!e) return NULL;
  set(l, v, place_uni(lane_of(&l->n, *e, l->lane)));
  return map_getp(&l->vals, v);
}

static PlaceElem get(Lanes *l, IrValue *v) {
  Place *p = l->p;
  if (!ir_type_is_thread(v->type)) return place_uni(place_value(p, v));
  const PlaceElem *e = known(l, v);
  if (e) return *e;
  PlaceElem r;
  if (v->def && again(l->p, v->def)) {
    r = compute(l, v->def);
  } else {
    PlaceBuf *b = map_getp(&p->spills, v);
    if (!b)
      place_fail(p, v->def ? v->def->loc : LOC_NONE, "a thread-level value is used before it is placed");
    r = place_read(&l->n, b, &l->tid, 0);
  }
  set(l, v, r);
  return r;
}

// ---- masks -------------------------------------------------------------------------------------------------------------------------
static IrValue *any(Lanes *l, PlaceElem m) { // of lanes; m is not "all"
  if (m.kind == ELEM_UNI) return m.v;
  const IrType *t = ir_type_scalar(l->p->ctx, l->p->m->lanes == 64 ? IR_i64 : IR_i32, LEVEL_program);
  IrValue *bits = ir_result(ir_build(at(l), OP_ballot, 1, &m.v, 1, &t, 0), 0);
  return place_cmp(&l->n, CMP_ne, bits, place_pconst(l->p, t, 0));
}
static PlaceElem both(Lanes *l, PlaceElem a, PlaceElem b) {
  if (!a.v) return b;
  if (!b.v) return a;
  if (a.kind == ELEM_UNI && b.kind == ELEM_UNI) return place_uni(place_bin(&l->n, OP_and, a.v, b.v));
  return (PlaceElem){ELEM_VEC, place_bin(&l->n, OP_and, place_vec(&l->n, a), place_vec(&l->n, b)), 0};
}
static PlaceElem inverted(Lanes *l, PlaceElem a) {
  IrValue *one = place_pconst(l->p, a.v->type, 1);
  return (PlaceElem){a.kind, place_pure(&l->n, OP_xor, 2, (IrValue *[]){a.v, one}, a.v->type, NULL), 0};
}
static PlaceElem merge(Lanes *l, PlaceElem c, PlaceElem x, PlaceElem y) { // x where c (all: x)
  if (!c.v) return x;
  PlaceNest *n = &l->n;
  if (c.kind == ELEM_UNI && x.kind == ELEM_UNI && y.kind == ELEM_UNI)
    return place_uni(place_sel(n, c.v, x.v, y.v));
  return (PlaceElem){l->lanes == 1 ? ELEM_UNI : ELEM_VEC,
                     place_sel(n, place_vec(n, c), place_vec(n, x), place_vec(n, y)), 0};
}

static PlaceElem zero_of(Lanes *l, const IrType *t) {
  return place_uni(place_pconst(l->p, scalar_type(l, t), 0));
}

// ---- lane by lane --------------------------------------------------------------------------------------------------------------------
static void yield_here(Lanes *l, uint32_t n, IrValue *const *vs) { ir_yield(at(l), n, vs); }

// op once for each active lane under mask too (v NULL: none), as a scalar op without its operand `mask_at`.
static void each_lane(Lanes *l, IrOp *op, PlaceElem mask, int mask_at) {
  Place *p = l->p;
  const uint32_t nops = op->noperands;
  PlaceElem *in = arena_array(p->arena, PlaceElem, nops + 1);
  IrValue **ops = arena_array(p->arena, IrValue *, nops + 1);
  for (uint32_t i = 0; i < nops; i++) {
    if (ir_operand(op, i) && (int)i != mask_at) in[i] = get(l, ir_operand(op, i));
  }
  IrValue *r = op->nresults ? ir_result(op, 0) : NULL;
  const bool value = r && r->type->kind != IR_TOKEN;
  const IrType *rt = r ? (value ? scalar_type(l, r->type) : r->type) : NULL;
  const PlaceElem m = both(l, l->active, mask);
  PlaceElem none = value ? zero_of(l, r->type) : (PlaceElem){0};
  at(l)->loc = op->loc;
  IrOp *loop = NULL;
  IrValue *lane = NULL, *so_far = NULL;
  Saved s = {0};
  if (l->lanes > 1) {
    IrValue *head[4] = {place_i32(p, 0), place_i32(p, l->lanes), place_i32(p, 1), NULL};
    const IrType *vt = NULL;
    if (value) {
      head[3] = place_vec(&l->n, none);
      vt = head[3]->type;
    }
    loop = ir_build(at(l), OP_for, value ? 4 : 3, head, value, &vt, 1);
    lane = ir_block_arg(loop->regions[0], i32_type(l), NULL);
    if (value) so_far = ir_block_arg(loop->regions[0], vt, NULL);
    s = enter(l, loop->regions[0]);
  }
  IrOp *cond = NULL;
  Saved si = {0};
  IrValue *got = NULL;
  if (m.v) {
    IrValue *c = lane ? lane_of(&l->n, m, lane) : m.v;
    const IrType *ct = value ? (lane ? so_far->type : rt) : NULL;
    cond = ir_build(at(l), OP_if, 1, &c, value, &ct, 2);
    si = enter(l, cond->regions[0]);
  }
  const uint32_t marks = op->kind == OP_print; // the thread goes in front
  if (marks) ops[0] = lane ? lane_of(&l->n, l->tid, lane) : l->tid.v;
  for (uint32_t i = 0; i < nops; i++)
    ops[marks + i] = !in[i].v ? NULL : lane ? lane_of(&l->n, in[i], lane) : in[i].v;
  at(l)->loc = op->loc;
  IrOp *made = ir_build(at(l), op->kind, marks + nops, ops, op->nresults, &rt, 0);
  place_copy_attrs(made, op);
  if (marks) place_print_where(p, made, op, -1, 1);
  if (value) {
    got = ir_result(made, 0);
    if (lane)
      got =
          ir_result(ir_build(at(l), OP_vec_set, 3, (IrValue *[]){so_far, lane, got}, 1, &so_far->type, 0), 0);
  }
  if (cond) {
    yield_here(l, value, &got);
    leave(l, &si);
    IrBuilder e = ir_builder_at_end(cond->regions[1]);
    IrValue *keep = lane ? so_far : none.v;
    ir_yield(&e, value, &keep);
    if (value) got = ir_result(cond, 0);
  }
  if (loop) {
    yield_here(l, value, &got);
    leave(l, &s);
    if (value) got = ir_result(loop, 0);
  }
  if (value) set(l, r, (PlaceElem){l->lanes == 1 ? ELEM_UNI : ELEM_VEC, got, 0});
}

// Once for all active lanes, which agree on the operands; under mask as well.
static void once(Lanes *l, IrOp *op, PlaceElem mask, int mask_at) {
  Place *p = l->p;
  IrValue **ops = arena_array(p->arena, IrValue *, op->noperands + 1);
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (ir_operand(op, i) && (int)i != mask_at) ops[i] = get(l, ir_operand(op, i)).v;
  }
  IrValue *r = op->nresults ? ir_result(op, 0) : NULL;
  const bool value = r && r->type->kind != IR_TOKEN;
  const IrType *rt = r ? (value ? scalar_type(l, r->type) : r->type) : NULL;
  at(l)->loc = op->loc;
  IrOp *cond = NULL;
  Saved s = {0};
  if (mask.v) {
    IrValue *c = any(l, both(l, l->active, mask));
    const IrType *ct = value ? rt : NULL;
    cond = ir_build(at(l), OP_if, 1, &c, value, &ct, 2);
    s = enter(l, cond->regions[0]);
  }
  IrOp *made = ir_build(at(l), op->kind, op->noperands, ops, op->nresults, &rt, 0);
  place_copy_attrs(made, op);
  IrValue *got = value ? ir_result(made, 0) : NULL;
  if (cond) {
    yield_here(l, value, &got);
    leave(l, &s);
    IrBuilder e = ir_builder_at_end(cond->regions[1]);
    IrValue *none = value ? zero_of(l, r->type).v : NULL;
    ir_yield(&e, value, &none);
    if (value) got = ir_result(cond, 0);
  }
  if (value) set(l, r, place_uni(got));
}

static bool agree(Lanes *l, const IrOp *op, int mask_at) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *v = ir_operand(op, i);
    if (v && v->type->kind != IR_TOKEN && (int)i != mask_at && get(l, v).kind != ELEM_UNI) return false;
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
  const IrType *t = i32_type(l);
  IrOp *red = ir_build(at(l), OP_reduce, 1, &v, 1, &t, 1);
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
    if (v) ops[i] = lane_of(&l->n, get(l, v), first);
  }
  place_copy_attrs(ir_build(at(l), op->kind, op->noperands, ops, 0, NULL, 0), op);
}

// ---- memory ---------------------------------------------------------------------------------------------------------------------------
static PlaceElem mask_operand(Lanes *l, const IrOp *op, uint32_t i) {
  PlaceElem m = {ELEM_UNI, NULL, 0};
  if (i < op->noperands && ir_operand(op, i)) m = get(l, ir_operand(op, i));
  int64_t c;
  if (m.v && m.kind == ELEM_UNI && place_is_const(m.v, &c) && c) m.v = NULL;
  return m;
}

static void emit_load(Lanes *l, IrOp *op) {
  PlaceNest *n = &l->n;
  IrValue *r = ir_result(op, 0);
  const PlaceElem ptr = get(l, ir_operand(op, 0)), mask = mask_operand(l, op, 1);
  PlaceElem other = {ELEM_UNI, NULL, 0};
  if (mask.v && ir_operand(op, 2)) other = get(l, ir_operand(op, 2));
  const bool ordered = ir_op_effects(op).order != ORDER_weak;
  at(l)->loc = op->loc;
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
    if (other.v) set(l, r, merge(l, mask, get(l, r), other));
    return;
  }
  const IrType *t = scalar_type(l, r->type);
  const PlaceElem m = both(l, l->active, mask);
  if (l->lanes == 1) {
    IrValue *ops[3] = {ptr.v, m.v, other.v};
    got = place_uni(ir_result(ir_build(at(l), OP_load, 3, ops, 1, &t, 0), 0));
  } else {
    const bool line = ptr.kind == ELEM_AFF && ptr.step == 1;
    IrValue *ops[3] = {line ? ptr.v : place_vec(n, ptr), m.v ? place_vec(n, m) : NULL,
                       other.v ? place_vec(n, other) : NULL};
    const IrType *vt = place_vec_type(n, t);
    got = (PlaceElem){ELEM_VEC,
                      ir_result(ir_build(at(l), line ? OP_load_vec : OP_load, 3, ops, 1, &vt, 0), 0), 0};
  }
  set(l, r, got);
}

static void emit_store(Lanes *l, IrOp *op) {
  PlaceNest *n = &l->n;
  const PlaceElem ptr = get(l, ir_operand(op, 0)), v = get(l, ir_operand(op, 1)),
                  mask = mask_operand(l, op, 2);
  at(l)->loc = op->loc;
  if (l->lanes == 1 || (ptr.kind == ELEM_UNI && v.kind == ELEM_UNI)) {
    once(l, op, mask, 2);
    return;
  }
  if (ir_op_effects(op).order != ORDER_weak) {
    each_lane(l, op, mask, 2);
    return;
  }
  const PlaceElem m = both(l, l->active, mask);
  const bool line = ptr.kind == ELEM_AFF && ptr.step == 1;
  IrValue *ops[3] = {line ? ptr.v : place_vec(n, ptr), place_vec(n, v), m.v ? place_vec(n, m) : NULL};
  ir_build(at(l), line ? OP_store_vec : OP_store, 3, ops, 0, NULL, 0);
}

static PlaceElem index_elem(Lanes *l, IrValue *v) {
  PlaceElem e = get(l, v);
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
      idx[i - first] = merge(l, l->active, idx[i - first], place_const(&l->n, 0));
  }
  at(l)->loc = op->loc;
  l->n.out = l->n.at[0];
  if (op->kind == OP_mem_get) {
    set(l, ir_result(op, 0), place_read(&l->n, b, idx, 0));
    return;
  }
  const PlaceElem v = get(l, ir_operand(op, 1));
  if ((uni && v.kind == ELEM_UNI) || (!uni && !l->active.v)) {
    place_write(&l->n, b, idx, v);
    return;
  }
  each_lane(l, op, (PlaceElem){ELEM_UNI, NULL, 0}, -1);
}

// ---- control ----------------------------------------------------------------------------------------------------------------------------
typedef struct Arm {
  PlaceNest n;
  PlaceElem *out;
} Arm;

// Emits a region's ops into block; out: what it yields (from operand `skip` on). The nest stays usable for conversions.
static Arm emit_arm(Lanes *l, IrBlock *from, IrBlock *to, PlaceElem active) {
  const PlaceElem keep = l->active;
  const Saved s = enter(l, to);
  l->active = active;
  emit_ops(l, from);
  const IrOp *end = ir_terminator(from);
  Arm a = {.out = arena_array(l->p->arena, PlaceElem, end->noperands + 1)};
  for (uint32_t i = 0; i < end->noperands; i++) {
    if (ir_operand(end, i)->type->kind != IR_TOKEN) a.out[i] = get(l, ir_operand(end, i));
  }
  a.n = l->n;
  leave(l, &s);
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
  IrOp *made = ir_build(at(l), OP_if, 1, &c, 0, NULL, 2);
  Arm arm[2];
  for (int i = 0; i < 2; i++) arm[i] = emit_arm(l, op->regions[i], made->regions[i], active);
  bool *vec = arena_array(p->arena, bool, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    vec[i] = arm[0].out[i].kind != ELEM_UNI || arm[1].out[i].kind != ELEM_UNI;
    const IrType *t = scalar_type(l, ir_result(op, i)->type);
    ir_op_add_result(made, vec[i] ? place_vec_type(&l->n, t) : t);
  }
  for (int i = 0; i < 2; i++) yield_in(&arm[i].n, count, arm[i].out, vec);
  for (uint32_t i = 0; i < count; i++)
    set(l, ir_result(op, i), (PlaceElem){vec[i] ? ELEM_VEC : ELEM_UNI, ir_result(made, i), 0});
}

static bool empty(const IrBlock *b) { return b->first == b->last; }

// Region under `active`, if any lane is; its values as vectors, zeros where it did not run.
static void masked_region(Lanes *l, IrBlock *from, PlaceElem active, uint32_t count, PlaceElem *out) {
  Place *p = l->p;
  if (empty(from)) {
    const IrOp *end = from->last;
    for (uint32_t i = 0; i < count; i++) out[i] = get(l, ir_operand(end, i));
    return;
  }
  IrValue *c = any(l, active);
  IrOp *made = ir_build(at(l), OP_if, 1, &c, 0, NULL, 2);
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
  const PlaceElem a = get(l, ir_operand(op, 0)), b = get(l, ir_operand(op, 1));
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
  if (op->nresults || !empty(op->regions[1]) || !one_lane(l, ir_operand(op, 0), &which, &k)) return false;
  PlaceNest *n = &l->n;
  const PlaceElem m = both(l, l->active, cond);
  IrValue *lane = place_bin(n, OP_sub, k, which.v);
  IrValue *in = place_cmp(n, CMP_ult, lane, place_pconst(p, lane->type, (uint64_t)l->lanes));
  if (lane->type->dtype != IR_i32) {
    const IrOpKind cast = ir_dtypes[lane->type->dtype].bits > 32 ? OP_trunc : OP_ext_u;
    lane = place_pure(n, cast, 1, &lane, i32_type(l), NULL);
  }
  IrOp *made = ir_build(at(l), OP_if, 1, &in, 0, NULL, 2);
  IrBuilder e = ir_builder_at_end(made->regions[1]);
  ir_yield(&e, 0, NULL);
  const Saved s = enter(l, made->regions[0]);
  IrValue *on = lane_of(&l->n, m, lane);
  IrOp *also = ir_build(at(l), OP_if, 1, &on, 0, NULL, 2);
  e = ir_builder_at_end(also->regions[1]);
  ir_yield(&e, 0, NULL);
  Lanes one = {.p = p, .outer = l, .lane = lane, .lanes = 1};
  map_init(&one.vals, p->arena);
  const PlaceNest back = l->n;
  nest_at(&one, also->regions[0], at(l)->loc);
  l->n = one.n; // outer's lanes are taken in the inner block
  l->n.lanes = back.lanes;
  one.tid = place_uni(lane_of(&one.n, l->tid, lane));
  l->n = back;
  emit_ops(&one, op->regions[0]);
  ir_yield(at(&one), 0, NULL);
  ir_yield(at(l), 0, NULL);
  leave(l, &s);
  return true;
}

static void emit_if(Lanes *l, IrOp *op) {
  Place *p = l->p;
  const PlaceElem c = get(l, ir_operand(op, 0));
  int64_t k;
  at(l)->loc = op->loc;
  if (c.kind == ELEM_UNI && place_is_const(c.v, &k)) {
    IrBlock *b = op->regions[k ? 0 : 1];
    emit_ops(l, b);
    for (uint32_t i = 0; i < op->nresults; i++)
      set(l, ir_result(op, i), get(l, ir_operand(ir_terminator(b), i)));
    return;
  }
  if (c.kind == ELEM_UNI) {
    scalar_if(l, op, c.v, l->active);
    return;
  }
  if (lone_lane(l, op, c)) return;
  PlaceElem *x = arena_array(p->arena, PlaceElem, op->nresults + 1),
            *y = arena_array(p->arena, PlaceElem, op->nresults + 1);
  masked_region(l, op->regions[0], both(l, l->active, c), op->nresults, x);
  masked_region(l, op->regions[1], both(l, l->active, inverted(l, c)), op->nresults, y);
  for (uint32_t i = 0; i < op->nresults; i++) set(l, ir_result(op, i), merge(l, c, x[i], y[i]));
}

static void emit_switch(Lanes *l, IrOp *op) {
  Place *p = l->p;
  const PlaceElem i = get(l, ir_operand(op, 0));
  const IrAttr *cases = ir_attr(op, ATTR_cases);
  const uint32_t count = op->nresults;
  PlaceElem *out = arena_array(p->arena, PlaceElem, count + 1),
            *x = arena_array(p->arena, PlaceElem, count + 1);
  PlaceElem rest = {ELEM_UNI, NULL, 0}; // lanes that no case has taken
  for (uint32_t r = 0; r < op->nregions; r++) {
    PlaceElem here = rest;
    PlaceElem eq = {ELEM_UNI, NULL, 0};
    if (r + 1 < op->nregions) {
      const PlaceElem c = place_uni(place_pconst(p, i32_type(l), (uint32_t)cases->ints.v[r]));
      const bool uni = i.kind == ELEM_UNI;
      eq = (PlaceElem){
          uni ? ELEM_UNI : ELEM_VEC,
          place_cmp(&l->n, CMP_eq, uni ? i.v : place_vec(&l->n, i), uni ? c.v : place_vec(&l->n, c)), 0};
      here = both(l, rest, eq);
    }
    const PlaceElem m = both(l, l->active, here);
    if (m.v && here.v) {
      masked_region(l, op->regions[r], here.kind == ELEM_UNI && !l->active.v ? here : m, count, x);
    } else {
      masked_region(l, op->regions[r], place_uni(place_i1(p, true)), count, x);
    }
    for (uint32_t k = 0; k < count; k++) out[k] = r ? merge(l, here, x[k], out[k]) : x[k];
    if (eq.v) rest = both(l, rest, inverted(l, eq));
  }
  for (uint32_t k = 0; k < count; k++) set(l, ir_result(op, k), out[k]);
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
    ops[3 + i] = place_vec(&l->n, get(l, ir_operand(op, 3 + i)));
    types[i] = ops[3 + i]->type;
    vec[i] = true;
  }
  IrOp *made = ir_build(at(l), OP_for, 3 + count, ops, count, types, 1);
  place_copy_attrs(made, op);
  IrBlock *b = made->regions[0];
  const uint32_t log = l->log.len;
  set(l, op->regions[0]->args.data[0], place_uni(ir_block_arg(b, ops[0]->type, NULL)));
  if (!ir_type_is_thread(op->regions[0]->args.data[0]->type))
    map_setp(&p->values, op->regions[0]->args.data[0], b->args.data[0]);
  for (uint32_t i = 0; i < count; i++) {
    const PlaceElem e = {l->lanes == 1 ? ELEM_UNI : ELEM_VEC, ir_block_arg(b, types[i], NULL), 0};
    set(l, op->regions[0]->args.data[1 + i], e);
  }
  Arm a = emit_arm(l, op->regions[0], b, l->active);
  while (l->log.len > log) map_del(&l->vals, (uint64_t)(uintptr_t)vec_pop(&l->log));
  yield_in(&a.n, count, a.out, vec);
  for (uint32_t i = 0; i < count; i++)
    set(l, ir_result(op, i), (PlaceElem){l->lanes == 1 ? ELEM_UNI : ELEM_VEC, ir_result(made, i), 0});
}

// for with bounds of each lane: while any lane has a turn left.
static void lane_for(Lanes *l, IrOp *op, const PlaceElem *head) {
  Place *p = l->p;
  const uint32_t count = op->nresults;
  const IrType *it = scalar_type(l, ir_operand(op, 0)->type);
  const bool thin = head[0].kind != ELEM_VEC && head[2].kind == ELEM_UNI; // the index moves as a whole
  int64_t step;
  const bool down = head[2].kind == ELEM_UNI && place_is_const(head[2].v, &step) && step < 0;
  IrValue **ops = arena_array(p->arena, IrValue *, 2 + count);
  const IrType **types = arena_array(p->arena, const IrType *, 2 + count);
  ops[0] = thin ? head[0].v : place_vec(&l->n, head[0]);
  for (uint32_t i = 0; i < count; i++) ops[1 + i] = place_vec(&l->n, get(l, ir_operand(op, 3 + i)));
  for (uint32_t i = 0; i <= count; i++) types[i] = ops[i]->type;
  IrOp *made = ir_build(at(l), OP_while, 1 + count, ops, 1 + count, types, 2);
  IrBlock *test = made->regions[0], *body = made->regions[1];
  for (uint32_t i = 0; i <= count; i++) {
    ir_block_arg(test, types[i], NULL);
    ir_block_arg(body, types[i], NULL);
  }
  const IrCmp cmp = ir_attr_i(op, ATTR_uns_iv) ? (down ? CMP_ugt : CMP_ult) : down ? CMP_sgt : CMP_slt;
  // a negative step of unknown sign is not in the language: constant only
  PlaceElem iv = {thin ? head[0].kind : ELEM_VEC, test->args.data[0], thin ? head[0].step : 0};
  Saved s = enter(l, test);
  IrValue *left = place_cmp(&l->n, cmp, place_vec(&l->n, iv), place_vec(&l->n, head[1]));
  PlaceElem m = both(l, l->active, (PlaceElem){ELEM_VEC, left, 0});
  IrValue **pass = arena_array(p->arena, IrValue *, 2 + count);
  pass[0] = any(l, m);
  for (uint32_t i = 0; i <= count; i++) pass[1 + i] = test->args.data[i];
  ir_build(at(l), OP_cond_yield, 2 + count, pass, 0, NULL, 0);
  leave(l, &s);
  // the body's mask is made again there: it may not cross from the test
  s = enter(l, body);
  iv.v = body->args.data[0];
  left = place_cmp(&l->n, cmp, place_vec(&l->n, iv), place_vec(&l->n, head[1]));
  m = both(l, l->active, (PlaceElem){ELEM_VEC, left, 0});
  const PlaceElem keep = l->active;
  l->active = m;
  IrBlock *old = op->regions[0];
  if (thin) map_set(&l->n.divs, (uint64_t)(uintptr_t)iv.v, 1);
  set(l, old->args.data[0], iv);
  for (uint32_t i = 0; i < count; i++)
    set(l, old->args.data[1 + i], (PlaceElem){ELEM_VEC, body->args.data[1 + i], 0});
  emit_ops(l, old);
  IrValue **next = arena_array(p->arena, IrValue *, 1 + count);
  const IrOp *end = ir_terminator(old);
  if (thin) {
    next[0] = place_bin(&l->n, OP_add, iv.v, head[2].v);
  } else {
    next[0] = place_bin(&l->n, OP_add, iv.v, place_vec(&l->n, head[2]));
  }
  for (uint32_t i = 0; i < count; i++)
    next[1 + i] = place_vec(
        &l->n, merge(l, m, get(l, ir_operand(end, i)), (PlaceElem){ELEM_VEC, body->args.data[1 + i], 0}));
  ir_yield(at(l), 1 + count, next);
  l->active = keep;
  leave(l, &s);
  (void)it;
  for (uint32_t i = 0; i < count; i++)
    set(l, ir_result(op, i), (PlaceElem){ELEM_VEC, ir_result(made, 1 + i), 0});
}

static void emit_for(Lanes *l, IrOp *op) {
  PlaceElem head[3];
  bool uni = true;
  for (uint32_t i = 0; i < 3; i++) {
    head[i] = get(l, ir_operand(op, i));
    uni &= head[i].kind == ELEM_UNI;
  }
  at(l)->loc = op->loc;
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
  at(l)->loc = op->loc;
  const IrType *i1 = ir_type_scalar(p->ctx, IR_i1, LEVEL_program);
  IrValue **ops = arena_array(p->arena, IrValue *, n);
  const IrType **types = arena_array(p->arena, const IrType *, n);
  ops[0] = place_vec(nest, l->active.v ? l->active : place_uni(place_i1(p, true)));
  (void)i1;
  for (uint32_t i = 0; i < nc; i++) ops[1 + i] = place_vec(nest, get(l, ir_operand(op, i)));
  for (uint32_t i = 0; i < nr; i++) ops[1 + nc + i] = place_vec(nest, zero_of(l, ir_result(op, i)->type));
  for (uint32_t i = 0; i < n; i++) types[i] = ops[i]->type;
  IrOp *made = ir_build(at(l), OP_while, n, ops, n, types, 2);
  if (ir_attr(op, ATTR_label)) ir_set_attr_s(made, ATTR_label, ir_attr(op, ATTR_label)->s);
  IrBlock *test = made->regions[0], *body = made->regions[1];
  for (uint32_t i = 0; i < n; i++) {
    ir_block_arg(test, types[i], NULL);
    ir_block_arg(body, types[i], NULL);
  }
  const PlaceElemKind k = l->lanes == 1 ? ELEM_UNI : ELEM_VEC;
  const PlaceElem keep = l->active;
  const bool scalar = l->lanes == 1;
  Saved s = enter(l, test);
  const PlaceElem go = {k, test->args.data[0], 0};
  l->active = scalar ? (PlaceElem){ELEM_UNI, NULL, 0} : go;
  for (uint32_t i = 0; i < nc; i++)
    set(l, op->regions[0]->args.data[i], (PlaceElem){k, test->args.data[1 + i], 0});
  emit_ops(l, op->regions[0]);
  const IrOp *end = ir_terminator(op->regions[0]);
  const PlaceElem c = get(l, ir_operand(end, 0));
  IrValue **pass = arena_array(p->arena, IrValue *, n + 1);
  const PlaceElem on = both(l, scalar ? (PlaceElem){ELEM_UNI, NULL, 0} : go, c);
  pass[1] = place_vec(&l->n, on);
  for (uint32_t i = 0; i < nc; i++) pass[2 + i] = test->args.data[1 + i];
  for (uint32_t i = 0; i < nr; i++) {
    const PlaceElem v = get(l, ir_operand(end, 1 + i));
    pass[2 + nc + i] = place_vec(&l->n, merge(l, scalar ? (PlaceElem){ELEM_UNI, NULL, 0} : go, v,
                                              (PlaceElem){k, test->args.data[1 + nc + i], 0}));
  }
  pass[0] = scalar ? on.v : any(l, (PlaceElem){ELEM_VEC, pass[1], 0});
  ir_build(at(l), OP_cond_yield, n + 1, pass, 0, NULL, 0);
  leave(l, &s);

  s = enter(l, body);
  const PlaceElem in = {k, body->args.data[0], 0};
  l->active = scalar ? (PlaceElem){ELEM_UNI, NULL, 0} : in;
  for (uint32_t i = 0; i < nr; i++)
    set(l, op->regions[1]->args.data[i], (PlaceElem){k, body->args.data[1 + nc + i], 0});
  emit_ops(l, op->regions[1]);
  end = ir_terminator(op->regions[1]);
  IrValue **next = arena_array(p->arena, IrValue *, n);
  next[0] = body->args.data[0];
  for (uint32_t i = 0; i < nc; i++)
    next[1 + i] = place_vec(
        &l->n, merge(l, l->active, get(l, ir_operand(end, i)), (PlaceElem){k, body->args.data[1 + i], 0}));
  for (uint32_t i = 0; i < nr; i++) next[1 + nc + i] = body->args.data[1 + nc + i];
  ir_yield(at(l), n, next);
  l->active = keep;
  leave(l, &s);
  for (uint32_t i = 0; i < nr; i++) set(l, ir_result(op, i), (PlaceElem){k, ir_result(made, 1 + nc + i), 0});
}

// ---- ops ---------------------------------------------------------------------------------------------------------------------------------
static void emit_lanes_op(Lanes *l, IrOp *op) { // shfl, ballot, active_mask
  Place *p = l->p;
  PlaceNest *n = &l->n;
  IrValue *r = ir_result(op, 0);
  const IrType *t = scalar_type(l, r->type);
  if (op->kind == OP_shfl) {
    const PlaceElem v = get(l, ir_operand(op, 0)), lane = get(l, ir_operand(op, 1));
    if (v.kind == ELEM_UNI) {
      set(l, r, v);
      return;
    }
    IrValue *ops[2] = {place_vec(n, v), place_vec(n, lane)};
    IrOp *s = ir_build(at(l), OP_shfl, 2, ops, 1, &ops[0]->type, 0);
    place_copy_attrs(s, op);
    set(l, r, (PlaceElem){ELEM_VEC, ir_result(s, 0), 0});
    return;
  }
  PlaceElem m = l->active.v ? l->active : place_uni(place_i1(p, true));
  if (op->kind == OP_ballot) m = both(l, l->active, get(l, ir_operand(op, 0)));
  if (l->lanes == 1) { // one thread alone: its own bit
    const PlaceElem own = place_uni(place_bin(n, OP_and, l->tid.v, place_i32(p, p->m->lanes - 1)));
    IrValue *sh = own.v;
    if (t->dtype == IR_i64) sh = place_to_i64(n, sh);
    IrValue *bit = place_pure(n, OP_shl, 2, (IrValue *[]){place_pconst(p, t, 1), sh}, t, NULL);
    set(l, r, place_uni(place_sel(n, m.v, bit, place_pconst(p, t, 0))));
    return;
  }
  IrValue *v = place_vec(n, m);
  set(l, r, place_uni(ir_result(ir_build(at(l), OP_ballot, 1, &v, 1, &t, 0), 0)));
}

static void emit_op(Lanes *l, IrOp *op) {
  Place *p = l->p;
  const PlaceElem none = {ELEM_UNI, NULL, 0};
  at(l)->loc = op->loc;
  if (computed(op) && ir_type_is_thread(ir_result(op, 0)->type)) { // where it is wanted
    if (!again(p, op)) set(l, ir_result(op, 0), compute(l, op));
    return;
  }
  switch (op->kind) {
  case OP_if: emit_if(l, op); return;
  case OP_for: emit_for(l, op); return;
  case OP_while: emit_while(l, op); return;
  case OP_switch: emit_switch(l, op); return;
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
    ir_clone_op(at(l), op, &p->values);
    return;
  }
  place_fail(p, op->loc, "%s at thread level cannot be placed on a CPU", ir_ops[op->kind].name);
}

static void emit_ops(Lanes *l, IrBlock *b) {
  for (IrOp *op = b->first; op; op = op->next) {
    if (ir_ops[op->kind].traits & TRAIT_TERMINATOR) return;
    emit_op(l, op);
  }
}

// ---- runs --------------------------------------------------------------------------------------------------------------------------------
// The condition holds for thread k at most (k a constant).
static bool needs_thread(const IrValue *c, int64_t *k) {
  if (!c->def) return false;
  const IrOp *op = c->def;
  if (op->kind == OP_and) return needs_thread(ir_operand(op, 0), k) || needs_thread(ir_operand(op, 1), k);
  if (op->kind != OP_cmp || ir_attr_i(op, ATTR_cmp) != CMP_eq) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const IrValue *t = ir_operand(op, i), *n = ir_operand(op, 1 - i);
    if (n->def && n->def->kind == OP_to_thread) n = ir_operand(n->def, 0);
    if (t->def && t->def->kind == OP_tid && ir_const_int(n, k)) return true;
  }
  return false;
}

static bool in_run(const Place *p, const PlaceStep *s, const IrOp *user) {
  while (user && user->parent != s->op->parent) user = user->parent->owner;
  return user && place_order(p, user) >= place_order(p, s->op) &&
         place_order(p, user) <= place_order(p, s->last_op);
}

// Used outside the run, or by what is computed again there.
static bool escapes(const Place *p, const PlaceStep *s, const IrValue *v, int *budget) {
  for (const IrUse *u = v->uses; u; u = u->next) {
    if (--*budget < 0 || !in_run(p, s, u->user)) return true;
    if (again(p, u->user) && escapes(p, s, ir_result(u->user, 0), budget)) return true;
  }
  return false;
}

// Only one thread does anything in this run.
static bool one_thread(const Place *p, const PlaceStep *s, int64_t *k) {
  bool some = false;
  for (const IrOp *op = s->op; op; op = op == s->last_op ? NULL : op->next) {
    if (!place_is_thread_op(op) || again(p, op)) continue;
    int budget = 200;
    if (computed(op) && !escapes(p, s, ir_result(op, 0), &budget)) continue;
    int64_t t;
    if (op->kind != OP_if || op->nresults || !empty(op->regions[1]) || !needs_thread(ir_operand(op, 0), &t))
      return false;
    if (some && t != *k) return false;
    *k = t;
    some = true;
  }
  (void)p;
  return some && *k >= 0 && *k < (int64_t)p->m->num_warps * p->m->lanes;
}

static bool may_wait(const IrOp *op) {
  switch (op->kind) {
  case OP_wait:
  case OP_acquire:
  case OP_team_barrier: return true;
  case OP_while: // polls where it looks at memory in its test
    for (const IrOp *o = op->regions[0]->first; o; o = o->next) {
      const IrEffects e = ir_op_effects_deep(o);
      if (e.order || e.writes) return true;
    }
    break;
  default: break;
  }
  for (uint32_t i = 0; i < op->nregions; i++) {
    for (const IrOp *o = op->regions[i]->first; o; o = o->next) {
      if (may_wait(o)) return true;
    }
  }
  return false;
}

static IrOp *open_warps(Place *p, Lanes *l, Loc loc, bool fiber) {
  p->b.loc = loc;
  IrOp *wf = ir_build(&p->b, OP_warp_for, 0, NULL, 0, NULL, 1);
  ir_set_attr_i(wf, ATTR_count, p->m->num_warps);
  if (fiber) ir_set_attr_i(wf, ATTR_fiber, 1);
  *l = (Lanes){.p = p, .lanes = p->m->lanes};
  map_init(&l->vals, p->arena);
  IrValue *w = ir_block_arg(wf->regions[0], i32_type(l), NULL);
  nest_at(l, wf->regions[0], loc);
  l->tid = (PlaceElem){ELEM_AFF, place_bin(&l->n, OP_mul, w, place_i32(p, l->lanes)), 1};
  map_set(&l->n.divs, (uint64_t)(uintptr_t)l->tid.v, (uint64_t)l->lanes);
  return wf;
}

static void close_warps(Lanes *l) { ir_yield(at(l), 0, NULL); }

void place_emit_threads(Place *p, PlaceStep *s) {
  bool work = false, waits = false;
  for (const IrOp *op = s->op; op; op = op == s->last_op ? NULL : op->next) {
    if (!place_is_thread_op(op)) continue;
    work |= !again(p, op) && op->kind != OP_warp_barrier;
    waits |= may_wait(op);
  }
  if (!work) return;
  Lanes l;
  int64_t k = 0;
  const bool single = one_thread(p, s, &k);
  if (single) {
    l = (Lanes){.p = p, .lanes = 1, .tid = place_uni(place_i32(p, k))};
    map_init(&l.vals, p->arena);
    nest_at(&l, p->b.block, s->op->loc);
  } else {
    open_warps(p, &l, s->op->loc, waits && p->m->num_warps > 1);
  }
  for (IrOp *op = s->op; op; op = op == s->last_op ? NULL : op->next) {
    if (place_is_thread_op(op)) emit_op(&l, op);
  }
  if (single) return;
  l.n.out = l.n.at[0];
  for (IrOp *op = s->op; op; op = op == s->last_op ? NULL : op->next) {
    if (!place_is_thread_op(op) || again(p, op)) continue;
    for (uint32_t i = 0; i < op->nresults; i++) {
      IrValue *r = ir_result(op, i);
      int budget = 200;
      if (!ir_type_is_thread(r->type) || !escapes(p, s, r, &budget)) continue;
      const PlaceElem e = get(&l, r);
      place_write(&l.n, place_spill(p, r), &l.tid, e);
    }
  }
  close_warps(&l);
}

void place_hand_over(Place *p, IrValue *const *from, IrValue *const *to, uint32_t n, Loc loc) {
  Lanes l;
  open_warps(p, &l, loc, false);
  PlaceElem *es = arena_array(p->arena, PlaceElem, n);
  for (uint32_t i = 0; i < n; i++) es[i] = get(&l, from[i]);
  l.n.out = l.n.at[0];
  for (uint32_t i = 0; i < n; i++) place_write(&l.n, place_spill(p, to[i]), &l.tid, es[i]);
  close_warps(&l);
}

void place_from_thread(Place *p, IrOp *op) {
  Lanes l = {.p = p, .lanes = 1, .tid = place_uni(place_i32(p, 0))};
  map_init(&l.vals, p->arena);
  nest_at(&l, p->b.block, op->loc);
  map_setp(&p->values, ir_result(op, 0), get(&l, ir_operand(op, 0)).v);
}
