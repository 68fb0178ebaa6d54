// entropy: LLVM's archives, built against a newer C library, ask for arc4random, which came with glibc 2.36. With one of our
// own, hidden and over getrandom, what is linked statically runs on glibc 2.35 too.
#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void);
uint32_t arc4random(void) {
  uint32_t x = 0;
  while (getrandom(&x, sizeof x, 0) < 0 && errno == EINTR) {}
  return x;
}
