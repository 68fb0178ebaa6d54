// atomic: read-modify-writes with their order and scope, in inline assembly: LLVM's own drop both. The mask is the
// instruction's predicate. Without a user of the old value it is a reduction (red).
//
// What the machine has no instruction for compares and exchanges the 16 or 32 bits around it until nobody came between.
#include "target/nvptx/nvptx.h"

typedef struct Rmw {
  const IrOp *op;
  IrRmw kind;
  IrDtype d;
  uint32_t bits;
  V p, x, mask;
  const char *fence, *order, *space; // "fence.sc.gpu; "; ".acq_rel.gpu"; ".global"
  bool used;                         // the old value is, or its read orders what follows: red only releases
} Rmw;

static Rmw rmw_of(Lower *l, const IrOp *op, V p, V mask) {
  static const char *const orders[ORDER_COUNT] = {
      [ORDER_weak] = "relaxed",    [ORDER_relaxed] = "relaxed", [ORDER_acquire] = "acquire",
      [ORDER_release] = "release", [ORDER_acq_rel] = "acq_rel", [ORDER_seq_cst] = "acq_rel"};
  const IrOrder o = (IrOrder)ir_attr_i(op, ATTR_order);
  const IrType *t = ir_result(op, 0)->type;
  Rmw r = {.op = op, .d = t->dtype, .p = p, .mask = mask, .used = ir_result(op, 0)->uses != NULL};
  r.used |= o == ORDER_acquire || o == ORDER_acq_rel || o == ORDER_seq_cst;
  r.bits = ir_type_is_ptr(t) ? 64 : 8u * ir_dtypes[r.d].bytes;
  r.order = nvptx_text(l, ".%s.%s", orders[o], nvptx_scope(op));
  r.fence = o == ORDER_seq_cst ? nvptx_text(l, "fence.sc.%s; ", nvptx_scope(op)) : "";
  r.space = LLVMGetPointerAddressSpace(LLVMTypeOf(p)) == NVPTX_SHARED ? ".shared" : ".global";
  return r;
}
static V to_bits(Lower *l, V x, uint32_t bits) {
  const T t = LLVMIntTypeInContext(l->cx, bits);
  if (LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMPointerTypeKind) return LLVMBuildPtrToInt(l->b, x, t, "");
  return LLVMTypeOf(x) == l->i1 ? LLVMBuildZExt(l->b, x, t, "") : LLVMBuildBitCast(l->b, x, t, "");
}
static V from_bits(Lower *l, V x, T t) {
  if (LLVMGetTypeKind(t) == LLVMPointerTypeKind) return LLVMBuildIntToPtr(l->b, x, t, "");
  return t == l->i1 ? LLVMBuildTrunc(l->b, x, t, "") : LLVMBuildBitCast(l->b, x, t, "");
}

