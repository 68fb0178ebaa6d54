// interp_compile: an IrFunc as flat instructions over value slots.
//
// Calls are inlined, so one Code has no frames: every value has a fixed place (Ref). Slots are given back after a value's
// last use and used again. Code is compiled for one of four kinds of agent:
//   BLOCK  all threads of the block or partition at once; thread scalars are arrays of an element a thread
//   WARP   one warp of a span, under a lane mask; control that depends on thread values changes the mask
//   FIBER  one warp of a warp_for that runs them at the same time; tiles lie in an area of its own
//   VEC    a combine region on up to 64 independent pairs: scalars are arrays, control changes the mask
// A span is a run of ops in one block, from the first to the last whose threads may part or wait; all between must be
// executable by single warps (no tile, no op that happens once a program).
// What several agents share must not be used again by values of another shape: thread arrays go back to slots of their
// own element size and thread count, and what a partition gives back waits until all partitions are compiled.
#include "ir/interp_impl.h"

#include <string.h>

enum { MAX_INS = 4 << 20, MAX_INLINE = 64, ALIGN = 64 };
static const size_t MAX_AREA = (size_t)1 << 30;

typedef enum Mode { MODE_BLOCK, MODE_WARP, MODE_FIBER, MODE_VEC } Mode;
typedef struct Slot {
  size_t off, size;
  uint32_t refs, threads; // threads: of a SP_TH slot
  uint8_t space, esize;
} Slot;
typedef struct Val {
  Ref ref;
  int slot; // -1: owns none
} Val;
typedef struct Frame {
  const struct Frame *up;
  const IrFunc *func;
  Val *vals;
} Frame;
typedef struct Hole {
  size_t off, size;
} Hole;
typedef struct Heap { // first fit over [0, top)
  Vec(Hole) holes;
  size_t top;
} Heap;
typedef struct Class { // thread arrays of one shape
  uint32_t esize, threads;
  Vec(size_t) free;
} Class;
typedef Vec(int) Dead; // slots to release

struct Comp {
  World *w;
  Arena *arena;
  Code *code;
  const IrModule *m;
  Frame *frame;
  Mode mode;
  bool thread_control;
  uint32_t threads, holding;
  Space tiles;
  Heap ar, lo;
  Vec(Class) classes;
  Vec(size_t) scalars; // free 8-byte slots
  Vec(Slot) slots;
  Dead held;
  Map order;    // IrOp * -> its number in its block
  Map numbered; // IrFunc *
  Vec(char) consts;
  jmp_buf fail;
  const char *error;
  Loc where;
};
typedef struct Comp Comp;

static DT_NORETURN void refuse(Comp *c, const IrOp *op, const char *text) {
  c->error = text;
  c->where = op ? op->loc : LOC_NONE;
  longjmp(c->fail, 1);
}

// ---- slots -----------------------------------------------------------------------------------------------------------
static size_t heap_get(Comp *c, Heap *h, size_t size) {
  for (uint32_t i = 0; i < h->holes.len; i++) {
    Hole *x = &h->holes.data[i];
    if (x->size < size) continue;
    const size_t off = x->off;
    x->off += size;
    x->size -= size;
    if (!x->size) h->holes.data[i] = vec_pop(&h->holes);
    return off;
  }
  const size_t off = h->top;
  h->top += size;
  if (h->top > MAX_AREA) refuse(c, NULL, "the tiles of one program instance need more than 1 GiB");
  return off;
}

static void heap_put(Comp *c, Heap *h, size_t off, size_t size) {
  for (uint32_t i = 0; i < h->holes.len;) {
    const Hole x = h->holes.data[i];
    if (x.off + x.size == off || off + size == x.off) { // grow, and look for the other neighbour
      if (x.off < off) off = x.off;
      size += x.size;
      h->holes.data[i] = vec_pop(&h->holes);
      i = 0;
    } else {
      i++;
    }
  }
  vec_push(c->arena, &h->holes, ((Hole){off, size}));
}

static Class *class_of(Comp *c, uint32_t esize, uint32_t threads) {
  for (uint32_t i = 0; i < c->classes.len; i++) {
    if (c->classes.data[i].esize == esize && c->classes.data[i].threads == threads)
      return &c->classes.data[i];
  }
  vec_push(c->arena, &c->classes, ((Class){.esize = esize, .threads = threads}));
  return &vec_last(&c->classes);
}

static int slot_new(Comp *c, Space space, size_t size, uint32_t esize) {
  Slot s = {.size = bits_round_up(size, space == SP_SC ? 8 : ALIGN),
            .refs = 1,
            .space = (uint8_t)space,
            .esize = (uint8_t)esize};
  switch (space) {
  case SP_SC:
    if (s.size == 8 && c->scalars.len) {
      s.off = vec_pop(&c->scalars);
    } else {
      s.off = c->code->sc_bytes;
      c->code->sc_bytes += s.size;
    }
    break;
  case SP_TH: {
    s.threads = c->mode == MODE_VEC ? UINT32_MAX : c->threads;
    Class *k = class_of(c, esize, s.threads);
    s.off = k->free.len ? vec_pop(&k->free) : heap_get(c, &c->ar, s.size);
    break;
  }
  case SP_LO: s.off = heap_get(c, &c->lo, s.size); break;
  default: s.off = heap_get(c, &c->ar, s.size);
  }
  vec_push(c->arena, &c->slots, s);
  return (int)c->slots.len - 1;
}

static void slot_release(Comp *c, int slot) {
  if (slot < 0) return;
  Slot *s = &c->slots.data[slot];
  if (--s->refs) return;
  if (c->holding && s->space != SP_SC) {
    s->refs = 1;
    vec_push(c->arena, &c->held, slot);
    return;
  }
  switch (s->space) {
  case SP_SC:
    if (s->size == 8) vec_push(c->arena, &c->scalars, s->off);
    break;
  case SP_TH: {
    Class *k = class_of(c, s->esize, s->threads);
    vec_push(c->arena, &k->free, s->off);
    break;
  }
  case SP_LO: heap_put(c, &c->lo, s->off, s->size); break;
  default: heap_put(c, &c->ar, s->off, s->size);
  }
}

// ---- values ------------------------------------------------------------------------------------------------------------
static int value_bytes(const IrType *t) {
  switch (t->kind) {
  case IR_DESC: return (int)sizeof(InterpDesc);
  case IR_SCALAR:
  case IR_PTR:
  case IR_TILE: return ir_type_bytes(t);
  default: return 8;
  }
}

static bool is_tile(const IrValue *v) { return v && v->type->kind == IR_TILE; }
static bool is_thread(const IrValue *v) { return v && ir_type_is_thread(v->type); }
static bool per_thread(Ref r) { return r.space == SP_TH; }

static Val *val_of(Comp *c, const IrValue *v) { return &c->frame->vals[v->id]; }

static Ref use(Comp *c, const IrOp *op, uint32_t i) {
  const IrValue *v = ir_operand(op, i);
  return v ? val_of(c, v)->ref : (Ref){0};
}

