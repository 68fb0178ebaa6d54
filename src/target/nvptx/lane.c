// lane: what threads do together: shuffles, votes, barriers, fences, products of a warp, values handed round a block.
#include "target/nvptx/nvptx.h"

static V u32(const Lower *l, uint64_t v) { return LLVMConstInt(l->i32, v, false); }
static V all_lanes(const Lower *l) { return u32(l, UINT32_MAX); }

// ---- shuffles --------------------------------------------------------------------------------------
static V to_int(Lower *l, V x) { // the bits as an integer of at least 32
  T t = LLVMTypeOf(x);
  if (LLVMGetTypeKind(t) == LLVMPointerTypeKind) return LLVMBuildPtrToInt(l->b, x, l->i64, "");
  if (t == l->f32) return LLVMBuildBitCast(l->b, x, l->i32, "");
  if (t == l->f64) return LLVMBuildBitCast(l->b, x, l->i64, "");
  return LLVMGetIntTypeWidth(t) < 32 ? LLVMBuildZExt(l->b, x, l->i32, "") : x;
}
static V from_int(Lower *l, V x, T t) {
  if (LLVMGetTypeKind(t) == LLVMPointerTypeKind) return LLVMBuildIntToPtr(l->b, x, t, "");
  return LLVMBuildBitCast(l->b, t == l->f32 || t == l->f64 ? x : LLVMBuildTruncOrBitCast(l->b, x, t, ""), t,
                          "");
}
static V shfl32(Lower *l, const char *mode, V x, V lane) {
  // up: lanes from 0 on count; the others end at lane 31
  const uint32_t clamp = strcmp(mode, "up") ? 31 : 0;
  V args[] = {all_lanes(l), x, lane, u32(l, clamp)};
  return lower_intrinsic(l, nvptx_text(l, "llvm.nvvm.shfl.sync.%s.i32", mode), NULL, 0, args, 4);
}
V nvptx_shfl(Lower *l, const char *mode, V v, V lane) {
  const V x = to_int(l, v);
  V r;
  if (LLVMTypeOf(x) == l->i64) {
    const V lo = shfl32(l, mode, LLVMBuildTrunc(l->b, x, l->i32, ""), lane);
    const V hi = shfl32(l, mode, LLVMBuildTrunc(l->b, lower_lshr(l, x, 32), l->i32, ""), lane);
    r = lower_or(l, LLVMBuildZExt(l->b, lo, l->i64, ""),
                 lower_shl(l, LLVMBuildZExt(l->b, hi, l->i64, ""), 32));
  } else {
    r = shfl32(l, mode, x, lane);
  }
  return from_int(l, r, LLVMTypeOf(v));
}
static void lower_shfl(Lower *l, const IrOp *op) {
  static const char *const modes[SHFL_COUNT] = {
      [SHFL_idx] = "idx", [SHFL_up] = "up", [SHFL_down] = "down", [SHFL_xor] = "bfly"};
  const V v = lower_operand(l, op, 0);
  const V lane = LLVMBuildIntCast2(l->b, lower_operand(l, op, 1), l->i32, true, "");
  const IrShfl mode = (IrShfl)ir_attr_i(op, ATTR_shfl);
  if (LLVMIsAConstantInt(lane)) {
    const bool in = LLVMConstIntGetZExtValue(lane) < 32; // further away there is no lane: the own value
    lower_result(l, op, in ? nvptx_shfl(l, modes[mode], v, lane) : v);
    return;
  }
  const V own = lower_intrinsic(l, "llvm.nvvm.read.ptx.sreg.laneid", NULL, 0, NULL, 0);
  V from = lane;
  if (mode == SHFL_up) from = lower_sub(l, own, lane);
  if (mode == SHFL_down) from = lower_add(l, own, lane);
  if (mode == SHFL_xor) from = lower_xor(l, own, lane);
  const V in = lower_icmp(l, LLVMIntULT, from, u32(l, 32));
  lower_result(l, op, nvptx_shfl(l, "idx", v, lower_sel(l, in, from, own)));
}

