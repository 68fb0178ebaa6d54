// launch: what a launch costs the host, ours beside the bare driver call, on an NVIDIA GPU.
//
// An empty kernel of eight arguments, launched in series short enough for the driver's queue, in rounds that take the ways in
// turn: cuLaunchKernelEx with a pointer to each argument; the same with one packed buffer; rt_launch; dt_launch, with the
// device's context current in the thread and with none. Prints the median of the rounds a way, and the median of the
// per-round differences from the faster bare call. Then one JSON object.
#include "rt/dev_cuda.h"

#include "ditron/ditron.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARGS = 8, SERIES = 200, ROUNDS = 101 };

static const char PTX[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u32 m,\n"
    "  .param .u32 n, .param .u32 k, .param .f32 s, .param .u64 rank) .reqntid 128\n{\n  ret;\n}\n";

static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

// Both libraries' handles to the same kernel, and the driver's own.
typedef struct Bench {
  const Cuda *cu;
  CuFunction function;
  CuContext context;
  CuStream stream;
  RtKernel *rt_kernel;
  RtStream *rt_stream;
  dt_kernel *dt_kernel;
  dt_stream *dt_stream;
  RtArg rt_args[ARGS];
  dt_value dt_args[ARGS];
  char packed[64];
} Bench;

static void bare_pointers(Bench *b) {
  void *p[ARGS + 1];
  for (int i = 0; i < ARGS; i++) p[i] = &b->rt_args[i];
  p[ARGS] = b->packed + 48;
  const CuLaunch l = {.grid = {1, 1, 1}, .block = {128, 1, 1}, .stream = b->stream};
  if (b->cu->LaunchKernelEx(&l, b->function, p, NULL)) fail("cuLaunchKernelEx", "failed");
}

static void bare_buffer(Bench *b) {
  size_t bytes = 56;
  void *extra[] = {(void *)CU_EXTRA_BUFFER, b->packed, (void *)CU_EXTRA_BYTES, &bytes, (void *)CU_EXTRA_END};
  const CuLaunch l = {.grid = {1, 1, 1}, .block = {128, 1, 1}, .stream = b->stream};
  if (b->cu->LaunchKernelEx(&l, b->function, NULL, extra)) fail("cuLaunchKernelEx", "failed");
}

static void through_rt(Bench *b) {
  RtError e;
  static const uint32_t grid[3] = {1, 1, 1};
  if (rt_launch(b->rt_kernel, b->rt_stream, grid, b->rt_args, ARGS, &e)) fail("rt_launch", e.text);
}

static void through_api(Bench *b) {
  static const uint32_t grid[3] = {1, 1, 1};
  if (dt_launch(b->dt_kernel, b->dt_stream, grid, b->dt_args, ARGS)) fail("dt_launch", "failed");
}

// From a thread that has no context current: ours has to be set, and taken back.
static void without_context(Bench *b) { through_api(b); }

// ---- setting up --------------------------------------------------------------------------------------------
static const Image *make_image(Arena *a) {
  Image *im = arena_new(a, Image);
  ImageKernel *k = arena_new(a, ImageKernel);
  ImageVariant *v = arena_new(a, ImageVariant);
  ImageArg *args = arena_array(a, ImageArg, ARGS);
  static const char *const names[ARGS] = {"a", "b", "c", "d", "m", "n", "k", "s"};
  for (uint32_t i = 0; i < ARGS; i++) {
    const bool ptr = i < 4;
    args[i] = (ImageArg){.name = names[i],
                         .kind = ptr     ? IMAGE_ARG_PTR
                                 : i < 7 ? IMAGE_ARG_INT
                                         : IMAGE_ARG_FLOAT,
                         .bits = 32,
                         .dtype = ptr || i == 7 ? IMAGE_F32 : IMAGE_I32,
                         .divisible = i < 7 ? 16 : 1,
                         .offset = ptr ? i * 8 : 32 + (i - 4) * 4};
  }
  *v = (ImageVariant){.entry = "empty",
                      .guard_text = "",
                      .args = args,
                      .nargs = ARGS,
                      .args_bytes = 48,
                      .num_warps = 4,
                      .lanes = 32};
  *k = (ImageKernel){.name = "empty", .variants = v, .nvariants = 1};
  *im = (Image){.target = IMAGE_NVPTX,
                .cpu_features = "sm_80",
                .producer = "bench",
                .code = PTX,
                .code_bytes = sizeof PTX,
                .is_text = true,
                .sm = 80,
                .kernels = k,
                .nkernels = 1,
                .source_name = "bench/launch.c"};
  return im;
}

static void set_args(Bench *b, RtRank *r) {
  RtError e;
  void *p;
  if (rt_alloc(r, 4096, &p, &e)) fail("rt_alloc", e.text);
  for (int i = 0; i < ARGS; i++) {
    b->rt_args[i].bits = i < 4 ? (uint64_t)(uintptr_t)p : i < 7 ? 4096 : 0x3f800000;
    b->dt_args[i] = i < 4 ? dt_ptr(DT_F32, p) : i < 7 ? dt_int(4096) : dt_float(1);
    memcpy(b->packed + (i < 4 ? i * 8 : 32 + (i - 4) * 4), &b->rt_args[i].bits, i < 4 ? 8 : 4);
  }
}

// ---- measuring ---------------------------------------------------------------------------------------------
static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *v) {
  qsort(v, ROUNDS, sizeof *v, by_value);
  return v[ROUNDS / 2];
}

