// Operators on values: what promotes to what, how scalars meet tiles and program values meet thread values, and the
// IR that each operation becomes.
//
// Levels: a scalar operation is per thread when one of its operands is, or when it stands under control that not all
// threads take; program-level operands are then raised. Tiles never mix with thread scalars.
#include "front/front_impl.h"

#include <math.h>
#include <string.h>

IrBuilder *front_at(Lower *L, Loc loc) {
  L->b.loc = loc;
  return &L->b;
}

bool front_no_code(Lower *L, Loc loc) {
  if (L->b.block) return false;
  front_err(L, loc, "this needs code that runs, but only compile-time values can stand outside functions");
  return true;
}

const Why *front_why_new(Front *f, Loc loc, const char *text) {
  Why *w = arena_new(f->a, Why);
  w->loc = loc;
  w->text = text;
  return w;
}

const Why *front_why_of(const Value *a, const Value *b) {
  if (a && a->kind == VAL_RT && a->rt.why) return a->rt.why;
  return b && b->kind == VAL_RT ? b->rt.why : NULL;
}

static void note_why(Lower *L, const Why *w) {
  if (w && w->loc.line) diag(L->f->d, DIAG_NOTE, w->loc, "it differs between threads because of %s", w->text);
}

bool front_tiles_allowed(Lower *L, Loc loc, const char *what) {
  if (!L->thread) return true;
  if (!front_err_fresh(L->f, loc)) return false;
  diag(L->f->d, DIAG_ERROR, loc,
       "%s needs all threads of the block, but stands under control that only some threads take", what);
  diag_hint(L->f->d, "move it out of the branch or loop; a tile can be chosen with tl.where");
  if (L->thread->loc.line)
    diag(L->f->d, DIAG_NOTE, L->thread->loc, "the condition here differs between threads");
  note_why(L, L->thread->why);
  return false;
}

bool front_is_uniform(Lower *L, const Value *v, Loc loc, const char *what) {
  if (!val_is_thread(v)) return true;
  if (!front_err_fresh(L->f, loc)) return false;
  diag(L->f->d, DIAG_ERROR, loc, "%s must be the same in all threads, but this value differs between them",
       what);
  diag_hint(
      L->f->d,
      "use a value of the whole program here, such as tl.program_id(0) or a tl.load from a program-level pointer");
  note_why(L, v->rt.why);
  return false;
}

Value *front_emit_result(Lower *L, IrValue *ir, const Type *t, const Why *why) {
  return val_rt(L->f, ir, t, why ? why : L->thread ? L->thread->why : NULL);
}

// ---- constants and levels --------------------------------------------------------------------------
Value *front_const_of(Lower *L, const Elem *e, const Value *n, Loc loc) {
  Front *f = L->f;
  if (front_no_code(L, loc)) return f->poison;
  const Type *t = type_scalar(f, e, L->thread != NULL);
  const IrType *it = front_ir_of(f, t);
  IrValue *ir;
  if (elem_is_ptr(e)) { // 0: the null pointer
    IrValue *zero =
        ir_const_i(front_at(L, loc), ir_type_scalar(f->ctx, IR_i64, t->thread ? LEVEL_thread : LEVEL_program),
                   n->kind == VAL_INT ? (int64_t)n->i : 0);
    ir = ir_cast(front_at(L, loc), OP_int2ptr, zero, it);
  } else if (elem_is_float(e)) {
    const double d = n->kind == VAL_FLOAT ? n->f : n->kind == VAL_INT ? (double)n->i : n->b;
    ir = ir_const_f(front_at(L, loc), it, d);
  } else {
    int64_t i = n->kind == VAL_INT ? (int64_t)n->i : n->kind == VAL_BOOL ? n->b : 0;
    if (n->kind == VAL_FLOAT) i = isfinite(n->f) && fabs(n->f) < 0x1p63 ? (int64_t)n->f : 0;
    if (elem_is_bool(e)) i = n->kind == VAL_FLOAT ? n->f != 0 : n->kind == VAL_INT ? n->i != 0 : n->b;
    ir = ir_const_i(front_at(L, loc), it, i);
  }
  return front_emit_result(L, ir, t, NULL);
}

Value *front_to_rt(Lower *L, Value *v, Loc loc) {
  Front *f = L->f;
  switch (v->kind) {
  case VAL_POISON: return v;
  case VAL_RT: return L->thread ? front_raise_level(L, v, loc) : v;
  case VAL_BOOL: return front_const_of(L, elem_number(f, FDT_int1), v, loc);
  case VAL_INT: {
    const Elem *e = elem_of_int(f, v->i);
    if (!e) return front_err(L, loc, "the constant %s does not fit 64 bits", val_repr(f, v, false));
    return front_const_of(L, e, v, loc);
  }
  case VAL_FLOAT: return front_const_of(L, elem_of_float(f, v->f), v, loc);
  case VAL_MEM: {
    if (!front_tiles_allowed(L, loc, "reading a whole tile")) return f->poison;
    const IrType *rt = front_ir_of(f, v->mem.type);
    IrOp *op = ir_build(front_at(L, loc), OP_mem_load, 1, &v->mem.ir, 1, &rt, 0);
    return val_rt(f, ir_result(op, 0), v->mem.type, NULL);
  }
  default: return front_err(L, loc, "a number or a tile is needed here, not %s", val_kind_text(f, v));
  }
}

Value *front_raise_level(Lower *L, Value *v, Loc loc) {
  if (v->kind != VAL_RT || v->rt.type->rank || v->rt.type->thread || front_no_code(L, loc)) return v;
  const Type *t = type_scalar(L->f, v->rt.type->elem, true);
  return front_emit_result(L, ir_to_thread(front_at(L, loc), v->rt.ir), t, v->rt.why);
}

Value *front_as_level(Lower *L, Value *v, bool thread, Loc loc) {
  return thread ? front_raise_level(L, v, loc) : v;
}

// Both scalars per thread if one is, or if the place is.
static bool align_levels(Lower *L, Value **x, Value **y, Loc loc) {
  if ((*x)->rt.type->rank || (*y)->rt.type->rank) return false;
  const bool thread = L->thread || (*x)->rt.type->thread || (*y)->rt.type->thread;
  const Why *w = front_why_of(*x, *y);
  *x = front_as_level(L, *x, thread, loc);
  *y = front_as_level(L, *y, thread, loc);
  if (thread && w) {
    if (!(*x)->rt.why) *x = val_rt(L->f, (*x)->rt.ir, (*x)->rt.type, w);
    if (!(*y)->rt.why) *y = val_rt(L->f, (*y)->rt.ir, (*y)->rt.type, w);
  }
  return thread;
}

