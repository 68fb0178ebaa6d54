// bootstrap: what the environment says about this process: its place in a job, and where caches go.
#include "rt/rt_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *variable(const char *name) {
  const char *s = *name ? getenv(name) : NULL;
  return s && *s ? s : NULL;
}

typedef struct Launcher {
  const char *name, *rank, *world, *local_world, *job, *more;
} Launcher;

static const Launcher launchers[] = {
#define LAUNCHER(name, rank, world, local_world, job, more) {#name, rank, world, local_world, job, more},
#include "rt/launchers.def"
#undef LAUNCHER
};

static bool read_number(const char *name, int64_t *out, RtError *e) {
  const char *s = variable(name);
  char *end = NULL;
  errno = 0;
  const long long v = s ? strtoll(s, &end, 10) : -1;
  if (s && !errno && !*end && v >= 0 && v <= INT32_MAX) {
    *out = v;
    return true;
  }
  if (s)
    rt_fail(e, ST_INVALID, "%s is '%.64s', but must be a whole number from 0", name, s);
  else
    rt_fail(e, ST_INVALID, "%s is not set, though other variables of its launcher are", name);
  return false;
}

// Letters that are safe in a socket's name; others become dashes.
static void add_name(char *id, size_t cap, const char *part) {
  size_t n = strlen(id);
  for (; *part && n + 1 < cap; part++) {
    const char c = *part;
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
    id[n++] = plain ? c : '-';
  }
  id[n] = 0;
}

static void name_job(RtJob *j, const Launcher *l) {
  char number[32];
  const char *job = variable(l->job), *more = variable(l->more);
  snprintf(j->id, sizeof j->id, "ditron.%u.%s.", (unsigned)getuid(), l->name);
  enum { ROOM = 24 }; // for what a team appends
  if (job) add_name(j->id, sizeof j->id - ROOM, job);
  add_name(j->id, sizeof j->id - ROOM, ".");
  if (more) add_name(j->id, sizeof j->id - ROOM, more);
  if (job || more) return;
  snprintf(number, sizeof number, "%d", (int)getppid());
  add_name(j->id, sizeof j->id - ROOM, number);
}

static Status read_job(RtJob *j, const Launcher *l, RtError *e) {
  int64_t rank, world, local;
  if (!read_number(l->rank, &rank, e) || !read_number(l->world, &world, e)) return ST_INVALID;
  if (rank >= world)
    return rt_fail(e, ST_INVALID, "%s is %lld, but %s is %lld", l->rank, (long long)rank, l->world,
                   (long long)world);
  if (variable(l->local_world)) {
    if (!read_number(l->local_world, &local, e)) return ST_INVALID;
    if (local != world)
      return rt_fail(
          e, ST_UNSUPPORTED,
          "the job has %lld ranks, but only %lld on this host; teams over several hosts are not supported",
          (long long)world, (long long)local);
  }
  j->rank = (int)rank;
  j->world = (int)world;
  j->launcher = l->name;
  name_job(j, l);
  return ST_OK;
}

Status rt_job_read(RtJob *j, RtError *e) {
  *j = (RtJob){.world = 1, .launcher = "none"};
  for (size_t i = 0; i < DT_COUNTOF(launchers); i++) {
    if (variable(launchers[i].rank)) return read_job(j, &launchers[i], e);
  }
  return ST_OK;
}

void rt_cache_default_dir(char *out, size_t cap) {
  const char *cache = variable("XDG_CACHE_HOME"), *home = variable("HOME");
  int n = 0;
  if (cache && *cache == '/')
    n = snprintf(out, cap, "%s/ditron", cache);
  else if (home && *home == '/')
    n = snprintf(out, cap, "%s/.cache/ditron", home);
  if (n <= 0 || (size_t)n >= cap) *out = 0;
}
