// The CUDA device: without a driver its sentences; over a driver made of host memory (tests/fake) every path, errors
// included; on a real one, where there is one, kernels written by hand in PTX.
#include "unit/rt_cuda.h"

#include <pthread.h>

// ---- images ----------------------------------------------------------------------------------------------
// add(a, b, out, n): 32-bit floats, 128 threads a block
static const char ADD_PTX[] =
    ".version 8.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 o, .param .u32 n,\n"
    "                    .param .u64 rank) .reqntid 128\n"
    "{\n"
    "  .reg .pred p; .reg .b32 r<6>; .reg .b64 d<8>; .reg .f32 f<4>;\n"
    "  mov.u32 r1, %ctaid.x; mov.u32 r2, %tid.x; ld.param.u32 r3, [n];\n"
    "  mad.lo.u32 r4, r1, 128, r2; setp.ge.u32 p, r4, r3; @p bra end;\n"
    "  ld.param.u64 d1, [a]; ld.param.u64 d2, [b]; ld.param.u64 d3, [o];\n"
    "  mul.wide.u32 d4, r4, 4; add.u64 d1, d1, d4; add.u64 d2, d2, d4; add.u64 d3, d3, d4;\n"
    "  ld.global.f32 f1, [d1]; ld.global.f32 f2, [d2]; add.f32 f3, f1, f2;\n"
    "  st.global.f32 [d3], f3;\n"
    "end: ret;\n"
    "}\n"
    // bad(p): stores to the address p
    ".visible .entry bad(.param .u64 p, .param .u64 rank) .reqntid 128\n"
    "{\n"
    "  .reg .b64 d<3>;\n"
    "  ld.param.u64 d1, [p]; st.global.u64 [d1], d1; ret;\n"
    "}\n"
    // facts(out): what the hidden argument points to
    ".visible .entry facts(.param .u64 o, .param .u64 rank) .reqntid 128\n"
    "{\n"
    "  .reg .pred p; .reg .b32 r<4>; .reg .b64 d<6>;\n"
    "  mov.u32 r1, %tid.x; setp.ne.u32 p, r1, 0; @p bra end;\n"
    "  ld.param.u64 d1, [o]; ld.param.u64 d2, [rank];\n"
    "  ld.u32 r2, [d2]; st.global.u32 [d1], r2;\n"
    "  ld.u32 r2, [d2+4]; st.global.u32 [d1+4], r2;\n"
    "  ld.u32 r2, [d2+8]; st.global.u32 [d1+8], r2;\n"
    "  ld.u32 r2, [d2+12]; st.global.u32 [d1+12], r2;\n"
    "  ld.u64 d3, [d2+16]; ld.u64 d4, [d3]; st.global.u64 [d1+16], d4;\n"
    "  ld.u64 d5, [d3+16]; ld.u64 d4, [d5]; st.global.u64 [d1+24], d4;\n"
    "  ld.u64 d3, [d2+24]; ld.u64 d4, [d3]; st.global.u64 [d1+32], d4;\n"
    "end: ret;\n"
    "}\n";

static ImageArg arg_ptr(const char *name, uint32_t offset, uint32_t divisible) {
  return (ImageArg){.name = name,
                    .kind = IMAGE_ARG_PTR,
                    .bits = 32,
                    .dtype = IMAGE_F32,
                    .divisible = divisible,
                    .offset = offset};
}

static Image *ptx_image(Arena *a, const char *ptx) {
  Image *im = arena_new(a, Image);
  *im = (Image){.target = IMAGE_NVPTX,
                .cpu_features = "sm_80",
                .producer = "test",
                .code = ptx,
                .code_bytes = strlen(ptx) + 1,
                .is_text = true,
                .sm = 80,
                .source_name = "by hand"};
  im->nkernels = 3;
  im->kernels = arena_array(a, ImageKernel, 3);
  static const char *const names[] = {"add", "bad", "facts"};
  for (int i = 0; i < 3; i++) {
    ImageVariant *v = arena_new(a, ImageVariant);
    *v = (ImageVariant){.entry = names[i], .guard_text = "", .num_warps = 4, .lanes = 32};
    im->kernels[i] = (ImageKernel){.name = names[i], .variants = v, .nvariants = 1};
    v->nargs = i ? 1 : 4;
    v->args_bytes = i ? 8 : 32;
    v->args = arena_array(a, ImageArg, v->nargs);
    v->args[0] = arg_ptr("a", 0, i ? 1 : 16);
    if (i) continue;
    v->args[1] = arg_ptr("b", 8, 16);
    v->args[2] = arg_ptr("o", 16, 16);
    v->args[3] = (ImageArg){
        .name = "n", .kind = IMAGE_ARG_INT, .bits = 32, .dtype = IMAGE_I32, .offset = 24, .divisible = 1};
  }
  im->nsites = 1;
  im->sites = arena_new(a, ImageSite);
  im->sites[0] = (ImageSite){.file = "k.py", .line = 12, .col = 5, .what = "the flag"};
  return im;
}

static const ImageVariant *variant(const Image *im, int i) { return &im->kernels[i].variants[0]; }

// The fake's launches of the kernels above.
static int run_on_host(const FakeLaunch *l) {
  const char *args = l->args;
  uint64_t p[3];
  uint32_t n;
  if (strcmp(l->entry, "bad") == 0) return 700;
  if (strcmp(l->entry, "add") != 0) return 0;
  memcpy(p, args, sizeof p);
  memcpy(&n, args + 24, sizeof n);
  const float *a = (const float *)(uintptr_t)p[0], *b = (const float *)(uintptr_t)p[1];
  float *o = (float *)(uintptr_t)p[2];
  for (uint32_t i = 0; i < l->grid[0] * l->block[0] && i < n; i++) o[i] = a[i] + b[i];
  return 0;
}

