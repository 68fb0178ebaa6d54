/* Two ranks exchange data: each writes its buffer into the other's symmetric memory, releases a flag there, and acquires its own.
 * Without an argument the ranks are threads of this process; under `ditron launch -n 2 ./two_ranks` they are processes.
 *   cc two_ranks.c $(pkg-config --cflags --libs ditron) */
#define DT_UNSTABLE /* dt_job, dt_context_fail */
#include <ditron/ditron.h>
#include <stdio.h>
#include <stdlib.h>

static const char source[] = "import ditron\n"
                             "import ditron.language as dl\n"
                             "import triton.language as tl\n"
                             "\n"
                             "@ditron.jit\n"
                             "def exchange(mine_ptr, inbox_ptr, out_ptr, flag_ptr, N: tl.constexpr):\n"
                             "    peer = 1 - dl.rank()\n"
                             "    i = tl.arange(0, N)\n"
                             "    tl.store(dl.symm_at(inbox_ptr, peer) + i, tl.load(mine_ptr + i))\n"
                             "    dl.release(flag_ptr, 1, rank=peer, scope=\"sys\")\n"
                             "    dl.acquire(flag_ptr, at_least=1, scope=\"sys\")\n"
                             "    tl.store(out_ptr + i, tl.load(inbox_ptr + i))\n";

enum { N = 1024 };

static dt_status exchange(dt_rank *r, void *user) {
  dt_context *c = dt_rank_context(r);
  void *mine, *inbox, *out, *flag;
  dt_status st;
  (void)user;
  if (dt_team_size(dt_rank_team(r)) != 2) return dt_context_fail(c, DT_INVALID, "run this on two ranks");
  if ((st = dt_alloc(r, N * sizeof(float), &mine)) != DT_OK ||
      (st = dt_alloc(r, N * sizeof(float), &out)) != DT_OK ||
      (st = dt_symm_alloc(r, N * sizeof(float), "inbox", &inbox)) != DT_OK ||
      (st = dt_symm_alloc(r, sizeof(int64_t), "flag", &flag)) != DT_OK)
    return st;
  int rank = dt_rank_index(r);
  for (int i = 0; i < N; i++) ((float *)mine)[i] = (float)(1000 * rank + i);
  const dt_named args[] = {{"mine_ptr", dt_ptr(DT_F32, mine)},
                           {"inbox_ptr", dt_ptr(DT_F32, inbox)},
                           {"out_ptr", dt_ptr(DT_F32, out)},
                           {"flag_ptr", dt_ptr(DT_I64, flag)},
                           {"N", dt_int(N)}};
  dt_image *image = NULL;
  dt_kernel *kernel = NULL;
  dt_stream *stream = NULL;
  if ((st = dt_compile_text(c, "exchange.py", source, sizeof source - 1, NULL, args, 5, NULL, &image)) ==
          DT_OK &&
      (st = dt_kernel_load(r, image, NULL, &kernel)) == DT_OK &&
      (st = dt_stream_create(r, "main", &stream)) == DT_OK && (st = dt_barrier(r)) == DT_OK) {
    const uint32_t grid[3] = {1, 1, 1};
    const dt_value values[] = {args[0].value, args[1].value, args[2].value, args[3].value};
    st = dt_launch(kernel, stream, grid, values, 4);
    if (st == DT_OK) st = dt_stream_sync(stream);
  }
  int wrong = 0;
  for (int i = 0; i < N && st == DT_OK; i++) wrong += ((float *)out)[i] != (float)(1000 * (1 - rank) + i);
  if (st == DT_OK) printf("rank %d: got %d elements from rank %d, %d wrong\n", rank, N, 1 - rank, wrong);
  dt_stream_destroy(stream);
  dt_kernel_destroy(kernel);
  dt_image_destroy(image);
  return wrong ? dt_context_fail(c, DT_INTERNAL, "wrong data") : st;
}

int main(void) {
  dt_context *c = NULL;
  dt_team *team = NULL;
  int rank, world = 1;
  const char *launcher;
  dt_status st = dt_context_create(NULL, &c);
  if (st == DT_OK) st = dt_job(c, &rank, &world, &launcher);
  dt_team_options o = {0};
  o.size = sizeof o;
  o.from_environment = world > 1;
  o.local_ranks = world > 1 ? 0 : 2;
  if (st == DT_OK) st = dt_team_create(c, &o, &team);
  if (st == DT_OK) st = dt_team_run(team, exchange, NULL);
  if (st != DT_OK) fprintf(stderr, "%s\n", dt_error(c));
  dt_team_destroy(team);
  dt_context_destroy(c);
  return st != DT_OK;
}
