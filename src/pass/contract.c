// contract: a * b + c in one rounding, products that start from zero into products that accumulate, and products of 8-bit floats
// into those that the machine has.
//
// needs:  nothing.
// keeps:  every effect. Floating-point results may differ in the last bits, as ops.def allows (fma, dot).
// breaks: nothing.
//
//   fadd(fmul(a, b), c)    -> fma(a, b, c)     f32 and f64, the product used once
//   fsub(fmul(a, b), c)    -> fma(a, b, -c)
//   fsub(c, fmul(a, b))    -> fma(-a, b, c)
//   fadd(dot(a, b, 0), c)  -> dot(a, b, c)     the dot used once (add for integers: exact)
//   dot(a, b, c) of fp8    -> of a, b as f16   where the machine multiplies no fp8; f16 holds each of them exactly
#include "pass/pass_impl.h"

static bool used_once(const IrValue *v) { return v->uses && !v->uses->next; }

static bool is_zero_bits(const IrValue *v) {
  uint64_t bits;
  return pass_const(v, &bits) && bits == 0;
}

// v's op where it may move down to its only user: it is pure and in the same block.
static IrOp *product(const IrValue *v, IrOpKind k, const IrOp *user) {
  IrOp *op = v->def;
  return op && op->kind == k && op->parent == user->parent && used_once(v) ? op : NULL;
}

static IrValue *negated(IrBuilder *b, IrValue *v) {
  uint64_t bits;
  if (pass_const(v, &bits))
    return pass_const_bits(b, v->type, bits ^ (1ull << (pass_elem_bits(v->type) - 1)));
  return v->def && v->def->kind == OP_fneg ? ir_operand(v->def, 0) : ir_unary(b, OP_fneg, v);
}

static bool contract_dot(IrOp *op) {
  for (uint32_t i = 0; i < 2; i++) {
    IrOp *dot = product(ir_operand(op, i), OP_dot, op);
    IrValue *c = ir_operand(op, 1 - i);
    if (!dot || !is_zero_bits(ir_operand(dot, 2)) || c == ir_result(dot, 0)) continue;
    ir_move_before(dot, op);
    ir_set_operand(dot, 2, c);
    ir_replace_uses(ir_result(op, 0), ir_result(dot, 0));
    ir_erase(op);
    return true;
  }
  return false;
}

static void contract_fma(IrOp *op) {
  const IrType *t = ir_result(op, 0)->type;
  if (t->dtype != IR_f32 && t->dtype != IR_f64) return;
  IrBuilder b = ir_builder_before(op);
  for (uint32_t i = 0; i < 2; i++) {
    IrOp *mul = product(ir_operand(op, i), OP_fmul, op);
    if (!mul) continue;
    IrValue *x = ir_operand(mul, 0), *c = ir_operand(op, 1 - i);
    if (op->kind == OP_fsub && i == 0) c = negated(&b, c);
    if (op->kind == OP_fsub && i == 1) x = negated(&b, x);
    IrValue *const vs[3] = {x, ir_operand(mul, 1), c};
    IrOp *fma = ir_build(&b, OP_fma, 3, vs, 1, &t, 0);
    ir_replace_uses(ir_result(op, 0), ir_result(fma, 0));
    ir_result(fma, 0)->name = ir_result(op, 0)->name;
    ir_erase(op);
    ir_erase(mul);
    return;
  }
}

static bool is_f8(const IrType *t) { return t->dtype == IR_f8e4m3 || t->dtype == IR_f8e5m2; }

static void widen_dot(IrCtx *c, IrOp *op) {
  for (uint32_t i = 0; i < 2; i++) {
    IrValue *v = ir_operand(op, i);
    if (!is_f8(v->type)) continue;
    IrBuilder b = ir_builder_before(op);
    ir_set_operand(op, i, ir_cast(&b, OP_fcast, v, ir_type_with_dtype(c, v->type, IR_f16)));
  }
}

static void block(Pass *p, IrBlock *b, bool fma) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->nregions; r++)
      block(p, op->regions[r], fma && op->kind != OP_reduce && op->kind != OP_scan);
    if (op->kind == OP_add || op->kind == OP_fadd) {
      if (contract_dot(op)) continue;
    }
    if (op->kind == OP_dot && p->config->machine && p->config->machine->no_f8_dot) widen_dot(p->m->ctx, op);
    if (fma && (op->kind == OP_fadd || op->kind == OP_fsub)) contract_fma(op);
  }
}

Status pass_contract(Pass *p) {
  PASS_EACH_FUNC(p, f) block(p, f->body, true);
  return ST_OK;
}
