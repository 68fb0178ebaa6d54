// What the verifier refuses, and that it names the op and the reason. Each case is a function body that is valid but for
// one slip; the message must contain the given text.
#include "harness/test.h"
#include "ir/ir.h"

#include <stdio.h>
#include <string.h>

typedef struct Case {
  const char *text, *want; // want NULL: valid
} Case;

static const char head[] =
    "kernel @k(%p: ptr<f32>, %pi: ptr<i32>, %pl: ptr<i64>, %i: i32, %l: i64, %x: f32, %c: i1) {\n"
    " %t = tid : thread i32\n"
    " %tf = to_thread %x : thread f32\n"
    " %tb = cmp %t, %t {cmp=eq} : thread i1\n"
    " %pt = to_thread %p : thread ptr<f32>\n";
static const char tiles[] = " %ti = arange {start=0, end=16} : tile<16xi32>\n"
                            " %tx = splat %x : tile<16xf32>\n"
                            " %ty = splat %x : tile<32xf32>\n"
                            " %tc = splat %c : tile<16xi1>\n"
                            " %sp = splat %p : tile<16xptr<f32>>\n"
                            " %m = splat %x : tile<16x16xf32>\n"
                            " %buf = mem_alloc : memdesc<2*16xf32, shared>\n"
                            " %one = mem_alloc : memdesc<16xf32, shared>\n"
                            " %d = make_desc %p, %i, %l : desc<16xf32>\n";

static IrModule *read_text(Arena *a, Diags *d, const char *text) {
  IrModule *m;
  if (ir_parse(a, ir_ctx_new(a), d, "case", text, strlen(text), &m) != ST_OK)
    fail_msg("%s", diags_render(d, a));
  return m;
}

static void check_module(const char *text, const char *want) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = read_text(&a, &d, text);
  const Status s = ir_verify(m, &d);
  bool found = !want && s == ST_OK;
  for (uint32_t i = 0; want && i < d.list.len; i++) found |= strstr(d.list.data[i].text, want) != NULL;
  if (!found) fail_msg("wanted: %s\n%s\n%s", want ? want : "(valid)", diags_render(&d, &a), text);
  assert_int_equal(s, want ? ST_INTERNAL : ST_OK);
  arena_free(&a);
}

static void check_case(const char *stage, const char *params, const char *more, const Case *c) {
  char text[8192];
  const int n = snprintf(text, sizeof text, "module stage=%s warps=4 stages=2 lanes=32\n%s%s%s\n return\n}\n",
                         stage, params, more, c->text);
  assert_true(n < (int)sizeof text);
  check_module(text, c->want);
}

static void check_cases(const char *stage, const char *more, const Case *cases, size_t n) {
  for (size_t i = 0; i < n; i++) check_case(stage, head, more, &cases[i]);
}
#define CHECK_CASES(stage, more, cases) check_cases(stage, more, cases, DT_COUNTOF(cases))

static void test_operands_and_results(void **state) {
  (void)state;
  static const Case cases[] = {
      {"", NULL},
      {"%r = add %i : i32", "operand b is missing"},
      {"%r = add %i, _ : i32", "operand b is missing"},
      {"%r = add %i, %i, %i : i32", "has 3 operands, at most 2"},
      {"%r = add %i, %x : i32", "operand b is f32, but must be an integer"},
      {"add %i, %i", "result r is missing"},
      {"%r, %s = add %i, %i : i32, i32", "has 2 results, 1 are known"},
      {"%r = add %i, %i : f32", "result r is f32"},
      {"%r = fadd %i, %i : i32", "must be a float"},
      {"%r = load %x, _, _ : f32", "must be a pointer"},
      {"%r = load %p : f32", NULL}, // optional operands at the end may be left out
      {"assume %tc", "must be a scalar i1"},
      {"%r = mem_load %d : tile<16xf32>", "must be a memdesc"},
      {"%r = splat %d : tile<16xf32>", "must be a scalar, pointer or tile"},
      {"print %x, _", "one of the operands a is missing"},
      {"mbarrier_arrive %buf, %i", "must be an mbarrier"},
      {"%r = consume %x, %x : f32", "must be a token"},
      {"%r = program_id {axis=0} : i64", "must be a scalar i32"},
      {"%q = make_desc %p, %x, %l : desc<16xf32>", "operand dims is f32, but must be a scalar i32 or i64"},
  };
  CHECK_CASES("tile", tiles, cases);
}

static void test_attributes(void **state) {
  (void)state;
  static const Case cases[] = {
      {"%r = program_id : i32", "needs the attribute axis"},
      {"%r = program_id {axis=3} : i32", "axis 3 is not one of 3"},
      {"%r = add %i, %i {axis=0} : i32", "may not carry the attribute axis"},
      {"%r = cmp %i, %i : i1", "needs the attribute cmp"},
      {"%r = math %x {fn=pow} : f32", "wrong number of operands"},
      {"%r = math %x, %x {fn=sin} : f32", "wrong number of operands"},
      {"%h = fcast %x : f16  %r = math %h {fn=sin} : f16", "works on f32 and f64"},
      {"%r = hint %ti {divisible=[16, 16]} : tile<16xi32>", "a number for each axis"},
      {"%r = hint %ti {divisible=[0]} : tile<16xi32>", "must be positive"},
      {"%r = hint %i {divisible=[8]} : i32", NULL},
      {"%r = load %p, _, _ {order=release} : f32", "a load cannot release"},
      {"store %p, %x, _ {order=acquire}", "a store cannot acquire"},
      {"fence {order=relaxed}", "a fence needs an order"},
      {"print %x {uns=[1, 0]}", "uns needs a number for each argument"},
      {"%r = const : i32", "needs the attribute value"},
      {"%r = trans %m : tile<16x16xf32>", "needs the attribute perm"},
      {"%b = mbarrier_alloc {count=0} : mbarrier", "count is at least 1"},
  };
  CHECK_CASES("tile", tiles, cases);
}

static void test_elementwise(void **state) {
  (void)state;
  static const Case cases[] = {
      {"%r = fadd %tx, %ty : tile<16xf32>", "one type"},
      {"%r = fadd %tx, %x : tile<16xf32>", "one type"},
      {"%r = add %i, %l : i32", "one type"},
      {"%r = select %c, %tx, %tx : tile<16xf32>", "mixes the shapes"},
      {"%r = select %tc, %tx, %tx : tile<16xf32>", NULL},
      {"%r = cmp %i, %l {cmp=eq} : i1", "must be equal"},
      {"%r = cmp %x, %x {cmp=eq} : i1", "compares integers and pointers"},
      {"%r = cmp %p, %p {cmp=eq} : i1", NULL},
      {"%r = fcmp %tx, %tx {fcmp=oeq} : tile<32xi1>", "mixes the shapes"},
      {"%r = fcmp %tx, %tx {fcmp=oeq} : tile<16xi8>", "must be an i1"},
      {"%r = ext_s %l : i32", "not wider"},
      {"%r = ext_u %i : i32", "not wider"},
      {"%r = trunc %i : i64", "not narrower"},
      {"%r = fcast %x : f32", "to itself"},
      {"%r = bitcast %x : i64", "changes the width"},
      {"%r = bitcast %l : ptr<f32>", "between pointer and number"},
      {"%r = bitcast %p : ptr<f32, shared>", "changes the space"},
      {"%r = ptr2int %p : i32", "an address is an i64"},
      {"%r = int2ptr %i : ptr<f32>", "an address is an i64"},
      {"%r = ptr_add %p, %i : ptr<i32>", "must be equal"},
      {"%k = trunc %i : i16  %r = ptr_add %p, %k : ptr<f32>", "moves by an i32 or i64"},
      {"%r = ptr_add %p, %ti : tile<16xptr<f32>>", "mixes the shapes"},
      {"%r = inline_asm %tx, %ty {asm=\"\", constraints=\"\"} : tile<16xf32>", "mixes the shapes"},
  };
  CHECK_CASES("tile", tiles, cases);
}

