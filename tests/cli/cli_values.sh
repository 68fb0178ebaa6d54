# Every form of a VALUE that `ditron run` takes, and what --out writes: NumPy checks the files.
# TIMEOUT: 240
cat >k.py <<'K'
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=m), mask=m)


@triton.jit
def block(d, y_ptr, B0: tl.constexpr, B1: tl.constexpr):
    i = tl.arange(0, B0)[:, None] * B1 + tl.arange(0, B1)[None, :]
    tl.store(y_ptr + i, d.load([0, 0]))


@triton.jit
def twice(a):
    return a + a


@triton.jit
def constants(x_ptr, y_ptr, OP: tl.constexpr, T: tl.constexpr, S: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, 8)
    x = tl.load(x_ptr + i)
    if S == "apply, please" and N is None and B:
        x = OP(x)
    tl.store(y_ptr + i, x.to(T))
K
run() { ditron run --grid 1 --quiet "$@"; }
copy() { run k.py:copy n=8 BLOCK=8 "$@"; } # X Y ...
holds() { # FILE EXPRESSION: numpy.array_equal and the same dtype
  "$PYTHON" -c "
import sys
import numpy as np
x = np.load(sys.argv[1]); want = np.asarray(eval(sys.argv[2]))
assert x.dtype == want.dtype and np.array_equal(x, want), (sys.argv, x, x.dtype, want, want.dtype)" "$1" "$2"
}

# fills
copy x_ptr=arange:f32[8] y_ptr=zeros:f32[8] --out y_ptr=y.npy && holds y.npy 'np.arange(8, dtype="f4")'
copy x_ptr=ones:f32[8] y_ptr=empty:f32[8] --out y_ptr=y.npy && holds y.npy 'np.ones(8, "f4")'
copy 'x_ptr=full(-2.5):f64[2,4]' 'y_ptr=zeros:f64[2,4]' --out y_ptr=y.npy && holds y.npy 'np.full((2, 4), -2.5)'
copy 'x_ptr=full(18446744073709551615):u64[8]' y_ptr=zeros:u64[8] --out y_ptr=y.npy
holds y.npy 'np.full(8, 2**64 - 1, "u8")'
copy 'x_ptr=full(-9007199254740993):i64[8]' y_ptr=zeros:i64[8] --out y_ptr=y.npy
holds y.npy 'np.full(8, -2**53 - 1, "i8")'
copy 'x_ptr=full(5e3):i16[8]' y_ptr=zeros:i16[8] --out y_ptr=y.npy && holds y.npy 'np.full(8, 5000, "i2")'
copy 'x_ptr=list(3,-1.5,2e1):f32[8]' y_ptr=zeros:f32[8] --out y_ptr=y.npy && holds y.npy 'np.array([3, -1.5, 20, 3, -1.5, 20, 3, -1.5], "f4")'
copy 'x_ptr=list(1,2,3,4,5,6,7,8,9,10):i64[8]' y_ptr=zeros:i64[8] --out y_ptr=y.npy && holds y.npy 'np.arange(1, 9)'
for fill in randn rand 'randint(-3,4)'; do
  copy "x_ptr=$fill:f32[8]" y_ptr=zeros:f32[8] --out y_ptr=a.npy
  copy "x_ptr=$fill:f32[8]" y_ptr=zeros:f32[8] --out y_ptr=b.npy
  copy "x_ptr=$fill:f32[8]" y_ptr=zeros:f32[8] --seed 1 --out y_ptr=c.npy
  cmp a.npy b.npy
  if cmp -s a.npy c.npy; then echo "another seed, the same numbers: $fill"; exit 1; fi
done
run k.py:copy n=4096 BLOCK=4096 x_ptr=randn:f64[4096] 'y_ptr=zeros:f64[4096]' --out y_ptr=y.npy
"$PYTHON" -c 'import numpy as np; x = np.load("y.npy"); assert abs(x.mean()) < 0.1 and abs(x.std() - 1) < 0.1'
run k.py:copy n=4096 BLOCK=4096 'x_ptr=randint(-2,3):i8[4096]' 'y_ptr=zeros:i8[4096]' --out y_ptr=y.npy
"$PYTHON" -c 'import numpy as np; assert set(np.load("y.npy")) == {-2, -1, 0, 1, 2}'

