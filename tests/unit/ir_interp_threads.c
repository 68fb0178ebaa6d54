// The interpreter's control flow and thread-level code: masks, per-thread loops, lanes, barriers, partitions, placed warps.
#include "unit/ir_interp.h"

#include <math.h>

#define HEAD "module stage=tile warps=4 stages=2 lanes=32\n"

// A kernel that gives each of `threads` threads an i32 %r and stores it at out[tid].
static void per_thread(Run *r, const char *head, const char *body, int32_t *out, int threads, int64_t n) {
  char text[6000];
  snprintf(
      text, sizeof text,
      "%skernel @k(%%out: ptr<i32>, %%n: i32) {\n  %%t = tid : thread i32\n  %%nt = to_thread %%n : thread i32\n"
      "  %%zero = const {value=0} : thread i32\n  %%one = const {value=1} : thread i32\n%s\n"
      "  %%outt = to_thread %%out : thread ptr<i32>\n  %%p = ptr_add %%outt, %%t : thread ptr<i32>\n  store %%p, %%r, _\n  return\n}\n",
      head, body);
  run_open(r, text, 1);
  memset(out, 0xff, (size_t)threads * 4);
  run_memory(r, out, (size_t)threads * 4, "out", 0, -1);
  run_launch(r, 0, "k", 1, (InterpArg[]){{.p = out}, {.i = n}});
  run_ok(r);
}

static void test_thread_if(void **state) {
  (void)state;
  Run r;
  int32_t out[128];
  per_thread(&r, HEAD,
             "  %c = cmp %t, %nt {cmp=slt} : thread i1\n"
             "  %r = if %c : thread i32 { %a = mul %t, %t : thread i32\n"
             "    %five = const {value=5} : thread i32\n %in = cmp %t, %five {cmp=slt} : thread i1\n"
             "    %b = if %in : thread i32 { yield %one } { yield %a }\n yield %b }\n"
             "    { %d = sub %zero, %t : thread i32\n yield %d }",
             out, 128, 70);
  for (int k = 0; k < 128; k++) assert_int_equal(out[k], k < 5 ? 1 : k < 70 ? k * k : -k);
  run_close(&r);
}

static void test_thread_loops(void **state) {
  (void)state;
  Run r;
  int32_t out[128];
  // Collatz steps of tid + 1, a while of a different length for each thread.
  per_thread(
      &r, HEAD,
      "  %two = const {value=2} : thread i32\n  %three = const {value=3} : thread i32\n  %x0 = add %t, %one : thread i32\n"
      "  %xe, %r = while %x0, %zero : thread i32, thread i32 { (%x: thread i32, %s: thread i32)\n"
      "    %go = cmp %x, %one {cmp=ne} : thread i1\n    cond_yield %go, %x, %s } { (%y: thread i32, %q: thread i32)\n"
      "    %h = div_s %y, %two : thread i32\n    %m = mul %y, %three : thread i32\n    %m1 = add %m, %one : thread i32\n"
      "    %odd = and %y, %one : thread i32\n    %isodd = cmp %odd, %one {cmp=eq} : thread i1\n"
      "    %next = select %isodd, %m1, %h : thread i32\n    %q1 = add %q, %one : thread i32\n    yield %next, %q1 }",
      out, 128, 0);
  for (int k = 0; k < 128; k++) {
    int steps = 0;
    for (int x = k + 1; x != 1; x = x % 2 ? 3 * x + 1 : x / 2) steps++;
    assert_int_equal(out[k], steps);
  }
  run_close(&r);
  // Sum of i*i for i = tid, tid + 3, .. < n; then downwards.
  per_thread(
      &r, HEAD,
      "  %three = const {value=3} : thread i32\n"
      "  %up = for %t, %nt, %three, %zero : thread i32 { (%i: thread i32, %acc: thread i32)\n"
      "    %sq = mul %i, %i : thread i32\n    %acc1 = add %acc, %sq : thread i32\n    yield %acc1 }\n"
      "  %m3 = const {value=-3} : thread i32\n"
      "  %r = for %nt, %t, %m3, %up : thread i32 { (%j: thread i32, %bcc: thread i32)\n    %b1 = sub %bcc, %j : thread i32\n    yield %b1 }",
      out, 128, 100);
  for (int k = 0; k < 128; k++) {
    int want = 0;
    for (int i = k; i < 100; i += 3) want += i * i;
    for (int i = 100; i > k; i -= 3) want -= i;
    assert_int_equal(out[k], want);
  }
  run_close(&r);
}

