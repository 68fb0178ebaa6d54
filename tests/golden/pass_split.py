# Attention that masks every turn. Up to the block that the diagonal or the end of the keys cuts (middle: a multiple of the step) a first loop
# goes without the mask; the second one has it and goes on with what the first left. The row's own comparison stands before the loop: where it
# does not hold the first loop has no turns. Not split: a loop whose mask has a lower end only (WINDOW).
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;32,64), out_ptr=*f32:16, rows=i32, keys=i32, WINDOW=False" --dump split
# RUN: ditron compile %s --target sm_90a --warps 4 --sig "q_desc=desc(f16;64,64), k_desc=desc(f16;32,64), out_ptr=*f32:16, rows=i32, keys=i32, WINDOW=True" --dump split
import triton
import triton.language as tl


@triton.jit
def largest(q_desc, k_desc, out_ptr, rows, keys, WINDOW: tl.constexpr):
    first = tl.program_id(0) * 64
    row = first + tl.arange(0, 64)
    q = q_desc.load([first, 0])
    top = tl.full((64,), float("-inf"), tl.float32)
    for start in range(0, keys, 32):
        key = start + tl.arange(0, 32)
        s = tl.dot(q, k_desc.load([start, 0]).T)
        if WINDOW:
            mask = key[None, :] > row[:, None] - 100
        else:
            mask = (key[None, :] <= row[:, None]) & (key[None, :] < keys) & (row[:, None] < rows)
        top = tl.maximum(top, tl.max(tl.where(mask, s, float("-inf")), 1))
    tl.store(out_ptr + row, top)


