"""Semantics 1 to 12 of the language: types, promotion, operators and casts. Each case is one of the numbered rules by which
Triton differs from Python or C, on the interpreter and on the CPU; types are asserted while compiling."""
import numpy as np

from _ditron import bf16, case, finish
from _kernels import refused, same

i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64 = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
                                                       np.float16, np.float32, np.float64)


def literals():
    same("""
@triton.jit
def k(x, w, d):
    a = 5
    b = 2147483648
    c = 4294967296
    e = 9223372036854775808
    f = -2147483649
    g = 1.5
    h = 1e-40
    i = 1e39
    j = True
    tl.static_assert(a.dtype == tl.int32)
    tl.static_assert((-2147483648).dtype == tl.int32)
    tl.static_assert(b.dtype == tl.uint32)
    tl.static_assert(c.dtype == tl.int64)
    tl.static_assert(e.dtype == tl.uint64)
    tl.static_assert(f.dtype == tl.int64)
    tl.static_assert(g.dtype == tl.float32)
    tl.static_assert(h.dtype == tl.float64)
    tl.static_assert(i.dtype == tl.float64)
    tl.static_assert(j.dtype == tl.int1)
    inf = float("inf")
    tl.static_assert(inf.dtype == tl.float32)
    zero = 0.0
    tl.static_assert(zero.dtype == tl.float32)
    tiny = 1.1754943508222875e-38
    tl.static_assert(tiny.dtype == tl.float32)
    tl.store(w, a)
    tl.store(w + 1, b)
    tl.store(w + 2, c)
    tl.store(w + 3, e)
    tl.store(w + 4, f)
    tl.store(w + 5, j)
    tl.store(d, g)
    tl.store(d + 1, h)
    tl.store(d + 2, i)
    tl.store(d + 3, inf)
    one_third = 1 / 3
    tl.store(d + 4, one_third)
""", dict(x=np.zeros(1, f32), w=np.zeros(6, i64), d=np.zeros(5, f64)),
         dict(w=np.array([5, 2**31, 2**32, -2**63, -2**31 - 1, 1], i64), d=np.array([1.5, 1e-40, 1e39, np.inf, f32(1 / 3)])))


def python_scalars():
    x = np.array([1.25, -3, 0.1, 60000], f16)
    with np.errstate(over="ignore"):
        want = np.stack([x * f16(2), x + f16(0.1), x * 7, x - f16(1)])
    same("""
@triton.jit
def k(x, o, w, p, s, K: tl.constexpr):
    r = tl.arange(0, 4)
    h = tl.load(x + r)
    tl.static_assert((h * 2.0).dtype == tl.float16)
    tl.static_assert((2 * h).dtype == tl.float16)
    tl.static_assert((h + True).dtype == tl.float16)
    tl.static_assert((h * K).dtype == tl.float16)
    tl.static_assert((h * 1e300).dtype == tl.float16)
    tl.static_assert((h + s).dtype == tl.float32)
    n = r.to(tl.int8)
    tl.static_assert((n + 100).dtype == tl.int8)
    tl.static_assert((n + True).dtype == tl.int8)
    tl.static_assert((n + 1.5).dtype == tl.float32)
    tl.static_assert(((r > 1) + 1).dtype == tl.int32)
    tl.static_assert((n.to(tl.uint8) + 255).dtype == tl.uint8)
    tl.static_assert((h.to(tl.bfloat16) * 2.0).dtype == tl.bfloat16)
    tl.static_assert((h.to(tl.float64) * 0.1).dtype == tl.float64)
    tl.static_assert((n.to(tl.int64) + 4294967296).dtype == tl.int64)
    v = 2.0
    tl.static_assert((h * v).dtype == tl.float32)
    tl.store(o + r, h * 2.0)
    tl.store(o + 4 + r, h + 0.1)
    tl.store(o + 8 + r, h * K)
    tl.store(o + 12 + r, h - True)
    tl.store(w + r, h * s)
    tl.store(p + r, n + 100)
    tl.store(p + 4 + r, n.to(tl.uint8) + 255)
""", dict(x=x, o=np.zeros((4, 4), f16), w=np.zeros(4, f32), p=np.zeros(8, i32), s=1.5, K=7),
         dict(o=want, w=x.astype(f32) * f32(1.5), p=np.array([100, 101, 102, 103, 255, 0, 1, 2], i32)))
    refused("""
@triton.jit
def k(x, n):
    b = tl.arange(0, 4).to(tl.int8)
    a = b + 1000  # ERROR: the constant 1000 is out of range for int8
    c = -129 * b  # ERROR: the constant -129 is out of range for int8
    d = b.to(tl.uint8) + -1  # ERROR: the constant -1 meets a value of the unsigned type uint8
    e = b.to(tl.uint8) - 256  # ERROR: the constant 256 is out of range for uint8
    f = n + 2147483648  # ERROR: is out of range for int32
    g = b.to(tl.uint32) // -2  # ERROR: unsigned type uint32
    h = b | 200  # ERROR: is out of range for int8
""", k="x=*f32, n=i32")


