// interp_lanes: the ops of the lowered stage that a thread or a warp does with registers and packs.
#include "ir/interp_impl.h"

#include <string.h>

Step x_mem_ptr(World *w, Agent *a, const Ins *i) {
  (void)w;
  const uint32_t n = interp_count(a, i);
  char *r = interp_at(a, i->r);
  for (uint32_t k = 0; k < n; k++)
    memcpy(r + (size_t)k * i->r.stride * 8, interp_at(a, i->a) + (size_t)k * i->a.stride * 8, 8);
  return GO;
}

// ---- packs -------------------------------------------------------------------------------------------------------------------
static char *elem(const Agent *a, Ref r, uint32_t k) {
  return interp_at(a, r) + (size_t)k * r.stride * r.esize;
}

// Where a pack of thread k lies, if it may be accessed.
static bool pack_at(World *w, Agent *a, const Ins *i, uint32_t k, size_t bytes, unsigned kind, char **at) {
  const Operands *o = i->extra;
  const IrType *p = ir_operand(i->op, 0)->type;
  memcpy(at, elem(a, o->at[0], k), 8);
  if ((uintptr_t)*at % bytes) {
    interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE,
                 "%s accesses a pack of %zu bytes at an address that they do not divide", interp_who(w, a),
                 bytes);
    return false;
  }
  if (p->space == SPACE_shared) return interp_mem_range(w, a, i, *at, bytes, kind, k);
  const Access x = {.addr = (uint64_t)(uintptr_t)*at,
                    .bytes = bytes,
                    .kind = kind,
                    .warp = interp_warp(a, i, k),
                    .scope = SCOPE_gpu,
                    .esize = (int)bytes,
                    .ins = i};
  return interp_access(w, a, &x);
}

static bool acts(const Agent *a, Ref mask, uint32_t k) { return !mask.space || *elem(a, mask, k); }

Step x_load_pack(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra; // p, mask, other (as many as there are), then the results
  const uint32_t n = interp_count(a, i), results = i->op->nresults, first = o->n;
  const size_t es = o->at[first].esize;
  const bool bits = i->op->results[0].type->dtype == IR_i1 && !ir_type_is_ptr(i->op->results[0].type);
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    char *at = NULL;
    const bool on = o->n < 2 || acts(a, o->at[1], k);
    const bool ok = on && pack_at(w, a, i, k, es * results, ACC_READ, &at);
    for (uint32_t j = 0; j < results; j++) {
      char *r = elem(a, o->at[first + j], k);
      if (ok)
        memcpy(r, at + j * es, es);
      else if (!on && o->n > 2 && o->at[2].space)
        memcpy(r, elem(a, o->at[2], k), es);
      else
        memset(r, 0, es);
      if (bits) *r = *r != 0;
    }
  }
  return SWITCH;
}

Step x_store_pack(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra; // p, mask, then the values
  const uint32_t n = interp_count(a, i), values = o->n - 2;
  const size_t es = o->at[2].esize;
  for (uint32_t k = 0; k < n; k++) {
    if ((!i->n && !interp_active(a, k)) || !acts(a, o->at[1], k)) continue;
    char *at = NULL, data[16];
    if (es * values > sizeof data || !pack_at(w, a, i, k, es * values, ACC_WRITE, &at)) continue;
    for (uint32_t j = 0; j < values; j++) memcpy(data + j * es, elem(a, o->at[2 + j], k), es);
    if (ir_operand(i->op, 0)->type->space == SPACE_shared) {
      memcpy(at, data, es * values);
      continue;
    }
    const Access x = {.addr = (uint64_t)(uintptr_t)at,
                      .bytes = es * values,
                      .kind = ACC_WRITE,
                      .warp = interp_warp(a, i, k),
                      .esize = (int)es,
                      .ins = i};
    interp_write(w, a, &x, data, 1, values);
  }
  return SWITCH;
}

