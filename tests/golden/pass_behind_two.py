# Two loops in a row: the second one goes on where the first one ended, and takes over what that one left: its
# last product is the second one's first. Tiles of more registers stay, as on a machine without products of four warps.
# RUN: ditron compile %s:chain --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,128), out_desc=desc(f16;64,128), N=i32, B=128" --dump behind
# RUN: ditron compile %s:chain --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;256,64), v_desc=desc(f16;256,128), out_desc=desc(f16;64,128), N=i32, B=256" --dump behind
# RUN: ditron compile %s:chain --target sm_80 --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,128), out_desc=desc(f16;64,128), N=i32, B=128" --dump behind
import triton
import triton.language as tl


@triton.jit
def chain(q_desc, k_desc, v_desc, out_desc, N, B: tl.constexpr):
    q = q_desc.load([0, 0])
    total = tl.zeros((64, 128), tl.float32)
    middle = tl.program_id(0) % 8 * B
    for i in range(0, middle, B):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        total = tl.dot(tl.maximum(s, 0.0).to(tl.float16), v_desc.load([i, 0]), total)
    for i in range(middle, N, B):
        s = tl.dot(q, k_desc.load([i, 0]).T)
        total = tl.dot(tl.minimum(s, 1.0).to(tl.float16), v_desc.load([i, 0]), total)
    out_desc.store([0, 0], total.to(tl.float16))


# CHECK: %6, %7 = for %1, %middle, %4, %total, %5 :
# CHECK: %13 = dot %8, %12, %total_1 {until_use=true}
# CHECK: yield %13, %15
# CHECK-NEXT: }
# CHECK-NOT: = dot
# CHECK: %32, %33 = for %middle, %N, %4, %6, %7 :
# CHECK: %39 = dot %34, %38, %total_3 {until_use=true}
# CHECK: yield %39, %41
# CHECK: %59 = dot %33, %58, %32
# CHECK: module stage=tile
# CHECK-NOT: until_use
# CHECK: for %1, %middle, %4, %total : tile<64x128xf32> {
# CHECK: for %middle, %N, %4, %6 : tile<64x128xf32> {
# CHECK: module stage=tile
# CHECK: for %1, %middle, %4, %total : tile<64x128xf32> {
# CHECK: for %middle, %N, %4, %5 : tile<64x128xf32> {
# CHECK-NOT: until_use
