# Configurations of kernels: the cost model, measuring, hooks, what is remembered on disk and what serving processes do.
# TIMEOUT: 240
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from _ditron import case, finish

sys.path.insert(0, f"{os.environ['BUILD']}/python")

import ditron  # noqa: E402
import ditron.language as tl  # noqa: E402
from ditron import _settings, autotuner  # noqa: E402

CONFIGS = [ditron.Config({"BLOCK": b}, num_warps=w) for b, w in ((16, 1), (256, 4), (4096, 4))]


def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


def accumulate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(out_ptr + i, mask=i < n) + tl.load(x_ptr + i, mask=i < n), mask=i < n)


def grid(meta):
    return (ditron.cdiv(meta["n"], meta["BLOCK"]),)


def tuned(fn=add, configs=CONFIGS, key=("n",), **kwargs):
    return ditron.autotune(configs, list(key), **kwargs)(ditron.jit(fn))


def by_block(times, calls=None):
    """A benchmark that knows the answer: it runs the call once, and looks which block it was with."""
    def bench(call, quantiles):
        call()
        block = call.__closure__[[*call.__code__.co_freevars].index("config")].cell_contents.kwargs["BLOCK"]
        if calls is not None:
            calls.append(block)
        return [times[block]] * 3
    return bench


def fast(n):
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


# ---- measuring -----------------------------------------------------------------------------------------


def the_fastest():
    for best in (16, 256, 4096):
        calls = []
        kernel = tuned(do_bench=by_block({**{16: 2.0, 256: 2.0, 4096: 2.0}, best: 1.0}, calls), cache_results=False)
        x, out = fast(5000)
        kernel[grid](x, out, 5000)
        assert (out == x + 1).all() and kernel.best_config.kwargs == {"BLOCK": best} and sorted(calls) == [16, 256, 4096]
        kernel[grid](x, out, 5000)
        kernel[grid](x, out, n=5000)  # by name: the same key
        assert len(calls) == 3
        kernel[grid](*fast(9000), 9000)
        assert len(calls) == 6


def limited_registers():
    """Configurations that differ in nothing but maxnreg are kernels of their own; one that no thread can have is refused."""
    configs = [ditron.Config({"BLOCK": 256}, maxnreg=r) for r in (None, 32, 64)]
    kernel = tuned(configs=configs, do_bench=lambda call, quantiles: (call(), [1.0] * 3)[1], cache_results=False)
    assert len({id(k) for k in kernel.warmup(*fast(2000), 2000)}) == 3
    x, out = fast(2000)
    kernel[grid](x, out, 2000)
    assert (out == x + 1).all() and kernel.best_config in configs
    try:
        tuned(configs=[ditron.Config({"BLOCK": 256}, maxnreg=8)], cache_results=False)[grid](x, out, 2000)
    except Exception as e:
        assert "maxnreg is 8; it must be from 24 to 255" in str(e), e
    else:
        raise AssertionError("nothing was raised")


def real_time():
    """By the clock: which one wins is not tested, but that it is the one with the least time."""
    n = 1 << 16
    x, out = fast(n)
    kernel = tuned(cache_results=False)
    kernel[grid](x, out, n)
    assert (out == x + 1).all() and len(kernel.configs_timings) == 3
    assert all(0 < ms < float("inf") for ms in kernel.configs_timings.values())
    assert kernel.best_config == min(kernel.configs_timings, key=kernel.configs_timings.get)


def hooks():
    n = 512
    for kwargs, want in (({"reset_to_zero": ["out_ptr"]}, 1), ({"restore_value": ["out_ptr"]}, 6)):
        x, out = np.ones(n, np.float32), np.full(n, 5, np.float32)
        kernel = tuned(accumulate, CONFIGS[:2], do_bench=by_block({16: 1, 256: 2}), cache_results=False, **kwargs)
        kernel[grid](x, out, n)
        assert (out == want).all(), (kwargs, out[0])
    seen = []
    kernel = tuned(configs=[ditron.Config({"BLOCK": 64}, pre_hook=lambda args: seen.append(args["BLOCK"]))])
    kernel[grid](*fast(n), n)
    assert seen == [64]


