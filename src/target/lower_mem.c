// lower_mem: addresses, loads and stores of global memory, and buffers in the instance's arena.
//
// Masked elements: where the machine has masks for the element's size they are used; else an access whose mask is
// full takes the plain instruction, and the rest goes element by element, with the addresses of masked-off elements
// replaced by that of a slot on the stack.
#include "target/target_impl.h"

V lower_from_memory(Lower *l, V x, const IrType *elem) {
  if (ir_type_is_ptr(elem) || elem->dtype != IR_i1) return x;
  return lower_icmp(l, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)));
}
V lower_to_memory(Lower *l, V x, const IrType *elem) {
  if (ir_type_is_ptr(elem) || elem->dtype != IR_i1) return x;
  return LLVMBuildZExt(l->b, x, lower_shape(l->i8, x), "");
}
static uint32_t elem_bytes(const IrType *t) { return (uint32_t)ir_type_bytes(t); }

LLVMAtomicOrdering lower_order(IrOrder o) {
  switch (o) {
  case ORDER_weak: return LLVMAtomicOrderingNotAtomic;
  case ORDER_relaxed: return LLVMAtomicOrderingMonotonic;
  case ORDER_acquire: return LLVMAtomicOrderingAcquire;
  case ORDER_release: return LLVMAtomicOrderingRelease;
  case ORDER_acq_rel: return LLVMAtomicOrderingAcquireRelease;
  case ORDER_seq_cst: return LLVMAtomicOrderingSequentiallyConsistent;
  case ORDER_COUNT: break;
  }
  return LLVMAtomicOrderingSequentiallyConsistent;
}

// ---- one element -------------------------------------------------------------------------------
static V load_one(Lower *l, const IrOp *op, V p, const IrType *t) {
  const V x = LLVMBuildLoad2(l->b, lower_memory_type(l, t), p, "");
  lower_align(x, elem_bytes(t));
  if (ir_attr_i(op, ATTR_volatile)) LLVMSetVolatile(x, true);
  IrOrder o = (IrOrder)ir_attr_i(op, ATTR_order);
  if (o == ORDER_release || o == ORDER_acq_rel) o = ORDER_acquire;
  if (o != ORDER_weak) LLVMSetOrdering(x, lower_order(o));
  return lower_from_memory(l, x, t);
}
static void store_one(Lower *l, const IrOp *op, V p, V v, const IrType *t) {
  const V s = LLVMBuildStore(l->b, lower_to_memory(l, v, t), p);
  lower_align(s, elem_bytes(t));
  if (ir_attr_i(op, ATTR_volatile)) LLVMSetVolatile(s, true);
  IrOrder o = (IrOrder)ir_attr_i(op, ATTR_order);
  if (o == ORDER_acquire || o == ORDER_acq_rel) o = ORDER_release;
  if (o != ORDER_weak) LLVMSetOrdering(s, lower_order(o));
}
static V load_masked_one(Lower *l, const IrOp *op, V p, V mask, V other, const IrType *t) {
  LLVMBasicBlockRef pre = lower_here(l), yes = lower_new_block(l, "on"), join = lower_new_block(l, "off");
  LLVMBuildCondBr(l->b, mask, yes, join);
  lower_at(l, yes);
  V x = load_one(l, op, p, t);
  LLVMBasicBlockRef end = lower_here(l);
  LLVMBuildBr(l->b, join);
  lower_at(l, join);
  const V phi = LLVMBuildPhi(l->b, LLVMTypeOf(x), "");
  LLVMAddIncoming(phi, &x, &end, 1);
  LLVMAddIncoming(phi, &other, &pre, 1);
  return phi;
}
static void store_masked_one(Lower *l, const IrOp *op, V p, V v, V mask, const IrType *t) {
  const LLVMBasicBlockRef yes = lower_new_block(l, "on"), join = lower_new_block(l, "off");
  LLVMBuildCondBr(l->b, mask, yes, join);
  lower_at(l, yes);
  store_one(l, op, p, v, t);
  LLVMBuildBr(l->b, join);
  lower_at(l, join);
}

