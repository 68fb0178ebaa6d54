"""What the cases of the corpus share.

A case calls a package's own host function on CPU tensors. Every launch `kernel[grid](...)` inside it comes here: Ditron
compiles that kernel from the package's file and runs it over the tensors in place, so that the function's result is
Ditron's and can be compared with a torch expression. Within `interpreted()` Triton's interpreter runs the launch
instead, Ditron runs it on copies of the arguments as they were before, and every tensor is compared afterwards.
Autotuners take the first configuration that their pruning leaves; heuristics are evaluated as ever.

On another device than the CPU (DEVICE) nothing of that changes but the launches: what their tensors live in is copied there,
the kernel is compiled for it and runs over the copies, and they are copied back.

    @case("B", "unsloth softcap")
    def _(t):
        x = t.randn(37, 1000, dtype=torch.bfloat16)
        t.same(package.forward(x), torch.softmax(x, -1))
"""
import contextlib
import importlib
import inspect
import json
import os
import re
import sys
import textwrap
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime import autotuner, interpreter  # noqa: E402
from triton.runtime.jit import TensorWrapper  # noqa: E402

import ditron  # noqa: E402
import packages  # noqa: E402
from packages import PACKAGES, SOURCES, unsloth, vllm, without_gpu  # noqa: E402,F401

packages.choose_modules()
HAVE_VLLM = (SOURCES / "vllm").is_dir()
DEVICE = "cpu"  # or "cuda:0"; "copies": the CPU, over copies too
BOUNDS = {torch.float64: 1e-5, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2,
          torch.float8_e4m3fn: 1e-1, torch.float8_e5m2: 2e-1}
# A GPU adds in another order, fuses products into sums and has exp and its like in hardware, a few units in the last place
# off. That is a matter of f32 and f64: what is narrower is rounded by more.
GPU_FACTOR = 4
# A product of f32 tiles reads 10 bits of significand of its factors there, as Triton has it unless a kernel asks for more:
# 2^-11 of each factor, through several products on end. On a CPU all bits are read.
GPU_TF32 = 5e-3
# Hopper's matrix unit keeps sums of 8-bit floats in some 14 bits of significand, as Triton leaves it unless a kernel asks for more.
GPU_F8 = 5e-4
POINTEE = {torch.bool: "i1", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
           torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.float16: "f16",
           torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.float8_e4m3fn: "f8e4m3",
           torch.float8_e5m2: "f8e5m2"}
LANGUAGE = {"int1": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
            "uint32": "u32", "uint64": "u64", "fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64",
            "fp8e4nv": "f8e4m3", "fp8e5": "f8e5m2"}
OPTIONS = {"num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid", "waves_per_eu",
           "matrix_instr_nonkdim", "kpack", "grid", "warmup", "debug", "sanitize_overflow", "allow_fp8e4nv"}

CASES = []


class Wrong(Exception):
    """A comparison that failed."""


class Case:
    def __init__(self, kind, name, fn, sample, timeout):
        self.kind, self.name, self.fn, self.sample, self.timeout = kind, name, fn, sample, timeout


def case(kind, name, sample=False, timeout=100):
    def add(fn):
        CASES.append(Case(kind, name, fn, sample, timeout))
        return fn

    return add


# ---- arguments ------------------------------------------------------------------------------------


def argument(x, shift=0):
    """A launch argument of Triton's as one of Ditron's, which points so many bytes farther on."""
    if isinstance(x, tl.constexpr):
        x = x.value
    if isinstance(x, TensorWrapper):
        return ditron.Pointer(LANGUAGE[x.dtype.name], x.data_ptr() + shift)
    if hasattr(x, "data_ptr"):  # a tensor, or a package's view of one
        return ditron.Pointer(POINTEE[x.dtype], x.data_ptr() + shift)
    if isinstance(x, tl.dtype):
        return ditron.Type(LANGUAGE[x.name])
    if hasattr(x, "block_shape"):
        return ditron.Tensor(POINTEE[x.base.dtype], x.base.data_ptr() + shift, tuple(x.shape), tuple(x.strides),
                             tuple(x.block_shape))
    if isinstance(x, interpreter.InterpretedFunction):
        return ditron.Jit(x.fn.__name__)
    if inspect.isfunction(x):
        return ditron.Jit(f"{x.__module__}.{x.__name__}" if of_device_library(x) else x.__name__)
    return x


def of_device_library(x):
    return inspect.isfunction(x) and re.fullmatch(r"triton\.language\.extra\.(\w+\.)?libdevice", x.__module__ or "")


def tensor_of(x):
    if isinstance(x, TensorWrapper):
        return x.base
    return x.base if hasattr(x, "block_shape") else x if isinstance(x, torch.Tensor) else None


