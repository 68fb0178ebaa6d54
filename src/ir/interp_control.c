// interp_control: blocks and structured control as jumps and masks; which ops a span of single warps may hold.
#include "ir/interp_compile.h"

// ---- which ops single warps may execute --------------------------------------------------------------------------------------
static const IrOp *callee_body(const Comp *c, const IrOp *op, const IrFunc **f) {
  const IrAttr *a = ir_attr(op, ATTR_callee);
  *f = a && a->s ? ir_func_find(c->m, a->s) : NULL;
  return *f && (*f)->body ? (*f)->body->first : NULL;
}

static bool control_is_thread(const IrOp *op) {
  switch (op->kind) {
  case OP_if:
  case OP_switch: return comp_is_thread(ir_operand(op, 0));
  case OP_for:
    return comp_is_thread(ir_operand(op, 0)) || comp_is_thread(ir_operand(op, 1)) ||
           comp_is_thread(ir_operand(op, 2));
  case OP_while: {
    const IrOp *t = op->nregions ? ir_terminator(op->regions[0]) : NULL;
    return t && comp_is_thread(ir_operand(t, 0));
  }
  default: return false;
  }
}

static bool parts(const Comp *c, const IrOp *op, int depth) { // may its threads part, or wait one by one?
  if (depth > MAX_INLINE) return false;
  if (control_is_thread(op)) return true;
  if (op->kind == OP_wait || op->kind == OP_mbarrier_wait) return comp_op_is_thread(op);
  if (op->kind == OP_call) {
    const IrFunc *f;
    for (const IrOp *o = callee_body(c, op, &f); o; o = o->next)
      if (parts(c, o, depth + 1)) return true;
    return false;
  }
  if (op->kind == OP_warp_partitions || op->kind == OP_warp_for || op->kind == OP_reduce ||
      op->kind == OP_scan)
    return false;
  for (uint32_t r = 0; r < op->nregions; r++)
    for (const IrOp *o = op->regions[r]->first; o; o = o->next)
      if (parts(c, o, depth + 1)) return true;
  return false;
}

static bool warp_ok(const Comp *c, const IrOp *op, bool under, int depth) {
  if (depth > MAX_INLINE) return false;
  for (uint32_t i = 0; i < op->noperands; i++)
    if (comp_is_tile(op->operands[i].value)) return false;
  for (uint32_t i = 0; i < op->nresults; i++)
    if (comp_is_tile(&op->results[i])) return false;
  switch (op->kind) {
  case OP_if:
  case OP_for:
  case OP_while:
  case OP_switch:
    under |= control_is_thread(op);
    for (uint32_t r = 0; r < op->nregions; r++)
      for (const IrOp *o = op->regions[r]->first; o; o = o->next)
        if (!warp_ok(c, o, under, depth + 1)) return false;
    return true;
  case OP_call: {
    const IrFunc *f;
    for (const IrOp *o = callee_body(c, op, &f); o; o = o->next)
      if (!warp_ok(c, o, under, depth + 1)) return false;
    return f != NULL;
  }
  case OP_yield:
  case OP_cond_yield:
  case OP_return:
  case OP_barrier:
  case OP_warp_barrier:
  case OP_fence:
  case OP_put_quiet:
  case OP_put_fence:
  case OP_assume:
  case OP_assert: return true;
  case OP_from_thread:
  case OP_release:
  case OP_acquire:
  case OP_warp_partitions:
  case OP_warp_for: return false;
  case OP_put:
  case OP_get:
  case OP_put_signal:
  case OP_team_barrier: return ir_attr_i(op, ATTR_group) != GROUP_block && (under || comp_op_is_thread(op));
  default: return under || comp_op_is_thread(op) || (ir_ops[op->kind].traits & TRAIT_PURE);
  }
}

// ---- blocks --------------------------------------------------------------------------------------------------------------------
bool comp_number_op(IrOp *op, void *user) {
  Comp *c = user;
  const uint32_t n = op->prev ? (uint32_t)(uintptr_t)map_getp(&c->order, op->prev) + 1 : 1;
  map_set(&c->order, (uint64_t)(uintptr_t)op, n);
  return true;
}

