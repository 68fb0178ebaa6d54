// shm: the transport of ranks that are processes of one host. They map one memory file that has no name, so that nothing
// is left behind however they end.
//
// Rank 0 listens on a socket in the abstract namespace, named by the job. The others connect and say who they are; when
// all have come, rank 0 makes the file and sends it to each. The connections stay open: a rank that ends without saying
// goodbye shows as an end of file at rank 0, and rank 0's own end at everybody. In addition each rank watches the
// processes themselves (pidfd), as a forked child may hold a connection open. One thread a process listens for all that.
#include "rt/rt_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define START_DEADLINE_NS (60ull * 1000000000u)

typedef struct Hello { // from each rank to rank 0
  char magic[8];
  uint32_t abi, rank, world, pid;
  uint64_t bytes;
} Hello;
typedef struct Answer { // from rank 0, with the memory file where ok
  uint32_t status;
  char text[500];
} Answer;

struct ShmState {
  int rank, world;
  int *socket; // by rank; rank 0 has one to each, the others one to rank 0; -1: none
  int *pidfd;  // by rank; -1: none
  int stop;    // eventfd
  pthread_t watcher;
  bool watching;
};

// ---- sockets -------------------------------------------------------------------------------------------
static socklen_t address_of(const RtJob *job, struct sockaddr_un *a) {
  *a = (struct sockaddr_un){.sun_family = AF_UNIX};
  size_t n = strlen(job->id);
  if (n > sizeof a->sun_path - 1) n = sizeof a->sun_path - 1;
  memcpy(a->sun_path + 1, job->id, n); // the leading zero byte: abstract
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

static bool same_user(int fd) {
  struct ucred c;
  socklen_t n = sizeof c;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 && c.uid == getuid();
}

static bool readable(int fd, uint64_t until) {
  const uint64_t now = os_now_ns();
  struct pollfd p = {.fd = fd, .events = POLLIN};
  return now < until && poll(&p, 1, (int)((until - now) / 1000000u) + 1) > 0;
}

static bool send_answer(int fd, const Answer *a, int file) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control = {{0}};
  struct iovec io = {(void *)(uintptr_t)a, sizeof *a};
  struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
  if (file >= 0) {
    m.msg_control = control.bytes;
    m.msg_controllen = sizeof control.bytes;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &file, sizeof file);
  }
  return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof *a;
}

static bool receive_answer(int fd, Answer *a, int *file) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  struct iovec io = {a, sizeof *a};
  struct msghdr m = {
      .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  *file = -1;
  if (recvmsg(fd, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *a) return false;
  const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
    memcpy(file, CMSG_DATA(c), sizeof *file);
  a->text[sizeof a->text - 1] = 0;
  return true;
}

// ---- rank 0's side ---------------------------------------------------------------------------------------
// NULL, or why the hello is not that of a fitting rank.
static const char *hello_fault(const ShmState *s, const Hello *h, const Hello *mine, char *text, size_t cap) {
  if (memcmp(h->magic, mine->magic, sizeof h->magic) != 0 || h->abi != mine->abi)
    return "it runs another version";
  if (h->rank == 0 || h->rank >= mine->world || s->socket[h->rank] >= 0) {
    snprintf(text, cap, "there are two of rank %u, or it is not below %u", h->rank, mine->world);
    return text;
  }
  if (h->world != mine->world || h->bytes != mine->bytes) {
    snprintf(text, cap, "it expects %u ranks and %llu bytes, rank 0 %u ranks and %llu bytes", h->world,
             (unsigned long long)h->bytes, mine->world, (unsigned long long)mine->bytes);
    return text;
  }
  return NULL;
}

static Status tell_all(const ShmState *s, RtError *e) {
  Answer a = {.status = e->status};
  snprintf(a.text, sizeof a.text, "%.*s", (int)sizeof a.text - 1, e->text);
  for (int i = 1; i < s->world; i++) {
    if (s->socket[i] >= 0) send_answer(s->socket[i], &a, -1);
  }
  return e->status;
}

static Status fail_absent(const ShmState *s, RtError *e) {
  char list[256];
  RtText t = {list, 0, sizeof list};
  list[0] = 0;
  for (int i = 1; i < s->world; i++) {
    if (s->socket[i] < 0) rt_say(&t, "%s%d", t.n ? ", " : "", i);
  }
  return rt_fail(e, ST_DEADLINE, "these ranks did not come within %llu s: %s",
                 START_DEADLINE_NS / 1000000000u, list);
}

static Status welcome(ShmState *s, int listener, const Hello *mine, RtError *e) {
  const uint64_t until = os_now_ns() + START_DEADLINE_NS;
  for (int have = 1; have < s->world;) {
    if (!readable(listener, until)) return fail_absent(s, e);
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) continue;
    Hello h;
    if (!same_user(fd) || !readable(fd, until) || recv(fd, &h, sizeof h, 0) != (ssize_t)sizeof h) {
      close(fd); // not one of us
      continue;
    }
    char text[200];
    const char *fault = hello_fault(s, &h, mine, text, sizeof text);
    if (fault) {
      rt_fail(e, memcmp(h.magic, mine->magic, 8) || h.abi != mine->abi ? ST_VERSION : ST_MISMATCH,
              "rank %u (process %u) does not fit: %s", h.rank, h.pid, fault);
      Answer a = {.status = e->status};
      snprintf(a.text, sizeof a.text, "%.*s", (int)sizeof a.text - 1, e->text);
      send_answer(fd, &a, -1);
      close(fd);
      return e->status;
    }
    s->socket[h.rank] = fd;
    have++;
  }
  return ST_OK;
}

