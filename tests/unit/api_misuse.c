// Wrong arguments to the public API: a status and a text, never a crash, and nothing written to the outputs.
#include "api_ops.h"

static const char SOURCE[] = "import triton\n"
                             "import triton.language as tl\n"
                             "\n"
                             "@triton.jit\n"
                             "def scale(x_ptr, n, f, BLOCK: tl.constexpr):\n"
                             "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                             "    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * f, mask=i < n)\n";

typedef struct Fixture {
  dt_context *c;
  dt_team *team;
  dt_rank *r;
  dt_stream *s;
} Fixture;

static Fixture begin(void) {
  Fixture f = {0};
  const dt_context_options co = {.size = sizeof co, .deadline_seconds = 20};
  assert_int_equal(dt_context_create(&co, &f.c), DT_OK);
  assert_int_equal(dt_team_create(f.c, NULL, &f.team), DT_OK);
  f.r = dt_team_local(f.team, 0);
  assert_int_equal(dt_stream_create(f.r, "main", &f.s), DT_OK);
  return f;
}
static void end(Fixture *f) {
  dt_stream_destroy(f->s);
  dt_team_destroy(f->team);
  dt_context_destroy(f->c);
}

static void fails(const Fixture *f, dt_status got, dt_status want, const char *part, int line) {
  if (got != want)
    fail_msg("line %d: %s, not %s: %s", line, dt_status_name(got), dt_status_name(want), dt_error(f->c));
  if (!strstr(dt_error(f->c), part)) fail_msg("line %d: '%s' is not in: %s", line, part, dt_error(f->c));
}
#define FAILS(call, status, part) fails(&f, (call), (status), (part), __LINE__)
#define WORKS(call) \
  do { \
    dt_status st_ = (call); \
    if (st_ != DT_OK) fail_msg("%s: %s: %s", #call, dt_status_name(st_), dt_error(f.c)); \
  } while (0)

static dt_status compile(const Fixture *f, const dt_named *args, size_t n, const dt_compile_options *o,
                         dt_image **im) {
  return dt_compile_text(f->c, "scale.py", SOURCE, sizeof SOURCE - 1, "scale", args, n, o, im);
}

// ---- contexts and teams -------------------------------------------------------------------------------------------------
static void test_contexts_and_teams(void **state) {
  (void)state;
  dt_context *none = NULL;
  const dt_context_options wrong = {.size = 1};
  assert_int_equal(dt_context_create(&wrong, &none), DT_INVALID);
  assert_null(none);
  if (!strstr(dt_error(NULL), "dt_context_create")) fail_msg("%s", dt_error(NULL));
  Fixture f = begin();
  dt_team *t = NULL;
  dt_team_options o = {.size = 1};
  FAILS(dt_team_create(f.c, &o, &t), DT_INVALID, "dt_team_options.size");
  o = (dt_team_options){.size = sizeof o, .local_ranks = -1};
  FAILS(dt_team_create(f.c, &o, &t), DT_LIMIT, "1 to 256 ranks");
  o.local_ranks = 257;
  FAILS(dt_team_create(f.c, &o, &t), DT_LIMIT, "1 to 256 ranks");
  o = (dt_team_options){.size = sizeof o, .device = "gpu"};
  FAILS(dt_team_create(f.c, &o, &t), DT_NOT_FOUND, "no device 'gpu'");
  o = (dt_team_options){.size = sizeof o, .threads_per_rank = -3};
  FAILS(dt_team_create(f.c, &o, &t), DT_LIMIT, "threads");
  o = (dt_team_options){.size = sizeof o, .from_environment = true, .local_ranks = 4};
  FAILS(dt_team_create(f.c, &o, &t), DT_INVALID, "4 ranks of its own");
  assert_null(t);
  assert_null(dt_team_local(f.team, 1));
  assert_null(dt_team_local(f.team, -1));
  assert_null(dt_dtype_name((dt_dtype)99));
  assert_int_equal(dt_dtype_bytes((dt_dtype)99), 0);
  char x[8] = {0};
  assert_int_equal(dt_convert(x, (dt_dtype)99, x, DT_F32, 1), DT_INVALID);
  assert_int_equal(dt_convert(x, DT_F32, x, (dt_dtype)-1, 1), DT_INVALID);
  dt_context_destroy(NULL);
  dt_team_destroy(NULL);
  dt_image_destroy(NULL);
  dt_pack_destroy(NULL);
  dt_pack_writer_destroy(NULL);
  dt_stream_destroy(NULL);
  dt_event_destroy(NULL);
  dt_kernel_destroy(NULL);
  dt_plan_destroy(NULL);
  dt_free(f.r, NULL);
  end(&f);
}

// ---- memory and streams ---------------------------------------------------------------------------------------------------
static void test_memory_and_streams(void **state) {
  (void)state;
  Fixture f = begin();
  void *p = NULL, *q = NULL;
  FAILS(dt_alloc(f.r, SIZE_MAX, &p), DT_NO_MEMORY, "cannot have");
  FAILS(dt_symm_alloc(f.r, (size_t)1 << 50, "huge", &p), DT_NO_MEMORY, "no room");
  FAILS(dt_symm_alloc(f.r, SIZE_MAX, "huge", &p), DT_NO_MEMORY, "no room");
  assert_null(p);
  uint64_t local;
  FAILS(dt_symm_free(f.r, &local), DT_INVALID, "is not what symm_alloc gave");
  FAILS(dt_symm_register(f.r, NULL, 0, "none"), DT_INVALID, "empty buffer");
  FAILS(dt_symm_unregister(f.r, &local), DT_INVALID, "not a registered buffer");
  FAILS(dt_symm_peer(f.r, &local, 0, &q), DT_INVALID, "symmetric");
  WORKS(dt_symm_alloc(f.r, 64, "words", &p));
  FAILS(dt_symm_peer(f.r, p, 1, &q), DT_INVALID, "rank 1 does not exist");
  FAILS(dt_symm_peer(f.r, p, -1, &q), DT_INVALID, "rank -1 does not exist");
  assert_null(q);
  uint64_t *word = p;
  FAILS(dt_signal_set(f.s, word, 1, 5), DT_INVALID, "rank 5");
  FAILS(dt_signal_set(f.s, &local, 1, 0), DT_INVALID, "symmetric");
  FAILS(dt_signal_add(f.s, word + 100000000, 1, 0), DT_INVALID, "symmetric");
  FAILS(dt_signal_set(f.s, (uint64_t *)((char *)word + 1), 1, 0), DT_INVALID, "aligned to 8");
  dt_event *a = NULL, *b = NULL;
  double ms = -1;
  WORKS(dt_event_create(f.r, &a));
  WORKS(dt_event_create(f.r, &b));
  FAILS(dt_event_elapsed(a, b, &ms), DT_INVALID, "never recorded");
  assert_true(ms == -1);
  WORKS(dt_stream_wait_event(f.s, a)); // never recorded: nothing to wait for
  WORKS(dt_event_record(a, f.s));
  WORKS(dt_copy(f.s, word + 1, word, 0));
  WORKS(dt_copy_2d(f.s, word + 1, 0, word, 0, 8, 0));
  WORKS(dt_fill(f.s, word, 0, 0));
  WORKS(dt_event_record(b, f.s));
  WORKS(dt_stream_sync(f.s));
  WORKS(dt_event_elapsed(a, b, &ms));
  assert_true(ms >= 0);
  dt_event_destroy(a);
  dt_event_destroy(b);
  dt_stream *many[64] = {0};
  int n = 0;
  while (n < 64 && dt_stream_create(f.r, NULL, &many[n]) == DT_OK) n++;
  assert_int_equal(n, 63); // one is the fixture's
  assert_non_null(strstr(dt_error(f.c), "64 streams"));
  while (n > 0) dt_stream_destroy(many[--n]);
  WORKS(dt_symm_free(f.r, p));
  FAILS(dt_share(f.r, 3, word, 8), DT_INVALID, "rank 3");
  FAILS(dt_share(f.r, 0, word, 257), DT_INVALID, "257 bytes");
  end(&f);
}

// ---- compiling --------------------------------------------------------------------------------------------------------------
static void test_compiling(void **state) {
  (void)state;
  Fixture f = begin();
  dt_image *im = NULL;
  float x[4];
  dt_named good[] = {{"x_ptr", dt_ptr(DT_F32, x)},
                     {"n", dt_int(100)},
                     {"f", dt_float(2)},
                     {"BLOCK", dt_int(64)},
                     {"BLOCK", dt_int(64)}};
  const dt_compile_options bad_size = {.size = 5};
  FAILS(compile(&f, good, 4, &bad_size, &im), DT_INVALID, "dt_compile_options.size");
  dt_compile_options o = {.size = sizeof o, .target = "vax"};
  FAILS(compile(&f, good, 4, &o, &im), DT_UNSUPPORTED, "unknown target 'vax'");
  o = (dt_compile_options){.size = sizeof o, .num_warps = 3};
  FAILS(compile(&f, good, 4, &o, &im), DT_INVALID, "num_warps is 3");
  o = (dt_compile_options){.size = sizeof o, .num_stages = -1};
  FAILS(compile(&f, good, 4, &o, &im), DT_INVALID, "num_stages is -1");
  static const int limits[] = {-1, 1, 23, 256};
  for (int i = 0; i < 4; i++) {
    o = (dt_compile_options){.size = sizeof o, .max_registers = limits[i]};
    FAILS(compile(&f, good, 4, &o, &im), DT_INVALID, "a thread has from 24 to 255, or 0 for no limit");
  }
  const dt_named pointer_global[] = {{"N", dt_ptr(DT_F32, x)}};
  o = (dt_compile_options){.size = sizeof o, .globals = pointer_global, .nglobals = 1};
  FAILS(compile(&f, good, 4, &o, &im), DT_INVALID, "global 'N'");
  FAILS(compile(&f, good, 5, NULL, &im), DT_INVALID, "'BLOCK' is given twice");
  FAILS(compile(&f, good, 3, NULL, &im), DT_INVALID, "needs a value for 'BLOCK'");
  FAILS(compile(&f, NULL, 0, NULL, &im), DT_INVALID, "needs a value for 'x_ptr'");
  dt_named wrong[4];
  memcpy(wrong, good, sizeof wrong);
  wrong[1].name = "m";
  FAILS(compile(&f, wrong, 4, NULL, &im), DT_INVALID, "no parameter 'm'");
  wrong[1].name = NULL;
  FAILS(compile(&f, wrong, 4, NULL, &im), DT_INVALID, "argument 1 has no name");
  memcpy(wrong, good, sizeof wrong);
  wrong[3].value = dt_ptr(DT_F32, x);
  FAILS(compile(&f, wrong, 4, NULL, &im), DT_INVALID, "'BLOCK' is a constexpr");
  wrong[3].value = dt_str(NULL);
  FAILS(compile(&f, wrong, 4, NULL, &im), DT_INVALID, "'BLOCK'");
  wrong[3].value = dt_int(64);
  wrong[3].value.kind = (dt_value_kind)77;
  FAILS(compile(&f, wrong, 4, NULL, &im), DT_INVALID, "unknown kind or dtype");
  memcpy(wrong, good, sizeof wrong);
  wrong[0].value.dtype = (dt_dtype)44;
  FAILS(compile(&f, wrong, 4, NULL, &im), DT_INVALID, "unknown kind or dtype");
  memcpy(wrong, good, sizeof wrong);
  dt_desc d = {.base = x, .dtype = DT_F32, .rank = 9};
  wrong[0].value = dt_tensor(&d);
  FAILS(compile(&f, wrong, 4, NULL, &im), DT_INVALID, "1 to 5 axes");
  d = (dt_desc){.base = x, .dtype = DT_F32, .rank = 1, .shape = {4}, .strides = {2}, .block = {4}};
  FAILS(compile(&f, wrong, 4, NULL, &im), DT_INVALID, "stride 1");
  wrong[0].value.u.desc = NULL;
  FAILS(compile(&f, wrong, 4, NULL, &im), DT_INVALID, "'x_ptr'");
  FAILS(dt_compile_file(f.c, "/nowhere/k.py", NULL, NULL, 0, NULL, &im), DT_NOT_FOUND, "/nowhere/k.py");
  FAILS(dt_compile_file(f.c, NULL, NULL, NULL, 0, NULL, &im), DT_INVALID, "path");
  FAILS(dt_compile_text(f.c, NULL, SOURCE, 3, NULL, NULL, 0, NULL, &im), DT_INVALID, "name");
  FAILS(dt_compile_text(f.c, "k.py", NULL, 3, NULL, NULL, 0, NULL, &im), DT_INVALID, "text");
  FAILS(dt_compile_text(f.c, "k.py", SOURCE, sizeof SOURCE - 1, "nothing", NULL, 0, NULL, &im), DT_NOT_FOUND,
        "scale");
  FAILS(dt_compile_text(f.c, "k.py", "def (", 5, NULL, NULL, 0, NULL, &im), DT_COMPILE, "k.py:1");
  const char *text = "untouched";
  FAILS(dt_emit_file(f.c, NULL, NULL, NULL, 0, NULL, "tile", &text), DT_INVALID, "path");
  FAILS(dt_emit_file(f.c, "/nowhere/k.py", NULL, NULL, 0, NULL, NULL, &text), DT_INVALID, "stage");
  FAILS(dt_opt_text(f.c, "x.ir", "nonsense", 8, "fold", &text), DT_COMPILE, "x.ir");
  FAILS(dt_opt_text(f.c, "x.ir", NULL, 8, "fold", &text), DT_INVALID, "text");
  static const char empty[] = "module stage=tile warps=4 stages=2 lanes=32\n";
  FAILS(dt_opt_text(f.c, "x.ir", empty, sizeof empty - 1, "nonsense", &text), DT_INVALID, "nonsense");
  char list[8];
  FAILS(dt_list_kernels(f.c, NULL, list, sizeof list), DT_INVALID, "path");
  char path[PATH_MAX + 32];
  ops_root(path);
  strcat(path, "/kernels/matmul.py");
  FAILS(dt_list_kernels(f.c, path, list, sizeof list), DT_LIMIT, "bytes");
  assert_string_equal(text, "untouched");
  assert_null(im);
  end(&f);
}

// ---- launching ----------------------------------------------------------------------------------------------------------------
static void test_launching(void **state) {
  (void)state;
  Fixture f = begin();
  dt_image *im = NULL;
  dt_kernel *k = NULL;
  _Alignas(64) float x[256] = {0};
  const dt_named args[] = {
      {"x_ptr", dt_ptr(DT_F32, x)}, {"n", dt_int(64)}, {"f", dt_float(2)}, {"BLOCK", dt_int(64)}};
  WORKS(compile(&f, args, 4, NULL, &im));
  FAILS(dt_kernel_load(f.r, im, "nothing", &k), DT_NOT_FOUND, "it has scale");
  FAILS(dt_kernel_load(f.r, NULL, NULL, &k), DT_INVALID, "image");
  assert_null(k);
  WORKS(dt_kernel_load(f.r, im, NULL, &k));
  assert_null(dt_kernel_arg_name(k, 3));
  assert_null(dt_image_kernel_name(im, 1));
  const uint32_t grid[3] = {1, 1, 1};
  dt_value v[] = {dt_ptr(DT_F32, x), dt_int(64), dt_float(2)};
  FAILS(dt_launch(k, f.s, grid, v, 2), DT_INVALID, "takes 3 launch arguments, got 2");
  FAILS(dt_launch(k, f.s, grid, NULL, 3), DT_INVALID, "args");
  FAILS(dt_launch(k, f.s, NULL, v, 3), DT_INVALID, "grid");
  FAILS(dt_launch(k, NULL, grid, v, 3), DT_INVALID, "stream");
  v[0] = dt_ptr(DT_F16, x);
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID,
        "'x_ptr' takes a pointer of f32, the launch gives a pointer of f16");
  v[0] = dt_int(3);
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "the launch gives an integer");
  v[0] = dt_ptr(DT_F32, (char *)x + 4);
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "x_ptr to be a multiple of 16");
  v[0] = dt_ptr(DT_F32, x);
  v[0].dtype = (dt_dtype)1000;
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "'x_ptr'");
  v[0] = dt_ptr(DT_F32, x);
  v[1] = dt_int((int64_t)1 << 40);
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "'n' = 1099511627776 does not fit i32");
  v[1] = dt_float(2);
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "'n' takes an integer");
  v[1] = dt_int(65);
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "n to be a multiple of 16");
  v[1] = dt_int(64);
  v[2] = dt_ptr(DT_F32, x);
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "'f' takes a float");
  v[2].kind = (dt_value_kind)-1;
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "unknown kind");
  v[2] = dt_float(2);
  const uint32_t huge[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, empty[3] = {0, 5, 5};
  FAILS(dt_launch(k, f.s, huge, v, 3), DT_INVALID, "is too large");
  WORKS(dt_launch(k, f.s, empty, v, 3));
  WORKS(dt_stream_sync(f.s));
  for (int i = 0; i < 64; i++) assert_true(x[i] == 0);
  dt_kernel_destroy(k);
  dt_image_destroy(im);
  // 1 is folded into the code, so another value does not fit it
  k = NULL;
  const dt_named one[] = {
      {"x_ptr", dt_ptr(DT_F32, x)}, {"n", dt_int(1)}, {"f", dt_float(2)}, {"BLOCK", dt_int(64)}};
  WORKS(compile(&f, one, 4, NULL, &im));
  WORKS(dt_kernel_load(f.r, im, NULL, &k));
  v[1] = dt_int(2);
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "'n' was compiled as the constant 1; the launch gives 2");
  v[1] = dt_none();
  FAILS(dt_launch(k, f.s, grid, v, 3), DT_INVALID, "'n' was compiled as");
  v[1] = dt_int(1);
  x[0] = 4;
  WORKS(dt_launch(k, f.s, grid, v, 3));
  WORKS(dt_stream_sync(f.s));
  assert_true(x[0] == 8);
  dt_kernel_destroy(k);
  dt_image_destroy(im);
  end(&f);
}