static uint32_t order_of(Comp *c, const IrOp *op) {
  uint64_t n = 0;
  map_get(&c->order, (uint64_t)(uintptr_t)op, &n);
  return (uint32_t)n;
}

static uint32_t last_use(Comp *c, const IrValue *v, const IrBlock *b, uint32_t def) {
  uint32_t last = def;
  for (const IrUse *u = v->uses; u; u = u->next) {
    const IrOp *op = u->user;
    while (op && op->parent != b) op = op->parent->owner;
    if (!op) continue;
    const uint32_t n = order_of(c, op);
    if (n > last) last = n;
  }
  return last;
}

// Compiles all but the terminator; gives what is to be released after it.
Dead comp_block(Comp *c, const IrBlock *b) {
  const IrOp *term = b->last;
  if (!term || !(ir_ops[term->kind].traits & TRAIT_TERMINATOR))
    comp_refuse(c, b->owner, "a block without terminator");
  const uint32_t n = order_of(c, term) + 1;
  // Values by the op after which they die, as lists through `next`.
  uint32_t count = 0;
  for (const IrOp *op = b->first; op; op = op->next) count += op->nresults;
  int *head = arena_array(c->arena, int, n + 1), *next = arena_array(c->arena, int, count + 1);
  const IrValue **value = arena_array(c->arena, const IrValue *, count + 1);
  uint32_t k = 0;
  for (const IrOp *op = b->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->nresults; i++) {
      const uint32_t dies = last_use(c, &op->results[i], b, order_of(c, op));
      k++;
      value[k] = &op->results[i];
      next[k] = head[dies];
      head[dies] = (int)k;
    }
  }
  const IrOp *span_last = NULL;
  uint32_t fork = 0;
  for (const IrOp *op = b->first; op != term; op = op->next) {
    if (c->mode == MODE_BLOCK && !span_last && parts(c, op, 0)) {
      if (warp_ok(c, op, false, 0)) {
        span_last = op;
        for (const IrOp *q = op->next; q != term && warp_ok(c, q, false, 0); q = q->next)
          if (parts(c, q, 0)) span_last = q;
        fork = comp_here(c);
        comp_emit(c, op, x_fork);
        c->mode = MODE_WARP;
      } else if (control_is_thread(op)) {
        comp_refuse(c, op, "an operation of the whole program stands under a condition of single threads");
      }
    }
    comp_op(c, op);
    if (op == span_last) {
      comp_emit(c, op, x_join);
      comp_at(c, fork)->target = comp_here(c);
      c->mode = MODE_BLOCK;
      span_last = NULL;
    }
    for (int d = head[order_of(c, op)]; d; d = next[d]) comp_slot_release(c, comp_val_of(c, value[d])->slot);
  }
  Dead dead = {0};
  for (int d = head[order_of(c, term)]; d; d = next[d])
    vec_push(c->arena, &dead, comp_val_of(c, value[d])->slot);
  return dead;
}

void comp_bury(Comp *c, Dead dead) {
  for (uint32_t i = 0; i < dead.len; i++) comp_slot_release(c, dead.data[i]);
}

// Copies the terminator's operands from `first` on to the given values' places. `carried`: the places are also read by
// these operands (loop arguments), so those go through temporaries.
static void hand_over(Comp *c, const IrOp *term, uint32_t first, const IrValue *const *to, uint32_t n,
                      bool carried, int flags) {
  if (term->noperands < first + n) comp_refuse(c, term, "a terminator hands over too few values");
  Val *temp = carried ? arena_array(c->arena, Val, n + 1) : NULL;
  Ref *from = arena_array(c->arena, Ref, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    from[i] = comp_use(c, term, first + i);
    if (!carried) continue;
    temp[i].slot = -1;
    for (uint32_t j = 0; j < i; j++) {
      if (!comp_same_place(from[i], comp_val_of(c, to[j])->ref)) continue;
      temp[i] = comp_place(c, to[i]->type, !comp_val_of(c, to[i])->ref.stride);
      comp_copy(c, term, to[i]->type, temp[i].ref, from[i], 0);
      from[i] = temp[i].ref;
      break;
    }
  }
  for (uint32_t i = 0; i < n; i++)
    comp_copy(c, term, to[i]->type, comp_val_of(c, to[i])->ref, from[i], flags);
  for (uint32_t i = 0; carried && i < n; i++) comp_slot_release(c, temp[i].slot);
}

