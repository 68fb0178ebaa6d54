// bytes: the writer, the reader that never trusts its input, and the sealed envelope round images and packs.
#include "image/image_impl.h"

// ---- writing -----------------------------------------------------------------------------------
void image_put(ImageWriter *w, const void *p, size_t n) {
  if (!n) return;
  const size_t len = w->out.len;
  if (n > UINT32_MAX - len) escape_now(w->arena->escape, ST_LIMIT, "an image may have at most 4 GiB");
  vec_reserve(w->arena, &w->out, len + n);
  memcpy(w->out.data + len, p, n);
  w->out.len += (uint32_t)n;
}

static void put_word(ImageWriter *w, uint64_t x, size_t n) {
  unsigned char b[8];
  for (size_t i = 0; i < n; i++) b[i] = (unsigned char)(x >> (8 * i));
  image_put(w, b, n);
}

void image_put_u8(ImageWriter *w, uint32_t x) { put_word(w, x, 1); }
void image_put_u32(ImageWriter *w, uint32_t x) { put_word(w, x, 4); }
void image_put_u64(ImageWriter *w, uint64_t x) { put_word(w, x, 8); }

void image_put_str(ImageWriter *w, const char *s) {
  if (!s) {
    image_put_u32(w, UINT32_MAX);
    return;
  }
  const size_t n = strlen(s);
  image_put_u32(w, (uint32_t)n);
  image_put(w, s, n);
}

// ---- reading -----------------------------------------------------------------------------------
void image_bad(ImageReader *r, const char *why) {
  if (!r->bad) r->bad = why;
  r->p = r->end;
}

static uint64_t get_word(ImageReader *r, size_t n) {
  if ((size_t)(r->end - r->p) < n) {
    image_bad(r, "it ends early");
    return 0;
  }
  uint64_t x = 0;
  for (size_t i = 0; i < n; i++) x |= (uint64_t)r->p[i] << (8 * i);
  r->p += n;
  return x;
}

uint32_t image_get_u8(ImageReader *r) { return (uint32_t)get_word(r, 1); }
uint32_t image_get_u32(ImageReader *r) { return (uint32_t)get_word(r, 4); }
uint64_t image_get_u64(ImageReader *r) { return get_word(r, 8); }

const char *image_get_str(ImageReader *r) {
  const uint32_t n = image_get_u32(r);
  if (n == UINT32_MAX) return NULL;
  if (n > (size_t)(r->end - r->p)) {
    image_bad(r, "a text is longer than the file");
    return NULL;
  }
  if (memchr(r->p, 0, n)) {
    image_bad(r, "a text holds a zero byte");
    return NULL;
  }
  char *s = arena_alloc(r->arena, (size_t)n + 1, 1);
  memcpy(s, r->p, n);
  r->p += n;
  return s;
}

const char *image_get_name(ImageReader *r) {
  const char *s = image_get_str(r);
  if (s) return s;
  image_bad(r, "a name is missing");
  return "";
}

const void *image_get_blob(ImageReader *r, size_t *n) {
  const uint64_t len = image_get_u64(r);
  *n = 0;
  if (len > (size_t)(r->end - r->p)) {
    image_bad(r, "a block of data is longer than the file");
    return NULL;
  }
  if (!len) return NULL;
  void *p = arena_alloc(r->arena, len, 64);
  memcpy(p, r->p, len);
  r->p += len;
  *n = len;
  return p;
}

uint32_t image_get_below(ImageReader *r, uint32_t limit, const char *bad) {
  const uint32_t x = image_get_u32(r);
  if (x < limit) return x;
  image_bad(r, bad);
  return 0;
}

uint32_t image_get_count(ImageReader *r, size_t each) {
  const uint32_t n = image_get_u32(r);
  if (n <= (size_t)(r->end - r->p) / each) return n;
  image_bad(r, "a count is larger than the file can hold");
  return 0;
}

// ---- envelope ----------------------------------------------------------------------------------
static uint64_t seal_hash(const unsigned char *bytes, size_t n) {
  return hash_bytes(bytes + IMAGE_HEADER, n - IMAGE_HEADER, hash_bytes(bytes, 24, 0));
}

static void store_u64(unsigned char *p, uint64_t x) {
  for (int i = 0; i < 8; i++) p[i] = (unsigned char)(x >> (8 * i));
}

void image_seal_begin(ImageWriter *w, const char magic[8], uint32_t format) {
  image_put(w, magic, 8);
  image_put_u32(w, format);
  image_put_u32(w, IMAGE_ABI);
  image_put_u64(w, 0);
  image_put_u64(w, 0);
}

void image_seal_end(ImageWriter *w) {
  unsigned char *b = (unsigned char *)w->out.data;
  store_u64(b + 16, w->out.len - IMAGE_HEADER);
  store_u64(b + 24, seal_hash(b, w->out.len));
}

Status image_unseal(ImageReader *r, Arena *a, const void *bytes, size_t n, const char magic[8],
                    uint32_t format, const char *what, Diags *d) {
  const unsigned char *b = bytes;
  *r = (ImageReader){.arena = a, .p = b, .end = b + n};
  if (n < 8 || memcmp(b, magic, 8) != 0) {
    diag(d, DIAG_ERROR, LOC_NONE, "this is not a %s", what);
    return ST_CORRUPT;
  }
  r->p += 8;
  const uint32_t f = image_get_u32(r), abi = image_get_u32(r);
  const uint64_t payload = image_get_u64(r), hash = image_get_u64(r);
  if (r->bad) return image_finish(r, what, d);
  if (f != format || abi != IMAGE_ABI) {
    diag(d, DIAG_ERROR, LOC_NONE, "this %s has format %u and launch ABI %u, but this version reads %u and %u",
         what, f, abi, format, IMAGE_ABI);
    diag_hint(d, "compile the kernel again with this version");
    return ST_VERSION;
  }
  if (payload != n - IMAGE_HEADER) {
    diag(d, DIAG_ERROR, LOC_NONE, "this %s should have %llu bytes but has %zu", what,
         (unsigned long long)payload + IMAGE_HEADER, n);
    return ST_CORRUPT;
  }
  if (hash != seal_hash(b, n)) {
    diag(d, DIAG_ERROR, LOC_NONE, "this %s is damaged: its checksum does not hold", what);
    return ST_CORRUPT;
  }
  return ST_OK;
}

Status image_finish(const ImageReader *r, const char *what, Diags *d) {
  const char *bad = r->bad ? r->bad : r->p != r->end ? "bytes are left over at its end" : NULL;
  if (!bad) return ST_OK;
  diag(d, DIAG_ERROR, LOC_NONE, "this %s is damaged: %s", what, bad);
  return ST_CORRUPT;
}
