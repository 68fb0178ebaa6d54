// ir: the tile IR. SSA values, ops in single-block regions (structured control flow only), one table of ops.
//
//   IrModule -> IrFunc -> IrBlock (body) -> IrOp -> operands (IrUse), results (IrValue), regions (IrBlock)
//
// A region is one block: arguments, then ops, the last a terminator. Values are visible in the block that defines
// them and in all regions inside it. Everything of a module lives in its arena and dies with it.
// Stages (DESIGN section 4): the same ops from the front end's output to what a target lowers.
// Not thread-safe: one module belongs to one thread at a time.
#ifndef DITRON_IR_H
#define DITRON_IR_H

#include "base/base.h"

// ---- vocabulary ------------------------------------------------------------------------------------------
typedef enum IrDtype {
#define DTYPE(name, bits, bytes, class) IR_##name,
#include "ir/dtypes.def"
#undef DTYPE
  IR_NDTYPES
} IrDtype;
typedef enum IrDclass { IR_INT, IR_FLOAT } IrDclass;
typedef struct IrDtypeInfo {
  const char *name;
  uint8_t bits, bytes;
  IrDclass cls;
} IrDtypeInfo;
extern const IrDtypeInfo ir_dtypes[IR_NDTYPES];

#define ENUM_BEGIN(T, P) typedef enum T {
#define ENUM(P, name) P##_##name,
#define ENUM_END(T, P) \
  P##_COUNT \
  } \
  T;
#include "ir/enums.def"
#undef ENUM_BEGIN
#undef ENUM
#undef ENUM_END

typedef enum IrOpKind {
#define OP(name, ...) OP_##name,
#include "ir/ops.def"
#undef OP
  OP_COUNT
} IrOpKind;

typedef enum IrAttrName {
#define ATTR(name, kind, enumtype) ATTR_##name,
#include "ir/attrs.def"
#undef ATTR
  ATTR_COUNT
} IrAttrName;

typedef struct IrMmaInfo { // a row of mma.def
  const char *name;
  int m, n, k;
  IrDtype a, b, c;
  uint32_t as, bs, cs; // registers of a lane
} IrMmaInfo;
extern const IrMmaInfo ir_mma[MMA_COUNT];
typedef struct IrWgmmaInfo { // a row of wgmma.def
  const char *name;
  int k;
  IrDtype a, b, c;
  bool any_major;
} IrWgmmaInfo;
extern const IrWgmmaInfo ir_wgmma[WGMMA_COUNT];

typedef enum IrStage { STAGE_tile, STAGE_laid, STAGE_lowered, STAGE_placed } IrStage;

// ---- types: interned in an IrCtx, equal types are one pointer -------------------------------------------------
enum { IR_MAX_RANK = 8 };
#define IR_MAX_ELEMS (1 << 20) // elements of one tile
#define IR_NO_RANK INT64_MIN   // placed symm_at: of a lane that is not active; gives the pointer itself

typedef enum IrTypeKind {
  IR_SCALAR,   // i32, thread i32
  IR_PTR,      // ptr<f32>, thread ptr<f32>, ptr<f32, shared>
  IR_TILE,     // tile<128x64xf32>, tile<128xptr<f32>>
  IR_MEMDESC,  // memdesc<2*128x64xbf16, shared>: 2 stages of 128x64
  IR_MBARRIER, // mbarrier<4>: 4 of them
  IR_DESC,     // desc<128x64xbf16>
  IR_TOKEN     // token: an event that a later op waits for or consumes
} IrTypeKind;
typedef enum IrLevel { LEVEL_program, LEVEL_thread } IrLevel; // scalars and pointers only
typedef enum IrSpace { SPACE_global, SPACE_shared, SPACE_tensor, SPACE_scratch } IrSpace;

#include "ir/layout.h"

