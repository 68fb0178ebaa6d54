// wait_class: what must run so that a kernel's waits end (IrWaitClass, docs/design.md section 5).
//
// needs:  no calls; waits before it, so that polling loops are wait ops.
// keeps:  the program as it is. A class other than `none` that is there already was declared by the caller and stays.
// breaks: nothing.
//
//   none      nothing waits
//   external  waits, and nothing in the kernel (on any rank) writes the words that it waits for
//   ordered   waits only for instances with a lower program id, or for a lock whose holder is running
//   mutual    everything else: instances, here or on peers, wait for one another
//
// Conservative: a word and a write belong together when they come from one parameter, or either comes from anywhere.
// Different parameters are taken for different buffers.
#include "pass/pass_impl.h"

typedef struct Write {
  const IrOp *op;
  uint64_t roots;
} Write;

typedef struct Class {
  Pass *p;
  IrFunc *f;
  const PassRoots *roots;
  Vec(Write) writes;
  IrWaitClass found;
  Loc loc;
  const char *why;
} Class;

static void raise_to(Class *c, IrWaitClass w, Loc loc, const char *why) {
  if (w <= c->found) return;
  c->found = w;
  c->loc = loc;
  c->why = why;
}

static bool is_peer(uint64_t roots) { return (roots & PASS_ROOT_PEER) != 0; }

static bool meet(uint64_t a, uint64_t b) {
  return ((a | b) & PASS_ROOT_UNKNOWN) || (a & b & ~PASS_ROOT_PEER);
}

// ---- writes that may end a wait ---------------------------------------------------------------------------------------

static void add(Class *c, const IrOp *op, uint32_t i, bool peer) {
  vec_push(c->p->scratch, &c->writes,
           ((Write){op, pass_roots(c->roots, ir_operand(op, i)) | (peer ? PASS_ROOT_PEER : 0)}));
}

static bool collect(IrOp *op, void *user) {
  Class *c = user;
  switch (op->kind) {
  case OP_atomic_rmw:
    if (!pass_rmw_is_neutral(op)) add(c, op, 0, false);
    break;
  case OP_store:
  case OP_store_vec:
  case OP_atomic_cas:
  case OP_desc_store:
  case OP_desc_rmw: add(c, op, 0, false); break;
  case OP_signal:
  case OP_put: add(c, op, 0, true); break;
  case OP_release: add(c, op, 0, ir_operand(op, 2) != NULL); break;
  case OP_get: add(c, op, 0, false); break;
  case OP_put_signal:
    add(c, op, 0, true);
    add(c, op, 3, true);
    break;
  default: break;
  }
  return true;
}

// ---- addresses as parameter + a * program_id + b ------------------------------------------------------------------------

typedef struct Linear {
  const IrValue *base; // of the pointer; NULL for an integer
  int64_t pid[3], offset;
} Linear;

static bool linear(const IrValue *v, Linear *out, int depth) {
  int64_t k;
  Linear a, b;
  *out = (Linear){0};
  if (depth > 24) return false;
  if (ir_type_is_int(v->type) && ir_const_int(v, &k)) {
    out->offset = k;
    return true;
  }
  if (!v->def) {
    out->base = v;
    return ir_type_is_ptr(v->type);
  }
  const IrOp *op = v->def;
  switch (op->kind) {
  case OP_program_id: out->pid[ir_attr_i(op, ATTR_axis) % 3] = 1; return true;
  case OP_ext_s:
  case OP_ext_u:
  case OP_hint:
  case OP_to_thread:
  case OP_consume: return linear(ir_operand(op, 0), out, depth + 1);
  case OP_add:
  case OP_sub:
  case OP_ptr_add:
    if (!linear(ir_operand(op, 0), &a, depth + 1) || !linear(ir_operand(op, 1), &b, depth + 1) || b.base)
      return false;
    *out = a;
    for (int i = 0; i < 3; i++) out->pid[i] += op->kind == OP_sub ? -b.pid[i] : b.pid[i];
    out->offset += op->kind == OP_sub ? -b.offset : b.offset;
    return true;
  case OP_mul:
    if (!linear(ir_operand(op, 0), &a, depth + 1) || a.base || !ir_const_int(ir_operand(op, 1), &k))
      return false;
    if (k > INT32_MAX || k < -INT32_MAX) return false;
    *out = a;
    for (int i = 0; i < 3; i++) out->pid[i] *= k;
    out->offset *= k;
    return true;
  default: return false;
  }
}

// Does the instance that writes w's word come before the one that waits for it? The wait looks at base + s * pid + a, the
// write goes to base + s * pid + b: the writer is (a - b) / s ids away.
static bool from_lower(const IrOp *wait, const IrOp *write) {
  Linear a, b;
  int axes = 0;
  if (!linear(ir_operand(wait, 0), &a, 0) || !linear(ir_operand(write, 0), &b, 0)) return false;
  if (!a.base || a.base != b.base) return false;
  for (int i = 0; i < 3; i++) {
    if (a.pid[i] != b.pid[i]) return false;
    axes += a.pid[i] != 0;
  }
  if (axes != 1 || a.pid[0] == 0) return false; // along x only, which is the order of starting
  return a.pid[0] > 0 ? a.offset < b.offset : a.offset > b.offset;
}

