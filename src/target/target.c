// target: one compile from module to image. Owns LLVM's objects for its duration; all of them are gone when it returns,
// whatever happened in between.
#include "target/target_impl.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// ---- registry ----------------------------------------------------------------------------------
static const Target *const targets[] = {
#define TARGET(name, image, target, text) &target,
#include "target/targets.def"
#undef TARGET
};

const Target *target_find(const char *name) {
  if (!name) return targets[0];
  for (size_t i = 0; i < DT_COUNTOF(targets); i++)
    if (!strcmp(targets[i]->name, name)) return targets[i];
  return NULL;
}
const char *target_name(const Target *t) { return t->name; }
IrStage target_stage(const Target *t) { return t->stage; }

// LLVM keeps a registry of its own for the whole process; filling it is not safe on two threads at once.
static void init_all(void) {
  for (size_t i = 0; i < DT_COUNTOF(targets); i++) targets[i]->init();
}
static void init_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, init_all);
}

Status target_facts(const TargetOptions *o, Arena *a, Diags *d, TargetFacts *out) {
  const Target *t = target_find(o->target);
  if (!t) {
    diag(d, DIAG_ERROR, LOC_NONE, "there is no target '%s'", o->target);
    return ST_UNSUPPORTED;
  }
  init_once();
  return t->facts(o, a, d, out);
}

// ---- LLVM's objects ----------------------------------------------------------------------------
// Called from inside LLVM: only notes the first error.
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user) {
  Lower *l = user;
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || l->llvm_error[0]) return;
  char *text = LLVMGetDiagInfoDescription(info);
  snprintf(l->llvm_error, sizeof l->llvm_error, "%s", text);
  LLVMDisposeMessage(text);
}

static void open_llvm(Lower *l) {
  const Target *t = l->target;
  LLVMTargetRef ref = NULL;
  char *err = NULL;
  if (LLVMGetTargetFromTriple(t->triple, &ref, &err)) {
    snprintf(l->llvm_error, sizeof l->llvm_error, "%s", err);
    LLVMDisposeMessage(err);
    escape_now(&l->escape, ST_INTERNAL, "LLVM: %s", l->llvm_error);
  }
  const LLVMCodeGenOptLevel level = l->options->opt ? LLVMCodeGenLevelDefault : LLVMCodeGenLevelLess;
  l->tm = LLVMCreateTargetMachine(ref, t->triple, l->facts->cpu, l->facts->features, level, LLVMRelocPIC,
                                  LLVMCodeModelSmall);
  if (!l->tm) escape_now(&l->escape, ST_INTERNAL, "LLVM has no machine for %s", l->facts->cpu);
  l->cx = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(l->cx, on_diagnostic, l);
  l->mod = LLVMModuleCreateWithNameInContext("ditron", l->cx);
  LLVMSetTarget(l->mod, t->triple);
  l->layout = LLVMCreateTargetDataLayout(l->tm);
  LLVMSetModuleDataLayout(l->mod, l->layout);
  l->b = LLVMCreateBuilderInContext(l->cx);
  l->i1 = LLVMInt1TypeInContext(l->cx);
  l->i8 = LLVMInt8TypeInContext(l->cx);
  l->i16 = LLVMInt16TypeInContext(l->cx);
  l->i32 = LLVMInt32TypeInContext(l->cx);
  l->i64 = LLVMInt64TypeInContext(l->cx);
  l->f32 = LLVMFloatTypeInContext(l->cx);
  l->f64 = LLVMDoubleTypeInContext(l->cx);
  l->ptr = LLVMPointerTypeInContext(l->cx, 0);
  for (size_t i = 0; i < DT_COUNTOF(l->space); i++) l->space[i] = l->ptr;
  l->void_ = LLVMVoidTypeInContext(l->cx);
}
static void close_llvm(Lower *l) {
  if (l->di) LLVMDisposeDIBuilder(l->di);
  if (l->b) LLVMDisposeBuilder(l->b);
  if (l->mod) LLVMDisposeModule(l->mod);
  if (l->layout) LLVMDisposeTargetData(l->layout);
  if (l->cx) LLVMContextDispose(l->cx);
  if (l->tm) LLVMDisposeTargetMachine(l->tm);
  l->di = NULL;
  l->b = NULL;
  l->mod = NULL;
  l->layout = NULL;
  l->cx = NULL;
  l->tm = NULL;
}

