// Loops: unrolled at compile time, counted (`for`), or general (`while`: also every loop with a break).
//
// Names bound in the body and known before it are carried. The body is lowered under a guess about each carried part
// (program level; block pointers' bases and strides do not change); where the body proves a guess wrong the op is
// dropped and the body lowered again under a weaker one, until it holds. Guesses only ever weaken, so that ends.
#include "front/lower.h"

#include <string.h>

struct Unroll {
  const Node *loop;       // a For, or a While in code that runs while compiling
  ValueVec items;         // of a tuple; otherwise
  AstInt lo, step, trips; // a range
};

// ---- unrolled --------------------------------------------------------------------------------------
// The trips from `trip` on; k follows the loop. After a break on a run-time condition the trips that are left stand
// in the other arm of a branch.
Cont *front_unroll_from(Lower *L, Unroll *u, uint32_t trip, Cont *k) {
  Front *f = L->f;
  for (; trip < u->trips; trip++) {
    const uint32_t refused = f->refused;
    env_set(f, L->env, f->s_out, f->vfalse, false);
    if (u->loop->kind == AST_While) {
      const Value *c = front_condition(L, front_eval(L, u->loop->a), u->loop->a->loc);
      if (c->kind == VAL_RT)
        front_err(L, u->loop->a->loc,
                  "the condition was known while compiling at first, but is not any more");
      if (c->kind != VAL_BOOL || !c->b) return k;
    } else {
      front_assign(L, u->loop->a,
                   u->items.len ? u->items.data[trip] : val_int(f, u->lo + (AstInt)trip * u->step), false);
    }
    Cont *more = arena_new(f->a, Cont);
    *more = (Cont){.kind = CONT_UNROLL, .unroll = u, .trip = trip, .up = k, .depth = k->depth + 1};
    Cont *p = front_lower_stmts(L, &u->loop->list, 0, more);
    if (p != more) return p;
    if (f->refused != refused && trip >= FRONT_REFUSED_TRIPS) { // the trips that are left would say the same
      front_poison_names(L, &u->loop->list, NULL);
      return k;
    }
    const Binding *b = env_find(L->env, f->s_out);
    Value *out = b && b->value ? b->value : f->vfalse;
    env_set(f, L->env, f->s_out, f->vfalse, false);
    if (out->kind == VAL_BOOL && out->b) return k;
    if (out->kind == VAL_RT && trip + 1 < u->trips) return front_branch_to(L, out, k, more, u->loop->loc);
  }
  return k;
}

static Cont *unroll(Lower *L, const Node *n, const Value *it, Cont *rest) {
  Front *f = L->f;
  Unroll *u = arena_new(f->a, Unroll);
  u->loop = n;
  if (it->kind == VAL_TUPLE) {
    for (uint32_t i = 0; i < it->seq.n; i++) vec_push(f->a, &u->items, it->seq.items[i]);
    u->trips = it->seq.n;
    return front_unroll_from(L, u, 0, rest);
  }
  const RangeSpec *r = it->range;
  if (r->lo->kind != VAL_INT || r->hi->kind != VAL_INT || r->step->kind != VAL_INT) {
    const Value *bad = r->lo->kind != VAL_INT ? r->lo : r->hi->kind != VAL_INT ? r->hi : r->step;
    if (bad->kind != VAL_POISON)
      front_err_hint(L, n->b->loc, "use range or tl.range, or a tl.constexpr bound",
                     "tl.static_range is unrolled while compiling, so its bounds cannot be %s",
                     val_kind_text(f, bad));
    return rest;
  }
  if (!r->step->i) {
    front_err(L, n->b->loc, "a range with step 0");
    return rest;
  }
  const AstInt span = r->step->i > 0 ? r->hi->i - r->lo->i : r->lo->i - r->hi->i;
  const AstInt step = r->step->i > 0 ? r->step->i : -r->step->i;
  u->lo = r->lo->i;
  u->step = r->step->i;
  u->trips = span <= 0 ? 0 : (span + step - 1) / step;
  if (u->trips > FRONT_MAX_UNROLL) {
    front_err_hint(L, n->b->loc, "use tl.range", "tl.static_range would be unrolled %s times; the most is %d",
                   val_repr(f, val_int(f, u->trips), false), FRONT_MAX_UNROLL);
    return rest;
  }
  return front_unroll_from(L, u, 0, rest);
}

