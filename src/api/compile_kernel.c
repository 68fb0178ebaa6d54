// From a source file to an image: front end, passes, target.
#include "api/compile_impl.h"

#include <stdlib.h>
#include <string.h>

Status compile_front(Compile *c) {
  return front_compile(&c->call->arena, &c->call->diags, c->ctx, &c->source, c->chosen->name, c->specs,
                       c->nspecs, &c->front, &c->module);
}

PassTarget compile_passes(const Compile *c) {
  const Target *t = target_find(c->target.target);
  return t && target_stage(t) == STAGE_lowered ? PASS_GPU : PASS_CPU;
}

Status compile_machine(Compile *c, PassMachine *out) {
  TargetFacts facts;
  Status s = target_facts(&c->target, &c->call->arena, &c->call->diags, &facts);
  if (s != ST_OK) return s;
  *out = (PassMachine){.vector_bits = (int)facts.vector_bits,
                       .arena_limit = 64 << 20,
                       // the largest of 260 public kernels has 1,800; machine code of 40,000 takes 8 s
                       .kernel_limit = 40000,
                       .wgmma = (facts.caps & TARGET_CAP_WGMMA) != 0,
                       .tma = (facts.caps & TARGET_CAP_TMA) != 0,
                       .no_f8_dot = compile_passes(c) == PASS_GPU && !(facts.caps & TARGET_CAP_F8_CVT)};
  return ST_OK;
}

// The image's arguments are the launch's: parameters that the code has folded (an integer that is 1, None) appear as fixed ones.
static void add_fixed_args(Compile *c, ImageVariant *v) {
  ImageArg *all = arena_array(&c->call->arena, ImageArg, c->chosen->nparams + (int)v->nargs);
  uint32_t *to = arena_array(&c->call->arena, uint32_t, v->nargs + 1);
  uint32_t n = 0, passed = 0;
  for (int i = 0; i < c->chosen->nparams; i++) {
    const FrontParam *p = &c->chosen->params[i];
    const FrontSpec *spec = compile_spec_of(c, p->name);
    if (p->is_constexpr || !spec) continue;
    if (spec->kind == FRONT_CONST) {
      bool is_int = spec->value.kind == FCONST_INT || spec->value.kind == FCONST_BOOL;
      all[n++] = (ImageArg){.name = p->name,
                            .kind = IMAGE_ARG_FIXED,
                            .bits = is_int ? 64 : 0,
                            .dtype = IMAGE_I64,
                            .divisible = 1,
                            .value = is_int ? spec->value.i : 0};
    } else if (passed < v->nargs) {
      to[passed] = n;
      all[n++] = v->args[passed++];
    }
  }
  image_renumber_args(v, to);
  v->args = all;
  v->nargs = n;
}

typedef struct Variant { // on its way
  TargetJob *job;
  Image *image; // without code before the job's end
  Diags *diags; // of the one without tensor maps: what is said there concerns nobody
} Variant;

static bool always_fits(const Image *im) {
  for (uint32_t k = 0; k < im->nkernels; k++) {
    const ImageVariant *v = im->kernels[k].variants;
    for (uint32_t i = 0; i < v->nmaps; i++) {
      if (!image_map_always_fits(v, &v->maps[i])) return false;
    }
  }
  return true;
}

static Status begin(Compile *c, IrModule *m, const PassConfig *config, const TargetOptions *target,
                    Variant *v) {
  const Status s = pass_run(m, compile_passes(c), config);
  return s == ST_OK ? target_begin(m, target, &c->call->arena, config->diags, &v->job, &v->image) : s;
}

// The first error from `from` on.
static const char *first_error(const Diags *d, uint32_t from) {
  for (; from < d->list.len; from++)
    if (d->list.data[from].level == DIAG_ERROR) return d->list.data[from].text;
  return "it cannot be compiled";
}

// The reason is a remark, and is kept for launches that would have needed it.
static void no_plain(Compile *c, const Diags *d, Image *im) {
  const char *why = arena_printf(
      &c->call->arena, "no variant without tensor maps stands behind it, as then: %s", first_error(d, 0));
  for (uint32_t k = 0; k < im->nkernels; k++) im->kernels[k].variants[0].guard_text = why;
  if (c->o.explain) diag(&c->call->diags, DIAG_REMARK, LOC_NONE, "%s", why);
}

// Where the accelerator may refuse a launch's tensors a second variant does without it.
static bool begin_plain(Compile *c, IrModule *m, PassConfig config, const Image *first, Variant *v) {
  Arena *a = &c->call->arena;
  PassMachine *machine = arena_new(a, PassMachine);
  TargetOptions target = c->target;
  *machine = *config.machine;
  machine->tma = false;
  config.machine = machine;
  config.diags = v->diags = arena_new(a, Diags);
  config.explain = false;
  diags_init(config.diags, a);
  target.before = first;
  target.tool = c->tools[1] = target_tool_start(&c->target);
  return begin(c, m, &config, &target, v) == ST_OK;
}

