// interp_exec: the step loop, control flow and the small ops on values.
//
// Uniform control jumps. Control on thread values changes the agent's lane mask: what was active is kept in a scalar slot and
// put back at the region's end, so masks nest without a stack. Results are copied under the mask.
#include "ir/interp_impl.h"

#include <string.h>

Step interp_agent_run(World *w, Agent *a, uint32_t budget) {
  const Ins *const code = a->code->ins.data;
  for (;;) {
    const Ins *i = &code[a->pc++];
    w->steps++;
    w->elems += interp_count(a, i);
    const Step s = i->exec(w, a, i);
    if (s == GO) continue;
    if (s != SWITCH) return s;
    if (w->steps >= w->max_steps) {
      interp_fault(w, FAULT_LIMIT, i->op->loc, LOC_NONE, "the run was stopped after %llu steps, %s was at %s",
                   (unsigned long long)w->steps, interp_who(w, a), interp_line(w, i->op->loc));
      w->stop = true;
    }
    if (w->preempt) { // the most interesting moment for others to step
      w->preempt = false;
      if (w->c->seed && rng_next(&w->rng) & 1) return SWITCH;
    }
    if (w->stop || --budget == 0) return SWITCH;
  }
}

void interp_body_run(World *w, Agent *a, uint32_t pc) {
  const Ins *const code = a->code->ins.data;
  a->pc = pc;
  for (;;) {
    const Ins *i = &code[a->pc++];
    w->steps++;
    const Step s = i->exec(w, a, i);
    if (s == ENDED || s == BLOCKED) return;
    if (s == SWITCH && w->steps >= w->max_steps) {
      interp_fault(w, FAULT_LIMIT, i->op->loc, LOC_NONE,
                   "the run was stopped after %llu steps in a combine region", (unsigned long long)w->steps);
      w->stop = true;
      return;
    }
  }
}

Step x_body_end(World *w, Agent *a, const Ins *i) {
  (void)w, (void)a, (void)i;
  return ENDED;
}

// ---- copies and jumps ------------------------------------------------------------------------------------------------
static bool all_lanes(const Agent *a) {
  return (a->warp < 0 && a->kind != AGENT_VEC) || a->mask == (a->nthr >= 64 ? ~0ull : (1ull << a->nthr) - 1);
}

// Copies the active lanes; true: one of them changed.
#define COPY_LANES(T) \
  static bool copy_##T(uint64_t mask, T *r, const T *p, size_t stride) { \
    bool changed = false; \
    for (; mask; mask &= mask - 1) { \
      const size_t k = (size_t)__builtin_ctzll(mask); \
      const T v = p[k * stride]; \
      changed |= r[k] != v; \
      r[k] = v; \
    } \
    return changed; \
  }
COPY_LANES(uint8_t)
COPY_LANES(uint16_t)
COPY_LANES(uint32_t)
COPY_LANES(uint64_t)

static bool copy_masked(const Agent *a, char *r, const char *p, int es, size_t stride) {
  const uint64_t m = a->nthr >= 64 ? a->mask : a->mask & ((1ull << a->nthr) - 1);
  switch (es) {
  case 1: return copy_uint8_t(m, (uint8_t *)r, (const uint8_t *)p, stride);
  case 2: return copy_uint16_t(m, (uint16_t *)r, (const uint16_t *)p, stride);
  case 4: return copy_uint32_t(m, (uint32_t *)r, (const uint32_t *)p, stride);
  default: return copy_uint64_t(m, (uint64_t *)r, (const uint64_t *)p, stride);
  }
}

// TRACK: a polling loop wants to know whether anything changed. Thread values change in active lanes only.
Step x_copy(World *w, Agent *a, const Ins *i) {
  (void)w;
  const int es = i->r.esize;
  char *r = interp_at(a, i->r);
  const char *p = interp_at(a, i->a);
  const size_t n = interp_count(a, i), bytes = n * (size_t)es;
  if (i->r.space == SP_TH && i->flags && !all_lanes(a)) {
    const bool changed = copy_masked(a, r, p, es, i->a.stride);
    if (i->flags & INS_TRACK) a->changed |= changed;
    return GO;
  }
  if ((i->flags & INS_TRACK) && !a->changed) {
    for (size_t k = 0; k < n && !a->changed; k++)
      a->changed = memcmp(r + k * (size_t)es, p + k * i->a.stride * (size_t)es, (size_t)es) != 0;
  }
  if (n == 1 || i->a.stride)
    memmove(r, p, bytes);
  else
    interp_fill(r, p, es, n);
  return GO;
}

