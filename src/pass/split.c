// split: a loop whose comparisons hold in all of its first turns becomes two, and the first goes without them.
//
//   for i in lo .. hi                             for i in lo .. middle
//     where(cols(i) <= rows, s, -inf)     ->        s
//                                                 for i in middle .. hi
//                                                   where(cols(i) <= rows, s, -inf)
//
// A mask that every turn of attention applies matters in the last ones: at the diagonal, at the sequence's end. A comparison is taken
// apart into a sum over indices (affine.h) that grows with the counter; where its largest element is still negative it holds for the
// whole tile. Comparisons without the counter (rows < n) are looked at once: where one does not hold the first loop has no turns.
// Index set splitting (Griebl, Feautrier, Lengauer, 2000); flash attention's kernels are written in such stages by hand. Sums of
// index arithmetic are taken not to wrap, as everywhere in affine.h. Done for selects of matrices in loops that hold products.
#include "pass/affine.h"

enum { MOST_BOUNDS = 8, MOST_LEAVES = 8, LEAST_ELEMS = 1024, DEEPEST = 6 };

typedef struct Bound { // holds where sum < 0
  const Affine *sum;
  const IrType *type; // of the comparison, whose indices those of the sum are
  int64_t counts;     // times the loop's counter, which is in one of its terms; 0: in none
} Bound;

typedef struct Leaf { // operand of an op of the body that is true where bounds hold
  IrOp *user;
  uint32_t operand;
} Leaf;

typedef struct Split {
  Pass *pass;
  Arena *arena;
  Affines sums;
  IrOp *loop;
  Bound bounds[MOST_BOUNDS];
  Leaf leaves[MOST_LEAVES];
  int nbounds, nleaves;
} Split;

// ---- which comparisons ----------------------------------------------------------------------------------------------------------------
// A sum of numbers times indices, of the counter at most once and alone, and of scalars that stand before the loop.
static bool is_bound(const Split *s, const IrType *t, const Affine *x, int64_t *counts) {
  const IrValue *counter = s->loop->regions[0]->args.data[0];
  *counts = 0;
  if (x->nwraps || x->base) return false;
  for (uint32_t i = 0; i < x->n; i++) {
    const AffineTerm *term = &x->t[i];
    if (term->axis >= 0 && (term->n || t->kind != IR_TILE || term->axis >= t->rank)) return false;
    for (uint32_t k = 0; k < term->n; k++) {
      const IrType *f = term->f[k]->type;
      if (term->f[k] == counter) {
        if (term->n != 1 || term->k < 1 || *counts) return false;
        *counts = term->k;
      } else if (!ir_type_is_int(f) || f->kind == IR_TILE || ir_type_is_thread(f) || f->dtype == IR_i1 ||
                 pass_defined_in(term->f[k], s->loop->regions[0])) {
        return false;
      }
    }
  }
  return true;
}

static int64_t largest_number(const Bound *x) { // of the sum's part without scalars
  int64_t most = 0;
  for (uint32_t i = 0; i < x->sum->n; i++) {
    const AffineTerm *t = &x->sum->t[i];
    if (t->axis >= 0)
      most += t->k > 0 ? t->k * (x->type->shape[t->axis] - 1) : 0;
    else if (!t->n)
      most += t->k;
  }
  return most;
}

static bool never_holds(const Bound *x) { // for a whole tile, whatever the scalars
  for (uint32_t i = 0; i < x->sum->n; i++)
    if (x->sum->t[i].n) return false;
  return largest_number(x) >= 0;
}

static void leaf(Split *s, IrOp *user, uint32_t operand) {
  const Affine *sums[MOST_BOUNDS];
  IrValue *v = ir_operand(user, operand);
  const int n = affine_conditions(&s->sums, v, sums, MOST_BOUNDS - s->nbounds), before = s->nbounds;
  for (int i = 0; i < n; i++) {
    Bound b = {.sum = sums[i], .type = v->type};
    if (!is_bound(s, v->type, sums[i], &b.counts) || never_holds(&b)) {
      s->nbounds = before;
      return;
    }
    s->bounds[s->nbounds++] = b;
  }
  if (n > 0) s->leaves[s->nleaves++] = (Leaf){user, operand};
}

// What a mask is made of, down to comparisons and to what stands before the loop.
static void find_leaves(Split *s, IrOp *user, uint32_t operand, int depth) {
  IrValue *v = ir_operand(user, operand);
  IrOp *op = v->def;
  if (s->nleaves == MOST_LEAVES || depth > DEEPEST) return;
  if (!op || !pass_defined_in(v, s->loop->regions[0]) || op->kind == OP_cmp) {
    leaf(s, user, operand);
  } else if (op->parent == s->loop->regions[0] && (op->kind == OP_and || op->kind == OP_expand_dims ||
                                                   op->kind == OP_broadcast || op->kind == OP_trans)) {
    for (uint32_t i = 0; i < op->noperands; i++) find_leaves(s, op, i, depth + 1);
  }
}

