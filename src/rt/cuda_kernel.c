// cuda_kernel: kernels on NVIDIA GPUs: loading code, launching it, and reading what kernels report before they give up.
//
// Everything that could block or fail for reasons of the kernel happens at load: modules (one a context, shared by all
// kernels of the same code), limits of threads and shared memory, and the loading that the driver would put off until the
// first launch, which a waiting kernel on the device would hold up. All kernels ask for the same division between shared
// memory and cache, as kernels of different divisions do not run beside each other.
#include "rt/dev_cuda.h"

#include <stdio.h>
#include <stdlib.h>

enum {
  MOST_BYTES = 4096,            // of arguments, hidden ones included: what every driver accepts
  MOST_PARAMS = MOST_BYTES + 1, // none is smaller than a byte
  FREE_SHARED = 48 << 10,       // more has to be asked for
  MOST_X = INT32_MAX,
  MOST_YZ = 65535,
  PORTABLE_CLUSTER = 8
};

typedef struct CudaFunction {
  CuFunction function;
  CuLaunch launch; // all but grid and stream
  CuAttribute attributes[2];
  CudaMaps *maps; // NULL: none
} CudaFunction;

typedef struct CudaKernel {
  CudaModule **modules;    // by part of the image's code
  CudaFunction *functions; // by variant
  const CudaName *name;
  CudaSlab *slab; // of its rank record
  uint32_t slot;
  CuPtr record;
} CudaKernel;

// ---- rank records ----------------------------------------------------------------------------------------
static AbiRank record_of(const RtRank *r, const CudaSlab *slab, uint32_t slot) {
  const CudaRank *cr = cuda_rank(r);
  AbiRank abi = r->abi;
  abi.segments = (const AbiSegment *)(uintptr_t)cr->segments;
  abi.abort_word = cr->abort_word;
  abi.trace = NULL;
  abi.runtime = NULL;
  abi.report = &slab->reports[slot];
  return abi;
}

static CuStatus write_records(const RtRank *r, const CudaSlab *slab, uint32_t from, uint32_t n) {
  _Static_assert(sizeof(AbiRank) <= CUDA_RECORD, "a record has room");
  CudaRank *cr = cuda_rank(r);
  char *text = calloc(n, CUDA_RECORD);
  if (!text) return CU_NO_MEMORY;
  for (uint32_t i = 0; i < n; i++) {
    const AbiRank abi = record_of(r, slab, from + i);
    memcpy(text + (size_t)i * CUDA_RECORD, &abi, sizeof abi);
  }
  const CuStatus s = rt_cuda_copy_now(cr, slab->records + from * CUDA_RECORD, (CuPtr)(uintptr_t)text,
                                      (size_t)n * CUDA_RECORD);
  free(text);
  return s;
}

CuStatus rt_cuda_show_records(RtRank *r) {
  CudaRank *cr = cuda_rank(r);
  const size_t world = (size_t)r->team->world, table = RT_MAX_SEGMENTS * sizeof(AbiSegment);
  const size_t bytes = table + RT_MAX_SEGMENTS * world * sizeof(uint64_t);
  char *text = calloc(1, bytes);
  if (!text) return CU_NO_MEMORY;
  for (uint32_t i = 0; i < RT_MAX_SEGMENTS; i++) {
    AbiSegment s = r->segments.abi[i];
    const size_t at = table + i * world * sizeof(uint64_t);
    if (s.peer_base) memcpy(text + at, s.peer_base, world * sizeof(uint64_t));
    s.peer_base = (const uint64_t *)(uintptr_t)(cr->segments + at);
    memcpy(text + i * sizeof s, &s, sizeof s);
  }
  CuStatus st = rt_cuda_copy_now(cr, cr->segments, (CuPtr)(uintptr_t)text, bytes);
  free(text);
  pthread_mutex_lock(&cr->lock);
  for (CudaSlab *slab = cr->slabs; slab && st == CU_OK; slab = slab->next)
    st = write_records(r, slab, 0, CUDA_SLAB);
  pthread_mutex_unlock(&cr->lock);
  return st;
}

