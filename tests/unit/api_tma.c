// Blocks of tensors through the tensor memory accelerator, from IR text to a launch: on the driver made of host memory the maps that a
// launch is given; on a real GPU of sm_90, where there is one, results, edges and padding included, against what is expected.
#include "unit/rt_cuda.h"

#define DT_UNSTABLE
#include "ditron/ditron.h"
#include "ir/ir.h"
#include "pass/pass.h"
#include "target/target.h"

#include <math.h>

// y[rows, C] (+)= the sum over blocks of C columns of x[rows, cols], whose rows are ld apart; each program has R rows.
static const char sums[] = //
    "module stage=tile warps=4 stages=2 lanes=32\n"
    "kernel @k(%x: ptr<f16> {divisible=16}, %y: ptr<f32> {divisible=16}, %rows: i32, %cols: i32, %ld: i64, %n: i32) {\n"
    "  %z = const {value=0} : i32\n  %one = const {value=1} : i32\n  %c1 = const {value=1} : i64\n"
    "  %cr = const {value=#R} : i32\n  %cc = const {value=#C} : i32\n  %lc = const {value=#C} : i64\n"
    "  %bytes = const {value=#B} : i32\n"
    "  %pid = program_id {axis=0} : i32\n  %row = mul %pid, %cr : i32\n"
    "  %d = make_desc %x, %rows, %cols, %ld, %c1 {pad=#P} : desc<#Rx#Cxf16>\n"
    "  %e = make_desc %y, %rows, %cc, %lc, %c1 : desc<#Rx#Cxf32>\n"
    "  %m = mem_alloc : memdesc<2*#Rx#Cxf16, shared>\n  %out = mem_alloc : memdesc<#Rx#Cxf32, shared>\n"
    "  %full = mbarrier_alloc {count=1} : mbarrier<2>\n"
    "  %zeros = const {value=0} : tile<#Rx#Cxf32>\n"
    "  %sum = for %z, %n, %one, %zeros : tile<#Rx#Cxf32> { (%i: i32, %acc: tile<#Rx#Cxf32>)\n"
    "    %st = and %i, %one : i32\n    %h = shr_u %i, %one : i32\n    %ph = and %h, %one : i32\n"
    "    %col = mul %i, %cc : i32\n"
    "    barrier\n"
    "    mbarrier_expect %full, %st, %bytes\n"
    "    %v = mem_view %m, %st : memdesc<#Rx#Cxf16, shared>\n"
    "    desc_load_async %d, %v, %full, %st, %row, %col\n"
    "    %t = mbarrier_wait %full, %st, %ph : token\n"
    "    %a = mem_load %v : tile<#Rx#Cxf16>\n    %f = fcast %a : tile<#Rx#Cxf32>\n"
    "    %next = fadd %acc, %f : tile<#Rx#Cxf32>\n    yield %next }\n"
    "  mem_store %out, %sum\n"
    "  %k = desc_store_async %e, %out, %row, %z #U: token\n"
    "  %w = async_wait %k : token\n"
    "  return\n}\n";

typedef struct How {
  int r, c;
  bool swizzled, nan, update, short_of_bytes;
} How;

static const char *text_of(Arena *a, const How *h) {
  char *out = arena_array(a, char, sizeof sums + 4096), *o = out;
  for (const char *s = sums; *s; s++) {
    if (*s != '#') {
      *o++ = *s;
      continue;
    }
    switch (*++s) {
    case 'R': o += sprintf(o, "%d", h->r); break;
    case 'C': o += sprintf(o, "%d", h->c); break;
    case 'B': o += sprintf(o, "%d", h->r * h->c * 2 + (h->short_of_bytes ? 16 : 0)); break;
    case 'P': o += sprintf(o, "%s", h->nan ? "nan" : "zero"); break;
    default: o += sprintf(o, "%s", h->update ? "{rmw=fadd} " : ""); break;
    }
  }
  return out;
}

