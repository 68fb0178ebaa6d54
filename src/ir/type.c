// type: interned types. Equal types are one pointer, so that comparing types is comparing pointers.
//
// An IrCtx holds the table (open addressing, doubled at half full) and the strings of one compile. Every type that a
// constructor is given is made as asked; whether it makes sense is for the verifier to say, so that bad input ends in
// a diagnostic and not in a crash.
#include "ir/ir_impl.h"

#include <string.h>

struct IrCtx {
  Arena *arena;
  Strings *strings;
  const IrType **slots;
  uint32_t nslots, live;
};

const IrDtypeInfo ir_dtypes[IR_NDTYPES] = {
#define CLASS_OF_INT IR_INT
#define CLASS_OF_FLOAT IR_FLOAT
#define DTYPE(name, bits, bytes, class) {#name, bits, bytes, CLASS_OF_##class},
#include "ir/dtypes.def"
#undef DTYPE
};

const char *const ir_space_names[4] = {"global", "shared", "tensor", "scratch"};

IrCtx *ir_ctx_new(Arena *a) {
  IrCtx *c = arena_new(a, IrCtx);
  c->arena = a;
  c->strings = strings_new(a);
  c->nslots = 64;
  c->slots = arena_array(a, const IrType *, c->nslots);
  return c;
}

Strings *ir_strings(IrCtx *c) { return c->strings; }

static bool same_layout(const IrLayout *a, const IrLayout *b) {
  return a == b || (a && b && layout_same(a, b));
}

static bool same_type(const IrType *a, const IrType *b) {
  return a->kind == b->kind && a->dtype == b->dtype && a->ptr_elem == b->ptr_elem && a->level == b->level &&
         a->space == b->space && a->rank == b->rank && a->stages == b->stages &&
         same_layout(a->layout, b->layout) &&
         memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

static uint32_t hash_type(const IrType *t) {
  const int32_t head[] = {(int32_t)t->kind,  (int32_t)t->dtype, t->ptr_elem, (int32_t)t->level,
                          (int32_t)t->space, t->rank,           t->stages};
  uint64_t h = hash_bytes(head, sizeof head, 0);
  if (t->layout) h = hash_bytes(t->layout->at, layout_bits(t->layout) * sizeof t->layout->at[0], h);
  return (uint32_t)hash_bytes(t->shape, (size_t)t->rank * sizeof t->shape[0], h);
}

static const IrType **find_slot(const IrCtx *c, const IrType *t) {
  const uint32_t mask = c->nslots - 1;
  for (uint32_t i = hash_type(t) & mask;; i = (i + 1) & mask) {
    if (!c->slots[i] || same_type(c->slots[i], t)) return &c->slots[i];
  }
}

static const IrType *intern(IrCtx *c, const IrType *t) {
  const IrType **slot = find_slot(c, t);
  if (*slot) return *slot;
  if ((c->live + 1) * 2 > c->nslots) {
    const IrType **old = c->slots;
    const uint32_t n = c->nslots;
    c->slots = arena_array(c->arena, const IrType *, (size_t)n * 2);
    c->nslots = n * 2;
    for (uint32_t i = 0; i < n; i++) {
      if (old[i]) *find_slot(c, old[i]) = old[i];
    }
    slot = find_slot(c, t);
  }
  c->live++;
  IrType *made = arena_copy(c->arena, t, sizeof *t);
  if (t->layout) made->layout = arena_copy(c->arena, t->layout, sizeof *t->layout);
  return *slot = made;
}

// A rank that no type can have becomes the largest one with that many axes of the given sizes.
static void set_shape(IrType *t, int rank, const int32_t *shape) {
  t->rank = rank < 0 ? 0 : rank > IR_MAX_RANK ? IR_MAX_RANK : rank;
  for (int i = 0; i < t->rank; i++) t->shape[i] = shape[i];
}

const IrType *ir_type_scalar(IrCtx *c, IrDtype d, IrLevel level) {
  return intern(c, &(IrType){.kind = IR_SCALAR, .dtype = d, .level = level});
}

const IrType *ir_type_ptr(IrCtx *c, IrDtype pointee, IrSpace space, IrLevel level) {
  return intern(c, &(IrType){.kind = IR_PTR, .dtype = pointee, .space = space, .level = level});
}

const IrType *ir_type_tile(IrCtx *c, IrDtype d, int rank, const int32_t *shape) {
  IrType t = {.kind = IR_TILE, .dtype = d};
  set_shape(&t, rank, shape);
  return intern(c, &t);
}

const IrType *ir_type_ptr_tile(IrCtx *c, IrDtype pointee, IrSpace space, int rank, const int32_t *shape) {
  IrType t = {.kind = IR_TILE, .dtype = pointee, .ptr_elem = true, .space = space};
  set_shape(&t, rank, shape);
  return intern(c, &t);
}

const IrType *ir_type_memdesc(IrCtx *c, IrDtype d, IrSpace space, int rank, const int32_t *shape,
                              int stages) {
  IrType t = {.kind = IR_MEMDESC, .dtype = d, .space = space, .stages = stages};
  set_shape(&t, rank, shape);
  return intern(c, &t);
}

const IrType *ir_type_mbarrier(IrCtx *c, int stages) {
  return intern(c, &(IrType){.kind = IR_MBARRIER, .stages = stages});
}

const IrType *ir_type_desc(IrCtx *c, IrDtype d, int rank, const int32_t *shape) {
  IrType t = {.kind = IR_DESC, .dtype = d};
  set_shape(&t, rank, shape);
  return intern(c, &t);
}

const IrType *ir_type_token(IrCtx *c) { return intern(c, &(IrType){.kind = IR_TOKEN}); }

// ---- derived types ----------------------------------------------------------------------------------------------

const IrType *ir_type_with_dtype(IrCtx *c, const IrType *like, IrDtype d) {
  IrType t = *like;
  if (t.kind == IR_PTR) t.kind = IR_SCALAR;
  t.dtype = d;
  if (t.kind == IR_SCALAR || t.kind == IR_TILE) {
    t.ptr_elem = false;
    t.space = SPACE_global;
  }
  return intern(c, &t);
}

const IrType *ir_type_with_shape(IrCtx *c, const IrType *like, int rank, const int32_t *shape) {
  const bool is_ptr = ir_type_is_ptr(like);
  if (rank == 0) {
    if (like->kind == IR_SCALAR || like->kind == IR_PTR) return like;
    return is_ptr ? ir_type_ptr(c, like->dtype, like->space, LEVEL_program)
                  : ir_type_scalar(c, like->dtype, LEVEL_program);
  }
  if (is_ptr) return ir_type_ptr_tile(c, like->dtype, like->space, rank, shape);
  if (like->kind == IR_SCALAR || like->kind == IR_TILE) return ir_type_tile(c, like->dtype, rank, shape);
  IrType t = *like;
  memset(t.shape, 0, sizeof t.shape);
  set_shape(&t, rank, shape);
  return intern(c, &t);
}

const IrType *ir_type_with_layout(IrCtx *c, const IrType *tile, const IrLayout *l) {
  IrType t = *tile;
  t.layout = l;
  return intern(c, &t);
}

const IrType *ir_type_with_level(IrCtx *c, const IrType *like, IrLevel level) {
  if (like->kind != IR_SCALAR && like->kind != IR_PTR) return like;
  IrType t = *like;
  t.level = level;
  return intern(c, &t);
}

const IrType *ir_type_elem(IrCtx *c, const IrType *tile) {
  return tile->kind == IR_TILE && tile->ptr_elem ? ir_type_ptr(c, tile->dtype, tile->space, LEVEL_program)
         : tile->kind == IR_PTR                  ? ir_type_ptr(c, tile->dtype, tile->space, LEVEL_program)
                                                 : ir_type_scalar(c, tile->dtype, LEVEL_program);
}

// ---- questions --------------------------------------------------------------------------------------------------

static bool has_number(const IrType *t) {
  return t->kind == IR_SCALAR || (t->kind == IR_TILE && !t->ptr_elem);
}

bool ir_type_is_int(const IrType *t) { return has_number(t) && ir_dtypes[t->dtype].cls == IR_INT; }
bool ir_type_is_float(const IrType *t) { return has_number(t) && ir_dtypes[t->dtype].cls == IR_FLOAT; }
bool ir_type_is_ptr(const IrType *t) { return t->kind == IR_PTR || (t->kind == IR_TILE && t->ptr_elem); }
bool ir_type_is_thread(const IrType *t) {
  return (t->kind == IR_SCALAR || t->kind == IR_PTR) && t->level == LEVEL_thread;
}

// Saturates, so that absurd shapes stay absurd.
int64_t ir_type_elems(const IrType *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) {
    if (bits_mul_overflow(n, t->shape[i], &n)) return INT64_MAX;
  }
  return n;
}

