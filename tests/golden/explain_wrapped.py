# Columns that wrap around (i % N, N a multiple of 16) are neighbours in runs of 16: indices made of program numbers are not negative. The
# number of the tile is divided by sizes that only a launch knows, as tutorials do.
# RUN: ditron compile %s --target sm_80 --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f16:16, M=i32, N=i32:16, K=i32:16" --explain -o x.image 2>&1
import triton
import triton.language as tl


@triton.jit
def wrapped(a_ptr, b_ptr, c_ptr, M, N, K):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, 64)
    pid_m = pid // tiles_n
    pid_n = pid % tiles_n
    rows = (pid_m * 64 + tl.arange(0, 64)) % M
    cols = (pid_n * 64 + tl.arange(0, 64)) % N
    inner = tl.arange(0, 32)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 32):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :], mask=(k + inner)[None, :] < K, other=0.0)
        b = tl.load(b_ptr + (k + inner)[:, None] * N + cols[None, :], mask=(k + inner)[:, None] < K, other=0.0)
        total = tl.dot(a, b, total)
    row = pid_m * 64 + tl.arange(0, 64)
    col = pid_n * 64 + tl.arange(0, 64)
    tl.store(c_ptr + row[:, None] * N + col[None, :], total.to(tl.float16), mask=(row[:, None] < M) & (col[None, :] < N))


# CHECK-NOT: not copied ahead
# CHECK: this loop copies 2 operands of its products 2 iterations ahead, in 3 stages
