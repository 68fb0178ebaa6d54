"""Loops whose turns are kept, moved and shared by passes for GPUs (behind, parts, producer, lay), in the forms that a loop may have: steps of
2 and -1, no turn, counters of 64 bits, a first turn that is written out, chains of loops, sums of rows that begin anywhere. Run in the stages of
a GPU, lane by lane, and checked. Of each, what --explain must say of it, and what it must not."""
import numpy as np

from _ditron import below, case, finish, rel_err
from _kernels import run

STAGES = ("interp", "laid", "lowered", "cpu")
LATER, OF_LOOP, OF_TURN = "is computed a turn later", "the first of the loop before", "the first of the turn before the loop"
PARTS, FETCHES, SHARES = "each thread sums its part of a row", "a producer warp fetches", "those of a product before"
rng = np.random.default_rng(11)

# Two sums of each row, one of them stored, one added to memory.
TURNS = """
@triton.jit
def turn(q, k_desc, v_desc, block, acc, s, t):
    x = tl.dot(q, k_desc.load([block * 64, 0]).T)
    alpha = tl.minimum(tl.maximum(tl.max(x, 1), 0.25), 1.0)
    acc = tl.dot(x.to(tl.float16), v_desc.load([block * 64, 0]), acc * alpha[:, None])
    return acc, s * alpha + tl.sum(x, 1), t + tl.sum(x * x, 1)


@triton.jit
def turns(q_desc, k_desc, v_desc, o_desc, s_ptr, t_ptr, lo, hi, tiles, AHEAD: tl.constexpr):
    for tile in tl.range(0, tiles, num_stages=AHEAD):
        q = q_desc.load([tile * 64, 0])
        acc = tl.zeros((64, 64), tl.float32)
        s = tl.zeros((64,), tl.float32) + 0.5
        t = tl.zeros((64,), tl.float32)
        FIRST
        for i in LOOP:
            TURN
        BEHIND
        o_desc.store([tile * 64, 0], acc.to(tl.float16))
        rows = tile * 64 + tl.arange(0, 64)
        tl.store(s_ptr + rows, s)
        tl.atomic_add(t_ptr + rows, t, sem="relaxed")
"""
WRITTEN_OUT = """x = tl.dot(q, k_desc.load([BLOCK * 64, 0]).T)
        s, t = tl.sum(x, 1), tl.sum(x * x, 1)
        acc = tl.dot(x.to(tl.float16), v_desc.load([BLOCK * 64, 0]))"""

TURN = "acc, s, t = turn(q, k_desc, v_desc, %s, acc, s, t)"

# Loops that go on from each other.
CHAIN = """
@triton.jit
def chain(q_desc, k_desc, v_ptr, o_desc, one, two, end, rows):
    v_desc = tl.make_tensor_descriptor(v_ptr, [rows, 64], [64, 1], [64, 64])
    tl.assume(one >= 0)
    tl.assume(one < 1000)
    tl.assume(two >= 0)
    tl.assume(two < 1000)
    q = q_desc.load([0, 0])
    acc = tl.zeros((64, 64), tl.float32)
    a = one * 64
    b = SECOND
    for i in range(0, a, 64):
        x = tl.dot(q, k_desc.load([i, 0]).T)
        acc = tl.dot(x.to(tl.float16), v_desc.load([i, 0])TURNED, acc)
    BETWEEN
    for i in range(a, b, 64):
        x = tl.dot(q, k_desc.load([i, 0]).T)
        acc = tl.dot(tl.minimum(x, 0.5).to(tl.float16), v_desc.load([i, 0]), acc)
    for i in range(b, end * 64, 64):
        x = tl.dot(q, k_desc.load([i, 0]).T)
        acc = tl.dot(tl.maximum(x, -0.5).to(tl.float16), v_desc.load([i, 0]), acc)
    o_desc.store([0, 0], acc.to(tl.float16))
"""

# A sum of a row that the turn also multiplies by.
PRODUCT = """
@triton.jit
def product(q_desc, k_desc, s_ptr, N):
    q = q_desc.load([0, 0])
    s = tl.zeros((64,), tl.float32) + 0.5
    for i in range(0, N, 64):
        x = tl.sum(tl.dot(q, k_desc.load([i, 0]).T), 1)
        s = s * x + x
    tl.store(s_ptr + tl.arange(0, 64), s)
"""

