// edit: changes to the IR that several passes make: constants, putting a region in place of its op, loops and ifs with
// fewer results.
#include "pass/pass_impl.h"

#include <string.h>

bool pass_const(const IrValue *v, uint64_t *bits) {
  for (; v && v->def; v = ir_operand(v->def, 0)) {
    if (v->def->kind == OP_const) {
      *bits = (uint64_t)ir_attr_i(v->def, ATTR_value) & pass_mask(pass_elem_bits(v->type));
      return true;
    }
    if (v->def->kind != OP_splat && v->def->kind != OP_to_thread) return false;
  }
  return false;
}

IrValue *pass_const_bits(IrBuilder *b, const IrType *t, uint64_t bits) {
  IrOp *op = ir_build(b, OP_const, 0, NULL, 1, &t, 0);
  ir_set_attr_i(op, ATTR_value, (int64_t)(bits & pass_mask(pass_elem_bits(t))));
  return ir_result(op, 0);
}

bool pass_is_loop(IrOpKind k) { return k == OP_for || k == OP_while; }

bool pass_is_plain_load(const IrOp *op) {
  return (op->kind == OP_load || op->kind == OP_load_vec) && ir_attr_i(op, ATTR_order) == ORDER_weak &&
         !ir_attr_i(op, ATTR_volatile);
}

// Writes others may see, orders them, or looks at a signal: what a plain load must not cross.
static bool changes_memory(const IrOp *op) {
  const IrEffects e = ir_op_effects(op);
  return (e.writes & ~RES_WORLD) || (e.reads & RES_SIGNAL) || e.barrier || e.order != ORDER_weak;
}

bool pass_mark_memory(IrBlock *b) {
  bool any = false;
  PASS_EACH_OP(b, op) {
    bool changes = changes_memory(op);
    for (uint32_t r = 0; r < op->nregions; r++) changes |= pass_mark_memory(op->regions[r]);
    op->aux = changes ? (void *)1 : NULL;
    any |= changes;
  }
  return any;
}

void pass_clear_marks(IrBlock *b) {
  PASS_EACH_OP(b, op) {
    op->aux = NULL;
    for (uint32_t r = 0; r < op->nregions; r++) pass_clear_marks(op->regions[r]);
  }
}

const IrType *pass_as_matrix(IrCtx *ctx, const IrType *t) {
  if (t->rank < 2) return NULL;
  for (int i = 0; i < t->rank - 2; i++) {
    if (t->shape[i] != 1) return NULL;
  }
  return ir_type_with_shape(ctx, ir_type_with_layout(ctx, t, NULL), 2, &t->shape[t->rank - 2]);
}

bool pass_rmw_is_neutral(const IrOp *op) {
  uint64_t c;
  if (op->kind != OP_atomic_rmw || !pass_const(ir_operand(op, 1), &c)) return false;
  switch ((IrRmw)ir_attr_i(op, ATTR_rmw)) {
  case RMW_add:
  case RMW_or:
  case RMW_xor: return c == 0;
  case RMW_and: return c == pass_mask(pass_elem_bits(ir_operand(op, 1)->type));
  default: return false;
  }
}

IrCmp pass_swapped(IrCmp p) {
  static const IrCmp swapped[CMP_COUNT] = {CMP_eq,  CMP_ne,  CMP_sgt, CMP_sge, CMP_slt,
                                           CMP_sle, CMP_ugt, CMP_uge, CMP_ult, CMP_ule};
  return swapped[p];
}

IrCmp pass_inverted(IrCmp p) {
  static const IrCmp inverted[CMP_COUNT] = {CMP_ne,  CMP_eq,  CMP_sge, CMP_sgt, CMP_sle,
                                            CMP_slt, CMP_uge, CMP_ugt, CMP_ule, CMP_ult};
  return inverted[p];
}

IrValue *pass_int_as(IrBuilder *b, IrValue *v, const IrType *t) {
  const int from = pass_elem_bits(v->type), to = pass_elem_bits(t);
  return from == to ? v : ir_cast(b, from < to ? OP_ext_s : OP_trunc, v, t);
}

