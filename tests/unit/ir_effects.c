// Effects: one case for each row of ops.def that has effects, and which neighbours may change places.
#include "harness/test.h"
#include "ir/ir.h"

#include <stdio.h>
#include <string.h>

// Values that the ops below work on. No case depends on another by data.
static const char head[] =
    "module stage=laid warps=4 stages=2 lanes=32\n"
    "func @helper() {\n return\n}\n"
    "kernel @k(%p: ptr<f32>, %pi: ptr<i32>, %i: i32, %l: i64, %x: f32, %c: i1, %d: desc<16xf32>) {\n"
    " %t = tid : thread i32\n %tf = to_thread %x : thread f32\n %pt = to_thread %p : thread ptr<f32>\n"
    " %tx = splat %x : tile<16xf32>\n %sp = splat %p : tile<16xptr<f32>>\n"
    " %m = mem_alloc : memdesc<16xf32, shared>\n %n = mem_alloc : memdesc<16xf32, shared>\n"
    " %bar = mbarrier_alloc {count=1} : mbarrier\n";

static IrModule *read_body(Arena *a, Diags *d, const char *stage, const char *body) {
  const char *text = arena_printf(a, "%s%s\n return\n}\n", head, body);
  if (strcmp(stage, "lowered") == 0) {
    text = arena_printf(
        a,
        "module stage=lowered warps=4 stages=2 lanes=32\nkernel @k(%%p: ptr<f32>, %%i: i32, %%x: f32) {\n"
        " %%tp = to_thread %%p : thread ptr<f32>\n %%tx = to_thread %%x : thread f32\n %%ti = tid : thread i32\n"
        " %%m = mem_alloc {offset=0} : memdesc<64xf32, shared>\n"
        " %%sh = mem_ptr %%m : thread ptr<f32, shared>\n"
        " %%h = bitcast %%p : ptr<f16>  %%l = ext_s %%i : i64\n"
        " %%d = make_desc %%h, %%i, %%i, %%l, %%l : desc<16x64xf16>\n"
        " %%strips = mem_alloc : memdesc<8*16x64xf16, shared, reg(1 2 4 8 16 32 72 144 288 512) lane() warp()>\n"
        "%s\n return\n}\n",
        body);
  } else if (strcmp(stage, "laid") != 0) {
    text = arena_printf(
        a,
        "module stage=%s warps=4 stages=2 lanes=32\nkernel @k(%%p: ptr<f32>, %%i: i32, %%x: f32) {\n"
        " %%v = splat %%x : tile<8xf32>\n %%w = splat %%i : tile<8xi32>\n"
        " %%m = mem_alloc {offset=0} : memdesc<8x8xf32, scratch>\n%s\n return\n}\n",
        stage, body);
  }
  IrModule *m;
  if (ir_parse(a, ir_ctx_new(a), d, "case", text, strlen(text), &m) != ST_OK)
    fail_msg("%s\n%s", diags_render(d, a), text);
  return m;
}

static IrOp *last_op(IrModule *m) { return m->last_func->body->last->prev; }

// ---- one op -------------------------------------------------------------------------------------------------------

enum { G = RES_GLOBAL, Y = RES_SYMM, M = RES_MEMDESC, S = RES_SIGNAL, X = RES_WORLD };
typedef struct Row {
  IrOpKind kind;
  const char *stage, *text;
  uint8_t reads, writes, async_reads, async_writes;
  bool barrier;
  IrOrder order;
  IrScope scope;
} Row;

