// prefetch: while a loop works on one row, asks for the row of its next iteration.
//
// needs:  the placed stage.
// keeps:  everything: a prefetch changes nothing that a program can see, and its address need not exist.
// breaks: nothing.
//
// On a GPU num_stages overlaps the loads of the next iterations with this one's work; on a CPU this does it. A kernel that
// goes over a row several times (softmax: maximum, then sum) reads it from memory the first time only and computes the
// next. Rows that one instance takes are rarely neighbours, so the hardware does not foresee them. Hence:
//
//     for row                                     for row
//       for i: load_vec p(row) + i     (first)      for i: load_vec p(row) + i
//       for i: load_vec p(row) + i     (again)      q = p(row + step)
//                                                   for i: load_vec p(row) + i; prefetch q + i
//
// where p(row) is made of pure scalar ops of the outer loop's body. Of the loops that read the row again, the one with most
// work gets the prefetch. A loop of one stage, or one that reads each row once, is left alone.
#include "pass/pass_impl.h"

enum { MOST_DEPTH = 16, MOST_STREAMS = 8, LINE = 64 }; // LINE: bytes of a cache line

typedef struct Stream { // a base address that several inner loops of one outer loop read from
  IrValue *base;
  IrOp *best, *load; // the inner loop with most work after the first, and its load
  int loops, work;
} Stream;

static bool depends_on(const IrValue *v, const IrValue *iv, const IrBlock *body, int depth) {
  if (v == iv) return true;
  if (!v->def || v->def->parent != body || depth == MOST_DEPTH) return false;
  for (uint32_t i = 0; i < v->def->noperands; i++) {
    const IrValue *o = ir_operand(v->def, i);
    if (o && depends_on(o, iv, body, depth + 1)) return true;
  }
  return false;
}

// Can v be computed for another iteration from scalars alone?
static bool replayable(const IrValue *v, const IrValue *iv, const IrBlock *body, int depth) {
  if (v == iv) return true;
  if (v->def ? v->def->parent != body : v->block != body)
    return true; // from outside: the same in every iteration
  if (!v->def || depth == MOST_DEPTH || v->def->nregions || !(ir_ops[v->def->kind].traits & TRAIT_PURE))
    return false;
  if (v->type->kind != IR_SCALAR && v->type->kind != IR_PTR) return false;
  for (uint32_t i = 0; i < v->def->noperands; i++) {
    const IrValue *o = ir_operand(v->def, i);
    if (o && !replayable(o, iv, body, depth + 1)) return false;
  }
  return true;
}

static IrValue *replay(IrBuilder *b, IrValue *v, const IrValue *iv, const IrBlock *body, Map *made) {
  IrValue *known = map_getp(made, v);
  if (known) return known;
  if (!depends_on(v, iv, body, 0)) return v;
  for (uint32_t i = 0; i < v->def->noperands; i++) {
    IrValue *o = ir_operand(v->def, i);
    if (o) map_setp(made, o, replay(b, o, iv, body, made));
  }
  ir_clone_op(b, v->def, made);
  return map_getp(made, v);
}

static int work_of(const IrBlock *b) {
  int n = 0;
  PASS_EACH_OP(b, op) n += op->kind == OP_math ? 16 : 1;
  return n;
}

// The unmasked load of an inner loop whose address is `base + something of the inner loop`, or NULL.
static IrOp *row_load(const IrOp *loop, const IrBlock *outer) {
  PASS_EACH_OP(loop->regions[0], op) {
    if (op->kind != OP_load_vec || ir_operand(op, 1)) continue;
    const IrValue *p = ir_operand(op, 0);
    if (!p->def || p->def->kind != OP_ptr_add || p->def->parent != loop->regions[0]) continue;
    const IrValue *base = ir_operand(p->def, 0);
    if (base->def && base->def->parent == outer) return op;
  }
  return NULL;
}

static int find_streams(const IrOp *outer, Stream streams[MOST_STREAMS]) {
  const IrBlock *body = outer->regions[0];
  const IrValue *iv = body->args.data[0];
  int n = 0;
  PASS_EACH_OP(body, loop) {
    if (loop->kind != OP_for) continue;
    IrOp *load = row_load(loop, body);
    if (!load) continue;
    IrValue *base = ir_operand(ir_operand(load, 0)->def, 0);
    int at = 0;
    while (at < n && streams[at].base != base) at++;
    if (at == n) {
      if (n == MOST_STREAMS || !depends_on(base, iv, body, 0) || !replayable(base, iv, body, 0)) continue;
      streams[n++] = (Stream){.base = base, .loops = 1};
      continue;
    }
    const int work = work_of(loop->regions[0]);
    streams[at].loops++;
    if (work <= streams[at].work) continue;
    streams[at].best = loop;
    streams[at].load = load;
    streams[at].work = work;
  }
  return n;
}

static void ask_early(Pass *pass, IrOp *outer, const Stream *s) {
  IrBlock *body = outer->regions[0];
  IrValue *iv = body->args.data[0];
  IrBuilder b = ir_builder_before(s->best);
  b.loc = s->load->loc;
  Map made;
  map_init(&made, pass->scratch);
  map_setp(&made, iv, ir_binary(&b, OP_add, iv, ir_operand(outer, 2)));
  IrValue *next = replay(&b, s->base, iv, body, &made);
  b = ir_builder_before(s->load);
  b.loc = s->load->loc;
  IrValue *at = ir_ptr_add(&b, next, ir_operand(ir_operand(s->load, 0)->def, 1));
  const IrType *row = ir_result(s->load, 0)->type;
  const int64_t line = LINE / ir_type_bytes(row); // elements
  for (int64_t k = 0; k < ir_type_elems(row); k += line) {
    IrValue *p = at;
    if (k) p = ir_ptr_add(&b, at, ir_const_i(&b, ir_type_scalar(pass->m->ctx, IR_i32, LEVEL_program), k));
    ir_build(&b, OP_prefetch, 1, &p, 0, NULL, 0);
  }
  pass_remark(pass, s->load->loc, "the next row is asked for while this one is computed (num_stages > 1)");
}

static void block(Pass *p, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    for (uint32_t r = 0; r < op->nregions; r++) block(p, op->regions[r]);
    if (op->kind != OP_for) continue;
    const int64_t stages = ir_attr_i(op, ATTR_stages) ? ir_attr_i(op, ATTR_stages) : p->m->num_stages;
    if (stages < 2) continue;
    Stream streams[MOST_STREAMS];
    const int n = find_streams(op, streams);
    for (int i = 0; i < n; i++) {
      if (streams[i].best) ask_early(p, op, &streams[i]);
    }
  }
}

Status pass_prefetch(Pass *p) {
  PASS_EACH_FUNC(p, f) block(p, f->body);
  return ST_OK;
}
