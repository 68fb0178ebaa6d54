# RUN: ditron compile %s:threads --emit tile --sig "x=*f32, f=*i32, n=i32"
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid


@triton.jit
def threads(x, f, n):
    t = tid(0)  # NOTE: because of tid(0)
    r = tl.arange(0, 16)
    if t == 0:
        tl.store(x + r, 0.0)  # ERROR: a tile operation needs all threads of the block, but stands under control  # HINT: tl.where
    if t < 32:
        __syncthreads()  # ERROR: '__syncthreads' needs all threads of the block
    a = r + t  # ERROR: a scalar that fills a tile must be the same in all threads
    for i in range(t):
        b = tl.zeros((4,), tl.float32)  # ERROR: making a tile needs all threads
    while ld(f) < 3:
        c = tl.sum(r)  # ERROR: 'sum' needs all threads
    dl.release(f, t)  # ERROR: the value of dl.release must be the same in all threads
    libshmem_device.putmem_block(x, x, t, 0)  # ERROR: every operand of a _block form must be the same in all threads
    tile = tl.zeros((16,), tl.float32)
    for i in range(t):  # ERROR: the tile 'tile', which this loop changes, needs all threads
        tile = tile
    dl.symm_at(x + r, 0)  # ERROR: symm_at takes a scalar pointer, not a tile of them
    dl.wait(x, 1, "gpu", "acquire")  # ERROR: a flag word of type fp32
    dl.wait(f, 1, "galaxy", "acquire")  # ERROR: "galaxy" is none of
