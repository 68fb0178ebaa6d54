// target: what compiled code says to the runtime, recorded by a runtime of one page.
#include "unit/target_run.h"

typedef struct Log {
  char text[2048];
  jmp_buf gone;
  int32_t *raise; // a waiting callback stores here
} Log;
static Log record;

static void say(const char *fmt, ...) DT_PRINTF(1, 2);
static void say(const char *fmt, ...) {
  const size_t n = strlen(record.text);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(record.text + n, sizeof record.text - n, fmt, ap);
  va_end(ap);
}
#define UNUSED(i) (void)(i)
static void on_wait(AbiInstance *i, const void *flag, uint32_t n, uint32_t bytes, uint64_t value, AbiCmp cmp,
                    AbiSite site) {
  UNUSED(i);
  say("wait n=%u bytes=%u value=%lld cmp=%d saw=%d site=%u\n", n, bytes, (long long)value, (int)cmp,
      *(const int32_t *)flag, site);
  if (record.raise) *record.raise = (int32_t)value;
}
static void on_yield(AbiInstance *i, AbiSite site, uint32_t turn) {
  UNUSED(i);
  UNUSED(site);
  say("yield %u\n", turn);
  if (record.raise) *record.raise += 1;
}
static void on_warps(AbiInstance *i, uint32_t n, void (*body)(AbiInstance *, void *, uint32_t), void *ctx) {
  say("warps %u\n", n);
  for (uint32_t w = n; w-- > 0;) { // any order will do
    AbiInstance warp = *i;
    warp.warp = w;
    body(&warp, ctx, w);
  }
}
static void on_block_barrier(AbiInstance *i, uint32_t warps, AbiSite site) {
  say("barrier %u of %u site=%u\n", i->warp, warps, site);
}
static void on_team_barrier(AbiInstance *i, int32_t team, uint32_t group, AbiSite site) {
  UNUSED(i);
  say("team barrier team=%d group=%u site=%u\n", team, group, site);
}
static void on_copy(AbiInstance *i, void *dst, const void *src, uint64_t bytes, int32_t pe, uint32_t flags,
                    AbiSite site) {
  UNUSED(i);
  say("copy bytes=%llu pe=%d flags=%u site=%u\n", (unsigned long long)bytes, pe, flags, site);
  memcpy(dst, src, bytes);
}
static void on_signal(AbiInstance *i, void *word, uint64_t value, uint32_t bytes, int32_t pe, uint32_t op,
                      AbiSite site) {
  UNUSED(i);
  UNUSED(word);
  say("signal value=%lld bytes=%u pe=%d op=%u site=%u\n", (long long)value, bytes, pe, op, site);
}
static void on_quiet(AbiInstance *i, uint32_t fence_only) {
  UNUSED(i);
  say("quiet %u\n", fence_only);
}
static void on_print(AbiInstance *i, AbiSite site, uint32_t lane, const uint64_t *bits, uint32_t n) {
  UNUSED(i);
  say("print site=%u lane=%d", site, (int)lane);
  for (uint32_t k = 0; k < n; k++) say(" %llx", (unsigned long long)bits[k]);
  say("\n");
}
static void on_assert(AbiInstance *i, AbiSite site) {
  UNUSED(i);
  say("assert site=%u\n", site);
  longjmp(record.gone, 1);
}
static void on_bad_peer(AbiInstance *i, int64_t pe, AbiSite site) {
  UNUSED(i);
  say("bad peer %lld site=%u\n", (long long)pe, site);
  longjmp(record.gone, 1);
}
static const AbiCpuCalls calls = {on_wait,   on_yield, on_warps, on_block_barrier, on_team_barrier, on_copy,
                                  on_signal, on_quiet, on_print, on_assert,        on_bad_peer};