// ---- carried values --------------------------------------------------------------------------------
typedef struct Part { // one leaf of the carried values
  Leaf init;
  bool fixed; // guessed not to change: not carried at all
  bool raise; // per thread inside the loop though it is not before
  Leaf arg;   // inside the body
} Part;
typedef struct Carry {
  const Str *name;
  Value *init, *arg;
  uint32_t first, n; // its parts
} Carry;
typedef struct Loop {
  const Node *node;
  Vec(Carry) carries;
  Vec(Part) parts;
  AstNames exits; // carried names and $brk
  bool breaks, thread;
  const Why *why;
  Loc loc;
} Loop;

static Value *rt_numbers(Lower *L, Value *v, Loc loc) {
  Front *f = L->f;
  if (val_is_number(v)) return front_to_rt(L, v, loc);
  if (v->kind != VAL_TUPLE && v->kind != VAL_OBJECT) return v;
  Value *t = arena_copy(f->a, v, sizeof *v);
  t->seq.items = arena_array(f->a, Value *, v->seq.n + 1);
  for (uint32_t i = 0; i < v->seq.n; i++) t->seq.items[i] = rt_numbers(L, v->seq.items[i], loc);
  return t;
}

// Which leaves of a value are guessed to stay.
typedef Vec(bool) BoolVec;
static void guess(Lower *L, const Value *v, BoolVec *out) {
  Front *f = L->f;
  switch (v->kind) {
  case VAL_TUPLE:
  case VAL_OBJECT:
  case VAL_VECTOR:
  case VAL_DICT:
    for (uint32_t i = 0; i < v->seq.n; i++) guess(L, v->seq.items[i], out);
    return;
  case VAL_BLOCKPTR:
    for (int i = 0; i < 1 + 2 * v->bp->rank; i++) vec_push(f->a, out, true);
    for (int i = 0; i < v->bp->rank; i++) vec_push(f->a, out, false);
    return;
  default: {
    LeafVec lv = {0};
    val_leaves(f, v, &lv);
    for (uint32_t i = 0; i < lv.len; i++) vec_push(f->a, out, v->kind == VAL_DESC);
  }
  }
}

static void loop_begin(Lower *L, Loop *lp, const Node *n, const NodeVec *body, const Node *cond) {
  Front *f = L->f;
  lp->node = n;
  lp->loc = n->loc;
  AstNames names = {0};
  ast_bound_names(f->a, body, &names);
  if (cond) {
    Node stmt = {.kind = AST_ExprStmt, .a = (Node *)(uintptr_t)cond};
    Node *one = &stmt;
    NodeVec v = {.data = &one, .len = 1, .cap = 1};
    ast_bound_names(f->a, &v, &names);
  }
  for (uint32_t i = 0; i < names.len; i++) {
    const Binding *b = env_find(L->env, names.data[i]);
    if (!b || !b->value || b->is_const || b->value->kind == VAL_POISON) continue;
    Carry c = {.name = names.data[i], .init = rt_numbers(L, b->value, n->loc), .first = lp->parts.len};
    if (c.init->kind == VAL_MEM) continue;
    LeafVec leaves = {0};
    BoolVec fixed = {0};
    val_leaves(f, c.init, &leaves);
    guess(L, c.init, &fixed);
    c.n = leaves.len;
    for (uint32_t k = 0; k < leaves.len; k++)
      vec_push(f->a, &lp->parts, ((Part){.init = leaves.data[k], .fixed = fixed.data[k]}));
    vec_push(f->a, &lp->carries, c);
    vec_push(f->a, &lp->exits, c.name);
  }
  lp->breaks = ast_effects(body).breaks;
  if (lp->breaks) vec_push(f->a, &lp->exits, f->s_brk);
  lp->thread = L->thread != NULL;
  lp->why = L->thread ? L->thread->why : NULL;
}

static const Type *part_type(Lower *L, const Loop *lp, const Part *p) {
  const Type *t = p->init.type;
  if (!t || t->rank) return t;
  return (lp->thread || p->raise) && !t->thread ? type_scalar(L->f, t->elem, true) : t;
}

// Operands for the parts that are carried.
typedef Vec(IrValue *) IrValues;
static void push_inits(Lower *L, Loop *lp, IrValues *ops) {
  for (uint32_t i = 0; i < lp->parts.len; i++) {
    const Part *p = &lp->parts.data[i];
    if (p->fixed) continue;
    const Type *t = part_type(L, lp, p);
    IrValue *v = p->init.ir;
    if (t && !t->rank && t->thread && !p->init.type->thread) v = ir_to_thread(front_at(L, lp->loc), v);
    vec_push(L->f->a, ops, v);
  }
}

