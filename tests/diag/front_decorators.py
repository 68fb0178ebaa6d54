# What stands around @triton.jit and is not run is named: above, below, of helpers and of plain functions.
# RUN: ditron compile %s:kernel --emit tile --sig "x=*f32, n=i32, BLOCK=16"
import functools

import triton
import triton.language as tl
from triton import autotune
from mine import counted, tune


@functools.cache  # WARNING: the decorator 'functools.cache' is not run: 'plain' is compiled as it is written
def plain(a):
    return a + 1


@triton.jit
@counted  # WARNING: the decorator 'counted' is not run: 'helper' is compiled as it is written
def helper(a):
    return a * 2


@counted
@triton.jit
def unused(a):
    return a


@tune(configs=[1, 2], key=["n"])  # WARNING: the decorator 'tune(...)' is not run: 'kernel' is compiled as it is written
@autotune(configs=[triton.Config({"BLOCK": 16})], key=["n"])
@triton.heuristics({"BLOCK": lambda args: 16})
@triton.jit(do_not_specialize=["n"])
def kernel(x, n, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    tl.store(at, helper(plain(helper(tl.load(at)))), mask=tl.arange(0, BLOCK) < n)
    tl.store(at, nothing)  # ERROR: is not defined
