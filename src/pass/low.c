// low: laid-out stage to lowered stage: what one thread does. See low.h for the parts.
//
// A tile becomes as many thread scalars as its layout has registers. The code is rewritten where it stands: each op on tiles is
// followed by what replaces it and dropped at the end; control that carries tiles is made anew around the same body.
#include "pass/low.h"

#include <stdio.h>
#include <string.h>

static void low_block(Low *l, IrBlock *b);
static void low_op(Low *l, IrOp *op);

void low_fail(Low *l, Loc loc, const char *fmt, ...) {
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  pass_error(l->pass, loc, "%s", text);
  escape_now(&l->fail, ST_COMPILE, "%s", text);
}

// ---- registers ----------------------------------------------------------------------------------------------------------------
IrValue **low_regs(Low *l, IrValue *tile) {
  IrValue **r = map_getp(&l->regs, tile);
  if (!r)
    low_fail(l, tile->def ? tile->def->loc : LOC_NONE, "a tile of type %s has no registers",
             ir_type_text(tile->type, l->arena));
  return r;
}
void low_set_regs(Low *l, IrValue *tile, IrValue **regs) { map_setp(&l->regs, tile, regs); }
IrValue **low_new_regs(Low *l, const IrLayout *layout) {
  return arena_array(l->arena, IrValue *, layout_regs(layout));
}

const IrType *low_elem(Low *l, const IrType *t) {
  return ir_type_with_level(l->ctx, ir_type_elem(l->ctx, t), LEVEL_thread);
}

uint32_t low_copies(const IrLayout *layout) { return layout_free(layout) & (layout_regs(layout) - 1); }

// A free register bit holds what some combination of lower bits holds: for bits of index 0, what the register without it does.
void low_fill_copies(const IrLayout *layout, IrValue **regs) {
  const uint32_t copies = low_copies(layout);
  for (uint32_t r = 0; r < layout_regs(layout); r++) {
    if (!(r & copies)) continue;
    const uint32_t index = layout_index(layout, r);
    IrLayout own = *layout;
    own.n[PLACE_LANE] = own.n[PLACE_WARP] = 0;
    uint32_t place = 0;
    layout_find(&own, index, &place);
    regs[r] = regs[place];
  }
}

// ---- short forms --------------------------------------------------------------------------------------------------------------
static const IrType *i32_thread(Low *l) { return ir_type_scalar(l->ctx, IR_i32, LEVEL_thread); }
IrValue *low_i32(Low *l, int64_t v) { return ir_const_i(&l->b, i32_thread(l), v); }
IrValue *low_bin(Low *l, IrOpKind k, IrValue *x, IrValue *y) { return ir_binary(&l->b, k, x, y); }
IrValue *low_and(Low *l, IrValue *x, IrValue *y) { return !x ? y : !y ? x : ir_binary(&l->b, OP_and, x, y); }
IrValue *low_thread(Low *l, IrValue *v) { return v ? ir_to_thread(&l->b, v) : NULL; }
IrValue *low_from_all(Low *l, IrValue *v, const IrType *t) {
  IrOp *op = ir_build(&l->b, OP_from_thread, 1, &v, 1, &t, 0);
  if (l->alike) ir_set_attr_i(op, ATTR_uniform, 1);
  return ir_result(op, 0);
}
void low_barrier(Low *l) {
  IrOp *op = ir_build(&l->b, OP_barrier, 0, NULL, 0, NULL, 0);
  ir_set_attr_i(op, ATTR_made, 1);
}

IrOp *low_if(Low *l, IrValue *cond, IrBuilder *inside) {
  IrOp *op = ir_build(&l->b, OP_if, 1, &cond, 0, NULL, 2);
  for (int r = 0; r < 2; r++) {
    IrBuilder end = ir_builder_at_end(op->regions[r]);
    end.loc = l->b.loc;
    IrOp *yield = ir_yield(&end, 0, NULL);
    if (r == 0) *inside = ir_builder_before(yield);
  }
  inside->loc = l->b.loc;
  return op;
}