// Block arguments for the carried parts, and the names bound to them in the present environment.
static void bind_args(Lower *L, Loop *lp, IrBlock *b) {
  Front *f = L->f;
  for (uint32_t i = 0; i < lp->parts.len; i++) {
    Part *p = &lp->parts.data[i];
    const Type *t = part_type(L, lp, p);
    p->arg = p->init;
    if (p->fixed) continue;
    IrValue *a = ir_block_arg(b, t ? front_ir_of(f, t) : p->init.ir->type, NULL);
    p->arg = (Leaf){a, t, p->init.why ? p->init.why : lp->why};
  }
  for (uint32_t i = 0; i < lp->carries.len; i++) {
    Carry *c = &lp->carries.data[i];
    LeafVec leaves = {0};
    for (uint32_t k = 0; k < c->n; k++) vec_push(f->a, &leaves, lp->parts.data[c->first + k].arg);
    uint32_t at_leaf = 0;
    c->arg = val_rebuild(f, c->init, leaves.data, &at_leaf);
    for (uint32_t k = 0; k < c->n; k++)
      if (!lp->parts.data[c->first + k].fixed && !lp->parts.data[c->first + k].arg.ir->name)
        lp->parts.data[c->first + k].arg.ir->name = c->name;
    env_set(f, L->env, c->name, c->arg, false);
  }
}

// What to write before the loop, as code where there is something short.
static const char *final_type_hint(Front *f, const Str *name, const Value *v) {
  if (v->kind != VAL_RT || elem_is_ptr(v->rt.type->elem)) return "give it its final type before the loop";
  const char *dtype = front_dtype_name(v->rt.type->elem->dt);
  if (!v->rt.type->rank && v->rt.type->elem->dt == FDT_float32)
    return arena_printf(f->a, "give it its final type before the loop, e.g. %s = 0.0", name->s);
  if (!v->rt.type->rank)
    return arena_printf(f->a, "give it its final type before the loop, e.g. %s = tl.cast(..., tl.%s)",
                        name->s, dtype);
  const char *shape = "";
  for (int i = 0; i < v->rt.type->rank; i++)
    shape = arena_printf(f->a, "%s%d, ", shape, v->rt.type->shape[i]);
  return arena_printf(f->a, "give it its final type before the loop, e.g. %s = tl.zeros((%.*s), dtype=tl.%s)",
                      name->s, (int)strlen(shape) - (v->rt.type->rank > 1 ? 2 : 1), shape, dtype);
}

// The values that the body hands on. False: a guess was wrong, lower again.
static bool next_values(Lower *L, Loop *lp, IrValues *out) {
  Front *f = L->f;
  bool holds = true;
  for (uint32_t i = 0; i < lp->carries.len; i++) {
    Carry *c = &lp->carries.data[i];
    const Binding *b = env_find(L->env, c->name);
    Value *next = b ? b->value : NULL, *un, *ua;
    Side side = {.b = L->b, .loc = lp->loc};
    bool ok = next != NULL;
    if (ok) {
      ok = front_unify(L, &side, next, &side, c->arg, &un, &ua);
      L->b = side.b;
    }
    if (!ok) {
      if (next)
        front_err_hint(L, lp->loc, final_type_hint(f, c->name, next),
                       "'%s' is %s before the loop but %s after one trip; a loop keeps types and shapes",
                       c->name->s, val_kind_text(f, c->init), val_kind_text(f, next));
      else
        front_err(L, lp->loc, "'%s' is carried by the loop, but %s", c->name->s,
                  b && b->gone ? b->gone : "is lost in its body");
      un = c->arg;
    }
    if (un->kind == VAL_POISON) un = c->arg;
    LeafVec leaves = {0};
    val_leaves(f, un, &leaves);
    for (uint32_t k = 0; k < c->n; k++) {
      Part *p = &lp->parts.data[c->first + k];
      const Leaf *l = &leaves.data[k];
      if (p->fixed) {
        if (l->ir != p->init.ir) p->fixed = false, holds = false;
        continue;
      }
      const bool arg_thread = p->arg.type && p->arg.type->thread;
      if (l->type && l->type->thread && !arg_thread) {
        p->raise = true;
        p->init.why = p->init.why ? p->init.why : l->why;
        holds = false;
      }
      vec_push(f->a, out, front_leaf_at_level(L, &side, l, arg_thread));
      L->b = side.b;
    }
  }
  return holds;
}