// Done when issued: a copy that is not waited for shows in the stages before, where copies run in the background.
Step x_copy_pack(World *w, Agent *a, const Ins *i) {
  const uint32_t n = interp_count(a, i);
  const size_t bytes = (size_t)ir_attr_i(i->op, ATTR_bytes);
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    char *dst, *src;
    memcpy(&dst, elem(a, i->a, k), 8);
    memcpy(&src, elem(a, i->b, k), 8);
    if (!interp_mem_range(w, a, i, dst, bytes, ACC_WRITE, k)) continue;
    if (i->c.space && !*elem(a, i->c, k)) {
      memset(dst, 0, bytes);
      continue;
    }
    if ((uintptr_t)src % bytes || (uintptr_t)dst % bytes) {
      interp_fault(w, FAULT_BOUNDS, i->op->loc, LOC_NONE,
                   "%s copies %zu bytes at an address that they do not divide", interp_who(w, a), bytes);
      continue;
    }
    const Access x = {.addr = (uint64_t)(uintptr_t)src,
                      .bytes = bytes,
                      .kind = ACC_READ,
                      .warp = interp_warp(a, i, k),
                      .esize = (int)bytes,
                      .ins = i};
    if (interp_access(w, a, &x)) memcpy(dst, src, bytes);
  }
  return SWITCH;
}

// ---- matrices of 8 x 8 16-bit elements ----------------------------------------------------------------------------------------
static Step matrices(World *w, Agent *a, const Ins *i, bool load) {
  const Operands *o = i->extra; // p, then registers
  const uint32_t n = interp_count(a, i), count = load ? i->op->nresults : o->n - 1;
  const bool transposed = ir_attr_i(i->op, ATTR_transposed);
  for (uint32_t first = 0; first + 32 <= n; first += 32) {
    for (uint32_t m = 0; m < count; m++) {
      char *row[8];
      bool ok = true;
      for (uint32_t j = 0; j < 8; j++)
        ok &= pack_at(w, a, i, first + 8 * m + j, 16, load ? ACC_READ : ACC_WRITE, &row[j]);
      for (uint32_t lane = 0; ok && lane < 32; lane++) {
        char *r = elem(a, o->at[1 + m], first + lane);
        for (uint32_t e = 0; e < 2; e++) {
          const uint32_t x = lane / 4, y = 2 * (lane % 4) + e; // row and column of what the lane holds
          char *at = transposed ? row[y] + 2 * x : row[x] + 2 * y;
          if (load)
            memcpy(r + 2 * e, at, 2);
          else
            memcpy(at, r + 2 * e, 2);
        }
      }
    }
  }
  return SWITCH;
}
Step x_ldmatrix(World *w, Agent *a, const Ins *i) { return matrices(w, a, i, true); }
Step x_stmatrix(World *w, Agent *a, const Ins *i) { return matrices(w, a, i, false); }

// ---- the matrix unit ---------------------------------------------------------------------------------------------------------------
static double packed(const Agent *a, Ref r, uint32_t lane, IrDtype d, uint32_t j) {
  const uint32_t es = ir_dtypes[d].bytes;
  uint64_t bits = 0;
  memcpy(&bits, elem(a, r, lane) + (size_t)j * es, es);
  if (d == IR_i8) return (double)(int8_t)bits;
  return ir_bits_float(d, bits);
}

// mma.def's fragments, element by element.
Step x_mma(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  const IrMmaInfo *s = &ir_mma[ir_attr_i(i->op, ATTR_mma)];
  const uint32_t n = interp_count(a, i), e = 4 / ir_dtypes[s->a].bytes;
  (void)w;
  for (uint32_t first = 0; first + 32 <= n; first += 32) {
    double am[16][32] = {{0}}, bm[32][8] = {{0}}, cm[16][8] = {{0}};
    for (uint32_t lane = 0; lane < 32; lane++) {
      const uint32_t g = lane / 4, t = lane % 4;
      for (uint32_t r = 0; r < s->as; r++)
        for (uint32_t j = 0; j < e; j++)
          am[g + 8 * (r % 2)][e * t + j + 4 * e * (r / 2)] = packed(a, o->at[r], first + lane, s->a, j);
      for (uint32_t r = 0; r < s->bs; r++)
        for (uint32_t j = 0; j < e; j++)
          bm[e * t + j + 4 * e * r][g] = packed(a, o->at[s->as + r], first + lane, s->b, j);
      for (uint32_t r = 0; r < s->cs; r++) {
        const char *c = elem(a, o->at[s->as + s->bs + r], first + lane);
        cm[g + 8 * (r / 2)][2 * t + r % 2] =
            s->c == IR_i32 ? (double)interp_int(c, 4) : (double)*(const float *)c;
      }
    }
    for (int m = 0; m < s->m; m++)
      for (int col = 0; col < s->n; col++)
        for (int k = 0; k < s->k; k++) cm[m][col] += am[m][k] * bm[k][col];
    for (uint32_t lane = 0; lane < 32; lane++) {
      const uint32_t g = lane / 4, t = lane % 4;
      for (uint32_t r = 0; r < s->cs; r++) {
        char *d = elem(a, o->at[s->as + s->bs + s->cs + r], first + lane);
        const double x = cm[g + 8 * (r / 2)][2 * t + r % 2];
        if (s->c == IR_i32)
          interp_put_int(d, 4, (int64_t)(int32_t)(int64_t)x);
        else
          *(float *)d = (float)x;
      }
    }
  }
  return GO;
}

