"""Class A: elementwise."""
import torch
import torch.nn.functional as F
from liger_kernel.ops import dyt, geglu, llama4_rope, multi_token_attention, qwen2vl_mrope, relu_squared, rope, swiglu

from harness import case, without_gpu

without_gpu()


def rotate(x, cos, sin):
    """The rotary embedding with halves: x[..., :d] and x[..., d:] are a pair."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def angles(t, length, dim):
    angle = torch.outer(torch.arange(length).float(), 1e4 ** (-torch.arange(0, dim, 2) / dim))
    return torch.cat((angle, angle), -1)


@case("A", "liger swiglu", sample=True)
def _(t):
    t.against(swiglu.LigerSiLUMulFunction.apply, lambda a, b: F.silu(a) * b, t.randn(37, 1000), t.randn(37, 1000))


@case("A", "liger swiglu bf16 tiled")
def _(t):
    x = [t.randn(3, 20011, dtype=torch.bfloat16) for _ in range(2)]
    t.against(swiglu.LigerSiLUMulFunction.apply, lambda a, b: F.silu(a) * b, *x)


@case("A", "liger geglu tanh")
def _(t):
    t.against(geglu.LigerGELUMulFunction.apply, lambda a, b: F.gelu(a, approximate="tanh") * b, t.randn(5, 7, 333),
              t.randn(5, 7, 333))


@case("A", "liger relu squared f16")
def _(t):
    t.against(relu_squared.LigerReLUSquaredFunction.apply, lambda x: F.relu(x) ** 2, t.randn(11, 4097, dtype=torch.float16))


@case("A", "liger dyt")
def _(t):
    dyt.infer_device = lambda: "cuda"  # it splits the rows over as many programs as that device has processors
    t.against(dyt.LigerDyTFunction.apply, lambda x, a, g, b: torch.tanh(a * x) * g + b, t.randn(13, 511), t.randn(1),
              t.randn(511), t.randn(511), bound=5e-5)


@case("A", "liger rope")
def _(t):
    angle = angles(t, 33, 64)[None]
    t.against(lambda q, k: rope.LigerRopeFunction.apply(q, k, angle.cos(), angle.sin()),
              lambda q, k: (rotate(q, angle.cos(), angle.sin()), rotate(k, angle.cos(), angle.sin())),
              t.randn(2, 6, 33, 64), t.randn(2, 3, 33, 64))


@case("A", "liger llama4 rope")
def _(t):
    freqs = torch.polar(torch.ones(17, 32), t.randn(17, 32))

    def reference(q, k):
        def one(x):
            return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * freqs[:, None]).flatten(3)
        return one(q), one(k)

    t.against(lambda q, k: llama4_rope.LigerLlama4RopeFunction.apply(q, k, freqs), reference, t.randn(2, 17, 5, 64),
              t.randn(2, 17, 2, 64))


@case("A", "liger multimodal rope bf16")
def _(t):
    section = [8, 12, 12]
    angle = torch.stack([angles(t, 19, 64)[None] * f for f in (1.0, 0.5, 0.25)])
    cos, sin = angle.cos(), angle.sin()

    def pick(x):
        return torch.cat([m[i % 3] for i, m in enumerate(x.split(section * 2, dim=-1))], -1)[:, None]

    t.against(lambda q, k: qwen2vl_mrope.LigerQwen2VLMRopeFunction.apply(q, k, cos, sin, section),
              lambda q, k: (rotate(q, pick(cos), pick(sin)), rotate(k, pick(cos), pick(sin))),
              t.randn(1, 6, 19, 64, dtype=torch.bfloat16), t.randn(1, 2, 19, 64, dtype=torch.bfloat16))


@case("A", "liger causal masks")
def _(t):
    x = t.randn(2, 3, 65, 65)
    upper = torch.triu(torch.ones(65, 65, dtype=torch.bool), 1)
    m = multi_token_attention
    t.same(m._mask_inf_forward(x.clone()), x.masked_fill(upper, -1e9))
    t.same(m._mask_zero_forward(x.clone()), x.masked_fill(upper, 0))
    t.same(m._mask_inf_backward(x.clone()), x.masked_fill(upper, 0))