# Products that run until the turn ends read blocks of one tensor: more than a ring of two stages has.
THREE = """
@triton.jit
def three(k_desc, q_desc, x_desc, o_ptr, N):
    k = k_desc.load([0, 0])
    one = tl.zeros((64, 64), tl.float32)
    two = tl.zeros((64, 64), tl.float32)
    last = tl.zeros((64, 64), tl.float32)
    for i in range(0, N, 64):
        s = tl.dot(k, q_desc.load([i, 0]).T)
        one = tl.dot(tl.maximum(s, 0.0).to(tl.float16), x_desc.load([i, 0]), one)
        ds = tl.minimum(tl.dot(k, q_desc.load([i, 0])), 0.5).to(tl.float16)
        two = tl.dot(ds, x_desc.load([i + 64, 0]), two)
        last = tl.dot(ds, x_desc.load([i + 128, 0]), last)
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(o_ptr + at, one)
    tl.store(o_ptr + 4096 + at, two)
    tl.store(o_ptr + 8192 + at, last)
"""

# Rows of sums in a few lanes of a warp, or of two: each element is stored once, and added once.
ROWS = """
@triton.jit
def rows(q_desc, k_desc, o_ptr, N, B: tl.constexpr, R: tl.constexpr):
    q = q_desc.load([0, 0])
    s = tl.zeros((R,), tl.float32)
    for i in range(0, N, B):
        s += tl.sum(tl.dot(q, k_desc.load([i, 0]).T), 1)
    r = tl.arange(0, R)
    tl.store(o_ptr + r, s * 2.0, mask=r < R - 3)
    tl.atomic_add(o_ptr + R + r, s, sem="relaxed")
"""


def f16(rows, columns=64):
    return (rng.standard_normal((rows, columns)) / 4).astype(np.float16)


def desc(x, *blocks):
    return ("desc", x, blocks or (64, 64))


def block(x, i):  # rows of block i; what lies outside of the tensor is 0
    rows = np.arange(i * 64, i * 64 + 64)
    inside = ((rows >= 0) & (rows < len(x)))[:, None]
    return np.where(inside, x[np.clip(rows, 0, len(x) - 1)], 0).astype(np.float64)


def check(source, values, want, says, never=(), warps=4, stages=3, bound=4e-3):
    said, options = [], ("--warps", warps, "--stages", stages, "--explain")
    for stage, got in run(source, values, list(want), [1], STAGES, options=options, said=said).items():
        for name, w in want.items():
            below(rel_err(got[name], w), bound, f"{stage} {name}")
    laid = said[STAGES.index("laid")]
    for text in says:
        assert laid.count(text) >= list(says).count(text), f"not said: {text}\n{laid}"
    for text in never:
        assert text not in laid, f"said: {text}\n{laid}"


def turns(loop, place, lo, hi, blocks, says, never=(), first=None, tiles=3, ahead=2, body=TURN, before="", behind="", kept=PARTS, stages=3):
    """place: a turn's block; blocks: those of all turns. first: (its place, its number) of one written out before them. body, before, behind:
    lines in the loop and around it."""
    q, k, v = f16(tiles * 64), f16(264), f16(264)
    o, s, t = np.zeros((tiles * 64, 64)), np.zeros(tiles * 64), np.ones(tiles * 64)
    for tile in range(tiles):
        at = slice(tile * 64, tile * 64 + 64)
        acc, sums, squares = np.zeros((64, 64)), np.full(64, 0.5), np.zeros(64)
        for n, i in enumerate(([first[1]] if first else []) + list(blocks)):
            x = block(q, tile) @ block(k, i).T
            alpha = np.zeros(64) if first and not n else np.clip(x.max(1), 0.25, 1)
            acc, sums, squares = acc * alpha[:, None] + x @ block(v, i), sums * alpha + x.sum(1), squares + (x * x).sum(1)
        o[at], s[at], t[at] = acc, sums, t[at] + squares
    lines = lambda text, indent: text.replace("\n", "\n" + " " * indent)  # noqa: E731
    source = TURNS.replace("FIRST", (WRITTEN_OUT.replace("BLOCK", first[0]) if first else "") + "\n        " + lines(before, 8))
    source = source.replace("LOOP", loop).replace("TURN", lines(body % place if place else body, 12)).replace("BEHIND", lines(behind, 8))
    values = dict(q_desc=desc(q), k_desc=desc(k), v_desc=desc(v), o_desc=desc(np.full(o.shape, 9, np.float16)), s_ptr=np.zeros(s.shape, np.float32),
                  t_ptr=np.ones(t.shape, np.float32), lo=lo, hi=hi, tiles=tiles, AHEAD=ahead)
    check(source, values, dict(o_desc=o, s_ptr=s, t_ptr=t), [kept, FETCHES, *says], never, stages=stages)


