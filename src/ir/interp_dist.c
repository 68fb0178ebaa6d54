// interp_dist: barriers, waits, signals, copies between ranks, asynchronous copies and mbarriers.
//
// A copy that may still run when its op ends is a Job: an agent of its own that the scheduler runs at some later step, at the
// latest when its issuer waits for it. What is ordered against what is the checker's business (check_job*).
#include "ir/interp_impl.h"

#include <string.h>

// ---- barriers ----------------------------------------------------------------------------------------------------------
void interp_release_group(World *w, Group *g) {
  g->arrived = 0;
  g->bar = NULL;
  check_barrier(w, g);
  for (uint32_t k = 0; k < g->live; k++)
    if (g->warps[k]->state == AGENT_AT_BARRIER) interp_make_ready(w, g->warps[k]);
}

static void diverged(World *w, Group *g, const Agent *a) {
  interp_fault(
      w, FAULT_BARRIER, g->bar ? g->bar->op->loc : LOC_NONE, g->gone_at ? g->gone_at->op->loc : LOC_NONE,
      "%u of %u warps of rank %d, instance (%u, %u, %u) wait at the barrier of %s, but the others ended the region of %s "
      "without it",
      g->arrived, g->live, a->rank, a->inst->pid[0], a->inst->pid[1], a->inst->pid[2],
      interp_line(w, g->bar ? g->bar->op->loc : LOC_NONE),
      interp_line(w, g->gone_at ? g->gone_at->op->loc : LOC_NONE));
}

bool interp_warp_gone(World *w, Agent *a) {
  Group *g = a->group;
  g->gone++;
  if (!g->arrived || g->arrived + g->gone < g->live) return false;
  diverged(w, g, a);
  interp_release_group(w, g);
  return true;
}

Step x_barrier(World *w, Agent *a, const Ins *i) {
  Group *g = a->group;
  if (a->kind != AGENT_WARP) {
    check_barrier(w, g);
    return SWITCH;
  }
  const uint32_t lanes = a->code->lanes;
  if (a->mask != (lanes == 64 ? ~0ull : (1ull << lanes) - 1))
    interp_fault(w, FAULT_BARRIER, i->op->loc, LOC_NONE,
                 "%s reaches a barrier of the whole block with %d of its %u threads", interp_who(w, a),
                 __builtin_popcountll(a->mask), lanes);
  if (g->bar && g->bar != i && w->check)
    interp_fault(w, FAULT_BARRIER, i->op->loc, g->bar->op->loc,
                 "%s is at the barrier of %s while others wait at that of %s", interp_who(w, a),
                 interp_line(w, i->op->loc), interp_line(w, g->bar->op->loc));
  g->bar = i;
  g->arrived++;
  a->state = AGENT_AT_BARRIER;
  a->wait_ins = i;
  interp_forget(w, a);
  if (g->arrived + g->gone < g->live) return BLOCKED;
  if (g->gone) diverged(w, g, a);
  interp_release_group(w, g);
  return BLOCKED;
}

Step x_warp_barrier(World *w, Agent *a, const Ins *i) {
  (void)w, (void)a, (void)i;
  return GO;
}

Step x_fence(World *w, Agent *a, const Ins *i) {
  const IrAttr *order = ir_attr(i->op, ATTR_order), *scope = ir_attr(i->op, ATTR_scope);
  if (!order || order->i != ORDER_acquire) interp_flush(w, a->inst);
  check_fence(w, a, i, order && order->i ? (IrOrder)order->i : ORDER_acq_rel,
              scope ? (IrScope)scope->i : SCOPE_gpu);
  return SWITCH;
}

Step x_symm_at(World *w, Agent *a, const Ins *i) {
  const uint32_t n = interp_count(a, i);
  const uint64_t *p = (const uint64_t *)interp_at(a, i->a);
  uint64_t *r = (uint64_t *)interp_at(a, i->r);
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    if (interp_ref_int(a, i->b, k) == IR_NO_RANK) {
      r[(size_t)k * i->r.stride] = p[(size_t)k * i->a.stride];
      continue;
    }
    interp_peer_addr(w, a, i, p[(size_t)k * i->a.stride], interp_ref_int(a, i->b, k),
                     &r[(size_t)k * i->r.stride]);
  }
  return GO;
}

