// Source text to syntax tree. parse.c is the only file that knows tree-sitter.
#ifndef DITRON_FRONT_PARSE_H
#define DITRON_FRONT_PARSE_H

#include "front/ast.h"

enum {
  PARSE_MAX_BYTES = 16 << 20, // a larger source is refused
  PARSE_MAX_DEPTH = 600,      // nesting of expressions and blocks together
  PARSE_MAX_TOKENS = 50000,   // of one statement
  PARSE_MAX_INDENT = 255,     // columns in front of a statement, a tab counting 8
};

// Parses Python text registered as source `file` in d. On ST_OK *module is an AST_Module; otherwise exactly one error
// was added to d: text that is too large, not UTF-8, not Python, or nested too deeply.
Status parse_python(Arena *a, Diags *d, Strings *strings, uint32_t file, Node **module);

// The lines of a text as Python counts them: what brackets or a backslash continue is one, blanks and comments are none.
typedef struct SyntaxLine {
  uint32_t start, last; // offsets of its first and last character that are neither blank nor comment
} SyntaxLine;
typedef struct SyntaxLines {
  Vec(SyntaxLine) v;
  const char *flat; // the text, where line breaks and comments within brackets are blanks
  bool known;       // false: its brackets or quotes do not match, so these are not all
} SyntaxLines;

// syntax.c. Reports lines whose indentation fits no block; false: there is none, and *lines are found.
bool syntax_indents(Arena *a, Diags *d, uint32_t file, const char *text, size_t len, SyntaxLines *lines);
// strict.c. Reports what Python refuses although the grammar takes it; false: there is none.
bool syntax_tree(Diags *d, const Node *module);
// Reports what is wrong with text that the grammar refused, where it is one of the common mistakes; else false.
bool syntax_explain(Arena *a, Diags *d, uint32_t file, const char *text, size_t len);

#endif
