# What keeps products where they are: the second one needs the first; something between writes what may be the block's memory; the tiles take too
# many registers.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "x_desc=desc(f16;64,64), y_desc=desc(f16;64,64), out=*f32:16, N=i32, HOW=1, ROWS=64" --dump early
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "x_desc=desc(f16;64,64), y_desc=desc(f16;64,64), out=*f32:16, N=i32, HOW=2, ROWS=64" --dump early
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "x_desc=desc(f16;128,128), y_desc=desc(f16;128,128), out=*f32:16, N=i32, HOW=0, ROWS=128" --dump early
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "x_desc=desc(f16;64,64), y_desc=desc(f16;64,64), out=*f32:16, N=i32, HOW=0, ROWS=64" --dump early
import triton
import triton.language as tl


@triton.jit
def products(x_desc, y_desc, out, N, HOW: tl.constexpr, ROWS: tl.constexpr):
    r = tl.arange(0, ROWS)
    at = r[:, None] * ROWS + r[None, :]
    x = x_desc.load([0, 0])
    one = tl.zeros((ROWS, ROWS), tl.float32)
    two = tl.zeros((ROWS, ROWS), tl.float32)
    for i in range(0, N, ROWS):
        s = tl.dot(x, x_desc.load([i, 0]))
        p = tl.maximum(s, 0.0).to(tl.float16)
        one = tl.dot(p, x, one)
        if HOW == 2:
            tl.store(out + at, s)
        dp = tl.dot(p if HOW == 1 else x, y_desc.load([i, 0]))
        two = tl.dot((s * dp).to(tl.float16), x, two)
    tl.store(out + at, one + two)


# CHECK-NOT: until_use
# CHECK: module stage=tile
# CHECK-NOT: until_use
# CHECK: module stage=tile
# CHECK-NOT: until_use
# CHECK: module stage=tile
# CHECK-NOT: until_use
# CHECK: module stage=tile
# CHECK: {until_use=true}
