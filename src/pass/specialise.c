// specialise: a copy of a function for launches of which more is known.
//
// A known integer takes the parameter's place everywhere; the parameter itself stays, so that the argument list of a
// launch is the same. Divisibility goes into IrParam, where the axis analysis finds it. Fold the copy afterwards.
#include "pass/pass_impl.h"

static void apply(IrFunc *f, const PassFact *fact) {
  if (fact->param >= f->params.len) return;
  IrValue *v = f->body->args.data[fact->param];
  IrParam *p = &f->params.data[fact->param];
  if (fact->divisible > p->divisible) p->divisible = fact->divisible;
  if (!fact->known || v->type->kind != IR_SCALAR || !ir_type_is_int(v->type) || !v->uses) return;
  IrBuilder b = ir_builder_before(f->body->first);
  ir_replace_uses(v, pass_const_bits(&b, v->type, (uint64_t)fact->value));
}

IrFunc *pass_specialise(IrFunc *f, const Str *name, const PassFact *facts, uint32_t nfacts) {
  IrModule *m = f->module;
  IrFunc *g = ir_func_new(m, name, f->is_kernel);
  Map values;
  g->loc = f->loc;
  g->wait_class = f->wait_class;
  map_init(&values, m->arena);
  for (uint32_t i = 0; i < f->body->args.len; i++) {
    const IrValue *v = f->body->args.data[i];
    map_setp(&values, v, ir_block_arg(g->body, v->type, v->name));
  }
  for (uint32_t i = 0; i < f->params.len; i++) vec_push(m->arena, &g->params, f->params.data[i]);
  for (uint32_t i = 0; i < f->results.len; i++) vec_push(m->arena, &g->results, f->results.data[i]);
  IrBuilder b = ir_builder_at_end(g->body);
  PASS_EACH_OP(f->body, op) ir_clone_op(&b, op, &values);
  for (uint32_t i = 0; i < nfacts; i++) apply(g, &facts[i]);
  return g;
}
