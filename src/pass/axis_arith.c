// axis_arith: how elementwise ops change contiguity, divisibility, constancy and range.
//
// The rules are those of Triton's AxisInfo where it has them, restated so that they hold for every input: runs are
// aligned, what divides the first element of a run is taken at the length of the result's run, and truncating division
// keeps runs only of numbers that are not negative.
#include "pass/axis_impl.h"

static int bits_of(const IrType *t) { return pass_elem_bits(t); }
static bool known(const PassAxis *a) { return a->lo == a->hi; }

static void sum(PassAxis *out, const PassAxis *a, const PassAxis *b, bool minus, int size) {
  for (int d = 0; d < axis_dims(out); d++) {
    int32_t c = axis_min(a->contig[d], b->constancy[d]);
    if (!minus) c = axis_max(c, axis_min(a->constancy[d], b->contig[d]));
    out->contig[d] = c;
    out->constancy[d] = axis_min(a->constancy[d], b->constancy[d]);
    out->div[d] = axis_min(axis_div_at(a, d, c, size), axis_div_mul(axis_div_at(b, d, c, 1), size));
  }
  out->all_div = axis_min(a->all_div, axis_div_mul(b->all_div, size));
}

// Length of aligned runs along d on which a rises by one from a multiple of the length, while b holds one multiple of it.
static int32_t run(const PassAxis *a, const PassAxis *b, int d) {
  const int32_t r = axis_min(axis_min(a->contig[d], axis_div_at(a, d, a->contig[d], 1)), b->all_div);
  return axis_max(axis_min(r, b->constancy[d]), 1);
}

// a / b where b is positive as the op sees it; `runs`: quotients are equal along runs.
static void quotient(PassAxis *out, const PassAxis *a, const PassAxis *b, bool runs) {
  if (known(b) && b->lo > 0 && bits_pow2((uint64_t)b->lo) && a->all_div >= b->lo)
    out->all_div = (int32_t)(a->all_div / b->lo);
  for (int d = 0; d < axis_dims(out); d++) {
    out->constancy[d] = axis_min(a->constancy[d], b->constancy[d]);
    if (runs) out->constancy[d] = axis_max(out->constancy[d], run(a, b, d));
  }
}

static void remainder_of(PassAxis *out, const PassAxis *a, const PassAxis *b, bool runs) {
  out->all_div = axis_min(a->all_div, b->all_div);
  for (int d = 0; d < axis_dims(out); d++) {
    out->contig[d] = runs ? run(a, b, d) : 1;
    out->div[d] = axis_min(axis_div_at(a, d, out->contig[d], 1), b->all_div);
    out->constancy[d] = axis_min(a->constancy[d], b->constancy[d]);
  }
}

static PassAxis constant(const PassAxis *like, int64_t v) {
  PassAxis c = {.rank = like->rank, .lo = v, .hi = v, .all_div = axis_pow2_of(v)};
  for (int d = 0; d < axis_dims(like); d++) {
    c.contig[d] = 1;
    c.constancy[d] = AXIS_MAX_DIV;
    c.div[d] = c.all_div;
  }
  return c;
}

static __int128 least(__int128 a, __int128 b) { return a < b ? a : b; }
static __int128 most(__int128 a, __int128 b) { return a > b ? a : b; }

static void mul(PassAxis *out, const IrType *t, const PassAxis *a, const PassAxis *b) {
  if (known(b) && b->lo == 1) {
    *out = *a;
    return;
  }
  const __int128 p = (__int128)a->lo * b->lo, q = (__int128)a->lo * b->hi, r = (__int128)a->hi * b->lo,
                 s = (__int128)a->hi * b->hi;
  axis_range(out, t, least(least(p, q), least(r, s)), most(most(p, q), most(r, s)));
  out->all_div = axis_div_mul(a->all_div, b->all_div);
  for (int d = 0; d < axis_dims(out); d++) out->constancy[d] = axis_min(a->constancy[d], b->constancy[d]);
}

static void div_(PassAxis *out, const IrType *t, const PassAxis *a, const PassAxis *b, bool sign) {
  if (known(b) && b->lo == 1) {
    *out = *a;
    return;
  }
  quotient(out, a, b, !sign || (a->lo >= 0 && b->lo > 0) || a->index);
  if (b->lo < 1 || (!sign && a->lo < 0)) return;
  axis_range(out, t, a->lo / (a->lo < 0 ? b->lo : b->hi), a->hi / (a->hi < 0 ? b->hi : b->lo));
}

