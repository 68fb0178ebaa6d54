// Every row of ops.def has a sample, the smallest valid use of it. Each must verify, print, read back and print the
// same, survive a copy of the module, and be refused in every stage that its row does not name. A row without a sample
// fails the test.
#include "harness/test.h"
#include "ir/ir.h"
#include "unit/ir_samples.h"

#include <stdio.h>
#include <string.h>

static IrModule *read_text(Arena *a, Diags *d, const char *text) {
  IrModule *m;
  const Status s = ir_parse(a, ir_ctx_new(a), d, "sample", text, strlen(text), &m);
  if (s != ST_OK) fail_msg("%s\n%s", diags_render(d, a), text);
  return m;
}

static bool count_op(IrOp *op, void *counts) {
  ((int *)counts)[op->kind]++;
  return true;
}

static void test_every_row_has_a_sample(void **state) {
  (void)state;
  bool seen[OP_COUNT] = {false};
  for (size_t i = 0; i < DT_COUNTOF(samples); i++) {
    if (seen[samples[i].kind]) fail_msg("%s has two samples", ir_ops[samples[i].kind].name);
    seen[samples[i].kind] = true;
  }
  for (int k = 0; k < OP_COUNT; k++) {
    if (!seen[k]) fail_msg("%s has no sample", ir_ops[k].name);
  }
}

static void check_sample(const Sample *s) {
  Arena a, b;
  TEST_ARENA(a);
  TEST_ARENA(b);
  Diags d;
  diags_init(&d, &a);
  const char *text = sample_text(&a, s, sample_stage(s));
  IrModule *m = read_text(&a, &d, text);
  if (ir_verify(m, &d) != ST_OK) fail_msg("%s\n%s", diags_render(&d, &a), text);
  int counts[OP_COUNT] = {0};
  ir_walk(m->last_func->body, count_op, counts);
  if (!counts[s->kind]) fail_msg("the sample of %s does not hold it", ir_ops[s->kind].name);

  const char *once = ir_print(m, &a);
  assert_string_equal(once, ir_print(read_text(&a, &d, once), &a));
  IrModule *copy = ir_module_clone(m, &b);
  assert_string_equal(once, ir_print(copy, &a));
  if (ir_verify(copy, &d) != ST_OK) fail_msg("copy: %s", diags_render(&d, &a));
  const char *located = ir_print_with_locs(m, &a);
  assert_string_equal(once, ir_print(read_text(&a, &d, located), &a));
  assert_string_equal(located, ir_print_with_locs(read_text(&a, &d, located), &a));
  arena_free(&b);
  arena_free(&a);
}

static void test_samples_verify_and_round_trip(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(samples); i++) check_sample(&samples[i]);
}

static void check_stage(const Sample *s, int stage) {
  static const char *const stages[] = {"tile", "laid", "lowered", "placed"};
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  d.max_errors = 1000;
  IrModule *m = read_text(&a, &d, sample_text(&a, s, stages[stage]));
  ir_verify(m, &d);
  char *want = arena_printf(&a, "%s: is not legal in the stage %s", ir_ops[s->kind].name, stages[stage]);
  bool refused = false;
  for (uint32_t j = 0; j < d.list.len; j++) refused |= strncmp(d.list.data[j].text, want, strlen(want)) == 0;
  const bool legal = strchr(ir_ops[s->kind].stages, "tlwp"[stage]) != NULL;
  if (refused == legal) fail_msg("%s in stage %s: refused %d", ir_ops[s->kind].name, stages[stage], refused);
  arena_free(&a);
}

static void test_stages(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(samples); i++) {
    for (int stage = 0; stage < 4; stage++) check_stage(&samples[i], stage);
  }
}

// The columns of ops.def say something that the code understands.
static void test_rows_are_sound(void **state) {
  (void)state;
  static const char *const classes[] = {"any",  "int", "num",  "flt",  "i1",      "ptr",      "i32",   "idx",
                                        "sptr", "si1", "tile", "desc", "memdesc", "mbarrier", "token", "val"};
  for (int k = 0; k < OP_COUNT; k++) {
    const IrOpInfo *o = &ir_ops[k];
    for (int side = 0; side < 2; side++) {
      const char *p = side ? o->results : o->operands;
      while (*p) {
        const size_t slot = strcspn(p, " "), name = strcspn(p, ":");
        if (name >= slot) fail_msg("%s: '%s'", o->name, p);
        const size_t cls = strcspn(p + name + 1, " ?*");
        bool known = false;
        for (size_t c = 0; c < DT_COUNTOF(classes); c++) {
          known |= strlen(classes[c]) == cls && strncmp(p + name + 1, classes[c], cls) == 0;
        }
        if (!known) fail_msg("%s: unknown class in '%s'", o->name, p);
        if (p[slot - 1] == '*' && p[slot]) fail_msg("%s: '*' is not last", o->name);
        p += slot;
        while (*p == ' ') p++;
      }
    }
    assert_true(strlen(o->regions) == 1 && strchr("012*", o->regions[0]));
    assert_true(*o->stages && strspn(o->stages, "tlwp") == strlen(o->stages));
    assert_true(strspn(o->effects, "gymsxbrwuoALa ") == strlen(o->effects));
    assert_true(*o->text);
    assert_int_equal(ir_op_by_name(o->name, strlen(o->name)), k);
    assert_int_equal(ir_op_by_name(o->name, strlen(o->name) - 1) == k, 0);
    // an op that is pure has no effects, and the other way about an op with effects is not pure
    if (o->traits & TRAIT_PURE) assert_string_equal(o->effects, "");
  }
  assert_int_equal(ir_op_by_name("", 0), -1);
  assert_int_equal(ir_op_by_name("addd", 4), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_row_has_a_sample),
      cmocka_unit_test(test_rows_are_sound),
      cmocka_unit_test(test_samples_verify_and_round_trip),
      cmocka_unit_test(test_stages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
