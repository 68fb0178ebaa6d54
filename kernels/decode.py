"""Flash decode: attention of one new query a sequence over a long cache of keys and values, which several instances share.

q, out [batch, heads, D]; the cache in pages of PAGE keys, k, v [pages, PAGE, kv_heads, D] by strides, and block_table
i32[batch, table_stride] that says which pages a sequence has, in order; without a table (None) page b is the whole cache of sequence
b, of any length, and PAGE is 0. seq_lens: i32[batch] keys of each sequence, 0 allowed. Heads that share keys are rows of one
product.

    decode_split_kernel[(SPLITS, kv_heads, batch)](q, k, v, partial, partial_lse, table, lens, ...)
    decode_combine_kernel[(batch * heads,)](partial, partial_lse, out, lse, SPLITS=SPLITS, HEAD_DIM=128)

With SPLITS=1, which is best where batch * kv_heads fills the device, there is nothing to combine: out and lse themselves take the places
of partial and partial_lse.
"""
import triton
import triton.language as tl


@triton.jit
def decode_split_kernel(q_ptr, k_ptr, v_ptr, partial_ptr, partial_lse_ptr, block_table_ptr, seq_lens_ptr, scale, table_stride, q_batch,
                        q_head, k_page, k_row, k_head, heads, kv_heads, HEAD_DIM: tl.constexpr, GROUP: tl.constexpr,
                        PAGE: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr):
    """The share of split program_id(0): partial [batch * heads, SPLITS, D], f32 or, where SPLITS is 1, of out's type, and the base-2 log
    of its sums, partial_lse f32[batch * heads, SPLITS], -inf for an empty share; the natural log where SPLITS is 1. GROUP: a power of
    two, at least 16 and heads // kv_heads. Grid: (SPLITS, kv_heads, batch)."""
    split = tl.program_id(0)
    kv_head = tl.program_id(1)
    batch = tl.program_id(2).to(tl.int64)
    group = heads // kv_heads
    length = tl.load(seq_lens_ptr + batch)
    share = tl.cdiv(tl.cdiv(length, BLOCK_N), SPLITS) * BLOCK_N
    begin = min(split * share, length)
    end = min(begin + share, length)
    member = tl.arange(0, GROUP)
    dims = tl.arange(0, HEAD_DIM)
    head = kv_head * group + member
    member_ok = member < group
    q = tl.load(q_ptr + batch * q_batch + head[:, None] * q_head + dims[None, :], mask=member_ok[:, None], other=0.0)
    row_max = tl.full((GROUP,), float("-inf"), dtype=tl.float32)
    row_sum = tl.zeros((GROUP,), dtype=tl.float32)
    acc = tl.zeros((GROUP, HEAD_DIM), dtype=tl.float32)
    for start in range(begin, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        col_ok = cols < end
        if block_table_ptr is None:
            first = batch * k_page + tl.cast(start, tl.int64) * k_row
            offsets = tl.arange(0, BLOCK_N) * k_row
        elif PAGE % BLOCK_N == 0:
            page = tl.load(block_table_ptr + batch * table_stride + start // PAGE).to(tl.int64)
            first = page * k_page + start % PAGE * k_row
            offsets = tl.arange(0, BLOCK_N) * k_row
        else:
            page = tl.load(block_table_ptr + batch * table_stride + cols // PAGE, mask=col_ok, other=0).to(tl.int64)
            first = tl.cast(start, tl.int64) * 0
            offsets = page * k_page + (cols % PAGE) * k_row
        first += kv_head * k_head
        offsets = offsets[:, None] + dims[None, :]
        k = tl.load(k_ptr + first + offsets, mask=col_ok[:, None], other=0.0).to(q.dtype)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * 1.4426950408889634)
        scores = tl.where(col_ok[None, :], scores, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=1))
        p = tl.exp2(scores - new_max[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, axis=1)
        v = tl.load(v_ptr + first + offsets, mask=col_ok[:, None], other=0.0).to(q.dtype)
        acc = tl.dot(p.to(q.dtype), v, acc * alpha[:, None], input_precision="ieee")
        row_max = new_max
    seen = row_sum > 0.0
    denominator = tl.where(seen, row_sum, 1.0)
    slot = (batch * heads + head) * SPLITS + split
    out = (acc * (1.0 / denominator)[:, None]).to(partial_ptr.dtype.element_ty)
    tl.store(partial_ptr + slot[:, None] * HEAD_DIM + dims[None, :], out, mask=member_ok[:, None])
    lse = tl.where(seen, row_max + tl.log2(denominator), float("-inf"))
    if SPLITS == 1:
        lse *= 0.6931471805599453
    tl.store(partial_lse_ptr + slot, lse, mask=member_ok)


@triton.jit
def decode_combine_kernel(partial_ptr, partial_lse_ptr, out_ptr, lse_ptr, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr):
    """out [batch, heads, D] from the shares, 0 for an empty sequence; lse f32[batch * heads]: the natural log of the sums.
    SPLITS: a power of two. Grid: batch * heads."""
    row = tl.program_id(0).to(tl.int64)
    splits = tl.arange(0, SPLITS)
    dims = tl.arange(0, HEAD_DIM)
    lse = tl.load(partial_lse_ptr + row * SPLITS + splits)
    top = tl.max(lse, axis=0)
    weight = tl.exp2(lse - tl.where(top == float("-inf"), 0.0, top))
    total = tl.sum(weight, axis=0)
    partial = tl.load(partial_ptr + (row * SPLITS + splits[:, None]) * HEAD_DIM + dims[None, :])
    out = tl.sum(partial * weight[:, None], axis=0) / tl.where(total > 0.0, total, 1.0)
    tl.store(out_ptr + row * HEAD_DIM + dims, out.to(out_ptr.dtype.element_ty))
    tl.store(lse_ptr + row, (top + tl.log2(total)) * 0.6931471805599453)
