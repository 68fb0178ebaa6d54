// NAME=VALUE on a command line: numbers, constants, dtypes, functions, tensors by file or fill, descriptors.
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *cli_with_rank(const char *text, int rank) {
  char number[16];
  size_t len = (size_t)snprintf(number, sizeof number, "%d", rank), n = strlen(text), room = n + 1;
  for (const char *p = text; (p = strstr(p, "{rank}")); p += 6) room += len;
  char *out = malloc(room), *w = out;
  if (!out) abort();
  while (*text) {
    if (strncmp(text, "{rank}", 6) == 0) {
      memcpy(w, number, len);
      w += len;
      text += 6;
    } else {
      *w++ = *text++;
    }
  }
  *w = 0;
  return out;
}

static dt_status bad(dt_context *c, const CliValue *v, const char *why) {
  return cli_no(c, DT_INVALID, "%.60s=%.200s: %s", v->name, v->text, why);
}

static char *copy(const char *s, size_t n) {
  char *p = strndup(s, n);
  if (!p) abort();
  return p;
}

static int language_dtype(const char *s) { // "tl.float16" and the like
  static const struct {
    const char *name;
    dt_dtype d;
  } names[] = {{"int1", DT_I1},     {"int8", DT_I8},           {"int16", DT_I16},      {"int32", DT_I32},
               {"int64", DT_I64},   {"uint8", DT_U8},          {"uint16", DT_U16},     {"uint32", DT_U32},
               {"uint64", DT_U64},  {"float16", DT_F16},       {"bfloat16", DT_BF16},  {"float32", DT_F32},
               {"float64", DT_F64}, {"float8e4nv", DT_F8E4M3}, {"float8e5", DT_F8E5M2}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(s, names[i].name) == 0) return names[i].d;
  return -1;
}

#define DTYPES "i1 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2"

// "f32[2,3]" into dtype and shape; *end behind it.
static dt_status shape_of(dt_context *c, CliValue *v, const char *p, const char **end) {
  const char *open = strchr(p, '[');
  int d = open ? cli_dtype(p, (size_t)(open - p)) : -1;
  if (d < 0) return bad(c, v, "expected DTYPE[SHAPE] with a dtype of " DTYPES);
  v->dtype = v->tensor.dtype = (dt_dtype)d;
  v->tensor.rank = 0;
  uint64_t count = 1;
  for (p = open + 1; *p && *p != ']';) {
    char *stop;
    long long size = strtoll(p, &stop, 10);
    if (stop == p || size < 0 || v->tensor.rank == 8 ||
        __builtin_mul_overflow(count, (uint64_t)size, &count) || count > (1ull << 40))
      return bad(c, v, "a shape is up to 8 sizes, separated by commas, of at most 2^40 elements in all");
    v->tensor.shape[v->tensor.rank++] = size;
    p = *stop == ',' ? stop + 1 : stop;
    if (*stop != ',' && *stop != ']') return bad(c, v, "expected ',' or ']' in the shape");
  }
  if (*p != ']') return bad(c, v, "the shape lacks its ']'");
  v->tensor.count = count;
  *end = p + 1;
  return DT_OK;
}

// "(1,-2,0.5)" into the numbers that the elements take in turn.
static dt_status list_of(dt_context *c, CliValue *v, const char **p) {
  const char *q = *p;
  if (*q != '(') return bad(c, v, "this fill takes its numbers in brackets: list(V,...)");
  do {
    char *stop;
    const double x = strtod(++q, &stop);
    if (stop == q) return bad(c, v, "expected a number in the list");
    double *more = realloc(v->list, (v->nlist + 1) * sizeof *more);
    if (!more) abort();
    v->list = more;
    v->list[v->nlist++] = x;
    q = stop;
  } while (*q == ',');
  if (*q != ')') return bad(c, v, "expected ',' or ')' in the list");
  *p = q + 1;
  return DT_OK;
}

