/* ditron.h: compile and run tile programs that span many devices. C, usable from C++. MIT license.
 *
 * Two libraries share this header:
 *   libditron-rt  loads kernels compiled ahead of time and runs them; needs nothing but libc. Calls marked [rt].
 *   libditron     adds the compiler (LLVM inside). Calls marked [compiler] exist only there.
 *
 * A program in five steps:
 *   dt_context_create -> dt_team_create (n ranks of this process, or this process as one rank of many)
 *   -> dt_compile_file / dt_image_open -> dt_kernel_load on each rank -> dt_launch on a stream, dt_stream_sync.
 *
 * Rules that hold everywhere:
 *  - Every call returns a dt_status; DT_OK is 0. Outputs are written only on DT_OK. After a failure dt_error(ctx) is the text
 *    for people: what, where, and what to do. A library call never prints, exits or aborts.
 *  - Handles are owned by whoever created them and destroyed by the matching dt_X_destroy (NULL is fine). Destroy children
 *    before their parents: kernels, streams and plans, then teams, then images, then the context.
 *  - Threads: a context, a team and an image may be used from several threads at once. A stream, a kernel handle and a plan
 *    belong to one thread at a time. Calls marked "collective" must be made by every rank of the team, in the same order.
 *  - A text, an array with elements or a stream that is NULL is DT_INVALID, unless NULL is said to mean something. Handles and
 *    outputs must be real.
 *  - Sizes are in bytes where the name says bytes, else in elements. Strides are in elements. Matrices are row-major.
 *  - Structs with a `size` field: set it to sizeof(struct), zero the rest; zero means the default everywhere.
 */
#ifndef DITRON_DITRON_H
#define DITRON_DITRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define DT_API
#else
#define DT_API __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define DT_VERSION_MAJOR 0
#define DT_VERSION_MINOR 1
#define DT_VERSION_PATCH 0

/* ---- status ------------------------------------------------------------------------------------------------------- */
typedef enum dt_status {
  DT_OK = 0,
  DT_INVALID = 1,     /* a wrong argument */
  DT_NO_MEMORY = 2,   /* host, device or symmetric memory ended */
  DT_COMPILE = 3,     /* the program does not compile; dt_error holds the diagnostics */
  DT_IO = 4,          /* a file could not be read or written */
  DT_CORRUPT = 5,     /* a file or image is damaged */
  DT_VERSION = 6,     /* made by another version of Ditron */
  DT_UNSUPPORTED = 7, /* right, but not available on this machine or target */
  DT_NOT_FOUND = 8,   /* no kernel, file or device of that name */
  DT_DEVICE = 9,      /* a device or its driver failed */
  DT_DEADLINE = 10,   /* a wait passed its deadline; dt_error holds the report */
  DT_PEER_LOST = 11,  /* a peer rank ended; dt_error names it */
  DT_MISMATCH = 12,   /* ranks disagree on a collective call */
  DT_LIMIT = 13,      /* a stated limit was exceeded */
  DT_ASSERT = 14,     /* a device assertion failed; dt_error names it */
  DT_RACE = 15,       /* the checker found an error in the program */
  DT_BUSY = 16,       /* in use */
  DT_INTERNAL = 17    /* a bug of ours */
} dt_status;
DT_API const char *dt_status_name(dt_status s); /* [rt] "DEADLINE" */
DT_API const char *dt_version(void);            /* [rt] "0.1.0" */

/* ---- context: owns settings, caches and messages [rt] ---------------------------------------------------------------- */
typedef struct dt_context dt_context;
typedef struct dt_context_options {
  size_t size;
  const char *cache_dir;   /* NULL: DITRON_CACHE_DIR, else ~/.cache/ditron; "" : no disk cache */
  double deadline_seconds; /* of every wait; 0: 600 */
  void (*print)(void *user, int rank,
                const char *line); /* device_print, line by line, from any thread; NULL: dropped */
  void *user;
} dt_context_options;
DT_API dt_status dt_context_create(const dt_context_options *options,
                                   dt_context **out); /* options may be NULL */
