// rt_impl: what the files of the rt room share.
//
// What all ranks of a team see lies in one block of memory, `Control`, which the transport provides: private memory where
// ranks are threads, a shared mapping where they are processes. Symmetric heaps follow it in the same mapping:
//
//   [ Control | ControlRank 0 | ControlRank 1 | ... ][ heap 0 ][ heap 1 ] ...
//
// A rank's own objects are ordinary memory of its process: workers with their fibers, streams, the copy engine. On a GPU
// its heap and what kernels read lie in the device's memory instead, and what its driver keeps hangs off `device` pointers.
// Locks: RtRank.lock guards the queues of streams and the list of running launches; it is held for a few instructions.
// Engine.lock guards the engine's queues, RtEvent.lock an event. None is taken while another is held.
#ifndef DITRON_RT_IMPL_H
#define DITRON_RT_IMPL_H

#include "rt/rt.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <string.h>

// ---- control block -----------------------------------------------------------------------------
enum {
  RT_REPORT_BYTES = 4096,
  RT_WRITERS = 1024,         // remembered signal words a rank
  RT_TRACE_EVENTS = 1 << 16, // latest events kept a rank
  RT_LABEL = 32,
  RT_SLOT_BYTES = RT_EXCHANGE_MAX + 64
};

typedef enum PeerState { PEER_ABSENT, PEER_HERE, PEER_LEFT, PEER_DEAD } PeerState;

// Who last signalled a word, for reports: written without locks, one entry a hash slot, may be torn between writers.
// [0] which word (fault.c), [1] value, [2] rank, [3] time, [4..7] where ("file.py:12")
typedef struct Writer {
  _Atomic uint64_t w[8];
} Writer;

typedef enum TraceKind { TRACE_LAUNCH, TRACE_WAIT, TRACE_COPY, TRACE_HOLD, TRACE_MARK } TraceKind;
typedef struct TraceEvent { // all of it written before `ready`
  uint64_t begin, end, bytes;
  uint32_t kind, stream, pid[3]; // pid: the instance; of a launch, its grid
  _Atomic uint32_t ready;
  char name[24];
} TraceEvent;

typedef struct ControlRank {
  _Alignas(64) _Atomic uint64_t arrived; // host collectives that this rank has reached
  _Atomic uint64_t recovered;            // the same for the steps of rt_recover
  _Atomic uint32_t state;                // PeerState
  _Atomic uint32_t pid;
  uint64_t pid_space;                     // pid means something to processes with the same
  _Alignas(64) _Atomic uint32_t work_seq; // futex: grows when a worker may have something to do
  _Atomic uint32_t sleepers;              // workers asleep on it
  _Alignas(64) _Atomic uint64_t
      meets[RT_MAX_STREAMS];                // barriers inside kernels that this rank has reached, by stream
  _Alignas(64) char slot[2][RT_SLOT_BYTES]; // what this rank says in the even and odd collectives
  _Atomic uint32_t report_state;            // 0 none, 1 being written, 2 readable
  uint32_t report_status;
  char report[RT_REPORT_BYTES];
  Writer writers[RT_WRITERS];
  char stream_label[RT_MAX_STREAMS][RT_LABEL];
  _Atomic uint64_t trace_next;
  TraceEvent trace[RT_TRACE_EVENTS];
} ControlRank;

typedef struct Control {
  _Atomic uint64_t abort;    // 0, or status << 32 | rank + 1 of the first witness
  _Atomic uint64_t epoch_ns; // zero of the timeline
  _Atomic uint32_t speaker;  // rank + 1 of the process that tells people of the failure
  _Alignas(64) ControlRank rank[];
} Control;

// ---- fibers ------------------------------------------------------------------------------------
typedef struct Worker Worker;
typedef struct Fiber Fiber;
typedef struct Cmd Cmd;

typedef struct WaitFor {
  const void *flag;
  uint64_t value, since;
  uint64_t until; // when it was seen to hold, where a timeline is kept
  const _Atomic uint64_t
      *meets; // team barrier: rank 0's count; until those of all n ranks are at least value
  uint32_t n, bytes;
  AbiCmp cmp;
  AbiSite site;
} WaitFor;