static void test_shapes(void **state) {
  (void)state;
  static const Case cases[] = {
      {"%r = splat %x : tile<24xf32>", "no power of two"},
      {"%r = splat %x : tile<0xf32>", "not positive"},
      {"%r = splat %x : tile<2048x1024xf32>", "more than 2^20"},
      {"%r = splat %x : tile<1024x1024xf32>", NULL},
      {"%r = splat %x : tile<65536x65536x65536x65536x65536x65536xf32>", "more than 2^20"},
      {"%r = splat %x : tile<f32>", "has no axis"},
      {"%r = splat %x : tile<16xi32>", "elements must be equal"},
      {"%r = splat %tx : tile<16x16xf32>", "repeats a scalar"},
      {"%r = unsplat %tx : f32", "a tile of one element"},
      {"%u = splat %x : tile<1xf32>  %r = unsplat %u : i32", "elements must be equal"},
      {"%r = arange {start=0, end=16} : tile<32xi32>", "not the size"},
      {"%r = arange {start=0, end=16} : tile<16xi64>", "tile of i32"},
      {"%r = arange {start=16, end=16} : tile<16xi32>", "no range"},
      {"%r = expand_dims %tx {axis=2} : tile<16x1xf32>", "axis 2 is not one of 2"},
      {"%r = expand_dims %tx {axis=0} : tile<16x1xf32>", "one more axis of size 1"},
      {"%r = expand_dims %tx {axis=-1} : tile<16x1xf32>", "axis -1"},
      {"%r = broadcast %tx : tile<32xf32>", "only axes of size 1 grow"},
      {"%r = broadcast %tx : tile<16x16xf32>", "only axes of size 1 grow"},
      {"%r = expand_dims %tx {axis=0} : tile<1x16xf64>", "elements must be equal"},
      {"%e = expand_dims %tx {axis=0} : tile<1x16xf32>  %r = broadcast %e : tile<2x16xi32>",
       "elements must be equal"},
      {"%r = reshape %m : tile<256xi32>", "elements must be equal"},
      {"%r = trans %m {perm=[1, 0]} : tile<16x16xptr<f32>>", "elements must be equal"},
      {"%r = join %tx, %tx : tile<16x2xi32>", "elements must be equal"},
      {"%u = join %tx, %tx : tile<16x2xf32>  %r, %s = split %u : tile<16xi32>, tile<16xi32>",
       "elements must be equal"},
      {"%u = join %tx, %tx : tile<16x2xf32>  %r, %s = split %u : tile<16xf32>, tile<16xi32>",
       "must be equal"},
      {"%r = cat %tx, %ti : tile<32xf32>", "elements must be equal"},
      {"%r = cat %tx, %tx : tile<32xi32>", "elements must be equal"},
      {"%r = gather %tx, %ti {axis=0} : tile<16xi32>", "elements must be equal"},
      {"%r = gather %tx, %ti {axis=0} : tile<32xf32>", "shapes must be equal"},
      {"%r = splat %p : tile<16xptr<f32, shared>>", "elements must be equal"},
      {"%r = histogram %ti : tile<16xi64>", "gives a tile of i32"},
      {"%u = expand_dims %ti {axis=0} : tile<1x16xi32>  %r = histogram %u : tile<16xi32>", "with one axis"},
      {"%r = histogram %ti, %m : tile<16xi32>", "not of i1"},
      {"%u = splat %c : tile<8xi1>  %r = histogram %ti, %u : tile<16xi32>", "shapes must be equal"},
      {"%r = dot %sp, %sp, %sp : tile<16xptr<f32>>", "does not give"},
      {"%q = splat %p : tile<16x16xptr<f32>>  %r = dot %q, %m, %m : tile<16x16xf32>", "multiplies pointers"},
      {"%r = dot %m, %m, %m : tile<16x16xf64>", "must be equal"},
      {"%r = reshape %m : tile<128xf32>", "changes the number of elements"},
      {"%r = trans %m {perm=[0, 0]} : tile<16x16xf32>", "perm is not"},
      {"%r = trans %m {perm=[0, 2]} : tile<16x16xf32>", "perm is not"},
      {"%r = trans %m {perm=[1]} : tile<16x16xf32>", "perm is not"},
      {"%e = expand_dims %tx {axis=0} : tile<1x16xf32>  %r = trans %e {perm=[1, 0]} : tile<1x16xf32>",
       "perm is not"},
      {"%r = join %tx, %ty : tile<16x2xf32>", "must be equal"},
      {"%r = join %tx, %tx : tile<2x16xf32>", "last axis of size 2"},
      {"%r, %s = split %m : tile<16xf32>, tile<16xf32>", "last axis of size 2"},
      {"%r = cat %tx, %tx : tile<16xf32>", "along axis 0"},
      {"%r = gather %m, %ti {axis=0} : tile<16xf32>", "differ outside"},
      {"%r = gather %tx, %tx {axis=0} : tile<16xf32>", "not integers"},
      {"%r = gather %tx, %ti {axis=1} : tile<16xf32>", "axis 1 is not one of 1"},
      {"%r = histogram %tx : tile<16xi32>", "tile of integers"},
      {"%r = histogram %ti, %ti : tile<16xi32>", "not of i1"},
      {"%r = dot %m, %m, %tx : tile<16xf32>", "does not give"},
      {"%w = splat %x : tile<16x32xf32>  %r = dot %w, %m, %m : tile<16x16xf32>", "does not give"},
      {"%w = splat %i : tile<16x16xi32>  %r = dot %m, %m, %w : tile<16x16xi32>", "mixes integers and floats"},
      {"%w = splat %x : tile<16x16xf32>  %h = fcast %w : tile<16x16xf16>  %r = dot %m, %h, %m : tile<16x16xf32>",
       "different element types"},
      {"%h = fcast %m : tile<16x16xf16>  %r = dot %m, %m, %h : tile<16x16xf16>",
       "narrower than the operands"},
      {"%h = fcast %m : tile<16x16xf8e4m3>  %g = fcast %m : tile<16x16xf8e5m2>  %r = dot %h, %g, %m : tile<16x16xf32>",
       NULL},
      {"%a3 = splat %x : tile<4x16x16xf32>  %r = dot %a3, %a3, %a3 : tile<4x16x16xf32>", NULL},
      {"%a3 = splat %x : tile<4x16x16xf32>  %b3 = splat %x : tile<2x16x16xf32>  %r = dot %a3, %b3, %a3 : tile<4x16x16xf32>",
       "does not give"},
  };
  CHECK_CASES("tile", tiles, cases);
}

static void test_memory(void **state) {
  (void)state;
  static const Case cases[] = {
      {"%r = load %sp, _, _ : tile<32xf32>", "shapes must be equal"},
      {"%r = load %sp, _, _ : tile<16xi32>", "but the pointer"},
      {"%r = load %p, _, _ : ptr<f32>", "but the pointer"},
      {"%r = load %sp, %c, _ : tile<16xf32>", "shapes must be equal"},
      {"%r = load %sp, %tc, %x : tile<16xf32>", "must be equal"},
      {"%r = load %sp, %tc, %tx : tile<16xf32>", NULL},
      {"store %sp, %x, _", "shapes must be equal"},
      {"store %sp, %ti, _", "but the pointer"},
      {"store %sp, %tx, %c", "shapes must be equal"},
      {"%r = atomic_rmw %p, %x, _ {rmw=add} : f32", "add does not work on f32"},
      {"%r = atomic_rmw %pi, %i, _ {rmw=fmax} : i32", "fmax does not work on i32"},
      {"%r = atomic_rmw %p, %x, _ {rmw=xchg} : f32", NULL},
      {"%r = atomic_rmw %pi, %i, _ {rmw=add} : i64", "must be equal"},
      {"%r = atomic_cas %pi, %l, %i : i32", "but the pointer"},
      {"%r = atomic_cas %pi, %i, %l : i32", "must be equal"},
      {"%r = make_desc %p, %i : desc<16xf32>", "needs 1 sizes and 1 strides"},
      {"%r = make_desc %p, %i, %i : desc<16xf32>", "a stride is an i64"},
      {"%r = make_desc %pi, %i, %l : desc<16xf32>", "does not point at the descriptor's dtype"},
      {"%r = make_desc %p, %i, %l : desc<f32>", "has no axis"},
      {"%r = make_desc %p, %i, %i, %i, %i, %i, %i, %l, %l, %l, %l, %l, %l : desc<1x1x1x1x1x1xf32>",
       "more than 5 axes"},
      {"%r = make_desc %p, %i, %i, %i, %i, %i, %l, %l, %l, %l, %l : desc<1x1x1x1x1xf32>", NULL},
      {"%r = make_desc %p, %i, %l : desc<2097152xf32>", "more than 2^20"},
      {"%r = splat %x : tile<1x1x1x1x1x1xf32>", NULL},
      {"%r = mem_alloc : memdesc<24xf32, shared>", NULL},
      {"%r = mem_alloc : memdesc<65536x65536xf32, shared>", "more than 2^31"},
      {"%u = splat %pi : tile<16xptr<i32>>  %r = load %u, _, %tx : tile<16xi32>", "must be equal"},
      {"%r = atomic_rmw %sp, %tx, %c {rmw=fadd} : tile<16xf32>", "shapes must be equal"},
      {"%r = atomic_rmw %sp, %x, _ {rmw=fadd} : tile<16xf32>", "shapes must be equal"},
      {"%r = atomic_cas %sp, %tx, %x : tile<16xf32>", "must be equal"},
      {"%r = atomic_cas %pi, %i, %i : i64", "must be equal"},
      {"%r = desc_load %d, %i, %i : tile<16xf32>", "has 2 indices, must have 1"},
      {"%r = desc_load %d, %i : tile<32xf32>", "shape and dtype must be equal"},
      {"desc_store %d, %ti, %i", "shape and dtype must be equal"},
      {"desc_rmw %d, %tx, %i {rmw=add}", "add does not work on f32"},
      {"%r = desc_base %d : ptr<i32>", "descriptor's dtype"},
      {"%r = desc_dim %d {axis=1} : i64", "axis 1 is not one of 1"},
      {"%r = desc_stride %d {axis=0} : i32", "gives an i64"},
      {"%r = mem_alloc : memdesc<16xf32, global>", "lies in shared, tensor or scratch"},
      {"%r = mem_alloc {offset=-64} : memdesc<16xf32, scratch>", "offset is negative"},
      {"%r = mem_alloc {offset=6} : memdesc<16xf32, scratch>", "not a multiple of an element's size"},
      {"%r = mem_view %one, %i : memdesc<16xf32, shared>", "one stage of a buffer with stages"},
      {"%r = mem_view %buf, %i : memdesc<16xi32, shared>", "shape and dtype must be equal"},
      {"%r = mem_view %buf, %i : memdesc<16xf32, scratch>", "changes the space"},
      {"%r = mem_load %buf : tile<16xf32>", "use mem_view"},
      {"%r = mem_load %one : tile<16xi32>", "shape and dtype must be equal"},
      {"mem_store %one, %ty", "shape and dtype must be equal"},
      {"%r = mem_get %one, %i, %i : f32", "has 2 indices, must have 1"},
      {"%r = mem_get %one, %i : i32", "no element of"},
      {"%r = mem_get %one, %i : tile<16xf32>", "takes one element"},
      {"mem_set %one, %l, %i", "no element of"},
  };
  CHECK_CASES("tile", tiles, cases);
}

