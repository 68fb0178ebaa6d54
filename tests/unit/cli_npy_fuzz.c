// Fuzzes the parser of .npy headers: whatever it accepts is a tensor whose elements lie inside the file.
// The program's files are in no library: the one under test comes in whole.
// TIMEOUT: 1200
#include "harness/fuzz.h"
#include "harness/test.h"

#include "cli/npy.c"

#include <stdlib.h>
#include <string.h>

dt_status cli_no(dt_context *c, dt_status s, const char *fmt, ...) {
  (void)c;
  (void)fmt;
  return s;
}

static void must(bool ok) {
  if (!ok) abort();
}

static void one(const void *data, size_t n, void *user) {
  (void)user;
  CliTensor t;
  size_t at = 0;
  char why[160] = "";
  if (!npy_parse(data, n, n, &t, &at, why, sizeof why)) {
    must(why[0] && memchr(why, 0, sizeof why));
    return;
  }
  must((unsigned)t.dtype < DT_NDTYPES && t.rank >= 0 && t.rank <= 8);
  uint64_t count = 1;
  for (int i = 0; i < t.rank; i++) {
    must(t.shape[i] >= 0);
    must(!__builtin_mul_overflow(count, (uint64_t)t.shape[i], &count));
  }
  must(count == t.count && at <= n && count <= (n - at) / dt_dtype_bytes(t.dtype));
}

static void add(Fuzz *f, int version, const char *header, size_t elements) {
  unsigned char file[1024] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version};
  const size_t len = strlen(header), at = version == 1 ? 10 : 12;
  file[8] = (unsigned char)len;
  memcpy(file + at, header, len);
  fuzz_add(f, file, at + len + elements);
}

static void test_fuzz(void **state) {
  (void)state;
  static const char *const tokens[] = {
      "'descr'", "'shape'", "'fortran_order'",      "False", "True", "'<f4'", "'|O'", "(", ")",
      ", ",      ": ",      "18446744073709551616", NULL};
  Fuzz f = {.run = one, .tokens = tokens, .max_len = 4096};
  add(&f, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 8), }\n", 128);
  add(&f, 2, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", 1);
  add(&f, 3, "{'descr': '<i8', 'fortran_order': True, 'shape': (2,), }\n", 16);
  add(&f, 1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (0,), }\n", 0);
  fuzz_or_fail(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fuzz)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
