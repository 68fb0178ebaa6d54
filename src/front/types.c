// Element types of the language and the rules by which they mix.
#include "front/front_impl.h"

#include <math.h>
#include <string.h>

const DtInfo front_dtypes[FDT_COUNT] = {
#define LTYPE(name, ir, bits, kind, text) {#name, text, IR_##ir, bits, DTK_##kind},
#include "front/dtypes.def"
#undef LTYPE
};

// Further spellings that signatures, annotations and people use.
static const struct {
  const char *text;
  FrontDtype dt;
} dt_aliases[] = {
    {"bool", FDT_int1},
    {"fp8e4nv", FDT_float8e4nv},
    {"fp8e5", FDT_float8e5},
    {"fp8e4b8", FDT_float8e4b8},
    {"fp8e4b15", FDT_float8e4b15},
    {"fp8e5b16", FDT_float8e5b16},
    {"fp16", FDT_float16},
    {"fp32", FDT_float32},
    {"fp64", FDT_float64},
    {"float8e4m3", FDT_float8e4nv},
    {"float8e5m2", FDT_float8e5},
    {"half", FDT_float16},
    {"u1", FDT_int1},
    {"uint1", FDT_int1},
    {"int", FDT_int32},
    {"float", FDT_float32},
};

int front_dtype_parse(const char *text, size_t len) {
  for (int i = 0; i < FDT_COUNT; i++)
    if ((strlen(front_dtypes[i].text) == len && !memcmp(front_dtypes[i].text, text, len)) ||
        (strlen(front_dtypes[i].name) == len && !memcmp(front_dtypes[i].name, text, len)))
      return i;
  for (size_t i = 0; i < DT_COUNTOF(dt_aliases); i++)
    if (strlen(dt_aliases[i].text) == len && !memcmp(dt_aliases[i].text, text, len))
      return (int)dt_aliases[i].dt;
  return -1;
}
const char *front_dtype_name(FrontDtype d) { return front_dtypes[d].name; }
const char *front_dtype_short(FrontDtype d) { return front_dtypes[d].text; }
IrDtype front_dtype_ir(FrontDtype d) { return front_dtypes[d].ir; }
int front_dtype_bits(FrontDtype d) { return front_dtypes[d].bits; }
bool front_dtype_is_unsigned(FrontDtype d) {
  return front_dtypes[d].kind == DTK_UINT || front_dtypes[d].kind == DTK_BOOL;
}

// ---- element types -------------------------------------------------------------------------------
const Elem *elem_number(Front *f, FrontDtype d) {
  if (!f->numbers[d]) {
    Elem *e = arena_new(f->a, Elem);
    e->dt = d;
    f->numbers[d] = e;
  }
  return f->numbers[d];
}

const Elem *elem_pointer(Front *f, const Elem *to) {
  for (uint32_t i = 0; i < f->pointers.len; i++)
    if (f->pointers.data[i]->to == to) return f->pointers.data[i];
  Elem *e = arena_new(f->a, Elem);
  e->to = to;
  vec_push(f->a, &f->pointers, e);
  return e;
}

const char *elem_text(Front *f, const Elem *e) {
  static const char *const triton[FDT_COUNT] = {
      [FDT_float8e4nv] = "fp8e4nv", [FDT_float8e5] = "fp8e5", [FDT_float16] = "fp16",
      [FDT_bfloat16] = "bf16",      [FDT_float32] = "fp32",   [FDT_float64] = "fp64"};
  if (e->to) return arena_printf(f->a, "*%s", elem_text(f, e->to));
  return triton[e->dt] ? triton[e->dt] : front_dtypes[e->dt].name;
}

const char *front_shape_text(Front *f, int rank, const int32_t *shape) {
  const char *s = "";
  for (int i = 0; i < rank; i++) s = arena_printf(f->a, "%s%s%d", s, i ? ", " : "", shape[i]);
  return arena_printf(f->a, "[%s]", s);
}

const char *type_text(Front *f, const Type *t) {
  const char *e = elem_text(f, t->elem);
  if (t->rank) return arena_printf(f->a, "%s%s", e, front_shape_text(f, t->rank, t->shape));
  return t->thread ? arena_printf(f->a, "thread %s", e) : e;
}

IrDtype front_ir_pointee(const Elem *to) { return to->to ? IR_i64 : front_dtypes[to->dt].ir; }

const IrType *front_ir_of(Front *f, const Type *t) {
  const IrLevel level = t->thread ? LEVEL_thread : LEVEL_program;
  if (elem_is_ptr(t->elem)) {
    const IrDtype to = front_ir_pointee(t->elem->to);
    return t->rank ? ir_type_ptr_tile(f->ctx, to, SPACE_global, t->rank, t->shape)
                   : ir_type_ptr(f->ctx, to, SPACE_global, level);
  }
  const IrDtype d = front_dtypes[t->elem->dt].ir;
  return t->rank ? ir_type_tile(f->ctx, d, t->rank, t->shape) : ir_type_scalar(f->ctx, d, level);
}

