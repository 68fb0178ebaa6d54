// Contexts: settings, messages for people, and the guard that turns every trouble into a status and a text.
#include "api/api_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS(name, code, text) \
  _Static_assert(DT_##name == code && ST_##name == code, "ditron.h and status.def disagree");
#include "base/status.def"
#undef STATUS
_Static_assert(DT_NDTYPES == (int)IMAGE_NDTYPES && DT_F8E5M2 == (int)IMAGE_F8E5M2 && DT_F16 == (int)IMAGE_F16,
               "ditron.h and image.h disagree on dtypes");

const char *dt_status_name(dt_status s) { return status_name((Status)s); }
const char *dt_version(void) {
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
  return TEXT(DT_VERSION_MAJOR) "." TEXT(DT_VERSION_MINOR) "." TEXT(DT_VERSION_PATCH);
}
const char *dt_dtype_name(dt_dtype d) { return (unsigned)d < DT_NDTYPES ? image_dtypes[d].name : NULL; }
size_t dt_dtype_bytes(dt_dtype d) { return (unsigned)d < DT_NDTYPES ? image_dtypes[d].bytes : 0; }

// ---- messages ---------------------------------------------------------------------------------------------------------
static ApiMessages *messages_of(dt_context *c) { // lock held; NULL when memory ends
  pthread_t self = pthread_self();
  for (ApiMessages *m = c->messages; m; m = m->next)
    if (pthread_equal(m->thread, self)) return m;
  ApiMessages *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->thread = self;
  m->next = c->messages;
  return c->messages = m;
}

static void put(char **slot, const char *text) {
  char *copy = text ? strdup(text) : NULL;
  free(*slot);
  *slot = copy;
}

static void set_error(dt_context *c, const char *text) {
  pthread_mutex_lock(&c->lock);
  ApiMessages *m = messages_of(c);
  if (m) put(&m->error, text);
  pthread_mutex_unlock(&c->lock);
}

dt_status api_fail(dt_context *c, Status s, const char *fmt, ...) {
  char text[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  set_error(c, text);
  return (dt_status)s;
}

dt_status api_need(dt_context *c, const char *call, const char *what, const void *p) {
  return p ? DT_OK : api_fail(c, ST_INVALID, "%s: %s is NULL", call, what);
}

dt_status api_rt(dt_context *c, Status s, const RtError *e) {
  if (s != ST_OK) set_error(c, e->text);
  return (dt_status)s;
}

dt_status dt_context_fail(dt_context *c, dt_status s, const char *text) {
  set_error(c, text);
  return s;
}

dt_status dt_write_file(dt_context *c, const char *path, const void *bytes, size_t n) {
  Status s = os_write_file(path, bytes, n);
  return s == ST_OK ? DT_OK : api_fail(c, s, "%s: %s", path, os_error());
}

// Without a context there is nothing to hang a text off: it stays with the thread, as errno does.
static char *creation_error(void) {
  static _Thread_local char text[1024];
  return text;
}
static dt_status creation_fails(dt_context *c, Status s, const char *text) {
  snprintf(creation_error(), 1024, "%.1023s", text);
  dt_context_destroy(c);
  return (dt_status)s;
}

const char *dt_error(const dt_context *context) {
  dt_context *c = (dt_context *)context;
  if (!c) return creation_error();
  pthread_mutex_lock(&c->lock);
  ApiMessages *m = messages_of(c);
  const char *text = m && m->error ? m->error : "";
  pthread_mutex_unlock(&c->lock);
  return text;
}

void api_remark(dt_context *c, const char *text) {
  pthread_mutex_lock(&c->lock);
  ApiMessages *m = messages_of(c);
  size_t old = m && m->remarks ? strlen(m->remarks) : 0, add = strlen(text);
  char *grown = m ? realloc(m->remarks, old + add + 1) : NULL;
  if (grown) {
    memcpy(grown + old, text, add + 1);
    m->remarks = grown;
  }
  pthread_mutex_unlock(&c->lock);
}

const char *api_keep_text(dt_context *c, const char *text) {
  pthread_mutex_lock(&c->lock);
  ApiMessages *m = messages_of(c);
  if (m) put(&m->text, text);
  const char *kept = m ? m->text : NULL;
  pthread_mutex_unlock(&c->lock);
  return kept;
}

const char *dt_remarks(dt_context *c) {
  pthread_mutex_lock(&c->lock);
  ApiMessages *m = messages_of(c);
  const char *text = "";
  if (m && m->remarks) {
    free(m->text);
    text = m->text = m->remarks;
    m->remarks = NULL;
  }
  pthread_mutex_unlock(&c->lock);
  return text;
}

// ---- guarded calls ------------------------------------------------------------------------------------------------------
static void collect(ApiCall *call) {
  Diags *d = &call->diags;
  for (uint32_t i = 0; i < d->list.len; i++) {
    if (d->list.data[i].level != DIAG_WARNING && d->list.data[i].level != DIAG_REMARK) continue;
    api_remark(call->context, diag_render(d, &d->list.data[i], &call->arena));
  }
}

dt_status api_call(dt_context *c, Status (*fn)(ApiCall *call, void *user), void *user) {
  ApiCall *call = calloc(1, sizeof *call); // on the heap: survives the jump whole
  if (!call) return api_fail(c, ST_NO_MEMORY, "out of memory");
  call->context = c;
  arena_init(&call->arena, (size_t)c->knobs.mem_limit_mb << 20, &call->escape);
  dt_status st;
  if (ESCAPE_TRY(&call->escape)) {
    st = api_fail(c, call->escape.status, "%s", call->escape.message);
  } else {
    diags_init(&call->diags, &call->arena);
    Status s = fn(call, user);
    if (s != ST_OK && call->diags.errors)
      set_error(c, diags_render(&call->diags, &call->arena)); // warnings among them
    else
      collect(call);
    st = (dt_status)s;
  }
  arena_free(&call->arena);
  free(call);
  return st;
}

// ---- life ------------------------------------------------------------------------------------------------------------------
enum { CACHE_LIMIT = 1 << 30 };

static dt_status open_cache(dt_context *c, const char *asked) {
  char standard[4096] = "";
  RtError e;
  const char *dir = asked;
  if (c->knobs.cache_off)
    dir = "";
  else if (!dir && *c->knobs.cache_dir)
    dir = c->knobs.cache_dir;
  else if (!dir) {
    rt_cache_default_dir(standard, sizeof standard);
    dir = standard;
  }
  return (dt_status)rt_cache_open(dir, CACHE_LIMIT, &c->cache, &e);
}

// The kernel sources: where the knob says, else installed beside this code, else in the source tree above a build folder.
static void choose_kernels_dir(dt_context *c) {
  static const char *const below[] = {"../share/ditron/kernels", "../kernels", "../../kernels", "kernels"};
  c->kernels_dir = c->knobs.kernels;
  const char *self = *c->kernels_dir ? NULL : os_code_dir(&c->arena);
  for (size_t i = 0; self && i < DT_COUNTOF(below) && !*c->kernels_dir; i++) {
    const char *path = arena_printf(&c->arena, "%s/%s", self, below[i]);
    if (os_is_dir(path)) c->kernels_dir = path;
  }
}
const char *dt_kernels_dir(dt_context *c) { return c->kernels_dir; }

dt_status dt_context_create(const dt_context_options *options, dt_context **out) {
  if (options && options->size != sizeof *options)
    return creation_fails(NULL, ST_INVALID,
                          "dt_context_create: the options are of another size than this library's");
  dt_context *c = calloc(1, sizeof *c);
  if (!c) return creation_fails(NULL, ST_NO_MEMORY, "out of memory");
  pthread_mutex_init(&c->lock, NULL);
  arena_init(&c->arena, 0, &c->escape);
  Diags diags;
  if (ESCAPE_TRY(&c->escape)) return creation_fails(c, ST_NO_MEMORY, "out of memory");
  diags_init(&diags, &c->arena);
  Status s = knobs_read(&c->knobs, &c->arena, &diags);
  if (s != ST_OK) return creation_fails(c, s, diags_render(&diags, &c->arena));
  choose_kernels_dir(c);
  double deadline =
      options && options->deadline_seconds > 0 ? options->deadline_seconds : (double)c->knobs.deadline_s;
  RtConfig config = {.deadline_ns = (uint64_t)(deadline * 1e9)};
  config.libcuda = c->knobs.libcuda;
  config.cuda_wait_each = c->knobs.cuda_wait_each;
  if (options) config.print = options->print;
  if (options) config.user = options->user;
  RtError e;
  dt_status st = (dt_status)rt_context_create(&config, &c->rt, &e);
  if (st == DT_OK) st = open_cache(c, options ? options->cache_dir : NULL);
  if (st != DT_OK) return creation_fails(c, (Status)st, e.text);
  *creation_error() = 0;
  *out = c;
  return DT_OK;
}

void dt_context_destroy(dt_context *c) {
  if (!c) return;
  for (ApiMessages *m = c->messages, *next; m; m = next) {
    next = m->next;
    free(m->error);
    free(m->remarks);
    free(m->text);
    free(m);
  }
  if (c->cache) rt_cache_close(c->cache);
  if (c->rt) rt_context_destroy(c->rt);
  arena_free(&c->arena);
  pthread_mutex_destroy(&c->lock);
  free(c);
}

// ---- the compiler, where this process has it -----------------------------------------------------------------------------------
// libditron defines dt_compile_file; here it is a weak reference, absent in processes with libditron-rt alone.
#pragma weak dt_compile_file
bool dt_context_can_compile(const dt_context *c) {
  (void)c;
  return dt_compile_file != NULL;
}
dt_status dt_context_compile(dt_context *c, const char *path, const char *kernel, const dt_named *args,
                             size_t nargs, const dt_compile_options *options, dt_image **out) {
  if (!dt_compile_file)
    return api_fail(c, ST_UNSUPPORTED,
                    "%s: this process has no compiler (it links libditron-rt only); load an image or a pack",
                    path);
  return dt_compile_file(c, path, kernel, args, nargs, options, out);
}
