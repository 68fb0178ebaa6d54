# A loop that unrolls to more than memory should hold is refused where it does.
# RUN: ditron compile %s:unrolled --emit tile --sig "x=*f32, N=65536"
import triton
import triton.language as tl


@triton.jit
def unrolled(x, N: tl.constexpr):
    total = tl.load(x)
    for i in tl.static_range(N):
        total += tl.load(x + i) * 2.0 + tl.load(x + i * 2) * 3.0 - tl.load(x + i * 3)  # ERROR: the program unrolls to more than 500000 operations # HINT: use tl.range in place of tl.static_range
    tl.store(x, total)
