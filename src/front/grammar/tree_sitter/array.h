// The growable array that the Python grammar's scanner.c expects to find as "tree_sitter/array.h". The grammar's
// source package carries no such header and Debian's libtree-sitter installs none, so this is ours: the few
// operations that the scanner calls, under the names it calls them by. Only the grammar's build sees this folder.
//
// When memory ends a push is dropped: the scanner then sees fewer open strings or indents, and the parser reports
// a syntax error instead of the process ending.
#ifndef DITRON_GRAMMAR_ARRAY_H
#define DITRON_GRAMMAR_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define Array(T) \
  struct { \
    T *contents; \
    uint32_t size, capacity; \
  }
#define array_init(a) ((a)->contents = NULL, (a)->size = (a)->capacity = 0)
#define array_get(a, i) (&(a)->contents[i])
#define array_back(a) (&(a)->contents[(a)->size - 1])
#define array_pop(a) ((a)->contents[--(a)->size])
#define array_clear(a) ((a)->size = 0)
#define array_reserve(a, n) \
  ((void)grammar_array_fit((void **)&(a)->contents, &(a)->capacity, (uint32_t)(n), sizeof *(a)->contents))
#define array_push(a, x) \
  ((void)(grammar_array_fit((void **)&(a)->contents, &(a)->capacity, (a)->size + 1, \
                            sizeof *(a)->contents) && \
          ((a)->contents[(a)->size++] = (x), true)))
#define array_delete(a) (free((a)->contents), array_init(a))

// Makes room for n elements; false when memory ended.
static inline bool grammar_array_fit(void **contents, uint32_t *capacity, uint32_t n, size_t elem) {
  if (n <= *capacity) return true;
  uint32_t want = *capacity * 2 > n ? *capacity * 2 : n < 8 ? 8 : n;
  void *p = realloc(*contents, want * elem);
  if (!p) return false;
  *contents = p;
  *capacity = want;
  return true;
}

#endif