def tensor_pairs():
    same("""
@triton.jit
def k(x, o):
    r = tl.arange(0, 4)
    d = tl.load(x + r).to(tl.float64)
    f, h, b = d.to(tl.float32), d.to(tl.float16), d.to(tl.bfloat16)
    i, q, u, t = r, r.to(tl.int64), r.to(tl.uint8), r > 1
    e4, e5 = f.to(tl.float8e4nv), f.to(tl.float8e5)
    tl.static_assert((d + f).dtype == tl.float64 and (d + h).dtype == tl.float64 and (b + d).dtype == tl.float64)
    tl.static_assert((d + q).dtype == tl.float64 and (t * d).dtype == tl.float64)
    tl.static_assert((f + h).dtype == tl.float32 and (f + b).dtype == tl.float32 and (q + f).dtype == tl.float32)
    tl.static_assert((h + b).dtype == tl.float16 and (b + h).dtype == tl.float16)
    tl.static_assert((b + b).dtype == tl.bfloat16)
    tl.static_assert((b + i).dtype == tl.float32 and (q + b).dtype == tl.float32 and (b + t).dtype == tl.float32)
    tl.static_assert((b * e4).dtype == tl.float32)
    tl.static_assert((h + i).dtype == tl.float16 and (q + h).dtype == tl.float16 and (h + t).dtype == tl.float16)
    tl.static_assert((h + e5).dtype == tl.float16)
    tl.static_assert((e4 + e5).dtype == tl.float16)
    tl.store(o + r, d + f)
    tl.store(o + 4 + r, h + b)
    tl.store(o + 8 + r, h * (q + 1000))
    tl.store(o + 12 + r, b * (i + 1000))
    tl.store(o + 16 + r, e4 + e5)
    tl.store(o + 20 + r, h + t)
""", dict(x=np.array([0.1, 1.7, -3.3, 300], f64), o=np.zeros((6, 4))), dict(o=pairs_want()))
    refused("""
@triton.jit
def k(x):
    r = tl.arange(0, 4)
    e = r.to(tl.float32).to(tl.float8e5)
    a = e + r  # ERROR: have no common type
""", k="x=*f32")


def pairs_want():
    d = np.array([0.1, 1.7, -3.3, 300])
    f, h, b = d.astype(f32), d.astype(f16), bf16(d.astype(f32))
    r = np.arange(4)
    e4 = np.array([0.1015625, 1.75, -3.25, 288], f16)
    e5 = np.array([0.09375, 1.75, -3.5, 320], f16)
    with np.errstate(over="ignore"):
        return np.stack([d + f, h + b.astype(f16), h * (r + 1000).astype(f16), b * (r + 1000).astype(f32), e4 + e5, h + (r > 1).astype(f16)])


def integer_pairs():
    a, b = np.array([-1, -5, 7, 100], i32), np.array([1, 2, 3, 2**32 - 1], u32)
    same("""
@triton.jit
def k(x, y, o, q):
    r = tl.arange(0, 4)
    a, b = tl.load(x + r), tl.load(y + r)
    s8, u8_, s16, s64, u64_ = a.to(tl.int8), a.to(tl.uint8), a.to(tl.int16), a.to(tl.int64), b.to(tl.uint64)
    tl.static_assert((a + b).dtype == tl.uint32 and (b + a).dtype == tl.uint32)
    tl.static_assert((s8 + u8_).dtype == tl.uint8)
    tl.static_assert((s8 + s16).dtype == tl.int16 and (u8_ + s16).dtype == tl.int16)
    tl.static_assert((b + s64).dtype == tl.int64 and (s64 * u64_).dtype == tl.uint64)
    tl.static_assert((a * u8_).dtype == tl.int32 and (a > 0).dtype == tl.int1 and ((a > 0) + a).dtype == tl.int32)
    tl.static_assert(((a > 0) + (a > 1)).dtype == tl.int1)
    tl.store(o + r, a + b)
    tl.store(o + 4 + r, a < b)
    tl.store(o + 8 + r, s64 + b)
    tl.store(o + 12 + r, s64 < b)
    tl.store(o + 16 + r, s8 + u8_)
    tl.store(o + 20 + r, (a > 0) + (a > 50))
    tl.store(q + r, s64 + u64_)
""", dict(x=a, y=b, o=np.zeros((6, 4), i64), q=np.zeros(4, u64)),
         dict(o=np.stack([(a.astype(u32) + b).astype(i64), (a.astype(u32) < b).astype(i64), a.astype(i64) + b, (a.astype(i64) < b).astype(i64),
                          (a.astype(u8) + a.astype(u8)).astype(i64), np.array([0, 0, 1, 0], i64)]), q=a.astype(u64) + b.astype(u64)))
    refused("""
@triton.jit
def k(x):
    a = tl.arange(0, 4)
    b = a.to(tl.uint32)
    c = a // b  # ERROR: '//' between the signed int32 and the unsigned uint32
    d = b % a  # ERROR: '%' between the signed int32 and the unsigned uint32
    e = a / b  # ERROR: '/' between the signed int32 and the unsigned uint32
    f = a.to(tl.int64) // b  # ERROR: '//' between the signed int64 and the unsigned uint32
""", k="x=*f32")