// ---- sentences without a device ------------------------------------------------------------------------------
static void sentence(const char *lib, const char *said) {
  Gpu g = {0};
  RtDeviceInfo d;
  OK(rt_context_create(&(RtConfig){.libcuda = lib}, &g.context, &g.e));
  assert_true(rt_device(g.context, 0, &d) && d.usable);
  assert_string_equal(d.name, "cpu");
  assert_true(rt_device(g.context, 1, &d) && !d.usable);
  assert_string_equal(d.name, "cuda");
  if (!strstr(d.text, said)) fail_msg("'%s' is not in: %s", said, d.text);
  assert_false(rt_device(g.context, 2, &d));
  NOT(ST_NOT_FOUND, rt_team_create(g.context, &(RtTeamConfig){.device = "cuda"}, &g.team, &g.e), said);
  NOT(ST_NOT_FOUND, rt_team_create(g.context, &(RtTeamConfig){.device = "cuda:3"}, &g.team, &g.e), "cuda:3");
  rt_context_destroy(g.context);
}

static void test_no_driver(void **state) {
  (void)state;
  sentence("libcuda_that_is_not_there.so", "no NVIDIA driver here (libcuda_that_is_not_there.so");
  sentence("libm.so.6", "too old: it has no cuInit");
}

static void test_driver_that_does_not_start(void **state) {
  (void)state;
  static const struct {
    int status;
    const char *said;
  } cases[] = {
      {100, "finds no GPU"}, {803, "different versions"}, {34, "is a stub"}, {999, "does not start"}};
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) {
    fake_state(1)->init_status = cases[i].status;
    sentence(fake_path, cases[i].said);
  }
  fake_state(1)->devices = 0;
  sentence(fake_path, "finds no GPU");
}

static void test_names_of_devices(void **state) {
  (void)state;
  Gpu g = {0};
  RtDeviceInfo d;
  fake_state(1)->devices = 2;
  OK(rt_context_create(&(RtConfig){.libcuda = fake_path}, &g.context, &g.e));
  assert_true(rt_device(g.context, 2, &d) && d.usable);
  assert_string_equal(d.name, "cuda:1");
  assert_non_null(strstr(d.text, "Fake GPU, sm_90, 1.0 GiB, 132 multiprocessors, driver "));
  assert_non_null(strstr(d.text, "CUDA 13.0"));
  assert_false(rt_device(g.context, 3, &d));
  static const char *const bad[] = {"",        "gpu",     "cud",   "cuda:", "cuda:x",
                                    "cuda:1x", "cuda:-1", "cuda1", "cpu:1"};
  for (size_t i = 0; i < DT_COUNTOF(bad); i++)
    NOT(ST_NOT_FOUND, rt_team_create(g.context, &(RtTeamConfig){.device = bad[i]}, &g.team, &g.e),
        "'cpu', 'cuda'");
  NOT(ST_NOT_FOUND, rt_team_create(g.context, &(RtTeamConfig){.device = "cuda:2"}, &g.team, &g.e),
      "2 NVIDIA GPUs");
  NOT(ST_UNSUPPORTED,
      rt_team_create(g.context, &(RtTeamConfig){.device = "cuda", .local_ranks = 2}, &g.team, &g.e),
      "has one rank, not 2");
  OK(rt_team_create(g.context, &(RtTeamConfig){.device = "cuda:1"}, &g.team, &g.e));
  rt_team_destroy(g.team);
  rt_context_destroy(g.context);
  nothing_left();
}

// ---- memory, streams, events ---------------------------------------------------------------------------------
static void test_memory_and_copies(void **state) {
  (void)state;
  Gpu g;
  char host[64], back[64];
  void *p, *q;
  up(&g);
  OK(rt_alloc(g.rank, 64, &p, &g.e));
  OK(rt_alloc(g.rank, 0, &q, &g.e)); // something that can be freed
  for (int i = 0; i < 64; i++) host[i] = (char)i;
  OK(rt_copy(g.stream, p, host, 64, &g.e));
  OK(rt_fill(g.stream, (char *)p + 8, 0x55, 8, &g.e));
  OK(rt_copy(g.stream, back, p, 64, &g.e));
  OK(rt_stream_sync(g.stream, &g.e));
  for (int i = 0; i < 64; i++) assert_int_equal(back[i], i >= 8 && i < 16 ? 0x55 : i);
  OK(rt_copy_2d(g.stream, p, 8, host, 16, 4, 3, &g.e));
  for (int i = 0; i < 3; i++) assert_memory_equal((char *)p + 8 * i, host + 16 * i, 4);
  NOT(ST_INVALID, rt_copy(g.stream, NULL, p, 4, &g.e), "NULL");
  OK(rt_copy(g.stream, NULL, NULL, 0, &g.e));
  rt_free(g.rank, p);
  rt_free(g.rank, q);
  rt_free(g.rank, NULL);
  NOT(ST_NO_MEMORY, rt_alloc(g.rank, 3ull << 30, &p, &g.e), "no room for 3.000 GiB more: ");
  assert_non_null(strstr(g.e.text, "of its 1.0 GiB are free"));
  down(&g);
}

