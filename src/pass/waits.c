// waits: polling loops into wait ops, so that whatever hangs has a deadline and a name.
//
// needs:  no calls; licm before it helps (addresses and expected values out of the loop).
// keeps:  every effect but the number of polls. A poll's own order and scope stay.
// breaks: wait_class.
//
// A `while` polls when, apart from pure ops, it only looks at a word of memory and compares it with what does not change
// in the loop (or goes on while any of several such comparisons tells it to). The look is a load, an atomic that leaves the word as it is, or one that may be repeated freely
// (exchange, and, or, min, max with an unchanging operand; compare-and-swap that goes on until it succeeded).
//
//   while { x = load p; cond x != k } {}         wait p, k {eq}, and the loop is gone
//   the value of the look is used, or it writes  the loop stays, and waits for its exit condition before it looks again
//   x is carried from the body to the condition  likewise
//
// The loop that stays sees the same values that it could have seen when another agent was faster. A loop that may be
// waiting but does more, or compares in another way, is marked `poll`: the target yields and checks the deadline at its
// back edge. Work counters (atomic add) and update loops (compare-and-swap of what was just read) make progress by
// themselves and are left alone.
#include "pass/pass_impl.h"

enum { MAX_POLLS = 8 };

typedef struct Poll {
  IrOp *look; // what reads the word
  IrValue *k; // compared with
  IrCmp exit; // exit(word, k) ends the loop, or is one of several things that must hold at its end
} Poll;

typedef struct Waits {
  Pass *p;
  IrFunc *f;
  IrOp *loop;
  Map seen; // of one slice
  bool found;
  const char *why; // the loop is only marked
  Poll polls[MAX_POLLS];
  int npolls;
} Waits;

static bool inside(const Waits *w, const IrValue *v) {
  return pass_defined_in(v, w->loop->regions[0]) || pass_defined_in(v, w->loop->regions[1]);
}

// A second time changes nothing that the first did not.
static bool is_rmw_repeatable(const Waits *w, const IrOp *op) {
  switch ((IrRmw)ir_attr_i(op, ATTR_rmw)) {
  case RMW_and:
  case RMW_or:
  case RMW_xchg:
  case RMW_max_s:
  case RMW_min_s:
  case RMW_max_u:
  case RMW_min_u: return !inside(w, ir_operand(op, 1));
  default: return false;
  }
}

static bool same_value(const IrValue *a, const IrValue *b) {
  uint64_t x, y;
  return a == b || (a->type == b->type && pass_const(a, &x) && pass_const(b, &y) && x == y);
}

static bool is_word(const IrType *t) {
  return t->kind == IR_SCALAR && ir_type_is_int(t) && ir_dtypes[t->dtype].bits >= 32;
}

static bool is_look(const Waits *w, const IrOp *op, IrCmp exit, const IrValue *k) {
  if (!is_word(ir_result(op, 0)->type) || inside(w, ir_operand(op, 0))) return false;
  switch (op->kind) {
  case OP_load: return !ir_operand(op, 1);
  case OP_atomic_rmw: return !ir_operand(op, 2) && (pass_rmw_is_neutral(op) || is_rmw_repeatable(w, op));
  case OP_atomic_cas: // fails without a trace until the word is what it expects
    return exit == CMP_eq && same_value(ir_operand(op, 1), k) && !inside(w, ir_operand(op, 1)) &&
           !inside(w, ir_operand(op, 2));
  default: return false;
  }
}

// Everything in b but the looks is pure (fences may stay: they order, and touch nothing).
static bool only_looks(const Waits *w, const IrBlock *b) {
  PASS_EACH_OP(b, op) {
    bool look = op->kind == OP_fence || (ir_ops[op->kind].traits & TRAIT_TERMINATOR);
    for (int i = 0; i < w->npolls; i++) look |= w->polls[i].look == op;
    if (!look && !ir_op_is_pure(op)) return false;
  }
  return true;
}

// The op in the loop that gives v: directly, or through the condition's argument from the body.
static IrOp *source(const Waits *w, const IrValue *v) {
  const IrOp *loop = w->loop;
  if (!v->def && v->block == loop->regions[0]) v = ir_operand(ir_terminator(loop->regions[1]), v->index);
  return v->def && (v->def->parent == loop->regions[0] || v->def->parent == loop->regions[1]) ? v->def : NULL;
}

// The loop goes on while cmp(word, k); negate: while it does not hold.
static bool add_poll(Waits *w, const IrOp *cmp, bool negate) {
  const IrCmp p = (IrCmp)ir_attr_i(cmp, ATTR_cmp);
  Poll poll = {.k = ir_operand(cmp, 1), .exit = negate ? p : pass_inverted(p)};
  IrValue *word = ir_operand(cmp, 0);
  if (inside(w, poll.k)) { // either side may be the word
    word = poll.k;
    poll.k = ir_operand(cmp, 0);
    poll.exit = pass_swapped(poll.exit);
  }
  w->why = "it compares with a value that changes in the loop";
  if (inside(w, poll.k)) return false;
  w->why = "what it looks at changes in the loop, is no 32- or 64-bit word, or is changed by looking";
  poll.look = source(w, word);
  if (!poll.look || poll.look->nresults != 1 || !is_look(w, poll.look, poll.exit, poll.k)) return false;
  w->why = "it looks at more than a few words";
  if (w->npolls == MAX_POLLS) return false;
  w->polls[w->npolls++] = poll;
  return true;
}

