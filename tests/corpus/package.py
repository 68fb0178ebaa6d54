"""Launches of the corpus through the Python package instead of the C API: as a user would run a package's kernels, with nothing bound
by hand, for what a module decides when it runs is known to Python."""
import importlib.util
import os
import sys
import time
from pathlib import Path


def load(build):
    """The package of a build, by another name than its own: `ditron` is the harness's module here."""
    folder = Path(build).resolve() / "python/ditron"
    spec = importlib.util.spec_from_file_location("ditron_package", folder / "__init__.py", submodule_search_locations=[str(folder)])
    module = importlib.util.module_from_spec(spec)
    sys.modules["ditron_package"] = module
    spec.loader.exec_module(module)
    return module


def use(harness, build):
    os.environ["DITRON_CACHE_OFF"] = "1"  # as the other way: every case compiles
    package = load(build)
    kernels = {}

    def execute(self, path, fn, grid, values, options, row):
        row["launches"] += 1
        if 0 in grid:
            return
        if fn not in kernels:
            kernels[fn] = package.jit(fn)
        launch = {n: options[n] for n in ("num_warps", "num_stages") if options.get(n)}
        start = time.process_time()
        try:
            kernels[fn][tuple(grid)](**values, **launch)
        except package.Error as e:
            raise harness.ditron.Refused(e.status, str(e)) from None
        row["ms"] = max(row["ms"], (time.process_time() - start) * 1e3)

    harness.Test.execute = execute
