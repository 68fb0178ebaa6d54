# When stages go back. dp is used before the vector that came with its block is read: behind that. The sums' and the last vector's stages, when
# the turn ends: side by side, so that the sums are waited for before the first of them.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "q_desc=desc(f16;64,64), w_desc=desc(f16;64,64), k_desc=desc(f16;64,64), x_desc=desc(f32;64), out=*f32:16, N=i32" --dump producer
import triton
import triton.language as tl


@triton.jit
def backward(q_desc, w_desc, k_desc, x_desc, out, N):
    k = k_desc.load([0, 0])
    one = tl.zeros((64, 64), tl.float32)
    two = tl.zeros((64, 64), tl.float32)
    last = tl.zeros((64,), tl.float32)
    for i in range(0, N, 64):
        q = q_desc.load([i, 0])
        s = tl.dot(k, q.T)
        p = tl.maximum(s, 0.0)
        one = tl.dot(p.to(tl.float16), q, one)
        dp = tl.dot(k, w_desc.load([i, 0]).T)
        ds = tl.minimum(dp, 1.0)
        ds += x_desc.load([i])[None, :]
        two = tl.dot(ds.to(tl.float16), k, two)
        last = x_desc.load([i])
    r = tl.arange(0, 64)
    tl.store(out + r[:, None] * 64 + r[None, :], one + two)
    tl.store(out + 4096 + r, last)


# CHECK: %dp = dot %17, %46, %one {until_use=true}
# CHECK-NOT: mbarrier_arrive
# CHECK: %ds = fmin %dp
# CHECK-NOT: mbarrier_arrive
# CHECK: %57 = mem_load %56 : tile<64xf32>
# CHECK: %two_1 = dot %60, %17, %two {until_use=true}
# CHECK: %62 = mem_load %61 : tile<64xf32>
# CHECK-NEXT: mbarrier_arrive %7, %35
# CHECK: xor %36
# CHECK-NEXT: mbarrier_arrive %10, %37 {each_warp=true}
# CHECK-NEXT: yield
