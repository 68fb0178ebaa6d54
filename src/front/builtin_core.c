// Library: program and thread numbers, making tiles, casts, hints, and Python's own functions on constants.
#include "front/builtins.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- numbers of programs and threads -----------------------------------------------------------------
// Made once, at the start of the function: they are the same wherever they are asked for.
Value *front_thread_id(Lower *L, IrOpKind k, int axis, const char *why, Loc loc) {
  Front *f = L->f;
  if (front_no_code(L, loc)) return f->poison;
  static const IrOpKind kinds[] = {OP_program_id, OP_num_programs, OP_rank,     OP_num_ranks,
                                   OP_tid,        OP_num_threads,  OP_warp_size};
  int slot = 0;
  for (size_t i = 0; i < DT_COUNTOF(kinds); i++)
    if (kinds[i] == k) slot = i < 2 ? (int)i * 3 + axis : 4 + (int)i;
  if (!L->ids[slot]) {
    const Type *t = type_scalar(f, elem_number(f, FDT_int32), k == OP_tid);
    IrBlock *body = L->ir->body;
    IrBuilder b = L->entry      ? ir_builder_after(L->entry)
                  : body->first ? ir_builder_before(body->first)
                                : ir_builder_at_end(body);
    b.loc = loc;
    const IrType *it = front_ir_of(f, t);
    IrOp *op = ir_build(&b, k, 0, NULL, 1, &it, 0);
    if (k == OP_program_id || k == OP_num_programs) ir_set_attr_i(op, ATTR_axis, axis);
    L->entry = op;
    L->ids[slot] = val_rt(f, ir_result(op, 0), t, k == OP_tid ? front_why_new(f, loc, why) : NULL);
  }
  Value *v = L->ids[slot];
  if (v->rt.why) v = val_rt(f, v->rt.ir, v->rt.type, front_why_new(f, loc, why));
  return L->thread ? front_raise_level(L, v, loc) : v;
}

static bool arg_axis3(Lower *L, Call *c, int64_t *axis) {
  if (!arg_int(L, c, 0, 0, axis)) return false;
  if (*axis >= 0 && *axis < 3) return true;
  front_err(L, c->at[0], "%s has axes 0, 1 and 2, not %lld", c->row->name, (long long)*axis);
  return false;
}

Value *bi_program_id(Lower *L, Call *c) {
  int64_t axis;
  return arg_axis3(L, c, &axis) ? front_thread_id(L, (IrOpKind)c->row->data, (int)axis, "", c->loc)
                                : L->f->poison;
}

// ---- making tiles --------------------------------------------------------------------------------------
Value *front_splat_number(Lower *L, const Elem *e, double d, const Type *like, Loc loc) {
  const Value num = {.kind = VAL_FLOAT, .f = d};
  const Type *t = type_with_elem(L->f, like, e);
  const IrType *it = front_ir_of(L->f, t);
  if (elem_is_float(e)) return front_emit_result(L, ir_const_f(front_at(L, loc), it, d), t, NULL);
  (void)num;
  return front_emit_result(L, ir_const_i(front_at(L, loc), it, (int64_t)d), t, NULL);
}

Value *front_tile_arange(Lower *L, int64_t start, int64_t end, Loc loc) {
  Front *f = L->f;
  const int32_t n = (int32_t)(end - start);
  const Type *t = type_tile(f, elem_number(f, FDT_int32), 1, &n);
  const IrType *it = front_ir_of(f, t);
  IrOp *op = ir_build(front_at(L, loc), OP_arange, 0, NULL, 1, &it, 0);
  ir_set_attr_i(op, ATTR_start, start);
  ir_set_attr_i(op, ATTR_end, end);
  return val_rt(f, ir_result(op, 0), t, NULL);
}

Value *bi_arange(Lower *L, Call *c) {
  Front *f = L->f;
  int64_t lo, hi;
  if (!arg_int(L, c, 0, 0, &lo) || !arg_int(L, c, 1, 0, &hi)) return f->poison;
  if (hi <= lo) return front_err(L, c->loc, "tl.arange(%lld, %lld) is empty", (long long)lo, (long long)hi);
  if (lo < INT32_MIN || hi > INT32_MAX) return front_err(L, c->loc, "tl.arange counts in 32 bits");
  const int64_t n = hi - lo;
  int32_t shape;
  if (!bits_pow2((uint64_t)n))
    return front_err_hint(L, c->loc,
                          arena_printf(f->a, "use tl.arange(%lld, %lld) and mask what is too much",
                                       (long long)lo, (long long)(lo + (int64_t)bits_next_pow2((uint64_t)n))),
                          "the length of tl.arange must be a power of two, not %lld", (long long)n);
  if (!front_check_shape(L, 1, &n, &shape, c->loc)) return f->poison;
  return front_tile_arange(L, lo, hi, c->loc);
}

// full(shape, value, dtype); an empty shape gives a scalar.
static Value *full(Lower *L, int rank, const int32_t *shape, Value *v, const Elem *e, Loc loc) {
  Front *f = L->f;
  if (v->kind == VAL_POISON) return v;
  if (rank && !front_tiles_allowed(L, loc, "making a tile")) return f->poison;
  if (val_is_number(v) && e && !elem_is_ptr(e) && elem_kind(e) != DTK_NAMED && rank) {
    const Type *t = type_tile(f, e, rank, shape);
    const IrType *it = front_ir_of(f, t);
    if (elem_is_float(e)) {
      const double d = v->kind == VAL_FLOAT ? v->f : v->kind == VAL_INT ? (double)v->i : v->b;
      return val_rt(f, ir_const_f(front_at(L, loc), it, d), t, NULL);
    }
    if (v->kind != VAL_FLOAT) {
      const AstInt i = v->kind == VAL_INT ? v->i : v->b;
      return val_rt(f, ir_const_i(front_at(L, loc), it, elem_is_bool(e) ? i != 0 : (int64_t)i), t, NULL);
    }
  }
  Value *s = e ? front_cast_to(L, v, e, false, loc) : front_to_rt(L, v, loc);
  if (s->kind == VAL_POISON) return s;
  if (s->rt.type->rank)
    return front_err(L, loc, "the value that fills a tile must be a scalar, not %s", val_kind_text(f, s));
  return rank ? front_broadcast_to(L, s, rank, shape, loc) : s;
}

