"""Every single-device kernel of the library on the interpreter, in the stage that GPUs run (under the checker, which
would find a missing barrier) and on the CPU target, against NumPy, and the first against the last.
Ragged shapes included. TIMEOUT: 600"""
import numpy as np

from _ditron import KERNELS, below, bf16, case, finish, rel_err, run_kernel

rng = np.random.default_rng(7)
MODES = {"interp": ["--interp"], "lowered": ["--stage", "lowered", "--check"], "cpu": []}


def cdiv(a, b):
    return -(-a // b)


def pow2(n):
    return max(16, 1 << (n - 1).bit_length())


def both(kernel, grid, values, outs, want, bound, **kw):
    """All against the reference, then the interpreter against the CPU."""
    got = {m: run_kernel(f"{KERNELS}/{kernel}", grid, values, outs, mode=a, **kw) for m, a in MODES.items()}
    for m, result in got.items():
        for name, w in want.items():
            below(rel_err(result[name], w), bound, f"{m} {name}")
    for name in want:
        below(rel_err(got["cpu"][name], got["interp"][name]), bound, f"cpu against interp, {name}")


def add(n, dtype):
    x, y = rng.standard_normal(n).astype(dtype), rng.standard_normal(n).astype(dtype)
    both("elementwise.py:add_kernel", [cdiv(n, 256)], dict(x_ptr=x, y_ptr=y, out_ptr=np.zeros(n, dtype), n_elements=n, BLOCK_SIZE=256),
         ["out_ptr"], dict(out_ptr=x + y), 1e-7 if dtype == np.float32 else 1e-3)


def silu_mul(n):
    g, u = rng.standard_normal(n).astype(np.float32), rng.standard_normal(n).astype(np.float32)
    both("elementwise.py:silu_mul_kernel", [cdiv(n, 128)],
         dict(gate_ptr=g, up_ptr=u, out_ptr=np.zeros(n, np.float32), n_elements=n, BLOCK_SIZE=128), ["out_ptr"],
         dict(out_ptr=g / (1 + np.exp(-g.astype(np.float64))) * u), 1e-6)


def softmax(m, n, grid):
    x = (rng.standard_normal((m, n)) * 4).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True, initial=-np.inf))
    both("softmax.py:softmax_kernel", [grid], dict(out_ptr=np.zeros_like(x), x_ptr=x, x_row_stride=n, out_row_stride=n, n_rows=m,
                                                   n_cols=n, BLOCK_SIZE=pow2(n)), ["out_ptr"], dict(out_ptr=e / e.sum(1, keepdims=True)), 1e-6)


def norm(m, n, layer):
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, n), n, n))
    d = x.astype(np.float64)
    values = dict(x_ptr=x, w_ptr=w, out_ptr=np.zeros_like(x), row_stride=n, n_rows=m, n_cols=n, eps=1e-5, BLOCK_SIZE=pow2(n))
    if layer:
        want = (d - d.mean(1, keepdims=True)) / np.sqrt(d.var(1, keepdims=True) + 1e-5) * w + b
        both("norm.py:layer_norm_kernel", [max(1, min(m, 5))], dict(values, b_ptr=b), ["out_ptr"], dict(out_ptr=want), 1e-6)
    else:
        want = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w
        both("norm.py:rms_norm_kernel", [min(m, 5)], values, ["out_ptr"], dict(out_ptr=want), 1e-6)


