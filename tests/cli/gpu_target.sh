# Code for GPUs, made on any machine: the text of each stage, images with and without ptxas, what is refused.
# TIMEOUT: 120
cat >k.py <<'K'
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def odd(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, tl.inline_asm_elementwise("add.s32 $0, $1, $1;", "=q,r", [x], dtype=tl.int32, is_pure=True, pack=1))
K
sig='x_ptr=*f32:16, y_ptr=*f32:16, n=i32:16, BLOCK=512'
has() { grep -qF -- "$2" "$1" || { echo "$1 lacks: $2"; cat "$1"; exit 1; }; }

for machine in sm_80 sm_89 sm_90a; do
  ditron compile k.py:copy --target $machine --sig "$sig" --emit asm >asm
  has asm ".target $machine"
  has asm '.entry copy('
  has asm '.reqntid 128'
  has asm 'ld.global.v4.b32'
  has asm '.loc'
  ditron compile k.py:copy --target $machine --sig "$sig" --emit llvm >llvm
  has llvm 'ptr addrspace(1)'
done
ditron compile k.py:copy --target sm_90a --sig "$sig" --warps 8 --emit asm >asm
has asm '.reqntid 256'

# without the assembler the text itself is kept, for the driver
DITRON_CACHE_OFF=1 DITRON_PTXAS=/nowhere/ptxas ditron compile k.py:copy --target sm_80 --sig "$sig" -o text.image >report
has text.image '.target sm_80'
# where only the variant without tensor maps cannot be assembled there is none, and it is said
cat >product.py <<'K'
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + i[:, None] * stride + (k + i)[None, :], mask=(k + i)[None, :] < K, other=0.0)
        b = tl.load(b_ptr + (k + i)[:, None] * N + i[None, :], mask=(k + i)[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * N + i[None, :], acc.to(tl.float16))
K
cat >choosy <<'B'
#!/bin/bash
for f; do
  case $f in /proc/*) files+=("$f") ;; esac
done
grep -q cp.async.bulk.tensor "${files[0]}" || { echo "ptxas fatal   : too plain" >&2; exit 255; }
echo code >"${files[1]}"
B
chmod +x choosy
product='a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f16:16, M=i32:16, N=i32:16, K=i32:16, stride=i32:16, BLOCK=64'
DITRON_CACHE_OFF=1 DITRON_PTXAS=$PWD/choosy ditron compile product.py --target sm_90a --sig "$product" -o one.image --explain 2>said
has said 'remark: no variant without tensor maps stands behind it, as then: target nvptx: ptxas refused the code (exit code 255): ptxas fatal   : too plain'
has one.image 'no variant without tensor maps stands behind it'
DITRON_CACHE_OFF=1 DITRON_PTXAS=/nowhere/ptxas ditron compile product.py --target sm_90a --sig "$product" -o two.image --explain 2>said
if grep -F 'stands behind it' said two.image; then exit 1; fi

# too large for a block's memory, or for a thread: the largest users, and what to lower
cat >large.py <<'K'
import triton
import triton.language as tl


@triton.jit
def sorted(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, tl.sort(x) + x)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        acc = tl.dot(tl.load(a_ptr + i[:, None] * K + k + i), tl.load(b_ptr + (k + i)[:, None] * BLOCK + i), acc)
    tl.store(c_ptr + i[:, None] * BLOCK + i, acc)
K
for machine in sm_80 sm_90a; do
  if ditron compile large.py:sorted --target $machine --warps 1 --sig 'x_ptr=*f32:16, y_ptr=*f32:16, BLOCK=8192' -o never.image 2>said; then exit 1; fi
  has said 'large.py:6:1: error: kernel sorted is too large: '
  has said 'at most 100000 can be compiled'
  grep -q 'Most come from: operations [0-9]* (line 9), ' said
  has said 'hint: more warps (num_warps) or smaller blocks'
  if ditron compile large.py:product --target $machine --stages 4 --warps 8 --sig 'a_ptr=*f16:16, b_ptr=*f16:16, c_ptr=*f32:16, K=i32:16, BLOCK=256' \
    -o never.image 2>said; then exit 1; fi
  has said 'error: kernel product needs 1048576 bytes of shared memory a block; '
  has said 'Its largest buffers, in bytes: 4 stages of a buffer 524288 (line 16), 4 stages of a buffer 524288 (line 16)'
  has said 'hint: smaller blocks or fewer stages (num_stages)'
done
test ! -e never.image

cat >broken <<'B'
#!/bin/sh
echo "ptxas fatal   : out of patience" >&2
exit 255
B
chmod +x broken
if DITRON_CACHE_OFF=1 DITRON_PTXAS=$PWD/broken ditron compile k.py:copy --target sm_80 --sig "$sig" -o never.image 2>said; then exit 1; fi
has said 'out of patience'
test ! -e never.image

# it is started before the kernel is read; one that reads files only is started again, and one that nobody needs is ended
# too few registers for a product are the limit's fault
cat >few <<'END'
#!/bin/sh
echo "ptxas fatal   : (C7602) Insufficient registers (128) to compile instruction at line 7 in function 'product'. Please recompile with a register target of 154 or higher" >&2
exit 255
END
chmod +x few
if DITRON_CACHE_OFF=1 DITRON_PTXAS=$PWD/few ditron compile k.py:copy --target sm_90a --sig "$sig" --maxnreg 128 -o never.image 2>said; then exit 1; fi
has said 'the kernel needs 154 registers a thread or more; maxnreg is 128'
has said 'a larger maxnreg or none'

if ptxas=$(command -v ptxas || command -v /usr/local/cuda/bin/ptxas); then
  cat >files_only <<B
#!/bin/sh
echo "\$*" >>calls
case "\$*" in */proc/self/fd/0*) echo "ptxas fatal : not a file"; exit 1 ;; esac
exec $ptxas "\$@"
B
  chmod +x files_only
  DITRON_CACHE_OFF=1 ditron compile k.py:copy --target sm_80 --sig "$sig" -o ahead.image >report
  DITRON_CACHE_OFF=1 DITRON_PTXAS=$PWD/files_only ditron compile k.py:copy --target sm_80 --sig "$sig" -o file.image >report
  test "$(wc -l <calls)" = 2
  test "$(wc -c <ahead.image)" -lt "$(wc -c <file.image)" # without the copy of the text
  printf '#!/bin/sh\necho $$ >pid\nexec sleep 100\n' >sleeper
  chmod +x sleeper
  if DITRON_PTXAS=$PWD/sleeper ditron compile k.py:copy --target sm_80 --sig 'x_ptr=*f32, y_ptr=*f32, n=i32, BLOCK=3' -o never.image 2>said; then exit 1; fi
  if test -e pid && kill -0 "$(cat pid)" 2>said; then exit 1; fi
fi

if ditron compile k.py:odd --target sm_90a --sig 'x_ptr=*i32, y_ptr=*i32, BLOCK=128' -o never.image 2>said; then exit 1; fi
has said "the constraint '=q' is none of h, r, l, f, d and b"
has said 'k.py:15'
if ditron compile k.py:copy --target sm_70 --sig "$sig" 2>said; then exit 1; fi
has said "unknown target 'sm_70'"