typedef struct WarpGroup { // one warps() call
  Fiber *parent;
  Fiber *parked; // warps at the barrier
  uint32_t n, left, arrived;
} WarpGroup;

// A stack and what runs on it. Every fiber runs the worker's loop; an instance runs on top of it. When it blocks, the
// worker goes on with another fiber's loop.
struct Fiber {
  void *sp;
  char *map; // guard page, then the stack
  size_t map_bytes;
  char *arena;
  uint64_t arena_bytes;
  Worker *worker; // NULL: the host's thread runs a launch by itself, on its own stack
  RtRank *rank;
  Fiber *next;    // in a list
  Cmd *launch;    // of the instance on it; NULL: none
  uint64_t count; // instances of the chunk that it took
  AbiInstance inst;
  WaitFor wait;
  uint64_t polls_since; // when the polling loop that it is in was entered
  bool dropped;         // resumes only to unwind
  WarpGroup *group;
  void (*body)(AbiInstance *i, void *ctx, uint32_t w);
  void *body_ctx;
  jmp_buf escape; // to the loop below the instance
  void *asan_fake, *tsan;
};

Fiber *rt_fiber_new(RtRank *r, void (*entry)(Fiber *self), Worker *w); // NULL: no memory
void rt_fiber_free(Fiber *f);
void rt_fiber_switch(Fiber *from, Fiber *to);
void rt_fiber_entered(Fiber *f); // first thing on a new fiber
void rt_fiber_adopt(Fiber *f);   // f stands for the running thread's own stack
uint64_t rt_fiber_stack_bytes(void);
bool rt_fiber_arena(Fiber *f, uint64_t bytes); // at least so many; false: no memory

typedef struct FiberList {
  Fiber *head, *tail;
} FiberList;

struct Worker {
  RtRank *rank;
  uint32_t index;
  pthread_t thread;
  bool started;
  Fiber root; // the thread's own stack
  FiberList ready, pool;
  Fiber **all, **waiting; // waiting: to be polled; both have room for all fibers
  uint32_t nfibers, nwaiting, cap;
  uint32_t live; // fibers with an instance or a warp on them
  uint32_t idle, polls, turn, yields;
  bool fresh; // next, an instance that has not begun goes before those that are ready
  Cmd *cmd;   // the launch it takes instances from
};

// ---- streams -----------------------------------------------------------------------------------
typedef enum CmdKind {
  CMD_LAUNCH,
  CMD_COPY,
  CMD_FILL,
  CMD_SIGNAL,
  CMD_WAIT,
  CMD_RECORD,
  CMD_WAIT_EVENT,
  CMD_HOST
} CmdKind;

enum { RT_INLINE_ARGS = 512 };
struct Cmd {
  Cmd *next;
  RtStream *stream;
  CmdKind kind;
  uint64_t begin_ns;
  union {
    struct {
      RtKernel *kernel;
      const ImageVariant *variant;
      AbiCpuEntry entry;
      const void *args;
      void *big_args; // where they do not fit below
      uint32_t grid[3];
      uint64_t n, chunk;           // chunk: most taken at a time
      _Atomic uint64_t next, done; // instances handed out, and finished
      uint32_t refs;               // workers that hold it; under the rank's lock, as the two flags
      bool listed, complete;
    } launch;
    struct {
      char *dst;
      const char *src;
      uint64_t dst_pitch, src_pitch, width, rows, row, at;
    } copy;
    struct {
      char *dst;
      uint64_t bytes, at;
      int byte;
    } fill;
    struct {
      uint64_t *word, *own; // the peer's, as mapped here, and this rank's symmetric address of it
      const uint64_t *src;  // NULL: value
      uint64_t value;
      int peer;
      bool add;
    } signal;
    struct {
      const uint64_t *word, *bound; // bound NULL: value
      uint64_t value, since;
    } wait;
    struct {
      RtEvent *event;
      uint64_t ticket;
    } event;
    struct {
      void (*fn)(void *user);
      void *user;
    } host;
  };
  _Alignas(64) char args[RT_INLINE_ARGS];
};

