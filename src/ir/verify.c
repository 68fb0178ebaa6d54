// verify: checks a module against the table of ops. One walk in program order; linear in the size of the module.
//
// A value is visible from its definition to the end of its block. The walk keeps that by id: a definition switches it on,
// the end of the block switches it off, so dominance is one look-up an operand. Types are compared by their
// parts and never made here, so that a module is only read.
#include "ir/verify.h"

#include <string.h>

enum { DEEPEST = 1000 };

bool ir_bad(IrVerifier *v, const IrOp *op, const char *fmt, ...) {
  v->found++;
  va_list ap;
  va_start(ap, fmt);
  const char *what = arena_vprintf(v->d->arena, fmt, ap);
  va_end(ap);
  if (op) {
    diag(v->d, DIAG_ERROR, op->loc, "%s: %s, in '%s'", ir_ops[op->kind].name, what,
         ir_print_op(op, v->d->arena));
  } else if (v->func) {
    diag(v->d, DIAG_ERROR, v->func->loc, "@%s: %s", v->func->name ? v->func->name->s : "", what);
  } else {
    diag(v->d, DIAG_ERROR, LOC_NONE, "module: %s", what);
  }
  return false;
}

const char *ir_type_msg(IrVerifier *v, const IrType *t) { return ir_type_text(t, v->d->arena); }

