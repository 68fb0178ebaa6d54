// Places of shared memory and barriers: lowered kernels run under the checker. What `sync` leaves is enough (nothing is found, memory is
// as written), and is needed: without any one of its barriers the checker reports a race. Written kernels, then random ones.
// TIMEOUT: 300
#include "pass_place_gen.h"
#include "pass_place_seeds.h"

#include "pass_place_cases.h"

#define LOWER "fold,cse,licm,strength,fold,dce,lay,cse,dce,pipe,cse,dce,low,cse,licm,dce"

// Rows of 512 in a loop: two reductions over four warps.
static const char rows[] = "module stage=tile warps=4 stages=2 lanes=32\n"
                           "kernel @rows(%x: ptr<f32>, %o: ptr<f32>, %n: i32) {\n"
                           "  %z = const {value=0} : i32\n"
                           "  %one = const {value=1} : i32\n"
                           "  for %z, %n, %one { (%row: i32)\n"
                           "    %r = arange {start=0, end=512} : tile<512xi32>\n"
                           "    %w = const {value=512} : i32\n"
                           "    %at = mul %row, %w : i32\n"
                           "    %xp = ptr_add %x, %at : ptr<f32>\n"
                           "    %xs = splat %xp : tile<512xptr<f32>>\n"
                           "    %xa = ptr_add %xs, %r : tile<512xptr<f32>>\n"
                           "    %v = load %xa, _, _ : tile<512xf32>\n"
                           "    %m = reduce %v {axis=0} : f32 { (%a: f32, %b: f32)\n"
                           "      %c = fmax %a, %b : f32\n"
                           "      yield %c\n"
                           "    }\n"
                           "    %ms = splat %m : tile<512xf32>\n"
                           "    %d = fsub %v, %ms : tile<512xf32>\n"
                           "    %s = reduce %d {axis=0} : f32 { (%a2: f32, %b2: f32)\n"
                           "      %c2 = fadd %a2, %b2 : f32\n"
                           "      yield %c2\n"
                           "    }\n"
                           "    %ss = splat %s : tile<512xf32>\n"
                           "    %y = fdiv %d, %ss : tile<512xf32>\n"
                           "    %op = ptr_add %o, %at : ptr<f32>\n"
                           "    %os = splat %op : tile<512xptr<f32>>\n"
                           "    %oa = ptr_add %os, %r : tile<512xptr<f32>>\n"
                           "    store %oa, %y, _\n"
                           "    yield\n"
                           "  }\n"
                           "  return\n"
                           "}\n";

// One reduction a turn: its memory is used again in the next.
static const char again[] = "module stage=tile warps=4 stages=2 lanes=32\n"
                            "kernel @again(%x: ptr<f32>, %o: ptr<f32>, %n: i32) {\n"
                            "  %z = const {value=0} : i32\n"
                            "  %one = const {value=1} : i32\n"
                            "  %r = arange {start=0, end=512} : tile<512xi32>\n"
                            "  %xs = splat %x : tile<512xptr<f32>>\n"
                            "  %xa = ptr_add %xs, %r : tile<512xptr<f32>>\n"
                            "  %v = load %xa, _, _ : tile<512xf32>\n"
                            "  %f0 = const {value=0} : f32\n"
                            "  %sum = for %z, %n, %one, %f0 : f32 { (%i: i32, %acc: f32)\n"
                            "    %as = splat %acc : tile<512xf32>\n"
                            "    %d = fmul %v, %as : tile<512xf32>\n"
                            "    %e = fsub %v, %d : tile<512xf32>\n"
                            "    %m = reduce %e {axis=0} : f32 { (%a: f32, %b: f32)\n"
                            "      %c = fmax %a, %b : f32\n"
                            "      yield %c\n"
                            "    }\n"
                            "    yield %m\n"
                            "  }\n"
                            "  store %o, %sum, _\n"
                            "  return\n"
                            "}\n";

