// Mutants: the distributed kernels run under the checker as their operators launch them, two calls one after the other. Unchanged
// they are clean in every schedule tried. Then, one at a time, each barrier, fence, release, acquire, wait, signal and order in
// them is taken away or weakened; every such mutant must be reported, with both lines where two accesses are at fault.
// TIMEOUT: 300
#include "harness/test.h"
#include "front/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, CALLS = 2, SEEDS = 12, MAX_BUFS = 24, MAX_STEPS = 64, MAX_KERNELS = 12 };

typedef struct Buf {
  const char *name;
  size_t bytes;
  int segment;
  bool zeroed;          // contents count as written
  const int32_t *words; // they begin with these
  int nwords;
  char *base[RANKS];
} Buf;
typedef struct Kernel {
  const char *name;
  IrModule *module;
  IrFunc *func;
  InterpArg args[RANKS][32];
} Kernel;
typedef struct Step {
  InterpCmdKind kind;
  int stream, wait_stream, kernel;
  uint32_t grid[2];
  Buf *dst,
      *src; // copies: to `peer` (-1: itself), bytes from src_at to dst_at; *_per_rank: and that much for each own rank
  int peer_shift;
  size_t dst_at, src_at, dst_per_rank, src_per_rank, src_per_peer, bytes;
} Step;
typedef struct Scenario {
  const char *name;
  Arena arena;
  Escape escape;
  Diags diags;
  IrCtx *ctx;
  Buf bufs[MAX_BUFS];
  int nbufs, nsteps, nkernels;
  Step steps[MAX_STEPS];
  Kernel kernels[MAX_KERNELS];
} Scenario;

// ---- describing ----------------------------------------------------------------------------------------------------------
static void buf(Scenario *s, const char *name, size_t bytes, bool symmetric, bool zeroed) {
  Buf *b = &s->bufs[s->nbufs];
  *b = (Buf){.name = name, .bytes = bytes, .segment = symmetric ? s->nbufs : -1, .zeroed = zeroed};
  for (int k = 0; k < RANKS; k++) b->base[k] = arena_alloc(&s->arena, bytes + 64, 64);
  s->nbufs++;
}
static Buf *find(Scenario *s, const char *name, size_t n) {
  for (int k = 0; k < s->nbufs; k++)
    if (strlen(s->bufs[k].name) == n && !memcmp(s->bufs[k].name, name, n)) return &s->bufs[k];
  fail_msg("no buffer %.*s", (int)n, name);
  return NULL;
}

// args: "x_ptr=@x:f32 n=100 BLOCK:=64": a pointer, a run-time i32, a constant. A buffer's name may end in +BYTES.
static int kernel_of(Scenario *s, const char *file, const char *name, const char *args) {
  for (int k = 0; k < s->nkernels; k++)
    if (!strcmp(s->kernels[k].name, arena_printf(&s->arena, "%s %s", name, args))) return k;
  assert_true(s->nkernels < MAX_KERNELS);
  Kernel *k = &s->kernels[s->nkernels];
  k->name = arena_printf(&s->arena, "%s %s", name, args);
  FrontSpec specs[32];
  struct {
    const char *name;
    Buf *b;
    size_t off;
    int64_t i;
  } values[32];
  int n = 0;
  char *copy = arena_strdup(&s->arena, args), *save = NULL;
  for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save), n++) {
    char *eq = strchr(w, '=');
    const bool constant = eq[-1] == ':';
    eq[constant ? -1 : 0] = 0;
    const char *v = eq + 1;
    specs[n] = (FrontSpec){.name = w, .kind = constant ? FRONT_CONST : FRONT_SCALAR, .dtype = FDT_int32};
    values[n].name = w;
    values[n].b = NULL;
    if (*v == '@') {
      const char *type = strchr(v, ':'), *plus = strchr(v, '+');
      const char *end = plus && plus < type ? plus : type;
      specs[n].kind = FRONT_POINTER;
      specs[n].dtype = (FrontDtype)front_dtype_parse(type + 1, strlen(type + 1));
      values[n].b = find(s, v + 1, (size_t)(end - v - 1));
      values[n].off = end == plus ? (size_t)atoi(plus + 1) : 0;
    } else {
      values[n].i = atoll(v);
      if (constant) specs[n].value = (FrontConst){.kind = FCONST_INT, .i = values[n].i};
    }
  }
  const FrontSource src = {
      .path = arena_printf(&s->arena, "%s/kernels/%s", getenv("ROOT") ? getenv("ROOT") : ".", file)};
  if (front_compile(&s->arena, &s->diags, s->ctx, &src, name, specs, n, &(FrontOptions){0}, &k->module) !=
      ST_OK)
    fail_msg("%s", diags_render(&s->diags, &s->arena));
  for (k->func = k->module->funcs; !k->func->is_kernel; k->func = k->func->next) {}
  for (uint32_t p = 0; p < k->func->params.len; p++) {
    for (int q = 0; q < n; q++) {
      if (strcmp(k->func->params.data[p].name->s, values[q].name) != 0) continue;
      for (int r = 0; r < RANKS; r++) {
        if (values[q].b)
          k->args[r][p].p = values[q].b->base[r] + values[q].off;
        else
          k->args[r][p].i = values[q].i;
      }
    }
  }
  return s->nkernels++;
}

