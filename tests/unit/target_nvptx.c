// target_nvptx: each family of ops from lowered IR text to PTX for three GPUs, assembled where ptxas is present: the expected
// instructions are there, nothing spills, and ptxas complains of nothing.
#include "unit/target_nvptx.h"

static const char *const machines[] = {"sm_80", "sm_89", "sm_90a"};
#define EACH_MACHINE(cpu) \
  for (size_t m_ = 0; m_ < DT_COUNTOF(machines); m_++) \
    for (const char *cpu = machines[m_]; cpu; cpu = NULL)
#define HEAD "module stage=lowered warps=4 stages=1 lanes=32\n"

static const char vector_add[] = //
    HEAD "kernel @add(%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32>, %n: i32) {\n"
         "  %pid = program_id {axis=0} : i32\n"
         "  %t = tid : thread i32\n"
         "  %b = const {value=128} : i32\n"
         "  %s = mul %pid, %b : i32\n"
         "  %st = to_thread %s : thread i32\n"
         "  %i = add %st, %t : thread i32\n"
         "  %nt = to_thread %n : thread i32\n"
         "  %m = cmp %i, %nt {cmp=slt} : thread i1\n"
         "  %xt = to_thread %x : thread ptr<f32>\n"
         "  %yt = to_thread %y : thread ptr<f32>\n"
         "  %ot = to_thread %o : thread ptr<f32>\n"
         "  %xp = ptr_add %xt, %i : thread ptr<f32>\n"
         "  %yp = ptr_add %yt, %i : thread ptr<f32>\n"
         "  %op = ptr_add %ot, %i : thread ptr<f32>\n"
         "  %a = load %xp, %m, _ : thread f32\n"
         "  %c = load %yp, %m, _ : thread f32\n"
         "  %r = fadd %a, %c : thread f32\n"
         "  store %op, %r, %m\n"
         "  return\n"
         "}\n";

static void test_vector_add(void **state) {
  (void)state;
  EACH_MACHINE(cpu) {
    Gpu g;
    gpu_make(&g, cpu, vector_add);
    const Image *im = g.image;
    const ImageVariant *v = im->kernels[0].variants;
    assert_int_equal(im->target, IMAGE_NVPTX);
    assert_string_equal(im->cpu_features, cpu);
    assert_int_equal(im->sm, strtol(cpu + 3, NULL, 10));
    assert_int_equal(im->sm_exact, !strcmp(cpu, "sm_90a"));
    assert_int_equal(v->args_bytes, 32);
    assert_int_equal(v->nargs, 4);
    assert_int_equal(v->num_warps, 4);
    assert_int_equal(v->shared_bytes, 0);
    if (!im->is_text) assert_in_range(v->registers, 4, 32);
    gpu_has(&g, ".entry add(");
    gpu_has(&g, ".reqntid 128");
    gpu_has(&g, ".version 8.4");
    gpu_has(&g, "ld.global.b32");
    gpu_has(&g, "add.f32");
    gpu_lacks(&g, ".local");
    const char *dir = getenv("KEEP_IMAGES"); // for people who try them on a GPU
    if (dir) {
      void *bytes;
      size_t n;
      char path[256];
      assert_int_equal(image_write(im, &g.arena, &bytes, &n, &g.diags), ST_OK);
      snprintf(path, sizeof path, "%s/add.%s.image", dir, cpu);
      assert_int_equal(os_write_file(path, bytes, n), ST_OK);
    }
    gpu_free(&g);
  }
}

// ---- one op after the other ------------------------------------------------------------------------
// A kernel of which each thread has its own pointer %p to the named type; `body` ends without the return.
static const char *thread_kernel(const char *params, const char *type, const char *body) {
  static char text[16384];
  snprintf(text, sizeof text,
           HEAD "kernel @k(%%x: ptr<%s>%s%s) {\n"
                "  %%t = tid : thread i32\n"
                "  %%tx = to_thread %%x : thread ptr<%s>\n"
                "  %%p = ptr_add %%tx, %%t : thread ptr<%s>\n"
                "%s  return\n}\n",
           type, *params ? ", " : "", params, type, type, body);
  return text;
}
typedef struct Case {
  const char *name, *params, *type, *body;
  const char *expect[6];
  int from; // first machine that has it, e.g. 90
} Case;

static void run_cases(const Case *cases, size_t n) {
  for (size_t k = 0; k < n; k++) {
    EACH_MACHINE(cpu) {
      const Case *c = &cases[k];
      Gpu g;
      const char *text = thread_kernel(c->params, c->type, c->body);
      if (strtol(cpu + 3, NULL, 10) < c->from) {
        if (gpu_try(&g, cpu, text) != ST_UNSUPPORTED) fail_msg("%s on %s was not refused", c->name, cpu);
        assert_true(g.diags.errors > 0);
      } else {
        gpu_make(&g, cpu, text);
        for (size_t i = 0; i < DT_COUNTOF(c->expect) && c->expect[i]; i++)
          if (!strstr(g.ptx, c->expect[i]))
            fail_msg("%s on %s: no '%s' in\n%s", c->name, cpu, c->expect[i], g.ptx);
      }
      gpu_free(&g);
    }
  }
}

