// lower_cast: conversions, and the small floats by integer arithmetic (f16 by the machine's own conversion). The results
// equal base's f16_*, bf16_* and f8* functions bit for bit.
#include "target/target_impl.h"

#include <math.h>

static V i(T like, int64_t v) { return lower_ci(like, v); }

// ---- f8: sign eeee mmm (bias 7, no infinity, 0x7f a NaN) and sign eeeee mm (bias 15) ------------------------------------
static V f8_to_f32(Lower *l, V x, IrDtype d) {
  const T w = lower_shape(l->i32, x), h = lower_shape(l->i16, x), f = lower_shape(l->f32, x);
  const V bits = LLVMBuildZExt(l->b, x, w, "");
  if (d == IR_f8e5m2) { // the upper half of an f16; all its NaNs become the same
    const V half = LLVMBuildTrunc(l->b, lower_shl(l, bits, 8), h, "");
    const V y = lower_widen(l, half, IR_f16);
    const V nan = lower_icmp(l, LLVMIntUGT, lower_and(l, bits, i(w, 0x7f)), i(w, 0x7c));
    const V code = lower_or(l, lower_shl(l, lower_and(l, bits, i(w, 0x80)), 24), i(w, 0x7fc00000));
    return lower_sel(l, nan, LLVMBuildBitCast(l->b, code, f, ""), y);
  }
  // As an f16 with the exponent moved, 2^8 too small: exact for subnormals too.
  const V code = lower_and(l, bits, i(w, 0x7f));
  const V sign = lower_shl(l, lower_and(l, bits, i(w, 0x80)), 24);
  const V half = LLVMBuildTrunc(l->b, lower_shl(l, code, 7), h, "");
  const V y = lower_fmul(l, lower_widen(l, half, IR_f16), lower_cf(f, 256));
  V r = LLVMBuildBitCast(l->b, y, w, "");
  r = lower_sel(l, lower_icmp(l, LLVMIntEQ, code, i(w, 0x7f)), i(w, 0x7fc00000), r);
  return LLVMBuildBitCast(l->b, lower_or(l, r, sign), f, "");
}

// Normal codes: the exponent is moved and the mantissa rounded in the bits. Subnormal codes: adding a power of two whose
// last place is the smallest code lets the addition round; toward zero, a last place too many is taken back.
static V f32_to_f8(Lower *l, V x, IrDtype d, IrRound round) {
  const bool e4 = d == IR_f8e4m3, rtz = round == ROUND_rtz;
  const int mbits = e4 ? 3 : 2, bias = e4 ? 7 : 15, drop = 23 - mbits;
  const T w = lower_shape(l->i32, x), f = lower_shape(l->f32, x), b = lower_shape(l->i8, x);
  const V raw = LLVMBuildBitCast(l->b, x, w, "");
  const V sign = lower_and(l, lower_lshr(l, raw, 24), i(w, 0x80));
  const V u = lower_and(l, raw, i(w, 0x7fffffff));
  const V nan = lower_icmp(l, LLVMIntUGT, u, i(w, 0x7f800000));
  const V top = i(w, e4 ? 0x43e00000 : 0x47600000); // 448, 57344
  const V m = lower_bin(l, "llvm.umin", u, top);
  V r = lower_sub(l, m, i(w, (int64_t)(127 - bias) << 23));
  if (!rtz) {
    const V odd = lower_and(l, lower_lshr(l, r, (uint32_t)drop), i(w, 1));
    r = lower_add(l, lower_add(l, r, i(w, (1 << (drop - 1)) - 1)), odd);
  }
  r = lower_lshr(l, r, (uint32_t)drop);
  const double magic = e4 ? 0x1p14 : 0x1p7; // 2^23 times the smallest code
  const V mag = LLVMBuildBitCast(l->b, m, f, ""), sum = lower_fadd(l, mag, lower_cf(f, magic));
  V sub = lower_sub(l, LLVMBuildBitCast(l->b, sum, w, ""), LLVMBuildBitCast(l->b, lower_cf(f, magic), w, ""));
  if (rtz) {
    const V over = lower_fcmp(l, LLVMRealOGT, lower_fsub(l, sum, lower_cf(f, magic)), mag);
    sub = lower_add(l, sub, LLVMBuildSExt(l->b, over, w, ""));
  }
  const V tiny = lower_icmp(l, LLVMIntULT, m, i(w, (int64_t)(127 - bias + 1) << 23));
  r = lower_sel(l, tiny, sub, r);
  r = lower_sel(l, nan, i(w, 0x7f), r);
  return LLVMBuildTrunc(l->b, lower_or(l, r, sign), b, "");
}

