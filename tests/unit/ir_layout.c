// layouts: the algebra against brute force over every place of random layouts.
#include "harness/test.h"
#include "ir/ir.h"

#include <string.h>

typedef struct Case {
  int rank;
  int32_t shape[4], per_thread[4], lanes[4], warps[4], order[4];
  uint32_t bits;
  IrLayout l;
} Case;

static uint32_t below(Rng *r, uint32_t n) { return (uint32_t)(rng_next(r) % n); }

// Powers of two whose product is 1 << bits, spread over the axes.
static void spread(Rng *r, int rank, uint32_t bits, int32_t *out) {
  for (int i = 0; i < rank; i++) out[i] = 1;
  for (uint32_t b = 0; b < bits; b++) out[below(r, (uint32_t)rank)] *= 2;
}

static Case make(Rng *r) {
  Case c = {.rank = 1 + (int)below(r, 3), .bits = below(r, 12)};
  spread(r, c.rank, c.bits, c.shape);
  spread(r, c.rank, below(r, 4), c.per_thread);
  spread(r, c.rank, 5, c.lanes);
  spread(r, c.rank, below(r, 4), c.warps);
  for (int i = 0; i < c.rank; i++) c.order[i] = i;
  for (int i = c.rank - 1; i > 0; i--) {
    const uint32_t k = below(r, (uint32_t)i + 1);
    const int32_t t = c.order[i];
    c.order[i] = c.order[k];
    c.order[k] = t;
  }
  c.l = layout_blocked(c.rank, c.shape, c.per_thread, c.lanes, c.warps, c.order);
  return c;
}

static uint32_t places(const IrLayout *l) { return 1u << layout_bits(l); }

static void coords(int rank, const int32_t *shape, uint32_t index, uint32_t *x) {
  for (int i = rank - 1; i >= 0; i--) {
    x[i] = index % (uint32_t)shape[i];
    index /= (uint32_t)shape[i];
  }
}
static uint32_t flat(int rank, const int32_t *shape, const uint32_t *x) {
  uint32_t index = 0;
  for (int i = 0; i < rank; i++) index = index * (uint32_t)shape[i] + x[i];
  return index;
}

// Every element is held; of the places that hold it, exactly one has its free bits clear, and find names that one.
static void test_every_element_once(void **state) {
  (void)state;
  Rng r = {11};
  for (int n = 0; n < 300; n++) {
    const Case c = make(&r);
    assert_true(layout_covers(&c.l, c.bits));
    assert_false(layout_covers(&c.l, c.bits + 1));
    const uint32_t free = layout_free(&c.l);
    static uint32_t seen[1 << 12];
    memset(seen, 0, sizeof seen);
    for (uint32_t p = 0; p < places(&c.l); p++) {
      const uint32_t index = layout_index(&c.l, p);
      assert_true(index < 1u << c.bits);
      if (p & free) continue;
      seen[index]++;
      uint32_t found;
      assert_true(layout_find(&c.l, index, &found));
      assert_int_equal(found, p);
    }
    for (uint32_t i = 0; i < 1u << c.bits; i++) assert_int_equal(seen[i], 1);
    uint32_t none;
    assert_false(layout_find(&c.l, 1u << c.bits, &none));
  }
}

// A blocked layout as its comment says it: within a thread, a warp, the block, then repeated.
static void test_blocked(void **state) {
  (void)state;
  Rng r = {12};
  for (int n = 0; n < 200; n++) {
    const Case c = make(&r);
    for (uint32_t p = 0; p < places(&c.l); p++) {
      uint32_t reg = p & (layout_regs(&c.l) - 1), rest = p >> c.l.n[PLACE_REG], x[4] = {0}, done[4];
      uint32_t lane = rest & 31, warp = rest >> 5;
      for (int i = 0; i < c.rank; i++) done[i] = 1;
      const int32_t *parts[] = {c.per_thread, c.lanes, c.warps, c.shape};
      uint32_t *from[] = {&reg, &lane, &warp, &reg};
      for (int part = 0; part < 4; part++) {
        for (int k = 0; k < c.rank; k++) {
          const int i = c.order[k];
          const uint32_t left = (uint32_t)c.shape[i] / done[i];
          uint32_t size = part == 3 ? left : (uint32_t)parts[part][i];
          const uint32_t real = size < left ? size : left;
          if (part == 0 || part == 3) size = real; // registers beyond the tile are left out
          x[i] += *from[part] % size % real * done[i];
          *from[part] /= size;
          done[i] *= real;
        }
      }
      assert_int_equal(layout_index(&c.l, p), flat(c.rank, c.shape, x));
    }
  }
}