def matmul(style, m, n, k, dtype, blocks=(32, 32, 16)):
    bm, bn, bk = blocks
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    c = np.zeros((m, n), dtype)
    want = a.astype(np.float64) @ b.astype(np.float64)
    values = dict(M=m, N=n, K=k, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, GROUP_M=3)
    strides = dict(stride_am=k, stride_ak=1, stride_bk=n, stride_bn=1, stride_cm=n, stride_cn=1)
    grid = [cdiv(m, bm) * cdiv(n, bn)]
    out = "c_ptr"
    if style in ("pointer", "wrapped", "block_ptr"):
        name = "matmul_kernel" if style == "pointer" else f"matmul_{style}_kernel"
        values = dict(a_ptr=a, b_ptr=b, c_ptr=c, **values, **strides)
    elif style == "descriptor":
        name, out = "matmul_descriptor_kernel", "c_desc"
        values = dict(a_desc=("desc", a, (bm, bk)), b_desc=("desc", b, (bk, bn)), c_desc=("desc", c, (bm, bn)), **values)
    else:
        name, grid = "matmul_persistent_kernel", [3]
        values = dict(a_ptr=a, b_ptr=b, c_ptr=c, **values)
    both(f"matmul.py:{name}", grid, values, [out], {out: want}, 1e-6 if dtype == np.float32 else 1e-3)


def transposed_strides():
    """A and B column-major through the stride arguments."""
    m, n, k = 48, 40, 56
    a, b = rng.standard_normal((k, m)).astype(np.float32), rng.standard_normal((n, k)).astype(np.float32)
    values = dict(a_ptr=a, b_ptr=b, c_ptr=np.zeros((m, n), np.float32), M=m, N=n, K=k, stride_am=1, stride_ak=m, stride_bk=1,
                  stride_bn=k, stride_cm=n, stride_cn=1, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=2)
    both("matmul.py:matmul_kernel", [9], values, ["c_ptr"], dict(c_ptr=a.T.astype(np.float64) @ b.T), 1e-6)


def attention(batch, heads, kv_heads, sq, sk, d, causal, dtype=np.float32):
    q = rng.standard_normal((batch, heads, sq, d)).astype(dtype)
    k, v = (rng.standard_normal((batch, kv_heads, sk, d)).astype(dtype) for _ in range(2))
    scale = d ** -0.5
    kk, vv = (np.repeat(x, heads // kv_heads, axis=1).astype(np.float64) for x in (k, v))
    s = q.astype(np.float64) @ kk.transpose(0, 1, 3, 2) * scale
    if causal:
        s = np.where(np.arange(sq)[:, None] >= np.arange(sk)[None, :], s, -np.inf)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - top)
    want = e / e.sum(-1, keepdims=True) @ vv
    lse = (top + np.log(e.sum(-1, keepdims=True)))[..., 0]
    both("attention.py:attention_kernel", [cdiv(sq, 32), batch * heads],
         dict(q_ptr=q, k_ptr=k, v_ptr=v, out_ptr=np.zeros_like(q), lse_ptr=np.zeros((batch, heads, sq), np.float32), scale=float(scale),
              seq_q=sq, seq_k=sk, heads=heads, kv_heads=kv_heads, HEAD_DIM=d, BLOCK_M=32, BLOCK_N=16, CAUSAL=causal),
         ["out_ptr", "lse_ptr"], dict(out_ptr=want, lse_ptr=lse), 1e-5 if dtype == np.float32 else 3e-3)


def poisoned(kernel, grid, values, out, want, options=()):
    """Infinities and NaNs come out where they belong, and nowhere else; the rest is close."""
    for mode, how in MODES.items():
        got = run_kernel(f"{KERNELS}/{kernel}", grid, values, [out], mode=how, options=options)[out].astype(np.float64)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=mode)
        np.testing.assert_array_equal(np.isposinf(got), np.isposinf(want), err_msg=mode)
        np.testing.assert_array_equal(np.isneginf(got), np.isneginf(want), err_msg=mode)
        finite = np.isfinite(want)
        below(rel_err(got[finite], want[finite]), 2e-3, mode)