Value *bi_full(Lower *L, Call *c) { // shape value dtype
  int rank;
  int32_t shape[IR_MAX_RANK];
  const Elem *e = NULL;
  if (!arg_shape(L, c, 0, &rank, shape)) return L->f->poison;
  if (c->v[2] && c->v[2]->kind != VAL_NONE && !(e = arg_dtype(L, c, 2))) return L->f->poison;
  return full(L, rank, shape, c->v[1], e, c->loc);
}

Value *bi_zeros(Lower *L, Call *c) { // shape dtype
  int rank;
  int32_t shape[IR_MAX_RANK];
  if (!arg_shape(L, c, 0, &rank, shape)) return L->f->poison;
  const Elem *e = arg_dtype(L, c, 1);
  return e ? full(L, rank, shape, val_int(L->f, 0), e, c->loc) : L->f->poison;
}

Value *bi_zeros_like(Lower *L, Call *c) {
  const Value *v = arg_tile(L, c, 0);
  if (v->kind == VAL_POISON) return L->f->poison;
  return full(L, v->rt.type->rank, v->rt.type->shape, val_int(L->f, 0), v->rt.type->elem, c->loc);
}

// ---- casts and hints -----------------------------------------------------------------------------------
Value *bi_cast(Lower *L, Call *c) { // x dtype fp_downcast_rounding? bitcast?
  Front *f = L->f;
  const Elem *e = arg_dtype(L, c, 1);
  bool bits;
  const char *rounding = arg_str(L, c, 2, "rtne");
  if (!e || !rounding || !arg_bool(L, c, 3, false, &bits)) return f->poison;
  if (strcmp(rounding, "rtne") && strcmp(rounding, "rtz"))
    return front_err(L, c->at[2], "fp_downcast_rounding is \"rtne\" or \"rtz\", not \"%s\"", rounding);
  const bool rtz = !strcmp(rounding, "rtz");
  Value *v = c->v[0];
  if (v->kind == VAL_TOKEN) return v;
  if (v->kind != VAL_RT && !val_is_number(v))
    return front_err(L, c->at[0], "%s cannot be cast", val_kind_text(f, v));
  if (rtz && v->kind == VAL_RT &&
      (!elem_is_float(v->rt.type->elem) || !elem_is_float(e) || elem_bits(e) >= elem_bits(v->rt.type->elem)))
    return front_err(L, c->loc, "fp_downcast_rounding is for casts to a narrower float type");
  return bits ? front_bitcast_to(L, v, e, c->loc) : front_cast_to(L, v, e, rtz, c->loc);
}

Value *bi_hint(Lower *L, Call *c) { // x values; data: which attribute
  Front *f = L->f;
  Value *v = c->v[0];
  int64_t vals[IR_MAX_RANK];
  int n;
  if (!arg_ints(L, c, 1, IR_MAX_RANK, vals, &n)) return f->poison;
  if (v->kind != VAL_RT || v->kind == VAL_POISON) return v; // a constant needs no hint
  const int want = v->rt.type->rank ? v->rt.type->rank : 1;
  if (n != want)
    return front_err(L, c->at[1], "%s of a value of %d axes takes %d values, not %d", c->row->name,
                     v->rt.type->rank, want, n);
  for (int i = 0; i < n; i++)
    if (vals[i] < 1) return front_err(L, c->at[1], "%s takes positive values", c->row->name);
  if (v->rt.type->rank && !front_tiles_allowed(L, c->loc, "a tile operation")) return f->poison;
  IrOp *op = ir_build(front_at(L, c->loc), OP_hint, 1, &v->rt.ir, 1, &v->rt.ir->type, 0);
  ir_set_attr_ints(op, (IrAttrName)c->row->data, vals, (uint32_t)n);
  return val_rt(f, ir_result(op, 0), v->rt.type, v->rt.why);
}

Value *bi_assume(Lower *L, Call *c) {
  Front *f = L->f;
  Value *v = front_condition(L, c->v[0], c->at[0]);
  if (v->kind == VAL_BOOL && !v->b) return front_err(L, c->at[0], "this assumption is false");
  if (v->kind != VAL_RT) return f->none;
  if (v->rt.type->rank) return front_err(L, c->at[0], "tl.assume takes a scalar condition");
  ir_build(front_at(L, c->loc), OP_assume, 1, &v->rt.ir, 0, NULL, 0);
  return f->none;
}

Value *bi_debug_barrier(Lower *L, Call *c) {
  if (!front_tiles_allowed(L, c->loc, arena_printf(L->f->a, "'%s'", c->row->name))) return L->f->poison;
  ir_build(front_at(L, c->loc), OP_barrier, 0, NULL, 0, NULL, 0);
  return L->f->none;
}

// ---- attributes of values and types ----------------------------------------------------------------------
static Value *int_tuple(Front *f, int n, const int32_t *v) {
  Value *items[IR_MAX_RANK];
  for (int i = 0; i < n; i++) items[i] = val_int(f, v[i]);
  return val_tuple(f, items, (uint32_t)n, false);
}

Value *bi_tensor_dtype(Lower *L, Call *c) {
  const Value *v = c->v[0];
  return val_dtype(L->f, v->kind == VAL_MEM ? v->mem.type->elem : v->rt.type->elem);
}

static const Type *type_of(const Value *v) { return v->kind == VAL_MEM ? v->mem.type : v->rt.type; }

Value *bi_tensor_type(Lower *L, Call *c) {
  const Type *t = type_of(c->v[0]);
  Value *v = val_dtype(L->f, t->elem);
  if (t->rank) {
    v->dt.rank = t->rank;
    v->dt.shape = t->shape;
  }
  return v;
}

Value *bi_tensor_shape(Lower *L, Call *c) {
  const Type *t = type_of(c->v[0]);
  return int_tuple(L->f, t->rank, t->shape);
}

Value *bi_tensor_numel(Lower *L, Call *c) {
  const Type *t = type_of(c->v[0]);
  AstInt n = 1;
  for (int i = 0; i < t->rank; i++) n *= t->shape[i];
  return val_int(L->f, n);
}