// ---- instructions ----------------------------------------------------------------------------------
static const char *instruction(Lower *l, const Rmw *r) { // "add.u32"; NULL: the machine has none
  const uint32_t n = r->bits;
  const bool wide = n == 32 || n == 64;
  switch (r->kind) {
  case RMW_add: return wide ? nvptx_text(l, "add.u%u", n) : NULL;
  case RMW_max_s: return wide ? nvptx_text(l, "max.s%u", n) : NULL;
  case RMW_min_s: return wide ? nvptx_text(l, "min.s%u", n) : NULL;
  case RMW_max_u: return wide ? nvptx_text(l, "max.u%u", n) : NULL;
  case RMW_min_u: return wide ? nvptx_text(l, "min.u%u", n) : NULL;
  case RMW_and: return wide ? nvptx_text(l, "and.b%u", n) : NULL;
  case RMW_or: return wide ? nvptx_text(l, "or.b%u", n) : NULL;
  case RMW_xor: return wide ? nvptx_text(l, "xor.b%u", n) : NULL;
  case RMW_xchg: return wide ? nvptx_text(l, "exch.b%u", n) : NULL;
  case RMW_fadd:
    if (r->d == IR_f32 || r->d == IR_f64) return nvptx_text(l, "add.f%u", n);
    if (r->d == IR_f16) return "add.noftz.f16";
    return r->d == IR_bf16 && (l->facts->caps & TARGET_CAP_BF16_ATOMIC) ? "add.noftz.bf16" : NULL;
  default: return NULL;
  }
}
// p without a constant that is added to it, as assembly can add it: *bytes.
static V constant_offset(const Lower *l, V p, int64_t *bytes) {
  while (LLVMIsAGetElementPtrInst(p) && LLVMGetNumOperands(p) == 2 &&
         LLVMIsAConstantInt(LLVMGetOperand(p, 1))) {
    const T t = LLVMGetGEPSourceElementType(p);
    const int64_t size = t == l->f32 || t == l->i32 ? 4 : t == l->f64 || t == l->i64 ? 8 : t == l->i8 ? 1 : 0;
    const int64_t at = *bytes + size * LLVMConstIntGetSExtValue(LLVMGetOperand(p, 1));
    if (!size || at < -(1 << 20) || at > 1 << 20) break;
    *bytes = at;
    p = LLVMGetOperand(p, 0);
  }
  return p;
}
static V one_instruction(Lower *l, const Rmw *r, const char *name, V x, V mask) {
  const bool red = !r->used && r->kind != RMW_xchg;
  const T t = LLVMTypeOf(x);
  const char c = t == l->f32 ? 'f' : t == l->f64 ? 'd' : r->bits == 64 ? 'l' : r->bits == 32 ? 'r' : 'h';
  const int a = red ? 0 : 1;
  int64_t at = 0;
  V args[4] = {constant_offset(l, r->p, &at), x};
  uint32_t n = 2;
  const char *predicate = "", *more = "";
  if (mask) {
    args[n++] = mask;
    predicate = nvptx_text(l, "@$%d ", a + 2);
    more = ",b";
    if (!red) {
      args[n++] = LLVMConstNull(t);
      more = ",b,0";
    }
  }
  const char *text =
      nvptx_text(l, "%s%s%s%s%s.%s %s[$%d+%lld], $%d;", r->fence, predicate, red ? "red" : "atom", r->order,
                 r->space, name, red ? "" : "$0, ", a, (long long)at, a + 1);
  const char *constraints = red ? nvptx_text(l, "l,%c%s", c, more) : nvptx_text(l, "=%c,l,%c%s", c, c, more);
  const V old = nvptx_asm(l, red ? l->void_ : t, text, constraints, args, n, ASM_EFFECT);
  return red ? LLVMConstNull(t) : old;
}
// Floats that are not NaN are in order as their bits are: signed where x is +; unsigned and the other way round where it is -.
static V extreme(Lower *l, const Rmw *r) {
  const bool max = r->kind == RMW_fmax;
  const V x = to_bits(l, r->x, r->bits);
  const V plus = lower_icmp(l, LLVMIntSGE, x, LLVMConstNull(LLVMTypeOf(x)));
  const V on = r->mask ? r->mask : LLVMConstInt(l->i1, 1, false);
  const V a =
      one_instruction(l, r, nvptx_text(l, "%s.s%u", max ? "max" : "min", r->bits), x, lower_and(l, on, plus));
  const V b = one_instruction(l, r, nvptx_text(l, "%s.u%u", max ? "min" : "max", r->bits), x,
                              lower_and(l, on, LLVMBuildNot(l->b, plus, "")));
  return from_bits(l, lower_or(l, a, b), LLVMTypeOf(r->x)); // one of them is 0
}

