// outline: loop nests that a large kernel has several times become one function that is called.
//
//   for .. { x = mem_get %a, i  y = shr x, 3  mem_set %b, y, i }        call @k.nest.0 (%a, %b, 3)
//   for .. { x = mem_get %c, i  y = shr x, 5  mem_set %d, y, i }        call @k.nest.0 (%c, %d, 5)
//
// needs:  nothing.
// keeps:  every effect and its order.
// breaks: nothing.
//
// Sorting networks and block algorithms written out by their authors repeat few nests many times, on other buffers, and
// the time of a compile goes by the size of the code. Nests are the same where their ops are, one by one. What differs
// may be scalars, pointers and buffers from outside, and integer constants of arithmetic: these become parameters.
// Constant bounds of loops belong to the shape; vectors from outside are computed again inside.
//
// Left alone: small kernels, whose compile is short whatever they hold; nests that yield values; stores of whole vectors
// to global memory, because the loops around one tell whether it goes past the caches; what may wait, stop or print.
#include "pass/pass_impl.h"

#include <string.h>

enum {
  FROM_OPS = 400,   // of a kernel
  LEAST_NEST = 8,   // ops
  LEAST_SAVED = 24, // by all calls of one function
  MOST_PARAMS = 48,
  MOST_AGAIN = 24, // ops of vectors from outside
};

typedef Vec(uint64_t) Words;
typedef Vec(IrValue *) Values;

typedef struct Nest {
  IrOp *op;
  uint32_t size;
  uint64_t hash;
  Words shape;       // equal for nests that differ in params and ints alone
  Values params;     // from outside, in order of appearance
  Values ints;       // integer constants, one each time they appear
  struct Nest *same; // the next one of equal shape
} Nest;

typedef struct Outline {
  Pass *p;
  IrFunc *kernel;
  Vec(Nest *) nests;
  uint32_t made;
} Outline;

// ---- the shape of a nest ------------------------------------------------------------------------------------------------
typedef struct Reader { // goes over a nest in a fixed order
  Arena *arena;
  Nest *n;
  Map local; // IrValue* -> its number: of the nest, or computed again for it
  uint32_t locals, again;
  bool fits;
} Reader;

enum { WORD_NONE, WORD_LOCAL, WORD_CONST, WORD_INT, WORD_PARAM, WORD_AGAIN, WORD_END };

static void word(Reader *r, uint64_t x) { vec_push(r->arena, &r->n->shape, x); }
static void define(Reader *r, const IrValue *v) { map_set(&r->local, (uintptr_t)v, ++r->locals); }

static bool allowed(const IrOp *op) {
  switch (op->kind) {
  case OP_for:
  case OP_if:
  case OP_reduce:
  case OP_scan:
  case OP_yield:
  case OP_load_vec:
  case OP_mem_get:
  case OP_mem_set:
  case OP_mem_gather:
  case OP_mem_scatter: return true;
  case OP_load:
  case OP_store: return ir_op_effects(op).order == ORDER_weak && !ir_attr_i(op, ATTR_volatile);
  default: return !op->nregions && ir_op_is_pure(op);
  }
}

// Constants there shape the code: turns of a loop, distances between the lanes of a vector, cheap divisions.
static bool shapes_code(const IrOp *op, uint32_t i) {
  switch (op->kind) {
  case OP_for: return i < 3;
  case OP_ramp:
  case OP_div_s:
  case OP_div_u:
  case OP_rem_s:
  case OP_rem_u: return i == 1;
  default: return false;
  }
}

static bool is_const(const IrValue *v) { return v->def && v->def->kind == OP_const; }
static bool is_int_const(const IrValue *v) { // of a scalar, or the same in all lanes
  return is_const(v) && ir_type_is_int(v->type) && v->type->dtype != IR_i1;
}

static void read_op(Reader *r, const IrOp *op);

