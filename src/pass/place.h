// place: what the files of the CPU placement share. Inside the pass only.
//
//   place_expand.c   tile stage to simpler tile stage: descriptors to pointers and masks, carried pointers to scalars
//   place_info.c     facts of tile values: axes they vary along, steps, cost; which accesses may touch the same memory
//   place_plan.c     what is computed where: steps of each block, groups of roots that share a loop nest, buffers
//   place_check.c    later choices: values that must live in memory, loads that may not wait, updates not done in place
//   place_eval.c     one element (or vector) of a tile value inside a nest
//   place_nest.c     loops of a group and what its roots do with the elements
//   place_width.c    how many lanes the vectors of a nest have
//   place_special.c  ops on tiles with loops of their own: scans, histograms, atomics, ...
//   place_emit.c     program-level code: scalars, control, steps in order
//   place_thread.c   thread-level code, run by run; place_lanes*.c: its ops on the masked lanes of a warp
//   place_buf.c      buffers and their places in the arena
//
// A tile value is *virtual* (computed where its users need it) or has a buffer. A *root* is what makes elements be
// computed: a store, a reduction, or a buffer to be filled. Roots of one shape that may run together form a *group* and
// share one loop nest.
#ifndef DITRON_PLACE_H
#define DITRON_PLACE_H

#include "pass/pass_impl.h"

enum {
  PLACE_MAX_LANES = 64,
  PLACE_MAX_EVALS = 40000, // elements' expressions in one nest: beyond, the kernel is refused
  PLACE_MAX_DEPTH = 96,    // of a virtual expression; deeper ones get a buffer
  PLACE_LONGEST = 20000,   // operations from the memory that a tile comes from
  PLACE_COSTLY = 5,        // worth a round trip through a buffer, in units of one simple operation
};
#define PLACE_STEP_ANY INT32_MIN // not a constant step

typedef struct Place Place;
typedef struct PlaceGroup PlaceGroup;
typedef struct PlaceStep PlaceStep;

typedef struct PlaceBuf { // one array in the instance's arena
  int id;
  const IrType *elem; // as computed; pointers are kept as i64
  const IrType *type; // memdesc
  bool flat;          // one axis whatever the tile's; else the tile's own shape (products want that)
  int rank;
  int32_t shape[IR_MAX_RANK]; // of the tile
  int64_t bytes, offset;
  IrValue *mem;    // mem_alloc, made on first use
  IrValue *holds;  // loop-carried value that lives here when an iteration starts, or NULL
  int first, last; // emission clock of first and last use; first < 0: unused
  const char *why;
  Loc loc;
} PlaceBuf;

typedef enum PlaceRootKind { ROOT_STORE, ROOT_REDUCE, ROOT_FILL } PlaceRootKind;
typedef struct PlaceRoot {
  PlaceRootKind kind;
  IrOp *op;                    // store, mem_store, reduce; NULL for a fill
  IrValue *value;              // ROOT_FILL: what is computed
  PlaceBuf *buf;               // ROOT_FILL: where to
  PlaceBuf *src;               // ROOT_FILL: a copy of this buffer instead of value's expression
  IrValue *over;               // ROOT_FILL: carried value that buf holds until then
  bool defines;                // ROOT_FILL: later users of value read the buffer
  struct PlaceRoot *next_fill; // of the same value
  PlaceGroup *group;
} PlaceRoot;

struct PlaceGroup {
  int rank;
  int32_t shape[IR_MAX_RANK];
  Vec(PlaceRoot *) roots;
  IrOp *special; // a lone op that reads tile elements in its own way (scan, atomics, ...), or NULL
  PlaceStep *step;
  uint32_t seq; // order of opening
  bool writes;  // stores to memory that others may see
  uint32_t mark;
};

typedef struct PlacePlan { // of one block
  IrBlock *block;
  PlaceStep *first, *last;
  PlaceStep *owner; // step of the op whose region this is; NULL for the function's body
  struct PlacePlan *up;
} PlacePlan;

struct PlaceStep {
  IrOp *op;      // the op to emit, or (thread) the first of a run; NULL for a group
  IrOp *last_op; // thread level: last of the run; else NULL
  PlaceGroup *group;
  PlacePlan *plan;
  PlaceStep *prev, *next;
  double pos, end;   // order in the function; end: after everything inside
  IrEffects effects; // of op and everything inside it
};