static void launch(Scenario *s, int stream, const char *file, const char *name, uint32_t x, uint32_t y,
                   const char *args) {
  s->steps[s->nsteps++] = (Step){
      .kind = INTERP_LAUNCH, .stream = stream, .kernel = kernel_of(s, file, name, args), .grid = {x, y}};
}
static void wait_stream(Scenario *s, int stream, int other) {
  s->steps[s->nsteps++] = (Step){.kind = INTERP_WAIT_STREAM, .stream = stream, .wait_stream = other};
}
static void copy_to_peers(Scenario *s, int stream, const char *dst, const char *src,
                          size_t bytes) { // dst[rank] of every rank = src
  for (int p = 0; p < RANKS; p++)
    s->steps[s->nsteps++] = (Step){.kind = INTERP_COPY,
                                   .stream = stream,
                                   .dst = find(s, dst, strlen(dst)),
                                   .src = find(s, src, strlen(src)),
                                   .peer_shift = p,
                                   .dst_per_rank = bytes,
                                   .bytes = bytes};
}

// Two launches of `calls=2` each; epoch is the number of the first call.
static void twice(Scenario *s, const char *file, const char *kernel, uint32_t x, const char *args) {
  for (int c = 0; c < CALLS; c++) {
    launch(s, 0, "collectives.py", "advance_epoch_kernel", 1, 1, "epoch_ptr=@epoch:i64");
    launch(s, 0, file, kernel, x, 1, arena_printf(&s->arena, "%s calls=2", args));
    launch(s, 0, "collectives.py", "advance_epoch_kernel", 1, 1, "epoch_ptr=@epoch:i64");
  }
}

static void scenario_open(Scenario *s, const char *name) {
  memset(s, 0, sizeof *s);
  s->name = name;
  arena_init(&s->arena, 0, &s->escape);
  diags_init(&s->diags, &s->arena);
  s->ctx = ir_ctx_new(&s->arena);
  buf(s, "flags", 256 * 8, true, true);
  buf(s, "acks", RANKS * 8, true, true);
  buf(s, "done", RANKS * 8, true, true);
  buf(s, "epoch", 16, false, true);
}

#define C "collectives.py"
static void advance(Scenario *s) { launch(s, 0, C, "advance_epoch_kernel", 1, 1, "epoch_ptr=@epoch:i64"); }
static void announce(Scenario *s, const char *words) {
  launch(s, 0, C, "announce_kernel", RANKS, 1,
         arena_printf(&s->arena, "flags_ptr=@%s:i64 epoch_ptr=@epoch:i64 per_epoch=1", words));
}
static void wait_all(Scenario *s, const char *words, int per_epoch, int lag) {
  launch(s, 0, C, "wait_all_kernel", 1, 1,
         arena_printf(&s->arena, "flags_ptr=@%s:i64 epoch_ptr=@epoch:i64 per_epoch=%d lag=%d", words,
                      per_epoch, lag));
}
static void use(Scenario *s, const char *what, int n) { // reads what arrived
  launch(s, 0, "elementwise.py", "add_kernel", 1, 1,
         arena_printf(&s->arena,
                      "x_ptr=@%s:f32 y_ptr=@%s:f32 out_ptr=@used:f32 n_elements=%d BLOCK_SIZE:=512", what,
                      what, n));
}

static void produce(Scenario *s) { // x anew
  launch(s, 0, "elementwise.py", "add_kernel", 1, 1,
         "x_ptr=@given:f32 y_ptr=@given:f32 out_ptr=@x:f32 n_elements=100 BLOCK_SIZE:=128");
}

// ---- the operators ---------------------------------------------------------------------------------------------------------
static void gather_buffers(Scenario *s) {
  buf(s, "given", 400, false, true);
  buf(s, "x", 400, true, true);
  buf(s, "g", RANKS * 400, true, true);
  buf(s, "out", RANKS * 400, false, false);
  buf(s, "used", RANKS * 400, false, false);
}

