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
  if (a->inst && a->inst->delayed.len) {
    if (x->kind & ACC_RELEASE)
      interp_flush(w, a->inst);
    else if (x->kind & (ACC_READ | ACC_ATOMIC))
      interp_see(w, a->inst, x->addr, x->bytes);
  }
  if (a->polls && (x->kind & ACC_READ)) remember_poll(w, a, x);
  if (write && !(x->kind & ACC_QUIET)) {
    w->writes++;
    a->writes++;
    w->preempt |= (x->kind & ACC_ATOMIC) != 0;
  }
  return w->check ? check_access(w, a, x, (Range *)r) : true;
}

// ---- delayed stores --------------------------------------------------------------------------------------------------------
// Under --check with some seeds, the plain stores of some instances are held back until the instance releases, fences or
// ends, as a GPU's may be. The instance itself sees them at once; a program without its release then shows stale data.
enum { MAX_HELD = 1 << 20 };

void interp_flush(World *w, Instance *in) {
  if (!in->delayed.len) return;
  for (uint32_t k = 0; k < in->delayed.len; k++) {
    const Delayed *d = &in->delayed.data[k];
    memcpy((void *)(uintptr_t)d->addr, in->held.data + d->at, d->bytes);
  }
  in->delayed.len = in->held.len = 0;
  *in->prev_delaying = in->next_delaying;
  if (in->next_delaying) in->next_delaying->prev_delaying = in->prev_delaying;
  w->writes++;
}

void interp_see(World *w, const Instance *in, uint64_t addr, uint64_t bytes) {
  if (!in || !in->delayed.len || addr >= in->delayed_hi || addr + bytes <= in->delayed_lo) return;
  interp_flush(w, (Instance *)in);
}

static void hold_back(World *w, Instance *in, const Access *x, const void *src, uint32_t stride, size_t n) {
  if (!in->delayed.len) {
    in->delayed_lo = UINT64_MAX;
    in->delayed_hi = 0;
    in->next_delaying = w->delaying;
    in->prev_delaying = &w->delaying;
    if (w->delaying) w->delaying->prev_delaying = &in->next_delaying;
    w->delaying = in;
  }
  const size_t at = bits_round_up(in->held.len, 8),
               es = x->bytes / n; // on an element's boundary, whatever is held before
  vec_reserve(&w->arena, &in->held, at + x->bytes);
  in->held.len = (uint32_t)(at + x->bytes);
  if (stride)
    memcpy(in->held.data + at, src, x->bytes);
  else
    interp_fill(in->held.data + at, src, (int)es, n);
  vec_push(&w->arena, &in->delayed, ((Delayed){x->addr, x->bytes, at}));
  if (x->addr < in->delayed_lo) in->delayed_lo = x->addr;
  if (x->addr + x->bytes > in->delayed_hi) in->delayed_hi = x->addr + x->bytes;
  if (in->held.len > MAX_HELD) interp_flush(w, in);
}

void interp_write(World *w, Agent *a, const Access *x, const void *src, uint32_t stride, size_t n) {
  if (a->inst && a->inst->delays && !(x->kind & ACC_ATOMIC) && !x->actor) {
    hold_back(w, a->inst, x, src, stride, n);
    return;
  }
  if (stride)
    memcpy((void *)(uintptr_t)x->addr, src, x->bytes);
  else
    interp_fill((void *)(uintptr_t)x->addr, src, (int)(x->bytes / n), n);
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
  const uint32_t es = s->es, n = s->n;
  const uint64_t *p = s->p;
  uint64_t next = p[(size_t)*from * s->sp] + es;
  uint32_t at = s->at;
  if (s->i->n && s->sp && !s->mask) { // the common cases, tight
    for (; at < n && p[at] == next; at++) next += es;
  } else if (s->i->n && s->sp && s->sm) {
    for (; at < n && p[at] == next && s->mask[at]; at++) next += es;
  } else {
    const uint32_t lanes = s->i->n ? UINT32_MAX : s->a->code->lanes; // a run of threads ends with their warp
    for (; at < n && at % lanes && p[(size_t)at * s->sp] == next && on(s, at); at++) next += es;
  }
  *to = s->at = at;
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
                      .kind = ACC_READ | order | (i->flags & INS_DATA ? ACC_DATA : 0),
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
                      .kind = ACC_WRITE | order | (i->flags & INS_DATA ? ACC_DATA : 0),
                      .warp = interp_warp(a, i, from),
                      .scope = order ? op_scope(w, i->op, addr) : SCOPE_gpu,
                      .esize = (int)es,
                      .ins = i,
                      .value = len == es ? word_value(v + (size_t)from * i->b.stride * es, es) : 0};
    if (!interp_access(w, a, &x)) continue;
    interp_write(w, a, &x, v + (size_t)from * i->b.stride * es, i->b.stride, to - from);
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
    if (interp_access(w, a, &x))
      interp_write(w, a, &x, v + (size_t)k * i->b.stride * es, i->b.stride, to - k);
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
  case RMW_fmax: // as the bits compare: signed, or for a negative v unsigned and the other way round
    if (sext(v, bits) >= 0) return sext(old, bits) > sext(v, bits) ? old : v;
    return old < v ? old : v;
  case RMW_fmin:
    if (sext(v, bits) >= 0) return sext(old, bits) < sext(v, bits) ? old : v;
    return old > v ? old : v;
  default: return v;
  }
}

