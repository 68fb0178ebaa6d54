# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    tl.store(x, n.to(tl.None))  # ERROR: syntax error: 'None' is a word of the language and cannot stand here
