// Random kernels of products, for a machine with products of four warps and tensor maps: the interpreter runs each as written, laid out and
// lowered, checked for races, and the memory must be the same. Blocks come through pointers or through descriptors, in either order, and
// from registers; loops are pipelined, in a row, of no turns, within loops over tiles; sums go out by pointers or descriptors.
// Contents are small whole numbers, so that every order of adding gives the same. Arguments: see harness/seeds.h.
#include "harness/seeds.h"
#include "pass_place.h"

typedef struct Types {
  const char *a, *b, *sum, *prec;
  int bytes; // of an element
  bool any_major;
} Types;
static const Types types[] = {
    {"f16", "f16", "f32", "", 2, true},
    {"bf16", "bf16", "f32", "", 2, true},
    {"f32", "f32", "f32", " {prec=tf32}", 4, false},
    {"i8", "i8", "i32", "", 1, false},
    {"f8e4m3", "f8e4m3", "f32", "", 1, false},
    {"f8e5m2", "f8e4m3", "f32", "", 1, false},
};

typedef struct Block { // of a tensor of rows x cols elements in memory
  const char *name, *type;
  int r, c, rows, cols, ld; // of a block; of the tensor; elements from row to row
  bool desc, batched, masked;
  const char *pad;
} Block;

typedef struct Text {
  Arena *arena;
  Rng rng;
  char *s;
  int next; // names
} Text;

static uint32_t below(Text *t, uint32_t n) { return (uint32_t)(rng_next(&t->rng) % n); }
static bool chance(Text *t, uint32_t percent) { return below(t, 100) < percent; }

__attribute__((format(printf, 2, 3))) static void put(Text *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  t->s = arena_printf(t->arena, "%s%s", t->s, arena_vprintf(t->arena, fmt, ap));
  va_end(ap);
}

// The tensor's descriptor, where it has one: at the kernel's start.
static void put_desc(Text *t, const Block *b) {
  if (!b->desc) return;
  const char *n = b->name;
  put(t, "  %%%s_rows = const {value=%d} : i32\n  %%%s_cols = const {value=%d} : i32\n", n, b->rows, n,
      b->cols);
  put(t, "  %%%s_ld = const {value=%d} : i64\n", n, b->ld);
  if (b->batched)
    put(t,
        "  %%%s = make_desc %%p_%s, %%one, %%%s_rows, %%%s_cols, %%%s_ld, %%%s_ld, %%l1 {pad=%s} : desc<1x%dx%dx%s>\n",
        n, n, n, n, n, n, b->pad, b->r, b->c, b->type);
  else
    put(t, "  %%%s = make_desc %%p_%s, %%%s_rows, %%%s_cols, %%%s_ld, %%l1 {pad=%s} : desc<%dx%dx%s>\n", n, n,
        n, n, n, b->pad, b->r, b->c, b->type);
}

// Addresses of a block's elements, and which of them are within the tensor.
static int put_addresses(Text *t, const Block *b, const char *row, const char *col, const char *indent) {
  const int k = t->next++;
  const char *at[2] = {row, col};
  const int size[2] = {b->r, b->c}, limit[2] = {b->rows, b->cols};
  for (int i = 0; i < 2; i++) {
    const char x = i ? 'c' : 'r';
    const int n = size[i], r = i ? 1 : n, c = i ? n : 1;
    put(t, "%s%%%c%d = arange {start=0, end=%d} : tile<%dxi32>\n", indent, x, k, n, n);
    put(t, "%s%%%cs%d = splat %%%s : tile<%dxi32>\n%s%%%ca%d = add %%%c%d, %%%cs%d : tile<%dxi32>\n", indent,
        x, k, at[i], n, indent, x, k, x, k, x, k, n);
    put(t, "%s%%%ce%d = expand_dims %%%ca%d {axis=%d} : tile<%dx%dxi32>\n", indent, x, k, x, k, 1 - i, r, c);
    put(t, "%s%%%cb%d = broadcast %%%ce%d : tile<%dx%dxi32>\n", indent, x, k, x, k, b->r, b->c);
    if (!b->masked) continue;
    put(t, "%s%%%cl%d = const {value=%d} : tile<%dx%dxi32>\n", indent, x, k, limit[i], b->r, b->c);
    put(t, "%s%%%cm%d = cmp %%%cb%d, %%%cl%d {cmp=slt} : tile<%dx%dxi1>\n", indent, x, k, x, k, x, k, b->r,
        b->c);
  }
  if (b->masked) put(t, "%s%%m%d = and %%rm%d, %%cm%d : tile<%dx%dxi1>\n", indent, k, k, k, b->r, b->c);
  put(t, "%s%%ld%d = const {value=%d} : tile<%dx%dxi32>\n", indent, k, b->ld, b->r, b->c);
  put(t, "%s%%ro%d = mul %%rb%d, %%ld%d : tile<%dx%dxi32>\n", indent, k, k, k, b->r, b->c);
  put(t, "%s%%o%d = add %%ro%d, %%cb%d : tile<%dx%dxi32>\n", indent, k, k, k, b->r, b->c);
  put(t, "%s%%ps%d = splat %%p_%s : tile<%dx%dxptr<%s>>\n", indent, k, b->name, b->r, b->c, b->type);
  put(t, "%s%%pa%d = ptr_add %%ps%d, %%o%d : tile<%dx%dxptr<%s>>\n", indent, k, k, k, b->r, b->c, b->type);
  return k;
}

