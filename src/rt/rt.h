// rt: runs kernel images on devices. Needs libc and threads only: no LLVM, no IR.
//
//   context    settings, print and remark callbacks; owns nothing global: all state hangs off it
//   team       a set of ranks: threads of this process, or processes of this host over shared memory (transports.def)
//   rank       one device with its memory: worker threads, fibers, copy engine, symmetric heap
//   stream     commands in order: launches, copies, fills, signals, waits, events, host calls
//   kernel     a loaded kernel of an image
//
// Errors: every call that can fail takes an RtError (or NULL) and writes it on failure only. Failures on the device side
// (a deadline, an assertion, a lost peer, ...) raise the team's abort word: every rank drops what waits, streams discard
// their queues, syncs return the first witness's status with the report of all ranks, and nothing runs until rt_recover.
//
// Threads: a context and a team may be used from several threads; a stream, a kernel and an event by one at a time.
// Calls marked collective must be made by every rank of the team in the same order, each local rank from a thread of its
// own. They end on all ranks alike: ST_MISMATCH where the ranks asked for different things (the team stays usable),
// ST_PEER_LOST where one ended, ST_DEADLINE where one did not come.
#ifndef DITRON_RT_H
#define DITRON_RT_H

#include "base/base.h"
#include "image/image.h"

typedef struct RtError {
  Status status;
  char text[8192]; // for people; may have several lines
} RtError;

// ---- context -----------------------------------------------------------------------------------
typedef struct RtContext RtContext;
typedef struct RtConfig {
  uint64_t deadline_ns; // of every wait; 0: 600 s
  uint64_t
      budget_bytes; // stacks and arenas of a rank's live instances; 0: a quarter of the machine's memory, 8 GiB at most
  void (*print)(void *user, int rank,
                const char *line); // device_print, one line without its end; NULL drops. Any thread
  void *user;
  const char *libcuda; // NULL or "": libcuda.so.1. Lives as long as the context
  bool cuda_wait_each; // waits after each launch, so that a failure names its kernel. For debugging
} RtConfig;
Status rt_context_create(const RtConfig *c, RtContext **out, RtError *e); // c may be NULL
void rt_context_destroy(RtContext *c);                                    // after its teams

// Devices that teams can run on, one at a time, and for each kind of device that this machine has none of a row that says
// why (usable false). False past the last. The first call for a kind opens its driver.
typedef struct RtDeviceInfo {
  char name[32], target[16], text[320]; // "cuda:0"; what to compile for, "sm_90a"; facts for people
  bool usable;
} RtDeviceInfo;
bool rt_device(RtContext *c, uint32_t i, RtDeviceInfo *out);
typedef struct RtTransportInfo {
  const char *name, *text;
} RtTransportInfo;
const RtTransportInfo *rt_transport(uint32_t i);

// ---- how this process was started --------------------------------------------------------------
// Looks for the variables of `ditron launch`, torchrun, mpirun (Open MPI, MPICH) and Slurm (launchers.def).
typedef struct RtJob {
  int rank, world;
  const char *launcher; // "none" where there are no such variables: rank 0 of 1
  char id[128];         // names the job on this host
} RtJob;
Status rt_job_read(RtJob *j,
                   RtError *e); // malformed, or a job over several hosts: an error naming the variable
// Default folder of the disk cache: $XDG_CACHE_HOME/ditron or ~/.cache/ditron; "" where neither is known.
void rt_cache_default_dir(char *out, size_t cap);

// ---- teams and ranks ---------------------------------------------------------------------------
typedef struct RtTeam RtTeam;
typedef struct RtRank RtRank;
enum { RT_MAX_RANKS = 256, RT_EXCHANGE_MAX = 256, RT_MAX_STREAMS = 64 };
typedef struct RtTeamConfig {
  int local_ranks;          // ranks of this process as threads; 0: 1. Not with from_environment
  bool from_environment;    // this process is one rank of a job
  const char *device;       // NULL: "cpu"; "cuda" or "cuda:0": one rank on that device
  int threads_per_rank;     // 0: the cores divided by the ranks of this machine, at least 1
  uint64_t symmetric_bytes; // of a rank; 0: 256 MiB. Address space; memory is taken as it is touched
  uint64_t deadline_ns;     // 0: the context's
  bool trace;               // record a timeline from the start
} RtTeamConfig;
Status rt_team_create(RtContext *c, const RtTeamConfig *t, RtTeam **out,
                      RtError *e); // collective across processes
void rt_team_destroy(RtTeam *t);   // after its streams and kernels. Not collective: a rank may leave first
int rt_team_world(const RtTeam *t);
int rt_team_local(const RtTeam *t);     // ranks in this process
RtRank *rt_team_rank(RtTeam *t, int i); // i-th local rank
RtContext *rt_team_context(const RtTeam *t);
const char *rt_team_transport(const RtTeam *t);
int rt_rank_index(const RtRank *r); // in the world
RtTeam *rt_rank_team(const RtRank *r);
int rt_rank_workers(const RtRank *r);
const AbiRank *rt_rank_abi(const RtRank *r);

