// The text of the IR: constants are exact, names are unique, errors carry their place, bad text ends in an error.
#include "harness/test.h"
#include "ir/ir.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HEAD "module stage=tile warps=4 stages=2 lanes=32\n"

static IrModule *read_text(Arena *a, Diags *d, const char *text) {
  IrModule *m;
  if (ir_parse(a, ir_ctx_new(a), d, "text", text, strlen(text), &m) != ST_OK)
    fail_msg("%s", diags_render(d, a));
  return m;
}

static IrBuilder new_kernel(Arena *a, Diags *d) {
  diags_init(d, a);
  IrModule *m = ir_module_new(a, ir_ctx_new(a), d);
  return ir_builder_at_end(ir_func_new(m, str_cstr(ir_strings(m->ctx), "k"), true)->body);
}

// ---- constants ----------------------------------------------------------------------------------------------------

static IrOp *const_bits(IrBuilder *b, const IrType *t, uint64_t bits) {
  IrOp *op = ir_build(b, OP_const, 0, NULL, 1, &t, 0);
  ir_set_attr_i(op, ATTR_value, (int64_t)bits);
  return op;
}

// Prints the function, reads it back and compares each constant's bits.
static void check_constants(Arena *a, Diags *d, IrBuilder *b) {
  ir_return(b, 0, NULL);
  assert_int_equal(ir_verify(b->m, d), ST_OK);
  const char *text = ir_print(b->m, a);
  IrModule *n = read_text(a, d, text);
  const IrOp *x = b->block->first, *y = n->funcs->body->first;
  for (; x->kind == OP_const; x = x->next, y = y->next) {
    if (ir_attr_i(x, ATTR_value) != ir_attr_i(y, ATTR_value)) {
      fail_msg("%s: bits %llx became %llx", ir_print_op(x, a), (unsigned long long)ir_attr_i(x, ATTR_value),
               (unsigned long long)ir_attr_i(y, ATTR_value));
    }
  }
  assert_string_equal(text, ir_print(n, a));
}

static void check_all_codes(IrDtype dtype, unsigned codes) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  IrBuilder b = new_kernel(&a, &d);
  const IrType *t = ir_type_scalar(b.m->ctx, dtype, LEVEL_program);
  for (unsigned i = 0; i < codes; i++) const_bits(&b, t, i);
  check_constants(&a, &d, &b);
  arena_free(&a);
}

static void test_narrow_constants(void **state) {
  (void)state;
  check_all_codes(IR_i1, 2);
  check_all_codes(IR_i8, 256);
  check_all_codes(IR_f8e4m3, 256);
  check_all_codes(IR_f8e5m2, 256);
  check_all_codes(IR_i16, 65536);
  check_all_codes(IR_f16, 65536);
  check_all_codes(IR_bf16, 65536);
}

static void test_wide_constants(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  IrBuilder b = new_kernel(&a, &d);
  const IrType *f32 = ir_type_scalar(b.m->ctx, IR_f32, LEVEL_program);
  const IrType *f64 = ir_type_tile(b.m->ctx, IR_f64, 1, (int32_t[]){16});
  const IrType *i64 = ir_type_scalar(b.m->ctx, IR_i64, LEVEL_thread);
  const IrType *ptr = ir_type_ptr(b.m->ctx, IR_f32, SPACE_global, LEVEL_program);
  const uint64_t edges[] = {0,          1,          0x7fffffff, 0x80000000, 0xffffffff,
                            0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc00000,
                            0x00800000, 0x007fffff, 0x3f800000, 0x3dcccccd, 0x7f7fffff};
  for (size_t i = 0; i < DT_COUNTOF(edges); i++) const_bits(&b, f32, edges[i]);
  const uint64_t wide[] = {0,
                           1,
                           UINT64_MAX,
                           INT64_MAX,
                           1ull << 63,
                           0x7ff0000000000000,
                           0xfff0000000000000,
                           0x7ff8000000000000,
                           0x7ff0000000000001,
                           0x3ff0000000000000,
                           0x3fb999999999999a,
                           0x0010000000000000};
  for (size_t i = 0; i < DT_COUNTOF(wide); i++) {
    const_bits(&b, f64, wide[i]);
    const_bits(&b, i64, wide[i]);
    const_bits(&b, ptr, wide[i]);
  }
  Rng r = {7};
  for (int i = 0; i < 5000; i++) {
    const_bits(&b, f32, rng_next(&r) >> 32);
    const_bits(&b, f64, rng_next(&r));
  }
  check_constants(&a, &d, &b);
  arena_free(&a);
}