// Loads the block at (row, col); the value's name is %v with the number returned.
static int put_load(Text *t, const Block *b, const char *row, const char *col, const char *indent) {
  if (!b->desc) {
    const int k = put_addresses(t, b, row, col, indent);
    put(t, "%s%%z%d = const {value=0} : tile<%dx%dx%s>\n", indent, k, b->r, b->c, b->type);
    if (b->masked)
      put(t, "%s%%v%d = load %%pa%d, %%m%d, %%z%d : tile<%dx%dx%s>\n", indent, k, k, k, k, b->r, b->c,
          b->type);
    else
      put(t, "%s%%v%d = load %%pa%d, _, _ : tile<%dx%dx%s>\n", indent, k, k, b->r, b->c, b->type);
    return k;
  }
  const int k = t->next++;
  if (b->batched) {
    put(t, "%s%%w%d = desc_load %%%s, %%zero, %%%s, %%%s : tile<1x%dx%dx%s>\n", indent, k, b->name, row, col,
        b->r, b->c, b->type);
    put(t, "%s%%v%d = reshape %%w%d : tile<%dx%dx%s>\n", indent, k, k, b->r, b->c, b->type);
  } else {
    put(t, "%s%%v%d = desc_load %%%s, %%%s, %%%s : tile<%dx%dx%s>\n", indent, k, b->name, row, col, b->r,
        b->c, b->type);
  }
  return k;
}

static void put_store(Text *t, const Block *b, const char *value, const char *row, const char *col,
                      const char *indent) {
  if (!b->desc) {
    const int k = put_addresses(t, b, row, col, indent);
    if (b->masked)
      put(t, "%sstore %%pa%d, %%%s, %%m%d\n", indent, k, value, k);
    else
      put(t, "%sstore %%pa%d, %%%s, _\n", indent, k, value);
  } else if (b->batched) {
    const int k = t->next++;
    put(t, "%s%%w%d = reshape %%%s : tile<1x%dx%dx%s>\n", indent, k, value, b->r, b->c, b->type);
    put(t, "%sdesc_store %%%s, %%w%d, %%zero, %%%s, %%%s\n", indent, b->name, k, row, col);
  } else {
    put(t, "%sdesc_store %%%s, %%%s, %%%s, %%%s\n", indent, b->name, value, row, col);
  }
}

static int put_turned(Text *t, int v, int r, int c, const char *type, const char *indent) { // to [r c]
  const int k = t->next++;
  put(t, "%s%%v%d = trans %%v%d {perm=[1, 0]} : tile<%dx%dx%s>\n", indent, k, v, r, c, type);
  return k;
}

typedef struct Kernel {
  const char *text;
  int m, n, k, warps, stages, rows, cols, depth;
  int turns, more; // of the loop; of the loop behind it
} Kernel;

static int pick(Text *t, int low, int high) { // a power of two, the lower ones more often
  int n = 0;
  for (int x = low; x < high; x *= 2) n++;
  uint32_t i = below(t, (uint32_t)n + 1), j = below(t, (uint32_t)n + 1);
  return low << (i < j ? i : j);
}

enum { TILES = 2 }; // along each axis of the result

// Whole numbers of 16 bytes less than all of it, now and then.
static int edge(Text *t, int size, int bytes) {
  const int step = 16 / bytes, cut = chance(t, 40) ? step * (int)(1 + below(t, 3)) : 0;
  return cut < size ? size - cut : size;
}

static Block block(Text *t, const char *name, const char *type, int bytes, int r, int c, int rows, int cols,
                   bool descs) {
  Block b = {.name = name, .type = type, .r = r, .c = c, .ld = cols, .pad = chance(t, 10) ? "nan" : "zero"};
  b.desc = descs && c * bytes >= 16 && c <= 256 && r <= 256;
  b.batched = b.desc && chance(t, 25);
  b.masked = !b.desc && chance(t, 30);
  b.rows = b.desc || b.masked ? rows - (chance(t, 40) ? (int)below(t, 20) : 0) : rows;
  b.cols = b.desc || b.masked ? edge(t, cols, bytes) : cols;
  if (strcmp(type, "i8") == 0) b.pad = "zero";
  return b;
}

static void put_head(Text *t, int warps, int stages, const Block *const *blocks, int n) {
  put(t, "module stage=tile warps=%d stages=%d lanes=32\nkernel @k(", warps, stages);
  for (int i = 0; i < n; i++) put(t, "%%p_%s: ptr<%s> {divisible=16}, ", blocks[i]->name, blocks[i]->type);
  put(t,
      "%%n: i32, %%n2: i32, %%tiles: i32) {\n  %%zero = const {value=0} : i32\n  %%one = const {value=1} : i32\n");
  put(t, "  %%l1 = const {value=1} : i64\n");
  for (int i = 0; i < n; i++) put_desc(t, blocks[i]);
}