def division_types():
    a, b = np.array([1, 7, -9, 2**53 + 1], i64), np.array([3, 2, 4, 3], i64)
    h = np.array([0.1, 7, -9, 6e4], f16)
    g = np.array([0.3, 2, 4, 1e-3], f16)
    same("""
@triton.jit
def k(x, y, g, h, o, m, w):
    r = tl.arange(0, 4)
    a, b, p, q = tl.load(x + r), tl.load(y + r), tl.load(g + r), tl.load(h + r)
    bp, bq = p.to(tl.bfloat16), q.to(tl.bfloat16)
    tl.static_assert((p / q).dtype == tl.float32 and (p % q).dtype == tl.float32 and (p / 2).dtype == tl.float32)
    tl.static_assert((1.0 / p).dtype == tl.float32 and (p % 0.5).dtype == tl.float32)
    tl.static_assert((bp / bq).dtype == tl.float32 and (bp % bq).dtype == tl.float32 and (bp / p).dtype == tl.float32)
    tl.static_assert((a / b).dtype == tl.float32 and (a / 3).dtype == tl.float32 and (p / b).dtype == tl.float32)
    tl.static_assert((a.to(tl.float64) / b).dtype == tl.float64)
    tl.static_assert(((a > 0) / (b > 0)).dtype == tl.float32)
    tl.store(o + r, p / q)
    tl.store(o + 4 + r, p % q)
    tl.store(o + 8 + r, bp / bq)
    tl.store(o + 12 + r, a / b)
    tl.store(o + 16 + r, 5 / b.to(tl.int8))
    tl.store(o + 20 + r, (b > 2) / (b > 0))
    v = p
    v /= 3
    tl.static_assert(v.dtype == tl.float32)
    tl.store(w + r, a.to(tl.float64) / b)
""", dict(x=a, y=b, g=h, h=g, o=np.zeros((6, 4), f32), m=np.zeros((2, 4), f32), w=np.zeros(4)),
         dict(o=np.stack([h.astype(f32) / g.astype(f32), np.fmod(h.astype(f32), g.astype(f32)), bf16(h.astype(f32)) / bf16(g.astype(f32)),
                          a.astype(f32) / b.astype(f32), f32(5) / b.astype(f32), (b > 2).astype(f32)]), w=a.astype(f64) / b))
    same("""
@triton.jit
def k(x, h, m):
    r = tl.arange(0, 4)
    # by a constant: a product with its reciprocal may differ in the last bit
    tl.store(m + r, tl.load(h + r) / 3)
    tl.store(m + 4 + r, tl.load(x + r) / 7)
""", dict(x=a, h=h, m=np.zeros((2, 4), f32)), dict(m=np.stack([h.astype(f32) / f32(3), a.astype(f32) / f32(7)])), bound=1.3e-7)
    refused("""
@triton.jit
def k(x):
    r = tl.arange(0, 4)
    v = r.to(tl.float32)
    a = v // 2.0  # ERROR: '//' is defined on integers only, not on fp32
    b = r // 2.0  # ERROR: '//' is defined on integers only, not on fp32
    c = v.to(tl.float16) // v.to(tl.float16)  # ERROR: '//' is defined on integers only
""", k="x=*f32")


