"""Class B: softmax, norms, losses."""
import torch
import torch.nn.functional as F
from liger_kernel.ops import (cross_entropy, fused_add_rms_norm, group_norm, jsd, kl_div, layer_norm, poly_norm, rms_norm,
                              softmax, sparsemax, tvd)

from harness import case


@case("B", "liger softmax one block", sample=True)
def _(t):
    t.against(softmax.LigerSoftmaxFunction.apply, lambda x: torch.softmax(x, -1), t.randn(61, 781))


@case("B", "liger softmax gradient, many blocks")
def _(t):  # the forward kernel of this kind takes tl.max of two scalars, which is an error in Triton too
    y, up, dx = torch.softmax(t.randn(3, 5001, scale=3.0), -1), t.randn(3, 5001), torch.empty(3, 5001)
    softmax._softmax_multi_block_backward_kernel[(3,)](up, 5001, y, 5001, dx, 5001, 5001, BLOCK_SIZE=1024)
    t.same(dx, (up - (up * y).sum(-1, keepdim=True)) * y)


@case("B", "liger layer norm")
def _(t):
    t.against(lambda x, w, b: layer_norm.LigerLayerNormFunction.apply(x, w, b, 1e-5),
              lambda x, w, b: F.layer_norm(x, (777,), w, b, 1e-5), t.randn(3, 11, 777), t.randn(777), t.randn(777))


@case("B", "liger layer norm bf16")
def _(t):
    x = [t.randn(19, 1024, dtype=torch.bfloat16)] + [t.randn(1024, dtype=torch.bfloat16) for _ in range(2)]
    t.against(lambda x, w, b: layer_norm.LigerLayerNormFunction.apply(x, w, b, 1e-5),
              lambda x, w, b: F.layer_norm(x, (1024,), w, b, 1e-5), *x)


def rms(x, w, eps=1e-6, offset=0.0):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (offset + w)


@case("B", "liger rms norm rows")
def _(t):
    for dtype, mode in ((torch.float32, "llama"), (torch.bfloat16, "llama"), (torch.bfloat16, "gemma"), (torch.float16, "none")):
        bound = 1e-2 if dtype == torch.float16 else None  # "none" really computes in f16
        t.against(lambda x, w: rms_norm.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, mode, False, True), rms,
                  t.randn(23, 513, dtype=dtype), t.randn(513, dtype=dtype), bound=bound)


@case("B", "liger rms norm blocks")
def _(t):
    t.against(lambda x, w: rms_norm.LigerRMSNormFunction.apply(x, w, 1e-6, 1.0, "gemma", False, False),
              lambda x, w: rms(x, w, offset=1.0), t.randn(5000, 200), t.randn(200), bound=3e-5)


@case("B", "liger fused add rms norm")
def _(t):
    t.against(lambda x, r, w: fused_add_rms_norm.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False),
              lambda x, r, w: (rms(x + r, w), x + r), t.randn(17, 999), t.randn(17, 999), t.randn(999))


@case("B", "liger group norm")
def _(t):
    t.against(lambda x, w, b: group_norm.LigerGroupNormFunction.apply(x, w, b, 6, 3, 1e-6),
              lambda x, w, b: F.group_norm(x.view(4, 6, -1), 3, w, b, 1e-6).view(x.shape), t.randn(4, 6, 301), t.randn(6),
              t.randn(6))


@case("B", "liger poly norm")
def _(t):
    def reference(x, w, b):
        def n(y):
            return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return w[0] * n(x ** 3) + w[1] * n(x ** 2) + w[2] * n(x) + b
    t.against(lambda x, w, b: poly_norm.LigerPolyNormFunction.apply(x, w, b, 1e-6, False), reference, t.randn(21, 700),
              t.randn(3), torch.tensor(0.7), bound=5e-5)


@case("B", "liger cross entropy")
def _(t):
    target = t.randint(0, 3001, (67,))
    target[::5] = -100
    t.against(lambda x: cross_entropy.LigerCrossEntropyFunction.apply(x, target, None, -100, 0.0, 0.1, "mean", None, False)[0],
              lambda x: F.cross_entropy(x, target, label_smoothing=0.1), t.randn(67, 3001))


@case("B", "liger cross entropy bf16 all flags")
def _(t):
    target = t.randint(0, 32000, (16,))
    target[3] = -100
    weight = t.rand(32000)

    def reference(x):
        x = 30.0 * torch.tanh(x / 30.0)
        return F.cross_entropy(x, target, weight=weight, label_smoothing=0.1, reduction="sum")

    t.against(lambda x: cross_entropy.LigerCrossEntropyFunction.apply(x, target, weight, -100, 0.0, 0.1, "sum", 30.0, False)[0],
              reference, t.randn(16, 32000, dtype=torch.bfloat16))


@case("B", "liger kl divergence")
def _(t):
    p, q = F.log_softmax(t.randn(15, 4099), -1), F.softmax(t.randn(15, 4099), -1)
    for reduction in ("batchmean", "sum", "none"):
        t.same(kl_div.kldiv_forward_triton(p, q, False, reduction, 1e-10), F.kl_div(p, q, reduction=reduction))
    t.same(kl_div.kldiv_backward_triton(q, torch.tensor(1.0), torch.empty_like(q), False), -q)


@case("B", "liger jensen shannon")
def _(t):
    beta = 0.3

    def reference(q, p):
        m = beta * p.exp() + (1 - beta) * q.exp()
        return (beta * F.kl_div(m.log(), p, log_target=True, reduction="none").sum() +
                (1 - beta) * F.kl_div(m.log(), q, log_target=True, reduction="none").sum()) / q.shape[0]

    p = F.log_softmax(t.randn(9, 2050), -1)
    t.against(lambda q: jsd.LigerJSDFunction.apply(q, p, None, beta, -100), lambda q: reference(q, p),
              F.log_softmax(t.randn(9, 2050), -1))


@case("B", "liger total variation")
def _(t):
    q = torch.softmax(t.randn(14, 1001), -1)
    t.against(lambda p: tvd.LigerTVDLossFunction.apply(p, q, None, "batchmean", -100),
              lambda p: 0.5 * (p - q).abs().sum() / p.shape[0], torch.softmax(t.randn(14, 1001), -1))


@case("B", "liger sparsemax")
def _(t):
    def reference(x):
        z, _ = torch.sort(x, -1, descending=True)
        k = torch.arange(1, x.shape[-1] + 1)
        support = 1 + k * z > z.cumsum(-1)
        size = support.sum(-1, keepdim=True)
        tau = (z.cumsum(-1).gather(-1, size - 1) - 1) / size
        return torch.clamp(x - tau, min=0)
    t.against(lambda x: sparsemax.LigerSparsemaxFunction.apply(x, -1), reference, t.randn(29, 417))