// c[rows cols] = the sum over blocks of k of a b, by tiles.
static Kernel product_kernel(Text *t) {
  Kernel k = {.warps = 4 << below(t, 3),
              .stages = 1 + (int)below(t, 5),
              .turns = (int)below(t, 5),
              .more = (int)below(t, 3)};
  const Types *ty = &types[chance(t, 50) ? 0 : below(t, (uint32_t)DT_COUNTOF(types))];
  k.m = 64 << below(t, 3), k.n = 8 << below(t, 6), k.k = pick(t, 32 / ty->bytes, 128);
  const int most = chance(t, 10) ? 64 * 128 * 128 : 64 * 64 * 64; // or it takes long
  while (k.m * k.n > 128 * 128 || k.m * k.n * k.k > most)
    *(k.n > 64 ? &k.n : k.k > 32 / ty->bytes ? &k.k : &k.m) /= 2;
  const bool is_int = strcmp(ty->sum, "i32") == 0, descs = chance(t, 65), a_turned = chance(t, 30),
             b_turned = chance(t, 50);
  const bool two = chance(t, 30), loops = chance(t, 60), half = !is_int && chance(t, 60);
  const bool changed = chance(t, 25) && strncmp(ty->a, "f8", 2) != 0; // a comes from registers
  k.rows = TILES * k.m, k.cols = TILES * k.n, k.depth = 6 * k.k;
  const char *out = half ? chance(t, 50) ? "f16" : "bf16" : ty->sum;
  const Block a = a_turned ? block(t, "a", ty->a, ty->bytes, k.k, k.m, k.depth, k.rows, descs)
                           : block(t, "a", ty->a, ty->bytes, k.m, k.k, k.rows, k.depth, descs),
              b = b_turned ? block(t, "b", ty->b, ty->bytes, k.n, k.k, k.cols, k.depth, descs)
                           : block(t, "b", ty->b, ty->bytes, k.k, k.n, k.depth, k.cols, descs),
              c = block(t, "c", out, half ? 2 : 4, k.m, k.n, k.rows, k.cols, chance(t, 60));
  const Block *const blocks[] = {&a, &b, &c};
  put_head(t, k.warps, 1 + (int)below(t, 3), blocks, 3);
  put(t,
      "  %%cm = const {value=%d} : i32\n  %%cn = const {value=%d} : i32\n  %%ck = const {value=%d} : i32\n",
      k.m, k.n, k.k);
  put(t, "  %%pid = program_id {axis=0} : i32\n  %%np = num_programs {axis=0} : i32\n");
  put(t, "  %%init = const {value=0} : tile<%dx%dx%s>\n", k.m, k.n, ty->sum);
  if (loops)
    put(t, "  for %%pid, %%tiles, %%np { (%%t: i32)\n");
  else
    put(t, "  %%t = add %%pid, %%zero : i32\n");
  put(t, "  %%tr = shr_u %%t, %%one : i32\n  %%tc = and %%t, %%one : i32\n");
  put(t, "  %%row = mul %%tr, %%cm : i32\n  %%col = mul %%tc, %%cn : i32\n");
  const char *lo = "zero", *hi = "n", *sum = "init";
  for (int i = 0; i < (two ? 2 : 1); i++) {
    put(t,
        "  %%s%d = for %%%s, %%%s, %%one, %%%s {stages=%d} : tile<%dx%dx%s> { (%%i%d: i32, %%acc%d: tile<%dx%dx%s>)\n",
        i, lo, hi, sum, k.stages, k.m, k.n, ty->sum, i, i, k.m, k.n, ty->sum);
    put(t, "    %%k%d = mul %%i%d, %%ck : i32\n", i, i);
    const char *at = arena_printf(t->arena, "k%d", i);
    int va = a_turned ? put_load(t, &a, at, "row", "    ") : put_load(t, &a, "row", at, "    ");
    if (a_turned) va = put_turned(t, va, k.m, k.k, ty->a, "    ");
    int vb = b_turned ? put_load(t, &b, "col", at, "    ") : put_load(t, &b, at, "col", "    ");
    if (b_turned) vb = put_turned(t, vb, k.k, k.n, ty->b, "    ");
    if (changed) {
      const int v = t->next++;
      put(t,
          is_int ? "    %%v%d = add %%v%d, %%v%d : tile<%dx%dx%s>\n"
                 : "    %%v%d = fadd %%v%d, %%v%d : tile<%dx%dx%s>\n",
          v, va, va, k.m, k.k, ty->a);
      va = v;
    }
    put(t, "    %%d%d = dot %%v%d, %%v%d, %%acc%d%s : tile<%dx%dx%s>\n    yield %%d%d }\n", i, va, vb, i,
        ty->prec, k.m, k.n, ty->sum, i);
    lo = "n", hi = "n2", sum = i ? "s1" : "s0";
  }
  if (half) {
    put(t, "  %%out = fcast %%%s : tile<%dx%dx%s>\n", sum, k.m, k.n, out);
    sum = "out";
  }
  put_store(t, &c, sum, "row", "col", "  ");
  put(t, loops ? "  yield }\n  return\n}\n" : "  return\n}\n");
  k.text = t->s;
  return k;
}

