// pipeline: which passes run, in what order; passes by name; what happens around each pass (checks, dumps, remarks).
//
// The order of work, tile stage:
//
//   inline                one function a kernel
//   fold cse licm         what is known, equal or unchanging
//   waits                 polling loops into waits: addresses and expected values have just left the loops
//   dce strength          ranges, on what is left
//   fold cse dce          what they made known
//   contract              (machines) products that accumulate; the interpreter computes what is written
//   wait_class params     facts for launches, on the final program
//   place                 (CPU) into the placed stage
//   fold cse licm dce     what placement left
//   prefetch              the next row while this one is computed
//   outline dce           equal loop nests of a large kernel become one function
//   raise cse dce         (GPUs) pointers to tensor descriptors
//   split fold cse dce    (GPUs) loops in two, the first without its mask
//   behind cse dce        (GPUs) products that run beside the next turn's work
//   early                 (GPUs) products that run beside the one before
//   parts dce             (GPUs) sums that lanes keep apart until a loop ends
//   producer cse dce      (GPUs) a warp that fetches what products read
//   lay cse dce           (GPUs) into the laid-out stage
//   pipe cse dce          (GPUs) loads of products ahead of their iteration
//   fetch cse dce         (GPUs) other loads a turn ahead
//   low cse licm dce      (GPUs) into the lowered stage
//   pingpong              (GPUs) groups of warps take turns at the matrix unit
//   alloc sync            (GPUs) places of shared memory, then the barriers that it needs
#include "pass/pass_impl.h"

#include <string.h>

#define TILE "inline,fold,cse,licm,waits,dce,strength,fold,cse,dce"
#define FACTS "wait_class,params"
static const char *const orders[] = {
    [PASS_INTERP] = TILE "," FACTS,
    [PASS_CPU] = TILE ",contract,dce," FACTS ",place,fold,cse,licm,dce,prefetch,outline,dce",
    [PASS_LAID] =
        TILE ",contract,dce," FACTS
             ",raise,cse,dce,split,fold,cse,dce,behind,cse,dce,early,parts,dce,producer,cse,dce,lay,cse,dce",
    [PASS_GPU] = TILE
    ",contract,dce," FACTS
    ",raise,cse,dce,split,fold,cse,dce,behind,cse,dce,early,parts,dce,producer,cse,dce,lay,cse,dce,pipe,cse,dce,fetch,cse,dce,low,cse,licm,dce,pingpong,alloc,sync",
};

const PassInfo pass_infos[] = {
#define PASS(name, function, stages, needs, breaks, text) {#name, stages, needs, breaks, text, function},
#include "pass/passes.def"
#undef PASS
};
const int pass_count = (int)DT_COUNTOF(pass_infos);

const char *pass_order(PassTarget t) { return orders[t]; }

// ---- remarks and errors ---------------------------------------------------------------------------------------------------

static void report(const Pass *p, DiagLevel level, Loc loc, const char *fmt, va_list ap) {
  Diags *d = p->config->diags;
  diag(d, level, loc, "%s", arena_vprintf(d->arena, fmt, ap));
}

void pass_remark(const Pass *p, Loc loc, const char *fmt, ...) {
  if (!p->config->explain) return;
  va_list ap;
  va_start(ap, fmt);
  report(p, DIAG_REMARK, loc, fmt, ap);
  va_end(ap);
}

void pass_error(const Pass *p, Loc loc, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(p, DIAG_ERROR, loc, fmt, ap);
  va_end(ap);
}

// ---- one pass ---------------------------------------------------------------------------------------------------------------

typedef struct Run {
  IrModule *m;
  PassConfig config; // complete: nothing NULL but dump
  Arena own;         // diagnostics of modules that have none
  Diags own_diags;
  Arena scratch; // of the pass at work
  PassMachine machine;
} Run;

static bool has_calls(const IrBlock *b) {
  PASS_EACH_OP(b, op) {
    if (op->kind == OP_call) return true;
    for (uint32_t r = 0; r < op->nregions; r++) {
      if (has_calls(op->regions[r])) return true;
    }
  }
  return false;
}

