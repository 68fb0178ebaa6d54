# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    a = 3  # a comment:
        b = 4  # ERROR: syntax error: this line is indented, but begins no block  # HINT: the line above
    tl.store(x, 1.0)