Status rt_barrier(RtRank *r, RtError *e); // collective; host threads meet
// Every rank's bytes (at most RT_EXCHANGE_MAX, the same count everywhere) into all[world * bytes]. Collective.
Status rt_exchange(RtRank *r, const void *mine, size_t bytes, void *all, RtError *e);
// ST_OK, or what went wrong in the team, with the report of all ranks in e.
Status rt_team_failure(const RtTeam *t, RtError *e);
// After a failure: is it this process that tells people? One of a job's does, the lowest rank that can; the others hear
// no when it has left the team, or ends up silent for long. If it dies before, the next takes over.
bool rt_team_speaks(RtTeam *t);
// After a failure, with this rank's streams idle: makes the team usable again. Collective. A lost peer stays lost.
Status rt_recover(RtRank *r, RtError *e);
uint64_t rt_rank_recoveries(const RtRank *r); // grows with each rt_recover
// Runs fn(rank, user, error) on one new thread a local rank and joins them; the first failure by rank wins.
Status rt_team_run(RtTeam *t, Status (*fn)(RtRank *r, void *user, RtError *e), void *user, RtError *e);
// Raises the team's abort word from the host; the report says `why`.
void rt_team_abort(RtRank *r, Status s, const char *why);

// ---- memory ------------------------------------------------------------------------------------
Status rt_alloc(RtRank *r, uint64_t bytes, void **out,
                RtError *e); // the device's, 64-byte aligned, contents undefined
void rt_free(RtRank *r, void *p);
// Symmetric memory, zeroed, 256-byte aligned; label (NULL: none) names it in reports. Collective.
Status rt_symm_alloc(RtRank *r, uint64_t bytes, const char *label, void **out, RtError *e);
Status rt_symm_free(RtRank *r, void *p, RtError *e); // collective
// The caller's own memory as a segment. Collective. Ranks as threads only: other processes cannot reach it.
Status rt_symm_register(RtRank *r, void *p, uint64_t bytes, const char *label, RtError *e);
Status rt_symm_unregister(RtRank *r, void *p, RtError *e); // collective
Status rt_symm_peer(const RtRank *r, const void *p, int peer, void **out, RtError *e);

// ---- streams and events ------------------------------------------------------------------------
typedef struct RtStream RtStream;
typedef struct RtEvent RtEvent;
// At most RT_MAX_STREAMS a rank. Streams are numbered by the lowest free number; barriers inside kernels meet among
// streams of the same number, so ranks create their streams in the same order.
Status rt_stream_create(RtRank *r, const char *label, RtStream **out, RtError *e);
// A stream of the caller's, which stays theirs: a CUstream of the device's primary context; NULL is its default stream.
Status rt_stream_wrap(RtRank *r, void *native, const char *label, RtStream **out, RtError *e);
void *rt_stream_native(const RtStream *s); // CUstream; NULL on a CPU
void rt_stream_destroy(RtStream *s);       // waits for its work
RtRank *rt_stream_rank(const RtStream *s);
Status rt_stream_sync(RtStream *s, RtError *e); // waits; the team's failure, if there is one
bool rt_stream_idle(const RtStream *s);
Status rt_event_create(RtRank *r, RtEvent **out, RtError *e);
void rt_event_destroy(RtEvent *ev); // nothing may wait for it any more
Status rt_event_record(RtEvent *ev, RtStream *s, RtError *e);
Status rt_stream_wait_event(RtStream *s, RtEvent *ev, RtError *e); // its latest record so far; none: no wait
Status rt_event_sync(RtEvent *ev, RtError *e);
Status rt_event_elapsed(const RtEvent *from, const RtEvent *to, double *ms,
                        RtError *e); // both complete, else ST_BUSY

// In the background, by the rank's copy engine, in stream order. What is copied is visible before anything later in the
// stream. Ranges of one copy may not overlap.
Status rt_copy(RtStream *s, void *dst, const void *src, uint64_t bytes, RtError *e);
Status rt_copy_2d(RtStream *s, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                  uint64_t width, uint64_t rows, RtError *e);
Status rt_fill(RtStream *s, void *dst, int byte, uint64_t bytes, RtError *e);
Status rt_host_call(RtStream *s, void (*fn)(void *user), void *user,
                    RtError *e); // on the copy engine's thread

// ---- signals: 64-bit words in symmetric memory ---------------------------------------------------
// word is this rank's own symmetric address; peer may be this rank. Release: after all of the stream's work so far.
Status rt_signal_set(RtStream *s, uint64_t *word, uint64_t value, int peer, RtError *e);
Status rt_signal_add(RtStream *s, uint64_t *word, uint64_t value, int peer, RtError *e);
// The peer's word takes the value that *src has when the stream gets there.
Status rt_signal_copy(RtStream *s, uint64_t *word, const uint64_t *src, int peer, RtError *e);
// Holds the stream until *word >= at_least; acquire; has the deadline. The second form reads the bound when it gets there,
// and adds `plus` to it.
Status rt_signal_wait(RtStream *s, const uint64_t *word, uint64_t at_least, RtError *e);
Status rt_signal_wait_word(RtStream *s, const uint64_t *word, const uint64_t *at_least, int64_t plus,
                           RtError *e);