static const Row rows[] = {
    {OP_timer, "laid", "%r = timer : i64", X, 0, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_smid, "laid", "%r = smid : i32", X, 0, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_assume, "laid", "assume %c", 0, X, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_from_thread, "laid", "%r = from_thread %t : i32", 0, 0, 0, 0, true, ORDER_weak, SCOPE_block},
    {OP_from_thread, "laid", "%r = from_thread %t {uniform=true} : i32", 0, 0, 0, 0, false, ORDER_weak,
     SCOPE_block},
    {OP_load, "laid", "%r = load %p, _, _ : f32", G, 0, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_load, "laid", "%r = load %p, _, _ {volatile=true} : f32", G, 0, 0, 0, false, ORDER_relaxed,
     SCOPE_block},
    {OP_load, "laid", "%r = load %p, _, _ {order=acquire, scope=sys} : f32", G, 0, 0, 0, false, ORDER_acquire,
     SCOPE_sys},
    {OP_store, "laid", "store %p, %x, _", 0, G, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_store, "laid", "store %p, %x, _ {order=release, scope=gpu}", 0, G, 0, 0, false, ORDER_release,
     SCOPE_gpu},
    {OP_atomic_rmw, "laid", "%r = atomic_rmw %p, %x, _ {order=acq_rel, scope=gpu, rmw=fadd} : f32", G, G, 0,
     0, false, ORDER_acq_rel, SCOPE_gpu},
    {OP_atomic_cas, "laid", "%r = atomic_cas %pi, %i, %i {order=relaxed, scope=sys} : i32", G, G, 0, 0, false,
     ORDER_relaxed, SCOPE_sys},
    {OP_load_vec, "placed", "%r = load_vec %p, _, _ : tile<8xf32>", G, 0, 0, 0, false, ORDER_weak,
     SCOPE_block},
    {OP_store_vec, "placed", "store_vec %p, %v, _", 0, G, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_desc_load, "laid", "%r = desc_load %d, %i : tile<16xf32>", G, 0, 0, 0, false, ORDER_weak,
     SCOPE_block},
    {OP_desc_store, "laid", "desc_store %d, %tx, %i", 0, G, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_desc_rmw, "laid", "desc_rmw %d, %tx, %i {rmw=fadd}", G, G, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_mem_load, "laid", "%r = mem_load %m : tile<16xf32>", M, 0, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_mem_store, "laid", "mem_store %m, %tx", 0, M, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_mem_get, "laid", "%r = mem_get %m, %i : f32", M, 0, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_mem_set, "laid", "mem_set %m, %x, %i", 0, M, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_copy_async, "laid", "%r = copy_async %m, %sp, _, _ : token", G, M, G, M, false, ORDER_weak,
     SCOPE_block},
    {OP_async_wait, "laid", "%r = async_wait : token", M | G, M | G, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_mbarrier_expect, "laid", "mbarrier_expect %bar, %i, %i", S, S, 0, 0, false, ORDER_release,
     SCOPE_block},
    {OP_mbarrier_arrive, "laid", "mbarrier_arrive %bar, %i", S, S, 0, 0, false, ORDER_release, SCOPE_block},
    {OP_mbarrier_wait, "laid", "%r = mbarrier_wait %bar, %i, %i : token", S, 0, 0, 0, false, ORDER_acquire,
     SCOPE_block},
    {OP_desc_load_async, "laid", "desc_load_async %d, %m, %bar, %i, %i", G | S, M | S, G, M, false,
     ORDER_weak, SCOPE_block},
    {OP_desc_store_async, "laid", "%r = desc_store_async %d, %m, %i : token", M, G, M, G, false, ORDER_weak,
     SCOPE_block},
    {OP_dot_mem, "placed", "dot_mem %m, %m, %m", M, M, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_mem_gather, "placed", "%r = mem_gather %m, %i, %w : tile<8xf32>", M, 0, 0, 0, false, ORDER_weak,
     SCOPE_block},
    {OP_mem_scatter, "placed", "mem_scatter %m, %v, %i, %w", 0, M, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_load_pack, "lowered", "%r, %s = load_pack %tp, _, _ : thread f32, thread f32", G, 0, 0, 0, false,
     ORDER_weak, SCOPE_block},
    {OP_load_pack, "lowered", "%r, %s = load_pack %sh, _, _ : thread f32, thread f32", M, 0, 0, 0, false,
     ORDER_weak, SCOPE_block},
    {OP_store_pack, "lowered", "store_pack %tp, _, %tx, %tx", 0, G, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_add_pack, "lowered", "add_pack %tp, _, %tx, %tx {order=relaxed}", G, G, 0, 0, false, ORDER_relaxed,
     SCOPE_block},
    {OP_store_pack, "lowered", "store_pack %sh, _, %tx, %tx", 0, M, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_load, "lowered", "%r = load %sh, _, _ : thread f32", M, 0, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_store, "lowered", "store %sh, %tx, _", 0, M, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_ldmatrix, "lowered", "%r = ldmatrix %sh : thread i32", M, 0, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_stmatrix, "lowered", "stmatrix %sh, %ti", 0, M, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_dot_async, "laid",
     "%a = splat %x : tile<16x16xf32>  %b = mem_alloc : memdesc<16x16xf32, shared>\n"
     "%r = dot_async %a, %b, _ : tile<16x16xf32>",
     M, 0, M, 0, false, ORDER_weak, SCOPE_block},
    {OP_dot_wait, "laid", "%r = dot_wait %tx {pending=0} : tile<16xf32>", M, M, 0, 0, false, ORDER_weak,
     SCOPE_block},
    {OP_wgmma, "lowered",
     "%r, %s, %u, %v = wgmma %sh, %sh {wgmma=f16_f16, product=[64, 8, 16, 1, 1]} : thread f32, thread f32, "
     "thread f32, thread f32",
     M, 0, M, 0, false, ORDER_weak, SCOPE_block},
    {OP_wgmma_wait, "lowered", "%r = wgmma_wait %tx {pending=0} : thread f32", M, M, 0, 0, false, ORDER_weak,
     SCOPE_block},
    {OP_strip_store, "lowered",
     "strip_store %d, %strips, %ti, %ti, %ti, %ti, %ti, %ti, %ti, %ti, %ti, %ti, %ti, %ti, %ti, %ti, %ti, "
     "%ti, %ti, %ti {strip=0}",
     0, G | M, 0, G | M, false, ORDER_weak, SCOPE_block},
    {OP_strips_end, "lowered", "strips_end", M, M, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_turn_begin, "lowered", "%bar = mbarrier_alloc {count=4} : mbarrier<2>  turn_begin %bar", S, S, 0, 0,
     false, ORDER_weak, SCOPE_block},
    {OP_turn_end, "lowered", "%bar = mbarrier_alloc {count=4} : mbarrier<2>  turn_end %bar", S, S, 0, 0,
     false, ORDER_weak, SCOPE_block},
    {OP_copy_pack, "lowered", "copy_pack %sh, %tp, _ {bytes=16}", G, M, G, M, false, ORDER_weak, SCOPE_block},
    {OP_copy_commit, "lowered", "copy_commit", M, M, M, M, false, ORDER_weak, SCOPE_block},
    {OP_copy_wait, "lowered", "copy_wait {pending=1}", M, M, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_barrier, "laid", "barrier", 0, 0, 0, 0, true, ORDER_weak, SCOPE_block},
    {OP_warp_barrier, "laid", "warp_barrier", 0, 0, 0, 0, true, ORDER_weak, SCOPE_block},
    {OP_fence, "laid", "fence {order=acq_rel, scope=sys}", 0, 0, 0, 0, true, ORDER_acq_rel, SCOPE_sys},
    {OP_wait, "laid", "%r = wait %pi, _, %i {order=acquire, scope=sys} : token", S, 0, 0, 0, false,
     ORDER_acquire, SCOPE_sys},
    {OP_signal, "laid", "signal %pi, %i, %i {order=release, scope=gpu}", S, S | Y, 0, 0, false, ORDER_release,
     SCOPE_gpu},
    {OP_release, "laid", "release %pi, %i, _ {scope=sys}", S, S, 0, 0, true, ORDER_release, SCOPE_sys},
    {OP_acquire, "laid", "%r = acquire %pi, %i {scope=sys} : token", S, 0, 0, 0, true, ORDER_acquire,
     SCOPE_sys},
    {OP_put, "laid", "put %p, %p, %l, %i", G, Y, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_get, "laid", "get %p, %p, %l, %i", Y, G, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_put_signal, "laid", "put_signal %p, %p, %l, %pi, %i, %i", G | S, Y | S, 0, 0, false, ORDER_release,
     SCOPE_block},
    {OP_put_fence, "laid", "put_fence", Y, Y, 0, 0, true, ORDER_weak, SCOPE_block},
    {OP_put_quiet, "laid", "put_quiet", Y, Y, 0, 0, true, ORDER_weak, SCOPE_block},
    {OP_team_barrier, "laid", "team_barrier _ {scope=sys}", S | Y, Y, 0, 0, true, ORDER_weak, SCOPE_sys},
    {OP_print, "laid", "print %x", 0, X, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_assert, "laid", "assert %c", 0, X, 0, 0, false, ORDER_weak, SCOPE_block},
    {OP_inline_asm, "laid", "%r = inline_asm %x {asm=\"\", constraints=\"\"} : f32", X, X, 0, 0, false,
     ORDER_weak, SCOPE_block},
    {OP_inline_asm, "laid", "%r = inline_asm %x {asm=\"\", constraints=\"\", pure=true} : f32", 0, 0, 0, 0,
     false, ORDER_weak, SCOPE_block},
    {OP_call, "laid", "call {callee=@helper}", G | Y | S | X, G | Y | S | X, 0, 0, false, ORDER_weak,
     SCOPE_block},
};

