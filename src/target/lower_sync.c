// lower_sync: identity, waits, signals, copies and barriers. What may have to wait, or leaves this rank, is a call back
// into the runtime (AbiCpuCalls); such a call does not return once the launch was given up.
#include "target/target_impl.h"

// Calls inst->rank->cpu->FIELD(inst, args...).
static void call_back(Lower *l, size_t field, V *args, uint32_t n) {
  T types[12];
  V all[12] = {l->inst};
  types[0] = l->ptr;
  for (uint32_t i = 0; i < n; i++) {
    all[i + 1] = args[i];
    types[i + 1] = LLVMTypeOf(args[i]);
  }
  const V calls = lower_load_at(l, l->ptr, l->rank_record, offsetof(AbiRank, cpu), 8);
  const V fn = lower_load_at(l, l->ptr, calls, field, 8);
  LLVMBuildCall2(l->b, LLVMFunctionType(l->void_, types, n + 1, false), fn, all, n + 1, "");
}
#define CALL_BACK(l, name, ...) \
  call_back(l, offsetof(AbiCpuCalls, name), (V[]){__VA_ARGS__}, sizeof((V[]){__VA_ARGS__}) / sizeof(V))

static V u32(const Lower *l, uint64_t v) { return LLVMConstInt(l->i32, v, false); }
static V as(Lower *l, V x, T t) { return LLVMBuildIntCast2(l->b, x, t, true, ""); }
static V site_of(Lower *l, const IrOp *op) {
  return u32(l, lower_site(l, op, ir_attr_s(op, ATTR_label), NULL));
}

void lower_yield(Lower *l, const IrOp *loop, V turn) {
  lower_nt_fence(l);
  l->has_waits = true;
  CALL_BACK(l, yield, site_of(l, loop), turn);
}