// ---- casts -----------------------------------------------------------------------------------------
static Value *emit_cast(Lower *L, IrOpKind k, Value *v, const Elem *to, Loc loc) {
  const Type *t = type_with_elem(L->f, v->rt.type, to);
  return front_emit_result(L, ir_cast(front_at(L, loc), k, v->rt.ir, front_ir_of(L->f, t)), t, v->rt.why);
}

static Value *retype(Lower *L, Value *v, const Elem *to) { // same bits, other signedness
  return val_rt(L->f, v->rt.ir, type_with_elem(L->f, v->rt.type, to), v->rt.why);
}

static Value *zero_like(Lower *L, Value *v, Loc loc) {
  const IrType *it = v->rt.ir->type;
  IrValue *z = elem_is_float(v->rt.type->elem) ? ir_const_f(front_at(L, loc), it, 0)
                                               : ir_const_i(front_at(L, loc), it, 0);
  return val_rt(L->f, z, v->rt.type, v->rt.why);
}

static Value *not_zero(Lower *L, Value *v, Loc loc) {
  const Type *t = type_with_elem(L->f, v->rt.type, elem_number(L->f, FDT_int1));
  Value *z = zero_like(L, v, loc);
  IrValue *c = elem_is_float(v->rt.type->elem) ? ir_fcmp(front_at(L, loc), FCMP_une, v->rt.ir, z->rt.ir)
                                               : ir_cmp(front_at(L, loc), CMP_ne, v->rt.ir, z->rt.ir);
  return front_emit_result(L, c, t, v->rt.why);
}

Value *front_cast_to(Lower *L, Value *v, const Elem *to, bool rtz, Loc loc) {
  Front *f = L->f;
  if (v->kind == VAL_POISON) return v;
  if (v->kind != VAL_RT) {
    if (val_is_number(v) && !elem_is_ptr(to)) {
      // a number that the target cannot hold exactly goes the way of run-time values
      if (v->kind != VAL_INT || elem_is_float(to) || front_int_fits(to, v->i) || elem_is_bool(to))
        return front_const_of(L, to, v, loc);
    }
    v = front_to_rt(L, v, loc);
    if (v->kind == VAL_POISON) return v;
  }
  const Elem *from = v->rt.type->elem;
  if (from == to) return L->thread ? front_raise_level(L, v, loc) : v;
  if (v->rt.type->rank && !front_tiles_allowed(L, loc, "a cast of a tile")) return f->poison;
  if (L->thread) v = front_raise_level(L, v, loc);
  if (!elem_is_ptr(to) && elem_kind(to) == DTK_NAMED)
    return front_err_hint(L, loc,
                          "fp8 types with hardware behind them here are tl.float8e4nv and tl.float8e5",
                          "no value can have the type %s here", elem_text(f, to));
  if (elem_is_ptr(from)) {
    if (elem_is_ptr(to)) {
      if (front_ir_pointee(from->to) == front_ir_pointee(to->to)) return retype(L, v, to);
      return emit_cast(L, OP_bitcast, v, to, loc);
    }
    if (elem_is_int(to) && elem_bits(to) == 64) return emit_cast(L, OP_ptr2int, v, to, loc);
    if (elem_is_bool(to))
      return not_zero(L, emit_cast(L, OP_ptr2int, v, elem_number(f, FDT_int64), loc), loc);
    return front_err_hint(L, loc, "cast it to tl.int64 first", "a pointer cannot become %s",
                          elem_text(f, to));
  }
  if (elem_is_ptr(to)) {
    if (!elem_is_int(from)) return front_err(L, loc, "%s cannot become a pointer", elem_text(f, from));
    return emit_cast(
        L, OP_int2ptr,
        front_cast_to(L, v, elem_number(f, elem_is_unsigned(from) ? FDT_uint64 : FDT_int64), false, loc), to,
        loc);
  }
  const bool ff = elem_is_float(from), ft = elem_is_float(to);
  const Elem *f32 = elem_number(f, FDT_float32);
  if (elem_is_bool(to))
    return not_zero(L, elem_kind(from) == DTK_FP8 ? front_cast_to(L, v, f32, false, loc) : v, loc);
  if (ff && ft) {
    Value *r = emit_cast(L, OP_fcast, v, to, loc);
    if (rtz && elem_bits(to) < elem_bits(from)) ir_set_attr_i(r->rt.ir->def, ATTR_round, ROUND_rtz);
    return r;
  }
  if (ff) {
    if (elem_kind(from) == DTK_FP8) v = front_cast_to(L, v, f32, false, loc);
    return emit_cast(L, elem_is_unsigned(to) ? OP_f2ui : OP_f2si, v, to, loc);
  }
  if (ft) {
    const IrOpKind k = elem_is_unsigned(from) ? OP_ui2f : OP_si2f;
    if (elem_kind(to) == DTK_FP8) return front_cast_to(L, emit_cast(L, k, v, f32, loc), to, rtz, loc);
    return emit_cast(L, k, v, to, loc);
  }
  const int wf = elem_bits(from), wt = elem_bits(to);
  if (wf == wt) return retype(L, v, to);
  return emit_cast(L, wt < wf ? OP_trunc : elem_is_unsigned(from) ? OP_ext_u : OP_ext_s, v, to, loc);
}

Value *front_bitcast_to(Lower *L, Value *v, const Elem *to, Loc loc) {
  Front *f = L->f;
  v = front_to_rt(L, v, loc);
  if (v->kind == VAL_POISON) return v;
  const Elem *from = v->rt.type->elem;
  if (from == to) return v;
  if (v->rt.type->rank && !front_tiles_allowed(L, loc, "a cast of a tile")) return f->poison;
  if (elem_is_ptr(from) || elem_is_ptr(to)) return front_cast_to(L, v, to, false, loc);
  if (elem_bits(from) != elem_bits(to))
    return front_err_hint(L, loc, "leave out bitcast=True to convert the value",
                          "a bitcast from %s to %s changes the width", elem_text(f, from), elem_text(f, to));
  if (!elem_is_float(from) && !elem_is_float(to)) return retype(L, v, to);
  return emit_cast(L, OP_bitcast, v, to, loc);
}