static void test_devices_and_lanes(void **state) {
  (void)state;
  static const Case cases[] = {
      {"%r = symm_at %p, %x : ptr<f32>", "the rank is not an integer"},
      {"%r = symm_at %p, %i : ptr<i32>", "must be equal"},
      {"%r = symm_at %sp, %ti : tile<16xptr<f32>>", NULL},
      {"%r = symm_at %sp, %i : tile<16xptr<f32>>", NULL},
      {"%r = wait %pi, _, %l : token", "but the pointer"},
      {"%r = wait %pi, _, %ti : token", "must be a scalar"},
      {"signal %pl, %i, %i", "but the pointer"},
      {"release %pl, %i, _", "but the pointer"},
      {"%r = acquire %pl, %i : token", "but the pointer"},
      {"put %p, %p, %ti, %i", "must be a scalar"},
      {"put_signal %p, %p, %l, %pl, %i, %i", "but the pointer"},
      {"%k = wait %pi, _, %i : token  %r = consume %x, %k : f64", "must be equal"},
      {"%r = shfl %tf, %t {shfl=idx} : thread i32", "must be equal"},
      {"%r = shfl %tf, %tf {shfl=idx} : thread f32", "the lane is not an integer"},
      {"%k = tid : thread i32  %j = trunc %k : thread i16  %r = ballot %tb : thread i16",
       "gives an i32 or i64"},
      {"assert %i", "asserts an i1"},
  };
  CHECK_CASES("tile", tiles, cases);
  check_module(
      "module stage=tile warps=4 stages=2 lanes=64\nkernel @k() {\n %r = active_mask : thread i32\n return\n}\n",
      "64 lanes need an i64");
}

static void test_levels(void **state) {
  (void)state;
  static const Case cases[] = {
      {"%r = add %t, %i : thread i32", "one type"},
      {"%r = ptr_add %pt, %i : thread ptr<f32>", "mixes the program and the thread level"},
      {"%r = ptr_add %p, %t : ptr<f32>", "mixes the program and the thread level"},
      {"%r = load %p, _, _ : thread f32", "mixes the program and the thread level"},
      {"%r = ext_s %t : i64", "mixes the program and the thread level"},
      {"store %pt, %x, _", "mixes the program and the thread level"},
      {"store %pt, %tf, _", NULL},
      {"%r = splat %tf : tile<16xf32>", "takes no thread-level values"},
      {"%r = to_thread %t : thread i32", "goes from the program to the thread level"},
      {"%r = to_thread %i : i32", "goes from the program to the thread level"},
      {"%r = to_thread %i : thread i64", "only the level may change"},
      {"%r = to_thread %tx : tile<16xf32>", "only the level may change"},
      {"%r = from_thread %i : i32", "goes from the thread to the program level"},
      {"%r = from_thread %t : thread i32", "goes from the thread to the program level"},
      {"%r = tid : i32", "gives a thread-level value"},
      {"%r = shfl %x, %i {shfl=idx} : f32", "takes thread-level values"},
      {"%q = to_thread %pl : thread ptr<i64>  %v = to_thread %l : thread i64  release %q, %v, _",
       "takes program-level values"},
      {"print %x, %tf", "mixes the program and the thread level"},
      {"%r = mem_get %one, %i : thread f32", "mixes the program and the thread level"},
      {"mem_set %one, %tf, %t", NULL},
      {"wait %pi, _, %i", "result t is missing"},
  };
  CHECK_CASES("tile", tiles, cases);
}

static void test_thread_control(void **state) {
  (void)state;
  static const Case cases[] = {
      {"if %tb { %r = fadd %tx, %tx : tile<16xf32>  yield } { yield }",
       "works on tiles, but stands under the thread-level condition of 'if'"},
      {"if %tb { %r = splat %x : tile<16xf32>  yield } { yield }", "works on tiles"},
      {"if %tb { barrier  yield } { yield }", "needs all threads of the block"},
      {"if %tb { yield } { barrier  yield }", "needs all threads of the block"},
      {"if %tb { %r = from_thread %t : i32  yield } { yield }", "needs all threads of the block"},
      {"if %tb { release %pl, %l, _  yield } { yield }", "needs all threads of the block"},
      {"if %tb { put %p, %p, %l, %i {group=block}  yield } { yield }", "needs all threads of the block"},
      {"if %tb { team_barrier _ {group=block}  yield } { yield }", "needs all threads of the block"},
      {"if %tb { put %p, %p, %l, %i {group=warp}  yield } { yield }", NULL},
      {"if %tb { store %p, %x, _  yield } { yield }", "is done once a program"},
      {"if %tb { %r = load %p, _, _ : f32  yield } { yield }", "is done once a program"},
      {"if %tb { %k = wait %pi, _, %i : token  yield } { yield }", "is done once a program"},
      {"if %tb { store %pt, %tf, _  yield } { yield }", NULL},
      {"if %tb { fence {order=acq_rel, scope=sys}  put_quiet  print  yield } { yield }", NULL},
      {"if %tb { %r = shfl %tf, %t {shfl=xor} : thread f32  warp_barrier  yield } { yield }", NULL},
      {"if %tb { %r = program_id {axis=0} : i32  %s = add %r, %i : i32  %u = to_thread %s : thread i32  yield } { yield }",
       NULL},
      {"if %tb { if %c { barrier  yield } { yield }  yield } { yield }", "needs all threads of the block"},
      {"if %tb { if %c { yield } { yield }  for %i, %i, %i { (%j: i32) yield }  assume %c  yield } { yield }",
       NULL},
      {"if %tb { switch %i {cases=[1]} { store %p, %x, _  yield } { yield }  yield } { yield }",
       "is done once a program"},
      {"if %c { barrier  yield } { yield }", NULL},
      {"%r = if %tb : f32 { yield %x } { yield %x }", "its result 0 must be at thread level, not f32"},
      {"%r = if %tb : tile<16xf32> { yield %tx } { yield %tx }", "its result 0 must be at thread level"},
      {"%r = if %tb : thread f32 { yield %tf } { yield %tf }", NULL},
      {"for %t, %t, %t { (%j: thread i32) barrier  yield }", "needs all threads of the block"},
      {"for %i, %t, %i { (%j: i32) yield }", "mixes the program and the thread level"},
      {"for %i, %i, %i { (%j: i32) barrier  yield }", NULL},
      {"while { cond_yield %tb } { barrier  yield }", "needs all threads of the block"},
      {"while { barrier  cond_yield %tb } { yield }", "needs all threads of the block"},
      {"switch %t {cases=[1]} { barrier  yield } { yield }", "needs all threads of the block"},
      {"%r = for %i, %i, %i, %t : thread i32 { (%j: i32, %a: thread i32) barrier  yield %a }", NULL},
      {"if %tb { %b = mem_alloc : memdesc<16xf32, shared>  yield } { yield }", "is done once a program"},
  };
  CHECK_CASES("tile", tiles, cases);
}