static void test_symmetric_memory(void **state) {
  (void)state;
  Gpu g;
  void *p, *q;
  fake_state(1);
  gpu_up(&g, fake_path, &(RtTeamConfig){.symmetric_bytes = 4 << 20});
  const size_t before = fake()->used;
  OK(rt_symm_alloc(g.rank, 1000, "x", &p, &g.e));
  assert_int_equal(fake()->used - before, 4 << 20); // taken when first asked for
  for (int i = 0; i < 1000; i++) assert_int_equal(((char *)p)[i], 0);
  OK(rt_symm_peer(g.rank, (char *)p + 8, 0, &q, &g.e));
  assert_ptr_equal(q, (char *)p + 8);
  memset(p, 7, 1000);
  OK(rt_symm_free(g.rank, p, &g.e));
  OK(rt_symm_alloc(g.rank, 2000, "y", &q, &g.e));
  assert_ptr_equal(p, q);
  for (int i = 0; i < 2000; i++) assert_int_equal(((char *)q)[i], 0);
  NOT(ST_NO_MEMORY, rt_symm_alloc(g.rank, 4 << 20, "z", &p, &g.e), "no room");
  NOT(ST_UNSUPPORTED, rt_signal_set(g.stream, q, 1, 0, &g.e), "no signals yet");
  OK(rt_symm_free(g.rank, q, &g.e));
  down(&g);
}

static void called(void *user) { ++*(int *)user; }

static void test_streams_and_events(void **state) {
  (void)state;
  Gpu g;
  RtEvent *from, *to;
  RtStream *wrapped, *standard;
  double ms = -1;
  int calls = 0;
  up(&g);
  OK(rt_event_create(g.rank, &from, &g.e));
  OK(rt_event_create(g.rank, &to, &g.e));
  NOT(ST_INVALID, rt_event_elapsed(from, to, &ms, &g.e), "first event was never recorded");
  OK(rt_stream_wait_event(g.stream, from, &g.e));
  OK(rt_event_record(from, g.stream, &g.e));
  NOT(ST_INVALID, rt_event_elapsed(from, to, &ms, &g.e), "second event was never recorded");
  OK(rt_host_call(g.stream, called, &calls, &g.e));
  OK(rt_event_record(to, g.stream, &g.e));
  OK(rt_event_sync(to, &g.e));
  fake()->fail_call = "EventQuery"; // of the second
  fake()->fail_status = 600;
  fake()->fail_after = 1;
  NOT(ST_BUSY, rt_event_elapsed(from, to, &ms, &g.e), "second event has not happened");
  OK(rt_event_elapsed(from, to, &ms, &g.e));
  assert_true(ms >= 0 && ms < 1000);
  assert_int_equal(calls, 1);
  // ours, and the caller's
  assert_non_null(rt_stream_native(g.stream));
  OK(rt_stream_wrap(g.rank, rt_stream_native(g.stream), "theirs", &wrapped, &g.e));
  OK(rt_stream_wrap(g.rank, NULL, "standard", &standard, &g.e));
  OK(rt_stream_wait_event(wrapped, to, &g.e));
  OK(rt_stream_sync(wrapped, &g.e));
  OK(rt_stream_sync(standard, &g.e));
  const int streams = fake()->streams;
  rt_stream_destroy(wrapped);
  rt_stream_destroy(standard);
  assert_int_equal(fake()->streams, streams);
  assert_true(rt_stream_idle(g.stream));
  fake()->fail_call = "StreamQuery";
  fake()->fail_status = 600;
  fake()->fail_after = 0;
  assert_false(rt_stream_idle(g.stream));
  rt_event_destroy(from);
  rt_event_destroy(to);
  down(&g);
}

static void test_stream_of_another_device(void **state) {
  (void)state;
  Gpu g;
  RtTeam *other;
  RtStream *s, *wrapped;
  fake_state(1)->devices = 2;
  gpu_up(&g, fake_path, NULL);
  OK(rt_team_create(g.context, &(RtTeamConfig){.device = "cuda:1"}, &other, &g.e));
  OK(rt_stream_create(rt_team_rank(other, 0), "other", &s, &g.e));
  NOT(ST_INVALID, rt_stream_wrap(g.rank, rt_stream_native(s), "theirs", &wrapped, &g.e), "of another device");
  rt_stream_destroy(s);
  rt_team_destroy(other);
  down(&g);
}

// ---- kernels -------------------------------------------------------------------------------------------------
typedef struct Add {
  RtKernel *k;
  void *p[3];
  RtArg args[4];
} Add;

static void add_up(Gpu *gpu, Add *a, uint32_t n) {
  Gpu g = *gpu;
  OK(rt_kernel_load(g.rank, ptx_image(&gpu->arena, ADD_PTX), "add", &a->k, &g.e));
  for (int i = 0; i < 3; i++) {
    OK(rt_alloc(g.rank, n * 4 + 16, &a->p[i], &g.e));
    a->args[i].bits = (uint64_t)(uintptr_t)a->p[i];
  }
  a->args[3].bits = n;
}

static void add_down(Gpu *g, Add *a) {
  rt_kernel_destroy(a->k);
  for (int i = 0; i < 3; i++) rt_free(g->rank, a->p[i]);
}

static void check_add(Gpu *gpu) {
  enum { N = 1000 };
  Gpu g = *gpu;
  Add a;
  float x[N], y[N], out[N + 4];
  for (int i = 0; i < N; i++) x[i] = (float)i * 0.5f, y[i] = (float)(N - i) * 0.25f;
  add_up(gpu, &a, N);
  OK(rt_copy(g.stream, a.p[0], x, sizeof x, &g.e));
  OK(rt_copy(g.stream, a.p[1], y, sizeof y, &g.e));
  OK(rt_fill(g.stream, a.p[2], 0xff, sizeof out, &g.e));
  OK(rt_launch(a.k, g.stream, (uint32_t[3]){8, 1, 1}, a.args, 4, &g.e));
  OK(rt_copy(g.stream, out, a.p[2], sizeof out, &g.e));
  OK(rt_stream_sync(g.stream, &g.e));
  for (int i = 0; i < N; i++) assert_true(out[i] == x[i] + y[i]);
  for (int i = N; i < N + 4; i++) assert_true(out[i] != out[i]); // untouched
  a.args[0].bits += 4;
  NOT(ST_INVALID, rt_launch(a.k, g.stream, (uint32_t[3]){8, 1, 1}, a.args, 4, &g.e),
      "a to be a multiple of 16");
  a.args[0].bits -= 4;
  NOT(ST_LIMIT, rt_launch(a.k, g.stream, (uint32_t[3]){1, 65536, 1}, a.args, 4, &g.e),
      "1 x 65536 x 1 is too large");
  NOT(ST_LIMIT, rt_launch(a.k, g.stream, (uint32_t[3]){1, 1, 65536}, a.args, 4, &g.e),
      "2147483647 x 65535 x 65535");
  NOT(ST_LIMIT, rt_launch(a.k, g.stream, (uint32_t[3]){1u << 31, 1, 1}, a.args, 4, &g.e), "too large");
  OK(rt_launch(a.k, g.stream, (uint32_t[3]){8, 0, 1}, a.args, 4, &g.e)); // an empty grid does nothing
  OK(rt_launch(a.k, g.stream, (uint32_t[3]){1, 65535, 1}, a.args, 4, &g.e));
  OK(rt_stream_sync(g.stream, &g.e));
  add_down(gpu, &a);
}