static bool swizzle(IrOp *op, void *user) {
  const IrType *t = op->nresults ? op->results[0].type : NULL;
  if (!t || t->kind != IR_MEMDESC) return true;
  const IrLayout l = layout_swizzled(t->rank, t->shape, (uint32_t)ir_type_bytes(t));
  op->results[0].type = ir_type_with_layout(user, t, &l);
  return true;
}

static Image *compile(Arena *a, const How *h) {
  static const char order[] = "low,cse,licm,dce";
  Diags d;
  diags_init(&d, a);
  IrModule *m = NULL;
  Image *im = NULL;
  const char *text = text_of(a, h);
  const PassMachine machine = {.vector_bits = 128, .tma = true};
  const PassConfig cfg = {.machine = &machine, .diags = &d, .verify = true};
  const TargetOptions o = {.target = "nvptx", .cpu = "sm_90a", .opt = 1, .verify = true};
  IrCtx *ctx = ir_ctx_new(a);
  const char *rest = strstr(pass_order(PASS_GPU), "low,"); // whatever comes behind
  if (ir_parse(a, ctx, &d, "sums.ir", text, strlen(text), &m) != ST_OK ||
      pass_run_named(m, "fold,cse,licm,dce,params,lay,cse,dce", &cfg) != ST_OK)
    fail_msg("%s", diags_render(&d, a));
  if (h->swizzled) ir_walk(m->funcs->body, swizzle, ctx);
  if (pass_run_named(m, rest ? rest : order, &cfg) != ST_OK || target_compile(m, &o, a, &d, &im) != ST_OK)
    fail_msg("%s", diags_render(&d, a));
  return im;
}

// ---- what a launch is given -----------------------------------------------------------------------------------------------
static FakeMap seen[2];
static int see(const FakeLaunch *l) {
  const size_t first = l->bytes - 256; // two maps, the last of all
  for (size_t i = 0; i < 2; i++) memcpy(&seen[i], (const char *)l->args + first + 128 * i, sizeof seen[i]);
  return 0;
}

static void test_maps(void **state) {
  (void)state;
  Gpu g;
  RtKernel *k;
  for (int swizzled = 0; swizzled < 2; swizzled++) {
    up(&g);
    Image *im = compile(&g.arena, &(How){.r = 64, .c = 128, .swizzled = swizzled, .nan = true});
    im->is_text = true; // what the driver's stand-in reads
    im->code = ".entry k(\n";
    im->code_bytes = 11;
    fake()->kernel = see;
    OK(rt_kernel_load(g.rank, im, "k", &k, &g.e));
    const RtArg args[] = {{.bits = 0x4000}, {.bits = 0x8000}, {.bits = 100},
                          {.bits = 200},    {.bits = 208},    {.bits = 2}};
    OK(rt_launch(k, g.stream, (uint32_t[3]){2, 1, 1}, args, 6, &g.e));
    const FakeMap *x = &seen[0], *y = &seen[1];
    assert_true(x->is_map && y->is_map);
    assert_int_equal(x->base, 0x4000);
    assert_int_equal(x->sizes[0], 200);
    assert_int_equal(x->sizes[1], 100);
    assert_int_equal(x->strides[0], 416);
    assert_int_equal(x->box[0], swizzled ? 64 : 128);
    assert_int_equal(x->box[1], 64);
    assert_int_equal(x->swizzle, swizzled ? 3 : 0);
    assert_int_equal(x->nan, 1);
    assert_int_equal(y->base, 0x8000);
    assert_int_equal(y->sizes[0], 128);
    assert_int_equal(y->sizes[1], 100);
    assert_int_equal(y->strides[0], 512);
    assert_int_equal(y->box[0], swizzled ? 32 : 128);
    rt_kernel_destroy(k);
    down(&g);
  }
}

static const int shapes[][2] = {{16, 32}, {64, 128}, {64, 64}, {8, 16}, {128, 32}, {256, 8}};

