// pingpong: two groups of four warps issue their products in turn, so that the matrix unit works for one while the other computes.
//
//   for                                          for
//     d = wgmma(q, k)                              turn_begin
//     e = wgmma(p, v)               ->             d = wgmma(q, k)
//     wait d; p = exp2(d ..)                       e = wgmma(p, v)
//     wait e                                       turn_end
//                                                  wait d; p = exp2(d ..)
//                                                  wait e
//
// Left alone both groups may drift into step: both wait for the matrix unit, then both compute (Shah et al., FlashAttention-3,
// arXiv:2407.08608, section 3.1). Turns are an order in time and change no value. Done in loops that ask for it (tl.range's warp_specialize),
// issue two products back to back, compute functions of the first (a softmax) and leave none in flight. It is not done unasked: on an
// H200 it gains 4 % of causal attention with heads of 64 and blocks of 128 x 128, and loses 2 to 4 % with heads of 128.
#include "pass/pass_impl.h"

enum { GROUP_WARPS = 4, GROUPS = 2 };

typedef struct Pingpong {
  Pass *pass;
  IrOp *partitions;
  IrValue *turns; // the barriers; NULL: not made yet
} Pingpong;

static IrValue *turns_of(Pingpong *p) {
  if (p->turns) return p->turns;
  IrBuilder b = ir_builder_before(p->partitions);
  b.loc = p->partitions->loc;
  const IrType *t = ir_type_mbarrier(p->pass->m->ctx, GROUPS);
  IrOp *op = ir_build(&b, OP_mbarrier_alloc, 0, NULL, 1, &t, 0);
  ir_set_attr_i(op, ATTR_count, GROUP_WARPS);
  return p->turns = ir_result(op, 0);
}

static void take_turns(Pingpong *p, IrBlock *body) {
  IrOp *first = NULL, *last = NULL;
  int products = 0;
  bool waits = false, computes = false, flying = false;
  PASS_EACH_OP(body, op) {
    if (op->nregions && op->kind != OP_if) return;
    if (op->kind == OP_wgmma_wait) waits = true, flying = ir_attr_i(op, ATTR_pending) > 0;
    if (op->kind == OP_math) computes |= waits;
    if (op->kind != OP_wgmma) continue;
    if (waits) return; // a turn would last as long as what is computed
    if (!first) first = op;
    last = op;
    products++;
  }
  if (products < 2 || !computes || flying) return;
  IrValue *turns = turns_of(p);
  IrBuilder before = ir_builder_before(first), behind = ir_builder_after(last);
  before.loc = first->loc;
  behind.loc = last->loc;
  ir_build(&before, OP_turn_begin, 1, &turns, 0, NULL, 0);
  ir_build(&behind, OP_turn_end, 1, &turns, 0, NULL, 0);
  pass_remark(p->pass, first->loc, "two groups of four warps issue this product and the next in turn");
}

static void visit(Pingpong *p, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    for (uint32_t r = 0; r < op->nregions; r++) visit(p, op->regions[r]);
    if (op->kind == OP_for && ir_attr_i(op, ATTR_warp_spec)) take_turns(p, op->regions[0]);
  }
}

Status pass_pingpong(Pass *pass) {
  PASS_EACH_FUNC(pass, f) {
    PASS_EACH_OP(f->body, op) {
      if (op->kind != OP_warp_partitions) continue;
      const IrAttr *first = ir_attr(op, ATTR_first), *warps = ir_attr(op, ATTR_warps);
      if (first->ints.v[0] != 0 || warps->ints.v[0] != GROUPS * GROUP_WARPS) continue;
      Pingpong p = {.pass = pass, .partitions = op};
      visit(&p, op->regions[0]);
    }
    ir_renumber(f);
  }
  return ST_OK;
}