// ---- the matrix unit of four warps -------------------------------------------------------------------------------------------------
static double number(IrDtype d, const char *p) {
  uint64_t bits = 0;
  memcpy(&bits, p, ir_dtypes[d].bytes);
  return d == IR_i8 ? (double)(int8_t)bits : ir_bits_float(d, bits);
}

typedef struct Swizzled { // an operand in shared memory
  const char *base;
  IrDtype d;
  int cols;
  bool trans;
  IrLayout at; // index to offset
} Swizzled;
static Swizzled swizzled(char *base, IrDtype d, int rows, int cols, bool trans) { // rows, cols of the operand
  const int32_t shape[2] = {trans ? cols : rows, trans ? rows : cols};
  const IrLayout mem = layout_swizzled(2, shape, ir_dtypes[d].bytes);
  IrLayout id = {.n = {mem.n[PLACE_REG]}};
  for (uint32_t b = 0; b < id.n[0]; b++) id.at[b] = 1u << b;
  return (Swizzled){base, d, shape[1], trans, layout_in_memory(&mem, &id)};
}
static double of_memory(const Swizzled *s, int row, int col) {
  const int index = s->trans ? col * s->cols + row : row * s->cols + col;
  return number(s->d, s->base + (size_t)layout_index(&s->at, (uint32_t)index) * ir_dtypes[s->d].bytes);
}

// Each warp does its rows: 16 of every block of 64.
static void warp_product(World *w, Agent *a, const Ins *i, const IrWgmmaShape *s, uint32_t first,
                         uint32_t warp, const Swizzled *am, const Swizzled *bm) {
  const Operands *o = i->extra;
  const uint32_t group = warp / 4, e = 4 / ir_dtypes[s->info->a].bytes, an = s->a_regs ? s->a_regs : 1;
  const int gm = (int)group % s->groups_m, col0 = (int)group / s->groups_m * s->width;
  const bool has_c = o->n > an + 1;
  const size_t bytes = (size_t)s->k * (size_t)(s->width + 1) * sizeof(double);
  double *row_of_a = interp_pool_get(w, bytes), *b = row_of_a + s->k, sums[256];
  for (int k = 0; k < s->k; k++)
    for (int col = 0; col < s->width; col++) b[k * s->width + col] = of_memory(bm, k, col0 + col);
  for (int block = 0; block < s->blocks; block++) {
    const int row0 = 64 * (gm + s->groups_m * block) + 16 * (int)(warp % 4);
    for (int row = 0; row < 16; row++) {
      for (int k = 0; k < s->k; k++) {
        if (!s->a_regs) {
          row_of_a[k] = of_memory(am, row0 + row, k);
          continue;
        }
        const int step = k / s->info->k, in = k % s->info->k, half = s->info->k / 2; // mma.def's a
        const uint32_t lane = (uint32_t)(row % 8 * 4 + in % half / (int)e);
        const uint32_t reg = (uint32_t)((block * s->steps + step) * 4 + row / 8 + 2 * (in / half));
        row_of_a[k] = packed(a, o->at[reg], first + lane, s->info->a, (uint32_t)in % e);
      }
      memset(sums, 0, (size_t)s->width * sizeof *sums);
      for (int k = 0; k < s->k; k++)
        for (int col = 0; col < s->width; col++) sums[col] += row_of_a[k] * b[k * s->width + col];
      for (int col = 0; col < s->width; col++) {
        const uint32_t lane = (uint32_t)(row % 8 * 4 + col % 8 / 2);
        const uint32_t reg = (uint32_t)(block * s->width / 2 + col / 8 * 4 + row / 8 * 2 + col % 2);
        double sum = sums[col];
        if (has_c) {
          const char *c = elem(a, o->at[an + 1 + reg], first + lane);
          sum += s->info->c == IR_i32 ? (double)interp_int(c, 4) : (double)*(const float *)c;
        }
        char *d = elem(a, o->at[o->n + reg], first + lane);
        if (s->info->c == IR_i32)
          interp_put_int(d, 4, (int64_t)(int32_t)(int64_t)sum);
        else
          *(float *)d = (float)sum;
      }
    }
  }
  interp_pool_put(w, row_of_a, bytes);
}

