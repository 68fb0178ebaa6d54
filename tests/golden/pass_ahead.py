# The first product of a turn, s, is computed by the turn before, at i + 128; the one of the first turn before the loop. The turn works on the
# carried one; what it made of its own (dropped by dce) has no use left. The second product stays where it is.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,128), out_desc=desc(f16;64,128), N=i32" --dump ahead
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


# CHECK: %2 = desc_load %k_desc, %0, %0 : tile<128x64xf16>
# CHECK-NEXT: %3 = trans %2 {perm=[1, 0]} : tile<64x128xf16>
# CHECK-NEXT: %4 = dot %q, %3, %total : tile<64x128xf32>
# CHECK-NEXT: %5, %6 = for %0, %N, %1, %total, %4 : tile<64x128xf32>, tile<64x128xf32> { (%i: i32, %total_1: tile<64x128xf32>, %7: tile<64x128xf32>)
# CHECK-NEXT: %8 = add %i, %1 : i32
# CHECK-NEXT: %9 = desc_load %k_desc, %8, %0 : tile<128x64xf16>
# CHECK-NEXT: %10 = trans %9
# CHECK-NEXT: %11 = dot %q, %10, %total {until_end=true}
# CHECK: %14 = fmax %7, %total
# CHECK: %p = fcast %14
# CHECK-NEXT: desc_load %v_desc, %i, %0
# CHECK-NEXT: %total_2 = dot %p, %15, %total_1 : tile<64x128xf32>
# CHECK-NEXT: yield %total_2, %11
# CHECK-NOT: dot
