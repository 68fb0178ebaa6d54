// Library: many devices (dl.*, libshmem_device.*) and per-thread intrinsics (language_extra.*).
//
// dl.* acts once a program; language_extra.* and the plain and warp forms of libshmem_device act once a thread or warp,
// so their operands are raised to thread level; the _block forms need the whole block.
#include "front/builtins.h"

#include <string.h>

// ---- operands --------------------------------------------------------------------------------------------
static bool given(const Call *c, int i) { return c->v[i] && c->v[i]->kind != VAL_NONE; }

// A scalar pointer; integers are taken as addresses of bytes.
Value *front_pointer_arg(Lower *L, Call *c, int i, bool thread) {
  Front *f = L->f;
  Value *p = c->v[i];
  if (p->kind == VAL_RT && !p->rt.type->rank && elem_is_int(p->rt.type->elem) &&
      elem_bits(p->rt.type->elem) == 64)
    p = front_cast_to(L, p, elem_pointer(f, elem_number(f, FDT_int8)), false, c->at[i]);
  if (p->kind == VAL_POISON) return p;
  if (p->kind != VAL_RT || p->rt.type->rank || !elem_is_ptr(p->rt.type->elem))
    return front_err(L, c->at[i], "%s needs a scalar pointer here, not %s", c->row->name,
                     val_kind_text(f, p));
  return thread || L->thread ? front_raise_level(L, p, c->at[i]) : p;
}

Value *front_int_arg(Lower *L, Call *c, int i, FrontDtype d, const char *what, bool thread) {
  Value *v = front_int_scalar(L, c->v[i], d, what, c->at[i]);
  return v->kind == VAL_RT && (thread || L->thread) ? front_raise_level(L, v, c->at[i]) : v;
}

// A flag's value in the type of the word behind the pointer.
Value *front_word_arg(Lower *L, Call *c, int i, Value *p, bool thread) {
  Front *f = L->f;
  const Elem *e = p->rt.type->elem->to;
  if (!elem_is_int(e) || elem_bits(e) < 32) {
    front_err_hint(L, c->at[0], "declare the flags as 32-bit or 64-bit integers", "a flag word of type %s",
                   elem_text(f, e));
    return f->poison;
  }
  return front_int_arg(L, c, i, e->dt, "the value of a flag", thread);
}

static bool any_thread(Lower *L, Value *const *v, int n) {
  bool t = L->thread != NULL;
  for (int i = 0; i < n; i++) t |= v[i] && val_is_thread(v[i]);
  return t;
}

static bool same_level(Lower *L, Value **v, int n, bool thread, Loc loc) {
  for (int i = 0; i < n; i++) {
    if (!v[i]) continue;
    if (v[i]->kind != VAL_RT) return false;
    if (thread) v[i] = front_raise_level(L, v[i], loc);
  }
  return true;
}

IrOp *front_effect(Lower *L, IrOpKind k, Value *const *v, int n, Loc loc) {
  IrValue *ops[8];
  for (int i = 0; i < n; i++) ops[i] = v[i] ? v[i]->rt.ir : NULL;
  return ir_build(front_at(L, loc), k, (uint32_t)n, ops, 0, NULL, 0);
}

static Value *token_value(Lower *L, IrOpKind k, Value *const *v, int n, Loc loc, IrOp **op) {
  IrValue *ops[8];
  for (int i = 0; i < n; i++) ops[i] = v[i] ? v[i]->rt.ir : NULL;
  const IrType *it = ir_type_token(L->f->ctx);
  *op = ir_build(front_at(L, loc), k, (uint32_t)n, ops, 1, &it, 0);
  Value *t = val_new(L->f, VAL_TOKEN);
  t->token = ir_result(*op, 0);
  return t;
}

// ---- dl ----------------------------------------------------------------------------------------------------
Value *bi_rank(Lower *L, Call *c) { // axis?
  return front_thread_id(L, (IrOpKind)c->row->data, 0, "", c->loc);
}

Value *bi_dl_wait(Lower *L, Call *c) { // ptr n? scope? semantic? waitValue?
  Front *f = L->f;
  IrScope scope;
  IrOrder order;
  if (!front_parse_scope(L, c, 2, SCOPE_gpu, &scope) || !front_parse_order(L, c, 3, ORDER_acquire, &order))
    return f->poison;
  Value *p = front_pointer_arg(L, c, 0, false);
  if (p->kind != VAL_RT) return f->poison;
  if (!c->v[4]) c->v[4] = val_int(f, 1);
  if (!c->v[1]) c->v[1] = val_int(f, 1);
  Value *v[3] = {p, front_int_arg(L, c, 1, FDT_int32, "the number of flags", false),
                 front_word_arg(L, c, 4, p, false)};
  if (v[1]->kind != VAL_RT || v[2]->kind != VAL_RT || !same_level(L, v, 3, any_thread(L, v, 3), c->loc))
    return f->poison;
  IrOp *op;
  Value *t = token_value(L, OP_wait, v, 3, c->loc, &op);
  ir_set_attr_i(op, ATTR_cmp, CMP_eq);
  ir_set_attr_i(op, ATTR_order, order);
  ir_set_attr_i(op, ATTR_scope, scope);
  return t;
}

