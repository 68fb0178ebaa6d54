// facts: the GPUs that we make code for. Features of PTX are gated here: what LLVM cannot select would end the process.
#include "target/nvptx/nvptx.h"

// ptx: the version of the language that the code is written in. 8.4 is the first with products of 8-bit floats on sm_89.
static const struct {
  const char *name, *ptx;
  uint32_t sm;
  bool exact;
  uint32_t shared_bytes, caps;
} machines[] = {
    {"sm_80", "+ptx84", 80, false, 163 << 10, 0},
    {"sm_89", "+ptx84", 89, false, 99 << 10, TARGET_CAP_F8_CVT},
    {"sm_90a", "+ptx84", 90, true, 227 << 10,
     TARGET_CAP_F8_CVT | TARGET_CAP_BF16_ATOMIC | TARGET_CAP_STMATRIX | TARGET_CAP_TMA | TARGET_CAP_WGMMA},
};

Status nvptx_facts(const TargetOptions *o, Arena *a, Diags *d, TargetFacts *out) {
  (void)a;
  const char *cpu = o->cpu && strcmp(o->cpu, "host") ? o->cpu : "sm_90a";
  for (size_t i = 0; i < DT_COUNTOF(machines); i++) {
    if (strcmp(machines[i].name, cpu)) continue;
    *out = (TargetFacts){.target = "nvptx",
                         .cpu = machines[i].name,
                         .features = machines[i].ptx,
                         .needs = machines[i].name,
                         .vector_bits = 128,
                         .vector_regs = 255,
                         .lanes = 32,
                         .caps = machines[i].caps,
                         .sm = machines[i].sm,
                         .sm_exact = machines[i].exact,
                         .shared_bytes = machines[i].shared_bytes,
                         .block_regs = 65536};
    return ST_OK;
  }
  diag(d, DIAG_ERROR, LOC_NONE, "nvptx: unknown GPU '%s'", cpu);
  diag_hint(d, "sm_80, sm_89 or sm_90a");
  return ST_UNSUPPORTED;
}
