"""Collectives over symmetric memory, by kernels.

Shared protocol of one channel (one per team and stream). All words are i64 in symmetric memory unless said otherwise:
  epoch  this rank's own two words (device memory): epoch[0] is advanced by one at the start of each call and never reset,
         epoch[1] is the epoch before, for streams that wait for acknowledgements
  flags  [world], flags[r] is written by rank r: "my part of call e is in your memory"
  acks   [world], acks[r] is written by rank r: "I have read what you gave me in call e; you may overwrite it"
Flags and acks only grow and are waited for with >=, so nothing is reset between calls and a replay finds fresh values.
"""
import ditron
import ditron.language as dl
import triton.language as tl


@ditron.jit
def advance_epoch_kernel(epoch_ptr):
    """epoch[1] = epoch[0]; epoch[0] += 1. Grid 1; first kernel of every call on the channel."""
    before = tl.load(epoch_ptr)
    tl.store(epoch_ptr + 1, before)
    tl.store(epoch_ptr, before + 1)


@ditron.jit
def announce_kernel(flags_ptr, epoch_ptr, per_epoch):
    """Tells every rank that what this rank wrote before (in stream order) may be read: flags[rank] = epoch * per_epoch there.
    Also the acknowledgement, with acks for flags. Grid: world."""
    peer = tl.program_id(0)
    dl.release(flags_ptr + dl.rank(), tl.load(epoch_ptr) * per_epoch, rank=peer, scope="sys")


@ditron.jit
def wait_all_kernel(flags_ptr, epoch_ptr, per_epoch, lag):
    """Ends when every rank's flag has reached (epoch - lag) * per_epoch. Grid 1."""
    target = (tl.load(epoch_ptr) - lag) * per_epoch
    for peer in range(0, dl.num_ranks()):
        dl.acquire(flags_ptr + peer, at_least=target, scope="sys")


@ditron.jit
def copy_block(dst_ptr, src_ptr, n, BLOCK: tl.constexpr):
    """dst[:n] = src[:n], this instance's share along grid axis 0."""
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(dst_ptr + offsets, tl.load(src_ptr + offsets, mask=mask), mask=mask)


@ditron.jit
def all_gather_push_kernel(x_ptr, gathered_ptr, flags_ptr, acks_ptr, epoch_ptr, n, BLOCK: tl.constexpr):
    """Writes this rank's x[n] into every rank's gathered[rank * n ...]. Grid: (parts, world); flags grow by parts a call."""
    rank = dl.rank()
    peer = (rank + tl.program_id(1)) % dl.num_ranks()
    epoch = tl.load(epoch_ptr)
    dl.acquire(acks_ptr + peer, at_least=epoch - 1, scope="sys")
    copy_block(dl.symm_at(gathered_ptr, peer) + rank.to(tl.int64) * n, x_ptr, n, BLOCK)
    dl.release(flags_ptr + rank, 1, rank=peer, sig_op="add", scope="sys")


@ditron.jit
def all_gather_pull_kernel(x_ptr, out_ptr, flags_ptr, epoch_ptr, n, BLOCK: tl.constexpr):
    """Reads every rank's symmetric x[n] into out[peer * n ...] once it was announced. Grid: (parts, world)."""
    peer = (dl.rank() + tl.program_id(1)) % dl.num_ranks()
    dl.acquire(flags_ptr + peer, at_least=tl.load(epoch_ptr), scope="sys")
    copy_block(out_ptr + peer.to(tl.int64) * n, dl.symm_at(x_ptr, peer), n, BLOCK)


@ditron.jit
def all_gather_ring_kernel(x_ptr, gathered_ptr, flags_ptr, acks_ptr, epoch_ptr, n, BLOCK: tl.constexpr):
    """Passes chunks round the ring rank -> rank + 1. flags: [world, parts], one word a chunk and part, written by the rank
    before; acks[rank + 1] gates the reuse of the right neighbour's memory. Grid: parts."""
    rank = dl.rank()
    world = dl.num_ranks()
    part = tl.program_id(0)
    parts = tl.num_programs(0)
    epoch = tl.load(epoch_ptr)
    right = (rank + 1) % world
    copy_block(gathered_ptr + rank.to(tl.int64) * n, x_ptr, n, BLOCK)
    if world > 1:
        dl.acquire(acks_ptr + right, at_least=epoch - 1, scope="sys")
    for step in range(0, world - 1):
        chunk = (rank - step + world) % world
        if step > 0:
            dl.acquire(flags_ptr + chunk * parts + part, at_least=epoch, scope="sys")
        base = gathered_ptr + chunk.to(tl.int64) * n
        copy_block(dl.symm_at(base, right), base, n, BLOCK)
        dl.release(flags_ptr + chunk * parts + part, epoch, rank=right, scope="sys")
    if world > 1:
        last = (rank + 1) % world
        dl.acquire(flags_ptr + last * parts + part, at_least=epoch, scope="sys")


