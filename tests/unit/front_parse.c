// The parser: what each piece of syntax becomes, and one clear error for each kind of text that is no program.
#include "harness/test.h"

#include "front/parse.h"
#include <stdlib.h>
#include <string.h>

typedef struct Parsed {
  Arena a;
  Diags d;
  Node *module;
  Status st;
} Parsed;

static Parsed *parse_n(Escape *esc, const char *text, size_t len) {
  Parsed *p = calloc(1, sizeof *p);
  assert_non_null(p);
  arena_init(&p->a, 0, esc);
  diags_init(&p->d, &p->a);
  Strings *s = strings_new(&p->a);
  const uint32_t f = diags_source(&p->d, "k.py", text, len);
  p->st = parse_python(&p->a, &p->d, s, f, &p->module);
  return p;
}

static void parsed_free(Parsed *p) {
  arena_free(&p->a);
  free(p);
}

// The dump of `text`, without the module's own line, must be `want`.
static void expect(const char *text, const char *want) {
  Escape esc;
  if (ESCAPE_TRY(&esc)) fail_msg("%s", esc.message);
  Parsed *p = parse_n(&esc, text, strlen(text));
  if (p->st != ST_OK) fail_msg("%s", diags_render(&p->d, &p->a));
  const char *got = ast_dump(p->module, &p->a);
  got = strchr(got, '\n') + 1;
  if (strcmp(got, want)) fail_msg("source:\n%s\ngot:\n%s\nwant:\n%s", text, got, want);
  parsed_free(p);
}

// Exactly one error whose rendering holds `want`.
static void expect_error(const char *text, size_t len, const char *want) {
  Escape esc;
  if (ESCAPE_TRY(&esc)) fail_msg("%s", esc.message);
  Parsed *p = parse_n(&esc, text, len);
  assert_int_equal(p->st, ST_COMPILE);
  assert_int_equal(p->d.errors, 1);
  const char *got = diags_render(&p->d, &p->a);
  if (!strstr(got, want)) fail_msg("got:\n%s\nwant: %s", got, want);
  parsed_free(p);
}

static void test_expressions(void **state) {
  (void)state;
  expect("x[:, None]\n", "  body: ExprStmt @1:1\n"
                         "    value: Subscript op=1 @1:1\n"
                         "      of: Name x @1:1\n"
                         "      items: Slice @1:3\n"
                         "      items: None @1:6\n");
  expect("a < b <= c\n", "  body: ExprStmt @1:1\n"
                         "    value: Compare Lt @1:1\n"
                         "      lhs: Name a @1:1\n"
                         "      rhs: Name b @1:5\n"
                         "      more: Compare Le @1:10\n"
                         "        rhs: Name c @1:10\n");
  expect("a is not  None and not -b\n", "  body: ExprStmt @1:1\n"
                                        "    value: BoolOp And @1:1\n"
                                        "      lhs: Compare IsNot @1:1\n"
                                        "        lhs: Name a @1:1\n"
                                        "        rhs: None @1:11\n"
                                        "      rhs: Unary Not @1:20\n"
                                        "        value: Unary Neg @1:24\n"
                                        "          value: Name b @1:25\n");
  expect("f(*a, k=1, **b)\n", "  body: ExprStmt @1:1\n"
                              "    value: Call @1:1\n"
                              "      fn: Name f @1:1\n"
                              "      args: Star @1:3\n"
                              "        value: Name a @1:4\n"
                              "      kwargs: Keyword k @1:7\n"
                              "        value: Int 1 @1:9\n"
                              "      kwargs: Keyword @1:12\n"
                              "        value: Name b @1:14\n");
  expect("a if b else c\n", "  body: ExprStmt @1:1\n"
                            "    value: IfExp @1:1\n"
                            "      cond: Name b @1:6\n"
                            "      then: Name a @1:1\n"
                            "      els: Name c @1:13\n");
}

static void test_literals(void **state) {
  (void)state;
  expect("0x_ff; 1_000; 0b101; 0xffffffffffffffff\n",
         "  body: ExprStmt @1:1\n    value: Int 255 @1:1\n"
         "  body: ExprStmt @1:8\n    value: Int 1000 @1:8\n"
         "  body: ExprStmt @1:15\n    value: Int 5 @1:15\n"
         "  body: ExprStmt @1:22\n    value: Int 18446744073709551615 @1:22\n");
  expect("1.5e3; .5\n", "  body: ExprStmt @1:1\n    value: Float 1500 @1:1\n"
                        "  body: ExprStmt @1:8\n    value: Float 0.5 @1:8\n");
  expect("'a\\n\\x41' \"b\"; r'\\n'; ''\n", "  body: ExprStmt @1:1\n    value: Str \"a\\nAb\" @1:1\n"
                                            "  body: ExprStmt @1:16\n    value: Str \"\\\\n\" @1:16\n"
                                            "  body: ExprStmt @1:23\n    value: Str \"\" @1:23\n");
  expect("f'p {x!r:>4}{{}} {y=}'\n", "  body: ExprStmt @1:1\n"
                                     "    value: FStr @1:1\n"
                                     "      parts: Str \"p \" @1:1\n"
                                     "      parts: FValue op=114 >4 @1:5\n"
                                     "        value: Name x @1:6\n"
                                     "      parts: Str \"{} y=\" @1:1\n"
                                     "      parts: FValue op=114 @1:18\n"
                                     "        value: Name y @1:19\n");
  expect("1j; b'x'\n", "  body: ExprStmt @1:1\n    value: Other a complex number or a suffixed integer @1:1\n"
                       "  body: ExprStmt @1:5\n    value: Other a bytes literal @1:5\n");
}

