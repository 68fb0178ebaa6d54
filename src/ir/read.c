// read: IR from text, as print.c writes it (the grammar stands there). One pass, one token of look-ahead.
//
// Values are defined before use, so every name is looked up in the scopes that are open: a stack of names and a map from
// name to value. The first error ends the reading, with line and column of the text. Depth of regions, size of the
// text and of numbers are bounded; whether what is read makes sense is for ir_verify to say.
//
// Line ends matter in one place: the first operand of an op stands on the op's line, so that an op without operands can
// be followed by one that begins with a value.
#include "ir/ir_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 256, MAX_TEXT = 32 << 20, MAX_SOURCES = 1000 };

typedef enum TokenKind {
  TOKEN_END,
  TOKEN_WORD,
  TOKEN_VALUE,
  TOKEN_SYMBOL,
  TOKEN_NUMBER,
  TOKEN_STRING,
  TOKEN_ARROW,
  TOKEN_CHAR,
  TOKEN_BAD
} TokenKind;
typedef struct Token {
  TokenKind kind;
  const char *s; // text: of a value or plain symbol without its sign, of a string without quotes
  uint32_t len;
  bool quoted;   // TOKEN_SYMBOL: written as a string
  bool new_line; // first of its line
  uint32_t line, col, end_col;
} Token;

typedef struct ReadAttr {
  IrAttrName name;
  Token at;
  int64_t i;
  const Str *s;
  Vec(int64_t) ints;
} ReadAttr;

typedef struct Reader {
  Arena *a;
  IrCtx *ctx;
  Diags *d;
  IrModule *m;
  const char *at, *end, *line_start;
  uint32_t file, line;
  Token tok;
  bool failed;
  Map values;              // Str * -> IrValue *, of the open scopes
  Vec(const Str *) scopes; // names in order of definition
  Map funcs;
  int depth;
  // of the op at work, up to its regions; the names of its results as a stack
  Vec(Token) names;
  Vec(IrValue *) ops;
  Vec(const IrType *) types;
  ReadAttr *attrs; // ATTR_COUNT
  uint32_t nattrs;
} Reader;

// ---- tokens -------------------------------------------------------------------------------------------------------

static bool fail(Reader *r, const Token *t, const char *fmt, ...) DT_PRINTF(3, 4);
static bool fail(Reader *r, const Token *t, const char *fmt, ...) {
  if (r->failed) return false;
  r->failed = true;
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(r->d->arena, fmt, ap);
  va_end(ap);
  diag(r->d, DIAG_ERROR, (Loc){r->file, t->line, t->col, t->end_col}, "%s", text);
  return false;
}

static const char *token_text(Reader *r, const Token *t) {
  switch (t->kind) {
  case TOKEN_END: return "the end of the text";
  case TOKEN_STRING: return "a string";
  case TOKEN_ARROW: return "'->'";
  default: {
    const int n = t->len > 40 ? 40 : (int)t->len;
    const char *sign = t->kind == TOKEN_VALUE ? "%" : t->kind == TOKEN_SYMBOL ? "@" : "";
    return arena_printf(r->d->arena, "'%s%.*s'", sign, n, t->s);
  }
  }
}

static bool expected(Reader *r, const char *what) {
  return fail(r, &r->tok, "expected %s, found %s", what, token_text(r, &r->tok));
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' ||
         (unsigned char)c >= 128;
}

static const char *skip_word(const Reader *r, const char *p) {
  while (p < r->end && is_word(*p)) p++;
  return p;
}

// A sign, digits, letters, points; a sign again behind an exponent's e (not in hexadecimal).
static const char *skip_number(const Reader *r, const char *p) {
  const bool hex = r->end - p >= 2 && p[0] == '0' && p[1] == 'x';
  if (*p == '-') p++;
  for (; p < r->end; p++) {
    const bool sign = (*p == '+' || *p == '-') && !hex && (p[-1] == 'e' || p[-1] == 'E');
    if (!is_word(*p) && !sign) break;
  }
  return p;
}

static const char *skip_string(const Reader *r, const char *p) { // p behind the opening quote
  while (p < r->end && *p != '"' && *p != '\n') p += *p == '\\' && p + 1 < r->end ? 2 : 1;
  return p;
}

