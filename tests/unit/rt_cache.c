// The disk cache: hits, damage, eviction, folders that cannot be written, many processes at once.
#include "harness/test.h"
#include "rt/rt.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static RtError error;
static char dir[64];

static const char *key_of(unsigned n) {
  static char key[33];
  snprintf(key, sizeof key, "%08x%024x", n * 0x9e3779b9u, n);
  return key;
}

static RtCache *open_cache(uint64_t limit) {
  RtCache *c;
  assert_int_equal(rt_cache_open(dir, limit, &c, &error), ST_OK);
  return c;
}

static int fresh_dir(void **state) {
  (void)state;
  snprintf(dir, sizeof dir, "/tmp/ditron-cache-test-XXXXXX");
  return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
  (void)state;
  const char *argv[] = {"rm", "-rf", dir, NULL};
  int code;
  return os_run(argv, &code, NULL, 0) != ST_OK || code;
}

static bool get(RtCache *c, const char *key, const void *want, size_t n) {
  Arena a;
  TEST_ARENA(a);
  void *bytes;
  size_t len;
  const bool found = rt_cache_get(c, key, &a, &bytes, &len);
  if (found) {
    assert_int_equal(len, n);
    assert_memory_equal(bytes, want, n);
  }
  arena_free(&a);
  return found;
}

static void test_put_and_get(void **state) {
  (void)state;
  RtCache *c = open_cache(0);
  char problem[100];
  assert_false(get(c, key_of(1), "x", 1));
  rt_cache_put(c, key_of(1), "hello", 5);
  rt_cache_put(c, key_of(2), "", 0);
  assert_true(get(c, key_of(1), "hello", 5));
  assert_true(get(c, key_of(2), "", 0));
  rt_cache_put(c, key_of(1), "again", 5);
  assert_true(get(c, key_of(1), "again", 5));
  rt_cache_put(c, "../../../../etc/passwd0000000000", "bad", 3); // no key
  assert_false(get(c, "../../../../etc/passwd0000000000", "bad", 3));
  assert_false(rt_cache_problem(c, problem, sizeof problem));
  rt_cache_close(c);
  c = open_cache(0);
  assert_true(get(c, key_of(1), "again", 5));
  rt_cache_close(c);
}

static void path_of(char *out, size_t cap, const char *key) {
  snprintf(out, cap, "%s/%.2s/%s.dtc", dir, key, key);
}

// Each byte of an entry changed, and each shorter entry: absent, gone, and put again.
static void test_damage(void **state) {
  (void)state;
  RtCache *c = open_cache(0);
  const char *key = key_of(7);
  char path[200];
  path_of(path, sizeof path, key);
  Arena a;
  TEST_ARENA(a);
  rt_cache_put(c, key, "contents", 8);
  char *whole;
  size_t n;
  assert_int_equal(os_read_file(&a, path, 0, &whole, &n), ST_OK);
  for (size_t i = 0; i < 2 * n; i++) {
    char *bad = arena_copy(&a, whole, n);
    bad[i % n] ^= 4;
    assert_int_equal(os_write_file(path, i < n ? bad : whole, i < n ? n : i - n), ST_OK);
    assert_false(get(c, key, "contents", 8));
    assert_false(os_exists(path));
    rt_cache_put(c, key, "contents", 8);
    assert_true(get(c, key, "contents", 8));
  }
  // an entry under another's name is none
  char other[200];
  path_of(other, sizeof other, key_of(8));
  *strrchr(other, '/') = 0;
  assert_int_equal(os_mkdirs(other), ST_OK);
  path_of(other, sizeof other, key_of(8));
  assert_int_equal(os_write_file(other, whole, n), ST_OK);
  assert_false(get(c, key_of(8), "contents", 8));
  arena_free(&a);
  rt_cache_close(c);
}

