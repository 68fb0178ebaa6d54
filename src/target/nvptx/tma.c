// tma: blocks of tensors between global and shared memory by the tensor memory accelerator, and what one thread does for all.
//
// Each pair of a descriptor and a shape of copies is a tensor map: a hidden parameter that the host fills in for each launch
// (ImageMap). A block is copied in boxes, each contiguous in shared memory and at most 256 elements along an axis:
//
//   swizzled [R][C]   panel 0 [R][w] | panel 1 [R][w] | ...     a box a panel, w elements = 32, 64 or 128 bytes = the swizzle
//   row-major         rows of at most 256 elements              a box, or several one after the other
//
// What happens once a program and is one thread's work is done in runs: neighbouring ops share a branch, pure ones between them go
// before it.
//
//   pure ... | elected? -> expect, copy, copy ... | lanes meet
#include "target/nvptx/nvptx.h"

enum { MOST_COPIES = 64 };

static V u32(const Lower *l, uint64_t v) { return LLVMConstInt(l->i32, v, false); }

// ---- one thread ----------------------------------------------------------------------------------------------------------
static bool is_copy(const IrOp *op) {
  return op->kind == OP_desc_load_async || op->kind == OP_desc_store_async;
}
static bool is_arrival(const IrOp *op) {
  return (op->kind == OP_mbarrier_expect || op->kind == OP_mbarrier_arrive) &&
         ir_op_executor(op) == EXEC_PROGRAM && !ir_attr_i(op, ATTR_each_warp);
}
static bool is_straight(const IrOp *op) { // pure, and lowered without branches
  switch (op->kind) {
  case OP_const:
  case OP_add:
  case OP_sub:
  case OP_mul:
  case OP_and:
  case OP_or:
  case OP_xor:
  case OP_shl:
  case OP_shr_s:
  case OP_shr_u:
  case OP_min_s:
  case OP_max_s:
  case OP_min_u:
  case OP_max_u:
  case OP_cmp:
  case OP_select:
  case OP_ext_s:
  case OP_ext_u:
  case OP_trunc:
  case OP_hint:
  case OP_mem_alloc:
  case OP_mem_view: return true;
  default: return false;
  }
}
// An arrival is one for all threads: what they did before must be done. A single warp meets cheaply; else there may be a barrier already.
static bool must_meet(const IrOp *op) {
  if (!is_arrival(op)) return false;
  const IrOp *p = op->prev;
  while (p && (is_straight(p) || is_copy(p) || (p->kind == OP_mbarrier_expect && is_arrival(p)))) p = p->prev;
  return !p || p->kind != OP_barrier;
}
static bool goes_on(const IrOp *op) { // is another one of the run to come?
  for (const IrOp *n = op->next; n; n = n->next) {
    if (is_copy(n) || (is_arrival(n) && !must_meet(n))) return true;
    if (!is_straight(n)) return false;
  }
  return false;
}

V nvptx_elected(Lower *l) {
  const NvptxState *s = l->own;
  V all = u32(l, UINT32_MAX);
  if (!(l->facts->caps & TARGET_CAP_TMA)) return lower_icmp(l, LLVMIntEQ, nvptx_tid(l), u32(l, 0));
  const V one =
      LLVMBuildExtractValue(l->b, lower_intrinsic(l, "llvm.nvvm.elect.sync", NULL, 0, &all, 1), 1, "");
  return s->part_warps == 1 ? one : lower_and(l, one, lower_icmp(l, LLVMIntULT, nvptx_tid(l), u32(l, 32)));
}

static void enter_run(Lower *l, const IrOp *op) {
  NvptxState *s = l->own;
  if (s->run_one) {
    lower_at(l, s->run_one);
    return;
  }
  if (must_meet(op)) nvptx_barrier(l);
  s->run_one = lower_new_block(l, "one");
  s->run_all = lower_new_block(l, "all");
  s->run_branch = LLVMBuildCondBr(l->b, nvptx_elected(l), s->run_one, s->run_all);
  lower_at(l, s->run_one);
}
static void leave_run(Lower *l, const IrOp *op) {
  NvptxState *s = l->own;
  s->run_one = lower_here(l);
  if (goes_on(op)) return;
  LLVMBuildBr(l->b, s->run_all);
  lower_at(l, s->run_all);
  s->run_one = NULL;
  nvptx_warp_barrier(l); // else ptxas takes what follows for divergent
}
// Before each op: inside a run what is pure goes before the branch.
void nvptx_in_run(Lower *l, const IrOp *op) {
  const NvptxState *s = l->own;
  if (s->run_one && is_straight(op)) LLVMPositionBuilderBefore(l->b, s->run_branch);
}

