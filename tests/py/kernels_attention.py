"""Attention of the library: any strides, packed sequences, descriptors, backward in both ways, decoding from a cache. TIMEOUT: 300"""
import numpy as np

from _attention import Problem, reference, rng
from _ditron import case, finish
from _library import as_type, both, cdiv, pow2

BOUND = {"f32": 1e-5, "f16": 3e-3, "bf16": 2e-2}


def finite(x):
    """Where queries see nothing, lse is compared as a large negative number: norms need finite ones."""
    return np.where(np.isinf(x), -1e4, x)


def forward(lens_q, lens_k, heads, kv_heads, d, causal, dtype="f32", layout="packed", blocks=(32, 16)):
    p = Problem(lens_q, lens_k, heads, kv_heads, d, causal, dtype, layout)
    out, lse = p.references()
    values = dict(p.values(), out_ptr=p.like(p.q, 5.0), lse_ptr=np.full(lse.shape, np.nan, np.float32), BLOCK_M=blocks[0], BLOCK_N=blocks[1])
    seen_everything = not np.isinf(lse).any()
    got = both("attention_varlen.py:attention_varlen_kernel", [cdiv(max(lens_q), blocks[0]), len(lens_q) * heads], values,
               ["out_ptr", "lse_ptr"], dict(out_ptr=out, **(dict(lse_ptr=lse) if seen_everything else {})), BOUND[dtype])
    for mode, result in got.items():
        np.testing.assert_array_equal(np.isinf(result["lse_ptr"]), np.isinf(lse), err_msg=mode)
        np.testing.assert_allclose(finite(result["lse_ptr"]), finite(lse), rtol=1e-3, atol=1e-2, err_msg=mode)


def backward(lens_q, lens_k, heads, kv_heads, d, causal, dtype="f32", layout="packed", blocks=(32, 32)):
    p = Problem(lens_q, lens_k, heads, kv_heads, d, causal, dtype, layout)
    out, lse, delta, dq, dk, dv = p.references(backward=True)
    bm, bn = blocks
    common = p.values()
    out_arg = as_type(np.ascontiguousarray(out), "f32")[1]
    grid_q, grid_k = [cdiv(max(lens_q), bm), len(lens_q) * heads], [cdiv(max(lens_k), bn), len(lens_k) * kv_heads]
    dout_arg = p.dout[1]
    f32 = np.float32
    both("attention_backward.py:attention_delta_kernel", grid_q,
         dict({n: common[n] for n in ("cu_q_ptr", "seq_q", "rows_q", "q_batch", "q_head", "q_row", "heads", "HEAD_DIM")}, out_ptr=out_arg,
              dout_ptr=dout_arg, delta_ptr=np.zeros(delta.shape, f32), BLOCK_M=bm), ["delta_ptr"], dict(delta_ptr=delta), 1e-5)
    common.update(dout_ptr=dout_arg, lse_ptr=np.ascontiguousarray(lse, f32), delta_ptr=np.ascontiguousarray(delta, f32), BLOCK_M=bm, BLOCK_N=bn)
    name = "attention_backward.py:attention_backward_kv_kernel"
    kv = dict(common, dk_ptr=p.like(p.k, 7.0), dv_ptr=p.like(p.k, 7.0))
    both(name, grid_k, dict(kv, dq_sum_ptr="None"), ["dk_ptr", "dv_ptr"], dict(dk_ptr=dk, dv_ptr=dv), BOUND[dtype])
    both(name, grid_k, dict(kv, dq_sum_ptr=p.like(p.q, 0.0, "f32")), ["dk_ptr", "dv_ptr", "dq_sum_ptr"],
         dict(dk_ptr=dk, dv_ptr=dv, dq_sum_ptr=dq), BOUND[dtype])
    both("attention_backward.py:attention_backward_q_kernel", grid_q, dict(common, dq_ptr=p.like(p.q, 7.0)), ["dq_ptr"], dict(dq_ptr=dq),
         BOUND[dtype])


