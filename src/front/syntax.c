// What the grammar does not say. Indentation that fits no block is refused here, in every text: the grammar takes
// some of it, and then lines land in other blocks than Python would ever put them. And of text that the grammar
// refused, this says what is wrong: strings that never end, brackets that do not match, a block's ':' that is missing.
// It looks at brackets, quotes and the beginnings of lines, and leaves the rest to the parser's own finding.
#include "front/parse.h"

#include <string.h>

enum { MAX_OPEN = 1024, MAX_LEVELS = 256 };

// Columns in front of a line, as Python counts them: tabs end at multiples of 8, or are one column wide. Two lines that
// compare in another way by the second count than by the first are aligned on some screens only.
typedef struct Column {
  int wide, narrow;
} Column;

typedef struct Scan {
  Arena *a;
  Diags *d;
  uint32_t file;
  const char *s;
  size_t len;
  size_t open[MAX_OPEN]; // where the brackets open now began
  int depth;
  Column level[MAX_LEVELS]; // of the blocks open now
  int levels;
  bool opens;         // the last line ended with ':'
  size_t colon;       // where it is
  size_t bare;        // the end of the last line, where it begins a block but has no ':'; or 0
  SyntaxLines *lines; // found on the way, with what else is wrong left to the grammar; or NULL
  char *flat;         // a copy of the text, once something in it is blanked
} Scan;

static Loc at(const Scan *k, size_t off) {
  Loc l = {k->file, 1, 1, 0};
  for (size_t i = 0; i < off; i++) {
    if (k->s[i] == '\n')
      l.line++, l.col = 1;
    else
      l.col++;
  }
  l.end_col = l.col + 1;
  return l;
}

static bool say(const Scan *k, size_t off, const char *hint, const char *text) {
  diag(k->d, DIAG_ERROR, at(k, off), "syntax error: %s", text);
  if (hint) diag_hint(k->d, "%s", hint);
  return true;
}

// Blanks characters [from, to) of the flat text where brackets are open.
static void blank(Scan *k, size_t from, size_t to) {
  if (!k->depth || !k->lines) return;
  if (!k->flat) k->flat = arena_copy(k->a, k->s, k->len);
  memset(k->flat + from, ' ', to - from);
}

// Past the string that opens at i; len where it never closes.
static size_t string_end(const Scan *k, size_t i) {
  const char q = k->s[i];
  const bool triple = i + 2 < k->len && k->s[i + 1] == q && k->s[i + 2] == q;
  for (i += triple ? 3 : 1; i < k->len; i++) {
    if (k->s[i] == '\\')
      i++;
    else if (k->s[i] == '\n' && !triple)
      return k->len;
    else if (k->s[i] == q && (!triple || (i + 2 < k->len && k->s[i + 1] == q && k->s[i + 2] == q)))
      return i + (triple ? 3 : 1);
  }
  return k->len;
}

// One character outside of strings and comments.
static enum { GOOD, LONE, OTHER } bracket(Scan *k, size_t i) {
  static const char opening[] = "([{", closing[] = ")]}";
  const char c = k->s[i];
  if (c && strchr(opening, c) && k->depth < MAX_OPEN) k->open[k->depth++] = i;
  const char *close = c ? strchr(closing, c) : NULL;
  if (!close) return GOOD;
  if (!k->depth) return LONE;
  return k->s[k->open[--k->depth]] == opening[close - closing] ? GOOD : OTHER;
}

// Does a statement of those characters begin a block? Only words that never begin another statement.
static bool begins_block(const char *s, size_t n) {
  static const char *const words[] = {"if",   "elif", "else",  "for",    "while",  "def",
                                      "with", "try",  "class", "except", "finally"};
  size_t w = 0;
  while (w < n && s[w] >= 'a' && s[w] <= 'z') w++;
  if (w < n && ((s[w] >= '0' && s[w] <= '9') || s[w] == '_' || (s[w] >= 'A' && s[w] <= 'Z'))) return false;
  for (size_t i = 0; i < DT_COUNTOF(words); i++)
    if (strlen(words[i]) == w && !memcmp(words[i], s, w)) return true;
  return false;
}

// Does a statement of those characters want more? The grammar looks for it in the next line, Python does not.
static bool open_ended(const char *s, size_t n) {
  static const char *const words[] = {"and", "or", "not", "in", "is", "lambda"};
  size_t w = n;
  while (w && s[w - 1] >= 'a' && s[w - 1] <= 'z') w--;
  if (w < n) {
    const bool whole = !w || s[w - 1] == ' ' || s[w - 1] == ')' || s[w - 1] == ']';
    for (size_t i = 0; i < DT_COUNTOF(words); i++)
      if (whole && strlen(words[i]) == n - w && !memcmp(words[i], s + w, n - w)) return true;
    return false;
  }
  const char c = s[n - 1], before = n > 1 ? s[n - 2] : ' ';
  if (c == '.') return before != '.' && !(before >= '0' && before <= '9') && before != '_';
  if (c == '*' && n > 8 && !memcmp(s + n - 8, "import *", 8)) return false;
  return strchr("=+-*/%&|^<>~@", c) != NULL;
}

static const char no_colon[] = "':' is missing at the end of this line";
static const char mixed[] = "whether this line is indented as the ones above depends on how wide a tab is";
static const char one_kind[] = "indent with blanks alone";

