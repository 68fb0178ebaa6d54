"""fla: linear attention, state-space recurrences, gated norms, convolutions; the package's own naive references."""
import warnings

import torch
import torch.nn.functional as F

from harness import case

warnings.filterwarnings("ignore", message="Triton is not supported")
from fla.modules import rotary, token_shift  # noqa: E402
from fla.modules.activations import ops as activations  # noqa: E402
from fla.modules.causal_conv1d import ops as conv  # noqa: E402
from fla.modules.fused_cross_entropy import ops as cross_entropy  # noqa: E402
from fla.modules.norm import fused_norm_gate, l2norm, layernorm  # noqa: E402
from fla.ops.attn import decoding, naive as attn_naive, parallel as attn  # noqa: E402
from fla.ops.based import naive as based_naive, parallel as based  # noqa: E402
from fla.ops.delta_rule import chunk as delta, fused_recurrent as delta_recurrent, naive as delta_naive  # noqa: E402
from fla.ops.forgetting_attn import naive as forget_naive, parallel as forget  # noqa: E402
from fla.ops.gated_delta_rule import chunk as gdn, fused_recurrent as gdn_recurrent, naive as gdn_naive  # noqa: E402
from fla.ops.gla import chunk as gla, fused_recurrent as gla_recurrent, naive as gla_naive  # noqa: E402
from fla.ops.hgrn import chunk as hgrn, fused_recurrent as hgrn_recurrent, naive as hgrn_naive  # noqa: E402
from fla.ops.linear_attn import chunk as linear, naive as linear_naive  # noqa: E402
from fla.ops.retention import naive as retention_naive, parallel as retention  # noqa: E402
from fla.ops.rwkv6 import chunk as rwkv6, fused_recurrent as rwkv6_recurrent, recurrent_naive as rwkv6_naive  # noqa: E402
from fla.ops.simple_gla import chunk as simple_gla, naive as simple_gla_naive  # noqa: E402
from fla.ops.utils import cumsum, logsumexp, pack, pooling, softmax  # noqa: E402
from fla.ops.utils.matmul import addmm, matmul  # noqa: E402
from fla.ops.utils.solve_tril import solve_tril  # noqa: E402

FLOW = 1e-4  # f32 through hundreds of steps


def qkv(t, *shape, n=3, dtype=torch.float32):
    return [t.randn(*shape, dtype=dtype, scale=0.5) for _ in range(n)]


# ---- A, B, C ---------------------------------------------------------------------------------------------


@case("A", "fla swish, swiglu")
def _(t):
    t.against(activations.swish, F.silu, t.randn(5, 33, 70))
    t.against(activations.swiglu, lambda x, y: F.silu(x) * y, t.randn(5, 33, 70), t.randn(5, 33, 70))


@case("A", "fla log sigmoid")
def _(t):
    t.against(activations.logsigmoid, F.logsigmoid, t.randn(5, 33, 70, scale=5.0))


@case("A", "fla rotary")
def _(t):
    x, c, s = t.randn(2, 37, 3, 64), t.randn(37, 16), t.randn(37, 16)
    for interleaved in (False, True):
        t.same(rotary.ops.rotary_embedding(x, c, s, interleaved=interleaved),
               rotary.ops.rotary_embedding_ref(x, c, s, interleaved=interleaved))


@case("A", "fla token shift")
def _(t):
    t.against(token_shift.token_shift, token_shift.token_shift_ref, t.randn(2, 37, 70))


@case("A", "fla causal convolution")
def _(t):
    def reference(x, w, b):
        return F.silu(F.conv1d(F.pad(x.transpose(1, 2), (3, 0)), w[:, None], b, groups=x.shape[-1]).transpose(1, 2))
    t.against(lambda x, w, b: conv.causal_conv1d(x, w, b, activation="silu")[0], reference, t.randn(2, 71, 96),
              t.randn(96, 4), t.randn(96), bound=3e-5)


@case("B", "fla layer norm, residual")
def _(t):
    t.against(lambda x, w, b, r: layernorm.layer_norm(x, w, b, residual=r, eps=1e-5),
              lambda x, w, b, r: F.layer_norm(x + r, (333,), w, b, 1e-5), t.randn(2, 35, 333), t.randn(333), t.randn(333),
              t.randn(2, 35, 333))


@case("B", "fla gated rms norm")
def _(t):
    t.against(lambda x, g, w: fused_norm_gate.rms_norm_gated(x, g, w, None, eps=1e-5),
              lambda x, g, w: F.rms_norm(x, (100,), w, 1e-5) * F.silu(g), t.randn(3, 35, 100), t.randn(3, 35, 100), t.randn(100))


@case("B", "fla l2 norm")
def _(t):
    t.against(l2norm.l2norm, lambda x: x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6), t.randn(3, 35, 100))


