// A generator of random thread-level kernels for the tests of the placement. Threads read what nobody writes and write words
// of their own, so that every order of warps gives the same. See pass_place_threads.c and api_thread_fuzz.c.
#ifndef PASS_THREAD_GEN_H
#define PASS_THREAD_GEN_H

#include "pass_place.h"

typedef struct Gen {
  Arena *a;
  IrModule *m;
  IrCtx *c;
  IrFunc *f;
  IrBuilder b;
  Rng r;
  Vec(IrValue *) vals, progs; // thread-level and program-level i32 in reach
  IrValue *in, *out, *acc, *fin, *fout, *smem, *tid;
  int budget, depth, stores;
} Gen;

static uint32_t pick(Gen *g, uint32_t n) { return (uint32_t)(rng_next(&g->r) % n); }
static const IrType *i32(Gen *g) { return ir_type_scalar(g->c, IR_i32, LEVEL_thread); }
static const IrType *p32(Gen *g) { return ir_type_scalar(g->c, IR_i32, LEVEL_program); }
static IrValue *tconst(Gen *g, int64_t v) { return ir_const_i(&g->b, i32(g), v); }
static IrValue *val(Gen *g) {
  if (g->vals.len && pick(g, 8)) return g->vals.data[pick(g, g->vals.len)];
  if (g->progs.len && pick(g, 2)) return ir_to_thread(&g->b, g->progs.data[pick(g, g->progs.len)]);
  return pick(g, 3) ? g->tid : tconst(g, (int64_t)pick(g, 40) - 10);
}
static void keep(Gen *g, IrValue *v) { vec_push(g->a, ir_type_is_thread(v->type) ? &g->vals : &g->progs, v); }
static IrValue *low(Gen *g, IrValue *v, int64_t mask) {
  return ir_binary(&g->b, OP_and, v, ir_const_i(&g->b, v->type, mask));
}
static IrValue *cond(Gen *g) {
  switch (pick(g, 5)) {
  case 0: return ir_cmp(&g->b, CMP_eq, g->tid, tconst(g, pick(g, 130)));
  case 1: return ir_cmp(&g->b, CMP_slt, g->tid, tconst(g, pick(g, 130)));
  case 2: return ir_cmp(&g->b, CMP_eq, low(g, g->tid, 31), tconst(g, pick(g, 4)));
  default: return ir_cmp(&g->b, (IrCmp)pick(g, CMP_COUNT), val(g), val(g));
  }
}
static IrValue *address(Gen *g, IrValue *p, IrValue *index) {
  return ir_ptr_add(&g->b, ir_to_thread(&g->b, p), index);
}

static void gen_store(Gen *g) { // a word of this thread alone
  if (g->stores >= 40) return;
  IrValue *at = ir_binary(&g->b, OP_add, g->tid, tconst(g, 128 * g->stores++));
  IrOp *s = ir_store(&g->b, address(g, g->out, at), val(g), pick(g, 3) ? NULL : cond(g));
  if (pick(g, 5) == 0) ir_set_attr_i(s, ATTR_order, ORDER_relaxed), ir_set_attr_i(s, ATTR_scope, SCOPE_gpu);
}

static void gen_load(Gen *g) {
  IrValue *index =
      pick(g, 3) ? ir_binary(&g->b, OP_add, g->tid, tconst(g, pick(g, 500))) : low(g, val(g), 1023);
  IrValue *mask = pick(g, 3) ? NULL : cond(g);
  IrValue *v = ir_load(&g->b, address(g, g->in, index), mask, mask && pick(g, 2) ? val(g) : NULL);
  if (pick(g, 6) == 0) ir_set_attr_i(v->def, ATTR_volatile, 1);
  keep(g, v);
}

static void gen_arith(Gen *g) {
  const IrOpKind ops[] = {OP_add, OP_sub, OP_mul, OP_and, OP_xor, OP_max_s, OP_min_u, OP_rem_s, OP_shr_u};
  IrValue *x = val(g), *y = val(g);
  keep(g, pick(g, 5) ? ir_binary(&g->b, ops[pick(g, 9)], x, y) : ir_select(&g->b, cond(g), x, y));
}