static void test_loop_edges(void **state) {
  (void)state;
  Run r;
  int32_t out[128];
  // Bounds at the ends of the type must not wrap; loops may swap what they carry; an unsigned loop passes 2^31.
  per_thread(
      &r, HEAD,
      "  %lo = const {value=2147483640} : i32\n  %hi = const {value=2147483647} : i32\n  %st = const {value=5} : i32\n"
      "  %z = const {value=0} : i32\n  %o = const {value=1} : i32\n"
      "  %a, %b, %n1 = for %lo, %hi, %st, %z, %o, %z : i32, i32, i32 { (%i: i32, %x: i32, %y: i32, %c: i32)\n"
      "    %c1 = add %c, %o : i32\n    yield %y, %x, %c1 }\n"
      "  %ulo = const {value=2147483646} : i32\n  %uhi = const {value=-2147483646} : i32\n"
      "  %u = for %ulo, %uhi, %o, %z {uns_iv=true} : i32 { (%k: i32, %cu: i32)\n    %cu1 = add %cu, %o : i32\n    yield %cu1 }\n"
      "  %ten = const {value=10} : i32\n  %h = const {value=100} : i32\n  %a10 = mul %a, %ten : i32\n  %ab = add %a10, %b : i32\n"
      "  %n10 = mul %n1, %h : i32\n  %s = add %ab, %n10 : i32\n  %th = const {value=1000} : i32\n  %u1 = mul %u, %th : i32\n"
      "  %s2 = add %s, %u1 : i32\n  %r = to_thread %s2 : thread i32",
      out, 128, 0);
  assert_int_equal(out[3], 4 * 1000 + 2 * 100 + 0 * 10 + 1);
  run_close(&r);
}

static void test_switch(void **state) {
  (void)state;
  Run r;
  int32_t out[128];
  per_thread(
      &r, HEAD,
      "  %three = const {value=3} : thread i32\n  %k4 = and %t, %three : thread i32\n"
      "  %a = switch %k4 {cases=[0, 2]} : thread i32 { yield %one } { %tt = add %t, %t : thread i32\n yield %tt } { yield %zero }\n"
      "  %b = switch %n {cases=[4, 9]} : i32 { %x = const {value=40} : i32\n yield %x } { %y = const {value=90} : i32\n yield %y }"
      " { %w = const {value=7} : i32\n yield %w }\n"
      "  %bt = to_thread %b : thread i32\n  %r = add %a, %bt : thread i32",
      out, 128, 9);
  for (int k = 0; k < 128; k++) assert_int_equal(out[k], 90 + (k % 4 == 0 ? 1 : k % 4 == 2 ? 2 * k : 0));
  run_close(&r);
}