// ---- barriers and fences ---------------------------------------------------------------------------
void nvptx_warp_barrier(Lower *l) {
  V all = all_lanes(l);
  lower_intrinsic(l, "llvm.nvvm.bar.warp.sync", NULL, 0, &all, 1);
}
void nvptx_barrier(Lower *l) { // of the block, or of the partition by its own barrier
  const NvptxState *s = l->own;
  if (s->part_warps == 1) {
    nvptx_warp_barrier(l);
  } else if (s->part) {
    V args[] = {u32(l, s->part), u32(l, s->part_warps * 32u)};
    lower_intrinsic(l, "llvm.nvvm.barrier.cta.sync.aligned.count", NULL, 0, args, 2);
  } else {
    V zero = u32(l, 0);
    lower_intrinsic(l, "llvm.nvvm.barrier.cta.sync.aligned.all", NULL, 0, &zero, 1);
  }
}
static void lower_fence(Lower *l, const IrOp *op) {
  const IrOrder order = (IrOrder)ir_attr_i(op, ATTR_order);
  if (ir_attr_i(op, ATTR_proxy) == PROXY_async) {
    if (!(l->facts->caps & TARGET_CAP_TMA))
      lower_fail(l, op, ST_UNSUPPORTED, "%s has no async proxy", l->facts->cpu);
    // of all memory it waits for the whole device
    const bool block = ir_attr_i(op, ATTR_scope) == SCOPE_block && order <= ORDER_relaxed;
    nvptx_asm(l, l->void_, block ? "fence.proxy.async.shared::cta;" : "fence.proxy.async;", "", NULL, 0,
              ASM_EFFECT);
  }
  if (order <= ORDER_relaxed) return;
  nvptx_asm(l, l->void_,
            nvptx_text(l, "fence.%s.%s;", order == ORDER_seq_cst ? "sc" : "acq_rel", nvptx_scope(op)), "",
            NULL, 0, ASM_EFFECT);
}

// Runs what follows in thread 0 of the block or partition only, up to nvptx_end_one.
LLVMBasicBlockRef nvptx_begin_one(Lower *l) {
  const LLVMBasicBlockRef one = lower_new_block(l, "one"), all = lower_new_block(l, "all");
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntEQ, nvptx_tid(l), u32(l, 0)), one, all);
  lower_at(l, one);
  return all;
}
void nvptx_end_one(Lower *l, LLVMBasicBlockRef all) {
  LLVMBuildBr(l->b, all);
  lower_at(l, all);
}

// Thread 0's value for all: by a shuffle in a single warp, else through 8 bytes of shared memory. The second barrier keeps the
// next one from being written before all have read this.
V nvptx_from_thread(Lower *l, V v) {
  const NvptxState *s = l->own;
  if (s->part_warps == 1) return nvptx_shfl(l, "idx", v, u32(l, 0));
  const T t = LLVMTypeOf(v), m = t == l->i1 ? l->i8 : t;
  const V slot = lower_field(l, nvptx_scratch(l, 8 * (s->part + 1)), 8 * s->part);
  const LLVMBasicBlockRef all = nvptx_begin_one(l);
  LLVMBuildStore(l->b, t == l->i1 ? LLVMBuildZExt(l->b, v, m, "") : v, slot);
  nvptx_end_one(l, all);
  nvptx_barrier(l);
  V x = LLVMBuildLoad2(l->b, m, slot, "");
  if (t == l->i1) x = LLVMBuildTrunc(l->b, x, t, "");
  nvptx_barrier(l);
  return x;
}

// ---- matrices ------------------------------------------------------------------------------------
static const char *list(Lower *l, uint32_t first, uint32_t n) { // "{$0, $1}"
  const char *s = "{";
  for (uint32_t i = 0; i < n; i++) s = nvptx_text(l, "%s%s$%u", s, i ? ", " : "", first + i);
  return nvptx_text(l, "%s}", s);
}
static const char *letters(Lower *l, const char *one, uint32_t n) { // "=r,=r"
  const char *s = "";
  for (uint32_t i = 0; i < n; i++) s = nvptx_text(l, "%s%s%s", s, i ? "," : "", one);
  return s;
}
static T results(Lower *l, T each, uint32_t n) {
  T types[16];
  for (uint32_t i = 0; i < n; i++) types[i] = each;
  return n == 1 ? each : LLVMStructTypeInContext(l->cx, types, n, false);
}
static void set_results(Lower *l, const IrOp *op, V r) {
  for (uint32_t i = 0; i < op->nresults; i++) {
    const V x = op->nresults == 1 ? r : LLVMBuildExtractValue(l->b, r, i, "");
    lower_set(l, ir_result(op, i), LLVMBuildBitCast(l->b, x, lower_type(l, ir_result(op, i)->type), ""));
  }
}
static void lower_ldmatrix(Lower *l, const IrOp *op) {
  const uint32_t n = op->nresults;
  const V p = lower_operand(l, op, 0);
  if (n != 1 && n != 2 && n != 4) lower_fail(l, op, ST_UNSUPPORTED, "%u matrices", n);
  const char *text = nvptx_text(l, "ldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 %s, [$%u];", n,
                                ir_attr_i(op, ATTR_transposed) ? ".trans" : "", list(l, 0, n), n);
  set_results(l, op,
              nvptx_asm(l, results(l, l->i32, n), text, nvptx_text(l, "%s,l", letters(l, "=r", n)), &p, 1,
                        ASM_EFFECT | ASM_CONVERGENT));
}
static void lower_stmatrix(Lower *l, const IrOp *op) {
  const uint32_t n = op->noperands - 1;
  if (n != 1 && n != 2 && n != 4) lower_fail(l, op, ST_UNSUPPORTED, "%u matrices", n);
  if (!(l->facts->caps & TARGET_CAP_STMATRIX))
    lower_fail(l, op, ST_UNSUPPORTED, "%s has no stmatrix", l->facts->cpu);
  V args[5];
  for (uint32_t i = 0; i <= n; i++) args[i] = lower_operand(l, op, i);
  const char *text = nvptx_text(l, "stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [$0], %s;", n,
                                ir_attr_i(op, ATTR_transposed) ? ".trans" : "", list(l, 1, n));
  nvptx_asm(l, l->void_, text, nvptx_text(l, "l,%s", letters(l, "r", n)), args, n + 1,
            ASM_EFFECT | ASM_CONVERGENT);
}

