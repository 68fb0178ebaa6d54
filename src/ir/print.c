// print: IR as text. What is printed here, read.c reads back; printing that again gives the same text.
//
//   module   = "module stage=" STAGE " warps=" N " stages=" N " lanes=" N { function }
//   function = ("kernel" | "func") "@" NAME "(" params ")" [ "->" types ] [ "wait=" CLASS ] "{" ops "}"
//   op       = [ values "=" ] NAME operands [ "{" attrs "}" ] [ ":" types ] [ loc ] { "{" [ "(" args ")" ] ops "}" }
//
// A value prints under its name, made unique within the function by a suffix; one without a name gets a number. Only
// letters, digits, `_`, `.` and bytes above 127 stand in names, other bytes become `_`.
#include "ir/ir_impl.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ir_putn(IrText *t, const char *s, size_t n) {
  vec_reserve(t->arena, &t->buf, (size_t)t->buf.len + n + 1);
  if (n) memcpy(t->buf.data + t->buf.len, s, n);
  t->buf.len += (uint32_t)n;
  t->buf.data[t->buf.len] = 0;
}

void ir_put(IrText *t, const char *s) { ir_putn(t, s, strlen(s)); }

// For short pieces: numbers and keywords.
void ir_putf(IrText *t, const char *fmt, ...) {
  char piece[128];
  va_list ap;
  va_start(ap, fmt);
  const int n = vsnprintf(piece, sizeof piece, fmt, ap);
  va_end(ap);
  if (n > 0) ir_putn(t, piece, n < (int)sizeof piece ? (size_t)n : sizeof piece - 1);
}

// ---- types --------------------------------------------------------------------------------------------------------

static void put_shape(IrText *t, const IrType *ty) {
  for (int i = 0; i < ty->rank; i++) ir_putf(t, "%dx", ty->shape[i]);
}

static void put_ptr(IrText *t, const IrType *ty) {
  ir_putf(t, "ptr<%s", ir_dtypes[ty->dtype].name);
  if (ty->space != SPACE_global) ir_putf(t, ", %s", ir_space_names[ty->space]);
  ir_put(t, ">");
}

const char *const ir_place_names[PLACE_DIMS] = {"reg", "lane", "warp"};

static void put_layout(IrText *t, const IrLayout *l) {
  for (int d = 0; d < PLACE_DIMS; d++) {
    const uint32_t first = layout_first(l, (IrPlace)d);
    ir_putf(t, "%s%s(", d ? " " : ", ", ir_place_names[d]);
    for (uint32_t i = 0; i < l->n[d]; i++) ir_putf(t, i ? " %u" : "%u", l->at[first + i]);
    ir_put(t, ")");
  }
}

void ir_put_type(IrText *t, const IrType *ty) {
  if (!ty) {
    ir_put(t, "?");
    return;
  }
  const char *dtype = ir_dtypes[ty->dtype].name;
  if (ir_type_is_thread(ty)) ir_put(t, "thread ");
  switch (ty->kind) {
  case IR_SCALAR: ir_put(t, dtype); break;
  case IR_PTR: put_ptr(t, ty); break;
  case IR_TILE:
    ir_put(t, "tile<");
    put_shape(t, ty);
    if (ty->ptr_elem)
      put_ptr(t, ty);
    else
      ir_put(t, dtype);
    if (ty->layout) put_layout(t, ty->layout);
    ir_put(t, ">");
    break;
  case IR_MEMDESC:
    ir_put(t, "memdesc<");
    if (ty->stages) ir_putf(t, "%d*", ty->stages);
    put_shape(t, ty);
    ir_putf(t, "%s, %s", dtype, ir_space_names[ty->space]);
    if (ty->layout) put_layout(t, ty->layout);
    ir_put(t, ">");
    break;
  case IR_MBARRIER:
    ir_put(t, "mbarrier");
    if (ty->stages) ir_putf(t, "<%d>", ty->stages);
    break;
  case IR_DESC:
    ir_put(t, "desc<");
    put_shape(t, ty);
    ir_putf(t, "%s>", dtype);
    break;
  case IR_TOKEN: ir_put(t, "token"); break;
  }
}

char *ir_type_text(const IrType *ty, Arena *a) {
  IrText t = {.arena = a};
  ir_put_type(&t, ty);
  return t.buf.data;
}

// ---- constants ----------------------------------------------------------------------------------------------------

bool ir_read_float(const char *s, size_t len, double *out) {
  char buf[64], *end;
  if (len == 0 || len >= sizeof buf) return false;
  memcpy(buf, s, len);
  buf[len] = 0;
  const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (c == (locale_t)0) return false;
  *out = strtod_l(buf, &end, c);
  freelocale(c);
  return end == buf + len;
}