// A place for a new value; uniform: one element will do.
static Val place(Comp *c, const IrType *t, bool uniform) {
  const int esize = value_bytes(t);
  Space space = SP_SC;
  size_t n = 1;
  bool strided = false;
  if (t->kind == IR_TILE && !uniform) {
    space = c->tiles;
    n = (size_t)ir_type_elems(t);
    strided = true;
  } else if (!uniform && (t->kind == IR_SCALAR || t->kind == IR_PTR) &&
             (ir_type_is_thread(t) || c->mode == MODE_VEC)) {
    space = SP_TH;
    n = c->mode == MODE_VEC ? 64 : c->threads;
    strided = true;
  }
  Val v = {.slot = slot_new(c, space, n * (size_t)esize, (uint32_t)esize)};
  v.ref = (Ref){.off = (uint32_t)c->slots.data[v.slot].off,
                .space = (uint8_t)space,
                .stride = strided,
                .tsz = space == SP_TH ? (uint8_t)esize : 0,
                .esize = (uint8_t)esize};
  return v;
}

static Ref define(Comp *c, const IrValue *v, bool uniform) {
  *val_of(c, v) = place(c, v->type, uniform);
  return val_of(c, v)->ref;
}

static void alias(Comp *c, const IrValue *v, Val of) {
  *val_of(c, v) = of;
  if (of.slot >= 0) c->slots.data[of.slot].refs++;
}

static uint32_t elems_of(const IrValue *v, Ref r) { // for Ins.n
  return per_thread(r) ? 0 : v->type->kind == IR_TILE && r.stride ? (uint32_t)ir_type_elems(v->type) : 1;
}

static Ref constant(Comp *c, const void *bytes, size_t n, uint32_t esize, bool strided) {
  while (c->consts.len & 7) vec_push(c->arena, &c->consts, 0);
  const size_t off = c->consts.len;
  vec_reserve(c->arena, &c->consts, off + n + 8);
  memcpy(c->consts.data + off, bytes, n);
  c->consts.len += (uint32_t)n;
  if (c->consts.len > MAX_AREA) refuse(c, NULL, "more than 1 GiB of constants");
  return (Ref){.off = (uint32_t)off, .space = SP_CO, .stride = strided, .esize = (uint8_t)esize};
}

static void define_const(Comp *c, const IrValue *v, int64_t bits) {
  *val_of(c, v) = (Val){constant(c, &bits, 8, (uint32_t)value_bytes(v->type), false), -1};
}

// ---- emitting ------------------------------------------------------------------------------------------------------------
static uint32_t here(const Comp *c) { return c->code->ins.len; }

static Ins *emit(Comp *c, const IrOp *op, Exec exec) {
  if (here(c) >= MAX_INS) refuse(c, op, "the program is too large to be interpreted");
  vec_push(&c->w->arena, &c->code->ins, ((Ins){.exec = exec, .op = op, .n = 1}));
  return &vec_last(&c->code->ins);
}
static Ins *at(Comp *c, uint32_t pc) { return &c->code->ins.data[pc]; }

static bool op_is_thread(const IrOp *op) {
  for (uint32_t i = 0; i < op->noperands; i++)
    if (is_thread(op->operands[i].value)) return true;
  for (uint32_t i = 0; i < op->nresults; i++)
    if (is_thread(&op->results[i])) return true;
  return false;
}

// An op that is executed once, or once for each active lane.
static void level(const Comp *c, Ins *i, const IrOp *op) {
  if (c->mode == MODE_VEC || op_is_thread(op) || c->thread_control) i->n = 0;
  if (op_is_thread(op) || c->thread_control || c->mode == MODE_WARP || c->mode == MODE_FIBER)
    i->flags |= INS_THREAD;
}

static Ins *emit3(Comp *c, const IrOp *op, Exec exec) { // operands in a, b, c; first result in r
  Ins *i = emit(c, op, exec);
  i->a = use(c, op, 0);
  i->b = use(c, op, 1);
  i->c = use(c, op, 2);
  i->strides = (uint8_t)(i->a.stride | i->b.stride << 1 | i->c.stride << 2);
  return i;
}

static const Operands *operands(Comp *c, const IrOp *op) {
  Operands *o = arena_alloc(&c->w->arena, sizeof *o + (op->noperands + op->nresults) * sizeof(Ref), 8);
  o->n = op->noperands;
  for (uint32_t i = 0; i < op->noperands; i++) o->at[i] = use(c, op, i);
  for (uint32_t i = 0; i < op->nresults; i++) o->at[op->noperands + i] = val_of(c, &op->results[i])->ref;
  return o;
}

static bool same_place(Ref a, Ref b) { return a.space == b.space && a.off == b.off; }
static bool same_ref(Ref a, Ref b) { return same_place(a, b) && a.stride == b.stride; }

static void copy(Comp *c, const IrOp *op, const IrType *t, Ref to, Ref from, int flags) {
  if (same_ref(to, from)) return;
  Ins *i = emit(c, op, x_copy);
  i->r = to;
  i->a = from;
  i->strides = from.stride;
  i->n = per_thread(to) ? 0 : t->kind == IR_TILE && to.stride ? (uint32_t)ir_type_elems(t) : 1;
  i->flags = (uint8_t)flags;
}

// ---- which ops single warps may execute --------------------------------------------------------------------------------------
static const IrOp *callee_body(const Comp *c, const IrOp *op, const IrFunc **f) {
  const IrAttr *a = ir_attr(op, ATTR_callee);
  *f = a && a->s ? ir_func_find(c->m, a->s) : NULL;
  return *f && (*f)->body ? (*f)->body->first : NULL;
}

static bool control_is_thread(const IrOp *op) {
  switch (op->kind) {
  case OP_if:
  case OP_switch: return is_thread(ir_operand(op, 0));
  case OP_for:
    return is_thread(ir_operand(op, 0)) || is_thread(ir_operand(op, 1)) || is_thread(ir_operand(op, 2));
  case OP_while: {
    const IrOp *t = op->nregions ? ir_terminator(op->regions[0]) : NULL;
    return t && is_thread(ir_operand(t, 0));
  }
  default: return false;
  }
}

static bool parts(const Comp *c, const IrOp *op, int depth) { // may its threads part, or wait one by one?
  if (depth > MAX_INLINE) return false;
  if (control_is_thread(op)) return true;
  if (op->kind == OP_wait || op->kind == OP_mbarrier_wait) return op_is_thread(op);
  if (op->kind == OP_call) {
    const IrFunc *f;
    for (const IrOp *o = callee_body(c, op, &f); o; o = o->next)
      if (parts(c, o, depth + 1)) return true;
    return false;
  }
  if (op->kind == OP_warp_partitions || op->kind == OP_warp_for || op->kind == OP_reduce ||
      op->kind == OP_scan)
    return false;
  for (uint32_t r = 0; r < op->nregions; r++)
    for (const IrOp *o = op->regions[r]->first; o; o = o->next)
      if (parts(c, o, depth + 1)) return true;
  return false;
}