static void skip_space(Reader *r, bool *new_line) {
  for (; r->at < r->end; r->at++) {
    if (*r->at == '\n') {
      *new_line = true;
      r->line++;
      r->line_start = r->at + 1;
    } else if (*r->at == '/' && r->at + 1 < r->end && r->at[1] == '/') {
      while (r->at + 1 < r->end && r->at[1] != '\n') r->at++;
    } else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r') {
      return;
    }
  }
}

static void next(Reader *r) {
  bool new_line = r->at == r->line_start;
  skip_space(r, &new_line);
  const char *p = r->at;
  Token t = {.s = p, .new_line = new_line, .line = r->line, .col = (uint32_t)(p - r->line_start) + 1};
  const char *q;
  if (p >= r->end) {
    t.kind = TOKEN_END;
    q = p;
  } else if (*p == '%' || *p == '@') {
    t.kind = *p == '%' ? TOKEN_VALUE : TOKEN_SYMBOL;
    t.s = p + 1;
    t.quoted = *p == '@' && p + 1 < r->end && p[1] == '"';
    q = t.quoted ? skip_string(r, ++t.s) : skip_word(r, t.s);
    t.len = (uint32_t)(q - t.s);
    if (t.quoted && (q >= r->end || *q != '"'))
      t.kind = TOKEN_BAD;
    else if (t.quoted)
      q++;
    else if (!t.len)
      t.kind = TOKEN_BAD, t.s = p, t.len = 1;
  } else if (*p == '"') {
    t.s = p + 1;
    q = skip_string(r, t.s);
    t.len = (uint32_t)(q - t.s);
    t.kind = q < r->end && *q == '"' ? TOKEN_STRING : TOKEN_BAD;
    if (t.kind == TOKEN_STRING) q++;
  } else if (*p == '-' && p + 1 < r->end && p[1] == '>') {
    t.kind = TOKEN_ARROW;
    q = p + 2;
  } else if (is_digit(*p) || *p == '-') {
    t.kind = TOKEN_NUMBER;
    q = skip_number(r, p);
    t.len = (uint32_t)(q - p);
  } else if (is_word(*p)) {
    t.kind = TOKEN_WORD;
    q = skip_word(r, p);
    t.len = (uint32_t)(q - p);
  } else {
    t.kind = TOKEN_CHAR;
    q = p + 1;
    t.len = 1;
  }
  t.end_col = (uint32_t)(q - r->line_start) + 1;
  r->at = q;
  r->tok = t;
}

static bool is_char(const Reader *r, char c) { return r->tok.kind == TOKEN_CHAR && *r->tok.s == c; }
static bool is_word_tok(const Reader *r, const char *w) {
  return r->tok.kind == TOKEN_WORD && r->tok.len == strlen(w) && memcmp(r->tok.s, w, r->tok.len) == 0;
}

static bool accept_char(Reader *r, char c) {
  if (!is_char(r, c)) return false;
  next(r);
  return true;
}

static bool expect_char(Reader *r, char c) {
  const char what[] = {'\'', c, '\'', 0};
  return accept_char(r, c) || expected(r, what);
}

static bool expect_word(Reader *r, const char *w) {
  if (!is_word_tok(r, w)) return expected(r, w);
  next(r);
  return true;
}

static const Str *intern_string(Reader *r, const Token *t) {
  char few[128], *q = t->len <= sizeof few ? few : arena_alloc(r->a, t->len, 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->len; i++) {
    char c = t->s[i];
    if (c == '\\' && i + 1 < t->len) {
      c = t->s[++i];
      if (c == 'n')
        c = '\n';
      else if (c == 't')
        c = '\t';
      else if (c == 'x') {
        int v = 0, digits = 0;
        for (; digits < 2 && i + 1 < t->len; digits++) {
          const char h = t->s[i + 1];
          const int x = is_digit(h) ? h - '0' : h >= 'a' && h <= 'f' ? h - 'a' + 10 : -1;
          if (x < 0) break;
          v = v * 16 + x;
          i++;
        }
        if (digits < 2) {
          fail(r, t, "\\x is followed by two hexadecimal digits");
          return NULL;
        }
        c = (char)v;
      } else if (c != '"' && c != '\\') {
        fail(r, t, "unknown escape in a string; known are \\n \\t \\\" \\\\ \\xHH");
        return NULL;
      }
    }
    q[n++] = c;
  }
  return str_intern(ir_strings(r->ctx), q, n);
}

