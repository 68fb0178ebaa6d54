// Operators of one rank: elementwise sum, softmax, norms, matrix product.
#include "ops/ops_impl.h"

enum { ROW_BLOCK_LIMIT = 1 << 17 }; // longest row that a row kernel takes in one block

static int64_t pow2_at_least(int64_t x) {
  int64_t p = 16;
  while (p < x) p *= 2;
  return p;
}

static const char *const only_plain[] = {"plain", NULL};

// Enough instances to keep every worker busy, few enough that each has several rows.
static uint32_t row_grid(int64_t rows) { return (uint32_t)(rows < 256 ? rows : 256); }

dt_status ops_add_setup(dt_plan *p) {
  p->block = 4096;
  OpsKernel *k = ops_kernel(p, "elementwise.py", "add_kernel");
  ops_arg(k, "x_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "y_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "out_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "n_elements", dt_int(p->o.n));
  ops_arg(k, "BLOCK_SIZE", dt_int(p->block));
  return ops_choose(p, only_plain, "plain");
}
dt_status ops_add_run(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  return OPS_LAUNCH(&p->kernels[0], s, ops_cdiv(p->o.n, p->block), 1, dt_ptr(d, t[0]), dt_ptr(d, t[1]),
                    dt_ptr(d, t[2]), dt_int(p->o.n));
}

static dt_status row_setup(dt_plan *p) {
  p->block = (int32_t)pow2_at_least(p->o.n);
  if (p->o.n > ROW_BLOCK_LIMIT)
    return ops_fail(p, DT_UNSUPPORTED, "%s: rows of %lld elements; at most %d", p->row->name,
                    (long long)p->o.n, ROW_BLOCK_LIMIT);
  return ops_choose(p, only_plain, "plain");
}

dt_status ops_softmax_setup(dt_plan *p) {
  dt_status st = row_setup(p);
  if (st != DT_OK) return st;
  OpsKernel *k = ops_kernel(p, "softmax.py", "softmax_kernel");
  ops_arg(k, "out_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "x_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "x_row_stride", dt_int(p->o.n));
  ops_arg(k, "out_row_stride", dt_int(p->o.n));
  ops_arg(k, "n_rows", dt_int(p->o.m));
  ops_arg(k, "n_cols", dt_int(p->o.n));
  ops_arg(k, "BLOCK_SIZE", dt_int(p->block));
  return DT_OK;
}
dt_status ops_softmax_run(dt_plan *p, dt_stream *s, void *const *t) {
  return OPS_LAUNCH(&p->kernels[0], s, row_grid(p->o.m), 1, dt_ptr(p->o.dtype, t[1]),
                    dt_ptr(p->o.dtype, t[0]), dt_int(p->o.n), dt_int(p->o.n), dt_int(p->o.m), dt_int(p->o.n));
}

static dt_status norm_setup(dt_plan *p, const char *kernel, bool bias) {
  dt_status st = row_setup(p);
  if (st != DT_OK) return st;
  OpsKernel *k = ops_kernel(p, "norm.py", kernel);
  ops_arg(k, "x_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "w_ptr", ops_tensor(p->o.dtype));
  if (bias) ops_arg(k, "b_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "out_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "row_stride", dt_int(p->o.n));
  ops_arg(k, "n_rows", dt_int(p->o.m));
  ops_arg(k, "n_cols", dt_int(p->o.n));
  ops_arg(k, "eps", dt_float(bias ? 1e-5 : 1e-6));
  ops_arg(k, "BLOCK_SIZE", dt_int(p->block));
  return DT_OK;
}
dt_status ops_layer_norm_setup(dt_plan *p) { return norm_setup(p, "layer_norm_kernel", true); }
dt_status ops_layer_norm_run(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  return OPS_LAUNCH(&p->kernels[0], s, row_grid(p->o.m), 1, dt_ptr(d, t[0]), dt_ptr(d, t[1]), dt_ptr(d, t[2]),
                    dt_ptr(d, t[3]), dt_int(p->o.n), dt_int(p->o.m), dt_int(p->o.n), dt_float(1e-5));
}
dt_status ops_rms_norm_setup(dt_plan *p) { return norm_setup(p, "rms_norm_kernel", false); }
dt_status ops_rms_norm_run(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  return OPS_LAUNCH(&p->kernels[0], s, row_grid(p->o.m), 1, dt_ptr(d, t[0]), dt_ptr(d, t[1]), dt_ptr(d, t[2]),
                    dt_int(p->o.n), dt_int(p->o.m), dt_int(p->o.n), dt_float(1e-6));
}

dt_status ops_matmul_setup(dt_plan *p) {
  ops_gemm_blocks(p, p->o.m);
  OpsKernel *k = ops_kernel(p, "matmul.py", "matmul_persistent_kernel");
  ops_arg(k, "a_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "b_ptr", ops_tensor(p->o.dtype));
  ops_arg(k, "c_ptr", ops_tensor(p->o.dtype));
  ops_gemm_args(p, k, p->o.m, p->o.n, p->o.k);
  return ops_choose(p, only_plain, "plain");
}
dt_status ops_matmul_run(dt_plan *p, dt_stream *s, void *const *t) {
  dt_dtype d = p->o.dtype;
  int64_t tiles = ops_cdiv(p->o.m, p->block_m) * ops_cdiv(p->o.n, p->block_n);
  return OPS_LAUNCH(&p->kernels[0], s, tiles, 1, dt_ptr(d, t[0]), dt_ptr(d, t[1]), dt_ptr(d, t[2]),
                    dt_int(p->o.m), dt_int(p->o.n), dt_int(p->o.k));
}
