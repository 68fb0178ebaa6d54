"""Per-thread operations. Written by scripts/gen-docs from builtins.def."""
from ._base import outside


def __activemask():
    """bit i: lane i is here"""
    outside("__activemask")


def __ballot_sync(mask, predicate):
    """bit i: lane i has the condition"""
    outside("__ballot_sync")


def __fence(scope=None):
    """orders accesses at a scope"""
    outside("__fence")


def __shfl_down_sync(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_down_sync")


def __shfl_down_sync_i32(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_down_sync_i32")


def __shfl_idx_sync(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_idx_sync")


def __shfl_idx_sync_i32(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_idx_sync_i32")


def __shfl_sync(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_sync")


def __shfl_sync_i32(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_sync_i32")


def __shfl_up_sync(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_up_sync")


def __shfl_up_sync_i32(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_up_sync_i32")


def __shfl_xor_sync(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_xor_sync")


def __shfl_xor_sync_i32(mask, value, lane=None):
    """a value of another lane"""
    outside("__shfl_xor_sync_i32")


def __syncthreads():
    """all threads of the program meet"""
    outside("__syncthreads")


def __syncwarp(mask=None):
    """the lanes of a warp meet"""
    outside("__syncwarp")


def arrive_inc(ptr, thread_idx, value, scope=None):
    """the program is done: one releasing addition"""
    outside("arrive_inc")


def atomic_add(ptr, value, scope=None, semantic=None):
    """one atomic addition a thread; the old value"""
    outside("atomic_add")


def atomic_add_per_warp(ptr, value, scope=None, semantic=None):
    """one lane adds, all get the old value"""
    outside("atomic_add_per_warp")


def atomic_cas(ptr, value, target_value, scope=None, semantic=None):
    """one compare and swap a thread; the old value"""
    outside("atomic_cas")


def bar_warp_sync(mask=None):
    """the lanes of a warp meet"""
    outside("bar_warp_sync")


def clock():
    """nanoseconds"""
    outside("clock")


def fence(semantic=None, scope=None):
    """orders accesses at a scope"""
    outside("fence")


def globaltimer():
    """nanoseconds"""
    outside("globaltimer")


def globaltimer_hi():
    """nanoseconds, upper 32 bits"""
    outside("globaltimer_hi")


def globaltimer_lo():
    """nanoseconds, lower 32 bits"""
    outside("globaltimer_lo")


def laneid():
    """index of this thread in its warp"""
    outside("laneid")


def ld(ptr, scope=None, semantic=None):
    """one load a thread"""
    outside("ld")


def ld_acquire(ptr, scope=None):
    """one acquiring load a thread"""
    outside("ld_acquire")


def ld_b32(ptr):
    """one relaxed 32-bit load a thread"""
    outside("ld_b32")


def ld_vector(ptr, vec_size, scope=None, semantic=None):
    """neighbouring words of memory as a vector of this thread"""
    outside("ld_vector")


def load(ptr, scope=None, semantic=None):
    """one load a thread"""
    outside("load")


def load_v2_b64(ptr):
    """neighbouring words in one access, each 64 bits of them whole"""
    outside("load_v2_b64")


def load_v4_b32(ptr):
    """neighbouring words in one access, each 64 bits of them whole"""
    outside("load_v4_b32")


def load_v4_s32(ptr):
    """neighbouring words in one access, each 64 bits of them whole"""
    outside("load_v4_s32")


def load_v4_u32(ptr):
    """neighbouring words in one access, each 64 bits of them whole"""
    outside("load_v4_u32")


def membar(scope=None):
    """orders accesses at a scope"""
    outside("membar")


def multimem_ld_reduce_p_v4(ptr, mask):
    """16 bytes of every rank added up, where the mask holds"""
    outside("multimem_ld_reduce_p_v4")


def multimem_ld_reduce_v4(ptr, acc_dtype=None):
    """16 bytes of every rank added up"""
    outside("multimem_ld_reduce_v4")


def multimem_st_b32(ptr, val0):
    """a word to its place on every rank"""
    outside("multimem_st_b32")


def multimem_st_b64(ptr, val0):
    """a word to its place on every rank"""
    outside("multimem_st_b64")


def multimem_st_p_b32(ptr, val, mask):
    """a word to its place on every rank, where the mask holds"""
    outside("multimem_st_p_b32")


def multimem_st_v2(ptr, val0, val1):
    """words to their places on every rank"""
    outside("multimem_st_v2")


def multimem_st_v4(ptr, val0, val1, val2, val3):
    """words to their places on every rank"""
    outside("multimem_st_v4")


def ntid(axis=None):
    """threads of a program"""
    outside("ntid")


def num_threads():
    """threads of a program"""
    outside("num_threads")


def num_warps():
    """warps of a program"""
    outside("num_warps")


def pack(src, dst_type):
    """the bits of a vector as one scalar"""
    outside("pack")


def pack_b32_v2(val0, val1):
    """two 32-bit values as one of 64 bits, the first lowest"""
    outside("pack_b32_v2")


def red_release(ptr, value, scope=None):
    """one releasing addition a thread"""
    outside("red_release")


def smid():
    """number of the multiprocessor"""
    outside("smid")


def st(ptr, val, scope=None, semantic=None):
    """one store a thread"""
    outside("st")


def st_b32(ptr, val0):
    """one relaxed 32-bit store a thread"""
    outside("st_b32")


def st_v2_u32(ptr, val0, val1):
    """neighbouring words in one access, each 64 bits of them whole"""
    outside("st_v2_u32")


def st_v4_b32(ptr, val0, val1, val2, val3):
    """neighbouring words in one access, each 64 bits of them whole"""
    outside("st_v4_b32")


def st_v4_u32(ptr, val0, val1, val2, val3):
    """neighbouring words in one access, each 64 bits of them whole"""
    outside("st_v4_u32")


def st_vector(ptr, vec, scope=None, semantic=None):
    """a vector of this thread to neighbouring words of memory"""
    outside("st_vector")


def store(ptr, val, scope=None, semantic=None):
    """one store a thread"""
    outside("store")


def threads_per_warp():
    """lanes of a warp"""
    outside("threads_per_warp")


def tid(axis=None):
    """index of this thread"""
    outside("tid")


def unpack(src, dst_type):
    """the bits of a scalar as a vector"""
    outside("unpack")


def wait_eq(ptr, thread_idx, value, scope=None):
    """until a counter equals a value"""
    outside("wait_eq")


def wallclock():
    """nanoseconds"""
    outside("wallclock")


def warp_idx():
    """index of this thread's warp"""
    outside("warp_idx")
