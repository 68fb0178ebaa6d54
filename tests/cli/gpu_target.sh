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