static IrValue *consume_ir(Lower *L, IrValue *v, IrValue *token, Loc loc) {
  const IrType *it = v->type;
  return ir_result(ir_build(front_at(L, loc), OP_consume, 2, (IrValue *[]){v, token}, 1, &it, 0), 0);
}

static Value *consume(Lower *L, Value *v, const Value *token, Loc loc) {
  Front *f = L->f;
  LeafVec leaves = {0};
  if (val_is_number(v) || v->kind == VAL_NONE) return v;
  val_leaves(f, v, &leaves);
  if (!leaves.len)
    return front_err(L, loc, "consume_token takes a value or a tensor descriptor, not %s",
                     val_kind_text(f, v));
  // of a block pointer or descriptor the pointer alone carries the order
  const uint32_t n = v->kind == VAL_BLOCKPTR || v->kind == VAL_DESC ? 1 : leaves.len;
  for (uint32_t i = 0; i < n; i++) leaves.data[i].ir = consume_ir(L, leaves.data[i].ir, token->token, loc);
  uint32_t at_leaf = 0;
  return val_rebuild(f, v, leaves.data, &at_leaf);
}

Value *bi_consume_token(Lower *L, Call *c) { // value token
  if (c->v[1]->kind != VAL_TOKEN) {
    if (c->v[1]->kind == VAL_RT || val_is_number(c->v[1])) return c->v[0]; // a plain 0 stands for "no wait"
    return front_err(L, c->at[1], "consume_token needs the token of a dl.wait, not %s",
                     val_kind_text(L->f, c->v[1]));
  }
  return consume(L, c->v[0], c->v[1], c->loc);
}

Value *bi_symm_at(Lower *L, Call *c) { // ptr rank
  Front *f = L->f;
  Value *p = c->v[0];
  if (p->kind == VAL_RT && p->rt.type->rank)
    return front_err_hint(L, c->at[0], "take the peer's scalar pointer first, then add the offsets",
                          "%s takes a scalar pointer, not a tile of them", c->row->name);
  p = front_pointer_arg(L, c, 0, false);
  Value *r = front_int_arg(L, c, 1, FDT_int32, "a rank", false);
  Value *v[2] = {p, r};
  if (p->kind != VAL_RT || r->kind != VAL_RT || !same_level(L, v, 2, any_thread(L, v, 2), c->loc))
    return f->poison;
  const IrType *it = v[0]->rt.ir->type;
  IrOp *op = ir_build(front_at(L, c->loc), OP_symm_at, 2, (IrValue *[]){v[0]->rt.ir, v[1]->rt.ir}, 1, &it, 0);
  return front_emit_result(L, ir_result(op, 0), v[0]->rt.type, front_why_of(v[1], v[0]));
}

bool front_signal_op_arg(Lower *L, Call *c, int i, IrSigop dflt, IrSigop *out) {
  *out = dflt;
  if (!given(c, i)) return true;
  const Value *v = c->v[i];
  if (v->kind == VAL_STR && (!strcmp(v->s->s, "set") || !strcmp(v->s->s, "add"))) {
    *out = strcmp(v->s->s, "set") ? SIGOP_add : SIGOP_set;
    return true;
  }
  if (v->kind == VAL_INT && (v->i == 9 || v->i == 10)) {
    *out = v->i == 9 ? SIGOP_set : SIGOP_add;
    return true;
  }
  front_err_hint(L, c->at[i], "use \"set\" or \"add\", or NVSHMEM_SIGNAL_SET or NVSHMEM_SIGNAL_ADD",
                 "the signal operation must be a constant of these");
  return false;
}

Value *bi_notify(Lower *L, Call *c) { // ptr rank signal? sig_op? comm_scope?
  Front *f = L->f;
  IrSigop op;
  const char *scope = arg_str(L, c, 4, "inter_node");
  if (!scope || !front_signal_op_arg(L, c, 3, SIGOP_set, &op)) return f->poison;
  if (strcmp(scope, "gpu") && strcmp(scope, "intra_node") && strcmp(scope, "inter_node"))
    return front_err(L, c->at[4], "comm_scope is \"gpu\", \"intra_node\" or \"inter_node\", not \"%s\"",
                     scope);
  Value *p = front_pointer_arg(L, c, 0, false);
  if (p->kind != VAL_RT) return f->poison;
  if (!c->v[2]) c->v[2] = val_int(f, 1);
  Value *v[3] = {p, front_word_arg(L, c, 2, p, false), front_int_arg(L, c, 1, FDT_int32, "a rank", false)};
  if (!same_level(L, v, 3, any_thread(L, v, 3), c->loc)) return f->poison;
  IrOp *o = front_effect(L, OP_signal, v, 3, c->loc);
  ir_set_attr_i(o, ATTR_sigop, op);
  ir_set_attr_i(o, ATTR_order, ORDER_release);
  ir_set_attr_i(o, ATTR_scope, strcmp(scope, "gpu") ? SCOPE_sys : SCOPE_gpu);
  return f->none;
}