DT_API void dt_context_destroy(dt_context *c);
/* Text of the calling thread's last failure in this context, with source line and caret where it has one. Valid until the
 * thread's next call on the context. Never NULL. c may be NULL after a failed dt_context_create. */
DT_API const char *dt_error(const dt_context *c);
/* Warnings and remarks since the last call of this function by this thread ("" if none). */
DT_API const char *dt_remarks(dt_context *c);

/* ---- element types and values ------------------------------------------------------------------------------------------ */
typedef enum dt_dtype {
  DT_I1,
  DT_I8,
  DT_I16,
  DT_I32,
  DT_I64,
  DT_U8,
  DT_U16,
  DT_U32,
  DT_U64,
  DT_F16,
  DT_BF16,
  DT_F32,
  DT_F64,
  DT_F8E4M3,
  DT_F8E5M2,
  DT_NDTYPES
} dt_dtype;
DT_API const char *dt_dtype_name(dt_dtype d); /* [rt] "i1" ... "f8e5m2"; NULL if out of range */
DT_API size_t dt_dtype_bytes(dt_dtype d);     /* [rt] in memory; i1 is one byte */

/* Converts n elements on the host, rounding to nearest even; floats to integers go toward zero and saturate. [rt] */
DT_API dt_status dt_convert(void *dst, dt_dtype dst_dtype, const void *src, dt_dtype src_dtype, size_t n);

enum { DT_MAX_RANK = 5 };
typedef struct dt_desc { /* a tensor in memory that a kernel accesses in blocks */
  void *base;
  dt_dtype dtype;
  int rank;
  int64_t shape[DT_MAX_RANK], strides[DT_MAX_RANK]; /* elements; the last stride is 1 */
  int32_t block[DT_MAX_RANK];
} dt_desc;

typedef enum dt_value_kind {
  DT_VALUE_NONE, /* Python's None (a constexpr) */
  DT_VALUE_PTR,  /* pointer to dtype */
  DT_VALUE_INT, /* integer; dtype says the width, DT_I32 or DT_I64 by value if dtype is 0 (DT_I1) and not boolean */
  DT_VALUE_FLOAT, /* f32 unless dtype says otherwise */
  DT_VALUE_BOOL,
  DT_VALUE_STR,   /* constexpr only */
  DT_VALUE_DTYPE, /* constexpr only */
  DT_VALUE_FUNC,  /* constexpr only: name of a jit function of the file, or module.name */
  DT_VALUE_DESC
} dt_value_kind;
typedef struct dt_value {
  dt_value_kind kind;
  dt_dtype dtype; /* of INT, FLOAT, PTR's pointee; the value of DTYPE */
  union {
    void *ptr;
    int64_t i;
    double f;
    const char *str; /* STR, FUNC */
    const dt_desc *desc;
  } u;
} dt_value;
typedef struct dt_named { /* an argument or a constant by name */
  const char *name;
  dt_value value;
} dt_named;

static inline dt_value dt_ptr(dt_dtype d, void *p) {
  dt_value v;
  v.kind = DT_VALUE_PTR;
  v.dtype = d;
  v.u.ptr = p;
  return v;
}
static inline dt_value dt_int(int64_t i) {
  dt_value v;
  v.kind = DT_VALUE_INT;
  v.dtype = (i >= INT32_MIN && i <= INT32_MAX) ? DT_I32 : DT_I64;
  v.u.i = i;
  return v;
}
static inline dt_value dt_float(double f) {
  dt_value v;
  v.kind = DT_VALUE_FLOAT;
  v.dtype = DT_F32;
  v.u.f = f;
  return v;
}
static inline dt_value dt_bool(bool b) {
  dt_value v;
  v.kind = DT_VALUE_BOOL;
  v.dtype = DT_I1;
  v.u.i = b;
  return v;
}
static inline dt_value dt_none(void) {
  dt_value v;
  v.kind = DT_VALUE_NONE;
  v.dtype = DT_I1;
  v.u.i = 0;
  return v;
}
static inline dt_value dt_type(dt_dtype d) {
  dt_value v;
  v.kind = DT_VALUE_DTYPE;
  v.dtype = d;
  v.u.i = 0;
  return v;
}
static inline dt_value dt_str(const char *s) {
  dt_value v;
  v.kind = DT_VALUE_STR;
  v.dtype = DT_I1;
  v.u.str = s;
  return v;
}
static inline dt_value dt_func(const char *s) {
  dt_value v;
  v.kind = DT_VALUE_FUNC;
  v.dtype = DT_I1;
  v.u.str = s;
  return v;
}
static inline dt_value dt_tensor(const dt_desc *d) {
  dt_value v;
  v.kind = DT_VALUE_DESC;
  v.dtype = d->dtype;
  v.u.desc = d;
  return v;
}

