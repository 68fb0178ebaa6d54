// Library: loads, stores and atomics through pointers, block pointers and tensor descriptors.
#include "front/builtins.h"

#include <string.h>

// ---- options -------------------------------------------------------------------------------------------
static int word_index(Lower *L, Call *c, int i, const char *const *words, int n, const char *list) {
  const char *s = arg_str(L, c, i, "");
  if (!s) return -1;
  for (int k = 0; k < n; k++)
    if (!strcmp(words[k], s)) return k;
  front_err(L, c->at[i], "\"%s\" is none of %s", s, list);
  return -1;
}

void front_set_cache_attrs(Lower *L, IrOp *op, Call *c, int icache, int ievict, int ivolatile) {
  static const char *const caches[] = {"", ".ca", ".cg", ".cs", ".cv", ".wb", ".wt"};
  static const char *const evicts[] = {"", "evict_first", "evict_last", "evict_normal"};
  if (icache >= 0 && c->v[icache]) {
    const int k = word_index(L, c, icache, caches, (int)DT_COUNTOF(caches),
                             "\"\", \".ca\", \".cg\", \".cs\", \".cv\", \".wb\", \".wt\"");
    if (k > 0) ir_set_attr_i(op, ATTR_cache, k);
  }
  if (ievict >= 0 && c->v[ievict]) {
    const int k = word_index(L, c, ievict, evicts, (int)DT_COUNTOF(evicts),
                             "\"\", \"evict_first\", \"evict_last\", \"evict_normal\"");
    if (k == 1 || k == 2) ir_set_attr_i(op, ATTR_evict, k);
  }
  bool v;
  if (ivolatile >= 0 && arg_bool(L, c, ivolatile, false, &v) && v) ir_set_attr_i(op, ATTR_volatile, 1);
}

bool front_parse_order(Lower *L, Call *c, int i, IrOrder dflt, IrOrder *out) {
  static const char *const words[] = {"relaxed", "acquire", "release", "acq_rel", "weak", "monotonic"};
  static const IrOrder orders[] = {ORDER_relaxed, ORDER_acquire, ORDER_release,
                                   ORDER_acq_rel, ORDER_weak,    ORDER_relaxed};
  *out = dflt;
  if (!c->v[i] || c->v[i]->kind == VAL_NONE) return true;
  const int k = word_index(L, c, i, words, (int)DT_COUNTOF(words),
                           "\"relaxed\", \"acquire\", \"release\", \"acq_rel\"");
  if (k >= 0) *out = orders[k];
  return k >= 0;
}

bool front_parse_scope(Lower *L, Call *c, int i, IrScope dflt, IrScope *out) {
  static const char *const words[] = {"cta", "block", "gpu", "device", "agent", "sys", "system", "workgroup"};
  static const IrScope scopes[] = {SCOPE_block, SCOPE_block, SCOPE_gpu, SCOPE_gpu,
                                   SCOPE_gpu,   SCOPE_sys,   SCOPE_sys, SCOPE_block};
  *out = dflt;
  if (!c->v[i] || c->v[i]->kind == VAL_NONE) return true;
  const int k = word_index(L, c, i, words, (int)DT_COUNTOF(words), "\"cta\", \"gpu\", \"sys\"");
  if (k >= 0) *out = scopes[k];
  return k >= 0;
}

// ---- pointers --------------------------------------------------------------------------------------------
static bool given(const Call *c, int i) { return i >= 0 && c->v[i] && c->v[i]->kind != VAL_NONE; }

// What the IR moves for elements of type e: bools are bytes, pointers are 64-bit integers.
static const Elem *memory_elem(Front *f, const Elem *e) {
  if (elem_is_ptr(e)) return elem_number(f, FDT_int64);
  return elem_is_bool(e) ? elem_number(f, FDT_int8) : e;
}

static Value *memory_pointer(Lower *L, Value *p, Loc loc) {
  const Elem *to = p->rt.type->elem->to, *m = memory_elem(L->f, to);
  return m == to ? p : front_bitcast_to(L, p, elem_pointer(L->f, m), loc);
}

static Value *from_memory(Lower *L, Value *v, const Elem *e, Loc loc) {
  if (v->kind != VAL_RT || v->rt.type->elem == e) return v;
  return front_cast_to(L, v, e, false, loc);
}

