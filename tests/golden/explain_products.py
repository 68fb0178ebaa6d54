# What --explain says of each product: on which unit it is, and why not on a faster one.
# RUN: ditron compile %s:products --target sm_90a --warps 4 --sig "a_ptr=*f16:16, f_ptr=*f32:16, d_ptr=*f64:16, o_ptr=*f32:16" --explain -o x.image 2>&1
# RUN: ditron compile %s:products --target sm_80 --warps 4 --sig "a_ptr=*f16:16, f_ptr=*f32:16, d_ptr=*f64:16, o_ptr=*f32:16" --explain -o x.image 2>&1
import triton
import triton.language as tl


@triton.jit
def products(a_ptr, f_ptr, d_ptr, o_ptr):
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    few = tl.arange(0, 16)[:, None] * 64 + i[None, :]
    tl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(a_ptr + 4096 + at)))
    tl.store(o_ptr + at, tl.dot((i[:, None] + i[None, :]).to(tl.float16), tl.load(a_ptr + at)))
    tl.store(o_ptr + few, tl.dot(tl.load(a_ptr + few), tl.load(a_ptr + at)))
    tl.store(o_ptr + at, tl.dot(tl.load(f_ptr + at), tl.load(f_ptr + 4096 + at)))
    tl.store(o_ptr + at, tl.dot(tl.load(f_ptr + at), tl.load(f_ptr + 4096 + at), input_precision="ieee"))
    tl.store(o_ptr + at, tl.dot(tl.load(d_ptr + at), tl.load(d_ptr + 4096 + at)).to(tl.float32))


# CHECK: :13:26: remark: groups of four warps compute this product (wgmma, 64 x 64 x 16 a time), its first operand in shared memory
# CHECK: :14:26: remark: groups of four warps compute this product (wgmma, 64 x 64 x 16 a time), its first operand in registers
# CHECK: :15:27: remark: single warps compute this product (mma, 16 x 8 x 16 a time), not groups of four: it has fewer than 64 rows
# CHECK: :16:26: remark: groups of four warps compute this product (wgmma, 64 x 64 x 8 a time), its first operand in shared memory
# CHECK: :16:26: remark: an operand of this product is transposed on its way to shared memory, element by element
# CHECK: :17:26: remark: this product is computed without the matrix unit: 32-bit floats are not to be rounded to tf32
# CHECK: :18:26: remark: this product is computed without the matrix unit: there is none of f64 and f64 to f64
# CHECK: :13:26: remark: single warps compute this product (mma, 16 x 8 x 16 a time)
# CHECK-NOT: of four warps
