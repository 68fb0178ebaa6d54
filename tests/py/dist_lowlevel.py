"""kernels/lowlevel.py and kernels/moe.py against NumPy: 2, 4 and 8 ranks, ragged sizes, several calls on the same flags; under the
checker, as threads and as processes. TIMEOUT: 900"""
import numpy as np

from _ditron import KERNELS, below, case, finish, rel_err, run_kernel

i32, i64, f32, u32, u64 = np.int32, np.int64, np.float32, np.uint32, np.uint64
CALLS = 3
EPOCH = np.array([5, 4], i64)  # the number of a launch's first call: any, not below 1
rng = np.random.default_rng(17)
MODES = {"check": dict(mode=["--check", "--seed", "7"]), "threads": {}, "processes": dict(processes=True)}


def run(how, world, kernel, grid, values, outs):
    opts = dict(MODES[how])
    if opts.pop("processes", False):
        opts["prefix"] = ["ditron", "launch", "-n", str(world)]
    return run_kernel(f"{KERNELS}/{kernel}", grid, values, outs, ranks=world, **opts)


def sym(shape, dtype):
    return ("sym", np.zeros(shape, dtype))


def grid_barriers(how, n):
    """One rank: a prefix sum over programs that meet at a barrier of atomics."""
    x = rng.integers(-100, 100, (CALLS, n)).astype(i32)
    opts = dict(mode=["--check", "--seed", "7"]) if how == "check" else {}
    programs = -(-n // 64)
    got = run_kernel(f"{KERNELS}/lowlevel.py:prefix_sum_kernel", [programs],
                     dict(x_ptr=x, out_ptr=np.zeros((CALLS, n), i32), sums_ptr=np.zeros(programs, i32), arrived_ptr=np.zeros(1, i32),
                          calls=CALLS, n=n, BLOCK=64), ["out_ptr"], **opts)
    np.testing.assert_array_equal(got["out_ptr"], np.cumsum(x, 1))


def all_gather_ll(how, world, n):
    x = [rng.integers(0, 2**32, (CALLS, n), dtype=u32) for _ in range(world)]
    got = run(how, world, "lowlevel.py:all_gather_ll_kernel", [world],
              dict(x_ptr=x, out_ptr=np.zeros((CALLS, world, n), u32), words_ptr=sym((2, world, 4 * -(-n // 2)), u32),
                   epoch_ptr=EPOCH, calls=CALLS, n=n), ["out_ptr"])
    for r in range(world):
        np.testing.assert_array_equal(got["out_ptr"][r], np.stack(x, 1), f"rank {r}")


def all_gather_push(how, world, n):
    x = [rng.standard_normal((CALLS, n)).astype(f32) for _ in range(world)]
    # a launch takes up where the one before ended: flags say that call 4 was made and read
    flags = ("sym", np.full((2, world), EPOCH[0] - 1, i32))
    got = run(how, world, "lowlevel.py:all_gather_push_kernel", [world],
              dict(x_ptr=x, out_ptr=np.zeros((CALLS, world, n), f32), gathered_ptr=sym((world, n), f32), flags_ptr=flags,
                   epoch_ptr=EPOCH, calls=CALLS, n=n, VEC=4), ["out_ptr"])
    for r in range(world):
        np.testing.assert_array_equal(got["out_ptr"][r], np.stack(x, 1), f"rank {r}")


def gathered(how, world, n):
    """What the copy engine brought and announced with this call's number."""
    x = rng.standard_normal((world, n)).astype(f32)
    got = run(how, world, "lowlevel.py:gathered_kernel", [2, world],
              dict(gathered_ptr=("sym", x), out_ptr=np.zeros((world, n), f32), flags_ptr=("sym", np.full(world, EPOCH[0], i64)),
                   epoch_ptr=EPOCH, n=n, BLOCK=64), ["out_ptr"])
    for r in range(world):
        np.testing.assert_array_equal(got["out_ptr"][r], x, f"rank {r}")


def all_reduce(how, world, n, parts):
    x = [rng.standard_normal((CALLS, n)).astype(f32) for _ in range(world)]
    got = run(how, world, "lowlevel.py:all_reduce_two_shot_kernel", [parts],
              dict(x_ptr=x, out_ptr=np.zeros((CALLS, n), f32), mine_ptr=sym(n, f32), sum_ptr=sym(n, f32),
                   flags_ptr=sym((parts, world), i32), epoch_ptr=EPOCH, calls=CALLS, n=n, VEC=4), ["out_ptr"])
    want = np.zeros((CALLS, n), f32)
    for v in x:
        want += v
    for r in range(world):
        np.testing.assert_array_equal(got["out_ptr"][r], want, f"rank {r}")  # in rank order: to the bit


def reduce_scatter(how, world, n, parts):
    x = [rng.standard_normal((CALLS, world, n)).astype(f32) for _ in range(world)]
    got = run(how, world, "lowlevel.py:reduce_scatter_ring_kernel", [parts],
              dict(x_ptr=x, out_ptr=np.zeros((CALLS, n), f32), slots_ptr=sym((world - 1, n), f32),
                   flags_ptr=sym((parts, world - 1), u64), acks_ptr=("sym", np.full(parts, EPOCH[0] - 1, u64)), epoch_ptr=EPOCH, calls=CALLS, n=n, BLOCK=64),
              ["out_ptr"])
    want = sum(v.astype(np.float64) for v in x)
    for r in range(world):
        below(rel_err(got["out_ptr"][r], want[:, r]), 1e-6, f"rank {r}")


def queue(how, world, tiles, n):
    x = [rng.standard_normal(n).astype(f32) for _ in range(world)]
    got = run(how, world, "lowlevel.py:queue_kernel", [6],
              dict(x_ptr=x, out_ptr=np.zeros(n, f32), queue_ptr=sym((8, 32), f32), full_ptr=sym((2, 8), u64), tiles=tiles, n=n,
                   PRODUCERS=4, CONSUMERS=2, SLOTS=8, BLOCK=32), ["out_ptr"])
    for r in range(world):
        np.testing.assert_array_equal(got["out_ptr"][r], 2 * x[(r - 1) % world], f"rank {r}")


def experts(how, world, rows, dtype):
    """Dispatch, then combine what came, of tokens whose routing is uneven (some ranks get none)."""
    per, hidden = 2, 24
    names = 1 << (world * per - 1).bit_length()
    x = [rng.standard_normal((CALLS, rows, hidden)).astype(dtype) for _ in range(world)]
    splits = []
    for r in range(world):
        s = np.zeros((CALLS, names), i32)
        for c in range(CALLS):
            chosen = rng.integers(0, world * per, rows) // (1 + (r + c) % 3)
            s[c, :] = np.bincount(chosen, minlength=names)
        splits.append(s)
    shared = dict(epoch_ptr=EPOCH, calls=CALLS, x_rows=rows, max_rows=rows, HIDDEN=hidden, EXPERTS=names, PER_RANK=per, BLOCK=256)
    got = run(how, world, "moe.py:dispatch_kernel", [world],
              dict(x_ptr=x, splits_ptr=splits, out_ptr=np.zeros((CALLS, world, rows, hidden), dtype),
                   out_splits_ptr=np.zeros((CALLS, world, per), i32), recv_ptr=sym((2, world, rows, hidden), dtype),
                   recv_splits_ptr=sym((2, world, per), i32), signals_ptr=sym((2, world), u64), **shared), ["out_ptr", "out_splits_ptr"])
    for r in range(world):
        for c in range(CALLS):
            for src in range(world):
                s = splits[src][c]
                first, count = s[:r * per].sum(), s[r * per:(r + 1) * per].sum()
                np.testing.assert_array_equal(got["out_splits_ptr"][r][c, src], s[r * per:(r + 1) * per])
                np.testing.assert_array_equal(got["out_ptr"][r][c, src, :count], x[src][c, first:first + count])
                assert not got["out_ptr"][r][c, src, count:].any()
    del shared["calls"]
    back = run(how, world, "moe.py:combine_kernel", [world],
               dict(y_ptr=[y * 2 for y in got["out_ptr"]], splits_ptr=splits, out_ptr=np.zeros((CALLS, rows, hidden), dtype),
                    recv_ptr=sym((2, world, rows, hidden), dtype), signals_ptr=sym((2, world), u64), calls=CALLS, **shared), ["out_ptr"])
    for r in range(world):
        np.testing.assert_array_equal(back["out_ptr"][r], 2 * x[r])


for how in MODES:
    if how != "processes":
        case(f"{how} grid barriers", grid_barriers, how, 300)
    for world in (2, 4, 8):
        case(f"{how} low-latency all-gather, {world} ranks", all_gather_ll, how, world, 301)
        case(f"{how} pushed all-gather, {world} ranks", all_gather_push, how, world, 302)
        case(f"{how} gathered by the copy engine, {world} ranks", gathered, how, world, 203)
        case(f"{how} two-shot all-reduce, {world} ranks", all_reduce, how, world, 1003, 2)
        case(f"{how} ring reduce-scatter, {world} ranks", reduce_scatter, how, world, 151, 2)
        case(f"{how} queue, {world} ranks", queue, how, world, 21, 21 * 32 - 5)
        case(f"{how} dispatch and combine, {world} ranks", experts, how, world, 13, f32)
    case(f"{how} dispatch and combine, f16", experts, how, 2, 5, np.float16)
finish()