def descriptor(batch, heads, kv_heads, sq, sk, d, causal, dtype="f32", blocks=(32, 16)):
    q64, q = as_type(rng.standard_normal((batch * heads, sq, d)), dtype)
    (k64, k), (v64, v) = (as_type(rng.standard_normal((batch * kv_heads, sk, d)), dtype) for _ in range(2))
    at = [b * kv_heads + h // (heads // kv_heads) for b in range(batch) for h in range(heads)]
    both_of = [reference(q64[i], k64[j], v64[j], d ** -0.5, causal, shift=0) for i, j in enumerate(at)]
    bm, bn = blocks
    desc = lambda x, rows: ("desc", x[0], (1, rows, d), x[1])  # noqa: E731
    values = dict(q_desc=desc(q, bm), k_desc=desc(k, bn), v_desc=desc(v, bn), out_desc=desc(as_type(np.zeros_like(q64), dtype)[1], bm),
                  lse_ptr=np.zeros((batch * heads, sq), np.float32), scale=float(d ** -0.5), batch_heads=batch * heads, seq_q=sq,
                  seq_k=sk, heads=heads, kv_heads=kv_heads, HEAD_DIM=d, BLOCK_M=bm, BLOCK_N=bn, CAUSAL=causal)
    want = dict(out_desc=np.stack([o for o, _ in both_of]), lse_ptr=np.stack([x for _, x in both_of]))
    for grid in (1, 3, cdiv(sq, bm) * batch * heads + 1):
        both("attention_descriptor.py:attention_descriptor_kernel", [grid], values, ["out_desc", "lse_ptr"], want, BOUND[dtype])


def decode(lens, heads, kv_heads, d, page=0, splits=4, block_n=16, dtype="f32"):
    batch = len(lens)
    q64, q = as_type(rng.standard_normal((batch, heads, d)), dtype)
    per_seq = cdiv(max(lens), page) if page else 1
    size = page or max(lens)
    pages = batch * per_seq + 1
    (k64, k), (v64, v) = (as_type(rng.standard_normal((pages, size, kv_heads, d)), dtype) for _ in range(2))
    table = rng.permutation(pages)[:batch * per_seq].reshape(batch, per_seq).astype(np.int32) if page else np.arange(batch)[:, None]
    group = heads // kv_heads
    out, lse = np.zeros((batch, heads, d)), np.zeros((batch, heads))
    for b, n in enumerate(lens):
        keys, vals = (x[table[b]].reshape(-1, kv_heads, d)[:n] for x in (k64, v64))
        for h in range(heads):
            o, s = reference(q64[b, h][None], keys[:, h // group], vals[:, h // group], d ** -0.5, False)
            out[b, h], lse[b, h] = o[0], s[0]
    got = both("decode.py:decode_split_kernel", [splits, kv_heads, batch],
               dict(q_ptr=q, k_ptr=k, v_ptr=v, partial_ptr=np.full((batch, heads, splits, d), np.nan, np.float32),
                    partial_lse_ptr=np.full((batch, heads, splits), np.nan, np.float32), block_table_ptr=table if page else "None",
                    seq_lens_ptr=np.asarray(lens, np.int32), scale=float(d ** -0.5), table_stride=per_seq, q_batch=heads * d, q_head=d,
                    k_page=size * kv_heads * d, k_row=kv_heads * d, k_head=d, heads=heads, kv_heads=kv_heads, HEAD_DIM=d,
                    GROUP=pow2(group), PAGE=page, BLOCK_N=block_n, SPLITS=splits), ["partial_ptr", "partial_lse_ptr"], {}, 0)
    for mode, result in got.items():
        if splits == 1:  # there is nothing to combine
            np.testing.assert_allclose(result["partial_ptr"][:, :, 0], out, rtol=BOUND[dtype], atol=BOUND[dtype], err_msg=mode)
            np.testing.assert_allclose(finite(result["partial_lse_ptr"][:, :, 0]), finite(lse), rtol=1e-3, atol=1e-2, err_msg=mode)
            continue
        after = both("decode.py:decode_combine_kernel", [batch * heads],
                     dict(partial_ptr=result["partial_ptr"], partial_lse_ptr=result["partial_lse_ptr"],
                          out_ptr=as_type(np.full((batch, heads, d), 3.0), dtype)[1], lse_ptr=np.zeros((batch, heads), np.float32), HEAD_DIM=d,
                          SPLITS=splits), ["out_ptr", "lse_ptr"], dict(out_ptr=out), BOUND[dtype])
        for how, last in after.items():
            np.testing.assert_allclose(finite(last["lse_ptr"]), finite(lse), rtol=1e-3, atol=1e-2, err_msg=how)


case("forward dense bhsd", forward, [40, 40], [50, 50], 2, 1, 16, False, layout="bhsd")
case("forward dense bshd causal f16", forward, [70], [70], 4, 2, 32, True, "f16", "bshd")
case("forward causal, more queries than keys", forward, [50], [20], 1, 1, 16, True, layout="bhsd")
case("forward packed 33, 1, 0, 64", forward, [33, 1, 0, 64], [40, 70, 5, 64], 2, 1, 16, False)
case("forward dense, no keys", forward, [20], [0], 1, 1, 16, False, layout="bhsd")
case("forward packed causal bf16", forward, [1, 45, 32], [65, 45, 0], 2, 2, 16, True, "bf16")
case("descriptor full", descriptor, 2, 2, 1, 40, 50, 16, False)
case("descriptor causal, f16", descriptor, 1, 4, 2, 65, 65, 32, True, "f16")
case("descriptor causal, fewer keys", descriptor, 1, 1, 1, 70, 33, 16, True)
case("descriptor causal, blocks of many keys", descriptor, 1, 3, 1, 50, 90, 16, True, "f32", (16, 32))
case("descriptor causal, blocks of few keys", descriptor, 1, 2, 2, 75, 75, 16, True, "f32", (64, 16))
case("descriptor causal, blocks of few keys, fewer keys", descriptor, 1, 1, 1, 75, 20, 16, True, "f32", (64, 16))
case("descriptor, one key", descriptor, 1, 2, 1, 33, 1, 16, True)
case("backward dense", backward, [40, 40], [50, 50], 2, 1, 16, False, layout="bhsd")
case("backward causal bshd, f16", backward, [70], [70], 4, 2, 32, True, "f16", "bshd")
case("backward packed causal", backward, [33, 1, 0, 64], [33, 40, 5, 30], 2, 1, 16, True, blocks=(16, 32))
case("backward packed, bf16", backward, [20, 65], [70, 33], 1, 1, 16, False, "bf16", blocks=(32, 16))
case("decode one long cache", decode, [70, 33], 4, 2, 16)
case("decode pages of 16, empty sequence", decode, [50, 0, 1], 4, 1, 32, page=16, dtype="f16")
case("decode pages of 5", decode, [23, 64], 2, 2, 16, page=5, splits=2, dtype="bf16")
case("decode pages of 32, one split", decode, [33], 20, 1, 16, page=32, splits=1)
finish()
