# Sums go to their tensor in strips of 32-bit or 16-bit elements, in the background. Where the kernel also stores there, neither does: nothing
# would order them.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f32:16, d_ptr=*f16:16, K=i32:16, STORES=False" --explain -o /dev/null
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f32:16, d_ptr=*f16:16, K=i32:16, STORES=True" --explain -o /dev/null
import triton
import triton.language as tl


@triton.jit
def sums(a_ptr, b_ptr, c_ptr, d_ptr, K, STORES: tl.constexpr):
    rows = tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        a = tl.load(a_ptr + rows[:, None] * K + (k + rows)[None, :])
        total = tl.dot(a, tl.load(b_ptr + (k + rows)[:, None] * 64 + rows[None, :]), total)
    at = rows[:, None] * 64 + rows[None, :]
    if STORES:
        tl.store(d_ptr + at, total.to(tl.float16))
    tl.atomic_add(c_ptr + at, total, sem="relaxed")
    tl.atomic_add(d_ptr + at, total.to(tl.float16), sem="relaxed")


# CHECK: pass_sums_meet.py:19:5: remark: each warp adds its rows of this tile in strips of 32 columns, in the background
# CHECK: pass_sums_meet.py:20:5: remark: each warp adds its rows of this tile in strips of 64 columns, in the background
# CHECK: pass_sums_meet.py:18:9: remark: this tile is stored by all threads: the kernel accesses or orders memory that it may meet
# CHECK: pass_sums_meet.py:19:5: remark: each warp adds its rows of this tile in strips of 32 columns, in the background
# CHECK: pass_sums_meet.py:20:5: remark: this tile is added by all threads: the kernel accesses or orders memory that it may meet
