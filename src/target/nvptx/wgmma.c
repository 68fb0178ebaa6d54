// wgmma: products of groups of four warps from shared memory (PTX ISA, "Asynchronous warpgroup level matrix instructions").
//
// One piece of inline assembly a product: fence, all its instructions, commit. Nothing is scheduled between them, and the sums
// are tied through it and through the wait, so that no read of them moves up. A descriptor's high word is a constant; the low one is
// arithmetic of 32 bits on an address that is the same in all lanes, which ptxas must see to keep it in uniform registers.
#include "target/nvptx/nvptx.h"

typedef struct Operand { // in shared memory
  uint32_t line;         // bytes of a row of a panel: 32, 64 or 128
  uint32_t panel;        // bytes of a panel
  bool by_k;             // k is the fastest axis
  uint32_t elem;
  V low; // the descriptor's low word for the group's first row or column and k = 0
} Operand;

static V k32(Lower *l, uint32_t v) { return LLVMConstInt(l->i32, v, false); }

// The number of this thread's warp in the block or partition, known to be the same in a warp.
V nvptx_warp_number(Lower *l) {
  NvptxState *s = l->own;
  if (!s->warp) {
    const LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);
    LLVMPositionBuilderBefore(l->b, LLVMGetNextInstruction(s->tid));
    V args[] = {LLVMConstInt(l->i32, UINT32_MAX, false), lower_lshr(l, s->tid, 5), k32(l, 0), k32(l, 31)};
    s->warp = lower_intrinsic(l, "llvm.nvvm.shfl.sync.idx.i32", NULL, 0, args, 4);
    LLVMPositionBuilderAtEnd(l->b, here);
  }
  return s->part_first ? lower_sub(l, s->warp, k32(l, s->part_first)) : s->warp;
}

static uint32_t swizzle_mode(uint32_t line) { return line == 128 ? 1 : line == 64 ? 2 : 3; }
// Between groups of 8 rows; the constant high word.
static uint32_t high_word(const Operand *o) { return 8 * o->line >> 4 | swizzle_mode(o->line) << 30; }

// Bytes from the buffer's start to (place along m or n, k).
static uint32_t offset_of(const Operand *o, uint32_t place, uint32_t k) {
  const uint32_t fast = (o->by_k ? k : place) * o->elem, slow = o->by_k ? place : k;
  return fast / o->line * o->panel + slow * o->line + fast % o->line;
}

// A stage of a ring: the ring's address, the stage's number and how far (in 16 bytes) one is from the next.
typedef struct Stage {
  const IrOp *at; // NULL: p is something else
  const IrOp *mul;
  uint32_t units;
} Stage;
static Stage stage_of(const IrValue *p, uint32_t elem) {
  const IrOp *at = p->def, *mul = at && at->kind == OP_ptr_add ? ir_operand(at, 1)->def : NULL;
  int64_t n;
  if (!mul || mul->kind != OP_mul || !ir_const_int(ir_operand(mul, 1), &n) || n <= 0 || n * elem % 16 ||
      n * elem >= 1 << 18)
    return (Stage){0};
  return (Stage){at, mul, (uint32_t)(n * elem) >> 4};
}

// Operand i of op, rows, cols of the buffer; `step` places along m or n from one group to the next, the group's number `which`. All of a
// ring's stage but its number is the same in all turns of a loop: one addition is left there. Shared memory ends below 2^18.
static Operand operand(Lower *l, const IrOp *op, uint32_t i, IrDtype d, int rows, int cols, bool by_k,
                       V which, uint32_t step) {
  Operand o = {.by_k = by_k, .elem = ir_dtypes[d].bytes};
  const uint32_t bytes = (uint32_t)cols * o.elem;
  o.line = bytes < 128 ? bytes : 128;
  o.panel = (uint32_t)rows * o.line;
  const Stage s = stage_of(ir_operand(op, i), o.elem);
  V at = LLVMBuildPtrToInt(l->b, lower_operand(l, s.at ? s.at : op, s.at ? 0 : i), l->i32, "");
  if (which) at = lower_add(l, at, LLVMBuildMul(l->b, which, k32(l, offset_of(&o, step, 0)), ""));
  const uint32_t leading = by_k ? 1 : o.panel >> 4; // from panel to panel along m or n
  o.low = lower_or(l, lower_lshr(l, at, 4), k32(l, leading << 16));
  if (s.at) o.low = lower_add(l, o.low, LLVMBuildMul(l->b, lower_operand(l, s.mul, 0), k32(l, s.units), ""));
  return o;
}

static const char *type_text(IrDtype d) {
  switch (d) {
  case IR_f16: return "f16";
  case IR_bf16: return "bf16";
  case IR_f32: return "tf32";
  case IR_i8: return "s8";
  case IR_i32: return "s32";
  case IR_f8e4m3: return "e4m3";
  default: return "e5m2";
  }
}

typedef struct Text { // grows; a product's is long
  Lower *l;
  Vec(char) s;
} Text;
static void put(Text *t, const char *s) {
  for (; *s; s++) vec_push(t->l->arena, &t->s, *s);
}
static void put_list(Text *t, uint32_t first, uint32_t n) {
  put(t, "{");
  for (uint32_t i = 0; i < n; i++) put(t, nvptx_text(t->l, i ? ",$%u" : "$%u", first + i));
  put(t, "}");
}
static char *done(Text *t) {
  vec_push(t->l->arena, &t->s, 0);
  return t->s.data;
}

