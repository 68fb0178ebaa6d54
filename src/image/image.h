// image: kernel images and the launch ABI, the hinge between compiler and runtime. Needs base only; no LLVM, no IR.
//
// 1. ABI: what compiled code and the runtime share in memory. Code generators use the offsets below; a change here
//    is a new IMAGE_ABI.
// 2. Image: one compiled kernel (or several) with all that a launch needs. Serialised little-endian, versioned, checksummed.
// 3. Pack: many images in one file, found by name.
#ifndef DITRON_IMAGE_H
#define DITRON_IMAGE_H

#include "base/base.h"

#define IMAGE_ABI 5u

// ---- 1. launch ABI -----------------------------------------------------------------------------------------------
// Peers' views of one collective allocation or registered buffer. symm_at(p, r) = p - base + peer_base[r].
typedef struct AbiSegment {
  uint64_t base, bytes;
  const uint64_t *peer_base; // [world]; own entry = base
} AbiSegment;

typedef struct AbiInstance AbiInstance;
typedef struct AbiRank AbiRank;

// Where in the program something is: index into the image's site table (line, name), for reports.
typedef uint32_t AbiSite;

typedef enum AbiCmp {
  ABI_EQ,
  ABI_NE,
  ABI_GT,
  ABI_GE,
  ABI_LT,
  ABI_LE
} AbiCmp; // signed for LT.. as the words are i32/i64
typedef enum AbiOrder { ABI_RELAXED, ABI_ACQUIRE, ABI_RELEASE, ABI_ACQ_REL } AbiOrder;

// CPU only: what compiled code calls back. Every call may switch fibers; none returns after an abort (the fiber is dropped).
typedef struct AbiCpuCalls {
  // Until n consecutive words (bytes = 4 or 8 each) at flag compare with value. The fast check was already made by the code.
  void (*wait)(AbiInstance *i, const void *flag, uint32_t n, uint32_t bytes, uint64_t value, AbiCmp cmp,
               AbiSite site);
  // At the back edge of a loop that may be polling; turn counts from 0 each time the loop is entered. Past the deadline the
  // launch is given up.
  void (*yield)(AbiInstance *i, AbiSite site, uint32_t turn);
  // Runs body(ctx, w) for w in 0..n-1 at the same time, each on a fiber; returns when all are done.
  void (*warps)(AbiInstance *i, uint32_t n, void (*body)(AbiInstance *i, void *ctx, uint32_t w), void *ctx);
  void (*block_barrier)(AbiInstance *i, uint32_t warps, AbiSite site); // inside warps()
  void (*team_barrier)(AbiInstance *i, int32_t team, uint32_t group,
                       AbiSite site); // group: 0 thread, 1 warp, 2 block
  // Copies and signals to a peer; addresses are this rank's symmetric ones, pe a rank of the world. flags: bit 0 get, bit 1 nbi.
  void (*copy)(AbiInstance *i, void *dst, const void *src, uint64_t bytes, int32_t pe, uint32_t flags,
               AbiSite site);
  // op: 0 set, 1 add; release at system scope. bytes: 4 or 8.
  void (*signal)(AbiInstance *i, void *word, uint64_t value, uint32_t bytes, int32_t pe, uint32_t op,
                 AbiSite site);
  void (*quiet)(AbiInstance *i, uint32_t fence_only);
  // One line for each of the n values, by the site's text; lane: which element, UINT32_MAX where there is but one.
  void (*print)(AbiInstance *i, AbiSite site, uint32_t lane, const uint64_t *bits, uint32_t n);
  void (*assert_fail)(AbiInstance *i, AbiSite site);
  void (*bad_peer)(AbiInstance *i, int64_t pe, AbiSite site); // rank out of range
} AbiCpuCalls;

// GPU only: what a kernel tells the host before its threads exit. The first thread that moves `state` from EMPTY to WRITING
// (compare and swap, system scope) fills in the rest, raises the abort word, and then stores DONE (release, system scope).
// The host reads it after the launch has ended, or while it polls, and sets it to EMPTY before the next launch.
typedef enum AbiReportState { ABI_REPORT_EMPTY, ABI_REPORT_WRITING, ABI_REPORT_DONE } AbiReportState;
typedef enum AbiReportKind {
  ABI_REPORT_DEADLINE, // a wait lasted too long: flag, bytes, seen, value, cmp
  ABI_REPORT_ASSERT,
  ABI_REPORT_BAD_PEER, // value: a rank that does not exist, or one that flag is no symmetric memory of
} AbiReportKind;
typedef struct AbiReport {
  uint32_t state, kind;
  AbiSite site;
  uint32_t pid[3], thread; // thread: in its block
  uint32_t bytes, cmp;     // of the word waited for; AbiCmp
  uint32_t pad;
  uint64_t flag, seen, value; // its address, what stood there, what was waited for (sign-extended)
} AbiReport;

