// What the compiler of this build targets, for `ditron info`.
#include "api/compile_impl.h"



static Status describe(ApiCall *call, void *user) {
  const char **out = user;
  TargetOptions o = {.target = "x86", .opt = 1};
  TargetFacts f;
  Status s = target_facts(&o, &call->arena, &call->diags, &f);
  if (s != ST_OK) return s;
  char *text = arena_printf(&call->arena, "%s: %s (%s), %u-bit vectors, L1 %u KiB, L2 %u KiB", f.target, f.cpu, f.needs, f.vector_bits,
                            f.l1_bytes >> 10, f.l2_bytes >> 10);
  *out = api_keep_text(call->context, text);
  return *out ? ST_OK : ST_NO_MEMORY;
}

const char *api_compiler_info(dt_context *c) {
  const char *text = "";
  return api_call(c, describe, &text) == DT_OK ? text : dt_error(c);
}
