# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    tl.store(x, (1.0 + n)  # ERROR: syntax error: this bracket is never closed
    n = 3