// Non-temporal stores pass ahead of later ones unless fenced.
void lower_nt_fence(Lower *l) {
  if (!l->nt_stores) return;
  lower_intrinsic(l, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
}

// ---- addresses of peers ------------------------------------------------------------------------
// ditron.symm_at(inst, p, rank, site): the first segment that holds p tells. bad_peer ends the launch where the rank is
// none or (with a rank that exists) p is in no segment.
static V symm_at_fn(Lower *l) {
  const char name[] = "ditron.symm_at";
  V fn = LLVMGetNamedFunction(l->mod, name);
  if (fn) return fn;
  T params[] = {l->ptr, l->i64, l->i64, l->i32};
  fn = LLVMAddFunction(l->mod, name, LLVMFunctionType(l->i64, params, 4, false));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  lower_fn_attrs(l, fn);
  const V save_fn = l->fn, save_inst = l->inst, save_record = l->rank_record;
  const LLVMBasicBlockRef here = lower_here(l);
  const LLVMMetadataRef loc = l->di ? LLVMGetCurrentDebugLocation2(l->b) : NULL;
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, NULL);
  l->fn = fn;
  l->inst = LLVMGetParam(fn, 0);
  const V p = LLVMGetParam(fn, 1), rank = LLVMGetParam(fn, 2), site = LLVMGetParam(fn, 3);
  const LLVMBasicBlockRef entry = lower_new_block(l, "entry"), ranked = lower_new_block(l, "ranked"),
                          each = lower_new_block(l, "each"), next = lower_new_block(l, "next"),
                          found = lower_new_block(l, "found"), bad = lower_new_block(l, "bad"),
                          here_too = lower_new_block(l, "here"), some = lower_new_block(l, "some");
  lower_at(l, entry);
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntEQ, rank, LLVMConstInt(l->i64, (uint64_t)IR_NO_RANK, true)),
                  here_too, some);
  lower_at(l, here_too);
  LLVMBuildRet(l->b, p);
  lower_at(l, some);
  l->rank_record = lower_load_at(l, l->ptr, l->inst, offsetof(AbiInstance, rank), 8);
  const V world =
      LLVMBuildZExt(l->b, lower_load_at(l, l->i32, l->rank_record, offsetof(AbiRank, world), 4), l->i64, "");
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntULT, rank, world), ranked, bad);
  lower_at(l, ranked);
  V n = LLVMBuildZExt(l->b, lower_load_at(l, l->i32, l->rank_record, offsetof(AbiRank, nsegments), 4), l->i64,
                      "");
  const V segments = lower_load_at(l, l->ptr, l->rank_record, offsetof(AbiRank, segments), 8);
  V zero = LLVMConstNull(l->i64);
  LLVMBasicBlockRef from = lower_here(l);
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntNE, n, zero), each, bad);
  lower_at(l, each);
  const V i = LLVMBuildPhi(l->b, l->i64, "");
  LLVMAddIncoming(i, &zero, &from, 1);
  const V at =
      lower_gep(l, l->i8, segments, lower_mul(l, i, LLVMConstInt(l->i64, sizeof(AbiSegment), false)));
  const V off = lower_sub(l, p, lower_load_at(l, l->i64, at, offsetof(AbiSegment, base), 8));
  const V in = lower_icmp(l, LLVMIntULT, off, lower_load_at(l, l->i64, at, offsetof(AbiSegment, bytes), 8));
  LLVMBuildCondBr(l->b, in, found, next);
  lower_at(l, next);
  V i1 = lower_add(l, i, LLVMConstInt(l->i64, 1, false));
  LLVMBasicBlockRef latch = next;
  LLVMAddIncoming(i, &i1, &latch, 1);
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntULT, i1, n), each, bad);
  lower_at(l, found);
  const V peers = lower_load_at(l, l->ptr, at, offsetof(AbiSegment, peer_base), 8);
  const V base = LLVMBuildLoad2(l->b, l->i64, lower_gep(l, l->i64, peers, rank), "");
  LLVMBuildRet(l->b, lower_add(l, off, base));
  lower_at(l, bad);
  CALL_BACK(l, bad_peer, rank, site);
  LLVMBuildUnreachable(l->b);
  l->fn = save_fn;
  l->inst = save_inst;
  l->rank_record = save_record;
  lower_at(l, here);
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, loc);
  return fn;
}
static V symm_one(Lower *l, V p, V rank, V site) {
  const V fn = symm_at_fn(l);
  V args[] = {l->inst, LLVMBuildPtrToInt(l->b, p, l->i64, ""), as(l, rank, l->i64), site};
  return LLVMBuildIntToPtr(l->b, LLVMBuildCall2(l->b, LLVMGlobalGetValueType(fn), fn, args, 4, ""), l->ptr,
                           "");
}
static void lower_symm_at(Lower *l, const IrOp *op) {
  V p = lower_operand(l, op, 0), rank = lower_operand(l, op, 1);
  const V site = site_of(l, op);
  const uint32_t n = lower_lanes(p) ? lower_lanes(p) : lower_lanes(rank);
  if (!n) {
    lower_result(l, op, symm_one(l, p, rank, site));
    return;
  }
  if (!lower_lanes(p)) p = lower_splat(l, p, n);
  if (!lower_lanes(rank)) rank = lower_splat(l, rank, n);
  LowerLoop loop;
  lower_loop_begin(l, &loop, u32(l, n), 1, &p);
  const V x = symm_one(l, LLVMBuildExtractElement(l->b, p, loop.i, ""),
                       LLVMBuildExtractElement(l->b, rank, loop.i, ""), site);
  const V next = LLVMBuildInsertElement(l->b, loop.carried[0], x, loop.i, "");
  lower_loop_end(l, &loop, &next);
  lower_result(l, op, loop.carried[0]);
}

// ---- waits -------------------------------------------------------------------------------------
static const struct {
  AbiCmp abi;
  LLVMIntPredicate p;
} wait_cmps[CMP_COUNT] = { // flags are read as signed words, whatever the comparison says
    [CMP_eq] = {ABI_EQ, LLVMIntEQ},   [CMP_ne] = {ABI_NE, LLVMIntNE},   [CMP_sgt] = {ABI_GT, LLVMIntSGT},
    [CMP_sge] = {ABI_GE, LLVMIntSGE}, [CMP_slt] = {ABI_LT, LLVMIntSLT}, [CMP_sle] = {ABI_LE, LLVMIntSLE},
    [CMP_ugt] = {ABI_GT, LLVMIntSGT}, [CMP_uge] = {ABI_GE, LLVMIntSGE}, [CMP_ult] = {ABI_LT, LLVMIntSLT},
    [CMP_ule] = {ABI_LE, LLVMIntSLE}};

LLVMIntPredicate lower_wait_cmp(IrCmp c, AbiCmp *abi) {
  *abi = wait_cmps[c].abi;
  return wait_cmps[c].p;
}

