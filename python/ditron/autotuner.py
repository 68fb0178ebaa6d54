"""Configurations of kernels: autotune and heuristics, with Triton's signatures.

An autotuner chooses once for each key: the values of the arguments that `key` names, whole numbers by bucket, and the element types
of the arrays. In turn:

  1. what this process has chosen before, or what the disk remembers for this kernel's text, these configurations and this device
  2. the cost model drops configurations that cannot fit or overshoot the problem, and puts the rest in order of estimated work
  3. they are compiled side by side and measured in that order, until the time is up; the best is kept, on disk too

Where measuring is off (DITRON_AUTOTUNE=off, or ditron.serving()), it ends after 2 with the first.
"""
import json
import os
import re
import sys
import time

from . import _ditron, _settings, _values, testing
from .jit import JITFunction, KernelInterface

SHARED_BYTES = 227 << 10  # of a block on a GPU
ACCUMULATORS = 224  # registers of a thread that tiles of a product may take
PLAIN = {int, float, bool, str, type(None)}
MOST_KNOWN = 4096  # launches whose configuration is known without a look at the key
FORMAT = 1


class Config:
    """One configuration: values of constexpr parameters, and launch options."""

    def __init__(self, kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, pre_hook=None, ir_override=None):
        self.kwargs, self.num_warps, self.num_stages, self.num_ctas = kwargs, num_warps, num_stages, num_ctas
        self.maxnreg, self.pre_hook, self.ir_override = maxnreg, pre_hook, ir_override
        if maxnreg is not None and not 24 <= maxnreg <= 255:
            raise ValueError(f"maxnreg is {maxnreg}; it must be from 24 to 255")

    def all_kwargs(self):
        options = {"num_warps": self.num_warps, "num_ctas": self.num_ctas, "num_stages": self.num_stages, "maxnreg": self.maxnreg,
                   "ir_override": self.ir_override}
        return {**self.kwargs, **{k: v for k, v in options.items() if v is not None}}

    def __str__(self):
        return ", ".join(f"{k}: {v}" for k, v in {**self.kwargs, "num_warps": self.num_warps, "num_ctas": self.num_ctas,
                                                  "num_stages": self.num_stages, "maxnreg": self.maxnreg}.items())

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Config) and (self.all_kwargs(), self.pre_hook) == (other.all_kwargs(), other.pre_hook)

    def __hash__(self):
        return hash((*sorted(self.all_kwargs().items(), key=str), self.pre_hook))


# ---- the cost model ------------------------------------------------------------------------------------


def bucket(x):
    """Whole numbers up to 16 as they are, larger ones rounded up to a multiple of an eighth of their power of two."""
    if isinstance(x, bool) or not isinstance(x, int) or abs(x) <= 16:
        return x
    step = 1 << max(abs(x).bit_length() - 4, 0)
    return (abs(x) + step - 1) // step * step * (1 if x > 0 else -1)


def element_bytes(values):
    sizes = [_values.DTYPES and int(re.search(r"\d+", name).group()) // 8 or 1
             for name in (_values.dtype_name(v.dtype) for v in values.values() if hasattr(v, "dtype")) if name]
    return max(sizes, default=4)


def sizes_of(config, values):
    """[(block, size of the problem along it or None)], by name: BLOCK_SIZE_M and M, BLOCK and n_elements."""
    whole = {k.lower(): v for k, v in values.items() if isinstance(v, int) and not isinstance(v, bool) and k not in config.kwargs}
    out = {}
    for name, block in config.kwargs.items():
        m = re.fullmatch(r"(?:X?BLOCK|TILE|B(?=[A-Z]$))(?:_?SIZE)?_?(\w*?)(?:_?SIZE)?", name.upper())
        if m and isinstance(block, int) and not isinstance(block, bool) and block > 0:
            axis = m.group(1).lower()
            names = [axis, f"n_{axis}", f"{axis}_size", f"{axis}dim"] if axis else ["n_elements", "numel", "n_cols", "n", "size"]
            out[axis] = block, next((whole[n] for n in names if whole.get(n, 0) > 0), None)
    return out


def fits(config, values, on_gpu):
    """False where a configuration cannot run, or where a block is twice as large as the problem needs."""
    blocks = sizes_of(config, values)
    for block, size in blocks.values():
        if size and block >= 2 * max(16, 1 << (size - 1).bit_length()):
            return False
    if on_gpu and {"m", "n", "k"} <= set(blocks):
        m, n, k = (blocks[axis][0] for axis in "mnk")
        if (m * k + k * n) * element_bytes(values) * max(config.num_stages or 1, 1) > SHARED_BYTES:
            return False
        if m * n > ACCUMULATORS * 32 * (config.num_warps or 4):
            return False
    return True


