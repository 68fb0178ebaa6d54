# Sums that are not kept in parts: used in the turn, before (1) or behind (2) what is added; the added sum used otherwise (3), or also what the old
# one is multiplied by (4); the largest of a row (5), a sum over rows (6), one that is subtracted from (7); rows of which each lies in two
# groups of warps (64 of them for eight warps). Last one that is (0).
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, B=64, HOW=1" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, B=64, HOW=2" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, B=64, HOW=3" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, B=64, HOW=4" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, B=64, HOW=5" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, B=64, HOW=6" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, B=64, HOW=7" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 8 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), out=*f32:16, N=i32, B=128, HOW=0" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, B=64, HOW=0" --dump parts
import triton
import triton.language as tl


@triton.jit
def sums(q_desc, k_desc, out, N, B: tl.constexpr, HOW: tl.constexpr):
    q = q_desc.load([0, 0])
    total = tl.zeros((64,), tl.float32)
    other = tl.zeros((64,), tl.float32)
    for i in range(0, N, B):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        if HOW == 1:
            s *= total[:, None]
        if HOW == 5:
            row = tl.max(s, 1)
        elif HOW == 6:
            row = tl.sum(s, 0)
        else:
            row = tl.sum(s, 1)
        if HOW == 4:
            total = total * row + row
        elif HOW == 7:
            total = row - total
        else:
            total = total * 0.5 + row
        if HOW == 2:
            other = tl.maximum(other, total)
        if HOW == 3:
            other = tl.maximum(other, row)
    tl.store(out + tl.arange(0, 64), total + other)


# CHECK-NOT: x4xf32
# CHECK: fma %total_1, %3, %row
# CHECK-NOT: x4xf32
# CHECK: module stage=tile
# CHECK-NOT: x4xf32
# CHECK: %other_1 = fmax %other, %total_2
# CHECK-NOT: x4xf32
# CHECK: module stage=tile
# CHECK-NOT: x4xf32
# CHECK: %other_1 = fmax %other, %row
# CHECK-NOT: x4xf32
# CHECK: module stage=tile
# CHECK-NOT: x4xf32
# CHECK: fma %total_1, %row, %row
# CHECK-NOT: x4xf32
# CHECK: module stage=tile
# CHECK-NOT: x4xf32
# CHECK: %9 = fmax %7, %8
# CHECK-NOT: x4xf32
# CHECK: module stage=tile
# CHECK-NOT: x4xf32
# CHECK: reduce %s {axis=0}
# CHECK-NOT: x4xf32
# CHECK: module stage=tile
# CHECK-NOT: x4xf32
# CHECK: fsub %row, %total_1
# CHECK-NOT: x4xf32
# CHECK: module stage=tile
# CHECK-NOT: x4xf32
# CHECK: fma %total_1, %3, %row
# CHECK-NOT: x4xf32
# CHECK: module stage=tile
# CHECK: %5, %6 = for %0, %N, %1, %total, %4 : tile<64xf32>, tile<64x4xf32>
