"""Collectives by threads, in Triton-distributed's spelling: thread index, ordered loads and stores, block barriers, short
vectors, words that carry their flag. The author keeps the order himself; `ditron run --check` says where he did not.

Every kernel makes `calls` calls one after the other on the same buffers and flags: x is [calls, n], and so are outputs. Words
of symmetric memory start at zero and only grow: call c of a launch has the number epoch[0] + c, which is at least 1 and which
the caller advances by `calls` from launch to launch. Data are 32-bit words where nothing else is said.
"""
import triton
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra.cuda.language_extra import (__syncthreads, atomic_add, ld, ld_acquire, load_v4_u32, num_threads,
                                                            st, st_v4_u32, tid)


# ---- barriers ----------------------------------------------------------------------------------------------
@triton_dist.jit
def grid_barrier(arrived_ptr):
    """All programs of the launch meet; one i32 word, zero at first, serves any number of barriers of equal grids."""
    __syncthreads()
    if tid(0) == 0:
        programs = tl.num_programs(0)
        before = atomic_add(arrived_ptr, 1, scope="gpu", semantic="release")
        target = (before // programs + 1) * programs
        while ld(arrived_ptr, scope="gpu", semantic="acquire") < target:
            pass
    __syncthreads()


@triton_dist.jit
def rank_barrier(flags_ptr, number):
    """The same program of all ranks meet: thread r tells rank r and hears from it. flags: i32[world], number grows."""
    __syncthreads()
    rank = dl.rank()
    peer = tid(0)
    if peer < dl.num_ranks():
        st(dl.symm_at(flags_ptr, peer) + rank, number, scope="sys", semantic="release")
        while ld_acquire(flags_ptr + peer, "sys") < number:
            pass
    __syncthreads()


@triton_dist.jit
def prefix_sum_kernel(x_ptr, out_ptr, sums_ptr, arrived_ptr, calls, n, BLOCK: tl.constexpr):
    """out[c, i] = x[c, 0] + ... + x[c, i] of i32, BLOCK elements a program: local sums, a grid barrier, the sums before, and
    another barrier before the sums are written anew. sums: i32[grid]. Grid: cdiv(n, BLOCK), all at the same time."""
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    for call in range(0, calls):
        x = tl.load(x_ptr + call * n + offsets, mask=mask, other=0)
        tl.store(sums_ptr + pid, tl.sum(x))
        grid_barrier(arrived_ptr)
        before = 0
        for p in range(0, pid):
            before += tl.load(sums_ptr + p)
        tl.store(out_ptr + call * n + offsets, tl.cumsum(x) + before, mask=mask)
        grid_barrier(arrived_ptr)


# ---- all-gather ----------------------------------------------------------------------------------------------
@triton_dist.jit
def all_gather_ll_kernel(x_ptr, out_ptr, words_ptr, epoch_ptr, calls, n):
    """Low latency: each word travels beside the call's number, (a, number, b, number) in one 16-byte access whose halves
    arrive whole, so no flag, fence or barrier comes after the data. words: u32[2, world, 4 * cdiv(n, 2)], symmetric, halves
    in turn: who hears call c + 1 of a peer knows that the peer has read call c. Grid: world, one program a peer."""
    rank = dl.rank()
    world = dl.num_ranks()
    peer = tl.program_id(0)
    thread = tid(0)
    pairs = tl.cdiv(n, 2)
    for call in range(0, calls):
        number = tl.load(epoch_ptr).to(tl.int32) + call
        flag = number.to(tl.uint32)
        half = words_ptr + (number % 2) * world * pairs * 4
        theirs = dl.symm_at(half, peer) + rank * pairs * 4
        ours = half + peer * pairs * 4
        x = x_ptr + call * n
        for i in range(thread, pairs, num_threads()):
            a = ld(x + 2 * i)
            b = a
            if 2 * i + 1 < n:
                b = ld(x + 2 * i + 1)
            st_v4_u32(theirs + 4 * i, a, flag, b, flag)
        out = out_ptr + (call * world + peer) * n
        for i in range(thread, pairs, num_threads()):
            a, flag_a, b, flag_b = load_v4_u32(ours + 4 * i)
            while (flag_a != flag) | (flag_b != flag):
                a, flag_a, b, flag_b = load_v4_u32(ours + 4 * i)
            st(out + 2 * i, a)
            if 2 * i + 1 < n:
                st(out + 2 * i + 1, b)


@triton_dist.jit
def all_gather_push_kernel(x_ptr, out_ptr, gathered_ptr, flags_ptr, epoch_ptr, calls, n, VEC: tl.constexpr):
    """Threads write x into their place on each peer in vectors, one thread then releases the peer's flag; who waited copies
    out. gathered: [world, n], flags: i32[2, world]: arrived, and read again. Grid: world, one program a peer."""
    rank = dl.rank()
    world = dl.num_ranks()
    peer = tl.program_id(0)
    thread = tid(0)
    arrived = flags_ptr
    read = flags_ptr + world
    for call in range(0, calls):
        number = tl.load(epoch_ptr).to(tl.int32) + call
        x = x_ptr + call * n
        if thread == 0:
            while ld(read + peer, scope="sys", semantic="acquire") < number - 1:
                pass
        __syncthreads()
        theirs = dl.symm_at(gathered_ptr, peer) + rank * n
        for i in range(thread * VEC, n, num_threads() * VEC):
            if i + VEC <= n:
                dl.st_vector(theirs + i, dl.ld_vector(x + i, VEC))
            else:
                for k in range(i, n):
                    st(theirs + k, ld(x + k))
        __syncthreads()
        if thread == 0:
            st(dl.symm_at(arrived, peer) + rank, number, scope="sys", semantic="release")
            while ld(arrived + peer, scope="sys", semantic="acquire") < number:
                pass
        __syncthreads()
        ours = gathered_ptr + peer * n
        for i in range(thread, n, num_threads()):
            st(out_ptr + (call * world + peer) * n + i, ld(ours + i))
        __syncthreads()
        if thread == 0:
            st(dl.symm_at(read, peer) + rank, number, scope="sys", semantic="release")


@triton_dist.jit
def gathered_kernel(gathered_ptr, out_ptr, flags_ptr, epoch_ptr, n, BLOCK: tl.constexpr):
    """Consumer of an all-gather by the copy engine: out[r] = gathered[r] once flags[r] is exactly this call's number, which
    the engine copied there behind the data. flags: i64[world]. Grid: (parts, world)."""
    source = tl.program_id(1)
    token = dl.wait(flags_ptr + source, 1, "sys", "acquire", waitValue=tl.load(epoch_ptr))
    gathered = dl.consume_token(gathered_ptr, token) + source * n
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + source * n + offsets, tl.load(gathered + offsets, mask=offsets < n), mask=offsets < n)