// mma.def's picture, register by register.
static void test_mma(void **state) {
  (void)state;
  for (uint32_t pack = 0; pack <= 2; pack++) {
    const uint32_t e = 1u << pack, k = 8 * e;
    const int32_t warps[2] = {2, 4}, cs[2] = {64, 64}, as[2] = {64, (int32_t)(2 * k)},
                  bs[2] = {(int32_t)(2 * k), 64};
    const IrLayout c = layout_mma_c(2, cs, warps), a = layout_mma_a(2, as, warps, pack),
                   b = layout_mma_b(2, bs, warps, pack);
    assert_true(layout_covers(&c, 12) && layout_covers(&a, 6 + pack + 4) && layout_covers(&b, 6 + pack + 4));
    for (uint32_t lane = 0; lane < 32; lane++) {
      for (uint32_t warp = 0; warp < 8; warp++) {
        const uint32_t g = lane / 4, t = lane % 4, wm = warp / 4, wn = warp % 4;
        for (uint32_t i = 0; i < 4; i++)
          assert_int_equal(layout_index(&c, layout_place(&c, i, lane, warp)),
                           (16 * wm + g + 8 * (i / 2)) * 64 + 8 * wn + 2 * t + i % 2);
        for (uint32_t i = 0; i < 4; i++)
          for (uint32_t j = 0; j < e; j++)
            assert_int_equal(layout_index(&a, layout_place(&a, i * e + j, lane, warp)),
                             (16 * wm + g + 8 * (i % 2)) * 2 * k + e * t + j + 4 * e * (i / 2));
        for (uint32_t i = 0; i < 2; i++)
          for (uint32_t j = 0; j < e; j++)
            assert_int_equal(layout_index(&b, layout_place(&b, i * e + j, lane, warp)),
                             (e * t + j + 4 * e * i) * 64 + 8 * wn + g);
      }
    }
  }
}

static void test_shape_ops(void **state) {
  (void)state;
  Rng r = {13};
  for (int n = 0; n < 200; n++) {
    const Case c = make(&r);
    int64_t perm[4];
    for (int i = 0; i < c.rank; i++) perm[i] = c.order[i];
    int32_t to[4], from[4];
    for (int i = 0; i < c.rank; i++) to[i] = c.shape[perm[i]];
    const IrLayout t = layout_trans(&c.l, c.rank, c.shape, perm);
    const IrLayout back = layout_trans_back(&t, c.rank, c.shape, perm);
    assert_true(layout_same(&back, &c.l));
    for (int i = 0; i < c.rank; i++) from[i] = below(&r, 2) ? 1 : c.shape[i];
    const IrLayout s = layout_slice(&c.l, c.rank, from, c.shape);
    const IrLayout joined = layout_join(&c.l);
    IrLayout halves;
    assert_true(layout_split(&joined, &halves));
    assert_true(layout_same(&halves, &c.l));
    const IrLayout small = layout_compact(&s);
    uint32_t elems = 0;
    for (int i = 0; i < c.rank; i++) elems += from[i] > 1 ? (uint32_t)bits_log2((uint64_t)from[i]) : 0;
    assert_true(layout_covers(&s, elems) && layout_covers(&small, elems));
    assert_int_equal(layout_free(&small) & (layout_regs(&small) - 1), 0);
    for (uint32_t p = 0; p < places(&c.l); p++) {
      uint32_t x[4], y[4];
      coords(c.rank, c.shape, layout_index(&c.l, p), x);
      for (int i = 0; i < c.rank; i++) y[i] = x[perm[i]];
      assert_int_equal(layout_index(&t, p), flat(c.rank, to, y));
      for (int i = 0; i < c.rank; i++) y[i] = from[i] == c.shape[i] ? x[i] : 0;
      assert_int_equal(layout_index(&s, p), flat(c.rank, from, y));
      for (uint32_t half = 0; half < 2; half++)
        assert_int_equal(layout_index(&joined, p << 1 | half), layout_index(&c.l, p) << 1 | half);
    }
  }
}

