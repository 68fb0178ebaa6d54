// Building, changing, copying and walking; what happens when memory ends; large modules in little time.
#include "harness/test.h"
#include "ir/ir.h"

#include <stdio.h>
#include <string.h>

typedef struct World {
  Arena a;
  Diags d;
  IrModule *m;
  IrBuilder b;
  IrValue *x, *i;
} World;

// kernel @k(%x: f32, %i: i32) with an empty body. Initialises w->a, which escapes to e.
static void start(World *w, Escape *e) {
  arena_init(&w->a, 0, e);
  diags_init(&w->d, &w->a);
  w->m = ir_module_new(&w->a, ir_ctx_new(&w->a), &w->d);
  Strings *s = ir_strings(w->m->ctx);
  IrFunc *f = ir_func_new(w->m, str_cstr(s, "k"), true);
  w->x = ir_func_param(f, ir_type_scalar(w->m->ctx, IR_f32, LEVEL_program), str_cstr(s, "x"));
  w->i = ir_func_param(f, ir_type_scalar(w->m->ctx, IR_i32, LEVEL_program), str_cstr(s, "i"));
  w->b = ir_builder_at_end(f->body);
}

#define START(w) \
  World w; \
  Escape w##_escape; \
  if (ESCAPE_TRY(&w##_escape)) fail_msg("%s", w##_escape.message); \
  start(&(w), &w##_escape)

static void check_body(World *w, const char *want) {
  const char *text = ir_print(w->m, &w->a);
  const char *body = strstr(text, "{\n");
  char *whole = arena_printf(&w->a, "{\n%s}\n", want);
  assert_string_equal(body, whole);
}

static int uses_of(const IrValue *v) {
  int n = 0;
  for (const IrUse *u = v->uses; u; u = u->next) {
    assert_ptr_equal(u->value, v);
    assert_ptr_equal(*u->pprev, u);
    n++;
  }
  return n;
}

static void test_types(void **state) {
  (void)state;
  START(w);
  IrCtx *c = w.m->ctx;
  const int32_t s[] = {4, 8}, t[] = {32};
  const IrType *tile = ir_type_tile(c, IR_f16, 2, s), *ptrs = ir_type_ptr_tile(c, IR_i8, SPACE_shared, 2, s);
  const IrType *thread = ir_type_scalar(c, IR_i32, LEVEL_thread);
  assert_ptr_equal(tile, ir_type_tile(c, IR_f16, 2, (int32_t[]){4, 8}));
  assert_ptr_not_equal(tile, ir_type_tile(c, IR_f16, 2, (int32_t[]){8, 4}));
  assert_ptr_not_equal(ir_type_memdesc(c, IR_f16, SPACE_shared, 2, s, 0),
                       ir_type_memdesc(c, IR_f16, SPACE_shared, 2, s, 1));
  assert_ptr_equal(ir_type_with_dtype(c, tile, IR_i1), ir_type_tile(c, IR_i1, 2, s));
  assert_ptr_equal(ir_type_with_dtype(c, ptrs, IR_i8), ir_type_tile(c, IR_i8, 2, s));
  assert_ptr_equal(ir_type_with_dtype(c, ir_type_ptr(c, IR_f32, SPACE_global, LEVEL_thread), IR_i32), thread);
  assert_ptr_equal(ir_type_with_dtype(c, ir_type_ptr(c, IR_f32, SPACE_shared, LEVEL_program), IR_i32),
                   w.i->type);
  assert_ptr_equal(ir_type_with_shape(c, tile, 1, t), ir_type_tile(c, IR_f16, 1, t));
  assert_ptr_equal(ir_type_with_shape(c, ptrs, 1, t), ir_type_ptr_tile(c, IR_i8, SPACE_shared, 1, t));
  assert_ptr_equal(ir_type_with_shape(c, ptrs, 0, NULL), ir_type_ptr(c, IR_i8, SPACE_shared, LEVEL_program));
  assert_ptr_equal(ir_type_with_shape(c, tile, 0, NULL), ir_type_scalar(c, IR_f16, LEVEL_program));
  assert_ptr_equal(ir_type_with_shape(c, w.i->type, 2, s), ir_type_tile(c, IR_i32, 2, s));
  assert_ptr_equal(ir_type_with_level(c, w.i->type, LEVEL_thread), thread);
  assert_ptr_equal(ir_type_with_level(c, tile, LEVEL_thread), tile);
  assert_ptr_equal(ir_type_elem(c, tile), ir_type_scalar(c, IR_f16, LEVEL_program));
  assert_ptr_equal(ir_type_elem(c, ptrs), ir_type_ptr(c, IR_i8, SPACE_shared, LEVEL_program));
  assert_true(ir_type_is_float(tile) && !ir_type_is_int(tile) && !ir_type_is_ptr(tile));
  assert_true(ir_type_is_ptr(ptrs) && !ir_type_is_int(ptrs));
  assert_true(ir_type_is_thread(thread) && ir_type_is_int(thread));
  assert_false(ir_type_is_int(ir_type_memdesc(c, IR_i32, SPACE_shared, 1, t, 0)));
  assert_int_equal(ir_type_elems(tile), 32);
  assert_int_equal(ir_type_elems(thread), 1);
  assert_int_equal(ir_type_elems(ir_type_memdesc(c, IR_i8, SPACE_shared, 2, s, 3)), 32);
  assert_true(ir_type_elems(ir_type_tile(c, IR_i8, 4, (int32_t[]){INT32_MAX, INT32_MAX, INT32_MAX, 2})) >
              IR_MAX_ELEMS);
  assert_int_equal(ir_type_bytes(tile), 2);
  assert_int_equal(ir_type_bytes(ptrs), 8);
  for (int32_t k = 0; k < 1000; k++) ir_type_tile(c, IR_f32, 1, &k); // the table grows
  for (int32_t k = 0; k < 1000; k++)
    assert_ptr_equal(ir_type_tile(c, IR_f32, 1, &k), ir_type_tile(c, IR_f32, 1, &k));
  assert_ptr_equal(tile, ir_type_tile(c, IR_f16, 2, s));
  assert_true(ir_type_tile(c, IR_f32, 99, (int32_t[8]){1})->rank <= IR_MAX_RANK);
  arena_free(&w.a);
}

static void test_short_forms(void **state) {
  (void)state;
  START(w);
  IrBuilder *b = &w.b;
  IrCtx *c = w.m->ctx;
  const int32_t shape[] = {16}, wide[] = {4, 16};
  IrValue *p = ir_cast(b, OP_int2ptr, ir_const_i(b, ir_type_scalar(c, IR_i64, LEVEL_program), 64),
                       ir_type_ptr(c, IR_f32, SPACE_global, LEVEL_program));
  IrValue *one = ir_const_f(b, w.x->type, 1.5);
  IrValue *cond = ir_fcmp(b, FCMP_olt, w.x, one);
  IrValue *s = ir_select(b, cond, w.x, one);
  IrValue *m = ir_math(b, MATH_FN_pow, ir_math(b, MATH_FN_exp, s, NULL), one);
  IrValue *t = ir_splat(b, ir_binary(b, OP_fadd, ir_unary(b, OP_fneg, m), one), 1, shape);
  IrValue *e = ir_broadcast(b, ir_expand_dims(b, t, 0), 2, wide);
  IrValue *ps = ir_splat(b, p, 2, wide);
  IrValue *l = ir_load(b, ps, NULL, NULL);
  IrValue *q = ir_cmp(b, CMP_eq, ps, ir_ptr_add(b, ps, ir_splat(b, w.i, 2, wide)));
  ir_store(b, ps, ir_binary(b, OP_fadd, e, l), q);
  assert_ptr_equal(ir_to_thread(b, ir_to_thread(b, w.i))->type, ir_type_scalar(c, IR_i32, LEVEL_thread));
  ir_return(b, 0, NULL);
  if (ir_verify(w.m, &w.d) != ST_OK) fail_msg("%s", diags_render(&w.d, &w.a));
  assert_string_equal(ir_type_text(ir_expand_dims(b, l, 1)->type, &w.a), "tile<4x1x16xf32>");
  assert_string_equal(ir_type_text(q->type, &w.a), "tile<4x16xi1>");
  arena_free(&w.a);
}

static void test_order_of_building(void **state) {
  (void)state;
  START(w);
  IrOp *b = ir_unary(&w.b, OP_fneg, w.x)->def;
  IrBuilder before = ir_builder_before(b), after = ir_builder_after(b);
  before.loc = after.loc = (Loc){0, 7, 1, 0};
  ir_unary(&before, OP_fabs, w.x);
  ir_build(&after, OP_barrier, 0, NULL, 0, NULL, 0);
  IrOp *end = ir_return(&w.b, 0, NULL);
  IrBuilder last = ir_builder_before(end);
  ir_build(&last, OP_put_fence, 0, NULL, 0, NULL, 0);
  ir_build(&after, OP_warp_barrier, 0, NULL, 0, NULL,
           0); // where nothing followed, `after` is the end of the block
  assert_int_equal(b->prev->loc.line, 7);
  ir_move_to_end(end, end->parent);
  check_body(
      &w, "  %0 = fabs %x : f32\n  %1 = fneg %x : f32\n  barrier\n  put_fence\n  warp_barrier\n  return\n");
  ir_move_before(b->next, b->prev);
  check_body(
      &w, "  barrier\n  %0 = fabs %x : f32\n  %1 = fneg %x : f32\n  put_fence\n  warp_barrier\n  return\n");
  ir_move_before(b, b);
  assert_int_equal(ir_verify(w.m, &w.d), ST_OK);
  arena_free(&w.a);
}

static void test_uses(void **state) {
  (void)state;
  START(w);
  IrValue *a = ir_unary(&w.b, OP_fneg, w.x), *b = ir_unary(&w.b, OP_fabs, w.x);
  IrOp *sum = ir_binary(&w.b, OP_fadd, a, a)->def;
  assert_int_equal(uses_of(w.x), 2);
  assert_int_equal(uses_of(a), 2);
  ir_set_operand(sum, 1, b);
  assert_int_equal(uses_of(a), 1);
  assert_int_equal(uses_of(b), 1);
  ir_set_operand(sum, 1, NULL);
  assert_int_equal(uses_of(b), 0);
  ir_set_operand(sum, 1, b);
  ir_replace_uses(a, b);
  ir_replace_uses(b, b);
  assert_int_equal(uses_of(a), 0);
  assert_int_equal(uses_of(b), 2);
  ir_replace_uses(w.x, b); // the op that defines b now uses itself; undone below
  assert_int_equal(uses_of(b), 4);
  ir_set_operand(b->def, 0, w.x);
  ir_set_operand(a->def, 0, w.x);
  ir_erase(a->def);
  assert_null(a->def->parent);
  assert_int_equal(uses_of(w.x), 1);

  // operands, results and regions grow one by one; lists of uses follow the arrays
  IrOp *y = ir_build(&w.b, OP_print, 0, NULL, 0, NULL, 0);
  for (int k = 0; k < 100; k++) {
    ir_op_add_operand(y, k % 3 ? b : w.x);
    assert_int_equal(uses_of(b), 2 + k - k / 3);
  }
  IrOp *choice = ir_build(&w.b, OP_if, 1, &b, 0, NULL, 0);
  for (int k = 0; k < 20; k++) {
    IrValue *r = ir_op_add_result(choice, w.x->type);
    if (k) ir_op_add_operand(y, ir_result(choice, 0));
    assert_int_equal(r->index, k);
    assert_int_equal(uses_of(ir_result(choice, 0)), k);
  }
  for (int k = 0; k < 20; k++) {
    const IrBlock *region = ir_op_add_region(choice);
    assert_ptr_equal(region, choice->regions[k]);
  }
  assert_int_equal(choice->nregions, 20);
  arena_free(&w.a);
}

static void test_attributes(void **state) {
  (void)state;
  START(w);
  IrOp *op = ir_build(&w.b, OP_print, 0, NULL, 0, NULL, 0);
  for (int k = ATTR_COUNT - 1; k >= 0; k--) {
    if ((k & 1) == 0) ir_set_attr_i(op, (IrAttrName)k, k);
  }
  for (int k = 0; k < ATTR_COUNT; k++) {
    if (k & 1) ir_set_attr_i(op, (IrAttrName)k, k);
  }
  assert_int_equal(op->nattrs, ATTR_COUNT);
  for (int k = 0; k < ATTR_COUNT; k++) {
    assert_int_equal(op->attrs[k].name, k);
    assert_int_equal(ir_attr_i(op, (IrAttrName)k), k);
  }
  for (int k = 0; k < ATTR_COUNT; k += 2) ir_del_attr(op, (IrAttrName)k);
  ir_del_attr(op, ATTR_value);
  assert_int_equal(op->nattrs, ATTR_COUNT / 2);
  assert_null(ir_attr(op, ATTR_value));
  assert_int_equal(ir_attr_i(op, (IrAttrName)1), 1);
  for (int k = 0; k < ATTR_COUNT; k += 2) ir_set_attr_i(op, (IrAttrName)k, -k);
  assert_int_equal(ir_attr_i(op, (IrAttrName)(ATTR_COUNT - 2 + ATTR_COUNT % 2)),
                   -(ATTR_COUNT - 2 + ATTR_COUNT % 2));
  int64_t v[] = {1, 2};
  ir_set_attr_ints(op, ATTR_perm, v, 2);
  v[0] = 9;
  assert_int_equal(ir_attr(op, ATTR_perm)->ints.v[0], 1);
  ir_set_attr_ints(op, ATTR_perm, NULL, 0);
  assert_int_equal(ir_attr(op, ATTR_perm)->ints.n, 0);
  ir_set_attr_s(op, ATTR_msg, str_cstr(ir_strings(w.m->ctx), "hello"));
  assert_string_equal(ir_attr_s(op, ATTR_msg), "hello");
  assert_string_equal(ir_enum_text(ATTR_cmp, CMP_slt), "slt");
  assert_string_equal(ir_enum_text(ATTR_fn, MATH_FN_rsqrt), "rsqrt");
  assert_null(ir_enum_text(ATTR_cmp, CMP_COUNT));
  assert_null(ir_enum_text(ATTR_cmp, -1));
  assert_null(ir_enum_text(ATTR_axis, 0));
  arena_free(&w.a);
}

static void test_constants(void **state) {
  (void)state;
  START(w);
  IrCtx *c = w.m->ctx;
  int64_t n;
  double f;
  IrValue *k = ir_const_i(&w.b, ir_type_scalar(c, IR_i8, LEVEL_program), -3);
  assert_int_equal(ir_attr_i(k->def, ATTR_value), 0xfd);
  assert_true(ir_const_int(k, &n) && n == -3);
  assert_true(ir_const_int(ir_splat(&w.b, k, 1, (int32_t[]){4}), &n) && n == -3);
  assert_true(ir_const_int(ir_to_thread(&w.b, k), &n) && n == -3);
  assert_true(ir_const_int(ir_const_i(&w.b, ir_type_scalar(c, IR_i1, LEVEL_program), 1), &n) && n == 1);
  assert_false(ir_const_int(ir_unary(&w.b, OP_abs_s, k), &n));
  assert_false(ir_const_int(w.i, &n));
  assert_false(ir_const_int(NULL, &n));
  assert_false(ir_const_int(ir_const_f(&w.b, w.x->type, 1), &n));
  assert_true(ir_const_float(ir_const_f(&w.b, ir_type_tile(c, IR_bf16, 1, (int32_t[]){4}), 0.1), &f) &&
              f == 0.10009765625);
  assert_true(ir_const_float(ir_const_i(&w.b, w.x->type, 3), &f) && f == 3);
  assert_false(ir_const_float(k, &f));
  // one rounding, not two: just above the middle of two bf16 and of two fp8
  assert_int_equal(ir_float_bits(IR_bf16, 1.00390625 + 1e-12), 0x3f81);
  assert_int_equal(ir_float_bits(IR_bf16, 1.00390625 - 1e-12), 0x3f80);
  assert_int_equal(ir_float_bits(IR_bf16, 1.00390625), 0x3f80);
  assert_int_equal(ir_float_bits(IR_f8e4m3, -(1.0625 + 1e-12)), 0xb9);
  assert_int_equal(ir_float_bits(IR_f8e4m3, 1.0625), 0x38);
  assert_int_equal(ir_float_bits(IR_f8e5m2, 1e300), 0x7b);
  assert_int_equal(ir_float_bits(IR_bf16, 1e300), 0x7f80);
  assert_int_equal(ir_float_bits(IR_bf16, 1e-300), 0);
  assert_int_equal(ir_float_bits(IR_f16, 2049.0000001), 0x6801);
  arena_free(&w.a);
}

static bool erase_pure(IrOp *op, void *user) {
  ++*(int *)user;
  if (op->kind == OP_fneg || op->kind == OP_if) ir_erase(op);
  return true;
}
static bool stop_at_barrier(IrOp *op, void *user) {
  ++*(int *)user;
  return op->kind != OP_barrier;
}

static IrModule *read_text(World *w, const char *text) {
  IrModule *m;
  if (ir_parse(&w->a, w->m->ctx, &w->d, "text", text, strlen(text), &m) != ST_OK)
    fail_msg("%s", diags_render(&w->d, &w->a));
  return m;
}

static const char nest[] = "module stage=tile warps=4 stages=2 lanes=32\n"
                           "kernel @k(%x: f32, %i: i32, %c: i1) {\n"
                           " %u = fneg %x : f32\n"
                           " %r = for %i, %i, %i, %x {unroll=2} : f32 { (%j: i32, %a: f32)\n"
                           "   if %c { %v = fneg %a : f32  barrier  yield } { yield }\n"
                           "   yield %a }\n"
                           " print %r {prefix=\"r\", uns=[0]}\n"
                           " return\n}\n";

static void test_walk(void **state) {
  (void)state;
  START(w);
  IrModule *m = read_text(&w, nest);
  int n = 0;
  assert_false(ir_walk(m->funcs->body, stop_at_barrier, &n));
  assert_int_equal(n, 5); // fneg, for, if, fneg, barrier
  n = 0;
  assert_true(ir_walk(m->funcs->body, erase_pure, &n));
  assert_int_equal(n, 6); // nothing inside of the erased if
  assert_int_equal(ir_verify(m, &w.d), ST_OK);
  m = read_text(&w, nest);
  IrOp *loop = m->funcs->body->first->next, *choice = loop->regions[0]->first;
  IrOp *inner = choice->regions[0]->first;
  assert_true(ir_encloses(m->funcs->body, inner));
  assert_true(ir_encloses(loop->regions[0], inner));
  assert_true(ir_encloses(choice->regions[0], inner));
  assert_false(ir_encloses(choice->regions[1], inner));
  assert_false(ir_encloses(loop->regions[0], loop));
  arena_free(&w.a);
}

static void test_copies(void **state) {
  (void)state;
  START(w);
  IrModule *m = read_text(&w, nest);
  IrOp *loop = m->funcs->body->first->next;
  IrBuilder b = ir_builder_before(m->funcs->body->last);
  Map values;
  map_init(&values, &w.a);
  map_setp(&values, m->funcs->body->args.data[0], ir_result(m->funcs->body->first, 0)); // %u instead of %x
  IrOp *copy = ir_clone_op(&b, loop, &values);
  assert_ptr_equal(ir_operand(copy, 3), ir_result(m->funcs->body->first, 0));
  assert_ptr_equal(ir_operand(copy, 0), ir_operand(loop, 0));
  assert_ptr_equal(map_getp(&values, ir_result(loop, 0)), ir_result(copy, 0));
  assert_int_equal(ir_attr_i(copy, ATTR_unroll), 2);
  const IrOp *inner = copy->regions[0]->first->regions[0]->first;
  assert_ptr_equal(ir_operand(inner, 0), copy->regions[0]->args.data[1]);
  ir_clone_op(&b, loop, NULL);
  if (ir_verify(m, &w.d) != ST_OK) fail_msg("%s", diags_render(&w.d, &w.a));
  ir_renumber(m->funcs);
  assert_int_equal(ir_verify(m, &w.d), ST_OK);
  assert_int_equal(m->funcs->body->args.data[0]->id, 0);
  assert_int_equal(m->funcs->next_id, 3 + 1 + 3 * 4);

  // across functions, with regions
  IrFunc *g = ir_func_new(m, str_cstr(ir_strings(m->ctx), "g"), false);
  IrOp *moved = ir_clone_op(&b, loop, NULL);
  ir_return(&(IrBuilder){.m = m, .block = g->body}, 0, NULL);
  for (uint32_t i = 0; i < 3; i++) ir_set_operand(moved, i, ir_func_param(g, w.i->type, NULL));
  ir_set_operand(moved, 3, ir_func_param(g, w.x->type, NULL));
  ir_move_before(moved, g->body->last);
  IrOp *choice = moved->regions[0]->first;
  ir_set_operand(choice, 0, ir_func_param(g, ir_type_scalar(m->ctx, IR_i1, LEVEL_program), NULL));
  assert_ptr_equal(choice->regions[0]->func, g);
  if (ir_verify(m, &w.d) != ST_OK) fail_msg("%s", diags_render(&w.d, &w.a));

  // a whole module, into an arena of its own that outlives the first
  Escape e;
  Arena other;
  arena_init(&other, 0, &e);
  if (ESCAPE_TRY(&e)) fail_msg("%s", e.message);
  char *text = arena_strdup(&other, ir_print(m, &w.a));
  IrModule *n = ir_module_clone(m, &other);
  assert_string_equal(text, ir_print(n, &other));
  assert_ptr_not_equal(ir_attr(n->funcs->body->first->next->next, ATTR_uns)->ints.v,
                       ir_attr(m->funcs->body->first->next->next, ATTR_uns)->ints.v);
  ir_func_remove(m, m->funcs);
  assert_ptr_equal(m->funcs, g);
  assert_ptr_equal(m->last_func, g);
  assert_ptr_equal(ir_func_find(m, g->name), g);
  ir_func_remove(m, g);
  assert_null(m->funcs);
  assert_null(m->last_func);
  assert_null(ir_func_find(m, g->name));
  arena_free(&other);
  arena_free(&w.a);
}

// ---- memory that ends -----------------------------------------------------------------------------------------------

// Everything in one go; false when memory ended. Nothing may crash or leak, wherever it ends.
static bool try_all(long fail_at) {
  Escape e;
  World w;
  arena_init(&w.a, 0, &e);
  if (ESCAPE_TRY(&e)) {
    arena_test_fail_after(0);
    assert_int_equal(e.status, ST_NO_MEMORY);
    arena_free(&w.a);
    return false;
  }
  arena_test_fail_after(fail_at);
  start(&w, &e);
  for (int k = 0; k < 300; k++) {
    IrModule *m = read_text(&w, nest);
    ir_print(ir_module_clone(m, &w.a), &w.a);
    if (ir_verify(m, &w.d) != ST_OK) fail();
    m->funcs->body->last->kind = OP_yield;
    w.d.list.len = w.d.errors = 0;
    if (ir_verify(m, &w.d) == ST_OK) fail();
  }
  arena_test_fail_after(0);
  arena_free(&w.a);
  return true;
}

static void test_memory_ends(void **state) {
  (void)state;
  long n = 1;
  while (!try_all(n)) n++;
  assert_true(n > 10);
}

// ---- size -----------------------------------------------------------------------------------------------------------

// 100,000 ops in one block and in loops side by side; each step far below a second even in a debug build.
static void test_large(void **state) {
  (void)state;
  START(w);
  IrValue *v = w.x;
  Str const *name = str_cstr(ir_strings(w.m->ctx), "v");
  for (int k = 0; k < 100000; k++) {
    v = ir_binary(&w.b, OP_fadd, v, w.x);
    if (k % 2) v->name = name;
  }
  ir_return(&w.b, 0, NULL);
  const uint64_t begin = os_now_ns();
  assert_int_equal(ir_verify(w.m, &w.d), ST_OK);
  const char *text = ir_print(w.m, &w.a);
  IrModule *n;
  assert_int_equal(ir_parse(&w.a, w.m->ctx, &w.d, "large", text, strlen(text), &n), ST_OK);
  assert_string_equal(text, ir_print(n, &w.a));
  ir_replace_uses(w.x, v);
  ir_module_clone(n, &w.a);
  assert_true(os_now_ns() - begin < 20000000000ull);
  arena_free(&w.a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_short_forms),
      cmocka_unit_test(test_order_of_building),
      cmocka_unit_test(test_uses),
      cmocka_unit_test(test_attributes),
      cmocka_unit_test(test_constants),
      cmocka_unit_test(test_walk),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_memory_ends),
      cmocka_unit_test(test_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
