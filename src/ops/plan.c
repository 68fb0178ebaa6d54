// Plans: what all operators share. Creating a plan obtains kernels, buffers and channel words on every rank, meets the
// other ranks, and only then returns; running one is the operator's own function.
#include "ops/ops_impl.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t count_tensors(const char *tensors) {
  size_t n = 1;
  for (; *tensors; tensors++) n += *tensors == ' ';
  return n;
}

static OpsRow row_at(size_t i) {
  static const struct {
    const char *name, *tensors, *text;
    dt_status (*setup)(dt_plan *);
    dt_status (*run)(dt_plan *, dt_stream *, void *const *);
  } rows[] = {
#define OPERATOR(name, tensors, text) {#name, tensors, text, ops_##name##_setup, ops_##name##_run},
#include "ops/ops.def"
#undef OPERATOR
  };
  OpsRow none = {0};
  if (i >= sizeof rows / sizeof rows[0]) return none;
  OpsRow r = {rows[i].name,  rows[i].tensors, rows[i].text, count_tensors(rows[i].tensors),
              rows[i].setup, rows[i].run};
  return r;
}
const char *dt_operator_name(size_t i) { return row_at(i).name; }
const char *dt_operator_tensors(size_t i) { return row_at(i).tensors; }
const char *dt_operator_text(size_t i) { return row_at(i).text; }

// ---- messages ---------------------------------------------------------------------------------------------------------
static char *vformat(const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  char *s = n < 0 ? NULL : malloc((size_t)n + 1);
  if (s) vsnprintf(s, (size_t)n + 1, fmt, again);
  va_end(again);
  return s;
}

dt_status ops_fail(dt_plan *p, dt_status s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *text = vformat(fmt, ap);
  va_end(ap);
  dt_context_fail(p->context, s, text ? text : fmt);
  free(text);
  return s;
}

void ops_explain(dt_plan *p, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *line = vformat(fmt, ap);
  va_end(ap);
  if (!line) return;
  size_t old = p->explain ? strlen(p->explain) : 0, add = strlen(line);
  char *grown = realloc(p->explain, old + add + 2);
  if (grown) {
    memcpy(grown + old, line, add);
    memcpy(grown + old + add, "\n", 2);
    p->explain = grown;
  }
  free(line);
}

bool ops_is(const dt_plan *p, const char *variant) { return strcmp(p->variant, variant) == 0; }

dt_status ops_choose(dt_plan *p, const char *const *variants, const char *fallback) {
  p->variant = fallback;
  if (!p->o.variant) return DT_OK;
  char list[256] = "";
  for (size_t i = 0; variants[i]; i++) {
    if (strcmp(variants[i], p->o.variant) == 0) {
      p->variant = variants[i];
      return DT_OK;
    }
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", variants[i]);
  }
  return ops_fail(p, DT_INVALID, "%s has no variant '%s'; it has: %s", p->row->name, p->o.variant, list);
}

// ---- kernels ------------------------------------------------------------------------------------------------------------
OpsKernel *ops_kernel(dt_plan *p, const char *file, const char *name) {
  OpsKernel *k = &p->kernels[p->nkernels++];
  k->file = file;
  k->name = name;
  return k;
}

void ops_arg(OpsKernel *k, const char *name, dt_value v) {
  k->args[k->nargs].name = name;
  k->args[k->nargs++].value = v;
}

// "overlap.py:ag_gemm_kernel|a_ptr=*f32,M=i32,BLOCK_M=64": integers count by width only, so that one image serves all shapes.
static void kernel_key(const OpsKernel *k, char *key, size_t cap) {
  int n = snprintf(key, cap, "%s:%s|", k->file, k->name);
  for (size_t i = 0; i < k->nargs && n > 0 && (size_t)n < cap; i++) {
    const dt_named *a = &k->args[i];
    const char *sep = i ? "," : "";
    bool constexpr_ = isupper((unsigned char)a->name[0]);
    char text[96];
    switch (a->value.kind) {
    case DT_VALUE_PTR: snprintf(text, sizeof text, "*%s", dt_dtype_name(a->value.dtype)); break;
    case DT_VALUE_INT:
      if (constexpr_)
        snprintf(text, sizeof text, "%lld", (long long)a->value.u.i);
      else
        snprintf(text, sizeof text, "%s", dt_dtype_name(a->value.dtype));
      break;
    case DT_VALUE_FLOAT: snprintf(text, sizeof text, "f32"); break;
    case DT_VALUE_BOOL: snprintf(text, sizeof text, "%d", (int)a->value.u.i); break;
    case DT_VALUE_FUNC:
    case DT_VALUE_STR: snprintf(text, sizeof text, "%s", a->value.u.str); break;
    case DT_VALUE_DTYPE: snprintf(text, sizeof text, "%s", dt_dtype_name(a->value.dtype)); break;
    default: snprintf(text, sizeof text, "None"); break;
    }
    n += snprintf(key + n, cap - (size_t)n, "%s%s=%s", sep, a->name, text);
  }
}