// c = the sum over blocks i of p(q k(i)) v(i): the second product reads what the first computes. Two such loops in a row, now and then.
static Kernel chain_kernel(Text *t) {
  Kernel k = {.warps = chance(t, 85) ? 4 : 8,
              .stages = 1 + (int)below(t, 4),
              .turns = (int)below(t, 3),
              .more = (int)below(t, 3)};
  const char *ty = chance(t, 70) ? "f16" : "bf16";
  k.m = 16 * k.warps, k.n = 128, k.k = 16 << below(t, 2);
  const int width = 128, keys = 6 * k.n;
  const bool descs = chance(t, 85), two = chance(t, 50), loops = chance(t, 40), k_turned = chance(t, 70);
  k.rows = TILES * TILES * k.m, k.cols = width, k.depth = keys;
  const Block q = block(t, "q", ty, 2, k.m, k.k, k.rows, k.k, descs && chance(t, 70)),
              kk = k_turned ? block(t, "k", ty, 2, k.n, k.k, keys, k.k, descs)
                            : block(t, "k", ty, 2, k.k, k.n, k.k, keys, descs),
              v = block(t, "v", ty, 2, k.n, width, keys, width, descs),
              c = block(t, "c", ty, 2, k.m, width, k.rows, width, chance(t, 70));
  const Block *const blocks[] = {&q, &kk, &v, &c};
  put_head(t, k.warps, 1 + (int)below(t, 4), blocks, 4);
  put(t,
      "  %%cm = const {value=%d} : i32\n  %%cn = const {value=%d} : i32\n  %%seven = const {value=7} : i32\n",
      k.m, k.n);
  put(t, "  %%pid = program_id {axis=0} : i32\n  %%np = num_programs {axis=0} : i32\n");
  put(t, "  %%init = const {value=0} : tile<%dx%dxf32>\n  %%s0 = const {value=0} : tile<%dx%dxf32>\n", k.m,
      width, k.m, k.n);
  put(t, "  %%low = const {value=1.0} : tile<%dx%dxf32>\n", k.m, k.n);
  put(t, "  %%na = and %%n, %%seven : i32\n  %%nb = and %%n2, %%seven : i32\n");
  put(t, "  %%mid = mul %%na, %%cn : i32\n  %%end = mul %%nb, %%cn : i32\n");
  if (loops)
    put(t, "  for %%pid, %%tiles, %%np { (%%t: i32)\n");
  else
    put(t, "  %%t = add %%pid, %%zero : i32\n");
  put(t, "  %%row = mul %%t, %%cm : i32\n");
  const int vq = put_load(t, &q, "row", "zero", "  ");
  const char *lo = "zero", *hi = "mid", *sum = "init";
  for (int i = 0; i < (two ? 2 : 1); i++) {
    put(t,
        "  %%sum%d = for %%%s, %%%s, %%cn, %%%s {stages=%d} : tile<%dx%dxf32> { (%%i%d: i32, %%acc%d: tile<%dx%dxf32>)\n",
        i, lo, hi, sum, k.stages, k.m, width, i, i, k.m, width);
    const char *at = arena_printf(t->arena, "i%d", i);
    int vk = k_turned ? put_load(t, &kk, at, "zero", "    ") : put_load(t, &kk, "zero", at, "    ");
    if (k_turned) vk = put_turned(t, vk, k.k, k.n, ty, "    ");
    put(t, "    %%first%d = dot %%v%d, %%v%d, %%s0 : tile<%dx%dxf32>\n", i, vq, vk, k.m, k.n);
    put(t, "    %%x%d = %s %%first%d, %%low : tile<%dx%dxf32>\n", i, i ? "fmin" : "fmax", i, k.m, k.n);
    put(t, "    %%p%d = fcast %%x%d : tile<%dx%dx%s>\n", i, i, k.m, k.n, ty);
    const int vv = put_load(t, &v, at, "zero", "    ");
    put(t, "    %%d%d = dot %%p%d, %%v%d, %%acc%d : tile<%dx%dxf32>\n    yield %%d%d }\n", i, i, vv, i, k.m,
        width, i);
    lo = "mid", hi = "end", sum = i ? "sum1" : "sum0";
  }
  put(t, "  %%out = fcast %%%s : tile<%dx%dx%s>\n", sum, k.m, width, ty);
  put_store(t, &c, "out", "row", "zero", "  ");
  put(t, loops ? "  yield }\n  return\n}\n" : "  return\n}\n");
  k.text = t->s;
  return k;
}

// A vector of n numbers at `at`, of a tensor of `size`; beyond it 0, or 1 where it comes through pointers.
static int put_vector(Text *t, const char *name, int n, int size, bool desc, const char *at,
                      const char *indent) {
  const int k = t->next++;
  if (desc) {
    put(t, "%s%%v%d = desc_load %%%s, %%%s : tile<%dxf32>\n", indent, k, name, at, n);
    return k;
  }
  put(t, "%s%%r%d = arange {start=0, end=%d} : tile<%dxi32>\n", indent, k, n, n);
  put(t, "%s%%rs%d = splat %%%s : tile<%dxi32>\n%s%%ra%d = add %%r%d, %%rs%d : tile<%dxi32>\n", indent, k, at,
      n, indent, k, k, k, n);
  put(t, "%s%%rl%d = const {value=%d} : tile<%dxi32>\n", indent, k, size, n);
  put(t, "%s%%m%d = cmp %%ra%d, %%rl%d {cmp=slt} : tile<%dxi1>\n", indent, k, k, k, n);
  put(t, "%s%%o%d = const {value=%s} : tile<%dxf32>\n", indent, k, chance(t, 50) ? "1.0" : "0.0", n);
  put(t, "%s%%ps%d = splat %%p_%s : tile<%dxptr<f32>>\n", indent, k, name, n);
  put(t, "%s%%pa%d = ptr_add %%ps%d, %%ra%d : tile<%dxptr<f32>>\n", indent, k, k, k, n);
  put(t, "%s%%v%d = load %%pa%d, %%m%d, %%o%d : tile<%dxf32>\n", indent, k, k, k, k, n);
  return k;
}

// Adds a value to a block of a tensor; the sums come in any order.
static void put_sum(Text *t, const Block *b, const char *value, const char *row, const char *col,
                    const char *indent) {
  if (b->desc) {
    put(t, "%sdesc_rmw %%%s, %%%s, %%%s, %%%s {rmw=fadd}\n", indent, b->name, value, row, col);
    return;
  }
  const int k = put_addresses(t, b, row, col, indent);
  put(t, "%s%%old%d = atomic_rmw %%pa%d, %%%s, %s {order=relaxed, scope=gpu, rmw=fadd} : tile<%dx%dx%s>\n",
      indent, k, k, value, b->masked ? arena_printf(t->arena, "%%m%d", k) : "_", b->r, b->c, b->type);
}

// %to = %from between -2 and 2, which every type has.
static void put_clamp(Text *t, const char *to, const char *from, int r, int c, const char *indent) {
  put(t,
      "%s%%%s_lo = const {value=-2.0} : tile<%dx%dxf32>\n%s%%%s_hi = const {value=2.0} : tile<%dx%dxf32>\n",
      indent, to, r, c, indent, to, r, c);
  put(t, "%s%%%s_a = fmax %%%s, %%%s_lo : tile<%dx%dxf32>\n%s%%%s = fmin %%%s_a, %%%s_hi : tile<%dx%dxf32>\n",
      indent, to, from, to, r, c, indent, to, to, to, r, c);
}

