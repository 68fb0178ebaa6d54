"""Semantics 13 to 24 of the language: constants, control flow, helpers, tiles, launches and specialisation. Each case is one of
the numbered rules by which Triton differs from Python or C, on the interpreter and on the CPU."""
import tempfile
from pathlib import Path

import numpy as np

from _ditron import case, ditron, finish
from _kernels import refused, run, same

i8, i16, i32, i64, u8, u32, u64, f16, f32, f64 = np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64, np.float16, np.float32, np.float64


def assignment():
    same("""
@triton.jit
def first(t):
    return t[0]

@triton.jit
def k(o, BLOCK: tl.constexpr, NAME: tl.constexpr):
    n = BLOCK // 2
    tl.static_assert(isinstance(n, tl.tensor) and n.dtype == tl.int32)
    tl.store(o, n // -3)
    m: tl.constexpr = BLOCK // 2
    tl.static_assert(m == 4 and not isinstance(m, tl.tensor))
    tl.store(o + 1, m // -3)
    tl.store(o + tl.arange(0, m) + 2, m)
    q: tl.constexpr = tl.constexpr(7)
    tl.static_assert(q == 7)
    # dtypes and None stay what they are
    dt = tl.float16
    tl.static_assert(dt is tl.float16)
    tl.store(o + 6, tl.zeros((4,), dt).dtype.primitive_bitwidth)
    nothing = None
    tl.static_assert(nothing is None)
    # members of a tuple are converted one by one
    t = (BLOCK, dt, nothing, -7)
    tl.static_assert(isinstance(t[0], tl.tensor) and t[1] is tl.float16 and t[2] is None)
    tl.store(o + 7, t[3] // 2)
    a, b = -7, tl.int8
    tl.store(o + 8, a // 2)
    tl.static_assert(b is tl.int8)
    s: tl.constexpr = (BLOCK, -7)
    tl.store(o + 9, s[1] // 2)
    tl.store(o + 10, first((-7, 1)) // 2)
    # an augmented assignment makes a run-time value as well
    c = BLOCK
    c += 1
    tl.static_assert(isinstance(c, tl.tensor))
    tl.store(o + 11, c)
    # strings and functions, which Triton refuses here, keep their values
    f = first
    name = "x" + NAME
    tl.static_assert(name == "xy")
    tl.store(o + 12, f((3, 4)))
    BLOCK = 3
    tl.static_assert(isinstance(BLOCK, tl.tensor))
    tl.store(o + 13, BLOCK)
""", dict(o=np.zeros(14, i32), BLOCK=8, NAME='"y"'), dict(o=np.array([-1, -2, 4, 4, 4, 4, 16, -3, -3, -4, -3, 9, 3, 3], i32)))
    refused("""
@triton.jit
def k(x, n, BLOCK: tl.constexpr):
    a = BLOCK // 2
    b = tl.arange(0, a + n)  # ERROR: must be an integer known at compile time
    m: tl.constexpr = 4
    m = 5  # ERROR: 'm' was declared tl.constexpr and cannot be assigned again
    d: tl.constexpr = 4
    d += 1  # ERROR: 'd' was declared tl.constexpr and cannot be assigned again
    c: tl.constexpr = n
    d = tl.arange(0, c)  # ERROR: must be an integer known at compile time
""", k="x=*f32, n=i32, BLOCK=8")