static void check_llvm(Lower *l, const char *when) {
  if (!l->llvm_error[0]) return;
  diag(l->diags, DIAG_ERROR, LOC_NONE, "target %s: LLVM, %s: %s", l->target->name, when, l->llvm_error);
  escape_now(&l->escape, ST_INTERNAL, "LLVM: %s", l->llvm_error);
}

static void verify(Lower *l) {
#ifndef DT_DEBUG
  if (!l->options->verify) return;
#endif
  char *err = NULL;
  if (LLVMVerifyModule(l->mod, LLVMReturnStatusAction, &err))
    snprintf(l->llvm_error, sizeof l->llvm_error, "%.480s", err);
  LLVMDisposeMessage(err);
  check_llvm(l, "checking our module");
}

// Vectors and loops are made already: what is left is to tidy up. Our own functions below a kernel are tidy.
static LLVMErrorRef tidy_functions(Lower *l, LLVMPassBuilderOptionsRef o) {
  const char *passes = l->options->opt ? "early-cse,simplifycfg,instcombine<no-verify-fixpoint>,"
                                         "loop-mssa(loop-simplifycfg,licm),gvn,simplifycfg,adce"
                                       : "early-cse";
  LLVMErrorRef e = NULL;
  for (V fn = LLVMGetFirstFunction(l->mod); fn && !e; fn = LLVMGetNextFunction(fn)) {
    size_t n;
    const char *name = LLVMGetValueName2(fn, &n);
    const bool ours = !strncmp(name, "ditron.", 7) && strncmp(name, LOWER_WARP_NAME, strlen(LOWER_WARP_NAME));
    if (!LLVMIsDeclaration(fn) && !ours) e = LLVMRunPassesOnFunction(fn, passes, l->tm, o);
  }
  return e;
}
static void optimise(Lower *l) {
  const LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  const bool own = l->options->opt && l->target->passes;
  const LLVMErrorRef e = own ? LLVMRunPasses(l->mod, l->target->passes, l->tm, o) : tidy_functions(l, o);
  LLVMDisposePassBuilderOptions(o);
  if (e) {
    char *text = LLVMGetErrorMessage(e);
    snprintf(l->llvm_error, sizeof l->llvm_error, "%s", text);
    LLVMDisposeErrorMessage(text);
  }
  check_llvm(l, "optimising");
}

static LLVMMemoryBufferRef emit(Lower *l, LLVMCodeGenFileType type) {
  LLVMMemoryBufferRef buf = NULL;
  char *err = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(l->tm, l->mod, type, &err, &buf)) {
    snprintf(l->llvm_error, sizeof l->llvm_error, "%s", err);
    LLVMDisposeMessage(err);
  }
  if (l->llvm_error[0] && buf) {
    LLVMDisposeMemoryBuffer(buf);
    buf = NULL;
  }
  check_llvm(l, "making machine code");
  return buf;
}
static void *take(Lower *l, LLVMMemoryBufferRef buf, size_t *n) {
  *n = LLVMGetBufferSize(buf);
  char *p = malloc(*n + 1); // not the arena's yet: its end would leak the buffer
  if (p) {
    memcpy(p, LLVMGetBufferStart(buf), *n);
    p[*n] = 0;
  }
  LLVMDisposeMemoryBuffer(buf);
  if (!p) escape_now(&l->escape, ST_NO_MEMORY, "no memory for %zu bytes of code", *n);
  return p;
}