static void test_memory(void **state) {
  (void)state;
  static const Case cases[] = {
      {"hints",
       "",
       "f32",
       "  %a = load %p, _, _ {cache=cg} : thread f32\n"
       "  %b = load %p, _, _ {evict=first} : thread f32\n"
       "  %c = load %p, _, _ {cache=cv} : thread f32\n"
       "  %s = fadd %a, %b : thread f32\n  %r = fadd %s, %c : thread f32\n"
       "  store %p, %r, _ {cache=wt}\n",
       {"ld.global.cg.b32", "ld.global.L1::evict_first.b32", "ld.global.cv.b32", "st.global.wt.b32"},
       0},
      {"order",
       "",
       "i32",
       "  %a = load %p, _, _ {order=acquire, scope=gpu} : thread i32\n"
       "  %b = load %p, _, _ {order=relaxed, scope=sys, volatile=true} : thread i32\n"
       "  %c = load %p, _, _ {volatile=true} : thread i32\n"
       "  %s = add %a, %b : thread i32\n  %r = add %s, %c : thread i32\n"
       "  store %p, %r, _ {order=release, scope=sys}\n",
       {"ld.acquire.gpu.global.b32", "ld.relaxed.sys.global.b32", "ld.volatile.global.b32",
        "st.release.sys.global.b32"},
       0},
      {"bytes",
       "",
       "i8",
       "  %z = const {value=0} : thread i8\n"
       "  %m = cmp %t, %t {cmp=ne} : thread i1\n"
       "  %a = load %p, %m, %z : thread i8\n"
       "  %b = add %a, %a : thread i8\n  store %p, %b, %m\n",
       {"ld.global.b8", "st.global.b8"},
       0},
      {"flags",
       "",
       "i1",
       "  %a = load %p, _, _ : thread i1\n  %c = const {value=1} : thread i1\n"
       "  %b = xor %a, %c : thread i1\n  store %p, %b, _\n",
       {"ld.global.b8", "st.global.b8"},
       0},
      {"pointers and f64",
       "",
       "f64",
       "  %a = load %p, _, _ : thread f64\n  %b = fadd %a, %a : thread f64\n  store %p, %b, _\n",
       {"ld.global.b64", "add.f64"},
       0},
      {"packs",
       "",
       "f32",
       "  %m = cmp %t, %t {cmp=eq} : thread i1\n"
       "  %a, %b, %c, %d = load_pack %p, _, _ : thread f32, thread f32, thread f32, thread f32\n"
       "  %e, %f = load_pack %p, _, _ {cache=cg} : thread f32, thread f32\n"
       "  %g = fadd %a, %e : thread f32\n  %h = fadd %b, %f : thread f32\n"
       "  store_pack %p, %m, %g, %h, %c, %d\n"
       "  store_pack %p, _, %d, %c\n",
       {"ld.global.v4.b32", "ld.global.cg.v2.b32", "st.global.v2.b32"},
       0},
      {"packs of halves",
       "%n: i32",
       "bf16",
       "  %nt = to_thread %n : thread i32\n"
       "  %m = cmp %t, %nt {cmp=slt} : thread i1\n  %one = const {value=1} : thread bf16\n"
       "  %a, %b, %c, %d, %e, %f, %g, %h = load_pack %p, %m, %one : thread bf16, thread bf16, thread bf16, thread bf16,"
       " thread bf16, thread bf16, thread bf16, thread bf16\n"
       "  %s = fadd %a, %b : thread bf16\n"
       "  store_pack %p, %m, %s, %b, %c, %d, %e, %f, %g, %h\n",
       {"ld.global.v4.b32", "st.global.v4.b32", "cvt.rn.bf16x2.f32", "1065369472"},
       0}, // 0x3f803f80: two ones
      {"packs of bytes",
       "",
       "i8",
       "  %a, %b, %c, %d = load_pack %p, _, _ : thread i8, thread i8, thread i8, thread i8\n"
       "  %s = add %a, %d : thread i8\n  store_pack %p, _, %d, %c, %b, %s\n",
       {"ld.global.b32", "st.global.b32"},
       0},
      {"packs of two i64",
       "",
       "i64",
       "  %a, %b = load_pack %p, _, _ : thread i64, thread i64\n  store_pack %p, _, %b, %a\n",
       {"ld.global.v2.b64", "st.global.v2.b64"},
       0},
  };
  run_cases(cases, DT_COUNTOF(cases));
}

static void test_shared(void **state) {
  (void)state;
  static const char text[] = //
      HEAD "kernel @k(%x: ptr<f32>) {\n"
           "  %m = mem_alloc {offset=128} : memdesc<2*4x128xf32, shared>\n"
           "  %one = const {value=1} : i32\n"
           "  %v = mem_view %m, %one : memdesc<4x128xf32, shared>\n"
           "  %q = mem_ptr %v : ptr<f32, shared>\n"
           "  %t = tid : thread i32\n"
           "  %tx = to_thread %x : thread ptr<f32>\n"
           "  %p = ptr_add %tx, %t : thread ptr<f32>\n"
           "  %tq = to_thread %q : thread ptr<f32, shared>\n"
           "  %s = ptr_add %tq, %t : thread ptr<f32, shared>\n"
           "  %yes = cmp %t, %t {cmp=eq} : thread i1\n"
           "  copy_pack %s, %p, %yes {bytes=4}\n"
           "  copy_pack %s, %p, _ {bytes=16}\n"
           "  copy_commit\n"
           "  copy_wait {pending=1}\n"
           "  barrier\n"
           "  %a = load %s, _, _ : thread f32\n"
           "  store %s, %a, %yes\n"
           "  %f = from_thread %a : f32\n"
           "  %ft = to_thread %f : thread f32\n"
           "  %w = fadd %a, %ft : thread f32\n"
           "  store %p, %w, _\n"
           "  return\n}\n";
  EACH_MACHINE(cpu) {
    Gpu g;
    gpu_make(&g, cpu, text);
    gpu_has(&g, ".extern .shared .align 1024");
    gpu_has(&g, "cp.async.cg.shared.global");
    gpu_has(&g, "cp.async.ca.shared.global");
    gpu_has(&g, "cp.async.wait_group 1;");
    gpu_has(&g, "ld.shared.b32");
    gpu_has(&g, "bar.sync");
    const ImageVariant *v = g.image->kernels[0].variants;
    assert_in_range(v->shared_bytes, 128 + 2 * 4 * 128 * 4 + 8, 128 + 2 * 4 * 128 * 4 + 128);
    assert_int_equal(v->arena_bytes, 0);
    gpu_free(&g);
  }
}

static void test_too_much_shared(void **state) {
  (void)state;
  static const char text[] =
      HEAD "kernel @k(%x: ptr<f32>) {\n"
           "  %m = mem_alloc {offset=0, label=\"big\"} : memdesc<4*128x128xf32, shared>\n"
           "  return\n}\n";
  Gpu g;
  assert_int_equal(gpu_try(&g, "sm_90a", text), ST_COMPILE);
  const char *said = diags_render(&g.diags, &g.arena);
  assert_non_null(strstr(said, "needs 262144 bytes of shared memory"));
  assert_non_null(strstr(said, "big 262144"));
  gpu_free(&g);
}

