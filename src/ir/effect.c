// effect: what an op does to memory and to the order of others, and which neighbours may change places.
//
// The rows of ops.def are the only source. ir_may_swap reads them so:
//   - Global, symmetric memory and signal words may be the same bytes (a rank may be its own peer, a flag can be loaded),
//     so a write to one conflicts with any access to another. Shared memory is apart; so is the outside world.
//   - acquire: what comes after stays after. release: what comes before stays before. Both let accesses move inwards.
//     An acquire whose token only goes to `consume` orders no more than what consumes it, which depends on it by data.
//   - What goes through a pointer into shared memory is an access to shared memory.
//   - Two accesses that are not weak keep their order, whatever they access (volatile counts as not weak).
//   - Prints, assertions and clocks keep their order among each other and around waits, signals and ordered accesses.
//   - A barrier keeps every access on its side. An op without effects passes everything.
#include "ir/ir_impl.h"

#include <string.h>

enum { RES_BYTES = RES_GLOBAL | RES_SYMM | RES_SIGNAL }; // names for the same memory
enum { RES_MEMORY = RES_BYTES | RES_MEMDESC };

static bool acquires(IrOrder o) { return o == ORDER_acquire || o == ORDER_acq_rel || o == ORDER_seq_cst; }
static bool releases(IrOrder o) { return o == ORDER_release || o == ORDER_acq_rel || o == ORDER_seq_cst; }

static IrOrder join_order(IrOrder a, IrOrder b) {
  if (a == ORDER_seq_cst || b == ORDER_seq_cst) return ORDER_seq_cst;
  const bool acq = acquires(a) || acquires(b), rel = releases(a) || releases(b);
  if (acq || rel) return acq && rel ? ORDER_acq_rel : acq ? ORDER_acquire : ORDER_release;
  return a > b ? a : b;
}

static uint8_t resource_of(char c) {
  switch (c) {
  case 'g': return RES_GLOBAL;
  case 'y': return RES_SYMM;
  case 'm': return RES_MEMDESC;
  case 's': return RES_SIGNAL;
  case 'x': return RES_WORLD;
  default: return 0;
  }
}

// Accesses through a pointer say "global" in their rows; the pointer's space knows better.
static void place_access(const IrOp *op, IrEffects *e) {
  const IrValue *p = ir_operand(op, 0);
  if (!p || !ir_type_is_ptr(p->type) || p->type->space == SPACE_global) return;
  switch (op->kind) {
  case OP_load:
  case OP_store:
  case OP_atomic_rmw:
  case OP_atomic_cas:
  case OP_load_pack:
  case OP_store_pack:
  case OP_add_pack:
    if (e->reads & RES_GLOBAL) e->reads ^= RES_GLOBAL | RES_MEMDESC;
    if (e->writes & RES_GLOBAL) e->writes ^= RES_GLOBAL | RES_MEMDESC;
    return;
  default: return;
  }
}

IrEffects ir_op_effects(const IrOp *op) {
  IrEffects e = {0};
  if (op->kind == OP_inline_asm && ir_attr_i(op, ATTR_pure)) return e;
  if (op->kind == OP_from_thread && ir_attr_i(op, ATTR_uniform)) return e;
  const char *p = ir_ops[op->kind].effects;
  while (*p) {
    const uint8_t res = resource_of(*p);
    uint8_t r = 0, w = 0;
    bool async = false;
    for (; *p && *p != ' '; p++) {
      switch (*p) {
      case 'r': r = res; break;
      case 'w': w = res; break;
      case 'u': r = w = res; break;
      case 'b': e.barrier = true; break;
      case 'a': async = true; break;
      case 'o':
        e.order = join_order(e.order, (IrOrder)ir_attr_i(op, ATTR_order));
        e.scope = (IrScope)ir_attr_i(op, ATTR_scope);
        break;
      case 'A':
      case 'L':
        e.order = join_order(e.order, *p == 'A' ? ORDER_acquire : ORDER_release);
        e.scope = (IrScope)ir_attr_i(op, ATTR_scope);
        break;
      default: break; // the resource itself
      }
    }
    e.reads |= r;
    e.writes |= w;
    if (async) e.async_reads |= r, e.async_writes |= w;
    while (*p == ' ') p++;
  }
  if (e.order == ORDER_weak && ir_attr_i(op, ATTR_volatile)) e.order = ORDER_relaxed;
  place_access(op, &e);
  return e;
}

