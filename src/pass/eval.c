// eval: what an elementwise op gives for known operands. The one place in the passes that computes.
//
// It agrees bit by bit with the interpreter (tests/unit/pass_eval.c compares every op) and refuses where two right
// implementations could differ: the sign of min(-0, +0), rounding twice on the way to a narrow float, a NaN's payload.
#include "pass/pass_impl.h"

#include <math.h>

int pass_elem_bits(const IrType *t) { return ir_type_is_ptr(t) ? 64 : ir_dtypes[t->dtype].bits; }

static float bits_f32(uint64_t b) {
  union {
    uint32_t u;
    float f;
  } x = {(uint32_t)b};
  return x.f;
}
static double bits_f64(uint64_t b) {
  union {
    uint64_t u;
    double f;
  } x = {b};
  return x.f;
}
static uint64_t f32_bits(float f) {
  union {
    float f;
    uint32_t u;
  } x = {f};
  return x.u;
}
static uint64_t f64_bits(double f) {
  union {
    double f;
    uint64_t u;
  } x = {f};
  return x.u;
}

static double decode(IrDtype d, uint64_t b) {
  switch (d) {
  case IR_f32: return (double)bits_f32(b);
  case IR_f64: return bits_f64(b);
  case IR_f16: return (double)f16_to_f32((uint16_t)b);
  case IR_bf16: return (double)bf16_to_f32((uint16_t)b);
  case IR_f8e4m3: return (double)f8e4m3_to_f32((uint8_t)b);
  default: return (double)f8e5m2_to_f32((uint8_t)b);
  }
}

// x as d. False for a NaN, and where the detour over f32 could round twice.
static bool encode(IrDtype d, double x, uint64_t *out) {
  if (x != x) return false;
  if (d == IR_f64) {
    *out = f64_bits(x);
    return true;
  }
  float f = (float)x;
  if (d != IR_f32 && (double)f != x) return false;
  switch (d) {
  case IR_f32: *out = f32_bits(f); return true;
  case IR_f16: *out = f16_from_f32(f); return true;
  case IR_bf16: *out = bf16_from_f32(f); return true;
  case IR_f8e4m3: *out = f8e4m3_from_f32(f); return true;
  default: *out = f8e5m2_from_f32(f); return true;
  }
}

static bool eval_int(IrOpKind k, int bits, uint64_t ua, uint64_t ub, uint64_t *out) {
  const int64_t a = pass_sext(ua, bits), b = pass_sext(ub, bits);
  uint64_t r;
  switch (k) {
  case OP_add: r = ua + ub; break;
  case OP_sub: r = ua - ub; break;
  case OP_mul: r = ua * ub; break;
  case OP_div_s: r = b == 0 ? 0 : b == -1 ? 0 - ua : (uint64_t)(a / b); break;
  case OP_rem_s: r = b == 0 || b == -1 ? 0 : (uint64_t)(a % b); break;
  case OP_div_u: r = ub ? ua / ub : 0; break;
  case OP_rem_u: r = ub ? ua % ub : 0; break;
  case OP_mulhi_s: r = (uint64_t)(((__int128)a * b) >> bits); break;
  case OP_mulhi_u: r = (uint64_t)(((unsigned __int128)ua * ub) >> bits); break;
  case OP_and: r = ua & ub; break;
  case OP_or: r = ua | ub; break;
  case OP_xor: r = ua ^ ub; break;
  case OP_shl: r = ub >= (uint64_t)bits ? 0 : ua << ub; break;
  case OP_shr_s: r = (uint64_t)(a >> (ub >= (uint64_t)bits ? bits - 1 : (int)ub)); break;
  case OP_shr_u: r = ub >= (uint64_t)bits ? 0 : ua >> ub; break;
  case OP_min_s: r = a < b ? ua : ub; break;
  case OP_max_s: r = a > b ? ua : ub; break;
  case OP_min_u: r = ua < ub ? ua : ub; break;
  case OP_max_u: r = ua > ub ? ua : ub; break;
  case OP_abs_s: r = a < 0 ? 0 - ua : ua; break;
  default: return false;
  }
  *out = r & pass_mask(bits);
  return true;
}