static dt_status compile_kernel(dt_plan *p, const OpsKernel *k, const char *dir, dt_image **image) {
  char path[4096];
  if (!*dir)
    return ops_fail(p, DT_NOT_FOUND,
                    "the kernel sources are not where they should be; DITRON_KERNELS can name their folder");
  if (snprintf(path, sizeof path, "%s/%s", dir, k->file) >= (int)sizeof path)
    return ops_fail(p, DT_LIMIT, "the path of the kernel sources is longer than %zu bytes", sizeof path);
  dt_compile_options o = {.size = sizeof o};
  return dt_context_compile(p->context, path, k->name, k->args, k->nargs, &o, image);
}

static dt_status load_kernel(dt_plan *p, OpsKernel *k, const char *dir) {
  dt_image *image = NULL;
  dt_status st;
  if (p->o.pack) {
    char key[1024];
    kernel_key(k, key, sizeof key);
    st = dt_pack_get(p->o.pack, key, &image);
  } else {
    st = compile_kernel(p, k, dir, &image);
  }
  if (st == DT_OK) st = dt_kernel_load(p->rank, image, k->name, &k->loaded);
  dt_image_destroy(image);
  return st;
}

dt_status ops_launch(OpsKernel *k, dt_stream *s, uint32_t x, uint32_t y, const dt_value *args, size_t n) {
  const uint32_t grid[3] = {x, y, 1};
  return dt_launch(k->loaded, s, grid, args, n);
}

// ---- memory and order --------------------------------------------------------------------------------------------------------
int ops_buffer(dt_plan *p, const char *label, size_t bytes) {
  p->buffers[p->nbuffers].label = label;
  p->buffers[p->nbuffers].bytes = bytes ? bytes : 64;
  return p->nbuffers++;
}

// What a rank does alone, so that failing does not leave the others in a collective.
static dt_status reserve_buffers(dt_plan *p) {
  for (int i = 0; i < p->nbuffers; i++) {
    p->buffers[i].peers = calloc((size_t)p->world, sizeof *p->buffers[i].peers);
    if (!p->buffers[i].peers) return ops_fail(p, DT_NO_MEMORY, "out of memory");
  }
  return DT_OK;
}

static dt_status make_buffer(dt_plan *p, OpsBuffer *b) {
  dt_status st = dt_symm_alloc(p->rank, b->bytes, b->label, &b->own);
  for (int r = 0; r < p->world && st == DT_OK; r++) st = dt_symm_peer(p->rank, b->own, r, &b->peers[r]);
  return st;
}

// flags [flag_words] | acks [world] | done [world] | epoch [2]; the last buffer
static void want_channel(dt_plan *p) {
  OpsChannel *c = &p->ch;
  if (c->flag_words < (size_t)p->world) c->flag_words = (size_t)p->world;
  ops_buffer(p, "channel", (c->flag_words + 2 * (size_t)p->world + 2) * sizeof(int64_t));
}
static void place_channel(dt_plan *p) {
  OpsChannel *c = &p->ch;
  c->flags = p->buffers[p->nbuffers - 1].own;
  c->acks = c->flags + c->flag_words;
  c->done = c->acks + p->world;
  c->epoch = c->done + p->world;
}

// A failure may have ended a call half way, with words that no longer fit together. All ranks come here after the team has
// recovered, with idle streams, and begin anew.
static dt_status renew_channel(dt_plan *p) {
  uint64_t now = dt_rank_recoveries(p->rank);
  if (now == p->recoveries) return DT_OK;
  p->recoveries = now;
  if (!p->uses_channel) return DT_OK;
  const OpsBuffer *b = &p->buffers[p->nbuffers - 1];
  memset(b->own, 0, b->bytes);
  return dt_barrier(p->rank);
}

dt_status ops_order(dt_plan *p, int e, dt_stream *from, dt_stream *to) {
  dt_status st = dt_event_record(p->events[e], from);
  return st != DT_OK ? st : dt_stream_wait_event(to, p->events[e]);
}

