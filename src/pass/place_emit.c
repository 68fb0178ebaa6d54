// place_emit: program-level code of the placed function, step by step: scalars as they are, control with its tiles taken
// out (they live in buffers), products on buffers.
#include "pass/place.h"

#include <string.h>

IrValue *place_value(Place *p, IrValue *old) {
  IrValue *v = map_getp(&p->values, old);
  if (!v)
    place_fail(p, old->def ? old->def->loc : LOC_NONE, "%s is used before it is placed",
               old->def ? ir_ops[old->def->kind].name : "an argument");
  return v;
}

void place_copy_attrs(IrOp *to, const IrOp *from) {
  for (uint32_t i = 0; i < from->nattrs; i++) {
    const IrAttr *a = &from->attrs[i];
    switch (a->name) {
    case ATTR_perm:
    case ATTR_uns:
    case ATTR_cases:
    case ATTR_first:
    case ATTR_warps:
    case ATTR_regs:
    case ATTR_divisible:
    case ATTR_contiguous:
    case ATTR_constancy:
    case ATTR_steps: ir_set_attr_ints(to, a->name, a->ints.v, a->ints.n); break;
    case ATTR_prefix:
    case ATTR_msg:
    case ATTR_callee:
    case ATTR_asm:
    case ATTR_constraints:
    case ATTR_label: ir_set_attr_s(to, a->name, a->s); break;
    default: ir_set_attr_i(to, a->name, a->i);
    }
  }
}

// ---- shared memory of the tile stage --------------------------------------------------------------------------------------------
static const IrType *scratch(Place *p, const IrType *t) {
  return ir_type_memdesc(p->ctx, t->dtype, SPACE_scratch, t->rank, t->shape, t->stages);
}

// A memdesc as a buffer of one stage, whatever made it.
PlaceBuf *place_mem(Place *p, IrValue *memdesc) {
  PlaceBuf *b = map_getp(&p->mems, memdesc);
  if (b) return b;
  b = arena_new(p->arena, PlaceBuf);
  const IrType *t = memdesc->type;
  b->elem = ir_type_scalar(p->ctx, t->dtype, LEVEL_program);
  b->type = scratch(p, t);
  b->rank = t->rank;
  memcpy(b->shape, t->shape, sizeof b->shape);
  b->mem = place_value(p, memdesc);
  map_setp(&p->mems, memdesc, b);
  return b;
}

static void emit_alloc(Place *p, IrOp *op) {
  const IrType *t = ir_result(op, 0)->type;
  PlaceBuf *b = arena_new(p->arena, PlaceBuf);
  b->id = (int)p->bufs.len;
  b->elem = ir_type_scalar(p->ctx, t->dtype, LEVEL_program);
  b->type = scratch(p, t);
  b->bytes = ir_type_elems(t) * ir_dtypes[t->dtype].bytes * (t->stages ? t->stages : 1);
  b->loc = op->loc;
  b->why = "shared memory of the kernel";
  b->first = -1;
  vec_push(p->arena, &p->bufs, b);
  map_setp(&p->values, ir_result(op, 0), place_buf_mem(p, b));
  b->last = INT32_MAX;
}

// ---- control ------------------------------------------------------------------------------------------------------------------
static bool kept(Place *p, const IrValue *v, Loc loc) { // by value; tiles are in buffers
  if (v->type->kind == IR_DESC)
    place_fail(p, loc,
               "a tensor descriptor that control flow chooses or a loop carries cannot be placed on a CPU");
  return v->type->kind != IR_TILE && !ir_type_is_thread(v->type);
}

static void ready(Place *p, const IrValue *v) {
  PlaceInfo *in = place_info(p, v);
  if (in->buf) in->ready = true;
}

