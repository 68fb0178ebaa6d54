// emit: the entry of a kernel and what all its ops share: parameters, shared memory, the thread's place.
#include "target/nvptx/nvptx.h"

#include <llvm-c/Target.h>
#include <stdlib.h>

static void init(void) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
}

static void fn_attr(Lower *l, V fn, const char *key, const char *value) {
  LLVMAddAttributeAtIndex(
      fn, LLVMAttributeFunctionIndex,
      LLVMCreateStringAttribute(l->cx, key, (unsigned)strlen(key), value, (unsigned)strlen(value)));
}

// ---- shared memory -----------------------------------------------------------------------------
V nvptx_shared_at(Lower *l, uint64_t offset) {
  V all = LLVMGetNamedGlobal(l->mod, NVPTX_SHARED_NAME);
  if (!all) {
    all = LLVMAddGlobalInAddressSpace(l->mod, LLVMArrayType2(l->i8, 0), NVPTX_SHARED_NAME, NVPTX_SHARED);
    LLVMSetLinkage(all, LLVMExternalLinkage);
    LLVMSetAlignment(all, 1024); // what swizzled buffers need
  }
  return lower_field(l, all, offset);
}
V nvptx_scratch(Lower *l, uint64_t bytes) {
  if (bytes > l->scratch_bytes) l->scratch_bytes = bytes;
  return nvptx_shared_at(l, bits_round_up(l->buffers_end, 16));
}

// Who takes most of something that is too much, by line and name, for the message.
enum { NAMED = 4 };
typedef struct User {
  const char *name;
  uint32_t line;
  uint64_t amount;
} User;
typedef struct Users {
  Lower *l;
  Vec(User) list;
  Map at; // by line: where in the list
} Users;
static void note_user(Users *s, const char *name, uint32_t line, uint64_t amount) {
  vec_push(s->l->arena, &s->list, ((User){name, line, amount}));
}
static int by_amount(const void *a, const void *b) {
  const User *x = a, *y = b;
  return x->amount != y->amount ? (x->amount < y->amount ? 1 : -1)
                                : (x->line > y->line) - (x->line < y->line);
}
static const char *name_largest(Users *s) {
  const char *text = "";
  qsort(s->list.data, s->list.len, sizeof *s->list.data, by_amount);
  for (uint32_t i = 0; i < s->list.len && i < NAMED; i++) {
    const User *u = &s->list.data[i];
    text = nvptx_text(s->l, "%s%s%s %llu (line %u)", text, i ? ", " : "", u->name,
                      (unsigned long long)u->amount, u->line);
  }
  return s->list.len > NAMED ? nvptx_text(s->l, "%s, and %u smaller ones", text, s->list.len - NAMED) : text;
}

static bool list_buffer(IrOp *op, void *user) {
  if (op->kind != OP_mem_alloc) return true;
  const IrType *m = ir_result(op, 0)->type;
  const char *label = ir_attr_s(op, ATTR_label);
  note_user(user,
            label           ? label
            : m->stages > 1 ? nvptx_text(((Users *)user)->l, "%d stages of a buffer", m->stages)
                            : "a buffer",
            op->loc.line,
            (uint64_t)ir_type_elems(m) * (uint64_t)ir_type_bytes(m) *
                (uint64_t)(m->stages > 1 ? m->stages : 1));
  return true;
}
static void check_shared(Lower *l, const IrFunc *f) {
  const uint64_t bytes = bits_round_up(l->buffers_end, 16) + l->scratch_bytes;
  if (bytes <= l->facts->shared_bytes) return;
  Users s = {.l = l};
  ir_walk(f->body, list_buffer, &s);
  diag(l->diags, DIAG_ERROR, f->loc,
       "kernel %s needs %llu bytes of shared memory a block; %s has %u. Its largest buffers, in bytes: %s",
       f->name->s, (unsigned long long)bytes, l->facts->cpu, l->facts->shared_bytes, name_largest(&s));
  diag_hint(l->diags, "smaller blocks or fewer stages (num_stages)");
  escape_now(&l->escape, ST_COMPILE, "too much shared memory");
}

