"""Cross entropy of logits and target classes, with label smoothing and a penalty on the logarithm of the sum, forward and backward.

A row's loss is lse - (1 - smoothing) x[target] - smoothing mean(x) + penalty lse^2 with lse = log(sum(exp(x))); 0 where the target
is `ignore`. One pass over the classes, BLOCK at a time: any number of them.

    cross_entropy_kernel[(rows,)](logits, targets, loss, lse, logits.stride(0), classes, -100, 0.0, 0.0, BLOCK=4096)
    cross_entropy_backward_kernel[(rows, cdiv(classes, 4096))](logits, targets, lse, grad, logits, ...)     # may overwrite logits
"""
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(x_ptr, target_ptr, loss_ptr, lse_ptr, row_stride, n_cols, ignore, smoothing, penalty, BLOCK: tl.constexpr):
    """x [rows, n_cols] f32, f16 or bf16; targets i32 or i64[rows]; loss, lse f32[rows]. Grid: rows."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    x_ptr += row * row_stride
    i = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    plain = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + start + i, mask=start + i < n_cols, other=float("-inf")).to(tl.float32)
        plain += tl.where(start + i < n_cols, x, 0.0)
        new_top = tl.maximum(top, x)
        safe = tl.where(new_top == float("-inf"), 0.0, new_top)
        total = total * tl.exp(top - safe) + tl.exp(x - safe)
        top = new_top
    row_top = tl.max(top, axis=0)
    safe = tl.where(row_top == float("-inf"), 0.0, row_top)
    lse = safe + tl.log(tl.sum(total * tl.exp(top - safe), axis=0))
    tl.store(lse_ptr + row, lse)
    loss = 0.0
    if target != ignore:
        hit = tl.load(x_ptr + target).to(tl.float32)
        loss = lse - (1.0 - smoothing) * hit + penalty * lse * lse
        if smoothing != 0.0:  # without it a class that is ruled out by -inf costs nothing
            loss -= smoothing / n_cols * tl.sum(plain, axis=0)
    tl.store(loss_ptr + row, loss)


@triton.jit
def cross_entropy_backward_kernel(x_ptr, target_ptr, lse_ptr, grad_ptr, dx_ptr, row_stride, dx_row_stride, n_cols, ignore, smoothing,
                                  penalty, BLOCK: tl.constexpr):
    """dx = grad[row] * d loss / d x; dx may be x. grad: f32[rows]. Grid: (rows, cdiv(n_cols, BLOCK))."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n_cols
    target = tl.load(target_ptr + row)
    lse = tl.load(lse_ptr + row)
    x = tl.load(x_ptr + row * row_stride + i, mask=mask, other=float("-inf")).to(tl.float32)
    dx = tl.exp(x - lse) * (1.0 + 2.0 * penalty * lse) - smoothing / n_cols - tl.where(i == target, 1.0 - smoothing, 0.0)
    dx = tl.where(target == ignore, 0.0, dx * tl.load(grad_ptr + row))
    tl.store(dx_ptr + row * dx_row_stride + i, dx.to(dx_ptr.dtype.element_ty), mask=mask)