bool ir_same_shape(const IrType *a, const IrType *b) {
  return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

bool ir_same_elem(const IrType *a, const IrType *b) {
  return a->dtype == b->dtype && ir_type_is_ptr(a) == ir_type_is_ptr(b) && a->space == b->space;
}

bool ir_has_level(const IrType *t) { return t->kind == IR_SCALAR || t->kind == IR_PTR; }

// ---- types --------------------------------------------------------------------------------------------------------

static bool check_shape(IrVerifier *v, const IrOp *op, const IrType *t) {
  const char *text = NULL;
  for (int i = 0; i < t->rank; i++) {
    if (t->shape[i] <= 0)
      text = "has an axis that is not positive";
    else if (t->kind == IR_TILE && !bits_pow2((uint64_t)t->shape[i]))
      text = "has an axis that is no power of two";
  }
  const bool bounded = t->kind == IR_TILE || t->kind == IR_DESC;
  if (!text && bounded && t->rank == 0) text = "has no axis";
  if (!text && bounded && ir_type_elems(t) > IR_MAX_ELEMS) text = "has more than 2^20 elements";
  if (!text && ir_type_elems(t) > INT32_MAX) text = "has more than 2^31 elements";
  if (!text && t->kind == IR_DESC && t->rank > 5) text = "has more than 5 axes";
  if (!text && t->stages < 0) text = "has a negative number of stages";
  return !text || ir_bad(v, op, "type %s %s", ir_type_msg(v, t), text);
}

// A place for every element, for the module's lanes and warps.
static bool check_layout(IrVerifier *v, const IrOp *op, const IrType *t) {
  const IrLayout *l = t->layout;
  const int64_t elems = ir_type_elems(t);
  if (elems < 1 || elems > IR_MAX_ELEMS || !bits_pow2((uint64_t)elems)) return true; // check_shape says so
  if (t->kind == IR_MEMDESC) {
    if (l->n[PLACE_LANE] || l->n[PLACE_WARP] || 1 << l->n[PLACE_REG] != elems)
      return ir_bad(v, op, "%s: the layout is not of the offsets of a buffer", ir_type_msg(v, t));
  } else if (1 << l->n[PLACE_LANE] != v->m->lanes || 1 << l->n[PLACE_WARP] != v->m->num_warps)
    return ir_bad(v, op, "%s: the layout is not for %d lanes and %d warps", ir_type_msg(v, t), v->m->lanes,
                  v->m->num_warps);
  for (uint32_t i = 0; i < layout_bits(l); i++) {
    if (l->at[i] >= elems)
      return ir_bad(v, op, "%s: the layout names an element that the tile does not have", ir_type_msg(v, t));
  }
  return layout_covers(l, (uint32_t)bits_log2((uint64_t)elems)) ||
         ir_bad(v, op, "%s: the layout leaves out elements", ir_type_msg(v, t));
}

static bool check_type(IrVerifier *v, const IrOp *op, const IrType *t) {
  if (!t) return ir_bad(v, op, "a value has no type");
  if (v->m->stage == STAGE_placed) {
    if (ir_type_is_thread(t))
      return ir_bad(v, op, "%s: the placed stage has no thread level", ir_type_msg(v, t));
    if (t->kind == IR_TILE && (t->rank != 1 || t->shape[0] > 64)) {
      return ir_bad(v, op, "%s: tiles of the placed stage are vectors of at most 64 elements",
                    ir_type_msg(v, t));
    }
  }
  if (t->layout && v->m->stage != STAGE_laid && !(t->kind == IR_MEMDESC && v->m->stage == STAGE_lowered))
    return ir_bad(v, op, "a type has a layout, which this stage does not know");
  if (t->layout && !check_layout(v, op, t)) return false;
  if (t->kind == IR_MEMDESC && t->space == SPACE_global) {
    return ir_bad(v, op, "%s: a memdesc lies in shared, tensor or scratch memory", ir_type_msg(v, t));
  }
  return check_shape(v, op, t);
}

// ---- operands and results against their classes -----------------------------------------------------------------------

static void check_class(IrVerifier *v, const IrOp *op, const IrSlot *s, const IrType *t, const char *role) {
  if (!t || ir_class_holds(s->cls, t)) return;
  ir_bad(v, op, "%s %.*s is %s, but must be %s", role, s->name_len, s->name, ir_type_msg(v, t),
         ir_class_texts[s->cls]);
}

static bool check_visible(IrVerifier *v, const IrOp *op, const IrUse *u) {
  const IrValue *x = u->value;
  if (u->user != op || !u->pprev || *u->pprev != u)
    return ir_bad(v, op, "the list of uses of an operand is broken");
  if (!x->type) return ir_bad(v, op, "an operand has no type");
  const IrSeen *s = x->id < v->nseen ? &v->seen[x->id] : NULL;
  if (!s || s->value != x) return ir_bad(v, op, "an operand is defined nowhere before");
  if (!s->visible) return ir_bad(v, op, "an operand is defined in a region that has ended");
  if (s->part != v->part) {
    const IrTypeKind k = x->type->kind;
    const bool fine = (ir_has_level(x->type) && x->type->level == LEVEL_program) || k == IR_DESC ||
                      k == IR_MEMDESC || k == IR_MBARRIER;
    if (!fine) {
      return ir_bad(
          v, op, "a partition captures %s; only program scalars, desc, memdesc and mbarrier may be captured",
          ir_type_msg(v, x->type));
    }
  }
  return true;
}

static bool check_operands(IrVerifier *v, const IrOp *op) {
  const uint32_t before = v->found;
  IrSlots slots = ir_slots(ir_ops[op->kind].operands);
  IrSlot s = {0};
  uint32_t i = 0;
  while (ir_slots_next(&slots, &s)) {
    if (s.many) break;
    const IrValue *x = ir_operand(op, i);
    if (x)
      check_class(v, op, &s, x->type, "operand");
    else if (!s.optional)
      ir_bad(v, op, "operand %.*s is missing", s.name_len, s.name);
    i++;
  }
  for (; s.many && i < op->noperands; i++) {
    if (op->operands[i].value)
      check_class(v, op, &s, op->operands[i].value->type, "operand");
    else
      ir_bad(v, op, "one of the operands %.*s is missing", s.name_len, s.name);
  }
  if (i < op->noperands) ir_bad(v, op, "has %u operands, at most %u are known", op->noperands, i);
  for (uint32_t j = 0; j < op->noperands; j++) {
    if (op->operands[j].value) check_visible(v, op, &op->operands[j]);
  }
  return v->found == before;
}

static bool check_results(IrVerifier *v, const IrOp *op) {
  const uint32_t before = v->found;
  IrSlots slots = ir_slots(ir_ops[op->kind].results);
  IrSlot s = {0};
  uint32_t i = 0;
  while (ir_slots_next(&slots, &s)) {
    if (s.many) break;
    if (i >= op->nresults) return ir_bad(v, op, "result %.*s is missing", s.name_len, s.name);
    check_class(v, op, &s, op->results[i++].type, "result");
  }
  for (; s.many && i < op->nresults; i++) check_class(v, op, &s, op->results[i].type, "result");
  if (i < op->nresults) ir_bad(v, op, "has %u results, %u are known", op->nresults, i);
  for (uint32_t j = 0; j < op->nresults; j++) {
    const IrValue *r = &op->results[j];
    if (r->def != op || r->index != j || r->block != op->parent)
      ir_bad(v, op, "result %u does not know its op", j);
    check_type(v, op, r->type);
  }
  return v->found == before;
}

// ---- attributes -----------------------------------------------------------------------------------------------------

static bool listed(const char *list, const char *word) {
  const size_t n = strlen(word);
  for (const char *p = list; (p = strstr(p, word)); p += n) {
    if ((p == list || p[-1] == ' ') && (p[n] == 0 || p[n] == ' ')) return true;
  }
  return false;
}

static void check_attrs(IrVerifier *v, const IrOp *op) {
  for (uint32_t i = 0; i < op->nattrs; i++) {
    const IrAttr *a = &op->attrs[i];
    if ((unsigned)a->name >= ATTR_COUNT) {
      ir_bad(v, op, "has an attribute of no known name");
      continue;
    }
    const IrAttrInfo *info = &ir_attrs[a->name];
    if (!listed(ir_ops[op->kind].attrs, info->name))
      ir_bad(v, op, "may not carry the attribute %s", info->name);
    if (i && op->attrs[i - 1].name >= a->name) ir_bad(v, op, "its attributes are not sorted by name");
    switch (info->kind) {
    case AK_BOOL:
      if (a->i != 0 && a->i != 1) ir_bad(v, op, "attribute %s is neither true nor false", info->name);
      break;
    case AK_ENUM:
      if (!ir_enum_text(a->name, a->i)) ir_bad(v, op, "attribute %s has no such value", info->name);
      break;
    case AK_DTYPE:
      if (a->i < 0 || a->i >= IR_NDTYPES) ir_bad(v, op, "attribute %s is no dtype", info->name);
      break;
    case AK_STR:
    case AK_SYM:
      if (!a->s) ir_bad(v, op, "attribute %s has no text", info->name);
      break;
    case AK_INTS:
      if (a->ints.n && !a->ints.v) ir_bad(v, op, "attribute %s has no values", info->name);
      break;
    case AK_INT:
    case AK_BITS: break;
    }
  }
}

// Attributes without which an op means nothing.
static void check_required(IrVerifier *v, const IrOp *op) {
  static const struct {
    IrOpKind op;
    IrAttrName attr;
  } required[] = {
      {OP_const, ATTR_value},
      {OP_program_id, ATTR_axis},
      {OP_num_programs, ATTR_axis},
      {OP_arange, ATTR_start},
      {OP_arange, ATTR_end},
      {OP_expand_dims, ATTR_axis},
      {OP_trans, ATTR_perm},
      {OP_gather, ATTR_axis},
      {OP_reduce, ATTR_axis},
      {OP_scan, ATTR_axis},
      {OP_desc_dim, ATTR_axis},
      {OP_desc_stride, ATTR_axis},
      {OP_cmp, ATTR_cmp},
      {OP_fcmp, ATTR_fcmp},
      {OP_math, ATTR_fn},
      {OP_atomic_rmw, ATTR_rmw},
      {OP_desc_rmw, ATTR_rmw},
      {OP_mbarrier_alloc, ATTR_count},
      {OP_shfl, ATTR_shfl},
      {OP_inline_asm, ATTR_asm},
      {OP_inline_asm, ATTR_constraints},
      {OP_switch, ATTR_cases},
      {OP_warp_partitions, ATTR_first},
      {OP_warp_partitions, ATTR_warps},
      {OP_warp_for, ATTR_count},
      {OP_call, ATTR_callee},
  };
  for (size_t i = 0; i < DT_COUNTOF(required); i++) {
    if (required[i].op == op->kind && !ir_attr(op, required[i].attr)) {
      ir_bad(v, op, "needs the attribute %s", ir_attrs[required[i].attr].name);
    }
  }
}

// ---- traits, levels, executors ---------------------------------------------------------------------------------------

static const IrType *type_at(const IrOp *op, uint32_t i) { // operands, then results; NULL where absent
  if (i < op->noperands) return op->operands[i].value ? op->operands[i].value->type : NULL;
  return op->results[i - op->noperands].type;
}

static void check_traits(IrVerifier *v, const IrOp *op) {
  const uint32_t traits = ir_ops[op->kind].traits, n = op->noperands + op->nresults;
  if (!(traits & (TRAIT_SAME | TRAIT_ELEMENTWISE))) return;
  const IrType *first = NULL;
  for (uint32_t i = 0; i < n; i++) {
    const IrType *t = type_at(op, i);
    if (!t) continue;
    if (!first) first = t;
    if ((traits & TRAIT_SAME) && t != first) {
      ir_bad(v, op, "mixes %s and %s; operands and result have one type", ir_type_msg(v, first),
             ir_type_msg(v, t));
      return;
    }
    if ((traits & TRAIT_ELEMENTWISE) &&
        ((t->kind == IR_TILE) != (first->kind == IR_TILE) || !ir_same_shape(t, first))) {
      ir_bad(v, op, "mixes the shapes of %s and %s", ir_type_msg(v, first), ir_type_msg(v, t));
      return;
    }
  }
}

// The level that every scalar and pointer of an op must have; val operands and values of regions are free.
static void check_levels(IrVerifier *v, const IrOp *op) {
  const IrOpInfo *info = &ir_ops[op->kind];
  const bool placed = v->m->stage == STAGE_placed;
  bool program = false, thread = false;
  for (int side = 0; side < 2; side++) {
    IrSlots slots = ir_slots(side ? info->results : info->operands);
    IrSlot s;
    uint32_t i = 0;
    const uint32_t n = side ? op->nresults : op->noperands;
    while (i < n && ir_slots_next(&slots, &s)) {
      do {
        const IrType *t = side                    ? op->results[i].type
                          : op->operands[i].value ? op->operands[i].value->type
                                                  : NULL;
        i++;
        if (!t || s.cls == CLASS_val) continue;
        if (ir_type_is_thread(t))
          thread = true;
        else if (ir_has_level(t) || t->kind == IR_TILE)
          program = true;
      } while (s.many && i < n);
    }
  }
  switch (info->executor) {
  case EXEC_LEVEL:
    if (program && thread) {
      ir_bad(v, op, "mixes the program and the thread level; use to_thread or from_thread");
    }
    break;
  case EXEC_PROGRAM:
    if (thread) ir_bad(v, op, "is done once a program and takes no thread-level values");
    break;
  case EXEC_BLOCK:
    if (thread && op->kind != OP_from_thread)
      ir_bad(v, op, "is done by all threads together and takes program-level values");
    break;
  case EXEC_WARP:
    if (program && !placed) ir_bad(v, op, "is done by a warp and takes thread-level values");
    break;
  case EXEC_THREAD: break; // to_thread and tid have rules of their own
  }
}

static bool has_tile(const IrOp *op) {
  for (uint32_t i = 0; i < op->noperands + op->nresults; i++) {
    const IrType *t = type_at(op, i);
    if (t && t->kind == IR_TILE) return true;
  }
  return false;
}

// Under a thread-level condition only threads and parts of warps act. Program scalars may still be computed there:
// they have the same value whoever computes them.
static void check_thread_control(IrVerifier *v, const IrOp *op) {
  if (!v->thread_control || (ir_ops[op->kind].traits & TRAIT_TERMINATOR)) return;
  const char *what = NULL;
  if (has_tile(op)) {
    what = "works on tiles";
  } else {
    const IrExecutor e = ir_op_executor(op);
    const bool control =
        op->kind == OP_if || op->kind == OP_for || op->kind == OP_while || op->kind == OP_switch;
    const bool harmless =
        control || op->kind == OP_assume || op->kind == OP_call || (ir_ops[op->kind].traits & TRAIT_PURE);
    if (e == EXEC_BLOCK)
      what = "needs all threads of the block";
    else if (e == EXEC_PROGRAM && !harmless)
      what = "is done once a program";
  }
  if (what)
    ir_bad(v, op, "%s, but stands under the thread-level condition of '%s'", what,
           ir_ops[v->thread_control->kind].name);
}

// Values that leave a region whose threads went different ways differ between threads.
static void check_thread_results(IrVerifier *v, const IrOp *op) {
  for (uint32_t i = 0; i < op->nresults; i++) {
    const IrType *t = op->results[i].type;
    if (t && !ir_type_is_thread(t) && t->kind != IR_TOKEN) {
      ir_bad(v, op, "has a thread-level condition, so its result %u must be at thread level, not %s", i,
             ir_type_msg(v, t));
    }
  }
}

// ---- the walk -------------------------------------------------------------------------------------------------------

static void define(IrVerifier *v, const IrOp *op, const IrValue *x) {
  if (x->id >= v->nseen || v->seen[x->id].value) {
    ir_bad(v, op, "the id %u of a value is %s", x->id, x->id >= v->nseen ? "out of range" : "taken");
    return;
  }
  v->seen[x->id] = (IrSeen){x, v->part, true};
}

static void hide(IrVerifier *v, const IrValue *x) {
  if (x->id < v->nseen && v->seen[x->id].value == x) v->seen[x->id].visible = false;
}

static void check_block(IrVerifier *v, const IrBlock *b);

static void check_regions(IrVerifier *v, const IrOp *op) {
  const char *want = ir_ops[op->kind].regions;
  if (*want != '*' && op->nregions != (uint32_t)(*want - '0')) {
    ir_bad(v, op, "has %u regions, must have %s", op->nregions, want);
    return;
  }
  const IrOp *outer = v->thread_control;
  const uint32_t part = v->part;
  if (op->nregions && ir_ops[op->kind].executor == EXEC_LEVEL && ir_op_executor(op) == EXEC_THREAD) {
    v->thread_control = op;
    check_thread_results(v, op);
  }
  for (uint32_t i = 0; i < op->nregions; i++) {
    const IrBlock *r = op->regions[i];
    if (!r || r->owner != op || r->func != v->func) {
      ir_bad(v, op, "region %u does not know its op", i);
      continue;
    }
    if (op->kind == OP_warp_partitions) v->part = ++v->nparts;
    check_block(v, r);
  }
  v->part = part;
  v->thread_control = outer;
}

static void check_op(IrVerifier *v, const IrOp *op) {
  const uint32_t before = v->found;
  if (!ir_op_legal_in(op->kind, v->m->stage)) {
    ir_bad(v, op, "is not legal in the stage %s", ir_stage_names[v->m->stage]);
  }
  const bool fits = check_operands(v, op) & check_results(v, op);
  check_attrs(v, op);
  check_required(v, op);
  if (fits) {
    check_traits(v, op);
    check_levels(v, op);
    check_thread_control(v, op);
  }
  check_regions(v, op);
  if (v->found == before) ir_verify_op_rules(v, op);
  if (v->found == before) ir_verify_region_rules(v, op);
  for (uint32_t i = 0; i < op->nresults; i++) define(v, op, &op->results[i]);
}

static void check_block(IrVerifier *v, const IrBlock *b) {
  if (++v->depth > DEEPEST) {
    ir_bad(v, b->owner, "regions nest deeper than %d", DEEPEST);
    v->depth--;
    return;
  }
  for (uint32_t i = 0; i < b->args.len; i++) {
    const IrValue *x = b->args.data[i];
    if (x->def || x->block != b || x->index != i)
      ir_bad(v, b->owner, "argument %u does not know its block", i);
    check_type(v, b->owner, x->type);
    define(v, b->owner, x);
  }
  const IrOp *prev = NULL;
  for (const IrOp *op = b->first; op && v->found < v->most; prev = op, op = op->next) {
    if (op->prev != prev || op->parent != b) {
      ir_bad(v, op, "the list of ops of its block is broken");
      break;
    }
    if ((unsigned)op->kind >= OP_COUNT) {
      ir_bad(v, NULL, "an op has no known kind");
      break;
    }
    const bool ends = ir_ops[op->kind].traits & TRAIT_TERMINATOR;
    if (ends && op->next) ir_bad(v, op, "ends a region, but ops follow");
    check_op(v, op);
    if (ends && !op->next) ir_verify_terminator(v, op);
  }
  if (v->found < v->most && (!b->last || (unsigned)b->last->kind >= OP_COUNT ||
                             !(ir_ops[b->last->kind].traits & TRAIT_TERMINATOR))) {
    ir_bad(v, b->owner, "a region does not end in a terminator");
  }
  for (uint32_t i = 0; i < b->args.len; i++) hide(v, b->args.data[i]);
  for (const IrOp *op = b->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->nresults; i++) hide(v, &op->results[i]);
  }
  v->depth--;
}