Value *bi_release(Lower *L, Call *c) { // flag value rank? sig_op? scope?
  Front *f = L->f;
  IrSigop op;
  IrScope scope;
  if (!front_tiles_allowed(L, c->loc, "dl.release") || !front_signal_op_arg(L, c, 3, SIGOP_set, &op) ||
      !front_parse_scope(L, c, 4, SCOPE_sys, &scope))
    return f->poison;
  Value *p = front_pointer_arg(L, c, 0, false);
  if (p->kind != VAL_RT) return f->poison;
  Value *v[3] = {p, front_word_arg(L, c, 1, p, false),
                 given(c, 2) ? front_int_arg(L, c, 2, FDT_int32, "a rank", false) : NULL};
  static const char *const what[] = {"the flag of dl.release", "the value of dl.release",
                                     "the rank of dl.release"};
  for (int i = 0; i < 3; i++)
    if (v[i] && (v[i]->kind != VAL_RT || !front_is_uniform(L, v[i], c->loc, what[i]))) return f->poison;
  IrOp *o = front_effect(L, OP_release, v, 3, c->loc);
  ir_set_attr_i(o, ATTR_sigop, op);
  ir_set_attr_i(o, ATTR_scope, scope);
  return f->none;
}

Value *bi_acquire(Lower *L, Call *c) { // flag at_least scope?
  Front *f = L->f;
  IrScope scope;
  if (!front_tiles_allowed(L, c->loc, "dl.acquire") || !front_parse_scope(L, c, 2, SCOPE_sys, &scope))
    return f->poison;
  Value *p = front_pointer_arg(L, c, 0, false);
  if (p->kind != VAL_RT) return f->poison;
  Value *v[2] = {p, front_word_arg(L, c, 1, p, false)};
  if (v[1]->kind != VAL_RT || !front_is_uniform(L, v[0], c->loc, "the flag of dl.acquire") ||
      !front_is_uniform(L, v[1], c->loc, "the value of dl.acquire"))
    return f->poison;
  IrOp *op;
  Value *t = token_value(L, OP_acquire, v, 2, c->loc, &op);
  ir_set_attr_i(op, ATTR_cmp, CMP_sge);
  ir_set_attr_i(op, ATTR_scope, scope);
  return t;
}

Value *bi_simt_region(Lower *L, Call *c) {
  return front_err_hint(L, c->loc, "write: with dl.simt_exec_region() as (tid, nthreads):",
                        "simt_exec_region is a context manager");
}

// extern_call(lib, path, args, table, pure): the symbols that we know are functions of our own.
Value *bi_extern_call(Lower *L, Call *c) { // lib path args table is_pure?
  Front *f = L->f;
  Value *in[8];
  int n;
  if (!front_seq_items(L, c, 2, 8, in, &n)) return f->poison;
  const Value *t = c->v[3];
  const char *symbol = NULL;
  if (t->kind == VAL_DICT && t->seq.n)
    for (uint32_t i = 0; i < t->seq.n && !symbol; i++) {
      const Value *row = t->seq.items[i];
      if (row->kind == VAL_TUPLE && row->seq.n && row->seq.items[0]->kind == VAL_STR)
        symbol = row->seq.items[0]->s->s;
    }
  if (!symbol)
    return front_err(L, c->at[3], "extern_call needs a table from argument types to (symbol, result type)");
  // __nv_expf, __nv_exp: libdevice under its own names
  const char *name = !strncmp(symbol, "__nv_", 5) ? symbol + 5 : NULL;
  const Builtin *b = name ? builtin_find(f, "libdevice", name) : NULL;
  if (name && !b && name[strlen(name) - 1] == 'f')
    b = builtin_find(f, "libdevice", arena_printf(f->a, "%.*s", (int)strlen(name) - 1, name));
  if (!b)
    return front_err_hint(L, c->loc, "write it in the language, or use tl.inline_asm_elementwise",
                          "the device symbol '%s' is not available here", symbol);
  Args args = {0};
  for (int i = 0; i < n; i++) {
    vec_push(f->a, &args.pos, in[i]);
    vec_push(f->a, &args.pos_loc, c->at[2]);
  }
  return front_call_builtin(L, b, NULL, &args, c->loc);
}

// The profiler's objects are its module: they hold nothing.
Value *bi_profiler(Lower *L, Call *c) {
  (void)c;
  return lib_module(L->f, "triton_dist.tools.profiler.Profiler");
}

// ---- libshmem_device -------------------------------------------------------------------------------------------
Value *bi_team_pe(Lower *L, Call *c) { // team; data: OP_rank or OP_num_ranks
  return front_thread_id(L, (IrOpKind)c->row->data, 0, "", c->loc);
}

Value *bi_team_translate(Lower *L, Call *c) { // src_team pe dst_team
  Value *v = front_int_scalar(L, c->v[1], FDT_int32, "a rank", c->at[1]);
  return v->kind == VAL_RT && L->thread ? front_raise_level(L, v, c->loc) : v;
}

