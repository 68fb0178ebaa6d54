// alloc: places shared memory in the lowered stage: each mem_alloc gets its offset, and those that live at different times may have the
// same bytes.
//
// needs:  every access to shared memory goes through values that come from mem_alloc (buffers.h; others may be any buffer).
// keeps:  everything else. breaks: the order of threads where bytes change hands: `sync` puts barriers there.
//
// A buffer lives from its first access to its last in the order of the text, and
//   - where it was made outside a loop that accesses it, for the whole loop: contents may go round;
//   - under control that parts threads for all of the control: no barrier could stand inside;
//   - that several partitions of warps access for as long as these run; what one alone does shares with no other's, since they run beside
//     each other, but in its own text like any other;
//   - what is written or read in the background, up to the wait that completes it; what engines access, for the whole function.
// Places are given greedily, largest first, each the lowest that is free for its whole life (best known of the simple rules for such
// problems, which are NP-hard). Small buffers live for ever while there is room: sharing them would save less than its barrier costs.
#include "pass/buffers.h"

#include <stdlib.h>

enum { SMALL = 1024, ALL_SMALL = 4096, ALIGN = 128, ALIGN_SWIZZLED = 1024 };

typedef struct Life {
  IrOp *alloc;
  const IrBlock *part; // the only partition of warps that accesses it
  bool parts;          // it is accessed elsewhere, too
  uint32_t from, to;   // points of the text
  int64_t bytes, align, offset;
} Life;

typedef struct Point { // of an op: before and after what is inside
  uint32_t begin, end;
} Point;

typedef struct Share {
  Pass *pass;
  Arena *arena;
  Buffers *b;
  Life *lives;
  Vec(Point) points; // by op: at (uintptr_t)op->aux
  Vec(IrOp *) waits; // that leave nothing in flight
  uint32_t now;
} Share;

static void number(Share *s, IrBlock *b) {
  PASS_EACH_OP(b, op) {
    const uint32_t at = s->points.len;
    op->aux = (void *)(uintptr_t)at;
    vec_push(s->arena, &s->points, ((Point){++s->now, 0}));
    if ((op->kind == OP_copy_wait || op->kind == OP_wgmma_wait) && !ir_attr_i(op, ATTR_pending))
      vec_push(s->arena, &s->waits, op);
    for (uint32_t r = 0; r < op->nregions; r++) number(s, op->regions[r]);
    s->points.data[at].end = ++s->now;
  }
}
static Point point(const Share *s, const IrOp *op) { return s->points.data[(uintptr_t)op->aux]; }

static void lives_at(Life *l, Point p) {
  if (p.begin < l->from) l->from = p.begin;
  if (p.end > l->to) l->to = p.end;
}

static bool is_within(const IrOp *op, const IrBlock *b) {
  for (; op; op = op->parent->owner) {
    if (op->parent == b) return true;
  }
  return false;
}

// The first wait behind op that is met whenever op was.
static const IrOp *completion(const Share *s, const IrOp *op, IrOpKind kind) {
  for (uint32_t i = 0; i < s->waits.len; i++) {
    const IrOp *w = s->waits.data[i];
    if (w->kind == kind && point(s, w).begin > point(s, op).begin && is_within(op, w->parent)) return w;
  }
  return NULL;
}

static void touch(Share *s, const IrOp *op, const BufAccess *x, Life *l) {
  lives_at(l, point(s, op));
  bool inside = true; // still below the block that made it
  for (const IrOp *o = op; o; o = o->parent->owner) {
    inside &= o->parent != l->alloc->parent;
    const IrOp *owner = o->parent->owner;
    if (!owner) break;
    const bool shared = owner->kind == OP_warp_partitions && l->parts;
    if ((inside && pass_is_loop(owner->kind)) || shared || buffers_parts_threads(owner))
      lives_at(l, point(s, owner));
  }
  if (x->async == BUF_NOW) return;
  const IrOp *w = x->async == BUF_COPIES     ? completion(s, op, OP_copy_wait)
                  : x->async == BUF_PRODUCTS ? completion(s, op, OP_wgmma_wait)
                                             : NULL;
  lives_at(l, w ? point(s, w) : (Point){0, UINT32_MAX});
}

// The partition that an access belongs to, the outermost one; NULL: none.
static const IrBlock *part_of(const IrOp *op) {
  const IrBlock *part = NULL;
  for (const IrBlock *b = op->parent; b->owner; b = b->owner->parent) {
    if (b->owner->kind == OP_warp_partitions) part = b;
  }
  return part;
}

