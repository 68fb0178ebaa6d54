// Source text to syntax tree: the one door to tree-sitter.
//
// tree-sitter's concrete tree is walked once and turned into our own nodes; it is gone when parse_python returns.
// What a kernel can never use (try, yield, comprehension forms, match, ...) becomes an AST_Other that says what it is,
// so host code around kernels never fails to load. Only a syntax error anywhere in the file is fatal.
#include "front/parse.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>

extern const TSLanguage *tree_sitter_python(void);

typedef enum TsKind {
  TS_unknown,
#define KIND(name) TS_##name,
#include "front/grammar.def"
#undef KIND
  TS_COUNT
} TsKind;
static const char *const ts_kind_names[] = {
    "",
#define KIND(name) #name,
#include "front/grammar.def"
#undef KIND
};

typedef enum TsField {
  TF_none,
#define FIELD(name) TF_##name,
#include "front/grammar.def"
#undef FIELD
  TF_COUNT
} TsField;

typedef struct Conv {
  Arena *a;
  Diags *d;
  Strings *strings;
  uint32_t file;
  const char *text;
  uint32_t len;
  Vec(uint32_t) rows; // where the lines of the text begin
  SyntaxLines lines;
  uint8_t *kinds;  // TsKind by TSSymbol
  uint8_t *fields; // TsField by TSFieldId
  int depth;
  bool failed; // an error was reported; unwind
  bool split;  // lines.flat has semicolons of ours
  TSTree *tree;
  TSTreeCursor cursor; // for kids_of, there with the tree; both must be freed however the conversion ends
} Conv;

typedef struct Kid {
  TSNode ts;
  TsKind kind;
  TsField field;
  bool named;
} Kid;
typedef struct Kids {
  Vec(Kid) v;
} Kids;

static TsKind kind_of(const Conv *c, TSNode n) {
  const TSSymbol s = ts_node_symbol(n);
  return s == (TSSymbol)-1 ? TS_unknown : (TsKind)c->kinds[s];
}

// All children but comments, with their fields. Linear, unlike ts_node_child.
static Kids kids_of(Conv *c, TSNode n) {
  Kids k = {{0}};
  TSTreeCursor *cur = &c->cursor;
  ts_tree_cursor_reset(cur, n);
  if (ts_tree_cursor_goto_first_child(cur)) do {
      const TSNode ts = ts_tree_cursor_current_node(cur);
      if (ts_node_is_extra(ts)) continue;
      const Kid kid = {ts, kind_of(c, ts), (TsField)c->fields[ts_tree_cursor_current_field_id(cur)],
                       ts_node_is_named(ts)};
      vec_push(c->a, &k.v, kid);
    } while (ts_tree_cursor_goto_next_sibling(cur));
  return k;
}

// By its bytes: the grammar has seen a text with other line breaks.
static Loc loc_of(const Conv *c, TSNode n) {
  const uint32_t b = ts_node_start_byte(n), e = ts_node_end_byte(n);
  uint32_t row = 0;
  for (uint32_t past = c->rows.len; past - row > 1;) {
    const uint32_t mid = row + (past - row) / 2;
    if (c->rows.data[mid] <= b)
      row = mid;
    else
      past = mid;
  }
  const char *nl = memchr(c->text + b, '\n', e - b);
  const uint32_t len = nl ? (uint32_t)(nl - (c->text + b)) : e - b, col = b - c->rows.data[row] + 1;
  return (Loc){c->file, row + 1, col, col + (len ? len : 1)};
}

static Node *node_new(Conv *c, AstKind kind, TSNode ts) {
  Node *n = arena_new(c->a, Node);
  n->kind = kind;
  n->loc = loc_of(c, ts);
  return n;
}

static const Str *text_of(Conv *c, TSNode n) {
  const uint32_t b = ts_node_start_byte(n), e = ts_node_end_byte(n);
  return str_intern(c->strings, c->text + b, e - b);
}

static void not_python(Conv *c, TSNode ts, const char *what) {
  if (!c->failed) diag(c->d, DIAG_ERROR, loc_of(c, ts), "syntax error: %s", what);
  c->failed = true;
}

// An identifier. Where no keyword can stand, the grammar takes it for a name; Python does not.
static const Str *name_of(Conv *c, TSNode ts) {
  static const char *const keywords[] = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "for",      "finally",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  const Str *s = text_of(c, ts);
  if (s->len < 2 || s->len > 8) return s;
  for (size_t i = 0; i < DT_COUNTOF(keywords); i++)
    if (!strcmp(s->s, keywords[i]))
      not_python(c, ts, arena_printf(c->a, "'%s' is a word of the language and cannot stand here", s->s));
  return s;
}

// a.b.c, of an import
static const Str *dotted_name_of(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  for (uint32_t i = 0; i < k.v.len; i++)
    if (k.v.data[i].named) name_of(c, k.v.data[i].ts);
  return text_of(c, ts);
}

static bool text_is(const Conv *c, TSNode n, const char *s) {
  const uint32_t b = ts_node_start_byte(n), e = ts_node_end_byte(n);
  return strlen(s) == e - b && !memcmp(c->text + b, s, e - b);
}

static Node *node_other(Conv *c, TSNode ts, const char *what) {
  Node *n = node_new(c, AST_Other, ts);
  n->name = str_cstr(c->strings, what);
  return n;
}

static Node *conv_expr(Conv *c, TSNode ts);
static void conv_block(Conv *c, TSNode ts, NodeVec *out);

static const Kid *kid_by_field(const Kids *k, TsField f) {
  for (uint32_t i = 0; i < k->v.len; i++)
    if (k->v.data[i].field == f) return &k->v.data[i];
  return NULL;
}

static Node *first_by_field(Conv *c, const Kids *k, TsField f) {
  const Kid *kid = kid_by_field(k, f);
  return kid ? conv_expr(c, kid->ts) : NULL;
}

// The grammar binds a star closer than anything: *a.b is (*a).b to it. Here it goes around n, whose first part it is. Its op
// says that n is more than tuples and lists take: a comparison, a condition, `and` or `or`.
static Node *star_outside(Node *n) {
  Node **first = n->kind == AST_IfExp ? &n->b : &n->a, *star = *first;
  if (!star || star->kind != AST_Star || !star->a) return n;
  *first = star->a;
  n->loc.col = star->a->loc.col;
  star->loc.end_col = n->loc.end_col;
  star->op |= n->kind == AST_Compare || n->kind == AST_BoolOp || n->kind == AST_IfExp;
  star->a = star_outside(n);
  return star;
}

static Node *expr_by_field(Conv *c, const Kids *k, TsField f) {
  const Kid *kid = kid_by_field(k, f);
  Node *n = kid ? conv_expr(c, kid->ts) : NULL;
  if (n && n->kind == AST_Star) not_python(c, kid->ts, "an operand cannot be unpacked with *");
  return n;
}

static void named_exprs(Conv *c, const Kids *k, NodeVec *out) {
  for (uint32_t i = 0; i < k->v.len; i++)
    if (k->v.data[i].named) vec_push(c->a, out, conv_expr(c, k->v.data[i].ts));
}

// ---- literals ------------------------------------------------------------------------------------
static Node *conv_int(Conv *c, TSNode ts) {
  const Str *s = text_of(c, ts);
  unsigned base = 10;
  uint32_t i = 0;
  if (s->len > 2 && s->s[0] == '0' && strchr("xXoObB", s->s[1])) {
    base = s->s[1] == 'x' || s->s[1] == 'X' ? 16 : s->s[1] == 'o' || s->s[1] == 'O' ? 8 : 2;
    i = 2;
  }
  Node *n = node_new(c, AST_Int, ts);
  if (s->s[s->len - 1] == '_') not_python(c, ts, "a number ends with '_'");
  if (!i && s->len > 1 && s->s[0] == '0' && strspn(s->s, "0123456789_") == s->len &&
      strspn(s->s, "0_") < s->len)
    not_python(c, ts, "a number begins with 0; octal ones begin with 0o");
  for (; i < s->len; i++) {
    const char ch = s->s[i];
    if (ch == '_') continue;
    const int digit = ch >= '0' && ch <= '9'   ? ch - '0'
                      : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                      : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                               : 99;
    if ((unsigned)digit >= base) return node_other(c, ts, "a complex number or a suffixed integer");
    if (__builtin_mul_overflow(n->ival, (AstInt)base, &n->ival) ||
        __builtin_add_overflow(n->ival, (AstInt)digit, &n->ival))
      return node_other(c, ts, "an integer beyond 127 bits");
  }
  return n;
}

