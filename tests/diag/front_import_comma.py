# RUN: ditron compile %s:k --emit tile --sig "x=*f32"
import triton
import triton.language as tl
from math import (pi, e,)
from math import tau, inf,  # ERROR: syntax error: a comma after the last name needs brackets around the names


@triton.jit
def k(x):
    tl.store(x, 1.0)
