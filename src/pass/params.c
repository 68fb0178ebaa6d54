// params: records in IrParam which pointer parameters are read and written.
//
// needs:  no calls.
// keeps:  the program as it is. `noalias` is a promise of the caller and stays.
// breaks: nothing.
//
// An access whose pointer may come from anywhere counts for every pointer parameter. Peers' copies of a symmetric
// parameter count as the parameter.
#include "pass/pass_impl.h"

typedef struct Params {
  const PassRoots *roots;
  uint64_t reads, writes;
} Params;

static void reads(Params *s, const IrOp *op, uint32_t i) {
  s->reads |= pass_roots(s->roots, ir_operand(op, i));
}
static void writes(Params *s, const IrOp *op, uint32_t i) {
  s->writes |= pass_roots(s->roots, ir_operand(op, i));
}
static void updates(Params *s, const IrOp *op, uint32_t i) {
  reads(s, op, i);
  writes(s, op, i);
}

static bool visit(IrOp *op, void *user) {
  Params *s = user;
  switch (op->kind) {
  case OP_load:
  case OP_load_vec:
  case OP_desc_load:
  case OP_wait:
  case OP_acquire: reads(s, op, 0); break;
  case OP_copy_async: reads(s, op, 1); break;
  case OP_desc_load_async: reads(s, op, 0); break;
  case OP_store:
  case OP_store_vec:
  case OP_desc_store:
  case OP_desc_store_async: writes(s, op, 0); break;
  case OP_atomic_rmw:
  case OP_atomic_cas:
  case OP_desc_rmw:
  case OP_signal:
  case OP_release: updates(s, op, 0); break;
  case OP_put:
  case OP_get:
  case OP_put_signal:
    writes(s, op, 0);
    reads(s, op, 1);
    if (op->kind == OP_put_signal) updates(s, op, 3);
    break;
  case OP_inline_asm:
  case OP_call:
    s->reads |= PASS_ROOT_UNKNOWN;
    if (op->kind == OP_call || !ir_attr_i(op, ATTR_pure)) s->writes |= PASS_ROOT_UNKNOWN;
    break;
  default: break;
  }
  return true;
}

static bool has(uint64_t roots, uint32_t i) {
  return (roots & PASS_ROOT_UNKNOWN) || (i < 62 && (roots >> i & 1));
}

Status pass_params(Pass *p) {
  PASS_EACH_FUNC(p, f) {
    Params s = {.roots = pass_roots_run(f, p->scratch)};
    ir_walk(f->body, visit, &s);
    for (uint32_t i = 0; i < f->params.len; i++) {
      const IrType *t = f->body->args.data[i]->type;
      const bool memory = t->kind == IR_PTR || t->kind == IR_DESC;
      f->params.data[i].reads = memory && has(s.reads, i);
      f->params.data[i].writes = memory && has(s.writes, i);
      if (memory) {
        const IrParam *q = &f->params.data[i];
        pass_remark(p, f->loc, "parameter '%s' is %s", q->name ? q->name->s : "?",
                    q->reads && q->writes ? "read and written"
                    : q->writes           ? "written"
                    : q->reads            ? "read"
                                          : "not accessed");
      }
    }
  }
  return ST_OK;
}