Step x_jump(World *w, Agent *a, const Ins *i) {
  (void)w;
  const bool back = i->target < a->pc;
  a->pc = i->target;
  return back ? SWITCH : GO;
}

Step x_jump_if_not(World *w, Agent *a, const Ins *i) {
  (void)w;
  if (!*interp_at(a, i->a)) a->pc = i->target;
  return GO;
}

Step x_switch_to(World *w, Agent *a, const Ins *i) {
  (void)w;
  if (interp_ref_int(a, i->a, 0) != *(const int64_t *)i->extra) a->pc = i->target;
  return GO;
}

static __int128 bound(int64_t v, int esize, bool uns) {
  if (!uns) return v;
  return esize == 4 ? (__int128)(uint32_t)v : (__int128)(uint64_t)v;
}
static bool goes_on(__int128 iv, __int128 hi, int64_t step) {
  return step > 0 ? iv < hi : step < 0 && iv > hi;
}

Step x_for_test(World *w, Agent *a, const Ins *i) {
  (void)w;
  const int es = i->a.esize;
  const __int128 iv = bound(interp_ref_int(a, i->a, 0), es, i->dt),
                 hi = bound(interp_ref_int(a, i->b, 0), i->b.esize, i->dt);
  if (!goes_on(iv, hi, interp_ref_int(a, i->c, 0))) a->pc = i->target;
  return GO;
}

Step x_for_next(World *w, Agent *a, const Ins *i) { // a value beyond the type ends the loop
  (void)w;
  const int es = i->a.esize;
  const int64_t step = interp_ref_int(a, i->c, 0);
  const __int128 iv = bound(interp_ref_int(a, i->a, 0), es, i->dt) + step;
  if (!goes_on(iv, bound(interp_ref_int(a, i->b, 0), i->b.esize, i->dt), step)) return GO;
  interp_put_int(interp_at(a, i->a), es, (int64_t)iv);
  a->pc = i->target;
  return SWITCH;
}

// ---- masks -----------------------------------------------------------------------------------------------------------------
static uint64_t *mask_at(Agent *a, Ref r) { return (uint64_t *)interp_at(a, r); }

// Bit k: byte k is 1.
static uint64_t bits_of_bytes(const uint8_t *p, uint32_t n) {
  uint64_t m = 0;
  uint32_t k = 0;
  for (; k + 8 <= n; k += 8) {
    uint64_t x;
    memcpy(&x, p + k, 8);
    m |= ((x & 0x0101010101010101u) * 0x0102040810204080u >> 56) << k;
  }
  for (; k < n; k++) m |= (uint64_t)(p[k] & 1) << k;
  return m;
}
static uint64_t cond_bits(const Agent *a, Ref c) {
  const uint8_t *p = (const uint8_t *)interp_at(a, c);
  if (!c.stride) return *p ? ~0ull : 0;
  return bits_of_bytes(p, a->nthr);
}

Step x_tsave(World *w, Agent *a, const Ins *i) {
  (void)w;
  *mask_at(a, i->a) = a->mask;
  if (i->b.space) *mask_at(a, i->b) = a->mask;
  return GO;
}

Step x_tif(World *w, Agent *a, const Ins *i) {
  (void)w;
  const uint64_t c = cond_bits(a, i->a);
  *mask_at(a, i->b) = a->mask;
  *mask_at(a, i->c) = a->mask & ~c;
  a->mask &= c;
  if (!a->mask) a->pc = i->target;
  return GO;
}

Step x_tset(World *w, Agent *a, const Ins *i) {
  (void)w;
  a->mask = *mask_at(a, i->a);
  if (!a->mask) a->pc = i->target;
  return GO;
}

