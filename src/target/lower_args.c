// lower_args: a kernel's parameters as the image describes them: packed, each aligned to its size, descriptors to 8.
#include "target/target_impl.h"

uint32_t lower_image_dtype(IrDtype d, bool uns) {
  switch (d) {
  case IR_i1: return IMAGE_I1;
  case IR_i8: return uns ? IMAGE_U8 : IMAGE_I8;
  case IR_i16: return uns ? IMAGE_U16 : IMAGE_I16;
  case IR_i32: return uns ? IMAGE_U32 : IMAGE_I32;
  case IR_i64: return uns ? IMAGE_U64 : IMAGE_I64;
  case IR_f16: return IMAGE_F16;
  case IR_bf16: return IMAGE_BF16;
  case IR_f32: return IMAGE_F32;
  case IR_f64: return IMAGE_F64;
  case IR_f8e4m3: return IMAGE_F8E4M3;
  case IR_f8e5m2: return IMAGE_F8E5M2;
  case IR_NDTYPES: break;
  }
  return IMAGE_I8;
}

static uint32_t arg_bytes(const IrType *t) {
  return t->kind == IR_DESC ? (uint32_t)sizeof(ImageDesc) : (uint32_t)ir_type_bytes(t);
}

static void describe(Lower *l, const IrType *t, const IrParam *p, ImageArg *arg) {
  arg->name = p->name ? arena_strdup(l->arena, p->name->s) : "";
  arg->kind = t->kind == IR_DESC  ? IMAGE_ARG_DESC
              : ir_type_is_ptr(t) ? IMAGE_ARG_PTR
              : ir_type_is_int(t) ? IMAGE_ARG_INT
                                  : IMAGE_ARG_FLOAT;
  arg->bits = ir_dtypes[t->dtype].bits;
  arg->dtype = lower_image_dtype(t->dtype, p->is_unsigned);
  arg->is_unsigned = p->is_unsigned;
  arg->written = p->writes;
  arg->divisible = p->divisible > 1 && p->divisible <= INT32_MAX ? (uint32_t)p->divisible : 1;
  if (t->kind != IR_DESC) return;
  arg->rank = (uint32_t)t->rank;
  for (int i = 0; i < t->rank && i < 5; i++) arg->block[i] = t->shape[i];
}

void lower_describe_args(Lower *l, const IrFunc *f, ImageVariant *out) {
  const uint32_t n = f->body->args.len;
  out->nargs = n;
  out->args = arena_array(l->arena, ImageArg, n ? n : 1);
  uint32_t at = 0;
  for (uint32_t i = 0; i < n; i++) {
    const IrType *t = f->body->args.data[i]->type;
    if (t->kind > IR_PTR && t->kind != IR_DESC)
      lower_fail(l, NULL, ST_INTERNAL, "parameter %u of kernel %s is not a scalar", i, f->name->s);
    const uint32_t bytes = arg_bytes(t);
    at = (uint32_t)bits_round_up(at, bytes < 8 ? bytes : 8);
    describe(l, t, &f->params.data[i], &out->args[i]);
    out->args[i].offset = at;
    at += bytes;
  }
  out->args_bytes = (uint32_t)bits_round_up(at, 8);
}
