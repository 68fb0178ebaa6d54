// map: tensor maps in images: their bytes, the recipes that compute them for a launch, and what the accelerator asks of them.
#include "image/image_impl.h"

#include <stdio.h>

// ---- what is sound ---------------------------------------------------------------------------------------------------
static const char *step_fault(const ImageVariant *v, const ImageStep *s) {
  switch (s->op) {
  case IMAGE_STEP_CONST: return NULL;
  case IMAGE_STEP_ARG:
  case IMAGE_STEP_BASE:
  case IMAGE_STEP_DIM:
  case IMAGE_STEP_STRIDE: {
    if (s->arg >= v->nargs) return "a tensor map is made of an argument that there is not";
    const ImageArg *a = &v->args[s->arg];
    if ((s->op == IMAGE_STEP_ARG) == (a->kind == IMAGE_ARG_DESC) || a->kind == IMAGE_ARG_FLOAT)
      return "a tensor map is made of an argument of another kind";
    if (s->op > IMAGE_STEP_BASE && (s->value < 0 || s->value >= a->rank))
      return "a tensor map is made of an axis that a descriptor does not have";
    return NULL;
  }
  case IMAGE_STEP_SEXT:
  case IMAGE_STEP_ZEXT:
    return s->value < 1 || s->value > 64 ? "a tensor map's recipe extends from no width" : NULL;
  default: return s->op < IMAGE_NSTEPS ? NULL : "a tensor map's recipe has an unknown step";
  }
}

static int needs(ImageStepOp op) { // values from the stack
  return op < IMAGE_STEP_SEXT ? 0 : op < IMAGE_STEP_ADD ? 1 : 2;
}

static const char *recipe_fault(const ImageVariant *v, const ImageRecipe *r) {
  int depth = 0;
  if (r->n > IMAGE_RECIPE_MAX) return "a tensor map's recipe is too long";
  for (uint32_t i = 0; i < r->n; i++) {
    const char *fault = step_fault(v, &r->steps[i]);
    if (fault) return fault;
    const int n = needs(r->steps[i].op);
    if (depth < n) return "a tensor map's recipe takes what it has not made";
    depth += 1 - n;
    if (depth > IMAGE_RECIPE_DEPTH) return "a tensor map's recipe is too deep";
  }
  return depth == 1 ? NULL : "a tensor map's recipe does not make one number";
}

static const char *shape_fault(const ImageMap *m) {
  if (m->rank < 1 || m->rank > IMAGE_MAP_RANK) return "a tensor map has not 1 to 5 axes";
  if (m->dtype >= IMAGE_NDTYPES) return "a tensor map is of an unknown type";
  if (m->swizzle && m->swizzle != 32 && m->swizzle != 64 && m->swizzle != 128)
    return "a tensor map has an unknown swizzle";
  for (uint32_t i = 0; i < m->rank; i++) {
    if (m->box[i] < 1 || m->box[i] > 256) return "a tensor map's box has not 1 to 256 elements along an axis";
  }
  if (m->pad_nan && (m->dtype < IMAGE_F16 || m->dtype > IMAGE_F64))
    return "a tensor map pads with NaN what has none that the accelerator knows";
  const uint32_t row = m->box[m->rank - 1] * image_dtypes[m->dtype].bytes;
  if (row % 16) return "a row of a tensor map's box is no multiple of 16 bytes";
  if (m->swizzle && row > m->swizzle) return "a row of a tensor map's box is longer than its swizzle";
  return NULL;
}

const char *image_map_fault(const ImageVariant *v, const ImageMap *m) {
  const char *fault = m->name ? shape_fault(m) : "a tensor map has no name";
  if (!fault) fault = recipe_fault(v, &m->base);
  for (uint32_t i = 0; i < m->rank && !fault; i++) {
    fault = recipe_fault(v, &m->sizes[i]);
    if (!fault) fault = recipe_fault(v, &m->strides[i]);
  }
  return fault;
}