// The beginning of a statement at offset i, in that column.
static bool statement(Scan *k, size_t i, Column column) {
  const Column now = k->level[k->levels - 1];
  if (k->opens && column.wide <= now.wide)
    return say(k, i, NULL,
               "a block was begun in the line before, so this one must be indented further than that line");
  if (column.wide > now.wide && k->bare) return say(k, k->bare, NULL, no_colon);
  if (!k->opens && column.wide > now.wide)
    return say(k, i, "give it the indentation of the line above",
               "this line is indented, but begins no block");
  if (k->opens && column.narrow <= now.narrow) return say(k, i, one_kind, mixed);
  if (k->opens && k->levels < MAX_LEVELS) k->level[k->levels++] = column;
  while (k->levels > 1 && k->level[k->levels - 1].wide > column.wide) k->levels--;
  if (k->level[k->levels - 1].wide != column.wide)
    return say(k, i, "give it the indentation of the block that it belongs to",
               "the indentation of this line fits none of the blocks around it");
  return k->level[k->levels - 1].narrow != column.narrow && say(k, i, one_kind, mixed);
}

// Whole lines, brackets and continued ones taken together. True: something was reported. Where lines are asked for,
// text that is wrong in another way is left to the grammar.
static bool explain(Scan *k) {
  for (size_t i = 0; i < k->len;) {
    Column column = {0, 0};
    for (; i < k->len && (k->s[i] == ' ' || k->s[i] == '\t' || k->s[i] == '\f'); i++) {
      column.wide = k->s[i] == '\t' ? (column.wide / 8 + 1) * 8 : column.wide + 1;
      column.narrow++;
      if (k->s[i] == '\f') column = (Column){0, 0};
    }
    if (i >= k->len) break;
    if (k->s[i] == '\n' || k->s[i] == '\r' || k->s[i] == '#') {
      while (i < k->len && k->s[i] != '\n') i++;
      i++;
      continue;
    }
    if (statement(k, i, column)) return true;
    const size_t start = i;
    size_t last = i, first = k->len; // of what is no blank
    bool colon = false;
    while (i < k->len && (k->s[i] != '\n' || k->depth)) {
      const char c = k->s[i];
      if (c == '#') {
        const size_t from = i;
        while (i < k->len && k->s[i] != '\n') i++;
        blank(k, from, i);
        continue;
      }
      if (c == '\'' || c == '"') {
        const size_t end = string_end(k, i);
        if (end >= k->len && (k->s[k->len - 1] != c || end == i + 1))
          return !k->lines && say(k, i, NULL, "this string never ends");
        first = i < first ? i : first;
        last = end - 1;
        i = end;
        continue;
      }
      if (c == '`') // a string, says the grammar
        return say(k, i, "strings stand in ' or in \"", "'`' has no meaning here");
      if (c == '\\' && i + 1 < k->len) {
        const size_t from = i;
        i += k->s[i + 1] == '\r' && i + 2 < k->len && k->s[i + 2] == '\n' ? 3 : 2;
        if (k->s[i - 1] == '\n') blank(k, from, i);
        continue;
      }
      switch (bracket(k, i)) {
      case GOOD: break;
      case LONE: return !k->lines && say(k, i, NULL, "this bracket closes nothing");
      case OTHER:
        if (k->lines) return false;
        say(k, i, NULL, "this bracket does not match the last one that is open");
        diag(k->d, DIAG_NOTE, at(k, k->open[k->depth]), "which is here");
        return true;
      }
      if (c == ':' && !k->depth) colon = true;
      if (c != ' ' && c != '\t' && c != '\r' && c != '\f' && c != '\n') {
        first = i < first ? i : first;
        last = i;
      }
      if (c == '\n') blank(k, i, i + 1);
      i++;
    }
    if (k->depth && i >= k->len) {
      return !k->lines && say(k, k->open[k->depth - 1], NULL, "this bracket is never closed");
    }
    k->bare = !colon && begins_block(k->s + start, last + 1 - start) ? last : 0;
    if (k->bare && !k->lines) return say(k, last, NULL, no_colon);
    if (open_ended(k->s + start, last + 1 - start))
      return say(k, last, "put brackets around what goes on in the next line",
                 "this line ends in the middle of an expression");
    if (k->lines && first < k->len)
      vec_push(k->a, &k->lines->v, ((SyntaxLine){(uint32_t)first, (uint32_t)last}));
    k->opens = k->s[last] == ':';
    k->colon = last;
    i++;
  }
  if (k->lines) k->lines->known = true, k->lines->flat = k->flat ? k->flat : k->s;
  return k->opens && say(k, k->colon, NULL, "a block begins here, but nothing follows");
}

static bool scan(Arena *a, Diags *d, uint32_t file, const char *text, size_t len, SyntaxLines *lines) {
  Scan *k = arena_new(a, Scan);
  k->lines = lines;
  k->a = a;
  k->d = d;
  k->file = file;
  k->s = text;
  k->len = len;
  k->levels = 1;
  return len && explain(k);
}

bool syntax_indents(Arena *a, Diags *d, uint32_t file, const char *text, size_t len, SyntaxLines *lines) {
  *lines = (SyntaxLines){.flat = text};
  return scan(a, d, file, text, len, lines);
}
bool syntax_explain(Arena *a, Diags *d, uint32_t file, const char *text, size_t len) {
  return scan(a, d, file, text, len, NULL);
}
