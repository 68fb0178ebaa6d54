"""Rotary position embedding of query and key heads (Su et al., RoFormer, arXiv:2104.09864).

Pair i of a head is turned by the angle of its position: (a, b) -> (a cos - b sin, b cos + a sin). The pairs are (i, i + half) of
the first 2 * half dimensions, or (2 i, 2 i + 1) where INTERLEAVED; dimensions beyond are copied. INVERSE turns back, which is
the gradient as well.

    rope_kernel[(tokens, cdiv(heads, 8))](x, x, cos, sin, positions, heads, HEAD_DIM - 2 * half, half, *x.stride()[:2],
                *x.stride()[:2], cos.stride(0), BLOCK_H=8, BLOCK_HALF=64, BLOCK_REST=0)
"""
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, out_ptr, cos_ptr, sin_ptr, positions_ptr, heads, rest, half, stride_xt, stride_xh, stride_ot, stride_oh,
                stride_angle, BLOCK_H: tl.constexpr, BLOCK_HALF: tl.constexpr, BLOCK_REST: tl.constexpr,
                INTERLEAVED: tl.constexpr = False, INVERSE: tl.constexpr = False):
    """x, out [tokens, heads, 2 * half + rest], may be the same; cos, sin [positions, half]; positions: i32 or i64[tokens], or
    None where token t has position t. BLOCK_HALF: a power of two, at least half; BLOCK_REST: likewise for rest, or 0 where
    there is none. Grid: (tokens, cdiv(heads, BLOCK_H))."""
    token = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    position = token
    if positions_ptr is not None:
        position = tl.load(positions_ptr + token).to(tl.int64)
    i = tl.arange(0, BLOCK_HALF)
    cos = tl.load(cos_ptr + position * stride_angle + i, mask=i < half, other=0.0).to(tl.float32)[None, :]
    sin = tl.load(sin_ptr + position * stride_angle + i, mask=i < half, other=0.0).to(tl.float32)[None, :]
    if INVERSE:
        sin = -sin
    if INTERLEAVED:
        first = 2 * i
        second = 2 * i + 1
    else:
        first = i
        second = i + half
    mask = (h[:, None] < heads) & (i[None, :] < half)
    x_ptrs = x_ptr + token * stride_xt + h[:, None] * stride_xh
    out_ptrs = out_ptr + token * stride_ot + h[:, None] * stride_oh
    a = tl.load(x_ptrs + first[None, :], mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptrs + second[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptrs + first[None, :], (a * cos - b * sin).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptrs + second[None, :], (b * cos + a * sin).to(out_ptr.dtype.element_ty), mask=mask)
    if BLOCK_REST > 0:
        r = tl.arange(0, BLOCK_REST)
        mask = (h[:, None] < heads) & (r[None, :] < rest)
        x = tl.load(x_ptrs + 2 * half + r[None, :], mask=mask, other=0.0)
        tl.store(out_ptrs + 2 * half + r[None, :], x.to(out_ptr.dtype.element_ty), mask=mask)
