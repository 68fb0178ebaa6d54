# What --explain says of each loop that loads: what is fetched ahead, or why nothing is.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "x_ptr=*f32:16, o_ptr=*f32:16, n=i32, m=i32" --explain -o x.image 2>&1
import triton
import triton.language as tl


@triton.jit
def loops(x_ptr, o_ptr, n, m):
    i = tl.arange(0, 128)
    a = tl.zeros((128,), tl.float32)
    for k in range(n):
        a += tl.load(x_ptr + k * 128 + i)
    for k in range(n):
        a += tl.load(o_ptr + k * 128 + i)
        tl.store(o_ptr + k * 128 + i, a)
    for k in tl.range(n, num_stages=1):
        a += tl.load(x_ptr + k * 128 + i)
    for k in range(n):
        a += tl.load(x_ptr + k * 128 + i)
        if k == m:
            break
    for k in range(n):
        a += k
    tl.store(o_ptr + i, a)


# CHECK: :11:5: remark: this loop issues 1 load a turn ahead
# CHECK: :13:5: remark: this loop is not pipelined: what it loads is the same each turn, may be written in it, or lies where only its turn knows
# CHECK: :16:5: remark: this loop is not pipelined: num_stages is 1
# CHECK: :18:5: remark: this loop is not pipelined: how many turns it has is not known before
# CHECK-NOT: :22:5
# CHECK: registers a thread, 0 bytes spilled, 
