// lower: functions, structured control flow and the bookkeeping of values. Regions become basic blocks, carried values
// phis; there are no stack slots. Each op goes to the file of its family.
#include "target/target_impl.h"

#include <stdio.h>

void lower_fail(Lower *l, const IrOp *op, Status s, const char *fmt, ...) {
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (op)
    diag(l->diags, DIAG_ERROR, op->loc, "target %s: %s: %s", l->target->name, ir_ops[op->kind].name, text);
  else
    diag(l->diags, DIAG_ERROR, l->func ? l->func->loc : LOC_NONE, "target %s: %s", l->target->name, text);
  escape_now(&l->escape, s, "%s", text);
}

// ---- types -------------------------------------------------------------------------------------
T lower_dtype(const Lower *l, IrDtype d) {
  switch (d) {
  case IR_i1: return l->i1;
  case IR_i8:
  case IR_f8e4m3:
  case IR_f8e5m2: return l->i8;
  case IR_i16:
  case IR_f16:
  case IR_bf16: return l->i16;
  case IR_i32: return l->i32;
  case IR_i64: return l->i64;
  case IR_f32: return l->f32;
  case IR_f64: return l->f64;
  case IR_NDTYPES: break;
  }
  return NULL;
}
T lower_scalar_type(const Lower *l, const IrType *t) {
  return ir_type_is_ptr(t) ? l->space[t->space] : lower_dtype(l, t->dtype);
}
T lower_memory_type(const Lower *l, const IrType *t) {
  const T e = lower_scalar_type(l, t);
  return e == l->i1 ? l->i8 : e;
}
T lower_type(const Lower *l, const IrType *t) {
  switch (t->kind) {
  case IR_SCALAR:
  case IR_PTR: return lower_vec(lower_scalar_type(l, t), (uint32_t)l->width);
  case IR_TILE: return lower_vec(lower_scalar_type(l, t), (uint32_t)ir_type_elems(t));
  case IR_MEMDESC: return l->space[t->space];
  case IR_MBARRIER: return l->mbarrier;
  case IR_DESC:
  case IR_TOKEN: return NULL; // nothing at run time
  }
  return NULL;
}

// ---- values ------------------------------------------------------------------------------------
V lower_get(Lower *l, const IrValue *v) {
  const V x = l->values[v->id];
  if (!x || !l->width || lower_lanes(x) || v->type->kind > IR_PTR) return x;
  return lower_splat(l, x, (uint32_t)l->width);
}
V lower_operand(Lower *l, const IrOp *op, uint32_t i) {
  const IrValue *v = ir_operand(op, i);
  if (!v) return NULL;
  const V x = lower_get(l, v);
  if (!x && v->type->kind <= IR_MEMDESC)
    lower_fail(l, op, ST_INTERNAL, "operand %u was not lowered before its use", i);
  return x;
}
void lower_set(Lower *l, const IrValue *v, V x) { l->values[v->id] = x; }
void lower_result(Lower *l, const IrOp *op, V x) { l->values[ir_result(op, 0)->id] = x; }

// ---- places ------------------------------------------------------------------------------------
LLVMBasicBlockRef lower_new_block(Lower *l, const char *name) {
  return LLVMAppendBasicBlockInContext(l->cx, l->fn, name);
}
void lower_at(Lower *l, LLVMBasicBlockRef b) { LLVMPositionBuilderAtEnd(l->b, b); }
LLVMBasicBlockRef lower_here(const Lower *l) { return LLVMGetInsertBlock(l->b); }
V lower_alloca(Lower *l, T t, uint32_t align) {
  const LLVMBasicBlockRef here = lower_here(l);
  LLVMPositionBuilderBefore(l->b, LLVMGetFirstInstruction(l->entry)); // lower_instance left some
  const V p = LLVMBuildAlloca(l->b, t, "");
  LLVMSetAlignment(p, align);
  lower_at(l, here);
  return p;
}

