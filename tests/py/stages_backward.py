"""Flash attention's backward pass in the stages of a GPU, run there lane by lane and checked, against float64: dQ by atomic sums, blocks that are
held for loops, vectors beside blocks, products issued early. Ragged sizes, few and many warps and stages. TIMEOUT: 300"""
import numpy as np

from _attention import Problem
from _ditron import KERNELS, below, case, ditron, finish, run_kernel
from _kernels import same
from _library import cdiv

MODES = {"laid": ["--stage", "laid", "--check"], "lowered": ["--stage", "lowered", "--check"]}
STAGES = ("interp", "laid", "lowered", "cpu")
KERNEL = f"{KERNELS}/attention_backward.py:attention_backward_kv_kernel"


def backward(sq, sk, heads, kv_heads, d, causal, warps, stages, blocks, dtype="f16", layout="bshd"):
    p = Problem([sq], [sk], heads, kv_heads, d, causal, dtype, layout)
    _, lse, delta, dq, dk, dv = p.references(backward=True)
    values = dict(p.values(), dout_ptr=p.dout[1], lse_ptr=np.ascontiguousarray(lse, np.float32), delta_ptr=np.ascontiguousarray(delta, np.float32),
                  dk_ptr=p.like(p.k, 7.0), dv_ptr=p.like(p.k, 7.0), dq_sum_ptr=p.like(p.q, 0.0, "f32"), BLOCK_M=blocks[0], BLOCK_N=blocks[1])
    for mode, options in MODES.items():
        got = run_kernel(KERNEL, [cdiv(sk, blocks[1]), kv_heads], values, ["dk_ptr", "dv_ptr", "dq_sum_ptr"], mode=options,
                         options=("--warps", str(warps), "--stages", str(stages)))
        for name, want in dict(dk_ptr=dk, dv_ptr=dv, dq_sum_ptr=dq).items():
            error = np.linalg.norm(np.asarray(got[name], np.float64) - want) / np.linalg.norm(want)
            below(error, 3e-3 if dtype == "f16" else 2e-2, f"{mode} {name}")


def has_what_it_is_for():
    """The kernel as a GPU runs it: the producer's warp, sums of strips, products in flight beside others."""
    sig = ", ".join([*(f"{n}=*f16:16" for n in "q_ptr k_ptr v_ptr dout_ptr dk_ptr dv_ptr".split()),
                     *(f"{n}=*f32:16" for n in "lse_ptr delta_ptr dq_sum_ptr".split()), "cu_q_ptr=None, cu_k_ptr=None, scale=f32",
                     *(f"{n}=i32:16" for n in "seq_q seq_k rows_q q_batch q_head q_row k_batch k_head k_row".split()),
                     "heads=i32, kv_heads=i32, HEAD_DIM=64, BLOCK_M=64, BLOCK_N=64, CAUSAL=True"])
    text = ditron("compile", KERNEL, "--target", "sm_90a", "--warps", 4, "--stages", 3, "--sig", sig, "--emit", "lowered").stdout
    for word in ("warp_partitions", "rmw=fadd", "pending=2", "memdesc<1*64x64xf16, shared", "memdesc<3*64xf32, shared>"):
        assert word in text, word


# Tiles in turn; each holds its k. An inner loop of no turns now and then, and a tile without its loop.
HELD = """
@triton.jit
def held(q_ptr, k_ptr, x_ptr, o_ptr, N, M, skipped, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, RAGGED: tl.constexpr):
    d = tl.arange(0, D)
    for t in range(tl.program_id(0), tl.cdiv(M, BM), tl.num_programs(0)):
        rows = t * BM + tl.arange(0, BM)
        acc = tl.zeros((BM, D), tl.float32)
        if t != skipped:
            k = tl.load(k_ptr + rows[:, None] * D + d[None, :], mask=rows[:, None] < M, other=0.0)
            end = N * (t % 3) // 2 if RAGGED else N
            for i in range(0, end, BN):
                at = i + tl.arange(0, BN)
                q = tl.load(q_ptr + at[:, None] * D + d[None, :], mask=at[:, None] < N, other=0.0)
                s = tl.dot(k, q.T)
                x = tl.load(x_ptr + at, mask=at < N, other=0.0)
                p = tl.maximum(s, 0.0) * x[None, :]
                acc = tl.dot(p.to(tl.float16), q, acc)
        tl.store(o_ptr + rows[:, None] * D + d[None, :], acc.to(tl.float16), mask=rows[:, None] < M)
"""