// ---- scattered elements ------------------------------------------------------------------------
// Masked-off elements go to a slot on the stack: loads from and stores to it are harmless.
static V redirect(Lower *l, V p, V mask) {
  if (!mask) return p;
  const V slot = lower_alloca(l, l->i64, 8);
  return lower_sel(l, mask, p, lower_splat(l, slot, lower_lanes(p)));
}
static V all_on(Lower *l, uint32_t lanes) { return lower_splat(l, LLVMConstInt(l->i1, 1, false), lanes); }
static void align_param(Lower *l, V call, unsigned index, uint32_t align) {
  const unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
  LLVMAddCallSiteAttribute(call, index, LLVMCreateEnumAttribute(l->cx, kind, align));
}
static V gather(Lower *l, V p, V mask, V other, const IrType *t) {
  const uint32_t n = lower_lanes(p), bytes = elem_bytes(t);
  const bool native = (l->facts->caps & TARGET_CAP_FAST_GATHER) && bytes >= 4;
  const T ty = lower_vec(lower_memory_type(l, t), n);
  const T over[] = {ty, LLVMTypeOf(p)};
  const V m = native && mask ? mask : all_on(l, n);
  V args[] = {native ? p : redirect(l, p, mask), m, LLVMGetPoison(ty)};
  V x = lower_intrinsic(l, "llvm.masked.gather", over, 2, args, 3);
  align_param(l, x, 1, bytes);
  x = lower_from_memory(l, x, t);
  return mask ? lower_sel(l, mask, x, other) : x;
}
static void scatter(Lower *l, V p, V v, V mask, const IrType *t) {
  const uint32_t n = lower_lanes(p), bytes = elem_bytes(t);
  const bool native = (l->facts->caps & TARGET_CAP_FAST_GATHER) && bytes >= 4;
  v = lower_to_memory(l, v, t);
  const T over[] = {LLVMTypeOf(v), LLVMTypeOf(p)};
  V args[] = {v, native ? p : redirect(l, p, mask), native && mask ? mask : all_on(l, n)};
  const V c = lower_intrinsic(l, "llvm.masked.scatter", over, 2, args, 3);
  align_param(l, c, 2, bytes);
}

// Lane by lane, in order: accesses that are volatile or order others.
static bool one_by_one(const IrOp *op) {
  return ir_attr_i(op, ATTR_order) != ORDER_weak || ir_attr_i(op, ATTR_volatile);
}
static V load_lanes(Lower *l, const IrOp *op, V p, V mask, V other, const IrType *t) {
  LowerLoop loop;
  const V init = other ? other : LLVMConstNull(lower_vec(lower_scalar_type(l, t), lower_lanes(p)));
  lower_loop_begin(l, &loop, LLVMConstInt(l->i32, lower_lanes(p), false), 1, &init);
  const V pi = LLVMBuildExtractElement(l->b, p, loop.i, "");
  const V old = LLVMBuildExtractElement(l->b, loop.carried[0], loop.i, "");
  const V x = mask ? load_masked_one(l, op, pi, LLVMBuildExtractElement(l->b, mask, loop.i, ""), old, t)
                   : load_one(l, op, pi, t);
  const V next = LLVMBuildInsertElement(l->b, loop.carried[0], x, loop.i, "");
  lower_loop_end(l, &loop, &next);
  return loop.carried[0];
}
static void store_lanes(Lower *l, const IrOp *op, V p, V v, V mask, const IrType *t) {
  LowerLoop loop;
  lower_loop_begin(l, &loop, LLVMConstInt(l->i32, lower_lanes(p), false), 0, NULL);
  const V pi = LLVMBuildExtractElement(l->b, p, loop.i, ""),
          vi = LLVMBuildExtractElement(l->b, v, loop.i, "");
  if (mask)
    store_masked_one(l, op, pi, vi, LLVMBuildExtractElement(l->b, mask, loop.i, ""), t);
  else
    store_one(l, op, pi, vi, t);
  lower_loop_end(l, &loop, NULL);
}

static void lower_load(Lower *l, const IrOp *op) {
  const V p = lower_operand(l, op, 0), mask = lower_operand(l, op, 1);
  V other = lower_operand(l, op, 2);
  const IrType *t = ir_result(op, 0)->type;
  if (mask && !other) other = LLVMConstNull(lower_shape(lower_scalar_type(l, t), p));
  V x;
  if (!lower_lanes(p))
    x = mask ? load_masked_one(l, op, p, mask, other, t) : load_one(l, op, p, t);
  else if (one_by_one(op))
    x = load_lanes(l, op, p, mask, other, t);
  else
    x = gather(l, p, mask, other, t);
  lower_result(l, op, x);
}
static void lower_store(Lower *l, const IrOp *op) {
  const V p = lower_operand(l, op, 0), v = lower_operand(l, op, 1), mask = lower_operand(l, op, 2);
  const IrType *t = ir_operand(op, 1)->type;
  if (ir_attr_i(op, ATTR_order) >= ORDER_release) lower_nt_fence(l);
  if (!lower_lanes(p)) {
    if (mask)
      store_masked_one(l, op, p, v, mask, t);
    else
      store_one(l, op, p, v, t);
  } else if (one_by_one(op)) {
    store_lanes(l, op, p, v, mask, t);
  } else {
    scatter(l, p, v, mask, t);
  }
}

