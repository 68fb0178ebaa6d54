// target_impl: what the files of this room share. A Lower is one compile: LLVM's objects, the function being emitted and
// the LLVM value of each IR value. Not seen by other rooms.
//
// Representation: i1 is i1 (a byte in memory), f8 i8, f16 and bf16 i16 (their arithmetic is done in f32), pointers and
// memdescs pointers of their space, vectors LLVM vectors of these, tokens nothing. In the body of a reduce or scan `width` is the number
// of lanes that each scalar of the body stands for (0: as the types say).
#ifndef DITRON_TARGET_IMPL_H
#define DITRON_TARGET_IMPL_H

#include <string.h>

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/TargetMachine.h>

#include "target/target.h"

#define LOWER_WARP_NAME "ditron.warp" // of a kernel's part that runs as a function of its own
enum { LOWER_MAX_LANES = 256 };       // of a vector; longer ones are refused

typedef LLVMValueRef V;
typedef LLVMTypeRef T;

typedef struct Lower Lower;
typedef struct Output { // of a compile, until it is copied into the caller's arena
  char *code;           // malloc'd
  size_t bytes;
  const char *text; // for finish: what LLVM made, of so many bytes and a NUL
  bool is_text;
  ImageKernel *kernels;
  uint32_t nkernels;
} Output;

struct TargetTool {
  OsChild child; // none: over
  int file;      // what it makes
};

struct Target {
  const char *name;
  ImageTarget image;
  IrStage stage;      // what it lowers
  void (*init)(void); // registers LLVM's part; called once in the process
  Status (*facts)(const TargetOptions *o, Arena *a, Diags *d, TargetFacts *out);
  const char *triple;
  void (*kernel)(Lower *l, const IrFunc *f, ImageVariant *out); // emits one kernel, fills the variant
  void (*dot_mem)(Lower *l, const IrOp *op);
  // What follows may be absent. op: lowers an op in the target's own way, or leaves it (false) to the shared code; so do the
  // others with a conversion to or from a small float, a function (f32 or f64) and the back edge of a polling loop (NULL: left).
  bool (*op)(Lower *l, const IrOp *op);
  V (*widen)(Lower *l, V x, IrDtype d);
  V (*narrow)(Lower *l, V x, IrDtype d, IrRound round);
  V (*math)(Lower *l, IrMath fn, V x, V y);
  void (*yield)(Lower *l, const IrOp *loop, V turn);
  void (*rejoin)(Lower *l, const IrOp *op); // behind a branch or loop
  bool emits_text; // LLVM makes assembly, which finish turns into what is launched, by a program of its own:
  Status (*start)(const TargetOptions *o, const TargetFacts *facts, TargetTool *out);
  void (*finish)(Lower *l,
                 Output *out); // the code of out->text; left as it is where there is no such program
  const char *passes;          // over the module; NULL: the shared ones over each function
};
extern const Target target_x86, target_nvptx;

struct Lower {
  const Target *target;
  const TargetFacts *facts;
  const TargetOptions *options;
  const IrModule *ir;
  Arena *arena;
  Diags *diags;
  Escape escape; // lower_fail and memory's end come here
  LLVMContextRef cx;
  LLVMModuleRef mod;
  LLVMBuilderRef b;
  LLVMTargetMachineRef tm;
  LLVMTargetDataRef layout;
  char llvm_error[512]; // first error that LLVM's diagnostic handler was given
  T i1, i8, i16, i32, i64, f32, f64, ptr, void_;
  T space[4];          // pointers, by IrSpace
  T mbarrier;          // NULL: mbarriers are nothing at run time
  LLVMDIBuilderRef di; // NULL: no line tables
  LLVMMetadataRef di_scope;
  Vec(LLVMMetadataRef) di_files; // by source number
  Vec(ImageSite) sites;
  // the function being emitted
  const IrFunc *func;
  V fn, inst;                                              // LLVM function; its AbiInstance
  V rank_record, arena_base, pid[3], grid[3], rank, world; // read once at the function's start
  V instances;                                             // of the launch, i64
  uint32_t fiber_warps;                                    // inside a warp_for with fibers: how many; else 0
  LLVMBasicBlockRef entry;                                 // allocas go to its start
  V *values;                                               // by IrValue.id
  int width;
  uint64_t buffers_end;   // where the function's buffers end in the arena
  uint64_t scratch_bytes; // behind them: what a single op needs while it runs
  bool nt_stores;         // the function has non-temporal stores: fence before others may look
  bool has_waits;
  void *own; // the target's own about this function
};