static const IrValue **pointers(Comp *c, const IrValue *first, uint32_t n) {
  const IrValue **p = arena_array(c->arena, const IrValue *, n + 1);
  for (uint32_t i = 0; i < n; i++) p[i] = &first[i];
  return p;
}

// ---- control ---------------------------------------------------------------------------------------------------------------------
static Ref mask_slot(Comp *c) {
  const int s = comp_slot_new(c, SP_SC, 8, 8);
  return (Ref){.off = (uint32_t)c->slots.data[s].off, .space = SP_SC, .esize = 8};
}
static void mask_release(Comp *c, Ref r) { vec_push(c->arena, &c->scalars, (size_t)r.off); }

void comp_if(Comp *c, const IrOp *op) {
  const Ref cond = comp_use(c, op, 0);
  const bool thread = comp_per_thread(cond), under = c->thread_control;
  if (op->nregions != 2) comp_refuse(c, op, "an if without two regions");
  for (uint32_t i = 0; i < op->nresults; i++) comp_define(c, &op->results[i], false);
  const IrValue **res = pointers(c, op->results, op->nresults);
  const int flags = thread ? INS_MASKED : 0;
  Ref saved = {0}, other = {0};
  if (thread) saved = mask_slot(c), other = mask_slot(c);
  c->thread_control |= thread;
  const uint32_t test = comp_here(c);
  Ins *i = comp_emit(c, op, thread ? x_tif : x_jump_if_not);
  i->a = cond;
  i->b = saved;
  i->c = other;
  Dead dead = comp_block(c, op->regions[0]);
  hand_over(c, comp_terminator(op->regions[0]), 0, res, op->nresults, false, flags);
  comp_bury(c, dead);
  const uint32_t mid = comp_here(c);
  i = comp_emit(c, op, thread ? x_tset : x_jump);
  i->a = other;
  comp_at(c, test)->target = thread ? mid : comp_here(c);
  dead = comp_block(c, op->regions[1]);
  hand_over(c, comp_terminator(op->regions[1]), 0, res, op->nresults, false, flags);
  comp_bury(c, dead);
  comp_at(c, mid)->target = comp_here(c);
  if (thread) {
    comp_emit(c, op, x_trest)->a = saved;
    mask_release(c, saved);
    mask_release(c, other);
  }
  c->thread_control = under;
}

void comp_switch(Comp *c, const IrOp *op) {
  const Ref index = comp_use(c, op, 0);
  const bool thread = comp_per_thread(index), under = c->thread_control;
  const IrAttr *cases = ir_attr(op, ATTR_cases);
  const uint32_t n = op->nregions;
  if (!n || (cases ? cases->ints.n : 0) != n - 1)
    comp_refuse(c, op, "a switch whose cases do not fit its regions");
  for (uint32_t i = 0; i < op->nresults; i++) comp_define(c, &op->results[i], false);
  const IrValue **res = pointers(c, op->results, op->nresults);
  Ref saved = {0}, left = {0};
  if (thread) {
    saved = mask_slot(c);
    left = mask_slot(c);
    Ins *i = comp_emit(c, op, x_tsave);
    i->a = saved;
    i->b = left;
  }
  c->thread_control |= thread;
  uint32_t *ends = arena_array(c->arena, uint32_t, n);
  for (uint32_t r = 0; r < n; r++) {
    uint32_t test = UINT32_MAX;
    if (thread || r + 1 < n) {
      test = comp_here(c);
      Ins *i = comp_emit(c, op, thread ? x_tcase : x_switch_to); // goes to target unless this case is taken
      i->a = index;
      i->b = left;
      i->n = r + 1 < n;
      if (r + 1 < n) i->extra = &cases->ints.v[r];
    }
    const Dead dead = comp_block(c, op->regions[r]);
    hand_over(c, comp_terminator(op->regions[r]), 0, res, op->nresults, false, thread ? INS_MASKED : 0);
    comp_bury(c, dead);
    ends[r] = comp_here(c);
    if (!thread && r + 1 < n) comp_emit(c, op, x_jump);
    if (test != UINT32_MAX) comp_at(c, test)->target = comp_here(c);
  }
  for (uint32_t r = 0; !thread && r + 1 < n; r++) comp_at(c, ends[r])->target = comp_here(c);
  if (thread) {
    comp_emit(c, op, x_trest)->a = saved;
    mask_release(c, saved);
    mask_release(c, left);
  }
  c->thread_control = under;
}

