"""Flash attention, forward, for any strides and for packed sequences of different lengths (Dao et al., arXiv:2307.08691).

Dense: q, out [batch, heads, seq_q, D], k, v [batch, kv_heads, seq_k, D] by strides, so [batch, seq, heads, D] does as well; cu_q_ptr
and cu_k_ptr are None. Packed: q, out [rows, heads, D], k, v [rows, kv_heads, D]; sequence b owns rows cu_q[b] to cu_q[b + 1] of q and
cu_k[b] to cu_k[b + 1] of k; batch strides are not used, seq_q is the longest query. q and out share strides, k and v do.
scale > 0. CAUSAL: the last query sees the last key: query i of a sequence sees keys 0 .. i + len_k - len_q.

Keys that a whole block of queries sees need no mask; the loop over them comes first, the one over the diagonal after it.
"""
import triton
import triton.language as tl


@triton.jit
def sequence(cu_ptr, batch, length, batch_stride, row_stride):
    """(offset of its first row, length) of a sequence."""
    if cu_ptr is None:
        return batch * batch_stride, length
    else:
        begin = tl.load(cu_ptr + batch)
        return begin.to(tl.int64) * row_stride, tl.load(cu_ptr + batch + 1) - begin


@triton.jit
def lse_offset(cu_ptr, batch, head, heads, seq, row_count):
    """Where a head's lse and delta begin: [batch, heads, seq], packed [heads, rows]."""
    if cu_ptr is None:
        return (batch * heads + head) * seq
    else:
        return head.to(tl.int64) * row_count + tl.load(cu_ptr + batch)


@triton.jit
def attend(q, acc, row_sum, row_max, k_ptr, v_ptr, rows, begin, end, len_k, shift, scale, k_row, HEAD_DIM: tl.constexpr,
           BLOCK_N: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr):
    """The online softmax of keys begin .. end - 1, a multiple of BLOCK_N apart unless MASKED; scale is in base 2."""
    block = tl.arange(0, BLOCK_N)[:, None] * k_row + tl.arange(0, HEAD_DIM)[None, :]
    for start in range(begin, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        at = tl.cast(start, tl.int64) * k_row
        k = tl.load(k_ptr + at + block, mask=cols[:, None] < len_k, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        if MASKED:
            if CAUSAL:
                visible = cols[None, :] < tl.minimum(rows + shift + 1, len_k)[:, None]
            else:
                visible = cols[None, :] < len_k
            scores = tl.where(visible, scores, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=1) * scale)
        # A row that sees no key yet keeps -inf; exp2 of -inf - 0 is 0, never NaN.
        safe_max = tl.where(new_max == float("-inf"), 0.0, new_max) if MASKED else new_max
        p = tl.exp2(scores * scale - safe_max[:, None])
        alpha = tl.exp2(row_max - safe_max)
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + at + block, mask=cols[:, None] < len_k, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        row_max = new_max
    return acc, row_sum, row_max


@triton.jit
def attention_varlen_kernel(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, cu_q_ptr, cu_k_ptr, scale, seq_q, seq_k, rows_q, q_batch, q_head,
                            q_row, k_batch, k_head, k_row, heads, kv_heads, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                            BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """out, and lse f32 [batch, heads, seq_q] or, packed, [heads, rows_q]: the natural log of the row sums, -inf where a query sees
    no key (its out is 0). Grid: (cdiv(seq_q, BLOCK_M), batch * heads)."""
    batch_head = tl.program_id(1)
    batch = (batch_head // heads).to(tl.int64)
    head = batch_head % heads
    q_first, len_q = sequence(cu_q_ptr, batch, seq_q, q_batch, q_row)
    k_first, len_k = sequence(cu_k_ptr, batch, seq_k, k_batch, k_row)
    first = tl.program_id(0) * BLOCK_M
    if first < len_q:
        rows = first + tl.arange(0, BLOCK_M)
        dims = tl.arange(0, HEAD_DIM)
        row_ok = rows[:, None] < len_q
        q_offsets = q_first + head * q_head + first.to(tl.int64) * q_row + (tl.arange(0, BLOCK_M)[:, None] * q_row + dims[None, :])
        kv = k_first + head // (heads // kv_heads) * k_head
        q = tl.load(q_ptr + q_offsets, mask=row_ok, other=0.0)
        acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
        row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
        row_max = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
        log2e = 1.4426950408889634
        shift = len_k - len_q
        end = len_k
        full = len_k
        if CAUSAL:
            end = max(min(len_k, first + BLOCK_M + shift), 0)
            full = max(min(len_k, first + 1 + shift), 0)
        full = full // BLOCK_N * BLOCK_N
        acc, row_sum, row_max = attend(q, acc, row_sum, row_max, k_ptr + kv, v_ptr + kv, rows, 0, full, len_k, shift, scale * log2e,
                                       k_row, HEAD_DIM, BLOCK_N, False, CAUSAL)
        acc, row_sum, row_max = attend(q, acc, row_sum, row_max, k_ptr + kv, v_ptr + kv, rows, full, end, len_k, shift,
                                       scale * log2e, k_row, HEAD_DIM, BLOCK_N, True, CAUSAL)
        seen = row_sum > 0.0
        denominator = tl.where(seen, row_sum, 1.0)
        out = acc * (1.0 / denominator)[:, None]
        tl.store(out_ptr + q_offsets, out.to(out_ptr.dtype.element_ty), mask=row_ok)
        lse = tl.where(seen, (row_max + tl.log2(denominator)) / log2e, float("-inf"))
        tl.store(lse_ptr + lse_offset(cu_q_ptr, batch, head, heads, seq_q, rows_q) + rows, lse, mask=rows < len_q)