// Program order through global memory: written forwards, read backwards, in a loop; and a counter that one thread advances.
static const char order[] = "module stage=tile warps=4 stages=2 lanes=32\n"
                            "kernel @order(%x: ptr<i32>, %c: ptr<i32>, %o: ptr<i32>, %n: i32) {\n"
                            "  %z = const {value=0} : i32\n"
                            "  %one = const {value=1} : i32\n"
                            "  %r = arange {start=0, end=256} : tile<256xi32>\n"
                            "  %last = const {value=255} : tile<256xi32>\n"
                            "  %back = sub %last, %r : tile<256xi32>\n"
                            "  %xs = splat %x : tile<256xptr<i32>>\n"
                            "  %xf = ptr_add %xs, %r : tile<256xptr<i32>>\n"
                            "  %xb = ptr_add %xs, %back : tile<256xptr<i32>>\n"
                            "  for %z, %n, %one { (%i: i32)\n"
                            "    %v = load %xb, _, _ : tile<256xi32>\n"
                            "    %t = atomic_rmw %c, %one, _ {rmw=add, order=relaxed, scope=gpu} : i32\n"
                            "    %ts = splat %t : tile<256xi32>\n"
                            "    %w = add %v, %ts : tile<256xi32>\n"
                            "    store %xf, %w, _\n"
                            "    yield\n"
                            "  }\n"
                            "  %f = load %xb, _, _ : tile<256xi32>\n"
                            "  %os = splat %o : tile<256xptr<i32>>\n"
                            "  %oa = ptr_add %os, %r : tile<256xptr<i32>>\n"
                            "  store %oa, %f, _\n"
                            "  return\n"
                            "}\n";

// Two moves through shared memory, one after the other, each of 16 KiB: they share.
static const char moves[] = "module stage=tile warps=4 stages=2 lanes=32\n"
                            "kernel @moves(%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32>, %p: ptr<f32>) {\n"
                            "  %r = arange {start=0, end=64} : tile<64xi32>\n"
                            "  %rr = expand_dims %r {axis=1} : tile<64x1xi32>\n"
                            "  %rb = broadcast %rr : tile<64x64xi32>\n"
                            "  %cc = expand_dims %r {axis=0} : tile<1x64xi32>\n"
                            "  %cb = broadcast %cc : tile<64x64xi32>\n"
                            "  %w = const {value=64} : tile<64x64xi32>\n"
                            "  %rw = mul %rb, %w : tile<64x64xi32>\n"
                            "  %at = add %rw, %cb : tile<64x64xi32>\n"
                            "  %cw = mul %cb, %w : tile<64x64xi32>\n"
                            "  %turned = add %cw, %rb : tile<64x64xi32>\n"
                            "  %xs = splat %x : tile<64x64xptr<f32>>\n"
                            "  %xa = ptr_add %xs, %at : tile<64x64xptr<f32>>\n"
                            "  %v = load %xa, _, _ : tile<64x64xf32>\n"
                            "  %ys = splat %y : tile<64x64xptr<f32>>\n"
                            "  %ya = ptr_add %ys, %at : tile<64x64xptr<f32>>\n"
                            "  %u = load %ya, _, _ : tile<64x64xf32>\n"
                            "  %os = splat %o : tile<64x64xptr<f32>>\n"
                            "  %oa = ptr_add %os, %turned : tile<64x64xptr<f32>>\n"
                            "  store %oa, %v, _\n"
                            "  %ps = splat %p : tile<64x64xptr<f32>>\n"
                            "  %pa = ptr_add %ps, %turned : tile<64x64xptr<f32>>\n"
                            "  store %pa, %u, _\n"
                            "  return\n"
                            "}\n";

