// cli: the program `ditron`, on the public header alone. This header is the room's own.
#ifndef DITRON_CLI_H
#define DITRON_CLI_H

#define DT_UNSTABLE
#include "ditron/ditron.h"

#include <pthread.h>

#define CLI_PRINTF(f, a) __attribute__((format(printf, f, a)))

#define COMMAND(name, usage, text, notes) int cmd_##name(int argc, char **argv);
#include "cli/cmds.def"
#undef COMMAND

// ---- messages: all on stderr, "ditron: ..." -------------------------------------------------------------------------------
int cli_fail(const char *fmt, ...) CLI_PRINTF(1, 2); // returns 1
int cli_usage(const char *command, const char *fmt, ...)
    CLI_PRINTF(2, 3);                                         // message and where help is; returns 2
int cli_failed(dt_context *c, const char *what, dt_status s); // the context's text, after "WHAT: "; returns 1
void cli_remarks(dt_context *c);                              // prints pending warnings and remarks
// Records the text of a failure of this thread in the context, for whoever prints it; returns s.
dt_status cli_no(dt_context *c, dt_status s, const char *fmt, ...) CLI_PRINTF(3, 4);

// The context of a command, or NULL after a message. deadline 0: the usual 30 s; cache_dir as in dt_context_options.
dt_context *cli_start(double deadline, const char *cache_dir);
uint64_t cli_free_bytes(
    void); // memory that this machine, or the group that holds this process to less, can still give
void cli_print_line(void *user, int rank, const char *line); // device_print

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
int cli_dtype(const char *s, size_t n);    // "bf16"; -1 where there is none of that name
// "FILE:KERNEL" in two, or kernel NULL. *file is malloc'ed, *kernel points into it.
void cli_split_kernel(const char *text, char **file, const char **kernel);

bool cli_traces_named(const char *command,
                      const CliList *paths); // false after a message: neither .json nor .svg
bool cli_write_traces(dt_context *c, dt_team *t, const CliList *paths); // false after a message
// Text to a file, or to standard output where path is NULL. Returns the exit code.
int cli_write_text(dt_context *c, const char *path, const char *text);

// ---- values: what follows NAME= on a command line -----------------------------------------------------------
typedef struct CliTensor {
  dt_dtype dtype;
  int rank;
  int64_t shape[8];
  size_t count;
} CliTensor;
typedef struct CliValue {
  char *name, *text; // as given, {rank} replaced
  dt_value_kind kind;
  int64_t i;
  double f;
  bool is_unsigned;
  char *str; // STR, FUNC
  dt_dtype dtype;
  // tensors
  bool symmetric, is_desc;
  char *file;       // @file.npy
  const char *fill; // zeros ones arange randn rand randint full empty list
  double fill_a, fill_b;
  double *list; // of the fill "list"
  size_t nlist;
  int64_t fill_i;  // full(V)'s number where it is written
  bool fill_whole; // as a whole one: exact beyond 2^53
  CliTensor tensor;
  int32_t block[DT_MAX_RANK];
  int nblock;
} CliValue;
// Parses "NAME=VALUE" with {rank} replaced and reads the header of a file. DT_INVALID: malformed; others: the file. Free it in any case.
dt_status cli_value(dt_context *c, const char *text, int rank, CliValue *out);
void cli_value_free(CliValue *v);
bool cli_is_tensor(const CliValue *v);
dt_value cli_plain_value(const CliValue *v); // all but tensors
// Elements of a tensor into memory: from its file, or by its fill (random ones from seed, name and rank).
dt_status cli_fill(dt_context *c, const CliValue *v, int rank, uint64_t seed, void *memory);
char *cli_with_rank(const char *text, int rank); // "{rank}" replaced; malloc'ed
// Prints name, type and the first elements.
void cli_show_tensor(const CliValue *v, const void *memory);

// ---- .npy ------------------------------------------------------------------------------------------------------
// Version 1 to 3, little-endian, C order. Messages name the file.
dt_status npy_header(dt_context *c, const char *path, CliTensor *out);
// Elements as want; a file that no longer has `count` of them is refused.
dt_status npy_read(dt_context *c, const char *path, dt_dtype want, size_t count, void *memory);
dt_status npy_write(dt_context *c, const char *path, const CliTensor *t,
                    const void *memory); // bf16, fp8 as float32
// The parser alone, for the fuzzer: header of a file given as bytes. *data: offset of the elements.
bool npy_parse(const unsigned char *bytes, size_t n, uint64_t file_size, CliTensor *out, size_t *data,
               char *why, size_t cap);

// ---- progress: on a terminal, for what takes longer than two seconds -------------------------------------------
typedef struct CliProgress {
  const char *_Atomic what;
  uint64_t start_ns;
  bool shown;
  // cli_working
  bool has_thread;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t over;
  bool ended;
} CliProgress;
void cli_progress(CliProgress *p, double done); // a bar, 0..1
// For work of unknown length: a thread shows what is going on and for how long, until cli_progress_end. Call again to change what.
void cli_working(CliProgress *p, const char *what);
void cli_progress_end(CliProgress *p); // the line disappears
uint64_t cli_now_ns(void);

#endif