Value *bi_number_value(Lower *L, Call *c) { // constexpr.value
  (void)L;
  return c->v[0];
}

Value *bi_number_dtype(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  const Elem *e = v->kind == VAL_BOOL  ? elem_number(f, FDT_int1)
                  : v->kind == VAL_INT ? elem_of_int(f, v->i)
                                       : elem_of_float(f, v->kind == VAL_FLOAT ? v->f : 0);
  return e ? val_dtype(f, e) : f->poison;
}

Value *bi_number_type(Lower *L, Call *c) { return bi_number_dtype(L, c); }

Value *bi_number_shape(Lower *L, Call *c) {
  (void)c;
  return val_tuple(L->f, NULL, 0, false);
}

Value *bi_bit_length(Lower *L, Call *c) {
  AstInt v = c->v[0]->kind == VAL_INT ? c->v[0]->i : 0;
  int n = 0;
  for (v = v < 0 ? -v : v; v; v >>= 1) n++;
  return val_int(L->f, n);
}

Value *bi_dtype_query(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  const Elem *e = v->dt.elem;
  const bool block = v->dt.rank > 0, ptr = elem_is_ptr(e);
  const FrontDtype d = ptr ? FDT_void : e->dt;
  switch (c->row->data) {
  case DQ_element:
    if (block) return val_dtype(f, e);
    if (ptr) return val_dtype(f, e->to);
    return val_dtype(f, e);
  case DQ_scalar: return val_dtype(f, e);
  case DQ_bits: return val_int(f, elem_bits(e));
  case DQ_itemsize: return val_int(f, elem_bits(e) <= 8 ? 1 : elem_bits(e) / 8);
  case DQ_name: return val_str(f, elem_text(f, e));
  case DQ_shape: return int_tuple(f, block ? v->dt.rank : 0, v->dt.shape);
  case DQ_numel: {
    AstInt n = 1;
    for (int i = 0; i < v->dt.rank; i++) n *= v->dt.shape[i];
    return val_int(f, n);
  }
  case DQ_mantissa: {
    static const int8_t w[FDT_COUNT] = {[FDT_float8e4nv] = 3, [FDT_float8e5] = 2, [FDT_float16] = 10,
                                        [FDT_bfloat16] = 7,   [FDT_float32] = 23, [FDT_float64] = 53};
    return val_int(f, w[d]);
  }
  case DQ_fp8: return val_bool(f, !ptr && (front_dtypes[d].kind == DTK_FP8 || d >= FDT_float8e4b8));
  case DQ_fp8e4nv: return val_bool(f, d == FDT_float8e4nv);
  case DQ_fp8e5: return val_bool(f, d == FDT_float8e5);
  case DQ_is_fp8e4b15: return val_bool(f, d == FDT_float8e4b15);
  case DQ_fp16: return val_bool(f, d == FDT_float16);
  case DQ_bf16: return val_bool(f, d == FDT_bfloat16);
  case DQ_fp32: return val_bool(f, d == FDT_float32);
  case DQ_fp64: return val_bool(f, d == FDT_float64);
  case DQ_float: return val_bool(f, !ptr && (elem_is_float(e) || d >= FDT_float8e4b8));
  case DQ_standard: return val_bool(f, d >= FDT_float16 && d <= FDT_float64);
  case DQ_int: return val_bool(f, !ptr && elem_is_int(e));
  case DQ_bool: return val_bool(f, d == FDT_int1);
  case DQ_sint: return val_bool(f, elem_kind(e) == DTK_SINT);
  case DQ_uint: return val_bool(f, elem_is_unsigned(e));
  case DQ_ptr: return val_bool(f, ptr && !block);
  case DQ_block: return val_bool(f, block);
  case DQ_void: return val_bool(f, !ptr && d == FDT_void);
  case DQ_const: return f->vfalse;
  case DQ_int8: return val_bool(f, d == FDT_int8);
  case DQ_int16: return val_bool(f, d == FDT_int16);
  case DQ_int32: return val_bool(f, d == FDT_int32);
  case DQ_int64: return val_bool(f, d == FDT_int64);
  case DQ_uint8: return val_bool(f, d == FDT_uint8);
  case DQ_uint16: return val_bool(f, d == FDT_uint16);
  case DQ_uint32: return val_bool(f, d == FDT_uint32);
  case DQ_uint64: return val_bool(f, d == FDT_uint64);
  case DQ_min: return val_int(f, elem_is_unsigned(e) ? 0 : -((AstInt)1 << (elem_bits(e) - 1)));
  case DQ_max: return val_int(f, ((AstInt)1 << (elem_bits(e) - !elem_is_unsigned(e))) - 1);
  }
  return f->poison;
}

Value *bi_pointer_type(Lower *L, Call *c) {
  const Elem *e = arg_dtype(L, c, 0);
  return e ? val_dtype(L->f, elem_pointer(L->f, e)) : L->f->poison;
}

Value *bi_block_type(Lower *L, Call *c) {
  Front *f = L->f;
  const Elem *e = arg_dtype(L, c, 0);
  int rank;
  int32_t *shape = arena_array(f->a, int32_t, IR_MAX_RANK);
  if (!e || !arg_shape(L, c, 1, &rank, shape)) return f->poison;
  Value *v = val_dtype(f, e);
  v->dt.rank = rank;
  v->dt.shape = shape;
  return v;
}

// tl.dtype("fp32")
Value *bi_dtype(Lower *L, Call *c) {
  const Elem *e = arg_dtype(L, c, 0);
  return e ? val_dtype(L->f, e) : L->f->poison;
}

Value *bi_block_shapes(Lower *L, Call *c) {
  const Value *v = c->v[0];
  return int_tuple(L->f, v->dt.rank > 0 ? v->dt.rank : 0, v->dt.shape);
}

// ---- compile-time things -----------------------------------------------------------------------------------
Value *bi_identity(Lower *L, Call *c) { // constexpr(x)
  (void)L;
  return c->v[0];
}

Value *bi_type_only(Lower *L, Call *c) { // tl.tensor: a name for isinstance and annotations
  return front_err(L, c->loc, "'%s' can be named but not called", c->row->name);
}