static uint64_t dir_bytes(unsigned *files) {
  uint64_t bytes = 0;
  *files = 0;
  DIR *d = opendir(dir);
  for (const struct dirent *f; (f = readdir(d));) {
    char path[600];
    if (f->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
    DIR *sub = opendir(path);
    for (const struct dirent *g; sub && (g = readdir(sub));) {
      struct stat st;
      snprintf(path, sizeof path, "%s/%.20s/%.200s", dir, f->d_name, g->d_name);
      if (g->d_name[0] == '.' || stat(path, &st) != 0) continue;
      bytes += (uint64_t)st.st_size;
      ++*files;
    }
    if (sub) closedir(sub);
  }
  closedir(d);
  return bytes;
}

static void test_eviction(void **state) {
  (void)state;
  enum { SIZE = 1000, LIMIT = 100 * SIZE, PUTS = 64 * 6 + 1 };
  RtCache *c = open_cache(LIMIT);
  char data[SIZE];
  memset(data, 'x', SIZE);
  const char *first = strdup(key_of(0));
  for (unsigned i = 0; i < PUTS; i++) {
    rt_cache_put(c, key_of(i), data, SIZE);
    if (i % 4 == 0) {
      os_sleep_ns(2000000);
      assert_true(get(c, first, data, SIZE)); // what is used stays
    }
  }
  unsigned files;
  assert_true(dir_bytes(&files) <= LIMIT);
  assert_true(files > 20);
  assert_true(get(c, key_of(PUTS - 1), data, SIZE));
  assert_false(get(c, key_of(1), data, SIZE));
  rt_cache_put(c, key_of(9999), data, SIZE);
  char *huge = calloc(1, LIMIT); // would push out all others
  rt_cache_put(c, key_of(10000), huge, LIMIT);
  assert_false(get(c, key_of(10000), huge, LIMIT));
  free(huge);
  free((char *)(uintptr_t)first);
  rt_cache_close(c);
}

static void test_unwritable(void **state) {
  (void)state;
  RtCache *c;
  char problem[600], path[128];
  snprintf(path, sizeof path, "%s/file", dir);
  assert_int_equal(os_write_file(path, "x", 1), ST_OK);
  snprintf(path, sizeof path, "%s/file/cache", dir); // below a file: not even root can
  assert_int_equal(rt_cache_open(path, 0, &c, &error), ST_OK);
  assert_false(rt_cache_problem(c, problem, sizeof problem));
  for (unsigned i = 0; i < 3; i++) rt_cache_put(c, key_of(i), "x", 1);
  assert_false(get(c, key_of(1), "x", 1));
  assert_true(rt_cache_problem(c, problem, sizeof problem));
  assert_non_null(strstr(problem, path));
  assert_non_null(strstr(problem, "Not a directory"));
  assert_false(rt_cache_problem(c, problem, sizeof problem)); // once
  rt_cache_close(c);
  assert_int_equal(rt_cache_open("", 0, &c, &error), ST_OK);
  rt_cache_put(c, key_of(1), "x", 1);
  assert_false(get(c, key_of(1), "x", 1));
  assert_false(rt_cache_problem(c, problem, sizeof problem));
  rt_cache_close(c);
}

// Eight processes put, get and evict the same keys: every hit has the right contents.
static void test_processes(void **state) {
  (void)state;
  enum { PROCESSES = 8, KEYS = 50, STEPS = 400 };
  pid_t pids[PROCESSES];
  for (int p = 0; p < PROCESSES; p++) {
    pids[p] = fork();
    if (pids[p]) continue;
    RtCache *c;
    if (rt_cache_open(dir, 60000, &c, NULL) != ST_OK) _exit(2);
    Rng r = {(uint64_t)p};
    for (int i = 0; i < STEPS; i++) {
      const unsigned k = (unsigned)(rng_next(&r) % KEYS);
      unsigned char data[3000];
      memset(data, (int)k, sizeof data);
      const char *key = key_of(k);
      if (rng_next(&r) % 3 == 0) {
        rt_cache_put(c, key, data, 100 + k * 50);
        continue;
      }
      Arena a;
      Escape e;
      void *bytes;
      size_t n;
      arena_init(&a, 0, &e);
      if (ESCAPE_TRY(&e)) _exit(3);
      if (rt_cache_get(c, key, &a, &bytes, &n) && (n != 100 + k * 50 || memcmp(bytes, data, n) != 0))
        _exit(4);
      arena_free(&a);
    }
    _exit(0);
  }
  for (int p = 0; p < PROCESSES; p++) {
    int ws;
    assert_int_equal(waitpid(pids[p], &ws, 0), pids[p]);
    assert_int_equal(ws, 0);
  }
}

static void test_default_dir(void **state) {
  (void)state;
  char out[200];
  setenv("XDG_CACHE_HOME", "/x/cache", 1);
  rt_cache_default_dir(out, sizeof out);
  assert_string_equal(out, "/x/cache/ditron");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/me", 1);
  rt_cache_default_dir(out, sizeof out);
  assert_string_equal(out, "/home/me/.cache/ditron");
  unsetenv("HOME");
  rt_cache_default_dir(out, sizeof out);
  assert_string_equal(out, "");
}

int main(void) {
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, fresh_dir, remove_dir)
  const struct CMUnitTest tests[] = {
      IN_DIR(test_put_and_get), IN_DIR(test_damage),    IN_DIR(test_eviction),
      IN_DIR(test_unwritable),  IN_DIR(test_processes), cmocka_unit_test(test_default_dir),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
