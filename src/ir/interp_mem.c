// interp_mem: every access to memory.
//
// interp_access is the one door to registered memory: it finds the range, refuses what lies outside or is not allowed, and
// hands the rest to the checker. Tiles pass runs of neighbouring elements at a time; accesses with an order go one by one.
#include "ir/interp_impl.h"

#include <math.h>
#include <string.h>

// ---- the registry ------------------------------------------------------------------------------------------------------
const Range *interp_find(World *w, uint64_t addr) {
  if (!w->nranges) return NULL;
  const Range *r = &w->ranges[w->last];
  if (addr >= r->base && addr < r->end) return r;
  int lo = 0, hi = w->nranges;
  while (hi - lo > 1) {
    const int mid = (lo + hi) / 2;
    if (w->ranges[mid].base <= addr)
      lo = mid;
    else
      hi = mid;
  }
  r = &w->ranges[lo];
  if (addr < r->base || addr >= r->end) return NULL;
  w->last = lo;
  return r;
}

const Range *interp_peer_range(World *w, const Range *own, int pe) {
  for (int k = 0; k < w->nranges; k++) {
    const InterpMemory *m = w->ranges[k].mem;
    if (m->rank == pe && m->segment == own->mem->segment) return &w->ranges[k];
  }
  return NULL;
}

bool interp_peer_addr(World *w, Agent *a, const Ins *i, uint64_t addr, int64_t pe, uint64_t *out) {
  const Range *r = interp_find(w, addr), *peer;
  *out = 0;
  if (pe < 0 || pe >= w->c->ranks) {
    interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE, "%s names rank %lld of %d", interp_who(w, a),
                 (long long)pe, w->c->ranks);
    return false;
  }
  if (!r || r->mem->segment < 0 || !(peer = interp_peer_range(w, r, (int)pe))) {
    interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE,
                 "%s asks for rank %lld's view of %s, which is not symmetric memory", interp_who(w, a),
                 (long long)pe, interp_where(w, addr, 1));
    return false;
  }
  *out = addr - r->base + peer->base;
  return true;
}

unsigned interp_order_bits(IrOrder o) {
  switch (o) {
  case ORDER_weak: return 0;
  case ORDER_relaxed: return ACC_ATOMIC;
  case ORDER_acquire: return ACC_ATOMIC | ACC_ACQUIRE;
  case ORDER_release: return ACC_ATOMIC | ACC_RELEASE;
  default: return ACC_ATOMIC | ACC_ACQUIRE | ACC_RELEASE;
  }
}

IrScope interp_scope(World *w, const IrOp *op, uint64_t addr) {
  const IrAttr *s = ir_attr(op, ATTR_scope);
  if (s) return (IrScope)s->i;
  const Range *r = interp_find(w, addr);
  return r && r->mem->segment >= 0 ? SCOPE_sys : SCOPE_gpu;
}

static void remember_poll(World *w, Agent *a, const Access *x) {
  if (x->bytes > 8 || a->npolled == MAX_POLLED) {
    a->coarse = true;
    return;
  }
  (void)w;
  Polled *p = &a->polled[a->npolled++];
  *p = (Polled){.addr = x->addr, .size = (uint8_t)x->bytes};
  memcpy(&p->seen, (const void *)(uintptr_t)x->addr, x->bytes);
}