static const Str *token_name(Reader *r, const Token *t) {
  return t->quoted || t->kind == TOKEN_STRING ? intern_string(r, t)
                                              : str_intern(ir_strings(r->ctx), t->s, t->len);
}

// ---- numbers ------------------------------------------------------------------------------------------------------

// Decimal or 0x..., with a sign. Values beyond int64 but within uint64 are taken as bits.
static bool number_value(const Token *t, int64_t *out) {
  char buf[32], *end;
  if (t->kind != TOKEN_NUMBER || t->len >= sizeof buf) return false;
  memcpy(buf, t->s, t->len);
  buf[t->len] = 0;
  const bool negative = buf[0] == '-', hex = strncmp(buf + negative, "0x", 2) == 0;
  if (!is_digit(buf[negative])) return false;
  errno = 0;
  const unsigned long long v = strtoull(buf + negative, &end, hex ? 16 : 10);
  if (errno || end != buf + t->len || (hex && t->len == 2u + negative)) return false;
  if (negative && v > 1ull << 63) return false;
  *out = (int64_t)(negative ? 0 - v : v);
  return true;
}

static bool read_int(Reader *r, int64_t lo, int64_t hi, int64_t *out) {
  if (!number_value(&r->tok, out)) return expected(r, "an integer");
  if (*out < lo || *out > hi || (*out < 0 && *r->tok.s != '-' && lo < 0)) {
    return fail(r, &r->tok, "a number from %lld to %lld is expected here", (long long)lo, (long long)hi);
  }
  next(r);
  return true;
}

// The bits of a constant of type ty. Hexadecimal text gives the bits themselves.
static bool constant_bits(Reader *r, const Token *t, const IrType *ty, int64_t *out) {
  const IrDtype d = ty->dtype;
  const bool is_float = ir_type_is_float(ty), is_ptr = ir_type_is_ptr(ty);
  if (!is_float && !is_ptr && !ir_type_is_int(ty)) {
    return fail(r, t, "a constant of type %s cannot be written", ir_type_text(ty, r->d->arena));
  }
  const uint64_t mask = is_ptr ? UINT64_MAX : ir_dtype_mask(d);
  const bool hex = t->len > 2 && t->s[0] == '0' && t->s[1] == 'x';
  int64_t v;
  if (is_float && !hex) {
    double x;
    if (t->kind == TOKEN_WORD && t->len == 3 && memcmp(t->s, "inf", 3) == 0)
      x = INFINITY;
    else if (t->kind == TOKEN_WORD && t->len == 3 && memcmp(t->s, "nan", 3) == 0)
      x = NAN;
    else if (t->kind != TOKEN_NUMBER || !ir_read_float(t->s, t->len, &x)) {
      return fail(r, t, "expected a float, found %s", token_text(r, t));
    }
    *out = (int64_t)ir_float_bits(d, x);
    return true;
  }
  if (!number_value(t, &v)) return fail(r, t, "expected an integer, found %s", token_text(r, t));
  const uint64_t bits = (uint64_t)v;
  if (*t->s == '-' && !is_ptr) { // sign-extended: all bits above the value's sign are ones
    const uint64_t above = ~(mask >> 1);
    if ((bits & above) != above && bits)
      return fail(r, t, "the constant does not fit into %s", ir_dtypes[d].name);
  } else if (bits & ~mask) {
    return fail(r, t, "the constant does not fit into %s", ir_dtypes[d].name);
  }
  *out = (int64_t)(bits & mask);
  return true;
}

// ---- types --------------------------------------------------------------------------------------------------------

static bool read_dtype(Reader *r, IrDtype *out) {
  for (int i = 0; i < IR_NDTYPES; i++) {
    if (!is_word_tok(r, ir_dtypes[i].name)) continue;
    *out = (IrDtype)i;
    next(r);
    return true;
  }
  return expected(r, "an element type");
}

static bool read_space(Reader *r, IrSpace *out) {
  for (int i = 0; i < 4; i++) {
    if (!is_word_tok(r, ir_space_names[i])) continue;
    *out = (IrSpace)i;
    next(r);
    return true;
  }
  return expected(r, "global, shared, tensor or scratch");
}

