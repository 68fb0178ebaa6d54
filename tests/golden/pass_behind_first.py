# A first turn that is written out before the loop: the loop takes over its product, so that nothing is multiplied by zeros. It is that of the turn
# a step before the loop's first, be its blocks those behind (0) or before (1). Where it is not - another block (2), another tensor (3), the block
# turned (4) - or where what it reads may be written in between (5), it stays, and the loop begins with zeros and a block outside of the tensor. What
# is assumed in between (6) writes nothing.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), v_desc=desc(f16;64,64), w_desc=desc(f16;64,64), out_desc=desc(f16;64,64), start=i32, N=i32, HOW=0" --dump behind
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), v_desc=desc(f16;64,64), w_desc=desc(f16;64,64), out_desc=desc(f16;64,64), start=i32, N=i32, HOW=1" --dump behind
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), v_desc=desc(f16;64,64), w_desc=desc(f16;64,64), out_desc=desc(f16;64,64), start=i32, N=i32, HOW=2" --dump behind
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), v_desc=desc(f16;64,64), w_desc=desc(f16;64,64), out_desc=desc(f16;64,64), start=i32, N=i32, HOW=3" --dump behind
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), v_desc=desc(f16;64,64), w_desc=desc(f16;64,64), out_desc=desc(f16;64,64), start=i32, N=i32, HOW=4" --dump behind
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), v_desc=desc(f16;64,64), w_desc=desc(f16;64,64), out_desc=desc(f16;64,64), start=i32, N=i32, HOW=5" --dump behind
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;64,64), v_desc=desc(f16;64,64), w_desc=desc(f16;64,64), out_desc=desc(f16;64,64), start=i32, N=i32, HOW=6" --dump behind
import triton
import triton.language as tl


@triton.jit
def chain(q_desc, k_desc, v_desc, w_desc, out_desc, start, N, HOW: tl.constexpr):
    q = q_desc.load([0, 0])
    p = tl.dot(q, k_desc.load([start * 64, 0]).T).to(tl.float16)
    v = (w_desc if HOW == 3 else v_desc).load([N - start * 64 if HOW == 1 else start * 64 - 64 if HOW == 2 else start * 64, 0])
    total = tl.dot(p, v.T if HOW == 4 else v)
    if HOW == 5:
        v_desc.store([0, 0], p)
    if HOW == 6:
        tl.assume(N < 1 << 20)
    for i in range(start + 2, N, 2):
        at = N - i * 64 + 128 if HOW == 1 else i * 64
        p = tl.dot(q, k_desc.load([at, 0]).T).to(tl.float16)
        total = tl.dot(p, v_desc.load([at - 128, 0] if HOW == 1 else [at, 0]), total * 0.5)
    out_desc.store([0, 0], total.to(tl.float16))


# CHECK: %p = fcast %6 : tile<64x64xf16>
# CHECK-NOT: = dot
# CHECK: %8 = add %start, %7 : i32
# CHECK: %10, %11 = for %8, %N, %7, %5, %p : tile<64x64xf32>, tile<64x64xf16> { (%i: i32, %total: tile<64x64xf32>, %12: tile<64x64xf16>)
# CHECK: %16 = sub %i, %7 : i32
# CHECK-NEXT: %17 = mul %16, %1 : i32
# CHECK-NEXT: %18 = desc_load %v_desc, %17, %0 : tile<64x64xf16>
# CHECK-NEXT: %19 = dot %12, %18, %total {until_use=true}
# CHECK: %29 = sub %8, %7 : i32
# CHECK-NEXT: %30 = cmp %N, %8 {cmp=sle} : i1
# CHECK-NEXT: %31 = select %30, %29, %28 : i32
# CHECK-NEXT: %32 = mul %31, %1 : i32
# CHECK-NEXT: %33 = desc_load %v_desc, %32, %0
# CHECK-NEXT: %34 = dot %11, %33, %10
# CHECK: module stage=tile
# CHECK: %p = fcast %6 : tile<64x64xf16>
# CHECK-NOT: = dot
# CHECK: %12, %13 = for %9, %N, %8, %5, %p :
# CHECK: %22 = sub %N, %21 : i32
# CHECK-NEXT: %23 = desc_load %v_desc, %22, %0
# CHECK-NEXT: %24 = dot %14, %23, %total {until_use=true}
# CHECK: module stage=tile
# CHECK: %total = dot %p, %v, %5
# CHECK: %13, %14 = for %10, %N, %9, %total, %12 :
# CHECK: %22 = const {value=-64} : i32
# CHECK-NEXT: %23 = select %19, %22, %21 : i32
# CHECK-NEXT: %24 = desc_load %v_desc, %23, %0
# CHECK: module stage=tile
# CHECK: %v = desc_load %w_desc, %2, %0
# CHECK-NEXT: %total = dot %p, %v, %5
# CHECK: %11, %12 = for %8, %N, %7, %total, %10 :
# CHECK: module stage=tile
# CHECK: %total = dot %p, %7, %5
# CHECK: %12, %13 = for %9, %N, %8, %total, %11 :
# CHECK: module stage=tile
# CHECK: %total = dot %p, %v, %5
# CHECK-NEXT: desc_store %v_desc, %p
# CHECK: %11, %12 = for %8, %N, %7, %total, %10 :
# CHECK: module stage=tile
# CHECK: %p = fcast
# CHECK-NOT: = dot
# CHECK: assume
# CHECK-NOT: = dot
# CHECK: = for
