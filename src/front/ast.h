// The syntax tree of one Python file: plain nodes with a source span each, free of tree-sitter.
//
// Every node has the same few generic slots (three children, three lists, two names, a number); ast.def says what
// they hold in each kind. Nodes live in the arena they were parsed into and never change afterwards.
#ifndef DITRON_FRONT_AST_H
#define DITRON_FRONT_AST_H

#include "base/base.h"

typedef enum AstKind {
#define AST(kind, a, b, c, list, list2, list3) AST_##kind,
#include "front/ast.def"
#undef AST
} AstKind;

typedef enum AstOp {
#define AOP(name, text) AOP_##name,
#include "front/astops.def"
#undef AOP
} AstOp;
static inline bool ast_op_compares(AstOp op) { return op >= AOP_Eq && op <= AOP_Ge; }

typedef enum AstParam { PARAM_PLAIN, PARAM_STAR, PARAM_KWONLY, PARAM_STARSTAR } AstParam;

typedef struct Node Node;
typedef Vec(Node *) NodeVec;
typedef __int128 AstInt;

struct Node {
  AstKind kind;
  uint8_t op;
  Loc loc;
  const Str *name, *name2;
  Node *a, *b, *c;
  NodeVec list, list2, list3;
  union {
    AstInt ival;
    double fval;
  };
};

const char *ast_kind_name(AstKind k); // "FuncDef"
const char *ast_op_text(AstOp op);    // "//"
const char *ast_op_name(AstOp op);    // "FloorDiv"

// One node a line, children indented below it: what `--emit ast` prints and the tests compare.
char *ast_dump(const Node *n, Arena *a);

// Is the statement list sure to leave (return, break, continue or raise) on every path?
bool ast_always_leaves(const NodeVec *stmts);

// What a piece of code may do, found without evaluating anything.
typedef struct AstEffects {
  bool returns, breaks, continues; // breaks, continues: of a loop outside the piece
} AstEffects;
AstEffects ast_effects(const NodeVec *stmts);
// Appends the names that the statements bind (assignment, for target, with, :=), each once, in order of appearance.
typedef Vec(const Str *) AstNames;
void ast_bound_names(Arena *a, const NodeVec *stmts, AstNames *names);

#endif