// ---- broadcasting ------------------------------------------------------------------------------------
bool front_broadcast_shape(int rx, const int32_t *sx, int ry, const int32_t *sy, int *rank, int32_t *shape) {
  *rank = rx > ry ? rx : ry;
  for (int i = 0; i < *rank; i++) { // from the right
    const int32_t a = i < rx ? sx[rx - 1 - i] : 1, b = i < ry ? sy[ry - 1 - i] : 1;
    if (a != b && a != 1 && b != 1) return false;
    shape[*rank - 1 - i] = a > b ? a : b;
  }
  return true;
}

Value *front_broadcast_to(Lower *L, Value *v, int rank, const int32_t *shape, Loc loc) {
  Front *f = L->f;
  v = front_to_rt(L, v, loc);
  if (v->kind == VAL_POISON) return v;
  const Type *t = v->rt.type;
  if (t->rank == rank && !memcmp(t->shape, shape, sizeof(int32_t) * (size_t)rank)) return v;
  const Type *to = type_tile(f, t->elem, rank, shape);
  if (!t->rank) {
    if (!front_tiles_allowed(L, loc, "making a tile") ||
        !front_is_uniform(L, v, loc, "a scalar that fills a tile"))
      return f->poison;
    return val_rt(f, ir_splat(front_at(L, loc), v->rt.ir, rank, shape), to, NULL);
  }
  if (!front_tiles_allowed(L, loc, "a tile operation")) return f->poison;
  int r;
  int32_t s[IR_MAX_RANK];
  if (t->rank > rank || !front_broadcast_shape(t->rank, t->shape, rank, shape, &r, s) ||
      memcmp(s, shape, sizeof(int32_t) * (size_t)rank))
    return front_err_hint(L, loc, "counted from the last axis, each size must be equal or 1",
                          "a tile of shape %s does not broadcast to %s",
                          front_shape_text(f, t->rank, t->shape), front_shape_text(f, rank, shape));
  IrValue *ir = v->rt.ir;
  for (int i = t->rank; i < rank; i++) ir = ir_expand_dims(front_at(L, loc), ir, 0);
  if (ir_type_elems(ir->type) != ir_type_elems(front_ir_of(f, to)))
    ir = ir_broadcast(front_at(L, loc), ir, rank, shape);
  return val_rt(f, ir, to, NULL);
}

// Makes two run-time values one shape. Reports and returns false where that cannot be.
bool front_broadcast_pair(Lower *L, Value **x, Value **y, Loc loc) {
  Front *f = L->f;
  const Type *tx = (*x)->rt.type, *ty = (*y)->rt.type;
  if (!tx->rank && !ty->rank) {
    align_levels(L, x, y, loc);
    return true;
  }
  int rank;
  int32_t shape[IR_MAX_RANK];
  if (!front_broadcast_shape(tx->rank, tx->shape, ty->rank, ty->shape, &rank, shape)) {
    front_err_hint(
        L, loc,
        tx->rank == 1 && ty->rank == 1
            ? "sizes must be equal or 1; for all pairs of two ranges write a[:, None] and b[None, :]"
            : "counted from the last axis, sizes must be equal or 1; x[:, None] adds an axis",
        "tiles of shapes %s and %s do not broadcast", front_shape_text(f, tx->rank, tx->shape),
        front_shape_text(f, ty->rank, ty->shape));
    return false;
  }
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  if (n > IR_MAX_ELEMS) {
    front_err(L, loc, "the operands broadcast to %s, which is %lld elements; a tile has at most %d",
              front_shape_text(f, rank, shape), (long long)n, IR_MAX_ELEMS);
    return false;
  }
  *x = front_broadcast_to(L, *x, rank, shape, loc);
  *y = front_broadcast_to(L, *y, rank, shape, loc);
  return (*x)->kind == VAL_RT && (*y)->kind == VAL_RT;
}

// ---- compile-time arithmetic ---------------------------------------------------------------------------
static double num_double(const Value *v) {
  return v->kind == VAL_FLOAT ? v->f : v->kind == VAL_INT ? (double)v->i : v->b;
}
static AstInt num_int(const Value *v) { return v->kind == VAL_INT ? v->i : v->b; }

static bool compare_order(AstOp op, int c) { // c: sign of x - y
  return op == AOP_Lt ? c < 0 : op == AOP_Le ? c <= 0 : op == AOP_Gt ? c > 0 : c >= 0;
}

static Value *too_big(Lower *L, Loc loc) {
  return front_err(L, loc, "a compile-time integer beyond 127 bits");
}

static Value *int_pow(Lower *L, AstInt x, AstInt y, Loc loc) {
  AstInt r = 1;
  if (x == 0 || x == 1 || x == -1) return val_int(L->f, y == 0 ? 1 : x == -1 && y % 2 == 0 ? 1 : x);
  for (AstInt i = 0; i < y; i++)
    if (__builtin_mul_overflow(r, x, &r)) return too_big(L, loc);
  return val_int(L->f, r);
}

static Value *const_ints(Lower *L, AstOp op, AstInt x, AstInt y, bool bools, Loc loc) {
  Front *f = L->f;
  AstInt r = 0;
  switch (op) {
  case AOP_Add: return __builtin_add_overflow(x, y, &r) ? too_big(L, loc) : val_int(f, r);
  case AOP_Sub: return __builtin_sub_overflow(x, y, &r) ? too_big(L, loc) : val_int(f, r);
  case AOP_Mul: return __builtin_mul_overflow(x, y, &r) ? too_big(L, loc) : val_int(f, r);
  case AOP_Div: return y ? val_float(f, (double)x / (double)y) : front_err(L, loc, "division by zero");
  case AOP_FloorDiv:
  case AOP_Mod: {
    if (!y) return front_err(L, loc, "division by zero");
    if (y == -1)
      return op == AOP_Mod                              ? val_int(f, 0)
             : __builtin_sub_overflow((AstInt)0, x, &r) ? too_big(L, loc)
                                                        : val_int(f, r);
    AstInt q = x / y, m = x % y;
    if (m && (m < 0) != (y < 0)) q--, m += y; // Python's floor
    return val_int(f, op == AOP_FloorDiv ? q : m);
  }
  case AOP_Pow: return y < 0 ? val_float(f, pow((double)x, (double)y)) : int_pow(L, x, y, loc);
  case AOP_BitAnd: return bools ? val_bool(f, x & y) : val_int(f, x & y);
  case AOP_BitOr: return bools ? val_bool(f, x | y) : val_int(f, x | y);
  case AOP_BitXor: return bools ? val_bool(f, x ^ y) : val_int(f, x ^ y);
  case AOP_Shl:
    if (y < 0) return front_err(L, loc, "a negative shift count");
    if (!x) return val_int(f, 0);
    if (y > 126 || (x < 0 ? -x : x) >> (126 - y)) return too_big(L, loc);
    return val_int(f, x * ((AstInt)1 << y));
  case AOP_Shr:
    if (y < 0) return front_err(L, loc, "a negative shift count");
    return val_int(f, y > 126 ? (x < 0 ? -1 : 0) : x >> y);
  default: return front_err(L, loc, "'%s' is not defined on integers", ast_op_text(op));
  }
}

