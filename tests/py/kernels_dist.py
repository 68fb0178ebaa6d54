"""The kernels over many ranks, single launches: ranks as threads and as processes on the CPU, and on the interpreter under the
checker, in the stages that GPUs run too. TIMEOUT: 600"""
import numpy as np

from _ditron import KERNELS, below, case, finish, rel_err, run_kernel

rng = np.random.default_rng(11)
MODES = {
    "check": dict(mode=["--check", "--seed", "3"]),
    "laid": dict(mode=["--stage", "laid", "--check"]),
    "lowered": dict(mode=["--stage", "lowered", "--check", "--seed", "4"]),
    "threads": dict(),
    "processes": dict(processes=True),
}


def words(n):
    return np.zeros(n, np.int64)


def run(how, world, kernel, grid, values, outs):
    opts = dict(MODES[how])
    if opts.pop("processes", False):
        opts["prefix"] = ["ditron", "launch", "-n", str(world)]
    return run_kernel(f"{KERNELS}/{kernel}", grid, values, outs, ranks=world, **opts)


def per_rank(world, shape):
    return [rng.standard_normal(shape).astype(np.float32) for _ in range(world)]


def ready(world, value=1):
    """Flags as if every rank had announced call `value`."""
    return [np.full(world, value, np.int64) for _ in range(world)]


def epoch(world, e=1):
    return [np.array([e, e - 1], np.int64) for _ in range(world)]


def ring(how, world, n):
    x = per_rank(world, n)
    got = run(how, world, "collectives.py:all_gather_ring_kernel", [2],
              dict(x_ptr=x, gathered_ptr=("sym", np.zeros(world * n, np.float32)), flags_ptr=("sym", words(2 * world)),
                   acks_ptr=("sym", words(world)), epoch_ptr=epoch(world), n=n, BLOCK=64), ["gathered_ptr"])
    for r in range(world):
        below(rel_err(got["gathered_ptr"][r], np.concatenate(x)), 0, f"rank {r}")


def fused(how, world, m, n, k):
    x, b = per_rank(world, (m // world, k)), per_rank(world, (k, n))
    bm, bn = 16, 16
    tiles = -(-m // bm) * -(-n // bn)
    got = run(how, world, "overlap.py:ag_gemm_fused_kernel", [world * 2 + tiles],
              dict(x_ptr=x, a_ptr=("sym", np.zeros((m, k), np.float32)), b_ptr=b, c_ptr=np.zeros((m, n), np.float32),
                   flags_ptr=("sym", words(world)), epoch=1, M=m, N=n, K=k, PARTS=2, BLOCK=128, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=16,
                   GROUP_M=2), ["c_ptr"])
    a = np.concatenate(x).astype(np.float64)
    for r in range(world):
        below(rel_err(got["c_ptr"][r], a @ b[r]), 1e-6, f"rank {r}")


def all_reduce(how, world, n):
    x = per_rank(world, n)
    got = run(how, world, "collectives.py:all_reduce_one_shot_kernel", [2],
              dict(x_ptr=("sym", x), out_ptr=np.zeros(n, np.float32), flags_ptr=("sym", ready(world)), epoch_ptr=epoch(world), n=n,
                   BLOCK=64), ["out_ptr"])
    for r in range(world):
        below(rel_err(got["out_ptr"][r], sum(v.astype(np.float64) for v in x)), 1e-6, f"rank {r}")
        assert np.array_equal(got["out_ptr"][r], got["out_ptr"][0]), "ranks differ in bits"


def partial_gemm(how, world, kernel, m, n, k):
    """GEMM + all-reduce's first kernel: every rank's product lands in every rank's partial[rank]."""
    a, b = per_rank(world, (m, k)), per_rank(world, (k, n))
    tiles = -(-m // 16) * -(-n // 16)
    flags = words(world * tiles)
    got = run(how, world, kernel, [tiles],
              dict(a_ptr=a, b_ptr=b, partial_ptr=("sym", np.zeros((world, m, n), np.float32)), flags_ptr=("sym", flags),
                   acks_ptr=("sym", words(world)), epoch_ptr=epoch(world), M=m, N=n, K=k, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16,
                   GROUP_M=2), ["flags_ptr"])
    for r in range(world):
        f = got["flags_ptr"][r]
        assert f.sum() == world * tiles, f"rank {r}: flags {f}"


def put_gather(how, world, n):
    x = per_rank(world, n)
    got = run(how, world, "overlap_raw.py:all_gather_put_kernel", [world],
              dict(x_ptr=x, gathered_ptr=("sym", np.zeros(world * n, np.float32)), flags_ptr=("sym", words(world)),
                   acks_ptr=("sym", words(world)), epoch_ptr=epoch(world), bytes_per_rank=4 * n), ["flags_ptr"])
    for r in range(world):
        assert (got["flags_ptr"][r] == 1).all(), got["flags_ptr"][r]


for how in MODES:
    for world in (2, 3, 4, 8):
        case(f"{how} ring all-gather, {world} ranks", ring, how, world, 150)
        case(f"{how} fused all-gather + GEMM, {world} ranks", fused, how, world, 24 * world, 40, 24)
        case(f"{how} one-shot all-reduce, {world} ranks", all_reduce, how, world, 200)
    case(f"{how} GEMM to all ranks", partial_gemm, how, 3, "overlap.py:gemm_ar_kernel", 20, 36, 24)
    case(f"{how} GEMM to all ranks, raw", partial_gemm, how, 2, "overlap_raw.py:gemm_ar_notify_kernel", 20, 36, 24)
    case(f"{how} all-gather by puts", put_gather, how, 4, 100)
finish()
