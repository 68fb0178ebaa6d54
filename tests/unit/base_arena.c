#include "harness/test.h"
static void test_zero(void **state) {
  (void)state;
  Arena a;
  TEST_ARENA(a);
  char *p = arena_alloc(&a, 100, 8);
  assert_int_equal(p[99], 0);
  arena_free(&a);
}
int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_zero)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