bool interp_access(World *w, Agent *a, const Access *x) {
  const Range *r = interp_find(w, x->addr);
  const bool write = x->kind & ACC_WRITE;
  const Loc loc = x->ins ? x->ins->op->loc : LOC_NONE;
  if (!r || x->bytes > r->end - x->addr) {
    const uint64_t at = r ? r->end : x->addr; // the first byte outside
    interp_fault(w, FAULT_BOUNDS, loc, LOC_NONE, "%s %s %s, outside the memory it was given",
                 interp_who(w, a), write ? "writes" : "reads", interp_where(w, at, x->esize));
    return false;
  }
  if (r->mem->rank != a->rank && r->mem->rank >= 0 && r->mem->segment < 0) {
    interp_fault(w, FAULT_BOUNDS, loc, LOC_NONE, "%s %s %s, private memory of another rank", interp_who(w, a),
                 write ? "writes" : "reads", interp_where(w, x->addr, x->esize));
    return false;
  }
  if (write && r->mem->readonly) {
    interp_fault(w, FAULT_READONLY, loc, LOC_NONE, "%s writes %s, which is read-only", interp_who(w, a),
                 interp_where(w, x->addr, x->esize));
    return false;
  }
  if (a->polls && (x->kind & ACC_READ)) remember_poll(w, a, x);
  if (write && !(x->kind & ACC_QUIET)) {
    w->writes++;
    a->writes++;
    w->preempt |= (x->kind & ACC_ATOMIC) != 0;
  }
  return w->check ? check_access(w, a, x, (Range *)r) : true;
}

void interp_wrote(World *w, const Agent *a, uint64_t addr, const Ins *i) {
  LastWrite *l = map_getp(&w->last_writes, addr);
  if (!l) {
    l = arena_new(&w->arena, LastWrite);
    map_setp(&w->last_writes, addr, l);
  }
  *l = (LastWrite){.addr = addr, .rank = a->rank, .loc = i ? i->op->loc : LOC_NONE, .copy = !a->inst};
  if (a->inst) memcpy(l->pid, a->inst->pid, sizeof l->pid);
}

// ---- loads and stores ----------------------------------------------------------------------------------------------------
// Groups the active elements into runs of neighbouring addresses made by the same executor.
typedef struct Runs {
  World *w;
  Agent *a;
  const Ins *i;
  const uint64_t *p;
  const uint8_t *mask;
  uint32_t n, sp, sm, at;
  uint32_t es;
} Runs;

static bool on(const Runs *s, uint32_t k) {
  return (!s->mask || s->mask[(size_t)k * s->sm]) && (s->i->n || interp_active(s->a, k));
}

static bool next_run(Runs *s, uint32_t *from, uint32_t *to) {
  while (s->at < s->n && !on(s, s->at)) s->at++;
  if (s->at >= s->n) return false;
  *from = s->at++;
  const uint32_t lanes = s->i->n ? UINT32_MAX : s->a->code->lanes; // a run of threads ends with their warp
  uint64_t next = s->p[(size_t)*from * s->sp] + s->es;
  while (s->at < s->n && s->at % lanes && s->p[(size_t)s->at * s->sp] == next && on(s, s->at)) {
    next += s->es;
    s->at++;
  }
  *to = s->at;
  return true;
}

static Runs runs_of(World *w, Agent *a, const Ins *i, Ref mask, uint32_t es) {
  return (Runs){.w = w,
                .a = a,
                .i = i,
                .p = (const uint64_t *)interp_at(a, i->a),
                .mask = mask.space ? (const uint8_t *)interp_at(a, mask) : NULL,
                .n = interp_count(a, i),
                .sp = i->a.stride,
                .sm = mask.stride,
                .es = es};
}

static unsigned op_order(const IrOp *op, uint64_t *size_limit) {
  unsigned kind = interp_order_bits((IrOrder)ir_attr_i(op, ATTR_order));
  if (ir_attr_i(op, ATTR_volatile)) kind |= ACC_ATOMIC;
  *size_limit = kind ? 1 : UINT64_MAX;
  return kind;
}

static IrScope op_scope(World *w, const IrOp *op, uint64_t addr) {
  return ir_attr(op, ATTR_scope)        ? interp_scope(w, op, addr)
         : ir_attr_i(op, ATTR_volatile) ? SCOPE_sys
                                        : SCOPE_gpu;
}

static void fix_bits(uint8_t *p, size_t n) { // i1 in memory: any byte but 0 is true
  for (size_t k = 0; k < n; k++) p[k] = p[k] != 0;
}