static void rem(PassAxis *out, const IrType *t, const PassAxis *a, const PassAxis *b, bool sign) {
  if (a->lo >= 0 && b->lo > 0 && a->hi < b->lo) { // x % y is x
    *out = *a;
    return;
  }
  remainder_of(out, a, b, ((!sign || a->lo >= 0) && b->lo > 0) || (sign && a->index)); // x % 0 is 0
  if (b->lo < 1) return;
  const int64_t top = b->hi - 1;
  if (a->lo >= 0)
    axis_range(out, t, 0, least(a->hi, top));
  else
    axis_range(out, t, sign ? most(a->lo, -(__int128)top) : 0, top);
}

static void shift(PassAxis *out, const IrType *t, const PassAxis *a, const PassAxis *b, IrOpKind k) {
  const int bits = bits_of(t);
  for (int d = 0; d < axis_dims(out); d++) out->constancy[d] = axis_min(a->constancy[d], b->constancy[d]);
  if (!known(b) || b->lo < 0 || b->lo >= bits || b->lo >= 62) return;
  const PassAxis by = constant(a, (int64_t)1 << b->lo);
  if (k == OP_shl) {
    mul(out, t, a, &by);
    return;
  }
  if (b->lo == 0) {
    *out = *a;
    return;
  }
  quotient(out, a, &by, true); // shifts round down, whatever the sign
  if (k == OP_shr_s || a->lo >= 0)
    axis_range(out, t, a->lo >> b->lo, a->hi >> b->lo);
  else
    axis_range(out, t, 0, (__int128)(pass_mask(bits) >> b->lo));
}

static void and_(PassAxis *out, const IrType *t, const PassAxis *a, const PassAxis *b) {
  if (known(b) && b->lo > 0 && b->lo < AXIS_MAX_DIV && bits_pow2((uint64_t)b->lo + 1)) {
    const PassAxis by = constant(a, b->lo + 1);
    rem(out, t, a, &by, false);
    return;
  }
  for (int d = 0; d < axis_dims(out); d++) out->constancy[d] = axis_min(a->constancy[d], b->constancy[d]);
  out->all_div = axis_max(a->all_div, b->all_div);
  if (a->lo >= 0 || b->lo >= 0)
    axis_range(out, t, 0, a->lo < 0 ? b->hi : b->lo < 0 ? a->hi : least(a->hi, b->hi));
}

static void or_xor(PassAxis *out, const IrType *t, const PassAxis *a, const PassAxis *b) {
  if ((b->lo >= 0 && a->all_div > b->hi) || (a->lo >= 0 && b->all_div > a->hi)) { // no common bits: a sum
    sum(out, a, b, false, 1);
  } else {
    for (int d = 0; d < axis_dims(out); d++) out->constancy[d] = axis_min(a->constancy[d], b->constancy[d]);
    out->all_div = axis_min(a->all_div, b->all_div);
  }
  if (a->lo < 0 || b->lo < 0) return;
  const int64_t top = a->hi > b->hi ? a->hi : b->hi;
  axis_range(out, t, 0, top == 0 ? 0 : (__int128)pass_mask(bits_log2((uint64_t)top) + 1));
}

static void min_max(PassAxis *out, const IrType *t, const PassAxis *a, const PassAxis *b, IrOpKind k) {
  const bool sign = k == OP_min_s || k == OP_max_s, min = k == OP_min_s || k == OP_min_u;
  for (int d = 0; d < axis_dims(out); d++) out->constancy[d] = axis_min(a->constancy[d], b->constancy[d]);
  out->all_div = axis_min(a->all_div, b->all_div);
  if (!sign && (a->lo < 0 || b->lo < 0)) return;
  if (a->hi <= b->lo || b->hi <= a->lo) {
    *out = (a->hi <= b->lo) == min ? *a : *b;
    return;
  }
  if (min)
    axis_range(out, t, least(a->lo, b->lo), least(a->hi, b->hi));
  else
    axis_range(out, t, most(a->lo, b->lo), most(a->hi, b->hi));
}

