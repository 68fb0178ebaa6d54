// Statements, and control flow that leaves early.
//
// A branch on a run-time condition becomes an `if` op; a name bound in its arms becomes a result. Where one arm leaves
// (return, break, continue), the other goes on inside its region to the place where both meet again:
//
//     if c:  A; return x           if c { A; yield x } else { B; yield y }
//     B; return y            =>
//
// So a path through a body is always at a Cont, the position of what it executes next; `$ret` and `$brk` are pseudo
// variables that merge like any name. Loops are in lower_loop.c.
#include "front/lower.h"

#include <string.h>

// ---- meeting of values -----------------------------------------------------------------------------
static bool same_kind_of_rt(const Type *a, const Type *b) {
  return a->elem == b->elem && type_same_shape(a, b);
}

static bool unify_into(Lower *L, Side *a, Value *x, Side *b, Value *y, Value **ux, Value **uy);

static bool unify_seq(Lower *L, Side *a, Value *x, Side *b, Value *y, Value **ux, Value **uy) {
  if (x->seq.n != y->seq.n || x->seq.cls != y->seq.cls) return false;
  Front *f = L->f;
  Value *nx = arena_copy(f->a, x, sizeof *x), *ny = arena_copy(f->a, y, sizeof *y);
  nx->seq.items = arena_array(f->a, Value *, x->seq.n + 1);
  ny->seq.items = arena_array(f->a, Value *, x->seq.n + 1);
  for (uint32_t i = 0; i < x->seq.n; i++)
    if (!unify_into(L, a, x->seq.items[i], b, y->seq.items[i], &nx->seq.items[i], &ny->seq.items[i]))
      return false;
  *ux = nx, *uy = ny;
  return true;
}

static Value *number_on_side(Lower *L, Side *s, Value *v) {
  if (!val_is_number(v) && v->kind != VAL_MEM) return v;
  const IrBuilder saved = L->b;
  L->b = s->b;
  v = front_to_rt(L, v, s->loc);
  s->b = L->b;
  L->b = saved;
  return v;
}

// Gives two values, on two sides, one structure: equal constants, or leaves of equal types (levels may differ).
static bool unify_into(Lower *L, Side *a, Value *x, Side *b, Value *y, Value **ux, Value **uy) {
  *ux = x, *uy = y;
  if (x == y || x->kind == VAL_POISON || y->kind == VAL_POISON) return true;
  if (x->kind < VAL_RT && y->kind < VAL_RT && x->kind == y->kind && x->kind != VAL_TUPLE &&
      x->kind != VAL_OBJECT && x->kind != VAL_DICT && val_equal(x, y))
    return true;
  *ux = x = number_on_side(L, a, x);
  *uy = y = number_on_side(L, b, y);
  if (x->kind != y->kind) return false;
  switch (x->kind) {
  case VAL_RT: return same_kind_of_rt(x->rt.type, y->rt.type);
  case VAL_TOKEN: return true;
  case VAL_TUPLE:
  case VAL_OBJECT:
  case VAL_VECTOR:
  case VAL_DICT: return unify_seq(L, a, x, b, y, ux, uy);
  case VAL_BLOCKPTR:
    return x->bp->rank == y->bp->rank && x->bp->base->rt.type->elem == y->bp->base->rt.type->elem &&
           !memcmp(x->bp->block, y->bp->block, sizeof(int32_t) * (size_t)x->bp->rank);
  case VAL_SMEM:
    return x->smem->ir == y->smem->ir && x->smem->rank == y->smem->rank &&
           !memcmp(x->smem->shape, y->smem->shape, sizeof(int32_t) * (size_t)x->smem->rank);
  case VAL_DESC:
    if (x->desc->rank != y->desc->rank || x->desc->elem != y->desc->elem ||
        memcmp(x->desc->block, y->desc->block, sizeof(int32_t) * (size_t)x->desc->rank))
      return false;
    return !x->desc->base == !y->desc->base && x->desc->nan == y->desc->nan;
  default: return val_equal(x, y);
  }
}

bool front_unify(Lower *L, Side *a, Value *x, Side *b, Value *y, Value **ux, Value **uy) {
  return unify_into(L, a, x, b, y, ux, uy);
}

IrValue *front_leaf_at_level(Lower *L, Side *s, const Leaf *l, bool thread) {
  if (!thread || !l->type || l->type->rank || l->type->thread) return l->ir;
  const IrBuilder saved = L->b;
  L->b = s->b;
  IrValue *ir = ir_to_thread(front_at(L, s->loc), l->ir);
  s->b = L->b;
  L->b = saved;
  return ir;
}