#define HEAD "module stage=placed warps=4 stages=1 lanes=32\n"
static void make(Code *c, const char *text) {
  memset(&record, 0, sizeof record);
  code_make(c, NULL, text);
  c->rank.cpu = &calls;
  c->rank.rank = 1;
  c->rank.world = 3;
}
// Runs; 0 where the kernel came to its end.
static int run(Code *c, const char *name, const void *args) {
  record.text[0] = 0;
  if (setjmp(record.gone)) return 1;
  code_run(c, name, args);
  return 0;
}

static void test_symm_at(void **state) {
  (void)state;
  Code c;
  make(&c, HEAD "kernel @one(%p: ptr<f32>, %r: i32, %o: ptr<i64>) {\n"
                "  %q = symm_at %p, %r : ptr<f32>\n"
                "  %a = ptr2int %q : i64\n"
                "  store %o, %a, _\n"
                "  return\n"
                "}\n"
                "kernel @lanes(%p: ptr<f32>, %o: ptr<i64>) {\n"
                "  %c0 = const {value=0} : i32\n"
                "  %c1 = const {value=1} : i32\n"
                "  %i = ramp %c0, %c1 : tile<32xi32>\n"
                "  %c3 = const {value=3} : tile<32xi32>\n"
                "  %r = rem_u %i, %c3 : tile<32xi32>\n"
                "  %ps = splat %p : tile<32xptr<f32>>\n"
                "  %q = ptr_add %ps, %i : tile<32xptr<f32>>\n"
                "  %s = symm_at %q, %r : tile<32xptr<f32>>\n"
                "  %a = ptr2int %s : tile<32xi64>\n"
                "  store_vec %o, %a, _\n"
                "  return\n"
                "}\n");
  float seg0[8], seg1[64];
  const uint64_t peers0[3] = {0x1000, (uint64_t)(uintptr_t)seg0, 0x3000};
  const uint64_t peers1[3] = {0x100000, (uint64_t)(uintptr_t)seg1, 0x300000};
  const AbiSegment segments[2] = {{(uint64_t)(uintptr_t)seg0, sizeof seg0, peers0},
                                  {(uint64_t)(uintptr_t)seg1, sizeof seg1, peers1}};
  c.rank.segments = segments;
  c.rank.nsegments = 2;
  uint64_t out[32];
  struct {
    const float *p;
    int64_t r; // the kernel reads its lower half
    uint64_t *o;
  } args = {seg0 + 3, 2, out};
  assert_int_equal(run(&c, "one", &args), 0);
  assert_int_equal(out[0], 0x300c);
  args.p = seg1 + 63;
  args.r = 0;
  assert_int_equal(run(&c, "one", &args), 0);
  assert_int_equal(out[0], 0x100000 + 63 * 4);
  args.r = 1;
  assert_int_equal(run(&c, "one", &args), 0);
  assert_int_equal(out[0], (uint64_t)(uintptr_t)(seg1 + 63));
  args.r = 3;
  assert_int_equal(run(&c, "one", &args), 1);
  assert_string_equal(record.text, "bad peer 3 site=0\n");
  args.r = (int64_t)(uint32_t)-1;
  assert_int_equal(run(&c, "one", &args), 1);
  assert_string_equal(record.text, "bad peer -1 site=0\n");
  args.r = 0;
  args.p = (const float *)(uintptr_t)64; // in no segment
  assert_int_equal(run(&c, "one", &args), 1);
  assert_string_equal(record.text, "bad peer 0 site=0\n");
  const struct {
    const float *p;
    uint64_t *o;
  } lanes = {seg1, out};
  assert_int_equal(run(&c, "lanes", &lanes), 0);
  for (uint64_t i = 0; i < 32; i++) assert_int_equal(out[i], peers1[i % 3] + 4 * i);
  code_free(&c);
}

