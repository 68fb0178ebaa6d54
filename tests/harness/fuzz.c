// fuzz: see fuzz.h. The parent only watches: the child writes the number of its case into shared memory before it
// begins, so that after a death or a hang the parent can make the same case again and show it.
#include "harness/fuzz.h"

#include "harness/test.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static double number_from(const char *name, double otherwise) {
  const char *s = getenv(name);
  return s && *s ? strtod(s, NULL) : otherwise;
}

static double seconds_now(void) { return (double)os_now_ns() * 1e-9; }

void fuzz_add(Fuzz *f, const void *data, size_t len) {
  if (f->ninputs == FUZZ_INPUTS) return;
  char *copy = malloc(len + 1);
  assert_non_null(copy);
  memcpy(copy, data, len);
  f->inputs[f->ninputs].data = copy;
  f->inputs[f->ninputs++].len = len;
}

void fuzz_add_files(Fuzz *f, const char *pattern) {
  char path[4096];
  const char *root = getenv("ROOT");
  snprintf(path, sizeof path, "%s/%s", root ? root : ".", pattern);
  glob_t g;
  assert_int_equal(glob(path, 0, NULL, &g), 0); // a corpus that is not there is a broken test
  for (size_t i = 0; i < g.gl_pathc; i++) {
    Arena a;
    TEST_ARENA(a);
    char *data;
    size_t len;
    if (os_read_file(&a, g.gl_pathv[i], 0, &data, &len) == ST_OK) fuzz_add(f, data, len);
    arena_free(&a);
  }
  globfree(&g);
}

void fuzz_free(Fuzz *f) {
  for (size_t i = 0; i < f->ninputs; i++) free(f->inputs[i].data);
  f->ninputs = 0;
}

// ---- making a case -------------------------------------------------------------------------------

typedef struct Case {
  char *data;
  size_t len, cap;
  Rng rng;
} Case;

static size_t below(Case *c, size_t n) { return n ? (size_t)(rng_next(&c->rng) % n) : 0; }

// Replaces `gone` bytes at `where` by n bytes at p (which may lie in the case itself).
static void splice(Case *c, size_t where, size_t gone, const char *p, size_t n) {
  char small[4096];
  if (n > sizeof small) n = sizeof small;
  if (n) memcpy(small, p, n);
  if (c->len - gone + n > c->cap) n = c->cap - (c->len - gone);
  memmove(c->data + where + n, c->data + where + gone, c->len - where - gone);
  if (n) memcpy(c->data + where, small, n);
  c->len += n - gone;
}

static void change(const Fuzz *f, Case *c, size_t ntokens) {
  static const uint64_t edges[] = {0,      1,          0x7f,       0x80,       0xff,      0x7fff,
                                   0xffff, 0x7fffffff, 0x80000000, UINT32_MAX, INT64_MAX, UINT64_MAX};
  const size_t where = below(c, c->len + 1), left = c->len - where;
  const size_t n = below(c, left < 64 ? left + 1 : 64);
  switch (below(c, 9)) {
  case 0: // one bit
    if (left) c->data[where] = (char)(c->data[where] ^ 1 << below(c, 8));
    break;
  case 1: // one byte
    if (left) c->data[where] = (char)rng_next(&c->rng);
    break;
  case 2: // a stretch goes
    splice(c, where, n, NULL, 0);
    break;
  case 3: // a stretch comes twice
    splice(c, where, 0, c->data + where, n);
    break;
  case 4: { // a stretch comes from elsewhere in the case
    const size_t from = below(c, c->len + 1), room = c->len - from;
    splice(c, where, n, c->data + from, below(c, room < 200 ? room + 1 : 200));
    break;
  }
  case 5: { // or from another input
    const size_t i = below(c, f->ninputs), len = f->inputs[i].len, from = below(c, len + 1),
                 room = len - from;
    splice(c, where, n, f->inputs[i].data + from, below(c, room < 500 ? room + 1 : 500));
    break;
  }
  case 6: { // a number at its edge, as bytes
    const uint64_t v = edges[below(c, DT_COUNTOF(edges))];
    const size_t width = (size_t)1 << below(c, 4);
    splice(c, where, left < width ? left : width, (const char *)&v, width);
    break;
  }
  case 7: { // or as digits
    char digits[32];
    const int k = snprintf(digits, sizeof digits, "%lld", (long long)edges[below(c, DT_COUNTOF(edges))]);
    splice(c, where, n < 4 ? n : 0, digits, (size_t)k);
    break;
  }
  case 8: { // a token, or the end cut off
    if (ntokens) {
      const char *t = f->tokens[below(c, ntokens)];
      splice(c, where, n < 8 ? n : 0, t, strlen(t));
    } else {
      c->len = where;
    }
    break;
  }
  }
}