// One word is looked at before the runtime is called.
static void wait_for(Lower *l, const IrOp *op, V p, V n, V value, IrCmp cmp) {
  const uint32_t bytes = LLVMGetIntTypeWidth(LLVMTypeOf(value)) / 8;
  if (bytes != 4 && bytes != 8)
    lower_fail(l, op, ST_UNSUPPORTED, "a flag of %u bytes; flags are i32 or i64", bytes);
  lower_nt_fence(l);
  l->has_waits = true;
  const V site = site_of(l, op);
  const LLVMBasicBlockRef slow = lower_new_block(l, "wait"), done = lower_new_block(l, "seen");
  if (!n || (LLVMIsAConstantInt(n) && LLVMConstIntGetZExtValue(n) == 1)) {
    const V x = LLVMBuildLoad2(l->b, LLVMTypeOf(value), p, "");
    lower_align(x, bytes);
    LLVMSetOrdering(x, LLVMAtomicOrderingAcquire);
    LLVMBuildCondBr(l->b, lower_icmp(l, wait_cmps[cmp].p, x, value), done, slow);
    n = u32(l, 1);
  } else {
    LLVMBuildBr(l->b, slow);
  }
  lower_at(l, slow);
  CALL_BACK(l, wait, p, n, u32(l, bytes), as(l, value, l->i64), u32(l, wait_cmps[cmp].abi), site);
  LLVMBuildBr(l->b, done);
  lower_at(l, done);
}

// ---- signals and copies ------------------------------------------------------------------------
static void signal_peer(Lower *l, const IrOp *op, V p, V value, V pe, V site) {
  const uint32_t bytes = LLVMGetIntTypeWidth(LLVMTypeOf(value)) / 8;
  if (bytes != 4 && bytes != 8)
    lower_fail(l, op, ST_UNSUPPORTED, "a signal of %u bytes; words are i32 or i64", bytes);
  CALL_BACK(l, signal, p, as(l, value, l->i64), u32(l, bytes), as(l, pe, l->i32),
            u32(l, ir_attr_i(op, ATTR_sigop) == SIGOP_add), site);
}
static void lower_release(Lower *l, const IrOp *op) {
  const V p = lower_operand(l, op, 0), value = lower_operand(l, op, 1), pe = lower_operand(l, op, 2);
  if (pe) {
    signal_peer(l, op, p, value, pe, site_of(l, op));
  } else if (ir_attr_i(op, ATTR_sigop) == SIGOP_add) {
    LLVMBuildAtomicRMW(l->b, LLVMAtomicRMWBinOpAdd, p, value, LLVMAtomicOrderingRelease, false);
  } else {
    const V s = LLVMBuildStore(l->b, value, p);
    lower_align(s, LLVMGetIntTypeWidth(LLVMTypeOf(value)) / 8);
    LLVMSetOrdering(s, LLVMAtomicOrderingRelease);
  }
}
// Without a flag the copy is complete for the source when the call returns; with nbi only after quiet.
static void copy(Lower *l, V dst, V src, V bytes, V pe, uint32_t flags, V site) {
  CALL_BACK(l, copy, dst, src, as(l, bytes, l->i64), as(l, pe, l->i32), u32(l, flags), site);
}
static void lower_copy(Lower *l, const IrOp *op) {
  const V dst = lower_operand(l, op, 0), src = lower_operand(l, op, 1), bytes = lower_operand(l, op, 2);
  const V site = site_of(l, op);
  const uint32_t nbi = ir_attr_i(op, ATTR_nbi) ? 2 : 0;
  if (op->kind == OP_put_signal) { // the signal may not overtake the data, so the copy is never left behind
    const V pe = lower_operand(l, op, 5);
    copy(l, dst, src, bytes, pe, 0, site);
    signal_peer(l, op, lower_operand(l, op, 3), lower_operand(l, op, 4), pe, site);
    return;
  }
  copy(l, dst, src, bytes, lower_operand(l, op, 3), nbi | (op->kind == OP_get), site);
}

