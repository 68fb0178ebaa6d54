// wait: waits with a deadline, signals, peers' addresses and copies to them.
//
// A wait looks once, then spins: it sleeps a little longer each turn (to about a microsecond), and every 64 turns it looks at
// the abort word and the clock. Past the deadline the thread writes a report, raises the abort word and exits: a trap would
// take the whole context with it. The loads that spin are never volatile, which would change their scope.
#include "target/nvptx/nvptx.h"

static V u32(const Lower *l, uint64_t v) { return LLVMConstInt(l->i32, v, false); }
static V u64(const Lower *l, uint64_t v) { return LLVMConstInt(l->i64, v, false); }
static V as(Lower *l, V x, T t) { return LLVMBuildIntCast2(l->b, x, t, true, ""); }
static V record_word(Lower *l, T t, uint64_t offset) {
  return lower_load_at(l, t, l->rank_record, offset, t == l->i32 ? 4 : 8);
}
static V site_of(Lower *l, const IrOp *op) {
  return u32(l, lower_site(l, op, ir_attr_s(op, ATTR_label), NULL));
}
// Where an op may leave its scope open it is the widest.
static const char *wide_scope(const IrOp *op) { return ir_attr(op, ATTR_scope) ? nvptx_scope(op) : "sys"; }
V nvptx_clock(Lower *l) {
  return nvptx_asm(l, l->i64, "mov.u64 $0, %globaltimer;", "=l", NULL, 0, ASM_EFFECT);
}

// ---- the end -------------------------------------------------------------------------------------
// All waits and assertions of a kernel end in one block, which writes what AbiReport says and exits. It is no function: a call
// in a kernel keeps ptxas from overlapping asynchronous products.
enum { END_SITE, END_KIND, END_FLAG, END_SEEN, END_VALUE, END_BYTES, END_CMP, END_FIELDS };

static void write_report(Lower *l, V const *fields) {
  static const uint64_t at[] = {
      [END_SITE] = offsetof(AbiReport, site),   [END_KIND] = offsetof(AbiReport, kind),
      [END_FLAG] = offsetof(AbiReport, flag),   [END_SEEN] = offsetof(AbiReport, seen),
      [END_VALUE] = offsetof(AbiReport, value), [END_BYTES] = offsetof(AbiReport, bytes),
      [END_CMP] = offsetof(AbiReport, cmp)};
  const T g = l->space[SPACE_global];
  const LLVMBasicBlockRef claim = lower_new_block(l, "claim"), write = lower_new_block(l, "write"),
                          out = lower_new_block(l, "out");
  const V report = record_word(l, g, offsetof(AbiRank, report)),
          abort_word = record_word(l, g, offsetof(AbiRank, abort_word));
  LLVMBuildCondBr(l->b, LLVMBuildIsNotNull(l->b, report, ""), claim, out);
  lower_at(l, claim);
  V cas[] = {report, u32(l, ABI_REPORT_EMPTY), u32(l, ABI_REPORT_WRITING)};
  const V old = nvptx_asm(l, l->i32, "atom.relaxed.sys.global.cas.b32 $0, [$1], $2, $3;", "=r,l,r,r", cas, 3,
                          ASM_EFFECT);
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntEQ, old, u32(l, ABI_REPORT_EMPTY)), write, out);
  lower_at(l, write);
  for (int i = 0; i < END_FIELDS; i++) LLVMBuildStore(l->b, fields[i], lower_field(l, report, at[i]));
  for (uint64_t i = 0; i < 3; i++)
    LLVMBuildStore(l->b, l->pid[i], lower_field(l, report, offsetof(AbiReport, pid) + 4 * i));
  const NvptxState *s = l->own;
  LLVMBuildStore(l->b, s->tid, lower_field(l, report, offsetof(AbiReport, thread)));
  V done[] = {report, u32(l, ABI_REPORT_DONE)};
  nvptx_asm(l, l->void_, "st.release.sys.global.b32 [$0], $1;", "l,r", done, 2, ASM_EFFECT);
  LLVMBuildBr(l->b, out);
  lower_at(l, out);
  V raise[] = {abort_word, LLVMBuildIsNotNull(l->b, abort_word, ""), u64(l, 1)};
  nvptx_asm(l, l->void_, "@$1 st.relaxed.sys.global.b64 [$0], $2;", "l,b,l", raise, 3, ASM_EFFECT);
}
static void exit_here(Lower *l) {
  lower_intrinsic(l, "llvm.nvvm.exit", NULL, 0, NULL, 0);
  LLVMBuildUnreachable(l->b);
}
// Products of groups of warps may be in flight where a thread leaves: ptxas would put a wait of its own into the loop around.
static void drain(Lower *l) {
  const NvptxState *s = l->own;
  if (s->has_groups && s->part_warps >= 4)
    nvptx_asm(l, l->void_, "wgmma.wait_group.sync.aligned 0;", "", NULL, 0, ASM_EFFECT | ASM_CONVERGENT);
}
static void make_end(Lower *l) {
  NvptxState *s = l->own;
  const LLVMBasicBlockRef here = lower_here(l);
  const T types[] = {l->i32, l->i32, l->i64, l->i64, l->i64, l->i32, l->i32};
  s->end = lower_new_block(l, "end");
  lower_at(l, s->end);
  for (int i = 0; i < END_FIELDS; i++) s->end_fields[i] = LLVMBuildPhi(l->b, types[i], "");
  write_report(l, s->end_fields);
  exit_here(l);
  lower_at(l, here);
}
static void fill(Lower *l, V *fields, V site, AbiReportKind kind, V flag, V seen, V value, uint32_t bytes,
                 AbiCmp cmp) {
  const V none = u64(l, 0);
  if (flag && LLVMGetTypeKind(LLVMTypeOf(flag)) == LLVMPointerTypeKind)
    flag = LLVMBuildPtrToInt(l->b, flag, l->i64, "");
  const V all[END_FIELDS] = {site,
                             u32(l, kind),
                             flag ? flag : none,
                             seen ? as(l, seen, l->i64) : none,
                             value ? as(l, value, l->i64) : none,
                             u32(l, bytes),
                             u32(l, cmp)};
  memcpy(fields, all, sizeof all);
}
void nvptx_give_up(Lower *l, V site, AbiReportKind kind, V flag, V seen, V value, uint32_t bytes,
                   AbiCmp cmp) {
  NvptxState *s = l->own;
  if (!s->end) make_end(l);
  V fields[END_FIELDS];
  drain(l);
  fill(l, fields, site, kind, flag, seen, value, bytes, cmp);
  LLVMBasicBlockRef here = lower_here(l);
  for (int i = 0; i < END_FIELDS; i++) LLVMAddIncoming(s->end_fields[i], &fields[i], &here, 1);
  LLVMBuildBr(l->b, s->end);
}