// Thread-level values leave a region through the buffers of those they become.
static void hand_over(Place *p, const IrBlock *from, const IrOp *end) {
  const IrOp *op = from->owner;
  const uint32_t skip = end->kind == OP_cond_yield;
  IrValue **vs = arena_array(p->arena, IrValue *, end->noperands + 1),
          **to = arena_array(p->arena, IrValue *, end->noperands + 1);
  uint32_t n = 0;
  for (uint32_t i = skip; i < end->noperands; i++) {
    IrValue *v = ir_operand(end, i);
    if (!ir_type_is_thread(v->type)) continue;
    const uint32_t k = i - skip;
    vs[n] = v;
    if (op->kind == OP_for)
      to[n] = op->regions[0]->args.data[1 + k];
    else if (op->kind == OP_while)
      to[n] = skip ? op->regions[1]->args.data[k] : op->regions[0]->args.data[k];
    else
      to[n] = ir_result(op, k);
    n++;
  }
  if (n) place_hand_over(p, vs, to, n, end->loc);
}

// Before control: carried values get their first contents, results the buffers of what they come from.
static void spill_control(Place *p, IrOp *op) {
  IrValue **vs = arena_array(p->arena, IrValue *, op->noperands + 1),
          **to = arena_array(p->arena, IrValue *, op->noperands + 1);
  uint32_t n = 0;
  const uint32_t first = op->kind == OP_for ? 3 : op->kind == OP_while ? 0 : op->noperands;
  for (uint32_t i = first; i < op->noperands; i++) {
    if (!ir_type_is_thread(ir_operand(op, i)->type)) continue;
    vs[n] = ir_operand(op, i);
    to[n++] = op->regions[0]->args.data[op->kind == OP_for ? i - 2 : i];
  }
  if (n) place_hand_over(p, vs, to, n, op->loc);
  for (uint32_t k = 0; k < op->nresults; k++) {
    IrValue *r = ir_result(op, k);
    if (!ir_type_is_thread(r->type)) continue;
    const IrValue *same = op->kind == OP_for     ? op->regions[0]->args.data[1 + k]
                          : op->kind == OP_while ? op->regions[1]->args.data[k]
                                                 : r;
    map_setp(&p->spills, r, place_spill(p, same));
  }
}

static void emit_region(Place *p, IrBlock *from, IrBlock *to) {
  const IrBuilder back = p->b;
  for (uint32_t i = 0; i < from->args.len; i++) {
    IrValue *a = from->args.data[i];
    if (kept(p, a, from->owner->loc))
      map_setp(&p->values, a, ir_block_arg(to, a->type, a->name));
    else
      ready(p, a);
  }
  p->b = ir_builder_at_end(to);
  place_emit_steps(p, from);
  const IrOp *end = ir_terminator(from);
  hand_over(p, from, end);
  IrValue **vs = arena_array(p->arena, IrValue *, end->noperands + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < end->noperands; i++) {
    IrValue *v = ir_operand(end, i);
    if (kept(p, v, end->loc)) vs[n++] = place_value(p, v);
  }
  p->b.loc = end->loc;
  ir_build(&p->b, end->kind, n, vs, 0, NULL, 0);
  p->b = back;
}

static void emit_control(Place *p, IrOp *op) {
  const int start = p->clock;
  spill_control(p, op);
  IrValue **ops = arena_array(p->arena, IrValue *, op->noperands + 1);
  const IrType **types = arena_array(p->arena, const IrType *, op->nresults + 1);
  uint32_t nops = 0, nres = 0;
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (kept(p, ir_operand(op, i), op->loc)) ops[nops++] = place_value(p, ir_operand(op, i));
  }
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (kept(p, ir_result(op, i), op->loc)) types[nres++] = ir_result(op, i)->type;
  }
  p->b.loc = op->loc;
  IrOp *made = ir_build(&p->b, op->kind, nops, ops, nres, types, op->nregions);
  place_copy_attrs(made, op);
  for (uint32_t i = 0; i < op->nregions; i++) emit_region(p, op->regions[i], made->regions[i]);
  for (uint32_t i = 0, k = 0; i < op->nresults; i++) {
    IrValue *r = ir_result(op, i);
    if (kept(p, r, op->loc))
      map_setp(&p->values, r, ir_result(made, k++));
    else
      ready(p, r);
  }
  p->clock++;
  if (op->kind == OP_for || op->kind == OP_while) place_bufs_loop(p, start);
}

