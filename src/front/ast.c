// Syntax tree: names of kinds, the printer behind `--emit ast`, and questions that need no evaluation.
#include "front/ast.h"

#include <string.h>

static const struct {
  const char *name, *slot[6]; // slots: a, b, c, list, list2, list3; "_" unused
} ast_kinds[] = {
#define AST(kind, a, b, c, list, list2, list3) {#kind, {#a, #b, #c, #list, #list2, #list3}},
#include "front/ast.def"
#undef AST
};

static const char *const ast_op_texts[] = {
#define AOP(name, text) text,
#include "front/astops.def"
#undef AOP
};
static const char *const ast_op_names[] = {
#define AOP(name, text) #name,
#include "front/astops.def"
#undef AOP
};

const char *ast_kind_name(AstKind k) { return ast_kinds[k].name; }
const char *ast_op_text(AstOp op) { return ast_op_texts[op]; }
const char *ast_op_name(AstOp op) { return ast_op_names[op]; }

// ---- dump ----------------------------------------------------------------------------------------
typedef struct Dump {
  Arena *a;
  Vec(char) out;
} Dump;

static void dump_text(Dump *d, const char *s, size_t n) {
  vec_reserve(d->a, &d->out, d->out.len + n + 1);
  memcpy(d->out.data + d->out.len, s, n);
  d->out.len += (uint32_t)n;
  d->out.data[d->out.len] = 0;
}

static void dump_str(Dump *d, const char *s) { dump_text(d, s, strlen(s)); }

