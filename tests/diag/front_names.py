# RUN: ditron compile %s:names --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl
import torch


@triton.jit
def helper(a, b, KEY: tl.constexpr = 1):
    return a + b


@triton.jit
def names(x, n):
    pid = tl.program_id(0)
    a = tl.laod(x + pid)  # ERROR: 'triton.language.laod' is not supported  # HINT: did you mean 'load'?
    b = pidd + 1  # ERROR: 'pidd' is not defined  # HINT: did you mean 'pid'?
    c = tl.load(x, msak=True)  # ERROR: 'load' has no parameter 'msak'  # HINT: did you mean 'mask'? It is called as load(pointer, mask=...
    d = helper(1, 2, KYE=3)  # ERROR: 'helper' has no parameter 'KYE'  # HINT: did you mean 'KEY'?
    e = helper(1)  # ERROR: 'helper' needs a value for its parameter 'b'
    f = n.dtyp  # ERROR: has no attribute 'dtyp'  # HINT: did you mean 'dtype'?
    g = torch.zeros(3)  # ERROR: 'torch.zeros' of the host program cannot be called in a kernel  # HINT: kernels have tl.zeros
    if n > 0:
        only = 1
    h = only + 1  # ERROR: 'only' is defined on one side of the `if` in line 22 only  # HINT: give it a value before
    for i in range(n):
        inner = i
    j = inner  # ERROR: 'inner' is defined only inside the loop in line