// The loop goes on while v (negate: while not v): a comparison, or several of which each alone keeps it going.
static bool add_polls(Waits *w, const IrValue *v, bool negate, int depth) {
  uint64_t k;
  w->why = "its condition is more than comparisons of single words";
  if (depth > 16) return false;
  if (!v->def && v->block == w->loop->regions[0]) // decided in the body
    return add_polls(w, ir_operand(ir_terminator(w->loop->regions[1]), v->index), negate, depth + 1);
  if (!v->def) return false;
  const IrOp *op = v->def;
  if (op->kind == OP_xor && pass_const(ir_operand(op, 1), &k) && k)
    return add_polls(w, ir_operand(op, 0), !negate, depth + 1);
  if (op->kind == (negate ? OP_and : OP_or))
    return add_polls(w, ir_operand(op, 0), negate, depth + 1) &&
           add_polls(w, ir_operand(op, 1), negate, depth + 1);
  return op->kind == OP_cmp && add_poll(w, op, negate);
}

static bool find_polls(Waits *w) {
  IrOp *loop = w->loop;
  w->npolls = 0;
  for (uint32_t r = 0; r < 2; r++) {
    for (IrOp *op = loop->regions[r]->first, *next; op; op = next) {
      next = op->next;
      if (op->kind == OP_const) ir_move_before(op, loop);
    }
  }
  if (!add_polls(w, ir_operand(ir_terminator(loop->regions[0]), 0), false, 0)) return false;
  w->why = "it does more than look at words in memory";
  return only_looks(w, loop->regions[0]) && only_looks(w, loop->regions[1]);
}

static const Str *name_of(const Waits *w, const IrValue *p) {
  for (int depth = 0; p && depth < 64; depth++) {
    if (!p->def) {
      if (p->block != w->f->body || p->index >= w->f->params.len) return NULL;
      return w->f->params.data[p->index].name;
    }
    switch (p->def->kind) {
    case OP_ptr_add:
    case OP_hint:
    case OP_bitcast:
    case OP_consume:
    case OP_to_thread:
    case OP_from_thread:
    case OP_symm_at: p = ir_operand(p->def, 0); break;
    default: return NULL;
    }
  }
  return NULL;
}

static IrOp *put_wait(Waits *w, IrOp *before, const Poll *poll, IrOrder order) {
  IrBuilder b = ir_builder_before(before);
  const IrOp *look = poll->look;
  const IrType *token = ir_type_token(w->p->m->ctx);
  IrValue *const operands[3] = {ir_operand(look, 0), NULL, poll->k};
  b.loc = w->loop->loc.line ? w->loop->loc : look->loc;
  IrOp *wait = ir_build(&b, OP_wait, 3, operands, 1, &token, 0);
  const bool plain = look->kind == OP_load && ir_attr_i(look, ATTR_order) == ORDER_weak;
  const char *label = ir_attr_s(look, ATTR_label);
  const Str *name = label ? str_cstr(ir_strings(w->p->m->ctx), label) : name_of(w, ir_operand(look, 0));
  ir_set_attr_i(wait, ATTR_cmp, poll->exit);
  ir_set_attr_i(wait, ATTR_order, order);
  ir_set_attr_i(wait, ATTR_scope, plain ? SCOPE_sys : ir_attr_i(look, ATTR_scope));
  if (name) ir_set_attr_s(wait, ATTR_label, name);
  return wait;
}

static IrOrder acquired(const IrOp *look) {
  const IrOrder o = (IrOrder)ir_attr_i(look, ATTR_order);
  return o == ORDER_acquire || o == ORDER_acq_rel || o == ORDER_seq_cst ? ORDER_acquire : ORDER_relaxed;
}

// What result i is once the wait is over, or NULL where only the loop can tell.
static IrValue *after(const Waits *w, const Poll *poll, uint32_t i) {
  IrValue *v = ir_operand(ir_terminator(w->loop->regions[0]), i + 1);
  if (v == ir_result(poll->look, 0)) return poll->exit == CMP_eq ? poll->k : NULL;
  return inside(w, v) ? NULL : v;
}