static bool reachable(World *w, const Agent *a, uint64_t addr, uint64_t bytes) {
  interp_see(w, a->inst, addr, bytes);
  const Range *r = interp_find(w, addr);
  return r && bytes <= r->end - addr;
}

// One atomic update by thread k; the old value, 0 where it must not happen.
static uint64_t update(World *w, Agent *a, const Ins *i, uint32_t k, uint64_t addr, size_t es, IrRmw op,
                       IrDtype d, uint64_t with) {
  uint64_t old = 0, fresh = 0;
  if (reachable(w, a, addr, es)) {
    memcpy(&old, (const void *)(uintptr_t)addr, es);
    fresh = interp_rmw_value(op, d, old, with);
  }
  const unsigned order = ACC_ATOMIC | interp_order_bits((IrOrder)ir_attr_i(i->op, ATTR_order));
  const Access x = {.addr = addr,
                    .bytes = es,
                    .warp = interp_warp(a, i, k),
                    .scope = op_scope(w, i->op, addr),
                    .esize = (int)es,
                    .kind = ACC_READ | ACC_WRITE | order | (fresh == old ? ACC_QUIET : 0),
                    .ins = i,
                    .value = fresh};
  if (!interp_access(w, a, &x)) return 0;
  memcpy((void *)(uintptr_t)addr, &fresh, es);
  interp_wrote(w, a, addr, i);
  return old;
}

Step x_rmw(World *w, Agent *a, const Ins *i) {
  const uint32_t n = interp_count(a, i), es = i->b.esize;
  const uint64_t *p = (const uint64_t *)interp_at(a, i->a);
  const char *v = interp_at(a, i->b);
  const uint8_t *mask = i->c.space ? (const uint8_t *)interp_at(a, i->c) : NULL;
  char *r = interp_at(a, i->r);
  const IrRmw op = (IrRmw)ir_attr_i(i->op, ATTR_rmw);
  const IrDtype d = ir_operand(i->op, 1)->type->dtype;
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    uint64_t old = 0, with = 0;
    if (!mask || mask[(size_t)k * i->c.stride]) {
      memcpy(&with, v + (size_t)k * i->b.stride * es, es);
      old = update(w, a, i, k, p[(size_t)k * i->a.stride], es, op, d, with);
    }
    memcpy(r + (size_t)k * i->r.stride * es, &old, es);
  }
  return SWITCH;
}

Step x_add_pack(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra; // p, mask, then the values
  const uint32_t n = interp_count(a, i), es = o->at[2].esize;
  const IrDtype d = ir_operand(i->op, 2)->type->dtype;
  const uint64_t *p = (const uint64_t *)interp_at(a, o->at[0]);
  const uint8_t *mask = o->at[1].space ? (const uint8_t *)interp_at(a, o->at[1]) : NULL;
  for (uint32_t k = 0; k < n; k++) {
    if ((!i->n && !interp_active(a, k)) || (mask && !mask[(size_t)k * o->at[1].stride])) continue;
    for (uint32_t j = 2; j < o->n; j++) {
      uint64_t with = 0;
      memcpy(&with, interp_at(a, o->at[j]) + (size_t)k * o->at[j].stride * es, es);
      update(w, a, i, k, p[(size_t)k * o->at[0].stride] + (uint64_t)(j - 2) * es, es, RMW_fadd, d, with);
    }
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
    if (reachable(w, a, addr, es)) {
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
