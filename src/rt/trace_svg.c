// trace_svg: the timeline as one picture that needs nothing else. Per rank and stream a row for launches, one for copies
// and as many as needed, up to four, for waits; time runs to the right; hovering names an event.
//
//   rank 0   |  0        100        200 us
//   compute  |  [ ag_gemm           ]
//   copies   |  [==][==][==]
//   waits    |   [~]   [~]
#include "rt/rt_impl.h"

#include <math.h>
#include <stdio.h>

enum {
  LEFT = 210,
  WIDTH = 1000,
  RIGHT = 70,
  TOP = 96,
  ROW = 22,
  THIN = 12,
  GAP = 6,
  RANK_GAP = 16,
  WAIT_ROWS = 4
};
#define SMALLEST 0.7 // of a drawn event; what is smaller is drawn together

typedef enum Lane { LANE_COMPUTE, LANE_COPY, LANE_WAIT, LANES } Lane;
static const char *const lane_names[LANES] = {"compute", "copies", "waits"};

static Lane lane_of(const TraceEvent *e) {
  return e->kind == TRACE_LAUNCH ? LANE_COMPUTE : e->kind == TRACE_COPY ? LANE_COPY : LANE_WAIT;
}

typedef struct Picture {
  TraceOut *o;
  const RtTeam *team;
  double per_ns; // pixels
  double y;
} Picture;

static double x_of(const Picture *p, uint64_t ns) { return LEFT + (double)ns * p->per_ns; }

static void say_time(TraceOut *o, double ns) {
  if (ns < 1e3)
    rt_out(o, "%.0f ns", ns);
  else if (ns < 1e6)
    rt_out(o, "%.4g us", ns * 1e-3);
  else if (ns < 1e9)
    rt_out(o, "%.4g ms", ns * 1e-6);
  else
    rt_out(o, "%.4g s", ns * 1e-9);
}

// A colour by name that stays the same from run to run, so that kernels are told apart.
static const char *colour_of(const char *name) {
  static const char *const cold[] = {"#3b7dd8", "#2a9d8f", "#6a5acd", "#3a9ecb",
                                     "#5b8c5a", "#4056a1", "#7a6fbe", "#2f7f86"};
  return cold[hash_bytes(name, strlen(name), 1) % DT_COUNTOF(cold)];
}

static void draw_title(Picture *p, const TraceEvent *e, uint32_t together, uint64_t end) {
  TraceOut *o = p->o;
  rt_out(o, "<title>");
  rt_out_escaped(o, e->name, true);
  switch (e->kind) {
  case TRACE_LAUNCH: rt_out(o, ", grid %u x %u x %u", e->pid[0], e->pid[1], e->pid[2]); break;
  case TRACE_WAIT: rt_out(o, ", program (%u, %u, %u) waits", e->pid[0], e->pid[1], e->pid[2]); break;
  case TRACE_HOLD: rt_out(o, ", the stream waits"); break;
  default: rt_out(o, ", %.4g KiB", (double)e->bytes / 1024); break;
  }
  if (together > 1) rt_out(o, ", and %u more", together - 1);
  rt_out(o, "\nfrom ");
  say_time(o, (double)e->begin);
  rt_out(o, " for ");
  say_time(o, (double)(end - e->begin));
  if (e->kind == TRACE_COPY && together == 1 && e->end > e->begin)
    rt_out(o, ", %.3g GB/s", (double)e->bytes / (double)(e->end - e->begin));
  rt_out(o, "</title>");
}

static void draw_event(Picture *p, const TraceEvent *e, uint32_t together, uint64_t end, double y, double h) {
  static const char *const classes[] = {"l", "w", "c", "h"};
  TraceOut *o = p->o;
  const double x = x_of(p, e->begin), w = fmax(x_of(p, end) - x, SMALLEST);
  rt_out(o, "<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"", classes[e->kind], x, y,
         w, h);
  if (e->kind == TRACE_LAUNCH) rt_out(o, " style=\"fill:%s\"", colour_of(e->name));
  rt_out(o, ">");
  draw_title(p, e, together, end);
  rt_out(o, "</rect>\n");
  if (e->kind != TRACE_LAUNCH || w < 7 * (double)strlen(e->name) + 8) return;
  rt_out(o, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\">", x + 5, y + h - 7);
  rt_out_escaped(o, e->name, true);
  rt_out(o, "</text>\n");
}