const char *lower_place(const Lower *l, Loc loc, uint32_t *line, uint32_t *col) {
  *line = loc.line;
  *col = loc.col;
  const Diags *d = l->ir->diags ? l->ir->diags : l->diags;
  return loc.line && loc.file < d->sources.len ? d->sources.data[loc.file].name : NULL;
}
static char *copy(Lower *l, const char *s) { return s ? arena_strdup(l->arena, s) : NULL; }
uint32_t lower_site(Lower *l, const IrOp *op, const char *what, const char *fmt) {
  ImageSite s = {0};
  s.file = copy(l, lower_place(l, op->loc, &s.line, &s.col));
  s.what = copy(l, what);
  s.fmt = copy(l, fmt);
  vec_push(l->arena, &l->sites, s);
  return l->sites.len - 1;
}

void lower_locate(Lower *l, const IrOp *op) {
  if (!l->di || !op->loc.line) return;
  LLVMSetCurrentDebugLocation2(
      l->b, LLVMDIBuilderCreateDebugLocation(l->cx, op->loc.line, op->loc.col, l->di_scope, NULL));
}

// ---- loops -------------------------------------------------------------------------------------
void lower_loop_begin(Lower *l, LowerLoop *p, V n, uint32_t ncarried, V const *init) {
  const LLVMBasicBlockRef pre = lower_here(l);
  p->head = lower_new_block(l, "turn");
  p->exit = lower_new_block(l, "done");
  p->n = n;
  p->ncarried = ncarried;
  LLVMBuildBr(l->b, p->head);
  lower_at(l, p->head);
  p->i = LLVMBuildPhi(l->b, LLVMTypeOf(n), "i");
  V zero = LLVMConstNull(LLVMTypeOf(n));
  LLVMAddIncoming(p->i, &zero, (LLVMBasicBlockRef *)&pre, 1);
  for (uint32_t k = 0; k < ncarried; k++) {
    p->carried[k] = LLVMBuildPhi(l->b, LLVMTypeOf(init[k]), "");
    LLVMAddIncoming(p->carried[k], (V *)&init[k], (LLVMBasicBlockRef *)&pre, 1);
  }
}
void lower_loop_end(Lower *l, LowerLoop *p, V const *next) {
  LLVMBasicBlockRef here = lower_here(l);
  V i = LLVMBuildNUWAdd(l->b, p->i, LLVMConstInt(LLVMTypeOf(p->n), 1, false), "");
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntULT, i, p->n), p->head, p->exit);
  LLVMAddIncoming(p->i, &i, &here, 1);
  for (uint32_t k = 0; k < p->ncarried; k++) {
    LLVMAddIncoming(p->carried[k], (V *)&next[k], &here, 1);
    p->carried[k] = next[k];
  }
  lower_at(l, p->exit);
}

// ---- control flow ------------------------------------------------------------------------------
static void region(Lower *l, const IrBlock *b) { lower_block(l, b); }

// Values of a terminator from operand `from` on, into out[]; NULL for tokens.
static uint32_t yielded(Lower *l, const IrBlock *b, uint32_t from, V *out, uint32_t cap) {
  const IrOp *t = ir_terminator(b);
  uint32_t n = 0;
  for (uint32_t i = from; t && i < t->noperands && n < cap; i++) out[n++] = lower_get(l, ir_operand(t, i));
  return n;
}
static void incoming(V phi, V x, LLVMBasicBlockRef from) {
  if (phi) LLVMAddIncoming(phi, &x, &from, 1);
}
static V *result_array(Lower *l, uint32_t n) { return arena_array(l->arena, V, n ? n : 1); }
static V new_phi(Lower *l, const IrType *t) {
  const T ty = lower_type(l, t);
  return ty ? LLVMBuildPhi(l->b, ty, "") : NULL;
}