// ---- line tables -------------------------------------------------------------------------------
static LLVMMetadataRef debug_file(Lower *l, Loc loc) {
  uint32_t line, col;
  const char *name = lower_place(l, loc, &line, &col);
  if (!name) name = "kernel";
  return LLVMDIBuilderCreateFile(l->di, name, strlen(name), "", 0);
}
static void open_debug(Lower *l) {
  if (!l->options->debug_lines) return;
  l->di = LLVMCreateDIBuilder(l->mod);
  const Loc loc = l->ir->funcs ? l->ir->funcs->loc : LOC_NONE;
  const char producer[] = "ditron";
  // A GPU's assembler makes the tables itself, from directives: LLVM's DebugDirectivesOnly, which the C API has no name for.
  const LLVMDWARFEmissionKind emission =
      l->target->stage == STAGE_lowered ? (LLVMDWARFEmissionKind)3 : LLVMDWARFEmissionLineTablesOnly;
  LLVMDIBuilderCreateCompileUnit(l->di, LLVMDWARFSourceLanguagePython, debug_file(l, loc), producer,
                                 sizeof producer - 1, true, "", 0, 0, "", 0, emission, 0, false, false, "", 0,
                                 "", 0);
  const V version = LLVMConstInt(l->i32, LLVMDebugMetadataVersion(), false);
  const char key[] = "Debug Info Version";
  LLVMAddModuleFlag(l->mod, LLVMModuleFlagBehaviorWarning, key, sizeof key - 1, LLVMValueAsMetadata(version));
}
void lower_debug_function(Lower *l, V fn, Loc loc, const char *name) {
  if (!l->di) return;
  const LLVMMetadataRef file = debug_file(l, loc);
  const LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(l->di, file, NULL, 0, LLVMDIFlagZero);
  l->di_scope = LLVMDIBuilderCreateFunction(l->di, file, name, strlen(name), name, strlen(name), file,
                                            loc.line, type, true, true, loc.line, LLVMDIFlagZero, true);
  LLVMSetSubprogram(fn, l->di_scope);
  LLVMSetCurrentDebugLocation2(l->b,
                               LLVMDIBuilderCreateDebugLocation(l->cx, loc.line, loc.col, l->di_scope, NULL));
}

// ---- the compile -------------------------------------------------------------------------------
static const ImageWait waits[WAIT_COUNT] = {[WAIT_none] = IMAGE_WAIT_NONE,
                                            [WAIT_external] = IMAGE_WAIT_EXTERNAL,
                                            [WAIT_ordered] = IMAGE_WAIT_ORDERED,
                                            [WAIT_mutual] = IMAGE_WAIT_MUTUAL};

static bool note_buffer(IrOp *op, void *user) {
  if (op->kind != OP_mem_alloc) return true;
  uint64_t *end = user;
  const IrType *m = ir_result(op, 0)->type;
  const uint64_t bytes =
      (uint64_t)ir_type_elems(m) * (uint64_t)ir_type_bytes(m) * (uint64_t)(m->stages > 1 ? m->stages : 1);
  const uint64_t at = (uint64_t)ir_attr_i(op, ATTR_offset);
  if (at + bytes > *end) *end = at + bytes;
  return true;
}

static void compile_kernel(Lower *l, const IrFunc *f, ImageKernel *k) {
  l->func = f;
  l->values = arena_array(l->arena, V, (size_t)f->next_id + 1);
  l->width = 0;
  l->buffers_end = l->scratch_bytes = 0;
  ir_walk(f->body, note_buffer, &l->buffers_end);
  l->nt_stores = l->has_waits = false;
  l->fiber_warps = 0;
  ImageVariant *v = arena_new(l->arena, ImageVariant);
  k->name = v->entry = arena_strdup(l->arena, f->name->s);
  k->variants = v;
  k->nvariants = 1;
  v->num_warps = (uint32_t)(l->ir->num_warps + l->ir->extra_warps);
  v->lanes = (uint32_t)l->ir->lanes;
  v->wait = waits[f->wait_class];
  l->target->kernel(l, f, v);
  const uint64_t bytes = bits_round_up(l->buffers_end, 64) + bits_round_up(l->scratch_bytes, 64);
  if (l->facts->shared_bytes)
    v->shared_bytes = (uint32_t)bytes;
  else
    v->arena_bytes = bytes;
  v->has_waits = l->has_waits;
}