/* ---- images: compiled kernels ---------------------------------------------------------------------------------------------- */
typedef struct dt_image dt_image;
DT_API dt_status dt_image_open(dt_context *c, const char *path, dt_image **out);            /* [rt] */
DT_API dt_status dt_image_read(dt_context *c, const void *bytes, size_t n, dt_image **out); /* [rt] copies */
DT_API dt_status dt_image_save(const dt_image *im, const char *path);                       /* [rt] */
DT_API void dt_image_destroy(dt_image *im);
DT_API size_t dt_image_kernels(const dt_image *im);
DT_API const char *dt_image_kernel_name(const dt_image *im, size_t i);
/* A pack holds many images; key = what `ditron pack` listed. dt_pack_get gives an image of its own. [rt] */
typedef struct dt_pack dt_pack;
DT_API dt_status dt_pack_open(dt_context *c, const char *path, dt_pack **out);
DT_API dt_status dt_pack_get(dt_pack *p, const char *key, dt_image **out);
DT_API const char *dt_pack_key(const dt_pack *p, size_t i); /* NULL past the end */
DT_API void dt_pack_destroy(dt_pack *p);
typedef struct dt_pack_writer dt_pack_writer;
DT_API dt_status dt_pack_writer_create(dt_context *c, dt_pack_writer **out);
DT_API dt_status dt_pack_writer_add(dt_pack_writer *w, const char *key,
                                    const dt_image *im); /* copies; a known key is replaced */
DT_API bool dt_pack_writer_has(const dt_pack_writer *w, const char *key);
DT_API dt_status dt_pack_writer_save(dt_pack_writer *w, const char *path);
DT_API void dt_pack_writer_destroy(dt_pack_writer *w);

/* ---- compiling [compiler] --------------------------------------------------------------------------------------------------- */
typedef struct dt_compile_options {
  size_t size;
  const char
      *target; /* NULL: this CPU; "x86-64", "x86-64-v3", "x86-64-v4"; "sm_80", "sm_89", "sm_90a"; "interp" */
  int num_warps, num_stages; /* 0: 4 and 2 */
  const char *const
      *search_path; /* folders of imported kernel modules, NULL-terminated; the file's own comes first */
  const dt_named *globals; /* names bound in the file, or in an imported one: package.module.name */
  size_t nglobals;
  bool explain;       /* collect remarks: what each pass did and why not more (dt_remarks) */
  bool no_specialise; /* no divisibility, no folding of 1 */
  bool no_asserts;    /* device_assert and assert compile to nothing, as in Triton unless debugging */
  bool cached_only;   /* nothing is compiled: what the disk cache does not hold is DT_NOT_FOUND */
  int max_registers; /* of a thread of a GPU, 24 to 255, so that more programs share a multiprocessor; 0: no limit */
  /* GPUs: only the variant that most launches take, in half the time where there are two. A launch that it is not for (tensors
   * that the tensor memory accelerator does not take) is DT_INVALID then: compile again without this. */
  bool first_only;
} dt_compile_options;
/* Compiles one kernel for arguments like these: pointers and descriptors count by dtype and alignment, integers by width,
 * divisibility by 16 and being 1, constexpr parameters by value. kernel NULL: the only kernel of the file. args in any order, by
 * name; names with defaults may be left out. Reads and fills the disk cache. */
DT_API dt_status dt_compile_file(dt_context *c, const char *path, const char *kernel, const dt_named *args,
                                 size_t nargs, const dt_compile_options *options, dt_image **out);
