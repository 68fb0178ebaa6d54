// fuzz: changes known inputs at random and feeds them to a function, in a child process that may die.
//
//     static void one(const void *data, size_t len, void *user) { ... must come back, whatever data holds ... }
//     static void test_fuzz(void **state) {
//       Fuzz f = {.run = one, .tokens = words};
//       fuzz_add_files(&f, "kernels/*.py");   // below $ROOT, or the current folder
//       fuzz_or_fail(&f);
//     }
//
// Every case is made from (seed, number) alone: what is printed about a death is enough to repeat it, with
// FUZZ_SEED=s FUZZ_FIRST=n. FUZZ_SECONDS says how long; the default is 60 in sanitizer builds, 10 elsewhere.
#ifndef DITRON_FUZZ_H
#define DITRON_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FUZZ_INPUTS = 256 };

typedef struct Fuzz {
  void (*run)(const void *data, size_t len, void *user);
  void *user;
  const char *const *tokens; // spliced in whole; NULL-terminated, or NULL
  size_t max_len;            // longest input; default 64 KiB
  double seconds;            // default: see above
  double hang_seconds;       // one case may take this long; default 10
  struct {
    char *data;
    size_t len;
  } inputs[FUZZ_INPUTS];
  size_t ninputs;
} Fuzz;

void fuzz_add(Fuzz *f, const void *data, size_t len); // copies
void fuzz_add_files(Fuzz *f, const char *pattern);    // as the shell matches it
bool fuzz_find(Fuzz *f, char *report, size_t cap);    // true: something died or hung, described in report
void fuzz_or_fail(Fuzz *f); // the test fails where fuzz_find finds; frees the inputs
void fuzz_free(Fuzz *f);

#endif
