// people: prints, assertions and the program's own inline assembly.
#include "target/nvptx/nvptx.h"

// ---- prints --------------------------------------------------------------------------------------
// One line a value, as on a CPU, through the driver's vprintf: a format and the arguments one behind the other, each
// aligned to its size.
typedef struct Print {
  const char *format;
  Vec(V) args;
} Print;

static void add(Lower *l, Print *p, V x) { vec_push(l->arena, &p->args, x); }
static bool is_uns(const IrOp *op, uint32_t i) {
  const IrAttr *a = ir_attr(op, ATTR_uns);
  return a && i < a->ints.n && a->ints.v[i];
}
static const char *quoted(Lower *l, const char *s) { // a % of the program's is a % to people
  char *out = arena_array(l->arena, char, 2 * strlen(s) + 1), *o = out;
  for (; *s; s++) {
    if (*s == '%') *o++ = '%';
    *o++ = *s;
  }
  return out;
}
static void add_value(Lower *l, const IrOp *op, uint32_t i, Print *p) {
  const IrType *t = ir_operand(op, i)->type;
  V x = lower_operand(l, op, i);
  const bool hex = ir_attr_i(op, ATTR_hex), uns = is_uns(op, i) || (!ir_type_is_ptr(t) && t->dtype == IR_i1);
  const char *how;
  if (ir_type_is_ptr(t)) {
    x = LLVMBuildPtrToInt(l->b, x, l->i64, "");
    how = "0x%llx";
  } else if (ir_type_is_float(t)) {
    x = lower_widen(l, x, t->dtype);
    if (LLVMTypeOf(x) == l->f32) x = LLVMBuildFPExt(l->b, x, l->f64, "");
    how = "%f";
  } else {
    how = hex ? nvptx_text(l, "0x%%0%ullx", ir_dtypes[t->dtype].bits / 4) : uns ? "%llu" : "%lld";
    x = LLVMBuildIntCast2(l->b, x, l->i64, !uns && !hex, "");
  }
  p->format = nvptx_text(l, "%s%s\n", p->format, how);
  add(l, p, x);
}
static void call_vprintf(Lower *l, const Print *p) {
  T *types = arena_array(l->arena, T, p->args.len + 1);
  for (uint32_t i = 0; i < p->args.len; i++) types[i] = LLVMTypeOf(p->args.data[i]);
  const T record = LLVMStructTypeInContext(l->cx, types, p->args.len, false);
  const V slot = lower_alloca(l, record, 8);
  for (uint32_t i = 0; i < p->args.len; i++)
    LLVMBuildStore(l->b, p->args.data[i], LLVMBuildStructGEP2(l->b, record, slot, i, ""));
  T params[] = {l->ptr, l->ptr};
  const T ft = LLVMFunctionType(l->i32, params, 2, false);
  V fn = LLVMGetNamedFunction(l->mod, "vprintf");
  if (!fn) fn = LLVMAddFunction(l->mod, "vprintf", ft);
  const V text = LLVMConstStringInContext2(l->cx, p->format, strlen(p->format), false);
  const V global = LLVMAddGlobalInAddressSpace(l->mod, LLVMTypeOf(text), "ditron_text", NVPTX_GLOBAL);
  LLVMSetInitializer(global, text);
  LLVMSetLinkage(global, LLVMInternalLinkage);
  LLVMSetGlobalConstant(global, true);
  V args[] = {LLVMBuildAddrSpaceCast(l->b, global, l->ptr, ""), slot};
  LLVMBuildCall2(l->b, ft, fn, args, 2, "");
}
static void lower_print(Lower *l, const IrOp *op) {
  const int64_t where = ir_attr_i(op, ATTR_where);
  const uint32_t marks = where < 0 ? 1 : (uint32_t)where;
  const char *prefix = ir_attr_s(op, ATTR_prefix);
  const uint32_t n = op->noperands > marks ? op->noperands - marks : 0;
  for (uint32_t i = 0; i < n || (i == 0 && n == 0); i++) {
    Print p = {.format = "pid (%u, %u, %u)"};
    for (int k = 0; k < 3; k++) add(l, &p, l->pid[k]);
    for (uint32_t k = 0; k < marks && k < op->noperands; k++) {
      p.format = nvptx_text(l, "%s%s%s", p.format,
                            where < 0 ? " thread %d"
                            : k       ? ", %d"
                                      : " idx (%d",
                            where >= 0 && k + 1 == marks ? ")" : "");
      add(l, &p, LLVMBuildIntCast2(l->b, lower_operand(l, op, k), l->i32, true, ""));
    }
    p.format = nvptx_text(l, "%s %s", p.format, quoted(l, prefix ? prefix : ""));
    if (n > 1) p.format = nvptx_text(l, "%s(operand %u) ", p.format, i);
    if (n)
      add_value(l, op, marks + i, &p);
    else
      p.format = nvptx_text(l, "%s\n", p.format);
    call_vprintf(l, &p);
  }
}