# ---- reductions ----------------------------------------------------------------------------------------------
@triton_dist.jit
def sum_of_ranks(x_ptr, at, VEC: tl.constexpr):
    """VEC float32 at x + at of every rank, added up in rank order."""
    total = dl.zeros_vector(VEC, tl.float32)
    for peer in range(0, dl.num_ranks()):
        total = total + dl.ld_vector(dl.symm_at(x_ptr, peer) + at, VEC)
    return total


@triton_dist.jit
def all_reduce_two_shot_kernel(x_ptr, out_ptr, mine_ptr, sum_ptr, flags_ptr, epoch_ptr, calls, n, VEC: tl.constexpr):
    """Float32. Each rank adds up its share of the vectors of all ranks and writes the sums to all. mine, sum: [n], symmetric;
    flags: i32[grid, world]. A program touches the same elements on every rank, so its barriers are with its like only.
    Grid: parts."""
    rank = dl.rank()
    world = dl.num_ranks()
    pid = tl.program_id(0)
    vectors = tl.cdiv(n, VEC)
    share = tl.cdiv(vectors, tl.num_programs(0))
    first = pid * share
    last = min(first + share, vectors)
    flags = flags_ptr + pid * world
    for call in range(0, calls):
        number = 2 * (tl.load(epoch_ptr).to(tl.int32) + call)
        for i in range(first * VEC + tid(0), min(last * VEC, n), num_threads()):
            st(mine_ptr + i, ld(x_ptr + call * n + i))
        rank_barrier(flags, number - 1)
        for v in range(first + rank + tid(0) * world, last, num_threads() * world):
            at = v * VEC
            if at + VEC <= n:
                total = sum_of_ranks(mine_ptr, at, VEC)
                for peer in range(0, world):
                    dl.st_vector(dl.symm_at(sum_ptr, peer) + at, total)
            else:
                for i in range(at, n):
                    one = sum_of_ranks(mine_ptr, i, 1)
                    for peer in range(0, world):
                        dl.st_vector(dl.symm_at(sum_ptr, peer) + i, one)
        rank_barrier(flags, number)
        for i in range(first * VEC + tid(0), min(last * VEC, n), num_threads()):
            st(out_ptr + call * n + i, ld(sum_ptr + i))


