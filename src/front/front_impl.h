// Inside the front room: what its files share.
//
//   module.c   files and names: which functions there are, what a global name means
//   arms.c     names under conditions of a module that are not known; decorators that are not run
//   types.c    element types, promotion rules
//   value.c    compile-time and run-time values: printing, comparing, taking apart into IR values
//   emit.c     IR for arithmetic, casts, broadcasts on values: the semantics of operators
//   lower_*.c  expressions, statements, calls
//   builtin_*.c  the library, found through builtins.def
//
// Lowering is abstract interpretation: the syntax tree is walked with values that are known (constants, types,
// functions) or run-time (IR values with a language type). Known `if`s and unrolled loops leave no trace in the IR.
//
// A mistake in the program is reported where it is found and the expression becomes VAL_POISON, which every operation
// passes on in silence; lowering goes on to find more.
#ifndef DITRON_FRONT_IMPL_H
#define DITRON_FRONT_IMPL_H

#include "front/ast.h"
#include "front/front.h"
#include "front/parse.h"

enum {
  FRONT_MAX_CALLS = 64,      // helpers calling helpers
  FRONT_MAX_EVAL = 1500,     // nested C calls of the evaluator
  FRONT_MAX_STEPS = 500000,  // statements lowered in one compile: unrolling ends here
  FRONT_MAX_VALUES = 500000, // of the IR of one function; and here
  FRONT_REFUSED_TRIPS = 64,  // an unrolled loop ends there where something in it is refused
  FRONT_MAX_UNROLL = 65536,  // trips of one unrolled loop, items of a tuple
  FRONT_MAX_TEXT = 1 << 20,  // bytes of a string
  FRONT_MAX_FILES = 64,      // imported files
  FRONT_MAX_ARGS = 24        // of a library function
};

// ---- types ---------------------------------------------------------------------------------------
typedef enum DtKind { DTK_NAMED, DTK_BOOL, DTK_SINT, DTK_UINT, DTK_FLOAT, DTK_FP8 } DtKind;
typedef struct DtInfo {
  const char *name, *text;
  IrDtype ir;
  uint8_t bits;
  DtKind kind;
} DtInfo;
extern const DtInfo front_dtypes[FDT_COUNT];

// What one element of a value is: a number type, or a pointer. Interned: equal types are one pointer.
typedef struct Elem {
  FrontDtype dt;         // of the number; FDT_void for a pointer
  const struct Elem *to; // pointee, or NULL for a number
} Elem;
// The type of a run-time value: a scalar (rank 0) or a tile.
typedef struct Type {
  const Elem *elem;
  bool thread; // a scalar with one value a thread
  int rank;
  int32_t shape[IR_MAX_RANK];
} Type;

static inline bool elem_is_ptr(const Elem *e) { return e->to != NULL; }
static inline DtKind elem_kind(const Elem *e) { return e->to ? DTK_NAMED : front_dtypes[e->dt].kind; }
static inline bool elem_is_int(const Elem *e) { // bool counts
  const DtKind k = elem_kind(e);
  return k == DTK_BOOL || k == DTK_SINT || k == DTK_UINT;
}
static inline bool elem_is_float(const Elem *e) {
  return elem_kind(e) == DTK_FLOAT || elem_kind(e) == DTK_FP8;
}
static inline bool elem_is_unsigned(const Elem *e) {
  return elem_kind(e) == DTK_UINT || elem_kind(e) == DTK_BOOL;
}
static inline bool elem_is_bool(const Elem *e) { return elem_kind(e) == DTK_BOOL; }
static inline int elem_bits(const Elem *e) { return e->to ? 64 : front_dtypes[e->dt].bits; }

// ---- values ----------------------------------------------------------------------------------------
typedef struct Value Value;
typedef struct Lower Lower;
typedef struct Front Front;
typedef struct ModFile ModFile;
typedef struct Builtin Builtin;
typedef Vec(Value *) ValueVec;