def refused_configurations():
    """One that does not compile loses; where all are such, the first error is raised."""
    x, out = fast(100)
    kernel = tuned(configs=[ditron.Config({"BLOCK": 48}), ditron.Config({"BLOCK": 64})], cache_results=False)
    kernel[grid](x, out, 100)
    assert (out == x + 1).all() and kernel.best_config.kwargs == {"BLOCK": 64}
    try:
        tuned(configs=[ditron.Config({"BLOCK": 48}), ditron.Config({"BLOCK": 40})], cache_results=False)[grid](x, out, 100)
    except ditron.CompilationError as e:
        assert "power of two" in str(e)
    else:
        raise AssertionError("nothing was raised")


def time_is_up():
    calls = []
    _settings.TUNE_SECONDS, before = 0, _settings.TUNE_SECONDS
    tuned(do_bench=by_block({16: 1, 256: 1, 4096: 1}, calls), cache_results=False)[grid](*fast(8192), 8192)
    _settings.TUNE_SECONDS = before
    assert len(calls) == 1


def tuned_twice():
    try:
        tuned()[grid](*fast(64), 64, BLOCK=16)
    except ValueError as e:
        assert "'BLOCK' is given, and is tuned as well" in str(e)
    else:
        raise AssertionError("nothing was raised")


# ---- pruning and the cost model --------------------------------------------------------------------------


def pruning():
    calls = []
    bench = by_block({16: 1, 256: 2, 4096: 3}, calls)
    early = {"early_config_prune": lambda configs, args, **kwargs: [c for c in configs if c.kwargs["BLOCK"] < args["n"]]}
    tuned(do_bench=bench, prune_configs_by=early, cache_results=False)[grid](*fast(300), 300)
    assert sorted(calls) == [16, 256]
    calls.clear()
    model = {"perf_model": lambda BLOCK, n, **kwargs: abs(BLOCK - n), "top_k": 1}
    tuned(do_bench=bench, prune_configs_by=model, cache_results=False)[grid](*fast(300), 300)
    assert not calls  # one is left: nothing to measure
    model["top_k"] = 2
    tuned(do_bench=bench, prune_configs_by=model, cache_results=False)[grid](*fast(300), 300)
    assert calls == [256, 16]


