// Library: explicit shared memory (dl.allocate_smem and what takes its buffers).
//
// A buffer is one memdesc of one axis; a part of it (smem_index) or a pointer into it (smem_get_ptr) is the same memdesc and
// an offset in elements. The swizzle parameters say where on a GPU an element lies, never which one an index names, so they
// have no effect here. Accesses are element by element, at program level where all their operands are.
#include "front/builtins.h"

#include <string.h>

static Value *smem_of(Front *f, const Smem *like, int axes, Value *offset) { // the last `axes` of like
  Smem *s = arena_copy(f->a, like, sizeof *s);
  s->rank = axes;
  for (int k = 0; k < axes; k++) s->shape[k] = like->shape[like->rank - axes + k];
  s->offset = offset;
  Value *v = val_new(f, VAL_SMEM);
  v->smem = s;
  return v;
}

static const Smem *smem_arg(Lower *L, Call *c) {
  const Value *v = c->v[0];
  if (v->kind == VAL_SMEM && v->smem->rank) return v->smem;
  if (v->kind != VAL_POISON)
    front_err_hint(L, c->at[0], "make one with dl.allocate_smem(dtype, shape)",
                   "%s takes a shared-memory buffer, not %s", c->row->name, val_kind_text(L->f, v));
  return NULL;
}

Value *bi_allocate_smem(Lower *L, Call *c) { // element_ty shape vec? per_phase? max_phase?
  Front *f = L->f;
  const Elem *e = arg_dtype(L, c, 0);
  int64_t dims[IR_MAX_RANK], swizzle, n = 1;
  Smem s = {.elem = e};
  if (!e || !arg_ints(L, c, 1, IR_MAX_RANK, dims, &s.rank)) return f->poison;
  for (int k = 2; k < 5; k++)
    if (!arg_int(L, c, k, 1, &swizzle)) return f->poison;
  if (elem_is_ptr(e) || elem_kind(e) == DTK_NAMED)
    return front_err_hint(L, c->at[0], "use tl.int64 and cast", "shared memory of %s", elem_text(f, e));
  if (!s.rank) return front_err(L, c->at[1], "the shape of a shared-memory buffer is empty");
  for (int k = 0; k < s.rank; k++) {
    if (dims[k] < 1 || bits_mul_overflow(n, dims[k], &n) || n > IR_MAX_ELEMS)
      return front_err(L, c->at[1],
                       "the sizes of a shared-memory buffer are positive, %d elements at most together",
                       IR_MAX_ELEMS);
    s.shape[k] = (int32_t)dims[k];
  }
  const int32_t all = (int32_t)n;
  const IrDtype d = elem_is_bool(e) ? IR_i8 : front_dtypes[e->dt].ir;
  const IrType *t = ir_type_memdesc(f->ctx, d, SPACE_shared, 1, &all, 0);
  s.ir = ir_result(ir_build(front_at(L, c->loc), OP_mem_alloc, 0, NULL, 1, &t, 0), 0);
  Value *zero = front_cast_to(L, val_int(f, 0), elem_number(f, FDT_int32), false, c->loc);
  return smem_of(f, &s, s.rank, zero);
}

// The part of s that the first n indices name.
static Value *smem_part(Lower *L, const Smem *s, Value *const *index, int n, Loc loc) {
  Front *f = L->f;
  Value *offset = s->offset;
  for (int k = 0; k < n; k++) {
    int32_t step = 1;
    for (int a = k + 1; a < s->rank; a++) step *= s->shape[a];
    Value *i = front_int_scalar(L, index[k], FDT_int32, "an index", loc);
    if (i->kind != VAL_RT) return f->poison;
    if (step != 1) i = front_binary_op(L, AOP_Mul, i, val_int(f, step), loc);
    offset = front_binary_op(L, AOP_Add, offset, i, loc);
    if (offset->kind != VAL_RT) return f->poison;
  }
  return smem_of(f, s, s->rank - n, offset);
}

static Value *smem_element(Lower *L, Call *c, int i,
                           bool all) { // indices: parameter i; all: one for each axis
  const Smem *s = smem_arg(L, c);
  Value *index[IR_MAX_RANK];
  int n;
  if (!s || !front_seq_items(L, c, i, IR_MAX_RANK, index, &n)) return L->f->poison;
  if (n != s->rank && (all || n))
    return front_err(L, c->at[i], "%d indices into a shared-memory buffer of shape %s", n,
                     front_shape_text(L->f, s->rank, s->shape));
  Value *p = smem_part(L, s, index, n, c->loc);
  return p->kind == VAL_SMEM && p->smem->rank ? smem_of(L->f, s, 0, p->smem->offset) : p;
}