static dt_status fill_of(dt_context *c, CliValue *v, const char *p, const char **end) {
  static const char *const fills[] = {"zeros",   "ones", "arange", "randn", "rand",
                                      "randint", "full", "empty",  "list"};
  size_t n = strcspn(p, "(:");
  v->fill = NULL;
  for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++)
    if (strlen(fills[i]) == n && memcmp(p, fills[i], n) == 0) v->fill = fills[i];
  if (!v->fill)
    return bad(c, v,
               "no such value; a tensor is FILL:DTYPE[SHAPE] with FILL zeros ones arange randn rand "
               "randint(LO,HI) full(V) list(V,...) empty, or @file.npy");
  p += n;
  if (strcmp(v->fill, "list") == 0) {
    dt_status st = list_of(c, v, &p);
    if (st != DT_OK) return st;
  }
  int want = strcmp(v->fill, "randint") == 0 ? 2 : strcmp(v->fill, "full") == 0 ? 1 : 0, got = 0;
  if (*p == '(') {
    double *slots[2] = {&v->fill_a, &v->fill_b};
    for (p++; got < 2; got++) {
      char *stop, *whole;
      *slots[got] = strtod(p, &stop);
      if (got == 0) {
        v->fill_i = *p == '-' ? strtoll(p, &whole, 10) : (int64_t)strtoull(p, &whole, 10);
        v->fill_whole = stop == whole;
      }
      if (stop == p) break;
      p = *stop == ',' ? stop + 1 : stop;
    }
    if (*p++ != ')') return bad(c, v, "expected ')' behind the fill's numbers");
  }
  if (got != want)
    return bad(c, v,
               want ? "this fill takes its numbers in brackets: randint(LO,HI), full(V)"
                    : "this fill takes no numbers");
  if (*p != ':') return bad(c, v, "expected ':DTYPE[SHAPE]' behind the fill");
  return shape_of(c, v, p + 1, end);
}

// "x.npy" or "x.npy:bf16"; a colon that no dtype follows belongs to the name.
static dt_status file_of(dt_context *c, CliValue *v, const char *p, size_t n) {
  const char *colon = memrchr(p, ':', n);
  int d = colon ? cli_dtype(colon + 1, n - (size_t)(colon + 1 - p)) : -1;
  v->file = copy(p, d >= 0 ? (size_t)(colon - p) : n);
  if (!*v->file) return bad(c, v, "expected a file's name behind '@'");
  dt_status st = npy_header(c, v->file, &v->tensor);
  if (st != DT_OK) return st;
  if (d >= 0) v->tensor.dtype = (dt_dtype)d;
  v->dtype = v->tensor.dtype;
  return DT_OK;
}

static dt_status tensor_of(dt_context *c, CliValue *v, const char *p, const char **end) {
  if (strncmp(p, "sym:", 4) == 0) {
    v->symmetric = true;
    p += 4;
  }
  v->kind = DT_VALUE_PTR;
  if (*p != '@') return fill_of(c, v, p, end);
  size_t n = v->is_desc ? strcspn(p, ";") : strlen(p);
  *end = p + n;
  return file_of(c, v, p + 1, n - 1);
}

static dt_status desc_of(dt_context *c, CliValue *v, const char *p) { // desc(TENSOR;B0,B1)
  const char *end;
  v->is_desc = true;
  dt_status st = tensor_of(c, v, p + 5, &end);
  if (st != DT_OK) return st;
  if (*end++ != ';')
    return bad(c, v, "a descriptor is desc(TENSOR;B0,B1,...) with a block size for each axis");
  for (v->nblock = 0; v->nblock < DT_MAX_RANK; v->nblock++) {
    char *stop;
    long b = strtol(end, &stop, 10);
    if (stop == end || b < 1 || b > 1 << 20) return bad(c, v, "a block size is a number from 1 to 2^20");
    v->block[v->nblock] = (int32_t)b;
    end = stop;
    if (*end != ',') {
      v->nblock++;
      break;
    }
    end++;
  }
  if (strcmp(end, ")") != 0) return bad(c, v, "expected ')' behind the descriptor's block sizes");
  if (v->nblock != v->tensor.rank)
    return bad(c, v, "a descriptor needs one block size for each axis of its tensor");
  v->kind = DT_VALUE_DESC;
  return DT_OK;
}

