// interp: how many tile elements and thread steps a second the interpreter makes. `make bench-interp` builds and runs it.
// One JSON object a case, one a line: name, dtype, checked, unit, rate, floor (what it must reach), of_floor.
#include "ir/ir.h"

#include <stdio.h>
#include <string.h>

#define HEAD "module stage=tile warps=4 stages=2 lanes=32\n"
enum { ELEMS = 8192, TURNS = 4000, ROUNDS = 5 };

typedef struct Run {
  double seconds;
  uint64_t steps;
} Run;

static Run run(const char *text, void *memory, size_t bytes, int64_t n, bool check) {
  Arena a;
  Escape escape;
  arena_init(&a, 0, &escape);
  if (ESCAPE_TRY(&escape)) {
    fprintf(stderr, "%s\n", escape.message);
    return (Run){0};
  }
  Diags d;
  diags_init(&d, &a);
  IrModule *m;
  Run best = {0};
  if (ir_parse(&a, ir_ctx_new(&a), &d, "bench", text, strlen(text), &m) != ST_OK ||
      ir_verify(m, &d) != ST_OK) {
    fprintf(stderr, "%s\n", diags_render(&d, &a));
    return best;
  }
  const InterpMemory mem = {.base = memory, .bytes = bytes, .name = "x", .segment = -1, .initialised = true};
  const InterpArg args[] = {{.p = memory}, {.i = n}};
  const InterpCmd cmd = {.kind = INTERP_LAUNCH, .func = m->funcs, .grid = {1, 1, 1}, .args = args};
  for (int k = 0; k < ROUNDS; k++) {
    const InterpConfig c = {.arena = &a,
                            .module = m,
                            .ranks = 1,
                            .memory = &mem,
                            .nmemory = 1,
                            .cmds = &cmd,
                            .ncmds = 1,
                            .check = check};
    InterpResult r;
    const uint64_t begin = os_now_ns();
    if (interp_run(&c, &r) != ST_OK) {
      fprintf(stderr, "%s\n", r.nfindings ? r.findings[0].text : status_name(r.status));
      break;
    }
    const double s = (double)(os_now_ns() - begin) * 1e-9;
    if (!best.seconds || s < best.seconds) best = (Run){s, r.steps};
  }
  arena_free(&a);
  return best;
}

static void line(const char *name, const char *dtype, bool check, const char *unit, double rate,
                 double floor) {
  printf(
      "{\"name\": \"%s\", \"dtype\": \"%s\", \"checked\": %s, \"unit\": \"%s\", \"rate\": %.3g, \"floor\": %.3g, \"of_floor\": %.2f}\n",
      name, dtype, check ? "true" : "false", unit, rate, floor, floor ? rate / floor : 0);
}

static void tiles(const char *name, const char *dtype, const char *body, bool check, double floor) {
  static double x[ELEMS];
  char text[4096];
  snprintf(
      text, sizeof text,
      HEAD
      "kernel @k(%%x: ptr<%s>, %%n: i32) {\n  %%r = arange {start=0, end=%d} : tile<%dxi32>\n"
      "  %%xs = splat %%x : tile<%dxptr<%s>>\n  %%xp = ptr_add %%xs, %%r : tile<%dxptr<%s>>\n"
      "  %%a = load %%xp, _, _ : tile<%dx%s>\n  %%z = const {value=0} : i32\n  %%o = const {value=1} : i32\n"
      "  %%v = for %%z, %%n, %%o, %%a : tile<%dx%s> { (%%i: i32, %%c: tile<%dx%s>)\n    %s : tile<%dx%s>\n    yield %%y }\n"
      "  store %%xp, %%v, _\n  return\n}\n",
      dtype, ELEMS, ELEMS, ELEMS, dtype, ELEMS, dtype, ELEMS, dtype, ELEMS, dtype, ELEMS, dtype, body, ELEMS,
      dtype);
  memset(x, 0, sizeof x);
  const Run r = run(text, x, sizeof x, TURNS, check);
  line(name, dtype, check, "elements/s", r.seconds ? (double)ELEMS * TURNS / r.seconds : 0, floor);
}

static void threads(void) {
  static int32_t x[128];
  const Run r = run(
      HEAD
      "kernel @k(%x: ptr<i32>, %n: i32) {\n  %t = tid : thread i32\n  %nt = to_thread %n : thread i32\n"
      "  %z = const {value=0} : thread i32\n  %o = const {value=1} : thread i32\n  %three = const {value=3} : thread i32\n"
      "  %e, %f = while %t, %z : thread i32, thread i32 { (%a: thread i32, %b: thread i32)\n"
      "    %c = cmp %a, %nt {cmp=slt} : thread i1\n    cond_yield %c, %a, %b } { (%p: thread i32, %q: thread i32)\n"
      "    %p1 = add %p, %o : thread i32\n    %m = mul %q, %three : thread i32\n    %q1 = xor %m, %p : thread i32\n"
      "    yield %p1, %q1 }\n"
      "  %xt = to_thread %x : thread ptr<i32>\n  %xp = ptr_add %xt, %t : thread ptr<i32>\n  store %xp, %f, _\n  return\n}\n",
      x, sizeof x, 100000, false);
  line("thread loop", "i32", false, "thread steps/s", r.seconds ? (double)r.steps * 32 / r.seconds : 0, 1e6);
}

int main(void) {
  tiles("fadd", "f32", "%y = fadd %c, %a", false, 1e8);
  tiles("fmax", "f32", "%y = fmax %c, %a", false, 1e8);
  tiles("add", "i32", "%y = add %c, %a", false, 1e8);
  tiles("select", "i32", "%g = cmp %c, %a {cmp=sgt} : tile<8192xi1>\n    %y = select %g, %c, %a", false, 1e8);
  tiles("load", "f32", "%y = load %xp, _, _", false, 1e8);
  tiles("load", "f32", "%y = load %xp, _, _", true, 0);
  tiles("exp", "f32", "%y = math %c, _ {fn=exp}", false, 0);
  tiles("fadd", "f16", "%y = fadd %c, %a", false, 0);
  threads();
  return 0;
}
