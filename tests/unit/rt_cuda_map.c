// Tensor maps of launches, over the driver made of host memory: the numbers that the recipes give and the driver is told, what is
// refused and how it is said, and that a launch with the arguments of one before encodes nothing.
#include "unit/rt_cuda.h"

#include <pthread.h>

// copy(a, rows, cols, d): maps of the matrix a[rows, cols] of bf16, whose rows start at multiples of 8 elements, and of d.
static const char PTX[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry copy(\n";

static ImageStep base_steps[] = {{IMAGE_STEP_ARG, 0, 0}}, rows_steps[] = {{IMAGE_STEP_ARG, 1, 0}},
                 cols_steps[] = {{IMAGE_STEP_ARG, 2, 0}}, one_steps[] = {{IMAGE_STEP_CONST, 0, 1}};
static ImageStep stride_steps[] = { // (cols + 7) / 8 * 8, in 32 bits
    {IMAGE_STEP_ARG, 2, 0},   {IMAGE_STEP_CONST, 0, 7}, {IMAGE_STEP_ADD, 0, 0},   {IMAGE_STEP_SEXT, 0, 32},
    {IMAGE_STEP_CONST, 0, 8}, {IMAGE_STEP_DIV_S, 0, 0}, {IMAGE_STEP_CONST, 0, 8}, {IMAGE_STEP_MUL, 0, 0}};
static ImageStep d_base[] = {{IMAGE_STEP_BASE, 3, 0}}, d_dim0[] = {{IMAGE_STEP_DIM, 3, 0}},
                 d_dim1[] = {{IMAGE_STEP_DIM, 3, 1}}, d_stride0[] = {{IMAGE_STEP_STRIDE, 3, 0}},
                 d_stride1[] = {{IMAGE_STEP_STRIDE, 3, 1}};
#define RECIPE(steps) \
  { steps, DT_COUNTOF(steps) }

static ImageMap maps[] = {
    {.name = "a",
     .dtype = IMAGE_BF16,
     .rank = 2,
     .box = {128, 64},
     .swizzle = 128,
     .base = RECIPE(base_steps),
     .sizes = {RECIPE(rows_steps), RECIPE(cols_steps)},
     .strides = {RECIPE(stride_steps), RECIPE(one_steps)}},
    {.name = "d",
     .dtype = IMAGE_F32,
     .rank = 2,
     .box = {8, 32},
     .pad_nan = true,
     .base = RECIPE(d_base),
     .sizes = {RECIPE(d_dim0), RECIPE(d_dim1)},
     .strides = {RECIPE(d_stride0), RECIPE(d_stride1)}},
};
static ImageArg args[] = {
    {.name = "a", .kind = IMAGE_ARG_PTR, .bits = 16, .dtype = IMAGE_BF16, .divisible = 1},
    {.name = "rows", .kind = IMAGE_ARG_INT, .bits = 32, .dtype = IMAGE_I32, .divisible = 1, .offset = 8},
    {.name = "cols", .kind = IMAGE_ARG_INT, .bits = 32, .dtype = IMAGE_I32, .divisible = 1, .offset = 12},
    {.name = "d",
     .kind = IMAGE_ARG_DESC,
     .bits = 32,
     .dtype = IMAGE_F32,
     .divisible = 1,
     .rank = 2,
     .block = {8, 32},
     .offset = 16},
    {.name = "alpha", .kind = IMAGE_ARG_FLOAT, .bits = 32, .dtype = IMAGE_F32, .divisible = 1, .offset = 104},
};

static Image *map_image(Arena *a) {
  Image *im = arena_new(a, Image);
  *im = (Image){.target = IMAGE_NVPTX,
                .producer = "test",
                .code = PTX,
                .code_bytes = sizeof PTX,
                .is_text = true,
                .sm = 80};
  ImageVariant *v = arena_new(a, ImageVariant);
  *v = (ImageVariant){.entry = "copy",
                      .args = args,
                      .nargs = DT_COUNTOF(args),
                      .args_bytes = 112,
                      .num_warps = 4,
                      .lanes = 32,
                      .maps = maps,
                      .nmaps = DT_COUNTOF(maps)};
  im->kernels = arena_new(a, ImageKernel);
  *im->kernels = (ImageKernel){"copy", v, 1};
  im->nkernels = 1;
  return im;
}

typedef struct Case {
  Gpu g;
  RtKernel *k;
  ImageDesc d;
  RtArg args[5];
} Case;
static FakeMap seen[2];
static FakeLaunch seen_launch;
static int see(const FakeLaunch *l) {
  seen_launch = *l;
  for (int i = 0; i < 2; i++) memcpy(&seen[i], (const char *)l->args + 128 + 128 * i, sizeof seen[i]);
  return 0;
}

static void case_up(Case *c) {
  memset(c, 0, sizeof *c);
  up(&c->g);
  fake()->kernel = see;
  Gpu g = c->g;
  OK(rt_kernel_load(g.rank, map_image(&c->g.arena), "copy", &c->k, &g.e));
  c->d = (ImageDesc){.base = 0x7000, .shape = {100, 48}, .strides = {64, 1}};
  c->args[0].bits = 0x10000;
  c->args[1].bits = 300;
  c->args[2].bits = 72;
  c->args[3].desc = &c->d;
  c->args[4].bits = 0x3f800000;
}
static void case_down(Case *c) {
  rt_kernel_destroy(c->k);
  down(&c->g);
}
static Status go(Case *c) {
  return rt_launch(c->k, c->g.stream, (uint32_t[3]){1, 1, 1}, c->args, 5, &c->g.e);
}
static void goes(Case *c) {
  if (go(c) != ST_OK) fail_msg("%s", c->g.e.text);
}
static void refuses(Case *c, const char *said) {
  const int launches = fake()->launches;
  assert_int_equal(go(c), ST_INVALID);
  if (!strstr(c->g.e.text, said)) fail_msg("'%s' is not in: %s", said, c->g.e.text);
  assert_int_equal(fake()->launches, launches);
}

static void test_numbers(void **state) {
  (void)state;
  Case c;
  case_up(&c);
  goes(&c);
  assert_int_equal(seen_launch.bytes, 128 + 256);
  const FakeMap *a = &seen[0], *d = &seen[1];
  assert_true(a->is_map && d->is_map);
  assert_int_equal(a->base, 0x10000);
  assert_int_equal(a->rank, 2);
  assert_int_equal(a->type, 9);
  assert_int_equal(a->sizes[0], 72);
  assert_int_equal(a->sizes[1], 300);
  assert_int_equal(a->strides[0], 144);
  assert_int_equal(a->box[0], 64);
  assert_int_equal(a->box[1], 128);
  assert_int_equal(a->swizzle, 3);
  assert_int_equal(a->nan, 0);
  assert_int_equal(d->base, 0x7000);
  assert_int_equal(d->type, 7);
  assert_int_equal(d->sizes[0], 48);
  assert_int_equal(d->sizes[1], 100);
  assert_int_equal(d->strides[0], 256);
  assert_int_equal(d->box[0], 32);
  assert_int_equal(d->box[1], 8);
  assert_int_equal(d->swizzle, 0);
  assert_int_equal(d->nan, 1);
  case_down(&c);
}

static void test_kept(void **state) {
  (void)state;
  Case c;
  case_up(&c);
  for (int i = 0; i < 10; i++) {
    c.args[4].bits = (uint64_t)i; // no map is made of it
    memset(seen, 0, sizeof seen);
    goes(&c);
    assert_int_equal(fake()->maps, 2);
    assert_int_equal(seen[0].sizes[1], 300);
    assert_int_equal(seen[1].base, 0x7000);
  }
  c.d.shape[0] = 101;
  goes(&c);
  assert_int_equal(fake()->maps, 4);
  assert_int_equal(seen[1].sizes[1], 101);
  // many at once: every launch gets its own numbers, whatever is still kept
  for (int turn = 0; turn < 3; turn++) {
    for (uint32_t i = 1; i < 100; i++) {
      c.args[1].bits = i;
      c.d.base = 0x1000 * i;
      goes(&c);
      assert_int_equal(seen[0].sizes[1], i);
      assert_int_equal(seen[1].base, 0x1000 * i);
    }
  }
  case_down(&c);
}

static void test_refused(void **state) {
  (void)state;
  Case c;
  case_up(&c);
  c.args[0].bits = 0x10008;
  refuses(
      &c,
      "kernel 'copy': tensor descriptor 'a': its base must be a multiple of 16 bytes, and 0x10008 is not");
  c.args[0].bits = 0x10000;
  c.args[2].bits = 75;
  refuses(&c,
          "descriptor 'a': its size along the last axis must be a multiple of 16 bytes, and 75 x 2 is not");
  c.args[2].bits = 72;
  c.d.strides[0] = 66;
  refuses(
      &c,
      "descriptor 'd': its stride along axis 0 must be a multiple of 16 bytes below 2^40, and 66 x 4 is not");
  c.d.strides[0] = (int64_t)1 << 38;
  refuses(&c, "below 2^40");
  c.d.strides[0] = -64;
  refuses(&c, "below 2^40");
  c.d.strides[0] = 64;
  c.d.strides[1] = 2;
  refuses(&c, "descriptor 'd': its last axis must have stride 1, not 2");
  c.d.strides[1] = 1;
  c.d.shape[0] = ((int64_t)1 << 32) + 1;
  refuses(&c, "descriptor 'd': its size along axis 0 must be at most 2^32, and 4294967297 is more");
  c.d.shape[0] = (int64_t)1 << 32;
  goes(&c);
  assert_int_equal(seen[1].sizes[1], (int64_t)1 << 32);
  fake()->fail_call = "TensorMapEncodeTiled"; // the driver's own refusal
  fake()->fail_status = 1;
  fake()->fail_after = 1;
  c.args[1].bits = 7;
  assert_int_equal(go(&c), ST_DEVICE);
  assert_non_null(strstr(c.g.e.text, "making the map of tensor descriptor 'd' of kernel 'copy'"));
  goes(&c); // what was made halfway is not kept
  assert_int_equal(seen[0].sizes[1], 7);
  case_down(&c);
}

// A tensor without elements: one element of padding, or one that takes what is written.
static void test_empty(void **state) {
  (void)state;
  static const unsigned char nan[64] = {[0 ... 63] = 0xff}, zero[64];
  Case c;
  case_up(&c);
  c.args[1].bits = 0;
  c.args[0].bits = 0; // no memory at all
  c.d.shape[1] = -3;
  c.d.base = 4;
  goes(&c);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(seen[i].sizes[0], 1);
    assert_int_equal(seen[i].sizes[1], 1);
  }
  assert_memory_equal((const void *)(uintptr_t)seen[0].base, zero, 64);
  assert_memory_equal((const void *)(uintptr_t)seen[1].base, nan, 64);
  const uint64_t reads = seen[0].base;
  rt_kernel_destroy(c.k);
  maps[0].writes = true;
  assert_int_equal(rt_kernel_load(c.g.rank, map_image(&c.g.arena), "copy", &c.k, &c.g.e), ST_OK);
  goes(&c);
  maps[0].writes = false;
  assert_true(seen[0].base >= reads + 128 && seen[0].base < reads + 256);
  case_down(&c);
}

// Where the first variant's maps cannot be made, the next one runs.
static void test_variants(void **state) {
  (void)state;
  Case c;
  case_up(&c);
  rt_kernel_destroy(c.k);
  Image *im = map_image(&c.g.arena);
  ImageVariant *v = arena_array(&c.g.arena, ImageVariant, 2);
  v[0] = v[1] = im->kernels[0].variants[0];
  v[1].maps = NULL;
  v[1].nmaps = 0;
  im->kernels[0].variants = v;
  im->kernels[0].nvariants = 2;
  assert_int_equal(rt_kernel_load(c.g.rank, im, "copy", &c.k, &c.g.e), ST_OK);
  goes(&c);
  assert_int_equal(seen_launch.bytes, 128 + 256);
  assert_string_equal(rt_kernel_passed_over(c.k), "");
  fake()->kernel = NULL;
  c.args[2].bits = 75;
  goes(&c);
  assert_int_equal(fake()->last.bytes, 112 + 8);
  // why, as the first such launch found it
  assert_non_null(strstr(rt_kernel_passed_over(c.k),
                         "descriptor 'a': its size along the last axis must be a multiple of 16 bytes"));
  c.args[2].bits = 72;
  c.args[0].bits = 0x10008;
  goes(&c);
  assert_non_null(strstr(rt_kernel_passed_over(c.k), "its size along the last axis"));
  case_down(&c);
}

// The same for a guard of an argument: nothing is made for the variant that it refuses.
static void test_guarded(void **state) {
  (void)state;
  Case c;
  case_up(&c);
  rt_kernel_destroy(c.k);
  Image *im = map_image(&c.g.arena);
  ImageVariant *v = arena_array(&c.g.arena, ImageVariant, 2);
  ImageArg guarded[DT_COUNTOF(args)];
  memcpy(guarded, args, sizeof args);
  guarded[1].divisible = 16;
  v[0] = v[1] = im->kernels[0].variants[0];
  v[0].args = guarded;
  v[1].nmaps = 0;
  im->kernels[0].variants = v;
  im->kernels[0].nvariants = 2;
  fake()->kernel = NULL;
  assert_int_equal(rt_kernel_load(c.g.rank, im, "copy", &c.k, &c.g.e), ST_OK);
  goes(&c);
  assert_string_equal(rt_kernel_passed_over(c.k), "'rows' is no multiple of 16");
  case_down(&c);
}

// Nothing stands behind the first variant: the error says why, where the compiler knew.
static void test_nothing_behind(void **state) {
  (void)state;
  Case c;
  case_up(&c);
  rt_kernel_destroy(c.k);
  Image *im = map_image(&c.g.arena);
  im->kernels[0].variants[0].guard_text =
      "no variant without tensor maps stands behind it, as then: too large";
  assert_int_equal(rt_kernel_load(c.g.rank, im, "copy", &c.k, &c.g.e), ST_OK);
  c.args[0].bits = 0x10008;
  refuses(&c, "0x10008 is not; no variant without tensor maps stands behind it, as then: too large");
  case_down(&c);
}

// Which may be in a part of the code of its own.
static void test_parts_of_code(void **state) {
  (void)state;
  Case c;
  case_up(&c);
  rt_kernel_destroy(c.k);
  Image *im = map_image(&c.g.arena);
  ImageVariant *v = arena_array(&c.g.arena, ImageVariant, 2);
  ImageBlob part = {".visible .entry plain(\n", 24};
  v[0] = v[1] = im->kernels[0].variants[0];
  v[1].nmaps = 0;
  v[1].entry = "plain";
  v[1].code = 1;
  im->kernels[0].variants = v;
  im->kernels[0].nvariants = 2;
  im->more = &part;
  im->nmore = 1;
  fake()->kernel = NULL;
  assert_int_equal(rt_kernel_load(c.g.rank, im, "copy", &c.k, &c.g.e), ST_OK);
  assert_int_equal(fake()->modules, 2);
  goes(&c);
  assert_string_equal(fake()->last.entry, "copy");
  c.d.shape[1] = 45;
  goes(&c);
  assert_string_equal(fake()->last.entry, "plain");
  v[1].entry = "copy"; // which the second part has not
  RtKernel *k;
  assert_int_equal(rt_kernel_load(c.g.rank, im, "copy", &k, &c.g.e), ST_CORRUPT);
  part.code = "syntax error";
  part.bytes = 13;
  assert_int_equal(rt_kernel_load(c.g.rank, im, "copy", &k, &c.g.e), ST_CORRUPT);
  case_down(&c);
}

static void test_too_many_bytes(void **state) {
  (void)state;
  Case c;
  RtKernel *k;
  case_up(&c);
  Image *im = map_image(&c.g.arena);
  ImageVariant *v = &im->kernels[0].variants[0];
  v->args_bytes = 1024;
  v->nmaps = IMAGE_MAPS_MAX;
  v->maps = arena_array(&c.g.arena, ImageMap, v->nmaps);
  for (uint32_t i = 0; i < v->nmaps; i++) v->maps[i] = maps[0];
  assert_int_equal(rt_kernel_load(c.g.rank, im, "copy", &k, &c.g.e), ST_LIMIT);
  assert_non_null(strstr(c.g.e.text, "take 4160 bytes"));
  case_down(&c);
}

// Threads that launch at once: each launch gets the maps of its own arguments.
typedef struct Turn {
  Case *c;
  uint64_t rows;
} Turn;
static _Thread_local uint64_t mine;
static _Atomic int wrong;
static int compare(const FakeLaunch *l) {
  FakeMap m;
  memcpy(&m, (const char *)l->args + 128, sizeof m);
  if (m.sizes[1] != mine) wrong++;
  return 0;
}
static void *launches(void *user) {
  const Turn *t = user;
  RtArg a[5];
  RtError e;
  memcpy(a, t->c->args, sizeof a);
  for (uint64_t i = 0; i < 300; i++) {
    a[1].bits = mine = t->rows + i % 5;
    if (rt_launch(t->c->k, t->c->g.stream, (uint32_t[3]){1, 1, 1}, a, 5, &e) != ST_OK) wrong++;
  }
  return NULL;
}
static void test_threads(void **state) {
  (void)state;
  Case c;
  case_up(&c);
  fake()->kernel = compare;
  pthread_t t[4];
  Turn turns[4];
  for (uint64_t i = 0; i < 4; i++) {
    turns[i] = (Turn){&c, 10 + i};
    assert_int_equal(pthread_create(&t[i], NULL, launches, &turns[i]), 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  assert_int_equal(wrong, 0);
  case_down(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),        cmocka_unit_test(test_kept),
      cmocka_unit_test(test_refused),        cmocka_unit_test(test_empty),
      cmocka_unit_test(test_variants),       cmocka_unit_test(test_guarded),
      cmocka_unit_test(test_nothing_behind), cmocka_unit_test(test_parts_of_code),
      cmocka_unit_test(test_too_many_bytes), cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, find_fake, NULL);
}
