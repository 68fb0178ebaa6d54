// ditron launch: runs a program as the ranks of one job on this host.
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Why the program would not start, or NULL: said once instead of by every rank. As execvp finds it.
static const char *cannot_run(const char *program) {
  struct stat st;
  if (strchr(program, '/'))
    return access(program, X_OK) != 0                       ? strerror(errno)
           : stat(program, &st) == 0 && S_ISDIR(st.st_mode) ? strerror(EISDIR)
                                                            : NULL;
  const char *path = getenv("PATH");
  if (!path || !*path) return NULL; // the system's own idea of it
  for (const char *end; *path; path = *end ? end + 1 : end) {
    char full[4096];
    end = path + strcspn(path, ":");
    snprintf(full, sizeof full, "%.*s/%s", (int)(end - path), path, program);
    if (access(full, X_OK) == 0) return NULL;
  }
  return "no such program";
}

int cmd_launch(int argc, char **argv) {
  int64_t n = 0;
  CliList rest = {0};
  const CliOption options[] = {{"-n", "N", CLI_INT, &n, 1, 256, "how many ranks"}};
  int first = 0; // options end at the program's name: what follows is the program's
  while (first < argc && argv[first][0] == '-' && strcmp(argv[first], "--") != 0)
    first += strcmp(argv[first], "-n") == 0 ? 2 : 1;
  if (first > argc) first = argc;
  int over = cli_parse("launch", options, 1, first, argv, &rest);
  if (over) return over - 1;
  if (first < argc && strcmp(argv[first], "--") == 0) first++;
  if (!n) return cli_usage("launch", "-n N says how many ranks");
  if (first >= argc) return cli_usage("launch", "which program?");
  const char *why = cannot_run(argv[first]);
  if (why) return cli_fail("%s: %s", argv[first], why), 127;
  dt_context *c = cli_start(0, NULL);
  if (!c) return 1;
  int code = 0;
  dt_status st = dt_launch_job(c, (const char *const *)argv + first, (int)n, &code);
  if (st != DT_OK) code = cli_failed(c, argv[first], st);
  const char *ended = dt_remarks(c); // which rank failed first
  if (*ended) fprintf(stderr, "ditron: %s%s", ended, ended[strlen(ended) - 1] == '\n' ? "" : "\n");
  dt_context_destroy(c);
  free(rest.v);
  return code;
}