static bool warp_ok(const Comp *c, const IrOp *op, bool under, int depth) {
  if (depth > MAX_INLINE) return false;
  for (uint32_t i = 0; i < op->noperands; i++)
    if (is_tile(op->operands[i].value)) return false;
  for (uint32_t i = 0; i < op->nresults; i++)
    if (is_tile(&op->results[i])) return false;
  switch (op->kind) {
  case OP_if:
  case OP_for:
  case OP_while:
  case OP_switch:
    under |= control_is_thread(op);
    for (uint32_t r = 0; r < op->nregions; r++)
      for (const IrOp *o = op->regions[r]->first; o; o = o->next)
        if (!warp_ok(c, o, under, depth + 1)) return false;
    return true;
  case OP_call: {
    const IrFunc *f;
    for (const IrOp *o = callee_body(c, op, &f); o; o = o->next)
      if (!warp_ok(c, o, under, depth + 1)) return false;
    return f != NULL;
  }
  case OP_yield:
  case OP_cond_yield:
  case OP_return:
  case OP_barrier:
  case OP_warp_barrier:
  case OP_fence:
  case OP_put_quiet:
  case OP_put_fence:
  case OP_assume:
  case OP_assert: return true;
  case OP_from_thread:
  case OP_release:
  case OP_acquire:
  case OP_warp_partitions:
  case OP_warp_for: return false;
  case OP_put:
  case OP_get:
  case OP_put_signal:
  case OP_team_barrier: return ir_attr_i(op, ATTR_group) != GROUP_block && (under || op_is_thread(op));
  default: return under || op_is_thread(op) || (ir_ops[op->kind].traits & TRAIT_PURE);
  }
}

// ---- blocks --------------------------------------------------------------------------------------------------------------------
static bool number_op(IrOp *op, void *user) {
  Comp *c = user;
  const uint32_t n = op->prev ? (uint32_t)(uintptr_t)map_getp(&c->order, op->prev) + 1 : 1;
  map_set(&c->order, (uint64_t)(uintptr_t)op, n);
  return true;
}

static uint32_t order_of(Comp *c, const IrOp *op) {
  uint64_t n = 0;
  map_get(&c->order, (uint64_t)(uintptr_t)op, &n);
  return (uint32_t)n;
}

static uint32_t last_use(Comp *c, const IrValue *v, const IrBlock *b, uint32_t def) {
  uint32_t last = def;
  for (const IrUse *u = v->uses; u; u = u->next) {
    const IrOp *op = u->user;
    while (op && op->parent != b) op = op->parent->owner;
    if (!op) continue;
    const uint32_t n = order_of(c, op);
    if (n > last) last = n;
  }
  return last;
}

static void compile_op(Comp *c, const IrOp *op);

// Compiles all but the terminator; gives what is to be released after it.
static Dead compile_block(Comp *c, const IrBlock *b) {
  const IrOp *term = b->last;
  if (!term || !(ir_ops[term->kind].traits & TRAIT_TERMINATOR))
    refuse(c, b->owner, "a block without terminator");
  const uint32_t n = order_of(c, term) + 1;
  // Values by the op after which they die, as lists through `next`.
  uint32_t count = 0;
  for (const IrOp *op = b->first; op; op = op->next) count += op->nresults;
  int *head = arena_array(c->arena, int, n + 1), *next = arena_array(c->arena, int, count + 1);
  const IrValue **value = arena_array(c->arena, const IrValue *, count + 1);
  uint32_t k = 0;
  for (const IrOp *op = b->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->nresults; i++) {
      const uint32_t dies = last_use(c, &op->results[i], b, order_of(c, op));
      k++;
      value[k] = &op->results[i];
      next[k] = head[dies];
      head[dies] = (int)k;
    }
  }
  const IrOp *span_last = NULL;
  uint32_t fork = 0;
  for (const IrOp *op = b->first; op != term; op = op->next) {
    if (c->mode == MODE_BLOCK && !span_last && parts(c, op, 0)) {
      if (warp_ok(c, op, false, 0)) {
        span_last = op;
        for (const IrOp *q = op->next; q != term && warp_ok(c, q, false, 0); q = q->next)
          if (parts(c, q, 0)) span_last = q;
        fork = here(c);
        emit(c, op, x_fork);
        c->mode = MODE_WARP;
      } else if (control_is_thread(op)) {
        refuse(c, op, "an operation of the whole program stands under a condition of single threads");
      }
    }
    compile_op(c, op);
    if (op == span_last) {
      emit(c, op, x_join);
      at(c, fork)->target = here(c);
      c->mode = MODE_BLOCK;
      span_last = NULL;
    }
    for (int d = head[order_of(c, op)]; d; d = next[d]) slot_release(c, val_of(c, value[d])->slot);
  }
  Dead dead = {0};
  for (int d = head[order_of(c, term)]; d; d = next[d]) vec_push(c->arena, &dead, val_of(c, value[d])->slot);
  return dead;
}

static void bury(Comp *c, Dead dead) {
  for (uint32_t i = 0; i < dead.len; i++) slot_release(c, dead.data[i]);
}

static const IrOp *term_of(const IrBlock *b) { return b->last; }

// Copies the terminator's operands from `first` on to the given values' places. `carried`: the places are also read by
// these operands (loop arguments), so those go through temporaries.
static void hand_over(Comp *c, const IrOp *term, uint32_t first, const IrValue *const *to, uint32_t n,
                      bool carried, int flags) {
  if (term->noperands < first + n) refuse(c, term, "a terminator hands over too few values");
  Val *temp = carried ? arena_array(c->arena, Val, n + 1) : NULL;
  Ref *from = arena_array(c->arena, Ref, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    from[i] = use(c, term, first + i);
    if (!carried) continue;
    temp[i].slot = -1;
    for (uint32_t j = 0; j < i; j++) {
      if (!same_place(from[i], val_of(c, to[j])->ref)) continue;
      temp[i] = place(c, to[i]->type, !val_of(c, to[i])->ref.stride);
      copy(c, term, to[i]->type, temp[i].ref, from[i], 0);
      from[i] = temp[i].ref;
      break;
    }
  }
  for (uint32_t i = 0; i < n; i++) copy(c, term, to[i]->type, val_of(c, to[i])->ref, from[i], flags);
  for (uint32_t i = 0; carried && i < n; i++) slot_release(c, temp[i].slot);
}

static const IrValue **pointers(Comp *c, const IrValue *first, uint32_t n) {
  const IrValue **p = arena_array(c->arena, const IrValue *, n + 1);
  for (uint32_t i = 0; i < n; i++) p[i] = &first[i];
  return p;
}

// ---- control ---------------------------------------------------------------------------------------------------------------------
static Ref mask_slot(Comp *c) {
  const int s = slot_new(c, SP_SC, 8, 8);
  return (Ref){.off = (uint32_t)c->slots.data[s].off, .space = SP_SC, .esize = 8};
}
static void mask_release(Comp *c, Ref r) { vec_push(c->arena, &c->scalars, (size_t)r.off); }

