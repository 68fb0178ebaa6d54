# What every peer has is loaded a turn before its work; in the turn after the last there is no such peer, and this rank stands for it.
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "x_ptr=*f32:16, sum_ptr=*f32:16, n=i32" --dump fetch
import ditron
import ditron.language as dl
import triton.language as tl


@ditron.jit
def total(x_ptr, sum_ptr, n):
    cols = tl.arange(0, 128)
    all = tl.zeros((128,), tl.float32)
    for peer in range(n, dl.num_ranks()):
        all += tl.load(dl.symm_at(x_ptr, peer) + cols)
    tl.store(sum_ptr + cols, all)


# CHECK: %2 = rank : i32
# CHECK-NEXT: %3 = cmp %n, %0 {cmp=slt} : i1
# CHECK-NEXT: %4 = select %3, %n, %2 : i32
# CHECK-NEXT: symm_at %x_ptr, %4
# CHECK: %13 = add %peer, %1 : i32
# CHECK-NEXT: %14 = rank : i32
# CHECK: %19 = cmp %peer, %18 {cmp=slt} : i1
# CHECK-NEXT: %20 = select %19, %13, %14 : i32
# CHECK-NEXT: symm_at %x_ptr, %20
