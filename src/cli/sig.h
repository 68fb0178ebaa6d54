// Signatures on the command line: see sig.c.
#ifndef DITRON_CLI_SIG_H
#define DITRON_CLI_SIG_H

#include "cli/cli.h"

enum { CLI_SIG_ARGS = 96, CLI_SIG_DESCS = 8 };
typedef struct CliSig {
  dt_named args[CLI_SIG_ARGS];
  int n;
  dt_desc descs[CLI_SIG_DESCS];
  int ndescs;
} CliSig;
bool cli_sig(const char *text, CliSig *sig); // false after a message

#endif
