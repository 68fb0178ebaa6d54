"""Control flow of the language against plain Python: returns, loops, breaks, helpers, values carried through them."""
import numpy as np

from _ditron import case, finish
from _kernels import same

i32 = np.int32


def early_return():
    same("""
@triton.jit
def k(x, o, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    v = tl.load(x + pid)
    if v < 0:
        if v < -5:
            tl.store(o + pid, 100)
            return
        v = -v
    elif v == 3:
        return
    tl.store(o + pid, v)
""", dict(x=np.array([1, -2, 3, -9, 5, 6], i32), o=np.zeros(6, i32), n=5), dict(o=np.array([1, 2, 0, 100, 5, 0], i32)), grid=(6,))


def helpers():
    same("""
@triton.jit
def pair(a, b, FLIP: tl.constexpr):
    if FLIP:
        return b, a
    return a, b

@triton.jit
def sign(v):
    if v < 0:
        return -1
    elif v > 0:
        return 1
    else:
        return 0

@triton.jit
def defaults(a, b=10, *, c: tl.constexpr = 3):
    return a * b + c

@triton.jit
def nothing(o, v):
    tl.store(o, v)

@triton.jit
def rest(a, *args):
    s = a
    for x in tl.static_range(len(args)):
        s += args[x]
    return s

@triton.jit
def k(x, o):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    a, b = pair(v, pid, FLIP=True)
    c, d = pair(v, pid, False)
    nothing(o + pid * 8, a)
    tl.store(o + pid * 8 + 1, b)
    tl.store(o + pid * 8 + 2, c - d)
    tl.store(o + pid * 8 + 3, sign(v))
    tl.store(o + pid * 8 + 4, defaults(v))
    tl.store(o + pid * 8 + 5, defaults(v, 2, c=1))
    tl.store(o + pid * 8 + 6, rest(v, 1, 2, pid))
    args = (v, 7)
    tl.store(o + pid * 8 + 7, defaults(*args))
""", dict(x=np.array([4, -3, 0], i32), o=np.zeros((3, 8), i32)),
         dict(o=np.array([[0, 4, 4, 1, 43, 9, 7, 31], [1, -3, -4, -1, -27, -5, 1, -18], [2, 0, -2, 0, 3, 1, 5, 3]], i32)), grid=(3,))


def loops():
    same("""
@triton.jit
def k(o, n):
    s = 0
    for i in range(n):
        s += i
    tl.store(o, s)
    s = 0
    for i in range(n, 0, -2):
        s = s * 10 + i
    tl.store(o + 1, s)
    s = 0
    for i in tl.range(1, n, 3, num_stages=2):
        for j in range(i):
            s += j
    tl.store(o + 2, s)
    s = 0
    for i in tl.static_range(4):
        s = s * 10 + i
    tl.store(o + 3, s)
    i = n
    while i > 1 and s > 0:
        s -= i
        i //= 2
    tl.store(o + 4, s)
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    tl.store(o + 5, a)
    for x in (3, 5, 7):
        s += x
    tl.store(o + 6, s)
    for q in range(5, 2):
        s = 0
    tl.store(o + 7, s)
    t = (0, n)
    for i in range(3):
        t = (t[0] + i, t[1] - 1)
    tl.store(o + 8, t[0] * 100 + t[1])
    z = 0
    for i in range(tl.cast(2147483645, tl.uint32), tl.cast(n, tl.uint32) + 2147483640):
        z += 1
    tl.store(o + 9, z)
""", dict(o=np.zeros(10, i32), n=10),
         dict(o=np.array([45, 108642, 0 + (0 + 1 + 2 + 3) + 21, 123,
                          123 - 10 - 5 - 2, 55, 106 + 15, 121, 307, 5], i32)))


def breaks():
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6, -1, 7], i32)
    same("""
@triton.jit
def k(x, o, n):
    s = 0
    for i in range(n):
        v = tl.load(x + i)
        if v < 0:
            break
        if v == 1:
            continue
        s += v
    tl.store(o, s)
    i = 0
    while True:
        if tl.load(x + i) == 9:
            break
        i += 1
    tl.store(o + 1, i)
    s = 0
    for i in tl.static_range(10):
        v = tl.load(x + i)
        if v == 1:
            continue
        if v == 9:
            break
        s += v
    tl.store(o + 2, s)
    s = 0
    for i in range(n):
        j = 0
        while j < 5:
            j += 1
            if j == i:
                break
            if j == 2:
                continue
            s += j
        else_ = 1
        if s > 60:
            break
    tl.store(o + 3, s)
    s = 0
    for i in range(n - 1, -1, -1):
        if i % 3 == 0:
            continue
        elif i == 4:
            break
        s = s * 10 + i
    tl.store(o + 4, s)
    s = 0
    for i in tl.static_range(10):
        if i == 5:
            break
        s += i
    tl.store(o + 5, s)
    s = 0
    for i in range(n):
        for j in tl.static_range(4):
            if i * j == 6:
                break
            s += j
    tl.store(o + 6, s)
""", dict(x=x, o=np.zeros(7, i32), n=10), dict(o=np.array(breaks_python(x), i32)))