def constant_branches():
    same("""
@triton.jit
def early(o, FLAG: tl.constexpr):
    if FLAG:
        tl.store(o, 3)
        return 1
    tl.store(o, 4)
    return 2

@triton.jit
def k(x, o, P, FLAG: tl.constexpr, MODE: tl.constexpr, N: tl.constexpr):
    if FLAG:
        v = 1
    else:
        v = tl.not_in_the_library(x) @ "ill-typed"
        some.thing.undefined
    tl.store(o, v)
    if P is None:
        tl.store(o + 1, 2)
    else:
        tl.store(o + 1, tl.load(P))
    if P:
        undefined()
    if N:
        tl.store(o + 2, N)
    if N - 3:
        undefined()
    elif MODE == "fast":
        tl.store(o + 3, 5)
    else:
        undefined()
    # the arms of a constant branch are no scopes: types may differ, names stay
    if FLAG:
        w = tl.arange(0, 4)
    else:
        w = 1.5
    tl.store(o + 4 + tl.arange(0, 4), w)
    v = 2.5
    tl.static_assert(v.dtype == tl.float32)
    tl.store(o + 8, early(o + 9, FLAG))
    tl.store(o + 10, early(o + 11, not FLAG))
    y = 3 if FLAG else undefined()
    tl.store(o + 12, y)
    if FLAG:
        tl.store(o + 13, 1)
        return
    tl.store(o + 13, 2)
""", dict(x=np.zeros(1, f32), o=np.zeros(14, i32), P="None", FLAG=True, MODE='"fast"', N=3),
         dict(o=np.array([1, 2, 3, 5, 0, 1, 2, 3, 1, 3, 2, 4, 3, 1], i32)))
    refused("""
@triton.jit
def k(x, S: tl.constexpr, F: tl.constexpr):
    if F:  # ERROR: a compile-time condition is a bool, an integer or None, not the constant 1.5
        pass
    if S:  # ERROR: a compile-time condition is a bool, an integer or None, not a string
        pass
    a = 1 if F else 2  # ERROR: a compile-time condition is a bool, an integer or None
""", k='x=*f32, S="fast", F=1.5')


def runtime_branches():
    x = np.array([5, -5, 0, 7], i32)
    same("""
@triton.jit
def k(x, o, n):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    a = 1
    b = tl.arange(0, 4)
    c = 2.5
    t = (v, 1.0)
    if v > 0:
        a = a + v
        b = b * 2
        t = (v + 1, 2.0)
        only = 3
    elif v < 0:
        a = -a
        c = c + 0.5
        only_here = tl.arange(0, 8)
    tl.store(o + pid * 8 + b * 0 + tl.arange(0, 4), b)
    tl.store(o + pid * 8 + 4, a)
    tl.store(o + pid * 8 + 5, (c * 10).to(tl.int32))
    tl.store(o + pid * 8 + 6, t[0] + t[1].to(tl.int32))
    # names of one type on both sides are values afterwards
    if v > 6:
        z = 70
    else:
        z = v
    # one element is a scalar; a number is true where it is not 0
    if tl.sum(b, 0, keep_dims=True) > 10:
        z += 1
    if v:
        z += 100
    if n != n + tl.zeros((1, 1), tl.int32):
        z = 0
    tl.store(o + pid * 8 + 7, z)
""", dict(x=x, o=np.zeros((4, 8), i32), n=3),
         dict(o=np.array([[0, 2, 4, 6, 6, 25, 8, 106], [0, 1, 2, 3, -1, 30, -4, 95], [0, 1, 2, 3, 1, 25, 1, 0], [0, 2, 4, 6, 8, 25, 10, 171]], i32)),
         grid=(4,))
    refused("""
@triton.jit
def k(x, n):
    r = tl.arange(0, 4)
    if r > 2:  # ERROR: a tile of shape [4] cannot be a condition
        pass
    a = 1
    if n > 0:
        a = 1.5
        only = 2
    b = a + 1  # ERROR: 'a' is an fp32 scalar after one side of the `if`
    c = only + 1  # ERROR: 'only' is defined on one side of
    d = r
    if n > 0:
        d = tl.arange(0, 8)
    e = d + 1  # ERROR: 'd' is an int32[8] tile after one side of the `if`
    if n > 0:
        f = 1
    else:
        f = 1.0
    g = f  # ERROR: 'f' is an int32 scalar after one side of the `if`
    h = 4
    if n > 0:
        h = h.to(tl.int64)
    i = h  # ERROR: 'h' is an int64 scalar after one side of the `if`
    while r > 2:  # ERROR: a tile cannot be the condition of a loop
        pass
""", k="x=*f32, n=i32")