void comp_for(Comp *c, const IrOp *op) {
  const Ref lo = comp_use(c, op, 0), hi = comp_use(c, op, 1), step = comp_use(c, op, 2);
  const bool thread = comp_per_thread(lo) || comp_per_thread(hi) || comp_per_thread(step),
             under = c->thread_control;
  if (op->nregions != 1 || op->noperands < 3 || op->regions[0]->args.len != op->nresults + 1 ||
      op->noperands != op->nresults + 3)
    comp_refuse(c, op, "a for whose values do not fit");
  const IrBlock *body = op->regions[0];
  const IrValue *iv = body->args.data[0];
  for (uint32_t i = 0; i < op->nresults; i++) {
    const Ref r = comp_define(c, &op->results[i], false);
    comp_copy(c, op, op->results[i].type, r, comp_use(c, op, 3 + i), 0);
    *comp_val_of(c, body->args.data[i + 1]) = (Val){r, -1};
  }
  const Val ivv = comp_place(c, iv->type, !thread);
  *comp_val_of(c, iv) = (Val){ivv.ref, -1};
  comp_copy(c, op, iv->type, ivv.ref, lo, 0);
  Ref saved = {0};
  if (thread) {
    saved = mask_slot(c);
    Ins *i = comp_emit(c, op, x_tsave);
    i->a = saved;
  }
  c->thread_control |= thread;
  const uint32_t head = comp_here(c);
  Ins *i = comp_emit(c, op, thread ? x_tfor : x_for_test);
  i->a = ivv.ref, i->b = hi, i->c = step;
  i->dt = (uint8_t)ir_attr_i(op, ATTR_uns_iv);
  const uint32_t start = comp_here(c);
  const Dead dead = comp_block(c, body);
  hand_over(c, comp_terminator(body), 0, pointers(c, op->results, op->nresults), op->nresults, true,
            thread ? INS_MASKED : 0);
  comp_bury(c, dead);
  i = comp_emit(c, op, thread ? x_tfor_next : x_for_next);
  i->a = ivv.ref, i->b = hi, i->c = step;
  i->dt = (uint8_t)ir_attr_i(op, ATTR_uns_iv);
  i->target = thread ? head : start;
  comp_at(c, head)->target = comp_here(c);
  if (thread) {
    comp_emit(c, op, x_trest)->a = saved;
    mask_release(c, saved);
  }
  comp_slot_release(c, ivv.slot);
  c->thread_control = under;
}

// A loop that only reads, compares and tries: it can be put to sleep until a word that it reads changes.
static bool only_polls(const IrBlock *b, int depth) {
  for (const IrOp *op = b->first; op; op = op->next) {
    if (depth > 8) return false;
    for (uint32_t i = 0; i < op->nresults; i++)
      if (comp_is_tile(&op->results[i])) return false;
    switch (op->kind) {
    case OP_load:
    case OP_atomic_cas:
    case OP_atomic_rmw:
    case OP_fence:
    case OP_yield:
    case OP_cond_yield: break;
    case OP_if:
      if (!only_polls(op->regions[0], depth + 1) || !only_polls(op->regions[1], depth + 1)) return false;
      break;
    default:
      if (!(ir_ops[op->kind].traits & TRAIT_PURE) || op->nregions) return false;
    }
  }
  return true;
}