static void test_waits(void **state) {
  (void)state;
  Code c;
  make(&c, HEAD "kernel @k(%p: ptr<i32>, %n: i32, %v: i32) {\n"
                "  %t = wait %p, _, %v {cmp=sge, order=acquire, scope=sys, label=\"ready\"} : token\n"
                "  return\n"
                "}\n"
                "kernel @many(%p: ptr<i32>, %n: i32, %v: i32) {\n"
                "  %t = wait %p, %n, %v {cmp=eq, order=acquire, scope=sys} : token\n"
                "  return\n"
                "}\n"
                "kernel @acq(%p: ptr<i32>, %n: i32, %v: i32) {\n"
                "  %w = ext_s %v : i64\n"
                "  %p8 = bitcast %p : ptr<i64>\n"
                "  %t = acquire %p8, %w {label=\"flag\"} : token\n"
                "  return\n"
                "}\n"
                "kernel @poll(%p: ptr<i32>, %n: i32, %v: i32) {\n"
                "  while {poll=true} {\n"
                "    %x = load %p, _, _ {order=acquire, scope=sys} : i32\n"
                "    %go = cmp %x, %v {cmp=slt} : i1\n"
                "    cond_yield %go\n"
                "  } {\n"
                "    yield\n"
                "  }\n"
                "  return\n"
                "}\n");
  int64_t word = 5;
  int32_t *flag = (int32_t *)&word;
  const struct {
    int32_t *p;
    int32_t n, v;
  } args = {flag, 4, 5}, later = {flag, 4, 7}, minus = {flag, 4, -3};
  assert_int_equal(run(&c, "k", &args), 0);
  assert_string_equal(record.text, ""); // seen at once
  assert_int_equal(run(&c, "k", &minus), 0);
  assert_string_equal(record.text, "");
  assert_int_equal(run(&c, "k", &later), 0);
  assert_string_equal(record.text, "wait n=1 bytes=4 value=7 cmp=3 saw=5 site=0\n");
  assert_int_equal(run(&c, "many", &args), 0);
  assert_string_equal(record.text, "wait n=4 bytes=4 value=5 cmp=0 saw=5 site=1\n");
  assert_int_equal(run(&c, "acq", &later), 0);
  assert_string_equal(record.text, "wait n=1 bytes=8 value=7 cmp=3 saw=5 site=2\n");
  assert_int_equal(run(&c, "acq", &args), 0);
  assert_string_equal(record.text, "");
  record.raise = flag;
  assert_int_equal(run(&c, "poll", &later), 0);
  assert_string_equal(record.text, "yield 0\nyield 1\n");
  assert_string_equal(c.image->sites[0].what, "ready");
  for (int i = 0; i < 4; i++) assert_true(c.image->kernels[i].variants[0].has_waits);
  code_free(&c);
}

