// The axis analysis on random kernels: what it claims of a value holds of the value that the interpreter computes.
#include "pass_gen.h"

#include <stdlib.h>

enum { KERNELS = 1500 };
#define TIME_LIMIT_NS 5000000000ull

static int64_t wrap(int64_t v, int bits) {
  return bits == 64 ? v : (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
}

static bool multiple(int64_t v, int64_t div, int bits) {
  if (bits < 31 && div > (int64_t)1 << bits) div = (int64_t)1 << bits;
  return ((uint64_t)v & (uint64_t)(div - 1)) == 0;
}

// Element i of a row-major tile: the length of axis d, and elements between neighbours along it.
static void axis_of(const IrType *t, int d, int *extent, int *stride) {
  *extent = t->kind == IR_TILE ? t->shape[d] : 1;
  *stride = 1;
  for (int k = d + 1; k < t->rank; k++) *stride *= t->shape[k];
}

static const char *wrong(const PassAxis *a, const IrType *t, const int64_t *e) {
  const int n = (int)ir_type_elems(t), bits = ir_dtypes[t->dtype].bits;
  for (int i = 0; i < n; i++) {
    if (e[i] < a->lo || e[i] > a->hi) return "range";
    if (!multiple(e[i], a->all_div, bits)) return "all_div";
  }
  for (int d = 0; d < (a->rank ? a->rank : 1); d++) {
    int extent, stride;
    axis_of(t, d, &extent, &stride);
    if (a->contig[d] < 1 || a->contig[d] > extent || a->constancy[d] < 1 || a->constancy[d] > extent)
      return "run longer than the axis";
    for (int i = 0; i < n; i++) {
      const int at = i / stride % extent;
      if (at % a->contig[d] == 0 && !multiple(e[i], a->div[d], bits)) return "div";
      if (at % a->contig[d] != 0 && wrap(e[i], bits) != wrap(e[i - stride] + 1, bits)) return "contig";
      if (at % a->constancy[d] != 0 && e[i] != e[i - stride]) return "constancy";
    }
  }
  return NULL;
}

static void run_seed(uint64_t seed, uint64_t *claims) {
  Arena a;
  TEST_ARENA(a);
  Gen g;
  GenMemory *mem = arena_new(&a, GenMemory);
  gen_kernel(&g, &a, seed, false);
  gen_fill(mem, seed, false);
  const PassAxes *x = pass_axis_run(g.f, &a);
  if (gen_run(&a, g.m, mem, seed)) fail_msg("seed %llu does not run", (unsigned long long)seed);
  for (uint32_t i = 0; i < g.dumps.len; i++) {
    const GenDump *dump = &g.dumps.data[i];
    if (!ir_type_is_int(dump->v->type)) continue;
    for (int inst = 0; inst < GEN_GRID; inst++) {
      const PassAxis *facts = pass_axis(x, dump->v);
      const char *what = wrong(facts, dump->v->type, &mem->dump_i[inst * GEN_DUMP + dump->offset]);
      if (what) {
        ir_renumber(g.f);
        gen_show(ir_print(g.m, &a));
        fail_msg(
            "seed %llu: %s of %%%u is wrong (contig %d %d, div %d %d, constancy %d %d, all %d, range %lld..%lld), first %lld",
            (unsigned long long)seed, what, dump->v->id - g.f->params.len, facts->contig[0], facts->contig[1],
            facts->div[0], facts->div[1], facts->constancy[0], facts->constancy[1], facts->all_div,
            (long long)facts->lo, (long long)facts->hi,
            (long long)mem->dump_i[inst * GEN_DUMP + dump->offset]);
      }
      *claims += facts->contig[0] > 1 || facts->constancy[0] > 1 || facts->all_div > 1;
    }
  }
  arena_free(&a);
}

static void test_claims_hold(void **state) {
  (void)state;
  uint64_t claims = 0;
  const char *one = getenv("SEED"), *many = getenv("SEEDS");
  const uint64_t end = many ? UINT64_MAX : os_now_ns() + TIME_LIMIT_NS;
  const uint64_t n = one    ? 1
                     : many ? strtoull(many, NULL, 10)
                            : KERNELS,
                 first = one ? strtoull(one, NULL, 10) : 1;
  for (uint64_t i = 0; i < n && os_now_ns() < end; i++) run_seed(first + i, &claims);
  assert_true(claims > 10); // it does claim something
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims_hold)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
