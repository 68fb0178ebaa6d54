// fold_arith: identities of arithmetic, comparison, choice and conversion.
//
// Floating point: only what holds for every input, signed zeros included (x + -0, x - +0, x * 1, x / 1).
#include "pass/fold_impl.h"

static IrValue *constant(Fold *f, const IrOp *op, uint64_t bits) {
  return pass_const_bits(&f->b, ir_result(op, 0)->type, bits);
}

static IrOp *def_of(const IrValue *v, IrOpKind k) { return v->def && v->def->kind == k ? v->def : NULL; }

// (x op c1) op c2 is x op (c1 op c2) for associative, commutative ops.
static IrValue *reassociate(Fold *f, IrOp *op, uint64_t c2) {
  IrOp *in = def_of(ir_operand(op, 0), op->kind);
  uint64_t c1, c;
  if (!in || !pass_const(ir_operand(in, 1), &c1)) return NULL;
  const uint64_t both[2] = {c1, c2};
  if (!pass_eval(op, both, &c)) return NULL;
  return ir_binary(&f->b, op->kind, ir_operand(in, 0), constant(f, op, c));
}

// x op x, where both operands are one value.
static IrValue *fold_twins(Fold *f, IrOp *op) {
  IrValue *a = ir_operand(op, 0);
  switch (op->kind) {
  case OP_and:
  case OP_or:
  case OP_min_s:
  case OP_max_s:
  case OP_min_u:
  case OP_max_u:
  case OP_fmin:
  case OP_fmax: return a;
  case OP_sub:
  case OP_xor:
  case OP_rem_s:
  case OP_rem_u: return constant(f, op, 0);
  case OP_cmp:
    switch ((IrCmp)ir_attr_i(op, ATTR_cmp)) {
    case CMP_eq:
    case CMP_sle:
    case CMP_sge:
    case CMP_ule:
    case CMP_uge: return constant(f, op, 1);
    default: return constant(f, op, 0);
    }
  default: return NULL;
  }
}

// not c, where `not` of a comparison is the opposite comparison.
static IrValue *invert(Fold *f, IrValue *c) {
  IrOp *cmp = def_of(c, OP_cmp);
  if (cmp)
    return ir_cmp(&f->b, pass_inverted((IrCmp)ir_attr_i(cmp, ATTR_cmp)), ir_operand(cmp, 0),
                  ir_operand(cmp, 1));
  return ir_binary(&f->b, OP_xor, c, pass_const_bits(&f->b, c->type, 1));
}

static IrValue *is_not(const IrValue *c) { // x where c is `xor x, true`
  uint64_t k;
  IrOp *x = def_of(c, OP_xor);
  return x && ir_dtypes[c->type->dtype].bits == 1 && pass_const(ir_operand(x, 1), &k) && k ? ir_operand(x, 0)
                                                                                           : NULL;
}

// The operand on the right is the constant c.
static IrValue *fold_int_const(Fold *f, IrOp *op, uint64_t c) {
  IrValue *a = ir_operand(op, 0), *v;
  const int bits = pass_elem_bits(a->type);
  const uint64_t ones = pass_mask(bits), top = 1ull << (bits - 1);
  switch (op->kind) {
  case OP_add: return c == 0 ? a : reassociate(f, op, c);
  case OP_sub: return c == 0 ? a : ir_binary(&f->b, OP_add, a, constant(f, op, 0 - c));
  case OP_mul: return c == 0 ? ir_operand(op, 1) : c == 1 ? a : reassociate(f, op, c);
  case OP_div_s:
  case OP_div_u: return c == 1 && bits > 1 ? a : NULL;
  case OP_rem_s:
  case OP_rem_u: return c == 1 || c == 0 ? constant(f, op, 0) : NULL;
  case OP_and: return c == 0 ? ir_operand(op, 1) : c == ones ? a : reassociate(f, op, c);
  case OP_or: return c == 0 ? a : c == ones ? ir_operand(op, 1) : reassociate(f, op, c);
  case OP_xor:
    if (c == 0) return a;
    if ((v = reassociate(f, op, c))) return v;
    return bits == 1 && def_of(a, OP_cmp) && !a->uses->next ? invert(f, a) : NULL;
  case OP_shl:
  case OP_shr_u: return c == 0 ? a : c >= (uint64_t)bits ? constant(f, op, 0) : NULL;
  case OP_shr_s: return c == 0 ? a : NULL;
  case OP_mulhi_s: return c == 0 ? constant(f, op, 0) : NULL;
  case OP_mulhi_u: return c <= 1 ? constant(f, op, 0) : NULL;
  case OP_min_s: return c == top ? ir_operand(op, 1) : c == top - 1 ? a : reassociate(f, op, c);
  case OP_max_s: return c == top - 1 ? ir_operand(op, 1) : c == top ? a : reassociate(f, op, c);
  case OP_min_u: return c == 0 ? ir_operand(op, 1) : c == ones ? a : reassociate(f, op, c);
  case OP_max_u: return c == ones ? ir_operand(op, 1) : c == 0 ? a : reassociate(f, op, c);
  default: return NULL;
  }
}

