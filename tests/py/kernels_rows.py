"""Kernels of rows of the library: rope, silu of packed rows, cross entropy, top-k, sort. TIMEOUT: 300"""
import numpy as np

from _ditron import case, finish
from _library import as_type, both, cdiv, compare, pow2, run_all

rng = np.random.default_rng(13)
BOUND = {"f32": 1e-6, "f16": 1e-3, "bf16": 6e-3}


def silu_rows(rows, n, dtype):
    x64, x = as_type(rng.standard_normal((rows, 2 * n)), dtype)
    gate, up = x64[:, :n], x64[:, n:]
    both("elementwise.py:silu_mul_rows_kernel", [rows, cdiv(n, 64)],
         dict(x_ptr=x, out_ptr=as_type(np.zeros((rows, n)), dtype)[1], n_cols=n, stride_x=2 * n, stride_out=n, BLOCK_SIZE=64), ["out_ptr"],
         dict(out_ptr=gate / (1 + np.exp(-gate)) * up), BOUND[dtype])


def rope(tokens, heads, half, rest, dtype="f32", interleaved=False, inverse=False, positions=None, in_place=False, block_h=4):
    dim = 2 * half + rest
    x64, x = as_type(rng.standard_normal((tokens, heads, dim)), dtype)
    last = tokens if positions is None else int(max(positions, default=0)) + 1
    angle = np.outer(np.arange(last), 10000.0 ** (-np.arange(half) / max(half, 1)))
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    at = np.arange(tokens) if positions is None else np.asarray(positions, int)
    c, s = cos[at][:, None].astype(np.float64), sin[at][:, None].astype(np.float64) * (-1 if inverse else 1)
    first, second = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(0, half), slice(half, 2 * half))
    want = x64.copy()
    want[..., first] = x64[..., first] * c - x64[..., second] * s
    want[..., second] = x64[..., second] * c + x64[..., first] * s
    values = dict(x_ptr=x, out_ptr=as_type(np.zeros_like(x64), dtype)[1], cos_ptr=cos, sin_ptr=sin,
                  positions_ptr="None" if positions is None else np.asarray(positions, np.int64), heads=heads, rest=rest, half=half,
                  stride_xt=heads * dim, stride_xh=dim, stride_ot=heads * dim, stride_oh=dim, stride_angle=half, BLOCK_H=block_h,
                  BLOCK_HALF=pow2(half, 1), BLOCK_REST=pow2(rest, 1) if rest else 0, INTERLEAVED=interleaved, INVERSE=inverse)
    both("rope.py:rope_kernel", [tokens, cdiv(heads, block_h)], values, ["out_ptr"], dict(out_ptr=want), BOUND[dtype])


def cross_entropy(rows, n, dtype="f32", smoothing=0.0, penalty=0.0, block=64, ignored=(), infinite=False):
    x = rng.standard_normal((rows, n)) * 4
    targets = rng.integers(0, n, rows)
    if infinite:  # classes that are ruled out, one row but for its target
        x[:, ::3] = -np.inf
        x[0] = -np.inf
        targets[:] = 1
        x[:, 1] = 0.5
    x64, x_arg = as_type(x, dtype)
    targets[list(ignored)] = -100
    counted = targets != -100
    top = x64.max(1, keepdims=True)
    lse = (top + np.log(np.exp(x64 - top).sum(1, keepdims=True)))[:, 0]
    hit = x64[np.arange(rows), np.where(counted, targets, 0)]
    mean = x64.mean(1) if smoothing else 0.0
    loss = np.where(counted, lse - (1 - smoothing) * hit - smoothing * mean + penalty * lse ** 2, 0.0)
    values = dict(x_ptr=x_arg, target_ptr=targets, row_stride=n, n_cols=n, ignore=-100, smoothing=smoothing, penalty=penalty, BLOCK=block)
    both("cross_entropy.py:cross_entropy_kernel", [rows],
         dict(values, loss_ptr=np.full(rows, np.nan, np.float32), lse_ptr=np.zeros(rows, np.float32)), ["loss_ptr", "lse_ptr"],
         dict(loss_ptr=loss, lse_ptr=lse), 1e-5)
    grad = rng.standard_normal(rows).astype(np.float32)
    onehot = np.zeros((rows, n))
    onehot[np.arange(rows), np.where(counted, targets, 0)] = 1 - smoothing
    dx = np.exp(x64 - lse[:, None]) * (1 + 2 * penalty * lse[:, None]) - smoothing / n - onehot
    dx = np.where(counted[:, None], dx * grad[:, None], 0.0)
    both("cross_entropy.py:cross_entropy_backward_kernel", [rows, cdiv(n, block)],
         dict(values, lse_ptr=lse.astype(np.float32), grad_ptr=grad, dx_ptr=as_type(np.full((rows, n), 9.0), dtype)[1], dx_row_stride=n),
         ["dx_ptr"], dict(dx_ptr=dx), max(BOUND[dtype], 3e-6))


