// behind: a loop's last product is computed one turn later, so that it runs beside the next turn's work.
//
//   for i, c, p     s = dot(q, k(i))                           in flight
//                   acc = dot(p, v(i - step), c)               in flight: the turn before's
//                   what the turn makes of s: p                while the second product runs
//                   yield acc * alpha, p                       waited for when it is first used
//   behind          acc = dot(p, v(last), c)
//
// It is what hides the softmax of flash attention behind the products (as Shah et al., FlashAttention-3, arXiv:2407.08608, section 3.2,
// do with the next scores instead, which takes a second tile of them). The first turn multiplies zeros with a block outside of the
// tensor, which is zeros. Where a loop goes on from where another one ended, or from a first turn that is written out before it, it takes
// over the product that stands there.
#include "pass/affine.h"

#include <string.h>

enum {                  // of a thread
  LEAST_REGISTERS = 32, // for the last product's result
  MOST_REGISTERS = 176  // for both results and p
};

typedef struct Done { // a loop whose last product comes behind
  IrOp *loop, *second;
  uint32_t sum, p; // results: what the product is added to, and its first operand
  IrValue *
      start; // the counter's first value, that of the loops it took over from; NULL: a turn stands before them
  IrOp *last; // the product behind the loop
} Done;

typedef struct Before { // what a loop takes over
  IrOp *product;        // NULL: nothing
  IrValue *p, *sum;     // its first operand, and what it is added to
  IrValue *start;       // see Done
} Before;

typedef struct Behind {
  Pass *pass;
  IrCtx *ctx;
  Arena *arena;
  PassAxes *axes;
  Affines sums;
  uint32_t nvalues;
  Vec(Done) done;
} Behind;

typedef struct Pair { // what is found in a loop
  IrOp *loop, *first, *second, *load;
  uint32_t sum;  // number of the carried value that the second product adds to
  uint32_t axis; // operand of the load that depends on the counter
} Pair;

// ---- which loops ---------------------------------------------------------------------------------------------------------------------
// The load behind an operand that may be turned and of fewer axes; NULL: there is none in b.
static IrOp *load_of(const IrValue *v, const IrBlock *b) {
  while (v->def && v->def->parent == b && (v->def->kind == OP_trans || v->def->kind == OP_reshape))
    v = ir_operand(v->def, 0);
  return v->def && v->def->parent == b && v->def->kind == OP_desc_load ? v->def : NULL;
}

static bool is_index(const IrValue *v, const IrBlock *b, bool *counts,
                     int depth) { // of the counter and what the loop does not change; counts: of the counter
  if (!pass_defined_in(v, b)) return true;
  if (depth > 20) return false;
  if (!v->def) {
    *counts |= v->block == b && v->index == 0;
    return v->block == b && v->index == 0;
  }
  if (v->def->nregions || !(ir_ops[v->def->kind].traits & TRAIT_PURE) || v->type->kind == IR_TILE)
    return false;
  for (uint32_t i = 0; i < v->def->noperands; i++) {
    if (!is_index(ir_operand(v->def, i), b, counts, depth + 1)) return false;
  }
  return true;
}

static bool writes(IrOp *op, void *user) {
  const IrEffects e = ir_op_effects(op);
  bool *any = user;
  if (op->kind == OP_assume) return true; // writes what only optimisers read
  *any |= e.order || e.barrier || e.writes;
  return !*any;
}

// Does v depend on x, by ops of block b?
static bool depends_on(const IrValue *v, const IrValue *x, const IrBlock *b, Map *seen) {
  if (v == x) return true;
  uint64_t known;
  if (!v || !v->def || v->def->parent != b || map_get(seen, (uint64_t)(uintptr_t)v, &known)) return false;
  map_set(seen, (uint64_t)(uintptr_t)v, 1);
  for (uint32_t i = 0; i < v->def->noperands; i++) {
    if (depends_on(ir_operand(v->def, i), x, b, seen)) return true;
  }
  return false;
}
static bool depends(Behind *a, const IrValue *v, const IrValue *x, const IrBlock *b) {
  Map seen;
  map_init(&seen, a->arena);
  return depends_on(v, x, b, &seen);
}

