// ops: host-side plans over the kernel library, on the public API alone. This header is the room's own.
//
// An operator has two functions. setup decides the variant and the blocks, and lists kernels and symmetric buffers; plan.c
// then obtains all of them, on every rank, before the first run (nothing loads while a kernel waits). run enqueues one call.
#ifndef DITRON_OPS_IMPL_H
#define DITRON_OPS_IMPL_H

#define DT_UNSTABLE
#include "ditron/ditron.h"

enum {
  OPS_MAX_KERNELS = 6,
  OPS_MAX_ARGS = 24,
  OPS_MAX_BUFFERS = 6,
  OPS_EVENTS = 4,
  OPS_DONE = OPS_EVENTS - 1
};

typedef struct OpsKernel { // a request, then the loaded kernel
  const char *file, *name;
  dt_named args
      [OPS_MAX_ARGS]; // example values: pointers count by dtype, ints by value, UPPER-CASE names are constexprs
  size_t nargs;
  dt_kernel *loaded;
} OpsKernel;

typedef struct OpsBuffer { // symmetric memory of the plan
  const char *label;
  size_t bytes;
  void *own;    // this rank's
  void **peers; // [world] as this process sees them
} OpsBuffer;

// Words of the channel, in one symmetric buffer of int64: see kernels/collectives.py for the protocol.
typedef struct OpsChannel {
  int64_t *flags, *acks, *done; // [world] each (flags: flag_words)
  int64_t *epoch; // [2]; this rank's own, kept in symmetric memory so that streams may publish it
  size_t flag_words;
} OpsChannel;

struct dt_plan {
  const struct OpsRow *row;
  dt_rank *rank;
  dt_context *context;
  int index, world;
  dt_plan_options o; // pointers in it are not kept past create
  const char *variant;
  char *explain;
  OpsKernel kernels[OPS_MAX_KERNELS];
  int nkernels;
  OpsBuffer buffers[OPS_MAX_BUFFERS];
  int nbuffers;
  bool uses_channel;
  OpsChannel ch;
  dt_stream *side; // second stream; made when uses_side
  bool uses_side;
  dt_event *events[OPS_EVENTS]; // OPS_DONE: the end of the latest call
  dt_stream *latest;            // the stream of that call; only compared
  uint64_t recoveries;          // of the team when the words of the channel were last zeroed
  int32_t block_m, block_n, block_k, block, parts;
  size_t elem; // bytes of one element
};

typedef struct OpsRow {
  const char *name, *tensors, *text;
  size_t ntensors;
  dt_status (*setup)(dt_plan *p);
  dt_status (*run)(dt_plan *p, dt_stream *s, void *const *t);
} OpsRow;

// ---- for setup ---------------------------------------------------------------------------------------------------------
OpsKernel *ops_kernel(dt_plan *p, const char *file, const char *name); // a new request
void ops_arg(OpsKernel *k, const char *name, dt_value v);
// Example pointers, which count by dtype and alignment: memory of the plan's own is aligned, tensors of the caller may lie anywhere,
// words of the channel follow one another.
static inline dt_value ops_own(dt_dtype d) { return dt_ptr(d, NULL); }
static inline dt_value ops_tensor(dt_dtype d) { return dt_ptr(d, (void *)(uintptr_t)dt_dtype_bytes(d)); }
static inline dt_value ops_words(void) { return dt_ptr(DT_I64, (void *)sizeof(int64_t)); }
int ops_buffer(dt_plan *p, const char *label, size_t bytes); // index into p->buffers
// Chooses: the asked variant if it is in the NULL-terminated list, else fails naming the choices; none asked: fallback.
dt_status ops_choose(dt_plan *p, const char *const *variants, const char *fallback);
void ops_explain(dt_plan *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
dt_status ops_fail(dt_plan *p, dt_status s, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool ops_is(const dt_plan *p, const char *variant);

// ---- for run -----------------------------------------------------------------------------------------------------------------
dt_status ops_launch(OpsKernel *k, dt_stream *s, uint32_t x, uint32_t y, const dt_value *args, size_t n);
#define OPS_LAUNCH(k, s, x, y, ...) \
  ops_launch((k), (s), (uint32_t)(x), (uint32_t)(y), (const dt_value[]){__VA_ARGS__}, \
             sizeof((const dt_value[]){__VA_ARGS__}) / sizeof(dt_value))
// `to` goes on when what `from` holds so far is done. e: index of one of the plan's events.
dt_status ops_order(dt_plan *p, int e, dt_stream *from, dt_stream *to);
// The small kernels of every channel, in this order from kernels[first] on.
enum { OPS_ADVANCE, OPS_ANNOUNCE, OPS_WAIT_ALL, OPS_CHANNEL_KERNELS };
void ops_channel_kernels(dt_plan *p);
dt_status ops_advance(dt_plan *p, dt_stream *s);
dt_status ops_announce(dt_plan *p, dt_stream *s, int64_t *words, int64_t per_epoch);
dt_status ops_wait_all(dt_plan *p, dt_stream *s, int64_t *words, int64_t per_epoch, int64_t lag);
// Copy engine: this rank's `bytes` at src into every rank's buffer b at offset, own rank first, each followed by flags[rank] = epoch
// there; waits for that rank's acknowledgement of the call before.
dt_status ops_push_all(dt_plan *p, dt_stream *s, int b, size_t offset, const void *src, size_t bytes);
// Blocks of a GEMM whose output has `rows` rows a rank, and the arguments that all GEMM kernels share.
void ops_gemm_blocks(dt_plan *p, int64_t rows);
void ops_gemm_args(dt_plan *p, OpsKernel *k, int64_t m, int64_t n, int64_t kk); // M, N, K and the constexprs
void ops_gemm_constexprs(dt_plan *p, OpsKernel *k);
static inline int64_t ops_cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

#define OPERATOR(name, tensors, text) \
  dt_status ops_##name##_setup(dt_plan *p); \
  dt_status ops_##name##_run(dt_plan *p, dt_stream *s, void *const *t);
#include "ops/ops.def"
#undef OPERATOR

#endif