// 128x64xbf16 is one word for the tokens, so it is read by characters, from the current token on. Leaves the token
// behind the last x.
static bool read_shape(Reader *r, IrType *t) {
  const char *p = r->tok.s;
  const Token start = r->tok;
  if (r->tok.kind != TOKEN_NUMBER) return true;
  while (p < r->end && is_digit(*p)) {
    int64_t n = 0;
    const char *from = p;
    for (; p < r->end && is_digit(*p); p++) {
      n = n * 10 + (*p - '0');
      if (n > INT32_MAX) return fail(r, &start, "a size of a type is at most %d", INT32_MAX);
    }
    if (p < r->end && *p == '*' && t->kind == IR_MEMDESC && t->rank == 0 && !t->stages) {
      if (n == 0) return fail(r, &start, "a memdesc has at least one stage");
      t->stages = (int32_t)n;
      p++;
      continue;
    }
    if (p >= r->end || *p != 'x') {
      r->at = from;
      next(r);
      return expected(r, "'x' behind a size");
    }
    if (t->rank == IR_MAX_RANK) return fail(r, &start, "a type has at most %d axes", IR_MAX_RANK);
    t->shape[t->rank++] = (int32_t)n;
    p++;
  }
  r->at = p;
  next(r);
  return true;
}

static bool read_ptr(Reader *r, IrType *t) { // behind "ptr"
  if (!expect_char(r, '<') || !read_dtype(r, &t->dtype)) return false;
  if (accept_char(r, ',') && !read_space(r, &t->space)) return false;
  return expect_char(r, '>');
}

static bool read_layout(Reader *r, IrLayout *l) { // behind the comma: reg(1 2) lane(4 8 16 32 64) warp(128)
  *l = (IrLayout){0};
  for (int d = 0; d < PLACE_DIMS; d++) {
    if (!is_word_tok(r, ir_place_names[d])) return expected(r, ir_place_names[d]);
    next(r);
    if (!expect_char(r, '(')) return false;
    while (!accept_char(r, ')')) {
      int64_t index;
      const Token at = r->tok;
      if (!read_int(r, 0, IR_MAX_ELEMS - 1, &index)) return false;
      if (layout_bits(l) == LAYOUT_MAX_BITS)
        return fail(r, &at, "a layout has at most %d bits", LAYOUT_MAX_BITS);
      l->at[layout_bits(l)] = (uint32_t)index;
      l->n[d]++;
    }
  }
  return true;
}

static bool read_type(Reader *r, const IrType **out) {
  IrType t = {0};
  IrLayout layout;
  bool has_layout = false;
  const Token start = r->tok;
  if (is_word_tok(r, "thread")) {
    t.level = LEVEL_thread;
    next(r);
  }
  if (is_word_tok(r, "ptr")) {
    next(r);
    if (!read_ptr(r, &t)) return false;
    *out = ir_type_ptr(r->ctx, t.dtype, t.space, t.level);
    return true;
  }
  const struct {
    const char *word;
    IrTypeKind kind;
  } kinds[] = {{"tile", IR_TILE},
               {"memdesc", IR_MEMDESC},
               {"mbarrier", IR_MBARRIER},
               {"desc", IR_DESC},
               {"token", IR_TOKEN}};
  for (size_t i = 0; i < DT_COUNTOF(kinds); i++) {
    if (is_word_tok(r, kinds[i].word)) t.kind = kinds[i].kind;
  }
  if (t.kind == IR_SCALAR) {
    if (r->tok.kind != TOKEN_WORD) return expected(r, "a type");
    if (!read_dtype(r, &t.dtype)) return false;
    *out = ir_type_scalar(r->ctx, t.dtype, t.level);
    return true;
  }
  if (t.level) return fail(r, &start, "only scalars and pointers have a level");
  next(r);
  if (t.kind == IR_TOKEN) {
    *out = ir_type_token(r->ctx);
    return true;
  }
  if (t.kind == IR_MBARRIER) {
    int64_t n = 0;
    if (accept_char(r, '<') && (!read_int(r, 1, INT32_MAX, &n) || !expect_char(r, '>'))) return false;
    *out = ir_type_mbarrier(r->ctx, (int)n);
    return true;
  }
  if (!expect_char(r, '<') || !read_shape(r, &t)) return false;
  if (t.kind == IR_TILE && is_word_tok(r, "ptr")) {
    next(r);
    t.ptr_elem = true;
    if (!read_ptr(r, &t)) return false;
  } else if (!read_dtype(r, &t.dtype)) {
    return false;
  }
  if (t.kind == IR_MEMDESC && (!expect_char(r, ',') || !read_space(r, &t.space))) return false;
  if (t.kind != IR_DESC && accept_char(r, ',')) {
    if (!read_layout(r, &layout)) return false;
    has_layout = true;
  }
  if (!expect_char(r, '>')) return false;
  *out = t.kind == IR_DESC      ? ir_type_desc(r->ctx, t.dtype, t.rank, t.shape)
         : t.kind == IR_MEMDESC ? ir_type_memdesc(r->ctx, t.dtype, t.space, t.rank, t.shape, t.stages)
         : t.ptr_elem           ? ir_type_ptr_tile(r->ctx, t.dtype, t.space, t.rank, t.shape)
                                : ir_type_tile(r->ctx, t.dtype, t.rank, t.shape);
  if (has_layout) *out = ir_type_with_layout(r->ctx, *out, &layout);
  return true;
}

