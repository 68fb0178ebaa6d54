// Collectives: all-gather, reduce-scatter, all-reduce, all-to-all. The protocol is that of kernels/collectives.py:
// epochs that only grow, flags for data, acknowledgements for the reuse of buffers.
#include "ops/ops_impl.h"

enum { BLOCK = 4096, MOST_PARTS = 8 };

// Instances a peer: one for every few blocks, so that small messages pay for one only.
static int32_t parts_for(int64_t n) {
  int64_t parts = ops_cdiv(n, 8 * BLOCK);
  return (int32_t)(parts < 1 ? 1 : parts > MOST_PARTS ? MOST_PARTS : parts);
}

static void begin(dt_plan *p) {
  p->block = BLOCK;
  p->parts = parts_for(p->o.m);
  ops_channel_kernels(p);
}

static void arg_own(dt_plan *p, OpsKernel *k, const char *name) { ops_arg(k, name, ops_own(p->o.dtype)); }
static void arg_tensor(dt_plan *p, OpsKernel *k, const char *name) {
  ops_arg(k, name, ops_tensor(p->o.dtype));
}
static void arg_words(OpsKernel *k, const char *name) { ops_arg(k, name, ops_words()); }
static void arg_n_block(dt_plan *p, OpsKernel *k, int64_t n) {
  ops_arg(k, "n", dt_int(n));
  ops_arg(k, "BLOCK", dt_int(p->block));
}

// ---- all-gather ----------------------------------------------------------------------------------------------------------
dt_status ops_all_gather_setup(dt_plan *p) {
  static const char *const variants[] = {"ce_push", "ce_pull", "push", "pull", "ring", NULL};
  dt_status st = ops_choose(p, variants, "ce_push");
  if (st != DT_OK) return st;
  begin(p);
  bool pull = ops_is(p, "pull") || ops_is(p, "ce_pull");
  size_t bytes = (size_t)p->o.m * p->elem;
  ops_buffer(p, pull ? "all_gather.x" : "all_gather.gathered", pull ? bytes : bytes * (size_t)p->world);
  if (ops_is(p, "push") || ops_is(p, "ring")) {
    OpsKernel *k = ops_kernel(p, "collectives.py",
                              ops_is(p, "push") ? "all_gather_push_kernel" : "all_gather_ring_kernel");
    arg_tensor(p, k, "x_ptr");
    arg_own(p, k, "gathered_ptr");
    arg_words(k, "flags_ptr");
    arg_words(k, "acks_ptr");
    arg_words(k, "epoch_ptr");
    arg_n_block(p, k, p->o.m);
    p->ch.flag_words = (size_t)p->world * (size_t)p->parts;
  } else if (ops_is(p, "pull")) {
    OpsKernel *k = ops_kernel(p, "collectives.py", "all_gather_pull_kernel");
    arg_own(p, k, "x_ptr");
    arg_tensor(p, k, "out_ptr");
    arg_words(k, "flags_ptr");
    arg_words(k, "epoch_ptr");
    arg_n_block(p, k, p->o.m);
  }
  ops_explain(p, "all_gather: %s of %zu bytes a rank", p->variant, bytes);
  return DT_OK;
}

// Reads peers' x: x is copied into symmetric memory when everybody has read the call before.
static dt_status gather_by_pull(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  size_t bytes = (size_t)p->o.m * p->elem;
  dt_status st;
  if ((st = ops_wait_all(p, s, p->ch.acks, 1, 1)) != DT_OK ||
      (st = dt_copy(s, p->buffers[0].own, t[0], bytes)) != DT_OK ||
      (st = ops_announce(p, s, p->ch.flags, 1)) != DT_OK)
    return st;
  if (ops_is(p, "pull"))
    return OPS_LAUNCH(&p->kernels[OPS_CHANNEL_KERNELS], s, p->parts, p->world, dt_ptr(d, p->buffers[0].own),
                      dt_ptr(d, t[1]), dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.epoch),
                      dt_int(p->o.m));
  for (int step = 0; step < p->world && st == DT_OK; step++) {
    int peer = (p->index + step) % p->world;
    st = dt_signal_wait_word(s, (const uint64_t *)p->ch.flags + peer, (const uint64_t *)p->ch.epoch);
    if (st == DT_OK) st = dt_copy(s, (char *)t[1] + (size_t)peer * bytes, p->buffers[0].peers[peer], bytes);
  }
  return st;
}