void low_combine(Low *l, const IrBlock *region, uint32_t n, IrValue *const *x, IrValue *const *y,
                 IrValue **out) {
  Map values;
  map_init(&values, l->arena);
  for (uint32_t i = 0; i < n; i++) {
    map_setp(&values, region->args.data[i], x[i]);
    map_setp(&values, region->args.data[n + i], y[i]);
  }
  PASS_EACH_OP(region, op) {
    if (op->kind == OP_yield) {
      for (uint32_t i = 0; i < n; i++) {
        IrValue *v = ir_operand(op, i), *mapped = map_getp(&values, v);
        out[i] = mapped ? mapped : low_thread(l, v);
      }
      return;
    }
    if (op->nregions || !(ir_ops[op->kind].traits & (TRAIT_ELEMENTWISE | TRAIT_PURE)))
      low_fail(l, op->loc, "a combine function with control flow or memory is not supported on this target");
    IrValue **ops = arena_array(l->arena, IrValue *, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++) {
      IrValue *v = ir_operand(op, i), *mapped = v ? map_getp(&values, v) : NULL;
      ops[i] = mapped ? mapped : low_thread(l, v);
    }
    IrValue *r = pass_like(&l->b, op, op->noperands, ops,
                           ir_type_with_level(l->ctx, op->results[0].type, LEVEL_thread));
    map_setp(&values, ir_result(op, 0), r);
  }
}

// ---- indices ------------------------------------------------------------------------------------------------------------------
IrValue *low_base(Low *l, const IrType *tile) {
  const IrLayout *layout = tile->layout;
  IrValue *known = map_getp(&l->bases, layout);
  if (known) return known;
  const IrBuilder keep = l->b;
  l->b = ir_builder_after(l->warp->def); // the first op behind may be gone
  IrValue *sum = NULL;
  for (int d = PLACE_LANE; d <= PLACE_WARP; d++) {
    const uint32_t *at = &layout->at[layout_first(layout, (IrPlace)d)], n = layout->n[d];
    IrValue *src = d == PLACE_LANE ? l->lane : l->warp;
    for (uint32_t i = 0; i < n;) {
      uint32_t run = 1; // bits that stay neighbours
      while (i + run < n && bits_pow2(at[i]) && at[i + run] == at[i] << run) run++;
      if (!at[i]) {
        i++;
        continue;
      }
      IrValue *x = i ? low_bin(l, OP_shr_u, src, low_i32(l, i)) : src;
      if (i + run < n) x = low_bin(l, OP_and, x, low_i32(l, (1 << run) - 1));
      if (at[i] > 1) x = low_bin(l, OP_mul, x, low_i32(l, at[i]));
      sum = sum ? low_bin(l, OP_xor, sum, x) : x;
      i += run;
    }
  }
  if (!sum) sum = low_i32(l, 0);
  l->b = keep;
  map_setp(&l->bases, layout, sum);
  return sum;
}

IrValue *low_index(Low *l, const IrType *tile, uint32_t reg) {
  const IrLayout *layout = tile->layout;
  const uint32_t own = layout_index(layout, reg);
  IrValue *base = low_base(l, tile);
  if (!own) return base;
  uint32_t others = 0;
  for (uint32_t i = layout->n[PLACE_REG]; i < layout_bits(layout); i++) others |= layout->at[i];
  // What the thread's part leaves alone is added: an offset that the access itself can hold.
  if (own & others) base = low_bin(l, OP_xor, base, low_i32(l, own & others));
  return own & ~others ? low_bin(l, OP_add, base, low_i32(l, own & ~others)) : base;
}

IrValue *low_coord(Low *l, const IrType *tile, IrValue *index, int axis) {
  int64_t inner = 1;
  for (int i = axis + 1; i < tile->rank; i++) inner *= tile->shape[i];
  if (inner > 1) index = low_bin(l, OP_shr_u, index, low_i32(l, bits_log2((uint64_t)inner)));
  return axis ? low_bin(l, OP_and, index, low_i32(l, tile->shape[axis] - 1)) : index;
}

IrValue *low_holder(Low *l, const IrLayout *layout) {
  const uint32_t free = layout_free(layout) >> layout->n[PLACE_REG];
  if (!free) return NULL;
  IrValue *bits = low_bin(l, OP_and, l->tid, low_i32(l, free));
  return ir_cmp(&l->b, CMP_eq, bits, low_i32(l, 0));
}

