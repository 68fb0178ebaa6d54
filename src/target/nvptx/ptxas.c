// ptxas: PTX to a cubin by NVIDIA's assembler, run as a program of its own. What it says is read: errors, and messages
// that a kernel was made slower than written (C75xx), end the compile; registers, stack and spills go into the image. Where
// it is not found the PTX itself is kept, for the driver's compiler.
//
// Text and code pass through memory files, which the child opens by the paths under /proc that lead to ours.
#include "target/nvptx/nvptx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAID_MAX = 64 << 10 };

typedef struct Files {
  int ptx, cubin;
} Files;

static void close_files(Files *f) {
  if (f->ptx >= 0) close(f->ptx);
  if (f->cubin >= 0) close(f->cubin);
}

static bool write_all(int fd, const char *p, size_t n) {
  while (n) {
    const ssize_t w = write(fd, p, n);
    if (w < 0 && errno == EINTR) continue;
    if (w <= 0) return false;
    p += w;
    n -= (size_t)w;
  }
  return true;
}
// malloc'd, with a NUL behind that is not counted. NULL: failed or empty.
static char *read_all(int fd, size_t *n) {
  const off_t end = lseek(fd, 0, SEEK_END);
  if (end <= 0 || lseek(fd, 0, SEEK_SET) != 0) return NULL;
  char *p = calloc(1, (size_t)end + 1);
  size_t at = 0;
  while (p && at < (size_t)end) {
    const ssize_t r = read(fd, p + at, (size_t)end - at);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) {
      free(p);
      return NULL;
    }
    at += (size_t)r;
  }
  *n = at;
  return p;
}

// ---- what it says --------------------------------------------------------------------------------

// "... Compiling entry function 'NAME' for 'sm_90a'"; "... Function properties for NAME";
// "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"; "... Used 14 registers, ..."
static void note_line(const char *line, Output *out, ImageVariant **current) {
  const char *s = strstr(line, "entry function '");
  if (s) {
    s += strlen("entry function '");
    *current = NULL;
    for (uint32_t i = 0; i < out->nkernels; i++) {
      ImageVariant *v = out->kernels[i].variants;
      const size_t n = strlen(v->entry);
      if (!strncmp(s, v->entry, n) && s[n] == '\'') *current = v;
    }
    return;
  }
  if (!*current) return;
  unsigned stack, stores, loads;
  if (sscanf(line, " %u bytes stack frame, %u bytes spill stores, %u bytes spill loads", &stack, &stores,
             &loads) == 3) {
    if (stack > (*current)->local_bytes) (*current)->local_bytes = stack;
    (*current)->spill_bytes += stores;
  }
  s = strstr(line, "Used ");
  if (s && strstr(s, " registers")) (*current)->registers = (uint32_t)strtoul(s + 5, NULL, 10);
}

// C75xx: the assembler gave up something that makes the kernel fast, e.g. asynchronous products. It stays right.
static bool is_serious(const char *line) {
  for (const char *s = line; (s = strstr(s, "C75")) != NULL; s++)
    if (s[3] >= '0' && s[3] <= '9' && s[4] >= '0' && s[4] <= '9') return true;
  return false;
}

static void read_said(Lower *l, char *said, Output *out) {
  ImageVariant *current = NULL;
  for (char *line = said, *end; *line; line = end) {
    end = strchr(line, '\n');
    if (end)
      *end++ = 0;
    else
      end = line + strlen(line);
    if (is_serious(line))
      diag(l->diags, DIAG_WARNING, LOC_NONE, "this kernel is right, but slower than it could be: ptxas: %s",
           line);
    note_line(line, out, &current);
  }
}

static void refuse(Lower *l, char *said, int code) {
  const char *line = said; // the first that says what is wrong
  for (char *s = strtok(said, "\n"); s; s = strtok(NULL, "\n")) {
    line = s;
    if (strstr(s, "error") || strstr(s, "fatal")) break;
  }
  diag(l->diags, DIAG_ERROR, LOC_NONE, "target nvptx: ptxas refused the code (exit code %d): %s", code, line);
  escape_now(l->arena->escape, ST_INTERNAL, "ptxas: %.200s", line);
}

// ---- running it ------------------------------------------------------------------------------------
static Status run(Lower *l, const Files *f, int *code, char *said) {
  const char *given[] = {l->options->ptxas, NULL}, *usual[] = {"ptxas", "/usr/local/cuda/bin/ptxas", NULL};
  const char *const *programs = l->options->ptxas ? given : usual;
  const char *arch = nvptx_text(l, "-arch=%s", l->facts->cpu);
  const char *in = nvptx_text(l, "/proc/%ld/fd/%d", (long)getpid(), f->ptx);
  const char *to = nvptx_text(l, "/proc/%ld/fd/%d", (long)getpid(), f->cubin);
  Status s = ST_NOT_FOUND;
  for (uint32_t i = 0; programs[i] && s == ST_NOT_FOUND; i++) {
    const char *argv[] = {programs[i], "-v", l->options->opt ? "-O3" : "-O1", arch, in, "-o", to, NULL, NULL};
    if (l->options->debug_lines) argv[7] = "--generate-line-info";
    s = os_run(argv, code, said, SAID_MAX);
    if (s == ST_OK && *code == 127 && !*said) s = ST_NOT_FOUND; // how some systems say it
  }
  return s;
}

static void assemble(Lower *l, Output *out, Files *f) {
  f->ptx = memfd_create("ditron.ptx", MFD_CLOEXEC);
  f->cubin = memfd_create("ditron.cubin", MFD_CLOEXEC);
  if (f->ptx < 0 || f->cubin < 0 || !write_all(f->ptx, out->code, out->bytes))
    escape_now(l->arena->escape, ST_IO, "a file in memory for ptxas: %s", os_error());
  char *said = arena_array(l->arena, char, SAID_MAX);
  int code = 0;
  const Status s = run(l, f, &code, said);
  if (s == ST_NOT_FOUND) {
    out->is_text = true;
    out->bytes++; // the NUL behind it
    return;
  }
  if (s != ST_OK) escape_now(l->arena->escape, s, "ptxas cannot be run: %s", os_error());
  if (code) refuse(l, said, code);
  read_said(l, said, out);
  size_t n = 0;
  char *cubin = read_all(f->cubin, &n);
  if (!cubin) escape_now(l->arena->escape, ST_IO, "ptxas left no code: %s", os_error());
  free(out->code);
  out->code = cubin;
  out->bytes = n;
}

void nvptx_finish(Lower *l, Output *out) { // the files are closed on every way out
  Files *f = arena_new(l->arena, Files);
  f->ptx = f->cubin = -1;
  Escape *const outer = l->arena->escape;
  Escape mine;
  if (ESCAPE_TRY(&mine)) {
    close_files(f);
    l->arena->escape = outer;
    escape_now(outer, mine.status, "%s", mine.message);
  }
  l->arena->escape = &mine;
  assemble(l, out, f);
  close_files(f);
  l->arena->escape = outer;
}
