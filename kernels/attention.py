"""Flash attention, forward: online softmax over blocks of keys (Dao et al., FlashAttention-2, arXiv:2307.08691)."""
import triton
import triton.language as tl


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, scale, seq_q, seq_k, heads, kv_heads, HEAD_DIM: tl.constexpr,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """out = softmax(q k^T * scale) v for q, out [batch, heads, seq_q, HEAD_DIM] and k, v [batch, kv_heads, seq_k, HEAD_DIM],
    contiguous; lse [batch, heads, seq_q] f32 is the natural log of the row sums; scale > 0. CAUSAL: query i sees keys 0..i.
    Grid: (cdiv(seq_q, BLOCK_M), batch * heads)."""
    block_m = tl.program_id(0)
    batch_head = tl.program_id(1).to(tl.int64)
    batch = batch_head // heads
    kv_head = (batch_head % heads) // (heads // kv_heads)
    q_base = q_ptr + batch_head * seq_q * HEAD_DIM
    kv_offset = (batch * kv_heads + kv_head) * seq_k * HEAD_DIM
    k_base = k_ptr + kv_offset
    v_base = v_ptr + kv_offset
    rows = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    row_ok = rows[:, None] < seq_q
    q = tl.load(q_base + rows[:, None] * HEAD_DIM + dims[None, :], mask=row_ok, other=0.0)
    row_max = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    log2e = 1.4426950408889634
    end = seq_k
    if CAUSAL:
        end = min(seq_k, (block_m + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        col_ok = cols[None, :] < seq_k
        k = tl.load(k_base + cols[:, None] * HEAD_DIM + dims[None, :], mask=cols[:, None] < seq_k, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        if CAUSAL:
            visible = col_ok & (rows[:, None] >= cols[None, :])
        else:
            visible = col_ok & row_ok
        scores = tl.where(visible, scores, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=1) * (scale * log2e))
        # A row that sees no key yet keeps -inf; exp2 of -inf - 0 is 0, never NaN.
        safe_max = tl.where(new_max == float("-inf"), 0.0, new_max)
        p = tl.exp2(scores * (scale * log2e) - safe_max[:, None])
        alpha = tl.exp2(row_max - safe_max)
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        v = tl.load(v_base + cols[:, None] * HEAD_DIM + dims[None, :], mask=cols[:, None] < seq_k, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        row_max = new_max
    seen = row_sum > 0.0
    denominator = tl.where(seen, row_sum, 1.0)
    out = acc * (1.0 / denominator)[:, None]
    out_ptrs = out_ptr + batch_head * seq_q * HEAD_DIM + rows[:, None] * HEAD_DIM + dims[None, :]
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=row_ok)
    lse = tl.where(seen, (row_max + tl.log2(denominator)) / log2e, float("-inf"))
    tl.store(lse_ptr + batch_head * seq_q + rows, lse, mask=rows < seq_q)
