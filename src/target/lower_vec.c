// lower_vec: making and taking apart vectors, reductions, scans and lane operations.
//
// A reduce or scan body that is elementwise is emitted on whole vectors: a reduction halves the vector until one element
// is left, a scan combines with copies shifted by 1, 2, 4, ... lanes. Other bodies run element by element.
#include "target/target_impl.h"

enum { MAX_CARRIED = 8 }; // operands of one reduce or scan

static bool body_is_elementwise(const IrBlock *b) {
  for (const IrOp *op = b->first; op; op = op->next) {
    const uint32_t traits = ir_ops[op->kind].traits;
    if (traits & TRAIT_TERMINATOR) continue;
    if (op->nregions || !(traits & TRAIT_ELEMENTWISE || op->kind == OP_const)) return false;
  }
  return true;
}

// Emits the body once: x and y are the operands' running and next values, out gets what it yields.
static void combine(Lower *l, const IrBlock *b, uint32_t n, V const *x, V const *y, V *out) {
  const int width = l->width;
  l->width = (int)lower_lanes(x[0]);
  for (uint32_t k = 0; k < n; k++) {
    lower_set(l, b->args.data[k], x[k]);
    lower_set(l, b->args.data[n + k], y[k]);
  }
  lower_block(l, b);
  for (uint32_t k = 0; k < n; k++) out[k] = lower_get(l, ir_operand(ir_terminator(b), k));
  l->width = width;
}

static V half(Lower *l, V v, uint32_t from, uint32_t n) {
  if (n == 1) return lower_extract(l, v, from);
  int idx[LOWER_MAX_LANES];
  for (uint32_t i = 0; i < n; i++) idx[i] = (int)(from + i);
  return lower_shuffle(l, v, NULL, idx, n);
}

static uint32_t take_operands(Lower *l, const IrOp *op, V *x) {
  if (op->noperands > MAX_CARRIED)
    lower_fail(l, op, ST_LIMIT, "%u operands; the most is %d", op->noperands, MAX_CARRIED);
  for (uint32_t k = 0; k < op->noperands; k++) {
    x[k] = lower_operand(l, op, k);
    if (!lower_lanes(x[k])) lower_fail(l, op, ST_INTERNAL, "operand %u is not a vector", k);
  }
  return op->noperands;
}

static void lower_reduce(Lower *l, const IrOp *op) {
  V x[MAX_CARRIED], lo[MAX_CARRIED], hi[MAX_CARRIED];
  const uint32_t n = take_operands(l, op, x), lanes = lower_lanes(x[0]);
  const IrBlock *body = op->regions[0];
  if (body_is_elementwise(body) && bits_pow2(lanes)) {
    for (uint32_t w = lanes / 2; w; w /= 2) {
      for (uint32_t k = 0; k < n; k++) {
        lo[k] = half(l, x[k], 0, w);
        hi[k] = half(l, x[k], w, w);
      }
      combine(l, body, n, lo, hi, x);
    }
    if (lanes == 1)
      for (uint32_t k = 0; k < n; k++) x[k] = lower_extract(l, x[k], 0);
  } else {
    for (uint32_t k = 0; k < n; k++) lo[k] = lower_extract(l, x[k], 0);
    if (lanes > 1) {
      LowerLoop loop;
      lower_loop_begin(l, &loop, LLVMConstInt(l->i32, lanes - 1, false), n, lo);
      const V i = LLVMBuildNUWAdd(l->b, loop.i, LLVMConstInt(l->i32, 1, false), "");
      for (uint32_t k = 0; k < n; k++) hi[k] = LLVMBuildExtractElement(l->b, x[k], i, "");
      V next[MAX_CARRIED];
      combine(l, body, n, loop.carried, hi, next);
      lower_loop_end(l, &loop, next);
      memcpy(lo, loop.carried, sizeof lo);
    }
    memcpy(x, lo, sizeof x);
  }
  for (uint32_t k = 0; k < n; k++) {
    const IrType *t = ir_result(op, k)->type;
    lower_set(l, ir_result(op, k),
              t->kind == IR_TILE ? lower_splat(l, x[k], (uint32_t)ir_type_elems(t)) : x[k]);
  }
}