Step x_trest(World *w, Agent *a, const Ins *i) {
  (void)w;
  a->mask = *mask_at(a, i->a);
  return GO;
}

Step x_tloop(World *w, Agent *a, const Ins *i) {
  (void)w;
  const uint64_t m = a->mask & cond_bits(a, i->a);
  a->changed |= m != a->mask;
  a->mask = m;
  if (!m) a->pc = i->target;
  return GO;
}

Step x_tcase(World *w, Agent *a, const Ins *i) {
  (void)w;
  uint64_t m = *mask_at(a, i->b);
  if (i->extra) {
    const int64_t v = *(const int64_t *)i->extra;
    for (uint32_t k = 0; k < a->nthr; k++)
      if (interp_ref_int(a, i->a, k) != v) m &= ~(1ull << k);
  }
  *mask_at(a, i->b) &= ~m;
  a->mask = m;
  if (!m) a->pc = i->target;
  return GO;
}

static uint64_t lanes_in_range(Agent *a, const Ins *i) {
  uint64_t m = 0;
  for (uint32_t k = 0; k < a->nthr; k++) {
    if (!(a->mask >> k & 1)) continue;
    const __int128 iv = bound(interp_ref_int(a, i->a, k), i->a.esize, i->dt);
    if (goes_on(iv, bound(interp_ref_int(a, i->b, k), i->b.esize, i->dt), interp_ref_int(a, i->c, k)))
      m |= 1ull << k;
  }
  return m;
}

Step x_tfor(World *w, Agent *a, const Ins *i) {
  (void)w;
  a->mask = lanes_in_range(a, i);
  if (!a->mask) a->pc = i->target;
  return GO;
}

Step x_tfor_next(World *w, Agent *a, const Ins *i) {
  (void)w;
  const int es = i->a.esize;
  uint64_t m = 0;
  for (uint32_t k = 0; k < a->nthr; k++) {
    if (!(a->mask >> k & 1)) continue;
    const int64_t step = interp_ref_int(a, i->c, k);
    const __int128 iv = bound(interp_ref_int(a, i->a, k), es, i->dt) + step;
    if (!goes_on(iv, bound(interp_ref_int(a, i->b, k), i->b.esize, i->dt), step)) continue;
    interp_put_int(interp_at(a, i->a) + (size_t)k * (size_t)es, es, (int64_t)iv);
    m |= 1ull << k;
  }
  a->mask = m; // lanes whose next value leaves the type are done: their old value still passes the test
  a->pc = i->target;
  return SWITCH;
}

// ---- polling loops -----------------------------------------------------------------------------------------------------------
// A turn of the loop that wrote nothing and carried nothing new will go the same way until a word that it read changes.
Step x_spin_head(World *w, Agent *a, const Ins *i) {
  if (!a->polled) a->polled = arena_array(&w->arena, Polled, MAX_POLLED);
  a->polls = true;
  a->changed = a->coarse = false;
  a->npolled = 0;
  a->writes0 = a->writes;
  a->epoch0 = w->writes;
  a->polled_ins = i;
  return GO;
}

Step x_spin(World *w, Agent *a, const Ins *i) {
  a->pc = i->target;
  if (a->changed || a->writes != a->writes0 || (!a->npolled && !a->coarse)) return SWITCH;
  a->wait = WAIT_POLL;
  a->wait_ins = i;
  if (interp_condition(w, a)) return SWITCH;
  a->begin = w->steps;
  interp_make_waiting(w, a);
  return BLOCKED;
}

// ---- forks ---------------------------------------------------------------------------------------------------------------------
static Agent *child(World *w, Agent *a, AgentKind kind, uint32_t pc) {
  const Code *code = a->code;
  Agent *c = interp_agent_new(w, kind, a->rank);
  c->code = code;
  c->inst = a->inst;
  c->group = a->group;
  c->parent = a;
  c->pc = pc;
  memcpy(c->base, a->base, sizeof c->base);
  c->base[SP_SC] = interp_pool_get(w, code->sc_bytes);
  c->base[SP_NONE] = c->base[SP_SC];
  memcpy(c->base[SP_SC], a->base[SP_SC], code->sc_bytes);
  c->next = NULL;
  Agent **end = &a->first_child;
  while (*end) end = &(*end)->next;
  *end = c;
  a->children++;
  a->inst->agents++;
  return c;
}

