"""Semantics 25 to 38 of the language: memory, products, reductions, scans, sorting, random numbers and messages. Each case is one
of the numbered rules by which Triton differs from Python or C, on the interpreter and on the CPU."""
import tempfile
from pathlib import Path

import numpy as np

from _ditron import bf16, case, ditron, finish
from _kernels import HEAD, MODES, refused, run, same

i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64 = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
                                                       np.float16, np.float32, np.float64)
rng = np.random.default_rng(38)


def masked_rows():
    """The sum over all of a block reads the rows that its mask names, and no others, however its axes become one."""
    x = rng.standard_normal((24, 16)).astype(f32)
    x[19:] = np.nan
    same("""
@triton.jit
def k(x, o, rows):
    r = tl.program_id(0) * 8 + tl.arange(0, 8)
    c = tl.arange(0, 16)
    inside = r < rows
    block = tl.load(x + r[:, None] * 16 + c[None, :], mask=inside[:, None], other=0.0)
    weight = tl.where(inside, 2.0, 0.0)
    tl.store(o + tl.program_id(0), tl.sum(block * weight[:, None]))
""", dict(x=x, o=np.zeros(3, f32), rows=19), dict(o=np.array([2 * x[8 * i:min(8 * i + 8, 19)].astype(f64).sum() for i in range(3)], f32)),
         grid=(3,), bound=1e-5)


def masked_loads():
    x = np.arange(1, 9, dtype=f32)
    same("""
@triton.jit
def k(x, n, h, f, o, q, w, far):
    r = tl.arange(0, 8)
    # the addresses of masked-off elements lie nowhere
    wild = x + tl.where(r < 3, r, (r.to(tl.int64) + 1) * far)
    tl.store(o + r, tl.load(wild, mask=r < 3))
    tl.store(o + 8 + r, tl.load(wild, mask=r < 3, other=-1.5))
    tl.store(wild, r * 10.0, mask=r == 1)
    tl.store(o + 16, tl.load(x + far, mask=far < 0))
    tl.store(o + 17, tl.load(x + far, mask=far < 0, other=2.5))
    tl.store(x + far, 7.0, mask=far < 0)
    tl.store(o + 18, tl.load(x + far, mask=False, other=3))
    tl.atomic_add(wild, 1.0, mask=r == 2)
    # without `other` it reads 0, of whatever type
    no = r < 0
    tl.store(q + r, tl.load(n + r, mask=no))
    tl.store(q + 8 + r, tl.load(h + r, mask=no).to(tl.int32))
    tl.store(q + 16 + r, tl.load(f + r, mask=no))
    # `other` is cast to what is loaded
    tl.store(q + 24 + r, tl.load(n + r, mask=no, other=1.75))
    tl.store(q + 32 + r, tl.load(n + r, mask=r < 4, other=r * 100))
    tl.store(q + 40 + r, tl.load(f + r, mask=no, other=5))
    tl.static_assert(tl.load(h + r, mask=no, other=1.0).dtype == tl.float16)
    tl.static_assert(tl.load(n + r, mask=no, other=r.to(tl.int64)).dtype == tl.int8)
    tl.store(w + r, tl.load(h + r, mask=no, other=0.1))
    # mask and other broadcast
    c = tl.arange(0, 2)
    m = tl.load(x + 4 + c[:, None] * 2 + c[None, :], mask=(c < 1)[:, None], other=(c * 1.0)[None, :])
    tl.store(w + 8 + c[:, None] * 2 + c[None, :], m)
""", dict(x=x, n=np.arange(8, dtype=i8), h=x.astype(f16), f=np.ones(8, np.bool_), o=np.zeros(19, f32), q=np.zeros((6, 8), i32), w=np.zeros(12, f32),
          far=2**40),
         dict(o=np.array([1, 2, 3, 0, 0, 0, 0, 0, 1, 2, 3] + [-1.5] * 5 + [0, 2.5, 3], f32),
              x=np.array([1, 10, 4, 4, 5, 6, 7, 8], f32),
              q=np.stack([np.zeros(8), np.zeros(8), np.zeros(8), np.ones(8), [0, 1, 2, 3] + [int(np.int32(v).astype(i8)) for v in (400, 500, 600, 700)],
                          np.ones(8)]).astype(i32),
              w=np.concatenate([np.full(8, f16(0.1)), [5, 6, 0, 1]]).astype(f32)))
    refused("""
@triton.jit
def k(x):
    r = tl.arange(0, 8)
    a = tl.load(x + r, other=0.0)  # ERROR: `other` without a mask
    b = tl.load(x, mask=r < 4)  # ERROR: the pointer is a scalar, so the mask cannot be
    c = tl.load(x + r, mask=tl.arange(0, 16) < 4)  # ERROR: [16]
    d = tl.load(x + r, mask=r < 4, other=x)  # ERROR: a pointer cannot become fp32
""", k="x=*f32")


