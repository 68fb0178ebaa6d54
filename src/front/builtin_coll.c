// Library: collectives of libshmem_device (fcollect, broadcast), made of copies and barriers of ranks.
//
// All ranks of the team call them with the same sizes; the destination must be free on every rank before (the library's
// rule: a barrier, if others may still read it). They end when the whole destination is there.
#include "front/builtins.h"

static int64_t unit_of(const Call *c, const Value *p) { // bytes an element counts
  const Elem *e = p->rt.type->elem->to;
  const int bits = elem_bits(e);
  return c->row->data & SH_bytes ? 1 : bits < 8 ? 1 : bits / 8;
}

static Value *at_bytes(Lower *L, Value *p, Value *bytes,
                       Loc loc) { // bytes NULL: p itself, as a pointer to bytes
  p = front_bitcast_to(L, p, elem_pointer(L->f, elem_number(L->f, FDT_int8)), loc);
  return bytes ? front_binary_op(L, AOP_Add, p, bytes, loc) : p;
}

static Value *level(Lower *L, Value *v, bool thread, Loc loc) {
  return thread ? front_raise_level(L, v, loc) : v;
}

// Puts src to dst + at bytes on every rank.
static void put_to_all(Lower *L, Call *c, Value *dst, Value *src, Value *bytes, bool thread) {
  Front *f = L->f;
  const Elem *i32 = elem_number(f, FDT_int32);
  Value *bounds[3] = {front_cast_to(L, val_int(f, 0), i32, false, c->loc),
                      front_thread_id(L, OP_num_ranks, 0, "", c->loc),
                      front_cast_to(L, val_int(f, 1), i32, false, c->loc)};
  IrValue *ops[3];
  for (int k = 0; k < 3; k++) ops[k] = level(L, bounds[k], thread, c->loc)->rt.ir;
  IrOp *loop = ir_build(front_at(L, c->loc), OP_for, 3, ops, 0, NULL, 1);
  const IrBuilder saved = L->b;
  Value *pe = val_rt(f, ir_block_arg(loop->regions[0], ops[0]->type, NULL), type_scalar(f, i32, thread),
                     front_why_new(f, c->loc, "the rank"));
  L->b = ir_builder_at_end(loop->regions[0]);
  Value *v[4] = {dst, src, bytes, pe};
  IrOp *put = front_effect(L, OP_put, v, 4, c->loc);
  ir_set_attr_i(put, ATTR_group, c->row->data & SH_group);
  ir_yield(front_at(L, c->loc), 0, NULL);
  L->b = saved;
}

static bool under_root(Lower *L, Call *c, Value *root, bool thread, IrOp **op) { // begins `if rank == root`
  Value *me = level(L, front_thread_id(L, OP_rank, 0, "", c->loc), thread, c->loc);
  Value *is = front_binary_op(L, AOP_Eq, me, root, c->loc);
  if (is->kind != VAL_RT) return false;
  *op = ir_build(front_at(L, c->loc), OP_if, 1, &is->rt.ir, 0, NULL, 2);
  return true;
}

Value *bi_collective(Lower *L, Call *c) { // team dest source nelems pe_root?; data: SH_*, SH_root: broadcast
  Front *f = L->f;
  const IrGroup group = (IrGroup)(c->row->data & SH_group);
  const bool thread = group != GROUP_block, root = c->row->data & SH_root;
  Value *team = front_int_arg(L, c, 0, FDT_int32, "a team", thread);
  Value *dst = front_pointer_arg(L, c, 1, thread), *src = front_pointer_arg(L, c, 2, thread);
  Value *n = front_int_arg(L, c, 3, FDT_int64, "a number of elements", thread);
  Value *from = root ? front_int_arg(L, c, 4, FDT_int32, "a rank", thread) : team;
  if (team->kind != VAL_RT || dst->kind != VAL_RT || src->kind != VAL_RT || n->kind != VAL_RT ||
      from->kind != VAL_RT)
    return f->poison;
  Value *v[5] = {team, dst, src, n, from};
  if (!thread && !front_block_form(L, c, v, 5)) return f->poison;
  const int64_t unit = unit_of(c, dst);
  Value *bytes = unit == 1 ? n : front_binary_op(L, AOP_Mul, n, val_int(f, unit), c->loc);
  src = at_bytes(L, src, NULL, c->loc);
  if (root) {
    IrOp *op;
    dst = at_bytes(L, dst, NULL, c->loc);
    if (dst->kind != VAL_RT || src->kind != VAL_RT || !under_root(L, c, from, thread, &op)) return f->poison;
    const IrBuilder saved = L->b;
    L->b = ir_builder_at_end(op->regions[0]);
    put_to_all(L, c, dst, src, bytes, thread);
    ir_yield(front_at(L, c->loc), 0, NULL);
    L->b = ir_builder_at_end(op->regions[1]);
    ir_yield(front_at(L, c->loc), 0, NULL);
    L->b = saved;
  } else {
    Value *me = front_cast_to(L, front_thread_id(L, OP_rank, 0, "", c->loc), elem_number(f, FDT_int64), false,
                              c->loc);
    dst = at_bytes(L, dst, front_binary_op(L, AOP_Mul, level(L, me, thread, c->loc), bytes, c->loc), c->loc);
    if (dst->kind != VAL_RT || src->kind != VAL_RT) return f->poison;
    put_to_all(L, c, dst, src, bytes, thread);
  }
  IrOp *op = front_effect(L, OP_team_barrier, &team, 1, c->loc);
  ir_set_attr_i(op, ATTR_group, group);
  ir_set_attr_i(op, ATTR_scope, SCOPE_sys);
  return f->none;
}