def choices():
    x = np.array([3, 0, -4, 2], i32)
    r = same_choice(x)
    assert r == [True, True], r
    refused("""
@triton.jit
def k(x, n):
    v = tl.load(x)
    r = tl.arange(0, 4)
    a = v if n > 0 else r  # ERROR: the two sides of a run-time choice must have one type, but are an fp32 scalar and an int32[4] tile
    b = n if n > 0 else v  # ERROR: the two sides of a run-time choice must have one type
    c = 1 if n > 0 else 2.0  # ERROR: the two sides of a run-time choice must have one type
    d = 1 if r > 0 else 2  # ERROR: a tile cannot be a condition
""", k="x=*f32, n=i32")


def same_choice(x):
    source = """
@triton.jit
def k(x, o, c):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    # one side runs: the counters say which
    a = tl.atomic_add(c, 1) if v > 0 else tl.atomic_add(c + 1, 1)
    # so a division by zero on the other side is not executed
    b = 12 // v if v != 0 else v
    tl.store(o + pid * 4, b)
    # where evaluates both, and keeps quiet about the unused one
    r = tl.arange(0, 4)
    w = tl.load(x + r)
    f = w.to(tl.float32)
    s = tl.where(w > 0, tl.sqrt(f), -1.0)
    tl.store(o + pid * 4 + 1, tl.sum(s).to(tl.int32))
    d = tl.where(w != 0, 12 // tl.where(w == 0, 1, w), 0)
    tl.store(o + pid * 4 + 2, tl.sum(d))
    tl.store(o + pid * 4 + 3, tl.where(v > 0, 1.0 / v, 0.0).to(tl.int32) + tl.sum(tl.where(w != 0, 1.0 / f, 0.0)).to(tl.int32))
"""
    want = np.zeros((4, 4), i32)
    want[:, 0] = [4, 0, -3, 6]
    want[:, 1] = int(np.sqrt(3) + np.sqrt(2) - 2)
    want[:, 2] = 4 + 0 - 3 + 6
    same(source, dict(x=x, o=np.zeros((4, 4), i32), c=np.zeros(2, i32)), dict(o=want, c=np.array([2, 2], i32)), grid=(4,))
    return [True, True]


def loops():
    same("""
@triton.jit
def k(o, q, n, big, step):
    acc = tl.zeros((4,), tl.float32)
    t = (0, tl.arange(0, 4))
    for i in range(n):
        tl.static_assert(i.dtype == tl.int32)
        acc += i
        t = (t[0] + 2, t[1] * 2)
    tl.static_assert(acc.dtype == tl.float32)
    tl.store(o + tl.arange(0, 4), acc.to(tl.int32) + t[1] + t[0])
    s = 0
    for i in range(0, n.to(tl.int64)):
        tl.static_assert(i.dtype == tl.int64)
        s += 1
    for i in range(big, big + 3):
        tl.static_assert(i.dtype == tl.int64)
        tl.store(q, i)
    for i in range(n.to(tl.int8), 7, step):
        tl.static_assert(i.dtype == tl.int32)
        s += 10
    for i in range(n.to(tl.uint32)):
        tl.static_assert(i.dtype == tl.uint32)
        s += 100
    tl.store(o + 4, s)
    s = 0
    for i in range(n, 0, -1):
        s = s * 10 + i
    tl.store(o + 5, s)
    s = 0
    for i in range(1, 20, step):
        s = s * 10 + i
    tl.store(o + 6, s)
    # the variable of the loop may be assigned in its body, without effect on the trips
    s = 0
    for i in range(3):
        s += 1
        i = i + 10
    tl.store(o + 7, s)
    for i in range(5, 5):
        s = 99
    for i in tl.range(3, 1):
        s = 99
    tl.store(o + 8, s)
    # break and continue, which Triton refuses, mean what they mean in Python
    s = 0
    for i in range(10):
        if i == 2:
            continue
        if i == 5:
            break
        s = s * 10 + i
    tl.store(o + 9, s)
    p = o
    for i in range(3):
        p += 1
    tl.store(p + 7, 42)
    x = n
    while x < 100:
        x = x * 2
    tl.store(o + 11, x)
""", dict(o=np.zeros(12, i32), q=np.zeros(1, i64), n=4, big=2**40, step=3),
         dict(o=np.array([14, 30, 46, 62, 414, 4321, 1 * 10**6 + 4 * 10**5 + 7 * 10**4 + 10 * 10**3 + 13 * 100 + 16 * 10 + 19, 3, 3, 134, 42, 128], i32),
              q=np.array([2**40 + 2])))
    refused("""
@triton.jit
def k(x, n):
    acc = 0
    for i in range(n):  # ERROR: 'acc' is an int32 scalar before the loop but an fp32[4] tile after one trip
        acc += tl.load(x + tl.arange(0, 4))
    b = 0
    for i in range(n):  # ERROR: 'b' is an int32 scalar before the loop but an fp32 scalar after one trip
        b += 1.5
    c = tl.arange(0, 4)
    while n > 0:  # ERROR: 'c' is an int32[4] tile before the loop but an int32[4, 4] tile after one trip
        c = c[:, None] + c[None, :]
        n -= 1
    d = (1, 2)
    for i in range(n):  # ERROR: 'd' is a tuple
        d = (1, 2.5)
    for i in range(n):
        pass
    else:
        n = 1  # ERROR: `else` on a loop is not supported
    while n > 0:
        n -= 1
    else:
        n = 1  # ERROR: `else` on a loop is not supported
    for i in range(0, n, 0):  # ERROR: a range with step 0
        pass
    for i in range(0.5):  # ERROR: the end of a range must be an integer
        pass
    for i in range(tl.load(x)):  # ERROR: the end of a range must be an integer scalar, not an fp32 scalar
        pass
""", k="x=*f32, n=i32")