Step x_load(World *w, Agent *a, const Ins *i) {
  const uint32_t es = i->r.esize, n = interp_count(a, i);
  char *r = interp_at(a, i->r);
  uint64_t limit;
  const unsigned order = op_order(i->op, &limit);
  const bool bits = ir_operand(i->op, 0)->type->dtype == IR_i1;
  if (i->b.space || !i->n) { // masked-off elements first
    const char *other = i->c.space ? interp_at(a, i->c) : NULL;
    const uint8_t *mask = i->b.space ? (const uint8_t *)interp_at(a, i->b) : NULL;
    for (uint32_t k = 0; mask && k < n; k++) {
      if (mask[(size_t)k * i->b.stride] || (!i->n && !interp_active(a, k))) continue;
      if (other)
        memcpy(r + (size_t)k * i->r.stride * es, other + (size_t)k * i->c.stride * es, es);
      else
        memset(r + (size_t)k * i->r.stride * es, 0, es);
    }
  }
  Runs s = runs_of(w, a, i, i->b, es);
  uint32_t from, to;
  while (next_run(&s, &from, &to)) {
    if (limit == 1) s.at = to = from + 1;
    const uint64_t addr = s.p[(size_t)from * s.sp];
    const size_t len = (size_t)(to - from) * es;
    char *dst = r + (size_t)from * i->r.stride * es;
    const Access x = {.addr = addr,
                      .bytes = len,
                      .kind = ACC_READ | order,
                      .warp = interp_warp(a, i, from),
                      .scope = order ? op_scope(w, i->op, addr) : SCOPE_gpu,
                      .esize = (int)es,
                      .ins = i};
    if (interp_access(w, a, &x))
      memcpy(dst, (const void *)(uintptr_t)addr, len);
    else
      memset(dst, 0, len);
    if (bits) fix_bits((uint8_t *)dst, to - from);
  }
  return SWITCH;
}

static uint64_t word_value(const void *p, uint32_t es) {
  uint64_t v = 0;
  memcpy(&v, p, es);
  return v;
}

Step x_store(World *w, Agent *a, const Ins *i) {
  const uint32_t es = i->b.esize;
  const char *v = interp_at(a, i->b);
  uint64_t limit;
  const unsigned order = op_order(i->op, &limit);
  Runs s = runs_of(w, a, i, i->c, es);
  uint32_t from, to;
  while (next_run(&s, &from, &to)) {
    if (limit == 1) s.at = to = from + 1;
    const uint64_t addr = s.p[(size_t)from * s.sp];
    const size_t len = (size_t)(to - from) * es;
    const Access x = {.addr = addr,
                      .bytes = len,
                      .kind = ACC_WRITE | order,
                      .warp = interp_warp(a, i, from),
                      .scope = order ? op_scope(w, i->op, addr) : SCOPE_gpu,
                      .esize = (int)es,
                      .ins = i,
                      .value = len == es ? word_value(v + (size_t)from * i->b.stride * es, es) : 0};
    if (!interp_access(w, a, &x)) continue;
    if (i->b.stride)
      memcpy((void *)(uintptr_t)addr, v + (size_t)from * es, len);
    else
      interp_fill((void *)(uintptr_t)addr, v, (int)es, to - from);
    if (order) interp_wrote(w, a, addr, i);
  }
  return SWITCH;
}

