// affine: an element of a tile of integers or pointers as a sum over its indices and over scalars (an analysis).
//
//   element (i0, i1, ...) = base + sum of  k * f1 * f2 * ... [* i_axis]
//
// k is a number, the f are scalars of the program (factors), at most one index stands in a term. Sums are of integers that do not
// wrap: where a program's index arithmetic would, it reads memory that no tensor has.
#ifndef DITRON_PASS_AFFINE_H
#define DITRON_PASS_AFFINE_H

#include "pass/pass_impl.h"

enum { AFFINE_FACTORS = 5, AFFINE_TERMS = 20, AFFINE_WRAPS = 2 };

typedef struct AffineTerm {
  int64_t k;
  int axis; // -1: without an index
  uint32_t n;
  IrValue *f[AFFINE_FACTORS]; // by id
} AffineTerm;

typedef struct Affine { // never changed once made
  IrValue *base;        // of pointers: a scalar pointer; offsets are in elements
  uint32_t n;
  AffineTerm t[AFFINE_TERMS]; // by axis, then factors; no two alike, none with k = 0
  // Where one of these sums is not negative the element is something else (x % m where x >= m): true of none, or of elements that do not
  // matter.
  uint32_t nwraps;
  const struct Affine *wraps[AFFINE_WRAPS];
} Affine;

typedef struct Affines {
  Arena *arena;
  Map known; // IrValue* -> Affine*, or to `none`
} Affines;

void affine_init(Affines *a, Arena *arena);
// NULL: it is no such sum. The function's values must be numbered (ir_renumber).
const Affine *affine_of(Affines *a, IrValue *v);
// The conditions of a mask, all of which must hold: sums that are negative where it does. Returns how many, at most cap; -1: it is not
// made of such.
int affine_conditions(Affines *a, IrValue *mask, const Affine **out, int cap);

Affine *affine_zero(Affines *a);
Affine *affine_const(Affines *a, int64_t k);
// x + k * y; NULL: too many terms. Wraps of both, base of either.
const Affine *affine_plus(Affines *a, const Affine *x, int64_t k, const Affine *y);
const Affine *affine_times(Affines *a, const Affine *x, const Affine *y); // NULL: not one
// The terms with this index, the index taken away; axis -1: those without one.
const Affine *affine_along(Affines *a, const Affine *x, int axis);
bool affine_same(const Affine *x, const Affine *y); // terms alone
bool affine_is_const(const Affine *x, int64_t k);

#endif