typedef enum ValueKind {
  VAL_POISON, // an error was reported
  VAL_NONE,
  VAL_BOOL,
  VAL_INT,
  VAL_FLOAT,
  VAL_STR,
  VAL_ELLIPSIS,
  VAL_DTYPE,   // an element type (x.dtype, tl.float32) or, with rank >= 0, a whole type (x.type)
  VAL_FUNC,    // a function of a file
  VAL_BUILTIN, // a library function
  VAL_METHOD,  // self.name: a library function or method with its first argument bound
  VAL_LIB,     // a library module: triton.language ...
  VAL_FILE,    // a module that is a file of ours
  VAL_OPAQUE,  // something of the host program that no kernel can use
  VAL_TUPLE,   // also lists; fields name the items of a named tuple
  VAL_DICT,
  VAL_RANGE, // range(...), tl.range(...), tl.static_range(...)
  VAL_SLICE,
  VAL_CLASS,    // an aggregate or named-tuple class
  VAL_OBJECT,   // an instance of an aggregate
  VAL_RT,       // a run-time scalar, pointer or tile
  VAL_TOKEN,    // what a wait hands out
  VAL_BLOCKPTR, // tl.make_block_ptr
  VAL_DESC,     // a tensor descriptor
  VAL_VECTOR,   // so many scalars of one thread
  VAL_MEM,      // a tile held in shared memory, inside simt_exec_region
  VAL_SMEM      // dl.allocate_smem's buffer, a part of it, or a pointer into it
} ValueKind;

// Why a scalar is per thread: what made it so, and where. For messages.
typedef struct Why {
  Loc loc;
  const char *text; // "tid(0)"
} Why;

typedef struct Func { // a def, and how it is meant to be called
  ModFile *file;
  const Node *def; // AST_FuncDef or AST_Lambda
  const Str *name;
  enum { FUNC_JIT, FUNC_CONSTEXPR, FUNC_PLAIN } kind; // decorated; @constexpr_function; undecorated
  Value *self_class;                                  // VAL_CLASS whose method this is, or NULL
  struct Env *closure;                                // a def or lambda inside a function: its environment
} Func;

typedef struct RangeSpec {
  enum { RANGE_PLAIN, RANGE_TL, RANGE_STATIC } kind;
  Value *lo, *hi, *step;
  int stages, unroll;
  bool flatten, warp_spec;
} RangeSpec;

typedef struct BlockPtr { // leaves, in this order: base, shape[], strides[], offsets[]
  int rank;
  Value *base, *shape[IR_MAX_RANK], *strides[IR_MAX_RANK],
      *offsets[IR_MAX_RANK]; // i64, i64, i64 (or i32) scalars
  int32_t block[IR_MAX_RANK];
  int order[IR_MAX_RANK];
} BlockPtr;

// Leaves: one made in the kernel is its base, sizes and strides, so that control flow can choose them and it is made anew
// behind; one of the host is the descriptor itself.
typedef struct Desc {
  IrValue *ir; // NULL: to be made where it is used
  Value *base; // NULL: made by the host
  bool nan;    // what lies outside reads as NaN
  const Elem *elem;
  int rank;
  int32_t block[IR_MAX_RANK];
  Value *shape[IR_MAX_RANK], *strides[IR_MAX_RANK]; // NULL where base is
} Desc;

typedef struct Smem { // leaf: the offset
  IrValue *ir;        // the whole buffer, one axis
  const Elem *elem;
  int rank; // 0: a pointer
  int32_t shape[IR_MAX_RANK];
  Value *offset; // i32 scalar, in elements
} Smem;

typedef struct Class {
  ModFile *file;
  const Node *def;
  const Str *name;
  bool named_tuple;
  Vec(const Str *) fields;
  NodeVec defaults; // by field; NULL entries where none
} Class;

struct Value {
  ValueKind kind;
  union {
    bool b;
    AstInt i;
    double f;
    const Str *s; // STR; LIB and OPAQUE: dotted name
    struct {      // DTYPE
      const Elem *elem;
      int rank; // -1: an element type
      const int32_t *shape;
    } dt;
    const Func *func;
    const Builtin *builtin;
    struct { // METHOD
      Value *self, *fn;
    } method;
    ModFile *file;
    struct { // TUPLE, OBJECT (fields by class), DICT (keys in fields)
      Value **items;
      uint32_t n;
      const Str *const *fields; // named tuples, DICT; else NULL
      Value *cls;               // OBJECT, named tuple: its VAL_CLASS
      bool list;                // TUPLE: written as a list
    } seq;
    const RangeSpec *range;
    struct { // SLICE
      Value *lo, *hi, *step;
    } slice;
    const Class *cls;
    struct { // RT
      IrValue *ir;
      const Type *type;
      const Why *why; // thread scalars
    } rt;
    IrValue *token;
    const BlockPtr *bp;
    const Desc *desc;
    const Smem *smem;
    struct { // MEM
      IrValue *ir;
      const Type *type;
    } mem;
  };
};

