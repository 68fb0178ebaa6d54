// interp_block: tensor descriptors and the shared memory of instances.
#include "ir/interp_impl.h"

#include <math.h>
#include <string.h>

// ---- tensor descriptors ------------------------------------------------------------------------------------------------------
Step x_make_desc(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  const uint32_t rank = (o->n - 1) / 2;
  InterpDesc *d = (InterpDesc *)interp_at(a, i->r);
  memset(d, 0, sizeof *d);
  d->base = *(void **)interp_at(a, o->at[0]);
  d->rank = (int)rank;
  d->pad = (IrPad)ir_attr_i(i->op, ATTR_pad);
  if (rank > 5 || o->n != 2 * rank + 1) {
    interp_fault(w, FAULT_UNSUPPORTED, i->op->loc, LOC_NONE, "a tensor descriptor with %u sizes and strides",
                 o->n - 1);
    w->stop = true;
    return SWITCH;
  }
  for (uint32_t k = 0; k < rank; k++) {
    d->shape[k] = interp_ref_int(a, o->at[1 + k], 0);
    d->strides[k] = interp_ref_int(a, o->at[1 + rank + k], 0);
  }
  return GO;
}

static void rmw_run(World *w, Agent *a, const Ins *i, uint64_t addr, const char *v, size_t n, IrRmw op,
                    IrDtype d, Actor *actor) {
  const size_t es = ir_dtypes[d].bytes;
  for (size_t k = 0; k < n; k++) {
    const Access x = {.addr = addr + k * es,
                      .bytes = es,
                      .kind = ACC_READ | ACC_WRITE | ACC_ATOMIC,
                      .warp = -1,
                      .scope = SCOPE_gpu,
                      .esize = (int)es,
                      .ins = i,
                      .actor = actor};
    if (!interp_access(w, a, &x)) return;
    uint64_t old = 0, with = 0;
    memcpy(&old, (const void *)(uintptr_t)x.addr, es);
    memcpy(&with, v + k * es, es);
    old = interp_rmw_value(op, d, old, with);
    memcpy((void *)(uintptr_t)x.addr, &old, es);
  }
}

// data: the block in row-major order. Rows along the last axis are runs where its stride is 1.
void interp_desc_block(World *w, Agent *a, const Ins *i, const InterpDesc *d, const IrType *block,
                       const int64_t *at, char *data, int mode, IrRmw op, Actor *actor) {
  const IrDtype dt = block->dtype;
  const size_t es = ir_dtypes[dt].bytes;
  const int rank = block->rank;
  const int64_t cols = block->shape[rank - 1], total = ir_type_elems(block);
  const unsigned async = actor ? ACC_ASYNC : 0;
  uint64_t pad = 0;
  if (d->pad == PAD_nan && ir_dtypes[dt].cls == IR_FLOAT) pad = ir_float_bits(dt, (double)NAN);
  for (int64_t row = 0; row < total / cols; row++, data += (size_t)cols * es) {
    int64_t rest = row, offset = 0;
    bool inside = true;
    for (int k = rank - 2; k >= 0; k--) {
      const int64_t p = at[k] + rest % block->shape[k];
      rest /= block->shape[k];
      inside &= p >= 0 && p < d->shape[k];
      offset += p * d->strides[k];
    }
    int64_t first = at[rank - 1] < 0 ? -at[rank - 1] : 0, end = d->shape[rank - 1] - at[rank - 1];
    if (first > cols || !inside) first = cols;
    if (end > cols) end = cols;
    if (end < first) end = first;
    if (mode == 0) {
      interp_fill(data, &pad, (int)es, (size_t)first);
      interp_fill(data + (size_t)end * es, &pad, (int)es, (size_t)(cols - end));
    }
    const int64_t stride = d->strides[rank - 1], len = stride == 1 ? end - first : 1;
    for (int64_t c = first; c < end; c += len) {
      const uint64_t addr =
          (uint64_t)(uintptr_t)d->base + (uint64_t)((offset + (at[rank - 1] + c) * stride) * (int64_t)es);
      char *p = data + (size_t)c * es;
      const size_t bytes = (size_t)len * es;
      if (mode == 2) {
        rmw_run(w, a, i, addr, p, (size_t)len, op, dt, actor);
        continue;
      }
      const Access x = {.addr = addr,
                        .bytes = bytes,
                        .kind = (mode ? ACC_WRITE : ACC_READ) | async,
                        .warp = -1,
                        .esize = (int)es,
                        .ins = i,
                        .actor = actor};
      if (!interp_access(w, a, &x)) {
        if (!mode) memset(p, 0, bytes);
      } else if (mode) {
        interp_write(w, a, &x, p, 1, (size_t)len);
      } else {
        memcpy(p, (const void *)(uintptr_t)addr, bytes);
      }
    }
  }
}

