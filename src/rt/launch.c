// launch: runs a program as the ranks of a job, as `ditron launch` does.
//
// Children learn their place from the environment (launchers.def) and die with this process. Signals that would end it go
// to all of them; they are taken from a signalfd, so no handler is installed. Where output is asked for line by line, each
// child's two streams are pipes, read here.
#include "rt/rt_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AFTER_NS 2000000000u

typedef struct Lines { // one stream of one child
  int fd;
  size_t n;
  char text[4096];
} Lines;
typedef struct Child {
  pid_t pid;
  int pidfd;
  bool running;
  Lines out[2];
} Child;
typedef struct Launch {
  const RtLaunchConfig *config;
  Child *child;
  int signals; // signalfd
  int running;
  int failed, code;   // rank that failed first, or -1
  uint64_t failed_at; // 0: nobody failed
  int stage;          // 0 none, 1 asked to end, 2 ended
  sigset_t before;
} Launch;

static void name_job(char out[64]) {
  snprintf(out, 64, "%d-%llx", (int)getpid(), (unsigned long long)os_now_ns());
}

// ---- starting ------------------------------------------------------------------------------------------------
static void become_child(const Launch *l, int rank, const char *job, pid_t parent) {
  char number[16];
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  sigprocmask(SIG_SETMASK, &l->before, NULL);
  const Child *c = &l->child[rank];
  if (l->config->output) {
    dup2(c->out[0].fd, 1);
    dup2(c->out[1].fd, 2);
  }
  snprintf(number, sizeof number, "%d", rank);
  setenv("DITRON_RANK", number, 1);
  snprintf(number, sizeof number, "%d", l->config->n);
  setenv("DITRON_WORLD", number, 1);
  setenv("DITRON_JOB", job, 1);
  execvp(l->config->argv[0], (char *const *)(uintptr_t)l->config->argv);
  const char *why = os_error();
  (void)!write(2, l->config->argv[0], strlen(l->config->argv[0]));
  (void)!write(2, ": ", 2);
  (void)!write(2, why, strlen(why));
  (void)!write(2, "\n", 1);
  _exit(127);
}

static bool open_pipes(const Launch *l, Child *c, int write_end[2]) {
  write_end[0] = write_end[1] = -1;
  for (int k = 0; k < 2; k++) {
    c->out[k].fd = -1;
    int p[2];
    if (!l->config->output) continue;
    if (pipe2(p, O_CLOEXEC) != 0) return false;
    c->out[k].fd = p[0];
    write_end[k] = p[1];
  }
  return true;
}

static Status start_child(Launch *l, int rank, const char *job, RtError *e) {
  Child *c = &l->child[rank];
  int write_end[2];
  const pid_t parent = getpid();
  const bool piped = open_pipes(l, c, write_end);
  const int read_end[2] = {c->out[0].fd, c->out[1].fd};
  if (piped) {
    for (int k = 0; k < 2; k++) c->out[k].fd = write_end[k]; // what the child sees
    c->pid = fork();
    if (c->pid == 0) become_child(l, rank, job, parent);
    for (int k = 0; k < 2; k++) c->out[k].fd = read_end[k];
  }
  const int failed = errno;
  for (int k = 0; k < 2; k++) {
    if (write_end[k] >= 0) close(write_end[k]);
  }
  errno = failed;
  if (!piped || c->pid < 0) {
    c->pid = 0;
    return rt_fail(e, ST_IO, "rank %d cannot be started: %s", rank, os_error());
  }
  c->running = true;
  c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
  l->running++;
  return c->pidfd >= 0 ? ST_OK : rt_fail(e, ST_IO, "rank %d cannot be watched: %s", rank, os_error());
}

// ---- running ---------------------------------------------------------------------------------------------------
static void kill_all(const Launch *l, int sig) {
  for (int i = 0; i < l->config->n; i++) {
    if (l->child[i].running) kill(l->child[i].pid, sig);
  }
}

static void give_line(const Launch *l, int rank, int k, Lines *s, size_t len) {
  s->text[len] = 0;
  l->config->output(l->config->user, rank, k == 1, s->text);
}

static void read_lines(const Launch *l, int rank, int k) {
  Lines *s = &l->child[rank].out[k];
  const ssize_t got = read(s->fd, s->text + s->n, sizeof s->text - 1 - s->n);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    if (s->n) give_line(l, rank, k, s, s->n);
    close(s->fd);
    s->fd = -1;
    return;
  }
  s->n += (size_t)got;
  for (char *end; (end = memchr(s->text, '\n', s->n));) {
    const size_t len = (size_t)(end - s->text);
    give_line(l, rank, k, s, len);
    s->n -= len + 1;
    memmove(s->text, end + 1, s->n);
  }
  if (s->n < sizeof s->text - 1) return;
  give_line(l, rank, k, s, s->n); // a line longer than the buffer comes in pieces
  s->n = 0;
}

