"""Layer norm and RMS norm of rows, in f32. One instance handles rows pid, pid + grid, ..."""
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, row_stride, n_rows, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    """out = (x - mean) / sqrt(var + eps) * w + b. BLOCK_SIZE: a power of two, at least n_cols."""
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    part = 1.0 / n_cols
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + tl.cast(row, tl.int64) * row_stride + cols, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(x, axis=0) * part
        centred = tl.where(mask, x - mean, 0.0)
        var = tl.sum(centred * centred, axis=0) * part
        y = centred * tl.rsqrt(var + eps) * w + b
        tl.store(out_ptr + tl.cast(row, tl.int64) * row_stride + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, row_stride, n_rows, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    """out = x / sqrt(mean(x^2) + eps) * w. BLOCK_SIZE: a power of two, at least n_cols."""
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    part = 1.0 / n_cols
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + tl.cast(row, tl.int64) * row_stride + cols, mask=mask, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=0) * part + eps)
        tl.store(out_ptr + tl.cast(row, tl.int64) * row_stride + cols, (x * scale * w).to(out_ptr.dtype.element_ty), mask=mask)