Step x_desc_base(World *w, Agent *a, const Ins *i) {
  (void)w;
  *(void **)interp_at(a, i->r) = ((const InterpDesc *)interp_at(a, i->a))->base;
  return GO;
}
Step x_desc_part(World *w, Agent *a, const Ins *i) {
  (void)w;
  const InterpDesc *d = (const InterpDesc *)interp_at(a, i->a);
  const int64_t axis = ir_attr_i(i->op, ATTR_axis);
  const int64_t *of = i->op->kind == OP_desc_dim ? d->shape : d->strides;
  interp_put_int(interp_at(a, i->r), i->r.esize, axis >= 0 && axis < 5 ? of[axis] : 0);
  return GO;
}

static void indices(const Agent *a, const Operands *o, uint32_t first, int64_t *at) {
  for (uint32_t k = 0; first + k < o->n && k < 5; k++) at[k] = interp_ref_int(a, o->at[first + k], 0);
}

static bool fits(World *w, const Ins *i, const InterpDesc *d, const IrType *block) {
  if (d->rank == block->rank && d->rank >= 1 && d->rank <= 5) return true;
  interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE, "a descriptor of rank %d is used for blocks of rank %d",
               d->rank, block->rank);
  return false;
}

Step x_desc_load(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  const InterpDesc *d = (const InterpDesc *)interp_at(a, o->at[0]);
  const IrType *t = i->op->results[0].type, *block = ir_operand(i->op, 0)->type;
  int64_t at[5] = {0};
  indices(a, o, 1, at);
  w->elems += (uint64_t)ir_type_elems(t);
  if (fits(w, i, d, block))
    interp_desc_block(w, a, i, d, block, at, interp_at(a, i->r), 0, RMW_add, NULL);
  else
    memset(interp_at(a, i->r), 0, (size_t)ir_type_elems(t) * i->r.esize);
  return SWITCH;
}

static Step desc_write(World *w, Agent *a, const Ins *i, int mode) {
  const Operands *o = i->extra;
  const InterpDesc *d = (const InterpDesc *)interp_at(a, o->at[0]);
  const IrType *block = ir_operand(i->op, 0)->type;
  int64_t at[5] = {0};
  indices(a, o, 2, at);
  if (!fits(w, i, d, block)) return SWITCH;
  char *v = interp_at(a, o->at[1]);
  const size_t n = (size_t)ir_type_elems(block), es = ir_dtypes[block->dtype].bytes;
  w->elems += n;
  if (!o->at[1].stride && n > 1) {
    char *all = interp_scratch(w, n * es);
    interp_fill(all, v, (int)es, n);
    v = all;
  }
  interp_desc_block(w, a, i, d, block, at, v, mode, (IrRmw)ir_attr_i(i->op, ATTR_rmw), NULL);
  return SWITCH;
}
Step x_desc_store(World *w, Agent *a, const Ins *i) { return desc_write(w, a, i, 1); }
Step x_desc_rmw(World *w, Agent *a, const Ins *i) { return desc_write(w, a, i, 2); }