def stores_cast():
    v = np.array([1.75, -2.5, 70000, 0.1, -0.0, 3e9, 1e-8, 255.9], f32)
    small = np.array([1.75, -2.5, 100.9, 0.1, -0.0, -127.9, 1e-8, 55.9], f32)
    raw = np.array([0, 1, 2, 255, 0, 128, 7, 0], u8).view(np.bool_)
    with np.errstate(over="ignore"):
        h = v.astype(f16)
    same("""
@triton.jit
def k(v, s, b, h, g, i, j, c, d, e, n, p):
    r = tl.arange(0, 8)
    x, y = tl.load(v + r), tl.load(s + r)
    tl.store(h + r, x)
    tl.store(g + r, x)
    tl.store(i + r, y)
    tl.store(j + r, y.to(tl.float16))
    # bools: bytes, true where not 0
    f = tl.load(b + r)
    tl.static_assert(f.dtype == tl.int1)
    tl.store(c + r, f)
    tl.store(c + 8 + r, x)
    tl.store(c + 16 + r, r)
    tl.store(d + r, f)
    tl.store(d + 8 + r, f.to(tl.int32) * 3)
    tl.store(e + r, r - 4)
    tl.store(n, 2.75)
    tl.store(n + 1, True)
    tl.store(n + 2, tl.load(b + 2))
    tl.store(n + 3, 4294967295)
    tl.store(p + r, tl.load(b + r, mask=r > 2, other=True))
""", dict(v=v, s=small, b=raw, h=np.zeros(8, f16), g=np.zeros(8, f64), i=np.zeros(8, i8), j=np.zeros(8, i64), c=np.zeros(24, np.bool_),
          d=np.zeros(16, i32), e=np.zeros(8, u16), n=np.zeros(4, i32), p=np.zeros(8, u8)),
         dict(h=h, g=v.astype(f64), i=np.trunc(small).astype(i8), j=np.trunc(small.astype(f16)).astype(i64),
              c=np.concatenate([raw.view(u8) != 0, v != 0, np.arange(8) != 0]), d=np.concatenate([raw.view(u8) != 0, (raw.view(u8) != 0) * 3]).astype(i32),
              e=(np.arange(8) - 4).astype(u16), n=np.array([2, 1, 1, -1], i32), p=np.concatenate([[1, 1, 1], (raw.view(u8) != 0)[3:]]).astype(u8)))
    refused("""
@triton.jit
def k(x, n):
    r = tl.arange(0, 8)
    tl.store(x, r)  # ERROR: scalar
    tl.store(x, 1.0, mask=r < 4)  # ERROR: scalar
    a = tl.load(n)  # ERROR: load needs a pointer, not an int32 scalar
    tl.store(x + r, tl.arange(0, 16))  # ERROR: [16]
    tl.store(x + r, x)  # ERROR: a pointer cannot become fp32
    tl.load(x + r) + tl.load(r)  # ERROR: load needs a pointer, not an int32[8] tile
""", k="x=*f32, n=i32")


def atomics():
    same("""
@triton.jit
def k(c, old, u, s, e, f):
    pid = tl.program_id(0)
    # one addition a program, whatever the number of its threads
    t = tl.atomic_add(c, 1)
    tl.store(old + t, t)
    tl.atomic_add(c + 1, 2, sem="relaxed", scope="cta")
    tl.atomic_add(c + 2, 1, sem="acquire", scope="gpu")
    tl.atomic_add(c + 3, 1, sem="release", scope="sys")
    tl.atomic_add(c + 4, 1, sem="acq_rel", mask=pid > 3)
    tl.atomic_max(c + 5, pid)
    tl.atomic_min(c + 6, -pid)
    tl.atomic_or(c + 7, 1 << pid)
    tl.atomic_and(c + 8, ~(1 << pid))
    tl.atomic_xor(c + 9, 3)
    if tl.atomic_cas(c + 10, 0, 9) == 0:  # for one of them
        tl.atomic_add(c + 11, 1)
        tl.atomic_cas(c + 10, 9, -9)
    tl.atomic_xchg(c + 12, 5)
    # tiles: once an element
    r = tl.arange(0, 8)
    tl.atomic_add(c + 16 + r, r, mask=r < 6)
    tl.atomic_add(c + 24 + (r * 0), 1)
    tl.atomic_max(u, pid.to(tl.uint32) + 4294967288)
    tl.atomic_min(u + 1, pid.to(tl.uint32) + 4294967200)
    tl.atomic_add(s, 4294967296)
    tl.atomic_add(e, 0.5)
    tl.atomic_add(f, 0.25)
    # also as methods, and returning what was there
    p = c + 13
    p.atomic_add(1)
    tl.static_assert(tl.atomic_add(c + 14, 0).dtype == tl.int32 and tl.atomic_add(c + 16 + r, 0).shape == (8,))
""", dict(c=np.concatenate([np.zeros(8), [-1], np.zeros(16)]).astype(i32), old=np.full(8, -1, i32), u=np.array([0, 2**32 - 1], u32), s=np.zeros(1, i64),
          e=np.zeros(1, f64), f=np.zeros(1, f32)),
         dict(old=np.arange(8, dtype=i32), u=np.array([2**32 - 1, 4294967200], u32), s=np.array([8 * 2**32]), e=np.array([4.0]), f=np.array([2], f32),
              c=np.concatenate([[8, 16, 8, 8, 4, 7, -7, 255, -256, 0], [-9, 1, 5, 8, 0, 0], np.where(np.arange(8) < 6, np.arange(8) * 8, 0), [64]]).astype(i32)),
         grid=(8,))
    # old values; float max and min compare bits, so the sign of 0 and NaN show
    bits = lambda *v: np.array(v, u32).view(f32)
    nan, pz, nz = 0x7FC00000, 0, 0x80000000
    one, neg, five = 0x3F800000, 0xBF800000, 0x40A00000
    old = bits(pz, nz, one, nan, neg, pz, nz, five)
    val = bits(nz, pz, nan, five, nan, neg, neg, one)
    top, low = float_extreme(old, val, True), float_extreme(old, val, False)
    same("""
@triton.jit
def k(a, b, v, o, h, g, w):
    r = tl.arange(0, 8)
    x = tl.load(v + r)
    tl.store(o + r, tl.atomic_max(a + r, x))
    tl.store(o + 8 + r, tl.atomic_min(b + r, x))
    tl.store(o + 16, tl.atomic_xchg(a, 2.0))
    tl.store(o + 17, tl.atomic_cas(b + 7, 1.0, 9.0))
    tl.store(w, tl.atomic_add(h, 1.5))
    tl.store(w + 1, tl.atomic_add(g, 1.5))
    tl.atomic_add(h + 1 + r, x * 0 + 0.5, mask=r == 1)
    tl.atomic_add(g + 1 + (r % 2), 1.0)
""", dict(a=old, b=old.copy(), v=val, o=np.zeros(18, f32), h=np.ones(9, f16), g=np.zeros(3, f32), w=np.zeros(2, f32)),
         dict(a=np.concatenate([[2.0], top[1:]]).astype(f32), b=np.concatenate([low[:7], [9.0]]).astype(f32),
              o=np.concatenate([old, old, [top[0]], [low[7]]]).astype(f32),
              w=np.array([1, 0], f32), h=np.array([2.5, 1, 1.5, 1, 1, 1, 1, 1, 1], f16), g=np.array([1.5, 4, 4], f32)))
    # additions in 16 bits, to neighbours within one word
    same("""
@triton.jit
def k(h, b):
    r = tl.arange(0, 4)
    tl.atomic_add(h + r, r + 1.0)
    tl.atomic_add(b + r, (r + 1).to(tl.bfloat16))
""", dict(h=np.zeros(5, f16), b=np.zeros(5, f32)), dict(h=np.array([4, 8, 12, 16, 0], f16), b=np.array([4, 8, 12, 16, 0], f32)), grid=(4,))
    with tempfile.TemporaryDirectory() as folder:
        f = Path(folder) / "k.py"
        f.write_text(HEAD + "@triton.jit\ndef k(b):\n    r = tl.arange(0, 4)\n    tl.atomic_add(b + r, (r + 1).to(tl.bfloat16))\n")
        for mode in MODES.values():
            out = ditron("run", f, "--grid", 4, "b=zeros:bf16[6]", *mode).stdout
            assert "b bf16[6] = 4 8 12 16 0 0" in out, out
    refused("""
@triton.jit
def k(x, f):
    a = tl.atomic_add(x, 1, sem="strict")  # ERROR: "strict"
    b = tl.atomic_add(x, 1, scope="world")  # ERROR: "world"
    c = tl.atomic_and(f, 1)  # ERROR: atomic_and
    d = tl.atomic_add(x, tl.arange(0, 4))  # ERROR: scalar
    e = tl.atomic_add(f.to(tl.pointer_type(tl.int8)), 1)  # ERROR: atomic_add on int8
""", k="x=*i32, f=*f32")


