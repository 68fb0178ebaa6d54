// Images and packs: files and bytes to handles.
#include "api/api_impl.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_IMAGE_BYTES = 1 << 30 };

typedef struct ReadArgs {
  const char *path; // or
  const void *bytes;
  size_t n;
  dt_image **image;
  dt_pack **pack;
} ReadArgs;

// Reads into the handle's own arena; ends there if memory does.
static Status read_into(dt_image *im, const void *bytes, size_t n, Diags *d) {
  if (ESCAPE_TRY(&im->escape)) {
    diag(d, DIAG_ERROR, LOC_NONE, "%s", im->escape.message);
    return im->escape.status;
  }
  Status s = image_read(&im->arena, bytes, n, &im->image, d);
  if (s != ST_OK) return s;
  im->bytes = arena_copy(&im->arena, bytes, n);
  im->nbytes = n;
  return ST_OK;
}

static Status read_image(ApiCall *call, void *user) {
  ReadArgs *a = user;
  if (a->path) {
    char *data;
    Status s = os_read_file(&call->arena, a->path, MOST_IMAGE_BYTES, &data, &a->n);
    if (s != ST_OK) {
      diag(&call->diags, DIAG_ERROR, LOC_NONE, "%s: %s", a->path,
           s == ST_LIMIT ? "larger than 1 GiB" : os_error());
      return s;
    }
    a->bytes = data;
  }
  dt_image *im = calloc(1, sizeof *im);
  if (!im) return ST_NO_MEMORY;
  im->context = call->context;
  arena_init(&im->arena, 0, &im->escape);
  Status s = read_into(im, a->bytes, a->n, &call->diags);
  if (s == ST_OK)
    *a->image = im;
  else
    dt_image_destroy(im);
  return s;
}

dt_status dt_image_open(dt_context *c, const char *path, dt_image **out) {
  ReadArgs a = {.path = path, .image = out};
  dt_status st = api_need(c, "dt_image_open", "path", path);
  return st != DT_OK ? st : api_call(c, read_image, &a);
}
dt_status dt_image_read(dt_context *c, const void *bytes, size_t n, dt_image **out) {
  dt_status st = api_need(c, "dt_image_read", "bytes", bytes);
  return st != DT_OK ? st : api_image_from_bytes(c, bytes, n, out);
}
dt_status api_image_from_bytes(dt_context *c, const void *bytes, size_t n, dt_image **out) {
  ReadArgs a = {.bytes = bytes, .n = n, .image = out};
  return api_call(c, read_image, &a);
}

dt_status dt_image_save(const dt_image *im, const char *path) {
  dt_status st = api_need(im->context, "dt_image_save", "path", path);
  if (st != DT_OK) return st;
  Status s = os_write_file(path, im->bytes, im->nbytes);
  return s == ST_OK ? DT_OK : api_fail(im->context, s, "%s: %s", path, os_error());
}

const void *dt_image_bytes(const dt_image *im, size_t *n) {
  *n = im->nbytes;
  return im->bytes;
}

void dt_image_destroy(dt_image *im) {
  if (!im) return;
  arena_free(&im->arena);
  free(im);
}

size_t dt_image_kernels(const dt_image *im) { return im->image->nkernels; }
const char *dt_image_kernel_name(const dt_image *im, size_t i) {
  return i < im->image->nkernels ? im->image->kernels[i].name : NULL;
}

// ---- packs ------------------------------------------------------------------------------------------------------------
struct dt_pack {
  dt_context *context;
  Escape escape;
  Arena arena;
  PackEntry *entries;
  uint32_t n;
};

static Status parse_pack(dt_pack *p, const void *bytes, size_t n, Diags *d) {
  if (ESCAPE_TRY(&p->escape)) {
    diag(d, DIAG_ERROR, LOC_NONE, "%s", p->escape.message);
    return p->escape.status;
  }
  return pack_read(&p->arena, bytes, n, &p->entries, &p->n, d);
}

