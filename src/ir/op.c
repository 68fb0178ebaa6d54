// op: facts of ops. The tables of ops.def, attrs.def and enums.def as data, attributes of an op, constants.
//
// Attributes of an op are kept sorted by name, so that two ops with the same attributes have equal arrays.
#include "ir/ir_impl.h"

#include <string.h>

#define TRAIT_IF(s, c, bit) (__builtin_strchr(s, c) ? (bit) : 0)
#define TRAITS(s) \
  TRAIT_IF(s, 'P', TRAIT_PURE) | TRAIT_IF(s, 'S', TRAIT_SAME) | TRAIT_IF(s, 'E', TRAIT_ELEMENTWISE) | \
      TRAIT_IF(s, 'C', TRAIT_COMMUTATIVE) | TRAIT_IF(s, 'T', TRAIT_TERMINATOR) | \
      TRAIT_IF(s, 'R', TRAIT_CONVERGENT) | TRAIT_IF(s, 'U', TRAIT_UNIQUE)

const IrMmaInfo ir_mma[MMA_COUNT] = {
#define MMA_SHAPE(name, m, n, k, a, b, c, as, bs, cs) {#name, m, n, k, IR_##a, IR_##b, IR_##c, as, bs, cs},
#include "ir/mma.def"
#undef MMA_SHAPE
};

const IrWgmmaInfo ir_wgmma[WGMMA_COUNT] = {
#define WGMMA_SHAPE(name, k, a, b, c, any) {#name, k, IR_##a, IR_##b, IR_##c, any},
#include "ir/wgmma.def"
#undef WGMMA_SHAPE
};

const IrOpInfo ir_ops[OP_COUNT] = {
#define OP(name, operands, results, regions, attrs, executor, traits, stages, effects, text) \
  {#name, operands, results, regions, attrs, stages, effects, text, EXEC_##executor, TRAITS(traits)},
#include "ir/ops.def"
#undef OP
};

// ---- enumerations and attributes ----------------------------------------------------------------------------------

#define ENUM_BEGIN(T, P) static const char *const texts_##T[] = {
#define ENUM(P, name) #name,
#define ENUM_END(T, P) \
  } \
  ;
#include "ir/enums.def"
#undef ENUM_BEGIN
#undef ENUM
#undef ENUM_END
static const char *const texts_0[] = {NULL};

const IrAttrInfo ir_attrs[ATTR_COUNT] = {
#define ATTR(name, kind, enumtype) {#name, AK_##kind, texts_##enumtype, (int)DT_COUNTOF(texts_##enumtype)},
#include "ir/attrs.def"
#undef ATTR
};

const char *const ir_stage_names[4] = {"tile", "laid", "lowered", "placed"};

static bool same_text(const char *s, const char *text, size_t len) {
  return strncmp(s, text, len) == 0 && s[len] == 0;
}

static int index_of(const char *const *texts, int n, const char *text, size_t len) {
  for (int i = 0; i < n; i++) {
    if (texts[i] && same_text(texts[i], text, len)) return i;
  }
  return -1;
}

int ir_op_by_name(const char *name, size_t len) {
  if (!len) return -1;
  for (int i = 0; i < OP_COUNT; i++) {
    if (ir_ops[i].name[0] == name[0] && same_text(ir_ops[i].name, name, len)) return i;
  }
  return -1;
}

int ir_attr_by_name(const char *name, size_t len) {
  for (int i = 0; i < ATTR_COUNT; i++) {
    if (same_text(ir_attrs[i].name, name, len)) return i;
  }
  return -1;
}

int ir_enum_by_text(IrAttrName n, const char *text, size_t len) {
  return ir_attrs[n].kind == AK_ENUM ? index_of(ir_attrs[n].texts, ir_attrs[n].ntexts, text, len) : -1;
}

int ir_stage_by_name(const char *s, size_t len) { return index_of(ir_stage_names, 4, s, len); }
int ir_wait_by_name(const char *s, size_t len) { return index_of(texts_IrWaitClass, WAIT_COUNT, s, len); }
const char *ir_wait_name(IrWaitClass w) { return w < WAIT_COUNT ? texts_IrWaitClass[w] : "none"; }

const char *ir_enum_text(IrAttrName n, int64_t v) {
  const IrAttrInfo *info = &ir_attrs[n];
  return info->kind == AK_ENUM && v >= 0 && v < info->ntexts ? info->texts[v] : NULL;
}

bool ir_op_legal_in(IrOpKind k, IrStage s) { return strchr(ir_ops[k].stages, "tlwp"[s]) != NULL; }

const IrAttr *ir_attr(const IrOp *op, IrAttrName n) {
  for (uint32_t i = 0; i < op->nattrs; i++) {
    if (op->attrs[i].name == n) return &op->attrs[i];
  }
  return NULL;
}

