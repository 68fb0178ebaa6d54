// Products of four warps, strips and kernels that start early from lowered IR text: the instructions in PTX, and what ptxas says of them.
#include "unit/target_nvptx.h"

static int count(const char *text, const char *what) {
  int n = 0;
  while ((text = strstr(text, what))) text += strlen(what), n++;
  return n;
}

// ---- products -----------------------------------------------------------------------------------------------------------------------
typedef struct Product {
  const char *which;
  int m, n, k, groups_m, groups_n;
  bool regs, sums, a_trans, b_trans;
  const char *ptx; // each of its instructions
  int times;
  const char *flags; // behind the registers and the descriptors
} Product;

static const char *product_text(Arena *a, const Product *p) {
  const bool is_int = p->which[0] == 's';
  const char *type = is_int ? "thread i32" : "thread f32", *elem = is_int ? "i32" : "f32";
  int step = strstr(p->which, "16") ? 16 : strcmp(p->which, "tf32_tf32") ? 32 : 8;
  const int blocks = p->m / (64 * p->groups_m), width = p->n / p->groups_n, sums = blocks * width / 2,
            regs = p->regs ? 4 * blocks * p->k / step : 1;
  char *s = arena_printf(
      a,
      "module stage=lowered warps=%d stages=1 lanes=32\n"
      "kernel @k(%%p: ptr<%s>) {\n  %%a = mem_alloc {offset=0} : memdesc<8192xi8, shared>\n"
      "  %%b = mem_alloc {offset=65536} : memdesc<8192xi8, shared>\n"
      "  %%pa = mem_ptr %%a : thread ptr<i8, shared>\n  %%pb = mem_ptr %%b : thread ptr<i8, shared>\n"
      "  %%t = tid : thread i32\n  %%pt = to_thread %%p : thread ptr<%s>\n"
      "  %%c = load %%pt, _, _ : %s\n  ",
      4 * p->groups_m * p->groups_n, elem, elem, type);
  for (int i = 0; i < sums; i++) s = arena_printf(a, "%s%s%%r%d", s, i ? ", " : "", i);
  s = arena_printf(a, "%s = wgmma ", s);
  for (int i = 0; i < regs; i++) s = arena_printf(a, "%s%s, ", s, p->regs ? "%t" : "%pa");
  s = arena_printf(a, "%s%%pb", s);
  for (int i = 0; p->sums && i < sums; i++) s = arena_printf(a, "%s, %%c", s);
  s = arena_printf(a, "%s {wgmma=%s, product=[%d, %d, %d, %d, %d]%s%s} : ", s, p->which, p->m, p->n, p->k,
                   p->groups_m, p->groups_n, p->a_trans ? ", a_trans=true" : "",
                   p->b_trans ? ", b_trans=true" : "");
  for (int i = 0; i < sums; i++) s = arena_printf(a, "%s%s%s", s, i ? ", " : "", type);
  s = arena_printf(a, "%s\n  ", s);
  for (int i = 0; i < sums; i++) s = arena_printf(a, "%s%s%%w%d", s, i ? ", " : "", i);
  s = arena_printf(a, "%s = wgmma_wait ", s);
  for (int i = 0; i < sums; i++) s = arena_printf(a, "%s%s%%r%d", s, i ? ", " : "", i);
  s = arena_printf(a, "%s {pending=0} : ", s);
  for (int i = 0; i < sums; i++) s = arena_printf(a, "%s%s%s", s, i ? ", " : "", type);
  for (int i = 0; i < sums; i++) {
    s = arena_printf(
        a, "%s\n  %%i%d = const {value=%d} : thread i32\n  %%q%d = ptr_add %%pt, %%i%d : thread ptr<%s>\n", s,
        i, i, i, i, elem);
    s = arena_printf(a, "%s  store %%q%d, %%w%d, _", s, i, i);
  }
  return arena_printf(a, "%s\n  return\n}\n", s);
}

