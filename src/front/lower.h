// What lower_stmt.c and lower_loop.c share: the rest of a path, and the meeting of values.
#ifndef DITRON_FRONT_LOWER_H
#define DITRON_FRONT_LOWER_H

#include "front/front_impl.h"

typedef struct Unroll Unroll; // a loop unrolled at compile time
// A position in the rest of a function or loop body: what is executed next there. Positions of one body form a chain up
// to its end, and a path through the body is at one of them.
struct Cont {
  enum { CONT_BLOCK, CONT_UNROLL, CONT_END } kind;
  const NodeVec *stmts; // BLOCK: the statements from `from` on
  uint32_t from;
  Unroll *unroll; // UNROLL: the trips after `trip`
  uint32_t trip;
  Cont *up;  // what follows that; NULL: this is the end
  int depth; // steps to the end
};
static inline Cont cont_block(const NodeVec *stmts, uint32_t from, Cont *up) {
  return (Cont){.kind = CONT_BLOCK, .stmts = stmts, .from = from, .up = up, .depth = up->depth + 1};
}
static inline Cont *cont_end(Cont *k) {
  while (k->kind != CONT_END) k = k->up;
  return k;
}
Cont *front_unroll_from(Lower *L, Unroll *u, uint32_t trip, Cont *k);
// Names that the statements bind are worth nothing from here on: something there was refused.
void front_poison_names(Lower *L, const NodeVec *a, const NodeVec *b);
Cont *front_branch_to(Lower *L, Value *c, Cont *far, Cont *near, Loc loc);
Cont *front_lower_for(Lower *L, const Node *n, Cont *rest);
Cont *front_lower_while(Lower *L, const Node *n, Cont *rest);

typedef struct Side { // one of the two places that values come from
  IrBuilder b;
  Loc loc;
} Side;
Side front_side_at_end(IrBlock *b, Loc loc);
// Gives two values one structure: equal constants, or leaves of equal types up to level. False: they have none.
bool front_unify(Lower *L, Side *a, Value *x, Side *b, Value *y, Value **ux, Value **uy);
IrValue *front_leaf_at_level(Lower *L, Side *s, const Leaf *l, bool thread);

#endif