// ---- the rest ----------------------------------------------------------------------------------
static V now_ns(Lower *l) { // clock_gettime(CLOCK_MONOTONIC) as a system call: no symbol to resolve
  T pair[] = {l->i64, l->i64};
  const V spec = lower_alloca(l, LLVMStructTypeInContext(l->cx, pair, 2, false), 8);
  T params[] = {l->i64, l->i64, l->ptr};
  const T ft = LLVMFunctionType(l->i64, params, 3, false);
  const char text[] = "syscall",
             where[] = "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}";
  const V code = LLVMGetInlineAsm(ft, text, sizeof text - 1, where, sizeof where - 1, true, false,
                                  LLVMInlineAsmDialectATT, false);
  V args[] = {LLVMConstInt(l->i64, 228, false), LLVMConstInt(l->i64, 1, false), spec};
  LLVMBuildCall2(l->b, ft, code, args, 3, "");
  const V s = lower_load_at(l, l->i64, spec, 0, 8), ns = lower_load_at(l, l->i64, spec, 8, 8);
  return lower_add(l, lower_mul(l, s, LLVMConstInt(l->i64, 1000000000, false)), ns);
}

static V splat_as(Lower *l, const IrOp *op, V x) {
  const IrType *t = ir_result(op, 0)->type;
  x = LLVMBuildIntCast2(l->b, x, lower_scalar_type(l, t), true, "");
  return t->kind == IR_TILE ? lower_splat(l, x, (uint32_t)ir_type_elems(t)) : x;
}

void lower_sync(Lower *l, const IrOp *op) {
  const uint64_t axis = (uint64_t)ir_attr_i(op, ATTR_axis);
  switch (op->kind) {
  case OP_program_id: lower_result(l, op, splat_as(l, op, l->pid[axis < 3 ? axis : 0])); return;
  case OP_num_programs: lower_result(l, op, splat_as(l, op, l->grid[axis < 3 ? axis : 0])); return;
  case OP_rank: lower_result(l, op, splat_as(l, op, l->rank)); return;
  case OP_num_ranks: lower_result(l, op, splat_as(l, op, l->world)); return;
  case OP_num_threads:
    lower_result(l, op, splat_as(l, op, u32(l, (uint64_t)l->ir->num_warps * (uint64_t)l->ir->lanes)));
    return;
  case OP_warp_size: lower_result(l, op, splat_as(l, op, u32(l, (uint64_t)l->ir->lanes))); return;
  case OP_timer: lower_result(l, op, splat_as(l, op, now_ns(l))); return;
  case OP_smid:
    lower_result(l, op, splat_as(l, op, lower_load_at(l, l->i32, l->inst, offsetof(AbiInstance, worker), 4)));
    return;
  case OP_symm_at: lower_symm_at(l, op); return;
  case OP_wait:
    wait_for(l, op, lower_operand(l, op, 0), lower_operand(l, op, 1), lower_operand(l, op, 2),
             (IrCmp)ir_attr_i(op, ATTR_cmp));
    return;
  case OP_acquire: {
    const IrAttr *cmp = ir_attr(op, ATTR_cmp);
    wait_for(l, op, lower_operand(l, op, 0), NULL, lower_operand(l, op, 1), cmp ? (IrCmp)cmp->i : CMP_sge);
    return;
  }
  default: break;
  }
  lower_nt_fence(l); // what follows may make this instance's stores visible to others
  switch (op->kind) {
  case OP_warp_barrier: return; // the lanes of a warp are one vector
  case OP_barrier:
    if (l->fiber_warps) CALL_BACK(l, block_barrier, u32(l, l->fiber_warps), site_of(l, op));
    return;
  case OP_signal:
    signal_peer(l, op, lower_operand(l, op, 0), lower_operand(l, op, 1), lower_operand(l, op, 2),
                site_of(l, op));
    return;
  case OP_release: lower_release(l, op); return;
  case OP_put:
  case OP_get:
  case OP_put_signal: lower_copy(l, op); return;
  case OP_put_fence: CALL_BACK(l, quiet, u32(l, 1)); return;
  case OP_put_quiet:
    l->has_waits = true;
    CALL_BACK(l, quiet, u32(l, 0));
    return;
  case OP_team_barrier: {
    l->has_waits = true;
    const V team = lower_operand(l, op, 0);
    CALL_BACK(l, team_barrier, team ? team : u32(l, 0), u32(l, (uint64_t)ir_attr_i(op, ATTR_group)),
              site_of(l, op));
    return;
  }
  default: lower_fail(l, op, ST_INTERNAL, "not an op of ranks");
  }
}

