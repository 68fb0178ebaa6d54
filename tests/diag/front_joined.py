# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    n,  # a line of its own, as in Python
    m = n
    a, b
    = m, n  # ERROR: syntax error: this line goes on with the statement of the line above # HINT: put brackets around what belongs together
    tl.store(x, 1.0 + a)
