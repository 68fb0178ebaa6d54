"""Loops that are split where their masks begin to matter: attention whose every turn applies its mask, with masks of many forms and sizes that
end anywhere. Run in the stages of a GPU, lane by lane, and checked. Of each, whether --explain says that it was split."""
import numpy as np

from _ditron import below, case, finish, rel_err
from _kernels import run

STAGES = ("interp", "laid", "lowered", "cpu")
SPLIT = "this loop is split"
rng = np.random.default_rng(12)

KERNEL = """
@triton.jit
def masked(q_ptr, k_ptr, v_ptr, o_ptr, rows, keys, lo_row, shift, window, BM: tl.constexpr, BN: tl.constexpr):
    tl.assume(rows >= 0)
    for tile in range(tl.cdiv(rows, BM)):
        first = tile * BM
        row = first + tl.arange(0, BM)
        d = tl.arange(0, 32)
        q = tl.load(q_ptr + row[:, None] * 32 + d[None, :], mask=row[:, None] < rows, other=0.0)
        acc = tl.zeros((BM, 32), tl.float32)
        total = tl.zeros((BM,), tl.float32)
        LOOP:
            BEGIN
            key = start + tl.arange(0, BN)
            k = tl.load(k_ptr + key[:, None] * 32 + d[None, :], mask=key[:, None] < keys, other=0.0)
            s = tl.dot(q, k.T)
            p = tl.exp2(tl.where(MASK, s, float("-inf")) * 0.1)
            total += tl.sum(p, 1)
            v = tl.load(v_ptr + key[:, None] * 32 + d[None, :], mask=key[:, None] < keys, other=0.0)
            acc = tl.dot(p.to(tl.float16), v, acc)
        out = acc / tl.maximum(total, 1e-20)[:, None]
        tl.store(o_ptr + row[:, None] * 32 + d[None, :], out, mask=row[:, None] < rows)
"""
UP = "for start in range(0, keys, BN)"


def masked(mask, seen, rows, keys, split=True, loop=UP, begin="", blocks=(64, 32), shift=0, window=0, lo_row=0, warps=4):
    """mask: of the kernel; seen(row, key): the same of numbers."""
    q, k, v = (rng.standard_normal((n, 32)).astype(np.float16) for n in (rows, keys, keys))
    row, key = np.arange(rows)[:, None], np.arange(keys)[None, :]
    p = np.where(seen(row, key) & (key >= 0), np.exp2(0.1 * (q.astype(np.float64) @ k.astype(np.float64).T)), 0.0)
    want = (p @ v.astype(np.float64)) / np.maximum(p.sum(1, keepdims=True), 1e-20)
    values = dict(q_ptr=q, k_ptr=k, v_ptr=v, o_ptr=np.full((rows, 32), 9, np.float32), rows=rows, keys=keys, lo_row=lo_row, shift=shift,
                  window=window, BM=blocks[0], BN=blocks[1])
    source, said = KERNEL.replace("LOOP", loop).replace("BEGIN", begin).replace("MASK", mask), []
    for stage, got in run(source, values, ["o_ptr"], [1], STAGES, options=("--warps", warps, "--stages", 2, "--explain"), said=said).items():
        below(rel_err(got["o_ptr"], want), 4e-3, stage)
    assert (SPLIT in said[STAGES.index("laid")]) == split, said[STAGES.index("laid")]


CAUSAL = "(row[:, None] >= key[None, :]) & (key[None, :] < keys)"
for n, m in ((128, 128), (100, 130), (130, 70), (3, 2), (65, 33), (64, 200)):
    case(f"causal {n} x {m}", masked, CAUSAL, lambda r, k: k <= r, n, m)
    case(f"full {n} x {m}", masked, "(row[:, None] < rows) & (key[None, :] < keys)", lambda r, k: k >= 0, n, m)
