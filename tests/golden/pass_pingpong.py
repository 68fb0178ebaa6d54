# A loop that asks for it: two groups of four warps issue its two products in turn; the exponentials are computed while the other group's turn
# lasts. The barriers stand before the partitions. Not with one group of warps, and not unasked (loop HINT=False).
# RUN: ditron compile %s --target sm_90a --warps 8 --sig "q_desc=desc(f16;128,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,64), out_desc=desc(f16;128,64), N=i32, HINT=True" --dump pingpong
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,64), out_desc=desc(f16;64,64), N=i32, HINT=True" --dump pingpong
# RUN: ditron compile %s --target sm_90a --warps 8 --sig "q_desc=desc(f16;128,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,64), out_desc=desc(f16;128,64), N=i32, HINT=False" --dump pingpong
import triton
import triton.language as tl


@triton.jit
def chain(q_desc, k_desc, v_desc, out_desc, N, HINT: tl.constexpr):
    q = q_desc.load([0, 0])
    total = tl.zeros((q.shape[0], 64), tl.float32)
    for i in tl.range(0, N, 128, warp_specialize=HINT):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        p = tl.exp2(s).to(tl.float16)
        total = tl.dot(p, v_desc.load([i, 0]), total)
    out_desc.store([0, 0], total.to(tl.float16))


# CHECK: = mbarrier_alloc {count=4} : mbarrier<2>
# CHECK-NEXT: warp_partitions {first=[0, 8], warps=[8, 4]
# CHECK: warp_spec=true
# CHECK: turn_begin
# CHECK-NEXT: = wgmma
# CHECK: = wgmma
# CHECK-NEXT: turn_end
# CHECK: = wgmma_wait
# CHECK: fn=exp2
# CHECK: = wgmma_wait
# CHECK: module stage=lowered warps=4
# CHECK-NOT: turn_begin
# CHECK: module stage=lowered warps=8
# CHECK-NOT: turn_begin
# CHECK: return