// -1: unknown, else the one outcome.
static int outcome(IrCmp p, const PassAxis *a, const PassAxis *b) {
  if (p >= CMP_ult && (a->lo < 0 || b->lo < 0)) return -1;
  const bool below = a->hi<b->lo, above = a->lo> b->hi, same = known(a) && known(b) && a->lo == b->lo;
  const bool at_most = a->hi <= b->lo, at_least = a->lo >= b->hi;
  switch (p) {
  case CMP_eq: return same ? 1 : below || above ? 0 : -1;
  case CMP_ne: return same ? 0 : below || above ? 1 : -1;
  case CMP_slt:
  case CMP_ult: return below ? 1 : at_least ? 0 : -1;
  case CMP_sle:
  case CMP_ule: return at_most ? 1 : above ? 0 : -1;
  case CMP_sgt:
  case CMP_ugt: return above ? 1 : at_most ? 0 : -1;
  default: return at_least ? 1 : below ? 0 : -1;
  }
}

static void compare(PassAxis *out, const IrOp *op, const PassAxis *a, const PassAxis *b) {
  const IrCmp p = (IrCmp)ir_attr_i(op, ATTR_cmp);
  const bool ints = ir_type_is_int(ir_operand(op, 0)->type);
  for (int d = 0; d < axis_dims(out); d++) {
    int32_t c = axis_min(a->constancy[d], b->constancy[d]);
    // x < n from a multiple of the run's length on: all or none, as n is a multiple too
    if (ints && (p == CMP_slt || p == CMP_sge || p == CMP_ult || p == CMP_uge)) c = axis_max(c, run(a, b, d));
    if (ints && (p == CMP_sgt || p == CMP_sle || p == CMP_ugt || p == CMP_ule)) c = axis_max(c, run(b, a, d));
    out->constancy[d] = c;
  }
  const bool bits1 = ints && bits_of(ir_operand(op, 0)->type) == 1; // kept as 0 and 1, ordered as 0 and -1
  const int r = ints && (!bits1 || p == CMP_eq || p == CMP_ne) ? outcome(p, a, b) : -1;
  if (r >= 0) out->lo = out->hi = r;
}

static void select(PassAxis *out, const PassAxis *c, const PassAxis *a, const PassAxis *b) {
  if (known(c)) {
    *out = c->lo ? *a : *b;
    return;
  }
  for (int d = 0; d < axis_dims(out); d++) {
    const int32_t r = axis_min(c->constancy[d], axis_min(a->contig[d], b->contig[d]));
    out->contig[d] = r;
    out->div[d] = axis_min(axis_div_at(a, d, r, 1), axis_div_at(b, d, r, 1));
    out->constancy[d] = axis_min(c->constancy[d], axis_min(a->constancy[d], b->constancy[d]));
  }
  out->all_div = axis_min(a->all_div, b->all_div);
  out->lo = a->lo < b->lo ? a->lo : b->lo;
  out->hi = a->hi > b->hi ? a->hi : b->hi;
}

static void convert(PassAxis *out, const IrOp *op, const PassAxis *a) {
  const IrType *from = ir_operand(op, 0)->type, *to = ir_result(op, 0)->type;
  int64_t lo, hi;
  *out = *a;
  switch (op->kind) {
  case OP_ext_s:
    if (bits_of(from) != 1) return;
    for (int d = 0; d < axis_dims(out); d++) out->contig[d] = 1, out->div[d] = 1;
    out->all_div = 1;
    out->lo = -a->hi;
    out->hi = -a->lo;
    return;
  case OP_ext_u:
    if (a->lo >= 0) return;
    for (int d = 0; d < axis_dims(out); d++) { // -1 and 0 are neighbours no more
      const int32_t c = axis_min(a->contig[d], axis_max(a->div[d], 1));
      out->div[d] = axis_div_at(a, d, c, 1);
      out->contig[d] = c;
    }
    out->lo = 0;
    out->hi = bits_of(from) >= 63 ? INT64_MAX : (int64_t)pass_mask(bits_of(from));
    return;
  default: // trunc
    axis_type_range(to, &lo, &hi);
    if (a->lo >= lo && a->hi <= hi) return;
    out->lo = lo;
    out->hi = hi;
  }
}