typedef struct PlaceInfo {   // of a value of the old function, by id
  uint32_t deps;             // axes along which elements may differ
  int32_t step[IR_MAX_RANK]; // integers and pointers: constant difference along each axis, or PLACE_STEP_ANY
  float cost;                // of one element, computed afresh
  int depth;
  PlaceBuf *buf; // planned home; read from there once `ready`
  bool ready;
  bool is_virtual;          // evaluated on demand
  uint32_t pend;            // seq of the open group that it waits for, 0: none
  PlaceStep *home;          // loads: last step before the op in its block (NULL: the block's start)
  PlacePlan *plan;          // of its block
  PlaceGroup *made;         // group that fills buf
  PlaceGroup *users[4];     // groups that evaluate it
  int nusers;               // 5: more than listed
  PlaceRoot *fills;         // of this value
  uint32_t mark, mark_same; // of walks over groups: reached at another index, at the nest's own
} PlaceInfo;

typedef struct PlaceElem PlaceElem;

struct Place {
  Pass *pass;
  IrModule *m;
  IrCtx *ctx;
  Arena *arena; // scratch of the pass
  Escape fail;
  bool (*keep)(void *user,
               IrOp *op); // NULL, or: accesses through descriptors that place_expand leaves as they are
  void *keep_user;
  int vector_bits;
  int64_t arena_limit;
  IrFunc *old, *func;
  PlaceInfo *info; // by id of old's values
  Map plans;       // IrBlock* -> PlacePlan*
  Map op_group;    // IrOp* (reduce, store, special) -> PlaceGroup*
  Map order;       // IrOp* -> its number in the old function
  uint32_t seq, mark;
  Vec(PlaceBuf *) bufs;
  Vec(PlaceRoot *) fills;
  // emission
  IrBuilder b;
  IrOp *anchor; // constants and mem_allocs go before it
  Map values;   // IrValue* of old -> IrValue* of func (scalars)
  Map consts;
  Map dots; // IrOp* (dot) -> PlaceBuf*[3]: a, b, result
  Map mems; // tile-level memdesc value -> PlaceBuf*
  int clock;
  int evals;
  Map spills; // thread-level IrValue* that outlives its run -> PlaceBuf*, [warps * lanes]
};

static inline bool place_is_tile(const IrValue *v) { return v && v->type->kind == IR_TILE; }
static inline PlaceInfo *place_info(Place *p, const IrValue *v) { return &p->info[v->id]; }
void place_fail(Place *p, Loc loc, const char *fmt, ...) DT_PRINTF(3, 4) DT_NORETURN;

// ---- place_expand.c
void place_expand(Place *p, IrFunc *f);

// ---- place_info.c
void place_info_run(Place *p);
bool place_op_is_virtual(const IrOp *op);                  // its tile results may be evaluated on demand
bool place_uniform_tile(const Place *p, const IrValue *v); // one value in all elements
// Ops whose operands' elements at the result's own index are all they need.
bool place_op_is_elementwise(const IrOp *op);
// May the access of tile `load` see what `store` writes? same_nest: both run in one nest, element by element, the load first.
bool place_conflict(Place *p, const IrOp *load, const IrOp *store, bool same_nest);

// ---- place_plan.c
void place_plan_run(Place *p);
PlaceBuf *place_buf_new(Place *p, const IrType *tile, bool flat, Loc loc, const char *why);
PlaceRoot *place_add_fill(Place *p, PlaceGroup *g, IrValue *v, PlaceBuf *b, bool defines);
PlaceGroup *place_group_new(Place *p, int rank, const int32_t *shape);
PlaceStep *place_step_insert(Place *p, PlacePlan *plan, PlaceStep *after,
                             PlaceGroup *g); // after NULL: at the start
int place_order(const Place *p, const IrOp *op);

// ---- place_check.c
void place_check_run(Place *p);
// Visits what a group evaluates: fn(value, identity) for each value reached, placed ones included. identity: only at the
// nest's own index.
void place_group_values(Place *p, PlaceGroup *g, void (*fn)(Place *p, IrValue *v, bool identity, void *user),
                        void *user);

// ---- place_buf.c
IrValue *place_buf_mem(Place *p, PlaceBuf *b); // its memdesc; counts as a use now
void place_buf_touch(Place *p, PlaceBuf *b);
void place_bufs_loop(Place *p, int start); // a loop that began at clock `start` ends now
void place_bufs_pack(Place *p);            // offsets; fails over the limit

// ---- place_eval.c: elements
typedef enum PlaceElemKind { ELEM_UNI, ELEM_AFF, ELEM_VEC } PlaceElemKind;
struct PlaceElem {
  PlaceElemKind kind;
  IrValue *v;   // ELEM_UNI, ELEM_AFF: a scalar (of lane 0); ELEM_VEC: a vector of the nest's lanes
  int64_t step; // ELEM_AFF: from lane to lane (pointers: elements of the pointee)
};
typedef struct PlaceNest {
  Place *p;
  int rank;
  int32_t shape[IR_MAX_RANK];
  int va;                        // vectorised axis, -1: none
  int lanes;                     // of a vector; 1: scalars only
  int depth;                     // innermost level; level 0 is outside all loops
  IrBuilder at[IR_MAX_RANK + 2]; // where code of each level goes
  PlaceElem idx[IR_MAX_RANK];    // the current element
  IrValue
      *turning[32]; // indices that are one in a vector, but not along a row of several axes that became one
  uint32_t nturning;
  IrBuilder out; // where writes go
  IrOp *outer;   // the outermost loop, NULL: none
  bool assume;   // all terms hold here
  Map terms;     // IrValue* (mask parts, remainders) that hold in the main loop
  Map memo, cse, divs;
} PlaceNest;
PlaceElem place_eval(PlaceNest *n, IrValue *v, const PlaceElem *idx);
PlaceElem place_eval_mask(PlaceNest *n, IrValue *m, const PlaceElem *idx,
                          bool assume); // UNI const true folded to v = NULL