def float_extreme(old, val, largest):
    """What atomics on the bits leave: signed where val's sign is +, unsigned and the other way round where it is -."""
    o, v = old.view(i32), val.view(i32)
    same, other = (np.maximum, np.minimum) if largest else (np.minimum, np.maximum)
    return np.where(v >= 0, same(o, v), other(o.view(u32), v.view(u32)).view(i32)).view(f32)


def program_order():
    x = rng.standard_normal(64).astype(f32)
    same("""
@triton.jit
def k(x, t, o, w):
    r = tl.arange(0, 64)
    tl.store(t + r, tl.load(x + r) * 2)
    tl.debug_barrier()
    tl.store(o + r, tl.load(t + 63 - r))
    # and without one: a program sees its own stores in order
    tl.store(t + r, tl.load(t + (r ^ 1)) + 1)
    tl.store(o + 64 + r, tl.load(t + ((r * 5) % 64)))
    for i in range(3):
        v = tl.load(t + ((r + 1) % 64))
        tl.debug_barrier()
        tl.store(t + r, v)
    tl.store(o + 128 + r, tl.load(t + r))
    tl.store(w, 5)
    tl.store(w, tl.load(w) + 1)
    tl.atomic_add(w, 1)
    tl.store(w + 1, tl.load(w))
""", dict(x=x, t=np.zeros(64, f32), o=np.zeros((3, 64), f32), w=np.zeros(2, i32)), dict(o=order_want(x), w=np.array([7, 7], i32)))


def order_want(x):
    t = x * f32(2)
    a = t[::-1].copy()
    r = np.arange(64)
    t = t[r ^ 1] + f32(1)
    b = t[(r * 5) % 64]
    return np.stack([a, b, np.roll(t, -3)])


def products():
    a, b = rng.standard_normal((16, 32)).astype(f32), rng.standard_normal((32, 16)).astype(f32)
    d = a.astype(f64) @ b.astype(f64)
    n, m = rng.integers(-128, 128, (16, 32)).astype(i8), rng.integers(-128, 128, (32, 16)).astype(i8)
    h, g = a.astype(f16), b.astype(f16)
    hd = h.astype(f64) @ g.astype(f64)
    bd = bf16(a).astype(f64) @ bf16(b).astype(f64)
    forms = ["", ", allow_tf32=False", ", allow_tf32=True", ', input_precision="ieee"', ', input_precision="tf32"', ', input_precision="tf32x3"',
             ', input_precision="bf16x3"', ', input_precision="bf16x6"', ", out_dtype=tl.float32", ", max_num_imprecise_acc=32"]
    source = """
@triton.jit
def k(a, b, n, m, o, i, e, h, q):
    r, c = tl.arange(0, 16), tl.arange(0, 32)
    x, y = tl.load(a + r[:, None] * 32 + c[None, :]), tl.load(b + c[:, None] * 16 + r[None, :])
    u, v = tl.load(n + r[:, None] * 32 + c[None, :]), tl.load(m + c[:, None] * 16 + r[None, :])
    t = r[:, None] * 16 + r[None, :]
""" + "".join(f"    tl.store(o + {256 * j} + t, tl.dot(x, y{f}))\n" for j, f in enumerate(forms)) + """
    tl.static_assert(tl.dot(x, y).dtype == tl.float32 and tl.dot(u, v).dtype == tl.int32)
    s, w = x.to(tl.float16), y.to(tl.float16)
    tl.static_assert(tl.dot(s, w).dtype == tl.float32 and tl.dot(s, w, out_dtype=tl.float16).dtype == tl.float16)
    tl.static_assert(tl.dot(x.to(tl.float64), y.to(tl.float64)).dtype == tl.float64)
    tl.store(i + t, tl.dot(u, v))
    tl.store(i + 256 + t, tl.dot(u, v, acc=tl.full((16, 16), 5, tl.int32)))
    tl.store(e + t, tl.dot(x.to(tl.float64), y.to(tl.float64)))
    tl.store(q + t, tl.dot(s, w))
    tl.store(q + 256 + t, tl.dot(x.to(tl.bfloat16), y.to(tl.bfloat16)))
    f, g = x.to(tl.float8e5), y.to(tl.float8e4nv)
    tl.store(q + 512 + t, tl.dot(f, g) - tl.dot(f.to(tl.float32), g.to(tl.float32), input_precision="ieee"))
    tl.store(h + t, tl.dot(s, w, out_dtype=tl.float16))
    # in f16 2048 + 1 is 2048: sums of products one a call, so the order is fixed
    acc = tl.full((16, 16), 2048.0, tl.float16)
    for z in range(4):
        acc = tl.dot(tl.where(c[None, :] == z, 1.0, tl.zeros((16, 32), tl.float16)), tl.where(c[:, None] == z, 1.0, tl.zeros((32, 16), tl.float16)), acc,
                     out_dtype=tl.float16)
    tl.store(h + 256 + t, acc)
"""
    got = run(source, dict(a=a, b=b, n=n, m=m, o=np.zeros((len(forms), 16, 16), f32), i=np.zeros((2, 16, 16), i32), e=np.zeros((16, 16)),
                           h=np.zeros((2, 16, 16), f16), q=np.zeros((3, 16, 16), f32)), ["o", "i", "e", "h", "q"])
    want = n.astype(i64) @ m.astype(i64)
    for mode, z in got.items():
        for j, f in enumerate(forms):
            np.testing.assert_allclose(z["o"][j], d, rtol=1e-5, atol=1e-5, err_msg=mode + f)
        np.testing.assert_array_equal(z["i"], np.stack([want, want + 5]), err_msg=mode)
        np.testing.assert_allclose(z["e"], d, rtol=1e-13, atol=1e-13, err_msg=mode)
        np.testing.assert_allclose(z["q"][0], hd, rtol=1e-5, atol=1e-5, err_msg=mode)
        np.testing.assert_allclose(z["q"][1], bd, rtol=1e-5, atol=1e-5, err_msg=mode)
        np.testing.assert_allclose(z["q"][2], 0, atol=1e-5, err_msg=mode)
        np.testing.assert_allclose(z["h"][0], hd, rtol=0.02, atol=0.05, err_msg=mode)
        np.testing.assert_array_equal(z["h"][1], np.full((16, 16), 2048, f16), err_msg=mode)
    refused("""
@triton.jit
def k(x):
    h = tl.zeros((16, 16), tl.float16)
    a = tl.dot(h, h, out_dtype=tl.bfloat16)  # ERROR: bf16
    b = tl.dot(h, h.to(tl.bfloat16))  # ERROR: the operands of tl.dot have different types, fp16 and bf16
    c = tl.dot(h.to(tl.int8), h.to(tl.uint8))  # ERROR: the operands of tl.dot have different types, int8 and uint8
    d = tl.dot(h, h, input_precision="fast")  # ERROR: not "fast"
    e = tl.dot(h.to(tl.float32), h)  # ERROR: the operands of tl.dot have different types, fp32 and fp16
    f = tl.dot(h.to(tl.int16), h.to(tl.int16))  # ERROR: tl.dot of int16
""", k="x=*f32")