Step x_wgmma(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  IrWgmmaShape s;
  if (!ir_wgmma_shape(i->op, &s)) return GO;
  const uint32_t n = interp_count(a, i), an = s.a_regs ? s.a_regs : 1;
  for (uint32_t first = 0; first + 32 <= n; first += 32) {
    char *pa = NULL, *pb;
    if (!s.a_regs) memcpy(&pa, elem(a, o->at[0], first), 8);
    memcpy(&pb, elem(a, o->at[an], first), 8);
    const size_t ab = (size_t)s.m * (size_t)s.k * ir_dtypes[s.info->a].bytes,
                 bb = (size_t)s.k * (size_t)s.n * ir_dtypes[s.info->b].bytes;
    if (!s.a_regs && !interp_product_reads(w, a, i, pa, ab, first)) continue;
    if (!interp_product_reads(w, a, i, pb, bb, first)) continue;
    Swizzled am = {0};
    if (!s.a_regs) am = swizzled(pa, s.info->a, s.m, s.k, ir_attr_i(i->op, ATTR_a_trans));
    const Swizzled bm = swizzled(pb, s.info->b, s.k, s.n, ir_attr_i(i->op, ATTR_b_trans));
    warp_product(w, a, i, &s, first, (uint32_t)(a->lane0 + first) / 32, &am, &bm);
  }
  a->products++;
  return SWITCH;
}

Step x_wgmma_wait(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra; // values, then results
  const uint32_t n = interp_count(a, i), values = i->op->nresults;
  interp_product_wait(w, a, ir_attr_i(i->op, ATTR_pending));
  for (uint32_t v = 0; v < values; v++) {
    for (uint32_t k = 0; k < n; k++)
      memcpy(elem(a, o->at[values + v], k), elem(a, o->at[v], k), o->at[v].esize);
  }
  return GO;
}

// Done when issued, like copies to shared memory.
Step x_strip_store(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  const InterpDesc *d = (const InterpDesc *)interp_at(a, o->at[0]);
  const IrType *m = ir_operand(i->op, 1)->type;
  const uint32_t rank = (uint32_t)ir_operand(i->op, 0)->type->rank;
  IrType block = *m; // with the tensor's axes
  block.rank = (int)rank;
  for (uint32_t k = 0; k < rank; k++) block.shape[k] = k + 2 < rank ? 1 : m->shape[k + 2 - rank];
  const uint32_t n = interp_count(a, i), e = 4u / ir_dtypes[m->dtype].bytes; // elements of a word
  const int how = ir_attr(i->op, ATTR_rmw) ? 2 : 1;
  for (uint32_t first = 0; first + 32 <= n; first += 32) {
    uint32_t rows[16][32]; // of words
    for (uint32_t lane = 0; lane < 32; lane++) {
      for (uint32_t reg = 0; reg < 16; reg++) {
        const uint32_t k = reg * e, col = 8 * (k / 4) + 2 * (lane % 4) + k % 2;
        memcpy(&rows[lane / 4 + 8 * (k / 2 % 2)][col / e], elem(a, o->at[2 + rank + reg], first + lane), 4);
      }
    }
    int64_t at[5] = {0};
    for (uint32_t k = 0; k < rank && k < 5; k++) at[k] = interp_ref_int(a, o->at[2 + k], first);
    interp_desc_block(w, a, i, d, &block, at, (char *)rows, how, (IrRmw)ir_attr_i(i->op, ATTR_rmw), NULL);
  }
  return SWITCH;
}
