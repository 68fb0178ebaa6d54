# Two products with blocks of the same kinds share a ring, but not where the inner loop stands between the other's blocks and its product, nor
# does a product run on into the next turn where an inner loop has products: either would hold a stage that the inner loop waits for.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 2 --sig "a_desc=desc(f16;64,64), b_desc=desc(f16;64,64), out=*f32:16, N=i32, BETWEEN=True" --dump producer
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 2 --sig "a_desc=desc(f16;64,64), b_desc=desc(f16;64,64), out=*f32:16, N=i32, BETWEEN=False" --dump producer
import triton
import triton.language as tl


@triton.jit
def products(a_desc, b_desc, out, N, BETWEEN: tl.constexpr):
    r = tl.arange(0, 64)
    one = tl.zeros((64, 64), tl.float32)
    two = tl.zeros((64, 64), tl.float32)
    for t in range(0, N):
        if BETWEEN:
            a = a_desc.load([t * 64, 0])
            b = b_desc.load([t * 64, 0])
        for i in range(0, N, 64):
            one = tl.dot(a_desc.load([i, 0]), b_desc.load([t * 64, 0]), one)
        if not BETWEEN:
            a = a_desc.load([t * 64, 0])
            b = b_desc.load([t * 64, 0])
        two = tl.dot(a, b, two)
    tl.store(out + r[:, None] * 64 + r[None, :], one + two)


# CHECK: %2 = mbarrier_alloc {count=1} : mbarrier<2>
# CHECK: mbarrier_alloc {count=1} : mbarrier<2>
# CHECK: warp_partitions
# CHECK: {late=true}
# CHECK-NOT: {late=true}
# CHECK: module stage=tile
# CHECK: %2 = mbarrier_alloc {count=1} : mbarrier<2>
# CHECK-NEXT: mbarrier_alloc {count=4} : mbarrier<2>
# CHECK-NEXT: warp_partitions
# CHECK: {late=true}
# CHECK-NOT: {late=true}
# CHECK: return
