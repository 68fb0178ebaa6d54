// verify_control: rules of regions (arguments, yields, results), of calls, and of asynchronous copies.
#include "ir/verify.h"

#include <string.h>

typedef IrVerifier V;

static const IrType *type_in(const IrOp *op, uint32_t i) {
  return i < op->noperands && op->operands[i].value ? op->operands[i].value->type : NULL;
}

// ---- lists of types -------------------------------------------------------------------------------------------------

// Operands of `op` from the from-th on against the types that want(i) names; n of them.
typedef struct TypeList {
  uint32_t n;
  const IrOp *op;      // operands from `from` on, or
  const IrOp *results; // results, or
  const IrBlock *args; // arguments from `from` on
  uint32_t from;
} TypeList;

static TypeList operands_of(const IrOp *op, uint32_t from) {
  return (TypeList){.n = op->noperands > from ? op->noperands - from : 0, .op = op, .from = from};
}
static TypeList results_of(const IrOp *op) { return (TypeList){.n = op->nresults, .results = op}; }
static TypeList args_of(const IrBlock *b, uint32_t from) {
  return (TypeList){.n = b->args.len > from ? b->args.len - from : 0, .args = b, .from = from};
}
static const IrType *nth(const TypeList *l, uint32_t i) {
  if (l->op) return type_in(l->op, l->from + i);
  if (l->results) return l->results->results[i].type;
  return l->args->args.data[l->from + i]->type;
}

static bool same_types(V *v, const IrOp *op, const char *a, TypeList x, const char *b, TypeList y) {
  if (x.n != y.n) return ir_bad(v, op, "%u %s, but %u %s", x.n, a, y.n, b);
  for (uint32_t i = 0; i < x.n; i++) {
    const IrType *s = nth(&x, i), *t = nth(&y, i);
    if (!s || !t) return ir_bad(v, op, "number %u of the %s is missing", i, s ? b : a);
    if (s != t) {
      return ir_bad(v, op, "number %u of the %s is %s, of the %s %s", i, a, ir_type_msg(v, s), b,
                    ir_type_msg(v, t));
    }
  }
  return true;
}

static bool no_args(V *v, const IrOp *op) {
  for (uint32_t i = 0; i < op->nregions; i++) {
    if (op->regions[i]->args.len) return ir_bad(v, op, "region %u has arguments", i);
  }
  return true;
}

// ---- region ops -------------------------------------------------------------------------------------------------------

static void choice_rules(V *v, const IrOp *op) {
  no_args(v, op);
  for (uint32_t i = 0; i < op->nregions; i++) {
    same_types(v, op, "values yielded", operands_of(op->regions[i]->last, 0), "results", results_of(op));
  }
}

static void switch_rules(V *v, const IrOp *op) {
  const IrAttr *cases = ir_attr(op, ATTR_cases);
  if (cases->ints.n + 1 != op->nregions) {
    ir_bad(v, op, "%u cases need %u regions, not %u", cases->ints.n, cases->ints.n + 1, op->nregions);
    return;
  }
  Map seen;
  map_init(&seen, v->d->arena);
  for (uint32_t i = 0; i < cases->ints.n; i++) {
    const uint64_t key = (uint64_t)cases->ints.v[i] & UINT32_MAX; // what an i32 can equal
    if (cases->ints.v[i] != (int32_t)key) ir_bad(v, op, "case %lld is no i32", (long long)cases->ints.v[i]);
    if (map_get(&seen, key, NULL)) ir_bad(v, op, "case %lld stands twice", (long long)cases->ints.v[i]);
    map_set(&seen, key, 1);
  }
  choice_rules(v, op);
}

static void for_rules(V *v, const IrOp *op) {
  const IrType *iv = type_in(op, 0);
  const IrBlock *body = op->regions[0];
  int64_t step;
  if (type_in(op, 1) != iv || type_in(op, 2) != iv) ir_bad(v, op, "bounds and step have different types");
  if (!body->args.len || body->args.data[0]->type != iv)
    ir_bad(v, op, "the first argument is not the loop's index");
  if (ir_const_int(ir_operand(op, 2), &step) && step == 0) ir_bad(v, op, "the step is 0");
  same_types(v, op, "initial values", operands_of(op, 3), "results", results_of(op));
  same_types(v, op, "carried arguments", args_of(body, 1), "results", results_of(op));
  same_types(v, op, "values yielded", operands_of(body->last, 0), "results", results_of(op));
  const IrAttrName counts[] = {ATTR_min_trip, ATTR_stages, ATTR_unroll};
  for (int i = 0; i < 3; i++) {
    if (ir_attr_i(op, counts[i]) < 0) ir_bad(v, op, "%s is negative", ir_attrs[counts[i]].name);
  }
}

