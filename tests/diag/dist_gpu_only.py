# RUN: ditron compile %s:k --emit tile --sig "x=*i32, o=*i32, h=*i16, n=i32"
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device, language_extra
from triton_dist.language.extra.cuda.tma_language import elect_one_sync
from triton_dist.language.extra.language_extra import tid, ld, st


@triton.jit
def scratch():  # ERROR: 'scratch' returns shared memory, which ends with it  # HINT: allocate it in the kernel
    return dl.allocate_smem(tl.int32, [4])


@triton.jit
def k(x, o, h, n):
    t = tid(0)
    elect_one_sync()  # ERROR: drives the tensor memory accelerator and mbarriers of a GPU by hand  # HINT: tl.make_tensor_descriptor
    dl.tma.create_tmap_2d(x, 1, 2)  # ERROR: drives the tensor memory accelerator  # HINT: desc.load
    language_extra.sync_grid()  # ERROR: is the grid barrier of one vendor's device library  # HINT: atomic_add
    buf = dl.allocate_smem(tl.int32, [4, 3])
    dl.get_smem_shared_address_u32(buf)  # ERROR: is an operand for PTX text  # HINT: dl.smem_get_ptr
    dl.allocate_smem(tl.int32, [4, n])  # ERROR: 'shape' of allocate_smem must hold integers known at compile time
    dl.allocate_smem(tl.pointer_type(tl.int32), [1])  # ERROR: shared memory of *int32  # HINT: use tl.int64
    dl.smem_load(buf, [t])  # ERROR: 1 indices into a shared-memory buffer of shape [4, 3]
    dl.smem_load(x, [t])  # ERROR: smem_load takes a shared-memory buffer, not a *int32 pointer  # HINT: dl.allocate_smem
    dl.smem_index(dl.smem_index(buf, 1), 0)  # ERROR: smem_index takes a buffer of two axes or more  # HINT: smem_load
    ld(buf)  # ERROR: is no pointer  # HINT: use smem_load
    buf + 1  # ERROR: '+' is not defined between a shared-memory buffer of shape [4, 3] and the constant 1
    dl.smem_store(buf, tl.arange(0, 4), [0, 0])  # ERROR: an element of shared memory takes a scalar, not an int32[4] tile
    language_extra.ld_b32(h)  # ERROR: ld_b32 takes a pointer to 32-bit words, not to int16  # HINT: cast the pointer
    language_extra.multimem_ld_reduce_v4(x)  # ERROR: adds up float32, float16 or bfloat16, not int32
    language_extra.st_v2_u32(x, tl.arange(0, 4), 0)  # ERROR: st_v2_u32 stores one scalar a thread, not an int32[4] tile
    libshmem_device.fcollect_block(0, o + t, x, n)  # ERROR: every operand of a _block form
    libshmem_device.team_my_pe(libshmem_device.NVSHMEMX_TEAM_SAME_MYPE_NODE)  # ERROR: is a team across hosts
    if t == 0:
        dl.allocate_smem(tl.int32, [4])  # ERROR: 'allocate_smem' needs all threads of the block
    scratch()