// ---- waits -----------------------------------------------------------------------------------------
// In a spinning loop of which `turn` counts the turns and `since` is when it began: goes to `gone` where the launch was given up
// (NULL: exits the thread), to `late` where the deadline has passed.
static void check_late(Lower *l, V turn, V since, LLVMBasicBlockRef gone, LLVMBasicBlockRef late) {
  const LLVMBasicBlockRef look = lower_new_block(l, "look"), clock = lower_new_block(l, "clock"),
                          on = lower_new_block(l, "on");
  const bool leave = !gone;
  if (leave) gone = lower_new_block(l, "gone");
  const V now = lower_icmp(l, LLVMIntEQ, lower_and(l, turn, u32(l, 63)), u32(l, 63));
  LLVMBuildCondBr(l->b, now, look, on);
  lower_at(l, look);
  const V word = record_word(l, l->space[SPACE_global], offsetof(AbiRank, abort_word));
  V args[] = {word, LLVMBuildIsNotNull(l->b, word, ""), u64(l, 0)};
  const V raised =
      nvptx_asm(l, l->i64, "@$2 ld.relaxed.sys.global.b64 $0, [$1];", "=l,l,b,0", args, 3, ASM_EFFECT);
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntNE, raised, u64(l, 0)), gone, clock);
  if (leave) {
    lower_at(l, gone);
    drain(l);
    exit_here(l);
  }
  lower_at(l, clock);
  const V longest = record_word(l, l->i64, offsetof(AbiRank, deadline_ns));
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntUGT, lower_sub(l, nvptx_clock(l), since), longest), late, on);
  lower_at(l, on);
}
static void nap(Lower *l, V turn) { // 32, 64, ... 1024 ns
  V few = lower_bin(l, "llvm.umin", turn, u32(l, 5));
  V ns = LLVMBuildShl(l->b, u32(l, 32), few, "");
  lower_intrinsic(l, "llvm.nvvm.nanosleep", NULL, 0, &ns, 1);
}

