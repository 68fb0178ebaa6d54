// The interpreter on every op's smallest use, and on damaged programs: whatever the verifier accepts ends, with a status and
// without a crash. TIMEOUT: 200
#include "harness/fuzz.h"
#include "harness/test.h"
#include "ir/ir.h"
#include "unit/ir_samples.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, BYTES = 4096 };

// Every kernel of the module on two ranks, with pointers into small memory and small numbers.
static void run_module(Arena *a, IrModule *m, uint64_t seed, bool check, InterpResult *r) {
  static char memory[RANKS][BYTES], private_memory[RANKS][BYTES];
  InterpMemory mem[2 * RANKS];
  InterpCmd cmds[8 * RANKS];
  int n = 0;
  for (int k = 0; k < RANKS; k++) {
    memset(memory[k], 0, BYTES);
    memset(private_memory[k], 1, BYTES);
    mem[k] = (InterpMemory){
        .base = memory[k], .bytes = BYTES, .name = "shared", .rank = k, .segment = 0, .initialised = true};
    mem[RANKS + k] =
        (InterpMemory){.base = private_memory[k], .bytes = BYTES, .name = "own", .rank = k, .segment = -1};
  }
  for (IrFunc *f = m->funcs; f && n < 8 * RANKS; f = f->next) {
    if (!f->is_kernel) continue;
    for (int k = 0; k < RANKS; k++) {
      InterpArg *args = arena_array(a, InterpArg, f->body->args.len + 1);
      for (uint32_t p = 0; p < f->body->args.len; p++) {
        const IrType *t = f->body->args.data[p]->type;
        if (t->kind == IR_DESC) {
          InterpDesc *d = arena_new(a, InterpDesc);
          *d = (InterpDesc){.base = memory[k], .rank = t->rank};
          for (int x = 0; x < t->rank && x < 5; x++)
            d->shape[x] = 4, d->strides[x] = x + 1 == t->rank ? 1 : 4;
          args[p].desc = d;
        } else if (ir_type_is_ptr(t)) {
          args[p].p = (p % 3 == 2 ? private_memory[k] : memory[k]) + 64 * p;
        } else if (ir_type_is_float(t)) {
          args[p].f = 1.5;
        } else {
          args[p].i = 1 + (int64_t)(p % 2);
        }
      }
      cmds[n++] = (InterpCmd){
          .kind = INTERP_LAUNCH, .rank = k, .stream = k, .func = f, .grid = {2, 1, 1}, .args = args};
    }
  }
  const InterpConfig c = {.arena = a,
                          .module = m,
                          .ranks = RANKS,
                          .memory = mem,
                          .nmemory = 2 * RANKS,
                          .cmds = cmds,
                          .ncmds = n,
                          .seed = seed,
                          .max_steps = 20000,
                          .check = check};
  interp_run(&c, r);
  for (int k = 0; k < r->nfindings; k++)
    if (!r->findings[k].text || !*r->findings[k].text) abort();
  if ((r->status == ST_OK) != (r->nfindings == 0)) abort();
}

static void run_one(const void *data, size_t len, void *user) {
  (void)user;
  Arena a;
  Escape esc;
  arena_init(&a, 512 << 20, &esc);
  if (ESCAPE_TRY(&esc)) {
    arena_free(&a);
    return;
  }
  Diags d;
  diags_init(&d, &a);
  IrModule *m;
  if (ir_parse(&a, ir_ctx_new(&a), &d, "f.ir", data, len, &m) == ST_OK && ir_verify(m, &d) == ST_OK) {
    InterpResult r;
    run_module(&a, m, 0, false, &r);
    run_module(&a, m, len, true, &r);
  }
  arena_free(&a);
}

static void run_sample(const Sample *sample) {
  Arena a;
  TEST_ARENA(a);
  const char *text = sample_text(&a, sample, sample_stage(sample));
  Diags d;
  diags_init(&d, &a);
  IrModule *m;
  if (ir_parse(&a, ir_ctx_new(&a), &d, "f.ir", text, strlen(text), &m) != ST_OK || ir_verify(m, &d) != ST_OK)
    fail_msg("%s", diags_render(&d, &a));
  for (int check = 0; check < 2; check++) {
    InterpResult r;
    run_module(&a, m, (uint64_t)check, check, &r);
    if (r.status == ST_UNSUPPORTED && sample->kind != OP_inline_asm)
      fail_msg("%s: %s", ir_ops[sample->kind].name, r.findings[0].text);
  }
  arena_free(&a);
}

static void test_every_op(void **state) {
  (void)state;
  for (size_t i = 0; i < DT_COUNTOF(samples); i++) run_sample(&samples[i]);
}

static void test_damaged(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  static const char *list[OP_COUNT + 1];
  for (int k = 0; k < OP_COUNT; k++) list[k] = ir_ops[k].name;
  Fuzz f = {.run = run_one, .tokens = list};
  for (size_t i = 0; i < DT_COUNTOF(samples); i++) {
    const char *text = sample_text(&a, &samples[i], sample_stage(&samples[i]));
    fuzz_add(&f, text, strlen(text));
  }
  fuzz_add_files(&f, "tests/golden/*.ir");
  fuzz_or_fail(&f);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_op), cmocka_unit_test(test_damaged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
