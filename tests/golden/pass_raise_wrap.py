# Rows that wrap around at the tensor's end (i % M) are taken as its end, since the store leaves them out.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f16:16, M=i32, K=i32:16" --dump raise
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, K):
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    inner = tl.arange(0, 64)
    a_ptrs = a_ptr + (rows % M)[:, None] * K + inner[None, :]
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        b = tl.load(b_ptr + inner[None, :] * K + (k + inner)[:, None])
        total = tl.dot(tl.load(a_ptrs), b, total)
        a_ptrs += 64
    tl.store(c_ptr + rows[:, None] * 64 + inner[None, :], total.to(tl.float16), mask=rows[:, None] < M)


# CHECK: %0 = ext_s %M : i64
# CHECK: %6 = make_desc %a_ptr, %0, %4, %2, %5 : desc<64x64xf16>
# CHECK: desc_load %12,
# CHECK: %54 = desc_load %6, %52, %k : tile<64x64xf16>
# CHECK-NOT: = load
# CHECK: desc_store