// ---- waits ---------------------------------------------------------------------------------------------------------------
bool interp_cmp_words(uint8_t cmp, uint64_t a, uint64_t b, int size) {
  const int64_t x = interp_int(&a, size), y = interp_int(&b, size);
  const uint64_t u = size == 8 ? a : (uint32_t)a, v = size == 8 ? b : (uint32_t)b;
  switch ((IrCmp)cmp) {
  case CMP_eq: return u == v;
  case CMP_ne: return u != v;
  case CMP_slt: return x < y;
  case CMP_sle: return x <= y;
  case CMP_sgt: return x > y;
  case CMP_sge: return x >= y;
  case CMP_ult: return u < v;
  case CMP_ule: return u <= v;
  case CMP_ugt: return u > v;
  default: return u >= v;
  }
}

static uint64_t word_at(uint64_t addr, int size) {
  uint64_t v = 0;
  memcpy(&v, (const void *)(uintptr_t)addr, (size_t)size);
  return v;
}

static Step block_on(World *w, Agent *a, const Ins *i, WaitKind kind) { // and execute the op again afterwards
  a->wait = kind;
  a->wait_ins = i;
  a->pc--;
  if (!a->resumed) a->begin = w->steps;
  a->resumed = true;
  interp_make_waiting(w, a);
  return BLOCKED;
}

static void over(World *w, Agent *a) {
  if (a->resumed) interp_wait_event(w, a);
  a->resumed = false;
  a->progress = 0;
}

typedef enum Found { NOT_YET, SATISFIED, BROKEN } Found;
static Found look(World *w, Agent *a, const Ins *i, uint64_t addr, int size, uint8_t cmp, uint64_t value,
                  int warp, unsigned order) {
  const Range *r = interp_find(w, addr);
  const Access x = {.addr = addr,
                    .bytes = (uint64_t)size,
                    .kind = ACC_READ | ACC_ATOMIC | order,
                    .warp = warp,
                    .scope = interp_scope(w, i->op, addr),
                    .esize = size,
                    .ins = i,
                    .waits = true,
                    .cmp = cmp,
                    .value = value};
  interp_see(w, a->inst, addr, (uint64_t)size);
  if (r && r->end - addr >= (uint64_t)size && !interp_cmp_words(cmp, word_at(addr, size), value, size)) {
    a->addr = addr;
    a->size = (uint8_t)size;
    a->cmp = cmp;
    a->value = value;
    return NOT_YET;
  }
  return interp_access(w, a, &x) ? SATISFIED : BROKEN;
}

// a: p, b: how many words, c: value. Each word counts as soon as it was seen to compare.
Step x_wait(World *w, Agent *a, const Ins *i) {
  const int size = ir_dtypes[ir_operand(i->op, 0)->type->dtype].bytes;
  const uint8_t cmp = (uint8_t)ir_attr_i(i->op, ATTR_cmp);
  const unsigned order = interp_order_bits((IrOrder)ir_attr_i(i->op, ATTR_order));
  const uint64_t *p = (const uint64_t *)interp_at(a, i->a);
  if (i->n) {
    const uint64_t words = i->b.space ? (uint64_t)interp_ref_int(a, i->b, 0) : 1;
    for (; a->progress < words; a->progress++) {
      const Found f = look(w, a, i, *p + a->progress * (uint64_t)size, size, cmp,
                           (uint64_t)interp_ref_int(a, i->c, 0), interp_warp(a, i, 0), order);
      if (f == NOT_YET) return block_on(w, a, i, WAIT_WORD);
      if (f == BROKEN) break;
    }
    over(w, a);
    return SWITCH;
  }
  const uint32_t n = interp_count(a, i);
  for (uint32_t k = 0; k < n && k < 64; k++) {
    if (!interp_active(a, k) || (a->progress >> k & 1)) continue;
    const int64_t words = i->b.space ? interp_ref_int(a, i->b, k) : 1;
    for (int64_t q = 0; q < words; q++) {
      const Found f = look(w, a, i, p[(size_t)k * i->a.stride] + (uint64_t)(q * size), size, cmp,
                           (uint64_t)interp_ref_int(a, i->c, k), interp_warp(a, i, k), order);
      if (f == NOT_YET) return block_on(w, a, i, WAIT_WORD);
      if (f == BROKEN) break;
    }
    a->progress |= 1ull << k;
  }
  over(w, a);
  return SWITCH;
}