static void test_dominance(void **state) {
  (void)state;
  static const Case cases[] = {
      {"if %c { %r = fneg %x : f32  yield } { yield }", NULL},
      {"%r = if %c : f32 { %u = fneg %x : f32  yield %u } { yield %x }", NULL},
  };
  CHECK_CASES("tile", tiles, cases);

  // what the text cannot say is built: a use before the definition, of a region that has ended, of another function
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m =
      read_text(&a, &d,
                "module stage=tile warps=4 stages=2 lanes=32\n"
                "func @g(%z: f32) {\n return\n}\n"
                "kernel @k(%x: f32, %c: i1) {\n %u = fneg %x : f32\n %v = fabs %u : f32\n"
                " if %c { %w = fneg %x : f32  yield } { yield }\n %y = fneg %x : f32\n return\n}\n");
  assert_int_equal(ir_verify(m, &d), ST_OK);
  IrBlock *body = m->last_func->body;
  IrOp *u = body->first, *v = u->next, *choice = v->next, *y = choice->next;
  ir_move_before(v, u);
  assert_int_equal(ir_verify(m, &d), ST_INTERNAL);
  assert_non_null(strstr(d.list.data[0].text, "defined nowhere before"));
  ir_move_before(u, v);
  d.list.len = d.errors = 0;
  assert_int_equal(ir_verify(m, &d), ST_OK);

  IrOp *w = choice->regions[0]->first;
  ir_set_operand(y, 0, ir_result(w, 0));
  d.list.len = d.errors = 0;
  assert_int_equal(ir_verify(m, &d), ST_INTERNAL);
  assert_non_null(strstr(d.list.data[0].text, "region that has ended"));

  ir_set_operand(y, 0, m->funcs->body->args.data[0]);
  d.list.len = d.errors = 0;
  assert_int_equal(ir_verify(m, &d), ST_INTERNAL);
  assert_non_null(strstr(d.list.data[0].text, "defined nowhere before"));

  ir_set_operand(y, 0, body->args.data[0]);
  y->results[0].id = body->args.data[0]->id;
  d.list.len = d.errors = 0;
  assert_int_equal(ir_verify(m, &d), ST_INTERNAL);
  assert_non_null(strstr(d.list.data[0].text, "is taken"));
  arena_free(&a);
}

static void test_regions(void **state) {
  (void)state;
  static const Case cases[] = {
      {"if %c { yield }", "has 1 regions, must have 2"},
      {"if %c { } { yield }", "does not end in a terminator"},
      {"if %c { yield  yield } { yield }", "ends a region, but ops follow"},
      {"if %c { return } { yield }", "must end in yield"},
      {"if %c { cond_yield %c } { yield }", "must end in yield"},
      {"%r = if %c : f32 { yield %x } { yield }", "0 values yielded, but 1 results"},
      {"%r = if %c : f32 { yield %i } { yield %x }", "number 0 of the values yielded is i32"},
      {"if %c { (%q: i32) yield } { yield }", "region 0 has arguments"},
      {"switch %i {cases=[1, 2]} { yield } { yield }", "2 cases need 3 regions, not 2"},
      {"switch %i {cases=[2, 1]} { yield } { yield } { yield }", NULL},
      {"switch %i {cases=[2, 2]} { yield } { yield } { yield }", "case 2 stands twice"},
      {"switch %i {cases=[2, 4294967298]} { yield } { yield } { yield }", "case 4294967298 is no i32"},
      {"for %i, %l, %i { (%j: i32) yield }", "different types"},
      {"for %i, %i, %i { yield }", "not the loop's index"},
      {"for %i, %i, %i { (%j: i64) yield }", "not the loop's index"},
      {"%z = const {value=0} : i32  for %i, %i, %z { (%j: i32) yield }", "the step is 0"},
      {"%z = const {value=-1} : i32  for %i, %i, %z { (%j: i32) yield }", NULL},
      {"%r = for %i, %i, %i, %x : f32 { (%j: i32) yield %x }", "0 carried arguments, but 1 results"},
      {"%r = for %i, %i, %i, %x : f32 { (%j: i32, %a: f64) yield %x }",
       "number 0 of the carried arguments is f64"},
      {"%r = for %i, %i, %i, %x : f32 { (%j: i32, %a: f32) yield %j }",
       "number 0 of the values yielded is i32"},
      {"for %i, %i, %i, %x { (%j: i32) yield }", "1 initial values, but 0 results"},
      {"for %i, %i, %i {unroll=-1} { (%j: i32) yield }", "unroll is negative"},
      {"while { yield } { yield }", "must end in cond_yield"},
      {"while { cond_yield %c, %x } { yield }", "1 values handed on, but 0 results"},
      {"while %x { cond_yield %c } { yield %x }", "1 initial values, but 0 arguments of the first region"},
      {"while %x { (%a: f32) cond_yield %c } { yield }", "0 values yielded, but 1 initial values"},
      {"%r = while : f32 { cond_yield %c, %x } { yield }", "0 arguments of the second region, but 1 results"},
      {"%r = reduce %tx {axis=1} : f32 { (%a: f32, %b: f32) yield %a }", "axis 1 is not one of 1"},
      {"%r = reduce %m {axis=0} : f32 { (%a: f32, %b: f32) yield %a }", "without axis 0"},
      {"%r = reduce %tx {axis=0} : f32 { (%a: f32) yield %a }", "must take 2 values and yield 1"},
      {"%r = reduce %tx {axis=0} : f32 { (%a: f32, %b: i32) yield %a }", "does not combine elements"},
      {"%r = reduce %tx {axis=0} : f32 { (%a: f32, %b: f32) yield %i }", "does not combine elements"},
      {"%r = reduce %tx {axis=0} : f32 { (%a: f32, %b: f32) store %p, %a, _  yield %a }",
       "has an effect inside of a reduce"},
      {"%r, %s = reduce %tx, %ty {axis=0} : f32, f32 { (%a: f32, %e: f32, %b: f32, %f: f32) yield %a, %b }",
       "different shapes"},
      {"reduce {axis=0} { yield }", "has 0 operands and 0 results"},
      {"%r = scan %tx {axis=0} : tile<32xf32> { (%a: f32, %b: f32) yield %a }", "differs from its operand"},
      {"warp_for {count=4} { (%w: i32) yield }", "not legal in the stage tile"},
  };
  CHECK_CASES("tile", tiles, cases);
}

static void test_partitions(void **state) {
  (void)state;
  static const char partition_values[] = " %bar = mbarrier_alloc {count=1} : mbarrier<2>\n";
  char more[2048];
  snprintf(more, sizeof more, "%s%s", tiles, partition_values);
  static const Case cases[] = {
      {"warp_partitions {first=[0, 2], warps=[2, 2]} { mbarrier_arrive %bar, %i  yield } { %q = ptr_add %p, %i : ptr<f32>  mem_set %one, %x, %i  yield }",
       NULL},
      {"warp_partitions {first=[0], warps=[4]} { %r = fadd %tx, %tx : tile<16xf32>  yield }",
       "captures tile<16xf32>"},
      {"warp_partitions {first=[0], warps=[4]} { %r = add %t, %t : thread i32  yield }",
       "captures thread i32"},
      {"%k = wait %pi, _, %i : token  warp_partitions {first=[0], warps=[4]} { %r = consume %p, %k : ptr<f32>  yield }",
       "captures token"},
      {"warp_partitions {first=[0], warps=[4]} { %u = splat %x : tile<16xf32>  if %c { %r = fneg %u : tile<16xf32>  yield } { yield }  yield }",
       NULL},
      {"warp_partitions {first=[0, 1], warps=[2, 2]} { yield } { yield }", "shares warps"},
      {"warp_partitions {first=[0, 2], warps=[2, 3]} { yield } { yield }", "not within the 4 warps"},
      {"warp_partitions {first=[-1], warps=[2]} { yield }", "not within the 4 warps"},
      {"warp_partitions {first=[0], warps=[0]} { yield }", "not within the 4 warps"},
      {"warp_partitions {first=[0, 2], warps=[2]} { yield } { yield }", "need a number for each"},
      {"warp_partitions {first=[0], warps=[4], regs=[-8]} { yield }", "negative register budget"},
      {"warp_partitions {first=[0, 1], warps=[1, 3], alone=[0, 1]} { yield } { yield }", NULL},
      {"warp_partitions {first=[0, 1], warps=[1, 3], alone=[1]} { yield } { yield }",
       "first, warps, regs and alone need a number for each of 2 partitions"},
      {"warp_partitions {first=[0], warps=[4], alone=[2]} { yield }",
       "alone of partition 0 is neither 0 nor 1"},
      {"warp_partitions {first=[], warps=[]}", "has no partition"},
      {"warp_partitions {first=[0], warps=[4]} { yield %x }", "yields nothing"},
      {"if %tb { warp_partitions {first=[0], warps=[4]} { yield }  yield } { yield }",
       "needs all threads of the block"},
  };
  CHECK_CASES("laid", more, cases);
}