static void compile_if(Comp *c, const IrOp *op) {
  const Ref cond = use(c, op, 0);
  const bool thread = per_thread(cond), under = c->thread_control;
  if (op->nregions != 2) refuse(c, op, "an if without two regions");
  for (uint32_t i = 0; i < op->nresults; i++) define(c, &op->results[i], false);
  const IrValue **res = pointers(c, op->results, op->nresults);
  const int flags = thread ? INS_MASKED : 0;
  Ref saved = {0}, other = {0};
  if (thread) saved = mask_slot(c), other = mask_slot(c);
  c->thread_control |= thread;
  const uint32_t test = here(c);
  Ins *i = emit(c, op, thread ? x_tif : x_jump_if_not);
  i->a = cond;
  i->b = saved;
  i->c = other;
  Dead dead = compile_block(c, op->regions[0]);
  hand_over(c, term_of(op->regions[0]), 0, res, op->nresults, false, flags);
  bury(c, dead);
  const uint32_t mid = here(c);
  i = emit(c, op, thread ? x_tset : x_jump);
  i->a = other;
  at(c, test)->target = thread ? mid : here(c);
  dead = compile_block(c, op->regions[1]);
  hand_over(c, term_of(op->regions[1]), 0, res, op->nresults, false, flags);
  bury(c, dead);
  at(c, mid)->target = here(c);
  if (thread) {
    emit(c, op, x_trest)->a = saved;
    mask_release(c, saved);
    mask_release(c, other);
  }
  c->thread_control = under;
}

static void compile_switch(Comp *c, const IrOp *op) {
  const Ref index = use(c, op, 0);
  const bool thread = per_thread(index), under = c->thread_control;
  const IrAttr *cases = ir_attr(op, ATTR_cases);
  const uint32_t n = op->nregions;
  if (!n || (cases ? cases->ints.n : 0) != n - 1)
    refuse(c, op, "a switch whose cases do not fit its regions");
  for (uint32_t i = 0; i < op->nresults; i++) define(c, &op->results[i], false);
  const IrValue **res = pointers(c, op->results, op->nresults);
  Ref saved = {0}, left = {0};
  if (thread) {
    saved = mask_slot(c);
    left = mask_slot(c);
    Ins *i = emit(c, op, x_tsave);
    i->a = saved;
    i->b = left;
  }
  c->thread_control |= thread;
  uint32_t *ends = arena_array(c->arena, uint32_t, n);
  for (uint32_t r = 0; r < n; r++) {
    uint32_t test = UINT32_MAX;
    if (thread || r + 1 < n) {
      test = here(c);
      Ins *i = emit(c, op, thread ? x_tcase : x_switch_to); // goes to target unless this case is taken
      i->a = index;
      i->b = left;
      i->n = r + 1 < n;
      if (r + 1 < n) i->extra = &cases->ints.v[r];
    }
    const Dead dead = compile_block(c, op->regions[r]);
    hand_over(c, term_of(op->regions[r]), 0, res, op->nresults, false, thread ? INS_MASKED : 0);
    bury(c, dead);
    ends[r] = here(c);
    if (!thread && r + 1 < n) emit(c, op, x_jump);
    if (test != UINT32_MAX) at(c, test)->target = here(c);
  }
  for (uint32_t r = 0; !thread && r + 1 < n; r++) at(c, ends[r])->target = here(c);
  if (thread) {
    emit(c, op, x_trest)->a = saved;
    mask_release(c, saved);
    mask_release(c, left);
  }
  c->thread_control = under;
}

static void compile_for(Comp *c, const IrOp *op) {
  const Ref lo = use(c, op, 0), hi = use(c, op, 1), step = use(c, op, 2);
  const bool thread = per_thread(lo) || per_thread(hi) || per_thread(step), under = c->thread_control;
  if (op->nregions != 1 || op->noperands < 3 || op->regions[0]->args.len != op->nresults + 1 ||
      op->noperands != op->nresults + 3)
    refuse(c, op, "a for whose values do not fit");
  const IrBlock *body = op->regions[0];
  const IrValue *iv = body->args.data[0];
  for (uint32_t i = 0; i < op->nresults; i++) {
    const Ref r = define(c, &op->results[i], false);
    copy(c, op, op->results[i].type, r, use(c, op, 3 + i), 0);
    *val_of(c, body->args.data[i + 1]) = (Val){r, -1};
  }
  const Val ivv = place(c, iv->type, !thread);
  *val_of(c, iv) = (Val){ivv.ref, -1};
  copy(c, op, iv->type, ivv.ref, lo, 0);
  Ref saved = {0};
  if (thread) {
    saved = mask_slot(c);
    Ins *i = emit(c, op, x_tsave);
    i->a = saved;
  }
  c->thread_control |= thread;
  const uint32_t head = here(c);
  Ins *i = emit(c, op, thread ? x_tfor : x_for_test);
  i->a = ivv.ref, i->b = hi, i->c = step;
  i->dt = (uint8_t)ir_attr_i(op, ATTR_uns_iv);
  const uint32_t start = here(c);
  const Dead dead = compile_block(c, body);
  hand_over(c, term_of(body), 0, pointers(c, op->results, op->nresults), op->nresults, true,
            thread ? INS_MASKED : 0);
  bury(c, dead);
  i = emit(c, op, thread ? x_tfor_next : x_for_next);
  i->a = ivv.ref, i->b = hi, i->c = step;
  i->dt = (uint8_t)ir_attr_i(op, ATTR_uns_iv);
  i->target = thread ? head : start;
  at(c, head)->target = here(c);
  if (thread) {
    emit(c, op, x_trest)->a = saved;
    mask_release(c, saved);
  }
  slot_release(c, ivv.slot);
  c->thread_control = under;
}

// A loop that only reads, compares and tries: it can be put to sleep until a word that it reads changes.
static bool only_polls(const IrBlock *b, int depth) {
  for (const IrOp *op = b->first; op; op = op->next) {
    if (depth > 8) return false;
    for (uint32_t i = 0; i < op->nresults; i++)
      if (is_tile(&op->results[i])) return false;
    switch (op->kind) {
    case OP_load:
    case OP_atomic_cas:
    case OP_atomic_rmw:
    case OP_fence:
    case OP_yield:
    case OP_cond_yield: break;
    case OP_if:
      if (!only_polls(op->regions[0], depth + 1) || !only_polls(op->regions[1], depth + 1)) return false;
      break;
    default:
      if (!(ir_ops[op->kind].traits & TRAIT_PURE) || op->nregions) return false;
    }
  }
  return true;
}

