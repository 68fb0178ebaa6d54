// pack: many images in one file, each under a key. Keys are unique; the order of writing is kept.
#include "image/image_impl.h"

static const char MAGIC[8] = "DTKPACK\0";
static const char WHAT[] = "kernel pack";
enum { FORMAT = 1, ENTRY_MIN = 4 + 8 };

// The first key that a later entry repeats, or NULL.
static const char *repeated_key(const PackEntry *e, uint32_t n, Arena *a) {
  Strings *names = strings_new(a);
  Map seen;
  map_init(&seen, a);
  for (uint32_t i = 0; i < n; i++) {
    const Str *key = str_cstr(names, e[i].key);
    if (map_getp(&seen, key)) return e[i].key;
    map_setp(&seen, key, e[i].key);
  }
  return NULL;
}

Status pack_write(const PackEntry *e, uint32_t n, Arena *a, void **bytes, size_t *len, Diags *d) {
  for (uint32_t i = 0; i < n; i++) {
    if (e[i].key) continue;
    diag(d, DIAG_ERROR, LOC_NONE, "entry %u of the %s has no key", i, WHAT);
    return ST_INVALID;
  }
  const char *twice = repeated_key(e, n, a);
  if (twice) {
    diag(d, DIAG_ERROR, LOC_NONE, "the %s would hold '%.200s' twice", WHAT, twice);
    return ST_INVALID;
  }
  ImageWriter w = {.arena = a};
  image_seal_begin(&w, MAGIC, FORMAT);
  image_put_u32(&w, n);
  for (uint32_t i = 0; i < n; i++) {
    image_put_str(&w, e[i].key);
    image_put_u64(&w, e[i].n);
    image_put(&w, e[i].bytes, e[i].n);
  }
  image_seal_end(&w);
  *bytes = w.out.data;
  *len = w.out.len;
  return ST_OK;
}

Status pack_read(Arena *a, const void *bytes, size_t n, PackEntry **e, uint32_t *count, Diags *d) {
  ImageReader r;
  *e = NULL;
  *count = 0;
  const Status s = image_unseal(&r, a, bytes, n, MAGIC, FORMAT, WHAT, d);
  if (s != ST_OK) return s;
  const uint32_t entries = image_get_count(&r, ENTRY_MIN);
  PackEntry *list = arena_array(a, PackEntry, entries);
  for (uint32_t i = 0; i < entries; i++) {
    list[i].key = image_get_name(&r);
    list[i].bytes = image_get_blob(&r, &list[i].n);
  }
  if (!r.bad && repeated_key(list, entries, a)) image_bad(&r, "it holds a key twice");
  const Status done = image_finish(&r, WHAT, d);
  if (done != ST_OK) return done;
  *e = list;
  *count = entries;
  return ST_OK;
}
