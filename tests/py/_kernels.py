"""Kernels written inside a test: the source of a function as a file of its own, run on the interpreter, on the CPU and, where asked for, in the stages of a GPU."""
import re
import tempfile
from pathlib import Path

import numpy as np

from _ditron import ditron, rel_err, run_kernel

HEAD = """import triton
import triton.language as tl
from triton.language.extra import libdevice
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device, language_extra
from triton_dist.language.extra.language_extra import tid, __syncthreads, ld, st

"""
MODES = {"interp": ["--interp"], "cpu": []}
STAGES = {"laid": ["--stage", "laid", "--check"], "lowered": ["--stage", "lowered", "--check"]}


def run(source, values, outs, grid=(1,), modes=("interp", "cpu"), **kw):
    """Runs the only uncalled kernel of source in each mode. Returns mode -> name -> array."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.py"
        path.write_text(HEAD + source)
        return {m: run_kernel(str(path), list(grid), values, outs, mode=(MODES | STAGES)[m], **kw) for m in modes}


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


def refused(source, **sigs):
    """Compiles kernels of source (name -> signature). Each must say what the comments of its lines announce after
    `# ERROR:` (several texts between ` | `, all at that line), and no other error. Functions without a signature are helpers
    of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.py"
        path.write_text(HEAD + source)
        lines = (HEAD + source).splitlines()
        start = {}
        for i, text in enumerate(lines):
            if text.startswith("def "):
                start[text[4:].split("(")[0]] = i
        bounds = sorted(start.values()) + [len(lines)]
        for name, sig in sigs.items():
            others = {i for n, at in start.items() if n in sigs and n != name for i in range(at, bounds[bounds.index(at) + 1])}
            want = {i + 1: lines[i].split("# ERROR: ")[1].split(" | ") for i in range(len(lines)) if "# ERROR: " in lines[i] and i not in others}
            p = ditron("compile", f"{path}:{name}", "--emit", "tile", "--sig", sig, ok=None)
            got = {}
            for line in p.stderr.splitlines():
                m = re.search(r"k\.py:(\d+):\d+: error: (.*)", line)
                if m:
                    got.setdefault(int(m[1]), []).append(m[2])
            for at, texts in want.items():
                for t in texts:
                    assert any(t in g for g in got.get(at, [])), f"line `{lines[at - 1].strip()}` says {got.get(at)}"
            extra = {lines[at - 1].strip(): g for at, g in got.items() if at not in want}
            assert want and not extra and p.returncode == 1, f"exit {p.returncode}; not announced: {extra}\n{p.stderr}"