static void compile_while(Comp *c, const IrOp *op) {
  const bool under = c->thread_control;
  if (op->nregions != 2) refuse(c, op, "a while without two regions");
  const IrBlock *before = op->regions[0], *body = op->regions[1];
  const IrOp *test = term_of(before);
  if (before->args.len != op->noperands || body->args.len != op->nresults || !test ||
      test->kind != OP_cond_yield || test->noperands != op->nresults + 1)
    refuse(c, op, "a while whose values do not fit");
  const bool thread = is_thread(ir_operand(test, 0)) || c->mode == MODE_VEC;
  const bool polls = only_polls(before, 0) && only_polls(body, 0);
  const int flags = (thread ? INS_MASKED : 0) | (polls ? INS_TRACK : 0);
  Val *carried = arena_array(c->arena, Val, op->noperands + 1);
  for (uint32_t i = 0; i < op->noperands; i++) {
    carried[i] = place(c, before->args.data[i]->type, false);
    *val_of(c, before->args.data[i]) = (Val){carried[i].ref, -1};
    copy(c, op, before->args.data[i]->type, carried[i].ref, use(c, op, i), 0);
  }
  for (uint32_t i = 0; i < op->nresults; i++)
    *val_of(c, body->args.data[i]) = (Val){define(c, &op->results[i], false), -1};
  Ref saved = {0};
  if (thread) {
    saved = mask_slot(c);
    emit(c, op, x_tsave)->a = saved;
  }
  c->thread_control |= thread && is_thread(ir_operand(test, 0));
  const uint32_t head = here(c);
  if (polls) emit(c, op, x_spin_head);
  Dead dead = compile_block(c, before);
  hand_over(c, test, 1, pointers(c, op->results, op->nresults), op->nresults, false, thread ? INS_MASKED : 0);
  const Ref cond = use(c, test, 0);
  const uint32_t jump = here(c);
  Ins *i = emit(c, op, thread ? x_tloop : x_jump_if_not);
  i->a = cond;
  i->strides = cond.stride;
  bury(c, dead);
  dead = compile_block(c, body);
  hand_over(c, term_of(body), 0, (const IrValue *const *)before->args.data, op->noperands, true, flags);
  bury(c, dead);
  emit(c, op, polls ? x_spin : x_jump)->target = head;
  at(c, jump)->target = here(c);
  if (thread) {
    emit(c, op, x_trest)->a = saved;
    mask_release(c, saved);
  }
  for (uint32_t k = 0; k < op->noperands; k++) slot_release(c, carried[k].slot);
  c->thread_control = under;
}

static void compile_partitions(Comp *c, const IrOp *op) {
  const IrAttr *first = ir_attr(op, ATTR_first), *warps = ir_attr(op, ATTR_warps);
  if (c->mode != MODE_BLOCK || !first || !warps || first->ints.n != op->nregions ||
      warps->ints.n != op->nregions)
    refuse(c, op, "warp_partitions whose attributes do not fit");
  const uint32_t n = op->nregions, threads = c->threads;
  PartExtra *x = arena_alloc(&c->w->arena, sizeof *x + n * sizeof x->at[0], 8);
  x->n = n;
  const uint32_t fork = here(c);
  emit(c, op, x_fork_parts)->extra = x;
  c->holding++;
  for (uint32_t r = 0; r < n; r++) {
    const int64_t f = first->ints.v[r], k = warps->ints.v[r];
    if (f < 0 || k <= 0 || f + k > (int64_t)c->code->nwarps)
      refuse(c, op, "a partition outside the block's warps");
    x->at[r].first = (uint32_t)f;
    x->at[r].warps = (uint32_t)k;
    x->at[r].pc = here(c);
    c->threads = (uint32_t)k * c->code->lanes;
    bury(c, compile_block(c, op->regions[r]));
    emit(c, op, x_part_end);
  }
  c->threads = threads;
  if (!--c->holding) {
    const Dead held = c->held;
    c->held = (Dead){0};
    bury(c, held);
  }
  at(c, fork)->target = here(c);
}

static void compile_warp_for(Comp *c, const IrOp *op) {
  const uint32_t count = (uint32_t)ir_attr_i(op, ATTR_count);
  if (op->nregions != 1 || op->regions[0]->args.len != 1 || !count || c->mode != MODE_BLOCK)
    refuse(c, op, "a warp_for that does not fit");
  const IrBlock *body = op->regions[0];
  const IrValue *w = body->args.data[0];
  const Val wv = place(c, w->type, true);
  *val_of(c, w) = (Val){wv.ref, -1};
  const bool fiber = ir_attr_i(op, ATTR_fiber);
  const uint32_t head = here(c);
  if (fiber) {
    Ins *i = emit(c, op, x_fork_warps);
    i->a = wv.ref;
    i->n = count;
    c->mode = MODE_FIBER;
    c->tiles = SP_LO;
    bury(c, compile_block(c, body));
    c->tiles = SP_AR;
    c->mode = MODE_BLOCK;
    emit(c, op, x_join);
  } else {
    const int64_t zero = 0;
    copy(c, op, w->type, wv.ref, constant(c, &zero, 8, 4, false), 0);
    const uint32_t top = here(c);
    Ins *i = emit(c, op, x_warp_set); // the next warp, or on to target
    i->a = wv.ref;
    i->n = count;
    bury(c, compile_block(c, body));
    emit(c, op, x_jump)->target = top;
    at(c, top)->target = here(c);
  }
  at(c, head)->target = here(c);
  slot_release(c, wv.slot);
}

static void compile_call(Comp *c, const IrOp *op) {
  const IrFunc *f;
  callee_body(c, op, &f);
  if (!f || !f->body || f->body->args.len != op->noperands)
    refuse(c, op, "a call of a function that is not there");
  int depth = 0;
  for (const Frame *fr = c->frame; fr; fr = fr->up) {
    if (fr->func == f || ++depth > MAX_INLINE) refuse(c, op, "a recursive call");
  }
  if (!map_get(&c->numbered, (uint64_t)(uintptr_t)f, NULL)) {
    map_set(&c->numbered, (uint64_t)(uintptr_t)f, 1);
    ir_walk(f->body, number_op, c);
  }
  Frame *in = arena_new(c->arena, Frame), *out = c->frame;
  *in = (Frame){out, f, arena_array(c->arena, Val, f->next_id + 1)};
  for (uint32_t i = 0; i < op->noperands; i++) in->vals[f->body->args.data[i]->id] = (Val){use(c, op, i), -1};
  c->frame = in;
  const Dead dead = compile_block(c, f->body);
  const IrOp *ret = term_of(f->body);
  if (ret->noperands != op->nresults) refuse(c, op, "a call whose results do not fit");
  for (uint32_t i = 0; i < op->nresults; i++) {
    const Val v = *val_of(c, ret->operands[i].value);
    if (v.slot >= 0) c->slots.data[v.slot].refs++;
    out->vals[op->results[i].id] = v;
  }
  // A parameter handed back belongs to the caller's operand and may die before the result.
  c->frame = out;
  bury(c, dead);
  for (uint32_t i = 0; i < op->nresults; i++) {
    Val *v = val_of(c, &op->results[i]);
    if (v->slot >= 0 || v->ref.space == SP_CO) continue;
    for (uint32_t k = 0; k < op->noperands; k++) {
      const Val *o = op->operands[k].value ? val_of(c, op->operands[k].value) : NULL;
      if (!o || o->slot < 0 || !same_place(o->ref, v->ref)) continue;
      v->slot = o->slot;
      c->slots.data[o->slot].refs++;
      break;
    }
  }
}

// ---- tiles -------------------------------------------------------------------------------------------------------------------------
static int64_t row_major(const IrType *t, int64_t *strides) {
  int64_t s = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    strides[i] = s;
    s *= t->shape[i];
  }
  return s;
}

static void nd(Comp *c, const IrOp *op, Ref r, Ref a, int rank, const int64_t *shape, const int64_t *rs,
               const int64_t *as) {
  Ins *i = emit(c, op, x_nd_copy);
  i->r = r;
  i->a = a;
  int64_t n = 1;
  for (int d = 0; d < rank; d++) n *= shape[d];
  i->n = (uint32_t)n;
  i->extra = interp_nd(c->w, rank, shape, rs, as);
}