@ditron.jit
def sum_over_ranks(x_ptr, offsets, mask, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of every rank's x[offsets] in rank order: bitwise the same on every rank and in every run. Integers and f64 are
    summed as they are, smaller floats in f32."""
    elem = x_ptr.dtype.element_ty
    if elem.is_floating() and elem.primitive_bitwidth < 64:
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for peer in range(0, dl.num_ranks()):
            total += tl.load(dl.symm_at(x_ptr, peer) + offsets, mask=mask, other=0.0).to(tl.float32)
    else:
        total = tl.zeros((BLOCK,), dtype=elem)
        for peer in range(0, dl.num_ranks()):
            total += tl.load(dl.symm_at(x_ptr, peer) + offsets, mask=mask, other=0)
    return total.to(DTYPE)


@ditron.jit
def reduce_scatter_kernel(x_ptr, out_ptr, flags_ptr, epoch_ptr, n, BLOCK: tl.constexpr):
    """out[n] = sum over ranks of their symmetric x[rank * n : (rank + 1) * n], once announced. Grid: parts."""
    rank = dl.rank()
    epoch = tl.load(epoch_ptr)
    for peer in range(0, dl.num_ranks()):
        dl.acquire(flags_ptr + peer, at_least=epoch, scope="sys")
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        total = sum_over_ranks(x_ptr + rank.to(tl.int64) * n, offsets, mask, out_ptr.dtype.element_ty, BLOCK)
        tl.store(out_ptr + offsets, total, mask=mask)


@ditron.jit
def all_reduce_one_shot_kernel(x_ptr, out_ptr, flags_ptr, epoch_ptr, n, BLOCK: tl.constexpr):
    """out[n] = sum over ranks of their symmetric x[n], read from every peer: least latency. Grid: parts."""
    epoch = tl.load(epoch_ptr)
    for peer in range(0, dl.num_ranks()):
        dl.acquire(flags_ptr + peer, at_least=epoch, scope="sys")
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out_ptr + offsets, sum_over_ranks(x_ptr, offsets, mask, out_ptr.dtype.element_ty, BLOCK), mask=mask)


@ditron.jit
def all_reduce_two_shot_kernel(x_ptr, gathered_ptr, flags_ptr, done_ptr, epoch_ptr, n, chunk, BLOCK: tl.constexpr):
    """Each rank sums its chunk of the symmetric x[n] and writes it into every rank's gathered[n]: least traffic. chunk =
    cdiv(n, world). done: [world] words that grow by parts a call. Grid: parts."""
    rank = dl.rank()
    world = dl.num_ranks()
    epoch = tl.load(epoch_ptr)
    for peer in range(0, world):
        dl.acquire(flags_ptr + peer, at_least=epoch, scope="sys")
    begin = rank.to(tl.int64) * chunk
    count = min(chunk, max(n - begin, 0))
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        offsets = begin + start + tl.arange(0, BLOCK)
        mask = offsets < begin + count
        total = sum_over_ranks(x_ptr, offsets, mask, gathered_ptr.dtype.element_ty, BLOCK)
        for peer in range(0, world):
            tl.store(dl.symm_at(gathered_ptr, peer) + offsets, total, mask=mask)
    for peer in range(0, world):
        dl.release(done_ptr + rank, 1, rank=peer, sig_op="add", scope="sys")


@ditron.jit
def all_to_all_kernel(x_ptr, received_ptr, flags_ptr, acks_ptr, epoch_ptr, n, BLOCK: tl.constexpr):
    """Writes x[peer * n ...] into received[rank * n ...] of every peer. Grid: (parts, world); flags grow by parts a call."""
    rank = dl.rank()
    peer = (rank + tl.program_id(1)) % dl.num_ranks()
    epoch = tl.load(epoch_ptr)
    dl.acquire(acks_ptr + peer, at_least=epoch - 1, scope="sys")
    copy_block(dl.symm_at(received_ptr, peer) + rank.to(tl.int64) * n, x_ptr + peer.to(tl.int64) * n, n, BLOCK)
    dl.release(flags_ptr + rank, 1, rank=peer, sig_op="add", scope="sys")
