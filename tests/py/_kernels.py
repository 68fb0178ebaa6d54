"""Kernels written inside a test: the source of a function as a file of its own, run on the interpreter and on the CPU."""
import tempfile
from pathlib import Path

import numpy as np

from _ditron import rel_err, run_kernel

HEAD = """import triton
import triton.language as tl
from triton.language.extra import libdevice
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device, language_extra
from triton_dist.language.extra.language_extra import tid, __syncthreads, ld, st

"""
MODES = {"interp": ["--interp"], "cpu": []}


def run(source, values, outs, grid=(1,), modes=("interp", "cpu"), **kw):
    """Runs the only uncalled kernel of source in each mode. Returns mode -> name -> array."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.py"
        path.write_text(HEAD + source)
        return {m: run_kernel(str(path), list(grid), values, outs, mode=MODES[m], **kw) for m in modes}


def same(source, values, want, grid=(1,), bound=0.0, modes=("interp", "cpu"), **kw):
    """Every output equals want[name] (bound 0: exactly, NaN equal to NaN; else by relative norm) in each mode."""
    for mode, got in run(source, values, list(want), grid, modes, **kw).items():
        for name, w in want.items():
            g, w = np.asarray(got[name]), np.asarray(w)
            if bound == 0:
                np.testing.assert_array_equal(g.reshape(w.shape), w, err_msg=f"{mode} {name}")
            else:
                e = rel_err(g.reshape(w.shape), w)
                assert e <= bound, f"{mode} {name}: error {e:.3g}, allowed {bound:.3g}\n{g}\n{w}"