static void test_lanes(void **state) {
  (void)state;
  for (int lanes = 32; lanes <= 64; lanes += 32) {
    Run r;
    int32_t out[256];
    char head[80];
    snprintf(head, sizeof head, "module stage=tile warps=4 stages=2 lanes=%d\n", lanes);
    per_thread(
        &r, head,
        "  %five = const {value=5} : thread i32\n  %d = shfl %t, %five {shfl=down} : thread i32\n  %x = shfl %t, %five {shfl=xor} : thread i32\n"
        "  %u = shfl %t, %five {shfl=up} : thread i32\n  %i = shfl %t, %five {shfl=idx} : thread i32\n"
        "  %odd = and %t, %one : thread i32\n  %isodd = cmp %odd, %one {cmp=eq} : thread i1\n  %bal = ballot %isodd : thread i64\n"
        "  %low = trunc %bal : thread i32\n  %nb = cmp %t, %nt {cmp=slt} : thread i1\n"
        "  %am = if %nb : thread i32 { %m = active_mask : thread i64\n %mt = trunc %m : thread i32\n yield %mt } { yield %zero }\n"
        "  %a = add %d, %x : thread i32\n  %b = add %u, %i : thread i32\n  %ab = xor %a, %b : thread i32\n"
        "  %abl = add %ab, %low : thread i32\n  %r = add %abl, %am : thread i32",
        out, 4 * lanes, 40);
    for (int k = 0; k < 4 * lanes; k++) {
      const int own = k % lanes, w = k - own;
      const int down = own + 5 < lanes ? k + 5 : k, x = (own ^ 5) + w, up = own >= 5 ? k - 5 : k, idx = w + 5;
      uint32_t active = 0;
      for (int q = 0; q < 32; q++)
        if (w + q < 40) active |= 1u << q;
      assert_int_equal((uint32_t)out[k],
                       (uint32_t)((down + x) ^ (up + idx)) + 0xaaaaaaaau + (k < 40 ? active : 0));
    }
    run_close(&r);
  }
}

// Warps talk through memory inside of one span: warp 1 waits for what warp 0 publishes later in the program.
static void test_warps_run_apart(void **state) {
  (void)state;
  Run r;
  int32_t out[130] = {0};
  for (int seed = 0; seed < 4; seed++) {
    run_open(
        &r,
        HEAD
        "kernel @k(%out: ptr<i32>) {\n"
        "  %t = tid : thread i32\n  %one = const {value=1} : i32\n  %o1 = const {value=128} : i32\n  %f = ptr_add %out, %o1 : ptr<i32>\n"
        "  %ft = to_thread %f : thread ptr<i32>\n  %outt = to_thread %out : thread ptr<i32>\n"
        "  %k32 = const {value=32} : thread i32\n  %k0 = const {value=0} : thread i32\n"
        "  %is32 = cmp %t, %k32 {cmp=eq} : thread i1\n  %is0 = cmp %t, %k0 {cmp=eq} : thread i1\n"
        "  if %is32 { %v1 = const {value=1} : thread i32\n %w = wait %ft, _, %v1 {cmp=sge, order=acquire, scope=gpu} : token\n yield }"
        " { yield }\n"
        "  if %is0 { %v2 = const {value=1} : thread i32\n store %ft, %v2, _ {order=release, scope=gpu}\n yield } { yield }\n"
        "  barrier\n"
        "  %p = ptr_add %outt, %t : thread ptr<i32>\n  store %p, %t, _\n  return\n}\n",
        1);
    memset(out, 0, sizeof out);
    run_memory(&r, out, sizeof out, "out", 0, -1);
    run_launch(&r, 0, "k", 1, (InterpArg[]){{.p = out}});
    r.config.seed = (uint64_t)seed;
    run_ok(&r);
    for (int k = 0; k < 128; k++) assert_int_equal(out[k], k);
    run_close(&r);
  }
}