// ---- loops -----------------------------------------------------------------------------------------
static V cas_bits(Lower *l, const Rmw *r, V p, V expect, V value) { // 16, 32 or 64 bits; the old ones
  const uint32_t bits = LLVMGetIntTypeWidth(LLVMTypeOf(value));
  const char c = bits == 64 ? 'l' : bits == 32 ? 'r' : 'h';
  V args[] = {p, expect, value};
  return nvptx_asm(l, LLVMTypeOf(value),
                   nvptx_text(l, "%satom%s%s.cas.b%u $0, [$1], $2, $3;", r->fence, r->order, r->space, bits),
                   nvptx_text(l, "=%c,l,%c,%c", c, c, c), args, 3, ASM_EFFECT);
}
static V combine(Lower *l, const Rmw *r, V old) { // of bits
  const T t = LLVMTypeOf(old);
  const V x = to_bits(l, r->x, r->bits);
  switch (r->kind) {
  case RMW_add: return lower_add(l, old, x);
  case RMW_max_s: return lower_bin(l, "llvm.smax", old, x);
  case RMW_min_s: return lower_bin(l, "llvm.smin", old, x);
  case RMW_max_u: return lower_bin(l, "llvm.umax", old, x);
  case RMW_min_u: return lower_bin(l, "llvm.umin", old, x);
  case RMW_and: return lower_and(l, old, x);
  case RMW_or: return lower_or(l, old, x);
  case RMW_xor: return lower_xor(l, old, x);
  case RMW_xchg: return x;
  case RMW_fadd: {
    const V a = lower_widen(l, from_bits(l, old, LLVMTypeOf(r->x)), r->d), b = lower_widen(l, r->x, r->d);
    return to_bits(l, lower_narrow(l, lower_fadd(l, a, b), r->d, ROUND_rtne), r->bits);
  }
  default: break;
  }
  const bool max = r->kind == RMW_fmax;
  const V plus = lower_icmp(l, LLVMIntSGE, x, LLVMConstNull(t));
  const V s = lower_bin(l, max ? "llvm.smax" : "llvm.smin", old, x),
          u = lower_bin(l, max ? "llvm.umin" : "llvm.umax", old, x);
  return lower_sel(l, plus, s, u);
}

// The unit that is exchanged: 16 bits themselves, or the 32 around a byte.
typedef struct Unit {
  V p, shift; // shift: NULL where the unit is the value
  T t;
} Unit;
static Unit unit_of(Lower *l, const Rmw *r) {
  if (r->bits != 8) return (Unit){r->p, NULL, LLVMIntTypeInContext(l->cx, r->bits)};
  const V at = LLVMBuildPtrToInt(l->b, r->p, l->i64, ""),
          low = lower_and(l, at, LLVMConstInt(l->i64, 3, false));
  V back = lower_sub(l, LLVMConstNull(l->i64), low);
  return (Unit){lower_gep(l, l->i8, r->p, back), LLVMBuildTrunc(l->b, lower_shl(l, low, 3), l->i32, ""),
                l->i32};
}
static V unit_get(Lower *l, const Unit *u, V word) {
  return u->shift ? LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, word, u->shift, ""), l->i8, "") : word;
}
static V unit_put(Lower *l, const Unit *u, V word, V value) {
  if (!u->shift) return value;
  const V hole = LLVMBuildNot(l->b, LLVMBuildShl(l->b, LLVMConstInt(l->i32, 255, false), u->shift, ""), "");
  return lower_or(l, lower_and(l, word, hole),
                  LLVMBuildShl(l->b, LLVMBuildZExt(l->b, value, l->i32, ""), u->shift, ""));
}
// until: NULL, or the value that must stand there, else nothing is stored.
static V loop(Lower *l, const Rmw *r, V until) {
  const Unit u = unit_of(l, r);
  const LLVMBasicBlockRef pre = lower_here(l), start = lower_new_block(l, "start"),
                          again = lower_new_block(l, "again"), put = lower_new_block(l, "put"),
                          done = lower_new_block(l, "done");
  if (r->mask)
    LLVMBuildCondBr(l->b, r->mask, start, done);
  else
    LLVMBuildBr(l->b, start);
  lower_at(l, start);
  V first = nvptx_asm(
      l, u.t,
      nvptx_text(l, "ld.relaxed.%s%s.b%u $0, [$1];", nvptx_scope(r->op), r->space, LLVMGetIntTypeWidth(u.t)),
      u.t == l->i16   ? "=h,l"
      : u.t == l->i32 ? "=r,l"
                      : "=l,l",
      &u.p, 1, ASM_EFFECT);
  LLVMBuildBr(l->b, again);
  lower_at(l, again);
  V old = LLVMBuildPhi(l->b, u.t, "");
  LLVMBasicBlockRef from = start;
  LLVMAddIncoming(old, &first, &from, 1);
  V value = unit_get(l, &u, old);
  LLVMBasicBlockRef leave = again;
  if (until)
    LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntEQ, value, until), put, done);
  else
    LLVMBuildBr(l->b, put);
  lower_at(l, put);
  const V next = until ? to_bits(l, r->x, r->bits) : combine(l, r, value);
  V seen = cas_bits(l, r, u.p, old, unit_put(l, &u, old, next));
  LLVMBasicBlockRef end = lower_here(l);
  LLVMAddIncoming(old, &seen, &end, 1);
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntEQ, seen, old), done, again);
  lower_at(l, done);
  const V phi = LLVMBuildPhi(l->b, LLVMTypeOf(value), "");
  V zero = LLVMConstNull(LLVMTypeOf(value));
  LLVMBasicBlockRef off = pre;
  LLVMAddIncoming(phi, &value, &end, 1);
  if (until) LLVMAddIncoming(phi, &value, &leave, 1);
  if (r->mask) LLVMAddIncoming(phi, &zero, &off, 1);
  return phi;
}

