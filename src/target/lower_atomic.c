// lower_atomic: read-modify-writes and fences. Integers use the machine's own; floats and small elements without one
// compare and exchange until nobody came between. Scopes make no difference on a CPU.
#include "target/target_impl.h"

static bool is_float(IrRmw r) { return r == RMW_fadd || r == RMW_fmax || r == RMW_fmin; }

// Maxima and minima compare the bits, as the integer atomics that stand for them on GPUs do: signed where x is +, and for
// a negative x unsigned and the other way round. So the sign of 0 counts, and a NaN is larger than everything.
static V extreme_bits(Lower *l, bool max, V old, V x) {
  const V zero = LLVMConstNull(LLVMTypeOf(x));
  const V plus = LLVMBuildICmp(l->b, LLVMIntSGE, x, zero, "");
  const V s = LLVMBuildICmp(l->b, max ? LLVMIntSGT : LLVMIntSLT, old, x, "");
  const V u = LLVMBuildICmp(l->b, max ? LLVMIntULT : LLVMIntUGT, old, x, "");
  return lower_sel(l, lower_sel(l, plus, s, u), old, x);
}

static V combine(Lower *l, IrRmw r, IrDtype d, V old, V x) { // of bits
  const T val = lower_dtype(l, d), bits = LLVMTypeOf(old);
  if (r != RMW_fadd) return extreme_bits(l, r == RMW_fmax, old, LLVMBuildBitCast(l->b, x, bits, ""));
  const V y = lower_fadd(l, lower_widen(l, LLVMBuildBitCast(l->b, old, val, ""), d), lower_widen(l, x, d));
  return LLVMBuildBitCast(l->b, lower_narrow(l, y, d, ROUND_rtne), bits, "");
}

static LLVMAtomicOrdering failure_order(LLVMAtomicOrdering o) {
  if (o == LLVMAtomicOrderingRelease) return LLVMAtomicOrderingMonotonic;
  if (o == LLVMAtomicOrderingAcquireRelease) return LLVMAtomicOrderingAcquire;
  return o;
}

static V rmw_loop(Lower *l, IrRmw r, IrDtype d, V p, V x, LLVMAtomicOrdering o) {
  const T val = lower_dtype(l, d), bits = LLVMIntTypeInContext(l->cx, ir_dtypes[d].bits);
  const uint32_t bytes = ir_dtypes[d].bytes;
  V first = LLVMBuildLoad2(l->b, bits, p, "");
  lower_align(first, bytes);
  LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
  LLVMBasicBlockRef pre = lower_here(l), again = lower_new_block(l, "again"),
                    done = lower_new_block(l, "done");
  LLVMBuildBr(l->b, again);
  lower_at(l, again);
  const V old = LLVMBuildPhi(l->b, bits, "");
  LLVMAddIncoming(old, &first, &pre, 1);
  const V next = combine(l, r, d, old, x);
  const V pair = LLVMBuildAtomicCmpXchg(l->b, p, old, next, o, failure_order(o), false);
  lower_align(pair, bytes);
  V seen = LLVMBuildExtractValue(l->b, pair, 0, "");
  LLVMBasicBlockRef here = lower_here(l);
  LLVMAddIncoming(old, &seen, &here, 1);
  LLVMBuildCondBr(l->b, LLVMBuildExtractValue(l->b, pair, 1, ""), done, again);
  lower_at(l, done);
  return LLVMBuildBitCast(l->b, seen, val, "");
}

V lower_rmw(Lower *l, IrRmw r, IrDtype d, V p, V x, LLVMAtomicOrdering o) {
  static const LLVMAtomicRMWBinOp ops[RMW_COUNT] = {
      [RMW_add] = LLVMAtomicRMWBinOpAdd,    [RMW_max_s] = LLVMAtomicRMWBinOpMax,
      [RMW_min_s] = LLVMAtomicRMWBinOpMin,  [RMW_max_u] = LLVMAtomicRMWBinOpUMax,
      [RMW_min_u] = LLVMAtomicRMWBinOpUMin, [RMW_and] = LLVMAtomicRMWBinOpAnd,
      [RMW_or] = LLVMAtomicRMWBinOpOr,      [RMW_xor] = LLVMAtomicRMWBinOpXor,
      [RMW_xchg] = LLVMAtomicRMWBinOpXchg};
  if (is_float(r)) return rmw_loop(l, r, d, p, x, o);
  const T val = lower_dtype(l, d);
  const T bits = LLVMIntTypeInContext(l->cx, ir_dtypes[d].bits < 8 ? 8 : ir_dtypes[d].bits);
  const bool byte = val == l->i1;
  const V y = byte ? LLVMBuildZExt(l->b, x, bits, "") : LLVMBuildBitCast(l->b, x, bits, "");
  const V old = LLVMBuildAtomicRMW(l->b, ops[r], p, y, o, false);
  lower_align(old, ir_dtypes[d].bytes);
  return byte ? LLVMBuildTrunc(l->b, old, val, "") : LLVMBuildBitCast(l->b, old, val, "");
}

