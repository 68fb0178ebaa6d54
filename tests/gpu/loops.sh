# Loops on the GPU: counters that go down, also past 0 and in trips that unrolling divides; loads a turn early; hints that hold for the first
# of a run of neighbours only; groups of warps in turn.
cat >k.py <<'PY'
import triton
import triton.language as tl


@triton.jit
def down(x_ptr, o_ptr, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    trips = min(n, 128 + n * 0)
    p = x_ptr + (trips - 1) * BLOCK + i
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(trips - 1, -1, -STEP):
        total = total * 0.5 + tl.load(p, mask=i < BLOCK - 1, other=1.0)
        tl.store(o_ptr + k * BLOCK + i, total)
        p -= STEP * BLOCK


@triton.jit
def wrapped(a_ptr, o_ptr, M, K, stride_am, BLOCK: tl.constexpr):
    rows = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK) % M, BLOCK), BLOCK)
    k = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + rows[:, None] * stride_am + k[None, :], mask=k[None, :] < K, other=0.0)
    tl.store(o_ptr + tl.arange(0, BLOCK)[:, None] * BLOCK + k[None, :], a)


@triton.jit
def in_turn(q_desc, k_desc, v_desc, out_desc, N):
    for tile in range(2):
        q = q_desc.load([tile * 128, 0])
        total = tl.zeros((128, 64), tl.float32)
        for i in tl.range(0, N, 64, warp_specialize=True):
            s = tl.dot(q, k_desc.load([i, 0]).T)
            p = tl.exp2(s * 0.125).to(tl.bfloat16)
            total = tl.dot(p, v_desc.load([i, 0]), total)
        out_desc.store([tile * 128, 0], (total * 0.01).to(tl.bfloat16))
PY
for n in 128 127 4 1; do
  for step in 1 3; do
    both f32 0 o_ptr k.py:down --grid 1 --warps 1 x_ptr=randn:f32[128,32] o_ptr=zeros:f32[128,32] n=$n STEP=$step BLOCK=32
  done
done
both f16 0 o_ptr k.py:wrapped --grid 1 --warps 4 a_ptr=randn:f16[64,300] o_ptr=zeros:f16[64,64] M=64 K=60 stride_am=300 BLOCK=64
for n in 0 64 130 1000; do # groups of warps take turns
  both "" 2e-2 out_desc k.py:in_turn --grid 1 --warps 8 "q_desc=desc(randn:bf16[256,64];128,64)" "k_desc=desc(randn:bf16[1000,64];64,64)" \
    "v_desc=desc(randn:bf16[1000,64];64,64)" "out_desc=desc(zeros:bf16[256,64];128,64)" N=$n
done
