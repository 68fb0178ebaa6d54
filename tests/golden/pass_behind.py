# The product on p is computed a turn later, beside the scores of the next: with the block at i - 128, which in the first turn lies outside of
# the tensor (zeros, as p is). Behind the loop the last one's, or where there was no turn a block outside again. dce drops the turn's own.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,128), out_desc=desc(f16;64,128), N=i32" --dump behind
import triton
import triton.language as tl


@triton.jit
def chain(q_desc, k_desc, v_desc, out_desc, N):
    q = q_desc.load([0, 0])
    total = tl.zeros((64, 128), tl.float32)
    for i in range(0, N, 128):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        p = tl.maximum(s, 0.0).to(tl.float16)
        total = tl.dot(p, v_desc.load([i, 0]), total)
    out_desc.store([0, 0], total.to(tl.float16))


# CHECK: %2 = const {value=0.0} : tile<64x128xf16>
# CHECK-NEXT: %3, %4 = for %0, %N, %1, %total, %2 : tile<64x128xf32>, tile<64x128xf16> { (%i: i32, %total_1: tile<64x128xf32>, %5: tile<64x128xf16>)
# CHECK: %s = dot %q, %7, %total {until_use=true} : tile<64x128xf32>
# CHECK-NEXT: %8 = sub %i, %1 : i32
# CHECK-NEXT: %9 = desc_load %v_desc, %8, %0 : tile<128x128xf16>
# CHECK-NEXT: %10 = dot %5, %9, %total_1 {until_use=true} : tile<64x128xf32>
# CHECK-NEXT: %11 = fmax %s, %total
# CHECK: yield %10, %p
# CHECK: %14 = max_s %N, %0 : i32
# CHECK: %17 = div_s %16, %1 : i32
# CHECK: %23 = select %22, %21, %19 : i32
# CHECK-NEXT: %24 = const {value=-128} : i32
# CHECK-NEXT: %25 = select %20, %24, %23 : i32
# CHECK-NEXT: %26 = desc_load %v_desc, %25, %0 : tile<128x128xf16>
# CHECK-NEXT: %27 = dot %4, %26, %3 : tile<64x128xf32>