static Value *to_memory(Lower *L, Value *v, const Elem *e, Loc loc) {
  Front *f = L->f;
  v = front_cast_to(L, v, e, false, loc);
  return v->kind == VAL_RT ? front_cast_to(L, v, memory_elem(f, e), false, loc) : v;
}

static bool check_pointer(Lower *L, Call *c, Value *p) {
  Front *f = L->f;
  if (p->kind == VAL_POISON) return false;
  if (p->kind != VAL_RT || !elem_is_ptr(p->rt.type->elem)) {
    front_err_hint(L, c->at[0],
                   p->kind == VAL_RT && elem_is_int(p->rt.type->elem)
                       ? "offsets are added to a pointer argument: tl.load(x_ptr + offsets)"
                   : p->kind == VAL_NONE ? "None was passed here; guard the access with `if x is not None:`"
                                         : NULL,
                   "%s needs a pointer, not %s", c->row->name, val_kind_text(f, p));
    return false;
  }
  const Elem *to = p->rt.type->elem->to;
  if (!elem_is_ptr(to) && elem_kind(to) == DTK_NAMED) {
    front_err_hint(L, c->at[0], "cast the pointer to one with an element type",
                   "there is nothing of type %s in memory", elem_text(f, to));
    return false;
  }
  if (p->rt.type->rank)
    return front_tiles_allowed(L, c->loc, arena_printf(f->a, "'%s' on a tile", c->row->name));
  return true;
}

// Brings pointer, mask and value to one shape and level. Any of m and v may point to NULL.
static bool align_access(Lower *L, Call *c, Value **p, Value **m, Value **v) {
  Value **const others[2] = {m, v};
  for (int k = 0; k < 2; k++) {
    Value **o = others[k];
    if (!*o) continue;
    if ((*o)->kind == VAL_POISON) return false;
    if (!(*p)->rt.type->rank && (*o)->rt.type->rank) {
      front_err_hint(L, c->loc, "add a tile of offsets to the pointer: x_ptr + tl.arange(0, BLOCK)",
                     "the pointer is a scalar, so %s cannot be %s", k ? "the value" : "the mask",
                     val_kind_text(L->f, *o));
      return false;
    }
    const Type *tp = (*p)->rt.type, *to = (*o)->rt.type;
    int rank;
    int32_t shape[IR_MAX_RANK];
    if (!front_broadcast_shape(tp->rank, tp->shape, to->rank, to->shape, &rank, shape)) {
      front_err_hint(L, c->loc, "give both one shape; counted from the last axis, sizes must be equal or 1",
                     "%s has shape %s, but the pointers have %s", k ? "the value" : "the mask",
                     front_shape_text(L->f, to->rank, to->shape),
                     front_shape_text(L->f, tp->rank, tp->shape));
      return false;
    }
    if (!front_broadcast_pair(L, p, o, c->loc)) return false;
  }
  for (int k = 0; k < 2; k++) // the pointer may have grown or been raised
    if (*others[k] && !front_broadcast_pair(L, p, others[k], c->loc)) return false;
  return true;
}

static Value *mask_of(Lower *L, Call *c, int i) {
  Front *f = L->f;
  if (!given(c, i)) return NULL;
  Value *m = front_to_rt(L, c->v[i], c->at[i]);
  if (m->kind == VAL_POISON) return m;
  if (!elem_is_int(m->rt.type->elem))
    return front_err_hint(L, c->at[i], "compare first, e.g. mask=offsets < n",
                          "a mask holds conditions, not %s", elem_text(f, m->rt.type->elem));
  return front_cast_to(L, m, elem_number(f, FDT_int1), false, c->at[i]);
}

static Value *load_ptr(Lower *L, Call *c, Value *p, Value *mask, Value *other, int icache, int ievict,
                       int ivol) {
  Front *f = L->f;
  const Elem *e = p->rt.type->elem->to;
  if (L->thread) p = front_raise_level(L, p, c->loc);
  if (other) other = to_memory(L, other, e, c->loc);
  if (!align_access(L, c, &p, &mask, &other)) return f->poison;
  const Why *why = front_why_of(p, mask);
  p = memory_pointer(L, p, c->loc);
  IrValue *r = ir_load(front_at(L, c->loc), p->rt.ir, mask ? mask->rt.ir : NULL, other ? other->rt.ir : NULL);
  front_set_cache_attrs(L, r->def, c, icache, ievict, ivol);
  const Type *t = type_with_elem(f, p->rt.type, p->rt.type->elem->to);
  return from_memory(L, front_emit_result(L, r, t, why), e, c->loc);
}

