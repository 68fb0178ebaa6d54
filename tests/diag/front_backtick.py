# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    """of `n` values"""
    name = `n`  # ERROR: syntax error: '`' has no meaning here  # HINT: strings stand in ' or in "
    tl.store(x, 1.0)