static void all_gather_push(Scenario *s) {
  gather_buffers(s);
  for (int c = 0; c < CALLS; c++) {
    advance(s);
    launch(
        s, 0, C, "all_gather_push_kernel", 2, RANKS,
        "x_ptr=@x:f32 gathered_ptr=@g:f32 flags_ptr=@flags:i64 acks_ptr=@acks:i64 epoch_ptr=@epoch:i64 n=100 BLOCK:=32");
    wait_all(s, "flags", 2, 0);
    use(s, "g", RANKS * 100);
    announce(s, "acks");
  }
}
static void all_gather_ring(Scenario *s) {
  gather_buffers(s);
  for (int c = 0; c < CALLS; c++) {
    advance(s);
    launch(
        s, 0, C, "all_gather_ring_kernel", 2, 1,
        "x_ptr=@x:f32 gathered_ptr=@g:f32 flags_ptr=@flags:i64 acks_ptr=@acks:i64 epoch_ptr=@epoch:i64 n=100 BLOCK:=32");
    use(s, "g", RANKS * 100);
    announce(s, "acks");
  }
}
static void pulled(Scenario *s, const char *kernel, int parts, int y, const char *args) {
  gather_buffers(s);
  for (int c = 0; c < CALLS; c++) {
    advance(s);
    wait_all(s, "acks", 1, 1);
    produce(s);
    announce(s, "flags");
    launch(s, 0, C, kernel, (uint32_t)parts, (uint32_t)y, args);
    announce(s, "acks");
  }
}
static void all_gather_pull(Scenario *s) {
  pulled(s, "all_gather_pull_kernel", 2, RANKS,
         "x_ptr=@x:f32 out_ptr=@out:f32 flags_ptr=@flags:i64 epoch_ptr=@epoch:i64 n=100 BLOCK:=32");
}
static void reduce_scatter(Scenario *s) {
  pulled(s, "reduce_scatter_kernel", 2, 1,
         "x_ptr=@x:f32 out_ptr=@out:f32 flags_ptr=@flags:i64 epoch_ptr=@epoch:i64 n=25 BLOCK:=16");
}
static void all_reduce_one_shot(Scenario *s) {
  pulled(s, "all_reduce_one_shot_kernel", 2, 1,
         "x_ptr=@x:f32 out_ptr=@out:f32 flags_ptr=@flags:i64 epoch_ptr=@epoch:i64 n=100 BLOCK:=32");
}
static void all_reduce_two_shot(Scenario *s) {
  gather_buffers(s);
  for (int c = 0; c < CALLS; c++) {
    advance(s);
    wait_all(s, "acks", 1, 1);
    produce(s);
    announce(s, "flags");
    launch(
        s, 0, C, "all_reduce_two_shot_kernel", 2, 1,
        "x_ptr=@x:f32 gathered_ptr=@g:f32 flags_ptr=@flags:i64 done_ptr=@done:i64 epoch_ptr=@epoch:i64 n=100 chunk=25 BLOCK:=16");
    wait_all(s, "done", 2, 0);
    use(s, "g", 100);
    announce(s, "acks");
  }
}
static void all_to_all(Scenario *s) {
  gather_buffers(s);
  for (int c = 0; c < CALLS; c++) {
    advance(s);
    launch(
        s, 0, C, "all_to_all_kernel", 2, RANKS,
        "x_ptr=@x:f32 received_ptr=@g:f32 flags_ptr=@flags:i64 acks_ptr=@acks:i64 epoch_ptr=@epoch:i64 n=25 BLOCK:=16");
    wait_all(s, "flags", 2, 0);
    use(s, "g", RANKS * 25);
    announce(s, "acks");
  }
}