static void gen_float(Gen *g) {
  const IrType *t = ir_type_scalar(g->c, IR_f32, LEVEL_thread);
  IrValue *p = address(g, g->fin, ir_binary(&g->b, OP_add, g->tid, tconst(g, pick(g, 99))));
  IrValue *v = ir_load(&g->b, p, NULL, NULL);
  v = ir_binary(&g->b, OP_fadd, v, ir_cast(&g->b, OP_si2f, low(g, val(g), 255), t));
  if (g->stores >= 40) return;
  ir_store(&g->b, address(g, g->fout, ir_binary(&g->b, OP_add, g->tid, tconst(g, 128 * g->stores++))), v,
           NULL);
}

static void gen_lanes(Gen *g) { // for whole warps only
  if (pick(g, 3) == 0) {
    IrValue *c = cond(g);
    const IrType *t = i32(g);
    keep(g, ir_result(ir_build(&g->b, OP_ballot, 1, &c, 1, &t, 0), 0));
    return;
  }
  IrValue *v = val(g), *ops[2] = {v, pick(g, 2) ? tconst(g, 1 << pick(g, 5)) : low(g, val(g), 31)};
  IrOp *s = ir_build(&g->b, OP_shfl, 2, ops, 1, &v->type, 0);
  ir_set_attr_i(s, ATTR_shfl, pick(g, SHFL_COUNT));
  keep(g, ir_result(s, 0));
}

static void gen_atomic(Gen *g) {
  IrValue *ops[3] = {address(g, g->acc, low(g, val(g), 63)), low(g, val(g), 255),
                     pick(g, 2) ? cond(g) : NULL};
  const IrType *t = i32(g);
  IrOp *op = ir_build(&g->b, OP_atomic_rmw, 3, ops, 1, &t, 0);
  ir_set_attr_i(op, ATTR_rmw, RMW_add);
  ir_set_attr_i(op, ATTR_order, ORDER_relaxed);
  ir_set_attr_i(op, ATTR_scope, SCOPE_gpu);
}

static void barrier(Gen *g) { ir_build(&g->b, OP_barrier, 0, NULL, 0, NULL, 0); }

static void gen_shared(Gen *g) { // each its own word, then anyone's
  IrValue *set[3] = {g->smem, val(g), g->tid};
  barrier(g);
  ir_build(&g->b, OP_mem_set, 3, set, 0, NULL, 0);
  barrier(g);
  IrValue *get[2] = {g->smem, pick(g, 2) ? low(g, val(g), 127) : g->tid};
  const IrType *t = i32(g);
  keep(g, ir_result(ir_build(&g->b, OP_mem_get, 2, get, 1, &t, 0), 0));
}

static void gen_ops(Gen *g, bool all);

typedef struct Mark {
  uint32_t vals, progs;
  IrBuilder b;
} Mark;
static Mark enter(Gen *g, IrBlock *b) {
  const Mark m = {g->vals.len, g->progs.len, g->b};
  g->b = ir_builder_at_end(b);
  g->depth++;
  return m;
}
static void leave(Gen *g, const Mark *m) {
  g->vals.len = m->vals;
  g->progs.len = m->progs;
  g->b = m->b;
  g->depth--;
}
static const IrType **types_of(Gen *g, uint32_t n) {
  const IrType **t = arena_array(g->a, const IrType *, n + 1);
  for (uint32_t i = 0; i < n; i++) t[i] = i32(g);
  return t;
}
static void yield_some(Gen *g, uint32_t n) {
  IrValue *vs[4];
  for (uint32_t i = 0; i < n; i++) vs[i] = val(g);
  ir_yield(&g->b, n, vs);
}

