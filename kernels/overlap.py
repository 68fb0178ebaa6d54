"""GEMMs overlapped with communication, with dl.release and dl.acquire. The protocol words are those of collectives.py.

The order in which tiles are computed is a jit function given as TILE_ORDER (tile_order.py)."""
import ditron
import ditron.language as dl
import triton.language as tl

from tile_order import own_rows_first, own_rows_last


@ditron.jit
def gemm_tile(a_ptr, b_ptr, rm, rn, M, N, K, stride_am, stride_bk, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
              BLOCK_K: tl.constexpr):
    """Rows rm and columns rn of A B in f32; A [M, K] and B [K, N] with unit column strides."""
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None].to(tl.int64) * stride_am + rk[None, :]
    b_ptrs = b_ptr + rk[:, None].to(tl.int64) * stride_bk + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] < left) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    return acc


@ditron.jit
def acquire_rows(flags_ptr, pid_m, M, BLOCK_M: tl.constexpr, target):
    """Waits for the owners of tile row pid_m of a gathered [M, ...]: rank r's M / world rows are there once flags[r] >= target."""
    rows_per_rank = M // dl.num_ranks()
    first = pid_m * BLOCK_M // rows_per_rank
    last = (min(pid_m * BLOCK_M + BLOCK_M, M) - 1) // rows_per_rank
    for owner in range(first, last + 1):
        dl.acquire(flags_ptr + owner, at_least=target, scope="sys")


@ditron.jit
def gemm_tile_to(c_ptr, a_ptr, b_ptr, pid_m, pid_n, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Tile (pid_m, pid_n) of C [M, N] = A B, all without gaps between rows, in C's type."""
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = gemm_tile(a_ptr, b_ptr, rm, rn, M, N, K, K, N, BLOCK_M, BLOCK_N, BLOCK_K)
    c_ptrs = c_ptr + rm[:, None].to(tl.int64) * N + rn[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@ditron.jit
def ag_gemm_kernel(a_ptr, b_ptr, c_ptr, flags_ptr, epoch_ptr, M, N, K, per_epoch, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                   BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, TILE_ORDER: tl.constexpr = own_rows_first):
    """C[M, N] = A B while A's rows arrive: rank r's M / world rows of a (symmetric, gathered) are there once flags[r] >= epoch *
    per_epoch. B [K, N] and C are this rank's. Grid: cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)."""
    rank = dl.rank()
    world = dl.num_ranks()
    pid_m, pid_n = TILE_ORDER(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), rank, world, GROUP_M)
    acquire_rows(flags_ptr, pid_m, M, BLOCK_M, tl.load(epoch_ptr) * per_epoch)
    gemm_tile_to(c_ptr, a_ptr, b_ptr, pid_m, pid_n, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)


@ditron.jit
def gemm_rs_kernel(a_ptr, b_ptr, partial_ptr, flags_ptr, acks_ptr, epoch_ptr, M, N, K, BLOCK_M: tl.constexpr,
                   BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                   TILE_ORDER: tl.constexpr = own_rows_last):
    """This rank's product A [M, K] B [K, N], each tile written straight into its owner's partial[rank, M / world, N] (symmetric, f32)
    and counted at flags[rank] there. Grid: world * cdiv(M / world, BLOCK_M) * cdiv(N, BLOCK_N)."""
    rank = dl.rank()
    world = dl.num_ranks()
    rows_per_rank = M // world
    tiles_per_rank = tl.cdiv(rows_per_rank, BLOCK_M)
    pid_m, pid_n = TILE_ORDER(tl.program_id(0), world * tiles_per_rank, tl.cdiv(N, BLOCK_N), rank, world, GROUP_M)
    owner = pid_m // tiles_per_rank
    local = (pid_m % tiles_per_rank) * BLOCK_M + tl.arange(0, BLOCK_M)
    rm = owner * rows_per_rank + local
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = gemm_tile(a_ptr, b_ptr, rm, rn, M, N, K, K, N, BLOCK_M, BLOCK_N, BLOCK_K)
    dl.acquire(acks_ptr + owner, at_least=tl.load(epoch_ptr) - 1, scope="sys")
    slot = dl.symm_at(partial_ptr, owner) + rank.to(tl.int64) * rows_per_rank * N
    ptrs = slot + local[:, None].to(tl.int64) * N + rn[None, :]
    tl.store(ptrs, acc, mask=(local[:, None] < rows_per_rank) & (rn[None, :] < N))
    dl.release(flags_ptr + rank, 1, rank=owner, sig_op="add", scope="sys")


@ditron.jit
def sum_partials_kernel(partial_ptr, out_ptr, flags_ptr, epoch_ptr, n, per_epoch, BLOCK: tl.constexpr):
    """out[n] = sum over ranks r, in order, of this rank's partial[r, n], each once flags[r] >= epoch * per_epoch. Grid: parts."""
    target = tl.load(epoch_ptr) * per_epoch
    for peer in range(0, dl.num_ranks()):
        dl.acquire(flags_ptr + peer, at_least=target, scope="sys")
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for peer in range(0, dl.num_ranks()):
            total += tl.load(partial_ptr + peer.to(tl.int64) * n + offsets, mask=mask, other=0.0)
        tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=mask)