static void lower_scan(Lower *l, const IrOp *op) {
  V x[MAX_CARRIED], early[MAX_CARRIED], sum[MAX_CARRIED];
  const uint32_t n = take_operands(l, op, x), lanes = lower_lanes(x[0]);
  const bool reverse = ir_attr_i(op, ATTR_reverse);
  const IrBlock *body = op->regions[0];
  if (body_is_elementwise(body)) {
    for (uint32_t d = 1; d < lanes; d *= 2) {
      int from[LOWER_MAX_LANES];
      V has[LOWER_MAX_LANES];
      for (uint32_t i = 0; i < lanes; i++) {
        const int j = reverse ? (int)(i + d) : (int)i - (int)d;
        const bool in = j >= 0 && j < (int)lanes;
        from[i] = in ? j : (int)i;
        has[i] = LLVMConstInt(l->i1, in, false);
      }
      for (uint32_t k = 0; k < n; k++) early[k] = lower_shuffle(l, x[k], NULL, from, lanes);
      combine(l, body, n, early, x, sum);
      for (uint32_t k = 0; k < n; k++) x[k] = lower_sel(l, LLVMConstVector(has, lanes), sum[k], x[k]);
    }
  } else if (lanes > 1) { // carried: the running values, then the vectors made so far
    if (2 * n > MAX_CARRIED) lower_fail(l, op, ST_LIMIT, "%u operands of a long body", n);
    V init[2 * MAX_CARRIED], next[2 * MAX_CARRIED], at[MAX_CARRIED] = {0};
    for (uint32_t k = 0; k < n; k++) {
      init[k] = lower_extract(l, x[k], reverse ? lanes - 1 : 0);
      init[n + k] = x[k];
    }
    LowerLoop loop;
    lower_loop_begin(l, &loop, LLVMConstInt(l->i32, lanes - 1, false), 2 * n, init);
    const V i = reverse ? LLVMBuildSub(l->b, LLVMConstInt(l->i32, lanes - 2, false), loop.i, "")
                        : LLVMBuildAdd(l->b, loop.i, LLVMConstInt(l->i32, 1, false), "");
    for (uint32_t k = 0; k < n; k++) at[k] = LLVMBuildExtractElement(l->b, x[k], i, "");
    combine(l, body, n, loop.carried, at, next);
    for (uint32_t k = 0; k < n; k++)
      next[n + k] = LLVMBuildInsertElement(l->b, loop.carried[n + k], next[k], i, "");
    lower_loop_end(l, &loop, next);
    for (uint32_t k = 0; k < n; k++) x[k] = loop.carried[n + k];
  }
  for (uint32_t k = 0; k < n; k++) lower_set(l, ir_result(op, k), x[k]);
}

// ---- permutations ------------------------------------------------------------------------------
static V lane_numbers(Lower *l, T elem, uint32_t lanes) {
  V x[LOWER_MAX_LANES];
  for (uint32_t i = 0; i < lanes; i++) x[i] = LLVMConstInt(elem, i, false);
  return LLVMConstVector(x, lanes);
  (void)l;
}
// v[idx[i]] through the stack; every index must be in range.
static V permute(Lower *l, V v, V idx) {
  const bool flags = lower_elem_type(LLVMTypeOf(v)) == l->i1;
  if (flags) v = LLVMBuildZExt(l->b, v, lower_shape(l->i8, v), "");
  const T e = lower_elem_type(LLVMTypeOf(v));
  const V slot = lower_alloca(l, LLVMTypeOf(v), 64);
  lower_align(LLVMBuildStore(l->b, v, slot), 64);
  const uint32_t n = lower_lanes(idx);
  const V p = lower_gep(l, e, slot, idx);
  const T over[] = {lower_vec(e, n), LLVMTypeOf(p)};
  V args[] = {p, lower_splat(l, LLVMConstInt(l->i1, 1, false), n), LLVMGetPoison(over[0])};
  V x = lower_intrinsic(l, "llvm.masked.gather", over, 2, args, 3);
  const unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
  LLVMAddCallSiteAttribute(x, 1, LLVMCreateEnumAttribute(l->cx, kind, LLVMABIAlignmentOfType(l->layout, e)));
  return flags ? lower_icmp(l, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x))) : x;
}
static void lower_gather(Lower *l, const IrOp *op) {
  const V v = lower_operand(l, op, 0), i = lower_operand(l, op, 1);
  const T it = LLVMTypeOf(i); // an index outside is wrapped: harmless
  lower_result(l, op, permute(l, v, lower_and(l, i, lower_ci(it, (int64_t)lower_lanes(v) - 1))));
}

