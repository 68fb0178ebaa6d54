// lower_arith: integers, floating point, comparison and choice. Integers wrap and never trap; the small floats compute
// in f32 and round once.
#include "target/target_impl.h"

static LLVMIntPredicate int_predicate(IrCmp c) {
  static const LLVMIntPredicate p[CMP_COUNT] = {
      [CMP_eq] = LLVMIntEQ,   [CMP_ne] = LLVMIntNE,   [CMP_slt] = LLVMIntSLT, [CMP_sle] = LLVMIntSLE,
      [CMP_sgt] = LLVMIntSGT, [CMP_sge] = LLVMIntSGE, [CMP_ult] = LLVMIntULT, [CMP_ule] = LLVMIntULE,
      [CMP_ugt] = LLVMIntUGT, [CMP_uge] = LLVMIntUGE};
  return p[c];
}
static LLVMRealPredicate real_predicate(IrFcmp c) {
  static const LLVMRealPredicate p[FCMP_COUNT] = {
      [FCMP_oeq] = LLVMRealOEQ, [FCMP_une] = LLVMRealUNE, [FCMP_olt] = LLVMRealOLT,
      [FCMP_ole] = LLVMRealOLE, [FCMP_ogt] = LLVMRealOGT, [FCMP_oge] = LLVMRealOGE};
  return p[c];
}

// Quotients of up to 32 bits are exact in floating point whose significand is 21 bits longer: the nearest float to a / b
// never reaches the next integer. One vector division instead of a division an element.
static V divide_as_float(Lower *l, V a, V b, uint32_t bits, bool is_signed) {
  const T ty = LLVMTypeOf(a), f = lower_shape(bits <= 8 ? l->f32 : l->f64, a);
  const V x = is_signed ? LLVMBuildSIToFP(l->b, a, f, "") : LLVMBuildUIToFP(l->b, a, f, "");
  const V y = is_signed ? LLVMBuildSIToFP(l->b, b, f, "") : LLVMBuildUIToFP(l->b, b, f, "");
  const V q = lower_fdiv(l, x, y);
  return is_signed ? LLVMBuildFPToSI(l->b, q, ty, "") : LLVMBuildFPToUI(l->b, q, ty, "");
}

// a / 0 = a % 0 = 0; the smallest integer over -1 wraps.
static V divide(Lower *l, IrOpKind k, V a, V b) {
  const T ty = LLVMTypeOf(a);
  const bool is_signed = k == OP_div_s || k == OP_rem_s, rem = k == OP_rem_s || k == OP_rem_u;
  const uint32_t bits = LLVMGetIntTypeWidth(lower_elem_type(ty));
  const V zero = LLVMConstNull(ty), by0 = lower_icmp(l, LLVMIntEQ, b, zero);
  V bad = by0, minus = NULL;
  if (is_signed) {
    minus = lower_icmp(l, LLVMIntEQ, b, LLVMConstAllOnes(ty));
    bad = lower_or(l, by0, minus);
  }
  const V safe = lower_sel(l, bad, lower_ci(ty, 1), b);
  const bool as_float = lower_lanes(a) && bits <= 32 && bits > 1 && !LLVMIsConstant(b);
  V q;
  if (as_float)
    q = divide_as_float(l, a, safe, bits, is_signed);
  else if (rem)
    q = is_signed ? LLVMBuildSRem(l->b, a, safe, "") : LLVMBuildURem(l->b, a, safe, "");
  else
    q = is_signed ? LLVMBuildSDiv(l->b, a, safe, "") : LLVMBuildUDiv(l->b, a, safe, "");
  if (rem) {
    if (as_float) q = lower_sub(l, a, lower_mul(l, q, safe)); // 0 for the safe divisor 1
    return q;
  }
  if (is_signed) q = lower_sel(l, minus, lower_sub(l, zero, a), q);
  return lower_sel(l, by0, zero, q);
}

static V mul_high(Lower *l, V a, V b, bool is_signed) {
  const T ty = LLVMTypeOf(a), elem = lower_elem_type(ty);
  const uint32_t bits = LLVMGetIntTypeWidth(elem);
  const T wide = lower_shape(LLVMIntTypeInContext(l->cx, bits * 2), a);
  const V x = is_signed ? LLVMBuildSExt(l->b, a, wide, "") : LLVMBuildZExt(l->b, a, wide, "");
  const V y = is_signed ? LLVMBuildSExt(l->b, b, wide, "") : LLVMBuildZExt(l->b, b, wide, "");
  return LLVMBuildTrunc(l->b, lower_lshr(l, lower_mul(l, x, y), bits), ty, "");
}