Side front_side_at_end(IrBlock *b, Loc loc) { return (Side){.b = ir_builder_at_end(b), .loc = loc}; }

// ---- branches --------------------------------------------------------------------------------------
typedef struct Arms { // an `if` op under construction
  IrOp *op;
  Side side[2];
  bool thread;
  const Why *why;
  Vec(IrValue *) yields[2];
  Vec(const Type *) types;
  Vec(const Why *) whys;
  LeafVec results;
} Arms;

static void arms_begin(Lower *L, Arms *m, Value *cond, Loc loc) {
  m->op = ir_build(front_at(L, loc), OP_if, 1, &cond->rt.ir, 0, NULL, 2);
  m->side[0] = front_side_at_end(m->op->regions[0], loc);
  m->side[1] = front_side_at_end(m->op->regions[1], loc);
  m->thread = cond->rt.type->thread;
  m->why = cond->rt.why;
}

// Takes the two values of one name: after arms_end, the result is rebuilt from m->results beginning at *first.
static bool arms_merge(Lower *L, Arms *m, Value *x, Value *y, Value **like) {
  Value *ux, *uy;
  if (!front_unify(L, &m->side[0], x, &m->side[1], y, &ux, &uy)) return false;
  *like = ux;
  if (ux == uy) return true;
  if (ux->kind == VAL_POISON || uy->kind == VAL_POISON) {
    *like = L->f->poison;
    return true;
  }
  LeafVec lx = {0}, ly = {0};
  val_leaves(L->f, ux, &lx);
  val_leaves(L->f, uy, &ly);
  for (uint32_t i = 0; i < lx.len && i < ly.len; i++) {
    const Type *t = lx.data[i].type;
    bool thread = false;
    if (t && !t->rank) {
      thread = m->thread || t->thread || ly.data[i].type->thread;
      if (thread && !t->thread) t = type_scalar(L->f, t->elem, true);
    }
    vec_push(L->f->a, &m->yields[0], front_leaf_at_level(L, &m->side[0], &lx.data[i], thread));
    vec_push(L->f->a, &m->yields[1], front_leaf_at_level(L, &m->side[1], &ly.data[i], thread));
    vec_push(L->f->a, &m->types, t);
    vec_push(L->f->a, &m->whys, lx.data[i].why ? lx.data[i].why : ly.data[i].why ? ly.data[i].why : m->why);
  }
  return true;
}

static void arms_end(Lower *L, Arms *m) {
  for (uint32_t i = 0; i < m->types.len; i++) ir_op_add_result(m->op, m->yields[0].data[i]->type);
  ir_yield(&m->side[0].b, m->yields[0].len, m->yields[0].data);
  ir_yield(&m->side[1].b, m->yields[1].len, m->yields[1].data);
  for (uint32_t i = 0; i < m->types.len; i++)
    vec_push(L->f->a, &m->results, ((Leaf){ir_result(m->op, i), m->types.data[i], m->whys.data[i]}));
}

static void run_arm(Lower *L, Arms *m, int arm, const ThreadCtl *ctl) {
  L->b = m->side[arm].b;
  L->thread = m->thread ? ctl : L->thread;
}

// a if c else b on a run-time condition: only one side runs.
Value *front_lower_if_value(Lower *L, Value *cond, const Node *then, const Node *els, Loc loc) {
  Front *f = L->f;
  if (front_no_code(L, loc)) return f->poison;
  const IrBuilder saved = L->b;
  const ThreadCtl *outer = L->thread;
  Arms m = {0};
  arms_begin(L, &m, cond, loc);
  const ThreadCtl ctl = {cond->rt.why, loc};
  Value *v[2];
  for (int i = 0; i < 2; i++) {
    run_arm(L, &m, i, &ctl);
    v[i] = front_eval(L, i ? els : then);
    m.side[i].b = L->b;
    L->thread = outer;
  }
  L->b = saved;
  // a number takes the type of the run-time value on the other side
  for (int i = 0; i < 2; i++) {
    if (!val_is_number(v[i]) || v[1 - i]->kind != VAL_RT || v[1 - i]->rt.type->rank) continue;
    L->b = m.side[i].b;
    if (v[i]->kind != VAL_FLOAT || elem_is_float(v[1 - i]->rt.type->elem))
      if (!elem_is_ptr(v[1 - i]->rt.type->elem)) v[i] = front_const_of(L, v[1 - i]->rt.type->elem, v[i], loc);
    m.side[i].b = L->b;
    L->b = saved;
  }
  Value *like = NULL;
  const bool ok = arms_merge(L, &m, v[0], v[1], &like);
  arms_end(L, &m);
  if (!ok)
    return front_err(L, loc, "the two sides of a run-time choice must have one type, but are %s and %s",
                     val_kind_text(f, v[0]), val_kind_text(f, v[1]));
  uint32_t at_leaf = 0;
  return v[0] == v[1] ? v[0] : val_rebuild(f, like, m.results.data, &at_leaf);
}

