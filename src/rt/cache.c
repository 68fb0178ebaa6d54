// cache: compiled kernels on disk, under keys of 32 hex digits.
//
//   DIR/ab/abcdef....dtc    magic[8] | key[32] | u64 bytes | u64 hash | contents
//
// An entry is written beside its place and renamed, so readers see all of it or nothing. One that does not hold what its
// head says is removed and counts as absent. What was used last is kept when the folder grows over its limit: a hit renews
// the file's time, and now and then a put removes the oldest.
#include "rt/rt_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY = 32, SWEEP_EVERY = 64 };
static const char MAGIC[8] = "DTKCACH1";

typedef struct Head {
  char magic[8], key[KEY];
  uint64_t bytes, hash;
} Head;

struct RtCache {
  char *dir; // "": off
  uint64_t limit;
  pthread_mutex_t lock; // guards what follows
  uint32_t puts;
  bool unwritable, told;
  char problem[512];
};

Status rt_cache_open(const char *dir, uint64_t limit_bytes, RtCache **out, RtError *e) {
  RtCache *c = calloc(1, sizeof *c);
  if (c) c->dir = strdup(dir);
  if (!c || !c->dir) {
    free(c);
    return rt_no_memory(e);
  }
  c->limit = limit_bytes ? limit_bytes : 1ull << 30;
  pthread_mutex_init(&c->lock, NULL);
  *out = c;
  return ST_OK;
}

void rt_cache_close(RtCache *c) {
  if (!c) return;
  pthread_mutex_destroy(&c->lock);
  free(c->dir);
  free(c);
}

const char *rt_cache_dir(const RtCache *c) { return c->dir; }

bool rt_cache_problem(RtCache *c, char *out, size_t cap) {
  pthread_mutex_lock(&c->lock);
  const bool news = c->problem[0] && !c->told;
  if (news) snprintf(out, cap, "%s", c->problem);
  c->told |= news;
  pthread_mutex_unlock(&c->lock);
  return news;
}

static void unwritable(RtCache *c, const char *why) {
  pthread_mutex_lock(&c->lock);
  if (!c->unwritable)
    snprintf(c->problem, sizeof c->problem,
             "the cache folder '%.300s' cannot be written (%s); nothing is kept", c->dir, why);
  c->unwritable = true;
  pthread_mutex_unlock(&c->lock);
}

static bool key_ok(const char *key) { return strlen(key) == KEY && strspn(key, "0123456789abcdef") == KEY; }

static bool path_of(const RtCache *c, const char *key, char path[PATH_MAX]) {
  const int n = snprintf(path, PATH_MAX, "%s/%.2s/%s.dtc", c->dir, key, key);
  return n > 0 && n < PATH_MAX;
}

static bool fits(const char *data, size_t n, const char *key) {
  Head h;
  if (n < sizeof h) return false;
  memcpy(&h, data, sizeof h);
  return memcmp(h.magic, MAGIC, sizeof MAGIC) == 0 && memcmp(h.key, key, KEY) == 0 &&
         h.bytes == n - sizeof h && h.hash == hash_bytes(data + sizeof h, n - sizeof h, 7);
}

bool rt_cache_get(RtCache *c, const char key[33], Arena *a, void **bytes, size_t *n) {
  char path[PATH_MAX], *data;
  size_t len;
  if (!*c->dir || !key_ok(key) || !path_of(c, key, path)) return false;
  if (os_read_file(a, path, 0, &data, &len) != ST_OK) return false;
  if (!fits(data, len, key)) {
    unlink(path);
    return false;
  }
  utimensat(AT_FDCWD, path, NULL, 0);
  *bytes = data + sizeof(Head);
  *n = len - sizeof(Head);
  return true;
}

// ---- keeping under the limit -------------------------------------------------------------------------------
typedef struct Entry {
  uint64_t time, bytes;
  char name[KEY + 16];
} Entry;
typedef struct Sweep {
  Entry *list;
  size_t n, cap;
  uint64_t bytes;
} Sweep;

static int older_first(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  return x->time < y->time ? -1 : x->time > y->time;
}

static void sweep_file(Sweep *s, const char *path, const char *folder, const char *name) {
  struct stat st;
  if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return;
  const bool ours = strlen(name) == KEY + 4 && strcmp(name + KEY, ".dtc") == 0;
  if (!ours) { // what a killed writer left behind
    if (strstr(name, ".tmp") && strstr(name, ".dtc.") && time(NULL) - st.st_mtime > 3600) unlink(path);
    return;
  }
  if (s->n == s->cap) {
    const size_t cap = s->cap ? s->cap * 2 : 256;
    Entry *more = realloc(s->list, cap * sizeof *more);
    if (!more) return;
    s->list = more;
    s->cap = cap;
  }
  Entry *e = &s->list[s->n++];
  e->time = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
  e->bytes = (uint64_t)st.st_size;
  snprintf(e->name, sizeof e->name, "%.2s/%.36s", folder, name);
  s->bytes += e->bytes;
}

static void sweep_folder(const RtCache *c, Sweep *s, const char *folder) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", c->dir, folder) >= (int)sizeof path) return;
  DIR *d = opendir(path);
  for (const struct dirent *f; d && (f = readdir(d));) {
    if (f->d_name[0] == '.') continue;
    if (snprintf(path, sizeof path, "%s/%s/%s", c->dir, folder, f->d_name) < (int)sizeof path)
      sweep_file(s, path, folder, f->d_name);
  }
  if (d) closedir(d);
}

static void sweep(const RtCache *c) {
  Sweep s = {0};
  DIR *d = opendir(c->dir);
  for (const struct dirent *f; d && (f = readdir(d));) {
    if (strlen(f->d_name) == 2 && f->d_name[0] != '.') sweep_folder(c, &s, f->d_name);
  }
  if (d) closedir(d);
  if (s.bytes > c->limit) {
    qsort(s.list, s.n, sizeof *s.list, older_first);
    for (size_t i = 0; i < s.n && s.bytes > c->limit / 4 * 3; i++) {
      char path[PATH_MAX];
      if (snprintf(path, sizeof path, "%s/%s", c->dir, s.list[i].name) < (int)sizeof path) unlink(path);
      s.bytes -= s.list[i].bytes;
    }
  }
  free(s.list);
}

void rt_cache_put(RtCache *c, const char key[33], const void *bytes, size_t n) {
  char path[PATH_MAX];
  if (!*c->dir || !key_ok(key) || !path_of(c, key, path) || n > c->limit / 4) return;
  pthread_mutex_lock(&c->lock);
  const bool off = c->unwritable, clean = c->puts++ % SWEEP_EVERY == 0;
  pthread_mutex_unlock(&c->lock);
  if (off) return;
  char *data = malloc(sizeof(Head) + n);
  if (!data) return;
  Head h = {.bytes = n, .hash = hash_bytes(bytes, n, 7)};
  memcpy(h.magic, MAGIC, sizeof MAGIC);
  memcpy(h.key, key, KEY);
  memcpy(data, &h, sizeof h);
  memcpy(data + sizeof h, bytes, n);
  char *slash = strrchr(path, '/');
  *slash = 0;
  const Status made = os_mkdirs(path);
  *slash = '/';
  if (made != ST_OK || os_write_file(path, data, sizeof h + n) != ST_OK)
    unwritable(c, os_error());
  else if (clean)
    sweep(c);
  free(data);
}
