# What goes wrong while a kernel runs: said once, with a non-zero exit, and nothing is left running or lying about.
# TIMEOUT: 240
cat >k.py <<'K'
import ditron
import ditron.language as dl
import triton
import triton.language as tl


@triton.jit
def store(x_ptr, y_ptr, OFF: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(y_ptr + i + OFF, tl.load(x_ptr + i))


@triton.jit
def load(x_ptr, y_ptr, OFF: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(y_ptr + i, tl.load(x_ptr + i + OFF))


@triton.jit
def small(x_ptr, y_ptr):
    x = tl.load(x_ptr + tl.arange(0, 8))
    tl.device_assert(x < 5, "x is too large")
    tl.store(y_ptr + tl.arange(0, 8), x)


@triton.jit
def divide(x_ptr, y_ptr):
    i = tl.arange(0, 8)
    tl.store(y_ptr + i, tl.load(x_ptr + i) // tl.load(y_ptr + i))


@triton.jit
def forever(x_ptr):
    while tl.load(x_ptr) < 1:
        tl.atomic_add(x_ptr + 1, 1)


@ditron.jit
def wait(flag_ptr):
    dl.acquire(flag_ptr, at_least=1, scope="sys")


@ditron.jit
def at_peer(x_ptr, peer):
    tl.store(dl.symm_at(x_ptr, peer), 1.0)

K
bad() { # STATUS TEXT COMMAND...
  local status=$1 text=$2 got=0
  shift 2
  timeout 20 "$@" >out 2>err </dev/null || got=$?
  if [ $got != "$status" ] || ! grep -qF -- "$text" err || [ -s out ]; then
    printf '%q ' "$@"
    echo "ended with $got, expected $status and '$text':"
    head -c 2000 out err
    exit 1
  fi
}
XY="x_ptr=arange:f32[8] y_ptr=zeros:f32[8]"
run() { bad "$1" "$2" ditron run k.py:"$3" --grid 1 "${@:4}"; }

# out of bounds: natively undefined, but where the machine notices, the program says what to do
run 1 '--check' store $XY OFF=1000000000000
for how in --interp --check; do
  run 1 'y_ptr[8]' store $how $XY OFF=4
  run 1 'x_ptr[-4]' load $how $XY OFF=-4
  run 1 'k.py:10:5: error: bounds' store $how $XY OFF=1000000000000
done
for how in --warps=4 --interp --check; do
  run 1 'x is too large' small $how $XY
  run 1 'x is too large' small $how --ranks 3 $XY
  # dividing by zero gives what it gives, the same everywhere, and ends nothing
  ditron run k.py:divide --grid 1 --quiet $how x_ptr=arange:i32[8] y_ptr=zeros:i32[8] --out y_ptr=d$how.npy
  ditron run k.py:divide --grid 1 --quiet $how 'x_ptr=full(-2147483648):i32[8]' 'y_ptr=full(-1):i32[8]' --out y_ptr=m$how.npy
done
cmp d--warps=4.npy d--interp.npy && cmp m--warps=4.npy m--interp.npy && cmp d--check.npy d--interp.npy

# peers: a rank that is none, and memory that no peer has
run 1 'rank 2 does not exist; the team has ranks 0 to 1' at_peer --ranks 2 x_ptr=sym:zeros:f32[8] peer=2
run 1 'the pointer to translate for rank 1 is not on the symmetric heap' at_peer --ranks 2 x_ptr=zeros:f32[8] peer=1

# waits: the deadline, its report, no output
run 1 'passed its deadline of 1 s' wait --deadline 1 --ranks 2 flag_ptr=sym:zeros:i64[1] --out flag_ptr=f.npy
line=$(grep -n 'def wait(' k.py | cut -d: -f1)
grep -q "kernel 'wait'.*k.py:$((line + 1)):5.*flag_ptr" err
test ! -e f.npy
run 1 'deadlock' wait --check flag_ptr=sym:zeros:i64[1]
bad 1 'passed its deadline' ditron launch -n 2 ditron run k.py:wait --grid 1 --deadline 1 flag_ptr=sym:zeros:i64[1]

# ranks that disagree, or lack a file
run 1 'disagree' wait --ranks 2 'flag_ptr=sym:zeros:i64[{rank}1]'
bad 1 'disagree' ditron launch -n 2 ditron run k.py:wait --grid 1 'flag_ptr=sym:zeros:i64[{rank}1]'
bad 1 'none1.npy: No such file' ditron launch -n 2 bash -c 'cp "$0" none0.npy; exec "$@"' d--interp.npy \
  ditron run k.py:divide --grid 1 'x_ptr=@none{rank}.npy' y_ptr=ones:i32[8]

# a rank that is killed: the others name it, within seconds
start=$SECONDS
bad 137 'rank 1' ditron launch -n 3 bash -c 'if [ "$DITRON_RANK" = 1 ]; then (sleep 1; kill -9 $$) & fi; exec "$@"' sh \
  ditron run k.py:wait --grid 1 flag_ptr=sym:zeros:i64[1]
test $((SECONDS - start)) -lt 12

# interrupted: ends at once, quietly, leaving nothing
before=$(find /dev/shm -name '*ditron*' | sort)
for command in 'ditron run k.py:forever --grid 1 x_ptr=zeros:i32[2] --out x_ptr=f.npy' \
  'ditron run k.py:forever --grid 1 x_ptr=zeros:i32[2] --out x_ptr=f.npy --interp' \
  'ditron run k.py:wait --grid 1 --ranks 2 flag_ptr=sym:zeros:i64[1] --out flag_ptr=f.npy' \
  'ditron launch -n 2 ditron run k.py:wait --grid 1 flag_ptr=sym:zeros:i64[1] --out flag_ptr=f.npy'; do
  got=0
  timeout -s INT 3 $command >out 2>err || got=$?
  if [ $got != 124 ] || [ -e f.npy ]; then
    echo "$command ended with $got"
    cat out err
    exit 1
  fi
done
sleep 1
test "$before" = "$(find /dev/shm -name '*ditron*' | sort)"
test -z "$(find . -name '*.part' -o -name '*.tmp')"
