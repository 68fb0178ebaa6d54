# ditron.h from C++: a kernel and an operator, on two ranks.
# TIMEOUT: 200
cat > use.cc <<'C'
#include <ditron/ditron.h>
#include <cstdio>
#include <cstring>
#include <vector>

static const char text[] = R"(
import triton
import triton.language as tl

@triton.jit
def scale(x_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)
)";

static dt_status run(dt_rank *r, void *user) {
  const int n = 1000, rank = dt_rank_index(r);
  dt_context *c = dt_rank_context(r);
  std::vector<float> x(n, 1.0f + rank), sum(n);
  dt_image *image = nullptr;
  dt_kernel *kernel = nullptr;
  dt_stream *stream = nullptr;
  dt_plan *plan = nullptr;
  const dt_named args[] = {{"x_ptr", dt_ptr(DT_F32, x.data())}, {"n", dt_int(n)}, {"factor", dt_float(2)}, {"BLOCK", dt_int(256)}};
  dt_status st = dt_compile_text(c, "scale.py", text, std::strlen(text), nullptr, args, 4, nullptr, &image);
  if (st == DT_OK) st = dt_kernel_load(r, image, nullptr, &kernel);
  if (st == DT_OK) st = dt_stream_create(r, "main", &stream);
  const uint32_t grid[3] = {4, 1, 1};
  const dt_value values[] = {dt_ptr(DT_F32, x.data()), dt_int(n), dt_float(2)};
  if (st == DT_OK) st = dt_launch(kernel, stream, grid, values, 3);
  dt_plan_options o = {};
  o.size = sizeof o;
  o.op = "all_reduce";
  o.dtype = DT_F32;
  o.m = n;
  if (st == DT_OK) st = dt_plan_create(r, &o, &plan);
  void *tensors[] = {x.data(), sum.data()};
  if (st == DT_OK) st = dt_plan_run(plan, stream, tensors, 2);
  if (st == DT_OK) st = dt_stream_sync(stream);
  for (float v : sum)
    if (st == DT_OK && v != 6.0f) st = DT_INTERNAL; // 2 * 1 + 2 * 2
  dt_plan_destroy(plan);
  dt_stream_destroy(stream);
  dt_kernel_destroy(kernel);
  dt_image_destroy(image);
  (void)user;
  return st;
}

int main() {
  dt_context *c = nullptr;
  dt_team *team = nullptr;
  dt_team_options o = {};
  o.size = sizeof o;
  o.local_ranks = 2;
  dt_status st = dt_context_create(nullptr, &c);
  if (st == DT_OK) st = dt_team_create(c, &o, &team);
  if (st == DT_OK) st = dt_team_run(team, run, nullptr);
  if (st != DT_OK) std::fprintf(stderr, "%s: %s\n", dt_status_name(st), dt_error(c));
  dt_team_destroy(team);
  dt_context_destroy(c);
  if (st == DT_OK) std::puts("all ranks agree");
  return st;
}
C
export DITRON_KERNELS=$ROOT/kernels
g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$ROOT/include" use.cc -o use -L"$BUILD" -lditron -lditron-rt -Wl,-rpath,"$BUILD"
./use | grep -x 'all ranks agree'
g++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I"$ROOT/include" -x c++ - <<< '#define DT_UNSTABLE
#include <ditron/ditron.h>'