static void test_numbers(void **state) {
  (void)state;
  static const Case cases[] = {
      {"quotients",
       "",
       "f32",
       "  %a = load %p, _, _ : thread f32\n  %b = fdiv %a, %a : thread f32\n"
       "  %c = fdiv %b, %a {exact=true} : thread f32\n  %d = math %c {fn=sqrt} : thread f32\n  store %p, %d, _\n",
       {"div.full.f32", "div.rn.f32", "sqrt.rn.f32"},
       0},
      {"functions",
       "",
       "f32",
       "  %a = load %p, _, _ : thread f32\n  %b = math %a {fn=exp2} : thread f32\n  %c = math %b {fn=rsqrt} : thread f32\n"
       "  %d = math %c {fn=exp} : thread f32\n  %e = math %d {fn=log} : thread f32\n  %f = math %e {fn=tanh} : thread f32\n"
       "  %g = math %f {fn=erf} : thread f32\n  %h = math %g {fn=floor} : thread f32\n  %j = fmul %h, %a : thread f32\n  %i = math %j {fn=rint} : thread f32\n"
       "  store %p, %i, _\n",
       {"ex2.approx.ftz.f32", "rsqrt.approx.f32", "cvt.rmi.f32.f32", "cvt.rni.f32.f32"},
       0},
      {"angles and powers",
       "",
       "f32",
       "  %a = load %p, _, _ : thread f32\n  %b = math %a {fn=sin} : thread f32\n  %c = math %b {fn=cos} : thread f32\n"
       "  %d = math %c, %a {fn=pow} : thread f32\n  %e = math %d {fn=log2} : thread f32\n  store %p, %e, _\n",
       {"fma.rn.f32", "fma.rn.f64"},
       0},
      {"f64",
       "",
       "f64",
       "  %a = load %p, _, _ : thread f64\n  %b = math %a {fn=exp} : thread f64\n  %c = math %b {fn=log} : thread f64\n"
       "  %d = fdiv %c, %a : thread f64\n  %e = math %d {fn=sin} : thread f64\n  %f = frem %e, %a : thread f64\n"
       "  %g = fmin %f, %a {nan=true} : thread f64\n  %h = math %g {fn=rsqrt} : thread f64\n  store %p, %h, _\n",
       {"div.rn.f64", "call"},
       0},
      {"minima",
       "",
       "f32",
       "  %a = load %p, _, _ : thread f32\n  %b = fmin %a, %a {nan=true} : thread f32\n  %c = fneg %b : thread f32\n"
       "  %d = fmax %c, %a : thread f32\n  %e = frem %d, %a : thread f32\n  %f = fma %e, %d, %a : thread f32\n"
       "  store %p, %f, _\n",
       {"max.f32", "fma.rn.f32"},
       0},
      {"halves",
       "",
       "f16",
       "  %a = load %p, _, _ : thread f16\n  %b = fadd %a, %a : thread f16\n  %c = fcast %b : thread f32\n"
       "  %d = fcast %c {round=rtz} : thread f16\n  %e = fcast %c {round=rtz} : thread bf16\n  %f = fcast %e : thread f16\n"
       "  %g = fmul %d, %f : thread f16\n  store %p, %g, _\n",
       {"cvt.f32.f16", "cvt.rn.f16x2.f32", "cvt.rz.f16x2.f32", "cvt.rz.bf16x2.f32"},
       0},
      {"bytes of float",
       "",
       "f8e4m3",
       "  %a = load %p, _, _ : thread f8e4m3\n  %b = fcast %a : thread f32\n  %c = fadd %b, %b : thread f32\n"
       "  %d = fcast %c : thread f8e5m2\n  %e = fcast %d : thread bf16\n  %f = fcast %e : thread f8e4m3\n  store %p, %f, _\n",
       {"st.global.b8"},
       0},
      {"integers",
       "",
       "i32",
       "  %a = load %p, _, _ : thread i32\n  %b = div_s %a, %t : thread i32\n  %c = rem_u %b, %a : thread i32\n"
       "  %d = mulhi_u %c, %a : thread i32\n  %e = shl %d, %t : thread i32\n  %f = abs_s %e : thread i32\n"
       "  %g = si2f %f : thread f32\n  %h = f2si %g : thread i32\n  %i = f2ui %g : thread i64\n  %j = trunc %i : thread i32\n"
       "  %k = max_s %h, %j : thread i32\n  %l = si2f %k : thread bf16\n  %m = f2si %l : thread i8\n  %n = ext_s %m : thread i32\n"
       "  store %p, %n, _\n",
       {"div.s32", "mul.hi.u32", "cvt.rzi.s32.f32", "max.s32"},
       0},
  };
  run_cases(cases, DT_COUNTOF(cases));
  Gpu g; // conversions of 8-bit floats where the machine has them
  gpu_make(&g, "sm_89", thread_kernel(cases[6].params, cases[6].type, cases[6].body));
  gpu_has(&g, "cvt.rn.f16x2.e4m3x2");
  gpu_has(&g, "cvt.rn.satfinite.e5m2x2.f32");
  gpu_free(&g);
  gpu_make(&g, "sm_80", thread_kernel(cases[6].params, cases[6].type, cases[6].body));
  gpu_lacks(&g, "e4m3x2");
  gpu_free(&g);
}

// Neighbours are converted together, in a pack and in a product's register.
static void test_pairs(void **state) {
  (void)state;
  static const Case cases[] = {
      {"a pack",
       "",
       "bf16",
       "  %f = si2f %t : thread f32\n  %g = fadd %f, %f : thread f32\n  %a = fcast %f : thread bf16\n"
       "  %b = fcast %g : thread bf16\n  store_pack %p, _, %a, %b, %b, %a\n",
       {"st.global.v2.b32"},
       0},
      {"a register",
       "",
       "i32",
       "  %f = si2f %t : thread f32\n  %g = fadd %f, %f : thread f32\n  %a = fcast %f : thread f16\n"
       "  %b = fcast %g : thread f16\n  %ai = bitcast %a : thread i16\n  %bi = bitcast %b : thread i16\n"
       "  %ax = ext_u %ai : thread i32\n  %bx = ext_u %bi : thread i32\n  %k = const {value=16} : thread i32\n"
       "  %bh = shl %bx, %k : thread i32\n  %r = or %ax, %bh : thread i32\n  store %p, %r, _\n",
       {"cvt.rn.f16x2.f32"},
       0},
      {"a copy",
       "",
       "bf16",
       "  %a, %b, %c, %d = load_pack %p, _, _ : thread bf16, thread bf16, thread bf16, thread bf16\n"
       "  %yes = cmp %t, %t {cmp=eq} : thread i1\n"
       "  store_pack %p, %yes, %c, %d, %a, %b\n",
       {"ld.global.v2.b32", "st.global.v2.b32"},
       0},
      {"a loaded register",
       "",
       "i16",
       "  %a, %b = load_pack %p, _, _ : thread i16, thread i16\n"
       "  %ax = ext_u %a : thread i32\n  %bx = ext_u %b : thread i32\n  %k = const {value=16} : thread i32\n"
       "  %bh = shl %bx, %k : thread i32\n  %r = or %ax, %bh : thread i32\n  %z = bitcast %p : thread ptr<i32>\n"
       "  %q = add %r, %t : thread i32\n  store %z, %q, _\n",
       {"st.global.b32"},
       0},
  };
  static const int conversions[] = {2, 1, 0, 0};
  run_cases(cases, DT_COUNTOF(cases));
  for (size_t k = 0; k < DT_COUNTOF(cases); k++) {
    Gpu g;
    gpu_make(&g, "sm_90a", thread_kernel("", cases[k].type, cases[k].body));
    int n = 0;
    for (const char *s = g.ptx; (s = strstr(s, "16x2.f32")) != NULL; s++) n++;
    assert_int_equal(n, conversions[k]);
    gpu_lacks(&g, "prmt");
    gpu_lacks(&g, "{%rs");
    gpu_free(&g);
  }
}