// ---- elementwise and shape ops ------------------------------------------------------------------------------------------------
static void drop(Low *l, IrOp *op) { vec_push(l->arena, &l->dead, op); }

// Bits of register numbers along which v holds one value, as far as the axis analysis knows: those of a mask's runs.
static uint32_t registers_alike(Low *l, const IrValue *v) {
  const IrType *t = v->type;
  if (v->id >= l->nvalues) return 0;
  const PassAxis *x = pass_axis(l->axes, v);
  uint32_t runs = 0, low = 0, alike = 0; // runs: bits of indices
  for (int d = t->rank - 1; d >= 0; d--) {
    runs |= (uint32_t)(x->constancy[d] - 1) << low;
    low += t->shape[d] > 1 ? (uint32_t)bits_log2((uint64_t)t->shape[d]) : 0;
  }
  for (uint32_t i = 0; i < t->layout->n[PLACE_REG]; i++)
    if (!(t->layout->at[i] & ~runs)) alike |= 1u << i;
  return alike;
}

static void low_elementwise(Low *l, IrOp *op) {
  const IrType *t = op->results[0].type, *elem = low_elem(l, t);
  const uint32_t copies = low_copies(t->layout),
                 alike = t->dtype == IR_i1 ? registers_alike(l, ir_result(op, 0)) : 0;
  IrValue **out = low_new_regs(l, t->layout);
  IrValue **in = arena_array(l->arena, IrValue *, op->noperands + 1);
  for (uint32_t r = 0; r < layout_regs(t->layout); r++) {
    if (r & copies) continue;
    if (r & alike) {
      out[r] = out[r & ~alike];
      continue;
    }
    for (uint32_t i = 0; i < op->noperands; i++) {
      IrValue *v = ir_operand(op, i);
      in[i] = !v ? NULL : v->type->kind == IR_TILE ? low_regs(l, v)[r] : low_thread(l, v);
    }
    out[r] = pass_like(&l->b, op, op->noperands, in, elem);
    const IrAttrName hints[] = {ATTR_divisible, ATTR_contiguous, ATTR_constancy}; // of tiles: no longer true
    for (size_t k = 0; k < DT_COUNTOF(hints); k++) ir_del_attr(out[r]->def, hints[k]);
  }
  low_fill_copies(t->layout, out);
  low_set_regs(l, ir_result(op, 0), out);
}

static void low_source(Low *l, IrOp *op) { // const, splat, arange
  const IrType *t = op->results[0].type;
  IrValue **out = low_new_regs(l, t->layout), *same = NULL;
  const uint32_t copies = low_copies(t->layout);
  if (op->kind == OP_const)
    same = pass_const_bits(&l->b, low_elem(l, t), (uint64_t)ir_attr_i(op, ATTR_value));
  if (op->kind == OP_splat) same = low_thread(l, ir_operand(op, 0));
  for (uint32_t r = 0; r < layout_regs(t->layout); r++) {
    if (same)
      out[r] = same;
    else if (!(r & copies))
      out[r] = low_bin(l, OP_add, low_index(l, t, r), low_i32(l, ir_attr_i(op, ATTR_start)));
  }
  low_fill_copies(t->layout, out);
  low_set_regs(l, ir_result(op, 0), out);
}

// The registers of a tile whose elements op only moves about: same places, other indices.
static void low_renamed(Low *l, IrOp *op) {
  IrValue *a = ir_operand(op, 0);
  low_set_regs(l, ir_result(op, 0), low_regs(l, a));
}

static void low_pair(Low *l, IrOp *op) { // join: register bit 0 says which
  IrValue **a = low_regs(l, ir_operand(op, 0)), **b = low_regs(l, ir_operand(op, 1));
  const IrLayout *layout = low_layout(ir_result(op, 0));
  IrValue **out = low_new_regs(l, layout);
  for (uint32_t r = 0; r < layout_regs(layout); r++) out[r] = (r & 1 ? b : a)[r >> 1];
  low_set_regs(l, ir_result(op, 0), out);
}