def chain(one, two, end, taken, second="two * 64", turned="", between=""):
    """taken: how many of the loops take over the last product of the one before."""
    q, k, v = f16(64), f16(320), f16(320)
    acc, now = np.zeros((64, 64)), v.copy()
    for n, (lo, hi) in enumerate(((0, one), (one, two), (two, end))):
        if n == 1 and between:
            now[(one - 1) * 64:one * 64] = 0
        for i in range(lo, hi):
            x, w = block(q, 0) @ block(k, i).T, block(now, i)
            acc += x @ (w.T if turned else w) if n == 0 else (np.minimum(x, 0.5) if n == 1 else np.maximum(x, -0.5)) @ w
    source = CHAIN.replace("SECOND", second).replace("TURNED", turned).replace("BETWEEN", between)
    check(source, dict(q_desc=desc(q), k_desc=desc(k), v_ptr=v, o_desc=desc(np.full((64, 64), 9, np.float16)), one=one, two=two, end=end, rows=len(v)),
          dict(o_desc=acc), [LATER] * 3 + [OF_LOOP] * taken, [] if taken else [OF_LOOP])


def product():
    q, k, s = f16(64), f16(192), np.full(64, 0.5)
    for i in range(3):
        x = (block(q, 0) @ block(k, i).T).sum(1)
        s = s * x + x
    check(PRODUCT, dict(q_desc=desc(q), k_desc=desc(k), s_ptr=np.zeros(64, np.float32), N=192), dict(s_ptr=s), [FETCHES], [PARTS])


def three():
    k, q, x, o = f16(64), f16(192), f16(320), np.zeros((3, 64, 64))
    for i in range(3):
        p, ds = np.maximum(block(k, 0) @ block(q, i).T, 0), np.minimum(block(k, 0) @ block(q, i), 0.5)
        o += np.stack([p @ block(x, i), ds @ block(x, i + 1), ds @ block(x, i + 2)])
    check(THREE, dict(k_desc=desc(k), q_desc=desc(q), x_desc=desc(x), o_ptr=np.zeros(o.shape, np.float32), N=192), dict(o_ptr=o),
          [FETCHES, SHARES, "this product is computed beside the one before it"], stages=2)


def rows(r, b, d, warps, says=(), never=()):
    q, k = f16(r, d), f16(3 * b, d)
    s = (q.astype(np.float64) @ k.astype(np.float64).T).sum(1)
    want = np.stack([s * 2, s + 1])
    want[0, -3:] = 1
    check(ROWS, dict(q_desc=desc(q, r, d), k_desc=desc(k, b, d), o_ptr=np.ones((2, r), np.float32), N=3 * b, B=b, R=r), dict(o_ptr=want), says, never,
          warps)


UP, WIDE = "range(lo, hi)", "range(tl.cast(lo, tl.int64), tl.cast(hi, tl.int64))"
case("every block", turns, UP, "i", 0, 5, range(5), [LATER])
case("no turn", turns, UP, "i", 2, 2, [], [LATER])
case("an end before the start", turns, UP, "i", 4, 1, [], [LATER])
case("from the middle", turns, UP, "i", 2, 5, range(2, 5), [LATER])
case("from before the tensor", turns, UP, "i", -2, 3, range(-2, 3), [LATER])
case("one tile at a time", turns, UP, "i", 1, 4, range(1, 4), [LATER], ahead=1)
case("three tiles ahead", turns, UP, "i", 1, 4, range(1, 4), [LATER], ahead=3)
case("no tile", turns, UP, "i", 1, 4, range(1, 4), [LATER], tiles=0)
case("a step of 2", turns, "range(lo, hi, 2)", "i", 0, 5, range(0, 5, 2), [LATER])
case("a step of 2, halves", turns, "range(lo, hi, 2)", "(i // 2)", 1, 8, [0, 1, 2, 3], [LATER])
case("a step of 3 to an end between", turns, "range(lo, hi, 3)", "i", -1, 4, range(-1, 4, 3), [LATER])
case("a step of -1", turns, "range(hi, lo, -1)", "i", 0, 4, range(4, 0, -1), [], [LATER])
case("from the last block down", turns, UP, "(hi - 1 - i)", 0, 5, range(4, -1, -1), [LATER])
case("64 bits", turns, WIDE, "i.to(tl.int32)", 1, 5, range(1, 5), [LATER])
case("64 bits, no turn", turns, WIDE, "i.to(tl.int32)", 2, 2, [], [LATER])
case("a turn before the loop", turns, UP, "i", 1, 5, range(1, 5), [LATER, OF_TURN], first=("(lo - 1)", 0))
case("a turn before no loop", turns, UP, "i", 3, 2, [], [LATER, OF_TURN], first=("(lo - 1)", 2))
case("the last block before those down from it", turns, UP, "(4 - i)", 1, 5, range(3, -1, -1), [LATER, OF_TURN], first=("(5 - lo)", 4))
case("a turn before a step of 2", turns, "range(lo, hi, 2)", "i", 2, 5, [2, 4], [LATER, OF_TURN], first=("(lo - 2)", 0))
case("a turn before that is no step before", turns, "range(lo, hi, 2)", "i", 2, 5, [2, 4], [LATER], [OF_TURN], first=("(lo - 1)", 1))
case("a turn before, 64 bits", turns, WIDE, "i.to(tl.int32)", 1, 5, range(1, 5), [LATER, OF_TURN], first=("(lo - 1)", 0))
case("a turn before a loop of halves", turns, UP, "(i // 2)", 2, 6, [1, 1, 2, 2], [LATER], [OF_TURN], first=("((lo - 1) // 2)", 0))

