// dce: drops what nobody uses.
//
// needs:  nothing.
// keeps:  every effect; loops that may wait for others (a `while` with a read inside is never dropped).
// breaks: nothing but IrParam's reads, which may become fewer.
//
// Liveness flows backwards from the ops with effects, as in aggressive dead code elimination (Cytron et al. 1991),
// with control dependence given by the nesting. A carried value or a result lives only if somebody needs it: a loop
// that only feeds its own counter goes away. A pure `while` is assumed to end.
#include "pass/pass_impl.h"

typedef struct Dce {
  Arena *scratch;
  IrFunc *f;
  bool *live; // by value id
  Vec(IrValue *) work;
} Dce;

#define LIVE_OP ((void *)1)

static bool is_live_op(const IrOp *op) { return op->aux == LIVE_OP; }

static void need(Dce *d, IrValue *v) {
  if (!v || d->live[v->id]) return;
  d->live[v->id] = true;
  vec_push(d->scratch, &d->work, v);
}

// How many operands of a region op are its own, not carried values.
static uint32_t own_operands(const IrOp *op) {
  switch (op->kind) {
  case OP_for: return 3;
  case OP_while: return 0;
  default: return op->noperands;
  }
}

// reduce, scan and ops of later stages: their regions live and die with them.
static bool is_control(IrOpKind k) {
  return k == OP_if || k == OP_switch || k == OP_for || k == OP_while || k == OP_warp_partitions;
}

static void need_op(Dce *d, IrOp *op);

static void need_region(Dce *d, IrBlock *b) { PASS_EACH_OP(b, op) need_op(d, op); }

static void need_op(Dce *d, IrOp *op) {
  for (; op && !is_live_op(op); op = op->parent->owner) {
    op->aux = LIVE_OP;
    for (uint32_t i = 0; i < own_operands(op); i++) need(d, ir_operand(op, i));
    if (is_control(op->kind)) {
      if (op->kind == OP_while) need(d, ir_operand(ir_terminator(op->regions[0]), 0));
    } else {
      for (uint32_t r = 0; r < op->nregions; r++) need_region(d, op->regions[r]);
    }
    if (op->kind == OP_yield || op->kind == OP_cond_yield) return; // its op is live already
  }
}

static void need_yield(Dce *d, const IrBlock *b, uint32_t i) { need(d, ir_operand(ir_terminator(b), i)); }

static void need_result(Dce *d, IrOp *op, uint32_t i) {
  need_op(d, op);
  switch (op->kind) {
  case OP_if:
  case OP_switch:
    for (uint32_t r = 0; r < op->nregions; r++) need_yield(d, op->regions[r], i);
    break;
  case OP_for: need(d, op->regions[0]->args.data[i + 1]); break;
  case OP_while: need_yield(d, op->regions[0], i + 1); break;
  default: break;
  }
}

static void need_arg(Dce *d, IrBlock *b, uint32_t i) {
  IrOp *op = b->owner;
  if (!op) return;
  need_op(d, op);
  if (op->kind == OP_for && i > 0) {
    need(d, ir_operand(op, i + 2));
    need_yield(d, b, i - 1);
  } else if (op->kind == OP_while && b == op->regions[0]) {
    need(d, ir_operand(op, i));
    need_yield(d, op->regions[1], i);
  } else if (op->kind == OP_while) {
    need_yield(d, op->regions[0], i + 1);
  }
}

// A root is live by itself: it has an effect that somebody may see. Plain reads have none; what from_thread synchronises
// is its own value.
static bool is_root(const IrOp *op) {
  if (op->kind == OP_return) return true;
  if (ir_ops[op->kind].traits & (TRAIT_TERMINATOR | TRAIT_PURE)) return false;
  switch (op->kind) {
  case OP_from_thread:
  case OP_timer:
  case OP_smid: return false;
  case OP_inline_asm: return !ir_attr_i(op, ATTR_pure);
  case OP_load:
  case OP_load_vec:
  case OP_desc_load:
  case OP_mem_load:
  case OP_mem_get: return ir_op_effects(op).order != ORDER_weak || ir_attr_i(op, ATTR_volatile);
  default: return ir_ops[op->kind].effects[0] != 0;
  }
}