static IrValue *fold_int(Fold *f, IrOp *op) {
  IrValue *a = ir_operand(op, 0), *b = ir_operand(op, 1);
  uint64_t c;
  if (pass_const(b, &c)) return fold_int_const(f, op, c);
  if (op->kind == OP_sub) { // (x + y) - y
    const IrOp *sum = def_of(a, OP_add);
    if (sum && ir_operand(sum, 1) == b) return ir_operand(sum, 0);
    if (sum && ir_operand(sum, 0) == b) return ir_operand(sum, 1);
  }
  if (!pass_const(a, &c) || c != 0) return NULL;
  switch (op->kind) { // 0 on the left
  case OP_div_s:
  case OP_div_u:
  case OP_rem_s:
  case OP_rem_u:
  case OP_shl:
  case OP_shr_s:
  case OP_shr_u: return a;
  default: return NULL;
  }
}

static IrValue *fold_float(IrOp *op) {
  IrValue *a = ir_operand(op, 0);
  uint64_t c;
  double x;
  if (!pass_const(ir_operand(op, 1), &c) || !ir_const_float(ir_operand(op, 1), &x)) return NULL;
  const uint64_t sign = 1ull << (pass_elem_bits(a->type) - 1);
  switch (op->kind) {
  case OP_fadd: return c == sign ? a : NULL;
  case OP_fsub: return c == 0 ? a : NULL;
  case OP_fmul:
  case OP_fdiv: return x == 1.0 ? a : NULL;
  default: return NULL;
  }
}

// ---- comparisons ----------------------------------------------------------------------------------------------------

// cmp(select(c, k1, k2), k): at most c, its inverse or a constant.
static IrValue *cmp_of_select(Fold *f, IrOp *op, IrOp *sel, uint64_t k) {
  uint64_t in[2] = {0, k}, r1, r2;
  if (ir_operand(sel, 0)->type != ir_result(op, 0)->type) return NULL;
  if (!pass_const(ir_operand(sel, 1), &in[0]) || !pass_eval(op, in, &r1)) return NULL;
  if (!pass_const(ir_operand(sel, 2), &in[0]) || !pass_eval(op, in, &r2)) return NULL;
  if (r1 == r2) return constant(f, op, r1);
  return r1 ? ir_operand(sel, 0) : invert(f, ir_operand(sel, 0));
}

// eq or ne of a widened value with a constant: the same of the narrow value, or known where the constant is out of reach.
static IrValue *cmp_of_ext(Fold *f, IrOp *op, IrOp *ext, uint64_t k) {
  IrValue *x = ir_operand(ext, 0);
  const int from = pass_elem_bits(x->type), to = pass_elem_bits(ir_operand(op, 0)->type);
  const uint64_t low = k & pass_mask(from);
  const uint64_t back = ext->kind == OP_ext_u ? low : (uint64_t)pass_sext(low, from) & pass_mask(to);
  const IrCmp p = (IrCmp)ir_attr_i(op, ATTR_cmp);
  if (back != k) return constant(f, op, p == CMP_ne);
  return ir_cmp(&f->b, p, x, pass_const_bits(&f->b, x->type, low));
}

static IrValue *fold_cmp_const(Fold *f, IrOp *op, uint64_t k) {
  IrValue *a = ir_operand(op, 0);
  const IrCmp p = (IrCmp)ir_attr_i(op, ATTR_cmp);
  const bool equality = p == CMP_eq || p == CMP_ne;
  if (k == 0 && p == CMP_ult) return constant(f, op, 0);
  if (k == 0 && p == CMP_uge) return constant(f, op, 1);
  if (ir_type_is_int(a->type) && ir_dtypes[a->type->dtype].bits == 1 && equality &&
      a->type == ir_result(op, 0)->type)
    return (p == CMP_eq) == (k != 0) ? a : invert(f, a);
  if (!a->def || !ir_type_is_int(a->type)) return NULL;
  switch (a->def->kind) {
  case OP_select: return cmp_of_select(f, op, a->def, k);
  case OP_ext_u:
  case OP_ext_s: return equality ? cmp_of_ext(f, op, a->def, k) : NULL;
  case OP_add: { // x + c1 == k
    uint64_t c1;
    if (!equality || !pass_const(ir_operand(a->def, 1), &c1)) return NULL;
    return ir_cmp(&f->b, p, ir_operand(a->def, 0), pass_const_bits(&f->b, a->type, k - c1));
  }
  default: return NULL;
  }
}