two = TURN % "(lo - 2)" + "\n" + TURN % "(lo - 1)"
case("two turns written out before", turns, UP, "i", 2, 5, range(5), [LATER, SHARES], before=two)
case("three turns written out before", turns, UP, "i", 3, 5, range(1, 5), [LATER, OF_TURN, SHARES], first=("(lo - 3)", 0), before=two)
case("a turn written out behind", turns, UP, "i", 2, 4, range(2, 5), [LATER, SHARES], behind=TURN % "hi")
more = "for i in range(hi, hi + 2):\n    " + TURN % "i"
case("a loop that goes on", turns, UP, "i", 2, 4, range(2, 6), [LATER, SHARES], first=("(lo - 1)", 1), behind=more)
case("a choice of two loops behind", turns, UP, "i", 2, 4, range(2, 6), [LATER, SHARES], first=("(lo - 1)", 1), behind="if tile % 2 == 0:\n    " +
     more.replace("\n", "\n    ") + "\nelse:\n    " + more.replace("\n", "\n    "))
case("two turns in one", turns, "range(lo, hi, 2)", "", 2, 6, range(2, 6), [SHARES], body=TURN % "i" + "\n" + TURN % "i + 1", kept="")
case("three turns in one, two stages", turns, "range(lo, hi, 3)", "", 0, 6, range(6), [SHARES], stages=2, kept="",
     body="\n".join(TURN % f"i + {k}" for k in range(3)))
case("loops in a loop, between turns", turns, UP, "", 2, 4, [1, 2, 3, 4, 2, 3, 4, 5], [LATER], ahead=1,
     body=TURN % "i - 1" + "\nfor j in range(i, i + 2):\n    " + TURN % "j" + "\n" + TURN % "i + 2")
case("loops of other numbers of stages", turns, "tl.range(lo, hi, num_stages=4)", "i", 2, 4, range(2, 6), [LATER, "up to 4 ahead", "up to 3 ahead"],
     first=("(lo - 1)", 1), ahead=4, behind=more)

for ends in ((2, 3, 5), (2, 2, 5), (0, 0, 5), (0, 0, 0), (2, 3, 0)):
    case(f"a chain of three loops: {ends}", chain, *ends, 1)
for ends in ((4, 2, 5), (3, 2, 0)):
    case(f"a chain whose second loop ends before it starts: {ends}", chain, *ends, 1)
case("a chain whose second loop ends at its start or behind", chain, 2, 3, 5, 2, "tl.maximum(a, two * 64)")
case("a chain whose second loop is empty", chain, 2, 2, 5, 1, "a")
case("blocks as they are behind turned ones", chain, 2, 3, 5, 0, turned=".T")
case("a block is written between two loops", chain, 2, 3, 5, 0, between="v_desc.store([a - 64, 0], tl.zeros((64, 64), tl.float16))")
case("a sum that the turn also multiplies by", product)
case("three products until the turn ends, two stages", three)
for shape in ((64, 64, 64, 4), (256, 32, 32, 4), (128, 64, 64, 8)):
    case(f"sums of rows, stored and added: {shape}", rows, *shape, [PARTS])
for shape in ((64, 8, 64, 4), (64, 128, 64, 8), (64, 256, 32, 16)):
    case(f"sums of rows of 8 columns, or of two warps: {shape}", rows, *shape, [], [PARTS])
finish()