Step x_acquire(World *w, Agent *a, const Ins *i) {
  const int size = ir_dtypes[ir_operand(i->op, 0)->type->dtype].bytes;
  const IrAttr *cmp = ir_attr(i->op, ATTR_cmp);
  const uint64_t p = *(const uint64_t *)interp_at(a, i->a);
  if (look(w, a, i, p, size, cmp ? (uint8_t)cmp->i : CMP_sge, (uint64_t)interp_ref_int(a, i->b, 0),
           interp_warp(a, i, 0), ACC_ACQUIRE) == NOT_YET)
    return block_on(w, a, i, WAIT_WORD);
  check_barrier(w, a->group);
  over(w, a);
  return SWITCH;
}

// ---- signals -------------------------------------------------------------------------------------------------------------
typedef struct Word {
  uint64_t addr, value;
  int size, warp;
  IrSigop op;
  unsigned order;
  IrScope scope;
  Actor *actor;
} Word;

static void update(World *w, Agent *a, const Ins *i, const Word *u) {
  const bool add = u->op == SIGOP_add;
  const Range *r = interp_find(w, u->addr);
  interp_see(w, a->inst, u->addr, (uint64_t)u->size);
  const bool there = r && r->end - u->addr >= (uint64_t)u->size;
  const uint64_t v = add && there ? word_at(u->addr, u->size) + u->value : u->value;
  const Access x = {.value = v,
                    .addr = u->addr,
                    .bytes = (uint64_t)u->size,
                    .kind = ACC_WRITE | ACC_ATOMIC | (add ? ACC_READ : 0) | u->order,
                    .warp = u->warp,
                    .scope = u->scope,
                    .esize = u->size,
                    .ins = i,
                    .actor = u->actor};
  if (!interp_access(w, a, &x)) return;
  memcpy((void *)(uintptr_t)u->addr, &v, (size_t)u->size);
  interp_wrote(w, a, u->addr, i);
}

Step x_signal(World *w, Agent *a, const Ins *i) {
  const uint32_t n = interp_count(a, i);
  const uint64_t *p = (const uint64_t *)interp_at(a, i->a);
  const IrAttr *scope = ir_attr(i->op, ATTR_scope);
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    Word u = {.value = (uint64_t)interp_ref_int(a, i->b, k),
              .size = ir_dtypes[ir_operand(i->op, 0)->type->dtype].bytes,
              .warp = interp_warp(a, i, k),
              .op = (IrSigop)ir_attr_i(i->op, ATTR_sigop),
              .order = interp_order_bits((IrOrder)ir_attr_i(i->op, ATTR_order)),
              .scope = scope ? (IrScope)scope->i : SCOPE_sys};
    if (!interp_peer_addr(w, a, i, p[(size_t)k * i->a.stride], interp_ref_int(a, i->c, k), &u.addr)) continue;
    update(w, a, i, &u);
  }
  return SWITCH;
}

Step x_release(World *w, Agent *a, const Ins *i) {
  Word u = {.addr = *(const uint64_t *)interp_at(a, i->a),
            .value = (uint64_t)interp_ref_int(a, i->b, 0),
            .size = ir_dtypes[ir_operand(i->op, 0)->type->dtype].bytes,
            .warp = interp_warp(a, i, 0),
            .op = (IrSigop)ir_attr_i(i->op, ATTR_sigop),
            .order = ACC_RELEASE};
  check_barrier(w, a->group);
  if (i->c.space && !interp_peer_addr(w, a, i, u.addr, interp_ref_int(a, i->c, 0), &u.addr)) return SWITCH;
  u.scope = interp_scope(w, i->op, u.addr);
  update(w, a, i, &u);
  return SWITCH;
}