const Type *type_scalar(Front *f, const Elem *e, bool thread) {
  Type *t = arena_new(f->a, Type);
  t->elem = e;
  t->thread = thread;
  return t;
}

const Type *type_tile(Front *f, const Elem *e, int rank, const int32_t *shape) {
  Type *t = arena_new(f->a, Type);
  t->elem = e;
  t->rank = rank;
  if (rank) memcpy(t->shape, shape, sizeof(int32_t) * (size_t)rank);
  return t;
}

const Type *type_with_elem(Front *f, const Type *t, const Elem *e) {
  Type *n = arena_copy(f->a, t, sizeof *t);
  n->elem = e;
  return n;
}

bool type_same_shape(const Type *x, const Type *y) {
  return x->rank == y->rank && !memcmp(x->shape, y->shape, sizeof(int32_t) * (size_t)x->rank);
}

// ---- promotion -----------------------------------------------------------------------------------
static int kind_rank(const Elem *e) { // bool < int < float
  const DtKind k = elem_kind(e);
  return k == DTK_BOOL ? 0 : k == DTK_SINT || k == DTK_UINT ? 1 : 2;
}

// C's rule: the wider one wins; of equal width the unsigned one.
const Elem *front_promote_ints(Front *f, const Elem *x, const Elem *y) {
  (void)f;
  const int wx = elem_bits(x), wy = elem_bits(y);
  const bool ux = elem_is_unsigned(x), uy = elem_is_unsigned(y);
  if (ux == uy) return wx > wy ? x : y;
  if (ux) return wx >= wy ? x : y;
  return wy >= wx ? y : x;
}

Promote front_promote(Front *f, const Elem *x, bool x_number, const Elem *y, bool y_number, bool div,
                      const Elem **out) {
  const bool narrow_div_x = x->dt == FDT_float16 || x->dt == FDT_bfloat16;
  const bool narrow_div_y = y->dt == FDT_float16 || y->dt == FDT_bfloat16;
  *out = NULL;
  if (x_number != y_number) {
    const Elem *num = x_number ? x : y, *ten = x_number ? y : x;
    if (kind_rank(num) <= kind_rank(ten)) {
      *out = div && (x_number ? narrow_div_y : narrow_div_x) ? elem_number(f, FDT_float32) : ten;
      return PROMOTE_OK;
    }
  }
  const FrontDtype a = x->dt, b = y->dt;
  FrontDtype r = FDT_void;
  if (a == FDT_float64 || b == FDT_float64)
    r = FDT_float64;
  else if (a == FDT_float32 || b == FDT_float32)
    r = FDT_float32;
  else if (a == FDT_float16 || b == FDT_float16)
    r = div ? FDT_float32 : FDT_float16;
  else if (a == FDT_bfloat16 || b == FDT_bfloat16)
    r = !div && a == b ? FDT_bfloat16 : FDT_float32;
  else if (elem_kind(x) == DTK_FP8 && elem_kind(y) == DTK_FP8)
    r = a == b ? a : FDT_float16;
  else if (elem_kind(x) == DTK_FP8 || elem_kind(y) == DTK_FP8 || !elem_is_int(x) || !elem_is_int(y))
    return PROMOTE_BAD;
  if (r != FDT_void) {
    *out = elem_number(f, r);
    return PROMOTE_OK;
  }
  if (div && elem_is_unsigned(x) != elem_is_unsigned(y)) return PROMOTE_MIXED_SIGN;
  *out = front_promote_ints(f, x, y);
  return PROMOTE_OK;
}

const Elem *elem_of_int(Front *f, AstInt v) {
  const AstInt one = 1;
  if (v >= -(one << 31) && v < one << 31) return elem_number(f, FDT_int32);
  if (v >= 0 && v < one << 32) return elem_number(f, FDT_uint32);
  if (v >= -(one << 63) && v < one << 63) return elem_number(f, FDT_int64);
  if (v >= 0 && v < one << 64) return elem_number(f, FDT_uint64);
  return NULL;
}

const Elem *elem_of_float(Front *f, double v) {
  const double m = fabs(v);
  const bool single = m == 0 || isnan(v) || isinf(v) || (m >= 0x1p-126 && m <= 0x1.fffffep+127);
  return elem_number(f, single ? FDT_float32 : FDT_float64);
}

bool front_int_fits(const Elem *e, AstInt v) {
  const int w = elem_bits(e);
  const AstInt one = 1;
  if (elem_is_bool(e)) return v == 0 || v == 1;
  return elem_is_unsigned(e) ? v >= 0 && v < one << w : v >= -(one << (w - 1)) && v < one << (w - 1);
}
