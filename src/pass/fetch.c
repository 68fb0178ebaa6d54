// fetch: loads of a loop are issued a turn before they are used, into registers.
//
//   before          x = load(p(lo))                  where the loop has a first turn
//   for i, x        next = load(p(i + step))         where it has another
//                   the turn's work on x
//                   yield next
//
// For what no product reads (that goes through shared memory, see pipe): rows that are normalised one after the other, tables that say
// where blocks lie, scales. A load takes part where it orders nothing, the loop writes nothing that it may read, and its address can be
// computed ahead (turns.h). Only in innermost loops, and only as many registers as leave room for the turn's work.
#include "pass/turns.h"

enum { MOST_WORDS = 64, MOST_BESIDE_PRODUCTS = 8 }; // 32-bit registers of a thread

typedef struct Fetch {
  Pass *pass;
  Arena *arena;
  PassRoots *roots;
} Fetch;

typedef struct Body { // what a loop does
  const Fetch *f;
  uint64_t written;
  bool ordered, products, loops;
  bool loads, ahead; // ahead: something is fetched a turn early already, by pipe or a producer warp
} Body;

static bool look(IrOp *op, void *user) {
  Body *b = user;
  const IrEffects e = ir_op_effects(op);
  b->loops |= pass_is_loop(op->kind);
  b->products |= op->kind == OP_dot || op->kind == OP_dot_async;
  b->loads |= op->kind == OP_load || op->kind == OP_desc_load;
  b->ahead |= op->kind == OP_copy_async || op->kind == OP_mbarrier_wait || op->kind == OP_desc_load_async;
  if (op->nregions) return true;
  const bool own = op->kind == OP_async_wait || op->kind == OP_copy_async || op->kind == OP_fence; // pipe's
  b->ordered |= !own && op->kind != OP_barrier && (pass_orders(op) || e.barrier);
  if (op->kind != OP_copy_async) b->written |= pass_roots_written(b->f->roots, op);
  return true;
}

static int64_t words(const IrModule *m, const IrType *t) { // of a thread
  const int64_t threads = (int64_t)m->num_warps * m->lanes,
                n = t->kind == IR_TILE ? ir_type_elems(t) : threads;
  return (bits_div_up((uint64_t)n, (uint64_t)threads) * (uint64_t)ir_type_bytes(t) + 3) / 4;
}

static bool can_fetch(const Body *b, const IrOp *loop, const IrOp *op) {
  if (op->kind != OP_load || !pass_is_plain_load(op) || ir_type_is_thread(op->results[0].type)) return false;
  if (pass_roots_meet(pass_roots(b->f->roots, ir_operand(op, 0)), b->written)) return false;
  if (!pass_defined_in(ir_operand(op, 0), loop->regions[0])) return false; // the same each turn
  for (uint32_t i = 0; i < op->noperands; i++) {
    if (!turns_known(loop, ir_operand(op, i), false)) return false;
  }
  return true;
}

static void fetch(Fetch *f, IrOp *loop, IrOp *op) {
  IrBlock *body = loop->regions[0];
  IrBuilder outside = ir_builder_before(loop), top = ir_builder_before(body->first);
  outside.loc = top.loc = op->loc;
  Turn first = turn_of(loop, f->arena, outside, 0, true), then = turn_of(loop, f->arena, top, 1, false);
  IrValue *now = ir_result(op, 0), *init = turn_value(&first, now), *next = turn_value(&then, now);
  ir_op_add_operand(loop, init);
  ir_op_add_result(loop, init->type);
  ir_op_add_operand(ir_terminator(body), next);
  ir_replace_uses(now, ir_block_arg(body, init->type, now->name));
  ir_erase(op);
}

// Said of innermost loops: those around them are not looked at.
static void not_ahead(const Fetch *f, const IrOp *loop, const Body *b, const char *why) {
  if (b->loads && !b->ahead) pass_remark(f->pass, loop->loc, "this loop is not pipelined: %s", why);
}

static void visit(Fetch *f, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    for (uint32_t r = 0; r < op->nregions; r++) visit(f, op->regions[r]);
    if (op->kind == OP_while) {
      Body body = {.f = f};
      for (uint32_t r = 0; r < op->nregions; r++) ir_walk(op->regions[r], look, &body);
      if (!body.loops) not_ahead(f, op, &body, "how many turns it has is not known before");
    }
    if (op->kind != OP_for || ir_type_is_thread(ir_operand(op, 0)->type)) continue;
    const int64_t stages = ir_attr_i(op, ATTR_stages) ? ir_attr_i(op, ATTR_stages) : f->pass->m->num_stages;
    Body body = {.f = f};
    ir_walk(op->regions[0], look, &body);
    if (stages < 2 || body.loops || body.ordered) {
      if (!body.loops) not_ahead(f, op, &body, stages < 2 ? "num_stages is 1" : "it waits or orders memory");
      continue;
    }
    int64_t left = body.products ? MOST_BESIDE_PRODUCTS : MOST_WORDS;
    uint32_t n = 0, large = 0;
    for (IrOp *load = op->regions[0]->first, *next; load; load = next) {
      next = load->next;
      if (!can_fetch(&body, op, load)) continue;
      const int64_t w = words(f->pass->m, load->results[0].type);
      if (w > left) {
        pass_remark(f->pass, load->loc,
                    "this load is not issued a turn ahead: it would take %lld registers of a thread",
                    (long long)w);
        large++;
        continue;
      }
      left -= w;
      fetch(f, op, load);
      n++;
    }
    if (n)
      pass_remark(f->pass, op->loc, "this loop issues %u load%s a turn ahead", n, n > 1 ? "s" : "");
    else
      not_ahead(
          f, op, &body,
          large
              ? "its loads would take too many registers of a thread"
              : "what it loads is the same each turn, may be written in it, or lies where only its turn knows");
  }
}

Status pass_fetch(Pass *pass) {
  PASS_EACH_FUNC(pass, f) {
    Fetch x = {.pass = pass, .arena = pass->scratch, .roots = pass_roots_run(f, pass->scratch)};
    visit(&x, f->body);
    ir_renumber(f);
  }
  return ST_OK;
}
