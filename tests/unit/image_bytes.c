// Images and packs as bytes: what is written is read back equal, and everything damaged is refused with one diagnostic.
#include "harness/test.h"
#include "image/image.h"

#include <string.h>

static ImageArg args_a[] = {
    {.name = "x", .kind = IMAGE_ARG_PTR, .bits = 16, .dtype = IMAGE_BF16, .divisible = 16, .offset = 0},
    {.name = "n", .kind = IMAGE_ARG_INT, .bits = 32, .dtype = IMAGE_I32, .divisible = 1, .offset = 8},
    {.name = "d",
     .kind = IMAGE_ARG_DESC,
     .bits = 32,
     .dtype = IMAGE_F32,
     .divisible = 1,
     .rank = 2,
     .block = {64, -1},
     .offset = 16},
};
static ImageStep base_steps[] = {{IMAGE_STEP_ARG, 0, 0}, {IMAGE_STEP_CONST, 0, 64}, {IMAGE_STEP_ADD, 0, 0}};
static ImageStep n_steps[] = {{IMAGE_STEP_ARG, 1, 0}}, dim_steps[] = {{IMAGE_STEP_DIM, 2, 1}},
                 one_steps[] = {{IMAGE_STEP_CONST, 0, 1}};
static ImageMap maps[] = {{.name = "x",
                           .dtype = IMAGE_BF16,
                           .rank = 2,
                           .box = {256, 64},
                           .swizzle = 128,
                           .writes = true,
                           .base = {base_steps, 3},
                           .sizes = {{n_steps, 1}, {dim_steps, 1}},
                           .strides = {{dim_steps, 1}, {one_steps, 1}}},
                          {.name = "y",
                           .dtype = IMAGE_F32,
                           .rank = 1,
                           .box = {4},
                           .pad_nan = true,
                           .base = {base_steps, 3},
                           .sizes = {{n_steps, 1}},
                           .strides = {{one_steps, 1}}}};
static ImageVariant variants[] = {
    {.entry = "k_v0",
     .maps = maps,
     .nmaps = 2,
     .guard_text = "x % 16 == 0",
     .args = args_a,
     .nargs = 3,
     .args_bytes = 16 + sizeof(ImageDesc),
     .num_warps = 4,
     .lanes = 32,
     .arena_bytes = 1 << 20,
     .wait = IMAGE_WAIT_EXTERNAL,
     .has_waits = true,
     .early = true,
     .cluster = {1, 2, 3}},
    {.entry = "k_v1",
     .code = 1,
     .args = args_a,
     .nargs = 3,
     .args_bytes = 16 + sizeof(ImageDesc),
     .num_warps = 1,
     .shared_bytes = 232448,
     .registers = 168,
     .local_bytes = 48,
     .spill_bytes = 40,
     .workspace_bytes = 7},
};
static ImageKernel kernels[] = {{"k", variants, 2}};
static ImageSite sites[] = {{"k.py", 3, 7, "flag", NULL}, {NULL, 0, 0, NULL, "i32f32"}};
static ImageBlob more[] = {{"other code", 10}};
static const Image example = {.more = more,
                              .nmore = 1,
                              .target = IMAGE_X86_64,
                              .cpu_features = "avx2,fma",
                              .producer = "0.1.0",
                              .code = "\x7f"
                                      "code",
                              .code_bytes = 5,
                              .kernels = kernels,
                              .nkernels = 1,
                              .sites = sites,
                              .nsites = 2,
                              .source_name = "k.py"};

static void *write_example(Arena *a, Diags *d, size_t *n) {
  void *bytes;
  assert_int_equal(image_write(&example, a, &bytes, n, d), ST_OK);
  return bytes;
}

