// low: what the files of the lowering from the laid-out to the lowered stage share. Inside the pass only.
//
//   low.c        the walk, control flow, elementwise and shape ops: tiles become registers
//   low_mem.c    loads, stores, atomics of tiles; scalar accesses that happen once a program; moves through shared memory
//   low_lanes.c  moves within warps, by shuffles
//   low_async.c  copies of blocks through tensor descriptors
//   low_comb.c   reductions and scans: registers, then shuffles, then warps through shared memory
//   low_dot.c    products: the matrix unit, or multiply-adds on shared memory
#ifndef DITRON_LOW_H
#define DITRON_LOW_H

#include "pass/pass_impl.h"

typedef struct LowAccess { // to global memory
  const IrOp *op;
  uint64_t roots;
  bool writes;
} LowAccess;

typedef struct Low {
  Pass *pass;
  IrModule *m;
  IrCtx *ctx;
  Arena *arena;
  IrFunc *f;
  PassAxes *axes; // of the laid-out function
  PassRoots *roots;
  uint32_t nvalues; // values below are known to axes and roots
  Escape fail;
  Map regs;                   // tile IrValue* -> IrValue*[layout_regs]
  Map bases;                  // IrLayout* of an interned type -> IrValue*: the thread's part of the index
  Vec(LowAccess) accesses;    // of the laid-out function
  Vec(IrOp *) dead;           // replaced ops, in order
  IrValue *tid, *lane, *warp; // thread i32, at the function's start
  IrOp *entry;                // things computed once go before it
  bool alike;    // threads that hold the same element hold the same bits: nothing else could come in
  bool strips;   // the block or partition stores tiles in strips
  Map strip_mem; // IrType* of a buffer that strips pass through -> IrValue*
  IrBuilder b;   // where code goes now
} Low;

void low_fail(Low *l, Loc loc, const char *fmt, ...) DT_PRINTF(3, 4) DT_NORETURN;

// ---- registers
IrValue **low_regs(Low *l, IrValue *tile); // fails where there are none
void low_set_regs(Low *l, IrValue *tile, IrValue **regs);
IrValue **low_new_regs(Low *l, const IrLayout *layout);
const IrType *low_elem(Low *l, const IrType *t); // thread scalar that one element is
static inline const IrLayout *low_layout(const IrValue *v) { return v->type->layout; }
// Registers that hold copies of lower ones: i such that (i & this) == 0 are the others.
uint32_t low_copies(const IrLayout *layout);
// Fills in the copies.
void low_fill_copies(const IrLayout *layout, IrValue **regs);

// ---- indices, all thread i32
IrValue *low_base(Low *l, const IrType *tile);                // the thread's part of the flat index
IrValue *low_index(Low *l, const IrType *tile, uint32_t reg); // the flat index of a register
IrValue *low_coord(Low *l, const IrType *tile, IrValue *index, int axis); // along an axis
IrValue *low_holder(Low *l,
                    const IrLayout *layout); // i1: of places that hold the same, the one that acts; NULL: all

// ---- short forms at l->b
IrValue *low_i32(Low *l, int64_t v);
IrValue *low_bin(Low *l, IrOpKind k, IrValue *x, IrValue *y);
IrValue *low_and(Low *l, IrValue *x, IrValue *y); // of i1; either may be NULL: true
IrValue *low_thread(Low *l, IrValue *v);          // a program scalar at thread level
// A program scalar of type t from what is computed from tiles alike in all threads.
IrValue *low_from_all(Low *l, IrValue *v, const IrType *t);
IrOp *low_if(Low *l, IrValue *cond, IrBuilder *inside); // thread-level if without results; ends both arms
void low_barrier(Low *l); // where threads may need one; `sync` drops it where they do not
// Combines y onto x (n values each) by a combine region: out[i].
void low_combine(Low *l, const IrBlock *region, uint32_t n, IrValue *const *x, IrValue *const *y,
                 IrValue **out);

// ---- shared memory
typedef struct LowBuf {
  IrValue *ptr; // thread ptr<T, shared>
  const IrType *elem;
  bool as_int;            // pointers are kept as i64, i1 as i8
  const IrLayout *layout; // offsets to indices; NULL: row-major
} LowBuf;
// Scratch for n elements, for this use alone; `alloc` places it.
LowBuf low_scratch(Low *l, const IrType *elem, int64_t n);
void low_put(Low *l, const LowBuf *b, IrValue *index, IrValue *v, IrValue *mask);
IrValue *low_get(Low *l, const LowBuf *b, IrValue *index);
// All of a tile's elements to a buffer at their flat index, and from there into the registers of another layout. No barriers.
void low_spill(Low *l, const LowBuf *b, const IrType *tile, IrValue **regs);
void low_fetch(Low *l, const LowBuf *b, const IrType *tile, IrValue **regs);
// May `ldmatrix` fetch these registers of 16-bit elements from row-major memory? transposed: by columns.
bool low_is_matrix(const IrType *tile, bool *transposed);
void low_swizzle(Low *l, LowBuf *b, const IrType *tile); // for ldmatrix without bank conflicts
void low_fetch_matrix(Low *l, const LowBuf *b, const IrType *tile, bool transposed, IrValue **regs);
// The registers of `to` from those of `from`: renumbered, by shuffles, or through shared memory.
void low_move(Low *l, const IrType *from, IrValue **regs, const IrType *to, IrValue **out);
// By shuffles within warps; false, and nothing done: not possible, or dearer than shared memory.
bool low_move_lanes(Low *l, const IrType *from, IrValue **regs, const IrType *to, IrValue **out);
// Does each warp that writes a tile to shared memory read back nothing but its own?
bool low_within_warps(const IrLayout *from, const IrLayout *to);
// Of all of a thread's accesses to such elements in a buffer (NULL: row-major), in halves of a cycle, conflicts of banks included.
uint32_t low_access_cost(const IrLayout *buffer, const IrLayout *tile, uint32_t bytes);
// Several tiles at once, between two barriers; each gets its registers.
void low_move_together(Low *l, IrOp *const *relayouts, uint32_t n);
bool low_is_renumbering(Low *l, const IrOp *relayout); // no thread needs what another holds

// ---- families of ops
void low_note_accesses(Low *l);
bool low_memory(Low *l, IrOp *op); // false: not theirs
bool low_async(Low *l, IrOp *op);
void low_reduce(Low *l, IrOp *op);
void low_scan(Low *l, IrOp *op);
void low_dot(Low *l, IrOp *op);
void low_dot_async(Low *l, IrOp *op);
// `count` registers from register `first` on, as i32: small elements share a word, the first lowest.
void low_words(Low *l, IrValue *const *regs, uint32_t first, uint32_t count, IrDtype d, IrValue **out);
void low_dot_wait(Low *l, IrOp *op);
void low_strips(Low *l, IrOp *op); // desc_store, desc_rmw of a product's tile
// The shared memory of a memdesc, a stage of a ring too; for elements of `elem`.
LowBuf low_program_buffer(Low *l, IrValue *mem, const IrType *elem);

#endif