static void gen_if(Gen *g, bool program) {
  const uint32_t n = pick(g, 3);
  IrValue *c =
      program ? ir_cmp(&g->b, CMP_slt, g->progs.data[pick(g, g->progs.len)], ir_const_i(&g->b, p32(g), 5))
              : cond(g);
  IrOp *op = ir_build(&g->b, OP_if, 1, &c, n, types_of(g, n), 2);
  for (int i = 0; i < 2; i++) {
    const Mark m = enter(g, op->regions[i]);
    if (i == 0 || pick(g, 2)) gen_ops(g, program);
    yield_some(g, n);
    leave(g, &m);
  }
  for (uint32_t i = 0; i < n; i++) keep(g, ir_result(op, i));
}

static void gen_switch(Gen *g) {
  const uint32_t n = pick(g, 3);
  IrValue *x = low(g, val(g), 3);
  IrOp *op = ir_build(&g->b, OP_switch, 1, &x, n, types_of(g, n), 3);
  const int64_t cases[2] = {pick(g, 2), 2};
  ir_set_attr_ints(op, ATTR_cases, cases, 2);
  for (int i = 0; i < 3; i++) {
    const Mark m = enter(g, op->regions[i]);
    gen_ops(g, false);
    yield_some(g, n);
    leave(g, &m);
  }
  for (uint32_t i = 0; i < n; i++) keep(g, ir_result(op, i));
}

static void gen_for(Gen *g,
                    int how) { // 0: bounds of the program, 1: of the threads, equal, 2: of each thread
  const uint32_t n = pick(g, 3);
  IrValue *ops[8];
  if (how == 0) {
    ops[0] = ir_const_i(&g->b, p32(g), 0);
    ops[1] = ir_const_i(&g->b, p32(g), pick(g, 4));
    ops[2] = ir_const_i(&g->b, p32(g), 1);
  } else if (how == 1) {
    ops[0] = tconst(g, 0), ops[1] = tconst(g, pick(g, 4)), ops[2] = tconst(g, 1);
  } else {
    ops[0] = pick(g, 2) ? g->tid : low(g, val(g), 7);
    ops[1] = pick(g, 2) ? tconst(g, pick(g, 400)) : low(g, val(g), 255);
    ops[2] = pick(g, 2) ? tconst(g, 128) : ir_binary(&g->b, OP_add, low(g, val(g), 63), tconst(g, 60));
  }
  for (uint32_t i = 0; i < n; i++) ops[3 + i] = val(g);
  IrOp *op = ir_build(&g->b, OP_for, 3 + n, ops, n, types_of(g, n), 1);
  const Mark m = enter(g, op->regions[0]);
  keep(g, ir_block_arg(op->regions[0], ops[0]->type, NULL));
  for (uint32_t i = 0; i < n; i++) keep(g, ir_block_arg(op->regions[0], i32(g), NULL));
  const int stores = g->stores;
  g->stores = 100; // a word would be written in each turn: fine, but not by several loops
  gen_ops(g, how == 0);
  g->stores = stores;
  yield_some(g, n);
  leave(g, &m);
  for (uint32_t i = 0; i < n; i++) keep(g, ir_result(op, i));
}

static void gen_while(Gen *g) { // counts down from a thread's own number
  IrValue *init[2] = {low(g, val(g), 7), val(g)};
  IrOp *op = ir_build(&g->b, OP_while, 2, init, 2, types_of(g, 2), 2);
  Mark m = enter(g, op->regions[0]);
  IrValue *k = ir_block_arg(op->regions[0], i32(g), NULL), *x = ir_block_arg(op->regions[0], i32(g), NULL);
  keep(g, x);
  const int stores = g->stores;
  g->stores = 100;
  if (pick(g, 2)) gen_arith(g);
  IrValue *pass[3] = {ir_cmp(&g->b, CMP_sgt, k, tconst(g, 0)), ir_binary(&g->b, OP_sub, k, tconst(g, 1)),
                      val(g)};
  ir_build(&g->b, OP_cond_yield, 3, pass, 0, NULL, 0);
  leave(g, &m);
  m = enter(g, op->regions[1]);
  IrValue *left = ir_block_arg(op->regions[1], i32(g), NULL);
  keep(g, ir_block_arg(op->regions[1], i32(g), NULL));
  gen_ops(g, false);
  IrValue *next[2] = {left, val(g)};
  ir_yield(&g->b, 2, next);
  leave(g, &m);
  g->stores = stores;
  keep(g, ir_result(op, 0));
  keep(g, ir_result(op, 1));
}