static void assemble(const How *h) { // where there is ptxas
  Arena a;
  TEST_ARENA(a);
  const ImageVariant *v = compile(&a, h)->kernels[0].variants;
  assert_int_equal(v->nmaps, 2);
  assert_int_equal(v->spill_bytes, 0);
  assert_true(v->maps[1].writes && v->maps[0].pad_nan == h->nan);
  arena_free(&a);
}
static void test_shapes(void **state) {
  (void)state;
  for (size_t s = 0; s < DT_COUNTOF(shapes); s++)
    for (int how = 0; how < 8; how++)
      assemble(&(How){shapes[s][0], shapes[s][1], how & 1, how & 2, how & 4, false});
}

// From a source: a folded argument takes a number of its own, which recipes must count.
static void test_folded(void **state) {
  (void)state;
  static const char text[] =
      "import triton\nimport triton.language as tl\n"
      "@triton.jit\n"
      "def k(one, a_ptr, M, b_ptr, N, K, c_ptr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):\n"
      "    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, one], [BM, BK])\n"
      "    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, one], [BN, BK])\n"
      "    acc = tl.zeros((BM, BN), tl.float32)\n"
      "    for i in range(tl.cdiv(K, BK)):\n"
      "        x = a.load([tl.program_id(0) * BM, i * BK])\n"
      "        y = b.load([tl.program_id(1) * BN, i * BK])\n"
      "        acc = tl.dot(x, y.T, acc)\n"
      "    rows = tl.program_id(0) * BM + tl.arange(0, BM)\n"
      "    cols = tl.program_id(1) * BN + tl.arange(0, BN)\n"
      "    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)\n";
  const dt_named args[] = {{"one", dt_int(1)},
                           {"a_ptr", dt_ptr(DT_BF16, (void *)(uintptr_t)0x100000)},
                           {"M", dt_int(1024)},
                           {"b_ptr", dt_ptr(DT_BF16, (void *)(uintptr_t)0x200000)},
                           {"N", dt_int(512)},
                           {"K", dt_int(256)},
                           {"c_ptr", dt_ptr(DT_F32, (void *)(uintptr_t)0x300000)},
                           {"BM", dt_int(128)},
                           {"BN", dt_int(128)},
                           {"BK", dt_int(64)}};
  const dt_compile_options o = {.size = sizeof o, .target = "sm_90a"};
  dt_context *c;
  dt_image *im;
  assert_int_equal(dt_context_create(NULL, &c), DT_OK);
  if (dt_compile_text(c, "k.py", text, sizeof text - 1, NULL, args, DT_COUNTOF(args), &o, &im) != DT_OK)
    fail_msg("%s", dt_error(c));
  size_t n;
  const void *bytes = dt_image_bytes(im, &n);
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  Image *image;
  assert_int_equal(image_read(&a, bytes, n, &image, &d), ST_OK);
  const ImageVariant *v = image->kernels[0].variants;
  assert_int_equal(image->kernels[0].nvariants, 1); // guards promise what the accelerator asks for
  assert_int_equal(v->nargs, 7);
  assert_int_equal(v->args[0].kind, IMAGE_ARG_FIXED);
  assert_int_equal(v->nmaps, 2);
  char packed[256] = {0};
  const uint64_t p[] = {0x100000, 0x200000, 0x300000};
  const int32_t i[] = {1024, 512, 256};
  static const uint32_t at_p[] = {1, 3, 6}, at_i[] = {2, 4, 5};
  for (int k = 0; k < 3; k++) {
    memcpy(packed + v->args[at_p[k]].offset, &p[k], 8);
    memcpy(packed + v->args[at_i[k]].offset, &i[k], 4);
  }
  for (int k = 0; k < 2; k++) {
    ImageMapNumbers x;
    image_map_eval(v, &v->maps[k], packed, &x);
    assert_int_equal(x.base, p[k]);
    assert_int_equal(x.sizes[0], i[k]);
    assert_int_equal(x.sizes[1], 256);
    assert_int_equal(x.strides[0], 256);
    assert_int_equal(x.strides[1], 1);
    assert_int_equal(v->maps[k].swizzle, 128);
  }
  arena_free(&a);
  dt_image_destroy(im);
  dt_context_destroy(c);
}

