// The program's entry: finds the command and hands over; shared messages, options and progress.
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
  const char *name, *usage, *text, *notes;
  int (*run)(int argc, char **argv);
} commands[] = {
#define COMMAND(name, usage, text, notes) {#name, usage, text, notes, cmd_##name},
#include "cli/cmds.def"
#undef COMMAND
};
enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

static void help(FILE *f) {
  fprintf(
      f, "ditron %s: compiles and runs tile programs that span many devices\n\nusage: ditron COMMAND ...\n\n",
      dt_version());
  for (int i = 0; i < NCOMMANDS; i++) fprintf(f, "  %-8s %s\n", commands[i].name, commands[i].text);
  fprintf(f, "\n`ditron COMMAND --help` tells more; environment variables are listed by `ditron info`\n");
}

// What was printed must have arrived: a full disk shows only now.
static int finish(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  cli_fail("standard output: %s", strerror(errno ? errno : EIO));
  return code ? code : 1;
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  if (!*name || strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
    help(*name ? stdout : stderr);
    return finish(*name ? 0 : 2);
  }
  if (strcmp(name, "--version") == 0) {
    printf("ditron %s\n", dt_version());
    return finish(0);
  }
  for (int i = 0; i < NCOMMANDS; i++)
    if (strcmp(name, commands[i].name) == 0) return finish(commands[i].run(argc - 2, argv + 2));
  cli_fail("no command '%s'; `ditron --help` lists them", name);
  return 2;
}

// ---- messages -------------------------------------------------------------------------------------------------------------
// A message is one write: other ranks' processes write to the same terminal.
typedef struct Message {
  FILE *f; // where it is put together
  char *text;
  size_t n;
} Message;
static void begin_message(Message *m) {
  *m = (Message){0};
  m->f = open_memstream(&m->text, &m->n);
  if (!m->f) m->f = stderr;
}
static void end_message(Message *m) {
  if (m->f != stderr && fclose(m->f) == 0) fwrite(m->text, 1, m->n, stderr);
  free(m->text);
}

int cli_fail(const char *fmt, ...) {
  Message m;
  va_list ap;
  begin_message(&m);
  va_start(ap, fmt);
  fputs("ditron: ", m.f);
  vfprintf(m.f, fmt, ap);
  fputc('\n', m.f);
  va_end(ap);
  end_message(&m);
  return 1;
}

int cli_usage(const char *command, const char *fmt, ...) {
  Message m;
  va_list ap;
  begin_message(&m);
  va_start(ap, fmt);
  fprintf(m.f, "ditron %s: ", command);
  vfprintf(m.f, fmt, ap);
  fprintf(m.f, "\n`ditron %s --help` shows how\n", command);
  va_end(ap);
  end_message(&m);
  return 2;
}

// Diagnostics with a place speak for themselves; other texts get in front what was attempted, unless they name it.
int cli_failed(dt_context *c, const char *what, dt_status s) {
  const char *text = *dt_error(c) ? dt_error(c) : dt_status_name(s);
  Message m;
  begin_message(&m);
  if (!strstr(text, ": error: ")) {
    const bool named = !what || strstr(text, what);
    if (strncmp(text, "error: ", 7) == 0) text += 7;
    fprintf(m.f, "ditron: %s%s", named ? "" : what, named ? "" : ": ");
  }
  fprintf(m.f, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
  end_message(&m);
  return 1;
}

void cli_remarks(dt_context *c) { fputs(dt_remarks(c), stderr); }

dt_status cli_no(dt_context *c, dt_status s, const char *fmt, ...) {
  char text[8192]; // a file's name is at most 4096 and then a reason
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return dt_context_fail(c, s, text);
}

void cli_print_line(void *user, int rank, const char *line) {
  (void)user;
  printf("[%d] %s\n", rank, line);
}

dt_context *cli_start(double deadline, const char *cache_dir) {
  const double usual = getenv("DITRON_DEADLINE") ? 0 : 30; // 0: the context reads it
  dt_context_options o = {.size = sizeof o,
                          .cache_dir = cache_dir,
                          .deadline_seconds = deadline > 0 ? deadline : usual,
                          .print = cli_print_line};
  dt_context *c = NULL;
  dt_status st = dt_context_create(&o, &c);
  if (st != DT_OK) cli_failed(NULL, NULL, st);
  return c;
}

static bool read_number(const char *path, const char *format, unsigned long long *out) {
  FILE *f = fopen(path, "r");
  bool ok = false;
  char line[256];
  while (f && !ok && fgets(line, sizeof line, f)) ok = sscanf(line, format, out) == 1;
  if (f) fclose(f);
  return ok;
}

uint64_t cli_free_bytes(void) {
  unsigned long long kib = UINT64_MAX >> 10, most;
  read_number("/proc/meminfo", "MemAvailable: %llu kB", &kib);
  uint64_t bytes = (uint64_t)kib << 10;
  return read_number("/sys/fs/cgroup/memory.max", "%llu", &most) && most < bytes ? most : bytes;
}

// ---- files --------------------------------------------------------------------------------------------------
bool cli_traces_named(const char *command, const CliList *paths) {
  for (int i = 0; i < paths->n; i++) {
    const char *dot = strrchr(paths->v[i], '.');
    if (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".svg") == 0)) continue;
    cli_usage(command, "--trace takes a .json or a .svg file, not '%s'", paths->v[i]);
    return false;
  }
  return true;
}

