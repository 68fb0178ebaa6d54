// api: the public functions over the rooms. rt_*.c go into libditron-rt, compile_*.c into libditron. This header is the room's
// own: the handles' contents and how failures become texts.
#ifndef DITRON_API_IMPL_H
#define DITRON_API_IMPL_H

#define DT_UNSTABLE
#include "ditron/ditron.h"

#include <pthread.h>

#include "base/base.h"
#include "image/image.h"
#include "rt/rt.h"

typedef struct ApiMessages { // of one thread
  pthread_t thread;
  char *error, *remarks, *text;
  struct ApiMessages *next;
} ApiMessages;

struct dt_context {
  pthread_mutex_t lock; // of messages
  ApiMessages *messages;
  Escape escape;
  Arena arena; // settings; only dt_context_create allocates here
  Knobs knobs;
  const char *kernels_dir;
  RtContext *rt;
  RtCache *cache;
};

struct dt_rank {
  RtRank *rt;
  dt_team *team;
};
struct dt_team {
  dt_context *context;
  RtTeam *rt;
  char *report; // of the latest dt_team_report
  int nranks;
  dt_rank ranks[];
};
struct dt_stream {
  RtStream *rt;
  dt_rank *rank;
};

// A failure of the runtime, recorded for the calling thread.
dt_status api_rt(dt_context *c, Status s, const RtError *e);
static inline dt_context *api_rank_context(const dt_rank *r) { return r->team->context; }

struct dt_image {
  dt_context *context;
  Escape escape;
  Arena arena;
  Image *image;
  void *bytes; // as written to disk
  size_t nbytes;
};

// Records the calling thread's failure and returns it.
dt_status api_fail(dt_context *c, Status s, const char *fmt, ...) DT_PRINTF(3, 4);
// ST_OK unless p is NULL; what: the argument in the words of ditron.h.
DT_SHARED dt_status api_need(dt_context *c, const char *call, const char *what, const void *p);
void api_remark(dt_context *c, const char *text);
// Keeps a copy of text for the calling thread until its next such call; NULL when memory ends.
DT_SHARED const char *api_keep_text(dt_context *c, const char *text);

// One guarded call: fn may allocate in the arena and report to diags. What it returns becomes the status; errors in diags, or
// the end of memory, become the thread's message, warnings and remarks its remarks. Everything in the arena dies with the call.
typedef struct ApiCall {
  dt_context *context;
  Escape escape;
  Arena arena;
  Diags diags;
} ApiCall;
DT_SHARED dt_status api_call(dt_context *c, Status (*fn)(ApiCall *call, void *user), void *user);

// An image from serialised bytes (copied).
DT_SHARED dt_status api_image_from_bytes(dt_context *c, const void *bytes, size_t n, dt_image **out);

// Defined in libditron only.
DT_SHARED const char *api_compiler_info(dt_context *c);

static inline dt_status api_status(Status s) { return (dt_status)s; }

#endif