typedef Vec(const IrType *) IrTypes;
static void carried_types(Lower *L, Loop *lp, IrTypes *out) {
  for (uint32_t i = 0; i < lp->parts.len; i++) {
    const Part *p = &lp->parts.data[i];
    if (p->fixed) continue;
    const Type *t = part_type(L, lp, p);
    vec_push(L->f->a, out, t ? front_ir_of(L->f, t) : p->init.ir->type);
  }
}

// Tiles cannot be carried where not all threads run the same trips.
static void check_tiles(Lower *L, Loop *lp) {
  if (!lp->thread) return;
  for (uint32_t i = 0; i < lp->carries.len; i++) {
    const Carry *c = &lp->carries.data[i];
    for (uint32_t k = 0; k < c->n; k++) {
      Part *p = &lp->parts.data[c->first + k];
      if (!p->init.type || !p->init.type->rank || p->fixed) continue;
      p->fixed = true;
      const ThreadCtl ctl = {lp->why, lp->loc}, *outer = L->thread;
      L->thread = &ctl;
      front_tiles_allowed(L, lp->loc,
                          arena_printf(L->f->a, "the tile '%s', which this loop changes,", c->name->s));
      L->thread = outer;
    }
  }
}

// After the loop: results from op, beginning at result `first`.
static void bind_results(Lower *L, Loop *lp, IrOp *op, uint32_t first) {
  Front *f = L->f;
  LeafVec leaves = {0};
  for (uint32_t i = 0; i < lp->parts.len; i++) {
    const Part *p = &lp->parts.data[i];
    if (p->fixed)
      vec_push(f->a, &leaves, p->init);
    else
      vec_push(f->a, &leaves, ((Leaf){ir_result(op, first++), p->arg.type, p->arg.why}));
  }
  for (uint32_t i = 0; i < lp->carries.len; i++) {
    const Carry *c = &lp->carries.data[i];
    uint32_t at_leaf = c->first;
    env_set(f, L->env, c->name, val_rebuild(f, c->init, leaves.data, &at_leaf), false);
  }
}

// Names that only the body binds mean nothing after it.
static void drop_inner_names(Lower *L, const Loop *lp, const Env *body) {
  Front *f = L->f;
  for (uint32_t i = 0; i < body->map.entries.len; i++) {
    if (body->map.entries.data[i].key == MAP_GONE) continue;
    const Str *n = (const Str *)(uintptr_t)body->map.entries.data[i].key;
    if (env_find(L->env, n) || n == f->s_brk) continue;
    const Binding *b = env_find(body, n);
    if (b->value && b->value->kind == VAL_POISON)
      env_set(f, L->env, n, f->poison, false);
    else
      env_set_gone(f, L->env, n,
                   arena_printf(f->a, "is defined only inside the loop in line %u", lp->loc.line));
  }
}

// Lowers the loop's body in block b. False: a guess was wrong.
static bool run_body(Lower *L, Loop *lp, const ThreadCtl *ctl, IrValues *next, Value **brk) {
  Front *f = L->f;
  const AstNames *exits = L->exits;
  const bool in_loop = L->in_loop;
  const ThreadCtl *outer = L->thread;
  L->exits = &lp->exits;
  L->in_loop = true;
  if (lp->thread) L->thread = ctl;
  if (lp->breaks) env_set(f, L->env, f->s_brk, f->vfalse, false);
  Cont end = {.kind = CONT_END};
  Cont *p = front_lower_stmts(L, &lp->node->list, 0, &end);
  (void)p; // at the end, by whatever way
  const bool ok = next_values(L, lp, next);
  const Binding *b = lp->breaks ? env_find(L->env, f->s_brk) : NULL;
  *brk = b && b->value ? b->value : f->vfalse;
  if ((*brk)->kind != VAL_BOOL && (*brk)->kind != VAL_RT) *brk = f->vfalse;
  if (lp->breaks) *brk = front_to_rt(L, *brk, lp->loc);
  L->exits = exits;
  L->in_loop = in_loop;
  L->thread = outer;
  return ok;
}

// ---- counted ---------------------------------------------------------------------------------------
typedef struct Count {
  Value *lo, *hi, *step;
  const Elem *elem;
  bool down; // a negative constant step
} Count;

