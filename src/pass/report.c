// report: what the analyses know, as remarks; for people (--explain) and for tests.
//
// needs:  no calls.
// keeps:  the program as it is.
// breaks: nothing.
#include "pass/pass_impl.h"

typedef struct Report {
  Pass *p;
  const PassAxes *axes;
  const PassUniform *uniform;
} Report;

static const char *name_of(const Report *r, const IrValue *v) {
  return v->name ? v->name->s : arena_printf(r->p->scratch, "%u", v->id);
}

static const char *list(const Report *r, const int32_t *v, int n) {
  const char *s = "";
  for (int i = 0; i < n; i++) s = arena_printf(r->p->scratch, "%s%s%d", s, i ? "x" : "", v[i]);
  return s;
}

static void axis_value(const Report *r, const IrValue *v, Loc loc) {
  const PassAxis *a = pass_axis(r->axes, v);
  const bool integer = ir_type_is_int(v->type);
  if (v->type->kind > IR_TILE || (!integer && !ir_type_is_ptr(v->type))) return;
  const int n = a->rank ? a->rank : 1;
  const char *range =
      integer ? arena_printf(r->p->scratch, ", range %lld..%lld", (long long)a->lo, (long long)a->hi) : "";
  pass_remark(r->p, loc, "%%%s: contiguous %s, divisible %s, constant %s, all divisible %d%s", name_of(r, v),
              list(r, a->contig, n), list(r, a->div, n), list(r, a->constancy, n), a->all_div, range);
}

static void uniform_value(const Report *r, const IrValue *v, Loc loc) {
  static const char *const names[] = {"uniform", "warp-uniform", "divergent"};
  if (ir_type_is_thread(v->type))
    pass_remark(r->p, loc, "%%%s: %s", name_of(r, v), names[pass_uniform(r->uniform, v)]);
}

static void value(const Report *r, const IrValue *v, Loc loc) {
  if (r->axes) axis_value(r, v, loc);
  if (r->uniform) uniform_value(r, v, loc);
}

static bool visit(IrOp *op, void *user) {
  const Report *r = user;
  for (uint32_t i = 0; i < op->nresults; i++) value(r, ir_result(op, i), op->loc);
  for (uint32_t i = 0; i < op->nregions; i++) {
    for (uint32_t j = 0; j < op->regions[i]->args.len; j++) value(r, op->regions[i]->args.data[j], op->loc);
  }
  return true;
}

static void func(Report *r, IrFunc *f) {
  for (uint32_t i = 0; i < f->body->args.len; i++) value(r, f->body->args.data[i], f->loc);
  ir_walk(f->body, visit, r);
}

Status pass_axis_report(Pass *p) {
  PASS_EACH_FUNC(p, f) {
    Report r = {.p = p, .axes = pass_axis_run(f, p->scratch)};
    func(&r, f);
  }
  return ST_OK;
}

Status pass_uniform_report(Pass *p) {
  PASS_EACH_FUNC(p, f) {
    Report r = {.p = p, .uniform = pass_uniform_run(f, p->scratch)};
    func(&r, f);
  }
  return ST_OK;
}