// Where the accelerator may not take a launch's tensors there is a second variant, which does without it.
static Image *compile_plain(Arena *a) { // k(a, b, c_ptr, K): c[128, 128] = a b^T, one program
  static const char text[] = "import triton\nimport triton.language as tl\n"
                             "@triton.jit\n"
                             "def k(a, b, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):\n"
                             "    acc = tl.zeros((BM, BN), tl.float32)\n"
                             "    for i in range(tl.cdiv(K, BK)):\n"
                             "        x = a.load([tl.program_id(0) * BM, i * BK])\n"
                             "        y = b.load([tl.program_id(1) * BN, i * BK])\n"
                             "        acc = tl.dot(x, y.T, acc)\n"
                             "    tl.device_assert(K >= 0, \"columns are counted from zero\")\n"
                             "    rows = tl.arange(0, BM)\n"
                             "    cols = tl.arange(0, BN)\n"
                             "    tl.store(c_ptr + rows[:, None] * BN + cols[None, :], acc)\n";
  const dt_desc desc = {.dtype = DT_BF16,
                        .rank = 2,
                        .base = (void *)(uintptr_t)0x100000,
                        .shape = {128, 255},
                        .strides = {256, 1},
                        .block = {128, 64}};
  const dt_value d = {.kind = DT_VALUE_DESC, .u = {.desc = &desc}};
  const dt_named args[] = {{"a", d},
                           {"b", d},
                           {"c_ptr", dt_ptr(DT_F32, (void *)(uintptr_t)0x300000)},
                           {"K", dt_int(255)},
                           {"BM", dt_int(128)},
                           {"BN", dt_int(128)},
                           {"BK", dt_int(64)}};
  const dt_compile_options o = {.size = sizeof o, .target = "sm_90a"};
  dt_context *c;
  dt_image *im;
  assert_int_equal(dt_context_create(NULL, &c), DT_OK);
  if (dt_compile_text(c, "k.py", text, sizeof text - 1, NULL, args, DT_COUNTOF(args), &o, &im) != DT_OK)
    fail_msg("%s", dt_error(c));
  size_t n;
  const void *bytes = dt_image_bytes(im, &n);
  Diags diags;
  diags_init(&diags, a);
  Image *image;
  assert_int_equal(image_read(a, bytes, n, &image, &diags), ST_OK);
  dt_image_destroy(im);
  dt_context_destroy(c);
  return image;
}

static void test_plain(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  const Image *image = compile_plain(&a);
  const ImageKernel *k = &image->kernels[0];
  assert_int_equal(k->nvariants, 2);
  assert_int_equal(k->variants[0].nmaps, 2);
  assert_int_equal(k->variants[1].nmaps, 0);
  assert_int_equal(k->variants[1].code, 1);
  assert_int_equal(image->nmore, 1);
  uint32_t said = 0; // each part names its own place of the assertion
  for (uint32_t i = 0; i < image->nsites; i++)
    said += image->sites[i].what && !strcmp(image->sites[i].what, "columns are counted from zero");
  assert_int_equal(said, 2);
  arena_free(&a);
}

// ---- on a device --------------------------------------------------------------------------------------------------------------
static bool real_device(Gpu *g) { // of sm_90
  RtDeviceInfo d;
  memset(g, 0, sizeof *g);
  if (rt_context_create(&(RtConfig){0}, &g->context, &g->e) != ST_OK) return false;
  bool there = false;
  for (uint32_t i = 0; rt_device(g->context, i, &d); i++)
    there |= d.usable && !strncmp(d.name, "cuda:0", 6) && !strcmp(d.target, "sm_90a");
  rt_context_destroy(g->context);
  if (!there) printf("no GPU of sm_90 is tested\n");
  return there;
}

