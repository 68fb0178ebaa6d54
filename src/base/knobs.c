// knobs: the environment, read once into a struct. The only getenv of the libraries.
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// What a variable holds; an empty one counts as unset.
static const char *variable(const char *name) {
  const char *s = getenv(name);
  return s && *s ? s : NULL;
}

static bool read_STR(const char **out, const char *name, const char *def, Arena *a, Diags *d) {
  (void)d;
  const char *s = variable(name);
  *out = arena_strdup(a, s ? s : def);
  return true;
}

static bool read_INT(int64_t *out, const char *name, int64_t def, Arena *a, Diags *d) {
  (void)a;
  *out = def;
  const char *s = variable(name);
  if (!s) return true;
  char *end;
  errno = 0;
  const long long v = strtoll(s, &end, 10);
  if (errno || *end || v < 0) {
    diag(d, DIAG_ERROR, LOC_NONE, "%s is '%.64s', but must be a whole number from 0", name, s);
    return false;
  }
  *out = v;
  return true;
}

static bool read_BOOL(bool *out, const char *name, bool def, Arena *a, Diags *d) {
  (void)a;
  static const char *const words[2][4] = {{"0", "false", "no", "off"}, {"1", "true", "yes", "on"}};
  *out = def;
  const char *s = variable(name);
  if (!s) return true;
  for (int v = 0; v < 2; v++) {
    for (size_t i = 0; i < DT_COUNTOF(words[v]); i++) {
      if (strcasecmp(s, words[v][i]) == 0) {
        *out = v;
        return true;
      }
    }
  }
  diag(d, DIAG_ERROR, LOC_NONE, "%s is '%.64s', but must be 0 or 1", name, s);
  return false;
}

Status knobs_read(Knobs *k, Arena *a, Diags *d) {
  bool ok = true;
#define KNOB(name, env, type, def, text) ok &= read_##type(&k->name, env, def, a, d);
#include "base/knobs.def"
#undef KNOB
  return ok ? ST_OK : ST_INVALID;
}