static void test_round_trip(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n, n2;
  void *bytes = write_example(&a, &d, &n), *again;
  Image *im;
  assert_int_equal(image_read(&a, bytes, n, &im, &d), ST_OK);
  assert_int_equal(d.errors, 0);
  assert_int_equal(image_write(im, &a, &again, &n2, &d), ST_OK);
  assert_int_equal(n, n2);
  assert_memory_equal(bytes, again, n);
  const ImageVariant *v = &im->kernels[0].variants[0];
  assert_string_equal(im->kernels[0].name, "k");
  assert_string_equal(v->entry, "k_v0");
  assert_string_equal(v->guard_text, "x % 16 == 0");
  assert_null(im->kernels[0].variants[1].guard_text);
  assert_true(v->has_waits);
  assert_true(v->early && !im->kernels[0].variants[1].early);
  assert_int_equal(v->wait, IMAGE_WAIT_EXTERNAL);
  assert_int_equal(v->args[2].block[1], -1);
  assert_int_equal(v->args[0].divisible, 16);
  assert_int_equal(v->cluster[2], 3);
  assert_int_equal(im->kernels[0].variants[1].workspace_bytes, 7);
  assert_int_equal(im->kernels[0].variants[1].shared_bytes, 232448);
  assert_int_equal(im->kernels[0].variants[1].registers, 168);
  assert_int_equal(im->kernels[0].variants[1].local_bytes, 48);
  assert_int_equal(im->kernels[0].variants[1].spill_bytes, 40);
  assert_int_equal(v->nmaps, 2);
  assert_string_equal(v->maps[0].name, "x");
  assert_int_equal(v->maps[0].swizzle, 128);
  assert_true(v->maps[0].writes && !v->maps[0].pad_nan && v->maps[1].pad_nan);
  assert_int_equal(v->maps[0].box[0], 256);
  assert_int_equal(v->maps[0].base.n, 3);
  assert_int_equal(v->maps[0].base.steps[1].value, 64);
  assert_int_equal(v->maps[0].sizes[1].steps[0].op, IMAGE_STEP_DIM);
  assert_int_equal(im->kernels[0].variants[1].nmaps, 0);
  assert_int_equal(image_map_offset(v, 0), 128); // 104 of arguments, 8 hidden, aligned
  assert_int_equal(image_launch_bytes(v), 128 + 256);
  assert_int_equal(image_launch_bytes(&im->kernels[0].variants[1]), 104 + 8);
  assert_string_equal(im->sites[0].what, "flag");
  assert_null(im->sites[1].file);
  assert_string_equal(im->sites[1].fmt, "i32f32");
  assert_memory_equal(im->code,
                      "\x7f"
                      "code",
                      5);
  assert_int_equal((uintptr_t)im->code % 64, 0);
  assert_int_equal(im->nmore, 1);
  assert_int_equal(im->more[0].bytes, 10);
  assert_memory_equal(im->more[0].code, "other code", 10);
  assert_int_equal(v->code, 0);
  assert_int_equal(im->kernels[0].variants[1].code, 1);
  arena_free(&a);
}

static void test_truncated(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  const char *bytes = write_example(&a, &d, &n);
  for (size_t k = 0; k < n; k++) {
    char *part =
        arena_alloc(&a, k + 1, 1); // its end is the allocation's end, so that sanitizers see a read past it
    memcpy(part, bytes, k);
    Image *im;
    d.errors = 0;
    assert_int_equal(image_read(&a, part, k, &im, &d), ST_CORRUPT);
    assert_int_equal(d.errors, 1);
    assert_null(im);
  }
  arena_free(&a);
}

static void test_each_bit_counts(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  unsigned char *bytes = write_example(&a, &d, &n);
  for (size_t bit = 0; bit < n * 8; bit++) {
    bytes[bit / 8] ^= 1u << (bit % 8);
    Image *im;
    const Status s = image_read(&a, bytes, n, &im, &d);
    assert_true(s == ST_CORRUPT || (s == ST_VERSION && bit / 8 >= 8 && bit / 8 < 16));
    bytes[bit / 8] ^= 1u << (bit % 8);
  }
  arena_free(&a);
}

