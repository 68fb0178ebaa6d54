# Kernels that end badly say who and where, and leave nothing running.
cat >k.py <<'PY'
import ditron.language as dl
import triton
import triton.language as tl


@triton.jit
def wait(flag_ptr, o_ptr):
    dl.acquire(flag_ptr, at_least=1, scope="sys")
    tl.store(o_ptr, 1)


@triton.jit
def check(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.device_assert(x < 5, "x is small")
    tl.store(o_ptr + i, x, mask=i < n)


@triton.jit
def wild(o_ptr, n):
    tl.store(o_ptr + n.to(tl.int64) * 4096, 1)
PY

says() { # TEXT ARGUMENTS...: the run fails and says TEXT
  local text=$1
  shift
  if ditron run "$@" --device "$DEVICE" >out 2>&1; then
    echo "it succeeded: ditron run $*"
    exit 1
  fi
  grep -qF -- "$text" out || { echo "not said: $text"; cat out; exit 1; }
}

says "kernel 'wait', program (0, 0, 0)" k.py:wait --deadline 1 --grid 1 flag_ptr=sym:zeros:i64[4] o_ptr=zeros:i32[1]
grep -qF "at k.py:8:5: waited longer than its deadline of 1 s" out || { cat out; exit 1; }
grep -qF "'flag_ptr' + 0 should be >= 1, but is 0" out || { cat out; exit 1; }
says "assertion failed: x is small" k.py:check --grid 1 x_ptr=arange:i32[8] o_ptr=zeros:i32[8] n=8 BLOCK=8
grep -qF "kernel 'check', program (0, 0, 0)" out || { cat out; exit 1; }
says "kernel 'wild' on $DEVICE" k.py:wild --grid 1 o_ptr=zeros:i32[8] n=1000000000
grep -qF "used memory that is not its own" out || { cat out; exit 1; }
says "is too large" k.py:wild --grid 1,70000 o_ptr=zeros:i32[8] n=0
says "has one rank, not 2" k.py:wild --ranks 2 --grid 1 o_ptr=zeros:i32[8] n=0