static Step fork_warps(World *w, Agent *a, const Ins *i, uint32_t n, bool local) {
  Group *g = a->group;
  const uint32_t lanes = a->code->lanes;
  a->first_child = NULL;
  a->children = 0;
  g->arrived = g->gone = 0;
  g->live = n;
  g->bar = NULL;
  g->warps = interp_pool_get(w, n * sizeof(Agent *));
  for (uint32_t k = 0; k < n; k++) {
    Agent *c = child(w, a, AGENT_WARP, a->pc);
    c->warp = (int)(g->first + k);
    c->lane0 = local ? 0 : k * lanes;
    c->nthr = lanes;
    c->mask = lanes == 64 ? ~0ull : (1ull << lanes) - 1;
    if (local) {
      c->base[SP_LO] = interp_pool_get(w, a->code->lo_bytes);
      interp_put_int(interp_at(c, i->a), i->a.esize, k);
    }
    g->warps[k] = c;
    interp_make_ready(w, c);
  }
  a->pc = i->target;
  a->state = AGENT_JOINING;
  interp_forget(w, a);
  return BLOCKED;
}

Step x_fork(World *w, Agent *a, const Ins *i) { return fork_warps(w, a, i, a->group->nwarps, false); }
Step x_fork_warps(World *w, Agent *a, const Ins *i) {
  if (a->inst->root.nwarps < i->n) {
    interp_fault(w, FAULT_LIMIT, i->op->loc, LOC_NONE, "a warp_for of %u warps in a block of %u", i->n,
                 a->inst->root.nwarps);
    w->stop = true;
    return SWITCH;
  }
  check_barrier(w, a->group);
  return fork_warps(w, a, i, i->n, true);
}

static void child_over(World *w, Agent *c) {
  Agent *p = c->parent;
  c->state = AGENT_OVER;
  interp_forget(w, c);
  if (--p->children) return;
  if (p->first_child->base[SP_LO]) check_barrier(w, p->group); // warp_for ops stand between barriers
  memcpy(p->base[SP_SC], p->first_child->base[SP_SC], p->code->sc_bytes);
  for (Agent *k = p->first_child, *next; k; k = next) {
    next = k->next;
    interp_pool_put(w, k->base[SP_SC], k->code->sc_bytes);
    if (k->base[SP_LO]) interp_pool_put(w, k->base[SP_LO], k->code->lo_bytes);
    p->inst->agents--;
    interp_agent_free(w, k);
  }
  p->first_child = NULL;
  if (p->group->warps) {
    interp_pool_put(w, p->group->warps, p->group->live * sizeof(Agent *));
    p->group->warps = NULL;
  }
  interp_make_ready(w, p);
}

Step x_join(World *w, Agent *a, const Ins *i) {
  a->group->gone_at = i;
  interp_warp_gone(w, a);
  child_over(w, a);
  return ENDED;
}

Step x_fork_parts(World *w, Agent *a, const Ins *i) {
  const PartExtra *x = i->extra;
  a->first_child = NULL;
  a->children = 0;
  check_barrier(w, a->group);
  for (uint32_t k = 0; k < x->n; k++) {
    Group *g = arena_new(&w->arena, Group);
    *g = (Group){.inst = a->inst,
                 .next = a->inst->parts,
                 .first = a->group->first + x->at[k].first,
                 .nwarps = x->at[k].warps};
    a->inst->parts = g;
    Agent *c = child(w, a, AGENT_BLOCK, x->at[k].pc);
    c->group = g;
    c->warp = -1;
    c->lane0 = 0;
    c->nthr = g->nwarps * a->code->lanes;
    c->mask = ~0ull;
    check_part_begin(w, g);
    interp_make_ready(w, c);
  }
  a->pc = i->target;
  a->state = AGENT_JOINING;
  interp_forget(w, a);
  return BLOCKED;
}

