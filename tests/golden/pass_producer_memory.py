# Both blocks' place comes from memory. Where the kernel writes it, a producer warp fetches neither of them; else it reads the number itself. It
# follows choices, which hand on the state of the rings.
# RUN: ditron compile %s:gathered --target sm_90a --warps 4 --stages 3 --sig "a_desc=desc(f16;64,64), b_desc=desc(f16;128,64), out_desc=desc(f16;64,128), start=*i32, K=i32, BK=64, WRITES=True" --dump producer
# RUN: ditron compile %s:gathered --target sm_90a --warps 4 --stages 3 --sig "a_desc=desc(f16;64,64), b_desc=desc(f16;128,64), out_desc=desc(f16;64,128), start=*i32, K=i32, BK=64, WRITES=False" --dump producer
import triton
import triton.language as tl


@triton.jit
def gathered(a_desc, b_desc, out_desc, start, K, BK: tl.constexpr, WRITES: tl.constexpr):
    first = tl.load(start)
    total = tl.zeros((64, 128), tl.float32)
    if first > 0:
        for k in range(0, K, BK):
            total = tl.dot(a_desc.load([first, k]), b_desc.load([first, k]).T, total)
    out_desc.store([0, 0], total.to(tl.float16))
    if WRITES:
        tl.store(start, first + 1)


# CHECK-NOT: mbarrier
# CHECK: for %
# CHECK-NOT: mbarrier
# CHECK: desc_load %a_desc
# CHECK: desc_load %b_desc
# CHECK: dot
# CHECK: module stage=tile
# CHECK: warp_partitions
# CHECK: %7, %8, %9 = if %6 : tile<64x128xf32>, i32, i32 {
# CHECK: mbarrier_wait %2
# CHECK: yield %12, %13, %14
# CHECK-NEXT: } {
# CHECK-NEXT: yield %total, %4, %4
# CHECK: %first_1 = load %start, _, _ : i32
# CHECK: desc_load_async %a_desc, %54, %2, %48, %first_1, %k_1