DT_API dt_status dt_compile_text(dt_context *c, const char *name, const char *text, size_t len,
                                 const char *kernel, const dt_named *args, size_t nargs,
                                 const dt_compile_options *options, dt_image **out);
/* Kernels of a file with their parameters, one a line: "name(param, param: constexpr = default, ...)". Functions that others of the
 * file call are left out. */
DT_API dt_status dt_list_kernels(dt_context *c, const char *path, char *text, size_t capacity);
/* Text of a compile stage: "ast", "tile", "placed", "llvm", "asm", or the name of a pass (the IR after it), or "all". *text is owned
 * by the context's thread like dt_error. */
DT_API dt_status dt_emit_file(dt_context *c, const char *path, const char *kernel, const dt_named *args,
                              size_t nargs, const dt_compile_options *options, const char *stage,
                              const char **text);
/* Runs IR passes by name ("inline,fold,cse") over IR text, as `ditron opt`. */
DT_API dt_status dt_opt_text(dt_context *c, const char *name, const char *text, size_t len,
                             const char *passes, const char **out_text);

/* ---- teams and ranks [rt] ------------------------------------------------------------------------------------------------------ */
typedef struct dt_team dt_team; /* a set of ranks that know each other */
typedef struct dt_rank dt_rank; /* one device of the team, living in this process */
typedef struct dt_team_options {
  size_t size;
  int local_ranks; /* ranks of this process as threads; 0: 1 */
  bool
      from_environment; /* this process is one rank of many: ditron launch, torchrun, mpirun or Slurm started it */
  const char *device;   /* NULL: "cpu". "cuda" or "cuda:1": an NVIDIA GPU; such a team has one rank */
  int threads_per_rank; /* CPU: worker threads; 0: the cores divided by the ranks of this machine, at least 1 */
  size_t
      symmetric_bytes; /* size of the symmetric heap of a rank; 0: 256 MiB (address space, touched as used) */
  bool trace;          /* record a timeline from the start */
} dt_team_options;
DT_API dt_status dt_team_create(dt_context *c, const dt_team_options *options,
                                dt_team **out); /* collective across processes */
DT_API void dt_team_destroy(dt_team *t);
DT_API int dt_team_size(const dt_team *t);        /* ranks in the world */
DT_API int dt_team_local_size(const dt_team *t);  /* of them in this process */
DT_API dt_rank *dt_team_local(dt_team *t, int i); /* i-th rank of this process; owned by the team */
DT_API int dt_rank_index(const dt_rank *r);       /* its number in the world */
DT_API dt_team *dt_rank_team(const dt_rank *r);
DT_API dt_context *dt_rank_context(const dt_rank *r);
/* Meets the host threads of all ranks. Each local rank's own thread calls it. Fails on deadline or when a peer ends. Collective. */
DT_API dt_status dt_barrier(dt_rank *r);
/* After DT_DEADLINE, DT_ASSERT or DT_PEER_LOST: the report (kernel, line, rank, program id, signal, expected, seen, last writer). */
DT_API const char *dt_team_report(const dt_team *t);
/* Of a job's processes, whose the report is to show, so that people read it once: not 0 in one of them, the lowest rank that
 * is there. It shows the report and destroys the team; the others' calls return 0 then. Where it is killed before, another's
 * returns not 0. Returns within seconds. */
DT_API int dt_team_speaks(dt_team *t);
/* Makes a team usable again after such a failure: collective, all streams idle. DT_PEER_LOST stays. */
DT_API dt_status dt_team_recover(dt_rank *r);
/* Runs fn(rank, user) on one new thread for each local rank and joins them; the first failure wins. The threads' error and
 * remarks become the caller's. */
DT_API dt_status dt_team_run(dt_team *t, dt_status (*fn)(dt_rank *r, void *user), void *user);
DT_API void dt_team_trace(dt_team *t, bool on); /* starts or stops recording on this process's ranks */
DT_API void dt_trace_mark(dt_rank *r, const char *text); /* a point in the timeline, for people */
/* The timeline so far: Perfetto (Chrome) JSON if the path ends in .json, one self-contained picture if in .svg. Collective
 * across processes (rank 0 writes); within a process call once. */
