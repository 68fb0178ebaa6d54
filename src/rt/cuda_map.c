// cuda_map: tensor maps, made by the driver for each launch and kept for the next one of the same arguments.
//
// A map depends on a few of the launch's arguments. These are the key; where it stands in the kernel's table, the maps are copied
// from there, else the recipes run and the driver encodes. A table in use by another thread is passed by.
//
//   key: the words that recipes name     slot: [key | map 0 | map 1 | ...], direct-mapped by the key's hash
//
// A tensor without elements cannot be told to the accelerator. Its map is that of a single element in memory of ours: of padding
// for what reads, of nothing that matters for what writes.
#include "rt/dev_cuda.h"

#include <stdatomic.h>
#include <string.h>

enum {
  SLOTS = 16,
  MOST_KEY = 64,  // words; longer keys are not looked for
  EMPTY_NAN = 64, // in CudaRank.empty: zeros, then NaN of every type, then what is written
  EMPTY_WRITES = 128,
  EMPTY_BYTES = 256
};

enum { DESC_WORDS = sizeof(ImageDesc) / 8, WHOLE = DESC_WORDS };
typedef struct Word { // of the arguments: a scalar (WHOLE), or one of a descriptor's
  uint32_t arg, at;
} Word;
struct CudaMaps {
  const ImageVariant *v;
  Word *words; // [nwords], the key
  uint32_t nwords, slot_words;
  bool used[SLOTS];
  atomic_flag busy; // the table below
  uint64_t *slots;  // NULL: none
};

// ---- loading -----------------------------------------------------------------------------------------------------------
static CuStatus fill_empty(CudaRank *cr) { // lock held
  if (cr->empty) return CU_OK;
  CuStatus s = cr->cu->MemAlloc(&cr->empty, EMPTY_BYTES);
  if (s == CU_OK) s = cr->cu->MemsetAsync(cr->empty, 0, EMPTY_BYTES, cr->setup);
  if (s == CU_OK) s = cr->cu->MemsetAsync(cr->empty + EMPTY_NAN, 0xff, EMPTY_WRITES - EMPTY_NAN, cr->setup);
  return s == CU_OK ? cr->cu->StreamSynchronize(cr->setup) : s;
}

void rt_cuda_maps_drop(CudaRank *cr) {
  if (cr->empty) cr->cu->MemFree(cr->empty);
  cr->empty = 0;
}

static uint32_t word_of(const ImageStep *s) {
  return s->op == IMAGE_STEP_ARG    ? WHOLE
         : s->op == IMAGE_STEP_BASE ? 0
         : s->op == IMAGE_STEP_DIM  ? offsetof(ImageDesc, shape) / 8 + (uint32_t)s->value
                                    : offsetof(ImageDesc, strides) / 8 + (uint32_t)s->value;
}

static void note_recipe(const ImageRecipe *r, uint32_t *used) { // by argument: a bit for each of its words
  for (uint32_t i = 0; i < r->n; i++) {
    const ImageStep *s = &r->steps[i];
    if (s->op >= IMAGE_STEP_ARG && s->op <= IMAGE_STEP_STRIDE) used[s->arg] |= 1u << word_of(s);
  }
}

static void note_words(CudaMaps *m, Arena *a) {
  const ImageVariant *v = m->v;
  uint32_t *used = arena_array(a, uint32_t, v->nargs + 1);
  for (uint32_t i = 0; i < v->nmaps; i++) {
    const ImageMap *map = &v->maps[i];
    note_recipe(&map->base, used);
    for (uint32_t d = 0; d < map->rank; d++) {
      note_recipe(&map->sizes[d], used);
      note_recipe(&map->strides[d], used);
    }
  }
  m->words = arena_array(a, Word, (size_t)v->nargs * DESC_WORDS + 1);
  for (uint32_t i = 0; i < v->nargs; i++) {
    for (uint32_t at = 0; at <= WHOLE; at++)
      if (used[i] >> at & 1) m->words[m->nwords++] = (Word){i, at};
  }
}

Status rt_cuda_maps_open(RtKernel *k, const ImageVariant *v, CudaMaps **out, RtError *e) {
  CudaRank *cr = cuda_rank(k->rank);
  if (!cr->cu->TensorMapEncodeTiled)
    return rt_fail(
        e, ST_UNSUPPORTED,
        "kernel '%s' uses tensor maps, which the driver (%s) does not know; 525 or a later one does",
        k->info->name, cr->cu->version);
  CudaMaps *m = *out = arena_new(&k->arena, CudaMaps);
  m->v = v;
  atomic_flag_clear(&m->busy);
  note_words(m, &k->arena);
  m->slot_words = m->nwords + v->nmaps * (IMAGE_MAP_BYTES / 8);
  if (m->nwords <= MOST_KEY) m->slots = arena_array(&k->arena, uint64_t, (size_t)SLOTS * m->slot_words);
  pthread_mutex_lock(&cr->lock);
  const CuStatus s = fill_empty(cr);
  pthread_mutex_unlock(&cr->lock);
  return rt_cuda_check(k->rank, s, e, "preparing the tensor maps of kernel '%s'", k->info->name);
}