static void while_rules(V *v, const IrOp *op) {
  const IrBlock *before = op->regions[0], *body = op->regions[1];
  same_types(v, op, "initial values", operands_of(op, 0), "arguments of the first region",
             args_of(before, 0));
  same_types(v, op, "values handed on", operands_of(before->last, 1), "results", results_of(op));
  same_types(v, op, "arguments of the second region", args_of(body, 0), "results", results_of(op));
  same_types(v, op, "values yielded", operands_of(body->last, 0), "initial values", operands_of(op, 0));
}

// A tile's element as argument, result or yielded value of a combining region.
static bool is_elem(const IrType *t, const IrType *tile) {
  return t && ir_has_level(t) && t->level == LEVEL_program && ir_same_elem(t, tile);
}

static void combine_rules(V *v, const IrOp *op) {
  const uint32_t n = op->noperands;
  const IrBlock *b = op->regions[0];
  const IrType *first = type_in(op, 0);
  const int64_t axis = ir_attr_i(op, ATTR_axis);
  if (!n || op->nresults != n) {
    ir_bad(v, op, "has %u operands and %u results", n, op->nresults);
    return;
  }
  if (axis < 0 || axis >= first->rank) {
    ir_bad(v, op, "axis %lld is not one of %d", (long long)axis, first->rank);
    return;
  }
  if (b->args.len != 2 * n || b->last->noperands != n) {
    ir_bad(v, op, "the region must take %u values and yield %u", 2 * n, n);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    const IrType *t = type_in(op, i), *r = op->results[i].type;
    if (!ir_same_shape(t, first)) ir_bad(v, op, "the operands have different shapes");
    if (!is_elem(b->args.data[i]->type, t) || !is_elem(b->args.data[n + i]->type, t) ||
        !is_elem(type_in(b->last, i), t)) {
      ir_bad(v, op, "the region does not combine elements of %s", ir_type_msg(v, t));
    }
    if (op->kind == OP_scan) {
      if (r != t) ir_bad(v, op, "result %u differs from its operand", i);
      continue;
    }
    bool fits = ir_same_elem(r, t) && r->rank == t->rank - 1 && (r->rank > 0) == (r->kind == IR_TILE);
    for (int j = 0, k = 0; fits && j < t->rank; j++) fits = j == axis || r->shape[k++] == t->shape[j];
    if (!fits)
      ir_bad(v, op, "result %u is %s, not %s without axis %lld", i, ir_type_msg(v, r), ir_type_msg(v, t),
             (long long)axis);
  }
  for (const IrOp *o = b->first; o != b->last; o = o->next) {
    if (!ir_op_is_pure(o)) ir_bad(v, o, "has an effect inside of a %s", ir_ops[op->kind].name);
  }
}

static void partition_rules(V *v, const IrOp *op) {
  const IrAttr *first = ir_attr(op, ATTR_first), *warps = ir_attr(op, ATTR_warps),
               *regs = ir_attr(op, ATTR_regs);
  const uint32_t n = op->nregions;
  const int all = v->m->num_warps + v->m->extra_warps;
  uint64_t taken = 0;
  no_args(v, op);
  if (!n) ir_bad(v, op, "has no partition");
  const IrAttr *alone = ir_attr(op, ATTR_alone);
  if (first->ints.n != n || warps->ints.n != n || (regs && regs->ints.n != n) ||
      (alone && alone->ints.n != n)) {
    ir_bad(v, op, "first, warps, regs and alone need a number for each of %u partitions", n);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    const int64_t at = first->ints.v[i], count = warps->ints.v[i];
    if (at < 0 || count < 1 || at >= all || count > all - at) {
      ir_bad(v, op, "partition %u is not within the %d warps", i, all);
      continue;
    }
    const uint64_t bits = (count == 64 ? UINT64_MAX : (1ull << count) - 1) << at;
    if (taken & bits) ir_bad(v, op, "partition %u shares warps with another", i);
    taken |= bits;
    if (regs && regs->ints.v[i] < 0) ir_bad(v, op, "partition %u has a negative register budget", i);
    if (alone && alone->ints.v[i] != 0 && alone->ints.v[i] != 1)
      ir_bad(v, op, "alone of partition %u is neither 0 nor 1", i);
  }
}

