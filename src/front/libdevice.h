// What the files of libdevice share: operations on values at one place of the program.
#ifndef DITRON_FRONT_LIBDEVICE_H
#define DITRON_FRONT_LIBDEVICE_H

#include "front/builtins.h"

typedef struct Ld {
  Lower *L;
  Loc loc;
} Ld;
typedef Value *LdFn(Ld *m, Value **x);

Value *ld_op(Ld *m, AstOp op, Value *x, Value *y);
Value *ld_fn(Ld *m, IrMath fn, Value *x);
Value *ld_sel(Ld *m, Value *c, Value *x, Value *y);
Value *ld_abs(Ld *m, Value *x);
Value *ld_neg(Ld *m, Value *x);
Value *ld_sign(Ld *m, Value *x, Value *s);         // |x| with the sign of s
Value *ld_power(Ld *m, Value *x, Value *y);        // of values of one type
Value *ld_splat(Ld *m, const Value *like, double); // a number in the type and shape of a value

// The functions of builtin_ldmath.c, on fp64 values.
LdFn ld_atan, ld_atan2, ld_asin, ld_acos, ld_asinh, ld_acosh, ld_atanh, ld_cbrt, ld_rcbrt, ld_sinpi, ld_cospi,
    ld_tan, ld_exp10, ld_log10, ld_rhypot, ld_norm3d, ld_rnorm3d, ld_norm4d, ld_rnorm4d, ld_erfc, ld_erfcx,
    ld_normcdf, ld_erfinv, ld_erfcinv, ld_normcdfinv, ld_tgamma, ld_lgamma, ld_fdim, ld_saturate,
    ld_remainder;

#endif
