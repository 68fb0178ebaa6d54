// buffers: which shared memory each pointer comes from. A pointer keeps its buffers through arithmetic, integers, choices and loops; one
// that is loaded, or made from an integer that came from nowhere, may be any.
#include "pass/buffers.h"

typedef struct Flow {
  Buffers *b;
  Arena *arena;
  bool *known;
} Flow;

static bool is_known(void *user, const IrValue *v) { return ((Flow *)user)->known[v->id]; }

static uint64_t *set_of(Flow *f, const IrValue *v) {
  uint64_t **s = &f->b->of[v->id];
  if (!*s) *s = arena_array(f->arena, uint64_t, f->b->words);
  return *s;
}

static bool add_set(Flow *f, const IrValue *v, const uint64_t *from) {
  bool changed = !f->known[v->id];
  f->known[v->id] = true;
  if (!from) return changed;
  uint64_t any = 0;
  for (uint32_t i = 0; i < f->b->words; i++) any |= from[i];
  if (!any) return changed;
  uint64_t *to = set_of(f, v);
  for (uint32_t i = 0; i < f->b->words; i++) {
    changed |= (from[i] & ~to[i]) != 0;
    to[i] |= from[i];
  }
  return changed;
}

static bool add_one(Flow *f, const IrValue *v, uint32_t i) {
  uint64_t *to = set_of(f, v);
  const bool changed = !f->known[v->id] || !buffers_has(to, i);
  f->known[v->id] = true;
  to[i / 64] |= 1ull << i % 64;
  return changed;
}

static bool join(void *user, const IrValue *to, const IrValue *from) {
  Flow *f = user;
  return add_set(f, to, f->b->of[from->id]);
}

static bool is_shared(const IrType *t) { // a way to shared memory
  return (ir_type_is_ptr(t) && t->space == SPACE_shared) || t->kind == IR_MEMDESC;
}
static bool may_carry(const IrType *t) {
  return is_shared(t) || (t->kind != IR_TOKEN && ir_dtypes[t->dtype].cls == IR_INT && t->dtype != IR_i1);
}

static bool from_op(void *user, const IrOp *op, uint32_t result) {
  Flow *f = user;
  const IrValue *r = ir_result(op, result);
  if (op->kind == OP_mem_alloc) {
    for (uint32_t i = 0; i < f->b->n; i++) {
      if (f->b->allocs.data[i] == op) return add_one(f, r, i);
    }
    return add_set(f, r, NULL);
  }
  bool changed = false;
  if (may_carry(r->type) && (ir_op_is_pure(op) || op->kind == OP_shfl || op->kind == OP_from_thread)) {
    for (uint32_t i = 0; i < op->noperands; i++) {
      const IrValue *v = ir_operand(op, i);
      if (v) changed |= add_set(f, r, f->b->of[v->id]);
    }
  }
  changed |= add_set(f, r, NULL);
  if (is_shared(r->type) && op->kind != OP_const && !f->b->of[r->id]) changed |= add_one(f, r, f->b->n);
  return changed;
}

static bool unknown(void *user, const IrValue *v) {
  Flow *f = user;
  return is_shared(v->type) ? add_one(f, v, f->b->n) : add_set(f, v, NULL);
}
static bool iv(void *user, const IrOp *loop, const IrValue *v) {
  (void)loop;
  return add_set(user, v, NULL);
}

static bool find_alloc(IrOp *op, void *user) {
  Flow *f = user;
  if (op->kind == OP_mem_alloc) vec_push(f->arena, &f->b->allocs, op);
  return true;
}

Buffers *buffers_run(IrFunc *func, Arena *a) {
  ir_renumber(func);
  Buffers *b = arena_new(a, Buffers);
  Flow f = {b, a, arena_array(a, bool, func->next_id + 1)};
  ir_walk(func->body, find_alloc, &f);
  b->n = b->allocs.len;
  b->words = b->n / 64 + 1;
  b->nvalues = func->next_id;
  b->of = arena_array(a, uint64_t *, func->next_id + 1);
  for (uint32_t i = 0; i < func->body->args.len; i++) unknown(&f, func->body->args.data[i]);
  const PassFlow flow = {&f, is_known, join, from_op, iv, unknown, NULL};
  pass_flow_run(func, &flow, a);
  return b;
}

static BufAsync completed_by(const IrOp *op) {
  switch (op->kind) {
  case OP_copy_pack: return BUF_COPIES;
  case OP_wgmma: return BUF_PRODUCTS;
  default: {
    const IrEffects e = ir_op_effects(op);
    return (e.async_reads | e.async_writes) & RES_MEMDESC ? BUF_ENGINE : BUF_NOW;
  }
  }
}

bool buffers_access(const Buffers *b, const IrOp *op, BufAccess *out) {
  const IrEffects e = ir_op_effects(op);
  if (op->nregions || !(e.reads | e.writes)) return false;
  uint64_t any = 0;
  bool through = false; // something that leads to shared memory is an operand
  for (uint32_t i = 0; i < b->words; i++) out->which[i] = 0;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (!v || !(is_shared(v->type) || op->kind == OP_inline_asm)) continue;
    through |= is_shared(v->type);
    const uint64_t *s = v->id < b->nvalues ? b->of[v->id] : NULL;
    for (uint32_t k = 0; s && k < b->words; k++) any |= out->which[k] |= s[k];
  }
  if (!through && !any) return false;
  if (!any) out->which[b->n / 64] |= 1ull << b->n % 64;
  const bool known = (e.reads | e.writes) & RES_MEMDESC;
  out->reads = !known || (e.reads & RES_MEMDESC);
  out->writes = !known || (e.writes & RES_MEMDESC);
  out->async = completed_by(op);
  return true;
}

int64_t buffers_bytes(const IrOp *alloc) {
  const IrType *t = alloc->results[0].type;
  return ir_type_elems(t) * ir_type_bytes(t) * (t->stages ? t->stages : 1);
}

bool buffers_parts_threads(const IrOp *op) {
  const IrValue *c = NULL;
  switch (op->kind) {
  case OP_if:
  case OP_switch:
  case OP_for: c = ir_operand(op, 0); break;
  case OP_while: c = ir_operand(ir_terminator(op->regions[0]), 0); break;
  default: return false;
  }
  return c && ir_type_is_thread(c->type);
}
