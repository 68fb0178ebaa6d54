// uniform: which thread-level values are the same in all threads, or in all lanes of a warp (an analysis).
//
// needs:  nothing.
// Differences start at tid, at accesses that threads make at different times, and at shuffles; they spread through
// operands, through the condition of an `if` to its results, and through the exit of a loop to what it carries: threads
// leave such a loop in different iterations. tid / 32 and what all lanes agree on by ballot are warp-uniform.
#include "pass/pass_impl.h"

struct PassUniform {
  uint8_t *facts; // by value id: 0 none yet, else 1 + PassUniformity
  uint32_t n;
  int lanes;
};

static bool add(PassUniform *u, const IrValue *v, PassUniformity x) {
  if (!ir_type_is_thread(v->type)) x = PASS_UNIFORM;
  if (u->facts[v->id] > (uint8_t)x) return false;
  u->facts[v->id] = (uint8_t)(x + 1);
  return true;
}

static PassUniformity get(const PassUniform *u, const IrValue *v) {
  return u->facts[v->id] ? (PassUniformity)(u->facts[v->id] - 1) : PASS_UNIFORM;
}

static bool is_known(void *user, const IrValue *v) { return ((PassUniform *)user)->facts[v->id] != 0; }
static bool join(void *user, const IrValue *to, const IrValue *from) {
  return add(user, to, get(user, from));
}
static bool unknown(void *user, const IrValue *v) { return add(user, v, PASS_DIVERGENT); }

static PassUniformity of_operands(const PassUniform *u, const IrOp *op) {
  PassUniformity x = PASS_UNIFORM;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (v && get(u, v) > x) x = get(u, v);
  }
  return x;
}

// tid divided so that the lanes of a warp agree.
static bool is_warp_index(const PassUniform *u, const IrOp *op) {
  const IrValue *a = ir_operand(op, 0);
  int64_t k;
  if (!a->def || a->def->kind != OP_tid || !ir_const_int(ir_operand(op, 1), &k) || k <= 0) return false;
  if (op->kind == OP_div_s || op->kind == OP_div_u) return k % u->lanes == 0;
  return k < 31 && ((int64_t)1 << k) % u->lanes == 0;
}

static bool from_op(void *user, const IrOp *op, uint32_t r) {
  PassUniform *u = user;
  PassUniformity x = of_operands(u, op);
  switch (op->kind) {
  case OP_tid:
  case OP_timer:
  case OP_smid:
  case OP_atomic_rmw:
  case OP_atomic_cas:
  case OP_inline_asm: x = PASS_DIVERGENT; break;
  case OP_ballot:
  case OP_active_mask: x = PASS_WARP_UNIFORM; break;
  case OP_shfl: // from one lane: all lanes get the same
    if (x != PASS_UNIFORM)
      x = ir_attr_i(op, ATTR_shfl) == SHFL_idx && get(u, ir_operand(op, 1)) <= PASS_WARP_UNIFORM
              ? PASS_WARP_UNIFORM
              : PASS_DIVERGENT;
    break;
  case OP_load: // another thread may look later, unless the access is one that cannot race
    if (ir_attr_i(op, ATTR_order) != ORDER_weak || ir_attr_i(op, ATTR_volatile)) x = PASS_DIVERGENT;
    break;
  case OP_div_s:
  case OP_div_u:
  case OP_shr_s:
  case OP_shr_u:
    if (x == PASS_DIVERGENT && is_warp_index(u, op)) x = PASS_WARP_UNIFORM;
    break;
  default: break;
  }
  return add(u, ir_result(op, r), x);
}

static bool iv(void *user, const IrOp *loop, const IrValue *v) {
  PassUniform *u = user;
  PassUniformity x = PASS_UNIFORM;
  for (uint32_t i = 0; i < 3; i++) {
    if (get(u, ir_operand(loop, i)) > x) x = get(u, ir_operand(loop, i));
  }
  return add(u, v, x);
}

// What a divergent condition chooses, or a loop with a divergent exit carries, is as divergent as the condition.
static bool control(void *user, IrOp *op) {
  PassUniform *u = user;
  PassUniformity x = PASS_UNIFORM;
  switch (op->kind) {
  case OP_if:
  case OP_switch: x = get(u, ir_operand(op, 0)); break;
  case OP_for:
    for (uint32_t i = 0; i < 3; i++) {
      if (get(u, ir_operand(op, i)) > x) x = get(u, ir_operand(op, i));
    }
    break;
  default: x = get(u, ir_operand(ir_terminator(op->regions[0]), 0));
  }
  if (x == PASS_UNIFORM) return false;
  bool changed = false;
  for (uint32_t i = 0; i < op->nresults; i++) changed |= add(u, ir_result(op, i), x);
  for (uint32_t r = 0; r < op->nregions && pass_is_loop(op->kind); r++) {
    for (uint32_t i = 0; i < op->regions[r]->args.len; i++)
      changed |= add(u, op->regions[r]->args.data[i], x);
  }
  return changed;
}

PassUniform *pass_uniform_run(IrFunc *f, Arena *a) {
  ir_renumber(f);
  PassUniform *u = arena_new(a, PassUniform);
  u->n = f->next_id;
  u->facts = arena_array(a, uint8_t, f->next_id + 1);
  u->lanes = f->module->lanes > 0 ? f->module->lanes : 32;
  for (uint32_t i = 0; i < f->body->args.len;
       i++) // a helper not yet inlined may get anything at thread level
    add(u, f->body->args.data[i], f->is_kernel ? PASS_UNIFORM : PASS_DIVERGENT);
  const PassFlow flow = {u, is_known, join, from_op, iv, unknown, control};
  pass_flow_run(f, &flow, a);
  return u;
}

PassUniformity pass_uniform(const PassUniform *u, const IrValue *v) {
  if (!v || !ir_type_is_thread(v->type)) return PASS_UNIFORM;
  return v->id < u->n && u->facts[v->id] ? get(u, v) : PASS_DIVERGENT;
}
