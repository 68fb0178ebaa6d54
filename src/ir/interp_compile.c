// interp_compile: an IrFunc as flat instructions over value slots.
//
// Calls are inlined, so one Code has no frames: every value has a fixed place (Ref). Slots are given back after a value's
// last use and used again. Code is compiled for one of four kinds of agent:
//   BLOCK  all threads of the block or partition at once; thread scalars are arrays of an element a thread
//   WARP   one warp of a span, under a lane mask; control that depends on thread values changes the mask
//   FIBER  one warp of a warp_for that runs them at the same time; tiles lie in an area of its own
//   VEC    a combine region on up to 64 independent pairs: scalars are arrays, control changes the mask
// A span is a run of ops in one block, from the first to the last whose threads may part or wait; all between must be
// executable by single warps (no tile, no op that happens once a program).
// What several agents share must not be used again by values of another shape: thread arrays go back to slots of their
// own element size and thread count, and what a partition gives back waits until all partitions are compiled.
#include "ir/interp_compile.h"

#include <string.h>

// ---- tiles -------------------------------------------------------------------------------------------------------------------------
static int64_t row_major(const IrType *t, int64_t *strides) {
  int64_t s = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    strides[i] = s;
    s *= t->shape[i];
  }
  return s;
}

static void nd(Comp *c, const IrOp *op, Ref r, Ref a, int rank, const int64_t *shape, const int64_t *rs,
               const int64_t *as) {
  Ins *i = comp_emit(c, op, x_nd_copy);
  i->r = r;
  i->a = a;
  int64_t n = 1;
  for (int d = 0; d < rank; d++) n *= shape[d];
  i->n = (uint32_t)n;
  i->extra = interp_nd(c->w, rank, shape, rs, as);
}

static void compile_shape(Comp *c, const IrOp *op) {
  const IrValue *v = &op->results[0], *src = ir_operand(op, 0);
  const Val a = *comp_val_of(c, src);
  const IrType *t = v->type, *s = src->type;
  int64_t shape[IR_MAX_RANK], rs[IR_MAX_RANK], as[IR_MAX_RANK], ss[IR_MAX_RANK];
  if (!a.ref.stride && op->kind != OP_split) {
    comp_alias(c, v, a);
    return;
  }
  row_major(t, rs);
  row_major(s, ss);
  switch (op->kind) {
  case OP_broadcast:
    if (t->rank != s->rank) comp_refuse(c, op, "a broadcast to another rank");
    for (int d = 0; d < t->rank; d++) {
      shape[d] = t->shape[d];
      as[d] = s->shape[d] == 1 ? 0 : ss[d];
    }
    if (ir_type_elems(t) == ir_type_elems(s)) {
      comp_alias(c, v, a);
      return;
    }
    nd(c, op, comp_define(c, v, false), a.ref, t->rank, shape, rs, as);
    return;
  case OP_trans: {
    const IrAttr *perm = ir_attr(op, ATTR_perm);
    if (!perm || (int)perm->ints.n != t->rank || t->rank != s->rank)
      comp_refuse(c, op, "a trans whose perm does not fit");
    int64_t last = -1;
    bool moves = false;
    for (int d = 0; d < t->rank; d++) {
      const int64_t p = perm->ints.v[d];
      if (p < 0 || p >= s->rank) comp_refuse(c, op, "a trans whose perm does not fit");
      shape[d] = t->shape[d];
      as[d] = ss[p];
      if (t->shape[d] == 1) continue;
      moves |= p < last;
      last = p;
    }
    if (!moves) {
      comp_alias(c, v, a);
      return;
    }
    nd(c, op, comp_define(c, v, false), a.ref, t->rank, shape, rs, as);
    return;
  }
  default: comp_alias(c, v, a); // expand_dims, reshape: row-major order stays
  }
}

static void compile_pair(Comp *c, const IrOp *op) { // join, cat, split
  Ins *i;
  switch (op->kind) {
  case OP_join: {
    const Ref r = comp_define(c, &op->results[0], false);
    i = comp_emit3(c, op, x_join_tiles);
    i->r = r;
    i->n = (uint32_t)ir_type_elems(ir_operand(op, 0)->type);
    return;
  }
  case OP_cat: {
    const Ref r = comp_define(c, &op->results[0], false);
    i = comp_emit3(c, op, x_cat);
    i->r = r;
    i->n = (uint32_t)ir_type_elems(ir_operand(op, 0)->type);
    return;
  }
  default: {
    const Val a = *comp_val_of(c, ir_operand(op, 0));
    if (!a.ref.stride) {
      comp_alias(c, &op->results[0], a);
      comp_alias(c, &op->results[1], a);
      return;
    }
    const Ref x = comp_define(c, &op->results[0], false), y = comp_define(c, &op->results[1], false);
    i = comp_emit3(c, op, x_split_tiles);
    i->r = x;
    i->b = y;
    i->n = (uint32_t)ir_type_elems(op->results[0].type);
  }
  }
}