static void compile(Lower *l, int text, Output *out) {
  if (l->ir->stage != l->target->stage) lower_fail(l, NULL, ST_INTERNAL, "the module is in another stage");
  open_llvm(l);
  open_debug(l);
  uint32_t n = 0;
  for (const IrFunc *f = l->ir->funcs; f; f = f->next) n += f->is_kernel;
  if (!n) lower_fail(l, NULL, ST_INVALID, "the module has no kernel");
  out->kernels = arena_array(l->arena, ImageKernel, n);
  for (const IrFunc *f = l->ir->funcs; f; f = f->next)
    if (f->is_kernel) compile_kernel(l, f, &out->kernels[out->nkernels++]);
  if (l->di) LLVMDIBuilderFinalize(l->di);
  check_llvm(l, "building our module");
  verify(l);
  optimise(l);
  if (text == TARGET_TEXT_LLVM) {
    char *s = LLVMPrintModuleToString(l->mod);
    out->bytes = strlen(s);
    out->code = strdup(s);
    LLVMDisposeMessage(s);
    if (!out->code) escape_now(&l->escape, ST_NO_MEMORY, "no memory for the text");
    return;
  }
  const bool as_text = text == TARGET_TEXT_ASM || l->target->emits_text;
  out->code = take(l, emit(l, as_text ? LLVMAssemblyFile : LLVMObjectFile), &out->bytes);
  TargetTool *tool = l->options->tool;
  if (text < 0 && tool) os_child_give(&tool->child, out->code, out->bytes);
}

// What follows LLVM's part of a compile for machine code.
static void finish(Lower *l, int text, Output *out) {
  (void)text;
  if (l->target->finish) l->target->finish(l, out);
}

// Runs a step of a compile with everything cleaned up behind it. Where it fails out->code is gone.
static Status guarded(Lower *l, void (*step)(Lower *l, int text, Output *out), int text, Output *out) {
  Escape *const outer = l->arena->escape;
  l->arena->escape = &l->escape;
  const uint32_t errors = l->diags->errors;
  volatile Status s = ST_OK;
  if (ESCAPE_TRY(&l->escape)) {
    s = l->escape.status;
    free(out->code);
    out->code = NULL;
  } else {
    step(l, text, out);
  }
  close_llvm(l);
  l->arena->escape = outer;
  if (s == ST_NO_MEMORY || (s == ST_LIMIT && l->diags->errors == errors))
    escape_now(outer, s, "%s", l->escape.message);
  if (s != ST_OK && l->diags->errors == errors)
    diag(l->diags, DIAG_ERROR, LOC_NONE, "target %s: %s", l->target->name, l->escape.message);
  return s;
}

static Status start(const IrModule *m, const TargetOptions *o, Arena *a, Diags *d, TargetFacts *facts,
                    Lower *l) {
  const Status s = target_facts(o, a, d, facts);
  if (s != ST_OK) return s;
  *l = (Lower){
      .target = target_find(o->target), .facts = facts, .options = o, .ir = m, .arena = a, .diags = d};
  for (uint32_t i = 0; o->before && i < o->before->nsites; i++) vec_push(a, &l->sites, o->before->sites[i]);
  return ST_OK;
}