// One a rank and stream of launches; read-only for kernels unless said otherwise.
// On a GPU it lies in memory that the device reads, and so does all that it points to (device addresses).
struct AbiRank {
  uint32_t abi; // IMAGE_ABI
  int32_t rank, world;
  uint32_t nsegments;
  const AbiSegment *segments;
  const uint64_t *abort_word; // non-zero: give up, at the next wait. A GPU kernel that gives up sets it to 1
  uint64_t deadline_ns;       // a wait's longest time
  void *trace;                // timeline ring, or NULL
  const AbiCpuCalls *cpu;     // NULL on a GPU
  void *runtime;              // the runtime's own
  AbiReport *report;          // GPU: in pinned host memory or the device's own; NULL on a CPU
};

// CPU only: one running program instance.
struct AbiInstance {
  uint32_t pid[3], grid[3];
  char *arena; // image's arena_bytes, 64-byte aligned, contents undefined
  const AbiRank *rank;
  uint32_t worker;    // number of the worker thread
  uint32_t warp;      // inside warps(): which
  const void *kernel; // the runtime's kernel, for reports
  void *fiber;
};
// The compiled kernel: runs one instance. args: the kernel's arguments packed as the image says (ImageArg.offset).
typedef void (*AbiCpuEntry)(const void *args, AbiInstance *inst);

// GPU kernels: the arguments lie packed as the image says (ImageArg.offset, each aligned to its size, a descriptor to 8);
// behind them, at ImageVariant.args_bytes, one hidden argument of 8 bytes: the device's address of the AbiRank; behind that,
// from the next multiple of IMAGE_MAP_ALIGN on, the variant's tensor maps, IMAGE_MAP_BYTES each (image_launch_bytes says where
// all ends). So a launch passes these bytes (CU_LAUNCH_PARAM_BUFFER_POINTER), or a pointer to each argument that is not fixed, in
// order, then one to the hidden one, then one to each map (a kernel with maps is launched so: their offsets depend on the architecture). Grid: as the user says. Block: num_warps * lanes threads along x. Dynamic shared memory: shared_bytes.

// ---- 2. image ------------------------------------------------------------------------------------------------------
typedef enum ImageTarget { IMAGE_X86_64, IMAGE_NVPTX, IMAGE_AMDGPU } ImageTarget;
typedef enum ImageArgKind {
  IMAGE_ARG_PTR,   // 8 bytes
  IMAGE_ARG_INT,   // bits/8 bytes, bool one byte
  IMAGE_ARG_FLOAT, // bits/8 bytes (f16, bf16 too)
  IMAGE_ARG_DESC,  // tensor descriptor: ImageDesc by value
  IMAGE_ARG_FIXED // an integer that the code has folded: not passed, and the launch's value must equal `value`
} ImageArgKind;
typedef struct ImageDesc { // how a descriptor argument lies in the packed arguments
  uint64_t base;
  int64_t shape[5], strides[5]; // elements
} ImageDesc;
typedef struct ImageArg {
  const char *name;
  ImageArgKind kind;
  uint32_t bits;  // of the scalar, or of the pointee/element
  uint32_t dtype; // ImageDtype of scalar, pointee or element
  bool is_unsigned;
  uint32_t divisible; // guard: value, address or base is a multiple of this (1: any)
  uint32_t rank;      // IMAGE_ARG_DESC
  int32_t block[5];
  uint32_t offset; // in the packed arguments
  bool written;    // PTR, DESC: the kernel may write there
  int64_t value;   // IMAGE_ARG_FIXED
} ImageArg;
typedef enum ImageDtype { // stable numbers; the IR's dtypes plus unsigned ints
  IMAGE_I1,
  IMAGE_I8,
  IMAGE_I16,
  IMAGE_I32,
  IMAGE_I64,
  IMAGE_U8,
  IMAGE_U16,
  IMAGE_U32,
  IMAGE_U64,
  IMAGE_F16,
  IMAGE_BF16,
  IMAGE_F32,
  IMAGE_F64,
  IMAGE_F8E4M3,
  IMAGE_F8E5M2,
  IMAGE_NDTYPES
} ImageDtype;
extern const struct ImageDtypeInfo {
  const char *name;
  uint32_t bits, bytes;
} image_dtypes[IMAGE_NDTYPES];             // "i1" ... "f8e5m2"
int image_dtype_by_name(const char *name); // -1: none