Value *bi_jit(Lower *L, Call *c) { // triton.jit(fn), or with options only: a decorator
  Front *f = L->f;
  if (!c->v[0] || c->v[0]->kind != VAL_FUNC) {
    Value *v = val_new(f, VAL_BUILTIN);
    v->builtin = c->row;
    return v;
  }
  Func *fn = arena_copy(f->a, c->v[0]->func, sizeof *fn);
  fn->kind = c->row->data ? FUNC_CONSTEXPR : FUNC_JIT;
  Value *v = val_new(f, VAL_FUNC);
  v->func = fn;
  return v;
}

static Value *range_value(Lower *L, Call *c, int kind) { // arg1 arg2? step? ...
  Front *f = L->f;
  RangeSpec *r = arena_new(f->a, RangeSpec);
  r->kind = kind;
  r->lo = c->v[1] ? c->v[0] : val_int(f, 0);
  r->hi = c->v[1] ? c->v[1] : c->v[0];
  r->step = c->v[2] ? c->v[2] : val_int(f, 1);
  Value *v = val_new(f, VAL_RANGE);
  v->range = r;
  return v;
}

Value *bi_range(Lower *L, Call *c) { return range_value(L, c, c->row->data); }

Value *bi_tl_range(
    Lower *L,
    Call *
        c) { // arg1 arg2? step? num_stages? loop_unroll_factor? disallow_acc_multi_buffer? flatten? warp_specialize? disable_licm?
  Front *f = L->f;
  Value *v = range_value(L, c, RANGE_TL);
  RangeSpec *r = arena_copy(f->a, v->range, sizeof *r);
  int64_t stages, unroll;
  if (!arg_int(L, c, 3, 0, &stages) || !arg_int(L, c, 4, 0, &unroll) ||
      !arg_bool(L, c, 6, false, &r->flatten) || !arg_bool(L, c, 7, false, &r->warp_spec))
    return f->poison;
  r->stages = (int)(stages < 0 || stages > 64 ? 0 : stages);
  r->unroll = (int)(unroll < 0 || unroll > 1024 ? 0 : unroll);
  v->range = r;
  return v;
}

Value *bi_cdiv(Lower *L, Call *c) {
  Front *f = L->f;
  Value *y1 = front_binary_op(L, AOP_Sub, c->v[1], val_int(f, 1), c->loc);
  return front_binary_op(L, AOP_FloorDiv, front_binary_op(L, AOP_Add, c->v[0], y1, c->loc), c->v[1], c->loc);
}

Value *bi_next_power_of_2(Lower *L, Call *c) {
  int64_t n;
  if (!arg_int(L, c, 0, 0, &n)) return L->f->poison;
  return val_int(L->f, n <= 0 ? 0 : (AstInt)bits_next_pow2((uint64_t)n));
}

Value *bi_static_assert(Lower *L, Call *c) { // cond msg?
  Front *f = L->f;
  const Value *v = c->v[0];
  if (v->kind == VAL_RT)
    return front_err_hint(L, c->at[0], "use tl.device_assert for conditions of run time",
                          "tl.static_assert needs a condition known at compile time");
  const Value *k = front_condition(L, c->v[0], c->at[0]);
  const char *msg = c->v[1] && c->v[1]->kind == VAL_STR ? c->v[1]->s->s : NULL;
  if (k->kind == VAL_BOOL && !k->b)
    return front_err(L, c->loc, "static assertion failed%s%s", msg ? ": " : "", msg ? msg : "");
  return f->none;
}

Value *bi_static_print(Lower *L, Call *c) {
  Front *f = L->f;
  const char *s = "";
  for (uint32_t i = 0; i < c->rest.len; i++)
    s = arena_printf(f->a, "%s%s%s", s, i ? " " : "", val_repr(f, c->rest.data[i], false));
  if (!f->quiet) diag(f->d, DIAG_REMARK, c->loc, "%s", s);
  return f->none;
}

// "x", "x:" and "x: " all print as "x: 1.0"; without values the text stands alone.
static const char *print_prefix(Front *f, const char *text, uint32_t nvalues) {
  size_t n = strlen(text);
  if (!nvalues) return text;
  while (n && (text[n - 1] == ' ' || text[n - 1] == ':')) n--;
  return n ? arena_printf(f->a, "%.*s: ", (int)n, text) : "";
}

static Value *device_print(Lower *L, const char *prefix, Value *const *v, uint32_t n, bool hex, Loc loc) {
  Front *f = L->f;
  Vec(IrValue *) ops = {0};
  Vec(int64_t) uns = {0};
  for (uint32_t i = 0; i < n; i++) {
    Value *x = front_to_rt(L, v[i], loc);
    if (x->kind == VAL_POISON) return x;
    if (x->rt.type->rank && !front_tiles_allowed(L, loc, "printing a tile")) return f->poison;
    if (elem_is_ptr(x->rt.type->elem)) x = front_cast_to(L, x, elem_number(f, FDT_uint64), false, loc);
    vec_push(f->a, &ops, x->rt.ir);
    vec_push(f->a, &uns, elem_is_unsigned(x->rt.type->elem));
  }
  bool thread = L->thread != NULL, tile = false;
  for (uint32_t i = 0; i < ops.len; i++) {
    thread |= ir_type_is_thread(ops.data[i]->type);
    tile |= ops.data[i]->type->kind == IR_TILE;
  }
  if (thread && tile) return front_err(L, loc, "tiles and per-thread values cannot share one print");
  for (uint32_t i = 0; thread && i < ops.len; i++) ops.data[i] = ir_to_thread(front_at(L, loc), ops.data[i]);
  IrOp *op = ir_build(front_at(L, loc), OP_print, ops.len, ops.data, 0, NULL, 0);
  ir_set_attr_s(op, ATTR_prefix, str_cstr(f->strings, print_prefix(f, prefix, n)));
  if (hex) ir_set_attr_i(op, ATTR_hex, 1);
  ir_set_attr_ints(op, ATTR_uns, uns.data, uns.len);
  return f->none;
}

