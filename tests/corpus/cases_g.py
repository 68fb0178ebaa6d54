"""Classes G, I and J beside the operators of cases_flag_gems: experts, random numbers, atomics."""
import torch
import torch.nn.functional as F
from liger_kernel.ops import fused_moe, fused_neighborhood_attention, multi_token_attention
from liger_kernel.ops.experimental import embedding

from harness import case, flag_gems

flag_gems()
from flag_gems.ops import dropout, exponential_, rand, randn, uniform  # noqa: E402


@case("D", "liger neighborhood attention")
def _(t):
    q, k, v = t.randn(1, 2, 70, 32), t.randn(1, 2, 70, 32), t.randn(1, 2, 70, 32)

    def reference(q, k, v):
        place = torch.arange(70)
        near = (place[:, None] - place[None, :]).abs() <= 3
        s = (q @ k.transpose(2, 3) * 32 ** -0.5).masked_fill(~near, float("-inf"))
        return torch.softmax(s, -1) @ v

    t.against(lambda *x: fused_neighborhood_attention.LigerFusedNeighborhoodAttentionFunction.apply(*x, 7, 1), reference, q, k, v,
              bound=3e-5)


@case("G", "liger fused experts")
def _(t):
    tokens, hidden, inner, experts, top = 70, 128, 96, 6, 2
    ids = torch.topk(t.rand(tokens, experts), top).indices.int()
    weights = torch.softmax(t.randn(tokens, top), -1)

    def reference(x, up, down):
        out = torch.zeros_like(x)
        for slot in range(top):
            e = ids[:, slot].long()
            gate, value = torch.einsum("th,tih->ti", x, up[e]).chunk(2, -1)
            out = out + torch.einsum("ti,thi->th", F.silu(gate) * value, down[e]) * weights[:, slot:slot + 1]
        return out

    t.against(lambda x, up, down: fused_moe.LigerFusedMoEFunction.apply(x, up, down, ids, weights), reference,
              t.randn(tokens, hidden, scale=0.3), t.randn(experts, 2 * inner, hidden, scale=0.1),
              t.randn(experts, hidden, inner, scale=0.1), bound=1e-4)


@case("I", "gems rand, randn")
def _(t):
    with t.interpreted():
        for size in ((10,), (3001,)):
            x = rand.rand(size, device="cpu")
            t.same(((x >= 0) & (x < 1)).all(), torch.tensor(True))
            randn.randn(size, device="cpu")


@case("I", "gems uniform, exponential")
def _(t):
    with t.interpreted():
        uniform.uniform_(torch.empty(1001), -2.0, 3.0)
    # an `if` on the vendor's name, which only the running package knows, chooses between two logarithms
    with t.interpreted(), t.binding(transform_exponential_f32=exponential_.transform_exponential_f32):
        exponential_.exponential_(torch.empty(1001), 1.5)


@case("I", "gems dropout")
def _(t):
    x = t.randn(5003) + 10
    with t.interpreted():
        y, mask = dropout.dropout(x, 0.3)
    t.same(y, torch.where(mask, x / 0.7, 0.0))
    up = t.randn(5003)
    t.same(dropout.dropout_backward(up, mask, 1 / 0.7), torch.where(mask, up / 0.7, 0.0))


@case("J", "liger embedding")
def _(t):
    i = t.randint(0, 500, (333,))
    t.against(lambda w: embedding.LigerEmbeddingFunction.apply(w, i), lambda w: F.embedding(i, w), t.randn(500, 200))