static Node *conv_float(Conv *c, TSNode ts) {
  const Str *s = text_of(c, ts);
  char *buf = arena_alloc(c->a, s->len + 1, 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->len; i++)
    if (s->s[i] != '_') buf[n++] = s->s[i];
  if (n && (buf[n - 1] == 'j' || buf[n - 1] == 'J')) return node_other(c, ts, "a complex number");
  // strtod follows the process's locale, where the decimal point may be a comma
  const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  const locale_t before = plain ? uselocale(plain) : (locale_t)0;
  Node *e = node_new(c, AST_Float, ts);
  e->fval = strtod(buf, NULL);
  if (plain) {
    uselocale(before);
    freelocale(plain);
  }
  return e;
}

typedef Vec(char) CharVec;

static void put_byte(Conv *c, CharVec *v, unsigned b) { vec_push(c->a, v, (char)b); }

static void put_utf8(Conv *c, CharVec *v, uint32_t u) {
  if (u < 0x80) {
    put_byte(c, v, u);
  } else if (u < 0x800) {
    put_byte(c, v, 0xC0 | u >> 6);
    put_byte(c, v, 0x80 | (u & 63));
  } else if (u < 0x10000) {
    put_byte(c, v, 0xE0 | u >> 12);
    put_byte(c, v, 0x80 | (u >> 6 & 63));
    put_byte(c, v, 0x80 | (u & 63));
  } else {
    put_byte(c, v, 0xF0 | (u >> 18 & 7));
    put_byte(c, v, 0x80 | (u >> 12 & 63));
    put_byte(c, v, 0x80 | (u >> 6 & 63));
    put_byte(c, v, 0x80 | (u & 63));
  }
}

static int hex_value(char ch) {
  if (ch >= '0' && ch <= '9') return ch - '0';
  if (ch >= 'a' && ch <= 'f') return ch - 'a' + 10;
  if (ch >= 'A' && ch <= 'F') return ch - 'A' + 10;
  return -1;
}

// Appends source bytes [b, e) of a string's inside, escapes resolved unless raw. Doubled braces fold in an f-string.
static void put_string_part(Conv *c, CharVec *v, uint32_t b, uint32_t e, bool raw, bool braces) {
  const char *s = c->text;
  for (uint32_t i = b; i < e; i++) {
    if (braces && (s[i] == '{' || s[i] == '}') && i + 1 < e && s[i + 1] == s[i]) i++;
    if (raw || s[i] != '\\' || i + 1 >= e) {
      put_byte(c, v, (unsigned char)s[i]);
      continue;
    }
    const char ch = s[++i];
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char *at = ch ? strchr(from, ch) : NULL;
    if (at) {
      put_byte(c, v, (unsigned char)to[at - from]);
    } else if (ch == '\n') { // continued line
    } else if (ch >= '0' && ch <= '7') {
      unsigned u = 0;
      for (int k = 0; k < 3 && i < e && s[i] >= '0' && s[i] <= '7'; k++) u = u * 8 + (unsigned)(s[i++] - '0');
      i--;
      put_utf8(c, v, u);
    } else if (ch == 'x' || ch == 'u' || ch == 'U') {
      const int digits = ch == 'x' ? 2 : ch == 'u' ? 4 : 8;
      uint32_t u = 0;
      int k = 0;
      for (; k < digits && i + 1 < e && hex_value(s[i + 1]) >= 0; k++)
        u = u * 16 + (uint32_t)hex_value(s[++i]);
      put_utf8(c, v, u > 0x10FFFF ? 0xFFFD : u);
    } else {
      put_byte(c, v, '\\');
      put_byte(c, v, (unsigned char)ch);
    }
  }
}

static void push_text(Conv *c, Node *parts, TSNode ts, CharVec *v) {
  if (!v->len) return;
  Node *last = parts->list.len ? vec_last(&parts->list) : NULL;
  if (last && last->kind == AST_Str) { // neighbours join
    CharVec both = {0};
    for (uint32_t i = 0; i < last->name->len; i++) put_byte(c, &both, (unsigned char)last->name->s[i]);
    for (uint32_t i = 0; i < v->len; i++) put_byte(c, &both, (unsigned char)v->data[i]);
    last->name = str_intern(c->strings, both.data, both.len);
  } else {
    Node *s = node_new(c, AST_Str, ts);
    s->name = str_intern(c->strings, v->data, v->len);
    vec_push(c->a, &parts->list, s);
  }
  v->len = 0;
}

static Node *conv_interpolation(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, AST_FValue, ts);
  n->a = expr_by_field(c, &k, TF_expression);
  if (!n->a) return node_other(c, ts, "an f-string field without a value");
  const Kid *conv = kid_by_field(&k, TF_type_conversion);
  if (conv) n->op = (uint8_t)c->text[ts_node_start_byte(conv->ts) + 1];
  if (conv && (!strchr("sra", n->op) || ts_node_end_byte(conv->ts) - ts_node_start_byte(conv->ts) != 2))
    not_python(c, conv->ts, "a conversion in an f-string is !s, !r or !a");
  const Kid *spec = kid_by_field(&k, TF_format_specifier);
  if (spec) {
    const uint32_t b = ts_node_start_byte(spec->ts) + 1, e = ts_node_end_byte(spec->ts); // past the colon
    if (memchr(c->text + b, '{', e - b)) return node_other(c, ts, "a computed format in an f-string");
    n->name = str_intern(c->strings, c->text + b, e - b);
  }
  for (uint32_t i = 0; i < k.v.len; i++)
    if (!k.v.data[i].named && text_is(c, k.v.data[i].ts, "=")) n->op = 'r', n->name2 = text_of(c, ts);
  return n;
}

// Appends one string literal to the parts of a Str-or-FStr under construction; false for bytes.
static bool conv_string_into(Conv *c, TSNode ts, Node *parts) {
  const Kids k = kids_of(c, ts);
  bool raw = false, format = false;
  uint32_t at = ts_node_end_byte(ts);
  CharVec text = {0};
  for (uint32_t i = 0; i < k.v.len; i++) {
    const Kid *kid = &k.v.data[i];
    const uint32_t b = ts_node_start_byte(kid->ts), e = ts_node_end_byte(kid->ts);
    if (kid->kind == TS_string_start) {
      bool bytes = false, old = false;
      for (uint32_t p = b; p < e; p++) {
        bytes |= c->text[p] == 'b' || c->text[p] == 'B';
        old |= c->text[p] == 'u' || c->text[p] == 'U';
        raw |= c->text[p] == 'r' || c->text[p] == 'R';
        format |= c->text[p] == 'f' || c->text[p] == 'F';
      }
      if ((old && (raw || format || bytes)) || (bytes && format))
        not_python(c, kid->ts, "letters in front of a string that do not go together");
      if (bytes) return false;
      at = e;
    } else if (kid->kind == TS_interpolation) {
      put_string_part(c, &text, at, b, raw, format);
      push_text(c, parts, ts, &text);
      Node *f = conv_interpolation(c, kid->ts);
      if (f->name2) { // f"{x = }": the source of the field, then its value
        const char *eq = memchr(f->name2->s, '=', f->name2->len);
        const uint32_t head = eq ? (uint32_t)(eq - f->name2->s) : 0;
        put_string_part(c, &text, b + 1, b + head + 1, true, false);
        push_text(c, parts, ts, &text);
        f->name2 = NULL;
      }
      vec_push(c->a, &parts->list, f);
      at = e;
    } else if (kid->kind == TS_string_end) {
      put_string_part(c, &text, at, b, raw, format);
      push_text(c, parts, ts, &text);
      at = e;
    }
  }
  return true;
}

