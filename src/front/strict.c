// What Python refuses although the grammar takes it, found on our own tree: stars and targets in places that have none.
//
// The grammar is made for editors: it reads `return *a` or `with f as g(x)` and leaves it there. In code that a kernel
// reaches, lowering would say so; elsewhere nobody would. The first such place is a syntax error, as in Python.
#include "front/parse.h"

typedef struct Strict {
  Diags *d;
  bool bad;
} Strict;

static void refuse(Strict *s, const Node *n, const char *what) {
  if (!s->bad) diag(s->d, DIAG_ERROR, n->loc, "syntax error: %s", what);
  s->bad = true;
}

// A name, an attribute, an element; where `many`, also tuples and lists of targets, one of them with a star.
static void check_target(Strict *s, const Node *n, bool many) {
  if (!n || s->bad) return;
  switch (n->kind) {
  case AST_Name:
  case AST_Attr:
  case AST_Subscript:
  case AST_Other: return;
  case AST_Tuple:
  case AST_List: {
    uint32_t stars = 0;
    if (!many) refuse(s, n, "this takes one target, not several");
    for (uint32_t i = 0; i < n->list.len && !s->bad; i++) {
      const Node *t = n->list.data[i];
      if (t->kind == AST_Star && ++stars > 1) refuse(s, t, "only one target can have a star");
      check_target(s, t->kind == AST_Star ? t->a : t, true);
    }
    return;
  }
  case AST_Star: refuse(s, n, "a target with a star stands in a tuple or a list"); return;
  default: refuse(s, n, "this cannot be assigned to");
  }
}

static void check_targets(Strict *s, const Node *n) {
  switch (n->kind) {
  case AST_Assign:
    for (uint32_t i = 0; i < n->list.len; i++) check_target(s, n->list.data[i], true);
    break;
  case AST_For:
  case AST_CompFor: check_target(s, n->a, true); break;
  case AST_WithItem: check_target(s, n->b, true); break;
  case AST_AnnAssign:
  case AST_AugAssign: check_target(s, n->a, false); break;
  default: break;
  }
}

static bool takes_stars(const Node *n, const Node *star) {
  switch (n->kind) {
  case AST_Call:
  case AST_ClassDef: return true;
  case AST_Tuple:
  case AST_List:
  case AST_Subscript: return !star->op; // not around a comparison, a condition, `and` and `or`
  case AST_Dict: return !star->a;       // **value
  default: return false;
  }
}

static bool has_param(const Node *def, const Str *name) {
  for (uint32_t i = 0; i < def->list.len; i++)
    if (def->list.data[i]->name == name) return true;
  return false;
}

static void check_globals(Strict *s, const Node *def, const NodeVec *stmts) {
  for (uint32_t i = 0; i < stmts->len && !s->bad; i++) {
    const Node *n = stmts->data[i];
    for (uint32_t k = 0; n->kind == AST_Global && k < n->list.len; k++)
      if (has_param(def, n->list.data[k]->name)) refuse(s, n, "a parameter cannot be global as well");
    if (n->kind != AST_If && n->kind != AST_For && n->kind != AST_While && n->kind != AST_With &&
        n->kind != AST_Try)
      continue;
    check_globals(s, def, &n->list);
    check_globals(s, def, &n->list2);
  }
}

static void check_node(Strict *s, const Node *n) {
  if (s->bad) return;
  check_targets(s, n);
  if (n->kind == AST_FuncDef) check_globals(s, n, &n->list2);
  const Node *const parts[3] = {n->a, n->b, n->c};
  for (int i = 0; i < 3 && !s->bad; i++) {
    if (!parts[i]) continue;
    if (parts[i]->kind == AST_Star)
      refuse(s, parts[i], "a star unpacks into calls, tuples and lists, and nothing can be unpacked here");
    check_node(s, parts[i]);
  }
  const NodeVec *const lists[3] = {&n->list, &n->list2, &n->list3};
  for (int l = 0; l < 3; l++)
    for (uint32_t i = 0; i < lists[l]->len && !s->bad; i++) {
      const Node *x = lists[l]->data[i];
      if (!x) continue;
      if (x->kind == AST_Star && (l || !takes_stars(n, x)))
        refuse(s, x, "a star unpacks into calls, tuples and lists, and nothing can be unpacked here");
      check_node(s, x);
    }
}

bool syntax_tree(Diags *d, const Node *module) {
  Strict s = {.d = d};
  check_node(&s, module);
  return s.bad;
}