static Value *const_floats(Lower *L, AstOp op, double x, double y, Loc loc) {
  Front *f = L->f;
  switch (op) {
  case AOP_Add: return val_float(f, x + y);
  case AOP_Sub: return val_float(f, x - y);
  case AOP_Mul: return val_float(f, x * y);
  case AOP_Div: return y != 0 ? val_float(f, x / y) : front_err(L, loc, "division by zero");
  case AOP_FloorDiv: return y != 0 ? val_float(f, floor(x / y)) : front_err(L, loc, "division by zero");
  case AOP_Mod: {
    if (y == 0) return front_err(L, loc, "division by zero");
    double m = fmod(x, y);
    if (m != 0 && (m < 0) != (y < 0)) m += y;
    return val_float(f, m);
  }
  case AOP_Pow: return val_float(f, pow(x, y));
  default: return front_err(L, loc, "'%s' is not defined on floats", ast_op_text(op));
  }
}

static bool contains(const Value *seq, const Value *x) {
  if (seq->kind == VAL_STR) return x->kind == VAL_STR && strstr(seq->s->s, x->s->s) != NULL;
  if (seq->kind == VAL_DICT) {
    for (uint32_t i = 0; i < seq->seq.n; i++)
      if (x->kind == VAL_STR && seq->seq.fields[i] == x->s) return true;
    return false;
  }
  for (uint32_t i = 0; i < seq->seq.n; i++)
    if (val_equal(seq->seq.items[i], x)) return true;
  return false;
}

static Value *concat(Lower *L, const Value *x, const Value *y, Loc loc) {
  if (x->seq.n + y->seq.n > FRONT_MAX_UNROLL)
    return front_err(L, loc, "a tuple of more than %d items", FRONT_MAX_UNROLL);
  ValueVec v = {0};
  for (uint32_t i = 0; i < x->seq.n; i++) vec_push(L->f->a, &v, x->seq.items[i]);
  for (uint32_t i = 0; i < y->seq.n; i++) vec_push(L->f->a, &v, y->seq.items[i]);
  return val_tuple(L->f, v.data, v.len, x->seq.list);
}

// `ACTIVATION == "relu"` where the function relu was passed: never equal, and surely not what was meant.
static void warn_of_name(Front *f, const Value *fn, const Value *text, Loc loc) {
  if (fn->kind != VAL_FUNC || text->kind != VAL_STR || fn->func->name != text->s) return;
  diag(f->d, DIAG_WARNING, loc, "this compares the function '%s' with a text, its name: they are never equal",
       text->s->s);
  diag_hint(f->d, "pass the text: '\"%s\"'", text->s->s);
}

Value *front_const_binary(Lower *L, AstOp op, const Value *x, const Value *y, Loc loc) {
  Front *f = L->f;
  if (op == AOP_Eq || op == AOP_Ne) {
    warn_of_name(f, x, y, loc);
    warn_of_name(f, y, x, loc);
    return val_bool(f, val_equal(x, y) == (op == AOP_Eq));
  }
  if (op == AOP_In || op == AOP_NotIn) {
    if (y->kind != VAL_TUPLE && y->kind != VAL_STR && y->kind != VAL_DICT)
      return front_err(L, loc, "'%s' needs a tuple, a list or a string on its right, not %s", ast_op_text(op),
                       val_kind_text(f, y));
    return val_bool(f, contains(y, x) == (op == AOP_In));
  }
  if (val_is_number(x) && val_is_number(y)) {
    const bool floats = x->kind == VAL_FLOAT || y->kind == VAL_FLOAT;
    if (ast_op_compares(op)) {
      if (floats) {
        const double a = num_double(x), b = num_double(y);
        return val_bool(f, !isnan(a) && !isnan(b) && compare_order(op, a < b ? -1 : a > b));
      }
      return val_bool(f, compare_order(op, num_int(x) < num_int(y) ? -1 : num_int(x) > num_int(y)));
    }
    if (floats) return const_floats(L, op, num_double(x), num_double(y), loc);
    return const_ints(L, op, num_int(x), num_int(y), x->kind == VAL_BOOL && y->kind == VAL_BOOL, loc);
  }
  if (x->kind == VAL_STR && y->kind == VAL_STR) {
    if (op == AOP_Add && x->s->len + y->s->len > FRONT_MAX_TEXT)
      return front_err(L, loc, "a string of more than %d bytes", FRONT_MAX_TEXT);
    if (op == AOP_Add) return val_str(f, arena_printf(f->a, "%s%s", x->s->s, y->s->s));
    if (ast_op_compares(op)) return val_bool(f, compare_order(op, strcmp(x->s->s, y->s->s)));
  }
  if (x->kind == VAL_TUPLE && y->kind == VAL_TUPLE && op == AOP_Add) return concat(L, x, y, loc);
  if (x->kind == VAL_TUPLE && y->kind == VAL_INT && op == AOP_Mul && y->i >= 0 && y->i * x->seq.n <= 1024) {
    Value *r = val_tuple(f, NULL, 0, x->seq.list);
    for (AstInt i = 0; i < y->i; i++) r = concat(L, r, x, loc);
    return r;
  }
  return front_err(L, loc, "'%s' is not defined between %s and %s", ast_op_text(op), val_kind_text(f, x),
                   val_kind_text(f, y));
}

