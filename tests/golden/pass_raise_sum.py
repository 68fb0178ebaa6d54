# A relaxed sum whose old values nobody asks for becomes an update of a block of a tensor; one whose result is used stays an atomic operation.
# RUN: ditron compile %s:sums --target sm_90a --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f32:16, d_ptr=*f32:16, M=i32, K=i32:16, USED=False" --dump raise
# RUN: ditron compile %s:sums --target sm_90a --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f32:16, d_ptr=*f32:16, M=i32, K=i32:16, USED=True" --dump raise
import triton
import triton.language as tl


@triton.jit
def sums(a_ptr, b_ptr, c_ptr, d_ptr, M, K, USED: tl.constexpr):
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    inner = tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :], mask=rows[:, None] < M, other=0.0)
        total = tl.dot(a, tl.load(b_ptr + (k + inner)[:, None] * 64 + inner[None, :]), total)
    at = rows[:, None] * 64 + inner[None, :]
    old = tl.atomic_add(c_ptr + at, total, mask=(rows[:, None] < M) & (inner[None, :] < 48), sem="relaxed")
    if USED:
        tl.store(d_ptr + at, old, mask=rows[:, None] < M)


# CHECK: %15 = const {value=48} : i64
# CHECK: %17 = make_desc %c_ptr, %12, %15, %14, %16 : desc<64x64xf32>
# CHECK-NOT: atomic_rmw
# CHECK: desc_rmw %17, %37, %66, %67 {rmw=fadd}
# CHECK: module stage=tile
# CHECK-NOT: desc_rmw
# CHECK: %old = atomic_rmw