// ---- images and packs -----------------------------------------------------------------------------------------------------------
static void test_images_and_packs(void **state) {
  (void)state;
  Fixture f = begin();
  dt_image *im = NULL, *back = NULL;
  dt_pack *pack = NULL;
  dt_pack_writer *w = NULL;
  float x[4];
  const dt_named args[] = {
      {"x_ptr", dt_ptr(DT_F32, x)}, {"n", dt_int(64)}, {"f", dt_float(2)}, {"BLOCK", dt_int(64)}};
  WORKS(compile(&f, args, 4, NULL, &im));
  FAILS(dt_image_open(f.c, "/nowhere/x.dtk", &back), DT_NOT_FOUND, "/nowhere/x.dtk");
  FAILS(dt_image_open(f.c, NULL, &back), DT_INVALID, "path");
  FAILS(dt_image_read(f.c, "", 0, &back), DT_CORRUPT, "image");
  FAILS(dt_image_read(f.c, NULL, 10, &back), DT_INVALID, "bytes");
  FAILS(dt_image_save(im, "/nowhere/x.dtk"), DT_NOT_FOUND, "/nowhere/x.dtk");
  FAILS(dt_image_save(im, NULL), DT_INVALID, "path");
  WORKS(dt_image_save(im, "whole.dtk"));
  FILE *file = fopen("whole.dtk", "rb");
  assert_non_null(file);
  static char bytes[1 << 20];
  size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_true(n > 100 && n < sizeof bytes);
  for (size_t cut = 0; cut < n; cut += 1 + n / 200) { // every length but the right one is refused
    dt_status st = dt_image_read(f.c, bytes, cut, &back);
    if (st != DT_CORRUPT && st != DT_VERSION) fail_msg("%zu of %zu bytes: %s", cut, n, dt_status_name(st));
  }
  for (size_t at = 0; at < n; at += 1 + n / 500) { // so is every changed byte
    bytes[at] ^= 0x41;
    dt_status st = dt_image_read(f.c, bytes, n, &back);
    if (st != DT_CORRUPT && st != DT_VERSION) fail_msg("byte %zu of %zu: %s", at, n, dt_status_name(st));
    bytes[at] ^= 0x41;
  }
  assert_null(back);
  WORKS(dt_image_read(f.c, bytes, n, &back));
  dt_image_destroy(back);
  WORKS(dt_pack_writer_create(f.c, &w));
  WORKS(dt_pack_writer_add(w, "one", im));
  WORKS(dt_pack_writer_add(w, "one", im));
  assert_true(dt_pack_writer_has(w, "one"));
  assert_false(dt_pack_writer_has(w, "two"));
  FAILS(dt_pack_writer_add(w, NULL, im), DT_INVALID, "key");
  FAILS(dt_pack_writer_add(w, "x", NULL), DT_INVALID, "image");
  FAILS(dt_pack_writer_save(w, "/nowhere/x.dtp"), DT_NOT_FOUND, "/nowhere/x.dtp");
  WORKS(dt_pack_writer_save(w, "one.dtp"));
  FAILS(dt_pack_open(f.c, "whole.dtk", &pack), DT_CORRUPT, "pack");
  FAILS(dt_image_open(f.c, "one.dtp", &back), DT_CORRUPT, "image");
  WORKS(dt_pack_open(f.c, "one.dtp", &pack));
  assert_string_equal(dt_pack_key(pack, 0), "one");
  assert_null(dt_pack_key(pack, 1));
  FAILS(dt_pack_get(pack, "two", &back), DT_NOT_FOUND, "no kernel 'two'");
  FAILS(dt_pack_get(pack, NULL, &back), DT_INVALID, "key");
  WORKS(dt_pack_get(pack, "one", &back));
  assert_string_equal(dt_image_kernel_name(back, 0), "scale");
  dt_image_destroy(back);
  // a plan whose kernels are not in its pack
  dt_plan *plan = NULL;
  dt_plan_options o = {.size = sizeof o, .op = "add", .dtype = DT_F32, .n = 100, .pack = pack};
  FAILS(dt_plan_create(f.r, &o, &plan), DT_NOT_FOUND, "elementwise.py:add_kernel|x_ptr=*f32");
  dt_pack_destroy(pack);
  dt_pack_writer_destroy(w);
  dt_image_destroy(im);
  end(&f);
}

