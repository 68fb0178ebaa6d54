// What the Python grammar's parser.c expects of "tree_sitter/parser.h" beyond what Debian's libtree-sitter 0.20
// installs: sorted ranges of characters, a table form of the lexer's ADVANCE, and REDUCE with four plain
// arguments. The parse tables' ABI is the same (14). Only the grammar's build sees this folder.
#ifndef DITRON_GRAMMAR_PARSER_H
#define DITRON_GRAMMAR_PARSER_H

#include_next <tree_sitter/parser.h>

typedef struct TSCharacterRange {
  int32_t start, end; // both included
} TSCharacterRange;

// Is c in one of n sorted, disjoint ranges?
static inline bool set_contains(const TSCharacterRange *r, uint32_t n, int32_t c) {
  uint32_t lo = 0, hi = n;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (c > r[mid].end)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < n && c >= r[lo].start;
}

// ADVANCE_MAP(c1, s1, c2, s2, ...): as `if (lookahead == c1) ADVANCE(s1);` for each pair. Stands inside the
// lexer function and uses its labels and variables, as ADVANCE does.
#define ADVANCE_MAP(...) \
  { \
    static const uint16_t pairs[] = {__VA_ARGS__}; \
    for (uint32_t i = 0; i < sizeof pairs / sizeof *pairs; i += 2) \
      if (pairs[i] == lookahead) { \
        state = pairs[i + 1]; \
        goto next_state; \
      } \
  }

#undef REDUCE
#define REDUCE(sym, children, precedence, production) \
  { \
    { \
      .reduce = { \
        .type = TSParseActionTypeReduce, \
        .child_count = children, \
        .symbol = sym, \
        .dynamic_precedence = precedence, \
        .production_id = production \
      } \
    } \
  }

#endif