def accumulators():
    a, b = rng.standard_normal((4, 16, 64)).astype(f16), rng.standard_normal((4, 64, 16)).astype(f16)
    d = a.astype(f64) @ b.astype(f64)
    got = run("""
@triton.jit
def k(a, b, o, s, w, v):
    r, c = tl.arange(0, 16), tl.arange(0, 64)
    x, y = tl.load(a + r[:, None] * 64 + c[None, :]), tl.load(b + c[:, None] * 16 + r[None, :])
    t = r[:, None] * 16 + r[None, :]
    tl.store(o + t, tl.dot(x.to(tl.float8e5), y.to(tl.float8e5), max_num_imprecise_acc=0) - tl.dot(x.to(tl.float8e5), y.to(tl.float8e5)))
    acc = tl.full((16, 16), 1.0, tl.float32)
    tl.store(o + 256 + t, tl.dot(x, y, acc=acc))
    tl.store(o + 512 + t, tl.dot(x, y, acc))
    # one row, one column
    z = tl.load(a + c[None, :])
    tl.store(s + r[None, :], tl.dot(z, y))
    q = tl.load(b + c[:, None] * 16)
    tl.store(s + 16 + r[:, None], tl.dot(x, q))
    # batches: of one axis, and of two; K may be as small as 1 where no matrix unit sets a least size
    g = tl.arange(0, 4)
    x3 = tl.load(a + g[:, None, None] * 1024 + r[None, :, None] * 64 + c[None, None, :])
    y3 = tl.load(b + g[:, None, None] * 1024 + c[None, :, None] * 16 + r[None, None, :])
    tl.store(w + g[:, None, None] * 256 + t[None, :, :], tl.dot(x3, y3))
    w4 = tl.dot(x3.reshape(2, 2, 16, 64), y3.reshape(2, 2, 64, 16))
    tl.static_assert(w4.shape == (2, 2, 16, 16))
    tl.store(v + g[:, None, None] * 256 + t[None, :, :], w4.reshape(4, 16, 16))
    i = tl.arange(0, 1)
    tl.store(s + 32 + r[None, :], tl.dot(tl.load(a + i[:, None]), tl.load(b + i[:, None] + r[None, :])))
""", dict(a=a, b=b, o=np.zeros((3, 16, 16), f32), s=np.zeros((3, 16), f32), w=np.zeros((4, 16, 16), f32), v=np.zeros((4, 16, 16), f32)),
              ["o", "s", "w", "v"])
    for mode, z in got.items():
        np.testing.assert_allclose(z["o"], np.stack([d[0] * 0, d[0] + 1, d[0] + 1]), rtol=1e-5, atol=1e-5, err_msg=mode)
        np.testing.assert_allclose(z["s"], np.stack([d[0][0], d[0][:, 0], a[0, 0, 0].astype(f64) * b[0, 0]]), rtol=1e-5, atol=1e-5, err_msg=mode)
        np.testing.assert_allclose(z["w"], d, rtol=1e-5, atol=1e-5, err_msg=mode)
        np.testing.assert_allclose(z["v"], d, rtol=1e-5, atol=1e-5, err_msg=mode)
    refused("""
@triton.jit
def k(x):
    h = tl.zeros((16, 16), tl.float16)
    a = tl.dot(h, h, acc=tl.zeros((16, 16), tl.float16), out_dtype=tl.float32)  # ERROR: the accumulator is fp16
    b = tl.dot(h, h, acc=tl.zeros((16, 32), tl.float32))  # ERROR: the accumulator
    c = tl.dot(h.to(tl.int8), h.to(tl.int8), acc=tl.zeros((16, 16), tl.float32))  # ERROR: the accumulator is fp32
    d = tl.dot(h, tl.zeros((32, 16), tl.float16))  # ERROR: tl.dot cannot multiply shapes [16, 16] and [32, 16]
    e = tl.dot(tl.arange(0, 16), h)  # ERROR: tl.dot multiplies two tiles of 2 axes
""", k="x=*f32")