// The same bits under another type: runs of consecutive values survive where the unit is the same.
static void reinterpret(PassAxis *out, const IrOp *op, const PassAxis *a) {
  const IrType *from = ir_operand(op, 0)->type, *to = ir_result(op, 0)->type;
  const bool fp = ir_type_is_ptr(from), tp = ir_type_is_ptr(to);
  const int fu = fp ? ir_dtypes[from->dtype].bytes : 1, tu = tp ? ir_dtypes[to->dtype].bytes : 1;
  for (int d = 0; d < axis_dims(out); d++) out->constancy[d] = a->constancy[d];
  if (!fp && !tp && (!ir_type_is_int(from) || !ir_type_is_int(to))) return;
  out->all_div = a->all_div;
  for (int d = 0; d < axis_dims(out); d++) {
    out->contig[d] = fu == tu ? a->contig[d] : 1;
    out->div[d] = fu == tu ? a->div[d] : a->all_div;
  }
  if (!fp && !tp) out->lo = a->lo, out->hi = a->hi;
}

void axis_apply_hints(const IrOp *op, PassAxis *out) {
  const IrAttr *div = ir_attr(op, ATTR_divisible), *con = ir_attr(op, ATTR_contiguous),
               *eq = ir_attr(op, ATTR_constancy);
  for (int d = 0; d < axis_dims(out); d++) {
    const uint32_t i = (uint32_t)d;
    if (con && i < con->ints.n && con->ints.v[i] > 0)
      out->contig[d] = axis_max(out->contig[d], axis_pow2_of(con->ints.v[i]));
    if (div && i < div->ints.n && div->ints.v[i] > 0)
      out->div[d] = axis_max(out->div[d], axis_pow2_of(div->ints.v[i]));
    if (eq && i < eq->ints.n && eq->ints.v[i] > 0)
      out->constancy[d] = axis_max(out->constancy[d], axis_pow2_of(eq->ints.v[i]));
  }
}

void axis_elementwise(const IrOp *op, const PassAxis *const *in, PassAxis *out) {
  const IrType *t = ir_result(op, 0)->type;
  const PassAxis *a = in[0], *b = op->noperands > 1 ? in[1] : NULL;
  const bool bits1 = ir_type_is_int(t) && bits_of(t) == 1; // only logic makes sense on them
  const bool logic = op->kind == OP_and || op->kind == OP_or || op->kind == OP_xor;
  switch (bits1 && (ir_ops[op->kind].traits & TRAIT_SAME) && op->kind != OP_hint && !logic ? OP_const
                                                                                           : op->kind) {
  case OP_add:
    sum(out, a, b, false, 1);
    axis_range(out, t, (__int128)a->lo + b->lo, (__int128)a->hi + b->hi);
    return;
  case OP_sub:
    sum(out, a, b, true, 1);
    axis_range(out, t, (__int128)a->lo - b->hi, (__int128)a->hi - b->lo);
    return;
  case OP_mul: mul(out, t, a, b); return;
  case OP_div_s:
  case OP_div_u: div_(out, t, a, b, op->kind == OP_div_s); return;
  case OP_rem_s:
  case OP_rem_u: rem(out, t, a, b, op->kind == OP_rem_s); return;
  case OP_shl:
  case OP_shr_s:
  case OP_shr_u: shift(out, t, a, b, op->kind); return;
  case OP_and: and_(out, t, a, b); return;
  case OP_or:
  case OP_xor: or_xor(out, t, a, b); return;
  case OP_min_s:
  case OP_max_s:
  case OP_min_u:
  case OP_max_u: min_max(out, t, a, b, op->kind); return;
  case OP_cmp: compare(out, op, a, b); return;
  case OP_select: select(out, a, b, in[2]); return;
  case OP_ext_s:
  case OP_ext_u:
  case OP_trunc: convert(out, op, a); return;
  case OP_bitcast:
  case OP_ptr2int:
  case OP_int2ptr: reinterpret(out, op, a); return;
  case OP_ptr_add:
    sum(out, a, b, false, ir_dtypes[t->dtype].bytes);
    axis_apply_hints(op, out);
    return;
  case OP_hint:
    *out = *a;
    axis_apply_hints(op, out);
    return;
  case OP_abs_s: {
    int64_t lo, hi;
    axis_type_range(t, &lo, &hi);
    if (a->lo >= 0) {
      *out = *a;
      return;
    }
    out->all_div = a->all_div;
    if (a->lo > lo) axis_range(out, t, 0, a->hi > -a->lo ? a->hi : -a->lo);
    break;
  }
  default: break;
  }
  // equal operands give equal results
  for (int d = 0; d < axis_dims(out); d++) {
    int32_t c = AXIS_MAX_DIV;
    for (uint32_t i = 0; i < op->noperands; i++) {
      if (in[i]) c = axis_min(c, in[i]->constancy[d]);
    }
    out->constancy[d] = c;
  }
}
