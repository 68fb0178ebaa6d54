// See cuda.h. One lock serves one call at a time. Wrong uses are not forgiven: a call without a current context, memory that was not allocated, a module or stream
// that does not live end in an error status, as the real driver's would.
#include "fake/cuda.h"
#include "rt/dev_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define API __attribute__((visibility("default")))
enum { NO_CONTEXT = 201, BAD_HANDLE = 400 };

struct CuContextTag {
  int device, users;
};
struct CuStreamTag {
  CuContext context;
};
struct CuEventTag {
  uint64_t time;
  int recorded;
};
struct CuFunctionTag {
  char name[64];
};
struct CuModuleTag {
  struct CuFunctionTag f[8];
  int n;
};

static const FakeCuda standard = {
    .devices = 1, .sm = 90, .memory = 1 << 30, .max_threads = 1024, .registers = 32, .max_shared = 227 << 10};
static FakeCuda g;
__attribute__((constructor)) static void begin(void) { g = standard; }

static struct CuContextTag contexts[8];
static _Thread_local CuContext current;
static struct {
  CuPtr at;
  size_t bytes;
} memory[4096];

API FakeCuda *fake_cuda(int reset);
FakeCuda *fake_cuda(int reset) {
  if (reset) g = standard;
  return &g;
}

// What every call returns before it does anything.
static int trouble(const char *call, int needs_context) {
  if (g.fail_call && strcmp(g.fail_call, call) == 0 && g.fail_after-- == 0) {
    g.fail_call = NULL;
    return g.fail_status;
  }
  if (needs_context && !current) return NO_CONTEXT;
  return needs_context ? g.dead : CU_OK;
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void unlock(int *held) {
  (void)held;
  pthread_mutex_unlock(&lock);
}
#define LOCKED \
  __attribute__((cleanup(unlock))) int held_ = pthread_mutex_lock(&lock); \
  (void)held_
#define BEGIN(call, needs_context) \
  LOCKED; \
  do { \
    const int s_ = trouble(call, needs_context); \
    if (s_) return s_; \
  } while (0)

// Declares what it defines, as the table of calls has it.
#define CUDA(field, symbol, needed, parameters) API CuStatus fake_##field parameters __asm__(symbol);
#include "rt/cuda.def"
#undef CUDA

CuStatus fake_Init(unsigned flags) {
  (void)flags;
  return g.init_status;
}
CuStatus fake_DriverGetVersion(int *version) {
  *version = 13000;
  return CU_OK;
}
CuStatus fake_GetErrorName(CuStatus s, const char **name) {
  *name = s == CU_NO_MEMORY         ? "CUDA_ERROR_OUT_OF_MEMORY"
          : s == CU_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : s == CU_INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
                                    : "CUDA_ERROR_OTHER";
  return CU_OK;
}
CuStatus fake_GetErrorString(CuStatus s, const char **text) {
  *text = s == CU_INVALID_VALUE ? "invalid argument" : "something else";
  return CU_OK;
}

// ---- devices and contexts --------------------------------------------------------------------------------
CuStatus fake_DeviceGetCount(int *n) {
  *n = g.devices;
  return CU_OK;
}
CuStatus fake_DeviceGet(CuDevice *d, int ordinal) {
  if (ordinal < 0 || ordinal >= g.devices) return 101;
  *d = ordinal;
  return CU_OK;
}
CuStatus fake_DeviceGetName(char *name, int cap, CuDevice d) {
  (void)d;
  snprintf(name, (size_t)cap, "Fake GPU");
  return CU_OK;
}
CuStatus fake_DeviceTotalMem(size_t *bytes, CuDevice d) {
  (void)d;
  *bytes = g.memory;
  return CU_OK;
}
CuStatus fake_DeviceGetAttribute(int *value, int attribute, CuDevice d) {
  (void)d;
  *value = attribute == CU_DEV_MAJOR        ? g.sm / 10
           : attribute == CU_DEV_MINOR      ? g.sm % 10
           : attribute == CU_DEV_SMS        ? 132
           : attribute == CU_DEV_MAX_SHARED ? g.max_shared
                                            : 0;
  return CU_OK;
}
CuStatus fake_PrimaryCtxRetain(CuContext *c, CuDevice d) {
  BEGIN("PrimaryCtxRetain", 0);
  *c = &contexts[d];
  contexts[d].device = d;
  if (!contexts[d].users++) g.contexts++;
  return CU_OK;
}
CuStatus fake_PrimaryCtxRelease(CuDevice d) {
  LOCKED;
  if (!contexts[d].users) return 201;
  if (!--contexts[d].users) g.contexts--;
  return CU_OK;
}
CuStatus fake_CtxGetCurrent(CuContext *c) {
  *c = current;
  return CU_OK;
}
CuStatus fake_CtxSetCurrent(CuContext c) {
  current = c;
  return CU_OK;
}

// ---- memory ------------------------------------------------------------------------------------------------
CuStatus fake_MemGetInfo(size_t *free_bytes, size_t *total) {
  LOCKED;
  *free_bytes = g.memory - g.used;
  *total = g.memory;
  return CU_OK;
}
static CuStatus take(CuPtr *p, size_t bytes) {
  size_t i = 0;
  while (i < DT_COUNTOF(memory) && memory[i].at) i++;
  void *m = NULL;
  if (i == DT_COUNTOF(memory) || posix_memalign(&m, 256, bytes)) return CU_NO_MEMORY;
  memset(m, 0xab, bytes);
  memory[i].at = *p = (CuPtr)(uintptr_t)m;
  memory[i].bytes = bytes;
  return CU_OK;
}
static CuStatus give(CuPtr p, size_t *bytes) {
  for (size_t i = 0; i < DT_COUNTOF(memory); i++) {
    if (memory[i].at != p) continue;
    *bytes = memory[i].bytes;
    memory[i].at = 0;
    free((void *)(uintptr_t)p);
    return CU_OK;
  }
  return CU_INVALID_VALUE;
}
CuStatus fake_MemAlloc(CuPtr *p, size_t bytes) {
  BEGIN("MemAlloc", 1);
  if (!bytes) return CU_INVALID_VALUE;
  if (bytes > g.memory - g.used) return CU_NO_MEMORY;
  const CuStatus s = take(p, bytes);
  if (s != CU_OK) return s;
  g.used += bytes;
  g.allocations++;
  return CU_OK;
}
CuStatus fake_MemFree(CuPtr p) {
  size_t bytes = 0;
  LOCKED;
  if (!current) return NO_CONTEXT;
  const CuStatus s = give(p, &bytes);
  if (s != CU_OK) return s;
  g.used -= bytes;
  g.allocations--;
  return g.dead;
}
CuStatus fake_MemHostAlloc(void **p, size_t bytes, unsigned flags) {
  BEGIN("MemHostAlloc", 1);
  CuPtr q;
  if (flags != (CU_HOST_PORTABLE | CU_HOST_MAPPED)) return CU_INVALID_VALUE;
  const CuStatus s = take(&q, bytes);
  if (s != CU_OK) return s;
  *p = (void *)(uintptr_t)q;
  g.pinned++;
  return CU_OK;
}
CuStatus fake_MemFreeHost(void *p) {
  size_t bytes;
  LOCKED;
  if (!current) return NO_CONTEXT;
  const CuStatus s = give((CuPtr)(uintptr_t)p, &bytes);
  if (s == CU_OK) g.pinned--;
  return s;
}

// ---- streams and events ------------------------------------------------------------------------------------
static int stream_ok(CuStream s) { return !s || s->context == current; }
CuStatus fake_StreamCreate(CuStream *s, unsigned flags) {
  BEGIN("StreamCreate", 1);
  if (flags != CU_STREAM_NON_BLOCKING) return CU_INVALID_VALUE;
  *s = calloc(1, sizeof **s);
  (*s)->context = current;
  g.streams++;
  return CU_OK;
}
CuStatus fake_StreamDestroy(CuStream s) {
  LOCKED;
  if (!current) return NO_CONTEXT;
  free(s);
  g.streams--;
  return g.dead;
}
CuStatus fake_StreamSynchronize(CuStream s) {
  BEGIN("StreamSynchronize", 1);
  g.syncs++;
  return g.capturing ? 900 : stream_ok(s) ? CU_OK : BAD_HANDLE;
}
CuStatus fake_StreamQuery(CuStream s) {
  BEGIN("StreamQuery", 1);
  return stream_ok(s) ? CU_OK : BAD_HANDLE;
}
CuStatus fake_StreamGetCtx(CuStream s, CuContext *c) {
  *c = s->context;
  return CU_OK;
}
CuStatus fake_StreamIsCapturing(CuStream s, int *status) {
  LOCKED;
  (void)s;
  *status = g.capturing;
  return CU_OK;
}
CuStatus fake_StreamWaitEvent(CuStream s, CuEvent e, unsigned flags) {
  BEGIN("StreamWaitEvent", 1);
  return stream_ok(s) && e && !flags ? CU_OK : BAD_HANDLE;
}
CuStatus fake_LaunchHostFunc(CuStream s, void (*fn)(void *user), void *user) {
  BEGIN("LaunchHostFunc", 1);
  if (!stream_ok(s)) return BAD_HANDLE;
  fn(user);
  return CU_OK;
}
CuStatus fake_EventCreate(CuEvent *e, unsigned flags) {
  BEGIN("EventCreate", 1);
  if (flags) return CU_INVALID_VALUE;
  *e = calloc(1, sizeof **e);
  g.events++;
  return CU_OK;
}
CuStatus fake_EventDestroy(CuEvent e) {
  LOCKED;
  if (!current) return NO_CONTEXT;
  free(e);
  g.events--;
  return g.dead;
}
CuStatus fake_EventRecord(CuEvent e, CuStream s) {
  BEGIN("EventRecord", 1);
  if (!stream_ok(s)) return BAD_HANDLE;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  e->time = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
  e->recorded = 1;
  return CU_OK;
}
CuStatus fake_EventQuery(CuEvent e) {
  BEGIN("EventQuery", 1);
  return e->recorded ? CU_OK : BAD_HANDLE;
}
CuStatus fake_EventSynchronize(CuEvent e) {
  BEGIN("EventSynchronize", 1);
  g.syncs++;
  return e->recorded ? CU_OK : BAD_HANDLE;
}
CuStatus fake_EventElapsedTime(float *ms, CuEvent from, CuEvent to) {
  BEGIN("EventElapsedTime", 1);
  if (!from->recorded || !to->recorded) return BAD_HANDLE;
  *ms = (float)((double)to->time - (double)from->time) * 1e-6f;
  return CU_OK;
}

CuStatus fake_MemcpyAsync(CuPtr dst, CuPtr src, size_t bytes, CuStream s) {
  BEGIN("MemcpyAsync", 1);
  if (!stream_ok(s)) return BAD_HANDLE;
  memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, bytes);
  return CU_OK;
}
CuStatus fake_Memcpy2DAsync(const CuCopy2D *c, CuStream s) {
  BEGIN("Memcpy2DAsync", 1);
  if (!stream_ok(s) || c->src_kind != CU_KIND_UNIFIED || c->dst_kind != CU_KIND_UNIFIED)
    return CU_INVALID_VALUE;
  for (size_t i = 0; i < c->rows; i++)
    memcpy((char *)(uintptr_t)c->dst + i * c->dst_pitch, (const char *)(uintptr_t)c->src + i * c->src_pitch,
           c->width);
  return CU_OK;
}
CuStatus fake_MemsetAsync(CuPtr dst, unsigned char byte, size_t n, CuStream s) {
  BEGIN("MemsetAsync", 1);
  if (!stream_ok(s)) return BAD_HANDLE;
  memset((void *)(uintptr_t)dst, byte, n);
  return CU_OK;
}

