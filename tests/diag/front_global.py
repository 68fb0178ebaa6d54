# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl

COUNT: tl.constexpr = 3


@triton.jit
def k(x, n):
    global COUNT  # ERROR: global is not supported  # HINT: return the value
    try:  # ERROR: try is not supported in kernels
        v = tl.load(x)
    except IndexError:
        w = 0.0
    tl.store(x, v + w)  # neither is reported as missing
