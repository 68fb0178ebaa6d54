"""Breadth of the language beside the numbered semantics: descriptors chosen by control flow, options of ranges, aggregates,
methods of tiles, shapes of high rank, assembly refused on a CPU."""
import tempfile
from pathlib import Path

import numpy as np

from _ditron import case, ditron, finish
from _kernels import same

f32, i32 = np.float32, np.int32
x = np.arange(64 * 64, dtype=f32).reshape(64, 64)


def swapped_descriptors():
    same("""
@triton.jit
def k(x, y, o, n):
    d = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [16, 16])
    e = tl.make_tensor_descriptor(y, [64, 64], [64, 1], [16, 16])
    acc = tl.zeros((16, 16), tl.float32)
    for i in range(n):
        acc += d.load([0, i * 16])
        d, e = e, d
    r = tl.arange(0, 16)
    tl.store(o + r[:, None] * 16 + r[None, :], acc)
""", dict(x=x, y=x * 2, o=np.zeros((16, 16), f32), n=4),
         dict(o=x[:16, :16] + 2 * x[:16, 16:32] + x[:16, 32:48] + 2 * x[:16, 48:]))


def chosen_descriptor():
    same("""
@triton.jit
def k(x, y, o, n):
    d = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [16, 16])
    if n > 2:
        d = tl.make_tensor_descriptor(y, [64, 64], [64, 1], [16, 16])
    r = tl.arange(0, 16)
    tl.store(o + r[:, None] * 16 + r[None, :], d.load([16, 0]))
""", dict(x=x, y=x * 2, o=np.zeros((16, 16), f32), n=4), dict(o=2 * x[16:32, :16]))


def replaced_descriptor():
    same("""
@triton.jit
def h(d, i):
    return d.load([i, 0])
@triton.jit
def k(x, y, o, n):
    d = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [16, 16])
    i = 0
    while i < n:
        if i == 2:
            d = tl.make_tensor_descriptor(y, [32, 64], [64, 1], [16, 16])
        i += 1
    r = tl.arange(0, 16)
    tl.store(o + r[:, None] * 16 + r[None, :], h(d, 24))
    d.store([0, 0], tl.zeros((16, 16), tl.float32))
""", dict(x=x, y=x * 2, o=np.zeros((16, 16), f32), n=4), 
         dict(o=np.concatenate([2 * x[24:32, :16], np.zeros((8, 16))])))


def range_options():
    same("""
@triton.jit
def k(x, y, o, n):
    tl.store(o, 1)
    for i in tl.range(0, n, 1, num_stages=3, loop_unroll_factor=2, disallow_acc_multi_buffer=True, flatten=True, warp_specialize=True, disable_licm=True):
        tl.store(o + i, i)
    for i in tl.range(n, num_stages=None, loop_unroll_factor=None):
        tl.store(o + 4 + i, i)
    for i in tl.static_range(0, 4, step=2):
        tl.store(o + 8 + i, i)
    for i in tl.static_range(4, 0, -1):
        tl.store(o + 12 + i, i)
""", dict(x=x, y=x, o=np.zeros(20, i32), n=4), dict(o=np.array([0,1,2,3,0,1,2,3,0,0,2,0,0,1,2,3,4,0,0,0],i32)))


def aggregates():
    same("""
@tl.core._aggregate
class P:
    a: tl.tensor
    b: tl.tensor
    n: tl.constexpr
    @triton.constexpr_function
    def __init__(self, a, b, n):
        self.a = a
        self.b = b
        self.n = tl.constexpr(n)
    @triton.jit
    def total(self):
        return self.a + self.b * self.n
    @triton.jit
    def create(a, n: tl.constexpr):
        return P(a, a * 2, n)
@triton.jit
def k(o, n):
    p = P(n, n + 1, 3)
    for i in range(n):
        p = P(p.a + 1, p.b, 3)
    tl.store(o, p.total())
    q = P.create(n, 2)
    tl.store(o + 1, q.total())
""", dict(o=np.zeros(2, i32), n=4), dict(o=np.array([8+15, 4+16], i32)))


