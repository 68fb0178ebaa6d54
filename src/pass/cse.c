// cse: equal pure ops are computed once; plain loads of one address too, while nothing may have written in between.
//
// needs:  nothing.
// keeps:  every effect. A value replaces another only where it is visible: scopes follow the regions.
// breaks: nothing.
//
// Loads carry the number of the memory state they saw; what may write, or orders others, begins a new state, and so does
// a loop that does so somewhere. num_threads and what threads hold mean something else inside each warp partition.
#include "pass/pass_impl.h"

typedef struct Entry {
  IrOp *op;
  uint64_t hash;
  uint32_t next, state;
} Entry;

typedef struct Cse {
  Arena *scratch;
  Vec(Entry) entries; // a stack: a scope pops what it pushed
  uint32_t *heads, nheads;
  uint32_t state, last_state;
  const IrOp *partition; // innermost warp_partitions region's op
} Cse;

// fmin and fmax may tell -0 from +0 by the order of their operands.
static bool commutes(const IrOp *op) {
  return (ir_ops[op->kind].traits & TRAIT_COMMUTATIVE) && op->kind != OP_fmin && op->kind != OP_fmax;
}

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}

static uint64_t hash_op(const IrOp *op) {
  uint64_t h = mix(op->kind, (uintptr_t)ir_result(op, 0)->type);
  uint64_t commuting = 0;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const uint64_t x = (uintptr_t)ir_operand(op, i);
    if (commutes(op))
      commuting += mix(0, x);
    else
      h = mix(h, x);
  }
  h = mix(h, commuting);
  for (uint32_t i = 0; i < op->nattrs; i++) {
    const IrAttr *a = &op->attrs[i];
    h = mix(h, a->name);
    uint32_t n;
    const int64_t *v = pass_attr_words(a, &n);
    h = hash_bytes(v, n * sizeof *v, h);
  }
  return h;
}

static bool same_op(const IrOp *a, const IrOp *b) {
  if (a->kind != b->kind || a->noperands != b->noperands || a->nresults != b->nresults) return false;
  for (uint32_t i = 0; i < a->nresults; i++) {
    if (a->results[i].type != b->results[i].type) return false;
  }
  if (commutes(a)) {
    const IrValue *x = ir_operand(a, 0), *y = ir_operand(a, 1);
    if (!(x == ir_operand(b, 0) && y == ir_operand(b, 1)) &&
        !(x == ir_operand(b, 1) && y == ir_operand(b, 0)))
      return false;
    return pass_same_attrs(a, b);
  }
  for (uint32_t i = 0; i < a->noperands; i++) {
    if (ir_operand(a, i) != ir_operand(b, i)) return false;
  }
  return pass_same_attrs(a, b);
}

static bool is_candidate(const IrOp *op) {
  if (op->nresults == 0 || op->nregions) return false;
  return pass_is_plain_load(op) || ((ir_ops[op->kind].traits & TRAIT_PURE) && ir_op_is_pure(op));
}

static void rehash(Cse *c) {
  c->nheads = c->nheads ? c->nheads * 2 : 256;
  c->heads = arena_array(c->scratch, uint32_t, c->nheads);
  for (uint32_t i = 0; i < c->entries.len; i++) { // in order: a later scope stays in front
    Entry *e = &c->entries.data[i];
    uint32_t *head = &c->heads[e->hash & (c->nheads - 1)];
    e->next = *head;
    *head = i + 1;
  }
}

static void visit(Cse *c, IrOp *op) {
  const bool load = pass_is_plain_load(op);
  const bool relative = op->kind == OP_num_threads || ir_type_is_thread(ir_result(op, 0)->type);
  uint64_t h = hash_op(op);
  if (load) h = mix(h, c->state);
  if (relative) h = mix(h, (uintptr_t)c->partition);
  uint32_t *head = &c->heads[h & (c->nheads - 1)];
  for (uint32_t i = *head; i; i = c->entries.data[i - 1].next) {
    const Entry *e = &c->entries.data[i - 1];
    if (e->hash != h || e->state != (load ? c->state : 0) || !same_op(e->op, op)) continue;
    for (uint32_t r = 0; r < op->nresults; r++) {
      if (!e->op->results[r].name) e->op->results[r].name = op->results[r].name;
      ir_replace_uses(ir_result(op, r), ir_result(e->op, r));
    }
    ir_erase(op);
    return;
  }
  vec_push(c->scratch, &c->entries, ((Entry){op, h, *head, load ? c->state : 0}));
  *head = c->entries.len;
  if (c->entries.len > c->nheads) rehash(c);
}

static void pop_to(Cse *c, uint32_t len) {
  while (c->entries.len > len) {
    const Entry *e = &vec_last(&c->entries);
    c->heads[e->hash & (c->nheads - 1)] = e->next;
    c->entries.len--;
  }
}

static void scope(Cse *c, IrBlock *b) {
  const uint32_t len = c->entries.len;
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    if (is_candidate(op)) {
      visit(c, op);
      continue;
    }
    const bool writes = op->aux != NULL;
    if (writes) c->state = ++c->last_state;
    const IrOp *outer = c->partition;
    if (op->kind == OP_warp_partitions) c->partition = op;
    for (uint32_t r = 0; r < op->nregions; r++) {
      const uint32_t state = c->state;
      // Partitions run at the same time, and their threads are numbered anew.
      if (op->kind == OP_warp_partitions) c->partition = (const IrOp *)(const void *)op->regions[r];
      scope(c, op->regions[r]);
      c->state = state;
    }
    c->partition = outer;
    if (writes && op->nregions) c->state = ++c->last_state;
  }
  pop_to(c, len);
}

Status pass_cse(Pass *p) {
  PASS_EACH_FUNC(p, f) {
    Cse c = {.scratch = p->scratch};
    rehash(&c);
    pass_mark_memory(f->body);
    scope(&c, f->body);
    pass_clear_marks(f->body);
  }
  return ST_OK;
}
