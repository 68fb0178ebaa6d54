"""Flash attention, forward, by tensor descriptors: q, out [batch * heads, seq_q, D], k, v [batch * kv_heads, seq_k, D], in blocks of
[1, BLOCK_M, D] and [1, BLOCK_N, D] that the memory engine of a GPU copies (what lies outside of the tensor reads 0, and is not
written).
"""
import triton
import triton.language as tl

from tile_order import snake_tile, snake_turns


@triton.jit
def visible_keys(rows, start, seq_k, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """Which of the keys start .. start + BLOCK_N - 1 each of the rows sees."""
    cols = start + tl.arange(0, BLOCK_N)
    end = tl.minimum(rows + 1, seq_k) if CAUSAL else rows * 0 + seq_k
    return (cols[None, :] >= 0) & (cols[None, :] < end[:, None])


@triton.jit
def add_keys(scores, row_max, row_sum, scale, SEEN: tl.constexpr):
    """The softmax so far and a block of scores more: its weights, what those before are multiplied by, the sums of both and the new row
    maxima (base 2). SEEN: every row has seen a key."""
    new_max = tl.maximum(row_max, tl.max(scores, axis=1) * scale)
    safe_max = new_max
    if not SEEN:
        safe_max = tl.where(new_max == float("-inf"), 0.0, new_max)
    p = tl.exp2(scores * scale - safe_max[:, None])
    alpha = tl.exp2(row_max - safe_max)
    return p, alpha, row_sum * alpha + tl.sum(p, axis=1), new_max


@triton.jit
def attention_descriptor_kernel(q_desc, k_desc, v_desc, out_desc, lse_ptr, scale, batch_heads, seq_q, seq_k, heads, kv_heads,
                                HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """out = softmax(q k^T * scale) v; lse f32[batch * heads, seq_q]: the natural log of the row sums; scale > 0. CAUSAL: query i
    sees keys 0 .. i. Persistent: each instance takes blocks of queries in turn, the next one fetched during this one; every second head
    from its first to its last block. The blocks of keys go from the last, which alone may need a mask (or the last BLOCK_M // BLOCK_N), to
    the first. Grid: any size; as many as run at once."""
    tl.assume(seq_q >= 0)
    tl.assume(seq_k >= 0)
    blocks = tl.cdiv(seq_q, BLOCK_M)
    log2e = 1.4426950408889634
    for turn in tl.range(0, snake_turns(blocks * batch_heads), num_stages=2):
        tile = snake_tile(turn)
        batch_head = tile // blocks
        block = tile % blocks
        if CAUSAL:
            block = tl.where(batch_head % 2 == 0, blocks - 1 - block, block)
        first = block * BLOCK_M
        tl.assume(first >= 0)
        tl.assume(first < 1 << 30)
        kv = batch_head // heads * kv_heads + batch_head % heads // (heads // kv_heads)
        rows = first + tl.arange(0, BLOCK_M)
        end = seq_k
        if CAUSAL:
            end = min(first + BLOCK_M, seq_k)
        last = tl.maximum(end - 1, 0) // BLOCK_N * BLOCK_N
        q = q_desc.load([batch_head, first, 0]).reshape(BLOCK_M, HEAD_DIM)
        k = k_desc.load([kv, last, 0]).reshape(BLOCK_N, HEAD_DIM)
        scores = tl.dot(q, k.T, input_precision="ieee")
        scores = tl.where(visible_keys(rows, last, seq_k, BLOCK_N, CAUSAL), scores, float("-inf"))
        row_max = tl.max(scores, axis=1) * (scale * log2e)
        # A row that has seen no key keeps -inf; exp2(-inf - 0) is 0, never NaN.
        p = tl.exp2(scores * (scale * log2e) - tl.where(row_max == float("-inf"), 0.0, row_max)[:, None])
        row_sum = tl.sum(p, axis=1)
        v = v_desc.load([kv, last, 0]).reshape(BLOCK_N, HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, input_precision="ieee")
        masked: tl.constexpr = BLOCK_M // BLOCK_N if CAUSAL and BLOCK_M > BLOCK_N else 1
        for i in tl.static_range(1, masked):
            start = last - i * BLOCK_N
            k = k_desc.load([kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
            scores = tl.dot(q, k.T, input_precision="ieee")
            scores = tl.where(visible_keys(rows, start, seq_k, BLOCK_N, CAUSAL), scores, float("-inf"))
            p, alpha, row_sum, row_max = add_keys(scores, row_max, row_sum, scale * log2e, False)
            v = v_desc.load([kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
            acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        for i in range(masked, last // BLOCK_N + 1):
            start = last - i * BLOCK_N
            k = k_desc.load([kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
            scores = tl.dot(q, k.T, input_precision="ieee")
            p, alpha, row_sum, row_max = add_keys(scores, row_max, row_sum, scale * log2e, True)
            v = v_desc.load([kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
            acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        seen = row_sum > 0.0
        denominator = tl.where(seen, row_sum, 1.0)
        out = (acc * (1.0 / denominator)[:, None]).to(out_desc.dtype)
        out_desc.store([batch_head, first, 0], out.reshape(1, BLOCK_M, HEAD_DIM))
        lse = tl.where(seen, (row_max + tl.log2(denominator)) / log2e, float("-inf"))
        tl.store(lse_ptr + batch_head.to(tl.int64) * seq_q + rows, lse, mask=rows < seq_q)