// ---- run-time arithmetic -----------------------------------------------------------------------------------
static Value *emit2(Lower *L, IrOpKind k, Value *x, Value *y, Loc loc) {
  return front_emit_result(L, ir_binary(front_at(L, loc), k, x->rt.ir, y->rt.ir), x->rt.type,
                           front_why_of(x, y));
}

static Value *emit_compare(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  const Elem *e = x->rt.type->elem;
  const Type *t = type_with_elem(L->f, x->rt.type, elem_number(L->f, FDT_int1));
  IrValue *ir;
  if (elem_is_float(e)) {
    static const IrFcmp f[] = {FCMP_oeq, FCMP_une, FCMP_olt, FCMP_ole, FCMP_ogt, FCMP_oge};
    ir = ir_fcmp(front_at(L, loc), f[op - AOP_Eq], x->rt.ir, y->rt.ir);
  } else {
    static const IrCmp s[] = {CMP_eq, CMP_ne, CMP_slt, CMP_sle, CMP_sgt, CMP_sge};
    static const IrCmp u[] = {CMP_eq, CMP_ne, CMP_ult, CMP_ule, CMP_ugt, CMP_uge};
    ir = ir_cmp(front_at(L, loc), (elem_is_unsigned(e) || elem_is_ptr(e) ? u : s)[op - AOP_Eq], x->rt.ir,
                y->rt.ir);
  }
  return front_emit_result(L, ir, t, front_why_of(x, y));
}

// A number on one side takes the type that the operation computes in; everything else is cast to it.
static Value *operand_as(Lower *L, Value *v, const Elem *e, Loc loc) {
  Front *f = L->f;
  if (!val_is_number(v)) return front_cast_to(L, v, e, false, loc);
  if (elem_is_int(e) && v->kind != VAL_FLOAT) {
    const AstInt i = num_int(v);
    if (i < 0 && elem_is_unsigned(e))
      return front_err_hint(L, loc, "cast one of them first", "%s meets a value of the unsigned type %s",
                            val_kind_text(f, v), elem_text(f, e));
    if (!front_int_fits(e, i))
      return front_err_hint(L, loc, "cast the other operand to a wider type first",
                            "%s is out of range for %s", val_kind_text(f, v), elem_text(f, e));
  }
  return front_const_of(L, e, v, loc);
}

// A number where it meets a tile as a value of its own type (in comparisons): cast to e as that value would be.
static Value *number_as_value(Lower *L, Value *v, const Elem *own, const Elem *e, Loc loc) {
  Front *f = L->f;
  if (v->kind == VAL_FLOAT && own->dt == FDT_float32) v = val_float(f, (double)(float)v->f);
  if (v->kind == VAL_INT && elem_is_int(e) && !elem_is_bool(e) && !front_int_fits(e, v->i)) { // wraps
    const AstInt span = (AstInt)1 << elem_bits(e);
    AstInt i = v->i & (span - 1);
    if (!elem_is_unsigned(e) && i >= span / 2) i -= span;
    v = val_int(f, i);
  }
  return front_const_of(L, e, v, loc);
}

// Brings both operands to the type of the operation and to one shape. NULL: reported.
static const Elem *meet(Lower *L, AstOp op, Value **x, Value **y, bool div, Loc loc) {
  Front *f = L->f;
  const bool nx = val_is_number(*x), ny = val_is_number(*y);
  const Elem *ex = nx ? NULL : (*x)->rt.type->elem, *ey = ny ? NULL : (*y)->rt.type->elem;
  if (nx)
    ex = (*x)->kind == VAL_BOOL  ? elem_number(f, FDT_int1)
         : (*x)->kind == VAL_INT ? elem_of_int(f, (*x)->i)
                                 : elem_of_float(f, (*x)->f);
  if (ny)
    ey = (*y)->kind == VAL_BOOL  ? elem_number(f, FDT_int1)
         : (*y)->kind == VAL_INT ? elem_of_int(f, (*y)->i)
                                 : elem_of_float(f, (*y)->f);
  if (!ex || !ey) {
    front_err(L, loc, "the constant does not fit 64 bits");
    return NULL;
  }
  const Elem *e = NULL;
  if (elem_is_ptr(ex) || elem_is_ptr(ey)) {
    front_err(L, loc, "'%s' is not defined between %s and %s", ast_op_text(op), elem_text(f, ex),
              elem_text(f, ey));
    return NULL;
  }
  const bool compare = ast_op_compares(op); // there a number has the type that it would have as a value
  switch (front_promote(f, ex, nx && !compare, ey, ny && !compare, div, &e)) {
  case PROMOTE_OK: break;
  case PROMOTE_MIXED_SIGN:
    front_err_hint(L, loc, "cast one of them first: the result would depend on which",
                   "'%s' between the signed %s and the unsigned %s", ast_op_text(op),
                   elem_text(f, elem_is_unsigned(ex) ? ey : ex),
                   elem_text(f, elem_is_unsigned(ex) ? ex : ey));
    return NULL;
  case PROMOTE_BAD:
    front_err_hint(L, loc, "cast it to tl.float16 or tl.float32 first", "%s and %s have no common type",
                   elem_text(f, ex), elem_text(f, ey));
    return NULL;
  }
  *x = nx && compare ? number_as_value(L, *x, ex, e, loc) : operand_as(L, *x, e, loc);
  *y = ny && compare ? number_as_value(L, *y, ey, e, loc) : operand_as(L, *y, e, loc);
  if ((*x)->kind != VAL_RT || (*y)->kind != VAL_RT) return NULL;
  if (((*x)->rt.type->rank || (*y)->rt.type->rank) && !front_tiles_allowed(L, loc, "a tile operation"))
    return NULL;
  return front_broadcast_pair(L, x, y, loc) ? e : NULL;
}

