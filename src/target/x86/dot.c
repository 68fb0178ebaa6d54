// dot: c += a b on row-major buffers, as a function of its own for each shape and type.
//
//        N                 One panel of b (K x width) after the other; below it all rows of a in blocks.
//      +-----+-----+       A block's accumulators stay in registers for the whole of K:
//    K |panel|     |         rows x vectors   6 x 2 of 16 registers (AVX2), 14 x 2 of 32 (AVX-512)
//      +-----+-----+       M is cut into blocks of nearly equal height, at most so many rows, so that no
//   K  +-----+-----+       block is left with too few sums to keep the multipliers busy.
// M [a]|block|     |
//   [ ]|block|     |       The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix
//      +-----+-----+       Multiplication" (2008), for tiles that lie in the caches already.
//
// How elements are multiplied (Kind):
//   same    a and b as they are, in c's type: one multiply-add an element
//   widen   small floats become f32 (small integers c's type) while they are packed
//   pairs   two neighbours of K at a time: bytes as i16 pairs summed to i32, bf16 pairs summed to f32
// Packing goes to scratch behind the function's buffers: first a (where it changes), then one panel of b.
#include "target/x86/x86.h"

#include <stdio.h>

typedef enum Kind { KIND_SAME, KIND_WIDEN, KIND_PAIR_BYTES, KIND_PAIR_BF16 } Kind;

typedef struct Plan {
  Kind kind;
  int64_t m, n, k;
  IrDtype ct, at, bt;      // of the buffers
  T acc;                   // element of the accumulators
  T in;                    // element that the inner loop reads
  uint32_t lanes, vectors; // of accumulators: a vector's, a row's
  uint32_t rows;           // most in a block
  bool pack_a, pack_b;
  int64_t a_bytes, b_bytes; // of scratch
  int64_t steps;            // turns of the inner loop: k, or pairs
} Plan;

static uint32_t pow2_divisor(int64_t n, uint32_t most) {
  uint32_t v = most;
  while (v > 1 && n % v) v /= 2;
  return v;
}

static Plan make_plan(Lower *l, const IrOp *op) {
  const IrType *c = ir_operand(op, 0)->type, *a = ir_operand(op, 1)->type, *b = ir_operand(op, 2)->type;
  const int r = c->rank; // leading axes are batches
  if (r < 2 || a->rank != r || b->rank != r || a->shape[r - 1] != b->shape[r - 2] ||
      a->shape[r - 2] != c->shape[r - 2] || b->shape[r - 1] != c->shape[r - 1])
    lower_fail(l, op, ST_INTERNAL, "the shapes do not fit");
  Plan p = {.m = c->shape[r - 2],
            .n = c->shape[r - 1],
            .k = a->shape[r - 1],
            .ct = c->dtype,
            .at = a->dtype,
            .bt = b->dtype};
  const bool ints = ir_dtypes[p.ct].cls == IR_INT;
  if (ints != (ir_dtypes[p.at].cls == IR_INT) || ints != (ir_dtypes[p.bt].cls == IR_INT))
    lower_fail(l, op, ST_UNSUPPORTED, "integers and floats mixed");
  if (!ints && (p.at == IR_f64 || p.bt == IR_f64) && p.ct != IR_f64)
    lower_fail(l, op, ST_UNSUPPORTED, "f64 products in a narrower accumulator");
  p.acc = ints || p.ct == IR_f64 ? lower_dtype(l, p.ct) : l->f32;
  p.in = p.acc;
  p.steps = p.k;
  if (p.ct == IR_i32 && p.at == IR_i8 && p.bt == IR_i8 && p.k % 2 == 0) {
    p.kind = KIND_PAIR_BYTES;
    p.in = l->i32; // two i16
    p.steps = p.k / 2;
    p.pack_a = p.pack_b = true;
  } else if (p.acc == l->f32 && p.at == IR_bf16 && p.bt == IR_bf16 && p.k % 2 == 0 && p.n % 4 == 0 &&
             (l->facts->caps & TARGET_CAP_BF16_DOT)) {
    p.kind = KIND_PAIR_BF16;
    p.in = l->i32; // two bf16
    p.steps = p.k / 2;
    p.pack_b = true;
  } else {
    p.pack_a = lower_dtype(l, p.at) != p.acc;
    p.pack_b = lower_dtype(l, p.bt) != p.acc;
    p.kind = p.pack_a || p.pack_b ? KIND_WIDEN : KIND_SAME;
  }
  const uint32_t elem = (uint32_t)LLVMABISizeOfType(l->layout, p.acc);
  p.lanes = pow2_divisor(p.n, l->facts->vector_bits / 8 / elem);
  p.vectors = p.n / p.lanes % 2 ? 1 : 2;
  const uint32_t spare = l->facts->vector_regs - p.vectors - 1; // for a panel's row and one element of a
  p.rows = spare / p.vectors;
  if (l->facts->vector_regs > 16 && p.vectors == 2) p.rows = 14;
  // Rows of b far apart fall into few sets of the first cache.
  const int64_t row_bytes = p.n * elem;
  if (p.kind == KIND_SAME && row_bytes >= 2048 && p.m > (int64_t)p.rows) p.pack_b = true;
  if (p.pack_a) p.a_bytes = (int64_t)bits_round_up((uint64_t)(p.m * p.steps * elem), 64);
  if (p.pack_b) p.b_bytes = p.steps * p.lanes * p.vectors * elem;
  return p;
}

