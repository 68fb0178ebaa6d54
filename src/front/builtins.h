// The functions behind builtins.def; each is declared by the rows that name it.
#ifndef DITRON_FRONT_BUILTINS_H
#define DITRON_FRONT_BUILTINS_H

#include "front/front_impl.h"

// What the `data` column of a row means, by family.
enum { // data of the rows of module "dtype"
  DQ_element,
  DQ_scalar,
  DQ_bits,
  DQ_name,
  DQ_shape,
  DQ_numel,
  DQ_mantissa,
  DQ_itemsize,
  DQ_fp8,
  DQ_fp8e4nv,
  DQ_fp8e5,
  DQ_fp16,
  DQ_bf16,
  DQ_fp32,
  DQ_fp64,
  DQ_float,
  DQ_int,
  DQ_bool,
  DQ_sint,
  DQ_uint,
  DQ_ptr,
  DQ_block,
  DQ_is_fp8e4b15,
  DQ_standard,
  DQ_void,
  DQ_int8,
  DQ_int16,
  DQ_int32,
  DQ_int64,
  DQ_uint8,
  DQ_uint16,
  DQ_uint32,
  DQ_uint64,
  DQ_min,
  DQ_max,
  DQ_const
};
enum {
  LD_log1p,
  LD_expm1,
  LD_tan,
  LD_sinh,
  LD_cosh,
  LD_log10,
  LD_exp10,
  LD_isnan,
  LD_isinf,
  LD_finite,
  LD_round,
  LD_copysign,
  LD_pow,
  LD_fmod,
  LD_popc,
  LD_clz,
  LD_ffs,
  LD_rcp,
  LD_silu,
  LD_hypot,
  LD_signbit
};
// libdevice: what is made of other functions
enum { AT_add, AT_max, AT_min, AT_and, AT_or, AT_xor, AT_xchg };
// atomics
enum { RAND_int, RAND_int4x, RAND_uniform, RAND_uniform4x, RAND_normal, RAND_normal4x };
enum {
  SH_group = 3,
  SH_nbi = 4,
  SH_get = 8,
  SH_bytes = 16,
  SH_root = 32,
  SH_words = 64
}; // SH_group: an IrGroup
enum {
  W_u32,
  W_s32,
  W_u64,
  W_s64,
  W_two = 2 << 2,
  W_four = 4 << 2,
  W_one = 1 << 2,
  W_mask = 64
}; // wide accesses

#define BUILTIN(module, name, params, flags, fn, data, text) Value *fn(Lower *L, Call *c);
#include "front/builtins.def"
#undef BUILTIN

// Shared by the families.
Value *front_dim_scalar(Lower *L, Value *v, FrontDtype d, const char *what, Loc loc);
bool front_seq_items(Lower *L, Call *c, int i, int max, Value **out, int *n); // a sequence or a single value
Value *front_splat_number(Lower *L, const Elem *e, double d, const Type *like, Loc loc);
Value *front_reshape_to(Lower *L, Value *v, int rank, const int32_t *shape, bool reorder, Loc loc);
Value *front_math_call(Lower *L, IrMath fn, Value *x, Loc loc);
bool arg_axis(Lower *L, Call *c, int i, int rank, int *out); // accepts negative axes
void front_set_cache_attrs(Lower *L, IrOp *op, Call *c, int icache, int ievict, int ivolatile);
bool front_parse_order(Lower *L, Call *c, int i, IrOrder dflt, IrOrder *out);
bool front_parse_scope(Lower *L, Call *c, int i, IrScope dflt, IrScope *out);
Value *front_tile_arange(Lower *L, int64_t start, int64_t end, Loc loc);
// A scalar pointer; integers are taken as addresses of bytes. thread: at thread level.
Value *front_pointer_arg(Lower *L, Call *c, int i, bool thread);
Value *front_int_arg(Lower *L, Call *c, int i, FrontDtype d, const char *what, bool thread);
// A flag's value in the type of the word behind the pointer.
Value *front_word_arg(Lower *L, Call *c, int i, Value *p, bool thread);
bool front_signal_op_arg(Lower *L, Call *c, int i, IrSigop dflt, IrSigop *out);
// May a _block form stand here, with these (uniform) operands?
bool front_block_form(Lower *L, Call *c, Value *const *v, int n);
IrOp *front_effect(Lower *L, IrOpKind k, Value *const *v, int n, Loc loc); // an op without results
// The element that a pointer into shared memory points at.
Value *front_smem_read(Lower *L, Value *p, Loc loc);
Value *front_smem_write(Lower *L, Value *p, Value *v, Loc loc);
Value *front_thread_id(Lower *L, IrOpKind k, int axis, const char *why, Loc loc);

#endif
