# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl
from math import *


@triton.jit
def k(x, n):
    a = 1.
    b = (n +
         2)
    c = n + \
        3
    s =  # ERROR: syntax error: this line ends in the middle of an expression
    t = 0.0
    tl.store(x, s + t)