static Value *store_ptr(Lower *L, Call *c, Value *p, Value *v, Value *mask, int icache, int ievict) {
  Front *f = L->f;
  const Elem *e = p->rt.type->elem->to;
  if (L->thread) p = front_raise_level(L, p, c->loc);
  v = to_memory(L, v, e, c->loc);
  if (v->kind == VAL_POISON || !align_access(L, c, &p, &mask, &v)) return f->poison;
  p = memory_pointer(L, p, c->loc);
  IrOp *op = ir_store(front_at(L, c->loc), p->rt.ir, v->rt.ir, mask ? mask->rt.ir : NULL);
  front_set_cache_attrs(L, op, c, icache, ievict, -1);
  return f->none;
}

// ---- block pointers ----------------------------------------------------------------------------------------
Value *front_dim_scalar(Lower *L, Value *v, FrontDtype d, const char *what, Loc loc) {
  v = front_int_scalar(L, v, d, what, loc);
  if (v->kind == VAL_RT && !front_is_uniform(L, v, loc, what)) return L->f->poison;
  return v;
}

static bool dims_of(Lower *L, Call *c, int i, int rank, const char *what, Value **out) {
  Front *f = L->f;
  int n;
  Value *items[IR_MAX_RANK];
  if (!front_seq_items(L, c, i, IR_MAX_RANK, items, &n)) return false;
  if (n != rank) {
    front_err(L, c->at[i], "%s: %d values for %d axes", what, n, rank);
    return false;
  }
  for (int k = 0; k < n; k++) {
    out[k] = front_dim_scalar(L, items[k], FDT_int64, what, c->at[i]);
    if (out[k]->kind != VAL_RT) return false;
  }
  (void)f;
  return true;
}

Value *bi_make_block_ptr(Lower *L, Call *c) { // base shape strides offsets block_shape order
  Front *f = L->f;
  BlockPtr *bp = arena_new(f->a, BlockPtr);
  bp->base = c->v[0];
  if (bp->base->kind != VAL_RT || bp->base->rt.type->rank || !elem_is_ptr(bp->base->rt.type->elem))
    return front_err(L, c->at[0], "the base of a block pointer must be a scalar pointer, not %s",
                     val_kind_text(f, bp->base));
  if (!front_is_uniform(L, bp->base, c->at[0], "the base of a block pointer") ||
      !arg_shape(L, c, 4, &bp->rank, bp->block))
    return f->poison;
  int64_t order[IR_MAX_RANK];
  int n;
  if (!dims_of(L, c, 1, bp->rank, "shape", bp->shape) ||
      !dims_of(L, c, 2, bp->rank, "strides", bp->strides) ||
      !dims_of(L, c, 3, bp->rank, "offsets", bp->offsets) || !arg_ints(L, c, 5, IR_MAX_RANK, order, &n))
    return f->poison;
  for (int i = 0; i < bp->rank; i++) bp->order[i] = i < n ? (int)order[i] : bp->rank - 1 - i;
  Value *v = val_new(f, VAL_BLOCKPTR);
  v->bp = bp;
  return v;
}

Value *bi_advance(Lower *L, Call *c) { // base offsets
  Front *f = L->f;
  if (c->v[0]->kind != VAL_BLOCKPTR)
    return front_err(L, c->at[0], "tl.advance moves a block pointer, not %s", val_kind_text(f, c->v[0]));
  BlockPtr *bp = arena_copy(f->a, c->v[0]->bp, sizeof *bp);
  int n;
  Value *d[IR_MAX_RANK];
  if (!front_seq_items(L, c, 1, IR_MAX_RANK, d, &n)) return f->poison;
  if (n != bp->rank) return front_err(L, c->at[1], "%d offsets for a block pointer of %d axes", n, bp->rank);
  for (int i = 0; i < n; i++) {
    if (d[i]->kind == VAL_INT && !d[i]->i) continue;
    Value *step = front_dim_scalar(L, d[i], FDT_int64, "an offset", c->at[1]);
    bp->offsets[i] = front_binary_op(L, AOP_Add, bp->offsets[i], step, c->loc);
    if (bp->offsets[i]->kind != VAL_RT) return f->poison;
  }
  Value *v = val_new(f, VAL_BLOCKPTR);
  v->bp = bp;
  return v;
}

