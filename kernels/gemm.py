"""GEMM with what stands around it in a network, any strides (row-major and column-major operands alike), batched.

    C[i] = act(alpha * A[i] B[i] + bias) + residual[i]          A [M, K], B [K, N], C and residual [M, N], bias [N]

Accumulates in f32, for int8 in i32, for f64 in f64. Offsets of a tile's corner are 64-bit, so a matrix may have more than 2^31
elements. bias_ptr and residual_ptr may be None. ACTIVATION: "", "relu", "leaky_relu", "silu", "gelu" or "gelu_tanh".

    gemm_kernel[(cdiv(M, 128) * cdiv(N, 128), batch)](a, b, c, bias, None, M, N, K, 1.0, *a.stride(), *b.stride(), *c.stride(),
                0, 0, 0, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, ACTIVATION="silu")
"""
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tile_order import grouped


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    """The activation by its name, in f32."""
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0)
    elif ACTIVATION == "leaky_relu":
        x = tl.where(x >= 0.0, x, 0.01 * x)
    elif ACTIVATION == "silu":
        x = x * tl.sigmoid(x)
    elif ACTIVATION == "gelu":
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    elif ACTIVATION == "gelu_tanh":
        x = 0.5 * x * (1.0 + libdevice.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    else:
        tl.static_assert(ACTIVATION == "", "ACTIVATION is '', relu, leaky_relu, silu, gelu or gelu_tanh")
    return x


@triton.jit
def multiply(a_ptr, b_ptr, acc, m_left, n_left, K, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_M: tl.constexpr,
             BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr):
    """acc + A[:m_left, :K] B[:K, :n_left]; the pointers are at the first row and column of both."""
    rm = tl.arange(0, BLOCK_M)
    rn = tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak
    b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    for k in range(0, K, BLOCK_K):
        left = K - k
        a = tl.load(a_ptrs, mask=(rm[:, None] < m_left) & (rk[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] < left) & (rn[None, :] < n_left), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=acc.dtype)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    return acc


@triton.jit
def finish(acc, c_ptr, bias_ptr, residual_ptr, m_left, n_left, alpha, stride_cm, stride_cn, stride_rm, stride_rn,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ACTIVATION: tl.constexpr):
    """Scales, adds the bias, activates, adds the residual and stores; the pointers are at row and column 0 of the tile."""
    rm = tl.arange(0, BLOCK_M)
    rn = tl.arange(0, BLOCK_N)
    mask = (rm[:, None] < m_left) & (rn[None, :] < n_left)
    if c_ptr.dtype.element_ty == tl.int32:
        out = acc
    else:
        out = acc.to(tl.float64 if c_ptr.dtype.element_ty == tl.float64 else tl.float32) * alpha
        if bias_ptr is not None:
            out += tl.load(bias_ptr + rn, mask=rn < n_left, other=0.0).to(out.dtype)[None, :]
        out = activate(out, ACTIVATION)
        if residual_ptr is not None:
            out += tl.load(residual_ptr + rm[:, None] * stride_rm + rn[None, :] * stride_rn, mask=mask, other=0.0).to(out.dtype)
    tl.store(c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn, out.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gemm_kernel(a_ptr, b_ptr, c_ptr, bias_ptr, residual_ptr, M, N, K, alpha, stride_ab, stride_am, stride_ak, stride_bb,
                stride_bk, stride_bn, stride_cb, stride_cm, stride_cn, stride_rb, stride_rm, stride_rn, BLOCK_M: tl.constexpr,
                BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, ACTIVATION: tl.constexpr = "",
                PRECISION: tl.constexpr = "ieee"):
    """Grid: (cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), batch). An i32 C takes the sums of int8 as they are."""
    acc_type: tl.constexpr = (tl.int32 if a_ptr.dtype.element_ty == tl.int8 else
                              tl.float64 if a_ptr.dtype.element_ty == tl.float64 else tl.float32)
    pid_m, pid_n = grouped(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), 0, 1, GROUP_M)
    batch = tl.program_id(1).to(tl.int64)
    m = (pid_m * BLOCK_M).to(tl.int64)
    n = (pid_n * BLOCK_N).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=acc_type)
    acc = multiply(a_ptr + batch * stride_ab + m * stride_am, b_ptr + batch * stride_bb + n * stride_bn, acc, M - pid_m * BLOCK_M,
                   N - pid_n * BLOCK_N, K, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_M, BLOCK_N, BLOCK_K,
                   PRECISION)
    if bias_ptr is not None:
        bias_ptr += n
    if residual_ptr is not None:
        residual_ptr += batch * stride_rb + m * stride_rm + n * stride_rn
    finish(acc, c_ptr + batch * stride_cb + m * stride_cm + n * stride_cn, bias_ptr, residual_ptr, M - pid_m * BLOCK_M,
           N - pid_n * BLOCK_N, alpha, stride_cm, stride_cn, stride_rm, stride_rn, BLOCK_M, BLOCK_N, ACTIVATION)


@triton.jit
def gemm_split_k_kernel(a_ptr, b_ptr, c_ptr, bias_ptr, residual_ptr, partial_ptr, arrived_ptr, M, N, K, alpha, stride_am, stride_ak,
                        stride_bk, stride_bn, stride_cm, stride_cn, stride_rm, stride_rn, BLOCK_M: tl.constexpr,
                        BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr, ACTIVATION: tl.constexpr = "",
                        PRECISION: tl.constexpr = "ieee"):
    """For few tiles and a long K: SPLITS instances share a tile, the last to arrive adds their sums in the order of K, so the
    result is the same in every run. partial: f32[tiles, SPLITS, BLOCK_M, BLOCK_N] of any content; arrived: i32[tiles] of
    zeros, which are zeros again at the end. Grid: (cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), SPLITS)."""
    tile = tl.program_id(0)
    split = tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    pid_m = tile // tiles_n
    pid_n = tile % tiles_n
    m = (pid_m * BLOCK_M).to(tl.int64)
    n = (pid_n * BLOCK_N).to(tl.int64)
    share = tl.cdiv(tl.cdiv(K, BLOCK_K), SPLITS) * BLOCK_K
    begin = min(split * share, K)
    k = begin.to(tl.int64)
    acc = multiply(a_ptr + m * stride_am + k * stride_ak, b_ptr + k * stride_bk + n * stride_bn,
                   tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32), M - pid_m * BLOCK_M, N - pid_n * BLOCK_N,
                   min(share, K - begin), stride_am, stride_ak, stride_bk, stride_bn, BLOCK_M, BLOCK_N, BLOCK_K, PRECISION)
    size: tl.constexpr = BLOCK_M * BLOCK_N
    own = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    sums = partial_ptr + tile.to(tl.int64) * SPLITS * size
    tl.store(sums + split * size + own, acc)
    before = tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel", scope="gpu")
    if before == SPLITS - 1:
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for s in range(0, SPLITS):
            total += tl.load(sums + s * size + own)
        if bias_ptr is not None:
            bias_ptr += n
        if residual_ptr is not None:
            residual_ptr += m * stride_rm + n * stride_rn
        finish(total, c_ptr + m * stride_cm + n * stride_cn, bias_ptr, residual_ptr, M - pid_m * BLOCK_M, N - pid_n * BLOCK_N,
               alpha, stride_cm, stride_cn, stride_rm, stride_rn, BLOCK_M, BLOCK_N, ACTIVATION)
        tl.store(arrived_ptr + tile, 0)