// Index of operand k's element from the index of op's result (or of the op's own nest).
void place_map_index(PlaceNest *n, const IrOp *op, uint32_t k, const PlaceElem *idx, PlaceElem *out);
IrValue *place_vec(PlaceNest *n, PlaceElem e); // as a vector (a scalar where lanes is 1)
IrValue *place_pure(PlaceNest *n, IrOpKind k, uint32_t nops, IrValue *const *ops, const IrType *t,
                    const IrOp *like);
IrValue *place_bin(PlaceNest *n, IrOpKind k, IrValue *x, IrValue *y); // folds constants
IrValue *place_fcmp(PlaceNest *n, IrFcmp c, IrValue *x, IrValue *y);
IrValue *place_cmp(PlaceNest *n, IrCmp c, IrValue *x, IrValue *y);
IrValue *place_sel(PlaceNest *n, IrValue *c, IrValue *x, IrValue *y);
IrValue *place_to_i64(PlaceNest *n, IrValue *x);
PlaceElem place_elementwise(PlaceNest *n, const IrOp *op, const PlaceElem *in,
                            uint32_t count); // op on elements
PlaceElem place_uni(IrValue *v);
bool place_turns(const PlaceNest *n, PlaceElem e);                                // an index among n->turning
PlaceElem place_const(PlaceNest *n, int64_t c);                                   // i32
PlaceElem place_read(PlaceNest *n, PlaceBuf *b, const PlaceElem *idx, int level); // not above level
void place_write(PlaceNest *n, PlaceBuf *b, const PlaceElem *idx, PlaceElem e);
void place_region(PlaceNest *n, const IrBlock *r, const PlaceElem *args, uint32_t nargs, PlaceElem *out);
bool place_region_is_plain(const IrBlock *r); // elementwise ops only
bool place_map_is_shape(const IrOp *op);      // only moves elements
const IrType *place_vec_type(PlaceNest *n, const IrType *elem);
IrValue *place_pconst(Place *p, const IrType *scalar, uint64_t bits); // at the function's start
IrValue *place_i32(Place *p, int64_t c);
IrValue *place_i1(Place *p, bool c);
int place_level(const PlaceNest *n, const IrValue *v);
bool place_is_const(const IrValue *v, int64_t *c); // integer constant

// ---- place_nest.c
void place_emit_group(Place *p, PlaceGroup *g);
void place_nest_scalar(Place *p, PlaceNest *n); // a nest of no loops at the current place, scalars only
// Scalar loops over all elements of a shape; end them with place_loops_close.
void place_loops_open(Place *p, PlaceNest *n, int rank, const int32_t *shape, int lanes);
void place_loops_close(PlaceNest *n);
bool place_identity(const IrBlock *region, const IrType *elem,
                    uint64_t *bits); // neutral value of a one-op combination

// ---- place_width.c
int place_last_wide(int rank, const int32_t *shape); // the last axis of more than one element, or -1
int place_lanes(Place *p, const PlaceGroup *g);      // of the vectors of its nest; 1: scalars

// ---- place_emit.c
void place_emit_run(Place *p);
IrValue *place_value(Place *p, IrValue *old);        // scalar of old in func
void place_emit_steps(Place *p, IrBlock *old_block); // all but the terminator
PlaceBuf *place_mem(Place *p, IrValue *memdesc);
void place_copy_attrs(IrOp *to, const IrOp *from);

// ---- place_special.c
void place_emit_special(Place *p, IrOp *op);
void place_print_where(Place *p, IrOp *made, const IrOp *op, int where, uint32_t at);

// ---- place_thread.c
bool place_is_thread_op(const IrOp *op); // belongs in a run
void place_emit_threads(Place *p, PlaceStep *s);
// Thread-level values that program-level control carries: a buffer for each of to[], filled with from[].
PlaceBuf *place_spill(Place *p, const IrValue *v);
void place_hand_over(Place *p, IrValue *const *from, IrValue *const *to, uint32_t n, Loc loc);
void place_from_thread(Place *p, IrOp *op);

#endif
