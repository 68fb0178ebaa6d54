# A turn that is written out before the loop reads the same tensors as the loop's: its blocks go through the same rings (one for k, one for v), where
# the loop goes on; so does the product that comes behind it. q is held during all of them: one at a time, or as many tiles ahead as the loop
# around asks for, which says nothing of the others. Where the inner loop asks for other numbers it has rings of its own.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,64), out_desc=desc(f16;64,64), M=i32, N=i32, AHEAD=None, INNER=None" --dump producer
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,64), out_desc=desc(f16;64,64), M=i32, N=i32, AHEAD=2, INNER=None" --dump producer
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;128,64), v_desc=desc(f16;128,64), out_desc=desc(f16;64,64), M=i32, N=i32, AHEAD=2, INNER=4" --dump producer
import triton
import triton.language as tl


@triton.jit
def tiles(q_desc, k_desc, v_desc, out_desc, M, N, AHEAD: tl.constexpr, INNER: tl.constexpr):
    for t in tl.range(0, M, 64, num_stages=AHEAD):
        q = q_desc.load([t, 0])
        p = tl.maximum(tl.dot(q, k_desc.load([t, 0]).T), 0.0).to(tl.float16)
        total = tl.dot(p, v_desc.load([t, 0])) * 0.5
        for i in tl.range(0, N, 128, num_stages=INNER):
            p = tl.maximum(tl.dot(q, k_desc.load([i, 0]).T), 0.0).to(tl.float16)
            total = tl.dot(p, v_desc.load([i, 0]), total)
        out_desc.store([t, 0], total.to(tl.float16))


# CHECK: %0 = mem_alloc : memdesc<1*64x64xf16, shared>
# CHECK: %3 = mem_alloc : memdesc<3*128x64xf16, shared>
# CHECK-NEXT: %4 = mbarrier_alloc {count=1} : mbarrier<3>
# CHECK: %6 = mem_alloc : memdesc<3*128x64xf16, shared>
# CHECK-NEXT: %7 = mbarrier_alloc {count=1} : mbarrier<3>
# CHECK-NEXT: %8 = mbarrier_alloc {count=4} : mbarrier<3>
# CHECK-NEXT: warp_partitions
# CHECK: mbarrier_wait %4, %26, %27
# CHECK: dot %32, %44, %14 : tile<64x128xf32>
# CHECK-NEXT: mbarrier_arrive %5, %26
# CHECK: mbarrier_wait %7, %28, %29
# CHECK: for %12, %N, %17, %total, %67, %51, %53, %64, %66 :
# CHECK-NEXT: mbarrier_wait %4, %75, %76
# CHECK: mbarrier_wait %7, %77, %78
# CHECK: mbarrier_arrive %2, %24
# CHECK: mbarrier_wait %7, %72, %73
# CHECK: dot %69, %120, %68
# CHECK: yield %38, %40, %70, %71, %127, %129
# CHECK: } {
# CHECK: desc_load_async %q_desc
# CHECK: desc_load_async %k_desc, %170, %4, %148
# CHECK: desc_load_async %v_desc, %187, %7, %150
# CHECK: for %134, %N
# CHECK: desc_load_async %k_desc, %214, %4, %206
# CHECK: desc_load_async %v_desc, %231, %7, %208
# CHECK: desc_load_async %v_desc, %259, %7, %203
# CHECK: module stage=tile
# CHECK: %0 = mem_alloc : memdesc<2*64x64xf16, shared>
# CHECK: memdesc<3*128x64xf16, shared>
# CHECK: memdesc<3*128x64xf16, shared>
# CHECK-NOT: mem_alloc
# CHECK: {stages=2}
# CHECK: %35 = const {value=2} : i32
# CHECK-NEXT: %36 = cmp %34, %35
# CHECK: module stage=tile
# CHECK: %0 = mem_alloc : memdesc<2*64x64xf16, shared>
# CHECK: memdesc<3*128x64xf16, shared>
# CHECK: memdesc<3*128x64xf16, shared>
# CHECK: memdesc<4*128x64xf16, shared>
# CHECK: memdesc<4*128x64xf16, shared>
# CHECK: warp_partitions