DT_API dt_status dt_team_write_trace(dt_team *t, const char *path);

/* ---- memory [rt] ------------------------------------------------------------------------------------------------------------------ */
DT_API dt_status dt_alloc(dt_rank *r, size_t bytes, void **out); /* 64-byte aligned, this rank's device's */
DT_API void dt_free(dt_rank *r, void *p);
/* Symmetric memory: same layout on all ranks; collective: all ranks, same order and sizes (else DT_MISMATCH on all). Zeroed. */
DT_API dt_status dt_symm_alloc(dt_rank *r, size_t bytes, const char *label, void **out);
DT_API dt_status dt_symm_free(dt_rank *r, void *p); /* collective */
/* Makes the caller's own memory a symmetric segment. Collective. Ranks as threads only (else DT_UNSUPPORTED). */
DT_API dt_status dt_symm_register(dt_rank *r, void *p, size_t bytes, const char *label);
DT_API dt_status dt_symm_unregister(dt_rank *r, void *p); /* collective */
/* Peer's address of symmetric p, loadable from this process. */
DT_API dt_status dt_symm_peer(dt_rank *r, const void *p, int peer, void **out);

/* ---- streams and events [rt] ---------------------------------------------------------------------------------------------------------- */
typedef struct dt_stream dt_stream; /* in order; different streams run at the same time */
typedef struct dt_event dt_event;
DT_API dt_status dt_stream_create(dt_rank *r, const char *label, dt_stream **out);
/* A stream that is already there and stays its maker's: on a CUDA device a CUstream (cudaStream_t) of its primary context,
 * NULL for the default stream. It may be one that is captured into a graph. CPU: DT_UNSUPPORTED. */
DT_API dt_status dt_stream_wrap(dt_rank *r, void *native, const char *label, dt_stream **out);
DT_API void *dt_stream_native(const dt_stream *s); /* the CUstream; NULL on a CPU */
DT_API void dt_stream_destroy(dt_stream *s);       /* waits for its work */
/* Waits; returns the first failure of its work since the last sync. */
DT_API dt_status dt_stream_sync(dt_stream *s);
DT_API dt_status dt_event_create(dt_rank *r, dt_event **out);
DT_API void dt_event_destroy(dt_event *e);
DT_API dt_status dt_event_record(dt_event *e, dt_stream *s);
DT_API dt_status dt_stream_wait_event(dt_stream *s, dt_event *e);
DT_API dt_status dt_event_elapsed(const dt_event *from, const dt_event *to, double *ms); /* both complete */
/* Copies in the background, by the rank's copy engine, in stream order. dst and src may be any memory this process reaches,
 * symmetric memory of a peer through dt_symm_peer included. */
DT_API dt_status dt_copy(dt_stream *s, void *dst, const void *src, size_t bytes);
DT_API dt_status dt_copy_2d(dt_stream *s, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                            size_t width_bytes, size_t rows);
DT_API dt_status dt_fill(dt_stream *s, void *dst, int byte, size_t bytes);

/* ---- signals [rt]: 64-bit words in symmetric memory, monotone epochs; waits compare with >= ---------------------------------------------- */
DT_API dt_status dt_signal_set(dt_stream *s, uint64_t *word, uint64_t value,
                               int peer); /* after the stream's work so far; release */
DT_API dt_status dt_signal_add(dt_stream *s, uint64_t *word, uint64_t value, int peer);
/* Copies the word *src (say an epoch word) to the peer's *word, after the stream's work so far; release. Safe to replay. */
DT_API dt_status dt_signal_copy(dt_stream *s, uint64_t *word, const uint64_t *src, int peer);
DT_API dt_status dt_signal_wait(dt_stream *s, const uint64_t *word,
                                uint64_t at_least); /* holds the stream; acquire; deadline */
/* Waits until *word >= *at_least_word, read when the stream gets there. */
DT_API dt_status dt_signal_wait_word(dt_stream *s, const uint64_t *word, const uint64_t *at_least_word);