static bool find_dots(const IrBlock *b, Pair *x) {
  PASS_EACH_OP(b, op) {
    if (op->nregions && op->kind != OP_reduce) return false;
    if (op->kind != OP_dot) continue;
    if (x->second) return false;
    *(x->first ? &x->second : &x->first) = op;
  }
  return x->second != NULL;
}

// The second product's result is but carried on, to become part of the sum that the next one is added to.
static bool is_sum(Behind *a, Pair *x) {
  const IrBlock *b = x->loop->regions[0];
  const IrUse *u = x->second->results[0].uses;
  if (!u || u->next || u->user != ir_terminator(b)) return false;
  x->sum = (uint32_t)(u - u->user->operands);
  const IrValue *arg = b->args.data[1 + x->sum];
  for (const IrUse *w = arg->uses; w; w = w->next) {
    if (w->user->parent != b || !depends(a, ir_operand(x->second, 2), arg, b)) return false;
    for (const IrOp *op = w->user; op; op = op->next) // none before the first product
      if (op == x->first) return false;
  }
  return arg->uses != NULL;
}

static bool find_pair(Behind *a, IrOp *loop, Pair *x) {
  const IrModule *m = a->pass->m;
  const IrBlock *b = loop->regions[0];
  int64_t step;
  bool any = false;
  *x = (Pair){.loop = loop};
  if (!ir_const_int(ir_operand(loop, 2), &step) || step <= 0 || ir_attr_i(loop, ATTR_uns_iv)) return false;
  if (!find_dots(b, x) || !lay_takes_groups(m, x->first) || !lay_takes_groups(m, x->second)) return false;
  if (!depends(a, ir_operand(x->second, 0), ir_result(x->first, 0), b) || !is_sum(a, x)) return false;
  IrOp *load = x->load = load_of(ir_operand(x->second, 1), b);
  const IrValue *d = load ? ir_desc_source(ir_operand(load, 0)) : NULL;
  if (!load || (d->def && ir_attr_i(d->def, ATTR_pad)) || pass_defined_in(d, b)) return false;
  for (uint32_t i = 1; i < load->noperands; i++) {
    bool counts = false;
    if (!is_index(ir_operand(load, i), b, &counts, 0)) return false;
    if (!counts) continue;
    if (x->axis) return false;
    x->axis = i;
  }
  ir_walk((IrBlock *)(uintptr_t)b, writes, &any);
  if (any || !x->axis) return false;
  const int64_t sum = pass_registers(m, x->second->results[0].type);
  const int64_t all =
      sum + pass_registers(m, x->first->results[0].type) + pass_registers(m, ir_operand(x->second, 0)->type);
  if (sum < LEAST_REGISTERS) return false;
  const bool fits = all <= pass_register_room(m, MOST_REGISTERS);
  if (!fits)
    pass_remark(a->pass, x->second->loc,
                "this product is not computed beside the next turn: the tiles take too many registers");
  return fits;
}

// ---- another turn's -------------------------------------------------------------------------------------------------------------------
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

// dot(p, the block at `counter`, c), built at b; where `none` holds the block lies outside of the tensor.
static IrOp *product_at(Behind *a, IrBuilder *b, const Pair *x, IrValue *counter, IrValue *none, IrValue *p,
                        IrValue *c) {
  const IrBlock *body = x->loop->regions[0];
  Map map;
  map_init(&map, a->arena);
  map_setp(&map, body->args.data[0], counter);
  IrValue *place = again(b, ir_operand(x->load, x->axis), body, &map);
  if (none) {
    const int32_t rows = x->load->results[0].type->shape[x->axis - 1];
    place = ir_select(b, none, ir_const_i(b, place->type, -rows), place);
  }
  map_setp(&map, ir_operand(x->load, x->axis), place);
  IrValue *ops[3] = {p, again(b, ir_operand(x->second, 1), body, &map), c};
  return pass_like(b, x->second, 3, ops, x->second->results[0].type)->def;
}