// ---- size ----------------------------------------------------------------------------------------
// A tile is written out element by element: of very large ones in few threads the assembler would make code for minutes, most of it
// spills. The largest of the library, a sort of 1024, becomes 7,000 instructions; 80,000 operations take some 40 s.
enum { MOST_OPS = 100000 };

static bool count_op(IrOp *op, void *user) {
  Users *s = user;
  uint64_t at = 0;
  if (!map_get(&s->at, op->loc.line, &at)) {
    map_set(&s->at, op->loc.line, s->list.len);
    note_user(s, "operations", op->loc.line, 1);
  } else {
    s->list.data[at].amount++;
  }
  return true;
}
static void check_size(Lower *l, const IrFunc *f) {
  Users s = {.l = l};
  uint64_t ops = 0;
  map_init(&s.at, l->arena);
  ir_walk(f->body, count_op, &s);
  for (uint32_t i = 0; i < s.list.len; i++) ops += s.list.data[i].amount;
  if (ops <= MOST_OPS) return;
  diag(
      l->diags, DIAG_ERROR, f->loc,
      "kernel %s is too large: %llu operations a thread, and at most %d can be compiled; its tiles take more registers "
      "than a thread has. Most come from: %s",
      f->name->s, (unsigned long long)ops, MOST_OPS, name_largest(&s));
  diag_hint(l->diags, "more warps (num_warps) or smaller blocks");
  escape_now(&l->escape, ST_COMPILE, "too large");
}

// ---- the thread's place ------------------------------------------------------------------------
static V special(Lower *l, const char *name) {
  return lower_intrinsic(l, nvptx_text(l, "llvm.nvvm.read.ptx.sreg.%s", name), NULL, 0, NULL, 0);
}
uint32_t nvptx_threads(const Lower *l) {
  const NvptxState *s = l->own;
  return s->part_warps * 32;
}
V nvptx_tid(Lower *l) {
  const NvptxState *s = l->own;
  return s->part_first ? lower_sub(l, s->tid, LLVMConstInt(l->i32, s->part_first * 32u, false)) : s->tid;
}

// ---- kernels -----------------------------------------------------------------------------------
// What is passed by value and stays among the parameters.
void nvptx_by_value(Lower *l, V fn, uint32_t i, uint32_t nbytes, uint32_t nalign) {
  const T bytes = LLVMArrayType2(l->i8, nbytes);
  const unsigned kind = LLVMGetEnumAttributeKindForName("byval", 5),
                 align = LLVMGetEnumAttributeKindForName("align", 5);
  LLVMAddAttributeAtIndex(fn, i + 1, LLVMCreateTypeAttribute(l->cx, kind, bytes));
  LLVMAddAttributeAtIndex(fn, i + 1, LLVMCreateEnumAttribute(l->cx, align, nalign));
  LLVMAddAttributeAtIndex(fn, i + 1, LLVMCreateStringAttribute(l->cx, "nvvm.grid_constant", 18, "", 0));
}

static void begin(Lower *l, V fn, V record) {
  static const char *const axes[] = {"x", "y", "z"};
  NvptxState *s = l->own;
  l->fn = fn;
  l->entry = LLVMAppendBasicBlockInContext(l->cx, fn, "entry");
  lower_at(l, l->entry);
  for (uint32_t k = 0; k < 3; k++) {
    l->pid[k] = special(l, nvptx_text(l, "ctaid.%s", axes[k]));
    l->grid[k] = special(l, nvptx_text(l, "nctaid.%s", axes[k]));
  }
  s->tid = special(l, "tid.x");
  l->rank_record = record;
  l->rank = lower_load_at(l, l->i32, record, offsetof(AbiRank, rank), 4);
  l->world = lower_load_at(l, l->i32, record, offsetof(AbiRank, world), 4);
}

static bool find_groups(IrOp *op, void *user) {
  bool *has = user;
  *has |= op->kind == OP_wgmma;
  return !*has;
}