static IrValue *fold_cmp(Fold *f, IrOp *op) {
  uint64_t k;
  if (pass_const(ir_operand(op, 1), &k)) return fold_cmp_const(f, op, k);
  if (!pass_const(ir_operand(op, 0), &k)) return NULL;
  return ir_cmp(&f->b, pass_swapped((IrCmp)ir_attr_i(op, ATTR_cmp)), ir_operand(op, 1), ir_operand(op, 0));
}

static IrValue *fold_select(Fold *f, IrOp *op) {
  IrValue *c = ir_operand(op, 0), *a = ir_operand(op, 1), *b = ir_operand(op, 2);
  uint64_t k, k1, k2;
  if (a == b) return a;
  if (pass_const(c, &k)) return k ? a : b;
  if (pass_const(a, &k1) && pass_const(b, &k2)) {
    if (k1 == k2) return a;
    if (a->type == c->type) return k1 ? c : invert(f, c);
  }
  if (a->type == c->type && pass_const(a, &k1) && k1) return ir_binary(&f->b, OP_or, c, b);
  if (a->type == c->type && pass_const(b, &k2) && !k2) return ir_binary(&f->b, OP_and, c, a);
  IrValue *x = is_not(c);
  if (x) return ir_select(&f->b, x, b, a);
  IrOp *in = def_of(a, OP_select);
  if (in && ir_operand(in, 0) == c) return ir_select(&f->b, c, ir_operand(in, 1), b);
  in = def_of(b, OP_select);
  if (in && ir_operand(in, 0) == c) return ir_select(&f->b, c, a, ir_operand(in, 2));
  return NULL;
}

// ---- conversions -------------------------------------------------------------------------------------------------------

static IrValue *cast(Fold *f, IrOpKind k, IrValue *x, const IrType *to) {
  return x->type == to ? x : ir_cast(&f->b, k, x, to);
}

static IrValue *fold_trunc(Fold *f, IrOp *in, const IrType *to) {
  IrValue *x = ir_operand(in, 0);
  if (in->kind == OP_trunc) return cast(f, OP_trunc, x, to);
  if (in->kind != OP_ext_s && in->kind != OP_ext_u) return NULL;
  return cast(f, pass_elem_bits(to) < pass_elem_bits(x->type) ? OP_trunc : in->kind, x, to);
}

static bool is_fp8(const IrType *t) { return ir_dtypes[t->dtype].bits == 8; }

static IrValue *fold_cast(Fold *f, IrOp *op) {
  IrValue *a = ir_operand(op, 0);
  const IrType *to = ir_result(op, 0)->type;
  if (a->type == to && op->kind == OP_bitcast) return a;
  IrOp *in = a->def;
  if (!in || in->noperands != 1) return NULL;
  IrValue *x = ir_operand(in, 0);
  switch (op->kind) {
  case OP_trunc: return fold_trunc(f, in, to);
  case OP_ext_u: return in->kind == OP_ext_u ? cast(f, OP_ext_u, x, to) : NULL;
  case OP_ext_s: return in->kind == OP_ext_s || in->kind == OP_ext_u ? cast(f, in->kind, x, to) : NULL;
  case OP_fcast: // wider and back
    return in->kind == OP_fcast && x->type == to && !is_fp8(to) &&
                   pass_elem_bits(a->type) > pass_elem_bits(to)
               ? x
               : NULL;
  case OP_si2f:
    return in->kind == OP_ext_s   ? ir_cast(&f->b, OP_si2f, x, to)
           : in->kind == OP_ext_u ? ir_cast(&f->b, OP_ui2f, x, to)
                                  : NULL;
  case OP_ui2f: return in->kind == OP_ext_u ? ir_cast(&f->b, OP_ui2f, x, to) : NULL;
  case OP_bitcast: return in->kind == OP_bitcast ? cast(f, OP_bitcast, x, to) : NULL;
  case OP_ptr2int: return in->kind == OP_int2ptr && x->type == to ? x : NULL;
  case OP_int2ptr: return in->kind == OP_ptr2int && x->type == to ? x : NULL;
  default: return NULL;
  }
}

