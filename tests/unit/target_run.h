// target_run: compiles placed IR text, loads the object and runs its kernels here, for the tests of the target room.
#ifndef DITRON_TARGET_RUN_H
#define DITRON_TARGET_RUN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"
#include "ir/ir.h"
#include "target/target.h"

typedef struct Code {
  Arena arena;
  Escape escape;
  Diags diags;
  IrModule *module;
  Image *image;
  ImageCode *code;
  char *scratch;
  AbiRank rank;
  AbiInstance inst;
} Code;

static void code_parse(Code *c, const char *text) {
  arena_init(&c->arena, 0, &c->escape);
  diags_init(&c->diags, &c->arena);
  IrCtx *ctx = ir_ctx_new(&c->arena);
  if (ir_parse(&c->arena, ctx, &c->diags, "test.ir", text, strlen(text), &c->module) != ST_OK)
    fail_msg("%s", diags_render(&c->diags, &c->arena));
}
static void code_make(Code *c, const char *cpu, const char *text) {
  memset(c, 0, sizeof *c);
  if (ESCAPE_TRY(&c->escape)) fail_msg("%s", c->escape.message);
  code_parse(c, text);
  const TargetOptions o = {.cpu = cpu, .opt = 1, .verify = true};
  if (target_compile(c->module, &o, &c->arena, &c->diags, &c->image) != ST_OK)
    fail_msg("%s", diags_render(&c->diags, &c->arena));
  if (cpu && strcmp(cpu, "x86-64-v3") && !image_cpu_has(c->image->cpu_features, NULL, 0))
    return; // not to be run here
  if (image_code_load(c->image->code, c->image->code_bytes, image_cpu_symbols, image_ncpu_symbols, &c->code,
                      &c->diags) != ST_OK)
    fail_msg("%s", diags_render(&c->diags, &c->arena));
  uint64_t bytes = 64;
  for (uint32_t i = 0; i < c->image->nkernels; i++)
    if (c->image->kernels[i].variants[0].arena_bytes > bytes)
      bytes = c->image->kernels[i].variants[0].arena_bytes;
  c->scratch = aligned_alloc(64, bits_round_up(bytes, 64));
  memset(c->scratch, 0xcd, bits_round_up(bytes, 64));
  c->rank.abi = IMAGE_ABI;
  c->rank.world = 1;
  c->inst = (AbiInstance){.grid = {1, 1, 1}, .arena = c->scratch, .rank = &c->rank};
}
static void code_run(Code *c, const char *name, const void *args) {
  const AbiCpuEntry entry = (AbiCpuEntry)(uintptr_t)image_code_symbol(c->code, name);
  if (!entry) fail_msg("there is no kernel %s in the code", name);
  entry(args, &c->inst);
}
static void code_free(Code *c) {
  if (c->code) image_code_free(c->code);
  free(c->scratch);
  arena_free(&c->arena);
}

#endif
