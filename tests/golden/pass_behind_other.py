# Two loops in a row over the same counter but other blocks: the second one adds to what the first one's last product gives.
# RUN: ditron compile %s:chain --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), other_desc=desc(f16;128,128), v_desc=desc(f16;128,128), out_desc=desc(f16;64,128), N=i32, B=128" --dump behind
import triton
import triton.language as tl


@triton.jit
def chain(q_desc, k_desc, other_desc, v_desc, out_desc, N, B: tl.constexpr):
    q = q_desc.load([0, 0])
    total = tl.zeros((64, 128), tl.float32)
    middle = tl.program_id(0) % 8 * B
    for i in range(0, middle, B):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        total = tl.dot(tl.maximum(s, 0.0).to(tl.float16), v_desc.load([i, 0]), total)
    for i in range(middle, N, B):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        total = tl.dot(tl.minimum(s, 1.0).to(tl.float16), other_desc.load([i, 0]), total)
    out_desc.store([0, 0], total.to(tl.float16))


# CHECK: %6, %7 = for %1, %middle
# CHECK: {until_use=true}
# CHECK: %31 = dot %7, %30, %6
# CHECK: %34, %35 = for %middle, %N, %4, %31, %33
# CHECK: %43 = desc_load %other_desc, %42, %1
