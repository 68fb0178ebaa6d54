"""Explicit shared memory: buffers, parts, pointers, in helpers and loops; the checker sees missing barriers. 4 warps of 32."""
import numpy as np

from _ditron import case, ditron, finish
from _kernels import HEAD, same

i32, f32 = np.int32, np.float32
T = np.arange(128)


def reverse():
    same("""
@triton.jit
def k(x, o):
    t = tid(0)
    buf = dl.allocate_smem(tl.float32, [128])
    dl.smem_store(buf, ld(x + t) * 2, [t])
    __syncthreads()
    st(o + t, dl.smem_load(buf, [127 - t]))
    tl.static_assert(buf.shape[0] == 128)
    tl.static_assert(buf.dtype == tl.float32)
    dl.smem_dealloc(buf)
""", dict(x=T.astype(f32), o=np.zeros(128, f32)), dict(o=(127 - T).astype(f32) * 2))


def parts():
    """Odd sizes, three axes, a stage chosen at run time and carried by a loop, a helper that takes a part."""
    want = np.zeros((3, 5, 7), i32)
    for s in range(3):
        want[s] = np.arange(35).reshape(5, 7) + 100 * s
    same("""
@triton.jit
def fill(part, base, COLS: tl.constexpr):
    t = tid(0)
    if t < 35:
        dl.smem_store(part, base + t, [t // COLS, t % COLS])

@triton.jit
def k(o, u, n):
    t = tid(0)
    buf = dl.allocate_smem(tl.int32, [3, 5, 7], vec=4, per_phase=2, max_phase=4)
    cur = dl.smem_index(buf, 0)
    for s in range(n):
        fill(cur, 100 * s, 7)
        cur = dl.smem_index(buf, (s + 1) % 3)
    __syncthreads()
    if t < 105:
        st(o + t, dl.smem_load(buf, [t // 35, t // 7 % 5, t % 7]))
    st(u, dl.smem_load(cur, [4, 6]))
""", dict(o=np.zeros((3, 5, 7), i32), u=np.zeros(1, i32), n=3), dict(o=want, u=np.array([34], i32)))


def pointers():
    """smem_get_ptr: arithmetic, ld, st, vectors, scalar tl.load and tl.store by the program."""
    x = np.arange(512, dtype=f32)
    same("""
@triton.jit
def k(x, o, s):
    t = tid(0)
    buf = dl.allocate_smem(tl.float32, (128, 4))
    one = dl.allocate_smem(tl.int1, [1])
    p = dl.smem_get_ptr(buf, [t, 0])
    dl.st_vector(p, dl.ld_vector(x + t * 4, 4) + 1.0)
    tl.store(dl.smem_get_ptr(one), True)
    __syncthreads()
    q = dl.smem_get_ptr(buf) + ((t + 1) % 128) * 4
    if dl.smem_load(one, [0]):
        for i in tl.static_range(4):
            st(o + t * 4 + i, ld(q + i) + ld(q + 3 - i))
    tl.store(s, tl.load(dl.smem_get_ptr(buf, [2, 1])))
""", dict(x=x, o=np.zeros(512, f32), s=np.zeros(1, f32)), dict(o=pointers_want(x), s=np.array([10], f32)))


def pointers_want(x):
    v = np.roll((x + 1).reshape(128, 4), -1, axis=0)
    return (v + v[:, ::-1]).ravel()


def with_tiles():
    """Threads leave values in shared memory between two tile operations."""
    x = np.arange(256, dtype=i32)
    same("""
@triton.jit
def k(x, o):
    t = tid(0)
    tile = tl.load(x + tl.arange(0, 256))
    total = tl.sum(tile)
    part = dl.allocate_smem(tl.int32, [4])
    v = ld(x + t) + ld(x + t + 128)
    for s in tl.static_range(5):
        v += language_extra.__shfl_xor_sync_i32(0xFFFFFFFF, v, 1 << s)
    if language_extra.laneid() == 0:
        dl.smem_store(part, v, [t // 32])
    __syncthreads()
    mine = 0
    for w in range(4):
        mine += dl.smem_load(part, [w])
    tl.store(o + tl.arange(0, 256), tile * 0 + mine - total)
""", dict(x=x, o=np.ones(256, i32)), dict(o=np.zeros(256, i32)))


def checked(body, ok, *words):
    import tempfile
    from pathlib import Path
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.py"
        path.write_text(HEAD + body)
        np.save(f"{folder}/o.npy", np.zeros(128, i32))
        p = ditron("run", path, "--grid", 1, "--check", f"o=@{folder}/o.npy", "--quiet", ok=ok)
        for w in words:
            assert w in p.stdout + p.stderr, f"no '{w}' in\n{p.stdout}{p.stderr}"


def checker():
    body = """
@triton.jit
def k(o):
    t = tid(0)
    buf = dl.allocate_smem(tl.int32, [128])
    dl.smem_store(buf, t, [t])
    {}
    st(o + t, dl.smem_load(buf, [127 - t]))
"""
    checked(body.format("__syncthreads()"), True)
    checked(body.format("pass"), False, "k.py:15", "k.py:13", "buf")  # both lines of the race
    checked(body.format("__syncthreads()").replace("[t])", "[t + 1])"), False, "127")  # outside
    checked(body.format("__syncthreads()").replace("buf, t, [t]", "buf, t, [t % 64]"), False, "k.py:13", "race")
    checked(body.format("__syncthreads()").replace("buf, t, [t]", "buf, t, [t // 2]"), False, "uninitialised")


for f in (reverse, parts, pointers, with_tiles, checker):
    case(f.__name__, f)
finish()