int64_t ir_attr_i(const IrOp *op, IrAttrName n) {
  const IrAttr *a = ir_attr(op, n);
  return a ? a->i : 0;
}

const char *ir_attr_s(const IrOp *op, IrAttrName n) {
  const IrAttr *a = ir_attr(op, n);
  return a && a->s ? a->s->s : NULL;
}

static IrAttr *attr_for(IrOp *op, IrAttrName n) {
  uint32_t at = 0;
  while (at < op->nattrs && op->attrs[at].name < n) at++;
  if (at < op->nattrs && op->attrs[at].name == n) return &op->attrs[at];
  if (!op->nattrs || bits_pow2(op->nattrs)) { // room is always the next power of two
    IrAttr *more = arena_array(op->parent->func->module->arena, IrAttr, op->nattrs ? op->nattrs * 2 : 1);
    if (op->nattrs) memcpy(more, op->attrs, op->nattrs * sizeof *more);
    op->attrs = more;
  }
  memmove(&op->attrs[at + 1], &op->attrs[at], (op->nattrs - at) * sizeof *op->attrs);
  op->nattrs++;
  op->attrs[at] = (IrAttr){.name = n};
  return &op->attrs[at];
}

void ir_set_attr_i(IrOp *op, IrAttrName n, int64_t v) { attr_for(op, n)->i = v; }
void ir_set_attr_s(IrOp *op, IrAttrName n, const Str *s) { attr_for(op, n)->s = s; }

void ir_set_attr_ints(IrOp *op, IrAttrName n, const int64_t *v, uint32_t count) {
  int64_t *copy = arena_array(op->parent->func->module->arena, int64_t, count);
  if (count) memcpy(copy, v, count * sizeof *copy);
  IrAttr *a = attr_for(op, n);
  a->ints.v = copy;
  a->ints.n = count;
}

void ir_del_attr(IrOp *op, IrAttrName n) {
  for (uint32_t i = 0; i < op->nattrs; i++) {
    if (op->attrs[i].name != n) continue;
    memmove(&op->attrs[i], &op->attrs[i + 1], (op->nattrs - i - 1) * sizeof *op->attrs);
    op->nattrs--;
    return;
  }
}

// ---- classes of operands ------------------------------------------------------------------------------------------

static const char *const class_names[CLASS_COUNT] = {
    [CLASS_any] = "any",         [CLASS_int] = "int",
    [CLASS_num] = "num",         [CLASS_flt] = "flt",
    [CLASS_i1] = "i1",           [CLASS_ptr] = "ptr",
    [CLASS_i32] = "i32",         [CLASS_idx] = "idx",
    [CLASS_sptr] = "sptr",       [CLASS_si1] = "si1",
    [CLASS_tile] = "tile",       [CLASS_desc] = "desc",
    [CLASS_memdesc] = "memdesc", [CLASS_mbarrier] = "mbarrier",
    [CLASS_token] = "token",     [CLASS_val] = "val",
};

IrSlots ir_slots(const char *spec) { return (IrSlots){spec}; }

bool ir_slots_next(IrSlots *s, IrSlot *out) {
  const char *p = s->at;
  while (*p == ' ') p++;
  if (!*p) return false;
  *out = (IrSlot){.name = p};
  while (*p && *p != ':') p++;
  out->name_len = (int)(p - out->name);
  if (*p == ':') p++;
  const char *cls = p;
  while (*p && *p != ' ' && *p != '?' && *p != '*') p++;
  const int i = index_of(class_names, CLASS_COUNT, cls, (size_t)(p - cls));
  out->cls = i < 0 ? CLASS_COUNT : (IrClass)i; // COUNT: a slip in ops.def, which a test looks for
  if (*p == '?') out->optional = true, p++;
  if (*p == '*') out->many = true, p++;
  s->at = p;
  return true;
}

// ---- constants ----------------------------------------------------------------------------------------------------

// The const op behind v, through splat and to_thread, which repeat its value.
static const IrOp *const_op(const IrValue *v) {
  for (; v && v->def; v = ir_operand(v->def, 0)) {
    if (v->def->kind == OP_const) return v->def;
    if (v->def->kind != OP_splat && v->def->kind != OP_to_thread) return NULL;
  }
  return NULL;
}

bool ir_const_int(const IrValue *v, int64_t *out) {
  const IrOp *c = v && ir_type_is_int(v->type) ? const_op(v) : NULL;
  if (!c) return false;
  const int bits = ir_dtypes[v->type->dtype].bits;
  const uint64_t raw = (uint64_t)ir_attr_i(c, ATTR_value) & ir_dtype_mask(v->type->dtype);
  *out = bits == 1 ? (int64_t)raw : (int64_t)(raw << (64 - bits)) >> (64 - bits);
  return true;
}