static void compile_shape(Comp *c, const IrOp *op) {
  const IrValue *v = &op->results[0], *src = ir_operand(op, 0);
  const Val a = *val_of(c, src);
  const IrType *t = v->type, *s = src->type;
  int64_t shape[IR_MAX_RANK], rs[IR_MAX_RANK], as[IR_MAX_RANK], ss[IR_MAX_RANK];
  if (!a.ref.stride && op->kind != OP_split) {
    alias(c, v, a);
    return;
  }
  row_major(t, rs);
  row_major(s, ss);
  switch (op->kind) {
  case OP_broadcast:
    if (t->rank != s->rank) refuse(c, op, "a broadcast to another rank");
    for (int d = 0; d < t->rank; d++) {
      shape[d] = t->shape[d];
      as[d] = s->shape[d] == 1 ? 0 : ss[d];
    }
    if (ir_type_elems(t) == ir_type_elems(s)) {
      alias(c, v, a);
      return;
    }
    nd(c, op, define(c, v, false), a.ref, t->rank, shape, rs, as);
    return;
  case OP_trans: {
    const IrAttr *perm = ir_attr(op, ATTR_perm);
    if (!perm || (int)perm->ints.n != t->rank || t->rank != s->rank)
      refuse(c, op, "a trans whose perm does not fit");
    int64_t last = -1;
    bool moves = false;
    for (int d = 0; d < t->rank; d++) {
      const int64_t p = perm->ints.v[d];
      if (p < 0 || p >= s->rank) refuse(c, op, "a trans whose perm does not fit");
      shape[d] = t->shape[d];
      as[d] = ss[p];
      if (t->shape[d] == 1) continue;
      moves |= p < last;
      last = p;
    }
    if (!moves) {
      alias(c, v, a);
      return;
    }
    nd(c, op, define(c, v, false), a.ref, t->rank, shape, rs, as);
    return;
  }
  default: alias(c, v, a); // expand_dims, reshape: row-major order stays
  }
}

static void compile_pair(Comp *c, const IrOp *op) { // join, cat, split
  Ins *i;
  switch (op->kind) {
  case OP_join: {
    const Ref r = define(c, &op->results[0], false);
    i = emit3(c, op, x_join_tiles);
    i->r = r;
    i->n = (uint32_t)ir_type_elems(ir_operand(op, 0)->type);
    return;
  }
  case OP_cat: {
    const Ref r = define(c, &op->results[0], false);
    i = emit3(c, op, x_cat);
    i->r = r;
    i->n = (uint32_t)ir_type_elems(ir_operand(op, 0)->type);
    return;
  }
  default: {
    const Val a = *val_of(c, ir_operand(op, 0));
    if (!a.ref.stride) {
      alias(c, &op->results[0], a);
      alias(c, &op->results[1], a);
      return;
    }
    const Ref x = define(c, &op->results[0], false), y = define(c, &op->results[1], false);
    i = emit3(c, op, x_split_tiles);
    i->r = x;
    i->b = y;
    i->n = (uint32_t)ir_type_elems(op->results[0].type);
  }
  }
}

static bool is_arg(const IrBlock *b, const IrValue *v, uint32_t i) {
  return v && b->args.len > i && b->args.data[i] == v;
}

static void compile_reduce(Comp *c, const IrOp *op) {
  const IrBlock *body = op->nregions ? op->regions[0] : NULL;
  const uint32_t n = op->noperands;
  if (!body || !n || body->args.len != 2 * n || op->nresults != n || !is_tile(ir_operand(op, 0)))
    refuse(c, op, "a combine region that does not fit");
  const IrType *t = ir_operand(op, 0)->type;
  const int64_t axis = ir_attr_i(op, ATTR_axis);
  if (axis < 0 || axis >= t->rank) refuse(c, op, "an axis outside the tile");
  ReduceExtra *x = arena_new(&c->w->arena, ReduceExtra);
  *x = (ReduceExtra){
      .count = n, .outer = 1, .k = t->shape[axis], .inner = 1, .reverse = ir_attr_i(op, ATTR_reverse)};
  for (int d = 0; d < axis; d++) x->outer *= t->shape[d];
  for (int d = (int)axis + 1; d < t->rank; d++) x->inner *= t->shape[d];
  Ref *refs = arena_array(&c->w->arena, Ref, 5 * n);
  x->in = refs, x->out = refs + n, x->x = refs + 2 * n, x->y = refs + 3 * n, x->yielded = refs + 4 * n;
  for (uint32_t k = 0; k < n; k++) {
    x->in[k] = use(c, op, k);
    x->out[k] = define(c, &op->results[k], false);
  }
  const uint32_t pc = here(c);
  Ins *i = emit(c, op, op->kind == OP_reduce ? x_reduce : x_scan);
  i->extra = x;
  i->n = (uint32_t)ir_type_elems(t);
  const Mode mode = c->mode;
  const bool under = c->thread_control;
  c->mode = MODE_VEC;
  c->thread_control = false;
  Val *xs = arena_array(c->arena, Val, 2 * n);
  for (uint32_t k = 0; k < 2 * n; k++) {
    xs[k] = place(c, body->args.data[k]->type, false);
    *val_of(c, body->args.data[k]) = (Val){xs[k].ref, -1};
    (k < n ? x->x : x->y)[k % n] = xs[k].ref;
  }
  x->body = here(c);
  const Dead dead = compile_block(c, body);
  const IrOp *term = term_of(body);
  if (term->noperands != n) refuse(c, op, "a combine region that does not fit");
  for (uint32_t k = 0; k < n; k++) x->yielded[k] = use(c, term, k);
  emit(c, op, x_body_end);
  bury(c, dead);
  for (uint32_t k = 0; k < 2 * n; k++) slot_release(c, xs[k].slot);
  c->mode = mode;
  c->thread_control = under;
  at(c, pc)->target = here(c);
  const IrOp *only = body->first;
  if (n == 1 && only && only->next == term && only->noperands == 2 && only->nresults == 1 &&
      ir_operand(term, 0) == &only->results[0] && (ir_ops[only->kind].traits & TRAIT_SAME)) {
    const bool straight = is_arg(body, ir_operand(only, 0), 0) && is_arg(body, ir_operand(only, 1), 1);
    const bool swapped = is_arg(body, ir_operand(only, 0), 1) && is_arg(body, ir_operand(only, 1), 0);
    Picked p;
    if ((straight || swapped) && interp_pick(only, &p) && !p.narrow) {
      x->fast = p.fn;
      x->fast_swapped = swapped;
    }
  }
}

static void compile_dot(Comp *c, const IrOp *op) {
  const IrType *a = ir_operand(op, 0)->type, *b = ir_operand(op, 1)->type, *t = op->results[0].type;
  const int r = t->rank;
  if (r < 2 || a->rank != r || b->rank != r) refuse(c, op, "a dot of unfitting ranks");
  DotExtra *x = arena_new(&c->w->arena, DotExtra);
  *x = (DotExtra){1, t->shape[r - 2], t->shape[r - 1], a->shape[r - 1], a->dtype, b->dtype, t->dtype};
  for (int d = 0; d < r - 2; d++) x->batch *= t->shape[d];
  if (a->shape[r - 2] != x->m || b->shape[r - 1] != x->n || b->shape[r - 2] != x->k)
    refuse(c, op, "a dot of unfitting shapes");
  const Ref res = define(c, &op->results[0], false);
  Ins *i = emit3(c, op, x_dot);
  i->r = res;
  i->n = (uint32_t)ir_type_elems(t);
  i->extra = x;
}

