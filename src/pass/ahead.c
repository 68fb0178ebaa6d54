// ahead: a loop's first product is computed one turn ahead, so that it runs while the turn works on the one before.
//
//   before      s = dot(q, k(lo))                              of the first turn
//   for i, s    next = dot(q, k(i + step))                     in flight
//               what the turn makes of s: p
//               acc = dot(p, v(i), acc)                        the second product
//               yield next                                     waited for at the end of the turn
//
// It is what hides the softmax of flash attention (Shah et al., FlashAttention-3, arXiv:2407.08608, section 3.2). The last turn computes
// a product that nobody reads: blocks past a tensor's end are zeros. Where a loop goes on from where another one ended, it takes
// over what that one computed last.
#include "pass/pass_impl.h"

#include <string.h>

enum {
  LEAST_REGISTERS = 64
}; // of a thread, for each of the two tiles: on smaller ones the copies cost more than they hide
enum { MOST_REGISTERS = 208 }; // of a thread, for both products' tiles, the first one's twice

typedef struct Done { // a loop that computes ahead
  IrOp *loop;
  uint32_t index; // of the carried product
  IrOp *dot;      // in the loop
} Done;

typedef struct Ahead {
  Pass *pass;
  Arena *arena;
  PassAxes *axes;
  uint32_t nvalues;
  Vec(Done) done;
} Ahead;

// ---- which product ---------------------------------------------------------------------------------------------------------------
// The load behind an operand that may be turned and of fewer axes; NULL: there is none in b.
static IrOp *load_of(const IrValue *v, const IrBlock *b) {
  while (v->def && v->def->parent == b && (v->def->kind == OP_trans || v->def->kind == OP_reshape))
    v = ir_operand(v->def, 0);
  return v->def && v->def->parent == b && v->def->kind == OP_desc_load ? v->def : NULL;
}

static bool is_index(const IrValue *v, const IrOp *loop,
                     int depth) { // of the counter and what the loop does not change
  const IrBlock *b = loop->regions[0];
  if (!pass_defined_in(v, b)) return true;
  if (depth > 20) return false;
  if (!v->def) return v->block == b && v->index == 0;
  if (v->def->nregions || !(ir_ops[v->def->kind].traits & TRAIT_PURE) || v->type->kind == IR_TILE)
    return false;
  for (uint32_t i = 0; i < v->def->noperands; i++) {
    if (!is_index(ir_operand(v->def, i), loop, depth + 1)) return false;
  }
  return true;
}

static bool writes(IrOp *op, void *user) {
  const IrEffects e = ir_op_effects(op);
  bool *any = user;
  *any |= e.order || e.barrier || e.writes;
  return !*any;
}

static bool depends_on(const IrValue *v, const IrOp *op, const IrBlock *b, int depth) {
  if (!v || !v->def || v->def->parent != b || depth > 64) return false;
  if (v->def == op) return true;
  for (uint32_t i = 0; i < v->def->noperands; i++) {
    if (depends_on(ir_operand(v->def, i), op, b, depth + 1)) return true;
  }
  return false;
}

static int64_t registers(const IrModule *m, const IrType *t) {
  return ir_type_elems(t) / ((int64_t)m->num_warps * m->lanes);
}

// The product to compute ahead; NULL: none.
static IrOp *first_product(Ahead *a, const IrOp *loop) {
  const IrModule *m = a->pass->m;
  const IrBlock *b = loop->regions[0];
  IrOp *first = NULL, *second = NULL;
  bool any = false;
  PASS_EACH_OP(b, op) {
    if (op->nregions && op->kind != OP_reduce) return NULL;
    if (op->kind != OP_dot) continue;
    if (second) return NULL;
    *(first ? &second : &first) = op;
  }
  if (!second || !lay_takes_groups(m, first) || !lay_takes_groups(m, second)) return NULL;
  uint64_t zero;
  IrOp *load = load_of(ir_operand(first, 1), b);
  if (!load || pass_defined_in(ir_operand(first, 0), b) || !pass_const(ir_operand(first, 2), &zero) || zero ||
      !depends_on(ir_operand(second, 0), first, b, 0))
    return NULL;
  for (uint32_t i = 0; i < load->noperands; i++) {
    if (!is_index(ir_operand(load, i), loop, 0)) return NULL;
  }
  ir_walk((IrBlock *)(uintptr_t)b, writes, &any);
  if (any) return NULL;
  if (registers(m, first->results[0].type) < LEAST_REGISTERS ||
      registers(m, second->results[0].type) < LEAST_REGISTERS)
    return NULL;
  if (2 * registers(m, first->results[0].type) + registers(m, second->results[0].type) > MOST_REGISTERS) {
    pass_remark(a->pass, first->loc,
                "this product is not computed a turn ahead: the tiles take too many registers");
    return NULL;
  }
  return first;
}

