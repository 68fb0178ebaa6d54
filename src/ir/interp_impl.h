// interp_impl: what the files of the interpreter share.
//
//   IrFunc -> Code (flat instructions, value slots)            interp_compile.c, interp_pick.c
//   World  -> ranks -> streams -> launches -> instances        interp.c
//          -> agents that step through Code                    interp_exec.c
//   kernels on arrays: interp_elem.c, interp_convert.c, interp_tile.c; memory: interp_mem.c; registers of lanes: interp_lanes.c; waits, copies: interp_dist.c
//   vector clocks and shadow memory of --check: interp_clock.c, interp_check.c
//
// An agent is a program counter, a lane mask and a copy of the program scalars: there is no recursion over the program, so
// agents switch at any instruction. An instance's root agent runs tile and program code for all threads at once. Where
// threads may go separate ways or wait (a "span") it forks one agent a warp and goes on when all have come to the end.
#ifndef DITRON_INTERP_IMPL_H
#define DITRON_INTERP_IMPL_H

#include "ir/ir.h"

typedef struct World World;
typedef struct Agent Agent;
typedef struct Instance Instance;
typedef struct Group Group;
typedef struct Launch Launch;
typedef struct Stream Stream;
typedef struct Code Code;
typedef struct Ins Ins;
typedef struct Job Job;
typedef struct Clock Clock;
typedef struct Check Check;

// ---- values ----------------------------------------------------------------------------------------------------------
// Every value is an array of elements as dtypes.def stores them (i1: a byte; pointers: 8 bytes). Scalars have one.
// A value that is the same in all elements keeps one element and stride 0.
typedef enum Space {
  SP_NONE, // operand left out
  SP_CO,   // constants of the code
  SP_SC,   // scalars: a copy of their own for each agent
  SP_AR,   // tiles: one area an instance
  SP_TH,   // thread scalars, in the same area: an element a thread; an agent sees them from its first lane on
  SP_LO,   // tiles inside a warp_for whose warps run at the same time: an area an agent
  SP_COUNT
} Space;
typedef struct Ref {
  uint32_t off;
  uint8_t space, stride; // stride: 0 or 1 elements
  uint8_t tsz;           // bytes an element of SP_TH, else 0
  uint8_t esize;
} Ref;

typedef enum Step { GO, SWITCH, BLOCKED, ENDED } Step; // SWITCH: done, and a good moment for others
typedef Step (*Exec)(World *w, Agent *a, const Ins *i);
enum { STRIDE_A = 1, STRIDE_B = 2, STRIDE_C = 4 };
typedef void (*Kern)(void *r, const void *a, const void *b, const void *c, unsigned strides, size_t n);

struct Ins {
  Exec exec;
  Kern fn;
  uint32_t n;      // elements; 0: one for each thread of the agent
  uint32_t target; // of a jump, or the end of a span
  uint8_t dt, rdt; // IrDtype of the operands, of the result
  uint8_t flags, strides;
  Ref r, a, b, c;
  const void *extra; // by op: see the exec function
  const IrOp *op;    // source line; never NULL
};
enum { INS_TRACK = 1, INS_MASKED = 2, INS_THREAD = 4, INS_PTR = 8, INS_DATA = 16 };

struct Code {
  const IrFunc *func;
  Vec(Ins) ins;
  char *consts;
  size_t const_bytes, sc_bytes, ar_bytes, lo_bytes, arena_bytes;
  size_t arena_off; // placed: where the instance's arena of memdescs with offsets lies in the area
  uint32_t nwarps, lanes;
  Ref *params;                  // by parameter
  uint32_t mbarriers;           // of an instance
  Vec(const struct Buf *) bufs; // mem_allocs
};
typedef struct Buf { // shared memory of one mem_alloc
  uint32_t off, bytes;
  const IrOp *op;
} Buf;
const char *interp_compile(World *w, const IrFunc *f, Code **out, Loc *where); // NULL, or why not