static const char *element(IrDtype d) { // as the instruction spells it
  switch (d) {
  case IR_i8: return "s8";
  case IR_i32: return "s32";
  case IR_f8e4m3: return "e4m3";
  case IR_f8e5m2: return "e5m2";
  default: return ir_dtypes[d].name;
  }
}
static bool is_f8(IrDtype d) { return d == IR_f8e4m3 || d == IR_f8e5m2; }
static void lower_mma(Lower *l, const IrOp *op) {
  const IrMmaInfo *s = &ir_mma[ir_attr_i(op, ATTR_mma)];
  const uint32_t n = s->as + s->bs + s->cs;
  if (op->noperands != n || op->nresults != s->cs || n > 32)
    lower_fail(l, op, ST_INTERNAL, "%u operands", op->noperands);
  if (is_f8(s->a) && !(l->facts->caps & TARGET_CAP_F8_CVT))
    lower_fail(l, op, ST_UNSUPPORTED, "%s has no products of 8-bit floats", l->facts->cpu);
  const bool tf32 = s->a == IR_f32; // 32-bit factors are of 10 bits of significand
  const T c = lower_dtype(l, s->c);
  const char cl = c == l->f32 ? 'f' : c == l->f64 ? 'd' : 'r', fl = s->a == IR_f64 ? 'd' : 'r';
  V args[32];
  for (uint32_t i = 0; i < n; i++) {
    args[i] = lower_operand(l, op, i);
    if (i < s->as + s->bs && fl == 'r') args[i] = LLVMBuildBitCast(l->b, args[i], l->i32, "");
  }
  const char *a = tf32 ? "tf32" : element(s->a), *b = tf32 ? "tf32" : element(s->b);
  const char *text =
      nvptx_text(l, "mma.sync.aligned.m%un%uk%u.row.col.%s.%s.%s.%s %s, %s, %s, %s;", s->m, s->n, s->k,
                 element(s->c), a, b, element(s->c), list(l, 0, s->cs), list(l, s->cs, s->as),
                 list(l, s->cs + s->as, s->bs), list(l, s->cs + s->as + s->bs, s->cs));
  const char factor[] = {fl, 0}, sum[] = {cl, 0}, out[] = {'=', cl, 0};
  const char *constraints = nvptx_text(l, "%s,%s,%s", letters(l, out, s->cs),
                                       letters(l, factor, s->as + s->bs), letters(l, sum, s->cs));
  set_results(l, op, nvptx_asm(l, results(l, c, s->cs), text, constraints, args, n, ASM_CONVERGENT));
}

