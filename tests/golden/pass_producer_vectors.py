# A vector behind a product's block travels with it: one announcement of both, one stage. Where its product's result is used before the vector
# is read, the stage goes back behind the vector. Rings are shared with loops that lack it. One of less than 128 bytes is loaded.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_desc=desc(f16;64,64), b_desc=desc(f16;64,64), x_desc=desc(f32;64), y_desc=desc(f32;16), out=*f32:16, N=i32" --dump producer
import triton
import triton.language as tl


@triton.jit
def scaled(a_desc, b_desc, x_desc, y_desc, out, N):
    total = tl.zeros((64, 64), tl.float32)
    least = tl.zeros((16,), tl.float32)
    for i in range(0, N, 64):
        part = tl.dot(a_desc.load([i, 0]), b_desc.load([i, 0]))
        total += part * x_desc.load([i])[None, :]
        least = tl.minimum(y_desc.load([i]), least)
    for i in range(0, N, 64):
        total += tl.dot(a_desc.load([i, 0]), b_desc.load([i, 0]))
    r = tl.arange(0, 64)
    tl.store(out + r[:, None] * 64 + r[None, :], total)
    tl.store(out + 4096 + tl.arange(0, 16), least)


# CHECK: %2 = mem_alloc : memdesc<3*64xf32, shared>
# CHECK: %part = dot %16, %18
# CHECK-NEXT: %19 = mem_view %2, %12
# CHECK-NEXT: %20 = mem_load %19 : tile<64xf32>
# CHECK-NEXT: mbarrier_arrive %4, %12 {each_warp=true}
# CHECK: desc_load %y_desc, %i
# CHECK: mbarrier_wait %3, %37
# CHECK: mem_view %0, %37
# CHECK: mbarrier_wait %4, %79
# CHECK-NEXT: %84 = const {value=16640}
# CHECK: desc_load_async %x_desc, %89, %3, %79, %i_2
# CHECK: mbarrier_wait %4, %105
# CHECK-NEXT: %110 = const {value=16384}
