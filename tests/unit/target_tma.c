// The tensor memory accelerator from lowered IR text: the copies in PTX, what ptxas says of them, and the maps and recipes in the
// image, down to the numbers that they give.
#include "unit/target_nvptx.h"

#define HEAD "module stage=lowered warps=5 stages=1 lanes=32\n"
// 64 rows of 64 bf16, and of 32 f32: 128 bytes a row
#define SWIZZLED "reg(1 2 4 8 16 32 72 144 288 512 1024 2048) lane() warp()"

static const char ring[] = //
    HEAD
    "kernel @k(%a: ptr<bf16> {divisible=16}, %m: i32, %n: i32, %d: desc<64x64xf32>) {\n"
    "  %c1 = const {value=1} : i64\n  %c0 = const {value=0} : i32\n  %one = const {value=1} : i32\n"
    "  %k64 = const {value=64} : i32\n  %bytes = const {value=24576} : i32\n  %ns = ext_s %n : i64\n"
    "  %ad = make_desc %a, %m, %n, %ns, %c1 {pad=nan} : desc<64x64xbf16>\n"
    "  %buf = mem_alloc {offset=0} : memdesc<2*64x64xbf16, shared, " SWIZZLED ">\n"
    "  %buf2 = mem_alloc {offset=16384} : memdesc<2*64x64xf32, shared>\n"
    "  %full = mbarrier_alloc {count=1} : mbarrier<2>\n  %empty = mbarrier_alloc {count=1} : mbarrier<2>\n"
    "  warp_partitions {first=[0, 4], warps=[4, 1]} {\n"
    "    for %c0, %m, %one { (%i: i32)\n"
    "      %st = and %i, %one : i32\n      %h = shr_u %i, %one : i32\n      %ph = and %h, %one : i32\n"
    "      %t = mbarrier_wait %full, %st, %ph : token\n      mbarrier_arrive %empty, %st\n      yield }\n"
    "    yield\n"
    "  } {\n"
    "    for %c0, %m, %one { (%i: i32)\n"
    "      %st = and %i, %one : i32\n      %h = shr_u %i, %one : i32\n      %ph0 = and %h, %one : i32\n"
    "      %ph = xor %ph0, %one : i32\n"
    "      %t = mbarrier_wait %empty, %st, %ph : token\n"
    "      mbarrier_expect %full, %st, %bytes\n"
    "      %v = mem_view %buf, %st : memdesc<64x64xbf16, shared, " SWIZZLED ">\n"
    "      %x = mul %i, %k64 : i32\n"
    "      desc_load_async %ad, %v, %full, %st, %c0, %x {evict=last}\n"
    "      %v2 = mem_view %buf2, %st : memdesc<64x64xf32, shared>\n"
    "      desc_load_async %d, %v2, %full, %st, %c0, %x\n"
    "      yield }\n"
    "    yield\n"
    "  }\n"
    "  barrier\n"
    "  %v2 = mem_view %buf2, %c0 : memdesc<64x64xf32, shared>\n"
    "  fence {proxy=async}\n  barrier\n"
    "  %tk = desc_store_async %d, %v2, %c0, %c0 : token\n"
    "  %w = async_wait %tk : token\n"
    "  return\n}\n";

static int count(const char *text, const char *what) {
  int n = 0;
  while ((text = strstr(text, what))) text += strlen(what), n++;
  return n;
}