static void check_row(const Row *r) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  const IrOp *op = last_op(read_body(&a, &d, r->stage, r->text));
  assert_int_equal(op->kind, r->kind);
  const IrEffects e = ir_op_effects(op);
  if (e.reads != r->reads || e.writes != r->writes || e.async_reads != r->async_reads ||
      e.async_writes != r->async_writes || e.barrier != r->barrier || e.order != r->order ||
      e.scope != r->scope) {
    fail_msg("%s: reads %x writes %x async %x %x barrier %d order %d scope %d", r->text, e.reads, e.writes,
             e.async_reads, e.async_writes, e.barrier, e.order, e.scope);
  }
  const bool nothing = !e.reads && !e.writes && !e.barrier && !e.order;
  if (ir_op_is_pure(op) != nothing) fail_msg("%s: pure %d", r->text, ir_op_is_pure(op));
  arena_free(&a);
}

static void test_rows(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(rows); i++) check_row(&rows[i]);
  for (int k = 0; k < OP_COUNT; k++) {
    bool seen = !*ir_ops[k].effects;
    for (size_t i = 0; i < DT_COUNTOF(rows); i++) seen |= rows[i].kind == (IrOpKind)k;
    if (!seen) fail_msg("%s has effects but no case here", ir_ops[k].name);
  }
}

