// num: arithmetic with instructions of its own: conversions of the small floats, quotients, minima, remainders and functions.
// What is not here is the shared code's, whose results are exact or known to 2 units in the last place.
//
// Bounds of the approximations are those of the PTX ISA and the CUDA guide: ex2 2 units, rsqrt below 2, div.full 2.
#include "target/nvptx/nvptx.h"

static V pure(Lower *l, T result, const char *text, const char *constraints, V const *args, uint32_t n) {
  return nvptx_asm(l, result, text, constraints, args, n, ASM_PURE);
}
static bool has_f8(const Lower *l) { return l->facts->caps & TARGET_CAP_F8_CVT; }
static bool is_f8(IrDtype d) { return d == IR_f8e4m3 || d == IR_f8e5m2; }
static const char *f8_name(IrDtype d) { return d == IR_f8e4m3 ? "e4m3x2" : "e5m2x2"; }

// ---- small floats ----------------------------------------------------------------------------------
V nvptx_widen(Lower *l, V x, IrDtype d) {
  if (!is_f8(d) || !has_f8(l) || lower_lanes(x)) return NULL;
  const V pair = LLVMBuildZExt(l->b, x, l->i16, "");
  const V halves = pure(l, l->i32, nvptx_text(l, "cvt.rn.f16x2.%s $0, $1;", f8_name(d)), "=r,h", &pair, 1);
  return lower_widen(l, LLVMBuildTrunc(l->b, halves, l->i16, ""), IR_f16);
}
// The machine converts two at a time, at full rate; single conversions of halves are slower than a pair with a zero. What a
// value was made of is remembered, so that two which end up side by side become one conversion.
typedef struct Narrowed {
  V from;
  IrDtype d;
  IrRound round;
} Narrowed;

static bool converts(const Lower *l, IrDtype d, IrRound round) {
  return d == IR_bf16 || d == IR_f16 || (is_f8(d) && has_f8(l) && round == ROUND_rtne);
}
static V pair_of(Lower *l, V lo, V hi, IrDtype d, IrRound round) {
  V args[] = {hi, lo};
  if (is_f8(d))
    return pure(l, l->i16, nvptx_text(l, "cvt.rn.satfinite.%s.f32 $0, $1, $2;", f8_name(d)), "=h,f,f", args,
                2);
  return pure(
      l, l->i32,
      nvptx_text(l, "cvt.%s.%sx2.f32 $0, $1, $2;", round == ROUND_rtz ? "rz" : "rn", ir_dtypes[d].name),
      "=r,f,f", args, 2);
}
V nvptx_narrow(Lower *l, V x, IrDtype d, IrRound round) {
  if (LLVMTypeOf(x) != l->f32 || !converts(l, d, round)) return NULL;
  NvptxState *s = l->own;
  const V pair = pair_of(l, x, LLVMConstNull(l->f32), d, round);
  const V r = LLVMBuildTrunc(l->b, pair, lower_dtype(l, d), "");
  Narrowed *n = arena_new(l->arena, Narrowed);
  *n = (Narrowed){x, d, round};
  map_setp(&s->narrowed, r, n);
  return r;
}
V nvptx_pair(Lower *l, V lo, V hi) {
  const NvptxState *s = l->own;
  const Narrowed *a = map_getp(&s->narrowed, lo), *b = map_getp(&s->narrowed, hi);
  const NvptxPiece *x = nvptx_piece(l, lo), *y = nvptx_piece(l, hi);
  if (x && y && LLVMTypeOf(lo) == l->i16 && LLVMTypeOf(x->word) == l->i32)
    return x->word == y->word && x->index == 0 && y->index == 1 ? x->word : NULL;
  if (!a || !b || a->d != b->d || a->round != b->round) return NULL;
  return pair_of(l, a->from, b->from, a->d, a->round);
}
// a | b << 16 of two widened halves, as packs are made for products.
static V joined_halves(Lower *l, V x, V y) {
  if (LLVMTypeOf(x) != l->i32 || !LLVMIsAInstruction(x) || !LLVMIsAInstruction(y)) return NULL;
  if (LLVMGetInstructionOpcode(y) != LLVMShl) {
    const V z = x;
    x = y;
    y = z;
  }
  if (LLVMGetInstructionOpcode(y) != LLVMShl || LLVMGetInstructionOpcode(x) != LLVMZExt) return NULL;
  const V by = LLVMGetOperand(y, 1), high = LLVMGetOperand(y, 0);
  if (!LLVMIsAConstantInt(by) || LLVMConstIntGetZExtValue(by) != 16) return NULL;
  if (!LLVMIsAInstruction(high) || LLVMGetInstructionOpcode(high) != LLVMZExt) return NULL;
  const V lo = LLVMGetOperand(x, 0), hi = LLVMGetOperand(high, 0);
  return LLVMTypeOf(lo) == l->i16 && LLVMTypeOf(hi) == l->i16 ? nvptx_pair(l, lo, hi) : NULL;
}