def cost_model():
    C = ditron.Config
    blocks = [c.kwargs["BLOCK"] for c in autotuner.by_cost(CONFIGS, {"n": 100}, False)]
    assert 4096 not in blocks and 16 in blocks, blocks
    products = [C({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_stages=s, num_warps=w)
                for m, n, k, s, w in ((128, 256, 64, 3, 8), (256, 256, 128, 4, 8), (128, 128, 64, 3, 4), (64, 64, 32, 2, 4))]
    sizes = {"M": 4096, "N": 4096, "K": 4096, "a": np.zeros(1, np.float16)}
    left = autotuner.by_cost(products, sizes, True)
    assert products[1] not in left and len(left) == 3, left  # its stages take more than a block has
    assert left[-1] is products[3]  # small tiles load the most
    few = autotuner.by_cost(products, {**sizes, "M": 16, "N": 64}, True)
    assert few[0] is products[3]
    odd = [C({"X": 3}), C({"Y": "text"})]
    assert autotuner.by_cost(odd, {"n": 5}, False) == odd


def buckets():
    assert [autotuner.bucket(x) for x in (0, 7, 16, 17, 18, 100, 1000, 1024, 1025)] == [0, 7, 16, 18, 18, 104, 1024, 1024, 1152]
    assert autotuner.bucket(True) is True and autotuner.bucket("text") == "text" and autotuner.bucket(-100) == -104


# ---- what is remembered --------------------------------------------------------------------------------------


def files():
    return sorted((Path(os.environ["DITRON_CACHE_DIR"]) / "tune").rglob("*.json"))


def remembered():
    before, calls = set(files()), []
    for _ in range(2):  # a second process would see the same
        kernel = tuned(do_bench=by_block({16: 3, 256: 1, 4096: 2}, calls))
        kernel[grid](*fast(7000), 7000)
        kernel[grid](*fast(7100), 7100)  # of the same bucket
        assert kernel.best_config.kwargs == {"BLOCK": 256}
    assert sorted(calls) == [16, 256, 4096]
    new, = set(files()) - before
    assert json.loads(new.read_text())["timings"]
    new.write_text("{ damaged")
    kernel = tuned(do_bench=by_block({16: 3, 256: 2, 4096: 1}, calls))
    kernel[grid](*fast(7000), 7000)
    assert kernel.best_config.kwargs == {"BLOCK": 4096} and len(calls) == 6
    tuned(do_bench=by_block({16: 1, 256: 2, 4096: 3}, calls))[grid](*fast(7000)[:1], np.zeros(7000), 7000)  # another element type
    tuned(accumulate, do_bench=by_block({16: 1, 256: 2, 4096: 3}, calls))[grid](*fast(7000), 7000)  # another kernel
    assert len(calls) == 12


def serving():
    calls = []
    bench = by_block({16: 3, 256: 1, 4096: 2}, calls)
    x, out = fast(12000)
    with ditron.tuning(False):
        kernel = tuned(do_bench=bench)
        kernel[grid](x, out, 12000)
        assert (out == x + 1).all() and not calls
        first = autotuner.by_cost(CONFIGS, {"n": 12000}, False)[0]
        assert kernel.best_config == first
    kernel[grid](x, out, 12000)  # allowed again, it is measured
    assert len(calls) == 3 and kernel.best_config.kwargs == {"BLOCK": 256}
    with ditron.tuning(False):  # and then remembered
        kernel = tuned(do_bench=bench)
        kernel[grid](x, out, 12000)
        assert len(calls) == 3 and kernel.best_config.kwargs == {"BLOCK": 256}


SWITCH = """
import sys
sys.path.insert(0, {path!r})
from ditron import _settings
print(_settings.measures())
"""


def switch():
    Path("switch.py").write_text(SWITCH.format(path=f"{os.environ['BUILD']}/python"))

    def run(**env):
        return subprocess.run([sys.executable, "switch.py"], capture_output=True, text=True, env=dict(os.environ, **env))

    assert run().stdout == "True\n" and run(DITRON_AUTOTUNE="off").stdout == "False\n"
    assert "must be on or off" in run(DITRON_AUTOTUNE="perhaps").stderr


BAR = """
import sys
sys.path.insert(0, {path!r})
import ditron, numpy as np
import ditron.language as tl
@ditron.jit
def add(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr, n)
configs = [ditron.Config({{"BLOCK": 16}}), ditron.Config({{"BLOCK": 32}})]
ditron.autotune(configs, ["n"], cache_results=False)(add)[(1,)](np.zeros(1), 1000)
"""


def bar():
    """On a terminal a line that is gone at the end; elsewhere nothing."""
    Path("bar.py").write_text(BAR.format(path=f"{os.environ['BUILD']}/python"))
    p = subprocess.run([sys.executable, "bar.py"], capture_output=True, text=True, timeout=100)
    assert (p.returncode, p.stdout, p.stderr) == (0, "", ""), p
    terminal, end = os.openpty()
    subprocess.run([sys.executable, "bar.py"], stderr=end, timeout=100, check=True)
    os.close(end)
    said = os.read(terminal, 65536).decode()
    os.close(terminal)
    assert "ditron: tuning add [" in said and "1/2" in said and said.endswith("\r\x1b[K"), said


# ---- heuristics ------------------------------------------------------------------------------------------------


def heuristics():
    kernel = ditron.heuristics({"BLOCK": lambda args: ditron.next_power_of_2(args["n"])})(ditron.jit(add))
    x, out = fast(100)
    kernel[(1,)](x, out, 100)
    assert (out == x + 1).all()
    both = ditron.autotune(CONFIGS, ["n"], do_bench=by_block({16: 1, 256: 2, 4096: 3}), cache_results=False)(
        ditron.heuristics({"n": lambda args: len(args["x_ptr"])})(ditron.jit(add)))
    out[:] = 0
    both[lambda meta: (ditron.cdiv(100, meta["BLOCK"]),)](x, out)
    assert (out == x + 1).all()
    assert [ditron.next_power_of_2(n) for n in (0, 1, 2, 3, 1000)] == [0, 1, 2, 4, 1024] and ditron.cdiv(7, 2) == 4


def ahead_of_time():
    kernel = tuned(cache_results=False)
    x, out = fast(200)
    assert [k.name for k in kernel.warmup(x, out, 200)] == ["add", "add"]  # the largest block is dropped
    assert not out.any()


for fn in (the_fastest, limited_registers, real_time, hooks, refused_configurations, time_is_up, tuned_twice, pruning, cost_model, buckets, remembered, serving,
           switch, bar, heuristics, ahead_of_time):
    case(fn.__name__, fn)
finish()