// Ends the compile: the diagnostic names the op and its place.
void lower_fail(Lower *l, const IrOp *op, Status s, const char *fmt, ...) DT_PRINTF(4, 5) DT_NORETURN;

// ---- lower.c: functions, control flow, values and types
void lower_instance(Lower *l, V fn, V inst);  // starts a function: entry block, what the instance record says
void lower_body(Lower *l, const IrBlock *b);  // the region of a function and its return
void lower_block(Lower *l, const IrBlock *b); // all ops but the terminator
void lower_op(Lower *l, const IrOp *op);
V lower_get(Lower *l, const IrValue *v);               // widened to l->width where it is a scalar
V lower_operand(Lower *l, const IrOp *op, uint32_t i); // NULL where absent
void lower_set(Lower *l, const IrValue *v, V x);
void lower_result(Lower *l, const IrOp *op, V x);
T lower_scalar_type(const Lower *l, const IrType *t); // of one element
T lower_type(const Lower *l, const IrType *t);
T lower_dtype(const Lower *l, IrDtype d);
int64_t lower_upper_bound(const IrValue *v,
                          int depth); // of an integer; INT64_MAX: not known. Start with depth 0
uint32_t lower_image_dtype(IrDtype d, bool uns);
void lower_describe_args(Lower *l, const IrFunc *f, ImageVariant *out); // fills args, nargs, args_bytes
uint32_t lower_site(Lower *l, const IrOp *op, const char *what, const char *fmt);
V lower_alloca(Lower *l, T t, uint32_t align); // in the entry block
LLVMBasicBlockRef lower_new_block(Lower *l, const char *name);
void lower_at(Lower *l, LLVMBasicBlockRef b);
LLVMBasicBlockRef lower_here(const Lower *l);
void lower_locate(Lower *l, const IrOp *op); // line of what follows
void lower_fn_attrs(Lower *l, V fn);
void lower_debug_function(Lower *l, V fn, Loc loc, const char *name); // line tables for fn; sets di_scope
const char *lower_place(const Lower *l, Loc loc, uint32_t *line, uint32_t *col); // file name, or NULL

// A loop of n turns (a constant or a value of type i32) with one carried value each for cn phis.
typedef struct LowerLoop {
  LLVMBasicBlockRef head, exit;
  V i, n, carried[8];
  uint32_t ncarried;
} LowerLoop;
void lower_loop_begin(Lower *l, LowerLoop *p, V n, uint32_t ncarried,
                      V const *init);                       // n >= 1; i and carried are phis
void lower_loop_end(Lower *l, LowerLoop *p, V const *next); // afterwards carried[] holds the last values