// ---- shared memory ----------------------------------------------------------------------------------------------------------------
Step x_mem_alloc(World *w, Agent *a, const Ins *i) {
  (void)w;
  const Buf *b = i->extra;
  *(char **)interp_at(a, i->r) = a->base[SP_AR] + b->off;
  return GO;
}

const char *interp_buffer_name(const Agent *a, const char *p) {
  const Code *c = a->code;
  for (uint32_t k = 0; k < c->bufs.len; k++) {
    const Buf *b = c->bufs.data[k];
    const char *base = a->inst->area + b->off;
    if (p < base || p >= base + b->bytes) continue;
    const char *label = ir_attr_s(b->op, ATTR_label);
    if (label) return label;
    return b->op->results[0].name ? b->op->results[0].name->s : "a buffer";
  }
  return "a buffer";
}

bool interp_mem_range(World *w, Agent *a, const Ins *i, const char *p, size_t bytes, unsigned kind,
                      uint32_t lane) {
  const char *area = a->inst->area;
  if (p < area || p + bytes > area + a->code->ar_bytes) {
    interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE, "%s accesses shared memory that is not there",
                 interp_who(w, a));
    return false;
  }
  if (w->check) check_block_memory(w, a, i, p, bytes, kind, interp_warp(a, i, lane), NULL);
  return true;
}

// A product has its operands when it is issued, but reads them until it is complete: what is noted counts as read again then.
bool interp_product_reads(World *w, Agent *a, const Ins *i, const char *p, size_t bytes, uint32_t lane) {
  if (!interp_mem_range(w, a, i, p, bytes, ACC_READ, lane)) return false;
  if (w->check) vec_push(&w->arena, &a->flights, ((Flight){i, p, bytes, lane, a->products}));
  return true;
}

void interp_product_wait(World *w, Agent *a, int64_t pending) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < a->flights.len; k++) {
    const Flight x = a->flights.data[k];
    if (x.product + (uint64_t)pending >= a->products)
      a->flights.data[kept++] = x;
    else
      interp_mem_range(w, a, x.ins, x.p, x.bytes, ACC_READ, x.lane);
  }
  a->flights.len = kept;
}

Step x_mem_view(World *w, Agent *a, const Ins *i) {
  const IrType *t = ir_operand(i->op, 0)->type;
  const size_t bytes = (size_t)ir_type_elems(t) * (size_t)ir_type_bytes(t);
  char *m = *(char **)interp_at(a, i->a);
  int64_t stage = interp_ref_int(a, i->b, 0);
  if (stage < 0 || stage >= (t->stages ? t->stages : 1)) {
    interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE, "%s asks for stage %lld of %s, which has %d",
                 interp_who(w, a), (long long)stage, interp_buffer_name(a, m), t->stages ? t->stages : 1);
    stage = 0;
  }
  *(char **)interp_at(a, i->r) = m + (size_t)stage * bytes;
  return GO;
}

Step x_mem_load(World *w, Agent *a, const Ins *i) {
  const char *m = *(char **)interp_at(a, i->a);
  const size_t bytes = (size_t)i->n * i->r.esize;
  if (interp_mem_range(w, a, i, m, bytes, ACC_READ, 0)) memcpy(interp_at(a, i->r), m, bytes);
  return SWITCH;
}

Step x_mem_store(World *w, Agent *a, const Ins *i) {
  char *m = *(char **)interp_at(a, i->a);
  const size_t es = i->b.esize;
  if (!interp_mem_range(w, a, i, m, i->n * es, ACC_WRITE, 0)) return SWITCH;
  if (i->b.stride)
    memcpy(m, interp_at(a, i->b), i->n * es);
  else
    interp_fill(m, interp_at(a, i->b), (int)es, i->n);
  return SWITCH;
}

