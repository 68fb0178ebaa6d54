// The interpreter: runs modules of any stage on N ranks, deterministically, in an order chosen by a seed. The oracle of all
// tests and the base of --check. Part of the ir room: included through ir.h.
//
// Pointers are real addresses of memory that the caller registered; every access is checked against the registry, so that
// no program can crash the host. Agents (rank, instance, warp) step in turn; where all wait, the run ends with a report
// that names every waiting agent, its source line, signal, expected and seen value.
#ifndef DITRON_INTERP_H
#define DITRON_INTERP_H
#include "ir/ir.h" // which includes this file after its types

typedef struct InterpMemory {
  void *base;
  size_t bytes;
  const char *name; // for reports
  int rank;         // whose memory
  int segment;      // -1: private; else all ranks register the same segment number with equal size: symmetric
  bool initialised; // contents are meaningful from the start (else --check reports reads before writes)
  bool readonly;
} InterpMemory;

typedef struct InterpDesc { // host-made tensor descriptor as argument
  void *base;
  int rank;
  int64_t shape[5], strides[5]; // elements
  IrPad pad;
} InterpDesc;
typedef union InterpArg { // in the order of the kernel's parameters
  int64_t i;              // integers, sign- or zero-extended; pointers as addresses
  double f;               // floats of any width
  void *p;
  const InterpDesc *desc;
} InterpArg;

// A rank executes its commands stream by stream, each stream in order, streams at the same time.
typedef enum InterpCmdKind { INTERP_LAUNCH, INTERP_COPY, INTERP_FILL, INTERP_WAIT_STREAM } InterpCmdKind;
typedef struct InterpCmd {
  InterpCmdKind kind;
  int rank, stream;
  // INTERP_LAUNCH
  const IrFunc *func;
  uint32_t grid[3];
  const InterpArg *args;
  // INTERP_COPY: the rank's copy engine; release at system scope when done. INTERP_FILL: bytes of `value`
  void *dst;
  const void *src;
  size_t bytes;
  int value;
  // INTERP_WAIT_STREAM: this stream goes on when all commands issued before on wait_stream of this rank are done
  int wait_stream;
} InterpCmd;

typedef enum InterpFault { // what --check can find; texts in interp_faults[]
  FAULT_NONE,
  FAULT_RACE,
  FAULT_SCOPE,
  FAULT_UNINIT,
  FAULT_BOUNDS,
  FAULT_SLOT_REUSE,
  FAULT_DEADLOCK,
  FAULT_ASSERT,
  FAULT_PROXY,
  FAULT_BARRIER,
  FAULT_READONLY,
  FAULT_LIMIT,
  FAULT_UNSUPPORTED
} InterpFault;

typedef struct InterpFinding {
  InterpFault fault;
  Loc here, other; // both source lines; other.line 0 where there is no second
  char *text;      // one paragraph: ranks, instances, addresses as NAME[index], what is missing
} InterpFinding;

typedef struct InterpEvent { // for timelines
  enum { EVENT_INSTANCE, EVENT_WAIT, EVENT_COPY } kind;
  int rank, stream;
  uint32_t pid[3];
  uint64_t begin, end; // steps
  const char *name;
  Loc loc;
} InterpEvent;

typedef struct InterpConfig {
  Arena *arena; // findings and scratch
  const IrModule *module;
  int ranks;
  const InterpMemory *memory;
  int nmemory;
  const InterpCmd *cmds; // in program order of each rank's host
  int ncmds;
  uint64_t seed;      // 0: round robin
  uint64_t max_steps; // 0: 2^62; passing it is FAULT_LIMIT
  bool check;         // vector clocks, initialisation, delayed stores
  int resident;       // most instances of a rank alive at once (0: all): models a machine of that size
  void (*print)(void *user, int rank, const char *line); // device_print; NULL drops
  void (*event)(void *user, const InterpEvent *e);       // NULL: none
  void (*progress)(void *user, double done);             // NULL: none
  void *user;
  int max_findings; // default 20; equal pairs of source lines are reported once
} InterpConfig;
typedef struct InterpResult {
  Status status; // OK, DEADLINE (deadlock), ASSERT, RACE (any finding of --check), INVALID (bounds), LIMIT
  InterpFinding *findings;
  int nfindings;
  uint64_t steps, elems; // work done
} InterpResult;
Status interp_run(const InterpConfig *c, InterpResult *r);
extern const char *const interp_fault_names[]; // by InterpFault

#endif