static bool is_arg(const IrBlock *b, const IrValue *v, uint32_t i) {
  return v && b->args.len > i && b->args.data[i] == v;
}

static void compile_reduce(Comp *c, const IrOp *op) {
  const IrBlock *body = op->nregions ? op->regions[0] : NULL;
  const uint32_t n = op->noperands;
  if (!body || !n || body->args.len != 2 * n || op->nresults != n || !comp_is_tile(ir_operand(op, 0)))
    comp_refuse(c, op, "a combine region that does not fit");
  const IrType *t = ir_operand(op, 0)->type;
  const int64_t axis = ir_attr_i(op, ATTR_axis);
  if (axis < 0 || axis >= t->rank) comp_refuse(c, op, "an axis outside the tile");
  ReduceExtra *x = arena_new(&c->w->arena, ReduceExtra);
  *x = (ReduceExtra){
      .count = n, .outer = 1, .k = t->shape[axis], .inner = 1, .reverse = ir_attr_i(op, ATTR_reverse)};
  for (int d = 0; d < axis; d++) x->outer *= t->shape[d];
  for (int d = (int)axis + 1; d < t->rank; d++) x->inner *= t->shape[d];
  Ref *refs = arena_array(&c->w->arena, Ref, 5 * n);
  x->in = refs, x->out = refs + n, x->x = refs + 2 * n, x->y = refs + 3 * n, x->yielded = refs + 4 * n;
  for (uint32_t k = 0; k < n; k++) {
    x->in[k] = comp_use(c, op, k);
    x->out[k] = comp_define(c, &op->results[k], false);
  }
  const uint32_t pc = comp_here(c);
  Ins *i = comp_emit(c, op, op->kind == OP_reduce ? x_reduce : x_scan);
  i->extra = x;
  i->n = (uint32_t)ir_type_elems(t);
  const Mode mode = c->mode;
  const bool under = c->thread_control;
  c->mode = MODE_VEC;
  c->thread_control = false;
  Val *xs = arena_array(c->arena, Val, 2 * n);
  for (uint32_t k = 0; k < 2 * n; k++) {
    xs[k] = comp_place(c, body->args.data[k]->type, false);
    *comp_val_of(c, body->args.data[k]) = (Val){xs[k].ref, -1};
    (k < n ? x->x : x->y)[k % n] = xs[k].ref;
  }
  x->body = comp_here(c);
  const Dead dead = comp_block(c, body);
  const IrOp *term = comp_terminator(body);
  if (term->noperands != n) comp_refuse(c, op, "a combine region that does not fit");
  for (uint32_t k = 0; k < n; k++) x->yielded[k] = comp_use(c, term, k);
  comp_emit(c, op, x_body_end);
  comp_bury(c, dead);
  for (uint32_t k = 0; k < 2 * n; k++) comp_slot_release(c, xs[k].slot);
  c->mode = mode;
  c->thread_control = under;
  comp_at(c, pc)->target = comp_here(c);
  const IrOp *only = body->first;
  if (n == 1 && only && only->next == term && only->noperands == 2 && only->nresults == 1 &&
      ir_operand(term, 0) == &only->results[0] && (ir_ops[only->kind].traits & TRAIT_SAME)) {
    const bool straight = is_arg(body, ir_operand(only, 0), 0) && is_arg(body, ir_operand(only, 1), 1);
    const bool swapped = is_arg(body, ir_operand(only, 0), 1) && is_arg(body, ir_operand(only, 1), 0);
    Picked p;
    if ((straight || swapped) && interp_pick(only, &p) && !p.narrow) {
      x->fast = p.fn;
      x->fast_swapped = swapped;
    }
  }
}