def order(x, descending):
    """Indices that sort rows: stable, NaN above everything, zeros equal."""
    x = np.asarray(x, np.float64)
    nan = np.isnan(x)
    key = np.where(nan, 0.0, x)
    rows = [np.lexsort((np.arange(len(r)), -k if descending else k, ~m if descending else m)) for r, k, m in zip(x, key, nan)]
    return np.array(rows, int).reshape(x.shape)


def awkward(rows, n, dtype, special):
    if dtype == "i32":
        x = rng.integers(-2 ** 31, 2 ** 31, (rows, n))
        if n > 2:
            x[:, 0], x[:, 1] = -2 ** 31, 2 ** 31 - 1
        return as_type(x, dtype)
    x = rng.standard_normal((rows, n))
    if special:
        x = np.round(x * 2) / 2  # many ties
        for value in (np.inf, -np.inf, np.nan, -0.0, 0.0, -np.nan, 1e-40):
            x[rng.integers(0, rows, 2), rng.integers(0, n, 2)] = value
    return as_type(x, dtype)


def topk(rows, n, k, block, dtype="f32", largest=True, special=True):
    x64, x = awkward(rows, n, dtype, special)
    at = order(x64, largest)[:, :k]
    got = run_all("topk.py:topk_kernel", [rows],
                  dict(x_ptr=x, values_ptr=as_type(np.zeros((rows, k)), dtype)[1], indices_ptr=np.zeros((rows, k), np.int32), row_stride=n,
                       k=k, n_cols=n, K=pow2(k, 1), BLOCK=block, LARGEST=largest), ["values_ptr", "indices_ptr"])
    exact(got, x64, at)


def sort(rows, n, dtype="f32", descending=False, special=True):
    x64, x = awkward(rows, n, dtype, special)
    got = run_all("topk.py:sort_kernel", [rows],
                  dict(x_ptr=x, values_ptr=as_type(np.zeros((rows, n)), dtype)[1], indices_ptr=np.zeros((rows, n), np.int64), row_stride=n,
                       n_cols=n, BLOCK=pow2(n, 2), DESCENDING=descending), ["values_ptr", "indices_ptr"])
    exact(got, x64, order(x64, descending))


def exact(got, x, at):
    for mode, result in got.items():
        np.testing.assert_array_equal(result["indices_ptr"], at, err_msg=mode)
        np.testing.assert_array_equal(result["values_ptr"].astype(np.float64), np.take_along_axis(x, at, 1), err_msg=mode)


case("silu rows 3x70", silu_rows, 3, 70, "f32")
case("silu rows bf16", silu_rows, 2, 128, "bf16")
case("rope halves", rope, 5, 6, 8, 0)
case("rope odd half, rest, f16", rope, 3, 5, 5, 3, "f16")
case("rope interleaved, inverse", rope, 4, 3, 6, 2, interleaved=True, inverse=True)
case("rope positions, bf16", rope, 6, 2, 16, 0, "bf16", positions=[0, 9, 3, 3, 100, 1])
case("rope one dimension pair", rope, 2, 1, 1, 0, block_h=1)
case("rope without tokens", rope, 0, 2, 4, 0, positions=[])
case("cross entropy 5x70", cross_entropy, 5, 70)
case("cross entropy 3x1", cross_entropy, 3, 1)
case("cross entropy smoothing, penalty, ignored", cross_entropy, 7, 130, "f32", 0.1, 1e-3, ignored=(0, 3))
case("cross entropy bf16, one block", cross_entropy, 4, 200, "bf16", block=256)
case("cross entropy, classes ruled out", cross_entropy, 4, 90, "f32", infinite=True)
case("cross entropy all ignored", cross_entropy, 3, 20, "f16", ignored=(0, 1, 2))
case("cross entropy without rows", cross_entropy, 0, 20)
case("topk without rows", topk, 0, 50, 5, 64, special=False)
case("topk 4x50 k 5", topk, 4, 50, 5, 64)
case("topk many blocks, smallest", topk, 3, 200, 7, 32, largest=False)
case("topk k is n, f16", topk, 3, 20, 20, 32, "f16")
case("topk bf16 k 1", topk, 5, 33, 1, 16, "bf16")
case("topk i32", topk, 3, 70, 8, 32, "i32")
case("sort 3x50", sort, 3, 50)
case("sort descending, f16", sort, 4, 100, "f16", True)
case("sort i32, descending", sort, 2, 64, "i32", True)
case("sort i32", sort, 2, 33, "i32")
case("sort bf16 one", sort, 3, 1, "bf16", special=False)
finish()