bool pass_defined_in(const IrValue *v, const IrBlock *b) {
  for (const IrBlock *at = v->block; at; at = at->owner ? at->owner->parent : NULL) {
    if (at == b) return true;
  }
  return false;
}

void pass_copy_attrs(IrOp *to, const IrOp *from) {
  for (uint32_t i = 0; i < from->nattrs; i++) {
    ir_set_attr_i(to, from->attrs[i].name, 0);
    to->attrs[i] = from->attrs[i]; // sorted by name in both; the values are never changed in place
  }
}

// A string is interned: its address stands for it.
const int64_t *pass_attr_words(const IrAttr *a, uint32_t *n) {
  enum { ONE_WORD, MANY };
#define KIND_INT ONE_WORD
#define KIND_BOOL ONE_WORD
#define KIND_ENUM ONE_WORD
#define KIND_BITS ONE_WORD
#define KIND_DTYPE ONE_WORD
#define KIND_INTS MANY
#define KIND_STR ONE_WORD
#define KIND_SYM ONE_WORD
  static const uint8_t kinds[ATTR_COUNT] = {
#define ATTR(name, kind, enumtype) KIND_##kind,
#include "ir/attrs.def"
#undef ATTR
  };
  _Static_assert(sizeof a->s == sizeof a->i, "a pointer is a word");
  *n = kinds[a->name] == MANY ? a->ints.n : 1;
  return kinds[a->name] == MANY ? a->ints.v : &a->i;
}

bool pass_same_attrs(const IrOp *a, const IrOp *b) {
  if (a->nattrs != b->nattrs) return false;
  for (uint32_t i = 0; i < a->nattrs; i++) {
    uint32_t n, m;
    const int64_t *x = pass_attr_words(&a->attrs[i], &n), *y = pass_attr_words(&b->attrs[i], &m);
    if (a->attrs[i].name != b->attrs[i].name || n != m || (n && memcmp(x, y, n * sizeof *x) != 0))
      return false;
  }
  return true;
}

IrValue *pass_like(IrBuilder *b, const IrOp *op, uint32_t n, IrValue *const *operands, const IrType *result) {
  IrOp *made = ir_build(b, op->kind, n, operands, 1, &result, 0);
  pass_copy_attrs(made, op);
  return ir_result(made, 0);
}

void pass_splice(IrBlock *b, IrOp *before, IrValue *const *args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; i++) ir_replace_uses(b->args.data[i], args[i]);
  while (b->first != b->last) ir_move_before(b->first, before);
}

static uint32_t pick(IrValue **out, const IrOp *op, uint32_t skip, const bool *keep) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (i < skip || keep[i - skip]) out[n++] = ir_operand(op, i);
  }
  return n;
}

void pass_narrow_terminator(IrBlock *b, uint32_t skip, const bool *keep, Arena *scratch) {
  IrOp *old = ir_terminator(b);
  IrValue **vs = arena_array(scratch, IrValue *, old->noperands + 1);
  const uint32_t n = pick(vs, old, skip, keep);
  if (n == old->noperands) return;
  IrBuilder at = ir_builder_before(old);
  ir_build(&at, old->kind, n, vs, 0, NULL, 0);
  ir_erase(old);
}

static void narrow_args(IrBlock *b, uint32_t skip, const bool *keep) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->args.len; i++) {
    if (i >= skip && !keep[i - skip]) continue;
    b->args.data[n] = b->args.data[i];
    b->args.data[n]->index = n;
    n++;
  }
  b->args.len = n;
}