static void test_atomics(void **state) {
  (void)state;
  static const Case cases[] = {
      {"reductions",
       "",
       "i32",
       "  %a = atomic_rmw %p, %t, _ {rmw=add, order=release, scope=sys} : thread i32\n"
       "  %m = cmp %t, %t {cmp=eq} : thread i1\n"
       "  %b = atomic_rmw %p, %t, %m {rmw=max_u, order=relaxed, scope=block} : thread i32\n"
       "  %c = atomic_rmw %p, %t, %m {rmw=xchg, order=acq_rel, scope=gpu} : thread i32\n"
       "  %d = atomic_cas %p, %c, %t {order=seq_cst, scope=sys} : thread i32\n"
       "  %e = atomic_rmw %p, %d, _ {rmw=xor, order=acquire, scope=gpu} : thread i32\n  store %p, %e, _\n",
       {"red.release.sys.global.add.u32", "red.relaxed.cta.global.max.u32",
        "atom.acq_rel.gpu.global.exch.b32", "fence.sc.sys; atom.acq_rel.sys.global.cas.b32",
        "atom.acquire.gpu.global.xor.b32"},
       0},
      {"floats",
       "",
       "f32",
       "  %v = si2f %t : thread f32\n"
       "  %a = atomic_rmw %p, %v, _ {rmw=fadd, order=relaxed, scope=gpu} : thread f32\n"
       "  %b = atomic_rmw %p, %a, _ {rmw=fmax, order=relaxed, scope=gpu} : thread f32\n"
       "  %c = atomic_rmw %p, %b, _ {rmw=fmin, order=relaxed, scope=gpu} : thread f32\n  store %p, %c, _\n",
       {"atom.relaxed.gpu.global.add.f32", "atom.relaxed.gpu.global.max.s32",
        "atom.relaxed.gpu.global.min.u32"},
       0},
      {"f64",
       "",
       "f64",
       "  %v = si2f %t : thread f64\n  %a = atomic_rmw %p, %v, _ {rmw=fadd, order=acq_rel, scope=gpu} : thread f64\n"
       "  %b = atomic_rmw %p, %a, _ {rmw=fmin, order=relaxed, scope=gpu} : thread f64\n  store %p, %b, _\n",
       {"atom.acq_rel.gpu.global.add.f64", "min.s64"},
       0},
      {"f16",
       "",
       "f16",
       "  %v = si2f %t : thread f16\n  %m = cmp %t, %t {cmp=eq} : thread i1\n"
       "  %a = atomic_rmw %p, %v, %m {rmw=fadd, order=relaxed, scope=gpu} : thread f16\n"
       "  %b = atomic_rmw %p, %a, %m {rmw=fmax, order=relaxed, scope=gpu} : thread f16\n  store %p, %b, _\n",
       {"add.noftz.f16", "cas.b16"},
       0},
      {"bf16",
       "",
       "bf16",
       "  %v = si2f %t : thread bf16\n"
       "  %b = atomic_rmw %p, %v, _ {rmw=fadd, order=relaxed, scope=gpu} : thread bf16\n  store %p, %b, _\n",
       {NULL},
       0},
      {"small integers",
       "",
       "i8",
       "  %v = trunc %t : thread i8\n"
       "  %a = atomic_rmw %p, %v, _ {rmw=add, order=acq_rel, scope=gpu} : thread i8\n"
       "  %b = atomic_cas %p, %v, %a {order=acq_rel, scope=gpu} : thread i8\n  store %p, %b, _\n",
       {"atom.acq_rel.gpu.global.cas.b32"},
       0},
      {"i16",
       "",
       "i16",
       "  %v = trunc %t : thread i16\n  %m = cmp %t, %t {cmp=eq} : thread i1\n"
       "  %a = atomic_rmw %p, %v, %m {rmw=min_s, order=relaxed, scope=gpu} : thread i16\n"
       "  %b = atomic_cas %p, %v, %a {order=acquire, scope=sys} : thread i16\n  store %p, %b, _\n",
       {"atom.acquire.sys.global.cas.b16"},
       0},
      {"packs",
       "",
       "f32",
       "  %v = si2f %t : thread f32\n  %m = cmp %t, %t {cmp=eq} : thread i1\n"
       "  add_pack %p, %m, %v, %v {order=relaxed, scope=gpu}\n",
       {"red.relaxed.gpu.global.add."}, // .v2.f32 from Hopper on, else two
       0},
  };
  run_cases(cases, DT_COUNTOF(cases));
  Gpu g;
  gpu_make(&g, "sm_90a", thread_kernel(cases[4].params, cases[4].type, cases[4].body));
  gpu_has(&g, "add.noftz.bf16");
  gpu_free(&g);
  gpu_make(&g, "sm_80", thread_kernel(cases[4].params, cases[4].type, cases[4].body));
  gpu_has(&g, "cas.b16");
  gpu_free(&g);
}

