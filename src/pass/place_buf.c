// place_buf: buffers and their places in the arena.
//
// A buffer lives from its first to its last use in emission order; one that is used inside a loop and was there before
// it lives to the loop's end. Two that live at different times may share bytes.
#include "pass/place.h"

#include <stdlib.h>

void place_buf_touch(Place *p, PlaceBuf *b) {
  if (b->first < 0) {
    b->first = p->clock;
    b->last = p->clock;
  }
  if (p->clock > b->last) b->last = p->clock;
}

IrValue *place_buf_mem(Place *p, PlaceBuf *b) {
  place_buf_touch(p, b);
  if (b->mem) return b->mem;
  IrBuilder at = ir_builder_before(p->anchor);
  at.loc = b->loc;
  IrOp *op = ir_build(&at, OP_mem_alloc, 0, NULL, 1, &b->type, 0);
  b->mem = ir_result(op, 0);
  return b->mem;
}

void place_bufs_loop(Place *p, int start) {
  for (uint32_t i = 0; i < p->bufs.len; i++) {
    PlaceBuf *b = p->bufs.data[i];
    if (b->first >= 0 && b->first <= start && b->last > start && b->last < p->clock) b->last = p->clock;
  }
}

static int larger_first(const void *x, const void *y) {
  const PlaceBuf *a = *(PlaceBuf *const *)x, *b = *(PlaceBuf *const *)y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->id - b->id;
}
static int lower_first(const void *x, const void *y) {
  const PlaceBuf *a = *(PlaceBuf *const *)x, *b = *(PlaceBuf *const *)y;
  return a->offset != b->offset ? (a->offset < b->offset ? -1 : 1) : a->id - b->id;
}

void place_bufs_pack(Place *p) {
  PlaceBuf **todo = arena_array(p->arena, PlaceBuf *, p->bufs.len + 1);
  PlaceBuf **near = arena_array(p->arena, PlaceBuf *, p->bufs.len + 1);
  uint32_t n = 0;
  int64_t total = 0;
  for (uint32_t i = 0; i < p->bufs.len; i++) {
    if (p->bufs.data[i]->mem) todo[n++] = p->bufs.data[i];
  }
  qsort(todo, n, sizeof *todo, larger_first);
  for (uint32_t i = 0; i < n; i++) {
    PlaceBuf *b = todo[i];
    uint32_t m = 0;
    for (uint32_t j = 0; j < i; j++) {
      if (todo[j]->first <= b->last && b->first <= todo[j]->last) near[m++] = todo[j];
    }
    qsort(near, m, sizeof *near, lower_first);
    int64_t at = 0;
    for (uint32_t j = 0; j < m; j++) {
      if (near[j]->offset >= at + b->bytes) break;
      const int64_t end = (int64_t)bits_round_up((uint64_t)(near[j]->offset + near[j]->bytes), 64);
      if (end > at) at = end;
    }
    b->offset = at;
    ir_set_attr_i(b->mem->def, ATTR_offset, at);
    if (at + b->bytes > total) total = at + b->bytes;
  }
  total = (int64_t)bits_round_up((uint64_t)total, 64);
  for (uint32_t i = 0; i < n; i++) {
    const PlaceBuf *b = todo[i];
    pass_remark(p->pass, b->loc, "a buffer of %lld bytes: %s", (long long)b->bytes, b->why);
  }
  pass_remark(p->pass, p->old->loc, "kernel %s: %lld arena bytes in %u buffers", p->func->name->s,
              (long long)total, n);
  if (p->arena_limit && total > p->arena_limit) {
    place_fail(
        p, n ? todo[0]->loc : p->old->loc,
        "kernel %s needs %lld bytes of buffers for one instance and %lld are allowed; the largest holds %lld (%s)",
        p->func->name->s, (long long)total, (long long)p->arena_limit, n ? (long long)todo[0]->bytes : 0,
        n ? todo[0]->why : "");
  }
}