// Do x of one loop and y of another compute the same from their counters?
static bool same(const IrValue *x, const IrBlock *bx, const IrValue *y, const IrBlock *by) {
  const bool in = x && pass_defined_in(x, bx);
  if (in != (y && pass_defined_in(y, by))) return false;
  if (!in) return x == y;
  if (!x->def || !y->def) return !x->def && !y->def && x->index == 0 && y->index == 0;
  if (x->def->kind != y->def->kind || x->def->noperands != y->def->noperands || x->type != y->type ||
      !pass_same_attrs(x->def, y->def))
    return false;
  for (uint32_t i = 0; i < x->def->noperands; i++) {
    if (!same(ir_operand(x->def, i), bx, ir_operand(y->def, i), by)) return false;
  }
  return true;
}

// Does nothing between two ops of a block write memory? What a product before the loop reads, a product in it reads later.
static bool keeps_memory(IrOp *from, const IrOp *to) {
  bool any = false;
  for (IrOp *op = from->next; op != to && !any; op = op->next) {
    writes(op, &any);
    for (uint32_t r = 0; r < op->nregions && !any; r++) ir_walk(op->regions[r], writes, &any);
  }
  return !any;
}

// A loop of no turns may begin behind its end; the next one does not go on from there.
static bool ends_behind_start(const Behind *a, const IrOp *loop) {
  const IrValue *lo = ir_operand(loop, 0), *hi = ir_operand(loop, 1);
  if (hi->def && hi->def->kind == OP_max_s && (ir_operand(hi->def, 0) == lo || ir_operand(hi->def, 1) == lo))
    return true;
  return lo->id < a->nvalues && pass_axis(a->axes, hi)->lo >= pass_axis(a->axes, lo)->hi;
}

// The loop that ended where this one starts, and whose product behind it is what this one adds to first; NULL: none.
static Done *predecessor(Behind *a, const Pair *x) {
  const IrOp *loop = x->loop;
  const IrValue *init = ir_operand(loop, 3 + x->sum), *end = ir_operand(loop, 0);
  for (uint32_t i = 0; i < a->done.len; i++) {
    Done *d = &a->done.data[i];
    int64_t step, other, lo;
    if (!d->last || d->loop->parent != loop->parent || ir_operand(d->loop, 1) != end ||
        init != ir_result(d->last, 0) || !init->uses || init->uses->next)
      continue;
    if (!ir_const_int(ir_operand(loop, 2), &step) || !ir_const_int(ir_operand(d->loop, 2), &other) ||
        step != other || !bits_pow2((uint64_t)step) ||
        !ir_const_int(d->start ? d->start : ir_operand(d->loop, 0), &lo) || lo % step)
      continue;
    if (end->id >= a->nvalues || pass_axis(a->axes, end)->all_div % step || !pass_axis_nonneg(a->axes, end) ||
        !ends_behind_start(a, d->loop) || !keeps_memory(d->loop, loop))
      continue;
    if (ir_operand(x->second, 0)->type != ir_result(d->loop, d->p)->type ||
        !pass_same_attrs(x->second, d->second))
      continue;
    if (same(ir_operand(x->second, 1), loop->regions[0], ir_operand(d->second, 1), d->loop->regions[0]))
      return d;
  }
  return NULL;
}

