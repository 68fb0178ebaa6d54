// inline: instructions that LLVM has no name for, or whose order and scope it would drop.
#include "target/nvptx/nvptx.h"

#include <stdio.h>

char *nvptx_text(Lower *l, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *s = arena_vprintf(l->arena, fmt, ap);
  va_end(ap);
  return s;
}

static void call_attr(Lower *l, V call, const char *name) {
  const unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(l->cx, kind, 0));
}

V nvptx_asm(Lower *l, T result, const char *text, const char *constraints, V const *args, uint32_t n,
            int how) {
  T *types = arena_array(l->arena, T, n + 1);
  for (uint32_t i = 0; i < n; i++) types[i] = LLVMTypeOf(args[i]);
  const T ft = LLVMFunctionType(result, types, n, false);
  if (how & ASM_EFFECT) constraints = nvptx_text(l, "%s%s~{memory}", constraints, *constraints ? "," : "");
  const V code = LLVMGetInlineAsm(ft, text, strlen(text), constraints, strlen(constraints), how & ASM_EFFECT,
                                  false, LLVMInlineAsmDialectATT, false);
  const V call = LLVMBuildCall2(l->b, ft, code, (V *)args, n, "");
  call_attr(l, call, "nounwind");
  if (how & ASM_CONVERGENT) call_attr(l, call, "convergent");
  return call;
}