bool cli_write_traces(dt_context *c, dt_team *t, const CliList *paths) {
  for (int i = 0; i < paths->n; i++) {
    dt_status st = dt_team_write_trace(t, paths->v[i]);
    if (st != DT_OK) return cli_failed(c, paths->v[i], st), false;
  }
  return true;
}

int cli_write_text(dt_context *c, const char *path, const char *text) {
  if (!path) return fputs(text, stdout) < 0; // main reports why
  dt_status st = dt_write_file(c, path, text, strlen(text));
  return st == DT_OK ? 0 : cli_failed(c, path, st);
}

void cli_split_kernel(const char *text, char **file, const char **kernel) {
  *file = strdup(text);
  if (!*file) abort();
  char *colon = strrchr(*file, ':');
  *kernel = NULL;
  if (!colon || strchr(colon, '/')) return;
  *colon = 0;
  *kernel = colon + 1;
}

// ---- options ----------------------------------------------------------------------------------------------------------------
bool cli_int(const char *s, int64_t *out) {
  char *end;
  errno = 0;
  long long v = strtoll(s, &end, 0);
  if (end == s || *end || errno == ERANGE) return false;
  *out = v;
  return true;
}

int cli_dtype(const char *s, size_t n) {
  for (int d = 0; d < DT_NDTYPES; d++) {
    const char *name = dt_dtype_name((dt_dtype)d);
    if (strlen(name) == n && memcmp(name, s, n) == 0) return d;
  }
  return -1;
}

static void show_help(const char *command, const CliOption *o, int n) {
  const char *notes = "";
  for (int i = 0; i < NCOMMANDS; i++) {
    if (strcmp(commands[i].name, command) != 0) continue;
    notes = commands[i].notes;
    printf("ditron %s: %s\n\nusage: ditron %s%s%s\n", command, commands[i].text, command,
           *commands[i].usage ? " " : "", commands[i].usage);
  }
  for (int i = 0; i < n; i++) {
    char left[48];
    snprintf(left, sizeof left, "%s%s%s", o[i].name, o[i].value ? " " : "", o[i].value ? o[i].value : "");
    printf("%s  %-26s %s\n", i ? "" : "\n", left, o[i].text);
  }
  if (*notes) printf("\n%s", notes);
}

static void push(CliList *list, const char *s) {
  list->v = realloc(list->v, (size_t)(list->n + 1) * sizeof *list->v);
  if (!list->v) abort();
  list->v[list->n++] = s;
}

static int set(const char *command, const CliOption *o, const char *value) {
  switch (o->kind) {
  case CLI_FLAG: *(bool *)o->target = true; return 0;
  case CLI_TEXT: *(const char **)o->target = value; return 0;
  case CLI_LIST: push(o->target, value); return 0;
  case CLI_NUMBER: {
    char *end;
    double v = strtod(value, &end);
    if (end == value || *end || !(v > 0 && v <= 1e9))
      return 1 + cli_usage(command, "%s takes a number above 0, up to 1e9, not '%s'", o->name, value);
    *(double *)o->target = v;
    return 0;
  }
  case CLI_INT: {
    int64_t v;
    if (!cli_int(value, &v) || v < o->lo || v > o->hi)
      return 1 + cli_usage(command, "%s takes a whole number from %lld to %lld, not '%s'", o->name,
                           (long long)o->lo, (long long)o->hi, value);
    *(int64_t *)o->target = v;
    return 0;
  }
  }
  return 0;
}

