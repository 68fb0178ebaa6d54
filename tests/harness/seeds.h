// seeds: a program that makes one check for every seed, and can repeat any of them.
//
//     static void one(uint64_t seed, bool show) { ... fails, or returns ... }
//     static void test_random(void **state) { (void)state; seeds_run(one, 400, 15); }
//     int main(int argc, char **argv) { return SEEDS_MAIN(argc, argv, one, test_random); }
//
// Arguments of such a program: a seed to show, alone; or two: the seeds between, named as they go. None: the tests.
#ifndef DITRON_SEEDS_H
#define DITRON_SEEDS_H

#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>

typedef void SeedCheck(uint64_t seed, bool show);

// Seeds 1 to last, or as many as the seconds allow.
static inline void seeds_run(SeedCheck *one, uint64_t last, unsigned seconds) {
  const uint64_t end = os_now_ns() + seconds * 1000000000ull;
  for (uint64_t seed = 1; seed <= last && os_now_ns() < end; seed++) one(seed, false);
}

// True: the arguments asked for seeds, which have been checked.
static inline bool seeds_asked(int argc, char **argv, SeedCheck *one) {
  if (argc == 2) one(strtoull(argv[1], NULL, 10), true);
  if (argc != 3) return argc == 2;
  for (uint64_t s = strtoull(argv[1], NULL, 10); s < strtoull(argv[2], NULL, 10); s++) {
    printf("%llu\n", (unsigned long long)s);
    fflush(stdout); // before it may end the process
    one(s, false);
  }
  return true;
}

#define SEEDS_MAIN(argc, argv, one, test) \
  (seeds_asked((argc), (argv), (one)) \
       ? 0 \
       : cmocka_run_group_tests(((const struct CMUnitTest[]){cmocka_unit_test(test)}), NULL, NULL))

#endif