Value *bi_smem_index(Lower *L, Call *c) { // smem index
  const Smem *s = smem_arg(L, c);
  if (!s) return L->f->poison;
  if (s->rank < 2)
    return front_err_hint(L, c->at[0], "read or write its elements with smem_load and smem_store",
                          "smem_index takes a buffer of two axes or more");
  return smem_part(L, s, &c->v[1], 1, c->loc);
}

Value *bi_smem_get_ptr(Lower *L, Call *c) { return smem_element(L, c, 1, false); } // smem indices?

Value *bi_smem_dealloc(Lower *L, Call *c) { // smem: its memory ends with the region that made it
  return smem_arg(L, c) ? L->f->none : L->f->poison;
}

// ---- elements ------------------------------------------------------------------------------------------
static const Elem *stored(Front *f, const Elem *e) { return elem_is_bool(e) ? elem_number(f, FDT_int8) : e; }

Value *front_smem_read(Lower *L, Value *p, Loc loc) {
  Front *f = L->f;
  const Smem *s = p->smem;
  if (s->rank) return front_err_hint(L, loc, "use smem_load", "%s is no pointer", val_kind_text(f, p));
  Value *at = L->thread ? front_raise_level(L, s->offset, loc) : s->offset;
  const Type *t = type_scalar(f, stored(f, s->elem), at->rt.type->thread);
  const IrType *it = front_ir_of(f, t);
  IrOp *op = ir_build(front_at(L, loc), OP_mem_get, 2, (IrValue *[]){s->ir, at->rt.ir}, 1, &it, 0);
  const Why *why = at->rt.why ? at->rt.why : L->thread ? L->thread->why : NULL;
  return front_cast_to(L, val_rt(f, ir_result(op, 0), t, why), s->elem, false, loc);
}

Value *front_smem_write(Lower *L, Value *p, Value *v, Loc loc) {
  Front *f = L->f;
  const Smem *s = p->smem;
  if (s->rank) return front_err_hint(L, loc, "use smem_store", "%s is no pointer", val_kind_text(f, p));
  v = front_cast_to(L, v, s->elem, false, loc);
  v = front_cast_to(L, v, stored(f, s->elem), false, loc);
  if (v->kind != VAL_RT) return f->poison;
  if (v->rt.type->rank)
    return front_err(L, loc, "an element of shared memory takes a scalar, not %s", val_kind_text(f, v));
  Value *at = s->offset;
  if (L->thread || val_is_thread(v) || val_is_thread(at)) {
    v = front_raise_level(L, v, loc);
    at = front_raise_level(L, at, loc);
  }
  ir_build(front_at(L, loc), OP_mem_set, 3, (IrValue *[]){s->ir, v->rt.ir, at->rt.ir}, 0, NULL, 0);
  return f->none;
}

Value *bi_smem_load(Lower *L, Call *c) { // smem indices
  Value *p = smem_element(L, c, 1, true);
  return p->kind == VAL_SMEM ? front_smem_read(L, p, c->loc) : p;
}

Value *bi_smem_store(Lower *L, Call *c) { // smem value indices
  Value *p = smem_element(L, c, 2, true);
  return p->kind == VAL_SMEM ? front_smem_write(L, p, c->v[1], c->loc) : p;
}

Value *front_smem_move(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  Value *p = x->kind == VAL_SMEM ? x : y, *n = p == x ? y : x;
  if (p->smem->rank || n->kind == VAL_SMEM || (op != AOP_Add && (op != AOP_Sub || p == y)))
    return front_err(L, loc, "'%s' is not defined between %s and %s", ast_op_text(op), val_kind_text(L->f, x),
                     val_kind_text(L->f, y));
  n = front_int_scalar(L, n, FDT_int32, "the distance", loc);
  if (n->kind != VAL_RT) return L->f->poison;
  Value *offset = front_binary_op(L, op, p->smem->offset, n, loc);
  return offset->kind == VAL_RT ? smem_of(L->f, p->smem, 0, offset) : L->f->poison;
}

Value *bi_smem_attr(Lower *L, Call *c) { // data: 0 dtype, 1 shape, 2 rank, 3 numel
  Front *f = L->f;
  const Smem *s = c->v[0]->smem;
  Value *items[IR_MAX_RANK];
  int64_t n = 1;
  for (int k = 0; k < s->rank; k++) items[k] = val_int(f, s->shape[k]), n *= s->shape[k];
  switch (c->row->data) {
  case 0: return val_dtype(f, s->rank ? s->elem : elem_pointer(f, s->elem));
  case 1: return val_tuple(f, items, (uint32_t)s->rank, false);
  case 2: return val_int(f, s->rank);
  default: return val_int(f, n);
  }
}