// ---- functions -----------------------------------------------------------------------------------
static V cf(V like, double v) { return lower_cf(LLVMTypeOf(like), v); }
// The program's own exp2: below 2^-126 it may be 0. Keeping subnormals costs three more instructions each, which no softmax wants.
static V ex2_flushing(Lower *l, V x) {
  return nvptx_asm(l, l->f32, "ex2.approx.ftz.f32 $0, $1;", "=f,f", &x, 1, ASM_PURE);
}
// e^x as 2^t times what the rounding of t = x log2(e) lost; below 2^-126 it may be 0. Clamped so that the loss is finite; a NaN stays.
static V exp_f32(Lower *l, V x) {
  x = lower_sel(l, lower_fcmp(l, LLVMRealOLT, x, cf(x, -105)), cf(x, -105), x);
  x = lower_sel(l, lower_fcmp(l, LLVMRealOGT, x, cf(x, 89)), cf(x, 89), x);
  const V c = cf(x, 0x1.715476p+0), t = lower_fmul(l, x, c);
  V lost = lower_fma(l, x, c, LLVMBuildFNeg(l->b, t, ""));
  lost = lower_fma(l, x, cf(x, 0x1.4ae0cp-26), lost);
  return lower_fmul(l, ex2_flushing(l, t), lower_fma(l, lost, cf(x, 0x1.62e43p-1), cf(x, 1)));
}
V nvptx_math(Lower *l, IrMath fn, V x, V y) {
  (void)y;
  if (LLVMTypeOf(x) != l->f32) return NULL;
  switch (fn) {
  case MATH_FN_exp2: return ex2_flushing(l, x);
  case MATH_FN_exp: return exp_f32(l, x);
  case MATH_FN_rsqrt: return lower_intrinsic(l, "llvm.nvvm.rsqrt.approx.f", NULL, 0, &x, 1);
  default: return NULL;
  }
}

// ---- C's fmod --------------------------------------------------------------------------------------
// double ditron.fmod(double x, double y): long division of the significands, a bit a turn; exact. Subnormals are scaled to
// normal numbers first (the divisor's scale is the remainder's).
//
//   m, n   significands with the leading bit, e, f their exponents       r = m; for i = e - f .. 0: if r >= n: r -= n; r *= 2
static V fmod_fn(Lower *l) {
  const char name[] = "ditron.fmod";
  V fn = LLVMGetNamedFunction(l->mod, name);
  if (fn) return fn;
  const T dd[] = {l->f64, l->f64};
  fn = LLVMAddFunction(l->mod, name, LLVMFunctionType(l->f64, (T *)dd, 2, false));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  lower_fn_attrs(l, fn);
  const LLVMBasicBlockRef here = lower_here(l);
  const LLVMMetadataRef loc = l->di ? LLVMGetCurrentDebugLocation2(l->b) : NULL;
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, NULL);
  const V save = l->fn;
  l->fn = fn;
  const LLVMBasicBlockRef entry = lower_new_block(l, "entry"), odd = lower_new_block(l, "odd"),
                          ask = lower_new_block(l, "ask"), small = lower_new_block(l, "small"),
                          divide = lower_new_block(l, "divide"), turn = lower_new_block(l, "turn"),
                          done = lower_new_block(l, "done");
  const T i64 = l->i64;