// ---- people ------------------------------------------------------------------------------------
static bool is_uns(const IrOp *op, uint32_t i) {
  const IrAttr *a = ir_attr(op, ATTR_uns);
  return a && i < a->ints.n && a->ints.v[i];
}
// One letter and a width for each argument, as ImageSite.fmt says.
static const char *print_format(Lower *l, const IrOp *op) {
  char *s = arena_strdup(l->arena, "");
  const bool hex = ir_attr_i(op, ATTR_hex);
  const int64_t where = ir_attr_i(op, ATTR_where);
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrType *t = ir_operand(op, i)->type;
    const IrDtypeInfo *d = &ir_dtypes[t->dtype];
    if (where < 0 ? i == 0 : i < where) {
      s = arena_printf(l->arena, "%s%c32", s, where < 0 ? 't' : 'n');
    } else if (ir_type_is_ptr(t)) {
      s = arena_printf(l->arena, "%sp64", s);
    } else if (d->cls == IR_INT) {
      s = arena_printf(l->arena, "%s%c%u", s, hex ? 'x' : is_uns(op, i) ? 'u' : 'i', d->bits);
    } else {
      const char c = t->dtype == IR_f64 ? 'd' : t->dtype == IR_f16 ? 'h' : t->dtype == IR_bf16 ? 'b' : 'f';
      s = arena_printf(l->arena, "%s%c%u", s, c, d->bits < 16 ? 32u : d->bits);
    }
  }
  return s;
}
static V print_bits(Lower *l, const IrType *t, V x, bool uns) {
  if (ir_type_is_ptr(t)) return LLVMBuildPtrToInt(l->b, x, l->i64, "");
  if (t->dtype == IR_f8e4m3 || t->dtype == IR_f8e5m2) x = lower_widen(l, x, t->dtype);
  const T xt = LLVMTypeOf(x);
  if (xt == l->f32) x = LLVMBuildBitCast(l->b, x, l->i32, "");
  if (xt == l->f64) x = LLVMBuildBitCast(l->b, x, l->i64, "");
  return LLVMBuildIntCast2(l->b, x, l->i64, ir_type_is_int(t) && !uns && xt != l->i1, "");
}
static void print_lane(Lower *l, const IrOp *op, V slot, V const *x, V lane, V site) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    const V e = lower_lanes(x[i]) ? LLVMBuildExtractElement(l->b, x[i], lane, "") : x[i];
    const V bits = print_bits(l, ir_operand(op, i)->type, e, is_uns(op, i));
    lower_align(LLVMBuildStore(l->b, bits, lower_field(l, slot, 8 * (uint64_t)i)), 8);
  }
  CALL_BACK(l, print, site, lane, slot, u32(l, op->noperands));
}
static void lower_print(Lower *l, const IrOp *op) {
  const V site = u32(l, lower_site(l, op, ir_attr_s(op, ATTR_prefix), print_format(l, op)));
  V *x = arena_array(l->arena, V, op->noperands + 1);
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < op->noperands; i++) {
    x[i] = lower_operand(l, op, i);
    if (lower_lanes(x[i]) > lanes) lanes = lower_lanes(x[i]);
  }
  const V slot = lower_alloca(l, LLVMArrayType2(l->i64, op->noperands + 1), 8);
  if (!lanes) {
    print_lane(l, op, slot, x, u32(l, UINT32_MAX), site);
    return;
  }
  LowerLoop loop;
  lower_loop_begin(l, &loop, u32(l, lanes), 0, NULL);
  print_lane(l, op, slot, x, loop.i, site);
  lower_loop_end(l, &loop, NULL);
}

void lower_people(Lower *l, const IrOp *op) {
  if (op->kind == OP_print) {
    lower_print(l, op);
    return;
  }
  V c = lower_operand(l, op, 0);
  if (lower_elem_type(LLVMTypeOf(c)) != l->i1) c = lower_icmp(l, LLVMIntNE, c, LLVMConstNull(LLVMTypeOf(c)));
  const V site = u32(l, lower_site(l, op, ir_attr_s(op, ATTR_msg), NULL));
  const LLVMBasicBlockRef bad = lower_new_block(l, "assert"), ok = lower_new_block(l, "holds");
  LLVMBuildCondBr(l->b, lower_all(l, c), ok, bad);
  lower_at(l, bad);
  CALL_BACK(l, assert_fail, site);
  LLVMBuildUnreachable(l->b);
  lower_at(l, ok);
}

