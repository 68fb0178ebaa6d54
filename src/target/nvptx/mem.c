// mem: loads and stores of one thread, of one element or of a pack. A pack is one access of 1 to 16 bytes, done in words:
//
//   bytes   1, 2      4      8        16
//   words   i16       i32    2 x i32  4 x i32     (elements of 8 bytes: i64 words)
//
// Plain ones are LLVM's loads and stores. A mask becomes the instruction's predicate: the registers hold the other value
// before, and nothing branches. Hints, order and scope are spelled out in inline assembly, exactly as asked.
#include "target/nvptx/nvptx.h"

typedef struct Access {
  const IrOp *op;
  bool load;
  const IrType *elem; // of one element
  uint32_t n, bytes;  // elements; bytes of all
  T word;
  uint32_t nwords;
  V p, mask; // mask: NULL where it is not needed
} Access;

static const char *scope_text(IrScope s) { return s == SCOPE_block ? "cta" : s == SCOPE_gpu ? "gpu" : "sys"; }
const char *nvptx_scope(const IrOp *op) { return scope_text((IrScope)ir_attr_i(op, ATTR_scope)); }
static bool is_shared(V p) { return LLVMGetPointerAddressSpace(LLVMTypeOf(p)) == NVPTX_SHARED; }

static Access access_of(Lower *l, const IrOp *op, bool load, const IrType *elem, uint32_t n, V p, V mask) {
  Access a = {.op = op, .load = load, .elem = elem, .n = n, .p = p, .mask = mask};
  const uint32_t each = (uint32_t)ir_type_bytes(elem);
  a.bytes = n * each;
  if (!n || a.bytes > 16 || !bits_pow2(a.bytes))
    lower_fail(l, op, ST_UNSUPPORTED, "%u elements of %u bytes in one access", n, each);
  a.word = each == 8 ? l->i64 : a.bytes >= 4 ? l->i32 : l->i16;
  a.nwords = a.word == l->i16 ? 1 : a.bytes / (each == 8 ? 8 : 4);
  if (mask && LLVMIsConstant(mask) && LLVMIsAConstantInt(mask) && LLVMConstIntGetZExtValue(mask))
    a.mask = NULL;
  return a;
}

// ---- elements and words --------------------------------------------------------------------------
static V to_bits(Lower *l, V x, const IrType *elem) {
  const T t = LLVMTypeOf(x), bits = LLVMIntTypeInContext(l->cx, (unsigned)ir_type_bytes(elem) * 8);
  if (LLVMGetTypeKind(t) == LLVMPointerTypeKind) return LLVMBuildPtrToInt(l->b, x, bits, "");
  if (t == l->i1) return LLVMBuildZExt(l->b, x, bits, "");
  return LLVMBuildBitCast(l->b, x, bits, "");
}
static V from_bits(Lower *l, V x, const IrType *elem) {
  const T t = lower_scalar_type(l, elem);
  if (LLVMGetTypeKind(t) == LLVMPointerTypeKind) return LLVMBuildIntToPtr(l->b, x, t, "");
  if (t == l->i1) return lower_icmp(l, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)));
  return LLVMBuildBitCast(l->b, x, t, "");
}
const NvptxPiece *nvptx_piece(const Lower *l, V elem) {
  const NvptxState *s = l->own;
  return map_getp(&s->pieces, elem);
}
static V whole_word(Lower *l, V const *elems, uint32_t n, T word) { // that they all come from, in order
  const NvptxPiece *first = nvptx_piece(l, elems[0]);
  if (!first || LLVMTypeOf(first->word) != word) return NULL;
  if (n * LLVMGetIntTypeWidth(LLVMTypeOf(elems[0])) != LLVMGetIntTypeWidth(word)) return NULL;
  for (uint32_t i = 0; i < n; i++) {
    const NvptxPiece *p = nvptx_piece(l, elems[i]);
    if (!p || p->word != first->word || p->index != i) return NULL;
  }
  return first->word;
}
static void to_words(Lower *l, const Access *a, V const *elems, V *words) {
  const uint32_t per = a->n / a->nwords, bits = 8 * (uint32_t)ir_type_bytes(a->elem);
  for (uint32_t w = 0; w < a->nwords; w++) {
    V x = per > 1 ? whole_word(l, &elems[w * per], per, a->word) : NULL;
    for (uint32_t i = x ? per : 0, step; i < per; i += step) {
      const V *at = &elems[w * per + i];
      V e = i + 1 < per ? nvptx_pair(l, at[0], at[1]) : NULL;
      step = e ? 2 : 1;
      if (!e) e = to_bits(l, at[0], a->elem);
      e = LLVMBuildZExtOrBitCast(l->b, e, a->word, "");
      if (i) e = lower_or(l, x, lower_shl(l, e, i * bits));
      x = e;
    }
    words[w] = x;
  }
}
static void from_words(Lower *l, const Access *a, V const *words, V *elems) {
  NvptxState *s = l->own;
  const uint32_t per = a->n / a->nwords, bits = 8 * (uint32_t)ir_type_bytes(a->elem);
  const T t = LLVMIntTypeInContext(l->cx, bits);
  for (uint32_t i = 0; i < a->n; i++) {
    V x = words[i / per];
    if (i % per) x = lower_lshr(l, x, (i % per) * bits);
    elems[i] = from_bits(l, LLVMBuildTruncOrBitCast(l->b, x, t, ""), a->elem);
    if (per == 1 || lower_scalar_type(l, a->elem) != t) continue;
    NvptxPiece *p = arena_new(l->arena, NvptxPiece);
    *p = (NvptxPiece){words[i / per], i % per};
    map_setp(&s->pieces, elems[i], p);
  }
}

