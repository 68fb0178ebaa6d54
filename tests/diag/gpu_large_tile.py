# RUN: ditron compile %s --target sm_80 --warps 4 --sig "x_ptr=*f32, n=i32, BLOCK=131072" -o x.image
import triton
import triton.language as tl


@triton.jit
def twice(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # ERROR: a tile of 131072 elements is 1024 for each of 128 threads, of which each has 255 registers; the most is 512: take smaller blocks or more warps
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