static void check_product(const Product *p) {
  Arena a;
  TEST_ARENA(a);
  Gpu g;
  gpu_make(&g, "sm_90a", product_text(&a, p));
  assert_int_equal(count(g.ptx, arena_printf(&a, "wgmma.mma_async.sync.aligned.%s", p->ptx)), p->times);
  assert_int_equal(count(g.ptx, "wgmma.mma_async"), p->times);
  assert_int_equal(count(g.ptx, "wgmma.fence.sync.aligned;"), 1);
  assert_int_equal(count(g.ptx, "wgmma.commit_group.sync.aligned;"), 1);
  assert_int_equal(count(g.ptx, "wgmma.wait_group.sync.aligned 0;"), 1);
  gpu_has(&g, p->flags);
  gpu_has(&g,
          p->sums ? "setp.ne.b32 p,1,0;" : "setp.ne.b32 p,0,0;"); // the first step adds to the sums, or to 0
  assert_int_equal(g.image->kernels[0].variants[0].num_warps, 4 * p->groups_m * p->groups_n);
  gpu_free(&g);
  arena_free(&a);
}

static void test_products(void **state) {
  (void)state;
  static const Product cases[] = {
      {"f16_f16", 64, 8, 16, 1, 1, false, false, false, false, "m64n8k16.f32.f16.f16 ", 1, ",p,1,1,0,1;"},
      {"f16_f16", 64, 64, 64, 1, 1, false, true, false, true, "m64n64k16.f32.f16.f16 ", 4, ",1,1,1,0,0;"},
      {"bf16_bf16", 128, 32, 32, 1, 1, false, true, true, false, "m64n32k16.f32.bf16.bf16 ", 4,
       ",1,1,1,1,1;"},
      {"bf16_bf16", 64, 16, 32, 1, 1, true, false, false, true, "m64n16k16.f32.bf16.bf16 ", 2, ",1,1,1,0;"},
      {"f16_f16", 64, 16, 32, 1, 1, true, true, false, false, "m64n16k16.f32.f16.f16 ", 2, ",1,1,1,1;"},
      {"f16_f16", 128, 128, 32, 2, 1, false, true, false, false, "m64n128k16.f32.f16.f16 ", 2, ",1,1,1,0,1;"},
      {"f16_f16", 64, 128, 32, 1, 2, false, true, false, false, "m64n64k16.f32.f16.f16 ", 2, ",1,1,1,0,1;"},
      {"tf32_tf32", 64, 32, 32, 1, 1, false, true, false, true, "m64n32k8.f32.tf32.tf32 ", 4, ",1,1,1;"},
      {"s8_s8", 64, 32, 64, 1, 1, false, true, false, true, "m64n32k32.s32.s8.s8 ", 2, ",1;"},
      {"e4m3_e4m3", 64, 64, 128, 1, 1, false, true, false, true, "m64n64k32.f32.e4m3.e4m3 ", 4, ",1,1,1;"},
      {"e5m2_e4m3", 64, 64, 64, 1, 1, true, true, false, true, "m64n64k32.f32.e5m2.e4m3 ", 2, ",1,1,1;"},
      {"f16_f16", 64, 256, 16, 1, 1, false, true, false, false, "m64n256k16.f32.f16.f16 ", 1, ",p,1,1,0,1;"},
  };
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) check_product(&cases[i]);
  Arena a;
  TEST_ARENA(a);
  Gpu g;
  assert_int_equal(gpu_try(&g, "sm_89", product_text(&a, &cases[0])), ST_UNSUPPORTED);
  assert_non_null(strstr(diags_render(&g.diags, &g.arena), "sm_89 has no products of four warps"));
  gpu_free(&g);
  arena_free(&a);
}

