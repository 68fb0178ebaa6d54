# Bad command lines and bad programs: one clear error each, the right exit status, in little time and memory.
# TIMEOUT: 300
ulimit -v 12000000
cat >k.py <<'K'
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def other(x_ptr):
    pass
K
# bad STATUS TEXT COMMAND...: ends with that status after exactly one error, which holds the text
bad() {
  local status=$1 text=$2 got=0
  shift 2
  timeout 20 "$@" >out 2>err </dev/null || got=$?
  if [ $got != "$status" ] || ! grep -qF -- "$text" err || [ -s out ] ||
    [ "$(grep -cE '^ditron|: error: |^error: ' err)" != 1 ]; then
    printf '%q ' "$@"
    echo "ended with $got, expected $status and one error with '$text':"
    head -c 2000 out err
    exit 1
  fi
}
run() { bad "$1" "$2" ditron run k.py:copy --grid 1 "${@:3}"; }
T="x_ptr=arange:f32[8] y_ptr=zeros:f32[8]"
A="$T n=8 BLOCK=8"

# ---- the command line
bad 2 'no command' ditron frobnicate
bad 2 'which file' ditron run
bad 2 '--grid X' ditron run k.py:copy $A
for grid in '' x -1 1,2,3,4 4294967296 1, 1.5 99999999999999999999999; do bad 2 '--grid' ditron run k.py:copy --grid="$grid" $A; done
bad 1 'too large' ditron run k.py:copy --grid 4294967295,4294967295,4294967295 $A
bad 2 'needs a value' ditron run k.py:copy --grid
bad 2 "no option '--frob'" ditron run k.py:copy --frob $A
bad 2 'takes no value' ditron run k.py:copy --interp=yes $A
for o in --ranks=300 --ranks=0 --ranks=x --warps=33 --seed=-1 --threads=0 --deadline=0 --deadline=nan --deadline=inf --deadline=1e30; do
  run 2 "${o%%=*} takes a" $o $A