// ---- copies in flight ------------------------------------------------------------------------------------------------------
static Job *job_new(World *w, Agent *a, const Ins *i, JobKind kind, int issuer) {
  Instance *in = a->inst;
  Job *j = interp_pool_get(w, sizeof *j);
  *j = (Job){
      .kind = kind, .inst = in, .ins = i, .number = ++in->job_count, .issuer = issuer, .block = issuer < 0};
  if (!in->last_job) in->last_job = &in->first_job;
  *in->last_job = j;
  in->last_job = &j->next;
  check_job(w, a, j);
  Agent *ja = interp_agent_new(w, AGENT_JOB, a->rank);
  ja->inst = in;
  ja->job = j;
  ja->code = a->code;
  j->agent = ja;
  return j;
}
static void job_go(World *w, Job *j) { interp_make_ready(w, j->agent); }

static char *job_space(World *w, Job *j, size_t bytes) {
  j->heap = bytes;
  return j->data = interp_pool_get(w, bytes ? bytes : 1);
}

static bool job_access(World *w, Job *j, uint64_t addr, uint64_t bytes, unsigned kind, int esize) {
  const Access x = {.addr = addr,
                    .bytes = bytes,
                    .kind = kind,
                    .warp = -1,
                    .esize = esize,
                    .ins = j->ins,
                    .actor = &j->actor};
  return interp_access(w, j->agent, &x);
}

static void run_copy(World *w, Job *j) {
  if (!j->bytes) return;
  if (!j->staged && !job_access(w, j, j->src, j->bytes, ACC_READ, 1)) return;
  if (!job_access(w, j, j->dst, j->bytes, ACC_WRITE, 1)) return;
  memmove((void *)(uintptr_t)j->dst, j->staged ? j->data : (const char *)(uintptr_t)j->src, j->bytes);
}

static void run_load(World *w, Job *j) {
  const IrType *t = ir_operand(j->ins->op, 0)->type;
  const uint32_t n = (uint32_t)ir_type_elems(t), es = (uint32_t)ir_dtypes[t->dtype].bytes;
  char *dst = (char *)(uintptr_t)j->dst;
  for (uint32_t k = 0; k < n;) {
    uint32_t to = k + 1;
    if (j->mask && !j->mask[k]) {
      if (j->other)
        memcpy(dst + (size_t)k * es, j->other + (size_t)k * es, es);
      else
        memset(dst + (size_t)k * es, 0, es);
    } else {
      while (to < n && j->ptrs[to] == j->ptrs[to - 1] + es && (!j->mask || j->mask[to])) to++;
      if (job_access(w, j, j->ptrs[k], (uint64_t)(to - k) * es, ACC_READ | ACC_ASYNC, (int)es))
        memcpy(dst + (size_t)k * es, (const void *)(uintptr_t)j->ptrs[k], (size_t)(to - k) * es);
    }
    k = to;
  }
  check_block_memory(w, j->agent, j->ins, dst, (size_t)n * es, ACC_WRITE | ACC_ASYNC, -1, &j->actor);
}

void interp_mbar_settle(World *w, MBar *b) {
  if (b->arrivals > 0 || b->bytes > 0) return;
  b->phase++;
  b->arrivals = b->count;
  b->bytes = 0;
  clock_drop(w, b->done);
  b->done = b->next;
  b->next = NULL;
  w->writes++;
}

// Where threads address shared memory themselves, elements lie as the buffer's layout says; before that in row-major order.
static const IrLayout *real_layout(const IrOp *op) {
  return op->parent->func->module->stage == STAGE_lowered ? ir_operand(op, 1)->type->layout : NULL;
}

