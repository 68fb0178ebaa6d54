// bench: what the files of `ditron bench` share.
#ifndef DITRON_CLI_BENCH_H
#define DITRON_CLI_BENCH_H

#include "cli/cli.h"

typedef struct BenchCase {  // one shape of one operator
  const char *op, *variant; // variant NULL: the operator's own choice
  dt_dtype dtype;
  int64_t m, n, k;
  int world;
} BenchCase;

enum { BENCH_TENSORS = 4 };
typedef struct BenchTensors { // of one rank: inputs, then the output last
  size_t count[BENCH_TENSORS];
  void *memory[BENCH_TENSORS];
  int n;
} BenchTensors;

// ---- bench_case.c: inputs and references -----------------------------------------------------------------------------------
// Sizes of the operator's tensors on one rank; n = 0 where the operator is unknown. False where one would be empty or overflows.
bool bench_sizes(const BenchCase *c, BenchTensors *t);
// Random inputs in [-1, 1), the same for the same (tensor, rank, index) whatever the run.
void bench_fill(const BenchCase *c, const BenchTensors *t, int rank);
// ||out - reference|| / ||reference|| over sampled elements (edges always among them), the reference in f64. NaN counts as wrong.
double bench_error(const BenchCase *c, const BenchTensors *t, int rank);
double bench_tolerance(const BenchCase *c);
double bench_flops(const BenchCase *c); // of one rank; 0: bound by memory
double bench_bytes(const BenchCase *c); // that one rank reads and writes at least

// ---- bench_peer.c: what we are compared with -----------------------------------------------------------------------------------
typedef struct BenchPeer BenchPeer;
// OpenBLAS for matmul, memcpy for what memory bounds, NULL (with a name saying why) where there is none in this process.
BenchPeer *bench_peer_open(const BenchCase *c, int threads, const char **name);
double bench_peer_ms(BenchPeer *p, int times); // mean of `times` runs back to back
void bench_peer_close(BenchPeer *p);

// ---- bench_host.c: what the host pays, `launch` and `compile` --------------------------------------------------------
bool bench_is_host(const char *name);
int bench_host(dt_context *c, const char *name, int rounds, bool json); // the exit code

#endif
