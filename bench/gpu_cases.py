"""The cases of one_gpu.py: our kernels, the configurations that are tried, what torch offers beside them, and sizes.

A case makes its tensors through the bench b, so that they lie on its device; what b.fastest is given checks every configuration against
torch in float64. Peers run on a GPU only."""
import torch
import torch.nn.functional as F


def cdiv(a, b):
    return -(-a // b)


def pow2(n):
    return max(16, 1 << (n - 1).bit_length())


def configs(names, *rows):
    return [dict(zip(names.split(), row)) for row in rows]


def poison(*tensors):
    """Results of a launch before do not count."""
    def fill():
        for t in tensors:
            t.fill_(float("nan") if t.is_floating_point() else -1)
    return fill


def strides(**tensors):
    """stride_am=..., from am=(A, 0)."""
    return {f"stride_{n}": t.stride(axis) for n, (t, axis) in tensors.items()}


# per: instances for each of 132 multiprocessors, each taking rows in turn; 0: one instance a row
ROWS = configs("warps per regs", (4, 0, 0), (8, 0, 0), (8, 2, 0), (8, 3, 0), (8, 4, 0), (8, 2, 128), (16, 1, 0), (16, 2, 0), (4, 2, 0),
               (4, 4, 0), (4, 6, 0))
WARPS = configs("warps", (4,), (8,), (16,))


# ---- rows ------------------------------------------------------------------------------------------------------------------
def rows(b, title, m, n, kind, copies=4):
    xs = [b.randn(m, n) for _ in range(copies)]
    ys = [torch.empty_like(x) for x in xs]
    w, bias = b.randn(n), b.randn(n)
    d = xs[0].double()
    if kind == "softmax":
        file, name, want = "softmax.py", "softmax_kernel", torch.softmax(d, -1)
        values = dict(x_row_stride=n, out_row_stride=n, n_rows=m, n_cols=n, BLOCK_SIZE=pow2(n))
        peer = lambda x: torch.softmax(x, -1)  # noqa: E731
    else:
        file, name = "norm.py", f"{kind}_kernel"
        values = dict(w_ptr=w, row_stride=n, n_rows=m, n_cols=n, eps=1e-5, BLOCK_SIZE=pow2(n))
        if kind == "layer_norm":
            values["b_ptr"] = bias
            want = F.layer_norm(d, (n,), w.double(), bias.double(), 1e-5)
            peer = lambda x: F.layer_norm(x, (n,), w, bias, 1e-5)  # noqa: E731
        else:
            want = F.rms_norm(d, (n,), w.double(), 1e-5)
            peer = lambda x: F.rms_norm(x, (n,), w, 1e-5)  # noqa: E731
    best = b.fastest(title, ROWS, lambda c, i: [(file, name, (min(m, c["per"] * 132 or m),), dict(values, x_ptr=xs[i], out_ptr=ys[i]))],
                     lambda: b.right(title, ys[0], want, 1e-2), copies, poison(*ys))
    b.race(title, best, {"torch": [lambda x=x: peer(x) for x in xs], "copy": [lambda x=x, y=y: y.copy_(x) for x, y in zip(xs, ys)]},
           4 * m * n / 1e6, "GB/s")


def silu_mul(b, title, m, n, copies=4):
    xs, ys = [b.randn(m, 2 * n) for _ in range(copies)], [b.empty(m, n) for _ in range(copies)]
    want = F.silu(xs[0][:, :n].double()) * xs[0][:, n:].double()
    best = b.fastest(title, configs("warps block", (4, 1024), (8, 2048), (4, 4096)),
                     lambda c, i: [("elementwise.py", "silu_mul_rows_kernel", (m, cdiv(n, c["block"])),
                                    dict(x_ptr=xs[i], out_ptr=ys[i], n_cols=n, stride_x=2 * n, stride_out=n, BLOCK_SIZE=c["block"]))],
                     lambda: b.right(title, ys[0], want, 1e-2), copies, poison(*ys))
    b.race(title, best, {"torch": [lambda x=x: F.silu(x[:, :n]) * x[:, n:] for x in xs]}, 6 * m * n / 1e6, "GB/s")


def rope(b, title, tokens, heads, dim, copies=4):
    half = dim // 2
    xs = [b.randn(tokens, heads, dim) for _ in range(copies)]
    ys = [torch.empty_like(x) for x in xs]
    angle = torch.outer(torch.arange(tokens).double(), 10000.0 ** (-torch.arange(half).double() / half)).to(b.device)
    cos, sin = angle.cos().float(), angle.sin().float()
    d, c, s = xs[0].double(), cos.double()[:, None], sin.double()[:, None]
    want = torch.cat([d[..., :half] * c - d[..., half:] * s, d[..., half:] * c + d[..., :half] * s], -1)
    wide = [torch.cat([t, t], -1)[:, None].bfloat16() for t in (cos, sin)]
    turned = lambda x: x * wide[0] + torch.cat([-x[..., half:], x[..., :half]], -1) * wide[1]  # noqa: E731
    best = b.fastest(title, configs("warps heads", (4, 8), (4, 16), (8, 32)),
                     lambda k, i: [("rope.py", "rope_kernel", (tokens, cdiv(heads, k["heads"])),
                                    dict(x_ptr=xs[i], out_ptr=ys[i], cos_ptr=cos, sin_ptr=sin, positions_ptr=None, heads=heads, rest=0, half=half,
                                         stride_xt=heads * dim, stride_xh=dim, stride_ot=heads * dim, stride_oh=dim, stride_angle=half,
                                         BLOCK_H=k["heads"], BLOCK_HALF=pow2(half), BLOCK_REST=0))],
                     lambda: b.right(title, ys[0], want, 1e-2), copies, poison(*ys))
    b.race(title, best, {"torch": [lambda x=x: turned(x) for x in xs]}, 4 * xs[0].numel() / 1e6, "GB/s")


def cross_entropy(b, title, m, n, copies=2):
    xs = [b.randn(m, n) for _ in range(copies)]
    target, loss, lse = b.ints(0, n, m, dtype=torch.int64), b.empty(m, dtype=torch.float32), b.empty(m, dtype=torch.float32)
    target[0] = -100
    d = xs[0].double().requires_grad_()
    want = F.cross_entropy(d, target, reduction="none")
    values = dict(target_ptr=target, lse_ptr=lse, row_stride=n, n_cols=n, ignore=-100, smoothing=0.0, penalty=0.0)
    best = b.fastest(title, configs("warps block", (4, 2048), (8, 4096), (8, 8192), (16, 8192)),
                     lambda c, i: [("cross_entropy.py", "cross_entropy_kernel", (m,), dict(values, x_ptr=xs[i], loss_ptr=loss, BLOCK=c["block"]))],
                     lambda: b.right(title, loss, want.detach(), 1e-5), copies, poison(loss, lse))
    b.race(title, best, {"torch": [lambda x=x: F.cross_entropy(x, target, reduction="none") for x in xs]}, 2 * m * n / 1e6, "GB/s")
    grad, dx = torch.rand(m, device=b.device), torch.empty_like(xs[0])
    gradient, = torch.autograd.grad(want, d, grad.double())
    best = b.fastest(title, configs("warps block", (4, 1024), (8, 4096)),
                     lambda c, i: [("cross_entropy.py", "cross_entropy_backward_kernel", (m, cdiv(n, c["block"])),
                                    dict(values, x_ptr=xs[0], grad_ptr=grad, dx_ptr=dx, dx_row_stride=n, BLOCK=c["block"]))],
                     lambda: b.right(title, dx, gradient, 1e-2), 1, poison(dx))
    b.race(title + " backward", best, {"copy": [lambda: dx.copy_(xs[0])]}, 4 * m * n / 1e6, "GB/s")


def topk(b, title, m, n, k):
    x = b.randn(m, n, dtype=torch.float32)
    values, indices = b.empty(m, k, dtype=torch.float32), b.empty(m, k, dtype=torch.int32)
    want = torch.topk(x, k).values

    def check():
        assert torch.equal(values, want) and torch.equal(x.gather(1, indices.long()), want), title
    best = b.fastest(title, configs("warps block", (4, 512), (4, 1024), (8, 2048)),
                     lambda c, i: [("topk.py", "topk_kernel", (m,),
                                    dict(x_ptr=x, values_ptr=values, indices_ptr=indices, row_stride=n, k=k, n_cols=n, K=1 << (k - 1).bit_length(),
                                         BLOCK=c["block"]))], check, 1, poison(values, indices))
    b.race(title, best, {"torch": [lambda: torch.topk(x, k)]}, 4 * m * n / 1e6, "GB/s")


def sort(b, title, m, n):
    x = b.randn(m, n, dtype=torch.float32)
    values, indices = torch.empty_like(x), b.empty(m, n, dtype=torch.int32)
    want = torch.sort(x, stable=True)

    def check():
        assert torch.equal(values, want.values) and torch.equal(indices.long(), want.indices), title
    best = b.fastest(title, configs("warps", (4,), (8,)),
                     lambda c, i: [("topk.py", "sort_kernel", (m,),
                                    dict(x_ptr=x, values_ptr=values, indices_ptr=indices, row_stride=n, n_cols=n, BLOCK=pow2(n)))],
                     check, 1, poison(values, indices))
    b.race(title, best, {"torch": [lambda: torch.sort(x)]}, 4 * m * n / 1e6, "GB/s")


# ---- products --------------------------------------------------------------------------------------------------------------
TILES = configs("bm bn bk warps stages", (128, 128, 64, 8, 4), (128, 128, 64, 4, 4), (128, 256, 64, 8, 3), (128, 256, 64, 8, 4),
                (128, 256, 32, 8, 5),
                (64, 128, 64, 4, 4))
PERSISTENT = configs("bm bn bk warps stages grid", (128, 256, 64, 8, 4, 132), (128, 256, 64, 8, 4, 128), (128, 128, 64, 8, 5, 132),
                     (128, 128, 64, 4, 5, 132))
PERSISTENT_FEW_ROWS = configs("bm bn bk warps stages grid", (64, 128, 64, 4, 6, 132), (64, 64, 64, 4, 8, 132), (64, 64, 128, 4, 6, 132),
                              (64, 32, 64, 4, 12, 132), (64, 32, 128, 4, 8, 132), (64, 32, 256, 4, 4, 132), (64, 32, 256, 4, 4, 128),
                              (64, 32, 64, 4, 5, 396))
# A tile an instance, by pointers (style pointer).
PLAIN_FEW_ROWS = configs("bm bn bk warps stages style", (16, 32, 128, 4, 8, "pointer"), (16, 32, 256, 4, 5, "pointer"), (16, 32, 256, 4, 8, "pointer"),
                         (16, 32, 512, 4, 4, "pointer"), (16, 16, 256, 2, 8, "pointer"), (16, 16, 512, 4, 4, "pointer"), (16, 64, 128, 4, 8, "pointer"),
                         (16, 32, 128, 2, 6, "pointer"), (16, 64, 128, 4, 4, "pointer"))
FEW_ROWS = configs("bm bn bk splits warps stages", (16, 64, 128, 4, 4, 4), (16, 64, 128, 8, 4, 4), (16, 128, 64, 8, 4, 4),
                   (64, 64, 64, 4, 4, 4), (64, 128, 64, 2, 4, 4), (64, 64, 128, 2, 4, 3))
SMALL_TILES = configs("bm bn bk warps stages", (32, 64, 32, 4, 2))


def tiles(b, rows_=TILES):
    return rows_ if b.timed else SMALL_TILES


def beyond_l2(size, make):
    """Sets of tensors, size bytes each, to launch over in turn: together four times the L2 cache, so that each finds its own in memory."""
    return [make() for _ in range(max(1, cdiv(200 << 20, size)) if size > 1 << 20 else 1)]


def blocks(c, group=8):
    return dict(BLOCK_M=c["bm"], BLOCK_N=c["bn"], BLOCK_K=c["bk"], GROUP_M=group)


def gemm(b, title, m, n, k, style):
    """style: a kernel of matmul.py (persistent: with weights as layers keep them, [n, k]), or fused: bias, activation and residual of
    gemm.py, against torch's ops in turn."""
    trans = style == "persistent"
    weights = lambda: b.randn(n, k).T if trans else b.randn(k, n)  # noqa: E731
    sets = beyond_l2(2 * (m * k + k * n + m * n), lambda: (b.randn(m, k), weights(), b.empty(m, n)))
    x, w, y = sets[0]
    bias, residual = b.randn(n), b.randn(m, n)
    want = x.double() @ w.double()
    peers = {"cuBLAS": [lambda x=x, w=w, y=y: torch.matmul(x, w, out=y) for x, w, y in sets]}
    shape = dict(M=m, N=n, K=k)
    lie = strides(am=(x, 0), ak=(x, 1), bk=(w, 0), bn=(w, 1), cm=(y, 0), cn=(y, 1))

    def make(c, i):
        grid, (x, w, y) = (cdiv(m, c["bm"]) * cdiv(n, c["bn"]),), sets[i]
        pointers = dict(a_ptr=x, b_ptr=w, c_ptr=y, **shape, **blocks(c))
        if style == "descriptor":
            return [("matmul.py", "matmul_descriptor_kernel", grid,
                     dict(a_desc=b.blocks(x, (c["bm"], c["bk"])), b_desc=b.blocks(w, (c["bk"], c["bn"])),
                          c_desc=b.blocks(y, (c["bm"], c["bn"])), **shape, **blocks(c)))]
        if c.get("style", style) == "persistent":
            return [("matmul.py", "matmul_persistent_kernel", (min(c["grid"], grid[0]),), dict(pointers, TRANS_B=True))]
        if style == "fused":
            return [("gemm.py", "gemm_kernel", grid + (1,),
                     dict(pointers, **lie, **strides(rm=(residual, 0), rn=(residual, 1)), stride_ab=0, stride_bb=0, stride_cb=0, stride_rb=0,
                          alpha=1.0, bias_ptr=bias, residual_ptr=residual, ACTIVATION="silu"))]
        return [("matmul.py", "matmul_wrapped_kernel" if style == "wrapped" else "matmul_kernel", grid, dict(pointers, **lie))]
    if style == "fused":
        want = F.silu(want + bias.double()) + residual.double()
        peers = {"torch": [lambda x=x, w=w: F.silu(torch.addmm(bias, x, w)) + residual for x, w, _ in sets]}
    rows_ = tiles(b)
    if style == "persistent":
        few = PERSISTENT if m >= 128 else PERSISTENT_FEW_ROWS + PLAIN_FEW_ROWS * (m <= 16)
        rows_ = few if b.timed else configs("bm bn bk warps stages grid", (32, 64, 32, 4, 2, 3))
    best = b.fastest(title, rows_, make, lambda: b.right(title, y, want, 1e-2), len(sets), poison(y))
    b.race(title, best, peers, 2 * m * n * k / 1e9, "TFLOP/s")


def split_k(b, title, m, n, k):
    sets = beyond_l2(2 * (m * k + k * n + m * n), lambda: (b.randn(m, k), b.randn(n, k), b.empty(m, n)))  # weights as torch keeps them
    x, w, y = sets[0]
    arrived, partial = torch.zeros(4096, device=b.device, dtype=torch.int32), b.empty(1 << 24, dtype=torch.float32)
    want = x.double() @ w.double().T
    lie = strides(am=(x, 0), ak=(x, 1), bk=(w, 1), bn=(w, 0), cm=(y, 0), cn=(y, 1))
    best = b.fastest(title, FEW_ROWS if b.timed else FEW_ROWS[:1],
                     lambda c, i: [("gemm.py", "gemm_split_k_kernel", (cdiv(m, c["bm"]) * cdiv(n, c["bn"]), c["splits"]),
                                    dict(a_ptr=sets[i][0], b_ptr=sets[i][1], c_ptr=sets[i][2], bias_ptr=None, residual_ptr=None, partial_ptr=partial, arrived_ptr=arrived,
                                         M=m, N=n, K=k, alpha=1.0, **lie, stride_rm=0, stride_rn=0, BLOCK_M=c["bm"], BLOCK_N=c["bn"],
                                         BLOCK_K=c["bk"], SPLITS=c["splits"]))],
                     lambda: b.right(title, y, want, 1e-2), len(sets), poison(y))
    b.race(title, best, {"cuBLAS": [lambda x=x, w=w, y=y: torch.matmul(x, w.T, out=y) for x, w, y in sets]}, 2 * m * n * k / 1e9, "TFLOP/s")


def scaled(b, title, m, n, k, kind):
    """fp8 and int8 operands, K together in both, scales a row and column; or fp8 with a scale a 128 x 128 block."""
    if kind == "int8":
        x, w = b.ints(-128, 128, m, k, dtype=torch.int8), b.ints(-128, 128, n, k, dtype=torch.int8)
    else:
        x, w = b.randn(m, k, dtype=torch.float8_e4m3fn), b.randn(n, k, dtype=torch.float8_e4m3fn)
    y = b.empty(m, n)
    lie = strides(am=(x, 0), ak=(x, 1), bk=(w, 1), bn=(w, 0), cm=(y, 0), cn=(y, 1))
    given = dict(a_ptr=x, b_ptr=w, c_ptr=y, bias_ptr=None, M=m, N=n, K=k, **lie)
    if kind == "block":
        sa, sb = (torch.rand(*s, device=b.device) for s in ((m, cdiv(k, 128)), (cdiv(k, 128), cdiv(n, 128))))
        a64 = x.double() * sa.double().repeat_interleave(128, 1)[:, :k]
        b64 = w.double().T * sb.double().repeat_interleave(128, 0)[:k].repeat_interleave(128, 1)[:, :n]
        given.update(scale_a_ptr=sa, scale_b_ptr=sb, SCALE_K=128, SCALE_N=128, **strides(sam=(sa, 0), sak=(sa, 1), sbk=(sb, 0), sbn=(sb, 1)))
        name, peers = "gemm_block_scaled_kernel", {}
    else:
        sa, sb = torch.rand(m, device=b.device), torch.rand(n, device=b.device)
        a64, b64 = x.double() * sa.double()[:, None], (w.double() * sb.double()[:, None]).T
        given.update(scale_a_ptr=sa, scale_b_ptr=sb, PER_ROW=True, PER_COLUMN=True)
        name = "gemm_scaled_kernel"
        peers = {"torch": [(lambda: torch._int_mm(x, w.T)) if kind == "int8" else
                           (lambda: torch._scaled_mm(x, w.T, sa[:, None], sb[None, :], out_dtype=torch.bfloat16))]}
    want = a64 @ b64
    rows_ = configs("bm bn bk warps stages", (128, 128, 64, 8, 4), (128, 128, 128, 8, 3), (128, 128, 128, 4, 4), (128, 256, 64, 8, 3),
                    (128, 256, 128, 8, 3), (128, 256, 128, 8, 4), (64, 128, 128, 4, 3))
    best = b.fastest(title, tiles(b, rows_),
                     lambda c, i: [("gemm_scaled.py", name, (cdiv(m, c["bm"]) * cdiv(n, c["bn"]),), dict(given, **blocks(c)))],
                     lambda: b.right(title, y, want, 1e-2), 1, poison(y))
    b.race(title, best, peers, 2 * m * n * k / 1e9, "TFLOP/s")


def grouped(b, title, groups, tokens, n, k):
    ends = torch.linspace(0, tokens, groups + 1).int()
    offsets = ends.to(b.device)
    x, w, y = b.randn(tokens, k), b.randn(groups, k, n), b.empty(tokens, n)
    want = torch.cat([x[ends[g]:ends[g + 1]].double() @ w[g].double() for g in range(groups)])
    given = dict(a_ptr=x, offsets_ptr=offsets, N=n, K=k, **strides(am=(x, 0), ak=(x, 1), bg=(w, 0), bk=(w, 1), bn=(w, 2), cm=(y, 0), cn=(y, 1)))
    work, peers = 2 * tokens * n * k / 1e9, {"torch": [lambda: torch._grouped_mm(x, w, offs=offsets[1:])]}
    best = b.fastest(title, tiles(b), lambda c, i: [("grouped_gemm.py", "grouped_gemm_kernel", (132,),
                                                     dict(given, b_ptr=w, c_ptr=y, groups=groups, **blocks(c)))],
                     lambda: b.right(title, y, want, 1e-2), 1, poison(y))
    b.race(title, best, peers, work, "TFLOP/s")
    if n % 8 == 0 and k % 8 == 0:
        by_blocks = lambda c: dict(a_desc=b.blocks(x, (c["bm"], c["bk"])), b_desc=b.blocks(w, (1, c["bk"], c["bn"])))  # noqa: E731
        best = b.fastest(title, tiles(b), lambda c, i: [
            ("grouped_gemm.py", "grouped_gemm_descriptor_kernel", (132,),
             dict(by_blocks(c), c_ptr=y, offsets_ptr=offsets, groups=groups, N=n, K=k, **strides(cm=(y, 0), cn=(y, 1)), **blocks(c)))],
                         lambda: b.right(title, y, want, 1e-2), 1, poison(y))
        b.race(title + " descriptors", best, peers, work, "TFLOP/s")
    dy, dw = b.randn(tokens, n), torch.empty_like(w)
    want = torch.stack([x[ends[g]:ends[g + 1]].double().T @ dy[ends[g]:ends[g + 1]].double() for g in range(groups)])
    rows_ = configs("bm bn bk warps stages", (32, 128, 128, 8, 3), (64, 128, 128, 8, 3))
    best = b.fastest(title, tiles(b, rows_),
                     lambda c, i: [("grouped_gemm.py", "grouped_gemm_weights_kernel", (cdiv(k, c["bk"]) * cdiv(n, c["bn"]), groups),
                                    dict(given, dc_ptr=dy, db_ptr=dw, **blocks(c)))], lambda: b.right(title, dw, want, 1e-2), 1, poison(dw))
    peers = {"torch": [lambda: torch._grouped_mm(x.T, dy, offs=offsets[1:])]}
    b.race(title + " weights", best, peers, work, "TFLOP/s")
    if n % 8 == 0 and k % 8 == 0:
        by_blocks = lambda c: dict(a_desc=b.blocks(x, (c["bm"], c["bk"])), dc_desc=b.blocks(dy, (c["bm"], c["bn"])),  # noqa: E731
                                   db_desc=b.blocks(dw, (1, c["bk"], c["bn"])))
        rows_ = configs("bm bn bk warps stages", (64, 256, 128, 8, 3), (64, 128, 128, 8, 4), (64, 128, 128, 4, 4))
        best = b.fastest(title, tiles(b, rows_), lambda c, i: [
            ("grouped_gemm.py", "grouped_gemm_weights_descriptor_kernel", (b.multiprocessors,),
             dict(by_blocks(c), a_ptr=x, dc_ptr=dy, offsets_ptr=offsets, groups=groups, N=n, K=k, **strides(am=(x, 0), cm=(dy, 0)), **blocks(c)))],
                         lambda: b.right(title, dw, want, 1e-2), 1, poison(dw))
        b.race(title + " weights descriptors", best, peers, work, "TFLOP/s")


# ---- attention -------------------------------------------------------------------------------------------------------------
QUERY_BLOCKS = configs("bm bn warps stages regs", (128, 128, 8, 2, 0), (128, 64, 8, 3, 0), (64, 64, 4, 2, 0), (64, 64, 4, 3, 0),
                       (64, 128, 4, 2, 168))
KEY_BLOCKS = configs("bm bn warps stages", (64, 128, 8, 2), (64, 64, 4, 2), (128, 128, 8, 2))


def by_cudnn(q, k, v, causal):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


class Heads:
    """q, k, v, dout [batch, heads, seq, D] with as many heads of keys as of queries, and torch's results of the first two heads."""

    def __init__(self, b, batch, heads, seq, dim, causal):
        self.shape = batch, heads, seq, dim
        self.q, self.k, self.v, self.dout = (b.randn(batch, heads, seq, dim) for _ in range(4))
        self.y, self.lse = torch.empty_like(self.q), b.empty(batch, heads, seq, dtype=torch.float32)
        few = [t[:1, :2].double().requires_grad_() for t in (self.q, self.k, self.v)]
        out = F.scaled_dot_product_attention(*few, is_causal=causal)
        self.want = out.detach(), *torch.autograd.grad(out, few, self.dout[:1, :2].double())
        self.flops = 4 * batch * heads * seq * seq * dim * (0.5 if causal else 1)
        size, row = seq * dim, dim
        self.strided = dict(cu_q_ptr=None, cu_k_ptr=None, scale=dim ** -0.5, seq_q=seq, seq_k=seq, rows_q=batch * seq, q_batch=heads * size,
                            q_head=size, q_row=row, k_batch=heads * size, k_head=size, k_row=row, heads=heads, kv_heads=heads, HEAD_DIM=dim,
                            CAUSAL=causal)


def attention(b, title, batch, heads, seq, dim, causal, style):
    h = Heads(b, batch, heads, seq, dim, causal)

    def make(c, i):
        grid, size = (cdiv(seq, c["bm"]), batch * heads), dict(BLOCK_M=c["bm"], BLOCK_N=c["bn"])
        common = dict(scale=dim ** -0.5, seq_q=seq, seq_k=seq, heads=heads, kv_heads=heads, HEAD_DIM=dim, CAUSAL=causal, lse_ptr=h.lse, **size)
        if style == "descriptor":
            block = lambda t, rows_: b.blocks(t.view(-1, seq, dim), (1, rows_, dim))  # noqa: E731
            tiles, at_once = grid[0] * grid[1], b.multiprocessors * (3 if c.get("warps") == 4 else 1)
            return [("attention_descriptor.py", "attention_descriptor_kernel", (min(tiles, at_once),),
                     dict(common, batch_heads=batch * heads, q_desc=block(h.q, c["bm"]), k_desc=block(h.k, c["bn"]), v_desc=block(h.v, c["bn"]), out_desc=block(h.y, c["bm"])))]
        tensors = dict(q_ptr=h.q, k_ptr=h.k, v_ptr=h.v, out_ptr=h.y)
        if style == "strided":
            return [("attention_varlen.py", "attention_varlen_kernel", grid, dict(h.strided, lse_ptr=h.lse, **tensors, **size))]
        return [("attention.py", "attention_kernel", grid, dict(common, **tensors))]
    best = b.fastest(title, QUERY_BLOCKS if b.timed else configs("bm bn", (64, 32)), make,
                     lambda: b.right(title, h.y[:1, :2], h.want[0], 2e-2), 1, poison(h.y))
    b.race(title, best, {"torch": [lambda: F.scaled_dot_product_attention(h.q, h.k, h.v, is_causal=causal)],
                         "cuDNN": [lambda: by_cudnn(h.q, h.k, h.v, causal)]}, h.flops / 1e9, "TFLOP/s")


def attention_backward(b, title, batch, heads, seq, dim, causal, ordered):
    """All kernels of the backward pass in turn; ordered: bitwise the same in every run, else dQ by atomic sums."""
    h = Heads(b, batch, heads, seq, dim, causal)
    dq, dk, dv = (torch.empty_like(t) for t in (h.q, h.k, h.v))
    delta, dq_sum = torch.empty_like(h.lse), b.empty(*h.q.shape, dtype=torch.float32)
    forward = b.fastest(title, configs("bm bn warps", (64, 32, 4)),
                        lambda c, i: [("attention_varlen.py", "attention_varlen_kernel", (cdiv(seq, c["bm"]), batch * heads),
                                       dict(h.strided, q_ptr=h.q, k_ptr=h.k, v_ptr=h.v, out_ptr=h.y, lse_ptr=h.lse, BLOCK_M=c["bm"],
                                            BLOCK_N=c["bn"]))], lambda: b.right(title, h.y[:1, :2], h.want[0], 2e-2))
    del forward
    given = dict(h.strided, q_ptr=h.q, k_ptr=h.k, v_ptr=h.v, dout_ptr=h.dout, lse_ptr=h.lse, delta_ptr=delta)

    def make(c, i):
        of_rows = ("attention_backward.py", "attention_delta_kernel", (cdiv(seq, 64), batch * heads),
                   dict({n: h.strided[n] for n in "cu_q_ptr seq_q rows_q q_batch q_head q_row heads HEAD_DIM".split()}, out_ptr=h.y,
                        dout_ptr=h.dout, delta_ptr=delta, BLOCK_M=64))
        of_keys = ("attention_backward.py", "attention_backward_kv_kernel", (cdiv(seq, c["bn"]), batch * heads),
                   dict(given, dk_ptr=dk, dv_ptr=dv, dq_sum_ptr=None if ordered else dq_sum, BLOCK_M=c["bm"], BLOCK_N=c["bn"]))
        rows_ = 16 * c["warps"] if b.timed else 64
        of_queries = ("attention_backward.py", "attention_backward_q_kernel", (cdiv(seq, rows_), batch * heads),
                      dict(given, dq_ptr=dq, BLOCK_M=rows_, BLOCK_N=64 if b.timed else 32))
        return [of_rows, of_keys] + ([of_queries] if ordered else [])

    def check():
        for name, got, want in zip(("dq", "dk", "dv"), (dq if ordered else dq_sum, dk, dv), h.want[1:]):
            b.right(f"{title} {name}", got[:1, :2], want, 3e-2)
    best = b.fastest(title, KEY_BLOCKS if b.timed else configs("bm bn warps", (32, 64, 8)), make, check, 1,
                     lambda: (poison(dq, dk, dv, delta)(), dq_sum.zero_()))

    def whole(found):  # with what a caller does besides
        ms, config, calls = found
        return ms, config, [lambda: (dq_sum.zero_(), calls[0](), dq.copy_(dq_sum))]
    if not ordered:
        best = whole(best)
        if b.triton_calls:
            b.triton_calls = whole(b.triton_calls)
    peers = {}
    if b.timed:
        q, k, v = (t.detach().requires_grad_() for t in (h.q, h.k, h.v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        peers["torch"] = [lambda: torch.autograd.grad(out, (q, k, v), h.dout, retain_graph=True)]
    b.race(title, best, peers, 2.5 * h.flops / 1e9, "TFLOP/s")


def decode(b, title, batch, heads, kv_heads, seq, dim, page, by_head=False):
    """page: keys of a page of the cache, in any order, [page, kv_heads, dim] or by_head [kv_heads, page, dim]; 0: the cache lies as torch's
    does, [batch, kv_heads, seq, dim]."""
    q = b.randn(batch, heads, dim)
    lens = torch.full((batch,), seq, device=b.device, dtype=torch.int32)
    y, lse = torch.empty_like(q), b.empty(batch, heads, dtype=torch.float32)
    if page:
        pages = cdiv(seq, page)
        k, v = (b.randn(batch * pages, page, kv_heads, dim) for _ in range(2))
        if by_head:
            k, v = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in (k, v))
        table = torch.randperm(batch * pages, device=b.device).int().view(batch, pages)
        flat = [t[table.long()].reshape(batch, pages * page, kv_heads, dim)[:, :seq].transpose(1, 2).contiguous() for t in (k, v)]
        lie = dict(table_stride=pages, k_page=k.stride(0), k_row=k.stride(1), k_head=k.stride(2))
    else:
        k, v = flat = [b.randn(batch, kv_heads, seq, dim) for _ in range(2)]
        table, lie = None, dict(table_stride=0, k_page=kv_heads * seq * dim, k_row=dim, k_head=seq * dim)
    want = F.scaled_dot_product_attention(q[:, :, None].double(), *(t.double() for t in flat), enable_gqa=True)[:, :, 0]
    most = 64
    partial, partial_lse = b.empty(batch, heads, most, dim, dtype=torch.float32), b.empty(batch, heads, most, dtype=torch.float32)

    def make(c, i):
        sizes, one = dict(HEAD_DIM=dim, SPLITS=c["splits"]), c["splits"] == 1
        both = [("decode.py", "decode_split_kernel", (c["splits"], kv_heads, batch),
                 dict(sizes, q_ptr=q, k_ptr=k, v_ptr=v, partial_ptr=y if one else partial, partial_lse_ptr=lse if one else partial_lse,
                      block_table_ptr=table, seq_lens_ptr=lens, scale=dim ** -0.5, q_batch=heads * dim, q_head=dim, **lie, heads=heads,
                      kv_heads=kv_heads, GROUP=pow2(heads // kv_heads), PAGE=page, BLOCK_N=c["bn"])),
                ("decode.py", "decode_combine_kernel", (batch * heads,),
                 dict(sizes, partial_ptr=partial, partial_lse_ptr=partial_lse, out_ptr=y, lse_ptr=lse))]
        return both[:1] if one else both
    rows_ = configs("bn splits warps stages", (64, 1, 4, 2), (64, 1, 4, 3), (64, 1, 4, 5), (128, 1, 4, 2), (32, 1, 4, 6), (64, 2, 4, 3),
                    (64, 4, 4, 3), (64, 8, 4, 3), (64, 32, 4, 3), (64, 64, 4, 3), (32, 2, 4, 6), (32, 4, 4, 5), (32, 8, 4, 4), (32, 32, 4, 4), (128, 1, 4, 3), (128, 1, 8, 2))
    best = b.fastest(title, rows_ if b.timed else rows_[7:8], make, lambda: b.right(title, y, want, 2e-2), 1, poison(y, lse))
    b.race(title, best, {"torch": [lambda: F.scaled_dot_product_attention(q[:, :, None], *flat, enable_gqa=True)]},
           4 * batch * seq * kv_heads * dim / 1e6, "GB/s")


# name, case, its sizes on a GPU, small and ragged ones for a check without one
CASES = [
    ("rms_norm", rows, (8192, 8192, "rms_norm"), (9, 100, "rms_norm")),
    ("layer_norm", rows, (8192, 8192, "layer_norm"), (9, 100, "layer_norm")),
    ("softmax", rows, (8192, 8192, "softmax"), (9, 100, "softmax")),
    ("silu_mul", silu_mul, (8192, 14336), (9, 1500)),
    ("rope", rope, (16384, 32, 128), (9, 5, 24)),
    ("cross_entropy", cross_entropy, (4096, 128256), (9, 5000)),
    ("topk 8 of 32768", topk, (4096, 32768, 8), (5, 3000, 8)),
    ("topk 6 of 256", topk, (8192, 256, 6), (5, 256, 6)),
    ("sort 4096", sort, (4096, 4096), (3, 100)),
    ("gemm 8192", gemm, (8192, 8192, 8192, "pointer"), (100, 90, 70, "pointer")),
    ("gemm 4096", gemm, (4096, 4096, 4096, "pointer"), (64, 64, 64, "pointer")),
    ("gemm 2048", gemm, (2048, 2048, 2048, "pointer"), (1, 1, 1, "pointer")),
    ("gemm wrapped 4096", gemm, (4096, 4096, 4096, "wrapped"), (64, 64, 64, "wrapped")),
    ("gemm wrapped 4000x4104x1000", gemm, (4000, 4104, 1000, "wrapped"), (50, 72, 40, "wrapped")),
    ("gemm descriptor 8192", gemm, (8192, 8192, 8192, "descriptor"), (100, 96, 72, "descriptor")),
    ("gemm persistent 8192x8192x8192", gemm, (8192, 8192, 8192, "persistent"), (100, 96, 72, "persistent")),
    ("gemm persistent 4096x4096x4096", gemm, (4096, 4096, 4096, "persistent"), (64, 64, 64, "persistent")),
    ("gemm persistent 2048x2048x2048", gemm, (2048, 2048, 2048, "persistent"), (1, 8, 8, "persistent")),
    ("gemm persistent 8192x14336x8192", gemm, (8192, 14336, 8192, "persistent"), (33, 72, 40, "persistent")),
    ("gemm persistent 4096x14336x8192", gemm, (4096, 14336, 8192, "persistent"), (70, 40, 136, "persistent")),
    ("gemm persistent 8192x12800x5120", gemm, (8192, 12800, 5120, "persistent"), (5, 136, 16, "persistent")),
    ("gemm persistent 1024x12288x4096", gemm, (1024, 12288, 4096, "persistent"), (90, 8, 88, "persistent")),
    ("gemm persistent 8192x4096x6144", gemm, (8192, 4096, 6144, "persistent"), (128, 64, 200, "persistent")),
    ("gemm persistent 64x12288x4096", gemm, (64, 12288, 4096, "persistent"), (16, 88, 64, "persistent")),
    ("gemm persistent 16x4096x4096", gemm, (16, 4096, 4096, "persistent"), (16, 72, 8, "persistent")),
    ("gemm fused 4096", gemm, (4096, 4096, 4096, "fused"), (100, 90, 70, "fused")),
    ("gemm split K 16", split_k, (16, 4096, 4096), (5, 70, 300)),
    ("gemm split K 64", split_k, (64, 12288, 4096), (33, 70, 300)),
    ("gemm fp8 8192", scaled, (8192, 8192, 8192, "fp8"), (70, 90, 160, "fp8")),
    ("gemm fp8 blocks 4096", scaled, (4096, 4096, 4096, "block"), (70, 130, 300, "block")),
    ("gemm int8 8192", scaled, (8192, 8192, 8192, "int8"), (70, 90, 160, "int8")),
    ("grouped gemm 8", grouped, (8, 8192, 7168, 4096), (3, 100, 72, 48)),
    ("grouped gemm 64", grouped, (64, 8192, 1408, 2048), (9, 33, 40, 32)),
    ("attention 128", attention, (4, 32, 4096, 128, True, "pointer"), (2, 2, 100, 32, True, "pointer")),
    ("attention 128 full", attention, (4, 32, 4096, 128, False, "pointer"), (1, 2, 70, 32, False, "pointer")),
    ("attention 64", attention, (16, 16, 2048, 64, True, "pointer"), (1, 2, 70, 16, True, "pointer")),
    ("attention descriptor 128", attention, (4, 32, 4096, 128, True, "descriptor"), (2, 2, 100, 32, True, "descriptor")),
    ("attention descriptor 128 full", attention, (4, 32, 4096, 128, False, "descriptor"), (1, 2, 70, 32, False, "descriptor")),
    ("attention descriptor 128 long", attention, (1, 32, 16384, 128, True, "descriptor"), (1, 1, 300, 32, True, "descriptor")),
    ("attention descriptor 64", attention, (16, 16, 2048, 64, True, "descriptor"), (1, 2, 70, 16, True, "descriptor")),
    ("attention strided 128", attention, (4, 32, 4096, 128, True, "strided"), (2, 2, 100, 32, True, "strided")),
    ("attention backward 128", attention_backward, (4, 32, 4096, 128, True, False), (2, 2, 100, 32, True, False)),
    ("attention backward 128 ordered", attention_backward, (4, 32, 4096, 128, True, True), (2, 2, 100, 32, True, True)),
    ("attention backward 64", attention_backward, (16, 16, 2048, 64, True, False), (1, 2, 70, 16, True, False)),
    ("decode 1", decode, (1, 32, 8, 8192, 128, 64), (1, 8, 2, 150, 32, 16)),
    ("decode 16", decode, (16, 32, 8, 8192, 128, 64), (3, 4, 4, 90, 32, 64)),
    ("decode 64", decode, (64, 32, 8, 2048, 128, 64), (3, 4, 1, 90, 32, 64)),
    ("decode pages of 16, 16", decode, (16, 32, 8, 8192, 128, 16), (3, 4, 4, 90, 32, 16)),
    ("decode by head 16", decode, (16, 32, 8, 8192, 128, 64, True), (3, 4, 4, 90, 32, 64, True)),
    ("decode by head 64", decode, (64, 32, 8, 2048, 128, 64, True), (3, 4, 1, 90, 32, 64, True)),
    ("decode dense 16", decode, (16, 32, 8, 8192, 128, 0), (3, 4, 4, 90, 32, 0)),
    ("decode dense 64", decode, (64, 32, 8, 2048, 128, 0), (3, 4, 1, 90, 32, 0)),
    ("decode 131072", decode, (1, 64, 8, 131072, 128, 64), (1, 8, 1, 500, 32, 64)),
]