def scaled_products():
    fp4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6])
    e5 = np.array([0.5, -1.25, 3, 0.25])[rng.integers(0, 4, (16, 64))]
    a4, b4 = rng.integers(0, 16, (16, 64)), rng.integers(0, 16, (64, 16))
    sa, sb = rng.integers(125, 130, (16, 2)).astype(u8), rng.integers(125, 130, (16, 2)).astype(u8)
    wide = lambda s: np.repeat(2.0 ** (s.astype(f64) - 127), 32, 1)
    fa, fb = fp4[a4] * wide(sa), fp4[b4] * wide(sb).T
    same("""
@triton.jit
def k(a, b, sa, sb, e, o):
    r, c, p = tl.arange(0, 16), tl.arange(0, 64), tl.arange(0, 32)
    q = r[:, None] * 2 + tl.arange(0, 2)[None, :]
    x = tl.load(a + r[:, None] * 32 + p[None, :])
    y = tl.load(b + p[:, None] * 16 + r[None, :])
    s, t = tl.load(sa + q), tl.load(sb + q)
    m = r[:, None] * 16 + r[None, :]
    tl.store(o + m, tl.dot_scaled(x, s, "e2m1", y, t, "e2m1"))
    v = tl.load(e + r[:, None] * 64 + c[None, :])
    tl.store(o + 256 + m, tl.dot_scaled(v.to(tl.float8e5), s, "e5m2", y, t, "e2m1"))
    tl.store(o + 512 + m, tl.dot_scaled(v.to(tl.float8e4nv), None, "e4m3", y, t, "e2m1", fast_math=True))
    acc = tl.full((16, 16), 3.0, tl.float32)
    tl.store(o + 768 + m, tl.dot_scaled(v.to(tl.bfloat16), None, "bf16", y, t, "e2m1", acc=acc))
    w = tl.trans(v).to(tl.float16)
    tl.store(o + 1024 + m, tl.dot_scaled(x, s, "e2m1", w, None, "fp16", out_dtype=tl.float32))
""", dict(a=(a4[:, ::2] | a4[:, 1::2] << 4).astype(u8), b=(b4[::2] | b4[1::2] << 4).astype(u8), sa=sa, sb=sb, e=e5.astype(f32),
          o=np.zeros((5, 16, 16), f32)),
         dict(o=np.stack([fa @ fb, (e5 * wide(sa)) @ fb, e5 @ fb, e5 @ fb + 3, fa @ e5.T])), bound=1e-5)
    refused("""
@triton.jit
def k(x):
    u = tl.zeros((16, 32), tl.uint8)
    s = tl.zeros((16, 2), tl.uint8)
    h = tl.zeros((64, 16), tl.bfloat16)
    a = tl.dot_scaled(u, s, "e3m2", h, None, "bf16")  # ERROR: e3m2
""", k="x=*f32")


def sum_types():
    h = np.array([2048] + [1] * 15, f16)
    b = bf16(np.array([256] + [1] * 15, f32))
    n = np.arange(100, 116).astype(i8)
    same("""
@triton.jit
def k(h, b, n, o, w):
    r = tl.arange(0, 16)
    x, z, i = tl.load(h + r), tl.load(b + r).to(tl.bfloat16), tl.load(n + r)
    u = i.to(tl.uint8)
    tl.static_assert(tl.sum(x, 0).dtype == tl.float16 and tl.sum(z, 0).dtype == tl.bfloat16 and tl.sum(x.to(tl.float64), 0).dtype == tl.float64)
    tl.static_assert(tl.sum(i, 0).dtype == tl.int32 and tl.sum(u, 0).dtype == tl.uint32 and tl.sum(i.to(tl.int16), 0).dtype == tl.int32)
    tl.static_assert(tl.sum(i.to(tl.int64), 0).dtype == tl.int64 and tl.sum(i > 0, 0).dtype == tl.uint32)
    tl.static_assert(tl.sum(x, 0, dtype=tl.float32).dtype == tl.float32 and x.sum(0).dtype == tl.float16)
    tl.static_assert(tl.max(x, 0).dtype == tl.float32 and tl.min(z, 0).dtype == tl.float32 and tl.max(x.to(tl.float64), 0).dtype == tl.float64)
    tl.static_assert(tl.max(i, 0).dtype == tl.int32 and tl.min(u, 0).dtype == tl.int32 and tl.max(i.to(tl.int64), 0).dtype == tl.int64)
    vh, ih = tl.max(x, 0, return_indices=True)
    vb, ib = tl.min(z, 0, return_indices=True)
    vi, ii = tl.max(i, 0, return_indices=True)
    tl.static_assert(vh.dtype == tl.float16 and vb.dtype == tl.float32 and vi.dtype == tl.int8 and ii.dtype == tl.int32)
    tl.static_assert(tl.cumsum(x, 0).dtype == tl.float16 and tl.cumsum(z, 0).dtype == tl.float32 and tl.cumprod(z, 0).dtype == tl.float32)
    tl.static_assert(tl.cumsum(i, 0).dtype == tl.int32 and tl.cumsum(u, 0).dtype == tl.uint32 and tl.cumprod(i, 0).dtype == tl.int8)
    tl.static_assert(tl.xor_sum(i, 0).dtype == tl.int8 and tl.sum(x[None, :], 1).shape == (1,) and tl.sum(x[None, :]).shape == ())
    tl.store(o, tl.sum(i, 0))
    tl.store(o + 1, tl.max(i, 0))
    tl.store(o + 2, tl.min(u, 0))
    tl.store(o + 3, tl.sum(i > 105, 0))
    tl.store(o + 4 + r, tl.cumsum(i, 0))
    tl.store(w, tl.sum(x, 0, dtype=tl.float32))
    tl.store(w + 1, tl.cumsum(z, 0).sum(0))
    tl.store(w + 2, tl.max(z, 0))
    # 4096 + 1 is 4096 in f16, so a sum that is taken there stays
    tl.store(w + 3, tl.sum(tl.where(r == 0, 4096.0, tl.where(r == 15, 1.0, 0.0)).to(tl.float16), 0))
    tl.store(w + 4, tl.sum(tl.where(r == 0, 512.0, tl.where(r == 15, 1.0, 0.0)).to(tl.bfloat16), 0))
""", dict(h=h, b=b, n=n, o=np.zeros(20, i32), w=np.zeros(5, f32)),
         dict(o=np.concatenate([[n.astype(i32).sum(), 115, 100, 10], n.astype(i32).cumsum()]).astype(i32),
              w=np.array([2063, b.astype(f64).cumsum().sum(), 256, 4096, 512], f32)))