// ---- consecutive elements ----------------------------------------------------------------------
static V lane_addresses(Lower *l, V p, const IrType *t) {
  V lanes[LOWER_MAX_LANES];
  const uint32_t n = (uint32_t)ir_type_elems(t);
  for (uint32_t i = 0; i < n; i++) lanes[i] = LLVMConstInt(l->i64, i, false);
  return lower_gep(l, lower_memory_type(l, t), p, LLVMConstVector(lanes, n));
}
static bool has_masks(const Lower *l, const IrType *t) {
  return (l->facts->caps & TARGET_CAP_MASKED) || elem_bytes(t) >= 4;
}
static V plain_load(Lower *l, V p, const IrType *t) {
  const V x = LLVMBuildLoad2(l->b, lower_vec(lower_memory_type(l, t), (uint32_t)ir_type_elems(t)), p, "");
  lower_align(x, elem_bytes(t));
  return lower_from_memory(l, x, t);
}

static void lower_load_vec(Lower *l, const IrOp *op) {
  const V p = lower_operand(l, op, 0), mask = lower_operand(l, op, 1);
  V other = lower_operand(l, op, 2);
  const IrType *t = ir_result(op, 0)->type;
  const T ty = lower_type(l, t);
  if (!mask) {
    lower_result(l, op, plain_load(l, p, t));
    return;
  }
  if (!other) other = LLVMConstNull(ty);
  if (has_masks(l, t)) {
    const T mty = lower_vec(lower_memory_type(l, t), (uint32_t)ir_type_elems(t));
    const T over[] = {mty, l->ptr};
    V args[] = {p, mask, lower_to_memory(l, other, t)};
    const V x = lower_intrinsic(l, "llvm.masked.load", over, 2, args, 3);
    align_param(l, x, 1, elem_bytes(t));
    lower_result(l, op, lower_from_memory(l, x, t));
    return;
  }
  LLVMBasicBlockRef full = lower_new_block(l, "full"), part = lower_new_block(l, "part"),
                    join = lower_new_block(l, "join");
  LLVMBuildCondBr(l->b, lower_all(l, mask), full, part);
  lower_at(l, full);
  V x = plain_load(l, p, t);
  LLVMBuildBr(l->b, join);
  lower_at(l, part);
  V y = gather(l, lane_addresses(l, p, t), mask, other, t);
  part = lower_here(l);
  LLVMBuildBr(l->b, join);
  lower_at(l, join);
  const V phi = LLVMBuildPhi(l->b, ty, "");
  LLVMAddIncoming(phi, &x, &full, 1);
  LLVMAddIncoming(phi, &y, &part, 1);
  lower_result(l, op, phi);
}