typedef struct Picked {
  Kern fn;
  bool narrow;     // operands go through f32
  uint8_t dt, rdt; // dtypes for widening and narrowing
} Picked;
bool interp_pick(const IrOp *op, Picked *out);  // elementwise kernel of an op
Kern interp_pick_binary(IrOpKind k, IrDtype d); // add .. abs_s, fadd .. on plain dtypes
Kern interp_pick_cast(const IrOp *op, IrDtype from, IrDtype to);
void interp_widen(IrDtype d, float *r, const void *a, size_t n);  // small floats to f32
void interp_narrow(IrDtype d, void *r, const float *a, size_t n); // and back, to nearest even
float interp_f32_odd(long double x); // to odd, so that a second rounding is right

// ---- copying arrays ----------------------------------------------------------------------------------------------------
typedef struct NdCopy { // r[i..] = a[i..] over shape with strides in elements; axes collapsed
  int rank;
  int64_t shape[IR_MAX_RANK], rs[IR_MAX_RANK], as[IR_MAX_RANK];
} NdCopy;
NdCopy *interp_nd(World *w, int rank, const int64_t *shape, const int64_t *rs, const int64_t *as);
void interp_nd_copy(const NdCopy *nd, char *r, const char *a, int esize);
void interp_fill(void *r, const void *elem, int esize, size_t n);

// ---- agents --------------------------------------------------------------------------------------------------------------
typedef enum AgentKind { AGENT_BLOCK, AGENT_WARP, AGENT_VEC, AGENT_STREAM, AGENT_JOB } AgentKind;
typedef enum AgentState {
  AGENT_READY,
  AGENT_WAITING,
  AGENT_JOINING,
  AGENT_AT_BARRIER,
  AGENT_OVER
} AgentState;

typedef struct Polled { // a word that a polling loop read
  uint64_t addr, seen;
  uint8_t size;
} Polled;
enum { MAX_POLLED = 64 };

// An identity in the vector clocks: epoch is the time of its next access.
typedef struct Actor {
  Clock *seen;     // what happened before its next access
  Clock *released; // by its last release fence, or NULL
  Clock *pending;  // what relaxed reads would give to an acquire fence
  uint32_t comp, epoch;
  uint8_t released_scope;
} Actor;

typedef enum WaitKind {
  WAIT_NONE,
  WAIT_WORD,
  WAIT_POLL,
  WAIT_TEAM,
  WAIT_MBAR,
  WAIT_LAUNCH,
  WAIT_STREAM
} WaitKind;
// What a product in flight reads of shared memory, noted with --check: until it is waited for, nobody may write there.
typedef struct Flight {
  const Ins *ins;
  const char *p;
  size_t bytes;
  uint32_t lane;
  uint64_t product; // its number among the agent's
} Flight;

struct Agent {
  AgentKind kind;
  AgentState state;
  int rank;
  uint32_t pc;
  char *base[SP_COUNT];
  uint32_t lane0, nthr; // its threads in its group
  uint64_t mask;        // AGENT_WARP, AGENT_VEC: active lanes
  int warp;             // AGENT_WARP: in the block; -1 otherwise
  const Code *code;
  Instance *inst;
  Group *group;
  Agent *parent, *first_child, *next; // next: sibling or free list
  uint32_t children;
  Stream *stream;
  Job *job;
  uint32_t slot; // in the list of its state
  // waiting
  WaitKind wait;
  const Ins *wait_ins;
  uint64_t addr, value, begin; // WAIT_WORD: the word; WAIT_TEAM: arrival number; WAIT_MBAR: index and phase
  uint64_t progress;           // words or lanes of the wait op that are satisfied already
  uint8_t size, cmp;
  bool resumed, barred;
  // polling loops
  bool polls, coarse, changed;
  uint32_t npolled;
  uint64_t writes, writes0, epoch0;
  Polled *polled; // [MAX_POLLED], made when first needed
  const Ins *polled_ins;
  // products in flight
  Vec(Flight) flights;
  uint64_t products; // that were issued
};

