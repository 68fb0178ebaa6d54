// .npy files, versions 1 to 3: little-endian, C order, the dtypes that NumPy and Ditron share. The format is described in
// NumPy's documentation (numpy.lib.format).
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
  const char *descr;
  dt_dtype dtype;
} descrs[] = {
    {"|b1", DT_I1},  {"|i1", DT_I8},  {"<i2", DT_I16}, {"<i4", DT_I32}, {"<i8", DT_I64}, {"|u1", DT_U8},
    {"<u2", DT_U16}, {"<u4", DT_U32}, {"<u8", DT_U64}, {"<f2", DT_F16}, {"<f4", DT_F32}, {"<f8", DT_F64},
};

// Finds `'key':` in the header's dict and returns what follows it.
static const char *value_of(const char *header, const char *key) {
  char quoted[32];
  for (const char *quote = "'\""; *quote; quote++) {
    snprintf(quoted, sizeof quoted, "%c%s%c", *quote, key, *quote);
    const char *p = strstr(header, quoted);
    if (!p) continue;
    p += strlen(quoted);
    while (*p == ' ') p++;
    if (*p != ':') continue;
    do p++;
    while (*p == ' ');
    return p;
  }
  return NULL;
}

static bool parse_shape(const char *p, CliTensor *out) {
  enum { MOST_AXES = 8 };
  uint64_t count = 1;
  out->rank = 0;
  if (*p++ != '(') return false;
  for (;;) {
    while (*p == ' ' || *p == ',') p++;
    if (*p == ')') break;
    if (*p < '0' || *p > '9' || out->rank == MOST_AXES) return false;
    uint64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++)
      if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
        return false;
    if (*p == 'L') p++;
    if (v > INT64_MAX || __builtin_mul_overflow(count, v, &count)) return false;
    out->shape[out->rank++] = (int64_t)v;
  }
  if (count > INT64_MAX / 8) return false;
  out->count = count;
  return true;
}

bool npy_parse(const unsigned char *b, size_t n, uint64_t file_size, CliTensor *out, size_t *data, char *why,
               size_t cap) {
  static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (n < 10 || memcmp(b, magic, 6) != 0) return snprintf(why, cap, "not a .npy file"), false;
  int major = b[6];
  size_t at = major == 1 ? 10 : 12, len = (size_t)b[8] | (size_t)b[9] << 8;
  if (major < 1 || major > 3) return snprintf(why, cap, ".npy version %d is not known", major), false;
  if (major > 1 && n >= 12) len |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (n < at || len > n - at) return snprintf(why, cap, "truncated within its header"), false;
  char *header = malloc(len + 1);
  if (!header) return snprintf(why, cap, "out of memory"), false;
  memcpy(header, b + at, len);
  header[len] = 0;
  bool ok = false;
  const char *descr = value_of(header, "descr"), *order = value_of(header, "fortran_order"),
             *shape = value_of(header, "shape");
  if (strlen(header) != len || !descr || !order || !shape || (*descr != '\'' && *descr != '"')) {
    snprintf(why, cap, "its header is damaged");
  } else if (strncmp(order, "False", 5) != 0) {
    snprintf(why, cap, "stored in Fortran order; save numpy.ascontiguousarray(x)");
  } else if (!parse_shape(shape, out)) {
    snprintf(why, cap, "its shape is damaged, too large, or has more than 8 axes");
  } else {
    size_t dlen = strcspn(descr + 1, "'\"");
    for (size_t i = 0; i < sizeof descrs / sizeof descrs[0] && !ok; i++) {
      ok = dlen == 3 &&
           (memcmp(descr + 1, descrs[i].descr, 3) == 0 ||
            (descrs[i].descr[0] == '|' && descr[1] == '<' && memcmp(descr + 2, descrs[i].descr + 1, 2) == 0));
      if (ok) out->dtype = descrs[i].dtype;
    }
    if (!ok)
      snprintf(why, cap, "elements of type '%.*s' are not supported", (int)(dlen > 16 ? 16 : dlen),
               descr + 1);
  }
  free(header);
  *data = at + len;
  if (ok && file_size - *data < (uint64_t)out->count * dt_dtype_bytes(out->dtype))
    return snprintf(why, cap, "truncated: its shape needs %llu bytes, it has %llu",
                    (unsigned long long)(out->count * dt_dtype_bytes(out->dtype)),
                    (unsigned long long)(file_size - *data)),
           false;
  return ok;
}