static CuStatus add_slab(CudaRank *cr) { // lock held
  CudaSlab *slab = calloc(1, sizeof *slab);
  void *reports = NULL;
  if (!slab) return CU_NO_MEMORY;
  CuStatus s = cr->cu->MemAlloc(&slab->records, CUDA_SLAB * CUDA_RECORD);
  if (s == CU_OK)
    s = cr->cu->MemHostAlloc(&reports, CUDA_SLAB * sizeof(AbiReport), CU_HOST_PORTABLE | CU_HOST_MAPPED);
  if (s != CU_OK) {
    if (slab->records) cr->cu->MemFree(slab->records);
    free(slab);
    return s;
  }
  memset(reports, 0, CUDA_SLAB * sizeof(AbiReport));
  slab->reports = reports;
  slab->next = cr->slabs;
  cr->slabs = slab;
  return CU_OK;
}

static CudaSlab *find_slot(CudaRank *cr, uint32_t *slot) { // lock held
  for (CudaSlab *slab = cr->slabs; slab; slab = slab->next) {
    for (uint32_t i = 0; i < CUDA_SLAB; i++) {
      if (slab->owner[i]) continue;
      *slot = i;
      return slab;
    }
  }
  return NULL;
}

static CuStatus take_record(RtKernel *k, CudaKernel *ck) {
  CudaRank *cr = cuda_rank(k->rank);
  CuStatus s = CU_OK;
  pthread_mutex_lock(&cr->lock);
  CudaSlab *slab = find_slot(cr, &ck->slot);
  if (!slab && (s = add_slab(cr)) == CU_OK) slab = find_slot(cr, &ck->slot);
  if (slab) {
    slab->owner[ck->slot] = k;
    memset(&slab->reports[ck->slot], 0, sizeof(AbiReport));
    ck->slab = slab;
    ck->record = slab->records + ck->slot * CUDA_RECORD;
    s = write_records(k->rank, slab, ck->slot, 1);
  }
  pthread_mutex_unlock(&cr->lock);
  return s;
}

// ---- modules -----------------------------------------------------------------------------------------------
static Status fail_load(const RtKernel *k, CuStatus s, const char *log, RtError *e) {
  const CudaRank *cr = cuda_rank(k->rank);
  const char *name = k->info->name;
  switch (s) {
  case CU_NO_BINARY:
    return rt_fail(e, ST_UNSUPPORTED, "kernel '%s' has no code for %s, which is sm_%u", name, cr->name,
                   cr->sm);
  case CU_NEW_PTX:
    return rt_fail(e, ST_UNSUPPORTED,
                   "the PTX of kernel '%s' is newer than the driver (%s): update the driver", name,
                   cr->cu->version);
  case CU_NO_JIT:
    return rt_fail(
        e, ST_UNSUPPORTED,
        "kernel '%s' is PTX, and the driver's compiler is not installed; compile it where there is ptxas",
        name);
  case CU_BAD_PTX:
    return rt_fail(e, ST_CORRUPT, "the driver does not take the PTX of kernel '%s': %.2000s", name, log);
  default:
    return rt_cuda_check(k->rank, s, e, "loading the code of kernel '%s'%s%.2000s", name, *log ? ": " : "",
                         log);
  }
}

static Status load_module(RtKernel *k, const void *code, size_t bytes, CudaModule **out,
                          RtError *e) { // lock held
  CudaRank *cr = cuda_rank(k->rank);
  const uint64_t hash[2] = {hash_bytes(code, bytes, 1), hash_bytes(code, bytes, 2)};
  for (CudaModule *m = cr->modules; m; m = m->next) {
    if (m->bytes != bytes || m->hash[0] != hash[0] || m->hash[1] != hash[1]) continue;
    m->users++;
    *out = m;
    return ST_OK;
  }
  char log[4096] = "";
  int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
  CudaModule *m = calloc(1, sizeof *m);
  if (!m) return rt_no_memory(e);
  const CuStatus s = cr->cu->ModuleLoadDataEx(&m->module, code, k->image->is_text ? 2 : 0, options, values);
  if (s != CU_OK) {
    free(m);
    return fail_load(k, s, log, e);
  }
  m->bytes = bytes;
  memcpy(m->hash, hash, sizeof hash);
  m->users = 1;
  m->next = cr->modules;
  cr->modules = m;
  *out = m;
  return ST_OK;
}

static void drop_module(CudaRank *cr, CudaModule *m) { // lock held
  if (--m->users) return;
  CudaModule **at = &cr->modules;
  while (*at != m) at = &(*at)->next;
  *at = m->next;
  cr->cu->ModuleUnload(m->module);
  free(m);
}