void nvptx_kernel(Lower *l, const IrFunc *f, ImageVariant *out) {
  if (l->ir->lanes != 32)
    lower_fail(l, NULL, ST_UNSUPPORTED, "a warp has 32 lanes here, not %d", l->ir->lanes);
  NvptxState *s = arena_new(l->arena, NvptxState);
  s->part_warps = (uint32_t)(l->ir->num_warps + l->ir->extra_warps);
  l->own = s;
  ir_walk(f->body, find_groups, &s->has_groups);
  l->space[SPACE_global] = LLVMPointerTypeInContext(l->cx, NVPTX_GLOBAL);
  l->space[SPACE_shared] = l->mbarrier = LLVMPointerTypeInContext(l->cx, NVPTX_SHARED);
  map_init(&s->narrowed, l->arena);
  map_init(&s->pieces, l->arena);
  nvptx_place_mbarriers(l, f);
  const uint32_t n = f->body->args.len;
  const uint32_t nmaps = nvptx_find_maps(l, f, out);
  T *types = arena_array(l->arena, T, n + 1 + nmaps);
  for (uint32_t i = 0; i < n; i++) {
    const IrType *t = f->body->args.data[i]->type;
    types[i] = t->kind == IR_DESC ? l->ptr : lower_memory_type(l, t);
  }
  types[n] = l->space[SPACE_global];
  for (uint32_t i = 0; i < nmaps; i++) types[n + 1 + i] = l->ptr;
  lower_describe_args(l, f, out);
  const V fn = LLVMAddFunction(l->mod, f->name->s, LLVMFunctionType(l->void_, types, n + 1 + nmaps, false));
  LLVMSetFunctionCallConv(fn, LLVMPTXKernelCallConv);
  lower_fn_attrs(l, fn);
  fn_attr(l, fn, "nvvm.reqntid", nvptx_text(l, "%u", s->part_warps * 32));
  fn_attr(l, fn, "nvvm.minctasm", "1");
  if (l->ir->max_registers) fn_attr(l, fn, "nvvm.maxnreg", nvptx_text(l, "%d", l->ir->max_registers));
  lower_debug_function(l, fn, f->loc, f->name->s);
  nvptx_map_params(l, fn, n + 1);
  begin(l, fn, LLVMGetParam(fn, n));
  out->early = l->ir->extra_warps > 0; // its partitions wait (lane.c)
  for (uint32_t i = 0; i < n; i++) {
    const IrValue *v = f->body->args.data[i];
    if (v->type->kind == IR_DESC) {
      nvptx_by_value(l, fn, i, sizeof(ImageDesc), 8);
      lower_set(l, v, LLVMGetParam(fn, i));
    } else {
      lower_set(l, v, lower_from_memory(l, LLVMGetParam(fn, i), v->type));
    }
  }
  check_size(l, f);
  lower_body(l, f->body);
  check_shared(l, f);
}

// ---- ops ---------------------------------------------------------------------------------------
bool nvptx_op(Lower *l, const IrOp *op) {
  nvptx_in_run(l, op);
  if (op->kind == OP_tid) {
    lower_result(l, op, nvptx_tid(l));
    return true;
  }
  if (op->kind == OP_num_threads) {
    lower_result(l, op, LLVMConstInt(l->i32, nvptx_threads(l), false));
    return true;
  }
  return nvptx_mem(l, op) || nvptx_num(l, op) || nvptx_lane(l, op) || nvptx_wgmma(l, op) ||
         nvptx_atomic(l, op) || nvptx_wait(l, op) || nvptx_tma(l, op) || nvptx_mbarrier(l, op) ||
         nvptx_people(l, op);
}

const Target target_nvptx = {
    .name = "nvptx",
    .image = IMAGE_NVPTX,
    .stage = STAGE_lowered,
    .init = init,
    .facts = nvptx_facts,
    .triple = "nvptx64-nvidia-cuda",
    .kernel = nvptx_kernel,
    .op = nvptx_op,
    .widen = nvptx_widen,
    .narrow = nvptx_narrow,
    .math = nvptx_math,
    .yield = nvptx_yield,
    .rejoin = nvptx_rejoin,
    .emits_text = true,
    .start = nvptx_start,
    .finish = nvptx_finish,
    .passes = "always-inline,function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,"
              "loop-mssa(loop-simplifycfg,licm),gvn,simplifycfg,adce),globaldce"};