static void test_version_text(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  size_t n;
  unsigned char *bytes = write_example(&a, &d, &n);
  bytes[8] = 99;
  Image *im;
  assert_int_equal(image_read(&a, bytes, n, &im, &d), ST_VERSION);
  assert_non_null(strstr(diags_render(&d, &a), "format 99"));
  arena_free(&a);
}

static void test_not_written(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  void *bytes;
  size_t n;
  ImageArg outside = args_a[0];
  outside.offset = 1;
  ImageVariant v = {.entry = "e", .args = &outside, .nargs = 1, .args_bytes = 8};
  ImageKernel k = {"k", &v, 1};
  const Image im = {.kernels = &k, .nkernels = 1};
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  assert_non_null(strstr(diags_render(&d, &a), "outside the arguments"));
  outside.offset = 0;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
  k.nvariants = 0;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  arena_free(&a);
}

// ---- tensor maps -------------------------------------------------------------------------------------------------
static ImageArg args_m[] = {
    {.name = "p", .kind = IMAGE_ARG_PTR, .bits = 16, .divisible = 1},
    {.name = "i", .kind = IMAGE_ARG_INT, .bits = 32, .dtype = IMAGE_I32, .divisible = 1, .offset = 8},
    {.name = "b", .kind = IMAGE_ARG_INT, .bits = 8, .dtype = IMAGE_I8, .divisible = 1, .offset = 12},
    {.name = "l", .kind = IMAGE_ARG_INT, .bits = 64, .dtype = IMAGE_I64, .divisible = 1, .offset = 16},
    {.name = "d", .kind = IMAGE_ARG_DESC, .bits = 32, .divisible = 1, .rank = 2, .offset = 24},
    {.name = "f", .kind = IMAGE_ARG_FIXED, .bits = 32, .divisible = 1, .value = -9},
    {.name = "x", .kind = IMAGE_ARG_FLOAT, .bits = 32, .dtype = IMAGE_F32, .divisible = 1, .offset = 112},
};
static ImageVariant variant_m = {.entry = "m", .args = args_m, .nargs = 7, .args_bytes = 120};

static int64_t eval(ImageStep *steps, uint32_t n) {
  char packed[120] = {0};
  const uint64_t p = 0xfedcba9876543210;
  const int32_t i = -7;
  const int8_t b = -2;
  const int64_t l = INT64_MIN;
  const ImageDesc d = {.base = 0x1234, .shape = {10, 20}, .strides = {24, 1}};
  memcpy(packed, &p, 8), memcpy(packed + 8, &i, 4), memcpy(packed + 12, &b, 1), memcpy(packed + 16, &l, 8);
  memcpy(packed + 24, &d, sizeof d);
  memset(packed + 13, 0xee, 3); // beside a narrow argument
  const ImageMap m = {.name = "m",
                      .dtype = IMAGE_F32,
                      .rank = 1,
                      .box = {4},
                      .base = {steps, n},
                      .sizes = {{steps, n}},
                      .strides = {{one_steps, 1}}};
  ImageMapNumbers out;
  assert_null(image_map_fault(&variant_m, &m));
  image_map_eval(&variant_m, &m, packed, &out);
  assert_int_equal(out.base, (uint64_t)out.sizes[0]);
  assert_int_equal(out.strides[0], 1);
  return out.sizes[0];
}
#define EVAL(...) eval((ImageStep[]){__VA_ARGS__}, DT_COUNTOF(((const ImageStep[]){__VA_ARGS__})))
#define K(x) \
  { IMAGE_STEP_CONST, 0, x }
