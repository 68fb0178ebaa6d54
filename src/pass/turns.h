// turns: values of a loop's turns other than the current one.
//
// Known are those that come from the counter, from values that move by the same amount each turn, from what does not change, and from
// memory that nobody writes (the caller's to know) through pointers that are known.
#ifndef DITRON_PASS_TURNS_H
#define DITRON_PASS_TURNS_H

#include "pass/pass_impl.h"

// May v be computed for other turns of the loop (a `for`)? NULL may. loads: plain loads on the way are allowed.
bool turns_known(const IrOp *loop, const IrValue *v, bool loads);
// The roots of the memory that such loads read.
uint64_t turns_reads(const IrOp *loop, const IrValue *v, const PassRoots *roots);

typedef struct Turn { // computes values of an iteration that is not the current one
  IrOp *loop;
  Arena *arena;
  IrBuilder b;
  IrValue *counter;
  int64_t turns;    // from the loop's start, or from the current iteration, to it
  bool outside;     // from the start
  IrValue *happens; // of turn_happens; NULL: not asked yet
  Map done;
} Turn;
Turn turn_of(IrOp *loop, Arena *a, IrBuilder b, int64_t turns, bool outside);
IrValue *turn_happens(Turn *t); // i1: does the loop reach it?
// Loads on the way read nothing where the loop does not reach it.
IrValue *turn_value(Turn *t, IrValue *v);
// i1 of p's shape: `mask` (NULL: all) there, where the loop reaches it.
IrValue *turn_mask(Turn *t, const IrType *p, IrValue *mask);

#endif