static int64_t value_of(Arena *a, const char *value, const char *type) {
  Diags d;
  diags_init(&d, a);
  char text[256];
  snprintf(text, sizeof text, HEAD "kernel @k() { %%c = const {value=%s} : %s  return }", value, type);
  return ir_attr_i(read_text(a, &d, text)->funcs->body->first, ATTR_value);
}

static void test_ways_to_write_a_constant(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  assert_int_equal(value_of(&a, "-1", "i8"), 0xff);
  assert_int_equal(value_of(&a, "255", "i8"), 0xff);
  assert_int_equal(value_of(&a, "0xff", "i8"), 0xff);
  assert_int_equal(value_of(&a, "-128", "tile<4xi8>"), 0x80);
  assert_int_equal(value_of(&a, "-1", "i1"), 1);
  assert_int_equal(value_of(&a, "18446744073709551615", "i64"), -1);
  assert_int_equal(value_of(&a, "-9223372036854775808", "i64"), INT64_MIN);
  assert_int_equal(value_of(&a, "1", "f32"), 0x3f800000);
  assert_int_equal(value_of(&a, "1e0", "f16"), 0x3c00);
  assert_int_equal(value_of(&a, "0x3c01", "f16"), 0x3c01);
  assert_int_equal(value_of(&a, "-inf", "bf16"), 0xff80);
  assert_int_equal(value_of(&a, "nan", "f64"), 0x7ff8000000000000);
  assert_int_equal(value_of(&a, "-0.0", "f32"), 0x80000000);
  assert_int_equal(value_of(&a, "0x10", "thread ptr<f32>"), 16);
  arena_free(&a);
}

// What a constant prints as.
static void test_constant_text(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  IrBuilder b = new_kernel(&a, &d);
  static const struct {
    IrDtype d;
    double x;
    const char *text;
  } floats[] = {{IR_f32, 1, "1.0"},         {IR_f32, 0.1, "0.1"},
                {IR_f64, 0.1, "0.1"},       {IR_f32, 1e30, "1e+30"},
                {IR_f32, -2.5, "-2.5"},     {IR_f16, 65504, "65504.0"},
                {IR_bf16, 0.1, "0.100098"}, {IR_f64, 1.0 / 3, "0.3333333333333333"},
                {IR_f32, INFINITY, "inf"},  {IR_f64, -INFINITY, "-inf"},
                {IR_f16, NAN, "nan"},       {IR_f8e4m3, 448, "448.0"}};
  for (size_t i = 0; i < DT_COUNTOF(floats); i++) {
    const IrType *t = ir_type_scalar(b.m->ctx, floats[i].d, LEVEL_program);
    const IrValue *v = ir_const_f(&b, t, floats[i].x);
    char *want = arena_printf(&a, "{value=%s}", floats[i].text), *got = ir_print_op(v->def, &a);
    if (!strstr(got, want)) fail_msg("%s in %s", want, got);
  }
  const IrType *i32 = ir_type_scalar(b.m->ctx, IR_i32, LEVEL_program);
  assert_non_null(strstr(ir_print_op(ir_const_i(&b, i32, -5)->def, &a), "{value=-5} : i32"));
  assert_non_null(
      strstr(ir_print_op(ir_const_i(&b, ir_type_scalar(b.m->ctx, IR_i1, LEVEL_program), -1)->def, &a),
             "{value=1} : i1"));
  arena_free(&a);
}

// ---- types --------------------------------------------------------------------------------------------------------

static void test_types(void **state) {
  (void)state;
  static const char *const types[] = {"i32",
                                      "thread i32",
                                      "bf16",
                                      "f8e4m3",
                                      "ptr<f32>",
                                      "thread ptr<i1>",
                                      "ptr<f16, shared>",
                                      "ptr<i8, tensor>",
                                      "tile<128x64xf32>",
                                      "tile<128xptr<f32>>",
                                      "tile<2x2xptr<i64, shared>>",
                                      "tile<1x1x1x1x1x1x1x1xi8>",
                                      "memdesc<2*128x64xbf16, shared>",
                                      "memdesc<128x64xbf16, scratch>",
                                      "memdesc<f32, scratch>",
                                      "mbarrier",
                                      "mbarrier<4>",
                                      "desc<128x64xbf16>",
                                      "token"};
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  for (size_t i = 0; i < DT_COUNTOF(types); i++) {
    IrModule *m = read_text(&a, &d, arena_printf(&a, HEAD "func @k(%%a: %s) { return }", types[i]));
    assert_string_equal(ir_type_text(m->funcs->body->args.data[0]->type, &a), types[i]);
  }
  arena_free(&a);
}