@triton_dist.jit
def reduce_scatter_ring_kernel(x_ptr, out_ptr, slots_ptr, flags_ptr, acks_ptr, epoch_ptr, calls, n, BLOCK: tl.constexpr):
    """out[c, n] = sum over ranks of their x[c, rank, n]. The sum of a chunk walks the ring, left to right, and ends with its
    owner: step s sends the chunk of rank - 1 - s. slots: [world - 1, n], flags: u64[grid, world - 1] by the left neighbour,
    acks: u64[grid] by the right one. Grid: parts, each with the elements of its own."""
    rank = dl.rank()
    world = dl.num_ranks()
    pid = tl.program_id(0)
    right = (rank + 1) % world
    left = (rank - 1 + world) % world
    flags = flags_ptr + pid * (world - 1)
    for call in range(0, calls):
        number = tl.load(epoch_ptr) + call
        x = x_ptr + call * world * n
        dl.wait(acks_ptr + pid, 1, "sys", "acquire", waitValue=number - 1)
        for step in range(0, world):
            chunk = (rank - 1 - step + 2 * world) % world
            slots = slots_ptr
            if step > 0:
                token = dl.wait(flags + step - 1, 1, "sys", "acquire", waitValue=number)
                slots = dl.consume_token(slots_ptr, token)
            theirs = dl.symm_at(slots_ptr, right)
            for start in range(pid * BLOCK, n, tl.num_programs(0) * BLOCK):
                offsets = start + tl.arange(0, BLOCK)
                mask = offsets < n
                total = tl.load(x + chunk * n + offsets, mask=mask)
                if step > 0:
                    total += tl.load(slots + (step - 1) * n + offsets, mask=mask)
                if step < world - 1:
                    tl.store(theirs + step * n + offsets, total, mask=mask)
                else:
                    tl.store(out_ptr + call * n + offsets, total, mask=mask)
            __syncthreads()
            if step < world - 1:
                dl.notify(flags + step, right, signal=number, sig_op="set", comm_scope="intra_node")
        dl.notify(acks_ptr + pid, left, signal=number, sig_op="set", comm_scope="intra_node")


# ---- queues --------------------------------------------------------------------------------------------------
@triton_dist.jit
def queue_kernel(x_ptr, out_ptr, queue_ptr, full_ptr, tiles, n, PRODUCERS: tl.constexpr, CONSUMERS: tl.constexpr,
                 SLOTS: tl.constexpr, BLOCK: tl.constexpr):
    """Tiles of x travel through a queue of SLOTS tiles in the right neighbour's memory; its consumers double them into out.
    A word a slot says whether it is full, here and there: the producer sets the consumer's to 1, the consumer sets the
    producer's back to 0. queue: [SLOTS, BLOCK], full: u64[2, SLOTS]: mine to read, mine to write. PRODUCERS and CONSUMERS
    divide SLOTS, so a slot has one of each. Grid: PRODUCERS + CONSUMERS."""
    tl.static_assert(SLOTS % PRODUCERS == 0 and SLOTS % CONSUMERS == 0)
    rank = dl.rank()
    world = dl.num_ranks()
    right = (rank + 1) % world
    left = (rank - 1 + world) % world
    taken = full_ptr + SLOTS
    pid = tl.program_id(0)
    if pid < PRODUCERS:
        theirs = dl.symm_at(queue_ptr, right)
        for tile in range(pid, tiles, PRODUCERS):
            slot = tile % SLOTS
            token = dl.wait(taken + slot, 1, "sys", "acquire", waitValue=0)
            dst = dl.consume_token(theirs, token) + slot * BLOCK + tl.arange(0, BLOCK)
            offsets = tile * BLOCK + tl.arange(0, BLOCK)
            tl.store(dst, tl.load(x_ptr + offsets, mask=offsets < n, other=0.0))
            __syncthreads()
            if tid(0) == 0:
                st(taken + slot, 1, scope="sys", semantic="relaxed")
            dl.notify(full_ptr + slot, right, signal=1, sig_op="set", comm_scope="intra_node")
    else:
        for tile in range(pid - PRODUCERS, tiles, CONSUMERS):
            slot = tile % SLOTS
            token = dl.wait(full_ptr + slot, 1, "sys", "acquire", waitValue=1)
            src = dl.consume_token(queue_ptr, token) + slot * BLOCK + tl.arange(0, BLOCK)
            offsets = tile * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + offsets, tl.load(src) * 2, mask=offsets < n)
            __syncthreads()
            if tid(0) == 0:
                st(full_ptr + slot, 0, scope="sys", semantic="relaxed")
            dl.notify(taken + slot, left, signal=0, sig_op="set", comm_scope="intra_node")
