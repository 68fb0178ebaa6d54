# RUN: ditron compile %s:literals --emit tile --sig "p=*i32"
# RUN: ditron compile %s:promotion --emit tile --sig "h=*f16, b=*bf16, s=*f32, d=*f64, i8=*i8, u8=*u8, i32=*i32, u32=*u32, i64=*i64, i1=*i1, e4=*f8e4m3, e5=*f8e5m2, x=f32, n=i32"
# RUN: ditron compile %s:shapes --emit tile --sig "p=*f32"
# RUN: ditron compile %s:reductions --emit tile --sig "h=*f16, b=*bf16, s=*f32, i8=*i8, u8=*u8, i1=*i1, i64=*i64"
# RUN: ditron compile %s:queries --emit tile --sig "p=*f32, q=*f8e4m3, n=i64, B=64"
# CHECK: return
# CHECK: return
# CHECK: return
# CHECK: return
# CHECK: return
"""What type and shape every expression has. Nothing is run: each line is an assertion that holds while compiling."""
import triton
import triton.language as tl


@triton.jit
def literals(p):
    a = 1
    tl.static_assert(a.dtype == tl.int32)
    b = 2147483648
    tl.static_assert(b.dtype == tl.uint32)
    c = -2147483649
    tl.static_assert(c.dtype == tl.int64)
    d = 9223372036854775808
    tl.static_assert(d.dtype == tl.uint64)
    e = 1.5
    tl.static_assert(e.dtype == tl.float32)
    f = 1e-40
    tl.static_assert(f.dtype == tl.float64)
    g = float("inf")
    tl.static_assert(g.dtype == tl.float32)
    h = True
    tl.static_assert(h.dtype == tl.int1)
    i: tl.constexpr = 7 // 2
    tl.static_assert(i == 3)
    j: tl.constexpr = -7 // 2
    tl.static_assert(j == -4)
    k: tl.constexpr = -7 % 3
    tl.static_assert(k == 2)
    tl.static_assert(2**10 == 1024 and 7 / 2 == 3.5 and (1 << 70) > 0)
    tl.static_assert(0xFF & ~0xF == 0xF0)
    tl.static_assert(not (1 > 2) and (1 < 2 <= 2) and (3 in (1, 2, 3)))
    t, *u = 1, 2, 3
    tl.static_assert(t.dtype == tl.int32)
    tl.static_assert(len(u) == 2)
    none = None
    tl.static_assert(none is None)
    tl.static_assert(p is not None)
    dt = tl.float16
    tl.static_assert(dt is tl.float16)


