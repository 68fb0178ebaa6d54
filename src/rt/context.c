// context: settings, the tables of devices and transports, and how failures are put into words.
#include "rt/rt_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

Status rt_fail(RtError *e, Status s, const char *fmt, ...) {
  if (!e) return s;
  e->status = s;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(e->text, sizeof e->text, fmt, ap);
  va_end(ap);
  return s;
}

Status rt_no_memory(RtError *e) { return rt_fail(e, ST_NO_MEMORY, "memory ended"); }

void rt_say(RtText *t, const char *fmt, ...) {
  if (t->n + 1 >= t->cap) return;
  va_list ap;
  va_start(ap, fmt);
  const int n = vsnprintf(t->s + t->n, t->cap - t->n, fmt, ap);
  va_end(ap);
  if (n > 0) t->n = (size_t)n < t->cap - t->n ? t->n + (size_t)n : t->cap - 1;
}

static uint64_t default_budget(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGE_SIZE);
  const uint64_t quarter = pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes / 4 : 1ull << 30;
  return quarter < 8ull << 30 ? quarter : 8ull << 30;
}

Status rt_context_create(const RtConfig *config, RtContext **out, RtError *e) {
  RtContext *c = calloc(1, sizeof *c);
  if (!c) return rt_no_memory(e);
  pthread_mutex_init(&c->lock, NULL);
  if (config) c->config = *config;
  if (!c->config.deadline_ns) c->config.deadline_ns = 600ull * 1000000000u;
  if (!c->config.budget_bytes) c->config.budget_bytes = default_budget();
  *out = c;
  return ST_OK;
}

void rt_context_destroy(RtContext *c) {
  if (!c) return;
  rt_cuda_close(c->cuda);
  pthread_mutex_destroy(&c->lock);
  free(c);
}

// ---- devices -------------------------------------------------------------------------------------------
static const struct {
  const char *name;
  const RtDriver *driver;
} devices[] = {
#define DEVICE(name, text) {#name, &rt_driver_##name},
#include "rt/devices.def"
#undef DEVICE
};

bool rt_device(RtContext *c, uint32_t i, RtDeviceInfo *out) {
  for (size_t d = 0; d < DT_COUNTOF(devices); d++) {
    uint32_t n = 0;
    for (; devices[d].driver->list(c, n, out); n++) {
      if (i-- == 0) return true;
    }
  }
  return false;
}

const RtDriver *rt_driver_find(const char *device, uint32_t *ordinal, RtError *e) {
  char list[256];
  RtText t = {list, 0, sizeof list};
  *ordinal = 0;
  if (!device) return &rt_driver_cpu;
  for (size_t d = 0; d < DT_COUNTOF(devices); d++) {
    const size_t n = strlen(devices[d].name);
    rt_say(&t, "%s'%s'", d ? ", " : "", devices[d].name);
    if (strncmp(device, devices[d].name, n) != 0) continue;
    if (!device[n]) return devices[d].driver;
    char *end;
    const unsigned long k = device[n] == ':' ? strtoul(device + n + 1, &end, 10) : 0;
    if (device[n] != ':' || device[n + 1] < '0' || device[n + 1] > '9' || *end || k > 1024) continue;
    if (k && devices[d].driver == &rt_driver_cpu) continue;
    *ordinal = (uint32_t)k;
    return devices[d].driver;
  }
  rt_fail(e, ST_NOT_FOUND, "there is no device '%.60s'; there are %s, and 'cuda:1' and so on", device, list);
  return NULL;
}

// ---- transports ----------------------------------------------------------------------------------------

const RtTransportInfo *rt_transport(uint32_t i) {
  static const RtTransport *const transports[] = {
#define TRANSPORT(name, text) &rt_transport_##name,
#include "rt/transports.def"
#undef TRANSPORT
  };
  return i < DT_COUNTOF(transports) ? &transports[i]->info : NULL;
}