static void lower_assert(Lower *l, const IrOp *op) {
  V c = lower_operand(l, op, 0);
  if (LLVMTypeOf(c) != l->i1) c = lower_icmp(l, LLVMIntNE, c, LLVMConstNull(LLVMTypeOf(c)));
  const V site = LLVMConstInt(l->i32, lower_site(l, op, ir_attr_s(op, ATTR_msg), NULL), false);
  const LLVMBasicBlockRef bad = lower_new_block(l, "assert"), ok = lower_new_block(l, "holds");
  LLVMBuildCondBr(l->b, c, ok, bad);
  lower_at(l, bad);
  nvptx_give_up(l, site, ABI_REPORT_ASSERT, NULL, NULL, NULL, 0, ABI_EQ);
  lower_at(l, ok);
}

// ---- inline assembly -------------------------------------------------------------------------------
// Operands and results are `pack` elements each, one operand's behind the other's; packs of small elements go into registers of
// 32 bits, the first in the low ones. What a register holds is up to its letter: h 16 bits, r 32, l 64, f and d floats, b one.
//
// LLVM reports a constraint that it cannot meet and then goes on with what it has not got, so nothing wrong may reach it.
enum { MAX_REGS = 64 };

typedef struct Inline {
  const IrOp *op;
  const char *at;     // in the constraints
  char reg[MAX_REGS]; // letters: the outputs', then the inputs'
  uint32_t nout, nin;
} Inline;

static uint32_t element_bits(const IrType *t) {
  return ir_type_is_ptr(t) ? 64 : ir_dtypes[t->dtype].bits < 8 ? 8 : ir_dtypes[t->dtype].bits;
}
static uint32_t per_register(const IrType *t, uint32_t pack) {
  const uint32_t fit = element_bits(t) < 32 ? 32 / element_bits(t) : 1;
  return fit < pack ? fit : pack;
}
static uint32_t letter_bits(char c) { return c == 'b' ? 1 : c == 'h' ? 16 : c == 'r' || c == 'f' ? 32 : 64; }
static T letter_type(const Lower *l, char c) {
  return c == 'b'   ? l->i1
         : c == 'h' ? l->i16
         : c == 'r' ? l->i32
         : c == 'f' ? l->f32
         : c == 'd' ? l->f64
                    : l->i64;
}