static void warp_for_rules(V *v, const IrOp *op) {
  const IrBlock *b = op->regions[0];
  if (b->args.len != 1 || !ir_class_holds(CLASS_i32, b->args.data[0]->type))
    ir_bad(v, op, "the region takes one i32, the warp");
  if (ir_attr_i(op, ATTR_count) < 1) ir_bad(v, op, "count is at least 1");
}

static void call_rules(V *v, const IrOp *op) {
  const IrAttr *callee = ir_attr(op, ATTR_callee);
  const IrFunc *f = map_getp(&v->funcs, callee->s);
  if (!f) {
    ir_bad(v, op, "@%s is no function of the module", callee->s->s);
    return;
  }
  if (f->is_kernel) ir_bad(v, op, "@%s is a kernel and cannot be called", callee->s->s);
  same_types(v, op, "arguments", operands_of(op, 0), "parameters", args_of(f->body, 0));
  bool fits = f->results.len == op->nresults;
  for (uint32_t i = 0; fits && i < op->nresults; i++) fits = f->results.data[i] == op->results[i].type;
  if (!fits) ir_bad(v, op, "its results are not those of @%s", callee->s->s);
}

void ir_verify_region_rules(IrVerifier *v, const IrOp *op) {
  for (uint32_t i = 0; i < op->nregions; i++) {
    if (!op->regions[i]->last) return; // reported already
  }
  switch (op->kind) {
  case OP_if: choice_rules(v, op); break;
  case OP_switch: switch_rules(v, op); break;
  case OP_for: for_rules(v, op); break;
  case OP_while: while_rules(v, op); break;
  case OP_reduce:
  case OP_scan: combine_rules(v, op); break;
  case OP_warp_partitions: partition_rules(v, op); break;
  case OP_warp_for: warp_for_rules(v, op); break;
  case OP_call: call_rules(v, op); break;
  default: break;
  }
}

void ir_verify_terminator(IrVerifier *v, const IrOp *op) {
  const IrOp *owner = op->parent->owner;
  IrOpKind expect = OP_yield;
  if (!owner)
    expect = OP_return;
  else if (owner->kind == OP_while && owner->regions[0] == op->parent)
    expect = OP_cond_yield;
  if (op->kind != expect) {
    ir_bad(v, op, "ends a region that must end in %s", ir_ops[expect].name);
    return;
  }
  if (owner) {
    const bool plain = owner->kind == OP_warp_partitions || owner->kind == OP_warp_for;
    if (plain && op->noperands) ir_bad(v, op, "a region of %s yields nothing", ir_ops[owner->kind].name);
    return;
  }
  bool fits = v->func->results.len == op->noperands;
  for (uint32_t i = 0; fits && i < op->noperands; i++) fits = type_in(op, i) == v->func->results.data[i];
  if (!fits) ir_bad(v, op, "its values are not the results of @%s", v->func->name->s);
}

// ---- the call graph has no cycle ------------------------------------------------------------------------------------

typedef struct Frame {
  const IrFunc *f;
  const IrOp *at; // op to look at next
} Frame;

// The op after `op` in program order, regions included; NULL at the end of the function.
static const IrOp *step(const IrOp *op) {
  for (uint32_t i = 0; i < op->nregions; i++) {
    if (op->regions[i]->first) return op->regions[i]->first;
  }
  while (!op->next) {
    const IrBlock *b = op->parent;
    const IrOp *owner = b->owner;
    if (!owner) return NULL;
    uint32_t i = 0;
    while (owner->regions[i] != b) i++;
    for (i++; i < owner->nregions; i++) {
      if (owner->regions[i]->first) return owner->regions[i]->first;
    }
    op = owner;
  }
  return op->next;
}

void ir_verify_call_graph(IrVerifier *v) {
  enum { OPEN = 1, DONE = 2 };
  Map state; // function -> OPEN or DONE
  Vec(Frame) stack = {0};
  map_init(&state, v->d->arena);
  for (const IrFunc *root = v->m->funcs; root; root = root->next) {
    if (map_getp(&state, root)) continue;
    map_set(&state, (uint64_t)(uintptr_t)root, OPEN);
    vec_push(v->d->arena, &stack, ((Frame){root, root->body->first}));
    while (stack.len) {
      Frame *top = &vec_last(&stack);
      while (top->at && top->at->kind != OP_call) top->at = step(top->at);
      if (!top->at) {
        map_set(&state, (uint64_t)(uintptr_t)top->f, DONE);
        stack.len--;
        continue;
      }
      const IrOp *call = top->at;
      top->at = step(call);
      const IrFunc *f = map_getp(&v->funcs, ir_attr(call, ATTR_callee)->s);
      uint64_t s = 0;
      if (map_get(&state, (uint64_t)(uintptr_t)f, &s)) {
        if (s != OPEN) continue;
        v->func = top->f;
        ir_bad(v, call, "@%s calls itself", f->name->s);
        return;
      }
      map_set(&state, (uint64_t)(uintptr_t)f, OPEN);
      vec_push(v->d->arena, &stack, ((Frame){f, f->body->first}));
    }
  }
}