def returns():
    same("""
@triton.jit
def sign(v):
    if v > 0:
        return 1
    if v < 0:
        return -1
    return 0

@triton.jit
def pair(v):
    if v > 1:
        r = v, 1.5
    else:
        r = v * 2, 2.5
    return r

@triton.jit
def last(v):
    for i in tl.static_range(3):
        if v == i:
            return i * 100
    return -1

@triton.jit
def k(x, o, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    v = tl.load(x + pid)
    tl.store(o + pid * 4, sign(v))
    a, b = pair(v)
    tl.store(o + pid * 4 + 1, a + b.to(tl.int32))
    tl.store(o + pid * 4 + 2, last(v))
    if v == 2:
        tl.store(o + pid * 4 + 3, 8)
        return
    tl.store(o + pid * 4 + 3, 9)
""", dict(x=np.array([2, -3, 0, 1, 5], i32), o=np.zeros((5, 4), i32), n=4),
         dict(o=np.array([[1, 3, 200, 8], [-1, -4, -1, 9], [0, 2, 0, 9], [1, 4, 100, 9], [0, 0, 0, 0]], i32)), grid=(5,))
    refused("""
@triton.jit
def k(x, n):
    for i in range(n):
        if i > 3:
            return  # ERROR: return inside a run-time loop
    while n > 0:
        return  # ERROR: return inside a run-time loop
    with dl.simt_exec_region():  # ERROR: return, break and continue cannot leave a simt_exec_region
        return
""", k="x=*f32, n=i32")
    for text, body in (("an fp32 scalar", "    return 2.5\n"), ("an int32[4] tile", "    return tl.arange(0, 4)\n"), ("None", "")):
        refused(f"""
@triton.jit
def k(v):
    if v > 0:  # ERROR: one path returns an int32 scalar, another {text}
        return 1
{body}""", k="v=i32")