static dt_status gather_by_push(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  size_t bytes = (size_t)p->o.m * p->elem;
  dt_status st;
  if (ops_is(p, "ce_push")) {
    if ((st = ops_push_all(p, s, 0, (size_t)p->index * bytes, t[0], bytes)) != DT_OK ||
        (st = ops_wait_all(p, s, p->ch.flags, 1, 0)) != DT_OK)
      return st;
  } else {
    bool ring = ops_is(p, "ring");
    st = OPS_LAUNCH(&p->kernels[OPS_CHANNEL_KERNELS], s, p->parts, ring ? 1 : p->world, dt_ptr(d, t[0]),
                    dt_ptr(d, p->buffers[0].own), dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.acks),
                    dt_ptr(DT_I64, p->ch.epoch), dt_int(p->o.m));
    if (st == DT_OK && !ring) st = ops_wait_all(p, s, p->ch.flags, p->parts, 0);
  }
  return st != DT_OK ? st : dt_copy(s, t[1], p->buffers[0].own, bytes * (size_t)p->world);
}

dt_status ops_all_gather_run(dt_plan *p, dt_stream *s, void *const *t) {
  bool pull = ops_is(p, "pull") || ops_is(p, "ce_pull");
  dt_status st = ops_advance(p, s);
  if (st == DT_OK) st = pull ? gather_by_pull(p, s, t) : gather_by_push(p, s, t);
  return st != DT_OK ? st : ops_announce(p, s, p->ch.acks, 1);
}

// ---- reduce-scatter --------------------------------------------------------------------------------------------------------
static void reduce_kernel(dt_plan *p, const char *name, int64_t n) {
  OpsKernel *k = ops_kernel(p, "collectives.py", name);
  arg_own(p, k, "x_ptr");
  arg_tensor(p, k, "out_ptr");
  arg_words(k, "flags_ptr");
  arg_words(k, "epoch_ptr");
  arg_n_block(p, k, n);
}

// x into symmetric memory once all have read the call before, announced to all.
static dt_status publish(dt_plan *p, dt_stream *s, const void *x, size_t bytes) {
  dt_status st;
  if ((st = ops_advance(p, s)) != DT_OK || (st = ops_wait_all(p, s, p->ch.acks, 1, 1)) != DT_OK ||
      (st = dt_copy(s, p->buffers[0].own, x, bytes)) != DT_OK)
    return st;
  return ops_announce(p, s, p->ch.flags, 1);
}

dt_status ops_reduce_scatter_setup(dt_plan *p) {
  static const char *const variants[] = {"pull", NULL};
  dt_status st = ops_choose(p, variants, "pull");
  if (st != DT_OK) return st;
  begin(p);
  ops_buffer(p, "reduce_scatter.x", (size_t)p->o.m * p->elem * (size_t)p->world);
  reduce_kernel(p, "reduce_scatter_kernel", p->o.m);
  return DT_OK;
}
dt_status ops_reduce_scatter_run(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  dt_status st = publish(p, s, t[0], (size_t)p->o.m * p->elem * (size_t)p->world);
  if (st == DT_OK)
    st =
        OPS_LAUNCH(&p->kernels[OPS_CHANNEL_KERNELS], s, p->parts, 1, dt_ptr(d, p->buffers[0].own),
                   dt_ptr(d, t[1]), dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.epoch), dt_int(p->o.m));
  return st != DT_OK ? st : ops_announce(p, s, p->ch.acks, 1);
}

// ---- all-reduce --------------------------------------------------------------------------------------------------------------
enum {
  TWO_SHOT_FROM_BYTES = 256 * 1024
}; // below, one round of reads costs less than a second round of flags