// What a move needs, by looking: for each thread, whether its elements lie in its own registers or its warp's.
static void test_move(void **state) {
  (void)state;
  Rng r = {14};
  int kinds[3] = {0};
  for (int n = 0; n < 3000; n++) {
    Case c = make(&r), d = c;
    for (int i = 0; i < c.rank; i++) d.order[i] = c.order[c.rank - 1 - i];
    if (below(&r, 2)) spread(&r, d.rank, below(&r, 3), d.per_thread);
    if (below(&r, 2)) memcpy(d.order, c.order, sizeof d.order);
    d.l = layout_blocked(d.rank, d.shape, d.per_thread, d.lanes, d.warps, d.order);
    bool own = true, warps = true;
    const uint32_t nwarps = 1u << c.l.n[PLACE_WARP];
    for (uint32_t w = 0; w < nwarps; w++) {
      static uint8_t in_warp[1 << 12], in_thread[1 << 12];
      memset(in_warp, 0, sizeof in_warp);
      for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t k = 0; k < layout_regs(&c.l); k++)
          in_warp[layout_index(&c.l, layout_place(&c.l, k, lane, w))] = 1;
      for (uint32_t lane = 0; lane < 32; lane++) {
        memset(in_thread, 0, sizeof in_thread);
        for (uint32_t k = 0; k < layout_regs(&c.l); k++)
          in_thread[layout_index(&c.l, layout_place(&c.l, k, lane, w))] = 1;
        for (uint32_t k = 0; k < layout_regs(&d.l); k++) {
          const uint32_t index = layout_index(&d.l, layout_place(&d.l, k, lane, w));
          own &= in_thread[index];
          warps &= in_warp[index];
        }
      }
    }
    const LayoutMove want = own ? MOVE_NONE : warps ? MOVE_LANES : MOVE_SHARED;
    assert_int_equal(layout_move(&c.l, &d.l), want);
    kinds[want]++;
  }
  assert_true(kinds[0] > 50 && kinds[1] > 50 && kinds[2] > 50);
}

static void test_run(void **state) {
  (void)state;
  Rng r = {15};
  for (int n = 0; n < 500; n++) {
    const Case c = make(&r);
    uint8_t reg[8];
    const uint32_t last = c.shape[c.rank - 1] > 1 ? (uint32_t)bits_log2((uint64_t)c.shape[c.rank - 1]) : 0;
    const uint32_t run = layout_run(&c.l, 0, last, 3, reg);
    uint32_t bits = 0;
    for (uint32_t k = 0; k < run; k++) bits |= 1u << reg[k];
    for (uint32_t p = 0; p < places(&c.l); p++) {
      if (p & bits) continue; // the run's start
      const uint32_t start = layout_index(&c.l, p);
      for (uint32_t j = 0; j < 1u << run; j++) {
        uint32_t q = p;
        for (uint32_t k = 0; k < run; k++) q |= (j >> k & 1) << reg[k];
        assert_int_equal(layout_index(&c.l, q), start + j);
        assert_int_equal(start & ((1u << run) - 1), 0);
      }
    }
    uint32_t inner = 0; // what the constructor promised
    while (inner < last && inner < 3 && 2 << inner <= c.per_thread[c.rank - 1]) inner++;
    assert_true(run >= inner);
  }
}

