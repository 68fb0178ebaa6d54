"""Operators, casts, memory, reductions, shapes, products and random numbers of the language against NumPy."""
import sys

import numpy as np

from _ditron import bf16, case, finish
from _kernels import run, same

rng = np.random.default_rng(3)
i8, i16, i32, i64, u8, u32, u64, f16, f32, f64 = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64, np.float16,
                                                  np.float32, np.float64)


def integers():
    a = np.array([7, -7, 7, -7, 0, 2**31 - 1, -2**31, 100], i32)
    b = np.array([2, 2, -2, -2, 5, 2, 3, 7], i32)
    with np.errstate(over="ignore"):
        want = np.stack([a + b, a - b, a * b, np.trunc(a.astype(f64) / b).astype(i32), np.fmod(a, b), a & b, a | b, a ^ b,
                         a << (b & 7), a >> (b & 7), ~a, -a, np.maximum(a, b), np.minimum(a, b), np.abs(a.astype(i64)).astype(i32)])
    same("""
@triton.jit
def k(x, y, o):
    r = tl.arange(0, 8)
    a, b = tl.load(x + r), tl.load(y + r)
    tl.store(o + r, a + b)
    tl.store(o + 8 + r, a - b)
    tl.store(o + 16 + r, a * b)
    tl.store(o + 24 + r, a // b)
    tl.store(o + 32 + r, a % b)
    tl.store(o + 40 + r, a & b)
    tl.store(o + 48 + r, a | b)
    tl.store(o + 56 + r, a ^ b)
    tl.store(o + 64 + r, a << (b & 7))
    tl.store(o + 72 + r, a >> (b & 7))
    tl.store(o + 80 + r, ~a)
    tl.store(o + 88 + r, -a)
    tl.store(o + 96 + r, tl.maximum(a, b))
    tl.store(o + 104 + r, tl.minimum(a, b))
    tl.store(o + 112 + r, tl.abs(a))
""", dict(x=a, y=b, o=np.zeros((15, 8), i32)), dict(o=want))