typedef struct IrType {
  IrTypeKind kind;
  IrDtype dtype; // element; for a pointer (or tile of pointers) the pointee
  bool ptr_elem; // IR_TILE: elements are pointers to dtype
  IrLevel level; // IR_SCALAR, IR_PTR
  IrSpace space; // IR_PTR, IR_MEMDESC, tile of pointers
  int rank;      // IR_TILE, IR_MEMDESC, IR_DESC
  int32_t shape[IR_MAX_RANK];
  int32_t stages;         // IR_MEMDESC, IR_MBARRIER: 0 = not staged (one)
  const IrLayout *layout; // IR_TILE in the laid-out stage; else NULL
} IrType;

typedef struct IrCtx IrCtx; // types and strings, shared by the modules of one compile
IrCtx *ir_ctx_new(Arena *a);
Strings *ir_strings(IrCtx *c);
const IrType *ir_type_scalar(IrCtx *c, IrDtype d, IrLevel level);
const IrType *ir_type_ptr(IrCtx *c, IrDtype pointee, IrSpace space, IrLevel level);
const IrType *ir_type_tile(IrCtx *c, IrDtype d, int rank, const int32_t *shape);
const IrType *ir_type_ptr_tile(IrCtx *c, IrDtype pointee, IrSpace space, int rank, const int32_t *shape);
const IrType *ir_type_memdesc(IrCtx *c, IrDtype d, IrSpace space, int rank, const int32_t *shape, int stages);
const IrType *ir_type_mbarrier(IrCtx *c, int stages);
const IrType *ir_type_desc(IrCtx *c, IrDtype d, int rank, const int32_t *shape);
const IrType *ir_type_token(IrCtx *c);
// Derived types. `like` may be scalar, pointer or tile; its shape, level and layout are kept.
const IrType *ir_type_with_dtype(IrCtx *c, const IrType *like, IrDtype d); // int/float element, never pointer
const IrType *ir_type_with_shape(IrCtx *c, const IrType *like, int rank,
                                 const int32_t *shape);                             // rank 0: a scalar
const IrType *ir_type_with_layout(IrCtx *c, const IrType *tile, const IrLayout *l); // NULL: without; copied
const IrType *ir_type_with_level(IrCtx *c, const IrType *like, IrLevel level);
const IrType *ir_type_elem(IrCtx *c, const IrType *tile); // the program scalar or pointer that one element is
bool ir_type_is_int(const IrType *t);                     // element is an integer, not a pointer
bool ir_type_is_float(const IrType *t);
bool ir_type_is_ptr(const IrType *t); // pointer or tile of pointers
bool ir_type_is_thread(const IrType *t);
int64_t
ir_type_elems(const IrType *t);     // elements of a tile, memdesc (one stage) or desc block; 1 for scalars
int ir_type_bytes(const IrType *t); // of one element in memory (pointers: 8)

// ---- values, ops, blocks ------------------------------------------------------------------------------------------
typedef struct IrValue IrValue;
typedef struct IrUse IrUse;
typedef struct IrOp IrOp;
typedef struct IrBlock IrBlock;
typedef struct IrFunc IrFunc;
typedef struct IrModule IrModule;

