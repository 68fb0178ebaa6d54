// calls: what compiled CPU code calls back: waits, barriers, copies and signals to peers, prints and assertions.
//
// Copies are done when the call returns, so the nbi forms are too, and quiet is a fence. Whoever signals another rank
// wakes its workers if they sleep, and leaves a note of the word, the value and the source line for reports.
#include "rt/rt_impl.h"

#include <stdio.h>

static void call_wait(AbiInstance *i, const void *flag, uint32_t n, uint32_t bytes, uint64_t value,
                      AbiCmp cmp, AbiSite site) {
  const WaitFor w = {.flag = flag, .n = n, .bytes = bytes, .value = value, .cmp = cmp, .site = site};
  rt_fiber_wait(i->fiber, &w);
}

// ---- peers -----------------------------------------------------------------------------------------
// A rank that does not exist or, where it does, a pointer that is in none of this rank's symmetric segments.
static void call_bad_peer(AbiInstance *i, int64_t pe, AbiSite site) {
  Fiber *f = i->fiber;
  if (pe >= 0 && pe < f->rank->team->world) {
    rt_fault_instance(f, ST_INVALID, site,
                      "the pointer to translate for rank %lld is not on the symmetric heap", (long long)pe);
    rt_escape(f);
  }
  rt_fault_instance(f, ST_INVALID, site, "rank %lld does not exist; the team has ranks 0 to %d",
                    (long long)pe, f->rank->team->world - 1);
  rt_escape(f);
}

// The peer's view of symmetric p, or the end of the instance.
static void *peer_of(AbiInstance *i, const void *p, uint64_t bytes, int32_t pe, AbiSite site) {
  Fiber *f = i->fiber;
  if (pe < 0 || pe >= f->rank->team->world) call_bad_peer(i, pe, site);
  void *q = rt_peer_address(f->rank, p, bytes, pe);
  if (q) return q;
  rt_fault_instance(f, ST_INVALID, site, "%p (%llu bytes) is not symmetric memory of rank %d", p,
                    (unsigned long long)bytes, f->rank->index);
  rt_escape(f);
}

static const char *label_of(const AbiInstance *i, AbiSite site) {
  const RtKernel *k = i->kernel;
  return site < k->image->nsites ? k->site_labels[site] : k->info->name;
}

static void call_copy(AbiInstance *i, void *dst, const void *src, uint64_t bytes, int32_t pe, uint32_t flags,
                      AbiSite site) {
  Fiber *f = i->fiber;
  if (flags & 1)
    src = peer_of(i, src, bytes, pe, site);
  else
    dst = peer_of(i, dst, bytes, pe, site);
  const bool traced = rt_tracing(f->rank) && bytes >= 4096;
  const uint64_t begin = traced ? os_now_ns() : 0;
  memmove(dst, src, bytes);
  if (traced)
    rt_trace(f->rank, TRACE_COPY, f->launch->stream->index, i->pid, begin, os_now_ns(), bytes,
             label_of(i, site));
}

static void call_signal(AbiInstance *i, void *word, uint64_t value, uint32_t bytes, int32_t pe, uint32_t op,
                        AbiSite site) {
  Fiber *f = i->fiber;
  RtTeam *t = f->rank->team;
  void *there = peer_of(i, word, bytes, pe, site);
  uint64_t now = value;
  if (bytes == 4) {
    if (op)
      now = __atomic_add_fetch((uint32_t *)there, (uint32_t)value, __ATOMIC_RELEASE);
    else
      __atomic_store_n((uint32_t *)there, (uint32_t)value, __ATOMIC_RELEASE);
  } else {
    if (op)
      now = __atomic_add_fetch((uint64_t *)there, value, __ATOMIC_RELEASE);
    else
      __atomic_store_n((uint64_t *)there, value, __ATOMIC_RELEASE);
  }
  rt_writer_note(t, pe, there, now, f->rank->index, label_of(i, site));
  rt_kick(t, pe);
}

static void call_quiet(AbiInstance *i, uint32_t fence_only) {
  (void)i, (void)fence_only;
  atomic_thread_fence(memory_order_seq_cst);
}

// ---- barriers of all ranks ---------------------------------------------------------------------------
static void meet(AbiInstance *i, AbiSite site) {
  Fiber *f = i->fiber;
  RtTeam *t = f->rank->team;
  const uint32_t channel = f->launch->stream->index;
  const uint64_t mine = atomic_fetch_add(&f->rank->control->meets[channel], 1) + 1;
  for (int r = 0; r < t->world; r++) {
    if (r != f->rank->index) rt_kick(t, r);
  }
  const WaitFor w = {
      .meets = &rt_control_rank(t, 0)->meets[channel], .n = (uint32_t)t->world, .value = mine, .site = site};
  rt_fiber_wait(f, &w);
}

