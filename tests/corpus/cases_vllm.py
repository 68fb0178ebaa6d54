"""vllm's kernels, from its sources alone: attention over pages, quantised products, experts, state spaces."""
import torch
import torch.nn.functional as F

from harness import HAVE_VLLM, case, tl, vllm

if HAVE_VLLM:
    vllm()
    from vllm.attention.ops import triton_decode_attention, triton_merge_attn_states, triton_unified_attention
    from vllm.model_executor.layers.fused_moe import fused_moe
    from vllm.model_executor.layers.mamba.ops import layernorm_gated, mamba_ssm
    from vllm.model_executor.layers.quantization import awq_triton
    from vllm.model_executor.layers.quantization.compressed_tensors import triton_scaled_mm
    from vllm.model_executor.layers.quantization.utils import int8_utils
    from vllm.v1.sample import rejection_sampler


def vllm_case(*args, **kwargs):
    return case(*args, **kwargs) if HAVE_VLLM else lambda fn: fn


# ---- B, D ------------------------------------------------------------------------------------------------


@vllm_case("B", "vllm gated rms norm")
def _(t):
    x, z, w = t.randn(33, 100), t.randn(33, 100), t.randn(100)
    t.same(layernorm_gated.rms_norm_gated(x, w, None, z=z, eps=1e-6), F.rms_norm(x, (100,), w, 1e-6) * F.silu(z))
    t.same(layernorm_gated.rms_norm_gated(x, w, None, z=z, eps=1e-6, norm_before_gate=False),
           F.rms_norm(x * F.silu(z), (100,), w, 1e-6))