// ---- plans -----------------------------------------------------------------------------------------------------------------
typedef struct Plan {
  const IrType *block;
  uint32_t swizzle;     // bytes
  int32_t box[5], n[5]; // elements; boxes along each axis
  int order[5];         // of the axes, outermost first, as the boxes follow each other in shared memory
  uint32_t box_elems, copies;
} Plan;

static Plan plan_of(Lower *l, const IrOp *op) {
  const IrType *buffer = ir_operand(op, 1)->type;
  IrType *m = arena_copy(l->arena, buffer,
                         sizeof *buffer); // with the leading axes of size 1 that the buffer leaves out
  const int more = ir_operand(op, 0)->type->rank - buffer->rank;
  for (int i = 0; i < IR_MAX_RANK - more; i++) m->shape[i + more] = buffer->shape[i];
  for (int i = 0; i < more; i++) m->shape[i] = 1;
  m->rank += more;
  Plan p = {.block = m, .box_elems = 1, .copies = 1};
  const int last = m->rank - 1;
  const uint32_t bytes = ir_dtypes[m->dtype].bytes;
  if (m->rank < 1 || m->rank > 5 || m->space != SPACE_shared)
    lower_fail(l, op, ST_UNSUPPORTED, "copies blocks of 1 to 5 axes to and from shared memory");
  for (int i = 0; i < last; i++) p.order[i] = i;
  p.order[last] = last;
  int32_t width = m->shape[last] < 256 ? m->shape[last] : 256;
  if (m->layout) {
    const IrLayout swizzled = layout_swizzled(m->rank, m->shape, bytes);
    if (!layout_same(m->layout, &swizzled))
      lower_fail(l, op, ST_UNSUPPORTED,
                 "no tensor map knows the buffer's layout: it is neither row-major nor swizzled");
    width = m->shape[last] < (int32_t)(128 / bytes) ? m->shape[last] : (int32_t)(128 / bytes);
    p.swizzle = (uint32_t)width * bytes < 32 ? 0 : (uint32_t)width * bytes;
    for (int i = last; i > 0; i--) p.order[i] = i - 1; // panels are outermost
    p.order[0] = last;
  }
  p.box[last] = width;
  bool cut = !m->layout && width < m->shape[last]; // boxes of rows cut short cannot lie one under the other
  for (int i = last - 1; i >= 0; i--) {
    p.box[i] = cut ? 1 : m->shape[i] < 256 ? m->shape[i] : 256;
    cut |= p.box[i] < m->shape[i];
  }
  for (int i = 0; i <= last; i++) {
    if (m->shape[i] % p.box[i])
      lower_fail(l, op, ST_UNSUPPORTED, "%d elements along axis %d are more than 256 and no multiple of it",
                 m->shape[i], i);
    p.n[i] = m->shape[i] / p.box[i];
    p.box_elems *= (uint32_t)p.box[i];
    p.copies *= (uint32_t)p.n[i];
  }
  if ((uint32_t)width * bytes % 16)
    lower_fail(l, op, ST_UNSUPPORTED, "a row of the block has %u bytes, which is no multiple of 16",
               (uint32_t)width * bytes);
  if (p.copies > MOST_COPIES)
    lower_fail(l, op, ST_UNSUPPORTED, "the block would be copied in %u pieces; %d is the most", p.copies,
               MOST_COPIES);
  const uint32_t align = p.swizzle ? 8 * p.swizzle : 128, box_bytes = p.box_elems * bytes;
  if (p.copies > 1 && box_bytes % align)
    lower_fail(l, op, ST_UNSUPPORTED, "the block's pieces of %u bytes are no multiples of %u", box_bytes,
               align);
  const IrValue *root = ir_operand(op, 1);
  if (root->def && root->def->kind == OP_mem_view) {
    root = ir_operand(root->def, 0);
    if ((uint64_t)ir_type_elems(m) * bytes % align)
      lower_fail(l, op, ST_UNSUPPORTED, "a stage of the buffer has %lld bytes, which is no multiple of %u",
                 (long long)ir_type_elems(m) * bytes, align);
  }
  if (root->def && root->def->kind == OP_mem_alloc && ir_attr_i(root->def, ATTR_offset) % align)
    lower_fail(l, op, ST_UNSUPPORTED, "the buffer lies at %lld, which is no multiple of %u",
               (long long)ir_attr_i(root->def, ATTR_offset), align);
  return p;
}