// ---- lower_build.c: short forms over the builder. `like` gives scalar or vector shape.
uint32_t lower_lanes(V v); // 0 for a scalar
uint32_t lower_type_lanes(T t);
T lower_elem_type(T t);
T lower_vec(T elem, uint32_t lanes); // elem itself where lanes is 0
T lower_shape(T elem, V like);
V lower_ci(T t, int64_t v); // constant (splat) of an integer type or vector
V lower_cf(T t, double v);
V lower_splat(Lower *l, V x, uint32_t lanes);
V lower_extract(Lower *l, V v, uint32_t i);
V lower_insert(Lower *l, V v, V x, uint32_t i);
V lower_shuffle(Lower *l, V a, V b, const int *idx, uint32_t n); // b may be NULL; index -1: undefined
V lower_intrinsic(Lower *l, const char *name, const T *over, uint32_t nover, V *args, uint32_t nargs);
V lower_un(Lower *l, const char *intrinsic, V x); // overloaded on its type
V lower_bin(Lower *l, const char *intrinsic, V x, V y);
V lower_fma(Lower *l, V a, V b, V c);
V lower_add(Lower *l, V a, V b); // integers
V lower_sub(Lower *l, V a, V b);
V lower_mul(Lower *l, V a, V b);
V lower_and(Lower *l, V a, V b);
V lower_or(Lower *l, V a, V b);
V lower_xor(Lower *l, V a, V b);
V lower_shl(Lower *l, V a, uint32_t n);
V lower_lshr(Lower *l, V a, uint32_t n);
V lower_ashr(Lower *l, V a, uint32_t n);
V lower_fadd(Lower *l, V a, V b);
V lower_fsub(Lower *l, V a, V b);
V lower_fmul(Lower *l, V a, V b);
V lower_fdiv(Lower *l, V a, V b);
V lower_icmp(Lower *l, LLVMIntPredicate p, V a, V b);
V lower_fcmp(Lower *l, LLVMRealPredicate p, V a, V b);
V lower_sel(Lower *l, V c, V a, V b);
V lower_bitcast(Lower *l, V a, T elem); // to elem in a's shape
V lower_all(Lower *l, V mask);          // of a vector of i1; a scalar itself
V lower_any(Lower *l, V mask);
V lower_field(Lower *l, V base, uint64_t offset); // address
V lower_load_at(Lower *l, T t, V base, uint64_t offset, uint32_t align);
V lower_gep(Lower *l, T elem, V p,
            V n); // p + n elements; n i32 (sign-extended) or i64, either may be a vector
void lower_align(V access, uint32_t align);

// ---- the families. Each lowers the ops listed for it in lower_op.
void lower_arith(Lower *l, const IrOp *op);
void lower_cast(Lower *l, const IrOp *op);
void lower_mem(Lower *l, const IrOp *op);
void lower_atomic(Lower *l, const IrOp *op);
void lower_vector(Lower *l, const IrOp *op);
void lower_math(Lower *l, const IrOp *op);
void lower_sync(Lower *l, const IrOp *op);
void lower_people(Lower *l, const IrOp *op);
void lower_warp_for(Lower *l, const IrOp *op);
void lower_call(Lower *l, const IrOp *op);
void lower_return_to(Lower *l, const Lower *caller); // after a function in its midst; what only grows stays

V lower_each_lane(Lower *l, V fn, V a,
                  V b);                  // calls a scalar function of one or two arguments for each element
V lower_widen(Lower *l, V x, IrDtype d); // f8, f16, bf16 to f32; f32 and f64 stay
V lower_narrow(Lower *l, V x, IrDtype d, IrRound round); // from f32 (or f64 for f64 and narrower)
V lower_from_memory(Lower *l, V x, const IrType *elem);  // i8 of an i1 to i1
V lower_to_memory(Lower *l, V x, const IrType *elem);
T lower_memory_type(const Lower *l, const IrType *t); // of an element: i8 for i1
V lower_memdesc(Lower *l, const IrValue *m);          // address of its first element
V lower_scratch(Lower *l, uint64_t bytes);            // in the arena; shared by all ops that ask
void lower_yield(Lower *l, const IrOp *loop,
                 LLVMValueRef turn); // lets others run; the runtime checks deadline and abort
void lower_nt_fence(Lower *l);       // before anything that publishes
LLVMIntPredicate lower_wait_cmp(IrCmp c, AbiCmp *abi); // how a wait compares: signed, as flags are
V lower_rmw(Lower *l, IrRmw rmw, IrDtype d, V p, V x, LLVMAtomicOrdering order);
LLVMAtomicOrdering lower_order(IrOrder o);
V lower_math_call(Lower *l, IrMath fn, V x, V y); // f32 or f64
V lower_f64_pow(Lower *l, V x, V y, bool exact);  // exact: to f64's precision, else to f32's
V lower_big_angle(Lower *l, V x, V y, double limit, int64_t quarter); // sines of huge arguments
V lower_f64_math(Lower *l, IrMath fn, V x, V y);
V lower_poly(Lower *l, V x, const double *c, uint32_t n); // c[0] + c[1] x + ... by Horner's rule with fma

#endif
