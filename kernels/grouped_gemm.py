"""Grouped GEMM: many products of one weight shape, whose sizes are known on the device only (mixture of experts).

Rows are sorted by group: group g owns rows offsets[g] to offsets[g + 1] of A and C, and B[g]. Groups may be empty.

    grouped_gemm_kernel[(multiprocessors,)](a, b, c, offsets, groups, N, K, *a.stride(), *b.stride(), *c.stride(), ...)
    grouped_gemm_descriptor_kernel[(multiprocessors,)](a_desc, b_desc, c, offsets, groups, N, K, *c.stride(), ...)
    grouped_gemm_weights_descriptor_kernel[(multiprocessors,)](a_desc, dc_desc, db_desc, a, dc, offsets, groups, N, K, a.stride(0), dc.stride(0), ...)
"""
import triton
import triton.language as tl

from gemm import finish, multiply
from tile_order import grouped


@triton.jit
def group_of(offsets_ptr, g, first, pid, programs, BLOCK_M: tl.constexpr):
    """Where group g begins, its rows, its rows of tiles, and the first of its tiles that is this instance's: whose number among the tiles
    of all groups, `first` of them before, leaves pid when divided by the grid."""
    begin = tl.load(offsets_ptr + g)
    rows = tl.load(offsets_ptr + g + 1) - begin
    return begin, rows, tl.cdiv(rows, BLOCK_M), (pid + programs - first % programs) % programs


@triton.jit
def grouped_gemm_kernel(a_ptr, b_ptr, c_ptr, offsets_ptr, groups, N, K, stride_am, stride_ak, stride_bg, stride_bk, stride_bn,
                        stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                        GROUP_M: tl.constexpr, PRECISION: tl.constexpr = "ieee"):
    """C[rows of g] = A[rows of g] B[g]. A [rows, K], B [groups, K, N], C [rows, N], offsets: i32[groups + 1]. Each instance
    computes tiles pid, pid + grid, ... of all groups' tiles in a row: any grid."""
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first = 0  # tiles of the groups before
    for g in range(0, groups):
        begin, rows, tiles_m, own = group_of(offsets_ptr, g, first, pid, programs, BLOCK_M)
        tiles = tiles_m * tiles_n
        for tile in range(own, tiles, programs):
            pid_m, pid_n = grouped(tile, tiles_m, tiles_n, 0, 1, GROUP_M)
            m = begin.to(tl.int64) + pid_m * BLOCK_M
            n = (pid_n * BLOCK_N).to(tl.int64)
            acc = multiply(a_ptr + m * stride_am, b_ptr + tl.cast(g, tl.int64) * stride_bg + n * stride_bn,
                           tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32), rows - pid_m * BLOCK_M, N - pid_n * BLOCK_N,
                           K, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_M, BLOCK_N, BLOCK_K, PRECISION)
            finish(acc, c_ptr + m * stride_cm + n * stride_cn, None, None, rows - pid_m * BLOCK_M, N - pid_n * BLOCK_N, 1.0,
                   stride_cm, stride_cn, 0, 0, BLOCK_M, BLOCK_N, "")
        first += tiles


@triton.jit
def grouped_gemm_descriptor_kernel(a_desc, b_desc, c_ptr, offsets_ptr, groups, N, K, stride_cm, stride_cn, BLOCK_M: tl.constexpr,
                                   BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """The same with A [rows, K] and B [groups, K, N] by descriptors, in blocks of [BLOCK_M, BLOCK_K] and [1, BLOCK_K, BLOCK_N]. A tile
    at a group's end reads rows of the next group too, and does not store what it makes of them."""
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first = 0  # tiles of the groups before
    for g in range(0, groups):
        begin, rows, tiles_m, own = group_of(offsets_ptr, g, first, pid, programs, BLOCK_M)
        tiles = tiles_m * tiles_n
        for tile in range(own, tiles, programs):
            pid_m, pid_n = grouped(tile, tiles_m, tiles_n, 0, 1, GROUP_M)
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, tl.cdiv(K, BLOCK_K)):
                a = a_desc.load([begin + pid_m * BLOCK_M, k * BLOCK_K])
                b = b_desc.load([g, k * BLOCK_K, pid_n * BLOCK_N]).reshape(BLOCK_K, BLOCK_N)
                acc = tl.dot(a, b, acc, input_precision="ieee")
            m = begin.to(tl.int64) + pid_m * BLOCK_M
            n = (pid_n * BLOCK_N).to(tl.int64)
            finish(acc, c_ptr + m * stride_cm + n * stride_cn, None, None, rows - pid_m * BLOCK_M, N - pid_n * BLOCK_N, 1.0,
                   stride_cm, stride_cn, 0, 0, BLOCK_M, BLOCK_N, "")
        first += tiles


