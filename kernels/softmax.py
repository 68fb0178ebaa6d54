"""Row softmax. One instance handles rows pid, pid + grid, ...: any grid up to the number of rows is right."""
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out_ptr, x_ptr, x_row_stride, out_row_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr,
                   num_stages: tl.constexpr = 2):
    """out[r, :] = exp(x[r, :] - max) / sum. BLOCK_SIZE: a power of two, at least n_cols."""
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        cols = tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + tl.cast(row, tl.int64) * x_row_stride + cols, mask=mask, other=-float('inf')).to(tl.float32)
        # exp(x - max) as a power of two: one multiplication and addition an element; what max * log2(e) is rounded by cancels
        log2e = 1.4426950408889634
        numerator = tl.exp2(x * log2e - tl.max(x, axis=0) * log2e)
        y = numerator * (1.0 / tl.sum(numerator, axis=0))
        tl.store(out_ptr + tl.cast(row, tl.int64) * out_row_stride + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