// Warps that only partitions may use.
static void test_extra_warps(void **state) {
  (void)state;
#define EXTRA(n, body) \
  "module stage=laid warps=4 stages=2 lanes=32 extra=" n "\nkernel @k() {\n " body "\n return\n}\n"
  check_module(EXTRA("4", "warp_partitions {first=[0, 4], warps=[4, 4]} { yield } { yield }"), NULL);
  check_module(EXTRA("4", "warp_partitions {first=[0, 4], warps=[4, 5]} { yield } { yield }"),
               "partition 1 is not within the 8 warps");
  check_module(EXTRA("4", "warp_partitions {first=[0, 8], warps=[4, 1]} { yield } { yield }"),
               "partition 1 is not within the 8 warps");
  check_module(EXTRA("16", ""), NULL);
  check_module(EXTRA("17", ""), "extra=17; 0 to 16 are possible");
  // a tile is the program's warps': the layout does not know the others
  check_module(EXTRA("4", "%u = const {value=1} : tile<32xi32, reg() lane(1 2 4 8 16) warp(0 0)>"), NULL);
  check_module(EXTRA("4", "%u = const {value=1} : tile<32xi32, reg() lane(1 2 4 8 16) warp(0 0 0)>"),
               "the layout is not for 32 lanes and 4 warps");
#undef EXTRA
}

static void test_buffer_layouts(void **state) {
  (void)state;
  static const Case laid[] = {
      {"%m = mem_alloc : memdesc<4x4xf32, shared, reg(2 1 4 8) lane() warp()>", NULL},
      {"%m = mem_alloc : memdesc<3*4x4xf32, shared, reg(2 1 4 8) lane() warp()>  %v = mem_view %m, %i : memdesc<4x4xf32, shared, reg(2 1 4 8) lane() warp()>",
       NULL},
      {"%m = mem_alloc : memdesc<3*4x4xf32, shared, reg(2 1 4 8) lane() warp()>  %v = mem_view %m, %i : memdesc<4x4xf32, shared, reg(1 2 4 8) lane() warp()>",
       "changes the layout of the buffer"},
      {"%m = mem_alloc : memdesc<3*4x4xf32, shared, reg(2 1 4 8) lane() warp()>  %v = mem_view %m, %i : memdesc<4x4xf32, shared>",
       "changes the layout of the buffer"},
      {"%m = mem_alloc : memdesc<4x4xf32, shared, reg(2 1 4) lane() warp()>",
       "not of the offsets of a buffer"},
      {"%m = mem_alloc : memdesc<4x4xf32, shared, reg(2 1 4) lane(8) warp()>",
       "not of the offsets of a buffer"},
      {"%m = mem_alloc : memdesc<4x4xf32, shared, reg(2 1 4 16) lane() warp()>",
       "names an element that the tile does not have"},
      {"%m = mem_alloc : memdesc<4x4xf32, shared, reg(2 1 4 7) lane() warp()>", "leaves out elements"},
  };
  CHECK_CASES("laid", "", laid);
  static const Case tile[] = {
      {"%m = mem_alloc : memdesc<4x4xf32, shared, reg(2 1 4 8) lane() warp()>", "a type has a layout"},
  };
  CHECK_CASES("tile", "", tile);
  static const Case lowered[] = {
      {"%m = mem_alloc : memdesc<4x4xf32, shared, reg(2 1 4 8) lane() warp()>", NULL},
      {"%u = const {value=1} : tile<32xi32, reg() lane(1 2 4 8 16) warp(0 0)>", "a type has a layout"},
  };
  CHECK_CASES("lowered", "", lowered);
}

// Products in flight, laid out.
static void test_async_products(void **state) {
  (void)state;
  static const char values[] = " %ta = splat %x : tile<64x16xf32>\n %tc = splat %x : tile<64x32xf32>\n"
                               " %tw = splat %x : tile<32x64xf32>\n %ti = splat %i : tile<64x32xi32>\n"
                               " %a = mem_alloc : memdesc<64x16xf32, shared>\n"
                               " %at = mem_alloc : memdesc<16x64xf32, shared>\n"
                               " %b = mem_alloc : memdesc<16x32xf32, shared>\n"
                               " %bt = mem_alloc : memdesc<32x16xf32, shared>\n"
                               " %b3 = mem_alloc : memdesc<1x16x32xf32, shared>\n"
                               " %ta3 = splat %x : tile<1x64x16xf32>\n";
  static const Case cases[] = {
      {"%r = dot_async %ta, %b, %tc : tile<64x32xf32>", NULL},
      {"%r = dot_async %ta, %b, _ : tile<64x32xf32>", NULL},
      {"%r = dot_async %a, %b, %tc : tile<64x32xf32>", NULL},
      {"%r = dot_async %at, %b, %tc {a_trans=true} : tile<64x32xf32>", NULL},
      {"%r = dot_async %at, %bt, %tc {a_trans=true, b_trans=true} : tile<64x32xf32>", NULL},
      {"%r = dot_async %ta, %bt, %tc {b_trans=true} : tile<64x32xf32>", NULL},
      {"%r = dot_async %x, %b, %tc : tile<64x32xf32>", "a is neither a tile nor shared memory"},
      {"%r = dot_async %ta, %ta, %tc : tile<64x32xf32>", "must be a memdesc"},
      {"%r = dot_async %ta, %b3, %tc : tile<64x32xf32>", "the operands are not matrices"},
      {"%r = dot_async %ta3, %b, %tc : tile<64x32xf32>", "the operands are not matrices"},
      {"%r = dot_async %ta, %b, %tc {a_trans=true} : tile<64x32xf32>", "a tile is never transposed"},
      {"%r = dot_async %at, %b, %tc : tile<64x32xf32>", "the shapes do not fit"},
      {"%r = dot_async %a, %b, %tc {a_trans=true} : tile<64x32xf32>", "the shapes do not fit"},
      {"%r = dot_async %a, %bt, %tc : tile<64x32xf32>", "the shapes do not fit"},
      {"%r = dot_async %a, %b, %tc {b_trans=true} : tile<64x32xf32>", "the shapes do not fit"},
      {"%r = dot_async %a, %b, _ : tile<32x64xf32>", "the shapes do not fit"},
      {"%r = dot_async %a, %b, %tw : tile<64x32xf32>", "c is not of the result's type"},
      {"%r = dot_async %a, %b, %ti : tile<64x32xf32>", "c is not of the result's type"},
      {"%r = dot_wait %tc {pending=0} : tile<64x32xf32>", NULL},
      {"%r, %s = dot_wait %tc, %ti {pending=2} : tile<64x32xf32>, tile<64x32xi32>", NULL},
      {"dot_wait {pending=0}", NULL},
      {"%r = dot_wait %tc, %ti {pending=0} : tile<64x32xf32>",
       "gives another number of values than it takes"},
      {"%r = dot_wait %tc {pending=0} : tile<64x32xi32>", "changes a type"},
      {"%r, %s = dot_wait %tc, %ti {pending=0} : tile<64x32xi32>, tile<64x32xf32>", "changes a type"},
      {"%r = dot_wait %tc {pending=-1} : tile<64x32xf32>", "pending is negative"},
      {"if %tb { %r = dot_async %a, %b, _ : tile<64x32xf32>  yield } { yield }",
       "works on tiles, but stands under the thread-level condition"},
  };
  CHECK_CASES("laid", values, cases);
  static const Case lowered[] = {{"%r = dot_wait %tx {pending=0} : tile<16xf32>", "stage"}};
  CHECK_CASES("lowered", tiles, lowered);
}

