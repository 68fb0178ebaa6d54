"""GEMM of the library with everything around it: strides, batches, fused epilogues, split K, 8-bit operands with scales, groups.
TIMEOUT: 300"""
import numpy as np
from math import erf

from _ditron import case, finish
from _library import as_type, both, cdiv

rng = np.random.default_rng(11)
BOUND = {"f64": 1e-12, "f32": 1e-6, "f16": 1e-3, "bf16": 6e-3}
ACTIVATIONS = {
    "": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(erf, otypes=[float])(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))),
}


def operand(rows, cols, order, batch=1):
    """Random [batch, rows, cols] in memory order "row" or "col": (values, memory, strides)"""
    shape = (batch, rows, cols) if order == "row" else (batch, cols, rows)
    x = rng.standard_normal(shape)
    strides = (cols, 1) if order == "row" else (1, rows)
    return x if order == "row" else x.transpose(0, 2, 1), x, (rows * cols, *strides)


def gemm(m, n, k, dtype="f32", order=("row", "row", "row"), batch=1, act="", bias=False, residual=False, alpha=1.0, blocks=(32, 32, 16),
         **split):
    bm, bn, bk = blocks
    a, a_mem, sa = operand(m, k, order[0], batch)
    b, b_mem, sb = operand(k, n, order[1], batch)
    _, c_mem, sc = operand(m, n, order[2], batch)
    r, r_mem, sr = operand(m, n, "row", batch)
    (a64, a_arg), (b64, b_arg), (_, c_arg), (r64, r_arg) = (as_type(x, dtype) for x in (a_mem, b_mem, c_mem * 0, r_mem))
    bias64, bias_arg = as_type(rng.standard_normal(n), dtype)
    a64 = a64 if order[0] == "row" else a64.transpose(0, 2, 1)
    b64 = b64 if order[1] == "row" else b64.transpose(0, 2, 1)
    want = ACTIVATIONS[act](alpha * (a64 @ b64) + (bias64 if bias else 0)) + (r64 if residual else 0)
    want = want if order[2] == "row" else want.transpose(0, 2, 1)
    values = dict(a_ptr=a_arg, b_ptr=b_arg, c_ptr=c_arg, bias_ptr=bias_arg if bias else "None", residual_ptr=r_arg if residual else "None",
                  M=m, N=n, K=k, alpha=alpha, stride_am=sa[1], stride_ak=sa[2], stride_bk=sb[1], stride_bn=sb[2], stride_cm=sc[1],
                  stride_cn=sc[2], stride_rm=sr[1], stride_rn=sr[2], BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, ACTIVATION=f'"{act}"')
    tiles = cdiv(m, bm) * cdiv(n, bn)
    if split:
        splits = split["splits"]
        values.update(SPLITS=splits, arrived_ptr=np.zeros(tiles, np.int32),
                      partial_ptr=np.full(max(1, tiles * splits * bm * bn), np.nan, np.float32))
        both("gemm.py:gemm_split_k_kernel", [tiles, splits], values, ["c_ptr", "arrived_ptr"],
             dict(c_ptr=want, arrived_ptr=np.zeros(tiles)), BOUND[dtype])
    else:
        values.update(stride_ab=sa[0], stride_bb=sb[0], stride_cb=sc[0], stride_rb=sr[0], GROUP_M=3)
        both("gemm.py:gemm_kernel", [tiles, batch], values, ["c_ptr"], dict(c_ptr=want), BOUND[dtype])


def gemm_int8(m, n, k):
    a, b = rng.integers(-128, 128, (m, k)).astype(np.int8), rng.integers(-128, 128, (n, k)).astype(np.int8)
    want = a.astype(np.int64) @ b.astype(np.int64).T
    both("gemm.py:gemm_kernel", [cdiv(m, 32) * cdiv(n, 32), 1],
         dict(a_ptr=a, b_ptr=b, c_ptr=np.zeros((m, n), np.int32), bias_ptr="None", residual_ptr="None", M=m, N=n, K=k, alpha=1.0,
              stride_ab=0, stride_am=k, stride_ak=1, stride_bb=0, stride_bk=1, stride_bn=k, stride_cb=0, stride_cm=n, stride_cn=1,
              stride_rb=0, stride_rm=0, stride_rn=0, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2), ["c_ptr"], dict(c_ptr=want), 0)