static void test_lanes(void **state) {
  (void)state;
  static const Case cases[] = {
      {"shuffles",
       "",
       "f32",
       "  %a = load %p, _, _ : thread f32\n  %c1 = const {value=1} : thread i32\n"
       "  %b = shfl %a, %c1 {shfl=xor} : thread f32\n  %c = shfl %b, %c1 {shfl=down} : thread f32\n"
       "  %d = shfl %c, %c1 {shfl=up} : thread f32\n  %e = shfl %d, %t {shfl=idx} : thread f32\n"
       "  %f = fcast %e : thread f64\n  %g = shfl %f, %c1 {shfl=xor} : thread f64\n  %h = fcast %g : thread f32\n"
       "  store %p, %h, _\n",
       {"shfl.sync.bfly.b32", "shfl.sync.down.b32", "shfl.sync.up.b32", "shfl.sync.idx.b32"},
       0},
      {"votes",
       "",
       "i32",
       "  %m = cmp %t, %t {cmp=ne} : thread i1\n  %a = ballot %m : thread i32\n  %b = active_mask : thread i32\n"
       "  %c = add %a, %b : thread i32\n  warp_barrier\n  store %p, %c, _\n",
       {"vote.sync.ballot.b32", "activemask.b32", "bar.warp.sync"},
       0},
      {"fences",
       "",
       "i32",
       "  fence {order=acq_rel, scope=gpu}\n  fence {order=seq_cst, scope=sys}\n  fence {order=acq_rel, scope=block}\n",
       {"fence.acq_rel.gpu;", "fence.sc.sys;", "fence.acq_rel.cta;"},
       0},
      {"async proxy",
       "",
       "i32",
       "  fence {order=acq_rel, scope=block, proxy=async}\n",
       {"fence.proxy.async;"},
       90},
      {"clocks",
       "",
       "i32",
       "  %a = timer : thread i64\n  %b = smid : thread i32\n  %c = trunc %a : thread i32\n  %d = add %b, %c : thread i32\n"
       "  store %p, %d, _\n",
       {"%globaltimer", "%smid"},
       0},
  };
  run_cases(cases, DT_COUNTOF(cases));
}

