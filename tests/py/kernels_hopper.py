"""The library's products in the form that a Hopper runs, on the interpreter's laid-out and lowered stages and under the checker: tiles large enough
for four warps' products, 16- and 8-bit types, several stages, so that copies by the tensor memory accelerator, barriers in shared memory,
partitions of warps and their registers are what is compared with float64. Ragged sizes. Of each, what --explain must say of it.
TIMEOUT: 300"""
import numpy as np

from _ditron import KERNELS, below, case, finish, rel_err, run_kernel
from _library import as_type, cdiv

rng = np.random.default_rng(23)
PRODUCER, STRIPS, COPIES = "a producer warp fetches", "stores its rows of this tile in strips", "operands of its products"


def run(kernel, grid, values, want, bound, says, warps=4, stages=3):
    for stage in ("laid", "lowered"):
        said = []
        got = run_kernel(f"{KERNELS}/{kernel}", grid, values, list(want), mode=["--stage", stage, "--check", "--explain"],
                         options=["--warps", warps, "--stages", stages], said=said)
        for name, w in want.items():
            below(rel_err(got[name], w), bound, f"{stage} {name}")
        for text in says:
            assert text in said[0] or (stage == "laid" and text == COPIES), f"{stage}: not said: {text}\n{said[0]}"


def operands(m, n, k, dtype, b_order="row"):
    a64, a = as_type(rng.standard_normal((m, k)), dtype)
    b64, b = as_type(rng.standard_normal((k, n) if b_order == "row" else (n, k)), dtype)
    return a64, a, b64 if b_order == "row" else b64.T, b


def matmul(style, blocks, warps, shape=(208, 144, 176)):
    (m, n, k), (bm, bn, bk) = shape, blocks
    a64, a, b64, b = operands(m, n, k, "bf16")
    c = as_type(np.full((m, n), 9.0), "bf16")[1]
    values = dict(M=m, N=n, K=k, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, GROUP_M=3)
    grid = cdiv(m, bm) * cdiv(n, bn)
    out = "c_ptr"
    if style == "descriptor":
        out = "c_desc"
        values.update((name, ("desc", x[0], size, x[1])) for name, x, size in
                      (("a_desc", a, (bm, bk)), ("b_desc", b, (bk, bn)), ("c_desc", c, (bm, bn))))
    else:
        values.update(a_ptr=a, b_ptr=b, c_ptr=c)
    if style in ("pointer", "wrapped", "block_ptr"):
        values.update(stride_am=k, stride_ak=1, stride_bk=n, stride_bn=1, stride_cm=n, stride_cn=1)
    name = "matmul_kernel" if style == "pointer" else f"matmul_{style}_kernel"
    run(f"matmul.py:{name}", [3 if style == "persistent" else grid], values, {out: a64 @ b64}, 6e-3, [PRODUCER, STRIPS], warps)


def gemm(dtype, b_order, bias, batch=2, m=144, n=80, k=208):
    a64, b64, c, r = (np.zeros((batch, *s)) for s in ((m, k), (k, n), (m, n), (m, n)))
    a, b = np.zeros((batch, m, k), np.float32), np.zeros((batch, *((k, n) if b_order == "row" else (n, k))), np.float32)
    for i in range(batch):
        a64[i], ai, b64[i], bi = operands(m, n, k, dtype, b_order)
        a[i], b[i] = ai[0], bi[0]
    r64, r = as_type(rng.standard_normal((batch, m, n)), dtype)
    bias64, bias_arg = as_type(rng.standard_normal(n), dtype)
    x = a64 @ b64 + bias64
    values = dict(a_ptr=(a, dtype), b_ptr=(b, dtype), c_ptr=as_type(c, dtype)[1], bias_ptr=bias_arg, residual_ptr=r, M=m, N=n, K=k, alpha=1.0,
                  stride_ab=m * k, stride_am=k, stride_ak=1, stride_bb=k * n, stride_bk=n if b_order == "row" else 1,
                  stride_bn=1 if b_order == "row" else k, stride_cb=m * n, stride_cm=n, stride_cn=1, stride_rb=m * n, stride_rm=n, stride_rn=1,
                  BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, GROUP_M=2, ACTIVATION='"silu"')
    run("gemm.py:gemm_kernel", [cdiv(m, 64) * cdiv(n, 64), batch], values, dict(c_ptr=x / (1 + np.exp(-x)) + r64), 6e-3, [PRODUCER])