@case("B", "fla cross entropy")
def _(t):
    y = t.randint(0, 3001, (67,))
    y[::7] = -100
    t.against(lambda x: cross_entropy.cross_entropy_loss(x, y, label_smoothing=0.1)[0][y != -100].sum(),
              lambda x: F.cross_entropy(x, y, label_smoothing=0.1, reduction="sum"), t.randn(67, 3001))


@case("B", "fla softmax, log sum exp")
def _(t):
    x = t.randn(7, 11, 300, scale=3.0)
    p, up = torch.softmax(x, -1), t.randn(7, 11, 300)
    t.same(softmax.softmax_fwd(x), p)
    t.same(softmax.softmax_bwd(p, up), p * (up - (p * up).sum(-1, keepdim=True)))
    t.same(logsumexp.logsumexp_fwd(x, scale=0.5), torch.logsumexp(x * 0.5, -1))


@case("C", "fla matmul with activation")
def _(t):
    a, b = t.randn(65, 130), t.randn(130, 77)
    t.same(matmul(a, b), a @ b)
    t.same(matmul(a, b, "leaky_relu"), F.leaky_relu(a @ b, 0.01))
    c = t.randn(65, 77)
    t.same(addmm(c, a, b), c + a @ b)


# ---- D ---------------------------------------------------------------------------------------------------


@case("D", "fla attention")
def _(t):
    t.against(attn.parallel_attn, lambda *x: attn_naive.naive_parallel_attn(*x)[0], t.randn(1, 133, 4, 64), t.randn(1, 133, 2, 64),
              t.randn(1, 133, 2, 64), bound=3e-5)


@case("D", "fla attention f16 window")
def _(t):
    q, k, v = qkv(t, 1, 200, 2, 64, dtype=torch.float16)
    t.same(attn.parallel_attn(q, k, v, window_size=50),
           attn_naive.naive_parallel_attn(q.float(), k.float(), v.float(), window_size=50)[0])


@case("D", "fla attention, one step of decoding")
def _(t):
    bounds = torch.tensor([0, 33, 100])
    q, k, v = t.randn(1, 2, 4, 64), t.randn(1, 100, 2, 64), t.randn(1, 100, 2, 64)
    t.same(decoding.attn_decoding_one_step(q, k, v, cu_seqlens=bounds),
           attn_naive.naive_attn_decoding(q, k, v, cu_seqlens=bounds))


@case("D", "fla forgetting attention")
def _(t):
    t.against(forget.parallel_forgetting_attn, forget_naive.naive_forgetting_attn, *qkv(t, 1, 133, 2, 64),
              F.logsigmoid(t.randn(1, 133, 2)), bound=FLOW)


# ---- E ---------------------------------------------------------------------------------------------------


def chunks(s, size, reverse):
    return torch.cat([c.flip(1).cumsum(1).flip(1) if reverse else c.cumsum(1) for c in s.split(size, 1)], 1)


@case("E", "fla cumsum of chunks")
def _(t):
    for shape in ((2, 1000, 4), (2, 131, 3, 40)):
        s = t.randn(*shape)
        for reverse in (False, True):
            t.same(cumsum.chunk_local_cumsum(s, 64, reverse=reverse), chunks(s, 64, reverse))
    s = t.randn(1, 1000, 4)
    bounds = torch.tensor([0, 300, 1000])
    t.same(cumsum.chunk_local_cumsum(s, 64, cu_seqlens=bounds), torch.cat([chunks(p, 64, False) for p in s.split([300, 700], 1)], 1))


@case("E", "fla cumsum of all")
def _(t):
    for shape in ((2, 700, 4), (2, 131, 3, 40)):
        s = t.randn(*shape)
        t.same(cumsum.chunk_global_cumsum(s), s.cumsum(1), bound=3e-5)
        t.same(cumsum.chunk_global_cumsum(s, reverse=True), s.flip(1).cumsum(1).flip(1), bound=3e-5)


@case("E", "fla inverse of triangles")
def _(t):
    for size in (16, 32, 64):
        a = torch.tril(t.randn(1, 2, 3, size, size, scale=0.1), -1)  # batch, chunk, head
        want = torch.linalg.inv(a + torch.eye(size))
        got = solve_tril(a.transpose(2, 3).reshape(1, 2 * size, 3, size))
        t.same(got, want.transpose(2, 3).reshape(1, 2 * size, 3, size))


@case("E", "fla pooling, packing")
def _(t):
    x = t.randn(2, 100, 3, 40)
    t.same(pooling.mean_pooling(x, 16), torch.stack([c.mean(1) for c in x.split(16, 1)], 1))
    bounds, y = torch.tensor([0, 5, 12]), t.randn(2, 7, 30)
    y[0, :2] = 0
    packed = torch.cat((y[0, 2:], y[1]))
    t.same(pack.unpack_sequence(packed, bounds, "left"), y)
    t.same(pack.pack_sequence(y, bounds, "left"), packed)


