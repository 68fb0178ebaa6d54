// inline: puts the bodies of called functions in place of the calls.
//
// needs:  nothing.
// keeps:  every effect; source lines stay those of the callee.
// breaks: IrParam's reads and writes, wait_class.
//
// Callees come before callers, so each body is copied free of calls. Recursion is an error that names the chain; so is
// a module that grows past MAX_OPS. Where the module has kernels, functions that only served to be called go away.
#include "pass/pass_impl.h"

enum { MAX_OPS = 2000000 };

typedef enum Mark { NEW = 0, OPEN = 1, DONE = 2 } Mark;

typedef struct Inline {
  Pass *p;
  Map marks; // IrFunc * -> Mark
  Map sizes; // IrFunc * -> ops, once done
  uint64_t ops;
} Inline;

static uint64_t count(const IrBlock *b) {
  uint64_t n = 0;
  PASS_EACH_OP(b, op) {
    n++;
    for (uint32_t r = 0; r < op->nregions; r++) n += count(op->regions[r]);
  }
  return n;
}

static void put(IrOp *call, const IrFunc *callee, Arena *scratch) {
  IrBuilder b = ir_builder_before(call);
  Map values;
  map_init(&values, scratch);
  for (uint32_t i = 0; i < callee->body->args.len; i++)
    map_setp(&values, callee->body->args.data[i], ir_operand(call, i));
  const IrOp *end = ir_terminator(callee->body);
  for (const IrOp *op = callee->body->first; op != end; op = op->next) ir_clone_op(&b, op, &values);
  for (uint32_t i = 0; i < call->nresults; i++) {
    IrValue *v = map_getp(&values, ir_operand(end, i));
    ir_replace_uses(ir_result(call, i), v);
    if (v && !v->name) v->name = ir_result(call, i)->name;
  }
  ir_erase(call);
}

static Status func(Inline *in, IrFunc *f);

static bool fits(const IrOp *call, const IrFunc *callee) {
  if (call->noperands != callee->body->args.len || call->nresults != callee->results.len) return false;
  for (uint32_t i = 0; i < call->noperands; i++) {
    if (!ir_operand(call, i) || ir_operand(call, i)->type != callee->body->args.data[i]->type) return false;
  }
  const IrOp *end = ir_terminator(callee->body);
  return end && end->kind == OP_return && end->noperands == call->nresults;
}

static Status call(Inline *in, IrOp *op) {
  const IrAttr *name = ir_attr(op, ATTR_callee);
  IrFunc *callee = name ? ir_func_find(in->p->m, name->s) : NULL;
  uint64_t mark = NEW, size = 0;
  if (!callee) {
    pass_error(in->p, op->loc, "call of an unknown function '%s'", name ? name->s->s : "");
    return ST_COMPILE;
  }
  map_get(&in->marks, (uintptr_t)callee, &mark);
  if (mark == OPEN) {
    pass_error(in->p, op->loc,
               "function '%s' calls itself, directly or through others; kernels have no stack for recursion",
               callee->name->s);
    return ST_COMPILE;
  }
  const Status s = func(in, callee);
  if (s != ST_OK) return s;
  if (!fits(op, callee)) {
    pass_error(in->p, op->loc, "call does not fit function '%s'", callee->name->s);
    return ST_COMPILE;
  }
  map_get(&in->sizes, (uintptr_t)callee, &size);
  in->ops += size;
  if (in->ops > MAX_OPS) {
    pass_error(in->p, op->loc, "the program is too large: more than %d operations after inlining", MAX_OPS);
    return ST_LIMIT;
  }
  put(op, callee, in->p->scratch);
  return ST_OK;
}

static Status block(Inline *in, IrBlock *b) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    Status s = op->kind == OP_call ? call(in, op) : ST_OK;
    if (op->parent == NULL) continue; // the call went away
    for (uint32_t r = 0; s == ST_OK && r < op->nregions; r++) s = block(in, op->regions[r]);
    if (s != ST_OK) return s;
  }
  return ST_OK;
}

static Status func(Inline *in, IrFunc *f) {
  uint64_t mark = NEW;
  map_get(&in->marks, (uintptr_t)f, &mark);
  if (mark == DONE) return ST_OK;
  map_set(&in->marks, (uintptr_t)f, OPEN);
  const Status s = block(in, f->body);
  if (s != ST_OK) return s;
  map_set(&in->marks, (uintptr_t)f, DONE);
  map_set(&in->sizes, (uintptr_t)f, count(f->body));
  return ST_OK;
}

Status pass_inline(Pass *p) {
  Inline in = {.p = p};
  const int64_t most = p->config->machine ? p->config->machine->kernel_limit : 0;
  map_init(&in.marks, p->scratch);
  map_init(&in.sizes, p->scratch);
  bool kernels = false;
  PASS_EACH_FUNC(p, f) {
    const Status s = func(&in, f);
    if (s != ST_OK) return s;
    kernels |= f->is_kernel;
    uint64_t ops = 0;
    map_get(&in.sizes, (uintptr_t)f, &ops);
    if (f->is_kernel && most && ops > (uint64_t)most) {
      pass_error(
          p, f->loc,
          "kernel '%s' is too large: %llu operations with loops unrolled and helpers inlined, and at most %lld can be "
          "compiled; loops over tl.range are not unrolled",
          f->name->s, (unsigned long long)ops, (long long)most);
      return ST_LIMIT;
    }
  }
  for (IrFunc *f = p->m->funcs, *next; f && kernels; f = next) {
    next = f->next;
    if (!f->is_kernel) ir_func_remove(p->m, f);
  }
  return ST_OK;
}
