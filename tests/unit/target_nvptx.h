// target_nvptx: compiles lowered IR text for a GPU, for tests that look at PTX and at what ptxas says of it. No GPU is needed.
#ifndef DITRON_TARGET_NVPTX_TEST_H
#define DITRON_TARGET_NVPTX_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"
#include "ir/ir.h"
#include "target/target.h"

typedef struct Gpu {
  Arena arena;
  Escape escape;
  Diags diags;
  IrModule *module;
  Image *image;
  char *ptx;
} Gpu;

static bool gpu_has_ptxas(void) {
  static int known = -1;
  if (known < 0) {
    char out[256];
    int code = 1;
    const char *a[] = {"ptxas", "--version", NULL}, *b[] = {"/usr/local/cuda/bin/ptxas", "--version", NULL};
    known = (os_run(a, &code, out, sizeof out) == ST_OK && code == 0) ||
            (os_run(b, &code, out, sizeof out) == ST_OK && code == 0);
    if (!known) printf("no ptxas here: the PTX is looked at, but not assembled\n");
  }
  return known;
}

static Status gpu_try(Gpu *g, const char *cpu, const char *text) {
  memset(g, 0, sizeof *g);
  if (ESCAPE_TRY(&g->escape)) fail_msg("%s", g->escape.message);
  arena_init(&g->arena, 0, &g->escape);
  diags_init(&g->diags, &g->arena);
  IrCtx *ctx = ir_ctx_new(&g->arena);
  if (ir_parse(&g->arena, ctx, &g->diags, "test.ir", text, strlen(text), &g->module) != ST_OK ||
      ir_verify(g->module, &g->diags) != ST_OK)
    fail_msg("%s", diags_render(&g->diags, &g->arena));
  const TargetOptions o = {.target = "nvptx", .cpu = cpu, .opt = 1, .verify = true};
  const Status s = target_compile(g->module, &o, &g->arena, &g->diags, &g->image);
  return s != ST_OK ? s : target_text(g->module, &o, TARGET_TEXT_ASM, &g->arena, &g->diags, &g->ptx);
}
static void gpu_make(Gpu *g, const char *cpu, const char *text) {
  if (gpu_try(g, cpu, text) != ST_OK) fail_msg("%s: %s", cpu, diags_render(&g->diags, &g->arena));
  if (getenv("SHOW_PTX")) printf("%s\n", g->ptx);
  const ImageVariant *v = g->image->kernels[0].variants;
  assert_int_equal(g->image->is_text, !gpu_has_ptxas());
  if (!g->image->is_text)
    assert_memory_equal(g->image->code,
                        "\x7f"
                        "ELF",
                        4);
  assert_int_equal(v->spill_bytes, 0);
}
static void gpu_has(const Gpu *g, const char *what) {
  if (!strstr(g->ptx, what)) fail_msg("no '%s' in\n%s", what, g->ptx);
}
static void gpu_lacks(const Gpu *g, const char *what) {
  if (strstr(g->ptx, what)) fail_msg("'%s' in\n%s", what, g->ptx);
}
static void gpu_free(Gpu *g) { arena_free(&g->arena); }

#endif