done
run 1 'power of two' --warps 3 $A
run 1 "unknown target 'z80'" --target z80 $A
run 2 '.json or a .svg' --trace t.txt $A
run 2 '--interp' --trace t.svg --interp $A
for out in y_ptr y_ptr= =f.npy z=f.npy n=f.npy; do run 2 '--out' --out "$out" $A; done
bad 1 'more than one kernel' ditron run k.py --grid 1 $A
bad 1 "no jit function 'nope'" ditron run k.py:nope --grid 1 $A
bad 1 'No such file' ditron run nope.py --grid 1 $A
bad 1 'Is a directory' ditron run . --grid 1 $A
run 1 "needs a value for 'BLOCK'" $T n=8
run 1 "no parameter 'z'" $A z=3
run 1 'given twice' $A n=8
run 1 'pointer' y_ptr=zeros:f32[8] x_ptr=3 n=8 BLOCK=8
run 1 'constexpr' $T n=8 BLOCK=zeros:f32[8]
run 1 'power of two' $T n=8 BLOCK=7
run 1 'empty' $T n=8 BLOCK=-8
for v in 99999999999999999999999 -99999999999999999999999; do run 2 'more than 64 bits' $T n=$v BLOCK=8; done
for v in n= n=@ =3 n n=zero:f32[8] n=zeros: n=zeros:f32 n=zeros:f33[8] n=zeros:f32[8 n=zeros:f32[-8] 'n=zeros:f32[8]x' \
  'n=randint(5):f32[8]' 'n=full:f32[8]' 'n=full(a):f32[8]' 'n=zeros(1):f32[8]' 'n=zeros:f32[1,1,1,1,1,1,1,1,1]' \
  'n=zeros:f32[10995116277760]' 'n=zeros:f32[4294967296,4294967296,4294967296]' 'n=desc(zeros:f32[8])' 'n=desc(zeros:f32[8];0)' \
  'n=desc(zeros:f32[8];8,8)' 'n=desc(zeros:f32[8];8' n=sym:3 n=tl.float17 'n="x'; do
  run 2 "${v:0:2}" $T BLOCK=8 "$v"
done
run 1 'GiB' x_ptr=randn:f32[1099511627776] y_ptr=zeros:f32[8] n=8 BLOCK=8
run 1 'GiB' x_ptr=randn:f32[1099511627776] y_ptr=zeros:f32[8] n=8 BLOCK=8 --interp
run 1 'GiB' x_ptr=sym:zeros:f32[1099511627776] y_ptr=zeros:f32[8] n=8 BLOCK=8
run 1 'GiB' --ranks 256 x_ptr=zeros:f32[268435456] y_ptr=zeros:f32[8] n=8 BLOCK=8

bad 2 'which file' ditron compile
for sig in x_ptr 'x_ptr=*f33' 'x_ptr=*f32:x' 'x_ptr=*f32:0' 'n=i32:9999999999' 'n=i32:15' 'n=i32:32' 'x=*f32:8' 'x=desc(f32)' 'x=desc(f32;8' 'x=desc(f32;4294967360)' 'x=desc(f32;99999999999999999999)' 'x=zeros:f32[8]' 'x=f32:16' '='; do
  bad 2 -- ditron compile k.py:copy --sig "$sig"
done
bad 2 'one of them' ditron compile k.py:copy --emit tile --dump fold
bad 1 "'nope'" ditron compile k.py:copy --emit nope --sig 'x_ptr=*f32, y_ptr=*f32, n=i32, BLOCK=8'
bad 1 "needs a value for 'x_ptr'" ditron compile k.py:copy
bad 2 'which passes' ditron opt
printf 'module stage=tile warps=4 stages=2 lanes=32\n' >m.ir
bad 1 "no pass 'nope'" ditron opt nope m.ir
bad 1 'No such file' ditron opt fold nope.ir
bad 1 'Is a directory' ditron opt fold .
bad 1 'expected module' ditron opt fold k.py
bad 1 'expected module' ditron opt fold /dev/null
bad 2 '-o FILE' ditron pack --op add
bad 2 "no dtype 'f33'" ditron pack --op add --dtype f33 -o p.dtp
bad 1 "no operator 'nope'" ditron pack --op nope -o p.dtp
bad 1 "no variant 'nope'" ditron pack --op add --variant nope -o p.dtp
bad 1 'multiple of the 3 ranks' ditron pack --op ag_gemm --ranks 3 --m 100 -o p.dtp
bad 2 'which operator' ditron bench
bad 2 "no operator 'nope'" ditron bench nope
bad 2 "no dtype 'f33'" ditron bench add --dtype f33
bad 1 'too large' ditron bench matmul --m 8796093022207 --n 8796093022207
bad 1 'GiB' ditron bench add --n 1000000000000
printf '# nothing\n' >shapes
bad 1 'no shapes' ditron bench add --shapes shapes
printf '4 x\n0 0 0\n' >shapes
bad 1 'not a shape' ditron bench add --shapes shapes
bad 2 'how many ranks' ditron launch true
bad 2 'which program' ditron launch -n 2
bad 127 'no such program' ditron launch -n 2 no-such-program
bad 127 'Is a directory' ditron launch -n 2 /
bad 127 'Permission denied' ditron launch -n 2 ./k.py
for knob in THREADS DEADLINE COMPILE_MB; do
  bad 1 "DITRON_$knob is 'abc', but must be a whole number from 0" env DITRON_$knob=abc ditron info
  bad 1 "DITRON_$knob is '-1', but must be a whole number from 0" env DITRON_$knob=-1 ditron info
done
bad 1 "DITRON_CACHE_OFF is 'abc', but must be 0 or 1" env DITRON_CACHE_OFF=abc ditron info
bad 1 "DITRON_VERIFY_EACH is '2', but must be 0 or 1" env DITRON_VERIFY_EACH=2 ditron run k.py:copy --grid 1 $A

# ---- programs
program() { # STATUS TEXT: compiles standard input
  cat >p.py
  bad "$1" "$2" ditron compile p.py:k --sig 'x_ptr=*f32'
}
head='import triton
import triton.language as tl
from triton_dist.language.extra import language_extra as le


@triton.jit
def k(x_ptr):
'
body() { printf '%s    %s\n' "$head" "$2" | program 1 "$1"; }
python() { "$PYTHON" -c "head = '''$head'''
$2" | program 1 "$1"; }
printf '' | program 1 'no jit function'
head -c 4096 /dev/urandom | program 1 'UTF-8'
printf '%s    pass # \xff\n' "$head" | program 1 'UTF-8'
printf '%s    pass\0\n' "$head" | program 1 'NUL'
"$PYTHON" -c 'print("x = 1 #" + "x" * (100 << 20))' | program 1 'MiB'
printf '#include <stdio.h>\nint main(void) { return 0; }\n' | program 1 'not Python'
body 'never ends' 'x = "open'
body 'never ends' 'x = """open'
for nest in '"(" * 50000 + "1" + ")" * 50000' '"[" * 50000 + "]" * 50000' '"-" * 60000 + "1"' '"not " * 60000 + "1"' '"1 if 1 else " * 60000 + "1"' \
  '"x_ptr" + ".a" * 20000' '"x_ptr" + "()" * 20000' '"1" + " + 1" * 20000' '"(" + "1," * 60000 + ")"'; do
  python 'error' "print(head + '    a = ' + $nest)"
done
python 'too many levels' 'print(head + "".join(" " * (i + 4) + "if x_ptr:\n" for i in range(3000)) + " " * 3004 + "pass")'
python 'too many levels' 'print(head + "".join(" " * (i + 4) + f"def f{i}():\n" for i in range(3000)) + " " * 3004 + "pass")'
python 'too many levels' 'print(head + "".join(" " * (i + 4) + f"for i{i} in range(2):\n" for i in range(3000)) + " " * 3004 + "pass")'
python 'levels deep' 'print(head + "    i = tl.program_id(0)\n    if i == 0:\n        pass\n" + "".join(f"    elif i == {i}:\n        tl.store(x_ptr, 1.0)\n" for i in range(5000)))'
body 'static_range would be unrolled' 'for i in tl.static_range(10**18): tl.store(x_ptr, 1.0)'
body 'step 0' 'for i in tl.static_range(0, 10, 0): tl.store(x_ptr, 1.0)'
body 'calls itself' 'k(x_ptr)'
printf '%s    f(1)\n@triton.jit\ndef f(x):\n    g(x)\n@triton.jit\ndef g(x):\n    f(x)\n' "$head" | program 1 'calls itself'
printf '%s    f(0)\n@triton.jit\ndef f(n: tl.constexpr):\n    f(n + 1)\n' "$head" | program 1 'nest more than'
body 'at most 1048576 elements' 'x = tl.zeros([2**20, 2**20], tl.float32)'
body 'at most 1048576 elements' 'x = tl.zeros([2**62, 4], tl.float32)'
body 'powers of two' 'x = tl.zeros([3, 4], tl.float32)'
body 'powers of two' 'x = tl.zeros([-4, 4], tl.float32)'
body '32 bits' 'x = tl.arange(0, 2**31)'
body 'beyond 127 bits' 'x = 10**1000000000'
body 'beyond 127 bits' 'x = 1 << 1000000000000'
body 'division by zero' 'x = 1 // 0'
body 'division by zero' 'x = 1 % 0'
body 'not supported' 'with x_ptr: pass'
body 'not supported' 'class C: pass'
body 'error' 'tl.store(x_ptr)'
body 'error' 'tl.store(x_ptr, 1.0, 2, 3, 4, 5, 6, 7, 8, 9)'
body 'error' 'tl.store(x_ptr, 1.0, nope=3)'
body 'error' 'tl.nope(x_ptr)'
body 'static assertion' 'tl.static_assert(False)'
printf '%s    if le.tid(0) < 3:\n        tl.store(x_ptr + tl.arange(0, 8), 1.0)\n' "$head" | program 1 'all threads of the block'
for text in 'mov.u32 $0, $1;' 'frobnicate' ''; do
  body 'assembly' "x = tl.inline_asm_elementwise('$text', '=r,r', [tl.arange(0, 8)], dtype=tl.int32, is_pure=True, pack=1); tl.store(x_ptr, tl.sum(x))"
done
# odd but right: another newline, a byte order mark, tabs, a long line
for text in 'import triton\r\n@triton.jit\r\ndef k(x_ptr):\r\n    pass\r\n' '\xef\xbb\xbfimport triton\n@triton.jit\ndef k(x_ptr):\n    pass\n' \
  'import triton\n@triton.jit\ndef k(x_ptr):\n\tif 1 > 0:\n\t\tpass\n'; do
  printf "$text" >p.py
  ditron compile p.py --sig 'x_ptr=*f32' >/dev/null
done
test -z "$(ls -- *.dtp *.svg *.npy *.part *.tmp 2>/dev/null)" # nothing was left behind