def methods():
    z = x[:16, :16] / 16
    same("""
@triton.jit
def k(x, o, w):
    r = tl.arange(0, 16)
    m = r[:, None] * 16 + r[None, :]
    v = tl.load(x + m)
    tl.store(o + m, v.T)
    tl.store(o + 256 + m, v.trans(1, 0).permute(1, 0))
    tl.store(o + 512 + m, v.reshape(8, 2, 16).reshape([16, 16]).abs().exp2().log2())
    tl.store(o + 768 + m, v.cast(tl.float16).to(tl.float32).floor().broadcast_to((16, 16)))
    tl.store(w + r, v.sum(1))
    tl.store(w + 16 + r, v.max(axis=1))
    tl.store(w + 32 + r, v.min(axis=0))
    tl.store(w + 48 + r, v.argmax(1))
    tl.store(w + 64 + r, v.expand_dims(0).reshape(16, 16).cumsum(0).sum(0) * 0 + v.sum(0))
    a, b = v.reshape(16, 8, 2).split()
    tl.store(w + 80 + r, a.sum(1) + b.sum(1))
    tl.store(w + 96 + r, v.ravel().gather(r, 0))
    tl.store(w + 112 + r, v.softmax(1).sum(1))
    tl.store(w + 128 + r, (r > 4).logical_and(r < 9).to(tl.float32) + 2 * (r > 4).logical_or((r < 2).logical_and(True)).to(tl.float32))
""", dict(x=z, o=np.zeros((4, 16, 16), f32), w=np.zeros((9, 16), f32)),
         dict(o=np.stack([z.T, z, z, np.floor(z)]),
              w=np.stack([z.sum(1), z.max(1), z.min(0), z.argmax(1), z.sum(0), z.sum(1), z.ravel()[:16], np.ones(16),
                          np.array([2, 2, 0, 0, 0, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2])])), bound=1e-6)


def ranks():
    t = np.arange(16).reshape(2, 2, 2, 2)
    pairs = np.stack([t.ravel(), t.ravel() + 100], -1).ravel()
    same("""
@triton.jit
def k(o):
    r = tl.arange(0, 16)
    t = tl.full((2, 2, 2, 2), 0, tl.int32) + r.reshape(2, 2, 2, 2)
    tl.store(o + r, t.permute(3, 1, 0, 2).reshape(16))
    tl.store(o + 16 + r, tl.permute(t, (2, 0, 3, 1)).reshape(16))
    u = r.reshape(2, 2, 2, 2, 1)
    tl.store(o + 32 + r, tl.trans(u, 4, 3, 2, 1, 0).reshape(16))
    j = tl.join(r, r + 100)
    tl.store(o + 48 + tl.arange(0, 32), j.reshape(32))
    tl.store(o + 80 + tl.arange(0, 32), tl.interleave(r, r + 100))
    tl.store(o + 112 + tl.arange(0, 32), tl.cat(r, r + 100, can_reorder=True))
    s = tl.join(tl.program_id(0), 5)
    tl.store(o + 144 + tl.arange(0, 2), s)
""", dict(o=np.zeros(146, i32)),
         dict(o=np.concatenate([t.transpose(3, 1, 0, 2).ravel(), t.transpose(2, 0, 3, 1).ravel(), t.T.ravel(), pairs, pairs, t.ravel(), t.ravel() + 100,
                                [0, 5]]).astype(i32)))


def assembly():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.py"
        path.write_text("""import triton
import triton.language as tl

@triton.jit
def k(x):
    r = tl.arange(0, 16)
    tl.store(x + r, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [r], dtype=tl.int32, is_pure=True, pack=1))
""")
        for mode in ([], ["--interp"]):
            p = ditron("run", path, "--grid", 1, "x=zeros:i32[16]", *mode, ok=False)
            assert "k.py:7" in p.stderr and "inline assembly" in p.stderr, p.stderr


for f in (swapped_descriptors, chosen_descriptor, replaced_descriptor, range_options, aggregates, methods, ranks, assembly):
    case(f.__name__, f)
finish()
