// trace: the timeline. Each rank keeps its latest events in a ring in the common block; whoever writes the file reads the
// rings of all ranks. Times are CLOCK_MONOTONIC, which all processes of a host share.
#include "rt/rt_impl.h"

#include <stdio.h>
#include <stdlib.h>

void rt_trace(RtRank *r, TraceKind k, uint32_t stream, const uint32_t pid[3], uint64_t begin, uint64_t end,
              uint64_t bytes, const char *name) {
  ControlRank *c = r->control;
  TraceEvent *e =
      &c->trace[atomic_fetch_add_explicit(&c->trace_next, 1, memory_order_relaxed) % RT_TRACE_EVENTS];
  atomic_store_explicit(&e->ready, 0, memory_order_relaxed);
  e->begin = begin;
  e->end = end;
  e->bytes = bytes;
  e->kind = k;
  e->stream = stream;
  for (int i = 0; i < 3; i++) e->pid[i] = pid ? pid[i] : 0;
  const size_t n = strnlen(name, sizeof e->name - 1);
  memcpy(e->name, name, n);
  e->name[n] = 0;
  atomic_store_explicit(&e->ready, 1, memory_order_release);
}

void rt_trace_enable(RtTeam *t, bool on) { atomic_store(&t->tracing, on); }

void rt_trace_mark(RtRank *r, const char *text) {
  const uint64_t now = os_now_ns();
  if (rt_tracing(r)) rt_trace(r, TRACE_MARK, 0, NULL, now, now, 0, text);
}

// ---- text --------------------------------------------------------------------------------------------------
void rt_out(TraceOut *o, const char *fmt, ...) {
  char piece[512];
  va_list ap;
  va_start(ap, fmt);
  const int n = vsnprintf(piece, sizeof piece, fmt, ap);
  va_end(ap);
  const uint32_t len = n < 0 ? 0 : n < (int)sizeof piece ? (uint32_t)n : (uint32_t)sizeof piece - 1;
  vec_reserve(o->arena, &o->text, o->text.len + len);
  memcpy(o->text.data + o->text.len, piece, len);
  o->text.len += len;
}

void rt_out_escaped(TraceOut *o, const char *s, bool xml) {
  for (; *s; s++) {
    const unsigned char c = (unsigned char)*s;
    if (c < 0x20)
      rt_out(o, xml ? " " : "\\u%04x", c);
    else if (xml && (c == '&' || c == '<' || c == '>' || c == '"'))
      rt_out(o, "&#%u;", c);
    else if (!xml && (c == '"' || c == '\\'))
      rt_out(o, "\\%c", c);
    else
      vec_push(o->arena, &o->text, (char)c);
  }
}

// ---- collecting ----------------------------------------------------------------------------------------------
static int in_order(const void *a, const void *b) {
  const TraceItem *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  if (x->e.stream != y->e.stream) return x->e.stream < y->e.stream ? -1 : 1;
  if (x->e.begin != y->e.begin) return x->e.begin < y->e.begin ? -1 : 1;
  return x->e.end < y->e.end ? -1 : x->e.end > y->e.end;
}

static TraceItem *collect(const RtTeam *t, Arena *a, uint32_t *count) {
  uint32_t n = 0;
  for (int i = 0; i < t->world; i++) {
    const uint64_t have = atomic_load(&rt_control_rank(t, i)->trace_next);
    n += have < RT_TRACE_EVENTS ? (uint32_t)have : RT_TRACE_EVENTS;
  }
  TraceItem *items = arena_array(a, TraceItem, n ? n : 1);
  uint32_t k = 0;
  uint64_t zero = UINT64_MAX;
  for (int i = 0; i < t->world; i++) {
    ControlRank *c = rt_control_rank(t, i);
    for (uint32_t j = 0; j < RT_TRACE_EVENTS && k < n; j++) {
      if (!atomic_load_explicit(&c->trace[j].ready, memory_order_acquire)) continue;
      items[k].rank = i;
      memcpy(&items[k].e, &c->trace[j], sizeof(TraceEvent));
      if (items[k].e.begin < zero) zero = items[k].e.begin;
      k++;
    }
  }
  for (uint32_t i = 0; i < k; i++) {
    items[i].e.begin -= zero;
    items[i].e.end -= zero;
    if (items[i].e.end < items[i].e.begin) items[i].e.end = items[i].e.begin;
  }
  qsort(items, k, sizeof *items, in_order);
  *count = k;
  return items;
}

const char *rt_trace_stream(const RtTeam *t, const TraceItem *it) {
  return rt_control_rank(t, it->rank)->stream_label[it->e.stream % RT_MAX_STREAMS];
}

// ---- JSON, as chrome://tracing and ui.perfetto.dev read it -----------------------------------------------------
enum { LANE_COMPUTE, LANE_COPY, LANES };