static void compile_dot(Comp *c, const IrOp *op) {
  const IrType *a = ir_operand(op, 0)->type, *b = ir_operand(op, 1)->type, *t = op->results[0].type;
  const int r = t->rank;
  if (r < 2 || a->rank != r || b->rank != r) comp_refuse(c, op, "a dot of unfitting ranks");
  DotExtra *x = arena_new(&c->w->arena, DotExtra);
  *x = (DotExtra){1, t->shape[r - 2], t->shape[r - 1], a->shape[r - 1], a->dtype, b->dtype, t->dtype};
  for (int d = 0; d < r - 2; d++) x->batch *= t->shape[d];
  if (a->shape[r - 2] != x->m || b->shape[r - 1] != x->n || b->shape[r - 2] != x->k)
    comp_refuse(c, op, "a dot of unfitting shapes");
  const Ref res = comp_define(c, &op->results[0], false);
  Ins *i = comp_emit3(c, op, x_dot);
  i->r = res;
  i->n = (uint32_t)ir_type_elems(t);
  i->extra = x;
}

static void compile_dot_async(Comp *c, const IrOp *op) {
  const IrType *a = ir_operand(op, 0)->type, *b = ir_operand(op, 1)->type, *t = op->results[0].type;
  const int at = ir_attr_i(op, ATTR_a_trans) ? 1 : 0;
  DotExtra *x = arena_new(&c->w->arena, DotExtra);
  *x = (DotExtra){1, t->shape[0], t->shape[1], a->shape[1 - at], a->dtype, b->dtype, t->dtype};
  const Ref res = comp_define(c, &op->results[0], false);
  Ins *i = comp_emit3(c, op, x_dot_async);
  i->r = res;
  i->n = (uint32_t)ir_type_elems(t);
  i->extra = x;
}

// ---- the rest ------------------------------------------------------------------------------------------------------------------------
static void compile_elem(Comp *c, const IrOp *op) {
  Picked p;
  if (!interp_pick(op, &p)) comp_refuse(c, op, "an operation on types that it does not know");
  bool uniform = true;
  for (uint32_t i = 0; i < op->noperands; i++) uniform &= !comp_use(c, op, i).stride;
  const Ref r = comp_define(c, &op->results[0], uniform);
  const bool rtz = op->kind == OP_fcast && ir_attr_i(op, ATTR_round) == ROUND_rtz;
  Ins *i = comp_emit3(c, op, rtz ? x_fcast_rtz : p.narrow ? x_elem_narrow : x_elem);
  i->r = r;
  i->fn = p.fn;
  i->dt = p.dt;
  i->rdt = p.rdt;
  i->n = comp_elems_of(&op->results[0], r);
}

static void compile_plain(Comp *c, const IrOp *op, Exec exec) { // up to three operands and one result
  Ref r = {0};
  if (op->nresults) r = comp_define(c, &op->results[0], false);
  Ins *i = comp_emit3(c, op, exec);
  i->r = r;
  comp_level(c, i, op);
  const IrValue *shaped = op->nresults ? &op->results[0] : ir_operand(op, 0);
  if (i->n && shaped && comp_is_tile(shaped)) i->n = (uint32_t)ir_type_elems(shaped->type);
}

static void compile_many(Comp *c, const IrOp *op, Exec exec) { // any operands, in extra
  for (uint32_t k = 0; k < op->nresults; k++) comp_define(c, &op->results[k], false);
  const Operands *o = comp_operands(c, op);
  Ins *i = comp_emit(c, op, exec);
  i->extra = o;
  if (op->nresults) i->r = comp_val_of(c, &op->results[0])->ref;
  comp_level(c, i, op);
}

static void compile_alloc(Comp *c, const IrOp *op) {
  const IrType *t = op->results[0].type;
  const size_t bytes =
      (size_t)ir_type_elems(t) * (size_t)ir_type_bytes(t) * (size_t)(t->stages ? t->stages : 1);
  Buf *b = arena_new(&c->w->arena, Buf);
  if ((c->m->stage == STAGE_placed || c->m->stage == STAGE_lowered) && ir_attr(op, ATTR_offset)) {
    const int64_t off = ir_attr_i(op, ATTR_offset);
    if (off < 0 || (size_t)off + bytes > c->code->arena_bytes)
      comp_refuse(c, op, "a buffer outside the arena");
    b->off = (uint32_t)(c->code->arena_off + (size_t)off);
  } else {
    b->off = (uint32_t)comp_heap_get(c, &c->ar, bits_round_up(bytes, ALIGN));
  }
  b->bytes = (uint32_t)bytes;
  b->op = op;
  vec_push(&c->w->arena, &c->code->bufs, b);
  const Ref r = comp_define(c, &op->results[0], false);
  Ins *i = comp_emit(c, op, x_mem_alloc);
  i->r = r;
  i->extra = b;
}

