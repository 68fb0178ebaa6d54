// sync: which barriers a block needs, in the lowered stage.
//
// needs:  offsets of shared memory (`alloc`), where buffers may have the same bytes.
// keeps:  the meaning, which is program order; barriers of the author and of `pipe`. breaks: nothing.
//
// `low` puts a barrier {made} wherever threads might need one. Those stay that separate two accesses of which one writes, that may be of
// different threads and of the same bytes:
//   - the same buffer of shared memory, or another that has bytes of it; loops carry accesses round
//   - global memory of common roots (roots.c), unless only thread 0 is concerned
//   - what came before a release, what comes after an acquire
// The accesses since the last barrier are followed forward, along control, until nothing changes; the first barrier that they need is
// turned on, and all before it are settled. What is in flight is settled by a barrier behind its wait only. Bytes that change hands between
// buffers get a barrier where none stands. A partition of warps is a block of its own: its barriers are its warps', and what partitions do to
// each other is ordered by mbarriers. Where control leaves no way to tell, all stay.
// A block of one warp needs no more than the warp's own barrier.
// Source: the hazards are those of Triton's membar analysis; here barriers are first there and then dropped.
#include "pass/buffers.h"

#include <string.h>

#define ROOTS_ANY (PASS_ROOT_UNKNOWN | PASS_ROOT_PEER)
enum { EVERYONE, FIRST, WHO }; // threads concerned: thread 0 only

typedef struct Pending {                          // accesses since the last barrier
  uint64_t *reads[BUF_KINDS], *writes[BUF_KINDS]; // of buffers; BUF_NOW: settled by a barrier
  uint64_t global_reads[WHO], global_writes[WHO]; // roots
  bool acquired;                                  // by some thread, and others do not know
} Pending;

typedef struct Sync {
  Pass *pass;
  Arena *arena;
  IrFunc *f;
  Buffers *b;
  PassRoots *roots;
  uint64_t **others; // by buffer: those that have bytes of it, without itself
  Map on;            // made barriers that are needed
  uint32_t words;
  bool changed;
  uint32_t kept, dropped;
} Sync;

// ---- sets -----------------------------------------------------------------------------------------------------------------------
static Pending *pending_new(Sync *s) {
  Pending *p = arena_new(s->arena, Pending);
  for (int k = 0; k < BUF_KINDS; k++) {
    p->reads[k] = arena_array(s->arena, uint64_t, s->words);
    p->writes[k] = arena_array(s->arena, uint64_t, s->words);
  }
  return p;
}

static bool add(uint64_t *to, const uint64_t *from, uint32_t n) {
  bool changed = false;
  for (uint32_t i = 0; i < n; i++) {
    changed |= (from[i] & ~to[i]) != 0;
    to[i] |= from[i];
  }
  return changed;
}

static bool join(const Sync *s, Pending *to, const Pending *from) {
  bool changed = from->acquired && !to->acquired;
  for (int k = 0; k < BUF_KINDS; k++) {
    changed |= add(to->reads[k], from->reads[k], s->words);
    changed |= add(to->writes[k], from->writes[k], s->words);
  }
  changed |= add(to->global_reads, from->global_reads, WHO);
  changed |= add(to->global_writes, from->global_writes, WHO);
  to->acquired |= from->acquired;
  return changed;
}

static Pending *copy(Sync *s, const Pending *p) {
  Pending *q = pending_new(s);
  join(s, q, p);
  return q;
}

static void settle(const Sync *s, Pending *p) { // a barrier
  memset(p->reads[BUF_NOW], 0, s->words * sizeof(uint64_t));
  memset(p->writes[BUF_NOW], 0, s->words * sizeof(uint64_t));
  memset(p->global_reads, 0, sizeof p->global_reads);
  memset(p->global_writes, 0, sizeof p->global_writes);
  p->acquired = false;
}

// ---- accesses ---------------------------------------------------------------------------------------------------------------------
static bool releases(IrOrder o) { return o == ORDER_release || o == ORDER_acq_rel || o == ORDER_seq_cst; }
static bool acquires(IrOrder o) { return o == ORDER_acquire || o == ORDER_acq_rel || o == ORDER_seq_cst; }

