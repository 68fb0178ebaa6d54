// os: files, time and child processes, with the library's status codes in place of errno.
//
// Every function may be called from any thread. Where one fails, os_error says why on that thread.
#include "base/base.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

uint64_t os_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void os_sleep_ns(uint64_t ns) {
  struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {}
}

// The container's share of the machine (cgroup v2), rounded up; INT_MAX where there is none.
static int cores_of_quota(void) {
  long long quota, period;
  FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
  if (!f) return INT_MAX;
  const int n = fscanf(f, "%lld %lld", &quota, &period);
  fclose(f);
  if (n != 2 || quota <= 0 || period <= 0) return INT_MAX;
  const long long cores = (quota + period - 1) / period;
  return cores < INT_MAX ? (int)cores : INT_MAX;
}

int os_cores(void) {
  cpu_set_t set;
  const int allowed =
      sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
  const int quota = cores_of_quota(), n = allowed < quota ? allowed : quota;
  return n > 0 ? n : 1;
}

const char *os_error(void) {
  static _Thread_local char text[128];
  return strerror_r(errno, text, sizeof text);
}

static Status status_of_errno(void) {
  return errno == ENOENT || errno == ENOTDIR ? ST_NOT_FOUND : errno == ENOMEM ? ST_NO_MEMORY : ST_IO;
}

// Reads fd to its end; grows the buffer where the size is not known beforehand (pipes, /proc).
static Status read_all(Arena *a, int fd, size_t limit, char **data, size_t *len) {
  struct stat st;
  if (fstat(fd, &st) != 0) return ST_IO;
  const size_t size = S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
  if (limit && size > limit) return ST_LIMIT;
  size_t cap = size ? size + 1 : 64 << 10, n = 0;
  char *buf = arena_alloc(a, cap + 1, 16);
  for (;;) {
    const ssize_t got = read(fd, buf + n, cap - n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ST_IO;
    if (got == 0) break;
    n += (size_t)got;
    if (limit && n > limit) return ST_LIMIT;
    if (n == cap) {
      char *more = arena_alloc(a, cap * 2 + 1, 16);
      memcpy(more, buf, n);
      buf = more;
      cap *= 2;
    }
  }
  buf[n] = 0;
  *data = buf;
  *len = n;
  return ST_OK;
}

Status os_read_file(Arena *a, const char *path, size_t limit, char **data, size_t *len) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return status_of_errno();
  // memory may end while the file is open: catch that, close, and hand it on
  Escape *outer = a->escape, esc;
  if (ESCAPE_TRY(&esc)) {
    close(fd);
    a->escape = outer;
    escape_now(outer, esc.status, "%s", esc.message);
  }
  a->escape = &esc;
  const Status s = read_all(a, fd, limit, data, len);
  const int e = errno;
  a->escape = outer;
  close(fd);
  errno = e;
  return s;
}

static Status write_all(int fd, const char *p, size_t len) {
  while (len) {
    const ssize_t n = write(fd, p, len);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ST_IO;
    p += n;
    len -= (size_t)n;
  }
  return ST_OK;
}

// Closes too: a full disk may show only there. Keeps the errno of what failed first.
static Status write_and_close(int fd, const void *data, size_t len) {
  const Status s = write_all(fd, data, len);
  const int e = errno;
  const int closed = close(fd);
  if (s != ST_OK) errno = e;
  return s != ST_OK || closed != 0 ? ST_IO : ST_OK;
}

