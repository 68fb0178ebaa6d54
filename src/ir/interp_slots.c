// interp_slots: places for values, and the instructions of a Code as they are emitted.
#include "ir/interp_compile.h"

#include <string.h>

void comp_refuse(Comp *c, const IrOp *op, const char *text) {
  c->error = text;
  c->where = op ? op->loc : LOC_NONE;
  longjmp(c->fail, 1);
}

// ---- slots -----------------------------------------------------------------------------------------------------------
size_t comp_heap_get(Comp *c, Heap *h, size_t size) {
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
  if (h->top > COMP_MAX_AREA) comp_refuse(c, NULL, "the tiles of one program instance need more than 1 GiB");
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

int comp_slot_new(Comp *c, Space space, size_t size, uint32_t esize) {
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
    s.off = k->free.len ? vec_pop(&k->free) : comp_heap_get(c, &c->ar, s.size);
    break;
  }
  case SP_LO: s.off = comp_heap_get(c, &c->lo, s.size); break;
  default: s.off = comp_heap_get(c, &c->ar, s.size);
  }
  vec_push(c->arena, &c->slots, s);
  return (int)c->slots.len - 1;
}

void comp_slot_release(Comp *c, int slot) {
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
int comp_value_bytes(const IrType *t) {
  switch (t->kind) {
  case IR_DESC: return (int)sizeof(InterpDesc);
  case IR_SCALAR:
  case IR_PTR:
  case IR_TILE: return ir_type_bytes(t);
  default: return 8;
  }
}

Ref comp_use(Comp *c, const IrOp *op, uint32_t i) {
  const IrValue *v = ir_operand(op, i);
  return v ? comp_val_of(c, v)->ref : (Ref){0};
}

// A place for a new value; uniform: one element will do.
Val comp_place(Comp *c, const IrType *t, bool uniform) {
  const int esize = comp_value_bytes(t);
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
  Val v = {.slot = comp_slot_new(c, space, n * (size_t)esize, (uint32_t)esize)};
  v.ref = (Ref){.off = (uint32_t)c->slots.data[v.slot].off,
                .space = (uint8_t)space,
                .stride = strided,
                .tsz = space == SP_TH ? (uint8_t)esize : 0,
                .esize = (uint8_t)esize};
  return v;
}

Ref comp_define(Comp *c, const IrValue *v, bool uniform) {
  *comp_val_of(c, v) = comp_place(c, v->type, uniform);
  return comp_val_of(c, v)->ref;
}

void comp_alias(Comp *c, const IrValue *v, Val of) {
  *comp_val_of(c, v) = of;
  if (of.slot >= 0) c->slots.data[of.slot].refs++;
}

uint32_t comp_elems_of(const IrValue *v, Ref r) { // for Ins.n
  return comp_per_thread(r) ? 0 : v->type->kind == IR_TILE && r.stride ? (uint32_t)ir_type_elems(v->type) : 1;
}

Ref comp_constant(Comp *c, const void *bytes, size_t n, uint32_t esize, bool strided) {
  while (c->consts.len & 7) vec_push(c->arena, &c->consts, 0);
  const size_t off = c->consts.len;
  vec_reserve(c->arena, &c->consts, off + n + 8);
  memcpy(c->consts.data + off, bytes, n);
  c->consts.len += (uint32_t)n;
  if (c->consts.len > COMP_MAX_AREA) comp_refuse(c, NULL, "more than 1 GiB of constants");
  return (Ref){.off = (uint32_t)off, .space = SP_CO, .stride = strided, .esize = (uint8_t)esize};
}

void comp_define_const(Comp *c, const IrValue *v, int64_t bits) {
  *comp_val_of(c, v) = (Val){comp_constant(c, &bits, 8, (uint32_t)comp_value_bytes(v->type), false), -1};
}

// ---- emitting ------------------------------------------------------------------------------------------------------------

Ins *comp_emit(Comp *c, const IrOp *op, Exec exec) {
  if (comp_here(c) >= MAX_INS) comp_refuse(c, op, "the program is too large to be interpreted");
  vec_push(&c->w->arena, &c->code->ins, ((Ins){.exec = exec, .op = op, .n = 1}));
  return &vec_last(&c->code->ins);
}

bool comp_op_is_thread(const IrOp *op) {
  for (uint32_t i = 0; i < op->noperands; i++)
    if (comp_is_thread(op->operands[i].value)) return true;
  for (uint32_t i = 0; i < op->nresults; i++)
    if (comp_is_thread(&op->results[i])) return true;
  return false;
}

// An op that is executed once, or once for each active lane.
void comp_level(const Comp *c, Ins *i, const IrOp *op) {
  if (c->mode == MODE_VEC || comp_op_is_thread(op) || c->thread_control) i->n = 0;
  if (comp_op_is_thread(op) || c->thread_control || c->mode == MODE_WARP || c->mode == MODE_FIBER)
    i->flags |= INS_THREAD;
}

Ins *comp_emit3(Comp *c, const IrOp *op, Exec exec) { // operands in a, b, c; first result in r
  Ins *i = comp_emit(c, op, exec);
  i->a = comp_use(c, op, 0);
  i->b = comp_use(c, op, 1);
  i->c = comp_use(c, op, 2);
  i->strides = (uint8_t)(i->a.stride | i->b.stride << 1 | i->c.stride << 2);
  return i;
}

const Operands *comp_operands(Comp *c, const IrOp *op) {
  Operands *o = arena_alloc(&c->w->arena, sizeof *o + (op->noperands + op->nresults) * sizeof(Ref), 8);
  o->n = op->noperands;
  for (uint32_t i = 0; i < op->noperands; i++) o->at[i] = comp_use(c, op, i);
  for (uint32_t i = 0; i < op->nresults; i++) o->at[op->noperands + i] = comp_val_of(c, &op->results[i])->ref;
  return o;
}

void comp_copy(Comp *c, const IrOp *op, const IrType *t, Ref to, Ref from, int flags) {
  if (comp_same_ref(to, from)) return;
  Ins *i = comp_emit(c, op, x_copy);
  i->r = to;
  i->a = from;
  i->strides = from.stride;
  i->n = comp_per_thread(to) ? 0 : t->kind == IR_TILE && to.stride ? (uint32_t)ir_type_elems(t) : 1;
  i->flags = (uint8_t)flags;
}
