# RUN: ditron compile %s:operators --emit tile --sig "x=*f32, h=*f16, u=*u8, n=i32"
# RUN: ditron compile %s:functions --emit tile --sig "x=*f32, h=*f16, u=*u8, n=i32"
import triton
import triton.language as tl


@triton.jit
def operators(x, h, u, n):
    r = tl.arange(0, 16)
    v, w, b = tl.load(x + r), tl.load(h + r), tl.load(u + r)
    s8 = r.to(tl.int8)
    a = s8 + 1000  # ERROR: the constant 1000 is out of range for int8  # HINT: wider type
    c = b + -1  # ERROR: meets a value of the unsigned type uint8
    d = v // 2.0  # ERROR: '//' is defined on integers only  # HINT: tl.floor(a / b)
    e = b // r  # ERROR: '//' between the signed int32 and the unsigned uint8
    i = v & r  # ERROR: '&' needs integers, not fp32
    j = ~v  # ERROR: '~' needs integers
    k = x + v  # ERROR: a pointer moves by integers, not by fp32
    m = x * 2  # ERROR: '*' is not defined between
    o = v and (v > 0)  # ERROR: `and` and `or` need conditions  # HINT: combine with & and |
    p = 0 < n < 5  # ERROR: a chain of comparisons on run-time values
    q = v + tl.arange(0, 32)  # ERROR: tiles of shapes [16] and [32] do not broadcast
    ff = v @ v  # ERROR: '@' is not part of the language


@triton.jit
def functions(x, h, u, n):
    r = tl.arange(0, 16)
    v, w, b = tl.load(x + r), tl.load(h + r), tl.load(u + r)
    g = tl.exp(w)  # ERROR: exp works on fp32 and fp64, not on fp16  # HINT: x.to(tl.float32)
    t = tl.load(n)  # ERROR: load needs a pointer, not an int32 scalar
    y = tl.load(x, mask=r < 4)  # ERROR: the pointer is a scalar, so the mask cannot be
    z = tl.load(x + r, other=0.0)  # ERROR: `other` without a mask
    aa = v.to(tl.int16, bitcast=True)  # ERROR: a bitcast from fp32 to int16 changes the width
    bb = v.to(tl.float8e4b15)  # ERROR: no value can have the type float8e4b15 here
    cc = tl.dot(v[:, None], w[None, :])  # ERROR: have different types, fp32 and fp16
    dd = tl.dot(v, v)  # ERROR: tl.dot multiplies two tiles of 2 axes
    ee = v[3]  # ERROR: is indexed by `:` and None only  # HINT: tl.gather
    gg = tl.atomic_add(u + r, 1)  # ERROR: atomic_add on uint8 in memory
    hh = tl.where(v, w)  # ERROR: 'where' needs a value for 'y'
    ii = tl.sum(n)  # ERROR: sum needs a tile
    jj = tl.sum(v, axis=2)  # ERROR: axis 2 is out of range for a tile of 1 axis
    kk = v.logical_and(v > 0)  # ERROR: 'logical_and' needs truth values, not  # HINT: compare it: x != 0