// 0 .. n-1 along axis i of a tile of `rank` axes, as i64.
static Value *axis_range(Lower *L, const BlockPtr *bp, int i, Loc loc) {
  Front *f = L->f;
  Value *r =
      front_cast_to(L, front_tile_arange(L, 0, bp->block[i], loc), elem_number(f, FDT_int64), false, loc);
  IrValue *ir = r->rt.ir;
  int32_t shape[IR_MAX_RANK];
  for (int k = 0; k < bp->rank; k++) shape[k] = k == i ? bp->block[i] : 1;
  for (int k = 0; k < bp->rank; k++)
    if (k != i) ir = ir_expand_dims(front_at(L, loc), ir, k);
  return val_rt(f, ir, type_tile(f, r->rt.type->elem, bp->rank, shape), NULL);
}

static bool is_const_int(const Value *v, int64_t want) {
  int64_t i;
  return v->kind == VAL_RT && ir_const_int(v->rt.ir, &i) && i == want;
}

// The pointers of the block, and the mask of the axes that are checked (NULL: none).
static Value *block_pointers(Lower *L, const BlockPtr *bp, const bool *checked, Value **mask, Loc loc) {
  Front *f = L->f;
  Value *start = NULL, *offs = NULL;
  *mask = NULL;
  for (int i = 0; i < bp->rank; i++) {
    Value *term = is_const_int(bp->strides[i], 1)
                      ? bp->offsets[i]
                      : front_binary_op(L, AOP_Mul, bp->offsets[i], bp->strides[i], loc);
    start = start ? front_binary_op(L, AOP_Add, start, term, loc) : term;
    Value *r = axis_range(L, bp, i, loc);
    Value *toff = is_const_int(bp->strides[i], 1) ? r : front_binary_op(L, AOP_Mul, r, bp->strides[i], loc);
    offs = offs ? front_binary_op(L, AOP_Add, offs, toff, loc) : toff;
    if (!checked[i]) continue;
    Value *index = front_binary_op(L, AOP_Add, r, bp->offsets[i], loc);
    Value *in = front_binary_op(L, AOP_Lt, index, bp->shape[i], loc);
    int64_t known;
    if (!ir_const_int(bp->offsets[i]->rt.ir, &known) || known < 0)
      in = front_binary_op(L, AOP_BitAnd, in, front_binary_op(L, AOP_Ge, index, val_int(f, 0), loc), loc);
    *mask = *mask ? front_binary_op(L, AOP_BitAnd, *mask, in, loc) : in;
  }
  if (!bp->rank) return bp->base;
  Value *p = front_binary_op(L, AOP_Add, bp->base, start, loc);
  return front_binary_op(L, AOP_Add, p, offs, loc);
}

static bool checked_axes(Lower *L, Call *c, int i, const BlockPtr *bp, bool *checked) {
  int64_t axes[IR_MAX_RANK];
  int n;
  memset(checked, 0, sizeof(bool) * IR_MAX_RANK);
  if (!arg_ints(L, c, i, IR_MAX_RANK, axes, &n)) return false;
  for (int k = 0; k < n; k++) {
    const int64_t a = axes[k] < 0 ? axes[k] + bp->rank : axes[k];
    if (a < 0 || a >= bp->rank) {
      front_err(L, c->at[i], "boundary_check names axis %lld of a block of %d axes", (long long)axes[k],
                bp->rank);
      return false;
    }
    checked[a] = true;
  }
  return true;
}