@ditron.jit
def gemm_ar_kernel(a_ptr, b_ptr, partial_ptr, flags_ptr, acks_ptr, epoch_ptr, M, N, K, BLOCK_M: tl.constexpr,
                   BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                   TILE_ORDER: tl.constexpr = own_rows_last):
    """This rank's product A [M, K] B [K, N] into every rank's partial[rank, M, N] (symmetric, f32), counted at flags[rank] there.
    Followed by sum_partials_kernel it is GEMM + all-reduce for small M. Grid: cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)."""
    rank = dl.rank()
    world = dl.num_ranks()
    pid_m, pid_n = TILE_ORDER(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), rank, world, GROUP_M)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = gemm_tile(a_ptr, b_ptr, rm, rn, M, N, K, K, N, BLOCK_M, BLOCK_N, BLOCK_K)
    epoch = tl.load(epoch_ptr)
    offsets = rank.to(tl.int64) * M * N + rm[:, None].to(tl.int64) * N + rn[None, :]
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    for step in range(0, world):
        peer = (rank + step) % world
        dl.acquire(acks_ptr + peer, at_least=epoch - 1, scope="sys")
        tl.store(dl.symm_at(partial_ptr, peer) + offsets, acc, mask=mask)
        dl.release(flags_ptr + rank, 1, rank=peer, sig_op="add", scope="sys")


@ditron.jit
def ag_gemm_fused_kernel(x_ptr, a_ptr, b_ptr, c_ptr, flags_ptr, epoch, M, N, K, PARTS: tl.constexpr, BLOCK: tl.constexpr,
                         BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                         TILE_ORDER: tl.constexpr = own_rows_first):
    """All-gather + GEMM in one launch: the first world * PARTS instances push this rank's rows x [M / world, K] into every rank's
    symmetric a [M, K], the others multiply tiles as their rows arrive. flags [world] grow by PARTS a call; a is free to be
    overwritten when the call begins. Grid: world * PARTS + cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)."""
    rank = dl.rank()
    world = dl.num_ranks()
    pid = tl.program_id(0)
    pushers = world * PARTS
    if pid < pushers:
        peer = (rank + pid // PARTS) % world
        n = M // world * K
        dst = dl.symm_at(a_ptr, peer) + rank.to(tl.int64) * n
        for start in range((pid % PARTS) * BLOCK, n, PARTS * BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            mask = offsets < n
            tl.store(dst + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)
        dl.release(flags_ptr + rank, 1, rank=peer, sig_op="add", scope="sys")
    else:
        pid_m, pid_n = TILE_ORDER(pid - pushers, tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), rank, world, GROUP_M)
        acquire_rows(flags_ptr, pid_m, M, BLOCK_M, epoch * PARTS)
        gemm_tile_to(c_ptr, a_ptr, b_ptr, pid_m, pid_n, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