bool front_block_form(Lower *L, Call *c, Value *const *v, int n) {
  if (!front_tiles_allowed(L, c->loc, arena_printf(L->f->a, "'%s'", c->row->name))) return false;
  for (int i = 0; i < n; i++)
    if (!v[i] || v[i]->kind != VAL_RT ||
        !front_is_uniform(L, v[i], c->at[i], "every operand of a _block form"))
      return false;
  return true;
}

Value *bi_copy(Lower *L, Call *c) { // dest source nbytes pe; data: SH_*
  Front *f = L->f;
  const int d = c->row->data;
  const IrGroup group = (IrGroup)(d & SH_group);
  const bool thread = group != GROUP_block;
  Value *v[4] = {front_pointer_arg(L, c, 0, thread), front_pointer_arg(L, c, 1, thread),
                 front_int_arg(L, c, 2, FDT_int64, "a number of bytes", thread),
                 front_int_arg(L, c, 3, FDT_int32, "a rank", thread)};
  for (int i = 0; i < 4; i++)
    if (v[i]->kind != VAL_RT) return f->poison;
  if (!thread && !front_block_form(L, c, v, 4)) return f->poison;
  IrOp *op = front_effect(L, d & SH_get ? OP_get : OP_put, v, 4, c->loc);
  ir_set_attr_i(op, ATTR_group, group);
  if (d & SH_nbi) ir_set_attr_i(op, ATTR_nbi, 1);
  return f->none;
}

Value *bi_put_signal(Lower *L, Call *c) { // dest source nbytes sig_addr signal sig_op pe; data: SH_*
  Front *f = L->f;
  const int d = c->row->data;
  const IrGroup group = (IrGroup)(d & SH_group);
  const bool thread = group != GROUP_block;
  IrSigop sigop;
  if (!front_signal_op_arg(L, c, 5, SIGOP_set, &sigop)) return f->poison;
  Value *sig = front_pointer_arg(L, c, 3, thread);
  if (sig->kind != VAL_RT) return f->poison;
  Value *v[6] = {front_pointer_arg(L, c, 0, thread),
                 front_pointer_arg(L, c, 1, thread),
                 front_int_arg(L, c, 2, FDT_int64, "a number of bytes", thread),
                 sig,
                 front_word_arg(L, c, 4, sig, thread),
                 front_int_arg(L, c, 6, FDT_int32, "a rank", thread)};
  for (int i = 0; i < 6; i++)
    if (v[i]->kind != VAL_RT) return f->poison;
  if (d & SH_words) v[2] = front_binary_op(L, AOP_Mul, v[2], val_int(f, 8), c->loc);
  if (!thread && !front_block_form(L, c, v, 6)) return f->poison;
  IrOp *op = front_effect(L, OP_put_signal, v, 6, c->loc);
  ir_set_attr_i(op, ATTR_group, group);
  ir_set_attr_i(op, ATTR_sigop, sigop);
  if (d & SH_nbi) ir_set_attr_i(op, ATTR_nbi, 1);
  return f->none;
}

Value *bi_int_p(Lower *L, Call *c) { // dest value pe: one word to the peer
  Front *f = L->f;
  Value *p = front_pointer_arg(L, c, 0, true), *r = front_int_arg(L, c, 2, FDT_int32, "a rank", true);
  if (p->kind != VAL_RT || r->kind != VAL_RT) return f->poison;
  const IrType *it = p->rt.ir->type;
  IrOp *op = ir_build(front_at(L, c->loc), OP_symm_at, 2, (IrValue *[]){p->rt.ir, r->rt.ir}, 1, &it, 0);
  Value *v = front_raise_level(L, front_cast_to(L, c->v[1], p->rt.type->elem->to, false, c->at[1]), c->loc);
  if (v->kind != VAL_RT) return f->poison;
  ir_store(front_at(L, c->loc), ir_result(op, 0), v->rt.ir, NULL);
  return f->none;
}

Value *bi_signal_op(Lower *L, Call *c) { // sig_addr signal sig_op pe
  Front *f = L->f;
  IrSigop sigop;
  if (!front_signal_op_arg(L, c, 2, SIGOP_set, &sigop)) return f->poison;
  Value *p = front_pointer_arg(L, c, 0, true);
  if (p->kind != VAL_RT) return f->poison;
  Value *v[3] = {p, front_word_arg(L, c, 1, p, true), front_int_arg(L, c, 3, FDT_int32, "a rank", true)};
  if (!same_level(L, v, 3, true, c->loc)) return f->poison;
  IrOp *op = front_effect(L, OP_signal, v, 3, c->loc);
  ir_set_attr_i(op, ATTR_sigop, sigop);
  ir_set_attr_i(op, ATTR_order, ORDER_relaxed); // as the library has it: fence() orders, not the signal
  ir_set_attr_i(op, ATTR_scope, SCOPE_sys);
  return f->none;
}

