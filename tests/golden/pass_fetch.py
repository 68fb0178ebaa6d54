# A row is loaded a turn before its work, where there is such a turn (the counter may be the largest number there is); what does not change
# stays before the loop, and what the loop may write is loaded in its turn.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "x_ptr=*f32:16, w_ptr=*f32:16, sum_ptr=*f32:16, n=i32" --dump fetch
import triton
import triton.language as tl


@triton.jit
def rows(x_ptr, w_ptr, sum_ptr, n):
    cols = tl.arange(0, 256)
    for row in range(tl.program_id(0), n, 7):
        x = tl.load(x_ptr + row * 256 + cols) * tl.load(w_ptr + cols)
        tl.store(sum_ptr + row * 256 + cols, x + tl.load(sum_ptr + row * 256 + cols))


# CHECK: %9 = cmp %0, %n {cmp=slt} : i1
# CHECK: %11 = load %8, %10, _
# CHECK-NEXT: %12 = for %0, %n, %1, %11
# CHECK: %19 = sub %n, %1 : i32
# CHECK: %21 = cmp %19, %n {cmp=sle} : i1
# CHECK-NEXT: %22 = select %21, %19, %20 : i32
# CHECK-NEXT: %23 = cmp %row, %22 {cmp=slt} : i1
# CHECK: %25 = load %18, %24, _
# CHECK: %30 = load %4, _, _
# CHECK: %34 = load %33, _, _
# CHECK: fma %13, %30, %34
# CHECK: yield %25