#define DO(op) \
  { IMAGE_STEP_##op, 0, 0 }

static void test_recipes(void **state) {
  (void)state;
  const ImageStep p = {IMAGE_STEP_ARG, 0, 0}, i = {IMAGE_STEP_ARG, 1, 0}, b = {IMAGE_STEP_ARG, 2, 0},
                  l = {IMAGE_STEP_ARG, 3, 0}, f = {IMAGE_STEP_ARG, 5, 0};
  assert_true(EVAL(p) == (int64_t)0xfedcba9876543210);
  assert_true(EVAL(i) == -7);
  assert_true(EVAL(b) == -2);
  assert_true(EVAL(l) == INT64_MIN);
  assert_true(EVAL(f) == -9);
  assert_true(EVAL({IMAGE_STEP_BASE, 4, 0}) == 0x1234);
  assert_true(EVAL({IMAGE_STEP_DIM, 4, 1}) == 20);
  assert_true(EVAL({IMAGE_STEP_STRIDE, 4, 0}) == 24);
  assert_true(EVAL(i, {IMAGE_STEP_ZEXT, 0, 32}) == 0xfffffff9);
  assert_true(EVAL(K(0x180), {IMAGE_STEP_SEXT, 0, 8}) == -128);
  assert_true(EVAL(l, {IMAGE_STEP_SEXT, 0, 64}) == INT64_MIN);
  static const struct {
    ImageStepOp op;
    int64_t x, y, r;
  } two[] = {
      {IMAGE_STEP_ADD, INT64_MAX, 1, INT64_MIN},
      {IMAGE_STEP_SUB, INT64_MIN, 1, INT64_MAX},
      {IMAGE_STEP_MUL, INT64_MAX, 2, -2},
      {IMAGE_STEP_DIV_S, -7, 2, -3},
      {IMAGE_STEP_DIV_S, INT64_MIN, -1, INT64_MIN},
      {IMAGE_STEP_DIV_S, 5, 0, 0},
      {IMAGE_STEP_DIV_U, -1, 2, INT64_MAX},
      {IMAGE_STEP_DIV_U, 5, 0, 0},
      {IMAGE_STEP_REM_S, -7, 2, -1},
      {IMAGE_STEP_REM_S, INT64_MIN, -1, 0},
      {IMAGE_STEP_REM_S, 3, 0, 0},
      {IMAGE_STEP_REM_U, -1, 16, 15},
      {IMAGE_STEP_REM_U, 3, 0, 0},
      {IMAGE_STEP_MIN_S, -1, 1, -1},
      {IMAGE_STEP_MAX_S, -1, 1, 1},
      {IMAGE_STEP_MIN_U, -1, 1, 1},
      {IMAGE_STEP_MAX_U, -1, 1, -1},
      {IMAGE_STEP_AND, 12, 10, 8},
      {IMAGE_STEP_OR, 12, 10, 14},
      {IMAGE_STEP_XOR, 12, 10, 6},
      {IMAGE_STEP_SHL, 3, 62, INT64_MIN | (int64_t)1 << 62},
      {IMAGE_STEP_SHL, 3, 64, 0},
      {IMAGE_STEP_SHR_S, -8, 1, -4},
      {IMAGE_STEP_SHR_S, -8, 200, -1},
      {IMAGE_STEP_SHR_U, -8, 60, 15},
      {IMAGE_STEP_SHR_U, -8, -1, 0},
  };
  for (size_t k = 0; k < DT_COUNTOF(two); k++) {
    const int64_t r = EVAL(K(two[k].x), K(two[k].y), {two[k].op, 0, 0});
    if (r != two[k].r) fail_msg("case %zu gives %lld", k, (long long)r);
  }
  // ((i + 15) / 16) * 16, each step in 32 bits
  assert_true(EVAL(K(33), K(15), DO(ADD), {IMAGE_STEP_SEXT, 0, 32}, K(16), DO(DIV_S), K(16), DO(MUL)) == 48);
}

// What guards promise of all arguments.
static void test_always_fits(void **state) {
  (void)state;
  ImageArg a[] = {
      {.name = "p", .kind = IMAGE_ARG_PTR, .bits = 16, .divisible = 16},
      {.name = "n", .kind = IMAGE_ARG_INT, .bits = 32, .dtype = IMAGE_I32, .divisible = 16, .offset = 8},
      {.name = "m", .kind = IMAGE_ARG_INT, .bits = 32, .dtype = IMAGE_I32, .divisible = 1, .offset = 12},
      {.name = "d", .kind = IMAGE_ARG_DESC, .bits = 16, .divisible = 16, .rank = 2, .offset = 16},
      {.name = "f", .kind = IMAGE_ARG_FIXED, .bits = 32, .divisible = 1, .value = 48}};
  const ImageVariant v = {.entry = "e", .args = a, .nargs = 5, .args_bytes = 104};
  ImageStep p[] = {{IMAGE_STEP_ARG, 0, 0}}, n[] = {{IMAGE_STEP_ARG, 1, 0}}, m[] = {{IMAGE_STEP_ARG, 2, 0}},
            one[] = {K(1)}, dim[] = {{IMAGE_STEP_DIM, 3, 1}}, base[] = {{IMAGE_STEP_BASE, 3, 0}},
            f[] = {{IMAGE_STEP_ARG, 4, 0}};
  ImageStep m8[] = {{IMAGE_STEP_ARG, 2, 0}, K(8), DO(MUL), {IMAGE_STEP_SEXT, 0, 32}},
            n4[] = {{IMAGE_STEP_ARG, 1, 0}, K(4), DO(ADD)},
            half[] = {{IMAGE_STEP_ARG, 1, 0}, K(2), DO(DIV_S)},
            off[] = {{IMAGE_STEP_ARG, 0, 0}, {IMAGE_STEP_ARG, 1, 0}, K(2), DO(MUL), DO(ADD)};
#define R(x) {x, DT_COUNTOF(x)}
  ImageMap map = {.name = "m",
                  .dtype = IMAGE_BF16,
                  .rank = 2,
                  .box = {8, 8},
                  .base = R(p),
                  .sizes = {R(m), R(n)},
                  .strides = {R(n), R(one)}};
  const ImageMap good = map;
  assert_true(image_map_always_fits(&v, &map));
#define FITS(yes, at, x) \
  do { \
    map = good; \
    at = (ImageRecipe)R(x); \
    assert_null(image_map_fault(&v, &map)); \
    assert_int_equal(image_map_always_fits(&v, &map), yes); \
  } while (0)
  FITS(true, map.base, off);
  FITS(false, map.base, m);
  FITS(true, map.base, base);
  FITS(false, map.sizes[1], m);
  FITS(true, map.sizes[1], m8);
  FITS(false, map.sizes[1], n4);
  FITS(false, map.sizes[1], half);
  FITS(true, map.sizes[1], f);
  FITS(false, map.sizes[1], dim);
  FITS(true, map.sizes[0], dim);
  FITS(false, map.strides[0], m);
  FITS(true, map.strides[0], m8);
  FITS(false, map.strides[1], n);
}

static void test_bad_maps(void **state) {
  (void)state;
  ImageStep p = {IMAGE_STEP_ARG, 0, 0};
  struct {
    const char *fault;
    ImageStep steps[3];
    uint32_t n;
  } recipes[] = {
      {"an argument that there is not", {{IMAGE_STEP_ARG, 7, 0}}, 1},
      {"an argument that there is not", {{IMAGE_STEP_DIM, UINT32_MAX, 0}}, 1},
      {"an argument of another kind", {{IMAGE_STEP_ARG, 4, 0}}, 1},
      {"an argument of another kind", {{IMAGE_STEP_BASE, 0, 0}}, 1},
      {"an argument of another kind", {{IMAGE_STEP_ARG, 6, 0}}, 1},
      {"an axis that", {{IMAGE_STEP_DIM, 4, 2}}, 1},
      {"an axis that", {{IMAGE_STEP_STRIDE, 4, -1}}, 1},
      {"extends from no width", {p, {IMAGE_STEP_SEXT, 0, 0}}, 2},
      {"extends from no width", {p, {IMAGE_STEP_ZEXT, 0, 65}}, 2},
      {"takes what it has not made", {{IMAGE_STEP_SEXT, 0, 8}}, 1},
      {"takes what it has not made", {p, DO(ADD)}, 2},
      {"does not make one number", {p, p}, 2},
      {"does not make one number", {p}, 0},
      {"unknown step", {{IMAGE_NSTEPS, 0, 0}}, 1},
  };
  const ImageMap good = {.name = "m",
                         .dtype = IMAGE_F32,
                         .rank = 1,
                         .box = {4},
                         .base = {&p, 1},
                         .sizes = {{&p, 1}},
                         .strides = {{&p, 1}}};
  assert_null(image_map_fault(&variant_m, &good));
  for (size_t i = 0; i < DT_COUNTOF(recipes); i++) {
    for (int at = 0; at < 3; at++) {
      ImageMap m = good;
      *(at == 0   ? &m.base
        : at == 1 ? &m.sizes[0]
                  : &m.strides[0]) = (ImageRecipe){recipes[i].steps, recipes[i].n};
      const char *fault = image_map_fault(&variant_m, &m);
      if (!fault || !strstr(fault, recipes[i].fault)) fail_msg("case %zu: %s", i, fault ? fault : "none");
    }
  }
  ImageStep deep[IMAGE_RECIPE_MAX + 1];
  for (size_t i = 0; i < DT_COUNTOF(deep); i++) deep[i] = p;
  ImageMap m = good;
  m.base = (ImageRecipe){deep, IMAGE_RECIPE_DEPTH + 1};
  assert_non_null(strstr(image_map_fault(&variant_m, &m), "too deep"));
  m.base.n = DT_COUNTOF(deep);
  assert_non_null(strstr(image_map_fault(&variant_m, &m), "too long"));
#define SHAPE(said, ...) \
  do { \
    m = good; \
    __VA_ARGS__; \
    assert_non_null(image_map_fault(&variant_m, &m)); \
    assert_non_null(strstr(image_map_fault(&variant_m, &m), said)); \
  } while (0)
  SHAPE("no name", m.name = NULL);
  SHAPE("1 to 5 axes", m.rank = 0);
  SHAPE("1 to 5 axes", m.rank = 6);
  SHAPE("unknown type", m.dtype = IMAGE_NDTYPES);
  SHAPE("unknown swizzle", m.swizzle = 16);
  SHAPE("1 to 256 elements", m.box[0] = 0);
  SHAPE("1 to 256 elements", m.box[0] = 260);
  SHAPE("multiple of 16 bytes", m.box[0] = 6);
  SHAPE("longer than its swizzle", m.box[0] = 64, m.swizzle = 128);
  SHAPE("pads with NaN", m.dtype = IMAGE_F8E4M3, m.box[0] = 16, m.pad_nan = true);
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  void *bytes;
  size_t n;
  ImageKernel k = {"k", &variant_m, 1};
  const Image im = {.kernels = &k, .nkernels = 1};
  ImageMap many[IMAGE_MAPS_MAX + 1];
  for (size_t i = 0; i < DT_COUNTOF(many); i++) many[i] = good;
  variant_m.maps = many;
  variant_m.nmaps = DT_COUNTOF(many);
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  variant_m.nmaps--;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
  many[3].rank = 9;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  variant_m.nmaps = 0;
  arena_free(&a);
}

// Code as text is for the driver's own compiler, which reads it to its NUL.
static void test_gpu_text(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  void *bytes;
  size_t n;
  static const char ptx[] = ".version 8.0";
  Image im = {.target = IMAGE_NVPTX,
              .cpu_features = "sm_90a",
              .code = ptx,
              .code_bytes = sizeof ptx,
              .is_text = true,
              .sm = 90,
              .sm_exact = true},
        *back;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
  assert_int_equal(image_read(&a, bytes, n, &back, &d), ST_OK);
  assert_true(back->is_text && back->sm_exact);
  assert_int_equal(back->sm, 90);
  assert_string_equal(back->code, ptx);
  im.code_bytes--;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  im.is_text = false;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
  // parts of the code
  ImageVariant v = {.entry = "e", .code = 1};
  ImageKernel k = {"k", &v, 1};
  ImageBlob part = {"p", 2};
  im.kernels = &k;
  im.nkernels = 1;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  assert_non_null(strstr(diags_render(&d, &a), "a part of the code that there is not"));
  im.more = &part;
  im.nmore = 1;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
  im.is_text = true;
  im.code_bytes++;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_OK);
  part.bytes = 1;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  part.bytes = 0;
  im.is_text = false;
  assert_int_equal(image_write(&im, &a, &bytes, &n, &d), ST_INVALID);
  assert_non_null(strstr(diags_render(&d, &a), "is empty"));
  arena_free(&a);
}

