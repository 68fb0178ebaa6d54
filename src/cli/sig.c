// --sig: types instead of values, "x=*bf16:16, n=i32:16, s=f32, d=desc(f16;64,32), BLOCK=128". Each becomes an example value
// of that type, which is what the compiler specialises for.
#include "cli/sig.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// "bf16:16" -> dtype and divisor: 16, 8, or 1 (where absent too).
static bool type_of(const char *s, dt_dtype *d, int64_t *divisor) {
  size_t n = strcspn(s, ":");
  int found = cli_dtype(s, n);
  *divisor = 1;
  if (found < 0 ||
      (s[n] && (!cli_int(s + n + 1, divisor) || (*divisor != 1 && *divisor != 8 && *divisor != 16))))
    return false;
  *d = (dt_dtype)found;
  return true;
}

static bool desc_of(const char *s, CliSig *sig, dt_value *out) {
  size_t n = strcspn(s, ";");
  int d = cli_dtype(s, n);
  if (d < 0 || s[n] != ';' || sig->ndescs == CLI_SIG_DESCS) return false;
  dt_desc *desc = &sig->descs[sig->ndescs++];
  *desc = (dt_desc){.dtype = (dt_dtype)d};
  for (s += n; *s == ';' || *s == ',';) {
    char *end;
    long b = strtol(s + 1, &end, 10);
    if (end == s + 1 || b < 1 || b > 1 << 20 || desc->rank == DT_MAX_RANK) return false;
    desc->strides[desc->rank] = 1;
    desc->block[desc->rank++] = (int32_t)b;
    s = end;
  }
  if (strcmp(s, ")") != 0) return false;
  *out = dt_tensor(desc);
  return true;
}

static bool scalar_of(dt_dtype d, int64_t divisor, dt_value *out) {
  const int64_t odd = 3; // neither 1 nor a multiple of 16
  if (d == DT_I1)
    *out = dt_bool(true);
  else if (d >= DT_F16)
    *out = dt_float(0.5);
  else
    *out = dt_int(odd * divisor);
  // too large for 32 bits, as plain integers count by their value
  if (d == DT_I64) out->u.i += (int64_t)1 << 40;
  if (d == DT_U64) out->u.i |= INT64_MIN;
  out->dtype = d;
  return divisor == 1 || (d != DT_I1 && d < DT_F16);
}

static dt_status entry(dt_context *c, const char *text, CliSig *sig) {
  const char *equals = strchr(text, '=');
  dt_named *arg = &sig->args[sig->n];
  CliValue *v = &sig->values[sig->n];
  dt_dtype d;
  int64_t divisor;
  if (!equals || equals == text)
    return cli_no(c, DT_INVALID, "--sig: '%.200s' is not NAME=TYPE or NAME=VALUE", text);
  sig->n++;
  if (!(arg->name = v->name = strndup(text, (size_t)(equals - text)))) abort();
  const char *p = equals + 1;
  bool ok = true;
  if (*p == '*') {
    ok = type_of(p + 1, &d, &divisor) && divisor != 8;
    if (ok) arg->value = dt_ptr(d, divisor == 16 ? NULL : (void *)(uintptr_t)1);
  } else if (strncmp(p, "desc(", 5) == 0) {
    ok = desc_of(p + 5, sig, &arg->value);
  } else if (cli_dtype(p, strcspn(p, ":")) >= 0) {
    ok = type_of(p, &d, &divisor) && scalar_of(d, divisor, &arg->value);
  } else {
    free(v->name);
    dt_status st = cli_value(c, text, 0, v);
    if (st != DT_OK) return st;
    arg->name = v->name;
    ok = !cli_is_tensor(v);
    if (ok) arg->value = cli_plain_value(v);
  }
  if (ok) return DT_OK;
  return cli_no(
      c, DT_INVALID,
      "--sig: '%.200s': expected *DTYPE or *DTYPE:16, DTYPE, DTYPE:8 or DTYPE:16, desc(DTYPE;B0,B1) or a constant",
      text);
}

// The end of the entry at p: a comma outside of brackets and quotes.
static char *entry_end(char *p) {
  char quote = 0;
  for (int depth = 0; *p && !(*p == ',' && depth == 0 && !quote); p++) {
    if (quote)
      quote = *p == quote ? 0 : quote;
    else if (*p == '"' || *p == '\'')
      quote = *p;
    else
      depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
  }
  return p;
}

dt_status cli_sig(dt_context *c, const char *text, CliSig *sig) {
  memset(sig, 0, sizeof *sig);
  char *copy = strdup(text), *start = copy;
  if (!copy) return cli_no(c, DT_NO_MEMORY, "out of memory");
  dt_status st = DT_OK;
  while (st == DT_OK && start) {
    char *end = entry_end(start), *next = *end ? end + 1 : NULL;
    while (start < end && isspace((unsigned char)*start)) start++;
    while (end > start && isspace((unsigned char)end[-1])) end--;
    *end = 0;
    if (*start && sig->n == CLI_SIG_ARGS)
      st = cli_no(c, DT_LIMIT, "--sig: more than %d entries", CLI_SIG_ARGS);
    else if (*start)
      st = entry(c, start, sig);
    start = next;
  }
  free(copy);
  return st;
}

void cli_sig_free(CliSig *sig) {
  for (int i = 0; i < sig->n; i++) cli_value_free(&sig->values[i]);
}