def eight_bits(rows, cols, dtype):
    if dtype == "i8":
        x = rng.integers(-128, 128, (rows, cols)).astype(np.int8)
        return x.astype(np.float64), x
    return as_type(rng.standard_normal((rows, cols)) * 2, dtype)


def scaled(m, n, k, dtypes, per_row, per_column, bias=False, out="bf16", more=None):
    (a64, a), (b64, b) = eight_bits(m, k, dtypes[0]), eight_bits(n, k, dtypes[1])  # B column-major: K lies together
    sa, sb = (rng.uniform(0.01, 0.1, s).astype(np.float32) for s in (m if per_row else 1, n if per_column else 1))
    bias64, bias_arg = as_type(rng.standard_normal(n), "f32")
    want = (a64 @ b64.T) * sa[:, None].astype(np.float64) * sb[None, :] + (bias64 if bias else 0)
    both("gemm_scaled.py:gemm_scaled_kernel", [cdiv(m, 32) * cdiv(n, 32)],
         dict(a_ptr=a, b_ptr=b, c_ptr=as_type(np.zeros((m, n)), out)[1], scale_a_ptr=sa, scale_b_ptr=sb, bias_ptr=bias_arg if bias else "None",
              M=m, N=n, K=k, stride_am=k, stride_ak=1, stride_bk=1, stride_bn=k, stride_cm=n, stride_cn=1, PER_ROW=per_row,
              PER_COLUMN=per_column, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2), ["c_ptr"], dict(c_ptr=want), BOUND[out],
         more=more)


def block_scaled(m, n, k, dtype, scale_k=64, scale_n=32):
    (a64, a), (b64, b) = eight_bits(m, k, dtype), eight_bits(n, k, dtype)
    sa = rng.uniform(0.01, 0.1, (m, cdiv(k, scale_k))).astype(np.float32)
    sb = rng.uniform(0.01, 0.1, (cdiv(k, scale_k), cdiv(n, scale_n))).astype(np.float32)
    a64 = a64 * np.repeat(sa.astype(np.float64), scale_k, 1)[:, :k]
    b64 = b64.T * np.repeat(np.repeat(sb.astype(np.float64), scale_k, 0)[:k], scale_n, 1)[:, :n]
    both("gemm_scaled.py:gemm_block_scaled_kernel", [cdiv(m, 32) * cdiv(n, 32)],
         dict(a_ptr=a, b_ptr=b, c_ptr=np.zeros((m, n), np.float32), scale_a_ptr=sa, scale_b_ptr=sb, bias_ptr="None", M=m, N=n, K=k,
              stride_am=k, stride_ak=1, stride_bk=1, stride_bn=k, stride_cm=n, stride_cn=1, stride_sam=sa.shape[1], stride_sak=1,
              stride_sbk=sb.shape[1], stride_sbn=1, SCALE_K=scale_k, SCALE_N=scale_n, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2),
         ["c_ptr"], dict(c_ptr=a64 @ b64), 1e-6)


def blocks_of(x, *block):
    return ("desc", x[0], block, x[1]) if isinstance(x, tuple) else ("desc", x, block)