// The tile divided as another layout divides it: each warp holds what it holds there, every element once, and the first bits as before.
static void test_with_warps(void **state) {
  (void)state;
  Rng r = {23};
  int made = 0;
  for (int n = 0; n < 4000; n++) {
    const Case c = make(&r);
    Case d = c;
    spread(&r, d.rank, below(&r, 4), d.per_thread);
    spread(&r, d.rank, 5, d.lanes);
    d.l = layout_blocked(d.rank, d.shape, d.per_thread, d.lanes, d.warps, d.order);
    uint32_t run = 0;
    for (int k = 0; k < c.rank; k++) {
      for (int32_t e = c.per_thread[k]; e > 1 && run < c.l.n[PLACE_REG]; e /= 2) run++;
    }
    const uint32_t whole = below(&r, run + 3);
    IrLayout out;
    if (!layout_with_warps(&c.l, &d.l, run, whole, &out)) continue;
    made++;
    assert_int_equal(layout_bits(&out), layout_bits(&c.l));
    assert_int_equal(layout_free(&out), layout_free(&c.l));
    assert_true(layout_covers(&out, c.bits));
    for (uint32_t i = 0; i < whole && i < layout_bits(&c.l); i++) {
      const uint32_t k = i < run ? i : c.l.n[PLACE_REG] + i - run;
      if (k < (uint32_t)c.l.n[PLACE_REG] + c.l.n[PLACE_LANE]) assert_int_equal(out.at[k], c.l.at[k]);
    }
    assert_true(layout_move(&d.l, &out) != MOVE_SHARED);
  }
  assert_true(made > 100);
}

// PTX ISA's pictures of wgmma's registers: of c (D fragments of m64nNk*) and of a, for groups of four warps along both axes.
static void check_wgmma(uint32_t groups_m, uint32_t groups_n, uint32_t blocks, uint32_t width, uint32_t pack,
                        uint32_t steps) {
  const uint32_t e = 1u << pack, m = 64 * groups_m * blocks, n = width * groups_n, k = 8 * e * steps;
  const int32_t warps[2] = {(int32_t)(4 * groups_m), (int32_t)groups_n}, cs[2] = {(int32_t)m, (int32_t)n},
                as[2] = {(int32_t)m, (int32_t)k};
  const IrLayout c = layout_wgmma_c(2, cs, warps), a = layout_wgmma_a(2, as, warps, pack);
  assert_int_equal(layout_regs(&c), blocks * width / 2);
  assert_int_equal(layout_regs(&a), 4 * e * blocks * steps);
  assert_true(c.n[PLACE_LANE] == 5 && 1u << c.n[PLACE_WARP] == 4 * groups_m * groups_n);
  assert_true(a.n[PLACE_LANE] == 5 && a.n[PLACE_WARP] == c.n[PLACE_WARP]);
  for (uint32_t warp = 0; warp < 4 * groups_m * groups_n; warp++) {
    const uint32_t group = warp / 4, gm = group % groups_m, gn = group / groups_m;
    for (uint32_t lane = 0; lane < 32; lane++) {
      for (uint32_t b = 0; b < blocks; b++) {
        const uint32_t row = 64 * (gm + groups_m * b) + 16 * (warp % 4) + lane / 4;
        for (uint32_t i = 0; i < width / 2; i++) {
          const uint32_t col = gn * width + 8 * (i / 4) + 2 * (lane % 4) + i % 2;
          assert_int_equal(layout_index(&c, layout_place(&c, b * width / 2 + i, lane, warp)),
                           (row + 8 * (i / 2 % 2)) * n + col);
        }
        for (uint32_t i = 0; i < 4 * steps; i++) { // 32-bit registers of e elements
          for (uint32_t j = 0; j < e; j++) {
            const uint32_t col = 8 * e * (i / 4) + 4 * e * (i / 2 % 2) + e * (lane % 4) + j;
            assert_int_equal(layout_index(&a, layout_place(&a, (b * 4 * steps + i) * e + j, lane, warp)),
                             (row + 8 * (i % 2)) * k + col);
          }
        }
      }
    }
  }
}

