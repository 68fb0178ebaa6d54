# RUN: ditron compile %s:flow --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def even(n):
    return odd(n - 1)


@triton.jit
def odd(n):
    return even(n - 1)  # ERROR: recursion is not supported  # HINT: write it as a loop


@triton.jit
def mixed(n):
    if n > 0:  # ERROR: one path returns an int32 scalar, another an fp32 scalar
        return 1
    return 1.0


@triton.jit
def flow(x, n):
    r = tl.arange(0, 16)
    acc = 0
    for i in range(n):  # ERROR: 'acc' is an int32 scalar before the loop but an fp32[16] tile after one trip  # HINT: final type
        acc += tl.load(x + r)
    for i in range(n):
        if i == 3:
            return  # ERROR: return inside a run-time loop  # HINT: break, and return after the loop
    for i in range(n):
        pass
    else:
        n = 1  # ERROR: `else` on a loop is not supported
    for i in tl.static_range(n):  # ERROR: tl.static_range is unrolled while compiling
        pass
    for i in tl.static_range(10000000):  # ERROR: tl.static_range would be unrolled 10000000 times
        pass
    for i in range(0, 4, 0):  # ERROR: a range with step 0
        pass
    for i in r:  # ERROR: a loop cannot run over an int32[16] tile
        pass
    if r > 3:  # ERROR: a tile of shape [16] cannot be a condition  # HINT: tl.where
        pass
    mixed(n)
    even(n)
    break  # ERROR: break outside a loop
    not_looked_at_any_more