typedef struct MBar {
  int64_t arrivals, count, bytes; // still expected in this phase
  uint32_t phase;
  Clock *next, *done;
} MBar;

struct Group { // the block, or a partition of it
  Instance *inst;
  Group *next;
  uint32_t first, nwarps;
  uint32_t arrived, gone, live; // warps at the barrier, past the span's end, forked
  const Ins *bar, *gone_at;
  Agent **warps;       // [nwarps], while forked
  Actor tiles, scalar; // program code: all threads; the one thread that does scalar accesses
};

typedef struct Delayed { // a plain store that others do not see yet
  uint64_t addr;
  size_t bytes, at; // data in Instance.held
} Delayed;
struct Instance {
  Launch *launch;
  Instance *next;
  int rank;
  uint32_t pid[3], agents;
  uint64_t begin, number;
  char *area;
  MBar *mbars;
  Group root;
  Group *parts;
  Actor *warps; // [nwarps], check
  Job *first_job, **last_job;
  uint32_t job_count, jobs_live;
  uint32_t *shadow; // of shared memory, check
  bool delays;      // its plain stores wait for its next release
  Vec(Delayed) delayed;
  Vec(char) held;
  uint64_t delayed_lo, delayed_hi; // around all of them
  Instance *next_delaying, **prev_delaying;
};

typedef enum JobKind { JOB_PUT, JOB_GET, JOB_LOAD, JOB_DESC_LOAD, JOB_DESC_STORE } JobKind;
struct Job { // a copy in flight
  JobKind kind;
  Instance *inst;
  Job *next;
  Agent *agent;
  const Ins *ins;
  uint32_t number; // in its instance, from 1
  int issuer;      // warp, or -1: the whole instance
  bool done, block, staged;
  uint64_t dst, src, bytes, sig, value;
  uint8_t sig_size, sigop;
  int pe;
  char *data; // staged source; pointers of a JOB_LOAD
  uint64_t *ptrs;
  uint8_t *mask;
  char *other;
  MBar *bar;
  InterpDesc desc;
  int64_t index[5];
  Actor actor;
  size_t heap; // bytes of this record, for the pool
};

struct Launch {
  const InterpCmd *cmd;
  Code *code;
  Stream *stream;
  Launch *next;
  uint32_t total, started, done, alive, ready, window;
  Instance *free; // finished ones, to be used again
  Clock *start;
  uint64_t begin;
};

struct Stream {
  int rank, id, index; // index: among all streams
  Agent *agent;
  int *cmds; // indices into config's commands
  uint32_t ncmds, at;
  uint64_t copied;
  bool running;
  Launch *launch;
  Actor actor;
  Clock *work; // join of the running launch's instances
};

typedef struct Range {
  uint64_t base, end;
  const InterpMemory *mem;
  uint32_t *shadow; // a state for each 8 bytes
} Range;

typedef struct LastWrite { // who last wrote a word that someone may wait for
  uint64_t addr;
  int rank;
  uint32_t pid[3];
  Loc loc;
  bool copy;
} LastWrite;

typedef struct TeamGen { // one meeting of a team barrier
  uint32_t arrived;
  Clock *clock;
} TeamGen;
enum { MAX_TEAMS = 16 };
typedef struct Team {
  uint64_t *arrivals; // by rank
  Vec(TeamGen) gens;
} Team;

typedef Vec(Agent *) AgentList;
struct World {
  Arena arena; // everything of the run
  Escape escape;
  const InterpConfig *c;
  InterpResult *r;
  Range *ranges;
  int nranges, last;
  Stream *streams;
  int nstreams;
  Vec(Code *) codes;
  Launch *launches; // active
  AgentList ready, waiting;
  Agent *free_agents;
  void *pool[48]; // free memory by power of two
  Rng rng;
  uint64_t steps, max_steps, elems;
  uint64_t writes, polled_at; // count of writes to memory; at the last polling of waits
  uint64_t instances, total_instances, next_report;
  uint64_t live_bytes;
  bool stop, check;
  bool preempt;       // a word that others may wait for was just written
  bool delay;         // with a seed: some instances delay their plain stores
  Instance *delaying; // those that hold some
  int slow;           // with a seed: the rank that gets fewer turns; -1: none
  Vec(InterpFinding) findings;
  int max_findings;
  Map seen_findings;
  Map last_writes; // address -> LastWrite *
  Team teams[MAX_TEAMS];
  char *scratch;
  size_t scratch_cap;
  int *alive; // instances alive by rank
  Check *chk;
};