// ---- load and store ------------------------------------------------------------------------------------------
Value *bi_load(
    Lower *L,
    Call *
        c) { // pointer mask? other? boundary_check? padding_option? cache_modifier? eviction_policy? volatile?
  Front *f = L->f;
  Value *p = c->v[0];
  if (p->kind == VAL_DESC) return bi_desc_load(L, c); // tl.load(desc, offsets)
  if (p->kind == VAL_SMEM && !given(c, 1)) return front_smem_read(L, p, c->loc);
  const char *pad = arg_str(L, c, 4, "");
  if (!pad) return f->poison;
  if (*pad && strcmp(pad, "zero") && strcmp(pad, "nan"))
    return front_err(L, c->at[4], "padding_option is \"zero\" or \"nan\", not \"%s\"", pad);
  if (p->kind == VAL_BLOCKPTR) {
    bool checked[IR_MAX_RANK];
    if (!front_tiles_allowed(L, c->loc, "loading a block") || !checked_axes(L, c, 3, p->bp, checked))
      return f->poison;
    if (given(c, 1) || given(c, 2))
      return front_err_hint(L, c->loc, "use boundary_check and padding_option",
                            "a load through a block pointer takes no mask and no other");
    Value *mask;
    const Elem *e = p->bp->base->rt.type->elem->to;
    Value *ptrs = block_pointers(L, p->bp, checked, &mask, c->loc);
    if (ptrs->kind != VAL_RT || (mask && mask->kind != VAL_RT)) return f->poison;
    Value *other = NULL;
    if (mask && !strcmp(pad, "nan")) {
      if (!elem_is_float(e))
        return front_err(L, c->at[4], "padding with NaN needs a float type, not %s", elem_text(f, e));
      other = front_const_of(L, e, &(Value){.kind = VAL_FLOAT, .f = __builtin_nan("")}, c->loc);
    }
    return load_ptr(L, c, ptrs, mask, other, 5, 6, 7);
  }
  if (!check_pointer(L, c, p)) return f->poison;
  int n = 0;
  int64_t axes[IR_MAX_RANK];
  if (given(c, 3) && (!arg_ints(L, c, 3, IR_MAX_RANK, axes, &n) || n))
    return front_err_hint(L, c->at[3], "use mask=...", "boundary_check is for block pointers");
  Value *mask = mask_of(L, c, 1);
  if (given(c, 2) && !mask)
    return front_err_hint(L, c->at[2], "give a mask, or leave `other` out",
                          "`other` without a mask: it is what masked-off elements become");
  if (mask && mask->kind == VAL_POISON) return mask;
  Value *other = given(c, 2) ? c->v[2] : NULL;
  if (other && other->kind != VAL_RT && !val_is_number(other))
    return front_err(L, c->at[2], "`other` cannot be %s", val_kind_text(f, other));
  return load_ptr(L, c, p, mask, other, 5, 6, 7);
}

Value *bi_store(Lower *L, Call *c) { // pointer value mask? boundary_check? cache_modifier? eviction_policy?
  Front *f = L->f;
  Value *p = c->v[0], *v = c->v[1];
  if (v->kind == VAL_DESC || p->kind == VAL_DESC)
    return front_err_hint(L, c->loc, "write desc.store(offsets, value)",
                          "tl.store does not take a tensor descriptor");
  if (v->kind != VAL_RT && !val_is_number(v))
    return front_err(L, c->at[1], "%s cannot be stored", val_kind_text(f, v));
  if (p->kind == VAL_SMEM && !given(c, 2)) return front_smem_write(L, p, v, c->loc);
  if (p->kind == VAL_BLOCKPTR) {
    bool checked[IR_MAX_RANK];
    if (!front_tiles_allowed(L, c->loc, "storing a block") || !checked_axes(L, c, 3, p->bp, checked))
      return f->poison;
    if (given(c, 2))
      return front_err_hint(L, c->at[2], "use boundary_check",
                            "a store through a block pointer takes no mask");
    Value *mask;
    Value *ptrs = block_pointers(L, p->bp, checked, &mask, c->loc);
    if (ptrs->kind != VAL_RT || (mask && mask->kind != VAL_RT)) return f->poison;
    return store_ptr(L, c, ptrs, v, mask, 4, 5);
  }
  if (!check_pointer(L, c, p)) return f->poison;
  Value *mask = mask_of(L, c, 2);
  if (mask && mask->kind == VAL_POISON) return mask;
  return store_ptr(L, c, p, v, mask, 4, 5);
}