// ---- warps -------------------------------------------------------------------------------------
// In turn: a loop. At the same time: the region becomes a function of its own, which the runtime runs on a fiber for each
// warp; what the region uses from outside travels in a record on the caller's stack.
typedef struct Capture {
  const IrValue *value;
  V outer;
  uint64_t offset;
} Capture;
typedef struct Captures {
  Lower *l;
  Map inside, seen; // values defined in the region; captured already
  Vec(Capture) list;
} Captures;

static void note_block(Captures *c, const IrBlock *b) {
  for (uint32_t i = 0; i < b->args.len; i++) map_setp(&c->inside, b->args.data[i], b->args.data[i]);
  for (const IrOp *op = b->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->nresults; i++) map_setp(&c->inside, ir_result(op, i), ir_result(op, i));
    for (uint32_t r = 0; r < op->nregions; r++) note_block(c, op->regions[r]);
  }
}
static void note_uses(Captures *c, const IrBlock *b) {
  for (const IrOp *op = b->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->noperands; i++) {
      const IrValue *v = ir_operand(op, i);
      if (!v || map_getp(&c->inside, v) || map_getp(&c->seen, v)) continue;
      const V x = c->l->values[v->id];
      if (!x || LLVMIsConstant(x)) continue;
      map_setp(&c->seen, v, v);
      vec_push(c->l->arena, &c->list, ((Capture){.value = v, .outer = x}));
    }
    for (uint32_t r = 0; r < op->nregions; r++) note_uses(c, op->regions[r]);
  }
}

static void lower_fibers(Lower *l, const IrOp *op, uint32_t count) {
  Captures c = {.l = l};
  map_init(&c.inside, l->arena);
  map_init(&c.seen, l->arena);
  note_block(&c, op->regions[0]);
  note_uses(&c, op->regions[0]);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < c.list.len; i++) {
    c.list.data[i].offset = bytes;
    bytes += bits_round_up(LLVMABISizeOfType(l->layout, LLVMTypeOf(c.list.data[i].outer)), 64);
  }
  const V record = lower_alloca(l, LLVMArrayType2(l->i8, bytes ? bytes : 1), 64);
  for (uint32_t i = 0; i < c.list.len; i++) {
    const V s = LLVMBuildStore(l->b, c.list.data[i].outer, lower_field(l, record, c.list.data[i].offset));
    lower_align(s, 64);
  }
  T params[] = {l->ptr, l->ptr, l->i32};
  const V fn = LLVMAddFunction(l->mod, LOWER_WARP_NAME, LLVMFunctionType(l->void_, params, 3, false));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  lower_fn_attrs(l, fn);

  const Lower outer = *l;
  const LLVMBasicBlockRef here = lower_here(l);
  if (l->di) lower_debug_function(l, fn, op->loc, "warp");
  lower_instance(l, fn, LLVMGetParam(fn, 0));
  l->fiber_warps = count;
  l->nt_stores = false;
  for (uint32_t i = 0; i < c.list.len; i++) {
    const Capture *k = &c.list.data[i];
    lower_set(l, k->value, lower_load_at(l, LLVMTypeOf(k->outer), LLVMGetParam(fn, 1), k->offset, 64));
  }
  lower_set(l, op->regions[0]->args.data[0], LLVMGetParam(fn, 2));
  lower_body(l, op->regions[0]);

  lower_return_to(l, &outer);
  for (uint32_t i = 0; i < c.list.len; i++) lower_set(l, c.list.data[i].value, c.list.data[i].outer);
  lower_at(l, here);
  lower_locate(l, op);
  l->has_waits = true;
  lower_nt_fence(l);
  CALL_BACK(l, warps, u32(l, count), fn, record);
}

void lower_warp_for(Lower *l, const IrOp *op) {
  const IrBlock *b = op->regions[0];
  const uint32_t count = (uint32_t)ir_attr_i(op, ATTR_count);
  if (!count) return;
  if (ir_attr_i(op, ATTR_fiber)) {
    lower_fibers(l, op, count);
    return;
  }
  LowerLoop loop;
  lower_loop_begin(l, &loop, u32(l, count), 0, NULL);
  lower_set(l, b->args.data[0], loop.i);
  lower_block(l, b);
  lower_loop_end(l, &loop, NULL);
}
