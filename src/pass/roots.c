// roots: which parameters a pointer may come from (an analysis).
//
// needs:  no calls (a call's result has an unknown root).
// A pointer keeps its roots through arithmetic, shape changes, choices, loops and symm_at; what is loaded from memory,
// made from an integer, or carried in from nowhere is PASS_ROOT_UNKNOWN. A descriptor has the roots of its base.
#include "pass/pass_impl.h"

struct PassRoots {
  uint64_t *bits; // by value id
  bool *known;
  uint32_t n;
};

enum { MAX_PARAMS = 62 };

static bool is_known(void *user, const IrValue *v) { return ((PassRoots *)user)->known[v->id]; }

static bool add(PassRoots *r, const IrValue *v, uint64_t bits) {
  const bool changed = !r->known[v->id] || (bits & ~r->bits[v->id]);
  r->known[v->id] = true;
  r->bits[v->id] |= bits;
  return changed;
}

static bool join(void *user, const IrValue *to, const IrValue *from) {
  PassRoots *r = user;
  return add(r, to, r->bits[from->id]);
}

static bool carries(const IrType *t) {
  return ir_type_is_ptr(t) || t->kind == IR_DESC || t->kind == IR_MEMDESC;
}

static bool from_op(void *user, const IrOp *op, uint32_t result) {
  PassRoots *r = user;
  uint64_t bits = 0;
  if (!carries(ir_result(op, result)->type)) return add(r, ir_result(op, result), 0);
  switch (op->kind) {
  case OP_const: break; // no memory
  case OP_load:
  case OP_load_vec:
  case OP_mem_load:
  case OP_mem_get:
  case OP_int2ptr:
  case OP_call:
  case OP_inline_asm:
  case OP_atomic_rmw:
  case OP_atomic_cas:
  case OP_desc_load: bits = PASS_ROOT_UNKNOWN; break;
  case OP_reduce:
  case OP_scan:
    bits = PASS_ROOT_UNKNOWN; // a fresh value of the same pointers; fall through for their roots too
    // fall through
  default:
    for (uint32_t i = 0; i < op->noperands; i++) {
      if (ir_operand(op, i)) bits |= r->bits[ir_operand(op, i)->id];
    }
    if (op->kind == OP_symm_at) bits |= PASS_ROOT_PEER;
  }
  return add(r, ir_result(op, result), bits);
}

static bool unknown(void *user, const IrValue *v) {
  return add(user, v, carries(v->type) ? PASS_ROOT_UNKNOWN : 0);
}
static bool iv(void *user, const IrOp *loop, const IrValue *v) {
  (void)loop;
  return add(user, v, 0);
}

PassRoots *pass_roots_run(IrFunc *f, Arena *a) {
  ir_renumber(f);
  PassRoots *r = arena_new(a, PassRoots);
  r->n = f->next_id;
  r->bits = arena_array(a, uint64_t, f->next_id + 1);
  r->known = arena_array(a, bool, f->next_id + 1);
  for (uint32_t i = 0; i < f->body->args.len; i++) {
    const IrValue *v = f->body->args.data[i];
    add(r, v, !carries(v->type) ? 0 : i < MAX_PARAMS ? 1ull << i : PASS_ROOT_UNKNOWN);
  }
  const PassFlow flow = {r, is_known, join, from_op, iv, unknown, NULL};
  pass_flow_run(f, &flow, a);
  return r;
}

uint64_t pass_roots(const PassRoots *r, const IrValue *v) {
  return v && v->id < r->n && r->known[v->id] ? r->bits[v->id] : PASS_ROOT_UNKNOWN;
}

uint64_t pass_roots_written(const PassRoots *r, const IrOp *op) {
  if (op->nregions || !(ir_op_effects(op).writes & (RES_GLOBAL | RES_SYMM))) return 0;
  const IrValue *p = op->noperands ? ir_operand(op, 0) : NULL;
  return p && (ir_type_is_ptr(p->type) || p->type->kind == IR_DESC) ? pass_roots(r, p) : PASS_ROOT_UNKNOWN;
}

bool pass_roots_meet(uint64_t own, uint64_t written) {
  return written && ((own & written) || ((own | written) & (PASS_ROOT_UNKNOWN | PASS_ROOT_PEER)));
}