// Digits as few as read back to the same bits, but at least six where there are so many.
static void put_finite(IrText *t, IrDtype d, uint64_t bits) {
  const double x = ir_bits_float(d, bits);
  for (int digits = 6; digits <= 17; digits++) {
    char raw[64], text[64];
    const int n = snprintf(raw, sizeof raw, "%.*g", digits, x);
    int len = 0;
    bool plain = true; // an integer so far
    for (int i = 0; i < n && i < (int)sizeof raw - 1; i++) {
      const char c = raw[i];
      const bool known = (c >= '0' && c <= '9') || c == '-' || c == '+' || c == 'e';
      if (!known && len && text[len - 1] == '.') continue; // a locale's decimal point of many bytes
      text[len++] = known ? c : '.';
      plain &= known && c != 'e';
    }
    if (plain) text[len++] = '.', text[len++] = '0';
    double back;
    if (ir_read_float(text, (size_t)len, &back) && ir_float_bits(d, back) == bits) {
      ir_putn(t, text, (size_t)len);
      return;
    }
  }
  ir_putf(t, "0x%llx", (unsigned long long)bits);
}

void ir_put_bits(IrText *t, const IrType *ty, uint64_t bits) {
  const IrDtype d = ty->dtype;
  if (ir_type_is_float(ty)) {
    const double x = ir_bits_float(d, bits);
    if (isfinite(x))
      put_finite(t, d, bits);
    else if (bits != ir_float_bits(d, isinf(x) ? x : (double)NAN)) // a narrow type's odd NaN or infinity
      ir_putf(t, "0x%llx", (unsigned long long)bits);
    else
      ir_put(t, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
  } else if (ir_type_is_int(ty) && ir_dtypes[d].bits > 1 && !(bits & ~ir_dtype_mask(d))) {
    const int shift = 64 - ir_dtypes[d].bits;
    ir_putf(t, "%lld", (long long)((int64_t)(bits << shift) >> shift));
  } else if (bits < 10) {
    ir_putf(t, "%d", (int)bits);
  } else {
    ir_putf(t, "0x%llx", (unsigned long long)bits);
  }
}

// ---- names --------------------------------------------------------------------------------------------------------

typedef struct Printer {
  IrText t;
  const IrModule *m;
  bool locs;
  Strings *taken;
  Map next;          // name -> next suffix to try
  const Str **names; // by id of the value; NULL: not seen yet
  uint32_t nnames, unnamed;
} Printer;

static bool is_name_char(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c >= 128;
}

static bool is_plain_name(const Str *s) {
  for (uint32_t i = 0; i < s->len; i++) {
    if (!is_name_char((unsigned char)s->s[i])) return false;
  }
  return s->len > 0;
}

// The name as it may stand in text; a name of digits alone would read as a number.
static const Str *printable_name(Strings *table, Arena *a, const Str *s) {
  bool digits = true;
  for (uint32_t i = 0; i < s->len; i++) digits &= s->s[i] >= '0' && s->s[i] <= '9';
  if (is_plain_name(s) && !digits) return str_intern(table, s->s, s->len);
  char few[64], *q = s->len + 2 <= sizeof few ? few : arena_alloc(a, s->len + 2, 1);
  uint32_t n = 0;
  if (digits) q[n++] = '_';
  for (uint32_t i = 0; i < s->len; i++) q[n++] = is_name_char((unsigned char)s->s[i]) ? s->s[i] : '_';
  return str_intern(table, q, n);
}

static const Str *unique_name(Printer *p, const Str *base) {
  uint64_t suffix;
  if (!map_get(&p->next, (uint64_t)(uintptr_t)base, &suffix)) {
    map_set(&p->next, (uint64_t)(uintptr_t)base, 1);
    return base;
  }
  for (;; suffix++) {
    const Str *s = str_printf(p->taken, "%s_%llu", base->s, (unsigned long long)suffix);
    if (map_get(&p->next, (uint64_t)(uintptr_t)s, NULL)) continue;
    map_set(&p->next, (uint64_t)(uintptr_t)s, 1);
    map_set(&p->next, (uint64_t)(uintptr_t)base, suffix + 1);
    return s;
  }
}

static void name_value(Printer *p, const IrValue *v) {
  if (v->id >= p->nnames || p->names[v->id]) return;
  p->names[v->id] = v->name && v->name->len ? unique_name(p, printable_name(p->taken, p->t.arena, v->name))
                                            : str_printf(p->taken, "%u", p->unnamed++);
}

static void name_block(Printer *p, const IrBlock *b) {
  for (uint32_t i = 0; i < b->args.len; i++) name_value(p, b->args.data[i]);
  for (const IrOp *op = b->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->nresults; i++) name_value(p, &op->results[i]);
    for (uint32_t i = 0; i < op->nregions; i++) name_block(p, op->regions[i]);
  }
}