// ---- strips --------------------------------------------------------------------------------------------------------------------------
#define T16 "%t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t"
static const char strips[] =
    "module stage=lowered warps=4 stages=1 lanes=32\n"
    "kernel @k(%d: desc<64x128xf16>, %e: desc<1x64x128xf16>) {\n  %t = tid : thread i32\n"
    "  %m = mem_alloc {offset=0} : memdesc<8*16x64xf16, shared, reg(1 2 4 8 16 32 72 144 288 512) lane() warp()>\n"
    "  strip_store %d, %m, %t, %t, " T16 " {strip=0}\n  strip_store %d, %m, %t, %t, " T16 " {strip=1}\n"
    "  strip_store %e, %m, %t, %t, %t, " T16 " {strip=0}\n"
    "  strips_end\n  return\n}\n";

static void test_strips(void **state) {
  (void)state;
  Gpu g;
  gpu_make(&g, "sm_90a", strips);
  assert_int_equal(count(g.ptx, "stmatrix.sync.aligned.m8n8.x4.shared.b16"), 3 * 4);
  assert_int_equal(count(g.ptx, "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"), 2);
  assert_int_equal(count(g.ptx, "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group"), 1);
  assert_int_equal(count(g.ptx, "fence.proxy.async.shared::cta;"), 3);
  assert_int_equal(count(g.ptx, "cp.async.bulk.wait_group 0;"), 2); // a tile's first: those before are there
  assert_int_equal(count(g.ptx, "cp.async.bulk.wait_group.read 1;"), 1); // its buffer has been read
  assert_int_equal(count(g.ptx, "cp.async.bulk.wait_group.read 0;"), 1); // at the end
  const ImageVariant *v = g.image->kernels[0].variants;
  assert_int_equal(v->nmaps, 2);
  for (uint32_t i = 0; i < 2; i++) { // boxes of a warp's rows, whatever the tile's block is
    const ImageMap *m = &v->maps[i];
    assert_true(m->writes && m->swizzle == 128 && m->dtype == IMAGE_F16);
    assert_int_equal(m->rank, 2 + i);
    assert_int_equal(m->box[m->rank - 1], 64);
    assert_int_equal(m->box[m->rank - 2], 16);
  }
  gpu_free(&g);
}

static const char sums[] =
    "module stage=lowered warps=4 stages=1 lanes=32 registers=128\n"
    "kernel @k(%d: desc<64x64xf32>, %e: desc<64x128xbf16>) {\n  %t = tid : thread i32\n"
    "  %m = mem_alloc {offset=0} : memdesc<8*16x32xf32, shared, reg(1 2 4 8 16 36 72 144 256) lane() warp()>\n"
    "  %n = mem_alloc {offset=16384} : memdesc<8*16x64xbf16, shared, reg(1 2 4 8 16 32 72 144 288 512) lane() warp()>\n"
    "  strip_store %d, %m, %t, %t, " T16 " {strip=0, rmw=fadd}\n  strip_store %d, %m, %t, %t, " T16
    " {strip=1, rmw=fadd}\n"
    "  strip_store %e, %n, %t, %t, " T16 " {strip=0, rmw=fadd}\n"
    "  strips_end\n  return\n}\n";