// Draws items[0..n), sorted by begin, of one lane; overlapping ones side by side in up to `rows` rows. Returns rows used.
static uint32_t draw_lane(Picture *p, const TraceItem *items, uint32_t n, Lane lane, uint32_t rows,
                          double h) {
  struct {
    const TraceEvent *first;
    uint64_t end;
    uint32_t together;
  } open[WAIT_ROWS] = {0};
  uint32_t used = 0;
  for (uint32_t i = 0; i < n; i++) {
    const TraceEvent *e = &items[i].e;
    if (e->kind == TRACE_MARK || lane_of(e) != lane) continue;
    uint32_t r = 0;
    while (r + 1 < rows && open[r].first && open[r].end > e->begin) r++;
    if (open[r].first) {
      const double gap = x_of(p, e->begin) - x_of(p, open[r].end),
                   width = x_of(p, e->end) - x_of(p, e->begin);
      if (gap < 0 || (gap < SMALLEST && width < SMALLEST)) { // no room, or too small to be told apart
        if (e->end > open[r].end) open[r].end = e->end;
        open[r].together++;
        continue;
      }
      draw_event(p, open[r].first, open[r].together, open[r].end, p->y + r * (h + 1), h);
    }
    open[r].first = e;
    open[r].end = e->end;
    open[r].together = 1;
    if (r + 1 > used) used = r + 1;
  }
  for (uint32_t r = 0; r < used; r++)
    draw_event(p, open[r].first, open[r].together, open[r].end, p->y + r * (h + 1), h);
  return used;
}

// Share of the time in which something of the lane was going on.
static double busy_share(const TraceItem *items, uint32_t n, Lane lane, uint64_t all) {
  uint64_t busy = 0, until = 0;
  for (uint32_t i = 0; i < n; i++) {
    const TraceEvent *e = &items[i].e;
    if (e->kind == TRACE_MARK || lane_of(e) != lane || e->end <= until) continue;
    busy += e->end - (e->begin > until ? e->begin : until);
    until = e->end;
  }
  return all ? (double)busy / (double)all : 0;
}

static void draw_stream(Picture *p, const TraceItem *items, uint32_t n, uint64_t all) {
  for (Lane lane = 0; lane < LANES; lane++) {
    const double share = busy_share(items, n, lane, all);
    if (share == 0) continue;
    const double h = lane == LANE_WAIT ? THIN : ROW;
    const double top = p->y;
    const uint32_t rows = draw_lane(p, items, n, lane, lane == LANE_WAIT ? WAIT_ROWS : 1, h);
    rt_out(p->o, "<text class=\"d\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 12,
           top + h - (lane == LANE_WAIT ? 2 : 7));
    rt_out_escaped(p->o, rt_trace_stream(p->team, items), true);
    rt_out(p->o, " %s</text>\n", lane_names[lane]);
    rt_out(p->o, "<text class=\"d\" x=\"%d\" y=\"%.1f\">", LEFT + WIDTH + 10,
           top + h - (lane == LANE_WAIT ? 2 : 7));
    rt_out(p->o, share < 0.01 ? "&lt;1%%</text>\n" : "%.0f%%</text>\n", share * 100);
    p->y += rows * (h + 1) + GAP - 1;
  }
}

static void draw_marks(Picture *p, const TraceItem *items, uint32_t n, double top, double bottom) {
  for (uint32_t i = 0; i < n; i++) {
    const TraceEvent *e = &items[i].e;
    if (e->kind != TRACE_MARK) continue;
    rt_out(p->o, "<line class=\"m\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%.1f\" y2=\"%.1f\"><title>",
           x_of(p, e->begin), x_of(p, e->begin), top, bottom);
    rt_out_escaped(p->o, e->name, true);
    rt_out(p->o, "</title></line>\n");
  }
}

static void draw_rank(Picture *p, const TraceItem *items, uint32_t n, uint64_t all) {
  const double top = p->y;
  rt_out(p->o, "<text class=\"r\" x=\"16\" y=\"%.1f\">rank %d</text>\n", top + 15, items[0].rank);
  for (uint32_t i = 0; i < n;) {
    uint32_t k = i;
    while (k < n && items[k].e.stream == items[i].e.stream) k++;
    draw_stream(p, items + i, k - i, all);
    i = k;
  }
  if (p->y < top + ROW) p->y = top + ROW;
  draw_marks(p, items, n, top - 3, p->y);
  rt_out(p->o, "<line class=\"a\" x1=\"16\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT + WIDTH + RIGHT - 16,
         p->y + RANK_GAP / 2.0 - 3, p->y + RANK_GAP / 2.0 - 3);
  p->y += RANK_GAP;
}