static Value *pointer_op(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  Front *f = L->f;
  const bool px = x->kind == VAL_RT && elem_is_ptr(x->rt.type->elem);
  const bool py = y->kind == VAL_RT && elem_is_ptr(y->rt.type->elem);
  if (ast_op_compares(op)) {
    const Elem *e = px ? x->rt.type->elem : y->rt.type->elem;
    if (px && py && x->rt.type->elem != y->rt.type->elem) y = front_bitcast_to(L, y, e, loc);
    if (!px && x->kind == VAL_INT) x = front_const_of(L, e, x, loc);
    if (!py && y->kind == VAL_INT) y = front_const_of(L, e, y, loc);
    if (x->kind != VAL_RT || y->kind != VAL_RT || !elem_is_ptr(x->rt.type->elem) ||
        !elem_is_ptr(y->rt.type->elem))
      return front_err(L, loc, "a pointer compares with another pointer or with 0 only");
    if (!front_broadcast_pair(L, &x, &y, loc)) return f->poison;
    return emit_compare(L, op, x, y, loc);
  }
  if (px && py && op == AOP_Sub) { // in elements
    const Elem *i64 = elem_number(f, FDT_int64);
    Value *d = front_binary_op(L, AOP_Sub, front_cast_to(L, x, i64, false, loc),
                               front_cast_to(L, y, i64, false, loc), loc);
    const int bytes = ir_dtypes[front_ir_pointee(x->rt.type->elem->to)].bytes;
    return bytes == 1 ? d : front_binary_op(L, AOP_FloorDiv, d, val_int(f, bytes), loc);
  }
  if ((px && py) || (op != AOP_Add && !(op == AOP_Sub && px)))
    return front_err_hint(L, loc, "the value that a pointer points to is tl.load(pointer)",
                          "'%s' is not defined between %s and %s", ast_op_text(op), val_kind_text(f, x),
                          val_kind_text(f, y));
  Value *p = px ? x : y, *n = px ? y : x;
  n = front_to_rt(L, n, loc);
  if (n->kind == VAL_POISON) return n;
  const Elem *e = n->rt.type->elem;
  if (!elem_is_int(e)) return front_err(L, loc, "a pointer moves by integers, not by %s", elem_text(f, e));
  if (p->rt.type->elem->to->dt == FDT_void && !p->rt.type->elem->to->to)
    return front_err_hint(L, loc, "cast it to a pointer with an element type first",
                          "a pointer to nothing cannot be moved");
  // 32-bit offsets: signed ones are extended by ptr_add, unsigned ones here
  if (elem_is_unsigned(e) && elem_bits(e) < 64)
    n = front_cast_to(L, n, elem_number(f, FDT_uint64), false, loc);
  else if (elem_bits(e) < 32)
    n = front_cast_to(L, n, elem_number(f, FDT_int32), false, loc);
  if (op == AOP_Sub) n = front_unary_op(L, AOP_Neg, n, loc);
  if (L->thread) p = front_raise_level(L, p, loc), n = front_raise_level(L, n, loc);
  if ((p->rt.type->rank || n->rt.type->rank) && !front_tiles_allowed(L, loc, "a tile operation"))
    return f->poison;
  if (n->kind == VAL_POISON || !front_broadcast_pair(L, &p, &n, loc)) return f->poison;
  return front_emit_result(L, ir_ptr_add(front_at(L, loc), p->rt.ir, n->rt.ir), p->rt.type,
                           front_why_of(p, n));
}

static Value *runtime_pow(Lower *L, Value *x, Value *y, Loc loc) {
  Front *f = L->f;
  if (y->kind == VAL_INT && y->i >= 0 && y->i <= 64 && x->kind == VAL_RT) {
    Value *r = NULL;
    for (AstInt n = y->i; n; n >>= 1) {
      if (n & 1) r = r ? front_binary_op(L, AOP_Mul, r, x, loc) : x;
      if (n > 1) x = front_binary_op(L, AOP_Mul, x, x, loc);
    }
    return r ? r
             : front_broadcast_to(L, front_const_of(L, x->rt.type->elem, val_int(f, 1), loc),
                                  x->rt.type->rank, x->rt.type->shape, loc);
  }
  if (!meet(L, AOP_Pow, &x, &y, false, loc)) return f->poison;
  if (!elem_is_float(x->rt.type->elem) || elem_bits(x->rt.type->elem) < 32)
    return front_err_hint(L, loc, "cast the operands to tl.float32 first",
                          "'**' is defined on fp32 and fp64");
  return front_emit_result(L, ir_math(front_at(L, loc), MATH_FN_pow, x->rt.ir, y->rt.ir), x->rt.type,
                           front_why_of(x, y));
}

static Value *bitwise(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  Front *f = L->f;
  const bool was_signed = x->kind == VAL_RT ? !elem_is_unsigned(x->rt.type->elem)
                                            : y->kind == VAL_RT && !elem_is_unsigned(y->rt.type->elem);
  const Elem *e = meet(L, op, &x, &y, false, loc);
  if (!e) return f->poison;
  if (!elem_is_int(e))
    return front_err(L, loc, "'%s' needs integers, not %s", ast_op_text(op), elem_text(f, e));
  const IrOpKind k = op == AOP_BitAnd   ? OP_and
                     : op == AOP_BitOr  ? OP_or
                     : op == AOP_BitXor ? OP_xor
                     : op == AOP_Shl    ? OP_shl
                     : was_signed       ? OP_shr_s
                                        : OP_shr_u;
  return emit2(L, k, x, y, loc);
}

static Value *divide(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  Front *f = L->f;
  if (op == AOP_FloorDiv) {
    const Elem *e = meet(L, op, &x, &y, true, loc);
    if (!e) return f->poison;
    if (!elem_is_int(e))
      return front_err_hint(L, loc, "use tl.floor(a / b)", "'//' is defined on integers only, not on %s",
                            elem_text(f, e));
    return emit2(L, elem_is_unsigned(e) ? OP_div_u : OP_div_s, x, y, loc);
  }
  const Elem *e = meet(L, op, &x, &y, true, loc);
  if (!e) return f->poison;
  if (op == AOP_Mod) {
    if (elem_is_float(e)) return emit2(L, OP_frem, x, y, loc);
    return emit2(L, elem_is_unsigned(e) ? OP_rem_u : OP_rem_s, x, y, loc);
  }
  if (elem_is_int(e)) {
    x = front_cast_to(L, x, elem_number(f, FDT_float32), false, loc);
    y = front_cast_to(L, y, elem_number(f, FDT_float32), false, loc);
  }
  return emit2(L, OP_fdiv, x, y, loc);
}

static bool is_rt_ptr(const Value *v) { return v->kind == VAL_RT && elem_is_ptr(v->rt.type->elem); }

