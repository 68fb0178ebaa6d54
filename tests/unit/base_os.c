// Files, folders, time and child processes. Works in the current folder, which the runner makes fresh.
#include "harness/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int entries_of(const char *folder) {
  DIR *d = opendir(folder);
  int n = 0;
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n - 2;
}

static int open_files(void) { return entries_of("/proc/self/fd"); }

static void test_write_and_read(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  assert_int_equal(os_mkdirs("w"), ST_OK);
  for (size_t n = 0; n <= 3000000; n = n * 3 + 1) {
    char *const out = arena_alloc(&a, n, 1);
    memset(out, 'q', n);
    assert_int_equal(os_write_file("w/f", out, n), ST_OK);
    char *data;
    size_t len;
    assert_int_equal(os_read_file(&a, "w/f", 0, &data, &len), ST_OK);
    assert_int_equal(len, n);
    assert_int_equal(data[len], 0);
    if (n) assert_memory_equal(data, out, n);
  }
  assert_int_equal(entries_of("w"), 1); // nothing temporary is left
  assert_true(os_exists("w/f"));
  assert_false(os_exists("w/g"));
  arena_free(&a);
}

static void test_read_refusals(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  char *data = NULL;
  size_t len = 0;
  const int files = open_files();
  assert_int_equal(os_write_file("ten", "0123456789", 10), ST_OK);
  assert_int_equal(os_read_file(&a, "ten", 10, &data, &len), ST_OK);
  assert_int_equal(os_read_file(&a, "ten", 9, &data, &len), ST_LIMIT);
  assert_int_equal(os_read_file(&a, "absent", 0, &data, &len), ST_NOT_FOUND);
  assert_non_null(strstr(os_error(), "No such file"));
  assert_int_equal(os_read_file(&a, "ten/x", 0, &data, &len), ST_NOT_FOUND);
  assert_int_equal(os_read_file(&a, ".", 0, &data, &len), ST_IO);
  assert_non_null(strstr(os_error(), "directory"));
  assert_int_equal(os_read_file(&a, "/dev/zero", 1 << 20, &data, &len), ST_LIMIT); // endless, its size says 0
  assert_int_equal(os_read_file(&a, "/proc/self/status", 0, &data, &len), ST_OK);
  assert_true(len > 100);
  assert_int_equal(open_files(), files);
  arena_free(&a);
}

// Memory that ends inside closes the file and goes on to the caller's escape.
static void test_read_without_memory(void **state) {
  (void)state;
  const int files = open_files();
  assert_int_equal(os_write_file("big", "x", 1), ST_OK);
  assert_int_equal(truncate("big", 8 << 20), 0);
  Escape esc;
  Arena a;
  arena_init(&a, 1 << 20, &esc);
  char *data;
  size_t len;
  if (!ESCAPE_TRY(&esc)) {
    os_read_file(&a, "big", 0, &data, &len);
    fail_msg("8 MiB were read into 1 MiB");
  }
  assert_int_equal(esc.status, ST_LIMIT);
  assert_ptr_equal(a.escape, &esc);
  assert_int_equal(open_files(), files);
  arena_free(&a);
}