static void low_split(Low *l, IrOp *op) {
  IrValue *a = ir_operand(op, 0), **in = low_regs(l, a);
  const IrLayout *from = low_layout(a), *to = low_layout(ir_result(op, 0));
  uint32_t bit = 0;
  while (bit < from->n[PLACE_REG] && from->at[bit] != 1) bit++;
  for (uint32_t half = 0; half < 2; half++) {
    IrValue **out = low_new_regs(l, to);
    for (uint32_t r = 0; r < layout_regs(to); r++)
      out[r] = in[(r & ((1u << bit) - 1)) | half << bit | (r >> bit) << (bit + 1)];
    low_set_regs(l, ir_result(op, half), out);
  }
}

// Operands of a product move together, right before it.
static bool moves_with_product(Low *l, const IrOp *op) {
  return lay_product_of(op) && !low_is_renumbering(l, op);
}

static void low_gather(Low *l, IrOp *op) {
  IrValue *a = ir_operand(op, 0), *i = ir_operand(op, 1);
  const IrType *from = a->type, *t = op->results[0].type;
  const int axis = (int)ir_attr_i(op, ATTR_axis);
  const LowBuf buf = low_scratch(l, low_elem(l, from), ir_type_elems(from));
  low_barrier(l);
  low_spill(l, &buf, from, low_regs(l, a));
  low_barrier(l);
  IrValue **index = low_regs(l, i), **out = low_new_regs(l, t->layout);
  const uint32_t copies = low_copies(t->layout);
  for (uint32_t r = 0; r < layout_regs(t->layout); r++) {
    if (r & copies) continue;
    IrValue *own = low_index(l, t, r), *flat = NULL;
    for (int d = 0; d < t->rank; d++) {
      IrValue *x = d == axis ? index[r] : low_coord(l, t, own, d);
      if (d == axis) {
        if (x->type->dtype == IR_i64) x = ir_cast(&l->b, OP_trunc, x, i32_thread(l));
        if (ir_dtypes[x->type->dtype].bits < 32) x = ir_cast(&l->b, OP_ext_s, x, i32_thread(l));
        x = low_bin(l, OP_and, x, low_i32(l, from->shape[d] - 1)); // outside: harmless
      }
      flat = flat ? low_bin(l, OP_add, low_bin(l, OP_mul, flat, low_i32(l, from->shape[d])), x) : x;
    }
    out[r] = low_get(l, &buf, flat);
  }
  low_fill_copies(t->layout, out);
  low_set_regs(l, ir_result(op, 0), out);
}

static void low_cat(Low *l, IrOp *op) {
  IrValue *a = ir_operand(op, 0), *b = ir_operand(op, 1);
  const IrType *t = op->results[0].type;
  LowBuf whole = low_scratch(l, low_elem(l, t), ir_type_elems(t)), upper = whole;
  upper.ptr = ir_ptr_add(&l->b, whole.ptr, low_i32(l, ir_type_elems(a->type)));
  low_barrier(l);
  low_spill(l, &whole, a->type, low_regs(l, a));
  low_spill(l, &upper, b->type, low_regs(l, b));
  low_barrier(l);
  IrValue **out = low_new_regs(l, t->layout);
  low_fetch(l, &whole, t, out);
  low_set_regs(l, ir_result(op, 0), out);
}