static void make_case(const Fuzz *f, Case *c, uint64_t seed, uint64_t number) {
  size_t ntokens = 0;
  while (f->tokens && f->tokens[ntokens]) ntokens++;
  c->rng = (Rng){hash_bytes(&number, sizeof number, seed)};
  const size_t i = below(c, f->ninputs);
  c->len = f->inputs[i].len < c->cap ? f->inputs[i].len : c->cap;
  memcpy(c->data, f->inputs[i].data, c->len);
  for (size_t changes = 1 + below(c, below(c, 4) ? 4 : 40); changes > 0; changes--) change(f, c, ntokens);
}

// ---- running ---------------------------------------------------------------------------------------

static void describe(char *report, size_t cap, const Case *c, const char *end, uint64_t seed,
                     uint64_t number) {
  int n = snprintf(report, cap, "%s in case FUZZ_SEED=%llu FUZZ_FIRST=%llu, %zu bytes:\n", end,
                   (unsigned long long)seed, (unsigned long long)number, c->len);
  for (size_t i = 0; i < c->len && i < 1500 && n + 5 < (int)cap; i++) {
    const unsigned char b = (unsigned char)c->data[i];
    n += snprintf(report + n, cap - (size_t)n, b == '\n' || (b >= 32 && b < 127) ? "%c" : "\\x%02x", b);
  }
}

// In the child: one case after another until the time is up.
static void run_cases(const Fuzz *f, Case *c, uint64_t seed, volatile uint64_t *number, double until) {
  do {
    make_case(f, c, seed, *number);
    char *exact = malloc(c->len + 1); // of its exact size, so that a sanitizer sees reads behind it
    if (!exact) _exit(3);
    memcpy(exact, c->data, c->len);
    exact[c->len] = 0;
    f->run(exact, c->len, f->user);
    free(exact);
    ++*number;
  } while (seconds_now() < until);
}

// Waits for the child; kills it when one case takes too long. Returns what went wrong, or NULL.
static const char *watch(pid_t child, const volatile uint64_t *number, double hang_seconds, char text[64]) {
  uint64_t last = *number;
  double since = seconds_now();
  int status;
  while (waitpid(child, &status, WNOHANG) == 0) {
    os_sleep_ns(20000000);
    if (*number != last) {
      last = *number;
      since = seconds_now();
    } else if (seconds_now() - since > hang_seconds) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      snprintf(text, 64, "no end after %g s", hang_seconds);
      return text;
    }
  }
  if (WIFSIGNALED(status))
    snprintf(text, 64, "ended by signal %d", WTERMSIG(status));
  else if (WEXITSTATUS(status))
    snprintf(text, 64, "ended with exit status %d", WEXITSTATUS(status));
  else
    return NULL;
  return text;
}

bool fuzz_find(Fuzz *f, char *report, size_t cap) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const double standard = 60;
#else
  const double standard = 10;
#endif
  const double seconds = f->seconds > 0 ? f->seconds : number_from("FUZZ_SECONDS", standard);
  const uint64_t seed = (uint64_t)number_from("FUZZ_SEED", (double)(os_now_ns() >> 10 & 0xffffffff));
  Case c = {.cap = f->max_len ? f->max_len : 64 << 10};
  c.data = malloc(c.cap + 1);
  uint64_t *number = mmap(NULL, sizeof *number, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(c.data && number != MAP_FAILED && f->ninputs > 0);
  *number = (uint64_t)number_from("FUZZ_FIRST", 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    run_cases(f, &c, seed, number, seconds_now() + seconds);
    _exit(0);
  }
  char text[64];
  const char *end = watch(child, number, f->hang_seconds > 0 ? f->hang_seconds : 10, text);
  if (end) {
    make_case(f, &c, seed, *number);
    describe(report, cap, &c, end, seed, *number);
  } else {
    snprintf(report, cap, "%llu cases from seed %llu", (unsigned long long)*number, (unsigned long long)seed);
  }
  munmap(number, sizeof *number);
  free(c.data);
  return end != NULL;
}

void fuzz_or_fail(Fuzz *f) {
  char report[8192];
  const bool found = fuzz_find(f, report, sizeof report);
  fuzz_free(f);
  if (found) fail_msg("%s", report);
  print_message("# %s\n", report);
}