// ---- plans ------------------------------------------------------------------------------------------------------------------------
static void test_plans(void **state) {
  (void)state;
  Fixture f = begin();
  char kernels[PATH_MAX];
  ops_root(kernels);
  strcat(kernels, "/kernels");
  dt_plan *plan = NULL;
  dt_plan_options o = {.size = sizeof o, .op = "add", .dtype = DT_F32, .n = 100, .kernels_dir = kernels};
  FAILS(dt_plan_create(f.r, NULL, &plan), DT_INVALID, "dt_plan_options.size");
  o.op = "fly";
  FAILS(dt_plan_create(f.r, &o, &plan), DT_NOT_FOUND, "no operator 'fly'; there are: add, softmax");
  o.op = NULL;
  FAILS(dt_plan_create(f.r, &o, &plan), DT_NOT_FOUND, "no operator '(null)'");
  o.op = "add";
  o.variant = "sideways";
  FAILS(dt_plan_create(f.r, &o, &plan), DT_INVALID, "add has no variant 'sideways'; it has: plain");
  o.variant = NULL;
  o.n = -1;
  FAILS(dt_plan_create(f.r, &o, &plan), DT_INVALID, "must not be negative");
  o.n = INT64_MAX;
  FAILS(dt_plan_create(f.r, &o, &plan), DT_LIMIT, "too large");
  o.n = 100;
  o.dtype = (dt_dtype)55;
  FAILS(dt_plan_create(f.r, &o, &plan), DT_INVALID, "no dtype 55");
  o.dtype = DT_I32;
  o.op = "softmax";
  FAILS(dt_plan_create(f.r, &o, &plan), DT_UNSUPPORTED, "softmax does not take elements of type i32");
  o.dtype = DT_F32;
  o.n = 1 << 20;
  FAILS(dt_plan_create(f.r, &o, &plan), DT_UNSUPPORTED, "rows of 1048576 elements");
  o.op = "add";
  o.n = 100;
  assert_null(plan);
  WORKS(dt_plan_create(f.r, &o, &plan));
  float x[100], y[100], z[101];
  for (int i = 0; i < 100; i++) x[i] = (float)i, y[i] = 1;
  void *t[] = {x, y, z + 1};
  FAILS(dt_plan_run(plan, f.s, t, 2), DT_INVALID, "add takes 3 tensors (x[n] y[n] out[n]), got 2");
  FAILS(dt_plan_run(plan, f.s, NULL, 3), DT_INVALID, "tensor 0");
  FAILS(dt_plan_run(plan, NULL, t, 3), DT_INVALID, "stream");
  t[1] = NULL;
  FAILS(dt_plan_run(plan, f.s, t, 3), DT_INVALID, "tensor 1");
  t[1] = (char *)y + 1;
  FAILS(dt_plan_run(plan, f.s, t, 3), DT_INVALID, "does not lie at a multiple");
  t[1] = y;
  WORKS(dt_plan_run(plan, f.s, t, 3));
  WORKS(dt_stream_sync(f.s));
  for (int i = 0; i < 100; i++) assert_true(z[i + 1] == (float)(i + 1));
  dt_plan_destroy(plan);
  assert_null(dt_operator_name(1000));
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_contexts_and_teams), cmocka_unit_test(test_memory_and_streams),
      cmocka_unit_test(test_compiling),          cmocka_unit_test(test_launching),
      cmocka_unit_test(test_images_and_packs),   cmocka_unit_test(test_plans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