static inline char *interp_at(const Agent *a, Ref r) {
  return a->base[r.space] + r.off + (size_t)a->lane0 * r.tsz;
}
static inline uint32_t interp_count(const Agent *a, const Ins *i) { return i->n ? i->n : a->nthr; }
static inline bool interp_active(const Agent *a, uint32_t lane) {
  return a->warp < 0 && a->kind != AGENT_VEC ? true : (a->mask >> lane) & 1;
}
static inline int64_t interp_int(const void *p, int esize) { // sign-extended
  switch (esize) {
  case 1: return *(const int8_t *)p;
  case 2: return *(const int16_t *)p;
  case 4: return *(const int32_t *)p;
  default: return *(const int64_t *)p;
  }
}
static inline void interp_put_int(void *p, int esize, int64_t v) {
  switch (esize) {
  case 1: *(int8_t *)p = (int8_t)v; break;
  case 2: *(int16_t *)p = (int16_t)v; break;
  case 4: *(int32_t *)p = (int32_t)v; break;
  default: *(int64_t *)p = v;
  }
}
static inline int64_t interp_ref_int(const Agent *a, Ref r, uint32_t i) {
  return interp_int(interp_at(a, r) + (size_t)i * r.stride * r.esize, r.esize);
}
// The warp of the agent's lane, for attributing an access of a thread; -1 for program code.
static inline int interp_warp(const Agent *a, const Ins *i, uint32_t lane) {
  if (a->warp >= 0) return a->warp;
  if (!(i->flags & INS_THREAD) || !a->group || a->kind == AGENT_VEC) return -1;
  return (int)(a->group->first + (a->lane0 + lane) / a->code->lanes);
}
char *interp_scratch(World *w, size_t bytes);  // valid until the next call
void *interp_pool_get(World *w, size_t bytes); // contents undefined
void interp_pool_put(World *w, void *p, size_t bytes);

// ---- executing (interp_exec.c) -------------------------------------------------------------------------------------------------
Step interp_agent_run(World *w, Agent *a, uint32_t budget);
void interp_body_run(World *w, Agent *a, uint32_t pc); // a combine region on up to 64 lanes

// clang-format off
#define EXECS_CONTROL \
  X(jump) X(jump_if_not) X(copy) X(for_test) X(for_next) X(tsave) X(tif) X(tset) X(trest) X(tloop) \
  X(tfor) X(tfor_next) X(tcase) X(spin_head) X(spin) X(fork) X(join) X(fork_warps) X(fork_parts) \
  X(part_end) X(warp_set) X(ret) X(body_end) X(switch_to)
// clang-format on
// clang-format off
#define EXECS_VALUE \
  X(elem) X(elem_narrow) X(program_id) X(num_programs) X(rank) X(num_ranks) X(tid) X(num_threads) \
  X(timer) X(smid) X(nd_copy) X(join_tiles) X(split_tiles) X(cat) X(gather) X(histogram) X(ramp) \
  X(reduce) X(scan) X(dot) X(vec_get) X(vec_set) X(fcast_rtz) X(shfl) X(ballot) X(active_mask) \
  X(from_thread) X(assume) X(print) X(assert) X(make_desc)
// clang-format on
// clang-format off
#define EXECS_MEMORY \
  X(load) X(store) X(rmw) X(cas) X(load_vec) X(store_vec) X(desc_load) X(desc_store) X(desc_rmw) \
  X(mem_alloc) X(mem_view) X(mem_load) X(mem_store) X(mem_get) X(mem_set) X(dot_mem) X(mem_gather) \
  X(mem_scatter) X(desc_base) X(desc_part)
