// .npy files, versions 1 to 3: little-endian, C order, the dtypes that NumPy and Ditron share. The format is described in
// NumPy's documentation (numpy.lib.format).
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
  const char *descr;
  dt_dtype dtype;
} descrs[] = {
    {"|b1", DT_I1},  {"|i1", DT_I8},  {"<i2", DT_I16}, {"<i4", DT_I32}, {"<i8", DT_I64}, {"|u1", DT_U8},
    {"<u2", DT_U16}, {"<u4", DT_U32}, {"<u8", DT_U64}, {"<f2", DT_F16}, {"<f4", DT_F32}, {"<f8", DT_F64},
};

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

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
  if (strlen(header) != len || !descr || !order || !shape) {
    snprintf(why, cap, "its header is damaged");
  } else if (*descr != '\'' && *descr != '"') {
    snprintf(why, cap, "elements of a structured type are not supported");
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
static dt_status open_npy(dt_context *c, const char *path, CliTensor *t, FILE **out) {
  enum { MOST_HEADER = 1 << 16 };
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not hold us
  FILE *f = fd >= 0 ? fdopen(fd, "rb") : NULL;
  if (!f) {
    if (fd >= 0) close(fd);
    return cli_no(c, DT_IO, "%s: %s", path, strerror(errno));
  }
  unsigned char *head = malloc(MOST_HEADER);
  char why[160] = "out of memory";
  size_t data = 0;
  bool ok = false;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    snprintf(why, sizeof why, "not a regular file");
  } else if (head) {
    size_t n = fread(head, 1, MOST_HEADER, f);
    ok = npy_parse(head, n, (uint64_t)st.st_size, t, &data, why, sizeof why);
  }
  free(head);
  if (ok && fseeko(f, (off_t)data, SEEK_SET) == 0) return *out = f, DT_OK;
  fclose(f);
  return cli_no(c, DT_IO, "%s: %s", path, why);
}

dt_status npy_header(dt_context *c, const char *path, CliTensor *out) {
  FILE *f = NULL;
  dt_status st = open_npy(c, path, out, &f);
  if (st == DT_OK) fclose(f);
  return st;
}

dt_status npy_read(dt_context *c, const char *path, dt_dtype want, size_t count, void *memory) {
  CliTensor t;
  FILE *f = NULL;
  dt_status st = open_npy(c, path, &t, &f);
  if (st != DT_OK) return st;
  const bool same = t.count == count;
  size_t bytes = t.count * dt_dtype_bytes(t.dtype);
  void *raw = !same ? NULL : t.dtype == want ? memory : malloc(bytes ? bytes : 1);
  if (!raw || fread(raw, 1, bytes, f) != bytes)
    st = cli_no(c, DT_IO, "%s: %s", path,
                !same ? "changed while it was read"
                : raw ? "reading failed"
                      : "out of memory");
  else if (raw != memory)
    st = dt_convert(memory, want, raw, t.dtype, t.count);
  if (raw != memory) free(raw);
  fclose(f);
  return st;
}

dt_status npy_write(dt_context *c, const char *path, const CliTensor *t, const void *memory) {
  enum { HEAD = 10, MOST_DICT = 512 };
  dt_dtype as = t->dtype == DT_BF16 || t->dtype == DT_F8E4M3 || t->dtype == DT_F8E5M2 ? DT_F32 : t->dtype;
  const char *descr = "";
  for (size_t i = 0; i < sizeof descrs / sizeof descrs[0]; i++)
    if (descrs[i].dtype == as) descr = descrs[i].descr;
  char dict[MOST_DICT];
  int n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int i = 0; i < t->rank; i++)
    n += snprintf(dict + n, sizeof dict - (size_t)n, "%lld,", (long long)t->shape[i]);
  n += snprintf(dict + n, sizeof dict - (size_t)n, "), }");
  while ((HEAD + n + 1) % 64) dict[n++] = ' ';
  dict[n++] = '\n';
  size_t start = (size_t)(HEAD + n), bytes = t->count * dt_dtype_bytes(as);
  unsigned char *file = malloc(start + bytes);
  if (!file) return cli_no(c, DT_NO_MEMORY, "%s: out of memory", path);
  memcpy(file, magic, sizeof magic);
  memcpy(file + sizeof magic, (unsigned char[4]){1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)}, 4);
  memcpy(file + HEAD, dict, (size_t)n);
  dt_convert(file + start, as, memory, t->dtype, t->count);
  dt_status st = dt_write_file(c, path, file, start + bytes);
  free(file);
  return st;
}
