# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    for i in range(3):
    tl.store(x, 1.0)  # ERROR: syntax error: a block was begun in the line before
