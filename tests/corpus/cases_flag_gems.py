"""flag_gems' operators, which compute what torch's of the same name do. Classes A to J."""
import torch
import torch.nn.functional as F

from harness import case, flag_gems

flag_gems()
from flag_gems.fused import cross_entropy_loss, topk_softmax  # noqa: E402
from flag_gems.ops import (addmm, argmax, batch_norm, bmm, cat, conv2d, cummax, cumsum, embedding_dense_backward,  # noqa: E402
                           flip, gather, gelu, groupnorm, index_add, index_select, isin, kron, layernorm, log_softmax,
                           masked_select, mm, mv, nllloss, nonzero, pad, per_token_group_quant_fp8, pow, quantile,
                           repeat_interleave, rms_norm, scatter, silu, softmax, sort, topk, triu, unique,
                           upsample_nearest2d, var_mean, vdot, w8a8_block_fp8_matmul, weightnorm)
from triton.language.extra import libdevice  # noqa: E402
from flag_gems.ops import max as max_  # noqa: E402


# ---- A ---------------------------------------------------------------------------------------------------


@case("A", "gems gelu")
def _(t):
    x = t.randn(41, 999)
    t.same(gelu.gelu(x, approximate="none"), F.gelu(x))
    t.same(gelu.gelu(x.T, approximate="tanh"), F.gelu(x.T, approximate="tanh"))


@case("A", "gems silu bf16")
def _(t):
    x, up = t.randn(7, 13, 129, dtype=torch.bfloat16), t.randn(7, 13, 129, dtype=torch.bfloat16)
    t.same(silu.silu(x), F.silu(x))
    with t.binding(div_rn=libdevice.div_rn):  # its decorator takes the device library's function instead, where there is one
        t.same(silu.silu_backward(up, x), torch.ops.aten.silu_backward(up.float(), x.float()))


@case("A", "gems pow broadcast")
def _(t):
    a, b = t.rand(33, 1, 17) + 0.1, t.randn(5, 17)
    t.same(pow.pow_tensor_tensor(a, b), torch.pow(a, b))
    t.same(pow.pow_scalar(2.5, b), torch.pow(2.5, b))


@case("A", "gems flip")
def _(t):
    x = t.randn(19, 6, 23)
    t.same(flip.flip(x, [0, 2]), x.flip(0, 2))


@case("A", "gems upper triangle")
def _(t):
    x = t.randn(3, 65, 130)
    t.same(triu.triu(x, 2), torch.triu(x, 2))
    t.same(triu.triu(x[0], -3), torch.triu(x[0], -3))


@case("A", "gems concatenate, pad")
def _(t):
    a, b = t.randn(5, 7, 31), t.randn(5, 2, 31)
    t.same(cat.cat([a, b], 1), torch.cat([a, b], 1))
    t.same(pad.pad(a, (3, 1, 0, 2), "constant", 1.5), F.pad(a, (3, 1, 0, 2), "constant", 1.5))


@case("A", "gems repeat interleave")
def _(t):
    x, n = t.randn(9, 30), torch.tensor([0, 3, 1, 2, 0, 0, 7, 1, 1])
    t.same(repeat_interleave.repeat_interleave_self_int(x, 3, 0), x.repeat_interleave(3, 0))
    t.same(repeat_interleave.repeat_interleave_tensor(n), torch.repeat_interleave(n))


@case("A", "gems upsample")
def _(t):
    x = t.randn(2, 3, 17, 19)
    t.same(upsample_nearest2d.upsample_nearest2d(x, (31, 40)), F.interpolate(x, (31, 40), mode="nearest"))


@case("A", "gems kronecker product")
def _(t):
    a, b = t.randn(5, 7), t.randn(3, 11)
    t.same(kron.kron(a, b), torch.kron(a, b))


# ---- B ---------------------------------------------------------------------------------------------------


@case("B", "gems softmax", sample=True)
def _(t):
    x = t.randn(23, 1000, scale=4.0)
    t.same(softmax.softmax(x, -1), torch.softmax(x, -1))
    up, y = t.randn(23, 1000), torch.softmax(x, -1)
    t.same(softmax.softmax_backward(up, y, -1, x.dtype), (up - (up * y).sum(-1, keepdim=True)) * y)


