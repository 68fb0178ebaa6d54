// front: `.py` files in, tile IR out.
//
// A caller lists the kernels of a file (front_list), decides for each parameter what is known at compile time
// (FrontSpec: a constant, or the type and alignment of a run-time argument), and compiles (front_compile).
// Everything that is wrong with the program is a diagnostic; nothing is printed, and no input crashes.
// Thread-safe: calls share nothing but what the caller passes in.
#ifndef DITRON_FRONT_H
#define DITRON_FRONT_H

#include "ir/ir.h"

// Element types by their language names: FDT_int1 ... FDT_float64.
typedef enum FrontDtype {
#define LTYPE(name, ir, bits, kind, text) FDT_##name,
#include "front/dtypes.def"
#undef LTYPE
  FDT_COUNT
} FrontDtype;
// Accepts signature spellings (f16, u8, i1, f8e4m3), language names (float16, uint8, float8e4nv) and Triton's short
// ones (fp16, fp8e5, bool). -1: unknown.
int front_dtype_parse(const char *text, size_t len);
const char *front_dtype_name(FrontDtype d);  // "float16"
const char *front_dtype_short(FrontDtype d); // "f16"
IrDtype front_dtype_ir(FrontDtype d);
int front_dtype_bits(FrontDtype d);
bool front_dtype_is_unsigned(FrontDtype d);

// A compile-time value.
typedef enum FrontConstKind {
  FCONST_NONE,
  FCONST_BOOL,
  FCONST_INT,
  FCONST_FLOAT,
  FCONST_STR,
  FCONST_DTYPE,
  FCONST_FUNC,
  FCONST_TUPLE
} FrontConstKind;
typedef struct FrontConst {
  FrontConstKind kind;
  int64_t i;                      // INT, BOOL
  bool is_unsigned;               // INT: i holds a uint64_t
  double f;                       // FLOAT
  const char *s;                  // STR; FUNC: name of a function of the file, or module.name
  FrontDtype dtype;               // DTYPE
  const struct FrontConst *items; // TUPLE
  int nitems;
} FrontConst;

typedef enum FrontKind {
  FRONT_CONST,   // value
  FRONT_POINTER, // to dtype; the address is a multiple of `divisible` bytes (0 or 1: unknown)
  FRONT_SCALAR,  // of dtype; an integer that is a multiple of `divisible`
  FRONT_DESC,    // tensor descriptor of dtype with a block shape
  FRONT_TUPLE    // items, one after another in the kernel's parameter list
} FrontKind;
typedef struct FrontSpec {
  const char *name; // of the parameter (items of a tuple need none)
  FrontKind kind;
  FrontConst value;
  FrontDtype dtype;
  int64_t divisible;
  int rank;                      // DESC
  int32_t block[IR_MAX_RANK];    // DESC
  const struct FrontSpec *items; // TUPLE
  int nitems;
} FrontSpec;

// A name bound by the caller, before the file's own; "package.module.name" in a module that is imported.
typedef struct FrontGlobal {
  const char *name;
  FrontConst value;
} FrontGlobal;
typedef struct FrontOptions {
  int num_warps, num_stages, num_ctas; // 0: 4, 2 and 1
  int max_registers;                   // of a thread; 0: no limit
  int lanes;                           // threads of a warp, 32 or 64; 0: 32
  bool no_asserts;                     // device_assert compiles to nothing
  const FrontGlobal *globals;
  int nglobals;
  const char *const *search; // folders where imported modules are looked for, after the file's own folder
  int nsearch;
} FrontOptions;
typedef struct FrontTree FrontTree; // a file that has been read; immutable
typedef struct FrontSource {
  const char *path; // names the file in diagnostics; its folder is searched for imports
  const char *text; // NULL: read from path
  size_t len;
  const FrontTree
      *tree; // FrontKernels.tree of this file and the same context: it is not read again. NULL: it is
} FrontSource;

// ---- listing -------------------------------------------------------------------------------------
typedef struct FrontParam {
  const char *name, *annotation; // annotation as written, NULL where absent
  Loc loc;
  bool is_constexpr;  // annotated tl.constexpr
  bool no_specialize; // fixed type or do_not_specialize: an int 1 stays a run-time value
  int dtype;          // a dtype annotation's FrontDtype, or -1
  bool has_default;
  bool default_known; // dflt holds it
  FrontConst dflt;
} FrontParam;
typedef struct FrontKernel {
  const char *name;
  Loc loc;
  bool called; // another jit function of the file calls it
  FrontParam *params;
  int nparams;
} FrontKernel;
typedef struct FrontKernels {
  FrontKernel *list;
  int n;
  const FrontTree *tree;
} FrontKernels;
// All jit functions of a file, in order.
Status front_list(Arena *a, Diags *d, IrCtx *ctx, const FrontSource *src, const FrontOptions *o,
                  FrontKernels *out);
// The kernel of that name, or with NULL the only jit function that no other one calls. NULL (with a diagnostic that
// lists the names) where there is none or more than one.
const FrontKernel *front_pick(const FrontKernels *k, const char *name, const FrontSource *src, Diags *d);

// What Triton's launcher decides from a run-time integer: 1 becomes a constant, the type follows the value (i32, i64,
// u64), divisibility by 16 is recorded; the parameter's annotations can forbid each.
FrontSpec front_spec_int(const FrontParam *p, int64_t value, bool is_unsigned);
FrontSpec front_spec_float(const FrontParam *p, double value);
FrontSpec front_spec_pointer(const FrontParam *p, FrontDtype elem, uint64_t address);

// ---- compiling -------------------------------------------------------------------------------------
// Lowers one kernel and the helpers it needs into a new module at the tile stage. Parameters without a spec take their
// default. The kernel's IR parameters are the non-constant ones, in order, tuples item by item.
// ST_COMPILE: see d. The module lives in a; sources are registered in d.
Status front_compile(Arena *a, Diags *d, IrCtx *ctx, const FrontSource *src, const char *kernel,
                     const FrontSpec *specs, int nspecs, const FrontOptions *o, IrModule **out);

// The syntax tree as text, one node a line.
Status front_dump_ast(Arena *a, Diags *d, IrCtx *ctx, const FrontSource *src, char **out);

// ---- the language's table, for docs/language.md ------------------------------------------------------
typedef struct FrontBuiltin {
  const char *module, *name, *params, *text;
  bool method; // also callable as x.name(...)
} FrontBuiltin;
int front_builtins(const FrontBuiltin **rows);

#endif