typedef struct Touch { // all that a piece of the program does
  Pending does;
  bool release, ends; // ends: at a barrier
} Touch;

static uint64_t roots_of(const Sync *s, const IrOp *op) {
  uint64_t roots = 0;
  bool found = false;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (!v || !((ir_type_is_ptr(v->type) && v->type->space == SPACE_global) || v->type->kind == IR_DESC))
      continue;
    found = true;
    roots |= pass_roots(s->roots, v);
  }
  return found && roots ? roots : PASS_ROOT_UNKNOWN;
}

static void touch(Sync *s, const IrOp *op, int who, Pending *p, bool *release) {
  const IrEffects e = ir_op_effects(op);
  BufAccess x = {.which = arena_array(s->arena, uint64_t, s->words)};
  if (buffers_access(s->b, op, &x)) {
    if (x.reads) add(p->reads[x.async], x.which, s->words);
    if (x.writes) add(p->writes[x.async], x.which, s->words);
  }
  enum { OUTSIDE = RES_GLOBAL | RES_SYMM | RES_SIGNAL };
  if (op->kind == OP_inline_asm && !ir_attr_i(op, ATTR_pure)) {
    p->global_reads[EVERYONE] |= PASS_ROOT_UNKNOWN;
    p->global_writes[EVERYONE] |= PASS_ROOT_UNKNOWN;
  }
  const IrValue *first = ir_operand(op, 0);
  if (first && first->type->kind == IR_MBARRIER) return; // orders whom its author says
  if ((e.reads | e.writes) & OUTSIDE) {
    const uint64_t roots = roots_of(s, op);
    if (e.reads & OUTSIDE) p->global_reads[who] |= roots;
    if (e.writes & OUTSIDE) p->global_writes[who] |= roots;
  }
  if (releases(e.order)) *release = true;
  if (acquires(e.order)) p->acquired = true;
}

// `if tid == 0`
static bool is_first_only(const IrOp *op) {
  const IrOp *c = op->kind == OP_if ? ir_operand(op, 0)->def : NULL;
  uint64_t bits;
  if (!c || c->kind != OP_cmp || ir_attr_i(c, ATTR_cmp) != CMP_eq) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const IrOp *t = ir_operand(c, i)->def;
    if (t && t->kind == OP_tid && pass_const(ir_operand(c, 1 - i), &bits) && !bits) return true;
  }
  return false;
}

static bool is_barrier(const IrOp *op) {
  return op->kind == OP_barrier || (op->kind == OP_from_thread && !ir_attr_i(op, ATTR_uniform));
}

static void touch_deep(Sync *s, const IrOp *op, int who, Pending *p, bool *release) {
  if (!op->nregions) touch(s, op, who, p, release);
  for (uint32_t r = 0; r < op->nregions; r++) {
    const int inner = r == 0 && is_first_only(op) ? FIRST : who;
    PASS_EACH_OP(op->regions[r], o) touch_deep(s, o, inner, p, release);
  }
}

static bool has_barrier(const IrOp *op) {
  for (uint32_t r = 0; r < op->nregions; r++) {
    PASS_EACH_OP(op->regions[r], o) {
      if (is_barrier(o) || has_barrier(o)) return true;
    }
  }
  return false;
}

// What stands from `op` on, up to the next barrier. False: it cannot be told, because a loop begins again.
static bool ahead(Sync *s, const IrOp *op, Pending *p, bool *release) {
  while (op) {
    if (is_barrier(op)) return true;
    touch_deep(s, op, EVERYONE, p, release);
    if (has_barrier(op)) return true; // what is behind it is seen from there
    if (op->next) {
      op = op->next;
      continue;
    }
    const IrOp *owner = op->parent->owner;
    if (!owner) return true;
    if (owner->kind == OP_for) { // the next turn, from its start
      PASS_EACH_OP(op->parent, o) {
        if (is_barrier(o)) break;
        touch_deep(s, o, EVERYONE, p, release);
        if (has_barrier(o)) break;
      }
    } else if (owner->kind != OP_if && owner->kind != OP_switch) {
      return false;
    }
    op = owner->next;
  }
  return true;
}

