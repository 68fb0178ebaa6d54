// emit: the entry of a kernel. void NAME(const void *args, AbiInstance *inst) unpacks the arguments and runs one instance.
#include "target/x86/x86.h"

#include <llvm-c/Support.h>

#include <llvm-c/Target.h>

// LLVM 22's pass that splits copies against blocked store forwarding takes the unknown size of a masked access for a scalable one and
// ends the process. It has no other switch than LLVM's command line, which each process may read once.
static void avoid_broken_pass(void) {
  static const char *const options[] = {"ditron", "-x86-disable-avoid-SFB"};
  LLVMParseCommandLineOptions(2, options, "");
}

static void init(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser(); // inline assembly ends the process without it
  avoid_broken_pass();
}

void x86_kernel(Lower *l, const IrFunc *f, ImageVariant *out) {
  T params[] = {l->ptr, l->ptr};
  const V fn = LLVMAddFunction(l->mod, f->name->s, LLVMFunctionType(l->void_, params, 2, false));
  lower_fn_attrs(l, fn);
  lower_debug_function(l, fn, f->loc, f->name->s);
  lower_instance(l, fn, LLVMGetParam(fn, 1));
  lower_describe_args(l, f, out);
  for (uint32_t i = 0; i < out->nargs; i++) {
    const IrValue *v = f->body->args.data[i];
    const IrType *t = v->type;
    const V p = lower_field(l, LLVMGetParam(fn, 0), out->args[i].offset);
    if (t->kind == IR_DESC) {
      lower_set(l, v, p);
    } else {
      const V x = LLVMBuildLoad2(l->b, lower_memory_type(l, t), p, "");
      lower_align(x, (uint32_t)ir_type_bytes(t));
      lower_set(l, v, lower_from_memory(l, x, t));
    }
  }
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
