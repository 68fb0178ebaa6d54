"""What a GPU's stages do ahead of its use, run there lane by lane and checked: pointers raised to tensor descriptors that a producer warp
fetches, loads a turn early. Ragged sizes; what must not be raised gives the same."""
import numpy as np

from _ditron import case, finish
from _kernels import same

STAGES = ("interp", "laid", "lowered", "cpu")
rng = np.random.default_rng(5)

TUTORIAL = """
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr, WRAP: tl.constexpr, MASK: tl.constexpr):
    pid_m = tl.program_id(0) // tl.cdiv(N, BN)
    pid_n = tl.program_id(0) % tl.cdiv(N, BN)
    rows = pid_m * BM + tl.arange(0, BM)
    cols = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + (rows % M if WRAP else rows)[:, None] * stride_am + rk[None, :] * stride_ak
    b_ptrs = b_ptr + rk[:, None] * stride_bk + (cols % N if WRAP else cols)[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a_mask = rk[None, :] < K - k * BK
        b_mask = rk[:, None] < K - k * BK
        if not WRAP:
            a_mask = a_mask & (rows[:, None] < M)
            b_mask = b_mask & (cols[None, :] < N)
        acc = tl.dot(tl.load(a_ptrs, mask=a_mask, other=0.0), tl.load(b_ptrs, mask=b_mask, other=0.0), acc)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    out = acc.to(tl.float16)
    if MASK:
        tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :], out, mask=(rows[:, None] < M) & (cols[None, :] < N))
    else:
        tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :], out)
"""

BATCHED = """
@triton.jit
def batched(a_ptr, b_ptr, c_ptr, M, N, K, first, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    z = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + z * M * K + rows[:, None] * K + rk[None, :], mask=(rows[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + (first + z) * N * K + cols[:, None] * K + rk[None, :], mask=(cols[:, None] < N) & (rk[None, :] < K) & (cols[:, None] >= 0),
                    other=0.0)
        acc = tl.dot(a, b.T, acc)
    tl.store(c_ptr + z * M * N + rows[:, None] * N + cols[None, :], acc.to(tl.float16), mask=(rows[:, None] < M) & (cols[None, :] < N))
"""

SUMS = """
@triton.jit
def sums(x_ptr, table_ptr, out_ptr, lo, hi, STEP: tl.constexpr):
    total = tl.zeros((64,), tl.float32)
    for i in range(lo, hi, STEP):
        total += tl.load(x_ptr + tl.load(table_ptr + (i - lo) // STEP) * 64 + tl.arange(0, 64))
    tl.store(out_ptr + tl.arange(0, 64), total)
"""


# Two lower bounds on an axis: both count.
LOWER = """
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + rk[None, :], mask=(rows[:, None] >= 5) & (rows[:, None] >= 0) & (rows[:, None] < M), other=0.0)
        acc = tl.dot(a, tl.load(b_ptr + rk[:, None] * N + cols[None, :]), acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.float16), mask=rows[:, None] < M)
"""

# A sum over two turns of rows that wrap around: what a turn's mask drops was stored by the one before.
TURNS = """
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    cols = tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, 2):
        rows = ((t + 1) % 2) * BM + tl.arange(0, BM)
        for k in range(0, K, BK):
            a = tl.load(a_ptr + (rows % M)[:, None] * K + (k + rk)[None, :])
            acc = tl.dot(a, tl.load(b_ptr + (k + rk)[:, None] * N + cols[None, :]), acc)
        tl.store(c_ptr + t * BM * BN + tl.arange(0, BM)[:, None] * BN + cols[None, :], acc.to(tl.float16), mask=rows[:, None] < M)
"""

# Two loops over the blocks of v, the second from where the first ended or would have: the first may begin behind that.
CHAIN = """
@triton.jit
def chain(q_ptr, k_ptr, v_ptr, o_ptr, sk, start, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, START: tl.constexpr):
    q = tl.make_tensor_descriptor(q_ptr, [sk, D], [D, 1], [BM, D])
    k = tl.make_tensor_descriptor(k_ptr, [sk, D], [D, 1], [BN, D])
    v = tl.make_tensor_descriptor(v_ptr, [sk, D], [D, 1], [BN, D])
    tile = q.load([tl.program_id(0) * BM, 0])
    acc = tl.zeros((BM, D), tl.float32)
    middle = tl.maximum(tl.program_id(0) * BM, 0)
    for s in range(START, middle, BN):
        x = tl.dot(tile, k.load([s, 0]).T)
        acc = tl.dot(tl.minimum(x, 1.0).to(tl.float16), v.load([s, 0]), acc * 0.5)
    for s in range(middle, middle + 128, BN):
        x = tl.dot(tile, k.load([s, 0]).T)
        acc = tl.dot(tl.maximum(x, -1.0).to(tl.float16), v.load([s, 0]), acc * 0.5)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    tl.store(o_ptr + rows[:, None] * D + tl.arange(0, D)[None, :], acc.to(tl.float16), mask=rows[:, None] < sk)
"""


def f16(*shape):
    return rng.standard_normal(shape).astype(np.float16)


