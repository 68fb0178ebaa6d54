// flow: the solver that the forward analyses share. Sparse conditional propagation without the conditions (after Wegman
// and Zadeck 1991): a list of ops whose operands changed, each looked at again.
#include "pass/pass_impl.h"

typedef struct Solver {
  const PassFlow *flow;
  Arena *scratch;
  Vec(IrOp *) work;
  uint32_t head;
} Solver;

#define QUEUED ((void *)1)

static void push(Solver *s, IrOp *op) {
  if (op->aux == QUEUED) return;
  op->aux = QUEUED;
  vec_push(s->scratch, &s->work, op);
}

static void push_users(Solver *s, const IrValue *v) {
  for (const IrUse *u = v->uses; u; u = u->next) {
    IrOp *op = u->user;
    if ((ir_ops[op->kind].traits & TRAIT_TERMINATOR) && op->parent->owner) op = op->parent->owner;
    push(s, op);
  }
}

static void join(Solver *s, const IrValue *to, const IrValue *from) {
  if (s->flow->known(s->flow->user, from) && s->flow->join(s->flow->user, to, from)) push_users(s, to);
}

static IrValue *yielded(const IrOp *op, uint32_t r, uint32_t i) {
  return ir_operand(ir_terminator(op->regions[r]), i);
}

static void control(Solver *s, IrOp *op) {
  const PassFlow *flow = s->flow;
  IrBlock *first = op->nregions ? op->regions[0] : NULL;
  switch (op->kind) {
  case OP_if:
  case OP_switch:
    for (uint32_t i = 0; i < op->nresults; i++) {
      for (uint32_t r = 0; r < op->nregions; r++) join(s, ir_result(op, i), yielded(op, r, i));
    }
    break;
  case OP_for: {
    bool ready = true;
    for (uint32_t i = 0; i < 3; i++) ready &= flow->known(flow->user, ir_operand(op, i));
    if (ready && flow->iv(flow->user, op, first->args.data[0])) push_users(s, first->args.data[0]);
    for (uint32_t i = 0; i < op->nresults; i++) {
      join(s, first->args.data[i + 1], ir_operand(op, i + 3));
      join(s, first->args.data[i + 1], yielded(op, 0, i));
      join(s, ir_result(op, i), ir_operand(op, i + 3));
      join(s, ir_result(op, i), yielded(op, 0, i));
    }
    break;
  }
  case OP_while:
    for (uint32_t i = 0; i < op->noperands; i++) {
      join(s, first->args.data[i], ir_operand(op, i));
      join(s, first->args.data[i], yielded(op, 1, i));
    }
    for (uint32_t i = 0; i < op->nresults; i++) {
      join(s, op->regions[1]->args.data[i], yielded(op, 0, i + 1));
      join(s, ir_result(op, i), yielded(op, 0, i + 1));
    }
    break;
  default: break;
  }
  if (!flow->control || !flow->control(flow->user, op)) return;
  for (uint32_t i = 0; i < op->nresults; i++) push_users(s, ir_result(op, i));
  for (uint32_t r = 0; r < op->nregions; r++) {
    for (uint32_t i = 0; i < op->regions[r]->args.len; i++) push_users(s, op->regions[r]->args.data[i]);
  }
}

static void visit(Solver *s, IrOp *op) {
  const PassFlow *flow = s->flow;
  if (op->kind == OP_if || op->kind == OP_switch || pass_is_loop(op->kind)) {
    control(s, op);
    return;
  }
  for (uint32_t r = 0; r < op->nregions; r++) {
    const IrBlock *b = op->regions[r];
    for (uint32_t i = 0; i < b->args.len; i++) {
      if (!flow->known(flow->user, b->args.data[i]) && flow->unknown(flow->user, b->args.data[i]))
        push_users(s, b->args.data[i]);
    }
  }
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (ir_operand(op, i) && !flow->known(flow->user, ir_operand(op, i))) return;
  }
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (flow->op(flow->user, op, i)) push_users(s, ir_result(op, i));
  }
}

static void push_all(Solver *s, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    op->aux = NULL;
    if (!(ir_ops[op->kind].traits & TRAIT_TERMINATOR)) push(s, op);
    for (uint32_t r = 0; r < op->nregions; r++) push_all(s, op->regions[r]);
  }
}

void pass_flow_run(IrFunc *f, const PassFlow *flow, Arena *scratch) {
  Solver s = {.flow = flow, .scratch = scratch};
  push_all(&s, f->body);
  while (s.head < s.work.len) {
    IrOp *op = s.work.data[s.head++];
    op->aux = NULL;
    visit(&s, op);
  }
}
