// place_lanes: what the files of thread-level placement share. See place_thread.c for the picture.
#ifndef DITRON_PLACE_LANES_H
#define DITRON_PLACE_LANES_H

#include "pass/place.h"

enum {
  AGAIN_DEPTH = 48, // longer expressions are kept, piece by piece, rather than computed again
};

typedef struct Lanes Lanes;
struct Lanes {
  Place *p;
  Lanes *outer;  // scalar code of one of outer's lanes, or NULL
  IrValue *lane; // which
  int lanes;     // 1: scalar code
  PlaceElem tid;
  PlaceElem active; // mask; v NULL: all
  PlaceNest n;      // of the current block
  Map vals;         // thread-level values -> PlaceElem*
  Vec(const IrValue *) log;
};

typedef struct LanesSaved {
  PlaceNest n;
  uint32_t log;
} LanesSaved;

// ---- place_lanes.c
IrBuilder *lanes_at(Lanes *l);                   // the end of the current block
void lanes_nest(Lanes *l, IrBlock *b, Loc loc);  // makes b current
LanesSaved lanes_enter(Lanes *l, IrBlock *b);    // the same, until lanes_leave
void lanes_leave(Lanes *l, const LanesSaved *s); // forgets the values of the block
PlaceElem lanes_get(Lanes *l, IrValue *v);
void lanes_set(Lanes *l, const IrValue *v, PlaceElem e);
const IrType *lanes_scalar(Lanes *l, const IrType *t); // the program scalar like t
const IrType *lanes_i32(Lanes *l);
IrValue *lanes_one(PlaceNest *n, PlaceElem e, IrValue *lane); // one lane of e
IrValue *lanes_any(Lanes *l, PlaceElem m);                    // m is not "all"
PlaceElem lanes_both(Lanes *l, PlaceElem a, PlaceElem b);
PlaceElem lanes_not(Lanes *l, PlaceElem a);
PlaceElem lanes_merge(Lanes *l, PlaceElem c, PlaceElem x, PlaceElem y); // x where c, else y
PlaceElem lanes_zero(Lanes *l, const IrType *t);
void lanes_op(Lanes *l, IrOp *op);
void lanes_ops(Lanes *l, IrBlock *b);             // all but the terminator
bool lanes_computed(const IrOp *op);              // a pure function of its operands and the thread
bool lanes_again(const Place *p, const IrOp *op); // computed where it is wanted, in each run anew

// ---- place_lanes_control.c
void lanes_control(Lanes *l, IrOp *op);
static inline bool lanes_empty(const IrBlock *b) { return b->first == b->last; }

#endif
