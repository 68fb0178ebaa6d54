// What lower_stmt.c and lower_loop.c share: the rest of a path, and the meeting of values.
#ifndef DITRON_FRONT_LOWER_H
#define DITRON_FRONT_LOWER_H

#include "front/front_impl.h"

typedef struct Unroll Unroll; // a loop unrolled at compile time
struct Cont {
  enum { CONT_BLOCK, CONT_UNROLL } kind;
  const NodeVec *stmts; // BLOCK: the statements from `from` on
  uint32_t from;
  Unroll *unroll; // UNROLL: the trips after `trip`
  uint32_t trip;
  Cont *up; // what follows that; NULL: the end of the function or loop body
};
void front_cont_run(Lower *L, Cont *k, Flow fl);
Flow front_unroll_from(Lower *L, Unroll *u, uint32_t trip, Cont *k);
Flow front_lower_for(Lower *L, const Node *n, Cont *rest);
void front_lower_while(Lower *L, const Node *n);

typedef struct Side { // one of the two places that values come from
  IrBuilder b;
  Loc loc;
} Side;
Side front_side_at_end(IrBlock *b, Loc loc);
// Gives two values one structure: equal constants, or leaves of equal types up to level. False: they have none.
bool front_unify(Lower *L, Side *a, Value *x, Side *b, Value *y, Value **ux, Value **uy);
IrValue *front_leaf_at_level(Lower *L, Side *s, const Leaf *l, bool thread);

#endif