// Whether p is a number: *st says whether a good one.
static bool number_of(dt_context *c, CliValue *v, const char *p, dt_status *st) {
  char *end;
  *st = DT_OK;
  if (cli_int(p, &v->i)) {
    v->kind = DT_VALUE_INT;
    return true;
  }
  const char *digits = p + (*p == '-');
  if (*digits && strspn(digits, "0123456789") == strlen(digits)) {
    errno = 0;
    unsigned long long u = strtoull(p, &end, 10);
    if (*p == '-' || errno == ERANGE) *st = bad(c, v, "an integer of more than 64 bits");
    v->kind = DT_VALUE_INT;
    v->i = (int64_t)u;
    v->is_unsigned = true;
    return true;
  }
  v->f = strtod(p, &end);
  v->kind = DT_VALUE_FLOAT;
  return end != p && !*end;
}

static bool looks_like_name(const char *p) {
  if (!isalpha((unsigned char)*p) && *p != '_') return false;
  for (; *p; p++)
    if (!isalnum((unsigned char)*p) && *p != '_' && *p != '.') return false;
  return true;
}

dt_status cli_value(dt_context *c, const char *text, int rank, CliValue *v) {
  const char *equals = strchr(text, '='), *end;
  dt_status st;
  memset(v, 0, sizeof *v);
  if (!equals || equals == text) return cli_no(c, DT_INVALID, "'%.200s' is not NAME=VALUE", text);
  v->name = copy(text, (size_t)(equals - text));
  v->text = cli_with_rank(equals + 1, rank);
  const char *p = v->text;
  size_t n = strlen(p);
  if (strcmp(p, "None") == 0) return v->kind = DT_VALUE_NONE, DT_OK;
  if (strcmp(p, "True") == 0 || strcmp(p, "False") == 0)
    return v->kind = DT_VALUE_BOOL, v->i = *p == 'T', DT_OK;
  if (strncmp(p, "tl.", 3) == 0) {
    int d = language_dtype(p + 3);
    if (d < 0) return bad(c, v, "no such dtype");
    v->kind = DT_VALUE_DTYPE;
    v->dtype = (dt_dtype)d;
    return DT_OK;
  }
  if (n >= 2 && (*p == '"' || *p == '\'') && p[n - 1] == *p) {
    v->kind = DT_VALUE_STR;
    v->str = copy(p + 1, n - 2);
    return DT_OK;
  }
  if (number_of(c, v, p, &st)) return st;
  if (strncmp(p, "desc(", 5) == 0 || strncmp(p, "sym:desc(", 9) == 0) {
    v->symmetric = *p == 's';
    return desc_of(c, v, v->symmetric ? p + 4 : p);
  }
  if (looks_like_name(p)) { // a jit function of the file
    v->kind = DT_VALUE_FUNC;
    v->str = copy(p, n);
    return DT_OK;
  }
  if ((st = tensor_of(c, v, p, &end)) != DT_OK) return st;
  return *end ? bad(c, v, "unexpected text behind the tensor") : DT_OK;
}

void cli_value_free(CliValue *v) {
  free(v->name);
  free(v->text);
  free(v->str);
  free(v->file);
  free(v->list);
  memset(v, 0, sizeof *v);
}

bool cli_is_tensor(const CliValue *v) { return v->kind == DT_VALUE_PTR || v->kind == DT_VALUE_DESC; }

dt_value cli_plain_value(const CliValue *v) {
  dt_value x = dt_none();
  switch (v->kind) {
  case DT_VALUE_INT:
    x = dt_int(v->i);
    if (v->is_unsigned) x.dtype = DT_U64;
    break;
  case DT_VALUE_FLOAT: x = dt_float(v->f); break;
  case DT_VALUE_BOOL: x = dt_bool(v->i != 0); break;
  case DT_VALUE_STR: x = dt_str(v->str); break;
  case DT_VALUE_FUNC: x = dt_func(v->str); break;
  case DT_VALUE_DTYPE: x = dt_type(v->dtype); break;
  default: break;
  }
  return x;
}

