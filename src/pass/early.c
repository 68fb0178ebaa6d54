// early: a product that does not need the one before is issued beside it, so that it runs during what is made of that one's result.
//
//   s = dot(k, q')                    s = dot(k, q')       in flight
//   what the turn makes of s: p       dp = dot(v, do')     in flight
//   dv = dot(p, do, dv)         ->    what the turn makes of s: p
//   dp = dot(v, do')                  dv = dot(p, do, dv)  in flight until the turn ends
//   what it makes of dp: ds           what it makes of dp: ds
//   dk = dot(ds, q, dk)               dk = dot(ds, q, dk)  in flight until the turn ends
//
// It hides the exponentials of flash attention's backward pass behind a product (the order is that of Dao, FlashAttention-2,
// arXiv:2307.08691, section 3.1.2, with products in flight as on Hopper). What the product reads is loaded earlier too, where nothing
// between writes. All products of a loop together must fit into the registers.
#include "pass/pass_impl.h"

enum {
  MOST_PRODUCTS = 16,
  MOST_OPS = 64, // that move with a product
  // of a thread, for the results in flight, what is made of the first, and the sums that a loop carries
  MOST_REGISTERS = 208,
  SHARED_REGISTERS = 8 // fewer where a thread has 240, not 255 (more than one group of four warps)
};

typedef struct Early {
  Pass *pass;
  IrOp *dots[MOST_PRODUCTS]; // of a loop, in the order of the text
  uint32_t ndots;
} Early;

static bool find_dots(Early *e, const IrBlock *b) {
  e->ndots = 0;
  PASS_EACH_OP(b, op) {
    if (op->nregions && op->kind != OP_reduce) return false;
    if (op->kind != OP_dot) continue;
    if (e->ndots == MOST_PRODUCTS || ir_attr_i(op, ATTR_until_use) || !lay_takes_groups(e->pass->m, op))
      return false;
    e->dots[e->ndots++] = op;
  }
  return e->ndots > 1;
}

// Is the product's result but carried on to the next turn's?
static bool is_sum(const IrOp *dot) {
  const IrUse *u = dot->results[0].uses;
  const IrValue *c = ir_operand(dot, 2);
  return u && !u->next && u->user == ir_terminator(dot->parent) && !c->def && c->block == dot->parent;
}

// The ops between `first` and `dot` that dot needs, marked; false: one of them must stay, or there are too many.
static bool needs(const IrOp *first, IrOp *dot, uint32_t *n) {
  for (uint32_t i = 0; i < dot->noperands; i++) {
    const IrValue *v = ir_operand(dot, i);
    IrOp *op = v ? v->def : NULL;
    if (!op || op->parent != dot->parent || pass_is_before(op, first)) {
      if (op == first) return false;
      continue;
    }
    if (op->aux) continue;
    if (op->kind != OP_desc_load && (op->nregions || !ir_op_is_pure(op) || op->kind == OP_dot)) return false;
    op->aux = op;
    if (++*n > MOST_OPS || !needs(first, op, n)) return false;
  }
  return true;
}

// May the marked ops and dot stand right behind first? Then there is something between them that they overtake.
static bool may_move(const IrOp *first, const IrOp *dot) {
  bool writes = false, overtakes = false;
  for (const IrOp *op = first->next; op != dot; op = op->next) {
    if (op->aux) {
      if (op->kind == OP_desc_load && writes) return false;
      continue;
    }
    const IrEffects e = ir_op_effects(op);
    writes |= pass_orders(op) || e.barrier || e.writes;
    overtakes |= op->nresults && op->results[0].type->kind == IR_TILE && op->results[0].type->rank == 2;
  }
  return overtakes;
}

static bool move_up(Early *e, IrOp *first, IrOp *dot) {
  IrBlock *b = dot->parent;
  uint32_t n = 0;
  PASS_EACH_OP(b, op) op->aux = NULL;
  const bool ok = needs(first, dot, &n) && may_move(first, dot);
  if (ok) {
    IrOp *stop = first->next; // what stays
    while (stop->aux) stop = stop->next;
    for (IrOp *op = stop, *next; op != dot; op = next) {
      next = op->next;
      if (op->aux) ir_move_before(op, stop);
    }
    ir_move_before(dot, stop);
    pass_remark(e->pass, dot->loc, "this product is computed beside the one before it");
  }
  PASS_EACH_OP(b, op) op->aux = NULL;
  return ok;
}

static int64_t room(const IrModule *m) {
  return pass_register_room(m, MOST_REGISTERS - (m->num_warps > 4 ? SHARED_REGISTERS : 0));
}

static void visit(Early *e, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    for (uint32_t r = 0; r < op->nregions; r++) visit(e, op->regions[r]);
    if (op->kind != OP_for || ir_type_is_thread(ir_operand(op, 0)->type) || !find_dots(e, op->regions[0]))
      continue;
    int64_t sums = 0;
    for (uint32_t i = 0; i < e->ndots; i++)
      if (is_sum(e->dots[i])) sums += pass_registers(e->pass->m, e->dots[i]->results[0].type);
    bool moved = false;
    for (uint32_t i = 2; i < e->ndots; i++) { // the second stands behind the first already
      IrOp *first = e->dots[0], *dot = e->dots[i];
      const int64_t both = pass_registers(e->pass->m, first->results[0].type) * 3 / 2 +
                           pass_registers(e->pass->m, dot->results[0].type);
      if (is_sum(first) || is_sum(dot) || sums + both > room(e->pass->m) || !move_up(e, first, dot)) continue;
      ir_set_attr_i(first, ATTR_until_use, 1);
      ir_set_attr_i(dot, ATTR_until_use, 1);
      moved = true;
      break;
    }
    for (uint32_t i = 0; moved && i < e->ndots; i++)
      if (is_sum(e->dots[i])) ir_set_attr_i(e->dots[i], ATTR_until_use, 1);
  }
}

Status pass_early(Pass *pass) {
  const PassMachine *machine = pass->config->machine;
  if (!machine || !machine->tma || !machine->wgmma || pass->m->num_warps % 4) return ST_OK;
  PASS_EACH_FUNC(pass, f) {
    Early e = {.pass = pass};
    visit(&e, f->body);
    ir_renumber(f);
  }
  return ST_OK;
}