#define K(v) LLVMConstInt(i64, (uint64_t)(v), false)
  lower_at(l, entry);
  const V x = LLVMGetParam(fn, 0), y = LLVMGetParam(fn, 1);
  const V ax = lower_un(l, "llvm.fabs", x), ay = lower_un(l, "llvm.fabs", y);
  const V fine = lower_and(l, lower_fcmp(l, LLVMRealOLT, ax, cf(ax, __builtin_inf())),
                           lower_fcmp(l, LLVMRealOGT, ay, cf(ay, 0)));
  LLVMBuildCondBr(l->b, fine, ask, odd);
  lower_at(l, odd); // an infinite x, a zero y, a NaN
  LLVMBuildRet(l->b, lower_cf(l->f64, __builtin_nan("")));
  lower_at(l, ask);
  LLVMBuildCondBr(l->b, lower_fcmp(l, LLVMRealOLT, ax, ay), small, divide);
  lower_at(l, small);
  LLVMBuildRet(l->b, x);
  lower_at(l, divide);
  const V tiny = lower_fcmp(l, LLVMRealOLT, ay, cf(ay, 0x1p-1022));
  const V big = lower_fcmp(l, LLVMRealOGE, ax, cf(ax, 0x1p900)); // scaling would overflow
  const V far =
      lower_and(l, tiny, big); // x is a multiple of 2^848, so its exponent may be lowered by 54 bits later
  const V scale = lower_sel(l, tiny, cf(ax, 0x1p54), cf(ax, 1));
  const V sy = lower_bitcast(l, lower_fmul(l, ay, scale), i64);
  const V sx = lower_bitcast(l, lower_fmul(l, ax, lower_sel(l, far, cf(ax, 1), scale)), i64);
  const V low = K((1ull << 52) - 1), lead = K(1ull << 52);
  const V n = lower_or(l, lower_and(l, sy, low), lead), f = lower_lshr(l, sy, 52);
  const V m = lower_or(l, lower_and(l, sx, low), lead);
  V e = lower_lshr(l, sx, 52);
  e = lower_add(l, e, lower_sel(l, far, K(54), K(0)));
  V steps = lower_sub(l, e, f);
  LLVMBuildBr(l->b, turn);
  lower_at(l, turn);
  V r = LLVMBuildPhi(l->b, i64, ""), i = LLVMBuildPhi(l->b, i64, "");
  LLVMBasicBlockRef pre = divide, latch = turn;
  LLVMAddIncoming(r, (V *)&m, &pre, 1);
  LLVMAddIncoming(i, &steps, &pre, 1);
  const V less = lower_sel(l, lower_icmp(l, LLVMIntUGE, r, n), lower_sub(l, r, n), r);
  V twice = lower_shl(l, less, 1), next = lower_sub(l, i, K(1));
  LLVMAddIncoming(r, &twice, &latch, 1);
  LLVMAddIncoming(i, &next, &latch, 1);
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntEQ, i, K(0)), done, turn);
  lower_at(l, done);
  // less 2^(f - 1075) of the scaled numbers: exact, since it is below y and a multiple of y's last place.
  const V unit = lower_bitcast(
      l, lower_sel(l, lower_icmp(l, LLVMIntUGT, f, K(52)), lower_shl(l, lower_sub(l, f, K(52)), 52), K(0)),
      l->f64);
  const V value = LLVMBuildUIToFP(l->b, less, l->f64, "");
  // f is at least 1; below 53 the unit is subnormal: 2^(f - 1075) = 2^(f - 1 - 1074).
  const V small_unit =
      lower_bitcast(l, LLVMBuildShl(l->b, K(1), lower_and(l, lower_sub(l, f, K(1)), K(63)), ""), l->f64);
  const V u = lower_sel(l, lower_icmp(l, LLVMIntUGT, f, K(52)), unit, small_unit);
  const V back = lower_sel(l, tiny, cf(ax, 0x1p-54), cf(ax, 1));
  LLVMBuildRet(l->b, lower_bin(l, "llvm.copysign", lower_fmul(l, lower_fmul(l, value, u), back), x));
#undef K
  l->fn = save;
  lower_at(l, here);
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, loc);
  return fn;
}
static V remainder_of(Lower *l, V a, V b) { // f32 or f64
  const bool single = LLVMTypeOf(a) == l->f32;
  V x[] = {a, b};
  for (int i = 0; single && i < 2; i++) x[i] = LLVMBuildFPExt(l->b, x[i], l->f64, "");
  const V fn = fmod_fn(l), r = LLVMBuildCall2(l->b, LLVMGlobalGetValueType(fn), fn, x, 2, "");
  return single ? LLVMBuildFPTrunc(l->b, r, l->f32, "") : r;
}

// ---- ops -----------------------------------------------------------------------------------------
static V min_max(Lower *l, const IrOp *op, V a, V b) {
  const bool nan = ir_attr_i(op, ATTR_nan), max = op->kind == OP_fmax;
  return nan ? lower_bin(l, max ? "llvm.maximum" : "llvm.minimum", a, b)
             : lower_bin(l, max ? "llvm.maxnum" : "llvm.minnum", a, b);
}

bool nvptx_num(Lower *l, const IrOp *op) {
  if (op->kind == OP_or) {
    const V both = joined_halves(l, lower_operand(l, op, 0), lower_operand(l, op, 1));
    if (both) lower_result(l, op, both);
    return both != NULL;
  }
  if (op->kind != OP_fdiv && op->kind != OP_fmin && op->kind != OP_fmax && op->kind != OP_frem &&
      op->kind != OP_f2si && op->kind != OP_f2ui)
    return false;
  const IrDtype d = ir_operand(op, 0)->type->dtype;
  V a = lower_widen(l, lower_operand(l, op, 0), d);
  const T t = LLVMTypeOf(a);
  if (t != l->f32 && t != l->f64) return false; // vectors
  if (op->kind == OP_f2si || op->kind == OP_f2ui) {
    // The machine saturates, and makes 0 of a NaN, where both are of 32 bits.
    if (t != l->f32 || ir_result(op, 0)->type->dtype != IR_i32) return false;
    lower_result(
        l, op,
        lower_intrinsic(l, op->kind == OP_f2si ? "llvm.nvvm.f2i.rz" : "llvm.nvvm.f2ui.rz", NULL, 0, &a, 1));
    return true;
  }
  V b = lower_widen(l, lower_operand(l, op, 1), d), r;
  if (op->kind == OP_fdiv) {
    if (t == l->f64 || ir_attr_i(op, ATTR_exact)) return false;
    r = lower_intrinsic(l, "llvm.nvvm.div.full", NULL, 0, (V[]){a, b}, 2);
  } else if (op->kind == OP_frem) {
    r = remainder_of(l, a, b);
  } else {
    if (t == l->f64) return false;
    r = min_max(l, op, a, b);
  }
  lower_result(l, op, lower_narrow(l, r, d, ROUND_rtne));
  return true;
}