static void test_barriers_in_loops(void **state) {
  (void)state;
  // Each thread adds its right neighbour's value, 10 times, with barriers between read and write.
  Run r;
  int32_t out[128];
  for (int k = 0; k < 128; k++) out[k] = k;
  run_open(
      &r,
      HEAD
      "kernel @k(%out: ptr<i32>, %n: i32) {\n"
      "  %t = tid : thread i32\n  %outt = to_thread %out : thread ptr<i32>\n  %one = const {value=1} : thread i32\n"
      "  %mask = const {value=127} : thread i32\n  %t1 = add %t, %one : thread i32\n  %nb = and %t1, %mask : thread i32\n"
      "  %p = ptr_add %outt, %t : thread ptr<i32>\n  %q = ptr_add %outt, %nb : thread ptr<i32>\n"
      "  %z = const {value=0} : i32\n  %o = const {value=1} : i32\n  %small = const {value=1000} : thread i32\n"
      "  for %z, %n, %o { (%i: i32)\n"
      "    %v = load %q, _, _ : thread i32\n    %w = load %p, _, _ : thread i32\n    barrier\n    %s = add %v, %w : thread i32\n"
      "    %ok = cmp %s, %small {cmp=slt} : thread i1\n    if %ok { store %p, %s, _\n yield } { store %p, %small, _\n yield }\n"
      "    barrier\n    yield }\n  return\n}\n",
      1);
  run_memory(&r, out, sizeof out, "out", 0, -1);
  run_launch(&r, 0, "k", 1, (InterpArg[]){{.p = out}, {.i = 10}});
  r.config.seed = 5;
  run_ok(&r);
  int want[128], next[128];
  for (int k = 0; k < 128; k++) want[k] = k;
  for (int s = 0; s < 10; s++) {
    for (int k = 0; k < 128; k++)
      next[k] = want[k] + want[(k + 1) & 127] < 1000 ? want[k] + want[(k + 1) & 127] : 1000;
    memcpy(want, next, sizeof want);
  }
  for (int k = 0; k < 128; k++) assert_int_equal(out[k], want[k]);
  run_close(&r);
}

static void test_spin_lock(void **state) {
  (void)state;
  // 40 instances of 4 ranks add to a plain counter under a compare-and-swap lock.
  Run r;
  int32_t lock[2] = {0};
  for (int seed = 0; seed < 3; seed++) {
    run_open(
        &r,
        HEAD
        "kernel @k(%l: ptr<i32>) {\n  %z = const {value=0} : i32\n  %o = const {value=1} : i32\n"
        "  %c = ptr_add %l, %o : ptr<i32>\n  %first = atomic_cas %l, %z, %o {order=acquire, scope=sys} : i32\n"
        "  %e = while %first : i32 { (%x: i32) %busy = cmp %x, %z {cmp=ne} : i1\n cond_yield %busy, %x } { (%y: i32)\n"
        "    %again = atomic_cas %l, %z, %o {order=acquire, scope=sys} : i32\n yield %again }\n"
        "  %v = load %c, _, _ : i32\n  %v1 = add %v, %o : i32\n  store %c, %v1, _\n"
        "  barrier\n  %old = atomic_rmw %l, %z, _ {rmw=xchg, order=release, scope=sys} : i32\n  return\n}\n",
        4);
    memset(lock, 0, sizeof lock);
    run_memory(&r, lock, sizeof lock, "lock", -1, -1);
    const InterpArg args[] = {{.p = lock}};
    for (int k = 0; k < 4; k++) run_launch(&r, k, "k", 10, args);
    r.config.seed = (uint64_t)seed;
    r.config.check = seed > 0;
    run_ok(&r);
    assert_int_equal(lock[1], 40);
    run_close(&r);
  }
}

static void test_calls(void **state) {
  (void)state;
  Run r;
  int32_t out[128];
  char text[3000];
  snprintf(
      text, sizeof text, "%s%s", HEAD,
      "func @twice(%x: thread i32) -> thread i32 {\n  %y = add %x, %x : thread i32\n  return %y\n}\n"
      "func @same(%x: thread i32, %k: thread i32) -> thread i32, thread i32 {\n  %c = cmp %x, %k {cmp=sgt} : thread i1\n"
      "  %z = if %c : thread i32 { %d = call %x {callee=@twice} : thread i32\n yield %d } { yield %x }\n  return %z, %x\n}\n");
  per_thread(
      &r, text,
      "  %a, %b = call %t, %nt {callee=@same} : thread i32, thread i32\n  %cc, %d = call %a, %nt {callee=@same} : thread i32, thread i32\n"
      "  %s = sub %cc, %d : thread i32\n  %r = add %s, %b : thread i32",
      out, 128, 50);
  for (int k = 0; k < 128; k++) {
    const int a = k > 50 ? 2 * k : k, c = a > 50 ? 2 * a : a;
    assert_int_equal(out[k], c - a + k);
  }
  run_close(&r);
}