int cli_parse(const char *command, const CliOption *options, int n, int argc, char **argv, CliList *rest) {
  bool only_rest = false;
  for (int i = 0; i < argc; i++) {
    const char *arg = argv[i];
    if (only_rest || arg[0] != '-' || !arg[1]) {
      push(rest, arg);
      continue;
    }
    if (strcmp(arg, "--") == 0) {
      only_rest = true;
      continue;
    }
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
      show_help(command, options, n);
      return 1;
    }
    const char *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
    const CliOption *o = NULL;
    for (int j = 0; j < n && !o; j++)
      if (strlen(options[j].name) == len && memcmp(options[j].name, arg, len) == 0) o = &options[j];
    const bool attached = !o && arg[1] != '-'; // -n2
    for (int j = 0; j < n && attached && !o; j++)
      if (strlen(options[j].name) == 2 && options[j].name[1] == arg[1] && options[j].kind != CLI_FLAG)
        o = &options[j];
    if (!o) return 1 + cli_usage(command, "no option '%.*s'", (int)len, arg);
    if (attached) equals = arg + 1;
    if (o->kind == CLI_FLAG && equals) return 1 + cli_usage(command, "%s takes no value", o->name);
    if (o->kind != CLI_FLAG && !equals && ++i >= argc)
      return 1 + cli_usage(command, "%s needs a value", o->name);
    int over = set(command, o, o->kind == CLI_FLAG ? NULL : equals ? equals + 1 : argv[i]);
    if (over) return over;
  }
  return 0;
}

// ---- progress -----------------------------------------------------------------------------------------------------------------
uint64_t cli_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool due(CliProgress *p) { // for more than two seconds, and somebody looks
  uint64_t now = cli_now_ns();
  if (!p->start_ns) p->start_ns = now;
  return now - p->start_ns >= 2000000000u && isatty(2);
}

void cli_progress(CliProgress *p, double done) {
  enum { WIDTH = 30 };
  if (!due(p)) return;
  int full = (int)(done * WIDTH + 0.5);
  fprintf(stderr, "\r%s [%.*s%.*s] %3.0f %%", p->what, full, "##############################", WIDTH - full,
          "..............................", done * 100);
  fflush(stderr);
  p->shown = true;
}

// A bar that wanders: how much there is to do nobody knows.
static void *work(void *user) {
  enum { WIDTH = 30, MARK = 4 };
  CliProgress *p = user;
  pthread_mutex_lock(&p->lock);
  for (int at = 0; !p->ended; at = (at + 1) % (2 * (WIDTH - MARK))) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 250000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&p->over, &p->lock, &until);
    if (p->ended || !due(p)) continue;
    int left = at < WIDTH - MARK ? at : 2 * (WIDTH - MARK) - at;
    fprintf(stderr, "\r%s [%.*s####%.*s] %.0f s\033[K", p->what, left, "..............................",
            WIDTH - MARK - left, "..............................",
            (double)(cli_now_ns() - p->start_ns) / 1e9);
    fflush(stderr);
    p->shown = true;
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

void cli_working(CliProgress *p, const char *what) {
  p->what = what;
  if (p->start_ns || !isatty(2)) return;
  p->start_ns = cli_now_ns();
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->over, &clock);
  pthread_condattr_destroy(&clock);
  p->has_thread = pthread_create(&p->thread, NULL, work, p) == 0;
}

void cli_progress_end(CliProgress *p) {
  if (p->has_thread) {
    pthread_mutex_lock(&p->lock);
    p->ended = true;
    pthread_cond_signal(&p->over);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->over);
    pthread_mutex_destroy(&p->lock);
    p->has_thread = false;
  }
  if (p->shown) fputs("\r\033[K", stderr);
  p->shown = false;
}