// Each thread counts its own bins over all values: n steps, no atomics.
static void low_histogram(Low *l, IrOp *op) {
  IrValue *a = ir_operand(op, 0), *mask = ir_operand(op, 1);
  const IrType *from = a->type, *t = op->results[0].type, *elem = low_elem(l, from), *count = low_elem(l, t);
  const int64_t n = ir_type_elems(from);
  IrValue **in = low_regs(l, a), **on = mask ? low_regs(l, mask) : NULL;
  IrValue **vals = low_new_regs(l, from->layout);
  for (uint32_t r = 0; r < layout_regs(from->layout); r++)
    vals[r] = on ? ir_select(&l->b, on[r], in[r], ir_const_i(&l->b, elem, -1)) : in[r];
  const LowBuf buf = low_scratch(l, elem, n);
  low_barrier(l);
  low_spill(l, &buf, from, vals);
  low_barrier(l);
  const uint32_t regs = layout_regs(t->layout), copies = low_copies(t->layout);
  IrValue **ops = arena_array(l->arena, IrValue *, 3 + regs), **bins = low_new_regs(l, t->layout);
  const IrType **types = arena_array(l->arena, const IrType *, regs);
  const IrType *pi = ir_type_scalar(l->ctx, IR_i32, LEVEL_program);
  ops[0] = ir_const_i(&l->b, pi, 0), ops[1] = ir_const_i(&l->b, pi, n), ops[2] = ir_const_i(&l->b, pi, 1);
  for (uint32_t r = 0; r < regs; r++) {
    bins[r] = r & copies ? NULL : low_index(l, t, r);
    if (bins[r] && elem->dtype == IR_i64) bins[r] = ir_cast(&l->b, OP_ext_u, bins[r], elem);
    ops[3 + r] = ir_const_i(&l->b, count, 0);
    types[r] = count;
  }
  IrOp *loop = ir_build(&l->b, OP_for, 3 + regs, ops, regs, types, 1);
  IrBlock *body = loop->regions[0];
  IrValue *iv = ir_block_arg(body, pi, NULL), **next = arena_array(l->arena, IrValue *, regs);
  for (uint32_t r = 0; r < regs; r++) next[r] = ir_block_arg(body, count, NULL);
  const IrBuilder keep = l->b;
  l->b = ir_builder_at_end(body);
  l->b.loc = keep.loc;
  IrValue *v = low_get(l, &buf, low_thread(l, iv));
  for (uint32_t r = 0; r < regs; r++) {
    if (!bins[r]) continue;
    IrValue *hit = ir_cmp(&l->b, CMP_eq, v, bins[r]);
    next[r] = low_bin(l, OP_add, next[r], ir_cast(&l->b, OP_ext_u, hit, count));
  }
  ir_yield(&l->b, regs, next);
  l->b = keep;
  IrValue **out = low_new_regs(l, t->layout);
  for (uint32_t r = 0; r < regs; r++) out[r] = ir_result(loop, r);
  low_fill_copies(t->layout, out);
  low_set_regs(l, ir_result(op, 0), out);
}

static void low_each(Low *l, IrOp *op) { // print, assert: once an element
  const IrType *t = NULL;
  for (uint32_t i = 0; i < op->noperands; i++) {
    IrValue *v = ir_operand(op, i);
    if (v->type->kind == IR_TILE) t = v->type;
  }
  IrValue *holder = low_holder(l, t->layout);
  const IrBuilder keep = l->b;
  if (holder) low_if(l, holder, &l->b);
  const uint32_t copies = low_copies(t->layout);
  IrValue **in = arena_array(l->arena, IrValue *, op->noperands);
  for (uint32_t r = 0; r < layout_regs(t->layout); r++) {
    if (r & copies) continue;
    for (uint32_t i = 0; i < op->noperands; i++) {
      IrValue *v = ir_operand(op, i);
      if (v->type->kind != IR_TILE)
        in[i] = low_thread(l, v);
      else if (v->type->layout == t->layout)
        in[i] = low_regs(l, v)[r];
      else
        low_fail(l, op->loc, "one print of tiles of several shapes is not supported on this target");
    }
    IrOp *made = ir_build(&l->b, op->kind, op->noperands, in, 0, NULL, 0);
    pass_copy_attrs(made, op);
  }
  l->b = keep;
}

// ---- control ------------------------------------------------------------------------------------------------------------------
static bool has_tiles(const IrOp *op) {
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (v && v->type->kind == IR_TILE) return true;
  }
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (op->results[i].type->kind == IR_TILE) return true;
  }
  return false;
}

typedef Vec(IrValue *) Values;
typedef Vec(const IrType *) Types;

// How many elements of a tile share a word where control carries it: 1, 2 or 4. As words they stay in registers as packs for products want
// them.
static uint32_t carried_together(const IrType *t) {
  const uint32_t e =
      ir_type_is_ptr(t) || ir_dtypes[t->dtype].bits < 8 ? 1 : 4u / (uint32_t)ir_dtypes[t->dtype].bytes;
  return e > 1 && layout_regs(t->layout) >= e ? e : 1;
}