static void reap(Launch *l, int rank) {
  Child *c = &l->child[rank];
  int ws = 0;
  while (waitpid(c->pid, &ws, 0) < 0 && errno == EINTR) {}
  close(c->pidfd);
  c->pidfd = -1;
  c->running = false;
  l->running--;
  const int code = WIFEXITED(ws) ? WEXITSTATUS(ws) : 128 + WTERMSIG(ws);
  // the ranks that notice a killed one may be reaped before it: it failed first all the same
  const bool cause = WIFSIGNALED(ws) && !l->stage && l->failed >= 0 && l->code <= 128 &&
                     os_now_ns() - l->failed_at < 1000000000u;
  if (!code || (l->failed >= 0 && !cause)) return;
  l->failed = rank;
  l->code = code;
  l->failed_at = os_now_ns();
}

// Those that go on after one failed: time to stop, then a request, then force.
static int hurry(Launch *l) {
  if (!l->failed_at || l->stage == 2) return -1;
  const uint64_t grace = (l->config->grace_ms ? l->config->grace_ms : 10000) * 1000000u;
  const uint64_t due = l->failed_at + grace + (l->stage ? KILL_AFTER_NS : 0), now = os_now_ns();
  if (now < due) return (int)((due - now) / 1000000u) + 1;
  kill_all(l, l->stage ? SIGKILL : SIGTERM);
  l->stage++;
  return 0;
}

static void turn(Launch *l, struct pollfd *p) {
  const int n = l->config->n;
  const int most = hurry(l);
  for (int i = 0; i < n; i++) {
    const Child *c = &l->child[i];
    p[3 * i] = (struct pollfd){.fd = c->pidfd, .events = POLLIN};
    p[3 * i + 1] = (struct pollfd){.fd = c->out[0].fd, .events = POLLIN};
    p[3 * i + 2] = (struct pollfd){.fd = c->out[1].fd, .events = POLLIN};
  }
  p[3 * n] = (struct pollfd){.fd = l->signals, .events = POLLIN};
  if (poll(p, (nfds_t)(3 * n + 1), most) < 0) return;
  struct signalfd_siginfo info;
  if (p[3 * n].revents && read(l->signals, &info, sizeof info) == (ssize_t)sizeof info)
    kill_all(l, (int)info.ssi_signo);
  for (int i = 0; i < n; i++) {
    if (p[3 * i + 1].revents) read_lines(l, i, 0);
    if (p[3 * i + 2].revents) read_lines(l, i, 1);
    // the end is noticed after the last of its output, unless a grandchild holds the pipe
    if (p[3 * i].revents && !p[3 * i + 1].revents && !p[3 * i + 2].revents) reap(l, i);
  }
}

static Status run(Launch *l, RtError *e) {
  char job[64];
  name_job(job);
  struct pollfd *p = calloc((size_t)l->config->n * 3 + 1, sizeof *p);
  if (!p) return rt_no_memory(e);
  Status s = ST_OK;
  for (int i = 0; i < l->config->n && s == ST_OK; i++) s = start_child(l, i, job, e);
  if (s != ST_OK) kill_all(l, SIGKILL);
  while (l->running) turn(l, p);
  free(p);
  return s;
}

Status rt_launch_processes(const RtLaunchConfig *c, int *code, RtError *e) {
  if (c->n < 1 || c->n > RT_MAX_RANKS)
    return rt_fail(e, ST_LIMIT, "a job has 1 to %d ranks, not %d", RT_MAX_RANKS, c->n);
  if (!c->argv || !c->argv[0]) return rt_fail(e, ST_INVALID, "there is no program to launch");
  Launch l = {.config = c, .child = calloc((size_t)c->n, sizeof *l.child), .signals = -1, .failed = -1};
  if (!l.child) return rt_no_memory(e);
  for (int i = 0; i < c->n; i++) l.child[i].pidfd = l.child[i].out[0].fd = l.child[i].out[1].fd = -1;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &ends, &l.before);
  l.signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
  const Status s = run(&l, e);
  if (l.signals >= 0) close(l.signals);
  pthread_sigmask(SIG_SETMASK, &l.before, NULL);
  for (int i = 0; i < c->n; i++) {
    for (int k = 0; k < 2; k++) {
      if (l.child[i].out[k].fd >= 0) close(l.child[i].out[k].fd);
    }
  }
  free(l.child);
  if (s != ST_OK) return s;
  *code = l.code;
  if (l.code > 128)
    rt_fail(e, ST_PEER_LOST, "rank %d was ended by signal %d", l.failed, l.code - 128);
  else if (l.code)
    rt_fail(e, ST_PEER_LOST, "rank %d ended with exit code %d", l.failed, l.code);
  return ST_OK;
}