// ---- pairs --------------------------------------------------------------------------------------------------------

// The matrix over the kinds of accesses: row first, column second, in program order. '+' may change places.
static const struct {
  const char *name, *text;
} kinds[] = {
    {"pure", "%%r%d = fneg %%x : f32"},
    {"load", "%%r%d = load %%p, _, _ : f32"},
    {"store", "store %%p, %%x, _"},
    {"relaxed load", "%%r%d = load %%p, _, _ {order=relaxed, scope=gpu} : f32"},
    {"acquire load", "%%r%d = load %%p, _, _ {order=acquire, scope=gpu} : f32"},
    {"release store", "store %%p, %%x, _ {order=release, scope=gpu}"},
    {"atomic", "%%r%d = atomic_rmw %%pi, %%i, _ {order=acq_rel, scope=gpu, rmw=add} : i32"},
    {"mem_load", "%%r%d = mem_load %%m : tile<16xf32>"},
    {"mem_store", "mem_store %%n, %%tx"},
    {"wait", "%%r%d = wait %%pi, _, %%i {order=acquire, scope=sys} : token"},
    {"signal", "signal %%pi, %%i, %%i {order=release, scope=sys}"},
    {"put", "put %%p, %%p, %%l, %%i {nbi=true}"},
    {"get", "get %%p, %%p, %%l, %%i"},
    {"put_fence", "put_fence"},
    {"copy_async", "%%r%d = copy_async %%m, %%sp, _, _ : token"},
    {"tma load", "desc_load_async %%d, %%m, %%bar, %%i, %%i"},
    {"tma store", "%%r%d = desc_store_async %%d, %%m, %%i : token"},
    {"async_wait", "%%r%d = async_wait : token"},
    {"mbar_arrive", "mbarrier_arrive %%bar, %%i"},
    {"mbar_wait", "%%r%d = mbarrier_wait %%bar, %%i, %%i : token"},
    {"barrier", "barrier"},
    {"fence", "fence {order=acq_rel, scope=sys}"},
    {"release", "release %%pi, %%i, _ {scope=sys}"},
    {"acquire", "%%r%d = acquire %%pi, %%i {scope=sys} : token"},
    {"print", "print %%x"},
    {"timer", "%%r%d = timer : i64"},
};
enum { NKINDS = (int)DT_COUNTOF(kinds) };