// Until look() is true. look and too_late are given `user`; too_late reports and leaves, to `failed` where there is one.
typedef V (*Look)(Lower *l, void *user);
static void spin(Lower *l, Look look, void (*too_late)(Lower *l, void *user), void *user, bool sleeps,
                 LLVMBasicBlockRef failed) {
  l->has_waits = true;
  const LLVMBasicBlockRef slow = lower_new_block(l, "slow"), again = lower_new_block(l, "again"),
                          late = lower_new_block(l, "late"), done = lower_new_block(l, "seen");
  LLVMBuildCondBr(l->b, look(l, user), done, slow);
  lower_at(l, slow);
  const V since = nvptx_clock(l);
  V zero = u32(l, 0);
  LLVMBasicBlockRef from = lower_here(l);
  LLVMBuildBr(l->b, again);
  lower_at(l, again);
  V turn = LLVMBuildPhi(l->b, l->i32, "");
  LLVMAddIncoming(turn, &zero, &from, 1);
  if (sleeps) nap(l, turn);
  check_late(l, turn, since, failed, late);
  V next = lower_add(l, turn, u32(l, 1));
  const V ok = look(l, user);
  from = lower_here(l);
  LLVMAddIncoming(turn, &next, &from, 1);
  LLVMBuildCondBr(l->b, ok, done, again);
  lower_at(l, late);
  too_late(l, user);
  lower_at(l, done);
}

typedef struct Flag {
  const IrOp *op;
  V p, value, site, seen;
  uint32_t bytes;
  LLVMIntPredicate predicate;
  AbiCmp cmp;
  const char *order, *scope;
  LLVMBasicBlockRef failed; // where the thread goes that waited too long; NULL: it exits
} Flag;
static V look_at_flag(Lower *l, void *user) {
  Flag *f = user;
  f->seen = nvptx_asm(l, LLVMTypeOf(f->value),
                      nvptx_text(l, "ld.%s.%s.global.b%u $0, [$1];", f->order, f->scope, f->bytes * 8),
                      f->bytes == 4 ? "=r,l" : "=l,l", &f->p, 1, ASM_EFFECT);
  return lower_icmp(l, f->predicate, f->seen, f->value);
}
static void flag_is_late(Lower *l, void *user) { // what stands there now: read once more
  Flag *f = user;
  look_at_flag(l, f);
  if (!f->failed) {
    nvptx_give_up(l, f->site, ABI_REPORT_DEADLINE, f->p, f->seen, f->value, f->bytes, f->cmp);
    return;
  }
  V fields[END_FIELDS];
  fill(l, fields, f->site, ABI_REPORT_DEADLINE, f->p, f->seen, f->value, f->bytes, f->cmp);
  write_report(l, fields);
  LLVMBuildBr(l->b, f->failed);
}
static void wait_for(Lower *l, const IrOp *op, V p, V n, V value, IrCmp cmp, const char *order,
                     LLVMBasicBlockRef failed) {
  Flag *f = arena_new(l->arena, Flag);
  *f = (Flag){.op = op,
              .p = p,
              .value = value,
              .order = order,
              .scope = wide_scope(op),
              .failed = failed,
              .site = site_of(l, op)};
  f->bytes = LLVMGetIntTypeWidth(LLVMTypeOf(value)) / 8;
  if (f->bytes != 4 && f->bytes != 8)
    lower_fail(l, op, ST_UNSUPPORTED, "a flag of %u bytes; flags are i32 or i64", f->bytes);
  f->predicate = lower_wait_cmp(cmp, &f->cmp);
  if (!n || (LLVMIsAConstantInt(n) && LLVMConstIntGetZExtValue(n) == 1)) {
    spin(l, look_at_flag, flag_is_late, f, true, failed);
    return;
  }
  n = as(l, n, l->i32);
  const LLVMBasicBlockRef each = lower_new_block(l, "each"), none = lower_new_block(l, "none");
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntSGT, n, u32(l, 0)), each, none);
  lower_at(l, each);
  LowerLoop loop;
  lower_loop_begin(l, &loop, n, 0, NULL);
  f->p = lower_gep(l, LLVMTypeOf(value), p, loop.i);
  spin(l, look_at_flag, flag_is_late, f, true, failed);
  lower_loop_end(l, &loop, NULL);
  LLVMBuildBr(l->b, none);
  lower_at(l, none);
}

