// cuda_driver: opening NVIDIA's driver, listing its devices, and putting its errors into words.
#include "rt/dev_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// ---- opening -------------------------------------------------------------------------------------------
static Status missing(Cuda *cu, const char *fmt, ...) DT_PRINTF(2, 3);
static Status missing(Cuda *cu, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(cu->why, sizeof cu->why, fmt, ap);
  va_end(ap);
  return ST_NOT_FOUND;
}

static Status fail_init(Cuda *cu, const char *path, CuStatus s) {
  const char *name = NULL;
  switch (s) {
  case CU_NO_DEVICE: return missing(cu, "the NVIDIA driver finds no GPU");
  case CU_STUB: return missing(cu, "%s is a stub to link against, not a driver", path);
  case CU_MISMATCH:
    return missing(cu,
                   "the NVIDIA driver's library and its kernel module are of different versions; restart, or "
                   "install matching ones");
  default: break;
  }
  if (cu->GetErrorName(s, &name) != CU_OK || !name) name = "an unknown error";
  return missing(cu, "the NVIDIA driver does not start: %s (%d)", name, s);
}

// The version of the kernel module, as its file says: "... Kernel Module for x86_64  580.159.04  Release Build ...".
static void module_version(char out[32]) {
  char line[512] = "";
  *out = 0;
  FILE *f = fopen("/proc/driver/nvidia/version", "re");
  if (!f) return;
  if (!fgets(line, sizeof line, f)) *line = 0;
  fclose(f);
  for (const char *p = line; *p; p++) {
    if (*p != ' ' || p[1] < '0' || p[1] > '9') continue;
    const size_t n = strspn(p + 1, "0123456789.");
    if (n < 5 || n > 31 || !memchr(p + 1, '.', n)) continue;
    memcpy(out, p + 1, n);
    out[n] = 0;
    return;
  }
}

static Status open_driver(Cuda *cu, const char *asked) {
  static const struct {
    const char *symbol;
    size_t at;
    bool needed;
  } calls[] = {
#define CUDA(field, symbol, needed, parameters) {symbol, offsetof(Cuda, field), needed},
#include "rt/cuda.def"
#undef CUDA
  };
  const char *path = asked && *asked ? asked : "libcuda.so.1";
  // never unloaded: its threads and exit handlers outlive every context
  cu->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!cu->lib) return missing(cu, "no NVIDIA driver here (%.200s)", dlerror());
  for (size_t i = 0; i < DT_COUNTOF(calls); i++) {
    void *f = dlsym(cu->lib, calls[i].symbol);
    if (!f && calls[i].needed)
      return missing(cu, "the NVIDIA driver is too old: it has no %s; 525 or a later one is needed",
                     calls[i].symbol);
    memcpy((char *)cu + calls[i].at, &f, sizeof f);
  }
  const CuStatus s = cu->Init(0);
  if (s != CU_OK) return fail_init(cu, path, s);
  int version = 0;
  char module[32];
  cu->DriverGetVersion(&version);
  module_version(module);
  snprintf(cu->version, sizeof cu->version, "%s%sCUDA %d.%d%s", module, *module ? " (" : "", version / 1000,
           version % 1000 / 10, *module ? ")" : "");
  if (cu->DeviceGetCount(&cu->ndevices) != CU_OK || cu->ndevices < 1)
    return missing(cu, "the NVIDIA driver finds no GPU");
  return ST_OK;
}

const Cuda *rt_cuda_open(RtContext *c) {
  static const Cuda no_memory = {.status = ST_NO_MEMORY, .why = "memory ended"};
  pthread_mutex_lock(&c->lock);
  Cuda *cu = c->cuda;
  if (!cu && (cu = calloc(1, sizeof *cu))) {
    cu->status = open_driver(cu, c->config.libcuda);
    c->cuda = cu;
  }
  pthread_mutex_unlock(&c->lock);
  return cu ? cu : &no_memory;
}

void rt_cuda_close(Cuda *cu) {
  if (!cu) return;
  if (cu->lib) dlclose(cu->lib);
  free(cu);
}

// Code for sm_80 runs on 8.6 and 8.9 as well; that for sm_90a on 9.0 alone.
static const char *target_for(int sm) { return sm == 90 ? "sm_90a" : sm == 89 ? "sm_89" : "sm_80"; }