static void note_part(Share *s, const IrOp *op, const BufAccess *x, Life *l) {
  (void)s;
  (void)x;
  const IrBlock *part = part_of(op);
  l->parts |= !part || (l->part && l->part != part);
  l->part = part;
}

typedef struct Visit {
  Share *s;
  void (*each)(Share *s, const IrOp *op, const BufAccess *x, Life *l);
} Visit;
static bool visit(IrOp *op, void *user) {
  const Visit *v = user;
  Share *s = v->s;
  BufAccess x = {.which = arena_array(s->arena, uint64_t, s->b->words)};
  if (!buffers_access(s->b, op, &x)) return true;
  for (uint32_t i = 0; i < s->b->n; i++) {
    if (buffers_has(x.which, i) || buffers_has(x.which, s->b->n)) v->each(s, op, &x, &s->lives[i]);
  }
  return true;
}

static int larger(const void *x, const void *y) {
  const Life *a = *(Life *const *)x, *b = *(Life *const *)y;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return a < b ? -1 : a > b;
}
static int lower(const void *x, const void *y) {
  const Life *a = *(Life *const *)x, *b = *(Life *const *)y;
  return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static bool live_together(const Life *x, const Life *y) {
  if (!x->parts && !y->parts && x->part && y->part && x->part != y->part) return true;
  return x->from <= y->to && y->from <= x->to;
}

static int64_t place(Share *s, Life **order, uint32_t n) {
  Life **met = arena_array(s->arena, Life *, n + 1);
  int64_t end = 0;
  for (uint32_t i = 0; i < n; i++) {
    Life *l = order[i];
    uint32_t nmet = 0;
    for (uint32_t k = 0; k < i; k++) {
      if (live_together(order[k], l)) met[nmet++] = order[k];
    }
    qsort(met, nmet, sizeof *met, lower);
    int64_t at = 0;
    for (uint32_t k = 0; k < nmet && at + l->bytes > met[k]->offset; k++) {
      const int64_t behind = met[k]->offset + met[k]->bytes;
      if (behind > at) at = (int64_t)bits_round_up((uint64_t)behind, (uint64_t)l->align);
    }
    l->offset = at;
    if (at + l->bytes > end) end = at + l->bytes;
  }
  return end;
}

static void share_func(Share *s, IrFunc *f) {
  s->b = buffers_run(f, s->arena);
  const uint32_t n = s->b->n;
  if (!n) return;
  s->points.len = s->waits.len = 0;
  s->now = 0;
  number(s, f->body);
  s->lives = arena_array(s->arena, Life, n);
  Life **order = arena_array(s->arena, Life *, n);
  int64_t apart = 0;
  for (uint32_t i = 0; i < n; i++) {
    Life *l = order[i] = &s->lives[i];
    l->alloc = s->b->allocs.data[i];
    l->from = UINT32_MAX;
    l->bytes = buffers_bytes(l->alloc);
    l->align = l->alloc->results[0].type->layout ? ALIGN_SWIZZLED : ALIGN;
    apart += l->bytes;
  }
  Visit parts = {s, note_part}, lives = {s, touch};
  ir_walk(f->body, visit, &parts);
  ir_walk(f->body, visit, &lives);
  int64_t small = 0;
  for (uint32_t i = 0; i < n; i++) {
    Life *l = &s->lives[i];
    if (l->from > l->to) l->from = l->to = 0; // never accessed
    const int64_t room = (int64_t)bits_round_up((uint64_t)l->bytes, ALIGN);
    if (l->bytes > SMALL || small + room > ALL_SMALL) continue;
    small += room;
    lives_at(l, (Point){0, UINT32_MAX});
  }
  pass_clear_marks(f->body);
  qsort(order, n, sizeof *order, larger);
  const int64_t end = place(s, order, n);
  for (uint32_t i = 0; i < n; i++) ir_set_attr_i(s->lives[i].alloc, ATTR_offset, s->lives[i].offset);
  if (end < apart)
    pass_remark(s->pass, f->loc, "%u buffers of shared memory share %lld bytes; apart they would take %lld",
                n, (long long)end, (long long)apart);
}

Status pass_alloc(Pass *pass) {
  Share s = {.pass = pass, .arena = pass->scratch};
  PASS_EACH_FUNC(pass, f) share_func(&s, f);
  return ST_OK;
}