// ---- mbarriers: words in shared memory ---------------------------------------------------------------
typedef struct Phase {
  V p, parity, site;
  bool together; // asked by whole warps
  bool again;    // not for the first time
} Phase;
static V look_at_phase(Lower *l, void *user) {
  Phase *f = user;
  const bool tries = l->facts->caps & TARGET_CAP_TMA; // the hardware itself waits a while
  V args[] = {f->p, f->parity};
  const V there = nvptx_asm(l, l->i1,
                            tries ? "mbarrier.try_wait.parity.shared::cta.b64 $0, [$1], $2;"
                                  : "mbarrier.test_wait.parity.shared.b64 $0, [$1], $2;",
                            "=b,l,r", args, 2, ASM_EFFECT);
  // A warp asks by one instruction and has one answer. Where lanes have looked at the clock in between they agree on it, so that they go on
  // as one.
  const bool votes = f->together && f->again;
  f->again = true;
  if (!votes) return there;
  V all[] = {u32(l, UINT32_MAX), there};
  return lower_intrinsic(l, "llvm.nvvm.vote.all.sync", NULL, 0, all, 2);
}
static void phase_is_late(Lower *l, void *user) {
  const Phase *f = user;
  nvptx_give_up(l, f->site, ABI_REPORT_DEADLINE, NULL, NULL, f->parity, 8, ABI_NE);
}
typedef struct Place {
  Lower *l;
  NvptxState *s;
} Place;
static bool place_mbarrier(IrOp *op, void *user) {
  Place *p = user;
  if (op->kind != OP_mbarrier_alloc) return true;
  const int32_t stages = ir_result(op, 0)->type->stages;
  p->l->buffers_end = bits_round_up(p->l->buffers_end, 8);
  map_setp(&p->s->mbarriers, op, (uintptr_t)p->l->buffers_end);
  p->l->buffers_end += 8 * (uint64_t)(stages > 1 ? stages : 1);
  return true;
}
void nvptx_place_mbarriers(Lower *l, const IrFunc *f) {
  Place p = {l, l->own};
  map_init(&p.s->mbarriers, l->arena);
  map_init(&p.s->turns, l->arena);
  ir_walk(f->body, place_mbarrier, &p);
}
// Of a run of allocations with nothing between that executes, the one before or behind; NULL: none.
static const IrOp *alloc_beside(const IrOp *op, bool before) {
  do op = before ? op->prev : op->next;
  while (op && (op->kind == OP_const || op->kind == OP_mem_alloc));
  return op && op->kind == OP_mbarrier_alloc ? op : NULL;
}
static V mbarrier_at(Lower *l, const IrOp *op) {
  const NvptxState *s = l->own;
  uint64_t at = 0;
  map_get(&s->mbarriers, (uint64_t)(uintptr_t)op, &at);
  return nvptx_shared_at(l, at);
}
static void init_mbarriers(Lower *l, const IrOp *op) {
  const int32_t stages = ir_result(op, 0)->type->stages > 1 ? ir_result(op, 0)->type->stages : 1;
  const V first = mbarrier_at(l, op);
  for (int32_t i = 0; i < stages; i++) {
    V args[] = {lower_field(l, first, 8 * (uint64_t)i), u32(l, (uint64_t)ir_attr_i(op, ATTR_count))};
    nvptx_asm(l, l->void_, "mbarrier.init.shared.b64 [$0], $1;", "l,r", args, 2, ASM_EFFECT);
  }
}
// One thread makes all barriers of a run, and all threads meet once: fences take hundreds of clocks at a block's start.
static void lower_mbarrier_alloc(Lower *l, const IrOp *op) {
  if (!alloc_beside(op, true)) {
    const LLVMBasicBlockRef all = nvptx_begin_one(l);
    for (const IrOp *a = op; a; a = alloc_beside(a, false)) init_mbarriers(l, a);
    if (l->facts->caps & TARGET_CAP_TMA) {
      lower_intrinsic(l, "llvm.nvvm.fence.mbarrier_init.release.cluster", NULL, 0, NULL, 0);
      nvptx_asm(l, l->void_, "fence.proxy.async.shared::cta;", "", NULL, 0, ASM_EFFECT);
      nvptx_prefetch_maps(l);
    }
    nvptx_end_one(l, all);
    nvptx_warp_barrier(l);
    nvptx_barrier(l);
  }
  lower_result(l, op, mbarrier_at(l, op));
}
// One arrival by each warp, when its lanes have come here.
static void arrive_by_warps(Lower *l, V p) {
  V all = u32(l, UINT32_MAX);
  nvptx_warp_barrier(l);
  const V one =
      LLVMBuildExtractValue(l->b, lower_intrinsic(l, "llvm.nvvm.elect.sync", NULL, 0, &all, 1), 1, "");
  V args[] = {p, one};
  nvptx_asm(l, l->void_, "@$1 mbarrier.arrive.shared.b64 _, [$0];", "l,b", args, 2, ASM_EFFECT);
}

