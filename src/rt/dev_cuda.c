// dev_cuda: the driver of ranks on NVIDIA GPUs: memory, streams, events, copies. Kernels are in cuda_kernel.c.
//
// Everything a kernel waits for or reads of the team lies where the device sees it:
//
//   device   rank records, one a kernel | segments and peers' bases | symmetric heap
//   pinned   abort word | reports, one a kernel
//
// Nothing between a launch and the next sync allocates, locks or waits for the device, so streams may be captured.
#include "rt/dev_cuda.h"

#include <stdio.h>
#include <stdlib.h>

// ---- devices and ranks -----------------------------------------------------------------------------------
static bool list(RtContext *c, uint32_t i, RtDeviceInfo *out) {
  const Cuda *cu = rt_cuda_open(c);
  out->usable = cu->status == ST_OK;
  *out->target = 0;
  if (!out->usable) {
    snprintf(out->name, sizeof out->name, "cuda");
    snprintf(out->text, sizeof out->text, "%s", cu->why);
    return i == 0;
  }
  CuDevice d;
  if (i >= (uint32_t)cu->ndevices || cu->DeviceGet(&d, (int)i) != CU_OK) return false;
  snprintf(out->name, sizeof out->name, "cuda:%u", i);
  rt_cuda_describe(cu, d, out);
  return true;
}

static uint64_t segments_bytes(const RtRank *r) {
  return RT_MAX_SEGMENTS * (sizeof(AbiSegment) + sizeof(uint64_t) * (uint64_t)r->team->world);
}

static void device_facts(CudaRank *cr) {
  int major = 0, minor = 0, shared = 0;
  const Cuda *cu = cr->cu;
  cu->DeviceGetAttribute(&major, CU_DEV_MAJOR, cr->device);
  cu->DeviceGetAttribute(&minor, CU_DEV_MINOR, cr->device);
  cu->DeviceGetAttribute(&shared, CU_DEV_MAX_SHARED, cr->device);
  cr->sm = (uint32_t)(major * 10 + minor);
  cr->max_shared = (uint32_t)shared;
  char name[40] = "";
  cu->DeviceGetName(name, sizeof name, cr->device);
  snprintf(cr->name, sizeof cr->name, "cuda:%u (%s)", cr->ordinal, name);
}

static CuStatus take(RtRank *r) {
  CudaRank *cr = cuda_rank(r);
  const Cuda *cu = cr->cu;
  void *page = NULL;
  CuStatus s = cu->StreamCreate(&cr->setup, CU_STREAM_NON_BLOCKING);
  if (s == CU_OK) s = cu->MemHostAlloc(&page, 4096, CU_HOST_PORTABLE | CU_HOST_MAPPED);
  if (s == CU_OK) {
    cr->abort_word = page;
    *cr->abort_word = 0;
    s = cu->MemAlloc(&cr->segments, segments_bytes(r));
  }
  return s == CU_OK ? rt_cuda_show_records(r) : s;
}

static Status start(RtRank *r, uint32_t ordinal, uint32_t workers, RtError *e) {
  (void)workers;
  const Cuda *cu = rt_cuda_open(r->team->context);
  if (cu->status != ST_OK)
    return rt_fail(e, cu->status, "there is no device 'cuda:%u': %s", ordinal, cu->why);
  if (ordinal >= (uint32_t)cu->ndevices)
    return rt_fail(e, ST_NOT_FOUND, "there is no device 'cuda:%u'; this machine has %d NVIDIA GPU%s%s",
                   ordinal, cu->ndevices, cu->ndevices > 1 ? "s" : "",
                   cu->ndevices > 1 ? ", from cuda:0 on" : ", cuda:0");
  CudaRank *cr = r->device = calloc(1, sizeof *cr);
  if (!cr) return rt_no_memory(e);
  pthread_mutex_init(&cr->lock, NULL);
  cr->cu = cu;
  cr->ordinal = ordinal;
  cr->wait_each = r->team->context->config.cuda_wait_each;
  snprintf(cr->name, sizeof cr->name, "cuda:%u", ordinal);
  CuStatus s = cu->DeviceGet(&cr->device, (int)ordinal);
  if (s == CU_OK) {
    device_facts(cr);
    s = cu->PrimaryCtxRetain(&cr->context, cr->device);
  }
  if (s == CU_OK) {
    const CuContext before = rt_cuda_enter(cr);
    s = take(r);
    rt_cuda_leave(cr, before);
  }
  return rt_cuda_check(r, s, e, "starting a rank");
}