Value *bi_device_print(Lower *L, Call *c) { // prefix *args; hex=
  Front *f = L->f;
  const char *prefix = arg_str(L, c, 0, "");
  if (!prefix) return f->poison;
  bool hex = false;
  for (uint32_t k = 0; k < c->args->kw.len; k++)
    if (!strcmp(c->args->kw_name.data[k]->s, "hex") && c->args->kw.data[k]->kind == VAL_BOOL)
      hex = c->args->kw.data[k]->b;
  return device_print(L, prefix, c->rest.data, c->rest.len, hex, c->loc);
}

Value *bi_print(Lower *L,
                Call *c) { // Python's print: constants while compiling, run-time values on the device
  Front *f = L->f;
  bool rt = false;
  for (uint32_t i = 0; i < c->rest.len; i++) rt |= c->rest.data[i]->kind == VAL_RT;
  if (!rt) return bi_static_print(L, c);
  const char *prefix = "";
  ValueVec v = {0};
  for (uint32_t i = 0; i < c->rest.len; i++) {
    if (c->rest.data[i]->kind == VAL_RT || val_is_number(c->rest.data[i]))
      vec_push(f->a, &v, c->rest.data[i]);
    else
      prefix = arena_printf(f->a, "%s%s%s", prefix, *prefix ? " " : "", val_repr(f, c->rest.data[i], false));
  }
  return device_print(L, prefix, v.data, v.len, false, c->loc);
}

Value *bi_device_assert(Lower *L, Call *c) { // cond msg? mask?
  Front *f = L->f;
  Value *v = c->v[0];
  const char *msg = arg_str(L, c, 1, "");
  if (!msg) return f->poison;
  if (f->o.no_asserts) return f->none;
  v = front_cast_to(L, v->kind == VAL_RT ? v : front_to_rt(L, front_condition(L, v, c->at[0]), c->loc),
                    elem_number(f, FDT_int1), false, c->loc);
  if (v->kind == VAL_POISON) return v;
  if (c->v[2] && c->v[2]->kind != VAL_NONE) { // only where the mask holds
    Value *m = front_unary_op(L, AOP_Invert,
                              front_cast_to(L, c->v[2], elem_number(f, FDT_int1), false, c->loc), c->loc);
    v = front_binary_op(L, AOP_BitOr, v, m, c->loc);
    if (v->kind == VAL_POISON) return v;
  }
  IrOp *op = ir_build(front_at(L, c->loc), OP_assert, 1, &v->rt.ir, 0, NULL, 0);
  ir_set_attr_s(op, ATTR_msg, str_cstr(f->strings, msg));
  return f->none;
}

// ---- Python ------------------------------------------------------------------------------------------------
Value *bi_py_minmax(Lower *L, Call *c) {
  Front *f = L->f;
  ValueVec v = c->rest;
  if (v.len == 1 && v.data[0]->kind == VAL_TUPLE) {
    ValueVec items = {0};
    for (uint32_t i = 0; i < v.data[0]->seq.n; i++) vec_push(f->a, &items, v.data[0]->seq.items[i]);
    v = items;
  }
  if (!v.len) return front_err(L, c->loc, "%s of nothing", c->row->name);
  Value *r = v.data[0];
  for (uint32_t i = 1; i < v.len; i++) {
    if (val_is_number(r) && val_is_number(v.data[i])) { // ties keep the first, as in Python
      const Value *less =
          front_const_binary(L, AOP_Lt, c->row->data ? r : v.data[i], c->row->data ? v.data[i] : r, c->loc);
      if (less->b) r = v.data[i];
    } else {
      r = front_minimum_maximum(L, c->row->data, r, v.data[i], false, c->loc);
    }
  }
  return r;
}

Value *bi_py_float(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  if (!v) return val_float(f, 0);
  if (v->kind == VAL_STR) {
    const char *s = v->s->s;
    const double sign = *s == '-' ? -1 : 1;
    if (*s == '-' || *s == '+') s++;
    if (!strcasecmp(s, "inf") || !strcasecmp(s, "infinity")) return val_float(f, sign * (double)INFINITY);
    if (!strcasecmp(s, "nan")) return val_float(f, (double)NAN);
    char *end;
    const double d = strtod(s, &end);
    return *s && !*end ? val_float(f, sign * d) : front_err(L, c->loc, "float('%s')", v->s->s);
  }
  if (v->kind == VAL_INT) return val_float(f, (double)v->i);
  if (v->kind == VAL_BOOL) return val_float(f, v->b);
  if (v->kind == VAL_FLOAT) return c->v[0];
  if (v->kind == VAL_RT) return front_cast_to(L, c->v[0], elem_number(f, FDT_float32), false, c->loc);
  return front_err(L, c->loc, "float() of %s", val_kind_text(f, v));
}

Value *bi_py_int(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  if (!v) return val_int(f, 0);
  if (v->kind == VAL_INT) return c->v[0];
  if (v->kind == VAL_BOOL) return val_int(f, v->b);
  if (v->kind == VAL_FLOAT) {
    if (isfinite(v->f) && fabs(v->f) < 0x1p100) return val_int(f, (AstInt)v->f);
    return front_err(L, c->loc, "int() of %s", val_kind_text(f, v));
  }
  if (v->kind == VAL_RT)
    return elem_is_int(v->rt.type->elem)
               ? c->v[0]
               : front_cast_to(L, c->v[0], elem_number(f, FDT_int32), false, c->loc);
  if (v->kind == VAL_STR) {
    char *end;
    const long long i = strtoll(v->s->s, &end, 10);
    if (*v->s->s && !*end) return val_int(f, i);
  }
  return front_err(L, c->loc, "int() of %s", val_kind_text(f, v));
}

Value *bi_py_bool(Lower *L, Call *c) { return c->v[0] ? front_condition(L, c->v[0], c->loc) : L->f->vfalse; }

Value *bi_py_str(Lower *L, Call *c) { return val_str(L->f, val_repr(L->f, c->v[0], c->row->data)); }

Value *bi_py_len(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  if (v->kind == VAL_TUPLE || v->kind == VAL_DICT) return val_int(f, v->seq.n);
  if (v->kind == VAL_STR) return val_int(f, v->s->len);
  if (v->kind == VAL_RT && v->rt.type->rank) return val_int(f, v->rt.type->shape[0]);
  return front_err(L, c->loc, "len() of %s", val_kind_text(f, v));
}