static bool count_of(Lower *L, const RangeSpec *r, Count *c, Loc loc) {
  Front *f = L->f;
  Value *v[3] = {r->lo, r->hi, r->step};
  static const char *const names[3] = {"the start of a range", "the end of a range", "the step of a range"};
  const Elem *e = NULL;
  for (int i = 0; i < 3; i++) {
    if (v[i]->kind == VAL_POISON) return false;
    if (v[i]->kind == VAL_RT && (v[i]->rt.type->rank || !elem_is_int(v[i]->rt.type->elem))) {
      front_err(L, loc, "%s must be an integer scalar, not %s", names[i], val_kind_text(f, v[i]));
      return false;
    }
    if (v[i]->kind != VAL_RT && v[i]->kind != VAL_INT && v[i]->kind != VAL_BOOL) {
      front_err(L, loc, "%s must be an integer, not %s", names[i], val_kind_text(f, v[i]));
      return false;
    }
    const Elem *ei = v[i]->kind == VAL_RT    ? v[i]->rt.type->elem
                     : v[i]->kind == VAL_INT ? elem_of_int(f, v[i]->i)
                                             : NULL;
    if (!ei || elem_bits(ei) < 32) ei = elem_number(f, FDT_int32);
    e = e ? front_promote_ints(f, e, ei) : ei;
  }
  c->down = v[2]->kind == VAL_INT && v[2]->i < 0;
  if (v[2]->kind == VAL_INT && !v[2]->i) {
    front_err(L, loc, "a range with step 0");
    return false;
  }
  if (c->down && elem_is_unsigned(e)) e = elem_number(f, elem_bits(e) == 32 ? FDT_int32 : FDT_int64);
  c->elem = e;
  c->lo = front_cast_to(L, v[0], e, false, loc);
  c->hi = front_cast_to(L, v[1], e, false, loc);
  c->step = front_cast_to(L, v[2], e, false, loc);
  return c->lo->kind == VAL_RT && c->hi->kind == VAL_RT && c->step->kind == VAL_RT;
}

static void raise_count(Lower *L, Count *c, Loop *lp) {
  if (!lp->thread) return;
  c->lo = front_raise_level(L, c->lo, lp->loc);
  c->hi = front_raise_level(L, c->hi, lp->loc);
  c->step = front_raise_level(L, c->step, lp->loc);
}

static void set_hints(IrOp *op, const RangeSpec *r, const Elem *e) {
  if (r->stages) ir_set_attr_i(op, ATTR_stages, r->stages);
  if (r->unroll) ir_set_attr_i(op, ATTR_unroll, r->unroll);
  if (r->flatten) ir_set_attr_i(op, ATTR_flatten, 1);
  if (r->warp_spec) ir_set_attr_i(op, ATTR_warp_spec, 1);
  if (elem_is_unsigned(e)) ir_set_attr_i(op, ATTR_uns_iv, 1);
}

static void counted(Lower *L, Loop *lp, Count c, const RangeSpec *r) {
  Front *f = L->f;
  const IrBuilder saved = L->b;
  Env *before = L->env;
  const ThreadCtl ctl = {lp->why, lp->loc};
  for (bool done = false; !done;) {
    check_tiles(L, lp);
    raise_count(L, &c, lp);
    IrValues ops = {0};
    IrTypes types = {0};
    vec_push(f->a, &ops, c.lo->rt.ir);
    vec_push(f->a, &ops, c.hi->rt.ir);
    vec_push(f->a, &ops, c.step->rt.ir);
    push_inits(L, lp, &ops);
    carried_types(L, lp, &types);
    IrOp *op = ir_build(front_at(L, lp->loc), OP_for, ops.len, ops.data, types.len, types.data, 1);
    set_hints(op, r, c.elem);
    IrBlock *body = op->regions[0];
    const Type *it = type_scalar(f, c.elem, lp->thread);
    Value *iv = val_rt(f, ir_block_arg(body, front_ir_of(f, it), NULL), it, lp->why);
    L->env = env_copy(f, before);
    bind_args(L, lp, body);
    L->b = ir_builder_at_end(body);
    front_assign(L, lp->node->a, iv, false);
    IrValues next = {0};
    Value *brk;
    done = run_body(L, lp, &ctl, &next, &brk);
    const Env *inner = L->env;
    if (done) ir_yield(front_at(L, lp->loc), next.len, next.data);
    L->env = before;
    L->b = saved;
    if (done) {
      bind_results(L, lp, op, 0);
      drop_inner_names(L, lp, inner);
    } else {
      ir_erase(op);
    }
  }
}