def breaks_python(x):
    o, n = [], 10
    s = 0
    for i in range(n):
        if x[i] < 0:
            break
        if x[i] == 1:
            continue
        s += x[i]
    o.append(s)
    o.append(5)
    s = 0
    for i in range(10):
        if x[i] == 1:
            continue
        if x[i] == 9:
            break
        s += x[i]
    o.append(s)
    s = 0
    for i in range(n):
        j = 0
        while j < 5:
            j += 1
            if j == i:
                break
            if j == 2:
                continue
            s += j
        if s > 60:
            break
    o.append(s)
    s = 0
    for i in range(n - 1, -1, -1):
        if i % 3 == 0:
            continue
        elif i == 4:
            break
        s = s * 10 + i
    o.append(s)
    o.append(10)
    s = 0
    for i in range(n):
        for j in range(4):
            if i * j == 6:
                break
            s += j
    o.append(s)
    return o


def choices():
    same("""
@triton.jit
def k(x, o, n):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    r = 1.5 if v > 0 else tl.load(x + 0) * 0.5
    tl.store(o + pid * 4, r)
    if v > 2:
        t = tl.arange(0, 4) + v
        w = 1
    else:
        t = tl.arange(0, 4) * v
        w = 2
    tl.store(o + pid * 4 + 1, tl.sum(t))
    p = o + pid * 4 + (2 if w == 1 else 3)
    tl.store(p, w)
    if v == 2 or (v == 1 and pid > 0):
        tl.store(o + pid * 4 + 2, 9)
    if not (v == 2):
        tl.store(o + pid * 4 + 3, n)
""", dict(x=np.array([4, 1, 2, -1], i32), o=np.zeros((4, 4), np.float32), n=7),
         dict(o=np.array([[1.5, 22, 1, 7], [1.5, 6, 9, 7], [1.5, 12, 9, 2], [2, -6, 0, 7]], np.float32)), grid=(4,))


def compile_time():
    same("""
SCALE = 3
NAMES = {"a": 1, "b": 2}
SHIFT: tl.constexpr = tl.constexpr(4)
SIZES = [2 * i for i in range(3)]

def plain(n):
    r = 0
    while n > 1:
        n = n // 2
        r = r + 1
    return r

@triton.constexpr_function
def factor(n):
    for i in range(2, n):
        if n % i == 0:
            return i
    return n

@triton.jit
def pick(f: tl.constexpr, a, b):
    return f(a, b)

@triton.jit
def mul(a, b):
    return a * b

class Box:
    x: tl.tensor
    k: tl.constexpr

    def __init__(self, x, k):
        self.x = x
        self.k = k

    @triton.jit
    def scaled(self, by):
        return Box(self.x * by, self.k)

@triton.jit
def k(o, n, MODE: tl.constexpr, DT: tl.constexpr, OPT: tl.constexpr):
    tl.store(o, SCALE * n + SHIFT)
    tl.store(o + 1, NAMES["b"] + SIZES[2] + plain(64))
    tl.store(o + 2, factor(35))
    tl.store(o + 3, pick(mul, n, 3))
    if MODE == "fast":
        tl.store(o + 4, 1)
    elif MODE == "slow":
        tl.store(o + 4, not_defined)
    z = tl.zeros((4,), dtype=DT)
    tl.store(o + 5, tl.sum(z + 2.5).to(tl.int32))
    if OPT is not None and tl.load(OPT) > 0:
        tl.store(o + 6, 1)
    else:
        tl.store(o + 6, 2)
    b = Box(n, 4).scaled(3)
    tl.store(o + 7, b.x + b.k)
    f = lambda u, v=2: u - v
    tl.store(o + 8, f(n) * f(n, 1))
    total = 0
    for name, value in (("p", 1), ("q", 2)):
        if name == "q":
            total += value * 10
        else:
            total += value
    tl.store(o + 9, total)
    late: tl.constexpr = n * 2
    for _ in range(0, late, 7):
        total += 1
    tl.store(o + 10, total + late)
""", dict(o=np.zeros(11, i32), n=7, MODE='"fast"', DT="tl.float32", OPT="None"),
         dict(o=np.array([25, 12, 5, 21, 1, 10, 2, 25, 30, 21, 37], i32)))


def raised_levels():
    same("""
@triton.jit
def k(o):
    t = tid(0)
    s = 0
    last = -1
    for i in range(t % 4, 8, 2):
        s += i
        last = i
    if t >= 64:
        s = -s
    w = t
    steps = 0
    while w > 1:
        w = w // 2
        steps += 1
    r = 0
    for i in range(10):
        if i * i > t:
            break
        r = i
    st(o + t * 4, s)
    st(o + t * 4 + 1, steps)
    st(o + t * 4 + 2, r)
    st(o + t * 4 + 3, last)
""", dict(o=np.zeros((128, 4), i32)), dict(o=np.array([levels_python(t) for t in range(128)], i32)))


def levels_python(t):
    v = range(t % 4, 8, 2)
    r = 0
    for i in range(10):
        if i * i > t:
            break
        r = i
    return [sum(v) * (-1 if t >= 64 else 1), max(t, 1).bit_length() - 1, r, v[-1]]


def thread_return():
    same("""
@triton.jit
def k(o, n):
    t = tid(0)
    if t >= n:
        return
    st(o + t, t * t)
""", dict(o=np.zeros(128, i32), n=50), dict(o=np.array([t * t if t < 50 else 0 for t in range(128)], i32)))


for f in (early_return, helpers, loops, breaks, choices, compile_time, raised_levels, thread_return):
    case(f.__name__, f)
finish()
