// The compiler half of api: what its files share.
#ifndef DITRON_COMPILE_IMPL_H
#define DITRON_COMPILE_IMPL_H

#include "api/api_impl.h"
#include "front/front.h"
#include "ir/ir.h"
#include "pass/pass.h"
#include "target/target.h"

// One request to compile, with what it needs on the way.
typedef struct Compile {
  ApiCall *call;
  FrontSource source;
  const char *kernel; // NULL: the only one
  const dt_named *args;
  size_t nargs;
  dt_compile_options o; // copied; zero where the caller gave none
  // filled by compile_front
  IrCtx *ctx;
  FrontOptions front;
  const FrontKernel *chosen;
  FrontSpec *specs; // one a given parameter, in the kernel's order
  int nspecs;
  TargetOptions target;
  IrModule *module;
  TargetTool *tools[2]; // of the variants, each started when it is known that there will be one
  bool raised;          // pointers have become tensor descriptors
} Compile;

// Options checked and copied; target name resolved.
Status compile_begin(Compile *c, ApiCall *call, const char *path, const char *text, size_t len,
                     const char *kernel, const dt_named *args, size_t nargs, const dt_compile_options *o);
// Lists the file's kernels, chooses one and decides its specs.
Status compile_specs(Compile *c);
// The kernel as a module of the tile stage. Needs compile_specs.
Status compile_front(Compile *c);
// Everything after: passes, target, image with all launch arguments.
Status compile_back(Compile *c, Image **out);
// Ends the assemblers that the compile has started. To be called on every way out.
void compile_end_tools(Compile *c);
// The passes that lead to what the target compiles.
PassTarget compile_passes(const Compile *c);
// The machine that the passes work for.
Status compile_machine(Compile *c, PassMachine *out);
// The launch arguments of a kernel: those parameters that are not constexpr, in order. Returns the spec or NULL (left out).
const FrontSpec *compile_spec_of(const Compile *c, const char *param);
// The specs of the chosen kernel's parameters, from the call's arguments.
Status compile_choose_specs(Compile *c);

// ---- disk cache (compile_cache.c) ----
// True: *image is the call's image, and nothing had to be parsed. c is otherwise as it was.
bool compile_cached(Compile *c, const void **image, size_t *n);
bool compile_cached_as(Compile *c, const void **image,
                       size_t *n);                          // the same with specs known; needs compile_specs
void compile_keep_signature(Compile *c);                    // needs compile_specs
void compile_keep(Compile *c, const void *image, size_t n); // needs compile_front: all files are known

#endif