// A counted loop with a break, as a while over (counter, carried.., broken).
static void counted_break(Lower *L, Loop *lp, Count c) {
  Front *f = L->f;
  const IrBuilder saved = L->b;
  Env *before = L->env;
  const Elem *i1 = elem_number(f, FDT_int1);
  for (bool done = false; !done;) {
    check_tiles(L, lp);
    raise_count(L, &c, lp);
    const ThreadCtl ctl = {lp->why, lp->loc};
    const ThreadCtl *outer = L->thread;
    if (lp->thread) L->thread = &ctl;
    IrValues ops = {0};
    IrTypes types = {0};
    vec_push(f->a, &ops, c.lo->rt.ir);
    vec_push(f->a, &types, c.lo->rt.ir->type);
    push_inits(L, lp, &ops);
    carried_types(L, lp, &types);
    vec_push(f->a, &ops, front_const_of(L, i1, f->vfalse, lp->loc)->rt.ir);
    vec_push(f->a, &types, vec_last(&ops)->type);
    IrOp *op = ir_build(front_at(L, lp->loc), OP_while, ops.len, ops.data, types.len, types.data, 2);
    IrBlock *head = op->regions[0], *body = op->regions[1];
    // head: go on while the counter is inside and nothing broke
    IrValues through = {0};
    for (uint32_t i = 0; i < types.len; i++)
      vec_push(f->a, &through, ir_block_arg(head, types.data[i], NULL));
    L->b = ir_builder_at_end(head);
    const bool u = elem_is_unsigned(c.elem);
    IrValue *inside = ir_cmp(front_at(L, lp->loc),
                             c.down ? CMP_sgt
                             : u    ? CMP_ult
                                    : CMP_slt,
                             through.data[0], c.hi->rt.ir);
    IrValue *one = ir_const_i(front_at(L, lp->loc), vec_last(&types), 1);
    IrValue *whole = ir_binary(front_at(L, lp->loc), OP_xor, vec_last(&through), one);
    IrValue *go = ir_binary(front_at(L, lp->loc), OP_and, inside, whole);
    IrValues yield = {0};
    vec_push(f->a, &yield, go);
    for (uint32_t i = 0; i < through.len; i++) vec_push(f->a, &yield, through.data[i]);
    ir_build(front_at(L, lp->loc), OP_cond_yield, yield.len, yield.data, 0, NULL, 0);
    // body
    const Type *it = type_scalar(f, c.elem, lp->thread);
    Value *iv = val_rt(f, ir_block_arg(body, front_ir_of(f, it), NULL), it, lp->why);
    L->env = env_copy(f, before);
    bind_args(L, lp, body);
    ir_block_arg(body, vec_last(&types), NULL);
    L->b = ir_builder_at_end(body);
    L->thread = outer;
    front_assign(L, lp->node->a, iv, false);
    IrValues next = {0}, out = {0};
    Value *brk;
    done = run_body(L, lp, &ctl, &next, &brk);
    if (brk->kind == VAL_RT && brk->rt.type->thread && !lp->thread)
      lp->thread = true, lp->why = brk->rt.why, done = false;
    const Env *inner = L->env;
    if (done) {
      vec_push(f->a, &out, ir_binary(front_at(L, lp->loc), OP_add, iv->rt.ir, c.step->rt.ir));
      for (uint32_t i = 0; i < next.len; i++) vec_push(f->a, &out, next.data[i]);
      vec_push(f->a, &out, front_as_level(L, brk, lp->thread, lp->loc)->rt.ir);
      ir_yield(front_at(L, lp->loc), out.len, out.data);
    }
    L->env = before;
    L->b = saved;
    if (done) {
      bind_results(L, lp, op, 1);
      drop_inner_names(L, lp, inner);
    } else {
      ir_erase(op);
    }
  }
}

