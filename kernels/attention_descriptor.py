"""Flash attention, forward, by tensor descriptors: q, out [batch * heads, seq_q, D], k, v [batch * kv_heads, seq_k, D], in blocks of
[1, BLOCK_M, D] and [1, BLOCK_N, D] that the memory engine of a GPU copies (what lies outside of the tensor reads 0, and is not
written).
"""
import triton
import triton.language as tl


@triton.jit
def attention_descriptor_kernel(q_desc, k_desc, v_desc, out_desc, lse_ptr, scale, seq_q, seq_k, heads, kv_heads,
                                HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """out = softmax(q k^T * scale) v; lse f32[batch * heads, seq_q]: the natural log of the row sums; scale > 0. CAUSAL: query i
    sees keys 0 .. i. Blocks that every query of the instance sees come first, without a mask. Grid: (cdiv(seq_q, BLOCK_M), batch * heads)."""
    block = tl.program_id(0)
    if CAUSAL:
        block = tl.num_programs(0) - 1 - block  # the longest first
    first = block * BLOCK_M
    tl.assume(first >= 0)
    tl.assume(first < 1 << 30)
    tl.assume(seq_k >= 0)
    batch_head = tl.program_id(1)
    kv = batch_head // heads * kv_heads + batch_head % heads // (heads // kv_heads)
    rows = first + tl.arange(0, BLOCK_M)
    q = q_desc.load([batch_head, first, 0]).reshape(BLOCK_M, HEAD_DIM)
    row_max = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    log2e = 1.4426950408889634
    full = seq_k // BLOCK_N * BLOCK_N
    end = seq_k
    if CAUSAL:
        full = min(first + 1, seq_k) // BLOCK_N * BLOCK_N
        end = min(first + BLOCK_M, seq_k)
    for start in range(0, full, BLOCK_N):
        k = k_desc.load([kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
        scores = tl.dot(q, k.T, input_precision="ieee")
        new_max = tl.maximum(row_max, tl.max(scores, axis=1) * (scale * log2e))
        p = tl.exp2(scores * (scale * log2e) - new_max[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        v = v_desc.load([kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        row_max = new_max
    for start in range(full, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        k = k_desc.load([kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
        scores = tl.dot(q, k.T, input_precision="ieee")
        if CAUSAL:
            visible = cols[None, :] < tl.minimum(rows + 1, seq_k)[:, None]
        else:
            visible = cols[None, :] < seq_k
        scores = tl.where(visible, scores, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=1) * (scale * log2e))
        # Each query sees key 0, which comes first: no maximum stays at -inf.
        p = tl.exp2(scores * (scale * log2e) - new_max[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        v = v_desc.load([kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        row_max = new_max
    seen = row_sum > 0.0
    denominator = tl.where(seen, row_sum, 1.0)
    out = (acc * (1.0 / denominator)[:, None]).to(out_desc.dtype)
    out_desc.store([batch_head, first, 0], out.reshape(1, BLOCK_M, HEAD_DIM))
    lse = tl.where(seen, (row_max + tl.log2(denominator)) / log2e, float("-inf"))
    tl.store(lse_ptr + batch_head.to(tl.int64) * seq_q + rows, lse, mask=rows < seq_q)