static Node *conv_string(Conv *c, TSNode ts, bool concatenated) {
  Node *parts = node_new(c, AST_FStr, ts);
  bool ok = true;
  if (concatenated) {
    const Kids k = kids_of(c, ts);
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < k.v.len; i++) bytes += !conv_string_into(c, k.v.data[i].ts, parts);
    if (bytes && bytes < k.v.len) not_python(c, ts, "bytes and text side by side");
    ok = !bytes;
  } else {
    ok = conv_string_into(c, ts, parts);
  }
  if (!ok) return node_other(c, ts, "a bytes literal");
  if (parts->list.len == 1 && parts->list.data[0]->kind == AST_Str) {
    parts->list.data[0]->loc = parts->loc;
    return parts->list.data[0];
  }
  if (!parts->list.len) {
    parts->kind = AST_Str;
    parts->name = str_cstr(c->strings, "");
  }
  return parts;
}

// ---- expressions ---------------------------------------------------------------------------------
static int binary_op_of(const Conv *c, TSNode ts) {
  for (int op = AOP_Add; op <= AOP_Shr; op++)
    if (text_is(c, ts, ast_op_text((AstOp)op))) return op;
  return -1;
}

static Node *conv_compare(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *first = NULL, *n = NULL;
  int op = -1;
  for (uint32_t i = 0; i < k.v.len; i++) {
    const Kid *kid = &k.v.data[i];
    if (kid->field == TF_operators || !kid->named) {
      if (text_is(c, kid->ts, "<>")) not_python(c, kid->ts, "'<>' is written '!='");
      op = -1;
      for (int o = AOP_Eq; o <= AOP_NotIn && op < 0; o++)
        if (text_is(c, kid->ts, ast_op_text((AstOp)o))) op = o;
      // `is  not` and `not  in` may be spelled with any white space
      if (op < 0) op = c->text[ts_node_start_byte(kid->ts)] == 'n' ? AOP_NotIn : AOP_IsNot;
      continue;
    }
    Node *x = conv_expr(c, kid->ts);
    if (!first) {
      first = x;
    } else if (!n) {
      n = node_new(c, AST_Compare, ts);
      n->op = (uint8_t)op, n->a = first, n->b = x;
    } else {
      Node *more = node_new(c, AST_Compare, kid->ts);
      more->op = (uint8_t)op, more->b = x;
      vec_push(c->a, &n->list, more);
    }
  }
  return n ? star_outside(n) : node_other(c, ts, "a comparison");
}

static void check_keyword(Conv *c, const NodeVec *kwargs, const Node *kw, TSNode ts) {
  for (uint32_t i = 0; kw->name && i < kwargs->len; i++)
    if (kwargs->data[i]->name == kw->name)
      not_python(c, ts, arena_printf(c->a, "the argument '%s' is given twice", kw->name->s));
}

static void conv_args(Conv *c, TSNode ts, NodeVec *args, NodeVec *kwargs) {
  const Kids k = kids_of(c, ts);
  bool splat = false; // a ** came
  if (k.v.len > 1 && text_is(c, k.v.data[1].ts, ",")) not_python(c, k.v.data[1].ts, "an argument is missing");
  for (uint32_t i = 0; i < k.v.len; i++) {
    const Kid *kid = &k.v.data[i];
    if (!kid->named) continue;
    if (kid->kind == TS_keyword_argument) {
      const Kids kk = kids_of(c, kid->ts);
      const Kid *name = kid_by_field(&kk, TF_name);
      Node *kw = node_new(c, AST_Keyword, kid->ts);
      kw->name = name ? name_of(c, name->ts) : NULL;
      kw->a = expr_by_field(c, &kk, TF_value);
      check_keyword(c, kwargs, kw, kid->ts);
      vec_push(c->a, kwargs, kw);
    } else if (kid->kind == TS_dictionary_splat) {
      const Kids kk = kids_of(c, kid->ts);
      NodeVec v = {0};
      named_exprs(c, &kk, &v);
      Node *kw = node_new(c, AST_Keyword, kid->ts);
      kw->a = v.len ? v.data[0] : node_other(c, kid->ts, "an empty **");
      vec_push(c->a, kwargs, kw);
      splat = true;
    } else {
      Node *x = conv_expr(c, kid->ts);
      if (splat || (kwargs->len && x->kind != AST_Star))
        not_python(c, kid->ts, "an argument by position comes after arguments by name");
      vec_push(c->a, args, x);
    }
  }
}

static Node *conv_call(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, AST_Call, ts);
  n->a = first_by_field(c, &k, TF_function);
  const Kid *args = kid_by_field(&k, TF_arguments);
  if (args && args->kind == TS_argument_list)
    conv_args(c, args->ts, &n->list, &n->list2);
  else if (args)
    vec_push(c->a, &n->list, conv_expr(c, args->ts)); // f(x for x in y)
  return star_outside(n);
}

static Node *conv_slice(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, AST_Slice, ts);
  Node **const slot[3] = {&n->a, &n->b, &n->c};
  int at = 0;
  for (uint32_t i = 0; i < k.v.len; i++) {
    if (k.v.data[i].named) {
      if (at < 3) *slot[at] = conv_expr(c, k.v.data[i].ts);
    } else {
      at++;
    }
  }
  return n;
}

static Node *conv_subscript(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, AST_Subscript, ts);
  n->a = first_by_field(c, &k, TF_value);
  for (uint32_t i = 0; i < k.v.len; i++) {
    if (k.v.data[i].field == TF_subscript && k.v.data[i].named)
      vec_push(c->a, &n->list, conv_expr(c, k.v.data[i].ts));
    else if (!k.v.data[i].named && text_is(c, k.v.data[i].ts, ","))
      n->op = 1;
  }
  return star_outside(n);
}

static void conv_params_into(Conv *c, TSNode ts, NodeVec *out);

static Node *conv_dict(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, AST_Dict, ts);
  if (k.v.len == 3 && !k.v.data[1].named) not_python(c, ts, "nothing stands before this comma"); // {,}
  for (uint32_t i = 0; i < k.v.len; i++) {
    const Kid *kid = &k.v.data[i];
    if (!kid->named) continue;
    const Kids kk = kids_of(c, kid->ts);
    NodeVec v = {0};
    named_exprs(c, &kk, &v);
    if (kid->kind == TS_pair && v.len == 2) {
      vec_push(c->a, &n->list, v.data[0]);
      vec_push(c->a, &n->list2, v.data[1]);
    } else if (kid->kind == TS_dictionary_splat && v.len == 1) {
      vec_push(c->a, &n->list, node_new(c, AST_Star, kid->ts));
      vec_push(c->a, &n->list2, v.data[0]);
    }
  }
  return n;
}

static Node *conv_list_comp(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, AST_ListComp, ts);
  n->a = expr_by_field(c, &k, TF_body);
  for (uint32_t i = 0; i < k.v.len; i++) {
    const Kid *kid = &k.v.data[i];
    if (kid->kind != TS_for_in_clause && kid->kind != TS_if_clause) continue;
    const Kids kk = kids_of(c, kid->ts);
    Node *cl = node_new(c, kid->kind == TS_for_in_clause ? AST_CompFor : AST_CompIf, kid->ts);
    for (uint32_t j = 0; j < kk.v.len; j++)
      if (kid->kind == TS_for_in_clause && text_is(c, kk.v.data[j].ts, ","))
        not_python(c, kk.v.data[j].ts, "put brackets around what is gone through");
    if (kid->kind == TS_for_in_clause) {
      cl->a = expr_by_field(c, &kk, TF_left);
      cl->b = expr_by_field(c, &kk, TF_right);
    } else {
      NodeVec v = {0};
      named_exprs(c, &kk, &v);
      cl->a = v.len ? v.data[0] : NULL;
    }
    vec_push(c->a, &n->list, cl);
  }
  return n;
}

static Node *conv_items(Conv *c, TSNode ts, AstKind kind) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, kind, ts);
  named_exprs(c, &k, &n->list);
  return n;
}

static Node *conv_first(Conv *c, TSNode ts, const char *what) {
  const Kids k = kids_of(c, ts);
  for (uint32_t i = 0; i < k.v.len; i++)
    if (k.v.data[i].named) return conv_expr(c, k.v.data[i].ts);
  return node_other(c, ts, what);
}

// `x := y` without brackets of its own stands in conditions, arguments and items only.
static void check_named_place(Conv *c, TSNode ts) {
  switch (kind_of(c, ts_node_parent(ts))) {
  case TS_expression_statement:
  case TS_keyword_argument:
  case TS_assignment:
  case TS_augmented_assignment:
  case TS_return_statement:
  case TS_assert_statement:
  case TS_lambda:
  case TS_conditional_expression:
  case TS_if_clause:
  case TS_default_parameter:
  case TS_typed_default_parameter:
  case TS_expression_list: not_python(c, ts, "put brackets around an assignment with ':='"); break;
  default: break;
  }
}