// ---- encoding ----------------------------------------------------------------------------------------------------------
static int type_of(uint32_t dtype) {
  switch ((ImageDtype)dtype) {
  case IMAGE_I16:
  case IMAGE_U16: return CU_TENSOR_U16;
  case IMAGE_I32: return CU_TENSOR_I32;
  case IMAGE_U32: return CU_TENSOR_U32;
  case IMAGE_I64: return CU_TENSOR_I64;
  case IMAGE_U64: return CU_TENSOR_U64;
  case IMAGE_F16: return CU_TENSOR_F16;
  case IMAGE_BF16: return CU_TENSOR_BF16;
  case IMAGE_F32: return CU_TENSOR_F32;
  case IMAGE_F64: return CU_TENSOR_F64;
  default: return CU_TENSOR_U8; // bytes, and what has no number that the driver knows
  }
}

// The driver counts axes from the contiguous one on, and strides in bytes from the next.
static CuStatus encode(const CudaRank *cr, const ImageMap *m, const ImageMapNumbers *n, void *out) {
  uint64_t sizes[IMAGE_MAP_RANK], strides[IMAGE_MAP_RANK], base = n->base;
  uint32_t box[IMAGE_MAP_RANK], steps[IMAGE_MAP_RANK];
  const uint32_t bytes = image_dtypes[m->dtype].bytes;
  const bool empty = image_map_empty(m, n);
  if (empty) base = cr->empty + (m->writes ? EMPTY_WRITES : m->pad_nan ? EMPTY_NAN : 0);
  for (uint32_t i = 0; i < m->rank; i++) {
    const uint32_t d = m->rank - 1 - i;
    sizes[i] = empty ? 1 : (uint64_t)n->sizes[d];
    if (i) strides[i - 1] = empty ? 16 : (uint64_t)n->strides[d] * bytes;
    box[i] = m->box[d];
    steps[i] = 1;
  }
  const int swizzle = m->swizzle == 128 ? 3 : m->swizzle == 64 ? 2 : m->swizzle == 32 ? 1 : 0;
  return cr->cu->TensorMapEncodeTiled(out, type_of(m->dtype), m->rank, (void *)(uintptr_t)base, sizes,
                                      strides, box, steps, 0, swizzle, CU_TENSOR_PROMOTE_256, m->pad_nan);
}

static Status make(const RtKernel *k, const ImageVariant *v, char *packed, RtError *e) {
  const CudaRank *cr = cuda_rank(k->rank);
  for (uint32_t i = 0; i < v->nmaps; i++) {
    const ImageMap *m = &v->maps[i];
    ImageMapNumbers n;
    char why[200];
    image_map_eval(v, m, packed, &n);
    if (!image_map_fits(m, &n, why, sizeof why))
      return rt_fail(e, ST_INVALID, "kernel '%s': tensor descriptor '%s': %s", k->info->name, m->name, why);
    const CuStatus s = encode(cr, m, &n, packed + image_map_offset(v, i));
    if (s != CU_OK)
      return rt_cuda_check(k->rank, s, e, "making the map of tensor descriptor '%s' of kernel '%s'", m->name,
                           k->info->name);
  }
  return ST_OK;
}

// ---- launching -----------------------------------------------------------------------------------------------------------
static uint32_t key_of(const CudaMaps *m, const RtArg *args, uint64_t *key) { // and its slot
  uint64_t h = 0;
  for (uint32_t i = 0; i < m->nwords; i++) {
    const Word w = m->words[i];
    if (w.at == WHOLE)
      key[i] = args[w.arg].bits;
    else
      memcpy(&key[i], (const char *)args[w.arg].desc + (size_t)w.at * 8, 8);
    h = (h << 7 | h >> 57) ^ key[i] * 0x9e3779b97f4a7c15u;
  }
  return (uint32_t)((h ^ h >> 32) * 0x9e3779b97f4a7c15u >> 60) % SLOTS;
}

static bool is_key(const uint64_t *slot, const uint64_t *key, uint32_t n) {
  uint64_t differ = 0;
  for (uint32_t i = 0; i < n; i++) differ |= slot[i] ^ key[i];
  return !differ;
}

Status rt_cuda_maps_put(const RtKernel *k, CudaMaps *m, const RtArg *args, char *packed, RtError *e) {
  uint64_t key[MOST_KEY];
  const bool ours = m->slots && !atomic_flag_test_and_set_explicit(&m->busy, memory_order_acquire);
  if (!ours) return make(k, m->v, packed, e);
  const uint32_t at = key_of(m, args, key), n = m->nwords;
  const size_t bytes = (size_t)m->v->nmaps * IMAGE_MAP_BYTES;
  uint64_t *slot = m->slots + (size_t)at * m->slot_words;
  char *maps = packed + image_map_offset(m->v, 0);
  Status s = ST_OK;
  if (m->used[at] && is_key(slot, key, n)) {
    memcpy(maps, slot + n, bytes);
  } else if ((s = make(k, m->v, packed, e)) == ST_OK) {
    memcpy(slot, key, (size_t)n * 8);
    memcpy(slot + n, maps, bytes);
    m->used[at] = true;
  }
  atomic_flag_clear_explicit(&m->busy, memory_order_release);
  return s;
}