// The code may be bigger than what the arena has left: freed on that way out too.
static void *into_arena(Arena *a, Output *out) {
  Escape *const outer = a->escape;
  Escape esc;
  a->escape = &esc;
  if (ESCAPE_TRY(&esc)) {
    free(out->code);
    a->escape = outer;
    escape_now(outer, esc.status, "%s", esc.message);
  }
  void *p =
      arena_copy(a, out->code, out->bytes + !out->is_text); // with the NUL behind, which text counts already
  free(out->code);
  a->escape = outer;
  return p;
}

struct TargetJob {
  Lower lower;
  TargetFacts facts;
  TargetOptions options;
  Output *code; // LLVM's, which lies in the arena
  Image *image;
};

Status target_begin(const IrModule *m, const TargetOptions *o, Arena *a, Diags *d, TargetJob **job,
                    Image **out) {
  TargetJob *j = arena_new(a, TargetJob);
  Output *code = j->code = arena_new(a, Output);
  Lower *l = &j->lower;
  j->options = *o;
  Status s = start(m, &j->options, a, d, &j->facts, l);
  if (s == ST_OK) s = guarded(l, compile, -1, code);
  if (s != ST_OK) return s;
  Image *im = j->image = arena_new(a, Image);
  im->target = l->target->image;
  im->cpu_features = arena_strdup(a, j->facts.needs);
  im->producer = "ditron";
  im->kernels = code->kernels;
  im->nkernels = code->nkernels;
  im->sites = l->sites.data;
  im->nsites = l->sites.len;
  const Diags *names = m->diags ? m->diags : d;
  im->source_name = names->sources.len ? arena_strdup(a, names->sources.data[0].name) : "";
  im->sm = j->facts.sm;
  im->sm_exact = j->facts.sm_exact;
  im->code = into_arena(a, code);
  code->code = NULL;
  *out = im;
  *job = j;
  return ST_OK;
}

Status target_end(TargetJob *j) {
  Lower *l = &j->lower;
  Output *code = j->code;
  Image *im = j->image;
  if (l->target->finish) {
    code->text = im->code;
    const Status s = guarded(l, finish, -1, code);
    if (s != ST_OK) return s;
  }
  im->code_bytes = code->bytes;
  im->is_text = code->is_text;
  if (code->code) im->code = into_arena(l->arena, code);
  return ST_OK;
}

Status target_compile(const IrModule *m, const TargetOptions *o, Arena *a, Diags *d, Image **out) {
  TargetJob *job;
  Image *im;
  Status s = target_begin(m, o, a, d, &job, &im);
  if (s == ST_OK) s = target_end(job);
  if (s == ST_OK) *out = im;
  return s;
}

static bool start_tool(const TargetOptions *o, TargetTool *tool, Arena *a, Escape *esc) {
  Diags d;
  TargetFacts facts;
  arena_init(a, 0, esc);
  if (ESCAPE_TRY(esc)) return false;
  diags_init(&d, a);
  const Target *t = target_find(o->target);
  return t && t->start && t->facts(o, a, &d, &facts) == ST_OK && t->start(o, &facts, tool) == ST_OK;
}

TargetTool *target_tool_start(const TargetOptions *o) {
  Escape esc;
  Arena a;
  TargetTool *tool = calloc(1, sizeof *tool);
  if (!tool) return NULL;
  const bool there = start_tool(o, tool, &a, &esc);
  arena_free(&a);
  if (there) return tool;
  free(tool);
  return NULL;
}

void target_tool_end(TargetTool *t) {
  if (!t) return;
  os_child_end(&t->child);
  close(t->file);
  free(t);
}

Status target_text(const IrModule *m, const TargetOptions *o, TargetText what, Arena *a, Diags *d,
                   char **out) {
  TargetFacts facts;
  Lower *l = arena_new(a, Lower);
  Output *code = arena_new(a, Output);
  Status s = start(m, o, a, d, &facts, l);
  if (s == ST_OK) s = guarded(l, compile, (int)what, code);
  if (s != ST_OK) return s;
  *out = into_arena(a, code);
  return ST_OK;
}