// What keeps the second one from being compiled is nothing that the program did wrong: then there is only the first.
static void end_plain(Compile *c, Variant *v, Image *im) {
  Arena *a = &c->call->arena;
  const Image *plain = v->image;
  if (target_end(v->job) != ST_OK || plain->is_text != im->is_text || plain->nkernels != im->nkernels) {
    no_plain(c, v->diags, im);
    return;
  }
  for (uint32_t k = 0; k < im->nkernels; k++) {
    ImageKernel *to = &im->kernels[k];
    ImageVariant *both = arena_array(a, ImageVariant, 2);
    both[0] = to->variants[0];
    both[1] = plain->kernels[k].variants[0];
    both[1].code = 1;
    both[1].guard_text = "where the tensor memory accelerator does not take the tensors";
    to->variants = both;
    to->nvariants = 2;
  }
  im->more = arena_new(a, ImageBlob);
  *im->more = (ImageBlob){plain->code, plain->code_bytes};
  im->nmore = 1;
  im->sites = plain->sites;
  im->nsites = plain->nsites;
}

// The image for this way of compiling. While the assembler is at work on the first variant, the second is on its way to its own.
static Status compile_variants(Compile *c, IrModule *m, IrModule *kept, PassConfig config, Image **out) {
  bool raised = false, wants = false,
       both = false; // raised: then a stride of any sign and size must be right
  Variant first = {0}, plain = {0};
  TargetOptions target = c->target;
  target.tool = c->tools[0];
  config.raised = &raised;
  Status s = begin(c, m, &config, &target, &first);
  wants = s == ST_OK && kept && !c->o.first_only && (raised || !always_fits(first.image));
  if (wants) both = begin_plain(c, ir_module_clone(kept, &c->call->arena), config, first.image, &plain);
  if (s == ST_OK) s = target_end(first.job);
  if (s == ST_OK && both)
    end_plain(c, &plain, first.image);
  else if (s == ST_OK && wants)
    no_plain(c, plain.diags, first.image);
  c->raised = raised;
  if (s == ST_OK) *out = first.image;
  return s;
}

// Pointers raised to descriptors take rings of shared memory that live as long as the kernel. Where that is too much they stay pointers.
static Status compile_raised(Compile *c, IrModule *kept, PassConfig config, Image **out) {
  Diags *d = &c->call->diags;
  const uint32_t said = d->list.len, errors = d->errors;
  const Status s = compile_variants(c, c->module, kept, config, out);
  if (s == ST_OK || s == ST_NO_MEMORY || !c->raised || !kept) return s;
  const char *why = first_error(d, said);
  d->list.len = said;
  d->errors = errors;
  if (config.explain)
    diag(d, DIAG_REMARK, LOC_NONE, "nothing is raised to tensor descriptors, since then: %s", why);
  config.keep_pointers = true;
  compile_end_tools(c);
  return compile_variants(c, ir_module_clone(kept, &c->call->arena), kept, config, out);
}

// --explain: what the assembler made of each variant.
static void say_size(Compile *c, const Image *im) {
  for (uint32_t k = 0; k < im->nkernels; k++) {
    for (uint32_t i = 0; i < im->kernels[k].nvariants; i++) {
      const ImageVariant *v = &im->kernels[k].variants[i];
      if (!v->registers) continue;
      diag(&c->call->diags, DIAG_REMARK, LOC_NONE,
           "%s%s: %u registers a thread, %u bytes spilled, %u bytes of shared memory, %u warps",
           im->kernels[k].name, i ? " without the tensor memory accelerator" : "", v->registers,
           v->spill_bytes, v->shared_bytes, v->num_warps);
    }
  }
}

Status compile_back(Compile *c, Image **out) {
  Arena *a = &c->call->arena;
  PassMachine machine;
  Status s = compile_machine(c, &machine);
  if (s != ST_OK) return s;
  const PassConfig config = {.machine = &machine,
                             .diags = &c->call->diags,
                             .explain = c->o.explain,
                             .verify = c->call->context->knobs.verify_each};
  IrModule *kept = machine.tma ? ir_module_clone(c->module, a) : NULL;
  if ((s = compile_raised(c, kept, config, out)) != ST_OK) return s;
  for (uint32_t k = 0; k < (*out)->nkernels; k++)
    for (uint32_t v = 0; v < (*out)->kernels[k].nvariants; v++)
      add_fixed_args(c, &(*out)->kernels[k].variants[v]);
  (*out)->source_name = c->source.path;
  if (c->o.explain) say_size(c, *out);
  return ST_OK;
}