static double series(Bench *b, void (*launch)(Bench *)) {
  b->cu->CtxSetCurrent(b->context);
  b->cu->StreamSynchronize(b->stream);
  if (launch == without_context) b->cu->CtxSetCurrent(NULL);
  const uint64_t start = os_now_ns();
  for (int i = 0; i < SERIES; i++) launch(b);
  return (double)(os_now_ns() - start) / SERIES;
}

static void measure(Bench *b) {
  enum { WAYS = 5 };
  static void (*const ways[WAYS])(Bench *) = {bare_pointers, bare_buffer, through_rt, through_api,
                                              without_context};
  static const char *const names[WAYS] = {"cuLaunchKernelEx, pointers", "cuLaunchKernelEx, buffer",
                                          "rt_launch", "dt_launch", "dt_launch, no context"};
  static double ns[WAYS][ROUNDS], more[WAYS][ROUNDS];
  for (int round = -5; round < ROUNDS; round++) {
    for (int i = 0; i < WAYS; i++) {
      const int w = (i + round + 5) % WAYS;
      const double t = series(b, ways[w]);
      if (round >= 0) ns[w][round] = t;
    }
  }
  for (int w = 0; w < WAYS; w++) {
    for (int k = 0; k < ROUNDS; k++) more[w][k] = ns[w][k] - (ns[0][k] < ns[1][k] ? ns[0][k] : ns[1][k]);
  }
  double t[WAYS], d[WAYS];
  printf("%-28s %10s %12s\n", "way", "ns", "over bare ns");
  for (int w = 0; w < WAYS; w++) {
    d[w] = median(more[w]);
    t[w] = median(ns[w]);
    printf("%-28s %10.0f %12.0f\n", names[w], t[w], d[w]);
  }
  printf(
      "{\"name\": \"launch\", \"args\": %d, \"bare_ns\": %.0f, \"buffer_ns\": %.0f, \"rt_ns\": %.0f, \"api_ns\": %.0f, "
      "\"rt_over_ns\": %.0f, \"api_over_ns\": %.0f, \"no_context_over_ns\": %.0f}\n",
      ARGS, t[0], t[1], t[2], t[3], d[2], d[3], d[4]);
}

int main(void) {
  static Bench b;
  RtError e;
  Escape esc;
  Arena a;
  Diags d;
  dt_context *c;
  arena_init(&a, 0, &esc);
  if (ESCAPE_TRY(&esc)) fail("memory", esc.message);
  diags_init(&d, &a);
  const char *lib = getenv("DITRON_LIBCUDA");
  RtContext *rc;
  RtTeam *rt;
  if (rt_context_create(&(RtConfig){.libcuda = lib}, &rc, &e)) fail("rt_context_create", e.text);
  if (rt_team_create(rc, &(RtTeamConfig){.device = "cuda"}, &rt, &e)) fail("rt_team_create", e.text);
  RtRank *r = rt_team_rank(rt, 0);
  if (rt_stream_create(r, "bench", &b.rt_stream, &e)) fail("rt_stream_create", e.text);
  const Image *im = make_image(&a);
  if (rt_kernel_load(r, im, NULL, &b.rt_kernel, &e)) fail("rt_kernel_load", e.text);
  set_args(&b, r);
  // the same through the public header
  void *bytes;
  size_t n;
  dt_team *team;
  dt_image *image;
  dt_team_options o = {.size = sizeof o, .device = "cuda"};
  if (dt_context_create(NULL, &c)) fail("dt_context_create", "failed");
  if (dt_team_create(c, &o, &team)) fail("dt_team_create", dt_error(c));
  dt_rank *dr = dt_team_local(team, 0);
  if (image_write(im, &a, &bytes, &n, &d)) fail("image_write", diags_render(&d, &a));
  if (dt_image_read(c, bytes, n, &image)) fail("dt_image_read", dt_error(c));
  if (dt_kernel_load(dr, image, NULL, &b.dt_kernel)) fail("dt_kernel_load", dt_error(c));
  if (dt_stream_wrap(dr, rt_stream_native(b.rt_stream), "bench", &b.dt_stream))
    fail("dt_stream_wrap", dt_error(c));
  // and by hand
  CudaRank *cr = cuda_rank(r);
  CuModule m;
  b.cu = cr->cu;
  b.stream = rt_stream_native(b.rt_stream);
  b.context = cr->context;
  cr->cu->CtxSetCurrent(cr->context);
  if (cr->cu->ModuleLoadDataEx(&m, PTX, 0, NULL, NULL) || cr->cu->ModuleGetFunction(&b.function, m, "empty"))
    fail("cuModuleLoadDataEx", "failed");
  measure(&b);
  if (rt_stream_sync(b.rt_stream, &e)) fail("rt_stream_sync", e.text);
  return 0;
}