Step x_load_vec(World *w, Agent *a, const Ins *i) {
  const uint32_t es = i->r.esize, n = i->n;
  const uint64_t p = *(const uint64_t *)interp_at(a, i->a);
  char *r = interp_at(a, i->r);
  const uint8_t *mask = i->b.space ? (const uint8_t *)interp_at(a, i->b) : NULL;
  const char *other = i->c.space ? interp_at(a, i->c) : NULL;
  for (uint32_t k = 0; k < n;) {
    if (mask && !mask[(size_t)k * i->b.stride]) {
      if (other)
        memcpy(r + (size_t)k * es, other + (size_t)k * i->c.stride * es, es);
      else
        memset(r + (size_t)k * es, 0, es);
      k++;
      continue;
    }
    uint32_t to = k + 1;
    while (to < n && (!mask || mask[(size_t)to * i->b.stride])) to++;
    const Access x = {.addr = p + (uint64_t)k * es,
                      .bytes = (size_t)(to - k) * es,
                      .kind = ACC_READ,
                      .warp = interp_warp(a, i, 0),
                      .esize = (int)es,
                      .ins = i};
    if (interp_access(w, a, &x))
      memcpy(r + (size_t)k * es, (const void *)(uintptr_t)x.addr, x.bytes);
    else
      memset(r + (size_t)k * es, 0, x.bytes);
    k = to;
  }
  if (ir_operand(i->op, 0)->type->dtype == IR_i1) fix_bits((uint8_t *)r, n);
  return SWITCH;
}

Step x_store_vec(World *w, Agent *a, const Ins *i) {
  const uint32_t es = i->b.esize, n = i->n;
  const uint64_t p = *(const uint64_t *)interp_at(a, i->a);
  const char *v = interp_at(a, i->b);
  const uint8_t *mask = i->c.space ? (const uint8_t *)interp_at(a, i->c) : NULL;
  for (uint32_t k = 0; k < n;) {
    if (mask && !mask[(size_t)k * i->c.stride]) {
      k++;
      continue;
    }
    uint32_t to = k + 1;
    while (to < n && (!mask || mask[(size_t)to * i->c.stride])) to++;
    const Access x = {.addr = p + (uint64_t)k * es,
                      .bytes = (size_t)(to - k) * es,
                      .kind = ACC_WRITE,
                      .warp = interp_warp(a, i, 0),
                      .esize = (int)es,
                      .ins = i};
    if (interp_access(w, a, &x)) {
      if (i->b.stride)
        memcpy((void *)(uintptr_t)x.addr, v + (size_t)k * es, x.bytes);
      else
        interp_fill((void *)(uintptr_t)x.addr, v, (int)es, to - k);
    }
    k = to;
  }
  return SWITCH;
}

// ---- atomics -------------------------------------------------------------------------------------------------------------------
static int64_t sext(uint64_t v, int bits) {
  return bits == 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}
static uint64_t mask_bits(uint64_t v, int bits) { return bits == 64 ? v : v & ((1ull << bits) - 1); }

uint64_t interp_rmw_value(IrRmw op, IrDtype d, uint64_t old, uint64_t v) {
  const int bits = ir_dtypes[d].bits;
  switch (op) {
  case RMW_add: return mask_bits(old + v, bits);
  case RMW_max_s: return sext(old, bits) > sext(v, bits) ? old : v;
  case RMW_min_s: return sext(old, bits) < sext(v, bits) ? old : v;
  case RMW_max_u: return old > v ? old : v;
  case RMW_min_u: return old < v ? old : v;
  case RMW_and: return old & v;
  case RMW_or: return old | v;
  case RMW_xor: return old ^ v;
  case RMW_xchg: return v;
  case RMW_fadd:
    if (d == IR_f32) {
      union {
        uint32_t u;
        float f;
      } x = {(uint32_t)old}, y = {(uint32_t)v};
      x.f += y.f;
      return x.u;
    }
    return ir_float_bits(d, ir_bits_float(d, old) + ir_bits_float(d, v));
  case RMW_fmax:
  case RMW_fmin: {
    const double x = ir_bits_float(d, old), y = ir_bits_float(d, v);
    if (isnan(x)) return v;
    if (isnan(y)) return old;
    return (op == RMW_fmax) == (x > y) ? old : v;
  }
  default: return v;
  }
}

static bool reachable(World *w, uint64_t addr, uint64_t bytes) {
  const Range *r = interp_find(w, addr);
  return r && bytes <= r->end - addr;
}