@triton.jit
def grouped_gemm_weights_kernel(a_ptr, dc_ptr, db_ptr, offsets_ptr, N, K, stride_am, stride_ak, stride_cm, stride_cn, stride_bg,
                                stride_bk, stride_bn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                                GROUP_M: tl.constexpr, PRECISION: tl.constexpr = "ieee"):
    """The gradient of the weights: dB[g] = A[rows of g]^T dC[rows of g], zeros for an empty group. Tiles of BLOCK_K x BLOCK_N,
    sums over BLOCK_M rows at a time. Grid: (cdiv(K, BLOCK_K) * cdiv(N, BLOCK_N), groups)."""
    pid_k, pid_n = grouped(tl.program_id(0), tl.cdiv(K, BLOCK_K), tl.cdiv(N, BLOCK_N), 0, 1, GROUP_M)
    g = tl.program_id(1)
    begin = tl.load(offsets_ptr + g)
    rows = tl.load(offsets_ptr + g + 1) - begin
    k = (pid_k * BLOCK_K).to(tl.int64)
    n = (pid_n * BLOCK_N).to(tl.int64)
    first = begin.to(tl.int64)
    acc = multiply(a_ptr + first * stride_am + k * stride_ak, dc_ptr + first * stride_cm + n * stride_cn,
                   tl.zeros((BLOCK_K, BLOCK_N), dtype=tl.float32), K - pid_k * BLOCK_K, N - pid_n * BLOCK_N, rows,
                   stride_ak, stride_am, stride_cm, stride_cn, BLOCK_K, BLOCK_N, BLOCK_M, PRECISION)
    finish(acc, db_ptr + g.to(tl.int64) * stride_bg + k * stride_bk + n * stride_bn, None, None, K - pid_k * BLOCK_K,
           N - pid_n * BLOCK_N, 1.0, stride_bk, stride_bn, 0, 0, BLOCK_K, BLOCK_N, "")


@triton.jit
def grouped_gemm_weights_descriptor_kernel(a_desc, dc_desc, db_desc, a_ptr, dc_ptr, offsets_ptr, groups, N, K, stride_am, stride_cm,
                                           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """The same with A [rows, K], dC [rows, N] and dB [groups, K, N] by descriptors, in blocks of [BLOCK_M, BLOCK_K], [BLOCK_M, BLOCK_N] and
    [1, BLOCK_K, BLOCK_N]. The rows that a group has beyond whole blocks are read through pointers, under a mask: what follows them is the
    next group's. Persistent: each instance computes tiles pid, pid + grid, ..."""
    tiles_k = tl.cdiv(K, BLOCK_K)
    tiles_n = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), groups * tiles_k * tiles_n, tl.num_programs(0)):
        g = tile // (tiles_k * tiles_n)
        pid_k, pid_n = grouped(tile % (tiles_k * tiles_n), tiles_k, tiles_n, 0, 1, GROUP_M)
        begin = tl.load(offsets_ptr + g)
        rows = tl.load(offsets_ptr + g + 1) - begin
        whole = rows // BLOCK_M
        acc = tl.zeros((BLOCK_K, BLOCK_N), dtype=tl.float32)
        for r in range(0, whole):
            a = a_desc.load([begin + r * BLOCK_M, pid_k * BLOCK_K])
            dc = dc_desc.load([begin + r * BLOCK_M, pid_n * BLOCK_N])
            acc = tl.dot(a.T, dc, acc, input_precision="ieee")
        if whole * BLOCK_M < rows:
            m = whole * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
            k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)[None, :]
            n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
            row = (begin + m).to(tl.int64)
            a = tl.load(a_ptr + row * stride_am + k, mask=(m < rows) & (k < K), other=0.0)
            dc = tl.load(dc_ptr + row * stride_cm + n, mask=(m < rows) & (n < N), other=0.0)
            acc = tl.dot(a.T, dc, acc, input_precision="ieee")
        db_desc.store([g, pid_k * BLOCK_K, pid_n * BLOCK_N], acc.to(db_desc.dtype).reshape(1, BLOCK_K, BLOCK_N))