typedef struct Binding {
  Value *value;     // NULL: the name has no one meaning here
  bool is_const;    // annotated tl.constexpr
  const char *gone; // value NULL: why the name means nothing here
} Binding;
typedef struct Env { // names of a function, in one Map from Str to Binding
  Map map;
  struct Env *outer; // of the enclosing function, for closures
} Env;

// ---- files -----------------------------------------------------------------------------------------
typedef struct Guard { // an `if` around a statement of a module
  const Node *condition;
  bool holds; // in the first arm
  const struct Guard *outer;
} Guard;
typedef struct Global { // one way a module-level name is bound; later ones first
  enum { GLOBAL_FUNC, GLOBAL_CLASS, GLOBAL_EXPR, GLOBAL_IMPORT, GLOBAL_FROM } kind;
  const Node *node; // FuncDef, ClassDef, the value expression, Alias
  const Node *stmt; // the whole statement
  int item;         // GLOBAL_EXPR: index into a tuple target, or -1
  Value *value;     // evaluated, or NULL
  Value *certain;   // the same for a condition: opaque where it is not known which binding Python sees
  bool busy;        // being evaluated
  bool constexpr_;  // annotated tl.constexpr
  const Guard *guard;
  struct Global *earlier;
} Global;
struct FrontTree {
  const Node *module;
};
struct ModFile {
  const Str *path, *dir;
  FrontTree tree;
  Map names; // Str to Global
  Vec(const Str *) order;
  Vec(const Node *) stars; // from m import *
  ModFile *next;
};
Status modfile_load(Front *f, const FrontSource *src, ModFile **out);
Value *modfile_lookup(Lower *L, ModFile *m, const Str *name); // NULL: no such name
Value *modfile_own(Lower *L, ModFile *m, const Str *name);    // the same past the names that the caller bound
Value *modfile_dotted(Lower *L, ModFile *m,
                      const char *dotted); // module.name, of a library or a file; or NULL
bool front_func_is_jit(Front *f, ModFile *m, const Node *def);
const Func *front_func_of_def(Front *f, ModFile *m, const Node *def);
// Of two meanings of a name under a condition that is not known: v of g, or w of another arm. Warns where both count.
Value *front_choose_arm(Front *f, const Node *condition, const Str *name, const Global *g, Value *v,
                        const Global *other, Value *w);
void front_warn_decorators(Front *f, const Func *fn); // names those that are left out
// The library module of that dotted name ("triton.language"), or NULL.
Value *lib_module(Front *f, const char *dotted);
const char *lib_key(const char *dotted); // key of its rows in builtins.def; NULL: no such library
Value *lib_attr(Front *f, const Str *lib, const char *name); // lib.name, or NULL
// Why a known name of a library is refused, and what to write instead (refused.def); NULL: it is not.
const char *lib_refusal(const char *dotted, const char *name, const char **hint);

// ---- the session ----------------------------------------------------------------------------------------
typedef struct CallSite { // for messages
  const Func *func;
  Loc loc;
  const struct CallSite *outer;
} CallSite;
typedef struct Instance { // a helper compiled for given argument types and constants
  const Func *func;
  const char *key;
  IrFunc *ir;
  Value *result; // its leaves are replaced by the call's results
  bool busy;     // being lowered: a call to it now is a recursion
  struct Instance *next;
} Instance;

struct Front {
  Arena *a;
  Diags *d;
  IrCtx *ctx;
  Strings *strings;
  IrModule *module;
  FrontOptions o;
  const Elem *numbers[FDT_COUNT];
  Vec(const Elem *) pointers;
  ModFile *files, *main;
  int nfiles, star_depth;
  int quiet;        // errors are swallowed: module-level code of the host
  uint32_t refused; // errors so far, those of one place each time that it is met
  int deciding;     // evaluating conditions of modules
  int browsing;     // only looking: no file is opened, nothing is remembered
  bool compiling;   // what is odd is said; listing a file is silent
  Instance *instances;
  Map builtins;      // Str "module.name" to Builtin
  Map libs;          // Str to Value
  Map funcs;         // Node to Func
  Map classes;       // Node to Value
  Vec(Loc) reported; // where an error was reported already
  int64_t steps;
  int calls;            // depth of helper calls
  int depth;            // of the evaluator
  const CallSite *site; // of the helper that is being lowered
  int serial;           // for names
  Value *none, *poison, *vtrue, *vfalse;
  const Str *s_ret, *s_brk,
      *s_out; // pseudo variables: the value to return; to leave a loop, an unrolled loop
};
Front *front_open(Arena *a, Diags *d, IrCtx *ctx, const FrontOptions *o);