// In an annotation, at any depth: what Python's grammar has in calls only.
static bool holds_splat(TSNode ts) {
  if (!strcmp(ts_node_type(ts), "splat_type")) return true;
  for (uint32_t i = 0; i < ts_node_named_child_count(ts); i++) {
    const TSNode kid = ts_node_named_child(ts, i);
    if (strstr(ts_node_type(kid), "type") && holds_splat(kid)) return true;
  }
  return false;
}

static Node *conv_expr_inner(Conv *c, TSNode ts) {
  const TsKind kind = kind_of(c, ts);
  switch (kind) {
  case TS_identifier: {
    Node *n = node_new(c, AST_Name, ts);
    n->name = name_of(c, ts);
    return n;
  }
  case TS_integer: return conv_int(c, ts);
  case TS_float: return conv_float(c, ts);
  case TS_string: return conv_string(c, ts, false);
  case TS_concatenated_string: return conv_string(c, ts, true);
  case TS_true:
  case TS_false: {
    Node *n = node_new(c, AST_Bool, ts);
    n->op = kind == TS_true;
    return n;
  }
  case TS_none: return node_new(c, AST_None, ts);
  case TS_ellipsis: return node_new(c, AST_Ellipsis, ts);
  case TS_tuple_pattern: { // (x) = ...: only a comma makes a tuple
    const Kids k = kids_of(c, ts);
    const bool one = k.v.len == 3 && k.v.data[1].named;
    if (one && k.v.data[1].kind == TS_list_splat_pattern) not_python(c, ts, "nothing can be unpacked here");
    return one ? conv_expr(c, k.v.data[1].ts) : conv_items(c, ts, AST_Tuple);
  }
  case TS_tuple: {
    Node *n = conv_items(c, ts, AST_Tuple);
    if (n->list.len == 1 && n->list.data[0]->kind == AST_Star && c->text[ts_node_end_byte(ts) - 1] == ')' &&
        kids_of(c, ts).v.len == 3)
      not_python(c, ts, "nothing can be unpacked here");
    return n;
  }
  case TS_expression_list:
  case TS_pattern_list: return conv_items(c, ts, AST_Tuple);
  case TS_list:
  case TS_list_pattern: return conv_items(c, ts, AST_List);
  case TS_dictionary: return conv_dict(c, ts);
  case TS_parenthesized_list_splat:
    not_python(c, ts, "nothing can be unpacked here");
    return node_other(c, ts, "a star in brackets");
  case TS_parenthesized_expression: {
    Node *n = conv_first(c, ts, "an empty expression");
    if (n->kind == AST_Star) not_python(c, ts, "nothing can be unpacked here");
    return n;
  }
  case TS_type:
  case TS_as_pattern_target: return conv_first(c, ts, "an empty expression");
  case TS_list_splat:
  case TS_list_splat_pattern: {
    Node *n = node_new(c, AST_Star, ts);
    n->a = conv_first(c, ts, "an empty *");
    return n;
  }
  case TS_attribute: {
    const Kids k = kids_of(c, ts);
    const Kid *name = kid_by_field(&k, TF_attribute);
    Node *n = node_new(c, AST_Attr, ts);
    n->a = first_by_field(c, &k, TF_object);
    n->name = name ? name_of(c, name->ts) : str_cstr(c->strings, "");
    return star_outside(n);
  }
  case TS_subscript: return conv_subscript(c, ts);
  case TS_slice: return conv_slice(c, ts);
  case TS_call: return conv_call(c, ts);
  case TS_unary_operator:
  case TS_not_operator: {
    const Kids k = kids_of(c, ts);
    Node *n = node_new(c, AST_Unary, ts);
    n->a = expr_by_field(c, &k, TF_argument);
    const char ch = c->text[ts_node_start_byte(ts)];
    n->op = kind == TS_not_operator ? AOP_Not : ch == '-' ? AOP_Neg : ch == '+' ? AOP_Pos : AOP_Invert;
    return n;
  }
  case TS_binary_operator:
  case TS_boolean_operator: {
    const Kids k = kids_of(c, ts);
    const Kid *op = kid_by_field(&k, TF_operator);
    Node *n = node_new(c, kind == TS_binary_operator ? AST_Binary : AST_BoolOp, ts);
    n->a = first_by_field(c, &k, TF_left);
    n->b = expr_by_field(c, &k, TF_right);
    const int o = !op                          ? -1
                  : kind == TS_binary_operator ? binary_op_of(c, op->ts)
                  : text_is(c, op->ts, "and")  ? AOP_And
                                               : AOP_Or;
    if (o < 0) return node_other(c, ts, "this operator");
    n->op = (uint8_t)o;
    return star_outside(n);
  }
  case TS_comparison_operator: return conv_compare(c, ts);
  case TS_conditional_expression: {
    const Kids k = kids_of(c, ts);
    NodeVec v = {0};
    named_exprs(c, &k, &v);
    if (v.len != 3) return node_other(c, ts, "a conditional expression");
    Node *n = node_new(c, AST_IfExp, ts);
    n->b = v.data[0], n->a = v.data[1], n->c = v.data[2];
    return star_outside(n);
  }
  case TS_lambda: {
    const Kids k = kids_of(c, ts);
    const Kid *params = kid_by_field(&k, TF_parameters);
    Node *n = node_new(c, AST_Lambda, ts);
    if (params) conv_params_into(c, params->ts, &n->list);
    n->a = expr_by_field(c, &k, TF_body);
    return n;
  }
  case TS_named_expression: {
    const Kids k = kids_of(c, ts);
    check_named_place(c, ts);
    const Kid *name = kid_by_field(&k, TF_name);
    Node *n = node_new(c, AST_Named, ts);
    n->name = name ? name_of(c, name->ts) : NULL;
    n->a = expr_by_field(c, &k, TF_value);
    return n;
  }
  case TS_list_comprehension:
  case TS_generator_expression: return conv_list_comp(c, ts);
  case TS_set: return node_other(c, ts, "a set");
  case TS_set_comprehension: return node_other(c, ts, "a set comprehension");
  case TS_dictionary_comprehension: return node_other(c, ts, "a dictionary comprehension");
  case TS_await: return node_other(c, ts, "await");
  case TS_yield: return node_other(c, ts, "yield");
  case TS_as_pattern: return node_other(c, ts, "an `as` pattern");
  case TS_assignment:
  case TS_augmented_assignment: not_python(c, ts, "an assignment inside an expression"); break;
  case TS_dictionary_splat:
  case TS_dictionary_splat_pattern: not_python(c, ts, "** unpacks into calls and dictionaries only"); break;
  default: break;
  }
  if (!strcmp(ts_node_type(ts), "constrained_type")) not_python(c, ts, "an annotation has one ':'");
  if (holds_splat(ts)) not_python(c, ts, "nothing can be unpacked here");
  return node_other(c, ts, arena_printf(c->a, "'%s'", ts_node_type(ts)));
}

// One more level of nesting; false (with the error reported once) where there are too many.
static bool enter(Conv *c, TSNode ts) {
  if (c->failed) return false;
  if (++c->depth <= PARSE_MAX_DEPTH) return true;
  c->depth--;
  c->failed = true;
  diag(c->d, DIAG_ERROR, loc_of(c, ts), "the program nests more than %d levels deep", PARSE_MAX_DEPTH);
  diag_hint(c->d, "split the expression or the blocks around it");
  return false;
}

static Node *conv_expr(Conv *c, TSNode ts) {
  if (!enter(c, ts)) return node_other(c, ts, "a nested expression");
  Node *n = conv_expr_inner(c, ts);
  c->depth--;
  return n;
}