// ---- names --------------------------------------------------------------------------------------------------------

static void test_names(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  IrBuilder b = new_kernel(&a, &d);
  Strings *s = ir_strings(b.m->ctx);
  const IrType *i32 = ir_type_scalar(b.m->ctx, IR_i32, LEVEL_program);
  static const char *const names[] = {"x",   "x_1", "x", "x", "17", "a b", "", NULL, "x", "\xc3\xa9t\xc3\xa9",
                                      "x_1", "%"};
  for (size_t i = 0; i < DT_COUNTOF(names); i++) {
    IrValue *v = ir_const_i(&b, i32, (int64_t)i);
    v->name = names[i] ? str_cstr(s, names[i]) : NULL;
  }
  ir_return(&b, 0, NULL);
  const char *text = ir_print(b.m, &a);
  static const char *const want[] = {
      "%x = const {value=0}",       "%x_1 = const {value=1}",    "%x_2 = const {value=2}",
      "%x_3 = const {value=3}",     "%_17 = const {value=4}",    "%a_b = const {value=5}",
      "%0 = const {value=6}",       "%1 = const {value=7}",      "%x_4 = const {value=8}",
      "%\xc3\xa9t\xc3\xa9 = const", "%x_1_1 = const {value=10}", "%_ = const {value=11}"};
  for (size_t i = 0; i < DT_COUNTOF(want); i++) {
    if (!strstr(text, want[i])) fail_msg("%s not in\n%s", want[i], text);
  }
  IrModule *n = read_text(&a, &d, text);
  assert_string_equal(ir_print(n, &a), text);
  assert_null(n->funcs->body->first->next->next->next->next->next->next->results[0].name);
  arena_free(&a);
}

static void test_scopes_and_strings(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  const char *text =
      "// a comment\n" HEAD
      "kernel @\"odd \\\"name\\\"\"(%x: f32 {divisible=4, noalias=true, writes=true, reads=true, unsigned=true}) wait=mutual { // and another\n"
      " %c = const {value=1} : i1\n"
      " if %c { %u = fneg %x : f32 yield } { %u = fabs %x : f32 yield }\n"
      " barrier\n"
      " %t = tid : thread i32 warp_barrier\n"
      " print %x {prefix=\"tab\\t quote\\\" back\\\\ nul\\x00 line\\n\"}\n"
      " return }\n"
      "func @g() -> i32, f32 { %a = const {value=1} : i32 %b = const {value=1} : f32 return %a, %b }";
  IrModule *m = read_text(&a, &d, text);
  const IrFunc *f = m->funcs;
  assert_string_equal(f->name->s, "odd \"name\"");
  assert_int_equal(f->wait_class, WAIT_mutual);
  assert_int_equal(f->params.data[0].divisible, 4);
  assert_true(f->params.data[0].noalias && f->params.data[0].reads && f->params.data[0].writes &&
              f->params.data[0].is_unsigned);
  assert_int_equal(f->next->results.len, 2);
  const IrOp *print = f->body->last->prev;
  assert_int_equal(ir_attr(print, ATTR_prefix)->s->len, 28);
  assert_memory_equal(ir_attr_s(print, ATTR_prefix), "tab\t quote\" back\\ nul\0 line\n", 28);
  assert_int_equal(print->loc.line, 8);
  assert_int_equal(print->loc.col, 2);
  const char *once = ir_print(m, &a);
  assert_string_equal(once, ir_print(read_text(&a, &d, once), &a));
  arena_free(&a);
}

static void test_locations(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  diags_source(&d, "matmul.py", "a = b\n", 6);
  IrModule *m = read_text(
      &a, &d,
      HEAD
      "kernel @k() loc(\"matmul.py\":1:2) {\n barrier loc(\"matmul.py\":7:5:9)\n barrier loc(\"other.py\":1:1)\n return\n}\n");
  const IrOp *first = m->funcs->body->first;
  assert_int_equal(first->loc.file, 0);
  assert_int_equal(first->loc.line, 7);
  assert_int_equal(first->loc.end_col, 9);
  assert_string_equal(d.sources.data[first->next->loc.file].name, "other.py");
  assert_int_equal(m->funcs->loc.col, 2);
  const char *text = ir_print_with_locs(m, &a);
  assert_non_null(strstr(text, "barrier loc(\"matmul.py\":7:5:9)\n"));
  assert_non_null(strstr(text, "barrier loc(\"other.py\":1:1)\n"));
  assert_null(strstr(ir_print(m, &a), "loc"));
  arena_free(&a);
}

