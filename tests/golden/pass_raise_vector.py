# A vector beside a product's blocks becomes a block of a tensor of its row. The head is a leading axis, its size the vector's mask; what the mask
# cuts off is chosen afterwards where it is not 0. It then travels with the blocks.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, x_ptr=*f32:16, out=*f32:16, K=i32:16" --dump raise
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_ptr=*f16:16, b_ptr=*f16:16, x_ptr=*f32:16, out=*f32:16, K=i32:16" --explain -o /dev/null
import triton
import triton.language as tl


@triton.jit
def scaled(a_ptr, b_ptr, x_ptr, out, K):
    rows = tl.arange(0, 64)
    head = tl.program_id(0)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        at = k + rows
        a = tl.load(a_ptr + rows[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        b = tl.load(b_ptr + at[:, None] * 64 + rows[None, :], mask=at[:, None] < K, other=0.0)
        total += tl.dot(a, b) * tl.load(x_ptr + head * K + at, mask=at < K, other=1.0)[None, :]
    tl.store(out + rows[:, None] * 64 + rows[None, :], total)


# CHECK: %19 = make_desc %x_ptr, %13, %16, %14, %18 : desc<1x64xf32>
# CHECK: %66 = desc_load %19, %head, %k : tile<1x64xf32>
# CHECK-NEXT: %67 = reshape %66 : tile<64xf32>
# CHECK-NEXT: %68 = select %46, %67, %40
# CHECK: pass_raise_vector.py:18:33: remark: this load is raised to a tensor descriptor of 2 axes
# CHECK: pass_raise_vector.py:18:18: remark: a producer warp fetches 3 operands of this product, up to 3 ahead (49920 bytes of shared memory)