static void test_ring(void **state) {
  (void)state;
  Gpu g;
  gpu_make(&g, "sm_90a", ring);
  gpu_has(&g,
          "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint");
  assert_int_equal(count(g.ptx, "cp.async.bulk.tensor.2d.shared::cluster.global"), 2);
  gpu_has(&g, "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group");
  gpu_has(&g, "cp.async.bulk.commit_group");
  gpu_has(&g, "cp.async.bulk.wait_group \t0");
  gpu_has(&g, "mbarrier.arrive.expect_tx.shared.b64");
  gpu_has(&g, "fence.mbarrier_init.release.cluster");
  gpu_has(&g, "fence.proxy.async");
  gpu_has(&g, "bar.sync \t1, 128");                // before the consumers' arrival, which is one for all
  assert_int_equal(count(g.ptx, "elect.sync"), 4); // the producer's expect and two copies are one run
  assert_int_equal(count(g.ptx, ".param .align 64 .b8"), 3);
  gpu_lacks(&g, ".local");
  const ImageVariant *v = g.image->kernels[0].variants;
  assert_int_equal(v->nmaps, 3); // what is stored to is another map than what is loaded from
  assert_int_equal(v->args_bytes, 8 + 8 + 88);
  assert_int_equal(image_launch_bytes(v), 128 + 3 * 128);
  const ImageMap *a = &v->maps[0], *d = &v->maps[1], *o = &v->maps[2];
  assert_string_equal(a->name, "ad");
  assert_int_equal(a->dtype, IMAGE_BF16);
  assert_int_equal(a->swizzle, 128);
  assert_int_equal(a->box[0], 64);
  assert_int_equal(a->box[1], 64);
  assert_true(a->pad_nan && !a->writes && !d->pad_nan && !d->writes && o->writes);
  assert_string_equal(d->name, "d");
  assert_int_equal(d->dtype, IMAGE_F32);
  assert_int_equal(d->swizzle, 0);
  for (int i = 0; i < 3; i++) assert_null(image_map_fault(v, &v->maps[i]));
  char packed[104] = {0};
  const uint64_t p = 0x7f0000001000;
  const int32_t m = 1000, n = -8; // an i32 on its way to an i64
  const ImageDesc desc = {.base = 0x5000, .shape = {70, 80}, .strides = {96, 1}};
  memcpy(packed + v->args[0].offset, &p, 8);
  memcpy(packed + v->args[1].offset, &m, 4);
  memcpy(packed + v->args[2].offset, &n, 4);
  memcpy(packed + v->args[3].offset, &desc, sizeof desc);
  ImageMapNumbers x;
  image_map_eval(v, a, packed, &x);
  assert_int_equal(x.base, p);
  assert_int_equal(x.sizes[0], 1000);
  assert_int_equal(x.sizes[1], -8);
  assert_int_equal(x.strides[0], -8);
  assert_int_equal(x.strides[1], 1);
  image_map_eval(v, d, packed, &x);
  assert_int_equal(x.base, 0x5000);
  assert_int_equal(x.sizes[1], 80);
  assert_int_equal(x.strides[0], 96);
  gpu_free(&g);
}

// ---- shapes of blocks ------------------------------------------------------------------------------------------------------
// A kernel that loads one block and stores it.
static const char *block_kernel(const char *shape, const char *dtype, const char *layout, int offset,
                                int rank) {
  static char text[8192];
  char zeros[64] = "";
  for (int i = 0; i < rank; i++) strcat(zeros, ", %z");
  snprintf(
      text, sizeof text,
      HEAD
      "kernel @k(%%d: desc<%sx%s>) {\n  %%z = const {value=0} : i32\n  %%b = const {value=64} : i32\n"
      "  %%m = mem_alloc {offset=%d} : memdesc<%sx%s, shared%s>\n  %%f = mbarrier_alloc {count=1} : mbarrier\n"
      "  mbarrier_expect %%f, %%z, %%b\n"
      "  desc_load_async %%d, %%m, %%f, %%z%s\n"
      "  %%t = mbarrier_wait %%f, %%z, %%z : token\n  barrier\n"
      "  %%k = desc_store_async %%d, %%m%s : token\n  %%w = async_wait {reads=true} : token\n  return\n}\n",
      shape, dtype, offset, shape, dtype, layout, zeros, zeros);
  return text;
}