static Value *exit_value(Lower *L, const Env *e, const Str *name) {
  const Binding *b = env_find(e, name);
  if (b && b->value) return b->value;
  if (name == L->f->s_brk || name == L->f->s_out) return L->f->vfalse;
  return name == L->f->s_ret ? L->f->none : NULL;
}

// Names whose bindings the arms changed.
static void changed_names(Lower *L, const Env *before, const Env *after, AstNames *names) {
  for (uint32_t i = 0; i < after->map.entries.len; i++) {
    if (after->map.entries.data[i].key == MAP_GONE) continue;
    const Str *n = (const Str *)(uintptr_t)after->map.entries.data[i].key;
    if (env_find(before, n) == (const Binding *)(uintptr_t)after->map.entries.data[i].value) continue;
    bool seen = false;
    for (uint32_t k = 0; k < names->len && !seen; k++) seen = names->data[k] == n;
    if (!seen) vec_push(L->f->a, names, n);
  }
}

typedef struct Meeting { // what becomes of one name
  Value *x, *y, *like;
  const char *gone; // like NULL: why it has no one value
} Meeting;

static Meeting meet_name(Lower *L, Arms *m, const Env *te, const Env *ee, const Str *n, Loc loc) {
  Front *f = L->f;
  const Binding *bx = env_find(te, n), *by = env_find(ee, n);
  Meeting r = {exit_value(L, te, n), exit_value(L, ee, n), NULL, NULL};
  if (!r.x || !r.y) {
    r.gone = bx && bx->gone ? bx->gone
             : by && by->gone
                 ? by->gone
                 : arena_printf(f->a, "is defined on one side of the `if` in line %u only", loc.line);
    return r;
  }
  if (arms_merge(L, m, r.x, r.y, &r.like)) return r;
  const char *kx = val_kind_text(f, r.x), *ky = val_kind_text(f, r.y);
  if (n == f->s_ret)
    r.like = front_err_hint(L, loc, "make every return yield the same types",
                            "one path returns %s, another %s", kx, ky);
  else
    r.gone = arena_printf(f->a, "is %s after one side of the `if` in line %u and %s after the other", kx,
                          loc.line, ky);
  return r;
}

// After the arms: every name that they changed (or that matters at the end) gets its value.
static void merge_names(Lower *L, Arms *m, Env *te, Env *ee, const AstNames *names, Loc loc) {
  Front *f = L->f;
  Meeting *met = arena_array(f->a, Meeting, names->len + 1);
  for (uint32_t i = 0; i < names->len; i++) met[i] = meet_name(L, m, te, ee, names->data[i], loc);
  arms_end(L, m);
  uint32_t at_leaf = 0;
  for (uint32_t i = 0; i < names->len; i++) {
    const Str *n = names->data[i];
    if (!met[i].like) {
      env_set_gone(f, L->env, n, met[i].gone);
      continue;
    }
    const Binding *bx = env_find(te, n), *by = env_find(ee, n);
    Value *v = met[i].x == met[i].y ? met[i].x : val_rebuild(f, met[i].like, m->results.data, &at_leaf);
    env_set(f, L->env, n, v, bx && by && bx->is_const && by->is_const);
  }
}

void front_poison_names(Lower *L, const NodeVec *a, const NodeVec *b) {
  AstNames names = {0};
  ast_bound_names(L->f->a, a, &names);
  if (b) ast_bound_names(L->f->a, b, &names);
  for (uint32_t i = 0; i < names.len; i++) env_set(L->f, L->env, names.data[i], L->f->poison, false);
}

// The condition of an `if` as a VAL_BOOL, a scalar, or poison.
static Value *branch_condition(Lower *L, const Node *n) {
  Front *f = L->f;
  Value *v = front_eval(L, n->a);
  if (!front_branches_on(L, v, n->a->loc)) return f->poison;
  Value *c = front_condition(L, v, n->a->loc);
  if (c->kind != VAL_RT || !c->rt.type->rank) return c;
  if (ir_type_elems(c->rt.ir->type) != 1)
    return front_err_hint(L, n->a->loc, "reduce it first, e.g. with tl.max, or choose elements with tl.where",
                          "a tile of shape %s cannot be a condition",
                          front_shape_text(f, c->rt.type->rank, c->rt.type->shape));
  const Type *t = type_scalar(f, c->rt.type->elem, false);
  const IrType *it = front_ir_of(f, t);
  return val_rt(f, ir_result(ir_build(front_at(L, n->loc), OP_unsplat, 1, &c->rt.ir, 1, &it, 0), 0), t, NULL);
}

