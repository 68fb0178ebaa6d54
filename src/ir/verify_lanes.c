// verify_lanes: the ops of the laid-out and lowered stages that move registers of threads and warps.
#include "ir/verify.h"

typedef IrVerifier V;

static const IrType *in(const IrOp *op, uint32_t i) {
  const IrValue *v = ir_operand(op, i);
  return v ? v->type : NULL;
}
static bool want(V *v, const IrOp *op, bool holds, const char *text) {
  return holds || ir_bad(v, op, "%s", text);
}
static bool is_reg(const IrType *t, IrDtype d) {
  return t && t->kind == IR_SCALAR && t->level == LEVEL_thread && t->dtype == d;
}
static bool is_thread_ptr(const IrType *t) { return t && t->kind == IR_PTR && t->level == LEVEL_thread; }

// What a pack's registers may be: scalars of the pointee, all alike, 16 bytes or less in all.
static void pack_rules(V *v, const IrOp *op) {
  const bool load = op->kind == OP_load_pack;
  const IrType *p = in(op, 0);
  const uint32_t n = load ? op->nresults : op->noperands < 2 ? 0 : op->noperands - 2;
  if (!want(v, op, is_thread_ptr(p), "the address is not a thread's pointer")) return;
  if (!want(v, op, n && bits_pow2(n) && n * ir_dtypes[p->dtype].bytes <= 16,
            "a pack is 1, 2, 4, ... elements, 16 bytes or less in all"))
    return;
  for (uint32_t i = 0; i < n; i++) {
    const IrType *t = load ? op->results[i].type : in(op, 2 + i);
    if (!want(v, op, is_reg(t, p->dtype),
              "a pack's elements are thread scalars of what the address points at"))
      return;
  }
  const IrType *mask = in(op, 1), *other = load ? in(op, 2) : NULL;
  want(v, op, !mask || is_reg(mask, IR_i1), "the mask is not a thread's i1");
  if (other)
    want(v, op, is_reg(other, p->dtype), "other is not a thread scalar of what the address points at");
}

static void matrix_rules(V *v, const IrOp *op) { // ldmatrix, stmatrix
  const IrType *p = in(op, 0);
  const uint32_t n = op->kind == OP_ldmatrix ? op->nresults : op->noperands - 1;
  want(v, op, is_thread_ptr(p) && p->space == SPACE_shared,
       "the address is not a thread's pointer into shared memory");
  want(v, op, n == 1 || n == 2 || n == 4, "moves 1, 2 or 4 matrices");
  for (uint32_t i = 0; i < n; i++) {
    const IrType *t = op->kind == OP_ldmatrix ? op->results[i].type : in(op, 1 + i);
    if (!want(v, op, is_reg(t, IR_i32), "a matrix is one i32 of each thread")) return;
  }
}

static void mma_rules(V *v, const IrOp *op) {
  const int64_t which = ir_attr_i(op, ATTR_mma);
  if (!want(v, op, which >= 0 && which < MMA_COUNT, "there is no such shape")) return;
  const IrMmaInfo *s = &ir_mma[which];
  const uint32_t small = s->as + s->bs, cs = s->cs;
  if (!want(v, op, op->noperands == small + cs && op->nresults == cs,
            "the registers are not those of the shape"))
    return;
  for (uint32_t i = 0; i < small + cs; i++) {
    if (!want(v, op, is_reg(in(op, i), i < small ? IR_i32 : s->c), "a register is not of the shape's type"))
      return;
  }
  for (uint32_t i = 0; i < cs; i++) {
    if (!want(v, op, is_reg(op->results[i].type, s->c), "a result is not of the shape's type")) return;
  }
}

// a [m k] (or its buffer [k m]), b's buffer [k n] (or [n k]), c and the result [m n].
static void async_product_rules(V *v, const IrOp *op) {
  const IrType *a = in(op, 0), *b = in(op, 1), *c = in(op, 2), *r = op->results[0].type;
  const int at = ir_attr_i(op, ATTR_a_trans) ? 1 : 0, bt = ir_attr_i(op, ATTR_b_trans) ? 1 : 0;
  if (!want(v, op, a->kind == IR_TILE || a->kind == IR_MEMDESC, "a is neither a tile nor shared memory"))
    return;
  if (!want(v, op, a->rank == 2 && b->rank == 2 && r->rank == 2, "the operands are not matrices")) return;
  want(v, op, a->kind == IR_MEMDESC || !at, "a tile is never transposed");
  want(v, op,
       a->shape[at] == r->shape[0] && b->shape[1 - bt] == r->shape[1] && a->shape[1 - at] == b->shape[bt],
       "the shapes do not fit");
  want(v, op, !c || (ir_same_shape(c, r) && ir_same_elem(c, r)), "c is not of the result's type");
}

static void same_through(V *v, const IrOp *op) { // dot_wait, wgmma_wait
  if (!want(v, op, op->noperands == op->nresults, "gives another number of values than it takes")) return;
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (!want(v, op, in(op, i) == op->results[i].type, "changes a type")) return;
  }
  want(v, op, ir_attr_i(op, ATTR_pending) >= 0, "pending is negative");
}