static void test_launch(void **state) {
  (void)state;
  Gpu g;
  up(&g);
  fake()->kernel = run_on_host;
  check_add(&g);
  const FakeLaunch *l = &fake()->last;
  assert_int_equal(fake()->launches, 2);
  assert_int_equal(l->bytes, 40); // the arguments and the hidden one
  assert_int_equal(l->block[0], 128);
  assert_int_equal(l->grid[1], 65535);
  assert_ptr_equal(l->stream, rt_stream_native(g.stream));
  assert_int_equal(fake()->carveout, 100);
  assert_int_equal(fake()->function_loads, 1); // not put off until the first launch
  down(&g);
}

static FakeLaunch hidden;
static AbiRank hidden_rank;
static int read_rank(const FakeLaunch *l) {
  uint64_t at;
  hidden = *l;
  memcpy(&at, (const char *)l->args + l->bytes - 8, 8);
  memcpy(&hidden_rank, (const void *)(uintptr_t)at, sizeof hidden_rank);
  return 0;
}

static void test_rank_record(void **state) {
  (void)state;
  Gpu g;
  void *p, *mine;
  RtKernel *k;
  RtArg arg = {.bits = 0};
  up(&g);
  fake()->kernel = read_rank;
  OK(rt_kernel_load(g.rank, ptx_image(&g.arena, ADD_PTX), "facts", &k, &g.e));
  OK(rt_symm_alloc(g.rank, 64, "x", &p, &g.e)); // after the kernel was loaded
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  const AbiRank *r = &hidden_rank;
  assert_int_equal(r->abi, IMAGE_ABI);
  assert_int_equal(r->rank, 0);
  assert_int_equal(r->world, 1);
  assert_int_equal(r->nsegments, 1);
  assert_int_equal(r->segments[0].base, (uint64_t)(uintptr_t)p);
  assert_int_equal(r->segments[0].peer_base[0], (uint64_t)(uintptr_t)p);
  assert_int_equal(*r->abort_word, 0);
  assert_int_equal(r->deadline_ns, 2000000000);
  assert_null(r->cpu);
  assert_int_equal(r->report->state, ABI_REPORT_EMPTY);
  OK(rt_alloc(g.rank, 4096, &mine, &g.e));
  OK(rt_symm_register(g.rank, mine, 4096, "mine", &g.e));
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  assert_int_equal(r->nsegments, 2);
  assert_int_equal(r->segments[1].peer_base[0], (uint64_t)(uintptr_t)mine);
  OK(rt_symm_unregister(g.rank, mine, &g.e));
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  assert_int_equal(r->nsegments, 1);
  rt_free(g.rank, mine);
  rt_kernel_destroy(k);
  down(&g);
}

static void test_modules_are_shared(void **state) {
  (void)state;
  Gpu g;
  RtKernel *k[300];
  up(&g);
  const Image *im = ptx_image(&g.arena, ADD_PTX);
  for (int i = 0; i < 300; i++) OK(rt_kernel_load(g.rank, im, i % 2 ? "add" : "facts", &k[i], &g.e));
  assert_int_equal(fake()->module_loads, 1);
  for (int i = 0; i < 300; i++) rt_kernel_destroy(k[i]);
  assert_int_equal(fake()->modules, 0);
  OK(rt_kernel_load(g.rank, im, "add", &k[0], &g.e));
  assert_int_equal(fake()->module_loads, 2);
  rt_kernel_destroy(k[0]);
  down(&g);
}

static void test_launch_waits_for_nothing(void **state) {
  (void)state;
  Gpu g;
  Add a;
  up(&g);
  add_up(&g, &a, 100);
  fake()->capturing = 1; // any sync would fail
  const int syncs = fake()->syncs, allocations = fake()->allocations;
  for (int i = 0; i < 100; i++) OK(rt_launch(a.k, g.stream, (uint32_t[3]){1, 1, 1}, a.args, 4, &g.e));
  assert_int_equal(fake()->syncs, syncs);
  assert_int_equal(fake()->allocations, allocations);
  fake()->capturing = 0;
  add_down(&g, &a);
  down(&g);
}

