// parts: the sum of a row that a loop carries on is kept in parts, which are added when the loop has ended.
//
//   for s    s = s * u + sum(x, axis 1)            for s4   s4 = s4 * u + sums of each thread's own elements of x
//            yield s                       ->               yield s4
//                                                  behind   s = sum(s4, axis 1)
//
// Where the matrix unit leaves a row in four lanes, of one warp or of several, each of them adds what it has; none waits for the others
// in a turn. This is the running sum of flash attention (FlashAttention-3's kernels likewise add once, behind the loop).
#include "pass/pass_impl.h"

enum { PAIR = 2 }; // elements side by side in a thread

typedef struct Parts {
  Pass *pass;
  IrFunc *f;
  IrCtx *ctx;
} Parts;

// sum(x, axis 1) of a matrix that the matrix unit leaves so, in that many threads a row; NULL: v is something else.
static IrOp *row_sum(const Parts *p, const IrValue *v, int32_t *threads) {
  IrOp *op = v->def;
  if (!op || op->kind != OP_reduce || op->nresults != 1 || ir_attr_i(op, ATTR_axis) != 1) return NULL;
  const IrType *t = ir_operand(op, 0)->type;
  const IrBlock *region = op->regions[0];
  const IrOp *add = ir_operand(ir_terminator(region), 0)->def;
  const bool adds = add && add->kind == OP_fadd && add->parent == region &&
                    ir_operand(add, 0)->block == region && ir_operand(add, 1)->block == region &&
                    ir_operand(add, 0) != ir_operand(add, 1);
  if (!adds || t->rank != 2 || !ir_type_is_float(t)) return NULL;
  *threads = lay_row_threads(p->pass, p->f, ir_operand(op, 0));
  return *threads && t->shape[1] % (2 * *threads * PAIR) == 0 ? op : NULL;
}

static IrValue *sum(IrBuilder *b, IrValue *v, int axis) {
  IrCtx *ctx = b->m->ctx;
  int32_t shape[IR_MAX_RANK];
  int rank = 0;
  for (int d = 0; d < v->type->rank; d++)
    if (d != axis) shape[rank++] = v->type->shape[d];
  const IrType *t = ir_type_tile(ctx, v->type->dtype, rank, shape),
               *one = ir_type_scalar(ctx, v->type->dtype, LEVEL_program);
  IrOp *op = ir_build(b, OP_reduce, 1, &v, 1, &t, 1);
  ir_set_attr_i(op, ATTR_axis, axis);
  IrBlock *region = op->regions[0];
  IrValue *x = ir_block_arg(region, one, NULL), *y = ir_block_arg(region, one, NULL);
  IrBuilder in = ir_builder_at_end(region);
  in.loc = b->loc;
  IrValue *both = ir_binary(&in, OP_fadd, x, y);
  ir_yield(&in, 1, &both);
  return ir_result(op, 0);
}

// The parts of a row's sum: [rows, threads].
static IrValue *parts_of(Parts *p, IrOp *reduce, int32_t threads) {
  IrBuilder b = ir_builder_before(reduce);
  b.loc = reduce->loc;
  IrValue *x = ir_operand(reduce, 0);
  const int32_t shape[4] = {x->type->shape[0], x->type->shape[1] / (threads * PAIR), threads, PAIR};
  const IrType *t = ir_type_tile(p->ctx, x->type->dtype, 4, shape);
  return sum(&b, sum(&b, ir_result(ir_build(&b, OP_reshape, 1, &x, 1, &t, 0), 0), 3), 1);
}

// The parts of what the loop begins with.
static IrValue *first_parts(Parts *p, IrOp *loop, IrValue *init, int32_t threads) {
  uint64_t bits;
  int32_t others;
  const int32_t shape[2] = {init->type->shape[0], threads};
  IrBuilder b = ir_builder_before(loop);
  b.loc = loop->loc;
  IrValue *none = pass_const_bits(&b, ir_type_tile(p->ctx, init->type->dtype, 2, shape), 0);
  if (pass_const(init, &bits) && !bits) return none;
  const IrOp *op = init->def;
  if (op && op->kind == OP_reduce && op->aux == loop->parent && ir_operand(op, 0)->type->shape[1] == threads)
    return ir_operand(op, 0); // of a loop before
  IrOp *reduce = row_sum(p, init, &others);
  if (reduce && reduce->parent == loop->parent && others == threads) return parts_of(p, reduce, threads);
  const IrType *t = ir_type_tile(p->ctx, IR_i32, 1, &threads); // the first thread has all
  IrOp *number = ir_build(&b, OP_arange, 0, NULL, 1, &t, 0);
  ir_set_attr_i(number, ATTR_start, 0);
  ir_set_attr_i(number, ATTR_end, threads);
  IrValue *is_first = ir_cmp(&b, CMP_eq, ir_result(number, 0), pass_const_bits(&b, t, 0));
  return ir_select(&b, ir_broadcast(&b, ir_expand_dims(&b, is_first, 0), 2, shape),
                   ir_broadcast(&b, ir_expand_dims(&b, init, 1), 2, shape), none);
}