// Registers of a carried tile from those that carry it.
static void unpack(Low *l, const IrType *t, IrValue *const *words, IrValue **regs) {
  const uint32_t e = carried_together(t), n = layout_regs(t->layout);
  const IrType *bits = ir_type_scalar(l->ctx, e == 2 ? IR_i16 : IR_i8, LEVEL_thread), *elem = low_elem(l, t);
  for (uint32_t r = 0; r < n; r++) {
    if (e == 1) {
      regs[r] = words[r];
      continue;
    }
    IrValue *x = words[r / e];
    if (r % e) x = low_bin(l, OP_shr_u, x, low_i32(l, r % e * 32 / e));
    x = ir_cast(&l->b, OP_trunc, x, bits);
    regs[r] = elem == bits ? x : ir_cast(&l->b, OP_bitcast, x, elem);
  }
}

// v, or all its registers.
static void expand(Low *l, Values *to, IrValue *v) {
  if (!v || v->type->kind != IR_TILE) {
    vec_push(l->arena, to, v);
    return;
  }
  const uint32_t n = layout_regs(low_layout(v)), e = carried_together(v->type);
  IrValue **r = low_regs(l, v), **words = arena_array(l->arena, IrValue *, n);
  for (uint32_t i = 0; i < n; i++) words[i] = low_thread(l, r[i]);
  if (e > 1) low_words(l, arena_copy(l->arena, words, n * sizeof *words), 0, n / e, v->type->dtype, words);
  for (uint32_t i = 0; i < n / e; i++) vec_push(l->arena, to, words[i]);
}

static void expand_type(Low *l, Types *to, const IrType *t) {
  const uint32_t e = t->kind == IR_TILE ? carried_together(t) : 1,
                 n = t->kind == IR_TILE ? layout_regs(t->layout) : 1;
  const IrType *x = t->kind != IR_TILE ? t : e > 1 ? i32_thread(l) : low_elem(l, t);
  for (uint32_t i = 0; i < n / e; i++) vec_push(l->arena, to, x);
}

// Moves a region's body into another, arguments expanded, and lowers it there.
static void move_body(Low *l, IrBlock *from, IrBlock *to) {
  for (uint32_t i = 0; i < from->args.len; i++) {
    IrValue *old = from->args.data[i];
    if (old->type->kind != IR_TILE) {
      ir_replace_uses(old, ir_block_arg(to, old->type, old->name));
      continue;
    }
    const uint32_t e = carried_together(old->type), n = layout_regs(low_layout(old));
    IrValue **regs = low_new_regs(l, low_layout(old));
    for (uint32_t r = 0; r < n / e; r++)
      regs[r] = ir_block_arg(to, e > 1 ? i32_thread(l) : low_elem(l, old->type), NULL);
    low_set_regs(l, old, regs);
  }
  while (from->first) ir_move_to_end(from->first, to);
  const Loc loc = l->b.loc;
  l->b = ir_builder_before(to->first);
  l->b.loc = loc;
  for (uint32_t i = 0; i < from->args.len; i++) {
    IrValue *old = from->args.data[i], **words = old->type->kind == IR_TILE ? low_regs(l, old) : NULL;
    if (!words || carried_together(old->type) == 1) continue;
    IrValue **regs = low_new_regs(l, low_layout(old));
    unpack(l, old->type, words, regs);
    low_set_regs(l, old, regs);
  }
  low_block(l, to);
  IrOp *end = ir_terminator(to);
  if (!has_tiles(end)) return;
  l->b = ir_builder_before(end);
  l->b.loc = end->loc;
  Values ops = {0};
  for (uint32_t i = 0; i < end->noperands; i++) expand(l, &ops, ir_operand(end, i));
  ir_build(&l->b, end->kind, ops.len, ops.data, 0, NULL, 0);
  ir_erase(end);
}

