// pass_impl: what the passes share among themselves. Inside the room only.
#ifndef DITRON_PASS_IMPL_H
#define DITRON_PASS_IMPL_H

#include "pass/pass.h"

// ---- eval.c: the value of an elementwise op on known bits ------------------------------------------------------------
// Bits of one element, zero-extended to 64. False where the op has no agreed exact result (then nothing is folded).
bool pass_eval(const IrOp *op, const uint64_t *in, uint64_t *out);
bool pass_compare(IrCmp p, int bits, uint64_t a, uint64_t b); // of integers
static inline uint64_t pass_mask(int bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }
static inline int64_t pass_sext(uint64_t v, int bits) {
  return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}
int pass_elem_bits(const IrType *t); // 64 for pointers

// ---- edit.c: changes that several passes make -------------------------------------------------------------------------
int64_t pass_registers(const IrModule *m,
                       const IrType *t); // 32-bit ones of a thread that a tile takes, shared by all evenly
// Of `most` registers for products in flight and what they meet, those that a limit of the program's leaves beside addresses.
int64_t pass_register_room(const IrModule *m, int64_t most);
bool pass_is_before(const IrOp *a, const IrOp *b); // in one block, or b itself
bool pass_const(const IrValue *v, uint64_t *bits); // const or splat of const: bits, zero-extended
IrValue *pass_const_bits(IrBuilder *b, const IrType *t, uint64_t bits);
IrValue *pass_int_as(IrBuilder *b, IrValue *v, const IrType *t); // with t's bits, the sign kept
bool pass_defined_in(const IrValue *v, const IrBlock *b);        // in b or in a region below it
// Moves b's ops, all but the terminator, before `before`, with args in place of b's arguments.
void pass_splice(IrBlock *b, IrOp *before, IrValue *const *args, uint32_t nargs);
// Replaces op (if, for, while, switch) by one that keeps only some results and carried values, without touching what is
// live: keep_result[i], and for a loop keep_arg[i] (for `for` both lists name the same values). The dropped results and
// arguments must be unused. Returns the new op.
IrOp *pass_narrow(IrOp *op, const bool *keep_result, const bool *keep_arg, Arena *scratch);
// Replaces the terminator by one whose operands from `skip` on are cut down to those with keep[i - skip].
void pass_narrow_terminator(IrBlock *b, uint32_t skip, const bool *keep, Arena *scratch);
void pass_copy_attrs(IrOp *to, const IrOp *from);             // to has none yet
const int64_t *pass_attr_words(const IrAttr *a, uint32_t *n); // what it says, as n words to compare or hash
bool pass_same_attrs(const IrOp *a, const IrOp *b);
bool pass_is_loop(IrOpKind k);
bool pass_is_plain_load(const IrOp *op); // orders nothing, not volatile
// Sets op->aux of all ops of b and below to non-NULL where the op, or one inside it, writes memory or orders others.
bool pass_mark_memory(IrBlock *b);
void pass_clear_marks(IrBlock *b);
// A tile whose leading axes have size 1 as the matrix that it is, without layout (flat indices are the same); NULL: it is none.
const IrType *pass_as_matrix(IrCtx *ctx, const IrType *t);
bool pass_rmw_is_neutral(const IrOp *op); // an atomic that leaves the word as it is: add 0, and -1, ...
IrCmp pass_swapped(IrCmp p);              // p(a, b) == swapped(p)(b, a)
IrCmp pass_inverted(IrCmp p);             // !p(a, b) == inverted(p)(a, b)
IrValue *pass_like(IrBuilder *b, const IrOp *op, uint32_t n, IrValue *const *operands,
                   const IrType *result); // op's kind and attributes
// Stage `stage` (i32) of a ring of shared memory, as shared memory of one stage.
IrValue *pass_ring_stage(IrBuilder *b, IrValue *ring, IrValue *stage);
void pass_async_fence(IrBuilder *b); // what is written to shared memory before is seen by the async proxy
bool pass_orders(
    const IrOp *op); // others' accesses, itself; a relaxed update that nobody reads orders nothing
IrOp *pass_first_user(const IrValue *v); // in v's block, not in regions below; NULL: none
// Iterations of a `for` whose bounds and step are known; -1 where they are not, or where it would never end.
int64_t pass_trip_count(const IrOp *op);

// ---- flow.c: forward analyses ---------------------------------------------------------------------------------------------
// Facts of values flow from operands to results and along the regions of if, for, while and switch until nothing changes
// (sparse, optimistic: a value without facts yet is skipped). Facts may only get weaker, a bounded number of times.
typedef struct PassFlow {
  void *user;
  bool (*known)(void *user, const IrValue *v); // has facts yet
  bool (*join)(void *user, const IrValue *to,
               const IrValue *from); // weakens to's facts by from's; true where they changed
  bool (*op)(void *user, const IrOp *op, uint32_t result);     // facts of one result; all operands have facts
  bool (*iv)(void *user, const IrOp *loop, const IrValue *iv); // of a `for`
  bool (*unknown)(void *user, const IrValue *v); // an argument of a region that flow does not follow
  bool (*control)(void *user,
                  IrOp *op); // NULL, or: facts that depend on op's condition; true: look at its values again
} PassFlow;
void pass_flow_run(IrFunc *f, const PassFlow *flow, Arena *scratch);

// ---- lay.c
// Neighbours along axis d that one access through p under mask (NULL: none) can move: aligned, 16 bytes or less; at least 1.
int32_t lay_neighbours(const PassAxes *x, const IrValue *p, const IrValue *mask, int d);
// Are base and strides of a descriptor known to be multiples of 16 bytes? Those of parameters are looked at when launched.
bool lay_desc_aligned(const PassAxes *axes, const IrValue *desc);
// What is not, as the start of a sentence for people, and the value; NULL: all are.
const char *lay_desc_odd(const PassAxes *axes, const IrValue *desc, const IrValue **which);
// Does lay give the product to groups of four warps, if the machine has them?
bool lay_takes_groups(const IrModule *m, const IrOp *dot);
// How many threads share a row of v, a matrix made of a product: thread t of n has elements 2 t and 2 t + 1 of each 2 n. 0: it is none,
// or its rows lie otherwise.
int lay_row_threads(const Pass *pass, const IrFunc *f, const IrValue *v);
int lay_mma_shape(const IrOp *dot); // IrMma that computes it, or -1
// The only product that a relayout feeds as operand a or b on the matrix unit, as it is or transposed; NULL: none such.
const IrOp *lay_product_of(const IrOp *relayout);

// ---- producer.c
typedef struct Producer Producer;
// NULL: a producer warp cannot be made for f, as far as its ops and the machine go. Lives as long as the pass.
Producer *pass_producer_for(Pass *pass, IrFunc *f);
// Could it follow the control around this product of a loop, and does the loop ask for two stages or more?
bool pass_producer_reaches(Producer *p, const IrOp *dot);
// The last of the products of v's block that read v, as it is or turned; NULL: none, or something else reads it.
IrOp *pass_last_product(const IrValue *v);
// Where only products read v, in its block or in ops of that: the last of those ops; product: one that reads it. Else NULL.
IrOp *pass_held_until(const IrValue *v, IrOp **product);
bool pass_travels(const IrType *t); // a vector that a producer's copies can bring: stages of whole 128 bytes

#define PASS_EACH_FUNC(p, f) for (IrFunc *f = (p)->m->funcs; f; f = f->next)
#define PASS_EACH_OP(b, op) for (IrOp *op = (b)->first; op; op = op->next)

#endif
