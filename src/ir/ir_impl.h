// ir_impl: what the files of this room share and nobody else sees.
#ifndef DITRON_IR_IMPL_H
#define DITRON_IR_IMPL_H

#include "ir/ir.h"

typedef enum IrAttrKind { AK_INT, AK_BOOL, AK_ENUM, AK_INTS, AK_STR, AK_BITS, AK_SYM, AK_DTYPE } IrAttrKind;
typedef struct IrAttrInfo {
  const char *name;
  IrAttrKind kind;
  const char *const *texts; // AK_ENUM: by value
  int ntexts;
} IrAttrInfo;
extern const IrAttrInfo ir_attrs[ATTR_COUNT];
int ir_attr_by_name(const char *name, size_t len);               // -1: none
int ir_enum_by_text(IrAttrName n, const char *text, size_t len); // -1: none
extern const char *const ir_stage_names[4], *const ir_space_names[4], *const ir_place_names[PLACE_DIMS];
int ir_stage_by_name(const char *s, size_t len);
int ir_wait_by_name(const char *s, size_t len); // -1: none
const char *ir_wait_name(IrWaitClass w);

// ---- the operand and result classes of ops.def, read one by one --------------------------------------------
//     IrSlots s = ir_slots(ir_ops[k].operands);  IrSlot x;  while (ir_slots_next(&s, &x)) ...
typedef enum IrClass {
  CLASS_any,
  CLASS_int,
  CLASS_num,
  CLASS_flt,
  CLASS_i1,
  CLASS_ptr,
  CLASS_i32,
  CLASS_idx,
  CLASS_sptr,
  CLASS_si1,
  CLASS_tile,
  CLASS_desc,
  CLASS_memdesc,
  CLASS_mbarrier,
  CLASS_token,
  CLASS_val,
  CLASS_COUNT
} IrClass;
typedef struct IrSlot {
  const char *name; // as in ops.def, not terminated
  int name_len;
  IrClass cls;
  bool optional, many;
} IrSlot;
typedef struct IrSlots {
  const char *at;
} IrSlots;
IrSlots ir_slots(const char *spec);
bool ir_slots_next(IrSlots *s, IrSlot *out);
extern const char *const ir_class_texts[CLASS_COUNT]; // "a scalar i32", for messages
bool ir_class_holds(IrClass c, const IrType *t);

// ---- text ---------------------------------------------------------------------------------------------------
typedef struct IrText { // a growing string
  Arena *arena;
  Vec(char) buf;
} IrText;
void ir_put(IrText *t, const char *s);
void ir_putn(IrText *t, const char *s, size_t n);
void ir_putf(IrText *t, const char *fmt, ...) DT_PRINTF(2, 3);
void ir_put_type(IrText *t, const IrType *ty);
void ir_put_bits(IrText *t, const IrType *ty, uint64_t bits); // a constant as the parser reads it back
// Decimal text of a float (digits, point, exponent; also "inf", "nan", with sign), whatever the locale.
bool ir_read_float(const char *s, size_t len, double *out);

uint64_t ir_dtype_mask(IrDtype d); // the bits a constant of this dtype may have set

#endif