// ---- helpers -----------------------------------------------------------------------------------
typedef struct Emit {
  Lower *l;
  Plan p;
  V c, a, b;       // buffers
  V a_in, a_bytes; // what the inner loop reads: address of a
} Emit;

static V k64(const Lower *l, int64_t v) { return LLVMConstInt(l->i64, (uint64_t)v, true); }
static V at(Lower *l, V p, V bytes) { return LLVMBuildInBoundsGEP2(l->b, l->i8, p, &bytes, 1, ""); }
static V times(Lower *l, V i, int64_t n) { return LLVMBuildNSWMul(l->b, i, k64(l, n), ""); }
static V load(Lower *l, T t, V p, uint32_t align) {
  const V x = LLVMBuildLoad2(l->b, t, p, "");
  lower_align(x, align);
  return x;
}
static void store(Lower *l, V x, V p, uint32_t align) { lower_align(LLVMBuildStore(l->b, x, p), align); }
static V interleave(Lower *l, V x, V y) {
  int idx[LOWER_MAX_LANES];
  const uint32_t n = lower_lanes(x);
  for (uint32_t i = 0; i < n; i++) {
    idx[2 * i] = (int)i;
    idx[2 * i + 1] = (int)(n + i);
  }
  return lower_shuffle(l, x, y, idx, 2 * n);
}
// An element of a or b in the accumulators' type.
static V widen(Lower *l, V x, IrDtype d, T acc) {
  const T t = lower_shape(acc, x);
  if (ir_dtypes[d].cls == IR_INT)
    return d == IR_i1 ? LLVMBuildZExt(l->b, x, t, "") : LLVMBuildIntCast2(l->b, x, t, true, "");
  const V y = lower_widen(l, x, d);
  return acc == l->f64 && lower_elem_type(LLVMTypeOf(y)) == l->f32 ? LLVMBuildFPExt(l->b, y, t, "") : y;
}
static T stored(const Lower *l, IrDtype d) { return d == IR_i1 ? l->i8 : lower_dtype(l, d); }

