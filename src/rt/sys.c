// sys: futexes, waiting politely, and threads.
#include "rt/rt_impl.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Not the private kind: the words may lie in memory shared by processes.
int rt_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t most_ns) {
  const struct timespec t = {.tv_sec = (time_t)(most_ns / 1000000000u),
                             .tv_nsec = (long)(most_ns % 1000000000u)};
  return syscall(SYS_futex, word, FUTEX_WAIT, seen, most_ns ? &t : NULL, NULL, 0) == 0 ? 0 : errno;
}

void rt_futex_wake(_Atomic uint32_t *word, uint32_t n) {
  syscall(SYS_futex, word, FUTEX_WAKE, n > INT32_MAX ? INT32_MAX : (int)n, NULL, NULL, 0);
}

void rt_backoff(uint32_t *turn, uint64_t most_sleep_ns) {
  enum { POLLS = 64, YIELDS = 256 };
  const uint32_t k = (*turn)++;
  if (k < POLLS) {
    for (int i = 0; i < 8; i++) rt_relax();
  } else if (k < YIELDS) {
    sched_yield();
  } else {
    const uint32_t step = (k - YIELDS) / 8;
    const uint64_t ns = 2000ull << (step < 12 ? step : 12);
    os_sleep_ns(ns < most_sleep_ns ? ns : most_sleep_ns);
    if (*turn > 1u << 30) *turn = 1u << 29;
  }
}

Status rt_thread_start(pthread_t *t, void *(*main)(void *), void *arg, const char *name, RtError *e) {
  sigset_t all, before; // signals are the program's own threads' business
  sigfillset(&all);
  sigdelset(&all,
            SIGSEGV); // a kernel's own faults cannot be held back; the host program may have something to say
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(t, NULL, main, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    errno = failed;
    return rt_fail(e, ST_NO_MEMORY, "the thread '%s' cannot be started: %s", name, os_error());
  }
  char shown[16]; // the system's limit
  snprintf(shown, sizeof shown, "%s", name);
  pthread_setname_np(*t, shown);
  return ST_OK;
}
