// Several ranks, as threads and as processes, the same kernels and the same host code either way: rings with acks, all-gathers
// with waits, barriers in kernels, copy-engine pushes over channels, dropped signals, lost ranks, disagreements.
//
// As processes, this program launches itself: `rt_ranks SCENARIO` is one rank, its place comes from the environment.
// TIMEOUT: 600
#include "rt_test.h"

#include <signal.h>

static const char KERNELS[] = RT_TEST_SOURCE(
    static void delay(unsigned long *seed) {
      *seed = *seed * 6364136223846793005ul + 1442695040888963407ul;
      for (volatile unsigned k = 0; k < (*seed >> 50 & 1 ? *seed >> 52 & 1023 : 0); k++) {}
    } KERNEL(ring) {
      ARG(long *, out, 0);
      ARG(long *, in, 1);
      ARG(unsigned long *, flag, 2);
      ARG(unsigned long *, ack, 3);
      ARG(long, first, 4);
      ARG(long, last, 5);
      ARG(unsigned long, seed, 6);
      ARG(long *, bad, 7);
      ARG(long, drop, 8);
      const int me = i->rank->rank, world = i->rank->world, next = (me + 1) % world,
                prev = (me + world - 1) % world;
      const unsigned p = i->pid[0];
      seed += me * 77 + p;
      out += p * 64;
      in += p * 64;
      flag += p;
      ack += p;
      for (long it = first; it < last; it++) {
        long *slot = in + (it & 1) * 32, *mine = out + (it & 1) * 32;
        delay(&seed);
        CALL->wait(i, ack, 1, 8, it - 2, ABI_GE, 1);
        for (int k = 0; k < 32; k++) mine[k] = me * 1000000l + it * 100 + k;
        CALL->copy(i, slot, mine, 256, next, 0, 2);
        delay(&seed);
        if (!drop || it < drop) CALL->signal(i, flag, it, 8, next, 0, 3);
        CALL->wait(i, flag, 1, 8, it, ABI_GE, 4);
        for (int k = 0; k < 32; k++) *bad += slot[k] != prev * 1000000l + it * 100 + k;
        delay(&seed);
        CALL->signal(i, ack, 1, 8, prev, 1, 5);
      }
    } KERNEL(gather) { // instance p gives this rank's row to rank p, then looks at all rows
      ARG(int *, rows, 0);
      ARG(int *, flags, 1);
      ARG(long, epoch, 2);
      ARG(unsigned long, seed, 3);
      ARG(long *, bad, 4);
      const int me = i->rank->rank, world = i->rank->world;
      const int p = i->pid[0];
      int mine[100];
      seed += me * 31 + p;
      rows += (epoch & 1) * world * 100;
      delay(&seed);
      for (int k = 0; k < 100; k++) mine[k] = me * 10000 + (int)epoch + k;
      CALL->copy(i, rows + me * 100, mine, 400, p, 0, 6);
      CALL->signal(i, flags + me, epoch, 4, p, 0, 7);
      CALL->wait(i, flags, world, 4, epoch, ABI_GE, 8);
      for (int r = 0; r < world; r++)
        for (int k = 0; k < 100; k++)
          if (rows[r * 100 + k] != r * 10000 + (int)epoch + k) __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);
      int theirs[100];
      CALL->copy(i, theirs, rows + me * 100, 400, p, 1, 9); // what I gave
      if (theirs[5] != me * 10000 + (int)epoch + 5) __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);
    } KERNEL(meet) { // after each barrier everybody's count is at least mine
      ARG(long *, count, 0);
      ARG(long, n, 1);
      ARG(unsigned long, seed, 2);
      ARG(long *, bad, 3);
      seed += i->rank->rank;
      for (long k = 1; k <= n; k++) {
        delay(&seed);
        __atomic_store_n(count, k, __ATOMIC_RELEASE);
        CALL->team_barrier(i, 0, 2, 10);
        for (int r = 0; r < i->rank->world; r++) {
          long theirs;
          CALL->copy(i, &theirs, count, 8, r, 1, 11);
          if (theirs < k || theirs > k + 1) *bad += 1;
        }
      }
    } KERNEL(hang) {
      ARG(unsigned long *, flag, 0);
      CALL->wait(i, flag, 1, 8, 1, ABI_GE, 12);
    } KERNEL(absent) {
      if (i->rank->rank != 1) CALL->team_barrier(i, 0, 2, 13);
    });