typedef struct ImageSite { // what an AbiSite names
  const char *file;
  uint32_t line, col;
  const char *what; // a wait's label, an assert's message, a print's prefix
  const char *
      fmt; // print: one letter an argument: n (part of the index) t (thread) i u x f d(f64) h(f16) b(bf16) p, with width digits: "i32f32"
} ImageSite;

typedef enum ImageWait {
  IMAGE_WAIT_NONE,
  IMAGE_WAIT_EXTERNAL,
  IMAGE_WAIT_ORDERED,
  IMAGE_WAIT_MUTUAL
} ImageWait;

// Tensor maps: what the tensor memory accelerator of a GPU is told about a tensor, made by the host for each launch. What of it
// depends on the launch's arguments is computed by recipes: postfix programs on 64-bit integers that wrap.
typedef enum ImageStepOp {
  IMAGE_STEP_CONST,  // pushes `value`
  IMAGE_STEP_ARG,    // pushes argument `arg`: an integer, sign-extended from its width, or an address
  IMAGE_STEP_BASE,   // pushes of the descriptor argument `arg` its address,
  IMAGE_STEP_DIM,    // its size along axis `value`,
  IMAGE_STEP_STRIDE, // its stride along axis `value`
  IMAGE_STEP_SEXT,   // the top, sign-extended from its `value` low bits
  IMAGE_STEP_ZEXT,   // the top, its upper bits cleared
  IMAGE_STEP_ADD,    // from here on two operands, the upper one the right
  IMAGE_STEP_SUB,
  IMAGE_STEP_MUL,
  IMAGE_STEP_DIV_S, // by zero: 0
  IMAGE_STEP_DIV_U,
  IMAGE_STEP_REM_S,
  IMAGE_STEP_REM_U,
  IMAGE_STEP_MIN_S,
  IMAGE_STEP_MAX_S,
  IMAGE_STEP_MIN_U,
  IMAGE_STEP_MAX_U,
  IMAGE_STEP_AND,
  IMAGE_STEP_OR,
  IMAGE_STEP_XOR,
  IMAGE_STEP_SHL, // by 64 or more: 0, or the sign
  IMAGE_STEP_SHR_S,
  IMAGE_STEP_SHR_U,
  IMAGE_NSTEPS
} ImageStepOp;
typedef struct ImageStep {
  ImageStepOp op;
  uint32_t arg;
  int64_t value;
} ImageStep;
enum { IMAGE_RECIPE_MAX = 256, IMAGE_RECIPE_DEPTH = 16 }; // steps of a recipe; values on its stack
typedef struct ImageRecipe {
  ImageStep *steps;
  uint32_t n;
} ImageRecipe;
enum { IMAGE_MAP_RANK = 5, IMAGE_MAP_BYTES = 128, IMAGE_MAP_ALIGN = 64, IMAGE_MAPS_MAX = 24 };
typedef struct ImageMap {
  const char *name;             // of the descriptor, for people
  uint32_t dtype;               // ImageDtype
  uint32_t rank;                // axes, the last one contiguous
  uint32_t box[IMAGE_MAP_RANK]; // elements that one copy moves
  uint32_t swizzle;             // of the box in shared memory: 0, 32, 64 or 128 bytes
  bool pad_nan;                 // reads outside give NaN, else 0
  bool writes;                  // something is stored through it
  ImageRecipe base, sizes[IMAGE_MAP_RANK], strides[IMAGE_MAP_RANK]; // elements
} ImageMap;
typedef struct ImageMapNumbers { // what the recipes gave for one launch
  uint64_t base;
  int64_t sizes[IMAGE_MAP_RANK], strides[IMAGE_MAP_RANK];
} ImageMapNumbers;

