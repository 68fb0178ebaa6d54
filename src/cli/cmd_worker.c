// ditron worker: compiles for another process, one request after the other. Should the compiler crash or run out of memory, the
// other process reads the end of this one's output instead of a reply, and lives on.
//
//   in   u32 bytes | request (see dt_compile_request)
//   out  u32 bytes | i32 status | u32 length, error text | u32 length, remarks | image, the rest
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 64 << 20 };

static bool read_all(void *to, size_t n) {
  char *p = to;
  while (n) {
    const ssize_t got = read(0, p, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    p += got;
    n -= (size_t)got;
  }
  return true;
}

static bool write_all(int fd, const void *from, size_t n) {
  const char *p = from;
  while (n) {
    const ssize_t put = write(fd, p, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    p += put;
    n -= (size_t)put;
  }
  return true;
}

static bool reply(int fd, dt_status st, const char *error, const char *remarks, const void *image,
                  size_t nimage) {
  const uint32_t ne = (uint32_t)strlen(error), nr = (uint32_t)strlen(remarks), code = (uint32_t)st;
  const uint32_t all = 12 + ne + nr + (uint32_t)nimage;
  return write_all(fd, &all, 4) && write_all(fd, &code, 4) && write_all(fd, &ne, 4) &&
         write_all(fd, error, ne) && write_all(fd, &nr, 4) && write_all(fd, remarks, nr) &&
         write_all(fd, image, nimage);
}

static bool answer(dt_context *c, int fd, const void *request, size_t n) {
  dt_image *im = NULL;
  size_t nimage = 0;
  const dt_status st = dt_compile_request(c, request, n, false, &im);
  const void *image = st == DT_OK ? dt_image_bytes(im, &nimage) : "";
  const bool ok = reply(fd, st, st == DT_OK ? "" : dt_error(c), dt_remarks(c), image, nimage);
  dt_image_destroy(im);
  return ok;
}

static bool asked(int64_t idle_seconds) {
  struct pollfd p = {.fd = 0, .events = POLLIN};
  int got;
  while ((got = poll(&p, 1, idle_seconds > 0 ? (int)(idle_seconds * 1000) : -1)) < 0 && errno == EINTR) {}
  return got > 0;
}

int cmd_worker(int argc, char **argv) {
  int64_t idle = 0;
  CliList rest = {0};
  const CliOption options[] = {
      {"--idle", "SECONDS", CLI_INT, &idle, 0, 86400, "end when nothing was asked for so long (never)"}};
  int over = cli_parse("worker", options, 1, argc, argv, &rest);
  if (over) return over - 1;
  if (rest.n) return cli_usage("worker", "takes no files");
  dt_context *c = cli_start(0, NULL);
  if (!c) return 1;
  const int out = dup(1); // what a library may print must not get between the replies
  if (out < 0 || dup2(2, 1) < 0) return cli_fail("standard output: %s", strerror(errno));
  int code = 0;
  uint32_t n;
  while (asked(idle) && read_all(&n, sizeof n)) {
    char *request = n <= MOST_BYTES ? malloc(n ? n : 1) : NULL;
    if (!request || !read_all(request, n) || !answer(c, out, request, n)) code = 1;
    free(request);
    if (code) break;
  }
  close(out);
  dt_context_destroy(c);
  return code;
}
