// axis_impl: the axis analysis in two files: axis.c (state, shape ops, loops), axis_arith.c (arithmetic).
#ifndef DITRON_AXIS_IMPL_H
#define DITRON_AXIS_IMPL_H

#include "pass/pass_impl.h"

enum { AXIS_MAX_DIV = 1 << 30 };

static inline int32_t axis_min(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t axis_max(int32_t a, int32_t b) { return a > b ? a : b; }
int32_t axis_pow2_of(int64_t v); // largest power of two that divides v (AXIS_MAX_DIV for 0)
static inline int32_t axis_div_mul(int32_t a, int64_t b) {
  const int64_t p = (int64_t)a * b;
  return p > AXIS_MAX_DIV ? AXIS_MAX_DIV : (int32_t)p;
}
static inline int axis_dims(const PassAxis *a) { return a->rank ? a->rank : 1; }
// What divides the first elements of aligned runs of length c along d; size: of a pointer's pointee, else 1.
static inline int32_t axis_div_at(const PassAxis *a, int d, int32_t c, int size) {
  const int32_t v = a->contig[d] <= c ? a->div[d] : axis_min(a->div[d], axis_div_mul(c, size));
  return axis_max(v, a->all_div);
}

void axis_bottom(PassAxis *out, const IrType *t); // nothing known but the type's range and the extents
void axis_range(PassAxis *out, const IrType *t, __int128 lo,
                __int128 hi); // the type's range where lo..hi overflows it
void axis_type_range(const IrType *t, int64_t *lo, int64_t *hi);
// Facts of an elementwise result; out comes in as axis_bottom gives it. in[i] is NULL where the operand is absent.
void axis_elementwise(const IrOp *op, const PassAxis *const *in, PassAxis *out);
void axis_apply_hints(const IrOp *op, PassAxis *out);

#endif
