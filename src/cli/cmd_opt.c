// ditron opt: passes over IR text.
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(const char *path, size_t *n) {
  enum { MOST = 256 << 20 };
  FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  char *text = NULL;
  size_t room = 0;
  *n = 0;
  while (f && *n < MOST) {
    if (*n + 65536 > room) text = realloc(text, room = room * 2 + 65536);
    size_t got = fread(text + *n, 1, room - *n, f);
    if (!got) break;
    *n += got;
  }
  if (f && f != stdin) fclose(f);
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
  char passes[4096] = "";
  for (int i = 0; i < rest.n - 1; i++)
    snprintf(passes + strlen(passes), sizeof passes - strlen(passes), "%s%s", i ? "," : "", rest.v[i]);
  const char *path = rest.v[rest.n - 1], *text;
  size_t n;
  char *ir = read_all(path, &n);
  if (!ir) return cli_fail("%s: cannot be read", path);
  dt_context_options co = {.size = sizeof co, .cache_dir = ""};
  dt_context *c;
  dt_status st = dt_context_create(&co, &c);
  if (st != DT_OK) return cli_failed(NULL, "start", st);
  st = dt_opt_text(c, path, ir, n, passes, &text);
  int code = 0;
  if (st == DT_OK) {
    FILE *f = out ? fopen(out, "wb") : stdout;
    if (!f || fputs(text, f) < 0 || (out && fclose(f) != 0))
      code = cli_fail("%s: cannot be written", out ? out : "standard output");
  } else {
    code = cli_failed(c, path, st);
  }
  cli_remarks(c);
  dt_context_destroy(c);
  free(ir);
  return code;
}