// clang-format on
// clang-format off
#define EXECS_DIST \
  X(barrier) X(warp_barrier) X(fence) X(symm_at) X(wait) X(signal) X(release) X(acquire) X(put) \
  X(put_signal) X(put_fence) X(put_quiet) X(team_barrier) X(copy_async) X(async_wait) X(mbarrier_alloc) \
  X(mbarrier_expect) X(mbarrier_arrive) X(mbarrier_wait) X(desc_load_async) X(desc_store_async)
// clang-format on
#define EXECS_LANES \
  X(dot_async) \
  X(dot_wait) \
  X(wgmma) \
  X(wgmma_wait) \
  X(strip_store) X(mem_ptr) X(load_pack) X(store_pack) X(add_pack) X(ldmatrix) X(stmatrix) X(copy_pack) X(mma)
#define X(name) Step x_##name(World *w, Agent *a, const Ins *i);
EXECS_CONTROL EXECS_VALUE EXECS_MEMORY EXECS_DIST EXECS_LANES
#undef X

    // What `extra` points to.
    typedef struct Operands {
  uint32_t n;
  Ref at[];
} Operands; // all operands of the op, in order; results after them
typedef struct
    ReduceExtra { // reduce and scan over [outer, k, inner] viewed as k steps of outer * inner lanes
  uint32_t count; // operands
  Ref *in, *out, *x, *y, *yielded;
  int64_t outer, k, inner;
  uint32_t body; // first instruction
  Kern fast;     // one-op bodies, or NULL
  bool fast_swapped, reverse, narrow;
} ReduceExtra;
typedef struct PartExtra { // warp_partitions
  uint32_t n;
  struct {
    uint32_t first, warps, pc;
  } at[];
} PartExtra;
typedef struct DotExtra {
  int64_t batch, m, n, k;
  IrDtype a, b, c;
} DotExtra;
typedef struct AxisExtra {
  int64_t outer, k, inner, src_k;
} AxisExtra; // gather

// ---- agents and time (interp.c) ---------------------------------------------------------------------------------------------------
Agent *interp_agent_new(World *w, AgentKind k, int rank);
void interp_agent_free(World *w, Agent *a);
void interp_make_ready(World *w, Agent *a);
void interp_make_waiting(World *w, Agent *a);
void interp_forget(World *w, Agent *a); // takes it off the list of its state
void interp_instance_done(World *w, Agent *root);
bool interp_condition(World *w, Agent *a); // may a waiting agent go on?
void interp_wait_event(World *w, const Agent *a);

// ---- faults (interp_report.c) ---------------------------------------------------------------------------------------------------------
void interp_fault(World *w, InterpFault f, Loc here, Loc other, const char *fmt, ...) DT_PRINTF(5, 6);
const char *interp_who(World *w, const Agent *a);             // "rank 1, instance (0, 0, 0), warp 2"
const char *interp_where(World *w, uint64_t addr, int esize); // "flags[3] of rank 1"
const char *interp_line(World *w, Loc loc);                   // "file.py:12"
void interp_deadlock(World *w);

// ---- memory (interp_mem.c) ---------------------------------------------------------------------------------------------------------------
enum {
  ACC_READ = 1,
  ACC_WRITE = 2,
  ACC_ATOMIC = 4,
  ACC_ASYNC = 8,
  ACC_ACQUIRE = 16,
  ACC_RELEASE = 32,
  ACC_QUIET = 64,
  ACC_DATA = 128 // relaxed, and nothing tells an old value from a new one (interp_flow.c)
};
// Does a relaxed load or store of the module move data, so that something else must order it?
bool interp_is_data(World *w, const IrModule *m, const IrOp *op);
typedef struct Access {
  uint64_t addr, bytes;
  unsigned kind;
  int warp;      // who: interp_warp; ignored with a job or stream
  IrScope scope; // ACC_ATOMIC
  int esize;     // for reports
  const Ins *ins;
  Actor *actor; // not NULL: this one instead (copies)
  bool waits;   // the end of a wait until the word compares with value
  uint8_t cmp;
  uint64_t value;
} Access;
// The one door to global and symmetric memory. False: the access must not happen (a fault was recorded).
bool interp_access(World *w, Agent *a, const Access *x);
const Range *interp_find(World *w, uint64_t addr);
const Range *interp_peer_range(World *w, const Range *own, int pe);
bool interp_peer_addr(World *w, Agent *a, const Ins *i, uint64_t addr, int64_t pe, uint64_t *out);
// Writes n elements of an access that was granted; a plain one may become visible to other instances later.
void interp_write(World *w, Agent *a, const Access *x, const void *src, uint32_t stride, size_t n);
void interp_see(World *w, const Instance *in, uint64_t addr,
                uint64_t bytes); // its own stores, before it reads there