static const CudaName *intern_name(CudaRank *cr, const char *text) { // lock held; NULL: no memory
  for (const CudaName *n = cr->names; n; n = n->next) {
    if (strcmp(n->text, text) == 0) return n;
  }
  CudaName *n = malloc(sizeof *n + strlen(text) + 1);
  if (!n) return NULL;
  strcpy(n->text, text);
  n->next = cr->names;
  return cr->names = n;
}

// ---- loading -----------------------------------------------------------------------------------------------
static Status check_machine(const RtKernel *k, RtError *e) {
  const CudaRank *cr = cuda_rank(k->rank);
  const Image *im = k->image;
  const bool runs = !im->sm        ? true // nobody said
                    : im->sm_exact ? cr->sm == im->sm
                    : im->is_text  ? cr->sm >= im->sm
                                   : cr->sm / 10 == im->sm / 10 && cr->sm >= im->sm;
  if (!runs)
    return rt_fail(e, ST_UNSUPPORTED,
                   "kernel '%s' was compiled for sm_%u%s and does not run on %s, which is sm_%u",
                   k->info->name, im->sm, im->sm_exact ? "a" : "", cr->name, cr->sm);
  for (uint32_t i = 0; i < k->info->nvariants; i++) {
    const ImageVariant *v = &k->info->variants[i];
    if (v->lanes != 32)
      return rt_fail(e, ST_CORRUPT, "kernel '%s' has warps of %u lanes, not 32", k->info->name, v->lanes);
    if (v->workspace_bytes)
      return rt_fail(e, ST_UNSUPPORTED, "kernel '%s' asks for a workspace, which launches do not have",
                     k->info->name);
    if (v->args_bytes % 8)
      return rt_fail(e, ST_CORRUPT,
                     "the arguments of kernel '%s' take %u bytes, which is not a multiple of 8",
                     k->info->name, v->args_bytes);
    if (v->args_bytes > MOST_BYTES || image_launch_bytes(v) > MOST_BYTES)
      return rt_fail(
          e, ST_LIMIT,
          "the arguments of kernel '%s' take %u bytes, its tensor maps and what is hidden included; %d "
          "is the most",
          k->info->name, v->args_bytes > MOST_BYTES ? v->args_bytes : image_launch_bytes(v), MOST_BYTES);
  }
  return ST_OK;
}

static uint32_t cluster_blocks(const ImageVariant *v) {
  return v->cluster[0] ? v->cluster[0] * v->cluster[1] * v->cluster[2] : 1;
}

// Raises what has to be raised, so that no launch fails for its size.
static Status prepare(const RtKernel *k, const ImageVariant *v, CudaFunction *f, RtError *e) {
  const CudaRank *cr = cuda_rank(k->rank);
  const Cuda *cu = cr->cu;
  const char *name = k->info->name;
  const uint64_t threads = (uint64_t)v->num_warps * v->lanes;
  int most = 0, fixed = 0, registers = 0;
  CuStatus s = cu->FuncGetAttribute(&most, CU_FN_MAX_THREADS, f->function);
  if (s == CU_OK) s = cu->FuncGetAttribute(&fixed, CU_FN_STATIC_SHARED, f->function);
  if (s == CU_OK) s = cu->FuncGetAttribute(&registers, CU_FN_REGISTERS, f->function);
  if (s != CU_OK) return rt_cuda_check(k->rank, s, e, "asking about kernel '%s'", name);
  if (!threads || threads > (uint64_t)most)
    return rt_fail(
        e, ST_LIMIT,
        "kernel '%s' wants %llu threads a block; with its %d registers a thread, %s runs at most %d", name,
        (unsigned long long)threads, registers, cr->name, most);
  const uint64_t shared = (uint64_t)v->shared_bytes + (uint32_t)fixed;
  if (shared > cr->max_shared)
    return rt_fail(e, ST_LIMIT, "kernel '%s' wants %llu bytes of shared memory a block; %s has %u", name,
                   (unsigned long long)shared, cr->name, cr->max_shared);
  s = cu->FuncSetAttribute(f->function, CU_FN_CARVEOUT, 100);
  if (s == CU_OK && shared > FREE_SHARED)
    s = cu->FuncSetAttribute(f->function, CU_FN_MAX_DYNAMIC_SHARED, (int)v->shared_bytes);
  if (s == CU_OK && cluster_blocks(v) > PORTABLE_CLUSTER)
    s = cu->FuncSetAttribute(f->function, CU_FN_BIG_CLUSTERS, 1);
  if (s == CU_OK && cu->FuncLoad) s = cu->FuncLoad(f->function);
  return rt_cuda_check(k->rank, s, e, "preparing kernel '%s'", name);
}

