"""What the environment and the program can change of the package. Everything that reads the environment is here."""
import os
from contextlib import contextmanager

DEBUG = os.environ.get("DITRON_DEBUG", "0") not in ("", "0")  # device_assert and assert hold in kernels
COMPILE_HERE = os.environ.get("DITRON_COMPILE_HERE", "0") not in ("", "0")  # no child process; a compiler's crash is ours then
COMPILE_SECONDS = float(os.environ.get("DITRON_COMPILE_SECONDS") or 300)  # the longest that one compile may take
TUNE_SECONDS = float(os.environ.get("DITRON_AUTOTUNE_SECONDS") or 20)  # for one kernel and one bucket of shapes
_tune = os.environ.get("DITRON_AUTOTUNE", "on").lower()
if _tune not in ("on", "off", "0", "1", ""):
    raise ValueError(f"DITRON_AUTOTUNE is '{_tune}', but must be on or off")
_measures = _tune not in ("off", "0")


def measures():
    """Whether autotuners may run configurations to compare them."""
    return _measures


def serving(on=True):
    """From now on nothing is tuned in this process: autotuners take a remembered result, or what the cost model puts first.
    The same as DITRON_AUTOTUNE=off; serving(False) allows tuning again."""
    global _measures
    _measures = not on


@contextmanager
def tuning(on=True):
    """Within the block autotuners may, or may not, measure."""
    global _measures
    before, _measures = _measures, on
    try:
        yield
    finally:
        _measures = before