static void test_write_keeps_mode_links_and_pipes(void **state) {
  (void)state;
  struct stat st;
  assert_int_equal(os_write_file("real", "a", 1), ST_OK);
  assert_int_equal(chmod("real", 0640), 0);
  assert_int_equal(symlink("real", "link"), 0);
  assert_int_equal(os_write_file("link", "bc", 2), ST_OK);
  assert_int_equal(lstat("link", &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  assert_int_equal(lstat("real", &st), 0);
  assert_int_equal(st.st_size, 2);
  assert_int_equal(st.st_mode & 0777, 0640);
  // a link to a link to what is not there yet, from another folder
  assert_int_equal(os_mkdirs("sub"), ST_OK);
  assert_int_equal(symlink("sub/second", "first"), 0);
  assert_int_equal(symlink("../end", "sub/second"), 0);
  for (size_t n = 1; n <= 2; n++) { // made, then replaced
    assert_int_equal(os_write_file("first", "abc", n), ST_OK);
    assert_int_equal(lstat("first", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat("sub/second", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat("end", &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_size, n);
  }
  assert_int_equal(symlink("round", "round"), 0);
  assert_int_equal(os_write_file("round", "a", 1), ST_IO);
  char got[4] = "";
  assert_int_equal(mkfifo("pipe", 0600), 0);
  const int reader = open("pipe", O_RDWR);
  assert_true(reader >= 0);
  assert_int_equal(os_write_file("pipe", "abc", 3), ST_OK);
  assert_int_equal(lstat("pipe", &st), 0);
  assert_true(S_ISFIFO(st.st_mode)); // written into, not renamed over
  assert_int_equal(read(reader, got, 3), 3);
  assert_string_equal(got, "abc");
  close(reader);
}

static void test_write_refusals(void **state) {
  (void)state;
  assert_int_equal(os_mkdirs("d"), ST_OK);
  assert_int_not_equal(os_write_file("d", "x", 1), ST_OK);
  assert_int_equal(os_write_file("absent/x", "x", 1), ST_NOT_FOUND);
  char name[5000];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = 0;
  assert_int_equal(os_write_file(name, "x", 1), ST_IO);
  assert_int_equal(os_mkdirs(name), ST_IO);
  assert_int_equal(os_mkdirs(""), ST_IO);
}

// A disk that fills up, as a limit on file sizes plays it: an error, the old file stays, nothing else does.
static void test_write_disk_full(void **state) {
  (void)state;
  struct rlimit before;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  char text[5000] = "new";
  Arena a;
  TEST_ARENA(a);
  assert_int_equal(os_mkdirs("full"), ST_OK);
  assert_int_equal(os_write_file("full/f", "old", 3), ST_OK);
  const int files = open_files();
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status s = os_write_file("full/f", text, sizeof text);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(s, ST_IO);
  assert_non_null(strstr(os_error(), "too large"));
  assert_int_equal(open_files(), files);
  assert_int_equal(entries_of("full"), 1);
  char *data;
  size_t len;
  assert_int_equal(os_read_file(&a, "full/f", 0, &data, &len), ST_OK);
  assert_string_equal(data, "old");
  arena_free(&a);
}

static void test_mkdirs(void **state) {
  (void)state;
  struct stat st;
  assert_int_equal(os_mkdirs("a/b//c/"), ST_OK);
  assert_int_equal(os_mkdirs("a/b/c"), ST_OK);
  assert_int_equal(stat("a/b/c", &st), 0);
  assert_true(S_ISDIR(st.st_mode));
  assert_int_equal(st.st_mode & 0777, 0700);
  assert_int_equal(os_write_file("a/f", "", 0), ST_OK);
  assert_int_equal(os_mkdirs("a/f"), ST_IO);
  assert_int_equal(os_mkdirs("a/f/g"), ST_IO);
  assert_int_equal(os_mkdirs("/"), ST_OK);
}

// Writers race on one name: a reader sees one of the contents whole, whenever it looks.
enum { WRITERS = 3, ROUNDS = 200, LENGTH = 100000 };

static void *writes(void *p) {
  char text[LENGTH];
  memset(text, 'a' + (int)(intptr_t)p, sizeof text);
  for (int i = 0; i < ROUNDS; i++) {
    if (os_write_file("raced", text, sizeof text) != ST_OK) return p;
  }
  return NULL;
}

static void read_whole(void) {
  Arena a;
  TEST_ARENA(a);
  char *data;
  size_t len;
  assert_int_equal(os_read_file(&a, "raced", 0, &data, &len), ST_OK);
  assert_true(len == 0 || len == LENGTH);
  for (size_t k = 1; k < len; k++) {
    if (data[k] != data[0]) fail_msg("two writers' bytes in one file");
  }
  arena_free(&a);
}

static void test_concurrent_writers(void **state) {
  (void)state;
  pthread_t t[WRITERS];
  assert_int_equal(os_write_file("raced", "", 0), ST_OK);
  for (intptr_t i = 0; i < WRITERS; i++)
    assert_int_equal(pthread_create(&t[i], NULL, writes, (void *)(i + 1)), 0);
  for (int i = 0; i < ROUNDS; i++) read_whole();
  for (int i = 0; i < WRITERS; i++) {
    void *failed;
    pthread_join(t[i], &failed);
    assert_null(failed);
  }
}

static void test_run(void **state) {
  (void)state;
  char out[64];
  int code = -1;
  const int files = open_files();
  const char *const both[] = {"sh", "-c", "echo one; echo two >&2; exit 3", NULL};
  assert_int_equal(os_run(both, &code, out, sizeof out), ST_OK);
  assert_int_equal(code, 3);
  assert_string_equal(out, "one\ntwo\n");
  const char *const much[] = {"sh", "-c", "yes | head -c 300000", NULL}; // more than a pipe holds
  assert_int_equal(os_run(much, &code, out, sizeof out), ST_OK);
  assert_int_equal(code, 0);
  assert_int_equal(strlen(out), sizeof out - 1);
  assert_int_equal(os_run(much, &code, NULL, 0), ST_OK);
  const char *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
  assert_int_equal(os_run(killed, &code, out, sizeof out), ST_OK);
  assert_int_equal(code, 128 + 9);
  assert_string_equal(out, "");
  const char *const reads[] = {"cat", NULL}; // there is no input
  assert_int_equal(os_run(reads, &code, out, sizeof out), ST_OK);
  assert_int_equal(code, 0);
  const char *const absent[] = {"ditron-no-such-program", NULL};
  assert_int_equal(os_run(absent, &code, out, sizeof out), ST_NOT_FOUND);
  const char *const folder[] = {"/", NULL};
  assert_int_equal(os_run(folder, &code, out, sizeof out), ST_IO);
  assert_int_equal(open_files(), files);
}

static void test_child(void **state) {
  (void)state;
  enum { MUCH = 300000 }; // more than a pipe holds
  char out[64], *much = calloc(1, MUCH);
  int code = -1;
  OsChild c;
  const int files = open_files();
  const char *const counts[] = {"wc", "-c", NULL};
  assert_int_equal(os_child_start(&c, counts, true, NULL), ST_OK);
  os_child_give(&c, much, MUCH);
  assert_int_equal(os_child_wait(&c, &code, out, sizeof out), ST_OK);
  assert_int_equal(code, 0);
  assert_int_equal(atoi(out), MUCH);
  assert_true(c.pid == 0);
  const char *const deaf[] = {"sh", "-c", "echo no; exit 4", NULL}; // gone before it has read anything
  assert_int_equal(os_child_start(&c, deaf, true, NULL), ST_OK);
  os_child_give(&c, much, MUCH);
  assert_int_equal(os_child_wait(&c, &code, out, sizeof out), ST_OK);
  assert_int_equal(code, 4);
  assert_string_equal(out, "no\n");
  const char *const ignores[] = {"sh", "-c", "sleep 100", NULL};
  assert_int_equal(os_child_start(&c, ignores, true, NULL), ST_OK);
  os_child_end(&c);
  os_child_end(&c); // is none now
  const char *const says[] = {"sh", "-c", "echo $DITRON_SET", NULL};
  assert_int_equal(os_child_start(&c, says, false, "DITRON_SET=here"), ST_OK);
  assert_int_equal(os_child_wait(&c, &code, out, sizeof out), ST_OK);
  assert_string_equal(out, "here\n");
  setenv("DITRON_SET", "the user's", 1);
  assert_int_equal(os_child_start(&c, says, false, "DITRON_SET=here"), ST_OK);
  assert_int_equal(os_child_wait(&c, &code, out, sizeof out), ST_OK);
  assert_string_equal(out, "the user's\n");
  unsetenv("DITRON_SET");
  const char *const absent[] = {"ditron-no-such-program", NULL};
  assert_int_equal(os_child_start(&c, absent, true, NULL), ST_NOT_FOUND);
  assert_true(c.pid == 0);
  assert_int_equal(open_files(), files);
  free(much);
}

static void test_code_dir(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  char self[4096] = "";
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  *strrchr(self, '/') = 0;
  assert_string_equal(os_code_dir(&a), self);
  assert_true(os_is_dir(self));
  assert_false(os_is_dir("/proc/self/exe"));
  assert_false(os_is_dir("absent"));
  arena_free(&a);
}

static void test_time_and_cores(void **state) {
  (void)state;
  const uint64_t t0 = os_now_ns();
  os_sleep_ns(3000000);
  assert_true(os_now_ns() - t0 >= 3000000);
  assert_true(os_cores() >= 1 && os_cores() <= sysconf(_SC_NPROCESSORS_ONLN));
}

int main(void) {
  char folder[] = "/tmp/base_os.XXXXXX"; // run by hand, leave the caller's folder alone
  if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_write_and_read),
      cmocka_unit_test(test_read_refusals),
      cmocka_unit_test(test_read_without_memory),
      cmocka_unit_test(test_write_keeps_mode_links_and_pipes),
      cmocka_unit_test(test_write_refusals),
      cmocka_unit_test(test_write_disk_full),
      cmocka_unit_test(test_mkdirs),
      cmocka_unit_test(test_concurrent_writers),
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_child),
      cmocka_unit_test(test_code_dir),
      cmocka_unit_test(test_time_and_cores),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  const char *remove[] = {"rm", "-rf", folder, NULL};
  int code;
  return os_run(remove, &code, NULL, 0) != ST_OK || code ? 1 : failed;
}