// Past the caches or not: where the author says so, or where the whole launch writes more through this op than the last
// cache holds. What one instance writes is bounded from the loops around the op; the turns of a loop whose bound is not
// known are counted at run time (in floating point: nothing traps, and LLVM moves it out of the loops).
static double bytes_written(const IrOp *op, const IrType *t, const IrOp *unknown[], int *nunknown, int most) {
  double n = (double)ir_type_elems(t) * elem_bytes(t);
  *nunknown = 0;
  for (const IrOp *up = op->parent->owner; up; up = up->parent->owner) {
    if (up->kind == OP_warp_for) return 0;
    if (up->kind != OP_for) continue;
    int64_t step;
    const int64_t hi = lower_upper_bound(ir_operand(up, 1), 0);
    if (ir_const_int(ir_operand(up, 2), &step) && step > 0 && hi > 0 && hi < 1 << 30)
      n *= (double)bits_div_up((uint64_t)hi, (uint64_t)step);
    else if (*nunknown < most)
      unknown[(*nunknown)++] = up;
  }
  return n;
}
static V turns_of(Lower *l, const IrOp *loop) { // at least 1; NaN of an empty step counts as 1
  V lo = lower_operand(l, loop, 0), hi = lower_operand(l, loop, 1), step = lower_operand(l, loop, 2);
  V span =
      LLVMBuildFSub(l->b, LLVMBuildSIToFP(l->b, hi, l->f64, ""), LLVMBuildSIToFP(l->b, lo, l->f64, ""), "");
  V turns = LLVMBuildFDiv(l->b, span, LLVMBuildSIToFP(l->b, step, l->f64, ""), "");
  V one = LLVMConstReal(l->f64, 1);
  return LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealOGT, turns, one, ""), turns, one, "");
}
static V worth_it(Lower *l, const IrOp *op, const IrType *t) { // NULL: never
  enum { MOST_UNKNOWN = 4 };
  const IrOp *unknown[MOST_UNKNOWN];
  int n;
  if (ir_attr_i(op, ATTR_nt)) return LLVMConstInt(l->i1, 1, false);
  const double bytes = bytes_written(op, t, unknown, &n, MOST_UNKNOWN);
  if (bytes < 1024) return NULL;
  V total =
      LLVMBuildFMul(l->b, LLVMBuildUIToFP(l->b, l->instances, l->f64, ""), LLVMConstReal(l->f64, bytes), "");
  for (int i = 0; i < n; i++) total = LLVMBuildFMul(l->b, total, turns_of(l, unknown[i]), "");
  return LLVMBuildFCmp(l->b, LLVMRealOGT, total, LLVMConstReal(l->f64, (double)l->facts->l3_bytes), "");
}

// A non-temporal store needs an address aligned to a whole register, which a run-time test finds out.
static void plain_store(Lower *l, V p, V v, const IrType *t, V past) {
  v = lower_to_memory(l, v, t);
  const uint32_t whole = (uint32_t)ir_type_elems(t) * elem_bytes(t), reg = l->facts->vector_bits / 8;
  const uint32_t need = whole < reg ? whole : reg;
  if (!past || need < 16) {
    lower_align(LLVMBuildStore(l->b, v, p), elem_bytes(t));
    return;
  }
  l->nt_stores = true;
  const LLVMBasicBlockRef far = lower_new_block(l, "past"), near = lower_new_block(l, "near"),
                          join = lower_new_block(l, "join");
  const V low = lower_and(l, LLVMBuildPtrToInt(l->b, p, l->i64, ""), LLVMConstInt(l->i64, need - 1, false));
  const V aligned = lower_icmp(l, LLVMIntEQ, low, LLVMConstNull(l->i64));
  LLVMBuildCondBr(l->b, lower_and(l, aligned, past), far, near);
  lower_at(l, far);
  const V s = LLVMBuildStore(l->b, v, p);
  lower_align(s, need);
  LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(l->i32, 1, false));
  LLVMSetMetadata(s, LLVMGetMDKindIDInContext(l->cx, "nontemporal", 11),
                  LLVMMetadataAsValue(l->cx, LLVMMDNodeInContext2(l->cx, &one, 1)));
  LLVMBuildBr(l->b, join);
  lower_at(l, near);
  lower_align(LLVMBuildStore(l->b, v, p), elem_bytes(t));
  LLVMBuildBr(l->b, join);
  lower_at(l, join);
}
static void masked_store(Lower *l, V p, V v, V mask, const IrType *t) {
  v = lower_to_memory(l, v, t);
  const T over[] = {LLVMTypeOf(v), l->ptr};
  V args[] = {v, p, mask};
  align_param(l, lower_intrinsic(l, "llvm.masked.store", over, 2, args, 3), 2, elem_bytes(t));
}
static void lower_store_vec(Lower *l, const IrOp *op) {
  const V p = lower_operand(l, op, 0), v = lower_operand(l, op, 1), mask = lower_operand(l, op, 2);
  const IrType *t = ir_operand(op, 1)->type;
  const V past = worth_it(l, op, t);
  if (!mask) {
    plain_store(l, p, v, t, past);
    return;
  }
  if ((l->facts->caps & TARGET_CAP_MASKED) && !past) {
    masked_store(l, p, v, mask, t);
    return;
  }
  // Masked stores are slow on some machines, and most masks are full.
  const LLVMBasicBlockRef full = lower_new_block(l, "full"), part = lower_new_block(l, "part"),
                          join = lower_new_block(l, "join");
  LLVMBuildCondBr(l->b, lower_all(l, mask), full, part);
  lower_at(l, full);
  plain_store(l, p, v, t, past);
  LLVMBuildBr(l->b, join);
  lower_at(l, part);
  if (has_masks(l, t))
    masked_store(l, p, v, mask, t);
  else
    scatter(l, lane_addresses(l, p, t), v, mask, t);
  LLVMBuildBr(l->b, join);
  lower_at(l, join);
}

