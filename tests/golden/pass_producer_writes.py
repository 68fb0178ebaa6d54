# A block of a tensor that the kernel may write is not fetched ahead; one of another tensor is.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_desc=desc(f16;64,64), b_desc=desc(f16;64,64), N=i32" --dump producer
import triton
import triton.language as tl


@triton.jit
def powers(a_desc, b_desc, N):
    for t in range(0, 4):
        total = tl.zeros((64, 64), tl.float32)
        for k in range(0, N, 64):
            total = tl.dot(a_desc.load([k, 0]), b_desc.load([k, 0]), total)
        a_desc.store([t * 64, 0], total.to(tl.float16))


# CHECK: desc_load %a_desc
# CHECK: mem_load
# CHECK: dot
# CHECK-NOT: desc_load_async %a_desc
# CHECK: desc_load_async %b_desc