def matmul_of_specials(warps, blocks):
    """Rows of A and columns of B with infinities and NaNs, beside an edge that is padded with zeros."""
    m, n, k = 80, 80, 48
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    a[3, 5], a[17, 47], a[79, 0], a[40, :2] = np.inf, np.nan, -np.inf, np.inf
    b[7, 11], b[40, 79], b[0, 30] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        want = (a[:, :, None].astype(np.float64) * b[None].astype(np.float64)).sum(1)
    bm, bn, bk = blocks
    poisoned("matmul.py:matmul_kernel", [cdiv(m, bm) * cdiv(n, bn)],
             dict(a_ptr=a, b_ptr=b, c_ptr=np.zeros((m, n), np.float32), M=m, N=n, K=k, stride_am=k, stride_ak=1, stride_bk=n, stride_bn=1,
                  stride_cm=n, stride_cn=1, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, GROUP_M=2), "c_ptr", want, ("--warps", warps))


def rows_of_specials():
    x = (rng.standard_normal((6, 50)) * 3).astype(np.float32)
    x[1, 4], x[2, 49], x[3, 0], x[4] = np.nan, -np.inf, np.inf, -np.inf
    d = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        e = np.exp(d - d.max(1, keepdims=True))
        softmax_ = e / e.sum(1, keepdims=True)
        rms = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)
        layer = (d - d.mean(1, keepdims=True)) / np.sqrt(((d - d.mean(1, keepdims=True)) ** 2).mean(1, keepdims=True) + 1e-5)
    one, zero = np.ones(50, np.float32), np.zeros(50, np.float32)
    out = np.zeros_like(x)
    poisoned("softmax.py:softmax_kernel", [2], dict(out_ptr=out, x_ptr=x, x_row_stride=50, out_row_stride=50, n_rows=6, n_cols=50, BLOCK_SIZE=64),
             "out_ptr", softmax_)
    common = dict(x_ptr=x, w_ptr=one, out_ptr=out, row_stride=50, n_rows=6, n_cols=50, eps=1e-5, BLOCK_SIZE=64)
    poisoned("norm.py:rms_norm_kernel", [3], common, "out_ptr", rms)
    poisoned("norm.py:layer_norm_kernel", [3], dict(common, b_ptr=zero), "out_ptr", layer)


for n in (1, 255, 256, 1000):
    case(f"add f32 {n}", add, n, np.float32)
case("add nothing", add, 0, np.float32)
case("add f16", add, 777, np.float16)
case("add f64", add, 300, np.float64)
case("silu_mul", silu_mul, 1001)
case("softmax 7x33", softmax, 7, 33, 3)
case("softmax 5x1024", softmax, 5, 1024, 5)
case("softmax 1x1", softmax, 1, 1, 1)
case("softmax without rows", softmax, 0, 33, 2)
case("layer_norm", norm, 9, 100, True)
case("layer_norm without rows", norm, 0, 20, True)
case("rms_norm", norm, 9, 100, False)
case("rms_norm 3x512", norm, 3, 512, False)
for style in ("pointer", "wrapped", "block_ptr", "descriptor", "persistent"):
    case(f"matmul {style} 64x64x64", matmul, style, 64, 64, 64, np.float32)
    case(f"matmul {style} 50x70x36", matmul, style, 50, 70, 36, np.float32)
    case(f"matmul {style} f16", matmul, style, 33, 48, 40, np.float16)
case("matmul pointer 1x1x1", matmul, "pointer", 1, 1, 1, np.float32)
case("matmul pointer big blocks", matmul, "pointer", 130, 140, 70, np.float32, (64, 128, 32))
case("matmul strides", transposed_strides)
case("infinities and NaNs, matmul", matmul_of_specials, 4, (32, 32, 16))
case("infinities and NaNs, matmul of four warps", matmul_of_specials, 4, (64, 64, 32))
case("infinities and NaNs, rows", rows_of_specials)
case("attention full", attention, 2, 2, 1, 40, 50, 16, False)
case("attention causal", attention, 1, 2, 2, 70, 70, 32, True)
case("attention f16", attention, 1, 1, 1, 33, 65, 16, True, np.float16)
finish()
