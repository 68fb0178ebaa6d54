# The Python package on a GPU that is none, the driver made of host memory: devices of arrays, the current stream, what reaches the
# driver in a launch, failures.
# TIMEOUT: 240
import ctypes as c
import inspect
import os
import sys
import types

import numpy as np

from _ditron import case, finish

FAKE = f"{os.environ['BUILD']}/tests/libcuda_fake.so"
os.environ["DITRON_LIBCUDA"] = FAKE
os.environ["DITRON_PTXAS"] = "/nowhere/ptxas"  # the driver gets text
sys.path.insert(0, f"{os.environ['BUILD']}/python")

import ditron  # noqa: E402
import ditron.language as tl  # noqa: E402
from ditron import _ditron as native  # noqa: E402
from ditron.tools.tensor_descriptor import TensorDescriptor  # noqa: E402


class Launch(c.Structure):
    _fields_ = [("entry", c.c_char_p), ("args", c.POINTER(c.c_uint8)), ("bytes", c.c_size_t), ("grid", c.c_uint * 3),
                ("block", c.c_uint * 3), ("shared_bytes", c.c_uint), ("cluster", c.c_uint * 3), ("early", c.c_int),
                ("stream", c.c_void_p)]


KERNEL = c.CFUNCTYPE(c.c_int, c.POINTER(Launch))


class Fake(c.Structure):  # the first fields of FakeCuda, tests/fake/cuda.h
    _fields_ = [("devices", c.c_int), ("sm", c.c_int), ("init_status", c.c_int), ("memory", c.c_size_t), ("max_threads", c.c_int),
                ("static_shared", c.c_int), ("registers", c.c_int), ("max_shared", c.c_int), ("capturing", c.c_int),
                ("fail_call", c.c_char_p), ("fail_status", c.c_int), ("fail_after", c.c_int), ("kernel", KERNEL)]


library = c.CDLL(FAKE)
library.fake_cuda.restype = c.POINTER(Fake)
fake = library.fake_cuda(1).contents
fake.devices = 2
launches = []
status = 0


@KERNEL
def record(launch):
    m = launch.contents
    launches.append((m.entry.decode(), tuple(m.grid), tuple(m.block), m.stream, bytes(m.args[:m.bytes])))
    return status


fake.kernel = record


class Array:
    """An array on a GPU, as other libraries describe theirs."""

    def __init__(self, host, device=0, readonly=False):
        self.host, self.device, self.shape, self.itemsize = host, types.SimpleNamespace(id=device), host.shape, host.itemsize
        self.dtype, self.strides = host.dtype, host.strides
        self.__cuda_array_interface__ = {"data": (host.ctypes.data, readonly), "typestr": host.dtype.str, "shape": host.shape, "version": 3}


