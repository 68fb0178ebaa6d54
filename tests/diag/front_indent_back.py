# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    if n > 3:
        tl.store(x, 1.0 + (
  2.0)) # brackets and \
        tl.store(x, \
 2.0)
      tl.store(x, 3.0)  # ERROR: syntax error: the indentation of this line fits none of the blocks around it