// ---- another turn's ----------------------------------------------------------------------------------------------------------------
static IrValue *again(IrBuilder *b, IrValue *v, const IrBlock *body, Map *map) {
  if (!v || !pass_defined_in(v, body)) return v;
  IrValue *known = map_getp(map, v);
  if (known) return known;
  const IrOp *op = v->def;
  IrValue *ops[8 + IR_MAX_RANK];
  for (uint32_t i = 0; i < op->noperands; i++) ops[i] = again(b, ir_operand(op, i), body, map);
  IrValue *r = pass_like(b, op, op->noperands, ops, op->results[0].type);
  map_setp(map, v, r);
  return r;
}

// The product at another value of the counter, built at b.
static IrOp *product_at(Ahead *a, IrBuilder *b, const IrOp *loop, IrOp *dot, IrValue *counter) {
  Map map;
  map_init(&map, a->arena);
  map_setp(&map, loop->regions[0]->args.data[0], counter);
  return again(b, ir_result(dot, 0), loop->regions[0], &map)->def;
}

// Do x of one loop and y of another compute the same from their counters?
static bool same(const IrValue *x, const IrOp *lx, const IrValue *y, const IrOp *ly) {
  const IrBlock *bx = lx->regions[0], *by = ly->regions[0];
  const bool in = x && pass_defined_in(x, bx);
  if (in != (y && pass_defined_in(y, by))) return false;
  if (!in) return x == y;
  if (!x->def || !y->def) return !x->def && !y->def && x->index == 0 && y->index == 0;
  if (x->def->kind != y->def->kind || x->def->noperands != y->def->noperands || x->type != y->type ||
      !pass_same_attrs(x->def, y->def))
    return false;
  for (uint32_t i = 0; i < x->def->noperands; i++) {
    if (!same(ir_operand(x->def, i), lx, ir_operand(y->def, i), ly)) return false;
  }
  return true;
}

// The loop that ended where this one starts, having computed what this one wants first; NULL: none.
static const Done *predecessor(Ahead *a, const IrOp *loop, const IrOp *dot) {
  for (uint32_t i = 0; i < a->done.len; i++) {
    const Done *d = &a->done.data[i];
    int64_t step, other, lo;
    if (d->loop->parent != loop->parent || ir_operand(d->loop, 1) != ir_operand(loop, 0)) continue;
    if (!ir_const_int(ir_operand(loop, 2), &step) || !ir_const_int(ir_operand(d->loop, 2), &other) ||
        step != other || step < 1 || !bits_pow2((uint64_t)step) ||
        !ir_const_int(ir_operand(d->loop, 0), &lo) || lo % step)
      continue;
    const IrValue *end = ir_operand(loop, 0);
    if (end->id >= a->nvalues || pass_axis(a->axes, end)->all_div % step || !pass_axis_nonneg(a->axes, end))
      continue;
    if (same(ir_result(d->dot, 0), d->loop, ir_result(dot, 0), loop)) return d;
  }
  return NULL;
}

static void compute_ahead(Ahead *a, IrOp *loop, IrOp *dot) {
  IrBlock *body = loop->regions[0];
  IrValue *init;
  const Done *d = predecessor(a, loop, dot);
  IrBuilder b = ir_builder_before(loop);
  b.loc = dot->loc;
  init = d ? ir_result(d->loop, d->index) : ir_result(product_at(a, &b, loop, dot, ir_operand(loop, 0)), 0);
  const uint32_t index = loop->nresults;
  ir_op_add_operand(loop, init);
  ir_op_add_result(loop, init->type);
  IrValue *now = ir_block_arg(body, init->type, NULL);
  b = ir_builder_before(body->first);
  b.loc = dot->loc;
  IrValue *iv = body->args.data[0], *next = ir_binary(&b, OP_add, iv, ir_operand(loop, 2));
  IrOp *made = product_at(a, &b, loop, dot, next);
  ir_set_attr_i(made, ATTR_until_end, 1);
  IrOp *yield = ir_terminator(body);
  ir_op_add_operand(yield, ir_result(made, 0));
  ir_replace_uses(ir_result(dot, 0), now);
  vec_push(a->arena, &a->done, ((Done){loop, index, dot}));
  pass_remark(a->pass, dot->loc, "this product is computed a turn ahead, beside the work on the one before%s",
              d ? "; the first by the loop before" : "");
}

static void visit(Ahead *a, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    for (uint32_t r = 0; r < op->nregions; r++) visit(a, op->regions[r]);
    if (op->kind != OP_for || ir_type_is_thread(ir_operand(op, 0)->type)) continue;
    int64_t step;
    IrOp *dot = ir_const_int(ir_operand(op, 2), &step) && step > 0 ? first_product(a, op) : NULL;
    if (dot) compute_ahead(a, op, dot);
  }
}

Status pass_ahead(Pass *pass) {
  const PassMachine *machine = pass->config->machine;
  if (!machine || !machine->tma || !machine->wgmma || pass->m->num_warps % 4) return ST_OK;
  PASS_EACH_FUNC(pass, f) {
    Ahead *a = arena_new(pass->scratch, Ahead);
    *a = (Ahead){.pass = pass, .arena = pass->scratch};
    a->axes = pass_axis_run(f, pass->scratch);
    a->nvalues = f->next_id;
    visit(a, f->body);
    ir_renumber(f);
  }
  return ST_OK;
}
