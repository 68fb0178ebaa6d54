"""Top-k and sort of rows, with the indices; ties by the smaller index, NaN above everything.

Value and column travel as one 64-bit word that orders as they do: the value's bits made monotone in the upper half, the column
in the lower, so that a sorting network on plain integers does all. Rows of f32, f16, bf16 or i32.

    topk_kernel[(rows,)](x, values, indices, x.stride(0), k, columns, K=next_power_of_2(k), BLOCK=2048)
    sort_kernel[(rows,)](x, values, indices, x.stride(0), columns, BLOCK=next_power_of_2(columns), DESCENDING=False)
"""
import triton
import triton.language as tl


@triton.jit
def to_words(x, column, valid, DESCENDING: tl.constexpr):
    """i64 words that order as (x, column) do, or as (-x, column) where not DESCENDING is meant as the greater first: the larger
    word is always the one that comes first. Invalid ones come last."""
    if x.dtype == tl.int32:
        key = x
    else:
        x = x.to(tl.float32)
        bits = x.to(tl.int32, bitcast=True)
        # negative floats order backwards: all bits but the sign turned; -0 is 0, and every NaN the same
        key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        key = tl.where(x == 0.0, 0, key)
        key = tl.where(x != x, 0x7FFFFFFF, key)
    if not DESCENDING:
        key = ~key
    word = (key.to(tl.int64) << 32) | (0x7FFFFFFF - column).to(tl.int64)
    return tl.where(valid, word, -0x8000000000000000)


@triton.jit
def columns_of(words):
    """The columns that the words carry."""
    return 0x7FFFFFFF - (words & 0x7FFFFFFF).to(tl.int32)


@triton.jit
def store_row(x_ptr, values_ptr, indices_ptr, words, n, WIDTH: tl.constexpr):
    """Stores the first n of the words' columns, and the elements of x that stand there."""
    i = tl.arange(0, WIDTH)
    column = columns_of(words)
    tl.store(indices_ptr + i, column.to(indices_ptr.dtype.element_ty), mask=i < n)
    tl.store(values_ptr + i, tl.load(x_ptr + column, mask=i < n), mask=i < n)


@triton.jit
def topk_kernel(x_ptr, values_ptr, indices_ptr, row_stride, k, n_cols, K: tl.constexpr, BLOCK: tl.constexpr,
                LARGEST: tl.constexpr = True):
    """values[row, :k], indices[row, :k]: the k largest (or smallest) of x[row, :n_cols], the best first. k <= n_cols; K, BLOCK:
    powers of two, k <= K <= BLOCK. Grid: rows."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * row_stride
    i = tl.arange(0, BLOCK)
    best = tl.full((K,), -0x8000000000000000, tl.int64)
    for start in range(0, n_cols, BLOCK):
        column = start + i
        x = tl.load(x_ptr + column, mask=column < n_cols)
        new = tl.topk(to_words(x, column, column < n_cols, LARGEST), K)
        both = tl.reshape(tl.join(best, new), (2 * K,))
        best = tl.topk(both, K)
    store_row(x_ptr, values_ptr + row * k, indices_ptr + row * k, best, k, K)


@triton.jit
def sort_kernel(x_ptr, values_ptr, indices_ptr, row_stride, n_cols, BLOCK: tl.constexpr, DESCENDING: tl.constexpr = False):
    """values[row] = x[row, :n_cols] in order, indices[row]: where they stood. Stable. BLOCK: a power of two, at least n_cols.
    Grid: rows."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * row_stride
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n_cols)
    words = tl.sort(to_words(x, i, i < n_cols, DESCENDING), descending=True)
    store_row(x_ptr, values_ptr + row * n_cols, indices_ptr + row * n_cols, words, n_cols, BLOCK)