bool pass_compare(IrCmp p, int bits, uint64_t ua, uint64_t ub) {
  const int64_t a = pass_sext(ua, bits), b = pass_sext(ub, bits);
  switch (p) {
  case CMP_eq: return ua == ub;
  case CMP_ne: return ua != ub;
  case CMP_slt: return a < b;
  case CMP_sle: return a <= b;
  case CMP_sgt: return a > b;
  case CMP_sge: return a >= b;
  case CMP_ult: return ua < ub;
  case CMP_ule: return ua <= ub;
  case CMP_ugt: return ua > ub;
  default: return ua >= ub;
  }
}

static bool eval_fcmp(IrFcmp p, double a, double b) {
  switch (p) {
  case FCMP_oeq: return a == b;
  case FCMP_une: return a != b;
  case FCMP_olt: return a < b;
  case FCMP_ole: return a <= b;
  case FCMP_ogt: return a > b;
  default: return a >= b;
  }
}

// f32 in float, f64 in double, narrower in float and rounded once.
static bool eval_float(const IrOp *op, IrDtype d, uint64_t ba, uint64_t bb, uint64_t *out) {
  const double a = decode(d, ba), b = decode(d, bb);
  const bool wide = d == IR_f64;
  double r;
  switch (op->kind) {
  case OP_fadd: r = wide ? a + b : (double)((float)a + (float)b); break;
  case OP_fsub: r = wide ? a - b : (double)((float)a - (float)b); break;
  case OP_fmul: r = wide ? a * b : (double)((float)a * (float)b); break;
  case OP_fdiv: r = wide ? a / b : (double)((float)a / (float)b); break;
  case OP_frem: r = wide ? fmod(a, b) : (double)fmodf((float)a, (float)b); break;
  case OP_fmin:
  case OP_fmax:
    if (a != a || b != b || (a == b && ba != bb)) return false;
    *out = (op->kind == OP_fmin) == (a < b) ? ba : bb;
    return true;
  case OP_fneg: *out = ba ^ (1ull << (ir_dtypes[d].bits - 1)); return true;
  case OP_fabs: *out = ba & pass_mask(ir_dtypes[d].bits - 1); return true;
  default: return false;
  }
  return encode(d, r, out);
}

static bool eval_math(IrMath fn, IrDtype d, double a, double b, uint64_t *out) {
#define BOTH(fn_) (d == IR_f64 ? fn_(a) : (double)fn_##f((float)a))
  double r;
  if (d != IR_f32 && d != IR_f64) return false;
  switch (fn) {
  case MATH_FN_exp: r = BOTH(exp); break;
  case MATH_FN_exp2: r = BOTH(exp2); break;
  case MATH_FN_log: r = BOTH(log); break;
  case MATH_FN_log2: r = BOTH(log2); break;
  case MATH_FN_sin: r = BOTH(sin); break;
  case MATH_FN_cos: r = BOTH(cos); break;
  case MATH_FN_tanh: r = BOTH(tanh); break;
  case MATH_FN_erf: r = BOTH(erf); break;
  case MATH_FN_sqrt: r = BOTH(sqrt); break;
  case MATH_FN_floor: r = BOTH(floor); break;
  case MATH_FN_ceil: r = BOTH(ceil); break;
  case MATH_FN_rint: r = BOTH(rint); break;
  case MATH_FN_trunc: r = BOTH(trunc); break;
  case MATH_FN_pow: r = d == IR_f64 ? pow(a, b) : (double)powf((float)a, (float)b); break;
  default: return false; // rsqrt: one rounding or two is the target's choice
  }
#undef BOTH
  return encode(d, r, out);
}

static bool eval_f2i(bool sign, double x, int bits, uint64_t *out) {
  if (x != x) {
    *out = 0;
    return true;
  }
  const double lo = sign ? -ldexp(1, bits - 1) : 0, hi = ldexp(1, sign ? bits - 1 : bits);
  if (x <= lo)
    *out = sign ? 1ull << (bits - 1) : 0;
  else if (x >= hi)
    *out = pass_mask(sign ? bits - 1 : bits);
  else
    *out = (sign ? (uint64_t)(int64_t)x : (uint64_t)x) & pass_mask(bits);
  return true;
}