static void test_statements(void **state) {
  (void)state;
  expect("a = b, c = 1, 2\nx: int = 3\ny //= 2\n", "  body: Assign @1:1\n"
                                                   "    value: Tuple @1:12\n"
                                                   "      items: Int 1 @1:12\n"
                                                   "      items: Int 2 @1:15\n"
                                                   "    targets: Name a @1:1\n"
                                                   "    targets: Tuple @1:5\n"
                                                   "      items: Name b @1:5\n"
                                                   "      items: Name c @1:8\n"
                                                   "  body: AnnAssign @2:1\n"
                                                   "    target: Name x @2:1\n"
                                                   "    ann: Name int @2:4\n"
                                                   "    value: Int 3 @2:10\n"
                                                   "  body: AugAssign FloorDiv @3:1\n"
                                                   "    target: Name y @3:1\n"
                                                   "    value: Int 2 @3:7\n");
  expect("if a:\n  pass\nelif b:\n  break # c\nelse:\n  continue\n", "  body: If @1:1\n"
                                                                     "    cond: Name a @1:4\n"
                                                                     "    then: Pass @2:3\n"
                                                                     "    els: If @3:1\n"
                                                                     "      cond: Name b @3:6\n"
                                                                     "      then: Break @4:3\n"
                                                                     "      els: Continue @6:3\n");
  expect("with f() as (t, n), g: pass\n", "  body: With @1:1\n"
                                          "    items: WithItem @1:6\n"
                                          "      value: Call @1:6\n"
                                          "        fn: Name f @1:6\n"
                                          "      target: Tuple @1:13\n"
                                          "        items: Name t @1:14\n"
                                          "        items: Name n @1:17\n"
                                          "    items: WithItem @1:21\n"
                                          "      value: Name g @1:21\n"
                                          "    body: Pass @1:24\n");
  expect("@a.jit(x=1)\ndef f(p, q: c = 1, *r, s=2, **t) -> int:\n  return\n",
         "  body: FuncDef f @2:1\n"
         "    returns: Name int @2:37\n"
         "    params: Param p @2:7\n"
         "    params: Param q @2:10\n"
         "      ann: Name c @2:13\n"
         "      dflt: Int 1 @2:17\n"
         "    params: Param op=1 r @2:20\n"
         "    params: Param op=2 s @2:24\n"
         "      dflt: Int 2 @2:26\n"
         "    params: Param op=3 t @2:29\n"
         "    body: Return @3:3\n"
         "    decorators: Call @1:2\n"
         "      fn: Attr jit @1:2\n"
         "        of: Name a @1:2\n"
         "      kwargs: Keyword x @1:8\n"
         "        value: Int 1 @1:10\n");
  expect("import a.b as c, d\nfrom ..x.y import (q as r, s)\nfrom z import *\n",
         "  body: Import @1:1\n    names: Alias a.b as c @1:8\n    names: Alias d @1:18\n"
         "  body: ImportFrom op=2 x.y @2:1\n    names: Alias q as r @2:20\n    names: Alias s @2:28\n"
         "  body: ImportFrom z @3:1\n    names: Alias * @3:15\n");
}

