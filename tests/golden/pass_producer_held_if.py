# The held block's load stands in an `if`, with the loop that reads it: the choice hands on the state of both rings.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "k_desc=desc(f16;64,64), q_desc=desc(f16;64,64), c_desc=desc(f16;64,64), M=i32, N=i32" --dump producer
import triton
import triton.language as tl


@triton.jit
def held(k_desc, q_desc, c_desc, M, N):
    for t in range(0, M, 64):
        total = tl.zeros((64, 64), tl.float32)
        if t != 64:
            k = k_desc.load([t, 0])
            for i in range(0, N, 64):
                total = tl.dot(q_desc.load([i, 0]), k, total)
        c_desc.store([t, 0], total.to(tl.float16))


# CHECK: { (%t: i32, %14: i32, %15: i32, %16: i32, %17: i32)
# CHECK: = if %18 : tile<64x64xf32>, i32, i32, i32, i32 {
# CHECK-NEXT: mbarrier_wait %1, %14, %15
# CHECK: for
# CHECK: mbarrier_arrive %2, %14 {each_warp=true}
# CHECK: } {
# CHECK-NEXT: yield %total, %14, %15, %16, %17