#define SHAPE "M=64 N=32 K=32 BLOCK_M:=16 BLOCK_N:=16 BLOCK_K:=16 GROUP_M:=2"
static void gemm_buffers(Scenario *s) {
  buf(s, "shard", 64 / RANKS * 32 * 4, true, true);
  buf(s, "a", 64 * 32 * 4, true, true);
  buf(s, "left", 64 * 32 * 4, false, true);
  buf(s, "b", 32 * 32 * 4, false, true);
  buf(s, "c", 64 * 32 * 4, false, false);
  buf(s, "partial", RANKS * 64 * 32 * 4, true, true);
}
static void ag_gemm_copy_engine(Scenario *s) {
  gemm_buffers(s);
  for (int c = 0; c < CALLS; c++) {
    advance(s);
    wait_all(s, "acks", 1, 1);
    wait_stream(s, 1, 0);
    for (int p = 0; p < RANKS; p++) {
      copy_to_peers(s, 1, "a", "shard", 64 / RANKS * 32 * 4);
      s->nsteps -= RANKS - 1;
      s->steps[s->nsteps - 1].peer_shift = p;
      copy_to_peers(s, 1, "flags", "epoch", 8);
      s->nsteps -= RANKS - 1;
      s->steps[s->nsteps - 1].peer_shift = p;
    }
    launch(
        s, 0, "overlap.py", "ag_gemm_kernel", 8, 1,
        "a_ptr=@a:f32 b_ptr=@b:f32 c_ptr=@c:f32 flags_ptr=@flags:i64 epoch_ptr=@epoch:i64 per_epoch=1 " SHAPE);
    wait_stream(s, 0, 1);
    announce(s, "acks");
  }
}
static void ag_gemm_put(Scenario *s) {
  gemm_buffers(s);
  for (int c = 0; c < CALLS; c++) {
    advance(s);
    wait_stream(s, 1, 0);
    launch(
        s, 1, "overlap_raw.py", "all_gather_put_kernel", RANKS, 1,
        "x_ptr=@shard:f32 gathered_ptr=@a:f32 flags_ptr=@flags:i64 acks_ptr=@acks:i64 epoch_ptr=@epoch:i64 bytes_per_rank=2048");
    launch(s, 0, "overlap_raw.py", "ag_gemm_wait_kernel", 8, 1,
           "a_ptr=@a:f32 b_ptr=@b:f32 c_ptr=@c:f32 flags_ptr=@flags:i64 epoch_ptr=@epoch:i64 " SHAPE);
    wait_stream(s, 0, 1);
    announce(s, "acks");
  }
}