static Status open_pack(ApiCall *call, void *user) {
  ReadArgs *a = user;
  char *data;
  Status s = os_read_file(&call->arena, a->path, MOST_IMAGE_BYTES, &data, &a->n);
  if (s != ST_OK) {
    diag(&call->diags, DIAG_ERROR, LOC_NONE, "%s: %s", a->path,
         s == ST_LIMIT ? "larger than 1 GiB" : os_error());
    return s;
  }
  dt_pack *p = calloc(1, sizeof *p);
  if (!p) return ST_NO_MEMORY;
  p->context = call->context;
  arena_init(&p->arena, 0, &p->escape);
  s = parse_pack(p, data, a->n, &call->diags);
  if (s == ST_OK)
    *a->pack = p;
  else
    dt_pack_destroy(p);
  return s;
}

dt_status dt_pack_open(dt_context *c, const char *path, dt_pack **out) {
  ReadArgs a = {.path = path, .pack = out};
  dt_status st = api_need(c, "dt_pack_open", "path", path);
  return st != DT_OK ? st : api_call(c, open_pack, &a);
}

dt_status dt_pack_get(dt_pack *p, const char *key, dt_image **out) {
  dt_status st = api_need(p->context, "dt_pack_get", "key", key);
  if (st != DT_OK) return st;
  for (uint32_t i = 0; i < p->n; i++)
    if (strcmp(p->entries[i].key, key) == 0)
      return api_image_from_bytes(p->context, p->entries[i].bytes, p->entries[i].n, out);
  return api_fail(p->context, ST_NOT_FOUND,
                  "the pack has no kernel '%s'; `ditron pack --list` shows what it has", key);
}

void dt_pack_destroy(dt_pack *p) {
  if (!p) return;
  arena_free(&p->arena);
  free(p);
}

const char *dt_pack_key(const dt_pack *p, size_t i) { return i < p->n ? p->entries[i].key : NULL; }

struct dt_pack_writer {
  dt_context *context;
  Escape escape;
  Arena arena;
  Vec(PackEntry) entries;
};

dt_status dt_pack_writer_create(dt_context *c, dt_pack_writer **out) {
  dt_pack_writer *w = calloc(1, sizeof *w);
  if (!w) return api_fail(c, ST_NO_MEMORY, "out of memory");
  w->context = c;
  arena_init(&w->arena, 0, &w->escape);
  *out = w;
  return DT_OK;
}

static PackEntry *entry_of(const dt_pack_writer *w, const char *key) {
  for (uint32_t i = 0; i < w->entries.len; i++)
    if (strcmp(w->entries.data[i].key, key) == 0) return &w->entries.data[i];
  return NULL;
}
bool dt_pack_writer_has(const dt_pack_writer *w, const char *key) { return entry_of(w, key) != NULL; }

dt_status dt_pack_writer_add(dt_pack_writer *w, const char *key, const dt_image *im) {
  dt_status st = api_need(w->context, "dt_pack_writer_add", "key", key);
  if (st == DT_OK) st = api_need(w->context, "dt_pack_writer_add", "image", im);
  if (st != DT_OK) return st;
  if (ESCAPE_TRY(&w->escape)) return api_fail(w->context, w->escape.status, "%s", w->escape.message);
  const PackEntry e = {arena_strdup(&w->arena, key), arena_copy(&w->arena, im->bytes, im->nbytes),
                       im->nbytes};
  PackEntry *old = entry_of(w, key);
  if (old)
    *old = e;
  else
    vec_push(&w->arena, &w->entries, e);
  return DT_OK;
}

typedef struct SaveArgs {
  dt_pack_writer *writer;
  const char *path;
} SaveArgs;
static Status save_pack(ApiCall *call, void *user) {
  SaveArgs *a = user;
  void *bytes;
  size_t n;
  Status s =
      pack_write(a->writer->entries.data, a->writer->entries.len, &call->arena, &bytes, &n, &call->diags);
  if (s != ST_OK) return s;
  if ((s = os_write_file(a->path, bytes, n)) != ST_OK)
    diag(&call->diags, DIAG_ERROR, LOC_NONE, "%s: %s", a->path, os_error());
  return s;
}
dt_status dt_pack_writer_save(dt_pack_writer *w, const char *path) {
  SaveArgs a = {w, path};
  dt_status st = api_need(w->context, "dt_pack_writer_save", "path", path);
  return st != DT_OK ? st : api_call(w->context, save_pack, &a);
}

void dt_pack_writer_destroy(dt_pack_writer *w) {
  if (!w) return;
  arena_free(&w->arena);
  free(w);
}