Value *bi_signal_wait(Lower *L, Call *c) { // sig_addr cmp cmp_value; data: 1 = (ivar, value), equal
  static const IrCmp cmps[] = {CMP_eq, CMP_ne, CMP_sgt, CMP_sle, CMP_slt, CMP_sge};
  Front *f = L->f;
  IrCmp cmp = CMP_eq;
  const int value = c->row->data ? 1 : 2;
  if (!c->row->data) {
    const Value *k = c->v[1];
    if (k->kind != VAL_INT || k->i < 0 || k->i > 5)
      return front_err_hint(L, c->at[1], "use NVSHMEM_CMP_EQ, _NE, _GT, _LE, _LT or _GE",
                            "the comparison must be one of the library's constants");
    cmp = cmps[(int)k->i];
  }
  Value *p = front_pointer_arg(L, c, 0, false);
  if (p->kind != VAL_RT) return f->poison;
  Value *v[3] = {p, NULL, front_word_arg(L, c, value, p, false)};
  if (v[2]->kind != VAL_RT || !same_level(L, v, 3, any_thread(L, v, 3), c->loc)) return f->poison;
  IrOp *op;
  token_value(L, OP_wait, v, 3, c->loc, &op);
  ir_set_attr_i(op, ATTR_cmp, cmp);
  ir_set_attr_i(op, ATTR_order, ORDER_acquire);
  ir_set_attr_i(op, ATTR_scope, SCOPE_sys);
  return v[2];
}

Value *bi_put_order(Lower *L, Call *c) { // pe?; data: OP_put_fence or OP_put_quiet
  ir_build(front_at(L, c->loc), (IrOpKind)c->row->data, 0, NULL, 0, NULL, 0);
  return L->f->none;
}

Value *bi_team_barrier(Lower *L, Call *c) { // team?; data: SH_*
  Front *f = L->f;
  const IrGroup group = (IrGroup)(c->row->data & SH_group);
  if (group == GROUP_block && !front_tiles_allowed(L, c->loc, arena_printf(f->a, "'%s'", c->row->name)))
    return f->poison;
  Value *team = given(c, 0) ? front_int_arg(L, c, 0, FDT_int32, "a team", group != GROUP_block) : NULL;
  if (team &&
      (team->kind != VAL_RT || (group == GROUP_block && !front_is_uniform(L, team, c->at[0], "a team"))))
    return f->poison;
  IrOp *op = front_effect(L, OP_team_barrier, &team, 1, c->loc);
  ir_set_attr_i(op, ATTR_group, group);
  ir_set_attr_i(op, ATTR_scope, SCOPE_sys);
  return f->none;
}

// ---- language_extra ----------------------------------------------------------------------------------------------
Value *bi_tid(Lower *L, Call *c) { // axis?
  Front *f = L->f;
  int64_t axis;
  if (!arg_int(L, c, 0, 0, &axis)) return f->poison;
  if (axis < 0 || axis > 2)
    return front_err(L, c->at[0], "threads have axes 0, 1 and 2, not %lld", (long long)axis);
  if (axis)
    return front_cast_to(L, val_int(f, 0), elem_number(f, FDT_int32), false,
                         c->loc); // blocks are one-dimensional
  return front_thread_id(L, OP_tid, 0, "tid(0)", c->loc);
}

Value *bi_laneid(Lower *L, Call *c) { // data: 0 lane, 1 warp of the thread
  Value *t = front_thread_id(L, OP_tid, 0, c->row->data ? "the warp's number" : "laneid()", c->loc);
  const int lanes = L->f->module->lanes;
  return front_binary_op(L, c->row->data ? AOP_FloorDiv : AOP_BitAnd, t,
                         val_int(L->f, c->row->data ? lanes : lanes - 1), c->loc);
}

Value *bi_launch_const(Lower *L, Call *c) { // axis?; data: 0 warps, 1 threads, 2 lanes
  Front *f = L->f;
  int64_t axis = 0;
  if (c->v[0] && !arg_int(L, c, 0, 0, &axis)) return f->poison;
  const int warps = f->module->num_warps, lanes = f->module->lanes;
  return val_int(f, axis ? 1 : c->row->data == 0 ? warps : c->row->data == 1 ? warps * lanes : lanes);
}

Value *bi_timer(Lower *L, Call *c) { // data: OP_timer or OP_smid
  Front *f = L->f;
  const bool timer = c->row->data == OP_timer;
  const Type *t = type_scalar(f, elem_number(f, timer ? FDT_int64 : FDT_int32), true);
  const IrType *it = front_ir_of(f, t);
  IrOp *op = ir_build(front_at(L, c->loc), (IrOpKind)c->row->data, 0, NULL, 1, &it, 0);
  return val_rt(f, ir_result(op, 0), t, front_why_new(f, c->loc, timer ? "the time" : "smid()"));
}

Value *bi_warp_barrier(Lower *L, Call *c) { // mask?
  ir_build(front_at(L, c->loc), OP_warp_barrier, 0, NULL, 0, NULL, 0);
  return L->f->none;
}