/* ---- kernels and launches [rt] ---------------------------------------------------------------------------------------------------------------- */
typedef struct dt_kernel dt_kernel;
/* Loads one kernel of an image on a rank; name NULL: the only one. Nothing is loaded or compiled later, in a launch. */
DT_API dt_status dt_kernel_load(dt_rank *r, const dt_image *im, const char *name, dt_kernel **out);
DT_API void dt_kernel_destroy(dt_kernel *k);
typedef struct dt_kernel_info {
  const char *name;
  size_t nargs; /* launch arguments: the parameters that are not constexpr */
  size_t nvariants;
  uint64_t arena_bytes;   /* CPU: scratch of an instance */
  const char *wait_class; /* "none", "external", "ordered", "mutual" */
  int num_warps;
} dt_kernel_info;
DT_API dt_status dt_kernel_query(const dt_kernel *k, dt_kernel_info *out);
/* Why a launch of k first passed over the first variant, the fastest: the guard that failed, or what a tensor map cannot tell; "":
 * none has. Valid as long as k. */
DT_API const char *dt_kernel_passed_over(const dt_kernel *k);
DT_API const char *dt_kernel_arg_name(const dt_kernel *k, size_t i);
/* Launches grid[0] x grid[1] x grid[2] instances. args: launch arguments in the order of the parameters. The first variant whose
 * guards hold is taken; none: DT_INVALID with the guard that failed. Arguments are copied. An empty grid does nothing. */
DT_API dt_status dt_launch(dt_kernel *k, dt_stream *s, const uint32_t grid[3], const dt_value *args,
                           size_t nargs);

/* ---- operators [rt]: host-side plans over the kernel library ----------------------------------------------------------------------------------
 * A plan owns its streams, symmetric buffers, epochs and loaded kernels. Creating one is collective and compiles (or takes from
 * the pack) everything; running one neither compiles nor allocates. Kernels come from options.pack, or from the compiler
 * where the process has it, else DT_UNSUPPORTED. */
typedef struct dt_plan dt_plan;
typedef struct dt_plan_options {
  size_t size;
  const char
      *op; /* name as `ditron bench` lists it: "matmul", "ag_gemm", "gemm_rs", "gemm_ar", "all_gather", ... */
  const char *
      variant; /* NULL: chosen by cost; e.g. "push", "pull", "ring", "one_shot", "two_shot", "plain", "overlap" */
  dt_dtype dtype;
  int64_t m, n, k;         /* of the whole problem over all ranks; collectives: m elements a rank */
  dt_pack *pack;           /* ahead-of-time kernels; NULL: compile */
  const char *kernels_dir; /* where the kernel sources lie; NULL: the installed ones */
  bool explain;
} dt_plan_options;
DT_API dt_status dt_plan_create(dt_rank *r, const dt_plan_options *options, dt_plan **out); /* collective */
DT_API void dt_plan_destroy(dt_plan *p);                                                    /* collective */
/* Inputs and outputs in the operator's order (docs/operators in the README's table). Stream-ordered on s; collective. */
DT_API dt_status dt_plan_run(dt_plan *p, dt_stream *s, void *const *tensors, size_t ntensors);
DT_API const char *dt_plan_variant(const dt_plan *p); /* which path it takes */
DT_API const char *dt_plan_explain(const dt_plan *p); /* why */

/* ---- unstable: may change in any version ------------------------------------------------------------------------------------------------------------ */
#ifdef DT_UNSTABLE
/* dt_compile_file where this process has the compiler (libditron), else DT_UNSUPPORTED. */
DT_API dt_status dt_context_compile(dt_context *c, const char *path, const char *kernel, const dt_named *args,
                                    size_t nargs, const dt_compile_options *options, dt_image **out);
DT_API bool dt_context_can_compile(const dt_context *c);
/* dt_compile_file or dt_compile_text for a request that came as bytes, from a process that has another one compile: a crash of
 * the compiler then ends only that one. src/api/compile_request.c says how they lie. [compiler] */
DT_API dt_status dt_compile_request(dt_context *c, const void *bytes, size_t n, bool cached_only,
                                    dt_image **out);
