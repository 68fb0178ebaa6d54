# RUN: ditron compile %s:syntax --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def syntax(x, n):
    try:  # ERROR: try is not supported in kernels
        n = 1
    except Exception:
        pass
    with open("f") as g:  # ERROR: 'open' is not defined
        pass
    del n  # ERROR: del is not supported in kernels
    a = {1, 2}  # ERROR: a set is not supported in kernels
    b = 1j  # ERROR: a complex number or a suffixed integer is not supported
    c = b"bytes"  # ERROR: a bytes literal is not supported
    d = yield n  # ERROR: yield is not supported
    e = 340282366920938463463374607431768211456  # ERROR: an integer beyond 127 bits is not supported
    f = 1 << 200  # ERROR: a compile-time integer beyond 127 bits
    g = x[:, *n]  # ERROR: a star among indices is not supported
    h = 1 << 64  # ERROR: the constant 18446744073709551616 does not fit 64 bits
    syntax[(1,)](x, n)  # ERROR: a kernel cannot launch another kernel
    raise ValueError("stop")  # ERROR: raised while compiling: stop