// ---- f16, bf16 -----------------------------------------------------------------------------------------------------
static T half_type(Lower *l, V like) { return lower_shape(LLVMHalfTypeInContext(l->cx), like); }

static V f32_to_bf16(Lower *l, V x, IrRound round) {
  const T w = lower_shape(l->i32, x), h = lower_shape(l->i16, x);
  const V u = LLVMBuildBitCast(l->b, x, w, ""), high = lower_lshr(l, u, 16);
  const V quiet = lower_or(l, high, i(w, 0x40));
  V r = high;
  if (round != ROUND_rtz)
    r = lower_lshr(l, lower_add(l, lower_add(l, u, i(w, 0x7fff)), lower_and(l, high, i(w, 1))), 16);
  r = lower_sel(l, lower_fcmp(l, LLVMRealUNO, x, x), quiet, r);
  return LLVMBuildTrunc(l->b, r, h, "");
}
static V f32_to_f16(Lower *l, V x, IrRound round) {
  V h = LLVMBuildFPTrunc(l->b, x, half_type(l, x), "");
  V bits = lower_bitcast(l, h, l->i16);
  if (round == ROUND_rtz) { // one step back where the nearest lies beyond
    const V back = LLVMBuildFPExt(l->b, h, LLVMTypeOf(x), "");
    const V far = lower_fcmp(l, LLVMRealOGT, lower_un(l, "llvm.fabs", back), lower_un(l, "llvm.fabs", x));
    bits = lower_add(l, bits, LLVMBuildSExt(l->b, far, lower_shape(l->i16, x), ""));
  }
  return bits;
}

// f64 to f32, rounded to odd (so that a second rounding sees no false tie) or toward zero.
static V f64_to_f32(Lower *l, V x, bool odd) {
  const T w = lower_shape(l->i32, x), f = lower_shape(l->f32, x);
  const V near = LLVMBuildFPTrunc(l->b, x, f, "");
  const V back = LLVMBuildFPExt(l->b, near, LLVMTypeOf(x), "");
  const V u = LLVMBuildBitCast(l->b, near, w, "");
  const V far = lower_fcmp(l, LLVMRealOGT, lower_un(l, "llvm.fabs", back), lower_un(l, "llvm.fabs", x));
  V r = lower_add(l, u, LLVMBuildSExt(l->b, far, w, "")); // toward zero
  if (odd) {
    const V inexact = lower_fcmp(l, LLVMRealONE, back, x);
    r = lower_or(l, r, LLVMBuildZExt(l->b, inexact, w, ""));
  }
  return LLVMBuildBitCast(l->b, r, f, "");
}

V lower_widen(Lower *l, V x, IrDtype d) {
  const V own = l->target->widen ? l->target->widen(l, x, d) : NULL;
  if (own) return own;
  const T f = lower_shape(l->f32, x);
  switch (d) {
  case IR_f16: return LLVMBuildFPExt(l->b, LLVMBuildBitCast(l->b, x, half_type(l, x), ""), f, "");
  case IR_bf16: {
    const V w = LLVMBuildZExt(l->b, x, lower_shape(l->i32, x), "");
    return LLVMBuildBitCast(l->b, lower_shl(l, w, 16), f, "");
  }
  case IR_f8e4m3:
  case IR_f8e5m2: return f8_to_f32(l, x, d);
  default: return x;
  }
}

V lower_narrow(Lower *l, V x, IrDtype d, IrRound round) {
  const V own = l->target->narrow ? l->target->narrow(l, x, d, round) : NULL;
  if (own) return own;
  const bool from64 = lower_elem_type(LLVMTypeOf(x)) == l->f64;
  if (d == IR_f64) return from64 ? x : LLVMBuildFPExt(l->b, x, lower_shape(l->f64, x), "");
  if (from64 && (d != IR_f32 || round == ROUND_rtz))
    x = f64_to_f32(l, x, round != ROUND_rtz);
  else if (from64)
    x = LLVMBuildFPTrunc(l->b, x, lower_shape(l->f32, x), "");
  switch (d) {
  case IR_f16: return f32_to_f16(l, x, round);
  case IR_bf16: return f32_to_bf16(l, x, round);
  case IR_f8e4m3:
  case IR_f8e5m2: return f32_to_f8(l, x, d, round);
  default: return x;
  }
}

