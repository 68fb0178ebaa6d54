// interp_report: faults, the names of things in them, and what a program prints.
#include "ir/interp_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const interp_fault_names[] = {"none",       "race",     "scope",      "uninitialised", "bounds",
                                          "slot reuse", "deadlock", "assert",     "proxy",         "barrier",
                                          "read-only",  "limit",    "unsupported"};

static bool is_fatal(const World *w, InterpFault f) {
  switch (f) {
  case FAULT_LIMIT:
  case FAULT_UNSUPPORTED:
  case FAULT_DEADLOCK: return true;
  default: return !w->c->check;
  }
}

void interp_fault(World *w, InterpFault f, Loc here, Loc other, const char *fmt, ...) {
  const uint64_t key[] = {f, here.file, here.line, here.line ? 0 : here.col, other.file, other.line};
  const uint64_t hash = hash_bytes(key, sizeof key, 7) & ~(1ull << 63);
  if (is_fatal(w, f)) w->stop = true;
  if (map_get(&w->seen_findings, hash, NULL)) return;
  map_set(&w->seen_findings, hash, 1);
  va_list ap;
  va_start(ap, fmt);
  const InterpFinding x = {f, here, other, arena_vprintf(&w->arena, fmt, ap)};
  va_end(ap);
  vec_push(&w->arena, &w->findings, x);
  if ((int)w->findings.len >= w->max_findings) w->stop = true;
}

// ---- names -------------------------------------------------------------------------------------------------------------
const char *interp_line(World *w, Loc loc) {
  const Diags *d = w->c->module ? w->c->module->diags : NULL;
  if (!loc.line) return "an unknown line";
  if (d && loc.file < d->sources.len)
    return arena_printf(&w->arena, "%s:%u", d->sources.data[loc.file].name, loc.line);
  return arena_printf(&w->arena, "line %u", loc.line);
}

const char *interp_who(World *w, const Agent *a) {
  if (a->kind == AGENT_STREAM) return arena_printf(&w->arena, "rank %d, stream %d", a->rank, a->stream->id);
  const uint32_t *p = a->inst->pid;
  const char *what = a->kind == AGENT_JOB ? "a copy of " : "";
  if (a->kind == AGENT_WARP)
    return arena_printf(&w->arena, "rank %d, instance (%u, %u, %u), warp %d", a->rank, p[0], p[1], p[2],
                        a->warp);
  return arena_printf(&w->arena, "%srank %d, instance (%u, %u, %u)", what, a->rank, p[0], p[1], p[2]);
}

// The range that an address outside of all most likely meant: the nearest within its own size.
static const Range *nearest(World *w, uint64_t addr) {
  const Range *best = NULL;
  uint64_t least = UINT64_MAX;
  for (int k = 0; k < w->nranges; k++) {
    const Range *r = &w->ranges[k];
    const uint64_t far = addr < r->base ? r->base - addr : addr - r->end;
    if (far >= least || far > r->end - r->base + 4096) continue;
    least = far;
    best = r;
  }
  return best;
}

const char *interp_where(World *w, uint64_t addr, int esize) {
  const Range *r = interp_find(w, addr);
  const bool inside = r != NULL;
  if (!r) r = nearest(w, addr);
  if (!r) return arena_printf(&w->arena, "address 0x%llx, which is nobody's", (unsigned long long)addr);
  const int64_t off = (int64_t)(addr - r->base);
  if (esize < 1) esize = 1;
  const int64_t index = off >= 0 ? off / esize : -((-off + esize - 1) / esize);
  const char *of = r->mem->rank >= 0 ? arena_printf(&w->arena, " of rank %d", r->mem->rank) : "";
  const char *size = inside ? ""
                            : arena_printf(&w->arena, ", which has %llu elements",
                                           (unsigned long long)((r->end - r->base) / (uint64_t)esize));
  return arena_printf(&w->arena, "%s[%lld]%s%s", r->mem->name ? r->mem->name : "memory", (long long)index, of,
                      size);
}

// ---- deadlock ------------------------------------------------------------------------------------------------------------
typedef struct Text {
  Arena *a;
  char *s;
} Text;
static void say(Text *t, const char *fmt, ...) DT_PRINTF(2, 3);
static void say(Text *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *more = arena_vprintf(t->a, fmt, ap);
  va_end(ap);
  t->s = t->s ? arena_printf(t->a, "%s%s", t->s, more) : arena_strdup(t->a, more);
}

static const char *writer(World *w, uint64_t addr) {
  const LastWrite *l = map_getp(&w->last_writes, addr);
  if (!l) return "never written";
  if (l->copy) return arena_printf(&w->arena, "last written by a copy of rank %d", l->rank);
  return arena_printf(&w->arena, "last written by rank %d, instance (%u, %u, %u) at %s", l->rank, l->pid[0],
                      l->pid[1], l->pid[2], interp_line(w, l->loc));
}