Step x_rmw(World *w, Agent *a, const Ins *i) {
  const uint32_t n = interp_count(a, i), es = i->b.esize;
  const uint64_t *p = (const uint64_t *)interp_at(a, i->a);
  const char *v = interp_at(a, i->b);
  const uint8_t *mask = i->c.space ? (const uint8_t *)interp_at(a, i->c) : NULL;
  char *r = interp_at(a, i->r);
  const IrRmw op = (IrRmw)ir_attr_i(i->op, ATTR_rmw);
  const IrDtype d = ir_operand(i->op, 1)->type->dtype;
  const unsigned order = ACC_ATOMIC | interp_order_bits((IrOrder)ir_attr_i(i->op, ATTR_order));
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    const uint64_t addr = p[(size_t)k * i->a.stride];
    uint64_t old = 0, with = 0;
    if (!mask || mask[(size_t)k * i->c.stride]) {
      memcpy(&with, v + (size_t)k * i->b.stride * es, es);
      uint64_t fresh = 0;
      if (reachable(w, addr, es)) {
        memcpy(&old, (const void *)(uintptr_t)addr, es);
        fresh = interp_rmw_value(op, d, old, with);
      }
      const Access x = {.addr = addr,
                        .bytes = es,
                        .warp = interp_warp(a, i, k),
                        .scope = op_scope(w, i->op, addr),
                        .esize = (int)es,
                        .kind = ACC_READ | ACC_WRITE | order | (fresh == old ? ACC_QUIET : 0),
                        .ins = i,
                        .value = fresh};
      if (interp_access(w, a, &x)) {
        memcpy((void *)(uintptr_t)addr, &fresh, es);
        interp_wrote(w, a, addr, i);
      } else {
        old = 0;
      }
    }
    memcpy(r + (size_t)k * i->r.stride * es, &old, es);
  }
  return SWITCH;
}

Step x_cas(World *w, Agent *a, const Ins *i) {
  const uint32_t n = interp_count(a, i), es = i->b.esize;
  const uint64_t *p = (const uint64_t *)interp_at(a, i->a);
  const char *c = interp_at(a, i->b), *v = interp_at(a, i->c);
  char *r = interp_at(a, i->r);
  const unsigned order = ACC_ATOMIC | interp_order_bits((IrOrder)ir_attr_i(i->op, ATTR_order));
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    const uint64_t addr = p[(size_t)k * i->a.stride];
    const char *want = c + (size_t)k * i->b.stride * es, *with = v + (size_t)k * i->c.stride * es;
    uint64_t old = 0;
    bool hit = false;
    if (reachable(w, addr, es)) {
      memcpy(&old, (const void *)(uintptr_t)addr, es);
      hit = memcmp(&old, want, es) == 0;
    }
    const unsigned kind = hit ? ACC_READ | ACC_WRITE | order : ACC_READ | (order & ~(unsigned)ACC_RELEASE);
    const Access x = {.addr = addr,
                      .bytes = es,
                      .kind = kind | (hit && memcmp(&old, with, es) == 0 ? ACC_QUIET : 0),
                      .warp = interp_warp(a, i, k),
                      .scope = op_scope(w, i->op, addr),
                      .esize = (int)es,
                      .ins = i,
                      .value = word_value(with, es)};
    if (!interp_access(w, a, &x)) {
      old = 0;
    } else if (hit) {
      memcpy((void *)(uintptr_t)addr, with, es);
      interp_wrote(w, a, addr, i);
    }
    memcpy(r + (size_t)k * i->r.stride * es, &old, es);
  }
  return SWITCH;
}

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
        memcpy((void *)(uintptr_t)addr, p, bytes);
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

// ---- block memory ----------------------------------------------------------------------------------------------------------------
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
    interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE, "%s accesses block memory that is not there",
                 interp_who(w, a));
    return false;
  }
  if (w->check) check_block_memory(w, a, i, p, bytes, kind, interp_warp(a, i, lane), NULL);
  return true;
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
