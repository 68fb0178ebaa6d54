// nvptx: what the files of this folder share. A module of the lowered stage becomes LLVM IR of one thread, LLVM makes PTX of
// it, and ptxas a cubin where it is present.
//
// Pointers are of their space: global 1, shared 3. Buffers lie in one external array of dynamic shared memory; behind the
// module's buffers lie what single ops need (nvptx_scratch). Peers' bases, deadline and abort word come from the AbiRank
// whose address is the kernel's hidden last parameter.
#ifndef DITRON_TARGET_NVPTX_H
#define DITRON_TARGET_NVPTX_H

#include "target/target_impl.h"

enum { NVPTX_GLOBAL = 1, NVPTX_SHARED = 3 }; // LLVM's address spaces
#define NVPTX_SHARED_NAME "ditron_shared"

typedef struct NvptxState { // of the function being emitted
  V tid;                    // in the block
  bool has_groups;          // products of four warps
  V warp;                   // the same, as ptxas sees it: one in a warp; NULL: not asked for yet
  Map narrowed;             // LLVM value of a small float -> what it was made of (num.c)
  Map pieces;               // LLVM value of an element -> NvptxPiece: where in a loaded word it lies
  Map mbarriers;            // IrOp * of an mbarrier_alloc -> offset in shared memory
  Map turns;                // IrValue * of turns' barriers -> LLVM slot: how many a group has had
  LLVMBasicBlockRef end; // where the waits end that last too long (wait.c), and its phis; NULL: nowhere yet
  V end_fields[7];
  Vec(struct NvptxMap *) maps; // tensor maps, hidden parameters (tma.c), and as the image says them
  Vec(ImageMap) image_maps;
  LLVMBasicBlockRef run_one,
      run_all; // of a run of one thread's ops: inside, behind; run_one NULL: none is open
  V run_branch;
  bool prefetched; // the maps
  uint32_t part;   // which partition of the block: its named barrier; 0 outside
  uint32_t part_first, part_warps;
} NvptxState;

// ---- facts.c, emit.c, ptxas.c
Status nvptx_facts(const TargetOptions *o, Arena *a, Diags *d, TargetFacts *out);
void nvptx_kernel(Lower *l, const IrFunc *f, ImageVariant *out);
bool nvptx_op(Lower *l, const IrOp *op);
Status nvptx_start(const TargetOptions *o, const TargetFacts *facts, TargetTool *out); // ptxas, for its input
void nvptx_finish(Lower *l, Output *out);     // PTX to cubin; the kernels' registers and spills
V nvptx_shared_at(Lower *l, uint64_t offset); // address in the block's dynamic shared memory
void nvptx_by_value(Lower *l, V fn, uint32_t i, uint32_t nbytes, uint32_t nalign); // parameter i
V nvptx_scratch(Lower *l, uint64_t bytes); // the same bytes for all who ask; aligned to 16
V nvptx_tid(Lower *l);                     // in the block or partition
uint32_t nvptx_threads(const Lower *l);    // of the block or partition

// ---- inline.c: inline assembly. `constraints` as LLVM reads them, without clobbers. Results of several values are a struct.
enum {
  ASM_PURE = 0,       // no effect; equal ones may be merged
  ASM_EFFECT = 1,     // stays where it is among others with effects, and touches memory
  ASM_CONVERGENT = 2, // not to be moved across control flow that splits a warp
};
V nvptx_asm(Lower *l, T result, const char *text, const char *constraints, V const *args, uint32_t n,
            int how);
char *nvptx_text(Lower *l, const char *fmt, ...) DT_PRINTF(2, 3); // in the arena

// ---- the families. Each lowers the ops that are its own, and says whether op was one.
bool nvptx_mem(Lower *l, const IrOp *op);
bool nvptx_num(Lower *l, const IrOp *op);
bool nvptx_lane(Lower *l, const IrOp *op);
bool nvptx_wgmma(Lower *l, const IrOp *op);
bool nvptx_atomic(Lower *l, const IrOp *op);
bool nvptx_wait(Lower *l, const IrOp *op);
bool nvptx_mbarrier(Lower *l, const IrOp *op);
bool nvptx_tma(Lower *l, const IrOp *op);
bool nvptx_people(Lower *l, const IrOp *op);
// Hooks of the shared code.
V nvptx_widen(Lower *l, V x, IrDtype d);
V nvptx_narrow(Lower *l, V x, IrDtype d, IrRound round);
V nvptx_math(Lower *l, IrMath fn, V x, V y);
void nvptx_yield(Lower *l, const IrOp *loop, V turn);
void nvptx_rejoin(Lower *l, const IrOp *op);
// What they take from each other.
typedef struct NvptxPiece {
  V word;
  uint32_t index; // in units of the element
} NvptxPiece;
const NvptxPiece *nvptx_piece(const Lower *l, V elem); // NULL: none
// Two small elements side by side, lo in the low bits, without taking them apart first: one conversion of both where both were
// converted here (i32 of halves, i16 of 8-bit floats), or the word of halves that both come from. NULL: neither.
V nvptx_pair(Lower *l, V lo, V hi);
V nvptx_warp_number(Lower *l); // in the block or partition; ptxas sees that it is one in a warp
V nvptx_shfl(Lower *l, const char *mode, V v, V lane); // mode: idx, up, down, bfly
V nvptx_from_thread(Lower *l, V v);                    // thread 0's, in all threads of the block or partition
void nvptx_barrier(Lower *l);                          // of the block or partition
void nvptx_warp_barrier(Lower *l);
LLVMBasicBlockRef nvptx_begin_one(Lower *l); // what follows is done by thread 0 of the block or partition,
void nvptx_end_one(Lower *l, LLVMBasicBlockRef all);   // to here; `all` is what begin gave
V nvptx_clock(Lower *l);                               // nanoseconds
void nvptx_place_mbarriers(Lower *l, const IrFunc *f); // behind the buffers
// ---- tma.c
uint32_t nvptx_find_maps(Lower *l, const IrFunc *f, ImageVariant *out); // how many parameters they are
void nvptx_map_params(Lower *l, V fn, uint32_t first);
void nvptx_prefetch_maps(Lower *l); // by one thread
V nvptx_elected(Lower *l); // i1: one thread of the block's or partition's first warp, always the same
void nvptx_in_run(Lower *l, const IrOp *op); // before each op
// Ends the thread with a report. What is not known of the word is NULL or 0. The builder is left without a place.
void nvptx_give_up(Lower *l, V site, AbiReportKind kind, V flag, V seen, V value, uint32_t bytes, AbiCmp cmp);
const char *nvptx_scope(const IrOp *op); // "cta", "gpu", "sys"

#endif