static void low_control(Low *l, IrOp *op) {
  bool tiles = has_tiles(op);
  for (uint32_t r = 0; r < op->nregions; r++) {
    for (uint32_t i = 0; i < op->regions[r]->args.len; i++)
      tiles |= op->regions[r]->args.data[i]->type->kind == IR_TILE;
  }
  if (!tiles) {
    for (uint32_t r = 0; r < op->nregions; r++) {
      low_block(l, op->regions[r]);
      const IrOp *end = ir_terminator(op->regions[r]);
      if (end && has_tiles(end)) low_fail(l, end->loc, "control hands over tiles that it does not declare");
    }
    return;
  }
  Values ops = {0};
  Types types = {0};
  for (uint32_t i = 0; i < op->noperands; i++) expand(l, &ops, ir_operand(op, i));
  for (uint32_t i = 0; i < op->nresults; i++) expand_type(l, &types, op->results[i].type);
  IrOp *made = ir_build(&l->b, op->kind, ops.len, ops.data, types.len, types.data, op->nregions);
  pass_copy_attrs(made, op);
  drop(l, op); // before what is inside: dropped ops go last first
  for (uint32_t r = 0; r < op->nregions; r++) move_body(l, op->regions[r], made->regions[r]);
  uint32_t at = 0;
  for (uint32_t i = 0; i < op->nresults; i++) {
    IrValue *old = ir_result(op, i);
    if (old->type->kind != IR_TILE) {
      ir_replace_uses(old, ir_result(made, at++));
      continue;
    }
    const uint32_t n = layout_regs(low_layout(old)) / carried_together(old->type);
    IrValue **words = low_new_regs(l, low_layout(old)), **regs = low_new_regs(l, low_layout(old));
    for (uint32_t k = 0; k < n; k++) words[k] = ir_result(made, at++);
    l->b = ir_builder_after(made);
    l->b.loc = made->loc;
    unpack(l, old->type, words, regs);
    low_set_regs(l, old, regs);
  }
}

// ---- partitions -------------------------------------------------------------------------------------------------------------------
// What a thread knows of itself, at the start of a block whose threads count from 0.
static void begin_threads(Low *l, IrBlock *b) {
  const IrType *t = i32_thread(l);
  l->b = b->first ? ir_builder_before(b->first) : ir_builder_at_end(b);
  l->tid = ir_result(ir_build(&l->b, OP_tid, 0, NULL, 1, &t, 0), 0);
  l->lane = low_bin(l, OP_and, l->tid, low_i32(l, l->m->lanes - 1));
  l->warp = low_bin(l, OP_shr_u, l->tid, low_i32(l, bits_log2((uint64_t)l->m->lanes)));
  l->entry = l->warp->def->next;
  map_init(&l->bases, l->arena);
}
static void lower_rest(Low *l) { // the entry's own ops are not to be lowered
  for (IrOp *op = l->entry, *next; op; op = next) {
    next = op->next;
    if (!(ir_ops[op->kind].traits & TRAIT_TERMINATOR)) low_op(l, op);
  }
}

// Strips on their way leave before the block's memory does.
static void end_strips(Low *l, IrBlock *b) {
  if (!l->strips) return;
  IrBuilder end = ir_builder_before(ir_terminator(b));
  ir_build(&end, OP_strips_end, 0, NULL, 0, NULL, 0);
  l->strips = false;
}

static void low_partitions(Low *l, IrOp *op) {
  const Low outer = *l;
  for (uint32_t r = 0; r < op->nregions; r++) {
    begin_threads(l, op->regions[r]);
    lower_rest(l);
    end_strips(l, op->regions[r]);
  }
  l->tid = outer.tid, l->lane = outer.lane, l->warp = outer.warp, l->entry = outer.entry;
  l->bases = outer.bases;
}