// As flash attention's backward pass: blocks that are held, vectors here and there, a product that needs not wait for the one before, sums
// into a tensor. One or two loops, within a loop over tiles or a choice.
static Kernel backward_kernel(Text *t) {
  Kernel k = {.warps = chance(t, 70) ? 4 : 8,
              .stages = 1 + (int)below(t, 4),
              .turns = (int)below(t, 4),
              .more = (int)below(t, 3)};
  enum { D = 64 };
  const int rows = 64 << (k.warps == 8 ? 1 : below(t, 2)), q = 32 << below(t, 2);
  k.m = rows, k.k = k.cols = D, k.depth = 6 * q, k.rows = TILES * TILES * rows;
  const bool descs = chance(t, 80), loops = chance(t, 50), choice = chance(t, 30), two = chance(t, 40);
  Block kb = block(t, "k", "f16", 2, rows, D, k.rows, D, descs && chance(t, 70)),
        vb = block(t, "v", "f16", 2, rows, D, k.rows, D, descs && chance(t, 70)),
        qb = block(t, "q", "f16", 2, q, D, k.depth, D, descs),
        db = block(t, "d", "f16", 2, q, D, k.depth, D, descs),
        ob = block(t, "o", "f32", 4, rows, D, k.rows, D, false);
  static const char *const sum_types[] = {"f32", "f16", "bf16"};
  const char *st = sum_types[chance(t, 50) ? 0 : below(t, 3)];
  Block sb = block(t, "s", st, *st == 'f' && st[1] == '3' ? 4 : 2, q, D, k.depth, D, chance(t, 60));
  kb.pad = vb.pad = qb.pad = db.pad = sb.pad = "zero";
  kb.batched = vb.batched = qb.batched = db.batched = sb.batched = false;
  const bool vectors_desc = descs && chance(t, 70);
  const Block x = {.name = "x", .type = "f32"}, y = {.name = "y", .type = "f32"};
  const Block *const blocks[] = {&kb, &vb, &qb, &db, &ob, &sb, &x, &y};
  put_head(t, k.warps, 1 + (int)below(t, 4), blocks, 8);
  if (vectors_desc)
    put(t,
        "  %%lx = const {value=%d} : i32\n  %%x = make_desc %%p_x, %%lx, %%l1 : desc<%dxf32>\n  %%y = make_desc %%p_y, %%lx, %%l1 : desc<%dxf32>\n",
        k.depth, q, q);
  put(t,
      "  %%cm = const {value=%d} : i32\n  %%cq = const {value=%d} : i32\n  %%three = const {value=3} : i32\n",
      rows, q);
  put(t, "  %%pid = program_id {axis=0} : i32\n  %%np = num_programs {axis=0} : i32\n");
  put(t, "  %%init = const {value=0} : tile<%dx%dxf32>\n  %%s0 = const {value=0} : tile<%dx%dxf32>\n", rows,
      D, rows, q);
  put(t, "  %%q0 = const {value=0} : tile<%dx%dxf32>\n  %%lz = const {value=0} : tile<%dxf32>\n", q, D, q);
  put(t, "  %%na = and %%n, %%three : i32\n  %%nb = and %%n2, %%three : i32\n");
  put(t, "  %%mid = mul %%na, %%cq : i32\n  %%end = mul %%nb, %%cq : i32\n");
  if (loops)
    put(t, "  for %%pid, %%tiles, %%np { (%%t: i32)\n");
  else
    put(t, "  %%t = add %%pid, %%zero : i32\n");
  put(t, "  %%row = mul %%t, %%cm : i32\n");
  const char *result = arena_printf(t->arena, "tile<%dx%dxf32>", rows, D);
  if (choice)
    put(t, "  %%odd = cmp %%t, %%one {cmp=ne} : i1\n  %%all, %%more = if %%odd : %s, %s {\n", result, result);
  const int vk = put_load(t, &kb, "row", "zero", "  "), vv = put_load(t, &vb, "row", "zero", "  ");
  const bool sums = chance(t, 70), early = chance(t, 60), last = chance(t, 40);
  const uint32_t first_vector = below(t, 5), second_vector = below(t, 4);
  const char *lo = "zero", *hi = "mid", *dk = "init", *dv = "init", *l = "lz";
  for (int i = 0; i < (two ? 2 : 1); i++) {
    const bool vectors = !i || chance(t, 60);
    put(t,
        "  %%dk%d, %%dv%d, %%last%d = for %%%s, %%%s, %%cq, %%%s, %%%s, %%%s {stages=%d} : %s, %s, tile<%dxf32> { (%%i%d: i32, %%ak%d: %s, %%av%d: %s, %%lv%d: tile<%dxf32>)\n",
        i, i, i, lo, hi, dk, dv, l, k.stages, result, result, q, i, i, result, i, result, i + 1, q);
    const char *at = arena_printf(t->arena, "i%d", i), *in = "    ";
    const char *n = arena_printf(t->arena, "%d", i);
#define NAME(x) arena_printf(t->arena, x "%s", n)
    int v1 = vectors && first_vector == 0 ? put_vector(t, "x", q, k.depth, vectors_desc, at, in) : -1;
    const int vq = put_load(t, &qb, at, "zero", in), tq = put_turned(t, vq, D, q, "f16", in);
    if (vectors && first_vector == 1) v1 = put_vector(t, "x", q, k.depth, vectors_desc, at, in);
    put(t, "    %%s%s_ = dot %%v%d, %%v%d, %%s0 : tile<%dx%dxf32>\n", n, vk, tq, rows, q);
    if (vectors && first_vector == 2) v1 = put_vector(t, "x", q, k.depth, vectors_desc, at, in);
    put_clamp(t, NAME("uc"), arena_printf(t->arena, "s%s_", n), rows, q, in);
    if (vectors && first_vector == 3) v1 = put_vector(t, "x", q, k.depth, vectors_desc, at, in);
    const char *p = NAME("uc");
    if (v1 >= 0) {
      put(t,
          "    %%xe%s = expand_dims %%v%d {axis=0} : tile<1x%dxf32>\n    %%xb%s = broadcast %%xe%s : tile<%dx%dxf32>\n",
          n, v1, q, n, n, rows, q);
      put(t, "    %%p%s_ = fadd %%%s, %%xb%s : tile<%dx%dxf32>\n", n, p, n, rows, q);
      p = arena_printf(t->arena, "p%s_", n);
    }
    put(t, "    %%ph%s = fcast %%%s : tile<%dx%dxf16>\n", n, p, rows, q);
    const int vd = put_load(t, &db, at, "zero", in);
    if (!early) put(t, "    %%nv%s = dot %%ph%s, %%v%d, %%av%s : %s\n", n, n, vd, n, result);
    const int td = put_turned(t, vd, D, q, "f16", in);
    put(t, "    %%dp%s_ = dot %%v%d, %%v%d, %%s0 : tile<%dx%dxf32>\n", n, vv, td, rows, q);
    int v2 = vectors && second_vector == 0 ? put_vector(t, "y", q, k.depth, vectors_desc, at, in) : -1;
    if (early) put(t, "    %%nv%s = dot %%ph%s, %%v%d, %%av%s : %s\n", n, n, vd, n, result);
    put_clamp(t, NAME("ue"), arena_printf(t->arena, "dp%s_", n), rows, q, in);
    if (vectors && second_vector == 1) v2 = put_vector(t, "y", q, k.depth, vectors_desc, at, in);
    const char *e = NAME("ue");
    if (v2 >= 0) {
      put(t,
          "    %%ye%s = expand_dims %%v%d {axis=0} : tile<1x%dxf32>\n    %%yb%s = broadcast %%ye%s : tile<%dx%dxf32>\n",
          n, v2, q, n, n, rows, q);
      put(t, "    %%uz%s = fsub %%%s, %%yb%s : tile<%dx%dxf32>\n", n, e, n, rows, q);
      e = NAME("uz");
    }
    put(t, "    %%ds%s = fcast %%%s : tile<%dx%dxf16>\n", n, e, rows, q);
    put(t, "    %%nk%s = dot %%ds%s, %%v%d, %%ak%s : %s\n", n, n, vq, n, result);
    if (sums) {
      put(t, "    %%dt%s = trans %%ds%s {perm=[1, 0]} : tile<%dx%dxf16>\n", n, n, q, rows);
      put(t, "    %%dq%s_ = dot %%dt%s, %%v%d, %%q0 : tile<%dx%dxf32>\n", n, n, vk, q, D);
      put_clamp(t, NAME("ug"), arena_printf(t->arena, "dq%s_", n), q, D, in);
      const char *g = NAME("ug");
      if (strcmp(st, "f32") != 0) {
        put(t, "    %%gh%s = fcast %%%s : tile<%dx%dx%s>\n", n, g, q, D, st);
        g = NAME("gh");
      }
      put_sum(t, &sb, g, at, "zero", in);
    }
    const char *next = arena_printf(t->arena, "lv%d", i + 1);
    if (last) next = arena_printf(t->arena, "v%d", put_vector(t, "y", q, k.depth, vectors_desc, at, in));
    put(t, "    yield %%nk%s, %%nv%s, %%%s }\n", n, n, next);
#undef NAME
    lo = "mid", hi = "end";
    dk = i ? "dk1" : "dk0", dv = i ? "dv1" : "dv0", l = i ? "last1" : "last0";
  }
  put(t,
      "  %%lsum = reduce %%%s {axis=0} : f32 { (%%ra: f32, %%rb: f32)\n    %%rc = fmax %%ra, %%rb : f32\n    yield %%rc }\n",
      l);
  put(t, "  %%lsp = splat %%lsum : %s\n  %%dvl = fadd %%%s, %%lsp : %s\n", result, dv, result);
  if (choice) {
    put(t, "  yield %%%s, %%dvl\n  } {\n  yield %%init, %%init }\n", dk);
    put(t, "  %%out = fadd %%all, %%more : %s\n", result);
  } else {
    put(t, "  %%out = fadd %%%s, %%dvl : %s\n", dk, result);
  }
  put_store(t, &ob, "out", "row", "zero", "  ");
  put(t, loops ? "  yield }\n  return\n}\n" : "  return\n}\n");
  k.text = t->s;
  return k;
}