// v, of the counter iv, where that is one step before the loop begins; NULL: it is no such sum.
static const Affine *a_step_before(Behind *a, const IrOp *loop, IrValue *v) {
  const IrValue *iv = loop->regions[0]->args.data[0];
  const Affine *x = affine_of(&a->sums, v), *lo = affine_of(&a->sums, ir_operand(loop, 0)),
               *step = affine_of(&a->sums, ir_operand(loop, 2)), *sum = affine_zero(&a->sums),
               *first = lo && step ? affine_plus(&a->sums, lo, -1, step) : NULL;
  if (!x || !first || x->nwraps) return NULL;
  for (uint32_t i = 0; i < x->n && sum; i++) {
    Affine *rest = affine_zero(&a->sums);
    const Affine *part = rest;
    rest->n = 1;
    rest->t[0] = (AffineTerm){.k = x->t[i].k, .axis = x->t[i].axis};
    for (uint32_t k = 0; k < x->t[i].n; k++)
      if (x->t[i].f[k] != iv) rest->t[0].f[rest->t[0].n++] = x->t[i].f[k];
    for (uint32_t k = rest->t[0].n; k < x->t[i].n && part; k++) part = affine_times(&a->sums, part, first);
    sum = part ? affine_plus(&a->sums, sum, 1, part) : NULL;
  }
  return sum;
}

// The product before the loop that its turn before the first would have made, and that the first one adds to; NULL: none.
static IrOp *first_turn(Behind *a, const Pair *x) {
  const IrOp *loop = x->loop, *second = x->second;
  const IrBlock *body = loop->regions[0];
  IrOp *dot = ir_operand(loop, 3 + x->sum)->def;
  if (!dot || dot->kind != OP_dot || dot->parent != loop->parent || !dot->results[0].uses ||
      dot->results[0].uses->next || !pass_same_attrs(dot, second) ||
      ir_operand(dot, 0)->type != ir_operand(second, 0)->type)
    return NULL;
  const IrValue *v = ir_operand(dot, 1), *w = ir_operand(second, 1); // the same but for the block's place
  for (; w->def != x->load; v = ir_operand(v->def, 0), w = ir_operand(w->def, 0)) {
    if (!v->def || v->def->kind != w->def->kind || v->type != w->type || !pass_same_attrs(v->def, w->def))
      return NULL;
  }
  const IrOp *load = v->def, *own = x->load;
  if (!load || load->kind != OP_desc_load || !pass_same_attrs(load, own) || v->type != w->type) return NULL;
  for (uint32_t i = 0; i < own->noperands; i++) {
    IrValue *here = ir_operand(own, i), *there = ir_operand(load, i);
    if (!i || !pass_defined_in(here, body)) {
      if (here != there) return NULL;
      continue;
    }
    if (here->id >= a->nvalues || there->id >= a->nvalues) return NULL;
    const Affine *first = a_step_before(a, loop, here), *place = affine_of(&a->sums, there);
    if (!first || !place || place->nwraps || !affine_same(first, place)) return NULL;
  }
  return load->parent == loop->parent && keeps_memory(v->def, loop) ? dot : NULL;
}

static Before what_stands_before(Behind *a, const Pair *x) {
  Done *d = predecessor(a, x);
  IrOp *dot = d ? NULL : first_turn(a, x);
  Before before = {.start = ir_operand(x->loop, 0)};
  if (d) {
    before = (Before){d->last, ir_result(d->loop, d->p), ir_result(d->loop, d->sum), d->start};
    d->last = NULL;
  } else if (dot) {
    before = (Before){dot, ir_operand(dot, 0), ir_operand(dot, 2), NULL};
  }
  return before;
}

// Is the block of the turn before the first surely outside of the tensor?
static bool starts_outside(const Pair *x, const IrValue *start) {
  int64_t lo, step;
  return start && ir_const_int(start, &lo) && lo == 0 && ir_const_int(ir_operand(x->loop, 2), &step) &&
         ir_operand(x->load, x->axis) == x->loop->regions[0]->args.data[0] &&
         step >= x->load->results[0].type->shape[x->axis - 1];
}