// ---- fills --------------------------------------------------------------------------------------------------------------
static uint64_t mix(uint64_t *s) { // splitmix64 (Steele, Lea, Flood 2014)
  uint64_t z = (*s += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static double unit(uint64_t *s) { return (double)(mix(s) >> 11) * 0x1p-53; }

static double element(const CliValue *v, size_t i, uint64_t *state) {
  switch (v->fill[0]) {
  case 'o': return 1;
  case 'a': return (double)i;
  case 'f': return v->fill_a;
  case 'l': return v->list[i % v->nlist];
  case 'r':
    if (strcmp(v->fill, "rand") == 0) return unit(state);
    if (strcmp(v->fill, "randint") == 0) return floor(v->fill_a + unit(state) * (v->fill_b - v->fill_a));
    return sqrt(-2 * log(1 - unit(state))) * cos(6.283185307179586 * unit(state)); // Box and Muller
  default: return 0;
  }
}

static bool whole_numbers(dt_dtype d) { return d >= DT_I8 && d <= DT_U64; }

dt_status cli_fill(dt_context *c, const CliValue *v, int rank, uint64_t seed, void *memory) {
  if (v->file) return npy_read(c, v->file, v->dtype, v->tensor.count, memory);
  if (strcmp(v->fill, "empty") == 0) return DT_OK;
  uint64_t state = seed + 0x51ed27u * (uint64_t)(rank + 1);
  for (const char *p = v->name; *p; p++) state = mix(&state) ^ (unsigned char)*p;
  size_t bytes = dt_dtype_bytes(v->dtype);
  const bool whole = whole_numbers(v->dtype); // a double holds no large integer exactly
  const bool exact = whole && v->fill[0] == 'f' && v->fill_whole;
  // what repeats is made once and copied: large tensors are filled at the speed of memory
  const size_t count = v->tensor.count;
  size_t period = count;
  if (v->fill[0] == 'l') period = v->nlist;
  if (strchr("zof", v->fill[0])) period = 1;
  const size_t made = period < count ? period : count;
  for (size_t i = 0; i < made; i++) {
    double x = element(v, i, &state);
    int64_t n = exact ? v->fill_i : (int64_t)x;
    dt_convert((char *)memory + i * bytes, v->dtype, whole ? (void *)&n : (void *)&x, whole ? DT_I64 : DT_F64,
               1);
  }
  for (size_t done = made, n; done < count; done += n) {
    n = done < count - done ? done : count - done;
    memcpy((char *)memory + done * bytes, memory, n * bytes);
  }
  return DT_OK;
}

void cli_show_tensor(const CliValue *v, const void *memory) {
  enum { SHOWN = 6 };
  printf("  %s %s[", v->name, dt_dtype_name(v->dtype));
  for (int i = 0; i < v->tensor.rank; i++) printf("%s%lld", i ? "," : "", (long long)v->tensor.shape[i]);
  printf("] =");
  for (size_t i = 0; i < v->tensor.count && i < SHOWN; i++) {
    const char *at = (const char *)memory + i * dt_dtype_bytes(v->dtype);
    int64_t n;
    double x;
    dt_convert(&n, v->dtype == DT_U64 ? DT_U64 : DT_I64, at, v->dtype, 1);
    dt_convert(&x, DT_F64, at, v->dtype, 1);
    if (v->dtype == DT_U64)
      printf(" %llu", (unsigned long long)n);
    else if (whole_numbers(v->dtype) || v->dtype == DT_I1)
      printf(" %lld", (long long)n);
    else if (isnan(x))
      printf(" nan");
    else
      printf(" %.6g", x);
  }
  printf("%s\n", v->tensor.count > SHOWN ? " ..." : "");
}