void comp_op(Comp *c, const IrOp *op) {
  switch (op->kind) {
  case OP_const: comp_define_const(c, &op->results[0], ir_attr_i(op, ATTR_value)); return;
  case OP_num_ranks: comp_define_const(c, &op->results[0], c->w->c->ranks); return;
  case OP_num_threads: comp_define_const(c, &op->results[0], c->threads); return;
  case OP_warp_size: comp_define_const(c, &op->results[0], c->code->lanes); return;
  case OP_arange: {
    const int64_t start = ir_attr_i(op, ATTR_start), n = ir_type_elems(op->results[0].type);
    int32_t *v = arena_array(c->arena, int32_t, n);
    for (int64_t k = 0; k < n; k++) v[k] = (int32_t)(start + k);
    *comp_val_of(c, &op->results[0]) = (Val){comp_constant(c, v, (size_t)n * 4, 4, n > 1), -1};
    return;
  }
  case OP_program_id: compile_plain(c, op, x_program_id); return;
  case OP_num_programs: compile_plain(c, op, x_num_programs); return;
  case OP_rank: compile_plain(c, op, x_rank); return;
  case OP_tid: compile_plain(c, op, x_tid); return;
  case OP_timer: compile_plain(c, op, x_timer); return;
  case OP_smid: compile_plain(c, op, x_smid); return;
  case OP_hint:
  case OP_consume:
  case OP_to_thread:
  case OP_splat:
  case OP_bitcast:
  case OP_ptr2int:
  case OP_int2ptr: {
    const Val v = *comp_val_of(c, ir_operand(op, 0));
    comp_alias(c, &op->results[0], v);
    return;
  }
  case OP_unsplat: {
    Val v = *comp_val_of(c, ir_operand(op, 0));
    v.ref.stride = 0;
    comp_alias(c, &op->results[0], v);
    return;
  }
  case OP_expand_dims:
  case OP_broadcast:
  case OP_reshape:
  case OP_trans: compile_shape(c, op); return;
  case OP_join:
  case OP_split:
  case OP_cat: compile_pair(c, op); return;
  case OP_ramp: compile_plain(c, op, x_ramp); return;
  case OP_gather: {
    const IrType *a = ir_operand(op, 0)->type, *t = op->results[0].type;
    const int64_t axis = ir_attr_i(op, ATTR_axis);
    if (axis < 0 || axis >= t->rank || a->rank != t->rank) comp_refuse(c, op, "an axis outside the tile");
    AxisExtra *x = arena_new(&c->w->arena, AxisExtra);
    *x = (AxisExtra){1, t->shape[axis], 1, a->shape[axis]};
    for (int d = 0; d < axis; d++) x->outer *= t->shape[d];
    for (int d = (int)axis + 1; d < t->rank; d++) x->inner *= t->shape[d];
    compile_plain(c, op, x_gather);
    vec_last(&c->code->ins).extra = x;
    return;
  }
  case OP_histogram: {
    const uint32_t n = (uint32_t)ir_type_elems(ir_operand(op, 0)->type);
    compile_plain(c, op, x_histogram);
    vec_last(&c->code->ins).target = n;
    return;
  }
  case OP_reduce:
  case OP_scan: compile_reduce(c, op); return;
  case OP_dot: compile_dot(c, op); return;
  case OP_vec_get: compile_plain(c, op, x_vec_get); return;
  case OP_vec_set: compile_plain(c, op, x_vec_set); return;
  case OP_from_thread: compile_plain(c, op, x_from_thread); return;
  case OP_assume: compile_plain(c, op, x_assume); return;
  case OP_assert: compile_plain(c, op, x_assert); return;
  case OP_print: compile_many(c, op, x_print); return;
  case OP_shfl: compile_plain(c, op, x_shfl); return;
  case OP_ballot: compile_plain(c, op, x_ballot); return;
  case OP_active_mask: compile_plain(c, op, x_active_mask); return;
  case OP_load:
  case OP_store:
    compile_plain(c, op, op->kind == OP_load ? x_load : x_store);
    if (c->w->check && interp_is_data(c->w, c->m, op)) vec_last(&c->code->ins).flags |= INS_DATA;
    return;
  case OP_atomic_rmw: compile_plain(c, op, x_rmw); return;
  case OP_atomic_cas: compile_plain(c, op, x_cas); return;
  case OP_load_vec: compile_plain(c, op, x_load_vec); return;
  case OP_prefetch: return; // changes nothing that a program can see
  case OP_store_vec:
    compile_plain(c, op, x_store_vec);
    vec_last(&c->code->ins).n = (uint32_t)ir_type_elems(ir_operand(op, 1)->type);
    return;
  case OP_make_desc: compile_many(c, op, x_make_desc); return;
  case OP_desc_load: compile_many(c, op, x_desc_load); return;
  case OP_desc_store: compile_many(c, op, x_desc_store); return;
  case OP_desc_rmw: compile_many(c, op, x_desc_rmw); return;
  case OP_desc_base: compile_plain(c, op, x_desc_base); return;
  case OP_desc_dim:
  case OP_desc_stride: compile_plain(c, op, x_desc_part); return;
  case OP_mem_alloc: compile_alloc(c, op); return;
  case OP_mem_gather: compile_many(c, op, x_mem_gather); return;
  case OP_mem_scatter: compile_many(c, op, x_mem_scatter); return;
  case OP_mem_view: compile_plain(c, op, x_mem_view); return;
  case OP_mem_load: compile_plain(c, op, x_mem_load); return;
  case OP_mem_store:
    compile_plain(c, op, x_mem_store);
    vec_last(&c->code->ins).n = (uint32_t)ir_type_elems(ir_operand(op, 1)->type);
    return;
  case OP_mem_get: compile_many(c, op, x_mem_get); return;
  case OP_mem_set: compile_many(c, op, x_mem_set); return;
  case OP_dot_mem: compile_plain(c, op, x_dot_mem); return;
  case OP_relayout: comp_alias(c, &op->results[0], *comp_val_of(c, ir_operand(op, 0))); return;
  case OP_mem_ptr: compile_plain(c, op, x_mem_ptr); return;
  case OP_load_pack: compile_many(c, op, x_load_pack); return;
  case OP_store_pack: compile_many(c, op, x_store_pack); return;
  case OP_add_pack: compile_many(c, op, x_add_pack); return;
  case OP_ldmatrix: compile_many(c, op, x_ldmatrix); return;
  case OP_stmatrix: compile_many(c, op, x_stmatrix); return;
  case OP_copy_pack: compile_plain(c, op, x_copy_pack); return;
  case OP_copy_commit:
  case OP_copy_wait: return; // x_copy_pack does not wait
  case OP_mma: compile_many(c, op, x_mma); return;
  case OP_dot_async: compile_dot_async(c, op); return;
  case OP_dot_wait: compile_many(c, op, x_dot_wait); return;
  case OP_wgmma: compile_many(c, op, x_wgmma); return;
  case OP_strip_store: compile_many(c, op, x_strip_store); return;
  case OP_strips_end: // x_strip_store does not wait
  case OP_turn_begin:
  case OP_turn_end: return; // all groups are at the same op
  case OP_wgmma_wait: compile_many(c, op, x_wgmma_wait); return;
  case OP_barrier: comp_emit(c, op, x_barrier); return;
  case OP_warp_barrier: comp_emit(c, op, x_warp_barrier); return;
  case OP_fence: compile_plain(c, op, x_fence); return;
  case OP_symm_at: compile_plain(c, op, x_symm_at); return;
  case OP_wait: compile_plain(c, op, x_wait); return;
  case OP_signal: compile_plain(c, op, x_signal); return;
  case OP_release: compile_plain(c, op, x_release); return;
  case OP_acquire: compile_plain(c, op, x_acquire); return;
  case OP_put:
  case OP_get: compile_many(c, op, x_put); return;
  case OP_put_signal: compile_many(c, op, x_put_signal); return;
  case OP_put_fence: compile_plain(c, op, x_put_fence); return;
  case OP_put_quiet: compile_plain(c, op, x_put_quiet); return;
  case OP_team_barrier: compile_plain(c, op, x_team_barrier); return;
  case OP_copy_async: compile_many(c, op, x_copy_async); return;
  case OP_async_wait: compile_many(c, op, x_async_wait); return;
  case OP_mbarrier_alloc: {
    const IrType *t = op->results[0].type;
    compile_plain(c, op, x_mbarrier_alloc);
    vec_last(&c->code->ins).target = c->code->mbarriers;
    c->code->mbarriers += (uint32_t)(t->stages ? t->stages : 1);
    return;
  }
  case OP_mbarrier_expect: compile_plain(c, op, x_mbarrier_expect); return;
  case OP_mbarrier_arrive: compile_plain(c, op, x_mbarrier_arrive); return;
  case OP_mbarrier_wait: compile_plain(c, op, x_mbarrier_wait); return;
  case OP_desc_load_async: compile_many(c, op, x_desc_load_async); return;
  case OP_desc_store_async: compile_many(c, op, x_desc_store_async); return;
  case OP_if: comp_if(c, op); return;
  case OP_for: comp_for(c, op); return;
  case OP_while: comp_while(c, op); return;
  case OP_switch: comp_switch(c, op); return;
  case OP_warp_partitions: comp_partitions(c, op); return;
  case OP_warp_for: comp_warp_for(c, op); return;
  case OP_call: comp_call(c, op); return;
  case OP_inline_asm: comp_refuse(c, op, "inline assembly cannot be interpreted");
  default: break;
  }
  if (ir_ops[op->kind].traits & TRAIT_ELEMENTWISE) {
    compile_elem(c, op);
    return;
  }
  comp_refuse(c, op, "an operation that cannot be interpreted");
}