// ---- ops ----------------------------------------------------------------------------------------------------------

static void put_value(Printer *p, const IrValue *v) {
  IrText *t = &p->t;
  ir_put(t, "%");
  if (!p->names && v->name && is_plain_name(v->name))
    ir_putn(t, v->name->s, v->name->len);
  else if (!p->names)
    ir_putf(t, "%u", v->id);
  else if (v->id < p->nnames && p->names[v->id])
    ir_putn(t, p->names[v->id]->s, p->names[v->id]->len);
  else
    ir_putf(t, "?%u", v->id); // of no block of this function: the verifier says so
}

static void put_string(IrText *t, const char *s, size_t len) {
  ir_put(t, "\"");
  for (size_t i = 0; i < len; i++) {
    const unsigned char c = (unsigned char)s[i];
    if (c == '"' || c == '\\')
      ir_putf(t, "\\%c", c);
    else if (c == '\n')
      ir_put(t, "\\n");
    else if (c == '\t')
      ir_put(t, "\\t");
    else if (c < 32 || c == 127)
      ir_putf(t, "\\x%02x", c);
    else
      ir_putn(t, (const char *)&s[i], 1);
  }
  ir_put(t, "\"");
}

static void put_symbol(IrText *t, const Str *s) {
  ir_put(t, "@");
  if (s && is_plain_name(s))
    ir_putn(t, s->s, s->len);
  else
    put_string(t, s ? s->s : "", s ? s->len : 0);
}

static void put_attr(IrText *t, const IrOp *op, const IrAttr *a) {
  if ((unsigned)a->name >= ATTR_COUNT) { // the verifier says so
    ir_put(t, "?");
    return;
  }
  const IrAttrInfo *info = &ir_attrs[a->name];
  ir_putf(t, "%s=", info->name);
  switch (info->kind) {
  case AK_INT: ir_putf(t, "%lld", (long long)a->i); break;
  case AK_BOOL: ir_put(t, a->i ? "true" : "false"); break;
  case AK_ENUM: {
    const char *s = ir_enum_text(a->name, a->i);
    if (s)
      ir_put(t, s);
    else
      ir_putf(t, "%lld", (long long)a->i);
    break;
  }
  case AK_DTYPE: ir_put(t, a->i >= 0 && a->i < IR_NDTYPES ? ir_dtypes[a->i].name : "?"); break;
  case AK_BITS:
    if (op->nresults)
      ir_put_bits(t, op->results[0].type, (uint64_t)a->i);
    else
      ir_putf(t, "0x%llx", (unsigned long long)a->i);
    break;
  case AK_STR: put_string(t, a->s ? a->s->s : "", a->s ? a->s->len : 0); break;
  case AK_SYM: put_symbol(t, a->s); break;
  case AK_INTS:
    ir_put(t, "[");
    for (uint32_t i = 0; i < a->ints.n; i++) ir_putf(t, i ? ", %lld" : "%lld", (long long)a->ints.v[i]);
    ir_put(t, "]");
    break;
  }
}

static void put_loc(Printer *p, Loc loc) {
  if (!p->locs || !loc.line) return;
  IrText *t = &p->t;
  ir_put(t, " loc(");
  if (p->m->diags && loc.file < p->m->diags->sources.len) {
    const char *name = p->m->diags->sources.data[loc.file].name;
    put_string(t, name, strlen(name));
  } else {
    ir_put(t, "\"\"");
  }
  ir_putf(t, ":%u:%u", loc.line, loc.col);
  if (loc.end_col) ir_putf(t, ":%u", loc.end_col);
  ir_put(t, ")");
}

static void put_op_head(Printer *p, const IrOp *op) {
  IrText *t = &p->t;
  for (uint32_t i = 0; i < op->nresults; i++) {
    if (i) ir_put(t, ", ");
    put_value(p, &op->results[i]);
  }
  ir_put(t, op->nresults ? " = " : "");
  ir_put(t, ir_ops[op->kind].name);
  for (uint32_t i = 0; i < op->noperands; i++) {
    ir_put(t, i ? ", " : " ");
    if (op->operands[i].value)
      put_value(p, op->operands[i].value);
    else
      ir_put(t, "_");
  }
  for (uint32_t i = 0; i < op->nattrs; i++) {
    ir_put(t, i ? ", " : " {");
    put_attr(t, op, &op->attrs[i]);
  }
  ir_put(t, op->nattrs ? "}" : "");
  for (uint32_t i = 0; i < op->nresults; i++) {
    ir_put(t, i ? ", " : " : ");
    ir_put_type(t, op->results[i].type);
  }
  put_loc(p, op->loc);
}

