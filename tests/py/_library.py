"""Running a kernel of the library everywhere: on the interpreter, in the two stages that GPUs run, and on the CPU; each result against
a reference in float64, and the CPU's against the interpreter's."""
import numpy as np

from _ditron import KERNELS, below, bf16, rel_err, run_kernel

MODES = {"interp": ["--interp"], "laid": ["--stage", "laid"], "lowered": ["--stage", "lowered"], "cpu": []}


def cdiv(a, b):
    return -(-a // b)


def pow2(n, least=16):
    return max(least, 1 << (int(n) - 1).bit_length())


def run_all(kernel, grid, values, outs, more=None, **kw):
    """mode -> name -> array; more: modes besides."""
    return {m: run_kernel(f"{KERNELS}/{kernel}", grid, values, outs, mode=a, **kw) for m, a in (MODES | (more or {})).items()}


def compare(got, want, bound):
    """got: mode -> name -> array; want: name -> reference. bound 0: equal."""
    for mode, result in got.items():
        for name, w in want.items():
            if bound == 0:
                np.testing.assert_array_equal(result[name], w, err_msg=f"{mode} {name}")
            else:
                below(rel_err(result[name], w), bound, f"{mode} {name}")
    for name in want:
        below(rel_err(got["cpu"][name], got["interp"][name]), bound, f"cpu against interp, {name}")


def both(kernel, grid, values, outs, want, bound, **kw):
    got = run_all(kernel, grid, values, outs, **kw)
    compare(got, want, bound)
    return got


def as_type(x, dtype):
    """(what the reference reads, what the command line takes) of x as "f32", "f16", "bf16", "f64", "i8", "i32" or an fp8 type."""
    if dtype == "bf16":
        x = bf16(x)
        return x.astype(np.float64), (x, "bf16")
    if dtype in ("f8e4m3", "f8e5m2"):
        x = fp8(x, dtype)
        return x, (x.astype(np.float32), dtype)
    kind = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i8": np.int8, "i32": np.int32}[dtype]
    x = np.asarray(x).astype(kind)
    return x.astype(np.float64), (x, dtype)


def fp8(x, dtype):
    """x rounded to an fp8 type, nearest even, saturated; as float64."""
    mantissa, least, top = (3, -6, 448.0) if dtype == "f8e4m3" else (2, -14, 57344.0)
    x = np.clip(np.asarray(x, np.float64), -top, top)
    exponent = np.maximum(np.frexp(x)[1] - 1, least)
    step = np.exp2(exponent - mantissa)
    return np.round(x / step) * step
