"""Per-thread code: lanes, per-thread memory, regions inside tile kernels. 4 warps of 32."""
import numpy as np

from _ditron import case, finish
from _kernels import run, same

i32, f32 = np.int32, np.float32
T = np.arange(128)
LANE = T % 32


def ids():
    same("""
@triton.jit
def k(o):
    t = tid(0)
    st(o + t * 4, language_extra.laneid())
    st(o + t * 4 + 1, t // language_extra.threads_per_warp())
    st(o + t * 4 + 2, language_extra.num_warps() * 1000 + language_extra.num_threads())
    st(o + t * 4 + 3, tid(1) + language_extra.ntid(0))
""", dict(o=np.zeros((128, 4), i32)), dict(o=np.stack([LANE, T // 32, np.full(128, 4128), np.full(128, 128)], 1).astype(i32)))


def lanes():
    word = sum(1 << i for i in range(32) if i % 3 == 0)
    same("""
@triton.jit
def warp_sum(v):
    for s in tl.static_range(5):
        v += language_extra.__shfl_xor_sync_i32(0xFFFFFFFF, v, 1 << s)
    return v

@triton.jit
def k(o, u):
    t = tid(0)
    lane = language_extra.laneid()
    st(o + t * 5, language_extra.__shfl_sync_i32(0xFFFFFFFF, t, 3))
    st(o + t * 5 + 1, language_extra.__shfl_up_sync_i32(0xFFFFFFFF, t, 2))
    st(o + t * 5 + 2, language_extra.__shfl_down_sync_i32(0xFFFFFFFF, t, 30))
    st(o + t * 5 + 3, warp_sum(lane))
    st(o + t * 5 + 4, language_extra.__shfl_sync_i32(0xFFFFFFFF, t, (lane + 1) % 32))
    st(u + t, language_extra.__ballot_sync(0xFFFFFFFF, lane % 3 == 0))
""", dict(o=np.zeros((128, 5), i32), u=np.zeros(128, np.uint32)),
         dict(o=np.stack([T - LANE + 3, np.where(LANE < 2, T, T - 2), np.where(LANE > 1, T, T + 30), np.full(128, 496),
                          T - LANE + (LANE + 1) % 32], 1).astype(i32), u=np.full(128, word, np.uint32)))


def exchange():
    same("""
@triton.jit
def k(x, buf, o, n):
    t = tid(0)
    if t < n:
        st(buf + t, ld(x + t) * 2)
    __syncthreads()
    v = 0
    if t < n:
        v = ld(buf + (n - 1 - t))
    st(o + t, v)
    if t == 0:
        st(o + 128, n, semantic="release", scope="sys")
        language_extra.membar("gl")
        language_extra.fence("acq_rel", "gpu")
    __syncthreads()
    s = tl.load(o + 128)
    r = tl.arange(0, 128)
    tl.store(o + 129 + r, tl.load(o + r) + s)
""", dict(x=(T * 3).astype(i32), buf=np.zeros(128, i32), o=np.zeros(257, i32), n=100), dict(o=exchange_want()))


def exchange_want():
    v = np.where(T < 100, (99 - T) * 6, 0)
    return np.concatenate([v, [100], v + 100]).astype(i32)


def counters():
    for mode, r in run("""
@triton.jit
def k(c):
    t = tid(0)
    language_extra.atomic_add(c, 1)
    language_extra.atomic_add(c + 1 + t % 4, t, scope="gpu", semantic="relaxed")
    language_extra.atomic_add_per_warp(c + 5, 10)
    if language_extra.atomic_cas(c + 6, 0, t + 1) == 0:
        language_extra.atomic_add(c + 7, 1)
    language_extra.red_release(c + 8, 2)
""", dict(c=np.zeros(9, i32)), ["c"]).items():
        c = r["c"]
        assert c[6] in range(1, 129), mode
        c[6] = 0
        np.testing.assert_array_equal(c, [128, *(T[T % 4 == j].sum() for j in range(4)), 40, 0, 1, 256], err_msg=mode)


def region():
    x = np.arange(64, dtype=f32).reshape(8, 8)
    y = x.copy()
    y[np.arange(8), np.arange(8)] = 100 + y[np.arange(8), 7 - np.arange(8)]
    same("""
@triton.jit
def k(x, o, s):
    r = tl.arange(0, 8)
    m = r[:, None] * 8 + r[None, :]
    tile = tl.load(x + m)
    n = 0
    with dl.simt_exec_region() as (t, nthreads):
        for i in range(t, 8, nthreads):
            v = tile[i, 7 - i] + 100
            tile[i, i] = v
    tl.store(o + m, tile)
    tl.store(s, tl.sum(tile))
""", dict(x=x, o=np.zeros((8, 8), f32), s=np.zeros(1, f32)), dict(o=y, s=np.array([y.sum()], f32)))


def vectors():
    x = np.arange(512, dtype=f32)
    h = np.arange(512).astype(np.float16)
    same("""
@triton.jit
def k(x, h, o, u):
    t = tid(0)
    v = language_extra.ld_vector(x + t * 4, 4)
    w = v * 2.0 + v
    acc = dl.zeros_vector(4, tl.float32)
    for i in range(3):
        acc = acc + w
    if t % 2 == 0:
        acc = acc - v
    language_extra.st_vector(o + t * 4, acc)
    q = language_extra.ld_vector(h + t * 4, 4)
    words = q.recast(tl.uint32)
    st(u + t * 3, words[1])
    z = dl.make_vector(q[0], q[1])
    st(u + t * 3 + 1, language_extra.pack(z, tl.uint32))
    st(u + t * 3 + 2, language_extra.unpack(words[0], tl.float16)[1].to(tl.uint32))
""", dict(x=x, h=h, o=np.zeros(512, f32), u=np.zeros((128, 3), np.uint32)),
         dict(o=(x.reshape(128, 4) * np.where(T % 2 == 0, 8, 9)[:, None]).astype(f32),
              u=np.stack([h.view(np.uint32).reshape(128, 2)[:, 1], h.view(np.uint32).reshape(128, 2)[:, 0],
                          h.reshape(128, 4)[:, 1].astype(np.uint32)], 1)))


def wide():
    """Several words in one access; the spellings without a mask; halves of words."""
    x = np.arange(512, dtype=np.uint32) * 7
    same("""
@triton.jit
def k(x, y, z, o):
    t = tid(0)
    a, b, c, d = language_extra.load_v4_u32(x + t * 4)
    language_extra.st_v4_u32(y + t * 4, d, c, b, a)
    language_extra.st_v2_u32(z + t * 4, a + 1, b)
    lo, hi = language_extra.load_v2_b64(x + t * 4)
    st(o + t * 4, lo == language_extra.pack_b32_v2(a, b).to(tl.int64))
    st(o + t * 4 + 1, (hi >> 32) == d.to(tl.int64))
    language_extra.st_b32(o + t * 4 + 2, language_extra.ld_b32(x + t) + 1)
    st(o + t * 4 + 3, language_extra.__shfl_xor_sync_i32(t, 1))
    e, f, g, h = language_extra.load_v4_s32(z + t * 4)
    language_extra.st_v4_b32(z + t * 4, e, f, tl.cast(-1, tl.int32), 9)
""", dict(x=x, y=np.zeros(512, np.uint32), z=np.zeros(512, np.uint32), o=np.zeros((128, 4), i32)),
         dict(y=x.reshape(128, 4)[:, ::-1].ravel(), o=np.stack([T >= 0, T >= 0, x[:128] + 1, T ^ 1], 1).astype(i32),
              z=np.stack([x[::4] + 1, x[1::4], np.full(128, 2**32 - 1), np.full(128, 9)], 1).ravel().astype(np.uint32)))


def times():
    for mode, r in run("""
@triton.jit
def k(o):
    if tid(0) == 0:
        a = language_extra.globaltimer()
        hi = language_extra.globaltimer_hi()
        lo = language_extra.globaltimer_lo()
        b = language_extra.globaltimer()
        now = (hi.to(tl.int64) << 32) + lo
        st(o, (a <= now) & (now <= b))
        language_extra.__fence("sys")
        language_extra.membar()
        language_extra.fence()
""", dict(o=np.zeros(1, i32)), ["o"]).items():
        assert r["o"][0] == 1, mode


def profiled():
    """A profiler is carried through loops, branches and helpers, and changes nothing."""
    same("""
from triton_dist.tools.profiler import Profiler

@triton.jit
def work(profiler, o, i):
    profiler = profiler.record(is_start=True, task_type=0)
    tl.store(o + i, i)
    return profiler.record(is_start=False, task_type=0)

@triton.jit
def k(o, buf, n):
    profiler = Profiler.create(profiler_buffer=buf, group_id=0, num_groups=1, is_leader=tid(0) == 0, ENABLE_PROFILING=True)
    for i in range(n):
        profiler = work(profiler, o, i)
        if i > 2:
            profiler = profiler.record(is_start=False, task_type=1)
""", dict(o=np.zeros(4, i32), buf=np.zeros(4, np.int64), n=4), dict(o=np.arange(4, dtype=i32), buf=np.zeros(4, np.int64)))


def vectors_in_helpers():
    """Vectors as arguments and results, sliced, made of slices, of other lengths and types."""
    x = np.arange(1024, dtype=np.int32)
    same("""
@triton.jit
def rotated(v, N: tl.constexpr):
    return dl.make_vector(*v[1:], v[0])

@triton.jit
def k(x, o, h):
    t = tid(0)
    v = dl.ld_vector(x + t * 8, 8, scope="sys", semantic="relaxed")
    w = rotated(v, 8)
    lo = w[0:4] * 2 - v[4:8]
    if t % 2 == 1:
        lo = lo + dl.make_vector(1, 1, 1, 1)
    dl.st_vector(o + t * 4, lo, "sys", "release")
    b = w.recast(tl.int16)
    st(h + t * 2, b[15])
    st(h + t * 2 + 1, b[14])
""", dict(x=x, o=np.zeros(512, i32), h=np.zeros(256, np.int16)),
         dict(o=(np.roll(x.reshape(128, 8), -1, 1)[:, :4] * 2 - x.reshape(128, 8)[:, 4:] + (T % 2)[:, None]).astype(i32),
              h=np.stack([np.zeros(128), x[::8]], 1).astype(np.int16)))


def spin():
    same("""
@triton.jit
def k(flag, o):
    pid = tl.program_id(0)
    t = tid(0)
    if pid == 0:
        if t < 32:
            while ld(flag + t, scope="gpu", semantic="acquire") != t + 1:
                pass
        __syncthreads()
        tl.store(o, tl.sum(tl.load(flag + tl.arange(0, 32))))
    else:
        if t < 32:
            st(flag + t, t + 1, scope="gpu", semantic="release")
""", dict(flag=np.zeros(32, i32), o=np.zeros(1, i32)), dict(o=np.array([528], i32)), grid=(2,))


for f in (ids, lanes, exchange, counters, region, vectors, vectors_in_helpers, wide, times, profiled, spin):
    case(f.__name__, f)
finish()