struct RtStream {
  RtRank *rank;
  void *device; // its driver's own
  uint32_t index;
  char label[RT_LABEL];
  Cmd *head, *tail;      // queued, not begun
  Cmd *running;          // under the rank's lock
  _Atomic uint32_t busy; // something is queued or runs
  Fiber inline_fiber;    // for launches that the host's thread runs itself
};

struct RtEvent {
  pthread_mutex_t lock;
  RtRank *rank;
  void *device;      // its driver's own
  uint64_t recorded; // tickets given out
  _Atomic uint64_t completed;
  uint64_t time_ns; // of the latest completed
  Cmd *waiters;
};

typedef struct Engine {
  pthread_mutex_t lock;
  pthread_t thread;
  bool started;
  Cmd *head, *tail;     // given to it, not yet seen
  Cmd *jobs;            // what it works on, in turn; its own thread's
  _Atomic uint32_t seq; // futex
  _Atomic uint32_t asleep;
} Engine;

// ---- ranks and teams ---------------------------------------------------------------------------
typedef struct HeapBlock {
  uint64_t offset, bytes;
  bool used;
  char label[RT_LABEL];
} HeapBlock;

enum { RT_MAX_SEGMENTS = 256 };
typedef struct Segments { // entry 0: the symmetric heap; the others: registered buffers, bytes 0 where free
  AbiSegment abi[RT_MAX_SEGMENTS];
  uint64_t *bases[RT_MAX_SEGMENTS];
  char labels[RT_MAX_SEGMENTS][RT_LABEL];
} Segments;

struct RtRank {
  RtTeam *team;
  void *device;     // its driver's own
  int index, local; // in the world, in the process
  ControlRank *control;
  AbiRank abi;
  uint64_t epoch, recoveries; // collectives begun
  pthread_mutex_t lock;
  Worker *workers;
  uint32_t nworkers;
  Cmd *free_cmds; // spare commands, and what they were allocated in; under the lock
  struct CmdSlab *slabs;
  Cmd *active[RT_MAX_STREAMS]; // launches with instances to hand out; under the lock
  _Atomic uint32_t nactive;
  _Atomic uint32_t quit;
  _Atomic uint64_t budget_used;
  RtStream *streams[RT_MAX_STREAMS];
  _Atomic uint32_t done_seq, syncing; // futex of host threads that wait for streams
  Engine engine;
  pthread_mutex_t heap_lock;
  HeapBlock *blocks; // sorted by offset; all ranks have the same
  uint32_t nblocks, blocks_cap;
  uint64_t dirty; // of the heap, this much was handed out at some time; the rest is zero
  Segments segments;
};

