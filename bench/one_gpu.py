"""Ditron's kernels on one GPU beside torch, in one process.

    python3 bench/one_gpu.py LIBDITRON.SO [--only NAME,...] [--json FILE] [--triton] [--device cpu]

The cases are the table of gpu_cases.py. Each compiles a kernel in several configurations, checks every one against torch in float64,
keeps the fastest, then times rounds of every contestant in turn (a new order each round), many launches back to back between two events
over buffers larger than the L2 cache. A series of launches is captured into a CUDA graph and the graph is timed, for every contestant alike, so
that a short kernel is not measured by what the host needs to launch it. Printed: medians, and the median of the per-round ratios peer / ours with the smallest and largest.
A configuration that does not compile or load is named with the reason. With --triton the same kernel files are compiled by Triton too, in
the same configurations, and its fastest is one more contestant; that takes a while. With --device cpu small sizes are checked and nothing
is timed. Needs torch; our kernels are compiled by the library."""
import argparse
import ctypes as c
import importlib
import json
import os
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/corpus"))
sys.path.insert(0, str(ROOT / "kernels"))
import ditron  # noqa: E402
from gpu_cases import CASES  # noqa: E402

ROUNDS = 7
NAMES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "i8", torch.int32: "i32",
         torch.int64: "i64", torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2"}


def repeat(run, times):
    return [run() for _ in range(times)]


@dataclass
class Blocks:
    """A tensor as the argument of a descriptor parameter."""
    tensor: torch.Tensor
    block: tuple


def as_value(v):
    if isinstance(v, torch.Tensor):
        return ditron.Pointer(NAMES[v.dtype], v.data_ptr())
    if isinstance(v, Blocks):
        t = v.tensor
        return ditron.Tensor(NAMES[t.dtype], t.data_ptr(), tuple(t.shape), tuple(t.stride()), v.block)
    return v


def by_triton(file, name, grid, values, sizes):
    """The same kernel, compiled and launched by Triton."""
    from triton.tools.tensor_descriptor import TensorDescriptor
    kernel = getattr(importlib.import_module(file.removesuffix(".py")), name)
    given = {n: TensorDescriptor(v.tensor, list(v.tensor.shape), list(v.tensor.stride()), list(v.block)) if isinstance(v, Blocks) else v
             for n, v in values.items()}
    kernel[tuple(grid)](**given, **sizes)


