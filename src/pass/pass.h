// pass: transformations and analyses of the IR, one a file.
//
//   passes.def   one row a pass: what it needs of a module and which recorded facts it makes stale
//   pipeline.c   which passes run in what order for a target, and passes run by name
//
// A transformation is a function over the module (PassFn) with a row. An analysis is a function over one IrFunc whose
// answer lives in the caller's arena and is stale as soon as the function changes.
// Like the IR itself, a module belongs to one thread at a time; nothing here keeps state between calls.
#ifndef DITRON_PASS_H
#define DITRON_PASS_H

#include "ir/ir.h"

// ---- running -----------------------------------------------------------------------------------------------------
typedef enum PassTarget {
  PASS_INTERP, // tile stage, for the interpreter
  PASS_CPU,    // tile, then placed
  PASS_LAID,   // tile, then laid out
  PASS_GPU     // tile, laid out, then lowered
} PassTarget;

typedef struct PassMachine { // what passes may ask of the machine; never who it is
  int vector_bits;           // of one SIMD register
  int64_t arena_limit;       // bytes that one instance may use for its buffers; 0: no limit
  int64_t kernel_limit;      // operations that a kernel may have, helpers inlined; 0: no limit
  bool wgmma;                // products of four warps from shared memory
  bool tma;                  // block copies through tensor maps, and mbarriers that count their bytes
  bool no_f8_dot;            // no products of 8-bit floats
} PassMachine;

typedef struct PassConfig {
  const PassMachine *machine; // NULL: 256-bit vectors, no limit
  Diags *diags;               // errors and remarks; NULL: the module's
  bool verify;                // after each pass (builds with DT_DEBUG always do)
  bool keep_pointers;         // accesses through pointers stay such where descriptors would do
  bool *raised;               // set where some became descriptors; NULL: nobody asks
  bool explain;               // collect remarks: what a pass did and why, as DIAG_REMARK
  void (*dump)(void *user, const char *pass, const IrModule *m); // called after each pass; NULL: not
  void *user;
} PassConfig;

typedef struct Pass { // one pass at work
  IrModule *m;
  Arena *scratch; // dies with the pass
  const PassConfig *config;
  const char *name;
} Pass;
typedef Status (*PassFn)(Pass *p);

typedef struct PassInfo {
  const char *name, *stages, *needs, *breaks, *text; // rows of passes.def
  PassFn run;
} PassInfo;
extern const PassInfo pass_infos[];
extern const int pass_count;

// All passes of a target, in order. ST_OK; ST_COMPILE where the program is at fault (an error tells); ST_INTERNAL
// where a pass broke the module (the verifier's errors and a note naming the pass). c may be NULL.
Status pass_run(IrModule *m, PassTarget t, const PassConfig *c);
// Passes by name, separated by commas or spaces: "inline,fold". An unknown name is an error that lists the known ones.
Status pass_run_named(IrModule *m, const char *names, const PassConfig *c);
// The names that pass_run runs for t, separated by commas.
const char *pass_order(PassTarget t);

void pass_remark(const Pass *p, Loc loc, const char *fmt, ...)
    DT_PRINTF(3, 4); // dropped unless config->explain
void pass_error(const Pass *p, Loc loc, const char *fmt, ...) DT_PRINTF(3, 4);

// ---- specialising --------------------------------------------------------------------------------------------------
// A fact about one parameter at a launch. Known integers are substituted (the parameter stays: the ABI is the same).
typedef struct PassFact {
  uint32_t param;
  int64_t divisible; // value or address is a multiple of this; 0 or 1: unknown
  bool known;        // integers only: equals value
  int64_t value;
} PassFact;
// A copy of f under another name, appended to its module, that holds only where the facts do. Fold it afterwards.
IrFunc *pass_specialise(IrFunc *f, const Str *name, const PassFact *facts, uint32_t nfacts);

// ---- axis analysis: how integers and pointers run along the axes of a tile ------------------------------------------
// Along axis d a tile is cut into aligned runs:
//   contig[d]     runs of this length rise by one from element to element (pointers: by one pointee)
//   constancy[d]  runs of this length hold one value
//   div[d]        the first element of each contiguous run is a multiple of this (pointers: of this many bytes)
// all_div divides every element. lo..hi encloses every element, as signed numbers (integers only).
// All but lo and hi are powers of two. A scalar has rank 0 and its facts in [0].
// Taken for granted: a run of consecutive indices does not wrap around inside (no object is that large).
typedef struct PassAxis {
  int32_t rank;
  int32_t contig[IR_MAX_RANK], constancy[IR_MAX_RANK], div[IR_MAX_RANK];
  int32_t all_div;
  int64_t lo, hi;
  bool
      index; // not negative; of_indices: as far as sums and products of such do not wrap and what they are divided by is not negative
} PassAxis;
typedef struct PassAxes PassAxes;
PassAxes *pass_axis_run(IrFunc *f, Arena *a); // renumbers f's values
// The same for passes that move memory by index: program ids, aranges, counters and what is made of them by + * // % do not wrap and are
// not negative, nor is what they are divided by (docs/language.md).
PassAxes *pass_axis_of_indices(IrFunc *f, Arena *a);
const PassAxis *pass_axis(const PassAxes *x, const IrValue *v); // never NULL; knows nothing of floats
bool pass_axis_value(const PassAxes *x, const IrValue *v,
                     int64_t *out); // the same known integer in all elements
static inline bool pass_axis_nonneg(const PassAxes *x, const IrValue *v) { return pass_axis(x, v)->lo >= 0; }

// ---- uniformity: do all threads hold the same? ------------------------------------------------------------------------
typedef enum PassUniformity {
  PASS_UNIFORM,      // one value for all threads of the block (program-level values always)
  PASS_WARP_UNIFORM, // one value in each warp
  PASS_DIVERGENT
} PassUniformity;
typedef struct PassUniform PassUniform;
PassUniform *pass_uniform_run(IrFunc *f, Arena *a); // renumbers f's values
PassUniformity pass_uniform(const PassUniform *u, const IrValue *v);

// ---- roots: which parameters a pointer comes from ------------------------------------------------------------------------
// Bit i: it may be derived from parameter i (parameters past 61 share PASS_ROOT_UNKNOWN); PASS_ROOT_PEER: it went through
// symm_at; PASS_ROOT_UNKNOWN: it was loaded, made from an integer, or given by a tensor descriptor of unknown origin.
#define PASS_ROOT_UNKNOWN (1ull << 63)
#define PASS_ROOT_PEER (1ull << 62)
typedef struct PassRoots PassRoots;
PassRoots *pass_roots_run(IrFunc *f, Arena *a); // renumbers f's values
uint64_t pass_roots(const PassRoots *r, const IrValue *v);
// Of the memory outside of a block that op itself writes (not what its regions do); 0: it writes none.
uint64_t pass_roots_written(const PassRoots *r, const IrOp *op);
// May memory with roots `own` be memory that was written, with roots `written` (0: none was)?
bool pass_roots_meet(uint64_t own, uint64_t written);

// ---- transformations that have a row (passes.def tells about each) --------------------------------------------------------
#define PASS(name, function, stages, needs, breaks, text) Status function(Pass *p);
#include "pass/passes.def"
#undef PASS

#endif