// What becomes of the carried value i in a turn: s * u + sum(x) or s + sum(x), where nothing else reads the sum; NULL: something else.
static IrOp *step_of(const Parts *p, const IrOp *loop, uint32_t i, IrOp **reduce, int32_t *threads) {
  const IrBlock *body = loop->regions[0];
  const IrValue *s = body->args.data[1 + i];
  if (s->type->kind != IR_TILE || s->type->rank != 1 || !s->uses || s->uses->next) return NULL;
  IrOp *op = s->uses->user;
  const IrUse *u = op->nresults == 1 ? op->results[0].uses : NULL;
  if (op->parent != body || (op->kind != OP_fma && op->kind != OP_fadd) || !u || u->next ||
      u->user != ir_terminator(body) || ir_operand(u->user, i) != ir_result(op, 0))
    return NULL;
  const bool fused = op->kind == OP_fma;
  if (fused && ir_operand(op, 2) == s) return NULL;
  const IrValue *r = ir_operand(op, fused ? 2 : ir_operand(op, 0) == s);
  *reduce = row_sum(p, r, threads);
  if (r->uses->next) return NULL; // the turn wants the sum itself
  return *reduce && (*reduce)->parent == body ? op : NULL;
}

static void keep_in_parts(Parts *p, IrOp *loop, uint32_t i) {
  IrBlock *body = loop->regions[0];
  int32_t threads;
  IrOp *reduce = NULL, *step = step_of(p, loop, i, &reduce, &threads);
  if (!step) return;
  IrValue *first = first_parts(p, loop, ir_operand(loop, 3 + i), threads);
  const IrType *t = first->type;
  const IrValue *s = body->args.data[1 + i];
  IrValue *parts = parts_of(p, reduce, threads);
  ir_op_add_operand(loop, first);
  ir_op_add_result(loop, t);
  IrValue *own = ir_block_arg(body, t, NULL), *ops[3];
  IrBuilder b = ir_builder_before(step);
  b.loc = step->loc;
  for (uint32_t k = 0; k < step->noperands; k++) {
    IrValue *v = ir_operand(step, k);
    ops[k] = v == s                      ? own
             : v == ir_result(reduce, 0) ? parts
                                         : ir_broadcast(&b, ir_expand_dims(&b, v, 1), 2, t->shape);
  }
  ir_op_add_operand(ir_terminator(body), pass_like(&b, step, step->noperands, ops, t));
  IrBuilder behind = ir_builder_after(loop);
  behind.loc = reduce->loc;
  IrValue *whole = sum(&behind, ir_result(loop, loop->nresults - 1), 1);
  whole->def->aux = loop->parent;
  ir_replace_uses(ir_result(loop, i), whole);
  pass_remark(p->pass, reduce->loc,
              "each thread sums its part of a row in this loop; the parts are added behind it");
}

static bool clear_mark(IrOp *op, void *user) {
  (void)user;
  op->aux = NULL;
  return true;
}

static void visit(Parts *p, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    for (uint32_t r = 0; r < op->nregions; r++) visit(p, op->regions[r]);
    if (op->kind != OP_for || ir_type_is_thread(ir_operand(op, 0)->type)) continue;
    const uint32_t n = op->nresults;
    for (uint32_t i = 0; i < n; i++) keep_in_parts(p, op, i);
  }
}

Status pass_parts(Pass *pass) {
  PASS_EACH_FUNC(pass, f) {
    Parts p = {.pass = pass, .f = f, .ctx = pass->m->ctx};
    ir_walk(f->body, clear_mark, NULL);
    visit(&p, f->body);
    ir_walk(f->body, clear_mark, NULL);
    ir_renumber(f);
  }
  return ST_OK;
}
