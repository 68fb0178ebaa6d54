// test: what every unit test includes. cmocka, and an arena that fails the test instead of escaping unseen.
//
//     static void test_something(void **state) {
//       Arena a;
//       TEST_ARENA(a);
//       ...
//       arena_free(&a);
//     }
//     int main(void) {
//       const struct CMUnitTest tests[] = {cmocka_unit_test(test_something)};
//       return cmocka_run_group_tests(tests, NULL, NULL);
//     }
#ifndef DITRON_TEST_H
#define DITRON_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

// Ready to use and without a limit; whatever ends its memory fails the test with the message.
#define TEST_ARENA(a) \
  Escape a##_escape; \
  arena_init(&(a), 0, &a##_escape); \
  if (ESCAPE_TRY(&a##_escape)) fail_msg("%s", a##_escape.message)

#endif
