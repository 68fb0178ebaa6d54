# Rows whose numbers a table has, another part of it each turn: the matrix of their addresses is made again in the layout of its load from the
# column of numbers, which alone moves (64 of 8 bytes), and what is known of addresses holds behind that: the rows are copied ahead.
# RUN: ditron compile %s --target sm_80 --warps 4 --stages 3 --sig "q_ptr=*f16:16, k_ptr=*f16:16, table_ptr=*i32:16, out_ptr=*f32:16, row=i32:16, N=i32" --explain -o x.image 2>&1
import triton
import triton.language as tl


@triton.jit
def gathered(q_ptr, k_ptr, table_ptr, out_ptr, row, N):
    i = tl.arange(0, 64)
    q = tl.load(q_ptr + tl.arange(0, 16)[:, None] * 64 + i[None, :])
    total = tl.zeros((16, 64), tl.float32)
    for start in range(0, N, 64):
        number = tl.load(table_ptr + start + i, mask=start + i < N, other=0).to(tl.int64)
        k = tl.load(k_ptr + number[:, None] * row + i[None, :], mask=(start + i < N)[:, None], other=0.0)
        total = tl.dot(q, k.T, total)
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 64 + i[None, :], total)


# CHECK-NOT: 32768 bytes
# CHECK: :13:5: remark: this loop copies 1 operand of its products 2 iterations ahead, in 3 stages
# CHECK-NOT: 32768 bytes
# CHECK: :15:13: remark: this value goes from one layout to another through 512 bytes of shared memory
# CHECK-NOT: 32768 bytes
# CHECK: compiled in
