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
  const char *name, *usage, *text;
  int (*run)(int argc, char **argv);
} commands[] = {
#define COMMAND(name, usage, text) {#name, usage, text, cmd_##name},
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

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  if (!*name || strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
    help(*name ? stdout : stderr);
    return *name ? 0 : 2;
  }
  if (strcmp(name, "--version") == 0) {
    printf("ditron %s\n", dt_version());
    return 0;
  }
  for (int i = 0; i < NCOMMANDS; i++)
    if (strcmp(name, commands[i].name) == 0) return commands[i].run(argc - 2, argv + 2);
  fprintf(stderr, "ditron: no command '%s'\n\n", name);
  help(stderr);
  return 2;
}

// ---- messages -------------------------------------------------------------------------------------------------------------
int cli_fail(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fputs("ditron: ", stderr);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
  return 1;
}

int cli_usage(const char *command, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "ditron %s: ", command);
  vfprintf(stderr, fmt, ap);
  fprintf(stderr, "\n`ditron %s --help` shows how\n", command);
  va_end(ap);
  return 2;
}

// Diagnostics name their place themselves; other texts get what was attempted in front.
int cli_failed(dt_context *c, const char *what, dt_status s) {
  const char *text = dt_error(c);
  size_t n = strlen(text);
  bool diagnostic = strncmp(text, "error: ", 7) == 0 || strstr(text, ": error: ");
  fprintf(stderr, "%s%s%s%s%s", diagnostic ? "" : "ditron: ", diagnostic ? "" : what, diagnostic ? "" : ": ",
          n ? text : dt_status_name(s), n && text[n - 1] == '\n' ? "" : "\n");
  return 1;
}

void cli_remarks(dt_context *c) { fputs(dt_remarks(c), stderr); }

bool cli_write_traces(dt_context *c, dt_team *t, const CliList *paths) {
  for (int i = 0; i < paths->n; i++) {
    dt_status st = dt_team_write_trace(t, paths->v[i]);
    if (st != DT_OK) return cli_failed(c, paths->v[i], st), false;
  }
  return true;
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

static void show_help(const char *command, const CliOption *o, int n) {
  for (int i = 0; i < NCOMMANDS; i++)
    if (strcmp(commands[i].name, command) == 0)
      printf("ditron %s: %s\n\nusage: ditron %s %s\n", command, commands[i].text, command, commands[i].usage);
  for (int i = 0; i < n; i++) {
    char left[48];
    snprintf(left, sizeof left, "%s%s%s", o[i].name, o[i].value ? " " : "", o[i].value ? o[i].value : "");
    printf("%s  %-26s %s\n", i ? "" : "\n", left, o[i].text);
  }
}

static void push(CliList *list, const char *s) {
  list->v = realloc(list->v, (size_t)(list->n + 1) * sizeof *list->v);
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
    if (end == value || *end || !(v > 0))
      return 1 + cli_usage(command, "%s takes a number above 0, not '%s'", o->name, value);
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
    if (!o) return 1 + cli_usage(command, "no option '%.*s'", (int)len, arg);
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

void cli_progress(CliProgress *p, double done) {
  enum { WIDTH = 30 };
  uint64_t now = cli_now_ns();
  if (!p->start_ns) p->start_ns = now;
  if (now - p->start_ns < 2000000000u || !isatty(2)) return;
  int full = (int)(done * WIDTH + 0.5);
  fprintf(stderr, "\r%s [%.*s%.*s] %3.0f %%", p->what, full, "##############################", WIDTH - full,
          "..............................", done * 100);
  fflush(stderr);
  p->shown = true;
}

void cli_progress_end(CliProgress *p) {
  if (p->shown) fputs("\r\033[K", stderr);
  p->shown = false;
}
