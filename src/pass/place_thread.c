// place_thread: code at thread level, a run of ops between what the program does.
//
//   warp_for {count=W} { (%w)   tid = w * 32 + lane        UNI: one value a warp, AFF: base + lane, VEC: 32 lanes
//     if any(mask) { ... }      control by threads is masks; every region runs with some lane active
//     for lane { if mask[lane] ordered access }            what is ordered goes lane by lane
//   }
//
// Where one thread alone may act (if tid == 0) its code is scalar; a run that does nothing else needs no warp_for.
// Pure values are computed again in each run that wants them; others that outlive their run live in buffers [W * 32].
#include "pass/place_lanes.h"

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
    if (lanes_again(p, u->user) && escapes(p, s, ir_result(u->user, 0), budget)) return true;
  }
  return false;
}

// Only one thread does anything in this run.
static bool one_thread(const Place *p, const PlaceStep *s, int64_t *k) {
  bool some = false;
  for (const IrOp *op = s->op; op; op = op == s->last_op ? NULL : op->next) {
    if (!place_is_thread_op(op) || lanes_again(p, op)) continue;
    int budget = 200;
    if (lanes_computed(op) && !escapes(p, s, ir_result(op, 0), &budget)) continue;
    int64_t t;
    if (op->kind != OP_if || op->nresults || !lanes_empty(op->regions[1]) ||
        !needs_thread(ir_operand(op, 0), &t))
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
    if (ir_attr_i(op, ATTR_poll)) return true;
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
  IrValue *w = ir_block_arg(wf->regions[0], lanes_i32(l), NULL);
  lanes_nest(l, wf->regions[0], loc);
  l->tid = (PlaceElem){ELEM_AFF, place_bin(&l->n, OP_mul, w, place_i32(p, l->lanes)), 1};
  map_set(&l->n.divs, (uint64_t)(uintptr_t)l->tid.v, (uint64_t)l->lanes);
  return wf;
}

static void close_warps(Lanes *l) { ir_yield(lanes_at(l), 0, NULL); }

void place_emit_threads(Place *p, PlaceStep *s) {
  bool work = false, waits = false;
  for (const IrOp *op = s->op; op; op = op == s->last_op ? NULL : op->next) {
    if (!place_is_thread_op(op)) continue;
    work |= !lanes_again(p, op) && op->kind != OP_warp_barrier;
    waits |= may_wait(op);
  }
  if (!work) return;
  Lanes l;
  int64_t k = 0;
  const bool single = one_thread(p, s, &k);
  if (single) {
    l = (Lanes){.p = p, .lanes = 1, .tid = place_uni(place_i32(p, k))};
    map_init(&l.vals, p->arena);
    lanes_nest(&l, p->b.block, s->op->loc);
  } else {
    open_warps(p, &l, s->op->loc, waits && p->m->num_warps > 1);
  }
  for (IrOp *op = s->op; op; op = op == s->last_op ? NULL : op->next) {
    if (place_is_thread_op(op)) lanes_op(&l, op);
  }
  if (single) return;
  l.n.out = l.n.at[0];
  for (IrOp *op = s->op; op; op = op == s->last_op ? NULL : op->next) {
    if (!place_is_thread_op(op) || lanes_again(p, op)) continue;
    for (uint32_t i = 0; i < op->nresults; i++) {
      IrValue *r = ir_result(op, i);
      int budget = 200;
      if (!ir_type_is_thread(r->type) || !escapes(p, s, r, &budget)) continue;
      const PlaceElem e = lanes_get(&l, r);
      place_write(&l.n, place_spill(p, r), &l.tid, e);
    }
  }
  close_warps(&l);
}

void place_hand_over(Place *p, IrValue *const *from, IrValue *const *to, uint32_t n, Loc loc) {
  Lanes l;
  open_warps(p, &l, loc, false);
  PlaceElem *es = arena_array(p->arena, PlaceElem, n);
  for (uint32_t i = 0; i < n; i++) es[i] = lanes_get(&l, from[i]);
  l.n.out = l.n.at[0];
  for (uint32_t i = 0; i < n; i++) place_write(&l.n, place_spill(p, to[i]), &l.tid, es[i]);
  close_warps(&l);
}

void place_from_thread(Place *p, IrOp *op) {
  Lanes l = {.p = p, .lanes = 1, .tid = place_uni(place_i32(p, 0))};
  map_init(&l.vals, p->arena);
  lanes_nest(&l, p->b.block, op->loc);
  map_setp(&p->values, ir_result(op, 0), lanes_get(&l, ir_operand(op, 0)).v);
}