// ---- bytes -------------------------------------------------------------------------------------------------------------
static void put_recipe(ImageWriter *w, const ImageRecipe *r) {
  image_put_u32(w, r->n);
  for (uint32_t i = 0; i < r->n; i++) {
    image_put_u32(w, r->steps[i].op);
    image_put_u32(w, r->steps[i].arg);
    image_put_u64(w, (uint64_t)r->steps[i].value);
  }
}
static void get_recipe(ImageReader *r, ImageRecipe *out) {
  out->n = image_get_count(r, 4 + 4 + 8);
  if (out->n > IMAGE_RECIPE_MAX) image_bad(r, "a tensor map's recipe is too long");
  if (r->bad) out->n = 0;
  ImageStep *steps = arena_array(r->arena, ImageStep, out->n);
  for (uint32_t i = 0; i < out->n; i++) {
    steps[i].op = (ImageStepOp)image_get_below(r, IMAGE_NSTEPS, "a tensor map's recipe has an unknown step");
    steps[i].arg = image_get_u32(r);
    steps[i].value = (int64_t)image_get_u64(r);
  }
  out->steps = steps;
}

void image_put_map(ImageWriter *w, const ImageMap *m) {
  image_put_str(w, m->name);
  image_put_u32(w, m->dtype);
  image_put_u32(w, m->rank);
  image_put_u32(w, m->swizzle);
  image_put_u8(w, m->pad_nan);
  image_put_u8(w, m->writes);
  for (uint32_t i = 0; i < m->rank; i++) image_put_u32(w, m->box[i]);
  put_recipe(w, &m->base);
  for (uint32_t i = 0; i < m->rank; i++) {
    put_recipe(w, &m->sizes[i]);
    put_recipe(w, &m->strides[i]);
  }
}

void image_get_map(ImageReader *r, const ImageVariant *v, ImageMap *m) {
  m->name = image_get_name(r);
  m->dtype = image_get_below(r, IMAGE_NDTYPES, "a tensor map is of an unknown type");
  m->rank = image_get_below(r, IMAGE_MAP_RANK + 1, "a tensor map has not 1 to 5 axes");
  m->swizzle = image_get_u32(r);
  m->pad_nan = image_get_bool(r);
  m->writes = image_get_bool(r);
  for (uint32_t i = 0; i < m->rank; i++) m->box[i] = image_get_u32(r);
  get_recipe(r, &m->base);
  for (uint32_t i = 0; i < m->rank; i++) {
    get_recipe(r, &m->sizes[i]);
    get_recipe(r, &m->strides[i]);
  }
  const char *fault = r->bad ? NULL : image_map_fault(v, m);
  if (fault) image_bad(r, fault);
}

uint32_t image_map_offset(const ImageVariant *v, uint32_t i) {
  return (uint32_t)bits_round_up((uint64_t)v->args_bytes + 8, IMAGE_MAP_ALIGN) + i * IMAGE_MAP_BYTES;
}
uint32_t image_launch_bytes(const ImageVariant *v) {
  return v->nmaps ? image_map_offset(v, v->nmaps) : v->args_bytes + 8;
}

static void renumber(ImageRecipe *r, const uint32_t *to) {
  for (uint32_t i = 0; i < r->n; i++) {
    ImageStep *s = &r->steps[i];
    if (s->op >= IMAGE_STEP_ARG && s->op <= IMAGE_STEP_STRIDE) s->arg = to[s->arg];
  }
}
void image_renumber_args(ImageVariant *v, const uint32_t *to) {
  for (uint32_t i = 0; i < v->nmaps; i++) {
    ImageMap *m = &v->maps[i];
    renumber(&m->base, to);
    for (uint32_t d = 0; d < m->rank; d++) {
      renumber(&m->sizes[d], to);
      renumber(&m->strides[d], to);
    }
  }
}

// ---- recipes -----------------------------------------------------------------------------------------------------------
static int64_t extend(int64_t x, int64_t bits, bool sign) {
  const int up = 64 - (int)bits;
  return sign ? (int64_t)((uint64_t)x << up) >> up : (int64_t)((uint64_t)x << up >> up);
}

