"""unsloth's kernels: gated units, norms, loss, rotary embedding, NF4 and FP8 weights, attention with large heads."""
import torch
import torch.nn.functional as F

from harness import case, unsloth

unsloth()
from unsloth.kernels import (cross_entropy_loss, fp8, geglu, large_head_attention, layernorm, nf4, rms_layernorm,  # noqa: E402
                             rope_embedding, swiglu)


@case("A", "unsloth swiglu f16")
def _(t):
    e, g, d = [t.randn(2, 37, 300, dtype=torch.float16) for _ in range(3)]
    h = F.silu(e.float()) * g.float()
    t.same(swiglu.swiglu_fg_kernel(e, g), h)
    s = torch.sigmoid(e.float())
    want = (h, d.float() * F.silu(e.float()), d.float() * g.float() * s * (1 + e.float() * (1 - s)))
    got = swiglu.swiglu_DWf_DW_dfg_kernel(*[x.view(-1, 300).clone() for x in (d, e, g)])
    t.same([x.view(2, 37, 300) for x in got], want, bound=5e-3)


@case("A", "unsloth swiglu, long indices")
def _(t):
    e, g, h = [t.randn(100000) for _ in range(3)]
    swiglu._fg_kernel[(98,)](e, g, h, 100000, BLOCK_SIZE=1024, LONG_INDEXING=1)
    t.same(h, F.silu(e) * g)


@case("A", "unsloth geglu")
def _(t):
    a, b = t.randn(2, 37, 300), t.randn(2, 37, 300)
    t.same(geglu.geglu_exact_forward_kernel(a, b), F.gelu(a) * b)
    t.same(geglu.geglu_approx_forward_kernel(a, b), F.gelu(a, approximate="tanh") * b)


@case("A", "unsloth rope, q and k")
def _(t):
    q, k, c, s = t.randn(2, 4, 33, 64), t.randn(2, 2, 33, 64), t.randn(33, 32), t.randn(33, 32)
    c, s = torch.cat((c, c), -1), torch.cat((s, s), -1)

    def turn(x):
        a, b = x.chunk(2, -1)
        return x * c + torch.cat((-b, a), -1) * s

    t.same(rope_embedding.Fast_RoPE_Embedding_QK.apply(q.clone(), k.clone(), c, s, None), (turn(q), turn(k)))


@case("B", "unsloth rms norm")
def _(t):
    # The package first asks whether several rows at once give the same bits on this machine.
    with t.binding(_HIP_ROW_ORDER=False):
        for gemma in (False, True):
            for m, n in ((33, 100), (7, 4097)):
                t.against(lambda x, w: rms_layernorm.Fast_RMS_Layernorm.apply(x, w, 1e-6, gemma, False, False),
                          lambda x, w: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * (w + gemma), t.randn(m, n),
                          t.randn(n), bound=3e-5)


@case("B", "unsloth rms norm, several rows at once")
def _(t):
    x, w, up = t.randn(67, 100).requires_grad_(), t.randn(100).requires_grad_(), t.randn(67, 100)
    want = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w
    want.backward(up)
    a, b, dx = x.detach(), w.detach(), torch.empty(67, 100)
    with t.binding(_HIP_ROW_ORDER=False):
        y, r = rms_layernorm._rms_forward(a, b, 1e-6, False, rms_layernorm._eager_kernel, (128, 32, 4, 4))
        dw = rms_layernorm._rms_backward(up, dx, a, b, r, 1e-6, False, rms_layernorm._eager_kernel, (128, 32, 4, 4), train_w=True)
    t.same((y, dx, dw), (want.detach(), x.grad, w.grad), bound=3e-5)


@case("B", "unsloth layer norm")
def _(t):
    t.against(lambda x, w, b: layernorm.Fast_Layernorm.apply(x, w, b, 1e-5),
              lambda x, w, b: F.layer_norm(x, (1000,), w, b, 1e-5), t.randn(2, 17, 1000), t.randn(1000), t.randn(1000))


@case("B", "unsloth cross entropy")
def _(t):
    y = t.randint(0, 3000, (37,))
    y[3] = -100
    t.against(lambda x: cross_entropy_loss.Fast_CrossEntropyLoss.apply(x, y, 30.0, 0.5),
              lambda x: F.cross_entropy(30 * torch.tanh(0.5 * x / 30), y, reduction="none"), t.randn(37, 3000), bound=3e-5)


@case("B", "unsloth cross entropy, large vocabulary")
def _(t):
    y = t.randint(0, 70001, (5,))
    t.against(lambda x: cross_entropy_loss.Fast_CrossEntropyLoss.apply(x, y, 0, 0),
              lambda x: F.cross_entropy(x, y, reduction="none"), t.randn(5, 70001))


@case("D", "unsloth attention, large heads")
def _(t):
    q, k, v = t.randn(1, 4, 70, 128), t.randn(1, 2, 70, 128), t.randn(1, 2, 70, 128)
    end = torch.arange(70, dtype=torch.int32)[None]
    begin = torch.clamp(end - 30, min=0)
    o, lse = large_head_attention._fwd_impl(q, k, v, begin, end, 0.1)
    place = torch.arange(70)
    keep = (place[None] <= end[0][:, None]) & (place[None] >= begin[0][:, None])
    s = q @ k.repeat_interleave(2, 1).transpose(2, 3) * 0.1
    t.same(o, torch.softmax(s.masked_fill(~keep, float("-inf")), -1) @ v.repeat_interleave(2, 1), bound=3e-5)


@case("F", "unsloth nf4 weights")
def _(t):
    code = torch.linspace(-1, 1, 16)
    w, absmax = t.randint(0, 256, (64 * 300 // 2, 1)).to(torch.uint8), t.rand(300)
    got = nf4.dequantize_nf4(w, absmax, None, None, None, code, 64, 256, (64, 300), torch.float32)
    nibbles = torch.stack((w.flatten() >> 4, w.flatten() & 15), -1).flatten().long()
    t.same(got, (code[nibbles].view(300, 64) * absmax[:, None]).view(64, 300))


@case("F", "unsloth fp8 weights, activations, matmul")
def _(t):
    x, w = t.randn(37, 256), t.randn(200, 256).to(torch.float8_e4m3fn)
    sw = t.rand(2, 2)
    wide = w.float() * sw.repeat_interleave(128, 0)[:200].repeat_interleave(128, 1)
    t.same(fp8.weight_dequant_block(w, sw, 128, torch.float32), wide)
    q, s = fp8.act_quant(x, 128)
    scale = x.view(37, 2, 128).abs().amax(-1) / 448
    t.same((q, s), ((x.view(37, 2, 128) / scale[..., None]).view(37, 256).to(torch.float8_e4m3fn), scale), bound=2e-2)
    t.same(fp8.w8a8_block_fp8_matmul_triton(q, w, s, sw, [128, 128]),
           (q.float().view(37, 2, 128) * s[..., None]).view(37, 256) @ wide.T)