// Opens a file of a name of its own beside path. Name and process make it unique, a counter guards the rest.
static int open_beside(const char *path, char *name, size_t cap) {
  for (unsigned i = 0; i < 100; i++) {
    const int n =
        snprintf(name, cap, "%s.%ld.%llx.tmp", path, (long)getpid(), (unsigned long long)os_now_ns() + i);
    if (n < 0 || (size_t)n >= cap) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// Where the links from path lead, though nothing may be there yet. False, with errno: nowhere.
static bool end_of_links(const char *path, char real[PATH_MAX]) {
  char to[PATH_MAX], joined[PATH_MAX];
  if (snprintf(real, PATH_MAX, "%s", path) >= PATH_MAX) return errno = ENAMETOOLONG, false;
  for (int hops = 0; hops < 40; hops++) {
    const ssize_t n = readlink(real, to, sizeof to - 1);
    if (n < 0) return true;
    to[n] = 0;
    const char *slash = *to == '/' ? NULL : strrchr(real, '/'); // a relative link starts from its own folder
    const int dir = slash ? (int)(slash - real + 1) : 0;
    if (snprintf(joined, sizeof joined, "%.*s%s", dir, real, to) >= PATH_MAX)
      return errno = ENAMETOOLONG, false;
    memcpy(real, joined, sizeof joined);
  }
  return errno = ELOOP, false;
}

Status os_write_file(const char *path, const void *data, size_t len) {
  char real[PATH_MAX], name[PATH_MAX];
  struct stat st;
  const bool there = stat(path, &st) == 0;
  if (there && !S_ISREG(st.st_mode)) { // a pipe, a terminal, /dev/null: nothing to rename over
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? ST_IO : write_and_close(fd, data, len);
  }
  if (!end_of_links(path, real)) return ST_IO;
  path = real; // write through links, as a plain open would
  const int fd = open_beside(path, name, sizeof name);
  if (fd < 0) return status_of_errno();
  if (there) (void)!fchmod(fd, st.st_mode & 0777); // as it was; failing that, as the umask has it
  Status s = write_and_close(fd, data, len);
  if (s == ST_OK && rename(name, path) != 0) s = ST_IO;
  if (s != ST_OK) {
    const int e = errno;
    unlink(name);
    errno = e;
  }
  return s;
}

Status os_mkdirs(const char *path) {
  char p[PATH_MAX];
  const size_t n = strlen(path);
  if (n == 0 || n >= sizeof p) {
    errno = n ? ENAMETOOLONG : ENOENT;
    return ST_IO;
  }
  memcpy(p, path, n + 1);
  for (char *s = p + 1; s <= p + n; s++) {
    if (*s && *s != '/') continue;
    const char c = *s;
    *s = 0;
    if (mkdir(p, 0700) != 0 && errno != EEXIST) return ST_IO;
    *s = c;
  }
  if (os_is_dir(path)) return ST_OK;
  errno = ENOTDIR;
  return ST_IO;
}

bool os_exists(const char *path) { return access(path, F_OK) == 0; }

bool os_is_dir(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// The library or program that this code is in. A program is known only by the name it was called by: one without a
// slash was found on PATH.
static const char *code_file(void) {
  static const char here;
  Dl_info info;
  if (!dladdr(&here, &info) || !info.dli_fname) return NULL;
  return strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe";
}

const char *os_code_dir(Arena *a) {
  const char *file = code_file();
  char real[PATH_MAX];
  if (!file || !realpath(file, real)) return NULL;
  char *slash = strrchr(real, '/');
  slash[slash == real] = 0;
  return arena_strdup(a, real);
}

uint64_t os_code_stamp(void) {
  const char *file = code_file();
  struct stat st;
  if (!file || stat(file, &st) != 0) return 0;
  const uint64_t facts[] = {(uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_size};
  return hash_bytes(facts, sizeof facts, 5);
}

// ---- child processes -----------------------------------------------------------------------------------------
static void close_end(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// This process's environment, and `set` where nothing there has its name. Only the list is the caller's to free.
static char **environment_with(const char *set) {
  const size_t name = strcspn(set, "=") + 1;
  size_t n = 0;
  bool there = false;
  while (environ[n]) there |= strncmp(environ[n++], set, name) == 0;
  char **all = malloc((n + 2) * sizeof *all);
  if (!all) return NULL;
  memcpy(all, environ, n * sizeof *all);
  if (!there) all[n++] = (char *)(uintptr_t)set;
  all[n] = NULL;
  return all;
}

// Starts argv with these as its streams; in_fd < 0: no input. Returns an errno.
static int spawn(const char *const *argv, int in_fd, int out_fd, const char *set, pid_t *pid) {
  posix_spawn_file_actions_t fa;
  char **env = set ? environment_with(set) : environ;
  if (!env) return ENOMEM;
  int e = posix_spawn_file_actions_init(&fa);
  if (!e) {
    e = in_fd < 0 ? posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0)
                  : posix_spawn_file_actions_adddup2(&fa, in_fd, 0);
    if (!e) e = posix_spawn_file_actions_adddup2(&fa, out_fd, 1);
    if (!e) e = posix_spawn_file_actions_adddup2(&fa, out_fd, 2);
    if (!e) e = posix_spawnp(pid, argv[0], &fa, NULL, (char *const *)(uintptr_t)argv, env);
    posix_spawn_file_actions_destroy(&fa);
  }
  if (set) free(env);
  return e;
}

Status os_child_start(OsChild *c, const char *const *argv, bool input, const char *set) {
  int in[2] = {-1, -1}, out[2];
  *c = (OsChild){.to = -1, .to_far = -1, .from = -1};
  if (pipe2(out, O_CLOEXEC) != 0) return ST_IO;
  int e = input && pipe2(in, O_CLOEXEC) != 0 ? errno : 0;
  pid_t pid = 0;
  if (!e) e = spawn(argv, in[0], out[1], set, &pid);
  close(out[1]);
  c->from = out[0];
  c->to = in[1];
  c->to_far = in[0];
  if (!e) {
    c->pid = pid;
    return ST_OK;
  }
  close_end(&c->from);
  close_end(&c->to);
  close_end(&c->to_far);
  errno = e;
  return status_of_errno();
}

// Holding the far end as well keeps SIGPIPE away; that the child is gone is seen by the end of what it says.
void os_child_give(OsChild *c, const void *p, size_t n) {
  const char *at = p;
  if (c->to < 0) return;
  fcntl(c->to, F_SETFL, O_NONBLOCK);
  while (n) {
    const ssize_t w = write(c->to, at, n);
    if (w > 0) {
      at += w;
      n -= (size_t)w;
      continue;
    }
    if (w < 0 && errno == EINTR) continue;
    if (w == 0 || errno != EAGAIN) break;
    struct pollfd ready[2] = {{.fd = c->to, .events = POLLOUT}, {.fd = c->from}}; // of `from` only its end
    if (poll(ready, 2, -1) < 0 && errno != EINTR) break;
    if (ready[1].revents) break;
  }
  close_end(&c->to);
  close_end(&c->to_far);
}

static Status reap(OsChild *c, int *code) {
  int ws;
  const pid_t pid = (pid_t)c->pid;
  c->pid = 0;
  close_end(&c->from);
  while (waitpid(pid, &ws, 0) < 0) {
    if (errno != EINTR) return ST_IO;
  }
  *code = WIFEXITED(ws) ? WEXITSTATUS(ws) : 128 + WTERMSIG(ws);
  return ST_OK;
}

Status os_child_wait(OsChild *c, int *code, char *out, size_t cap) {
  char spill[4096]; // what does not fit is read and dropped, or the child would block
  size_t n = 0;
  close_end(&c->to);
  close_end(&c->to_far);
  for (;;) {
    const size_t room = cap ? cap - 1 - n : 0;
    const ssize_t got = read(c->from, room ? out + n : spill, room ? room : sizeof spill);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (room) n += (size_t)got;
  }
  if (cap) out[n] = 0;
  return reap(c, code);
}

void os_child_end(OsChild *c) {
  int code;
  if (!c->pid) return;
  close_end(&c->to);
  close_end(&c->to_far);
  kill((pid_t)c->pid, SIGKILL);
  reap(c, &code);
}

Status os_run(const char *const *argv, int *code, char *out, size_t cap) {
  OsChild c;
  if (cap) out[0] = 0;
  const Status s = os_child_start(&c, argv, false, NULL);
  return s == ST_OK ? os_child_wait(&c, code, out, cap) : s;
}