// ---- partitions, mbarriers, asynchronous copies ----------------------------------------------------------------------------------
static void test_partitions(void **state) {
  (void)state;
  // A producer warp copies rows through a ring of two stages to three consumer warps; tokens, phases, both directions.
  static float x[8 * 64], y[8 * 64];
  for (int k = 0; k < 512; k++) x[k] = (float)k;
  for (int seed = 0; seed < 5; seed++) {
    Run r;
    run_open(
        &r,
        "module stage=tile warps=4 stages=2 lanes=32\n"
        "kernel @k(%x: ptr<f32>, %y: ptr<f32>) {\n"
        "  %m = mem_alloc : memdesc<2*1x64xf32, shared>\n"
        "  %full = mbarrier_alloc {count=1} : mbarrier<2>\n  %empty = mbarrier_alloc {count=1} : mbarrier<2>\n"
        "  %z = const {value=0} : i32\n  %o = const {value=1} : i32\n  %eight = const {value=8} : i32\n  %w = const {value=64} : i32\n"
        "  %bytes = const {value=256} : i32\n  %n64 = const {value=64} : i64\n  %s1 = const {value=1} : i64\n  %n8 = const {value=8} : i64\n"
        "  %d = make_desc %x, %n8, %n64, %n64, %s1 : desc<1x64xf32>\n"
        "  warp_partitions {first=[0, 1], warps=[1, 3]} {\n"
        "    for %z, %eight, %o { (%i: i32) %st = and %i, %o : i32\n %h = shr_u %i, %o : i32\n %ph0 = and %h, %o : i32\n"
        "      %ph = xor %ph0, %o : i32\n"
        "      %t0 = mbarrier_wait %empty, %st, %ph : token\n"
        "      mbarrier_expect %full, %st, %bytes\n %v = mem_view %m, %st : memdesc<1x64xf32, shared>\n"
        "      desc_load_async %d, %v, %full, %st, %i, %z\n yield }\n    yield } {\n"
        "    for %z, %eight, %o { (%j: i32) %st2 = and %j, %o : i32\n %h2 = shr_u %j, %o : i32\n %ph2 = and %h2, %o : i32\n"
        "      %t1 = mbarrier_wait %full, %st2, %ph2 : token\n %v2 = mem_view %m, %st2 : memdesc<1x64xf32, shared>\n"
        "      %row0 = mem_load %v2 : tile<1x64xf32>\n %row = reshape %row0 : tile<64xf32>\n %two = fadd %row, %row : tile<64xf32>\n"
        "      mbarrier_arrive %empty, %st2\n"
        "      %r = arange {start=0, end=64} : tile<64xi32>\n %base = mul %j, %w : i32\n %bs = splat %base : tile<64xi32>\n %ix = add %bs, %r : tile<64xi32>\n"
        "      %ys = splat %y : tile<64xptr<f32>>\n %yp = ptr_add %ys, %ix : tile<64xptr<f32>>\n store %yp, %two, _\n yield }\n"
        "    yield }\n"
        "  return\n}\n",
        1);
    memset(y, 0, sizeof y);
    run_memory(&r, x, sizeof x, "x", 0, -1);
    run_memory(&r, y, sizeof y, "y", 0, -1);
    run_launch(&r, 0, "k", 1, (InterpArg[]){{.p = x}, {.p = y}});
    r.config.seed = (uint64_t)seed;
    run_ok(&r);
    for (int k = 0; k < 512; k++) assert_true(y[k] == 2 * x[k]);
    run_close(&r);
  }
}