static void test_pack(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  const PackEntry in[] = {{"gemm|*bf16|W=4", "one", 3}, {"empty", NULL, 0}, {"third", "333", 4}};
  void *bytes;
  size_t len;
  assert_int_equal(pack_write(in, 3, &a, &bytes, &len, &d), ST_OK);
  PackEntry *out;
  uint32_t count;
  assert_int_equal(pack_read(&a, bytes, len, &out, &count, &d), ST_OK);
  assert_int_equal(count, 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_string_equal(out[i].key, in[i].key);
    assert_int_equal(out[i].n, in[i].n);
    if (in[i].n) assert_memory_equal(out[i].bytes, in[i].bytes, in[i].n);
  }
  for (size_t k = 0; k < len; k++) assert_int_equal(pack_read(&a, bytes, k, &out, &count, &d), ST_CORRUPT);
  const PackEntry twice[] = {{"k", "1", 1}, {"k", "2", 1}};
  assert_int_equal(pack_write(twice, 2, &a, &bytes, &len, &d), ST_INVALID);
  Image *im;
  assert_int_equal(image_read(&a, bytes, len, &im, &d), ST_CORRUPT); // a pack is no image
  arena_free(&a);
}

static void test_dtypes(void **state) {
  (void)state;
  for (int i = 0; i < IMAGE_NDTYPES; i++) {
    assert_int_equal(image_dtype_by_name(image_dtypes[i].name), i);
    assert_int_equal(image_dtypes[i].bytes, (image_dtypes[i].bits + 7) / 8);
  }
  assert_int_equal(image_dtype_by_name("f31"), -1);
}

static void test_cpu_features(void **state) {
  (void)state;
  char missing[64];
  assert_true(image_cpu_has("", missing, sizeof missing));
  assert_true(image_cpu_has(NULL, missing, sizeof missing));
  assert_true(image_cpu_has("sse2", missing, sizeof missing)); // part of x86-64
  assert_int_equal(image_cpu_has("avx2", missing, sizeof missing), __builtin_cpu_supports("avx2") != 0);
  assert_int_equal(image_cpu_has("avx512f,avx512bw", missing, sizeof missing),
                   __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"));
  assert_false(image_cpu_has("sse2,warp9,+sse3,flux", missing, sizeof missing));
  assert_string_equal(missing, "warp9,flux");
  assert_false(image_cpu_has("warp9", missing, 4));
  assert_string_equal(missing, "war");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_each_bit_counts), cmocka_unit_test(test_version_text),
      cmocka_unit_test(test_not_written),     cmocka_unit_test(test_pack),
      cmocka_unit_test(test_dtypes),          cmocka_unit_test(test_cpu_features),
      cmocka_unit_test(test_gpu_text),        cmocka_unit_test(test_recipes),
      cmocka_unit_test(test_bad_maps),        cmocka_unit_test(test_always_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