// ---- maps: found before the function is made, as they are its parameters --------------------------------------------------------
typedef struct NvptxMap {
  const IrValue *desc;
  uint32_t box[5], swizzle, dtype;
  bool writes;
  V param;
} NvptxMap;

static uint32_t map_dtype(const IrOp *op,
                          IrDtype d) { // of an update the map says whether its integers are signed
  const bool rmw = ir_attr(op, ATTR_rmw) != NULL;
  const int64_t how = ir_attr_i(op, ATTR_rmw);
  const bool sign = rmw && (how == RMW_min_s || how == RMW_max_s);
  switch (d) {
  case IR_i32: return sign || !rmw ? IMAGE_I32 : IMAGE_U32;
  case IR_i64: return sign || !rmw ? IMAGE_I64 : IMAGE_U64;
  default: return lower_image_dtype(d, false);
  }
}

static bool same_map(const NvptxMap *a, const NvptxMap *b) {
  return a->desc == b->desc && !memcmp(a->box, b->box, sizeof a->box) && a->swizzle == b->swizzle &&
         a->dtype == b->dtype && a->writes == b->writes;
}

static NvptxMap wanted(const IrOp *op, const Plan *p) {
  NvptxMap m = {.desc = ir_desc_source(ir_operand(op, 0)),
                .swizzle = p->swizzle,
                .dtype = map_dtype(op, p->block->dtype),
                .writes = op->kind != OP_desc_load_async};
  for (int i = 0; i < p->block->rank; i++) m.box[i] = (uint32_t)p->box[i];
  return m;
}

static const char *name_of(Lower *l, const IrValue *d) { // for people
  if (d->name) return d->name->s;
  const IrValue *base = d->def ? ir_operand(d->def, 0) : d;
  while (base->def && base->def->noperands) base = ir_operand(base->def, 0);
  const IrFunc *f = l->func;
  if (!base->def && base->block == f->body && base->index < f->params.len && f->params.data[base->index].name)
    return f->params.data[base->index].name->s;
  return d->def ? nvptx_text(l, "of line %u", d->def->loc.line) : "?";
}

static ImageStepOp step_of(Lower *l, const IrLaunchStep *s) {
  switch (s->kind) {
  case IR_LAUNCH_CONST: return IMAGE_STEP_CONST;
  case IR_LAUNCH_PARAM: return IMAGE_STEP_ARG;
  case IR_LAUNCH_BASE: return IMAGE_STEP_BASE;
  case IR_LAUNCH_DIM: return IMAGE_STEP_DIM;
  case IR_LAUNCH_STRIDE: return IMAGE_STEP_STRIDE;
  case IR_LAUNCH_SEXT: return IMAGE_STEP_SEXT;
  case IR_LAUNCH_ZEXT: return IMAGE_STEP_ZEXT;
  case IR_LAUNCH_OP: break;
  }
  switch (s->op) {
  case OP_add: return IMAGE_STEP_ADD;
  case OP_sub: return IMAGE_STEP_SUB;
  case OP_mul: return IMAGE_STEP_MUL;
  case OP_div_s: return IMAGE_STEP_DIV_S;
  case OP_div_u: return IMAGE_STEP_DIV_U;
  case OP_rem_s: return IMAGE_STEP_REM_S;
  case OP_rem_u: return IMAGE_STEP_REM_U;
  case OP_min_s: return IMAGE_STEP_MIN_S;
  case OP_max_s: return IMAGE_STEP_MAX_S;
  case OP_min_u: return IMAGE_STEP_MIN_U;
  case OP_max_u: return IMAGE_STEP_MAX_U;
  case OP_and: return IMAGE_STEP_AND;
  case OP_or: return IMAGE_STEP_OR;
  case OP_xor: return IMAGE_STEP_XOR;
  case OP_shl: return IMAGE_STEP_SHL;
  case OP_shr_s: return IMAGE_STEP_SHR_S;
  case OP_shr_u: return IMAGE_STEP_SHR_U;
  default: lower_fail(l, NULL, ST_INTERNAL, "'%s' in what a launch computes", ir_ops[s->op].name);
  }
}
static ImageRecipe recipe_of(Lower *l, const IrLaunchExpr *e) {
  ImageRecipe r = {arena_array(l->arena, ImageStep, e->len + 1), e->len};
  for (uint32_t i = 0; i < e->len; i++)
    r.steps[i] = (ImageStep){step_of(l, &e->data[i]), e->data[i].param, e->data[i].value};
  return r;
}

