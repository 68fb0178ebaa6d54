// launch: see launch.h. A value is taken apart down to parameters and constants; narrow types wrap, so what may leave their width is
// brought back, and unsigned operations see their operands without the sign.
#include "ir/ir_impl.h"

#include <string.h>

typedef struct Walk {
  Arena *arena;
  IrLaunchExpr *out;
  const char *why;
} Walk;
enum { MOST_NESTED = 64 };

static bool no(Walk *w, const char *why) {
  if (!w->why) w->why = why;
  return false;
}

static bool put(Walk *w, IrLaunchStep s) {
  if (w->out->len == IR_LAUNCH_STEPS) return no(w, "is computed in too many steps");
  vec_push(w->arena, w->out, s);
  return true;
}
static bool put_const(Walk *w, int64_t v) {
  return put(w, (IrLaunchStep){.kind = IR_LAUNCH_CONST, .value = v});
}
static bool put_op(Walk *w, IrOpKind op) { return put(w, (IrLaunchStep){.kind = IR_LAUNCH_OP, .op = op}); }
static bool put_width(Walk *w, IrLaunchKind k, const IrType *t) { // nothing for 64 bits
  const int bits = ir_type_is_ptr(t) ? 64 : ir_dtypes[t->dtype].bits;
  return bits >= 64 || put(w, (IrLaunchStep){.kind = k, .value = bits});
}

static const char *at_line(Walk *w, const IrOp *op, const char *what) {
  return op->loc.line ? arena_printf(w->arena, "%s (line %u)", what, op->loc.line) : what;
}

static bool is_param(const IrValue *v) {
  return !v->def && v->block->func && v->block == v->block->func->body;
}

static bool refuse(Walk *w, const IrValue *v) {
  const IrOp *op = v->def;
  if (!op)
    return no(w, v->block->owner ? at_line(w, v->block->owner, "changes from turn to turn of a loop")
                                 : "is a parameter of another type");
  switch (op->kind) {
  case OP_load:
  case OP_load_vec: return no(w, at_line(w, op, "is loaded from memory"));
  case OP_program_id: return no(w, at_line(w, op, "depends on which program this is"));
  case OP_num_programs: return no(w, at_line(w, op, "depends on the grid"));
  case OP_symm_at: return no(w, at_line(w, op, "lies in a peer's memory"));
  case OP_rank:
  case OP_num_ranks: return no(w, at_line(w, op, "depends on the rank"));
  case OP_if:
  case OP_for:
  case OP_while:
  case OP_switch: return no(w, at_line(w, op, "is decided by control flow"));
  default:
    return no(w, at_line(w, op, arena_printf(w->arena, "is the result of '%s'", ir_ops[op->kind].name)));
  }
}

static bool walk(Walk *w, const IrValue *v, int depth);

static bool is_unsigned(IrOpKind k) {
  return k == OP_div_u || k == OP_rem_u || k == OP_min_u || k == OP_max_u || k == OP_shr_u;
}

static bool walk_binary(Walk *w, const IrOp *op, int depth) {
  const IrType *t = op->results[0].type;
  const bool uns = is_unsigned(op->kind);
  for (uint32_t i = 0; i < 2; i++) {
    if (!walk(w, ir_operand(op, i), depth)) return false;
    if (uns && !put_width(w, IR_LAUNCH_ZEXT, t)) return false;
  }
  if (!put_op(w, op->kind)) return false;
  switch (op->kind) {
  case OP_and:
  case OP_or:
  case OP_xor:
  case OP_min_s:
  case OP_max_s:
  case OP_rem_s:
  case OP_shr_s: return true; // they stay within
  default: return put_width(w, IR_LAUNCH_SEXT, t);
  }
}

IrValue *ir_desc_source(IrValue *desc) {
  while (desc->def && desc->def->kind == OP_consume) desc = ir_operand(desc->def, 0);
  return desc;
}

static bool walk_part(Walk *w, const IrOp *op, int depth) { // of a descriptor
  const IrValue *d = ir_desc_source(ir_operand(op, 0));
  const int64_t axis = op->kind == OP_desc_base ? 0 : ir_attr_i(op, ATTR_axis);
  if (is_param(d)) {
    const IrLaunchKind k = op->kind == OP_desc_base  ? IR_LAUNCH_BASE
                           : op->kind == OP_desc_dim ? IR_LAUNCH_DIM
                                                     : IR_LAUNCH_STRIDE;
    return put(w, (IrLaunchStep){.kind = k, .param = d->index, .value = axis});
  }
  if (!d->def || d->def->kind != OP_make_desc) return refuse(w, d);
  const uint32_t first = op->kind == OP_desc_base  ? 0
                         : op->kind == OP_desc_dim ? 1
                                                   : 1 + (uint32_t)d->type->rank;
  return walk(w, ir_operand(d->def, first + (uint32_t)axis), depth);
}

