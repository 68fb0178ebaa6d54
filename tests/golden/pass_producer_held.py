# k is loaded once a tile for the products of the loop behind it: a ring of one stage, waited for where k was loaded and handed back behind the
# loop. In the producer it is fetched by the outer loop, before the first q.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "k_desc=desc(f16;64,64), q_desc=desc(f16;64,64), c_desc=desc(f16;64,64), M=i32, N=i32" --dump producer
import triton
import triton.language as tl


@triton.jit
def held(k_desc, q_desc, c_desc, M, N):
    for t in range(0, M, 64):
        k = k_desc.load([t, 0])
        total = tl.zeros((64, 64), tl.float32)
        for i in range(0, N, 64):
            s = tl.maximum(tl.dot(q_desc.load([i, 0]), k.T), 0.0).to(tl.float16)
            total = tl.dot(s, k, total)
        c_desc.store([t, 0], total.to(tl.float16))


# CHECK: %0 = mem_alloc : memdesc<1*64x64xf16, shared>
# CHECK-NEXT: %1 = mbarrier_alloc {count=1} : mbarrier<1>
# CHECK-NEXT: %2 = mbarrier_alloc {count=4} : mbarrier<1>
# CHECK: { (%t: i32, %14: i32, %15: i32, %16: i32, %17: i32)
# CHECK-NEXT: mbarrier_wait %1, %14, %15
# CHECK-NEXT: %19 = mem_view %0, %14
# CHECK-NEXT: %20 = mem_load %19
# CHECK: %28 = xor %15, %27
# CHECK: mbarrier_arrive %5, %33
# CHECK: dot %s, %20, %total_1
# CHECK-NEXT: yield
# CHECK-NEXT: }
# CHECK-NEXT: mbarrier_arrive %2, %14 {each_warp=true}
# CHECK: desc_store
# CHECK-NEXT: yield %26, %28, %31, %32
# CHECK: mbarrier_wait %2, %57, %62
# CHECK: mbarrier_expect %1, %57, %64
# CHECK-NEXT: mem_view %0, %57
# CHECK-NEXT: desc_load_async %k_desc, %65, %1, %57, %t_1
# CHECK: desc_load_async %q_desc