// all: every thread of the block runs this.
static void gen_ops(Gen *g, bool all) {
  const int most = 2 + (int)pick(g, 7);
  for (int i = 0; i < most && g->budget > 0; i++) {
    g->budget--;
    switch (pick(g, 18)) {
    case 0:
    case 1: gen_store(g); break;
    case 2:
    case 3: gen_load(g); break;
    case 4: gen_float(g); break;
    case 5:
      if (all) gen_lanes(g);
      break;
    case 6: gen_atomic(g); break;
    case 7:
      if (all) gen_shared(g);
      break;
    case 8:
      if (all) barrier(g);
      break;
    case 9:
      if (all) {
        IrValue *v = val(g);
        const IrType *t = p32(g);
        keep(g, ir_result(ir_build(&g->b, OP_from_thread, 1, &v, 1, &t, 0), 0));
      }
      break;
    case 10:
      if (g->depth < 3) gen_if(g, false);
      break;
    case 11:
      if (g->depth < 3 && all) gen_if(g, true);
      break;
    case 12:
      if (g->depth < 3) gen_switch(g);
      break;
    case 13:
      if (g->depth < 3) gen_for(g, all ? (int)pick(g, 3) : 1 + (int)pick(g, 2));
      break;
    case 14:
      if (g->depth < 3) gen_while(g);
      break;
    default: gen_arith(g);
    }
  }
}

static IrModule *generate(Arena *a, uint64_t seed) {
  Gen g = {.a = a, .c = ir_ctx_new(a), .r = {seed}, .budget = 2 + (int)(seed / 7919 % 50)};
  g.m = ir_module_new(a, g.c, NULL);
  g.f = ir_func_new(g.m, str_cstr(ir_strings(g.c), "fuzz"), true);
  const IrType *p = ir_type_ptr(g.c, IR_i32, SPACE_global, LEVEL_program),
               *pf = ir_type_ptr(g.c, IR_f32, SPACE_global, LEVEL_program);
  g.in = ir_func_param(g.f, p, NULL);
  g.out = ir_func_param(g.f, p, NULL);
  g.acc = ir_func_param(g.f, p, NULL);
  g.fin = ir_func_param(g.f, pf, NULL);
  g.fout = ir_func_param(g.f, pf, NULL);
  for (int i = 0; i < 2; i++) vec_push(a, &g.progs, ir_func_param(g.f, p32(&g), NULL));
  g.b = ir_builder_at_end(g.f->body);
  const int32_t n = 128;
  const IrType *mt = ir_type_memdesc(g.c, IR_i32, SPACE_shared, 1, &n, 0), *tt = i32(&g);
  g.smem = ir_result(ir_build(&g.b, OP_mem_alloc, 0, NULL, 1, &mt, 0), 0);
  g.tid = ir_result(ir_build(&g.b, OP_tid, 0, NULL, 1, &tt, 0), 0);
  IrValue *first[3] = {g.smem, g.tid, g.tid};
  ir_build(&g.b, OP_mem_set, 3, first, 0, NULL, 0);
  while (g.budget > 0) gen_ops(&g, true);
  for (int i = 0; i < 3; i++) gen_store(&g);
  ir_return(&g.b, 0, NULL);
  return g.m;
}

static void fill_threads(Memory *m) { // whole floats
  float *f = m->base[3];
  for (int k = 0; k < ELEMS; k++) f[k] = (float)(k % 37);
}

#endif