static bool walk(Walk *w, const IrValue *v, int depth) {
  const IrOp *op = v->def;
  int64_t c;
  if (depth > MOST_NESTED) return no(w, "is computed in too many steps");
  if (v->type->kind != IR_SCALAR && v->type->kind != IR_PTR) return refuse(w, v);
  if (ir_type_is_thread(v->type)) return no(w, "differs from thread to thread");
  if (!op) {
    if (!is_param(v) || !(ir_type_is_int(v->type) || ir_type_is_ptr(v->type))) return refuse(w, v);
    return put(w, (IrLaunchStep){.kind = IR_LAUNCH_PARAM, .param = v->index});
  }
  if (ir_const_int(v, &c)) return put_const(w, c);
  switch (op->kind) {
  case OP_add:
  case OP_sub:
  case OP_mul:
  case OP_div_s:
  case OP_div_u:
  case OP_rem_s:
  case OP_rem_u:
  case OP_and:
  case OP_or:
  case OP_xor:
  case OP_shl:
  case OP_shr_s:
  case OP_shr_u:
  case OP_min_s:
  case OP_max_s:
  case OP_min_u:
  case OP_max_u: return walk_binary(w, op, depth + 1);
  case OP_hint:
  case OP_consume:
  case OP_ptr2int:
  case OP_int2ptr:
  case OP_ext_s: return walk(w, ir_operand(op, 0), depth + 1);
  case OP_bitcast:
    return ir_type_is_float(ir_operand(op, 0)->type) ? refuse(w, v) : walk(w, ir_operand(op, 0), depth + 1);
  case OP_ext_u:
    return walk(w, ir_operand(op, 0), depth + 1) && put_width(w, IR_LAUNCH_ZEXT, ir_operand(op, 0)->type);
  case OP_trunc: return walk(w, ir_operand(op, 0), depth + 1) && put_width(w, IR_LAUNCH_SEXT, v->type);
  case OP_ptr_add:
    return walk(w, ir_operand(op, 0), depth + 1) && walk(w, ir_operand(op, 1), depth + 1) &&
           put_const(w, ir_dtypes[v->type->dtype].bytes) && put_op(w, OP_mul) && put_op(w, OP_add);
  case OP_desc_base:
  case OP_desc_dim:
  case OP_desc_stride: return walk_part(w, op, depth + 1);
  default: return refuse(w, v);
  }
}

bool ir_value_at_launch(Arena *a, const IrValue *v, IrLaunchExpr *out, const char **why) {
  Walk w = {.arena = a, .out = out};
  out->len = 0;
  bool ok = walk(&w, v, 0);
  int deep = 0;
  for (uint32_t i = 0; ok && i < out->len; i++) {
    const IrLaunchKind k = out->data[i].kind;
    deep += k == IR_LAUNCH_OP ? -1 : k < IR_LAUNCH_SEXT ? 1 : 0;
    if (deep > IR_LAUNCH_DEPTH) ok = no(&w, "is computed in too many steps");
  }
  if (!ok) *why = w.why;
  return ok;
}

static bool part(Arena *a, const IrValue *v, IrLaunchExpr *out, const char *what, int axis,
                 const char **why) {
  const char *reason;
  if (ir_value_at_launch(a, v, out, &reason)) return true;
  *why = axis < 0 ? arena_printf(a, "its %s %s", what, reason)
                  : arena_printf(a, "its %s along axis %d %s", what, axis, reason);
  return false;
}

bool ir_desc_at_launch(Arena *a, const IrValue *desc, IrLaunchDesc *out, const char **why) {
  *out = (IrLaunchDesc){.desc = desc, .rank = desc->type->rank};
  if (desc->type->rank < 1 || desc->type->rank > 5) {
    *why = "it has not 1 to 5 axes";
    return false;
  }
  if (is_param(desc)) {
    Walk w = {.arena = a, .out = &out->base};
    put(&w, (IrLaunchStep){.kind = IR_LAUNCH_BASE, .param = desc->index});
    for (int i = 0; i < out->rank; i++) {
      w.out = &out->dims[i];
      put(&w, (IrLaunchStep){.kind = IR_LAUNCH_DIM, .param = desc->index, .value = i});
      w.out = &out->strides[i];
      put(&w, (IrLaunchStep){.kind = IR_LAUNCH_STRIDE, .param = desc->index, .value = i});
    }
    return true;
  }
  const IrOp *op = desc->def;
  if (!op || op->kind != OP_make_desc) {
    *why = !op || op->nregions ? "it is chosen by control flow"
                               : arena_printf(a, "it is the result of '%s'", ir_ops[op->kind].name);
    return false;
  }
  out->pad = (IrPad)ir_attr_i(op, ATTR_pad);
  if (!part(a, ir_operand(op, 0), &out->base, "base", -1, why)) return false;
  for (int i = 0; i < out->rank; i++) {
    if (!part(a, ir_operand(op, 1 + (uint32_t)i), &out->dims[i], "size", i, why)) return false;
    if (!part(a, ir_operand(op, 1 + (uint32_t)(out->rank + i)), &out->strides[i], "stride", i, why))
      return false;
  }
  return true;
}