// A line break within brackets is a blank, elsewhere the end of a statement.
static void test_lines(void **state) {
  (void)state;
  expect("a,\nb = c\n", "  body: ExprStmt @1:1\n"
                        "    value: Tuple @1:1\n"
                        "      items: Name a @1:1\n"
                        "  body: Assign @2:1\n"
                        "    value: Name c @2:5\n"
                        "    targets: Name b @2:1\n");
  expect("a = b, # so\n\nc = d\n", "  body: Assign @1:1\n"
                                   "    value: Tuple @1:5\n"
                                   "      items: Name b @1:5\n"
                                   "    targets: Name a @1:1\n"
                                   "  body: Assign @3:1\n"
                                   "    value: Name d @3:5\n"
                                   "    targets: Name c @3:1\n");
  expect("if a:\n    b[ # so\n0] = 1\n    c\n", "  body: If @1:1\n"
                                                "    cond: Name a @1:4\n"
                                                "    then: Assign @2:5\n"
                                                "      value: Int 1 @3:6\n"
                                                "      targets: Subscript @2:5\n"
                                                "        of: Name b @2:5\n"
                                                "        items: Int 0 @3:1\n"
                                                "    then: ExprStmt @4:5\n"
                                                "      value: Name c @4:5\n");
  expect("\\\na\n", "  body: ExprStmt @2:1\n    value: Name a @2:1\n");
  static const char *const joined[] = {"a, b\n= c\n", "if a\n: b\n", "a:\n int\n", "if a: b,\nc = d\n"};
  for (size_t i = 0; i < DT_COUNTOF(joined); i++) expect_error(joined[i], strlen(joined[i]), "k.py:2:");
  expect_error("if a:\n        b\n\tc\n", 18, "k.py:3:2: error: syntax error: whether this line");
}

static void test_bad_text(void **state) {
  (void)state;
  expect_error("def f(:\n  pass\n", 15, "syntax error");
  expect_error("x = (1 +\n", 9, "k.py:1:");
  expect_error("x = '\xff'\n", 8, "byte 0xff is not UTF-8");
  expect_error("x = '\xed\xa0\x80'\n", 10, "byte 0xed is not UTF-8");
  expect_error("a\0b", 3, "NUL");
  expect_error("(*a) = b\n", 9, "k.py:1:1: error: syntax error: nothing can be unpacked here");
  expect_error("{,}\n", 4, "k.py:1:1: error: syntax error: nothing stands before this comma");
}

static void test_deep_and_large(void **state) {
  (void)state;
  const size_t n = 40000, all = 2 * n + 1;
  char *deep = malloc(all);
  memset(deep, '(', all);
  expect_error(deep, all, "nests more than");
  deep[n] = '1';
  memset(deep + n + 1, ')', n);
  expect_error(deep, all, "nests more than");
  for (size_t i = 0; i < all; i++) deep[i] = i % 2 ? '+' : 'a';
  expect_error(deep, all, "more than 50000 tokens");
  expect_error(deep, 10001, "nests more than");
  for (size_t i = 0; i < all; i++) deep[i] = '-';
  expect_error(deep, all, "more than 50000 tokens");
  expect_error(deep, 30000, "");
  free(deep);
  const size_t big = (size_t)PARSE_MAX_BYTES + 1;
  char *text = malloc(big);
  memset(text, '#', big);
  expect_error(text, big, "the largest source is 16 MiB");
  free(text);
}

// `blocks` blocks inside one another, each `step` further in; the innermost holds `inner`.
static void expect_nested(int blocks, const char *step, const char *inner, const char *error) {
  Escape esc;
  if (ESCAPE_TRY(&esc)) fail_msg("%s", esc.message);
  Arena a;
  arena_init(&a, 0, &esc);
  Vec(char) v = {0};
  for (int i = 0; i <= blocks; i++) {
    for (int k = 0; k < i; k++)
      for (const char *s = step; *s; s++) vec_push(&a, &v, *s);
    for (const char *s = i < blocks ? "if x:\n" : inner; *s; s++) vec_push(&a, &v, *s);
  }
  if (error) {
    expect_error(v.data, v.len, error);
  } else {
    Parsed *p = parse_n(&esc, v.data, v.len);
    if (p->st != ST_OK) fail_msg("%s", diags_render(&p->d, &p->a));
    parsed_free(p);
  }
  arena_free(&a);
}

static void test_deep_blocks(void **state) {
  (void)state;
  expect_nested(255, " ", "pass\n", NULL);
  expect_nested(256, " ", "pass\n", "k.py:257:257: error: too many levels of blocks");
  expect_nested(63, "    ", "pass\n", NULL);
  expect_nested(300, "    ", "pass\n", "k.py:65:257: error: too many levels of blocks");
  expect_nested(31, "\t", "pass\n", NULL);
  expect_nested(32, "\t", "pass\n", "k.py:33:33: error: too many levels of blocks");
  // what opens no statement may stand as far to the right as it likes
#define FAR \
  "                                                                                                    "
  expect_nested(1, "    ", "f(\n" FAR FAR FAR ")\n", NULL);
  expect_nested(1, "    ", "pass\n" FAR FAR FAR "# so\n", NULL);
  expect_nested(1, "    ", "x = '''\n" FAR FAR FAR "x'''\n", NULL);
  expect_nested(1, "    ", "x = \\\n" FAR FAR FAR "1\n", NULL);
#undef FAR
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_expressions),    cmocka_unit_test(test_literals),
      cmocka_unit_test(test_statements),     cmocka_unit_test(test_bad_text),
      cmocka_unit_test(test_deep_and_large), cmocka_unit_test(test_deep_blocks),
      cmocka_unit_test(test_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
