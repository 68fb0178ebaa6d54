/* Compiles a kernel from text and launches it. Needs libditron.
 *   cc compile_and_launch.c $(pkg-config --cflags --libs ditron) */
#include <ditron/ditron.h>
#include <stdio.h>

static const char source[] = "import triton\n"
                             "import triton.language as tl\n"
                             "\n"
                             "@triton.jit\n"
                             "def saxpy(x_ptr, y_ptr, a, n, BLOCK: tl.constexpr):\n"
                             "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                             "    m = i < n\n"
                             "    y = a * tl.load(x_ptr + i, mask=m) + tl.load(y_ptr + i, mask=m)\n"
                             "    tl.store(y_ptr + i, y, mask=m)\n";

enum { N = 100000, BLOCK = 1024 };

static dt_status saxpy(dt_context *c, dt_rank *r) {
  void *x, *y;
  dt_status st;
  if ((st = dt_alloc(r, N * sizeof(float), &x)) != DT_OK ||
      (st = dt_alloc(r, N * sizeof(float), &y)) != DT_OK)
    return st;
  for (int i = 0; i < N; i++) {
    ((float *)x)[i] = (float)i;
    ((float *)y)[i] = 1;
  }
  const dt_named args[] = {{"x_ptr", dt_ptr(DT_F32, x)},
                           {"y_ptr", dt_ptr(DT_F32, y)},
                           {"a", dt_float(0.5)},
                           {"n", dt_int(N)},
                           {"BLOCK", dt_int(BLOCK)}};
  dt_image *image = NULL;
  dt_kernel *kernel = NULL;
  dt_stream *stream = NULL;
  if ((st = dt_compile_text(c, "saxpy.py", source, sizeof source - 1, NULL, args, 5, NULL, &image)) ==
          DT_OK &&
      (st = dt_kernel_load(r, image, NULL, &kernel)) == DT_OK &&
      (st = dt_stream_create(r, "main", &stream)) == DT_OK) {
    const uint32_t grid[3] = {(N + BLOCK - 1) / BLOCK, 1, 1};
    const dt_value values[] = {args[0].value, args[1].value, args[2].value,
                               args[3].value}; /* all but the constexpr */
    st = dt_launch(kernel, stream, grid, values, 4);
    if (st == DT_OK) st = dt_stream_sync(stream);
  }
  int wrong = 0;
  for (int i = 0; i < N && st == DT_OK; i++) wrong += ((float *)y)[i] != 0.5f * (float)i + 1;
  if (st == DT_OK) printf("saxpy: %d elements, %d wrong\n", N, wrong);
  dt_stream_destroy(stream);
  dt_kernel_destroy(kernel);
  dt_image_destroy(image);
  dt_free(r, x);
  dt_free(r, y);
  return wrong ? DT_INTERNAL : st;
}

int main(void) {
  dt_context *c = NULL;
  dt_team *team = NULL;
  dt_status st = dt_context_create(NULL, &c);
  if (st == DT_OK) st = dt_team_create(c, NULL, &team);
  if (st == DT_OK) st = saxpy(c, dt_team_local(team, 0));
  if (st != DT_OK) fprintf(stderr, "%s\n", dt_error(c));
  dt_team_destroy(team);
  dt_context_destroy(c);
  return st != DT_OK;
}