// A GEMM that scatters partial sums, and the kernel that adds them up.
static void gemm_then_sum(Scenario *s, const char *file, const char *gemm, const char *sum_file,
                          const char *sum, const char *sum_args) {
  gemm_buffers(s);
  for (int c = 0; c < CALLS; c++) {
    advance(s);
    launch(s, 0, file, gemm, 8, 1,
           "a_ptr=@left:f32 b_ptr=@b:f32 partial_ptr=@partial:f32 flags_ptr=@flags:i64 acks_ptr=@acks:i64 "
           "epoch_ptr=@epoch:i64 " SHAPE);
    launch(s, 0, sum_file, sum, 2, 1,
           arena_printf(&s->arena,
                        "partial_ptr=@partial:f32 out_ptr=@c:f32 flags_ptr=@flags:i64 epoch_ptr=@epoch:i64 "
                        "BLOCK:=256 %s",
                        sum_args));
    announce(s, "acks");
  }
}
#define O "overlap.py"
#define RAW "overlap_raw.py"
static void gemm_rs(Scenario *s) {
  gemm_then_sum(s, O, "gemm_rs_kernel", O, "sum_partials_kernel", "n=512 per_epoch=2");
}
static void gemm_rs_notify(Scenario *s) {
  gemm_then_sum(s, RAW, "gemm_rs_notify_kernel", O, "sum_partials_kernel", "n=512 per_epoch=2");
}
static void gemm_ar(Scenario *s) {
  gemm_then_sum(s, O, "gemm_ar_kernel", O, "sum_partials_kernel", "n=2048 per_epoch=8");
}
static void gemm_ar_notify(Scenario *s) {
  gemm_then_sum(s, RAW, "gemm_ar_notify_kernel", RAW, "sum_partials_wait_kernel", "n=2048 n_flags=32");
}
// ---- the kernels of threads ------------------------------------------------------------------------------------------------
#define LOW "lowlevel.py"
#define MOE "moe.py"
static void prefix_sum(Scenario *s) { // within a rank
  buf(s, "x", 2 * 160, false, true);
  buf(s, "out", 2 * 160, false, false);
  buf(s, "sums", 12, false, true);
  for (int c = 0; c < CALLS; c++)
    launch(s, 0, LOW, "prefix_sum_kernel", 3, 1,
           "x_ptr=@x:i32 out_ptr=@out:i32 sums_ptr=@sums:i32 arrived_ptr=@done:i32 calls=2 n=40 BLOCK:=16");
}
static void gather_by_threads(Scenario *s, size_t symmetric) {
  buf(s, "x", 2 * 150 * 4, false, true); // more than a warp holds, and ragged
  buf(s, "g", symmetric, true, true);
  buf(s, "out", 2 * RANKS * 150 * 4, false, false);
}
static void all_gather_ll(Scenario *s) {
  gather_by_threads(s, 2 * RANKS * 300 * 4);
  twice(s, LOW, "all_gather_ll_kernel", RANKS,
        "x_ptr=@x:u32 out_ptr=@out:u32 words_ptr=@g:u32 epoch_ptr=@epoch:i64 n=149");
}
static void all_gather_push_vec(Scenario *s) {
  gather_by_threads(s, RANKS * 150 * 4);
  twice(
      s, LOW, "all_gather_push_kernel", RANKS,
      "x_ptr=@x:f32 out_ptr=@out:f32 gathered_ptr=@g:f32 flags_ptr=@flags:i32 epoch_ptr=@epoch:i64 n=149 VEC:=4");
}
static void gathered(Scenario *s) {
  gather_buffers(s);
  for (int c = 0; c < CALLS; c++) {
    advance(s);
    wait_all(s, "acks", 1, 1);
    wait_stream(s, 1, 0);
    copy_to_peers(s, 1, "g", "x", 400);
    copy_to_peers(s, 1, "flags", "epoch", 8);
    launch(s, 0, LOW, "gathered_kernel", 2, RANKS,
           "gathered_ptr=@g:f32 out_ptr=@out:f32 flags_ptr=@flags:i64 epoch_ptr=@epoch:i64 n=100 BLOCK:=32");
    wait_stream(s, 0, 1);
    announce(s, "acks");
  }
}
static void two_shot_threads(Scenario *s) {
  buf(s, "x", 2 * 301 * 4, false, true);
  buf(s, "mine", 301 * 4, true, true);
  buf(s, "sum", 301 * 4, true, true);
  buf(s, "out", 2 * 301 * 4, false, false);
  twice(s, LOW, "all_reduce_two_shot_kernel", 2,
        "x_ptr=@x:f32 out_ptr=@out:f32 mine_ptr=@mine:f32 sum_ptr=@sum:f32 flags_ptr=@flags:i32 "
        "epoch_ptr=@epoch:i64 n=301 VEC:=4");
}
static void ring_reduce_scatter(Scenario *s) {
  buf(s, "x", 2 * RANKS * 20 * 4, false, true);
  buf(s, "slots", (RANKS - 1) * 20 * 4, true, true);
  buf(s, "out", 2 * 20 * 4, false, false);
  twice(s, LOW, "reduce_scatter_ring_kernel", 2,
        "x_ptr=@x:f32 out_ptr=@out:f32 slots_ptr=@slots:f32 flags_ptr=@flags:u64 acks_ptr=@acks:u64 "
        "epoch_ptr=@epoch:i64 n=20 BLOCK:=16");
}
static void queue(Scenario *s) {
  buf(s, "x", 120 * 4, false, true);
  buf(s, "slots", 4 * 16 * 4, true, true);
  buf(s, "out", 120 * 4, false, false);
  launch(s, 0, LOW, "queue_kernel", 3, 1,
         "x_ptr=@x:f32 out_ptr=@out:f32 queue_ptr=@slots:f32 full_ptr=@flags:u64 tiles=8 n=120 PRODUCERS:=2 "
         "CONSUMERS:=1 SLOTS:=4 BLOCK:=16");
}

static const int32_t splits[2 * 8] = {1, 0, 2, 1, 0, 0, 1, 1,
                                      0, 2, 0, 0, 1, 1, 1, 1}; // of 6 tokens, over 8 experts
static void expert_buffers(Scenario *s) {
  buf(s, "x", 2 * RANKS * 6 * 4 * 4, false, true);
  buf(s, "splits", sizeof splits, false, true);
  s->bufs[s->nbufs - 1].words = splits;
  s->bufs[s->nbufs - 1].nwords = 16;
  buf(s, "recv", 2 * RANKS * 6 * 4 * 4, true, true);
  buf(s, "counts", 2 * RANKS * 2 * 4, true, true);
  buf(s, "out", 2 * RANKS * 6 * 4 * 4, false, false);
  buf(s, "out_counts", 2 * RANKS * 2 * 4, false, false);
}
#define EXPERTS_ARGS \
  "signals_ptr=@flags:u64 epoch_ptr=@epoch:i64 x_rows=6 max_rows=6 HIDDEN:=4 EXPERTS:=8 PER_RANK:=2 BLOCK:=16"