// Executes the position itself; returns where the path is then.
static Cont *cont_step(Lower *L, Cont *p) {
  if (p->kind == CONT_BLOCK) return front_lower_stmts(L, p->stmts, p->from, p->up);
  return front_unroll_from(L, p->unroll, p->trip + 1, p->up);
}

typedef struct Arm {
  Env *env;
  Cont *at;
} Arm;

// Lowers more of one arm: its statements, or (at given) the position that its path is at.
static void extend_arm(Lower *L, Arms *m, Arm *a, int i, const NodeVec *stmts, Cont *rest,
                       const ThreadCtl *ctl) {
  const ThreadCtl *outer = L->thread;
  run_arm(L, m, i, ctl);
  L->env = a->env;
  a->at = stmts ? front_lower_stmts(L, stmts, 0, rest) : cont_step(L, a->at);
  a->env = L->env;
  m->side[i].b = L->b;
  L->thread = outer;
}

static Cont *branch(Lower *L, Value *c, const NodeVec *const stmts[2], Cont *const start[2], Cont *rest,
                    Loc cloc, Loc loc) {
  Front *f = L->f;
  const IrBuilder saved = L->b;
  Env *before = L->env;
  const ThreadCtl ctl = {c->rt.why, cloc};
  Arms m = {0};
  arms_begin(L, &m, c, loc);
  Arm arm[2] = {{.env = env_copy(f, before), .at = start[0]}, {.env = env_copy(f, before), .at = start[1]}};
  for (int i = 0; i < 2; i++)
    if (stmts[i]) extend_arm(L, &m, &arm[i], i, stmts[i], rest, &ctl);
  while (arm[0].at != arm[1].at) { // the one that is behind catches up
    const int i = arm[0].at->depth > arm[1].at->depth ? 0 : 1;
    extend_arm(L, &m, &arm[i], i, NULL, NULL, &ctl);
  }
  L->b = saved;
  L->env = before;
  AstNames names = {0};
  if (arm[0].at->kind == CONT_END) {
    names = *L->exits;
  } else {
    changed_names(L, before, arm[0].env, &names);
    changed_names(L, before, arm[1].env, &names);
  }
  merge_names(L, &m, arm[0].env, arm[1].env, &names, loc);
  return arm[0].at;
}

static Cont *lower_if(Lower *L, const Node *n, Cont *rest) {
  Value *c = branch_condition(L, n);
  if (c->kind == VAL_POISON) {
    front_poison_names(L, &n->list, &n->list2);
    return rest;
  }
  if (c->kind == VAL_BOOL) return front_lower_stmts(L, c->b ? &n->list : &n->list2, 0, rest);
  return branch(L, c, (const NodeVec *const[2]){&n->list, &n->list2}, (Cont *const[2]){NULL, NULL}, rest,
                n->a->loc, n->loc);
}

// On a run-time condition the path skips to `far`, else it goes on at `near`.
Cont *front_branch_to(Lower *L, Value *c, Cont *far, Cont *near, Loc loc) {
  return branch(L, c, (const NodeVec *const[2]){NULL, NULL}, (Cont *const[2]){far, near}, NULL, loc, loc);
}

// break and continue lead to the end of the trip; a pseudo variable says that there shall be no other.
static Cont *leave_loop(Lower *L, const Node *n, Cont *k) {
  Front *f = L->f;
  while (k->kind == CONT_BLOCK) k = k->up;
  if (k->kind == CONT_UNROLL) {
    if (n->kind == AST_Break) env_set(f, L->env, f->s_out, f->vtrue, false);
    return k;
  }
  if (!L->in_loop) front_err(L, n->loc, "%s outside a loop", n->kind == AST_Break ? "break" : "continue");
  if (L->in_loop && n->kind == AST_Break) env_set(f, L->env, f->s_brk, f->vtrue, false);
  return k;
}

// ---- assignment ------------------------------------------------------------------------------------
Value *front_decay(Lower *L, Value *v, Loc loc) {
  Front *f = L->f;
  if (L->keep_const || !L->b.block) return v;
  if (val_is_number(v)) return front_to_rt(L, v, loc);
  if (v->kind == VAL_TUPLE) {
    Value *t = arena_copy(f->a, v, sizeof *v);
    t->seq.items = arena_array(f->a, Value *, v->seq.n + 1);
    for (uint32_t i = 0; i < v->seq.n; i++) t->seq.items[i] = front_decay(L, v->seq.items[i], loc);
    return t;
  }
  return v;
}