// An if (two regions), or a switch (as many as it has), whose regions all meet in one block.
static void lower_choice(Lower *l, const IrOp *op) {
  const uint32_t n = op->nregions, nr = op->nresults;
  const LLVMBasicBlockRef join = lower_new_block(l, "join");
  LLVMBasicBlockRef *starts = arena_array(l->arena, LLVMBasicBlockRef, n + 1);
  for (uint32_t i = 0; i < n; i++) starts[i] = lower_new_block(l, "arm");
  V c = lower_operand(l, op, 0);
  if (op->kind == OP_if) {
    LLVMBuildCondBr(l->b, c, starts[0], starts[1]);
  } else {
    const IrAttr *cases = ir_attr(op, ATTR_cases);
    const V sw = LLVMBuildSwitch(l->b, c, starts[n - 1], n);
    for (uint32_t i = 0; cases && i + 1 < n && i < cases->ints.n; i++)
      LLVMAddCase(sw, LLVMConstInt(LLVMTypeOf(c), (uint64_t)cases->ints.v[i], true), starts[i]);
  }
  V *vals = result_array(l, n * nr);
  LLVMBasicBlockRef *ends = arena_array(l->arena, LLVMBasicBlockRef, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    lower_at(l, starts[i]);
    region(l, op->regions[i]);
    yielded(l, op->regions[i], 0, vals + i * nr, nr);
    ends[i] = lower_here(l);
    LLVMBuildBr(l->b, join);
  }
  lower_at(l, join);
  for (uint32_t r = 0; r < nr; r++) {
    const V phi = new_phi(l, ir_result(op, r)->type);
    for (uint32_t i = 0; i < n; i++) incoming(phi, vals[i * nr + r], ends[i]);
    lower_set(l, ir_result(op, r), phi);
  }
}

// The most that an integer can be, as far as it is easily seen; INT64_MAX where it is not.
int64_t lower_upper_bound(const IrValue *v, int depth) {
  int64_t c;
  if (ir_const_int(v, &c)) return c;
  const IrOp *op = v->def;
  if (!op || depth > 8) return INT64_MAX;
  switch (op->kind) {
  case OP_ext_s: return lower_upper_bound(ir_operand(op, 0), depth + 1);
  case OP_trunc: { // of what is known to fit: not negative, and not too large
    const IrOp *from = ir_operand(op, 0)->def;
    const int64_t b = lower_upper_bound(ir_operand(op, 0), depth + 1);
    const bool positive = from && from->kind == OP_max_s &&
                          ((ir_const_int(ir_operand(from, 0), &c) && c >= 0) ||
                           (ir_const_int(ir_operand(from, 1), &c) && c >= 0));
    return positive && b <= INT32_MAX && ir_dtypes[ir_result(op, 0)->type->dtype].bits >= 32 ? b : INT64_MAX;
  }
  case OP_and: // low bits cleared: not more than before; high bits cleared: not more than the mask
    if (!ir_const_int(ir_operand(op, 1), &c)) return INT64_MAX;
    return c < 0 ? lower_upper_bound(ir_operand(op, 0), depth + 1) : c;
  case OP_max_s:
  case OP_min_s:
  case OP_select: {
    const uint32_t first = op->kind == OP_select;
    const int64_t a = lower_upper_bound(ir_operand(op, first), depth + 1);
    const int64_t b = lower_upper_bound(ir_operand(op, first + 1), depth + 1);
    return (op->kind == OP_min_s) == (a < b) ? a : b;
  }
  default: return INT64_MAX;
  }
}

