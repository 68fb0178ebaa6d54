/* Loads a kernel compiled ahead of time and launches it. Needs libditron-rt only: no LLVM in the process.
 *   ditron compile kernels/elementwise.py:add_kernel --target x86-64 \
 *     --sig "x_ptr=*f32, y_ptr=*f32, out_ptr=*f32, n_elements=i32, BLOCK_SIZE=1024" -o add.dtk
 *   cc ahead_of_time.c $(pkg-config --cflags --libs ditron-rt) && ./a.out add.dtk */
#include <ditron/ditron.h>
#include <stdio.h>

enum { N = 5000, BLOCK = 1024 };

static dt_status add(dt_rank *r, const dt_image *image) {
  static float x[N], y[N], out[N]; /* the kernel asks for no alignment, so any memory will do */
  for (int i = 0; i < N; i++) {
    x[i] = (float)i;
    y[i] = (float)(2 * i);
  }
  dt_kernel *kernel = NULL;
  dt_stream *stream = NULL;
  dt_status st = dt_kernel_load(r, image, "add_kernel", &kernel);
  if (st == DT_OK) st = dt_stream_create(r, "main", &stream);
  if (st == DT_OK) {
    const uint32_t grid[3] = {(N + BLOCK - 1) / BLOCK, 1, 1};
    const dt_value values[] = {dt_ptr(DT_F32, x), dt_ptr(DT_F32, y), dt_ptr(DT_F32, out), dt_int(N)};
    st = dt_launch(kernel, stream, grid, values, 4);
    if (st == DT_OK) st = dt_stream_sync(stream);
  }
  int wrong = 0;
  for (int i = 0; i < N && st == DT_OK; i++) wrong += out[i] != (float)(3 * i);
  if (st == DT_OK) printf("add: %d elements, %d wrong\n", N, wrong);
  dt_stream_destroy(stream);
  dt_kernel_destroy(kernel);
  return wrong ? DT_INTERNAL : st;
}

int main(int argc, char **argv) {
  dt_context *c = NULL;
  dt_team *team = NULL;
  dt_image *image = NULL;
  if (argc != 2) return fprintf(stderr, "usage: %s add.dtk\n", argv[0]), 2;
  dt_status st = dt_context_create(NULL, &c);
  if (st == DT_OK) st = dt_image_open(c, argv[1], &image);
  if (st == DT_OK) st = dt_team_create(c, NULL, &team);
  if (st == DT_OK) st = add(dt_team_local(team, 0), image);
  if (st != DT_OK) fprintf(stderr, "%s\n", dt_error(c));
  dt_team_destroy(team);
  dt_image_destroy(image);
  dt_context_destroy(c);
  return st != DT_OK;
}