def held(n, m, d, grid, warps, stages, skipped=-1, ragged=False, bm=64, bn=64):
    rng = np.random.default_rng(3)
    q, k = ((rng.integers(-1, 2, (rows, d)) * (rng.random((rows, d)) < 0.3)).astype(np.float16) for rows in (n, m))
    x = rng.integers(0, 3, n).astype(np.float32)
    want = np.zeros((m, d))
    for t in range(cdiv(m, bm)):
        end = n * (t % 3) // 2 if ragged else n
        end = min(cdiv(end, bn) * bn, n)
        s = np.maximum(k[t * bm:(t + 1) * bm].astype(np.float64) @ q[:end].astype(np.float64).T, 0) * x[:end]
        want[t * bm:(t + 1) * bm] = 0 if t == skipped else s @ q[:end].astype(np.float64)
    same(HELD, dict(q_ptr=q, k_ptr=k, x_ptr=x, o_ptr=np.full((m, d), 9, np.float16), N=n, M=m, skipped=skipped, D=d, BM=bm, BN=bn, RAGGED=ragged),
         dict(o_ptr=want), [grid], 2e-3, STAGES, options=("--warps", str(warps), "--stages", str(stages)))


# dq by sums within tiles that follow each other; a vector that only the last turn's reader wants; sums in three types.
SUMS = """
@triton.jit
def sums(k_ptr, q_ptr, x_ptr, dq_ptr, last_ptr, M, N, cols, BM: tl.constexpr, BN: tl.constexpr):
    d = tl.arange(0, 64)
    last = tl.zeros((BN,), tl.float32)
    for t in range(tl.program_id(0), tl.cdiv(M, BM), tl.num_programs(0)):
        rows = t * BM + tl.arange(0, BM)
        k = tl.load(k_ptr + rows[:, None] * 64 + d[None, :], mask=rows[:, None] < M, other=0.0)
        for i in range(0, N, BN):
            at = i + tl.arange(0, BN)
            q = tl.load(q_ptr + at[:, None] * 64 + d[None, :], mask=at[:, None] < N, other=0.0)
            s = tl.maximum(tl.minimum(tl.dot(k, q.T), 1.0), -1.0)
            last = tl.load(x_ptr + at, mask=at < N, other=5.0)
            dq = tl.dot(tl.trans(s.to(tl.float16)), k)
            dq = tl.maximum(tl.minimum(dq, 2.0), -2.0)
            tl.atomic_add(dq_ptr + at[:, None] * 64 + d[None, :], dq.to(dq_ptr.dtype.element_ty), mask=(at[:, None] < N) & (d[None, :] < cols),
                          sem="relaxed")
    tl.store(last_ptr + tl.program_id(0) * BN + tl.arange(0, BN), last)
"""


def sums(n, m, cols, dtype, grid, warps, stages, bm=64, bn=64):
    rng = np.random.default_rng(4)
    q, k = ((rng.integers(-1, 2, (rows, 64)) * (rng.random((rows, 64)) < 0.3)).astype(np.float16) for rows in (n, m))
    x = rng.standard_normal(n).astype(np.float32)
    want = np.zeros((n, 64))
    for t in range(0, m, bm):
        kt = k[t:t + bm].astype(np.float64)
        want += np.clip(np.clip(kt @ q.astype(np.float64).T, -1, 1).T @ kt, -2, 2)
    want[:, cols:] = 0
    at = (cdiv(n, bn) - 1) * bn + np.arange(bn)
    last = np.where(at < n, x[np.minimum(at, n - 1)], 5)
    kind = np.float16 if dtype == "f16" else np.float32
    zeros = np.zeros((n, 64), kind)
    same(SUMS, dict(k_ptr=k, q_ptr=q, x_ptr=x, dq_ptr=(zeros, dtype) if dtype == "bf16" else zeros, last_ptr=np.zeros((grid, bn), np.float32), M=m, N=n,
                    cols=cols, BM=bm, BN=bn),
         dict(dq_ptr=want, last_ptr=np.tile(last, (grid, 1)).astype(np.float32)), [grid], 0.0, STAGES,
         options=("--warps", str(warps), "--stages", str(stages)))


# Products of an outer and of an inner loop, with blocks of the same kinds: before the inner loop, or behind.
NESTED = """
@triton.jit
def nested(a_ptr, b_ptr, o_ptr, N, T, BETWEEN: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [N, 64], [64, 1], [64, 64])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, 64], [64, 1], [64, 64])
    r = tl.arange(0, 64)
    one = tl.zeros((64, 64), tl.float32)
    two = tl.zeros((64, 64), tl.float32)
    for t in range(0, T):
        if BETWEEN:
            a = a_desc.load([t * 64, 0])
            b = b_desc.load([t * 64, 0])
        for i in range(0, N, 64):
            one = tl.dot(a_desc.load([i, 0]), b_desc.load([t * 64, 0]), one)
        if not BETWEEN:
            a = a_desc.load([t * 64, 0])
            b = b_desc.load([t * 64, 0])
        two = tl.dot(a, b, two)
    tl.store(o_ptr + r[:, None] * 64 + r[None, :], one + two * 2)
"""