// Turns of groups of four warps. Group g waits for phase n of stage g for its turn n, which the group before ends; the first group's turn 0
// needs nobody: it asks one parity ahead, and a barrier counts as having completed the phase before its first.
static void lower_turn(Lower *l, const IrOp *op) {
  NvptxState *s = l->own;
  const IrValue *turns = ir_operand(op, 0);
  const V group = lower_lshr(l, nvptx_warp_number(l), 2);
  if (op->kind == OP_turn_end) {
    const V next = lower_add(l, group, u32(l, 1));
    const V is_last = lower_icmp(l, LLVMIntEQ, next, u32(l, (uint64_t)turns->type->stages));
    arrive_by_warps(l, lower_gep(l, l->i64, lower_operand(l, op, 0),
                                 LLVMBuildSelect(l->b, is_last, u32(l, 0), next, "")));
    return;
  }
  void *slot = map_getp(&s->turns, turns);
  if (!slot) { // how many turns this group has had
    const V count = lower_alloca(l, l->i32, 4);
    const LLVMBasicBlockRef here = lower_here(l);
    LLVMPositionBuilderBefore(l->b, LLVMGetNextInstruction(count));
    LLVMBuildStore(l->b, u32(l, 0), count);
    lower_at(l, here);
    map_setp(&s->turns, turns, (uintptr_t)count);
    slot = count;
  }
  const V count = LLVMBuildLoad2(l->b, l->i32, slot, "");
  const V ahead = LLVMBuildZExt(l->b, lower_icmp(l, LLVMIntEQ, group, u32(l, 0)), l->i32, "");
  Phase f = {lower_gep(l, l->i64, lower_operand(l, op, 0), group),
             LLVMBuildAnd(l->b, lower_add(l, count, ahead), u32(l, 1), ""), site_of(l, op), true, false};
  spin(l, look_at_phase, phase_is_late, &f, false, NULL);
  LLVMBuildStore(l->b, lower_add(l, count, u32(l, 1)), slot);
}

bool nvptx_mbarrier(Lower *l, const IrOp *op) {
  if (op->kind == OP_mbarrier_alloc) {
    lower_mbarrier_alloc(l, op);
    return true;
  }
  if (op->kind == OP_turn_begin || op->kind == OP_turn_end) {
    lower_turn(l, op);
    return true;
  }
  if (op->kind != OP_mbarrier_arrive && op->kind != OP_mbarrier_expect && op->kind != OP_mbarrier_wait)
    return false;
  const V p = lower_gep(l, l->i64, lower_operand(l, op, 0), lower_operand(l, op, 1));
  if (op->kind == OP_mbarrier_wait) {
    Phase f = {p, lower_operand(l, op, 2), site_of(l, op), ir_op_executor(op) == EXEC_PROGRAM, false};
    spin(l, look_at_phase, phase_is_late, &f, false, NULL);
  } else if (op->kind == OP_mbarrier_arrive && ir_attr_i(op, ATTR_each_warp)) {
    arrive_by_warps(l, p);
  } else if (op->kind == OP_mbarrier_arrive) {
    V args[] = {p};
    nvptx_asm(l, l->i64, "mbarrier.arrive.shared.b64 $0, [$1];", "=l,l", args, 1, ASM_EFFECT);
  } else {
    if (!(l->facts->caps & TARGET_CAP_TMA))
      lower_fail(l, op, ST_UNSUPPORTED, "%s has no barriers that count bytes", l->facts->cpu);
    V args[] = {p, lower_operand(l, op, 2)};
    nvptx_asm(l, l->void_, "mbarrier.arrive.expect_tx.shared.b64 _, [$0], $1;", "l,r", args, 2, ASM_EFFECT);
  }
  return true;
}

// A loop of the program's own that may be polling: the first turn notes the time.
void nvptx_yield(Lower *l, const IrOp *loop, V turn) {
  l->has_waits = true;
  const V slot = lower_alloca(l, l->i64, 8);
  const LLVMBasicBlockRef first = lower_new_block(l, "first"), on = lower_new_block(l, "polls"),
                          late = lower_new_block(l, "late"), next = lower_new_block(l, "next");
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntEQ, turn, u32(l, 0)), first, on);
  lower_at(l, first);
  LLVMBuildStore(l->b, nvptx_clock(l), slot);
  LLVMBuildBr(l->b, on);
  lower_at(l, on);
  check_late(l, turn, LLVMBuildLoad2(l->b, l->i64, slot, ""), NULL, late);
  LLVMBuildBr(l->b, next);
  lower_at(l, late);
  nvptx_give_up(l, site_of(l, loop), ABI_REPORT_DEADLINE, NULL, NULL, NULL, 0, ABI_EQ);
  lower_at(l, next);
}