static void stop(RtRank *r) {
  CudaRank *cr = cuda_rank(r);
  if (!cr) return;
  const Cuda *cu = cr->cu;
  if (cr->context) {
    const CuContext before = rt_cuda_enter(cr);
    if (r->segments.abi[0].bytes) cu->MemFree(r->segments.abi[0].base);
    if (cr->segments) cu->MemFree(cr->segments);
    if (cr->abort_word) cu->MemFreeHost(cr->abort_word);
    while (cr->slabs) {
      CudaSlab *slab = cr->slabs;
      cr->slabs = slab->next;
      cu->MemFree(slab->records);
      cu->MemFreeHost(slab->reports);
      free(slab);
    }
    rt_cuda_maps_drop(cr);
    if (cr->setup) cu->StreamDestroy(cr->setup);
    rt_cuda_leave(cr, before == cr->context ? NULL : before);
    cu->PrimaryCtxRelease(cr->device);
  }
  while (cr->names) {
    CudaName *name = cr->names;
    cr->names = name->next;
    free(name);
  }
  pthread_mutex_destroy(&cr->lock);
  free(cr);
  r->device = NULL;
}

static void raise_rank(RtRank *r) {
  CudaRank *cr = cuda_rank(r);
  if (cr && cr->abort_word) __atomic_store_n(cr->abort_word, 1, __ATOMIC_RELEASE);
}