static void compute_behind(Behind *a, const Pair *x) {
  IrOp *loop = x->loop, *second = x->second;
  IrBlock *body = loop->regions[0];
  IrValue *arg = body->args.data[1 + x->sum], *iv = body->args.data[0], *step = ir_operand(loop, 2),
          *p = ir_operand(second, 0);
  const Loc loc = second->loc;
  const Before taken = what_stands_before(a, x);
  IrValue *start = taken.start;
  const bool outside = starts_outside(x, start);
  IrBuilder b = ir_builder_before(loop);
  b.loc = loc;
  IrValue *init = taken.product ? taken.p : pass_const_bits(&b, p->type, 0);
  if (taken.product) {
    ir_set_operand(loop, 3 + x->sum, taken.sum);
    ir_erase(taken.product);
  }
  const uint32_t index = loop->nresults;
  ir_op_add_operand(loop, init);
  ir_op_add_result(loop, init->type);
  IrValue *before = ir_block_arg(body, init->type, NULL);
  b = ir_builder_after(x->first);
  b.loc = loc;
  IrValue *none = outside || !start ? NULL : ir_cmp(&b, CMP_eq, iv, start);
  // what the turn does with the sum is done with the product
  IrOp *made = product_at(a, &b, x, ir_binary(&b, OP_sub, iv, step), none, before, arg);
  ir_replace_uses(arg, ir_result(made, 0));
  ir_set_operand(made, 2, arg);
  ir_set_attr_i(made, ATTR_until_use, 1);
  ir_set_attr_i(x->first, ATTR_until_use, 1);
  IrOp *yield = ir_terminator(body);
  ir_set_operand(yield, x->sum, ir_operand(second, 2));
  ir_op_add_operand(yield, p);
  // behind: the last turn's, at lo + (turns - 1) * step
  b = ir_builder_after(loop);
  b.loc = loc;
  IrValue *lo = ir_operand(loop, 0), *hi = ir_operand(loop, 1), *one = ir_const_i(&b, hi->type, 1);
  IrValue *span = ir_binary(&b, OP_sub, ir_binary(&b, OP_max_s, hi, lo), one);
  IrValue *turns =
      ir_binary(&b, OP_div_s, ir_binary(&b, OP_sub, span, lo), step); // -1 / step is 0: then there was none
  IrValue *at = ir_binary(&b, OP_add, lo, ir_binary(&b, OP_mul, turns, step));
  none = start ? ir_cmp(&b, CMP_sle, hi, lo) : NULL;
  if (start && start != lo) none = ir_binary(&b, OP_and, none, ir_cmp(&b, CMP_eq, lo, start));
  IrValue *sum = ir_result(loop, x->sum);
  at = ir_select(&b, ir_cmp(&b, CMP_sle, hi, lo), ir_binary(&b, OP_sub, lo, step), at);
  IrOp *last = product_at(a, &b, x, at, none, ir_result(loop, index), sum);
  ir_replace_uses(sum, ir_result(last, 0));
  ir_set_operand(last, 2, sum);
  vec_push(a->arena, &a->done, ((Done){loop, second, x->sum, index, start, last}));
  pass_remark(a->pass, loc, "this product is computed a turn later, beside the next turn's work%s",
              !taken.product ? ""
              : start        ? "; the first of the loop before"
                             : "; the first of the turn before the loop");
}

static void visit(Behind *a, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    Pair x;
    for (uint32_t r = 0; r < op->nregions; r++) visit(a, op->regions[r]);
    if (op->kind != OP_for || ir_type_is_thread(ir_operand(op, 0)->type)) continue;
    if (find_pair(a, op, &x)) compute_behind(a, &x);
  }
}

Status pass_behind(Pass *pass) {
  const PassMachine *machine = pass->config->machine;
  if (!machine || !machine->tma || !machine->wgmma || pass->m->num_warps % 4) return ST_OK;
  PASS_EACH_FUNC(pass, f) {
    Behind *a = arena_new(pass->scratch, Behind);
    *a = (Behind){.pass = pass, .ctx = pass->m->ctx, .arena = pass->scratch};
    a->axes = pass_axis_run(f, pass->scratch);
    affine_init(&a->sums, pass->scratch);
    a->nvalues = f->next_id;
    visit(a, f->body);
    ir_renumber(f);
  }
  return ST_OK;
}
