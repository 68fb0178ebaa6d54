"""jit functions: @ditron.jit, and kernel[grid](...)."""
import inspect
import re
import threading
import weakref

from . import _compile, _ditron, _settings, _source, _values

CONSTEXPR, NO_SPECIALIZE, TYPED = 1, 2, 4  # as in _kernel.c
KERNELS = weakref.WeakSet()  # all that there are, for a child of fork
# (device, request) -> the kernel loaded there. Shared by functions with the same text, and kept: a GPU may be running it, or a graph
# may hold it, when the last function is gone.
LOADED = {}
TYPES = re.compile(r"(?:\w+\.)*(u?int(?:1|8|16|32|64)|float(?:16|32|64)|bfloat16|float8e4nv|float8e5)$")


def is_constexpr(annotation):
    if isinstance(annotation, str):
        return "constexpr" in annotation
    return getattr(annotation, "__name__", type(annotation).__name__) == "constexpr"


def flags_of(parameter, at, not_specialized):
    note = parameter.annotation
    if is_constexpr(note):
        return CONSTEXPR
    typed = bool(TYPES.match(note)) if isinstance(note, str) else note is not parameter.empty and _values.is_dtype(note)
    return (TYPED if typed else 0) | (NO_SPECIALIZE if at in not_specialized or parameter.name in not_specialized else 0)


class KernelInterface:
    """What autotuners, heuristics and jit functions have in common."""

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, **kwargs)


class JITFunction(_ditron.Kernel):
    """A function in the language of kernels. `kernel[grid](*args, **kwargs)` launches it: grid is one to three integers or a function
    of the arguments by name that gives them. Arrays of torch, NumPy and others are passed as pointers. Launches on a GPU go to
    the current stream; those on the processor are complete when the call returns."""

    def __init__(self, fn, do_not_specialize=None, debug=None):
        if not inspect.isfunction(fn):
            raise TypeError(f"ditron.jit takes a function, not {fn!r}")
        self.fn = fn
        self.signature = inspect.signature(fn)
        parameters = list(self.signature.parameters.values())
        for p in parameters:
            if p.kind is not p.POSITIONAL_OR_KEYWORD and p.kind is not p.KEYWORD_ONLY:
                raise TypeError(f"{fn.__name__}: parameter '{p.name}' cannot be starred or without a name in a kernel")
        self.do_not_specialize = tuple(do_not_specialize or ())
        self.arg_names = [p.name for p in parameters]
        flags = bytes(flags_of(p, i, self.do_not_specialize) for i, p in enumerate(parameters))
        self.constexprs = [i for i, f in enumerate(flags) if f & CONSTEXPR]
        super().__init__(fn.__name__, tuple(self.arg_names), flags,
                         {p.name: p.default for p in parameters if p.default is not p.empty},
                         debug=_settings.DEBUG if debug is None else bool(debug))
        self.__name__, self.__qualname__, self.__doc__ = fn.__name__, fn.__qualname__, fn.__doc__
        self.__module__, self.__wrapped__, self.__globals__ = fn.__module__, fn, fn.__globals__
        self._lock, self._source, self._hash = threading.RLock(), None, None
        KERNELS.add(self)

    def source(self):
        with self._lock:
            if self._source is None:
                self._source = _source.Source(self)
                self._watch(self._source.watched)
            return self._source

    @property
    def cache_key(self):
        """Changes with the text of the function and of those that it uses."""
        if self._hash is None:
            import hashlib
            texts = [_source.text_of(f) for f in self.source().functions]
            bound = sorted(self.source().bound.items())
            self._hash = hashlib.sha256(repr((texts, bound)).encode()).hexdigest()
        return self._hash

    @property
    def src(self):
        return _source.text_of(self.fn)

    def _compile(self, device, values, num_warps, num_stages, max_registers, debug, first_only):
        """For the native part: the kernel for such values, loaded. values: bytes, or constants that are objects. first_only: only the
        variant that most launches take."""
        source = self.source()
        args = {}
        for name, value in zip(self.arg_names, values):
            if not isinstance(value, bytes):
                constant = _values.constant(value, source.name_of)
                if constant is None:
                    raise TypeError(f"{self.__name__}: argument '{name}': {value!r} is no constant that kernels know")
                value = constant
            args[name] = value
        request = _compile.request(source.path, source.text, source.kernel, _ditron.target(device), num_warps, num_stages,
                                   max_registers, debug, source.search, source.bound, args, first_only)
        found = LOADED.get((device, request))
        if found is None:
            found = LOADED[device, request] = _ditron.load(_compile.image_of(request), device)
        return found

    def _forked(self):
        self._lock = threading.RLock()

    def run(self, *args, grid=None, warmup=False, **kwargs):
        return self.warmup(*args, grid=grid, **kwargs) if warmup else self[grid](*args, **kwargs)

    def warmup(self, *args, grid=None, **kwargs):
        """Compiles and loads for such arguments without a launch, with the variants that only some launches take."""
        return self.specialize(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"{self.__name__} is a kernel: launch it as {self.__name__}[grid](...)")

    def __repr__(self):
        return f"JITFunction({self.__module__}:{self.__qualname__})"


def jit(fn=None, *, version=None, repr=None, launch_metadata=None, do_not_specialize=None, do_not_specialize_on_alignment=None,
        debug=None, noinline=None):
    """Makes a kernel of a function. Takes the arguments of triton.jit; those that only name or display kernels, and noinline,
    change nothing. A jit function of Triton's is taken as well."""

    def decorate(f):
        skipped = do_not_specialize
        if not inspect.isfunction(f):
            inner = _source.function_of(f)
            if inner is None:
                raise TypeError(f"ditron.jit takes a function, not {f!r}")
            skipped = skipped or getattr(f, "do_not_specialize", None)
            f = inner
        return JITFunction(f, do_not_specialize=skipped, debug=debug)

    return decorate if fn is None else decorate(fn)
