// lower_call: functions of the module that a kernel calls (the placed stage's shared loop nests). Each is made at its first
// call, takes the instance record in front of its own parameters, and returns nothing.
#include "target/target_impl.h"

void lower_return_to(Lower *l, const Lower *caller) {
  l->func = caller->func;
  l->values = caller->values;
  l->fn = caller->fn;
  l->inst = caller->inst;
  l->rank_record = caller->rank_record;
  l->arena_base = caller->arena_base;
  memcpy(l->pid, caller->pid, sizeof l->pid);
  memcpy(l->grid, caller->grid, sizeof l->grid);
  l->instances = caller->instances;
  l->rank = caller->rank;
  l->world = caller->world;
  l->entry = caller->entry;
  l->fiber_warps = caller->fiber_warps;
  l->nt_stores = caller->nt_stores;
  l->di_scope = caller->di_scope;
}

static V make_function(Lower *l, const IrOp *op, const IrFunc *f) {
  const uint32_t n = f->body->args.len;
  T *params = arena_array(l->arena, T, n + 1);
  params[0] = l->ptr;
  for (uint32_t i = 0; i < n; i++) params[i + 1] = lower_type(l, f->body->args.data[i]->type);
  const V fn = LLVMAddFunction(l->mod, f->name->s, LLVMFunctionType(l->void_, params, n + 1, false));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  lower_fn_attrs(l, fn);
  const Lower caller = *l;
  const LLVMBasicBlockRef here = lower_here(l);
  l->func = f;
  l->values = arena_array(l->arena, V, (size_t)f->next_id + 1);
  if (l->di) lower_debug_function(l, fn, f->loc, f->name->s);
  lower_instance(l, fn, LLVMGetParam(fn, 0));
  l->fiber_warps = 0;
  l->nt_stores = false;
  for (uint32_t i = 0; i < n; i++) lower_set(l, f->body->args.data[i], LLVMGetParam(fn, i + 1));
  lower_body(l, f->body);
  lower_return_to(l, &caller);
  lower_at(l, here);
  lower_locate(l, op);
  return fn;
}

void lower_call(Lower *l, const IrOp *op) {
  const IrFunc *f = NULL;
  for (const IrFunc *g = l->ir->funcs; g && !f; g = g->next) {
    if (g->name->s == ir_attr_s(op, ATTR_callee)) f = g;
  }
  if (!f || op->nresults || f->body->args.len != op->noperands)
    lower_fail(l, op, ST_INTERNAL, "not a function that can be called here");
  V fn = LLVMGetNamedFunction(l->mod, f->name->s);
  if (!fn) fn = make_function(l, op, f);
  V *args = arena_array(l->arena, V, op->noperands + 1);
  args[0] = l->inst;
  for (uint32_t i = 0; i < op->noperands; i++) args[i + 1] = lower_operand(l, op, i);
  LLVMBuildCall2(l->b, LLVMGlobalGetValueType(fn), fn, args, op->noperands + 1, "");
}