// ---- functions and modules --------------------------------------------------------------------------------------------

static void check_signature(IrVerifier *v, const IrFunc *f) {
  if (f->params.len != f->body->args.len) {
    ir_bad(v, NULL, "has %u parameters, but its body %u arguments", f->params.len, f->body->args.len);
  }
  if ((unsigned)f->wait_class >= WAIT_COUNT) ir_bad(v, NULL, "has no known wait class");
  for (uint32_t i = 0; i < f->params.len; i++) {
    if (f->params.data[i].divisible < 1) ir_bad(v, NULL, "parameter %u: divisible is at least 1", i);
  }
  if (!f->is_kernel) return;
  if (f->results.len) ir_bad(v, NULL, "a kernel has no results");
  for (uint32_t i = 0; i < f->body->args.len; i++) {
    const IrType *t = f->body->args.data[i]->type;
    const bool fine = t && ((ir_has_level(t) && t->level == LEVEL_program) || t->kind == IR_DESC);
    if (t && !fine) {
      ir_bad(v, NULL, "parameter %u of a kernel is %s, but must be a program scalar, a pointer or a desc", i,
             ir_type_msg(v, t));
    }
  }
}

static void check_func(IrVerifier *v, const IrFunc *f) {
  v->func = f;
  v->nseen = f->next_id;
  v->seen = arena_array(v->d->arena, IrSeen, f->next_id + 1);
  v->part = v->nparts = 0;
  v->thread_control = NULL;
  v->depth = 0;
  if (!f->name || !f->body || f->module != v->m || f->body->func != f || f->body->owner) {
    ir_bad(v, NULL, "the function is not put together properly");
    return;
  }
  check_signature(v, f);
  const uint32_t before = v->found;
  check_block(v, f->body);
  if (v->found == before) ir_verify_async(v, f);
}