@case("B", "gems softmax long rows")
def _(t):
    x = t.randn(3, 50021)
    t.same(softmax.softmax(x, -1), torch.softmax(x, -1))


@case("B", "gems softmax along the first")
def _(t):
    x = t.randn(3, 37, 50)
    t.same(softmax.softmax(x, 1), torch.softmax(x, 1))
    up, y = t.randn(3, 37, 50), torch.softmax(x, 1)
    t.same(softmax.softmax_backward(up, y, 1, x.dtype), (up - (up * y).sum(1, keepdim=True)) * y)


@case("B", "gems log softmax f16")
def _(t):
    x = t.randn(23, 777, dtype=torch.float16)
    t.same(log_softmax.log_softmax(x, -1), torch.log_softmax(x.float(), -1))
    y, up = torch.log_softmax(x.float(), -1), t.randn(23, 777)
    t.same(log_softmax.log_softmax_backward(up, y, -1, torch.float32), up - y.exp() * up.sum(-1, keepdim=True))


@case("B", "gems layer norm")
def _(t):
    for m, n in ((13, 100), (7, 1500), (3, 5000)):  # several rows at once, a row at once, a row in parts
        x, w, b = t.randn(m, n), t.randn(n), t.randn(n)
        y, mean, rstd = layernorm.layer_norm(x, (n,), w, b)
        t.same(y, F.layer_norm(x, (n,), w, b))
        t.same(rstd, torch.rsqrt(x.var(-1, correction=0) + 1e-5))
        up = t.randn(m, n)
        got = layernorm.layer_norm_backward(up, x, (n,), mean[:, None], rstd[:, None], w, b, [True, True, True])
        want = torch.ops.aten.native_layer_norm_backward(up, x, [n], mean[:, None], rstd[:, None], w, b, [True] * 3)
        t.same(got, want)


@case("B", "gems group norm")
def _(t):
    x, w, b = t.randn(2, 6, 5, 7), t.randn(6), t.randn(6)
    t.same(groupnorm.group_norm(x, w, b, 2, 6, 35, 3)[0], F.group_norm(x, 3, w, b))


@case("B", "gems batch norm")
def _(t):
    x, w, b = t.randn(9, 5, 33), t.rand(5), t.randn(5)
    mean, var = torch.zeros(5), torch.ones(5)
    m2, v2 = mean.clone(), var.clone()
    y = batch_norm.batch_norm(x, w, b, mean, var, True, 0.1, 1e-5)[0]
    t.same((y, mean, var), (F.batch_norm(x, m2, v2, w, b, True, 0.1, 1e-5), m2, v2))


@case("B", "gems rms norm")
def _(t):
    x, w = t.randn(17, 1023), t.randn(1023)
    t.same(rms_norm.rms_norm(x, (1023,), w, 1e-5), F.rms_norm(x, (1023,), w, 1e-5))


@case("B", "gems weight norm")
def _(t):
    v, g = t.randn(33, 70), t.rand(33, 1)
    t.same(weightnorm.weight_norm_interface(v, g, 0)[0], torch._weight_norm(v, g, 0))
    g = t.rand(1, 70)
    t.same(weightnorm.weight_norm_interface(v, g, 1)[0], torch._weight_norm(v, g, 1))


@case("B", "gems variance and mean, welford")
def _(t):
    x = t.randn(100000) + 3
    t.same(var_mean.var_mean(x, correction=1), torch.var_mean(x, correction=1))
    x = t.randn(31, 515) + 1
    t.same(var_mean.var_mean(x, [1], correction=0), torch.var_mean(x, [1], correction=0))


@case("B", "gems nll loss")
def _(t):
    x, y, w = F.log_softmax(t.randn(67, 30), -1), t.randint(0, 30, (67,)), t.rand(30)
    y[::7] = -100
    for i, reduction in enumerate(("none", "mean", "sum")):
        t.same(nllloss.nll_loss_forward(x, y, w, i, -100)[0], F.nll_loss(x, y, w, reduction=reduction))


