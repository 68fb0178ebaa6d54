// turns: see turns.h.
#include "pass/turns.h"

enum { DEEPEST = 40 };

// The constant amount that a carried value moves by each turn, as a value from outside the loop; NULL: it does not move so.
static IrValue *moves_by(const IrOp *loop, const IrValue *arg) {
  const IrBlock *body = loop->regions[0];
  const IrOp *add = ir_operand(ir_terminator(body), arg->index - 1)->def;
  if (!add || add->kind != OP_add || ir_operand(add, 0) != arg) return NULL;
  IrValue *by = ir_operand(add, 1);
  // an extension of what does not change, left inside the loop, does not change either
  const IrValue *from = by;
  while (from->def && pass_defined_in(from, body) &&
         (from->def->kind == OP_ext_s || from->def->kind == OP_ext_u || from->def->kind == OP_const)) {
    if (from->def->kind == OP_const) return by;
    from = ir_operand(from->def, 0);
  }
  return pass_defined_in(from, body) ? NULL : by;
}

static bool known(const IrOp *loop, const IrValue *v, bool loads, int depth) {
  const IrBlock *body = loop->regions[0];
  if (!v || !pass_defined_in(v, body)) return true;
  if (depth > DEEPEST) return false;
  if (!v->def) return v->block == body && (v->index == 0 || (v->type->kind != IR_TILE && moves_by(loop, v)));
  const IrOp *op = v->def;
  if (op->parent != body || op->nregions) return false;
  const IrType *rank = op->kind == OP_symm_at ? ir_operand(op, 1)->type : NULL; // see own_rank
  if (rank && (rank->kind == IR_TILE || ir_type_is_thread(rank))) return false;
  if (!(ir_ops[op->kind].traits & TRAIT_PURE) && !(loads && op->kind == OP_load && pass_is_plain_load(op)))
    return false;
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (!known(loop, ir_operand(op, i), loads, depth + 1)) return false;
  }
  return true;
}

bool turns_known(const IrOp *loop, const IrValue *v, bool loads) { return known(loop, v, loads, 0); }

uint64_t turns_reads(const IrOp *loop, const IrValue *v, const PassRoots *roots) {
  if (!v || !v->def || !pass_defined_in(v, loop->regions[0])) return 0;
  uint64_t r = v->def->kind == OP_load ? pass_roots(roots, ir_operand(v->def, 0)) : 0;
  for (uint32_t i = 0; i < v->def->noperands; i++) r |= turns_reads(loop, ir_operand(v->def, i), roots);
  return r;
}

static IrValue *times(Turn *t, IrValue *by) {
  return t->turns == 1 ? by : ir_binary(&t->b, OP_mul, by, ir_const_i(&t->b, by->type, t->turns));
}

Turn turn_of(IrOp *loop, Arena *a, IrBuilder b, int64_t turns, bool outside) {
  Turn t = {.loop = loop, .arena = a, .b = b, .turns = turns, .outside = outside};
  map_init(&t.done, a);
  IrValue *from = outside ? ir_operand(loop, 0) : loop->regions[0]->args.data[0];
  t.counter = turns ? ir_binary(&t.b, OP_add, from, times(&t, ir_operand(loop, 2))) : from;
  return t;
}

// from < end - turns * step, where that does not wrap around: the counter itself may pass the largest number.
IrValue *turn_happens(Turn *t) {
  if (t->happens) return t->happens;
  IrOp *loop = t->loop;
  int64_t step = 1;
  ir_const_int(ir_operand(loop, 2), &step);
  const bool uns = ir_attr_i(loop, ATTR_uns_iv) != 0;
  const IrCmp in = step < 0 ? CMP_sgt
                   : uns    ? CMP_ult
                            : CMP_slt,
              back = step < 0 ? CMP_sge
                     : uns    ? CMP_ule
                              : CMP_sle;
  IrValue *end = ir_operand(loop, 1),
          *from = t->outside ? ir_operand(loop, 0) : loop->regions[0]->args.data[0];
  if (t->turns) {
    const int bits = pass_elem_bits(end->type);
    const uint64_t least = uns ? 0 : (uint64_t)1 << (bits - 1);
    IrValue *limit = ir_binary(&t->b, OP_sub, end, times(t, ir_operand(loop, 2)));
    IrValue *none = pass_const_bits(&t->b, end->type, step < 0 ? least - 1 : least);
    end = ir_select(&t->b, ir_cmp(&t->b, back, limit, end), limit, none);
  }
  return t->happens = ir_cmp(&t->b, in, from, end);
}

IrValue *turn_mask(Turn *t, const IrType *p, IrValue *mask) {
  IrCtx *ctx = t->b.m->ctx;
  IrValue *on = turn_happens(t);
  if (p->kind == IR_TILE) {
    const IrType *m = ir_type_with_layout(
        ctx, ir_type_with_dtype(ctx, ir_type_with_shape(ctx, p, p->rank, p->shape), IR_i1), p->layout);
    on = ir_result(ir_build(&t->b, OP_splat, 1, &on, 1, &m, 0), 0);
  }
  return mask ? ir_binary(&t->b, OP_and, turn_value(t, mask), on) : on;
}

// A peer's address exists for ranks that do: beyond the loop's turns it is this rank's own.
static IrValue *own_rank(Turn *t, IrValue *rank) {
  const IrType *i32 = ir_type_scalar(t->b.m->ctx, IR_i32, LEVEL_program);
  IrValue *own = ir_result(ir_build(&t->b, OP_rank, 0, NULL, 1, &i32, 0), 0);
  if (rank->type->dtype != IR_i32) {
    const IrType *type = ir_type_scalar(t->b.m->ctx, rank->type->dtype, LEVEL_program);
    const int bits = pass_elem_bits(type);
    own = ir_result(ir_build(&t->b, bits > 32 ? OP_ext_s : OP_trunc, 1, &own, 1, &type, 0), 0);
  }
  return ir_select(&t->b, turn_happens(t), rank, own);
}

IrValue *turn_value(Turn *t, IrValue *v) {
  if (!v || !pass_defined_in(v, t->loop->regions[0])) return v;
  IrValue *r = map_getp(&t->done, v);
  if (r) return r;
  if (v->def) {
    IrOp *op = v->def;
    IrValue **ops = arena_array(t->arena, IrValue *, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++) ops[i] = turn_value(t, ir_operand(op, i));
    if (op->kind == OP_load) ops[1] = turn_mask(t, ir_operand(op, 0)->type, ir_operand(op, 1));
    if (op->kind == OP_symm_at && pass_defined_in(ir_operand(op, 1), t->loop->regions[0]))
      ops[1] = own_rank(t, ops[1]);
    r = pass_like(&t->b, op, op->noperands, ops, v->type);
  } else if (v->index == 0) {
    r = t->counter;
  } else {
    IrValue *base = t->outside ? ir_operand(t->loop, 2 + v->index) : v,
            *by = turn_value(t, moves_by(t->loop, v));
    r = t->turns ? ir_binary(&t->b, OP_add, base, times(t, by)) : base;
  }
  map_setp(&t->done, v, r);
  return r;
}