// ---- integers and floats -----------------------------------------------------------------------------------------------
// Toward zero, saturating, NaN gives 0. The value is first brought into range, so the conversion itself is defined.
static V float_to_int(Lower *l, V x, IrDtype to, bool is_signed) {
  const uint32_t bits = ir_dtypes[to].bits;
  const T f = LLVMTypeOf(x), t = lower_shape(lower_dtype(l, to), x);
  const uint32_t cbits = bits < 32 ? 32 : bits; // through i32: the machine has no narrower conversion
  const T ct = lower_shape(cbits == 32 ? l->i32 : l->i64, x);
  const double lo = is_signed ? -ldexp(1, (int)bits - 1) : 0, end = ldexp(1, (int)bits - (is_signed ? 1 : 0));
  const V high = lower_fcmp(l, LLVMRealOGE, x, lower_cf(f, end));
  const V in =
      lower_and(l, lower_fcmp(l, LLVMRealOLT, x, lower_cf(f, end)),
                lower_fcmp(l, is_signed ? LLVMRealOGE : LLVMRealOGT, x, lower_cf(f, is_signed ? lo : -1)));
  const V low = lower_fcmp(l, LLVMRealOLT, x, lower_cf(f, lo));
  const V safe = lower_sel(l, in, x, lower_cf(f, 0));
  const bool plain = is_signed || cbits > bits; // an unsigned value that fits the signed conversion
  V r = plain ? LLVMBuildFPToSI(l->b, safe, ct, "") : LLVMBuildFPToUI(l->b, safe, ct, "");
  if (cbits != bits) r = LLVMBuildTrunc(l->b, r, t, "");
  const V max = is_signed ? i(t, (int64_t)((1ull << (bits - 1)) - 1)) : LLVMConstAllOnes(t);
  r = lower_sel(l, high, max, r);
  if (is_signed) r = lower_sel(l, low, i(t, (int64_t)(UINT64_MAX << (bits - 1))), r);
  return r;
}

static V int_to_float(Lower *l, V x, IrDtype to, bool is_signed) {
  const uint32_t bits = LLVMGetIntTypeWidth(lower_elem_type(LLVMTypeOf(x)));
  const bool wide =
      to == IR_f64 || (to != IR_f32 && bits > 16); // small floats round once, from the exact value
  const T f = lower_shape(wide ? l->f64 : l->f32, x);
  const V y = is_signed ? LLVMBuildSIToFP(l->b, x, f, "") : LLVMBuildUIToFP(l->b, x, f, "");
  return lower_narrow(l, y, to, ROUND_rtne);
}

void lower_cast(Lower *l, const IrOp *op) {
  const V x = lower_operand(l, op, 0);
  const IrType *from = ir_operand(op, 0)->type, *to = ir_result(op, 0)->type;
  const T t = lower_shape(lower_scalar_type(l, to), x);
  V r = x;
  switch (op->kind) {
  case OP_ext_s: r = LLVMBuildSExt(l->b, x, t, ""); break;
  case OP_ext_u: r = LLVMBuildZExt(l->b, x, t, ""); break;
  case OP_trunc: r = LLVMBuildTrunc(l->b, x, t, ""); break;
  case OP_fcast:
    r = lower_narrow(l, lower_widen(l, x, from->dtype), to->dtype, (IrRound)ir_attr_i(op, ATTR_round));
    break;
  case OP_si2f: r = int_to_float(l, x, to->dtype, true); break;
  case OP_ui2f: r = int_to_float(l, x, to->dtype, false); break;
  case OP_f2si: r = float_to_int(l, lower_widen(l, x, from->dtype), to->dtype, true); break;
  case OP_f2ui: r = float_to_int(l, lower_widen(l, x, from->dtype), to->dtype, false); break;
  case OP_bitcast: // pointers to pointers are the same value
    if (ir_type_is_ptr(from) && ir_type_is_ptr(to)) break;
    if (ir_type_is_ptr(from))
      r = LLVMBuildPtrToInt(l->b, x, t, "");
    else if (ir_type_is_ptr(to))
      r = LLVMBuildIntToPtr(l->b, x, t, "");
    else
      r = LLVMBuildBitCast(l->b, x, t, "");
    break;
  case OP_ptr2int: r = LLVMBuildPtrToInt(l->b, x, t, ""); break;
  case OP_int2ptr: r = LLVMBuildIntToPtr(l->b, x, t, ""); break;
  default: lower_fail(l, op, ST_INTERNAL, "not a conversion");
  }
  lower_result(l, op, r);
}