static void test_peers(void **state) {
  (void)state;
  Code c;
  make(&c, HEAD "kernel @k(%p: ptr<i64>, %q: ptr<i64>, %pe: i32) {\n"
                "  %v = const {value=9} : i64\n"
                "  %m = const {value=-2} : i32\n"
                "  %n = const {value=16} : i64\n"
                "  %p4 = bitcast %p : ptr<i32>\n"
                "  signal %p, %v, %pe {sigop=add}\n"
                "  signal %p4, %m, %pe {sigop=set}\n"
                "  release %p, %v, %pe\n"
                "  release %p, %v, _\n"
                "  release %p, %v, _ {sigop=add}\n"
                "  put %p, %q, %n, %pe {nbi=true}\n"
                "  get %q, %p, %n, %pe\n"
                "  put_signal %p, %q, %n, %p, %v, %pe {nbi=true, sigop=add}\n"
                "  put_fence\n"
                "  put_quiet\n"
                "  team_barrier _ {group=block, label=\"end\"}\n"
                "  return\n"
                "}\n"
                "kernel @ids(%o: ptr<i32>) {\n"
                "  %x = program_id {axis=1} : i32\n"
                "  %y = num_programs {axis=2} : i32\n"
                "  %r = rank : i32\n"
                "  %w = num_ranks : i32\n"
                "  %t = num_threads : i32\n"
                "  %s = warp_size : i32\n"
                "  %m = smid : i32\n"
                "  %a = timer : i64\n"
                "  %b = timer : i64\n"
                "  %d = cmp %a, %b {cmp=sle} : i1\n"
                "  %e = ext_u %d : i32\n"
                "  %c0 = const {value=0} : tile<8xi32>\n"
                "  %i0 = const {value=0} : i32\n"
                "  %i1 = const {value=1} : i32\n"
                "  %i2 = const {value=2} : i32\n"
                "  %i3 = const {value=3} : i32\n"
                "  %i4 = const {value=4} : i32\n"
                "  %i5 = const {value=5} : i32\n"
                "  %i6 = const {value=6} : i32\n"
                "  %i7 = const {value=7} : i32\n"
                "  %v0 = vec_set %c0, %i0, %x : tile<8xi32>\n"
                "  %v1 = vec_set %v0, %i1, %y : tile<8xi32>\n"
                "  %v2 = vec_set %v1, %i2, %r : tile<8xi32>\n"
                "  %v3 = vec_set %v2, %i3, %w : tile<8xi32>\n"
                "  %v4 = vec_set %v3, %i4, %t : tile<8xi32>\n"
                "  %v5 = vec_set %v4, %i5, %s : tile<8xi32>\n"
                "  %v6 = vec_set %v5, %i6, %m : tile<8xi32>\n"
                "  %v7 = vec_set %v6, %i7, %e : tile<8xi32>\n"
                "  store_vec %o, %v7, _\n"
                "  return\n"
                "}\n");
  int64_t p[2] = {100, 0}, q[2] = {42, 43};
  const struct {
    int64_t *p, *q;
    int32_t pe;
  } args = {p, q, 2};
  assert_int_equal(run(&c, "k", &args), 0);
  assert_string_equal(record.text, "signal value=9 bytes=8 pe=2 op=1 site=0\n"
                                   "signal value=-2 bytes=4 pe=2 op=0 site=1\n"
                                   "signal value=9 bytes=8 pe=2 op=0 site=2\n"
                                   "copy bytes=16 pe=2 flags=2 site=3\n"
                                   "copy bytes=16 pe=2 flags=1 site=4\n"
                                   "copy bytes=16 pe=2 flags=0 site=5\n"
                                   "signal value=9 bytes=8 pe=2 op=1 site=5\n"
                                   "quiet 1\n"
                                   "quiet 0\n"
                                   "team barrier team=0 group=2 site=6\n");
  assert_int_equal(p[0], 42);
  int32_t ids[8];
  const struct { int32_t *o; } to = {ids};
  c.inst.pid[1] = 6;
  c.inst.grid[2] = 7;
  c.inst.worker = 5;
  assert_int_equal(run(&c, "ids", &to), 0);
  const int32_t want[8] = {6, 7, 1, 3, 128, 32, 5, 1};
  assert_memory_equal(ids, want, sizeof want);
  assert_false(c.image->kernels[1].variants[0].has_waits);
  code_free(&c);
}

static void test_people(void **state) {
  (void)state;
  Code c;
  make(&c, HEAD "kernel @k(%x: f32, %h: f16, %i: i8, %p: ptr<i32>) {\n"
                "  print %x, %h, %i, %p {prefix=\"here\"}\n"
                "  print %i, %i {prefix=\"u\", uns=[0, 1]}\n"
                "  %i0 = const {value=0} : i32\n"
                "  %i3 = const {value=3} : i32\n"
                "  %v = ramp %i0, %i3 : tile<4xi32>\n"
                "  print %v, %x {prefix=\"v\", hex=true}\n"
                "  %lim = const {value=9} : tile<4xi32>\n"
                "  %in = cmp %v, %lim {cmp=sle} : tile<4xi1>\n"
                "  assert %in {msg=\"inside\"}\n"
                "  %neg = cmp %i0, %i3 {cmp=sgt} : i1\n"
                "  assert %neg {msg=\"never\"}\n"
                "  return\n"
                "}\n");
  const struct {
    float x;
    uint16_t h;
    int8_t i;
    int32_t *p;
  } args = {1.5f, 0x3c00, -2, (int32_t *)(uintptr_t)0x1234};
  assert_int_equal(run(&c, "k", &args), 1);
  assert_string_equal(record.text, "print site=0 lane=-1 3fc00000 3c00 fffffffffffffffe 1234\n"
                                   "print site=1 lane=-1 fffffffffffffffe fe\n"
                                   "print site=2 lane=0 0 3fc00000\n"
                                   "print site=2 lane=1 3 3fc00000\n"
                                   "print site=2 lane=2 6 3fc00000\n"
                                   "print site=2 lane=3 9 3fc00000\n"
                                   "assert site=4\n");
  assert_string_equal(c.image->sites[0].fmt, "f32h16i8p64");
  assert_string_equal(c.image->sites[1].fmt, "i8u8");
  assert_string_equal(c.image->sites[2].fmt, "x32f32");
  assert_string_equal(c.image->sites[4].what, "never");
  code_free(&c);
}