// ---- instructions --------------------------------------------------------------------------------
static IrOrder order_of(const Access *a) { // what a load or a store alone can do of it
  const IrOrder o = (IrOrder)ir_attr_i(a->op, ATTR_order);
  if (o == ORDER_weak || o == ORDER_relaxed || o == ORDER_seq_cst) return o;
  return a->load ? ORDER_acquire : ORDER_release;
}
static bool is_plain(const Access *a) {
  if (a->mask || order_of(a) != ORDER_weak || ir_attr_i(a->op, ATTR_volatile)) return false;
  if (is_shared(a->p)) return true;
  return !ir_attr_i(a->op, ATTR_cache) && !ir_attr_i(a->op, ATTR_evict) && !ir_attr_i(a->op, ATTR_nt);
}
static const char *cache_text(const Access *a) {
  if (is_shared(a->p)) return "";
  switch ((IrEvict)ir_attr_i(a->op, ATTR_evict)) {
  case EVICT_first: return ".L1::evict_first";
  case EVICT_last: return ".L1::evict_last";
  default: break;
  }
  if (order_of(a) != ORDER_weak || ir_attr_i(a->op, ATTR_volatile)) return "";
  switch ((IrCache)ir_attr_i(a->op, ATTR_cache)) { // each access knows its own
  case CACHE_ca: return a->load ? ".ca" : "";
  case CACHE_cg: return ".cg";
  case CACHE_cs: return ".cs";
  case CACHE_cv: return a->load ? ".cv" : "";
  case CACHE_wb: return a->load ? "" : ".wb";
  case CACHE_wt: return a->load ? "" : ".wt";
  default: return ir_attr_i(a->op, ATTR_nt) ? ".cs" : "";
  }
}
static const char *order_text(Lower *l, const Access *a) {
  const char *scope = nvptx_scope(a->op);
  switch (order_of(a)) {
  case ORDER_weak: return ir_attr_i(a->op, ATTR_volatile) ? ".volatile" : "";
  case ORDER_relaxed: return nvptx_text(l, ".relaxed.%s", scope);
  default: return nvptx_text(l, "%s.%s", a->load ? ".acquire" : ".release", scope);
  }
}
static char letter(const Lower *l, T word) { return word == l->i16 ? 'h' : word == l->i32 ? 'r' : 'l'; }
// "ld.relaxed.gpu.global.v2.b32"
static const char *instruction(Lower *l, const Access *a) {
  const char *vec = a->nwords == 1 ? "" : a->nwords == 2 ? ".v2" : ".v4";
  const uint32_t bits = a->bytes / a->nwords * 8;
  return nvptx_text(l, "%s%s%s%s%s.b%u", a->load ? "ld" : "st", order_text(l, a),
                    is_shared(a->p) ? ".shared" : ".global", cache_text(a), vec, bits);
}
static const char *register_list(Lower *l, uint32_t first, uint32_t n) { // "{$0, $1}"
  if (n == 1) return nvptx_text(l, "$%u", first);
  const char *s = "{";
  for (uint32_t i = 0; i < n; i++) s = nvptx_text(l, "%s%s$%u", s, i ? ", " : "", first + i);
  return nvptx_text(l, "%s}", s);
}
static const char *fence_before(Lower *l, const Access *a) {
  return order_of(a) == ORDER_seq_cst ? nvptx_text(l, "fence.sc.%s; ", nvptx_scope(a->op)) : "";
}