static void describe(Lower *l, const IrOp *op, const NvptxMap *m, ImageMap *out) {
  IrLaunchDesc d;
  const char *why, *name = name_of(l, m->desc);
  if (!ir_desc_at_launch(l->arena, m->desc, &d, &why)) {
    diag(l->diags, DIAG_ERROR, op->loc,
         "the tensor descriptor %s cannot be made before the kernel is launched: %s", name, why);
    diag_hint(
        l->diags,
        "make it of the kernel's own pointer, integer and descriptor arguments, or load and store its blocks "
        "without the accelerator");
    escape_now(&l->escape, ST_COMPILE, "a tensor descriptor that depends on the device");
  }
  const IrDtype t = m->desc->type->dtype;
  const bool nan = d.pad == PAD_nan && ir_dtypes[t].cls == IR_FLOAT;
  if (nan && ir_dtypes[t].bits == 8)
    lower_fail(l, op, ST_UNSUPPORTED, "the accelerator does not pad %s with NaN", ir_dtypes[t].name);
  *out = (ImageMap){.name = name,
                    .dtype = m->dtype,
                    .rank = (uint32_t)d.rank,
                    .swizzle = m->swizzle,
                    .pad_nan = nan,
                    .writes = m->writes,
                    .base = recipe_of(l, &d.base)};
  for (int i = 0; i < d.rank; i++) {
    out->box[i] = m->box[i];
    out->sizes[i] = recipe_of(l, &d.dims[i]);
    out->strides[i] = recipe_of(l, &d.strides[i]);
  }
}

static bool find_map(IrOp *op, void *user) {
  Lower *l = user;
  NvptxState *s = l->own;
  if (!is_copy(op) && op->kind != OP_strip_store) return true;
  if (!(l->facts->caps & TARGET_CAP_TMA)) {
    diag(l->diags, DIAG_ERROR, op->loc, "%s has no tensor memory accelerator, which '%s' needs",
         l->facts->cpu, ir_ops[op->kind].name);
    diag_hint(l->diags, "compile for sm_90a, or load and store the blocks without it");
    escape_now(&l->escape, ST_UNSUPPORTED, "no tensor memory accelerator");
  }
  const Plan p = plan_of(l, op);
  NvptxMap *m = arena_new(l->arena, NvptxMap);
  *m = wanted(op, &p);
  for (uint32_t i = 0; i < s->maps.len; i++)
    if (same_map(s->maps.data[i], m)) return true;
  if (s->maps.len == IMAGE_MAPS_MAX)
    lower_fail(l, op, ST_LIMIT, "the kernel needs more than %d tensor maps", IMAGE_MAPS_MAX);
  vec_push(l->arena, &s->maps, m);
  ImageMap out;
  describe(l, op, m, &out);
  vec_push(l->arena, &s->image_maps, out);
  return true;
}
uint32_t nvptx_find_maps(Lower *l, const IrFunc *f, ImageVariant *out) {
  NvptxState *s = l->own;
  ir_walk(f->body, find_map, l);
  out->maps = s->image_maps.data;
  out->nmaps = s->image_maps.len;
  return out->nmaps;
}
void nvptx_map_params(Lower *l, V fn, uint32_t first) {
  NvptxState *s = l->own;
  for (uint32_t i = 0; i < s->maps.len; i++) {
    nvptx_by_value(l, fn, first + i, IMAGE_MAP_BYTES, IMAGE_MAP_ALIGN);
    s->maps.data[i]->param = LLVMGetParam(fn, first + i);
  }
}
void nvptx_prefetch_maps(Lower *l) {
  NvptxState *s = l->own;
  if (s->prefetched) return;
  s->prefetched = true;
  for (uint32_t i = 0; i < s->maps.len; i++)
    lower_intrinsic(l, "llvm.nvvm.prefetch.tensormap", &l->ptr, 1, &s->maps.data[i]->param, 1);
}