dt_status ops_all_reduce_setup(dt_plan *p) {
  static const char *const variants[] = {"one_shot", "two_shot", NULL};
  size_t bytes = (size_t)p->o.m * p->elem;
  dt_status st =
      ops_choose(p, variants, bytes < TWO_SHOT_FROM_BYTES || p->world < 3 ? "one_shot" : "two_shot");
  if (st != DT_OK) return st;
  begin(p);
  ops_buffer(p, "all_reduce.x", bytes);
  if (ops_is(p, "one_shot")) {
    reduce_kernel(p, "all_reduce_one_shot_kernel", p->o.m);
  } else {
    ops_buffer(p, "all_reduce.gathered", bytes);
    OpsKernel *k = ops_kernel(p, "collectives.py", "all_reduce_two_shot_kernel");
    arg_own(p, k, "x_ptr");
    arg_own(p, k, "gathered_ptr");
    arg_words(k, "flags_ptr");
    arg_words(k, "done_ptr");
    arg_words(k, "epoch_ptr");
    ops_arg(k, "n", dt_int(p->o.m));
    ops_arg(k, "chunk", dt_int(ops_cdiv(p->o.m, p->world)));
    ops_arg(k, "BLOCK", dt_int(p->block));
  }
  ops_explain(p, "all_reduce: %s for %zu bytes (two_shot from %d bytes and 3 ranks on)", p->variant, bytes,
              TWO_SHOT_FROM_BYTES);
  return DT_OK;
}

dt_status ops_all_reduce_run(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  size_t bytes = (size_t)p->o.m * p->elem;
  OpsKernel *k = &p->kernels[OPS_CHANNEL_KERNELS];
  dt_status st = publish(p, s, t[0], bytes);
  if (st != DT_OK) return st;
  if (ops_is(p, "one_shot")) {
    st = OPS_LAUNCH(k, s, p->parts, 1, dt_ptr(d, p->buffers[0].own), dt_ptr(d, t[1]),
                    dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.epoch), dt_int(p->o.m));
  } else if ((st = OPS_LAUNCH(k, s, p->parts, 1, dt_ptr(d, p->buffers[0].own), dt_ptr(d, p->buffers[1].own),
                              dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.done),
                              dt_ptr(DT_I64, p->ch.epoch), dt_int(p->o.m),
                              dt_int(ops_cdiv(p->o.m, p->world)))) == DT_OK &&
             (st = ops_wait_all(p, s, p->ch.done, p->parts, 0)) == DT_OK) {
    st = dt_copy(s, t[1], p->buffers[1].own, bytes);
  }
  return st != DT_OK ? st : ops_announce(p, s, p->ch.acks, 1);
}

// ---- all-to-all ----------------------------------------------------------------------------------------------------------------
dt_status ops_all_to_all_setup(dt_plan *p) {
  static const char *const variants[] = {"push", NULL};
  dt_status st = ops_choose(p, variants, "push");
  if (st != DT_OK) return st;
  begin(p);
  ops_buffer(p, "all_to_all.received", (size_t)p->o.m * p->elem * (size_t)p->world);
  OpsKernel *k = ops_kernel(p, "collectives.py", "all_to_all_kernel");
  arg_tensor(p, k, "x_ptr");
  arg_own(p, k, "received_ptr");
  arg_words(k, "flags_ptr");
  arg_words(k, "acks_ptr");
  arg_words(k, "epoch_ptr");
  arg_n_block(p, k, p->o.m);
  return DT_OK;
}
dt_status ops_all_to_all_run(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  dt_status st;
  if ((st = ops_advance(p, s)) != DT_OK ||
      (st = OPS_LAUNCH(&p->kernels[OPS_CHANNEL_KERNELS], s, p->parts, p->world, dt_ptr(d, t[0]),
                       dt_ptr(d, p->buffers[0].own), dt_ptr(DT_I64, p->ch.flags), dt_ptr(DT_I64, p->ch.acks),
                       dt_ptr(DT_I64, p->ch.epoch), dt_int(p->o.m))) != DT_OK ||
      (st = ops_wait_all(p, s, p->ch.flags, p->parts, 0)) != DT_OK ||
      (st = dt_copy(s, t[1], p->buffers[0].own, (size_t)p->o.m * p->elem * (size_t)p->world)) != DT_OK)
    return st;
  return ops_announce(p, s, p->ch.acks, 1);
}