// ---- kernels -------------------------------------------------------------------------------------------------
// A module is a text with ".entry NAME(" in it; "syntax error" in it is one, to be seen in the log.
CuStatus fake_ModuleLoadDataEx(CuModule *out, const void *code, unsigned n, int *options, void **values) {
  BEGIN("ModuleLoadDataEx", 1);
  if (strstr(code, "syntax error")) {
    if (n == 2 && options[0] == CU_JIT_ERROR_LOG && options[1] == CU_JIT_ERROR_LOG_BYTES)
      snprintf(values[0], (size_t)values[1], "line 7: syntax error near 'kernal'");
    return CU_BAD_PTX;
  }
  CuModule m = calloc(1, sizeof *m);
  for (const char *p = code; (p = strstr(p, ".entry ")) && m->n < 8; m->n++) {
    p += 7;
    snprintf(m->f[m->n].name, sizeof m->f[0].name, "%.*s", (int)strcspn(p, "( \n"), p);
  }
  g.modules++;
  g.module_loads++;
  *out = m;
  return CU_OK;
}
CuStatus fake_ModuleUnload(CuModule m) {
  LOCKED;
  if (!current) return NO_CONTEXT;
  free(m);
  g.modules--;
  return g.dead;
}
CuStatus fake_ModuleGetFunction(CuFunction *f, CuModule m, const char *name) {
  BEGIN("ModuleGetFunction", 1);
  for (int i = 0; i < m->n; i++) {
    if (strcmp(m->f[i].name, name) != 0) continue;
    *f = &m->f[i];
    return CU_OK;
  }
  return CU_NOT_FOUND;
}
CuStatus fake_FuncGetAttribute(int *value, int attribute, CuFunction f) {
  BEGIN("FuncGetAttribute", 1);
  (void)f;
  *value = attribute == CU_FN_MAX_THREADS     ? g.max_threads
           : attribute == CU_FN_STATIC_SHARED ? g.static_shared
           : attribute == CU_FN_REGISTERS     ? g.registers
                                              : 0;
  return CU_OK;
}
CuStatus fake_FuncSetAttribute(CuFunction f, int attribute, int value) {
  BEGIN("FuncSetAttribute", 1);
  (void)f;
  if (attribute == CU_FN_CARVEOUT) g.carveout = value;
  if (attribute == CU_FN_MAX_DYNAMIC_SHARED) g.dynamic = value;
  return CU_OK;
}
CuStatus fake_FuncLoad(CuFunction f) {
  BEGIN("FuncLoad", 1);
  (void)f;
  g.function_loads++;
  return CU_OK;
}
// Refuses what the driver's documentation says it refuses.
CuStatus fake_TensorMapEncodeTiled(CuTensorMap *m, int type, uint32_t rank, void *base, const uint64_t *sizes,
                                   const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                                   int interleave, int swizzle, int promotion, int fill) {
  static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  _Static_assert(sizeof(FakeMap) <= sizeof *m, "a map holds its numbers");
  BEGIN("TensorMapEncodeTiled", 0);
  if ((uintptr_t)m % 64 || type < 0 || type >= (int)sizeof bytes || rank < 1 || rank > 5 || interleave)
    return CU_INVALID_VALUE;
  if (!base || (uintptr_t)base % 16 || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 ||
      fill < 0 || fill > 1 || (fill && type < CU_TENSOR_F16))
    return CU_INVALID_VALUE;
  FakeMap f = {.base = (uintptr_t)base,
               .type = (uint8_t)type,
               .rank = (uint8_t)rank,
               .swizzle = (uint8_t)swizzle,
               .promotion = (uint8_t)promotion,
               .nan = (uint8_t)fill,
               .is_map = 1};
  for (uint32_t i = 0; i < rank; i++) {
    if (sizes[i] < 1 || sizes[i] > 1ull << 32 || box[i] < 1 || box[i] > 256 || steps[i] != 1)
      return CU_INVALID_VALUE;
    if (i && (strides[i - 1] % 16 || strides[i - 1] >= 1ull << 40)) return CU_INVALID_VALUE;
    f.sizes[i] = sizes[i];
    f.box[i] = box[i];
    if (i) f.strides[i - 1] = strides[i - 1];
  }
  const uint32_t row = box[0] * bytes[type];
  if (row % 16 || (swizzle && row > 16u << swizzle)) return CU_INVALID_VALUE;
  memset(m, 0, sizeof *m);
  memcpy(m, &f, sizeof f);
  g.maps++;
  return CU_OK;
}
CuStatus fake_LaunchKernelEx(const CuLaunch *l, CuFunction f, void **params, void **extra) {
  BEGIN("LaunchKernelEx", 1);
  if (!stream_ok(l->stream)) return BAD_HANDLE;
  if (!extra == !params) return CU_INVALID_VALUE;
  if (extra && (extra[0] != (void *)CU_EXTRA_BUFFER || extra[2] != (void *)CU_EXTRA_BYTES ||
                extra[4] != (void *)CU_EXTRA_END))
    return CU_INVALID_VALUE;
  if ((int)l->shared_bytes > (g.dynamic ? g.dynamic : 48 << 10)) return CU_INVALID_VALUE;
  uint32_t n = 0;
  while (params && params[n]) n++; // ours end so; behind the others, in order, lie the maps of 128 bytes
  g.last = (FakeLaunch){.entry = f->name,
                        .args = extra ? extra[1] : params[0],
                        .bytes = extra ? *(size_t *)extra[3]
                                       : (size_t)((char *)params[n - 1] - (char *)params[0]) + 128,
                        .shared_bytes = l->shared_bytes,
                        .stream = l->stream};
  memcpy(g.last.grid, l->grid, sizeof l->grid);
  memcpy(g.last.block, l->block, sizeof l->block);
  for (unsigned i = 0; i < l->nattributes; i++) {
    const CuAttribute *a = &l->attributes[i];
    if (a->id == CU_LAUNCH_CLUSTER)
      memcpy(g.last.cluster, a->value.cluster, sizeof g.last.cluster);
    else if (a->id == 6) // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
      g.last.early = a->value.allowed;
    else
      return CU_INVALID_VALUE;
  }
  g.launches++;
  if (g.kernel) g.dead = g.kernel(&g.last);
  g.last.args = NULL;
  return CU_OK;
}