// To any float: exact on the way to f32 first, so that narrower types round once.
static bool eval_i2f(bool sign, IrDtype to, uint64_t v, int bits, uint64_t *out) {
  const int64_t s = pass_sext(v, bits);
  if (to == IR_f32) {
    *out = f32_bits(sign ? (float)s : (float)v);
    return true;
  }
  if (to == IR_f64) {
    *out = f64_bits(sign ? (double)s : (double)v);
    return true;
  }
  const float f = sign ? (float)s : (float)v;
  if ((sign ? s > (1 << 24) || s < -(1 << 24) : v > (1 << 24))) return false;
  return encode(to, (double)f, out);
}

static bool eval_cast(const IrOp *op, const IrType *from, const IrType *to, uint64_t a, uint64_t *out) {
  const int fb = pass_elem_bits(from), tb = pass_elem_bits(to);
  switch (op->kind) {
  case OP_ext_s: *out = (uint64_t)pass_sext(a, fb) & pass_mask(tb); return true;
  case OP_ext_u:
  case OP_trunc: *out = a & pass_mask(tb); return true;
  case OP_fcast: {
    const double x = decode(from->dtype, a);
    if (tb < fb && ir_attr_i(op, ATTR_round) == ROUND_rtz) return false;
    if (isinf(x) && ir_dtypes[to->dtype].bits == 8) return false;
    return encode(to->dtype, x, out);
  }
  case OP_si2f: return eval_i2f(true, to->dtype, a, fb, out);
  case OP_ui2f: return eval_i2f(false, to->dtype, a, fb, out);
  case OP_f2si: return tb > 1 && eval_f2i(true, decode(from->dtype, a), tb, out);
  case OP_f2ui: return tb > 1 && eval_f2i(false, decode(from->dtype, a), tb, out);
  case OP_bitcast:
  case OP_ptr2int:
  case OP_int2ptr: *out = a; return true;
  default: return false;
  }
}

bool pass_eval(const IrOp *op, const uint64_t *in, uint64_t *out) {
  if (op->nresults != 1 || op->noperands == 0 || !ir_operand(op, 0)) return false;
  const IrType *from = ir_operand(op, 0)->type, *to = ir_result(op, 0)->type;
  const int bits = pass_elem_bits(from);
  switch (op->kind) {
  case OP_cmp: *out = pass_compare((IrCmp)ir_attr_i(op, ATTR_cmp), bits, in[0], in[1]); return true;
  case OP_fcmp:
    *out =
        eval_fcmp((IrFcmp)ir_attr_i(op, ATTR_fcmp), decode(from->dtype, in[0]), decode(from->dtype, in[1]));
    return true;
  case OP_select: *out = in[0] & 1 ? in[1] : in[2]; return true;
  case OP_math:
    return eval_math((IrMath)ir_attr_i(op, ATTR_fn), from->dtype, decode(from->dtype, in[0]),
                     op->noperands > 1 && ir_operand(op, 1) ? decode(from->dtype, in[1]) : 0, out);
  case OP_fma:
    if (from->dtype == IR_f32)
      return encode(IR_f32, (double)fmaf(bits_f32(in[0]), bits_f32(in[1]), bits_f32(in[2])), out);
    if (from->dtype == IR_f64)
      return encode(IR_f64, fma(bits_f64(in[0]), bits_f64(in[1]), bits_f64(in[2])), out);
    return false;
  case OP_ptr_add: {
    const int64_t n = pass_sext(in[1], pass_elem_bits(ir_operand(op, 1)->type));
    *out = in[0] + (uint64_t)n * (uint64_t)ir_dtypes[from->dtype].bytes;
    return true;
  }
  case OP_ext_s:
  case OP_ext_u:
  case OP_trunc:
  case OP_fcast:
  case OP_si2f:
  case OP_ui2f:
  case OP_f2si:
  case OP_f2ui:
  case OP_bitcast:
  case OP_ptr2int:
  case OP_int2ptr: return eval_cast(op, from, to, in[0], out);
  default: break;
  }
  if (ir_type_is_int(from)) return eval_int(op->kind, bits, in[0], op->noperands > 1 ? in[1] : 0, out);
  if (ir_type_is_float(from) && bits > 8)
    return eval_float(op, from->dtype, in[0], op->noperands > 1 ? in[1] : in[0], out);
  return false;
}