// And on registers. wgmma m64n8k16: 4 registers of a or its address, b's address, 4 of c, 4 results.
#define F4 "thread f32, thread f32, thread f32, thread f32"
#define I4 "thread i32, thread i32, thread i32, thread i32"
#define P(which, ...) "{wgmma=" which ", product=[" #__VA_ARGS__ "]} : "
static void test_wgmma(void **state) {
  (void)state;
  static const char values[] = " %m = mem_alloc : memdesc<1024xf16, shared>\n"
                               " %s = mem_ptr %m : thread ptr<f16, shared>\n";
  static const Case cases[] = {
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 8, 16, 1, 1) F4, NULL},
      {"%a, %b, %e, %f = wgmma %t, %t, %t, %t, %s " P("f16_f16", 64, 8, 16, 1, 1) F4, NULL},
      {"%a, %b, %e, %f = wgmma %s, %s, %tf, %tf, %tf, %tf " P("f16_f16", 64, 8, 16, 1, 1) F4, NULL},
      {"%a, %b, %e, %f = wgmma %t, %t, %t, %t, %s, %tf, %tf, %tf, %tf " P("f16_f16", 64, 8, 16, 1, 1) F4,
       NULL},
      {"%a, %b, %e, %f = wgmma %s, %s, %t, %t, %t, %t " P("s8_s8", 64, 8, 32, 1, 1) I4, NULL},
      {"%a, %b, %e, %f = wgmma %s " P("f16_f16", 64, 8, 16, 1, 1) F4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s {wgmma=f16_f16} : " F4, "product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 8, 16, 1) F4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 48, 8, 16, 1, 1) F4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 32, 8, 16, 1, 1) F4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 4, 16, 1, 1) F4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 512, 16, 1, 1) F4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 8, 8, 1, 1) F4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("s8_s8", 64, 8, 16, 1, 1) I4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 8, 16, 0, 1) F4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 8, 16, 2, 1) F4, "there is no such product"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 128, 8, 16, 2, 1) F4,
       "the groups are not the warps of the block"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 16, 16, 1, 2) F4,
       "the groups are not the warps of the block"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 16, 16, 1, 1) F4,
       "the registers are not those of the product"},
      {"%a, %b, %e, %f = wgmma %t, %t, %s " P("f16_f16", 64, 8, 16, 1, 1) F4,
       "the registers are not those of the product"},
      {"%a, %b, %e, %f = wgmma %t, %t, %t, %t, %s " P("f16_f16", 64, 8, 32, 1, 1) F4,
       "the registers are not those of the product"},
      {"%a, %b, %e, %f = wgmma %s, %s, %tf, %tf " P("f16_f16", 64, 8, 16, 1, 1) F4,
       "the registers are not those of the product"},
      {"%a, %b, %e = wgmma %s, %s " P("f16_f16", 64, 8, 16, 1, 1) "thread f32, thread f32, thread f32",
       "the registers are not those of the product"},
      {"%a, %b, %e, %f = wgmma %pt, %s " P("f16_f16", 64, 8, 16, 1, 1) F4,
       "an operand is not of the product's type"},
      {"%a, %b, %e, %f = wgmma %s, %pt " P("f16_f16", 64, 8, 16, 1, 1) F4,
       "an operand is not of the product's type"},
      {"%a, %b, %e, %f = wgmma %t, %t, %t, %t, %t " P("f16_f16", 64, 8, 16, 1, 1) F4,
       "an operand is not of the product's type"},
      {"%a, %b, %e, %f = wgmma %tf, %tf, %tf, %tf, %s " P("f16_f16", 64, 8, 16, 1, 1) F4,
       "an operand is not of the product's type"},
      {"%a, %b, %e, %f = wgmma %s, %s, %tf, %tf, %t, %tf " P("f16_f16", 64, 8, 16, 1, 1) F4,
       "an operand is not of the product's type"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("f16_f16", 64, 8, 16, 1, 1) I4,
       "a result is not of the product's type"},
      {"%a, %b, %e, %f = wgmma %s, %s " P("s8_s8", 64, 8, 32, 1, 1) F4,
       "a result is not of the product's type"},
      {"%a, %b = wgmma_wait %tf, %t {pending=1} : thread f32, thread i32", NULL},
      {"%a = wgmma_wait %tf, %t {pending=1} : thread f32", "gives another number of values than it takes"},
      {"%a, %b = wgmma_wait %tf, %t {pending=1} : thread f32, thread f32", "changes a type"},
      {"wgmma_wait {pending=-1}", "pending is negative"},
  };
  CHECK_CASES("lowered", values, cases);
}
#undef F4
#undef I4
#undef P

static void test_strips(void **state) {
  (void)state;
  static const char values[] =
      " %p16 = bitcast %p : ptr<f16>\n %d = make_desc %p16, %i, %i, %l, %l : desc<16x64xf16>\n"
      " %d1 = make_desc %p16, %i, %l : desc<64xf16>\n %df = make_desc %p, %i, %i, %l, %l : desc<16x64xf32>\n"
      " %d3 = make_desc %p16, %i, %i, %i, %l, %l, %l : desc<1x16x64xf16>\n"
      " %m = mem_alloc : memdesc<8*16x64xf16, shared, reg(1 2 4 8 16 32 72 144 288 512) lane() warp()>\n"
      " %one = mem_alloc : memdesc<4*16x64xf16, shared, reg(1 2 4 8 16 32 72 144 288 512) lane() warp()>\n"
      " %plain = mem_alloc : memdesc<8*16x64xf16, shared>\n"
      " %few = mem_alloc : memdesc<2*16x64xf16, shared, reg(1 2 4 8 16 32 72 144 288 512) lane() warp()>\n"
      " %wide = mem_alloc : memdesc<8*16x32xf16, shared, reg(1 2 4 8 16 40 80 128 256) lane() warp()>\n"
      " %mf = mem_alloc : memdesc<8*16x64xf32, shared, reg(1 2 4 8 16 36 72 144 256 512) lane() warp()>\n"
      " %mw = mem_alloc : memdesc<8*16x32xf32, shared, reg(1 2 4 8 16 36 72 144 256) lane() warp()>\n"
      " %pb = bitcast %p : ptr<i8>\n %db = make_desc %pb, %i, %i, %l, %l : desc<16x128xi8>\n"
      " %mb = mem_alloc : memdesc<8*16x128xi8, shared, reg(1 2 4 8 16 32 64 144 288 576 1024) lane() warp()>\n";
#define T16 "%t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t"
#define NOT_OF "the tensor is not of 16-bit or 32-bit elements"
#define NOT_SWIZZLED "the buffer is not one or two swizzled stages of 16 rows of 128 bytes for each warp"
  static const Case cases[] = {
      {"strip_store %d, %m, %t, %t, " T16 " {strip=1}  strips_end", NULL},
      {"strip_store %d3, %m, %t, %t, %t, " T16 " {strip=0}", NULL},
      {"strip_store %d, %one, %t, %t, " T16 " {strip=0}", NULL},
      {"strip_store %d, %plain, %t, %t, " T16 " {strip=0}", NOT_SWIZZLED},
      {"strip_store %d, %one, %t, %t, " T16 " {strip=1}",
       "one buffer for each warp takes tiles of one strip only"},
      {"strip_store %d, %few, %t, %t, " T16 " {strip=0}", NOT_SWIZZLED},
      {"strip_store %d, %wide, %t, %t, " T16 " {strip=0}", NOT_SWIZZLED},
      {"strip_store %d, %m, %t, %t, " T16 " {strip=0, rmw=fadd}", NULL},
      {"strip_store %df, %mw, %t, %t, " T16 " {strip=3, rmw=fadd}", NULL},
      {"strip_store %df, %mw, %t, %t, " T16 " {strip=0}", NULL},
      {"strip_store %d1, %m, %t, " T16 " {strip=0}", NOT_OF},
      {"strip_store %df, %m, %t, %t, " T16 " {strip=0}", NOT_OF},
      {"strip_store %d, %mw, %t, %t, " T16 " {strip=0}", NOT_OF},
      {"strip_store %db, %mb, %t, %t, " T16 " {strip=0}", NOT_OF},
      {"strip_store %df, %mf, %t, %t, " T16 " {strip=0, rmw=fadd}", NOT_SWIZZLED},
      {"strip_store %d, %m, %t, " T16 " {strip=0}", "a strip is 16 registers"},
      {"strip_store %d3, %m, %t, %t, " T16 " {strip=0}", "a strip is 16 registers"},
      {"strip_store %d, %m, %i, %t, " T16 " {strip=0}", "is done by a warp and takes thread-level values"},
      {"strip_store %d, %m, %t, %tf, " T16 " {strip=0}", "an index or a register is not a thread's i32"},
      {"strip_store %d, %m, %t, %t, %tf, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t {strip=0}",
       "an index or a register is not a thread's i32"},
  };
  CHECK_CASES("lowered", values, cases);
#undef T16
#undef NOT_SWIZZLED
#undef NOT_OF
}

