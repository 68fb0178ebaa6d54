// --sig: types instead of values, "x=*bf16:16, n=i32:16, s=f32, d=desc(f16;64,32), BLOCK=128". Each becomes an example value
// of that type, which is what the compiler specialises for.
#include "cli/sig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int dtype_at(const char *s, size_t n) {
  for (int d = 0; d < DT_NDTYPES; d++)
    if (strlen(dt_dtype_name((dt_dtype)d)) == n && memcmp(dt_dtype_name((dt_dtype)d), s, n) == 0) return d;
  return -1;
}

// "bf16:16" -> dtype and divisor (1 where absent).
static bool type_of(const char *s, dt_dtype *d, int64_t *divisor) {
  size_t n = strcspn(s, ":");
  int found = dtype_at(s, n);
  *divisor = 1;
  if (found < 0 || (s[n] && (!cli_int(s + n + 1, divisor) || *divisor < 1))) return false;
  *d = (dt_dtype)found;
  return true;
}

static bool desc_of(const char *s, CliSig *sig, dt_value *out) {
  size_t n = strcspn(s, ";");
  int d = dtype_at(s, n);
  if (d < 0 || s[n] != ';' || sig->ndescs == CLI_SIG_DESCS) return false;
  dt_desc *desc = &sig->descs[sig->ndescs++];
  *desc = (dt_desc){.dtype = (dt_dtype)d};
  for (s += n; *s == ';' || *s == ',';) {
    char *end;
    long b = strtol(s + 1, &end, 10);
    if (end == s + 1 || b < 1 || desc->rank == DT_MAX_RANK) return false;
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
  if (d >= DT_F16) {
    *out = dt_float(0.5);
    out->dtype = d;
    return divisor == 1;
  }
  if (divisor != 1 && divisor % 16 != 0) return false;
  *out = dt_int(divisor == 1 ? odd : odd * divisor);
  if (d == DT_I64) out->u.i += (int64_t)1 << 40;
  if (d == DT_I1) *out = dt_bool(true);
  out->dtype = d;
  return true;
}

static bool entry(const char *text, CliSig *sig) {
  const char *equals = strchr(text, '=');
  dt_named *arg = &sig->args[sig->n];
  dt_dtype d;
  int64_t divisor;
  if (!equals || equals == text) return cli_fail("--sig: '%s' is not NAME=TYPE or NAME=VALUE", text), false;
  arg->name = strndup(text, (size_t)(equals - text));
  const char *p = equals + 1;
  bool ok = true;
  if (*p == '*') {
    ok = type_of(p + 1, &d, &divisor);
    if (ok) arg->value = dt_ptr(d, divisor % 16 == 0 ? NULL : (void *)(uintptr_t)1);
  } else if (strncmp(p, "desc(", 5) == 0) {
    ok = desc_of(p + 5, sig, &arg->value);
  } else if (type_of(p, &d, &divisor)) {
    ok = scalar_of(d, divisor, &arg->value);
  } else {
    CliValue v;
    if (!cli_value(text, 0, &v)) return false;
    ok = v.kind != DT_VALUE_PTR && v.kind != DT_VALUE_DESC;
    if (ok) arg->value = cli_plain_value(&v);
  }
  if (!ok)
    return cli_fail("--sig: '%s': expected *DTYPE[:16], DTYPE[:16], desc(DTYPE;B0,B1) or a constant", text),
           false;
  sig->n++;
  return true;
}

bool cli_sig(const char *text, CliSig *sig) {
  memset(sig, 0, sizeof *sig);
  char *copy = strdup(text), *start = copy;
  if (!copy) return cli_fail("out of memory"), false;
  bool ok = true;
  for (int depth = 0; ok && start;) {
    char *p = start;
    for (; *p && !(*p == ',' && depth == 0); p++) depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
    char *next = *p ? p + 1 : NULL, *end = p;
    while (start < end && *start == ' ') start++;
    while (end > start && end[-1] == ' ') end--;
    *end = 0;
    if (*start && sig->n == CLI_SIG_ARGS)
      ok = (cli_fail("--sig: more than %d entries", CLI_SIG_ARGS), false);
    else if (*start)
      ok = entry(start, sig);
    start = next;
  }
  free(copy);
  return ok;
}