static int64_t argument(const ImageArg *a, const char *packed) {
  if (a->kind == IMAGE_ARG_FIXED) return a->value;
  uint64_t x = 0;
  memcpy(&x, packed + a->offset, a->kind == IMAGE_ARG_PTR ? 8 : bits_div_up(a->bits, 8));
  return a->kind == IMAGE_ARG_PTR || !a->bits ? (int64_t)x : extend((int64_t)x, a->bits, true);
}

static int64_t field(const ImageStep *s, const ImageArg *a, const char *packed) {
  ImageDesc d;
  memcpy(&d, packed + a->offset, sizeof d);
  return s->op == IMAGE_STEP_BASE  ? (int64_t)d.base
         : s->op == IMAGE_STEP_DIM ? d.shape[s->value]
                                   : d.strides[s->value];
}

static int64_t combine(ImageStepOp op, int64_t x, int64_t y) {
  const uint64_t a = (uint64_t)x, b = (uint64_t)y;
  switch (op) {
  case IMAGE_STEP_ADD: return (int64_t)(a + b);
  case IMAGE_STEP_SUB: return (int64_t)(a - b);
  case IMAGE_STEP_MUL: return (int64_t)(a * b);
  case IMAGE_STEP_DIV_S: return y == 0 ? 0 : y == -1 ? (int64_t)(0 - a) : x / y;
  case IMAGE_STEP_DIV_U: return b ? (int64_t)(a / b) : 0;
  case IMAGE_STEP_REM_S: return y == 0 || y == -1 ? 0 : x % y;
  case IMAGE_STEP_REM_U: return b ? (int64_t)(a % b) : 0;
  case IMAGE_STEP_MIN_S: return x < y ? x : y;
  case IMAGE_STEP_MAX_S: return x > y ? x : y;
  case IMAGE_STEP_MIN_U: return (int64_t)(a < b ? a : b);
  case IMAGE_STEP_MAX_U: return (int64_t)(a > b ? a : b);
  case IMAGE_STEP_AND: return (int64_t)(a & b);
  case IMAGE_STEP_OR: return (int64_t)(a | b);
  case IMAGE_STEP_XOR: return (int64_t)(a ^ b);
  case IMAGE_STEP_SHL: return b < 64 ? (int64_t)(a << b) : 0;
  case IMAGE_STEP_SHR_S: return x >> (b < 64 ? b : 63);
  default: return b < 64 ? (int64_t)(a >> b) : 0; // shr_u
  }
}

static int64_t eval(const ImageVariant *v, const ImageRecipe *r, const char *packed) {
  int64_t stack[IMAGE_RECIPE_DEPTH];
  int top = -1;
  for (const ImageStep *s = r->steps, *end = s + r->n; s < end; s++) {
    switch (s->op) {
    case IMAGE_STEP_CONST: stack[++top] = s->value; break;
    case IMAGE_STEP_ARG: stack[++top] = argument(&v->args[s->arg], packed); break;
    case IMAGE_STEP_BASE:
    case IMAGE_STEP_DIM:
    case IMAGE_STEP_STRIDE: stack[++top] = field(s, &v->args[s->arg], packed); break;
    case IMAGE_STEP_SEXT: stack[top] = extend(stack[top], s->value, true); break;
    case IMAGE_STEP_ZEXT: stack[top] = extend(stack[top], s->value, false); break;
    default: top--; stack[top] = combine(s->op, stack[top], stack[top + 1]);
    }
  }
  return stack[0];
}

void image_map_eval(const ImageVariant *v, const ImageMap *m, const void *packed, ImageMapNumbers *out) {
  out->base = (uint64_t)eval(v, &m->base, packed);
  for (uint32_t i = 0; i < m->rank; i++) {
    out->sizes[i] = eval(v, &m->sizes[i], packed);
    out->strides[i] = eval(v, &m->strides[i], packed);
  }
}

