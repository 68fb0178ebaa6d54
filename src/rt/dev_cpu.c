// dev_cpu: the driver of CPU ranks. Worker threads run the instances (worker.c), a copy engine the rest (engine.c), and
// streams are queues of commands (stream.c). Code is an ELF object that image_code_load maps.
#include "rt/rt_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

// ---- ranks and memory --------------------------------------------------------------------------------
static bool list(RtContext *c, uint32_t i, RtDeviceInfo *out) {
  (void)c;
  if (i) return false;
  snprintf(out->name, sizeof out->name, "cpu");
  snprintf(out->target, sizeof out->target, "host");
  snprintf(out->text, sizeof out->text, "the processor's cores");
  out->usable = true;
  return true;
}

static Status start(RtRank *r, uint32_t ordinal, uint32_t workers, RtError *e) {
  (void)ordinal;
  r->abi.cpu = &rt_cpu_calls;
  const Status s = rt_workers_start(r, workers, e);
  return s == ST_OK ? rt_engine_start(r, e) : s;
}

static void stop(RtRank *r) {
  rt_workers_stop(r);
  rt_engine_stop(r);
  rt_cmds_free(r);
}

static void raise_rank(RtRank *r) { rt_engine_kick(r); }

static Status recover(RtRank *r, RtError *e) {
  (void)r, (void)e;
  return ST_OK;
}

static Status alloc(RtRank *r, uint64_t bytes, void **out, RtError *e) {
  void *p;
  const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
  if (bytes > PTRDIFF_MAX / 2 || posix_memalign(&p, align, bytes ? bytes : 64) != 0)
    return rt_fail(e, ST_NO_MEMORY, "rank %d cannot have %llu bytes", r->index, (unsigned long long)bytes);
  if (bytes >= HUGE_PAGE) madvise(p, bytes, MADV_HUGEPAGE);
  *out = p;
  return ST_OK;
}

static void release(RtRank *r, void *p) {
  (void)r;
  free(p);
}

static Status zero(RtRank *r, void *p, uint64_t bytes, RtError *e) {
  (void)r, (void)e;
  memset(p, 0, bytes);
  return ST_OK;
}

static Status show_segments(RtRank *r, RtError *e) { // kernels read them where they are
  (void)r, (void)e;
  return ST_OK;
}

static void *stream_native(const RtStream *s) {
  (void)s;
  return NULL;
}

// ---- kernels -------------------------------------------------------------------------------------------
static Status kernel_load(RtKernel *k, Diags *d, RtError *e) {
  const Image *im = k->image;
  char missing[128];
  if (!image_cpu_has(im->cpu_features, missing, sizeof missing))
    return rt_fail(e, ST_UNSUPPORTED, "kernel '%s' needs a processor with %s", k->info->name, missing);
  for (uint32_t v = 0; v < k->info->nvariants; v++) {
    if (k->info->variants[v].workspace_bytes)
      return rt_fail(e, ST_UNSUPPORTED, "kernel '%s' asks for a workspace, which CPU launches do not have",
                     k->info->name);
  }
  const Status s =
      image_code_load(im->code, im->code_bytes, image_cpu_symbols, image_ncpu_symbols, &k->code, d);
  if (s != ST_OK) return rt_fail_diags(e, s, d, "");
  k->entries = arena_array(&k->arena, AbiCpuEntry, k->info->nvariants);
  for (uint32_t v = 0; v < k->info->nvariants; v++) {
    const void *p = image_code_symbol(k->code, k->info->variants[v].entry);
    if (!p)
      return rt_fail(e, ST_CORRUPT, "the image's code has no entry '%.100s'", k->info->variants[v].entry);
    k->entries[v] = (AbiCpuEntry)(uintptr_t)p;
  }
  return ST_OK;
}

static void kernel_unload(RtKernel *k) { image_code_free(k->code); }

enum { MOST_AT_ONCE = 64 }; // instances that a worker takes from the shared counter

Status rt_cpu_launch(RtKernel *k, RtStream *s, uint32_t variant, const uint32_t grid[3], const RtArg *args,
                     RtError *e) {
  const ImageVariant *v = &k->info->variants[variant];
  Cmd *c = rt_cmd_new(s, CMD_LAUNCH, e);
  if (!c) return ST_NO_MEMORY;
  char *packed = c->args;
  if (v->args_bytes > RT_INLINE_ARGS) packed = c->launch.big_args = malloc(v->args_bytes);
  if (!packed) {
    rt_cmd_drop(c);
    return rt_no_memory(e);
  }
  rt_pack_args(v, args, packed);
  c->launch.kernel = k;
  c->launch.variant = v;
  c->launch.entry = k->entries[variant];
  c->launch.args = packed;
  memcpy(c->launch.grid, grid, sizeof c->launch.grid);
  c->launch.n = (uint64_t)grid[0] * grid[1] * grid[2];
  c->launch.chunk = v->has_waits ? 1 : MOST_AT_ONCE;
  rt_cmd_enqueue(c);
  return ST_OK;
}

const RtDriver rt_driver_cpu = {
    .target = IMAGE_X86_64,
    .list = list,
    .start = start,
    .stop = stop,
    .raise = raise_rank,
    .recover = recover,
    .alloc = alloc,
    .free = release,
    .zero = zero,
    .show_segments = show_segments,
    .stream_open = rt_cpu_stream_open,
    .stream_close = rt_cpu_stream_close,
    .stream_native = stream_native,
    .stream_sync = rt_cpu_stream_sync,
    .stream_idle = rt_cpu_stream_idle,
    .event_close = rt_cpu_event_close,
    .event_record = rt_cpu_event_record,
    .stream_wait_event = rt_cpu_stream_wait_event,
    .event_sync = rt_cpu_event_sync,
    .event_elapsed = rt_cpu_event_elapsed,
    .copy = rt_cpu_copy,
    .fill = rt_cpu_fill,
    .host_call = rt_cpu_host_call,
    .signal = rt_cpu_signal,
    .wait = rt_cpu_wait,
    .kernel_load = kernel_load,
    .kernel_unload = kernel_unload,
    .launch = rt_cpu_launch,
};
