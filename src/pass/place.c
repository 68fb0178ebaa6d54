// place: tile stage to placed stage (docs/design.md, "The placed stage"). See place.h for the parts.
#include "pass/place.h"

#include <stdio.h>

void place_fail(Place *p, Loc loc, const char *fmt, ...) {
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  pass_error(p->pass, loc, "%s", text);
  escape_now(&p->fail, ST_COMPILE, "%s", text);
}

static void place_func(Place *p, IrFunc *f) {
  p->old = f;
  place_expand(p, f);
  ir_renumber(f);
  place_info_run(p);
  place_plan_run(p);
  place_check_run(p);
  place_emit_run(p);
}

Status pass_place(Pass *pass) {
  IrModule *m = pass->m;
  const PassMachine *machine = pass->config ? pass->config->machine : NULL;
  Place *p = arena_new(pass->scratch, Place);
  Vec(IrFunc *) old = {0};
  for (IrFunc *f = m->funcs; f; f = f->next) vec_push(pass->scratch, &old, f);
  *p = (Place){.pass = pass, .m = m, .ctx = m->ctx, .arena = pass->scratch};
  p->vector_bits = machine && machine->vector_bits ? machine->vector_bits : 256;
  p->arena_limit = machine ? machine->arena_limit : 0;
  if (ESCAPE_TRY(&p->fail)) return p->fail.status;
  for (uint32_t i = 0; i < old.len; i++) {
    if (!old.data[i]->is_kernel) continue;
    const Place fresh = {.pass = p->pass,
                         .m = p->m,
                         .ctx = p->ctx,
                         .arena = p->arena,
                         .vector_bits = p->vector_bits,
                         .arena_limit = p->arena_limit};
    const Escape keep = p->fail;
    *p = fresh;
    p->fail = keep;
    place_func(p, old.data[i]);
  }
  for (uint32_t i = 0; i < old.len; i++) ir_func_remove(m, old.data[i]);
  m->stage = STAGE_placed;
  return ST_OK;
}