static void test_sums(void **state) {
  (void)state;
  Gpu g;
  gpu_make(&g, "sm_90a", sums);
  assert_int_equal(count(g.ptx, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"), 3);
  assert_int_equal(count(g.ptx, "st.shared.v2.b32"),
                   2 * 8); // words: two of a row a lane, in two rows of each 8 columns
  assert_int_equal(count(g.ptx, "stmatrix.sync.aligned.m8n8.x4.shared.b16"), 4);
  assert_int_equal(count(g.ptx, "cp.async.bulk.wait_group 0;"), 0); // sums come in any order
  assert_int_equal(count(g.ptx, "cp.async.bulk.wait_group.read 0;"), 3);
  gpu_has(&g, ".maxnreg 128");
  const ImageVariant *v = g.image->kernels[0].variants;
  assert_int_equal(v->nmaps, 2);
  for (uint32_t i = 0; i < 2; i++) {
    const ImageMap *m = &v->maps[i];
    assert_true(m->writes && m->swizzle == 128 && m->dtype == (i ? IMAGE_BF16 : IMAGE_F32));
    assert_int_equal(m->box[1], i ? 64 : 32);
    assert_int_equal(m->box[0], 16);
  }
  gpu_free(&g);
}

// ---- barriers ------------------------------------------------------------------------------------------------------------------------
static void test_barriers(void **state) { // all of a run are made by one thread, behind which all meet once
  (void)state;
  Gpu g;
  gpu_make(
      &g, "sm_90a",
      "module stage=lowered warps=4 stages=1 lanes=32\nkernel @k() {\n"
      "  %a = mbarrier_alloc {count=1} : mbarrier<2>\n  %m = mem_alloc {offset=0} : memdesc<64xf32, shared>\n"
      "  %b = mbarrier_alloc {count=4} : mbarrier<3>\n  %z = const {value=0} : i32\n"
      "  %c = mbarrier_alloc {count=1} : mbarrier<1>\n  mbarrier_arrive %a, %z\n"
      "  %d = mbarrier_alloc {count=1} : mbarrier<1>\n  mbarrier_arrive %d, %z\n  return\n}\n");
  assert_int_equal(count(g.ptx, "mbarrier.init.shared.b64"), 2 + 3 + 1 + 1);
  assert_int_equal(count(g.ptx, "fence.mbarrier_init.release.cluster"), 2);
  assert_int_equal(count(g.ptx, "fence.proxy.async.shared::cta"), 2);
  gpu_free(&g);
}

// ---- kernels that start early ----------------------------------------------------------------------------------------------------------
static const char *parts(Arena *a, int warps, int extra, const char *regs) {
  return arena_printf(
      a,
      "module stage=lowered warps=%d stages=1 lanes=32%s\nkernel @k(%%p: ptr<i32>) {\n  %%z = const {value=0} : i32\n"
      "  warp_partitions {first=[0, %d], warps=[%d, %d], alone=[0, 1]%s} {\n"
      "    %%t = tid : thread i32\n    %%pt = to_thread %%p : thread ptr<i32>\n    %%q = ptr_add %%pt, %%t : thread ptr<i32>\n"
      "    store %%q, %%t, _\n    yield\n  } {\n    store %%p, %%z, _\n    yield\n  }\n  return\n}\n",
      extra ? warps : warps + 4, extra ? arena_printf(a, " extra=%d", extra) : "", warps, warps, 4, regs);
}

static void test_early(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Gpu g;
  gpu_make(&g, "sm_90a", parts(&a, 8, 4, ", regs=[216, 24]"));
  const ImageVariant *v = g.image->kernels[0].variants;
  assert_true(v->early);
  assert_int_equal(v->num_warps, 12);
  gpu_has(&g, ".reqntid 384");
  gpu_has(&g, "setmaxnreg.inc.sync.aligned.u32 \t216");
  gpu_has(&g, "setmaxnreg.dec.sync.aligned.u32 \t24");
  assert_int_equal(count(g.ptx, "griddepcontrol.wait"), 1);
  assert_int_equal(count(g.ptx, "griddepcontrol.launch_dependents"), 1);
  assert_null(strstr(strstr(g.ptx, "griddepcontrol.launch_dependents"), "griddepcontrol.wait"));
  const char *wait = strstr(g.ptx, "griddepcontrol.wait"), *access = strstr(g.ptx, ".global.");
  assert_true(wait && access && wait < access); // no access to memory in front of it
  gpu_free(&g);
  // registers as they are; partitions of the author's, without warps of their own
  gpu_make(&g, "sm_90a", parts(&a, 4, 4, ""));
  assert_true(g.image->kernels[0].variants->early);
  gpu_lacks(&g, "setmaxnreg");
  gpu_free(&g);
  gpu_make(&g, "sm_90a", parts(&a, 4, 0, ""));
  assert_false(g.image->kernels[0].variants->early);
  gpu_lacks(&g, "griddepcontrol.wait");
  gpu_free(&g);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_strips),
                                     cmocka_unit_test(test_sums), cmocka_unit_test(test_barriers),
                                     cmocka_unit_test(test_early)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
