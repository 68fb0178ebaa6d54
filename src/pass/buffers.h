// buffers: which shared memory the ops of the lowered stage touch (an analysis). Inside the room only.
//
// Buffers are the function's mem_allocs, numbered in order; a set of them is `words` words of bits. A pointer or memdesc belongs to the
// buffers that it may be derived from; one bit more, number `n`, says that it may be any.
#ifndef DITRON_BUFFERS_H
#define DITRON_BUFFERS_H

#include "pass/pass_impl.h"

typedef struct Buffers {
  Vec(IrOp *) allocs;
  uint32_t n, words, nvalues;
  uint64_t **of; // by value id; NULL: none
} Buffers;

typedef enum BufAsync { // who completes it
  BUF_NOW,
  BUF_COPIES,   // copy_wait
  BUF_PRODUCTS, // wgmma_wait
  BUF_ENGINE,   // mbarriers and groups of bulk copies: not followed here
  BUF_KINDS
} BufAsync;

typedef struct BufAccess {
  uint64_t *which; // set
  bool reads, writes;
  BufAsync async;
} BufAccess;

Buffers *buffers_run(IrFunc *f, Arena *a); // renumbers f's values
// What op itself does (not the ops inside it). False: it touches no shared memory. which: room for a set.
bool buffers_access(const Buffers *b, const IrOp *op, BufAccess *out);
int64_t buffers_bytes(const IrOp *alloc);
static inline bool buffers_has(const uint64_t *set, uint32_t i) { return set[i / 64] >> i % 64 & 1; }
// A region op whose threads may part.
bool buffers_parts_threads(const IrOp *op);

#endif