static void assign_tuple(Lower *L, const Node *target, Value *v, bool is_const) {
  Front *f = L->f;
  const NodeVec *ts = &target->list;
  if (v->kind == VAL_POISON || v->kind == VAL_OPAQUE) {
    for (uint32_t i = 0; i < ts->len; i++)
      front_assign(L, ts->data[i]->kind == AST_Star ? ts->data[i]->a : ts->data[i], v, is_const);
    return;
  }
  if (v->kind != VAL_TUPLE && v->kind != VAL_OBJECT) {
    front_err(L, target->loc, "%u names on the left, but %s on the right", ts->len, val_kind_text(f, v));
    v = f->poison;
    assign_tuple(L, target, v, is_const);
    return;
  }
  uint32_t star = ts->len;
  for (uint32_t i = 0; i < ts->len; i++)
    if (ts->data[i]->kind == AST_Star) star = i;
  const uint32_t n = v->seq.n, fixed = star < ts->len ? ts->len - 1 : ts->len;
  if (n < fixed || (star == ts->len && n != fixed)) {
    front_err(L, target->loc, "%u names on the left, but %u values on the right", ts->len, n);
    assign_tuple(L, target, f->poison, is_const);
    return;
  }
  uint32_t at_item = 0;
  for (uint32_t i = 0; i < ts->len; i++) {
    if (i == star) {
      const uint32_t take = n - fixed;
      front_assign(L, ts->data[i]->a, val_tuple(f, v->seq.items + at_item, take, true), is_const);
      at_item += take;
    } else {
      front_assign(L, ts->data[i], v->seq.items[at_item++], is_const);
    }
  }
}

static void assign_attr(Lower *L, const Node *target, Value *v) {
  Front *f = L->f;
  Value *o = front_eval(L, target->a);
  if (o->kind == VAL_POISON) return;
  if (o->kind != VAL_OBJECT || target->a->kind != AST_Name) {
    front_err(L, target->loc, "the attribute '%s' of %s cannot be assigned", target->name->s,
              val_kind_text(f, o));
    return;
  }
  const Class *c = o->seq.cls->cls;
  for (uint32_t i = 0; i < c->fields.len; i++) {
    if (c->fields.data[i] != target->name) continue;
    Value *n = arena_copy(f->a, o, sizeof *o);
    n->seq.items = arena_copy(f->a, o->seq.items, sizeof(Value *) * o->seq.n);
    n->seq.items[i] = v;
    env_set(f, L->env, target->a->name, n, false);
    return;
  }
  front_err_hint(L, target->loc, "declare it in the class body: `name: type`",
                 "the class '%s' has no field '%s'", c->name->s, target->name->s);
}

static void assign_element(Lower *L, const Node *target, Value *v) {
  Front *f = L->f;
  Value *of = front_eval(L, target->a);
  if (of->kind == VAL_POISON || v->kind == VAL_POISON) return;
  if (of->kind != VAL_MEM) {
    front_err_hint(L, target->loc,
                   of->kind == VAL_RT
                       ? "build the new tile with tl.where, or write elements in dl.simt_exec_region"
                       : NULL,
                   "an element of %s cannot be assigned", val_kind_text(f, of));
    return;
  }
  const Type *t = of->mem.type;
  ValueVec ix = {0};
  for (uint32_t i = 0; i < target->list.len; i++) vec_push(f->a, &ix, front_eval(L, target->list.data[i]));
  if (ix.len != (uint32_t)t->rank) {
    front_err(L, target->loc, "%u indices for %s", ix.len, front_shape_text(f, t->rank, t->shape));
    return;
  }
  v = front_cast_to(L, v, t->elem, false, target->loc);
  if (v->kind != VAL_RT || v->rt.type->rank) {
    if (v->kind == VAL_RT)
      front_err(L, target->loc, "an element takes a scalar, not %s", val_kind_text(f, v));
    return;
  }
  v = front_raise_level(L, v, target->loc);
  IrValue *ops[2 + IR_MAX_RANK] = {of->mem.ir, v->rt.ir};
  for (uint32_t i = 0; i < ix.len; i++) {
    const Value *x = front_raise_level(L, front_int_scalar(L, ix.data[i], FDT_int32, "an index", target->loc),
                                       target->loc);
    if (x->kind != VAL_RT) return;
    ops[2 + i] = x->rt.ir;
  }
  ir_build(front_at(L, target->loc), OP_mem_set, 2 + ix.len, ops, 0, NULL, 0);
}

