# Four warps compute and one fetches: rings of three stages, a barrier for full and one for empty ones.
# Stage and phase go through both loops. The product runs on in the next turn, so a turn hands back the stage of the one before, and
# the loop's last is handed back behind it; -1: there is none. The producer has the program's control and addresses; nothing of its tiles
# is left when dce has been there.
# RUN: ditron compile %s --target sm_90a --warps 4 --stages 3 --sig "a_desc=desc(f16;64,32), b_desc=desc(f16;32,64), c_desc=desc(f16;64,64), M=i32, K=i32" --dump producer
import triton
import triton.language as tl


@triton.jit
def product(a_desc, b_desc, c_desc, M, K):
    for t in range(tl.program_id(0), tl.cdiv(M, 64), tl.num_programs(0)):
        total = tl.zeros((64, 64), tl.float32)
        for k in range(0, K, 32):
            total = tl.dot(a_desc.load([t * 64, k]), b_desc.load([k, 0]), total)
        c_desc.store([t * 64, 0], total.to(tl.float16))


# CHECK: module stage=tile warps=4 stages=3 lanes=32 extra=1
# CHECK: %0 = mem_alloc : memdesc<3*64x32xf16, shared>
# CHECK-NEXT: %1 = mem_alloc : memdesc<3*32x64xf16, shared>
# CHECK-NEXT: %2 = mbarrier_alloc {count=1} : mbarrier<3>
# CHECK-NEXT: %3 = mbarrier_alloc {count=4} : mbarrier<3>
# CHECK-NEXT: warp_partitions {first=[0, 4], warps=[4, 1], alone=[0, 1]} {
# CHECK: : i32, i32 { (%t: i32, %15: i32, %16: i32)
# CHECK: %18 = const {value=-1} : i32
# CHECK-NEXT: %total, %15, %16, %18 : tile<64x64xf32>, i32, i32, i32 { (%k: i32, %total_1: tile<64x64xf32>, %23: i32, %24: i32, %25: i32)
# CHECK-NEXT: mbarrier_wait %2, %23, %24 : token
# CHECK-NEXT: mem_view %0, %23
# CHECK-NEXT: mem_load
# CHECK-NEXT: mem_view %1, %23
# CHECK-NEXT: mem_load
# CHECK-NEXT: dot %28, %30, %total_1 {late=true}
# CHECK: cmp %25, %31 {cmp=sge} : i1
# CHECK-NEXT: if %32 {
# CHECK-NEXT: mbarrier_arrive %3, %25 {each_warp=true}
# CHECK: %34 = add %23, %33
# CHECK-NEXT: %35 = const {value=3} : i32
# CHECK-NEXT: %36 = cmp %34, %35 {cmp=eq} : i1
# CHECK: %38 = select %36, %37, %34
# CHECK-NEXT: %39 = ext_u %36
# CHECK-NEXT: %40 = xor %24, %39
# CHECK-NEXT: yield %total_2, %38, %40, %23
# CHECK: mbarrier_arrive %3, %22 {each_warp=true}
# CHECK: desc_store %c_desc
# CHECK-NEXT: yield %20, %21
# CHECK-NOT: desc_store
# CHECK: : tile<64x64xf32>, i32, i32 { (%k_1: i32, %total_4: tile<64x64xf32>, %61: i32, %62: i32)
# CHECK: xor %62, %63
# CHECK-NEXT: mbarrier_wait %3, %61, %64 : token
# CHECK-NEXT: %66 = const {value=8192} : i32
# CHECK-NEXT: mbarrier_expect %2, %61, %66
# CHECK-NEXT: mem_view %0, %61
# CHECK-NEXT: desc_load_async %a_desc, %67, %2, %61, %57, %k_1
# CHECK: mem_view %1, %61
# CHECK-NEXT: desc_load_async %b_desc, %69, %2, %61, %k_1, %51
# CHECK-NOT: mbarrier_arrive
# CHECK-NOT: desc_store
