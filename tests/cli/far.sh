# Tensors of more than 2^31 elements, on any machine: pointers with 64-bit offsets, descriptors, and a product whose pointers are raised, on the CPU,
# the interpreter and the stages that GPUs run. Needs 8 GB of free memory.
# TIMEOUT: 240
free=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
if [ "$free" -lt 8 ]; then
  echo "there are $free GB of free memory, and this needs 8"
  exit 77
fi
cat >far.py <<'K'
import triton
import triton.language as tl


@triton.jit
def far(x_ptr, o_ptr, rows, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = rows - BLOCK + i
    tl.store(x_ptr + row.to(tl.int64) * stride, (i + 1).to(tl.int8), mask=row >= 0)
    tl.debug_barrier()
    tl.store(o_ptr + i, tl.load(x_ptr + row.to(tl.int64) * stride).to(tl.int32))


@triton.jit
def far_block(x_ptr, o_ptr, rows, stride, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x_ptr, [rows, stride], [stride, 1], [BLOCK, 16])
    d.store([rows - BLOCK, stride - 16], (tl.arange(0, BLOCK)[:, None] + tl.arange(0, 16)[None, :]).to(tl.int8))
    tl.debug_barrier()
    i = tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.sum(d.load([rows - BLOCK, stride - 16]).to(tl.int32), axis=1))


@triton.jit
def far_product(x_ptr, b_ptr, o_ptr, rows, stride, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = (rows - BLOCK + i).to(tl.int64)
    acc = tl.zeros((BLOCK, BLOCK), tl.int32)
    for k in range(0, K, BLOCK):
        a = tl.load(x_ptr + row[:, None] * stride + (k + i)[None, :], mask=(row[:, None] < rows) & ((k + i)[None, :] < K), other=0)
        b = tl.load(b_ptr + (k + i)[:, None] + i[None, :] * K)
        acc = tl.dot(a, b, acc)
    tl.store(o_ptr + i[:, None] * BLOCK + i[None, :], acc)
K
X='i8[2300,1000000]' # 2.3e9 elements
for how in "" "--interp" "--stage laid" "--stage lowered"; do
  ditron run far.py:far $how --grid 1 x_ptr=empty:$X o_ptr=zeros:i32[64] rows=2300 stride=1000000 BLOCK=64 | grep -F 'o_ptr i32[64] = 1 2 3 4 5 6 ...'
  ditron run far.py:far_block $how --grid 1 x_ptr=empty:$X o_ptr=zeros:i32[64] rows=2300 stride=1000000 BLOCK=64 |
    grep -F 'o_ptr i32[64] = 120 136 152 168 184 200 ...'
done
# a period of 3, which an offset that lost its upper bits would miss
product() { ditron run far.py:far_product --grid 1 'x_ptr=list(1,2,-3):'$X 'b_ptr=list(1,-2,0,3,1):i8[64,128]' o_ptr=zeros:i32[64,64] rows=2300 stride=1000000 \
  K=128 BLOCK=64 --quiet "$@"; }
product --out o_ptr=cpu.npy
product --out o_ptr=lowered.npy --stage lowered --explain 2>said
grep -q 'this load is raised to a tensor descriptor' said
cmp cpu.npy lowered.npy
"$PYTHON" - <<'P'
import numpy as np
o = np.load("cpu.npy")
x = np.array([1, 2, -3])[(np.arange(2300 - 64, 2300, dtype=np.int64)[:, None] * 1000000 + np.arange(128)) % 3]
b = np.array([1, -2, 0, 3, 1])[np.arange(64 * 128) % 5].reshape(64, 128)
np.testing.assert_array_equal(o, x @ b.T)
P