static IrValue *fold_ptr_add(Fold *f, IrOp *op) {
  IrValue *p = ir_operand(op, 0), *n = ir_operand(op, 1);
  uint64_t c1, c2;
  if (pass_const(n, &c2)) {
    if (c2 == 0) return p;
    IrOp *in = def_of(p, OP_ptr_add);
    if (!in || op->nattrs || in->nattrs || ir_operand(in, 1)->type != n->type ||
        !pass_const(ir_operand(in, 1), &c1))
      return NULL;
    const int bits = pass_elem_bits(n->type);
    const int64_t sum = (int64_t)((uint64_t)pass_sext(c1, bits) + (uint64_t)pass_sext(c2, bits));
    if (pass_sext((uint64_t)sum, bits) != sum) return NULL;
    return ir_ptr_add(&f->b, ir_operand(in, 0), pass_const_bits(&f->b, n->type, (uint64_t)sum));
  }
  IrOp *ext = def_of(n, OP_ext_s); // the op itself sign-extends an i32
  if (!ext || ir_operand(ext, 0)->type->dtype != IR_i32) return NULL;
  IrValue *const operands[2] = {p, ir_operand(ext, 0)};
  return pass_like(&f->b, op, 2, operands, ir_result(op, 0)->type);
}

// ---- all ------------------------------------------------------------------------------------------------------------------

// Inside a partition num_threads counts that partition's.
static IrValue *fold_machine(Fold *f, IrOp *op) {
  const IrModule *m = f->pass->m;
  int64_t warps = m->num_warps;
  if (m->lanes <= 0 || warps <= 0) return NULL;
  if (op->kind == OP_warp_size) return constant(f, op, (uint64_t)m->lanes);
  const IrBlock *in = op->parent;
  for (const IrOp *o = in->owner; o; in = o->parent, o = in->owner) {
    if (o->kind != OP_warp_partitions) continue;
    const IrAttr *a = ir_attr(o, ATTR_warps);
    for (uint32_t r = 0; a && r < o->nregions && r < a->ints.n; r++) {
      if (o->regions[r] == in) warps = a->ints.v[r];
    }
    break;
  }
  return constant(f, op, (uint64_t)(warps * m->lanes));
}

IrValue *fold_arith(Fold *f, IrOp *op) {
  const IrOpInfo *info = &ir_ops[op->kind];
  uint64_t k;
  const bool commutes = (info->traits & TRAIT_COMMUTATIVE) && op->kind != OP_fmin && op->kind != OP_fmax;
  if (commutes && pass_const(ir_operand(op, 0), &k) && !pass_const(ir_operand(op, 1), &k)) {
    IrValue *a = ir_operand(op, 0);
    ir_set_operand(op, 0, ir_operand(op, 1));
    ir_set_operand(op, 1, a);
  }
  if (op->noperands == 2 && ir_operand(op, 0) == ir_operand(op, 1)) {
    IrValue *v = fold_twins(f, op);
    if (v) return v;
  }
  switch (op->kind) {
  case OP_warp_size:
  case OP_num_threads: return fold_machine(f, op);
  case OP_add:
  case OP_sub:
  case OP_mul:
  case OP_div_s:
  case OP_div_u:
  case OP_rem_s:
  case OP_rem_u:
  case OP_mulhi_s:
  case OP_mulhi_u:
  case OP_and:
  case OP_or:
  case OP_xor:
  case OP_shl:
  case OP_shr_s:
  case OP_shr_u:
  case OP_min_s:
  case OP_max_s:
  case OP_min_u:
  case OP_max_u: return fold_int(f, op);
  case OP_fadd:
  case OP_fsub:
  case OP_fmul:
  case OP_fdiv: return fold_float(op);
  case OP_abs_s:
  case OP_fabs: return def_of(ir_operand(op, 0), op->kind) ? ir_operand(op, 0) : NULL;
  case OP_fneg: {
    IrOp *in = def_of(ir_operand(op, 0), OP_fneg);
    return in ? ir_operand(in, 0) : NULL;
  }
  case OP_cmp: return fold_cmp(f, op);
  case OP_select: return fold_select(f, op);
  case OP_ext_s:
  case OP_ext_u:
  case OP_trunc:
  case OP_fcast:
  case OP_si2f:
  case OP_ui2f:
  case OP_bitcast:
  case OP_ptr2int:
  case OP_int2ptr: return fold_cast(f, op);
  case OP_ptr_add: return fold_ptr_add(f, op);
  default: return NULL;
  }
}