// ---- peers ---------------------------------------------------------------------------------------
// p as rank sees it: the first segment that holds p tells.
static V symm_at(Lower *l, V p, V rank, V site) {
  rank = as(l, rank, l->i64);
  const V at = LLVMBuildPtrToInt(l->b, p, l->i64, "");
  const LLVMBasicBlockRef ranked = lower_new_block(l, "ranked"), each = lower_new_block(l, "each"),
                          found = lower_new_block(l, "found"), next = lower_new_block(l, "next"),
                          bad = lower_new_block(l, "bad");
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntULT, rank, LLVMBuildZExt(l->b, l->world, l->i64, "")), ranked,
                  bad);
  lower_at(l, ranked);
  const V n = record_word(l, l->i32, offsetof(AbiRank, nsegments));
  const V segments = record_word(l, l->space[SPACE_global], offsetof(AbiRank, segments));
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntNE, n, u32(l, 0)), each, bad);
  lower_at(l, each);
  V i = LLVMBuildPhi(l->b, l->i32, ""), zero = u32(l, 0);
  LLVMBasicBlockRef from = ranked;
  LLVMAddIncoming(i, &zero, &from, 1);
  const V wide = LLVMBuildZExt(l->b, i, l->i64, "");
  const V s = lower_gep(l, l->i8, segments, lower_mul(l, wide, u64(l, sizeof(AbiSegment))));
  const V off = lower_sub(l, at, lower_load_at(l, l->i64, s, offsetof(AbiSegment, base), 8));
  const V in = lower_icmp(l, LLVMIntULT, off, lower_load_at(l, l->i64, s, offsetof(AbiSegment, bytes), 8));
  LLVMBuildCondBr(l->b, in, found, next);
  lower_at(l, next);
  V after = lower_add(l, i, u32(l, 1));
  from = next;
  LLVMAddIncoming(i, &after, &from, 1);
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntULT, after, n), each, bad);
  lower_at(l, bad);
  nvptx_give_up(l, site, ABI_REPORT_BAD_PEER, at, NULL, rank, 0, ABI_EQ);
  lower_at(l, found);
  const V peers = lower_load_at(l, l->space[SPACE_global], s, offsetof(AbiSegment, peer_base), 8);
  V base = LLVMBuildLoad2(l->b, l->i64, lower_gep(l, l->i64, peers, rank), "");
  lower_align(base, 8);
  return LLVMBuildIntToPtr(l->b, lower_add(l, off, base), LLVMTypeOf(p), "");
}

// Sets or adds to a word, after everything that this thread has done or knows of.
static void publish(Lower *l, const IrOp *op, V p, V value, const char *order) {
  const uint32_t bytes = LLVMGetIntTypeWidth(LLVMTypeOf(value)) / 8;
  if (bytes != 4 && bytes != 8)
    lower_fail(l, op, ST_UNSUPPORTED, "a signal of %u bytes; words are i32 or i64", bytes);
  const bool add = ir_attr_i(op, ATTR_sigop) == SIGOP_add;
  V args[] = {p, value};
  nvptx_asm(l, l->void_,
            nvptx_text(l, add ? "red.%s.%s.global.add.u%u [$0], $1;" : "st.%s.%s.global.b%u [$0], $1;", order,
                       wide_scope(op), bytes * 8),
            bytes == 4 ? "l,r" : "l,l", args, 2, ASM_EFFECT);
}
static const char *release_or_relaxed(const IrOp *op) {
  return ir_attr_i(op, ATTR_order) == ORDER_relaxed ? "relaxed" : "release";
}
static void lower_release(Lower *l, const IrOp *op) {
  const V pe = lower_operand(l, op, 2);
  nvptx_barrier(l); // what the others did comes before
  const LLVMBasicBlockRef all = nvptx_begin_one(l);
  V p = lower_operand(l, op, 0);
  if (pe) p = symm_at(l, p, pe, site_of(l, op));
  publish(l, op, p, lower_operand(l, op, 1), "release");
  nvptx_end_one(l, all);
  nvptx_warp_barrier(l);
}
// One thread waits for all, and where it waited too long all leave: who went on would work on what is not there.
static void wait_together(Lower *l, const IrOp *op, V p, V n, V value, IrCmp cmp, const char *order) {
  const NvptxState *s = l->own;
  LLVMBasicBlockRef failed = lower_new_block(l, "failed"), start = lower_here(l), all = nvptx_begin_one(l);
  wait_for(l, op, p, n, value, cmp, order, failed);
  LLVMBasicBlockRef end = lower_here(l);
  LLVMBuildBr(l->b, all);
  lower_at(l, failed);
  LLVMBuildBr(l->b, all);
  lower_at(l, all);
  V yes = LLVMConstInt(l->i1, 1, false), no = LLVMConstInt(l->i1, 0, false),
    ok = LLVMBuildPhi(l->b, l->i1, "");
  LLVMAddIncoming(ok, &yes, &start, 1);
  LLVMAddIncoming(ok, &yes, &end, 1);
  LLVMAddIncoming(ok, &no, &failed, 1);
  V every;
  if (s->part_warps == 1) {
    nvptx_warp_barrier(l);
    V args[] = {u32(l, UINT32_MAX), ok};
    every = lower_intrinsic(l, "llvm.nvvm.vote.all.sync", NULL, 0, args, 2);
  } else if (s->part) {
    V args[] = {u32(l, s->part), u32(l, s->part_warps * 32u), ok};
    every = lower_intrinsic(l, "llvm.nvvm.barrier.cta.red.and.aligned.count", NULL, 0, args, 3);
  } else {
    V args[] = {u32(l, 0), ok};
    every = lower_intrinsic(l, "llvm.nvvm.barrier.cta.red.and.aligned.all", NULL, 0, args, 2);
  }
  const LLVMBasicBlockRef leave = lower_new_block(l, "leave"), on = lower_new_block(l, "on");
  LLVMBuildCondBr(l->b, every, on, leave);
  lower_at(l, leave);
  exit_here(l);
  lower_at(l, on);
}
static void lower_acquire(Lower *l, const IrOp *op) {
  const IrAttr *cmp = ir_attr(op, ATTR_cmp);
  wait_together(l, op, lower_operand(l, op, 0), NULL, lower_operand(l, op, 1), cmp ? (IrCmp)cmp->i : CMP_sge,
                "acquire");
}