// ---- statements ----------------------------------------------------------------------------------
static Node *conv_param(Conv *c, TSNode ts, TsKind kind) {
  Node *p = node_new(c, AST_Param, ts);
  const Kids k = kids_of(c, ts);
  const Kid *name = NULL;
  switch (kind) {
  case TS_identifier: p->name = name_of(c, ts); return p;
  case TS_typed_parameter:
    for (uint32_t i = 0; i < k.v.len && !name; i++)
      if (k.v.data[i].named && k.v.data[i].field != TF_type) name = &k.v.data[i];
    if (name && name->kind == TS_identifier) p->a = expr_by_field(c, &k, TF_type);
    break;
  case TS_default_parameter:
  case TS_typed_default_parameter:
    name = kid_by_field(&k, TF_name);
    p->a = expr_by_field(c, &k, TF_type);
    p->b = expr_by_field(c, &k, TF_value);
    break;
  default:
    for (uint32_t i = 0; i < k.v.len && !name; i++)
      if (k.v.data[i].named) name = &k.v.data[i];
    p->op = kind == TS_dictionary_splat_pattern ? PARAM_STARSTAR : PARAM_STAR;
    break;
  }
  if (name &&
      (name->kind == TS_list_splat_pattern || name->kind == TS_dictionary_splat_pattern)) { // *args: ann
    p->op = name->kind == TS_list_splat_pattern ? PARAM_STAR : PARAM_STARSTAR;
    const Kids kk = kids_of(c, name->ts);
    for (uint32_t i = 0; i < kk.v.len; i++)
      if (kk.v.data[i].named) p->name = name_of(c, kk.v.data[i].ts);
  } else if (name) {
    p->name = name_of(c, name->ts);
  }
  if (!p->name) p->name = str_cstr(c->strings, "_");
  return p;
}

// Two parameters of one name are a syntax error of Python that the grammar does not know.
static void check_param_name(Conv *c, Map *seen, const Node *p) {
  if (map_getp(seen, p->name) && !c->failed) {
    c->failed = true;
    diag(c->d, DIAG_ERROR, p->loc, "syntax error: two parameters are named '%s'", p->name->s);
  }
  map_setp(seen, p->name, p);
}

static void conv_params_into(Conv *c, TSNode ts, NodeVec *out) {
  const Kids k = kids_of(c, ts);
  bool kwonly = false, defaults = false, all = false, slash = false; // behind a *; a default, a **, a / came
  const Kid *bare = NULL;                                            // a * that no name follows yet
  Map seen;
  map_init(&seen, c->a);
  for (uint32_t i = 0; i < k.v.len; i++) {
    const Kid *kid = &k.v.data[i];
    if (kid->kind == TS_keyword_separator) {
      if (kwonly) not_python(c, kid->ts, "a second * among the parameters");
      kwonly = true, bare = kid;
    }
    if (kid->kind == TS_positional_separator && (!out->len || kwonly || all || slash))
      not_python(c, kid->ts, "one / follows at least one parameter and no *");
    slash |= kid->kind == TS_positional_separator;
    if (kid->kind == TS_tuple_pattern) not_python(c, kid->ts, "a parameter is a name, without brackets");
    if (!kid->named || kid->kind == TS_keyword_separator || kid->kind == TS_positional_separator) continue;
    Node *p = conv_param(c, kid->ts, kid->kind);
    if (all) not_python(c, kid->ts, "a parameter follows one with **");
    if (p->op == PARAM_STAR && kwonly) not_python(c, kid->ts, "a second * among the parameters");
    all |= p->op == PARAM_STARSTAR;
    if (p->op == PARAM_PLAIN) bare = NULL;
    if (kwonly && p->op == PARAM_PLAIN) p->op = PARAM_KWONLY;
    if (p->op == PARAM_STAR) kwonly = true;
    if (p->op == PARAM_PLAIN) {
      if (defaults && !p->b)
        not_python(c, kid->ts, "a parameter without a default follows one that has a default");
      defaults = p->b != NULL;
    }
    check_param_name(c, &seen, p);
    vec_push(c->a, out, p);
  }
  if (bare) not_python(c, bare->ts, "no parameter by name follows this *");
}

static Node *conv_funcdef(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  if (k.v.len && text_is(c, k.v.data[0].ts, "async")) return node_other(c, ts, "an async function");
  Node *n = node_new(c, AST_FuncDef, ts);
  const Kid *name = kid_by_field(&k, TF_name), *params = kid_by_field(&k, TF_parameters),
            *body = kid_by_field(&k, TF_body);
  n->name = name ? name_of(c, name->ts) : str_cstr(c->strings, "");
  for (uint32_t i = 0; i < k.v.len; i++)
    if (!strcmp(ts_node_type(k.v.data[i].ts), "type_parameter"))
      not_python(c, k.v.data[i].ts, "type parameters of functions are not supported");
  if (params) conv_params_into(c, params->ts, &n->list);
  n->a = expr_by_field(c, &k, TF_return_type);
  if (body) conv_block(c, body->ts, &n->list2);
  return n;
}

static Node *conv_classdef(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, AST_ClassDef, ts);
  const Kid *name = kid_by_field(&k, TF_name), *bases = kid_by_field(&k, TF_superclasses),
            *body = kid_by_field(&k, TF_body);
  n->name = name ? name_of(c, name->ts) : str_cstr(c->strings, "");
  NodeVec metaclass = {0};
  if (bases) conv_args(c, bases->ts, &n->list, &metaclass);
  if (body) conv_block(c, body->ts, &n->list2);
  return n;
}

static Node *conv_stmt(Conv *c, TSNode ts, TsKind kind);

static Node *conv_decorated(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  const Kid *def = kid_by_field(&k, TF_definition);
  if (!def) return node_other(c, ts, "a decorated definition");
  Node *n = conv_stmt(c, def->ts, def->kind);
  for (uint32_t i = 0; i < k.v.len; i++)
    if (k.v.data[i].kind == TS_decorator)
      vec_push(c->a, &n->list3, conv_first(c, k.v.data[i].ts, "an empty decorator"));
  return n;
}

// `import a.b as c` and `from m import x as y`: the names, one Alias each.
static void conv_import_names(Conv *c, const Kids *k, NodeVec *out) {
  if (k->v.len && text_is(c, vec_last(&k->v).ts, ","))
    not_python(c, vec_last(&k->v).ts, "a comma after the last name needs brackets around the names");
  for (uint32_t i = 0; i < k->v.len; i++) {
    const Kid *kid = &k->v.data[i];
    if (kid->kind == TS_wildcard_import) {
      Node *al = node_new(c, AST_Alias, kid->ts);
      al->name = str_cstr(c->strings, "*");
      vec_push(c->a, out, al);
    }
    if (kid->field != TF_name) continue;
    Node *al = node_new(c, AST_Alias, kid->ts);
    if (kid->kind == TS_aliased_import) {
      const Kids kk = kids_of(c, kid->ts);
      const Kid *name = kid_by_field(&kk, TF_name), *alias = kid_by_field(&kk, TF_alias);
      al->name = name ? dotted_name_of(c, name->ts) : NULL;
      al->name2 = alias ? name_of(c, alias->ts) : NULL;
    } else {
      al->name = dotted_name_of(c, kid->ts);
    }
    if (al->name) vec_push(c->a, out, al);
  }
}

static Node *conv_import_from(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, AST_ImportFrom, ts);
  const Kid *mod = kid_by_field(&k, TF_module_name);
  n->name = str_cstr(c->strings, "");
  if (mod && mod->kind == TS_relative_import) {
    const Kids kk = kids_of(c, mod->ts);
    for (uint32_t i = 0; i < kk.v.len; i++) {
      if (kk.v.data[i].kind == TS_dotted_name) n->name = dotted_name_of(c, kk.v.data[i].ts);
      if (kk.v.data[i].kind == TS_import_prefix) {
        const Str *dots = text_of(c, kk.v.data[i].ts);
        for (uint32_t j = 0; j < dots->len && n->op < 100; j++) n->op += dots->s[j] == '.';
      }
    }
  } else if (mod) {
    n->name = dotted_name_of(c, mod->ts);
  }
  conv_import_names(c, &k, &n->list);
  return n;
}

