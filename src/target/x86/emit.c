// emit: the entry of a kernel. void NAME(const void *args, AbiInstance *inst) unpacks the arguments and runs one instance.
#include "target/x86/x86.h"

#include <llvm-c/Target.h>

static void init(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser(); // inline assembly ends the process without it
}

static uint32_t image_dtype(IrDtype d, bool uns) {
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
  arg->dtype = image_dtype(t->dtype, p->is_unsigned);
  arg->is_unsigned = p->is_unsigned;
  arg->divisible = p->divisible > 1 && p->divisible <= INT32_MAX ? (uint32_t)p->divisible : 1;
  if (t->kind != IR_DESC) return;
  arg->rank = (uint32_t)t->rank;
  for (int i = 0; i < t->rank && i < 5; i++) arg->block[i] = t->shape[i];
}

void x86_kernel(Lower *l, const IrFunc *f, ImageVariant *out) {
  T params[] = {l->ptr, l->ptr};
  const V fn = LLVMAddFunction(l->mod, f->name->s, LLVMFunctionType(l->void_, params, 2, false));
  lower_fn_attrs(l, fn);
  lower_debug_function(l, fn, f->loc, f->name->s);
  lower_instance(l, fn, LLVMGetParam(fn, 1));
  const uint32_t n = f->body->args.len;
  out->nargs = n;
  out->args = arena_array(l->arena, ImageArg, n ? n : 1);
  uint32_t at = 0;
  for (uint32_t i = 0; i < n; i++) {
    const IrValue *v = f->body->args.data[i];
    const IrType *t = v->type;
    if (t->kind > IR_PTR && t->kind != IR_DESC)
      lower_fail(l, NULL, ST_INTERNAL, "parameter %u of kernel %s is not a scalar", i, f->name->s);
    const uint32_t bytes = arg_bytes(t), align = bytes < 8 ? bytes : 8;
    at = (uint32_t)bits_round_up(at, align);
    describe(l, t, &f->params.data[i], &out->args[i]);
    out->args[i].offset = at;
    const V p = lower_field(l, LLVMGetParam(fn, 0), at);
    if (t->kind == IR_DESC) {
      lower_set(l, v, p);
    } else {
      const V x = LLVMBuildLoad2(l->b, lower_memory_type(l, t), p, "");
      lower_align(x, align);
      lower_set(l, v, lower_from_memory(l, x, t));
    }
    at += bytes;
  }
  out->args_bytes = (uint32_t)bits_round_up(at, 8);
  lower_body(l, f->body);
}

const Target target_x86 = {.name = "x86",
                           .image = IMAGE_X86_64,
                           .stage = STAGE_placed,
                           .init = init,
                           .facts = x86_facts,
                           .triple = "x86_64-unknown-linux-gnu",
                           .kernel = x86_kernel,
                           .dot_mem = x86_dot_mem};