void rt_cuda_describe(const Cuda *cu, CuDevice d, RtDeviceInfo *out) {
  char name[96] = "";
  size_t bytes = 0;
  int major = 0, minor = 0, sms = 0;
  cu->DeviceGetName(name, sizeof name, d);
  cu->DeviceTotalMem(&bytes, d);
  cu->DeviceGetAttribute(&major, CU_DEV_MAJOR, d);
  cu->DeviceGetAttribute(&minor, CU_DEV_MINOR, d);
  cu->DeviceGetAttribute(&sms, CU_DEV_SMS, d);
  snprintf(out->target, sizeof out->target, "%s", target_for(major * 10 + minor));
  snprintf(out->text, sizeof out->text, "%s, sm_%d%d, %.1f GiB, %d multiprocessors, driver %s", name, major,
           minor, (double)bytes / 0x1p30, sms, cu->version);
}

// ---- errors ----------------------------------------------------------------------------------------------
// After these the context, and with it everything on the device that this process has, is gone.
static const char *broken_by(CuStatus s) {
  switch (s) {
  case CU_ILLEGAL_ADDRESS: return "used memory that is not its own";
  case CU_MISALIGNED: return "used a misaligned address";
  case CU_ADDRESS_SPACE: return "used an address of another kind of memory";
  case CU_ILLEGAL_INSTRUCTION: return "executed an illegal instruction";
  case CU_BAD_PC: return "jumped to where there is no code";
  case CU_STACK: return "broke its stack";
  case CU_ASSERT: return "failed an assertion";
  case CU_TIMEOUT: return "ran longer than the system allows";
  case CU_LAUNCH_FAILED: return "failed";
  case CU_ECC: return "met an uncorrectable memory error of the device";
  case CU_CONTEXT_DESTROYED: return "lost the device's context";
  default: return NULL;
  }
}

static bool named_before(const CudaName *const *names, uint32_t n, const CudaName *name) {
  for (uint32_t i = 0; i < n; i++) {
    if (names[i] == name) return true;
  }
  return false;
}

// Kernels that were launched and not yet seen to end, the latest of a stream first.
static uint32_t suspects(RtRank *r, const CudaName **out, uint32_t most) {
  uint32_t n = 0;
  pthread_mutex_lock(&r->lock); // streams come and go under it
  for (int i = 0; i < RT_MAX_STREAMS; i++) {
    const CudaStream *cs = r->streams[i] ? r->streams[i]->device : NULL;
    const uint32_t launched = cs ? atomic_load(&cs->launched) : 0;
    for (uint32_t k = 0; k < launched && k < CUDA_RECENT; k++) {
      const CudaName *name = atomic_load(&cs->recent[(launched - 1 - k) % CUDA_RECENT]);
      if (name && n < most && !named_before(out, n, name)) out[n++] = name;
    }
  }
  pthread_mutex_unlock(&r->lock);
  return n;
}

static void lose(RtRank *r, CuStatus s, const char *doing) {
  CudaRank *cr = cuda_rank(r);
  const CudaName *names[CUDA_RECENT];
  const uint32_t n = suspects(r, names, CUDA_RECENT);
  const char *code = NULL;
  RtText t;
  cr->cu->GetErrorName(s, &code);
  if (rt_report_begin(r, ST_DEVICE, &t)) {
    if (!n)
      rt_say(&t, "something on %s that was not launched here, or was replayed,", cr->name);
    else if (n == 1)
      rt_say(&t, "kernel '%s' on %s", names[0]->text, cr->name);
    else
      rt_say(&t, "one of the kernels");
    for (uint32_t i = 0; i < n && n > 1; i++) rt_say(&t, "%s'%s'", i ? ", " : " ", names[i]->text);
    if (n > 1) rt_say(&t, " on %s", cr->name);
    rt_say(&t, " %s (%s), as %s showed; this process cannot use the device any more", broken_by(s),
           code ? code : "?", doing);
    if (n > 1) rt_say(&t, ". DITRON_CUDA_WAIT_EACH=1 finds out which");
    rt_report_end(r);
  }
  atomic_store(&cr->lost, true);
  rt_raise(r->team, ST_DEVICE, r->index);
}

Status rt_cuda_check(RtRank *r, CuStatus s, RtError *e, const char *fmt, ...) {
  if (s == CU_OK) return ST_OK;
  const CudaRank *cr = cuda_rank(r);
  char doing[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(doing, sizeof doing, fmt, ap);
  va_end(ap);
  if (broken_by(s)) {
    if (!atomic_load(&cr->lost)) lose(r, s, doing);
    return rt_team_failure(r->team, e);
  }
  const char *code = NULL, *text = NULL;
  cr->cu->GetErrorName(s, &code);
  cr->cu->GetErrorString(s, &text);
  return rt_fail(e, s == CU_NO_MEMORY ? ST_NO_MEMORY : ST_DEVICE, "%s: %s: %s (%s)", cr->name, doing,
                 text ? text : "an error that the driver has no text for", code ? code : "?");
}
