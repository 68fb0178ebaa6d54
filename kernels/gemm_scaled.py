"""GEMM of fp8 (e4m3, e5m2) and int8 operands with their scales.

    C = (A * scale_a) (B * scale_b) + bias        A [M, K], B [K, N] of 8-bit elements, C [M, N] bf16, f16 or f32, bias [N] or None

gemm_scaled_kernel: a scale for the whole operand, or one a row of A and one a column of B; the scales leave the sum, so they
are applied once. gemm_block_scaled_kernel: a scale for every SCALE_K elements of a row of A, and for every block of
SCALE_K x SCALE_N elements of B; sums of SCALE_K products are scaled and added in f32.
"""
import triton
import triton.language as tl

from gemm import multiply
from tile_order import grouped


@triton.jit
def store_tile(out, c_ptr, bias_ptr, m_left, n_left, stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Adds the bias and stores an f32 tile; the pointers are at its row and column 0."""
    rm = tl.arange(0, BLOCK_M)
    rn = tl.arange(0, BLOCK_N)
    if bias_ptr is not None:
        out += tl.load(bias_ptr + rn, mask=rn < n_left, other=0.0).to(tl.float32)[None, :]
    mask = (rm[:, None] < m_left) & (rn[None, :] < n_left)
    tl.store(c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn, out.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gemm_scaled_kernel(a_ptr, b_ptr, c_ptr, scale_a_ptr, scale_b_ptr, bias_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
                       stride_cm, stride_cn, PER_ROW: tl.constexpr, PER_COLUMN: tl.constexpr, BLOCK_M: tl.constexpr,
                       BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """scale_a: f32[M] where PER_ROW, else f32[1]; scale_b: f32[N] where PER_COLUMN, else f32[1].
    Grid: cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)."""
    acc_type: tl.constexpr = tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32
    pid_m, pid_n = grouped(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), 0, 1, GROUP_M)
    m = (pid_m * BLOCK_M).to(tl.int64)
    n = (pid_n * BLOCK_N).to(tl.int64)
    m_left = M - pid_m * BLOCK_M
    n_left = N - pid_n * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=acc_type)
    acc = multiply(a_ptr + m * stride_am, b_ptr + n * stride_bn, acc, m_left, n_left, K, stride_am, stride_ak,
                   stride_bk, stride_bn, BLOCK_M, BLOCK_N, BLOCK_K, "ieee")
    out = acc.to(tl.float32)
    if PER_ROW:
        rm = tl.arange(0, BLOCK_M)
        out *= tl.load(scale_a_ptr + m + rm, mask=rm < m_left, other=0.0)[:, None]
    else:
        out *= tl.load(scale_a_ptr)
    if PER_COLUMN:
        rn = tl.arange(0, BLOCK_N)
        out *= tl.load(scale_b_ptr + n + rn, mask=rn < n_left, other=0.0)[None, :]
    else:
        out *= tl.load(scale_b_ptr)
    if bias_ptr is not None:
        bias_ptr += n
    store_tile(out, c_ptr + m * stride_cm + n * stride_cn, bias_ptr, m_left, n_left, stride_cm, stride_cn, BLOCK_M, BLOCK_N)


@triton.jit
def gemm_block_scaled_kernel(a_ptr, b_ptr, c_ptr, scale_a_ptr, scale_b_ptr, bias_ptr, M, N, K, stride_am, stride_ak, stride_bk,
                             stride_bn, stride_cm, stride_cn, stride_sam, stride_sak, stride_sbk, stride_sbn,
                             SCALE_K: tl.constexpr, SCALE_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """scale_a: f32[M, cdiv(K, SCALE_K)], scale_b: f32[cdiv(K, SCALE_K), cdiv(N, SCALE_N)]; BLOCK_K divides SCALE_K.
    Grid: cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)."""
    tl.static_assert(SCALE_K % BLOCK_K == 0, "a block of K must have one scale")
    acc_type: tl.constexpr = tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32
    pid_m, pid_n = grouped(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), 0, 1, GROUP_M)
    m = (pid_m * BLOCK_M).to(tl.int64)
    n = (pid_n * BLOCK_N).to(tl.int64)
    m_left = M - pid_m * BLOCK_M
    n_left = N - pid_n * BLOCK_N
    rm = tl.arange(0, BLOCK_M)
    rn = tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m * stride_am + rm[:, None] * stride_am + rk[None, :] * stride_ak
    b_ptrs = b_ptr + n * stride_bn + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    sa_ptrs = scale_a_ptr + m * stride_sam + rm * stride_sam
    sb_ptrs = scale_b_ptr + (pid_n * BLOCK_N + rn) // SCALE_N * stride_sbn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        left = K - k
        a = tl.load(a_ptrs, mask=(rm[:, None] < m_left) & (rk[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] < left) & (rn[None, :] < n_left), other=0.0)
        scale = k // SCALE_K
        sa = tl.load(sa_ptrs + scale * stride_sak, mask=rm < m_left, other=0.0)
        sb = tl.load(sb_ptrs + scale * stride_sbk, mask=rn < n_left, other=0.0)
        total += tl.dot(a, b, out_dtype=acc_type).to(tl.float32) * (sa[:, None] * sb[None, :])
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if bias_ptr is not None:
        bias_ptr += n
    store_tile(total, c_ptr + m * stride_cm + n * stride_cn, bias_ptr, m_left, n_left, stride_cm, stride_cn, BLOCK_M, BLOCK_N)