static void test_async(void **state) {
  (void)state;
  static const char async_values[] = " %bar = mbarrier_alloc {count=1} : mbarrier<2>\n"
                                     " %bar2 = mbarrier_alloc {count=1} : mbarrier\n"
                                     " %two = mem_alloc : memdesc<16xf32, shared>\n";
  char more[2048];
  snprintf(more, sizeof more, "%s%s", tiles, async_values);
  static const Case cases[] = {
      {"%k = copy_async %one, %sp, _, _ : token  %r = mem_load %one : tile<16xf32>",
       "reads a buffer before the wait"},
      {"%k = copy_async %one, %sp, _, _ : token  %w = async_wait %k : token  %r = mem_load %one : tile<16xf32>",
       NULL},
      {"%k = copy_async %one, %sp, _, _ : token  %w = async_wait : token  %r = mem_load %one : tile<16xf32>",
       NULL},
      {"%k = copy_async %one, %sp, _, _ : token  %w = async_wait {pending=1} : token  %r = mem_load %one : tile<16xf32>",
       "reads a buffer before the wait"},
      {"%k = copy_async %one, %sp, _, _ : token  %j = copy_async %two, %sp, _, _ : token  %w = async_wait {pending=1} : token  %r = mem_load %one : tile<16xf32>",
       NULL},
      {"%k = copy_async %one, %sp, _, _ : token  %j = copy_async %two, %sp, _, _ : token  %w = async_wait %j : token  %r = mem_load %one : tile<16xf32>",
       "reads a buffer before the wait"},
      {"%k = copy_async %one, %sp, _, _ : token  %r = mem_load %two : tile<16xf32>", NULL},
      {"%v = mem_view %buf, %i : memdesc<16xf32, shared>  %k = copy_async %v, %sp, _, _ : token  %u = mem_view %buf, %i : memdesc<16xf32, shared>  %r = mem_load %u : tile<16xf32>",
       "reads a buffer before the wait"},
      {"%z = const {value=1} : i32  %v = mem_view %buf, %i : memdesc<16xf32, shared>  %k = copy_async %v, %sp, _, _ : token  %u = mem_view %buf, %z : memdesc<16xf32, shared>  %r = mem_load %u : tile<16xf32>",
       NULL},
      {"%k = copy_async %one, %sp, _, _ : token  %r = mem_get %one, %i : f32",
       "reads a buffer before the wait"},
      {"%k = copy_async %one, %sp, _, _ : token  %r = desc_store_async %d, %one, %i : token",
       "reads a buffer before the wait"},
      {"desc_load_async %d, %one, %bar, %i, %i  %r = mem_load %one : tile<16xf32>",
       "reads a buffer before the wait"},
      {"%k = desc_store_async %d, %one, %i {rmw=fadd} : token", NULL},
      {"%k = desc_store_async %d, %one, %i {rmw=add} : token", "add does not work on f32"},
      {"%k = desc_store_async %d, %one, %i : token  %w = async_wait %k {reads=true} : token", NULL},
      {"%v = mem_view %buf, %i : memdesc<16xf32, shared, reg(1 2 4 8) lane() warp()>", "changes the layout"},
      {"desc_load_async %d, %one, %bar, %i, %i  %w = mbarrier_wait %bar, %i, %i : token  %r = mem_load %one : tile<16xf32>",
       NULL},
      {"desc_load_async %d, %one, %bar, %i, %i  %w = mbarrier_wait %bar2, %i, %i : token  %r = mem_load %one : tile<16xf32>",
       "reads a buffer before the wait"},
      {"desc_load_async %d, %one, %bar, %i, %i  %w = async_wait : token  %r = mem_load %one : tile<16xf32>",
       "reads a buffer before the wait"},
      {"desc_load_async %d, %one, %bar, %i, %i  if %c { %w = mbarrier_wait %bar, %i, %i : token  yield } { yield }  %r = mem_load %one : tile<16xf32>",
       NULL},
      {"desc_load_async %d, %one, %bar, %i, %i  for %i, %i, %i { (%j: i32) %r = mem_load %one : tile<16xf32>  yield }",
       "reads a buffer before the wait"},
      {"warp_partitions {first=[0, 2], warps=[2, 2]} { desc_load_async %d, %one, %bar, %i, %i  yield } { %r = mem_load %one : tile<16xf32>  yield }",
       NULL},
      {"%k = copy_async %buf, %sp, _, _ : token", "use mem_view"},
      {"%k = copy_async %one, %p, _, _ : token", "do not fit the buffer"},
      {"%e = splat %pi : tile<16xptr<i32>>  %k = copy_async %one, %e, _, _ : token", "do not fit the buffer"},
      {"%k = copy_async %one, %sp, %tc, %ti : token", "other does not fit"},
      {"desc_load_async %d, %buf, %bar, %i, %i", "use mem_view"},
      {"desc_load_async %d, %one, %bar, %i", "has 0 indices, must have 1"},
      {"%w = async_wait {pending=-1} : token", "pending is negative"},
  };
  CHECK_CASES("laid", more, cases);
}

static void test_placed(void **state) {
  (void)state;
  static const Case cases[] = {
      {"%r = splat %x : tile<128xf32>", "vectors of at most 64"},
      {"%r = splat %x : tile<8x8xf32>", "vectors of at most 64"},
      {"%r = splat %x : tile<64xf32>", NULL},
      {"%r = to_thread %x : thread f32", "no thread level"},
      {"%v = splat %x : tile<8xf32>  %r = vec_get %v, %i : i32", "elements must be equal"},
      {"%v = splat %x : tile<8xf32>  %r = vec_set %v, %i, %x : tile<16xf32>", "must be equal"},
      {"%v = splat %x : tile<8xf32>  store_vec %pi, %v, _", "but the pointer"},
      {"%v = splat %c : tile<8xi1>  %r = load_vec %p, %v, _ : tile<16xf32>", "shapes must be equal"},
      {"%v = splat %i : tile<16xi32>  %r = load_vec %p, %v, _ : tile<16xf32>", "not of i1"},
      {"%r = ramp %i, %l : tile<8xi32>", "must be equal"},
      {"%a = mem_alloc {offset=0} : memdesc<8x16xf32, scratch>  %b = mem_alloc {offset=512} : memdesc<16x4xf32, scratch>  %c4 = mem_alloc {offset=768} : memdesc<8x4xf32, scratch>  dot_mem %c4, %a, %b",
       NULL},
      {"%a = mem_alloc {offset=0} : memdesc<8x16xf32, scratch>  dot_mem %a, %a, %a", "does not give"},
      {"%a = mem_alloc {offset=0} : memdesc<8x12xf32, scratch>  %v = mem_get %a, %i, %i : tile<8xf32>  mem_set %a, %v, %i, %i",
       NULL},
      {"%a = mem_alloc {offset=0} : memdesc<8x12xf32, scratch>  %v = mem_gather %a, %i : tile<8xf32>",
       "has 1 indices, must have 2"},
      {"%a = mem_alloc {offset=0} : memdesc<8x12xf32, scratch>  %w = ramp %i, %i : tile<16xi32>  %v = mem_gather %a, %i, %w : tile<8xf32>",
       "index 1 is tile<16xi32>"},
      {"warp_for { (%w: i32) yield }", "needs the attribute count"},
      {"warp_for {count=4} { yield }", "takes one i32"},
      {"warp_for {count=0} { (%w: i32) yield }", "count is at least 1"},
  };
  static const char params[] =
      "kernel @k(%p: ptr<f32>, %pi: ptr<i32>, %i: i32, %l: i64, %x: f32, %c: i1) {\n";
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) check_case("placed", params, "", &cases[i]);
}