static void read_operand(Reader *r, const IrOp *op, uint32_t i) {
  IrValue *v = ir_operand(op, i);
  uint64_t number;
  if (!v) {
    word(r, WORD_NONE);
  } else if (map_get(&r->local, (uintptr_t)v, &number)) {
    word(r, WORD_LOCAL);
    word(r, number);
  } else if (is_int_const(v) && !shapes_code(op, i)) {
    word(r, WORD_INT);
    word(r, (uintptr_t)v->type);
    vec_push(r->arena, &r->n->ints, v);
  } else if (is_const(v)) {
    word(r, WORD_CONST);
    word(r, (uintptr_t)v->type);
    word(r, (uint64_t)ir_attr_i(v->def, ATTR_value));
  } else if (v->type->kind == IR_TILE) {
    r->fits &= v->def && !v->def->nregions && ir_op_is_pure(v->def) && ++r->again <= MOST_AGAIN;
    if (!r->fits) return;
    word(r, WORD_AGAIN);
    read_op(r, v->def);
  } else {
    const IrTypeKind k = v->type->kind;
    r->fits &= k == IR_SCALAR || k == IR_PTR || k == IR_MEMDESC;
    uint32_t at = 0;
    while (at < r->n->params.len && r->n->params.data[at] != v) at++;
    if (at == r->n->params.len) vec_push(r->arena, &r->n->params, v);
    word(r, WORD_PARAM);
    word(r, at);
    word(r, (uintptr_t)v->type);
  }
}

static void read_op(Reader *r, const IrOp *op) {
  r->n->size++;
  word(r, op->kind);
  for (uint32_t i = 0; i < op->nattrs; i++) {
    uint32_t n;
    const int64_t *v = pass_attr_words(&op->attrs[i], &n);
    word(r, op->attrs[i].name);
    word(r, n);
    for (uint32_t k = 0; k < n; k++) word(r, (uint64_t)v[k]);
  }
  word(r, WORD_END);
  for (uint32_t i = 0; i < op->noperands && r->fits; i++) read_operand(r, op, i);
  word(r, WORD_END);
  for (uint32_t i = 0; i < op->nregions; i++) {
    const IrBlock *b = op->regions[i];
    for (uint32_t k = 0; k < b->args.len; k++) {
      word(r, (uintptr_t)b->args.data[k]->type);
      define(r, b->args.data[k]);
    }
    PASS_EACH_OP(b, x) {
      r->fits &= allowed(x);
      if (!r->fits) return;
      read_op(r, x);
    }
    word(r, WORD_END);
  }
  for (uint32_t i = 0; i < op->nresults; i++) {
    word(r, (uintptr_t)ir_result(op, i)->type);
    define(r, ir_result(op, i));
  }
  word(r, WORD_END);
}

static bool read_nest(Outline *s, IrOp *op) {
  Nest *n = arena_new(s->p->scratch, Nest);
  n->op = op;
  Reader r = {.arena = s->p->scratch, .n = n, .fits = true};
  map_init(&r.local, s->p->scratch);
  read_op(&r, op);
  if (!r.fits) return false;
  n->hash = hash_bytes(n->shape.data, n->shape.len * sizeof *n->shape.data, 0);
  if (n->size >= LEAST_NEST) vec_push(s->p->scratch, &s->nests, n);
  return true;
}

static void collect(Outline *s, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    if (op->kind == OP_reduce || op->kind == OP_scan) continue;
    if (op->kind == OP_for && !op->nresults && read_nest(s, op)) continue;
    for (uint32_t i = 0; i < op->nregions; i++) collect(s, op->regions[i]);
  }
}

// ---- one function for nests of one shape ----------------------------------------------------------------------------------
typedef struct Writer { // goes over the first nest and its copy in the reader's order
  Map values;           // from outside -> of the function
  Map local;            // as the reader's
  const int *slots;     // of ints: which parameter, or -1 for a constant
  IrValue **params;
  uint32_t ints; // seen so far
  IrOp *copy;
  IrBuilder start; // before it
} Writer;

