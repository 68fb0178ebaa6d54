// strength: cheaper operations where ranges and divisibility allow them.
//
// needs:  no calls.
// keeps:  every effect, every value bit for bit.
// breaks: nothing.
//
//   a comparison or integer that the ranges decide         -> a constant
//   x / 2^k, x % 2^k of a number that is not negative      -> shift, mask
//   x % y with 0 <= x < y                                  -> x
//   x / y, x % y of numbers that are not negative          -> unsigned (cheaper where narrow, and open to the above)
//   a `for` whose bounds cannot be empty                   -> min_trip = 1
#include "pass/pass_impl.h"

typedef struct Strength {
  Pass *p;
  const PassAxes *axes;
  uint32_t n; // values made here have ids from n on
} Strength;

static IrValue *power_of_two(IrBuilder *b, const IrOp *op, int64_t k, bool quotient) {
  IrValue *a = ir_operand(op, 0);
  const uint64_t c = quotient ? (uint64_t)bits_log2((uint64_t)k) : (uint64_t)k - 1;
  return ir_binary(b, quotient ? OP_shr_u : OP_and, a, pass_const_bits(b, a->type, c));
}

static IrValue *division(Strength *s, IrBuilder *b, IrOp *op) {
  IrValue *x = ir_operand(op, 0), *y = ir_operand(op, 1);
  const PassAxis *xa = pass_axis(s->axes, x), *ya = pass_axis(s->axes, y);
  const bool sign = op->kind == OP_div_s || op->kind == OP_rem_s,
             quotient = op->kind == OP_div_s || op->kind == OP_div_u;
  int64_t k;
  if (sign && (xa->lo < 0 || ya->lo < 0)) return NULL;
  if (!quotient && xa->lo >= 0 && ya->lo > 0 && xa->hi < ya->lo) return x;
  if (pass_axis_value(s->axes, y, &k) && k > 0 && bits_pow2((uint64_t)k))
    return power_of_two(b, op, k, quotient);
  return sign ? ir_binary(b, quotient ? OP_div_u : OP_rem_u, x, y) : NULL;
}

// Part of an assumption: folding it would fold the assumption away, and later analyses would know less.
static bool is_assumed(const IrValue *v, int depth) {
  if (!v->uses || depth > 8) return false;
  for (const IrUse *u = v->uses; u; u = u->next) {
    if (u->user->kind == OP_assume) continue;
    if (u->user->kind != OP_and || !is_assumed(ir_result(u->user, 0), depth + 1)) return false;
  }
  return true;
}

static IrValue *stronger(Strength *s, IrOp *op) {
  IrBuilder b = ir_builder_before(op);
  const IrType *t = ir_result(op, 0)->type;
  int64_t k;
  if (op->kind == OP_const || !ir_type_is_int(t) || !(ir_ops[op->kind].traits & TRAIT_PURE) || op->nregions)
    return NULL;
  if (pass_axis_value(s->axes, ir_result(op, 0), &k) && !is_assumed(ir_result(op, 0), 0))
    return pass_const_bits(&b, t, (uint64_t)k);
  switch (op->kind) {
  case OP_div_s:
  case OP_div_u:
  case OP_rem_s:
  case OP_rem_u: return ir_dtypes[t->dtype].bits > 1 ? division(s, &b, op) : NULL;
  default: return NULL;
  }
}

static void loop(Strength *s, IrOp *op) {
  const PassAxis *lo = pass_axis(s->axes, ir_operand(op, 0)), *hi = pass_axis(s->axes, ir_operand(op, 1)),
                 *step = pass_axis(s->axes, ir_operand(op, 2));
  const bool uns = ir_attr_i(op, ATTR_uns_iv) != 0;
  if (ir_attr_i(op, ATTR_min_trip) > 0 || (uns && (lo->lo < 0 || hi->lo < 0))) return;
  if ((step->lo > 0 && lo->hi < hi->lo) || (!uns && step->hi < 0 && lo->lo > hi->hi))
    ir_set_attr_i(op, ATTR_min_trip, 1);
}

static bool visit(IrOp *op, void *user) {
  Strength *s = user;
  if (op->kind == OP_for) loop(s, op);
  if (op->nresults != 1) return true;
  IrValue *v = stronger(s, op);
  if (!v) return true;
  if (!v->name) v->name = ir_result(op, 0)->name;
  if (v->id >= s->n) v->id = ir_result(op, 0)->id; // the facts of what it stands for hold of it
  ir_replace_uses(ir_result(op, 0), v);
  ir_erase(op);
  return true;
}

Status pass_strength(Pass *p) {
  PASS_EACH_FUNC(p, f) {
    Strength s = {p, pass_axis_run(f, p->scratch), 0};
    s.n = f->next_id;
    ir_walk(f->body, visit, &s);
    ir_renumber(f);
  }
  return ST_OK;
}