// A driver runs a rank on one kind of device (devices.def). What has to be checked for every device is checked by its
// callers, the functions of rt.h, and streams, events and kernels come with their common fields set.
typedef struct RtDriver {
  ImageTarget target;
  bool
      own_heap; // the symmetric heap is the device's memory, taken when first asked for, not the transport's block
  bool (*list)(RtContext *c, uint32_t i, RtDeviceInfo *out); // false past the last
  Status (*start)(RtRank *r, uint32_t ordinal, uint32_t workers, RtError *e);
  void (*stop)(RtRank *r);
  void (*raise)(RtRank *r);                 // the team has aborted
  Status (*recover)(RtRank *r, RtError *e); // streams are idle; ST_OK where the device is still good
  Status (*alloc)(RtRank *r, uint64_t bytes, void **out, RtError *e);
  void (*free)(RtRank *r, void *p);
  Status (*zero)(RtRank *r, void *p, uint64_t bytes, RtError *e); // done when it returns
  Status (*show_segments)(RtRank *r, RtError *e);                 // the rank's segments have changed
  Status (*stream_open)(RtStream *s, bool wrap, void *native, RtError *e);
  void (*stream_close)(RtStream *s);
  void *(*stream_native)(const RtStream *s);
  Status (*stream_sync)(RtStream *s, RtError *e);
  bool (*stream_idle)(const RtStream *s);
  Status (*event_open)(RtEvent *ev, RtError *e); // NULL: nothing to do
  void (*event_close)(RtEvent *ev);
  Status (*event_record)(RtEvent *ev, RtStream *s, RtError *e);
  Status (*stream_wait_event)(RtStream *s, RtEvent *ev, RtError *e);
  Status (*event_sync)(RtEvent *ev, RtError *e);
  Status (*event_elapsed)(const RtEvent *from, const RtEvent *to, double *ms, RtError *e);
  Status (*copy)(RtStream *s, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                 uint64_t width, uint64_t rows, RtError *e);
  Status (*fill)(RtStream *s, void *dst, int byte, uint64_t bytes, RtError *e);
  Status (*host_call)(RtStream *s, void (*fn)(void *user), void *user, RtError *e);
  // src NULL: value. `there`: word as the peer has it
  Status (*signal)(RtStream *s, uint64_t *word, uint64_t *there, const uint64_t *src, uint64_t value,
                   bool add, int peer, RtError *e);
  Status (*wait)(RtStream *s, const uint64_t *word, const uint64_t *bound, uint64_t value, RtError *e);
  Status (*kernel_load)(RtKernel *k, Diags *d, RtError *e); // image and info are set; allocates in k->arena
  void (*kernel_unload)(RtKernel *k);
  Status (*launch)(RtKernel *k, RtStream *s, uint32_t variant, const uint32_t grid[3], const RtArg *args,
                   RtError *e); // the grid is not empty
} RtDriver;
#define DEVICE(name, text) extern const RtDriver rt_driver_##name;
#include "rt/devices.def"
#undef DEVICE
// "cpu", "cuda", "cuda:1". NULL and an error where there is none of that name.
const RtDriver *rt_driver_find(const char *device, uint32_t *ordinal, RtError *e);

// A transport brings up the block that all ranks map, and notices peers that end.
typedef struct RtTransport {
  RtTransportInfo info;
  bool processes; // ranks are processes: other ranks cannot reach this process's own memory
  Status (*open)(RtTeam *t, const RtJob *job, size_t bytes, RtError *e); // sets map and control; zeroed
  void (*watch_end)(RtTeam *t);                                          // stops noticing; the rank leaves
  void (*close)(RtTeam *t);                                              // unmaps
} RtTransport;
#define TRANSPORT(name, text) extern const RtTransport rt_transport_##name;
#include "rt/transports.def"
#undef TRANSPORT

typedef struct ShmState ShmState;

struct RtTeam {
  RtContext *context;
  const RtTransport *transport;
  const RtDriver *driver;
  int world, nlocal;
  RtRank *ranks; // local ones
  uint64_t deadline_ns, heap_bytes, control_bytes;
  char *map;
  size_t map_bytes;
  Control *control;
  _Atomic bool tracing;
  ShmState *shm;
};

struct RtContext {
  RtConfig config;
  pthread_mutex_t lock;
  struct Cuda *cuda;     // NVIDIA's driver, once it was asked for; under the lock until then
  _Atomic uint32_t jobs; // teams made from the environment so far
};

struct RtKernel {
  RtRank *rank;
  void *device; // its driver's own
  Arena arena;
  const Image *image;
  const ImageKernel *info;
  ImageCode *code;
  AbiCpuEntry *entries;          // by variant
  char (*site_labels)[RT_LABEL]; // by site: "file.py:12"
  // Why a launch first took another variant than the first: written once, by who takes the flag, before it is said.
  atomic_flag passed_over;
  _Atomic bool passed_over_said;
  char passed_over_text[512];
};

// ---- errors (context.c) --------------------------------------------------------------------------
Status rt_fail(RtError *e, Status s, const char *fmt, ...) DT_PRINTF(3, 4);
Status rt_no_memory(RtError *e);

// A text that grows in a fixed buffer and is cut at its end.
typedef struct RtText {
  char *s;
  size_t n, cap;
} RtText;
void rt_say(RtText *t, const char *fmt, ...) DT_PRINTF(2, 3);