void interp_flush(World *w, Instance *in);
void interp_wrote(World *w, const Agent *a, uint64_t addr, const Ins *i);
unsigned interp_order_bits(IrOrder o);
IrScope interp_scope(World *w, const IrOp *op, uint64_t addr); // the attribute, or what the memory asks for
void interp_desc_block(World *w, Agent *a, const Ins *i, const InterpDesc *d, const IrType *block,
                       const int64_t *at, char *data, int mode, IrRmw op,
                       Actor *actor); // mode 0 load, 1 store, 2 rmw
uint64_t interp_rmw_value(IrRmw op, IrDtype d, uint64_t old, uint64_t v);
bool interp_cmp_words(uint8_t cmp, uint64_t a, uint64_t b, int size);
const char *interp_buffer_name(const Agent *a, const char *p); // of the shared memory at p
bool interp_mem_range(World *w, Agent *a, const Ins *i, const char *p, size_t bytes, unsigned kind,
                      uint32_t lane);
bool interp_product_reads(World *w, Agent *a, const Ins *i, const char *p, size_t bytes, uint32_t lane);
void interp_product_wait(World *w, Agent *a, int64_t pending); // all but the youngest are complete

// ---- distribution (interp_dist.c) ---------------------------------------------------------------------------------------------------------
void interp_job_run(World *w, Job *j);
void interp_jobs_finish(World *w, Instance *in, int warp); // of an issuer; -1: all
void interp_release_group(World *w, Group *g);             // all warps are at the barrier
bool interp_warp_gone(World *w, Agent *a);                 // a warp came to the end of its span
MBar *interp_mbar(World *w, Agent *a, const Ins *i, Ref bar, Ref stage);
void interp_mbar_settle(World *w, MBar *b);

// ---- checking (interp_clock.c, interp_check.c); all do nothing where w->check is false --------------------------------------------------------
Clock *clock_keep(Clock *c);
void clock_drop(World *w, Clock *c);
void clock_join(World *w, Clock **into, const Clock *c);
void check_open(World *w);
void check_range_open(World *w, Range *r);
bool check_access(World *w, Agent *a, const Access *x, Range *r);
void check_block_memory(World *w, Agent *a, const Ins *i, const char *p, size_t bytes, unsigned kind,
                        int warp, Actor *actor);
void check_launch(World *w, Launch *l);
void check_launch_done(World *w, Launch *l);
void check_instance(World *w, Instance *in);
void check_instance_done(World *w, Instance *in);
void check_part_begin(World *w, Group *g);
void check_part_end(World *w, Group *g);
void check_barrier(World *w, Group *g); // all threads of the group meet
void check_fence(World *w, Agent *a, const Ins *i, IrOrder o, IrScope s);
void check_publish(World *w, Agent *a, int warp, Clock **into); // a release by this executor
void check_receive(World *w, Agent *a, int warp, const Clock *c);
void check_job(World *w, Agent *a, Job *j);                    // a copy starts
void check_job_complete(World *w, Agent *a, int warp, Job *j); // and is known to be over
void check_stream_wait(World *w, Stream *s, Stream *other);
void check_stream_open(World *w, Stream *s);

#endif
