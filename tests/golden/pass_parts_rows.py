# A product whose rows are only summed, in parts: warps divide rows, as the parts were made for, and nothing crosses warps in a turn. What moves
# is q on its way to registers and the whole sums behind the loop.
# RUN: ditron compile %s --target sm_80 --warps 4 --sig "q_ptr=*f16:16, k_ptr=*f16:16, out_ptr=*f32:16, N=i32:16" --dump lay
import triton
import triton.language as tl


@triton.jit
def sums(q_ptr, k_ptr, out_ptr, N):
    row = tl.arange(0, 64)
    d = tl.arange(0, 32)
    q = tl.load(q_ptr + row[:, None] * 32 + d[None, :])
    total = tl.zeros((64,), tl.float32)
    for i in range(0, N, 128):
        k = tl.load(k_ptr + (i + tl.arange(0, 128))[None, :] * 32 + d[:, None])
        total += tl.sum(tl.dot(q, k), 1)
    tl.store(out_ptr + row, total)


# CHECK: = dot
# CHECK: warp(2048 4096)>
# CHECK: reduce
# CHECK: tile<64x4xf32