void front_assign(Lower *L, const Node *target, Value *v, bool is_const) {
  Front *f = L->f;
  switch (target->kind) {
  case AST_Name: {
    const Binding *old = env_find(L->env, target->name);
    if (old && old->is_const && !is_const && old->value && old->value->kind != VAL_POISON) {
      front_err_hint(L, target->loc, "give the new value another name",
                     "'%s' was declared tl.constexpr and cannot be assigned again", target->name->s);
      v = f->poison;
    }
    if (v->kind == VAL_RT && v->rt.ir && !v->rt.ir->name) v->rt.ir->name = target->name;
    if (v->kind == VAL_SMEM && !v->smem->ir->name) v->smem->ir->name = target->name;
    env_set(f, L->env, target->name, v, is_const);
    return;
  }
  case AST_Tuple:
  case AST_List: assign_tuple(L, target, v, is_const); return;
  case AST_Attr: assign_attr(L, target, v); return;
  case AST_Subscript: assign_element(L, target, v); return;
  default: front_err(L, target->loc, "this cannot be assigned to");
  }
}

static bool is_constexpr_annotation(Lower *L, const Node *ann) {
  if (!ann) return false;
  if (ann->kind == AST_Str) return strstr(ann->name->s, "constexpr") != NULL;
  if (ann->kind == AST_Attr || ann->kind == AST_Name) return !strcmp(ann->name->s, "constexpr");
  (void)L;
  return false;
}

static void lower_ann_assign(Lower *L, const Node *n) {
  Front *f = L->f;
  if (!n->c) return;
  Value *v = front_eval(L, n->c);
  if (!is_constexpr_annotation(L, n->b)) {
    front_assign(L, n->a, front_decay(L, v, n->loc), false);
    return;
  }
  if (v->kind == VAL_RT) {
    int64_t i;
    if (v->rt.type->rank || !elem_is_int(v->rt.type->elem) || !ir_const_int(v->rt.ir, &i)) {
      front_assign(L, n->a, v,
                   false); // Triton wraps it and goes on; whoever needs a constant refuses it there
      return;
    }
    v = val_int(f, i); // a number that went through a plain assignment
  }
  front_assign(L, n->a, v, true);
}

// ---- simt_exec_region --------------------------------------------------------------------------------
static void subscripted_names(Arena *a, const Node *n, AstNames *names) {
  if (!n) return;
  if (n->kind == AST_Subscript && n->a->kind == AST_Name) {
    bool element = true;
    for (uint32_t i = 0; i < n->list.len; i++) {
      const AstKind k = n->list.data[i]->kind;
      element &= k != AST_Slice && k != AST_None && k != AST_Ellipsis;
    }
    bool seen = !element;
    for (uint32_t i = 0; i < names->len; i++) seen |= names->data[i] == n->a->name;
    if (!seen) vec_push(a, names, n->a->name);
  }
  subscripted_names(a, n->a, names);
  subscripted_names(a, n->b, names);
  subscripted_names(a, n->c, names);
  const NodeVec *const lists[3] = {&n->list, &n->list2, &n->list3};
  for (int l = 0; l < 3; l++)
    for (uint32_t i = 0; i < lists[l]->len; i++) subscripted_names(a, lists[l]->data[i], names);
}

static void emit_barrier(Lower *L, Loc loc) { ir_build(front_at(L, loc), OP_barrier, 0, NULL, 0, NULL, 0); }