// ---- errors -------------------------------------------------------------------------------------------------------

typedef struct Bad {
  const char *text;
  unsigned line, col;
  const char *want;
} Bad;

static void check_bad(const Bad *c) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = (IrModule *)&d;
  const Status s = ir_parse(&a, ir_ctx_new(&a), &d, "bad", c->text, strlen(c->text), &m);
  if (s != ST_COMPILE || m || d.list.len != 1) fail_msg("accepted (status %d):\n%s", s, c->text);
  const Diag *g = &d.list.data[0];
  if (g->loc.line != c->line || g->loc.col != c->col || !strstr(g->text, c->want)) {
    fail_msg("wanted %u:%u: %s\n%s", c->line, c->col, c->want, diags_render(&d, &a));
  }
  arena_free(&a);
}

#define BODY(s) HEAD "kernel @k(%x: f32, %c: i1) {\n" s "\n return\n}\n"

static void test_errors(void **state) {
  (void)state;
  static const Bad cases[] = {
      {"", 1, 1, "expected module, found the end of the text"},
      {"modul", 1, 1, "expected module, found 'modul'"},
      {"module stage=tiles", 1, 14, "expected tile, laid, lowered or placed, found 'tiles'"},
      {"module stage=tile warps=0", 1, 25, "from 1 to 1024"},
      {"module stage=tile warps=4 stages=2", 1, 35, "expected lanes"},
      {HEAD "kernal @k() {}", 2, 1, "expected kernel or func"},
      {HEAD "kernel k() {}", 2, 8, "expected @name"},
      {HEAD "kernel @k() { return }\nkernel @k() { return }", 3, 8, "@k is already defined"},
      {HEAD "kernel @k(x: f32) { return }", 2, 11, "expected a value's name"},
      {HEAD "kernel @k(%x f32) { return }", 2, 14, "expected ':'"},
      {HEAD "kernel @k(%x: f33) { return }", 2, 15, "expected an element type, found 'f33'"},
      {HEAD "kernel @k(%x: f32 {divisible=0}) { return }", 2, 30, "from 1 to"},
      {HEAD "kernel @k(%x: f32 {odd=1}) { return }", 2, 20, "unknown fact 'odd'"},
      {HEAD "kernel @k(%x: f32, %x: f32) { return }", 2, 20, "%x is already defined"},
      {HEAD "kernel @k() wait=never { return }", 2, 18, "expected none, external"},
      {HEAD "kernel @k() {\n return\n", 4, 1, "expected an operation or '}', found the end"},
      {BODY(" iadd %x"), 3, 2, "unknown operation 'iadd'"},
      {BODY(" %y = 5"), 3, 7, "expected an operation, found '5'"},
      {BODY(" %y fneg %x : f32"), 3, 5, "expected '='"},
      {BODY(" %y = fneg %z : f32"), 3, 12, "'%z' is not defined here"},
      {BODY(" %y = fneg %y : f32"), 3, 12, "'%y' is not defined here"},
      {BODY(" if %c { %u = fneg %x : f32 yield } { yield }\n %v = fabs %u : f32"), 4, 12,
       "'%u' is not defined here"},
      {BODY(" if %c { %x = fneg %x : f32 yield } { yield }"), 3, 10, "%x is already defined"},
      {BODY(" %y = fneg %x"), 3, 7, "1 results are named, but 0 types are given"},
      {BODY(" fneg %x : f32"), 3, 10, "0 results are named, but 1 types are given"},
      {BODY(" %y, %z = fneg %x : f32"), 3, 19, "2 results are named, but 1 types"},
      {BODY(" store %x, , %c"), 3, 12, "expected a value or _, found ','"},
      {BODY(" %y = const {value=1.5} : i32"), 3, 20, "expected an integer, found '1.5'"},
      {BODY(" %y = const {value=256} : i8"), 3, 20, "does not fit into i8"},
      {BODY(" %y = const {value=-129} : i8"), 3, 20, "does not fit into i8"},
      {BODY(" %y = const {value=2} : i1"), 3, 20, "does not fit into i1"},
      {BODY(" %y = const {value=0x10000} : f16"), 3, 20, "does not fit into f16"},
      {BODY(" %y = const {value=99999999999999999999} : i64"), 3, 20, "expected an integer"},
      {BODY(" %y = const {value=abc} : f32"), 3, 20, "expected a float, found 'abc'"},
      {BODY(" %y = const {value=0x} : i32"), 3, 20, "expected an integer, found '0x'"},
      {BODY(" %y = const {value=1} : token"), 3, 20, "a constant of type token"},
      {BODY(" barrier {value=1}"), 3, 17, "no result whose constant"},
      {BODY(" %y = add %x, %x {nope=1} : f32"), 3, 19, "unknown attribute 'nope'"},
      {BODY(" %y = add %x, %x {axis=1, axis=2} : f32"), 3, 27, "'axis' stands twice"},
      {BODY(" %y = add %x, %x {axis=x} : f32"), 3, 24, "expected an integer, found 'x'"},
      {BODY(" %y = add %x, %x {exact=1} : f32"), 3, 25, "expected true or false"},
      {BODY(" %y = add %x, %x {cmp=lt} : f32"), 3, 23, "'lt' is no cmp"},
      {BODY(" %y = add %x, %x {perm=1} : f32"), 3, 24, "expected '['"},
      {BODY(" %y = add %x, %x {perm=[1 2]} : f32"), 3, 27, "expected ','"},
      {BODY(" %y = add %x, %x {perm=[1, 18446744073709551615]} : f32"), 3, 28, "expected here"},
      {BODY(" %y = add %x, %x {label=x} : f32"), 3, 25, "expected a string"},
      {BODY(" %y = add %x, %x {label=\"x} : f32"), 3, 25, "expected a string"},
      {BODY(" %y = add %x, %x {label=\"\\q\"} : f32"), 3, 25, "unknown escape"},
      {BODY(" %y = add %x, %x {label=\"\\x4\"} : f32"), 3, 25, "two hexadecimal digits"},
      {BODY(" %y = add %x, %x {callee=f} : f32"), 3, 26, "expected @name"},
      {BODY(" %y = add %x, %x {axis=1 : f32"), 3, 26, "expected '}'"},
      {BODY(" %y = tid : tile<16xf32"), 4, 2, "expected '>'"},
      {BODY(" %y = tid : tile<16f32>"), 3, 18, "expected 'x' behind a size"},
      {BODY(" %y = tid : tile<16x>"), 3, 21, "expected an element type"},
      {BODY(" %y = tid : tile<1x1x1x1x1x1x1x1x1xf32>"), 3, 18, "at most 8 axes"},
      {BODY(" %y = tid : tile<4294967296xf32>"), 3, 18, "at most 2147483647"},
      {BODY(" %y = tid : tile<-1xf32>"), 3, 18, "expected an element type"},
      {BODY(" %y = tid : tile<2*16xf32>"), 3, 18, "expected 'x' behind a size"},
      {BODY(" %y = tid : memdesc<0*16xf32, shared>"), 3, 21, "at least one stage"},
      {BODY(" %y = tid : memdesc<16xf32>"), 3, 27, "expected ','"},
      {BODY(" %y = tid : memdesc<16xf32, local>"), 3, 29, "expected global, shared"},
      {BODY(" %y = tid : mbarrier<0>"), 3, 22, "from 1 to"},
      {BODY(" %y = tid : mbarrier<x>"), 3, 22, "expected an integer"},
      {BODY(" %y = tid : mbarrier<1"), 4, 2, "expected '>'"},
      {BODY(" %y = tid : ptr f32"), 3, 17, "expected '<'"},
      {BODY(" %y = tid : ptr<f33>"), 3, 17, "expected an element type"},
      {BODY(" %y = tid : ptr<f32, x>"), 3, 22, "expected global"},
      {BODY(" %y = tid : ptr<f32"), 4, 2, "expected '>'"},
      {BODY(" %y = tid : tile<4xptr>"), 3, 23, "expected '<'"},
      {BODY(" %y = tid : tile 4"), 3, 18, "expected '<'"},
      {BODY(" %y = tid : thread tile<16xf32>"), 3, 13, "only scalars and pointers have a level"},
      {BODY(" barrier loc(5:1)"), 3, 14, "expected a file name"},
      {BODY(" barrier loc(\"f\":99999999999:1)"), 3, 18, "from 0 to"},
      {BODY(" barrier %x = fneg"), 3, 13, "expected an operation"},
      {BODY(" if %c { (%u f32) yield }"), 3, 14, "expected ':'"},
      {BODY(" \x01"), 3, 2, "expected an operation"},
      {BODY(" % = tid : i32"), 3, 2, "expected an operation"},
  };
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) check_bad(&cases[i]);
}