// ---- copies --------------------------------------------------------------------------------------
// void ditron.copy(dst, src, bytes, first, step): thread `first` of `step` that copy together; 16 bytes at a time where both lie so.
static V copy_fn(Lower *l) {
  const char name[] = "ditron.copy";
  V fn = LLVMGetNamedFunction(l->mod, name);
  if (fn) return fn;
  const T g = l->space[SPACE_global];
  T params[] = {g, g, l->i64, l->i64, l->i64};
  fn = LLVMAddFunction(l->mod, name, LLVMFunctionType(l->void_, params, 5, false));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  lower_fn_attrs(l, fn);
  const unsigned in_line = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
  LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(l->cx, in_line, 0));
  const LLVMBasicBlockRef here = lower_here(l);
  const LLVMMetadataRef loc = l->di ? LLVMGetCurrentDebugLocation2(l->b) : NULL;
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, NULL);
  const V save = l->fn;
  l->fn = fn;
  lower_at(l, lower_new_block(l, "entry"));
  const V dst = LLVMGetParam(fn, 0), src = LLVMGetParam(fn, 1), bytes = LLVMGetParam(fn, 2),
          first = LLVMGetParam(fn, 3), step = LLVMGetParam(fn, 4);
  const V both =
      lower_or(l, LLVMBuildPtrToInt(l->b, dst, l->i64, ""), LLVMBuildPtrToInt(l->b, src, l->i64, ""));
  const V aligned = lower_icmp(l, LLVMIntEQ, lower_and(l, both, u64(l, 15)), u64(l, 0));
  const V wide_end = lower_sel(l, aligned, lower_and(l, bytes, u64(l, (uint64_t)-16)), u64(l, 0));
  V start = u64(l, 0);
  for (int w = 0; w < 2; w++) { // the wide part, then the rest by bytes
    const uint32_t each = w ? 1 : 16;
    const T t = w ? l->i8 : LLVMVectorType(l->i32, 4);
    const V end = w ? bytes : wide_end;
    const LLVMBasicBlockRef pre = lower_here(l), test = lower_new_block(l, "test"),
                            body = lower_new_block(l, "body"), out = lower_new_block(l, "out");
    V i0 = lower_add(l, start, lower_mul(l, first, u64(l, each)));
    LLVMBasicBlockRef from = pre;
    LLVMBuildBr(l->b, test);
    lower_at(l, test);
    V i = LLVMBuildPhi(l->b, l->i64, "");
    LLVMAddIncoming(i, &i0, &from, 1);
    LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntULT, i, end), body, out);
    lower_at(l, body);
    const V x = LLVMBuildLoad2(l->b, t, lower_gep(l, l->i8, src, i), "");
    lower_align(x, each);
    lower_align(LLVMBuildStore(l->b, x, lower_gep(l, l->i8, dst, i)), each);
    V next = lower_add(l, i, lower_mul(l, step, u64(l, each)));
    from = body;
    LLVMAddIncoming(i, &next, &from, 1);
    LLVMBuildBr(l->b, test);
    lower_at(l, out);
    start = wide_end;
  }
  LLVMBuildRetVoid(l->b);
  l->fn = save;
  lower_at(l, here);
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, loc);
  return fn;
}
static void together(Lower *l, IrGroup g) {
  if (g == GROUP_warp) nvptx_warp_barrier(l);
  if (g == GROUP_block) nvptx_barrier(l);
}
static void lower_copy(Lower *l, const IrOp *op) {
  const IrGroup g = (IrGroup)ir_attr_i(op, ATTR_group);
  const V pe = lower_operand(l, op, op->kind == OP_put_signal ? 5 : 3), site = site_of(l, op);
  V dst = lower_operand(l, op, 0), src = lower_operand(l, op, 1), bytes = lower_operand(l, op, 2);
  if (op->kind == OP_get)
    src = symm_at(l, src, pe, site);
  else
    dst = symm_at(l, dst, pe, site);
  const V tid = nvptx_tid(l);
  const V first = g == GROUP_thread ? u32(l, 0) : g == GROUP_warp ? lower_and(l, tid, u32(l, 31)) : tid;
  const uint32_t step = g == GROUP_thread ? 1 : g == GROUP_warp ? 32 : nvptx_threads(l);
  const V fn = copy_fn(l);
  together(l, g); // the source is complete
  V args[] = {dst, src, as(l, bytes, l->i64), LLVMBuildZExt(l->b, first, l->i64, ""), u64(l, step)};
  LLVMBuildCall2(l->b, LLVMGlobalGetValueType(fn), fn, args, 5, "");
  together(l, g);
  if (op->kind != OP_put_signal) return;
  const LLVMBasicBlockRef one = lower_new_block(l, "one"), all = lower_new_block(l, "all");
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntEQ, first, u32(l, 0)), one, all);
  lower_at(l, one);
  publish(l, op, symm_at(l, lower_operand(l, op, 3), pe, site), lower_operand(l, op, 4), "release");
  nvptx_end_one(l, all);
  if (g != GROUP_thread) nvptx_warp_barrier(l);
}