IrOp *pass_narrow(IrOp *op, const bool *keep_result, const bool *keep_arg, Arena *scratch) {
  IrValue **operands = arena_array(scratch, IrValue *, op->noperands + 1);
  const IrType **types = arena_array(scratch, const IrType *, op->nresults + 1);
  const uint32_t skip = op->kind == OP_for ? 3 : op->kind == OP_while ? 0 : op->noperands;
  const uint32_t n = pick(operands, op, skip, keep_arg);
  uint32_t nres = 0;
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (keep_result[i]) types[nres++] = op->results[i].type;
  }
  IrBuilder at = ir_builder_before(op);
  IrOp *made = ir_build(&at, op->kind, n, operands, nres, types, op->nregions);
  pass_copy_attrs(made, op);
  nres = 0;
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (!keep_result[i]) continue;
    made->results[nres].name = op->results[i].name;
    ir_replace_uses(ir_result(op, i), ir_result(made, nres++));
  }
  for (uint32_t r = 0; r < op->nregions; r++) {
    made->regions[r] = op->regions[r];
    made->regions[r]->owner = made;
  }
  op->nregions = 0;
  ir_erase(op);
  switch (made->kind) {
  case OP_for:
    narrow_args(made->regions[0], 1, keep_arg);
    pass_narrow_terminator(made->regions[0], 0, keep_arg, scratch);
    break;
  case OP_while:
    narrow_args(made->regions[0], 0, keep_arg);
    pass_narrow_terminator(made->regions[0], 1, keep_result, scratch);
    narrow_args(made->regions[1], 0, keep_result);
    pass_narrow_terminator(made->regions[1], 0, keep_arg, scratch);
    break;
  default:
    for (uint32_t r = 0; r < made->nregions; r++)
      pass_narrow_terminator(made->regions[r], 0, keep_result, scratch);
  }
  return made;
}

bool pass_orders(const IrOp *op) {
  const IrOrder order = ir_op_effects(op).order;
  if (op->kind == OP_atomic_rmw && !op->results[0].uses) return order > ORDER_relaxed;
  return order != ORDER_weak;
}

IrOp *pass_first_user(const IrValue *v) {
  IrOp *op = v->def ? v->def->next : v->block->first;
  for (; op; op = op->next) {
    for (uint32_t i = 0; i < op->noperands; i++) {
      if (ir_operand(op, i) == v) return op;
    }
  }
  return NULL;
}

IrValue *pass_ring_stage(IrBuilder *b, IrValue *ring, IrValue *stage) {
  IrCtx *ctx = b->m->ctx;
  const IrType *t = ring->type;
  const IrType *one =
      ir_type_with_layout(ctx, ir_type_memdesc(ctx, t->dtype, t->space, t->rank, t->shape, 0), t->layout);
  IrValue *ops[2] = {ring, stage};
  return ir_result(ir_build(b, OP_mem_view, 2, ops, 1, &one, 0), 0);
}

void pass_async_fence(IrBuilder *b) {
  IrOp *fence = ir_build(b, OP_fence, 0, NULL, 0, NULL, 0);
  ir_set_attr_i(fence, ATTR_proxy, PROXY_async);
  ir_set_attr_i(fence, ATTR_scope, SCOPE_block);
}

int64_t pass_trip_count(const IrOp *op) {
  int64_t lo, hi, step;
  if (!ir_const_int(ir_operand(op, 0), &lo) || !ir_const_int(ir_operand(op, 1), &hi)) return -1;
  if (lo == hi) return 0;
  if (!ir_const_int(ir_operand(op, 2), &step) || step == 0) return -1;
  __int128 a = lo, b = hi;
  if (ir_attr_i(op, ATTR_uns_iv)) {
    const int bits = ir_dtypes[ir_operand(op, 0)->type->dtype].bits;
    a = (uint64_t)lo & pass_mask(bits);
    b = (uint64_t)hi & pass_mask(bits);
    if (step < 0) return -1;
  }
  const __int128 span = step > 0 ? b - a : a - b, by = step > 0 ? step : -(__int128)step;
  if (span <= 0) return 0;
  const __int128 n = (span + by - 1) / by;
  return n > INT64_MAX ? -1 : (int64_t)n;
}

int64_t pass_registers(const IrModule *m, const IrType *t) {
  return ir_type_elems(t) * ir_type_bytes(t) / ((int64_t)m->num_warps * m->lanes * 4);
}

int64_t pass_register_room(const IrModule *m, int64_t most) {
  enum { SPARE = 40 };
  const int64_t own = m->max_registers ? m->max_registers - SPARE : most;
  return own < most ? own : most;
}

bool pass_is_before(const IrOp *a, const IrOp *b) {
  while (a && a != b) a = a->next;
  return a != NULL;
}