// ---- the rest ------------------------------------------------------------------------------------------------------------------------
static void compile_elem(Comp *c, const IrOp *op) {
  Picked p;
  if (!interp_pick(op, &p)) refuse(c, op, "an operation on types that it does not know");
  bool uniform = true;
  for (uint32_t i = 0; i < op->noperands; i++) uniform &= !use(c, op, i).stride;
  const Ref r = define(c, &op->results[0], uniform);
  const bool rtz = op->kind == OP_fcast && ir_attr_i(op, ATTR_round) == ROUND_rtz;
  Ins *i = emit3(c, op, rtz ? x_fcast_rtz : p.narrow ? x_elem_narrow : x_elem);
  i->r = r;
  i->fn = p.fn;
  i->dt = p.dt;
  i->rdt = p.rdt;
  i->n = elems_of(&op->results[0], r);
}

static void compile_plain(Comp *c, const IrOp *op, Exec exec) { // up to three operands and one result
  Ref r = {0};
  if (op->nresults) r = define(c, &op->results[0], false);
  Ins *i = emit3(c, op, exec);
  i->r = r;
  level(c, i, op);
  const IrValue *shaped = op->nresults ? &op->results[0] : ir_operand(op, 0);
  if (i->n && shaped && is_tile(shaped)) i->n = (uint32_t)ir_type_elems(shaped->type);
}

static void compile_many(Comp *c, const IrOp *op, Exec exec) { // any operands, in extra
  for (uint32_t k = 0; k < op->nresults; k++) define(c, &op->results[k], false);
  const Operands *o = operands(c, op);
  Ins *i = emit(c, op, exec);
  i->extra = o;
  if (op->nresults) i->r = val_of(c, &op->results[0])->ref;
  level(c, i, op);
}

static void compile_alloc(Comp *c, const IrOp *op) {
  const IrType *t = op->results[0].type;
  const size_t bytes =
      (size_t)ir_type_elems(t) * (size_t)ir_type_bytes(t) * (size_t)(t->stages ? t->stages : 1);
  Buf *b = arena_new(&c->w->arena, Buf);
  if (c->m->stage == STAGE_placed && ir_attr(op, ATTR_offset)) {
    const int64_t off = ir_attr_i(op, ATTR_offset);
    if (off < 0 || (size_t)off + bytes > c->code->arena_bytes) refuse(c, op, "a buffer outside the arena");
    b->off = (uint32_t)(c->code->arena_off + (size_t)off);
  } else {
    b->off = (uint32_t)heap_get(c, &c->ar, bits_round_up(bytes, ALIGN));
  }
  b->bytes = (uint32_t)bytes;
  b->op = op;
  vec_push(&c->w->arena, &c->code->bufs, b);
  const Ref r = define(c, &op->results[0], false);
  Ins *i = emit(c, op, x_mem_alloc);
  i->r = r;
  i->extra = b;
}