@case("B", "gems cross entropy")
def _(t):
    x, y, w = t.randn(37, 300), t.randint(0, 300, (37,)), t.rand(300)
    y[5] = -100
    ce = cross_entropy_loss.cross_entropy_loss
    t.against(lambda x: ce(x, y), lambda x: F.cross_entropy(x, y), x)
    t.against(lambda x: ce(x, y, w, "sum", -100, 0.1), lambda x: F.cross_entropy(x, y, w, reduction="sum", label_smoothing=0.1), x)
    p = torch.softmax(t.randn(37, 300), -1)
    t.against(lambda x: ce(x, p, w, "mean", -100, 0.1), lambda x: F.cross_entropy(x, p, w, label_smoothing=0.1), x)


# ---- C ---------------------------------------------------------------------------------------------------


@case("C", "gems mm", sample=True)
def _(t):
    a, b = t.randn(65, 130), t.randn(130, 77)
    t.same(mm.mm(a, b), a @ b)


@case("C", "gems mm f16 transposed")
def _(t):
    a, b = t.randn(300, 128, dtype=torch.float16).T, t.randn(96, 300, dtype=torch.float16).T
    t.same(mm.mm(a, b), a.float() @ b.float())


@case("C", "gems bmm")
def _(t):
    a, b = t.randn(4, 129, 70), t.randn(4, 70, 65)
    t.same(bmm.bmm(a, b), a @ b)
    a, b = t.randn(2, 128, 256, dtype=torch.float16), t.randn(2, 256, 192, dtype=torch.float16)
    t.same(bmm.bmm(a, b), a.float() @ b.float())


@case("C", "gems addmm bf16")
def _(t):
    a, b = t.randn(70, 200, dtype=torch.bfloat16), t.randn(200, 50, dtype=torch.bfloat16)
    c = t.randn(50, dtype=torch.bfloat16)
    t.same(addmm.addmm(c, a, b, beta=0.5, alpha=2.0), torch.addmm(c.float(), a.float(), b.float(), beta=0.5, alpha=2.0))


@case("C", "gems mv, vdot")
def _(t):
    a, x = t.randn(101, 999), t.randn(999)
    t.same(mv.mv(a, x), a @ x)
    t.same(vdot.vdot(x, x * 0.5), (x * x).sum() * 0.5)


@case("C", "gems conv2d")
def _(t):
    x, w, b = t.randn(2, 6, 14, 15), t.randn(8, 3, 3, 3), t.randn(8)
    t.same(conv2d.conv2d(x, w, b, stride=2, padding=1, dilation=1, groups=2), F.conv2d(x, w, b, 2, 1, 1, 2))


# ---- E, F ------------------------------------------------------------------------------------------------


@case("E", "gems cumsum")
def _(t):
    x = t.randn(5, 3001)
    t.same(cumsum.cumsum(x, 1), x.cumsum(1), bound=1e-4)
    t.same(cumsum.cumsum(x, 0), x.cumsum(0))
    i = t.randint(-9, 9, (50000,), torch.int32)
    t.same(cumsum.cumsum(i, 0), i.cumsum(0))


@case("E", "gems cummax")
def _(t):
    x = t.randn(4, 700)
    t.same(cummax.cummax(x, 1), torch.cummax(x, 1))


@case("F", "gems group quantisation fp8")
def _(t):
    x = t.randn(33, 512)
    q, s = per_token_group_quant_fp8.per_token_group_quant_fp8(x, 128, dtype=torch.float8_e4m3fn)
    scale = x.view(33, 4, 128).abs().amax(-1).clamp(min=1e-10) / 448
    t.same(s, scale)
    t.same(q, (x.view(33, 4, 128) / scale[..., None]).clamp(-448, 448).view(33, 512).to(torch.float8_e4m3fn), bound=2e-2)


@case("F", "gems block fp8 matmul")
def _(t):
    a, b = t.randn(37, 256).to(torch.float8_e4m3fn), t.randn(200, 256).to(torch.float8_e4m3fn)
    sa, sb = t.rand(37, 2), t.rand(2, 2)
    wide = (a.float().view(37, 2, 128) * sa[..., None]).view(37, 256)
    scale = sb.repeat_interleave(128, 0)[:200].repeat_interleave(128, 1)
    t.same(w8a8_block_fp8_matmul.w8a8_block_fp8_matmul(a, b, sa, sb, [128, 128], torch.float32), wide @ (b.float() * scale).T)