static void dispatch(Scenario *s) {
  expert_buffers(s);
  twice(
      s, MOE, "dispatch_kernel", RANKS,
      "x_ptr=@x:f32 splits_ptr=@splits:i32 out_ptr=@out:f32 out_splits_ptr=@out_counts:i32 recv_ptr=@recv:f32 "
      "recv_splits_ptr=@counts:i32 " EXPERTS_ARGS);
}
static void combine(Scenario *s) {
  expert_buffers(s);
  twice(s, MOE, "combine_kernel", RANKS,
        "y_ptr=@x:f32 splits_ptr=@splits:i32 out_ptr=@out:f32 recv_ptr=@recv:f32 " EXPERTS_ARGS);
}

static const struct {
  const char *name;
  void (*describe)(Scenario *s);
} scenarios[] = {{"prefix_sum", prefix_sum},
                 {"all_gather_ll", all_gather_ll},
                 {"all_gather_push_vec", all_gather_push_vec},
                 {"gathered", gathered},
                 {"two_shot_threads", two_shot_threads},
                 {"ring_reduce_scatter", ring_reduce_scatter},
                 {"queue", queue},
                 {"dispatch", dispatch},
                 {"combine", combine},
                 {"all_gather_push", all_gather_push},
                 {"all_gather_ring", all_gather_ring},
                 {"all_gather_pull", all_gather_pull},
                 {"reduce_scatter", reduce_scatter},
                 {"all_reduce_one_shot", all_reduce_one_shot},
                 {"all_reduce_two_shot", all_reduce_two_shot},
                 {"all_to_all", all_to_all},
                 {"ag_gemm_copy_engine", ag_gemm_copy_engine},
                 {"ag_gemm_put", ag_gemm_put},
                 {"gemm_rs", gemm_rs},
                 {"gemm_rs_notify", gemm_rs_notify},
                 {"gemm_ar", gemm_ar},
                 {"gemm_ar_notify", gemm_ar_notify}};

// ---- running -----------------------------------------------------------------------------------------------------------------
static void run(Scenario *s, Arena *a, int mutated, const IrFunc *mutant, uint64_t seed,
                InterpResult *result) {
  InterpMemory memory[MAX_BUFS * RANKS];
  InterpCmd cmds[MAX_STEPS * RANKS];
  int nm = 0, nc = 0;
  for (int k = 0; k < s->nbufs; k++) {
    const Buf *b = &s->bufs[k];
    for (int r = 0; r < RANKS; r++) {
      memset(b->base[r], 0, b->bytes);
      if (b->nwords) memcpy(b->base[r], b->words, sizeof *b->words * (size_t)b->nwords);
      memory[nm++] = (InterpMemory){.base = b->base[r],
                                    .bytes = b->bytes,
                                    .name = b->name,
                                    .rank = r,
                                    .segment = b->segment,
                                    .initialised = b->zeroed};
    }
  }
  for (int k = 0; k < s->nsteps; k++) {
    const Step *st = &s->steps[k];
    for (int r = 0; r < RANKS; r++) {
      InterpCmd *c = &cmds[nc++];
      const int peer = (r + st->peer_shift) % RANKS;
      *c = (InterpCmd){.kind = st->kind,
                       .rank = r,
                       .stream = st->stream,
                       .wait_stream = st->wait_stream,
                       .bytes = st->bytes};
      if (st->kind == INTERP_LAUNCH) {
        c->func = st->kernel == mutated ? mutant : s->kernels[st->kernel].func;
        c->grid[0] = st->grid[0], c->grid[1] = st->grid[1], c->grid[2] = 1;
        c->args = s->kernels[st->kernel].args[r];
      }
      if (st->dst) c->dst = st->dst->base[peer] + st->dst_at + (size_t)r * st->dst_per_rank;
      if (st->src) c->src = st->src->base[r] + st->src_at;
    }
  }
  const InterpConfig config = {.arena = a,
                               .module = s->kernels[0].module,
                               .ranks = RANKS,
                               .memory = memory,
                               .nmemory = nm,
                               .cmds = cmds,
                               .ncmds = nc,
                               .seed = seed,
                               .max_steps = 20000000,
                               .check = true};
  interp_run(&config, result);
}

static const char *findings(Arena *a, const InterpResult *r) {
  char *t = arena_printf(a, "%s", status_name(r->status));
  for (int k = 0; k < r->nfindings; k++) {
    const InterpFinding *f = &r->findings[k];
    t = arena_printf(a, "%s\n      %s, %u / %u: %s", t, interp_fault_names[f->fault], f->here.line,
                     f->other.line, f->text);
  }
  return t;
}

// Whatever ends the memory of a scenario ends the test.
static void with_scenario(size_t k, void (*body)(Scenario *s, void *user), void *user) {
  static Scenario s;
  scenario_open(&s, scenarios[k].name);
  if (ESCAPE_TRY(&s.escape)) fail_msg("%s", s.escape.message);
  scenarios[k].describe(&s);
  body(&s, user);
  arena_free(&s.arena);
}

