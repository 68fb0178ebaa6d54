// ptxas: PTX to a cubin by NVIDIA's assembler, run as a program of its own. What it says is read: errors, and messages
// that a kernel was made slower than written (C75xx), end the compile; registers, stack and spills go into the image. Where
// it is not found the PTX itself is kept, for the driver's compiler.
//
// It takes as long to start up as to assemble a small kernel (15 of 25 ms), so a compile may start it first: then its input is a pipe,
// which it reads where its start-up is over. Such an input cannot be read twice, and so the cubin lacks the copy of the PTX that
// ptxas adds else where there are lines (half of its size, for profilers only). Where that way fails, and where it was not started, it
// runs on a memory file, as whose path it gets one under /proc that leads to ours. What it makes always goes to such a file.
#include "target/nvptx/nvptx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAID_MAX = 64 << 10 };

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
  const char *needs = strstr(line, "C7602") ? strstr(line, "register target of ") : NULL;
  if (needs && l->ir->max_registers) {
    diag(l->diags, DIAG_ERROR, LOC_NONE, "the kernel needs %lu registers a thread or more; maxnreg is %d",
         strtoul(needs + strlen("register target of "), NULL, 10), l->ir->max_registers);
    diag_hint(l->diags, "a larger maxnreg or none, smaller blocks, or more warps");
    escape_now(l->arena->escape, ST_LIMIT, "too few registers");
  }
  diag(l->diags, DIAG_ERROR, LOC_NONE, "target nvptx: ptxas refused the code (exit code %d): %s", code, line);
  escape_now(l->arena->escape, ST_INTERNAL, "ptxas: %.200s", line);
}

// ---- running it ------------------------------------------------------------------------------------
// Its heap grows to tens of MiB, page by page: with large pages 6 of 24 ms of a small kernel go, and a tenth of a large one.
#define LARGE_PAGES \
  "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864:glibc.malloc.trim_threshold=1073741824"

typedef struct Call { // one line of it
  char arch[24], in[48], to[48];
  const char *argv[9];
} Call;

static void make_call(Call *c, const TargetOptions *o, const TargetFacts *facts, int in, int to) {
  const long me = (long)getpid();
  snprintf(c->arch, sizeof c->arch, "-arch=%s", facts->cpu);
  snprintf(c->to, sizeof c->to, "/proc/%ld/fd/%d", me, to);
  if (in < 0)
    snprintf(c->in, sizeof c->in, "/proc/self/fd/0");
  else
    snprintf(c->in, sizeof c->in, "/proc/%ld/fd/%d", me, in);
  const char *argv[] = {NULL, "-v", o->opt ? "-O3" : "-O1", c->arch, c->in, "-o", c->to, NULL, NULL};
  if (o->debug_lines) argv[7] = "--generate-line-info";
  memcpy(c->argv, argv, sizeof argv);
}

// in: the file that it reads; -1: its standard input.
static Status start(const TargetOptions *o, const TargetFacts *facts, int in, int to, OsChild *out) {
  const char *given[] = {o->ptxas, NULL}, *usual[] = {"ptxas", "/usr/local/cuda/bin/ptxas", NULL};
  const char *const *programs = o->ptxas ? given : usual;
  Call c;
  make_call(&c, o, facts, in, to);
  Status s = ST_NOT_FOUND;
  for (uint32_t i = 0; programs[i] && s == ST_NOT_FOUND; i++) {
    c.argv[0] = programs[i];
    s = os_child_start(out, c.argv, in < 0, "GLIBC_TUNABLES=" LARGE_PAGES);
  }
  return s;
}

Status nvptx_start(const TargetOptions *o, const TargetFacts *facts, TargetTool *out) {
  out->file = memfd_create("ditron.cubin", MFD_CLOEXEC);
  if (out->file < 0) return ST_IO;
  const Status s = start(o, facts, -1, out->file, &out->child);
  if (s != ST_OK) close(out->file);
  return s;
}

// What the one that was started ahead made; NULL: there is none, or it could not.
static char *take_ahead(Lower *l, char *said, size_t *n) {
  TargetTool *tool = l->options->tool;
  int code;
  if (!tool || !tool->child.pid || os_child_wait(&tool->child, &code, said, SAID_MAX) != ST_OK || code)
    return NULL;
  return read_all(tool->file, n);
}

typedef struct Files {
  int ptx, cubin;
} Files;

static void close_files(Files *f) {
  if (f->ptx >= 0) close(f->ptx);
  if (f->cubin >= 0) close(f->cubin);
}

// NULL: there is no ptxas.
static char *assemble(Lower *l, const Output *out, Files *f, char *said, size_t *n) {
  OsChild child;
  int code = 0;
  f->ptx = memfd_create("ditron.ptx", MFD_CLOEXEC);
  f->cubin = memfd_create("ditron.cubin", MFD_CLOEXEC);
  if (f->ptx < 0 || f->cubin < 0 || !write_all(f->ptx, out->text, out->bytes))
    escape_now(l->arena->escape, ST_IO, "a file in memory for ptxas: %s", os_error());
  Status s = start(l->options, l->facts, f->ptx, f->cubin, &child);
  if (s == ST_OK) s = os_child_wait(&child, &code, said, SAID_MAX);
  if (s == ST_NOT_FOUND || (s == ST_OK && code == 127 && !*said)) return NULL; // how some systems say it
  if (s != ST_OK) escape_now(l->arena->escape, s, "ptxas cannot be run: %s", os_error());
  if (code) refuse(l, said, code);
  char *cubin = read_all(f->cubin, n);
  if (!cubin) escape_now(l->arena->escape, ST_IO, "ptxas left no code: %s", os_error());
  return cubin;
}

static char *assemble_guarded(Lower *l, const Output *out, char *said,
                              size_t *n) { // the files are closed on every way out
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
  char *cubin = assemble(l, out, f, said, n);
  close_files(f);
  l->arena->escape = outer;
  return cubin;
}

void nvptx_finish(Lower *l, Output *out) {
  char *said = arena_array(l->arena, char, SAID_MAX);
  size_t n = 0;
  char *cubin = take_ahead(l, said, &n);
  if (!cubin) cubin = assemble_guarded(l, out, said, &n);
  if (!cubin) {
    out->is_text = true;
    out->bytes++; // the NUL behind it
    return;
  }
  out->code = cubin;
  out->bytes = n;
  read_said(l, said, out);
}
