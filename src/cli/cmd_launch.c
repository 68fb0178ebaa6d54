// ditron launch: runs a program as the ranks of one job on this host.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

int cmd_launch(int argc, char **argv) {
  int64_t n = 0;
  CliList rest = {0};
  const CliOption options[] = {{"-n", "N", CLI_INT, &n, 1, 256, "how many ranks"}};
  int first = 0; // options end at the program's name: what follows is the program's
  while (first < argc && argv[first][0] == '-')
    first += strcmp(argv[first], "-n") == 0 ? 2 : strcmp(argv[first], "--") == 0 ? argc : 1;
  for (int i = 0; i < argc; i++)
    if (strcmp(argv[i], "--") == 0) {
      first = i;
      break;
    }
  if (first > argc) first = argc;
  int over = cli_parse("launch", options, 1, first, argv, &rest);
  if (over) return over - 1;
  if (first < argc && strcmp(argv[first], "--") == 0) first++;
  if (!n) return cli_usage("launch", "-n N says how many ranks");
  if (first >= argc) return cli_usage("launch", "which program?");
  dt_context *c;
  dt_status st = dt_context_create(NULL, &c);
  if (st != DT_OK) return cli_failed(NULL, "start", st);
  int code = 0;
  st = dt_launch_job(c, (const char *const *)argv + first, (int)n, &code);
  if (st != DT_OK) code = cli_failed(c, argv[first], st);
  cli_remarks(c);
  dt_context_destroy(c);
  return code;
}
