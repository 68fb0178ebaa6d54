// image_impl: what the files of the image room share. A writer that appends little-endian words to an arena, and a
// reader that can be handed any bytes: past the end, or after anything odd, it yields zeros and remembers the first
// complaint, so decoding code needs no check after each field, only one at the end of each record.
#ifndef DITRON_IMAGE_IMPL_H
#define DITRON_IMAGE_IMPL_H

#include "image/image.h"

#include <string.h>

typedef struct ImageWriter {
  Arena *arena;
  Vec(char) out;
} ImageWriter;
void image_put(ImageWriter *w, const void *p, size_t n);
void image_put_u8(ImageWriter *w, uint32_t x);
void image_put_u32(ImageWriter *w, uint32_t x);
void image_put_u64(ImageWriter *w, uint64_t x);
void image_put_str(ImageWriter *w, const char *s); // NULL survives the trip

typedef struct ImageReader {
  Arena *arena;
  const unsigned char *p, *end;
  const char *bad; // the first complaint, or NULL
} ImageReader;
uint32_t image_get_u8(ImageReader *r);
uint32_t image_get_u32(ImageReader *r);
uint64_t image_get_u64(ImageReader *r);
const char *image_get_str(ImageReader *r);             // a copy in the arena; NULL where NULL was written
const char *image_get_name(ImageReader *r);            // the same, but NULL is a complaint; never NULL
const void *image_get_blob(ImageReader *r, size_t *n); // u64 length, then the bytes; 64-byte aligned copy
uint32_t image_get_below(ImageReader *r, uint32_t limit, const char *bad); // u32 < limit
// A count of records that take at least `each` bytes; one that cannot fit in what is left is a complaint and 0.
uint32_t image_get_count(ImageReader *r, size_t each);
void image_bad(ImageReader *r, const char *why);

// ---- map.c
enum { IMAGE_MAP_MIN = 4 + 4 * 4 + 4 * IMAGE_MAP_RANK + 2 + 4 * (1 + 2 * IMAGE_MAP_RANK) };
void image_put_map(ImageWriter *w, const ImageMap *m);
void image_get_map(ImageReader *r, const ImageVariant *v, ImageMap *m);
bool image_get_bool(ImageReader *r);

// The envelope that images and packs share:
//     0  magic[8]   8  u32 format   12  u32 abi   16  u64 payload bytes   24  u64 hash of bytes 0..23 and payload   32  payload
enum { IMAGE_HEADER = 32 };
void image_seal_begin(ImageWriter *w, const char magic[8], uint32_t format);
void image_seal_end(ImageWriter *w);
// Checks the envelope and points r at the payload. `what` names the kind of file in the diagnostic.
Status image_unseal(ImageReader *r, Arena *a, const void *bytes, size_t n, const char magic[8],
                    uint32_t format, const char *what, Diags *d);
// ST_OK, or ST_CORRUPT and a diagnostic where the reader complained or bytes are left over.
Status image_finish(const ImageReader *r, const char *what, Diags *d);

#endif