class Bench(ditron.Runner):
    """One context and one rank on a device, launching on torch's stream where that is a GPU; and the rows of results."""

    def __init__(self, library, device, triton):
        self.device, self.timed, self.out, self.triton, self.triton_calls = device, device != "cpu", [], triton, None
        self.blocks = Blocks
        self.multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count if self.timed else 2
        self.lib = c.CDLL(library, mode=c.RTLD_LOCAL)
        self.lib.dt_error.restype = self.lib.dt_status_name.restype = self.lib.dt_kernel_arg_name.restype = c.c_char_p
        self.lib.dt_team_local.restype = c.c_void_p
        self.context, self.team, self.stream = c.c_void_p(), c.c_void_p(), c.c_void_p()
        o = ditron.ContextOptions(size=c.sizeof(ditron.ContextOptions), deadline_seconds=60)
        self.check(self.lib.dt_context_create(c.byref(o), c.byref(self.context)))
        name = b"cpu" if device == "cpu" else b"cuda:0"
        t = ditron.TeamOptions(size=c.sizeof(ditron.TeamOptions), local_ranks=1, symmetric_bytes=1 << 20, device=name)
        self.check(self.lib.dt_team_create(self.context, c.byref(t), c.byref(self.team)))
        self.rank = c.c_void_p(self.lib.dt_team_local(self.team, 0))
        if self.timed:
            torch.cuda.set_stream(torch.cuda.Stream())  # the default one cannot be captured
            native = c.c_void_p(torch.cuda.current_stream().cuda_stream)
            self.check(self.lib.dt_stream_wrap(self.rank, native, b"torch", c.byref(self.stream)))
        else:
            self.check(self.lib.dt_stream_create(self.rank, b"bench", c.byref(self.stream)))

    # ---- tensors ----
    def randn(self, *shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device=self.device).to(dtype)

    def empty(self, *shape, dtype=torch.bfloat16):
        return torch.empty(*shape, device=self.device, dtype=dtype)

    def ints(self, low, high, *shape, dtype=torch.int32):
        return torch.randint(low, high, shape, device=self.device, dtype=dtype)

    # ---- kernels ----
    def kernel(self, file, name, values, warps, stages, registers=0):
        """A function that binds other values of the same types to a launch."""
        args = ditron.named({n: as_value(v) for n, v in values.items()})
        o = ditron.CompileOptions(size=c.sizeof(ditron.CompileOptions), target=b"sm_90a" if self.timed else None, num_warps=warps,
                                  num_stages=stages, max_registers=registers)
        image, k, info = c.c_void_p(), c.c_void_p(), ditron.KernelInfo()
        self.check(self.lib.dt_compile_file(self.context, os.fsencode(ROOT / "kernels" / file), name.encode(), args,
                                            c.c_size_t(len(values)), c.byref(o), c.byref(image)))
        self.check(self.lib.dt_kernel_load(self.rank, image, None, c.byref(k)))
        self.check(self.lib.dt_kernel_query(k, c.byref(info)))
        names = [self.lib.dt_kernel_arg_name(k, c.c_size_t(i)).decode() for i in range(info.nargs)]

        def bind(grid, values):
            array = (ditron.Value * max(len(names), 1))(*[ditron.value_of(as_value(values[n])) for n in names])
            g = (c.c_uint32 * 3)(*(tuple(grid) + (1, 1))[:3])
            return lambda: self.check(self.lib.dt_launch(k, self.stream, g, array, c.c_size_t(len(names))))
        return bind

    def sync(self):
        if self.timed:
            torch.cuda.synchronize()
        else:
            self.check(self.lib.dt_stream_sync(self.stream))

    def fastest(self, title, configs, make, check, copies=1, before=None):
        """make(config, copy) gives [(file, kernel, grid, values), ...], launched in this order; a config is a dict with warps, stages
        and what make reads. check() after a first launch over copy 0 raises where a result is wrong. Returns the fastest
        (ms, config, calls); race() finds Triton's."""
        def ours(config):
            sizes = config.get("warps", 4), config.get("stages", 2), config.get("regs", 0)
            binds = [self.kernel(file, name, values, *sizes) for file, name, _, values in make(config, 0)]
            return [[bind(grid, values) for bind, (_, _, grid, values) in zip(binds, make(config, copy))] for copy in range(copies)]

        def triton(config):
            sizes = dict(num_warps=config.get("warps", 4), num_stages=config.get("stages", 2),
                         maxnreg=config.get("regs") or None)
            return [[lambda f=f, n=n, g=g, v=v: by_triton(f, n, g, v, sizes) for f, n, g, v in make(config, copy)] for copy in range(copies)]

        def of(who, prepare):
            runs = []
            for config in configs:
                try:
                    calls = [lambda steps=steps: [s() for s in steps] for steps in prepare(config)]
                    if before:
                        before()
                    calls[0]()
                    self.sync()
                except Exception as e:
                    if prepare is ours and not isinstance(e, ditron.Refused):
                        raise
                    print(f"{title} {who} {config}: {(str(e) or repr(e)).splitlines()[0]}", flush=True)
                    continue
                check()
                runs.append((config, calls))
            if not runs or not self.timed:
                return (0.0, *runs[0]) if runs else None
            # in turn and long enough that the card's clock is that of a race
            series = [self.series(calls, max(8, int(10 / min(repeat(self.series(calls, 4), 2))))) for _, calls in runs]
            rounds = [[run() for run in series] for _ in range(4)][1:]
            ms = [statistics.median(times) for times in zip(*rounds)]
            first = ms.index(min(ms))
            return (ms[first], *runs[first])
        best = of("ours", ours)
        if best is None:
            raise SystemExit(f"{title}: no configuration runs")
        self.triton_calls = of("Triton", triton) if self.triton else None
        return best

    def right(self, title, got, want, bound):
        want = want.double()
        err = ((got.double() - want).norm() / want.norm().clamp_min(1e-30)).item()
        if not err <= bound:
            raise SystemExit(f"{title}: relative error {err:.3g}, allowed {bound:.3g}; nothing was timed")

    # ---- time ----
    def series(self, calls, times):
        """A function that runs that many launches, the calls in turn, and returns the milliseconds of one."""
        graph = torch.cuda.CUDAGraph()
        self.sync()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            for i in range(times):
                calls[i % len(calls)]()

        def run():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            return start.elapsed_time(end) / times
        return run

    def race(self, title, best, peers, work, unit):
        """best: of fastest(); peers: name -> list of calls over different buffers; work: in units a millisecond."""
        name = f"{title} {' '.join(str(v) for v in best[1].values())}"
        if not self.timed:
            print(f"right: {name}", flush=True)
            return
        contestants = {"ours": best[2], **peers}
        if self.triton_calls:
            contestants["Triton"] = self.triton_calls[2]
        for calls in contestants.values():
            calls[0]()  # what a first call prepares cannot be captured
        times = max(8, int(20 / min(repeat(self.series(best[2], 8), 3))))
        series = {n: self.series(calls, times) for n, calls in contestants.items()}
        for run in series.values():
            run()
        rounds = {n: [] for n in contestants}
        for _ in range(ROUNDS):
            order = list(contestants)
            random.shuffle(order)
            for n in order:
                rounds[n].append(series[n]())
        row = {"name": name, "unit": unit}
        for n, ms in rounds.items():
            ratio = sorted(p / o for p, o in zip(ms, rounds["ours"]))
            row[n] = {"ms": statistics.median(ms), "rate": work / statistics.median(ms), "ratio": statistics.median(ratio),
                      "min": ratio[0], "max": ratio[-1]}
        print(f"{name:44}" + "  ".join(
            f"{n} {v['rate']:.0f}" + ("" if n == "ours" else f" ({v['ratio']:.2f}, {v['min']:.2f}-{v['max']:.2f})")
            for n, v in row.items() if isinstance(v, dict)) + f"  {unit}", flush=True)
        self.out.append(row)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("library")
    ap.add_argument("--only", default="", metavar="NAME,...", help="the cases with one of these in their names")
    ap.add_argument("--json")
    ap.add_argument("--triton", action="store_true")
    ap.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    o = ap.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    if o.triton:
        import triton  # its descriptors made on the device need memory
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device=o.device, dtype=torch.int8))
    bench, ran = Bench(o.library, o.device, o.triton), 0
    for name, case, sizes, small in CASES:
        if any(part in name for part in o.only.split(",")):
            case(bench, name, *(sizes if bench.timed else small))
            ran += 1
            if bench.timed:
                torch.cuda.empty_cache()
    if o.json:
        Path(o.json).write_text("".join(json.dumps(row) + "\n" for row in bench.out))
    if not ran:
        raise SystemExit(f"no case has '{o.only}' in its name")


if __name__ == "__main__":
    main()