// ---- values and scopes --------------------------------------------------------------------------------------------

static bool all_digits(const Token *t) {
  for (uint32_t i = 0; i < t->len; i++) {
    if (!is_digit(t->s[i])) return false;
  }
  return true;
}

static bool define(Reader *r, const Token *t, IrValue *v) {
  const Str *name = token_name(r, t);
  if (map_getp(&r->values, name)) return fail(r, t, "%%%s is already defined", name->s);
  map_setp(&r->values, name, v);
  vec_push(r->a, &r->scopes, name);
  if (!all_digits(t)) v->name = name;
  return true;
}

static void close_scope(Reader *r, uint32_t from) {
  while (r->scopes.len > from) map_del(&r->values, (uint64_t)(uintptr_t)vec_pop(&r->scopes));
}

static bool read_arg(Reader *r, IrBlock *b) { // %name: type
  const Token name = r->tok;
  const IrType *t;
  if (r->tok.kind != TOKEN_VALUE) return expected(r, "a value's name");
  next(r);
  if (!expect_char(r, ':') || !read_type(r, &t)) return false;
  if (b->owner) return define(r, &name, ir_block_arg(b, t, NULL));
  IrValue *v = ir_func_param(b->func, t, NULL);
  if (!define(r, &name, v)) return false;
  vec_last(&b->func->params).name = token_name(r, &name);
  return true;
}

// ---- attributes ---------------------------------------------------------------------------------------------------

static bool read_bool(Reader *r, int64_t *out) {
  *out = is_word_tok(r, "true");
  if (!*out && !is_word_tok(r, "false")) return expected(r, "true or false");
  next(r);
  return true;
}

static bool read_attr_value(Reader *r, ReadAttr *x) {
  x->at = r->tok;
  switch (ir_attrs[x->name].kind) {
  case AK_INT: return read_int(r, INT64_MIN, INT64_MAX, &x->i);
  case AK_BOOL: return read_bool(r, &x->i);
  case AK_ENUM:
    x->i = r->tok.kind == TOKEN_WORD ? ir_enum_by_text(x->name, r->tok.s, r->tok.len) : -1;
    if (x->i < 0) return fail(r, &r->tok, "%s is no %s", token_text(r, &r->tok), ir_attrs[x->name].name);
    next(r);
    return true;
  case AK_DTYPE: {
    IrDtype d;
    if (!read_dtype(r, &d)) return false;
    x->i = d;
    return true;
  }
  case AK_BITS: // needs the type, which comes later
    if (r->tok.kind != TOKEN_NUMBER && r->tok.kind != TOKEN_WORD) return expected(r, "a constant");
    next(r);
    return true;
  case AK_STR:
  case AK_SYM: {
    const bool sym = ir_attrs[x->name].kind == AK_SYM;
    if (r->tok.kind != (sym ? TOKEN_SYMBOL : TOKEN_STRING)) return expected(r, sym ? "@name" : "a string");
    x->s = token_name(r, &r->tok);
    if (!x->s) return false;
    next(r);
    return true;
  }
  case AK_INTS:
    if (!expect_char(r, '[')) return false;
    while (!is_char(r, ']')) {
      int64_t v;
      if (x->ints.len && !expect_char(r, ',')) return false;
      if (!read_int(r, INT64_MIN, INT64_MAX, &v)) return false;
      vec_push(r->a, &x->ints, v);
    }
    next(r);
    return true;
  }
  return false;
}