struct IrValue {
  const IrType *type;
  IrOp *def;       // NULL for a block argument
  IrBlock *block;  // of the argument, or def->parent
  uint32_t index;  // which result or argument
  uint32_t id;     // unique in the function; dense after ir_renumber
  const Str *name; // a name for people, may be NULL
  IrUse *uses;
};
struct IrUse {    // one operand
  IrValue *value; // NULL: optional operand left out
  IrOp *user;
  IrUse *next, **pprev; // list of value->uses
};
typedef struct IrAttr {
  IrAttrName name;
  union {
    int64_t i;    // INT, BOOL, ENUM, BITS, DTYPE
    const Str *s; // STR, SYM
    struct {
      const int64_t *v;
      uint32_t n;
    } ints;
  };
} IrAttr;
struct IrOp {
  IrOpKind kind;
  Loc loc;
  IrBlock *parent;
  IrOp *prev, *next;
  uint32_t noperands, nresults, nregions, nattrs;
  IrUse *operands;
  IrValue *results; // array
  IrBlock **regions;
  IrAttr *attrs;
  void *aux; // for the pass at work; NULL otherwise
};
struct IrBlock {
  IrFunc *func;
  IrOp *owner; // NULL for a function's body
  Vec(IrValue *) args;
  IrOp *first, *last;
};
typedef struct IrParam { // facts about a kernel's parameter
  const Str *name;
  int64_t divisible;           // value (or address in bytes) is a multiple of this; 1 = unknown
  bool noalias, writes, reads; // for pointers; reads/writes filled by a pass
  bool is_unsigned;            // how people and hosts see it
} IrParam;
struct IrFunc {
  IrModule *module;
  const Str *name;
  bool is_kernel;
  IrBlock *body;       // arguments = parameters
  Vec(IrParam) params; // as many as body->args
  Vec(const IrType *) results;
  IrWaitClass wait_class; // set by a pass or by the text
  Loc loc;
  uint32_t next_id;
  IrFunc *next;
};
struct IrModule {
  Arena *arena;
  IrCtx *ctx;
  Diags *diags; // whose sources the locations name; may be NULL for text without
  IrStage stage;
  int num_warps, num_stages, lanes; // lanes of a warp: 32 or 64
  int max_registers;                // of a thread; 0: no limit
  int extra_warps;                  // of a block, behind num_warps: those of partitions that compilation made
  IrFunc *funcs, *last_func;
};

IrModule *ir_module_new(Arena *a, IrCtx *ctx, Diags *diags);
IrFunc *ir_func_new(IrModule *m, const Str *name, bool is_kernel);   // empty body; appended to the module
IrValue *ir_func_param(IrFunc *f, const IrType *t, const Str *name); // adds a parameter
IrFunc *ir_func_find(const IrModule *m, const Str *name);
void ir_func_remove(IrModule *m, IrFunc *f);
IrModule *ir_module_clone(const IrModule *m, Arena *a); // deep copy into another arena, same IrCtx

// ---- facts of ops (from ops.def, parsed once at compile time of the tables or lazily in const data) ---------------------
typedef enum IrExecutor { EXEC_PROGRAM, EXEC_LEVEL, EXEC_THREAD, EXEC_WARP, EXEC_BLOCK } IrExecutor;
enum { // traits
  TRAIT_PURE = 1,
  TRAIT_SAME = 2,
  TRAIT_ELEMENTWISE = 4,
  TRAIT_COMMUTATIVE = 8,
  TRAIT_TERMINATOR = 16,
  TRAIT_CONVERGENT = 32,
  TRAIT_UNIQUE = 64
};
typedef struct IrOpInfo {
  const char *name, *operands, *results, *regions, *attrs, *stages, *effects, *text;
  IrExecutor executor;
  uint32_t traits;
} IrOpInfo;
extern const IrOpInfo ir_ops[OP_COUNT];
int ir_op_by_name(const char *name, size_t len); // -1: none
bool ir_op_legal_in(IrOpKind k, IrStage s);
// Who executes op: EXEC_LEVEL resolved to EXEC_PROGRAM or EXEC_THREAD by its values (region ops: by their condition or
// bounds; without values: by the control around it), to EXEC_WARP or EXEC_BLOCK by the attribute group.
IrExecutor ir_op_executor(const IrOp *op);