// ---- packing -----------------------------------------------------------------------------------
// All of a, in order: row by row of K elements, or of K / 2 pairs.
static void pack_a(Emit *e, V to) {
  Lower *l = e->l;
  const Plan *p = &e->p;
  const int64_t total = p->m * p->k;
  const bool pairs = p->kind == KIND_PAIR_BYTES;
  const uint32_t lanes = pow2_divisor(total, l->facts->vector_bits / (pairs ? 16 : 32));
  const T in = lower_vec(stored(l, p->at), lanes == 1 ? 0 : lanes);
  const uint32_t out_bytes = pairs ? 2 : (uint32_t)LLVMABISizeOfType(l->layout, p->acc);
  LowerLoop loop;
  lower_loop_begin(l, &loop, k64(l, total / lanes), 0, NULL);
  const V x =
      load(l, in, at(l, e->a, times(l, loop.i, lanes * ir_dtypes[p->at].bytes)), ir_dtypes[p->at].bytes);
  const V y = pairs ? LLVMBuildSExt(l->b, x, lower_shape(l->i16, x), "") : widen(l, x, p->at, p->acc);
  store(l, y, at(l, to, times(l, loop.i, (int64_t)lanes * out_bytes)), out_bytes);
  lower_loop_end(l, &loop, NULL);
}

// One panel of b from column `col` (bytes from the row's start) on: a row of vectors for each step.
static void pack_panel(Emit *e, V from, V to) {
  Lower *l = e->l;
  const Plan *p = &e->p;
  const uint32_t eb = ir_dtypes[p->bt].bytes, acc_bytes = (uint32_t)LLVMABISizeOfType(l->layout, p->acc);
  const bool pairs = p->kind == KIND_PAIR_BYTES || p->kind == KIND_PAIR_BF16;
  const int64_t row = p->n * eb, out_row = (int64_t)p->lanes * p->vectors * acc_bytes;
  LowerLoop loop;
  lower_loop_begin(l, &loop, k64(l, p->steps), 0, NULL);
  const V src = at(l, from, times(l, loop.i, pairs ? 2 * row : row)),
          dst = at(l, to, times(l, loop.i, out_row));
  for (uint32_t v = 0; v < p->vectors; v++) {
    const T t = lower_vec(stored(l, p->bt), p->lanes);
    const V x = load(l, t, lower_field(l, src, (uint64_t)v * p->lanes * eb), eb);
    V y;
    if (pairs) {
      const V x2 = load(l, t, lower_field(l, src, (uint64_t)row + (uint64_t)v * p->lanes * eb), eb);
      y = p->kind == KIND_PAIR_BYTES ? interleave(l, LLVMBuildSExt(l->b, x, lower_shape(l->i16, x), ""),
                                                  LLVMBuildSExt(l->b, x2, lower_shape(l->i16, x2), ""))
                                     : interleave(l, x, x2);
    } else {
      y = widen(l, x, p->bt, p->acc);
    }
    store(l, y, lower_field(l, dst, (uint64_t)v * p->lanes * acc_bytes), acc_bytes);
  }
  lower_loop_end(l, &loop, NULL);
}

