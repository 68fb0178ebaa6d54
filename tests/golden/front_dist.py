# RUN: ditron compile %s:program --emit tile --sig "x=*f32, f=*i64, g=*i32, n=i32"
# RUN: ditron compile %s:shmem --emit tile --sig "x=*f32, f=*u64, n=i32"
# RUN: ditron compile %s:threads --emit tile --sig "x=*f32, f=*i32, n=i32"
"""What each distributed and per-thread operation becomes."""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device, language_extra


@triton.jit
def program(x, f, g, n):
    rank = dl.rank()
    world = dl.num_ranks()
    peer = (rank + 1) % world
    token = dl.wait(f, 2, "sys", "acquire", waitValue=n)
    y = dl.consume_token(x, token)
    z = dl.symm_at(y, peer)
    tl.store(z, tl.load(y))
    dl.notify(f, peer, signal=3, sig_op="add", comm_scope="intra_node")
    dl.notify(g, rank, comm_scope="gpu")
    dl.release(f, n)
    dl.release(f, 1, rank=peer, sig_op="add")
    dl.acquire(f, at_least=n, scope="gpu")
    language_extra.__syncthreads()


@triton.jit
def shmem(x, f, n):
    me = libshmem_device.my_pe()
    peer = (me + 1) % libshmem_device.n_pes()
    libshmem_device.putmem_block(x, x, n * 4, peer)
    libshmem_device.putmem_nbi_warp(x, x, n * 4, peer)
    libshmem_device.getmem(x, x, n, peer)
    libshmem_device.putmem_signal_nbi_block(x, x, n, f, 1, libshmem_device.NVSHMEM_SIGNAL_ADD, peer)
    libshmem_device.signal_op(f, 5, libshmem_device.NVSHMEM_SIGNAL_SET, peer)
    libshmem_device.signal_wait_until(f, libshmem_device.NVSHMEM_CMP_GE, 5)
    libshmem_device.fence()
    libshmem_device.quiet()
    libshmem_device.barrier_all_block()
    libshmem_device.barrier_warp(libshmem_device.NVSHMEM_TEAM_WORLD)


@triton.jit
def threads(x, f, n):
    t = language_extra.tid(0)
    v = language_extra.ld(f, scope="sys", semantic="acquire")
    if t == 0:
        language_extra.st(f, v + n, scope="gpu", semantic="release")
    language_extra.atomic_add(f, 1)
    language_extra.atomic_cas(f, 0, 1, "sys", "acq_rel")
    w = language_extra.__shfl_xor_sync_i32(0xFFFFFFFF, v, 1)
    b = language_extra.__ballot_sync(0xFFFFFFFF, w > 0)
    language_extra.membar("sys")
    language_extra.__syncwarp()
    for i in range(t, n, language_extra.num_threads()):
        w += i
    while language_extra.ld(f) != w:
        pass