def paged(t, lens, heads, head, page, pages, dtype):
    """Keys and values scattered over pages; the table says which pages a sequence has."""
    k, v = t.randn(pages, page, heads, head, dtype=dtype), t.randn(pages, page, heads, head, dtype=dtype)
    table = torch.randperm(pages, generator=t.random)[:len(lens) * (pages // len(lens))].view(len(lens), -1).int()
    return k, v, table


def attend(q, k, v, scale, window, softcap):
    """Causal attention of the last len(q) positions; q [n, heads, head], k and v [m, heads, head]."""
    n, m, groups = q.shape[0], k.shape[0], q.shape[1] // k.shape[1]
    k, v = k.float().repeat_interleave(groups, 1), v.float().repeat_interleave(groups, 1)
    s = torch.einsum("qhd,khd->hqk", q.float(), k) * scale
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    d = torch.arange(m - n, m)[:, None] - torch.arange(m)[None, :]
    keep = (d >= 0) & (d < window) if window else d >= 0
    return torch.einsum("hqk,khd->qhd", torch.softmax(s.masked_fill(~keep, float("-inf")), -1), v)


def unified(t, lens, heads, kv_heads, head, page, window, softcap, dtype):
    queries, keys = [n for n, _ in lens], [m for _, m in lens]
    k, v, table = paged(t, lens, kv_heads, head, page, 64, dtype)
    q = t.randn(sum(queries), heads, head, dtype=dtype)
    out = torch.zeros_like(q)
    starts = torch.tensor([0] + queries).cumsum(0).int()
    triton_unified_attention.unified_attention(
        q, k, v, out, starts, max(queries), torch.tensor(keys).int(), max(keys), head ** -0.5, True,
        (window - 1, 0) if window else (-1, -1), table, softcap, None, None, None)
    want = []
    for i, (n, m) in enumerate(lens):
        own = table[i].long()
        want.append(attend(q[starts[i]:starts[i] + n], k[own].flatten(0, 1)[:m], v[own].flatten(0, 1)[:m], head ** -0.5,
                           window, softcap))
    t.same(out, torch.cat(want))


@vllm_case("D", "vllm unified attention bf16")
def _(t):
    unified(t, [(1, 132), (5, 18), (29, 46)], 8, 2, 128, 16, 0, 0, torch.bfloat16)


@vllm_case("D", "vllm unified attention, window, cap")
def _(t):
    unified(t, [(3, 100), (17, 17)], 4, 4, 64, 16, 37, 50.0, torch.float32)


@vllm_case("D", "vllm unified attention, decoding")
def _(t):
    unified(t, [(1, 132), (1, 18)], 4, 2, 64, 16, 0, 0, torch.float32)


@vllm_case("D", "vllm decoding attention")
def _(t):
    for heads, kv_heads in ((4, 4), (8, 2)):
        lens, page, splits, head = [33, 150], 16, 4, 64
        k, v, table = paged(t, lens, kv_heads, head, page, 64, torch.float32)
        q, out = t.randn(2, heads, head), torch.empty(2, heads, head)
        logits, lse = torch.empty(2, heads, splits, head + 1), torch.empty(2, heads)
        triton_decode_attention.decode_attention_fwd(q, k, v, out, table, torch.tensor(lens).int(), logits, splits,
                                                     head ** -0.5, page)
        want = [attend(q[i:i + 1], k[table[i].long()].flatten(0, 1)[:n], v[table[i].long()].flatten(0, 1)[:n], head ** -0.5,
                       0, 0) for i, n in enumerate(lens)]
        t.same(out, torch.cat(want))


@vllm_case("D", "vllm merge of attention parts")
def _(t):
    a, b, la, lb = t.randn(17, 3, 72), t.randn(17, 3, 72), t.randn(3, 17), t.randn(3, 17)
    out, lse = torch.empty_like(a), torch.empty_like(la)
    triton_merge_attn_states.merge_attn_states(out, a, la, b, lb, lse)
    w = torch.sigmoid(la - lb).T[..., None]
    t.same((out, lse), (a * w + b * (1 - w), torch.logaddexp(la, lb)))


# ---- E ---------------------------------------------------------------------------------------------------


@vllm_case("E", "vllm selective scan, one step")
def _(t):
    state, x, dt = t.randn(2, 200, 16), t.randn(2, 200), t.randn(2, 200)
    a, b, c, d = -t.rand(200, 16) - 0.1, t.randn(2, 16), t.randn(2, 16), t.randn(200)
    bias, z = t.randn(200), t.randn(2, 200)
    out, old = torch.empty_like(x), state.clone()
    mamba_ssm.selective_state_update(state, x, dt, a, b, c, d, z=z, dt_bias=bias, dt_softplus=True, out=out)
    step = F.softplus(dt + bias)
    new = old * torch.exp(step[..., None] * a) + (step * x)[..., None] * b[:, None]
    t.same((state, out), (new, ((new * c[:, None]).sum(-1) + d * x) * F.silu(z)))


# ---- F ---------------------------------------------------------------------------------------------------


def awq(t, k, n, group):
    """Packed weights, zeros and scales, and what they mean: nibbles in the order 0 2 4 6 1 3 5 7 of AWQ."""
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])

    def pack(x):
        parts = x.view(x.shape[0], -1, 8)[..., order].long()
        packed = sum(parts[..., i] << (4 * i) for i in range(8))
        return torch.where(packed >= 2 ** 31, packed - 2 ** 32, packed).int()

    w, z = t.randint(0, 16, (k, n)), t.randint(0, 16, (k // group, n))
    s = t.rand(k // group, n, dtype=torch.float16)
    wide = (w - z.repeat_interleave(group, 0)).float() * s.float().repeat_interleave(group, 0)
    return pack(w), s, pack(z), wide


@vllm_case("F", "vllm awq dequantisation")
def _(t):
    q, s, z, wide = awq(t, 256, 208, 64)
    t.same(awq_triton.awq_dequantize_triton(q, s, z), wide)


@vllm_case("F", "vllm awq matmul, split k")
def _(t):
    q, s, z, wide = awq(t, 256, 128, 128)
    x = t.randn(24, 256, dtype=torch.float16, scale=0.1)
    t.same(awq_triton.awq_gemm_triton(x, q, s, z, 8), x.float() @ wide, bound=4e-3)


@vllm_case("F", "vllm scaled matmul int8, fp8")
def _(t):
    for dtype in (torch.int8, torch.float8_e4m3fn):
        a, b = t.randint(-30, 31, (33, 496)).to(dtype), t.randint(-30, 31, (256, 496)).to(dtype).T
        bias = t.randn(256, dtype=torch.bfloat16)
        for sa, sb in ((t.rand(1), t.rand(1)), (t.rand(33), t.rand(256))):
            t.same(triton_scaled_mm.triton_scaled_mm(a, b, sa, sb, torch.bfloat16, bias),
                   (a.float() @ b.float()) * sa[:, None] * sb[None, :] + bias.float())


@vllm_case("F", "vllm int8 quantisation, block matmul")
def _(t):
    x = t.randn(37, 256)
    q, s = int8_utils.per_token_quant_int8(x)
    scale = x.abs().amax(-1, keepdim=True) / 127
    t.same(s, scale)
    t.same((q.float() - x / scale).abs().max(), torch.tensor(0.5), bound=1e-2)  # nearest
    qa, sa = int8_utils.per_token_group_quant_int8(x, 128)
    b, sb = t.randint(-127, 128, (200, 256)).to(torch.int8), t.rand(2, 2)
    wide = b.float() * sb.repeat_interleave(128, 0)[:200].repeat_interleave(128, 1)
    t.same(int8_utils.w8a8_block_int8_matmul(qa, b, sa, sb, [128, 128], torch.float32),
           (qa.float() * sa.repeat_interleave(128, 1)) @ wide.T)


# ---- G, H ------------------------------------------------------------------------------------------------


def aligned(ids, block, experts):
    """Token places sorted by expert, each expert's padded to whole blocks; the experts of the blocks."""
    places, owners = [], []
    for e in range(experts):
        own = (ids.flatten() == e).nonzero().flatten().tolist()
        own += [ids.numel()] * (-len(own) % block)
        places += own
        owners += [e] * (len(own) // block)
    return torch.tensor(places).int(), torch.tensor(owners).int(), torch.tensor([len(places)]).int()


@vllm_case("G", "vllm fused experts")
def _(t):
    m, n, k, experts, top = 37, 130, 100, 8, 2
    config = dict(BLOCK_SIZE_M=16, BLOCK_SIZE_N=64, BLOCK_SIZE_K=32, GROUP_SIZE_M=8)
    for dtype, weighted in ((torch.float32, True), (torch.bfloat16, False)):
        a, b = t.randn(m, k, dtype=dtype), t.randn(experts, n, k, dtype=dtype)
        w, ids = torch.topk(torch.softmax(t.randn(m, experts), -1), top)
        c = torch.zeros(m, top, n, dtype=dtype)
        fused_moe.invoke_fused_moe_kernel(a, b, c, None, None, None, w, *aligned(ids, 16, experts), weighted, top, config,
                                          tl.float32 if dtype == torch.float32 else tl.bfloat16, False, False, False, False,
                                          False)
        want = torch.einsum("mk,mtnk->mtn", a.float(), b[ids].float())
        t.same(c, want * w[..., None] if weighted else want)


@vllm_case("G", "vllm fused experts fp8, blocks")
def _(t):
    m, n, k, experts, top = 21, 256, 256, 4, 2
    config = dict(BLOCK_SIZE_M=16, BLOCK_SIZE_N=64, BLOCK_SIZE_K=64, GROUP_SIZE_M=1)
    a, b = t.randn(m, k).to(torch.float8_e4m3fn), t.randn(experts, n, k).to(torch.float8_e4m3fn)
    sa, sb = t.rand(m, 2), t.rand(experts, 2, 2)
    w, ids = torch.topk(torch.softmax(t.randn(m, experts), -1), top)
    c = torch.zeros(m, top, n)
    fused_moe.invoke_fused_moe_kernel(a, b, c, sa, sb, None, w, *aligned(ids, 16, experts), False, top, config, tl.float32,
                                      True, False, False, False, False, block_shape=[128, 128])
    wide = a.float() * sa.repeat_interleave(128, 1)
    weights = b.float() * sb.repeat_interleave(128, 1).repeat_interleave(128, 2)
    t.same(c, torch.einsum("mk,mtnk->mtn", wide, weights[ids]), bound=1e-4)


@vllm_case("H", "vllm greedy rejection of drafts")
def _(t):
    drafts, places = torch.tensor([5, 1, 2, 7, 7, 3]).int(), torch.tensor([2, 2, 5, 6]).int()  # ends of four requests
    best, bonus = torch.tensor([5, 9, 2, 7, 8, 3]), torch.tensor([[40], [41], [42], [43]]).int()
    out = torch.full((4, 4), -1, dtype=torch.int32)
    rejection_sampler.rejection_greedy_sample_kernel[(4,)](out, places, drafts, best, bonus, None, 3, num_warps=1)
    t.same(out, torch.tensor([[5, 9, -1, -1], [41, -1, -1, -1], [2, 7, 8, -1], [3, 43, -1, -1]]).int())