Value *bi_py_tuple(Lower *L, Call *c) {
  Front *f = L->f;
  Value *v = c->v[0];
  if (!v) return val_tuple(f, NULL, 0, c->row->data);
  if (v->kind == VAL_TUPLE) return val_tuple(f, v->seq.items, v->seq.n, c->row->data);
  if (v->kind == VAL_RANGE && v->range->lo->kind == VAL_INT && v->range->hi->kind == VAL_INT &&
      v->range->step->kind == VAL_INT && v->range->step->i) {
    ValueVec items = {0};
    const AstInt st = v->range->step->i;
    for (AstInt i = v->range->lo->i; st > 0 ? i < v->range->hi->i : i > v->range->hi->i; i += st) {
      if (items.len >= FRONT_MAX_UNROLL) return front_err(L, c->loc, "more than %d items", FRONT_MAX_UNROLL);
      vec_push(f->a, &items, val_int(f, i));
    }
    return val_tuple(f, items.data, items.len, c->row->data);
  }
  return front_err(L, c->loc, "%s() of %s", c->row->name, val_kind_text(f, v));
}

Value *bi_py_zip(Lower *L, Call *c) {
  Front *f = L->f;
  uint32_t n = UINT32_MAX;
  for (uint32_t i = 0; i < c->rest.len; i++) {
    if (c->rest.data[i]->kind != VAL_TUPLE)
      return front_err(L, c->loc, "zip() of %s", val_kind_text(f, c->rest.data[i]));
    if (c->rest.data[i]->seq.n < n) n = c->rest.data[i]->seq.n;
  }
  ValueVec out = {0};
  for (uint32_t k = 0; c->rest.len && k < n; k++) {
    ValueVec row = {0};
    for (uint32_t i = 0; i < c->rest.len; i++) vec_push(f->a, &row, c->rest.data[i]->seq.items[k]);
    vec_push(f->a, &out, val_tuple(f, row.data, row.len, false));
  }
  return val_tuple(f, out.data, out.len, true);
}

Value *bi_py_enumerate(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  if (v->kind != VAL_TUPLE) return front_err(L, c->loc, "enumerate() of %s", val_kind_text(f, v));
  ValueVec out = {0};
  for (uint32_t i = 0; i < v->seq.n; i++) {
    Value *pair[2] = {val_int(f, i), v->seq.items[i]};
    vec_push(f->a, &out, val_tuple(f, pair, 2, false));
  }
  return val_tuple(f, out.data, out.len, true);
}

Value *bi_py_reversed(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  if (v->kind != VAL_TUPLE) return front_err(L, c->loc, "reversed() of %s", val_kind_text(f, v));
  ValueVec out = {0};
  for (uint32_t i = v->seq.n; i-- > 0;) vec_push(f->a, &out, v->seq.items[i]);
  return val_tuple(f, out.data, out.len, true);
}

Value *bi_py_sum(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  if (v->kind != VAL_TUPLE) return front_err(L, c->loc, "sum() of %s", val_kind_text(f, v));
  Value *r = val_int(f, 0);
  for (uint32_t i = 0; i < v->seq.n; i++) r = front_binary_op(L, AOP_Add, r, v->seq.items[i], c->loc);
  return r;
}

Value *bi_py_allany(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  if (v->kind != VAL_TUPLE) return front_err(L, c->loc, "%s() of %s", c->row->name, val_kind_text(f, v));
  for (uint32_t i = 0; i < v->seq.n; i++) {
    const Value *k = front_condition(L, v->seq.items[i], c->loc);
    if (k->kind != VAL_BOOL)
      return k->kind == VAL_POISON ? f->poison
                                   : front_err(L, c->loc, "%s() of run-time values", c->row->name);
    if (k->b != (c->row->data != 0)) return val_bool(f, k->b);
  }
  return val_bool(f, c->row->data);
}

static bool is_instance(const Value *v, const Value *cls) {
  if (cls->kind == VAL_CLASS)
    return (v->kind == VAL_OBJECT || v->kind == VAL_TUPLE) && v->seq.cls && v->seq.cls->cls == cls->cls;
  if (cls->kind != VAL_BUILTIN) return false;
  const char *n = cls->builtin->name;
  if (!strcmp(n, "tensor")) return v->kind == VAL_RT || v->kind == VAL_MEM;
  if (!strcmp(n, "constexpr")) return val_is_number(v) || v->kind == VAL_STR || v->kind == VAL_NONE;
  if (!strcmp(n, "dtype")) return v->kind == VAL_DTYPE;
  if (!strcmp(n, "pointer_type")) return v->kind == VAL_DTYPE && elem_is_ptr(v->dt.elem) && v->dt.rank <= 0;
  if (!strcmp(n, "block_type")) return v->kind == VAL_DTYPE && v->dt.rank > 0;
  if (!strcmp(n, "tuple") || !strcmp(n, "list")) return v->kind == VAL_TUPLE;
  if (!strcmp(n, "int")) return v->kind == VAL_INT || v->kind == VAL_BOOL;
  if (!strcmp(n, "float")) return v->kind == VAL_FLOAT;
  if (!strcmp(n, "bool")) return v->kind == VAL_BOOL;
  if (!strcmp(n, "str")) return v->kind == VAL_STR;
  if (!strcmp(n, "tensor_descriptor") || !strcmp(n, "tensor_descriptor_base")) return v->kind == VAL_DESC;
  return false;
}

Value *bi_py_isinstance(Lower *L, Call *c) {
  const Value *v = c->v[0], *cls = c->v[1];
  bool r = false;
  if (cls->kind == VAL_TUPLE) {
    for (uint32_t i = 0; i < cls->seq.n; i++) r |= is_instance(v, cls->seq.items[i]);
  } else {
    r = is_instance(v, cls);
  }
  return val_bool(L->f, r);
}

Value *bi_py_hasattr(Lower *L, Call *c) {
  Front *f = L->f;
  const char *name = arg_str(L, c, 1, "");
  if (!name) return f->poison;
  f->quiet++;
  const Value *v = front_eval_attr(L, c->v[0], str_cstr(f->strings, name), c->loc);
  f->quiet--;
  return val_bool(f, v->kind != VAL_POISON);
}