// ---- running --------------------------------------------------------------------------------------------------------------------
static void fill_whole_numbers(void *p, size_t n, IrDtype d, uint64_t seed) {
  Rng r = {seed};
  const size_t w = ir_dtypes[d].bytes;
  for (size_t i = 0; i < n; i++) {
    const int x = (int)(rng_next(&r) % 5) - 2;
    const uint64_t bits = ir_dtypes[d].cls == IR_FLOAT ? ir_float_bits(d, x) : (uint64_t)(int64_t)x;
    memcpy((char *)p + i * w, &bits, w);
  }
}

static Memory memory_of(Arena *a, const IrFunc *f, size_t elems, uint64_t seed) {
  Memory m = {0};
  for (uint32_t i = 0; i < f->params.len; i++) {
    const IrType *t = f->body->args.data[i]->type;
    if (t->kind != IR_PTR) continue;
    m.dtype[m.n] = t->dtype;
    m.bytes[m.n] = elems * ir_dtypes[t->dtype].bytes;
    m.base[m.n] = arena_alloc(a, m.bytes[m.n], 128);
    fill_whole_numbers(m.base[m.n], elems, t->dtype, seed + i);
    m.n++;
  }
  return m;
}

typedef struct Launch {
  uint64_t seed;
  int turns, more, tiles, grid;
  bool check;
} Launch;

