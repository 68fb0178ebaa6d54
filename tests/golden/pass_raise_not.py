# What keeps a product's loads as they are: each loop has one reason.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f16:16, n_ptr=*i32, M=i32, K=i32:16" --explain -o /dev/null
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, n_ptr, M, K):
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    inner = tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    b = tl.load(b_ptr + inner[None, :] * K + inner[:, None])
    for k in range(0, K, 64):
        total = tl.dot(tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :], mask=rows[:, None] < M, other=1.0), b, total)
    for k in range(0, K, 64):
        total = tl.dot(tl.load(a_ptr + (rows % M)[:, None] * K + (k + inner)[None, :]), b, total)
    for k in range(0, K, 64):
        total = tl.dot(tl.load(a_ptr + (rows - 2 * tl.program_id(1))[:, None] * K + (k + inner)[None, :]), b, total)
    for k in range(0, K, 64):
        total = tl.dot(tl.load(a_ptr + rows[:, None] * K + ((k + inner) * M)[None, :]), b, total)
    for k in range(0, K, 64):
        total = tl.dot(tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :], mask=(rows[:, None] + k) % 3 == 0, other=0.0), b, total)
    for k in range(0, K, 64):
        total = tl.dot(tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :], mask=rows[:, None] < tl.load(n_ptr), other=0.0), b, total)
    for k in range(0, K, 64):
        total = tl.dot(tl.load(c_ptr + rows[:, None] * 64 + (k + inner)[None, :]), b, total)
    for k in range(0, K, 64):
        total = tl.dot(tl.load(a_ptr + (rows * rows)[:, None] * K + (k + inner)[None, :]), b, total)
    for k in range(0, K, 64):
        total = tl.dot(tl.load(a_ptr + rows[:, None] * M + (k + inner)[None, :]), b, total)
    tl.store(c_ptr + rows[:, None] * 64 + inner[None, :], total.to(tl.float16))


# CHECK: :14:24: remark: this load is not raised to a tensor descriptor: masked-off elements are not 0
# CHECK: :16:24: remark: this load is not raised to a tensor descriptor: its indices wrap around, and what is computed of those rows may be stored
# CHECK: :18:24: remark: this load is not raised to a tensor descriptor: its indices are not known not to be negative
# CHECK: :20:24: remark: this load is not raised to a tensor descriptor: neither of its strides is known to be 1
# CHECK: :22:24: remark: this load is not raised to a tensor descriptor: its mask is not made of comparisons of indices with sizes
# CHECK: :24:24: remark: this load is not raised to a tensor descriptor: the size that its mask cuts an axis at is not known to the host
# CHECK: :26:24: remark: this load is not raised to a tensor descriptor: the kernel may write the memory that it reads
# CHECK: :28:24: remark: this load is not raised to a tensor descriptor: its pointers are not a sum of a base, strides times indices and numbers
# CHECK: :30:24: remark: this load is not raised to a tensor descriptor: a stride is not known to be a multiple of 16 bytes (parameter 'M')