Value *bi_py_getattr(Lower *L, Call *c) { // obj name default?
  Front *f = L->f;
  const char *name = arg_str(L, c, 1, "");
  if (!name) return f->poison;
  if (!c->v[2]) return front_eval_attr(L, c->v[0], str_cstr(f->strings, name), c->loc);
  f->quiet++;
  Value *v = front_eval_attr(L, c->v[0], str_cstr(f->strings, name), c->loc);
  f->quiet--;
  return v->kind == VAL_POISON ? c->v[2] : v;
}

Value *bi_py_abs(Lower *L, Call *c) {
  Front *f = L->f;
  const Value *v = c->v[0];
  if (v->kind == VAL_INT) return val_int(f, v->i < 0 ? -v->i : v->i);
  if (v->kind == VAL_FLOAT) return val_float(f, fabs(v->f));
  return bi_abs(L, c);
}

Value *bi_py_pow(Lower *L, Call *c) { return front_binary_op(L, AOP_Pow, c->v[0], c->v[1], c->loc); }

Value *bi_py_round(Lower *L, Call *c) {
  const Value *v = c->v[0];
  if (v->kind == VAL_INT) return c->v[0];
  if (v->kind == VAL_FLOAT && fabs(v->f) < 0x1p62) return val_int(L->f, (AstInt)nearbyint(v->f));
  return front_err(L, c->loc, "round() of %s", val_kind_text(L->f, v));
}

Value *bi_py_type(Lower *L, Call *c) { return val_str(L->f, val_kind_text(L->f, c->v[0])); }

// The module `math` on constants; data says which.
Value *bi_py_math(Lower *L, Call *c) {
  Front *f = L->f;
  double v[2] = {0, 0};
  for (int i = 0; i < 2; i++) {
    if (!c->v[i]) continue;
    if (!val_is_number(c->v[i]))
      return front_err_hint(L, c->at[i], "use tl.exp, tl.log2 and so on for run-time values",
                            "Python's math.%s works on constants only", c->row->name);
    v[i] = c->v[i]->kind == VAL_FLOAT ? c->v[i]->f
           : c->v[i]->kind == VAL_INT ? (double)c->v[i]->i
                                      : c->v[i]->b;
  }
  switch (c->row->data) {
  case 0: return val_float(f, sqrt(v[0]));
  case 1: return val_float(f, c->v[1] ? log(v[0]) / log(v[1]) : log(v[0]));
  case 2: return val_float(f, log2(v[0]));
  case 3: return val_float(f, exp(v[0]));
  case 4: return val_int(f, (AstInt)ceil(v[0]));
  case 5: return val_int(f, (AstInt)floor(v[0]));
  case 6: return val_float(f, pow(v[0], v[1]));
  case 7: return val_float(f, log10(v[0]));
  default: return f->poison;
  }
}

Value *bi_py_math_const(Lower *L, Call *c) {
  static const double v[] = {3.14159265358979323846, 2.71828182845904523536};
  if (c->row->data == 2) return val_float(L->f, (double)INFINITY);
  if (c->row->data == 3) return val_float(L->f, (double)NAN);
  return val_float(L->f, v[c->row->data]);
}

Value *bi_const_int(Lower *L, Call *c) { // an integer constant of a library
  return val_int(L->f, c->row->data);
}

// ---- small methods -----------------------------------------------------------------------------------------
Value *bi_str_method(Lower *L, Call *c) { // self x?
  Front *f = L->f;
  const char *s = c->v[0]->s->s;
  const char *x = arg_str(L, c, 1, "");
  if (!x) return f->poison;
  switch (c->row->data) {
  case 0: return val_bool(f, !strncmp(s, x, strlen(x)));
  case 1: return val_bool(f, strlen(s) >= strlen(x) && !strcmp(s + strlen(s) - strlen(x), x));
  case 2:
  case 3: {
    char *r = arena_strdup(f->a, s);
    for (char *p = r; *p; p++) {
      if (c->row->data == 2 && *p >= 'A' && *p <= 'Z') *p = (char)(*p + 32);
      if (c->row->data == 3 && *p >= 'a' && *p <= 'z') *p = (char)(*p - 32);
    }
    return val_str(f, r);
  }
  case 4: {
    while (*s == ' ' || *s == '\n' || *s == '\t') s++;
    char *r = arena_strdup(f->a, s);
    for (size_t n = strlen(r); n && strchr(" \n\t", r[n - 1]); n--) r[n - 1] = 0;
    return val_str(f, r);
  }
  default: return f->poison;
  }
}

Value *bi_tuple_index(Lower *L, Call *c) { // self x
  for (uint32_t i = 0; i < c->v[0]->seq.n; i++)
    if (val_equal(c->v[0]->seq.items[i], c->v[1])) return val_int(L->f, i);
  return front_err(L, c->loc, "the tuple does not hold that");
}

Value *bi_to_tensor(Lower *L, Call *c) { return front_to_rt(L, c->v[0], c->at[0]); }

Value *bi_nan_modes(Lower *L, Call *c) { // tl.PropagateNan
  Front *f = L->f;
  (void)c;
  Value *items[2] = {f->vfalse, f->vtrue};
  Value *v = val_tuple(f, items, 2, false);
  const Str **names = arena_array(f->a, const Str *, 2);
  names[0] = str_cstr(f->strings, "NONE");
  names[1] = str_cstr(f->strings, "ALL");
  v->seq.fields = names;
  return v;
}

Value *bi_target_no(Lower *L, Call *c) {
  (void)c;
  return L->f->vfalse;
}

Value *bi_log2_const(Lower *L, Call *c) {
  int64_t n;
  if (!arg_int(L, c, 0, 0, &n)) return L->f->poison;
  return n > 0 ? val_int(L->f, bits_log2((uint64_t)n))
               : front_err(L, c->at[0], "the logarithm of %lld", (long long)n);
}