static void run_original(Scenario *s, void *user) {
  (void)user;
  for (uint64_t seed = 0; seed < 2 * SEEDS; seed++) {
    InterpResult r;
    run(s, &s->arena, -1, NULL, seed, &r);
    if (r.status != ST_OK)
      fail_msg("%s, seed %llu: %s", s->name, (unsigned long long)seed, findings(&s->arena, &r));
  }
}

static void test_originals(void **state) {
  (void)state;
  for (size_t k = 0; k < DT_COUNTOF(scenarios); k++) with_scenario(k, run_original, NULL);
}

// ---- mutating --------------------------------------------------------------------------------------------------------------------
typedef enum How { REMOVE, RELAX, NARROW, UNBLOCK, HOWS } How;
static const char *const how_names[] = {"removed", "relaxed", "at gpu scope", "without its barrier"};

static bool is_scope(const IrOp *op, IrScope s) {
  return ir_attr(op, ATTR_scope) && ir_attr_i(op, ATTR_scope) == (int64_t)s;
}

static void drop(IrOp *op) { // a token's users lose it
  for (uint32_t k = 0; k < op->nresults; k++) {
    while (op->results[k].uses) {
      IrOp *user = op->results[k].uses->user;
      ir_replace_uses(&user->results[0], user->operands[0].value); // consume v, token
      ir_erase(user);
    }
  }
  ir_erase(op);
}

static void turn_into(IrOp *op, IrOpKind kind, IrOrder order) {
  IrBuilder b = ir_builder_before(op);
  b.loc = op->loc;
  IrValue *operands[3] = {ir_operand(op, 0), ir_operand(op, 1), ir_operand(op, 2)};
  if (kind == OP_wait) operands[2] = operands[1], operands[1] = NULL;
  const IrType *token = ir_type_token(b.m->ctx);
  IrOp *n = ir_build(&b, kind, 3, operands, op->nresults, &token, 0);
  for (uint32_t k = 0; k < op->nattrs; k++)
    if (op->attrs[k].name != ATTR_label) ir_set_attr_i(n, op->attrs[k].name, op->attrs[k].i);
  ir_set_attr_i(n, ATTR_order, order);
  for (uint32_t k = 0; k < op->nresults; k++) ir_replace_uses(&op->results[k], &n->results[k]);
  ir_erase(op);
}

static bool mutate(IrOp *op, How how) {
  switch (op->kind) {
  case OP_barrier:
  case OP_fence:
  case OP_put_fence:
  case OP_put_quiet:
  case OP_team_barrier:
    if (how == REMOVE) drop(op);
    return how == REMOVE;
  case OP_release:
    if (how == REMOVE)
      drop(op);
    else if (how == RELAX && ir_operand(op, 2))
      turn_into(op, OP_signal, ORDER_relaxed);
    else if (how == UNBLOCK && ir_operand(op, 2))
      turn_into(op, OP_signal, ORDER_release);
    else if (how == NARROW && is_scope(op, SCOPE_sys))
      ir_set_attr_i(op, ATTR_scope, SCOPE_gpu);
    else
      return false;
    return true;
  case OP_acquire:
    if (how == REMOVE)
      drop(op);
    else if (how == RELAX)
      turn_into(op, OP_wait, ORDER_relaxed);
    else if (how == NARROW && is_scope(op, SCOPE_sys))
      ir_set_attr_i(op, ATTR_scope, SCOPE_gpu);
    else
      return false;
    return true;
  case OP_wait:
  case OP_signal:
  case OP_put_signal:
    if (how == REMOVE)
      drop(op);
    else if (how == RELAX && ir_attr_i(op, ATTR_order) > ORDER_relaxed)
      ir_set_attr_i(op, ATTR_order, ORDER_relaxed);
    else if (how == NARROW && is_scope(op, SCOPE_sys))
      ir_set_attr_i(op, ATTR_scope, SCOPE_gpu);
    else
      return false;
    return true;
  case OP_load:
  case OP_store:
  case OP_atomic_rmw:
  case OP_atomic_cas:
    if (ir_attr_i(op, ATTR_order) <= ORDER_relaxed) return false;
    if (how == RELAX)
      ir_set_attr_i(op, ATTR_order, ORDER_relaxed);
    else if (how == NARROW && is_scope(op, SCOPE_sys))
      ir_set_attr_i(op, ATTR_scope, SCOPE_gpu);
    else
      return false;
    return true;
  default: return false;
  }
}

