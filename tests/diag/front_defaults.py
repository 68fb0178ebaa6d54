# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n=1, m):  # ERROR: syntax error: a parameter without a default follows one that has a default
    pass