static double f16(uint16_t bits) { return ir_bits_float(IR_f16, bits); }

static void run_sums(Gpu *gpu, const How *h, int rows, int cols) {
  Gpu g = *gpu;
  const int ld = (cols + 15) / 8 * 8, programs = 3, n = (cols + h->c - 1) / h->c + 1, all = programs * h->r;
  const size_t xn = (size_t)(rows ? rows : 1) * (size_t)ld, yn = (size_t)all * (size_t)h->c;
  uint16_t *x = calloc(xn, 2);
  float *y = calloc(yn, 4);
  void *dx, *dy;
  RtKernel *k;
  for (size_t i = 0; i < xn; i++) x[i] = (uint16_t)ir_float_bits(IR_f16, (double)(i * 7 % 31) - 15);
  for (size_t i = 0; i < yn; i++) y[i] = 100;
  OK(rt_kernel_load(g.rank, compile(&gpu->arena, h), "k", &k, &g.e));
  OK(rt_alloc(g.rank, xn * 2, &dx, &g.e));
  OK(rt_alloc(g.rank, yn * 4, &dy, &g.e));
  OK(rt_copy(g.stream, dx, x, xn * 2, &g.e));
  OK(rt_copy(g.stream, dy, y, yn * 4, &g.e));
  const RtArg args[] = {{.bits = (uintptr_t)dx},  {.bits = (uintptr_t)dy}, {.bits = (uint64_t)rows},
                        {.bits = (uint64_t)cols}, {.bits = (uint64_t)ld},  {.bits = (uint64_t)n}};
  OK(rt_launch(k, g.stream, (uint32_t[3]){(uint32_t)programs, 1, 1}, args, 6, &g.e));
  OK(rt_copy(g.stream, y, dy, yn * 4, &g.e));
  OK(rt_stream_sync(g.stream, &g.e));
  for (int i = 0; i < all; i++) {
    for (int j = 0; j < h->c; j++) {
      double want = h->update || i >= rows ? 100 : 0;
      for (int c = j; i < rows && c < n * h->c; c += h->c)
        want += c < cols ? f16(x[i * ld + c]) : h->nan ? NAN : 0;
      const float got = y[i * h->c + j];
      if (want != want ? got == got : got != (float)want)
        fail_msg("%dx%d%s%s%s of %d x %d: y[%d, %d] is %g, not %g", h->r, h->c,
                 h->swizzled ? " swizzled" : "", h->nan ? " nan" : "", h->update ? " update" : "", rows, cols,
                 i, j, got, want);
    }
  }
  rt_kernel_destroy(k);
  rt_free(g.rank, dx);
  rt_free(g.rank, dy);
  free(x);
  free(y);
}

static void test_on_a_device(void **state) {
  (void)state;
  Gpu g;
  if (!real_device(&g)) skip();
  gpu_up(&g, NULL, NULL);
  for (size_t s = 0; s < DT_COUNTOF(shapes); s++) {
    for (int how = 0; how < 8; how++) {
      const How h = {shapes[s][0], shapes[s][1], how & 1, how & 2, how & 4, false};
      run_sums(&g, &h, 2 * h.r + 5, 2 * h.c + 8); // edges inside blocks, a program and blocks outside
      run_sums(&g, &h, 0, 64);                    // a tensor without elements
    }
  }
  gpu_down(&g);
}

