# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton


@triton.jit
def k(x, n):
    if n > 0:  # ERROR: syntax error: a block begins here, but nothing follows