// The element that the indices name, or NULL with a fault. n: consecutive elements wanted.
static char *element(World *w, Agent *a, const Ins *i, const IrType *t, char *m, const Operands *o,
                     uint32_t first, uint32_t lane, size_t n) {
  int64_t at = 0;
  if (o->n - first != (uint32_t)t->rank) {
    interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE, "%u indices into a buffer of rank %d", o->n - first,
                 t->rank);
    return NULL;
  }
  for (int d = 0; d < t->rank; d++) {
    const int64_t k = interp_ref_int(a, o->at[first + (uint32_t)d], lane);
    const int64_t room = t->shape[d] - (d == t->rank - 1 ? (int64_t)n - 1 : 0);
    if (k < 0 || k >= room) {
      interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE,
                   "%s accesses index %lld along axis %d of %s, whose size is %d", interp_who(w, a),
                   (long long)(k < 0 ? k : k + (int64_t)n - 1), d, interp_buffer_name(a, m), t->shape[d]);
      return NULL;
    }
    at = at * t->shape[d] + k;
  }
  return m + (size_t)at * ir_dtypes[t->dtype].bytes;
}

// A vector of a placed buffer, or one element for the program or for each active thread.
static Step mem_element(World *w, Agent *a, const Ins *i, bool set) {
  const Operands *o = i->extra;
  const IrType *t = ir_operand(i->op, 0)->type;
  const IrValue *v = set ? ir_operand(i->op, 1) : &i->op->results[0];
  const Ref value = set ? o->at[1] : i->r;
  const size_t len = v->type->kind == IR_TILE ? (size_t)ir_type_elems(v->type) : 1, es = value.esize;
  const uint32_t n = interp_count(a, i);
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    char *m = *(char **)(interp_at(a, o->at[0]) + (size_t)k * o->at[0].stride * 8);
    char *p = element(w, a, i, t, m, o, set ? 2 : 1, k, len);
    char *x = interp_at(a, value) + (v->type->kind == IR_TILE ? 0 : (size_t)k * value.stride * es);
    const bool ok = p && interp_mem_range(w, a, i, p, len * es, set ? ACC_WRITE : ACC_READ, k);
    if (!ok && !set)
      memset(x, 0, len * es);
    else if (ok && !set)
      memcpy(x, p, len * es);
    else if (ok && (value.stride || len == 1))
      memcpy(p, x, len * es);
    else if (ok)
      interp_fill(p, x, (int)es, len);
  }
  return SWITCH;
}
Step x_mem_get(World *w, Agent *a, const Ins *i) { return mem_element(w, a, i, false); }
Step x_mem_set(World *w, Agent *a, const Ins *i) { return mem_element(w, a, i, true); }

// Each lane at its own indices.
static Step mem_lanes(World *w, Agent *a, const Ins *i, bool set) {
  const Operands *o = i->extra;
  const IrType *t = ir_operand(i->op, 0)->type;
  const Ref value = set ? o->at[1] : i->r;
  const uint32_t n = (uint32_t)ir_type_elems(set ? ir_operand(i->op, 1)->type : i->op->results[0].type);
  char *m = *(char **)interp_at(a, o->at[0]);
  const size_t es = value.esize;
  w->elems += n;
  for (uint32_t k = 0; k < n; k++) {
    char *p = element(w, a, i, t, m, o, set ? 2 : 1, k, 1);
    char *x = interp_at(a, value) + (size_t)k * value.stride * es;
    const bool ok = p && interp_mem_range(w, a, i, p, es, set ? ACC_WRITE : ACC_READ, 0);
    if (ok && set)
      memcpy(p, x, es);
    else if (ok)
      memcpy(x, p, es);
    else if (!set)
      memset(x, 0, es);
  }
  return SWITCH;
}
Step x_mem_gather(World *w, Agent *a, const Ins *i) { return mem_lanes(w, a, i, false); }
Step x_mem_scatter(World *w, Agent *a, const Ins *i) { return mem_lanes(w, a, i, true); }