// Rows that end anywhere: through the accelerator where they may, without it elsewhere, and beside the edge lie numbers that would show.
static void run_plain(Gpu *gpu, RtKernel *k, int cols, int ld) {
  enum { M = 100, N = 90 };
  static uint16_t a[M * 512], b[N * 512];
  static float c[128 * 128];
  Gpu g = *gpu;
  void *da, *db, *dc;
  for (int i = 0; i < M * ld; i++) a[i] = (uint16_t)ir_float_bits(IR_bf16, i % ld < cols ? i % 7 - 3 : 1000);
  for (int i = 0; i < N * ld; i++) b[i] = (uint16_t)ir_float_bits(IR_bf16, i % ld < cols ? i % 5 - 2 : 1000);
  OK(rt_alloc(g.rank, sizeof a, &da, &g.e));
  OK(rt_alloc(g.rank, sizeof b, &db, &g.e));
  OK(rt_alloc(g.rank, sizeof c, &dc, &g.e));
  OK(rt_copy(g.stream, da, a, sizeof a, &g.e));
  OK(rt_copy(g.stream, db, b, sizeof b, &g.e));
  const ImageDesc x = {.base = (uintptr_t)da, .shape = {M, cols}, .strides = {ld, 1}},
                  y = {.base = (uintptr_t)db, .shape = {N, cols}, .strides = {ld, 1}};
  const RtArg args[] = {{.desc = &x}, {.desc = &y}, {.bits = (uintptr_t)dc}, {.bits = (uint64_t)cols}};
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, args, 4, &g.e));
  OK(rt_copy(g.stream, c, dc, sizeof c, &g.e));
  OK(rt_stream_sync(g.stream, &g.e));
  for (int i = 0; i < 128; i++) {
    for (int j = 0; j < 128; j++) {
      double want = 0;
      for (int q = 0; i < M && j < N && q < cols; q++)
        want += ir_bits_float(IR_bf16, a[i * ld + q]) * ir_bits_float(IR_bf16, b[j * ld + q]);
      if (c[i * 128 + j] != (float)want)
        fail_msg("%d columns, %d apart: c[%d, %d] is %g, not %g", cols, ld, i, j, c[i * 128 + j], want);
    }
  }
  rt_free(g.rank, da);
  rt_free(g.rank, db);
  rt_free(g.rank, dc);
}

static void test_edges_on_a_device(void **state) {
  (void)state;
  static const int rows[][2] = {{256, 256}, {200, 208}, {75, 80}, {75, 75}, {50, 56}, {8, 8}, {1, 1}, {0, 8}};
  Gpu g;
  RtKernel *k;
  if (!real_device(&g)) skip();
  gpu_up(&g, NULL, NULL);
  OK(rt_kernel_load(g.rank, compile_plain(&g.arena), "k", &k, &g.e));
  for (size_t i = 0; i < DT_COUNTOF(rows); i++) run_plain(&g, k, rows[i][0], rows[i][1]);
  rt_kernel_destroy(k);
  gpu_down(&g);
}

// Bytes that never come end in a report; the device goes on.
static void test_deadline_on_a_device(void **state) {
  (void)state;
  Gpu g;
  RtKernel *k;
  void *p;
  if (!real_device(&g)) skip();
  gpu_up(&g, NULL, NULL);
  OK(rt_kernel_load(g.rank, compile(&g.arena, &(How){.r = 16, .c = 32, .short_of_bytes = true}), "k", &k,
                    &g.e));
  OK(rt_alloc(g.rank, 1 << 16, &p, &g.e));
  RtArg args[] = {{.bits = (uintptr_t)p}, {.bits = (uintptr_t)p + 4096},
                  {.bits = 16},           {.bits = 32},
                  {.bits = 32},           {.bits = 1}};
  OK(rt_launch(k, g.stream, (uint32_t[3]){1, 1, 1}, args, 6, &g.e));
  NOT(ST_DEADLINE, rt_stream_sync(g.stream, &g.e), "waited longer than its deadline");
  rt_kernel_destroy(k);
  rt_free(g.rank, p);
  gpu_down(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_maps),
                                     cmocka_unit_test(test_shapes),
                                     cmocka_unit_test(test_folded),
                                     cmocka_unit_test(test_plain),
                                     cmocka_unit_test(test_on_a_device),
                                     cmocka_unit_test(test_edges_on_a_device),
                                     cmocka_unit_test(test_deadline_on_a_device)};
  return cmocka_run_group_tests(tests, find_fake, NULL);
}
