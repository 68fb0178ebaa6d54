# RUN: ditron compile %s:calls --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def inner(SIZE: tl.constexpr):
    return tl.zeros((SIZE,), tl.float32)  # ERROR: 'shape' of zeros must hold integers known at compile time


@triton.jit
def outer(n, extra):
    return inner(n)  # NOTE: in 'inner', called here


@triton.jit
def calls(x, n):
    a = outer(n, 1)  # NOTE: in 'outer', called here
    b = outer(n)  # ERROR: 'outer' needs a value for its parameter 'extra'  # HINT: it is called as outer(n, extra)
    rows = []
    rows.append(a)  # ERROR: a list [] has no attribute 'append'  # HINT: rows = rows + [row]
    c = rows[0]  # not reported as well
    d = x.shape[0]  # ERROR: a kernel sees a tensor argument as a pointer, which has no shape  # HINT: pass the sizes
