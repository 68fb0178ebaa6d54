# Two parameters of one name, as Python refuses them; the same name in another function is fine.
# RUN: ! ditron compile %s:k --emit tile --sig "x_ptr=*f32"
import triton


@triton.jit
def helper(x_ptr, n):
    return x_ptr + n


@triton.jit
def k(x_ptr, n=1, *, x_ptr=0):  # ERROR: two parameters are named 'x_ptr'
    pass