static int64_t word(uint64_t addr, int size) { return interp_int((const void *)(uintptr_t)addr, size); }

static void say_wait(World *w, Text *t, const Agent *a) {
  static const char *const cmps[] = {"==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">="};
  const char *label = a->wait_ins ? ir_attr_s(a->wait_ins->op, ATTR_label) : NULL;
  say(t, "%s waits at %s", interp_who(w, a), interp_line(w, a->wait_ins ? a->wait_ins->op->loc : LOC_NONE));
  if (label) say(t, " (%s)", label);
  switch (a->wait) {
  case WAIT_WORD:
    say(t, " for %s %s %lld, sees %lld, %s", interp_where(w, a->addr, a->size),
        a->cmp < CMP_COUNT ? cmps[a->cmp] : "?", (long long)interp_int(&a->value, a->size),
        (long long)word(a->addr, a->size), writer(w, a->addr));
    break;
  case WAIT_POLL:
    if (!a->npolled) {
      say(t, " in a polling loop");
      break;
    }
    say(t, " in a polling loop on %s, sees %lld, %s", interp_where(w, a->polled[0].addr, a->polled[0].size),
        (long long)word(a->polled[0].addr, a->polled[0].size), writer(w, a->polled[0].addr));
    break;
  case WAIT_TEAM:
    say(t, " for the team barrier, where %u of %d ranks are", w->teams[a->addr].gens.data[a->value].arrived,
        w->c->ranks);
    break;
  case WAIT_MBAR: {
    const MBar *b = &a->inst->mbars[a->addr];
    say(t, " for phase %llu of mbarrier %llu, which still expects %lld arrivals and %lld bytes",
        (unsigned long long)a->value, (unsigned long long)a->addr, (long long)b->arrivals,
        (long long)b->bytes);
    break;
  }
  default: break;
  }
}

void interp_deadlock(World *w) {
  enum { MOST = 64 };
  Text t = {&w->arena, NULL};
  Loc here = LOC_NONE;
  uint32_t count = 0, shown = 0;
  for (uint32_t k = 0; k < w->waiting.len; k++) count += w->waiting.data[k]->kind != AGENT_STREAM;
  say(&t, "nothing can go on: ");
  for (uint32_t k = 0; k < w->waiting.len; k++) {
    const Agent *a = w->waiting.data[k];
    if (a->kind == AGENT_STREAM) continue;
    if (shown == MOST) break;
    if (shown) say(&t, "; ");
    say_wait(w, &t, a);
    if (!here.line && a->wait_ins) here = a->wait_ins->op->loc;
    const Group *g = a->group;
    bool first = true;
    for (uint32_t q = 0; q < k; q++) first &= w->waiting.data[q]->group != g;
    if (first && g && g->arrived && g->bar)
      say(&t, "; %u other warps of it wait at the barrier of %s", g->arrived,
          interp_line(w, g->bar->op->loc));
    shown++;
  }
  if (count > shown) say(&t, "; and %u more", count - shown);
  for (const Launch *l = w->launches; l; l = l->next) {
    if (l->started == l->total) continue;
    say(&t, "; %u instances of %s on rank %d cannot start, because %d are the most that may be there at once",
        l->total - l->started, l->code->func->name->s, l->stream->rank, w->c->resident);
  }
  interp_fault(w, FAULT_DEADLOCK, here, LOC_NONE, "%s", t.s);
}

// ---- print, assert ------------------------------------------------------------------------------------------------------------
static void format(char *buf, size_t cap, const IrType *t, const char *p, bool hex, bool uns) {
  if (ir_type_is_ptr(t)) {
    snprintf(buf, cap, "0x%llx", (unsigned long long)*(const uint64_t *)p);
    return;
  }
  const int es = ir_dtypes[t->dtype].bytes;
  uint64_t bits = 0;
  memcpy(&bits, p, (size_t)es);
  if (ir_type_is_float(t))
    snprintf(buf, cap, "%f", ir_bits_float(t->dtype, bits));
  else if (hex)
    snprintf(buf, cap, "0x%0*llx", es * 2, (unsigned long long)bits);
  else if (uns || t->dtype == IR_i1)
    snprintf(buf, cap, "%llu", (unsigned long long)bits);
  else
    snprintf(buf, cap, "%lld", (long long)interp_int(p, es));
}

static void print_line(World *w, Agent *a, const Ins *i, const char *where, uint32_t q, uint32_t of,
                       const char *value) {
  const char *prefix = ir_attr_s(i->op, ATTR_prefix);
  char line[512];
  int n = snprintf(line, sizeof line, "pid (%u, %u, %u)%s ", a->inst->pid[0], a->inst->pid[1],
                   a->inst->pid[2], where);
  if (prefix) n += snprintf(line + n, sizeof line - (size_t)n, "%.200s", prefix);
  if (of > 1 && n < (int)sizeof line) n += snprintf(line + n, sizeof line - (size_t)n, "(operand %u) ", q);
  if (n < (int)sizeof line) snprintf(line + n, sizeof line - (size_t)n, "%s", value);
  w->c->print(w->c->user, a->rank, line);
}

// Where element k of a tile of type t lies, or what the operands in front of a placed print say.
static void say_index(char *where, size_t cap, const IrType *t, int64_t k) {
  int64_t at[IR_MAX_RANK];
  for (int d = t->rank - 1; d >= 0; d--) at[d] = k % t->shape[d], k /= t->shape[d];
  size_t len = (size_t)snprintf(where, cap, " idx (");
  for (int d = 0; d < t->rank && len < cap; d++)
    len += (size_t)snprintf(where + len, cap - len, d ? ", %lld" : "%lld", (long long)at[d]);
  if (len < cap) snprintf(where + len, cap - len, ")");
}
static void say_marks(char *where, size_t cap, Agent *a, const Operands *o, int64_t marks) {
  *where = 0;
  if (marks < 0) snprintf(where, cap, " thread %lld", (long long)interp_ref_int(a, o->at[0], 0));
  if (marks <= 0) return;
  size_t len = (size_t)snprintf(where, cap, " idx (");
  for (uint32_t d = 0; d < (uint32_t)marks && len < cap; d++)
    len += (size_t)snprintf(where + len, cap - len, d ? ", %lld" : "%lld",
                            (long long)interp_ref_int(a, o->at[d], 0));
  if (len < cap) snprintf(where + len, cap - len, ")");
}

// Element by element (or thread by thread), and of each all operands: the order in which compiled code prints.
Step x_print(World *w, Agent *a, const Ins *i) {
  const Operands *o = i->extra;
  if (!w->c->print) return GO;
  const bool hex = ir_attr_i(i->op, ATTR_hex);
  const IrAttr *uns = ir_attr(i->op, ATTR_uns);
  const int64_t marks = ir_attr_i(i->op, ATTR_where);
  const uint32_t first = marks < 0 ? 1 : (uint32_t)marks;
  if (o->n <= first) print_line(w, a, i, "", 0, 0, "");
  const IrType *tile = NULL; // the largest
  for (uint32_t q = first; q < o->n; q++) {
    const IrType *t = ir_operand(i->op, q)->type;
    if (t->kind == IR_TILE && (!tile || ir_type_elems(t) > ir_type_elems(tile))) tile = t;
  }
  const int64_t n = tile ? ir_type_elems(tile) : i->n ? 1 : (int64_t)interp_count(a, i);
  for (int64_t k = 0; k < n; k++) {
    if (!tile && !i->n && !interp_active(a, (uint32_t)k)) continue;
    for (uint32_t q = first; q < o->n; q++) {
      const IrType *t = ir_operand(i->op, q)->type;
      const Ref r = o->at[q];
      char value[64], where[128];
      if (t->kind != IR_TILE && t->kind != IR_SCALAR && t->kind != IR_PTR) continue;
      if (t->kind == IR_TILE && k >= ir_type_elems(t)) continue;
      if (tile)
        say_index(where, sizeof where, t->kind == IR_TILE ? t : tile, k);
      else if (i->n)
        say_marks(where, sizeof where, a, o, marks);
      else
        snprintf(where, sizeof where, " thread %u", a->lane0 + (uint32_t)k);
      const int64_t at = t->kind == IR_TILE || !tile ? k : 0;
      format(value, sizeof value, t, interp_at(a, r) + (size_t)at * r.stride * r.esize, hex,
             uns && q < uns->ints.n && uns->ints.v[q]);
      print_line(w, a, i, where, q - first, o->n - first, value);
    }
  }
  return GO;
}

static Step require(World *w, Agent *a, const Ins *i, const char *what) {
  const IrType *t = ir_operand(i->op, 0)->type;
  const uint32_t n = i->a.stride && t->kind == IR_TILE ? (uint32_t)ir_type_elems(t) : interp_count(a, i);
  const uint8_t *c = (const uint8_t *)interp_at(a, i->a);
  for (uint32_t k = 0; k < n; k++) {
    if (!i->n && !interp_active(a, k)) continue;
    bool any = false;
    for (int b = 0; b < i->a.esize; b++) any |= c[(size_t)k * i->a.stride * i->a.esize + (size_t)b] != 0;
    if (any) continue;
    const char *msg = ir_attr_s(i->op, ATTR_msg);
    interp_fault(w, FAULT_ASSERT, i->op->loc, LOC_NONE, "%s: %s at %s%s%s", interp_who(w, a), what,
                 interp_line(w, i->op->loc), msg ? ": " : "", msg ? msg : "");
    w->stop = true;
    return SWITCH;
  }
  return GO;
}
Step x_assert(World *w, Agent *a, const Ins *i) { return require(w, a, i, "an assertion failed"); }
Step x_assume(World *w, Agent *a, const Ins *i) { return require(w, a, i, "an assumption does not hold"); }