static void json_names(TraceOut *o, const RtTeam *t, const TraceItem *items, uint32_t n) {
  static const char *const lanes[LANES] = {"compute", "copies"};
  int rank = -1, stream = -1;
  for (uint32_t i = 0; i < n; i++) {
    if (items[i].rank != rank) {
      rank = items[i].rank;
      stream = -1;
      rt_out(o, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}},\n",
             rank, rank);
    }
    if ((int)items[i].e.stream == stream) continue;
    stream = (int)items[i].e.stream;
    for (int lane = 0; lane < LANES; lane++) {
      rt_out(o, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"", rank,
             stream * LANES + lane);
      rt_out_escaped(o, rt_trace_stream(t, &items[i]), false);
      rt_out(o, " %s\"}},\n", lanes[lane]);
    }
  }
}

static void json_event(TraceOut *o, const TraceItem *it, uint32_t id) {
  static const char *const kinds[] = {"launch", "wait", "copy", "hold", "mark"};
  const TraceEvent *e = &it->e;
  const double ts = (double)e->begin * 1e-3, dur = (double)(e->end - e->begin) * 1e-3;
  const bool async = e->kind == TRACE_WAIT || e->kind == TRACE_HOLD; // waits of several instances overlap
  const uint32_t tid = e->stream * LANES + (e->kind == TRACE_COPY ? LANE_COPY : LANE_COMPUTE);
  rt_out(o, "{\"name\":\"");
  rt_out_escaped(o, e->name, false);
  rt_out(o, "\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,", kinds[e->kind], it->rank, tid, ts);
  if (e->kind == TRACE_MARK) {
    rt_out(o, "\"ph\":\"i\",\"s\":\"p\"},\n");
    return;
  }
  if (async)
    rt_out(o, "\"ph\":\"b\",\"id\":%u,", id);
  else
    rt_out(o, "\"ph\":\"X\",\"dur\":%.3f,", dur);
  if (e->kind == TRACE_COPY)
    rt_out(o, "\"args\":{\"bytes\":%llu}},\n", (unsigned long long)e->bytes);
  else
    rt_out(o, "\"args\":{\"%s\":\"%u,%u,%u\"}},\n", e->kind == TRACE_LAUNCH ? "grid" : "program", e->pid[0],
           e->pid[1], e->pid[2]);
  if (!async) return;
  rt_out(o, "{\"name\":\"");
  rt_out_escaped(o, e->name, false);
  rt_out(o, "\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"ph\":\"e\",\"id\":%u},\n", kinds[e->kind],
         it->rank, tid, ts + dur, id);
}

static void write_json(TraceOut *o, const RtTeam *t, const TraceItem *items, uint32_t n) {
  rt_out(o, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  json_names(o, t, items, n);
  for (uint32_t i = 0; i < n; i++) json_event(o, &items[i], i + 1);
  rt_out(o, "{\"name\":\"end\",\"ph\":\"M\",\"pid\":0,\"args\":{}}\n]}\n");
}

// ---- files ---------------------------------------------------------------------------------------------------------
static bool ends_in(const char *s, const char *end) {
  const size_t n = strlen(s), k = strlen(end);
  return n >= k && strcmp(s + n - k, end) == 0;
}

static Status write_file(const RtTeam *t, const char *path, Arena *a, Escape *esc, RtError *e) {
  if (ESCAPE_TRY(esc)) return rt_fail(e, esc->status, "the timeline: %s", esc->message);
  uint32_t n;
  const TraceItem *items = collect(t, a, &n);
  TraceOut o = {.arena = a};
  if (ends_in(path, ".svg"))
    rt_trace_svg(&o, t, items, n);
  else
    write_json(&o, t, items, n);
  const Status s = os_write_file(path, o.text.data, o.text.len);
  if (s != ST_OK) return rt_fail(e, s, "the timeline cannot be written to '%.300s': %s", path, os_error());
  return ST_OK;
}

static Status write_alone(const RtTeam *t, const char *path, RtError *e) {
  Arena a;
  Escape esc;
  arena_init(&a, 0, &esc);
  const Status s = write_file(t, path, &a, &esc, e);
  arena_free(&a);
  return s;
}

Status rt_trace_write(RtTeam *t, const char *path, RtError *e) {
  if (!ends_in(path, ".json") && !ends_in(path, ".svg"))
    return rt_fail(e, ST_INVALID, "a timeline is written to a .json or a .svg file, not to '%.300s'", path);
  if (!t->transport->processes) return write_alone(t, path, e);
  RtRank *r = &t->ranks[0];
  Status s = rt_barrier(r, e); // all have recorded what they will
  if (s != ST_OK) return s;
  struct {
    Status status;
    char text[200];
  } mine = {.status = ST_OK}, all[RT_MAX_RANKS];
  if (r->index == 0) {
    RtError mistake = {ST_OK, ""};
    mine.status = write_alone(t, path, &mistake);
    snprintf(mine.text, sizeof mine.text, "%.*s", (int)sizeof mine.text - 1, mistake.text);
  }
  s = rt_exchange(r, &mine, sizeof mine, all, e);
  return s == ST_OK && all[0].status != ST_OK ? rt_fail(e, all[0].status, "%s", all[0].text) : s;
}