// ---- ops ----------------------------------------------------------------------------------------------------------------------
static void emit_dot(Place *p, IrOp *op) {
  PlaceBuf **b = map_getp(&p->dots, op);
  IrValue *ops[3] = {place_buf_mem(p, b[2]), place_buf_mem(p, b[0]), place_buf_mem(p, b[1])};
  IrOp *d = ir_build(&p->b, OP_dot_mem, 3, ops, 0, NULL, 0);
  if (ir_attr(op, ATTR_prec)) ir_set_attr_i(d, ATTR_prec, ir_attr_i(op, ATTR_prec));
  place_info(p, ir_result(op, 0))->ready = true;
}

static void emit_op(Place *p, IrOp *op) {
  p->b.loc = op->loc;
  switch (op->kind) {
  case OP_const:
    map_setp(&p->values, ir_result(op, 0),
             place_pconst(p, ir_result(op, 0)->type, (uint64_t)ir_attr_i(op, ATTR_value)));
    return;
  case OP_if:
  case OP_for:
  case OP_while:
  case OP_switch: emit_control(p, op); return;
  case OP_dot: emit_dot(p, op); return;
  case OP_make_desc: return; // its parts went where they are used
  case OP_mem_alloc: emit_alloc(p, op); return;
  case OP_mem_view: {
    const IrType *t = scratch(p, ir_result(op, 0)->type);
    IrValue *ops[2] = {place_value(p, ir_operand(op, 0)), place_value(p, ir_operand(op, 1))};
    map_setp(&p->values, ir_result(op, 0), ir_result(ir_build(&p->b, OP_mem_view, 2, ops, 1, &t, 0), 0));
    return;
  }
  case OP_consume:
    if (ir_operand(op, 0)->type->kind == IR_DESC) return;
    break;
  case OP_from_thread: place_from_thread(p, op); return;
  case OP_barrier:
  case OP_warp_barrier: return; // what is at program level runs in order
  default: break;
  }
  if (!ir_op_legal_in(op->kind, STAGE_placed))
    place_fail(p, op->loc, "%s cannot be placed on a CPU", ir_ops[op->kind].name);
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (ir_operand(op, i)) place_value(p, ir_operand(op, i));
  }
  ir_clone_op(&p->b, op, &p->values);
}

void place_emit_steps(Place *p, IrBlock *old) {
  const PlacePlan *plan = map_getp(&p->plans, old);
  for (PlaceStep *s = plan->first; s; s = s->next) {
    p->clock++;
    if (s->last_op) {
      place_emit_threads(p, s);
    } else if (s->op) {
      emit_op(p, s->op);
    } else if (s->group->special) {
      place_emit_special(p, s->group->special);
    } else {
      place_emit_group(p, s->group);
    }
  }
}

void place_emit_run(Place *p) {
  IrFunc *f = p->old;
  p->func = ir_func_new(p->m, f->name, f->is_kernel);
  p->func->wait_class = f->wait_class;
  p->func->loc = f->loc;
  map_init(&p->values, p->arena);
  map_init(&p->consts, p->arena);
  map_init(&p->mems, p->arena);
  map_init(&p->spills, p->arena);
  for (uint32_t i = 0; i < f->body->args.len; i++) {
    IrValue *a = f->body->args.data[i];
    map_setp(&p->values, a, ir_func_param(p->func, a->type, a->name));
    p->func->params.data[i] = f->params.data[i];
  }
  p->b = ir_builder_at_end(p->func->body);
  ir_const_i(&p->b, ir_type_scalar(p->ctx, IR_i32, LEVEL_program), 0);
  p->anchor = p->func->body->last;
  place_emit_steps(p, f->body);
  p->b.loc = ir_terminator(f->body)->loc;
  ir_return(&p->b, 0, NULL);
  place_bufs_pack(p);
  ir_erase(p->anchor);
}
