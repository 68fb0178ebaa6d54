// threads: the transport of ranks that are threads of one process. The common block is private memory.
#include "rt/rt_impl.h"

#include <sys/mman.h>
#include <unistd.h>

static Status open_block(RtTeam *t, const RtJob *job, size_t bytes, RtError *e) {
  (void)job;
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return rt_fail(e, ST_NO_MEMORY, "%zu bytes of address space for the symmetric heaps cannot be had: %s",
                   bytes, os_error());
  madvise((char *)p + t->control_bytes, bytes - t->control_bytes, MADV_HUGEPAGE);
  t->map = p;
  t->map_bytes = bytes;
  t->control = p;
  for (int i = 0; i < t->world; i++) {
    ControlRank *c = rt_control_rank(t, i);
    atomic_store(&c->pid, (uint32_t)getpid());
    atomic_store(&c->state, PEER_HERE);
  }
  return ST_OK;
}

static void watch_end(RtTeam *t) { (void)t; }

static void close_block(RtTeam *t) { munmap(t->map, t->map_bytes); }

const RtTransport rt_transport_threads = {
    .info = {"threads", "ranks are threads of one process"},
    .open = open_block,
    .watch_end = watch_end,
    .close = close_block,
};