@triton.jit
def promotion(h, b, s, d, i8, u8, i32, u32, i64, i1, e4, e5, x, n):
    r = tl.arange(0, 8)
    th, tb, ts, td = tl.load(h + r), tl.load(b + r), tl.load(s + r), tl.load(d + r)
    ti8, tu8, ti32, tu32, ti64 = tl.load(i8 + r), tl.load(u8 + r), tl.load(i32 + r), tl.load(u32 + r), tl.load(i64 + r)
    ti1, te4, te5 = tl.load(i1 + r), tl.load(e4 + r), tl.load(e5 + r)
    # a number gives way, a run-time scalar does not
    tl.static_assert((th * 2.0).dtype == tl.float16)
    tl.static_assert((tb + 1).dtype == tl.bfloat16)
    tl.static_assert((th * x).dtype == tl.float32)
    tl.static_assert((ti8 + 100).dtype == tl.int8)
    tl.static_assert((ti32 * 1.5).dtype == tl.float32)
    tl.static_assert((ti64 + n).dtype == tl.int64)
    tl.static_assert((ti1 + 1).dtype == tl.int32)
    # tiles
    tl.static_assert((th + tb).dtype == tl.float16)
    tl.static_assert((tb + ti32).dtype == tl.float32)
    tl.static_assert((tb + te4).dtype == tl.float32)
    tl.static_assert((th + ti64).dtype == tl.float16)
    tl.static_assert((td + ts).dtype == tl.float64)
    tl.static_assert((te4 + te5).dtype == tl.float16)
    # integers as in C
    tl.static_assert((ti32 + tu32).dtype == tl.uint32)
    tl.static_assert((ti64 + tu32).dtype == tl.int64)
    tl.static_assert((ti8 + tu8).dtype == tl.uint8)
    tl.static_assert((ti8 + ti32).dtype == tl.int32)
    # division
    tl.static_assert((ti64 / ti64).dtype == tl.float32)
    tl.static_assert((th / th).dtype == tl.float32)
    tl.static_assert((th / 2.0).dtype == tl.float32)
    tl.static_assert((tb % tb).dtype == tl.float32)
    tl.static_assert((ti64 // ti32).dtype == tl.int64)
    # bits, comparisons, choices
    tl.static_assert((ti1 & ti32).dtype == tl.int32)
    tl.static_assert((ti32 << 2).dtype == tl.int32)
    tl.static_assert((~tu8).dtype == tl.uint8)
    tl.static_assert((th < 1.0).dtype == tl.int1)
    tl.static_assert(((th < 1.0) & (ts > 0)).dtype == tl.int1)
    tl.static_assert(tl.where(ti1, th, 0.0).dtype == tl.float16)
    tl.static_assert(tl.where(ti1, th, ts).dtype == tl.float32)
    tl.static_assert(tl.maximum(th, tb).dtype == tl.float32)
    tl.static_assert((-ti8).dtype == tl.int8)
    tl.static_assert((not ti1[0:0 + 0] if False else ti1).dtype == tl.int1)
    # casts
    tl.static_assert(th.to(tl.float32).dtype == tl.float32)
    tl.static_assert(ts.to(tl.int32, bitcast=True).dtype == tl.int32)
    tl.static_assert(ts.to(tl.float8e4nv).dtype == tl.float8e4nv)
    tl.static_assert(tl.cast(ts, tl.bfloat16, fp_downcast_rounding="rtz").dtype == tl.bfloat16)
    tl.static_assert(n.to(tl.pointer_type(tl.float32)).dtype.element_ty == tl.float32)
    tl.static_assert(min(n, 3).dtype == tl.int32)
    tl.static_assert(max(2, 3) == 3)
    tl.static_assert(tl.cdiv(n, 4).dtype == tl.int32)
    tl.static_assert(tl.cdiv(10, 4) == 3)


@triton.jit
def shapes(p):
    r = tl.arange(0, 8)
    c = tl.arange(0, 16)
    tl.static_assert(r[:, None].shape[0] == 8 and r[:, None].shape[1] == 1)
    tl.static_assert(len(r[None, :, None].shape) == 3)
    m = r[:, None] * 16 + c[None, :]
    tl.static_assert(m.shape[0] == 8 and m.shape[1] == 16 and m.numel == 128)
    tl.static_assert(m.T.shape[0] == 16)
    tl.static_assert(tl.trans(m).shape[0] == 16)
    tl.static_assert(m.trans(1, 0).shape[1] == 8)
    tl.static_assert(tl.reshape(m, (4, 32)).shape[1] == 32)
    tl.static_assert(m.reshape(2, 2, 32).shape[2] == 32)
    tl.static_assert(tl.ravel(m).shape[0] == 128)
    tl.static_assert(tl.expand_dims(r, 0).shape[0] == 1)
    tl.static_assert(tl.broadcast_to(r[:, None], (8, 4)).shape[1] == 4)
    tl.static_assert(tl.sum(m, axis=0).shape[0] == 16)
    tl.static_assert(tl.sum(m, axis=1, keep_dims=True).shape[1] == 1)
    tl.static_assert(len(tl.sum(m).shape) == 0)
    tl.static_assert(tl.join(r, r).shape[1] == 2)
    a, b = tl.split(tl.join(r, r))
    tl.static_assert(a.shape[0] == 8 and b.shape[0] == 8)
    tl.static_assert(tl.interleave(r, r).shape[0] == 16)
    tl.static_assert(tl.cat(r, r, can_reorder=True).shape[0] == 16)
    tl.static_assert(tl.permute(m[None, :, :], (2, 0, 1)).shape[0] == 16)
    tl.static_assert(tl.zeros((4, 4), tl.float32).shape[1] == 4)
    tl.static_assert(tl.full([2], 1, tl.int8).dtype == tl.int8)
    tl.static_assert(tl.zeros_like(m).dtype == tl.int32)
    tl.static_assert(tl.cumsum(m, 1).shape[1] == 16)
    x = tl.load(p + m)
    tl.static_assert(tl.dot(x, tl.trans(x)).shape[1] == 8)
    tl.static_assert(tl.flip(x, 1).shape[1] == 16)
    tl.static_assert(tl.sort(x).shape[1] == 16)
    tl.static_assert(tl.topk(x, 4).shape[1] == 4)


@triton.jit
def reductions(h, b, s, i8, u8, i1, i64):
    r = tl.arange(0, 8)
    tl.static_assert(tl.sum(tl.load(h + r)).dtype == tl.float16)
    tl.static_assert(tl.sum(tl.load(b + r)).dtype == tl.bfloat16)
    tl.static_assert(tl.sum(tl.load(i8 + r)).dtype == tl.int32)
    tl.static_assert(tl.sum(tl.load(u8 + r)).dtype == tl.uint32)
    tl.static_assert(tl.sum(tl.load(i64 + r)).dtype == tl.int64)
    tl.static_assert(tl.sum(tl.load(h + r), dtype=tl.float32).dtype == tl.float32)
    tl.static_assert(tl.max(tl.load(h + r)).dtype == tl.float32)
    tl.static_assert(tl.max(tl.load(b + r)).dtype == tl.float32)
    tl.static_assert(tl.min(tl.load(i8 + r)).dtype == tl.int32)
    tl.static_assert(tl.cumsum(tl.load(b + r)).dtype == tl.float32)
    tl.static_assert(tl.cumsum(tl.load(h + r)).dtype == tl.float16)
    tl.static_assert(tl.argmax(tl.load(s + r), 0).dtype == tl.int32)
    v, i = tl.max(tl.load(s + r), 0, return_indices=True)
    tl.static_assert(v.dtype == tl.float32 and i.dtype == tl.int32)
    tl.static_assert(tl.sigmoid(tl.load(s + r)).dtype == tl.float32)
    tl.static_assert(tl.sum(tl.load(i1 + r).to(tl.int32)).dtype == tl.int32)


@triton.jit
def queries(p, q, n, B: tl.constexpr):
    tl.static_assert(p.dtype.element_ty == tl.float32)
    tl.static_assert(p.dtype.is_ptr() and p.type.element_ty.is_fp32())
    tl.static_assert(p.dtype.element_ty.primitive_bitwidth == 32)
    tl.static_assert(q.dtype.element_ty.is_fp8() and not p.dtype.element_ty.is_fp8())
    tl.static_assert(n.dtype == tl.int64 and n.dtype.is_int() and n.type.scalar == tl.int64)
    tl.static_assert(B.bit_length() == 7 and triton.next_power_of_2(B + 1) == 128)
    tl.static_assert(isinstance(B, tl.constexpr) and isinstance(n, tl.tensor) and not isinstance(n, tl.constexpr))
    tl.static_assert(hasattr(n, "dtype") and not hasattr(n, "nothing"))
    x = tl.load(p + tl.arange(0, B))
    tl.static_assert(x.type.is_block() and x.type.scalar == tl.float32 and x.type.get_block_shapes()[0] == B)
    ptrs = p + tl.arange(0, B)
    tl.static_assert(ptrs.dtype.element_ty == tl.float32 and ptrs.type.element_ty.is_ptr())
    tl.static_assert(tl.int8.is_int_signed() and tl.uint8.is_int_unsigned() and tl.bfloat16.is_bf16())
    tl.static_assert(str(tl.float16) == "fp16", f"{tl.float16} {B}")
    if B > 32 and p is not None:
        y: tl.constexpr = 1
    else:
        y: tl.constexpr = undefined_name + "never looked at"
    tl.static_assert(y == 1)
