// facts: what an x86-64 CPU can do, asked from LLVM for this machine or read from a baseline's definition. The least is
// AVX2, FMA and F16C (x86-64-v3).
#include "target/x86/x86.h"

#include <llvm-c/Target.h>
#include <unistd.h>

// Features that change the code we make, by LLVM's and the image's name. `v`: the baseline that brings them.
static const struct {
  const char *name;
  int v;
} features[] = {{"sse3", 3},      {"ssse3", 3},    {"sse4.1", 3},   {"sse4.2", 3},   {"popcnt", 3},
                {"cx16", 3},      {"avx", 3},      {"avx2", 3},     {"fma", 3},      {"f16c", 3},
                {"bmi", 3},       {"bmi2", 3},     {"lzcnt", 3},    {"movbe", 3},    {"avx512f", 4},
                {"avx512bw", 4},  {"avx512cd", 4}, {"avx512dq", 4}, {"avx512vl", 4}, {"avx512bf16", 5},
                {"avx512vnni", 5}};

static bool has(const char *list, const char *name) { // "+name" as a whole entry of a comma-separated list
  const size_t n = strlen(name);
  for (const char *s = list; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
    if (s[0] == '+' && !strncmp(s + 1, name, n) && (!s[n + 1] || s[n + 1] == ',')) return true;
  return false;
}
static const char *baseline(Arena *a, int v) {
  const char *s = "";
  for (size_t i = 0; i < DT_COUNTOF(features); i++)
    if (features[i].v <= v) s = arena_printf(a, "%s%s+%s", s, *s ? "," : "", features[i].name);
  return s;
}
static const char *taken(Arena *a, char *llvm) {
  char *s = arena_strdup(a, llvm ? llvm : "");
  LLVMDisposeMessage(llvm);
  return s;
}
static uint32_t cache(int name, uint32_t otherwise) {
  const long n = sysconf(name);
  return n > 0 && n < (1 << 30) ? (uint32_t)n : otherwise;
}

Status x86_facts(const TargetOptions *o, Arena *a, Diags *d, TargetFacts *out) {
  *out = (TargetFacts){
      .target = "x86", .lanes = 32, .l1_bytes = 32 << 10, .l2_bytes = 512 << 10, .l3_bytes = 32 << 20};
  if (!o->cpu || !strcmp(o->cpu, "host")) {
    out->cpu = taken(a, LLVMGetHostCPUName());
    out->features = taken(a, LLVMGetHostCPUFeatures());
    out->l1_bytes = cache(_SC_LEVEL1_DCACHE_SIZE, out->l1_bytes);
    out->l2_bytes = cache(_SC_LEVEL2_CACHE_SIZE, out->l2_bytes);
    const uint32_t l3 =
        cache(_SC_LEVEL3_CACHE_SIZE, out->l3_bytes); // some machines report that of all sockets
    if (l3 < out->l3_bytes) out->l3_bytes = l3;
  } else if (!strcmp(o->cpu, "x86-64-v3")) {
    out->cpu = "x86-64-v3";
    out->features = baseline(a, 3);
  } else if (!strcmp(o->cpu, "x86-64-v4")) {
    out->cpu = "x86-64-v4";
    out->features = baseline(a, 4);
  } else if (!strcmp(o->cpu, "x86-64-v4-bf16")) { // x86-64-v4 with products of bf16 and of bytes
    out->cpu = "x86-64-v4";
    out->features = baseline(a, 5);
  } else {
    diag(d, DIAG_ERROR, LOC_NONE, "x86: unknown CPU '%s'", o->cpu);
    diag_hint(d, "host, x86-64-v3, x86-64-v4 or x86-64-v4-bf16");
    return ST_UNSUPPORTED;
  }
  for (size_t i = 0; i < DT_COUNTOF(features); i++) {
    if (features[i].v > 3 || has(out->features, features[i].name)) continue;
    diag(d, DIAG_ERROR, LOC_NONE, "x86: this CPU (%s) lacks %s; the least is x86-64-v3 (AVX2, FMA, F16C)",
         out->cpu, features[i].name);
    return ST_UNSUPPORTED;
  }
  const bool avx512 = has(out->features, "avx512f") && has(out->features, "avx512bw") &&
                      has(out->features, "avx512dq") && has(out->features, "avx512vl");
  out->vector_bits = avx512 ? 512 : 256;
  out->vector_regs = avx512 ? 32 : 16;
  out->caps = avx512 ? TARGET_CAP_MASKED | TARGET_CAP_FAST_GATHER : 0;
  // Zen's does twice as many products a cycle as its f32 multiply-adds; Sapphire Rapids' half as many.
  const bool host = strncmp(out->cpu, "x86-64", 6) != 0;
  if (avx512 && has(out->features, "avx512bf16") && (!host || !strncmp(out->cpu, "znver", 5)))
    out->caps |= TARGET_CAP_BF16_DOT;
  const char *needs = "";
  for (size_t i = 0; i < DT_COUNTOF(features); i++)
    if (has(out->features, features[i].name))
      needs = arena_printf(a, "%s%s%s", needs, *needs ? "," : "", features[i].name);
  out->needs = needs;
  return ST_OK;
}