static void test_warps(void **state) {
  (void)state;
  static const char *const kinds[] = {"count=4", "count=4, fiber=true"};
  for (int k = 0; k < 2; k++) {
    Code c;
    char text[2048];
    snprintf(text, sizeof text,
             HEAD "kernel @k(%%o: ptr<i32>, %%n: i32) {\n"
                  "  %%c1 = const {value=1} : i32\n"
                  "  %%c32 = const {value=32} : i32\n"
                  "  %%buf = mem_alloc {offset=64} : memdesc<4x32xi32, scratch>\n"
                  "  %%vec = ramp %%n, %%c1 : tile<32xi32>\n"
                  "  %%even0 = const {value=1} : tile<32xi32>\n"
                  "  %%odd = and %%vec, %%even0 : tile<32xi32>\n"
                  "  %%c0 = const {value=0} : tile<32xi32>\n"
                  "  %%flag = cmp %%odd, %%c0 {cmp=ne} : tile<32xi1>\n"
                  "  warp_for {%s} { (%%w: i32)\n"
                  "    %%b = mul %%w, %%c32 : i32\n"
                  "    %%tid = ramp %%b, %%c1 : tile<32xi32>\n"
                  "    %%sum = add %%tid, %%vec : tile<32xi32>\n"
                  "    %%neg = sub %%c0, %%sum : tile<32xi32>\n"
                  "    %%s = select %%flag, %%sum, %%neg : tile<32xi32>\n"
                  "    %%zero = const {value=0} : i32\n"
                  "    mem_set %%buf, %%s, %%w, %%zero\n"
                  "    %s\n"
                  "    %%p = ptr_add %%o, %%b : ptr<i32>\n"
                  "    %%back = mem_get %%buf, %%w, %%zero : tile<32xi32>\n"
                  "    store_vec %%p, %%back, _\n"
                  "    yield\n"
                  "  }\n"
                  "  return\n"
                  "}\n",
             kinds[k], k ? "barrier" : "warp_barrier");
    make(&c, text);
    int32_t out[128];
    const struct {
      int32_t *o;
      int32_t n;
    } args = {out, 10};
    assert_int_equal(run(&c, "k", &args), 0);
    for (int i = 0; i < 128; i++) {
      const int lane = i % 32, sum = i + lane + 10;
      assert_int_equal(out[i], (lane + 10) % 2 ? sum : -sum);
    }
    assert_string_equal(record.text, k ? "warps 4\n"
                                         "barrier 3 of 4 site=0\nbarrier 2 of 4 site=0\n"
                                         "barrier 1 of 4 site=0\nbarrier 0 of 4 site=0\n"
                                       : "");
    assert_int_equal(c.image->kernels[0].variants[0].arena_bytes, 64 + 512);
    assert_true(c.image->kernels[0].variants[0].has_waits == (k == 1));
    code_free(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_symm_at), cmocka_unit_test(test_waits),
                                     cmocka_unit_test(test_peers), cmocka_unit_test(test_people),
                                     cmocka_unit_test(test_warps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