def storage_of(x):
    """What an argument points into, or None."""
    t = tensor_of(x)
    if t is None and hasattr(x, "data_ptr"):
        t = x._base  # a package's view of a tensor
    return None if t is None or not t.untyped_storage().nbytes() else t.untyped_storage()


def copies(values):
    """values with every tensor on storage of its own; tensors that share one storage go on sharing it."""
    storages = {}

    def copy(t):
        s = t.untyped_storage()
        if s.data_ptr() not in storages:
            storages[s.data_ptr()] = s.clone()
        out = torch.empty(0, dtype=t.dtype)
        return out.set_(storages[s.data_ptr()], t.storage_offset(), t.size(), t.stride())

    def one(x):
        if isinstance(x, TensorWrapper):
            return TensorWrapper(copy(x.base), x.dtype)
        if hasattr(x, "block_shape"):
            return type(x)(copy(x.base), x.shape, x.strides, x.block_shape)
        return copy(x) if isinstance(x, torch.Tensor) else x

    return {name: one(x) for name, x in values.items()}


# ---- comparing ------------------------------------------------------------------------------------


def difference(got, want, bound=None):
    """(error, what is wrong or None). Floats: norm of the difference over norm; NaN and infinities in the same places.
    Everything else: exact."""
    if got.shape != want.shape:
        return float("inf"), f"shape {tuple(got.shape)}, expected {tuple(want.shape)}"
    if not got.dtype.is_floating_point:
        bad = int((got.to(torch.int64) != want.to(torch.int64)).sum())
        return float(bad), f"{bad} of {got.numel()} values differ" if bad else None
    bound = BOUNDS[got.dtype] if bound is None else bound
    g, w = got.detach().to(torch.float64), want.detach().to(torch.float64)
    finite = torch.isfinite(w)
    same = torch.equal(torch.isnan(g), torch.isnan(w)) and torch.equal(g[torch.isinf(w)], w[torch.isinf(w)])
    if not same or not torch.equal(torch.isfinite(g), finite):
        n = int((torch.isfinite(g) != finite).sum())
        return float("inf"), f"NaN or infinity in {n} other places" if n else "NaN or infinity of another kind"
    g, w = g[finite], w[finite]
    error = float((g - w).norm() / w.norm()) if w.norm() else float(g.norm())
    return error, f"error {error:.2g}, allowed {bound:.2g}" if error > bound else None


# ---- launches -------------------------------------------------------------------------------------