static bool read_attrs(Reader *r) { // at "{"
  next(r);
  do {
    if (r->tok.kind != TOKEN_WORD) return expected(r, "an attribute");
    const int name = ir_attr_by_name(r->tok.s, r->tok.len);
    if (name < 0) return fail(r, &r->tok, "unknown attribute %s", token_text(r, &r->tok));
    for (uint32_t i = 0; i < r->nattrs; i++) {
      if (r->attrs[i].name == (IrAttrName)name)
        return fail(r, &r->tok, "%s stands twice", token_text(r, &r->tok));
    }
    next(r);
    ReadAttr *x = &r->attrs[r->nattrs++];
    *x = (ReadAttr){.name = (IrAttrName)name};
    if (!expect_char(r, '=') || !read_attr_value(r, x)) return false;
  } while (accept_char(r, ','));
  return expect_char(r, '}');
}

static bool set_attrs(Reader *r, IrOp *op) {
  for (uint32_t i = 0; i < r->nattrs; i++) {
    const ReadAttr *x = &r->attrs[i];
    int64_t bits = 0;
    switch (ir_attrs[x->name].kind) {
    case AK_STR:
    case AK_SYM: ir_set_attr_s(op, x->name, x->s); break;
    case AK_INTS: ir_set_attr_ints(op, x->name, x->ints.data, x->ints.len); break;
    case AK_BITS:
      if (!op->nresults)
        return fail(r, &x->at, "%s has no result whose constant this is", ir_ops[op->kind].name);
      if (!constant_bits(r, &x->at, op->results[0].type, &bits)) return false;
      ir_set_attr_i(op, x->name, bits);
      break;
    default: ir_set_attr_i(op, x->name, x->i);
    }
  }
  return true;
}

// At "{": do attributes follow (a word and "="), or a region?
static bool attrs_follow(const Reader *r) {
  Reader peek = *r;
  next(&peek);
  if (peek.tok.kind != TOKEN_WORD) return false;
  next(&peek);
  return is_char(&peek, '=');
}

// ---- locations ----------------------------------------------------------------------------------------------------

static uint32_t source_by_name(Reader *r, const Str *name) {
  if (!name->len) return r->file;
  for (uint32_t i = 0; i < r->d->sources.len; i++) {
    if (strcmp(r->d->sources.data[i].name, name->s) == 0) return i;
  }
  return r->d->sources.len < MAX_SOURCES ? diags_source(r->d, name->s, "", 0) : r->file;
}

static bool read_loc(Reader *r, Loc *loc) { // loc("file":line:col[:end_col]), if there is one
  if (!is_word_tok(r, "loc")) return true;
  Reader peek = *r;
  next(&peek);
  if (!is_char(&peek, '(')) return true;
  int64_t line, col, end = 0;
  next(r);
  next(r);
  if (r->tok.kind != TOKEN_STRING) return expected(r, "a file name in quotes");
  const Str *name = intern_string(r, &r->tok);
  if (!name) return false;
  next(r);
  if (!expect_char(r, ':') || !read_int(r, 0, UINT32_MAX, &line)) return false;
  if (!expect_char(r, ':') || !read_int(r, 0, UINT32_MAX, &col)) return false;
  if (accept_char(r, ':') && !read_int(r, 0, UINT32_MAX, &end)) return false;
  *loc = (Loc){source_by_name(r, name), (uint32_t)line, (uint32_t)col, (uint32_t)end};
  return expect_char(r, ')');
}

// ---- ops ----------------------------------------------------------------------------------------------------------

static bool read_ops(Reader *r, IrBlock *b);