def helpers():
    same("""
@triton.jit
def twice(v):
    return v + v

@triton.jit
def pick(v, FLAG: tl.constexpr, dt: tl.constexpr = tl.int32):
    if FLAG:
        return v.to(dt)
    else:
        return (v + 1).to(dt)

@triton.jit
def apply(f: tl.constexpr, v, n: tl.constexpr):
    for i in tl.static_range(n):
        v = f(v)
    return v

@triton.jit
def larger(a, b):
    return tl.maximum(a, b)

@triton.jit
def both(p, v):
    return p[0](v), p[1](v)

@triton.jit
def neg(v):
    return -v

@triton.jit
def weighted(a, b=10, *, w: tl.constexpr = 2):
    return a * b + w

@triton.jit
def stride_one(p, s):
    # an argument of a helper is specialised by its type and, where constant, by its value
    if isinstance(s, tl.tensor):
        return p + s
    return p + s * 2

@triton.jit
def k(x, o):
    r = tl.arange(0, 4)
    v = tl.load(x + r)
    tl.static_assert(twice(v).dtype == tl.float32 and twice(r).dtype == tl.int32 and twice(r.to(tl.int8)).dtype == tl.int8)
    tl.static_assert(twice(v).shape == (4,) and len(twice(2).shape) == 0)
    tl.store(o + r, twice(v).to(tl.int32) + twice(r))
    tl.store(o + 4 + r, pick(v, True) + pick(v, FLAG=False))
    tl.static_assert(pick(r, True, tl.float16).dtype == tl.float16)
    tl.store(o + 8 + r, apply(twice, r, 3))
    tl.store(o + 12, tl.reduce(r, 0, larger))
    a, b = both((twice, neg), 5)
    tl.store(o + 13, a * 100 + b)
    tl.store(o + 14, weighted(3))
    tl.store(o + 15, weighted(3, 4, w=5))
    args = (6, 7)
    tl.store(o + 16, weighted(*args))
    tl.store(o + 17, weighted(*args, w=1))
    tl.store(o + 18, weighted(b=2, a=9))
    three = 3
    tl.store(stride_one(o, three) + 16, 77)
    tl.store(stride_one(o, 10), 78)
    fns = (twice, neg)
    s = 0
    for i in tl.static_range(len(fns)):
        s += fns[i](i + 1)
    tl.store(o + 21, s)
""", dict(x=np.array([0.5, 1, 1.5, 2], f32), o=np.zeros(22, i32)),
         dict(o=np.array([1, 4, 7, 10, 1, 3, 3, 5, 0, 8, 16, 24, 3, 995, 32, 17, 44, 43, 20, 77, 78, 0], i32)))
    refused("""
@triton.jit
def helper(a, b, N: tl.constexpr):
    return a

@triton.jit
def iota(N: tl.constexpr):
    return tl.arange(0, N)  # ERROR: must be an integer known at compile time

@triton.jit
def k(x, n):
    a = helper(1)  # ERROR: 'helper' needs a value for its parameter 'b'
    b = iota(n)
    c = helper(1, 2, 3, 4)  # ERROR: 'helper' takes 3 positional arguments, not 4
    d = helper(1, a=2, b=3, N=4)  # ERROR: 'helper' gets two values for 'a'
    e = helper(*n)  # ERROR: only a tuple can be unpacked with *
""", k="x=*f32, n=i32")


def module_names():
    same("""
import math
import torch
SIZE: tl.constexpr = 4
ALSO = tl.constexpr(8)
TYPE = tl.int16
PLAIN = 3
HALF = PLAIN / 2
NAMES = ("a", "b")

@triton.jit
def helper(v):
    return v * PLAIN

ALIAS = helper

@triton.jit
def k(o):
    r = tl.arange(0, SIZE)
    tl.store(o + r, helper(r) + ALSO)
    tl.static_assert(r.to(TYPE).dtype == tl.int16)
    tl.static_assert(SIZE == 4 and PLAIN == 3 and len(NAMES) == 2)
    tl.store(o + 4, ALIAS(5) + PLAIN)
    tl.store(o + 5, math.ceil(PLAIN / 2))
    SIZE_ = SIZE
    tl.static_assert(isinstance(SIZE_, tl.tensor))
    HALF = 100
    tl.store(o + 6, HALF)
""", dict(o=np.zeros(7, i32)),
         dict(o=np.array([8, 11, 14, 17, 18, 2, 100], i32)))
    refused("""
import torch
import os
LIMIT = int(os.environ.get("LIMIT", 3))
DEVICE = torch.device("cpu")

@triton.jit
def k(x):
    a = LIMIT + 1  # ERROR: host program
    b = tl.zeros((4,), tl.float32) + DEVICE  # ERROR: host program
    c = os.getpid()  # ERROR: host program
    d = UNKNOWN  # ERROR: 'UNKNOWN' is not defined
""", k="x=*f32")
    # a file that changed is compiled anew at the next launch
    with tempfile.TemporaryDirectory() as folder:
        f = Path(folder) / "k.py"
        for value in (5, 6):
            f.write_text(f"import triton\nimport triton.language as tl\nN = {value}\n\n@triton.jit\ndef k(o):\n    tl.store(o, N)\n")
            out = ditron("run", f, "--grid", 1, "o=zeros:i32[1]").stdout
            assert f"o i32[1] = {value}" in out, out


