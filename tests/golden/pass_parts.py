# A row of scores lies in four lanes. The running sum is kept as what each of them has added, [rows, 4]: a lane sums its own elements
# (n / 2 % 4 is its number), multiplies what it has by the row's number, and no lane waits for others in a turn. They meet behind the loop. The
# second loop, where nothing is multiplied, goes on with the parts of the first. Begun from nothing; from the sum of a turn before, whose parts
# are taken; from a number, which the first lane has. Last for products of single warps: 16 rows, each of them in four lanes of four warps.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, middle=i32, FROM=0" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, middle=i32, FROM=1" --dump parts
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, middle=i32, FROM=2" --dump parts
# RUN: ditron compile %s --target sm_80 --warps 4 --sig "q_desc=desc(f16;16,64), k_desc=desc(f16;64,64), out=*f32:16, N=i32, middle=i32, FROM=0" --dump parts
import triton
import triton.language as tl


@triton.jit
def sums(q_desc, k_desc, out, N, middle, FROM: tl.constexpr):
    q = q_desc.load([0, 0])
    total = tl.zeros((q.shape[0],), tl.float32)
    if FROM == 1:
        total = tl.sum(tl.dot(q, k_desc.load([0, 0]).T), 1)
    if FROM == 2:
        total += 2.0
    for i in range(64, middle, 64):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        total = total * tl.minimum(tl.max(s, 1), 1.0) + tl.sum(s, 1)
    for i in range(middle, N, 64):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        total = tl.sum(tl.maximum(s, 0.0), 1) + total
    tl.store(out + tl.arange(0, q.shape[0]), total)


# CHECK: %4 = const {value=0.0} : tile<64x4xf32>
# CHECK-NEXT: %5, %6 = for %1, %middle, %1, %total, %4 : tile<64xf32>, tile<64x4xf32> { (%i: i32, %total_1: tile<64xf32>, %7: tile<64x4xf32>)
# CHECK: %15 = reshape %s : tile<64x8x4x2xf32>
# CHECK-NEXT: %16 = reduce %15 {axis=3} : tile<64x8x4xf32>
# CHECK: %20 = reduce %16 {axis=1} : tile<64x4xf32>
# CHECK: %28 = expand_dims %14 {axis=1} : tile<64x1xf32>
# CHECK-NEXT: %29 = broadcast %28 : tile<64x4xf32>
# CHECK-NEXT: %30 = fma %7, %29, %20 : tile<64x4xf32>
# CHECK: yield %total_2, %30
# CHECK: %31 = reduce %6 {axis=1} : tile<64xf32>
# CHECK: %36, %37 = for %middle, %N, %1, %31, %6 :
# CHECK: %47 = reduce %43 {axis=1} : tile<64x4xf32>
# CHECK: %55 = fadd %47, %38 : tile<64x4xf32>
# CHECK: yield %total_4, %55
# CHECK: %56 = reduce %37 {axis=1} : tile<64xf32>
# CHECK: store %62, %56
# CHECK: module stage=tile
# CHECK: %10 = reduce %6 {axis=1} : tile<64x4xf32>
# CHECK: %20, %21 = for %17, %middle, %17, %total, %10 :
# CHECK: module stage=tile
# CHECK: %7 = cmp %5, %6 {cmp=eq} : tile<4xi1>
# CHECK: %12 = select %11, %9, %4 : tile<64x4xf32>
# CHECK-NEXT: %13, %14 = for %1, %middle, %1, %total, %12 :
# CHECK: module stage=tile
# CHECK: for %1, %middle, %1, %total, %4 : tile<16xf32>, tile<16x16xf32> {
# CHECK: = reshape %s : tile<16x2x16x2xf32>
# CHECK: {axis=3} : tile<16x2x16xf32>
# CHECK: {axis=1} : tile<16x16xf32>