static bool find_bounds(Split *s) {
  bool products = false, counts = false;
  s->nbounds = s->nleaves = 0;
  PASS_EACH_OP(s->loop->regions[0], op) {
    products |= op->kind == OP_dot;
    const IrValue *mask = op->kind == OP_select ? ir_operand(op, 0) : NULL;
    if (mask && mask->type->kind == IR_TILE && mask->type->rank == 2 &&
        ir_type_elems(mask->type) >= LEAST_ELEMS)
      find_leaves(s, op, 0, 0);
  }
  for (int i = 0; i < s->nbounds; i++) counts |= s->bounds[i].counts != 0;
  return products && counts;
}

// ---- where they hold ------------------------------------------------------------------------------------------------------------------
// The sum's largest element, without the counter.
static IrValue *largest(const Split *s, IrBuilder *b, const Bound *x) {
  const IrType *t = ir_type_scalar(b->m->ctx, IR_i64, LEVEL_program);
  const IrValue *counter = s->loop->regions[0]->args.data[0];
  IrValue *sum = ir_const_i(b, t, largest_number(x));
  for (uint32_t i = 0; i < x->sum->n; i++) {
    const AffineTerm *term = &x->sum->t[i];
    if (!term->n || term->f[0] == counter) continue;
    IrValue *part = ir_const_i(b, t, term->k);
    for (uint32_t k = 0; k < term->n; k++) part = ir_binary(b, OP_mul, part, pass_int_as(b, term->f[k], t));
    sum = ir_binary(b, OP_add, sum, part);
  }
  return sum;
}

// The first turn in which one may not hold, or a turn before: a multiple of the step.
static IrValue *middle_of(const Split *s, IrBuilder *b, int64_t lo, int64_t step) {
  const IrType *t = ir_type_scalar(b->m->ctx, IR_i64, LEVEL_program);
  IrValue *start = ir_const_i(b, t, lo), *none = ir_const_i(b, t, 0),
          *end = pass_int_as(b, ir_operand(s->loop, 1), t);
  for (int i = 0; i < s->nbounds; i++) {
    const int64_t k = s->bounds[i].counts;
    IrValue *most = largest(s, b, &s->bounds[i]);
    if (k) { // k i + most < 0: i below (k - 1 - most) / k, rounded down
      IrValue *room = ir_binary(b, OP_max_s, ir_binary(b, OP_sub, ir_const_i(b, t, k - 1), most), none);
      IrValue *below = ir_binary(b, OP_div_s, room, ir_const_i(b, t, k));
      end = ir_binary(b, OP_min_s, end, ir_binary(b, OP_add, below, ir_const_i(b, t, step - 1)));
    } else {
      end = ir_select(b, ir_cmp(b, CMP_slt, most, none), end, start);
    }
  }
  IrValue *by = ir_const_i(b, t, step);
  IrValue *turns = ir_binary(b, OP_div_s, ir_binary(b, OP_max_s, end, start), by);
  IrValue *at = ir_binary(b, OP_mul, turns, by);
  return pass_int_as(b, at, ir_operand(s->loop, 0)->type);
}

static void split_loop(Split *s, int64_t lo, int64_t step) {
  IrOp *loop = s->loop;
  IrBuilder b = ir_builder_before(loop);
  b.loc = loop->loc;
  IrValue *middle = middle_of(s, &b, lo, step);
  Map values;
  map_init(&values, s->arena);
  IrOp *first = ir_clone_op(&b, loop, &values);
  ir_set_operand(first, 1, middle);
  ir_set_operand(loop, 0, middle);
  for (uint32_t i = 0; i < loop->nresults; i++) ir_set_operand(loop, 3 + i, ir_result(first, i));
  if (ir_attr_i(loop, ATTR_min_trip)) {
    ir_set_attr_i(first, ATTR_min_trip, 0);
    ir_set_attr_i(loop, ATTR_min_trip, 0);
  }
  for (int i = 0; i < s->nleaves; i++) {
    const Leaf *x = &s->leaves[i];
    const IrValue *copy = map_getp(&values, ir_result(x->user, 0));
    IrBuilder at = ir_builder_before(copy->def);
    ir_set_operand(copy->def, x->operand, pass_const_bits(&at, ir_operand(x->user, x->operand)->type, 1));
  }
  pass_remark(s->pass, loop->loc,
              "this loop is split: up to where a mask starts to matter its turns go without the mask");
}

static void visit(Split *s, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    for (uint32_t r = 0; r < op->nregions; r++) visit(s, op->regions[r]);
    int64_t lo, step;
    if (op->kind != OP_for || ir_type_is_thread(ir_operand(op, 0)->type) || ir_attr_i(op, ATTR_uns_iv) ||
        !ir_const_int(ir_operand(op, 0), &lo) || !ir_const_int(ir_operand(op, 2), &step) || step < 1 ||
        !bits_pow2((uint64_t)step) || lo < 0 || lo % step)
      continue;
    s->loop = op;
    if (find_bounds(s)) split_loop(s, lo, step);
  }
}

Status pass_split(Pass *pass) {
  PASS_EACH_FUNC(pass, f) {
    Split s = {.pass = pass, .arena = pass->scratch};
    affine_init(&s.sums, pass->scratch);
    ir_renumber(f);
    visit(&s, f->body);
    ir_renumber(f);
  }
  return ST_OK;
}