static void test_matrices(void **state) {
  (void)state;
  static const char four[] =
      "  %m = mem_alloc {offset=0} : memdesc<128x64xbf16, shared>\n"
      "  %q = mem_ptr %m : ptr<bf16, shared>\n"
      "  %tq = to_thread %q : thread ptr<bf16, shared>\n"
      "  %s = ptr_add %tq, %t : thread ptr<bf16, shared>\n"
      "  %a0, %a1, %a2, %a3 = ldmatrix %s : thread i32, thread i32, thread i32, thread i32\n"
      "  %b0, %b1 = ldmatrix %s {transposed=true} : thread i32, thread i32\n";
  static const struct {
    const char *shape, *sum, *type, *expect;
    int from;
  } products[] = {
      {"m16n8k16_bf16", "f32", "f32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 0},
      {"m16n8k16_f16", "f32", "f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 0},
      {"m16n8k8_tf32", "f32", "f32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 0},
      {"m16n8k32_s8", "i32", "i32", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 0},
      {"m16n8k32_e4m3", "f32", "f32", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 89},
      {"m16n8k32_e5m2", "f32", "f32", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", 89},
  };
  for (size_t i = 0; i < DT_COUNTOF(products); i++) {
    char body[4096];
    const char *c = products[i].sum;
    snprintf(
        body, sizeof body,
        "%s  %%z = const {value=0} : thread %s\n"
        "  %%d0, %%d1, %%d2, %%d3 = mma %%a0, %%a1, %%a2, %%a3, %%b0, %%b1, %%z, %%z, %%z, %%z {mma=%s} : "
        "thread %s, thread %s, thread %s, thread %s\n  store_pack %%p, _, %%d0, %%d1, %%d2, %%d3\n",
        four, c, products[i].shape, c, c, c, c);
    const Case one = {products[i].shape,
                      "",
                      products[i].type,
                      body,
                      {products[i].expect, "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                       "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16"},
                      products[i].from};
    run_cases(&one, 1);
  }
  char body[2048];
  snprintf(body, sizeof body,
           "%s  stmatrix %%s, %%a0, %%a1, %%a2, %%a3 {transposed=true}\n  stmatrix %%s, %%b0\n", four);
  const Case st = {
      "stmatrix", "", "f32", body, {"stmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "m8n8.x1.shared"}, 90};
  run_cases(&st, 1);
}

static void test_waits(void **state) {
  (void)state;
  static const char text[] = //
      HEAD "kernel @k(%x: ptr<f32>, %flag: ptr<i32>, %wide: ptr<i64>, %v: i32, %n: i32) {\n"
           "  %t = tid : thread i32\n"
           "  %z = const {value=0} : thread i32\n"
           "  %first = cmp %t, %z {cmp=eq} : thread i1\n"
           "  if %first {\n"
           "    %tf = to_thread %flag : thread ptr<i32>\n    %tv = to_thread %v : thread i32\n"
           "    %k = wait %tf, _, %tv {cmp=sge, order=acquire, scope=sys, label=\"ready\"} : token\n"
           "    yield\n"
           "  } {\n"
           "    yield\n"
           "  }\n"
           "  %w = wait %flag, %n, %v {cmp=ne, order=relaxed, scope=gpu} : token\n"
           "  %v64 = ext_s %v : i64\n"
           "  %a = acquire %wide, %v64 {scope=gpu} : token\n"
           "  %me = rank : i32\n"
           "  %pe = num_ranks : i32\n"
           "  %q = symm_at %x, %me : ptr<f32>\n"
           "  %c = load %q, _, _ : f32\n"
           "  %tx = to_thread %x : thread ptr<f32>\n"
           "  %p = ptr_add %tx, %t : thread ptr<f32>\n"
           "  %ct = to_thread %c : thread f32\n"
           "  store %p, %ct, _\n"
           "  signal %flag, %v, %me {sigop=add, order=release, scope=sys}\n"
           "  release %flag, %v, %me {scope=sys}\n"
           "  release %wide, %v64, _ {sigop=add, scope=gpu}\n"
           "  put_fence\n"
           "  put_quiet\n"
           "  return\n}\n";
  EACH_MACHINE(cpu) {
    Gpu g;
    gpu_make(&g, cpu, text);
    assert_true(g.image->kernels[0].variants[0].has_waits);
    gpu_has(&g, "ld.acquire.sys.global.b32");
    gpu_has(&g, "ld.relaxed.gpu.global.b32"); // by one thread of the program
    gpu_has(&g, "ld.acquire.gpu.global.b64");
    gpu_has(&g, "st.release.sys.global.b32");
    gpu_has(&g, "red.release.gpu.global.add.u64");
    gpu_has(&g, "nanosleep.u32");
    gpu_has(&g, "%globaltimer");
    gpu_has(&g, "exit;");
    gpu_lacks(&g, "trap");
    gpu_lacks(&g, "mmio");
    gpu_has(&g, "red.and.pred"); // all threads leave where the one that waits for them has given up
    gpu_lacks(&g, "call");
    gpu_lacks(&g, ".func");
    bool labelled = false;
    for (uint32_t i = 0; i < g.image->nsites; i++)
      labelled |= g.image->sites[i].what && !strcmp(g.image->sites[i].what, "ready");
    assert_true(labelled);
    gpu_free(&g);
  }
}

static void test_copies(void **state) {
  (void)state;
  static const char text[] = //
      HEAD "kernel @k(%x: ptr<f32>, %y: ptr<f32>, %flag: ptr<i64>, %n: i64, %pe: i32) {\n"
           "  put %x, %y, %n, %pe {group=block}\n"
           "  get %x, %y, %n, %pe {group=warp}\n"
           "  put_signal %x, %y, %n, %flag, %n, %pe {group=block, sigop=set}\n"
           "  return\n}\n";
  EACH_MACHINE(cpu) {
    Gpu g;
    gpu_make(&g, cpu, text);
    gpu_has(&g, "ld.global.v4.b32");
    gpu_has(&g, "st.release.sys.global.b64");
    gpu_free(&g);
  }
}

static void test_polling_loop(void **state) {
  (void)state;
  static const char text[] = //
      HEAD "kernel @k(%flag: ptr<i32>, %v: i32) {\n"
           "  %t = tid : thread i32\n  %z = const {value=0} : thread i32\n"
           "  %first = cmp %t, %z {cmp=eq} : thread i1\n"
           "  if %first {\n"
           "    while {poll=true} {\n"
           "      %tf = to_thread %flag : thread ptr<i32>\n      %tv = to_thread %v : thread i32\n"
           "      %c = load %tf, _, _ {order=acquire, scope=sys} : thread i32\n"
           "      %go = cmp %c, %tv {cmp=ne} : thread i1\n"
           "      cond_yield %go\n"
           "    } {\n"
           "      yield\n"
           "    }\n"
           "    yield\n"
           "  } {\n    yield\n  }\n"
           "  return\n}\n";
  EACH_MACHINE(cpu) {
    Gpu g;
    gpu_make(&g, cpu, text);
    gpu_has(&g, "ld.acquire.sys.global.b32");
    gpu_has(&g, "%globaltimer");
    gpu_has(&g, "bar.warp.sync"); // after the branch that split the warp
    gpu_free(&g);
  }
}

static void test_mbarriers(void **state) {
  (void)state;
  static const char text[] = //
      HEAD "kernel @k(%x: ptr<f32>) {\n"
           "  %b = mbarrier_alloc {count=128} : mbarrier<4>\n"
           "  %one = const {value=1} : i32\n  %z = const {value=0} : i32\n"
           "  mbarrier_arrive %b, %one\n"
           "  %k = mbarrier_wait %b, %one, %z : token\n"
           "  return\n}\n";
  EACH_MACHINE(cpu) {
    Gpu g;
    gpu_make(&g, cpu, text);
    gpu_has(&g, "mbarrier.init.shared.b64");
    gpu_has(&g, "mbarrier.arrive.shared.b64");
    gpu_has(&g, strcmp(cpu, "sm_90a") ? "mbarrier.test_wait.parity" : "mbarrier.try_wait.parity");
    assert_in_range(g.image->kernels[0].variants[0].shared_bytes, 32, 64);
    gpu_free(&g);
  }
}

static void test_turns(void **state) { // of groups of warps: a wait with a deadline, one arrival a warp
  (void)state;
  static const char text[] = //
      "module stage=lowered warps=8 stages=1 lanes=32\n"
      "kernel @k(%x: ptr<f32>) {\n"
      "  %b = mbarrier_alloc {count=4} : mbarrier<2>\n"
      "  turn_begin %b\n  turn_end %b\n  return\n}\n";
  Gpu g;
  gpu_make(&g, "sm_90a", text);
  gpu_has(&g, "mbarrier.try_wait.parity");
  gpu_has(&g, "elect.sync");
  gpu_has(&g, "mbarrier.arrive.shared.b64");
  gpu_has(&g, "%globaltimer");
  gpu_free(&g);
}

static void test_people(void **state) {
  (void)state;
  static const Case cases[] = {
      {"print",
       "",
       "f32",
       "  %a = load %p, _, _ : thread f32\n  print %t, %a, %t {prefix=\"100% sure: \", where=-1}\n",
       {"vprintf"},
       0},
      {"assert",
       "",
       "i32",
       "  %a = load %p, _, _ : thread i32\n  %m = cmp %a, %t {cmp=eq} : thread i1\n  assert %m {msg=\"equal\"}\n",
       {"exit;", "atom.relaxed.sys.global.cas.b32"},
       0},
      {"assembly",
       "",
       "i32",
       "  %a = load %p, _, _ : thread i32\n"
       "  %b = inline_asm %a, %t {asm=\"lop3.b32 $0, $1, $2, 0, 0xc0;\", constraints=\"=r,r,r\", pure=true} : thread i32\n"
       "  store %p, %b, _\n",
       {"lop3.b32", "0xc0"},
       0},
      {"packed assembly",
       "",
       "i8",
       "  %a, %b, %c, %d = load_pack %p, _, _ : thread i8, thread i8, thread i8, thread i8\n"
       "  %e, %f, %g, %h = inline_asm %a, %b, %c, %d {asm=\"prmt.b32 $0, $1, $1, 0x0123;\", constraints=\"=r,r\", pack=4, pure=true} :"
       " thread i8, thread i8, thread i8, thread i8\n"
       "  store_pack %p, _, %e, %f, %g, %h\n",
       {"prmt.b32", "0x0123"},
       0},
  };
  run_cases(cases, DT_COUNTOF(cases));
}

static void test_bad_assembly(void **state) {
  (void)state;
  static const char *const bad[] = {"{asm=\"add.s32 $0, $1, $1;\", constraints=\"=r,q\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, $1;\", constraints=\"=r9,r\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, $1;\", constraints=\"\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, $1;\", constraints=\"=r,r,r\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, $1;\", constraints=\"r,=r\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, $1;\", constraints=\"=r,7\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, $1;\", constraints=\"=h,h\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, $1;\", constraints=\"=r,r,~{\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, $7;\", constraints=\"=r,r\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, $x;\", constraints=\"=r,r\", pure=true}",
                                    "{asm=\"add.s32 $0, $1, ${1;\", constraints=\"=r,r\", pure=true}",
                                    "{asm=\"nonsense $0, $1;\", constraints=\"=r,r\", pure=true}"};
  for (size_t i = 0; i < DT_COUNTOF(bad); i++) {
    if (i + 1 == DT_COUNTOF(bad) && !gpu_has_ptxas()) continue; // only it knows
    char body[1024];
    snprintf(body, sizeof body, "  %%b = inline_asm %%t %s : thread i32\n  store %%p, %%b, _\n", bad[i]);
    Gpu g;
    assert_int_not_equal(gpu_try(&g, "sm_90a", thread_kernel("", "i32", body)), ST_OK);
    assert_true(g.diags.errors > 0);
    gpu_free(&g);
  }
}

static void test_partitions(void **state) {
  (void)state;
  static const char text[] = //
      HEAD "kernel @k(%x: ptr<i32>) {\n"
           "  warp_partitions {first=[0, 1], warps=[1, 3]} {\n"
           "    %t = tid : thread i32\n    %tx = to_thread %x : thread ptr<i32>\n"
           "    %p = ptr_add %tx, %t : thread ptr<i32>\n    store %p, %t, _\n    yield\n"
           "  } {\n"
           "    %t = tid : thread i32\n    %tx = to_thread %x : thread ptr<i32>\n"
           "    %p = ptr_add %tx, %t : thread ptr<i32>\n    barrier\n    store %p, %t, _\n    yield\n"
           "  }\n"
           "  return\n}\n";
  EACH_MACHINE(cpu) {
    Gpu g;
    gpu_make(&g, cpu, text);
    gpu_has(&g, "bar.sync \t2, 96");
    gpu_has(&g, "shfl.sync.idx");
    gpu_free(&g);
  }
}

static void test_no_ptxas(void **state) {
  (void)state;
  Gpu g;
  memset(&g, 0, sizeof g);
  if (ESCAPE_TRY(&g.escape)) fail_msg("%s", g.escape.message);
  arena_init(&g.arena, 0, &g.escape);
  diags_init(&g.diags, &g.arena);
  assert_int_equal(
      ir_parse(&g.arena, ir_ctx_new(&g.arena), &g.diags, "t", vector_add, strlen(vector_add), &g.module),
      ST_OK);
  const TargetOptions o = {.target = "nvptx", .cpu = "sm_80", .opt = 1, .ptxas = "/nowhere/ptxas"};
  assert_int_equal(target_compile(g.module, &o, &g.arena, &g.diags, &g.image), ST_OK);
  assert_true(g.image->is_text);
  assert_int_equal(strlen(g.image->code) + 1, g.image->code_bytes);
  assert_non_null(strstr(g.image->code, ".target sm_80"));
  gpu_free(&g);
}

static void test_two_kernels(void **state) {
  (void)state;
  static const char text[] = //
      HEAD
      "kernel @small(%x: ptr<i64>, %v: i64) {\n  %a = acquire %x, %v {scope=sys} : token\n  return\n}\n"
      "kernel @large(%x: ptr<i64>, %v: i64, %d: desc<16x16xf32>) {\n"
      "  %m = mem_alloc {offset=0} : memdesc<16x16xf32, shared>\n"
      "  %a = acquire %x, %v {scope=sys} : token\n"
      "  %n = desc_dim %d {axis=1} : i64\n  %w = atomic_rmw %x, %n, _ {rmw=add, order=relaxed, scope=gpu} : i64\n"
      "  return\n}\n";
  EACH_MACHINE(cpu) {
    Gpu g;
    gpu_make(&g, cpu, text);
    const Image *im = g.image;
    assert_int_equal(im->nkernels, 2);
    const ImageVariant *a = im->kernels[0].variants, *b = im->kernels[1].variants;
    assert_int_equal(a->shared_bytes, 0);
    assert_int_equal(b->shared_bytes, 1024);
    assert_int_equal(b->args[2].kind, IMAGE_ARG_DESC);
    assert_int_equal(b->args_bytes, 16 + sizeof(ImageDesc));
    if (!im->is_text) assert_true(a->registers && b->registers);
    gpu_has(&g, ".param .align 8 .b8 large_param_2[88]");
    gpu_lacks(&g, ".local");
    gpu_free(&g);
  }
}

// ---- everything on everything ----------------------------------------------------------------------
// LLVM ends the process where it has no instruction, so each op is tried on each type.
typedef struct Text {
  char s[200000];
  size_t n;
} Text;
static void put(Text *t, const char *fmt, ...) DT_PRINTF(2, 3);
static void put(Text *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const int n = vsnprintf(t->s + t->n, sizeof t->s - t->n, fmt, ap);
  va_end(ap);
  t->n += (size_t)n;
  if (t->n >= sizeof t->s) fail_msg("the text is too long");
}
static const char *const ints[] = {"i1", "i8", "i16", "i32", "i64"};
static const char *const floats[] = {"f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64"};
static int width_of(const char *type) {
  return type[0] == 'f' && type[1] == '8' ? 8 : (int)strtol(type + strcspn(type, "0123456789"), NULL, 10);
}

static void begin_on(Text *t, const char *type) {
  t->n = 0;
  put(t,
      HEAD
      "kernel @k(%%x: ptr<%s>, %%q: ptr<i64>) {\n  %%t = tid : thread i32\n  %%tx = to_thread %%x : thread ptr<%s>\n"
      "  %%tq = to_thread %%q : thread ptr<i64>\n  %%p = ptr_add %%tx, %%t : thread ptr<%s>\n"
      "  %%a = load %%p, _, _ {volatile=true} : thread %s\n  %%b = load %%p, _, _ {volatile=true} : thread %s\n",
      type, type, type, type, type);
}
static void keep(Text *t, const char *value, const char *type) { // so that nothing is dropped
  put(t, "  %%k%s = bitcast %%tq : thread ptr<%s>\n  store %%k%s, %%%s, _ {volatile=true}\n", value, type,
      value, value);
}
static void end_on(Text *t, const char *cpu) {
  put(t, "  return\n}\n");
  Gpu g;
  gpu_make(&g, cpu, t->s);
  gpu_free(&g);
}

static void test_every_type(void **state) {
  (void)state;
  static Text t;
  static const char *const iops[] = {"add",     "sub",     "mul",   "div_s", "div_u", "rem_s", "rem_u",
                                     "mulhi_s", "mulhi_u", "and",   "or",    "xor",   "shl",   "shr_s",
                                     "shr_u",   "min_s",   "max_s", "min_u", "max_u"};
  static const char *const fops[] = {"fadd", "fsub", "fmul", "fdiv", "frem", "fmin", "fmax"};
  static const char *const fns[] = {
#define MATH(name, arity, text) #name,
#include "ir/math.def"
#undef MATH
  };
  EACH_MACHINE(cpu) {
    for (size_t k = 0; k < DT_COUNTOF(ints); k++) {
      const char *ty = ints[k];
      begin_on(&t, ty);
      for (size_t i = 0; i < DT_COUNTOF(iops); i++) {
        char name[16];
        snprintf(name, sizeof name, "r%zu", i);
        put(&t, "  %%%s = %s %%a, %%b : thread %s\n", name, iops[i], ty);
        keep(&t, name, ty);
      }
      for (size_t i = 0; i < DT_COUNTOF(ints); i++) {
        if (i == k) continue;
        char name[16];
        snprintf(name, sizeof name, "c%zu", i);
        put(&t, "  %%%s = %s %%a : thread %s\n", name, i > k ? (i & 1 ? "ext_s" : "ext_u") : "trunc",
            ints[i]);
        keep(&t, name, ints[i]);
      }
      for (size_t i = 0; i < DT_COUNTOF(floats); i++) {
        char name[16];
        snprintf(name, sizeof name, "s%zu", i);
        put(&t, "  %%%s = si2f %%a : thread %s\n", name, floats[i]);
        keep(&t, name, floats[i]);
        snprintf(name, sizeof name, "u%zu", i);
        put(&t, "  %%%s = ui2f %%a : thread %s\n", name, floats[i]);
        keep(&t, name, floats[i]);
      }
      put(&t, "  %%l = const {value=1} : thread i32\n  %%sh = shfl %%a, %%l {shfl=xor} : thread %s\n", ty);
      keep(&t, "sh", ty);
      put(&t, "  %%ft = from_thread %%a : %s\n  %%fb = to_thread %%ft : thread %s\n", ty, ty);
      keep(&t, "fb", ty);
      end_on(&t, cpu);
    }
    for (size_t k = 0; k < DT_COUNTOF(floats); k++) {
      const char *ty = floats[k];
      begin_on(&t, ty);
      for (size_t i = 0; i < DT_COUNTOF(fops); i++) {
        char name[16];
        snprintf(name, sizeof name, "r%zu", i);
        put(&t, "  %%%s = %s %%a, %%b : thread %s\n", name, fops[i], ty);
        keep(&t, name, ty);
      }
      put(&t, "  %%m0 = fmin %%a, %%b {nan=true} : thread %s\n", ty);
      keep(&t, "m0", ty);
      for (size_t i = 0; i < DT_COUNTOF(floats); i++) {
        if (i == k) continue;
        for (int rtz = 0; rtz < 2; rtz++) {
          char name[16];
          snprintf(name, sizeof name, "c%zu%c", i, rtz ? 'z' : 'n');
          put(&t, "  %%%s = fcast %%a {round=%s} : thread %s\n", name, rtz ? "rtz" : "rtne", floats[i]);
          keep(&t, name, floats[i]);
        }
      }
      for (size_t i = 0; i < DT_COUNTOF(ints); i++) {
        char name[16];
        snprintf(name, sizeof name, "s%zu", i);
        put(&t, "  %%%s = f2si %%a : thread %s\n", name, ints[i]);
        keep(&t, name, ints[i]);
        snprintf(name, sizeof name, "u%zu", i);
        put(&t, "  %%%s = f2ui %%a : thread %s\n", name, ints[i]);
        keep(&t, name, ints[i]);
      }
      put(&t, "  %%l = const {value=1} : thread i32\n  %%sh = shfl %%a, %%l {shfl=down} : thread %s\n", ty);
      keep(&t, "sh", ty);
      put(&t, "  %%ft = from_thread %%a : %s\n  %%fb = to_thread %%ft : thread %s\n", ty, ty);
      keep(&t, "fb", ty);
      end_on(&t, cpu);
      if (width_of(ty) < 32) continue; // functions are of f32 and f64
      begin_on(&t, ty);
      for (size_t i = 0; i < DT_COUNTOF(fns); i++) {
        char name[16];
        snprintf(name, sizeof name, "f%zu", i);
        put(&t, "  %%%s = math %%a%s {fn=%s} : thread %s\n", name, !strcmp(fns[i], "pow") ? ", %b" : "",
            fns[i], ty);
        keep(&t, name, ty);
      }
      end_on(&t, cpu);
    }
  }
}

static void test_every_atomic(void **state) {
  (void)state;
  static Text t;
  static const char *const rmws[] = {"add", "max_s", "min_s", "max_u", "min_u", "and", "or", "xor", "xchg"};
  static const char *const frmws[] = {"fadd", "fmax", "fmin"};
  static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"};
  EACH_MACHINE(cpu) {
    for (size_t k = 1; k < DT_COUNTOF(ints) + 4; k++) {
      const bool flt = k >= DT_COUNTOF(ints);
      const char *ty = flt ? floats[2 + k - DT_COUNTOF(ints)] : ints[k];
      begin_on(&t, ty);
      put(&t,
          "  %%m = mem_alloc {offset=0} : memdesc<128x%s, shared>\n  %%mp = mem_ptr %%m : ptr<%s, shared>\n"
          "  %%tm = to_thread %%mp : thread ptr<%s, shared>\n  %%sp = ptr_add %%tm, %%t : thread ptr<%s, shared>\n"
          "  %%on = cmp %%t, %%t {cmp=eq} : thread i1\n",
          ty, ty, ty, ty);
      const size_t n = flt ? DT_COUNTOF(frmws) : DT_COUNTOF(rmws);
      for (size_t i = 0; i < 2 * n; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%zu", i);
        put(&t, "  %%%s = atomic_rmw %s, %%a, %s {rmw=%s, order=%s, scope=%s} : thread %s\n", name,
            i < n ? "%p" : "%sp", i & 1 ? "%on" : "_", flt ? frmws[i % n] : rmws[i % n], orders[i % 5],
            i & 1 ? "sys" : "gpu", ty);
        if (i % 3) keep(&t, name, ty);
      }
      put(&t, "  %%c0 = atomic_cas %%p, %%a, %%b {order=acq_rel, scope=gpu} : thread %s\n", ty);
      put(&t, "  %%c1 = atomic_cas %%sp, %%a, %%c0 {order=relaxed, scope=block} : thread %s\n", ty);
      keep(&t, "c1", ty);
      end_on(&t, cpu);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vector_add),   cmocka_unit_test(test_memory),
      cmocka_unit_test(test_shared),       cmocka_unit_test(test_too_much_shared),
      cmocka_unit_test(test_numbers),      cmocka_unit_test(test_atomics),
      cmocka_unit_test(test_pairs),        cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_matrices),     cmocka_unit_test(test_waits),
      cmocka_unit_test(test_copies),       cmocka_unit_test(test_polling_loop),
      cmocka_unit_test(test_mbarriers),    cmocka_unit_test(test_turns),
      cmocka_unit_test(test_people),       cmocka_unit_test(test_bad_assembly),
      cmocka_unit_test(test_partitions),   cmocka_unit_test(test_no_ptxas),
      cmocka_unit_test(test_two_kernels),  cmocka_unit_test(test_every_type),
      cmocka_unit_test(test_every_atomic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