static void lower_wgmma(Lower *l, const IrOp *op) {
  IrWgmmaShape s;
  if (!(l->facts->caps & TARGET_CAP_WGMMA) || !ir_wgmma_shape(op, &s))
    lower_fail(l, op, ST_UNSUPPORTED, "%s has no products of four warps", l->facts->cpu);
  const bool at = ir_attr_i(op, ATTR_a_trans), bt = ir_attr_i(op, ATTR_b_trans);
  const uint32_t an = s.a_regs ? s.a_regs : 1, regs = s.c_regs, sums = op->noperands - an - 1;
  const int groups = s.groups_m * s.groups_n;
  V group = groups > 1 ? lower_lshr(l, nvptx_warp_number(l), 2) : NULL, gm = NULL, gn = NULL;
  if (s.groups_m > 1) gm = LLVMBuildAnd(l->b, group, k32(l, (uint32_t)s.groups_m - 1), "");
  if (s.groups_n > 1) gn = lower_lshr(l, group, (uint32_t)bits_log2((uint64_t)s.groups_m));
  Operand a = {0};
  if (!s.a_regs) a = operand(l, op, 0, s.info->a, at ? s.k : s.m, at ? s.m : s.k, !at, gm, 64);
  const Operand b = operand(l, op, an, s.info->b, bt ? s.n : s.k, bt ? s.k : s.n, bt, gn, (uint32_t)s.width);
  const bool is_int = s.info->c == IR_i32;
  // results, a's word or registers, b's word, then the sums
  const uint32_t first_a = regs, first_b = regs + an;
  Text text = {.l = l}, cons = {.l = l};
  put(&text, "{.reg .pred p;.reg .b32 t;.reg .b64 a,b;");
  put(&text, nvptx_text(l, "setp.ne.b32 p,%d,0;wgmma.fence.sync.aligned;", sums ? 1 : 0));
  for (int step = 0; step < s.steps; step++) {
    const uint32_t k = (uint32_t)(step * s.info->k);
    put(&text, nvptx_text(l, "add.s32 t,$%u,%u;mov.b64 b,{t,%d};", first_b, offset_of(&b, 0, k) >> 4,
                          (int)high_word(&b)));
    for (int block = 0; block < s.blocks; block++) {
      if (!s.a_regs)
        put(&text,
            nvptx_text(l, "add.s32 t,$%u,%u;mov.b64 a,{t,%d};", first_a,
                       offset_of(&a, (uint32_t)(64 * s.groups_m * block), k) >> 4, (int)high_word(&a)));
      put(&text, nvptx_text(l, "wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s ", s.width, s.info->k,
                            is_int ? "s32" : "f32", type_text(s.info->a), type_text(s.info->b)));
      put_list(&text, (uint32_t)(block * s.width / 2), (uint32_t)s.width / 2);
      put(&text, ",");
      if (s.a_regs)
        put_list(&text, first_a + (uint32_t)(4 * (block * s.steps + step)), 4);
      else
        put(&text, "a");
      put(&text, step ? ",b,1" : ",b,p");
      if (!is_int) put(&text, ",1,1");
      if (s.info->any_major)
        put(&text, s.a_regs ? (bt ? ",0" : ",1") : at ? (bt ? ",1,0" : ",1,1") : (bt ? ",0,0" : ",0,1"));
      put(&text, ";");
    }
  }
  put(&text, "wgmma.commit_group.sync.aligned;}");
  V *args = arena_array(l->arena, V, op->noperands);
  T *types = arena_array(l->arena, T, regs);
  for (uint32_t i = 0; i < regs; i++) {
    put(&cons, i ? "," : "");
    put(&cons, is_int ? "=&r" : "=f");
    types[i] = is_int ? l->i32 : l->f32;
  }
  uint32_t n = 0;
  for (; n < an; n++) {
    put(&cons, ",r");
    args[n] = s.a_regs ? lower_operand(l, op, n) : a.low;
  }
  put(&cons, ",r");
  args[n++] = b.low;
  for (uint32_t i = 0; i < sums; i++) {
    put(&cons, nvptx_text(l, ",%u", i));
    args[n++] = lower_operand(l, op, an + 1 + i);
  }
  const V r = nvptx_asm(l, LLVMStructTypeInContext(l->cx, types, regs, false), done(&text), done(&cons), args,
                        n, ASM_EFFECT | ASM_CONVERGENT);
  for (uint32_t i = 0; i < regs; i++) lower_set(l, ir_result(op, i), LLVMBuildExtractValue(l->b, r, i, ""));
}

static void lower_wgmma_wait(Lower *l, const IrOp *op) {
  const uint32_t n = op->nresults;
  Text cons = {.l = l};
  V *args = arena_array(l->arena, V, n);
  T *types = arena_array(l->arena, T, n);
  for (uint32_t i = 0; i < n; i++) {
    args[i] = lower_operand(l, op, i);
    types[i] = LLVMTypeOf(args[i]);
    put(&cons, nvptx_text(l, "%s=%s", i ? "," : "", types[i] == l->f32 ? "f" : "r"));
  }
  for (uint32_t i = 0; i < n; i++) put(&cons, nvptx_text(l, ",%u", i));
  const V r =
      nvptx_asm(l, n == 1 ? types[0] : LLVMStructTypeInContext(l->cx, types, n, false),
                nvptx_text(l, "wgmma.wait_group.sync.aligned %lld;", (long long)ir_attr_i(op, ATTR_pending)),
                done(&cons), args, n, ASM_EFFECT | ASM_CONVERGENT);
  for (uint32_t i = 0; i < n; i++)
    lower_set(l, ir_result(op, i), n == 1 ? r : LLVMBuildExtractValue(l->b, r, i, ""));
}

bool nvptx_wgmma(Lower *l, const IrOp *op) {
  if (op->kind == OP_wgmma)
    lower_wgmma(l, op);
  else if (op->kind == OP_wgmma_wait)
    lower_wgmma_wait(l, op);
  else
    return false;
  return true;
}