void comp_while(Comp *c, const IrOp *op) {
  const bool under = c->thread_control;
  if (op->nregions != 2) comp_refuse(c, op, "a while without two regions");
  const IrBlock *before = op->regions[0], *body = op->regions[1];
  const IrOp *test = comp_terminator(before);
  if (before->args.len != op->noperands || body->args.len != op->nresults || !test ||
      test->kind != OP_cond_yield || test->noperands != op->nresults + 1)
    comp_refuse(c, op, "a while whose values do not fit");
  const bool thread = comp_is_thread(ir_operand(test, 0)) || c->mode == MODE_VEC;
  const bool polls = only_polls(before, 0) && only_polls(body, 0);
  const int flags = (thread ? INS_MASKED : 0) | (polls ? INS_TRACK : 0);
  Val *carried = arena_array(c->arena, Val, op->noperands + 1);
  for (uint32_t i = 0; i < op->noperands; i++) {
    carried[i] = comp_place(c, before->args.data[i]->type, false);
    *comp_val_of(c, before->args.data[i]) = (Val){carried[i].ref, -1};
    comp_copy(c, op, before->args.data[i]->type, carried[i].ref, comp_use(c, op, i), 0);
  }
  for (uint32_t i = 0; i < op->nresults; i++)
    *comp_val_of(c, body->args.data[i]) = (Val){comp_define(c, &op->results[i], false), -1};
  Ref saved = {0};
  if (thread) {
    saved = mask_slot(c);
    comp_emit(c, op, x_tsave)->a = saved;
  }
  c->thread_control |= thread && comp_is_thread(ir_operand(test, 0));
  const uint32_t head = comp_here(c);
  if (polls) comp_emit(c, op, x_spin_head);
  Dead dead = comp_block(c, before);
  hand_over(c, test, 1, pointers(c, op->results, op->nresults), op->nresults, false, thread ? INS_MASKED : 0);
  const Ref cond = comp_use(c, test, 0);
  const uint32_t jump = comp_here(c);
  Ins *i = comp_emit(c, op, thread ? x_tloop : x_jump_if_not);
  i->a = cond;
  i->strides = cond.stride;
  comp_bury(c, dead);
  dead = comp_block(c, body);
  hand_over(c, comp_terminator(body), 0, (const IrValue *const *)before->args.data, op->noperands, true,
            flags);
  comp_bury(c, dead);
  comp_emit(c, op, polls ? x_spin : x_jump)->target = head;
  comp_at(c, jump)->target = comp_here(c);
  if (thread) {
    comp_emit(c, op, x_trest)->a = saved;
    mask_release(c, saved);
  }
  for (uint32_t k = 0; k < op->noperands; k++) comp_slot_release(c, carried[k].slot);
  c->thread_control = under;
}

void comp_partitions(Comp *c, const IrOp *op) {
  const IrAttr *first = ir_attr(op, ATTR_first), *warps = ir_attr(op, ATTR_warps);
  if (c->mode != MODE_BLOCK || !first || !warps || first->ints.n != op->nregions ||
      warps->ints.n != op->nregions)
    comp_refuse(c, op, "warp_partitions whose attributes do not fit");
  const uint32_t n = op->nregions, threads = c->threads;
  PartExtra *x = arena_alloc(&c->w->arena, sizeof *x + n * sizeof x->at[0], 8);
  x->n = n;
  const uint32_t fork = comp_here(c);
  comp_emit(c, op, x_fork_parts)->extra = x;
  c->holding++;
  for (uint32_t r = 0; r < n; r++) {
    const int64_t f = first->ints.v[r], k = warps->ints.v[r];
    if (f < 0 || k <= 0 || f + k > (int64_t)c->code->nwarps)
      comp_refuse(c, op, "a partition outside the block's warps");
    x->at[r].first = (uint32_t)f;
    x->at[r].warps = (uint32_t)k;
    x->at[r].pc = comp_here(c);
    c->threads = (uint32_t)k * c->code->lanes;
    comp_bury(c, comp_block(c, op->regions[r]));
    comp_emit(c, op, x_part_end);
  }
  c->threads = threads;
  if (!--c->holding) {
    const Dead held = c->held;
    c->held = (Dead){0};
    comp_bury(c, held);
  }
  comp_at(c, fork)->target = comp_here(c);
}

