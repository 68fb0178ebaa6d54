# A sample of the jit functions of public kernel packages is read by the front end: none crashes it or takes it a second, and
# few are refused. Where scripts/setup could not fetch the packages there is nothing to read.
# TIMEOUT: 600
# the sweep itself: wrong programs are refused and counted, right ones read, whatever their arguments
mkdir -p site/pack
cat >site/pack/__init__.py </dev/null
cat >site/pack/ops.py <<'EOF'
import triton
import triton.language as tl


@triton.jit
def _scale(x, factor: tl.constexpr):
    return x * factor


@triton.jit
def right(X, Y, n, stride, BLOCK: tl.constexpr, HAS_Y: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + offs * stride, mask=offs < n, other=0.0)
    if HAS_Y:
        x += tl.load(Y + offs, mask=offs < n, other=0.0)
    tl.store(X + offs * stride, _scale(x, 2.0), mask=offs < n)


@triton.jit
def wrong(X):
    tl.store(X, tl.load(X) + not_there)


@triton.jit
def pair(a, b):
    return tl.dot(a, tl.trans(b)), tl.sum(a, axis=1)


@triton.jit
def with_mode(X, MODE: tl.constexpr):
    tl.static_assert(MODE == "up" or MODE == "down")
    tl.store(X, 1.0 if MODE == "up" else 2.0)
EOF
sweep() { "$PYTHON" "$ROOT/tests/corpus/sweep.py" --build "$BUILD" --jobs 1 "$@"; }
sweep --site site --packages pack --most 25 | tee out
grep -Eq '^pack +5 +4 +1 +0 +0$' out
grep -q "'...' is not defined    e.g. pack/ops.py:[0-9]*:wrong" out
! sweep --site site --packages pack --most 10 >out

deps=$ROOT/build/deps
if [ ! -f "$deps/kernels/ready" ] && [ ! -f "$deps/corpus/ready" ]; then
  echo "skipped: no packages of kernels in build/deps; scripts/setup fetches them, and needs the network for it"
  exit 77
fi
sweep --packages liger_kernel,fla,flag_gems --sample 90 --most 12