static void test_what_cannot_be_loaded(void **state) {
  (void)state;
  Gpu g;
  RtKernel *k;
  up(&g);
  Image *im = ptx_image(&g.arena, ADD_PTX);
  ImageVariant *v = im->kernels[0].variants;
#define LOAD(status, said) NOT(status, rt_kernel_load(g.rank, im, "add", &k, &g.e), said)
  im->target = IMAGE_X86_64;
  LOAD(ST_UNSUPPORTED, "was compiled for a processor, but the rank runs on an NVIDIA GPU");
  im->target = IMAGE_NVPTX;
  im->sm = 100;
  LOAD(ST_UNSUPPORTED, "was compiled for sm_100 and does not run on cuda:0 (Fake GPU), which is sm_90");
  im->sm = 80, im->sm_exact = true;
  LOAD(ST_UNSUPPORTED, "was compiled for sm_80a");
  im->sm_exact = false;
  v->num_warps = 33;
  LOAD(ST_LIMIT,
       "wants 1056 threads a block; with its 32 registers a thread, cuda:0 (Fake GPU) runs at most 1024");
  v->num_warps = 4;
  fake()->max_threads = 64;
  LOAD(ST_LIMIT, "runs at most 64");
  fake()->max_threads = 1024;
  v->shared_bytes = 240 << 10;
  LOAD(ST_LIMIT, "wants 245760 bytes of shared memory a block; cuda:0 (Fake GPU) has 232448");
  v->shared_bytes = 1 << 10;
  fake()->static_shared = 227 << 10;
  LOAD(ST_LIMIT, "wants 233472 bytes");
  fake()->static_shared = 0;
  v->shared_bytes = 0;
  v->lanes = 64;
  LOAD(ST_CORRUPT, "warps of 64 lanes");
  v->lanes = 32;
  v->workspace_bytes = 64;
  LOAD(ST_UNSUPPORTED, "workspace");
  v->workspace_bytes = 0;
  v->entry = "ad";
  LOAD(ST_CORRUPT, "no entry 'ad'");
  v->entry = "add";
  im->code = "syntax error";
  im->code_bytes = sizeof "syntax error";
  LOAD(ST_CORRUPT, "line 7: syntax error near 'kernal'");
  im->code = ADD_PTX;
  im->code_bytes = sizeof ADD_PTX;
  static const struct {
    int code, status;
    const char *said;
  } cases[] = {{209, ST_UNSUPPORTED, "has no code for cuda:0"},
               {221, ST_UNSUPPORTED, "driver's compiler is not installed"},
               {222, ST_UNSUPPORTED, "update the driver"},
               {2, ST_NO_MEMORY, "loading the code of kernel 'add'"}};
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) {
    fake()->fail_call = "ModuleLoadDataEx";
    fake()->fail_status = cases[i].code;
    fake()->fail_after = 0;
    LOAD((Status)cases[i].status, cases[i].said);
  }
  v->shared_bytes = 200 << 10;
  OK(rt_kernel_load(g.rank, im, "add", &k, &g.e));
  assert_int_equal(fake()->dynamic, 200 << 10);
  rt_kernel_destroy(k);
  assert_int_equal(variant(im, 0)->num_warps, 4);
  down(&g);
}

static void test_clusters(void **state) {
  (void)state;
  Gpu g;
  Add a;
  RtKernel *k;
  up(&g);
  Image *im = ptx_image(&g.arena, ADD_PTX);
  ImageVariant *v = im->kernels[0].variants;
  v->cluster[0] = 2, v->cluster[1] = v->cluster[2] = 1;
  OK(rt_kernel_load(g.rank, im, "add", &k, &g.e));
  add_up(&g, &a, 10);
  NOT(ST_INVALID, rt_launch(k, g.stream, (uint32_t[3]){3, 1, 1}, a.args, 4, &g.e),
      "no multiple of its clusters of 2");
  OK(rt_launch(k, g.stream, (uint32_t[3]){4, 1, 1}, a.args, 4, &g.e));
  assert_int_equal(fake()->last.cluster[0], 2);
  assert_false(fake()->last.early);
  rt_kernel_destroy(k);
  add_down(&g, &a);
  down(&g);
}

// A kernel that waits itself for what is in front of it in its stream; the others do not, and say nothing.
static void test_early(void **state) {
  (void)state;
  Gpu g;
  Add a;
  RtKernel *k;
  up(&g);
  Image *im = ptx_image(&g.arena, ADD_PTX);
  ImageVariant *v = im->kernels[0].variants;
  for (int how = 0; how < 4; how++) {
    v->early = how & 1;
    v->cluster[0] = how & 2 ? 2 : 1, v->cluster[1] = v->cluster[2] = 1;
    OK(rt_kernel_load(g.rank, im, "add", &k, &g.e));
    add_up(&g, &a, 10);
    OK(rt_launch(k, g.stream, (uint32_t[3]){4, 1, 1}, a.args, 4, &g.e));
    assert_int_equal(fake()->last.early, how & 1);
    assert_int_equal(fake()->last.cluster[0], how & 2);
    rt_kernel_destroy(k);
    add_down(&g, &a);
  }
  down(&g);
}

// ---- failures ------------------------------------------------------------------------------------------------
static void check_broken(Gpu *gpu, uint64_t address) { // and leaves the context broken
  Gpu g = *gpu;
  RtKernel *k;
  RtArg arg = {.bits = address};
  OK(rt_kernel_load(g.rank, ptx_image(&gpu->arena, ADD_PTX), "bad", &k, &g.e));
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  NOT(ST_DEVICE, rt_stream_sync(g.stream, &g.e), "kernel 'bad' on cuda:0");
  assert_non_null(strstr(g.e.text, "used memory that is not its own (CUDA_ERROR_ILLEGAL_ADDRESS)"));
  assert_non_null(strstr(g.e.text, "a wait for stream 'main' showed"));
  // whatever comes later says who it was
  void *p;
  NOT(ST_DEVICE, rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e), "kernel 'bad'");
  NOT(ST_DEVICE, rt_alloc(g.rank, 64, &p, &g.e), "kernel 'bad'");
  NOT(ST_DEVICE, rt_copy(g.stream, &p, &p, 1, &g.e), "kernel 'bad'");
  NOT(ST_DEVICE, rt_kernel_load(g.rank, ptx_image(&gpu->arena, ADD_PTX), "add", &k, &g.e), "kernel 'bad'");
  NOT(ST_DEVICE, rt_recover(g.rank, &g.e), "kernel 'bad'");
  rt_kernel_destroy(k);
}