static void run_desc(World *w, Job *j) {
  const IrOp *op = j->ins->op;
  const IrType *t = ir_operand(op, 0)->type;
  const IrLayout *layout = real_layout(op);
  char *m = (char *)(uintptr_t)j->dst;
  const size_t es = ir_dtypes[t->dtype].bytes, n = (size_t)ir_type_elems(t), bytes = n * es;
  const bool load = j->kind == JOB_DESC_LOAD, update = ir_attr(op, ATTR_rmw) != NULL;
  char *rows = layout ? interp_pool_get(w, bytes) : m;
  check_block_memory(w, j->agent, j->ins, m, bytes, (load ? ACC_WRITE : ACC_READ) | ACC_ASYNC, -1, &j->actor);
  for (size_t k = 0; layout && !load && k < n; k++)
    memcpy(rows + layout_index(layout, (uint32_t)k) * es, m + k * es, es);
  interp_desc_block(w, j->agent, j->ins, &j->desc, t, j->index, rows,
                    load     ? 0
                    : update ? 2
                             : 1,
                    (IrRmw)ir_attr_i(op, ATTR_rmw), &j->actor);
  for (size_t k = 0; layout && load && k < n; k++)
    memcpy(m + k * es, rows + layout_index(layout, (uint32_t)k) * es, es);
  if (layout) interp_pool_put(w, rows, bytes);
  if (!j->bar) return;
  j->bar->bytes -= (int64_t)bytes;
  if (w->check) check_publish(w, j->agent, -1, &j->bar->next);
  interp_mbar_settle(w, j->bar);
}

void interp_job_run(World *w, Job *j) {
  if (j->done) return;
  j->done = true;
  switch (j->kind) {
  case JOB_LOAD: run_load(w, j); break;
  case JOB_DESC_LOAD:
  case JOB_DESC_STORE: run_desc(w, j); break;
  default: run_copy(w, j);
  }
  if (j->sig) {
    const Word u = {.addr = j->sig,
                    .value = j->value,
                    .size = j->sig_size,
                    .warp = -1,
                    .op = (IrSigop)j->sigop,
                    .order = ACC_RELEASE,
                    .scope = SCOPE_sys,
                    .actor = &j->actor};
    update(w, j->agent, j->ins, &u);
  }
  if (w->c->event && (j->kind == JOB_PUT || j->kind == JOB_GET)) {
    InterpEvent e = {.kind = EVENT_COPY,
                     .rank = j->agent->rank,
                     .begin = j->agent->begin,
                     .end = w->steps,
                     .loc = j->ins->op->loc,
                     .name = j->kind == JOB_PUT ? "put" : "get"};
    memcpy(e.pid, j->inst->pid, sizeof e.pid);
    w->c->event(w->c->user, &e);
  }
  interp_forget(w, j->agent);
  interp_agent_free(w, j->agent);
  j->agent = NULL;
}

static void job_free(World *w, Job **link) {
  Job *j = *link;
  *link = j->next;
  if (!j->next) j->inst->last_job = link;
  if (j->data) interp_pool_put(w, j->data, j->heap ? j->heap : 1);
  clock_drop(w, j->actor.seen);
  interp_pool_put(w, j, sizeof *j);
}

static bool is_remote(const Job *j) { return j->kind == JOB_PUT || j->kind == JOB_GET; }
static bool is_waited(const Job *j) {
  return j->kind == JOB_LOAD || j->kind == JOB_DESC_STORE;
} // by async_wait

// Completes the remote copies of an executor and orders them before what it does next.
static void finish(World *w, Agent *a, int warp, bool puts_only) {
  interp_flush(w, a->inst);
  for (Job **link = &a->inst->first_job; *link;) {
    Job *j = *link;
    if (!is_remote(j) || (puts_only && j->kind != JOB_PUT) || (warp >= 0 && j->issuer != warp && !j->block)) {
      link = &j->next;
      continue;
    }
    interp_job_run(w, j);
    check_job_complete(w, a, warp, j);
    job_free(w, link);
  }
}

void interp_jobs_finish(World *w, Instance *in, int warp) { // at the instance's end: nothing is ordered by it
  (void)warp;
  while (in->first_job) {
    interp_job_run(w, in->first_job);
    job_free(w, &in->first_job);
  }
  in->last_job = NULL;
}