static void load_asm(Lower *l, const Access *a, V const *other, V *words) {
  const char c = letter(l, a->word);
  const char *outs = "", *ties = "", *predicate = "";
  for (uint32_t i = 0; i < a->nwords; i++) outs = nvptx_text(l, "%s%s=%c", outs, i ? "," : "", c);
  V args[2 + 4] = {a->p};
  uint32_t n = 1;
  if (a->mask) {
    args[n++] = a->mask;
    predicate = nvptx_text(l, "@$%u ", a->nwords + 1);
    for (uint32_t i = 0; i < a->nwords; i++) {
      ties = nvptx_text(l, "%s,%u", ties, i);
      args[n++] = other[i];
    }
  }
  const char *text = nvptx_text(l, "%s%s%s %s, [$%u];", fence_before(l, a), predicate, instruction(l, a),
                                register_list(l, 0, a->nwords), a->nwords);
  T types[4] = {a->word, a->word, a->word, a->word};
  const T rt = a->nwords == 1 ? a->word : LLVMStructTypeInContext(l->cx, types, a->nwords, false);
  const V r =
      nvptx_asm(l, rt, text, nvptx_text(l, "%s,l%s%s", outs, a->mask ? ",b" : "", ties), args, n, ASM_EFFECT);
  for (uint32_t i = 0; i < a->nwords; i++)
    words[i] = a->nwords == 1 ? r : LLVMBuildExtractValue(l->b, r, i, "");
}
static void store_asm(Lower *l, const Access *a, V const *words) {
  const char *ins = "l", *predicate = "";
  V args[2 + 4] = {a->p};
  uint32_t n = 1;
  for (uint32_t i = 0; i < a->nwords; i++) {
    ins = nvptx_text(l, "%s,%c", ins, letter(l, a->word));
    args[n++] = words[i];
  }
  if (a->mask) {
    predicate = nvptx_text(l, "@$%u ", n);
    ins = nvptx_text(l, "%s,b", ins);
    args[n++] = a->mask;
  }
  const char *text = nvptx_text(l, "%s%s%s [$0], %s;", fence_before(l, a), predicate, instruction(l, a),
                                register_list(l, 1, a->nwords));
  nvptx_asm(l, l->void_, text, ins, args, n, ASM_EFFECT);
}
static T plain_type(Lower *l, const Access *a) {
  if (a->bytes == 1) return l->i8;
  return a->nwords == 1 ? a->word : LLVMVectorType(a->word, a->nwords);
}

static void load_words(Lower *l, const Access *a, V const *other, V *words) {
  if (!is_plain(a)) {
    load_asm(l, a, other, words);
    return;
  }
  V x = LLVMBuildLoad2(l->b, plain_type(l, a), a->p, "");
  lower_align(x, a->bytes);
  if (a->bytes == 1) x = LLVMBuildZExt(l->b, x, l->i16, "");
  for (uint32_t i = 0; i < a->nwords; i++) words[i] = a->nwords == 1 ? x : lower_extract(l, x, i);
}
static void store_words(Lower *l, const Access *a, V const *words) {
  if (!is_plain(a)) {
    store_asm(l, a, words);
    return;
  }
  V x = words[0];
  if (a->bytes == 1) x = LLVMBuildTrunc(l->b, x, l->i8, "");
  if (a->nwords > 1) {
    x = LLVMGetPoison(plain_type(l, a));
    for (uint32_t i = 0; i < a->nwords; i++) x = lower_insert(l, x, words[i], i);
  }
  lower_align(LLVMBuildStore(l->b, x, a->p), a->bytes);
}