def nans():
    a = np.array([1, np.nan, np.nan, -0.0, np.inf, -2, 3, np.nan], f32)
    b = np.array([np.nan, 2, np.nan, 0.0, np.nan, 1, -3, -np.inf], f32)
    q = np.array([3, 1, 7, 7, 2, 7, 0, 0], f32)
    with np.errstate(all="ignore"):
        want = np.stack([np.fmax(a, b), np.fmin(a, b), np.maximum(a, b), np.minimum(a, b)])
    want[:, 3] = 0
    got = run("""
@triton.jit
def k(a, b, q, o, m, i):
    r = tl.arange(0, 8)
    x, y, z = tl.load(a + r), tl.load(b + r), tl.load(q + r)
    tl.store(o + r, tl.maximum(x, y))
    tl.store(o + 8 + r, tl.minimum(x, y))
    tl.store(o + 16 + r, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(o + 24 + r, tl.minimum(x, y, tl.PropagateNan.ALL))
    tl.store(o + 32 + r, tl.maximum(x.to(tl.float64), y, propagate_nan=tl.PropagateNan.NONE))
    tl.store(o + 40 + r, tl.maximum(x.to(tl.float16), y.to(tl.float16)))
    tl.store(m, tl.max(x, 0))
    tl.store(m + 1, tl.min(x, 0))
    tl.store(m + 2, tl.max(tl.where(r < 8, float("nan"), x), 0))
    tl.store(m + 3, tl.clamp(tl.load(a + 1), -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL))
    tl.store(m + 4, tl.max(x.to(tl.float16), 0))
    v, w = tl.max(z, 0, return_indices=True)
    tl.store(m + 5, v)
    tl.store(i, w)
    tl.store(i + 1, tl.argmax(z, 0))
    tl.store(i + 2, tl.argmin(z, 0))
    tl.store(i + 3, tl.argmax(z, 0, tie_break_left=False))
    tl.store(i + 4, tl.argmin(z, 0, tie_break_left=False))
    v, w = tl.min(z, 0, return_indices=True, return_indices_tie_break_left=False)
    tl.store(i + 5, w)
    # one NaN at the start, larger than nothing: the rest decides
    tl.store(i + 6, tl.argmax(tl.where(r == 0, float("nan"), z), 0) < 8)
""", dict(a=a, b=b, q=q, o=np.zeros((6, 8), f32), m=np.zeros(6, f32), i=np.zeros(7, i32)), ["o", "m", "i"])
    for mode, g in got.items():
        np.testing.assert_array_equal(g["o"], np.stack([*want, want[0], want[0]]), err_msg=mode)
        np.testing.assert_array_equal(g["m"], np.array([np.inf, -2, np.nan, np.nan, np.inf, 7], f32), err_msg=mode)
        i = g["i"]
        assert list(i[:3]) == [2, 2, 6] and i[3] in (2, 3, 5) and i[4] in (6, 7) and i[5] in (6, 7) and i[6] == 1, (mode, i)


def combine_functions():
    x = rng.integers(-9, 9, (4, 16)).astype(i32)
    w = rng.uniform(0.5, 1.5, (4, 16)).astype(f32)
    run_ = np.zeros((2, 4, 16))
    for rev in range(2):
        h = np.zeros(4)
        for t in range(15, -1, -1) if rev else range(16):
            h = h * w[:, t] + x[:, t]
            run_[rev, :, t] = h
    got = run("""
@triton.jit
def keep_last(a, b):
    return b

@triton.jit
def keep_first(a, b):
    return a

@triton.jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2

@triton.jit
def three(a, b, c, d, e, f):
    return a + d, tl.minimum(b, e), tl.maximum(c, f)

@triton.jit
def branchy(a, b):
    if a > b:
        r = a
    else:
        r = b
    return r

@triton.jit
def k(x, w, o, q, s):
    m = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    r = tl.arange(0, 4)
    v, u = tl.load(x + m), tl.load(w + m)
    # not commutative: scans keep the order, forwards and backwards
    tl.store(o + m, tl.associative_scan(v, 1, keep_last))
    tl.store(o + 64 + m, tl.associative_scan(v, 1, keep_first))
    tl.store(o + 128 + m, tl.associative_scan(v, 1, keep_first, reverse=True))
    tl.store(o + 192 + m, tl.associative_scan(v, 0, branchy))
    a, b = tl.associative_scan((u, v.to(tl.float32)), 1, linear)
    tl.store(q + m, b)
    a, b = tl.associative_scan((u, v.to(tl.float32)), axis=1, combine_fn=linear, reverse=True)
    tl.store(q + 64 + m, b)
    c, d, e = tl.reduce((v, v, v), 1, three)
    tl.store(s + r, c)
    tl.store(s + 4 + r, d)
    tl.store(s + 8 + r, e)
    tl.store(s + 12 + r, tl.reduce(v, 1, branchy))
    tl.store(s + 16, tl.reduce(v, None, branchy))
    f, g, h = tl.reduce((v, v, v), axis=0, combine_fn=three, keep_dims=True)
    tl.static_assert(f.shape == (1, 16))
""", dict(x=x, w=w, o=np.zeros((4, 4, 16), i32), q=np.zeros((2, 4, 16), f32), s=np.zeros(17, i32)), ["o", "q", "s"])
    for mode, g in got.items():
        np.testing.assert_array_equal(g["o"], np.stack([x, np.broadcast_to(x[:, :1], x.shape), np.broadcast_to(x[:, 15:], x.shape),
                                                        np.maximum.accumulate(x, 0)]), err_msg=mode)
        np.testing.assert_allclose(g["q"], run_, rtol=2e-5, atol=2e-5, err_msg=mode)
        np.testing.assert_array_equal(g["s"], np.concatenate([x.sum(1), x.min(1), x.max(1), x.max(1), [x.max()]]), err_msg=mode)
    refused("""
@triton.jit
def two(a, b):
    return a, b

@triton.jit
def stores(a, b):
    return a + tl.atomic_add(tl.cast(1024, tl.pointer_type(tl.int32)), 1)  # ERROR: atomic_rmw inside of a combine function

@triton.jit
def checks(a, b):
    tl.device_assert(a < 100, "too large")  # ERROR: assert inside of a combine function
    return a + b

@triton.jit
def k(x):
    r = tl.arange(0, 16)
    d = tl.reduce(r, 0, stores)
    e = tl.associative_scan(r, 0, checks)
    a = tl.reduce(r, 0, two)  # ERROR: returns a tuple
    b = tl.reduce((r, r), 0, 5)  # ERROR: cannot be called
    c = tl.associative_scan(3, 0, two)  # ERROR: needs a tile
""", k="x=*f32")