// ---- one op ---------------------------------------------------------------------------------------------------------------------
static void low_op(Low *l, IrOp *op) {
  l->b = ir_builder_after(op);
  l->b.loc = op->loc;
  switch (op->kind) {
  case OP_for:
  case OP_while:
  case OP_if:
  case OP_switch: low_control(l, op); return;
  case OP_warp_partitions: low_partitions(l, op); return;
  case OP_unsplat: {
    IrValue *v = low_regs(l, ir_operand(op, 0))[0];
    ir_replace_uses(ir_result(op, 0), low_from_all(l, v, op->results[0].type));
    drop(l, op);
    return;
  }
  case OP_reduce:
    low_reduce(l, op);
    drop(l, op);
    return;
  default: break;
  }
  if (low_memory(l, op)) return;
  if (!has_tiles(op)) return;
  switch (op->kind) {
  case OP_const:
  case OP_splat:
  case OP_arange: low_source(l, op); break;
  case OP_trans:
    if (!map_getp(&l->regs, ir_operand(op, 0))) break; // moves with its product
    low_renamed(l, op);
    break;
  case OP_expand_dims:
  case OP_reshape:
  case OP_broadcast: low_renamed(l, op); break;
  case OP_relayout: {
    if (moves_with_product(l, op)) break;
    IrValue *a = ir_operand(op, 0), **out = low_new_regs(l, low_layout(ir_result(op, 0)));
    low_move(l, a->type, low_regs(l, a), op->results[0].type, out);
    low_set_regs(l, ir_result(op, 0), out);
    break;
  }
  case OP_join: low_pair(l, op); break;
  case OP_split: low_split(l, op); break;
  case OP_gather: low_gather(l, op); break;
  case OP_cat: low_cat(l, op); break;
  case OP_histogram: low_histogram(l, op); break;
  case OP_scan: low_scan(l, op); break;
  case OP_dot: low_dot(l, op); break;
  case OP_dot_async: low_dot_async(l, op); break;
  case OP_dot_wait: low_dot_wait(l, op); break;
  case OP_desc_store:
  case OP_desc_rmw: low_strips(l, op); break;
  case OP_print:
  case OP_assert: low_each(l, op); break;
  case OP_consume: low_set_regs(l, ir_result(op, 0), low_regs(l, ir_operand(op, 0))); break;
  default:
    if (!(ir_ops[op->kind].traits & TRAIT_ELEMENTWISE) || op->nresults != 1)
      low_fail(l, op->loc, "'%s' on tiles is not supported on this target", ir_ops[op->kind].name);
    if (op->kind == OP_inline_asm && ir_attr_i(op, ATTR_pack) > 1)
      low_fail(l, op->loc, "inline assembly on packs of elements is not supported on this target");
    low_elementwise(l, op);
  }
  drop(l, op);
}

static void low_block(Low *l, IrBlock *b) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    if (!(ir_ops[op->kind].traits & TRAIT_TERMINATOR)) low_op(l, op);
  }
}

// Copies of an element are computed alike from what is loaded alike. Assembly may ask who executes it, and a load that is meant to
// see others' writes may see them in one thread and not yet in the next.
static bool find_unlike(IrOp *op, void *user) {
  Low *l = user;
  if (op->kind == OP_inline_asm) l->alike = false;
  if (op->kind == OP_load && (ir_attr_i(op, ATTR_order) || ir_attr_i(op, ATTR_volatile))) l->alike = false;
  return l->alike;
}

static void low_func(Low *l, IrFunc *f) {
  l->f = f;
  l->alike = true;
  ir_walk(f->body, find_unlike, l);
  l->axes = pass_axis_of_indices(f, l->arena);
  l->roots = pass_roots_run(f, l->arena);
  l->nvalues = f->next_id;
  map_init(&l->regs, l->arena);
  map_init(&l->bases, l->arena);
  map_init(&l->strip_mem, l->arena);
  low_note_accesses(l);
  begin_threads(l, f->body);
  lower_rest(l);
  end_strips(l, f->body);
  for (uint32_t i = l->dead.len; i-- > 0;) ir_erase(l->dead.data[i]);
  ir_renumber(f);
}

Status pass_low(Pass *pass) {
  Low *l = arena_new(pass->scratch, Low);
  l->pass = pass;
  l->m = pass->m;
  l->ctx = pass->m->ctx;
  l->arena = pass->scratch;
  if (ESCAPE_TRY(&l->fail)) return l->fail.status;
  PASS_EACH_FUNC(pass, f) {
    l->dead.len = 0;
    low_func(l, f);
  }
  pass->m->stage = STAGE_lowered;
  return ST_OK;
}