static Status load_variant(RtKernel *k, CudaKernel *ck, uint32_t i, RtError *e) {
  const ImageVariant *v = &k->info->variants[i];
  CudaFunction *f = &ck->functions[i];
  const CuStatus s =
      cuda_rank(k->rank)->cu->ModuleGetFunction(&f->function, ck->modules[v->code]->module, v->entry);
  if (s == CU_NOT_FOUND) return rt_fail(e, ST_CORRUPT, "the image's code has no entry '%.100s'", v->entry);
  if (s != CU_OK) return rt_cuda_check(k->rank, s, e, "looking for kernel '%s'", k->info->name);
  f->launch = (CuLaunch){.block = {v->num_warps * v->lanes, 1, 1}, .shared_bytes = v->shared_bytes};
  f->launch.attributes = f->attributes;
  if (cluster_blocks(v) > 1) {
    CuAttribute *a = &f->attributes[f->launch.nattributes++];
    a->id = CU_LAUNCH_CLUSTER;
    memcpy(a->value.cluster, v->cluster, sizeof a->value.cluster);
  }
  if (v->early) {
    CuAttribute *a = &f->attributes[f->launch.nattributes++];
    a->id = CU_LAUNCH_EARLY;
    a->value.allowed = 1;
  }
  const Status st = v->nmaps ? rt_cuda_maps_open(k, v, &f->maps, e) : ST_OK;
  return st == ST_OK ? prepare(k, v, f, e) : st;
}

static Status load_here(RtKernel *k, CudaKernel *ck, RtError *e) { // the context is current
  CudaRank *cr = cuda_rank(k->rank);
  pthread_mutex_lock(&cr->lock);
  const Image *im = k->image;
  Status s = load_module(k, im->code, im->code_bytes, &ck->modules[0], e);
  for (uint32_t i = 0; i < im->nmore && s == ST_OK; i++)
    s = load_module(k, im->more[i].code, im->more[i].bytes, &ck->modules[1 + i], e);
  if (s == ST_OK && !(ck->name = intern_name(cr, k->info->name))) s = rt_no_memory(e);
  pthread_mutex_unlock(&cr->lock);
  for (uint32_t i = 0; i < k->info->nvariants && s == ST_OK; i++) s = load_variant(k, ck, i, e);
  return s == ST_OK ? rt_cuda_check(k->rank, take_record(k, ck), e, "loading kernel '%s'", k->info->name) : s;
}

Status rt_cuda_kernel_load(RtKernel *k, Diags *d, RtError *e) {
  (void)d;
  const CudaRank *cr = cuda_rank(k->rank);
  Status s = check_machine(k, e);
  if (s != ST_OK) return s;
  if (rt_aborted(k->rank->team)) return rt_team_failure(k->rank->team, e);
  CudaKernel *ck = k->device = arena_new(&k->arena, CudaKernel);
  ck->functions = arena_array(&k->arena, CudaFunction, k->info->nvariants);
  ck->modules = arena_array(&k->arena, CudaModule *, 1 + (size_t)k->image->nmore);
  const CuContext before = rt_cuda_enter(cr);
  s = load_here(k, ck, e);
  rt_cuda_leave(cr, before);
  return s;
}

void rt_cuda_kernel_unload(RtKernel *k) {
  CudaKernel *ck = k->device;
  if (!ck) return;
  CudaRank *cr = cuda_rank(k->rank);
  const CuContext before = rt_cuda_enter(cr);
  pthread_mutex_lock(&cr->lock);
  if (ck->slab) ck->slab->owner[ck->slot] = NULL;
  for (uint32_t i = 0; i <= k->image->nmore; i++) {
    if (ck->modules[i]) drop_module(cr, ck->modules[i]);
  }
  pthread_mutex_unlock(&cr->lock);
  rt_cuda_leave(cr, before);
}