def floor_and_truncate():
    a, b = np.array([-7, 7, -7, 7, -1, 2**31 - 1], i32), np.array([2, -2, -2, 2, 3, -1], i32)
    a, b = np.pad(a, (0, 2), constant_values=-9), np.pad(b, (0, 2), constant_values=4)
    q, m = np.trunc(a / b).astype(i64), np.fmod(a, b)
    f = np.array([-7.5, 7.5, -7.5, 0.0, -0.0, np.inf, 5, -3], f32)
    g = np.array([2, -2, -2, 3, 3, 2, np.inf, 0.7], f32)
    with np.errstate(all="ignore"):
        fm = np.fmod(f, g)
    same("""
@triton.jit
def k(x, y, o, s, f, g, w, N: tl.constexpr, M: tl.constexpr, n, m):
    r = tl.arange(0, 8)
    a, b = tl.load(x + r), tl.load(y + r)
    tl.store(o + r, a // b)
    tl.store(o + 8 + r, a % b)
    tl.store(w + r, tl.load(f + r) % tl.load(g + r))
    # the same text: on constants the floor, on run-time values the truncation
    tl.static_assert(N // M == -4 and N % M == 1)
    tl.static_assert(-N // -M == -4 and -N % -M == -1)
    tl.store(s, N // M)
    tl.store(s + 1, N % M)
    tl.store(s + 2, n // m)
    tl.store(s + 3, n % m)
    tl.store(s + 4, n // M)
    tl.store(s + 5, n % M)
    v = N
    tl.store(s + 6, v // M)
    tl.store(s + 7, v % M)
    tl.store(s + 8, N // m)
    tl.store(s + 9, -7 // 2)
    tl.store(s + 10, -7 % 3)
    tl.store(w + 8, -7.5 % 2.0)
    tl.store(w + 9, -7.5 // 2.0)
    for i in tl.static_range(1, 2):
        tl.store(s + 11, -7 * i // 2)
    for i in range(1, 2):
        tl.store(s + 12, -7 * i // 2)
""", dict(x=a, y=b, o=np.zeros((2, 8), i32), s=np.zeros(13, i32), f=f, g=g, w=np.zeros(10, f32), N=-7, M=2, n=-7, m=2),
         dict(o=np.stack([q, m]).astype(i32), s=np.array([-4, 1, -3, -1, -3, -1, -3, -1, -3, -4, 2, -4, -3], i32),
              w=np.concatenate([fm, [0.5, -4]]).astype(f32)))


def shifts():
    x = np.array([-8, 7, -2**31, 2**31 - 1], i32)
    same("""
@triton.jit
def k(x, o, q, c, K: tl.constexpr):
    r = tl.arange(0, 4)
    a = tl.load(x + r)
    u = a.to(tl.uint32)
    tl.store(o + r, a >> 1)
    tl.store(o + 4 + r, (u >> 1).to(tl.int32))
    tl.store(o + 8 + r, a >> r)
    tl.store(o + 12 + r, a << 3)
    tl.store(o + 16 + r, (u << 3).to(tl.int32))
    tl.store(o + 20 + r, a.to(tl.int8) >> 2)
    tl.store(o + 24 + r, a.to(tl.uint8) >> 2)
    tl.store(o + 28 + r, 1 << (r + c))
    tl.store(o + 32 + r, -64 >> r)
    tl.static_assert((u >> 1).dtype == tl.uint32 and (a >> 1).dtype == tl.int32)
    tl.static_assert((a.to(tl.int8) >> a).dtype == tl.int32 and (a << u).dtype == tl.uint32)
    tl.static_assert(-7 >> 1 == -4 and 1 << 40 == 1099511627776)
    tl.store(q + r, a.to(tl.int64) << 33)
    tl.store(q + 4 + r, u.to(tl.uint64) >> 1)
    # a shift by the width or more is undefined, but neither an error nor a trap
    tl.store(c_sink(o) + r, a >> (r + 40))

@triton.jit
def c_sink(o):
    return o + 36
""", dict(x=x, o=np.zeros((10, 4), i32), q=np.zeros((2, 4), i64), c=2, K=3),
         dict(q=np.stack([x.astype(i64) << 33, x.astype(u32).astype(i64) >> 1])))
    want = np.stack([x >> 1, (x.astype(u32) >> u32(1)).astype(i32), x >> np.arange(4), x << 3, x << 3, x.astype(i8) >> 2, x.astype(u8) >> 2,
                    1 << (np.arange(4) + 2), -64 >> np.arange(4)]).astype(i32)
    same("""
@triton.jit
def k(x, o, c):
    r = tl.arange(0, 4)
    a = tl.load(x + r)
    u = a.to(tl.uint32)
    tl.store(o + r, a >> 1)
    tl.store(o + 4 + r, (u >> 1).to(tl.int32))
    tl.store(o + 8 + r, a >> r)
    tl.store(o + 12 + r, a << 3)
    tl.store(o + 16 + r, (u << 3).to(tl.int32))
    tl.store(o + 20 + r, a.to(tl.int8) >> 2)
    tl.store(o + 24 + r, a.to(tl.uint8) >> 2)
    tl.store(o + 28 + r, 1 << (r + c))
    tl.store(o + 32 + r, -64 >> r)
""", dict(x=x, o=np.zeros((9, 4), i32), c=2), dict(o=want))


