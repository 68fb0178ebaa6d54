# A number of each row, made of the largest and the sums of it, lies where the products left the rows: each in four lanes of one warp. So the loop
# carries it, though it begins with what comes from memory (loaded as the loop has it), and so it is stored, and added to memory; no relayout takes
# it through shared memory. What is loaded and stored by itself keeps the order of memory.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, M=i32, N=i32" --dump lay
import triton
import triton.language as tl


@triton.jit
def rows(q_desc, k_desc, out, M, N):
    q = q_desc.load([0, 0])
    r = tl.arange(0, 64)
    top = tl.load(out + 256 + r)
    total = tl.zeros((64,), tl.float32)
    for i in range(0, N, 64):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        new = tl.maximum(top, tl.max(s, 1))
        total = total * tl.exp2(top - new) + tl.sum(tl.exp2(s - new[:, None]), 1)
        top = new
    lse = tl.where(total > 0.0, top + tl.log2(total), float("-inf"))
    tl.store(out + r, lse, mask=r < M)
    tl.atomic_add(out + 64 + r, total, sem="relaxed")
    tl.store(out + 128 + r, tl.load(out + 192 + r) * 2.0)


# CHECK: %18 = load %17, _, _ : tile<64xf32, reg(8) lane(0 0 1 2 4) warp(16 32)>
# CHECK: %24, %25, %26, %27 = for %6, %N, %20, %18, %23, %6, %6 : tile<64xf32, reg(8) lane(0 0 1 2 4) warp(16 32)>, tile<64x4xf32, reg(32) lane(1 2 4 8 16) warp(64 128)>
# CHECK: %43 = reduce %36 {axis=1} : tile<64xf32, reg(8) lane(0 0 1 2 4) warp(16 32)>
# CHECK: yield %new, %73
# CHECK-NOT: relayout
# CHECK: %74 = reduce %25 {axis=1} : tile<64xf32, reg(8) lane(0 0 1 2 4) warp(16 32)>
# CHECK-NOT: relayout
# CHECK: store %86, %lse, %90
# CHECK-NOT: relayout
# CHECK: %96 = atomic_rmw %95, %74, _
# CHECK: %105 = load %104, _, _ : tile<64xf32, reg() lane(1 2 4 8 16) warp(32 0)>
# CHECK-NOT: relayout
# CHECK: store %100, %107, _