// ---- launching -----------------------------------------------------------------------------------------------
static Status fail_grid(const RtKernel *k, const ImageVariant *v, const uint32_t g[3], RtError *e) {
  if (g[0] > MOST_X || g[1] > MOST_YZ || g[2] > MOST_YZ)
    return rt_fail(e, ST_LIMIT, "kernel '%s': a grid of %u x %u x %u is too large; %s takes %d x %d x %d",
                   k->info->name, g[0], g[1], g[2], cuda_rank(k->rank)->name, MOST_X, MOST_YZ, MOST_YZ);
  return rt_fail(e, ST_INVALID,
                 "kernel '%s': a grid of %u x %u x %u is no multiple of its clusters of %u x %u x %u",
                 k->info->name, g[0], g[1], g[2], v->cluster[0], v->cluster[1], v->cluster[2]);
}

static bool grid_fits(const ImageVariant *v, const uint32_t g[3]) {
  if (g[0] > MOST_X || g[1] > MOST_YZ || g[2] > MOST_YZ) return false;
  return cluster_blocks(v) == 1 ||
         (g[0] % v->cluster[0] == 0 && g[1] % v->cluster[1] == 0 && g[2] % v->cluster[2] == 0);
}

// Arguments lie in order, so each may write a whole word: what it spoils is written later.
static void pack(const ImageVariant *v, const RtArg *args, CuPtr record, char *out) {
  for (uint32_t i = 0; i < v->nargs; i++) {
    const ImageArg *a = &v->args[i];
    if (a->kind == IMAGE_ARG_FIXED) continue;
    if (a->kind == IMAGE_ARG_DESC)
      memcpy(out + a->offset, args[i].desc, sizeof(ImageDesc));
    else
      memcpy(out + a->offset, &args[i].bits, sizeof args[i].bits);
  }
  memcpy(out + v->args_bytes, &record, sizeof record);
}

// The address of each argument, in order, then NULL: for kernels with tensor maps, whose places among the arguments depend on the
// architecture (ptxas aligns them in the bank of constants, not from the first argument on).
static void point_at(const ImageVariant *v, char *packed, void **params) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < v->nargs; i++) {
    if (v->args[i].kind != IMAGE_ARG_FIXED) params[n++] = packed + v->args[i].offset;
  }
  params[n++] = packed + v->args_bytes;
  for (uint32_t i = 0; i < v->nmaps; i++) params[n++] = packed + image_map_offset(v, i);
  params[n] = NULL;
}

static Status wait_for_it(RtStream *s, const char *name, RtError *e) {
  const CudaRank *cr = cuda_rank(s->rank);
  int capturing = 0;
  CuStatus c = cr->cu->StreamIsCapturing(cuda_stream(s)->handle, &capturing);
  if (c == CU_OK && !capturing) c = cr->cu->StreamSynchronize(cuda_stream(s)->handle);
  if (c == CU_OK && !capturing) atomic_store(&cuda_stream(s)->launched, 0);
  return rt_cuda_check(s->rank, c, e, "a wait for kernel '%s'", name);
}

Status rt_cuda_launch(RtKernel *k, RtStream *s, uint32_t variant, const uint32_t grid[3], const RtArg *args,
                      RtError *e) {
  const CudaRank *cr = cuda_rank(k->rank);
  const CudaKernel *ck = k->device;
  const CudaFunction *f = &ck->functions[variant];
  const ImageVariant *v = &k->info->variants[variant];
  CudaStream *cs = cuda_stream(s);
  if (!grid_fits(v, grid)) return fail_grid(k, v, grid, e);
  _Alignas(64) char packed[MOST_BYTES + 64];
  pack(v, args, ck->record, packed);
  const CuContext before = rt_cuda_enter(cr);
  Status st = f->maps ? rt_cuda_maps_put(k, f->maps, args, packed, e) : ST_OK;
  if (st != ST_OK) {
    rt_cuda_leave(cr, before);
    return st;
  }
  size_t bytes = image_launch_bytes(v);
  void *extra[] = {(void *)CU_EXTRA_BUFFER, packed, (void *)CU_EXTRA_BYTES, &bytes, (void *)CU_EXTRA_END};
  CuLaunch l = f->launch;
  memcpy(l.grid, grid, sizeof l.grid);
  l.stream = cs->handle;
  void *params[MOST_PARAMS + 1];
  if (f->maps) point_at(v, packed, params);
  const CuStatus c = cr->cu->LaunchKernelEx(&l, f->function, f->maps ? params : NULL, f->maps ? NULL : extra);
  if (c == CU_OK) {
    const uint32_t n = atomic_load_explicit(&cs->launched, memory_order_relaxed);
    atomic_store_explicit(&cs->recent[n % CUDA_RECENT], ck->name, memory_order_relaxed);
    atomic_store_explicit(&cs->launched, n + 1, memory_order_relaxed);
    if (cr->wait_each) st = wait_for_it(s, k->info->name, e);
  } else {
    st = rt_cuda_check(k->rank, c, e,
                       "launching kernel '%s' (grid %u x %u x %u, %u threads, %u bytes of shared memory)",
                       k->info->name, grid[0], grid[1], grid[2], l.block[0], l.shared_bytes);
  }
  rt_cuda_leave(cr, before);
  return st;
}