def tiles():
    same("""
@triton.jit
def k(o, w):
    a = tl.arange(3, 7)
    tl.static_assert(a.dtype == tl.int32 and a.shape == (4,) and a.numel == 4)
    tl.store(o + tl.arange(0, 4), a)
    b = a[:, None]
    c = a[None, :]
    d = a[None, :, None]
    tl.static_assert(b.shape == (4, 1) and c.shape == (1, 4) and d.shape == (1, 4, 1))
    tl.static_assert((b + c).shape == (4, 4) and (b + a).shape == (4, 4) and (d + b).shape == (1, 4, 1))
    # a lower rank is padded on the left: a is a row here
    m = tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(o + 4 + m, b * 10 + a)
    tl.store(w + tl.arange(0, 4), tl.broadcast_to(b, (4, 4)).sum(1))
    tl.static_assert(tl.zeros((1, 2, 4, 8), tl.int8).numel == 64)
    tl.static_assert(tl.arange(0, 1).shape == (1,) and tl.arange(0, 1048576).numel == 1048576)
    tl.static_assert(tl.broadcast_to(c, (4, 4)).shape == (4, 4) and tl.broadcast_to(5, (2, 2)).shape == (2, 2))
    tl.static_assert(a[:].shape == (4,) and b[:, :].shape == (4, 1))
""", dict(o=np.zeros(20, i32), w=np.zeros(4, i32)),
         dict(o=np.concatenate([np.arange(3, 7), (np.arange(3, 7)[:, None] * 10 + np.arange(3, 7)).ravel()]).astype(i32), w=4 * np.arange(3, 7, dtype=i32)))
    refused("""
@triton.jit
def k(x, n):
    r = tl.arange(0, 4)
    a = tl.arange(0, 3)  # ERROR: the length of tl.arange must be a power of two, not 3
    b = tl.arange(4, 4)  # ERROR: is empty
    c = tl.arange(4, 0)  # ERROR: is empty
    d = tl.zeros((3, 4), tl.float32)  # ERROR: the sizes of a tile are powers of two, but axis 0 has 3
    e = tl.zeros((2048, 1024), tl.float32)  # ERROR: a tile has at most 1048576 elements
    f = tl.arange(0, 2097152)  # ERROR: at most 1048576
    g = r[0]  # ERROR: is indexed by `:` and None only
    h = r[1:3]  # ERROR: is indexed by `:` and None only
    i = r[n]  # ERROR: is indexed by `:` and None only
    j = tl.broadcast_to(r, (4, 4))  # ERROR: broadcast
    l = tl.broadcast_to(r[:, None], (8, 4))  # ERROR: broadcast
    m = r + tl.arange(0, 8)  # ERROR: tiles of shapes [4] and [8] do not broadcast
    o = tl.arange(0, n)  # ERROR: must be an integer known at compile time
    p = tl.arange(2147483647, 2147483649)  # ERROR: 32 bits
    q = r[:, :]  # ERROR: 2 axes are indexed
""", k="x=*f32, n=i32")