static void test_broken_context(void **state) {
  (void)state;
  Gpu g;
  up(&g);
  fake()->kernel = run_on_host;
  check_broken(&g, 64);
  fake()->dead = 0; // so that what is freed shows
  down(&g);
}

static int late; // the error shows with a later kernel
static int break_later(const FakeLaunch *l) {
  (void)l;
  return late;
}

static void test_several_suspects(void **state) {
  (void)state;
  Gpu g;
  RtKernel *k;
  RtStream *other;
  Add a;
  up(&g);
  fake()->kernel = break_later;
  late = 0;
  RtArg arg = {.bits = 0};
  add_up(&g, &a, 10);
  OK(rt_kernel_load(g.rank, ptx_image(&g.arena, ADD_PTX), "facts", &k, &g.e));
  OK(rt_stream_create(g.rank, "other", &other, &g.e));
  OK(rt_launch(k, other, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  OK(rt_stream_sync(other, &g.e)); // 'facts' has ended well
  for (int i = 0; i < 20; i++) OK(rt_launch(a.k, g.stream, (uint32_t[3]){1, 1, 1}, a.args, 4, &g.e));
  RtKernel *bad;
  OK(rt_kernel_load(g.rank, ptx_image(&g.arena, ADD_PTX), "bad", &bad, &g.e));
  late = 700;
  OK(rt_launch(bad, other, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  NOT(ST_DEVICE, rt_stream_sync(g.stream, &g.e), "one of the kernels 'add', 'bad' on cuda:0");
  assert_non_null(strstr(g.e.text, "DITRON_CUDA_WAIT_EACH=1"));
  fake()->dead = 0;
  rt_kernel_destroy(k);
  rt_kernel_destroy(bad);
  rt_stream_destroy(other);
  add_down(&g, &a);
  down(&g);
}

static void test_wait_each(void **state) {
  (void)state;
  Gpu g = {0};
  RtKernel *k;
  RtArg arg = {.bits = 0};
  fake_state(1)->kernel = run_on_host;
  arena_init(&g.arena, 0, &g.escape);
  if (ESCAPE_TRY(&g.escape)) fail_msg("%s", g.escape.message);
  OK(rt_context_create(&(RtConfig){.libcuda = fake_path, .cuda_wait_each = true}, &g.context, &g.e));
  OK(rt_team_create(g.context, &(RtTeamConfig){.device = "cuda:0"}, &g.team, &g.e));
  g.rank = rt_team_rank(g.team, 0);
  OK(rt_stream_create(g.rank, "main", &g.stream, &g.e));
  Add a;
  add_up(&g, &a, 10);
  OK(rt_launch(a.k, g.stream, (uint32_t[3]){0, 1, 1}, a.args, 4, &g.e));
  OK(rt_kernel_load(g.rank, ptx_image(&g.arena, ADD_PTX), "bad", &k, &g.e));
  NOT(ST_DEVICE, rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e),
      "a wait for kernel 'bad' showed");
  fake()->dead = 0;
  rt_kernel_destroy(k);
  add_down(&g, &a);
  down(&g);
}

static void test_plain_errors(void **state) {
  (void)state;
  Gpu g;
  Add a;
  void *p;
  up(&g);
  add_up(&g, &a, 10);
#define FAIL(call, code) (fake()->fail_call = (call), fake()->fail_status = (code), fake()->fail_after = 0)
  FAIL("LaunchKernelEx", 1);
  NOT(ST_DEVICE, rt_launch(a.k, g.stream, (uint32_t[3]){1, 1, 1}, a.args, 4, &g.e),
      "launching kernel 'add' (grid 1 x 1 x 1, 128 threads, 0 bytes of shared memory): invalid argument "
      "(CUDA_ERROR_INVALID_VALUE)");
  FAIL("MemAlloc", 1);
  NOT(ST_DEVICE, rt_alloc(g.rank, 64, &p, &g.e), "cuda:0 (Fake GPU): allocating 64 bytes: invalid argument");
  FAIL("MemcpyAsync", 1);
  NOT(ST_DEVICE, rt_copy(g.stream, a.p[0], a.p[1], 8, &g.e), "a copy of 8 bytes in stream 'main'");
  FAIL("StreamCreate", 2);
  RtStream *s;
  NOT(ST_NO_MEMORY, rt_stream_create(g.rank, "x", &s, &g.e), "creating stream 'x'");
  OK(rt_launch(a.k, g.stream, (uint32_t[3]){1, 1, 1}, a.args, 4, &g.e)); // none of them is for ever
  OK(rt_stream_sync(g.stream, &g.e));
  add_down(&g, &a);
  down(&g);
}

// Every call of bringing a rank up may fail; nothing is left then.
static void test_start_that_fails(void **state) {
  (void)state;
  static const char *const calls[] = {"PrimaryCtxRetain", "StreamCreate", "MemHostAlloc", "MemAlloc",
                                      "MemcpyAsync"};
  for (size_t i = 0; i < DT_COUNTOF(calls); i++) {
    Gpu g = {0};
    fake_state(1);
    FAIL(calls[i], 2);
    OK(rt_context_create(&(RtConfig){.libcuda = fake_path}, &g.context, &g.e));
    NOT(ST_NO_MEMORY, rt_team_create(g.context, &(RtTeamConfig){.device = "cuda"}, &g.team, &g.e),
        "starting a rank");
    rt_context_destroy(g.context);
    nothing_left();
  }
}

// ---- kernels that give up -----------------------------------------------------------------------------------
static AbiReport what_to_report;
static int give_up(const FakeLaunch *l) {
  read_rank(l);
  *hidden_rank.report = what_to_report;
  *(uint64_t *)(uintptr_t)hidden_rank.abort_word = 1;
  hidden_rank.report->state = ABI_REPORT_DONE;
  return 0;
}

static void test_reports(void **state) {
  (void)state;
  Gpu g;
  void *flag;
  RtKernel *k, *other;
  RtArg arg = {.bits = 0};
  up(&g);
  OK(rt_symm_alloc(g.rank, 64, "flags", &flag, &g.e));
  OK(rt_kernel_load(g.rank, ptx_image(&g.arena, ADD_PTX), "add", &other, &g.e));
  OK(rt_kernel_load(g.rank, ptx_image(&g.arena, ADD_PTX), "facts", &k, &g.e));
  what_to_report = (AbiReport){.kind = ABI_REPORT_DEADLINE,
                               .site = 0,
                               .pid = {3, 1, 0},
                               .thread = 5,
                               .cmp = ABI_GE,
                               .bytes = 8,
                               .flag = (uint64_t)(uintptr_t)flag + 16,
                               .seen = 4,
                               .value = 7};
  fake()->kernel = give_up;
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  NOT(ST_DEADLINE, rt_stream_sync(g.stream, &g.e),
      "rank 0: kernel 'facts', program (3, 1, 0), thread 5 at k.py:12:5: waited longer than its deadline of 2 s for "
      "the flag: 'flags' + 16 should be >= 7, but is 4");
  NOT(ST_DEADLINE, rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e), "'flags' + 16");
  OK(rt_recover(g.rank, &g.e)); // the context is as good as before
  fake()->kernel = read_rank;
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  OK(rt_stream_sync(g.stream, &g.e));
  assert_int_equal(*hidden_rank.abort_word, 0);
  assert_int_equal(hidden_rank.report->state, ABI_REPORT_EMPTY);
  what_to_report.kind = ABI_REPORT_ASSERT;
  fake()->kernel = give_up;
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  NOT(ST_ASSERT, rt_stream_sync(g.stream, &g.e), "assertion failed: the flag");
  OK(rt_recover(g.rank, &g.e));
  // the host's own abort reaches kernels
  fake()->kernel = read_rank;
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  rt_team_abort(g.rank, ST_INVALID, "enough");
  assert_int_equal(*hidden_rank.abort_word, 1);
  NOT(ST_INVALID, rt_stream_sync(g.stream, &g.e), "enough");
  OK(rt_recover(g.rank, &g.e));
  rt_kernel_destroy(k);
  rt_kernel_destroy(other);
  down(&g);
}

// The caller's context is current again after every call.
static void test_contexts_of_the_caller(void **state) {
  (void)state;
  Gpu g;
  void *lib = dlopen(fake_path, RTLD_NOW), *get = dlsym(lib, "cuCtxGetCurrent"),
       *set = dlsym(lib, "cuCtxSetCurrent");
  int (*get_current)(void **);
  int (*set_current)(void *);
  memcpy(&get_current, &get, sizeof get);
  memcpy(&set_current, &set, sizeof set);
  void *theirs = &g, *now;
  set_current(theirs);
  up(&g);
  fake()->kernel = run_on_host;
  check_add(&g);
  get_current(&now);
  assert_ptr_equal(now, theirs);
  down(&g);
  get_current(&now);
  assert_ptr_equal(now, theirs);
  set_current(NULL);
  dlclose(lib);
}

// Threads with streams and kernels of their own, while others load and free.
typedef struct Worker {
  Gpu g;
  int failed;
} Worker;

static void *thread_main(void *arg) {
  Worker *w = arg;
  Gpu g = w->g;
  RtStream *s;
  RtKernel *k;
  void *p;
  RtArg arg0 = {.bits = 0};
  const Image *im = ptx_image(&w->g.arena, ADD_PTX);
  w->failed = rt_stream_create(g.rank, "thread", &s, &g.e) != ST_OK;
  for (int i = 0; i < 50 && !w->failed; i++) {
    w->failed =
        rt_kernel_load(g.rank, im, "facts", &k, &g.e) != ST_OK || rt_alloc(g.rank, 64, &p, &g.e) != ST_OK ||
        rt_launch(k, s, (uint32_t[3]){1, 1, 1}, &arg0, 1, &g.e) != ST_OK ||
        rt_fill(s, p, i, 64, &g.e) != ST_OK || rt_stream_sync(s, &g.e) != ST_OK || ((char *)p)[63] != i;
    rt_free(g.rank, p);
    rt_kernel_destroy(k);
  }
  rt_stream_destroy(s);
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  enum { N = 4 };
  Gpu g;
  Worker w[N] = {0};
  pthread_t t[N];
  Escape esc[N];
  up(&g);
  fake()->kernel = read_rank;
  for (int i = 0; i < N; i++) {
    w[i].g = g;
    arena_init(&w[i].g.arena, 0, &esc[i]);
    if (ESCAPE_TRY(&esc[i])) fail_msg("%s", esc[i].message);
    assert_int_equal(pthread_create(&t[i], NULL, thread_main, &w[i]), 0);
  }
  for (int i = 0; i < N; i++) {
    pthread_join(t[i], NULL);
    assert_false(w[i].failed);
    arena_free(&w[i].g.arena);
  }
  assert_int_equal(fake()->launches, 50 * N);
  down(&g);
}

// ---- a real device -------------------------------------------------------------------------------------------
static bool real_device(void) {
  RtError e;
  RtContext *c;
  RtDeviceInfo d = {0};
  if (rt_context_create(NULL, &c, &e) != ST_OK) return false;
  const bool is = rt_device(c, 1, &d) && d.usable;
  rt_context_destroy(c);
  if (!is) print_message("no GPU is tested: %s\n", d.text);
  return is;
}

static void test_on_a_device(void **state) {
  (void)state;
  Gpu g;
  RtKernel *k;
  void *p, *out;
  struct Facts {
    uint32_t abi;
    int32_t rank, world;
    uint32_t nsegments;
    uint64_t base, peer_base, abort;
  } facts;
  if (!real_device()) skip();
  gpu_up(&g, NULL, NULL);
  check_add(&g);
  OK(rt_symm_alloc(g.rank, 64, "x", &p, &g.e));
  OK(rt_alloc(g.rank, sizeof facts, &out, &g.e));
  OK(rt_kernel_load(g.rank, ptx_image(&g.arena, ADD_PTX), "facts", &k, &g.e));
  RtArg arg = {.bits = (uint64_t)(uintptr_t)out};
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, &arg, 1, &g.e));
  OK(rt_copy(g.stream, &facts, out, sizeof facts, &g.e));
  OK(rt_stream_sync(g.stream, &g.e));
  assert_int_equal(facts.abi, IMAGE_ABI);
  assert_int_equal(facts.rank, 0);
  assert_int_equal(facts.world, 1);
  assert_int_equal(facts.nsegments, 1);
  assert_int_equal(facts.base, (uint64_t)(uintptr_t)p);
  assert_int_equal(facts.peer_base, (uint64_t)(uintptr_t)p);
  assert_int_equal(facts.abort, 0);
  NOT(ST_NO_MEMORY, rt_alloc(g.rank, 1ull << 50, &p, &g.e), "no room for 1048576.000 GiB");
  rt_kernel_destroy(k);
  rt_free(g.rank, out);
  gpu_down(&g);
}