# every dtype, out and in again
for pair in i1:bool i8:int8 i16:int16 i32:int32 i64:int64 u8:uint8 u16:uint16 u32:uint32 u64:uint64 f16:float16 \
  bf16:float32 f32:float32 f64:float64 f8e4m3:float32 f8e5m2:float32; do
  d=${pair%:*} np=${pair#*:}
  copy "x_ptr=arange:$d[8]" "y_ptr=zeros:$d[8]" --out y_ptr="$d.npy" && holds "$d.npy" "np.arange(8).astype('$np')"
  copy "x_ptr=@$d.npy:$d" "y_ptr=zeros:$d[8]" --out y_ptr=y.npy && holds y.npy "np.arange(8).astype('$np')"
done
copy x_ptr=@f32.npy y_ptr=@f32.npy --out y_ptr=y.npy && cmp y.npy f32.npy
# converted while reading: a third is not exact in bf16, nor 300 in an i8 or f8
"$PYTHON" -c 'import numpy as np; np.save("third.npy", np.full(8, 1 / 3)); np.save("odd:name.npy", np.arange(8.0))'
copy x_ptr=@third.npy:bf16 y_ptr=zeros:bf16[8] --out y_ptr=y.npy && holds y.npy 'np.full(8, 0.333984375, "f4")'
copy x_ptr=@odd:name.npy y_ptr=zeros:f64[8] --out y_ptr=y.npy && holds y.npy 'np.arange(8.0)'
"$PYTHON" -c 'import numpy as np
for v in (1, 2): np.lib.format.write_array(open(f"v{v}.npy", "wb"), np.arange(8, dtype="f4"), version=(v, 0))'
for v in v1 v2; do copy x_ptr=@$v.npy y_ptr=zeros:f32[8] --out y_ptr=y.npy && holds y.npy 'np.arange(8, dtype="f4")'; done

# numbers and constants
run k.py:constants x_ptr=arange:f32[8] y_ptr=zeros:f16[8] OP=twice T=tl.float16 'S="apply, please"' N=None B=True \
  --out y_ptr=y.npy && holds y.npy 'np.arange(0, 16, 2, dtype="f2")'
run k.py:copy n=18446744073709551615 BLOCK=0x8 x_ptr=arange:f32[8] y_ptr=zeros:f32[8] --out y_ptr=y.npy
holds y.npy 'np.arange(8, dtype="f4")'

# symmetric memory, descriptors, ranks
for value in 'desc(arange:f32[4,8];4,8)' 'desc(sym:arange:f32[4,8];4,8)' 'sym:desc(arange:f32[4,8];4,8)'; do
  run k.py:block "d=$value" y_ptr=zeros:f32[4,8] B0=4 B1=8 --out y_ptr=y.npy
  holds y.npy 'np.arange(32, dtype="f4").reshape(4, 8)'
done
copy --ranks 8 'x_ptr=full({rank}):f32[8]' y_ptr=sym:zeros:f32[8] --out 'y_ptr=r{rank}.npy'
for r in 0 1 2 3 4 5 6 7; do holds r$r.npy "np.full(8, $r, 'f4')"; done
copy --ranks 2 --interp 'x_ptr=@r{rank}.npy' y_ptr=zeros:f32[8] --out 'y_ptr=i{rank}.npy' && cmp r1.npy i1.npy
ditron launch -n 2 ditron run k.py:copy --grid 1 --quiet n=8 BLOCK=8 'x_ptr=@r{rank}.npy' y_ptr=zeros:f32[8] \
  --out 'y_ptr=p{rank}.npy' && cmp r0.npy p0.npy && cmp r1.npy p1.npy
copy x_ptr=sym:zeros:f32[80000000] y_ptr=zeros:f32[8] # more than the usual heap

# what is printed
ditron run k.py:copy --grid 1 n=8 BLOCK=8 'x_ptr=full(4294967295):u32[8]' y_ptr=zeros:u32[8] |
  grep -F 'y_ptr u32[8] = 4294967295 4294967295 4294967295'
ditron run k.py:copy --grid 1 n=8 BLOCK=8 'x_ptr=full(nan):f32[8]' y_ptr=zeros:f32[8] | grep -F 'y_ptr f32[8] = nan nan'