def product(m, n, k, wrap, order="row row", blocks=(64, 64, 64), pad=0):
    a, b = f16(m, k), f16(k, n)
    want = a.astype(np.float64) @ b.astype(np.float64)
    mask = m % blocks[0] or n % blocks[1]
    first, second = (o == "row" for o in order.split())
    wide = np.zeros((m, k + pad), np.float16)
    wide[:, :k] = a
    values = dict(a_ptr=wide if first else a.T.copy(), b_ptr=b if second else b.T.copy(), c_ptr=np.full((m, n), 9, np.float16), M=m, N=n, K=k,
                  stride_am=k + pad if first else 1, stride_ak=1 if first else m, stride_bk=n if second else 1, stride_bn=1 if second else k,
                  stride_cm=n, BM=blocks[0], BN=blocks[1], BK=blocks[2], WRAP=wrap, MASK=bool(mask))
    grid = -(-m // blocks[0]) * -(-n // blocks[1])
    same(TUTORIAL, values, dict(c_ptr=want), [grid], 2e-3, STAGES, options=("--warps", "4", "--stages", "3"))


def batched(m, n, k):
    a, b = f16(3, m, k), f16(5, n, k)
    want = a.astype(np.float64) @ b[2:5].astype(np.float64).transpose(0, 2, 1)
    same(BATCHED, dict(a_ptr=a, b_ptr=b, c_ptr=np.full((3, m, n), 9, np.float16), M=m, N=n, K=k, first=2, BM=64, BN=64, BK=32), dict(c_ptr=want),
         [-(-m // 64), -(-n // 64), 3], 2e-3, STAGES, options=("--warps", "4", "--stages", "3"))


def sums(lo, hi, step):
    n = len(range(lo, hi, step))
    x, table = rng.standard_normal((n + 3, 64)).astype(np.float32), rng.permutation(n + 3)[:n].astype(np.int32)
    want = np.zeros(64, np.float32)
    for row in table:
        want += x[row]
    same(SUMS, dict(x_ptr=x, table_ptr=table if n else np.zeros(1, np.int32), out_ptr=np.full(64, 9, np.float32), lo=lo, hi=hi, STEP=step),
         dict(out_ptr=want), [1], 1e-6 if n else 0.0, STAGES, options=("--warps", "4"))


def lower():
    a, b = f16(136, 64), f16(64, 64)
    want = a.astype(np.float64) @ b.astype(np.float64)
    want[:5] = 0
    same(LOWER, dict(a_ptr=a, b_ptr=b, c_ptr=np.full((136, 64), 9, np.float16), M=136, N=64, K=64, BM=64, BN=64, BK=32), dict(c_ptr=want), [3],
         2e-3, STAGES, options=("--warps", "4", "--stages", "3"))


def over_turns():
    a, b = f16(80, 64), f16(64, 64)
    product = lambda rows: a[rows % 80].astype(np.float64) @ b.astype(np.float64)  # noqa: E731
    first, second = product(np.arange(64, 128)), product(np.arange(64))
    want = np.full((2, 64, 64), 9.0)
    want[0, :16], want[1] = first[:16], first + second
    same(TURNS, dict(a_ptr=a, b_ptr=b, c_ptr=np.full((2, 64, 64), 9, np.float16), M=80, N=64, K=64, BM=64, BN=64, BK=32), dict(c_ptr=want), [1],
         2e-3, STAGES, options=("--warps", "4", "--stages", "3"))


def chain(start):
    sk, rows = 208, 64
    q, k, v = (f16(sk, 64) / 8 for _ in range(3))
    out = np.zeros((256, 64))
    for p in range(4):
        block = lambda x, s, n: np.pad(x, ((0, 512), (0, 0)))[s:s + n].astype(np.float64)  # noqa: E731
        acc = np.zeros((64, 64))
        for s in range(start, p * rows, 32):
            acc = acc * 0.5 + np.minimum(block(q, p * rows, rows) @ block(k, s, 32).T, 1) @ block(v, s, 32)
        for s in range(p * rows, p * rows + 128, 32):
            acc = acc * 0.5 + np.maximum(block(q, p * rows, rows) @ block(k, s, 32).T, -1) @ block(v, s, 32)
        out[p * rows:(p + 1) * rows] = acc
    same(CHAIN, dict(q_ptr=q, k_ptr=k, v_ptr=v, o_ptr=np.full((sk, 64), 9, np.float16), sk=sk, start=start, D=64, BM=64, BN=32, START=start),
         dict(o_ptr=out[:sk]), [4], 2e-3, STAGES, options=("--warps", "4", "--stages", "3"))


case("rows and columns masked", product, 144, 72, 168, False)
case("rows and columns wrap around", product, 144, 72, 168, True)
case("whole blocks, nothing masked but k", product, 128, 64, 136, True)
case("a by columns", product, 136, 64, 72, False, "col row")
case("b by columns", product, 72, 136, 136, False, "row col")
case("both by columns, rows wrap", product, 72, 72, 72, True, "col col")
case("strides larger than rows", product, 80, 64, 72, False, pad=24)
case("rows of 2 bytes more than a multiple of 16: not raised", product, 70, 65, 33, False)
case("k 0", product, 64, 64, 0, False)
case("batch and what moves the base", batched, 72, 80, 40)
case("two lower bounds", lower)
case("wrapped rows over turns", over_turns)
for begin in (0, 32, 64):
    case(f"a chain of two loops from {begin}", chain, begin)
case("a turn early", sums, 0, 640, 64)
case("no turn", sums, 5, 5, 64)
case("one turn", sums, 5, 6, 64)
case("up to the largest counter", sums, 2147483000, 2147483647, 64)
case("a step past the largest counter", sums, 2147483000, 2147483640, 639)
finish()