// ---- reports -------------------------------------------------------------------------------------------------
static void say_report(RtText *t, RtRank *r, const RtKernel *k, const AbiReport *q) {
  static const char *const cmp[] = {"==", "!=", ">", ">=", "<", "<="};
  const ImageSite *site = q->site < k->image->nsites ? &k->image->sites[q->site] : NULL;
  rt_say(t, "kernel '%s', program (%u, %u, %u), thread %u", k->info->name, q->pid[0], q->pid[1], q->pid[2],
         q->thread);
  if (site && site->file) rt_say(t, " at %s:%u:%u", site->file, site->line, site->col);
  const char *what = site && site->what ? site->what : "";
  if (q->kind == ABI_REPORT_ASSERT) {
    rt_say(t, ": assertion failed%s%s", *what ? ": " : "", what);
  } else if (q->kind == ABI_REPORT_BAD_PEER) {
    rt_say(t, ": rank %lld does not exist, or %p is not symmetric memory", (long long)q->value,
           (void *)(uintptr_t)q->flag);
  } else {
    rt_say(t, ": waited longer than its deadline of %.3g s%s%s: ", (double)r->abi.deadline_ns * 1e-9,
           *what ? " for " : "", what);
    rt_describe_word(t, r, (const void *)(uintptr_t)q->flag);
    rt_say(t, " should be %s %lld, but is %lld", q->cmp < DT_COUNTOF(cmp) ? cmp[q->cmp] : "?",
           (long long)q->value, (long long)q->seen);
  }
}

static Status status_of(const AbiReport *q) {
  return q->kind == ABI_REPORT_ASSERT ? ST_ASSERT : q->kind == ABI_REPORT_BAD_PEER ? ST_INVALID : ST_DEADLINE;
}

// The first report that is whole; one that is being written is waited for, for a moment.
static const RtKernel *find_report(CudaRank *cr, AbiReport *out) {
  const uint64_t until = os_now_ns() + 1000000000;
  uint32_t turn = 0;
  for (;;) {
    bool writing = false;
    for (CudaSlab *slab = cr->slabs; slab; slab = slab->next) {
      for (int i = 0; i < CUDA_SLAB; i++) {
        const uint32_t state = __atomic_load_n(&slab->reports[i].state, __ATOMIC_ACQUIRE);
        writing |= state == ABI_REPORT_WRITING;
        if (state != ABI_REPORT_DONE || !slab->owner[i]) continue;
        *out = slab->reports[i];
        return slab->owner[i];
      }
    }
    if (!writing || os_now_ns() > until) return NULL;
    rt_backoff(&turn, 100000);
  }
}

void rt_cuda_harvest(RtRank *r) {
  CudaRank *cr = cuda_rank(r);
  AbiReport q;
  RtText t;
  Status s = ST_DEVICE;
  pthread_mutex_lock(&cr->lock);
  const RtKernel *k = find_report(cr, &q);
  const bool first = (k || !rt_aborted(r->team)) && rt_report_begin(r, k ? status_of(&q) : ST_DEVICE, &t);
  if (k) s = status_of(&q);
  if (first && k) say_report(&t, r, k, &q);
  if (first && !k) rt_say(&t, "a kernel on %s gave up and did not say why", cr->name);
  if (first) rt_report_end(r);
  pthread_mutex_unlock(&cr->lock);
  if (!rt_aborted(r->team)) rt_raise(r->team, s, r->index);
}