static bool read_region(Reader *r, IrOp *op) { // at "{"
  if (r->depth >= MAX_DEPTH) return fail(r, &r->tok, "regions nest deeper than %d", MAX_DEPTH);
  IrBlock *b = ir_op_add_region(op);
  const uint32_t scope = r->scopes.len;
  next(r);
  if (accept_char(r, '(')) {
    do {
      if (!read_arg(r, b)) return false;
    } while (accept_char(r, ','));
    if (!expect_char(r, ')')) return false;
  }
  r->depth++;
  if (!read_ops(r, b)) return false;
  r->depth--;
  close_scope(r, scope);
  return true;
}

static bool read_operands(Reader *r) {
  r->ops.len = 0;
  if (r->tok.new_line || (r->tok.kind != TOKEN_VALUE && !is_word_tok(r, "_"))) return true;
  do {
    IrValue *v = NULL;
    if (r->tok.kind == TOKEN_VALUE) {
      v = map_getp(&r->values, str_intern(ir_strings(r->ctx), r->tok.s, r->tok.len));
      if (!v) return fail(r, &r->tok, "%s is not defined here", token_text(r, &r->tok));
    } else if (!is_word_tok(r, "_")) {
      return expected(r, "a value or _");
    }
    next(r);
    vec_push(r->a, &r->ops, v);
  } while (accept_char(r, ','));
  return true;
}

static bool read_types(Reader *r) {
  r->types.len = 0;
  do {
    const IrType *t;
    if (!read_type(r, &t)) return false;
    vec_push(r->a, &r->types, t);
  } while (accept_char(r, ','));
  return true;
}

static bool read_op(Reader *r, IrBlock *b) {
  const uint32_t first_name = r->names.len;
  if (r->tok.kind == TOKEN_VALUE) {
    do {
      if (r->tok.kind != TOKEN_VALUE) return expected(r, "a value's name");
      vec_push(r->a, &r->names, r->tok);
      next(r);
    } while (accept_char(r, ','));
    if (!expect_char(r, '=')) return false;
  }
  const uint32_t nnames = r->names.len - first_name;
  const Token word = r->tok;
  if (word.kind != TOKEN_WORD) return expected(r, "an operation");
  const int kind = ir_op_by_name(word.s, word.len);
  if (kind < 0) return fail(r, &word, "unknown operation %s", token_text(r, &word));
  next(r);

  Loc loc = {r->file, word.line, word.col, word.end_col};
  r->nattrs = r->types.len = 0;
  if (!read_operands(r)) return false;
  if (is_char(r, '{') && attrs_follow(r) && !read_attrs(r)) return false;
  const Token colon = r->tok;
  if (accept_char(r, ':') && !read_types(r)) return false;
  if (r->types.len != nnames) {
    return fail(r, r->types.len ? &colon : &word, "%u results are named, but %u types are given", nnames,
                r->types.len);
  }
  if (!read_loc(r, &loc)) return false;

  IrBuilder at = ir_builder_at_end(b);
  at.loc = loc;
  IrOp *op = ir_build(&at, (IrOpKind)kind, r->ops.len, r->ops.data, nnames, r->types.data, 0);
  if (!set_attrs(r, op)) return false;
  while (is_char(r, '{')) {
    if (!read_region(r, op)) return false;
  }
  for (uint32_t i = 0; i < nnames; i++) {
    if (!define(r, &r->names.data[first_name + i], &op->results[i])) return false;
  }
  r->names.len = first_name;
  return true;
}

static bool read_ops(Reader *r, IrBlock *b) { // up to and over the "}"
  while (!is_char(r, '}')) {
    if (r->tok.kind == TOKEN_END) return expected(r, "an operation or '}'");
    if (!read_op(r, b)) return false;
  }
  next(r);
  return true;
}

// ---- functions and modules ----------------------------------------------------------------------------------------

static bool read_param_facts(Reader *r, IrParam *p) { // behind "{"
  do {
    const Token word = r->tok;
    int64_t v;
    if (word.kind != TOKEN_WORD) return expected(r, "a fact of the parameter");
    bool *flag = is_word_tok(r, "noalias")    ? &p->noalias
                 : is_word_tok(r, "writes")   ? &p->writes
                 : is_word_tok(r, "reads")    ? &p->reads
                 : is_word_tok(r, "unsigned") ? &p->is_unsigned
                                              : NULL;
    const bool divisible = is_word_tok(r, "divisible");
    if (!flag && !divisible) return fail(r, &word, "unknown fact %s", token_text(r, &word));
    next(r);
    if (!expect_char(r, '=')) return false;
    if (divisible ? !read_int(r, 1, INT64_MAX, &p->divisible) : !read_bool(r, &v)) return false;
    if (flag) *flag = v;
  } while (accept_char(r, ','));
  return expect_char(r, '}');
}