// ---- the inner loop ----------------------------------------------------------------------------
static V multiply_add(Emit *e, V a, V b, V acc) {
  Lower *l = e->l;
  const Plan *p = &e->p;
  const uint32_t bits = p->lanes * 32;
  if (p->kind == KIND_PAIR_BYTES) {
    const V x = LLVMBuildBitCast(l->b, a, lower_vec(l->i16, p->lanes * 2), "");
    const V y = LLVMBuildBitCast(l->b, b, lower_vec(l->i16, p->lanes * 2), "");
    const char *name = bits == 512   ? "llvm.x86.avx512.pmaddw.d.512"
                       : bits == 256 ? "llvm.x86.avx2.pmadd.wd"
                       : bits == 128 ? "llvm.x86.sse2.pmadd.wd"
                                     : NULL;
    if (name) return lower_add(l, acc, lower_intrinsic(l, name, NULL, 0, (V[]){x, y}, 2));
    const T w = LLVMVectorType(l->i32, p->lanes * 2); // fewer lanes than the smallest register
    const V prod = lower_mul(l, LLVMBuildSExt(l->b, x, w, ""), LLVMBuildSExt(l->b, y, w, ""));
    int even[LOWER_MAX_LANES], odd[LOWER_MAX_LANES];
    for (uint32_t i = 0; i < p->lanes; i++) {
      even[i] = (int)(2 * i);
      odd[i] = (int)(2 * i + 1);
    }
    const V sum = lower_add(l, lower_shuffle(l, prod, NULL, even, p->lanes),
                            lower_shuffle(l, prod, NULL, odd, p->lanes));
    return lower_add(l, acc, sum);
  }
  if (p->kind == KIND_PAIR_BF16) {
    const T t = LLVMVectorType(LLVMBFloatTypeInContext(l->cx), p->lanes * 2);
    const char *name = bits == 512   ? "llvm.x86.avx512bf16.dpbf16ps.512"
                       : bits == 256 ? "llvm.x86.avx512bf16.dpbf16ps.256"
                                     : "llvm.x86.avx512bf16.dpbf16ps.128";
    V args[] = {acc, LLVMBuildBitCast(l->b, a, t, ""), LLVMBuildBitCast(l->b, b, t, "")};
    return lower_intrinsic(l, name, NULL, 0, args, 3);
  }
  if (LLVMGetTypeKind(p->acc) == LLVMIntegerTypeKind) return lower_add(l, acc, lower_mul(l, a, b));
  return lower_fma(l, a, b, acc);
}

static uint32_t c_bytes(const Plan *p) { return ir_dtypes[p->ct].bytes; }
static V load_c(Emit *e, V at_row, uint32_t v) {
  Lower *l = e->l;
  const Plan *p = &e->p;
  const V addr = lower_field(l, at_row, (uint64_t)v * p->lanes * c_bytes(p));
  return widen(l, load(l, lower_vec(stored(l, p->ct), p->lanes), addr, c_bytes(p)), p->ct, p->acc);
}
static void store_c(Emit *e, V x, V at_row, uint32_t v) {
  Lower *l = e->l;
  const Plan *p = &e->p;
  if (p->acc == l->f32) x = lower_narrow(l, x, p->ct, ROUND_rtne);
  store(l, x, lower_field(l, at_row, (uint64_t)v * p->lanes * c_bytes(p)), c_bytes(p));
}

// rows x vectors sums at c, from rows of a and a panel of b.
static void block(Emit *e, uint32_t rows, V c, V a, V panel, int64_t b_row) {
  enum { MOST = 64 };
  Lower *l = e->l;
  const Plan *p = &e->p;
  const uint32_t n = rows * p->vectors, in_bytes = (uint32_t)LLVMABISizeOfType(l->layout, p->in);
  const int64_t a_row = p->steps * in_bytes, c_row = p->n * c_bytes(p);
  V acc[MOST];
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t v = 0; v < p->vectors; v++)
      acc[r * p->vectors + v] = load_c(e, lower_field(l, c, (uint64_t)(r * c_row)), v);
  const uint32_t unroll = p->steps % 4 == 0 && n <= 12 ? 4 : p->steps % 2 == 0 ? 2 : 1;
  const LLVMBasicBlockRef pre = lower_here(l), head = lower_new_block(l, "k"),
                          exit = lower_new_block(l, "sums");
  LLVMBuildBr(l->b, head);
  lower_at(l, head);
  V k = LLVMBuildPhi(l->b, l->i64, ""), zero = k64(l, 0);
  LLVMAddIncoming(k, &zero, (LLVMBasicBlockRef *)&pre, 1);
  V phi[MOST];
  for (uint32_t i = 0; i < n; i++) {
    phi[i] = LLVMBuildPhi(l->b, LLVMTypeOf(acc[i]), "");
    LLVMAddIncoming(phi[i], &acc[i], (LLVMBasicBlockRef *)&pre, 1);
    acc[i] = phi[i];
  }
  const V ak = at(l, a, times(l, k, in_bytes)), bk = at(l, panel, times(l, k, b_row));
  for (uint32_t u = 0; u < unroll; u++) {
    V b[4];
    for (uint32_t v = 0; v < p->vectors; v++)
      b[v] = load(l, lower_vec(p->in, p->lanes),
                  lower_field(l, bk, (uint64_t)(u * b_row) + (uint64_t)v * p->lanes * in_bytes), in_bytes);
    for (uint32_t r = 0; r < rows; r++) {
      const V x =
          load(l, p->in, lower_field(l, ak, (uint64_t)(r * a_row) + (uint64_t)u * in_bytes), in_bytes);
      const V xs = lower_splat(l, x, p->lanes);
      for (uint32_t v = 0; v < p->vectors; v++)
        acc[r * p->vectors + v] = multiply_add(e, xs, b[v], acc[r * p->vectors + v]);
    }
  }
  V next = LLVMBuildNUWAdd(l->b, k, k64(l, unroll), "");
  LLVMBuildCondBr(l->b, lower_icmp(l, LLVMIntULT, next, k64(l, p->steps)), head, exit);
  LLVMBasicBlockRef latch = lower_here(l);
  LLVMAddIncoming(k, &next, &latch, 1);
  for (uint32_t i = 0; i < n; i++) LLVMAddIncoming(phi[i], &acc[i], &latch, 1);
  lower_at(l, exit);
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t v = 0; v < p->vectors; v++)
      store_c(e, acc[r * p->vectors + v], lower_field(l, c, (uint64_t)(r * c_row)), v);
}