static void test_shapes(void **state) {
  (void)state;
  static const struct {
    const char *shape, *dtype, *layout;
    int rank, copies, swizzle, box[5];
  } cases[] = {
      {"1024", "f32", "", 1, 4, 0, {256}},
      {"4", "f32", "", 1, 1, 0, {4}},
      {"16x256", "bf16", "", 2, 1, 0, {16, 256}},
      {"512x64", "i8", "", 2, 2, 0, {256, 64}},
      {"1x512", "f16", "", 2, 2, 0, {1, 256}},
      {"2x3x4x64", "f32", "", 4, 1, 0, {2, 3, 4, 64}},
      {"1x1x2x8x16", "f8e4m3", "", 5, 1, 0, {1, 1, 2, 8, 16}},
      {"64x128",
       "bf16",
       ", reg(1 2 4 8 16 32 136 272 544 1024 2048 4096 64) lane() warp()",
       2,
       2,
       128,
       {64, 64}},
      {"16x64",
       "f32",
       ", reg(1 2 68 136 272 64 128 256 512 32) lane() warp()",
       2,
       0,
       128,
       {0}}, // no layout of the kind
      {"8x32", "bf16", ", reg(1 2 4 8 16 32 72 144) lane() warp()", 2, 1, 64, {8, 32}},
      {"16x16", "bf16", ", reg(1 2 4 8 16 32 72 128) lane() warp()", 2, 1, 32, {16, 16}},
  };
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) {
    Gpu g;
    const char *text = block_kernel(cases[i].shape, cases[i].dtype, cases[i].layout, 0, cases[i].rank);
    if (!cases[i].copies) {
      assert_int_not_equal(gpu_try(&g, "sm_90a", text), ST_OK);
      assert_non_null(strstr(diags_render(&g.diags, &g.arena), "neither row-major nor swizzled"));
      gpu_free(&g);
      continue;
    }
    gpu_make(&g, "sm_90a", text);
    char load[96];
    snprintf(load, sizeof load, "cp.async.bulk.tensor.%dd.shared::cluster.global.tile", cases[i].rank);
    if (count(g.ptx, load) != cases[i].copies)
      fail_msg("%s: not %d copies in\n%s", cases[i].shape, cases[i].copies, g.ptx);
    gpu_has(&g, "cp.async.bulk.wait_group.read \t0");
    const ImageMap *m = &g.image->kernels[0].variants[0].maps[0];
    assert_int_equal(m->rank, cases[i].rank);
    assert_int_equal(m->swizzle, cases[i].swizzle);
    for (int d = 0; d < cases[i].rank; d++) assert_int_equal(m->box[d], cases[i].box[d]);
    gpu_free(&g);
  }
}

static void refuse(const char *cpu, const char *text, const char *said) {
  Gpu g;
  const Status s = gpu_try(&g, cpu, text);
  const char *all = diags_render(&g.diags, &g.arena);
  if (s == ST_OK || !strstr(all, said)) fail_msg("'%s' is not in: %s", said, all);
  gpu_free(&g);
}

static void test_refused(void **state) {
  (void)state;
  refuse("sm_80", ring, "sm_80 has no tensor memory accelerator, which 'desc_load_async' needs");
  refuse("sm_89", ring, "compile for sm_90a");
  refuse("sm_90a", block_kernel("16x6", "bf16", "", 0, 2), "a row of the block has 12 bytes");
  refuse("sm_90a", block_kernel("300x64", "bf16", "", 0, 2), "300 elements along axis 0");
  refuse("sm_90a", block_kernel("64x512", "f32", "", 0, 2), "copied in 128 pieces");
  refuse("sm_90a", block_kernel("16x64", "bf16", "", 64, 2),
         "the buffer lies at 64, which is no multiple of 128");
  refuse("sm_90a", block_kernel("8x32", "bf16", ", reg(1 2 4 8 16 32 72 144) lane() warp()", 256, 2),
         "the buffer lies at 256, which is no multiple of 512");
}

