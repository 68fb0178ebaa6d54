"""The overlapped kernels again with raw primitives, in Triton-distributed's spelling: thread index, block barriers, ordered
loads and stores, signals. The author keeps the order himself; `ditron run --check` says where he did not."""
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid

from overlap import gemm_tile, gemm_tile_to
from tile_order import own_rows_first, own_rows_last


@triton_dist.jit
def all_gather_put_kernel(x_ptr, gathered_ptr, flags_ptr, acks_ptr, epoch_ptr, bytes_per_rank):
    """Puts this rank's shard into every rank's gathered buffer and signals flags[rank] = epoch there. Grid: world."""
    rank = libshmem_device.my_pe()
    world = libshmem_device.n_pes()
    peer = (rank + tl.program_id(0)) % world
    epoch = tl.load(epoch_ptr)
    if tid(0) == 0:
        libshmem_device.signal_wait_until(acks_ptr + peer, libshmem_device.NVSHMEM_CMP_GE, epoch - 1)
    __syncthreads()
    dst = gathered_ptr.to(tl.pointer_type(tl.int8)) + rank.to(tl.int64) * bytes_per_rank
    libshmem_device.putmem_signal_block(dst, x_ptr.to(tl.pointer_type(tl.int8)), bytes_per_rank, flags_ptr + rank, epoch,
                                        libshmem_device.NVSHMEM_SIGNAL_SET, peer)


@triton_dist.jit
def ag_gemm_wait_kernel(a_ptr, b_ptr, c_ptr, flags_ptr, epoch_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                        BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, TILE_ORDER: tl.constexpr = own_rows_first):
    """ag_gemm_kernel with dl.wait and dl.consume_token: flags[r] is exactly epoch when rank r's rows are there."""
    rank = dl.rank()
    world = dl.num_ranks()
    pid_m, pid_n = TILE_ORDER(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), rank, world, GROUP_M)
    rows_per_rank = M // world
    first = pid_m * BLOCK_M // rows_per_rank
    last = (min(pid_m * BLOCK_M + BLOCK_M, M) - 1) // rows_per_rank
    token = dl.wait(flags_ptr + first, last - first + 1, "sys", "acquire", waitValue=tl.load(epoch_ptr))
    a_ptr = dl.consume_token(a_ptr, token)
    gemm_tile_to(c_ptr, a_ptr, b_ptr, pid_m, pid_n, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)


@triton_dist.jit
def gemm_rs_notify_kernel(a_ptr, b_ptr, partial_ptr, flags_ptr, acks_ptr, epoch_ptr, M, N, K, BLOCK_M: tl.constexpr,
                          BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                          TILE_ORDER: tl.constexpr = own_rows_last):
    """gemm_rs_kernel with a hand-written spin, a block barrier and a signal by one thread."""
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
    epoch = tl.load(epoch_ptr)
    if tid(0) == 0:
        while ld(acks_ptr + owner, scope="sys", semantic="acquire") < epoch - 1:
            pass
    __syncthreads()
    slot = dl.symm_at(partial_ptr, owner) + rank.to(tl.int64) * rows_per_rank * N
    ptrs = slot + local[:, None].to(tl.int64) * N + rn[None, :]
    tl.store(ptrs, acc, mask=(local[:, None] < rows_per_rank) & (rn[None, :] < N))
    __syncthreads()
    if tid(0) == 0:
        libshmem_device.fence()
        libshmem_device.signal_op(flags_ptr + rank, 1, libshmem_device.NVSHMEM_SIGNAL_ADD, owner)


@triton_dist.jit
def gemm_ar_notify_kernel(a_ptr, b_ptr, partial_ptr, flags_ptr, acks_ptr, epoch_ptr, M, N, K, BLOCK_M: tl.constexpr,
                          BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                          TILE_ORDER: tl.constexpr = own_rows_last):
    """gemm_ar_kernel with dl.wait on the acknowledgements and a release store by one thread to a word of its own a tile:
    flags is [world, tiles], flags[rank, tile] = epoch on every rank."""
    rank = dl.rank()
    world = dl.num_ranks()
    tile = tl.program_id(0)
    tiles = tl.num_programs(0)
    pid_m, pid_n = TILE_ORDER(tile, tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), rank, world, GROUP_M)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = gemm_tile(a_ptr, b_ptr, rm, rn, M, N, K, K, N, BLOCK_M, BLOCK_N, BLOCK_K)
    epoch = tl.load(epoch_ptr)
    offsets = rank.to(tl.int64) * M * N + rm[:, None].to(tl.int64) * N + rn[None, :]
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    for step in range(0, world):
        peer = (rank + step) % world
        if tid(0) == 0:
            libshmem_device.signal_wait_until(acks_ptr + peer, libshmem_device.NVSHMEM_CMP_GE, epoch - 1)
        __syncthreads()
        tl.store(dl.symm_at(partial_ptr, peer) + offsets, acc, mask=mask)
        __syncthreads()
        if tid(0) == 0:
            st(dl.symm_at(flags_ptr, peer) + rank * tiles + tile, epoch, scope="sys", semantic="release")


@triton_dist.jit
def sum_partials_wait_kernel(partial_ptr, out_ptr, flags_ptr, epoch_ptr, n, n_flags, BLOCK: tl.constexpr):
    """out[n] = sum over ranks r, in order, of this rank's partial[r, n] once all n_flags words at flags are epoch. Grid: parts."""
    token = dl.wait(flags_ptr, n_flags, "sys", "acquire", waitValue=tl.load(epoch_ptr))
    partial_ptr = dl.consume_token(partial_ptr, token)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for peer in range(0, dl.num_ranks()):
            total += tl.load(partial_ptr + peer.to(tl.int64) * n + offsets, mask=mask, other=0.0)
        tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=mask)
