# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    if n[:, None] & **n[None, :]:  # ERROR: syntax error: an operand cannot be unpacked with *
        pass