// A product fed by copies ahead of it, then its result turned.
static const char product[] =
    "module stage=tile warps=4 stages=3 lanes=32\n"
    "kernel @product(%x: ptr<f16> {divisible=16}, %y: ptr<f16> {divisible=16}, %o: ptr<f32>) {\n"
    "  %z = const {value=0} : i32\n"
    "  %n = const {value=64} : i32\n"
    "  %step = const {value=16} : i32\n"
    "  %m = arange {start=0, end=32} : tile<32xi32>\n"
    "  %k = arange {start=0, end=16} : tile<16xi32>\n"
    "  %m1 = expand_dims %m {axis=1} : tile<32x1xi32>\n"
    "  %w64 = const {value=64} : tile<32x1xi32>\n"
    "  %mo = mul %m1, %w64 : tile<32x1xi32>\n"
    "  %mb = broadcast %mo : tile<32x16xi32>\n"
    "  %k0 = expand_dims %k {axis=0} : tile<1x16xi32>\n"
    "  %kb = broadcast %k0 : tile<32x16xi32>\n"
    "  %ao = add %mb, %kb : tile<32x16xi32>\n"
    "  %k1 = expand_dims %k {axis=1} : tile<16x1xi32>\n"
    "  %w32 = const {value=32} : tile<16x1xi32>\n"
    "  %ko = mul %k1, %w32 : tile<16x1xi32>\n"
    "  %kc = broadcast %ko : tile<16x32xi32>\n"
    "  %n0 = expand_dims %m {axis=0} : tile<1x32xi32>\n"
    "  %nb = broadcast %n0 : tile<16x32xi32>\n"
    "  %bo = add %kc, %nb : tile<16x32xi32>\n"
    "  %zero = const {value=0} : tile<32x32xf32>\n"
    "  %c = for %z, %n, %step, %zero : tile<32x32xf32> { (%i: i32, %acc: tile<32x32xf32>)\n"
    "    %xp = ptr_add %x, %i : ptr<f16>\n"
    "    %xs = splat %xp : tile<32x16xptr<f16>>\n"
    "    %xa = ptr_add %xs, %ao : tile<32x16xptr<f16>>\n"
    "    %a = load %xa, _, _ : tile<32x16xf16>\n"
    "    %w = const {value=32} : i32\n"
    "    %iw = mul %i, %w : i32\n"
    "    %yp = ptr_add %y, %iw : ptr<f16>\n"
    "    %ys = splat %yp : tile<16x32xptr<f16>>\n"
    "    %ya = ptr_add %ys, %bo : tile<16x32xptr<f16>>\n"
    "    %b = load %ya, _, _ : tile<16x32xf16>\n"
    "    %d = dot %a, %b, %acc : tile<32x32xf32>\n"
    "    yield %d\n"
    "  }\n"
    "  %w2 = const {value=32} : tile<32x1xi32>\n"
    "  %ro = mul %m1, %w2 : tile<32x1xi32>\n"
    "  %rb = broadcast %ro : tile<32x32xi32>\n"
    "  %cb = broadcast %n0 : tile<32x32xi32>\n"
    "  %oo = add %rb, %cb : tile<32x32xi32>\n"
    "  %os = splat %o : tile<32x32xptr<f32>>\n"
    "  %oa = ptr_add %os, %oo : tile<32x32xptr<f32>>\n"
    "  store %oa, %c, _\n"
    "  return\n"
    "}\n";

// The last instance to arrive adds up what all have left.
static const char handoff[] = "module stage=tile warps=4 stages=2 lanes=32\n"
                              "kernel @handoff(%x: ptr<i32>, %c: ptr<i32>, %o: ptr<i32>) {\n"
                              "  %zero = const {value=0} : i32\n"
                              "  %one = const {value=1} : i32\n"
                              "  %n = const {value=256} : i32\n"
                              "  %pid = program_id {axis=0} : i32\n"
                              "  %r = arange {start=0, end=256} : tile<256xi32>\n"
                              "  %last = const {value=255} : tile<256xi32>\n"
                              "  %back = sub %last, %r : tile<256xi32>\n"
                              "  %at = mul %pid, %n : i32\n"
                              "  %xp = ptr_add %x, %at : ptr<i32>\n"
                              "  %xs = splat %xp : tile<256xptr<i32>>\n"
                              "  %xa = ptr_add %xs, %r : tile<256xptr<i32>>\n"
                              "  store %xa, %r, _\n"
                              "  %t = atomic_rmw %c, %one, _ {rmw=add, order=acq_rel, scope=gpu} : i32\n"
                              "  %is = cmp %t, %zero {cmp=ne} : i1\n"
                              "  if %is {\n"
                              "    %ys = splat %x : tile<256xptr<i32>>\n"
                              "    %ya = ptr_add %ys, %back : tile<256xptr<i32>>\n"
                              "    %nn = splat %n : tile<256xi32>\n"
                              "    %yb = ptr_add %ya, %nn : tile<256xptr<i32>>\n"
                              "    %u = load %ya, _, _ : tile<256xi32>\n"
                              "    %v = load %yb, _, _ : tile<256xi32>\n"
                              "    %w = add %u, %v : tile<256xi32>\n"
                              "    %os = splat %o : tile<256xptr<i32>>\n"
                              "    %oa = ptr_add %os, %r : tile<256xptr<i32>>\n"
                              "    store %oa, %w, _\n"
                              "    yield\n"
                              "  } {\n"
                              "    yield\n"
                              "  }\n"
                              "  return\n"
                              "}\n";

