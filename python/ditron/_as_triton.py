"""`import triton` where Triton is not installed."""
import importlib.util
import sys
import types

# module of Triton's -> ours, by its path below ditron; "" is ditron itself
MODULES = {
    "": "", "language": "language", "language.core": "language", "language.math": "language", "language.standard": "language",
    "language.target_info": "language.target_info", "language.extra": "language.extra",
    "language.extra.libdevice": "language.libdevice", "testing": "testing", "tools": "tools",
    "tools.tensor_descriptor": "tools.tensor_descriptor"}
GROUPS = {"language.extra.cuda": {"libdevice": "language.extra.libdevice"}, "runtime": {"jit": "", "autotuner": "autotuner"}}


def as_triton():
    """Makes `import triton` and `import triton.language` mean ditron in this process, so that files written for Triton can be imported
    where it is not installed. An error where it is: its users, torch among them, must get what they ask for."""
    if getattr(sys.modules.get("triton"), "__ditron__", False):
        return
    if "triton" in sys.modules or importlib.util.find_spec("triton") is not None:
        raise RuntimeError("Triton is installed: ditron.jit takes its kernels as they are")
    package = sys.modules[__package__]

    def ours(path):
        found = package
        for name in filter(None, path.split(".")):
            found = getattr(found, name)
        return found

    made = {"triton": types.ModuleType("triton", "Ditron in the place of Triton.")}
    made["triton"].__dict__.update({n: getattr(package, n) for n in package.__all__}, __path__=[], __ditron__=True,
                                   __version__=package.__version__)
    for name, path in MODULES.items():
        if name:
            made[f"triton.{name}"] = ours(path)
    for name, children in GROUPS.items():
        group = made[f"triton.{name}"] = types.ModuleType(f"triton.{name}")
        group.__path__ = []
        for child, path in children.items():
            made[f"triton.{name}.{child}"] = ours(path)
            setattr(group, child, ours(path))
    made["triton.runtime"].__dict__.update({n: getattr(package, n) for n in ("JITFunction", "KernelInterface", "Autotuner", "Heuristics",
                                                                             "Config", "autotune", "heuristics")})
    made["triton"].runtime, ours("language.extra").cuda = made["triton.runtime"], made["triton.language.extra.cuda"]
    sys.modules.update(made)