// Where the index after the last could wrap, what is compared is the distance: go on while hi - i > step.
static void lower_for(Lower *l, const IrOp *op) {
  const uint32_t n = op->nresults;
  V lo = lower_operand(l, op, 0), hi = lower_operand(l, op, 1), step = lower_operand(l, op, 2);
  int64_t s = 1;
  const bool known = ir_const_int(ir_operand(op, 2), &s), down = known && s < 0;
  const bool uns = ir_attr_i(op, ATTR_uns_iv);
  const LLVMBasicBlockRef pre = lower_here(l), head = lower_new_block(l, "loop"),
                          exit = lower_new_block(l, "end");
  V *init = result_array(l, n), *phis = result_array(l, n), *next = result_array(l, n);
  for (uint32_t k = 0; k < n; k++) init[k] = lower_get(l, ir_operand(op, 3 + k));
  V some =
      ir_attr_i(op, ATTR_min_trip) > 0
          ? LLVMConstInt(l->i1, 1, false)
          : lower_icmp(l, down ? (uns ? LLVMIntUGT : LLVMIntSGT) : (uns ? LLVMIntULT : LLVMIntSLT), lo, hi);
  if (!known || s == 0) // a step that is not positive: no turn at all
    some = lower_and(l, some, lower_icmp(l, LLVMIntSGT, step, LLVMConstNull(LLVMTypeOf(step))));
  LLVMBuildCondBr(l->b, some, head, exit);
  lower_at(l, head);
  V i = LLVMBuildPhi(l->b, LLVMTypeOf(lo), "i");
  incoming(i, lo, pre);
  lower_set(l, op->regions[0]->args.data[0], i);
  for (uint32_t k = 0; k < n; k++) {
    const IrValue *arg = op->regions[0]->args.data[1 + k];
    phis[k] = new_phi(l, arg->type);
    incoming(phis[k], init[k], pre);
    lower_set(l, arg, phis[k]);
  }
  region(l, op->regions[0]);
  yielded(l, op->regions[0], 0, next, n);
  // Used only where `more` holds, so it cannot wrap there.
  const V after = uns ? LLVMBuildAdd(l->b, i, step, "") : LLVMBuildNSWAdd(l->b, i, step, "");
  V more;
  int64_t end = INT64_MIN;
  if (known && !down && !uns && (s == 1 || lower_upper_bound(ir_operand(op, 1), 0) <= INT32_MAX - s)) {
    more = lower_icmp(l, LLVMIntSLT, after, hi);
  } else if (down && !uns && (s == -1 || (ir_const_int(ir_operand(op, 1), &end) && end >= INT8_MIN - s))) {
    // signed, also since ptxas 13.0 takes the unsigned form that LLVM makes of the other for a counter that never passes 0
    more = lower_icmp(l, LLVMIntSGT, after, hi);
  } else {
    const V left = down ? lower_sub(l, i, hi) : lower_sub(l, hi, i);
    more = lower_icmp(l, LLVMIntUGT, left, down ? LLVMConstInt(LLVMTypeOf(lo), -(uint64_t)s, false) : step);
  }
  const LLVMBasicBlockRef latch = lower_here(l);
  LLVMBuildCondBr(l->b, more, head, exit);
  incoming(i, after, latch);
  for (uint32_t k = 0; k < n; k++) incoming(phis[k], next[k], latch);
  lower_at(l, exit);
  for (uint32_t k = 0; k < n; k++) {
    const V phi = new_phi(l, ir_result(op, k)->type);
    incoming(phi, init[k], pre);
    incoming(phi, next[k], latch);
    lower_set(l, ir_result(op, k), phi);
  }
}

static void lower_while(Lower *l, const IrOp *op) {
  const IrBlock *before = op->regions[0], *body = op->regions[1];
  const uint32_t nin = before->args.len, nout = op->nresults;
  const LLVMBasicBlockRef pre = lower_here(l), head = lower_new_block(l, "while"),
                          go = lower_new_block(l, "body"), exit = lower_new_block(l, "end");
  V *init = result_array(l, nin), *phis = result_array(l, nin), *vals = result_array(l, nout);
  for (uint32_t k = 0; k < nin; k++) init[k] = lower_get(l, ir_operand(op, k));
  LLVMBuildBr(l->b, head);
  lower_at(l, head);
  for (uint32_t k = 0; k < nin; k++) {
    phis[k] = new_phi(l, before->args.data[k]->type);
    incoming(phis[k], init[k], pre);
    lower_set(l, before->args.data[k], phis[k]);
  }
  V turn = NULL; // of a loop that may be polling
  if (ir_attr_i(op, ATTR_poll)) {
    turn = LLVMBuildPhi(l->b, l->i32, "");
    incoming(turn, LLVMConstInt(l->i32, 0, false), pre);
  }
  region(l, before);
  V c = lower_operand(l, ir_terminator(before), 0);
  yielded(l, before, 1, vals, nout);
  LLVMBuildCondBr(l->b, c, go, exit);
  lower_at(l, go);
  for (uint32_t k = 0; k < body->args.len && k < nout; k++) lower_set(l, body->args.data[k], vals[k]);
  region(l, body);
  V *next = result_array(l, nin);
  yielded(l, body, 0, next, nin);
  if (turn) {
    if (l->target->yield)
      l->target->yield(l, op, turn);
    else
      lower_yield(l, op, turn);
    const V one = LLVMConstInt(l->i32, 1, false); // stays at the most
    const V most = lower_icmp(l, LLVMIntEQ, turn, LLVMConstInt(l->i32, UINT32_MAX, false));
    incoming(turn, LLVMBuildSelect(l->b, most, turn, LLVMBuildAdd(l->b, turn, one, ""), ""), lower_here(l));
  }
  for (uint32_t k = 0; k < nin; k++) incoming(phis[k], next[k], lower_here(l));
  LLVMBuildBr(l->b, head);
  lower_at(l, exit);
  for (uint32_t k = 0; k < nout; k++) lower_set(l, ir_result(op, k), vals[k]);
}