static const char *const NAMES[] = {"ring", "gather", "meet", "hang", "absent", NULL};
static const char WAITING[] = "ring gather meet hang absent";

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { INSTANCES = 3, ITERATIONS = 200, FAULT_MS = 3000 };
#define FAULT_TEXT "3 s"
#else
enum { INSTANCES = 3, ITERATIONS = 1000, FAULT_MS = 800 };
#define FAULT_TEXT "0.8 s"
#endif
// FAULT_MS: the deadline where one is meant to pass; until then all ranks must have begun

typedef struct Shared { // by all ranks of a process
  Image *image;
  const char *scenario;
} Shared;

#define TRY(call) \
  do { \
    const Status try_status = (call); \
    if (try_status != ST_OK) return try_status; \
  } while (0)
#define WANT(condition) \
  do { \
    if (!(condition)) return unmet(e, #condition); \
  } while (0)

static Status unmet(RtError *e, const char *condition) {
  char before[2000];
  snprintf(before, sizeof before, "%.*s", (int)sizeof before - 1, e->text);
  snprintf(e->text, sizeof e->text, "this does not hold: %s (last error: %s)", condition, before);
  return e->status = ST_INTERNAL;
}

typedef struct Ring {
  RtStream *stream;
  RtKernel *kernel;
  long *out, *in;
  uint64_t *flag, *ack;
  long bad;
} Ring;

static Status ring_up(Ring *g, RtRank *r, const Shared *s, RtError *e) {
  *g = (Ring){.bad = 0};
  TRY(rt_stream_create(r, "ring", &g->stream, e));
  TRY(rt_kernel_load(r, s->image, "ring", &g->kernel, e));
  TRY(rt_alloc(r, INSTANCES * 64 * 8, (void **)&g->out, e));
  TRY(rt_symm_alloc(r, INSTANCES * 64 * 8, "slots", (void **)&g->in, e));
  TRY(rt_symm_alloc(r, INSTANCES * 8, "flags", (void **)&g->flag, e));
  return rt_symm_alloc(r, INSTANCES * 8, "acks", (void **)&g->ack, e);
}

static Status ring_go(Ring *g, long first, long last, long drop, RtError *e) {
  return RT_TEST_LAUNCH(g->kernel, g->stream, INSTANCES, e, rt_test_ptr(g->out), rt_test_ptr(g->in),
                        rt_test_ptr(g->flag), rt_test_ptr(g->ack), rt_test_int(first), rt_test_int(last),
                        rt_test_int(last * 7), rt_test_ptr(&g->bad), rt_test_int(drop));
}

static void ring_down(Ring *g, RtRank *r) {
  rt_stream_destroy(g->stream);
  rt_kernel_destroy(g->kernel);
  rt_free(r, g->out);
}

static Status ring(RtRank *r, const Shared *s, RtError *e) {
  Ring g;
  TRY(ring_up(&g, r, s, e));
  TRY(ring_go(&g, 1, ITERATIONS / 2, 0, e));
  for (long it = ITERATIONS / 2; it < ITERATIONS; it += 5) TRY(ring_go(&g, it, it + 5, 0, e));
  TRY(rt_stream_sync(g.stream, e));
  WANT(g.bad == 0);
  ring_down(&g, r);
  return ST_OK;
}

static Status gather(RtRank *r, const Shared *s, RtError *e) {
  const uint64_t world = (uint64_t)rt_team_world(rt_rank_team(r));
  RtStream *st;
  RtKernel *k, *meet;
  int *rows, *flags;
  long *count, bad = 0;
  TRY(rt_stream_create(r, "gather", &st, e));
  TRY(rt_kernel_load(r, s->image, "gather", &k, e));
  TRY(rt_kernel_load(r, s->image, "meet", &meet, e));
  TRY(rt_symm_alloc(r, world * 800, "rows", (void **)&rows, e));
  TRY(rt_symm_alloc(r, world * 4, "arrived", (void **)&flags, e));
  TRY(rt_symm_alloc(r, 8, "count", (void **)&count, e));
  TRY(rt_barrier(r, e));
  for (long epoch = 1; epoch <= ITERATIONS; epoch++) {
    TRY(RT_TEST_LAUNCH(k, st, world, e, rt_test_ptr(rows), rt_test_ptr(flags), rt_test_int(epoch),
                       rt_test_int(epoch * 13), rt_test_ptr(&bad)));
    if (epoch % 2 == 0) // both slots are full: nobody goes on before all have read them
      TRY(RT_TEST_LAUNCH(meet, st, 1, e, rt_test_ptr(count), rt_test_int(1), rt_test_int(epoch),
                         rt_test_ptr(&bad)));
  }
  TRY(rt_stream_sync(st, e));
  WANT(bad == 0);
  rt_stream_destroy(st);
  rt_kernel_destroy(k);
  rt_kernel_destroy(meet);
  return ST_OK;
}

static Status meet(RtRank *r, const Shared *s, RtError *e) {
  RtStream *st;
  RtKernel *k;
  long *count, bad = 0;
  TRY(rt_stream_create(r, "meet", &st, e));
  TRY(rt_kernel_load(r, s->image, "meet", &k, e));
  TRY(rt_symm_alloc(r, 8, "count", (void **)&count, e));
  TRY(RT_TEST_LAUNCH(k, st, 1, e, rt_test_ptr(count), rt_test_int(ITERATIONS), rt_test_int(5),
                     rt_test_ptr(&bad)));
  TRY(rt_stream_sync(st, e));
  WANT(bad == 0);
  rt_stream_destroy(st);
  rt_kernel_destroy(k);
  return ST_OK;
}

// The copy engine pushes a block to every peer over a channel; two streams, so that waits and pushes overlap.
static Status push(RtRank *r, const Shared *s, RtError *e) {
  (void)s;
  enum { BLOCK = 5000, ROUNDS = 300 };
  const int world = rt_team_world(rt_rank_team(r)), me = rt_rank_index(r);
  RtStream *send, *take;
  RtChannel *c;
  RtEvent *filled, *taken;
  char *in, *mine = malloc(BLOCK), *copy = malloc((size_t)world * BLOCK);
  TRY(rt_stream_create(r, "send", &send, e));
  TRY(rt_stream_create(r, "take", &take, e));
  TRY(rt_channel_create(r, "push", &c, e));
  TRY(rt_event_create(r, &filled, e));
  TRY(rt_event_create(r, &taken, e));
  TRY(rt_symm_alloc(r, (uint64_t)world * BLOCK, "blocks", (void **)&in, e));
  Rng rng = {(uint64_t)me};
  for (int round = 1; round <= ROUNDS; round++) {
    TRY(rt_channel_advance(c, send, e));
    TRY(rt_event_record(filled, send, e));
    TRY(rt_fill(send, mine, (me * 37 + round) & 127, BLOCK, e));
    for (int k = 0; k < world; k++) {
      const int peer = (me + k) % world;
      void *there;
      TRY(rt_symm_peer(r, in + (size_t)me * BLOCK, peer, &there, e));
      TRY(rt_channel_wait_ack(c, send, peer, e));
      TRY(rt_copy(send, there, mine, BLOCK, e));
      TRY(rt_channel_publish(c, send, peer, e));
    }
    TRY(rt_stream_wait_event(take, filled, e));
    for (int peer = 0; peer < world; peer++) {
      TRY(rt_channel_wait(c, take, peer, e));
      TRY(rt_copy(take, copy + (size_t)peer * BLOCK, in + (size_t)peer * BLOCK, BLOCK, e));
      TRY(rt_channel_ack(c, take, peer, e));
    }
    TRY(rt_event_record(taken, take, e));
    TRY(rt_stream_wait_event(send, taken, e)); // the next epoch starts after this one is read here
    if (rng_next(&rng) % 8 == 0) os_sleep_ns(rng_next(&rng) % 200000);
    if (round % 3) continue;
    TRY(rt_stream_sync(take, e));
    for (int peer = 0; peer < world; peer++) {
      for (int k = 0; k < BLOCK; k++) WANT(copy[peer * BLOCK + k] == ((peer * 37 + round) & 127));
    }
  }
  TRY(rt_stream_sync(send, e));
  TRY(rt_channel_destroy(c, e));
  rt_stream_destroy(send);
  rt_stream_destroy(take);
  rt_event_destroy(filled);
  rt_event_destroy(taken);
  free(mine);
  free(copy);
  return ST_OK;
}

static bool says(const RtError *e, const char *words) { return strstr(e->text, words) != NULL; }

// Rank 0 forgets its signals from round 5 on: everybody hears who waited where, for which word, and who wrote it last.
static Status drop(RtRank *r, const Shared *s, RtError *e) {
  Ring g;
  TRY(ring_up(&g, r, s, e));
  const uint64_t begin = os_now_ns();
  TRY(ring_go(&g, 1, 50, rt_rank_index(r) == 0 ? 5 : 0, e));
  WANT(rt_stream_sync(g.stream, e) == ST_DEADLINE);
  WANT(os_now_ns() - begin < 10000000000ull);
  WANT(says(e, "a wait passed its deadline of " FAULT_TEXT));
  WANT(says(
      e,
      "kernel 'ring', program (0, 0, 0) waits at kernels/demo.py:104:5 for label4: 'flags' + 0 should be >= 5, but is 4"));
  WANT(says(e, "last written by rank 0 at demo.py:103 (value 4)"));
  WANT(says(e, "rank 1: "));
  WANT(ring_go(&g, 1, 2, 0, e) == ST_DEADLINE);
  TRY(rt_recover(r, e));
  // the user's words are the user's to reset
  memset(g.flag, 0, INSTANCES * 8);
  memset(g.ack, 0, INSTANCES * 8);
  g.bad = 0;
  TRY(rt_barrier(r, e));
  TRY(ring_go(&g, 1, 100, 0, e));
  TRY(rt_stream_sync(g.stream, e));
  WANT(g.bad == 0);
  ring_down(&g, r);
  return ST_OK;
}

// One rank never comes to a barrier inside a kernel.
static Status absent(RtRank *r, const Shared *s, RtError *e) {
  RtStream *st;
  RtKernel *k;
  TRY(rt_stream_create(r, NULL, &st, e));
  TRY(rt_kernel_load(r, s->image, "absent", &k, e));
  TRY(RT_TEST_LAUNCH(k, st, 1, e, {0}));
  const Status st1 = rt_stream_sync(st, e);
  WANT(st1 == ST_DEADLINE || (rt_rank_index(r) == 1 && st1 == ST_OK));
  if (st1 != ST_OK)
    WANT(says(e, "waits at a barrier of all ranks; missing: rank 1 (0 of 1) at kernels/demo.py:113:5"));
  TRY(rt_recover(r, e));
  TRY(rt_barrier(r, e));
  // the same on the host's side
  if (rt_rank_index(r) == 1) {
    while (rt_team_failure(rt_rank_team(r), e) == ST_OK) os_sleep_ns(1000000);
  } else {
    WANT(rt_barrier(r, e) == ST_DEADLINE);
  }
  WANT(says(e, "it came to 'barrier', but these ranks did not within " FAULT_TEXT ": 1"));
  TRY(rt_recover(r, e));
  TRY(rt_barrier(r, e));
  rt_stream_destroy(st);
  rt_kernel_destroy(k);
  return ST_OK;
}

static Status mismatch(RtRank *r, const Shared *s, RtError *e) {
  (void)s;
  const int me = rt_rank_index(r), world = rt_team_world(rt_rank_team(r));
  void *p, *q;
  WANT(rt_symm_alloc(r, me == 1 ? 8192 : 4096, "x", &p, e) == ST_MISMATCH);
  WANT(says(e, "rank 0: symm_alloc of 4096; rank 1: symm_alloc of 8192"));
  TRY(rt_symm_alloc(r, 4096, "x", &p, e));
  WANT((me == 0 ? rt_barrier(r, e) : rt_symm_free(r, p, e)) == ST_MISMATCH);
  WANT(says(e, "rank 0: barrier; rank 1: symm_free"));
  WANT((me == 0 ? rt_symm_free(r, (char *)p + 1, e) : rt_symm_free(r, p, e)) == ST_MISMATCH);
  TRY(rt_symm_peer(r, p, world - 1, &q, e));
  long all[RT_MAX_RANKS], mine = me * 11;
  for (int k = 0; k < 100; k++) {
    mine++;
    TRY(rt_exchange(r, &mine, sizeof mine, all, e));
    for (int i = 0; i < world; i++) WANT(all[i] == i * 11 + k + 1);
  }
  return rt_symm_free(r, p, e);
}

static Status own_memory(RtRank *r, const Shared *s, RtError *e) {
  (void)s;
  const int me = rt_rank_index(r), world = rt_team_world(rt_rank_team(r));
  long *mine = calloc(100, sizeof *mine);
  const Status st = rt_symm_register(r, mine, 800, "mine", e);
  if (strcmp(rt_team_transport(rt_rank_team(r)), "shm") == 0) {
    free(mine);
    WANT(st == ST_UNSUPPORTED && says(e, "symm_alloc"));
    return ST_OK;
  }
  TRY(st);
  RtStream *stream;
  TRY(rt_stream_create(r, NULL, &stream, e));
  for (int i = 0; i < world; i++) {
    void *p;
    TRY(rt_symm_peer(r, &mine[me], i, &p, e));
    __atomic_store_n((long *)p, me + 5, __ATOMIC_RELEASE);
    TRY(rt_signal_add(stream, (uint64_t *)&mine[50], 1, i, e));
  }
  TRY(rt_signal_wait(stream, (uint64_t *)&mine[50], (uint64_t)world, e));
  TRY(rt_stream_sync(stream, e));
  for (int i = 0; i < world; i++) WANT(mine[i] == i + 5);
  TRY(rt_symm_unregister(r, mine, e));
  void *p;
  WANT(rt_symm_peer(r, mine, 0, &p, e) == ST_INVALID);
  rt_stream_destroy(stream);
  free(mine);
  return ST_OK;
}

// A rank's process is killed while all others wait for it in a kernel.
static Status killed_one(RtRank *r, const Shared *s, int victim, RtError *e) {
  const int me = rt_rank_index(r);
  RtStream *st;
  RtKernel *k;
  uint64_t *flag;
  char text[64];
  TRY(rt_stream_create(r, NULL, &st, e));
  TRY(rt_kernel_load(r, s->image, "hang", &k, e));
  TRY(rt_symm_alloc(r, 8, "flag", (void **)&flag, e));
  TRY(RT_TEST_LAUNCH(k, st, 1, e, rt_test_ptr(flag)));
  TRY(rt_barrier(r, e));
  if (me == victim) {
    os_sleep_ns(20000000);
    kill(getpid(), SIGKILL);
  }
  const uint64_t begin = os_now_ns();
  const Status st1 = rt_stream_sync(st, e);
  WANT(st1 == ST_PEER_LOST);
  WANT(os_now_ns() - begin < 5000000000ull);
  snprintf(text, sizeof text, "rank %d (process ", victim);
  WANT(says(e, text));
  WANT(says(e, "'flag' + 0 should be >= 1, but is 0"));
  WANT(rt_barrier(r, e) == ST_PEER_LOST);
  WANT(rt_recover(r, e) == ST_PEER_LOST);
  rt_stream_destroy(st);
  rt_kernel_destroy(k);
  return ST_OK;
}

static Status killed(RtRank *r, const Shared *s, RtError *e) {
  return killed_one(r, s, rt_team_world(rt_rank_team(r)) - 1, e);
}
// The one that brought the others together.
static Status killed_first(RtRank *r, const Shared *s, RtError *e) { return killed_one(r, s, 0, e); }

// The last rank goes away in peace while the others still want something.
static Status left(RtRank *r, const Shared *s, RtError *e) {
  (void)s;
  const int me = rt_rank_index(r), world = rt_team_world(rt_rank_team(r));
  TRY(rt_barrier(r, e));
  if (me == world - 1) return ST_OK;
  WANT(rt_barrier(r, e) == ST_PEER_LOST);
  char text[64];
  snprintf(text, sizeof text, "rank %d has left the team", world - 1);
  WANT(says(e, text));
  return ST_OK;
}

static Status timeline(RtRank *r, const Shared *s, RtError *e) {
  rt_trace_enable(rt_rank_team(r), true);
  TRY(rt_barrier(r, e));
  rt_trace_mark(r, "begin <here> & \"now\"");
  TRY(gather(r, s, e));
  rt_trace_enable(rt_rank_team(r), false);
  TRY(rt_barrier(r, e));
  if (r != rt_team_rank(rt_rank_team(r), 0)) return ST_OK;
  WANT(rt_trace_write(rt_rank_team(r), "trace.txt", e) == ST_INVALID);
  TRY(rt_trace_write(rt_rank_team(r), "trace.svg", e));
  return rt_trace_write(rt_rank_team(r), "trace.json", e);
}

// ---- running them ------------------------------------------------------------------------------------------
static const struct Scenario {
  const char *name;
  Status (*run)(RtRank *r, const Shared *s, RtError *e);
  uint64_t deadline_ms;
} scenarios[] = {
    {"ring", ring, 60000},         {"gather", gather, 60000},
    {"meet", meet, 60000},         {"push", push, 60000},
    {"drop", drop, FAULT_MS},      {"absent", absent, FAULT_MS},
    {"mismatch", mismatch, 20000}, {"own_memory", own_memory, 20000},
    {"killed", killed, 20000},     {"killed_first", killed_first, 20000},
    {"left", left, 20000},         {"timeline", timeline, 60000},
};

static const struct Scenario *scenario(const char *name) {
  for (size_t i = 0; i < DT_COUNTOF(scenarios); i++) {
    if (strcmp(scenarios[i].name, name) == 0) return &scenarios[i];
  }
  return NULL;
}

static Status run_rank(RtRank *r, void *user, RtError *e) {
  const Shared *s = user;
  return scenario(s->scenario)->run(r, s, e);
}

static Status run_team(const char *name, int threads, Image *image, RtError *e) {
  RtContext *c;
  RtTeam *t;
  Shared s = {image, name};
  const RtTeamConfig config = {.local_ranks = threads,
                               .from_environment = !threads,
                               .threads_per_rank = 1,
                               .symmetric_bytes = 8 << 20,
                               .deadline_ns = scenario(name)->deadline_ms * 1000000};
  Status st = rt_context_create(NULL, &c, e);
  if (st != ST_OK) return st;
  st = rt_team_create(c, &config, &t, e);
  if (st == ST_OK) {
    st = rt_team_run(t, run_rank, &s, e);
    rt_team_destroy(t);
  }
  rt_context_destroy(c);
  return st;
}

static Arena arena;
static Escape escape;
static Image *image;
static RtError error;

// Compiled once; the children read it as they would read one made ahead of time.
static char image_path[64];
static void save_image(void) {
  Diags d;
  void *bytes;
  size_t n;
  diags_init(&d, &arena);
  assert_int_equal(image_write(image, &arena, &bytes, &n, &d), ST_OK);
  snprintf(image_path, sizeof image_path, "rt_ranks_%d.dtk", (int)getpid());
  assert_int_equal(os_write_file(image_path, bytes, n), ST_OK);
}

static void threads(const char *name) {
  static const int worlds[] = {1, 2, 3, 4, 8};
  for (size_t i = 0; i < DT_COUNTOF(worlds); i++) {
    if (worlds[i] == 1 &&
        (strcmp(name, "drop") == 0 || strcmp(name, "absent") == 0 || strcmp(name, "mismatch") == 0))
      continue;
    if (run_team(name, worlds[i], image, &error) != ST_OK) fail_msg("%d threads: %s", worlds[i], error.text);
  }
}

static void relay(void *user, int rank, bool err, const char *line) {
  (void)user, (void)err;
  print_message("  rank %d: %s\n", rank, line);
}

static void processes(const char *name, int want_code) {
  static const int worlds[] = {2, 3, 4, 8};
  for (size_t i = 0; i < DT_COUNTOF(worlds); i++) {
    const char *argv[] = {"/proc/self/exe", name, image_path, NULL};
    int code = -1;
    const RtLaunchConfig c = {.argv = argv, .n = worlds[i], .grace_ms = 20000, .output = relay};
    OK(rt_launch_processes(&c, &code, &error));
    if (code != want_code) fail_msg("%d processes: exit code %d: %s", worlds[i], code, error.text);
  }
}

#define BOTH(name) \
  static void test_threads_##name(void **state) { (void)state, threads(#name); } \
  static void test_processes_##name(void **state) { (void)state, processes(#name, 0); }
BOTH(ring)
BOTH(gather)
BOTH(meet)
BOTH(push)
BOTH(drop)
BOTH(absent)
BOTH(mismatch)
BOTH(own_memory)
static void test_killed(void **state) { (void)state, processes("killed", 128 + SIGKILL); }
static void test_killed_first(void **state) { (void)state, processes("killed_first", 128 + SIGKILL); }
static void test_left(void **state) { (void)state, processes("left", 0); }

static void check_timeline(int world) {
  char *text, *svg;
  size_t n;
  assert_int_equal(os_read_file(&arena, "trace.json", 0, &text, &n), ST_OK);
  assert_int_equal(os_read_file(&arena, "trace.svg", 0, &svg, &n), ST_OK);
  for (int r = 0; r < world; r++) {
    char name[64];
    snprintf(name, sizeof name, "\"pid\":%d,\"args\":{\"name\":\"rank %d\"}", r, r);
    assert_non_null(strstr(text, name));
    snprintf(name, sizeof name, ">rank %d</text>", r);
    assert_non_null(strstr(svg, name));
  }
  assert_non_null(strstr(text, "\"name\":\"gather\",\"cat\":\"launch\""));
  assert_non_null(strstr(text, "begin <here> & \\\"now\\\""));
  assert_non_null(strstr(svg, "begin &#60;here&#62; &#38; &#34;now&#34;"));
  unlink("trace.json");
  if (!getenv("KEEP")) unlink("trace.svg");
}

static void test_timeline(void **state) {
  (void)state;
  OK(run_team("timeline", 2, image, &error));
  check_timeline(2);
  const char *argv[] = {"/proc/self/exe", "timeline", image_path, NULL};
  int code = -1;
  const RtLaunchConfig c = {.argv = argv, .n = 3, .output = relay};
  OK(rt_launch_processes(&c, &code, &error));
  assert_int_equal(code, 0);
  check_timeline(3);
}

static int child(const char *name, const char *path) {
  Diags d;
  char *bytes;
  size_t n;
  diags_init(&d, &arena);
  if (os_read_file(&arena, path, 0, &bytes, &n) != ST_OK || image_read(&arena, bytes, n, &image, &d) != ST_OK)
    return 3;
  const Status s = scenario(name) ? run_team(name, 0, image, &error) : ST_NOT_FOUND;
  if (s == ST_OK) return 0;
  fprintf(stderr, "%s: %s: %s\n", name, status_name(s), error.text);
  return 1;
}

int main(int argc, char **argv) {
  arena_init(&arena, 0, &escape);
  if (ESCAPE_TRY(&escape)) return 2;
  if (argc > 2) return child(argv[1], argv[2]);
  image = rt_test_image(&arena, KERNELS, NAMES, WAITING);
  save_image();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads_ring),
      cmocka_unit_test(test_processes_ring),
      cmocka_unit_test(test_threads_gather),
      cmocka_unit_test(test_processes_gather),
      cmocka_unit_test(test_threads_meet),
      cmocka_unit_test(test_processes_meet),
      cmocka_unit_test(test_threads_push),
      cmocka_unit_test(test_processes_push),
      cmocka_unit_test(test_threads_drop),
      cmocka_unit_test(test_processes_drop),
      cmocka_unit_test(test_threads_absent),
      cmocka_unit_test(test_processes_absent),
      cmocka_unit_test(test_threads_mismatch),
      cmocka_unit_test(test_processes_mismatch),
      cmocka_unit_test(test_threads_own_memory),
      cmocka_unit_test(test_processes_own_memory),
      cmocka_unit_test(test_killed),
      cmocka_unit_test(test_killed_first),
      cmocka_unit_test(test_left),
      cmocka_unit_test(test_timeline),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(image_path);
  arena_free(&arena);
  return failed;
}