// clang-format off
static const char *const matrix[NKINDS] = {
    /* pure          */ "++++++++++++++++++++++++++",
    /* load          */ "++-++--+++----+----+----++",
    /* store         */ "+------++---------------++",
    /* relaxed load  */ "++-----++-----+-----------",
    /* acquire load  */ "+-------------------------",
    /* release store */ "+------++-----------------",
    /* atomic        */ "+-------------------------",
    /* mem_load      */ "+++++--+-+-++---+--+----++",
    /* mem_store     */ "+++++----+-++------+----++",
    /* wait          */ "+-------------------------",
    /* signal        */ "+------++-----------------",
    /* put           */ "+------++---------------++",
    /* get           */ "+------++---------------++",
    /* put_fence     */ "+-------------------------",
    /* copy_async    */ "++-++----+---------+----++",
    /* tma load      */ "+-------------------------",
    /* tma store     */ "+------+----------------++",
    /* async_wait    */ "+-----------------------++",
    /* mbar_arrive   */ "+------++-----------------",
    /* mbar_wait     */ "+-------------------------",
    /* barrier       */ "+-------------------------",
    /* fence         */ "+-------------------------",
    /* release       */ "+-------------------------",
    /* acquire       */ "+-------------------------",
    /* print         */ "+++----++--++-+-++--------",
    /* timer         */ "+++----++--++-+-++--------",
};
// clang-format on

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static bool may_swap(int first, int second) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  char one[256], two[256], body[600];
  snprintf(one, sizeof one, kinds[first].text, 1);
  snprintf(two, sizeof two, kinds[second].text, 2);
  snprintf(body, sizeof body, "%s\n%s", one, two);
  const IrOp *b = last_op(read_body(&a, &d, "laid", body));
  const bool r = ir_may_swap(b->prev, b);
  arena_free(&a);
  return r;
}

static void test_matrix(void **state) {
  (void)state;
  for (int i = 0; i < NKINDS; i++) {
    assert_int_equal(strlen(matrix[i]), NKINDS);
    for (int j = 0; j < NKINDS; j++) {
      if (may_swap(i, j) != (matrix[i][j] == '+')) {
        fail_msg("%s, then %s: may %schange places", kinds[i].name, kinds[j].name,
                 may_swap(i, j) ? "" : "not ");
      }
    }
  }
}

// ---- what the matrix cannot say -----------------------------------------------------------------------------------

typedef struct Pair {
  const char *text; // the last two ops before the return are asked about, or those before it with `skip`
  int skip;
  bool may;
} Pair;

