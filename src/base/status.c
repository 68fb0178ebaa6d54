// status: names and texts of the one list of status codes (status.def).
#include "base/base.h"

const char *status_name(Status s) {
  switch (s) {
#define STATUS(name, code, text) \
  case ST_##name: \
    return #name;
#include "base/status.def"
#undef STATUS
  }
  return "UNKNOWN";
}

const char *status_text(Status s) {
  switch (s) {
#define STATUS(name, code, text) \
  case ST_##name: \
    return text;
#include "base/status.def"
#undef STATUS
  }
  return "unknown status";
}