static void test_async_copies(void **state) {
  (void)state;
  static int32_t x[64], y[64];
  for (int k = 0; k < 64; k++) x[k] = 3 * k;
  Run r;
  run_open(
      &r,
      HEAD
      "kernel @k(%x: ptr<i32>, %y: ptr<i32>) {\n  %m = mem_alloc : memdesc<64xi32, shared>\n"
      "  %r = arange {start=0, end=64} : tile<64xi32>\n  %k50 = const {value=50} : tile<64xi32>\n"
      "  %mask = cmp %r, %k50 {cmp=slt} : tile<64xi1>\n  %other = const {value=-1} : tile<64xi32>\n"
      "  %xs = splat %x : tile<64xptr<i32>>\n  %xp = ptr_add %xs, %r : tile<64xptr<i32>>\n"
      "  %t = copy_async %m, %xp, %mask, %other : token\n  %w = async_wait %t : token\n"
      "  %v = mem_load %m : tile<64xi32>\n  %ys = splat %y : tile<64xptr<i32>>\n  %yp = ptr_add %ys, %r : tile<64xptr<i32>>\n"
      "  store %yp, %v, _\n  return\n}\n",
      1);
  run_memory(&r, x, sizeof x, "x", 0, -1);
  run_memory(&r, y, sizeof y, "y", 0, -1);
  run_launch(&r, 0, "k", 1, (InterpArg[]){{.p = x}, {.p = y}});
  run_ok(&r);
  for (int k = 0; k < 64; k++) assert_int_equal(y[k], k < 50 ? x[k] : -1);
  run_close(&r);
}

// ---- the placed stage ----------------------------------------------------------------------------------------------------------
static void test_placed(void **state) {
  (void)state;
  static float x[64], y[64], z[16];
  for (int k = 0; k < 64; k++) x[k] = (float)k / 8;
  for (int fiber = 0; fiber < 2; fiber++) {
    char text[4000];
    snprintf(
        text, sizeof text,
        "module stage=placed warps=2 stages=1 lanes=32\n"
        "kernel @k(%%x: ptr<f32>, %%y: ptr<f32>, %%z: ptr<f32>) {\n"
        "  %%a = mem_alloc {offset=0} : memdesc<64xf32, scratch>\n  %%ma = mem_alloc {offset=256} : memdesc<4x8xf32, scratch>\n"
        "  %%mb = mem_alloc {offset=384} : memdesc<8x4xf32, scratch>\n  %%mc = mem_alloc {offset=512} : memdesc<4x4xf32, scratch>\n"
        "  %%k0 = const {value=0} : i32\n  %%k1 = const {value=1} : i32\n  %%k8 = const {value=8} : i32\n  %%k64 = const {value=64} : i32\n"
        "  %%k4 = const {value=4} : i32\n  %%k32 = const {value=32} : i32\n"
        "  for %%k0, %%k64, %%k8 { (%%i: i32) %%p = ptr_add %%x, %%i : ptr<f32>\n %%v = load_vec %%p, _, _ : tile<8xf32>\n"
        "    %%w = fadd %%v, %%v : tile<8xf32>\n mem_set %%a, %%w, %%i\n yield }\n"
        "  warp_for {count=2, fiber=%s} { (%%w: i32) %%b = mul %%w, %%k32 : i32\n %%t = ramp %%b, %%k1 : tile<32xi32>\n"
        "    %%g = mem_gather %%a, %%t : tile<32xf32>\n %%s = fmul %%g, %%g : tile<32xf32>\n mem_scatter %%a, %%s, %%t\n %s\n yield }\n"
        "  for %%k0, %%k64, %%k8 { (%%j: i32) %%q = ptr_add %%y, %%j : ptr<f32>\n %%u = mem_get %%a, %%j : tile<8xf32>\n"
        "    %%e = vec_get %%u, %%k4 : f32\n %%u2 = vec_set %%u, %%k0, %%e : tile<8xf32>\n store_vec %%q, %%u2, _\n yield }\n"
        "  for %%k0, %%k4, %%k1 { (%%r: i32) %%o = mul %%r, %%k8 : i32\n %%xp = ptr_add %%x, %%o : ptr<f32>\n"
        "    %%row = load_vec %%xp, _, _ : tile<8xf32>\n mem_set %%ma, %%row, %%r, %%k0\n"
        "    for %%k0, %%k8, %%k1 { (%%cc: i32) %%el = vec_get %%row, %%cc : f32\n mem_set %%mb, %%el, %%cc, %%r\n yield }\n"
        "    for %%k0, %%k4, %%k1 { (%%cd: i32) %%one = const {value=1.0} : f32\n mem_set %%mc, %%one, %%r, %%cd\n yield }\n yield }\n"
        "  dot_mem %%mc, %%ma, %%mb\n"
        "  for %%k0, %%k4, %%k1 { (%%r2: i32) %%o2 = mul %%r2, %%k4 : i32\n %%zp = ptr_add %%z, %%o2 : ptr<f32>\n"
        "    %%c4 = mem_get %%mc, %%r2, %%k0 : tile<4xf32>\n store_vec %%zp, %%c4, _\n yield }\n  return\n}\n",
        fiber ? "true" : "false", fiber ? "barrier" : "");
    Run r;
    run_open(&r, text, 1);
    run_memory(&r, x, sizeof x, "x", 0, -1);
    run_memory(&r, y, sizeof y, "y", 0, -1);
    run_memory(&r, z, sizeof z, "z", 0, -1);
    run_launch(&r, 0, "k", 3, (InterpArg[]){{.p = x}, {.p = y}, {.p = z}});
    r.config.seed = (uint64_t)fiber;
    run_ok(&r);
    for (int k = 0; k < 64; k++) {
      const int from = k % 8 ? k : k + 4;
      assert_true(y[k] == 4 * x[from] * x[from]);
    }
    for (int i = 0; i < 4; i++) {
      for (int j = 0; j < 4; j++) {
        float want = 1;
        for (int q = 0; q < 8; q++) want += x[i * 8 + q] * x[j * 8 + q];
        assert_true(fabsf(z[i * 4 + j] - want) < 1e-4f);
      }
    }
    run_close(&r);
  }
}

