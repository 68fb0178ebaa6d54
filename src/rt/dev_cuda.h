// dev_cuda: NVIDIA's driver API as far as we call it, declared by ourselves, and what the files of the CUDA device share.
//
// The library is opened at run time, once a context, so that one binary serves machines with and without a GPU. One rank
// is one device through its primary context, which PyTorch and the CUDA runtime use as well, so memory and streams of theirs
// are ours too. No call of ours changes which context the caller's thread has current.
#ifndef DITRON_RT_DEV_CUDA_H
#define DITRON_RT_DEV_CUDA_H

#include "rt/rt_impl.h"

// ---- the driver API ----------------------------------------------------------------------------------
typedef int CuStatus; // CUresult
typedef int CuDevice;
typedef uint64_t CuPtr;
typedef struct CuContextTag *CuContext;
typedef struct CuStreamTag *CuStream;
typedef struct CuEventTag *CuEvent;
typedef struct CuModuleTag *CuModule;
typedef struct CuFunctionTag *CuFunction;

enum { // CuStatus
  CU_OK = 0,
  CU_INVALID_VALUE = 1,
  CU_NO_MEMORY = 2,
  CU_STUB = 34,
  CU_NO_DEVICE = 100,
  CU_NO_BINARY = 209,
  CU_ECC = 214,
  CU_BAD_PTX = 218,
  CU_NO_JIT = 221,
  CU_NEW_PTX = 222,
  CU_NOT_FOUND = 500,
  CU_NOT_READY = 600,
  CU_ILLEGAL_ADDRESS = 700,
  CU_NO_RESOURCES = 701,
  CU_TIMEOUT = 702,
  CU_CONTEXT_DESTROYED = 709,
  CU_ASSERT = 710,
  CU_STACK = 714,
  CU_ILLEGAL_INSTRUCTION = 715,
  CU_MISALIGNED = 716,
  CU_ADDRESS_SPACE = 717,
  CU_BAD_PC = 718,
  CU_LAUNCH_FAILED = 719,
  CU_MISMATCH = 803,
};
enum { // attributes of devices
  CU_DEV_MAX_SHARED_SM = 81,
  CU_DEV_SMS = 16,
  CU_DEV_MAJOR = 75,
  CU_DEV_MINOR = 76,
  CU_DEV_MAX_SHARED = 97, // of a block that asks for it
};
enum { // attributes of functions
  CU_FN_MAX_THREADS = 0,
  CU_FN_STATIC_SHARED = 1,
  CU_FN_LOCAL = 3,
  CU_FN_REGISTERS = 4,
  CU_FN_MAX_DYNAMIC_SHARED = 8,
  CU_FN_CARVEOUT = 9,
  CU_FN_BIG_CLUSTERS = 14,
};
enum { CU_STREAM_NON_BLOCKING = 1, CU_HOST_PORTABLE = 1, CU_HOST_MAPPED = 2 };
enum { CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_BYTES = 6 };
enum { CU_EXTRA_END = 0, CU_EXTRA_BUFFER = 1, CU_EXTRA_BYTES = 2 };

typedef struct CuCopy2D { // CUDA_MEMCPY2D
  size_t src_x, src_y;
  int src_kind;
  const void *src_host;
  CuPtr src;
  void *src_array;
  size_t src_pitch;
  size_t dst_x, dst_y;
  int dst_kind;
  void *dst_host;
  CuPtr dst;
  void *dst_array;
  size_t dst_pitch;
  size_t width, rows;
} CuCopy2D;
enum { CU_KIND_UNIFIED = 4 };

typedef struct CuAttribute { // CUlaunchAttribute
  int id;
  char pad[4];
  union {
    unsigned cluster[3];
    int allowed;
    char bytes[64];
  } value;
} CuAttribute;
enum { CU_LAUNCH_CLUSTER = 4, CU_LAUNCH_EARLY = 6 }; // programmatic stream serialization
typedef struct CuLaunch {                            // CUlaunchConfig
  unsigned grid[3], block[3], shared_bytes;
  CuStream stream;
  CuAttribute *attributes;
  unsigned nattributes;
} CuLaunch;
_Static_assert(sizeof(CuAttribute) == 72 && sizeof(CuLaunch) == 56 && sizeof(CuCopy2D) == 128,
               "as the driver lays them out");

typedef struct CuTensorMap { // CUtensorMap
  _Alignas(64) uint64_t opaque[16];
} CuTensorMap;
enum { // what a map is made with
  CU_TENSOR_U8 = 0,
  CU_TENSOR_U16,
  CU_TENSOR_U32,
  CU_TENSOR_I32,
  CU_TENSOR_U64,
  CU_TENSOR_I64,
  CU_TENSOR_F16,
  CU_TENSOR_F32,
  CU_TENSOR_F64,
  CU_TENSOR_BF16,
};
enum { CU_TENSOR_PROMOTE_256 = 3 };