// ---- atomics -----------------------------------------------------------------------------------------------
static int rmw_of(int what, const Elem *e) {
  const bool u = elem_is_unsigned(e), fl = elem_is_float(e);
  switch (what) {
  case AT_add: return fl ? RMW_fadd : RMW_add;
  case AT_max: return fl ? RMW_fmax : u ? RMW_max_u : RMW_max_s;
  case AT_min: return fl ? RMW_fmin : u ? RMW_min_u : RMW_min_s;
  case AT_and: return fl ? -1 : RMW_and;
  case AT_or: return fl ? -1 : RMW_or;
  case AT_xor: return fl ? -1 : RMW_xor;
  default: return RMW_xchg;
  }
}

static bool atomic_elem(Lower *L, Call *c, const Elem *e, bool add) {
  if (elem_is_ptr(e) || elem_bits(e) >= 32 || (add && (e->dt == FDT_float16 || e->dt == FDT_bfloat16)))
    return true;
  front_err_hint(L, c->at[0], "use a 32-bit or 64-bit type", "%s on %s in memory", c->row->name,
                 elem_text(L->f, e));
  return false;
}

Value *bi_atomic(Lower *L, Call *c) { // pointer val mask? sem? scope?
  Front *f = L->f;
  Value *p = c->v[0];
  if (!check_pointer(L, c, p)) return f->poison;
  const Elem *e = p->rt.type->elem->to;
  if (!atomic_elem(L, c, e, c->row->data == AT_add)) return f->poison;
  const int rmw = elem_is_ptr(e) ? RMW_xchg : rmw_of(c->row->data, e);
  if (rmw < 0) return front_err(L, c->at[0], "%s needs integers, not %s", c->row->name, elem_text(f, e));
  IrOrder order;
  IrScope scope;
  if (!front_parse_order(L, c, 3, ORDER_acq_rel, &order) || !front_parse_scope(L, c, 4, SCOPE_gpu, &scope))
    return f->poison;
  Value *mask = mask_of(L, c, 2);
  if (c->v[1]->kind != VAL_RT && !val_is_number(c->v[1]))
    return front_err(L, c->at[1], "the operand cannot be %s", val_kind_text(f, c->v[1]));
  Value *v = to_memory(L, c->v[1], e, c->loc);
  if (L->thread) p = front_raise_level(L, p, c->loc);
  if (v->kind == VAL_POISON || !align_access(L, c, &p, &mask, &v)) return f->poison;
  const Why *why = front_why_of(p, v);
  p = memory_pointer(L, p, c->loc);
  const Type *t = type_with_elem(f, p->rt.type, p->rt.type->elem->to);
  const IrType *it = front_ir_of(f, t);
  IrOp *op = ir_build(front_at(L, c->loc), OP_atomic_rmw, 3,
                      (IrValue *[]){p->rt.ir, v->rt.ir, mask ? mask->rt.ir : NULL}, 1, &it, 0);
  ir_set_attr_i(op, ATTR_rmw, rmw);
  ir_set_attr_i(op, ATTR_order, order);
  ir_set_attr_i(op, ATTR_scope, scope);
  return from_memory(L, front_emit_result(L, ir_result(op, 0), t, why), e, c->loc);
}

Value *bi_atomic_cas(Lower *L, Call *c) { // pointer cmp val sem? scope?
  Front *f = L->f;
  Value *p = c->v[0];
  if (!check_pointer(L, c, p)) return f->poison;
  const Elem *e = p->rt.type->elem->to;
  if (!elem_is_ptr(e) && elem_bits(e) < 16)
    return front_err(L, c->at[0], "atomic_cas on %s in memory", elem_text(f, e));
  IrOrder order;
  IrScope scope;
  if (!front_parse_order(L, c, 3, ORDER_acq_rel, &order) || !front_parse_scope(L, c, 4, SCOPE_gpu, &scope))
    return f->poison;
  Value *cmp = to_memory(L, c->v[1], e, c->at[1]), *v = to_memory(L, c->v[2], e, c->at[2]);
  if (L->thread) p = front_raise_level(L, p, c->loc);
  if (cmp->kind == VAL_POISON || v->kind == VAL_POISON || !align_access(L, c, &p, &cmp, &v)) return f->poison;
  const Why *why = front_why_of(p, v);
  p = memory_pointer(L, p, c->loc);
  const Type *t = type_with_elem(f, p->rt.type, p->rt.type->elem->to);
  const IrType *it = front_ir_of(f, t);
  IrOp *op = ir_build(front_at(L, c->loc), OP_atomic_cas, 3, (IrValue *[]){p->rt.ir, cmp->rt.ir, v->rt.ir}, 1,
                      &it, 0);
  ir_set_attr_i(op, ATTR_order, order);
  ir_set_attr_i(op, ATTR_scope, scope);
  return from_memory(L, front_emit_result(L, ir_result(op, 0), t, why), e, c->loc);
}