Value *bi_int_dtype(Lower *L, Call *c) { // bitwidth signed
  Front *f = L->f;
  int64_t w;
  bool is_signed;
  if (!arg_int(L, c, 0, 0, &w) || !arg_bool(L, c, 1, true, &is_signed)) return f->poison;
  for (int d = FDT_int1; d <= FDT_uint64; d++)
    if (front_dtypes[d].bits == w && (d == FDT_int1 || (front_dtypes[d].kind == DTK_SINT) == is_signed))
      return val_dtype(f, elem_number(f, (FrontDtype)d));
  return front_err(L, c->at[0], "there are no integers of %lld bits", (long long)w);
}

// torch.finfo(dtype).min and the like. data: 1 = floats
Value *bi_limits(Lower *L, Call *c) {
  Front *f = L->f;
  const Elem *e = arg_dtype(L, c, 0);
  if (!e) return f->poison;
  static const struct {
    FrontDtype dt;
    double max, tiny, eps;
  } floats[] = {{FDT_float16, 65504, 0x1p-14, 0x1p-10},
                {FDT_bfloat16, 0x1.fep127, 0x1p-126, 0x1p-7},
                {FDT_float32, 0x1.fffffep127, 0x1p-126, 0x1p-23},
                {FDT_float64, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-52},
                {FDT_float8e4nv, 448, 0x1p-6, 0.125},
                {FDT_float8e5, 57344, 0x1p-14, 0.25}};
  Value *items[4] = {NULL};
  for (size_t i = 0; c->row->data && i < DT_COUNTOF(floats); i++) {
    if (floats[i].dt != e->dt) continue;
    items[0] = val_float(f, -floats[i].max);
    items[1] = val_float(f, floats[i].max);
    items[2] = val_float(f, floats[i].eps);
    items[3] = val_float(f, floats[i].tiny);
  }
  if (!c->row->data && elem_is_int(e) && !elem_is_bool(e)) {
    const bool u = elem_is_unsigned(e);
    items[0] = val_int(f, u ? 0 : -((AstInt)1 << (elem_bits(e) - 1)));
    items[1] = val_int(f, ((AstInt)1 << (elem_bits(e) - !u)) - 1);
    items[2] = items[3] = val_int(f, elem_bits(e));
  }
  if (!items[0]) return front_err(L, c->at[0], "%s of %s", c->row->name, elem_text(f, e));
  static const char *const names[] = {"min", "max", "eps", "tiny"};
  const Str **fields = arena_array(f->a, const Str *, 4);
  for (int i = 0; i < 4; i++) fields[i] = str_cstr(f->strings, i == 2 && !c->row->data ? "bits" : names[i]);
  Value *v = val_tuple(f, items, 4, false);
  v->seq.fields = fields;
  return v;
}

// ---- strings -------------------------------------------------------------------------------------------
Value *bi_str_join(Lower *L, Call *c) { // s items
  Front *f = L->f;
  const Value *v = c->v[1];
  if (v->kind != VAL_TUPLE) return front_err(L, c->at[1], "join() of %s", val_kind_text(f, v));
  const char *s = "";
  for (uint32_t i = 0; i < v->seq.n; i++) {
    if (v->seq.items[i]->kind != VAL_STR)
      return front_err(L, c->at[1], "join() of %s", val_kind_text(f, v->seq.items[i]));
    s = arena_printf(f->a, "%s%s%s", s, i ? c->v[0]->s->s : "", v->seq.items[i]->s->s);
  }
  return val_str(f, s);
}

Value *bi_str_replace(Lower *L, Call *c) { // s old new
  Front *f = L->f;
  const char *old = arg_str(L, c, 1, ""), *with = arg_str(L, c, 2, "");
  if (!old || !with) return f->poison;
  if (!*old) return c->v[0];
  const char *out = "", *s = c->v[0]->s->s;
  for (const char *hit; (hit = strstr(s, old)); s = hit + strlen(old))
    out = arena_printf(f->a, "%s%.*s%s", out, (int)(hit - s), s, with);
  return val_str(f, arena_printf(f->a, "%s%s", out, s));
}

Value *bi_str_split(Lower *L, Call *c) { // s sep?
  Front *f = L->f;
  const char *sep = arg_str(L, c, 1, " "), *s = c->v[0]->s->s;
  if (!sep) return f->poison;
  if (!*sep) return front_err(L, c->at[1], "an empty separator");
  ValueVec v = {0};
  for (const char *hit; (hit = strstr(s, sep)); s = hit + strlen(sep))
    if (c->v[1] || hit != s) vec_push(f->a, &v, val_str(f, arena_printf(f->a, "%.*s", (int)(hit - s), s)));
  if (c->v[1] || *s) vec_push(f->a, &v, val_str(f, s));
  return val_tuple(f, v.data, v.len, true);
}

// "{} {0} {name}".format(...); formats inside the braces are not known.
Value *bi_str_format(Lower *L, Call *c) {
  Front *f = L->f;
  const char *out = "", *s = c->v[0]->s->s;
  uint32_t next = 0;
  while (*s) {
    if ((*s == '{' || *s == '}') && s[1] == *s) {
      out = arena_printf(f->a, "%s%c", out, *s);
      s += 2;
      continue;
    }
    const size_t plain = strcspn(s, "{}");
    if (plain || *s != '{') {
      out = arena_printf(f->a, "%s%.*s", out, (int)(plain ? plain : 1), s);
      s += plain ? plain : 1;
      continue;
    }
    const char *end = strchr(s, '}');
    if (!end) return front_err(L, c->loc, "a brace that does not close");
    const char *name = arena_printf(f->a, "%.*s", (int)(end - s - 1), s + 1);
    const Value *v = NULL;
    if (!*name || (*name >= '0' && *name <= '9')) {
      const uint32_t i = *name ? (uint32_t)atoi(name) : next++;
      v = i < c->rest.len ? c->rest.data[i] : NULL;
    }
    for (uint32_t k = 0; !v && k < c->args->kw.len; k++)
      if (!strcmp(c->args->kw_name.data[k]->s, name)) v = c->args->kw.data[k];
    if (!v) return front_err(L, c->loc, "format() has no value for '{%s}'", name);
    out = arena_printf(f->a, "%s%s", out, val_repr(f, v, false));
    s = end + 1;
  }
  return val_str(f, out);
}