static void compile_op(Comp *c, const IrOp *op) {
  switch (op->kind) {
  case OP_const: define_const(c, &op->results[0], ir_attr_i(op, ATTR_value)); return;
  case OP_num_ranks: define_const(c, &op->results[0], c->w->c->ranks); return;
  case OP_num_threads: define_const(c, &op->results[0], c->threads); return;
  case OP_warp_size: define_const(c, &op->results[0], c->code->lanes); return;
  case OP_arange: {
    const int64_t start = ir_attr_i(op, ATTR_start), n = ir_type_elems(op->results[0].type);
    int32_t *v = arena_array(c->arena, int32_t, n);
    for (int64_t k = 0; k < n; k++) v[k] = (int32_t)(start + k);
    *val_of(c, &op->results[0]) = (Val){constant(c, v, (size_t)n * 4, 4, n > 1), -1};
    return;
  }
  case OP_program_id: compile_plain(c, op, x_program_id); return;
  case OP_num_programs: compile_plain(c, op, x_num_programs); return;
  case OP_rank: compile_plain(c, op, x_rank); return;
  case OP_tid: compile_plain(c, op, x_tid); return;
  case OP_timer: compile_plain(c, op, x_timer); return;
  case OP_smid: compile_plain(c, op, x_smid); return;
  case OP_hint:
  case OP_consume:
  case OP_to_thread:
  case OP_splat:
  case OP_bitcast:
  case OP_ptr2int:
  case OP_int2ptr: {
    const Val v = *val_of(c, ir_operand(op, 0));
    alias(c, &op->results[0], v);
    return;
  }
  case OP_unsplat: {
    Val v = *val_of(c, ir_operand(op, 0));
    v.ref.stride = 0;
    alias(c, &op->results[0], v);
    return;
  }
  case OP_expand_dims:
  case OP_broadcast:
  case OP_reshape:
  case OP_trans: compile_shape(c, op); return;
  case OP_join:
  case OP_split:
  case OP_cat: compile_pair(c, op); return;
  case OP_ramp: compile_plain(c, op, x_ramp); return;
  case OP_gather: {
    const IrType *a = ir_operand(op, 0)->type, *t = op->results[0].type;
    const int64_t axis = ir_attr_i(op, ATTR_axis);
    if (axis < 0 || axis >= t->rank || a->rank != t->rank) refuse(c, op, "an axis outside the tile");
    AxisExtra *x = arena_new(&c->w->arena, AxisExtra);
    *x = (AxisExtra){1, t->shape[axis], 1, a->shape[axis]};
    for (int d = 0; d < axis; d++) x->outer *= t->shape[d];
    for (int d = (int)axis + 1; d < t->rank; d++) x->inner *= t->shape[d];
    compile_plain(c, op, x_gather);
    vec_last(&c->code->ins).extra = x;
    return;
  }
  case OP_histogram: {
    const uint32_t n = (uint32_t)ir_type_elems(ir_operand(op, 0)->type);
    compile_plain(c, op, x_histogram);
    vec_last(&c->code->ins).target = n;
    return;
  }
  case OP_reduce:
  case OP_scan: compile_reduce(c, op); return;
  case OP_dot: compile_dot(c, op); return;
  case OP_vec_get: compile_plain(c, op, x_vec_get); return;
  case OP_vec_set: compile_plain(c, op, x_vec_set); return;
  case OP_from_thread: compile_plain(c, op, x_from_thread); return;
  case OP_assume: compile_plain(c, op, x_assume); return;
  case OP_assert: compile_plain(c, op, x_assert); return;
  case OP_print: compile_many(c, op, x_print); return;
  case OP_shfl: compile_plain(c, op, x_shfl); return;
  case OP_ballot: compile_plain(c, op, x_ballot); return;
  case OP_active_mask: compile_plain(c, op, x_active_mask); return;
  case OP_load: compile_plain(c, op, x_load); return;
  case OP_store: compile_plain(c, op, x_store); return;
  case OP_atomic_rmw: compile_plain(c, op, x_rmw); return;
  case OP_atomic_cas: compile_plain(c, op, x_cas); return;
  case OP_load_vec: compile_plain(c, op, x_load_vec); return;
  case OP_prefetch: return; // changes nothing that a program can see
  case OP_store_vec:
    compile_plain(c, op, x_store_vec);
    vec_last(&c->code->ins).n = (uint32_t)ir_type_elems(ir_operand(op, 1)->type);
    return;
  case OP_make_desc: compile_many(c, op, x_make_desc); return;
  case OP_desc_load: compile_many(c, op, x_desc_load); return;
  case OP_desc_store: compile_many(c, op, x_desc_store); return;
  case OP_desc_rmw: compile_many(c, op, x_desc_rmw); return;
  case OP_desc_base: compile_plain(c, op, x_desc_base); return;
  case OP_desc_dim:
  case OP_desc_stride: compile_plain(c, op, x_desc_part); return;
  case OP_mem_alloc: compile_alloc(c, op); return;
  case OP_mem_gather: compile_many(c, op, x_mem_gather); return;
  case OP_mem_scatter: compile_many(c, op, x_mem_scatter); return;
  case OP_mem_view: compile_plain(c, op, x_mem_view); return;
  case OP_mem_load: compile_plain(c, op, x_mem_load); return;
  case OP_mem_store:
    compile_plain(c, op, x_mem_store);
    vec_last(&c->code->ins).n = (uint32_t)ir_type_elems(ir_operand(op, 1)->type);
    return;
  case OP_mem_get: compile_many(c, op, x_mem_get); return;
  case OP_mem_set: compile_many(c, op, x_mem_set); return;
  case OP_dot_mem: compile_plain(c, op, x_dot_mem); return;
  case OP_barrier: emit(c, op, x_barrier); return;
  case OP_warp_barrier: emit(c, op, x_warp_barrier); return;
  case OP_fence: compile_plain(c, op, x_fence); return;
  case OP_symm_at: compile_plain(c, op, x_symm_at); return;
  case OP_wait: compile_plain(c, op, x_wait); return;
  case OP_signal: compile_plain(c, op, x_signal); return;
  case OP_release: compile_plain(c, op, x_release); return;
  case OP_acquire: compile_plain(c, op, x_acquire); return;
  case OP_put:
  case OP_get: compile_many(c, op, x_put); return;
  case OP_put_signal: compile_many(c, op, x_put_signal); return;
  case OP_put_fence: compile_plain(c, op, x_put_fence); return;
  case OP_put_quiet: compile_plain(c, op, x_put_quiet); return;
  case OP_team_barrier: compile_plain(c, op, x_team_barrier); return;
  case OP_copy_async: compile_many(c, op, x_copy_async); return;
  case OP_async_wait: compile_many(c, op, x_async_wait); return;
  case OP_mbarrier_alloc: {
    const IrType *t = op->results[0].type;
    compile_plain(c, op, x_mbarrier_alloc);
    vec_last(&c->code->ins).target = c->code->mbarriers;
    c->code->mbarriers += (uint32_t)(t->stages ? t->stages : 1);
    return;
  }
  case OP_mbarrier_expect: compile_plain(c, op, x_mbarrier_expect); return;
  case OP_mbarrier_arrive: compile_plain(c, op, x_mbarrier_arrive); return;
  case OP_mbarrier_wait: compile_plain(c, op, x_mbarrier_wait); return;
  case OP_desc_load_async: compile_many(c, op, x_desc_load_async); return;
  case OP_desc_store_async: compile_many(c, op, x_desc_store_async); return;
  case OP_if: compile_if(c, op); return;
  case OP_for: compile_for(c, op); return;
  case OP_while: compile_while(c, op); return;
  case OP_switch: compile_switch(c, op); return;
  case OP_warp_partitions: compile_partitions(c, op); return;
  case OP_warp_for: compile_warp_for(c, op); return;
  case OP_call: compile_call(c, op); return;
  case OP_inline_asm: refuse(c, op, "inline assembly cannot be interpreted");
  default: break;
  }
  if (ir_ops[op->kind].traits & TRAIT_ELEMENTWISE) {
    compile_elem(c, op);
    return;
  }
  refuse(c, op, "an operation that cannot be interpreted");
}

static bool arena_end(IrOp *op, void *user) {
  Comp *c = user;
  if (op->kind != OP_mem_alloc || !ir_attr(op, ATTR_offset)) return true;
  const IrType *t = op->results[0].type;
  const size_t end = (size_t)ir_attr_i(op, ATTR_offset) + (size_t)ir_type_elems(t) *
                                                              (size_t)ir_type_bytes(t) *
                                                              (size_t)(t->stages ? t->stages : 1);
  if (end > c->code->arena_bytes && end <= MAX_AREA) c->code->arena_bytes = end;
  return true;
}

const char *interp_compile(World *w, const IrFunc *f, Code **out, Loc *where) {
  Comp *c = arena_new(&w->arena, Comp);
  c->w = w;
  c->arena = &w->arena; // so that an escape frees it; compiles are few
  c->m = f->module;
  c->code = arena_new(&w->arena, Code);
  c->code->func = f;
  c->code->nwarps = (uint32_t)(c->m->num_warps > 0 ? c->m->num_warps : 4);
  c->code->lanes = (uint32_t)(c->m->lanes == 64 ? 64 : 32);
  c->threads = c->code->nwarps * c->code->lanes;
  c->tiles = SP_AR;
  c->mode = MODE_BLOCK;
  map_init(&c->order, c->arena);
  map_init(&c->numbered, c->arena);
  if (setjmp(c->fail)) {
    *where = c->where.line ? c->where : f->loc;
    return c->error;
  }
  if (!f->body) refuse(c, NULL, "a function without body");
  ir_walk(f->body, number_op, c);
  map_set(&c->numbered, (uint64_t)(uintptr_t)f, 1);
  if (c->m->stage == STAGE_placed) {
    ir_walk(f->body, arena_end, c);
    c->code->arena_off = heap_get(c, &c->ar, bits_round_up(c->code->arena_bytes, ALIGN));
  }
  Frame *fr = arena_new(c->arena, Frame);
  *fr = (Frame){NULL, f, arena_array(c->arena, Val, f->next_id + 1)};
  c->frame = fr;
  c->code->params = arena_array(&w->arena, Ref, f->body->args.len + 1);
  for (uint32_t i = 0; i < f->body->args.len; i++) {
    const IrValue *v = f->body->args.data[i];
    c->code->params[i] = define(c, v, true);
  }
  compile_block(c, f->body);
  emit(c, term_of(f->body), x_ret);
  c->code->consts = c->consts.data;
  c->code->const_bytes = c->consts.len;
  c->code->ar_bytes = bits_round_up(c->ar.top, ALIGN) + ALIGN;
  c->code->lo_bytes = bits_round_up(c->lo.top, ALIGN) + ALIGN;
  c->code->sc_bytes = bits_round_up(c->code->sc_bytes, ALIGN) + ALIGN;
  *out = c->code;
  return NULL;
}