static IrValue *in_function(Writer *w, const IrValue *v) {
  IrValue *x = map_getp(&w->values, v);
  return x ? x : ir_result(ir_clone_op(&w->start, v->def, &w->values), 0);
}

static IrValue *param_as(Writer *w, int slot, const IrType *t) {
  IrValue *x = w->params[slot];
  return t->kind == IR_TILE ? ir_splat(&w->start, x, t->rank, t->shape) : x;
}

static void write_op(Writer *w, const IrOp *op, IrOp *copy);

static void write_operand(Writer *w, const IrOp *op, uint32_t i, IrOp *copy) {
  const IrValue *v = ir_operand(op, i);
  if (!v) return;
  if (map_get(&w->local, (uintptr_t)v, NULL)) {
    IrValue *again = map_getp(&w->values, v);
    if (again) ir_set_operand(copy, i, again);
  } else if (is_int_const(v) && !shapes_code(op, i)) {
    const int slot = w->slots[w->ints++];
    ir_set_operand(copy, i, slot < 0 ? in_function(w, v) : param_as(w, slot, v->type));
  } else if (v->type->kind == IR_TILE && !is_const(v)) {
    IrOp *again = ir_clone_op(&w->start, v->def, &w->values);
    write_op(w, v->def, again);
    ir_move_before(again, w->copy); // behind what it needs
    ir_set_operand(copy, i, ir_result(again, v->index));
  } else {
    ir_set_operand(copy, i, in_function(w, v));
  }
}

static void write_op(Writer *w, const IrOp *op, IrOp *copy) {
  for (uint32_t i = 0; i < op->noperands; i++) write_operand(w, op, i, copy);
  for (uint32_t i = 0; i < op->nregions; i++) {
    const IrBlock *b = op->regions[i];
    for (uint32_t k = 0; k < b->args.len; k++) map_set(&w->local, (uintptr_t)b->args.data[k], 1);
    IrOp *y = copy->regions[i]->first;
    for (const IrOp *x = b->first; x; x = x->next, y = y->next) write_op(w, x, y);
  }
  for (uint32_t i = 0; i < op->nresults; i++) map_set(&w->local, (uintptr_t)ir_result(op, i), 1);
}

static int64_t int_of(const Nest *n, uint32_t i) {
  int64_t x = 0;
  ir_const_int(n->ints.data[i], &x);
  return x;
}
// Are the nests' constants number i and j the same in each nest?
static bool go_together(const Nest *first, uint32_t i, uint32_t j) {
  if (first->ints.data[i]->type->dtype != first->ints.data[j]->type->dtype) return false;
  for (const Nest *n = first; n; n = n->same) {
    if (int_of(n, i) != int_of(n, j)) return false;
  }
  return true;
}
static bool same_everywhere(const Nest *first, uint32_t i) {
  for (const Nest *n = first->same; n; n = n->same) {
    if (int_of(n, i) != int_of(first, i)) return false;
  }
  return true;
}

// The call's operands are those of the parameters: the nest's params, then a constant for each of leaders.
static void put_call(Nest *n, const Str *callee, const uint32_t *leaders, uint32_t nleaders, Arena *a) {
  IrValue **args = arena_array(a, IrValue *, n->params.len + nleaders + 1);
  uint32_t k = 0;
  IrBuilder b = ir_builder_before(n->op);
  b.loc = n->op->loc;
  for (uint32_t i = 0; i < n->params.len; i++) args[k++] = n->params.data[i];
  for (uint32_t i = 0; i < nleaders; i++) {
    const IrType *t = ir_type_elem(b.m->ctx, n->ints.data[leaders[i]]->type);
    args[k++] = ir_const_i(&b, t, int_of(n, leaders[i]));
  }
  ir_set_attr_s(ir_build(&b, OP_call, k, args, 0, NULL, 0), ATTR_callee, callee);
  ir_erase(n->op);
}