Value *front_binary_op(Lower *L, AstOp op, Value *x, Value *y, Loc loc) {
  Front *f = L->f;
  if (x->kind == VAL_POISON || y->kind == VAL_POISON) return f->poison;
  if (x->kind == VAL_MEM) x = front_to_rt(L, x, loc);
  if (y->kind == VAL_MEM) y = front_to_rt(L, y, loc);
  if (x->kind == VAL_TUPLE && y->kind == VAL_TUPLE && op == AOP_Add) return concat(L, x, y, loc);
  if (x->kind == VAL_VECTOR || y->kind == VAL_VECTOR) return front_vector_op(L, op, x, y, loc);
  if (x->kind == VAL_SMEM || y->kind == VAL_SMEM) return front_smem_move(L, op, x, y, loc);
  if (x->kind != VAL_RT && y->kind != VAL_RT) {
    if (x->kind == VAL_OPAQUE || y->kind == VAL_OPAQUE) {
      const Value *o = x->kind == VAL_OPAQUE ? x : y;
      if (!L->b.block) return val_opaque(f, o->s->s);
      return front_err(L, loc, "%s cannot be used in a kernel", val_kind_text(f, o));
    }
    return front_const_binary(L, op, x, y, loc);
  }
  if ((x->kind != VAL_RT && !val_is_number(x)) || (y->kind != VAL_RT && !val_is_number(y)))
    return front_err_hint(L, loc,
                          op == AOP_Eq || op == AOP_Ne ? "compare compile-time values with `is` and `is not`"
                          : x->kind == VAL_NONE || y->kind == VAL_NONE
                              ? "None was passed here; guard its use with `if x is not None:`"
                              : NULL,
                          "'%s' is not defined between %s and %s", ast_op_text(op), val_kind_text(f, x),
                          val_kind_text(f, y));
  if (is_rt_ptr(x) || is_rt_ptr(y)) return pointer_op(L, op, x, y, loc);
  switch (op) {
  case AOP_Add:
  case AOP_Sub:
  case AOP_Mul: {
    const Elem *e = meet(L, op, &x, &y, false, loc);
    if (!e) return f->poison;
    if (elem_kind(e) == DTK_FP8) { // no arithmetic of that width anywhere: as Triton, through fp16
      const Elem *h = elem_number(f, FDT_float16);
      x = front_cast_to(L, x, h, false, loc), y = front_cast_to(L, y, h, false, loc);
      e = h;
    }
    if (elem_is_float(e))
      return emit2(L, op == AOP_Add ? OP_fadd : op == AOP_Sub ? OP_fsub : OP_fmul, x, y, loc);
    return emit2(L, op == AOP_Add ? OP_add : op == AOP_Sub ? OP_sub : OP_mul, x, y, loc);
  }
  case AOP_Div:
  case AOP_FloorDiv:
  case AOP_Mod: return divide(L, op, x, y, loc);
  case AOP_Pow: return runtime_pow(L, x, y, loc);
  case AOP_BitAnd:
  case AOP_BitOr:
  case AOP_BitXor:
  case AOP_Shl:
  case AOP_Shr: return bitwise(L, op, x, y, loc);
  default: break;
  }
  if (ast_op_compares(op))
    return meet(L, op, &x, &y, false, loc) ? emit_compare(L, op, x, y, loc) : f->poison;
  if (op == AOP_MatMul)
    return front_err_hint(L, loc, "write tl.dot(a, b)", "'@' is not part of the language");
  return front_err(L, loc, "'%s' is not defined on run-time values", ast_op_text(op));
}

Value *front_unary_op(Lower *L, AstOp op, Value *x, Loc loc) {
  Front *f = L->f;
  if (x->kind == VAL_POISON) return x;
  if (x->kind == VAL_MEM) x = front_to_rt(L, x, loc);
  if (op == AOP_Not) {
    if (x->kind == VAL_OPAQUE) return x;
    if (x->kind == VAL_RT && !elem_is_bool(x->rt.type->elem))
      return front_err_hint(L, loc, "compare with 0: x == 0", "`not` needs a condition, not %s",
                            type_text(f, x->rt.type));
    Value *c = front_condition(L, x, loc);
    if (c->kind == VAL_BOOL) return val_bool(f, !c->b);
    if (c->kind != VAL_RT) return c;
    IrValue *one = ir_const_i(front_at(L, loc), c->rt.ir->type, 1);
    return front_emit_result(L, ir_binary(front_at(L, loc), OP_xor, c->rt.ir, one), c->rt.type, c->rt.why);
  }
  if (x->kind == VAL_INT || x->kind == VAL_BOOL) {
    const AstInt i = num_int(x);
    return op == AOP_Neg   ? const_ints(L, AOP_Sub, 0, i, false, loc)
           : op == AOP_Pos ? val_int(f, i)
                           : val_int(f, ~i);
  }
  if (x->kind == VAL_FLOAT && op != AOP_Invert) return val_float(f, op == AOP_Neg ? -x->f : x->f);
  if (x->kind == VAL_OPAQUE && !L->b.block) return x;
  if (x->kind != VAL_RT || elem_is_ptr(x->rt.type->elem))
    return front_err(L, loc, "unary '%s' is not defined on %s", ast_op_text(op), val_kind_text(f, x));
  if (x->rt.type->rank && !front_tiles_allowed(L, loc, "a tile operation")) return f->poison;
  if (L->thread) x = front_raise_level(L, x, loc);
  const Elem *e = x->rt.type->elem;
  if (op == AOP_Pos) return x;
  if (op == AOP_Neg) {
    if (elem_kind(e) == DTK_FP8)
      x = front_cast_to(L, x, elem_number(f, FDT_float16), false, loc), e = x->rt.type->elem;
    if (elem_is_float(e))
      return front_emit_result(L, ir_unary(front_at(L, loc), OP_fneg, x->rt.ir), x->rt.type, x->rt.why);
    return emit2(L, OP_sub, zero_like(L, x, loc), x, loc);
  }
  if (!elem_is_int(e)) return front_err(L, loc, "'~' needs integers, not %s", elem_text(f, e));
  IrValue *ones = ir_const_i(front_at(L, loc), x->rt.ir->type, elem_is_bool(e) ? 1 : -1);
  return front_emit_result(L, ir_binary(front_at(L, loc), OP_xor, x->rt.ir, ones), x->rt.type, x->rt.why);
}