static void test_functions(void **state) {
  (void)state;
#define MODULE "module stage=tile warps=4 stages=2 lanes=32\n"
  static const Case cases[] = {
      {MODULE, NULL},
      {"module stage=tile warps=4 stages=2 lanes=16\n", "a warp has 32 or 64"},
      {"module stage=tile warps=65 stages=2 lanes=32\n", "1 to 64 are possible"},
      {MODULE "func @f() {\n}\n", "does not end in a terminator"},
      {MODULE "func @f() -> i32 {\n return\n}\n", "not the results of @f"},
      {MODULE "func @f(%a: f32) -> i32 {\n return %a\n}\n", "not the results of @f"},
      {MODULE "func @f(%a: f32) {\n yield\n}\n", "must end in return"},
      {MODULE "kernel @f() -> i32 {\n %a = rank : i32\n return %a\n}\n", "a kernel has no results"},
      {MODULE "kernel @f(%a: thread i32) {\n return\n}\n", "parameter 0 of a kernel is thread i32"},
      {MODULE "kernel @f(%a: tile<16xf32>) {\n return\n}\n", "parameter 0 of a kernel is tile<16xf32>"},
      {MODULE "kernel @f(%a: desc<16xf32>) {\n return\n}\n", NULL},
      {MODULE "kernel @f() {\n call {callee=@g}\n return\n}\n", "@g is no function of the module"},
      {MODULE "kernel @g() {\n return\n}\nkernel @f() {\n call {callee=@g}\n return\n}\n",
       "is a kernel and cannot be called"},
      {MODULE "func @g(%a: i32) {\n return\n}\nkernel @f() {\n call {callee=@g}\n return\n}\n",
       "0 arguments, but 1 parameters"},
      {MODULE "func @g() {\n return\n}\nkernel @f() {\n %a = call {callee=@g} : i32\n return\n}\n",
       "its results are not those of @g"},
      {MODULE "func @f() {\n call {callee=@f}\n return\n}\n", "@f calls itself"},
      {MODULE
       "func @f() {\n call {callee=@g}\n return\n}\nfunc @g() {\n call {callee=@h}\n return\n}\n"
       "func @h() {\n %c = const {value=1} : i1\n if %c { yield } { call {callee=@g}  yield }\n return\n}\n",
       "@g calls itself"},
      {MODULE "func @f() {\n call {callee=@g}\n call {callee=@g}\n return\n}\nfunc @g() {\n return\n}\n",
       NULL},
      {"module stage=lowered warps=4 stages=2 lanes=32\nfunc @g() {\n return\n}\nkernel @f() {\n call {callee=@g}\n return\n}\n",
       "call: is not legal in the stage lowered"},
  };
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) check_module(cases[i].text, cases[i].want);
}

// What only a program can get wrong: links, lists, attributes out of range.
typedef struct Parts {
  IrModule *m;
  IrFunc *f;
  IrOp *div, *one, *cmp, *choice;
} Parts;

static void break_link(Parts *p) { p->one->prev = NULL; }
static void break_parent(Parts *p) { p->one->parent = p->choice->regions[0]; }
static void break_user(Parts *p) { p->div->operands[0].user = p->one; }
static void break_uses(Parts *p) { p->f->body->args.data[0]->uses = NULL; }
static void set_bits(Parts *p) { ir_set_attr_i(p->one, ATTR_value, 2); }
static void set_bool(Parts *p) { ir_set_attr_i(p->div, ATTR_exact, 2); }
static void set_enum(Parts *p) { ir_set_attr_i(p->cmp, ATTR_fcmp, 77); }
static void unsort(Parts *p) {
  ir_set_attr_i(p->cmp, ATTR_axis, 0);
  const IrAttr first = p->cmp->attrs[0];
  p->cmp->attrs[0] = p->cmp->attrs[1];
  p->cmp->attrs[1] = first;
}
static void drop_param(Parts *p) { p->f->params.len--; }
static void drop_type(Parts *p) { p->div->results[0].type = NULL; }
static void break_owner(Parts *p) { p->choice->regions[1]->owner = p->div; }
static void break_def(Parts *p) { p->div->results[0].def = p->one; }
static void set_divisible(Parts *p) { p->f->params.data[0].divisible = 0; }
static void break_arg(Parts *p) { p->f->body->args.data[1]->index = 0; }
static void odd_attr(Parts *p) { ir_set_attr_i(p->div, (IrAttrName)1000, 1); }
static void no_text(Parts *p) { ir_set_attr_s(p->cmp, ATTR_label, NULL); }
static void set_wait(Parts *p) { p->f->wait_class = (IrWaitClass)9; }
static void set_kind(Parts *p) { p->one->kind = (IrOpKind)OP_COUNT; }
static void break_body(Parts *p) { p->f->body->owner = p->one; }
static void same_name(Parts *p) { ir_func_new(p->m, p->f->name, false); }

typedef struct Break {
  void (*breaks)(Parts *p);
  const char *want;
} Break;

static void check_break(const Break *c) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = read_text(&a, &d,
                          MODULE "kernel @k(%x: f32, %c: i1) {\n %u = fdiv %x, %x {exact=true} : f32\n"
                                 " %v = const {value=1} : i1\n %w = fcmp %x, %x {fcmp=olt} : i1\n"
                                 " if %c { yield } { yield }\n return\n}\n");
  assert_int_equal(ir_verify(m, &d), ST_OK);
  IrOp *first = m->funcs->body->first;
  Parts parts = {m, m->funcs, first, first->next, first->next->next, first->next->next->next};
  c->breaks(&parts);
  assert_int_equal(ir_verify(m, &d), ST_INTERNAL);
  bool found = false;
  for (uint32_t j = 0; j < d.list.len; j++) found |= strstr(d.list.data[j].text, c->want) != NULL;
  if (!found) fail_msg("wanted: %s\n%s", c->want, diags_render(&d, &a));
  arena_free(&a);
}

static void test_broken_structure(void **state) {
  (void)state;
  static const Break cases[] = {
      {break_link, "list of ops"},
      {break_parent, "list of ops"},
      {break_user, "list of uses"},
      {break_uses, "list of uses"},
      {set_bits, "bits above its type's width"},
      {set_bool, "neither true nor false"},
      {set_enum, "has no such value"},
      {unsort, "not sorted"},
      {drop_param, "has 1 parameters, but its body 2"},
      {drop_type, "has no type"},
      {break_owner, "does not know its op"},
      {break_def, "does not know its op"},
      {set_divisible, "divisible is at least 1"},
      {break_arg, "does not know its block"},
      {odd_attr, "an attribute of no known name"},
      {no_text, "has no text"},
      {set_wait, "no known wait class"},
      {set_kind, "no known kind"},
      {break_body, "not put together"},
      {same_name, "the name is taken"},
  };
  for (size_t i = 0; i < DT_COUNTOF(cases); i++) check_break(&cases[i]);
}

static void test_error_limit_and_memory(void **state) {
  (void)state;
  Arena a, scratch;
  TEST_ARENA(a);
  TEST_ARENA(scratch);
  Diags d;
  diags_init(&d, &scratch);
  IrModule *m = ir_module_new(&a, ir_ctx_new(&a), NULL);
  IrFunc *f = ir_func_new(m, str_cstr(ir_strings(m->ctx), "k"), true);
  IrValue *x = ir_func_param(f, ir_type_scalar(m->ctx, IR_f32, LEVEL_program), NULL);
  IrBuilder b = ir_builder_at_end(f->body);
  for (int i = 0; i < 1000; i++) ir_unary(&b, OP_abs_s, x);
  ir_return(&b, 0, NULL);
  assert_int_equal(ir_verify(m, &d), ST_INTERNAL);
  assert_int_equal(d.list.len, 20);
  assert_true(d.errors < 100);
  // a module that is fine leaves nothing behind
  while (f->body->first->kind == OP_abs_s) ir_erase(f->body->first);
  const size_t used = scratch.used;
  const char *cur = scratch.cur;
  assert_int_equal(ir_verify(m, &d), ST_OK);
  assert_true(scratch.used == used && scratch.cur == cur);
  arena_free(&scratch);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_operands_and_results),
      cmocka_unit_test(test_attributes),
      cmocka_unit_test(test_elementwise),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_devices_and_lanes),
      cmocka_unit_test(test_levels),
      cmocka_unit_test(test_thread_control),
      cmocka_unit_test(test_dominance),
      cmocka_unit_test(test_regions),
      cmocka_unit_test(test_partitions),
      cmocka_unit_test(test_extra_warps),
      cmocka_unit_test(test_buffer_layouts),
      cmocka_unit_test(test_async_products),
      cmocka_unit_test(test_wgmma),
      cmocka_unit_test(test_strips),
      cmocka_unit_test(test_async),
      cmocka_unit_test(test_placed),
      cmocka_unit_test(test_functions),
      cmocka_unit_test(test_broken_structure),
      cmocka_unit_test(test_error_limit_and_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