// A string in double quotes; bytes that do not print become \xNN.
static void dump_quoted(Dump *d, const Str *s) {
  static const char hex[] = "0123456789abcdef";
  dump_str(d, "\"");
  for (uint32_t i = 0; i < s->len; i++) {
    const unsigned char c = (unsigned char)s->s[i];
    if (c == '"' || c == '\\') {
      dump_text(d, (char[]){'\\', (char)c}, 2);
    } else if (c == '\n') {
      dump_str(d, "\\n");
    } else if (c < 32 || c == 127) {
      dump_text(d, (char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
    } else {
      dump_text(d, (const char *)&c, 1);
    }
  }
  dump_str(d, "\"");
}

static void dump_int(Dump *d, AstInt v) {
  char buf[48];
  int i = (int)sizeof buf;
  const bool neg = v < 0;
  unsigned __int128 u = neg ? -(unsigned __int128)v : (unsigned __int128)v;
  do buf[--i] = (char)('0' + (int)(u % 10));
  while (u /= 10);
  if (neg) buf[--i] = '-';
  dump_text(d, buf + i, sizeof buf - (size_t)i);
}

static bool kind_has_op_name(AstKind k) {
  return k == AST_Unary || k == AST_Binary || k == AST_BoolOp || k == AST_Compare || k == AST_AugAssign;
}

static void dump_node(Dump *d, const Node *n, const char *slot, int depth) {
  for (int i = 0; i < depth; i++) dump_str(d, "  ");
  if (slot) {
    dump_str(d, slot);
    dump_str(d, ": ");
  }
  if (!n) {
    dump_str(d, "-\n");
    return;
  }
  dump_str(d, ast_kinds[n->kind].name);
  if (kind_has_op_name(n->kind)) {
    dump_str(d, " ");
    dump_str(d, ast_op_names[n->op]);
  } else if (n->op) {
    dump_str(d, arena_printf(d->a, " op=%d", n->op));
  }
  if (n->name && n->kind == AST_Str) {
    dump_str(d, " ");
    dump_quoted(d, n->name);
  } else if (n->name) {
    dump_str(d, " ");
    dump_str(d, n->name->s);
  }
  if (n->name2) {
    dump_str(d, " as ");
    dump_str(d, n->name2->s);
  }
  if (n->kind == AST_Int) {
    dump_str(d, " ");
    dump_int(d, n->ival);
  }
  if (n->kind == AST_Float) dump_str(d, arena_printf(d->a, " %.17g", n->fval));
  dump_str(d, arena_printf(d->a, " @%u:%u\n", n->loc.line, n->loc.col));
  const Node *const kids[3] = {n->a, n->b, n->c};
  for (int i = 0; i < 3; i++)
    if (kids[i]) dump_node(d, kids[i], ast_kinds[n->kind].slot[i], depth + 1);
  const NodeVec *const lists[3] = {&n->list, &n->list2, &n->list3};
  for (int l = 0; l < 3; l++)
    for (uint32_t i = 0; i < lists[l]->len; i++)
      dump_node(d, lists[l]->data[i], ast_kinds[n->kind].slot[3 + l], depth + 1);
}

char *ast_dump(const Node *n, Arena *a) {
  Dump d = {.a = a};
  dump_str(&d, "");
  dump_node(&d, n, NULL, 0);
  return d.out.data;
}

// ---- questions -----------------------------------------------------------------------------------
bool ast_always_leaves(const NodeVec *stmts) {
  for (uint32_t i = 0; i < stmts->len; i++) {
    const Node *s = stmts->data[i];
    switch (s->kind) {
    case AST_Return:
    case AST_Break:
    case AST_Continue:
    case AST_Raise: return true;
    case AST_If:
      if (s->list2.len && ast_always_leaves(&s->list) && ast_always_leaves(&s->list2)) return true;
      break;
    case AST_With:
      if (ast_always_leaves(&s->list2)) return true;
      break;
    default: break;
    }
  }
  return false;
}

static void effects_add(AstEffects *e, const NodeVec *stmts, bool in_loop) {
  for (uint32_t i = 0; i < stmts->len; i++) {
    const Node *s = stmts->data[i];
    switch (s->kind) {
    case AST_Return: e->returns = true; break;
    case AST_Break: e->breaks |= !in_loop; break;
    case AST_Continue: e->continues |= !in_loop; break;
    case AST_If:
      effects_add(e, &s->list, in_loop);
      effects_add(e, &s->list2, in_loop);
      break;
    case AST_For:
    case AST_While:
      effects_add(e, &s->list, true);
      effects_add(e, &s->list2, in_loop);
      break;
    case AST_With: effects_add(e, &s->list2, in_loop); break;
    default: break;
    }
  }
}

AstEffects ast_effects(const NodeVec *stmts) {
  AstEffects e = {0};
  effects_add(&e, stmts, false);
  return e;
}

static void names_add(Arena *a, AstNames *names, const Str *s) {
  for (uint32_t i = 0; i < names->len; i++)
    if (names->data[i] == s) return;
  vec_push(a, names, s);
}

static void names_of_target(Arena *a, const Node *t, AstNames *names) {
  if (!t) return;
  if (t->kind == AST_Name) names_add(a, names, t->name);
  if (t->kind == AST_Star) names_of_target(a, t->a, names);
  if (t->kind == AST_Tuple || t->kind == AST_List)
    for (uint32_t i = 0; i < t->list.len; i++) names_of_target(a, t->list.data[i], names);
  // x.field = ... rebinds x, whose fields are values of ours
  if (t->kind == AST_Attr || t->kind == AST_Subscript) names_of_target(a, t->a, names);
}

// Names bound by := anywhere inside an expression.
static void names_of_expr(Arena *a, const Node *n, AstNames *names) {
  if (!n) return;
  if (n->kind == AST_Named) names_add(a, names, n->name);
  if (n->kind == AST_Lambda) return;
  names_of_expr(a, n->a, names);
  names_of_expr(a, n->b, names);
  names_of_expr(a, n->c, names);
  const NodeVec *const lists[2] = {&n->list, &n->list2};
  for (int l = 0; l < 2; l++)
    for (uint32_t i = 0; i < lists[l]->len; i++) names_of_expr(a, lists[l]->data[i], names);
}

void ast_bound_names(Arena *a, const NodeVec *stmts, AstNames *names) {
  for (uint32_t i = 0; i < stmts->len; i++) {
    const Node *s = stmts->data[i];
    switch (s->kind) {
    case AST_Assign:
      for (uint32_t t = 0; t < s->list.len; t++) names_of_target(a, s->list.data[t], names);
      names_of_expr(a, s->a, names);
      break;
    case AST_AnnAssign:
      names_of_target(a, s->a, names);
      names_of_expr(a, s->c, names);
      break;
    case AST_AugAssign:
      names_of_target(a, s->a, names);
      names_of_expr(a, s->b, names);
      break;
    case AST_For:
      names_of_target(a, s->a, names);
      names_of_expr(a, s->b, names);
      ast_bound_names(a, &s->list, names);
      ast_bound_names(a, &s->list2, names);
      break;
    case AST_If:
    case AST_While:
      names_of_expr(a, s->a, names);
      ast_bound_names(a, &s->list, names);
      ast_bound_names(a, &s->list2, names);
      break;
    case AST_With:
      for (uint32_t t = 0; t < s->list.len; t++) {
        names_of_target(a, s->list.data[t]->b, names);
        names_of_expr(a, s->list.data[t]->a, names);
      }
      ast_bound_names(a, &s->list2, names);
      break;
    case AST_ExprStmt:
    case AST_Return:
    case AST_Assert: names_of_expr(a, s->a, names); break;
    default: break;
    }
  }
}