def specialisation():
    source = """
@triton.jit(do_not_specialize=["u"])
def k(o, one, big, word, neg, fixed: tl.int64, u, flag, x, none, narrow: tl.int8, single: tl.float64):
    tl.static_assert(not isinstance(one, tl.tensor) and one == 1)
    if one == 1:
        s = 1
    else:
        undefined()
    tl.static_assert(big.dtype == tl.int64 and neg.dtype == tl.int32 and word.dtype == tl.uint64)
    tl.static_assert(isinstance(fixed, tl.tensor) and fixed.dtype == tl.int64)
    tl.static_assert(isinstance(u, tl.tensor) and u.dtype == tl.int32)
    tl.static_assert(flag.dtype == tl.int1 and x.dtype == tl.float32 and none is None)
    tl.static_assert(narrow.dtype == tl.int8 and isinstance(narrow, tl.tensor) and single.dtype == tl.float64)
    tl.store(o, s + one)
    tl.store(o + 1, big)
    tl.store(o + 2, (word >> 60).to(tl.int64))
    tl.store(o + 3, neg)
    tl.store(o + 4, fixed)
    tl.store(o + 5, u)
    tl.store(o + 6, flag)
    tl.store(o + 7, (x * 4).to(tl.int64))
    tl.store(o + 8, narrow)
    tl.store(o + 9, (single * 8).to(tl.int64))
"""
    same(source, dict(o=np.zeros(10, i64), one=1, big=2**31, word=2**64 - 1, neg=-2**31, fixed=1, u=1, flag=True, x=0.25, none="None", narrow=1,
                      single=0.125), dict(o=np.array([2, 2**31, 15, -2**31, 1, 1, 1, 1, 1, 1])))
    try:
        run(source, dict(o=np.zeros(10, i64), one=2, big=2**31, word=2**64 - 1, neg=-2**31, fixed=1, u=1, flag=True, x=0.25, none="None", narrow=1,
                         single=0.5), ["o"], modes=("interp",))
    except AssertionError as e:
        assert "'undefined' is not defined" in str(e) or "static assertion failed" in str(e), e
    else:
        raise AssertionError("an argument of 2 was taken for 1")
    # divisible by 16 is recorded, the value is none of it
    hints = {}
    for name, sig in dict(plain="x=*f32, n=i32", multiple="x=*f32:16, n=i32:16").items():
        with tempfile.TemporaryDirectory() as folder:
            f = Path(folder) / "k.py"
            f.write_text("import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, n):\n    tl.store(x + n, 1.0)\n")
            hints[name] = ditron("compile", f, "--emit", "tile", "--sig", sig).stdout
    assert "16" in hints["multiple"] and "divisible" not in hints["plain"], hints


def pointers():
    n = 8
    x = np.arange(n * 2, dtype=f32)
    same("""
@triton.jit
def k(x, h, o, w, q, pid0, stride):
    r = tl.arange(0, 4)
    # in elements, whatever their size
    tl.store(o + r, tl.load(x + 2 + r))
    tl.store(o + 4, tl.load(h + 3))
    tl.store(o + 5, ((x + 5) - x).to(tl.float32))
    p = x + 4
    tl.store(o + 6, tl.load(p - 1))
    tl.store(o + 7, tl.load(p + (-2)))
    # a signed offset is sign-extended, an unsigned one zero-extended
    minus = r - 4
    tl.store(o + 8 + r, tl.load(x + 4 + minus))
    tl.store(o + 12, tl.load(x + 4 + minus.to(tl.int8).sum().to(tl.int8) + 10))
    u8_ = tl.full((), 200, tl.uint8)
    tl.store(q, ((x + u8_).to(tl.int64) - x.to(tl.int64)))
    u = tl.full((), 4294967295, tl.uint32)
    tl.store(q + 1, ((x + u).to(tl.int64) - x.to(tl.int64)))
    m = tl.full((), -1, tl.int32)
    tl.store(q + 2, ((x + m).to(tl.int64) - x.to(tl.int64)))
    # products of 32-bit values wrap unless they are cast
    tl.store(q + 3, pid0 * stride)
    tl.store(q + 4, pid0.to(tl.int64) * stride)
    tl.static_assert((pid0 * stride).dtype == tl.int32)
    tl.store(q + 5, ((x + pid0 * stride).to(tl.int64) - x.to(tl.int64)))
    tl.static_assert((x + r).dtype == tl.pointer_type(tl.float32) and (r + x).shape == (4,))
    tl.store(q + 6, (x + 1 > x).to(tl.int64) + (x == x + 0).to(tl.int64) * 2)
""", dict(x=x, h=np.arange(4, dtype=f16), o=np.zeros(13, f32), w=np.zeros(1, f32), q=np.zeros(7, i64), pid0=65536, stride=65537),
         dict(o=np.array([2, 3, 4, 5, 3, 5, 3, 2, 0, 1, 2, 3, 4], f32),
              q=np.array([800, 4 * 4294967295, -4, 65536, 65536 * 65537, 65536 * 4, 3])))
    refused("""
@triton.jit
def k(x, y):
    a = x + y  # ERROR: '+' is not defined between
    b = x + 1.5  # ERROR: a pointer moves by integers, not by fp32
    c = x * 2  # ERROR: '*' is not defined between
    d = 4 - x  # ERROR: '-' is not defined between
    e = x & 3  # ERROR: '&' is not defined between
    f = x > 3.5  # ERROR: a pointer compares with another pointer or with 0 only
""", k="x=*f32, y=*f32")