def scaled(dtype, m=80, n=144, k=272):
    if dtype == "i8":
        a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((m, k), (n, k)))
        a64, b64 = a.astype(np.float64), b.astype(np.float64).T
    else:
        a64, a, b64, b = operands(m, n, k, dtype, "col")
    sa, sb = (rng.uniform(0.01, 0.1, s).astype(np.float32) for s in (m, n))
    values = dict(a_ptr=a, b_ptr=b, c_ptr=as_type(np.zeros((m, n)), "bf16")[1], scale_a_ptr=sa, scale_b_ptr=sb, bias_ptr="None", M=m, N=n, K=k,
                  stride_am=k, stride_ak=1, stride_bk=1, stride_bn=k, stride_cm=n, stride_cn=1, PER_ROW=True, PER_COLUMN=True, BLOCK_M=64,
                  BLOCK_N=64, BLOCK_K=128, GROUP_M=2)
    run("gemm_scaled.py:gemm_scaled_kernel", [cdiv(m, 64) * cdiv(n, 64)], values,
        dict(c_ptr=(a64 @ b64) * sa[:, None].astype(np.float64) * sb), 6e-3, [PRODUCER])


def grouped(sizes, n=80, k=144):
    offsets = np.cumsum([0, *sizes]).astype(np.int32)
    a64, a = as_type(rng.standard_normal((sum(sizes), k)), "bf16")
    b64, b = as_type(rng.standard_normal((len(sizes), k, n)), "bf16")
    want = np.concatenate([a64[offsets[g]:offsets[g + 1]] @ b64[g] for g in range(len(sizes))])
    run("grouped_gemm.py:grouped_gemm_kernel", [3],
        dict(a_ptr=a, b_ptr=b, c_ptr=as_type(np.zeros(want.shape), "bf16")[1], offsets_ptr=offsets, groups=len(sizes), N=n, K=k, stride_am=k,
             stride_ak=1, stride_bg=k * n, stride_bk=n, stride_bn=1, stride_cm=n, stride_cn=1, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, GROUP_M=2),
        dict(c_ptr=want), 6e-3, [COPIES])
    dc64, dc = as_type(rng.standard_normal((sum(sizes), n)), "bf16")
    want = np.stack([a64[offsets[g]:offsets[g + 1]].T @ dc64[offsets[g]:offsets[g + 1]] for g in range(len(sizes))])
    block = lambda x, *shape: ("desc", x[0], shape, x[1])  # noqa: E731
    run("grouped_gemm.py:grouped_gemm_weights_descriptor_kernel", [3],
        dict(a_desc=block(a, 32, 64), dc_desc=block(dc, 32, 64), db_desc=block(as_type(np.ones(want.shape), "bf16")[1], 1, 64, 64), a_ptr=a,
             dc_ptr=dc, offsets_ptr=offsets, groups=len(sizes), N=n, K=k, stride_am=k, stride_cm=n, BLOCK_M=32, BLOCK_N=64, BLOCK_K=64, GROUP_M=2),
        dict(db_desc=want), 6e-3, [PRODUCER])