Status ir_verify(const IrModule *m, Diags *d) {
  const ArenaMark mark = arena_mark(d->arena);
  IrVerifier v = {.m = m, .d = d, .most = d->max_errors ? d->max_errors : 1};
  map_init(&v.funcs, d->arena);
  if (m->lanes != 32 && m->lanes != 64) ir_bad(&v, NULL, "lanes=%d; a warp has 32 or 64", m->lanes);
  if (m->extra_warps < 0 || m->extra_warps > 16)
    ir_bad(&v, NULL, "extra=%d; 0 to 16 are possible", m->extra_warps);
  if (m->num_warps < 1 || m->num_warps > 64) ir_bad(&v, NULL, "warps=%d; 1 to 64 are possible", m->num_warps);
  if (m->num_stages < 1) ir_bad(&v, NULL, "stages=%d; at least 1", m->num_stages);
  if ((unsigned)m->stage > STAGE_placed) {
    ir_bad(&v, NULL, "has no known stage");
  }
  if (v.found) return ST_INTERNAL;
  for (const IrFunc *f = m->funcs; f; f = f->next) {
    v.func = f;
    if (map_getp(&v.funcs, f->name)) ir_bad(&v, NULL, "the name is taken");
    map_setp(&v.funcs, f->name, f);
  }
  for (const IrFunc *f = m->funcs; f && v.found < v.most; f = f->next) check_func(&v, f);
  if (!v.found) ir_verify_call_graph(&v);
  if (v.found) return ST_INTERNAL;
  arena_reset(d->arena, mark); // nothing was said, so all of it was scratch
  return ST_OK;
}