def constexpr_arguments():
    same("""
@triton.jit
def add(a, b):
    return a + b

@triton.jit
def mul(a, b):
    return a * b

@triton.jit
def k(o, DT: tl.constexpr, NAME: tl.constexpr, F: tl.constexpr, OP: tl.constexpr, NONE: tl.constexpr, FLAG: tl.constexpr, I: tl.constexpr,
      T: tl.constexpr = (4, 8), D: tl.constexpr = 12):
    tl.static_assert(DT == tl.float16 and NAME == "fast" and F == 2.5 and NONE is None and FLAG and I == -7 and D == 12)
    tl.static_assert(T[0] == 4 and T[1] == 8 and len(T) == 2)
    z = tl.zeros((4,), DT)
    tl.static_assert(z.dtype == DT)
    tl.store(o, OP(3, 4))
    tl.store(o + 1, tl.reduce(tl.arange(1, 5), 0, OP))
    tl.store(o + 2, I // 2)
    tl.store(o + 3, int(F * 4))
    if NAME != "slow":
        tl.store(o + 4, 5)
    tl.store(o + 5, tl.arange(0, T[0] * T[1]).numel)
    tl.store(o + 6, DT.primitive_bitwidth)
    tl.store(o + 7, D + add(0, 0) * mul(1, 1))
""", dict(o=np.zeros(8, i32), DT="tl.float16", NAME='"fast"', F=2.5, OP="mul", NONE="None", FLAG=True, I=-7),
         dict(o=np.array([12, 24, -4, 10, 5, 32, 16, 12], i32)))


case("sem 13: a plain assignment makes a run-time value; `name: tl.constexpr = ...` keeps the constant", assignment)
case("sem 14: a constant `if` visits the taken branch only, on bools, integers and None", constant_branches)
case("sem 15: a run-time `if` keeps exact types; names of one arm vanish; a tile is no condition", runtime_branches)
case("sem 16: a run-time choice runs one side; where evaluates both and does not fault", choices)
case("sem 17: carried names keep type and shape; the variable's type comes from the bounds", loops)
case("sem 18: return leaves early at top level, not from loops; all returns agree", returns)
case("sem 19: helpers by argument types and constants; functions are values; defaults, keywords, stars", helpers)
case("sem 20: globals: constants, dtypes, functions, modules; host values are refused", module_names)
case("sem 21: sizes are powers of two up to 2^20; indexing by None and `:`; ranks pad on the left", tiles)
case("sem 22: 1 is a constant, width by value, annotations and do_not_specialize hold", specialisation)
case("sem 23: pointers count elements; offsets extend by sign; 32-bit products wrap", pointers)
case("sem 24: dtypes, strings, floats, functions, None and tuples are constexpr arguments", constexpr_arguments)
finish()
