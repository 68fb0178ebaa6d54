// Compiles the kernel of a placed module for this CPU and runs it on a Memory of pass_place.h.
#ifndef API_PLACE_RUN_H
#define API_PLACE_RUN_H

#include "pass_place.h"
#include "target_run.h"

static void run_code(const IrModule *m, const Case *c, const Memory *mem, Arena *a, const char *cpu) {
  Code k;
  code_make(&k, cpu, ir_print(m, a));
  if (!k.code) {
    code_free(&k);
    return;
  }
  const ImageVariant *v = &k.image->kernels[0].variants[0];
  char *args = arena_alloc(a, v->args_bytes + 8, 16);
  int pointer = 0, scalar_arg = 0;
  for (uint32_t i = 0; i < v->nargs; i++) {
    const ImageArg *x = &v->args[i];
    if (x->kind == IMAGE_ARG_PTR) {
      memcpy(args + x->offset, &mem->base[pointer++], 8);
    } else {
      const int32_t n = (int32_t)c->args[scalar_arg++];
      memcpy(args + x->offset, &n, 4);
    }
  }
  code_run(&k, m->funcs->name->s, args);
  code_free(&k);
}

#endif