// ---- copies ------------------------------------------------------------------------------------------------------------------
static V map_of(Lower *l, const IrOp *op, const Plan *p) {
  const NvptxState *s = l->own;
  const NvptxMap want = wanted(op, p);
  for (uint32_t i = 0; i < s->maps.len; i++)
    if (same_map(s->maps.data[i], &want)) return s->maps.data[i]->param;
  lower_fail(l, op, ST_INTERNAL, "its tensor map is missing");
}

// The coordinates of box number `at`, the contiguous axis first, and where it lies in shared memory.
static V box_at(Lower *l, const Plan *p, uint32_t at, V const *index, V buffer, V *coords) {
  const int rank = p->block->rank;
  uint32_t rest = at;
  for (int k = rank - 1; k >= 0; k--) {
    const int d = p->order[k];
    const uint32_t i = rest % (uint32_t)p->n[d];
    rest /= (uint32_t)p->n[d];
    coords[rank - 1 - d] = i ? lower_add(l, index[d], u32(l, i * (uint32_t)p->box[d])) : index[d];
  }
  return lower_field(l, buffer, (uint64_t)at * p->box_elems * ir_dtypes[p->block->dtype].bytes);
}

static V policy(Lower *l, const IrOp *op) { // of the second-level cache; NULL: the usual one
  switch ((IrEvict)ir_attr_i(op, ATTR_evict)) {
  case EVICT_first: return LLVMConstInt(l->i64, 0x12f0000000000000, false);
  case EVICT_last: return LLVMConstInt(l->i64, 0x14f0000000000000, false);
  default: return NULL;
  }
}

static const char *reduction(Lower *l, const IrOp *op, IrDtype d) {
  static const struct {
    IrRmw rmw;
    const char *name, *types;
  } known[] = {
      {RMW_add, "add", "i32 i64"},   {RMW_fadd, "add", "f16 bf16 f32"}, {RMW_max_s, "max", "i32 i64"},
      {RMW_max_u, "max", "i32 i64"}, {RMW_min_s, "min", "i32 i64"},     {RMW_min_u, "min", "i32 i64"},
      {RMW_fmax, "max", "f16 bf16"}, {RMW_fmin, "min", "f16 bf16"},     {RMW_and, "and", "i32 i64"},
      {RMW_or, "or", "i32 i64"},     {RMW_xor, "xor", "i32 i64"}};
  for (size_t i = 0; i < DT_COUNTOF(known); i++) {
    const char *at =
        known[i].rmw == (IrRmw)ir_attr_i(op, ATTR_rmw) ? strstr(known[i].types, ir_dtypes[d].name) : NULL;
    if (at && (at == known[i].types || at[-1] == ' ')) return known[i].name;
  }
  lower_fail(l, op, ST_UNSUPPORTED, "the accelerator does not do '%s' on %s",
             ir_enum_text(ATTR_rmw, ir_attr_i(op, ATTR_rmw)), ir_dtypes[d].name);
}

static void lower_copy(Lower *l, const IrOp *op) {
  enum { TO_SHARED_CLUSTER = 7 };
  const bool load = op->kind == OP_desc_load_async;
  const Plan p = plan_of(l, op);
  const int rank = p.block->rank;
  const V map = map_of(l, op, &p), buffer = lower_operand(l, op, 1), hint = policy(l, op);
  const V no = LLVMConstInt(l->i1, 0, false), hinted = LLVMConstInt(l->i1, hint != NULL, false),
          cache = hint ? hint : LLVMConstInt(l->i64, 0, false);
  V index[5], bar = NULL;
  for (int i = 0; i < rank; i++)
    index[i] = LLVMBuildIntCast2(l->b, lower_operand(l, op, (load ? 4 : 2) + (uint32_t)i), l->i32, true, "");
  if (load) bar = lower_gep(l, l->i64, lower_operand(l, op, 2), lower_operand(l, op, 3));
  for (uint32_t k = 0; k < p.copies; k++) {
    V args[16], coords[5];
    uint32_t n = 0;
    const V at = box_at(l, &p, k, index, buffer, coords);
    if (load) {
      args[n++] = LLVMBuildAddrSpaceCast(l->b, at, LLVMPointerTypeInContext(l->cx, TO_SHARED_CLUSTER), "");
      args[n++] = bar;
    } else {
      args[n++] = at;
    }
    args[n++] = map;
    for (int i = 0; i < rank; i++) args[n++] = coords[i];
    if (load) args[n++] = LLVMConstInt(l->i16, 0, false); // no multicast
    args[n++] = cache;
    if (load) args[n++] = no;
    args[n++] = hinted;
    if (load) args[n++] = u32(l, 0);
    const char *name = load                    ? "g2s"
                       : ir_attr(op, ATTR_rmw) ? nvptx_text(l, "reduce.%s", reduction(l, op, p.block->dtype))
                                               : "s2g";
    lower_intrinsic(l, nvptx_text(l, "llvm.nvvm.cp.async.bulk.tensor.%s.tile.%dd", name, rank), NULL, 0, args,
                    n);
  }
  if (!load) lower_intrinsic(l, "llvm.nvvm.cp.async.bulk.commit.group", NULL, 0, NULL, 0);
}