Value *bi_extra_fence(Lower *L, Call *c) { // scope?; data: 1 = (semantic?, scope?)
  Front *f = L->f;
  IrScope scope = SCOPE_gpu;
  IrOrder order = ORDER_seq_cst;
  if (c->row->data == 2) { // __fence(scope)
    if (!front_parse_scope(L, c, 0, SCOPE_gpu, &scope)) return f->poison;
  } else if (c->row->data) {
    if (!given(c, 0) || (c->v[0]->kind == VAL_STR && !strcmp(c->v[0]->s->s, "sc")))
      order = ORDER_seq_cst;
    else if (!front_parse_order(L, c, 0, ORDER_acq_rel, &order))
      return f->poison;
    if (!front_parse_scope(L, c, 1, SCOPE_gpu, &scope)) return f->poison;
  } else { // membar: cta, gl, sys
    const char *s = arg_str(L, c, 0, "cta");
    if (!s) return f->poison;
    if (!strcmp(s, "cta"))
      scope = SCOPE_block;
    else if (!strcmp(s, "sys"))
      scope = SCOPE_sys;
    else if (strcmp(s, "gl") && strcmp(s, "gpu"))
      return front_err(L, c->at[0], "membar takes \"cta\", \"gl\" or \"sys\", not \"%s\"", s);
  }
  IrOp *op = ir_build(front_at(L, c->loc), OP_fence, 0, NULL, 0, NULL, 0);
  ir_set_attr_i(op, ATTR_order, order);
  ir_set_attr_i(op, ATTR_scope, scope);
  return f->none;
}

static const Elem *word_elem(Front *f, const Elem *e) {
  return elem_is_ptr(e) ? elem_number(f, FDT_int64) : elem_is_bool(e) ? elem_number(f, FDT_int8) : e;
}

static Value *word_pointer(Lower *L, Value *p, Loc loc) {
  const Elem *to = p->rt.type->elem->to, *m = word_elem(L->f, to);
  return m == to ? p : front_bitcast_to(L, p, elem_pointer(L->f, m), loc);
}

Value *bi_extra_ld(Lower *L, Call *c) { // ptr scope? semantic?; data: 1 = acquire
  Front *f = L->f;
  IrScope scope;
  IrOrder order;
  if (!front_parse_scope(L, c, 1, SCOPE_gpu, &scope)) return f->poison;
  if (c->v[0]->kind == VAL_SMEM) return front_smem_read(L, c->v[0], c->loc);
  if (c->row->data)
    order = ORDER_acquire;
  else if (!front_parse_order(L, c, 2, ORDER_relaxed, &order))
    return f->poison;
  Value *p = front_pointer_arg(L, c, 0, true);
  if (p->kind != VAL_RT) return f->poison;
  const Elem *e = p->rt.type->elem->to;
  if (!elem_is_ptr(e) && elem_kind(e) == DTK_NAMED)
    return front_err(L, c->at[0], "a load of %s", elem_text(f, e));
  p = word_pointer(L, p, c->loc);
  IrValue *r = ir_load(front_at(L, c->loc), p->rt.ir, NULL, NULL);
  ir_set_attr_i(r->def, ATTR_order, order);
  ir_set_attr_i(r->def, ATTR_scope, scope);
  const Type *t = type_scalar(f, word_elem(f, e), true);
  return front_cast_to(
      L,
      val_rt(f, r, t, front_why_new(f, c->loc, arena_printf(f->a, "the per-thread load %s()", c->row->name))),
      e, false, c->loc);
}

Value *bi_extra_st(Lower *L, Call *c) { // ptr val scope? semantic?
  Front *f = L->f;
  IrScope scope;
  IrOrder order;
  if (!front_parse_scope(L, c, 2, SCOPE_gpu, &scope) || !front_parse_order(L, c, 3, ORDER_relaxed, &order))
    return f->poison;
  if (c->v[0]->kind == VAL_SMEM) return front_smem_write(L, c->v[0], c->v[1], c->loc);
  Value *p = front_pointer_arg(L, c, 0, true);
  if (p->kind != VAL_RT) return f->poison;
  const Elem *e = p->rt.type->elem->to;
  if (!elem_is_ptr(e) && elem_kind(e) == DTK_NAMED)
    return front_err(L, c->at[0], "a store of %s", elem_text(f, e));
  if (c->v[1]->kind == VAL_RT && c->v[1]->rt.type->rank)
    return front_err(L, c->at[1], "%s stores one scalar a thread, not a tile", c->row->name);
  Value *v = front_cast_to(L, c->v[1], e, false, c->at[1]);
  v = front_raise_level(L, front_cast_to(L, v, word_elem(f, e), false, c->at[1]), c->loc);
  if (v->kind != VAL_RT) return f->poison;
  p = word_pointer(L, p, c->loc);
  IrOp *op = ir_store(front_at(L, c->loc), p->rt.ir, v->rt.ir, NULL);
  ir_set_attr_i(op, ATTR_order, order);
  ir_set_attr_i(op, ATTR_scope, scope);
  return f->none;
}