def bits_and_signs():
    x = np.array([0.0, -0.0, 1.5, np.nan, np.inf, -2, 1e-45, -1e-45], f32)
    n = np.array([0, 1, -1, 2**31 - 1, -2**31, 5, 6, 7], i32)
    same("""
@triton.jit
def k(x, n, s, h, o, w, q):
    r = tl.arange(0, 8)
    v, i = tl.load(x + r), tl.load(n + r)
    tl.store(s + r, (-v).to(tl.int32, bitcast=True))
    tl.store(h + r, (-v.to(tl.float16)).to(tl.int16, bitcast=True))
    tl.store(o + r, ~i)
    tl.store(o + 8 + r, -i)
    b = i > 0
    tl.store(o + 16 + r, ~b)
    tl.static_assert((~b).dtype == tl.int1 and (-b).dtype == tl.int1 and (-i.to(tl.uint8)).dtype == tl.uint8)
    tl.store(o + 24 + r, -b)
    tl.store(o + 32 + r, -i.to(tl.uint8))
    tl.static_assert((b & i).dtype == tl.int32 and (i.to(tl.uint8) & b).dtype == tl.uint8 and (b & 3).dtype == tl.int32)
    tl.store(o + 40 + r, b & i)
    tl.store(o + 48 + r, b | 6)
    tl.store(o + 56 + r, i.to(tl.int8) ^ b)
    tl.static_assert((b & (i > 5)).dtype == tl.int1)
    tl.store(o + 64 + r, b & (i > 5))
    tl.store(q + r, ~i.to(tl.uint8))
    tl.store(w, 1.0 / (-tl.load(x)))
""", dict(x=x, n=n, s=np.zeros(8, i32), h=np.zeros(8, i16), o=np.zeros((9, 8), i32), w=np.zeros(1, f32), q=np.zeros(8, u8)),
         dict(s=(-x).view(i32), h=(-x.astype(f16)).view(i16),
              o=np.stack([~n, -n, n <= 0, n > 0, -n.astype(u8), (n > 0) & n, (n > 0) | 6, n.astype(i8) ^ (n > 0).astype(i8),
                          (n > 0) & (n > 5)]).astype(i32), w=np.array([-np.inf], f32), q=~n.astype(u8)))
    refused("""
@triton.jit
def k(x):
    r = tl.arange(0, 4)
    v = r.to(tl.float32)
    a = ~v  # ERROR: '~' needs integers, not fp32
    b = v & r  # ERROR: '&' needs integers, not fp32
    c = ~x  # ERROR: unary '~' is not defined on
    d = -x  # ERROR: unary '-' is not defined on
    e = v << 1  # ERROR: '<<' needs integers, not fp32
""", k="x=*f32")


def logic():
    x = np.array([3, -3, 0, 8], i32)
    same("""
@triton.jit
def k(x, o, n, P, FLAG: tl.constexpr, OFF: tl.constexpr):
    r = tl.arange(0, 4)
    v = tl.load(x + r)
    tl.store(o + r, (v > 0) and (v < 5))
    tl.store(o + 4 + r, (v > 0) or (v < 0))
    tl.store(o + 8 + r, not (v > 0))
    tl.static_assert(((v > 0) and (v < 5)).dtype == tl.int1)
    # both sides run
    a = tl.atomic_add(o + 12, 1) > 100 and tl.atomic_add(o + 13, 1) > 100
    b = tl.atomic_add(o + 12, 1) >= 0 or tl.atomic_add(o + 13, 1) > 100
    # constants decide while compiling, whichever side they stand on
    if P is not None and tl.load(P) > 0:
        not_defined()
    if OFF and not_defined():
        not_defined()
    if FLAG or not_defined():
        tl.store(o + 14, 5)
    if n > 0 and OFF:
        not_defined()
    if n > 0 or FLAG:
        tl.store(o + 15, 6)
    else:
        not_defined()
    c = n and FLAG
    tl.static_assert(c.dtype == tl.int32)
    tl.store(o + 16, c)
    d = n > 0 and FLAG and n < 100
    tl.store(o + 17, d)
    tl.static_assert((OFF or 7) == 7 and (FLAG and 7) == 7 and not OFF)
    tl.static_assert(hasattr(v, "dtype") and isinstance(v, tl.tensor) and not isinstance(FLAG, tl.tensor))
    if hasattr(v, "nonsense") and v.nonsense:
        not_defined()
""", dict(x=x, o=np.zeros(18, i32), n=7, P="None", FLAG=True, OFF=False),
         dict(o=np.array([1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 2, 2, 5, 6, 7, 1], i32)))
    refused("""
@triton.jit
def k(x, n):
    v = tl.arange(0, 4)
    a = v and (v > 0)  # ERROR: `and` and `or` need conditions, not int32
    b = (v > 0) or v.to(tl.float32)  # ERROR: `and` and `or` need conditions, not fp32
    c = not v  # ERROR: `not` needs a condition, not int32
    d = not n  # ERROR: `not` needs a condition, not int32
    e = n and (n > 0)  # ERROR: `and` and `or` need conditions, not int32
""", k="x=*f32, n=i32")


