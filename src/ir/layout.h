// layout: linear layouts, where the elements of a tile are held.
//
// A tile's shape is of powers of two, so an element's flat row-major index is a row of bits, and so is the place that
// holds it: (register, lane, warp). A linear layout is the linear map over GF(2) from place to index, given by the index of each
// single bit of the place; index(place) is the exclusive or of the indices of its set bits.
//
//     tile<16x16>, 2 x 2 elements a thread ...    reg (1 16)  lane (2 4 8 32 64)  warp (128)
//     register bit 0: next column; bit 1: next row; lanes run along columns, then rows
//
// A bit whose index depends on the others' (0 at its simplest) is *free*: places that differ in it hold the same element.
// Flat indices make reshape and expand_dims the identity on layouts; trans permutes fields of bits; slicing drops a field.
// Source: Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2", arXiv:2505.23819.
#ifndef DITRON_IR_LAYOUT_H
#define DITRON_IR_LAYOUT_H

#include "base/base.h"

typedef enum IrPlace { PLACE_REG, PLACE_LANE, PLACE_WARP, PLACE_DIMS } IrPlace;
enum { LAYOUT_MAX_BITS = 32 };

typedef struct IrLayout {
  uint8_t n[PLACE_DIMS];        // bits of each part
  uint32_t at[LAYOUT_MAX_BITS]; // index of each bit: the register's first, then the lane's, then the warp's
} IrLayout;

static inline uint32_t layout_bits(const IrLayout *l) { return (uint32_t)l->n[0] + l->n[1] + l->n[2]; }
static inline uint32_t layout_first(const IrLayout *l, IrPlace d) {
  return d == PLACE_REG ? 0 : d == PLACE_LANE ? l->n[0] : (uint32_t)l->n[0] + l->n[1];
}
static inline uint32_t layout_regs(const IrLayout *l) { return 1u << l->n[PLACE_REG]; }
bool layout_same(const IrLayout *a, const IrLayout *b);

// A place as one word, the register lowest: layout_place(l, reg, lane, warp).
static inline uint32_t layout_place(const IrLayout *l, uint32_t reg, uint32_t lane, uint32_t warp) {
  return reg | lane << l->n[0] | warp << (l->n[0] + l->n[1]);
}
uint32_t layout_index(const IrLayout *l, uint32_t place);
// The bits of a place that are free: cleared greedily from the register's lowest on, so that places with all of them 0 hold every
// element exactly once.
uint32_t layout_free(const IrLayout *l);
// The place with free bits 0 that holds an index; false where none does.
bool layout_find(const IrLayout *l, uint32_t index, uint32_t *place);
// Is every index below 1 << bits held?
bool layout_covers(const IrLayout *l, uint32_t bits);

// ---- constructors. Shapes are powers of two, at most 2^20 elements in all ------------------------------------------------
// The plain kind: a thread holds per_thread[i] neighbours along axis i, a warp lanes[i] threads, the block warps[i] warps; within
// each, axes vary in the given order, order[0] fastest. Repeated over the tile by registers where it is larger, free where smaller.
IrLayout layout_blocked(int rank, const int32_t *shape, const int32_t *per_thread, const int32_t *lanes,
                        const int32_t *warps, const int32_t *order);
// Everything held by everyone once: rank 0, or a start for splats.
IrLayout layout_replicated(uint32_t elem_bits, uint32_t lane_bits, uint32_t warp_bits);
// Fragments of the warp's matrix unit (mma.def), of the last two axes of a tile; warps[2] of them side by side along m and n.
// elem_pack: log2 of the elements in a 32-bit register (1 for 16 bits, 2 for 8, 0 for 32).
IrLayout layout_mma_c(int rank, const int32_t *shape, const int32_t *warps);
IrLayout layout_mma_a(int rank, const int32_t *shape, const int32_t *warps, uint32_t elem_pack);
IrLayout layout_mma_b(int rank, const int32_t *shape, const int32_t *warps, uint32_t elem_pack);

// The same of a group of four warps (wgmma): its 64 rows are the warps' 16 each; further warps divide rows, then columns. warps[0] is a
// multiple of 4.
IrLayout layout_wgmma_c(int rank, const int32_t *shape, const int32_t *warps);
IrLayout layout_wgmma_a(int rank, const int32_t *shape, const int32_t *warps, uint32_t elem_pack);

// ---- shared memory. A buffer's layout has register bits alone: those of an element's offset in the buffer ------------------
// Panels of at most 128 bytes of columns, row under row; chunks of 16 bytes change places within a panel's lines as tensor maps and the
// matrix unit want them: bits 4.. of the byte offset ^= bits 7.. (1, 2 or 3 bits for panels of 32, 64 or 128 bytes).
IrLayout layout_swizzled(int rank, const int32_t *shape, uint32_t elem_bytes);
// Where a tile's places lie in a buffer: places to offsets instead of indices.
IrLayout layout_in_memory(const IrLayout *buffer, const IrLayout *tile);

// ---- what shape ops do to a layout ----------------------------------------------------------------------------------------
// trans: axis i of the result is axis perm[i] of a (shape: a's).
IrLayout layout_trans(const IrLayout *a, int rank, const int32_t *shape, const int64_t *perm);
IrLayout layout_trans_back(const IrLayout *r, int rank, const int32_t *shape,
                           const int64_t *perm); // a's from the result's
// The layout of the tile of which r's shape is the broadcast along the axes that have size 1 in `from`: their bits become free.
IrLayout layout_slice(const IrLayout *r, int rank, const int32_t *from, const int32_t *to);
// A tile with a new last axis of size 2, both elements of which are held by the thread that holds the pair (join); and back (split).
IrLayout layout_join(const IrLayout *a);
bool layout_split(const IrLayout *r, IrLayout *out); // false: no register bit selects the last axis
// Registers that hold copies of others are dropped.
IrLayout layout_compact(const IrLayout *l);

// `access`, but with the tile divided among warps as in `value`, so that what moves between the two stays within warps. The first `whole`
// of access' bits (registers' neighbours, then lanes) stay as they are: they make whole lines of memory. False: not possible so.
bool layout_with_warps(const IrLayout *access, const IrLayout *value, uint32_t neighbours, uint32_t whole,
                       IrLayout *out);

// ---- conversion --------------------------------------------------------------------------------------------------------------
typedef enum LayoutMove {
  MOVE_NONE,   // each thread has all it needs; registers are renumbered
  MOVE_LANES,  // within warps: shuffles
  MOVE_SHARED, // across warps: shared memory
} LayoutMove;
LayoutMove layout_move(const IrLayout *from, const IrLayout *to);
// Log2 of the number of consecutive indices (from an aligned one) that lie in `most` or fewer register bits of one thread, along the
// field of `bits` index bits starting at `low`; reg[k] gets the register bit that adds 1 << (low + k).
uint32_t layout_run(const IrLayout *l, uint32_t low, uint32_t bits, uint32_t most, uint8_t *reg);

#endif