// Who executes a copy or signal of a group: calls with the lane whose operands count. False: no more.
static bool next_exec(const Agent *a, const Ins *i, uint32_t *k, uint32_t *lane) {
  const IrGroup g = (IrGroup)ir_attr_i(i->op, ATTR_group);
  const uint32_t n = interp_count(a, i), lanes = a->code->lanes;
  if (i->n || (g == GROUP_block && a->kind == AGENT_WARP && a->warp != (int)a->group->first)) {
    *lane = 0;
    return (*k)++ == 0 && (i->n || g != GROUP_block);
  }
  while (*k < n) {
    const uint32_t at = *k;
    if (!interp_active(a, at)) {
      ++*k;
      continue;
    }
    *lane = at;
    *k = g == GROUP_block ? n : g == GROUP_warp ? at - at % lanes + lanes : at + 1;
    return true;
  }
  return false;
}

static uint64_t operand_u64(const Agent *a, const Ins *i, uint32_t q, uint32_t lane) {
  const Operands *o = i->extra;
  return (uint64_t)interp_ref_int(a, o->at[q], lane);
}

static void start_copy(World *w, Agent *a, const Ins *i, uint32_t lane, bool signal) {
  const IrGroup g = (IrGroup)ir_attr_i(i->op, ATTR_group);
  const bool get = i->op->kind == OP_get, nbi = ir_attr_i(i->op, ATTR_nbi);
  const int warp = interp_warp(a, i, lane);
  uint64_t dst = operand_u64(a, i, 0, lane), src = operand_u64(a, i, 1, lane), sig = 0;
  const int64_t bytes = (int64_t)operand_u64(a, i, 2, lane),
                pe = (int64_t)operand_u64(a, i, signal ? 5 : 3, lane);
  if (bytes < 0) {
    interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE, "%s copies %lld bytes", interp_who(w, a),
                 (long long)bytes);
    return;
  }
  if (signal && !interp_peer_addr(w, a, i, operand_u64(a, i, 3, lane), pe, &sig)) return;
  if (bytes && !interp_peer_addr(w, a, i, get ? src : dst, pe, get ? &src : &dst)) return;
  if (!bytes && !signal) return;
  if (get && !nbi) {
    const Access rd = {
        .addr = src, .bytes = (uint64_t)bytes, .kind = ACC_READ, .warp = warp, .esize = 1, .ins = i};
    const Access wr = {
        .addr = dst, .bytes = (uint64_t)bytes, .kind = ACC_WRITE, .warp = warp, .esize = 1, .ins = i};
    if (interp_access(w, a, &rd) && interp_access(w, a, &wr))
      memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, (size_t)bytes);
    return;
  }
  bool staged = false;
  if (!get && !nbi && bytes) { // the source may be written again as soon as the op ends
    const Access rd = {
        .addr = src, .bytes = (uint64_t)bytes, .kind = ACC_READ, .warp = warp, .esize = 1, .ins = i};
    if (!interp_access(w, a, &rd)) return;
    staged = true;
  }
  Job *j = job_new(w, a, i, get ? JOB_GET : JOB_PUT, warp);
  j->block = warp < 0 || g == GROUP_block;
  j->dst = dst, j->src = src, j->bytes = (uint64_t)bytes, j->pe = (int)pe;
  if (staged) {
    memcpy(job_space(w, j, (size_t)bytes), (const void *)(uintptr_t)src, (size_t)bytes);
    j->staged = true;
  }
  if (signal) {
    j->sig = sig;
    j->value = operand_u64(a, i, 4, lane);
    j->sig_size = (uint8_t)ir_dtypes[ir_operand(i->op, 3)->type->dtype].bytes;
    j->sigop = (uint8_t)ir_attr_i(i->op, ATTR_sigop);
  }
  job_go(w, j);
}