def sorting():
    x = rng.permutation(64).reshape(4, 16).astype(f32) - 30
    n = rng.integers(-5, 5, (4, 16)).astype(i32)
    h = np.array([0, 1, 1, 7, 8, 300, -1, 2, 3, 3, 3, 0, 7, 7, -2**31, 2**31 - 1], i32)
    count = np.bincount(h[(h >= 0) & (h < 8)], minlength=8)
    same("""
@triton.jit
def k(x, n, h, o, w, c):
    m = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v, i = tl.load(x + m), tl.load(n + m)
    tl.store(o + m, tl.sort(v))
    tl.store(o + 64 + m, tl.sort(v, descending=True))
    tl.store(o + 128 + m, tl.sort(v, dim=1, descending=False))
    tl.store(o + 192 + m, tl.flip(v))
    tl.store(o + 256 + m, tl.flip(v, 0))
    tl.store(o + 320 + m, tl.flip(v, dim=1))
    tl.store(w + m, tl.sort(i))
    tl.store(w + 64 + m, v.sort(descending=True).to(tl.int32))
    tl.store(w + 128 + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :], tl.topk(i, 4))
    r = tl.arange(0, 16)
    d = tl.load(h + r)
    b = tl.arange(0, 8)
    tl.static_assert(tl.histogram(d, 8).dtype == tl.int32 and tl.histogram(d, 8).shape == (8,))
    tl.store(c + b, tl.histogram(d, 8))
    tl.store(c + 8 + b, tl.histogram(d, 8, mask=r < 5))
    tl.store(c + 16, tl.sum(tl.histogram(d.to(tl.uint32), 2)))
    tl.store(c + 17 + r, tl.sort(d.to(tl.int8)))
""", dict(x=x, n=n, h=h, o=np.zeros((6, 4, 16), f32), w=np.zeros(144, i32), c=np.zeros(33, i32)),
         dict(o=np.stack([np.sort(x), -np.sort(-x), np.sort(x), x[:, ::-1], x[::-1], x[:, ::-1]]),
              w=np.concatenate([np.sort(n).ravel(), (-np.sort(-x)).astype(i32).ravel(), -np.sort(-n)[:, :4].ravel()]).astype(i32),
              c=np.concatenate([count, [1, 2, 0, 0, 0, 0, 0, 1], [count[:2].sum()], np.sort(h.astype(i8))]).astype(i32)))
    refused("""
@triton.jit
def k(x):
    v = tl.zeros((4, 16), tl.float32)
    a = tl.sort(v, dim=0)  # ERROR: last
    b = tl.topk(v, 3)  # ERROR: power of two
    c = tl.histogram(tl.zeros((16,), tl.float32), 8)  # ERROR: integers
    d = tl.histogram(tl.zeros((4, 4), tl.int32), 8)  # ERROR: one axis
""", k="x=*f32")