/* Whether the kernel may write to what its i-th argument points to: false where it surely does not. [rt] */
DT_API bool dt_kernel_arg_written(const dt_kernel *k, size_t i);
/* An image as dt_image_read takes it; valid as long as the image. [rt] */
DT_API const void *dt_image_bytes(const dt_image *im, size_t *n);
/* Records text as the calling thread's last failure and returns s: for layers above the library, as the operators are. */
DT_API dt_status dt_context_fail(dt_context *c, dt_status s, const char *text);
/* Writes a file whole or not at all (through links; into devices and pipes directly). */
DT_API dt_status dt_write_file(dt_context *c, const char *path, const void *bytes, size_t n);
/* Devices that teams can run on, one at a time, and for each kind of which there is none a row that says why: false past the end. */
typedef struct dt_device {
  char name[32];   /* "cpu", "cuda:0": as dt_team_options.device takes it */
  char target[16]; /* as dt_compile_options.target takes it; "" where there is none */
  char text[320];  /* for people */
  bool usable;
} dt_device;
DT_API bool dt_device_info(dt_context *c, size_t i, dt_device *out);
DT_API const char *dt_cache_dir(const dt_context *c); /* "" where the disk cache is off */
/* What the compiler of this process targets, for people; "" without one. */
DT_API const char *dt_compiler_info(dt_context *c);
/* Runs n copies of a program as the ranks of one job and waits; *code is 0 or that of the first to fail. */
DT_API dt_status dt_launch_job(dt_context *c, const char *const *argv, int n, int *code);
/* Rank and size of the job that started this process ("none": 0 of 1). */
DT_API dt_status dt_job(dt_context *c, int *rank, int *world, const char **launcher);
/* Folder of the kernel sources: DITRON_KERNELS, else beside the library (../share/ditron/kernels), else the build's. */
DT_API const char *dt_kernels_dir(dt_context *c);
/* DT_OK on every rank if every rank gives DT_OK; else the first failure (lowest rank) everywhere, its text in dt_error. Collective. */
DT_API dt_status dt_agree(dt_rank *r, dt_status mine);
/* rank `from`'s bytes (at most 256) to every rank. Collective. */
DT_API dt_status dt_share(dt_rank *r, int from, void *bytes, size_t n);
/* How often the rank's team has recovered from a failure: what was half done before then is void. */
DT_API uint64_t dt_rank_recoveries(const dt_rank *r);
DT_API int dt_host_cores(void); /* that this process may use */
/* The kernels that a plan with these options would load on a team of `world` ranks, one call of fn for each: file, kernel, example
 * arguments, and the key under which plans look for it in a pack. What `ditron pack` compiles. */
DT_API dt_status dt_plan_requests(dt_context *c, const dt_plan_options *options, int world,
                                  dt_status (*fn)(void *user, const char *file, const char *kernel,
                                                  const dt_named *args, size_t nargs, const char *key),
                                  void *user);
/* Names and texts of the operators, one at a time; NULL past the end. */
DT_API const char *dt_operator_name(size_t i);
DT_API const char *dt_operator_tensors(size_t i);
DT_API const char *dt_operator_text(size_t i);
/* Runs a kernel on the interpreter [compiler]: one launch on each of n ranks with that rank's arguments. */
typedef struct dt_interp_memory {
  void *base;
  size_t bytes;
  const char *name;
  int rank;
  int segment; /* -1: private */
  bool initialised;
} dt_interp_memory;
typedef struct dt_interp_options {
  size_t size;
  int ranks;
  uint64_t seed;
  bool check;
  uint64_t max_steps;
  const dt_interp_memory *memory;
  size_t nmemory;
  void (*print)(void *user, int rank, const char *line);
  void *user;
  const char *stage; /* of the IR: "tile" (NULL), "placed" (of a CPU), "laid" or "lowered" (of a GPU) */
} dt_interp_options;
DT_API dt_status dt_interp_file(dt_context *c, const char *path, const char *kernel, const uint32_t grid[3],
                                const dt_named *const *args_of_rank, size_t nargs,
                                const dt_compile_options *options, const dt_interp_options *interp);
#endif

#ifdef __cplusplus
}
#endif
#endif /* DITRON_DITRON_H */