// ---- faults (fault.c) ------------------------------------------------------------------------------
static inline bool rt_aborted(const RtTeam *t) {
  return atomic_load_explicit(&t->control->abort, memory_order_acquire) != 0;
}
// Begins this rank's report, unless it has one: only then true, and rt_report_end must follow.
bool rt_report_begin(RtRank *r, Status s, RtText *text);
void rt_report_end(RtRank *r);                // makes it readable
void rt_raise(RtTeam *t, Status s, int rank); // the abort word and everybody who sleeps
void rt_fault(RtRank *r, Status s, const char *fmt, ...) DT_PRINTF(3, 4); // report and raise
void rt_fault_instance(Fiber *f, Status s, AbiSite site, const char *fmt, ...) DT_PRINTF(4, 5);
void rt_fault_wait(Worker *w, const Fiber *first); // a deadline has passed
void rt_report_waits(Worker *w); // abort seen from outside: adds what this rank was waiting for
void rt_describe_word(RtText *t, RtRank *r, const void *p); // 'label' + offset
void rt_writer_note(RtTeam *t, int owner, const void *there, uint64_t value, int writer, const char *where);
void rt_writer_say(RtText *t, RtRank *r, const void *word);
void rt_await_reports(const RtTeam *t); // a moment, for ranks that have something to add
void rt_lost(RtTeam *t, int rank);      // a peer ended

// ---- segments (heap.c) -------------------------------------------------------------------------------
Status rt_heap_init(RtRank *r, RtError *e);
void rt_heap_free(RtRank *r);
// The peer's view of this rank's symmetric range, or NULL where it is not symmetric or peer is out of range.
void *rt_peer_address(const RtRank *r, const void *p, uint64_t bytes, int peer);
static inline ControlRank *rt_control_rank(const RtTeam *t, int rank) { return &t->control->rank[rank]; }

// ---- collectives (team.c) ----------------------------------------------------------------------------
typedef struct Said { // what a rank says when it comes to a collective
  char what[32];      // must agree
  uint64_t amount;    // must agree
  uint32_t extra;     // bytes below; must agree
} Said;
// All ranks' extra bytes into all[world * extra] (may be NULL where extra is 0).
Status rt_collective(RtRank *r, const char *what, uint64_t amount, const void *mine, uint32_t extra,
                     void *all, RtError *e);

// ---- the device of CPU ranks (dev_cpu.c and the files below)
Status rt_cpu_launch(RtKernel *k, RtStream *s, uint32_t variant, const uint32_t grid[3], const RtArg *args,
                     RtError *e);
void rt_cpu_stream_close(RtStream *s);
Status rt_cpu_stream_sync(RtStream *s, RtError *e);
bool rt_cpu_stream_idle(const RtStream *s);
Status rt_cpu_stream_open(RtStream *s, bool wrap, void *native, RtError *e);
void rt_cpu_event_close(RtEvent *ev);
Status rt_cpu_event_record(RtEvent *ev, RtStream *s, RtError *e);
Status rt_cpu_stream_wait_event(RtStream *s, RtEvent *ev, RtError *e);
Status rt_cpu_event_sync(RtEvent *ev, RtError *e);
Status rt_cpu_event_elapsed(const RtEvent *from, const RtEvent *to, double *ms, RtError *e);
Status rt_cpu_copy(RtStream *s, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                   uint64_t width, uint64_t rows, RtError *e);
Status rt_cpu_fill(RtStream *s, void *dst, int byte, uint64_t bytes, RtError *e);
Status rt_cpu_host_call(RtStream *s, void (*fn)(void *user), void *user, RtError *e);
Status rt_cpu_signal(RtStream *s, uint64_t *word, uint64_t *there, const uint64_t *src, uint64_t value,
                     bool add, int peer, RtError *e);
Status rt_cpu_wait(RtStream *s, const uint64_t *word, const uint64_t *bound, uint64_t value, RtError *e);

void rt_cuda_close(struct Cuda *c); // NULL is fine (cuda_driver.c)

// ---- kernels (kernel.c) ----------------------------------------------------------------------------
// Arguments as the variant's code expects them, in args_bytes.
void rt_pack_args(const ImageVariant *v, const RtArg *args, char *out);
Status rt_fail_diags(RtError *e, Status s, const Diags *d, const char *before);

