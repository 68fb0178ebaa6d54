# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    if n > 3  # ERROR: syntax error: ':' is missing at the end of this line
        tl.store(x, 1.0)