static Node *conv_if(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *first = node_new(c, AST_If, ts), *at = first;
  first->a = expr_by_field(c, &k, TF_condition);
  const Kid *then = kid_by_field(&k, TF_consequence);
  if (then) conv_block(c, then->ts, &first->list);
  for (uint32_t i = 0; i < k.v.len; i++) {
    const Kid *kid = &k.v.data[i];
    if (kid->kind != TS_elif_clause && kid->kind != TS_else_clause) continue;
    const Kids kk = kids_of(c, kid->ts);
    if (kid->kind == TS_elif_clause) {
      Node *n = node_new(c, AST_If, kid->ts);
      n->a = expr_by_field(c, &kk, TF_condition);
      const Kid *body = kid_by_field(&kk, TF_consequence);
      if (body) conv_block(c, body->ts, &n->list);
      vec_push(c->a, &at->list2, n);
      at = n;
      if (!enter(c, kid->ts)) return first; // an elif nests as an if in an else
    } else {
      const Kid *body = kid_by_field(&kk, TF_body);
      if (body) conv_block(c, body->ts, &at->list2);
    }
  }
  for (const Node *n = first; n != at; n = vec_last(&n->list2)) c->depth--;
  return first;
}

static void conv_else_into(Conv *c, const Kids *k, NodeVec *out) {
  const Kid *els = kid_by_field(k, TF_alternative);
  if (!els) return;
  const Kids kk = kids_of(c, els->ts);
  const Kid *body = kid_by_field(&kk, TF_body);
  if (body) conv_block(c, body->ts, out);
}

static Node *conv_loop(Conv *c, TSNode ts, TsKind kind) {
  const Kids k = kids_of(c, ts);
  if (k.v.len && text_is(c, k.v.data[0].ts, "async")) return node_other(c, ts, "async for");
  Node *n = node_new(c, kind == TS_for_statement ? AST_For : AST_While, ts);
  if (kind == TS_for_statement) {
    n->a = expr_by_field(c, &k, TF_left);
    n->b = expr_by_field(c, &k, TF_right);
  } else {
    n->a = expr_by_field(c, &k, TF_condition);
  }
  const Kid *body = kid_by_field(&k, TF_body);
  if (body) conv_block(c, body->ts, &n->list);
  conv_else_into(c, &k, &n->list2);
  return n;
}

static void conv_with_items(Conv *c, TSNode ts, NodeVec *out) {
  const Kids k = kids_of(c, ts);
  if (kind_of(c, ts) == TS_with_clause && k.v.len && text_is(c, vec_last(&k.v).ts, ","))
    not_python(c, vec_last(&k.v).ts, "a comma after the last item needs brackets around the items");
  for (uint32_t i = 0; i < k.v.len; i++) {
    const Kid *kid = &k.v.data[i];
    if (kid->kind == TS_with_clause) {
      conv_with_items(c, kid->ts, out);
    } else if (kid->kind == TS_with_item) {
      const Kids kk = kids_of(c, kid->ts);
      const Kid *v = kid_by_field(&kk, TF_value);
      Node *item = node_new(c, AST_WithItem, kid->ts);
      if (v && v->kind == TS_as_pattern) {
        const Kids ka = kids_of(c, v->ts);
        for (uint32_t j = 0; j < ka.v.len; j++) {
          if (!ka.v.data[j].named) continue;
          if (ka.v.data[j].field == TF_alias)
            item->b = conv_expr(c, ka.v.data[j].ts);
          else
            item->a = conv_expr(c, ka.v.data[j].ts);
        }
      } else if (v) {
        item->a = conv_expr(c, v->ts);
      }
      vec_push(c->a, out, item);
    }
  }
}

static Node *conv_try(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, AST_Try, ts);
  for (uint32_t i = 0; i < k.v.len; i++) {
    const Kid *kid = &k.v.data[i];
    if (kid->kind == TS_block) conv_block(c, kid->ts, &n->list);
    if (kid->kind != TS_except_clause && kid->kind != TS_except_group_clause && kid->kind != TS_else_clause &&
        kid->kind != TS_finally_clause)
      continue;
    const Kids kk = kids_of(c, kid->ts);
    for (uint32_t j = 0; j < kk.v.len; j++) {
      if (text_is(c, kk.v.data[j].ts, ","))
        not_python(c, kk.v.data[j].ts, "put brackets around several exceptions");
      if (kk.v.data[j].kind == TS_block) conv_block(c, kk.v.data[j].ts, &n->list2);
    }
  }
  return n;
}

static Node *conv_assignment(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  const Kid *left = kid_by_field(&k, TF_left), *right = kid_by_field(&k, TF_right);
  if (kid_by_field(&k, TF_type)) {
    Node *n = node_new(c, AST_AnnAssign, ts);
    n->a = left ? conv_expr(c, left->ts) : NULL;
    n->b = expr_by_field(c, &k, TF_type);
    n->c = right ? conv_expr(c, right->ts) : NULL;
    return n;
  }
  // a = b = c: assignments nest on the right
  Node *n = node_new(c, AST_Assign, ts);
  while (left && right) {
    vec_push(c->a, &n->list, conv_expr(c, left->ts));
    if (right->kind != TS_assignment) break;
    const Kids kk = kids_of(c, right->ts);
    left = kid_by_field(&kk, TF_left), right = kid_by_field(&kk, TF_right);
    if (kid_by_field(&kk, TF_type)) {
      not_python(c, ts, "an annotation inside a chained assignment");
      return node_other(c, ts, "an annotation inside a chained assignment");
    }
  }
  if (!right) return node_other(c, ts, "an assignment without a value");
  n->a = conv_expr(c, right->ts);
  return n;
}

static Node *conv_augmented(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  const Kid *op = kid_by_field(&k, TF_operator);
  Node *n = node_new(c, AST_AugAssign, ts);
  n->a = expr_by_field(c, &k, TF_left);
  n->b = expr_by_field(c, &k, TF_right);
  if (!op) return node_other(c, ts, "an augmented assignment");
  const uint32_t b = ts_node_start_byte(op->ts), e = ts_node_end_byte(op->ts);
  for (int o = AOP_Add; o <= AOP_Shr; o++) {
    const char *t = ast_op_text((AstOp)o);
    if (strlen(t) + 1 == e - b && !memcmp(t, c->text + b, strlen(t))) n->op = (uint8_t)o;
  }
  return n;
}

static Node *conv_expr_stmt(Conv *c, TSNode ts) {
  const Kids k = kids_of(c, ts);
  uint32_t named = 0;
  const Kid *only = NULL;
  for (uint32_t i = 0; i < k.v.len; i++)
    if (k.v.data[i].named) named++, only = &k.v.data[i];
  if (named == 1 && only->kind == TS_assignment) return conv_assignment(c, only->ts);
  if (named == 1 && only->kind == TS_augmented_assignment) return conv_augmented(c, only->ts);
  Node *n = node_new(c, AST_ExprStmt, ts);
  n->a = named == 1 && k.v.len == 1 ? conv_expr(c, only->ts) : conv_items(c, ts, AST_Tuple);
  return n;
}

static Node *conv_leaf_stmt(Conv *c, TSNode ts, AstKind kind) { // return, assert, raise, global
  const Kids k = kids_of(c, ts);
  Node *n = node_new(c, kind, ts);
  NodeVec v = {0};
  named_exprs(c, &k, &v);
  if (kind == AST_Global) {
    n->list = v;
    return n;
  }
  n->a = v.len > 0 ? v.data[0] : NULL;
  for (uint32_t i = 0; kind == AST_Raise && i < k.v.len; i++)
    if (k.v.data[i].kind == TS_expression_list)
      not_python(c, k.v.data[i].ts, "one exception is raised at a time");
  if (kind == AST_Assert) n->b = v.len > 1 ? v.data[1] : NULL;
  return n;
}

static bool is_deletable(const Node *n) {
  if (n->kind != AST_Tuple && n->kind != AST_List)
    return n->kind == AST_Name || n->kind == AST_Attr || n->kind == AST_Subscript || n->kind == AST_Other;
  for (uint32_t i = 0; i < n->list.len; i++)
    if (!is_deletable(n->list.data[i])) return false;
  return true;
}

static Node *conv_delete(Conv *c, TSNode ts) {
  if (!is_deletable(conv_items(c, ts, AST_Tuple)) && !c->failed) not_python(c, ts, "this cannot be deleted");
  return node_other(c, ts, "del");
}