int ir_type_bytes(const IrType *t) { return ir_type_is_ptr(t) ? 8 : ir_dtypes[t->dtype].bytes; }

uint64_t ir_dtype_mask(IrDtype d) {
  return ir_dtypes[d].bits == 64 ? UINT64_MAX : (1ull << ir_dtypes[d].bits) - 1;
}

// ---- classes of operands ----------------------------------------------------------------------------------------

const char *const ir_class_texts[CLASS_COUNT] = {
    [CLASS_any] = "a scalar, pointer or tile",
    [CLASS_int] = "an integer or a tile of integers",
    [CLASS_num] = "a number or a tile of numbers",
    [CLASS_flt] = "a float or a tile of floats",
    [CLASS_i1] = "an i1 or a tile of i1",
    [CLASS_ptr] = "a pointer or a tile of pointers",
    [CLASS_i32] = "a scalar i32",
    [CLASS_idx] = "a scalar i32 or i64",
    [CLASS_sptr] = "a single pointer",
    [CLASS_si1] = "a scalar i1",
    [CLASS_tile] = "a tile",
    [CLASS_desc] = "a desc",
    [CLASS_memdesc] = "a memdesc",
    [CLASS_mbarrier] = "an mbarrier",
    [CLASS_token] = "a token",
    [CLASS_val] = "a value",
};

bool ir_class_holds(IrClass c, const IrType *t) {
  const bool scalar = t->kind == IR_SCALAR;
  switch (c) {
  case CLASS_any: return scalar || t->kind == IR_PTR || t->kind == IR_TILE;
  case CLASS_int: return ir_type_is_int(t);
  case CLASS_num: return ir_type_is_int(t) || ir_type_is_float(t);
  case CLASS_flt: return ir_type_is_float(t);
  case CLASS_i1: return ir_type_is_int(t) && t->dtype == IR_i1;
  case CLASS_ptr: return ir_type_is_ptr(t);
  case CLASS_i32: return scalar && t->dtype == IR_i32;
  case CLASS_idx: return scalar && (t->dtype == IR_i32 || t->dtype == IR_i64);
  case CLASS_sptr: return t->kind == IR_PTR;
  case CLASS_si1: return scalar && t->dtype == IR_i1;
  case CLASS_tile: return t->kind == IR_TILE;
  case CLASS_desc: return t->kind == IR_DESC;
  case CLASS_memdesc: return t->kind == IR_MEMDESC;
  case CLASS_mbarrier: return t->kind == IR_MBARRIER;
  case CLASS_token: return t->kind == IR_TOKEN;
  case CLASS_val:
  case CLASS_COUNT: break;
  }
  return true;
}