// `count` blocks of equal height from row `first` on.
static void blocks(Emit *e, int64_t first, int64_t count, uint32_t rows, V c, V panel, int64_t b_row) {
  if (!count) return;
  Lower *l = e->l;
  const Plan *p = &e->p;
  const int64_t a_row = p->steps * (int64_t)LLVMABISizeOfType(l->layout, p->in), c_row = p->n * c_bytes(p);
  LowerLoop loop;
  lower_loop_begin(l, &loop, k64(l, count), 0, NULL);
  const V row = LLVMBuildNSWAdd(l->b, times(l, loop.i, rows), k64(l, first), "");
  block(e, rows, at(l, c, times(l, row, c_row)), at(l, e->a_in, times(l, row, a_row)), panel, b_row);
  lower_loop_end(l, &loop, NULL);
}

static V dot_fn(Lower *l, const Plan *p) {
  char name[96];
  snprintf(name, sizeof name, "ditron.dot.%lldx%lldx%lld.%s.%s.%s", (long long)p->m, (long long)p->n,
           (long long)p->k, ir_dtypes[p->ct].name, ir_dtypes[p->at].name, ir_dtypes[p->bt].name);
  V fn = LLVMGetNamedFunction(l->mod, name);
  if (fn) return fn;
  T params[] = {l->ptr, l->ptr, l->ptr, l->ptr};
  fn = LLVMAddFunction(l->mod, name, LLVMFunctionType(l->void_, params, 4, false));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  lower_fn_attrs(l, fn);
  const unsigned noalias = LLVMGetEnumAttributeKindForName("noalias", 7);
  for (unsigned i = 1; i <= 4; i++) // a and b may be one buffer, which is only read
    if (i == 1 || i == 4) LLVMAddAttributeAtIndex(fn, i, LLVMCreateEnumAttribute(l->cx, noalias, 0));

  const V outer_fn = l->fn;
  const LLVMBasicBlockRef here = lower_here(l);
  const LLVMMetadataRef loc = l->di ? LLVMGetCurrentDebugLocation2(l->b) : NULL;
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, NULL);
  l->fn = fn;
  lower_at(l, lower_new_block(l, "entry"));
  Emit e = {.l = l, .p = *p, .c = LLVMGetParam(fn, 0), .a = LLVMGetParam(fn, 1), .b = LLVMGetParam(fn, 2)};
  const V scratch = LLVMGetParam(fn, 3), panel_at = lower_field(l, scratch, (uint64_t)p->a_bytes);
  e.a_in = e.a;
  if (p->pack_a) {
    pack_a(&e, scratch);
    e.a_in = scratch;
  }
  const int64_t width = (int64_t)p->lanes * p->vectors, high = (int64_t)bits_div_up((uint64_t)p->m, p->rows);
  const int64_t low_rows = p->m / high, taller = p->m % high;
  LowerLoop panels;
  lower_loop_begin(l, &panels, k64(l, p->n / width), 0, NULL);
  V b = at(l, e.b, times(l, panels.i, width * ir_dtypes[p->bt].bytes));
  int64_t b_row = p->n * ir_dtypes[p->bt].bytes;
  if (p->pack_b) {
    pack_panel(&e, b, panel_at);
    b = panel_at;
    b_row = width * (int64_t)LLVMABISizeOfType(l->layout, p->acc);
  }
  const V c = at(l, e.c, times(l, panels.i, width * c_bytes(p)));
  blocks(&e, 0, taller, (uint32_t)low_rows + 1, c, b, b_row);
  blocks(&e, taller * (low_rows + 1), high - taller, (uint32_t)low_rows, c, b, b_row);
  lower_loop_end(l, &panels, NULL);
  LLVMBuildRetVoid(l->b);
  l->fn = outer_fn;
  lower_at(l, here);
  if (l->di) LLVMSetCurrentDebugLocation2(l->b, loc);
  return fn;
}