static Node *conv_stmt(Conv *c, TSNode ts, TsKind kind) {
  switch (kind) {
  case TS_expression_statement: return conv_expr_stmt(c, ts);
  case TS_if_statement: return conv_if(c, ts);
  case TS_for_statement:
  case TS_while_statement: return conv_loop(c, ts, kind);
  case TS_with_statement: {
    const Kids k = kids_of(c, ts);
    if (k.v.len && text_is(c, k.v.data[0].ts, "async")) return node_other(c, ts, "async with");
    Node *n = node_new(c, AST_With, ts);
    conv_with_items(c, ts, &n->list);
    const Kid *body = kid_by_field(&k, TF_body);
    if (body) conv_block(c, body->ts, &n->list2);
    return n;
  }
  case TS_return_statement: return conv_leaf_stmt(c, ts, AST_Return);
  case TS_assert_statement: return conv_leaf_stmt(c, ts, AST_Assert);
  case TS_raise_statement: return conv_leaf_stmt(c, ts, AST_Raise);
  case TS_global_statement: return conv_leaf_stmt(c, ts, AST_Global);
  case TS_break_statement: return node_new(c, AST_Break, ts);
  case TS_continue_statement: return node_new(c, AST_Continue, ts);
  case TS_pass_statement: return node_new(c, AST_Pass, ts);
  case TS_function_definition: return conv_funcdef(c, ts);
  case TS_class_definition: return conv_classdef(c, ts);
  case TS_decorated_definition: return conv_decorated(c, ts);
  case TS_import_statement: {
    const Kids k = kids_of(c, ts);
    Node *n = node_new(c, AST_Import, ts);
    conv_import_names(c, &k, &n->list);
    return n;
  }
  case TS_import_from_statement: return conv_import_from(c, ts);
  case TS_future_import_statement: return node_new(c, AST_Pass, ts);
  case TS_try_statement: return conv_try(c, ts);
  case TS_nonlocal_statement: return node_other(c, ts, "nonlocal");
  case TS_delete_statement: return conv_delete(c, ts);
  case TS_print_statement: {
    const Kids k = kids_of(c, ts);
    if (k.v.len > 1 && !strcmp(ts_node_type(k.v.data[1].ts), "chevron")) // (print >> f, x)
      return node_other(c, ts, "Python 2's print");
    not_python(c, ts, "print is a function: print(...)");
    return node_other(c, ts, "Python 2's print");
  }
  case TS_exec_statement:
    not_python(c, ts, "exec is a function: exec(...)");
    return node_other(c, ts, "Python 2's exec");
  case TS_match_statement: return node_other(c, ts, "match");
  case TS_type_alias_statement: return node_other(c, ts, "a type alias");
  default: return node_other(c, ts, arena_printf(c->a, "'%s'", ts_node_type(ts)));
  }
}

static void conv_block(Conv *c, TSNode ts, NodeVec *out) {
  if (!enter(c, ts)) return;
  const Kids k = kids_of(c, ts);
  for (uint32_t i = 0; i < k.v.len && !c->failed; i++)
    if (k.v.data[i].named) vec_push(c->a, out, conv_stmt(c, k.v.data[i].ts, k.v.data[i].kind));
  c->depth--;
}

// ---- errors --------------------------------------------------------------------------------------
// Offset of the first byte that is not UTF-8 (or is NUL), or len.
static size_t bad_utf8(const char *text, size_t len) {
  const unsigned char *s = (const unsigned char *)text;
  for (size_t i = 0; i < len;) {
    const unsigned c = s[i];
    const size_t n = c < 0x80                ? 1
                     : c >= 0xC2 && c < 0xE0 ? 2
                     : c >= 0xE0 && c < 0xF0 ? 3
                     : c >= 0xF0 && c < 0xF5 ? 4
                                             : 0;
    if (!c || !n || i + n > len) return i;
    for (size_t k = 1; k < n; k++)
      if ((s[i + k] & 0xC0) != 0x80) return i;
    if ((c == 0xE0 && s[i + 1] < 0xA0) || (c == 0xED && s[i + 1] > 0x9F) || (c == 0xF0 && s[i + 1] < 0x90) ||
        (c == 0xF4 && s[i + 1] > 0x8F))
      return i;
    i += n;
  }
  return len;
}

