# Pointers and masks name tensors. a: rows t * 32 + i below M, moved by 64 columns a turn; masks cut both axes, the second one's bound in
# another form (j < K - k). b's columns lie together in memory and are turned; nothing cuts its rows, which end nowhere (2147483632). The
# batch is a leading axis. The store's tensor is the batch's own matrix.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f16:16, M=i32, K=i32:16, batch=i32:16" --dump raise
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, K, batch):
    z = tl.program_id(1)
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    inner = tl.arange(0, 64)
    a_ptrs = a_ptr + z * batch + rows[:, None] * K + inner[None, :]
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < K - k), other=0.0)
        b = tl.load(b_ptr + inner[None, :] * K + (k + inner)[:, None])
        total = tl.dot(a, b, total)
        a_ptrs += 64
    tl.store(c_ptr + z * M * 64 + rows[:, None] * 64 + inner[None, :], total.to(tl.float16), mask=rows[:, None] < M)


# CHECK: %10 = make_desc %a_ptr, %0, %3, %7, %1, %5, %9 : desc<1x64x64xf16>
# CHECK: %11 = const {value=2147483632} : i64
# CHECK: %14 = const {value=2147483632} : i64
# CHECK: %16 = make_desc %b_ptr, %11, %14, %12, %15 : desc<64x64xf16>
# CHECK: %19 = const {value=64} : i64
# CHECK-NEXT: %20 = mul %18, %19 : i64
# CHECK: %26 = make_desc %c_ptr, %17, %21, %24, %20, %23, %25 : desc<1x64x64xf16>
# CHECK: %52, %53 = for
# CHECK: %64 = desc_load %10, %z, %62, %k : tile<1x64x64xf16>
# CHECK-NEXT: %65 = reshape %64 : tile<64x64xf16>
# CHECK: %73 = desc_load %16, %71, %k : tile<64x64xf16>
# CHECK-NEXT: %74 = trans %73 {perm=[1, 0]} : tile<64x64xf16>
# CHECK-NEXT: %total_2 = dot %65, %74, %total_1 : tile<64x64xf32>
# CHECK: desc_store %26, %86, %z, %89, %90
