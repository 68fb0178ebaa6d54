// diag: collects diagnostics and renders them as text.
//
//     kernel.py:3:14: error: 'foo' is not defined
//         y = x + foo(2)
//                 ^~~
//       hint: import it, or pass it as an argument
//
// The source is shown as it can be seen: tabs become spaces up to the next multiple of 8, wide characters take
// two columns, control characters and bytes that are not UTF-8 become U+FFFD (so that a source cannot send
// escapes to the terminal), and of a long line only the part around the span is shown.
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { TAB = 8, SHOWN = 140, BEFORE = 50 }; // columns: of a tab, of the longest line, kept before the span

void diags_init(Diags *d, Arena *a) { *d = (Diags){.arena = a, .max_errors = 20}; }

uint32_t diags_source(Diags *d, const char *name, const char *text, size_t len) {
  char *copy = arena_alloc(d->arena, len + 1, 1);
  if (len) memcpy(copy, text, len);
  vec_push(d->arena, &d->sources, ((Source){arena_strdup(d->arena, name), copy, len}));
  return d->sources.len - 1;
}

void diag(Diags *d, DiagLevel level, Loc loc, const char *fmt, ...) {
  if (level == DIAG_ERROR) d->errors++;
  if (level != DIAG_NOTE) d->dropping = level == DIAG_ERROR && d->errors > d->max_errors;
  if (d->dropping) return;
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(d->arena, fmt, ap);
  va_end(ap);
  vec_push(d->arena, &d->list, ((Diag){level, loc, text, NULL}));
}

void diag_hint(Diags *d, const char *fmt, ...) {
  if (d->dropping || !d->list.len) return;
  va_list ap;
  va_start(ap, fmt);
  vec_last(&d->list).hint = arena_vprintf(d->arena, fmt, ap);
  va_end(ap);
}

// ---- the source line -----------------------------------------------------------------------------

// One character of a line: how many bytes it takes, what it is, how many columns it fills.
typedef struct Glyph {
  uint32_t code, bytes, columns;
} Glyph;

static bool in_ranges(uint32_t c, const uint32_t (*r)[2], size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (c >= r[i][0] && c <= r[i][1]) return true;
  }
  return false;
}

static uint32_t columns_of(uint32_t c) {
  static const uint32_t none[][2] = {
      {0x300, 0x36f}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x206f}, {0xfe00, 0xfe0f}};
  static const uint32_t two[][2] = {
      {0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
      {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
  if (c < 0x300) return 1;
  if (in_ranges(c, none, DT_COUNTOF(none))) return 0;
  return in_ranges(c, two, DT_COUNTOF(two)) ? 2 : 1;
}

// The character at p; what is not valid UTF-8 or cannot be shown is one byte of U+FFFD.
static Glyph glyph_at(const unsigned char *p, const unsigned char *end) {
  const Glyph bad = {0xfffd, 1, 1};
  const uint32_t c = *p;
  if (c < 0x80) return c == '\t' ? (Glyph){c, 1, TAB} : c < 0x20 || c == 0x7f ? bad : (Glyph){c, 1, 1};
  const uint32_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < 0xc2 || c > 0xf4 || (size_t)(end - p) < n) return bad;
  uint32_t code = c & (0x7f >> n);
  for (uint32_t i = 1; i < n; i++) {
    if ((p[i] & 0xc0) != 0x80) return bad;
    code = code << 6 | (p[i] & 0x3f);
  }
  // overlong forms, surrogates, and marks that turn the direction of text
  if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || code < 0xa0) return bad;
  if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return (Glyph){0xfffd, n, 1};
  return (Glyph){code, n, columns_of(code)};
}

typedef Vec(char) Text;

static void put_bytes(Arena *a, Text *t, const void *p, size_t n) {
  vec_reserve(a, t, t->len + n);
  if (n) memcpy(t->data + t->len, p, n);
  t->len += (uint32_t)n;
}

static void put(Arena *a, Text *t, const char *s) { put_bytes(a, t, s, strlen(s)); }

static void put_times(Arena *a, Text *t, char c, size_t n) {
  vec_reserve(a, t, t->len + n);
  if (n) memset(t->data + t->len, c, n);
  t->len += (uint32_t)n;
}

typedef struct Line {
  const unsigned char *p, *end; // without the line feed
} Line;