static Memory memory_zero(Arena *a, const IrFunc *f) { // counters start from 0
  const Memory m = memory_new(a, f, 1);
  for (int i = 0; i < m.n; i++) memset(m.base[i], 0, 8);
  return m;
}

static const Case kernels[] = {
    {.name = "rows", .grid = {1}, .args = {3}, .tolerance = 1e-5, .text = rows},
    {.name = "again", .grid = {1}, .args = {3}, .tolerance = 1e-5, .text = again},
    {.name = "order", .grid = {1}, .args = {3}, .text = order},
    {.name = "moves", .grid = {1}, .tolerance = 1e-6, .text = moves},
    {.name = "handoff", .grid = {2}, .text = handoff},
    {.name = "product", .grid = {1}, .tolerance = 1e-5, .text = product},
};

static InterpResult checked(Arena *a, const IrModule *mod, const Case *c, const Memory *m) {
  const IrFunc *f = mod->funcs;
  InterpArg args[MAX_PARAMS];
  InterpMemory mem[MAX_PARAMS];
  int pointer = 0, scalar = 0;
  for (uint32_t i = 0; i < f->params.len; i++) {
    if (f->body->args.data[i]->type->kind == IR_PTR)
      args[i].p = m->base[pointer++];
    else if (ir_type_is_float(f->body->args.data[i]->type))
      args[i].f = (double)c->args[scalar++] / 8;
    else
      args[i].i = c->args[scalar++];
  }
  for (int i = 0; i < m->n; i++)
    mem[i] = (InterpMemory){
        .base = m->base[i], .bytes = m->bytes[i], .name = "m", .segment = i, .initialised = true};
  InterpCmd cmd = {.kind = INTERP_LAUNCH, .func = f, .args = args};
  for (int i = 0; i < 3; i++) cmd.grid[i] = c->grid[i] ? c->grid[i] : 1;
  InterpConfig cfg = {.arena = a,
                      .module = mod,
                      .ranks = 1,
                      .memory = mem,
                      .nmemory = m->n,
                      .cmds = &cmd,
                      .ncmds = 1,
                      .check = true};
  InterpResult r;
  interp_run(&cfg, &r);
  return r;
}

static IrModule *read_case(Arena *a, Diags *d, const Case *c, int warps) {
  IrModule *m = NULL;
  if (ir_parse(a, ir_ctx_new(a), d, c->name, c->text, strlen(c->text), &m) != ST_OK)
    fail_msg("%s", diags_render(d, a));
  m->num_warps = warps;
  return m;
}

static void lower(Arena *a, Diags *d, IrModule *m, const char *names) {
  const PassConfig cfg = {.diags = d, .verify = true};
  if (pass_run_named(m, names, &cfg) != ST_OK) fail_msg("%s\n%s", diags_render(d, a), ir_print(m, a));
}

static void clean(Arena *a, const IrModule *m, const Case *c, const char *what) {
  const Memory x = memory_zero(a, m->funcs);
  const InterpResult r = checked(a, m, c, &x);
  if (r.status != ST_OK)
    fail_msg("%s, %s: %s\n%s", c->name, what, r.nfindings ? r.findings[0].text : "", ir_print(m, a));
}

typedef struct Nth {
  uint32_t left;
  IrOp *found;
} Nth;
static bool find_barrier(IrOp *op, void *user) {
  Nth *n = user;
  if (op->kind == OP_barrier && !n->found && !n->left--) n->found = op;
  return true;
}
static IrOp *barrier(IrModule *m, uint32_t n) {
  Nth x = {n, NULL};
  ir_walk(m->funcs->body, find_barrier, &x);
  return x.found;
}

static void clean_case(const Case *c, int warps) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = read_case(&a, &d, c, warps), *tile = ir_module_clone(m, &a);
  lower(&a, &d, m, LOWER);
  clean(&a, m, c, "before its places");
  lower(&a, &d, m, "alloc,sync");
  const Memory x = memory_zero(&a, m->funcs), y = memory_zero(&a, m->funcs);
  run(&a, tile, c, &x, "as written");
  const InterpResult r = checked(&a, m, c, &y);
  if (r.status != ST_OK)
    fail_msg("%s, %d warps: %s\n%s", c->name, warps, r.nfindings ? r.findings[0].text : "", ir_print(m, &a));
  compare(c, &x, &y, arena_printf(&a, "%d warps", warps));
  arena_free(&a);
}

