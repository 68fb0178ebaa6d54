// interp_check: the checker's own structures, for interp_clock.c, interp_shadow.c and interp_check.c.
#ifndef DITRON_INTERP_CHECK_H
#define DITRON_INTERP_CHECK_H

#include "ir/interp_impl.h"

typedef struct ClockEntry {
  uint32_t comp, epoch;
} ClockEntry;
struct Clock {
  uint32_t refs, n, cap;
  uint32_t *done; // by stream: how many of its commands are over
  ClockEntry *e;  // by rising comp
};

typedef enum CompKind { COMP_TILES, COMP_SCALAR, COMP_WARP, COMP_COPY, COMP_STREAM } CompKind;
typedef struct Origin { // whom components belong to
  int stream;           // index of the launch's stream; -1: the stream itself
  uint32_t at;          // command within it
  int rank, id;         // id: the stream's number for people
  uint32_t pid[3];
  const IrFunc *func;
} Origin;
typedef struct CompInfo {
  uint32_t origin;
  uint16_t warp;
  uint8_t kind;
} CompInfo;

// What is remembered of an access to (a part of) 8 bytes.
typedef struct Entry {
  uint32_t comp, epoch;
  const Ins *ins; // NULL: a stream's copy
  uint8_t bytes;  // mask
  uint8_t flags;  // ACC_ATOMIC, ACC_ASYNC, ACC_DATA
  uint8_t scope;
  uint8_t write;
  uint32_t zero; // entries are compared as bytes
} Entry;
typedef struct Node { // lists of entries share their tails
  Entry e;
  uint32_t next, zero;
} Node;
typedef struct ShadowState { // of 8 bytes: who wrote and who read them last
  uint32_t writes, reads;    // lists; 0: empty
  uint32_t written;          // mask: bytes with meaningful contents
} ShadowState;

// What a write of a word gives to those who acquire it.
typedef struct Released {
  Clock *clock;         // NULL: nothing
  IrScope scope;        // the narrowest of those that went into it
  int rank;             // of the writers; -2: of several
  const Instance *inst; // of the only writer, or NULL
  uint64_t inst_number;
  Loc loc;
  uint32_t comp, epoch; // the write itself
  uint64_t value;
} Released;
enum { HISTORY = 32 };
typedef struct SyncVar { // a word that releases are seen through: its last writes, oldest first
  Released h[HISTORY];
  uint32_t n;
  uint64_t first; // the value before all of them, while none was forgotten
  bool forgot;
} SyncVar;
typedef struct WeakEdge { // an order that would be, were the scopes wide enough
  Clock *clock;
  int rank;
  Loc release, acquire;
  IrScope scope;
} WeakEdge;

typedef struct Memo {
  uint32_t gen, old, fresh;
} Memo;
enum { MEMOS = 64 };
struct Check {
  uint32_t nstreams;
  Vec(CompInfo) comps;
  Vec(Origin) origins;
  Vec(Node) nodes;
  Vec(ShadowState) states;
  Map node_ids, state_ids; // hash -> id
  Map sync;                // address -> SyncVar *
  Vec(WeakEdge) weak;
  Memo memo[MEMOS];
  uint32_t gen;
  Entry last; // the access that `memo` is of
  const Clock *last_seen;
};

bool clock_covers(const World *w, const Clock *c, uint32_t comp, uint32_t epoch);
void clock_add(World *w, Clock **into, const ClockEntry *e, uint32_t n);
void clock_set_done(World *w, Clock **into, uint32_t stream, uint32_t commands);

// An access as the shadow memory sees it: the entry to be, what its actor knows, and who counts as in program order with it.
typedef struct Touch {
  Entry e;
  unsigned kind;
  const Clock *seen;
  uint32_t twin; // the other component of the same program code; UINT32_MAX: none
  int rank;
  const Agent *agent;
  const char *block_name; // shared memory: its name; NULL: registered memory
  uint64_t base;          // address of the shadow's first byte, for names
  int esize;
} Touch;
void shadow_open(World *w);
void shadow_touch(World *w, uint32_t *shadow, const Touch *t, uint64_t addr, uint64_t bytes);
const char *check_actor_name(World *w, uint32_t comp);

#endif