// ---- buffers -----------------------------------------------------------------------------------
V lower_memdesc(Lower *l, const IrValue *m) { return l->values[m->id]; }

static V buffer_address(Lower *l, const IrOp *op, uint32_t first_index) {
  const IrType *m = ir_operand(op, 0)->type;
  V at = LLVMConstNull(l->i64);
  for (int k = 0; k < m->rank; k++) {
    V i = lower_operand(l, op, first_index + (uint32_t)k);
    if (!i) break;
    if (LLVMTypeOf(i) != l->i64) i = LLVMBuildSExt(l->b, i, l->i64, "");
    at = LLVMBuildNSWMul(l->b, at, LLVMConstInt(l->i64, (uint64_t)m->shape[k], false), "");
    at = LLVMBuildNSWAdd(l->b, at, i, "");
  }
  return LLVMBuildInBoundsGEP2(l->b, lower_memory_type(l, m), lower_operand(l, op, 0), &at, 1, "");
}
static const IrType *as_element(Lower *l, const IrType *value, const IrType *m) {
  return value->kind == IR_TILE ? value : ir_type_scalar(l->ir->ctx, m->dtype, LEVEL_program);
}
// Addresses of one element a lane: indices are scalars or vectors. One outside the buffer is moved to its end.
static V lane_elements(Lower *l, const IrOp *op, uint32_t first_index, uint32_t lanes) {
  const IrType *m = ir_operand(op, 0)->type;
  const T ty = LLVMVectorType(l->i32, lanes);
  V at = LLVMConstNull(ty);
  for (int k = 0; k < m->rank; k++) {
    V i = lower_operand(l, op, first_index + (uint32_t)k);
    i = LLVMBuildIntCast2(l->b, i, lower_shape(l->i32, i), true, "");
    if (!lower_lanes(i)) i = lower_splat(l, i, lanes);
    at = lower_add(l, lower_mul(l, at, lower_ci(ty, m->shape[k])), i);
  }
  at = lower_bin(l, "llvm.umin", at, lower_ci(ty, ir_type_elems(m) - 1));
  return lower_gep(l, lower_memory_type(l, m), lower_operand(l, op, 0), at);
}
static void lower_mem_lanes(Lower *l, const IrOp *op) {
  const bool load = op->kind == OP_mem_gather;
  const IrType *t = load ? ir_result(op, 0)->type : ir_operand(op, 1)->type;
  const V p = lane_elements(l, op, load ? 1 : 2, (uint32_t)ir_type_elems(t));
  if (load)
    lower_result(l, op, gather(l, p, NULL, NULL, t));
  else
    scatter(l, p, lower_operand(l, op, 1), NULL, t);
}
static void lower_mem_get(Lower *l, const IrOp *op) {
  const V p = buffer_address(l, op, 1);
  const IrType *t = as_element(l, ir_result(op, 0)->type, ir_operand(op, 0)->type);
  if (t->kind == IR_TILE) {
    lower_result(l, op, plain_load(l, p, t));
    return;
  }
  const V x = LLVMBuildLoad2(l->b, lower_memory_type(l, t), p, "");
  lower_align(x, elem_bytes(t));
  lower_result(l, op, lower_from_memory(l, x, t));
}
static void lower_mem_set(Lower *l, const IrOp *op) {
  const V v = lower_operand(l, op, 1), p = buffer_address(l, op, 2);
  const IrType *t = as_element(l, ir_operand(op, 1)->type, ir_operand(op, 0)->type);
  lower_align(LLVMBuildStore(l->b, lower_to_memory(l, v, t), p), elem_bytes(t));
}

V lower_scratch(Lower *l, uint64_t bytes) {
  if (bytes > l->scratch_bytes) l->scratch_bytes = bytes;
  return lower_field(l, l->arena_base, bits_round_up(l->buffers_end, 64));
}