static Status make_file(size_t bytes, int *file, RtError *e) {
  *file = memfd_create("ditron", MFD_CLOEXEC);
  if (*file >= 0 && ftruncate(*file, (off_t)bytes) == 0) return ST_OK;
  return rt_fail(e, ST_NO_MEMORY, "%zu bytes of shared memory cannot be had: %s", bytes, os_error());
}

static Status lead(ShmState *s, const RtJob *job, const Hello *mine, int *file, RtError *e) {
  struct sockaddr_un a;
  const socklen_t n = address_of(job, &a);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  Status st = ST_OK;
  if (listener < 0 || bind(listener, (struct sockaddr *)&a, n) != 0 || listen(listener, s->world) != 0)
    st = rt_fail(e, errno == EADDRINUSE ? ST_BUSY : ST_IO, "rank 0 of job '%s' cannot listen: %s", job->id,
                 os_error());
  if (st == ST_OK) st = welcome(s, listener, mine, e);
  if (listener >= 0) close(listener);
  if (st == ST_OK) st = make_file(mine->bytes, file, e);
  if (st != ST_OK) return tell_all(s, e);
  const Answer ok = {.status = ST_OK};
  for (int i = 1; i < s->world; i++) {
    if (!send_answer(s->socket[i], &ok, *file))
      return rt_fail(e, ST_PEER_LOST, "rank %d has ended while it started", i);
  }
  return ST_OK;
}

// ---- the others' side ----------------------------------------------------------------------------------------
static Status follow(ShmState *s, const RtJob *job, const Hello *mine, int *file, RtError *e) {
  struct sockaddr_un a;
  const socklen_t n = address_of(job, &a);
  const uint64_t until = os_now_ns() + START_DEADLINE_NS;
  int fd = -1;
  for (uint32_t turn = 300;; rt_backoff(&turn, 5000000)) {
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) return rt_fail(e, ST_IO, "a socket cannot be had: %s", os_error());
    if (connect(fd, (struct sockaddr *)&a, n) == 0) break;
    close(fd);
    if (os_now_ns() > until)
      return rt_fail(e, ST_DEADLINE, "rank 0 of job '%s' did not come within %llu s", job->id,
                     START_DEADLINE_NS / 1000000000u);
  }
  s->socket[0] = fd;
  if (!same_user(fd)) return rt_fail(e, ST_INVALID, "rank 0 of job '%s' belongs to another user", job->id);
  Answer answer;
  if (send(fd, mine, sizeof *mine, MSG_NOSIGNAL) != (ssize_t)sizeof *mine ||
      !readable(fd, until + START_DEADLINE_NS) || !receive_answer(fd, &answer, file))
    return rt_fail(e, ST_PEER_LOST, "rank 0 has ended while it started");
  if (answer.status != ST_OK) return rt_fail(e, (Status)answer.status, "%s", answer.text);
  if (*file < 0) return rt_fail(e, ST_IO, "rank 0 sent no memory file");
  return ST_OK;
}