# ---- G, H ------------------------------------------------------------------------------------------------


@case("G", "gems topk softmax of experts")
def _(t):
    x = t.randn(45, 60)
    w, i, rows = torch.empty(45, 4), torch.empty(45, 4, dtype=torch.int32), torch.empty(45, 4, dtype=torch.int32)
    topk_softmax.topk_softmax(w, i, rows, x, True)
    v, want = torch.topk(torch.softmax(x, -1), 4)
    t.same((w, i), (v / v.sum(-1, keepdim=True), want.int()))


@case("H", "gems topk")
def _(t):
    x = t.randn(8, 2048)
    t.same(topk.topk(x, 5), torch.topk(x, 5))
    t.same(topk.topk(x[:, :300].contiguous(), 17, largest=False), torch.topk(x[:, :300], 17, largest=False))


@case("H", "gems radix sort")
def _(t):
    x = t.randn(3, 2500)
    t.same(sort.sort_stable(x, stable=True, dim=-1, descending=False), torch.sort(x, stable=True))
    i = t.randint(-1000, 1000, (2, 3001), torch.int32)
    t.same(sort.sort_stable(i, stable=True, dim=-1, descending=True), torch.sort(i, stable=True, descending=True))


@case("H", "gems argmax, max")
def _(t):
    x = t.randn(17, 64, 65)
    t.same(argmax.argmax(x), torch.argmax(x))
    t.same(argmax.argmax(x, 2), torch.argmax(x, 2))
    t.same(argmax.argmax(x, 1), torch.argmax(x, 1))
    t.same(max_.max(x), torch.max(x))
    t.same(tuple(max_.max_dim(x, 1)), tuple(torch.max(x, 1)))


@case("H", "gems unique")
def _(t):
    x = t.randint(0, 400, (3000,), torch.int32)
    got = unique._unique2(x, sorted=True, return_inverse=True, return_counts=True)
    t.same(got, torch.unique(x, sorted=True, return_inverse=True, return_counts=True))


@case("H", "gems is in")
def _(t):
    a, b = t.randint(0, 5000, (333,)), t.randint(0, 5000, (768,))
    t.same(isin.isin(a, b), torch.isin(a, b))
    seen = b[:700][torch.arange(700) % 256 < 700 % 256]  # a last block that is not full makes its other lanes forget
    t.same(isin.isin(a, b[:700]), torch.isin(a, seen))
    b = t.randint(0, 50000, (20000,))
    t.same(isin.isin(a, b), torch.isin(a, b))


@case("H", "gems nonzero, masked select")
def _(t):
    x = t.randint(0, 3, (37, 41))
    t.same(nonzero.nonzero(x), torch.nonzero(x))
    y = t.randn(37, 41)
    t.same(masked_select.masked_select(y, x > 0), torch.masked_select(y, x > 0))


@case("H", "gems quantile")
def _(t):
    x, q = t.randn(5, 300), torch.tensor([0.1, 0.5, 0.93])
    t.same(quantile.quantile(x, q, 1), torch.quantile(x, q, 1))


# ---- J ---------------------------------------------------------------------------------------------------


@case("J", "gems embedding gradient")
def _(t):
    up, i = t.randn(500, 65), t.randint(0, 50, (500,))
    for by_frequency in (False, True):
        t.same(embedding_dense_backward.embedding_dense_backward(up, i, 50, 3, by_frequency),
               torch.ops.aten.embedding_dense_backward(up, i, 50, 3, by_frequency))


@case("J", "gems index add, select")
def _(t):
    x, i, src = t.randn(30, 45), t.randint(0, 30, (77,)), t.randn(77, 45)
    t.same(index_add.index_add(x, 0, i, src, 2.0), x.index_add(0, i, src, alpha=2))
    t.same(index_select.index_select(x, 0, i), x.index_select(0, i))


@case("J", "gems gather, scatter")
def _(t):
    x, i = t.randn(30, 45), t.randint(0, 45, (30, 20))
    t.same(gather.gather(x, 1, i), x.gather(1, i))
    src = t.randn(30, 20)
    t.same(scatter.scatter(x, 1, i, src, reduce="add"), x.scatter(1, i, src, reduce="add"))
