// What pass_place.c and pass_place_fuzz.c share: memory with random contents, a run on the interpreter, a comparison.
#ifndef PASS_PLACE_H
#define PASS_PLACE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pass/pass.h"
#include "harness/test.h"

typedef struct Case {
  const char *name;
  const char *text; // a module with one kernel
  uint32_t grid[3];
  int64_t args[16]; // of the parameters that are not pointers, in order
  double tolerance; // of floats, relative to the largest value; 0: equal
} Case;

enum { ELEMS = 6000, PAD = 64, MAX_PARAMS = 16 };

typedef struct Memory {
  void *base[MAX_PARAMS];
  size_t bytes[MAX_PARAMS];
  IrDtype dtype[MAX_PARAMS];
  int n;
} Memory;

static void fill(Memory *m, int i, uint64_t seed) {
  Rng r = {seed};
  uint8_t *p = m->base[i];
  const IrDtype d = m->dtype[i];
  const int w = ir_dtypes[d].bytes;
  for (size_t k = 0; k < m->bytes[i] / (size_t)w; k++) {
    uint64_t bits;
    if (d == IR_i1)
      bits = rng_next(&r) & 1;
    else if (ir_dtypes[d].cls == IR_FLOAT)
      bits = ir_float_bits(d, rng_unit(&r) * 4 - 2);
    else
      bits = (rng_next(&r) % 50);
    memcpy(p + k * (size_t)w, &bits, (size_t)w);
  }
}

__attribute__((unused)) static Memory memory_new(Arena *a, const IrFunc *f, uint64_t seed) {
  Memory m = {0};
  for (uint32_t i = 0; i < f->params.len; i++) {
    const IrType *t = f->body->args.data[i]->type;
    if (t->kind != IR_PTR) continue;
    m.dtype[m.n] = t->dtype;
    m.bytes[m.n] = (size_t)(ELEMS + PAD) * ir_dtypes[t->dtype].bytes;
    m.base[m.n] = arena_alloc(a, m.bytes[m.n], 64);
    fill(&m, m.n, seed + i);
    m.n++;
  }
  return m;
}

__attribute__((unused)) static void run(Arena *a, const IrModule *mod, const Case *c, const Memory *m,
                                        const char *what) {
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
  InterpConfig cfg = {
      .arena = a, .module = mod, .ranks = 1, .memory = mem, .nmemory = m->n, .cmds = &cmd, .ncmds = 1};
  InterpResult r;
  interp_run(&cfg, &r);
  if (r.status != ST_OK)
    fail_msg("%s, %s: %s: %s", c->name, what, status_name(r.status), r.nfindings ? r.findings[0].text : "");
}

static void compare(const Case *c, const Memory *x, const Memory *y, const char *what) {
  for (int i = 0; i < x->n; i++) {
    const IrDtype d = x->dtype[i];
    const size_t w = ir_dtypes[d].bytes, n = x->bytes[i] / w;
    double top = 0;
    for (size_t k = 0; k < n && ir_dtypes[d].cls == IR_FLOAT; k++) {
      uint64_t a = 0;
      memcpy(&a, (char *)x->base[i] + k * w, w);
      const double v = fabs(ir_bits_float(d, a));
      if (v < 1e30 && v > top) top = v;
    }
    for (size_t k = 0; k < n; k++) {
      uint64_t a = 0, b = 0;
      memcpy(&a, (char *)x->base[i] + k * w, w);
      memcpy(&b, (char *)y->base[i] + k * w, w);
      if (a == b) continue;
      if (ir_dtypes[d].cls == IR_FLOAT) {
        const double u = ir_bits_float(d, a), v = ir_bits_float(d, b);
        if ((u != u && v != v) || u == v || fabs(u - v) <= c->tolerance * top) continue;
        fail_msg("%s, %s: memory %d[%zu] is %g, not %g", c->name, what, i, k, v, u);
      }
      fail_msg("%s, %s: memory %d[%zu] is %lld, not %lld", c->name, what, i, k, (long long)b, (long long)a);
    }
  }
}

#endif