def identity():
    same("""
NOTHING = tl.constexpr(None)

@triton.jit
def k(x, o, n, P, DT: tl.constexpr):
    v = tl.load(x)
    tl.static_assert(P is None and v is not None and not (v is None))
    tl.static_assert(DT is tl.float16 and DT is not tl.bfloat16)
    tl.static_assert(x.dtype.element_ty is tl.int32)
    tl.static_assert(NOTHING is None)
    # a run-time value is identical to no constant, even where it is equal to it
    tl.static_assert(v is not 4 and not (n is 4))
    tl.static_assert(1 < 2 < 3 and not (1 < 3 < 2))
    tl.store(o, (0 < v) & (v < 5))
""", dict(x=np.array([4], i32), o=np.zeros(1, i32), n=4, P="None", DT="tl.float16"), dict(o=np.ones(1, i32)))
    refused("""
@triton.jit
def k(x, n):
    a = 0 < n < 5  # ERROR: a chain of comparisons on run-time values
    b = tl.arange(0, 4) < n < 5  # ERROR: a chain of comparisons on run-time values
""", k="x=*f32, n=i32")


def casts():
    v = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, 1 + 3 * 2**-11, 65519, 65520, 1e-8, 2**-25, -0.0, 3e38, np.inf, np.nan, 449, 1e4, 0.3,
                  -1e5], f32)
    n = np.array([0, 1, -1, 2, 255, 256, 2**31 - 1, -2**31], i32)
    t = v.view(u32)
    cut = (t & 0xFFFF0000).view(f32)
    half_cut = rtz_half(v)
    with np.errstate(all="ignore"):
        h = v.astype(f16)
        via = bf16(h.astype(f32))
    same("""
@triton.jit
def k(x, n, h, b, c, e, d, q, z, p):
    r = tl.arange(0, 16)
    v = tl.load(x + r)
    tl.store(h + r, v)
    tl.store(h + 16 + r, v.to(tl.bfloat16).to(tl.float16))
    tl.store(h + 32 + r, v.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(h + 48 + r, v.to(tl.float16, fp_downcast_rounding="rtne"))
    tl.store(b + r, v.to(tl.bfloat16))
    tl.store(b + 16 + r, v.to(tl.float16).to(tl.bfloat16))
    tl.store(b + 32 + r, tl.cast(v, tl.bfloat16, fp_downcast_rounding="rtz"))
    tl.store(b + 48 + r, v.to(tl.float8e4nv))
    tl.store(b + 64 + r, v.to(tl.float8e5))
    tl.store(c + r, v.to(tl.int1))
    s = tl.arange(0, 8)
    i = tl.load(n + s)
    tl.store(c + 16 + s, i.to(tl.int1))
    tl.store(c + 24 + s, i.to(tl.uint8).to(tl.int1))
    g = i > 0
    tl.store(d + s, g.to(tl.int32))
    tl.store(d + 8 + s, g.to(tl.int8))
    tl.store(d + 16 + s, g.to(tl.float32))
    tl.store(d + 24 + s, g)
    tl.store(d + 32 + s, i.to(tl.int8))
    tl.store(d + 40 + s, i.to(tl.uint16))
    tl.store(q + r, v.to(tl.int32, bitcast=True))
    tl.store(q + 16 + s, i.to(tl.float32, bitcast=True).to(tl.uint32, bitcast=True))
    tl.store(z + s, i.to(tl.uint32).to(tl.int64))
    tl.store(z + 8 + s, i.to(tl.int8).to(tl.uint32))
    tl.static_assert(i.to(tl.int1).dtype == tl.int1 and v.to(tl.int64, bitcast=False).dtype == tl.int64)
""", dict(x=v, n=n, h=np.zeros((4, 16), f16), b=np.zeros((5, 16), f32), c=np.zeros(32, np.bool_), e=np.zeros(1, f32), d=np.zeros((6, 8), i32),
          q=np.zeros(24, i32), z=np.zeros((2, 8), i64), p=np.zeros(1, f32)),
         dict(h=np.stack([h, bf16(v).astype(f16), half_cut, h]), b=np.stack([bf16(v), via, np.where(np.isnan(v), v, cut), e4m3(v), e5m2(v)]),
              c=np.concatenate([v != 0, n != 0, n.astype(u8) != 0]),
              d=np.stack([n > 0, n > 0, n > 0, n > 0, n.astype(i8), n.astype(u16)]).astype(i32),
              q=np.concatenate([v.view(i32), n]), z=np.stack([n.astype(u32).astype(i64), n.astype(i8).astype(u32).astype(i64)])))
    refused("""
@triton.jit
def k(x):
    r = tl.arange(0, 4)
    v = r.to(tl.float32)
    a = v.to(tl.int16, bitcast=True)  # ERROR: a bitcast from fp32 to int16 changes the width
    b = (r > 0).to(tl.int8, bitcast=True)  # ERROR: a bitcast from int1 to int8 changes the width
    c = v.to(tl.float64, fp_downcast_rounding="rtz")  # ERROR: fp_downcast_rounding is for casts to a narrower float type
    d = v.to(tl.int8, fp_downcast_rounding="rtz")  # ERROR: fp_downcast_rounding is for casts to a narrower float type
    e = r.to(tl.float16, fp_downcast_rounding="rtz")  # ERROR: fp_downcast_rounding is for casts to a narrower float type
    f = v.to(tl.float16, fp_downcast_rounding="up")  # ERROR: fp_downcast_rounding is "rtne" or "rtz", not "up"
""", k="x=*f32")