static V cas_one(Lower *l, IrDtype d, V p, V c, V v, LLVMAtomicOrdering o) {
  const T val = LLVMTypeOf(c);
  const T bits = LLVMIntTypeInContext(l->cx, ir_dtypes[d].bits < 8 ? 8 : ir_dtypes[d].bits);
  const bool byte = val == l->i1;
  const V cc = byte ? LLVMBuildZExt(l->b, c, bits, "") : LLVMBuildBitCast(l->b, c, bits, "");
  const V vv = byte ? LLVMBuildZExt(l->b, v, bits, "") : LLVMBuildBitCast(l->b, v, bits, "");
  const V pair = LLVMBuildAtomicCmpXchg(l->b, p, cc, vv, o, failure_order(o), false);
  lower_align(pair, ir_dtypes[d].bytes);
  const V old = LLVMBuildExtractValue(l->b, pair, 0, "");
  return byte ? LLVMBuildTrunc(l->b, old, val, "") : LLVMBuildBitCast(l->b, old, val, "");
}

static V one(Lower *l, const IrOp *op, V p, V a, V b) {
  const IrDtype d = ir_result(op, 0)->type->dtype;
  IrOrder order = (IrOrder)ir_attr_i(op, ATTR_order);
  if (order == ORDER_weak) order = ORDER_relaxed;
  if (op->kind == OP_atomic_cas) return cas_one(l, d, p, a, b, lower_order(order));
  return lower_rmw(l, (IrRmw)ir_attr_i(op, ATTR_rmw), d, p, a, lower_order(order));
}

// The masked form of one element: 0 where the mask is off.
static V one_masked(Lower *l, const IrOp *op, V p, V a, V b, V mask) {
  if (!mask) return one(l, op, p, a, b);
  LLVMBasicBlockRef pre = lower_here(l), yes = lower_new_block(l, "on"), join = lower_new_block(l, "off");
  LLVMBuildCondBr(l->b, mask, yes, join);
  lower_at(l, yes);
  V x = one(l, op, p, a, b), zero = LLVMConstNull(LLVMTypeOf(x));
  LLVMBasicBlockRef end = lower_here(l);
  LLVMBuildBr(l->b, join);
  lower_at(l, join);
  const V phi = LLVMBuildPhi(l->b, LLVMTypeOf(x), "");
  LLVMAddIncoming(phi, &x, &end, 1);
  LLVMAddIncoming(phi, &zero, &pre, 1);
  return phi;
}

void lower_atomic(Lower *l, const IrOp *op) {
  const IrOrder order = (IrOrder)ir_attr_i(op, ATTR_order);
  if (order >= ORDER_release) lower_nt_fence(l);
  if (op->kind == OP_fence) {
    // Other cores need an instruction only for the strongest; the compiler must not move accesses in any case.
    const LLVMAtomicOrdering o =
        order <= ORDER_relaxed ? LLVMAtomicOrderingAcquireRelease : lower_order(order);
    LLVMBuildFence(l->b, o, false, "");
    return;
  }
  const bool cas = op->kind == OP_atomic_cas;
  const V p = lower_operand(l, op, 0), a = lower_operand(l, op, 1);
  const V b = cas ? lower_operand(l, op, 2) : NULL, mask = cas ? NULL : lower_operand(l, op, 2);
  const uint32_t lanes = lower_lanes(p);
  if (!lanes) {
    lower_result(l, op, one_masked(l, op, p, a, b, mask));
    return;
  }
  LowerLoop loop;
  const V init = LLVMConstNull(LLVMTypeOf(a));
  lower_loop_begin(l, &loop, LLVMConstInt(l->i32, lanes, false), 1, &init);
  V x[4] = {p, a, b, mask};
  for (int k = 0; k < 4; k++)
    if (x[k]) x[k] = LLVMBuildExtractElement(l->b, x[k], loop.i, "");
  const V r = one_masked(l, op, x[0], x[1], x[2], x[3]);
  const V next = LLVMBuildInsertElement(l->b, loop.carried[0], r, loop.i, "");
  lower_loop_end(l, &loop, &next);
  lower_result(l, op, loop.carried[0]);
}