// ---- one function being lowered ------------------------------------------------------------------------------
typedef struct ThreadCtl { // the enclosing control that not all threads take
  const Why *why;
  Loc loc;
} ThreadCtl;
// What follows a statement list inside its function or loop body; see lower_stmt.c.
typedef struct Cont Cont;

struct Lower {
  Front *f;
  IrBuilder b; // b.block NULL: evaluating at module level, no code
  IrFunc *ir;
  IrOp *entry;    // once-a-program values are made behind this op (NULL: at the start)
  Value *ids[16]; // program_id and the like, made once in the entry
  Env *env;
  ModFile *file; // whose globals are visible
  const Func *func;
  const ThreadCtl *thread;
  bool keep_const;       // inlined: a return value stays a constant
  const AstNames *exits; // names that matter where this function or loop body ends
  bool in_loop;          // a real loop is around, in this function: no return
  int region_depth;      // simt_exec_region around
  bool inline_all;       // inside a combining region, which must stay pure: helpers are lowered in place
};

// ---- diagnostics ----------------------------------------------------------------------------------------------
// Reports an error once per place, and yields poison.
Value *front_err(Lower *L, Loc loc, const char *fmt, ...) DT_PRINTF(3, 4);
// The error, then a hint.
Value *front_err_hint(Lower *L, Loc loc, const char *hint, const char *fmt, ...) DT_PRINTF(4, 5);
void front_note_calls(Front *f);         // behind an error: through which calls of helpers it was reached
bool front_step(Lower *L, Loc loc);      // counts a statement; false (reported once) where there are too many
bool front_err_fresh(Front *f, Loc loc); // was nothing reported there yet? (marks it)

// ---- types.c ------------------------------------------------------------------------------------------------------
const Elem *elem_number(Front *f, FrontDtype d);
const Elem *elem_pointer(Front *f, const Elem *to);
const char *elem_text(Front *f, const Elem *e); // "fp16", "*fp32": as people of Triton write it
const char *type_text(Front *f, const Type *t); // "fp16[128, 64]"
const char *front_shape_text(Front *f, int rank, const int32_t *shape);
const IrType *front_ir_of(Front *f, const Type *t);
IrDtype front_ir_pointee(const Elem *to); // dtype that memory behind a pointer to `to` holds in the IR
const Type *type_scalar(Front *f, const Elem *e, bool thread);
const Type *type_tile(Front *f, const Elem *e, int rank, const int32_t *shape);
const Type *type_with_elem(Front *f, const Type *t, const Elem *e);
bool type_same_shape(const Type *x, const Type *y);
typedef enum Promote { PROMOTE_OK, PROMOTE_MIXED_SIGN, PROMOTE_BAD } Promote;
// The type that a binary operator computes in. x_number: x is a Python number, which gives way to a tensor of equal or
// higher kind. div: the operator is / or %.
Promote front_promote(Front *f, const Elem *x, bool x_number, const Elem *y, bool y_number, bool div,
                      const Elem **out);
const Elem *front_promote_ints(Front *f, const Elem *x, const Elem *y);
const Elem *elem_of_int(Front *f, AstInt v);   // i32, u32, i64, u64 by value; NULL: too large
const Elem *elem_of_float(Front *f, double v); // f32, or f64 outside its normal range
bool front_int_fits(const Elem *e, AstInt v);