// One entry: "=r", "=&r", "r", "0". The letter, or 0 at the end of the registers.
static char next_letter(Lower *l, Inline *f, bool output) {
  while (*f->at == ' ') f->at++;
  if (!*f->at || *f->at == '~') return 0;
  const char *start = f->at;
  const bool is_output = *f->at == '=';
  if (is_output != output) return 0;
  if (output) f->at += f->at[1] == '&' ? 2 : 1;
  char c = *f->at ? *f->at++ : 0;
  if (!output && c >= '0' && c <= '9') { // the register of an output
    const uint32_t n = (uint32_t)(c - '0');
    c = n < f->nout ? f->reg[n] : 0;
  }
  if (!c || !strchr("bhrlfd", c) || (*f->at && *f->at != ','))
    lower_fail(l, f->op, ST_COMPILE, "the constraint '%.*s' is none of h, r, l, f, d and b",
               (int)strcspn(start, ","), start);
  if (*f->at) f->at++;
  return c;
}
static void read_constraints(Lower *l, Inline *f, uint32_t nout, uint32_t nin) {
  const char *all = ir_attr_s(f->op, ATTR_constraints);
  f->at = all ? all : "";
  for (char c; (c = next_letter(l, f, true)) != 0;) {
    if (f->nout == MAX_REGS / 2) lower_fail(l, f->op, ST_LIMIT, "more than %d results", MAX_REGS / 2);
    f->reg[f->nout++] = c;
  }
  for (char c; (c = next_letter(l, f, false)) != 0;) {
    if (f->nin == MAX_REGS / 2) lower_fail(l, f->op, ST_LIMIT, "more than %d inputs", MAX_REGS / 2);
    f->reg[f->nout + f->nin++] = c;
  }
  while (*f->at == '~') { // clobbers
    const size_t n = strcspn(f->at, ",");
    if (n < 4 || f->at[1] != '{' || f->at[n - 1] != '}') break;
    f->at += n + (f->at[n] == ',');
  }
  if (*f->at)
    lower_fail(l, f->op, ST_COMPILE, "the constraints go on with '%s': outputs, then inputs, then clobbers",
               f->at);
  if (f->nout != nout || f->nin != nin)
    lower_fail(l, f->op, ST_COMPILE,
               "the constraints name %u outputs and %u inputs; there are %u and %u registers", f->nout,
               f->nin, nout, nin);
}
// $0, ${0}, $$.
static void check_text(Lower *l, const Inline *f, const char *s) {
  for (; (s = strchr(s, '$')) != NULL; s++) {
    const bool brace = s[1] == '{';
    const char *n = s + 1 + brace;
    if (s[1] == '$') {
      s++;
      continue;
    }
    uint32_t x = 0;
    const char *d = n;
    for (; *d >= '0' && *d <= '9' && x < 1000; d++) x = x * 10 + (uint32_t)(*d - '0');
    if (d == n || (brace && *d != '}') || x >= f->nout + f->nin)
      lower_fail(l, f->op, ST_COMPILE, "'%.4s' in the assembly names none of its %u registers", s,
                 f->nout + f->nin);
  }
}

static V joined(Lower *l, const Inline *f, V const *elems, uint32_t per, char c) {
  const T reg = letter_type(l, c);
  V x = NULL;
  uint32_t bits = 0;
  for (uint32_t i = 0; i < per; i++) {
    V e = elems[i];
    if (LLVMGetTypeKind(LLVMTypeOf(e)) == LLVMPointerTypeKind) e = LLVMBuildPtrToInt(l->b, e, l->i64, "");
    if (LLVMTypeOf(e) == l->f32) e = LLVMBuildBitCast(l->b, e, l->i32, "");
    if (LLVMTypeOf(e) == l->f64) e = LLVMBuildBitCast(l->b, e, l->i64, "");
    const uint32_t n = LLVMGetIntTypeWidth(LLVMTypeOf(e));
    bits += n;
    if (bits > letter_bits(c))
      lower_fail(l, f->op, ST_COMPILE, "the constraint '%c' holds %u bits, not %u", c, letter_bits(c),
                 per * n);
    e = LLVMBuildZExtOrBitCast(l->b, e, LLVMIntTypeInContext(l->cx, letter_bits(c)), "");
    x = i ? lower_or(l, x, lower_shl(l, e, bits - n)) : e;
  }
  return LLVMBuildBitCast(l->b, x, reg, "");
}
static V taken(Lower *l, const Inline *f, V reg, uint32_t i, const IrType *t, char c) {
  const T elem = lower_scalar_type(l, t);
  const uint32_t n = elem == l->i1 ? 1 : element_bits(t), bits = letter_bits(c);
  if ((i + 1) * n > bits)
    lower_fail(l, f->op, ST_COMPILE, "the constraint '=%c' holds %u bits, not %u", c, bits, (i + 1) * n);
  V x = LLVMBuildBitCast(l->b, reg, LLVMIntTypeInContext(l->cx, bits), "");
  if (i) x = lower_lshr(l, x, i * n);
  x = LLVMBuildTruncOrBitCast(l->b, x, LLVMIntTypeInContext(l->cx, n), "");
  if (LLVMGetTypeKind(elem) == LLVMPointerTypeKind) return LLVMBuildIntToPtr(l->b, x, elem, "");
  return LLVMBuildBitCast(l->b, x, elem, "");
}