enum { // resources
  RES_GLOBAL = 1,
  RES_SYMM = 2,
  RES_MEMDESC = 4,
  RES_SIGNAL = 8,
  RES_WORLD = 16
};
typedef struct IrEffects {
  uint8_t reads, writes;             // resource masks; a read-modify-write sets both
  uint8_t async_reads, async_writes; // the part that goes through the async proxy
  bool barrier;                      // orders everything of its executor
  IrOrder order;                     // how it orders others (attributes resolved); ORDER_weak: not at all
  IrScope scope;
} IrEffects;
typedef struct IrWgmmaShape { // what a wgmma's attributes say
  const IrWgmmaInfo *info;
  int m, n, k; // of the block's product
  int groups_m,
      groups_n; // of four warps: group g has rows 64 (g % groups_m + groups_m i), columns width (g / groups_m) ..
  int blocks, width;       // of 64 rows, i < blocks; columns of a group
  int steps;               // of info->k
  uint32_t a_regs, c_regs; // i32 of a (0: in memory), by block, step, fragment; results
} IrWgmmaShape;
bool ir_wgmma_shape(const IrOp *op, IrWgmmaShape *out); // false: there is no such product
IrEffects ir_op_effects(const IrOp *op);                // this op alone
IrEffects ir_op_effects_deep(const IrOp *op);           // with everything in its regions
// May a and b, adjacent in one block and without data dependence, change places? Only what the rows let.
bool ir_may_swap(const IrOp *a, const IrOp *b);
bool ir_op_is_pure(
    const IrOp *op); // no effects, its regions included, and TRAIT_PURE (or if/for/while/switch of pure ops)

const IrAttr *ir_attr(const IrOp *op, IrAttrName n); // NULL where absent
int64_t ir_attr_i(const IrOp *op, IrAttrName n);     // 0 where absent
const char *ir_attr_s(const IrOp *op, IrAttrName n); // NULL where absent
void ir_set_attr_i(IrOp *op, IrAttrName n, int64_t v);
void ir_set_attr_s(IrOp *op, IrAttrName n, const Str *s);
void ir_set_attr_ints(IrOp *op, IrAttrName n, const int64_t *v, uint32_t count);
void ir_del_attr(IrOp *op, IrAttrName n);
const char *ir_enum_text(IrAttrName n,
                         int64_t v); // "eq" for (ATTR_cmp, 0); NULL if not an enum or out of range

static inline IrValue *ir_operand(const IrOp *op, uint32_t i) {
  return i < op->noperands ? op->operands[i].value : 0;
}
static inline IrValue *ir_result(const IrOp *op, uint32_t i) { return &op->results[i]; }
static inline IrOp *ir_terminator(const IrBlock *b) { return b->last; }
bool ir_const_int(const IrValue *v,
                  int64_t *out); // v is const (or splat of const) of an integer type; sign-extended
bool ir_const_float(const IrValue *v, double *out);
uint64_t ir_float_bits(IrDtype d, double x); // encode, round to nearest even
double ir_bits_float(IrDtype d, uint64_t bits);

// ---- building --------------------------------------------------------------------------------------------------------------
// New ops go before `before`, or at the end of `block` when before is NULL. loc is copied to each op.
typedef struct IrBuilder {
  IrModule *m;
  IrBlock *block;
  IrOp *before;
  Loc loc;
} IrBuilder;
IrBuilder ir_builder_at_end(IrBlock *b);
IrBuilder ir_builder_before(IrOp *op);
IrBuilder ir_builder_after(IrOp *op);
// The general form. Operands may be NULL where optional. Regions are created empty (no args, no ops).
IrOp *ir_build(IrBuilder *b, IrOpKind k, uint32_t nops, IrValue *const *ops, uint32_t nres,
               const IrType *const *res, uint32_t nregions);
IrValue *ir_block_arg(IrBlock *b, const IrType *t, const Str *name); // appends an argument
IrBlock *ir_op_add_region(IrOp *op);
void ir_op_add_operand(IrOp *op, IrValue *v);
IrValue *ir_op_add_result(
    IrOp *op, const IrType *t); // invalidates pointers to results of op only if uses exist: call before use
