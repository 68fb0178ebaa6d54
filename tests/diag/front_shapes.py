# RUN: ditron compile %s:shapes --emit tile --sig "x=*f32, n=i32, B=100"
import triton
import triton.language as tl


@triton.jit
def shapes(x, n, B: tl.constexpr):
    a = tl.arange(0, B)  # ERROR: the length of tl.arange must be a power of two, not 100  # HINT: tl.arange(0, 128)
    b = tl.arange(5, 5)  # ERROR: is empty
    c = tl.arange(0, n)  # ERROR: must be an integer known at compile time  # HINT: tl.constexpr
    d = tl.zeros((B, 2), tl.float32)  # ERROR: the sizes of a tile are powers of two, but axis 0 has 100  # HINT: use 128
    e = tl.zeros((2048, 1024), tl.float32)  # ERROR: a tile has at most 1048576 elements
    f = tl.zeros((1 << 40, 1 << 40), tl.float32)  # ERROR: a tile has at most 1048576 elements
    g = tl.zeros((0, 4), tl.int8)  # ERROR: the sizes of a tile are powers of two, but axis 0 has 0
    h = tl.arange(0, 2048)[:, None] + tl.arange(0, 2048)[None, :]  # ERROR: which is 4194304 elements
    i = tl.reshape(tl.arange(0, 16), (4, 8))  # ERROR: has 16 elements, [4, 8] has 32
    j = tl.program_id(3)  # ERROR: program_id has axes 0, 1 and 2, not 3
    k = tl.trans(tl.arange(0, 4))  # ERROR: a transpose needs 2 axes
    m = tl.split(tl.arange(0, 4))  # ERROR: split halves a last axis of size 2
    o: tl.constexpr = n
    o1 = tl.zeros((o,), tl.float32)  # ERROR: must hold integers known at compile time
    p: tl.constexpr = 3
    p = 4  # ERROR: 'p' was declared tl.constexpr and cannot be assigned again
    q, r = 1, 2, 3  # ERROR: 2 names on the left, but 3 values on the right
    s = 1 // 0  # ERROR: division by zero
    tl.static_assert(B == 64, f"B is {B}")  # ERROR: static assertion failed: B is 100
    assert B > 200, "too small"  # ERROR: assertion failed at compile time: too small