static bool make_function(Outline *s, Nest *first) {
  Arena *a = s->p->scratch;
  IrModule *m = s->p->m;
  int *slots = arena_array(a, int, first->ints.len + 1);
  Vec(uint32_t) leaders = {0}; // of constants that are one parameter
  for (uint32_t i = 0; i < first->ints.len; i++) {
    slots[i] = -1;
    if (same_everywhere(first, i)) continue;
    uint32_t k = 0;
    while (k < leaders.len && !go_together(first, leaders.data[k], i)) k++;
    if (k == leaders.len) vec_push(a, &leaders, i);
    slots[i] = (int)k;
  }
  if (first->params.len + leaders.len > MOST_PARAMS) return false;

  const char *text = arena_printf(a, "%s.nest.%u", s->kernel->name->s, s->made++);
  IrFunc *f = ir_func_new(m, str_intern(ir_strings(m->ctx), text, strlen(text)), false);
  f->loc = first->op->loc;
  Writer w = {.slots = slots, .params = arena_array(a, IrValue *, leaders.len + 1)};
  map_init(&w.values, a);
  map_init(&w.local, a);
  for (uint32_t i = 0; i < first->params.len; i++) {
    const IrValue *v = first->params.data[i];
    map_setp(&w.values, v, ir_func_param(f, v->type, v->name));
  }
  for (uint32_t i = 0; i < leaders.len; i++)
    w.params[i] = ir_func_param(f, ir_type_elem(m->ctx, first->ints.data[leaders.data[i]]->type), NULL);
  IrBuilder end = ir_builder_at_end(f->body);
  end.loc = first->op->loc;
  Map values; // of the nest
  map_init(&values, a);
  w.copy = ir_clone_op(&end, first->op, &values);
  w.start = ir_builder_before(w.copy);
  write_op(&w, first->op, w.copy);
  ir_return(&end, 0, NULL);
  for (Nest *n = first; n; n = n->same) put_call(n, f->name, leaders.data, leaders.len, a);
  return true;
}

static bool same_shape(const Nest *a, const Nest *b) {
  return a->hash == b->hash && a->shape.len == b->shape.len &&
         !memcmp(a->shape.data, b->shape.data, a->shape.len * sizeof *a->shape.data);
}

static bool count(IrOp *op, void *user) {
  (void)op;
  ++*(uint32_t *)user;
  return true;
}

static void outline(Pass *p, IrFunc *f) {
  uint32_t ops = 0, calls = 0, saved = 0;
  ir_walk(f->body, count, &ops);
  if (ops < FROM_OPS) return;
  Outline s = {.p = p, .kernel = f};
  collect(&s, f->body);
  Map first_of; // hash -> the first nest of that shape
  map_init(&first_of, p->scratch);
  for (uint32_t i = s.nests.len; i-- > 0;) {
    Nest *n = s.nests.data[i], *next = map_getp(&first_of, (uintptr_t)(n->hash >> 1));
    if (next && same_shape(next, n)) n->same = next;
    map_setp(&first_of, (uintptr_t)(n->hash >> 1), n);
  }
  for (uint32_t i = 0; i < s.nests.len; i++) {
    Nest *first = s.nests.data[i];
    if (map_getp(&first_of, (uintptr_t)(first->hash >> 1)) != first) continue;
    uint32_t more = 0;
    for (const Nest *n = first->same; n; n = n->same) more++;
    if (more * first->size < LEAST_SAVED || !make_function(&s, first)) continue;
    calls += more + 1;
    saved += more * first->size;
  }
  if (calls)
    pass_remark(p, f->loc, "%u loop nests are calls of %u functions: %u of %u operations less", calls, s.made,
                saved, ops);
}

Status pass_outline(Pass *p) {
  PASS_EACH_FUNC(p, f) { // those that it makes come behind
    if (f->is_kernel) outline(p, f);
  }
  return ST_OK;
}