// ---- tensor descriptors ------------------------------------------------------------------------------------
// The descriptor for an access here; one whose parts control flow chose is made on the spot.
static IrValue *desc_ir(Lower *L, const Desc *d, Loc loc) {
  if (d->ir) return d->ir;
  IrValue *ops[1 + 2 * IR_MAX_RANK] = {d->base->rt.ir};
  for (int i = 0; i < d->rank; i++) {
    ops[1 + i] = d->shape[i]->rt.ir;
    ops[1 + d->rank + i] = d->strides[i]->rt.ir;
  }
  const IrType *it = ir_type_desc(L->f->ctx, front_dtypes[d->elem->dt].ir, d->rank, d->block);
  IrOp *op = ir_build(front_at(L, loc), OP_make_desc, 1 + 2 * (uint32_t)d->rank, ops, 1, &it, 0);
  ir_set_attr_i(op, ATTR_pad, d->nan ? PAD_nan : PAD_zero);
  return ir_result(op, 0);
}

Value *bi_make_desc(Lower *L, Call *c) { // base shape strides block_shape padding_option?
  Front *f = L->f;
  Value *base = c->v[0];
  if (base->kind != VAL_RT || base->rt.type->rank || !elem_is_ptr(base->rt.type->elem))
    return front_err(L, c->at[0], "the base of a tensor descriptor must be a scalar pointer, not %s",
                     val_kind_text(f, base));
  if (!front_is_uniform(L, base, c->at[0], "the base of a tensor descriptor")) return f->poison;
  Desc *d = arena_new(f->a, Desc);
  d->elem = base->rt.type->elem->to;
  const char *pad = arg_str(L, c, 4, "zero");
  if (!pad || !arg_shape(L, c, 3, &d->rank, d->block)) return f->poison;
  if (strcmp(pad, "zero") && strcmp(pad, "nan"))
    return front_err(L, c->at[4], "padding_option is \"zero\" or \"nan\", not \"%s\"", pad);
  if (d->rank < 1 || d->rank > 5)
    return front_err(L, c->at[3], "a tensor descriptor has 1 to 5 axes, not %d", d->rank);
  if (elem_is_ptr(d->elem) || elem_kind(d->elem) == DTK_NAMED || elem_is_bool(d->elem))
    return front_err(L, c->at[0], "a tensor descriptor of %s", elem_text(f, d->elem));
  if (!dims_of(L, c, 1, d->rank, "shape", d->shape) || !dims_of(L, c, 2, d->rank, "strides", d->strides))
    return f->poison;
  int64_t last;
  if (ir_const_int(d->strides[d->rank - 1]->rt.ir, &last) && last != 1)
    return front_err(L, c->at[2], "the last stride of a tensor descriptor must be 1, not %lld",
                     (long long)last);
  d->base = base;
  d->nan = !strcmp(pad, "nan");
  d->ir = desc_ir(L, d, c->loc);
  Value *v = val_new(f, VAL_DESC);
  v->desc = d;
  return v;
}

static int desc_offsets(Lower *L, Call *c, int i, const Desc *d, IrValue **out) {
  Value *items[IR_MAX_RANK];
  int n;
  if (!front_seq_items(L, c, i, IR_MAX_RANK, items, &n)) return -1;
  if (n != d->rank) {
    front_err(L, c->at[i], "%d offsets for a descriptor of %d axes", n, d->rank);
    return -1;
  }
  for (int k = 0; k < n; k++) {
    const Value *v = front_dim_scalar(L, items[k], FDT_int32, "an offset", c->at[i]);
    if (v->kind != VAL_RT) return -1;
    out[k] = v->rt.ir;
  }
  return n;
}

