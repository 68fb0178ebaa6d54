// lower_build: short forms over LLVM's builder. Everything works on scalars and on vectors alike; constants take the
// shape of the type they are given.
#include "target/target_impl.h"

uint32_t lower_type_lanes(T t) { return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 0; }
uint32_t lower_lanes(V v) { return lower_type_lanes(LLVMTypeOf(v)); }
T lower_elem_type(T t) { return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t; }
T lower_vec(T elem, uint32_t lanes) { return lanes ? LLVMVectorType(elem, lanes) : elem; }
T lower_shape(T elem, V like) { return lower_vec(elem, lower_lanes(like)); }

static V const_splat(T t, V elem) {
  const uint32_t n = lower_type_lanes(t);
  if (!n) return elem;
  V all[LOWER_MAX_LANES];
  for (uint32_t i = 0; i < n; i++) all[i] = elem;
  return LLVMConstVector(all, n);
}
V lower_ci(T t, int64_t v) { return const_splat(t, LLVMConstInt(lower_elem_type(t), (uint64_t)v, true)); }
V lower_cf(T t, double v) { return const_splat(t, LLVMConstReal(lower_elem_type(t), v)); }

V lower_splat(Lower *l, V x, uint32_t lanes) {
  if (!lanes) return x;
  const T t = LLVMVectorType(LLVMTypeOf(x), lanes);
  if (LLVMIsConstant(x)) return const_splat(t, x);
  const V one = LLVMBuildInsertElement(l->b, LLVMGetPoison(t), x, LLVMConstInt(l->i32, 0, false), "");
  return LLVMBuildShuffleVector(l->b, one, LLVMGetPoison(t), LLVMConstNull(LLVMVectorType(l->i32, lanes)),
                                "");
}
V lower_extract(Lower *l, V v, uint32_t i) {
  return LLVMBuildExtractElement(l->b, v, LLVMConstInt(l->i32, i, false), "");
}
V lower_insert(Lower *l, V v, V x, uint32_t i) {
  return LLVMBuildInsertElement(l->b, v, x, LLVMConstInt(l->i32, i, false), "");
}
V lower_shuffle(Lower *l, V a, V b, const int *idx, uint32_t n) {
  V m[LOWER_MAX_LANES];
  for (uint32_t i = 0; i < n; i++)
    m[i] = idx[i] < 0 ? LLVMGetPoison(l->i32) : LLVMConstInt(l->i32, (uint64_t)idx[i], false);
  return LLVMBuildShuffleVector(l->b, a, b ? b : LLVMGetPoison(LLVMTypeOf(a)), LLVMConstVector(m, n), "");
}

V lower_intrinsic(Lower *l, const char *name, const T *over, uint32_t nover, V *args, uint32_t nargs) {
  const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!id) escape_now(&l->escape, ST_INTERNAL, "LLVM has no intrinsic %s", name);
  if (LLVMIntrinsicIsOverloaded(id) != (nover > 0))
    escape_now(&l->escape, ST_INTERNAL, "LLVM intrinsic %s: wrong number of overloaded types", name);
  const V fn = LLVMGetIntrinsicDeclaration(l->mod, id, (T *)over, nover);
  return LLVMBuildCall2(l->b, LLVMGlobalGetValueType(fn), fn, args, nargs, "");
}
V lower_un(Lower *l, const char *intrinsic, V x) {
  const T t = LLVMTypeOf(x);
  return lower_intrinsic(l, intrinsic, &t, 1, &x, 1);
}
V lower_bin(Lower *l, const char *intrinsic, V x, V y) {
  const T t = LLVMTypeOf(x);
  return lower_intrinsic(l, intrinsic, &t, 1, (V[]){x, y}, 2);
}
V lower_fma(Lower *l, V a, V b, V c) {
  const T t = LLVMTypeOf(a);
  return lower_intrinsic(l, "llvm.fma", &t, 1, (V[]){a, b, c}, 3);
}

V lower_add(Lower *l, V a, V b) { return LLVMBuildAdd(l->b, a, b, ""); }
V lower_sub(Lower *l, V a, V b) { return LLVMBuildSub(l->b, a, b, ""); }
V lower_mul(Lower *l, V a, V b) { return LLVMBuildMul(l->b, a, b, ""); }
V lower_and(Lower *l, V a, V b) { return LLVMBuildAnd(l->b, a, b, ""); }
V lower_or(Lower *l, V a, V b) { return LLVMBuildOr(l->b, a, b, ""); }
V lower_xor(Lower *l, V a, V b) { return LLVMBuildXor(l->b, a, b, ""); }
V lower_shl(Lower *l, V a, uint32_t n) { return LLVMBuildShl(l->b, a, lower_ci(LLVMTypeOf(a), n), ""); }
V lower_lshr(Lower *l, V a, uint32_t n) { return LLVMBuildLShr(l->b, a, lower_ci(LLVMTypeOf(a), n), ""); }
V lower_ashr(Lower *l, V a, uint32_t n) { return LLVMBuildAShr(l->b, a, lower_ci(LLVMTypeOf(a), n), ""); }
V lower_fadd(Lower *l, V a, V b) { return LLVMBuildFAdd(l->b, a, b, ""); }
V lower_fsub(Lower *l, V a, V b) { return LLVMBuildFSub(l->b, a, b, ""); }
V lower_fmul(Lower *l, V a, V b) { return LLVMBuildFMul(l->b, a, b, ""); }
V lower_fdiv(Lower *l, V a, V b) { return LLVMBuildFDiv(l->b, a, b, ""); }
V lower_icmp(Lower *l, LLVMIntPredicate p, V a, V b) { return LLVMBuildICmp(l->b, p, a, b, ""); }
V lower_fcmp(Lower *l, LLVMRealPredicate p, V a, V b) { return LLVMBuildFCmp(l->b, p, a, b, ""); }
V lower_sel(Lower *l, V c, V a, V b) { return LLVMBuildSelect(l->b, c, a, b, ""); }
V lower_bitcast(Lower *l, V a, T elem) { return LLVMBuildBitCast(l->b, a, lower_shape(elem, a), ""); }

static V reduce_mask(Lower *l, const char *name, V mask) {
  if (!lower_lanes(mask)) return mask;
  const T t = LLVMTypeOf(mask);
  return lower_intrinsic(l, name, &t, 1, &mask, 1);
}
V lower_all(Lower *l, V mask) { return reduce_mask(l, "llvm.vector.reduce.and", mask); }
V lower_any(Lower *l, V mask) { return reduce_mask(l, "llvm.vector.reduce.or", mask); }

V lower_field(Lower *l, V base, uint64_t offset) {
  V i = LLVMConstInt(l->i64, offset, false);
  return LLVMBuildInBoundsGEP2(l->b, l->i8, base, &i, 1, "");
}
void lower_align(V access, uint32_t align) { LLVMSetAlignment(access, align); }
V lower_load_at(Lower *l, T t, V base, uint64_t offset, uint32_t align) {
  const V x = LLVMBuildLoad2(l->b, t, lower_field(l, base, offset), "");
  LLVMSetAlignment(x, align);
  return x;
}
V lower_gep(Lower *l, T elem, V p, V n) { return LLVMBuildGEP2(l->b, elem, p, &n, 1, ""); }