def rtz_half(v):
    """v cut to float16: the value of the same sign next to 0 where rounding went away from 0."""
    with np.errstate(all="ignore"):
        h = v.astype(f16)
        over = np.abs(h.astype(f32)) > np.abs(v)
    return np.where(over, np.nextafter(h, f16(0)), h)


def e4m3(v):
    """v as float8e4m3 (nearest even, saturating), as float32."""
    a = np.minimum(np.abs(v.astype(f64)), 448)
    e = np.maximum(np.floor(np.log2(np.where(a > 0, a, 1))), -6)
    r = np.rint(a / 2.0 ** (e - 3)) * 2.0 ** (e - 3)
    return np.where(np.isnan(v), np.nan, np.copysign(np.minimum(r, 448), v)).astype(f32)


def e5m2(v):
    """v as float8e5m2 (nearest even, saturating), as float32."""
    a = np.minimum(np.abs(v.astype(f64)), 57344)
    e = np.maximum(np.floor(np.log2(np.where(a > 0, a, 1))), -14)
    r = np.rint(a / 2.0 ** (e - 2)) * 2.0 ** (e - 2)
    return np.where(np.isnan(v), np.nan, np.copysign(np.minimum(r, 57344), v)).astype(f32)


def functions_take_floats():
    x = np.array([0.25, 1.5, 2.75, 9], f32)
    d = x.astype(f64)
    with np.errstate(all="ignore"):
        want = np.stack([np.floor(x), np.ceil(x), np.sqrt(x), x / f32(3), f32(1) / x])
    same("""
@triton.jit
def k(x, o, w):
    r = tl.arange(0, 4)
    v = tl.load(x + r)
    h = v.to(tl.float16)
    tl.store(o + r, tl.floor(v))
    tl.store(o + 4 + r, tl.ceil(h.to(tl.float32)))
    tl.store(o + 8 + r, tl.sqrt_rn(v))
    tl.store(o + 12 + r, tl.div_rn(v, 3.0))
    tl.store(o + 16 + r, tl.fdiv(1.0, v, ieee_rounding=True))
    d = v.to(tl.float64)
    tl.static_assert(tl.exp(d).dtype == tl.float64 and tl.exp(v).dtype == tl.float32)
    tl.store(w + r, tl.exp(d))
    tl.store(w + 4 + r, tl.log(d))
    tl.store(w + 8 + r, tl.sin(d))
    tl.store(w + 12 + r, tl.sqrt(d))
    tl.store(w + 16 + r, tl.rsqrt(d))
    tl.static_assert(tl.abs(h).dtype == tl.float16 and tl.abs(r.to(tl.int8)).dtype == tl.int8)
""", dict(x=x, o=np.zeros((5, 4), f32), w=np.zeros((5, 4))), dict(o=want))
    same("""
@triton.jit
def k(x, w):
    r = tl.arange(0, 4)
    d = tl.load(x + r).to(tl.float64)
    tl.store(w + r, tl.exp(d))
    tl.store(w + 4 + r, tl.log(d))
    tl.store(w + 8 + r, tl.sin(d))
    tl.store(w + 12 + r, tl.sqrt(d))
    tl.store(w + 16 + r, tl.rsqrt(d))
    tl.store(w + 20 + r, tl.cos(d))
    tl.store(w + 24 + r, tl.exp2(d))
    tl.store(w + 28 + r, tl.log2(d))
""", dict(x=x, w=np.zeros((8, 4))),
         dict(w=np.stack([np.exp(d), np.log(d), np.sin(d), np.sqrt(d), 1 / np.sqrt(d), np.cos(d), np.exp2(d), np.log2(d)])), bound=1e-14)
    names = ["exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil", "sigmoid", "sqrt_rn"]
    refused("@triton.jit\ndef k(x):\n    r = tl.arange(0, 4)\n    h, b = r.to(tl.float16), r.to(tl.bfloat16)\n" + "".join(
        f"    a = tl.{n}(h)  # ERROR: {n} works on fp32 and fp64, not on fp16\n" for n in names), k="x=*f32")
    refused("@triton.jit\ndef k(x):\n    r = tl.arange(0, 4)\n    h, b = r.to(tl.float16), r.to(tl.bfloat16)\n" + "".join(
        f"    a = tl.{n}({'r' if i % 2 else 'b'})  # ERROR: {n} works on fp32 and fp64, not on {'int32' if i % 2 else 'bf16'}\n"
        for i, n in enumerate(names)), k="x=*f32")