static void check_pair(const Pair *c) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = read_body(&a, &d, "laid", c->text);
  IrOp *b = last_op(m);
  for (int i = 0; i < c->skip; i++) b = b->prev;
  if (ir_may_swap(b->prev, b) != c->may) fail_msg("wanted %d: %s", c->may, c->text);
  if (ir_verify(m, &d) != ST_OK) fail_msg("%s", diags_render(&d, &a));
  arena_free(&a);
}

static void test_special_pairs(void **state) {
  (void)state;
#define WAIT "%k = wait %pi, _, %i {order=acquire, scope=sys} : token\n"
  static const Pair cases[] = {
      {"%a = fneg %x : f32\n%b = fabs %a : f32", 0, false}, // data
      {"%a = fneg %x : f32\n%b = fabs %x : f32", 0, true},
      {WAIT "%r = load %p, _, _ : f32", 0, false},
      // the token goes to named values: only they wait
      {WAIT "%r = load %p, _, _ : f32\n%q = consume %p, %k : ptr<f32>", 1, true},
      {WAIT "%s = mem_load %m : tile<16xf32>\n%q = consume %p, %k : ptr<f32>", 1, true},
      {WAIT "store %p, %x, _\n%q = consume %p, %k : ptr<f32>", 1, false}, // may be the flag itself
      {WAIT "%q = consume %p, %k : ptr<f32>", 0, false},                  // data
      {WAIT "%r = load %p, _, _ {order=acquire, scope=gpu} : f32\n%q = consume %p, %k : ptr<f32>", 1, false},
      // other uses of the token: it orders everything
      {WAIT "%r = load %p, _, _ : f32\n%w = async_wait %k : token", 1, false},
      {WAIT "%r = load %p, _, _ : f32\n%q = consume %p, %k : ptr<f32>\n%w = async_wait %k : token", 2, false},
      // regions count with all that is in them
      {"%r = load %p, _, _ : f32\nif %c { store %p, %x, _ yield } { yield }", 0, false},
      {"%r = load %p, _, _ : f32\nif %c { %q = load %p, _, _ : f32 yield } { yield }", 0, true},
      {"%r = load %p, _, _ : f32\nif %c { if %c { barrier yield } { yield } yield } { yield }", 0, false},
      {"%r = load %p, _, _ : f32\nif %c { yield } { yield }", 0, true},
      {"store %p, %x, _\nfor %i, %i, %i { (%j: i32) %q = load %p, _, _ : f32 yield }", 0, false},
      {"%r = load %p, _, _ {volatile=true} : f32\n%s = load %p, _, _ {volatile=true} : f32", 0, false},
      {"%r = load %p, _, _ {volatile=true} : f32\n%s = load %p, _, _ : f32", 0, true},
      {"%r = shfl %tf, %t {shfl=xor} : thread f32\nbarrier", 0, true},
      {"%a = inline_asm %x {asm=\"\", constraints=\"\"} : f32\n%b = inline_asm %x {asm=\"\", constraints=\"\"} : f32",
       0, false},
      {"%a = inline_asm %x {asm=\"\", constraints=\"\", pure=true} : f32\nbarrier", 0, true},
  };
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) check_pair(&cases[i]);
}

static void check_purity(const char *text, bool pure) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  if (ir_op_is_pure(last_op(read_body(&a, &d, "laid", text))) != pure) fail_msg("wanted %d: %s", pure, text);
  arena_free(&a);
}

