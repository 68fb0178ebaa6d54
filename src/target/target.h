// target: from the last stage of the IR to machine code in an Image. The only room that knows LLVM.
//
//   IrModule (placed) -> shared lowering, one file an op family -> LLVM IR -> passes -> object code -> Image
//
// A target is facts (what the machine can do) plus a few hooks; see targets.def. Nothing here keeps process-wide state
// but LLVM's own registry of targets, which is filled once. Compiles may run on several threads at once.
#ifndef DITRON_TARGET_H
#define DITRON_TARGET_H

#include "base/base.h"
#include "image/image.h"
#include "ir/ir.h"

typedef enum TargetCap {       // what a machine can do, beyond the least that its target asks for
  TARGET_CAP_MASKED = 1,       // per-element masks on loads and stores of any element size, at no cost
  TARGET_CAP_BF16_DOT = 2,     // products of bf16 pairs added to f32
  TARGET_CAP_FAST_GATHER = 4,  // a gather is faster than element by element
  TARGET_CAP_F8_CVT = 8,       // conversions of the 8-bit floats, and products of them
  TARGET_CAP_BF16_ATOMIC = 16, // atomic addition of bf16
  TARGET_CAP_STMATRIX = 32,
  TARGET_CAP_TMA = 64,    // tensor maps, bulk copies, mbarriers that count bytes, register budgets of warps
  TARGET_CAP_WGMMA = 128, // products of four warps from shared memory
} TargetCap;

typedef struct TargetFacts {
  const char *target;          // name in targets.def
  const char *cpu;             // LLVM's name, e.g. znver3 or x86-64-v3
  const char *features;        // LLVM's feature list
  const char *needs;           // what Image.cpu_features will say
  uint32_t vector_bits;        // of the widest register
  uint32_t vector_regs;        // how many of them
  uint32_t lanes;              // of a warp
  uint32_t l1_bytes, l2_bytes; // data caches of one core
  uint32_t l3_bytes;           // the last cache: more than this written once goes past all of them
  uint32_t caps;               // TargetCap bits
  // GPUs
  uint32_t sm;           // NVIDIA: compute capability, 90 for 9.0
  bool sm_exact;         // code runs on that very one only (sm_90a)
  uint32_t shared_bytes; // most that one block may have
  uint32_t block_regs;   // of one multiprocessor
} TargetFacts;

typedef struct TargetTool TargetTool;

typedef struct TargetOptions {
  const char *target; // name in targets.def; NULL: x86
  // x86: NULL or "host": this machine; else a baseline: x86-64-v3, x86-64-v4 or an LLVM CPU name.
  // nvptx: sm_80, sm_89, sm_90a (NULL).
  const char *cpu;
  const char *ptxas;   // nvptx: the program; NULL: found on PATH or in CUDA's usual place
  int opt;             // 0: hardly any optimisation; 1: everything that pays (use this)
  bool debug_lines;    // line tables for debuggers and profilers
  bool verify;         // check the LLVM module (always on in debug builds)
  const Image *before; // its sites come first, so that its code and this one may lie in one image; NULL: none
  TargetTool *tool;    // started for these options, used up by one compile; NULL: started where it is needed
} TargetOptions;

typedef struct Target Target;
const Target *target_find(const char *name); // NULL: none of that name
const char *target_name(const Target *t);
IrStage target_stage(const Target *t); // of the modules that it compiles

// Facts of the CPU that the options name. ST_UNSUPPORTED with a diagnostic for an unknown CPU or one that lacks the
// least that the target asks for. Strings live in the arena.
Status target_facts(const TargetOptions *o, Arena *a, Diags *d, TargetFacts *out);

// A program that finishes what LLVM made (nvptx: ptxas). Its start-up takes longer than a small kernel's way to LLVM's end: started
// ahead, it is over by then. It is the caller's, to be ended behind the compile on every way out.
TargetTool *target_tool_start(const TargetOptions *o); // NULL: the target needs none, or it is not there
void target_tool_end(TargetTool *t);                   // also where it was never used, or NULL

// Compiles all kernels of a module in the target's last stage. On success *out is an image in the arena (code included);
// on failure at least one diagnostic says why and *out is not written.
Status target_compile(const IrModule *m, const TargetOptions *o, Arena *a, Diags *d, Image **out);
// The same in two steps. After the first one all of the image is known but its code, registers and spills, which the tool is at
// work on where the options have one: meanwhile another module may be compiled. The module and what the options point at are needed
// to the end.
typedef struct TargetJob TargetJob;
Status target_begin(const IrModule *m, const TargetOptions *o, Arena *a, Diags *d, TargetJob **job,
                    Image **out);
Status target_end(TargetJob *job);

typedef enum TargetText { TARGET_TEXT_LLVM, TARGET_TEXT_ASM } TargetText;
// The optimised LLVM module or the machine code as text, for people.
Status target_text(const IrModule *m, const TargetOptions *o, TargetText what, Arena *a, Diags *d,
                   char **out);

#endif