static void test_clean(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(kernels) + DT_COUNTOF(cases); i++) {
    const Case *c = i < DT_COUNTOF(kernels) ? &kernels[i] : &cases[i - DT_COUNTOF(kernels)];
    for (int warps = 1; warps <= 8; warps *= 2) clean_case(c, warps);
  }
}

// Each barrier that is left is needed.
static bool mutant(const Case *c, uint32_t n) { // false: it has no such barrier
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = read_case(&a, &d, c, 4);
  lower(&a, &d, m, LOWER ",alloc,sync");
  IrOp *b = barrier(m, n);
  if (b) {
    ir_erase(b);
    const Memory x = memory_zero(&a, m->funcs);
    const InterpResult r = checked(&a, m, c, &x);
    if (r.status != ST_RACE)
      fail_msg("%s without barrier %u: nothing was found\n%s", c->name, n, ir_print(m, &a));
  }
  const bool found = b != NULL;
  arena_free(&a);
  return found;
}

static void test_mutants(void **state) {
  (void)state;
  uint32_t mutants = 0;
  for (size_t i = 0; i < DT_COUNTOF(kernels); i++) {
    for (uint32_t n = 0; mutant(&kernels[i], n); n++) mutants++;
  }
  assert_true(mutants >= 15);
}

static uint32_t count(IrModule *m) {
  uint32_t n = 0;
  while (barrier(m, n)) n++;
  return n;
}

static uint32_t barriers_of(const Case *c) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = read_case(&a, &d, c, 4);
  lower(&a, &d, m, LOWER ",alloc,sync");
  const uint32_t n = count(m);
  arena_free(&a);
  return n;
}

// Ratchets: these may only get fewer.
static void test_counts(void **state) {
  (void)state;
  static const uint32_t most[] = {2, 2, 3, 3, 2, 3};
  for (size_t i = 0; i < DT_COUNTOF(kernels); i++) {
    const uint32_t n = barriers_of(&kernels[i]);
    if (n > most[i]) fail_msg("%s has %u barriers", kernels[i].name, n);
  }
}

typedef struct Ends {
  int64_t end, apart;
} Ends;
static bool find_end(IrOp *op, void *user) {
  Ends *e = user;
  if (op->kind != OP_mem_alloc) return true;
  const IrType *t = op->results[0].type;
  const int64_t bytes = ir_type_elems(t) * ir_type_bytes(t) * (t->stages ? t->stages : 1),
                end = ir_attr_i(op, ATTR_offset) + bytes;
  if (end > e->end) e->end = end;
  e->apart += bytes;
  return true;
}

static void test_sharing(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = read_case(&a, &d, &kernels[3], 4);
  lower(&a, &d, m, LOWER ",alloc,sync");
  Ends e = {0};
  ir_walk(m->funcs->body, find_end, &e);
  assert_true(e.end == 16384);
  assert_true(e.apart == 2 * 16384);
  arena_free(&a);
}

static void one(uint64_t seed, bool show) {
  Arena a;
  TEST_ARENA(a);
  IrModule *tile = generate(&a, seed * 7919 + 13);
  tile->num_warps = 1 << seed % 4;
  const Case c = seed_case(&a, seed, (int64_t)seed % 23, 100 + (int64_t)seed % 7);
  Memory x = memory_new(&a, tile->funcs, 1);
  fill_whole(&x, seed);
  run(&a, tile, &c, &x, "as written");
  IrModule *m =
      seed_placed(&a, tile, seed, NULL, seed & 4 ? "lay,pipe,low,alloc,sync" : LOWER ",alloc,sync", show);
  Memory y = memory_new(&a, tile->funcs, 1);
  fill_whole(&y, seed);
  const InterpResult r = checked(&a, m, &c, &y);
  if (r.status != ST_OK)
    fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, r.nfindings ? r.findings[0].text : "",
             ir_print(m, &a));
  compare(&c, &x, &y, "checked");
  arena_free(&a);
}

static void test_random_kernels(void **state) {
  (void)state;
  seeds_run(one, 400, 15);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_clean), cmocka_unit_test(test_mutants),
                                     cmocka_unit_test(test_counts), cmocka_unit_test(test_sharing),
                                     cmocka_unit_test(test_random_kernels)};
  return seeds_asked(argc, argv, one) ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
