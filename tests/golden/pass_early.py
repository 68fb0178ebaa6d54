# The product on v needs nothing of the scores: it is issued right behind them, with the block that it reads, and both stay in flight while
# p is made. The sums stay in flight until the turn ends.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "k_desc=desc(f16;64,64), v_desc=desc(f16;64,64), q_desc=desc(f16;64,64), d_desc=desc(f16;64,64), out=*f32:16, N=i32" --dump early
import triton
import triton.language as tl


@triton.jit
def backward(k_desc, v_desc, q_desc, d_desc, out, N):
    k = k_desc.load([0, 0])
    v = v_desc.load([0, 0])
    dk = tl.zeros((64, 64), tl.float32)
    dv = tl.zeros((64, 64), tl.float32)
    for i in range(0, N, 64):
        q = q_desc.load([i, 0])
        s = tl.dot(k, q.T)
        p = tl.maximum(s, 0.0)
        d = d_desc.load([i, 0])
        dv = tl.dot(p.to(tl.float16), d, dv)
        dp = tl.dot(v, d.T)
        dk = tl.dot((p * dp).to(tl.float16), q, dk)
    r = tl.arange(0, 64)
    tl.store(out + r[:, None] * 64 + r[None, :], dk + dv)


# CHECK: %s = dot %k, %4, %dk {until_use=true}
# CHECK-NEXT: %d = desc_load %d_desc, %i, %0
# CHECK-NEXT: trans %d
# CHECK-NEXT: %dp = dot %v, %5, %dk {until_use=true}
# CHECK-NEXT: %p = fmax %s, %dk
# CHECK: %dv_1 = dot %6, %d, %dv {until_use=true}
# CHECK-NEXT: %7 = fmul %p, %dp
# CHECK: %dk_2 = dot %8, %q, %dk_1 {until_use=true}
# CHECK-NEXT: yield %dv_1, %dk_2