static void put_indent(IrText *t, int depth) {
  for (int i = 0; i < depth; i++) ir_put(t, "  ");
}

static void put_ops(Printer *p, const IrBlock *b, int depth) {
  IrText *t = &p->t;
  for (const IrOp *op = b->first; op; op = op->next) {
    put_indent(t, depth);
    put_op_head(p, op);
    for (uint32_t i = 0; i < op->nregions; i++) {
      const IrBlock *r = op->regions[i];
      ir_put(t, " {");
      for (uint32_t j = 0; j < r->args.len; j++) {
        ir_put(t, j ? ", " : " (");
        put_value(p, r->args.data[j]);
        ir_put(t, ": ");
        ir_put_type(t, r->args.data[j]->type);
      }
      ir_put(t, r->args.len ? ")\n" : "\n");
      put_ops(p, r, depth + 1);
      put_indent(t, depth);
      ir_put(t, "}");
    }
    ir_put(t, "\n");
  }
}

// ---- functions and modules ----------------------------------------------------------------------------------------

static void put_param_facts(IrText *t, const IrParam *x) {
  const char *sep = " {";
  if (x->divisible != 1) ir_putf(t, "%sdivisible=%lld", sep, (long long)x->divisible), sep = ", ";
  if (x->noalias) ir_putf(t, "%snoalias=true", sep), sep = ", ";
  if (x->writes) ir_putf(t, "%swrites=true", sep), sep = ", ";
  if (x->reads) ir_putf(t, "%sreads=true", sep), sep = ", ";
  if (x->is_unsigned) ir_putf(t, "%sunsigned=true", sep), sep = ", ";
  if (*sep == ',') ir_put(t, "}");
}

static void put_func(Printer *p, const IrFunc *f) {
  IrText *t = &p->t;
  p->nnames = f->next_id;
  p->names = arena_array(t->arena, const Str *, f->next_id + 1);
  p->unnamed = 0;
  map_init(&p->next, t->arena);
  name_block(p, f->body);
  ir_put(t, f->is_kernel ? "kernel " : "func ");
  put_symbol(t, f->name);
  ir_put(t, "(");
  for (uint32_t i = 0; i < f->body->args.len; i++) {
    const IrValue *v = f->body->args.data[i];
    if (i) ir_put(t, ", ");
    put_value(p, v);
    ir_put(t, ": ");
    ir_put_type(t, v->type);
    if (i < f->params.len) put_param_facts(t, &f->params.data[i]);
  }
  ir_put(t, ")");
  for (uint32_t i = 0; i < f->results.len; i++) {
    ir_put(t, i ? ", " : " -> ");
    ir_put_type(t, f->results.data[i]);
  }
  if (f->wait_class != WAIT_none) ir_putf(t, " wait=%s", ir_wait_name(f->wait_class));
  put_loc(p, f->loc);
  ir_put(t, " {\n");
  put_ops(p, f->body, 1);
  ir_put(t, "}\n");
}

static char *print_module(const IrModule *m, Arena *a, bool locs) {
  Printer p = {.t = {.arena = a}, .m = m, .locs = locs, .taken = strings_new(a)};
  ir_putf(&p.t, "module stage=%s warps=%d stages=%d lanes=%d", ir_stage_names[m->stage], m->num_warps,
          m->num_stages, m->lanes);
  if (m->extra_warps) ir_putf(&p.t, " extra=%d", m->extra_warps);
  if (m->max_registers) ir_putf(&p.t, " registers=%d", m->max_registers);
  ir_put(&p.t, "\n");
  for (const IrFunc *f = m->funcs; f; f = f->next) {
    ir_put(&p.t, "\n");
    put_func(&p, f);
  }
  return p.t.buf.data;
}

char *ir_print(const IrModule *m, Arena *a) { return print_module(m, a, false); }
char *ir_print_with_locs(const IrModule *m, Arena *a) { return print_module(m, a, true); }

char *ir_print_op(const IrOp *op, Arena *a) {
  Printer p = {.t = {.arena = a}};
  put_op_head(&p, op);
  if (op->nregions) ir_put(&p.t, " {...}");
  return p.t.buf.data;
}
