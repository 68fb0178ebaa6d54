# Rows that are a multiple of 8 elements of 2 bytes apart begin at multiples of 16 bytes: K divisible by 8 is enough for f16. Of fp8 it is not.
# RUN: ditron compile %s --target sm_90a --sig "a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f32, M=i32, K=i32:8" --explain -o x.image 2>&1 | grep -E "^[^ ].*load"
# RUN: ditron compile %s --target sm_90a --sig "a_ptr=*f8e5m2:16, b_ptr=*f8e5m2:16, c_ptr=*f32, M=i32, K=i32:8" --explain -o x.image 2>&1 | grep -E "^[^ ].*load"
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, K):
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    inner = tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :], mask=(rows[:, None] < M) & ((k + inner)[None, :] < K), other=0.0)
        b = tl.load(b_ptr + (k + inner)[:, None] * 64 + inner[None, :], mask=(k + inner)[:, None] < K, other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * 64 + inner[None, :], total, mask=rows[:, None] < M)


# CHECK: :14:13: remark: this load is raised to a tensor descriptor of 2 axes
# CHECK: :15:13: remark: this load is raised to a tensor descriptor of 2 axes
# CHECK: :14:13: remark: this load is not raised to a tensor descriptor: the size of its rows is not known to be a multiple of 16 bytes (parameter 'K')
# CHECK: :15:13: remark: this load is not raised to a tensor descriptor, since that in line 14 is not