// ---- what a host can know ----------------------------------------------------------------------------------------------------
// A kernel whose descriptor is made as `body` says: %base, %rows, %cols, %stride.
static const char *made_kernel(const char *body) {
  static char text[8192];
  snprintf(
      text, sizeof text,
      HEAD
      "kernel @k(%%p: ptr<f32>, %%q: ptr<i64>, %%i: i32, %%j: i32, %%l: i64, %%e: desc<8x8xf32>) {\n"
      "  %%z = const {value=0} : i32\n  %%b = const {value=64} : i32\n  %%c1 = const {value=1} : i64\n"
      "  %%c3 = const {value=3} : i32\n  %%c16 = const {value=16} : i32\n%s"
      "  %%d = make_desc %%base, %%rows, %%cols, %%stride, %%c1 {pad=zero} : desc<8x8xf32>\n"
      "  %%m = mem_alloc {offset=0} : memdesc<8x8xf32, shared>\n  %%f = mbarrier_alloc {count=1} : mbarrier\n"
      "  mbarrier_expect %%f, %%z, %%b\n"
      "  desc_load_async %%d, %%m, %%f, %%z, %%z, %%z\n"
      "  %%t = mbarrier_wait %%f, %%z, %%z : token\n  return\n}\n",
      body);
  return text;
}
#define PLAIN_BASE "  %base = hint %p : ptr<f32>\n"
#define PLAIN_ROWS "  %rows = hint %i : i32\n"
#define PLAIN_COLS "  %cols = hint %j : i32\n"
#define PLAIN_STRIDE "  %stride = hint %l : i64\n"

static void numbers(const char *body, int32_t i, int32_t j, int64_t l, uint64_t base, int64_t rows,
                    int64_t cols, int64_t stride) {
  Gpu g;
  gpu_make(&g, "sm_90a", made_kernel(body));
  const ImageVariant *v = g.image->kernels[0].variants;
  const uint64_t p = 0x100000;
  const ImageDesc e = {.base = 0x200000, .shape = {11, 12}, .strides = {20, 1}};
  char packed[256] = {0};
  memcpy(packed + v->args[0].offset, &p, 8);
  memcpy(packed + v->args[2].offset, &i, 4);
  memcpy(packed + v->args[3].offset, &j, 4);
  memcpy(packed + v->args[4].offset, &l, 8);
  memcpy(packed + v->args[5].offset, &e, sizeof e);
  ImageMapNumbers x;
  assert_int_equal(v->nmaps, 1);
  image_map_eval(v, &v->maps[0], packed, &x);
  if (x.base != base || x.sizes[0] != rows || x.sizes[1] != cols || x.strides[0] != stride)
    fail_msg("%s: %llx %lld %lld %lld", body, (unsigned long long)x.base, (long long)x.sizes[0],
             (long long)x.sizes[1], (long long)x.strides[0]);
  gpu_free(&g);
}

static void test_recipes(void **state) {
  (void)state;
  numbers(PLAIN_BASE PLAIN_ROWS PLAIN_COLS PLAIN_STRIDE, 5, 6, 7, 0x100000, 5, 6, 7);
  numbers(
      "  %o = mul %i, %c16 : i32\n  %base = ptr_add %p, %o : ptr<f32>\n" PLAIN_ROWS PLAIN_COLS PLAIN_STRIDE,
      5, 6, 7, 0x100000 + 5 * 16 * 4, 5, 6, 7);
  numbers(
      "  %o = mul %i, %c16 : i32\n  %base = ptr_add %p, %o : ptr<f32>\n" PLAIN_ROWS PLAIN_COLS PLAIN_STRIDE,
      1 << 28, 6, 7, 0x100000, 1 << 28, 6, 7); // wraps in 32 bits
  numbers(PLAIN_BASE "  %rows = div_s %i, %c3 : i32\n  %cols = div_u %i, %c3 : i32\n"
                     "  %x = ext_u %i : i64\n  %stride = mul %x, %l : i64\n",
          -7, 0, 2, 0x100000, -2, 0xfffffff9u / 3, 2 * 0xfffffff9ll);
  numbers(PLAIN_BASE "  %rows = trunc %l : i32\n  %x = add %i, %j : i32\n  %cols = max_s %x, %z : i32\n"
                     "  %y = ext_s %j : i64\n  %stride = min_s %y, %l : i64\n",
          INT32_MAX, 1, 0x1ffffffff, 0x100000, -1, 0, 1);
  numbers(
      "  %base = desc_base %e : ptr<f32>\n  %rows = desc_dim %e {axis=0} : i64\n  %cols = desc_dim %e {axis=1} : i64\n"
      "  %stride = desc_stride %e {axis=0} : i64\n",
      0, 0, 0, 0x200000, 11, 12, 20);
  numbers(PLAIN_BASE
          "  %rows = rem_u %i, %c16 : i32\n  %x = shl %i, %c16 : i32\n  %cols = shr_u %x, %c3 : i32\n"
          "  %y = xor %i, %j : i32\n  %stride = ext_s %y : i64\n",
          -3, 5, 0, 0x100000, 13, 0xfffd0000u >> 3, -3 ^ 5);
}