void ops_channel_kernels(dt_plan *p) {
  p->uses_channel = true;
  OpsKernel *k = ops_kernel(p, "collectives.py", "advance_epoch_kernel");
  ops_arg(k, "epoch_ptr", ops_words());
  k = ops_kernel(p, "collectives.py", "announce_kernel");
  ops_arg(k, "flags_ptr", ops_words());
  ops_arg(k, "epoch_ptr", ops_words());
  ops_arg(k, "per_epoch", dt_int(2));
  k = ops_kernel(p, "collectives.py", "wait_all_kernel");
  ops_arg(k, "flags_ptr", ops_words());
  ops_arg(k, "epoch_ptr", ops_words());
  ops_arg(k, "per_epoch", dt_int(2));
  ops_arg(k, "lag", dt_int(2));
}

dt_status ops_advance(dt_plan *p, dt_stream *s) {
  return OPS_LAUNCH(&p->kernels[OPS_ADVANCE], s, 1, 1, dt_ptr(DT_I64, p->ch.epoch));
}
dt_status ops_announce(dt_plan *p, dt_stream *s, int64_t *words, int64_t per_epoch) {
  return OPS_LAUNCH(&p->kernels[OPS_ANNOUNCE], s, p->world, 1, dt_ptr(DT_I64, words),
                    dt_ptr(DT_I64, p->ch.epoch), dt_int(per_epoch));
}
dt_status ops_wait_all(dt_plan *p, dt_stream *s, int64_t *words, int64_t per_epoch, int64_t lag) {
  return OPS_LAUNCH(&p->kernels[OPS_WAIT_ALL], s, 1, 1, dt_ptr(DT_I64, words), dt_ptr(DT_I64, p->ch.epoch),
                    dt_int(per_epoch), dt_int(lag));
}

dt_status ops_push_all(dt_plan *p, dt_stream *s, int b, size_t offset, const void *src, size_t bytes) {
  const uint64_t *epoch = (const uint64_t *)p->ch.epoch;
  dt_status st = DT_OK;
  for (int step = 0; step < p->world && st == DT_OK; step++) {
    int peer = (p->index + step) % p->world;
    st = dt_signal_wait_word(s, (const uint64_t *)p->ch.acks + peer, epoch + 1);
    if (st == DT_OK) st = dt_copy(s, (char *)p->buffers[b].peers[peer] + offset, src, bytes);
    if (st == DT_OK) st = dt_signal_copy(s, (uint64_t *)p->ch.flags + p->index, epoch, peer);
  }
  return st;
}

// ---- life ------------------------------------------------------------------------------------------------------------------------
static const OpsRow *find_row(const char *name, OpsRow *out) {
  for (size_t i = 0; (*out = row_at(i)).name; i++)
    if (name && strcmp(out->name, name) == 0) return out;
  return NULL;
}

