# What the compiler shows of itself and reads back; timelines; help; the launcher.
# TIMEOUT: 240
cat >k.py <<'K'
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
K
sig='x_ptr=*f32:16, y_ptr=*f32, n=i32, BLOCK=128'
has() { grep -qF -- "$2" "$1" || { echo "$1 lacks: $2"; cat "$1"; exit 1; }; }

for command in run compile opt pack bench launch info; do
  ditron $command --help >help
  has help "usage: ditron $command"
  ditron --help | grep -q "  $command "
done
ditron run --help >help
has help '@FILE.npy[:DTYPE]'

for stage in ast tile placed llvm asm; do ditron compile k.py:copy --sig "$sig" --emit $stage >$stage; done
has ast copy
has tile 'module stage=tile'
has placed 'module stage=placed'
has llvm 'define '
has asm 'copy'
ditron compile k.py:copy --sig "$sig" --emit tile -o tile.ir && cmp tile tile.ir
ditron compile k.py:copy --sig "$sig" --dump=all >all
for pass in $(sed -n 's,^// ---- after ,,p' all | grep -v ' ' | sort -u); do
  ditron compile k.py:copy --sig "$sig" --dump=$pass >dump.ir
  ditron opt dump.ir | cmp - dump.ir # it reads back as it was
done
# a stage that is none: the passes are named, each once
if ditron compile k.py:copy --sig "$sig" --emit nonsense 2>said; then exit 1; fi
has said 'passes: inline, fold, cse, licm, waits, dce, strength, contract, wait_class, params, place, prefetch, outline; or all'
if ditron compile k.py:copy --sig "$sig" --emit raise 2>said; then exit 1; fi
has said 'it runs: inline, fold, cse,'
ditron opt inline,fold cse -o once.ir tile.ir
ditron opt inline fold cse - <tile.ir | cmp - once.ir
ditron compile k.py:copy --sig "$sig" --explain 2>remarks >report
has remarks "wait class of 'copy' is none"
ditron compile k.py --list | grep -x 'copy(x_ptr, y_ptr, n, BLOCK: constexpr)'
ditron compile "$ROOT/kernels/grouped_gemm.py" --list >listed # not what its kernels call
grep -q '^grouped_gemm_descriptor_kernel(' listed
if grep '^group_of(' listed; then exit 1; fi
ditron compile k.py:copy --sig 'x_ptr=*f32, y_ptr=*f32, n=u64:16, BLOCK=8' --emit tile >tile
has tile '%n: i64 {divisible=16, unsigned=true}'

ditron run k.py --grid 4 --ranks 3 --trace t.json --trace t.svg x_ptr=arange:f32[512] y_ptr=zeros:f32[512] n=512 BLOCK=128 >report
has report 'copy: grid 4x1x1 on 3 ranks: compiled in'
grep -x '  on rank 0:' report # whose values follow
"$PYTHON" - <<'P'
import json
import xml.dom.minidom
events = json.load(open("t.json"))["traceEvents"]
assert {e["pid"] for e in events} >= {0, 1, 2}, events
assert any("copy" in e["name"] for e in events), events
assert "copy" in xml.dom.minidom.parse("t.svg").toxml()
P
# a compile that fails leaves no timeline
if ditron run k.py --grid 4 --trace never.json x_ptr=arange:f32[512] y_ptr=zeros:f32[512] n=512 BLOCK=100 2>said; then exit 1; fi
has said 'BLOCK'
test ! -e never.json
ditron run k.py --grid 1 --check x_ptr=arange:f32[128] y_ptr=zeros:f32[128] n=128 BLOCK=128 >report
has report 'copy: grid 1x1x1 on 1 rank, interpreted and checked: nothing found,'
if grep 'on rank 0' report; then exit 1; fi
ditron run k.py --grid 1 --ranks 2 --interp x_ptr=arange:f32[128] y_ptr=zeros:f32[128] n=128 BLOCK=128 | grep -x '  on rank 0:'
ditron run k.py --grid 0 x_ptr=arange:f32[128] y_ptr=zeros:f32[128] n=128 BLOCK=128 | grep -F 'y_ptr f32[128] = 0 0' # no instances

# found on PATH, the program knows where its kernels are
ditron info | sed -n 's/^kernels *//p' | { read -r dir; test -f "$dir/matmul.py"; }

test "$(ditron launch -n2 echo -- a)" = "-- a
-- a"
ditron launch -n 2 -- bash -c 'test -n "$0"' --help

# a link is written through
ln -s target.npy link.npy && touch target.npy
ditron run k.py --grid 1 --quiet x_ptr=arange:f32[128] y_ptr=zeros:f32[128] n=128 BLOCK=128 --out y_ptr=link.npy
test -L link.npy && test -s target.npy

# progress shows only on a terminal, and only beyond two seconds
cat >slow.py <<'K'
import triton
import triton.language as tl


@triton.jit
def slow(x_ptr, n):
    for i in range(n):
        tl.atomic_add(x_ptr, 1)
K
"$PYTHON" - <<'P'
import os
import pty
import subprocess

def on_terminal(n, *more):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("timeout", ["timeout", "-s", "INT", "4", "ditron", "run", "slow.py", "--grid", "1", "x_ptr=zeros:i32[1]", f"n={n}", *more])
    out = b""
    try:
        while data := os.read(fd, 4096):
            out += data
    except OSError:
        pass
    os.waitpid(pid, 0)
    return out.decode()

assert "running [" not in on_terminal(10)
assert "running [" in on_terminal(2**31 - 1)
assert "interpreting [" in on_terminal(2**31 - 1, "--interp")
quiet = subprocess.run(["timeout", "-s", "INT", "4", "ditron", "run", "slow.py", "--grid", "1", "x_ptr=zeros:i32[1]", f"n={2**31 - 1}"],
                       capture_output=True)
assert not quiet.stderr and not quiet.stdout, quiet
P