bool ir_const_float(const IrValue *v, double *out) {
  const IrOp *c = v && ir_type_is_float(v->type) ? const_op(v) : NULL;
  if (!c) return false;
  *out = ir_bits_float(v->type->dtype, (uint64_t)ir_attr_i(c, ATTR_value));
  return true;
}

static uint64_t f64_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

// Rounds to f32 so that a second rounding to a narrower type rounds as if there had been one: to odd.
static float to_odd(double x) {
  float f = (float)x;
  if (x != x || (double)f == x || f - f != 0) return f;
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  if ((f < 0 ? -(double)f : (double)f) > (x < 0 ? -x : x)) u--; // toward zero
  u |= 1;
  memcpy(&f, &u, sizeof f);
  return f;
}

uint64_t ir_float_bits(IrDtype d, double x) {
  switch (d) {
  case IR_f8e4m3: return f8e4m3_from_f32(to_odd(x));
  case IR_f8e5m2: return f8e5m2_from_f32(to_odd(x));
  case IR_f16: return f16_from_f64(x);
  case IR_bf16: return bf16_from_f32(to_odd(x));
  case IR_f32: {
    const float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
  }
  default: return f64_bits(x);
  }
}

double ir_bits_float(IrDtype d, uint64_t bits) {
  switch (d) {
  case IR_f8e4m3: return (double)f8e4m3_to_f32((uint8_t)bits);
  case IR_f8e5m2: return (double)f8e5m2_to_f32((uint8_t)bits);
  case IR_f16: return (double)f16_to_f32((uint16_t)bits);
  case IR_bf16: return (double)bf16_to_f32((uint16_t)bits);
  case IR_f32: {
    const uint32_t u = (uint32_t)bits;
    float f;
    memcpy(&f, &u, sizeof f);
    return (double)f;
  }
  default: {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
  }
  }
}

// ---- who executes -------------------------------------------------------------------------------------------------

typedef enum Levels { LEVELS_NONE, LEVELS_PROGRAM, LEVELS_THREAD } Levels;

static Levels level_of(const IrType *t, Levels so_far) {
  if (!t || so_far == LEVELS_THREAD || ir_type_is_thread(t)) return t ? LEVELS_THREAD : so_far;
  return t->kind == IR_SCALAR || t->kind == IR_PTR || t->kind == IR_TILE ? LEVELS_PROGRAM : so_far;
}

static Levels operand_levels(const IrOp *op, uint32_t n) {
  Levels l = LEVELS_NONE;
  for (uint32_t i = 0; i < n && i < op->noperands; i++) {
    if (op->operands[i].value) l = level_of(op->operands[i].value->type, l);
  }
  return l;
}

// Region ops: the level of what decides, not of what is carried.
static Levels control_levels(const IrOp *op) {
  switch (op->kind) {
  case OP_if:
  case OP_switch: return operand_levels(op, 1);
  case OP_for: return operand_levels(op, 3);
  default: { // while
    const IrOp *end = op->nregions ? op->regions[0]->last : NULL;
    return end && end->kind == OP_cond_yield ? operand_levels(end, 1) : LEVELS_PROGRAM;
  }
  }
}

// An op whose values have no level (a fence, say) acts for whoever the control around it selects.
static bool under_thread_control(const IrOp *op) {
  for (const IrOp *o = op->parent ? op->parent->owner : NULL; o; o = o->parent ? o->parent->owner : NULL) {
    const bool control = o->kind == OP_if || o->kind == OP_for || o->kind == OP_while || o->kind == OP_switch;
    if (control && control_levels(o) == LEVELS_THREAD) return true;
  }
  return false;
}

IrExecutor ir_op_executor(const IrOp *op) {
  if (ir_ops[op->kind].executor != EXEC_LEVEL) return ir_ops[op->kind].executor;
  const int64_t group = ir_attr_i(op, ATTR_group);
  if (group == GROUP_warp) return EXEC_WARP;
  if (group == GROUP_block) return EXEC_BLOCK;
  Levels l;
  if (op->kind == OP_if || op->kind == OP_for || op->kind == OP_while || op->kind == OP_switch) {
    l = control_levels(op);
  } else {
    l = operand_levels(op, op->noperands);
    for (uint32_t i = 0; i < op->nresults; i++) l = level_of(op->results[i].type, l);
  }
  if (l == LEVELS_NONE) return under_thread_control(op) ? EXEC_THREAD : EXEC_PROGRAM;
  return l == LEVELS_THREAD ? EXEC_THREAD : EXEC_PROGRAM;
}