// ---- workers (worker.c, calls.c) -----------------------------------------------------------------------
Status rt_workers_start(RtRank *r, uint32_t n, RtError *e);
void rt_workers_stop(RtRank *r);
void rt_block(Fiber *f); // until somebody makes it ready
void rt_make_ready(Fiber *f);
DT_NORETURN void rt_escape(Fiber *f); // ends the instance (or warp) on f; after a fault
bool rt_wait_holds(const WaitFor *w);
void rt_fiber_wait(Fiber *f, const WaitFor *wait); // returns when it holds; escapes on abort
void rt_reserve(Fiber *f, uint32_t n);             // n spare fibers, or the instance on f fails
Fiber *rt_pool_take(Worker *w);                    // one of those
bool rt_run_inline(RtStream *s); // the host's thread runs the stream's tiny launch, if it may
void rt_wake_workers(RtTeam *t, int rank, uint32_t n); // always counts, wakes who sleeps
void rt_kick(RtTeam *t, int rank);                     // after a signal: only if somebody sleeps
void rt_call_yield(AbiInstance *i, AbiSite site, uint32_t turn);
void rt_call_warps(AbiInstance *i, uint32_t n, void (*body)(AbiInstance *, void *, uint32_t), void *ctx);
void rt_call_block_barrier(AbiInstance *i, uint32_t warps, AbiSite site);
extern const AbiCpuCalls rt_cpu_calls; // all that compiled code may call back (calls.c)

// ---- streams (stream.c, engine.c) ------------------------------------------------------------------------
void rt_advance(RtStream *s);              // begins what can begin; called when idle or after a command
void rt_launch_done(Cmd *c);               // the last instance is finished
void rt_launch_release(RtRank *r, Cmd *c); // a worker lets go of it
Cmd *rt_cmd_new(RtStream *s, CmdKind k, RtError *e);
void rt_cmd_drop(Cmd *c); // not enqueued
void rt_cmds_free(RtRank *r);
void rt_cmd_enqueue(Cmd *c);
void rt_cmd_finish(Cmd *c); // done; its stream goes on
Status rt_engine_start(RtRank *r, RtError *e);
void rt_engine_stop(RtRank *r);
void rt_engine_give(RtRank *r, Cmd *c);
bool rt_engine_try(RtRank *r, Cmd *c, uint64_t most); // a step of at most so many bytes; true: finished
void rt_engine_kick(RtRank *r);

// ---- timeline (trace.c) ------------------------------------------------------------------------------------
static inline bool rt_tracing(const RtRank *r) {
  return atomic_load_explicit(&r->team->tracing, memory_order_relaxed);
}
void rt_trace(RtRank *r, TraceKind k, uint32_t stream, const uint32_t pid[3], uint64_t begin, uint64_t end,
              uint64_t bytes, const char *name);
typedef struct TraceItem { // an event as collected
  int rank;
  TraceEvent e;
} TraceItem;
typedef struct TraceOut {
  Arena *arena;
  Vec(char) text;
} TraceOut;
void rt_out(TraceOut *o, const char *fmt, ...) DT_PRINTF(2, 3);
void rt_out_escaped(TraceOut *o, const char *s, bool xml); // for XML text or a JSON string
// items sorted by rank, stream and begin; times from the first event
void rt_trace_svg(TraceOut *o, const RtTeam *team, const TraceItem *items, uint32_t n);
const char *rt_trace_stream(const RtTeam *t, const TraceItem *it); // its stream's label

// ---- small things of the system (sys.c) ----------------------------------------------------------------------
int rt_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t most_ns); // 0: no limit
void rt_futex_wake(_Atomic uint32_t *word, uint32_t n);
// Polls, then yields the core, then sleeps in growing steps. Start with *turn 0.
void rt_backoff(uint32_t *turn, uint64_t most_sleep_ns);
static inline void rt_relax(void) { __builtin_ia32_pause(); }
Status rt_thread_start(pthread_t *t, void *(*main)(void *), void *arg, const char *name,
                       RtError *e); // all signals blocked

#endif