Cont *front_lower_for(Lower *L, const Node *n, Cont *rest) {
  Front *f = L->f;
  const Value *it = front_eval(L, n->b);
  if (n->list2.len)
    front_err_hint(L, n->list2.data[0]->loc, "move it behind the loop", "`else` on a loop is not supported");
  const bool known = it->kind == VAL_RANGE && it->range->lo->kind == VAL_INT &&
                     it->range->hi->kind == VAL_INT && it->range->step->kind == VAL_INT;
  if (it->kind == VAL_TUPLE || (it->kind == VAL_RANGE && it->range->kind == RANGE_STATIC) ||
      (L->keep_const && known)) // plain Python functions run while compiling
    return unroll(L, n, it, rest);
  AstNames names = {0};
  if (it->kind != VAL_RANGE) {
    if (it->kind != VAL_POISON)
      front_err_hint(L, n->b->loc, "loop over range(...), tl.range(...), tl.static_range(...) or a tuple",
                     "a loop cannot run over %s", val_kind_text(f, it));
    ast_bound_names(f->a, &n->list, &names);
    for (uint32_t i = 0; i < names.len; i++) env_set(f, L->env, names.data[i], f->poison, false);
    return rest;
  }
  if (front_no_code(L, n->loc)) return rest;
  Loop lp = {0};
  Count c = {0};
  if (!count_of(L, it->range, &c, n->b->loc)) {
    ast_bound_names(f->a, &n->list, &names);
    for (uint32_t i = 0; i < names.len; i++) env_set(f, L->env, names.data[i], f->poison, false);
    return rest;
  }
  // the loop variable starts out as what it was, where that has its type
  const Binding *old = n->a->kind == AST_Name ? env_find(L->env, n->a->name) : NULL;
  NodeVec body = n->list;
  Node carry_target = {.kind = AST_Assign};
  if (old && old->value && !old->is_const && old->value->kind == VAL_RT &&
      old->value->rt.type->elem == c.elem && !old->value->rt.type->rank) {
    carry_target.loc = n->loc;
    vec_push(f->a, &carry_target.list, n->a);
    NodeVec both = {0};
    Node *head = arena_copy(f->a, &carry_target, sizeof carry_target);
    vec_push(f->a, &both, head);
    for (uint32_t i = 0; i < body.len; i++) vec_push(f->a, &both, body.data[i]);
    body = both;
  } else if (old && n->a->kind == AST_Name) {
    env_set_gone(f, L->env, n->a->name, "was the variable of a loop and ends with it");
  }
  loop_begin(L, &lp, n, &body, NULL);
  Value *const ends[3] = {c.lo, c.hi, c.step};
  for (int i = 0; i < 3; i++)
    if (ends[i]->rt.type->thread && !lp.thread) lp.thread = true, lp.why = ends[i]->rt.why;
  if (lp.breaks)
    counted_break(L, &lp, c);
  else
    counted(L, &lp, c, it->range);
  return rest;
}

// ---- while -----------------------------------------------------------------------------------------
// Evaluates the condition in the head region; NULL where it is poison.
static Value *head_condition(Lower *L, Loop *lp, IrValue *broken) {
  Front *f = L->f;
  const Node *n = lp->node;
  if (!broken) {
    Value *c = front_condition(L, front_eval(L, n->a), n->a->loc);
    return c;
  }
  // after a break the condition is not evaluated again
  IrOp *op = ir_build(front_at(L, lp->loc), OP_if, 1, &broken, 0, NULL, 2);
  const IrBuilder saved = L->b;
  L->b = ir_builder_at_end(op->regions[1]);
  Value *c = front_condition(L, front_eval(L, n->a), n->a->loc);
  if (c->kind == VAL_BOOL || c->kind == VAL_POISON) { // no code is needed for it
    L->b = saved;
    ir_erase(op);
    if (c->kind == VAL_POISON || !c->b) return c;
    const Type *t = type_scalar(f, elem_number(f, FDT_int1), L->thread != NULL);
    IrValue *one = ir_const_i(front_at(L, lp->loc), broken->type, 1);
    return val_rt(f, ir_binary(front_at(L, lp->loc), OP_xor, broken, one), t, lp->why);
  }
  if (broken->type->level == LEVEL_thread) c = front_raise_level(L, c, lp->loc);
  ir_op_add_result(op, c->rt.ir->type);
  ir_yield(front_at(L, lp->loc), 1, &c->rt.ir);
  IrBuilder tb = ir_builder_at_end(op->regions[0]);
  tb.loc = lp->loc;
  IrValue *no = ir_const_i(&tb, c->rt.ir->type, 0);
  ir_yield(&tb, 1, &no);
  L->b = saved;
  return val_rt(f, ir_result(op, 0), c->rt.type, c->rt.why);
}