// ---- frame -------------------------------------------------------------------------------------------------------
static const char style[] =
    "<style>text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:#24292f}"
    ".bg{fill:#fff}.t{font-size:17px;font-weight:600}.r{font-weight:600;font-size:13px}.d{fill:#6e7781;font-size:11px}"
    ".n{fill:#fff;font-size:11px;pointer-events:none}.a{stroke:#d8dee4}.g{stroke:#eaeef2}"
    ".l{rx:2px}.c{fill:#e8a33d;rx:2px}.w{fill:#d1495b;fill-opacity:.72}.h{fill:#8d6cab;fill-opacity:.8}"
    ".m{stroke:#1a7f37;stroke-width:1.5}rect:hover{stroke:#24292f;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bg{fill:#0d1117}.d{fill:#8b949e}.n{fill:#fff}.a{stroke:#30363d}"
    ".g{stroke:#21262d}rect:hover{stroke:#fff}}</style>\n";

static double tick_step(double all_ns) {
  const double rough = fmax(all_ns, 1) / 10, base = pow(10, floor(log10(rough)));
  const double m = rough / base;
  return base * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
}

static void draw_axis(Picture *p, double all_ns, double bottom) {
  const double step = tick_step(all_ns);
  for (double t = 0; t <= all_ns * 1.0001; t += step) {
    const double x = LEFT + t * p->per_ns;
    rt_out(
        p->o,
        "<line class=\"g\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%.1f\"/><text class=\"d\" x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">",
        x, x, TOP - 12, bottom, x, TOP - 18);
    say_time(p->o, t);
    rt_out(p->o, "</text>\n");
  }
}

static void draw_legend(Picture *p) {
  static const struct {
    const char *name, *look;
  } keys[] = {{"launch", "fill:#3b7dd8"},
              {"copy", "fill:#e8a33d"},
              {"a program waits", "fill:#d1495b;fill-opacity:.72"},
              {"the stream waits", "fill:#8d6cab;fill-opacity:.8"},
              {"mark", "fill:#1a7f37"}};
  double x = LEFT;
  for (size_t i = 0; i < DT_COUNTOF(keys); i++) {
    rt_out(
        p->o,
        "<rect x=\"%.0f\" y=\"42\" width=\"12\" height=\"12\" rx=\"2\" style=\"%s\"/><text x=\"%.0f\" y=\"52\">%s</text>\n",
        x, keys[i].look, x + 18, keys[i].name);
    x += 44 + 6.6 * (double)strlen(keys[i].name);
  }
}

// What the body's height will be is known only after it is drawn, so it is drawn into a text of its own first.
void rt_trace_svg(TraceOut *o, const RtTeam *team, const TraceItem *items, uint32_t n) {
  const int world = team->world;
  uint64_t all = 1;
  for (uint32_t i = 0; i < n; i++) {
    if (items[i].e.end > all) all = items[i].e.end;
  }
  TraceOut body = {.arena = o->arena};
  Picture p = {&body, team, WIDTH / (double)all, TOP};
  for (uint32_t i = 0; i < n;) {
    uint32_t k = i;
    while (k < n && items[k].rank == items[i].rank) k++;
    draw_rank(&p, items + i, k - i, all);
    i = k;
  }
  const int height = (int)p.y + 12, width = LEFT + WIDTH + RIGHT;
  rt_out(o, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n",
         width, height, width, height);
  rt_out(o, "%s", "<title>Ditron timeline</title>\n");
  for (size_t i = 0; i + 1 < sizeof style; i++) vec_push(o->arena, &o->text, style[i]);
  rt_out(
      o,
      "<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n<text class=\"t\" x=\"16\" y=\"28\">Ditron timeline</text>\n",
      width, height);
  rt_out(o, "<text class=\"d\" x=\"%d\" y=\"28\" text-anchor=\"end\">%d rank%s, %u events, ", width - 16,
         world, world == 1 ? "" : "s", n);
  say_time(o, (double)all);
  rt_out(o, "</text>\n");
  p.o = o;
  draw_legend(&p);
  draw_axis(&p, (double)all, p.y - RANK_GAP / 2.0);
  for (uint32_t i = 0; i < body.text.len; i++) vec_push(o->arena, &o->text, body.text.data[i]);
  rt_out(o, "</svg>\n");
}