@case("E", "fla gated linear attention")
def _(t):
    g = F.logsigmoid(t.randn(1, 131, 2, 64)) / 4
    t.against(lambda *x: gla.chunk_gla(*x)[0], lambda *x: gla_naive.naive_recurrent_gla(*x)[0], *qkv(t, 1, 131, 2, 64), g,
              bound=FLOW)


@case("E", "fla gated linear attention, recurrent")
def _(t):
    g = F.logsigmoid(t.randn(2, 37, 2, 32))
    t.against(lambda *x: gla_recurrent.fused_recurrent_gla(*x)[0], lambda *x: gla_naive.naive_recurrent_gla(*x)[0],
              *qkv(t, 2, 37, 2, 32), g, bound=FLOW)


@case("E", "fla simple gated linear attention")
def _(t):
    g = F.logsigmoid(t.randn(1, 131, 2))
    t.against(lambda *x: simple_gla.chunk_simple_gla(*x)[0],
              lambda q, k, v, g: simple_gla_naive.naive_recurrent_simple_gla(q, k, v, g)[0], *qkv(t, 1, 131, 2, 64), g, bound=FLOW)


@case("E", "fla linear attention bf16")
def _(t):
    q, k, v = qkv(t, 1, 131, 2, 64, dtype=torch.bfloat16)
    t.same(linear.chunk_linear_attn(q, k, v, normalize=False)[0],
           linear_naive.naive_chunk_linear_attn(*[F.pad(x.float(), (0, 0, 0, 0, 0, 61)) for x in (q, k, v)])[:, :131])


@case("E", "fla retention")
def _(t):
    t.against(lambda *x: retention.parallel_retention(*x)[0],
              lambda *x: retention_naive.naive_retention(*[y.transpose(1, 2) for y in x]).transpose(1, 2),
              *qkv(t, 1, 133, 2, 64), bound=FLOW)


@case("E", "fla delta rule")
def _(t):
    q, k, v = qkv(t, 1, 131, 2, 64)
    beta = t.rand(1, 131, 2)

    def reference(q, k, v, beta):
        o = delta_naive.delta_rule_recurrence(*[x.transpose(1, 2) for x in (q, k, v)], beta.transpose(1, 2))[0]
        return o.transpose(1, 2)

    k = F.normalize(k, dim=-1)
    t.against(lambda *x: delta.chunk_delta_rule(*x)[0], reference, *[x.bfloat16() for x in (q, k, v, beta)], bound=3e-2)
    t.against(lambda *x: delta_recurrent.fused_recurrent_delta_rule(*x)[0], reference, q, k, v, beta, bound=FLOW)


@case("E", "fla gated delta rule")
def _(t):
    q, k, v = qkv(t, 1, 131, 2, 64)
    k, beta, g = F.normalize(k, dim=-1), t.rand(1, 131, 2), F.logsigmoid(t.randn(1, 131, 2))
    t.against(lambda q, k, v, g, b: gdn.chunk_gated_delta_rule(q, k, v, g, b)[0],
              lambda q, k, v, g, b: gdn_naive.naive_recurrent_gated_delta_rule(q, k, v, b, g)[0], q, k, v, g, beta, bound=FLOW)
    t.same(gdn_recurrent.fused_recurrent_gated_delta_rule(q, k, v, g=g, beta=beta)[0],
           gdn_naive.naive_recurrent_gated_delta_rule(q, k, v, beta, g)[0], bound=FLOW)


@case("E", "fla rwkv6")
def _(t):
    q, k, v = qkv(t, 1, 67, 2, 32)
    w, u = -torch.exp(t.randn(1, 67, 2, 32)), t.randn(2, 32)

    def reference(q, k, v, w, u):
        o = rwkv6_naive.naive_recurrent_rwkv6(*[x.transpose(1, 2) for x in (q, k, v, w)], u)[0]
        return o.transpose(1, 2)

    t.against(lambda *x: rwkv6.chunk_rwkv6(*x)[0], reference, q, k, v, w, u, bound=FLOW)
    t.against(lambda *x: rwkv6_recurrent.fused_recurrent_rwkv6(*x)[0], reference, q, k, v, w, u, bound=FLOW)


@case("E", "fla hgrn")
def _(t):
    x, g = t.randn(2, 135, 70), F.logsigmoid(t.randn(2, 135, 70))
    t.against(lambda *x: hgrn.chunk_hgrn(*x)[0], lambda *x: hgrn_naive.naive_recurrent_hgrn(*x)[0], x, g, bound=FLOW)
    t.against(lambda *x: hgrn_recurrent.fused_recurrent_hgrn(*x)[0], lambda *x: hgrn_naive.naive_recurrent_hgrn(*x)[0], x, g,
              bound=FLOW)


@case("E", "fla based")
def _(t):
    q, k, v = t.randn(1, 131, 2, 16), t.randn(1, 131, 2, 16), t.randn(1, 131, 2, 64)
    t.against(based.parallel_based, lambda *x: based_naive.naive_parallel_based(*[y.transpose(1, 2) for y in x]).transpose(1, 2),
              q, k, v, bound=FLOW)
