"""Ditron: kernels in the Triton language on CPUs and GPUs, from Python.

    import ditron
    import ditron.language as tl

    @ditron.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)

    add[lambda meta: (ditron.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=1024)

x, y and out are arrays of NumPy or torch, or of any library with __cuda_array_interface__ or DLPack.
"""
import atexit
import os

from . import _ditron, _values

_ditron.setup(_values.classify, _values.describe, _values.describe_descriptor, _values.current_stream)

from . import _compile, language, testing, tools  # noqa: E402
from ._as_triton import as_triton  # noqa: E402
from ._ditron import CompilationError, DeadlineError, DeviceAssertionError, Error, OutOfResources  # noqa: E402
from ._settings import serving, tuning  # noqa: E402
from .autotuner import Autotuner, Config, Heuristics, autotune, heuristics  # noqa: E402
from .jit import KERNELS, LOADED, JITFunction, KernelInterface, jit  # noqa: E402

__version__ = _ditron.version
__all__ = ["Autotuner", "CompilationError", "Config", "DeadlineError", "DeviceAssertionError", "Error", "Heuristics", "JITFunction",
           "KernelInterface", "OutOfResources", "as_triton", "autotune", "cdiv", "constexpr_function", "devices", "heuristics", "jit", "language",
           "next_power_of_2", "serving", "synchronize", "testing", "tools", "tuning"]


def constexpr_function(fn):
    """Marks a function that kernels call while they are compiled. To Python it is the function."""
    return fn


def cdiv(x, y):
    """x / y, rounded up."""
    return (x + y - 1) // y


def next_power_of_2(n):
    """The smallest power of two that is not below n."""
    return 1 << (n - 1).bit_length() if n > 0 else 0


def devices():
    """[(name, usable, text)] of the devices of this machine."""
    return _ditron.devices()


def synchronize(device=1):
    """Waits for what was launched on a GPU: 1 is the first. Failures of kernels show here. The processor's launches are complete."""
    _ditron.synchronize(device)


def _forked():
    _ditron.forked()
    _compile.WORKERS.forked()
    LOADED.clear()
    for kernel in list(KERNELS):
        kernel._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
atexit.register(_ditron.shutdown)