// ---- value.c ------------------------------------------------------------------------------------------------------
Value *val_new(Front *f, ValueKind k);
Value *val_int(Front *f, AstInt i);
Value *val_float(Front *f, double d);
Value *val_bool(Front *f, bool b);
Value *val_str(Front *f, const char *s);
Value *val_dtype(Front *f, const Elem *e);
Value *val_tuple(Front *f, Value *const *items, uint32_t n, bool list);
Value *val_rt(Front *f, IrValue *ir, const Type *t, const Why *why);
Value *val_opaque(Front *f, const char *name);
static inline bool val_is_number(const Value *v) { // a Python number
  return v->kind == VAL_INT || v->kind == VAL_FLOAT || v->kind == VAL_BOOL;
}
static inline bool val_is_const(const Value *v) { return v->kind >= VAL_NONE && v->kind <= VAL_OPAQUE; }
static inline bool val_is_scalar(const Value *v) { return v->kind == VAL_RT && !v->rt.type->rank; }
static inline bool val_is_tile(const Value *v) { return v->kind == VAL_RT && v->rt.type->rank > 0; }
static inline bool val_is_thread(const Value *v) { return v->kind == VAL_RT && v->rt.type->thread; }
bool val_equal(const Value *a, const Value *b);      // compile-time equality, structural
const char *val_kind_text(Front *f, const Value *v); // "a fp16[128] tile", "an int constant", for messages
const char *val_repr(Front *f, const Value *v, bool quote); // Python's str() or repr()
char *val_signature(Front *f, const Value *v);              // distinguishes instantiations
Value *val_of_const(Front *f, ModFile *m, const FrontConst *c);

// A value's run-time parts, in a fixed order, and the same value around other parts.
typedef struct Leaf {
  IrValue *ir;
  const Type *type; // NULL: a token or descriptor
  const Why *why;
} Leaf;
typedef Vec(Leaf) LeafVec;
void val_leaves(Front *f, const Value *v, LeafVec *out);
Value *val_rebuild(Front *f, const Value *like, const Leaf *leaves, uint32_t *at);

Binding *env_find(const Env *e, const Str *name); // this scope only
void env_set(Front *f, Env *e, const Str *name, Value *v, bool is_const);
void env_set_gone(Front *f, Env *e, const Str *name, const char *why);
Env *env_new(Front *f, Env *outer);
Env *env_copy(Front *f, const Env *e);

// ---- emit.c: all take and return values, and report at loc --------------------------------------------------------------
IrBuilder *front_at(Lower *L, Loc loc); // the builder, its ops marked with loc; NULL-safe check by no_code
bool front_no_code(Lower *L, Loc loc);  // reports that code cannot stand at module level
Value *front_to_rt(Lower *L, Value *v, Loc loc); // numbers become scalars; poison for what cannot
Value *front_const_of(Lower *L, const Elem *e, const Value *number,
                      Loc loc);                        // the number as a scalar of type e
Value *front_raise_level(Lower *L, Value *v, Loc loc); // scalar to thread level
Value *front_as_level(Lower *L, Value *v, bool thread, Loc loc);
Value *front_cast_to(Lower *L, Value *v, const Elem *to, bool rtz, Loc loc);
Value *front_bitcast_to(Lower *L, Value *v, const Elem *to, Loc loc);
Value *front_broadcast_to(Lower *L, Value *v, int rank, const int32_t *shape, Loc loc);
bool front_broadcast_pair(Lower *L, Value **x, Value **y, Loc loc);
bool front_broadcast_shape(int rx, const int32_t *sx, int ry, const int32_t *sy, int *rank, int32_t *shape);
Value *front_binary_op(Lower *L, AstOp op, Value *x, Value *y, Loc loc);
Value *front_vector_op(Lower *L, AstOp op, Value *x, Value *y, Loc loc);
Value *front_smem_move(Lower *L, AstOp op, Value *x, Value *y,
                       Loc loc); // a pointer into shared memory, moved
Value *front_unary_op(Lower *L, AstOp op, Value *x, Loc loc);
Value *front_const_binary(Lower *L, AstOp op, const Value *x, const Value *y, Loc loc); // both compile-time
Value *front_minimum_maximum(Lower *L, bool max, Value *x, Value *y, bool nan, Loc loc);
Value *front_select_op(Lower *L, Value *c, Value *x, Value *y, Loc loc);
Value *front_condition(Lower *L, Value *v, Loc loc); // an i1 scalar RT, or a VAL_BOOL
bool front_branches_on(Lower *L, const Value *v, Loc loc);
Value *front_int_scalar(Lower *L, Value *v, FrontDtype d, const char *what,
                        Loc loc); // a scalar integer cast to d
IrValue *front_rt_i32(Lower *L, Value *v, const char *what, Loc loc);
bool front_tiles_allowed(Lower *L, Loc loc,
                         const char *what); // reports a tile operation under thread control
