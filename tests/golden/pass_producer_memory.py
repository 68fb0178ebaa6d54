# Both blocks' place comes from memory: a producer warp fetches neither of them.
# RUN: ditron compile %s:gathered --target sm_90a --warps 4 --stages 3 --sig "a_desc=desc(f16;64,64), b_desc=desc(f16;128,64), out_desc=desc(f16;64,128), start=*i32, K=i32, BK=64" --dump producer
import triton
import triton.language as tl


@triton.jit
def gathered(a_desc, b_desc, out_desc, start, K, BK: tl.constexpr):
    first = tl.load(start)
    total = tl.zeros((64, 128), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a_desc.load([first, k]), b_desc.load([first, k]).T, total)
    out_desc.store([0, 0], total.to(tl.float16))


# CHECK-NOT: mbarrier
# CHECK: for %
# CHECK-NOT: mbarrier
# CHECK: desc_load %a_desc
# CHECK: desc_load %b_desc
# CHECK: dot