static void lower_shfl(Lower *l, const IrOp *op) {
  const V v = lower_operand(l, op, 0);
  V lane = lower_operand(l, op, 1);
  const uint32_t n = lower_lanes(v);
  if (!n) { // the same in all lanes
    lower_result(l, op, v);
    return;
  }
  lane = LLVMBuildIntCast2(l->b, lane, lower_shape(l->i32, lane), true, "");
  if (!lower_lanes(lane)) lane = lower_splat(l, lane, n);
  const V own = lane_numbers(l, l->i32, n);
  V from = lane;
  switch ((IrShfl)ir_attr_i(op, ATTR_shfl)) {
  case SHFL_up: from = lower_sub(l, own, lane); break;
  case SHFL_down: from = lower_add(l, own, lane); break;
  case SHFL_xor: from = lower_xor(l, own, lane); break;
  default: break;
  }
  const V in = lower_icmp(l, LLVMIntULT, from, lower_ci(LLVMTypeOf(from), n));
  from = lower_sel(l, in, from, own);
  if (LLVMIsConstant(from)) {
    int idx[LOWER_MAX_LANES];
    for (uint32_t i = 0; i < n; i++) {
      const V e = LLVMGetAggregateElement(from, i);
      idx[i] = e ? (int)LLVMConstIntGetZExtValue(e) : (int)i;
    }
    lower_result(l, op, lower_shuffle(l, v, NULL, idx, n));
    return;
  }
  lower_result(l, op, permute(l, v, from));
}

static V as_result(Lower *l, const IrOp *op, V bits) {
  const IrType *t = ir_result(op, 0)->type;
  const V x = LLVMBuildIntCast2(l->b, bits, lower_scalar_type(l, t), false, "");
  return t->kind == IR_TILE ? lower_splat(l, x, (uint32_t)ir_type_elems(t)) : x;
}
static void lower_ballot(Lower *l, const IrOp *op) {
  V c = lower_operand(l, op, 0);
  if (!lower_lanes(c)) c = lower_splat(l, c, (uint32_t)l->ir->lanes);
  lower_result(l, op,
               as_result(l, op, LLVMBuildBitCast(l->b, c, LLVMIntTypeInContext(l->cx, lower_lanes(c)), "")));
}

// An index as i32, wrapped into the vector.
static V vec_index(Lower *l, V i, uint32_t lanes) {
  return lower_and(l, i, LLVMConstInt(LLVMTypeOf(i), lanes - 1, false));
}

void lower_vector(Lower *l, const IrOp *op) {
  const IrType *t = ir_result(op, 0)->type;
  const uint32_t lanes = t->kind == IR_TILE ? (uint32_t)ir_type_elems(t) : 0;
  switch (op->kind) {
  case OP_splat: lower_result(l, op, lower_splat(l, lower_operand(l, op, 0), lanes)); return;
  case OP_unsplat: lower_result(l, op, lower_extract(l, lower_operand(l, op, 0), 0)); return;
  case OP_arange: {
    const T e = lower_scalar_type(l, t);
    const V start = lower_ci(lower_vec(e, lanes), ir_attr_i(op, ATTR_start));
    lower_result(l, op, lower_add(l, lane_numbers(l, e, lanes), start));
    return;
  }
  case OP_ramp: {
    const V a = lower_splat(l, lower_operand(l, op, 0), lanes), b = lower_operand(l, op, 1);
    const V n = lane_numbers(l, lower_scalar_type(l, t), lanes);
    lower_result(l, op, lower_add(l, a, lower_mul(l, lower_splat(l, b, lanes), n)));
    return;
  }
  case OP_reshape:
    if (lanes != lower_lanes(lower_operand(l, op, 0)))
      lower_fail(l, op, ST_INTERNAL, "not the same elements");
    lower_result(l, op, lower_operand(l, op, 0));
    return;
  case OP_gather: lower_gather(l, op); return;
  case OP_reduce: lower_reduce(l, op); return;
  case OP_scan: lower_scan(l, op); return;
  case OP_vec_get: {
    const V v = lower_operand(l, op, 0);
    const V i = vec_index(l, lower_operand(l, op, 1), lower_lanes(v));
    lower_result(l, op, LLVMBuildExtractElement(l->b, v, i, ""));
    return;
  }
  case OP_vec_set: {
    const V v = lower_operand(l, op, 0), x = lower_operand(l, op, 2);
    const V i = vec_index(l, lower_operand(l, op, 1), lower_lanes(v));
    lower_result(l, op, LLVMBuildInsertElement(l->b, v, x, i, ""));
    return;
  }
  case OP_shfl: lower_shfl(l, op); return;
  case OP_ballot: lower_ballot(l, op); return;
  case OP_active_mask:
    lower_result(
        l, op,
        as_result(l, op,
                  LLVMConstInt(l->i64, l->ir->lanes >= 64 ? UINT64_MAX : (1ull << l->ir->lanes) - 1, false)));
    return;
  default: lower_fail(l, op, ST_INTERNAL, "not a vector op");
  }
}