// Short forms; types are derived. They fold nothing.
IrValue *ir_const_i(IrBuilder *b, const IrType *t, int64_t v);
IrValue *ir_const_f(IrBuilder *b, const IrType *t, double v);
IrValue *ir_unary(IrBuilder *b, IrOpKind k, IrValue *a);              // same type
IrValue *ir_binary(IrBuilder *b, IrOpKind k, IrValue *x, IrValue *y); // same type
IrValue *ir_cmp(IrBuilder *b, IrCmp p, IrValue *x, IrValue *y);
IrValue *ir_fcmp(IrBuilder *b, IrFcmp p, IrValue *x, IrValue *y);
IrValue *ir_select(IrBuilder *b, IrValue *c, IrValue *x, IrValue *y);
IrValue *ir_cast(IrBuilder *b, IrOpKind k, IrValue *a, const IrType *to);
IrValue *ir_math(IrBuilder *b, IrMath fn, IrValue *a, IrValue *b2);
IrValue *ir_ptr_add(IrBuilder *b, IrValue *p, IrValue *n);
IrValue *ir_splat(IrBuilder *b, IrValue *a, int rank, const int32_t *shape);
IrValue *ir_expand_dims(IrBuilder *b, IrValue *a, int axis);
IrValue *ir_broadcast(IrBuilder *b, IrValue *a, int rank, const int32_t *shape);
IrValue *ir_to_thread(IrBuilder *b, IrValue *a); // a itself when already thread level
IrValue *ir_load(IrBuilder *b, IrValue *p, IrValue *mask, IrValue *other);
IrOp *ir_store(IrBuilder *b, IrValue *p, IrValue *v, IrValue *mask);
IrOp *ir_yield(IrBuilder *b, uint32_t n, IrValue *const *vs);
IrOp *ir_return(IrBuilder *b, uint32_t n, IrValue *const *vs);

// ---- changing --------------------------------------------------------------------------------------------------------------
void ir_set_operand(IrOp *op, uint32_t i, IrValue *v);
void ir_replace_uses(IrValue *old, IrValue *with);
void ir_erase(IrOp *op);                     // results must be unused; erases its regions
void ir_move_before(IrOp *op, IrOp *before); // within or across blocks
void ir_move_to_end(IrOp *op, IrBlock *b);
IrOp *ir_clone_op(IrBuilder *b, const IrOp *op,
                  Map *values);                     // deep; maps old IrValue* to new; unmapped operands stay
bool ir_encloses(const IrBlock *b, const IrOp *op); // op is in b or in a region below it
void ir_renumber(IrFunc *f);                        // dense value ids in order of appearance
// Visits every op below a block, outer before inner; fn may erase the op it is given. Stops when fn returns false.
bool ir_walk(IrBlock *b, bool (*fn)(IrOp *op, void *user), void *user);

// ---- verifying ---------------------------------------------------------------------------------------------------------------
// Checks structure, dominance, types, levels, executors and legality in m->stage. Each violation is a diagnostic naming the op.
// Thread-level control holds no program, warp-crossing or block op; partitions capture no tiles; async results are not
// read before the wait on their token. Returns ST_OK or ST_INTERNAL.
Status ir_verify(const IrModule *m, Diags *d);

// ---- text: round-trips (parse(print(m)) prints the same) -------------------------------------------------------------------------
//   module stage=tile warps=4 stages=2 lanes=32
//   kernel @add(%x: ptr<f32> {divisible=16}, %n: i32) {
//     %0 = program_id {axis=0} : i32
//     %1 = arange {start=0, end=1024} : tile<1024xi32>
//     %5 = load %p, %m, _ : tile<1024xf32>              // operands `_` where absent; the result types after `:`
//     %s = reduce %5 {axis=0} : f32 { (%a: f32, %b: f32) %c = fadd %a, %b : f32  yield %c }
//     for %lo, %hi, %st, %init : f32 { (%i: i32, %acc: f32) ... yield %acc2 }
//     return
//   }
char *ir_print(const IrModule *m, Arena *a);
char *ir_print_with_locs(const IrModule *m, Arena *a); // loc("file":line:col) behind each op that has one
char *ir_print_op(const IrOp *op, Arena *a);           // one line, for messages
char *ir_type_text(const IrType *t, Arena *a);
// Reads a module. Errors carry line and column of the text. Never crashes on any input; depth and sizes are bounded.
Status ir_parse(Arena *a, IrCtx *ctx, Diags *d, const char *name, const char *text, size_t len,
                IrModule **out);

#include "ir/interp.h"
#include "ir/launch.h"

#endif