// ---- what the accelerator asks for ---------------------------------------------------------------------------------------
bool image_map_empty(const ImageMap *m, const ImageMapNumbers *n) {
  for (uint32_t i = 0; i < m->rank; i++) {
    if (n->sizes[i] <= 0) return true;
  }
  return false;
}

// The last axis must end at a multiple of 16 bytes: up to there the accelerator was seen to read and write beyond an edge.
bool image_map_fits(const ImageMap *m, const ImageMapNumbers *n, char *why, size_t cap) {
  const uint32_t bytes = image_dtypes[m->dtype].bytes, last = m->rank - 1;
  if (image_map_empty(m, n)) return true;
  if (n->base % 16) {
    snprintf(why, cap, "its base must be a multiple of 16 bytes, and 0x%llx is not",
             (unsigned long long)n->base);
    return false;
  }
  if (n->strides[last] != 1) {
    snprintf(why, cap, "its last axis must have stride 1, not %lld", (long long)n->strides[last]);
    return false;
  }
  for (uint32_t i = 0; i < m->rank; i++) {
    if (n->sizes[i] > (int64_t)1 << 32) {
      snprintf(why, cap, "its size along axis %u must be at most 2^32, and %lld is more", i,
               (long long)n->sizes[i]);
      return false;
    }
    // 2^40 bytes is the most between two rows
    if (i < last && (n->strides[i] < 0 || n->strides[i] >= ((int64_t)1 << 40) / bytes ||
                     (uint64_t)n->strides[i] * bytes % 16)) {
      snprintf(why, cap,
               "its stride along axis %u must be a multiple of 16 bytes below 2^40, and %lld x %u is not", i,
               (long long)n->strides[i], bytes);
      return false;
    }
  }
  if ((uint64_t)n->sizes[last] * bytes % 16) {
    snprintf(why, cap, "its size along the last axis must be a multiple of 16 bytes, and %lld x %u is not",
             (long long)n->sizes[last], bytes);
    return false;
  }
  return true;
}

// The largest power of two that surely divides what a recipe gives.
static uint64_t divisor(const ImageVariant *v, const ImageRecipe *r) {
  enum { MOST = 1 << 20 }; // of what is multiplied: no overflow
  uint64_t stack[IMAGE_RECIPE_DEPTH];
  int top = -1;
  for (const ImageStep *s = r->steps, *end = s + r->n; s < end; s++) {
    if (needs(s->op) == 0) {
      const ImageArg *a = s->op == IMAGE_STEP_ARG || s->op == IMAGE_STEP_BASE ? &v->args[s->arg] : NULL;
      const uint64_t x = s->op == IMAGE_STEP_CONST         ? (uint64_t)s->value | MOST
                         : a && a->kind == IMAGE_ARG_FIXED ? (uint64_t)a->value | MOST
                         : a                               ? a->divisible
                                                           : 1;
      stack[++top] = x & -x;
      continue;
    }
    if (needs(s->op) == 1) continue; // low bits stay, and what has none of them is 0
    const uint64_t y = stack[top--];
    uint64_t *z = &stack[top];
    if (s->op == IMAGE_STEP_MUL)
      *z = *z * y > MOST ? MOST : *z * y;
    else
      *z = s->op != IMAGE_STEP_ADD && s->op != IMAGE_STEP_SUB ? 1 : *z < y ? *z : y;
  }
  return stack[0];
}

bool image_map_always_fits(const ImageVariant *v, const ImageMap *m) {
  const uint32_t bytes = image_dtypes[m->dtype].bytes, last = m->rank - 1;
  const ImageRecipe *one = &m->strides[last];
  if (one->n != 1 || one->steps[0].op != IMAGE_STEP_CONST || one->steps[0].value != 1) return false;
  if (divisor(v, &m->base) % 16 || divisor(v, &m->sizes[last]) * bytes % 16) return false;
  for (uint32_t i = 0; i < last; i++) {
    if (divisor(v, &m->strides[i]) * bytes % 16) return false;
  }
  return true;
}
