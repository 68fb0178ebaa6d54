# The Python package on NumPy arrays: launches against NumPy, kinds of arguments, options, what is refused and how it is said.
# TIMEOUT: 240
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

from _ditron import below, bf16, case, finish, rel_err

sys.path.insert(0, f"{os.environ['BUILD']}/python")

import ditron  # noqa: E402
import ditron.language as tl  # noqa: E402
from ditron.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

SCALE = 3
FACTOR = tl.constexpr(2.5)
HERE = Path(__file__).resolve().parent


@ditron.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr = 64):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + tl.load(y_ptr + i, mask=i < n), mask=i < n)


@ditron.jit
def relu(x):
    return tl.where(x > 0, x, 0.0)


@ditron.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           ACTIVATION: tl.constexpr = None, acc_type: tl.constexpr = tl.float32):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), acc_type)
    for k in range(0, K, BK):
        kk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * sam + kk[None, :] * sak, mask=(m[:, None] < M) & (kk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + kk[:, None] * sbk + n[None, :] * sbn, mask=(kk[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    if ACTIVATION is not None:
        acc = ACTIVATION(acc)
    tl.store(c_ptr + m[:, None] * scm + n[None, :] * scn, acc, mask=(m[:, None] < M) & (n[None, :] < N))


@ditron.jit
def store_all(out_ptr, a, b, c, d, e):
    tl.store(out_ptr, a)
    tl.store(out_ptr + 1, b)
    tl.store(out_ptr + 2, c)
    if d is not None:
        tl.store(out_ptr + 3, d)
    tl.store(out_ptr + 4, e)


@ditron.jit
def with_globals(out_ptr):
    tl.store(out_ptr, SCALE * FACTOR)


@ditron.jit
def blocks(x, y, BM: tl.constexpr):
    y.store([tl.program_id(0) * BM, 0], x.load([tl.program_id(0) * BM, 0]) * 2)


def raises(kind, text, fn, *args, **kwargs):
    try:
        fn(*args, **kwargs)
    except kind as e:
        assert text in str(e), f"'{text}' is not in: {e}"
        return e
    raise AssertionError(f"nothing was raised; expected {kind.__name__} with '{text}'")


# ---- what works --------------------------------------------------------------------------------------


def grids():
    n = 1000
    x, y = np.arange(n, dtype=np.float32), np.full(n, 7, np.float32)
    for grid in [(16,), 16, [16], (16, 1, 1), (np.int64(16),), lambda meta: (ditron.cdiv(meta["n"], meta["BLOCK"]),)]:
        out = np.zeros(n, np.float32)
        add[grid](x, y, out, n)
        assert (out == x + y).all(), grid
    out = np.zeros(n, np.float32)
    add[0,](x, y, out, n)
    assert not out.any()
    add.run(x, y, out, n, BLOCK=128, grid=(8,))
    assert (out == x + y).all()


def keywords():
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    launched = add[(1,)](n=100, out_ptr=out, y_ptr=x, x_ptr=x, BLOCK=128, num_warps=8, num_stages=3, num_ctas=1, maxnreg=None)
    assert (out == 2).all()
    assert (launched.name, launched.num_warps, launched.device) == ("add", 8, "cpu")
    assert add[(1,)](x, x, out, 100, 128).num_warps == 4
    limited = add[(1,)](x, x, out, 100, 128, maxnreg=64)  # another kernel: a CPU has no such limit, but the key does not know
    assert limited is not add[(1,)](x, x, out, 100, 128) and limited is add[(1,)](x, x, out, 100, 128, maxnreg=64)
    for wrong in (23, 256, -1):
        raises(ValueError, f"maxnreg is {wrong}; it must be from 24 to 255", add[(1,)], x, x, out, 100, 128, maxnreg=wrong)


def dtypes():
    for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split():
        x = np.arange(50).astype(name)
        out = np.zeros(50, name)
        add[(1,)](x, x, out, 50)
        assert (out == x + x).all(), name
    x = np.array([True, False] * 8)
    out = np.zeros(16, np.int32)
    add[(1,)](x, np.zeros(16, np.int32), out, 16, 16)
    assert (out == x).all()


def alignment():
    base = np.arange(201, dtype=np.float32)
    out = np.zeros(200, np.float32)
    for at in (0, 1):  # a multiple of 16 bytes, and none: two kernels
        add[(4,)](base[at:], base[at:], out, 200)
        assert (out == 2 * base[at:at + 200]).all()


def strides():
    r = np.random.default_rng(1)
    for dtype, bound in ((np.float32, 1e-5), (np.float16, 2e-3)):
        a, b = r.standard_normal((70, 40)).astype(dtype), r.standard_normal((50, 40)).astype(dtype).T
        c = np.zeros((70, 50), np.float32)
        strides = [s // x.itemsize for x in (a, b, c) for s in x.strides]
        matmul[(3, 2)](a, b, c, 70, 50, 40, *strides, BM=32, BN=32, BK=16, ACTIVATION=relu)
        below(rel_err(c, np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)), bound, dtype.__name__)
        for spelled in (tl.float32, np.float32, np.dtype("float32"), tl.constexpr(tl.float32)):
            matmul[(3, 2)](a, b, c, 70, 50, 40, *strides, 32, 32, 16, acc_type=spelled)
            below(rel_err(c, a.astype(np.float64) @ b.astype(np.float64)), bound, dtype.__name__)


def scalars():
    out = np.zeros(5)
    for values in [(1, 2.5, True, None, 2**40), (17, -3, False, 3, -1), (np.int64(5), np.float32(0.5), np.bool_(True), None, 2**31),
                   (16, np.float64(1.25), np.uint8(3), np.float16(2), -2**63), (tl.constexpr(4), 0.5, tl.constexpr(True), None, 0)]:
        out[:] = 0
        store_all[(1,)](out, *values)
        want = [float(getattr(v, "value", v)) if v is not None else 0 for v in values]
        assert (out == want).all(), (values, out)
    unsigned = np.zeros(5, np.uint64)
    store_all[(1,)](unsigned, 1, 2, 3, None, 2**63 + 5)
    assert unsigned[4] == 2**63 + 5


def descriptors():
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    y = np.zeros_like(x)
    blocks[(4,)](TensorDescriptor.from_tensor(x, [16, 32]), TensorDescriptor.from_tensor(y, [16, 32]), BM=16)
    assert (y == 2 * x).all()
    part = TensorDescriptor(x, [20, 32], [32, 1], [16, 32])  # beyond 20 rows it reads zeros
    y[:] = 1
    blocks[(2,)](part, TensorDescriptor(y, [32, 32], [32, 1], [16, 32]), BM=16)
    assert (y[:20] == 2 * x[:20]).all() and not y[20:32].any() and (y[32:] == 1).all()


def make_scaled(factor):
    @ditron.jit
    def scaled(x_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x_ptr + i, relu(tl.load(x_ptr + i)) * factor + SCALE)

    return scaled


def doubled(n):  # a plain function, which runs while compiling
    return 2 * n


def make_filled(n):
    @ditron.autotune(
        configs=[ditron.Config({"BLOCK": 16})],
        key=[])
    @ditron.jit(do_not_specialize=["unused"])
    def filled(x_ptr, unused, BLOCK: tl.constexpr):
        """A text
  that is less indented than its function."""
        value: tl.constexpr = doubled(n) + SCALE

        tl.store(x_ptr + tl.arange(0, BLOCK), value)

    return filled


class Holder:
    @staticmethod
    @ditron.jit
    def one(x_ptr):
        tl.store(x_ptr, 1.5)


def odd_places():
    """A kernel below decorators over several lines, with a plain function of its file; one in a class."""
    x = np.zeros(16, np.float32)
    for n in (4, 5):
        make_filled(n)[(1,)](x, 3)
        assert (x == 2 * n + SCALE).all()
    Holder.one[(1,)](x)
    assert x[0] == 1.5


def inner_functions():
    for factor in (5, 7):
        x = np.array([1, -1, 2, -2], np.float32)
        make_scaled(factor)[(1,)](x, 4)
        assert (x == np.maximum([1, -1, 2, -2], 0) * factor + SCALE).all()


def globals_built_in():
    global SCALE
    out = np.zeros(1, np.float32)
    with_globals[(1,)](out)
    assert out[0] == 7.5
    SCALE = 4
    try:
        raises(RuntimeError, "the global 'SCALE' has changed", with_globals[(1,)], out)
    finally:
        SCALE = 3
    with_globals[(1,)](out)


class Interface:  # an array of another library
    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__


class Packed:
    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self):
        return self.array.__dlpack__()


def other_arrays():
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    add[(1,)](Interface(x), Packed(x), Interface(out), 16, 16)
    assert (out == 2 * x).all()


def threads():
    wrong = []

    def work(seed):
        x = np.full(4096, seed, np.float32)
        for i in range(30):
            out = np.zeros_like(x)
            add[(64,)](x, x, out, 4096)
            if not (out == 2 * seed).all():
                wrong.append(seed)

    pool = [threading.Thread(target=work, args=(i,)) for i in range(40)]  # more than there are streams
    for t in pool:
        t.start()
    for t in pool:
        t.join()
    assert not wrong


def after_fork():
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    add[(1,)](x, x, out, 64)
    child = os.fork()
    if child == 0:
        try:
            out[:] = 0
            add[(1,)](x, x, out, 64)
            fresh = np.zeros(32, np.float16)
            add[(1,)](fresh, fresh, fresh, 32, 32)
            os._exit(0 if (out == 2).all() else 3)
        except BaseException:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    add[(1,)](x, x, out, 64)


# ---- what is refused -----------------------------------------------------------------------------------


def wrong_calls():
    x = np.zeros(16, np.float32)
    raises(TypeError, "add: argument 'n' is missing", add[(1,)], x, x, x)
    raises(TypeError, "add takes 5 arguments, but 6 were given", add[(1,)], x, x, x, 1, 2, 3)
    raises(TypeError, "no parameter and no option 'SIZE'", add[(1,)], x, x, x, 16, SIZE=3)
    raises(TypeError, "argument 'x_ptr' is given twice", add[(1,)], x, x, x, 16, x_ptr=x)
    raises(TypeError, "'BLOCK' is a constexpr: it takes a constant", add[(1,)], x, x, x, 16, x)
    raises(TypeError, "argument 'x_ptr' (list)", add[(1,)], [1.0], x, x, 16)
    raises(TypeError, "arrays of complex64", add[(1,)], x.astype(np.complex64), x, x, 16)
    raises(TypeError, "not in the machine's order", add[(1,)], x.astype(">f4"), x, x, 16)
    raises(OverflowError, "does not fit 64 bits", add[(1,)], x, x, x, 2**64)
    raises(ValueError, "a grid cannot have -1 programs", add[(-1,)], x, x, x, 16)
    raises(TypeError, "a grid is one to three integers", add[(1, 2, 3, 4)], x, x, x, 16)
    raises(ValueError, "add: num_warps is 64", add[(1,)], x, x, x, 16, num_warps=64)
    raises(ValueError, "add: num_warps is 3; it must be a power of two", add[(1,)], x, x, x, 16, num_warps=3)
    raises(RuntimeError, "launch it as add[grid]", add, x)
    raises(RuntimeError, "only inside of a kernel", tl.load, x)
    raises(TypeError, "made by ditron alone", type(add[(1,)]))
    x.setflags(write=False)
    out = np.zeros(16, np.float32)
    add[(1,)](x, x, out, 16, 16)  # it is only read
    raises(ValueError, "'out_ptr' is read-only, and the kernel writes there", add[(1,)], out, out, x, 16, 16)


def wrong_descriptors():
    x = np.zeros((8, 8), np.float32)
    raises(ValueError, "last axis of a tensor descriptor must be contiguous", TensorDescriptor, x, [8, 8], [1, 8], [8, 8])
    raises(ValueError, "a block size is a power of two", TensorDescriptor, x, [8, 8], [8, 1], [3, 8])
    raises(ValueError, "as many strides", TensorDescriptor, x, [8, 8], [1], [8, 8])


@ditron.jit
def undefined(x_ptr):
    tl.store(x_ptr, missing)  # noqa: F821


@ditron.jit
def types_differ(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


def diagnostics():
    x = np.zeros(16, np.float32)
    e = raises(ditron.CompilationError, "'missing' is not defined", undefined[(1,)], x)
    assert e.status == "COMPILE" and Path(__file__).name in str(e) and "^~~" in str(e) and isinstance(e, RuntimeError)
    raises(ditron.CompilationError, "power of two", types_differ[(1,)], x, BLOCK=12)
    types_differ[(1,)](x, BLOCK=16)
    assert (x == 1).all()


@ditron.jit
def asserts(x_ptr, n):
    tl.device_assert(n < 3, "too many")
    tl.store(x_ptr, n)


def assertions():
    x = np.zeros(1, np.int32)
    asserts[(1,)](x, 5)  # off, as in Triton unless debugging
    assert x[0] == 5
    raises(AssertionError, "too many", asserts[(1,)], x, 7, debug=True)
    assert x[0] == 5
    asserts[(1,)](x, 2, debug=True)  # and on it goes
    assert x[0] == 2


PRINTS = """
import sys
sys.path.insert(0, {path!r})
import ditron, numpy as np
import ditron.language as tl
@ditron.jit
def show(x_ptr):
    tl.device_print("value", tl.load(x_ptr))
show[(1,)](np.array([41], np.int32))
print("end")
"""


def run_python(text, **env):
    path = f"{os.environ['BUILD']}/python"
    Path("program.py").write_text(text.format(path=path))
    return subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, timeout=100, env=dict(os.environ, **env))


def printing():
    p = run_python(PRINTS)
    assert p.returncode == 0, p.stderr
    lines = p.stdout.splitlines()
    assert "value" in lines[0] and "41" in lines[0] and lines[-1] == "end", p.stdout


CRASH = """
import sys
sys.path.insert(0, {path!r})
import ditron, numpy as np
import ditron.language as tl
from ditron import _compile
from pathlib import Path
good, bad = _compile.PROGRAM, Path("crashes")
bad.write_text("#!/bin/sh\\nhead -c 4 >/dev/null\\necho 'cannot select' >&2\\nkill -SEGV $$\\n")
bad.chmod(0o755)
@ditron.jit
def k(x_ptr):
    tl.store(x_ptr, 5)
x = np.zeros(1, np.int32)
_compile.PROGRAM = bad.resolve()
try:
    k[(1,)](x)
except ditron.Error as e:
    assert "crashed (signal 11)" in str(e) and "cannot select" in str(e), e
    print("told")
bad.write_text("#!/bin/sh\\nsleep 50\\n")
ditron._settings.COMPILE_SECONDS = 1
try:
    k[(1,)](x)
except ditron.Error as e:
    assert "did not end within 1 s" in str(e), e
    print("told")
_compile.PROGRAM = good
ditron._settings.COMPILE_SECONDS = 100
k[(1,)](x)
print(x[0])
"""


def crashes():
    p = run_python(CRASH)
    assert p.returncode == 0 and p.stdout == "told\ntold\n5\n", p.stdout + p.stderr


CACHED = """
import sys
sys.path.insert(0, {path!r})
import ditron, numpy as np
import ditron.language as tl
from ditron import _compile
@ditron.jit
def k(x_ptr):
    tl.store(x_ptr, 6)
x = np.zeros(1, np.int32)
k[(1,)](x)
print(x[0], len(_compile.WORKERS.idle))
"""


def cached():
    """The second process starts no child; without a cache each does."""
    first, second, off = run_python(CACHED), run_python(CACHED), run_python(CACHED, DITRON_CACHE_OFF="1")
    assert (first.stdout, second.stdout, off.stdout) == ("6 1\n", "6 0\n", "6 1\n"), (first, second, off)


FOR_TRITON = """
import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as of_cuda
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.autotune([triton.Config({{"BLOCK": 16}})], key=["n"])
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, libdevice.tanh(tl.load(x_ptr + i, mask=i < n)) + of_cuda.rsqrt(4.0), mask=i < n)


x = np.zeros(9, np.float32)
kernel[(triton.cdiv(9, 16),)](x, 9)
assert (x == 0.5).all() and isinstance(kernel.fn, JITFunction)
"""
AS_TRITON = """
import sys
sys.path.insert(0, {path!r})
import ditron
ditron.as_triton()
ditron.as_triton()
import for_triton
print("ran")
"""


def in_place_of_triton():
    Path("for_triton.py").write_text(FOR_TRITON.format())
    p = run_python(AS_TRITON)
    assert p.stdout == "ran\n", p.stdout + p.stderr


def small_floats():
    """Element types of packages that add them to NumPy, by their names."""

    class Small:
        dtype = "bfloat16"

        def __init__(self, bits):
            self.bits = bits.view("V2")
            self.__array_struct__ = self.bits.__array_struct__

    x = bf16(np.arange(16, dtype=np.float32) / 8)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    out = np.zeros(16, np.float32)
    add[(1,)](Small(bits), out, out, 16, 16)
    assert (out == x).all()


def python_39():
    import ast
    for path in sorted((HERE.parent.parent / "python").rglob("*.py")):
        ast.parse(path.read_text(), str(path), feature_version=(3, 9))


for fn in (grids, keywords, dtypes, alignment, strides, scalars, descriptors, inner_functions, odd_places, globals_built_in, other_arrays, threads,
           after_fork, wrong_calls, wrong_descriptors, diagnostics, assertions, printing, crashes, cached, in_place_of_triton, small_floats,
           python_39):
    case(fn.__name__, fn)
finish()