class Test:
    """What a case sees: data, comparisons, and the record of launches."""

    def __init__(self, library):
        self.runner = ditron.Runner(library, "cpu" if DEVICE == "copies" else DEVICE)
        self.on_gpu, self.floor = self.runner.target is not None, 0
        self.launches = {}  # (path, kernel) -> row
        self.error, self.compared = 0.0, 0
        self.shapes = []
        self.beside = False
        self.bound, self.bounds = {}, None
        self.random = torch.Generator().manual_seed(20)

    def randn(self, *shape, dtype=torch.float32, scale=1.0):
        return (torch.randn(*shape, generator=self.random) * scale).to(dtype)

    def rand(self, *shape, dtype=torch.float32):
        return torch.rand(*shape, generator=self.random).to(dtype)

    def randint(self, low, high, shape, dtype=torch.int64):
        return torch.randint(low, high, shape, generator=self.random).to(dtype)

    def allowed(self, dtype, bound):
        """The bound of a comparison: the case's, or that of the type; wider on a GPU."""
        bound = BOUNDS.get(dtype, 0) if bound is None else bound
        if self.on_gpu and dtype in (torch.float32, torch.float64):
            bound *= GPU_FACTOR
        return max(bound, self.floor)

    def coarseness(self, what):
        """The bound that products of few bits ask for on a GPU, which all results behind them have."""
        tile = self.runner.emit("tile", *what) if self.on_gpu else ""
        return GPU_TF32 if "prec=tf32" in tile else GPU_F8 if re.search(r"= dot ", tile) and re.search(r"xf8e\dm\d>", tile) else 0

    def same(self, got, want, bound=None, what="result"):
        """got equals want: tensors, or tuples of them (None stands for what is not compared)."""
        if isinstance(got, (tuple, list)):
            for i, (g, w) in enumerate(zip(got, want, strict=True)):
                if w is not None:
                    self.same(g, w, bound, f"{what} {i}")
            return
        error, wrong = difference(got, want.to(got.dtype) if want.dtype != got.dtype else want,
                                  self.allowed(got.dtype, bound))
        self.error, self.compared = max(self.error, error), self.compared + 1
        if wrong:
            raise Wrong(f"{what}: {wrong}")

    def against(self, fn, reference, *inputs, bound=None):
        """fn and its gradients equal reference's on the same inputs, which it computes in f32 at least."""
        floats = [isinstance(x, torch.Tensor) and x.is_floating_point() for x in inputs]
        mine = [x.clone().requires_grad_() if f else x for x, f in zip(inputs, floats)]
        wide = [x.to(torch.promote_types(x.dtype, torch.float32)).clone().requires_grad_() if f else x
                for x, f in zip(inputs, floats)]
        got, want = fn(*mine), reference(*wide)
        many = isinstance(want, (tuple, list))
        self.same(got.detach().clone() if not many else [g.detach().clone() for g in got], want, bound)
        got, want = (got, want) if many else ([got], [want])
        up = [torch.randn(w.shape, generator=self.random).to(g.dtype) for g, w in zip(got, want)]
        torch.autograd.backward(want, [u.to(w.dtype) for u, w in zip(up, want)])
        torch.autograd.backward(got, up)
        for i, (m, w, f) in enumerate(zip(mine, wide, floats)):
            if f and w.grad is not None:
                self.same(m.grad, w.grad, bound, f"gradient {i}")

    @contextlib.contextmanager
    def interpreted(self, bound=None):
        """Triton's interpreter runs the launches and is the reference of every tensor."""
        self.beside, self.bounds = True, bound
        yield
        self.beside = False

    @contextlib.contextmanager
    def binding(self, **names):
        """Module globals that are known only when the package runs."""
        self.bound = names
        yield
        self.bound = {}

    def launch(self, fn, grid, args, kwargs):
        """One launch, as Triton's run(): by name, callable grids evaluated."""
        signature = inspect.signature(fn)
        options = {k: v for k, v in kwargs.items() if k in OPTIONS and k not in signature.parameters}
        bound = signature.bind(*args, **{k: v for k, v in kwargs.items() if k in signature.parameters})
        bound.apply_defaults()
        values = dict(bound.arguments)
        grid = grid(values) if callable(grid) else grid
        grid = (grid,) if isinstance(grid, int) else tuple(int(g) for g in grid)
        path = str(Path(inspect.getsourcefile(fn)).resolve())
        row = self.launches.setdefault((path, fn.__name__), {"ms": 0.0, "mib": 0.0, "launches": 0, "error": 0.0})
        if not self.shapes:
            self.shapes = [list(t.shape) for t in map(tensor_of, values.values()) if t is not None]
        if not self.beside:
            self.execute(path, fn, grid, values, options, row)
            return
        before = copies(values)
        interpreter.GridExecutor(interpreter_of(fn), list(signature.parameters), grid)(**values)
        self.execute(path, fn, grid, before, options, row)
        for name, x in values.items():
            if tensor_of(x) is not None:
                bounds = self.bounds.get(name) if isinstance(self.bounds, dict) else self.bounds
                error, wrong = difference(tensor_of(before[name]), tensor_of(x), self.allowed(tensor_of(x).dtype, bounds))
                row["error"], self.error, self.compared = max(row["error"], error), max(self.error, error), self.compared + 1
                if wrong:
                    raise Wrong(f"{fn.__name__}: {name}: {wrong}")

    def execute(self, path, fn, grid, values, options, row):
        row["launches"] += 1
        if 0 in grid:
            return
        plain = {name: argument(x) for name, x in values.items()}
        generated = not any(Path(path).is_relative_to(folder) for folder in (PACKAGES, SOURCES))
        bound = {**injected(fn), **self.bound} if generated else self.bound
        bound = {n: argument(x) for n, x in bound.items()}
        if RECORD and not row.get("recorded"):
            row["recorded"] = record(path, fn.__name__, plain, bound, Path(path).read_text() if generated else None)
        what = (path, fn.__name__, plain, [str(PACKAGES), str(SOURCES)], bound, options.get("num_warps") or 0,
                options.get("num_stages") or 0)
        try:
            image, ms, mib = self.runner.compile(*what)
            row["ms"], row["mib"] = max(row["ms"], ms), max(row["mib"], mib)
            if DEVICE == "cpu":
                self.runner.launch(image, grid, plain)
                return
            self.floor = max(self.floor, self.coarseness(what))
            self.launch_over_copies(image, grid, values)
        except ditron.Refused as e:
            row["refused"] = str(e)  # a package may catch it and go another way
            raise

    def launch_over_copies(self, image, grid, values):
        storages = {name: s for name, x in values.items() if (s := storage_of(x)) is not None}
        with self.runner.copies({s.data_ptr(): s.nbytes() for s in storages.values()}) as there:
            shifts = {name: there[s.data_ptr()] - s.data_ptr() for name, s in storages.items()}
            self.runner.launch(image, grid, {name: argument(x, shifts.get(name, 0)) for name, x in values.items()})