static Value *thread_rmw(Lower *L, Value *p, Value *v, IrOrder order, IrScope scope, const char *why,
                         Loc loc) {
  Front *f = L->f;
  const Type *t = v->rt.type;
  const IrType *it = v->rt.ir->type;
  IrOp *op = ir_build(front_at(L, loc), OP_atomic_rmw, 3, (IrValue *[]){p->rt.ir, v->rt.ir, NULL}, 1, &it, 0);
  ir_set_attr_i(op, ATTR_rmw, elem_is_float(t->elem) ? RMW_fadd : RMW_add);
  ir_set_attr_i(op, ATTR_order, order);
  ir_set_attr_i(op, ATTR_scope, scope);
  return val_rt(f, ir_result(op, 0), t, front_why_new(f, loc, why));
}

static bool atomic_operands(Lower *L, Call *c, int i, Value **p, Value **v) {
  Front *f = L->f;
  *p = front_pointer_arg(L, c, 0, true);
  if ((*p)->kind != VAL_RT) return false;
  const Elem *e = (*p)->rt.type->elem->to;
  if (elem_is_ptr(e) || elem_bits(e) < 32) {
    front_err(L, c->at[0], "%s on %s in memory", c->row->name, elem_text(f, e));
    return false;
  }
  *v = front_raise_level(L, front_cast_to(L, c->v[i], e, false, c->at[i]), c->loc);
  if ((*v)->kind == VAL_RT && (*v)->rt.type->rank)
    *v = front_err(L, c->at[i], "%s takes one scalar a thread, not a tile", c->row->name);
  return (*v)->kind == VAL_RT;
}

Value *bi_extra_atomic_add(Lower *L,
                           Call *c) { // ptr val scope? semantic?; data: 1 = red_release(ptr, val, scope?)
  Front *f = L->f;
  IrScope scope;
  IrOrder order = ORDER_release;
  Value *p, *v;
  if (!front_parse_scope(L, c, 2, SCOPE_gpu, &scope) ||
      (!c->row->data && !front_parse_order(L, c, 3, ORDER_relaxed, &order)) ||
      !atomic_operands(L, c, 1, &p, &v))
    return f->poison;
  return thread_rmw(L, p, v, order, scope, "the per-thread atomic_add()", c->loc);
}

Value *bi_extra_atomic_cas(Lower *L, Call *c) { // ptr cmp val scope? semantic?
  Front *f = L->f;
  IrScope scope;
  IrOrder order;
  Value *p, *cmp, *v;
  if (!front_parse_scope(L, c, 3, SCOPE_gpu, &scope) || !front_parse_order(L, c, 4, ORDER_relaxed, &order) ||
      !atomic_operands(L, c, 1, &p, &cmp) || !atomic_operands(L, c, 2, &p, &v))
    return f->poison;
  const IrType *it = v->rt.ir->type;
  IrOp *op = ir_build(front_at(L, c->loc), OP_atomic_cas, 3, (IrValue *[]){p->rt.ir, cmp->rt.ir, v->rt.ir}, 1,
                      &it, 0);
  ir_set_attr_i(op, ATTR_order, order);
  ir_set_attr_i(op, ATTR_scope, scope);
  return val_rt(f, ir_result(op, 0), v->rt.type, front_why_new(f, c->loc, "the per-thread atomic_cas()"));
}

// One lane adds, all lanes get the old value.
Value *bi_atomic_add_per_warp(Lower *L, Call *c) { // ptr val scope? semantic?
  Front *f = L->f;
  IrScope scope;
  IrOrder order;
  Value *p, *v;
  if (!front_parse_scope(L, c, 2, SCOPE_gpu, &scope) || !front_parse_order(L, c, 3, ORDER_relaxed, &order) ||
      !atomic_operands(L, c, 1, &p, &v))
    return f->poison;
  Value *lane = front_binary_op(L, AOP_BitAnd, front_thread_id(L, OP_tid, 0, "laneid()", c->loc),
                                val_int(f, f->module->lanes - 1), c->loc);
  Value *first = front_binary_op(L, AOP_Eq, lane, val_int(f, 0), c->loc);
  if (first->kind != VAL_RT) return f->poison;
  const IrBuilder saved = L->b;
  const ThreadCtl ctl = {first->rt.why, c->loc}, *outer = L->thread;
  IrOp *op = ir_build(front_at(L, c->loc), OP_if, 1, &first->rt.ir, 1, &v->rt.ir->type, 2);
  L->thread = &ctl;
  L->b = ir_builder_at_end(op->regions[0]);
  Value *old = thread_rmw(L, p, v, order, scope, "atomic_add_per_warp()", c->loc);
  ir_yield(front_at(L, c->loc), 1, &old->rt.ir);
  L->b = ir_builder_at_end(op->regions[1]);
  Value *zero = front_const_of(L, v->rt.type->elem, val_int(f, 0), c->loc);
  ir_yield(front_at(L, c->loc), 1, &zero->rt.ir);
  L->thread = outer;
  L->b = saved;
  Value *zero_lane =
      front_raise_level(L, front_cast_to(L, val_int(f, 0), elem_number(f, FDT_int32), false, c->loc), c->loc);
  IrOp *sh = ir_build(front_at(L, c->loc), OP_shfl, 2, (IrValue *[]){ir_result(op, 0), zero_lane->rt.ir}, 1,
                      &v->rt.ir->type, 0);
  ir_set_attr_i(sh, ATTR_shfl, SHFL_idx);
  return val_rt(f, ir_result(sh, 0), v->rt.type, front_why_new(f, c->loc, "atomic_add_per_warp()"));
}