// ---- waits -------------------------------------------------------------------------------------------------------------------

static bool same_const(const IrValue *a, const IrValue *b) {
  uint64_t x, y;
  return a == b || (pass_const(a, &x) && pass_const(b, &y) && x == y);
}

// A wait inside a loop that then takes the lock by compare-and-swap or exchange, where the kernel itself gives the word
// back at the same address: whoever makes others wait is running already.
static bool is_lock(const Class *c, const IrOp *wait) {
  const IrOp *loop = wait->parent->owner;
  const IrValue *p = ir_operand(wait, 0), *freed = ir_operand(wait, 2);
  bool takes = false, gives = false;
  if (!loop || loop->kind != OP_while || ir_attr_i(wait, ATTR_cmp) != CMP_eq) return false;
  for (uint32_t i = 0; i < c->writes.len; i++) {
    const IrOp *op = c->writes.data[i].op;
    if (ir_operand(op, 0) != p) continue;
    const bool xchg = op->kind == OP_atomic_rmw && ir_attr_i(op, ATTR_rmw) == RMW_xchg;
    if (op->parent->owner == loop)
      takes |= op->kind == OP_atomic_cas || xchg;
    else
      gives |= (op->kind == OP_store || xchg) && same_const(ir_operand(op, 1), freed);
  }
  return takes && gives;
}

// The value that op leaves in a word, where it is known.
static bool written(const IrOp *op, const IrValue **v) {
  const bool xchg = op->kind == OP_atomic_rmw && ir_attr_i(op, ATTR_rmw) == RMW_xchg;
  const bool set =
      (op->kind == OP_signal || op->kind == OP_release) && ir_attr_i(op, ATTR_sigop) == SIGOP_set;
  if (op->kind != OP_store && op->kind != OP_atomic_cas && !xchg && !set) return false;
  *v = ir_operand(op, op->kind == OP_atomic_cas ? 2 : 1);
  return true;
}

// Known not to satisfy the wait: taking a signal back, giving a lock away.
static bool cannot_end(const IrOp *wait, const IrOp *write) {
  const IrValue *v, *k = ir_operand(wait, wait->kind == OP_wait ? 2 : 1);
  uint64_t a, b;
  if (wait->kind == OP_acquire && !ir_attr(wait, ATTR_cmp)) return false;
  if (!written(write, &v) || v->type->kind != IR_SCALAR || v->type->dtype != k->type->dtype) return false;
  if (!pass_const(v, &a) || !pass_const(k, &b)) return false;
  return !pass_compare((IrCmp)ir_attr_i(wait, ATTR_cmp), pass_elem_bits(k->type), a, b);
}

static void wait_on(Class *c, const IrOp *op) {
  const uint64_t roots = pass_roots(c->roots, ir_operand(op, 0));
  raise_to(c, WAIT_external, op->loc, "it waits for words that the kernel itself does not write");
  if (is_lock(c, op)) {
    raise_to(c, WAIT_ordered, op->loc, "it waits for a lock whose holder is running");
    return;
  }
  for (uint32_t i = 0; i < c->writes.len; i++) {
    const Write *w = &c->writes.data[i];
    if (!meet(roots, w->roots) || cannot_end(op, w->op)) continue;
    if (!is_peer(w->roots) && !is_peer(roots) && from_lower(op, w->op))
      raise_to(c, WAIT_ordered, op->loc, "it waits for words that instances with a lower program id write");
    else
      raise_to(c, WAIT_mutual, op->loc, "it waits for words that other instances of the kernel may write");
  }
}

static bool visit(IrOp *op, void *user) {
  Class *c = user;
  switch (op->kind) {
  case OP_wait:
  case OP_acquire: wait_on(c, op); break;
  case OP_team_barrier:
    raise_to(c, WAIT_mutual, op->loc, "it meets the same kernel of all ranks at a barrier");
    break;
  case OP_while:
    if (ir_attr_i(op, ATTR_poll))
      raise_to(c, WAIT_mutual, op->loc, "it polls in a loop that could not be made a wait");
    break;
  case OP_call: raise_to(c, WAIT_mutual, op->loc, "it calls a function that is not known here"); break;
  default: break;
  }
  return true;
}

static const char *class_name(IrWaitClass w) {
  static const char *const names[WAIT_COUNT] = {"none", "external", "ordered", "mutual"};
  return names[w];
}

Status pass_wait_class(Pass *p) {
  PASS_EACH_FUNC(p, f) {
    Class c = {
        .p = p, .f = f, .roots = pass_roots_run(f, p->scratch), .why = "nothing in it waits", .loc = f->loc};
    ir_walk(f->body, collect, &c);
    ir_walk(f->body, visit, &c);
    const char *found = class_name(c.found);
    if (f->wait_class == WAIT_none) {
      f->wait_class = c.found;
      pass_remark(p, c.loc, "wait class of '%s' is %s: %s", f->name->s, found, c.why);
    } else if (f->wait_class != c.found) {
      pass_remark(p, c.loc, "wait class of '%s' is declared %s; it would be %s: %s", f->name->s,
                  class_name(f->wait_class), found, c.why);
    }
  }
  return ST_OK;
}