static void test_device_only(void **state) {
  (void)state;
  refuse(
      "sm_90a",
      made_kernel("  %n = num_programs {axis=0} : i32\n  %rows = mul %n, %i : i32\n" PLAIN_BASE PLAIN_COLS
                      PLAIN_STRIDE),
      "the tensor descriptor d cannot be made before the kernel is launched: its size along axis 0 depends on the grid (line");
  refuse("sm_90a",
         made_kernel(
             "  %n = program_id {axis=0} : i32\n  %base = ptr_add %p, %n : ptr<f32>\n" PLAIN_ROWS PLAIN_COLS
                 PLAIN_STRIDE),
         "its base depends on which program this is (line");
  refuse("sm_90a", made_kernel("  %stride = load %q, _, _ : i64\n" PLAIN_BASE PLAIN_ROWS PLAIN_COLS),
         "its stride along axis 0 is loaded from memory (line");
  refuse("sm_90a", made_kernel("  %base = symm_at %p, %i : ptr<f32>\n" PLAIN_ROWS PLAIN_COLS PLAIN_STRIDE),
         "its base lies in a peer's memory");
  refuse("sm_90a",
         made_kernel("  %r = rank : i32\n  %rows = add %r, %i : i32\n" PLAIN_BASE PLAIN_COLS PLAIN_STRIDE),
         "depends on the rank");
  char deep[8192] = "  %x0 = add %i, %j : i32\n";
  for (int k = 1; k < 20; k++) {
    char line[64];
    snprintf(line, sizeof line, "  %%x%d = add %%x%d, %%x%d : i32\n", k, k - 1, k - 1);
    strcat(deep, line);
  }
  strcat(deep, "  %rows = hint %x19 : i32\n" PLAIN_BASE PLAIN_COLS PLAIN_STRIDE);
  refuse("sm_90a", made_kernel(deep), "is computed in too many steps");
}

// ---- updates -------------------------------------------------------------------------------------------------------------------
static const char *update_kernel(const char *dtype, const char *rmw) {
  static char text[2048];
  snprintf(
      text, sizeof text,
      HEAD
      "kernel @k(%%d: desc<8x16x%s>) {\n  %%z = const {value=0} : i32\n"
      "  %%m = mem_alloc {offset=0} : memdesc<8x16x%s, shared>\n  fence {proxy=async}\n  barrier\n"
      "  %%k = desc_store_async %%d, %%m, %%z, %%z {rmw=%s} : token\n  %%w = async_wait %%k : token\n  return\n}\n",
      dtype, dtype, rmw);
  return text;
}
static void test_updates(void **state) {
  (void)state;
  static const struct {
    const char *dtype, *rmw, *ptx;
    int map;
  } cases[] = {{"f32", "fadd", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile", IMAGE_F32},
               {"bf16", "fadd", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile", IMAGE_BF16},
               {"f16", "fmax", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile", IMAGE_F16},
               {"i32", "max_u", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile", IMAGE_U32},
               {"i32", "min_s", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile", IMAGE_I32},
               {"i64", "xor", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.tile", IMAGE_U64}};
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) {
    Gpu g;
    gpu_make(&g, "sm_90a", update_kernel(cases[i].dtype, cases[i].rmw));
    gpu_has(&g, cases[i].ptx);
    assert_int_equal(g.image->kernels[0].variants[0].maps[0].dtype, cases[i].map);
    gpu_free(&g);
  }
  refuse("sm_90a", update_kernel("f32", "fmax"), "the accelerator does not do 'fmax' on f32");
  refuse("sm_90a", update_kernel("i32", "xchg"), "the accelerator does not do 'xchg' on i32");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ring),        cmocka_unit_test(test_shapes),
                                     cmocka_unit_test(test_refused),     cmocka_unit_test(test_recipes),
                                     cmocka_unit_test(test_device_only), cmocka_unit_test(test_updates)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