IrEffects ir_op_effects_deep(const IrOp *op) {
  IrEffects e = ir_op_effects(op);
  for (uint32_t i = 0; i < op->nregions; i++) {
    for (const IrOp *o = op->regions[i]->first; o; o = o->next) {
      const IrEffects x = ir_op_effects_deep(o);
      e.reads |= x.reads, e.writes |= x.writes;
      e.async_reads |= x.async_reads, e.async_writes |= x.async_writes;
      e.barrier |= x.barrier;
      e.order = join_order(e.order, x.order);
      if (x.scope > e.scope) e.scope = x.scope;
    }
  }
  return e;
}

static bool is_nothing(const IrEffects *e) { return !e->reads && !e->writes && !e->barrier && !e->order; }

static bool overlap(uint8_t written, const IrEffects *by) {
  const uint8_t touched = by->reads | by->writes;
  return (written & touched) || ((written & RES_BYTES) && (touched & RES_BYTES));
}

static bool uses_result(const IrOp *user, const IrOp *of) {
  for (uint32_t i = 0; i < user->noperands; i++) {
    if (user->operands[i].value && user->operands[i].value->def == of) return true;
  }
  return false;
}

// Its token goes somewhere, and only into `consume`.
static bool orders_named_values_only(const IrOp *op) {
  if (op->nresults != 1 || op->results[0].type->kind != IR_TOKEN || !op->results[0].uses) return false;
  for (const IrUse *u = op->results[0].uses; u; u = u->next) {
    if (u->user->kind != OP_consume) return false;
  }
  return true;
}

static bool is_event(const IrEffects *e) { return e->order || ((e->reads | e->writes) & RES_SIGNAL); }

bool ir_may_swap(const IrOp *a, const IrOp *b) {
  if ((ir_ops[a->kind].traits | ir_ops[b->kind].traits) & TRAIT_TERMINATOR) return false;
  if (uses_result(b, a) || uses_result(a, b)) return false;
  IrEffects x = ir_op_effects_deep(a), y = ir_op_effects_deep(b);
  if (is_nothing(&x) || is_nothing(&y)) return true;
  if (x.barrier || y.barrier) return false;
  if (overlap(x.writes, &y) || overlap(y.writes, &x)) return false;
  if (x.order && y.order) return false;
  // people and clocks see the order of what they see, waits included
  const bool x_world = (x.reads | x.writes) & RES_WORLD, y_world = (y.reads | y.writes) & RES_WORLD;
  if (x_world && (y_world || is_event(&y))) return false;
  if (y_world && is_event(&x)) return false;
  if (acquires(x.order) && ((y.reads | y.writes) & RES_MEMORY) && !orders_named_values_only(a)) return false;
  if (releases(y.order) && ((x.reads | x.writes) & RES_MEMORY)) return false;
  return true;
}

static bool has_no_effects(const IrOp *op) {
  const IrEffects e = ir_op_effects_deep(op);
  return is_nothing(&e);
}

// Everything below is pure; terminators only hand values over.
static bool region_is_pure(const IrBlock *b) {
  for (const IrOp *o = b->first; o; o = o->next) {
    if (!(ir_ops[o->kind].traits & TRAIT_TERMINATOR) && !ir_op_is_pure(o)) return false;
  }
  return true;
}

bool ir_op_is_pure(const IrOp *op) {
  switch (op->kind) {
  case OP_inline_asm: return ir_attr_i(op, ATTR_pure) != 0;
  case OP_from_thread: return ir_attr_i(op, ATTR_uniform) != 0; // nothing is exchanged
  case OP_if:
  case OP_for:
  case OP_while:
  case OP_switch: break;
  default:
    if (!(ir_ops[op->kind].traits & TRAIT_PURE)) return false;
    if (!op->nregions) return has_no_effects(op);
  }
  for (uint32_t i = 0; i < op->nregions; i++) {
    if (!region_is_pure(op->regions[i])) return false;
  }
  return true;
}
