"""libdevice by name: every function of Triton's list works on fp32 and fp64 (or on its own types), against Python's math in
double precision, or is refused by its name."""
import math

import numpy as np

from _ditron import case, finish
from _kernels import refused, run, same

i32, i64, u32, u64, f32, f64 = np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64


def erfcx(x):
    if x < 20:
        return math.exp(x * x) * math.erfc(x)
    return 1 / (x * math.sqrt(math.pi)) * (1 - 1 / (2 * x * x) + 3 / (4 * x**4) - 15 / (8 * x**6) + 105 / (16 * x**8))


def inverse(f, y, lo, hi):
    """x in [lo, hi] where the growing f is y."""
    for _ in range(200):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if f(mid) < y else (lo, mid)
    return (lo + hi) / 2


def cbrt(x):
    return math.copysign(abs(x) ** (1 / 3), x)


def remainder(x, y):
    return math.remainder(x, y)


def norm(*v):
    return math.sqrt(sum(a * a for a in v))


WIDE = [-3.5, -2.0, -1.25, -0.5, -1e-3, 1e-5, 0.25, 0.75, 1.0, 1.5, 2.75, 4.5, 10.0, 0.1, 3.0, 6.5]
UNIT = [-1.0, -0.999, -0.75, -0.5, -1e-3, -1e-6, 1e-7, 1e-3, 0.1, 0.3, 0.5, 0.6, 0.75, 0.9, 0.9999, 1.0]
OPEN = [-0.999, -0.9, -0.75, -0.5, -1e-3, -1e-6, 1e-7, 1e-3, 0.1, 0.3, 0.5, 0.6, 0.75, 0.9, 0.99, 0.9999]
ABOVE = [1.0, 1.0001, 1.1, 1.5, 2.0, 3.0, 10.0, 100.0, 1e3, 1e4, 1e6, 1e8, 1e9, 1e10, 1e12, 1e15]
PART = [1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.99, 0.999, 0.3, 0.7, 0.05]
POSITIVE = [1e-6, 1e-3, 0.1, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.5, 6.0, 10.0, 20.0, 30.0]
SCALES = [-3, -1, 0, 1, 2, 3, 5, 10, -10, 20, -20, 7, 4, -5, 6, 0]
ONE = {
    "atan": (math.atan, WIDE), "asin": (math.asin, UNIT), "acos": (math.acos, UNIT), "asinh": (math.asinh, WIDE), "acosh": (math.acosh, ABOVE),
    "atanh": (math.atanh, OPEN), "cbrt": (cbrt, WIDE), "rcbrt": (lambda x: 1 / cbrt(x), WIDE),
    "sinpi": (lambda x: math.sin(math.pi * math.fmod(x, 2)), WIDE), "cospi": (lambda x: math.cos(math.pi * math.fmod(x, 2)), WIDE),
    "erfc": (math.erfc, WIDE), "erfcx": (erfcx, [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 2.4, 2.6, 3.0, 5.0, 8.0, 10.0, 15.0, 19.0, 30.0]),
    "erfinv": (lambda y: inverse(math.erf, y, -7, 7), OPEN), "erfcinv": (lambda y: -inverse(lambda x: math.erfc(-x), y, -7, 7), PART),
    "normcdf": (lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), WIDE),
    "normcdfinv": (lambda p: inverse(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), p, -9, 9), PART),
    "tgamma": (math.gamma, POSITIVE), "lgamma": (math.lgamma, POSITIVE), "saturatef": (lambda x: min(max(x, 0), 1), WIDE),
    "logb": (lambda x: math.frexp(x)[1] - 1, WIDE), "rsqrt_rn": (lambda x: 1 / math.sqrt(x), POSITIVE),
    "sin": (math.sin, WIDE), "cos": (math.cos, WIDE), "tan": (math.tan, WIDE), "exp": (math.exp, WIDE), "exp2": (lambda x: 2**x, WIDE),
    "exp10": (lambda x: 10**x, OPEN), "expm1": (math.expm1, WIDE), "log": (math.log, POSITIVE), "log1p": (math.log1p, POSITIVE),
    "log2": (math.log2, POSITIVE), "log10": (math.log10, POSITIVE), "sinh": (math.sinh, WIDE), "cosh": (math.cosh, WIDE), "tanh": (math.tanh, WIDE),
    "erf": (math.erf, WIDE), "sqrt": (math.sqrt, POSITIVE), "rsqrt": (lambda x: 1 / math.sqrt(x), POSITIVE), "floor": (math.floor, WIDE),
    "ceil": (math.ceil, WIDE), "trunc": (math.trunc, WIDE), "rint": (lambda x: np.rint(x), WIDE), "nearbyint": (lambda x: np.rint(x), WIDE),
    "round": (lambda x: math.copysign(math.floor(abs(x) + 0.5), x), WIDE), "abs": (abs, WIDE), "rcp_rn": (lambda x: 1 / x, WIDE),
    "sqrt_rn": (math.sqrt, POSITIVE)}