def unsigned():
    a, b = np.array([7, 2**32 - 1, 2**31, 5], u32), np.array([2, 3, 7, 2**32 - 2], u32)
    want = np.stack([a // b, a % b, a >> 1, (a < b).astype(u32), np.maximum(a, b), (a.astype(u64) * b >> 32).astype(u32)])
    same("""
@triton.jit
def k(x, y, o, w):
    r = tl.arange(0, 4)
    a, b = tl.load(x + r), tl.load(y + r)
    tl.store(o + r, a // b)
    tl.store(o + 4 + r, a % b)
    tl.store(o + 8 + r, a >> 1)
    tl.store(o + 12 + r, a < b)
    tl.store(o + 16 + r, tl.maximum(a, b))
    tl.store(o + 20 + r, tl.umulhi(a, b))
    tl.store(w + r, a.to(tl.int64) + b)
""", dict(x=a, y=b, o=np.zeros((6, 4), u32), w=np.zeros(4, i64)), dict(o=want, w=a.astype(i64) + b))


def floats():
    a = np.array([1.5, -2.25, 0.0, -0.0, np.inf, np.nan, 3.0, -7.5], f32)
    b = np.array([0.5, 2.0, -1.0, 1.0, 1.0, 2.0, np.nan, 2.0], f32)
    with np.errstate(all="ignore"):
        fmax = np.fmax(a, b)
        want = np.stack([a + b, a * b, a / b, np.fmod(a, b), -a, np.abs(a), fmax, np.fmin(a, b), np.maximum(a, b), np.floor(a), np.ceil(a),
                         (a != a).astype(f32), (a < b).astype(f32), (a == b).astype(f32), np.where(a > 0, a, 0), np.clip(a, -1, 2)])
    same("""
@triton.jit
def k(x, y, o):
    r = tl.arange(0, 8)
    a, b = tl.load(x + r), tl.load(y + r)
    tl.store(o + r, a + b)
    tl.store(o + 8 + r, a * b)
    tl.store(o + 16 + r, a / b)
    tl.store(o + 24 + r, a % b)
    tl.store(o + 32 + r, -a)
    tl.store(o + 40 + r, tl.abs(a))
    tl.store(o + 48 + r, tl.maximum(a, b))
    tl.store(o + 56 + r, tl.minimum(a, b))
    tl.store(o + 64 + r, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(o + 72 + r, tl.floor(a))
    tl.store(o + 80 + r, tl.ceil(a))
    tl.store(o + 88 + r, a != a)
    tl.store(o + 96 + r, a < b)
    tl.store(o + 104 + r, a == b)
    tl.store(o + 112 + r, tl.where(a > 0, a, 0))
    tl.store(o + 120 + r, tl.where(a != a, a, tl.clamp(a, -1.0, 2.0)))
""", dict(x=a, y=b, o=np.zeros((16, 8), f32)), dict(o=want))


def functions():
    x = rng.uniform(0.05, 3, 64).astype(f32)
    d = x.astype(f64)
    from math import erf
    want = np.stack([np.exp(d), np.exp2(d), np.log(d), np.log2(d), np.sin(d), np.cos(d), np.sqrt(d), 1 / np.sqrt(d), np.vectorize(erf)(d),
                     1 / (1 + np.exp(-d)), np.tanh(d), d**2.5, np.log1p(d), np.expm1(d), np.tan(d), np.sinh(d), np.cosh(d),
                     d * d + d, np.copysign(d, -1.0), np.hypot(d, 2), np.log10(d)])
    same("""
@triton.jit
def k(x, o):
    r = tl.arange(0, 64)
    a = tl.load(x + r)
    tl.store(o + r, tl.exp(a))
    tl.store(o + 64 + r, tl.math.exp2(a))
    tl.store(o + 128 + r, tl.log(a))
    tl.store(o + 192 + r, a.log2())
    tl.store(o + 256 + r, tl.sin(a))
    tl.store(o + 320 + r, tl.cos(a))
    tl.store(o + 384 + r, tl.sqrt(a))
    tl.store(o + 448 + r, tl.rsqrt(a))
    tl.store(o + 512 + r, tl.erf(a))
    tl.store(o + 576 + r, tl.sigmoid(a))
    tl.store(o + 640 + r, libdevice.tanh(a))
    tl.store(o + 704 + r, libdevice.pow(a, 2.5))
    tl.store(o + 768 + r, libdevice.log1p(a))
    tl.store(o + 832 + r, libdevice.expm1(a))
    tl.store(o + 896 + r, libdevice.tan(a))
    tl.store(o + 960 + r, libdevice.sinh(a))
    tl.store(o + 1024 + r, libdevice.cosh(a))
    tl.store(o + 1088 + r, tl.fma(a, a, a))
    tl.store(o + 1152 + r, libdevice.copysign(a, -1.0))
    tl.store(o + 1216 + r, libdevice.hypot(a, 2.0))
    tl.store(o + 1280 + r, libdevice.log10(a))
""", dict(x=x, o=np.zeros((21, 64), f32)), dict(o=want), bound=3e-7)


def bits():
    x = np.array([0, 1, 2, 12, 2**31, 2**32 - 1, 0x00F0F000, 3], u32)
    pop = np.array([bin(v).count("1") for v in x], i32)
    clz = np.array([32 - int(v).bit_length() for v in x], i32)
    ffs = np.array([(int(v) & -int(v)).bit_length() for v in x], i32)
    y = np.array([0.5, 1.5, -2.5, 0.49999997, -0.5, 3.2, -3.7, 8388609.0], f32)
    rnd = np.array([1, 2, -3, 0, -1, 3, -4, 8388609.0], f32)
    same("""
@triton.jit
def k(x, y, o, w):
    r = tl.arange(0, 8)
    a = tl.load(x + r)
    tl.store(o + r, libdevice.popc(a))
    tl.store(o + 8 + r, libdevice.clz(a))
    tl.store(o + 16 + r, libdevice.ffs(a))
    v = tl.load(y + r)
    tl.store(w + r, libdevice.round(v))
    tl.store(w + 8 + r, libdevice.rint(v))
    tl.store(w + 16 + r, libdevice.trunc(v))
    tl.store(w + 24 + r, libdevice.isnan(v / (v - 0.5)) | libdevice.isinf(v / (v - 0.5)))
""", dict(x=x, y=y, o=np.zeros((3, 8), i32), w=np.zeros((4, 8), f32)),
         dict(o=np.stack([pop, clz, ffs]), w=np.stack([rnd, np.rint(y), np.trunc(y), (y == 0.5).astype(f32)])))


def casts():
    v = np.array([0, 1, -1, 127.5, -128.9, 3.99, -3.99, 65504, 1e-8, 300, 0.1, -0.0, 70000, 2.5, 3.5, 1e5], f32)
    iv = np.array([0, 1, -1, 127, 128, -128, 255, 256, 65535, 70000, -70000, 2**31 - 1, -2**31, 5, 6, 7], i32)
    small = np.clip(v, -100, 100)
    with np.errstate(over="ignore"):
        same("""
@triton.jit
def k(x, s, y, h, b, i, j, u, w, l, c, d):
    r = tl.arange(0, 16)
    a, q, n = tl.load(x + r), tl.load(s + r), tl.load(y + r)
    tl.store(h + r, a)
    tl.store(b + r, a.to(tl.bfloat16).to(tl.float32))
    tl.store(i + r, q.to(tl.int8))
    tl.store(j + r, n.to(tl.int16))
    tl.store(u + r, n.to(tl.uint8))
    tl.store(w + r, n.to(tl.float32))
    tl.store(l + r, n)
    tl.store(c + r, n.to(tl.int1))
    tl.store(c + 16 + r, a.to(tl.int1))
    tl.store(d + r, n.to(tl.uint32).to(tl.float64))
""", dict(x=v, s=small, y=iv, h=np.zeros(16, f16), b=np.zeros(16, f32), i=np.zeros(16, i8), j=np.zeros(16, i16), u=np.zeros(16, u8),
          w=np.zeros(16, f32), l=np.zeros(16, i64), c=np.zeros(32, np.bool_), d=np.zeros(16, f64)),
             dict(h=v.astype(f16), b=bf16(v), i=np.trunc(small).astype(i8), j=iv.astype(i16), u=iv.astype(u8), w=iv.astype(f32),
                  l=iv.astype(i64), c=np.concatenate([iv != 0, v != 0]), d=iv.astype(u32).astype(f64)))


def rounding():
    v = rng.standard_normal(64).astype(f32)
    cut = (v.view(u32) & 0xFFFF0000).view(f32)
    same("""
@triton.jit
def k(x, o, b):
    r = tl.arange(0, 64)
    a = tl.load(x + r)
    tl.store(o + r, a.to(tl.bfloat16, fp_downcast_rounding="rtz").to(tl.float32))
    tl.store(o + 64 + r, tl.cast(a, tl.bfloat16).to(tl.float32))
    tl.store(b + r, a.to(tl.int32, bitcast=True))
    tl.store(b + 64 + r, tl.abs(a).to(tl.float16).to(tl.int16, bitcast=True).to(tl.int32))
""", dict(x=v, o=np.zeros(128, f32), b=np.zeros(128, i32)),
         dict(o=np.concatenate([cut, bf16(v)]), b=np.concatenate([v.view(i32), np.abs(v).astype(f16).view(i16).astype(i32)])))


def fp8():
    v = np.array([0, 1, -1.0625, 448, 500, 1e-3, 57344, 7], f32)
    e4 = np.array([0, 1, -1, 448, 448, round(1e-3 / 2**-9) * 2**-9, 448, 7], f32)
    same("""
@triton.jit
def k(x, o):
    r = tl.arange(0, 8)
    a = tl.load(x + r)
    tl.store(o + r, a.to(tl.float8e4nv).to(tl.float32))
    tl.store(o + 8 + r, a.to(tl.float8e5).to(tl.float16))
""", dict(x=v, o=np.zeros((2, 8), f32)),
         dict(o=np.stack([e4, np.array([0, 1, -1, 448, 512, np.float32(round(1e-3 / 2**-12) * 2**-12), 57344, 7], f32)])))


def memory():
    x = np.arange(10, dtype=f32)
    flags = np.array([0, 1, 1, 0, 1, 0, 0, 1], np.bool_)
    same("""
@triton.jit
def k(x, f, o, g, c, n):
    r = tl.arange(0, 16)
    m = r < n
    tl.store(o + r, tl.load(x + r, mask=m), mask=r < 12)
    tl.store(o + 16 + r, tl.load(x + r, mask=m, other=-1))
    q = tl.arange(0, 8)
    b = tl.load(f + q)
    tl.store(g + q, ~b)
    tl.store(c + q, tl.where(b, q, 100))
    s = tl.load(x + 3)
    tl.store(o + 32, s + tl.load(x + 4, mask=n > 100, other=0.5))
    tl.store(o + 33, 7, mask=n < 0)
    tl.store(o + 34 + q[None, :] * 1 + q[:, None] * 8, q[:, None].to(tl.float32), mask=q[None, :] <= q[:, None])
""", dict(x=x, f=flags, o=np.full(98, 9, f32), g=np.zeros(8, np.bool_), c=np.zeros(8, i32), n=10),
         dict(o=memory_want(x), g=~flags, c=np.where(flags, np.arange(8), 100).astype(i32)))


def memory_want(x):
    o = np.full(98, 9, f32)
    o[:12] = np.concatenate([x, [0, 0]])
    o[16:32] = np.concatenate([x, [-1] * 6])
    o[32] = 3.5
    sq = np.full((8, 8), 9, f32)
    for i in range(8):
        sq[i, :i + 1] = i
    o[34:] = sq.ravel()
    return o


def pointers():
    x = np.arange(64, dtype=f32)
    same("""
@triton.jit
def k(x, o):
    addr = x.to(tl.uint64) + 8
    q = addr.to(tl.pointer_type(tl.float32), bitcast=True)
    tl.store(o, tl.load(q))
    h = x.to(tl.pointer_type(tl.int32))
    r = tl.arange(0, 8)
    tl.store(o + 1 + r, tl.load(h + r).to(tl.float32, bitcast=True))
    y = x + 16
    y += 4
    tl.store(o + 9, tl.load(y - 1) + (y - x))
    z = y if tl.load(x + 1) > 0 else x
    tl.store(o + 10, tl.load(z))
""", dict(x=x, o=np.zeros(11, f32)), dict(o=np.concatenate([[2], x[:8], [19 + 20, 20]]).astype(f32)))


def atomics():
    def go(dtype):
        same("""
@triton.jit
def k(c, m, o):
    pid = tl.program_id(0)
    r = tl.arange(0, 16)
    tl.atomic_add(c + r % 4, 1, mask=r < 12)
    old = tl.atomic_add(c + 4, 2, sem="relaxed", scope="gpu")
    tl.atomic_max(c + 5, pid)
    tl.atomic_min(c + 6, pid - 5)
    if tl.atomic_cas(m, 0, 1) == 0:
        tl.store(o, 42)
    tl.atomic_or(m + 1, 1 << pid)
    tl.atomic_xchg(m + 2, 7)
    tl.atomic_xor(m + 3, 5)
    tl.atomic_and(m + 4, ~(1 << pid))
""", dict(c=np.zeros(7, dtype), m=np.array([0, 0, 1, 0, 255], i32), o=np.zeros(1, i32)),
             dict(c=np.array([12, 12, 12, 12, 8, 3, -5], dtype), m=np.array([1, 15, 7, 0, 240], i32), o=np.array([42], i32)), grid=(4,))
    go(i32)
    go(f32)


def blocks():
    x = rng.standard_normal((13, 21)).astype(f32)
    pad = np.pad(x, ((0, 3), (0, 11)))
    nan = pad.copy()
    nan[13:, :] = np.nan
    nan[:, 21:] = np.nan
    same("""
@triton.jit
def k(x, a, b, c, d, M, N):
    p = tl.make_block_ptr(x, shape=(M, N), strides=(N, 1), offsets=(0, 0), block_shape=(16, 16), order=(1, 0))
    q = tl.make_block_ptr(a, (16, 32), (32, 1), (0, 0), (16, 16), (1, 0))
    for i in range(2):
        tl.store(q, tl.load(p, boundary_check=(0, 1), padding_option="zero"))
        p = tl.advance(p, (0, 16))
        q = q.advance((0, 16))
    p = tl.make_block_ptr(x, (M, N), (N, 1), (0, 16), (16, 16), (1, 0))
    w = tl.load(p, boundary_check=(0, 1), padding_option="nan")
    tl.store(tl.make_block_ptr(b, (16, 16), (16, 1), (0, 0), (16, 16), (1, 0)), w)
    t = tl.make_block_ptr(x, (N, M), (1, N), (0, 0), (32, 16), (0, 1))
    v = tl.load(t, boundary_check=(0, 1))
    tl.store(tl.make_block_ptr(c, (N, M), (M, 1), (0, 0), (32, 16), (1, 0)), v, boundary_check=(0, 1))
    desc = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[8, 16])
    out = tl.make_tensor_descriptor(d, [M, N], [N, 1], [8, 16])
    for i in tl.range(0, M, 8):
        for j in range(0, N, 16):
            out.store([i, j], desc.load([i, j]) * 2)
""", dict(x=x, a=np.zeros((16, 32), f32), b=np.zeros((16, 16), f32), c=np.zeros((21, 13), f32), d=np.zeros((13, 21), f32), M=13, N=21),
         dict(a=pad, b=nan[:, 16:], c=x.T, d=x * 2))


def reductions():
    x = rng.standard_normal((8, 32)).astype(f32)
    x[3, 5] = x[3, 7] = 9
    n = rng.integers(-100, 100, (8, 32)).astype(i8)
    d = x.astype(f64)
    r = run("""
@triton.jit
def k(x, n, a, b, i, s):
    r, c = tl.arange(0, 8), tl.arange(0, 32)
    m = r[:, None] * 32 + c[None, :]
    v, w = tl.load(x + m), tl.load(n + m)
    tl.store(a + r, tl.sum(v, axis=1))
    tl.store(a + 8 + r, tl.max(v, 1))
    tl.store(a + 16 + r, tl.min(v, axis=-1))
    mx, ix = tl.max(v, 1, return_indices=True)
    tl.store(a + 24 + r, mx)
    tl.store(i + r, ix)
    tl.store(i + 8 + r, tl.argmax(v, axis=1))
    tl.store(i + 16 + r, tl.argmin(v, 1))
    tl.store(i + 24 + r, tl.sum(w, 1))
    tl.store(i + 32 + r, tl.max(w, 1))
    tl.store(i + 40 + r, tl.xor_sum(w.to(tl.int32), 1))
    tl.store(b + c, tl.sum(v, 0))
    tl.store(s, tl.sum(v))
    tl.store(s + 1, tl.max(v))
    tl.store(s + 2 + r[:, None], tl.sum(v, axis=1, keep_dims=True))
    tl.store(s + 10 + r, tl.sum(tl.softmax(v, 1), 1))
""", dict(x=x, n=n, a=np.zeros((4, 8), f32), b=np.zeros(32, f32), i=np.zeros((6, 8), i32), s=np.zeros(18, f32)), ["a", "b", "i", "s"])
    for mode, g in r.items():
        np.testing.assert_allclose(g["a"], np.stack([d.sum(1), d.max(1), d.min(1), d.max(1)]), rtol=2e-6, err_msg=mode)
        np.testing.assert_allclose(g["b"], d.sum(0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(g["s"], np.concatenate([[d.sum(), d.max()], d.sum(1), np.ones(8)]), rtol=1e-5)
        np.testing.assert_array_equal(g["i"], np.stack([x.argmax(1), x.argmax(1), x.argmin(1), n.astype(i32).sum(1), n.max(1),
                                                        np.bitwise_xor.reduce(n.astype(i32), 1)]), err_msg=mode)


def scans():
    x = rng.integers(-9, 9, (4, 16)).astype(i32)
    p = rng.uniform(0.5, 1.5, (4, 16)).astype(f32)
    rec = np.zeros((4, 16))
    h = np.zeros(4)
    for t in range(16):
        h = p[:, t] * h + x[:, t]
        rec[:, t] = h
    same("""
@triton.jit
def largest(a, b):
    return tl.maximum(a, b)

@triton.jit
def k(x, o):
    m = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v = tl.load(x + m)
    tl.store(o + m, tl.cumsum(v, 1))
    tl.store(o + 64 + m, tl.cumsum(v, axis=1, reverse=True))
    tl.store(o + 128 + m, tl.associative_scan(v, 1, largest))
    tl.store(o + 192 + m, tl.cumsum(v, 0))
""", dict(x=x, o=np.zeros((4, 4, 16), i32)),
         dict(o=np.stack([x.cumsum(1), x[:, ::-1].cumsum(1)[:, ::-1], np.maximum.accumulate(x, 1), x.cumsum(0)])))
    r = run("""
@triton.jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2

@triton.jit
def k(x, p, w):
    m = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v, q = tl.load(x + m), tl.load(p + m)
    tl.store(w + m, tl.cumprod(q, 1))
    a, b = tl.associative_scan((q, v.to(tl.float32)), 1, linear)
    tl.store(w + 64 + m, b)
""", dict(x=x, p=p, w=np.zeros((2, 4, 16), f32)), ["w"])
    for g in r.values():
        np.testing.assert_allclose(g["w"], np.stack([p.astype(f64).cumprod(1), rec]), rtol=2e-5, atol=2e-5)


def welford():
    x = rng.standard_normal((4, 64)).astype(f32)
    r = run("""
@triton.jit
def combine(m1, n1, s1, m2, n2, s2):
    n = n1 + n2
    d = m2 - m1
    return m1 + d * n2 / n, n, s1 + s2 + d * d * n1 * n2 / n

@triton.jit
def k(x, o):
    r = tl.arange(0, 4)
    v = tl.load(x + r[:, None] * 64 + tl.arange(0, 64)[None, :])
    m, n, s = tl.reduce((v, tl.full((4, 64), 1.0, tl.float32), tl.zeros((4, 64), tl.float32)), 1, combine)
    tl.store(o + r, m)
    tl.store(o + 4 + r, s / n)
    tl.store(o + 8 + r, tl.reduce(v, 1, lambda a, b: a + b))
""", dict(x=x, o=np.zeros((3, 4), f32)), ["o"])
    for g in r.values():
        np.testing.assert_allclose(g["o"], np.stack([x.mean(1), x.var(1), x.sum(1)]), rtol=1e-4, atol=1e-5)


def products():
    a, b = rng.standard_normal((2, 32, 64)).astype(f16), rng.standard_normal((2, 64, 16)).astype(f16)
    n, m = rng.integers(-8, 8, (32, 64)).astype(i8), rng.integers(-8, 8, (64, 16)).astype(i8)
    d = a.astype(f64) @ b.astype(f64)
    r = run("""
@triton.jit
def k(a, b, n, m, o, h, i, e, w):
    r, c, q = tl.arange(0, 32), tl.arange(0, 64), tl.arange(0, 16)
    x = tl.load(a + r[:, None] * 64 + c[None, :])
    y = tl.load(b + c[:, None] * 16 + q[None, :])
    t = r[:, None] * 16 + q[None, :]
    tl.store(o + t, tl.dot(x, y))
    acc = tl.full((32, 16), 1.0, tl.float32)
    acc = tl.dot(x, y, acc)
    acc += tl.dot(x, y)
    tl.store(o + 512 + t, acc)
    tl.store(o + 1024 + t, tl.dot(x.to(tl.float32), y.to(tl.float32), allow_tf32=False))
    tl.store(o + 1536 + t, tl.dot(x.to(tl.bfloat16), y.to(tl.bfloat16)))
    tl.store(h + t, tl.dot(x, y, out_dtype=tl.float16))
    tl.store(i + t, tl.dot(tl.load(n + r[:, None] * 64 + c[None, :]), tl.load(m + c[:, None] * 16 + q[None, :])))
    tl.store(e + t, tl.dot(x.to(tl.float64), y.to(tl.float64)))
    z = tl.arange(0, 2)[:, None, None]
    xb = tl.load(a + z * 2048 + r[None, :, None] * 64 + c[None, None, :])
    yb = tl.load(b + z * 1024 + c[None, :, None] * 16 + q[None, None, :])
    tl.store(w + z * 512 + r[None, :, None] * 16 + q[None, None, :], tl.dot(xb, yb))
""", dict(a=a, b=b, n=n, m=m, o=np.zeros((4, 32, 16), f32), h=np.zeros((32, 16), f16), i=np.zeros((32, 16), i32), e=np.zeros((32, 16), f64),
          w=np.zeros((2, 32, 16), f32)), ["o", "h", "i", "e", "w"])
    for mode, g in r.items():
        np.testing.assert_allclose(g["o"][:3], np.stack([d[0], 2 * d[0] + 1, d[0]]), rtol=1e-4, atol=1e-4, err_msg=mode)
        np.testing.assert_allclose(g["o"][3], bf16(a[0]).astype(f64) @ bf16(b[0]), rtol=1e-4, atol=1e-4, err_msg=mode)
        np.testing.assert_allclose(g["h"], d[0], rtol=0.02, atol=0.1, err_msg=mode)
        np.testing.assert_array_equal(g["i"], n.astype(i32) @ m.astype(i32), err_msg=mode)
        np.testing.assert_allclose(g["e"], d[0], rtol=1e-12, atol=1e-12, err_msg=mode)
        np.testing.assert_allclose(g["w"], d, rtol=1e-4, atol=1e-4, err_msg=mode)


def scaled_products():
    values = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6])
    a4, b4 = rng.integers(0, 16, (16, 64)), rng.integers(0, 16, (64, 16))
    sa, sb = rng.integers(125, 130, (16, 2)).astype(u8), rng.integers(125, 130, (16, 2)).astype(u8)
    fa = values[a4] * np.repeat(2.0 ** (sa.astype(f64) - 127), 32, 1)
    fb = values[b4] * np.repeat(2.0 ** (sb.astype(f64) - 127), 32, 1).T
    h = bf16(rng.standard_normal((16, 64)))
    same("""
@triton.jit
def k(a, b, sa, sb, h, o):
    r, c, p = tl.arange(0, 16), tl.arange(0, 64), tl.arange(0, 32)
    x = tl.load(a + r[:, None] * 32 + p[None, :])
    y = tl.load(b + p[:, None] * 16 + r[None, :])
    s = tl.load(sa + r[:, None] * 2 + tl.arange(0, 2)[None, :])
    t = tl.load(sb + r[:, None] * 2 + tl.arange(0, 2)[None, :])
    m = r[:, None] * 16 + r[None, :]
    tl.store(o + m, tl.dot_scaled(x, s, "e2m1", y, t, "e2m1"))
    acc = tl.full((16, 16), 1.0, tl.float32)
    z = tl.load(h + r[:, None] * 64 + c[None, :]).to(tl.bfloat16)
    tl.store(o + 256 + m, tl.dot_scaled(z, None, "bf16", y, t, "e2m1", acc))
""", dict(a=(a4[:, ::2] | a4[:, 1::2] << 4).astype(u8), b=(b4[::2] | b4[1::2] << 4).astype(u8), sa=sa, sb=sb, h=h,
          o=np.zeros((2, 16, 16), f32)), dict(o=np.stack([fa @ fb, h.astype(f64) @ fb + 1])), bound=1e-5)


def shapes():
    x = np.arange(32, dtype=i32).reshape(4, 8)
    idx = rng.integers(0, 8, (4, 16)).astype(i32)
    want = [x.T.ravel(), x.reshape(8, 4).ravel(), np.stack([x, x * 2], -1).ravel()[:32], x[:, ::-1].ravel(), x[::-1].ravel(),
            np.stack([x[:, :4], x[:, 4:]], -1).ravel(), np.broadcast_to(x[:, :1], (4, 8)).ravel()]
    same("""
@triton.jit
def k(x, idx, o, g, c, s):
    r, q = tl.arange(0, 4), tl.arange(0, 8)
    m = r[:, None] * 8 + q[None, :]
    f = tl.arange(0, 32)
    v = tl.load(x + m)
    tl.store(o + f, tl.ravel(tl.trans(v)))
    tl.store(o + 32 + f, tl.reshape(tl.reshape(v, (8, 4)), (32,)))
    j = tl.ravel(tl.join(v, v * 2))
    tl.store(o + 64 + tl.arange(0, 64), j, mask=tl.arange(0, 64) < 32)
    tl.store(o + 96 + m, tl.flip(v, 1))
    tl.store(o + 128 + m, tl.flip(v, 0))
    a, b = tl.split(v.reshape(4, 2, 4).permute(0, 2, 1))
    tl.store(o + 160 + m, tl.interleave(a, b))
    tl.store(o + 192 + m, tl.broadcast_to(tl.sum(tl.where(q[None, :] == 0, v, 0), 1, keep_dims=True), (4, 8)))
    w = tl.arange(0, 16)
    i = tl.load(idx + r[:, None] * 16 + w[None, :])
    tl.store(g + r[:, None] * 16 + w[None, :], tl.gather(v, i, 1))
    tl.store(c + w, tl.cat(q, q + 100, can_reorder=True))
    tl.store(s + q, tl.histogram(tl.ravel(i) % 5, 8))
    tl.store(s + 8 + m, tl.sort((v * 7) % 32))
    tl.store(s + 40 + m, tl.sort((v * 7) % 32, descending=True))
    tl.store(s + 72 + r[:, None] * 4 + tl.arange(0, 4)[None, :], tl.topk((v * 7) % 32, 4))
""", dict(x=x, idx=idx, o=np.zeros(224, i32), g=np.zeros((4, 16), i32), c=np.zeros(16, i32), s=np.zeros(88, i32)),
         dict(o=np.concatenate(want), g=np.take_along_axis(x, idx, 1), c=np.concatenate([np.arange(8), np.arange(8) + 100]).astype(i32),
              s=np.concatenate([np.bincount(idx.ravel() % 5, minlength=8), np.sort(x * 7 % 32).ravel(), -np.sort(-(x * 7 % 32)).ravel(),
                                -np.sort(-(x * 7 % 32))[:, :4].ravel()]).astype(i32)))


def philox(seed, offsets, rounds=10):
    c = [offsets.astype(u64), *[np.zeros_like(offsets, u64) for _ in range(3)]]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    mask = u64(0xFFFFFFFF)
    for _ in range(rounds):
        a, b = u64(0xD2511F53) * c[0], u64(0xCD9E8D57) * c[2]
        c = [(b >> u64(32)) ^ c[1] ^ u64(k0), b & mask, (a >> u64(32)) ^ c[3] ^ u64(k1), a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [v.astype(u32) for v in c]


def random_numbers():
    seed, n = 0x123456789A, 256
    w = philox(seed, np.arange(n))
    same("""
@triton.jit
def k(o, u, g, seed):
    r = tl.arange(0, 256)
    a, b, c, d = tl.randint4x(seed, r)
    tl.store(o + r, a)
    tl.store(o + 256 + r, b)
    tl.store(o + 512 + r, c)
    tl.store(o + 768 + r, d)
    tl.store(o + 1024 + r, tl.randint(seed, r))
    tl.store(u + r, tl.rand(seed, r))
""", dict(o=np.zeros((5, n), u32), u=np.zeros(n, f32), g=np.zeros(n, f32), seed=seed),
         dict(o=np.stack([*w, w[0]]), u=uniform(w[0])))
    r = run("""
@triton.jit
def k(g, seed):
    r = tl.arange(0, 4096)
    tl.store(g + r, tl.randn(seed, r))
""", dict(g=np.zeros(4096, f32), seed=7), ["g"])
    for g in r.values():
        assert abs(g["g"].mean()) < 0.06 and abs(g["g"].std() - 1) < 0.05


def uniform(word):
    x = word.view(i32)
    x = np.where(x < 0, -x - 1, x)
    return x.astype(f32) * f32(4.6566127342e-10)


CASES = [integers, unsigned, floats, functions, bits, casts, rounding, fp8, memory, pointers, atomics, blocks, reductions, scans, welford,
         products, scaled_products, shapes, random_numbers]
for f in CASES:
    if len(sys.argv) < 2 or f.__name__ in sys.argv[1:]:
        case(f.__name__, f)
finish()
