// rt_cuda: a team of one rank on the driver made of host memory (tests/fake), for the tests of the CUDA device.
#ifndef DITRON_RT_CUDA_TEST_H
#define DITRON_RT_CUDA_TEST_H

#include "fake/cuda.h"
#include "harness/test.h"
#include "rt/rt.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char fake_path[PATH_MAX];
static FakeCuda *(*fake_state)(int reset);

static FakeCuda *fake(void) { return fake_state(0); }

static int find_fake(void **state) {
  (void)state;
  const ssize_t n = readlink("/proc/self/exe", fake_path, sizeof fake_path - 32);
  if (n < 0) return -1;
  fake_path[n] = 0;
  strcpy(strrchr(fake_path, '/') + 1, "libcuda_fake.so");
  void *lib = dlopen(fake_path, RTLD_NOW | RTLD_NODELETE);
  void *f = lib ? dlsym(lib, "fake_cuda") : NULL;
  memcpy(&fake_state, &f, sizeof f);
  return f ? 0 : -1;
}

typedef struct Gpu { // a team of one rank on the fake device
  Arena arena;
  Escape escape;
  RtContext *context;
  RtTeam *team;
  RtRank *rank;
  RtStream *stream;
  RtError e;
} Gpu;

static void gpu_up(Gpu *g, const char *lib, const RtTeamConfig *team) {
  memset(g, 0, sizeof *g);
  arena_init(&g->arena, 0, &g->escape);
  if (ESCAPE_TRY(&g->escape)) fail_msg("%s", g->escape.message);
  assert_int_equal(
      rt_context_create(&(RtConfig){.libcuda = lib, .deadline_ns = 2000000000}, &g->context, &g->e), ST_OK);
  RtTeamConfig config = team ? *team : (RtTeamConfig){0};
  if (!config.device) config.device = "cuda";
  if (rt_team_create(g->context, &config, &g->team, &g->e) != ST_OK) fail_msg("%s", g->e.text);
  g->rank = rt_team_rank(g->team, 0);
  if (rt_stream_create(g->rank, "main", &g->stream, &g->e) != ST_OK) fail_msg("%s", g->e.text);
}

static void gpu_down(Gpu *g) {
  rt_stream_destroy(g->stream);
  rt_team_destroy(g->team);
  rt_context_destroy(g->context);
  arena_free(&g->arena);
}

static void up(Gpu *g) {
  fake_state(1);
  gpu_up(g, fake_path, NULL);
}

static void nothing_left(void) {
  const FakeCuda *f = fake();
  assert_int_equal(f->used, 0);
  assert_int_equal(f->allocations, 0);
  assert_int_equal(f->pinned, 0);
  assert_int_equal(f->modules, 0);
  assert_int_equal(f->streams, 0);
  assert_int_equal(f->events, 0);
  assert_int_equal(f->contexts, 0);
}

static void down(Gpu *g) {
  gpu_down(g);
  nothing_left();
}

#define OK(call) \
  do { \
    if ((call) != ST_OK) fail_msg("%s: %s", #call, g.e.text); \
  } while (0)
#define NOT(status, call, said) \
  do { \
    assert_int_equal(call, status); \
    if (!strstr(g.e.text, said)) fail_msg("'%s' is not in: %s", said, g.e.text); \
  } while (0)

#endif