static V shift(Lower *l, IrOpKind k, V a, V b) {
  const T ty = LLVMTypeOf(a);
  const uint32_t bits = LLVMGetIntTypeWidth(lower_elem_type(ty));
  if (LLVMIsAConstantInt(b) && LLVMConstIntGetZExtValue(b) < bits) {
    if (k == OP_shl) return LLVMBuildShl(l->b, a, b, "");
    return k == OP_shr_s ? LLVMBuildAShr(l->b, a, b, "") : LLVMBuildLShr(l->b, a, b, "");
  }
  const V in = lower_icmp(l, LLVMIntULT, b, lower_ci(ty, bits));
  if (k == OP_shr_s) return LLVMBuildAShr(l->b, a, lower_sel(l, in, b, lower_ci(ty, bits - 1)), "");
  const V safe = lower_sel(l, in, b, LLVMConstNull(ty));
  const V r = k == OP_shl ? LLVMBuildShl(l->b, a, safe, "") : LLVMBuildLShr(l->b, a, safe, "");
  return lower_sel(l, in, r, LLVMConstNull(ty));
}

// Which zero of two is nobody's concern; said so, each is three instructions on vectors. In this order of operands
// equal ones give b, as the interpreter does. (Some scalar forms of the intrinsics would become calls.)
static V min_max(Lower *l, V a, V b, bool max, bool nan) {
  if (lower_lanes(a) < 2) {
    const V pick = lower_sel(l, lower_fcmp(l, max ? LLVMRealOGT : LLVMRealOLT, a, b), a, b);
    const V odd = nan ? a : b;
    return lower_sel(l, lower_fcmp(l, LLVMRealUNO, odd, odd), a, pick);
  }
  const V r = nan ? lower_bin(l, max ? "llvm.maximum" : "llvm.minimum", a, b)
                  : lower_bin(l, max ? "llvm.maxnum" : "llvm.minnum", b, a);
  if (LLVMIsAInstruction(r)) LLVMSetFastMathFlags(r, LLVMFastMathNoSignedZeros);
  return r;
}

// Exact remainder by the x87's own instruction, which leaves at most 2^63 times the divisor each turn.
static V remainder_fn(Lower *l) {
  const char name[] = "ditron.fmod";
  V fn = LLVMGetNamedFunction(l->mod, name);
  if (fn) return fn;
  const T dd[] = {l->f64, l->f64};
  fn = LLVMAddFunction(l->mod, name, LLVMFunctionType(l->f64, (T *)dd, 2, false));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  lower_fn_attrs(l, fn);
  const LLVMBasicBlockRef here = lower_here(l);
  lower_at(l, LLVMAppendBasicBlockInContext(l->cx, fn, ""));
  const T ext = LLVMX86FP80TypeInContext(l->cx), ee[] = {ext, ext};
  V x[] = {LLVMBuildFPExt(l->b, LLVMGetParam(fn, 0), ext, ""),
           LLVMBuildFPExt(l->b, LLVMGetParam(fn, 1), ext, "")};
  const char text[] = "1: fprem\n fnstsw %ax\n testb $$4, %ah\n jne 1b";
  const char constraints[] = "={st},{st},{st(1)},~{ax},~{fpsr},~{flags},~{dirflag}";
  const T ft = LLVMFunctionType(ext, (T *)ee, 2, false);
  const V code = LLVMGetInlineAsm(ft, text, sizeof text - 1, constraints, sizeof constraints - 1, false,
                                  false, LLVMInlineAsmDialectATT, false);
  const V r = LLVMBuildCall2(l->b, ft, code, x, 2, "");
  LLVMBuildRet(l->b, LLVMBuildFPTrunc(l->b, r, l->f64, ""));
  lower_at(l, here);
  return fn;
}
V lower_each_lane(Lower *l, V fn, V a, V b) {
  const uint32_t lanes = lower_lanes(a);
  const T ft = LLVMGlobalGetValueType(fn);
  const uint32_t n = b ? 2 : 1;
  if (!lanes) return LLVMBuildCall2(l->b, ft, fn, (V[]){a, b}, n, "");
  LowerLoop loop;
  const V init = LLVMGetPoison(lower_vec(LLVMGetReturnType(ft), lanes));
  lower_loop_begin(l, &loop, LLVMConstInt(l->i32, lanes, false), 1, &init);
  V x[2] = {LLVMBuildExtractElement(l->b, a, loop.i, ""),
            b ? LLVMBuildExtractElement(l->b, b, loop.i, "") : NULL};
  const V r = LLVMBuildCall2(l->b, ft, fn, x, n, "");
  const V next = LLVMBuildInsertElement(l->b, loop.carried[0], r, loop.i, "");
  lower_loop_end(l, &loop, &next);
  return loop.carried[0];
}
static V remainder_of(Lower *l, V a, V b) {
  const T ty = LLVMTypeOf(a), d = lower_shape(l->f64, a);
  const bool single = lower_elem_type(ty) == l->f32;
  if (single) {
    a = LLVMBuildFPExt(l->b, a, d, "");
    b = LLVMBuildFPExt(l->b, b, d, "");
  }
  const V r = lower_each_lane(l, remainder_fn(l), a, b);
  return single ? LLVMBuildFPTrunc(l->b, r, ty, "") : r;
}