// ---- ops -----------------------------------------------------------------------------------------
static void lower_wait(Lower *l, const IrOp *op) {
  const char *order = ir_attr_i(op, ATTR_order) == ORDER_relaxed ? "relaxed" : "acquire";
  const V p = lower_operand(l, op, 0), n = lower_operand(l, op, 1), value = lower_operand(l, op, 2);
  const IrCmp cmp = (IrCmp)ir_attr_i(op, ATTR_cmp);
  if (ir_op_executor(op) == EXEC_PROGRAM)
    wait_together(l, op, p, n, value, cmp, order);
  else
    wait_for(l, op, p, n, value, cmp, order, NULL);
}
static void lower_signal(Lower *l, const IrOp *op) {
  const V p = symm_at(l, lower_operand(l, op, 0), lower_operand(l, op, 2), site_of(l, op));
  publish(l, op, p, lower_operand(l, op, 1), release_or_relaxed(op));
}
// What happens once a program is done by thread 0, after what the others did before and before what they do next.
static void once_or_each(Lower *l, const IrOp *op, void (*lower)(Lower *l, const IrOp *op)) {
  if (ir_op_executor(op) != EXEC_PROGRAM) {
    lower(l, op);
    return;
  }
  nvptx_barrier(l);
  const LLVMBasicBlockRef all = nvptx_begin_one(l);
  lower(l, op);
  nvptx_end_one(l, all);
  nvptx_barrier(l);
}

bool nvptx_wait(Lower *l, const IrOp *op) {
  switch (op->kind) {
  case OP_wait: lower_wait(l, op); return true;
  case OP_signal: once_or_each(l, op, lower_signal); return true;
  case OP_put:
  case OP_get:
  case OP_put_signal: once_or_each(l, op, lower_copy); return true;
  case OP_acquire: lower_acquire(l, op); return true;
  case OP_release: lower_release(l, op); return true;
  case OP_symm_at:
    lower_result(l, op, symm_at(l, lower_operand(l, op, 0), lower_operand(l, op, 1), site_of(l, op)));
    return true;
  case OP_put_fence: nvptx_asm(l, l->void_, "fence.acq_rel.sys;", "", NULL, 0, ASM_EFFECT); return true;
  case OP_put_quiet: nvptx_asm(l, l->void_, "fence.sc.sys;", "", NULL, 0, ASM_EFFECT); return true;
  case OP_team_barrier:
    lower_fail(l, op, ST_UNSUPPORTED, "barriers of all ranks are not supported inside a GPU kernel");
  case OP_timer: {
    V x = as(l, nvptx_clock(l), lower_type(l, ir_result(op, 0)->type));
    if (!ir_type_is_thread(ir_result(op, 0)->type)) x = nvptx_from_thread(l, x);
    lower_result(l, op, x);
    return true;
  }
  case OP_smid:
    lower_result(l, op, nvptx_asm(l, l->i32, "mov.u32 $0, %smid;", "=r", NULL, 0, ASM_EFFECT));
    return true;
  default: return false;
  }
}