static bool replace(Waits *w) {
  const Poll *poll = &w->polls[0];
  IrOp *loop = w->loop, *look = poll->look;
  if (w->npolls != 1) return false;
  const IrOrder o = (IrOrder)ir_attr_i(look, ATTR_order);
  if (look->parent != loop->regions[0] || (look->kind != OP_load && !pass_rmw_is_neutral(look))) return false;
  if (look->kind != OP_load && o != ORDER_weak && o != ORDER_relaxed && o != ORDER_acquire)
    return false; // it releases
  PASS_EACH_OP(loop->regions[0], op) {
    if (op->kind == OP_fence) return false;
  }
  for (uint32_t i = 0; i < loop->nresults; i++) {
    if (ir_result(loop, i)->uses && !after(w, poll, i)) return false;
  }
  put_wait(w, loop, poll, acquired(look));
  for (uint32_t i = 0; i < loop->nresults; i++) {
    if (ir_result(loop, i)->uses) ir_replace_uses(ir_result(loop, i), after(w, poll, i));
  }
  ir_erase(loop);
  return true;
}

// ---- loops that are only marked -----------------------------------------------------------------------------------------

static void slice(Waits *w, const IrValue *v);

static void slice_op(Waits *w, const IrOp *op) {
  if (map_get(&w->seen, (uintptr_t)op, NULL)) return;
  map_set(&w->seen, (uintptr_t)op, 1);
  switch (op->kind) {
  case OP_load: {
    const bool ordered = ir_attr_i(op, ATTR_order) != ORDER_weak || ir_attr_i(op, ATTR_volatile);
    const IrEffects e = ir_op_effects_deep(w->loop);
    w->found |= ordered || (!inside(w, ir_operand(op, 0)) && !(e.writes & ~RES_WORLD));
    break;
  }
  case OP_atomic_rmw: w->found |= pass_rmw_is_neutral(op) || is_rmw_repeatable(w, op); break;
  case OP_atomic_cas: w->found |= !inside(w, ir_operand(op, 1)); break;
  default: break;
  }
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (ir_operand(op, i)) slice(w, ir_operand(op, i));
  }
  for (uint32_t r = 0; r < op->nregions; r++) {
    const IrOp *end = ir_terminator(op->regions[r]);
    for (uint32_t i = 0; i < end->noperands; i++) slice(w, ir_operand(end, i));
  }
}

// Does the condition depend on memory that others may be about to write?
static void slice(Waits *w, const IrValue *v) {
  if (!inside(w, v) || w->found) return;
  if (v->def) {
    slice_op(w, v->def);
    return;
  }
  if (map_get(&w->seen, (uintptr_t)v, NULL)) return;
  map_set(&w->seen, (uintptr_t)v, 1);
  const IrBlock *b = v->block;
  if (b == w->loop->regions[0])
    slice(w, ir_operand(ir_terminator(w->loop->regions[1]), v->index));
  else if (b == w->loop->regions[1])
    slice(w, ir_operand(ir_terminator(b->owner->regions[0]), v->index + 1));
  else if (b->owner)
    slice_op(w, b->owner);
}

static bool waits_inside(const IrBlock *b) {
  PASS_EACH_OP(b, op) {
    if (op->kind == OP_wait || op->kind == OP_acquire || op->kind == OP_mbarrier_wait ||
        op->kind == OP_team_barrier)
      return true;
    for (uint32_t r = 0; r < op->nregions; r++) {
      if (waits_inside(op->regions[r])) return true;
    }
  }
  return false;
}

// ---- all ------------------------------------------------------------------------------------------------------------------

static void while_loop(Waits *w, IrOp *loop) {
  const Loc loc = loop->loc;
  w->loop = loop;
  if (waits_inside(loop->regions[0]) || waits_inside(loop->regions[1])) return;
  if (find_polls(w)) {
    const Str *name = name_of(w, ir_operand(w->polls[0].look, 0));
    const char *what = arena_printf(w->p->scratch, "'%s'%s", name ? name->s : "a word in memory",
                                    w->npolls > 1 ? " and others" : "");
    if (replace(w)) {
      pass_remark(w->p, loc, "the polling loop is now a wait for %s", what);
      return;
    }
    IrOp *first = loop->regions[1]->first;
    for (int i = 0; i < w->npolls; i++)
      put_wait(w, w->polls[i].look->parent == loop->regions[1] ? w->polls[i].look : first, &w->polls[i],
               ORDER_relaxed);
    pass_remark(w->p, loc, "the polling loop now waits for %s before it looks again", what);
    return;
  }
  w->found = false;
  map_init(&w->seen, w->p->scratch);
  slice(w, ir_operand(ir_terminator(loop->regions[0]), 0));
  if (!w->found) return;
  ir_set_attr_i(loop, ATTR_poll, 1);
  pass_remark(w->p, loc, "the loop may be polling but stays a loop that yields at its back edge: %s", w->why);
}

static bool visit(IrOp *op, void *user) {
  Waits *w = user;
  if (op->kind == OP_while) {
    while_loop(w, op);
  } else if ((op->kind == OP_wait || op->kind == OP_acquire) && !ir_attr_s(op, ATTR_label)) {
    const Str *name = name_of(w, ir_operand(op, 0));
    if (name) ir_set_attr_s(op, ATTR_label, name);
  }
  return true;
}

Status pass_waits(Pass *p) {
  PASS_EACH_FUNC(p, f) {
    Waits w = {.p = p, .f = f};
    ir_walk(f->body, visit, &w);
  }
  return ST_OK;
}