def work(config, values, on_gpu):
    """Estimated cost, for an order: the problem rounded up to whole blocks, times what blocks of this shape waste."""
    padded, programs, waste = 1.0, 1.0, 1.0
    blocks = sizes_of(config, values)
    for axis, (block, size) in blocks.items():
        if size:
            steps = -(-size // block)
            padded *= steps * block / size
            programs *= 1 if axis == "k" else steps
    if {"m", "n"} <= set(blocks):  # loads for each product: 1/m + 1/n
        waste += 16 * (1 / blocks["m"][0] + 1 / blocks["n"][0])
    elif blocks:
        waste += 64 / max(block for block, _ in blocks.values())
    machine = 132 if on_gpu else os.cpu_count() or 1
    if programs > 1:
        waste *= -(-programs // machine) * machine / programs if programs < 8 * machine else 1
    return padded * waste


def by_cost(configs, values, on_gpu):
    """What the cost model leaves, the best first; the given order where it sees no difference."""
    return sorted([c for c in configs if fits(c, values, on_gpu)] or list(configs), key=lambda c: round(work(c, values, on_gpu), 3))


# ---- remembered on disk ----------------------------------------------------------------------------------


def plain(x):
    if isinstance(x, tuple):
        return [plain(i) for i in x]
    return x if isinstance(x, (int, float, str, bool, type(None))) else repr(x)


def memory_of(names):
    """The file of a key, or None where the cache is off."""
    import hashlib  # these modules are large, and most programs tune nothing
    from pathlib import Path
    folder = _ditron.cache_dir()
    if not folder:
        return None
    digest = hashlib.sha256(json.dumps([FORMAT, _ditron.version, *names], sort_keys=True).encode()).hexdigest()[:32]
    return Path(folder) / "tune" / digest[:2] / f"{digest}.json"


def recall(path, configs):
    """The best of a file's timings that is among the configurations, or None; what cannot be read is as if it were not there."""
    try:
        timings = json.loads(path.read_text())["timings"]
        known = {str(c): c for c in configs}
        ranked = [(float(ms), known[text]) for text, ms in timings.items() if text in known]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return min(ranked, key=lambda r: r[0])[1] if ranked else None


def remember(path, key, timings):
    import tempfile
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as f:
            json.dump({"key": [plain(k) for k in key], "timings": {str(c): ms for c, ms in timings.items() if ms < float("inf")}}, f)
        os.replace(f.name, path)
    except OSError:
        pass  # it is measured again the next time


# ---- people ----------------------------------------------------------------------------------------------


class Bar:
    """One line on a terminal while configurations are measured; nothing elsewhere."""

    def __init__(self, name, total):
        self.name, self.total, self.shown = name, total, sys.stderr is not None and sys.stderr.isatty()

    def show(self, done, best):
        if self.shown:
            full = 20 * done // max(self.total, 1)
            text = f"ditron: tuning {self.name} [{'#' * full}{'.' * (20 - full)}] {done}/{self.total}  {best}"
            width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            sys.stderr.write("\r" + text[:width - 1] + "\x1b[K")
            sys.stderr.flush()

    def end(self):
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


# ---- tuners ------------------------------------------------------------------------------------------------


def zero(x):
    if hasattr(x, "zero_"):
        x.zero_()
    else:
        x[...] = 0


def copy_of(x):
    return x.clone() if hasattr(x, "clone") else x.copy()


def put_back(x, saved):
    if hasattr(x, "copy_"):
        x.copy_(saved)
    else:
        x[...] = saved


class Autotuner(KernelInterface):
    def __init__(self, fn, arg_names, configs, key, reset_to_zero=None, restore_value=None, pre_hook=None, post_hook=None,
                 prune_configs_by=None, warmup=None, rep=None, use_cuda_graph=False, do_bench=None, cache_results=True):
        self.fn, self.arg_names, self.keys = fn, arg_names, list(key)
        self.configs = list(configs) or [Config({}, num_warps=4, num_stages=3)]
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), list(restore_value or ())
        self.user_pre_hook, self.user_post_hook = pre_hook, post_hook
        prune = prune_configs_by or {}
        self.early_config_prune, self.perf_model = prune.get("early_config_prune"), prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", 1.0)
        self.num_warmup, self.num_reps, self.do_bench = warmup, rep, do_bench
        self.cache_results = cache_results
        self.cache, self.best_config, self.configs_timings, self.bench_time = {}, None, {}, 0.0
        self.base_fn = fn
        while not isinstance(self.base_fn, JITFunction):
            self.base_fn = self.base_fn.fn
        self.__name__, self.__doc__ = self.base_fn.__name__, self.base_fn.__doc__
        self.key_places = [(k, arg_names.index(k)) for k in self.keys if k in arg_names]
        self.known, self.direct = {}, isinstance(fn, JITFunction)

    # ---- hooks, as Triton's
    def pre_hook(self, kwargs, reset_only=False):
        if self.user_pre_hook:
            return self.user_pre_hook(kwargs, reset_only=reset_only)
        for name in self.reset_to_zero:
            zero(kwargs[name])
        if not reset_only:
            self.saved = {name: copy_of(kwargs[name]) for name in self.restore_value}

    def post_hook(self, kwargs, exception):
        if self.user_post_hook:
            return self.user_post_hook(kwargs, exception=exception)
        if not self.user_pre_hook:
            for name in self.restore_value:
                put_back(kwargs[name], self.saved[name])

    # ---- choosing
    def prune_configs(self, nargs, kwargs, on_gpu):
        configs = self.configs
        if self.early_config_prune:
            configs = list(self.early_config_prune(configs, nargs, **kwargs))
            if not configs:
                raise ValueError(f"{self.__name__}: early_config_prune left no configuration")
        if not self.perf_model:
            return by_cost(configs, {**nargs, **kwargs}, on_gpu)
        top = self.configs_top_k
        if not isinstance(top, (int, float)) or isinstance(top, float) and top > 1.0:
            raise TypeError("top_k is a share up to 1.0, or a whole number")
        top = max(1, int(len(self.configs) * top) if isinstance(top, float) else top)
        cost = {c: self.perf_model(**{**nargs, **kwargs, **c.all_kwargs()}) for c in configs}
        return sorted(configs, key=cost.get)[:top]

    def key_of(self, values):
        """(named values, element types), with the types as the objects that they are: every launch comes here."""
        return (*[(n, bucket(values[n])) for n in self.keys if n in values],
                *[v.dtype for v in values.values() if hasattr(v, "dtype")])

    @staticmethod
    def device_of(values):
        for v in values.values():
            device = _ditron.device_of(v)
            if device is not None:
                return device
        return 0

    def measure(self, args, kwargs, config, best):
        nargs = {**dict(zip(self.arg_names, args)), **kwargs, **config.all_kwargs()}

        def call():
            if config.pre_hook:
                config.pre_hook(nargs)
            self.pre_hook(nargs)
            try:
                self.fn.run(*args, **{**kwargs, **config.all_kwargs()})
            except Exception as e:
                self.post_hook(nargs, exception=e)
                raise
            self.post_hook(nargs, exception=None)

        if self.do_bench is not None:
            ms = self.do_bench(call, quantiles=(0.5, 0.2, 0.8))
            return float(ms[0] if isinstance(ms, (tuple, list)) else ms)
        return testing.do_bench(call, warmup=testing.WARMUP_MS if self.num_warmup is None else self.num_warmup,
                                rep=testing.REP_MS if self.num_reps is None else self.num_reps, return_mode="median",
                                stop_above=3 * best)

    def compile_ahead(self, configs, args, kwargs, pool):
        """Futures that end when a configuration is compiled; what is wrong with one shows when it is measured."""
        plain_kwargs = {k: v for k, v in kwargs.items() if k != "grid"}
        return [pool.submit(lambda c=c: self.fn.prepare(*args, **{**plain_kwargs, **c.all_kwargs()})) for c in configs]

    def tune(self, configs, args, kwargs):
        """config -> milliseconds, for as many as there was time for."""
        from concurrent.futures import ThreadPoolExecutor
        begin = time.monotonic()
        timings, best, refused = {}, float("inf"), None
        bar = Bar(self.__name__, len(configs))
        with ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1))) as pool:
            ahead = self.compile_ahead(configs, args, kwargs, pool)
            try:
                for i, config in enumerate(configs):
                    late = time.monotonic() - begin > _settings.TUNE_SECONDS
                    if late and best < float("inf"):
                        break
                    bar.show(i, f"best {best:.4g} ms" if timings and best < float("inf") else "")
                    try:
                        ahead[i].result()
                        timings[config] = self.measure(args, kwargs, config, best)
                    except (_ditron.OutOfResources, _ditron.CompilationError) as e:
                        timings[config], refused = float("inf"), refused or e
                    best = min(best, timings[config])
            finally:
                for f in ahead:
                    f.cancel()
                bar.end()
        if best == float("inf"):
            raise refused
        self.bench_time = time.monotonic() - begin
        return timings

    def choose(self, key, args, kwargs):
        nargs = dict(zip(self.arg_names, args))
        values = {k: v for k, v in {**nargs, **kwargs}.items() if k in self.arg_names}
        device = self.device_of(values)
        configs = self.prune_configs(nargs, kwargs, device > 0)
        remembered = self.cache_results and not any(c.pre_hook for c in configs)
        file = memory_of([self.base_fn.cache_key, [plain(k) for k in key], [str(c) for c in self.configs], _ditron.target(device),
                          _ditron.devices()[device][2] if device else machine_name()]) if remembered else None
        config = recall(file, configs) if file else None
        if config is None and not _settings.measures():
            return configs[0]  # not kept: it may be measured later
        if config is None and len(configs) == 1:
            config = configs[0]
        if config is None:
            self.configs_timings = self.tune(configs, args, kwargs)
            config = min(self.configs_timings, key=self.configs_timings.get)
            full = {**nargs, **kwargs, **config.all_kwargs()}
            self.pre_hook(full, reset_only=True)
            if file:
                remember(file, key, self.configs_timings)
        self.cache[key] = config
        return config

    def config_for(self, args, kwargs):
        if len(self.configs) == 1:
            return self.configs[0]
        clash = next((k for k in kwargs if k in self.configs[0].kwargs), None)
        if clash:
            raise ValueError(f"{self.__name__}: '{clash}' is given, and is tuned as well")
        key = self.key_of({k: v for k, v in {**dict(zip(self.arg_names, args)), **kwargs}.items() if k in self.arg_names})
        config = self.cache.get(key)
        return config if config is not None else self.choose(key, args, kwargs)

    def run(self, *args, grid, **kwargs):
        # what decides, as it is; most launches are like one before
        seen = (*[args[at] if at < len(args) else kwargs.get(name) for name, at in self.key_places],
                *[None if type(a) in PLAIN else getattr(a, "dtype", None) for a in args], *kwargs,
                *[None if type(a) in PLAIN else getattr(a, "dtype", None) for a in kwargs.values()])
        known = self.known.get(seen)
        if known is None:
            config = self.config_for(args, {**kwargs, "grid": grid})
            merged = {k: v for k, v in config.all_kwargs().items() if (k, v) != ("num_ctas", 1)}
            known = config, merged
            if config in self.cache.values() or len(self.configs) == 1:  # not where nothing may be measured yet
                if len(self.known) > MOST_KNOWN:
                    self.known.clear()
                self.known[seen] = known
        config, merged = known
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**dict(zip(self.arg_names, args)), **kwargs, **merged})
        if self.direct:
            return self.fn[grid](*args, **kwargs, **merged)
        return self.fn.run(*args, grid=grid, **{**kwargs, **merged})

    def warmup(self, *args, **kwargs):
        nargs = dict(zip(self.arg_names, args))
        device = self.device_of({**nargs, **kwargs})
        return [self.fn.warmup(*args, **{**kwargs, **c.all_kwargs()}) for c in self.prune_configs(nargs, kwargs, device > 0)]