typedef struct Cuda {
  void *lib;
  Status status; // not ST_OK: this machine has no such devices, and why
  char why[320];
  char version[64]; // for people
  int ndevices;
#define CUDA(field, symbol, needed, parameters) CuStatus(*field) parameters;
#include "rt/cuda.def"
#undef CUDA
} Cuda;
const Cuda *rt_cuda_open(RtContext *c);                               // never NULL; opens it the first time
void rt_cuda_describe(const Cuda *cu, CuDevice d, RtDeviceInfo *out); // target and text

// ---- ranks ---------------------------------------------------------------------------------------------
// Every loaded kernel has a rank record of its own, so that a report says which kernel wrote it. They lie in slabs: the
// records in the device's memory, the reports in pinned memory that both sides see.
enum { CUDA_SLAB = 128 };
typedef struct CudaSlab {
  struct CudaSlab *next;
  CuPtr records;      // AbiRank[CUDA_SLAB], CUDA_RECORD bytes each
  AbiReport *reports; // [CUDA_SLAB]
  RtKernel *owner[CUDA_SLAB];
} CudaSlab;
enum { CUDA_RECORD = 128 };

typedef struct CudaModule {
  struct CudaModule *next;
  CuModule module;
  uint64_t hash[2], bytes;
  uint32_t users;
} CudaModule;

typedef struct CudaName { // of a kernel that was loaded at some time; lives as long as the rank
  struct CudaName *next;
  char text[];
} CudaName;

typedef struct CudaRank {
  const Cuda *cu;
  CuDevice device;
  CuContext context;
  CuStream setup; // for copies that the host waits for
  uint32_t ordinal, sm, max_shared;
  bool wait_each;
  char name[64];
  uint64_t *abort_word; // pinned
  CuPtr segments;       // AbiSegment[RT_MAX_SEGMENTS], then the peers' bases
  pthread_mutex_t lock; // of the lists below
  CudaSlab *slabs;
  CudaModule *modules;
  CudaName *names;
  CuPtr empty;       // what maps of tensors without elements point at (cuda_map.c); 0: not needed so far
  _Atomic bool lost; // a kernel broke the context
} CudaRank;

enum { CUDA_RECENT = 8 };
typedef struct CudaStream {
  CuStream handle;
  bool ours;
  _Atomic uint32_t launched;                   // since the host last saw its end
  const CudaName *_Atomic recent[CUDA_RECENT]; // the latest of them
} CudaStream;

static inline CudaRank *cuda_rank(const RtRank *r) { return r->device; }
static inline CudaStream *cuda_stream(const RtStream *s) { return s->device; }

// Between the two, the rank's context is the thread's current one.
static inline CuContext rt_cuda_enter(const CudaRank *cr) {
  CuContext before = NULL;
  cr->cu->CtxGetCurrent(&before);
  if (before != cr->context) cr->cu->CtxSetCurrent(cr->context);
  return before;
}
static inline void rt_cuda_leave(const CudaRank *cr, CuContext before) {
  if (before != cr->context) cr->cu->CtxSetCurrent(before);
}

// What a failed call means: CU_OK is ST_OK. After a sticky error the team has failed, with a report that names the kernel.
Status rt_cuda_check(RtRank *r, CuStatus s, RtError *e, const char *doing, ...) DT_PRINTF(4, 5);
// Turns what kernels have reported before they gave up into the team's failure.
void rt_cuda_harvest(RtRank *r);
// Copies to or from the device, done when it returns.
CuStatus rt_cuda_copy_now(CudaRank *cr, CuPtr dst, CuPtr src, size_t bytes);
CuStatus rt_cuda_show_records(RtRank *r); // the rank's segments have changed

// Tensor maps of one variant and the latest that were made, found again by the arguments that they are made of.
typedef struct CudaMaps CudaMaps;
Status rt_cuda_maps_open(RtKernel *k, const ImageVariant *v, CudaMaps **out, RtError *e);
// Puts the maps for these arguments behind them, packed, where the variant says. ST_INVALID: the accelerator cannot be told so.
Status rt_cuda_maps_put(const RtKernel *k, CudaMaps *m, const RtArg *args, char *packed, RtError *e);
void rt_cuda_maps_drop(CudaRank *cr);

Status rt_cuda_kernel_load(RtKernel *k, Diags *d, RtError *e);
void rt_cuda_kernel_unload(RtKernel *k);
Status rt_cuda_launch(RtKernel *k, RtStream *s, uint32_t variant, const uint32_t grid[3], const RtArg *args,
                      RtError *e);

#endif