# OUTPUT:
# module stage=tile warps=4 stages=2 lanes=32
#
# kernel @largest(%q_desc: desc<64x64xf16> {reads=true}, %k_desc: desc<32x64xf16> {reads=true}, %out_ptr: ptr<f32> {divisible=16, writes=true}, %rows: i32, %keys: i32) {
#   %0 = program_id {axis=0} : i32
#   %1 = const {value=64} : i32
#   %first = mul %0, %1 : i32
#   %2 = arange {start=0, end=64} : tile<64xi32>
#   %3 = splat %first : tile<64xi32>
#   %row = add %3, %2 : tile<64xi32>
#   %4 = const {value=0} : i32
#   %q = desc_load %q_desc, %first, %4 : tile<64x64xf16>
#   %top = const {value=-inf} : tile<64xf32>
#   %5 = const {value=32} : i32
#   %6 = arange {start=0, end=32} : tile<32xi32>
#   %7 = const {value=0.0} : tile<64x32xf32>
#   %8 = expand_dims %row {axis=1} : tile<64x1xi32>
#   %9 = broadcast %8 : tile<64x32xi32>
#   %10 = splat %keys : tile<32xi32>
#   %11 = splat %rows : tile<64xi32>
#   %12 = cmp %row, %11 {cmp=slt} : tile<64xi1>
#   %13 = expand_dims %12 {axis=1} : tile<64x1xi1>
#   %14 = broadcast %13 : tile<64x32xi1>
#   %15 = const {value=-inf} : tile<64x32xf32>
#   %16 = const {value=0} : i64
#   %17 = const {value=0} : i64
#   %18 = ext_s %keys : i64
#   %19 = const {value=30} : i64
#   %20 = const {value=-64} : i64
#   %21 = ext_s %0 : i64
#   %22 = mul %20, %21 : i64
#   %23 = add %19, %22 : i64
#   %24 = const {value=0} : i64
#   %25 = sub %24, %23 : i64
#   %26 = max_s %25, %17 : i64
#   %27 = const {value=1} : i64
#   %28 = div_s %26, %27 : i64
#   %29 = const {value=31} : i64
#   %30 = add %28, %29 : i64
#   %31 = min_s %18, %30 : i64
#   %32 = const {value=31} : i64
#   %33 = const {value=-1} : i64
#   %34 = ext_s %keys : i64
#   %35 = mul %33, %34 : i64
#   %36 = add %32, %35 : i64
#   %37 = const {value=0} : i64
#   %38 = sub %37, %36 : i64
#   %39 = max_s %38, %17 : i64
#   %40 = const {value=1} : i64
#   %41 = div_s %39, %40 : i64
#   %42 = const {value=31} : i64
#   %43 = add %41, %42 : i64
#   %44 = min_s %31, %43 : i64
#   %45 = const {value=63} : i64
#   %46 = const {value=-1} : i64
#   %47 = ext_s %rows : i64
#   %48 = mul %46, %47 : i64
#   %49 = add %45, %48 : i64
#   %50 = const {value=64} : i64
#   %51 = ext_s %0 : i64
#   %52 = mul %50, %51 : i64
#   %53 = add %49, %52 : i64
#   %54 = cmp %53, %17 {cmp=slt} : i1
#   %55 = select %54, %44, %16 : i64
#   %56 = const {value=32} : i64
#   %57 = max_s %55, %16 : i64
#   %58 = div_s %57, %56 : i64
#   %59 = mul %58, %56 : i64
#   %60 = trunc %59 : i32
#   %61 = for %4, %60, %5, %top : tile<64xf32> { (%start: i32, %top_1: tile<64xf32>)
#     %62 = splat %start : tile<32xi32>
#     %key = add %62, %6 : tile<32xi32>
#     %63 = desc_load %k_desc, %start, %4 : tile<32x64xf16>
#     %64 = trans %63 {perm=[1, 0]} : tile<64x32xf16>
#     %s = dot %q, %64, %7 : tile<64x32xf32>
#     %65 = expand_dims %key {axis=0} : tile<1x32xi32>
#     %66 = broadcast %65 : tile<64x32xi32>
#     %67 = cmp %66, %9 {cmp=sle} : tile<64x32xi1>
#     %68 = cmp %key, %10 {cmp=slt} : tile<32xi1>
#     %69 = const {value=1} : tile<32xi1>
#     %70 = expand_dims %69 {axis=0} : tile<1x32xi1>
#     %71 = broadcast %70 : tile<64x32xi1>
#     %72 = const {value=1} : tile<64x32xi1>
#     %73 = and %72, %71 : tile<64x32xi1>
#     %74 = const {value=1} : tile<64x32xi1>
#     %mask = and %73, %74 : tile<64x32xi1>
#     %75 = select %mask, %s, %15 : tile<64x32xf32>
#     %76 = reduce %75 {axis=1} : tile<64xf32> { (%77: f32, %78: f32)
#       %79 = fmax %77, %78 : f32
#       yield %79
#     }
#     %top_2 = fmax %top_1, %76 : tile<64xf32>
#     yield %top_2
#   }
#   %80 = for %60, %keys, %5, %61 : tile<64xf32> { (%start_1: i32, %top_3: tile<64xf32>)
#     %81 = splat %start_1 : tile<32xi32>
#     %key_1 = add %81, %6 : tile<32xi32>
#     %82 = desc_load %k_desc, %start_1, %4 : tile<32x64xf16>
#     %83 = trans %82 {perm=[1, 0]} : tile<64x32xf16>
#     %s_1 = dot %q, %83, %7 : tile<64x32xf32>
#     %84 = expand_dims %key_1 {axis=0} : tile<1x32xi32>
#     %85 = broadcast %84 : tile<64x32xi32>
#     %86 = cmp %85, %9 {cmp=sle} : tile<64x32xi1>
#     %87 = cmp %key_1, %10 {cmp=slt} : tile<32xi1>
#     %88 = expand_dims %87 {axis=0} : tile<1x32xi1>
#     %89 = broadcast %88 : tile<64x32xi1>
#     %90 = and %86, %89 : tile<64x32xi1>
#     %mask_1 = and %90, %14 : tile<64x32xi1>
#     %91 = select %mask_1, %s_1, %15 : tile<64x32xf32>
#     %92 = reduce %91 {axis=1} : tile<64xf32> { (%93: f32, %94: f32)
#       %95 = fmax %93, %94 : f32
#       yield %95
#     }
#     %top_4 = fmax %top_3, %92 : tile<64xf32>
#     yield %top_4
#   }
#   %96 = splat %out_ptr : tile<64xptr<f32>>
#   %97 = ptr_add %96, %row : tile<64xptr<f32>>
#   store %97, %80, _
#   return
# }
# module stage=tile warps=4 stages=2 lanes=32
#
# kernel @largest(%q_desc: desc<64x64xf16> {reads=true}, %k_desc: desc<32x64xf16> {reads=true}, %out_ptr: ptr<f32> {divisible=16, writes=true}, %rows: i32, %keys: i32) {
#   %0 = program_id {axis=0} : i32
#   %1 = const {value=64} : i32
#   %first = mul %0, %1 : i32
#   %2 = arange {start=0, end=64} : tile<64xi32>
#   %3 = splat %first : tile<64xi32>
#   %row = add %3, %2 : tile<64xi32>
#   %4 = const {value=0} : i32
#   %q = desc_load %q_desc, %first, %4 : tile<64x64xf16>
#   %top = const {value=-inf} : tile<64xf32>
#   %5 = const {value=32} : i32
#   %6 = arange {start=0, end=32} : tile<32xi32>
#   %7 = const {value=0.0} : tile<64x32xf32>
#   %8 = const {value=-100} : tile<64xi32>
#   %9 = add %row, %8 : tile<64xi32>
#   %10 = expand_dims %9 {axis=1} : tile<64x1xi32>
#   %11 = broadcast %10 : tile<64x32xi32>
#   %12 = const {value=-inf} : tile<64x32xf32>
#   %13 = for %4, %keys, %5, %top : tile<64xf32> { (%start: i32, %top_1: tile<64xf32>)
#     %14 = splat %start : tile<32xi32>
#     %key = add %14, %6 : tile<32xi32>
#     %15 = desc_load %k_desc, %start, %4 : tile<32x64xf16>
#     %16 = trans %15 {perm=[1, 0]} : tile<64x32xf16>
#     %s = dot %q, %16, %7 : tile<64x32xf32>
#     %17 = expand_dims %key {axis=0} : tile<1x32xi32>
#     %18 = broadcast %17 : tile<64x32xi32>
#     %mask = cmp %18, %11 {cmp=sgt} : tile<64x32xi1>
#     %19 = select %mask, %s, %12 : tile<64x32xf32>
#     %20 = reduce %19 {axis=1} : tile<64xf32> { (%21: f32, %22: f32)
#       %23 = fmax %21, %22 : f32
#       yield %23
#     }
#     %top_2 = fmax %top_1, %20 : tile<64xf32>
#     yield %top_2
#   }
#   %24 = splat %out_ptr : tile<64xptr<f32>>
#   %25 = ptr_add %24, %row : tile<64xptr<f32>>
#   store %25, %13, _
#   return
# }