// ---- ops -----------------------------------------------------------------------------------------
static void lower_rmw_op(Lower *l, const IrOp *op) {
  Rmw r = rmw_of(l, op, lower_operand(l, op, 0), lower_operand(l, op, 2));
  r.kind = (IrRmw)ir_attr_i(op, ATTR_rmw);
  r.x = lower_operand(l, op, 1);
  const T t = LLVMTypeOf(r.x);
  const char *name = instruction(l, &r);
  if (name) {
    const bool own = r.kind == RMW_fadd; // floats as they are, all else as bits
    const V x = own ? r.x : to_bits(l, r.x, r.bits);
    const V old = one_instruction(l, &r, name, x, r.mask);
    lower_result(l, op, own ? old : from_bits(l, old, t));
  } else if ((r.kind == RMW_fmax || r.kind == RMW_fmin) && r.bits >= 32) {
    lower_result(l, op, extreme(l, &r));
  } else {
    lower_result(l, op, from_bits(l, loop(l, &r, NULL), t));
  }
}
static void lower_cas(Lower *l, const IrOp *op) {
  Rmw r = rmw_of(l, op, lower_operand(l, op, 0), NULL);
  r.x = lower_operand(l, op, 2);
  const V expect = to_bits(l, lower_operand(l, op, 1), r.bits);
  const V old = r.bits == 8 ? loop(l, &r, expect) : cas_bits(l, &r, r.p, expect, to_bits(l, r.x, r.bits));
  lower_result(l, op, from_bits(l, old, LLVMTypeOf(r.x)));
}
// Two or four floats by one instruction, which Hopper has; else one after the other.
static void lower_add_pack(Lower *l, const IrOp *op) {
  const uint32_t n = op->noperands - 2;
  const IrDtype d = ir_operand(op, 2)->type->dtype;
  const V mask = lower_operand(l, op, 1);
  int64_t at = 0;
  const V p = constant_offset(l, lower_operand(l, op, 0), &at);
  const bool packs = (l->facts->caps & TARGET_CAP_TMA) && d == IR_f32 && n > 1;
  for (uint32_t i = 0; i < n; i += packs ? n : 1) {
    V args[6] = {p};
    const char *predicate = "", *values = "", *constraints = "l";
    uint32_t count = 1;
    for (uint32_t k = 0; k < (packs ? n : 1); k++) {
      values = nvptx_text(l, "%s%s$%u", values, k ? ", " : "", count);
      constraints = nvptx_text(l, "%s,f", constraints);
      args[count++] = lower_operand(l, op, 2 + i + k);
    }
    if (mask) {
      predicate = nvptx_text(l, "@$%u ", count);
      constraints = nvptx_text(l, "%s,b", constraints);
      args[count++] = mask;
    }
    const char *text = packs ? nvptx_text(l, "%sred.relaxed.%s.global.add.v%u.f32 [$0+%lld], {%s};",
                                          predicate, nvptx_scope(op), n, (long long)at, values)
                             : nvptx_text(l, "%sred.relaxed.%s.global.add.f32 [$0+%lld], %s;", predicate,
                                          nvptx_scope(op), (long long)(at + 4 * i), values);
    nvptx_asm(l, l->void_, text, constraints, args, count, ASM_EFFECT);
  }
}
bool nvptx_atomic(Lower *l, const IrOp *op) {
  if (op->kind == OP_add_pack) {
    lower_add_pack(l, op);
    return true;
  }
  if (op->kind != OP_atomic_rmw && op->kind != OP_atomic_cas) return false;
  if (lower_lanes(lower_operand(l, op, 0))) lower_fail(l, op, ST_UNSUPPORTED, "atomics on vectors");
  if (op->kind == OP_atomic_cas)
    lower_cas(l, op);
  else
    lower_rmw_op(l, op);
  return true;
}