bool ir_wgmma_shape(const IrOp *op, IrWgmmaShape *out) {
  const IrAttr *p = ir_attr(op, ATTR_product);
  const int64_t which = ir_attr_i(op, ATTR_wgmma);
  if (which < 0 || which >= WGMMA_COUNT || !p || p->ints.n != 5) return false;
  for (int i = 0; i < 5; i++) {
    if (p->ints.v[i] < 1 || p->ints.v[i] > IR_MAX_ELEMS || !bits_pow2((uint64_t)p->ints.v[i])) return false;
  }
  const IrWgmmaInfo *s = &ir_wgmma[which];
  *out = (IrWgmmaShape){.info = s,
                        .m = (int)p->ints.v[0],
                        .n = (int)p->ints.v[1],
                        .k = (int)p->ints.v[2],
                        .groups_m = (int)p->ints.v[3],
                        .groups_n = (int)p->ints.v[4]};
  out->blocks = out->m / (64 * out->groups_m);
  out->width = out->n / out->groups_n;
  out->steps = out->k / s->k;
  const IrType *a = in(op, 0);
  out->a_regs = a && ir_type_is_ptr(a) ? 0 : (uint32_t)(4 * out->blocks * out->steps);
  out->c_regs = (uint32_t)(out->blocks * out->width / 2);
  return out->blocks >= 1 && out->steps >= 1 && out->width >= 8 && out->width <= 256;
}

static void wgmma_rules(V *v, const IrOp *op) {
  IrWgmmaShape s;
  if (!want(v, op, op->noperands >= 2 && ir_wgmma_shape(op, &s), "there is no such product")) return;
  const uint32_t a = s.a_regs ? s.a_regs : 1;
  want(v, op, 4 * s.groups_m * s.groups_n == v->m->num_warps, "the groups are not the warps of the block");
  if (!want(v, op, op->nresults == s.c_regs && (op->noperands == a + 1 || op->noperands == a + 1 + s.c_regs),
            "the registers are not those of the product"))
    return;
  for (uint32_t i = 0; i < op->noperands; i++) {
    const IrType *t = in(op, i);
    const bool ok = i < s.a_regs ? is_reg(t, IR_i32)
                    : i <= a     ? is_thread_ptr(t) && t->space == SPACE_shared
                                 : is_reg(t, s.info->c);
    if (!want(v, op, ok, "an operand is not of the product's type")) return;
  }
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (!want(v, op, is_reg(op->results[i].type, s.info->c), "a result is not of the product's type")) return;
  }
}

static void strip_rules(V *v, const IrOp *op) {
  const IrType *d = in(op, 0), *m = in(op, 1);
  const int bytes = ir_dtypes[m->dtype].bytes;
  want(v, op,
       m->rank == 2 && m->shape[0] == 16 && m->shape[1] * bytes == 128 && m->layout &&
           (m->stages == v->m->num_warps || m->stages == 2 * v->m->num_warps),
       "the buffer is not one or two swizzled stages of 16 rows of 128 bytes for each warp");
  want(v, op, m->stages != v->m->num_warps || !ir_attr_i(op, ATTR_strip),
       "one buffer for each warp takes tiles of one strip only");
  want(v, op, d->rank >= 2 && d->dtype == m->dtype && (bytes == 2 || bytes == 4),
       "the tensor is not of 16-bit or 32-bit elements");
  if (!want(v, op, op->noperands == 2u + (uint32_t)d->rank + 16, "a strip is 16 registers")) return;
  for (uint32_t i = 2; i < op->noperands; i++) {
    if (!want(v, op, is_reg(in(op, i), IR_i32), "an index or a register is not a thread's i32")) return;
  }
}

void ir_lane_rules(V *v, const IrOp *op) {
  const IrType *a = in(op, 0);
  switch (op->kind) {
  case OP_relayout: {
    const IrType *r = op->results[0].type;
    want(v, op, ir_same_shape(a, r) && ir_same_elem(a, r), "changes more than the layout");
    break;
  }
  case OP_mem_ptr: {
    const IrType *r = op->results[0].type;
    want(v, op, r->dtype == a->dtype && r->space == a->space,
         "the result does not point at the buffer's elements");
    break;
  }
  case OP_load_pack:
  case OP_store_pack:
  case OP_add_pack: pack_rules(v, op); break;
  case OP_ldmatrix:
  case OP_stmatrix: matrix_rules(v, op); break;
  case OP_mma: mma_rules(v, op); break;
  case OP_strip_store: strip_rules(v, op); break;
  case OP_dot_async: async_product_rules(v, op); break;
  case OP_wgmma: wgmma_rules(v, op); break;
  case OP_dot_wait:
  case OP_wgmma_wait: same_through(v, op); break;
  case OP_copy_pack: {
    const int64_t bytes = ir_attr_i(op, ATTR_bytes);
    const IrType *src = in(op, 1), *mask = in(op, 2);
    want(v, op, is_thread_ptr(a) && a->space == SPACE_shared,
         "the destination is not a thread's pointer into shared memory");
    want(v, op, is_thread_ptr(src) && src->space == SPACE_global,
         "the source is not a thread's pointer into global memory");
    want(v, op, bytes == 4 || bytes == 8 || bytes == 16, "copies 4, 8 or 16 bytes");
    want(v, op, !mask || is_reg(mask, IR_i1), "the mask is not a thread's i1");
    break;
  }
  case OP_copy_wait: want(v, op, ir_attr_i(op, ATTR_pending) >= 0, "pending is negative"); break;
  default: break;
  }
}
