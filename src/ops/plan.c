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
  OpsRow r = {rows[i].name, rows[i].tensors, rows[i].text, count_tensors(rows[i].tensors), rows[i].setup, rows[i].run};
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
      if (constexpr_) snprintf(text, sizeof text, "%lld", (long long)a->value.u.i);
      else snprintf(text, sizeof text, "%s", dt_dtype_name(a->value.dtype));
      break;
    case DT_VALUE_FLOAT: snprintf(text, sizeof text, "f32"); break;
    case DT_VALUE_BOOL: snprintf(text, sizeof text, "%d", (int)a->value.u.i); break;
    case DT_VALUE_FUNC: case DT_VALUE_STR: snprintf(text, sizeof text, "%s", a->value.u.str); break;
    case DT_VALUE_DTYPE: snprintf(text, sizeof text, "%s", dt_dtype_name(a->value.dtype)); break;
    default: snprintf(text, sizeof text, "None"); break;
    }
    n += snprintf(key + n, cap - (size_t)n, "%s%s=%s", sep, a->name, text);
  }
}

static dt_status load_kernel(dt_plan *p, OpsKernel *k, const char *dir) {
  dt_image *image = NULL;
  dt_status st;
  if (p->o.pack) {
    char key[1024];
    kernel_key(k, key, sizeof key);
    st = dt_pack_get(p->o.pack, key, &image);
  } else {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, k->file);
    dt_compile_options o = {.size = sizeof o};
    st = dt_context_compile(p->context, path, k->name, k->args, k->nargs, &o, &image);
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

static dt_status make_buffer(dt_plan *p, OpsBuffer *b) {
  dt_status st = dt_symm_alloc(p->rank, b->bytes, b->label, &b->own);
  b->peers = st == DT_OK ? calloc((size_t)p->world, sizeof *b->peers) : NULL;
  if (st == DT_OK && !b->peers) st = DT_NO_MEMORY;
  for (int r = 0; r < p->world && st == DT_OK; r++) st = dt_symm_peer(p->rank, b->own, r, &b->peers[r]);
  return st;
}

// flags [flag_words] | acks [world] | done [world] | epoch [2]
static dt_status make_channel(dt_plan *p) {
  OpsChannel *c = &p->ch;
  if (c->flag_words < (size_t)p->world) c->flag_words = (size_t)p->world;
  OpsBuffer *b = &p->buffers[ops_buffer(p, "channel", (c->flag_words + 2 * (size_t)p->world + 2) * sizeof(int64_t))];
  dt_status st = make_buffer(p, b);
  if (st != DT_OK) return st;
  c->flags = b->own;
  c->acks = c->flags + c->flag_words;
  c->done = c->acks + p->world;
  c->epoch = c->done + p->world;
  c->peer_words = b->peers;
  return DT_OK;
}

dt_status ops_order(dt_plan *p, int e, dt_stream *from, dt_stream *to) {
  dt_status st = dt_event_record(p->events[e], from);
  return st != DT_OK ? st : dt_stream_wait_event(to, p->events[e]);
}

void ops_channel_kernels(dt_plan *p) {
  p->uses_channel = true;
  OpsKernel *k = ops_kernel(p, "collectives.py", "advance_epoch_kernel");
  ops_arg(k, "epoch_ptr", dt_ptr(DT_I64, NULL));
  k = ops_kernel(p, "collectives.py", "announce_kernel");
  ops_arg(k, "flags_ptr", dt_ptr(DT_I64, NULL));
  ops_arg(k, "epoch_ptr", dt_ptr(DT_I64, NULL));
  ops_arg(k, "per_epoch", dt_int(2));
  k = ops_kernel(p, "collectives.py", "wait_all_kernel");
  ops_arg(k, "flags_ptr", dt_ptr(DT_I64, NULL));
  ops_arg(k, "epoch_ptr", dt_ptr(DT_I64, NULL));
  ops_arg(k, "per_epoch", dt_int(2));
  ops_arg(k, "lag", dt_int(2));
}

dt_status ops_advance(dt_plan *p, dt_stream *s) {
  return OPS_LAUNCH(&p->kernels[OPS_ADVANCE], s, 1, 1, dt_ptr(DT_I64, p->ch.epoch));
}
dt_status ops_announce(dt_plan *p, dt_stream *s, int64_t *words, int64_t per_epoch) {
  return OPS_LAUNCH(&p->kernels[OPS_ANNOUNCE], s, p->world, 1, dt_ptr(DT_I64, words), dt_ptr(DT_I64, p->ch.epoch),
                    dt_int(per_epoch));
}
dt_status ops_wait_all(dt_plan *p, dt_stream *s, int64_t *words, int64_t per_epoch, int64_t lag) {
  return OPS_LAUNCH(&p->kernels[OPS_WAIT_ALL], s, 1, 1, dt_ptr(DT_I64, words), dt_ptr(DT_I64, p->ch.epoch), dt_int(per_epoch),
                    dt_int(lag));
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

// The operator's choices for these options, without any resource.
static dt_status plan_setup(dt_plan *p, OpsRow *row, const dt_plan_options *o, int world, int index) {
  p->o = *o;
  p->world = world;
  p->index = index;
  if (!find_row(o->op, row)) return unknown_operator(p->context, o->op);
  p->row = row;
  p->elem = dt_dtype_bytes(o->dtype);
  if (o->m < 0 || o->n < 0 || o->k < 0)
    return ops_fail(p, DT_INVALID, "%s: sizes must not be negative (m %lld, n %lld, k %lld)", o->op, (long long)o->m,
                    (long long)o->n, (long long)o->k);
  return row->setup(p);
}

dt_status dt_plan_requests(dt_context *c, const dt_plan_options *o, int world,
                           dt_status (*fn)(void *, const char *, const char *, const dt_named *, size_t, const char *),
                           void *user) {
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

dt_status dt_plan_create(dt_rank *r, const dt_plan_options *o, dt_plan **out) {
  dt_context *c = dt_rank_context(r);
  if (!o || o->size != sizeof *o) return dt_context_fail(c, DT_INVALID, "dt_plan_options.size is not sizeof(dt_plan_options)");
  struct {
    dt_plan plan;
    OpsRow row;
  } *both = calloc(1, sizeof *both);
  if (!both) return dt_context_fail(c, DT_NO_MEMORY, "out of memory");
  dt_plan *p = &both->plan;
  p->rank = r;
  p->context = c;
  dt_team *team = dt_rank_team(r);
  dt_status st = plan_setup(p, &both->row, o, dt_team_size(team), dt_rank_index(r));
  if (st == DT_OK && !o->pack && !dt_context_can_compile(c))
    st = ops_fail(p, DT_UNSUPPORTED, "%s: this process has no compiler; give plan options a pack made by `ditron pack`", o->op);
  const char *dir = o->kernels_dir ? o->kernels_dir : dt_kernels_dir(c);
  for (int i = 0; i < p->nkernels && st == DT_OK; i++) st = load_kernel(p, &p->kernels[i], dir);
  // Everything below is collective: a rank that failed above must not leave the others waiting, so all agree first.
  dt_status agreed = dt_agree(r, st);
  if (st == DT_OK) st = agreed;
  for (int i = 0; i < p->nbuffers && st == DT_OK; i++) st = make_buffer(p, &p->buffers[i]);
  if (st == DT_OK && p->uses_channel) st = make_channel(p);
  if (st == DT_OK && p->uses_side) st = dt_stream_create(r, "copies", &p->side);
  for (int i = 0; i < OPS_EVENTS && st == DT_OK; i++) st = dt_event_create(r, &p->events[i]);
  agreed = dt_agree(r, st);
  if (st == DT_OK) st = agreed;
  if (st == DT_OK) *out = p;
  else dt_plan_destroy(p);
  return st;
}

void dt_plan_destroy(dt_plan *p) {
  if (!p) return;
  dt_stream_destroy(p->side);
  for (int i = 0; i < OPS_EVENTS; i++) dt_event_destroy(p->events[i]);
  for (int i = p->nbuffers - 1; i >= 0; i--) {
    if (p->buffers[i].own) dt_symm_free(p->rank, p->buffers[i].own);
    free(p->buffers[i].peers);
  }
  for (int i = 0; i < p->nkernels; i++) dt_kernel_destroy(p->kernels[i].loaded);
  free(p->explain);
  free(p); // the plan is the first member of its allocation
}

dt_status dt_plan_run(dt_plan *p, dt_stream *s, void *const *tensors, size_t n) {
  if (n != p->row->ntensors)
    return ops_fail(p, DT_INVALID, "%s takes %zu tensors (%s), got %zu", p->row->name, p->row->ntensors, p->row->tensors, n);
  return p->row->run(p, s, tensors);
}

const char *dt_plan_variant(const dt_plan *p) { return p->variant; }
const char *dt_plan_explain(const dt_plan *p) { return p->explain ? p->explain : ""; }