def philox(seed, c, rounds=10):
    c = [np.asarray(v, u64) & u64(0xFFFFFFFF) for v in c]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    low = u64(0xFFFFFFFF)
    for _ in range(rounds):
        a, b = u64(0xD2511F53) * c[0], u64(0xCD9E8D57) * c[2]
        c = [(b >> u64(32)) ^ c[1] ^ u64(k0), b & low, (a >> u64(32)) ^ c[3] ^ u64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([v.astype(u32) for v in c])


def uniform(word):
    x = word.view(i32)
    return np.where(x < 0, -x - 1, x).astype(f32) * f32(4.6566127342e-10)


def random_numbers():
    z = np.zeros(64, u64)
    r = np.arange(64, dtype=u64)
    seed, big = 0x123456789ABCDEF0, r + u64(2**32 - 8)
    w = philox(seed, [r, z, z, z])
    far = philox(seed, [big & u64(0xFFFFFFFF), big >> u64(32), z, z])
    seven = philox(42, [r, z, z, z], 7)
    direct = philox(7, [r, r + u64(5), z + u64(3), z + u64(2**32 - 1)])
    u = np.stack([uniform(v) for v in w])
    same("""
@triton.jit
def k(o, q, seed, small, base):
    r = tl.arange(0, 64)
    a, b, c, d = tl.randint4x(seed, r)
    tl.static_assert(a.dtype == tl.uint32 and tl.randint(seed, r).dtype == tl.uint32 and tl.rand(seed, r).dtype == tl.float32)
    tl.store(o + r, a)
    tl.store(o + 64 + r, b)
    tl.store(o + 128 + r, c)
    tl.store(o + 192 + r, d)
    tl.store(o + 256 + r, tl.randint(seed, r))
    tl.store(o + 320 + r, tl.randint(seed, r + base))
    tl.store(o + 384 + r, tl.randint(small, r, n_rounds=7))
    a, b, c, d = tl.philox(7, r, r + 5, 3, 4294967295)
    tl.store(o + 448 + r, a)
    tl.store(o + 512 + r, d)
    e, f, g, h = tl.rand4x(seed, r)
    tl.store(q + r, tl.rand(seed, r))
    tl.store(q + 64 + r, e)
    tl.store(q + 128 + r, h)
    tl.store(q + 192 + r, tl.rand(small, r.to(tl.uint32)))
""", dict(o=np.zeros((9, 64), u32), q=np.zeros((4, 64), f32), seed=seed, small=42, base=2**32 - 8),
         dict(o=np.stack([*w, w[0], far[0], seven[0], direct[0], direct[3]]), q=np.stack([u[0], u[0], u[3], uniform(philox(42, [r, z, z, z])[0])])))
    u1 = np.maximum(f32(1e-7), u[0])
    rad = np.sqrt(-2 * np.log(u1.astype(f64)))
    th = 6.283185307179586 * u[1].astype(f64)
    same("""
@triton.jit
def k(q, seed):
    r = tl.arange(0, 64)
    tl.store(q + r, tl.randn(seed, r))
    a, b, c, d = tl.randn4x(seed, r)
    tl.store(q + 64 + r, a)
    tl.store(q + 128 + r, b)
""", dict(q=np.zeros((3, 64), f32), seed=seed), dict(q=np.stack([rad * np.cos(th), rad * np.cos(th), rad * np.sin(th)])), bound=1e-6)


def smallest_and_largest():
    x = np.array([3, -2, 7, 5], i32)
    same("""
@triton.jit
def k(x, o, w, n, s, N: tl.constexpr):
    r = tl.arange(0, 4)
    v = tl.load(x + r)
    # reductions of a tile; of scalars, and of constants while compiling
    tl.store(o, tl.min(v, 0))
    tl.store(o + 1, tl.max(v, 0))
    tl.store(o + 2, min(n, 4))
    tl.store(o + 3, max(n, 4, 9))
    tl.store(o + 4, min(n, N))
    tl.static_assert(min(N, 4) == 4 and max(N, 4) == 16 and min(3, 1, 2) == 1 and max(2.5, 1) == 2.5)
    m: tl.constexpr = min(N, 8)
    tl.store(o + 5 + tl.arange(0, m), m)
    tl.static_assert(min(n, 2.5).dtype == tl.float32 and max(s, 1).dtype == tl.float32)
    tl.store(o + 13 + r, max(v, 0))
    tl.store(o + 17 + r, tl.maximum(v, n))
    tl.store(w, float("inf"))
    tl.store(w + 1, float("-inf"))
    tl.store(w + 2, max(s, float("nan")))
    tl.store(w + 3, -float("inf"))
    tl.store(w + 4 + r, tl.where(v > 0, v, float("-inf")))
    acc = tl.full((4,), float("-inf"), tl.float32)
    tl.store(w + 8, tl.max(tl.maximum(acc, v.to(tl.float32)), 0))
    tl.store(w + 9, float(3) + float("1e3") + int(2.9) + float(True))
    tl.static_assert(float("inf") > 1e300 and float("nan") != float("nan"))
    tl.store(w + 10, abs(-2.5))
""", dict(x=x, o=np.zeros(21, i32), w=np.zeros(11, f32), n=6, s=0.5, N=16),
         dict(o=np.array([-2, 7, 4, 9, 6] + [8] * 8 + [3, 0, 7, 5] + [6, 6, 7, 6], i32),
              w=np.array([np.inf, -np.inf, 0.5, -np.inf, 3, -np.inf, 7, 5, 7, 1006, 2.5], f32)))


def messages():
    with tempfile.TemporaryDirectory() as folder:
        f = Path(folder) / "k.py"
        f.write_text(HEAD + """
@triton.jit
def k(o, n, N: tl.constexpr):
    r = tl.arange(0, 2)
    tl.device_print("count", n)
    tl.device_print("pair: ", r, n)
    tl.device_print("word", r, hex=True)
    print("half", n * 0.5)
    tl.static_print("built for", N, tl.float16)
    tl.static_assert(N == 4, f"N is {N}")
    tl.device_assert(n == 7, "n is not 7")
    tl.device_assert(r < 2, "r", mask=r < 1)
    assert n > 0, "n is positive"
    tl.store(o + r, r + n)
""")
        for mode in MODES.values():
            p = ditron("run", f, "--grid", 1, "o=zeros:i32[2]", "n=7", "N=4", *mode)
            text = p.stdout + p.stderr
            for want in ("pid (0, 0, 0)", "count: 7", "idx (0) pair: (operand 0) 0", "idx (1) pair: (operand 0) 1", "pair: (operand 1) 7", "word: 0x00000001",
                         "half: 3.5", "built for 4 fp16", "o i32[2] = 7 8"):
                assert want in text, f"{want!r} is not in {text}"
            p = ditron("run", f, "--grid", 1, "o=zeros:i32[2]", "n=8", "N=4", *mode, ok=False)
            assert "n is not 7" in p.stdout + p.stderr and "k.py:" in p.stdout + p.stderr, p.stderr
        p = ditron("run", f, "--grid", 1, "o=zeros:i32[2]", "n=8", "N=5", ok=False)
        assert "static assertion failed: N is 5" in p.stderr, p.stderr
    refused("""
@triton.jit
def k(x, n, N: tl.constexpr):
    r = tl.arange(0, 2)
    tl.static_assert(N == 3, f"N is {N}, tiles are {r.shape} of {r.dtype}, {N * 0.5:.2f} {N:04d} {'a'!r}")  # ERROR: static assertion failed: N is 4, tiles are
    tl.static_assert(n == 3)  # ERROR: tl.static_assert needs a condition known at compile time
    assert N < 3, f"N is {N}"  # ERROR: assertion failed at compile time: N is 4
    tl.device_print(n)  # ERROR: must be a string
""", k="x=*f32, n=i32, N=4")


case("sem 25: a masked-off load touches no address and reads 0 or `other`, cast to the pointee", masked_loads)
case("sem 25: the rows of a block that its mask leaves out are not read where all of it becomes one number", masked_rows)
case("sem 26: bool pointers hold bytes; stores cast to the pointee; a scalar pointer takes scalars", stores_cast)
case("sem 27: scalar atomics happen once a program, return the old value, and compare floats by bits", atomics)
case("sem 28: a program's loads see its stores, in order", program_order)
case("sem 29: products: precision names, accumulation and result types", products)
case("sem 30: acc= matches the result; one row, one column, batches", accumulators)
case("sem 31: dot_scaled: e2m1 two to a byte, e8m0 scales by 32", scaled_products)
case("sem 32: sum keeps float types and widens small integers; max and min widen; cumsum widens bf16", sum_types)
case("sem 33: NaN is ignored unless propagated; ties go left by default", nans)
case("sem 34: combine functions on tuples; scans keep order and reverse; side effects are refused", combine_functions)
case("sem 35: sort, topk, flip on the last axis; histogram drops what lies outside", sorting)
case("sem 36: rand, randint, randn: philox 4x32, bit for bit", random_numbers)
case("sem 37: tl.min reduces, min compares scalars and folds constants; float('inf')", smallest_and_largest)
case("sem 38: device_print, device_assert, static_assert with f-strings", messages)
finish()