static void lower_inline(Lower *l, const IrOp *op) {
  const uint32_t pack = ir_attr_i(op, ATTR_pack) > 1 ? (uint32_t)ir_attr_i(op, ATTR_pack) : 1;
  if (op->noperands % pack || op->nresults % pack)
    lower_fail(l, op, ST_INTERNAL, "operands are no whole packs");
  uint32_t nout = 0, nin = 0;
  for (uint32_t i = 0; i < op->nresults; i += pack) nout += pack / per_register(ir_result(op, i)->type, pack);
  for (uint32_t i = 0; i < op->noperands; i += pack)
    nin += pack / per_register(ir_operand(op, i)->type, pack);
  Inline f = {.op = op};
  read_constraints(l, &f, nout, nin);
  const char *text = ir_attr_s(op, ATTR_asm);
  check_text(l, &f, text ? text : "");
  V in[MAX_REGS];
  T out[MAX_REGS];
  uint32_t k = 0;
  for (uint32_t i = 0, per; i < op->noperands; i += per, k++) {
    V elems[4];
    per = per_register(ir_operand(op, i)->type, pack);
    for (uint32_t e = 0; e < per; e++) elems[e] = lower_operand(l, op, i + e);
    in[k] = joined(l, &f, elems, per, f.reg[nout + k]);
  }
  for (uint32_t i = 0; i < nout; i++) out[i] = letter_type(l, f.reg[i]);
  const T rt = nout == 0 ? l->void_ : nout == 1 ? out[0] : LLVMStructTypeInContext(l->cx, out, nout, false);
  const char *constraints = ir_attr_s(op, ATTR_constraints);
  const V r = nvptx_asm(l, rt, text ? text : "", constraints ? constraints : "", in, nin,
                        ir_attr_i(op, ATTR_pure) ? ASM_CONVERGENT : ASM_EFFECT | ASM_CONVERGENT);
  k = 0;
  for (uint32_t i = 0, per; i < op->nresults; i += per, k++) {
    const IrType *t = ir_result(op, i)->type;
    per = per_register(t, pack);
    const V reg = nout == 1 ? r : LLVMBuildExtractValue(l->b, r, k, "");
    for (uint32_t e = 0; e < per; e++) lower_set(l, ir_result(op, i + e), taken(l, &f, reg, e, t, f.reg[k]));
  }
}

bool nvptx_people(Lower *l, const IrOp *op) {
  switch (op->kind) {
  case OP_print: {
    const bool once = ir_op_executor(op) == EXEC_PROGRAM;
    const LLVMBasicBlockRef all = once ? nvptx_begin_one(l) : NULL;
    lower_print(l, op);
    if (once) nvptx_end_one(l, all);
    if (once) nvptx_warp_barrier(l);
    return true;
  }
  case OP_assert: lower_assert(l, op); return true;
  case OP_inline_asm: lower_inline(l, op); return true;
  default: return false;
  }
}
