"""Flash attention, backward: causal, grouped heads, dense or packed sequences, with the strides of attention_varlen.py.

Probabilities are made again from lse; with delta = rowsum(dout * out) and dP = dout v^T:
    dV = P^T dout,  dS = P * (dP - delta),  dK = scale dS^T q,  dQ = scale dS k
Two ways. In a fixed order: attention_delta_kernel, attention_backward_kv_kernel, attention_backward_q_kernel; seven products a pair of
blocks, bitwise the same in every run. Fused: attention_delta_kernel, then attention_backward_kv_kernel with dq_sum_ptr, an f32 tensor
of zeros with the strides of q, to which each block of keys adds its part of dQ; five products, sums in any order.

    attention_delta_kernel[(cdiv(seq_q, 128), batch * heads)](out, dout, delta, ...)
    attention_backward_kv_kernel[(cdiv(seq_k, 128), batch * kv_heads)](q, k, v, dout, lse, delta, dk, dv, None, ...)
    attention_backward_q_kernel[(cdiv(seq_q, 128), batch * heads)](q, k, v, dout, lse, delta, dq, ...)
"""
import triton
import triton.language as tl

from attention_varlen import lse_offset, sequence


@triton.jit
def attention_delta_kernel(out_ptr, dout_ptr, delta_ptr, cu_q_ptr, seq_q, rows_q, q_batch, q_head, q_row, heads, HEAD_DIM: tl.constexpr,
                           BLOCK_M: tl.constexpr):
    """delta = rowsum(dout * out), f32 [batch, heads, seq_q] or, packed, [heads, rows_q]. Grid: (cdiv(seq_q, BLOCK_M), batch * heads)."""
    batch_head = tl.program_id(1)
    batch = (batch_head // heads).to(tl.int64)
    head = batch_head % heads
    q_first, len_q = sequence(cu_q_ptr, batch, seq_q, q_batch, q_row)
    first = tl.program_id(0) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    block = tl.arange(0, BLOCK_M)[:, None] * q_row + tl.arange(0, HEAD_DIM)[None, :]
    offsets = q_first + head * q_head + first.to(tl.int64) * q_row + block
    ok = rows[:, None] < len_q
    out = tl.load(out_ptr + offsets, mask=ok, other=0.0).to(tl.float32)
    dout = tl.load(dout_ptr + offsets, mask=ok, other=0.0).to(tl.float32)
    delta = tl.sum(out * dout, axis=1)
    tl.store(delta_ptr + lse_offset(cu_q_ptr, batch, head, heads, seq_q, rows_q) + rows, delta, mask=rows < len_q)


@triton.jit
def kv_step(dk, dv, k, v, q_ptr, dout_ptr, lse_ptr, delta_ptr, dq_sum_ptr, cols, begin, end, len_q, len_k, shift, scale, q_row,
            HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr):
    """Adds what the queries begin .. end - 1 of one head give to dk (not yet scaled) and dv of this block of keys."""
    log2e = 1.4426950408889634
    block = tl.arange(0, BLOCK_M)[:, None] * q_row + tl.arange(0, HEAD_DIM)[None, :]
    for start in range(begin, end, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        ok = rows < len_q
        at = tl.cast(start, tl.int64) * q_row
        q = tl.load(q_ptr + at + block, mask=ok[:, None], other=0.0)
        scores = tl.dot(k, tl.trans(q), input_precision="ieee")
        # A query beyond the end has a probability of 2^0, but a dout and a delta of zeros: it adds nothing, and needs no mask.
        lse = tl.load(lse_ptr + rows, mask=ok, other=0.0) * log2e
        p = tl.exp2(scores * (scale * log2e) - lse[None, :])
        if MASKED:
            visible = cols[:, None] < len_k
            if CAUSAL:
                visible = visible & (cols[:, None] <= rows[None, :] + shift)
            p = tl.where(visible, p, 0.0)
        dout = tl.load(dout_ptr + at + block, mask=ok[:, None], other=0.0)
        dv = tl.dot(p.to(dout.dtype), dout, dv, input_precision="ieee")
        dp = tl.dot(v, tl.trans(dout), input_precision="ieee")
        delta = tl.load(delta_ptr + rows, mask=ok, other=0.0)
        ds = (p * (dp - delta[None, :])).to(q.dtype)
        dk = tl.dot(ds, q, dk, input_precision="ieee")
        if dq_sum_ptr is not None:
            dq = tl.dot(tl.trans(ds), k, input_precision="ieee") * scale
            tl.atomic_add(dq_sum_ptr + at + block, dq, mask=ok[:, None], sem="relaxed")
    return dk, dv


@triton.jit
def attention_backward_kv_kernel(q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, dq_sum_ptr, cu_q_ptr, cu_k_ptr,
                                 scale, seq_q, seq_k, rows_q, q_batch, q_head, q_row, k_batch, k_head, k_row, heads, kv_heads,
                                 HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """dk, dv of a block of keys, summed over the query heads that share it; dk, dv with the strides of k, dout with those of q.
    Grid: (cdiv(seq_k, BLOCK_N), batch * kv_heads)."""
    batch_head = tl.program_id(1)
    batch = (batch_head // kv_heads).to(tl.int64)
    kv_head = batch_head % kv_heads
    group = heads // kv_heads
    q_first, len_q = sequence(cu_q_ptr, batch, seq_q, q_batch, q_row)
    k_first, len_k = sequence(cu_k_ptr, batch, seq_k, k_batch, k_row)
    first = tl.program_id(0) * BLOCK_N
    if first < len_k:
        cols = first + tl.arange(0, BLOCK_N)
        dims = tl.arange(0, HEAD_DIM)
        offsets = k_first + kv_head * k_head + first.to(tl.int64) * k_row + (tl.arange(0, BLOCK_N)[:, None] * k_row + dims[None, :])
        ok = cols[:, None] < len_k
        k = tl.load(k_ptr + offsets, mask=ok, other=0.0)
        v = tl.load(v_ptr + offsets, mask=ok, other=0.0)
        dk = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
        dv = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
        shift = len_k - len_q
        # Queries from `begin` see a key of the block, those from `full` see all of them: no mask. A block of keys that sticks out is
        # masked for all queries.
        begin = 0
        full = 0
        if CAUSAL:
            begin = max(first - shift, 0) // BLOCK_M * BLOCK_M
            full = tl.cdiv(max(first + BLOCK_N - 1 - shift, 0), BLOCK_M) * BLOCK_M
        if first + BLOCK_N > len_k:
            full = len_q
        full = max(min(full, len_q), begin)
        for member in range(0, group):
            head = kv_head * group + member
            q_base = q_first + head * q_head
            row_base = lse_offset(cu_q_ptr, batch, head, heads, seq_q, rows_q)
            dq_base = None
            if dq_sum_ptr is not None:
                dq_base = dq_sum_ptr + q_base
            dk, dv = kv_step(dk, dv, k, v, q_ptr + q_base, dout_ptr + q_base, lse_ptr + row_base, delta_ptr + row_base, dq_base, cols,
                             begin, full, len_q, len_k, shift, scale, q_row, HEAD_DIM, BLOCK_M, True, CAUSAL)
            dk, dv = kv_step(dk, dv, k, v, q_ptr + q_base, dout_ptr + q_base, lse_ptr + row_base, delta_ptr + row_base, dq_base, cols,
                             full, len_q, len_q, len_k, shift, scale, q_row, HEAD_DIM, BLOCK_M, False, CAUSAL)
        tl.store(dk_ptr + offsets, (dk * scale).to(dk_ptr.dtype.element_ty), mask=ok)
        tl.store(dv_ptr + offsets, dv.to(dv_ptr.dtype.element_ty), mask=ok)


@triton.jit
def q_step(dq, q, dout, lse, delta, k_ptr, v_ptr, rows, begin, end, len_k, shift, scale, k_row, HEAD_DIM: tl.constexpr,
           BLOCK_N: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr):
    """Adds what the keys begin .. end - 1 give to dq (not yet scaled); lse is in base 2."""
    log2e = 1.4426950408889634
    block = tl.arange(0, BLOCK_N)[:, None] * k_row + tl.arange(0, HEAD_DIM)[None, :]
    for start in range(begin, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        at = tl.cast(start, tl.int64) * k_row
        k = tl.load(k_ptr + at + block, mask=cols[:, None] < len_k, other=0.0)
        v = tl.load(v_ptr + at + block, mask=cols[:, None] < len_k, other=0.0)
        p = tl.exp2(tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * log2e) - lse[:, None])
        if MASKED:
            visible = cols[None, :] < len_k
            if CAUSAL:
                visible = visible & (cols[None, :] <= rows[:, None] + shift)
            p = tl.where(visible, p, 0.0)
        dp = tl.dot(dout, tl.trans(v), input_precision="ieee")
        ds = (p * (dp - delta[:, None])).to(k.dtype)
        dq = tl.dot(ds, k, dq, input_precision="ieee")
    return dq


@triton.jit
def attention_backward_q_kernel(q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, cu_q_ptr, cu_k_ptr, scale, seq_q, seq_k,
                                rows_q, q_batch, q_head, q_row, k_batch, k_head, k_row, heads, kv_heads, HEAD_DIM: tl.constexpr,
                                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """dq of a block of queries. Grid: (cdiv(seq_q, BLOCK_M), batch * heads)."""
    batch_head = tl.program_id(1)
    batch = (batch_head // heads).to(tl.int64)
    head = batch_head % heads
    q_first, len_q = sequence(cu_q_ptr, batch, seq_q, q_batch, q_row)
    k_first, len_k = sequence(cu_k_ptr, batch, seq_k, k_batch, k_row)
    first = tl.program_id(0) * BLOCK_M
    if first < len_q:
        rows = first + tl.arange(0, BLOCK_M)
        dims = tl.arange(0, HEAD_DIM)
        offsets = q_first + head * q_head + first.to(tl.int64) * q_row + (tl.arange(0, BLOCK_M)[:, None] * q_row + dims[None, :])
        ok = rows[:, None] < len_q
        q = tl.load(q_ptr + offsets, mask=ok, other=0.0)
        dout = tl.load(dout_ptr + offsets, mask=ok, other=0.0)
        row_base = lse_offset(cu_q_ptr, batch, head, heads, seq_q, rows_q)
        lse = tl.load(lse_ptr + row_base + rows, mask=rows < len_q, other=float("inf")) * 1.4426950408889634
        delta = tl.load(delta_ptr + row_base + rows, mask=rows < len_q, other=0.0)
        kv = k_first + head // (heads // kv_heads) * k_head
        shift = len_k - len_q
        end = len_k
        full = len_k
        if CAUSAL:
            end = max(min(len_k, first + BLOCK_M + shift), 0)
            full = max(min(len_k, first + 1 + shift), 0)
        full = full // BLOCK_N * BLOCK_N
        dq = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
        dq = q_step(dq, q, dout, lse, delta, k_ptr + kv, v_ptr + kv, rows, 0, full, len_k, shift, scale, k_row, HEAD_DIM, BLOCK_N,
                    False, CAUSAL)
        dq = q_step(dq, q, dout, lse, delta, k_ptr + kv, v_ptr + kv, rows, full, end, len_k, shift, scale, k_row, HEAD_DIM,
                    BLOCK_N, True, CAUSAL)
        tl.store(dq_ptr + offsets, (dq * scale).to(dq_ptr.dtype.element_ty), mask=ok)