// Tiles whose elements the region touches live in shared memory from its entry to its exit.
static void simt_region(Lower *L, const Node *with, const Node *item) {
  Front *f = L->f;
  const Loc loc = item->loc;
  if (front_no_code(L, loc) || !front_tiles_allowed(L, loc, "dl.simt_exec_region")) return;
  const AstEffects e = ast_effects(&with->list2);
  if (e.returns || e.breaks || e.continues) {
    front_err(L, loc, "return, break and continue cannot leave a simt_exec_region");
    return;
  }
  AstNames tiles = {0};
  for (uint32_t i = 0; i < with->list2.len; i++) subscripted_names(f->a, with->list2.data[i], &tiles);
  Vec(const Str *) moved = {0};
  Vec(Value *) mems = {0};
  for (uint32_t i = 0; i < tiles.len; i++) {
    const Binding *b = env_find(L->env, tiles.data[i]);
    if (!b || !b->value || !val_is_tile(b->value)) continue;
    Value *v = b->value;
    const Type *t = v->rt.type;
    if (elem_is_ptr(t->elem)) continue;
    const IrType *mt =
        ir_type_memdesc(f->ctx, front_dtypes[t->elem->dt].ir, SPACE_shared, t->rank, t->shape, 0);
    IrOp *alloc = ir_build(front_at(L, loc), OP_mem_alloc, 0, NULL, 1, &mt, 0);
    ir_build(front_at(L, loc), OP_mem_store, 2, (IrValue *[]){ir_result(alloc, 0), v->rt.ir}, 0, NULL, 0);
    Value *mem = val_new(f, VAL_MEM);
    mem->mem.ir = ir_result(alloc, 0);
    mem->mem.type = t;
    env_set(f, L->env, tiles.data[i], mem, false);
    vec_push(f->a, &moved, tiles.data[i]);
    vec_push(f->a, &mems, mem);
  }
  emit_barrier(L, loc);
  if (item->b) {
    const Type *ti = type_scalar(f, elem_number(f, FDT_int32), true),
               *pi = type_scalar(f, elem_number(f, FDT_int32), false);
    const IrType *tt = front_ir_of(f, ti), *pt = front_ir_of(f, pi);
    Value *ids[2] = {
        val_rt(f, ir_result(ir_build(front_at(L, loc), OP_tid, 0, NULL, 1, &tt, 0), 0), ti,
               front_why_new(f, loc, "the thread index")),
        val_rt(f, ir_result(ir_build(front_at(L, loc), OP_num_threads, 0, NULL, 1, &pt, 0), 0), pi, NULL)};
    front_assign(L, item->b, val_tuple(f, ids, 2, false), false);
  }
  L->region_depth++;
  Cont end = {.kind = CONT_END};
  front_lower_stmts(L, &with->list2, 0, &end);
  L->region_depth--;
  emit_barrier(L, loc);
  for (uint32_t i = 0; i < moved.len; i++) {
    const Binding *b = env_find(L->env, moved.data[i]);
    if (b && b->value == mems.data[i])
      env_set(f, L->env, moved.data[i], front_to_rt(L, mems.data[i], loc), false);
  }
}

static void lower_with(Lower *L, const Node *n) {
  Front *f = L->f;
  if (n->list.len == 1) {
    const Node *item = n->list.data[0];
    const Node *call = item->a && item->a->kind == AST_Call ? item->a->a : NULL;
    const Value *v = call ? front_eval(L, call) : NULL;
    if (v && v->kind == VAL_POISON) return;
    if (v && v->kind == VAL_BUILTIN && !strcmp(v->builtin->name, "simt_exec_region")) {
      simt_region(L, n, item);
      return;
    }
  }
  front_err_hint(L, n->loc, "the one context manager of kernels is dl.simt_exec_region()",
                 "this `with` is not supported");
  front_poison_names(L, &n->list2, NULL);
  (void)f;
}

// ---- the rest --------------------------------------------------------------------------------------
static void lower_assert(Lower *L, const Node *n) {
  Front *f = L->f;
  Value *c = front_condition(L, front_eval(L, n->a), n->a->loc);
  const Value *msg = n->b ? front_eval(L, n->b) : NULL;
  const char *text = msg && msg->kind == VAL_STR ? msg->s->s : "assertion failed";
  if (c->kind == VAL_BOOL && !c->b)
    front_err(L, n->loc, "assertion failed at compile time%s%s", msg ? ": " : "", msg ? text : "");
  if (c->kind != VAL_RT || f->o.no_asserts) return;
  IrOp *op = ir_build(front_at(L, n->loc), OP_assert, 1, &c->rt.ir, 0, NULL, 0);
  ir_set_attr_s(op, ATTR_msg, str_cstr(f->strings, text));
}

static void lower_return(Lower *L, const Node *n) {
  Front *f = L->f;
  if (L->in_loop) {
    front_err_hint(L, n->loc, "set a variable, break, and return after the loop",
                   "return inside a run-time loop is not supported");
    return;
  }
  if (L->region_depth) front_err(L, n->loc, "return inside a simt_exec_region");
  Value *v = n->a ? front_eval(L, n->a) : f->none;
  env_set(f, L->env, f->s_ret, front_decay(L, v, n->loc), false);
}

static void lower_def(Lower *L, const Node *n) {
  Front *f = L->f;
  Func *fn = arena_copy(f->a, front_func_of_def(f, L->file, n), sizeof(Func));
  fn->closure = L->env;
  Value *v = val_new(f, VAL_FUNC);
  v->func = fn;
  env_set(f, L->env, n->name, v, false);
}