// ---- channels: epochs and acks over signals ------------------------------------------------------
// One epoch word a rank, and a flag and an ack word for each peer. Words only grow and are never reset. A call's order is:
// advance; [wait_acks; write the peer's slot; publish] for each peer; [wait; read; ack] for each peer.
typedef struct RtChannel RtChannel;
Status rt_channel_create(RtRank *r, const char *label, RtChannel **out, RtError *e); // collective
Status rt_channel_destroy(RtChannel *c, RtError *e);                                 // collective
uint64_t *rt_channel_epoch(RtChannel *c);                                            // symmetric
uint64_t *rt_channel_flag(RtChannel *c, int from); // symmetric: my word that `from` raises
uint64_t *rt_channel_ack_word(RtChannel *c, int from);
Status rt_channel_advance(RtChannel *c, RtStream *s, RtError *e);
Status rt_channel_publish(RtChannel *c, RtStream *s, int peer, RtError *e);
Status rt_channel_wait(RtChannel *c, RtStream *s, int peer, RtError *e);
Status rt_channel_ack(RtChannel *c, RtStream *s, int peer, RtError *e);
Status rt_channel_wait_ack(RtChannel *c, RtStream *s, int peer, RtError *e); // of the epoch before

// ---- kernels and launches ------------------------------------------------------------------------
typedef struct RtKernel RtKernel;
// Loads kernel `name` (NULL: the only one) of an image; the image may go away afterwards. A kernel belongs to its rank.
Status rt_kernel_load(RtRank *r, const Image *im, const char *name, RtKernel **out, RtError *e);
void rt_kernel_destroy(RtKernel *k); // its launches are done
const ImageKernel *rt_kernel_info(const RtKernel *k);
const char *
rt_kernel_passed_over(const RtKernel *k); // why a launch first passed over the first variant; "": none did
typedef union RtArg {
  uint64_t bits;         // integers sign- or zero-extended, floats as the bits of their width, addresses
  const ImageDesc *desc; // IMAGE_ARG_DESC
} RtArg;
// Takes the first variant whose guards hold (none: ST_INVALID naming them). Arguments are copied. An empty grid does
// nothing. Costs no allocation once the stream is warm.
Status rt_launch(RtKernel *k, RtStream *s, const uint32_t grid[3], const RtArg *args, uint32_t nargs,
                 RtError *e);

// ---- timeline ------------------------------------------------------------------------------------
// Launches, waits, copies and marks of all ranks. Each rank keeps its latest 65536 events.
void rt_trace_enable(RtTeam *t, bool on); // this process's ranks
void rt_trace_mark(RtRank *r, const char *text);
// All streams idle. By one thread a process; collective across processes, rank 0's writes. Chrome/Perfetto JSON if the path
// ends in .json, one self-contained picture if in .svg.
Status rt_trace_write(RtTeam *t, const char *path, RtError *e);

// ---- disk cache ----------------------------------------------------------------------------------
// Files under 32-digit keys. Safe with any number of processes: writes are renames, a damaged entry is a miss and goes.
// A folder that cannot be written is no failure: puts become nothing, rt_cache_problem says so.
typedef struct RtCache RtCache;
Status rt_cache_open(const char *dir, uint64_t limit_bytes, RtCache **out,
                     RtError *e); // dir "": off; limit 0: 1 GiB
void rt_cache_close(RtCache *c);
DT_SHARED bool rt_cache_get(RtCache *c, const char key[33], Arena *a, void **bytes, size_t *n);
DT_SHARED void rt_cache_put(RtCache *c, const char key[33], const void *bytes, size_t n);
const char *rt_cache_dir(const RtCache *c);
DT_SHARED bool rt_cache_problem(RtCache *c, char *out, size_t cap); // true once, at the first trouble

// ---- launcher --------------------------------------------------------------------------------------
// Runs n copies of a program as the ranks of a job, and waits. SIGINT, SIGTERM and SIGHUP go to all of them. When one fails,
// the others get `grace_ms` to stop, then are ended. *code: 0, or that of the first to fail (128 + signal).
typedef struct RtLaunchConfig {
  const char *const *argv; // NULL-terminated; argv[0] is looked up on PATH
  int n;
  uint64_t grace_ms; // 0: 10000
  void (*output)(void *user, int rank, bool err,
                 const char *line); // NULL: the children write as this process would
  void *user;
} RtLaunchConfig;
Status rt_launch_processes(const RtLaunchConfig *c, int *code,
                           RtError *e); // e also says which rank failed first, and how

#endif