@ditron.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@ditron.jit
def product(a_ptr, b_ptr, c_ptr, K, batch):  # pointers that become tensor descriptors, but for a batch that goes backwards
    z = tl.program_id(0)
    rows, inner = tl.arange(0, 64), tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        a = tl.load(a_ptr + z * batch + rows[:, None] * K + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * 64 + inner[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + z * 4096 + rows[:, None] * 64 + inner[None, :], total.to(tl.float16))


@ditron.jit
def copy_block(x, y, B: tl.constexpr):
    y.store([0, 0], x.load([0, 0]))


def raises(kind, text, fn, *args, **kwargs):
    try:
        fn(*args, **kwargs)
    except kind as e:
        assert text in str(e), f"'{text}' is not in: {e}"
        return e
    raise AssertionError(f"nothing was raised; expected {kind.__name__} with '{text}'")


def aligned(n):
    whole = np.zeros(n + 8, np.float32)
    at = (-whole.ctypes.data // 4) % 4
    return whole[at:at + n]


def devices():
    names = [name for name, usable, _ in ditron.devices() if usable]
    assert names == ["cpu", "cuda:0", "cuda:1"], names
    assert native.target(1) == "sm_90a"


def launching():
    x, out = aligned(64), aligned(64)
    launches.clear()
    loaded = add[(4,)](Array(x), Array(out), 64, BLOCK=16, num_warps=2)
    assert loaded.device == "cuda:0"
    (entry, grid, block, stream, args), = launches
    assert entry.startswith("add") and grid == (4, 1, 1) and block == (64, 1, 1) and stream is None
    assert args[:8] == x.ctypes.data.to_bytes(8, "little") and args[8:16] == out.ctypes.data.to_bytes(8, "little")
    assert args[16:20] == (64).to_bytes(4, "little")
    assert add[(4,)](Array(x, 1), Array(out, 1), 64, BLOCK=16).device == "cuda:1"


def on_the_current_stream():
    """torch's, where torch is loaded; an option names another one."""
    handle = native_stream()
    asked = []
    torch = types.ModuleType("torch")
    torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda index: asked.append(index) or handle)
    sys.modules["torch"] = torch
    try:
        launches.clear()
        add[(1,)](Array(aligned(64)), Array(aligned(64)), 64, BLOCK=16)
        add[(1,)](Array(aligned(64)), Array(aligned(64)), 64, BLOCK=16, stream=0)
        add[(1,)](Array(aligned(64)), Array(aligned(64)), 64, BLOCK=16, stream=types.SimpleNamespace(cuda_stream=handle))
        assert [m[3] for m in launches] == [handle, None, handle], launches
        assert asked == [0]
    finally:
        del sys.modules["torch"]


def native_stream():
    """A stream in the device's primary context, made as another library would."""
    context, stream = c.c_void_p(), c.c_void_p()
    assert library.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
    assert library.cuCtxSetCurrent(context) == 0
    assert library.cuStreamCreate(c.byref(stream), 1) == 0
    library.cuCtxSetCurrent(None)
    return stream.value


def many_streams():
    """More than are remembered, and than a rank may have."""
    handles = [native_stream() for _ in range(100)]
    launches.clear()
    for h in handles + handles[:10]:
        add[(1,)](Array(aligned(64)), Array(aligned(64)), 64, BLOCK=16, stream=h)
    assert [m[3] for m in launches] == handles + handles[:10]


def mixed():
    x = aligned(64)
    raises(ValueError, "'x_ptr' and 'out_ptr' lie on different devices", add[(1,)], Array(x), x, 64, BLOCK=16)
    raises(ValueError, "'x_ptr' and 'out_ptr' lie on different devices", add[(1,)], Array(x, 1), Array(x, 0), 64, BLOCK=16)
    raises(ValueError, "'out_ptr' is read-only", add[(1,)], Array(x), Array(x, readonly=True), 64, BLOCK=16)
    add[(1,)](Array(x, readonly=True), Array(x), 64, BLOCK=16)
    out = aligned(64)
    add[(4,)](x, out, 64, BLOCK=16)  # the processor, in the same process
    assert (out == 1).all()
    raises(ditron.Error, "no device 'cuda:5'", add[(1,)], Array(x, 5), Array(x, 5), 64, BLOCK=16)


def descriptor():
    x = aligned(256).reshape(16, 16)
    launches.clear()
    a = Array(x)
    a.strides = x.strides
    copy_block[(1,)](TensorDescriptor.from_tensor(a, [16, 16]), TensorDescriptor.from_tensor(a, [16, 16]), B=16)
    assert len(launches) == 1 and launches[0][0].startswith("copy_block")


def variants():
    """The second variant is compiled when a launch needs it, or with all others where nothing is launched."""
    a, b, c_ = (Array(np.zeros(1 << 16, np.float16)) for _ in range(3))
    asked, image_of = [], ditron._compile.image_of
    flags = {}

    def note(request):
        asked.append(flags[request])
        return image_of(request)

    def made(*args, **kwargs):
        r = request(*args, **kwargs)
        flags[r] = inspect.signature(request).bind(*args, **kwargs).arguments.get("first_only", False)
        return r

    request, ditron._compile.request, ditron._compile.image_of = ditron._compile.request, made, note
    blocks = []
    try:
        for batch in (4096, -4096, -8192, 4096):
            launches.clear()
            product[(1,)](a, b, c_, 64, batch)
            blocks.append(launches[0][2])
        assert asked == [True, False], asked
        assert blocks[0] == blocks[3] and blocks[1] == blocks[2] and blocks[0] != blocks[1], blocks
        asked.clear()
        product.warmup(a, b, c_, 64, 4096, num_stages=3, grid=(1,))
        product[(1,)](a, b, c_, 64, -4096, num_stages=3)
        product.warmup(a, b, c_, 64, 4096, grid=(1,))
        assert asked == [False], asked
        product[(1,)](a, b, c_, 64, 4096, num_stages=4)
        product.warmup(a, b, c_, 64, 4096, num_stages=4, grid=(1,))
        assert asked == [False, True, False], asked
        asked.clear()
        product._forget()
        ditron.jit.__globals__["LOADED"].clear()
        product[(1,)](a, b, c_, 64, -4096)  # the disk cache has all variants, and gives them
        assert asked == [True], asked
    finally:
        ditron._compile.request, ditron._compile.image_of = request, image_of


def limits():
    x = aligned(64)
    raises(ditron.OutOfResources, "grid of 1 x 70000 x 1 is too large", add[(1, 70000)], Array(x), Array(x), 64, BLOCK=16)
    launches.clear()
    add[(0,)](Array(x), Array(x), 64, BLOCK=16)
    assert not launches
    add[(1,)](Array(x), Array(x), 64, BLOCK=16)  # and on it goes
    assert len(launches) == 1


def broken():
    """An illegal access ends the context: every later call says so, with the kernel's name."""
    global status
    x = aligned(64)
    status = 700
    e = None
    try:
        add[(1,)](Array(x, 1), Array(x, 1), 64, BLOCK=16)
        ditron.synchronize(2)
    except ditron.Error as error:
        e = error
    status = 0
    assert e is not None and "add" in str(e) and "cuda:1" in str(e), e
    raises(ditron.Error, "cuda:1", add[(1,)], Array(x, 1), Array(x, 1), 64, BLOCK=16)


for fn in (devices, launching, on_the_current_stream, many_streams, mixed, descriptor, variants, limits, broken):
    case(fn.__name__, fn)
finish()
