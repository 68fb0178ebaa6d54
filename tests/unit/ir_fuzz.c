// The reader of IR on damaged text: no crash, no hang. What it accepts prints and reads back to the same text; what the
// verifier accepts too can be copied, and its ops can be asked anything. TIMEOUT: 200
#include "harness/fuzz.h"
#include "harness/test.h"
#include "ir/ir.h"
#include "unit/ir_samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ask(IrOp *op, void *user) {
  (void)user;
  int64_t i;
  double f;
  ir_op_effects_deep(op);
  ir_op_is_pure(op);
  ir_op_executor(op);
  if (op->next) ir_may_swap(op, op->next);
  for (uint32_t k = 0; k < op->nresults; k++) {
    ir_const_int(&op->results[k], &i);
    ir_const_float(&op->results[k], &f);
  }
  return true;
}

static void read_one(const void *data, size_t len, void *user) {
  (void)user;
  Arena a;
  Escape esc;
  arena_init(&a, 256 << 20, &esc);
  if (ESCAPE_TRY(&esc)) abort(); // the input is small; so must be what it makes
  Diags d;
  diags_init(&d, &a);
  IrCtx *c = ir_ctx_new(&a);
  IrModule *m, *n;
  const Status s = ir_parse(&a, c, &d, "f.ir", data, len, &m);
  if ((s == ST_OK) != (m != NULL) || (s == ST_OK) != (d.list.len == 0)) abort();
  if (s == ST_OK) {
    const char *once = ir_print(m, &a);
    if (ir_parse(&a, c, &d, "again.ir", once, strlen(once), &n) != ST_OK) abort();
    if (strcmp(once, ir_print(n, &a)) != 0) abort();
    if (ir_verify(m, &d) == ST_OK) {
      if (d.list.len || ir_verify(n, &d) != ST_OK) abort();
      IrModule *copy = ir_module_clone(m, &a);
      if (ir_verify(copy, &d) != ST_OK || strcmp(once, ir_print(copy, &a)) != 0) abort();
      for (IrFunc *f = m->funcs; f; f = f->next) ir_walk(f->body, ask, NULL);
    } else if (!d.list.len) {
      abort();
    }
  }
  diags_render(&d, &a);
  arena_free(&a);
}

static const char *const *words(void) {
  static const char *list[OP_COUNT + 64];
  static const char *const more[] = {"tile<16xf32>",
                                     "tile<16xptr<f32>>",
                                     "thread i32",
                                     "ptr<f32>",
                                     "memdesc<2*16xf32, shared>",
                                     "token",
                                     "desc<16xf32>",
                                     "mbarrier<2>",
                                     "i1",
                                     "i64",
                                     "f8e4m3",
                                     "{",
                                     "}",
                                     "(",
                                     ")",
                                     "[",
                                     "]",
                                     ":",
                                     ", ",
                                     "_",
                                     "%x",
                                     "%0",
                                     "@k",
                                     "\n",
                                     " = ",
                                     "{ yield }",
                                     "-1",
                                     "0x7fc00001",
                                     "4294967296",
                                     "1e400",
                                     "\"\\x00\"",
                                     "->",
                                     "// ",
                                     "loc(\"f\":1:1)",
                                     "wait=mutual",
                                     "axis=",
                                     "order=acquire",
                                     "cmp=slt",
                                     "value=",
                                     "perm=[1, 0]",
                                     "stage=placed",
                                     "callee=@helper",
                                     "cases=[1, 2]"};
  size_t n = 0;
  for (; n < OP_COUNT; n++) list[n] = ir_ops[n].name;
  for (size_t i = 0; i < DT_COUNTOF(more); i++) list[n++] = more[i];
  list[n] = NULL;
  return list;
}

static void test_reader(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Fuzz f = {.run = read_one, .tokens = words()};
  for (size_t i = 0; i < DT_COUNTOF(samples); i++) {
    const char *text = sample_text(&a, &samples[i], sample_stage(&samples[i]));
    fuzz_add(&f, text, strlen(text));
  }
  fuzz_add_files(&f, "tests/golden/*.ir");
  fuzz_or_fail(&f);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_reader)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