def comparisons_promote():
    h = np.array([0.1, 0.5, -2, 3], f16)
    n = np.array([-1, 0, 100, 127], i8)
    same("""
@triton.jit
def k(x, n, o):
    r = tl.arange(0, 4)
    h, i = tl.load(x + r), tl.load(n + r)
    # a number meets a tile as a value of its own type here, so nothing is rounded or out of range
    tl.store(o + r, h == 0.1)
    tl.store(o + 4 + r, h.to(tl.bfloat16) < 0.1001)
    tl.store(o + 8 + r, i < 1000)
    tl.store(o + 12 + r, i.to(tl.int32) < 4294967296)
    tl.store(o + 16 + r, i.to(tl.uint8) == -1)
    tl.store(o + 20 + r, i.to(tl.uint32) == -1)
    tl.store(o + 24 + r, 0.5 <= h)
    m = tl.maximum(h, 0.0)
    tl.static_assert(m.dtype == tl.float32 and tl.minimum(i, 0).dtype == tl.int32)
    b = h.to(tl.bfloat16)
    tl.static_assert(tl.maximum(b, b).dtype == tl.float32 and tl.maximum(h, h).dtype == tl.float16)
    tl.static_assert(tl.clamp(b, -1.0, 1.0).dtype == tl.float32 and tl.where(h > 0, h, 0.0).dtype == tl.float16)
    tl.store(o + 28 + r, tl.maximum(h, 0.1) == h)
""", dict(x=h, n=n, o=np.zeros((8, 4), i32)),
         dict(o=np.stack([np.zeros(4), bf16(h.astype(f32)) < f32(0.1001), np.ones(4), np.ones(4), np.zeros(4), n == -1, h >= 0.5,
                          np.maximum(h.astype(f32), f32(0.1)) == h.astype(f32)]).astype(i32)))


case("sem 01: literals are i32, u32, i64, u64 by value; floats f32 unless outside its normal range; bools i1", literals)
case("sem 02: a Python scalar of no higher kind takes the tile's type; run-time scalars promote", python_scalars)
case("sem 02: comparisons, maximum and minimum take a number as a value of its own type", comparisons_promote)
case("sem 03: f64 > f32 > f16 > bf16; f16 with bf16 is f16; bf16 with other kinds is f32; two fp8 are f16", tensor_pairs)
case("sem 04: integers follow C; division with mixed signs is an error", integer_pairs)
case("sem 05: / and % on narrow floats compute in f32, / on integers gives f32, // on floats is an error", division_types)
case("sem 06: // and % on tensors truncate, on constexprs floor", floor_and_truncate)
case("sem 07: >> is arithmetic for signed, logical for unsigned", shifts)
case("sem 08: ~ needs integers, minus keeps -0, & on i1 and integers promotes", bits_and_signs)
case("sem 09: and, or, not are bitwise on i1; only constants decide early", logic)
case("sem 10: is compares compile-time values only; comparisons do not chain", identity)
case("sem 11: casts round to nearest even, saturate fp8, test for 0, zero-extend bools; bitcasts keep the width", casts)
case("sem 12: exp, log, sin ... take f32 and f64 only; sqrt_rn and div_rn are exact", functions_take_floats)
finish()