// One kernel: variants are tried in order, the first whose guards (ImageArg.divisible, and what maps ask for) hold is launched.
typedef struct ImageVariant {
  const char *entry;      // symbol in code
  const char *guard_text; // for people: when it runs, or why none stands behind it
  ImageArg *args;         // same count and order in all variants; offsets and guards may differ
  uint32_t nargs, args_bytes;
  uint32_t num_warps, lanes;
  uint64_t arena_bytes; // CPU: scratch of one instance
  // GPU. shared_bytes: dynamic, all that a block needs. registers: of a thread, and local_bytes: its stack, of which
  // spill_bytes are spills (stored once); 0 where only the driver's compiler will know (Image.is_text). cluster: 0 0 0 or 1 1 1: none.
  uint32_t shared_bytes, registers, local_bytes, spill_bytes, cluster[3];
  uint64_t workspace_bytes; // global memory of one instance
  ImageWait wait;
  // GPU: may start before what stands in front of it in its stream has ended; it waits for that itself, before it accesses memory.
  bool early;
  bool has_waits; // any wait, barrier across warps or team barrier inside: instances need fibers
  uint32_t code;  // where its entry is: 0: Image.code, i: Image.more[i - 1]
  ImageMap *maps; // GPU: in the order of the hidden parameters
  uint32_t nmaps;
} ImageVariant;
typedef struct ImageKernel {
  const char *name;
  ImageVariant *variants;
  uint32_t nvariants;
} ImageKernel;
typedef struct ImageBlob {
  const void *code;
  size_t bytes;
} ImageBlob;
typedef struct Image {
  ImageTarget target;
  const char *cpu_features; // needed: "avx2,fma,f16c" or "avx512f,..." or "sm_90a"
  const char *producer;     // version of the compiler
  // CPU: a relocatable ELF object without undefined symbols but those of image_cpu_symbols. AMDGPU: hsaco. NVPTX: a cubin, or,
  // where there was no ptxas, PTX for the driver's compiler (is_text; ends in a NUL that code_bytes counts).
  const void *code;
  size_t code_bytes;
  bool is_text;
  uint32_t sm; // NVPTX: compute capability, 90 for 9.0. A cubin runs on the same major with a minor not below
  bool sm_exact; // on no other (sm_90a); else PTX runs on all not below
  ImageKernel *kernels;
  uint32_t nkernels;
  ImageSite *sites;
  uint32_t nsites;
  const char *source_name;
  ImageBlob
      *more; // code of the variants that say so (ImageVariant.code), of the kind that `code` is; GPUs only
  uint32_t nmore;
} Image;
// The variant's arguments get other numbers: argument i is number to[i] from now on.
void image_renumber_args(ImageVariant *v, const uint32_t *to);
// Bytes of a launch's packed arguments, hidden ones included; where map i lies among them.
uint32_t image_launch_bytes(const ImageVariant *v);
uint32_t image_map_offset(const ImageVariant *v, uint32_t i);
// What is wrong with a map's constant part or its recipes, or NULL. Images that are written or were read have none such.
const char *image_map_fault(const ImageVariant *v, const ImageMap *m);
// Runs the recipes of a sound map over the packed arguments.
void image_map_eval(const ImageVariant *v, const ImageMap *m, const void *packed, ImageMapNumbers *out);
// May the accelerator be told these numbers? Else `why` gets a clause for people: "its base must ...".
bool image_map_fits(const ImageMap *m, const ImageMapNumbers *n, char *why, size_t cap);
// Do they fit for all arguments that the variant's guards let pass? False where it is not sure.
bool image_map_always_fits(const ImageVariant *v, const ImageMap *m);
// Without elements: every read is padding, no write happens. What the accelerator is told then is the caller's.
bool image_map_empty(const ImageMap *m, const ImageMapNumbers *n);

// Deterministic bytes: equal images give equal bytes.
Status image_write(const Image *im, Arena *a, void **bytes, size_t *n, Diags *d);
// Everything is copied into the arena. Truncated, damaged, hostile or foreign bytes give ST_CORRUPT or ST_VERSION and one
// diagnostic; never a crash. Bounds every count before allocating.
Status image_read(Arena *a, const void *bytes, size_t n, Image **out, Diags *d);

// ---- CPU code loading (no LLVM): maps an ELF x86-64 relocatable object made by our compiler, applies relocations, resolves
// imports by name among `symbols`, sets page protection. Returns the loaded code or a diagnostic.
typedef struct ImageSymbol {
  const char *name;
  const void *address;
} ImageSymbol;
typedef struct ImageCode ImageCode;
Status image_code_load(const void *object, size_t n, const ImageSymbol *symbols, uint32_t nsymbols,
                       ImageCode **out, Diags *d);
const void *image_code_symbol(const ImageCode *c, const char *name); // NULL: none
void image_code_free(ImageCode *c);
// What CPU code may import: the C library's memory functions, libm in both widths, compiler support (imports.def).
extern const ImageSymbol image_cpu_symbols[];
extern const uint32_t image_ncpu_symbols;
// Does this machine have what the image's cpu_features ask for? Writes the missing ones into `missing`.
bool image_cpu_has(const char *features, char *missing, size_t cap);
uint64_t image_cpu_identity(void); // the same on machines with the same kind of processor

// ---- 3. packs ----------------------------------------------------------------------------------------------------------
typedef struct PackEntry {
  const char *key;
  const void *bytes;
  size_t n;
} PackEntry; // key: "kernel|signature|options"
Status pack_write(const PackEntry *e, uint32_t n, Arena *a, void **bytes, size_t *len, Diags *d);
Status pack_read(Arena *a, const void *bytes, size_t n, PackEntry **e, uint32_t *count, Diags *d);

#endif