static void test_depth_and_size(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  for (int depth = 250; depth <= 100000; depth *= 20) {
    const char *open = "if %c {\n", *close = "yield } { yield }\n";
    char *text = arena_alloc(&a, 200 + (size_t)depth * 40, 1);
    size_t n = (size_t)sprintf(text, HEAD "kernel @k(%%c: i1) {\n");
    for (int i = 0; i < depth; i++) n += (size_t)sprintf(text + n, "%s", open);
    for (int i = 0; i < depth; i++) n += (size_t)sprintf(text + n, "%s", close);
    n += (size_t)sprintf(text + n, "return\n}\n");
    IrModule *m;
    const Status s = ir_parse(&a, ir_ctx_new(&a), &d, "deep", text, n, &m);
    assert_int_equal(s, depth == 250 ? ST_OK : ST_COMPILE);
    if (s == ST_OK)
      assert_int_equal(ir_verify(m, &d), ST_OK);
    else
      assert_non_null(strstr(vec_last(&d.list).text, "deeper than 256"));
  }
  IrModule *m;
  assert_int_equal(ir_parse(&a, ir_ctx_new(&a), &d, "long", "module", (size_t)1 << 30, &m), ST_LIMIT);
  assert_null(m);
  arena_free(&a);
}

// Any byte may stand where the text ends, and text holds no terminator.
static void test_every_prefix(void **state) {
  (void)state;
  static const char text[] =
      HEAD "kernel @\"k\\\"\"(%x: f32 {divisible=16}, %p: ptr<f32, shared>) wait=external loc(\"f\":1:2) {\n"
           " %m = mem_alloc {label=\"a\\x41\"} : memdesc<2*16xf32, shared>\n"
           " %r = const {value=-1.5e+3} : tile<16xf32> loc(\"f\":1:2:3)\n"
           " %t = trans %r {perm=[0]} : tile<16xf32>\n"
           " %s = reduce %r {axis=0} : f32 { (%a: f32, %b: f32) yield %a }\n"
           " store %p, %s, _ {order=relaxed, nt=true}\n return\n}\n";
  Arena a;
  TEST_ARENA(a);
  for (size_t n = 0; n < sizeof text; n++) {
    Diags d;
    diags_init(&d, &a);
    char *exact = arena_copy(&a, text, n); // so that the sanitizer sees a read past the end
    IrModule *m;
    const Status s = ir_parse(&a, ir_ctx_new(&a), &d, "prefix", exact, n, &m);
    assert_int_equal(s, (n <= strlen(HEAD) && n + 2 >= strlen(HEAD)) || n >= sizeof text - 2 ? ST_OK
                                                                                             : ST_COMPILE);
  }
  arena_free(&a);
}