static dt_status unknown_operator(dt_context *c, const char *name) {
  char text[512];
  snprintf(text, sizeof text, "no operator '%s'; there are:", name ? name : "(null)");
  for (size_t i = 0; dt_operator_name(i); i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s %s", i ? "," : "", dt_operator_name(i));
  return dt_context_fail(c, DT_NOT_FOUND, text);
}

// No product of sizes that an operator forms may overflow, nor the launch grids made of them.
static bool sizes_fit(const dt_plan_options *o, int world) {
  const double most = 0x1p44, bytes = (double)dt_dtype_bytes(o->dtype) * world;
  double m = (double)o->m + 1, n = (double)o->n + 1, k = (double)o->k + 1;
  return m * n * bytes < most && m * k * bytes < most && k * n * bytes < most;
}

static bool known_dtype(dt_dtype d) { return (unsigned)d < DT_NDTYPES; }

// Collectives that only copy take any type, sums any number, the others floats whose arithmetic the kernels do in f32.
static dt_status check_dtype(dt_plan *p) {
  const char *op = p->row->name;
  dt_dtype d = p->o.dtype;
  bool copies = strcmp(op, "all_gather") == 0 || strcmp(op, "all_to_all") == 0;
  bool sums = strcmp(op, "all_reduce") == 0 || strcmp(op, "reduce_scatter") == 0 || strcmp(op, "add") == 0;
  if (copies || (sums && d != DT_I1) || d >= DT_F16) return DT_OK;
  return ops_fail(p, DT_UNSUPPORTED, "%s does not take elements of type %s", op, dt_dtype_name(d));
}

// The operator's choices for these options, without any resource.
static dt_status plan_setup(dt_plan *p, OpsRow *row, const dt_plan_options *o, int world, int index) {
  p->world = world;
  p->index = index;
  if (!o || o->size != sizeof *o)
    return dt_context_fail(p->context, DT_INVALID, "dt_plan_options.size is not sizeof(dt_plan_options)");
  p->o = *o;
  if (!find_row(o->op, row)) return unknown_operator(p->context, o->op);
  p->row = row;
  if (!known_dtype(o->dtype))
    return ops_fail(p, DT_INVALID, "%s: there is no dtype %d", o->op, (int)o->dtype);
  if (o->m < 0 || o->n < 0 || o->k < 0)
    return ops_fail(p, DT_INVALID, "%s: sizes must not be negative (m %lld, n %lld, k %lld)", o->op,
                    (long long)o->m, (long long)o->n, (long long)o->k);
  if (!sizes_fit(o, world))
    return ops_fail(p, DT_LIMIT, "%s: sizes are too large (m %lld, n %lld, k %lld on %d ranks)", o->op,
                    (long long)o->m, (long long)o->n, (long long)o->k, world);
  p->elem = dt_dtype_bytes(o->dtype);
  dt_status st = check_dtype(p);
  if (st == DT_OK) st = row->setup(p);
  if (st == DT_OK && p->uses_channel) want_channel(p);
  return st;
}

dt_status dt_plan_requests(dt_context *c, const dt_plan_options *o, int world,
                           dt_status (*fn)(void *, const char *, const char *, const dt_named *, size_t,
                                           const char *),
                           void *user) {
  if (world < 1) return dt_context_fail(c, DT_INVALID, "a plan needs at least one rank");
  dt_plan *p = calloc(1, sizeof *p);
  if (!p) return dt_context_fail(c, DT_NO_MEMORY, "out of memory");
  OpsRow row;
  p->context = c;
  dt_status st = plan_setup(p, &row, o, world, 0);
  for (int i = 0; i < p->nkernels && st == DT_OK; i++) {
    char key[1024];
    kernel_key(&p->kernels[i], key, sizeof key);
    st = fn(user, p->kernels[i].file, p->kernels[i].name, p->kernels[i].args, p->kernels[i].nargs, key);
  }
  free(p->explain);
  free(p);
  return st;
}

// Everybody's status before anybody goes on: a rank that failed must not leave the others waiting in the next collective.
static dt_status agree(dt_rank *r, dt_status st) {
  dt_status all = dt_agree(r, st);
  return st != DT_OK ? st : all;
}

typedef struct Asked { // what the ranks must ask for alike
  char op[48], variant[48];
  int64_t dtype, m, n, k;
} Asked;

static dt_status same_everywhere(const dt_plan *p) {
  Asked mine, first;
  memset(&mine, 0, sizeof mine);
  snprintf(mine.op, sizeof mine.op, "%s", p->row->name);
  snprintf(mine.variant, sizeof mine.variant, "%s", p->variant);
  mine.dtype = (int64_t)p->o.dtype;
  mine.m = p->o.m;
  mine.n = p->o.n;
  mine.k = p->o.k;
  first = mine;
  dt_status st = dt_share(p->rank, 0, &first, sizeof first);
  if (st != DT_OK || memcmp(&mine, &first, sizeof mine) == 0) return st;
  return ops_fail(
      (dt_plan *)p, DT_MISMATCH,
      "the ranks ask for different plans: rank 0 for %s %s %s m %lld n %lld k %lld, rank %d for %s %s %s m %lld n %lld k %lld",
      first.op, first.variant, dt_dtype_name((dt_dtype)first.dtype), (long long)first.m, (long long)first.n,
      (long long)first.k, p->index, mine.op, mine.variant, dt_dtype_name(p->o.dtype), (long long)mine.m,
      (long long)mine.n, (long long)mine.k);
}

static dt_status load_kernels(dt_plan *p) {
  if (!p->o.pack && !dt_context_can_compile(p->context))
    return ops_fail(p, DT_UNSUPPORTED,
                    "%s: this process has no compiler; give plan options a pack made by `ditron pack`",
                    p->o.op);
  const char *dir = p->o.kernels_dir ? p->o.kernels_dir : dt_kernels_dir(p->context);
  dt_status st = DT_OK;
  for (int i = 0; i < p->nkernels && st == DT_OK; i++) st = load_kernel(p, &p->kernels[i], dir);
  return st == DT_OK ? reserve_buffers(p) : st;
}

// Ends alike on every rank, but for what memory's end does to one of them between two collectives.
static dt_status obtain(dt_plan *p) {
  dt_status st = agree(p->rank, same_everywhere(p));
  // Rank 0 goes first where there is a disk cache, in which the others then find what it compiled.
  bool turns = *dt_cache_dir(p->context) != 0;
  for (int turn = 0; turn < 2 && st == DT_OK; turn++)
    st = agree(p->rank, (turns && p->index > 0) == turn ? load_kernels(p) : DT_OK);
  if (st != DT_OK) return st;
  for (int i = 0; i < p->nbuffers && st == DT_OK; i++) st = make_buffer(p, &p->buffers[i]);
  if (st == DT_OK && p->uses_channel) place_channel(p);
  if (st == DT_OK && p->uses_side) st = dt_stream_create(p->rank, "copies", &p->side);
  for (int i = 0; i < OPS_EVENTS && st == DT_OK; i++) st = dt_event_create(p->rank, &p->events[i]);
  return agree(p->rank, st);
}

dt_status dt_plan_create(dt_rank *r, const dt_plan_options *o, dt_plan **out) {
  dt_context *c = dt_rank_context(r);
  struct {
    dt_plan plan;
    OpsRow row;
  } *both = calloc(1, sizeof *both);
  if (!both) return agree(r, dt_context_fail(c, DT_NO_MEMORY, "out of memory"));
  dt_plan *p = &both->plan;
  p->rank = r;
  p->context = c;
  p->recoveries = dt_rank_recoveries(r);
  dt_status st = agree(r, plan_setup(p, &both->row, o, dt_team_size(dt_rank_team(r)), dt_rank_index(r)));
  if (st == DT_OK) st = obtain(p);
  if (st != DT_OK) {
    char *text = strdup(dt_error(c)); // the first witness speaks, whatever undoing says
    dt_plan_destroy(p);
    if (text) dt_context_fail(c, st, text);
    free(text);
    return st;
  }
  p->o.op = p->o.variant = p->o.kernels_dir = NULL; // the caller's
  p->o.pack = NULL;
  *out = p;
  return DT_OK;
}

void dt_plan_destroy(dt_plan *p) {
  if (!p) return;
  dt_stream_destroy(p->side);
  for (int i = 0; i < OPS_EVENTS; i++) dt_event_destroy(p->events[i]); // waits for the latest call
  for (int i = p->nbuffers - 1; i >= 0; i--) {
    if (p->buffers[i].own) dt_symm_free(p->rank, p->buffers[i].own);
    free(p->buffers[i].peers);
  }
  for (int i = 0; i < p->nkernels; i++) dt_kernel_destroy(p->kernels[i].loaded);
  free(p->explain);
  free(p); // the plan is the first member of its allocation
}

static dt_status check_run(dt_plan *p, const dt_stream *s, void *const *tensors, size_t n) {
  if (n != p->row->ntensors)
    return ops_fail(p, DT_INVALID, "%s takes %zu tensors (%s), got %zu", p->row->name, p->row->ntensors,
                    p->row->tensors, n);
  if (!s) return ops_fail(p, DT_INVALID, "%s: the stream is NULL", p->row->name);
  for (size_t i = 0; i < n; i++) {
    if (!tensors || !tensors[i])
      return ops_fail(p, DT_INVALID, "%s: tensor %zu of (%s) is NULL", p->row->name, i, p->row->tensors);
    if ((uintptr_t)tensors[i] % p->elem)
      return ops_fail(p, DT_INVALID,
                      "%s: tensor %zu of (%s) does not lie at a multiple of its elements' %zu bytes",
                      p->row->name, i, p->row->tensors, p->elem);
  }
  return DT_OK;
}

dt_status dt_plan_run(dt_plan *p, dt_stream *s, void *const *tensors, size_t n) {
  dt_status st = check_run(p, s, tensors, n);
  if (st == DT_OK) st = renew_channel(p);
  // Calls follow one another even where the caller changes the stream: they share buffers and words.
  if (st == DT_OK && p->latest && p->latest != s) st = dt_stream_wait_event(s, p->events[OPS_DONE]);
  if (st == DT_OK) st = p->row->run(p, s, tensors);
  if (st != DT_OK) return st;
  p->latest = s;
  return dt_event_record(p->events[OPS_DONE], s);
}

const char *dt_plan_variant(const dt_plan *p) { return p->variant; }
const char *dt_plan_explain(const dt_plan *p) { return p->explain ? p->explain : ""; }
