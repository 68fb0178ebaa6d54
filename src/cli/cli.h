// cli: the program `ditron`, on the public header alone. This header is the room's own.
#ifndef DITRON_CLI_H
#define DITRON_CLI_H

#define DT_UNSTABLE
#include "ditron/ditron.h"

#define CLI_PRINTF(f, a) __attribute__((format(printf, f, a)))

#define COMMAND(name, usage, text) int cmd_##name(int argc, char **argv);
#include "cli/cmds.def"
#undef COMMAND

// ---- messages: all on stderr, "ditron: ..." -------------------------------------------------------------------------------
int cli_fail(const char *fmt, ...) CLI_PRINTF(1, 2); // returns 1
int cli_usage(const char *command, const char *fmt, ...)
    CLI_PRINTF(2, 3);                                         // message and where help is; returns 2
int cli_failed(dt_context *c, const char *what, dt_status s); // the context's text; returns 1
void cli_remarks(dt_context *c);                              // prints pending warnings and remarks

// ---- options ---------------------------------------------------------------------------------------------------------------
// One row an option of a command; parsed values land in the row's target. Positional arguments stay in order.
typedef enum CliKind { CLI_FLAG, CLI_INT, CLI_NUMBER, CLI_TEXT, CLI_LIST } CliKind;
typedef struct CliList {
  const char **v;
  int n;
} CliList;
typedef struct CliOption {
  const char *name, *value; // "--ranks", "N"
  CliKind kind;
  void *target;   // bool *, int64_t *, double *, const char **, CliList *
  int64_t lo, hi; // CLI_INT: bounds
  const char *text;
} CliOption;
// Fills targets and *rest. Returns 0, or the exit code + 1 when the command is over (help shown: 1; bad usage: 3).
int cli_parse(const char *command, const CliOption *options, int noptions, int argc, char **argv,
              CliList *rest);
bool cli_int(const char *s, int64_t *out); // decimal or 0x; the whole string

bool cli_write_traces(dt_context *c, dt_team *t, const CliList *paths); // false after a message

// ---- values: what follows NAME= on a command line ------------------------------------------------------------------------------
typedef struct CliTensor {
  dt_dtype dtype;
  int rank;
  int64_t shape[8];
  size_t count;
} CliTensor;
typedef struct CliValue {
  const char *name, *text; // as given
  dt_value_kind kind;
  int64_t i;
  double f;
  bool is_unsigned;
  const char *str; // STR, FUNC
  dt_dtype dtype;
  // tensors
  bool symmetric, is_desc;
  const char *file; // @file.npy, with {rank} still in it
  const char *fill; // zeros ones arange randn rand randint full empty
  double fill_a, fill_b;
  CliTensor tensor;
  int32_t block[DT_MAX_RANK];
  int nblock;
} CliValue;
// Parses "NAME=VALUE" with {rank} replaced. Messages name the argument. Returns false after a message.
bool cli_value(const char *text, int rank, CliValue *out);
dt_value cli_plain_value(const CliValue *v); // all but tensors
// Elements of a tensor into memory: from its file, or by its fill (random ones from seed, name and rank).
bool cli_fill(const CliValue *v, int rank, uint64_t seed, void *memory);
bool cli_load_shape(CliValue *v, int rank);      // of @file: reads the header
char *cli_with_rank(const char *text, int rank); // "{rank}" replaced; malloc'ed

// ---- .npy ----------------------------------------------------------------------------------------------------------------------
// Version 1 to 3, little-endian, C order. Each failure is one message naming the file.
bool npy_header(const char *path, CliTensor *out);
bool npy_read(const char *path, dt_dtype want, const CliTensor *shape, void *memory); // converts to want
bool npy_write(const char *path, const CliTensor *t, const void *memory); // bf16 and fp8 as float32
// The parser alone, for the fuzzer: header of a file given as bytes. *data: offset of the elements.
bool npy_parse(const unsigned char *bytes, size_t n, uint64_t file_size, CliTensor *out, size_t *data,
               char *why, size_t cap);

// ---- progress: a bar on a terminal for what takes longer than two seconds ---------------------------------------------------------
typedef struct CliProgress {
  const char *what;
  uint64_t start_ns;
  bool shown;
} CliProgress;
void cli_progress(CliProgress *p, double done); // 0..1
void cli_progress_end(CliProgress *p);
uint64_t cli_now_ns(void);

#endif