// Lowers one statement; rest follows it. Returns where the path is then.
static Cont *lower_stmt(Lower *L, const Node *n, Cont *rest) {
  Front *f = L->f;
  switch (n->kind) {
  case AST_ExprStmt:
    if (n->a->kind != AST_Str) front_eval(L, n->a);
    return rest;
  case AST_Assign: {
    Value *v = front_decay(L, front_eval(L, n->a), n->loc);
    for (uint32_t i = 0; i < n->list.len; i++) front_assign(L, n->list.data[i], v, false);
    return rest;
  }
  case AST_AnnAssign: lower_ann_assign(L, n); return rest;
  case AST_AugAssign: {
    Value *x = front_eval(L, n->a);
    front_assign(L, n->a,
                 front_decay(L, front_binary_op(L, (AstOp)n->op, x, front_eval(L, n->b), n->loc), n->loc),
                 false);
    return rest;
  }
  case AST_If: return lower_if(L, n, rest);
  case AST_For: return front_lower_for(L, n, rest);
  case AST_While: return front_lower_while(L, n, rest);
  case AST_With: lower_with(L, n); return rest;
  case AST_Return: lower_return(L, n); return cont_end(rest);
  case AST_Break:
  case AST_Continue: return leave_loop(L, n, rest);
  case AST_Pass: return rest;
  case AST_Global:
    front_err_hint(L, n->loc, "return the value, or store it through a pointer",
                   "a kernel cannot change names of the file: global is not supported");
    return rest;
  case AST_Assert: lower_assert(L, n); return rest;
  case AST_Raise: {
    const Node *e = n->a && n->a->kind == AST_Call && n->a->list.len ? n->a->list.data[0] : NULL;
    const Value *msg = e ? front_eval(L, e) : NULL;
    front_err(L, n->loc, "raised while compiling%s%s", msg && msg->kind == VAL_STR ? ": " : "",
              msg && msg->kind == VAL_STR ? msg->s->s : "");
    return cont_end(rest);
  }
  case AST_FuncDef: lower_def(L, n); return rest;
  case AST_Import:
  case AST_ImportFrom: front_import_stmt(L, n); return rest;
  case AST_Other: front_err(L, n->loc, "%s is not supported in kernels", n->name->s); return rest;
  default: break;
  }
  static const struct {
    AstKind kind;
    const char *what;
  } refused[] = {{AST_Try, "try"}, {AST_ClassDef, "a class inside a function"}};
  const char *what = ast_kind_name(n->kind);
  for (size_t i = 0; i < DT_COUNTOF(refused); i++)
    if (refused[i].kind == n->kind) what = refused[i].what;
  front_err(L, n->loc, "%s is not supported in kernels", what);
  AstNames names = {0}; // what it would have bound is not reported as well
  if (n->kind == AST_Try) {
    ast_bound_names(f->a, &n->list, &names);
    ast_bound_names(f->a, &n->list2, &names);
  }
  for (uint32_t i = 0; i < names.len; i++) env_set(f, L->env, names.data[i], f->poison, false);
  return rest;
}

Cont *front_lower_stmts(Lower *L, const NodeVec *stmts, uint32_t from, Cont *k) {
  Front *f = L->f;
  if (f->depth >= FRONT_MAX_EVAL) {
    if (from < stmts->len)
      front_err(L, stmts->data[from]->loc, "the program nests or recurses more than %d levels deep",
                FRONT_MAX_EVAL);
    return cont_end(k);
  }
  f->depth++;
  Cont *p = k;
  for (uint32_t i = from; i < stmts->len; i++) {
    const Node *n = stmts->data[i];
    if (!front_step(L, n->loc) || f->d->errors >= f->d->max_errors) {
      p = cont_end(k);
      break;
    }
    Cont *rest = arena_new(f->a, Cont);
    *rest = cont_block(stmts, i + 1, k);
    p = lower_stmt(L, n, rest);
    if (p != rest) break;
    p = k;
  }
  f->depth--;
  return p;
}

Value *front_lower_body(Lower *L, const Func *fn, Loc loc) {
  Front *f = L->f;
  (void)loc;
  front_warn_decorators(f, fn);
  if (fn->def->kind == AST_Lambda) return front_eval(L, fn->def->a);
  const AstNames *exits = L->exits;
  const bool in_loop = L->in_loop;
  const int region = L->region_depth;
  AstNames ret = {0};
  vec_push(f->a, &ret, f->s_ret);
  L->exits = &ret;
  L->in_loop = false;
  L->region_depth = 0;
  Cont end = {.kind = CONT_END};
  const Cont *p = front_lower_stmts(L, &fn->def->list2, 0, &end);
  (void)p; // at the end, by whatever way
  L->exits = exits;
  L->in_loop = in_loop;
  L->region_depth = region;
  const Binding *b = env_find(L->env, f->s_ret);
  if (b && !b->value) return f->poison;
  return b ? b->value : f->none;
}