// The driver's own calls, for what only callers do.
static void *driver_call(const char *name) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW), *f = lib ? dlsym(lib, name) : NULL;
  assert_non_null(f);
  return f;
}
#define DRIVER(name, ...) ((int (*)(__VA_ARGS__))(uintptr_t)driver_call(name))
#define ZERO(call) assert_int_equal(call, 0)

// A caller's stream, captured into a graph in the mode that forbids whatever could wait.
static void test_graph_on_a_device(void **state) {
  (void)state;
  enum { N = 256 };
  Gpu g;
  Add a;
  RtStream *theirs;
  void *context, *native, *graph, *exec;
  float x[N], y[N], out[N];
  if (!real_device()) skip();
  gpu_up(&g, NULL, NULL);
  ZERO(DRIVER("cuDevicePrimaryCtxRetain", void **, int)(&context, 0));
  ZERO(DRIVER("cuCtxSetCurrent", void *)(context));
  ZERO(DRIVER("cuStreamCreate", void **, unsigned)(&native, 1));
  OK(rt_stream_wrap(g.rank, native, "theirs", &theirs, &g.e));
  for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;
  add_up(&g, &a, N);
  OK(rt_copy(theirs, a.p[0], x, sizeof x, &g.e));
  OK(rt_copy(theirs, a.p[1], y, sizeof y, &g.e));
  OK(rt_stream_sync(theirs, &g.e));
  ZERO(DRIVER("cuStreamBeginCapture_v2", void *, int)(native, 0));
  a.args[2].bits = a.args[1].bits; // y += x, three times
  for (int i = 0; i < 3; i++) OK(rt_launch(a.k, theirs, (uint32_t[3]){2, 1, 1}, a.args, 4, &g.e));
  ZERO(DRIVER("cuStreamEndCapture", void *, void **)(native, &graph));
  ZERO(DRIVER("cuGraphInstantiateWithFlags", void **, void *, unsigned long long)(&exec, graph, 0));
  for (int i = 0; i < 2; i++) ZERO(DRIVER("cuGraphLaunch", void *, void *)(exec, native));
  OK(rt_copy(theirs, out, a.p[1], sizeof out, &g.e));
  OK(rt_stream_sync(theirs, &g.e));
  for (int i = 0; i < N; i++) assert_true(out[i] == 1 + 6 * (float)i);
  DRIVER("cuGraphExecDestroy", void *)(exec);
  DRIVER("cuGraphDestroy", void *)(graph);
  rt_stream_destroy(theirs);
  ZERO(DRIVER("cuStreamDestroy_v2", void *)(native));
  add_down(&g, &a);
  ZERO(DRIVER("cuCtxSetCurrent", void *)(NULL));
  gpu_down(&g);
  ZERO(DRIVER("cuDevicePrimaryCtxRelease_v2", int)(0));
}