// Opens, checks the header, leaves the file at the first element.
static FILE *open_npy(const char *path, CliTensor *t) {
  enum { MOST_HEADER = 1 << 16 };
  FILE *f = fopen(path, "rb");
  struct stat st;
  if (!f || fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
    cli_fail("%s: %s", path, f && errno == 0 ? "not a regular file" : strerror(errno));
    if (f) fclose(f);
    return NULL;
  }
  unsigned char *head = malloc(MOST_HEADER);
  size_t n = head ? fread(head, 1, MOST_HEADER, f) : 0, data = 0;
  char why[160] = "out of memory";
  bool ok = head && npy_parse(head, n, (uint64_t)st.st_size, t, &data, why, sizeof why);
  free(head);
  if (ok && fseek(f, (long)data, SEEK_SET) == 0) return f;
  cli_fail("%s: %s", path, why);
  fclose(f);
  return NULL;
}

bool npy_header(const char *path, CliTensor *out) {
  FILE *f = open_npy(path, out);
  if (f) fclose(f);
  return f != NULL;
}

bool npy_read(const char *path, dt_dtype want, const CliTensor *shape, void *memory) {
  CliTensor t;
  FILE *f = open_npy(path, &t);
  if (!f) return false;
  size_t bytes = t.count * dt_dtype_bytes(t.dtype);
  void *raw = t.count == shape->count ? malloc(bytes ? bytes : 1) : NULL;
  bool ok = raw && fread(raw, 1, bytes, f) == bytes;
  if (!ok)
    cli_fail("%s: %s", path,
             t.count != shape->count ? "changed while it was read"
             : raw                   ? "reading failed"
                                     : "out of memory");
  else
    ok = dt_convert(memory, want, raw, t.dtype, t.count) == DT_OK;
  free(raw);
  fclose(f);
  return ok;
}

bool npy_write(const char *path, const CliTensor *t, const void *memory) {
  dt_dtype as = t->dtype == DT_BF16 || t->dtype == DT_F8E4M3 || t->dtype == DT_F8E5M2 ? DT_F32 : t->dtype;
  const char *descr = "";
  for (size_t i = 0; i < sizeof descrs / sizeof descrs[0]; i++)
    if (descrs[i].dtype == as) descr = descrs[i].descr;
  char dict[512], temporary[4096];
  int n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int i = 0; i < t->rank; i++)
    n += snprintf(dict + n, sizeof dict - (size_t)n, "%lld,", (long long)t->shape[i]);
  n += snprintf(dict + n, sizeof dict - (size_t)n, "), }");
  while ((10 + n + 1) % 64) dict[n++] = ' ';
  dict[n++] = '\n';
  size_t bytes = t->count * dt_dtype_bytes(as);
  void *raw = malloc(bytes ? bytes : 1);
  if (!raw || snprintf(temporary, sizeof temporary, "%s.part", path) >= (int)sizeof temporary) {
    free(raw);
    return cli_fail("%s: %s", path, raw ? "the name is too long" : "out of memory"), false;
  }
  dt_convert(raw, as, memory, t->dtype, t->count);
  FILE *f = fopen(temporary, "wb");
  const unsigned char head[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
  bool ok = f && fwrite(head, 1, 10, f) == 10 && fwrite(dict, 1, (size_t)n, f) == (size_t)n &&
            fwrite(raw, 1, bytes, f) == bytes;
  if (f && fclose(f) != 0) ok = false;
  if (ok) ok = rename(temporary, path) == 0;
  if (!ok) {
    cli_fail("%s: %s", path, strerror(errno));
    remove(temporary);
  }
  free(raw);
  return ok;
}