typedef struct Seek {
  int left;
  IrOp *found;
} Seek;
static bool seek(IrOp *op, void *user) {
  Seek *s = user;
  if (s->left-- == 0) s->found = op;
  return !s->found;
}
static IrOp *nth_op(IrModule *m, int n) {
  Seek s = {n, NULL};
  for (IrFunc *f = m->funcs; f && !s.found; f = f->next) ir_walk(f->body, seek, &s);
  return s.found;
}

// Mutants that change nothing. kernel: how its name and arguments begin.
static const struct {
  const char *scenario, *kernel;
  IrOpKind kind;
  How how;
  const char *why;
} equivalent[] = {
    {NULL, "announce_kernel", OP_release, UNBLOCK,
     "what it publishes is in the kernels before it; its own instance stores nothing"},
    // Who has `done` of all ranks of a call, or their next `flags`, has heard that they read x and g: acks say nothing new there.
    {"all_reduce_two_shot", "wait_all_kernel flags_ptr=@acks", OP_acquire, REMOVE,
     "done and flags order the same"},
    {"all_reduce_two_shot", "wait_all_kernel flags_ptr=@acks", OP_acquire, RELAX,
     "done and flags order the same"},
    {"all_reduce_two_shot", "announce_kernel flags_ptr=@acks", OP_release, RELAX,
     "done and flags order the same"},
};

typedef struct Tally {
  Arena text;
  Escape escape;
  int total, found;
  const char *survivors;
} Tally;

static bool changes_nothing(const Scenario *s, const char *kernel, IrOpKind kind, How how) {
  for (size_t e = 0; e < DT_COUNTOF(equivalent); e++) {
    if ((!equivalent[e].scenario || !strcmp(equivalent[e].scenario, s->name)) && equivalent[e].kind == kind &&
        equivalent[e].how == how && !strncmp(kernel, equivalent[e].kernel, strlen(equivalent[e].kernel)))
      return true;
  }
  return false;
}

// Both lines; a hang has one, and a copy that the host started has none, but its stream is named.
static bool is_reported(const InterpResult *r) {
  const InterpFinding *f = r->findings;
  if (!r->nfindings || !f->here.line) return false;
  return f->fault == FAULT_DEADLOCK || f->other.line || strstr(f->text, "a copy of rank");
}

static void try_mutant(Scenario *s, Tally *t, int q, int n, How how) {
  Arena a;
  arena_init(&a, 0, &s->escape);
  IrModule *m = ir_module_clone(s->kernels[q].module, &a);
  IrOp *op = nth_op(m, n);
  const uint32_t line = op->loc.line;
  const IrOpKind kind = op->kind;
  if (mutate(op, how) && !changes_nothing(s, s->kernels[q].name, kind, how)) {
    IrFunc *f = m->funcs;
    while (!f->is_kernel) f = f->next;
    InterpResult r = {0};
    for (uint64_t seed = 0; seed < SEEDS && !is_reported(&r); seed++) run(s, &a, q, f, seed, &r);
    t->total++;
    t->found += is_reported(&r);
    const char *who =
        arena_printf(&t->text, "%s, %.*s: %s of line %u %s", s->name, (int)strcspn(s->kernels[q].name, " "),
                     s->kernels[q].name, ir_ops[kind].name, line, how_names[how]);
    if (getenv("MUTANTS")) printf("%s: %s\n", who, findings(&t->text, &r));
    if (!is_reported(&r))
      t->survivors = arena_printf(&t->text, "%s\n  %s: %s", t->survivors, who, findings(&t->text, &r));
  }
  arena_free(&a);
}

static void try_mutants(Scenario *s, void *user) {
  for (int q = 0; q < s->nkernels; q++)
    for (int n = 0; nth_op(s->kernels[q].module, n); n++)
      for (int how = 0; how < HOWS; how++) try_mutant(s, user, q, n, (How)how);
}

static void test_mutants(void **state) {
  (void)state;
  static Tally t;
  t = (Tally){.survivors = ""};
  arena_init(&t.text, 0, &t.escape);
  if (ESCAPE_TRY(&t.escape)) fail_msg("%s", t.escape.message);
  for (size_t k = 0; k < DT_COUNTOF(scenarios); k++) with_scenario(k, try_mutants, &t);
  print_message("%d of %d mutants reported\n", t.found, t.total);
  if (t.found < t.total) fail_msg("not reported:%s", t.survivors);
  assert_true(t.total >= 40);
  arena_free(&t.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_originals), cmocka_unit_test(test_mutants)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
