// Moves between layouts within warps: random pairs of linear layouts, lowered and run on the interpreter; every element must arrive.
#include "harness/test.h"
#include "pass_place.h"

static uint32_t below(Rng *r, uint32_t n) { return (uint32_t)(rng_next(r) % n); }

// A random basis of what the first n columns span.
static void mix(Rng *r, uint32_t *col, uint32_t n) {
  for (uint32_t k = 0; k < 3 * n; k++) {
    const uint32_t i = below(r, n), j = below(r, n);
    if (i == j) continue;
    if (rng_next(r) & 1) {
      const uint32_t t = col[i];
      col[i] = col[j];
      col[j] = t;
    } else if (rng_next(r) % 4 == 0) { // mostly permutations, as in real programs
      col[i] ^= col[j];
    }
  }
}

// Registers and lanes hold `col`, some bits of either free; registers above lanes where there are too few columns for all lanes.
static IrLayout layout(Rng *r, const uint32_t *col, uint32_t n, const uint32_t *warp, uint32_t warps) {
  IrLayout l = {.n = {0, 5, (uint8_t)warps}};
  uint32_t all[24], lane_free = below(r, 3) ? 0 : below(r, 3), total = n;
  memcpy(all, col, n * sizeof *col);
  while (total < 5 + lane_free) all[total++] = 0; // free
  for (uint32_t i = 0; i < lane_free && total < 12; i++) {
    all[total++] = rng_next(r) & 1 && n ? all[below(r, n)] : 0;
  }
  for (uint32_t i = total; i-- > 1;) {
    const uint32_t j = below(r, i + 1), t = all[i];
    all[i] = all[j];
    all[j] = t;
  }
  l.n[PLACE_REG] = (uint8_t)(total - 5);
  memcpy(l.at, all, total * sizeof *all);
  memcpy(l.at + total, warp, warps * sizeof *warp);
  return l;
}

static const char *text_of(Arena *a, const IrLayout *l) {
  static const char *const names[] = {"reg", "lane", "warp"};
  const char *s = "";
  for (int d = 0; d < PLACE_DIMS; d++) {
    s = arena_printf(a, "%s%s%s(", s, d ? " " : "", names[d]);
    for (uint32_t i = 0; i < l->n[d]; i++)
      s = arena_printf(a, "%s%s%u", s, i ? " " : "", l->at[layout_first(l, (IrPlace)d) + i]);
    s = arena_printf(a, "%s)", s);
  }
  return s;
}

static bool count(IrOp *op, void *user) {
  uint32_t *n = user;
  n[0] += op->kind == OP_shfl;
  n[1] += op->kind == OP_mem_alloc;
  return true;
}

static void one(uint64_t seed, uint32_t *found) {
  Arena a;
  TEST_ARENA(a);
  Rng r = {seed * 77 + 5};
  static const IrDtype dtypes[] = {IR_i8, IR_i16, IR_i32, IR_i64, IR_i1};
  const IrDtype d = dtypes[below(&r, DT_COUNTOF(dtypes))];
  const uint32_t bits = 3 + below(&r, 8), warps = below(&r, 3), inner = bits > warps ? bits - warps : 0;
  uint32_t col[16], from_cols[16], warp[4];
  for (uint32_t i = 0; i < bits; i++) col[i] = 1u << i;
  mix(&r, col, bits);
  for (uint32_t i = 0; i < warps; i++) warp[i] = inner + i < bits ? col[inner + i] : 0;
  memcpy(from_cols, col, sizeof col);
  mix(&r, from_cols, inner);
  const IrLayout from = layout(&r, from_cols, inner, warp, warps);
  mix(&r, col, inner);
  for (uint32_t i = 0; i < warps && inner; i++) // warps may be shifted by what their registers and lanes hold
    if (rng_next(&r) % 4 == 0) warp[i] ^= col[below(&r, inner)];
  const IrLayout to = layout(&r, col, inner, warp, warps);
  const char *f = text_of(&a, &from), *t = text_of(&a, &to), *dt = ir_dtypes[d].name;
  const uint32_t n = 1u << bits;
  const char *x = "%i";
  const char *cast = "";
  if (d != IR_i32) {
    x = "%x";
    cast = d == IR_i64 ? arena_printf(&a, "  %%x = ext_u %%h : tile<%uxi64, %s>\n", n, f)
                       : arena_printf(&a, "  %%x = trunc %%h : tile<%ux%s, %s>\n", n, dt, f);
  } else {
    x = "%h";
  }
  const char *text = arena_printf(&a,
                                  "module stage=laid warps=%u stages=2 lanes=32\n"
                                  "kernel @f(%%o: ptr<%s>) {\n"
                                  "  %%i = arange {start=0, end=%u} : tile<%uxi32, %s>\n"
                                  "  %%c = const {value=40503} : tile<%uxi32, %s>\n"
                                  "  %%m = mul %%i, %%c : tile<%uxi32, %s>\n"
                                  "  %%s = const {value=7} : tile<%uxi32, %s>\n"
                                  "  %%g = shr_u %%m, %%s : tile<%uxi32, %s>\n"
                                  "  %%h = xor %%g, %%m : tile<%uxi32, %s>\n"
                                  "%s"
                                  "  %%y = relayout %s : tile<%ux%s, %s>\n"
                                  "  %%k = arange {start=0, end=%u} : tile<%uxi32, %s>\n"
                                  "  %%os = splat %%o : tile<%uxptr<%s>, %s>\n"
                                  "  %%p = ptr_add %%os, %%k : tile<%uxptr<%s>, %s>\n"
                                  "  store %%p, %%y, _\n"
                                  "  return\n"
                                  "}\n",
                                  1u << warps, dt, n, n, f, n, f, n, f, n, f, n, f, n, f, cast, x, n, dt, t,
                                  n, n, t, n, dt, t, n, dt, t);
  Diags diags;
  diags_init(&diags, &a);
  IrModule *m = NULL;
  if (ir_parse(&a, ir_ctx_new(&a), &diags, "case", text, strlen(text), &m) != ST_OK)
    fail_msg("%s\n%s", diags_render(&diags, &a), text);
  const Case c = {.name = "move", .grid = {1}};
  const Memory before = memory_new(&a, m->funcs, 1), after = memory_new(&a, m->funcs, 1);
  run(&a, m, &c, &before, "laid out");
  const PassConfig cfg = {.diags = &diags, .verify = true};
  if (pass_run_named(m, "low", &cfg) != ST_OK) fail_msg("%s\n%s", diags_render(&diags, &a), text);
  run(&a, m, &c, &after, "lowered");
  compare(&c, &before, &after, text);
  for (uint32_t i = 0; i < n; i++) { // the interpreter itself, by hand
    const uint32_t v = i * 40503u, h = v ^ v >> 7;
    uint64_t got = 0;
    memcpy(&got, (char *)after.base[0] + (size_t)i * ir_dtypes[d].bytes, ir_dtypes[d].bytes);
    assert_int_equal(got, d == IR_i1 ? h & 1 : h & (d == IR_i8 ? 0xff : d == IR_i16 ? 0xffff : 0xffffffff));
  }
  ir_walk(m->funcs->body, count, found);
  arena_free(&a);
}

static void test_random_layouts(void **state) {
  (void)state;
  uint32_t found[2] = {0};
  for (uint64_t seed = 0; seed < 1500; seed++) one(seed, found);
  assert_true(found[0] > 3000); // most go by shuffles
  assert_true(found[1] < 700);  // the dearest through shared memory
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_layouts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
