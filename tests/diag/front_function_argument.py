# A function given by name as a compile-time argument: the name that the file lacks is said, with the nearest one.
# RUN: ! ditron compile %s:apply --emit tile --sig "x_ptr=*f32, OP=f_nape"
import triton
import triton.language as tl


@triton.jit
def f_nope(x):
    return -x


@triton.jit
def apply(x_ptr, OP: tl.constexpr):  # ERROR: the constant for 'OP' names 'f_nape', which is no function of the file  # HINT: did you mean 'f_nope'?
    tl.store(x_ptr, OP(tl.load(x_ptr)))