// ---- asynchronous copies: nothing is read before the wait on its token ------------------------------------------------

// One walk in program order with the list of copies in flight. A wait in a region counts as done behind it, so that
// only reads are reported that no path can have waited for. Partitions begin with what was in flight before them.
enum { IN_FLIGHT = 64 };

typedef struct Copy {
  const IrValue *buffer, *stage; // of a mem_view: its buffer and stage
  const IrValue *token;          // of copy_async
  const IrValue *barrier;        // of desc_load_async
} Copy;
typedef struct Flight {
  Copy list[IN_FLIGHT]; // oldest first; more than fit are forgotten, oldest first
  int n;
} Flight;

static Copy copy_of(const IrValue *m) {
  const IrOp *def = m->def;
  if (def && def->kind == OP_mem_view)
    return (Copy){.buffer = ir_operand(def, 0), .stage = ir_operand(def, 1)};
  return (Copy){.buffer = m};
}

static void take_off(Flight *f, Copy c) {
  if (f->n == IN_FLIGHT) memmove(f->list, f->list + 1, (size_t)--f->n * sizeof f->list[0]);
  f->list[f->n++] = c;
}

static void remove_at(Flight *f, int i) {
  memmove(&f->list[i], &f->list[i + 1], (size_t)(f->n - i - 1) * sizeof f->list[0]);
  f->n--;
}

static void land_tokens(Flight *f, const IrOp *wait) {
  int64_t young = 0; // copies without a token named: all but the youngest `pending`
  for (int i = f->n - 1; i >= 0; i--) {
    if (!f->list[i].token) continue;
    bool named = wait->noperands == 0 && young++ >= ir_attr_i(wait, ATTR_pending);
    for (uint32_t j = 0; j < wait->noperands; j++) named |= wait->operands[j].value == f->list[i].token;
    if (named) remove_at(f, i);
  }
}

static void land_barrier(Flight *f, const IrValue *barrier) {
  for (int i = f->n - 1; i >= 0; i--) {
    if (f->list[i].barrier == barrier) remove_at(f, i);
  }
}

static void check_read(V *v, const IrOp *op, const Flight *f, const IrValue *m) {
  const Copy c = copy_of(m);
  for (int i = 0; i < f->n; i++) {
    if (f->list[i].buffer == c.buffer && f->list[i].stage == c.stage) {
      ir_bad(v, op, "reads a buffer before the wait for the copy into it");
      return;
    }
  }
}

static void fly(V *v, const IrBlock *b, Flight *f) {
  for (const IrOp *op = b->first; op; op = op->next) {
    switch (op->kind) {
    case OP_copy_async: {
      Copy c = copy_of(ir_operand(op, 0));
      c.token = &op->results[0];
      take_off(f, c);
      break;
    }
    case OP_desc_load_async: {
      Copy c = copy_of(ir_operand(op, 1));
      c.barrier = ir_operand(op, 2);
      take_off(f, c);
      break;
    }
    case OP_async_wait: land_tokens(f, op); break;
    case OP_mbarrier_wait: land_barrier(f, ir_operand(op, 0)); break;
    case OP_mem_load:
    case OP_mem_get:
    case OP_mem_gather: check_read(v, op, f, ir_operand(op, 0)); break;
    case OP_desc_store_async: check_read(v, op, f, ir_operand(op, 1)); break;
    case OP_warp_partitions:
      for (uint32_t i = 0; i < op->nregions; i++) {
        Flight own = *f;
        fly(v, op->regions[i], &own);
      }
      break;
    default:
      for (uint32_t i = 0; i < op->nregions; i++) fly(v, op->regions[i], f);
    }
  }
}

void ir_verify_async(IrVerifier *v, const IrFunc *f) {
  Flight none = {.n = 0};
  fly(v, f->body, &none);
}
