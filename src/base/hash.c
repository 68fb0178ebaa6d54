// hash: XXH3 for tables, cache keys and kernel names, and the splitmix64 generator.
//
// XXH3 is compiled in from its header, so that the run-time library needs no further shared library. Its
// values are the same on every machine, which cache files rely on. None of this is cryptographic.
#include "base/base.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct Hash128 {
  XXH3_state_t state;
};

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed) { return XXH3_64bits_withSeed(p, n, seed); }

Hash128 *hash128_new(Arena *a) {
  Hash128 *h = arena_new(a, Hash128);
  XXH3_128bits_reset(&h->state);
  return h;
}

void hash128_add(Hash128 *h, const void *p, size_t n) { XXH3_128bits_update(&h->state, p, n); }

void hash128_hex(Hash128 *h, char out[33]) {
  const XXH128_hash_t d = XXH3_128bits_digest(&h->state);
  for (int i = 0; i < 32; i++) {
    const uint64_t word = i < 16 ? d.high64 : d.low64;
    out[i] = "0123456789abcdef"[word >> (60 - 4 * (i & 15)) & 15];
  }
  out[32] = 0;
}

uint64_t rng_next(Rng *r) {
  uint64_t z = r->s += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double rng_unit(Rng *r) { return (double)(rng_next(r) >> 11) * 0x1p-53; }
