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
  if (config) c->config = *config;
  if (!c->config.deadline_ns) c->config.deadline_ns = 600ull * 1000000000u;
  if (!c->config.budget_bytes) c->config.budget_bytes = default_budget();
  *out = c;
  return ST_OK;
}

void rt_context_destroy(RtContext *c) { free(c); }

const RtDeviceInfo *rt_device(uint32_t i) {
  static const RtDeviceInfo devices[] = {
#define DEVICE(name, target, text) {#name, text, target},
#include "rt/devices.def"
#undef DEVICE
  };
  return i < DT_COUNTOF(devices) ? &devices[i] : NULL;
}

const RtTransportInfo *rt_transport(uint32_t i) {
  static const RtTransport *const transports[] = {
#define TRANSPORT(name, text) &rt_transport_##name,
#include "rt/transports.def"
#undef TRANSPORT
  };
  return i < DT_COUNTOF(transports) ? &transports[i]->info : NULL;
}