// ---- ops ---------------------------------------------------------------------------------------
static void lower_const(Lower *l, const IrOp *op) {
  const IrType *t = ir_result(op, 0)->type;
  const uint64_t bits = (uint64_t)ir_attr_i(op, ATTR_value);
  const T e = lower_scalar_type(l, t);
  V c;
  if (LLVMGetTypeKind(e) == LLVMPointerTypeKind)
    c = LLVMConstIntToPtr(LLVMConstInt(l->i64, bits, false), e);
  else if (e == l->f32)
    c = LLVMConstBitCast(LLVMConstInt(l->i32, bits & UINT32_MAX, false), l->f32);
  else if (e == l->f64)
    c = LLVMConstBitCast(LLVMConstInt(l->i64, bits, false), l->f64);
  else
    c = LLVMConstInt(e, bits, false);
  lower_result(l, op, lower_splat(l, c, t->kind == IR_TILE ? (uint32_t)ir_type_elems(t) : 0));
}

static void lower_control(Lower *l, const IrOp *op) {
  if (op->kind == OP_for)
    lower_for(l, op);
  else if (op->kind == OP_while)
    lower_while(l, op);
  else
    lower_choice(l, op);
  if (l->target->rejoin) l->target->rejoin(l, op);
}

void lower_op(Lower *l, const IrOp *op) {
  if (l->target->op && l->target->op(l, op)) return;
  switch (op->kind) {
  case OP_const: lower_const(l, op); return;
  case OP_if:
  case OP_switch:
  case OP_for:
  case OP_while: lower_control(l, op); return;
  case OP_warp_for: lower_warp_for(l, op); return;
  case OP_call: lower_call(l, op); return;

  case OP_add:
  case OP_sub:
  case OP_mul:
  case OP_div_s:
  case OP_div_u:
  case OP_rem_s:
  case OP_rem_u:
  case OP_mulhi_s:
  case OP_mulhi_u:
  case OP_and:
  case OP_or:
  case OP_xor:
  case OP_shl:
  case OP_shr_s:
  case OP_shr_u:
  case OP_min_s:
  case OP_max_s:
  case OP_min_u:
  case OP_max_u:
  case OP_abs_s:
  case OP_fadd:
  case OP_fsub:
  case OP_fmul:
  case OP_fdiv:
  case OP_frem:
  case OP_fmin:
  case OP_fmax:
  case OP_fneg:
  case OP_fabs:
  case OP_fma:
  case OP_cmp:
  case OP_fcmp:
  case OP_select: lower_arith(l, op); return;
  case OP_math: lower_math(l, op); return;

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
  case OP_int2ptr: lower_cast(l, op); return;

  case OP_ptr_add:
  case OP_load:
  case OP_store:
  case OP_load_vec:
  case OP_store_vec:
  case OP_prefetch:
  case OP_mem_alloc:
  case OP_mem_view:
  case OP_mem_load:
  case OP_mem_store:
  case OP_mem_get:
  case OP_mem_set:
  case OP_mem_gather:
  case OP_mem_scatter:
  case OP_desc_base:
  case OP_desc_dim:
  case OP_desc_stride: lower_mem(l, op); return;
  case OP_atomic_rmw:
  case OP_atomic_cas:
  case OP_fence: lower_atomic(l, op); return;
  case OP_dot_mem:
    if (!l->target->dot_mem) break;
    l->target->dot_mem(l, op);
    return;

  case OP_splat:
  case OP_unsplat:
  case OP_arange:
  case OP_ramp:
  case OP_reshape:
  case OP_gather:
  case OP_reduce:
  case OP_scan:
  case OP_vec_get:
  case OP_vec_set:
  case OP_shfl:
  case OP_ballot:
  case OP_active_mask: lower_vector(l, op); return;

  case OP_hint:
  case OP_consume:
  case OP_to_thread:
  case OP_from_thread: lower_result(l, op, lower_operand(l, op, 0)); return;
  case OP_assume: return;

  case OP_program_id:
  case OP_num_programs:
  case OP_rank:
  case OP_num_ranks:
  case OP_num_threads:
  case OP_warp_size:
  case OP_timer:
  case OP_smid:
  case OP_barrier:
  case OP_warp_barrier:
  case OP_symm_at:
  case OP_wait:
  case OP_acquire:
  case OP_signal:
  case OP_release:
  case OP_put:
  case OP_get:
  case OP_put_signal:
  case OP_put_fence:
  case OP_put_quiet:
  case OP_team_barrier: lower_sync(l, op); return;
  case OP_print:
  case OP_assert: lower_people(l, op); return;
  default: break;
  }
  lower_fail(l, op, ST_UNSUPPORTED, "not supported on this target at this stage");
}