static InterpResult run_launch(Arena *a, const IrModule *mod, const Launch *c, const Memory *m) {
  InterpArg args[MAX_PARAMS];
  InterpMemory mem[MAX_PARAMS];
  int n = 0;
  for (; n < m->n; n++) {
    args[n].p = m->base[n];
    mem[n] = (InterpMemory){
        .base = m->base[n], .bytes = m->bytes[n], .name = "m", .segment = n, .initialised = true};
  }
  args[n++].i = c->turns;
  args[n++].i = c->turns + c->more;
  args[n++].i = c->tiles;
  const InterpCmd cmd = {
      .kind = INTERP_LAUNCH, .func = mod->funcs, .args = args, .grid = {(uint32_t)c->grid, 1, 1}};
  const InterpConfig cfg = {.arena = a,
                            .module = mod,
                            .ranks = 1,
                            .memory = mem,
                            .nmemory = m->n,
                            .cmds = &cmd,
                            .ncmds = 1,
                            .seed = c->seed % 3,
                            .check = c->check};
  InterpResult r;
  interp_run(&cfg, &r);
  return r;
}

static void launch(Arena *a, const IrModule *mod, const Launch *c, const Memory *m, const char *what) {
  const InterpResult r = run_launch(a, mod, c, m);
  if (r.status != ST_OK)
    fail_msg("seed %llu, %s: %s: %s", (unsigned long long)c->seed, what, status_name(r.status),
             r.nfindings ? r.findings[0].text : "");
}

// What the kernels of all seeds have had at some stage.
typedef enum Seen {
  PRODUCTS,
  FROM_REGISTERS,
  TURNED,
  PRODUCERS,
  BEHIND,
  LATE,
  COPIES,
  STRIPS,
  SUMS,
  HELD,
  VECTORS,
  FLYING,
  SEEN
} Seen;
static const char *const seen_names[] = {
    "products of four warps", "a from registers", "turned operands",     "producer warps",
    "products a turn later",  "late products",    "copies ahead",        "strips",
    "sums in strips",         "held blocks",      "vectors that travel", "several products in flight"};
static int seen[SEEN], checked;

static bool look(IrOp *op, void *user) {
  bool *here = user;
  const bool product = op->kind == OP_dot_async;
  here[PRODUCTS] |= product;
  here[FROM_REGISTERS] |= product && ir_operand(op, 0)->type->kind == IR_TILE;
  here[TURNED] |= product && (ir_attr_i(op, ATTR_a_trans) || ir_attr_i(op, ATTR_b_trans));
  here[PRODUCERS] |= op->kind == OP_warp_partitions;
  here[BEHIND] |= ir_attr_i(op, ATTR_until_use) != 0;
  here[LATE] |= ir_attr_i(op, ATTR_late) != 0;
  here[COPIES] |= op->kind == OP_copy_async;
  here[STRIPS] |= op->kind == OP_strip_store;
  here[SUMS] |= op->kind == OP_strip_store && ir_attr(op, ATTR_rmw);
  here[HELD] |= op->kind == OP_mbarrier_alloc && op->results[0].type->stages == 1;
  here[VECTORS] |= op->kind == OP_desc_load_async && ir_operand(op, 1)->type->rank == 1;
  here[FLYING] |= op->kind == OP_dot_wait && ir_attr_i(op, ATTR_pending) > 1;
  return true;
}

static void look_at(void *user, const char *pass, const IrModule *m) {
  (void)pass;
  ir_walk(m->funcs->body, look, user);
}

// What a producer does not need of its copy of the program is dropped by dce.
static const char *const orders[] = {
    NULL, // the GPU's
    "raise,behind,early,producer,dce,lay,low",
    "behind,cse,dce,producer,cse,dce,lay,cse,dce",
    "behind,early,producer,dce,lay,pipe,fetch",
    "early,producer,dce,lay,pipe,low,alloc,sync",
    "early,dce,lay,pipe,low,alloc,sync",
    "lay,pipe,cse,dce,fetch,cse,dce",
    "lay,pipe,low,cse,licm,dce,alloc,sync",
    "producer,dce,lay,cse,dce,pipe,cse,dce,low,alloc,sync",
};

static void one(uint64_t seed, bool show) {
  Arena a;
  TEST_ARENA(a);
  Text t = {.arena = &a, .rng = {seed * 7919 + 5}, .s = (char *)(uintptr_t) ""};
  const Kernel k = seed % 4 == 0   ? chain_kernel(&t)
                   : seed % 4 == 1 ? backward_kernel(&t)
                                   : product_kernel(&t);
  if (show) printf("%s\n", k.text);
  Diags d;
  diags_init(&d, &a);
  IrModule *tile = NULL;
  if (ir_parse(&a, ir_ctx_new(&a), &d, "k", k.text, strlen(k.text), &tile) != ST_OK ||
      ir_verify(tile, &d) != ST_OK)
    fail_msg("seed %llu: the generator is wrong: %s", (unsigned long long)seed, diags_render(&d, &a));
  const Launch c = {.seed = seed,
                    .turns = k.turns,
                    .more = k.more,
                    .tiles = (int)below(&t, TILES * TILES + 1),
                    .grid = 1 + (int)below(&t, TILES),
                    .check = chance(&t, 70)};
  size_t elems = (size_t)k.rows * (size_t)k.depth;
  const size_t others[] = {(size_t)k.cols * (size_t)k.depth, (size_t)k.rows * (size_t)k.cols,
                           (size_t)k.depth * (size_t)k.k};
  for (int i = 0; i < 3; i++) elems = others[i] > elems ? others[i] : elems;
  const Memory x = memory_of(&a, tile->funcs, elems, seed);
  launch(&a, tile, &c, &x, "as written");
  bool here[SEEN] = {false};
  for (int i = 0; i < 2; i++) {
    const char *names = i ? orders[1 + seed % (DT_COUNTOF(orders) - 1)] : orders[0];
    const char *what = names ? names : "the GPU's passes";
    IrModule *m = ir_module_clone(tile, &a);
    const PassMachine machine = {.vector_bits = 128, .wgmma = true, .tma = true};
    const PassConfig cfg = {
        .machine = &machine, .diags = &d, .verify = true, .explain = show, .dump = look_at, .user = here};
    const Status s = names ? pass_run_named(m, names, &cfg) : pass_run(m, PASS_GPU, &cfg);
    if (show) printf("%s:\n%s\n%s\n", what, diags_render(&d, &a), ir_print(m, &a));
    if (s != ST_OK) fail_msg("seed %llu, %s: %s", (unsigned long long)seed, what, diags_render(&d, &a));
    const Memory y = memory_of(&a, m->funcs, elems, seed);
    launch(&a, m, &c, &y, what);
    const Case same = {.name = arena_printf(&a, "seed %llu", (unsigned long long)seed)};
    compare(&same, &x, &y, what);
  }
  checked++;
  for (int i = 0; i < SEEN; i++) seen[i] += here[i];
  arena_free(&a);
}