Step x_part_end(World *w, Agent *a, const Ins *i) {
  (void)i;
  Agent *p = a->parent;
  const bool last = p->children == 1;
  check_part_end(w, a->group);
  if (last) check_barrier(w, p->group);
  child_over(w, a);
  return ENDED;
}

Step x_warp_set(World *w, Agent *a, const Ins *i) { // a: the next warp's number
  (void)w;
  char *p = interp_at(a, i->a);
  const int64_t k = a->warp < 0 ? 0 : a->warp - (int64_t)a->group->first + 1;
  if (k == 0 || k >= (int64_t)i->n) check_barrier(w, a->group); // warp_for ops stand between barriers
  if (k >= (int64_t)i->n) {
    a->warp = -1;
    a->pc = i->target;
    return GO;
  }
  interp_put_int(p, i->a.esize, k);
  a->warp = (int)(a->group->first + (uint32_t)k);
  return SWITCH;
}

Step x_ret(World *w, Agent *a, const Ins *i) {
  (void)i;
  a->state = AGENT_OVER;
  interp_forget(w, a);
  interp_instance_done(w, a);
  return ENDED;
}

// ---- elementwise -------------------------------------------------------------------------------------------------------------
Step x_elem(World *w, Agent *a, const Ins *i) {
  (void)w;
  i->fn(interp_at(a, i->r), interp_at(a, i->a), interp_at(a, i->b), interp_at(a, i->c), i->strides,
        interp_count(a, i));
  return GO;
}

enum { CHUNK = 256 };
static const float *widen_part(IrDtype d, float *buf, const char *p, Ref r, size_t from, size_t n) {
  if (!r.space) return buf;
  interp_widen(d, buf, p + from * r.stride * r.esize, r.stride ? n : 1);
  return buf;
}

Step x_elem_narrow(World *w, Agent *a, const Ins *i) {
  (void)w;
  float fa[CHUNK], fb[CHUNK], fc[CHUNK], fr[CHUNK];
  char *r = interp_at(a, i->r);
  const char *pa = interp_at(a, i->a), *pb = interp_at(a, i->b), *pc = interp_at(a, i->c);
  const size_t n = interp_count(a, i);
  const IrDtype d = (IrDtype)i->dt;
  const bool to_float = ir_dtypes[i->rdt].cls == IR_FLOAT;
  for (size_t k = 0; k < n; k += CHUNK) {
    const size_t m = n - k < CHUNK ? n - k : CHUNK;
    widen_part(d, fa, pa, i->a, k, m);
    widen_part(d, fb, pb, i->b, k, m);
    widen_part(d, fc, pc, i->c, k, m);
    if (to_float) {
      i->fn(fr, fa, fb, fc, i->strides, m);
      interp_narrow((IrDtype)i->rdt, r + k * i->r.esize, fr, m);
    } else {
      i->fn(r + k * i->r.esize, fa, fb, fc, i->strides, m);
    }
  }
  return GO;
}

// ---- identity, lanes -------------------------------------------------------------------------------------------------------------
static void set_all(Agent *a, const Ins *i, int64_t v) {
  char *r = interp_at(a, i->r);
  const uint32_t n = i->r.stride ? interp_count(a, i) : 1;
  for (uint32_t k = 0; k < n; k++) interp_put_int(r + (size_t)k * i->r.esize, i->r.esize, v);
}

Step x_program_id(World *w, Agent *a, const Ins *i) {
  (void)w;
  const int64_t axis = ir_attr_i(i->op, ATTR_axis);
  set_all(a, i, axis >= 0 && axis < 3 ? (int64_t)a->inst->pid[axis] : 0);
  return GO;
}
Step x_num_programs(World *w, Agent *a, const Ins *i) {
  (void)w;
  const int64_t axis = ir_attr_i(i->op, ATTR_axis);
  set_all(a, i, axis >= 0 && axis < 3 ? (int64_t)a->inst->launch->cmd->grid[axis] : 1);
  return GO;
}
Step x_rank(World *w, Agent *a, const Ins *i) {
  (void)w;
  set_all(a, i, a->rank);
  return GO;
}
Step x_tid(World *w, Agent *a, const Ins *i) {
  (void)w;
  int32_t *r = (int32_t *)interp_at(a, i->r);
  const uint32_t n = interp_count(a, i);
  for (uint32_t k = 0; k < n; k++) r[k] = (int32_t)(a->lane0 + k);
  return GO;
}
Step x_timer(World *w, Agent *a, const Ins *i) {
  set_all(a, i, (int64_t)w->steps);
  return SWITCH;
}
Step x_smid(World *w, Agent *a, const Ins *i) {
  (void)w;
  set_all(a, i, (int64_t)(a->inst->number % 64));
  return GO;
}

