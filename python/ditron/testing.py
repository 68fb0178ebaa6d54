"""Timing of launches."""
import sys
import time

from . import _ditron

WARMUP_MS, REP_MS = 5, 40


def quantiles_of(times, quantiles):
    times = sorted(times)
    out = []
    for q in quantiles:
        at = q * (len(times) - 1)
        low = int(at)
        high = min(low + 1, len(times) - 1)
        out.append(times[low] + (times[high] - times[low]) * (at - low))
    return out


def wait():
    """Until the GPUs of this process are idle."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    for i in range(1, 17):  # those that were never used cost nothing
        _ditron.synchronize(i)


def gpu_times(fn, n, torch):
    """Milliseconds of n calls each, by events between them, over a cache that was overwritten before."""
    cache = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(n)]
    for start, end in events:
        cache.zero_()
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in events]


def cpu_times(fn, n):
    out = []
    for _ in range(n):
        start = time.perf_counter()
        fn()
        wait()
        out.append((time.perf_counter() - start) * 1e3)
    return out


def do_bench(fn, warmup=WARMUP_MS, rep=REP_MS, grad_to_none=None, quantiles=None, return_mode="mean", stop_above=None):
    """Milliseconds of a call of fn. warmup, rep: milliseconds to spend. quantiles: a list instead of the mean. stop_above: where the
    first calls take more than so many milliseconds, they are all."""
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
    fn()
    wait()
    first = min(cpu_times(fn, 3))
    times = [first]
    if stop_above is None or first <= stop_above:
        for _ in range(int(min(warmup / max(first, 1e-3), 1000))):
            fn()
        n = max(3, min(int(rep / max(first, 1e-3)), 2000))
        if grad_to_none is not None:
            for x in grad_to_none:
                x.grad = None
        times = gpu_times(fn, n, torch) if on_gpu else cpu_times(fn, n)
    if quantiles is not None:
        out = quantiles_of(times, quantiles)
        return out[0] if len(out) == 1 else out
    if return_mode == "median":
        return quantiles_of(times, [0.5])[0]
    return {"all": list, "min": min, "max": max, "mean": lambda t: sum(t) / len(t)}[return_mode](times)