Step x_put(World *w, Agent *a, const Ins *i) { // and get
  uint32_t lane;
  for (uint32_t k = 0; next_exec(a, i, &k, &lane);) start_copy(w, a, i, lane, false);
  return SWITCH;
}
Step x_put_signal(World *w, Agent *a, const Ins *i) {
  uint32_t lane;
  for (uint32_t k = 0; next_exec(a, i, &k, &lane);) start_copy(w, a, i, lane, true);
  return SWITCH;
}
Step x_put_fence(World *w, Agent *a, const Ins *i) {
  (void)i;
  finish(w, a, a->warp, true);
  check_fence(w, a, i, ORDER_acq_rel, SCOPE_sys);
  return SWITCH;
}
Step x_put_quiet(World *w, Agent *a, const Ins *i) {
  finish(w, a, a->warp, false);
  check_fence(w, a, i, ORDER_acq_rel, SCOPE_sys);
  return SWITCH;
}

Step x_team_barrier(World *w, Agent *a, const Ins *i) {
  const int64_t t = i->a.space ? interp_ref_int(a, i->a, 0) : 0;
  const bool block = ir_attr_i(i->op, ATTR_group) == GROUP_block;
  if (t < 0 || t >= MAX_TEAMS) {
    interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE, "%s names team %lld", interp_who(w, a), (long long)t);
    return SWITCH;
  }
  if (block && a->kind == AGENT_WARP && a->warp != (int)a->group->first) return SWITCH;
  Team *team = &w->teams[t];
  if (!team->arrivals) team->arrivals = arena_array(&w->arena, uint64_t, w->c->ranks);
  if (!a->progress) {
    if (block || a->kind == AGENT_BLOCK) check_barrier(w, a->group);
    finish(w, a, a->warp, false);
    const uint64_t number = team->arrivals[a->rank]++;
    while (team->gens.len <= number) vec_push(&w->arena, &team->gens, ((TeamGen){0}));
    TeamGen *g = &team->gens.data[number];
    g->arrived++;
    check_publish(w, a, a->warp, &g->clock);
    w->writes++;
    a->addr = (uint64_t)t;
    a->value = number;
    a->progress = 1;
  }
  const TeamGen *g = &team->gens.data[a->value];
  if (g->arrived < (uint32_t)w->c->ranks) return block_on(w, a, i, WAIT_TEAM);
  check_receive(w, a, a->warp, g->clock);
  if (block || a->kind == AGENT_BLOCK) check_barrier(w, a->group);
  over(w, a);
  return SWITCH;
}

// ---- asynchronous copies of an instance --------------------------------------------------------------------------------------
static void *spread_out(World *w, const Agent *a, Ref r, void *to, size_t n) {
  (void)w;
  if (r.stride)
    memcpy(to, interp_at(a, r), n * r.esize);
  else
    interp_fill(to, interp_at(a, r), r.esize, n);
  return to;
}

Step x_copy_async(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  const IrType *t = ir_operand(i->op, 0)->type;
  const size_t n = (size_t)ir_type_elems(t), es = ir_dtypes[t->dtype].bytes;
  Job *j = job_new(w, a, i, JOB_LOAD, interp_warp(a, i, 0));
  char *data = job_space(w, j, n * (8 + 1 + es));
  j->dst = *(uint64_t *)interp_at(a, o->at[0]);
  j->ptrs = spread_out(w, a, o->at[1], data, n);
  if (o->at[2].space) j->mask = spread_out(w, a, o->at[2], data + n * 8, n);
  if (o->at[3].space) j->other = spread_out(w, a, o->at[3], data + n * 9, n);
  *(uint64_t *)interp_at(a, i->r) = j->number;
  job_go(w, j);
  return SWITCH;
}

// The named copies; where none is named, all but the youngest `pending`.
Step x_async_wait(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  const int64_t pending = ir_attr_i(i->op, ATTR_pending);
  uint32_t live = 0;
  for (const Job *j = a->inst->first_job; j; j = j->next) live += is_waited(j);
  for (Job **link = &a->inst->first_job; *link;) {
    Job *j = *link;
    if (!is_waited(j)) {
      link = &j->next;
      continue;
    }
    bool named = !o->n && live > pending;
    for (uint32_t k = 0; k < o->n; k++) named |= *(uint64_t *)interp_at(a, o->at[k]) == j->number;
    live--;
    if (!named) {
      link = &j->next;
      continue;
    }
    interp_job_run(w, j);
    check_job_complete(w, a, a->warp, j);
    job_free(w, link);
  }
  *(uint64_t *)interp_at(a, i->r) = 0;
  return SWITCH;
}

