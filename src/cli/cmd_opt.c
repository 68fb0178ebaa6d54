// ditron opt: passes over IR text.
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns NULL after a message.
static char *read_all(const char *path, size_t *n) {
  enum { MOST = 256 << 20, STEP = 1 << 16 };
  FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (!f) return cli_fail("%s: %s", path, strerror(errno)), NULL;
  char *text = NULL;
  size_t room = 0, got = 0;
  *n = 0;
  do {
    if (*n + STEP > room && !(text = realloc(text, room = room * 2 + STEP))) abort();
    *n += got = fread(text + *n, 1, room - *n, f);
  } while (got && *n <= MOST);
  const char *why = ferror(f) ? strerror(errno) : *n > MOST ? "more than 256 MiB of IR" : NULL;
  if (f != stdin) fclose(f);
  if (!why) return text;
  cli_fail("%s: %s", path, why);
  free(text);
  return NULL;
}

static char *join(const CliList *list, int n) {
  size_t room = 1;
  for (int i = 0; i < n; i++) room += strlen(list->v[i]) + 1;
  char *text = malloc(room), *w = text;
  if (!text) abort();
  *w = 0;
  for (int i = 0; i < n; i++) w += sprintf(w, "%s%s", i ? "," : "", list->v[i]);
  return text;
}

int cmd_opt(int argc, char **argv) {
  CliList rest = {0};
  const char *out = NULL;
  const CliOption options[] = {
      {"-o", "FILE", CLI_TEXT, &out, 0, 0, "write here instead of to standard output"}};
  int over = cli_parse("opt", options, 1, argc, argv, &rest);
  if (over) return over - 1;
  if (rest.n < 1) return cli_usage("opt", "which passes, over which file?");
  const char *path = rest.v[rest.n - 1], *text;
  size_t n;
  char *ir = read_all(path, &n);
  if (!ir) return 1;
  char *passes = join(&rest, rest.n - 1);
  dt_context *c = cli_start(0, "");
  if (!c) return 1;
  CliProgress bar = {0};
  cli_working(&bar, "running passes");
  dt_status st = dt_opt_text(c, path, ir, n, passes, &text);
  cli_progress_end(&bar);
  int code = st == DT_OK ? cli_write_text(c, out, text) : cli_failed(c, path, st);
  cli_remarks(c);
  dt_context_destroy(c);
  free(passes);
  free(ir);
  free(rest.v);
  return code;
}