// ---- partitions ----------------------------------------------------------------------------------
// A chain of branches on the warp's number, made the same for its lanes so that ptxas sees no divergence in the regions.
static void lower_partitions(Lower *l, const IrOp *op) {
  NvptxState *s = l->own;
  const IrAttr *first = ir_attr(op, ATTR_first), *warps = ir_attr(op, ATTR_warps),
               *regs = ir_attr(op, ATTR_regs);
  if (s->part) lower_fail(l, op, ST_UNSUPPORTED, "partitions inside a partition");
  if (op->nregions > 15 || !first || !warps) lower_fail(l, op, ST_UNSUPPORTED, "%u partitions", op->nregions);
  // all that accesses memory is in the partitions: here the kernel in front must have ended (ImageVariant.early)
  if (l->ir->extra_warps) lower_intrinsic(l, "llvm.nvvm.griddepcontrol.wait", NULL, 0, NULL, 0);
  const NvptxState outer = *s;
  const V warp = nvptx_shfl(l, "idx", lower_lshr(l, s->tid, 5), u32(l, 0));
  const LLVMBasicBlockRef join = lower_new_block(l, "together");
  for (uint32_t i = 0; i < op->nregions; i++) {
    const LLVMBasicBlockRef in = lower_new_block(l, "part"), out = lower_new_block(l, "other");
    const V at = lower_sub(l, warp, u32(l, (uint64_t)first->ints.v[i]));
    LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntULT, at, u32(l, (uint64_t)warps->ints.v[i])), in, out);
    lower_at(l, in);
    s->part = i + 1;
    s->part_first = (uint32_t)first->ints.v[i];
    s->part_warps = (uint32_t)warps->ints.v[i];
    const int64_t budget = regs && i < regs->ints.n ? regs->ints.v[i] : 0;
    const int64_t launch = l->facts->block_regs / ((l->ir->num_warps + l->ir->extra_warps) * 32) / 8 * 8;
    if (budget && (l->facts->caps & TARGET_CAP_TMA)) {
      V count = u32(l, (uint64_t)budget);
      lower_intrinsic(l,
                      budget < launch ? "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32"
                                      : "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32",
                      NULL, 0, &count, 1);
    }
    const IrAttr *alone = ir_attr(op, ATTR_alone);
    if (alone && alone->ints.v[i]) { // the others are there to give up their registers
      const LLVMBasicBlockRef first_warp = lower_new_block(l, "alone");
      LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntEQ, at, u32(l, 0)), first_warp, join);
      lower_at(l, first_warp);
      s->part_warps = 1;
    }
    lower_block(l, op->regions[i]);
    // All is fetched: the kernel behind may come to set itself up. Any earlier it would take multiprocessors from this one's rest.
    if (alone && alone->ints.v[i])
      lower_intrinsic(l, "llvm.nvvm.griddepcontrol.launch.dependents", NULL, 0, NULL, 0);
    LLVMBuildBr(l->b, join);
    lower_at(l, out);
  }
  LLVMBuildBr(l->b, join);
  lower_at(l, join);
  s->part = outer.part;
  s->part_first = outer.part_first;
  s->part_warps = outer.part_warps;
}

// ---- ops -----------------------------------------------------------------------------------------
// After a branch that split a warp its lanes meet again, where the code around is not split itself: else ptxas keeps what is
// the same in all lanes in vector registers.
void nvptx_rejoin(Lower *l, const IrOp *op) {
  if (ir_op_executor(op) != EXEC_THREAD) return;
  for (const IrOp *up = op->parent->owner; up; up = up->parent->owner)
    if (up->kind != OP_warp_partitions && ir_op_executor(up) == EXEC_THREAD) return;
  nvptx_warp_barrier(l);
}

bool nvptx_lane(Lower *l, const IrOp *op) {
  switch (op->kind) {
  case OP_shfl: lower_shfl(l, op); return true;
  case OP_ballot: {
    V args[] = {all_lanes(l), lower_operand(l, op, 0)};
    const V x = lower_intrinsic(l, "llvm.nvvm.vote.ballot.sync", NULL, 0, args, 2);
    lower_result(l, op, LLVMBuildIntCast2(l->b, x, lower_type(l, ir_result(op, 0)->type), false, ""));
    return true;
  }
  case OP_active_mask: {
    const V x = lower_intrinsic(l, "llvm.nvvm.activemask", NULL, 0, NULL, 0);
    lower_result(l, op, LLVMBuildIntCast2(l->b, x, lower_type(l, ir_result(op, 0)->type), false, ""));
    return true;
  }
  case OP_barrier: nvptx_barrier(l); return true;
  case OP_warp_barrier: nvptx_warp_barrier(l); return true;
  case OP_fence: lower_fence(l, op); return true;
  case OP_from_thread: {
    const V v = lower_operand(l, op, 0);
    lower_result(l, op, ir_attr_i(op, ATTR_uniform) ? v : nvptx_from_thread(l, v));
    return true;
  }
  case OP_ldmatrix: lower_ldmatrix(l, op); return true;
  case OP_stmatrix: lower_stmatrix(l, op); return true;
  case OP_mma: lower_mma(l, op); return true;
  case OP_warp_partitions: lower_partitions(l, op); return true;
  default: return false;
  }
}