RECORD = ""  # a file that gets a line for each kernel that a case launches


def signature_entry(x):
    """The argument as `ditron compile --sig` writes it; None where that has no form."""
    if x is None or isinstance(x, (bool, float)):
        return repr(x)
    if isinstance(x, ditron.Pointer):
        return f"*{x.dtype}:16" if x.address % 16 == 0 else f"*{x.dtype}"
    if isinstance(x, int):
        return str(x)
    if isinstance(x, str):
        return repr(x)
    if isinstance(x, ditron.Type):
        return "tl." + {v: k for k, v in LANGUAGE.items()}[x.name].replace("fp8", "float8").replace("fp", "float").replace("bf16", "bfloat16")
    return x.name if isinstance(x, ditron.Jit) else None


def record(path, kernel, values, bound, text):
    """One line of RECORD: which kernel was launched with what. The text of a module that a package generated goes along."""
    entries = {name: signature_entry(x) for name, x in values.items()}
    names = {name: signature_entry(x) for name, x in bound.items()}
    if None not in entries.values() and None not in names.values():
        line = {"file": path, "kernel": kernel, "sig": entries, "globals": names} | ({"text": text} if text else {})
        with open(RECORD, "a") as f:  # one short write: cases run side by side
            f.write(json.dumps(line) + "\n")
    return True


def injected(fn):
    """What a package puts into the globals of a module that it generates, beside the module's own text."""
    found = {}

    def visit(f):
        for name in f.__code__.co_names:
            x = f.__globals__.get(name)
            if name in found or not (inspect.isfunction(x) or isinstance(x, interpreter.InterpretedFunction)):
                continue
            if of_device_library(x):
                found[name] = x
            elif isinstance(x, interpreter.InterpretedFunction):
                visit(x.fn)

    visit(fn)
    return found


def interpreter_of(fn):
    """fn rewritten for Triton's interpreter."""
    return interpreter.InterpretedFunction(fn).rewrite()


CURRENT = None


def run_launch(self, *args, grid, warmup=False, **kwargs):
    if not warmup:
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        CURRENT.launch(self.fn, grid, args, kwargs)


def run_first_config(self, *args, **kwargs):
    """An autotuner without a device to time on: the first configuration that is left."""
    self.nargs = dict(zip(self.arg_names, args))
    config = self.best_config = self.prune_configs(kwargs)[0] if len(self.configs) > 1 else self.configs[0]
    all_args = {**self.nargs, **kwargs, **config.all_kwargs()}
    if config.pre_hook is not None:
        config.pre_hook(all_args)
    self.pre_hook(all_args, reset_only=True)
    return self.fn.run(*args, **{**kwargs, **config.all_kwargs()})


def describe(self, fn, **kwargs):
    """Attributes of a JITFunction that packages read."""
    plain_init(self, fn, **kwargs)
    self.__globals__ = fn.__globals__
    self.__module__, self.cache_key = fn.__module__, f"{fn.__module__}.{fn.__qualname__}"
    source = textwrap.dedent(inspect.getsource(fn))
    self.src = source[re.search(r"^def\s+\w+\s*\(", source, re.MULTILINE).start():]


def patch_tensor(tensor, scope):
    """NumPy no longer makes an integer of an array with one element."""
    plain_patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


plain_patch = interpreter._patch_lang_tensor
interpreter._patch_lang_tensor = patch_tensor
plain_init = interpreter.InterpretedFunction.__init__
interpreter.InterpretedFunction.__init__ = describe
interpreter.InterpretedFunction.run = run_launch
autotuner.Autotuner.run = run_first_config


def flag_gems():
    """flag_gems; its launcher and tuner stand aside. Its generated code goes to FLAGGEMS_CACHE_DIR."""
    if "flag_gems" in sys.modules:
        return
    packages.flag_gems()
    libentry = importlib.import_module("flag_gems.utils.libentry")

    class Entry(triton.KernelInterface):
        def __init__(self, fn):
            self.fn, self.arg_names = fn, fn.arg_names

        def run(self, *args, **kwargs):
            return self.fn.run(*args, **kwargs)

    libentry.LibEntry = Entry
    libentry.LibTuner.run = run_first_config
    libentry.LibTuner.cache_key = property(lambda self: self.__name__)
    importlib.import_module("flag_gems.utils.pointwise_dynamic").JITFunction = interpreter.InterpretedFunction