Value *front_minimum_maximum(Lower *L, bool max, Value *x, Value *y, bool nan, Loc loc) {
  Front *f = L->f;
  if (x->kind == VAL_POISON || y->kind == VAL_POISON) return f->poison;
  if (val_is_number(x) && val_is_number(y)) {
    const Value *c = front_const_binary(L, AOP_Lt, x, y, loc);
    return c->b != max ? x : y;
  }
  // numbers take part as values of their own types, and bf16 as fp32
  Value **v[2] = {&x, &y};
  for (int i = 0; i < 2; i++) {
    *v[i] = front_to_rt(L, *v[i], loc);
    if ((*v[i])->kind == VAL_POISON) return f->poison;
    if ((*v[i])->rt.type->elem->dt == FDT_bfloat16)
      *v[i] = front_cast_to(L, *v[i], elem_number(f, FDT_float32), false, loc);
  }
  const Elem *e = meet(L, AOP_Add, &x, &y, false, loc);
  if (!e) return f->poison;
  if (elem_kind(e) == DTK_FP8)
    return front_err_hint(L, loc, "cast to tl.float16 first", "minimum and maximum are not defined on fp8");
  if (elem_is_float(e)) {
    Value *r = emit2(L, max ? OP_fmax : OP_fmin, x, y, loc);
    if (nan) ir_set_attr_i(r->rt.ir->def, ATTR_nan, 1);
    return r;
  }
  const bool u = elem_is_unsigned(e);
  return emit2(L, max ? (u ? OP_max_u : OP_max_s) : (u ? OP_min_u : OP_min_s), x, y, loc);
}

Value *front_select_op(Lower *L, Value *c, Value *x, Value *y, Loc loc) {
  Front *f = L->f;
  if (c->kind == VAL_POISON || x->kind == VAL_POISON || y->kind == VAL_POISON) return f->poison;
  if (!val_is_number(x)) x = front_to_rt(L, x, loc);
  if (!val_is_number(y)) y = front_to_rt(L, y, loc);
  c = front_cast_to(L, front_to_rt(L, c, loc), elem_number(f, FDT_int1), false, loc);
  if (c->kind == VAL_POISON || x->kind == VAL_POISON || y->kind == VAL_POISON) return f->poison;
  if (val_is_number(x) && val_is_number(y)) { // two numbers: as two scalars
    x = front_to_rt(L, x, loc);
    y = front_to_rt(L, y, loc);
  }
  if (is_rt_ptr(x) || is_rt_ptr(y)) {
    if (!is_rt_ptr(x))
      x = val_is_number(x) ? front_const_of(L, y->rt.type->elem, x, loc)
                           : front_cast_to(L, x, y->rt.type->elem, false, loc);
    if (!is_rt_ptr(y))
      y = val_is_number(y) ? front_const_of(L, x->rt.type->elem, y, loc)
                           : front_cast_to(L, y, x->rt.type->elem, false, loc);
    if (x->kind == VAL_POISON || y->kind == VAL_POISON) return f->poison;
    if (x->rt.type->elem != y->rt.type->elem) y = front_bitcast_to(L, y, x->rt.type->elem, loc);
    if (!front_broadcast_pair(L, &x, &y, loc)) return f->poison;
  } else if (!meet(L, AOP_Add, &x, &y, false, loc)) {
    return f->poison;
  }
  if (!front_broadcast_pair(L, &c, &x, loc) || !front_broadcast_pair(L, &x, &y, loc) ||
      !front_broadcast_pair(L, &c, &x, loc))
    return f->poison;
  return front_emit_result(L, ir_select(front_at(L, loc), c->rt.ir, x->rt.ir, y->rt.ir), x->rt.type,
                           c->rt.why ? c->rt.why : front_why_of(x, y));
}

Value *front_condition(Lower *L, Value *v, Loc loc) {
  Front *f = L->f;
  switch (v->kind) {
  case VAL_POISON: return v;
  case VAL_BOOL: return v;
  case VAL_NONE: return f->vfalse;
  case VAL_INT: return val_bool(f, v->i != 0);
  case VAL_TUPLE:
  case VAL_DICT: return val_bool(f, v->seq.n != 0);
  case VAL_STR: return val_bool(f, v->s->len != 0);
  case VAL_FLOAT: return val_bool(f, v->f != 0);
  case VAL_DTYPE:
  case VAL_FUNC:
  case VAL_BUILTIN:
  case VAL_METHOD:
  case VAL_CLASS:
  case VAL_OBJECT:
  case VAL_BLOCKPTR:
  case VAL_DESC: return f->vtrue;
  case VAL_RT: return front_cast_to(L, v, elem_number(f, FDT_int1), false, loc);
  default:
    return front_err_hint(L, loc, "compare it with something, e.g. x is not None", "%s cannot be a condition",
                          val_kind_text(f, v));
  }
}

// In kernels a branch is taken on bools, integers and None; the truth of a float or a string is more likely a mistake.
bool front_branches_on(Lower *L, const Value *v, Loc loc) {
  if ((v->kind != VAL_FLOAT && v->kind != VAL_STR) || L->keep_const || !L->b.block) return true;
  front_err_hint(L, loc, v->kind == VAL_STR ? "compare it: mode == \"...\"" : "compare it: x != 0.0",
                 "a compile-time condition is a bool, an integer or None, not %s", val_kind_text(L->f, v));
  return false;
}

Value *front_int_scalar(Lower *L, Value *v, FrontDtype d, const char *what, Loc loc) {
  Front *f = L->f;
  if (v->kind == VAL_POISON) return v;
  if ((v->kind != VAL_RT && v->kind != VAL_INT && v->kind != VAL_BOOL) ||
      (v->kind == VAL_RT && (v->rt.type->rank || !elem_is_int(v->rt.type->elem))))
    return front_err(L, loc, "%s must be an integer scalar, not %s", what, val_kind_text(f, v));
  return front_cast_to(L, v, elem_number(f, d), false, loc);
}

IrValue *front_rt_i32(Lower *L, Value *v, const char *what, Loc loc) {
  Value *r = front_int_scalar(L, v, FDT_int32, what, loc);
  return r->kind == VAL_RT ? r->rt.ir : NULL;
}