static Status check_needs(const Pass *p, const PassInfo *info) {
  static const char *const stages[] = {"tile", "laid out", "lowered", "placed"};
  if (!strchr(info->stages, "tlwp"[p->m->stage])) {
    pass_error(p, LOC_NONE, "pass '%s' does not run in the %s stage", info->name, stages[p->m->stage]);
    return ST_INVALID;
  }
  if (!strstr(info->needs, "inlined")) return ST_OK;
  PASS_EACH_FUNC(p, f) {
    if (!has_calls(f->body)) continue;
    pass_error(p, f->loc, "pass '%s' needs a module without calls: run 'inline' before it", info->name);
    return ST_INVALID;
  }
  return ST_OK;
}

static bool wants_verify(const Run *r) {
#ifdef DT_DEBUG
  (void)r;
  return true;
#else
  return r->config.verify;
#endif
}

static Status verify(Run *r, const char *when) {
  if (!wants_verify(r)) return ST_OK;
  const Status s = ir_verify(r->m, r->config.diags);
  if (s != ST_OK) diag(r->config.diags, DIAG_NOTE, LOC_NONE, "found by the check %s", when);
  return s;
}

static Status run_one(Run *r, const PassInfo *info) {
  Pass p = {.m = r->m, .scratch = &r->scratch, .config = &r->config, .name = info->name};
  Status s = check_needs(&p, info);
  if (s == ST_OK) s = info->run(&p);
  if (s == ST_OK && wants_verify(r))
    s = verify(r, arena_printf(r->config.diags->arena, "after pass '%s'", info->name));
  if (s == ST_OK && r->config.dump) r->config.dump(r->config.user, info->name, r->m);
  arena_free(&r->scratch);
  return s;
}

// ---- many passes --------------------------------------------------------------------------------------------------------------

static const PassInfo *find(const char *name, size_t len) {
  for (int i = 0; i < pass_count; i++) {
    if (strlen(pass_infos[i].name) == len && memcmp(pass_infos[i].name, name, len) == 0)
      return &pass_infos[i];
  }
  return NULL;
}

static Status unknown_pass(Run *r, const char *name, size_t len) {
  Diags *d = r->config.diags;
  char *known = arena_strdup(d->arena, "");
  for (int i = 0; i < pass_count; i++)
    known = arena_printf(d->arena, "%s%s%s", known, i ? ", " : "", pass_infos[i].name);
  diag(d, DIAG_ERROR, LOC_NONE, "there is no pass '%.*s'", (int)(len > 60 ? 60 : len), name);
  diag_hint(d, "passes: %s", known);
  return ST_INVALID;
}

static Status run_all(Run *r, const char *names) {
  Status s = verify(r, "before the first pass");
  for (const char *at = names; s == ST_OK && *at;) {
    at += strspn(at, ", ");
    const size_t len = strcspn(at, ", ");
    if (!len) break;
    const PassInfo *info = find(at, len);
    s = info ? run_one(r, info) : unknown_pass(r, at, len);
    at += len;
  }
  return s;
}

Status pass_run_named(IrModule *m, const char *names, const PassConfig *c) {
  Run r = {.m = m, .machine = {.vector_bits = 256}};
  Escape *outer = m->arena->escape, esc;
  arena_init(&r.own, 0, &esc);
  arena_init(&r.scratch, 0, &esc);
  if (c) r.config = *c;
  if (!r.config.machine) r.config.machine = &r.machine;
  if (!r.config.diags) r.config.diags = m->diags;
  m->arena->escape = &esc; // so that a pass that runs out of memory leaves no scratch behind
  if (ESCAPE_TRY(&esc)) {
    m->arena->escape = outer;
    arena_free(&r.scratch);
    arena_free(&r.own);
    escape_now(outer, esc.status, "%s", esc.message);
  }
  if (!r.config.diags) {
    diags_init(&r.own_diags, &r.own);
    r.config.diags = &r.own_diags;
  }
  const Status s = run_all(&r, names);
  m->arena->escape = outer;
  arena_free(&r.scratch);
  arena_free(&r.own);
  return s;
}

Status pass_run(IrModule *m, PassTarget t, const PassConfig *c) { return pass_run_named(m, orders[t], c); }