// ---- hazards ------------------------------------------------------------------------------------------------------------------------
static bool meet(const Sync *s, const uint64_t *x, const uint64_t *y, bool foreign) {
  const uint32_t any = s->b->n;
  uint64_t some_x = 0, some_y = 0;
  for (uint32_t i = 0; i < s->words; i++) {
    if (!foreign && (x[i] & y[i])) return true;
    some_x |= x[i], some_y |= y[i];
  }
  if (!some_x || !some_y) return false;
  if (buffers_has(x, any) || buffers_has(y, any)) return true;
  for (uint32_t b = 0; b < any; b++) {
    if (!buffers_has(x, b)) continue;
    for (uint32_t i = 0; i < s->words; i++) {
      if (s->others[b][i] & y[i]) return true;
    }
  }
  return false;
}

static bool buffers_clash(const Sync *s, const Pending *before, const Pending *after, bool foreign) {
  for (int i = 0; i < BUF_KINDS; i++) {
    for (int k = 0; k < BUF_KINDS; k++) {
      if (meet(s, before->writes[i], after->writes[k], foreign) ||
          meet(s, before->writes[i], after->reads[k], foreign) ||
          meet(s, before->reads[i], after->writes[k], foreign))
        return true;
    }
  }
  return false;
}

static bool roots_meet(uint64_t x, uint64_t y) { return x && y && ((x & y) || ((x | y) & ROOTS_ANY)); }

static bool global_clash(const Pending *before, const Pending *after, bool release) {
  for (int i = 0; i < WHO; i++) {
    for (int k = 0; k < WHO; k++) {
      if (i == FIRST && k == FIRST) continue;
      if (roots_meet(before->global_writes[i], after->global_writes[k]) ||
          roots_meet(before->global_writes[i], after->global_reads[k]) ||
          roots_meet(before->global_reads[i], after->global_writes[k]))
        return true;
    }
  }
  if (before->acquired && (after->global_reads[EVERYONE] || after->global_writes[EVERYONE])) return true;
  return release && (before->global_reads[EVERYONE] || before->global_writes[EVERYONE]);
}

// ---- the walk -------------------------------------------------------------------------------------------------------------------------
static bool is_made(const IrOp *op) { return op->kind == OP_barrier && ir_attr_i(op, ATTR_made); }

static void walk(Sync *s, IrBlock *b, Pending *p, int who);

static void turn_on(Sync *s, const IrOp *op) {
  if (map_getp(&s->on, op)) return;
  map_setp(&s->on, op, (void *)op);
  s->changed = true;
}

static void insert_before(Sync *s, IrOp *op, Pending *p) {
  IrBuilder b = ir_builder_before(op);
  b.loc = op->loc;
  IrOp *barrier = ir_build(&b, OP_barrier, 0, NULL, 0, NULL, 0);
  ir_set_attr_i(barrier, ATTR_made, 1);
  turn_on(s, barrier);
  settle(s, p);
}

static void control(Sync *s, IrOp *op, Pending *p, int who) {
  if (op->kind == OP_warp_partitions) {
    Pending *all = copy(s, p);
    bool release = false;
    touch_deep(s, op, EVERYONE, all, &release);
    for (uint32_t r = 0; r < op->nregions; r++) walk(s, op->regions[r], copy(s, p), EVERYONE);
    join(s, p, all);
    return;
  }
  if (op->kind == OP_for || op->kind == OP_while) {
    Pending *head = copy(s, p);
    do {
      Pending *turn = copy(s, head);
      for (uint32_t r = 0; r < op->nregions; r++) {
        walk(s, op->regions[r], turn, who);
        if (op->kind == OP_while && r == 0) { // it may end here
          settle(s, p);
          join(s, p, turn);
        }
      }
      if (!join(s, head, turn)) break;
    } while (true);
    if (op->kind == OP_for) join(s, p, head); // no turn at all, too
    return;
  }
  Pending *out = pending_new(s);
  for (uint32_t r = 0; r < op->nregions; r++) {
    Pending *arm = copy(s, p);
    walk(s, op->regions[r], arm, r == 0 && is_first_only(op) ? FIRST : who);
    join(s, out, arm);
  }
  *p = *out;
}