static void test_wgmma(void **state) {
  (void)state;
  static const uint32_t widths[] = {8, 16, 64, 256};
  for (uint32_t groups_m = 1; groups_m <= 4; groups_m *= 2) {
    for (uint32_t groups_n = 1; groups_n * groups_m <= 4; groups_n *= 2) {
      for (uint32_t blocks = 1; blocks <= 2; blocks++) {
        for (size_t w = 0; w < DT_COUNTOF(widths); w++)
          check_wgmma(groups_m, groups_n, blocks, widths[w], (uint32_t)w % 3, 1u << (w + blocks) % 3);
      }
    }
  }
}

// Where a tensor map with this swizzle puts an element of a buffer that lies at a multiple of 1024 bytes: panel after panel of `line`
// bytes of columns, and bits 4.. of the address ^= bits 7.. .
static uint32_t tensor_map_offset(uint32_t rows, uint32_t cols, uint32_t elem, uint32_t row, uint32_t col) {
  const uint32_t line = cols * elem < 128 ? cols * elem : 128, fast = col * elem;
  const uint32_t at = fast / line * rows * line + row * line + fast % line;
  return line < 32 ? at : at ^ (at >> 7 & (line / 16 - 1)) << 4;
}

static void check_swizzled(int rank, const int32_t *shape, uint32_t elem) {
  const IrLayout l = layout_swizzled(rank, shape, elem);
  const uint32_t cols = (uint32_t)shape[rank - 1];
  uint32_t rows = 1;
  for (int i = 0; i < rank - 1; i++) rows *= (uint32_t)shape[i];
  assert_true(!l.n[PLACE_LANE] && !l.n[PLACE_WARP] && layout_regs(&l) == rows * cols);
  for (uint32_t row = 0; row < rows; row++) {
    for (uint32_t col = 0; col < cols; col++) {
      const uint32_t at = tensor_map_offset(rows, cols, elem, row, col);
      assert_int_equal(at % elem, 0);
      if (layout_index(&l, at / elem) != row * cols + col)
        fail_msg("%u rows of %u elements of %u bytes: [%u, %u] is not at byte %u", rows, cols, elem, row, col,
                 at);
    }
  }
}

static void test_swizzled(void **state) {
  (void)state;
  for (uint32_t elem = 1; elem <= 4; elem *= 2) {
    for (int32_t rows = 1; rows <= 64; rows *= 2) {
      for (int32_t bytes = 16; bytes <= 512; bytes *= 2) { // 1 panel of 16 to 128 bytes, or up to 4
        const int32_t cols = bytes / (int32_t)elem, two[2] = {rows, cols}, three[3] = {1, rows, cols},
                      many[3] = {4, rows, cols};
        check_swizzled(2, two, elem);
        check_swizzled(3, three, elem);
        check_swizzled(3, many, elem);
      }
    }
  }
}

// At each place the offset of the element that the tile has there.
static void test_in_memory(void **state) {
  (void)state;
  Rng r = {31};
  for (int n = 0; n < 300; n++) {
    const Case c = make(&r);
    const IrLayout buffer = layout_swizzled(c.rank, c.shape, 1u << below(&r, 3)),
                   m = layout_in_memory(&buffer, &c.l);
    for (int d = 0; d < PLACE_DIMS; d++) assert_int_equal(m.n[d], c.l.n[d]);
    uint32_t offset[1 << 12]; // by index, without the layout's algebra
    for (uint32_t i = 0; i < 1u << c.bits; i++) offset[layout_index(&buffer, i)] = i;
    for (uint32_t p = 0; p < places(&c.l); p++)
      assert_int_equal(layout_index(&m, p), offset[layout_index(&c.l, p)]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_with_warps), cmocka_unit_test(test_every_element_once),
      cmocka_unit_test(test_blocked),    cmocka_unit_test(test_mma),
      cmocka_unit_test(test_shape_ops),  cmocka_unit_test(test_move),
      cmocka_unit_test(test_run),        cmocka_unit_test(test_wgmma),
      cmocka_unit_test(test_swizzled),   cmocka_unit_test(test_in_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