static bool read_func(Reader *r) {
  const bool kernel = is_word_tok(r, "kernel");
  if (!kernel && !is_word_tok(r, "func")) return expected(r, "kernel or func");
  const Token start = r->tok;
  next(r);
  if (r->tok.kind != TOKEN_SYMBOL) return expected(r, "@name");
  const Str *name = token_name(r, &r->tok);
  if (!name) return false;
  if (map_getp(&r->funcs, name)) return fail(r, &r->tok, "@%s is already defined", name->s);
  next(r);
  IrFunc *f = ir_func_new(r->m, name, kernel);
  map_setp(&r->funcs, name, f);
  f->loc = (Loc){r->file, start.line, start.col, start.end_col};
  if (!expect_char(r, '(')) return false;
  while (!is_char(r, ')')) {
    if (f->params.len && !expect_char(r, ',')) return false;
    if (!read_arg(r, f->body)) return false;
    if (accept_char(r, '{') && !read_param_facts(r, &vec_last(&f->params))) return false;
  }
  next(r);
  if (r->tok.kind == TOKEN_ARROW) {
    next(r);
    if (!read_types(r)) return false;
    for (uint32_t i = 0; i < r->types.len; i++) vec_push(r->a, &f->results, r->types.data[i]);
  }
  if (is_word_tok(r, "wait")) {
    next(r);
    if (!expect_char(r, '=')) return false;
    const int w = r->tok.kind == TOKEN_WORD ? ir_wait_by_name(r->tok.s, r->tok.len) : -1;
    if (w < 0) return expected(r, "none, external, ordered or mutual");
    f->wait_class = (IrWaitClass)w;
    next(r);
  }
  if (!read_loc(r, &f->loc) || !expect_char(r, '{') || !read_ops(r, f->body)) return false;
  close_scope(r, 0);
  return true;
}

static bool read_count(Reader *r, const char *word, int *out) { // word=N
  int64_t v;
  if (!expect_word(r, word) || !expect_char(r, '=') || !read_int(r, 1, 1024, &v)) return false;
  *out = (int)v;
  return true;
}

static bool read_module(Reader *r) {
  IrModule *m = r->m;
  if (!expect_word(r, "module") || !expect_word(r, "stage") || !expect_char(r, '=')) return false;
  const int stage = r->tok.kind == TOKEN_WORD ? ir_stage_by_name(r->tok.s, r->tok.len) : -1;
  if (stage < 0) return expected(r, "tile, laid, lowered or placed");
  m->stage = (IrStage)stage;
  next(r);
  if (!read_count(r, "warps", &m->num_warps) || !read_count(r, "stages", &m->num_stages)) return false;
  if (!read_count(r, "lanes", &m->lanes)) return false;
  if (is_word_tok(r, "extra") && !read_count(r, "extra", &m->extra_warps)) return false;
  if (is_word_tok(r, "registers") && !read_count(r, "registers", &m->max_registers)) return false;
  while (r->tok.kind != TOKEN_END) {
    if (!read_func(r)) return false;
  }
  return true;
}

Status ir_parse(Arena *a, IrCtx *ctx, Diags *d, const char *name, const char *text, size_t len,
                IrModule **out) {
  *out = NULL;
  if (len > MAX_TEXT) {
    diag(d, DIAG_ERROR, LOC_NONE, "%s has %zu bytes; at most %d are read", name, len, MAX_TEXT);
    return ST_LIMIT;
  }
  Reader r = {.a = a, .ctx = ctx, .d = d, .line = 1};
  r.file = diags_source(d, name, text, len);
  r.at = r.line_start = text;
  r.end = text + len;
  r.m = ir_module_new(a, ctx, d);
  map_init(&r.values, a);
  map_init(&r.funcs, a);
  r.attrs = arena_array(a, ReadAttr, ATTR_COUNT);
  next(&r);
  if (!read_module(&r) || r.failed) return ST_COMPILE;
  *out = r.m;
  return ST_OK;
}
