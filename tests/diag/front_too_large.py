# A loop that unrolls to more than the machine code of a kernel can sensibly be is refused at once.
# RUN: ditron compile %s:unrolled --target x86-64 --sig "x=*f32, N=20000"
import triton
import triton.language as tl


@triton.jit
def unrolled(x, N: tl.constexpr):  # ERROR: kernel 'unrolled' is too large:
    total = tl.load(x)
    for i in tl.static_range(N):
        total += tl.load(x + i) * i
    tl.store(x, total)