MBar *interp_mbar(World *w, Agent *a, const Ins *i, Ref bar, Ref stage) {
  const uint64_t first = *(uint64_t *)interp_at(a, bar);
  const int64_t s = interp_ref_int(a, stage, 0);
  if (s >= 0 && first + (uint64_t)s < a->code->mbarriers) return &a->inst->mbars[first + (uint64_t)s];
  interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE, "%s names stage %lld of an mbarrier", interp_who(w, a),
               (long long)s);
  return NULL;
}

Step x_mbarrier_alloc(World *w, Agent *a, const Ins *i) {
  const IrType *t = i->op->results[0].type;
  const int64_t count = ir_attr_i(i->op, ATTR_count);
  for (int32_t s = 0; s < (t->stages ? t->stages : 1); s++) {
    MBar *b = &a->inst->mbars[i->target + (uint32_t)s];
    clock_drop(w, b->next);
    clock_drop(w, b->done);
    *b = (MBar){.arrivals = count ? count : 1, .count = count ? count : 1};
  }
  *(uint64_t *)interp_at(a, i->r) = i->target;
  return GO;
}

static Step arrive(World *w, Agent *a, const Ins *i, bool expect) {
  uint32_t n = interp_count(a, i);
  if (i->n && ir_attr_i(i->op, ATTR_each_warp))
    n = a->nthr / a->code->lanes; // program code arrives for all warps
  MBar *b = interp_mbar(w, a, i, i->a, i->b);
  if (i->n && a->warp < 0) check_barrier(w, a->group); // program code arrives for all its threads
  for (uint32_t k = 0; b && k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    if (expect) b->bytes += interp_ref_int(a, i->c, k);
    b->arrivals--;
    check_publish(w, a, interp_warp(a, i, k), &b->next);
    interp_mbar_settle(w, b);
  }
  return SWITCH;
}
Step x_mbarrier_expect(World *w, Agent *a, const Ins *i) { return arrive(w, a, i, true); }
Step x_mbarrier_arrive(World *w, Agent *a, const Ins *i) { return arrive(w, a, i, false); }

Step x_mbarrier_wait(World *w, Agent *a, const Ins *i) {
  MBar *b = interp_mbar(w, a, i, i->a, i->b);
  if (!b) return SWITCH;
  const uint64_t parity = (uint64_t)interp_ref_int(a, i->c, 0) & 1;
  if ((b->phase & 1) == parity) {
    a->addr = (uint64_t)(b - a->inst->mbars);
    a->value = parity;
    return block_on(w, a, i, WAIT_MBAR);
  }
  check_receive(w, a, interp_warp(a, i, 0), b->done);
  over(w, a);
  return SWITCH;
}

Step x_desc_load_async(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  MBar *b = interp_mbar(w, a, i, o->at[2], o->at[3]);
  if (!b) return SWITCH;
  Job *j = job_new(w, a, i, JOB_DESC_LOAD, interp_warp(a, i, 0));
  j->desc = *(const InterpDesc *)interp_at(a, o->at[0]);
  j->dst = *(uint64_t *)interp_at(a, o->at[1]);
  j->bar = b;
  for (uint32_t k = 4; k < o->n && k < 9; k++) j->index[k - 4] = interp_ref_int(a, o->at[k], 0);
  job_go(w, j);
  return SWITCH;
}

Step x_desc_store_async(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  Job *j = job_new(w, a, i, JOB_DESC_STORE, interp_warp(a, i, 0));
  j->desc = *(const InterpDesc *)interp_at(a, o->at[0]);
  j->dst = *(uint64_t *)interp_at(a, o->at[1]);
  for (uint32_t k = 2; k < o->n && k < 7; k++) j->index[k - 2] = interp_ref_int(a, o->at[k], 0);
  *(uint64_t *)interp_at(a, i->r) = j->number;
  job_go(w, j);
  return SWITCH;
}