// Products may fuse with the sums that use them.
static V contract(V x) {
  if (LLVMIsAInstruction(x) && LLVMCanValueUseFastMathFlags(x))
    LLVMSetFastMathFlags(x, LLVMFastMathAllowContract);
  return x;
}

static V float_op(Lower *l, const IrOp *op, V a, V b, V c) {
  const bool nan = ir_attr_i(op, ATTR_nan);
  switch (op->kind) {
  case OP_fadd: return contract(lower_fadd(l, a, b));
  case OP_fsub: return contract(lower_fsub(l, a, b));
  case OP_fmul: return contract(lower_fmul(l, a, b));
  case OP_fdiv: return lower_fdiv(l, a, b);
  case OP_frem: return remainder_of(l, a, b);
  case OP_fmin: return min_max(l, a, b, false, nan);
  case OP_fmax: return min_max(l, a, b, true, nan);
  case OP_fma: return lower_fma(l, a, b, c);
  default: lower_fail(l, op, ST_INTERNAL, "not a floating-point op");
  }
}

// Sign changes work on the bits, so that they are exact for every format, NaNs included.
static V sign_op(Lower *l, IrOpKind k, V x) {
  const T ty = LLVMTypeOf(x), e = lower_elem_type(ty);
  const T bits_elem = e == l->f32 ? l->i32 : e == l->f64 ? l->i64 : e;
  const V bits = lower_bitcast(l, x, bits_elem);
  const uint32_t n = LLVMGetIntTypeWidth(bits_elem);
  const int64_t sign = (int64_t)(1ull << (n - 1));
  const V r = k == OP_fneg ? lower_xor(l, bits, lower_ci(LLVMTypeOf(bits), sign))
                           : lower_and(l, bits, lower_ci(LLVMTypeOf(bits), ~sign));
  return lower_bitcast(l, r, e);
}

void lower_arith(Lower *l, const IrOp *op) {
  const V a = lower_operand(l, op, 0), b = lower_operand(l, op, 1), c = lower_operand(l, op, 2);
  const IrType *t = ir_operand(op, 0)->type;
  const IrDtype d = t->dtype;
  V r;
  switch (op->kind) {
  case OP_add: r = lower_add(l, a, b); break;
  case OP_sub: r = lower_sub(l, a, b); break;
  case OP_mul: r = lower_mul(l, a, b); break;
  case OP_div_s:
  case OP_div_u:
  case OP_rem_s:
  case OP_rem_u: r = divide(l, op->kind, a, b); break;
  case OP_mulhi_s: r = mul_high(l, a, b, true); break;
  case OP_mulhi_u: r = mul_high(l, a, b, false); break;
  case OP_and: r = lower_and(l, a, b); break;
  case OP_or: r = lower_or(l, a, b); break;
  case OP_xor: r = lower_xor(l, a, b); break;
  case OP_shl:
  case OP_shr_s:
  case OP_shr_u: r = shift(l, op->kind, a, b); break;
  case OP_min_s: r = lower_bin(l, "llvm.smin", a, b); break;
  case OP_max_s: r = lower_bin(l, "llvm.smax", a, b); break;
  case OP_min_u: r = lower_bin(l, "llvm.umin", a, b); break;
  case OP_max_u: r = lower_bin(l, "llvm.umax", a, b); break;
  case OP_abs_s: {
    const T ty = LLVMTypeOf(a);
    r = lower_intrinsic(l, "llvm.abs", &ty, 1, (V[]){a, LLVMConstInt(l->i1, 0, false)}, 2);
    break;
  }
  case OP_cmp: r = lower_icmp(l, int_predicate((IrCmp)ir_attr_i(op, ATTR_cmp)), a, b); break;
  case OP_fcmp:
    r = lower_fcmp(l, real_predicate((IrFcmp)ir_attr_i(op, ATTR_fcmp)), lower_widen(l, a, d),
                   lower_widen(l, b, d));
    break;
  case OP_select: {
    V cond = a;
    if (!lower_lanes(a) && lower_lanes(b)) cond = lower_splat(l, a, lower_lanes(b));
    r = lower_sel(l, cond, b, c);
    break;
  }
  case OP_fneg:
  case OP_fabs: r = sign_op(l, op->kind, a); break;
  default:
    r = float_op(l, op, lower_widen(l, a, d), b ? lower_widen(l, b, d) : NULL,
                 c ? lower_widen(l, c, d) : NULL);
    r = lower_narrow(l, r, d, ROUND_rtne);
    break;
  }
  lower_result(l, op, r);
}