def machine_name():
    """What tells one processor from another."""
    try:
        with open("/proc/cpuinfo") as f:
            return next((line.partition(":")[2].strip() for line in f if line.startswith("model name")), "") + f" x{os.cpu_count()}"
    except OSError:
        return f"x{os.cpu_count()}"


def autotune(configs, key, prune_configs_by=None, reset_to_zero=None, restore_value=None, pre_hook=None, post_hook=None, warmup=None,
             rep=None, use_cuda_graph=False, do_bench=None, cache_results=True):
    """Decorator: chooses among configurations for each value of the arguments that `key` names. The arguments are those of
    triton.autotune, but that results are kept on disk unless cache_results is False, and whole numbers in the key count by bucket.
    While configurations are measured the kernel runs many times: reset_to_zero and restore_value name arrays for which that matters.
    warmup and rep are milliseconds for each configuration; DITRON_AUTOTUNE_SECONDS bounds the whole."""

    def decorate(fn):
        return Autotuner(fn, fn.arg_names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook, prune_configs_by, warmup, rep,
                         use_cuda_graph, do_bench, cache_results)

    return decorate


class Heuristics(KernelInterface):
    def __init__(self, fn, arg_names, values):
        self.fn, self.arg_names, self.values = fn, arg_names, values
        self.__name__ = fn.__name__

    def filled(self, args, kwargs):
        for name, heuristic in self.values.items():
            kwargs[name] = heuristic({**dict(zip(self.arg_names, args)), **kwargs})
        return kwargs

    def run(self, *args, **kwargs):
        return self.fn.run(*args, **self.filled(args, kwargs))

    def warmup(self, *args, **kwargs):
        return self.fn.warmup(*args, **self.filled(args, kwargs))

    def prepare(self, *args, **kwargs):
        return self.fn.prepare(*args, **self.filled(args, kwargs))


def heuristics(values):
    """Decorator: computes constexpr parameters from the other arguments, each by a function of them by name."""

    def decorate(fn):
        return Heuristics(fn, fn.arg_names, values)

    return decorate
