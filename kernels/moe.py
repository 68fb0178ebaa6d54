"""Mixture of experts over ranks, in Triton-distributed's spelling: tokens to the ranks of their experts and back. How many go
where is known on the device only.

Tokens are sorted by expert; expert e lives on rank e // experts_per_rank. What call c moves lies in half c % 2 of the
symmetric buffers, and signals carry the call's number, so nothing is reset: who hears call c + 1 of a peer knows that the
peer has read call c. epoch[0] is the number of the first call, at least 1.
"""
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, tid


@triton_dist.jit
def tokens_before(splits_ptr, expert, EXPERTS: tl.constexpr):
    """Tokens of all experts before this one."""
    e = tl.arange(0, EXPERTS)
    return tl.sum(tl.load(splits_ptr + e, mask=e < expert, other=0))


@triton_dist.jit
def copy_rows(dst_ptr, src_ptr, rows, HIDDEN: tl.constexpr, BLOCK: tl.constexpr):
    """dst[:rows] = src[:rows], rows of HIDDEN elements, by one program."""
    for start in range(0, rows * HIDDEN, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < rows * HIDDEN
        tl.store(dst_ptr + offsets, tl.load(src_ptr + offsets, mask=mask), mask=mask)


@triton_dist.jit
def dispatch_kernel(x_ptr, splits_ptr, out_ptr, out_splits_ptr, recv_ptr, recv_splits_ptr, signals_ptr, epoch_ptr, calls,
                    x_rows, max_rows, HIDDEN: tl.constexpr, EXPERTS: tl.constexpr, PER_RANK: tl.constexpr,
                    BLOCK: tl.constexpr):
    """Sends each peer the tokens of its experts and their counts. x: [calls, x_rows, HIDDEN] sorted by expert, splits:
    i32[calls, EXPERTS] (EXPERTS a power of two not below world * PER_RANK, zeros beyond). out[c, r] = [max_rows, HIDDEN]:
    what rank r sent, out_splits[c, r] = i32[PER_RANK]: how many for each expert here. recv: [2, world, max_rows, HIDDEN],
    recv_splits: i32[2, world, PER_RANK], signals: u64[2, world], symmetric. Grid: world, one program a peer."""
    rank = libshmem_device.my_pe()
    world = libshmem_device.n_pes()
    peer = tl.program_id(0)
    elem_bytes: tl.constexpr = x_ptr.dtype.element_ty.primitive_bitwidth // 8
    for call in range(0, calls):
        number = tl.load(epoch_ptr) + call
        half = (number % 2).to(tl.int32) * world
        splits = splits_ptr + call * EXPERTS
        first = tokens_before(splits, peer * PER_RANK, EXPERTS)
        rows = tokens_before(splits, peer * PER_RANK + PER_RANK, EXPERTS) - first
        libshmem_device.putmem_nbi_block(recv_ptr + (half + rank) * max_rows * HIDDEN,
                                         x_ptr + (call * x_rows + first) * HIDDEN, rows * HIDDEN * elem_bytes, peer)
        libshmem_device.fence()
        libshmem_device.putmem_signal_block(recv_splits_ptr + (half + rank) * PER_RANK, splits + peer * PER_RANK, PER_RANK * 4,
                                            signals_ptr + half + rank, number, libshmem_device.NVSHMEM_SIGNAL_SET, peer)
        if tid(0) == 0:
            libshmem_device.signal_wait_until(signals_ptr + half + peer, libshmem_device.NVSHMEM_CMP_EQ, number)
        __syncthreads()
        counts = recv_splits_ptr + (half + peer) * PER_RANK
        rows = 0
        for e in range(0, PER_RANK):
            count = tl.load(counts + e)
            tl.store(out_splits_ptr + (call * world + peer) * PER_RANK + e, count)
            rows += count
        copy_rows(out_ptr + (call * world + peer) * max_rows * HIDDEN, recv_ptr + (half + peer) * max_rows * HIDDEN, rows,
                  HIDDEN, BLOCK)


@triton_dist.jit
def combine_kernel(y_ptr, splits_ptr, out_ptr, recv_ptr, signals_ptr, epoch_ptr, calls, x_rows, max_rows,
                   HIDDEN: tl.constexpr, EXPERTS: tl.constexpr, PER_RANK: tl.constexpr, BLOCK: tl.constexpr):
    """The way back: y[c, r] = [max_rows, HIDDEN] are the results for what rank r sent; out[c] = [x_rows, HIDDEN] gets them in
    the order of the tokens. splits: as they were for dispatch. recv: [2, world, max_rows, HIDDEN], signals: u64[2, world],
    symmetric. Whole slots of max_rows travel. Grid: world, one program a peer."""
    rank = libshmem_device.my_pe()
    world = libshmem_device.n_pes()
    peer = tl.program_id(0)
    elem_bytes: tl.constexpr = y_ptr.dtype.element_ty.primitive_bitwidth // 8
    for call in range(0, calls):
        number = tl.load(epoch_ptr) + call
        half = (number % 2).to(tl.int32) * world
        libshmem_device.putmem_signal_block(recv_ptr + (half + rank) * max_rows * HIDDEN,
                                            y_ptr + (call * world + peer) * max_rows * HIDDEN, max_rows * HIDDEN * elem_bytes,
                                            signals_ptr + half + rank, number, libshmem_device.NVSHMEM_SIGNAL_SET, peer)
        if tid(0) == 0:
            libshmem_device.signal_wait_until(signals_ptr + half + peer, libshmem_device.NVSHMEM_CMP_EQ, number)
        __syncthreads()
        splits = splits_ptr + call * EXPERTS
        first = tokens_before(splits, peer * PER_RANK, EXPERTS)
        rows = tokens_before(splits, peer * PER_RANK + PER_RANK, EXPERTS) - first
        copy_rows(out_ptr + (call * x_rows + first) * HIDDEN, recv_ptr + (half + peer) * max_rows * HIDDEN, rows, HIDDEN, BLOCK)