case("causal, blocks 64 x 64", masked, CAUSAL, lambda r, k: k <= r, 150, 150, blocks=(64, 64))
case("causal, blocks 64 x 16", masked, CAUSAL, lambda r, k: k <= r, 150, 150, blocks=(64, 16))
case("causal, blocks 16 x 64", masked, CAUSAL, lambda r, k: k <= r, 70, 150, blocks=(16, 64))
case("causal, eight warps", masked, CAUSAL, lambda r, k: k <= r, 150, 150, blocks=(128, 32), warps=8)
case("causal, ends at the diagonal", masked, CAUSAL, lambda r, k: k <= r, 150, 150,
     loop="for start in range(0, min(keys, first + BM), BN)")
for shift in (-70, -1, 1, 33, 500):
    case(f"causal, moved by {shift}", masked, "(key[None, :] < row[:, None] + shift) & (key[None, :] < keys)", lambda r, k, s=shift: k < r + s,
         130, 140, shift=shift)
    case(f"the same turned round, {shift}", masked, "(row[:, None] > key[None, :] - shift) & (keys > key[None, :])",
         lambda r, k, s=shift: k < r + s, 130, 140, shift=shift)
case("a number", masked, "(key[None, :] <= 77) & (key[None, :] < keys) & (row[:, None] >= 0)", lambda r, k: (k <= 77) & (r >= 0), 70, 140)
case("rows from a number on", masked, "(key[None, :] < keys) & (row[:, None] >= lo_row)", lambda r, k: (r >= 70) & (k >= 0), 200, 100, lo_row=70)
case("the last one of two keys a row", masked, "(key[None, :] <= 2 * row[:, None]) & (key[None, :] < keys)", lambda r, k: k <= 2 * r, 70, 140)
BY_NUMBER = dict(loop="for i in range(0, tl.cdiv(keys, BN))", begin="start = i * BN")
case("causal, by the number of a block", masked, CAUSAL, lambda r, k: k <= r, 150, 170, **BY_NUMBER)
case("moved by -70, by the number of a block", masked, "(key[None, :] < row[:, None] + shift) & (key[None, :] < keys)", lambda r, k: k < r - 70,
     130, 140, shift=-70, **BY_NUMBER)
case("causal, by a sum that is carried", masked, CAUSAL, lambda r, k: k <= r, 150, 170, begin="start += BN",
     loop="start = -BN\n        for i in range(0, tl.cdiv(keys, BN))")
# what it does not take: it leaves the comparison, or the loop, alone
case("a window", masked, "(row[:, None] >= key[None, :]) & (row[:, None] - key[None, :] < window) & (key[None, :] < keys)",
     lambda r, k: (k <= r) & (r - k < 40), 130, 130, window=40)
case("a window alone", masked, "row[:, None] - key[None, :] < window", lambda r, k: r - k < 40, 130, 128, window=40, split=False)
case("twice the key", masked, "(2 * key[None, :] <= row[:, None]) & (key[None, :] < keys + row[:, None] * 0)", lambda r, k: 2 * k <= r, 130, 70)
case("either", masked, "((row[:, None] >= key[None, :]) | (key[None, :] < 10)) & (key[None, :] < keys)", lambda r, k: (k <= r) | (k < 10), 130, 70)
case("every second", masked, "(row[:, None] % 2 == key[None, :] % 2) & (key[None, :] < keys)", lambda r, k: r % 2 == k % 2, 70, 70)
case("from above", masked, CAUSAL, lambda r, k: k <= r, 100, 96, loop="for start in range(keys - BN, -1, -BN)", split=False)
case("from a number", masked, CAUSAL, lambda r, k: (k <= r) & (k >= 64), 150, 150, loop="for start in range(64, keys, BN)")
case("from where no block begins", masked, CAUSAL, lambda r, k: (k <= r) & (k >= 10), 150, 150, loop="for start in range(10, keys, BN)",
     split=False)
case("a step of half a block", masked, "(row[:, None] >= key[None, :]) & (key[None, :] < start + 16) & (key[None, :] < keys)",
     lambda r, k: k <= r, 150, 150, loop="for start in range(0, keys, 16)")
finish()