void lower_block(Lower *l, const IrBlock *b) {
  for (const IrOp *op = b->first; op; op = op->next) {
    if (ir_ops[op->kind].traits & TRAIT_TERMINATOR) break;
    for (uint32_t i = 0; i < op->nresults; i++) {
      const IrType *t = ir_result(op, i)->type;
      if (t->kind == IR_TILE && ir_type_elems(t) > LOWER_MAX_LANES)
        lower_fail(l, op, ST_LIMIT, "a vector of %lld elements; the most is %d", (long long)ir_type_elems(t),
                   LOWER_MAX_LANES);
    }
    lower_locate(l, op);
    lower_op(l, op);
  }
}

static void add_attr(Lower *l, V fn, const char *name) {
  const unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(l->cx, kind, 0));
}
void lower_fn_attrs(Lower *l, V fn) {
  add_attr(l, fn, "nounwind");
  if (l->facts->vector_bits >= 512) { // the scheduling models of some CPUs ask for less
    const char k[] = "prefer-vector-width", v[] = "512";
    LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(l->cx, k, sizeof k - 1, v, sizeof v - 1));
  }
}

// Reads of the instance record lie in the entry block, where every use sees them; unused ones are dropped later.
void lower_instance(Lower *l, V fn, V inst) {
  l->fn = fn;
  l->inst = inst;
  l->entry = LLVMAppendBasicBlockInContext(l->cx, fn, "entry");
  lower_at(l, l->entry);
  for (uint32_t k = 0; k < 3; k++) {
    l->pid[k] = lower_load_at(l, l->i32, inst, offsetof(AbiInstance, pid) + 4 * k, 4);
    l->grid[k] = lower_load_at(l, l->i32, inst, offsetof(AbiInstance, grid) + 4 * k, 4);
  }
  l->instances = LLVMConstInt(l->i64, 1, false);
  for (uint32_t k = 0; k < 3; k++)
    l->instances = lower_mul(l, l->instances, LLVMBuildZExt(l->b, l->grid[k], l->i64, ""));
  l->arena_base = lower_load_at(l, l->ptr, inst, offsetof(AbiInstance, arena), 8);
  l->rank_record = lower_load_at(l, l->ptr, inst, offsetof(AbiInstance, rank), 8);
  l->rank = lower_load_at(l, l->i32, l->rank_record, offsetof(AbiRank, rank), 4);
  l->world = lower_load_at(l, l->i32, l->rank_record, offsetof(AbiRank, world), 4);
}
void lower_body(Lower *l, const IrBlock *b) {
  const LLVMBasicBlockRef body = lower_new_block(l, "body");
  LLVMBuildBr(l->b, body);
  lower_at(l, body);
  lower_block(l, b);
  lower_nt_fence(l);
  LLVMBuildRetVoid(l->b);
}