Step x_from_thread(World *w, Agent *a, const Ins *i) {
  const size_t es = i->r.esize;
  const char *v = interp_at(a, i->a);
  memcpy(interp_at(a, i->r), v, es);
  if (!ir_attr_i(i->op, ATTR_uniform)) {
    check_barrier(w, a->group);
    return GO;
  }
  const uint32_t n = i->a.stride ? a->code->lanes * a->group->nwarps : 1;
  for (uint32_t k = 1; k < n; k++) {
    if (memcmp(v, v + (size_t)k * i->a.stride * es, es) == 0) continue;
    interp_fault(w, FAULT_ASSERT, i->op->loc, LOC_NONE,
                 "%s takes for uniform what thread %u holds otherwise than thread 0", interp_who(w, a), k);
    break;
  }
  return GO;
}

// Reads a lane's neighbours before it writes: results never share a slot with operands.
Step x_shfl(World *w, Agent *a, const Ins *i) {
  (void)w;
  const uint32_t n = interp_count(a, i), lanes = a->code->lanes, es = i->r.esize;
  char *r = interp_at(a, i->r);
  const char *v = interp_at(a, i->a);
  const IrShfl how = (IrShfl)ir_attr_i(i->op, ATTR_shfl);
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    const uint32_t own = k % lanes, first = k - own;
    const int64_t by = interp_ref_int(a, i->b, k);
    int64_t src = by;
    if (how == SHFL_up) src = (int64_t)own - by;
    if (how == SHFL_down) src = (int64_t)own + by;
    if (how == SHFL_xor) src = (int64_t)own ^ by;
    if (src < 0 || src >= (int64_t)lanes) src = own;
    memcpy(r + (size_t)k * i->r.stride * es, v + (size_t)(first + (uint32_t)src) * i->a.stride * es, es);
  }
  return GO;
}

static Step lane_mask(Agent *a, const Ins *i, bool cond) {
  const uint32_t n = interp_count(a, i), lanes = a->code->lanes;
  char *r = interp_at(a, i->r);
  if (i->n) { // placed: a vector of lanes, the bits as a scalar or in each lane
    uint64_t m = cond ? 0 : lanes == 64 ? ~0ull : (1ull << lanes) - 1;
    for (uint32_t k = 0; cond && k < lanes; k++)
      m |= (uint64_t)(interp_at(a, i->a)[(size_t)k * i->a.stride] != 0) << k;
    for (uint32_t k = 0; k < n; k++)
      interp_put_int(r + (size_t)k * i->r.stride * i->r.esize, i->r.esize, (int64_t)m);
    return GO;
  }
  for (uint32_t first = 0; first < n; first += lanes) {
    uint64_t m = 0;
    for (uint32_t k = first; k < first + lanes && k < n; k++)
      if (interp_active(a, k) && (!cond || interp_at(a, i->a)[(size_t)k * i->a.stride]))
        m |= 1ull << (k - first);
    for (uint32_t k = first; k < first + lanes && k < n; k++)
      interp_put_int(r + (size_t)k * i->r.stride * i->r.esize, i->r.esize, (int64_t)m);
  }
  return GO;
}
Step x_ballot(World *w, Agent *a, const Ins *i) {
  (void)w;
  return lane_mask(a, i, true);
}
Step x_active_mask(World *w, Agent *a, const Ins *i) {
  (void)w;
  return lane_mask(a, i, false);
}