// The stores of the elected thread, complete, or at least no longer reading shared memory; then all may go on.
// ---- strips: a warp's own rows, by its elected lane -----------------------------------------------------------------------------
static void if_elected(Lower *l, V elected, const char *text, const char *constraints, V const *args,
                       uint32_t n) {
  V all[2 + 8] = {elected};
  for (uint32_t i = 0; i < n; i++) all[1 + i] = args[i];
  nvptx_asm(l, l->void_, nvptx_text(l, "@$0 %s", text), nvptx_text(l, "b%s%s", n ? "," : "", constraints),
            all, n + 1, ASM_EFFECT);
}
static V elected_lane(Lower *l) {
  V all = u32(l, UINT32_MAX);
  return LLVMBuildExtractValue(l->b, lower_intrinsic(l, "llvm.nvvm.elect.sync", NULL, 0, &all, 1), 1, "");
}

// Chunk c of 16 bytes of row r lies at c xor r (layout_swizzled).
static V strip_chunk(Lower *l, V buffer, V row, V chunk) {
  const V at = lower_xor(l, chunk, lower_and(l, row, u32(l, 7)));
  return lower_gep(
      l, l->i8, buffer,
      lower_add(l, LLVMBuildShl(l->b, row, u32(l, 7), ""), LLVMBuildShl(l->b, at, u32(l, 4), "")));
}

static void strip_of_halves(Lower *l, const IrOp *op, uint32_t first, V buffer, V lane) {
  const V row = lower_and(l, lane, u32(l, 15)), half = lower_lshr(l, lane, 4);
  for (uint32_t q = 0; q < 4; q++) {
    V args[5] = {strip_chunk(l, buffer, row, lower_add(l, half, u32(l, 2 * q)))};
    for (uint32_t i = 0; i < 4; i++) args[1 + i] = lower_operand(l, op, first + 4 * q + i);
    nvptx_asm(l, l->void_, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};", "l,r,r,r,r",
              args, 5, ASM_EFFECT | ASM_CONVERGENT);
  }
}

// A lane has two neighbours of row lane / 4 and two of the row 8 below in each 8 columns.
static void strip_of_words(Lower *l, const IrOp *op, uint32_t first, V buffer, V lane) {
  const V row = lower_lshr(l, lane, 2), pair = lower_and(l, lane, u32(l, 3)),
          half = LLVMBuildShl(l->b, lower_and(l, pair, u32(l, 1)), u32(l, 3), "");
  for (uint32_t q = 0; q < 4; q++) {
    const V at = lower_gep(
        l, l->i8, strip_chunk(l, buffer, row, lower_add(l, lower_lshr(l, pair, 1), u32(l, 2 * q))), half);
    for (uint32_t below = 0; below < 2; below++) {
      V args[3] = {lower_field(l, at, below * 8 * 128)};
      for (uint32_t i = 0; i < 2; i++) args[1 + i] = lower_operand(l, op, first + 4 * q + 2 * below + i);
      nvptx_asm(l, l->void_, "st.shared.v2.b32 [$0], {$1, $2};", "l,r,r", args, 3, ASM_EFFECT);
    }
  }
}

