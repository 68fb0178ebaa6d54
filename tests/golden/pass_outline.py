# Steps that an author writes out become calls of one function; what differs between them are buffers and a constant.
# RUN: ditron compile %s:turn --sig "X=*i32, Y=*i32, STEPS=60" --target x86-64 --dump outline
import triton
import triton.language as tl


@triton.jit
def turn(X, Y, STEPS: tl.constexpr):
    at = tl.arange(0, 256)
    x = tl.load(X + at)
    for i in tl.static_range(STEPS):
        x = tl.gather(x, at ^ (i * 5 + 1), 0) * 3 + at
    tl.store(Y + at, x)


# CHECK: kernel @turn
# CHECK: = const {value=6} : i32
# CHECK-NEXT: callee=@turn.nest.0
# CHECK: = const {value=286} : i32
# CHECK-NEXT: callee=@turn.nest.0
# CHECK: store_vec
# CHECK: func @turn.nest.0(%0: memdesc<256xi32, scratch>, %1: memdesc<256xi32, scratch>, %2: i32) {
# CHECK: splat %2 : tile<8xi32>
# CHECK-NOT: 286
# CHECK: mem_gather %0
# CHECK: mem_set %1