def heads(batch, heads_, kv_heads, sq, sk, d, causal):
    """q, k, v in float64 and as arguments; out and lse."""
    (q64, q), (k64, k), (v64, v) = (as_type(rng.standard_normal((batch, h, s, d)), "bf16") for h, s in
                                    ((heads_, sq), (kv_heads, sk), (kv_heads, sk)))
    kk, vv = (np.repeat(x, heads_ // kv_heads, 1) for x in (k64, v64))
    s = q64 @ kk.transpose(0, 1, 3, 2) * d ** -0.5
    if causal:
        s = np.where(np.arange(sk) <= np.arange(sq)[:, None] + sk - sq, s, -np.inf)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    return (q64, kk, vv), (q, k, v), e / total @ vv, (top + np.log(total))[..., 0], e / total


def attention(style, h, kv, seq, d, causal, blocks, warps=4):
    _, (q, k, v), out, lse, _ = heads(2, h, kv, seq, seq, d, causal)
    bm, bn = blocks
    values = dict(scale=d ** -0.5, seq_q=seq, seq_k=seq, heads=h, kv_heads=kv, HEAD_DIM=d, CAUSAL=causal, BLOCK_M=bm, BLOCK_N=bn,
                  lse_ptr=np.zeros(lse.shape, np.float32))
    out_name, y, grid = "out_ptr", as_type(np.zeros(out.shape), "bf16")[1], [cdiv(seq, bm), 2 * h]
    if style == "attention_descriptor":
        out_name, grid = "out_desc", [3]
        values["batch_heads"] = 2 * h
        desc = lambda x, rows: ("desc", x[0].reshape(-1, seq, d), (1, rows, d), x[1])  # noqa: E731
        values.update(q_desc=desc(q, bm), k_desc=desc(k, bn), v_desc=desc(v, bn), out_desc=desc(y, bm))
        out, lse = out.reshape(-1, seq, d), lse.reshape(-1, seq)
        values["lse_ptr"] = np.zeros(lse.shape, np.float32)
    else:
        values.update(q_ptr=q, k_ptr=k, v_ptr=v, out_ptr=y)
    if style == "attention_varlen":
        values.update(cu_q_ptr="None", cu_k_ptr="None", rows_q=2 * seq, q_batch=h * seq * d, q_head=seq * d, q_row=d, k_batch=kv * seq * d,
                      k_head=seq * d, k_row=d)
    run(f"{style}.py:{style}_kernel", grid, values, {out_name: out, "lse_ptr": lse}, 6e-3, [PRODUCER], warps, 2)


def backward(seq, d, causal, blocks):
    h, (bm, bn) = 2, blocks
    (q64, k64, v64), (q, k, v), out, lse, p = heads(2, h, h, seq, seq, d, causal)
    do64, do = as_type(rng.standard_normal(out.shape), "bf16")
    delta = (out * do64).sum(-1)
    ds = p * (do64 @ v64.transpose(0, 1, 3, 2) - delta[..., None]) * d ** -0.5
    t = lambda x: x.transpose(0, 1, 3, 2)  # noqa: E731
    values = dict(q_ptr=q, k_ptr=k, v_ptr=v, dout_ptr=do, lse_ptr=lse.astype(np.float32), delta_ptr=delta.astype(np.float32), cu_q_ptr="None",
                  cu_k_ptr="None", scale=d ** -0.5, seq_q=seq, seq_k=seq, rows_q=2 * seq, q_batch=h * seq * d, q_head=seq * d, q_row=d,
                  k_batch=h * seq * d, k_head=seq * d, k_row=d, heads=h, kv_heads=h, HEAD_DIM=d, CAUSAL=causal, BLOCK_M=bm, BLOCK_N=bn)
    empty = as_type(np.zeros(out.shape), "bf16")[1]
    run("attention_backward.py:attention_backward_kv_kernel", [cdiv(seq, bn), 2 * h],
        dict(values, dk_ptr=empty, dv_ptr=empty, dq_sum_ptr=np.zeros(out.shape, np.float32)),
        dict(dk_ptr=t(ds) @ q64, dv_ptr=t(p) @ do64, dq_sum_ptr=ds @ k64), 1e-2, [PRODUCER], 8, 2)
    run("attention_backward.py:attention_backward_q_kernel", [cdiv(seq, bm), 2 * h], dict(values, dq_ptr=empty), dict(dq_ptr=ds @ k64), 1e-2, [],
        8, 1)


for style in ("pointer", "wrapped", "block_ptr", "descriptor", "persistent"):
    case(f"matmul {style}, 128 x 128 x 64", matmul, style, (128, 128, 64), 8)
    case(f"matmul {style}, 64 x 64 x 64, four warps", matmul, style, (64, 64, 64), 4)
case("gemm, batches, bias, silu, residual, b by rows", gemm, "bf16", "row", True)
case("gemm, batches, bias, silu, residual, b by columns", gemm, "f16", "col", True)
case("scaled e4m3", scaled, "f8e4m3")
case("scaled int8", scaled, "i8")
case("grouped 100, 0, 1, 70", grouped, [100, 0, 1, 70])
case("attention", attention, "attention", 2, 1, 144, 64, True, (128, 64), 8)
case("attention descriptor", attention, "attention_descriptor", 2, 2, 144, 64, True, (64, 64))
case("attention descriptor, 8 warps", attention, "attention_descriptor", 2, 1, 300, 64, True, (128, 128), 8)
case("attention descriptor, full, 8 warps", attention, "attention_descriptor", 2, 1, 200, 128, False, (128, 64), 8)
case("attention with strides", attention, "attention_varlen", 2, 1, 144, 64, True, (128, 64), 8)
case("backward causal", backward, 144, 64, True, (64, 128))
finish()