static void completed(const Sync *s, Pending *p, BufAsync kind, bool all) {
  add(p->reads[BUF_NOW], p->reads[kind], s->words);
  add(p->writes[BUF_NOW], p->writes[kind], s->words);
  if (!all) return;
  memset(p->reads[kind], 0, s->words * sizeof(uint64_t));
  memset(p->writes[kind], 0, s->words * sizeof(uint64_t));
}

static void walk(Sync *s, IrBlock *b, Pending *p, int who) {
  bool parted = false; // no barrier may be put here
  for (const IrOp *o = b->owner; o && !parted; o = o->parent->owner) parted = buffers_parts_threads(o);
  PASS_EACH_OP(b, op) {
    if (is_made(op)) {
      bool release = false;
      Pending *next = pending_new(s);
      if (map_getp(&s->on, op) || !ahead(s, op->next, next, &release) || buffers_clash(s, p, next, false) ||
          global_clash(p, next, release)) {
        turn_on(s, op);
        settle(s, p);
      }
      continue;
    }
    if (is_barrier(op)) {
      settle(s, p);
      continue;
    }
    if (!parted && (!op->nregions || buffers_parts_threads(op) || op->kind == OP_warp_partitions)) {
      bool release = false;
      Pending *does = pending_new(s);
      touch_deep(s, op, who, does, &release);
      if (buffers_clash(s, p, does, true)) insert_before(s, op, p);
    }
    if (op->nregions) {
      control(s, op, p, who);
      continue;
    }
    bool release = false;
    touch(s, op, who, p, &release);
    if (op->kind == OP_copy_wait) completed(s, p, BUF_COPIES, !ir_attr_i(op, ATTR_pending));
    if (op->kind == OP_wgmma_wait) completed(s, p, BUF_PRODUCTS, !ir_attr_i(op, ATTR_pending));
  }
}

static void find_others(Sync *s) {
  s->others = arena_array(s->arena, uint64_t *, s->b->n + 1);
  for (uint32_t i = 0; i < s->b->n; i++) {
    s->others[i] = arena_array(s->arena, uint64_t, s->words);
    const IrOp *x = s->b->allocs.data[i];
    const int64_t at = ir_attr_i(x, ATTR_offset), end = at + buffers_bytes(x);
    for (uint32_t k = 0; k < s->b->n; k++) {
      const IrOp *y = s->b->allocs.data[k];
      if (k == i || !ir_attr(x, ATTR_offset) || !ir_attr(y, ATTR_offset)) continue;
      const int64_t from = ir_attr_i(y, ATTR_offset);
      if (from < end && at < from + buffers_bytes(y)) s->others[i][k / 64] |= 1ull << k % 64;
    }
  }
}

static void finish(Sync *s, IrBlock *b, bool in_part) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->nregions; r++)
      finish(s, op->regions[r], in_part || op->kind == OP_warp_partitions);
    if (!is_made(op)) continue;
    if (!map_getp(&s->on, op)) {
      s->dropped++;
      ir_erase(op);
      continue;
    }
    s->kept++;
    if (s->pass->m->num_warps > 1 || in_part) continue;
    IrBuilder w = ir_builder_before(op);
    w.loc = op->loc;
    ir_build(&w, OP_warp_barrier, 0, NULL, 0, NULL, 0);
    ir_erase(op);
  }
}

Status pass_sync(Pass *pass) {
  PASS_EACH_FUNC(pass, f) {
    Sync s = {.pass = pass, .arena = pass->scratch, .f = f};
    s.b = buffers_run(f, s.arena);
    s.roots = pass_roots_run(f, s.arena);
    s.words = s.b->words;
    map_init(&s.on, s.arena);
    find_others(&s);
    walk(&s, f->body, pending_new(&s), EVERYONE);
    finish(&s, f->body, false);
    if (s.kept + s.dropped)
      pass_remark(pass, f->loc, "%u barrier%s between threads' accesses; %u more were not needed", s.kept,
                  s.kept == 1 ? "" : "s", s.dropped);
  }
  return ST_OK;
}