def grouped(sizes, n, k, grid, dtype="f32"):
    rows, groups = sum(sizes), len(sizes)
    offsets = np.cumsum([0, *sizes]).astype(np.int32)
    (a64, a), (b64, b) = as_type(rng.standard_normal((rows, k)), dtype), as_type(rng.standard_normal((groups, k, n)), dtype)
    want = np.concatenate([a64[offsets[g]:offsets[g + 1]] @ b64[g] for g in range(groups)])
    values = dict(a_ptr=a, offsets_ptr=offsets, N=n, K=k, stride_am=k, stride_ak=1, stride_bg=k * n, stride_bk=n, stride_bn=1,
                  stride_cm=n, stride_cn=1, BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, GROUP_M=2)
    both("grouped_gemm.py:grouped_gemm_kernel", [grid],
         dict(values, b_ptr=b, c_ptr=as_type(np.zeros((rows, n)), dtype)[1], groups=groups), ["c_ptr"], dict(c_ptr=want), BOUND[dtype])
    both("grouped_gemm.py:grouped_gemm_descriptor_kernel", [grid],
         dict(a_desc=blocks_of(a, 32, 16), b_desc=blocks_of(b, 1, 16, 32), c_ptr=as_type(np.zeros((rows, n)), dtype)[1], offsets_ptr=offsets,
              groups=groups, N=n, K=k, stride_cm=n, stride_cn=1, BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, GROUP_M=2), ["c_ptr"],
         dict(c_ptr=want), BOUND[dtype])
    dc64, dc = as_type(rng.standard_normal((rows, n)), dtype)
    want = np.stack([a64[offsets[g]:offsets[g + 1]].T @ dc64[offsets[g]:offsets[g + 1]] for g in range(groups)])
    values.update(dc_ptr=dc, db_ptr=as_type(np.full((groups, k, n), 7.0), dtype)[1], BLOCK_M=16, BLOCK_K=32)
    both("grouped_gemm.py:grouped_gemm_weights_kernel", [cdiv(k, 32) * cdiv(n, 32), groups], values, ["db_ptr"], dict(db_ptr=want),
         BOUND[dtype])
    both("grouped_gemm.py:grouped_gemm_weights_descriptor_kernel", [grid],
         dict(a_desc=blocks_of(a, 16, 32), dc_desc=blocks_of(dc, 16, 32), db_desc=blocks_of(values["db_ptr"], 1, 32, 32), a_ptr=a, dc_ptr=dc,
              offsets_ptr=offsets, groups=groups, N=n, K=k, stride_am=k, stride_cm=n, BLOCK_M=16, BLOCK_N=32, BLOCK_K=32, GROUP_M=2),
         ["db_desc"], dict(db_desc=want), BOUND[dtype])


case("gemm 65x50x33 row row row", gemm, 65, 50, 33)
case("gemm col row row", gemm, 33, 48, 40, "f16", ("col", "row", "row"))
case("gemm row col row", gemm, 70, 34, 65, "bf16", ("row", "col", "row"))
case("gemm col col col", gemm, 31, 47, 29, "f32", ("col", "col", "col"))
case("gemm batched", gemm, 33, 35, 20, "f16", batch=3)
case("gemm f64", gemm, 20, 18, 35, "f64", batch=2)
case("gemm K 0", gemm, 9, 10, 0, bias=True)
case("gemm M 0", gemm, 0, 10, 16)
case("gemm 1x1x1", gemm, 1, 1, 1, residual=True)
for act in ACTIVATIONS:
    case(f"gemm bias, residual, '{act}'", gemm, 40, 37, 24, "f32", act=act, bias=True, residual=True, alpha=0.5, batch=2)
case("gemm int8", gemm_int8, 45, 39, 70)
case("split K 16x40x500 in 4", gemm, 16, 40, 500, "f16", blocks=(16, 32, 32), splits=4)
case("split K 5x33x65 in 8, more than blocks", gemm, 5, 33, 65, "f32", blocks=(16, 32, 32), splits=8, bias=True, act="relu")
case("split K residual, col", gemm, 33, 20, 90, "bf16", ("row", "col", "row"), blocks=(16, 16, 16), splits=2, residual=True)
case("split K, K 0", gemm, 3, 4, 0, splits=2)
case("scaled e4m3", scaled, 40, 37, 70, ("f8e4m3", "f8e4m3"), False, False)
case("scaled e4m3 per row and column", scaled, 33, 64, 96, ("f8e4m3", "f8e4m3"), True, True, bias=True)
case("scaled e5m2 x e4m3, and where no 8-bit floats are multiplied", scaled, 17, 40, 64, ("f8e5m2", "f8e4m3"), True, False, out="f32",
     more={"sm_80": ["--stage", "lowered", "--target", "sm_80"]})
case("scaled int8", scaled, 45, 39, 100, ("i8", "i8"), True, True, bias=True)
case("scaled int8, one scale", scaled, 32, 32, 64, ("i8", "i8"), False, False, out="f32")
case("block scaled e4m3", block_scaled, 40, 70, 200, "f8e4m3")
case("block scaled int8", block_scaled, 33, 35, 90, "i8")
case("grouped 40, 0, 1, 33", grouped, [40, 0, 1, 33], 50, 36, 3)
case("grouped f16, one instance", grouped, [5, 70], 33, 20, 1, "f16")
case("grouped bf16, more instances than tiles", grouped, [0, 16, 0], 32, 16, 7, "bf16")
finish()
