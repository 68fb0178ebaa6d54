// Signatures on the command line: see sig.c.
#ifndef DITRON_CLI_SIG_H
#define DITRON_CLI_SIG_H

#include "cli/cli.h"

enum { CLI_SIG_ARGS = 96, CLI_SIG_DESCS = 8 };
typedef struct CliSig {
  dt_named args[CLI_SIG_ARGS];
  CliValue values[CLI_SIG_ARGS]; // own the names and texts
  int n;
  dt_desc descs[CLI_SIG_DESCS];
  int ndescs;
} CliSig;
dt_status cli_sig(dt_context *c, const char *text, CliSig *sig); // free it in any case
void cli_sig_free(CliSig *sig);

#endif