// A loop that reads inside its condition may be waiting; dropping it would drop the wait.
static bool reads_inside(const IrBlock *b) {
  PASS_EACH_OP(b, op) {
    const IrEffects e = ir_op_effects(op);
    if (e.reads || e.writes) return true;
    for (uint32_t r = 0; r < op->nregions; r++) {
      if (reads_inside(op->regions[r])) return true;
    }
  }
  return false;
}

static void find_roots(Dce *d, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    op->aux = NULL;
    for (uint32_t r = 0; r < op->nregions; r++) find_roots(d, op->regions[r]);
  }
}

static void mark_roots(Dce *d, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    if (is_root(op) ||
        (op->kind == OP_while && (reads_inside(op->regions[0]) || reads_inside(op->regions[1]))))
      need_op(d, op);
    for (uint32_t r = 0; r < op->nregions; r++) mark_roots(d, op->regions[r]);
  }
}

static void mark(Dce *d) {
  find_roots(d, d->f->body);
  mark_roots(d, d->f->body);
  while (d->work.len) {
    IrValue *v = vec_pop(&d->work);
    if (v->def)
      need_result(d, v->def, v->index);
    else
      need_arg(d, v->block, v->index);
  }
}

static void flags(const Dce *d, IrValue *const *vs, uint32_t n, bool *keep, bool *all) {
  for (uint32_t i = 0; i < n; i++) *all &= keep[i] = d->live[vs[i]->id];
}

static void sweep(Dce *d, IrBlock *b);

static void sweep_control(Dce *d, IrOp *op) {
  bool *keep_r = arena_array(d->scratch, bool, op->nresults + 1), *keep_a = NULL, all = true;
  if (op->kind == OP_for) {
    for (uint32_t i = 0; i < op->nresults; i++)
      all &= keep_r[i] = d->live[op->results[i].id] || d->live[op->regions[0]->args.data[i + 1]->id];
    keep_a = keep_r;
  } else if (op->kind == OP_while) {
    const IrBlock *before = op->regions[0], *body = op->regions[1];
    keep_a = arena_array(d->scratch, bool, op->noperands + 1);
    flags(d, before->args.data, op->noperands, keep_a, &all);
    for (uint32_t i = 0; i < op->nresults; i++)
      all &= keep_r[i] = d->live[op->results[i].id] || d->live[body->args.data[i]->id];
  } else {
    for (uint32_t i = 0; i < op->nresults; i++) all &= keep_r[i] = d->live[op->results[i].id];
  }
  if (!all) op = pass_narrow(op, keep_r, keep_a, d->scratch);
  op->aux = NULL;
  for (uint32_t r = 0; r < op->nregions; r++) sweep(d, op->regions[r]);
}

static void sweep(Dce *d, IrBlock *b) {
  for (IrOp *op = b->last, *prev; op; op = prev) {
    prev = op->prev;
    if (ir_ops[op->kind].traits & TRAIT_TERMINATOR) {
      op->aux = NULL;
    } else if (!is_live_op(op)) {
      ir_erase(op);
    } else if (is_control(op->kind)) {
      sweep_control(d, op);
    } else {
      op->aux = NULL;
      for (uint32_t r = 0; r < op->nregions; r++) sweep(d, op->regions[r]);
    }
  }
}

Status pass_dce(Pass *p) {
  PASS_EACH_FUNC(p, f) {
    ir_renumber(f);
    Dce d = {.scratch = p->scratch, .f = f};
    d.live = arena_array(p->scratch, bool, f->next_id + 1);
    mark(&d);
    sweep(&d, f->body);
  }
  return ST_OK;
}
