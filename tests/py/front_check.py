"""--check on code of threads: what relaxed accesses may do and may not. Each fault is told with both lines. 4 warps of 32."""
import tempfile
from pathlib import Path

import numpy as np

from _ditron import case, ditron, finish
from _kernels import HEAD

FIRST = len(HEAD.splitlines()) + 1  # line of the body's first line


def checked(body, grid, ok, *lines, seeds=4, **values):
    """Under some seed (ok: under each) the check ends well or not; lines: of the body, that its report names."""
    values = dict(dict(x=np.zeros(256, np.int32), flag=np.zeros(8, np.int32), out=np.zeros(256, np.int32)), **values)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.py"
        path.write_text(HEAD + body.lstrip("\n"))
        args = []
        for name, v in values.items():
            np.save(f"{folder}/{name}.npy", v)
            args.append(f"{name}=@{folder}/{name}.npy")
        said = ""
        for seed in range(seeds):
            p = ditron("run", path, "--grid", grid, "--check", "--seed", seed, "--quiet", *args, ok=None)
            said += p.stdout + p.stderr
            assert not ok or p.returncode == 0, said
        assert ok or "error" in said, said
        for line in lines:
            assert f"k.py:{FIRST + line}" in said, f"line {line} is not in\n{said}"


EXCHANGE = """
@triton.jit
def k(x, flag, out):
    t = tid(0)
    st(x + t, t)
    {sync}
    st(out + t, ld(x + (t + 32) % 128))
"""


def data():
    """Relaxed words that are only moved need an order, within a program ..."""
    checked(EXCHANGE.format(sync="__syncthreads()"), 1, True)
    checked(EXCHANGE.format(sync="pass"), 1, False, 3, 5)


PUBLISH = """
@triton.jit
def k(x, flag, out):
    t = tid(0)
    if tl.program_id(0) == 0:
        st(x + t, t)
        {before}
        if t == 0:
            st(flag, 1, semantic="{release}")
    else:
        if t == 0:
            while ld(flag, semantic="{acquire}") != 1:
                pass
        {after}
        v = ld(x + t)
        st(out + t, v * 2 + 1)
"""


def published():
    """... and between programs."""
    good = dict(before="__syncthreads()", release="release", acquire="acquire", after="__syncthreads()")
    checked(PUBLISH.format(**good), 2, True)
    for change in (dict(before="pass"), dict(after="pass"), dict(release="relaxed"), dict(acquire="relaxed")):
        checked(PUBLISH.format(**dict(good, **change)), 2, False, 4, 13)
    fenced = dict(good, release="relaxed", before="language_extra.membar('gl'); __syncthreads()")
    checked(PUBLISH.format(**fenced), 2, True)
    checked(PUBLISH.format(**dict(fenced, before="language_extra.membar('cta'); __syncthreads()")), 2, False)


def looks():
    """Words whose value decides something are left alone: polled flags, words with their flag, hints, counters, marks."""
    checked("""
@triton.jit
def k(x, flag, out):
    t = tid(0)
    pid = tl.program_id(0)
    if pid == 0:
        language_extra.st_v2_u32(x + 2 * t, t + 7, 1)
        if t == 5:
            st(flag + 2, 3)
    else:
        word = ld((x + 2 * t).to(tl.pointer_type(tl.int64)))
        while (word >> 32) != 1:
            word = ld((x + 2 * t).to(tl.pointer_type(tl.int64)))
        st(out + t, word.to(tl.int32))
        if ld(flag + 2) == 3:
            st(out + 128 + t, 1)
    language_extra.atomic_add(flag + 1, 1)
    st(flag + 3, 1)
""", 2, True)


def helpers():
    """The value goes through a helper, a loop and a branch before it is stored."""
    body = """
@triton.jit
def fetch(p, n):
    total = 0
    for i in range(n):
        total += ld(p + i)
    return total

@triton.jit
def k(x, flag, out):
    t = tid(0)
    st(x + t, t)
    {}
    v = fetch(x + (t // 32 * 32 + 32) % 128, 3)
    if t > 2:
        v = v + 1
    st(out + t, v)
"""
    checked(body.format("__syncthreads()"), 1, True)
    checked(body.format("pass"), 1, False, 4, 10)


for f in (data, published, looks, helpers):
    case(f.__name__, f)
finish()