static void test_purity(void **state) {
  (void)state;
  check_purity("%a = fneg %x : f32", true);
  check_purity("%a = mem_alloc : memdesc<16xf32, shared>", false);
  check_purity("%r = load %p, _, _ : f32", false);
  check_purity("%r = shfl %tf, %t {shfl=xor} : thread f32", false);
  check_purity("%r = if %c : f32 { yield %x } { yield %x }", true);
  check_purity("%r = if %c : f32 { yield %x } { %q = load %p, _, _ : f32 yield %q }", false);
  check_purity("%r = for %i, %i, %i, %x : f32 { (%j: i32, %q: f32) %s = fneg %q : f32 yield %s }", true);
  check_purity("while { cond_yield %c } { yield }", true);
  check_purity("while { barrier cond_yield %c } { yield }", false);
  check_purity("switch %i {cases=[]} { print %x yield }", false);
  check_purity("%r = reduce %tx {axis=0} : f32 { (%a: f32, %b: f32) %q = fadd %a, %b : f32 yield %q }", true);
  check_purity("warp_partitions {first=[0], warps=[4]} { yield }", false);
  check_purity("call {callee=@helper}", false);
}

static void check_executor(const char *text, IrExecutor want) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrOp *op = last_op(read_body(&a, &d, "laid", text));
  if (op->kind == OP_if) op = op->regions[0]->first;
  if (ir_op_executor(op) != want) fail_msg("executor %d, wanted %d: %s", ir_op_executor(op), want, text);
  arena_free(&a);
}

static void test_executors(void **state) {
  (void)state;
  check_executor("%a = fneg %x : f32", EXEC_PROGRAM);
  check_executor("%a = fneg %tf : thread f32", EXEC_THREAD);
  check_executor("%a = fneg %tx : tile<16xf32>", EXEC_PROGRAM);
  check_executor("%a = splat %x : tile<16xf32>", EXEC_PROGRAM);
  check_executor("%a = const {value=1} : thread i32", EXEC_THREAD);
  check_executor("fence {order=acq_rel, scope=sys}", EXEC_PROGRAM);
  check_executor(
      "%g = cmp %t, %t {cmp=eq} : thread i1\nif %g { fence {order=acq_rel, scope=sys} yield } { yield }",
      EXEC_THREAD);
  check_executor("if %c { fence {order=acq_rel, scope=sys} yield } { yield }", EXEC_PROGRAM);
  check_executor("barrier", EXEC_BLOCK);
  check_executor("warp_barrier", EXEC_WARP);
  check_executor("put %p, %p, %l, %i", EXEC_PROGRAM);
  check_executor("put %p, %p, %l, %i {group=warp}", EXEC_WARP);
  check_executor("put %p, %p, %l, %i {group=block}", EXEC_BLOCK);
  check_executor("for %i, %i, %i { (%j: i32) yield }", EXEC_PROGRAM);
  check_executor("for %t, %t, %t { (%j: thread i32) yield }", EXEC_THREAD);
  check_executor("%r = for %i, %i, %i, %t : thread i32 { (%j: i32, %q: thread i32) yield %q }", EXEC_PROGRAM);
  check_executor("%g = cmp %t, %t {cmp=eq} : thread i1\nwhile { cond_yield %g } { yield }", EXEC_THREAD);
  check_executor("while { cond_yield %c } { yield }", EXEC_PROGRAM);
}

static void test_deep(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = read_body(
      &a, &d, "laid",
      "if %c { if %c { %k = wait %pi, _, %i {order=acquire, scope=gpu} : token yield } { yield } yield } "
      "{ store %p, %x, _ {order=release, scope=sys} mem_store %m, %tx yield }");
  const IrEffects own = ir_op_effects(last_op(m)), e = ir_op_effects_deep(last_op(m));
  assert_true(!own.reads && !own.writes && !own.order);
  assert_int_equal(e.reads, RES_SIGNAL);
  assert_int_equal(e.writes, RES_GLOBAL | RES_MEMDESC);
  assert_int_equal(e.order, ORDER_acq_rel);
  assert_int_equal(e.scope, SCOPE_sys);
  assert_false(e.barrier);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),   cmocka_unit_test(test_matrix),    cmocka_unit_test(test_special_pairs),
      cmocka_unit_test(test_purity), cmocka_unit_test(test_executors), cmocka_unit_test(test_deep),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