static Status recover(RtRank *r, RtError *e) {
  CudaRank *cr = cuda_rank(r);
  if (atomic_load(&cr->lost)) return rt_team_failure(r->team, e);
  pthread_mutex_lock(&cr->lock);
  for (CudaSlab *slab = cr->slabs; slab; slab = slab->next) {
    for (int i = 0; i < CUDA_SLAB; i++)
      __atomic_store_n(&slab->reports[i].state, ABI_REPORT_EMPTY, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&cr->lock);
  __atomic_store_n(cr->abort_word, 0, __ATOMIC_RELEASE);
  return ST_OK;
}

// ---- memory ------------------------------------------------------------------------------------------------
static Status alloc(RtRank *r, uint64_t bytes, void **out, RtError *e) {
  const CudaRank *cr = cuda_rank(r);
  size_t left = 0, total = 0;
  CuPtr p = 0;
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus s = cr->cu->MemAlloc(&p, bytes ? bytes : 1);
  if (s == CU_NO_MEMORY) cr->cu->MemGetInfo(&left, &total);
  rt_cuda_leave(cr, before);
  if (s == CU_NO_MEMORY)
    return rt_fail(e, ST_NO_MEMORY, "%s has no room for %.3f GiB more: %.3f of its %.1f GiB are free",
                   cr->name, (double)bytes / 0x1p30, (double)left / 0x1p30, (double)total / 0x1p30);
  if (s == CU_OK) *out = (void *)(uintptr_t)p;
  return rt_cuda_check(r, s, e, "allocating %llu bytes", (unsigned long long)bytes);
}

static void release(RtRank *r, void *p) {
  const CudaRank *cr = cuda_rank(r);
  const CuContext before = rt_cuda_enter(cr);
  cr->cu->MemFree((CuPtr)(uintptr_t)p);
  rt_cuda_leave(cr, before);
}

CuStatus rt_cuda_copy_now(CudaRank *cr, CuPtr dst, CuPtr src, size_t bytes) {
  const CuStatus s = cr->cu->MemcpyAsync(dst, src, bytes, cr->setup);
  return s == CU_OK ? cr->cu->StreamSynchronize(cr->setup) : s;
}

static Status zero(RtRank *r, void *p, uint64_t bytes, RtError *e) {
  const CudaRank *cr = cuda_rank(r);
  const CuContext before = rt_cuda_enter(cr);
  CuStatus s = cr->cu->MemsetAsync((CuPtr)(uintptr_t)p, 0, bytes, cr->setup);
  if (s == CU_OK) s = cr->cu->StreamSynchronize(cr->setup);
  rt_cuda_leave(cr, before);
  return rt_cuda_check(r, s, e, "zeroing symmetric memory");
}

static Status show_segments(RtRank *r, RtError *e) {
  const CudaRank *cr = cuda_rank(r);
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus s = rt_cuda_show_records(r);
  rt_cuda_leave(cr, before);
  return rt_cuda_check(r, s, e, "writing the table of segments");
}

// ---- streams -------------------------------------------------------------------------------------------------
static Status check_wrapped(RtStream *s, CuStream native, RtError *e) {
  const CudaRank *cr = cuda_rank(s->rank);
  CuContext its = NULL;
  if (!native) return ST_OK;
  const CuStatus c = cr->cu->StreamGetCtx(native, &its);
  if (c == CU_OK && its != cr->context)
    return rt_fail(e, ST_INVALID,
                   "stream '%s' is of another device or context than %s and its primary context", s->label,
                   cr->name);
  return rt_cuda_check(s->rank, c, e, "taking stream '%s'", s->label);
}

static Status stream_open(RtStream *s, bool wrap, void *native, RtError *e) {
  const CudaRank *cr = cuda_rank(s->rank);
  CudaStream *cs = calloc(1, sizeof *cs);
  if (!cs) return rt_no_memory(e);
  cs->handle = native;
  cs->ours = !wrap;
  const CuContext before = rt_cuda_enter(cr);
  const Status st = wrap ? check_wrapped(s, native, e)
                         : rt_cuda_check(s->rank, cr->cu->StreamCreate(&cs->handle, CU_STREAM_NON_BLOCKING),
                                         e, "creating stream '%s'", s->label);
  rt_cuda_leave(cr, before);
  if (st != ST_OK) {
    free(cs);
    return st;
  }
  pthread_mutex_lock(&s->rank->lock); // others look for suspects
  s->device = cs;
  pthread_mutex_unlock(&s->rank->lock);
  return ST_OK;
}

static void stream_close(RtStream *s) {
  const CudaRank *cr = cuda_rank(s->rank);
  CudaStream *cs = cuda_stream(s);
  const CuContext before = rt_cuda_enter(cr);
  if (cs->ours) cr->cu->StreamDestroy(cs->handle);
  rt_cuda_leave(cr, before);
  free(cs);
}

static void *stream_native(const RtStream *s) { return cuda_stream(s)->handle; }

static Status stream_sync(RtStream *s, RtError *e) {
  RtRank *r = s->rank;
  const CudaRank *cr = cuda_rank(r);
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus c = cr->cu->StreamSynchronize(cuda_stream(s)->handle);
  rt_cuda_leave(cr, before);
  if (c != CU_OK) return rt_cuda_check(r, c, e, "a wait for stream '%s'", s->label);
  if (__atomic_load_n(cr->abort_word, __ATOMIC_ACQUIRE)) rt_cuda_harvest(r);
  atomic_store(&cuda_stream(s)->launched, 0);
  return rt_team_failure(r->team, e);
}

static bool stream_idle(const RtStream *s) {
  const CudaRank *cr = cuda_rank(s->rank);
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus c = cr->cu->StreamQuery(cuda_stream(s)->handle);
  rt_cuda_leave(cr, before);
  return c != CU_NOT_READY;
}

// ---- events --------------------------------------------------------------------------------------------------
static CuEvent event_of(const RtEvent *ev) { return ev->device; }

static Status event_open(RtEvent *ev, RtError *e) {
  const CudaRank *cr = cuda_rank(ev->rank);
  CuEvent native = NULL;
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus c = cr->cu->EventCreate(&native, 0);
  rt_cuda_leave(cr, before);
  ev->device = native;
  return rt_cuda_check(ev->rank, c, e, "creating an event");
}

static void event_close(RtEvent *ev) {
  const CudaRank *cr = cuda_rank(ev->rank);
  const CuContext before = rt_cuda_enter(cr);
  cr->cu->EventDestroy(event_of(ev));
  rt_cuda_leave(cr, before);
}

static Status event_record(RtEvent *ev, RtStream *s, RtError *e) {
  const CudaRank *cr = cuda_rank(s->rank);
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus c = cr->cu->EventRecord(event_of(ev), cuda_stream(s)->handle);
  rt_cuda_leave(cr, before);
  if (c == CU_OK) ev->recorded++;
  return rt_cuda_check(s->rank, c, e, "recording an event in stream '%s'", s->label);
}

static Status stream_wait_event(RtStream *s, RtEvent *ev, RtError *e) {
  const CudaRank *cr = cuda_rank(s->rank);
  if (!ev->recorded) return ST_OK;
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus c = cr->cu->StreamWaitEvent(cuda_stream(s)->handle, event_of(ev), 0);
  rt_cuda_leave(cr, before);
  return rt_cuda_check(s->rank, c, e, "making stream '%s' wait for an event", s->label);
}

static Status event_sync(RtEvent *ev, RtError *e) {
  const CudaRank *cr = cuda_rank(ev->rank);
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus c = ev->recorded ? cr->cu->EventSynchronize(event_of(ev)) : CU_OK;
  rt_cuda_leave(cr, before);
  if (c != CU_OK) return rt_cuda_check(ev->rank, c, e, "a wait for an event");
  if (__atomic_load_n(cr->abort_word, __ATOMIC_ACQUIRE)) rt_cuda_harvest(ev->rank);
  return rt_team_failure(ev->rank->team, e);
}

static Status event_elapsed(const RtEvent *from, const RtEvent *to, double *ms, RtError *e) {
  const CudaRank *cr = cuda_rank(from->rank);
  const RtEvent *const ev[2] = {from, to};
  for (int i = 0; i < 2; i++) {
    if (!ev[i]->recorded)
      return rt_fail(e, ST_INVALID, "the %s event was never recorded", i ? "second" : "first");
  }
  float f = 0;
  const CuContext before = rt_cuda_enter(cr);
  CuStatus c = CU_OK;
  int at = 0;
  for (; at < 2 && c == CU_OK; at++) c = cr->cu->EventQuery(event_of(ev[at]));
  if (c == CU_OK) c = cr->cu->EventElapsedTime(&f, event_of(from), event_of(to));
  rt_cuda_leave(cr, before);
  if (c == CU_NOT_READY)
    return rt_fail(e, ST_BUSY, "the %s event has not happened yet", at == 2 ? "second" : "first");
  if (c == CU_OK) *ms = f;
  return rt_cuda_check(from->rank, c, e, "the time between two events");
}

// ---- copies --------------------------------------------------------------------------------------------------
static Status copy(RtStream *s, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                   uint64_t width, uint64_t rows, RtError *e) {
  const CudaRank *cr = cuda_rank(s->rank);
  const CuStream h = cuda_stream(s)->handle;
  if (rt_aborted(s->rank->team)) return rt_team_failure(s->rank->team, e);
  CuStatus c;
  const CuContext before = rt_cuda_enter(cr);
  if (rows == 1)
    c = cr->cu->MemcpyAsync((CuPtr)(uintptr_t)dst, (CuPtr)(uintptr_t)src, width, h);
  else
    c = cr->cu->Memcpy2DAsync(&(CuCopy2D){.src_kind = CU_KIND_UNIFIED,
                                          .src = (CuPtr)(uintptr_t)src,
                                          .src_pitch = src_pitch,
                                          .dst_kind = CU_KIND_UNIFIED,
                                          .dst = (CuPtr)(uintptr_t)dst,
                                          .dst_pitch = dst_pitch,
                                          .width = width,
                                          .rows = rows},
                              h);
  rt_cuda_leave(cr, before);
  return rt_cuda_check(s->rank, c, e, "a copy of %llu bytes in stream '%s'",
                       (unsigned long long)(width * rows), s->label);
}

static Status fill(RtStream *s, void *dst, int byte, uint64_t bytes, RtError *e) {
  const CudaRank *cr = cuda_rank(s->rank);
  if (rt_aborted(s->rank->team)) return rt_team_failure(s->rank->team, e);
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus c =
      cr->cu->MemsetAsync((CuPtr)(uintptr_t)dst, (unsigned char)byte, bytes, cuda_stream(s)->handle);
  rt_cuda_leave(cr, before);
  return rt_cuda_check(s->rank, c, e, "a fill of %llu bytes in stream '%s'", (unsigned long long)bytes,
                       s->label);
}

static Status host_call(RtStream *s, void (*fn)(void *user), void *user, RtError *e) {
  const CudaRank *cr = cuda_rank(s->rank);
  const CuContext before = rt_cuda_enter(cr);
  const CuStatus c = cr->cu->LaunchHostFunc(cuda_stream(s)->handle, fn, user);
  rt_cuda_leave(cr, before);
  return rt_cuda_check(s->rank, c, e, "a host call in stream '%s'", s->label);
}

// ---- signals: they join several devices, and such teams are refused so far -----------------------------------
static Status no_signals(const RtStream *s, RtError *e) {
  return rt_fail(e, ST_UNSUPPORTED, "streams of %s have no signals yet; kernels do",
                 cuda_rank(s->rank)->name);
}

static Status signal(RtStream *s, uint64_t *word, uint64_t *there, const uint64_t *src, uint64_t value,
                     bool add, int peer, RtError *e) {
  (void)word, (void)there, (void)src, (void)value, (void)add, (void)peer;
  return no_signals(s, e);
}

static Status wait(RtStream *s, const uint64_t *word, const uint64_t *bound, uint64_t value, RtError *e) {
  (void)word, (void)bound, (void)value;
  return no_signals(s, e);
}

const RtDriver rt_driver_cuda = {
    .target = IMAGE_NVPTX,
    .own_heap = true,
    .list = list,
    .start = start,
    .stop = stop,
    .raise = raise_rank,
    .recover = recover,
    .alloc = alloc,
    .free = release,
    .zero = zero,
    .show_segments = show_segments,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_native = stream_native,
    .stream_sync = stream_sync,
    .stream_idle = stream_idle,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .stream_wait_event = stream_wait_event,
    .event_sync = event_sync,
    .event_elapsed = event_elapsed,
    .copy = copy,
    .fill = fill,
    .host_call = host_call,
    .signal = signal,
    .wait = wait,
    .kernel_load = rt_cuda_kernel_load,
    .kernel_unload = rt_cuda_kernel_unload,
    .launch = rt_cuda_launch,
};