static Line line_of(const Source *s, uint32_t number) {
  const char *p = s->text, *end = s->text + s->len;
  for (; number > 1; number--) {
    const char *lf = memchr(p, '\n', (size_t)(end - p));
    if (!lf) return (Line){(const unsigned char *)end, (const unsigned char *)end};
    p = lf + 1;
  }
  const char *lf = memchr(p, '\n', (size_t)(end - p));
  if (lf) end = lf;
  if (end > p && end[-1] == '\r') end--;
  return (Line){(const unsigned char *)p, (const unsigned char *)end};
}

static size_t width_at(Glyph g, size_t column) { return g.code == '\t' ? TAB - column % TAB : g.columns; }

// Where a span lies on the screen: columns count from 0.
typedef struct Place {
  size_t first, past; // columns
  size_t nth;         // characters before it
} Place;

static Place place_of(Line line, Loc loc) {
  Place at = {0};
  size_t column = 0;
  const unsigned char *const from = line.p + (loc.col - 1), *const to = loc.end_col > loc.col
                                                                            ? line.p + (loc.end_col - 1)
                                                                            : from + 1;
  const unsigned char *p = line.p;
  while (p < line.end && p < to) {
    const Glyph g = glyph_at(p, line.end);
    if (p < from && p + g.bytes <= from) {
      at.nth++;
      at.first = column + width_at(g, column);
    }
    column += width_at(g, column);
    p += g.bytes;
  }
  at.past = column > at.first ? column : at.first + 1;
  return at;
}

// The line and the carets under it, cut to a window of SHOWN columns around the span.
static void put_line(Arena *a, Text *t, Line line, const Place *at) {
  const size_t cut = at && at->past > SHOWN && at->first > BEFORE ? at->first - BEFORE : 0;
  size_t column = 0;
  put(a, t, cut ? "  ..." : "  ");
  for (const unsigned char *p = line.p; p < line.end;) {
    const Glyph g = glyph_at(p, line.end);
    const size_t w = width_at(g, column);
    if (column + w > cut + SHOWN) {
      put(a, t, "...");
      break;
    }
    if (column >= cut && g.code == '\t')
      put_times(a, t, ' ', w);
    else if (column >= cut && g.code == 0xfffd)
      put(a, t, "\xef\xbf\xbd");
    else if (column >= cut)
      put_bytes(a, t, p, g.bytes);
    else if (column + w > cut)
      put_times(a, t, ' ', column + w - cut); // cut through a wide character
    column += w;
    p += g.bytes;
  }
  put(a, t, "\n");
  if (!at) return;
  const size_t last = cut + SHOWN, past = at->past < last ? at->past : last;
  put_times(a, t, ' ', at->first - cut + (cut ? 5 : 2));
  put(a, t, "^");
  if (past > at->first + 1) put_times(a, t, '~', past - at->first - 1);
  put(a, t, "\n");
}

static void put_diag(const Diags *d, const Diag *g, Arena *a, Text *t) {
  static const char *const names[] = {
      [DIAG_ERROR] = "error", [DIAG_WARNING] = "warning", [DIAG_NOTE] = "note", [DIAG_REMARK] = "remark"};
  const bool located = g->loc.line > 0 && g->loc.file < d->sources.len;
  const Source *src = located ? &d->sources.data[g->loc.file] : NULL;
  const Line line = located ? line_of(src, g->loc.line) : (Line){0};
  const bool placed = located && g->loc.col > 0 && g->loc.col - 1 <= (size_t)(line.end - line.p);
  const Place at = placed ? place_of(line, g->loc) : (Place){0};
  if (located) put(a, t, arena_printf(a, "%s:%u:", src->name, g->loc.line));
  if (located && g->loc.col) put(a, t, arena_printf(a, "%zu:", placed ? at.nth + 1 : (size_t)g->loc.col));
  put(a, t, arena_printf(a, "%s%s: %s\n", located ? " " : "", names[g->level], g->text));
  if (located && line.p < line.end) put_line(a, t, line, placed ? &at : NULL);
  if (g->hint) put(a, t, arena_printf(a, "  hint: %s\n", g->hint));
}

char *diag_render(const Diags *d, const Diag *g, Arena *a) {
  Text t = {0};
  put_diag(d, g, a, &t);
  put_bytes(a, &t, "", 1);
  return t.data;
}

char *diags_render(const Diags *d, Arena *a) {
  Text t = {0};
  for (uint32_t i = 0; i < d->list.len; i++) put_diag(d, &d->list.data[i], a, &t);
  if (d->errors > d->max_errors) {
    const uint32_t more = d->errors - d->max_errors;
    put(a, &t, arena_printf(a, "%u more error%s\n", more, more == 1 ? "" : "s"));
  }
  put_bytes(a, &t, "", 1);
  return t.data;
}
