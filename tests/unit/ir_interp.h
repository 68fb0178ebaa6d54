// ir_interp: what the interpreter's tests share. A test writes a module as text, names its memory and runs it.
//
//     Run r;
//     run_open(&r, "module stage=tile warps=4 stages=2 lanes=32\nkernel @k(%p: ptr<i32>) { ... }", 1);
//     int32_t x[64]; run_memory(&r, x, sizeof x, "x", 0, -1);
//     run_launch(&r, 0, "k", 4, (InterpArg[]){{.p = x}});
//     run_ok(&r);
#ifndef DITRON_TEST_IR_INTERP_H
#define DITRON_TEST_IR_INTERP_H

#include "harness/test.h"
#include "ir/ir.h"

#include <stdio.h>
#include <string.h>

typedef struct Run {
  Arena arena;
  Escape escape;
  Diags diags;
  IrModule *module;
  InterpMemory memory[64];
  InterpCmd cmds[64];
  InterpConfig config;
  InterpResult result;
} Run;

static inline void run_open(Run *r, const char *text, int ranks) {
  memset(r, 0, sizeof *r);
  arena_init(&r->arena, 0, &r->escape);
  if (ESCAPE_TRY(&r->escape)) fail_msg("%s", r->escape.message);
  diags_init(&r->diags, &r->arena);
  if (ir_parse(&r->arena, ir_ctx_new(&r->arena), &r->diags, "k", text, strlen(text), &r->module) != ST_OK ||
      ir_verify(r->module, &r->diags) != ST_OK)
    fail_msg("%s", diags_render(&r->diags, &r->arena));
  r->config = (InterpConfig){
      .arena = &r->arena, .module = r->module, .ranks = ranks, .memory = r->memory, .cmds = r->cmds};
}

static inline InterpMemory *run_memory(Run *r, void *p, size_t bytes, const char *name, int rank,
                                       int segment) {
  InterpMemory *m = &r->memory[r->config.nmemory++];
  *m = (InterpMemory){
      .base = p, .bytes = bytes, .name = name, .rank = rank, .segment = segment, .initialised = true};
  return m;
}

static inline InterpCmd *run_launch(Run *r, int rank, const char *kernel, uint32_t grid,
                                    const InterpArg *args) {
  InterpCmd *c = &r->cmds[r->config.ncmds++];
  *c = (InterpCmd){.kind = INTERP_LAUNCH, .rank = rank, .grid = {grid, 1, 1}, .args = args};
  c->func = ir_func_find(r->module, str_cstr(ir_strings(r->module->ctx), kernel));
  if (!c->func) fail_msg("no kernel %s", kernel);
  return c;
}

static inline InterpCmd *run_copy(Run *r, int rank, int stream, void *dst, const void *src, size_t bytes) {
  InterpCmd *c = &r->cmds[r->config.ncmds++];
  *c = (InterpCmd){
      .kind = INTERP_COPY, .rank = rank, .stream = stream, .dst = dst, .src = src, .bytes = bytes};
  return c;
}

static inline const char *run_findings(Run *r) {
  char *s = arena_printf(&r->arena, "status %s", status_name(r->result.status));
  for (int k = 0; k < r->result.nfindings; k++) {
    const InterpFinding *f = &r->result.findings[k];
    s = arena_printf(&r->arena, "%s\n  %s, line %u and %u: %s", s, interp_fault_names[f->fault], f->here.line,
                     f->other.line, f->text);
  }
  return s;
}

static inline void run_ok(Run *r) {
  if (interp_run(&r->config, &r->result) != ST_OK) fail_msg("%s", run_findings(r));
}

// The run ends with this status, and the first finding's text holds all the words, separated by '|'.
static inline void run_fails(Run *r, Status s, InterpFault fault, const char *words) {
  interp_run(&r->config, &r->result);
  if (r->result.status != s || !r->result.nfindings || r->result.findings[0].fault != fault)
    fail_msg("expected %s and a %s fault: %s", status_name(s), interp_fault_names[fault], run_findings(r));
  char *copy = arena_strdup(&r->arena, words), *save = NULL;
  for (char *word = strtok_r(copy, "|", &save); word; word = strtok_r(NULL, "|", &save)) {
    if (!strstr(r->result.findings[0].text, word))
      fail_msg("no '%s' in: %s", word, r->result.findings[0].text);
  }
}

static inline void run_close(Run *r) { arena_free(&r->arena); }

#endif