static void lower_strip(Lower *l, const IrOp *op) {
  const Plan p = plan_of(l, op);
  const V map = map_of(l, op, &p), lane = lower_and(l, nvptx_tid(l), u32(l, 31));
  const uint32_t rank = (uint32_t)ir_operand(op, 0)->type->rank;
  const char *sum = ir_attr(op, ATTR_rmw) ? reduction(l, op, p.block->dtype) : NULL;
  const int64_t strip = ir_attr_i(op, ATTR_strip);
  const bool wide = ir_dtypes[p.block->dtype].bytes == 4;
  const uint64_t bytes = (uint64_t)p.box_elems * (wide ? 4 : 2);
  // The buffer is this warp's: free once the strip before the last has been read. Between tiles all have been, and where the
  // next is not added, are there, in order.
  const V elected = elected_lane(l);
  if_elected(l, elected,
             strip ? "cp.async.bulk.wait_group.read 1;"
             : sum ? "cp.async.bulk.wait_group.read 0;"
                   : "cp.async.bulk.wait_group 0;",
             "", NULL, 0);
  nvptx_warp_barrier(l);
  const bool two = ir_operand(op, 1)->type->stages > l->ir->num_warps;
  V at = lower_mul(l, nvptx_warp_number(l), u32(l, (two ? 2 : 1) * bytes));
  V buffer = lower_gep(l, l->i8, lower_field(l, lower_operand(l, op, 1), (uint64_t)(strip & 1) * bytes), at);
  (wide ? strip_of_words : strip_of_halves)(l, op, 2 + rank, buffer, lane);
  nvptx_asm(l, l->void_, "fence.proxy.async.shared::cta;", "", NULL, 0, ASM_EFFECT);
  nvptx_warp_barrier(l);
  V args[2 + 5] = {map, LLVMBuildPtrToInt(l->b, buffer, l->i32, "")};
  const char *place = "", *kinds = "l,r";
  for (uint32_t i = 0; i < rank; i++) { // the contiguous axis first
    args[2 + i] = lower_operand(l, op, 2 + rank - 1 - i);
    place = nvptx_text(l, "%s%s$%u", place, i ? ", " : "", 3 + i);
    kinds = nvptx_text(l, "%s,r", kinds);
  }
  if_elected(l, elected,
             nvptx_text(l,
                        "cp.%sasync.bulk.tensor.%ud.global.shared::cta%s.tile.bulk_group [$1, {%s}], [$2];",
                        sum ? "reduce." : "", rank, sum ? nvptx_text(l, ".%s", sum) : "", place),
             kinds, args, 2 + rank);
  if_elected(l, elected, "cp.async.bulk.commit_group;", "", NULL, 0);
}

static void lower_async_wait(Lower *l, const IrOp *op) {
  if (!(l->facts->caps & TARGET_CAP_TMA))
    lower_fail(l, op, ST_UNSUPPORTED, "%s has no asynchronous stores", l->facts->cpu);
  V pending = u32(l, op->noperands ? 0 : (uint64_t)ir_attr_i(op, ATTR_pending));
  const LLVMBasicBlockRef one = lower_new_block(l, "one"), all = lower_new_block(l, "all");
  LLVMBuildCondBr(l->b, nvptx_elected(l), one, all);
  lower_at(l, one);
  lower_intrinsic(l,
                  ir_attr_i(op, ATTR_reads) ? "llvm.nvvm.cp.async.bulk.wait.group.read"
                                            : "llvm.nvvm.cp.async.bulk.wait.group",
                  NULL, 0, &pending, 1);
  LLVMBuildBr(l->b, all);
  lower_at(l, all);
  nvptx_warp_barrier(l);
  nvptx_barrier(l);
}

bool nvptx_tma(Lower *l, const IrOp *op) {
  switch (op->kind) {
  case OP_make_desc: return true; // the host's work
  case OP_consume: return ir_result(op, 0)->type->kind == IR_DESC;
  case OP_desc_load_async:
  case OP_desc_store_async:
    enter_run(l, op);
    lower_copy(l, op);
    leave_run(l, op);
    return true;
  case OP_mbarrier_expect:
  case OP_mbarrier_arrive:
    if (!is_arrival(op)) return nvptx_mbarrier(l, op);
    enter_run(l, op);
    nvptx_mbarrier(l, op);
    leave_run(l, op);
    return true;
  case OP_async_wait: lower_async_wait(l, op); return true;
  case OP_strip_store: lower_strip(l, op); return true;
  case OP_strips_end:
    if_elected(l, elected_lane(l), "cp.async.bulk.wait_group.read 0;", "", NULL, 0);
    return true;
  default: return false;
  }
}