def nested(between, stages):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-1, 2, (192, 64)).astype(np.float16) for _ in range(2))
    want = np.zeros((64, 64))
    for t in range(0, 192, 64):
        for i in range(0, 192, 64):
            want += a[i:i + 64].astype(np.float64) @ b[t:t + 64].astype(np.float64)
        want += 2 * a[t:t + 64].astype(np.float64) @ b[t:t + 64].astype(np.float64)
    same(NESTED, dict(a_ptr=a, b_ptr=b, o_ptr=np.zeros((64, 64), np.float32), N=192, T=3, BETWEEN=between), dict(o_ptr=want), [1], 0.0, STAGES,
         options=("--warps", "4", "--stages", str(stages)))


# A tensor that is added to where it has just been stored, by other warps, and one that is read while it is written.
MEETS = """
@triton.jit
def meets(a_ptr, b_ptr, o_ptr, N):
    a_desc = tl.make_tensor_descriptor(a_ptr, [N, 64], [64, 1], [64, 64])
    b_desc = tl.make_tensor_descriptor(b_ptr, [64, 64], [64, 1], [64, 64])
    r = tl.arange(0, 64)
    for t in range(0, 3):
        acc = tl.zeros((64, 64), tl.float32)
        for i in range(0, N, 64):
            acc = tl.dot(a_desc.load([i, 0]), b_desc.load([0, 0]), acc)
        x = tl.minimum(tl.maximum(acc, -1.0), 1.0).to(tl.float16)
        a_desc.store([t * 64, 0], x)
        p = o_ptr + t * 4096 + r[:, None] * 64 + r[None, :]
        tl.store(p, x)
        tl.atomic_add(p + 16 * 64, x, sem="relaxed")
"""


def meets():
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-1, 2, (rows, 64)).astype(np.float16) for rows in (256, 64))
    want, out = a.astype(np.float64), np.zeros((208, 64))
    for t in range(3):
        x = np.clip(sum(want[i:i + 64] @ b.astype(np.float64) for i in range(0, 256, 64)), -1, 1)
        want[t * 64:t * 64 + 64] = x
        out[t * 64:t * 64 + 64] = x
        out[t * 64 + 16:t * 64 + 80] += x
    same(MEETS, dict(a_ptr=a, b_ptr=b, o_ptr=np.zeros((208, 64), np.float16), N=256), dict(a_ptr=want, o_ptr=out), [1], 0.0, STAGES,
         options=("--warps", "4", "--stages", "3"))


case("the kernel is what a GPU runs", has_what_it_is_for)
case("full, ragged, 64", backward, 80, 144, 2, 1, 64, False, 4, 3, (64, 64))
case("causal, fewer keys than queries", backward, 144, 80, 2, 2, 64, True, 4, 2, (64, 64))
case("causal, fewer queries than keys, bf16", backward, 48, 176, 2, 1, 64, True, 8, 2, (64, 128), "bf16")
case("sizes that are no multiples of 16 bytes", backward, 70, 131, 1, 1, 64, True, 4, 3, (64, 64), layout="bhsd")
case("128, eight warps", backward, 80, 144, 2, 1, 128, True, 8, 2, (64, 128))
case("128, four warps, three stages", backward, 80, 80, 1, 1, 128, False, 4, 3, (32, 64))
case("one stage", backward, 80, 80, 1, 1, 64, True, 4, 1, (64, 64))
case("held in a persistent loop", held, 144, 336, 64, 2, 4, 3)
case("held, wide, eight warps", held, 144, 272, 128, 1, 8, 2, bm=128)
case("held under a choice", held, 144, 336, 64, 2, 4, 2, skipped=2)
case("held, loops of different lengths", held, 144, 400, 64, 1, 4, 3, ragged=True)
case("held, loops of different lengths and a choice", held, 128, 400, 64, 1, 8, 2, skipped=3, ragged=True, bm=128)
case("held, no turns", held, 16, 64, 64, 1, 4, 3, skipped=0)
for count in (2, 3):
    case(f"blocks before an inner loop, {count} stages", nested, True, count)
    case(f"blocks behind an inner loop, {count} stages", nested, False, count)
case("sums meet stores, stores meet loads", meets)
for name in ("f32", "f16", "bf16"):
    case(f"sums of {name}", sums, 144, 144, 64, name, 2, 4, 3)
    case(f"sums of {name}, masks along both axes", sums, 144, 80, 48, name, 1, 8, 2, bm=128)
case("sums, a mask that ends within 16 bytes", sums, 80, 80, 45, "f32", 1, 4, 3)
finish()