SINGLE = {"fast_tanf": (math.tan, OPEN), "fast_exp10f": (lambda x: 10**x, OPEN), "fast_log10f": (math.log10, POSITIVE), "fast_expf": (math.exp, OPEN),
          "fast_logf": (math.log, POSITIVE), "fast_log2f": (math.log2, POSITIVE), "fast_sinf": (math.sin, OPEN), "fast_cosf": (math.cos, OPEN)}
TWO = {"atan2": math.atan2, "rhypot": lambda x, y: 1 / math.hypot(x, y), "fdim": lambda x, y: max(x - y, 0), "remainder": remainder,
       "nextafter": None, "add_rn": lambda x, y: x + y, "sub_rn": lambda x, y: x - y, "mul_rn": lambda x, y: x * y, "hypot": math.hypot,
       "fmod": math.fmod, "copysign": math.copysign, "div_rn": lambda x, y: x / y}
# relative errors allowed: a few units in the last place (next to zeros of a function, absolute ones); for the error family and gamma in double what the head of
# src/front/builtin_ldmath.c says
LOOSE = {"erfc", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv", "tgamma", "lgamma", "expm1", "exp10", "tan", "log10", "sinh"}


def close(name, mode, dtype, got, want):
    limit = (3e-7 if name not in ("exp10", "fast_exp10f", "tan", "fast_tanf") else 2e-6) if dtype == f32 else 2e-12 if name in LOOSE else 4e-15
    floor = 3e-8 if name in ("sin", "cos", "cospi", "fast_sinf", "fast_cosf") and dtype == f32 else 2e-16 if name in ("cospi", "sinpi", "acos", "normcdfinv") else 1e-15 if name == "lgamma" else 1e-45
    error = np.abs(got.astype(f64) - want) - floor
    bad = ~(error <= limit * np.abs(want))
    assert not bad.any(), f"{name} {mode} {dtype.__name__}: {got[bad]} where {want[bad]}"


def one_operand(table, dtype):
    names = list(table)
    x = np.array([table[n][1] for n in names], dtype)
    code = "@triton.jit\ndef k(x, o):\n    r = tl.arange(0, 16)\n" + "".join(
        f"    tl.store(o + {16 * i} + r, libdevice.{n}(tl.load(x + {16 * i} + r)))\n" for i, n in enumerate(names))
    for mode, g in run(code, dict(x=x, o=np.zeros_like(x)), ["o"]).items():
        for i, n in enumerate(names):
            want = np.array([table[n][0](float(v)) if abs(v) != 1 or n != "atanh" else math.inf for v in x[i]], f64)
            close(n, mode, dtype, g["o"][i], want)


def two_operands(dtype):
    names = list(TWO)
    x, y = np.array(WIDE, dtype), np.array(WIDE[5:] + WIDE[:5], dtype)
    code = "@triton.jit\ndef k(x, y, o, q):\n    r = tl.arange(0, 16)\n    a, b = tl.load(x + r), tl.load(y + r)\n" + "".join(
        f"    tl.store(o + {16 * i} + r, libdevice.{n}(a, b))\n" for i, n in enumerate(names)) + """
    tl.store(q + r, libdevice.norm3d(a, b, 2.0))
    tl.store(q + 16 + r, libdevice.rnorm3d(a, b, a))
    tl.store(q + 32 + r, libdevice.norm4d(a, b, a, 1.0))
    tl.store(q + 48 + r, libdevice.rnorm4d(a, b, a, b))
    tl.store(q + 64 + r, libdevice.fma_rn(a, b, a))
    tl.store(q + 80 + r, libdevice.fma(a, b, a))
    tl.store(q + 96 + r, libdevice.ldexp(a, r - 8))
    tl.store(q + 112 + r, libdevice.scalbn(a, 3))
"""
    for mode, g in run(code, dict(x=x, y=y, o=np.zeros((len(names), 16), dtype), q=np.zeros((8, 16), dtype)), ["o", "q"]).items():
        for i, n in enumerate(names):
            if n == "nextafter":
                np.testing.assert_array_equal(g["o"][i], np.nextafter(x, y), err_msg=mode)
            else:
                close(n, mode, dtype, g["o"][i], np.array([TWO[n](float(a), float(b)) for a, b in zip(x, y)]))
        a, b = x.astype(f64), y.astype(f64)
        want = [np.sqrt(a * a + b * b + 4), 1 / np.sqrt(2 * a * a + b * b), np.sqrt(2 * a * a + b * b + 1), 1 / np.sqrt(2 * (a * a + b * b)), a * b + a,
                a * b + a, np.ldexp(a, np.arange(16) - 8), a * 8]
        for i, w in enumerate(want):
            np.testing.assert_allclose(g["q"][i], w, rtol=1e-6 if dtype == f32 else 1e-13, err_msg=f"{mode} {i}")


def special_values():
    inf, nan = math.inf, math.nan
    v = np.array([0.0, -0.0, inf, -inf, nan, 1e-310, -5e-324, 1e308], f64)
    with np.errstate(all="ignore"):
        want = np.stack([np.arctan(v), np.arcsinh(v), np.cbrt(v), np.array([2.0 / 2, 1, 0, 2, nan, 1, 1, 0]),
                         np.array([-inf, -inf, inf, inf, nan, -1030, -1074, 1023]), np.arctan2(v, v[::-1]), np.nextafter(v, v[::-1]),
                         np.array([nan, nan, nan, nan, nan, nan, nan, nan])])
    for mode, g in run("""
@triton.jit
def k(x, o, i):
    r = tl.arange(0, 8)
    v, w = tl.load(x + r), tl.load(x + 7 - r)
    tl.store(o + r, libdevice.atan(v))
    tl.store(o + 8 + r, libdevice.asinh(v))
    tl.store(o + 16 + r, libdevice.cbrt(v))
    tl.store(o + 24 + r, libdevice.erfc(v))
    tl.store(o + 32 + r, libdevice.logb(v))
    tl.store(o + 40 + r, libdevice.atan2(v, w))
    tl.store(o + 48 + r, libdevice.nextafter(v, w))
    tl.store(o + 56 + r, libdevice.acosh(tl.where(v > 0, 0.5, v * 0)))
    tl.store(i + r, libdevice.ilogb(v))
    tl.store(i + 8 + r, libdevice.signbit(v))
    tl.store(i + 16 + r, libdevice.isnan(v))
    tl.store(i + 24 + r, libdevice.isinf(v))
    tl.store(i + 32 + r, libdevice.isfinited(v))
    tl.store(i + 40 + r, libdevice.finitef(v.to(tl.float32)))
""", dict(x=v, o=np.zeros((8, 8)), i=np.zeros((6, 8), i32)), ["o", "i"]).items():
        np.testing.assert_allclose(g["o"], want, rtol=1e-13, err_msg=mode)
        np.testing.assert_array_equal(np.signbit(g["o"][:3, :4]), np.signbit(want[:3, :4]), err_msg=mode)
        low, top = -2**31, 2**31 - 1
        np.testing.assert_array_equal(g["i"], np.array([[low, low, top, top, low, -1030, -1074, 1023], np.signbit(v), np.isnan(v), np.isinf(v),
                                                        np.isfinite(v), np.isfinite(v) & (np.abs(v) < 1e300)]).astype(i32), err_msg=mode)


def conversions():
    v = np.array([0.5, 1.5, -0.5, -2.5, 2.7, -2.7, 3e9, -3e9, 5e9, 1e20, -1e20, math.nan, 2147483647.5, -0.0, 0.1, 1e-300], f64)
    n = np.array([2**24 + 1, -(2**24 + 1), 2**24 + 3, 7, 2**31 - 1, -2**31, 0, 123456789], i32)
    code, want = "@triton.jit\ndef k(x, n, a, b, c, d, e):\n    r = tl.arange(0, 16)\n    v = tl.load(x + r)\n", {}
    rounding = dict(rn=np.rint, rz=np.trunc, rd=np.floor, ru=np.ceil)
    ends = dict(a=("int", i32), b=("uint", u32), c=("ll", i64), d=("ull", u64))
    for out, (text, t) in ends.items():
        rows, info = [], np.iinfo(t)
        for j, (mode, f) in enumerate(rounding.items()):
            for h, source in enumerate(("double", "float")):
                with np.errstate(all="ignore"):
                    x = v if source == "double" else v.astype(f32)
                code += f"    tl.store({out} + {16 * (2 * j + h)} + r, libdevice.{source}2{text}_{mode}(v.to(tl.float{64 if h == 0 else 32})))\n"
                whole = [None if math.isnan(y) else int(y) for y in f(x.astype(f64))]
                rows.append([(info.min if text == "ll" else 0) if y is None else min(max(y, info.min), info.max) for y in whole])
        want[out] = np.array(rows, t)
    code += "    s = tl.arange(0, 8)\n    i = tl.load(n + s)\n"
    rows = []
    for j, mode in enumerate(("rn", "rz", "rd", "ru")):
        code += f"    tl.store(e + {24 * j} + s, libdevice.int2float_{mode}(i))\n    tl.store(e + {24 * j + 8} + s, libdevice.uint2float_{mode}(i.to(tl.uint32)))\n"
        code += f"    tl.store(e + {24 * j + 16} + s, libdevice.double2float_{mode}(i * tl.full((8,), 1.1, tl.float64) + 1e-3))\n"
        for exact in (n.astype(f64), n.astype(u32).astype(f64), n.astype(f64) * 1.1 + 1e-3):
            near = exact.astype(f32)
            down = np.where(near.astype(f64) > exact, np.nextafter(near, f32(-np.inf)), near)
            up = np.where(near.astype(f64) < exact, np.nextafter(near, f32(np.inf)), near)
            rows.append(dict(rn=near, rd=down, ru=up, rz=np.where(exact > 0, down, up))[mode])
    want["e"] = np.array(rows, f32)
    zeros = dict(a=np.zeros((8, 16), i32), b=np.zeros((8, 16), u32), c=np.zeros((8, 16), i64), d=np.zeros((8, 16), u64), e=np.zeros((12, 8), f32))
    same(code, dict(x=v, n=n, **zeros), want)


def integers_and_bits():
    a = np.array([0, 1, -1, 0x12345678, -2**31, 2**31 - 1, 77, -1000], i32)
    b = np.array([5, -7, -1, 0x0F0F0F0F, 2, 2**31 - 1, -77, 1001], i32)
    big, other = a.astype(i64) * 4000000007 + 3, b.astype(i64) * 3000000019 - 1
    s = np.array([0x3210, 0x7654, 0x0123, 0x5040, 0x1111, 0x7, 0x2222, 0x6420], i32)
    rev = np.array([int(f"{int(v):032b}"[::-1], 2) for v in a.view(u32)], u32).view(i32)
    table = np.concatenate([a.view(np.uint8).reshape(8, 4), b.view(np.uint8).reshape(8, 4)], 1)
    perm = np.array([[table[i, int(s[i]) >> 4 * j & 7] for j in range(4)] for i in range(8)], np.uint8).view(i32).ravel()
    low = lambda v: ((v.astype(i64) << 40) >> 40)
    same("""
@triton.jit
def k(a, b, s, p, q, o, w, d):
    r = tl.arange(0, 8)
    x, y, z = tl.load(a + r), tl.load(b + r), tl.load(s + r)
    u, v = tl.load(p + r), tl.load(q + r)
    tl.store(o + r, libdevice.mulhi(x, y))
    tl.store(o + 8 + r, libdevice.mulhi(x.to(tl.uint32), y.to(tl.uint32)).to(tl.int32))
    tl.store(o + 16 + r, libdevice.mul24(x, y))
    tl.store(o + 24 + r, libdevice.brev(x))
    tl.store(o + 32 + r, libdevice.byte_perm(x, y, z))
    tl.store(o + 40 + r, libdevice.hadd(x, y))
    tl.store(o + 48 + r, libdevice.rhadd(x, y))
    tl.store(o + 56 + r, libdevice.sad(z, 20, 3))
    f = x.to(tl.float32)
    tl.store(o + 64 + r, libdevice.float_as_int(f))
    tl.store(o + 72 + r, libdevice.float_as_int(libdevice.int_as_float(y)))
    e = libdevice.hiloint2double(x, y)
    tl.store(o + 80 + r, libdevice.double2hiint(e))
    tl.store(o + 88 + r, libdevice.double2loint(e))
    tl.store(o + 96 + r, libdevice.popc(x))
    tl.store(o + 104 + r, libdevice.clz(x))
    tl.store(o + 112 + r, libdevice.ffs(x))
    tl.store(o + 120 + r, libdevice.float_as_uint(libdevice.uint_as_float(y.to(tl.uint32))).to(tl.int32))
    tl.store(w + r, libdevice.mulhi(u, v))
    tl.store(w + 8 + r, libdevice.double_as_longlong(libdevice.longlong_as_double(u)))
    tl.store(w + 16 + r, libdevice.llrint(x.to(tl.float64) + 0.5))
    tl.store(w + 24 + r, libdevice.llround(x.to(tl.float64) + 0.5))
    tl.store(w + 32 + r, libdevice.brev(libdevice.brev(u)))
    tl.store(d + r, libdevice.ll2double_rn(u))
    tl.store(d + 8 + r, libdevice.ull2double_rn(u.to(tl.uint64)))
    tl.store(d + 16 + r, libdevice.ll2float_rn(u))
    tl.store(d + 24 + r, libdevice.int2double_rn(x))
    tl.store(d + 32 + r, libdevice.uint2double_rn(x.to(tl.uint32)))
""", dict(a=a, b=b, s=s, p=big, q=other, o=np.zeros((16, 8), i32), w=np.zeros((5, 8), i64), d=np.zeros((5, 8))),
         dict(o=np.stack([(a.astype(i64) * b.astype(i64) >> 32), (a.view(u32).astype(u64) * b.view(u32).astype(u64) >> u64(32)).astype(u32).view(i32),
                          (low(a) * low(b)).astype(i32), rev, perm, (a.astype(i64) + b) >> 1, (a.astype(i64) + b + 1) >> 1, np.abs(s - 20) + 3,
                          a.astype(f32).view(i32), b, a, b, [bin(int(v)).count("1") for v in a.view(u32)],
                          [32 - int(v).bit_length() for v in a.view(u32)], [(int(v) & -int(v)).bit_length() for v in a.view(u32)], b]).astype(i32),
              w=np.stack([np.array([int(x) * int(y) >> 64 for x, y in zip(big, other)], i64), big, np.rint(a + 0.5).astype(i64),
                          [int(math.copysign(math.floor(abs(x + 0.5) + 0.5), x + 0.5)) for x in a.astype(f64)], big]).astype(i64),
              d=np.stack([big.astype(f64), big.astype(u64).astype(f64), big.astype(f32).astype(f64), a.astype(f64), a.view(u32).astype(f64)])))


def by_name():
    rounds = [f"{n}_{m}" for n in ("add", "sub", "mul", "div", "fma", "rcp", "sqrt") for m in ("rz", "rd", "ru")]
    arguments = lambda n: "(v, v, v)" if n.startswith("fma") else "(v)" if n[:3] in ("rcp", "sqr") else "(v, v)"
    refused("@triton.jit\ndef k(x):\n    v = tl.load(x + tl.arange(0, 4))\n" + "".join(
        f"    a = libdevice.{n}{arguments(n)}  # ERROR: libdevice.{n} rounds in a direction, which is not supported\n" for n in rounds[:12]), k="x=*f32")
    refused("@triton.jit\ndef k(x):\n    v = tl.load(x + tl.arange(0, 4))\n" + "".join(
        f"    a = libdevice.{n}(v)  # ERROR: libdevice.{n} has no form outside of NVIDIA's device library\n"
        for n in ("j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1")) + """    b = libdevice.atan(v.to(tl.float16))  # ERROR: libdevice.atan takes fp32 or fp64 here, not fp16
    c = libdevice.atan2(v, v.to(tl.float64))  # ERROR: libdevice.atan2 takes fp32 here, not fp64
    d = libdevice.brev(v)  # ERROR: libdevice.brev takes integers of 32 or 64 bits here, not fp32
    e = libdevice.ll2float_rz(v)  # ERROR: libdevice.ll2float_rz rounds 64-bit integers in a direction
    f = libdevice.no_such(v)  # ERROR: no_such
""", k="x=*f32")
    try:
        from triton.language.extra import libdevice  # where Triton is installed: its list, name by name
    except ImportError:
        return
    import inspect
    names = [n for n, f in vars(libdevice).items() if callable(f) and not n.startswith("_") and "arg0" in inspect.signature(f).parameters]
    assert len(names) > 150, names
    code = "@triton.jit\ndef k(x):\n" + "".join(f"    tl.static_assert(hasattr(libdevice, '{n}'))\n" for n in names) + "    tl.store(x, 1.0)\n"
    same(code, dict(x=np.zeros(1, f32)), dict(x=np.ones(1, f32)), modes=("interp",))


case("functions of one operand, fp32", one_operand, ONE, f32)
case("functions of one operand, fp64", one_operand, ONE, f64)
case("fast forms, fp32", one_operand, SINGLE, f32)
case("functions of more operands, fp32", two_operands, f32)
case("functions of more operands, fp64", two_operands, f64)
case("zeros, infinities, NaN and subnormals", special_values)
case("conversions with a rounding", conversions)
case("integers and bits", integers_and_bits)
case("every name of the list is known; what has no form here is refused", by_name)
finish()