// Address of matrix i of a buffer of m x n matrices.
static V batch_at(Lower *l, V base, V i, const IrType *t) {
  const int r = t->rank;
  const uint64_t bytes = (uint64_t)t->shape[r - 2] * (uint64_t)t->shape[r - 1] * ir_dtypes[t->dtype].bytes;
  V at = LLVMBuildMul(l->b, i, LLVMConstInt(l->i64, bytes, false), "");
  return LLVMBuildGEP2(l->b, l->i8, base, &at, 1, "");
}

void x86_dot_mem(Lower *l, const IrOp *op) {
  const Plan p = make_plan(l, op);
  const V fn = dot_fn(l, &p);
  V args[] = {lower_operand(l, op, 0), lower_operand(l, op, 1), lower_operand(l, op, 2),
              lower_scratch(l, (uint64_t)(p.a_bytes + p.b_bytes))};
  const IrType *c = ir_operand(op, 0)->type;
  const int64_t batches = ir_type_elems(c) / (p.m * p.n);
  if (batches == 1) {
    LLVMBuildCall2(l->b, LLVMGlobalGetValueType(fn), fn, args, 4, "");
    return;
  }
  const V zero = LLVMConstInt(l->i64, 0, false), one = LLVMConstInt(l->i64, 1, false);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), loop = lower_new_block(l, "batch"),
                    after = lower_new_block(l, "batches");
  LLVMBuildBr(l->b, loop);
  LLVMPositionBuilderAtEnd(l->b, loop);
  V i = LLVMBuildPhi(l->b, l->i64, "");
  for (int k = 0; k < 3; k++) args[k] = batch_at(l, args[k], i, ir_operand(op, (uint32_t)k)->type);
  LLVMBuildCall2(l->b, LLVMGlobalGetValueType(fn), fn, args, 4, "");
  V next = LLVMBuildAdd(l->b, i, one, "");
  V starts[] = {zero, next};
  LLVMBasicBlockRef froms[] = {before, loop};
  LLVMAddIncoming(i, starts, froms, 2);
  V more = LLVMBuildICmp(l->b, LLVMIntULT, next, LLVMConstInt(l->i64, (uint64_t)batches, false), "");
  LLVMBuildCondBr(l->b, more, loop, after);
  LLVMPositionBuilderAtEnd(l->b, after);
}