static void runtime_while(Lower *L, const Node *n) {
  Front *f = L->f;
  if (n->list2.len)
    front_err_hint(L, n->list2.data[0]->loc, "move it behind the loop", "`else` on a loop is not supported");
  if (front_no_code(L, n->loc)) return;
  Loop lp = {0};
  loop_begin(L, &lp, n, &n->list, n->a);
  const IrBuilder saved = L->b;
  Env *before = L->env;
  const Elem *i1 = elem_number(f, FDT_int1);
  for (bool done = false; !done;) {
    check_tiles(L, &lp);
    const ThreadCtl ctl = {lp.why, n->a->loc};
    const ThreadCtl *outer = L->thread;
    if (lp.thread) L->thread = &ctl;
    IrValues ops = {0};
    IrTypes types = {0};
    push_inits(L, &lp, &ops);
    carried_types(L, &lp, &types);
    if (lp.breaks) {
      vec_push(f->a, &ops, front_const_of(L, i1, f->vfalse, lp.loc)->rt.ir);
      vec_push(f->a, &types, vec_last(&ops)->type);
    }
    IrOp *op = ir_build(front_at(L, lp.loc), OP_while, ops.len, ops.data, types.len, types.data, 2);
    IrBlock *head = op->regions[0], *body = op->regions[1];
    L->env = env_copy(f, before);
    bind_args(L, &lp, head);
    IrValue *broken = lp.breaks ? ir_block_arg(head, vec_last(&types), NULL) : NULL;
    L->b = ir_builder_at_end(head);
    Value *go = head_condition(L, &lp, broken);
    if (go->kind == VAL_RT && go->rt.type->rank)
      go = front_err(L, n->a->loc, "a tile cannot be the condition of a loop");
    if (go->kind == VAL_POISON || (go->kind == VAL_BOOL && !go->b)) { // never runs
      const bool poison = go->kind == VAL_POISON;
      L->thread = outer;
      L->env = before;
      L->b = saved;
      ir_erase(op);
      if (poison)
        for (uint32_t i = 0; i < lp.carries.len; i++)
          env_set(f, before, lp.carries.data[i].name, f->poison, false);
      return;
    }
    go = front_to_rt(L, go, lp.loc);
    IrValues through = {0}, next = {0};
    bool ok = next_values(L, &lp, &through); // := in the condition changes names
    if (go->rt.type->thread && !lp.thread) lp.thread = true, lp.why = go->rt.why, ok = false;
    Value *brk = NULL;
    const Env *inner = L->env;
    if (ok) {
      IrValues yield = {0};
      vec_push(f->a, &yield, go->rt.ir);
      for (uint32_t i = 0; i < through.len; i++) vec_push(f->a, &yield, through.data[i]);
      if (broken) vec_push(f->a, &yield, broken);
      ir_build(front_at(L, lp.loc), OP_cond_yield, yield.len, yield.data, 0, NULL, 0);
      L->env = env_copy(f, before);
      bind_args(L, &lp, body);
      if (lp.breaks) ir_block_arg(body, vec_last(&types), NULL);
      L->b = ir_builder_at_end(body);
      L->thread = outer;
      ok = run_body(L, &lp, &ctl, &next, &brk);
      if (brk->kind == VAL_RT && brk->rt.type->thread && !lp.thread)
        lp.thread = true, lp.why = brk->rt.why, ok = false;
      inner = L->env;
    }
    if (ok) {
      if (lp.breaks) vec_push(f->a, &next, front_as_level(L, brk, lp.thread, lp.loc)->rt.ir);
      ir_yield(front_at(L, lp.loc), next.len, next.data);
    }
    done = ok;
    L->thread = outer;
    L->env = before;
    L->b = saved;
    if (done) {
      bind_results(L, &lp, op, 0);
      drop_inner_names(L, &lp, inner);
    } else {
      ir_erase(op);
    }
  }
}

// In a plain Python function, a loop whose condition is known runs while compiling.
static Cont *known_while(Lower *L, const Node *n, Cont *rest) {
  Unroll *u = arena_new(L->f->a, Unroll);
  u->loop = n;
  u->trips = FRONT_MAX_STEPS;
  return front_unroll_from(L, u, 0, rest);
}

Cont *front_lower_while(Lower *L, const Node *n, Cont *rest) {
  if (L->keep_const) {
    L->f->quiet++;
    const IrBuilder saved = L->b;
    L->b.block = NULL; // only to see whether it is known
    const Value *c = front_condition(L, front_eval(L, n->a), n->a->loc);
    L->b = saved;
    L->f->quiet--;
    if (c->kind == VAL_BOOL) return known_while(L, n, rest);
  }
  runtime_while(L, n);
  return rest;
}