static const Desc *desc_arg(Lower *L, Call *c) {
  if (c->v[0]->kind == VAL_DESC)
    return front_tiles_allowed(L, c->loc, "an access through a descriptor") ? c->v[0]->desc : NULL;
  if (c->v[0]->kind != VAL_POISON)
    front_err(L, c->at[0], "%s needs a tensor descriptor, not %s", c->row->name,
              val_kind_text(L->f, c->v[0]));
  return NULL;
}

Value *bi_desc_load(Lower *L, Call *c) { // desc offsets
  Front *f = L->f;
  const Desc *d = desc_arg(L, c);
  IrValue *ops[1 + IR_MAX_RANK];
  if (!d) return f->poison;
  const int n = desc_offsets(L, c, 1, d, ops + 1);
  if (n < 0) return f->poison;
  ops[0] = desc_ir(L, d, c->loc);
  const Type *t = type_tile(f, d->elem, d->rank, d->block);
  const IrType *it = front_ir_of(f, t);
  IrOp *op = ir_build(front_at(L, c->loc), OP_desc_load, 1 + (uint32_t)n, ops, 1, &it, 0);
  return val_rt(f, ir_result(op, 0), t, NULL);
}

static Value *desc_value(Lower *L, Call *c, int i, const Desc *d) {
  Value *v = front_cast_to(L, c->v[i], d->elem, false, c->at[i]);
  return front_broadcast_to(L, v, d->rank, d->block, c->at[i]);
}

Value *bi_desc_store(Lower *L, Call *c) { // desc offsets value; data: 0 store, else 1 + AT_*
  Front *f = L->f;
  const Desc *d = desc_arg(L, c);
  IrValue *ops[2 + IR_MAX_RANK];
  if (!d) return f->poison;
  const int n = desc_offsets(L, c, 1, d, ops + 2);
  if (n < 0) return f->poison;
  if (c->v[2]->kind != VAL_RT && !val_is_number(c->v[2]))
    return front_err(L, c->at[2], "%s cannot be stored", val_kind_text(f, c->v[2]));
  const Value *v = desc_value(L, c, 2, d);
  if (v->kind != VAL_RT) return f->poison;
  ops[0] = desc_ir(L, d, c->loc);
  ops[1] = v->rt.ir;
  const int what = c->row->data;
  const int rmw = what ? rmw_of(what - 1, d->elem) : 0;
  if (rmw < 0) return front_err(L, c->loc, "%s needs integers, not %s", c->row->name, elem_text(f, d->elem));
  IrOp *op =
      ir_build(front_at(L, c->loc), what ? OP_desc_rmw : OP_desc_store, 2 + (uint32_t)n, ops, 0, NULL, 0);
  if (what) ir_set_attr_i(op, ATTR_rmw, rmw);
  return f->none;
}

Value *bi_desc_attr(Lower *L, Call *c) { // data: 0 dtype, 1 block_shape, 2 shape, 3 strides
  Front *f = L->f;
  const Desc *d = c->v[0]->desc;
  Value *items[IR_MAX_RANK];
  if (c->row->data == 0) return val_dtype(f, d->elem);
  for (int i = 0; i < d->rank; i++) {
    items[i] = c->row->data == 1 ? val_int(f, d->block[i]) : c->row->data == 2 ? d->shape[i] : d->strides[i];
    if (!items[i])
      return front_err_hint(L, c->loc, "pass it as an argument of its own",
                            "the %s of a descriptor made by the host is not known here", c->row->name);
  }
  return val_tuple(f, items, (uint32_t)d->rank, true);
}

Value *bi_blockptr_attr(Lower *L, Call *c) { // data: 0 dtype, 1 shape of the block, 2 type
  Front *f = L->f;
  const BlockPtr *bp = c->v[0]->bp;
  const Elem *e = bp->base->rt.type->elem->to;
  if (c->row->data == 0) return val_dtype(f, e);
  if (c->row->data == 1) {
    Value *items[IR_MAX_RANK];
    for (int i = 0; i < bp->rank; i++) items[i] = val_int(f, bp->block[i]);
    return val_tuple(f, items, (uint32_t)bp->rank, false);
  }
  Value *v = val_dtype(f, bp->base->rt.type->elem);
  v->dt.rank = 0;
  return v;
}