void comp_warp_for(Comp *c, const IrOp *op) {
  const uint32_t count = (uint32_t)ir_attr_i(op, ATTR_count);
  if (op->nregions != 1 || op->regions[0]->args.len != 1 || !count || c->mode != MODE_BLOCK)
    comp_refuse(c, op, "a warp_for that does not fit");
  const IrBlock *body = op->regions[0];
  const IrValue *w = body->args.data[0];
  const Val wv = comp_place(c, w->type, true);
  *comp_val_of(c, w) = (Val){wv.ref, -1};
  const bool fiber = ir_attr_i(op, ATTR_fiber);
  const uint32_t head = comp_here(c);
  if (fiber) {
    Ins *i = comp_emit(c, op, x_fork_warps);
    i->a = wv.ref;
    i->n = count;
    c->mode = MODE_FIBER;
    c->tiles = SP_LO;
    comp_bury(c, comp_block(c, body));
    c->tiles = SP_AR;
    c->mode = MODE_BLOCK;
    comp_emit(c, op, x_join);
  } else {
    const int64_t zero = 0;
    comp_copy(c, op, w->type, wv.ref, comp_constant(c, &zero, 8, 4, false), 0);
    const uint32_t top = comp_here(c);
    Ins *i = comp_emit(c, op, x_warp_set); // the next warp, or on to target
    i->a = wv.ref;
    i->n = count;
    comp_bury(c, comp_block(c, body));
    comp_emit(c, op, x_jump)->target = top;
    comp_at(c, top)->target = comp_here(c);
  }
  comp_at(c, head)->target = comp_here(c);
  comp_slot_release(c, wv.slot);
}

void comp_call(Comp *c, const IrOp *op) {
  const IrFunc *f;
  callee_body(c, op, &f);
  if (!f || !f->body || f->body->args.len != op->noperands)
    comp_refuse(c, op, "a call of a function that is not there");
  int depth = 0;
  for (const Frame *fr = c->frame; fr; fr = fr->up) {
    if (fr->func == f || ++depth > MAX_INLINE) comp_refuse(c, op, "a recursive call");
  }
  if (!map_get(&c->numbered, (uint64_t)(uintptr_t)f, NULL)) {
    map_set(&c->numbered, (uint64_t)(uintptr_t)f, 1);
    ir_walk(f->body, comp_number_op, c);
  }
  Frame *in = arena_new(c->arena, Frame), *out = c->frame;
  *in = (Frame){out, f, arena_array(c->arena, Val, f->next_id + 1)};
  for (uint32_t i = 0; i < op->noperands; i++)
    in->vals[f->body->args.data[i]->id] = (Val){comp_use(c, op, i), -1};
  c->frame = in;
  const Dead dead = comp_block(c, f->body);
  const IrOp *ret = comp_terminator(f->body);
  if (ret->noperands != op->nresults) comp_refuse(c, op, "a call whose results do not fit");
  for (uint32_t i = 0; i < op->nresults; i++) {
    const Val v = *comp_val_of(c, ret->operands[i].value);
    if (v.slot >= 0) c->slots.data[v.slot].refs++;
    out->vals[op->results[i].id] = v;
  }
  // A parameter handed back belongs to the caller's operand and may die before the result.
  c->frame = out;
  comp_bury(c, dead);
  for (uint32_t i = 0; i < op->nresults; i++) {
    Val *v = comp_val_of(c, &op->results[i]);
    if (v->slot >= 0 || v->ref.space == SP_CO) continue;
    for (uint32_t k = 0; k < op->noperands; k++) {
      const Val *o = op->operands[k].value ? comp_val_of(c, op->operands[k].value) : NULL;
      if (!o || o->slot < 0 || !comp_same_place(o->ref, v->ref)) continue;
      v->slot = o->slot;
      c->slots.data[o->slot].refs++;
      break;
    }
  }
}