// ---- noticing peers that end ---------------------------------------------------------------------------------
// Process numbers mean the same only to processes of one namespace.
static uint64_t pid_space(void) {
  struct stat st;
  return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static void open_pidfds(RtTeam *t) {
  ShmState *s = t->shm;
  for (int i = 0; i < s->world; i++) {
    const ControlRank *c = rt_control_rank(t, i);
    if (i == s->rank || s->pidfd[i] != -1) continue;
    const uint32_t state = atomic_load(&c->state);
    if (state == PEER_ABSENT) continue; // looked at again
    if (state != PEER_HERE)
      s->pidfd[i] = -2;
    else if (c->pid_space && c->pid_space == rt_control_rank(t, s->rank)->pid_space)
      s->pidfd[i] = (int)syscall(SYS_pidfd_open, atomic_load(&c->pid), 0);
    else
      s->pidfd[i] = -2; // not visible from here
    if (s->pidfd[i] == -1) {
      s->pidfd[i] = -2;
      if (errno == ESRCH) rt_lost(t, i);
    }
  }
}

static void closed(RtTeam *t, int *fd, int rank) {
  close(*fd);
  *fd = -2;
  rt_lost(t, rank); // nothing, where it has said goodbye
}

static void *watch(void *arg) {
  RtTeam *t = arg;
  ShmState *s = t->shm;
  struct pollfd *p = calloc((size_t)s->world * 2 + 1, sizeof *p);
  if (!p) return NULL; // deadlines still hold
  for (;;) {
    open_pidfds(t);
    bool complete = true;
    for (int i = 0; i < s->world; i++) {
      p[i] = (struct pollfd){.fd = s->socket[i], .events = POLLIN};
      p[s->world + i] = (struct pollfd){.fd = s->pidfd[i], .events = POLLIN};
      complete &= i == s->rank || s->pidfd[i] != -1;
    }
    p[2 * s->world] = (struct pollfd){.fd = s->stop, .events = POLLIN};
    if (poll(p, (nfds_t)s->world * 2 + 1, complete ? -1 : 5) < 0 && errno != EINTR) break;
    if (p[2 * s->world].revents) break;
    for (int i = 0; i < s->world; i++) {
      if (p[i].revents) closed(t, &s->socket[i], i);
      if (p[s->world + i].revents) closed(t, &s->pidfd[i], i);
    }
  }
  free(p);
  return NULL;
}

// ---- the transport ---------------------------------------------------------------------------------------------
static Status map_file(RtTeam *t, int file, size_t bytes, RtError *e) {
  struct stat st;
  void *p = fstat(file, &st) == 0 && (uint64_t)st.st_size == bytes
                ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0)
                : MAP_FAILED;
  if (p == MAP_FAILED)
    return rt_fail(e, ST_NO_MEMORY, "%zu bytes of shared memory cannot be mapped: %s", bytes, os_error());
  t->map = p;
  t->map_bytes = bytes;
  return ST_OK;
}

static Status start(RtTeam *t, const RtJob *job, size_t bytes, RtError *e) {
  ShmState *s = t->shm;
  int file = -1;
  const Hello mine = {"DITRONsh",           IMAGE_ABI,          (uint32_t)job->rank,
                      (uint32_t)job->world, (uint32_t)getpid(), bytes};
  Status st = job->rank == 0 ? lead(s, job, &mine, &file, e) : follow(s, job, &mine, &file, e);
  if (st == ST_OK) st = map_file(t, file, bytes, e);
  if (file >= 0) close(file);
  if (st != ST_OK) return st;
  t->control = (Control *)(void *)t->map;
  ControlRank *c = rt_control_rank(t, job->rank);
  c->pid_space = pid_space();
  atomic_store(&c->pid, (uint32_t)getpid());
  atomic_store(&c->state, PEER_HERE);
  s->stop = eventfd(0, EFD_CLOEXEC);
  if (s->stop < 0) return rt_fail(e, ST_IO, "an event file cannot be had: %s", os_error());
  st = rt_thread_start(&s->watcher, watch, t, "ditron/watch", e);
  s->watching = st == ST_OK;
  return st;
}

static Status open_block(RtTeam *t, const RtJob *job, size_t bytes, RtError *e) {
  RtError scratch; // what rank 0 tells the others must be said somewhere
  if (!e) e = &scratch;
  const size_t world = (size_t)job->world;
  ShmState *s = t->shm = calloc(1, sizeof *s);
  if (s) s->socket = malloc(world * sizeof(int));
  if (s) s->pidfd = malloc(world * sizeof(int));
  if (!s || !s->socket || !s->pidfd) return rt_no_memory(e);
  s->rank = job->rank;
  s->world = job->world;
  s->stop = -1;
  for (size_t i = 0; i < world; i++) s->socket[i] = s->pidfd[i] = -1;
  return start(t, job, bytes, e);
}

static void watch_end(RtTeam *t) {
  ShmState *s = t->shm;
  if (!s) return;
  if (s->watching) {
    const uint64_t one = 1;
    if (write(s->stop, &one, sizeof one) == (ssize_t)sizeof one) pthread_join(s->watcher, NULL);
  }
  for (int i = 0; i < s->world && s->socket && s->pidfd; i++) {
    if (s->socket[i] >= 0) close(s->socket[i]);
    if (s->pidfd[i] >= 0) close(s->pidfd[i]);
  }
  if (s->stop >= 0) close(s->stop);
  free(s->socket);
  free(s->pidfd);
  free(s);
  t->shm = NULL;
}

static void close_block(RtTeam *t) { munmap(t->map, t->map_bytes); }

const RtTransport rt_transport_shm = {
    .info = {"shm", "ranks are processes of one host and share memory"},
    .processes = true,
    .open = open_block,
    .watch_end = watch_end,
    .close = close_block,
};