static void call_team_barrier(AbiInstance *i, int32_t team, uint32_t group, AbiSite site) {
  enum { BLOCK = 2 };
  Fiber *f = i->fiber;
  if (team != 0) {
    rt_fault_instance(f, ST_UNSUPPORTED, site, "team %d does not exist; only team 0, all ranks, has barriers",
                      team);
    rt_escape(f);
  }
  if (group != BLOCK || !f->group || f->group->n == 1) {
    meet(i, site);
    return;
  }
  rt_call_block_barrier(i, f->group->n, site);
  if (i->warp == 0) meet(i, site);
  rt_call_block_barrier(i, f->group->n, site);
}

// ---- prints and assertions -----------------------------------------------------------------------------
static void say_value(RtText *t, char kind, int width, uint64_t bits) {
  const int shift = width > 0 && width < 64 ? 64 - width : 0;
  union {
    uint64_t u;
    double d;
    float f[2];
  } x = {.u = bits};
  switch (kind) {
  case 'i': rt_say(t, "%lld", (long long)(bits << shift) >> shift); break;
  case 'u': rt_say(t, "%llu", (unsigned long long)(bits << shift >> shift)); break;
  case 'p': rt_say(t, "0x%llx", (unsigned long long)bits); break;
  case 'd': rt_say(t, "%f", x.d); break;
  case 'f': rt_say(t, "%f", width == 64 ? x.d : (double)x.f[0]); break;
  case 'h': rt_say(t, "%f", (double)f16_to_f32((uint16_t)bits)); break;
  case 'b': rt_say(t, "%f", (double)bf16_to_f32((uint16_t)bits)); break;
  default:
    rt_say(t, "0x%0*llx", width > 0 ? width / 4 : 16, (unsigned long long)(bits << shift >> shift));
    break;
  }
}

// One line a value, as the interpreter prints them.
static void call_print(AbiInstance *i, AbiSite site, uint32_t lane, const uint64_t *bits, uint32_t n) {
  const Fiber *f = i->fiber;
  const RtConfig *c = &f->rank->team->context->config;
  if (!c->print) return;
  const RtKernel *k = i->kernel;
  const ImageSite *s = site < k->image->nsites ? &k->image->sites[site] : NULL;
  const char *fmt = s && s->fmt ? s->fmt : "";
  char place[128];
  RtText at = {place, 0, sizeof place};
  place[0] = 0;
  if (lane != UINT32_MAX) rt_say(&at, " idx (%u)", lane);
  uint32_t marks = 0; // values in front that say where: the element's index, or the thread
  for (; marks < n && (*fmt == 'n' || *fmt == 't') && strlen(fmt) >= 3; marks++, fmt += 3) {
    const int32_t x = (int32_t)bits[marks];
    if (*fmt == 't')
      rt_say(&at, " thread %d", x);
    else
      rt_say(&at, "%s%d%s", marks ? ", " : " idx (", x, fmt[3] == 'n' ? "" : ")");
  }
  bits += marks;
  n -= marks;
  for (uint32_t v = 0; v < n || (v == 0 && n == 0); v++) {
    char line[512];
    RtText t = {line, 0, sizeof line};
    rt_say(&t, "pid (%u, %u, %u)", i->pid[0], i->pid[1], i->pid[2]);
    rt_say(&t, "%s %.200s", place, s && s->what ? s->what : "");
    if (n > 1) rt_say(&t, "(operand %u) ", v);
    const char kind = *fmt ? *fmt++ : 'x';
    int width = 0;
    for (; *fmt >= '0' && *fmt <= '9' && width < 100; fmt++) width = width * 10 + (*fmt - '0');
    if (v < n) say_value(&t, kind, width, bits[v]);
    c->print(c->user, f->rank->index, line);
  }
}

static void call_assert_fail(AbiInstance *i, AbiSite site) {
  Fiber *f = i->fiber;
  const RtKernel *k = i->kernel;
  const char *what = site < k->image->nsites ? k->image->sites[site].what : NULL;
  rt_fault_instance(f, ST_ASSERT, site, "assertion failed%s%s", what && *what ? ": " : "", what ? what : "");
  rt_escape(f);
}

const AbiCpuCalls rt_cpu_calls = {
    .wait = call_wait,
    .yield = rt_call_yield,
    .warps = rt_call_warps,
    .block_barrier = rt_call_block_barrier,
    .team_barrier = call_team_barrier,
    .copy = call_copy,
    .signal = call_signal,
    .quiet = call_quiet,
    .print = call_print,
    .assert_fail = call_assert_fail,
    .bad_peer = call_bad_peer,
};