// Last: the process has no device afterwards.
static void test_broken_on_a_device(void **state) {
  (void)state;
  Gpu g;
  if (!real_device()) skip();
  gpu_up(&g, NULL, NULL);
  check_broken(&g, 64);
  gpu_down(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_driver),
      cmocka_unit_test(test_driver_that_does_not_start),
      cmocka_unit_test(test_names_of_devices),
      cmocka_unit_test(test_memory_and_copies),
      cmocka_unit_test(test_symmetric_memory),
      cmocka_unit_test(test_streams_and_events),
      cmocka_unit_test(test_stream_of_another_device),
      cmocka_unit_test(test_launch),
      cmocka_unit_test(test_rank_record),
      cmocka_unit_test(test_modules_are_shared),
      cmocka_unit_test(test_launch_waits_for_nothing),
      cmocka_unit_test(test_what_cannot_be_loaded),
      cmocka_unit_test(test_clusters),
      cmocka_unit_test(test_early),
      cmocka_unit_test(test_broken_context),
      cmocka_unit_test(test_several_suspects),
      cmocka_unit_test(test_wait_each),
      cmocka_unit_test(test_plain_errors),
      cmocka_unit_test(test_start_that_fails),
      cmocka_unit_test(test_reports),
      cmocka_unit_test(test_contexts_of_the_caller),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_on_a_device),
      cmocka_unit_test(test_graph_on_a_device),
      cmocka_unit_test(test_broken_on_a_device),
  };
  return cmocka_run_group_tests(tests, find_fake, NULL);
}