// ---- ops -----------------------------------------------------------------------------------------
enum { MAX_ELEMS = 16 };

static void lower_loads(Lower *l, const IrOp *op) {
  const V p = lower_operand(l, op, 0), mask = lower_operand(l, op, 1), other = lower_operand(l, op, 2);
  const IrType *t = ir_result(op, 0)->type;
  if (op->nresults > MAX_ELEMS || lower_lanes(p)) lower_fail(l, op, ST_UNSUPPORTED, "too many elements");
  const Access a = access_of(l, op, true, t, op->nresults, p, mask);
  V others[MAX_ELEMS], ow[4], words[4], elems[MAX_ELEMS];
  for (uint32_t i = 0; i < a.n; i++) others[i] = other ? other : LLVMConstNull(lower_scalar_type(l, t));
  to_words(l, &a, others, ow);
  load_words(l, &a, ow, words);
  from_words(l, &a, words, elems);
  for (uint32_t i = 0; i < a.n; i++) lower_set(l, ir_result(op, i), elems[i]);
}
static void lower_stores(Lower *l, const IrOp *op) {
  const bool pack = op->kind == OP_store_pack;
  const uint32_t first = pack ? 2 : 1, n = pack ? op->noperands - 2 : 1;
  const V p = lower_operand(l, op, 0), mask = lower_operand(l, op, pack ? 1 : 2);
  if (n > MAX_ELEMS || lower_lanes(p)) lower_fail(l, op, ST_UNSUPPORTED, "too many elements");
  const Access a = access_of(l, op, false, ir_operand(op, first)->type, n, p, mask);
  V elems[MAX_ELEMS], words[4];
  for (uint32_t i = 0; i < n; i++) elems[i] = lower_operand(l, op, first + i);
  to_words(l, &a, elems, words);
  store_words(l, &a, words);
}

// Asynchronous copies of one thread. Past the first-level cache where that is asked for, or usual: 16 bytes.
static void lower_copy_pack(Lower *l, const IrOp *op) {
  const V dst = lower_operand(l, op, 0), src = lower_operand(l, op, 1), mask = lower_operand(l, op, 2);
  const int64_t bytes = ir_attr_i(op, ATTR_bytes);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    lower_fail(l, op, ST_UNSUPPORTED, "a copy of %lld bytes", (long long)bytes);
  const IrCache cache = (IrCache)ir_attr_i(op, ATTR_cache);
  const char *how = bytes == 16 && cache != CACHE_ca ? "cg" : "ca";
  V args[] = {dst, src, mask ? LLVMBuildNot(l->b, mask, "") : NULL};
  const char *text = nvptx_text(l, "cp.async.%s.shared.global [$0], [$1], %lld%s;", how, (long long)bytes,
                                mask ? ", $2" : "");
  nvptx_asm(l, l->void_, text, mask ? "l,l,b" : "l,l", args, mask ? 3 : 2, ASM_EFFECT); // $2: zeros instead
}

// A descriptor is the address of the launch's ImageDesc among the parameters; the shared code reads it.
bool nvptx_mem(Lower *l, const IrOp *op) {
  switch (op->kind) {
  case OP_load:
  case OP_load_pack: lower_loads(l, op); return true;
  case OP_store:
  case OP_store_pack: lower_stores(l, op); return true;
  case OP_mem_alloc:
    if (ir_result(op, 0)->type->space != SPACE_shared)
      lower_fail(l, op, ST_UNSUPPORTED, "a buffer that is not in shared memory");
    lower_result(l, op, nvptx_shared_at(l, (uint64_t)ir_attr_i(op, ATTR_offset)));
    return true;
  case OP_mem_ptr: lower_result(l, op, lower_operand(l, op, 0)); return true;
  case OP_copy_pack: lower_copy_pack(l, op); return true;
  case OP_copy_commit: nvptx_asm(l, l->void_, "cp.async.commit_group;", "", NULL, 0, ASM_EFFECT); return true;
  case OP_copy_wait:
    nvptx_asm(l, l->void_, nvptx_text(l, "cp.async.wait_group %lld;", (long long)ir_attr_i(op, ATTR_pending)),
              "", NULL, 0, ASM_EFFECT);
    return true;
  default: return false;
  }
}
