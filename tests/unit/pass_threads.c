// Random thread-level kernels: the passes leave their results alone, and the uniformity analysis says the truth of every
// value that all threads compute.
#include "pass_thread_gen.h"

#include <stdlib.h>

enum { KERNELS = 600, THREADS = 128, WARP = 32, SLOTS = ELEMS / THREADS };
#define TIME_LIMIT_NS 2000000000ull // of each run

static void run_seed(uint64_t seed, const char *passes) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *before = generate(&a, seed * 7919 + 17), *after = ir_module_clone(before, &a);
  const PassConfig config = {.diags = &d, .verify = true};
  if (pass_run_named(after, passes, &config) != ST_OK)
    fail_msg("seed %llu, %s: %s", (unsigned long long)seed, passes, diags_render(&d, &a));
  const Case c = {.name = arena_printf(&a, "seed %llu", (unsigned long long)seed),
                  .grid = {1},
                  .args = {(int64_t)seed % 9, (int64_t)seed % 31}};
  Memory x = memory_new(&a, before->funcs, seed), y = memory_new(&a, before->funcs, seed);
  fill_threads(&x);
  fill_threads(&y);
  run(&a, before, &c, &x, "before");
  run(&a, after, &c, &y, passes);
  compare(&c, &x, &y, passes);
  arena_free(&a);
}

static void run_many(const char *passes) {
  const char *one = getenv("SEED"), *many = getenv("SEEDS");
  const uint64_t end = many ? UINT64_MAX : os_now_ns() + TIME_LIMIT_NS;
  const uint64_t n = one    ? 1
                     : many ? strtoull(many, NULL, 10)
                            : KERNELS,
                 first = one ? strtoull(one, NULL, 10) : 1;
  for (uint64_t i = 0; i < n && os_now_ns() < end; i++) run_seed(first + i, passes);
}

static void test_each(void **state) {
  (void)state;
  static const char *const passes[] = {"fold", "cse", "licm", "dce", "strength"};
  for (size_t i = 0; i < DT_COUNTOF(passes); i++) run_many(passes[i]);
}
static void test_all(void **state) {
  (void)state;
  run_many(pass_order(PASS_INTERP));
}

// ---- uniformity -------------------------------------------------------------------------------------------------------

typedef struct Watched {
  PassUniformity claim;
  uint32_t id;
} Watched;

// Stores each thread-level i32 of the function's own block to a row of its own, one word a thread.
static uint32_t watch(IrFunc *f, const PassUniform *u, IrValue *dump, Watched *out) {
  uint32_t n = 0;
  for (IrOp *op = f->body->first; op && n < SLOTS; op = op->next) {
    const IrOp *last = op;
    for (uint32_t r = 0; r < op->nresults && n < SLOTS; r++) {
      IrValue *v = ir_result(op, r);
      if (v->type->kind != IR_SCALAR || v->type->dtype != IR_i32 || !ir_type_is_thread(v->type)) continue;
      out[n] = (Watched){pass_uniform(u, v), v->id};
      IrBuilder b = ir_builder_after(op);
      const IrType *t = v->type;
      IrValue *tid = ir_result(ir_build(&b, OP_tid, 0, NULL, 1, &t, 0), 0);
      IrValue *at = ir_binary(&b, OP_add, tid, ir_const_i(&b, t, THREADS * n++));
      last = ir_store(&b, ir_ptr_add(&b, ir_to_thread(&b, dump), at), v, NULL);
    }
    while (op != last) op = op->next;
  }
  return n;
}

static void claims_of(uint64_t seed, uint64_t *uniform, uint64_t *warps) {
  Arena a;
  TEST_ARENA(a);
  IrModule *m = generate(&a, seed * 7919 + 17);
  IrFunc *f = m->funcs;
  Watched values[SLOTS];
  IrValue *dump = ir_func_param(f, ir_type_ptr(m->ctx, IR_i32, SPACE_global, LEVEL_program), NULL);
  const PassUniform *u = pass_uniform_run(f, &a);
  const uint32_t n = watch(f, u, dump, values);
  const Case c = {.name = "uniformity", .grid = {1}, .args = {(int64_t)seed % 9, (int64_t)seed % 31}};
  Memory mem = memory_new(&a, f, seed);
  fill_threads(&mem);
  run(&a, m, &c, &mem, "watched");
  const int32_t *words = mem.base[mem.n - 1];
  for (uint32_t i = 0; i < n; i++) {
    const PassUniformity claim = values[i].claim;
    if (claim == PASS_DIVERGENT) continue;
    *(claim == PASS_UNIFORM ? uniform : warps) += 1;
    for (int t = 0; t < THREADS; t++) {
      const int32_t want = words[i * THREADS + (uint32_t)(claim == PASS_UNIFORM ? 0 : t / WARP * WARP)];
      if (words[i * THREADS + (uint32_t)t] != want)
        fail_msg("seed %llu: value %u is not %s", (unsigned long long)seed, values[i].id,
                 claim == PASS_UNIFORM ? "uniform" : "warp-uniform");
    }
  }
  arena_free(&a);
}

static void test_uniformity(void **state) {
  (void)state;
  uint64_t uniform = 0, warps = 0;
  const uint64_t end = os_now_ns() + TIME_LIMIT_NS;
  for (uint64_t seed = 1; seed <= KERNELS && os_now_ns() < end; seed++) claims_of(seed, &uniform, &warps);
  assert_true(uniform > 20 && warps > 2); // it does claim something
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_each), cmocka_unit_test(test_all),
                                     cmocka_unit_test(test_uniformity)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