// What a module says of itself is read back, whatever of it is there.
static void test_module(void **state) {
  (void)state;
  static const char *const heads[] = {"", " extra=1", " registers=128", " extra=4 registers=24"};
  for (int i = 0; i < 4; i++) {
    Arena a;
    TEST_ARENA(a);
    Diags d;
    diags_init(&d, &a);
    const char *text = arena_printf(
        &a, "module stage=tile warps=8 stages=3 lanes=32%s\n\nkernel @k() {\n  return\n}\n", heads[i]);
    const IrModule *m = read_text(&a, &d, text), *copy = ir_module_clone(m, &a);
    assert_int_equal(m->max_registers, i == 2 ? 128 : i == 3 ? 24 : 0);
    assert_int_equal(m->extra_warps, i == 1 ? 1 : i == 3 ? 4 : 0);
    assert_string_equal(ir_print(m, &a), text);
    assert_string_equal(ir_print(copy, &a), text);
    arena_free(&a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_narrow_constants),
      cmocka_unit_test(test_wide_constants),
      cmocka_unit_test(test_ways_to_write_a_constant),
      cmocka_unit_test(test_constant_text),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_scopes_and_strings),
      cmocka_unit_test(test_locations),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_depth_and_size),
      cmocka_unit_test(test_every_prefix),
      cmocka_unit_test(test_module),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