Value *bi_arrive_inc(Lower *L,
                     Call *c) { // ptr thread_idx value scope?: the block is done, then one release add
  Front *f = L->f;
  IrScope scope;
  if (!front_tiles_allowed(L, c->loc, "arrive_inc") || !front_parse_scope(L, c, 3, SCOPE_gpu, &scope))
    return f->poison;
  Value *p = front_pointer_arg(L, c, 0, false);
  if (p->kind != VAL_RT || !front_is_uniform(L, p, c->at[0], "the counter")) return f->poison;
  Value *v = front_word_arg(L, c, 2, p, false);
  if (v->kind != VAL_RT || !front_is_uniform(L, v, c->at[2], "the value")) return f->poison;
  ir_build(front_at(L, c->loc), OP_barrier, 0, NULL, 0, NULL, 0);
  const IrType *it = v->rt.ir->type;
  IrOp *op =
      ir_build(front_at(L, c->loc), OP_atomic_rmw, 3, (IrValue *[]){p->rt.ir, v->rt.ir, NULL}, 1, &it, 0);
  ir_set_attr_i(op, ATTR_rmw, RMW_add);
  ir_set_attr_i(op, ATTR_order, ORDER_release);
  ir_set_attr_i(op, ATTR_scope, scope);
  return f->none;
}

Value *bi_wait_eq(Lower *L, Call *c) { // ptr thread_idx value scope?
  Front *f = L->f;
  IrScope scope;
  if (!front_tiles_allowed(L, c->loc, "wait_eq") || !front_parse_scope(L, c, 3, SCOPE_gpu, &scope))
    return f->poison;
  Value *p = front_pointer_arg(L, c, 0, false);
  if (p->kind != VAL_RT || !front_is_uniform(L, p, c->at[0], "the counter")) return f->poison;
  Value *v[3] = {p, NULL, front_word_arg(L, c, 2, p, false)};
  if (v[2]->kind != VAL_RT || !front_is_uniform(L, v[2], c->at[2], "the value")) return f->poison;
  IrOp *op;
  token_value(L, OP_wait, v, 3, c->loc, &op);
  ir_set_attr_i(op, ATTR_cmp, CMP_eq);
  ir_set_attr_i(op, ATTR_order, ORDER_acquire);
  ir_set_attr_i(op, ATTR_scope, scope);
  return f->none;
}

Value *bi_shfl(Lower *L, Call *c) { // mask value lane; data: SHFL_*; (value, lane) is the form without a mask
  Front *f = L->f;
  if (!c->v[2]) {
    for (int i = 2; i > 0; i--) c->v[i] = c->v[i - 1], c->at[i] = c->at[i - 1];
  }
  Value *v = c->v[1];
  if (v->kind == VAL_POISON) return v;
  v = front_raise_level(L, front_to_rt(L, v, c->at[1]), c->loc);
  if (v->kind != VAL_RT || v->rt.type->rank)
    return v->kind == VAL_POISON
               ? v
               : front_err(L, c->at[1], "%s moves one scalar a lane, not a tile", c->row->name);
  Value *lane = front_int_arg(L, c, 2, FDT_int32, "a lane", true);
  if (lane->kind != VAL_RT) return f->poison;
  IrOp *op =
      ir_build(front_at(L, c->loc), OP_shfl, 2, (IrValue *[]){v->rt.ir, lane->rt.ir}, 1, &v->rt.ir->type, 0);
  ir_set_attr_i(op, ATTR_shfl, c->row->data);
  return val_rt(f, ir_result(op, 0), v->rt.type,
                front_why_new(f, c->loc, arena_printf(f->a, "%s()", c->row->name)));
}

Value *bi_ballot(Lower *L, Call *c) { // mask predicate; data: 1 = active mask, no arguments
  Front *f = L->f;
  const bool active = c->row->data;
  const FrontDtype d = f->module->lanes == 64 ? FDT_int64 : FDT_int32;
  const Type *t = type_scalar(f, elem_number(f, d), true);
  const IrType *it = front_ir_of(f, t);
  IrValue *op[1] = {NULL};
  if (!active) {
    const Value *v =
        front_raise_level(L, front_condition(L, front_to_rt(L, c->v[1], c->at[1]), c->at[1]), c->loc);
    if (v->kind != VAL_RT || v->rt.type->rank)
      return v->kind == VAL_POISON ? f->poison : front_err(L, c->at[1], "a ballot takes a scalar condition");
    op[0] = v->rt.ir;
  }
  IrOp *o = ir_build(front_at(L, c->loc), active ? OP_active_mask : OP_ballot, active ? 0 : 1, op, 1, &it, 0);
  return val_rt(f, ir_result(o, 0), t, front_why_new(f, c->loc, arena_printf(f->a, "%s()", c->row->name)));
}
