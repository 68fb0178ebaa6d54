# Kernels without products: loads, stores, masks, reductions, loops and atomics, on sizes that fill no block.
cat >k.py <<'PY'
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m) + tl.load(y_ptr + i, mask=m), mask=m)


@triton.jit
def softmax(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def rows(x_ptr, o_ptr, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M,), tl.float32)
    for k in range(0, n, BLOCK_N):
        c = k + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + r[:, None] * n + c[None, :], mask=(r[:, None] < m) & (c[None, :] < n), other=0.0)
        total += tl.sum(x * x, axis=1)
    tl.store(o_ptr + r, tl.sqrt(total), mask=r < m)


@triton.jit
def histogram(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(o_ptr + x % 16, 1, mask=i < n)
PY
both f32 0 o_ptr k.py:add --grid 80 x_ptr=randn:f32[10001] y_ptr=randn:f32[10001] o_ptr=zeros:f32[10001] n=10001 BLOCK=128
both f32 1e-6 o_ptr k.py:softmax --grid 37 x_ptr=randn:f32[37,1000] o_ptr=zeros:f32[37,1000] n=1000 BLOCK=1024
both f32 1e-5 o_ptr k.py:rows --grid 5 x_ptr=randn:f32[75,333] o_ptr=zeros:f32[75] m=75 n=333 BLOCK_M=16 BLOCK_N=64
both i32 0 o_ptr k.py:histogram --grid 8 x_ptr=arange:i32[1000] o_ptr=zeros:i32[16] n=1000 BLOCK=128