void compile_end_tools(Compile *c) {
  for (size_t i = 0; i < DT_COUNTOF(c->tools); i++) {
    target_tool_end(c->tools[i]);
    c->tools[i] = NULL;
  }
}

// ---- dt_compile_* ------------------------------------------------------------------------------------------------------------
typedef struct CompileArgs {
  const char *path, *text;
  size_t len;
  const char *kernel;
  const dt_named *args;
  size_t nargs;
  const dt_compile_options *o;
  void **bytes; // the image, malloc'ed: it outlives the call's arena
  size_t *nbytes;
} CompileArgs;

static Status hand_over(CompileArgs *a, const void *bytes, size_t n) {
  *a->bytes = malloc(n ? n : 1);
  if (!*a->bytes) return ST_NO_MEMORY;
  memcpy(*a->bytes, bytes, n);
  *a->nbytes = n;
  return ST_OK;
}

// What no cache has.
static Status compile_fresh(Compile *c, bool cached, CompileArgs *a) {
  ApiCall *call = c->call;
  Image *im;
  void *bytes;
  const void *image;
  size_t n;
  c->tools[0] = target_tool_start(&c->target); // starts up while the front end is at work
  Status s = compile_specs(c);
  if (s != ST_OK) return s;
  if (cached) compile_keep_signature(c);
  if (cached && compile_cached_as(c, &image, &n)) return hand_over(a, image, n);
  if ((s = compile_front(c)) != ST_OK || (s = compile_back(c, &im)) != ST_OK ||
      (s = image_write(im, &call->arena, &bytes, &n, &call->diags)) != ST_OK)
    return s;
  if (cached) compile_keep(c, bytes, n);
  char trouble[512];
  if (rt_cache_problem(call->context->cache, trouble, sizeof trouble))
    diag(&call->diags, DIAG_WARNING, LOC_NONE, "%s", trouble);
  return hand_over(a, bytes, n);
}

// The assemblers that were started are ended on every way out.
static Status compile_fresh_guarded(Compile *c, bool cached, CompileArgs *a) {
  Arena *arena = &c->call->arena;
  Escape *const outer = arena->escape;
  Escape mine;
  if (ESCAPE_TRY(&mine)) {
    compile_end_tools(c);
    arena->escape = outer;
    escape_now(outer, mine.status, "%s", mine.message);
  }
  arena->escape = &mine;
  const Status s = compile_fresh(c, cached, a);
  compile_end_tools(c);
  arena->escape = outer;
  return s;
}

static Status compile_call(ApiCall *call, void *user) {
  CompileArgs *a = user;
  Compile c;
  Status s = compile_begin(&c, call, a->path, a->text, a->len, a->kernel, a->args, a->nargs, a->o);
  if (s != ST_OK) return s;
  const bool cached = !c.o.explain && *dt_cache_dir(call->context); // remarks are not cached
  const void *image;
  size_t nimage;
  if (cached && compile_cached(&c, &image, &nimage)) return hand_over(a, image, nimage);
  if (c.o.cached_only) {
    diag(&call->diags, DIAG_ERROR, LOC_NONE, "the cache holds no image of %s for these arguments", a->path);
    return ST_NOT_FOUND;
  }
  return compile_fresh_guarded(&c, cached, a);
}

static dt_status compile_to_image(dt_context *c, CompileArgs *a, dt_image **out) {
  void *bytes = NULL;
  size_t n = 0;
  a->bytes = &bytes;
  a->nbytes = &n;
  dt_status st = api_call(c, compile_call, a);
  if (st == DT_OK) st = api_image_from_bytes(c, bytes, n, out);
  free(bytes);
  return st;
}

dt_status dt_compile_file(dt_context *c, const char *path, const char *kernel, const dt_named *args,
                          size_t nargs, const dt_compile_options *options, dt_image **out) {
  dt_status st = api_need(c, "dt_compile_file", "path", path);
  if (st != DT_OK) return st;
  CompileArgs a = {.path = path, .kernel = kernel, .args = args, .nargs = nargs, .o = options};
  return compile_to_image(c, &a, out);
}

dt_status dt_compile_text(dt_context *c, const char *name, const char *text, size_t len, const char *kernel,
                          const dt_named *args, size_t nargs, const dt_compile_options *options,
                          dt_image **out) {
  dt_status st = api_need(c, "dt_compile_text", "name", name);
  if (st == DT_OK) st = api_need(c, "dt_compile_text", "text", text);
  if (st != DT_OK) return st;
  CompileArgs a = {
      .path = name, .text = text, .len = len, .kernel = kernel, .args = args, .nargs = nargs, .o = options};
  return compile_to_image(c, &a, out);
}