static void test_random_products(void **state) {
  (void)state;
  seeds_run(one, 120, 15); // some 5 s of work
  for (int i = 0; i < SEEN; i++) {
    if (!seen[i] && checked >= 40) fail_msg("no kernel had %s", seen_names[i]);
  }
}

// ---- a stage that goes back too early -------------------------------------------------------------------------------------------------
static const char turns[] =
    "module stage=tile warps=4 stages=2 lanes=32\n"
    "kernel @k(%a: ptr<f16> {divisible=16}, %b: ptr<f16> {divisible=16}, %c: ptr<f32>, %n: i32, %n2: i32, %tiles: i32) {\n"
    "  %z = const {value=0} : i32\n  %one = const {value=1} : i32\n  %w = const {value=64} : i32\n"
    "  %rows = const {value=512} : i32\n  %ld = const {value=64} : i64\n  %l1 = const {value=1} : i64\n"
    "  %da = make_desc %a, %rows, %w, %ld, %l1 : desc<64x64xf16>\n"
    "  %db = make_desc %b, %rows, %w, %ld, %l1 : desc<64x64xf16>\n"
    "  %init = const {value=0} : tile<64x64xf32>\n"
    "  %sum = for %z, %n, %one, %init : tile<64x64xf32> { (%i: i32, %acc: tile<64x64xf32>)\n"
    "    %row = mul %i, %w : i32\n    %x = desc_load %da, %row, %z : tile<64x64xf16>\n"
    "    %y = desc_load %db, %row, %z : tile<64x64xf16>\n    %d = dot %x, %y, %init : tile<64x64xf32>\n"
    "    %next = fmax %d, %acc : tile<64x64xf32>\n    yield %next }\n"
    "  %r = arange {start=0, end=64} : tile<64xi32>\n  %e = expand_dims %r {axis=1} : tile<64x1xi32>\n"
    "  %eb = broadcast %e : tile<64x64xi32>\n  %f = expand_dims %r {axis=0} : tile<1x64xi32>\n"
    "  %fb = broadcast %f : tile<64x64xi32>\n  %ws = splat %w : tile<64x64xi32>\n"
    "  %o = mul %eb, %ws : tile<64x64xi32>\n  %at = add %o, %fb : tile<64x64xi32>\n"
    "  %cs = splat %c : tile<64x64xptr<f32>>\n  %p = ptr_add %cs, %at : tile<64x64xptr<f32>>\n"
    "  store %p, %sum, _\n  return\n}\n";

typedef struct Order { // of a turn: the first wait for a product, the hand-back behind it
  IrOp *wait, *back;
} Order;
static bool find_order(IrOp *op, void *user) {
  Order *o = user;
  if (op->kind == OP_wgmma_wait && !o->wait) o->wait = op;
  if (op->kind == OP_mbarrier_arrive && o->wait && op->parent == o->wait->parent && !o->back) o->back = op;
  return true;
}

static void hand_back(bool early, uint64_t seed) {
  Arena a;
  TEST_ARENA(a);
  Diags d;
  diags_init(&d, &a);
  IrModule *m = NULL;
  const PassMachine machine = {.vector_bits = 128, .wgmma = true, .tma = true};
  const PassConfig cfg = {.machine = &machine, .diags = &d, .verify = true};
  if (ir_parse(&a, ir_ctx_new(&a), &d, "k", turns, strlen(turns), &m) != ST_OK ||
      pass_run(m, PASS_GPU, &cfg) != ST_OK)
    fail_msg("%s", diags_render(&d, &a));
  Order o = {NULL, NULL};
  ir_walk(m->funcs->body, find_order, &o);
  assert_non_null(o.back);
  if (early) ir_move_before(o.back, o.wait);
  assert_int_equal(ir_verify(m, &d), ST_OK);
  const Memory x = memory_of(&a, m->funcs, 512 * 64, seed);
  const Launch c = {.seed = seed, .turns = 6, .grid = 1, .check = true};
  const InterpResult r = run_launch(&a, m, &c, &x);
  if (!early && r.status != ST_OK) fail_msg("%s", r.nfindings ? r.findings[0].text : "");
  if (early) {
    assert_true(r.status != ST_OK && r.nfindings);
    assert_non_null(strstr(r.findings[0].text, "writes a buffer"));
  }
  arena_free(&a);
}

// A product's block that is handed back while the product is in flight is a race, in every schedule.
static void test_early_hand_back(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 3; seed++) {
    hand_back(false, seed);
    hand_back(true, seed);
  }
}

int main(int argc, char **argv) {
  if (seeds_asked(argc, argv, one)) return 0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_products),
                                     cmocka_unit_test(test_early_hand_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