bool front_is_uniform(Lower *L, const Value *v, Loc loc,
                      const char *what); // reports a thread value where a program value must be
Value *front_emit_result(Lower *L, IrValue *ir, const Type *t, const Why *why);
const Why *front_why_of(const Value *a, const Value *b);
const Why *front_why_new(Front *f, Loc loc, const char *text);

// ---- lowering -----------------------------------------------------------------------------------------------------------
Value *front_eval(Lower *L, const Node *n);
Value *front_eval_attr(Lower *L, Value *of, const Str *name, Loc loc);
Value *front_eval_subscript(Lower *L, Value *of, const NodeVec *items, bool tuple, Loc loc);
void front_assign(Lower *L, const Node *target, Value *v, bool is_const);
Value *front_decay(Lower *L, Value *v,
                   Loc loc); // what a plain assignment does: numbers become run-time scalars

// Lowers stmts[from..]; k is what follows them. Returns where the path is then: at k, or further on (lower.h).
Cont *front_lower_stmts(Lower *L, const NodeVec *stmts, uint32_t from, Cont *k);
Value *front_lower_body(Lower *L, const Func *fn,
                        Loc loc); // the body of fn in the present environment; its return value

typedef struct Args { // evaluated arguments of a call
  ValueVec pos;
  Vec(Loc) pos_loc;
  ValueVec kw;
  Vec(const Str *) kw_name;
  Vec(Loc) kw_loc;
  bool poison;
} Args;
Value *front_eval_call(Lower *L, const Node *n);
Value *front_call_value(Lower *L, Value *fn, Args *args, Loc loc);
Value *front_call_inline(Lower *L, const Func *fn, Args *args,
                         Loc loc); // into the present block, constants kept
Value *front_call_inline_values(Lower *L, Value *fn, Value *const *v, uint32_t n, Loc loc);
bool front_bind_params(Lower *L, const Func *fn, Args *args, Env *env, Loc loc);
void front_import_stmt(Lower *L, const Node *stmt); // an import inside a function
Value *front_lower_if_value(Lower *L, Value *cond, const Node *then, const Node *els, Loc loc);

// ---- the library ------------------------------------------------------------------------------------------------------------
typedef struct Call { // a library call, its arguments bound to the row's parameters
  const Builtin *row;
  Value *v[FRONT_MAX_ARGS]; // NULL: left out
  Loc at[FRONT_MAX_ARGS];
  ValueVec rest; // of a row with *rest
  Args *args;    // as written; rows with ** look here
  Loc loc;
} Call;
struct Builtin {
  const char *module, *name, *params, *text;
  Value *(*fn)(Lower *L, Call *c);
  int data;
  uint32_t flags;
};
enum {
  BF_METHOD = 1, // also x.name(...)
  BF_TILE = 2,   // needs all threads: refused under thread control where a run-time value is involved
  BF_CONST = 4,  // may be called at module level
  BF_VALUE = 8,  // an attribute, not a function: its value is what the function returns
};
const Builtin *builtin_find(Front *f, const char *module, const char *name);
const Builtin *builtin_method(Front *f, const char *name);                // x.name(...) of a run-time value
Value *builtin_value(Lower *L, const Builtin *row, Value *self, Loc loc); // of a BF_VALUE row
const Builtin *builtin_rows(int *n);
Value *front_call_builtin(Lower *L, const Builtin *row, Value *self, Args *args, Loc loc);
const char *front_nearest_name(Front *f, const char *name, const char *const *names,
                               uint32_t n); // NULL: none is near

// Arguments that must be known at compile time. They report and return false (or the default) otherwise.
bool arg_int(Lower *L, Call *c, int i, int64_t dflt, int64_t *out);
bool arg_bool(Lower *L, Call *c, int i, bool dflt, bool *out);
const char *arg_str(Lower *L, Call *c, int i, const char *dflt);
const Elem *arg_dtype(Lower *L, Call *c, int i);
bool arg_ints(Lower *L, Call *c, int i, int max, int64_t *out, int *n); // an int or a sequence of ints
bool arg_shape(Lower *L, Call *c, int i, int *rank, int32_t *shape); // powers of two, at most 2^20 elements
bool front_check_shape(Lower *L, int rank, const int64_t *dims, int32_t *shape, Loc loc);
Value *arg_tile(Lower *L, Call *c, int i); // run-time; poison otherwise

#endif