static void lower_mem_alloc(Lower *l, const IrOp *op) {
  const uint64_t at = (uint64_t)ir_attr_i(op, ATTR_offset);
  if (at % 64)
    lower_fail(l, op, ST_INTERNAL, "a buffer at offset %llu is not aligned", (unsigned long long)at);
  lower_result(l, op, lower_field(l, l->arena_base, at));
}

static void lower_ptr_add(Lower *l, const IrOp *op) {
  V p = lower_operand(l, op, 0);
  const V n = lower_operand(l, op, 1);
  const IrOp *def = ir_operand(op, 0)->def;
  if (lower_lanes(n) && def && def->kind == OP_splat)
    p = lower_get(l, ir_operand(def, 0)); // one base for all
  const IrType *t = ir_operand(op, 0)->type;
  T e = lower_dtype(l, t->dtype);
  if (e == l->i1) e = l->i8;
  lower_result(l, op, lower_gep(l, e, p, n));
}

// A descriptor is the address of the launch's ImageDesc.
static void lower_desc_part(Lower *l, const IrOp *op) {
  const V d = lower_get(l, ir_operand(op, 0));
  if (!d) lower_fail(l, op, ST_UNSUPPORTED, "a descriptor that is not an argument");
  const uint64_t axis = (uint64_t)ir_attr_i(op, ATTR_axis);
  const uint64_t at = op->kind == OP_desc_base  ? offsetof(ImageDesc, base)
                      : op->kind == OP_desc_dim ? offsetof(ImageDesc, shape) + 8 * axis
                                                : offsetof(ImageDesc, strides) + 8 * axis;
  const T t = op->kind == OP_desc_base ? l->ptr : l->i64;
  V x = lower_load_at(l, t, d, at, 8);
  if (t == l->i64) x = LLVMBuildIntCast2(l->b, x, lower_type(l, ir_result(op, 0)->type), true, "");
  lower_result(l, op, x);
}

// Into the second-level cache: the first has better use for its lines until then.
static void lower_prefetch(Lower *l, const IrOp *op) {
  enum { READ = 0, SECOND_LEVEL = 2, DATA = 1 };
  const T over[] = {l->ptr};
  V args[] = {lower_operand(l, op, 0), LLVMConstInt(l->i32, READ, false),
              LLVMConstInt(l->i32, SECOND_LEVEL, false), LLVMConstInt(l->i32, DATA, false)};
  lower_intrinsic(l, "llvm.prefetch", over, 1, args, 4);
}

void lower_mem(Lower *l, const IrOp *op) {
  switch (op->kind) {
  case OP_prefetch: lower_prefetch(l, op); return;
  case OP_ptr_add: lower_ptr_add(l, op); return;
  case OP_load: lower_load(l, op); return;
  case OP_store: lower_store(l, op); return;
  case OP_load_vec: lower_load_vec(l, op); return;
  case OP_store_vec: lower_store_vec(l, op); return;
  case OP_mem_alloc: lower_mem_alloc(l, op); return;
  case OP_desc_base:
  case OP_desc_dim:
  case OP_desc_stride: lower_desc_part(l, op); return;
  case OP_mem_get: lower_mem_get(l, op); return;
  case OP_mem_set: lower_mem_set(l, op); return;
  case OP_mem_gather:
  case OP_mem_scatter: lower_mem_lanes(l, op); return;
  case OP_mem_load:
    lower_result(l, op, plain_load(l, lower_operand(l, op, 0), ir_result(op, 0)->type));
    return;
  case OP_mem_store: {
    const IrType *t = ir_operand(op, 1)->type;
    const V v = lower_to_memory(l, lower_operand(l, op, 1), t);
    lower_align(LLVMBuildStore(l->b, v, lower_operand(l, op, 0)), elem_bytes(t));
    return;
  }
  case OP_mem_view: {
    const IrType *m = ir_operand(op, 0)->type;
    const V stage = LLVMBuildSExt(l->b, lower_operand(l, op, 1), l->i64, "");
    const uint64_t bytes = (uint64_t)ir_type_elems(m) * elem_bytes(m);
    const V at = LLVMBuildNSWMul(l->b, stage, LLVMConstInt(l->i64, bytes, false), "");
    lower_result(l, op, lower_gep(l, l->i8, lower_operand(l, op, 0), at));
    return;
  }
  default: lower_fail(l, op, ST_INTERNAL, "not a memory op");
  }
}
