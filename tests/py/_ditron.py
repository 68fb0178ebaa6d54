"""What the Python tests share: running a kernel by the program, and reporting cases."""
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np

ROOT = Path(os.environ["ROOT"])
KERNELS = ROOT / "kernels"
failures = 0


def bf16(x):
    """x rounded to bfloat16, nearest even, as float32."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16
    return rounded.astype(np.uint32).view(np.float32)


def rel_err(got, want):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape or not np.isfinite(got).all():
        return float("inf")
    norm = np.linalg.norm(want)
    return float(np.linalg.norm(got - want) / (norm if norm else 1.0))


def ditron(*args, ok=True, timeout=110, env=None):
    """Runs the program; returns its completed process. ok: must it succeed?"""
    p = subprocess.run(["ditron", *map(str, args)], capture_output=True, text=True, timeout=timeout,
                       env=dict(os.environ, **(env or {})))
    if ok is not None and (p.returncode == 0) != ok:
        raise AssertionError(f"ditron {' '.join(map(str, args))}\nexit {p.returncode}\n{p.stdout}{p.stderr}")
    return p


def run_kernel(kernel, grid, values, outs, mode=(), ranks=1, options=(), prefix=(), said=None):
    """values: name -> number, string, or array (one for all ranks, or a list with one a rank; a ("sym", x) pair lies on the
    symmetric heap; ("desc", x, blocks) is a descriptor; a dtype's name behind the array, (x, "bf16"), or behind the blocks
    casts). outs: names. said: a list that takes what the program says on the way.
    Returns name -> array, or a list of them with several ranks."""
    with tempfile.TemporaryDirectory() as folder:
        args = ["run", kernel, "--grid", ",".join(map(str, grid)), "--quiet", *mode, *options]
        if ranks > 1 and not prefix:
            args += ["--ranks", ranks]
        for name, v in values.items():
            form = "{}"
            if isinstance(v, tuple) and isinstance(v[0], str) and v[0] == "sym":
                form, v = "sym:{}", v[1]
            elif isinstance(v, tuple) and isinstance(v[0], str) and v[0] == "desc":
                form, v = "desc({}" + "".join(":" + t for t in v[3:]) + ";" + ",".join(map(str, v[2])) + ")", v[1]
            elif isinstance(v, tuple):
                form, v = "{}:" + v[1], v[0]
            if isinstance(v, list):
                for r, x in enumerate(v):
                    np.save(f"{folder}/{name}-{r}.npy", x)
                args.append(f"{name}=" + form.format(f"@{folder}/{name}-{{rank}}.npy"))
            elif isinstance(v, np.ndarray):
                np.save(f"{folder}/{name}.npy", v)
                args.append(f"{name}=" + form.format(f"@{folder}/{name}.npy"))
            else:
                args.append(f"{name}=" + form.format(v))
        for name in outs:
            args += ["--out", f"{name}={folder}/out-{name}-{{rank}}.npy"]
        if prefix:
            p = subprocess.run([*prefix, "ditron", *map(str, args)], capture_output=True, text=True, timeout=110)
            if p.returncode != 0:
                raise AssertionError(f"{' '.join(map(str, prefix))} ditron {' '.join(map(str, args))}\n{p.stdout}{p.stderr}")
        else:
            p = ditron(*args)
        if said is not None:
            said.append(p.stderr)
        result = {n: [np.load(f"{folder}/out-{n}-{r}.npy") for r in range(ranks)] for n in outs}
        return result if ranks > 1 else {n: v[0] for n, v in result.items()}


def case(name, fn, *args, **kwargs):
    """Runs one case and prints its line."""
    global failures
    try:
        fn(*args, **kwargs)
        print(f"ok {name}", flush=True)
    except Exception:
        failures += 1
        print(f"not ok {name}", flush=True)
        traceback.print_exc(limit=4, file=sys.stdout)
        sys.stdout.flush()


def below(error, bound, what=""):
    assert error <= bound, f"{what}: error {error:.3g}, allowed {bound:.3g}"


def finish():
    sys.exit(1 if failures else 0)