# OUTPUT:
# module stage=tile warps=4 stages=2 lanes=32
#
# kernel @program(%x: ptr<f32>, %f: ptr<i64>, %g: ptr<i32>, %n: i32) {
#   %rank = rank : i32
#   %world = num_ranks : i32
#   %0 = const {value=1} : i32
#   %1 = add %rank, %0 : i32
#   %peer = rem_s %1, %world : i32
#   %2 = const {value=2} : i32
#   %3 = ext_s %n : i64
#   %4 = wait %f, %2, %3 {cmp=eq, order=acquire, scope=sys} : token
#   %y = consume %x, %4 : ptr<f32>
#   %z = symm_at %y, %peer : ptr<f32>
#   %5 = load %y, _, _ : f32
#   store %z, %5, _
#   %6 = const {value=3} : i64
#   signal %f, %6, %peer {order=release, scope=sys, sigop=add}
#   %7 = const {value=1} : i32
#   signal %g, %7, %rank {order=release, scope=gpu, sigop=set}
#   %8 = ext_s %n : i64
#   release %f, %8, _ {scope=sys, sigop=set}
#   %9 = const {value=1} : i64
#   release %f, %9, %peer {scope=sys, sigop=add}
#   %10 = ext_s %n : i64
#   %11 = acquire %f, %10 {cmp=sge, scope=gpu} : token
#   barrier
#   return
# }
# module stage=tile warps=4 stages=2 lanes=32
#
# kernel @shmem(%x: ptr<f32>, %f: ptr<i64>, %n: i32) {
#   %me = rank : i32
#   %0 = num_ranks : i32
#   %1 = const {value=1} : i32
#   %2 = add %me, %1 : i32
#   %peer = rem_s %2, %0 : i32
#   %3 = const {value=4} : i32
#   %4 = mul %n, %3 : i32
#   %5 = ext_s %4 : i64
#   put %x, %x, %5, %peer {group=block}
#   %6 = const {value=4} : i32
#   %7 = mul %n, %6 : i32
#   %8 = to_thread %x : thread ptr<f32>
#   %9 = to_thread %x : thread ptr<f32>
#   %10 = ext_s %7 : i64
#   %11 = to_thread %10 : thread i64
#   %12 = to_thread %peer : thread i32
#   put %8, %9, %11, %12 {group=warp, nbi=true}
#   %13 = to_thread %x : thread ptr<f32>
#   %14 = to_thread %x : thread ptr<f32>
#   %15 = ext_s %n : i64
#   %16 = to_thread %15 : thread i64
#   %17 = to_thread %peer : thread i32
#   get %13, %14, %16, %17 {group=thread}
#   %18 = ext_s %n : i64
#   %19 = const {value=1} : i64
#   put_signal %x, %x, %18, %f, %19, %peer {sigop=add, group=block, nbi=true}
#   %20 = to_thread %f : thread ptr<i64>
#   %21 = const {value=5} : i64
#   %22 = to_thread %21 : thread i64
#   %23 = to_thread %peer : thread i32
#   signal %20, %22, %23 {order=relaxed, scope=sys, sigop=set}
#   %24 = const {value=5} : i64
#   %25 = wait %f, _, %24 {cmp=sge, order=acquire, scope=sys} : token
#   put_fence
#   put_quiet
#   team_barrier _ {scope=sys, group=block}
#   %26 = const {value=0} : i32
#   %27 = to_thread %26 : thread i32
#   team_barrier %27 {scope=sys, group=warp}
#   return
# }
# module stage=tile warps=4 stages=2 lanes=32
#
# kernel @threads(%x: ptr<f32>, %f: ptr<i32>, %n: i32) {
#   %t = tid : thread i32
#   %0 = to_thread %f : thread ptr<i32>
#   %v = load %0, _, _ {order=acquire, scope=sys} : thread i32
#   %1 = const {value=0} : i32
#   %2 = to_thread %1 : thread i32
#   %3 = cmp %t, %2 {cmp=eq} : thread i1
#   if %3 {
#     %4 = to_thread %n : thread i32
#     %5 = add %v, %4 : thread i32
#     %6 = to_thread %f : thread ptr<i32>
#     store %6, %5, _ {order=release, scope=gpu}
#     yield
#   } {
#     yield
#   }
#   %7 = to_thread %f : thread ptr<i32>
#   %8 = const {value=1} : i32
#   %9 = to_thread %8 : thread i32
#   %10 = atomic_rmw %7, %9, _ {order=relaxed, scope=gpu, rmw=add} : thread i32
#   %11 = to_thread %f : thread ptr<i32>
#   %12 = const {value=0} : i32
#   %13 = to_thread %12 : thread i32
#   %14 = to_thread %f : thread ptr<i32>
#   %15 = const {value=1} : i32
#   %16 = to_thread %15 : thread i32
#   %17 = atomic_cas %14, %13, %16 {order=acq_rel, scope=sys} : thread i32
#   %18 = const {value=1} : i32
#   %19 = to_thread %18 : thread i32
#   %w = shfl %v, %19 {shfl=xor} : thread i32
#   %20 = const {value=0} : i32
#   %21 = to_thread %20 : thread i32
#   %22 = cmp %w, %21 {cmp=sgt} : thread i1
#   %b = ballot %22 : thread i32
#   fence {order=seq_cst, scope=sys}
#   warp_barrier
#   %23 = const {value=128} : i32
#   %24 = to_thread %n : thread i32
#   %25 = to_thread %23 : thread i32
#   %26 = for %t, %24, %25, %w : thread i32 { (%i: thread i32, %w_1: thread i32)
#     %w_2 = add %w_1, %i : thread i32
#     yield %w_2
#   }
#   while {
#     %27 = to_thread %f : thread ptr<i32>
#     %28 = load %27, _, _ {order=relaxed, scope=gpu} : thread i32
#     %29 = cmp %28, %26 {cmp=ne} : thread i1
#     cond_yield %29
#   } {
#     yield
#   }
#   return
# }