static bool arena_end(IrOp *op, void *user) {
  Comp *c = user;
  if (op->kind != OP_mem_alloc || !ir_attr(op, ATTR_offset)) return true;
  const IrType *t = op->results[0].type;
  const size_t end = (size_t)ir_attr_i(op, ATTR_offset) + (size_t)ir_type_elems(t) *
                                                              (size_t)ir_type_bytes(t) *
                                                              (size_t)(t->stages ? t->stages : 1);
  if (end > c->code->arena_bytes && end <= COMP_MAX_AREA) c->code->arena_bytes = end;
  return true;
}

const char *interp_compile(World *w, const IrFunc *f, Code **out, Loc *where) {
  Comp *c = arena_new(&w->arena, Comp);
  c->w = w;
  c->arena = &w->arena; // so that an escape frees it; compiles are few
  c->m = f->module;
  c->code = arena_new(&w->arena, Code);
  c->code->func = f;
  c->code->nwarps = (uint32_t)(c->m->num_warps > 0 ? c->m->num_warps : 4) + (uint32_t)c->m->extra_warps;
  c->code->lanes = (uint32_t)(c->m->lanes == 64 ? 64 : 32);
  c->threads = c->code->nwarps * c->code->lanes;
  c->tiles = SP_AR;
  c->mode = MODE_BLOCK;
  map_init(&c->order, c->arena);
  map_init(&c->numbered, c->arena);
  if (setjmp(c->fail)) {
    *where = c->where.line ? c->where : f->loc;
    return c->error;
  }
  if (!f->body) comp_refuse(c, NULL, "a function without body");
  ir_walk(f->body, comp_number_op, c);
  map_set(&c->numbered, (uint64_t)(uintptr_t)f, 1);
  if (c->m->stage == STAGE_placed || c->m->stage == STAGE_lowered) {
    ir_walk(f->body, arena_end, c);
    c->code->arena_off = comp_heap_get(c, &c->ar, bits_round_up(c->code->arena_bytes, ALIGN));
  }
  Frame *fr = arena_new(c->arena, Frame);
  *fr = (Frame){NULL, f, arena_array(c->arena, Val, f->next_id + 1)};
  c->frame = fr;
  c->code->params = arena_array(&w->arena, Ref, f->body->args.len + 1);
  for (uint32_t i = 0; i < f->body->args.len; i++) {
    const IrValue *v = f->body->args.data[i];
    c->code->params[i] = comp_define(c, v, true);
  }
  comp_block(c, f->body);
  comp_emit(c, comp_terminator(f->body), x_ret);
  c->code->consts = c->consts.data;
  c->code->const_bytes = c->consts.len;
  c->code->ar_bytes = bits_round_up(c->ar.top, ALIGN) + ALIGN;
  c->code->lo_bytes = bits_round_up(c->lo.top, ALIGN) + ALIGN;
  c->code->sc_bytes = bits_round_up(c->code->sc_bytes, ALIGN) + ALIGN;
  *out = c->code;
  return NULL;
}