static Loc loc_at(uint32_t file, const char *text, size_t off) {
  Loc l = {file, 1, 1, 0};
  for (size_t i = 0; i < off; i++) {
    if (text[i] == '\n')
      l.line++, l.col = 1;
    else
      l.col++;
  }
  l.end_col = l.col + 1;
  return l;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

// Where the string that opens at i ends (past its quotes, or at the end of the line or text where it never closes).
static size_t skip_string(const char *s, size_t i, size_t len) {
  const char q = s[i];
  const bool triple = i + 2 < len && s[i + 1] == q && s[i + 2] == q;
  for (i += triple ? 3 : 1; i < len; i++) {
    if (s[i] == '\\')
      i++;
    else if (s[i] == q && (!triple || (i + 2 < len && s[i + 1] == q && s[i + 2] == q)))
      return i + (triple ? 3 : 1);
    else if (s[i] == '\n' && !triple)
      return i;
  }
  return len;
}

// What tree-sitter 0.20 cannot take is refused before it gets there. It corrupts its heap when a syntax error leaves
// more than 65535 symbols open: brackets nested too deeply, statements of too many tokens. And its Python grammar
// keeps the indentation of open blocks in a byte each: deeper ones would close blocks that they should open.
static bool too_dense(Diags *d, uint32_t file, const char *s, size_t len) {
  size_t tokens = 0, columns = 0; // of this statement; in front of this line
  int depth = 0;
  for (size_t i = 0; i < len;) {
    const char c = s[i];
    if (c == '#') {
      while (i < len && s[i] != '\n') i++;
      continue;
    }
    if (c == '\n') {
      if (!depth && !(i && s[i - 1] == '\\')) tokens = 0;
      columns = 0;
      i++;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      columns = c == ' ' ? columns + 1 : c == '\t' ? columns + 8 : 0;
      i++;
      continue;
    }
    const size_t start = i;
    if (!tokens && !depth && columns > PARSE_MAX_INDENT) {
      diag(d, DIAG_ERROR, loc_at(file, s, start),
           "too many levels of blocks: this line is indented by %zu columns, and at most %d can be read",
           columns, PARSE_MAX_INDENT);
      diag_hint(d, "move the inner blocks into a function of their own, or indent each by less");
      return true;
    }
    if (c == '\'' || c == '"')
      i = skip_string(s, i, len);
    else if (is_word(c))
      while (i < len && is_word(s[i])) i++;
    else
      i++;
    if (c == '(' || c == '[' || c == '{') depth++;
    if ((c == ')' || c == ']' || c == '}') && depth) depth--;
    if (depth > PARSE_MAX_DEPTH) {
      diag(d, DIAG_ERROR, loc_at(file, s, start), "the program nests more than %d levels deep",
           PARSE_MAX_DEPTH);
      diag_hint(d, "split the expression or the blocks around it");
      return true;
    }
    if (++tokens > PARSE_MAX_TOKENS) {
      diag(d, DIAG_ERROR, loc_at(file, s, start), "a single statement of more than %d tokens",
           PARSE_MAX_TOKENS);
      return true;
    }
  }
  return false;
}

// Finds the first place in the text that the grammar could not read.
static void report_syntax_error(Conv *c, TSNode root) {
  TSNode at = root;
  TSTreeCursor cur = ts_tree_cursor_new(root);
  for (bool found = false; !found;) {
    const TSNode n = ts_tree_cursor_current_node(&cur);
    at = n;
    if (ts_node_is_missing(n)) break;
    if (!ts_tree_cursor_goto_first_child(&cur)) break;
    bool inner = false;
    do {
      const TSNode k = ts_tree_cursor_current_node(&cur);
      if (ts_node_has_error(k) || ts_node_is_missing(k)) {
        inner = true;
        break;
      }
    } while (ts_tree_cursor_goto_next_sibling(&cur));
    found = !inner;
  }
  ts_tree_cursor_delete(&cur);
  const Source *src = &c->d->sources.data[c->file];
  if (syntax_explain(c->a, c->d, c->file, src->text, src->len)) return;
  if (ts_node_is_missing(at)) {
    diag(c->d, DIAG_ERROR, loc_of(c, at), "syntax error: missing '%s'", ts_node_type(at));
    return;
  }
  diag(c->d, DIAG_ERROR, loc_of(c, at), "syntax error: this is not Python");
}

// Statements, and the parts of them that begin lines of their own.
static bool begins_line(TsKind kind) {
  switch (kind) {
  case TS_expression_statement:
  case TS_if_statement:
  case TS_elif_clause:
  case TS_else_clause:
  case TS_for_statement:
  case TS_while_statement:
  case TS_with_statement:
  case TS_return_statement:
  case TS_break_statement:
  case TS_continue_statement:
  case TS_pass_statement:
  case TS_assert_statement:
  case TS_raise_statement:
  case TS_try_statement:
  case TS_except_clause:
  case TS_except_group_clause:
  case TS_finally_clause:
  case TS_global_statement:
  case TS_nonlocal_statement:
  case TS_delete_statement:
  case TS_print_statement:
  case TS_exec_statement:
  case TS_match_statement:
  case TS_case_clause:
  case TS_type_alias_statement:
  case TS_function_definition:
  case TS_decorated_definition:
  case TS_decorator:
  case TS_class_definition:
  case TS_import_statement:
  case TS_import_from_statement:
  case TS_future_import_statement: return true;
  default: return false;
  }
}

// Lines that no statement begins with. Where the grammar sees no end of a statement it reads on in the next line: `if a`
// and `: b` become one, and so do `a,` and `b = c`. The first kind is reported. The second is two statements: with a
// semicolon in place of the line break in the flat text the grammar will see that, and *split is set.
static bool report_joined_lines(Conv *c, TSNode root, bool *split) {
  const SyntaxLine *const first = c->lines.v.data, *const end = first + c->lines.v.len, *line = first;
  const Source *src = &c->d->sources.data[c->file];
  TsKind last = TS_unknown; // of the statement that began the line before
  TSTreeCursor *cur = &c->cursor;
  ts_tree_cursor_reset(cur, root);
  if (line < end && !line->start && !strncmp(src->text, "\xef\xbb\xbf", 3))
    c->lines.v.data[0].start = 3; // behind the mark of the byte order
  for (bool more = c->lines.known; line < end && c->lines.known;) {
    const TSNode n = more ? ts_tree_cursor_current_node(cur) : root;
    const TsKind kind = kind_of(c, n);
    const uint32_t start = more ? ts_node_start_byte(n) : c->len;
    if (line->start < start && kind != TS_comment) {
      const bool comma = line > first && src->text[line[-1].last] == ',' && last == TS_expression_statement;
      if (!comma || c->split) {
        diag(c->d, DIAG_ERROR, loc_at(c->file, src->text, line->start),
             "syntax error: this line goes on with the statement of the line above");
        diag_hint(c->d, "put brackets around what belongs together");
        return true;
      }
      if (!*split) c->lines.flat = arena_copy(c->a, c->lines.flat, c->len);
      char *flat = (char *)c->lines.flat;
      memset(flat + line[-1].last + 1, ' ', line->start - line[-1].last - 1);
      flat[line[-1].last + 1] = ';';
      *split = true;
      line++;
      continue;
    }
    if (begins_line(kind) && line->start == start) last = kind, line++;
    if ((begins_line(kind) || kind == TS_module || kind == TS_block) && ts_tree_cursor_goto_first_child(cur))
      continue;
    while (more && !ts_tree_cursor_goto_next_sibling(cur)) more = ts_tree_cursor_goto_parent(cur);
  }
  return false;
}

static void free_tree(Conv *c) {
  if (!c->tree) return;
  ts_tree_cursor_delete(&c->cursor);
  ts_tree_delete(c->tree);
  c->tree = NULL;
}

// The tree of the flat text, in place of the one before.
static Status parse_flat(Conv *c) {
  TSParser *parser = ts_parser_new();
  if (!parser || !ts_parser_set_language(parser, tree_sitter_python())) {
    if (parser) ts_parser_delete(parser);
    return ST_INTERNAL;
  }
  ts_parser_set_timeout_micros(parser, 10 * 1000 * 1000);
  TSTree *tree = ts_parser_parse_string(parser, NULL, c->lines.flat, c->len);
  ts_parser_delete(parser);
  if (!tree) {
    diag(c->d, DIAG_ERROR, (Loc){c->file, 1, 1, 0}, "the parser gave up after 10 seconds");
    return ST_COMPILE;
  }
  free_tree(c);
  c->tree = tree;
  c->cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
  return ST_OK;
}

static Status convert(Conv *c, Node **module) {
  const TSLanguage *lang = tree_sitter_python();
  const uint32_t nsym = ts_language_symbol_count(lang), nfield = ts_language_field_count(lang);
  c->kinds = arena_array(c->a, uint8_t, nsym);
  c->fields = arena_array(c->a, uint8_t, nfield + 1);
  _Static_assert(TS_COUNT < 256, "TsKind fits a byte");
  for (uint32_t s = 0; s < nsym; s++) {
    if (ts_language_symbol_type(lang, (TSSymbol)s) != TSSymbolTypeRegular) continue;
    const char *name = ts_language_symbol_name(lang, (TSSymbol)s);
    for (int k = 1; k < TS_COUNT; k++)
      if (!strcmp(name, ts_kind_names[k])) c->kinds[s] = (uint8_t)k;
  }
#define FIELD(name) \
  { \
    const TSFieldId id = ts_language_field_id_for_name(lang, #name, (uint32_t)strlen(#name)); \
    if (id) c->fields[id] = TF_##name; \
  }
#include "front/grammar.def"
#undef FIELD
  c->fields[0] = TF_none;
  vec_push(c->a, &c->rows, 0);
  for (uint32_t i = 0; i < c->len; i++)
    if (c->text[i] == '\n') vec_push(c->a, &c->rows, i + 1);
  for (bool again = true; again; c->split = again) {
    const Status st = parse_flat(c);
    if (st) return st;
    const TSNode root = ts_tree_root_node(c->tree);
    if (ts_node_has_error(root)) {
      report_syntax_error(c, root);
      return ST_COMPILE;
    }
    again = false;
    if (report_joined_lines(c, root, &again)) return ST_COMPILE;
  }
  const TSNode root = ts_tree_root_node(c->tree);
  *module = node_new(c, AST_Module, root);
  conv_block(c, root, &(*module)->list);
  return c->failed || syntax_tree(c->d, *module) ? ST_COMPILE : ST_OK;
}

Status parse_python(Arena *a, Diags *d, Strings *strings, uint32_t file, Node **module) {
  const Source *src = &d->sources.data[file];
  *module = NULL;
  if (src->len > PARSE_MAX_BYTES) {
    diag(d, DIAG_ERROR, (Loc){file, 0, 0, 0}, "%s holds %zu bytes; the largest source is %d MiB", src->name,
         src->len, PARSE_MAX_BYTES >> 20);
    return ST_COMPILE;
  }
  const size_t bad = bad_utf8(src->text, src->len);
  if (bad < src->len) {
    diag(d, DIAG_ERROR, loc_at(file, src->text, bad),
         src->text[bad] ? "byte 0x%02x is not UTF-8 text" : "a NUL byte (0x%02x) is not text",
         (unsigned char)src->text[bad]);
    return ST_COMPILE;
  }
  for (size_t i = 0; i + 1 < src->len; i++)
    if (src->text[i] == '\r' && src->text[i + 1] != '\n') {
      diag(d, DIAG_ERROR, loc_at(file, src->text, i),
           "syntax error: a line ends with a carriage return alone");
      diag_hint(d, "save the file with line feeds");
      return ST_COMPILE;
    }
  SyntaxLines lines;
  if (too_dense(d, file, src->text, src->len) || syntax_indents(a, d, file, src->text, src->len, &lines))
    return ST_COMPILE;
  Conv *c = arena_new(a, Conv);
  *c = (Conv){.a = a, .d = d, .strings = strings, .file = file, .text = src->text, .len = (uint32_t)src->len};
  c->lines = lines;
  // The arena's escape must not pass over the tree: catch it here, free the tree, go on outward.
  Escape *outer = a->escape, inner;
  if (ESCAPE_TRY(&inner)) {
    a->escape = outer;
    free_tree(c);
    escape_now(outer, inner.status, "%s", inner.message);
  }
  a->escape = &inner;
  const Status st = convert(c, module);
  a->escape = outer;
  free_tree(c);
  return st;
}
