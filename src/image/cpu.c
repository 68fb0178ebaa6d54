// cpu: what this machine's processor and operating system offer, under the names that compilers use. A feature counts
// only where the system also saves its registers (XCR0).
#include "image/image_impl.h"

#include <cpuid.h>
#include <stdio.h>

enum { EAX, EBX, ECX, EDX };
enum { SAVE_NONE = 0, SAVE_AVX = 0x6, SAVE_512 = 0xe6, SAVE_AMX = 0x60000 }; // bits of XCR0 that must be set

static const struct Feature {
  const char *name;
  uint32_t leaf, subleaf, reg, bit, save;
} features[] = {
    {"sse2", 1, 0, EDX, 26, SAVE_NONE},
    {"sse3", 1, 0, ECX, 0, SAVE_NONE},
    {"pclmul", 1, 0, ECX, 1, SAVE_NONE},
    {"ssse3", 1, 0, ECX, 9, SAVE_NONE},
    {"cx16", 1, 0, ECX, 13, SAVE_NONE},
    {"sse4.1", 1, 0, ECX, 19, SAVE_NONE},
    {"sse4.2", 1, 0, ECX, 20, SAVE_NONE},
    {"movbe", 1, 0, ECX, 22, SAVE_NONE},
    {"popcnt", 1, 0, ECX, 23, SAVE_NONE},
    {"aes", 1, 0, ECX, 25, SAVE_NONE},
    {"fma", 1, 0, ECX, 12, SAVE_AVX},
    {"avx", 1, 0, ECX, 28, SAVE_AVX},
    {"f16c", 1, 0, ECX, 29, SAVE_AVX},
    {"bmi", 7, 0, EBX, 3, SAVE_NONE},
    {"avx2", 7, 0, EBX, 5, SAVE_AVX},
    {"bmi2", 7, 0, EBX, 8, SAVE_NONE},
    {"avx512f", 7, 0, EBX, 16, SAVE_512},
    {"avx512dq", 7, 0, EBX, 17, SAVE_512},
    {"adx", 7, 0, EBX, 19, SAVE_NONE},
    {"avx512ifma", 7, 0, EBX, 21, SAVE_512},
    {"avx512cd", 7, 0, EBX, 28, SAVE_512},
    {"avx512bw", 7, 0, EBX, 30, SAVE_512},
    {"avx512vl", 7, 0, EBX, 31, SAVE_512},
    {"avx512vbmi", 7, 0, ECX, 1, SAVE_512},
    {"avx512vbmi2", 7, 0, ECX, 6, SAVE_512},
    {"gfni", 7, 0, ECX, 8, SAVE_NONE},
    {"avx512vnni", 7, 0, ECX, 11, SAVE_512},
    {"avx512bitalg", 7, 0, ECX, 12, SAVE_512},
    {"avx512vpopcntdq", 7, 0, ECX, 14, SAVE_512},
    {"amx-bf16", 7, 0, EDX, 22, SAVE_AMX},
    {"avx512fp16", 7, 0, EDX, 23, SAVE_512},
    {"amx-tile", 7, 0, EDX, 24, SAVE_AMX},
    {"amx-int8", 7, 0, EDX, 25, SAVE_AMX},
    {"avxvnni", 7, 1, EAX, 4, SAVE_AVX},
    {"avx512bf16", 7, 1, EAX, 5, SAVE_512},
    {"lzcnt", 0x80000001, 0, ECX, 5, SAVE_NONE},
};

static uint64_t saved_state(void) {
  uint32_t r[4];
  if (!__get_cpuid(1, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) || !(r[ECX] >> 27 & 1)) return 0; // OSXSAVE
  uint32_t lo, hi;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (uint64_t)hi << 32 | lo;
}

// Leaf 1's EBX holds what differs between the cores of one machine, so it stays out.
uint64_t image_cpu_identity(void) {
  static const uint32_t leaves[][2] = {{0, 0},          {1, 0},          {7, 0},          {7, 1},
                                       {0x80000001, 0}, {0x80000002, 0}, {0x80000003, 0}, {0x80000004, 0}};
  uint64_t all[DT_COUNTOF(leaves) * 2 + 1] = {saved_state()};
  for (size_t i = 0; i < DT_COUNTOF(leaves); i++) {
    uint32_t r[4] = {0};
    __get_cpuid_count(leaves[i][0], leaves[i][1], &r[EAX], &r[EBX], &r[ECX], &r[EDX]);
    all[1 + 2 * i] = (uint64_t)r[EAX] << 32 | (leaves[i][0] == 1 ? 0 : r[EBX]);
    all[2 + 2 * i] = (uint64_t)r[ECX] << 32 | r[EDX];
  }
  return hash_bytes(all, sizeof all, 3);
}

static bool has(const struct Feature *f, uint64_t saved) {
  uint32_t r[4];
  if (!__get_cpuid_count(f->leaf, f->subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX])) return false;
  return (r[f->reg] >> f->bit & 1) && (saved & f->save) == f->save;
}

static const struct Feature *by_name(const char *s, size_t n) {
  for (size_t i = 0; i < DT_COUNTOF(features); i++) {
    if (strlen(features[i].name) == n && memcmp(features[i].name, s, n) == 0) return &features[i];
  }
  return NULL;
}

bool image_cpu_has(const char *wanted, char *missing, size_t cap) {
  const uint64_t saved = saved_state();
  size_t used = 0;
  bool all = true;
  if (cap) missing[0] = 0;
  for (const char *s = wanted ? wanted : ""; *s;) {
    const size_t n = strcspn(s, ",");
    const size_t skip = *s == '+' ? 1 : 0; // as in compilers' own lists
    const struct Feature *f = by_name(s + skip, n - skip);
    if (n > skip && (!f || !has(f, saved))) {
      all = false;
      if (used < cap)
        used += (size_t)snprintf(missing + used, cap - used, "%s%.*s", used ? "," : "", (int)n, s);
    }
    s += n + (s[n] == ',');
  }
  return all;
}