// ---- people -----------------------------------------------------------------------------------------------------------------------
typedef struct Lines {
  char text[2000];
} Lines;
static void take(void *user, int rank, const char *line) {
  Lines *l = user;
  const size_t n = strlen(l->text);
  snprintf(l->text + n, sizeof l->text - n, "%d %s\n", rank, line);
}

static void test_print_assert(void **state) {
  (void)state;
  Run r;
  Lines lines = {""};
  run_open(
      &r,
      HEAD
      "kernel @k(%n: i32) {\n  %t = arange {start=5, end=7} : tile<2xi32>\n  print %t {prefix=\"t: \"}\n"
      "  %h = const {value=255} : i32\n  print %h, %n {prefix=\"two \", hex=true}\n  %f = const {value=1.5} : f16\n  print %f\n"
      "  %z = const {value=3} : i32\n  %c = cmp %n, %z {cmp=slt} : i1\n  assert %c {msg=\"n too large\"}\n  return\n}\n",
      2);
  run_launch(&r, 1, "k", 1, (InterpArg[]){{.i = 2}});
  r.config.print = take;
  r.config.user = &lines;
  run_ok(&r);
  assert_string_equal(
      lines.text,
      "1 pid (0, 0, 0) idx (0) t: 5\n1 pid (0, 0, 0) idx (1) t: 6\n1 pid (0, 0, 0) two (operand 0) 0x000000ff\n"
      "1 pid (0, 0, 0) two (operand 1) 0x00000002\n1 pid (0, 0, 0) 1.500000\n");
  r.cmds[0].args = (InterpArg[]){{.i = 4}};
  run_fails(&r, ST_ASSERT, FAULT_ASSERT, "n too large|k:11|rank 1");
  run_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_thread_if),
                                     cmocka_unit_test(test_thread_loops),
                                     cmocka_unit_test(test_loop_edges),
                                     cmocka_unit_test(test_switch),
                                     cmocka_unit_test(test_lanes),
                                     cmocka_unit_test(test_warps_run_apart),
                                     cmocka_unit_test(test_barriers_in_loops),
                                     cmocka_unit_test(test_spin_lock),
                                     cmocka_unit_test(test_calls),
                                     cmocka_unit_test(test_partitions),
                                     cmocka_unit_test(test_async_copies),
                                     cmocka_unit_test(test_placed),
                                     cmocka_unit_test(test_print_assert)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
